#include "tile/liveness.hpp"

#include <set>
#include <utility>

#include "support/ranges.hpp"
#include "support/result.hpp"
#include "tile/expand.hpp"
#include "tile/sizes.hpp"
#include "tile/uses.hpp"

namespace napkin {
namespace {
class Timeline {
public:
    explicit Timeline(const TileKernel& kernel) : kernel_(kernel), life_of_(kernel.variables.size(), -1) {}

    Liveness run() {
        out_.group_axes = kernel_.group_axes;
        out_.parts = kernel_.parts;
        walk(kernel_.body);
        drop_contained();
        return std::move(out_);
    }

private:
    [[nodiscard]] CoreVariable& life_of(VariableId v) {
        internal_check(life_of_[at(v)] >= 0, "tile: a variable is used that is not alive");
        return out_.variables[at(life_of_[at(v)])];
    }
    [[nodiscard]] int next_moment() const { return static_cast<int>(out_.timeline.size()); }

    void begin(VariableId v, bool loaded) {
        const Variable& variable = kernel_.variables[v];
        life_of_[at(v)] = static_cast<int>(out_.variables.size());
        alive_.insert(life_of_[at(v)]);
        out_.variables.push_back({.variable = v,
                                  .array = variable.array,
                                  .indices = array_indices(kernel_, variable),
                                  .dims = variable.dims,
                                  .limits = variable.limits,
                                  .loop = loop_,
                                  .loaded = loaded,
                                  .is_state = variable.is_state,
                                  .first = next_moment(),
                                  .first_step = step_});
    }

    void end(VariableId v) {
        CoreVariable& life = life_of(v);
        life.last = next_moment() - 1;
        life.last_step = loop_ < 0 ? step_ - 1 : step_;
        alive_.erase(std::exchange(life_of_[at(v)], -1));
    }

    void add_moment(AxisId entered, ArrayId target) {
        out_.timeline.push_back({loop_, entered, target, {alive_.begin(), alive_.end()}});
    }

    void walk(const std::vector<TileStatement>& list) {
        for (const TileStatement& s : list) {
            if (const auto* load = std::get_if<Load>(&s)) begin(load->variable, true);
            if (const auto* init = std::get_if<Init>(&s)) begin(init->variable, false);
            if (const auto* store = std::get_if<Store>(&s)) life_of(store->variable).stored = true;
            if (const auto* free = std::get_if<Free>(&s)) end(free->variable);
            const auto* compute = std::get_if<Compute>(&s);
            const auto* loop = std::get_if<std::shared_ptr<const TileLoop>>(&s);
            if (compute) {
                if (life_of_[at(compute->variable)] < 0) begin(compute->variable, false);
                add_moment(-1, kernel_.variables[compute->variable].array);
            }
            if (loop) walk_loop(**loop);
            if ((compute || loop) && loop_ < 0) ++step_;
        }
    }

    void walk_loop(const TileLoop& loop) {
        add_moment(loop.axis, -1);
        const bool may_skip = !loop.support.empty() ||
                              any_of(loop.masks, [](const MaskForm& f) { return !f.has_reads(); });
        out_.loops.push_back({loop.axis, loop.support, loop.is_sub, loop_, step_, may_skip, loop.masks});
        const int outer = std::exchange(loop_, static_cast<int>(out_.loops.size()) - 1);
        walk(loop.body);
        loop_ = outer;
    }

    /// Whether the loop `inner` runs only inside of the loop `outer`, or is it. -1 always runs.
    [[nodiscard]] bool is_inside(int inner, int outer) const {
        while (inner != outer && inner >= 0) inner = out_.loops[at(inner)].outer;
        return inner == outer;
    }

    /// Drops each moment whose variables are all alive at another moment of the same loop or of a loop around it.
    void drop_contained() {
        const std::vector<Moment>& all = out_.timeline;
        for (std::size_t i = 0; i < all.size(); ++i) {
            const Moment& a = all[i];
            bool contained = false;
            for (std::size_t j = 0; j < all.size() && !contained; ++j) {
                const Moment& b = all[j];
                if (i == j || !is_inside(a.loop, b.loop)) continue;
                const bool inside = std::includes(b.alive.begin(), b.alive.end(), a.alive.begin(), a.alive.end());
                contained = inside && (a.alive.size() < b.alive.size() || a.loop != b.loop || i < j);
            }
            if (!contained) out_.moments.push_back(a);
        }
    }

    const TileKernel& kernel_;
    std::vector<int> life_of_;  ///< of each variable, or -1 where it is not alive
    std::set<int> alive_;
    int loop_ = -1, step_ = 0;
    Liveness out_;
};

}  // namespace

std::vector<int> Liveness::loops_around(int loop) const {
    std::vector<int> around;
    for (; loop >= 0; loop = loops[at(loop)].outer) around.push_back(loop);
    return around;
}

Liveness liveness(const TileKernel& kernel) { return Timeline(kernel).run(); }

Liveness liveness(const Derived& derived, const Kernel& kernel, const Extents* extents) {
    TileKernel tiles = expand(derived, kernel);
    return liveness(extents ? with_numbers(std::move(tiles), *extents) : tiles);
}

Liveness with_even_lengths(Liveness live, const Diagram& diagram, const Extents& extents) {
    for (CoreLoop& loop : live.loops)
        for (const MaskForm& form : loop.masks) {
            // One side has an offset, and the other one a number of rows.
            const Expr& offset = form.plus ? form.plus : form.minus;
            if (!offset || (form.plus && form.minus) || !form.sizes.empty()) continue;
            const Read& read = *as<Read>(offset);
            const Array& array = diagram.array(read.array);
            const Affine* place = read.indices.front().affine();
            if (!array.rows || !array.rows->ascend || array.rows->axis != loop.axis || !place) continue;
            const std::int64_t counted = std::max<std::int64_t>(1, extents[array.axes.front()] - 1),
                               rows = extents[loop.axis];
            loop.support.push_back(form.affine * counted + *place * (form.plus ? rows : -rows));
        }
    return live;
}

std::vector<AxisId> axes_of(const std::vector<Index>& dims) {
    std::vector<AxisId> axes;
    axes.reserve(2 * dims.size());
    for (const Index& d : dims) {
        if (d.affine())
            for (const auto& [axis, factor] : d.affine()->terms) axes.push_back(axis);
        else
            for (const AxisId axis : d.axes()) axes.push_back(axis);
    }
    sort_unique(axes);
    return axes;
}

}  // namespace napkin
