#include "schedule/gathered.hpp"

#include "support/ranges.hpp"

namespace napkin {

std::size_t GatheredCopy::depth(std::size_t d) const {
    std::size_t depth = loops.size();
    while (depth > 0 && !source[d].depends_on(AxisId::of(loops[depth - 1]))) --depth;
    return depth;
}

std::vector<Index> source_of(const ScheduledKernel& kernel, VariableId id) {
    if (!kernel.variable(id).gathers.empty()) return kernel.facts(id).source;
    std::vector<Index> out;
    for (std::size_t d = 0; d < kernel.variable(id).dims.size(); ++d) out.emplace_back(Affine::axis(AxisId::of(d)));
    return out;
}

namespace {
void add_terms(const Expr& e, std::vector<Expr>& out) {
    const auto* sum = as<Binary>(e);
    if (!sum || sum->op != BinaryOp::add) return out.push_back(e);
    add_terms(sum->a, out), add_terms(sum->b, out);
}
}  // namespace

int run_of(const Index& source) {
    if (!source.is_gathered()) return source.single_axis().place();
    std::vector<Expr> terms;
    add_terms(*source.expression(), terms);
    for (const Expr& term : terms)
        if (const auto* axis = as<AxisIndex>(term);
            axis && count_if(terms, [&](const Expr& other) { return depends_on_axis(other, axis->axis); }) == 1)
            return axis->axis.place();
    return -1;
}

int array_dimension(const ScheduledKernel& kernel, VariableId id, int dimension) {
    if (kernel.variable(id).gathers.empty()) return dimension;
    const std::vector<Index>& source = kernel.facts(id).source;
    const auto found = find_if(source, [&](const Index& index) { return run_of(index) == dimension; });
    return found == source.end() ? -1 : static_cast<int>(found - source.begin());
}

bool lies_in_one_block(const ScheduledKernel& kernel, VariableId id) {
    const Variable& variable = kernel.variable(id);
    const std::vector<Index>& source = kernel.facts(id).source;
    for (std::size_t p = 0; p < variable.dims.size(); ++p) {
        const auto is_it = [&](const Index& i) { return i.is_axis(AxisId::of(p)); };
        if (any_of(source, is_it)) continue;
        const AxisId axis = variable.dims[p].single_axis();
        if (axis < 0 || kernel.span(axis, kernel.layout(id).scope).padded > 1) return false;
    }
    return source.back().single_axis() >= 0;
}

GatheredCopy gathered_copy(const ScheduledKernel& kernel, VariableId id) {
    const Variable& variable = kernel.variable(id);
    GatheredCopy out;
    out.source = kernel.facts(id).source;
    std::vector<bool> is_plain(variable.dims.size(), false), is_long;
    for (std::size_t d = 0; d < out.source.size(); ++d)
        if (out.plain(d) >= 0) is_plain[at(out.plain(d))] = true;
    for (const std::int64_t size : kernel.layout(id).sizes) is_long.push_back(size > 1);

    const int last = out.plain(out.source.size() - 1), inner = kernel.place(id).innermost;
    out.is_block = last >= 0 && is_long[at(last)];
    if (out.is_block && kernel.in_blocks()) out.columns = last;
    if (out.is_block && !kernel.in_blocks()) {
        if (is_plain[at(inner)]) out.columns = inner;
        for (std::size_t p = 0; p < variable.dims.size(); ++p)
            if (static_cast<int>(p) != out.columns && is_plain[p] && is_long[p]) out.rows = static_cast<int>(p);
    }
    for (const bool plain : {false, true})
        for (std::size_t p = 0; p < variable.dims.size(); ++p)
            if ((out.is_block && is_plain[p]) == plain && static_cast<int>(p) != out.columns &&
                static_cast<int>(p) != out.rows)
                out.loops.push_back(p);
    return out;
}

bool is_of_data_alone(const Variable& variable, AxisId axis) {
    return !variable.gathers.empty() && carries(variable, axis) &&
           none_of(variable.gathers, [&](const Index& i) { return !i.is_gathered() && i.depends_on(axis); });
}

double bytes_of_part(const ScheduledKernel& kernel, const Variable& variable) {
    const std::vector<AxisId>& axes = kernel.program->diagram.array(variable.array).axes;
    double values = 1;
    for (std::size_t d = 0; d < variable.gathers.size(); ++d) {
        const auto extent = static_cast<double>(kernel.extent(axes[d]));
        const Affine* form = variable.gathers[d].affine();
        double span = form ? 1 : extent;
        for (std::size_t i = 0; form && i < form->terms.size(); ++i) {
            const auto& [axis, factor] = form->terms[i];
            const std::int64_t n = contains(kernel.kernel->group_axes, axis) ? kernel.span(axis, 0).tile
                                                                             : kernel.extent(axis);
            span += static_cast<double>(std::abs(factor) * (n - 1));
        }
        values *= std::min(span, extent);
    }
    return values * bytes(variable.memory_type);
}

}  // namespace napkin
