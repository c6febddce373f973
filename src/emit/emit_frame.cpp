#include "emit/emit_frame.hpp"

#include <set>
#include <utility>

#include "emit/emit_index.hpp"
#include "support/ranges.hpp"

namespace napkin::writers {
namespace {

void add_names(Frame& frame) {
    const Diagram& diagram = frame.diagram();
    frame.axes.resize(diagram.axes.size());
    frame.variables.resize(frame.kernel->variables.size());
    // Only what the kernel uses gets a name, so that a name does not depend on the other kernels of the program.
    std::set<AxisId> used;
    const auto use_expr = [&](const Expr& e) {
        if (e)
            for (const AxisId a : free_axes(e)) used.insert(a);
    };
    for (const auto& [axis, size] : groups_of(*frame.kernel, frame.sizes)) used.insert(axis);
    for (const Variable& v : frame.kernel->variables)
        for (const Index& d : v.dims)
            for (const AxisId axis : d.axes()) used.insert(axis);
    for (const Step& s : frame.steps)
        if (const auto* c = std::get_if<Compute>(s.statement)) {
            use_expr(c->body), use_expr(c->carry);
            used.insert(c->reduce_axes.begin(), c->reduce_axes.end());
        }
    for (const AxisId a : used) {
        const std::string& name = diagram.axis(a).name;
        AxisNames& names = frame.axes[a];
        names.local = frame.names.add(name);
        names.begin = frame.names.add(name + "0");
        names.count = frame.names.add("n" + name);
        names.block = frame.names.add(name + "_block");
    }
    for (const VariableId v : frame.variables.ids()) {
        frame.variables[v] = frame.names.add(frame.kernel->variables[v].name);
        frame.copies.push_back(frame.names.add(frame.variables[v] + "_copy"));
    }
    for (const Prefetch& p : frame.schedule.prefetches)
        frame.ahead[p.variable] = frame.names.add(frame.name(p.variable) + "_ahead");
    for (const Step& s : frame.steps)
        for (std::size_t v = 0; s.is_tile_pipelined() && v < frame.layouts.size(); ++v)
            if (const auto id = VariableId::of(v);
                frame.is_view(id) && !frame.before.contains(id) && (variable_of(s) == id || reads(s, id)))
                frame.before[id] = frame.names.add(frame.name(id) + "_before");
    if (any_of(frame.steps, [&](const Step& s) { return frame.partials(s) > 0; }))
        frame.partials_name = frame.names.add("partials");
    for (const ArrayId a : frame.inputs) frame.memory[a] = frame.names.add(diagram.array(a).name + "_in");
    for (const ArrayId a : frame.outputs)
        if (!frame.memory.contains(a)) frame.memory[a] = frame.names.add(diagram.array(a).name + "_out");
    for (const auto& [array, name] : frame.memory) frame.strides[array] = frame.names.add(name + "_s");
}

}  // namespace

Frame::Frame(const lower::KernelProgram& program, std::string_view prelude)
    : ScheduledKernel(*program.kernel),
      lowered(program),
      shapes(program.shapes),
      names(prelude),
      numbers(std::make_shared<LaunchNumbers>(program.size_arguments, is_double)) {
    add_names(*this);
}

Frame Frame::of_group_before() const {
    Frame out = *this;
    for (const auto& [id, name] : before) out.variables[id] = name;
    return out;
}

bool Frame::is_output(VariableId id) const { return contains(outputs, variable(id).array); }

bool Frame::vary_with(std::initializer_list<AxisId> of) const {
    return any_of(of, [&](AxisId axis) { return numbers->vary_with(axis); });
}

std::string Frame::whole_text(const std::string& what, const Expr& formula) const {
    return numbers->vary_with(formula) ? numbers->whole(what, formula)
                                       : std::to_string(lower::whole_value(formula, extents));
}

bool Frame::is_number(const Expr& formula, double number) const {
    return !numbers->vary_with(formula) && lower::real_value(formula, extents) == number;
}

std::string Frame::real_text(const std::string& what, const Expr& formula) const {
    return numbers->vary_with(formula) ? numbers->real(what, formula)
                                       : literal(lower::real_value(formula, extents), is_double);
}

std::string Frame::extent_text(AxisId id) const {
    return whole_text("size_" + diagram().axis(id).name, lower::SizeFormulas(lowered).size(id));
}
std::pair<std::int64_t, std::string> Frame::constant_of(const Affine& form) const {
    std::string what;
    std::int64_t of_sizes = 0;
    Expr formula = integer_constant(0);
    for (const auto& [axis, factor] : form.sizes) {
        if (!vary_with({axis})) continue;
        of_sizes += factor * extent(axis);
        formula = lower::whole_formula(BinaryOp::add, formula,
                                       lower::whole_formula(BinaryOp::mul, integer_constant(factor), axis_size(axis)));
        what += fmt::format("{}{} size {}", what.empty() ? "" : " ", factor, diagram().axis(axis).name);
    }
    return {form.constant - of_sizes, what.empty() ? "" : numbers->whole("sum " + what, formula)};
}
std::string Frame::form_text(const Affine& form, const ExprNames& form_names) const {
    const auto [constant, number] = constant_of(form);
    return to_string(Affine{form.terms, constant}, form_names) + (number.empty() ? "" : " + " + number);
}
std::string Frame::count_text(AxisId id, std::int64_t tile) const {
    return fmt::format("min_index({}, {} - {})", tile, extent_text(id), axis(id).begin);
}

std::string Frame::count(AxisId id, ScopeId at_scope) const {
    const Span& span = this->span(id, at_scope);
    return span.ragged ? axis(id).count : std::to_string(span.tile);
}

Address Frame::address(VariableId id, const std::vector<Index>& indices, ScopeId at_scope) const {
    const Variable& v = variable(id);
    const Layout& where = layout(id);
    Address out;
    for (std::size_t d = 0; d < indices.size(); ++d) {
        const std::int64_t stride = where.strides[d];
        if (!indices[d].affine() || !v.dims[d].affine()) {
            out.others.push_back({stride, indices[d], bounds_text(*this, v.dims[d], where.scope).low.text});
            continue;
        }
        out.constant += stride * (indices[d].affine()->constant - v.dims[d].affine()->constant);
        for (const auto& [axis, c] : indices[d].affine()->terms) {
            if (span(axis, at_scope).tile > 1) out.local[axis] += stride * c;
            if (span(axis, at_scope).begins) out.begin[axis] += stride * c;
        }
        for (const auto& [axis, c] : v.dims[d].affine()->terms) {
            if (span(axis, where.scope).begins) out.begin[axis] -= stride * c;
            if (c < 0) out.constant -= stride * c * (span(axis, where.scope).padded - 1);
        }
    }
    std::erase_if(out.local, [](const auto& term) { return term.second == 0; });
    std::erase_if(out.begin, [](const auto& term) { return term.second == 0; });
    return out;
}

}  // namespace napkin::writers
