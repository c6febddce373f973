#include "schedule/views.hpp"

#include <optional>

#include "schedule/thread_runs.hpp"
#include "support/ids.hpp"
#include "support/ranges.hpp"

namespace napkin {

bool divides_evenly(const ScheduledKernel& kernel, AxisId axis, std::int64_t number, ScopeId scope) {
    const Span& span = kernel.span(axis, scope);
    return span.padded == span.tile && number % span.tile == 0;
}

namespace {

/// One past the largest value of the axis that any tile of the variable reads, padding included.
std::int64_t padded_end(const ScheduledKernel& kernel, VariableId id, ScopeId scope, AxisId axis) {
    const Span& span = kernel.span(axis, scope);
    const std::int64_t extent = kernel.extent(axis);
    if (!span.begins) return kernel.reach(id, axis, span.tile);
    const std::int64_t last = (extent - 1) / span.tile * span.tile;
    const std::int64_t end = last + kernel.reach(id, axis, extent - last);
    return last > 0 ? std::max(end, last - span.tile + kernel.reach(id, axis, span.tile)) : end;
}

std::int64_t most_of(const ScheduledKernel& kernel, const Expr& e, ScopeId scope) {
    if (const auto* i = as<AxisIndex>(e)) return kernel.span(i->axis, scope).padded;
    if (const auto* u = as<Unary>(e)) return most_of(kernel, u->a, scope);
    const auto* b = as<Binary>(e);
    if (!b) return 1;
    const auto number = [](const Expr& c) { return static_cast<std::int64_t>(as<Constant>(c)->value); };
    const std::int64_t x = most_of(kernel, b->a, scope), y = most_of(kernel, b->b, scope);
    if (const auto* of = as<AxisIndex>(b->a);
        of && as<Constant>(b->b) && divides_evenly(kernel, of->axis, number(b->b), scope)) {
        if (b->op == BinaryOp::floor_div) return 1;
        if (b->op == BinaryOp::mod) return x;
    }
    if ((b->op == BinaryOp::floor_div || b->op == BinaryOp::mod) && x == 1) return 1;
    switch (b->op) {
        case BinaryOp::add:
        case BinaryOp::sub: return x + y - 1;
        case BinaryOp::floor_div: return (x - 1 + number(b->b) - 1) / number(b->b) + 1;
        case BinaryOp::mod: return number(b->b);
        case BinaryOp::mul: return std::abs(number(as<Constant>(b->a) ? b->a : b->b)) * (x + y - 2) + 1;
        default: break;
    }
    if (as<Constant>(b->a) || as<Constant>(b->b)) return std::max(x, y);
    Extents farthest = kernel.extents;
    for (const AxisId a : farthest.ids()) farthest[a] += kernel.scope(scope)[a].padded;
    return range_of(Index::of(e), std::vector<std::int64_t>(farthest.size(), 0), farthest).size();
}

}  // namespace

bool starts_late(const Index& dim) {
    const Affine* form = dim.affine();
    return form && any_of(form->terms, [](const auto& t) { return t.second < 0; });
}

void shape_view(ScheduledKernel& kernel, VariableId id) {
    Layout& layout = kernel.layouts[id];
    const Variable& variable = kernel.variable(id);
    const std::vector<AxisId>& axes = kernel.program->diagram.array(variable.array).axes;
    const std::optional<ScopeId>& scope = kernel.facts(id).load_scope;
    layout.in_runs = kernel.in_blocks() && !kernel.on_tensor_cores() && !kernel.facts(id).is_only_gathered &&
                     (scope ? may_be_read_by_runs(kernel, id) : is_written_by_runs(kernel, id));
    // Threads, and loads that gather by it, find its values by the array's own strides: it needs none here.
    if (layout.in_runs || (scope && (kernel.on_tensor_cores() || kernel.facts(id).is_only_gathered))) {
        layout.strides.assign(axes.size(), 0);
        layout.count = layout.reach = 0, layout.may_overrun = false;
        return;
    }
    const bool gathers = !variable.gathers.empty();
    const std::vector<Index>& source = kernel.facts(id).source;
    std::int64_t stride = 1, last = 0;  // the farthest value that is read
    layout.strides.assign(variable.dims.size(), 0);
    layout.reach = 1;
    for (std::size_t d = axes.size(); d-- > 0; stride *= kernel.extent(axes[d])) {
        const int p = gathers ? source[d].single_axis().place() : static_cast<int>(d);
        if (p < 0) continue;
        const auto dim = static_cast<std::size_t>(p);
        layout.strides[dim] = stride;
        layout.reach += stride * (layout.sizes[dim] - 1);
        last += stride * variable.dims[dim].affine()->constant;
        for (const auto& [axis, c] : variable.dims[dim].affine()->terms)
            last += stride * c * (scope ? padded_end(kernel, id, *scope, axis) - 1 : 0);
    }
    // A tile whose place data decide may be the array's last block, or lie nowhere.
    layout.may_overrun = scope && (gathers || last >= stride);  // the array has `stride` values
    layout.count = layout.may_overrun ? layout.reach + kernel.lanes : 0;
}

bool is_cut(const ScheduledKernel& kernel, const Variable& variable, std::size_t dimension) {
    const Index& dim = variable.dims[dimension];
    if (!dim.affine()) return true;
    const Extents& extents = kernel.extents;
    if (const AxisId axis = dim.single_axis(); axis >= 0)
        return kernel.extent(axis) > kernel.extent(variable.limits[dimension]);
    const Interval range = range_of(dim, std::vector<std::int64_t>(extents.size(), 0), extents);
    return range.low < 0 || range.high >= kernel.extent(variable.limits[dimension]);
}

std::int64_t most_values(const ScheduledKernel& kernel, const Index& index, ScopeId scope) {
    return most_of(kernel, index.value(), scope);
}

}  // namespace napkin
