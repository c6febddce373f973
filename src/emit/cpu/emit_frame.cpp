#include "emit/cpu/emit_frame.hpp"

#include <algorithm>
#include <set>

#include "emit/cpu/emit_index.hpp"
#include "emit/cpu/emit_whole.hpp"
#include "support/result.hpp"

namespace napkin::cpu {
namespace {
/// Flattens the statements of one list into steps and loops; Free is dropped, lifetimes are computed after reordering.
class Flattening {
public:
    explicit Flattening(Frame& frame) : frame_(frame) {}

    std::vector<Node> run(const std::vector<TileStatement>& statements, int scope) {
        std::vector<Node> out;
        for (const TileStatement& s : statements) {
            if (const auto* loop = std::get_if<std::shared_ptr<const TileLoop>>(&s)) {
                out.emplace_back(loop_node(**loop, scope));
                continue;
            }
            if (std::holds_alternative<Free>(s)) continue;
            define(s, scope);
            out.emplace_back(static_cast<int>(frame_.steps.size()));
            frame_.steps.push_back({.statement = &s, .scope = scope, .nest = {}});
        }
        return out;
    }

private:
    std::shared_ptr<LoopNode> loop_node(const TileLoop& loop, int scope) {
        Scope inner = frame_.scope(scope);
        const std::int64_t extent = frame_.extent(loop.axis), chunk = std::min(loop.chunk, extent);
        inner[static_cast<std::size_t>(loop.axis)] = {chunk, chunk, chunk < extent, extent % chunk != 0};
        frame_.scopes.push_back(std::move(inner));
        auto node = std::make_shared<LoopNode>();
        node->loop = &loop;
        node->scope = static_cast<int>(frame_.scopes.size()) - 1;
        node->body = run(loop.body, node->scope);
        return node;
    }

    void define(const TileStatement& s, int scope) {
        const auto at = [&](VariableId v) {
            Layout& layout = frame_.layouts[static_cast<std::size_t>(v)];
            if (layout.scope < 0) layout.scope = scope;
        };
        const auto use = [](std::vector<ArrayId>& list, ArrayId a) {
            if (!contains(list, a)) list.push_back(a);
        };
        if (const auto* load = std::get_if<Load>(&s))
            at(load->variable), use(frame_.inputs, frame_.variable(load->variable).array);
        if (const auto* store = std::get_if<Store>(&s)) use(frame_.outputs, frame_.variable(store->variable).array);
        if (const auto* init = std::get_if<Init>(&s)) at(init->variable);
        if (const auto* compute = std::get_if<Compute>(&s)) at(compute->variable);
    }

    Frame& frame_;
};

void add_names(Frame& frame) {
    const Diagram& diagram = frame.program->diagram;
    frame.axes.resize(diagram.axes.size());
    frame.variables.resize(frame.kernel->variables.size());
    // Only what the kernel touches gets a name, so that a name does not depend on the other kernels of the program.
    std::set<AxisId> used;
    const auto use_expr = [&](const Expr& e) {
        if (e)
            for (const AxisId a : free_axes(e)) used.insert(a);
    };
    for (const auto& [axis, size] : frame.kernel->groups) used.insert(axis);
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
        AxisNames& names = frame.axes[static_cast<std::size_t>(a)];
        names.local = frame.names.add(name);
        names.begin = frame.names.add(name + "0");
        names.count = frame.names.add("n" + name);
        names.block = frame.names.add(name + "_block");
    }
    for (std::size_t v = 0; v < frame.variables.size(); ++v) {
        frame.variables[v] = frame.names.add(frame.kernel->variables[v].name);
        frame.copies.push_back(frame.names.add(frame.variables[v] + "_copy"));
    }
    for (const ArrayId a : frame.inputs) frame.memory[a] = frame.names.add(diagram.array(a).name + "_in");
    for (const ArrayId a : frame.outputs)
        if (!frame.memory.contains(a)) frame.memory[a] = frame.names.add(diagram.array(a).name + "_out");
    for (const auto& [array, name] : frame.memory) frame.strides[array] = frame.names.add(name + "_s");
}

}  // namespace

std::vector<AxisId> target_axes(const Variable& variable) {
    std::vector<AxisId> axes;
    for (const Index& d : variable.dims) {
        internal_check(d.single_axis() >= 0, "emit: a computed variable has a dimension that is not an axis");
        axes.push_back(d.single_axis());
    }
    return axes;
}

bool carries(const Variable& variable, AxisId axis) {
    return std::any_of(variable.dims.begin(), variable.dims.end(), [&](const Index& d) { return d.depends_on(axis); });
}

std::vector<const Read*> reads_of(const Compute& compute) {
    std::vector<const Read*> out;
    const auto take = [&](const Expr& e) {
        if (const Read* r = as<Read>(e)) out.push_back(r);
    };
    visit(compute.body, take);
    if (compute.carry) visit(compute.carry, take);
    return out;
}

std::int64_t total_terms(const Frame& frame, const Compute& compute) {
    std::int64_t terms = 1;
    for (const AxisId a : compute.reduce_axes)
        terms = std::min(terms, std::int64_t{1} << 20) * std::min(frame.extent(a), std::int64_t{1} << 20);
    return terms;
}

std::int64_t block_size(const Frame& frame, const Nest& nest, AxisId axis) {
    if (axis == nest.vector_axis) return static_cast<std::int64_t>(frame.lanes) * nest.block_vectors;
    return axis == nest.row_axis ? nest.block_rows : 1;
}

std::string Frame::count(AxisId id, int at_scope) const {
    const Span& span = span_of(scope(at_scope), id);
    return span.ragged ? axis(id).count : std::to_string(span.tile);
}

Address Frame::address(VariableId id, const std::vector<Index>& indices, int at_scope) const {
    const Variable& v = variable(id);
    const Layout& where = layout(id);
    const Scope& at = scope(at_scope);
    const Scope& defined = scope(where.scope);
    Address out;
    for (std::size_t d = 0; d < indices.size(); ++d) {
        const std::int64_t stride = where.strides[d];
        if (!indices[d].affine() || !v.dims[d].affine()) {
            out.others.push_back({stride, indices[d], bounds_text(*this, v.dims[d], where.scope).low});
            continue;
        }
        out.constant += stride * (indices[d].affine()->constant - v.dims[d].affine()->constant);
        for (const auto& [axis, c] : indices[d].affine()->terms) {
            if (span_of(at, axis).tile > 1) out.local[axis] += stride * c;
            if (span_of(at, axis).begins) out.begin[axis] += stride * c;
        }
        for (const auto& [axis, c] : v.dims[d].affine()->terms) {
            if (span_of(defined, axis).begins) out.begin[axis] -= stride * c;
            if (c < 0) out.constant -= stride * c * (span_of(defined, axis).padded - 1);
        }
    }
    std::erase_if(out.local, [](const auto& term) { return term.second == 0; });
    std::erase_if(out.begin, [](const auto& term) { return term.second == 0; });
    return out;
}

Frame analyse(const TileProgram& program, const TileKernel& kernel, const KernelPlan& plan, const EmitOptions& options) {
    Frame frame;
    frame.program = &program;
    frame.kernel = &kernel;
    frame.plan = &plan;
    frame.options = options;
    frame.layouts.resize(kernel.variables.size());
    for (const Variable& v : kernel.variables)
        frame.is_double |= v.memory_type == DType::f64 || program.diagram.array(v.array).type == DType::f64;
    frame.lanes = options.vector_bytes / (frame.is_double ? 8 : 4);

    Scope group(program.extents.size());
    for (std::size_t a = 0; a < group.size(); ++a) group[a] = {program.extents[a], program.extents[a], false, false};
    for (const auto& [axis, size] : kernel.groups) {
        const std::int64_t extent = frame.extent(axis), tile = std::min(size, extent);
        group[static_cast<std::size_t>(axis)] = {tile, tile, tile < extent, extent % tile != 0};
    }
    frame.scopes.push_back(std::move(group));
    frame.body = Flattening(frame).run(kernel.body, 0);
    for (Layout& l : frame.layouts) l.scope = std::max(l.scope, 0);
    add_names(frame);

    // A vector axis of one value fills no vector: the nests then choose for themselves.
    if (const auto axis = program.diagram.find_axis(plan.vector_axis); axis && span_of(frame.scope(0), *axis).tile > 1)
        frame.vector_axis = *axis;
    frame.whole = WholeValues(frame).variables();
    choose_layout_orders(frame);
    choose_nests(frame);
    form_panels(frame);
    fuse_reductions(frame);
    choose_views(frame);
    place_variables(frame);
    return frame;
}

}  // namespace napkin::cpu
