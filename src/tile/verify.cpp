#include "tile/verify.hpp"

#include <fmt/format.h>

#include <map>
#include <set>

#include "diagram/empty_axes.hpp"
#include "diagram/guards.hpp"
#include "support/ranges.hpp"
#include "support/saturate.hpp"
#include "tile/uses.hpp"
#include "tile/verify_form.hpp"

namespace napkin {
namespace {
/// How one axis is cut at a statement, outermost first: into groups or K blocks, and these into parts.
using Cuts = std::vector<std::int64_t>;

/// How far a read stays inside its variable's tile along one dimension, as far as one axis contributes. The field `low`
/// is the smallest value, over all tiles of the axis, of the low end of the read's index minus that of the variable's
/// dimension. The field `high` is the same for the high ends, with the opposite sign.
struct Slack {
    std::int64_t low = 0, high = 0;
};

/// Slack of one axis. Tiles of the read lie in those of the variable, which the first `dim_depth` cuts make.
class AxisSlack {
public:
    AxisSlack(std::int64_t read_coefficient, const Cuts& cuts, std::int64_t dim_coefficient, std::size_t dim_depth)
        : read_coefficient_(read_coefficient), dim_coefficient_(dim_coefficient), cuts_(cuts), dim_depth_(dim_depth) {}

    Slack run(std::int64_t extent) {
        look(0, 0, extent, {});
        return slack_;
    }

private:
    static Interval ends(std::int64_t coefficient, std::int64_t begin, std::int64_t count) {
        const std::int64_t a = coefficient * begin, b = coefficient * (begin + count - 1);
        return {std::min(a, b), std::max(a, b)};
    }

    /// Ends are linear in the tile's number while tiles are full, so the first, the last full and the ragged tile
    /// suffice.
    void look(std::size_t depth, std::int64_t begin, std::int64_t count, Interval dim) {
        if (depth == dim_depth_) dim = ends(dim_coefficient_, begin, count);
        if (depth == cuts_.size()) {
            const Interval read = ends(read_coefficient_, begin, count);
            const Slack here{read.low - dim.low, dim.high - read.high};
            slack_ = is_first_ ? here : Slack{std::min(slack_.low, here.low), std::min(slack_.high, here.high)};
            is_first_ = false;
            return;
        }
        const std::int64_t size = cuts_[depth], last = (count - 1) / size;
        for (const std::int64_t tile : {std::int64_t{0}, std::max<std::int64_t>(last - 1, 0), last})
            look(depth + 1, begin + tile * size, std::min(size, count - tile * size), dim);
    }

    std::int64_t read_coefficient_, dim_coefficient_;
    const Cuts& cuts_;
    std::size_t dim_depth_;
    Slack slack_;
    bool is_first_ = true;
};

/// How far the read stays inside of the variable's tile, over all tiles that the cuts make of its part at `defined`.
Slack slack_of(const Affine& read, const Affine& dim, const std::vector<Cuts>& cuts, const std::vector<Cuts>& defined,
               const Extents& extents) {
    Slack total{read.constant - dim.constant, dim.constant - read.constant};
    for (std::size_t axis = 0; axis < cuts.size(); ++axis) {
        const auto id = AxisId::of(axis);
        const Slack s = AxisSlack(read.coefficient(id), cuts[axis], dim.coefficient(id), defined[axis].size()).run(extents[id]);
        total.low += s.low, total.high += s.high;
    }
    return total;
}

/// Variables that are read somewhere with no condition on the way to the read.
void find_unguarded(const std::vector<TileStatement>& list, std::set<VariableId>& out) {
    const auto add = [&](const Read& r, const std::vector<Guard>& guards) {
        if (guards.empty()) out.insert(r.variable());
    };
    for (const TileStatement& statement : list) {
        if (const auto* loop = std::get_if<std::shared_ptr<const TileLoop>>(&statement); loop && *loop)
            find_unguarded((*loop)->body, out);
        const auto* compute = std::get_if<Compute>(&statement);
        for (const Expr& e : compute ? std::vector<Expr>{compute->body, compute->carry} : std::vector<Expr>{})
            if (e) for_each_guarded_read(e, [](const Read&) { return true; }, add);
    }
}

class KernelRules : private KernelReport {
public:
    KernelRules(const SizedProgram& program, std::size_t k, std::set<ArrayId>& in_memory, std::vector<std::string>& messages)
        : KernelReport(program, k, messages),
          sizes_(program.sizes[k]),
          in_memory_(in_memory),
          cuts_(program.extents.size()) {}

    void check() {
        check_groups();
        if (!check_variables(*this)) return;
        find_unguarded(kernel_.body, unguarded_);
        check_list(kernel_.body);
        in_memory_.insert(stored_.begin(), stored_.end());
    }

private:
    struct Life {
        int depth;               ///< loops around the definition
        std::vector<Cuts> cuts;  ///< at the definition, by axis
        bool loaded, initialised;
    };

    [[nodiscard]] bool is_grouped(AxisId axis) const {
        return any_of(groups_, [&](const auto& g) { return g.first == axis; });
    }

    [[nodiscard]] bool is_cut_by_subloop(AxisId axis) const {
        return any_of(loops_, [&](const TileLoop* l) { return l->is_sub && l->axis == axis; });
    }

    /// The most values of an axis that a tile has.
    [[nodiscard]] std::int64_t tile_size(const std::vector<Cuts>& cuts, AxisId axis) const {
        const Cuts& of_axis = cuts[at(axis)];
        return of_axis.empty() ? extent(axis) : of_axis.back();
    }

    /// Cuts what there is of the axis into tiles of the size, clamped so that the other rules can go on.
    void cut(AxisId axis, std::int64_t size, const char* what) {
        if (size < 1) report("the {} size of {} is {}, below 1", what, axis_name(axis), size);
        if (size > extent(axis))
            report("the {} size of {} is {}, past its extent {}", what, axis_name(axis), size, extent(axis));
        cuts_[at(axis)].push_back(std::clamp<std::int64_t>(size, 1, tile_size(cuts_, axis)));
    }

    void check_groups() {
        std::set<AxisId> seen;
        for (const AxisId axis : kernel_.group_axes)
            if (!is_axis(axis))
                return report("axis {} of its groups does not exist", axis);
            else if (!seen.insert(axis).second)
                report("axis {} is grouped twice", axis_name(axis));
        groups_ = groups_of(kernel_, sizes_);
        for (const auto& [axis, size] : groups_) cut(axis, size, "group");
        if (const StreamParts& parts = kernel_.parts; parts.any()) {
            if (!is_axis(parts.axis) || !is_grouped(parts.part))
                report("the axis that numbers its stream's parts is not grouped");
            else if (const std::int64_t chunks = ceil_div(extent(parts.axis),
                                                          k_block_of(parts.axis, false, sizes_, program_.extents));
                     extent(parts.part) > chunks && !program_.diagram.axis(parts.axis).is_any)
                report("{} parts of {} cannot each have one of {} chunks", extent(parts.part), axis_name(parts.axis),
                       chunks);
        }
    }

    void check_list(const std::vector<TileStatement>& list) {
        const std::map<VariableId, Life> outer = alive_;
        for (const TileStatement& statement : list) std::visit([&](const auto& s) { check_one(s); }, statement);
        for (const auto& [v, life] : alive_)
            if (!outer.contains(v)) report("{} is never freed in the list in which it is defined", variable(v).name);
        alive_ = outer;
    }

    bool known(VariableId v) {
        const bool ok = v >= 0 && static_cast<std::size_t>(v) < kernel_.variables.size();
        if (!ok) report("variable {} does not exist", v);
        return ok;
    }

    void define(VariableId v, bool loaded, bool initialised) {
        alive_[v] = {static_cast<int>(loops_.size()), cuts_, loaded, initialised};
        freed_.erase(v);
    }

    /// Whether the variable is alive; says why not.
    bool check_alive(VariableId v, const std::string& use) {
        if (alive_.contains(v)) return true;
        if (freed_.contains(v))
            report("{} is {} after it was freed", variable(v).name, use);
        else
            report("{} is {} before it is defined", variable(v).name, use);
        return false;
    }

    void check_fresh(VariableId v, const char* how) {
        if (alive_.contains(v)) report("{} is {} while it is still alive", variable(v).name, how);
    }

    void check_one(const Load& load) {
        if (!known(load.variable)) return;
        const Variable& v = variable(load.variable);
        check_fresh(load.variable, "loaded");
        if (!in_memory_.contains(v.array))
            report("{} is loaded, but {} is no input and no earlier kernel stores it", v.name, diagram_.array(v.array).name);
        const std::vector<std::int64_t> zero(program_.extents.size(), 0);
        for (std::size_t d = 0; d < v.dims.size() && !v.is_zero_outside && unguarded_.contains(load.variable); ++d) {
            // Outside of the array lies padding, which only reads behind a condition may leave alone. The interval of a
            // quotient or a remainder is a bound, so it says something only where all of it lies outside.
            const Interval range = range_of(v.dims[d], zero, program_.extents);
            const std::int64_t here = inside(range, extent(v.limits[d])).size();
            if (v.dims[d].affine() ? here < range.size() : here <= 0)
                report("{} is loaded from index {} to {} of {}, which has {}, and read without a condition", v.name,
                       range.low, range.high, axis_name(v.limits[d]), extent(v.limits[d]));
        }
        for (const Index& index : v.gathers)
            for (const VariableId inner :
                 index.expression() ? read_variables(*index.expression()) : std::vector<VariableId>{})
                if (known(inner)) check_alive(inner, "read by the load of " + v.name);
        define(load.variable, true, false);
    }

    void check_one(const Init& init) {
        if (!known(init.variable)) return;
        check_fresh(init.variable, "initialised");
        if (!variable(init.variable).is_state)
            report("{} is initialised, but is no state", variable(init.variable).name);
        check_dims(*this, init.variable);
        define(init.variable, false, true);
    }

    void check_one(const Store& store) {
        if (!known(store.variable)) return;
        const Variable& v = variable(store.variable);
        if (check_alive(store.variable, "stored")) {
            const Life& life = alive_.at(store.variable);
            if (life.loaded) report("{} is stored, but was loaded, not computed", v.name);
            if (life.depth < static_cast<int>(loops_.size()))
                report("{} is stored again in every iteration of the loop over {}", v.name, axis_name(loops_.back()->axis));
        }
        for (const auto& [axis, size] : groups_) {
            const auto& axes = diagram_.array(v.array).axes;
            const auto runs_part = [&](const TileLoop* loop) { return kernel_.parts.cut(loop->axis); };
            if (axis == kernel_.parts.part && any_of(loops_, runs_part)) continue;
            if (!contains(axes, axis))
                report("{} is stored at the same points by every group of {}", v.name, axis_name(axis));
        }
        for (const TileLoop* loop : loops_) {
            const auto carries = [&](const Index& dim) { return dim.depends_on(loop->axis); };
            if (none_of(v.dims, carries))
                report("{} is stored at the same points in every iteration of the loop over {}", v.name,
                       axis_name(loop->axis));
            if (!loop->support.empty())
                report("{} is stored in the loop over {}, which skips chunks: some points are never stored", v.name,
                       axis_name(loop->axis));
        }
        if (diagram_.array(v.array).role == ArrayRole::input) report("{} is stored over an input", v.name);
        if (in_memory_.contains(v.array) || !stored_.insert(v.array).second) report("{} is stored twice", v.name);
    }

    void check_one(const Free& free) {
        if (!known(free.variable)) return;
        const auto life = alive_.find(free.variable);
        if (life == alive_.end())
            report("{} is freed {}", variable(free.variable).name,
                   freed_.contains(free.variable) ? "twice" : "before it is defined");
        else if (life->second.depth < static_cast<int>(loops_.size()))
            report("{} is freed in the loop over {}, but was defined outside of it", variable(free.variable).name,
                   axis_name(loops_.back()->axis));
        else
            alive_.erase(life), freed_.insert(free.variable);
    }

    void check_one(const std::shared_ptr<const TileLoop>& loop) {
        if (!loop || !is_axis(loop->axis)) return report("a loop runs over an axis that does not exist");
        for (const TileLoop* around : loops_)
            if (around->axis == loop->axis && (around->is_sub || !loop->is_sub))
                return report("the loop over {} stands inside a loop over {}", axis_name(loop->axis), axis_name(loop->axis));
        if (is_grouped(loop->axis) && !loop->is_sub)
            report("axis {} is both grouped and streamed", axis_name(loop->axis));
        for (const Affine& form : loop->support)
            for (const auto& [axis, coefficient] : form.terms)
                if (!is_axis(axis))
                    return report("the support of the loop over {} mentions axis {}, which does not exist",
                                  axis_name(loop->axis), axis);
        cut(loop->axis, k_block_of(*loop, sizes_, program_.extents), loop->is_sub ? "subloop" : "stream");
        loops_.push_back(loop.get());
        check_list(loop->body);
        loops_.pop_back();
        cuts_[at(loop->axis)].pop_back();
    }

    void check_one(const Compute& compute) {
        if (!known(compute.variable)) return;
        const Variable& v = variable(compute.variable);
        if (!compute.body) return report("{} is computed from nothing", v.name);
        check_dims(*this, compute.variable);
        check_reduction(compute);
        check_axes(*this, compute);
        bool reads_itself = false;
        for (const Read* r : reads_in_order(compute.body, compute.carry)) {
            if (!known(r->variable())) continue;
            reads_itself = reads_itself || r->variable() == compute.variable;
            if (check_alive(r->variable(), "read")) check_inside(*r, v);
        }
        const auto life = alive_.find(compute.variable);
        if (life == alive_.end()) {
            if (v.is_state && !reads_itself) report("state {} is computed, but not initialised", v.name);
            define(compute.variable, false, false);
            return;
        }
        if (!v.is_state && !reads_itself) report("{} is computed while it is still alive", v.name);
        if (life->second.loaded) report("{} is computed into a tile that was loaded", v.name);
        if (life->second.initialised && !loops_.empty() && life->second.depth == static_cast<int>(loops_.size()))
            report("state {} is initialised inside the loop over {} that updates it", v.name,
                   axis_name(loops_.back()->axis));
        for (std::size_t d = 0; d < v.dims.size(); ++d)
            for (const AxisId axis : v.dims[d].axes())
                if (tile_size(cuts_, axis) != tile_size(life->second.cuts, axis) && !is_cut_by_subloop(axis))
                    report("{} was defined over another tile of {} than the one it is computed for", v.name,
                           axis_name(axis));
    }

    void check_reduction(const Compute& compute) {
        const std::string& name = variable(compute.variable).name;
        if (compute.carry && !compute.reduce) report("{} has a carry, but no reduction to join it with", name);
        if (!compute.reduce && !compute.reduce_axes.empty())
            report("{} names axes to reduce over, but no reduction", name);
        if (compute.reduce && compute.reduce_axes.empty() && !compute.carry) report("{} reduces over no axis", name);
        const std::vector<AxisId>& own = diagram_.array(variable(compute.variable).array).axes;
        std::set<AxisId> seen;
        for (const AxisId axis : compute.reduce_axes) {
            if (!is_axis(axis)) {
                report("{} reduces over axis {}, which does not exist", name, axis);
                continue;
            }
            if (!seen.insert(axis).second) report("{} reduces over {} twice", name, axis_name(axis));
            if (is_grouped(axis))
                report("{} reduces over the grouped axis {}: no group holds all of it", name, axis_name(axis));
            if (contains(own, axis)) report("{} reduces over its own axis {}", name, axis_name(axis));
            const auto streams = [&](const TileLoop* loop) { return loop->axis == axis; };
            if (variable(compute.variable).is_state && !compute.carry && any_of(loops_, streams))
                report("state {} is reduced over the streamed axis {} without a carry: earlier chunks are lost", name,
                       axis_name(axis));
        }
    }

    /// Checks that the read's indices stay in the variable's box for every tile. Each axis can be checked by itself.
    void check_inside(const Read& r, const Variable& reader) {
        const Variable& v = variable(r.variable());
        if (r.indices.size() != v.dims.size())
            return report("{} is read with {} indices, it has {} dimensions", v.name, r.indices.size(), v.dims.size());
        for (const Index& index : r.indices)
            for (const AxisId axis : index.axes())
                if (!is_axis(axis)) return;
        const Life& life = alive_.at(r.variable());
        for (std::size_t d = 0; d < v.dims.size(); ++d) {
            const Affine *index = r.indices[d].affine(), *dim = v.dims[d].affine();
            if (!index || !dim) {
                // Intervals are bounds, so only the dimension's own index is known to stay inside.
                if (r.indices[d] != v.dims[d])
                    report("{} reads dimension {} of {} at {}, which is not the index of that dimension", reader.name,
                           d, v.name, to_string(r.indices[d], diagram_.names()));
                continue;
            }
            const Slack total = slack_of(*index, *dim, cuts_, life.cuts, program_.extents);
            if (total.low < 0 || total.high < 0)
                report("{} reads dimension {} of {} at {}, up to {} outside of its tile", reader.name, d, v.name,
                       to_string(r.indices[d], diagram_.names()), std::max(-total.low, -total.high));
        }
    }

    const TileSizes& sizes_;
    std::vector<std::pair<AxisId, std::int64_t>> groups_;
    std::set<ArrayId>& in_memory_;
    std::vector<Cuts> cuts_;  ///< by axis
    std::vector<const TileLoop*> loops_;
    std::map<VariableId, Life> alive_;
    std::set<VariableId> freed_;
    std::set<ArrayId> stored_;
    std::set<VariableId> unguarded_;
};

}  // namespace

std::vector<std::string> verify(const SizedProgram& program) {
    std::vector<std::string> messages;
    const Diagram& diagram = program.diagram;
    if (program.extents.size() != diagram.axes.size()) {
        messages.push_back(
            fmt::format("the program has {} extents for {} axes", program.extents.size(), diagram.axes.size()));
        return messages;
    }
    for (const AxisId a : diagram.axes.ids())
        if (program.extents[a] < (has_no_values(diagram, a) ? 0 : 1)) {
            messages.push_back(fmt::format("axis {} has extent {}", diagram.axes[a].name, program.extents[a]));
            return messages;
        }
    std::set<ArrayId> in_memory(diagram.inputs.begin(), diagram.inputs.end());
    for (std::size_t k = 0; k < program.kernels.size(); ++k) KernelRules(program, k, in_memory, messages).check();
    for (const ArrayId output : diagram.outputs)
        if (!in_memory.contains(output) && !is_empty(diagram, output))
            messages.push_back(fmt::format("output {} is never stored", diagram.array(output).name));
    return messages;
}

}  // namespace napkin
