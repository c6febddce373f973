#include "tile/liveness.hpp"

#include <algorithm>
#include <map>
#include <set>

#include "diagram/box.hpp"
#include "support/result.hpp"

namespace napkin {
namespace {
class Timeline {
public:
    Timeline(const Diagram& diagram, const Kernel& kernel, const Extents* extents)
        : diagram_(diagram), kernel_(kernel), extents_(extents) {
        for (const Stage& stage : kernel.stages) {
            if (const auto* block = std::get_if<Block>(&stage)) {
                for (const Statement& s : block->statements) computed_.insert(s.target);
            } else {
                const Loop& loop = std::get<Loop>(stage);
                for (const auto& [state, value] : loop.init) computed_.insert(state);
                for (const Statement& s : loop.body) computed_.insert(s.target);
            }
        }
    }

    Liveness run() {
        for (int stage = 0; stage < static_cast<int>(kernel_.stages.size()); ++stage) {
            const Stage& what = kernel_.stages[static_cast<std::size_t>(stage)];
            if (const auto* block = std::get_if<Block>(&what))
                add_block(stage, *block);
            else
                add_loop(stage, std::get<Loop>(what));
        }
        for (int v = 0; v < static_cast<int>(out_.lives.size()); ++v) {
            for (int m = life(v).first; m <= life(v).last; ++m)
                out_.timeline[static_cast<std::size_t>(m)].alive.push_back(v);
            variable(v).first_step = step_of_[static_cast<std::size_t>(life(v).first)];
            variable(v).last_step = step_of_[static_cast<std::size_t>(life(v).last)];
        }
        drop_contained();
        return std::move(out_);
    }

private:
    Life& life(int v) { return out_.lives[static_cast<std::size_t>(v)]; }
    CoreVariable& variable(int v) { return out_.variables[static_cast<std::size_t>(v)]; }
    [[nodiscard]] int now() const { return static_cast<int>(out_.timeline.size()) - 1; }
    [[nodiscard]] bool is_output(ArrayId array) const { return is_among(kernel_.outputs, array); }

    void add_moment(int stage, bool in_body, ArrayId target) {
        out_.timeline.push_back({stage, in_body, target, {}});
        step_of_.push_back(step_);
    }

    int add_variable(CoreVariable v) {
        out_.variables.push_back(std::move(v));
        out_.lives.push_back({now(), now()});
        return static_cast<int>(out_.variables.size()) - 1;
    }

    int add_computed(ArrayId array, int loop) {
        CoreVariable v{.array = array, .indices = {}, .dims = {}, .limits = diagram_.array(array).axes, .loop = loop};
        for (const AxisId axis : v.limits) v.dims.push_back(Affine::axis(axis));
        v.indices = v.dims;
        return add_variable(std::move(v));
    }

    /// Every read of the statement's body and carry.
    template <class F>
    static void for_each_read(const Statement& s, F f) {
        const auto look = [&](const Expr& e) {
            if (const auto* r = as<Read>(e)) f(*r);
        };
        visit(s.body, look);
        if (s.carry) visit(s.carry, look);
    }

    static bool reads_itself(const Statement& s) {
        bool found = false;
        for_each_read(s, [&](const Read& r) { found |= r.array == s.target; });
        return found;
    }

    /// The variable that a read stands for. `loop` is the stage of the loop in which it is read over `axis`, or -1.
    int variable_of(const Read& r, int loop, AxisId axis) {
        if (computed_.contains(r.array)) {
            const auto found = current_.find(r.array);
            internal_check(found != current_.end(), "cost: an array is read before it is computed");
            return found->second;
        }
        const int scope = loop >= 0 && depends_on(r.indices, axis) ? loop : -1;
        for (int v = 0; v < static_cast<int>(out_.variables.size()); ++v)
            if (variable(v).loaded && variable(v).array == r.array && variable(v).loop == scope &&
                variable(v).indices == r.indices)
                return v;
        Box box = box_of(diagram_, r);
        if (extents_)
            for (Index& dim : box.dims) dim = with_sizes(dim, *extents_);
        return add_variable({.array = r.array,
                             .indices = r.indices,
                             .dims = std::move(box.dims),
                             .limits = std::move(box.limits),
                             .loop = scope,
                             .loaded = true});
    }

    void add_block(int stage, const Block& block) {
        for (const Statement& s : block.statements) {
            add_moment(stage, false, s.target);
            for_each_read(s, [&](const Read& r) { life(variable_of(r, -1, -1)).last = now(); });
            if (!current_.contains(s.target) || !reads_itself(s)) current_[s.target] = add_computed(s.target, -1);
            const int target = current_[s.target];
            life(target).last = now();
            variable(target).stored |= is_output(s.target);
            ++step_;
        }
    }

    void add_loop(int stage, const Loop& loop) {
        add_moment(stage, false, -1);
        const int entry = now(), end = entry + static_cast<int>(loop.body.size());
        std::set<ArrayId> states;
        for (const auto& [state, value] : loop.init) {
            const int v = current_[state] = add_computed(state, -1);
            states.insert(state);
            life(v) = {entry, end};
            variable(v).is_state = true;
            variable(v).stored = is_output(state);
        }
        // What the body reads before it defines it comes from outside and lives through the whole loop.
        std::set<ArrayId> defined;
        for (const Statement& s : loop.body) {
            for_each_read(s, [&](const Read& r) {
                if (defined.contains(r.array)) return;
                const int v = variable_of(r, stage, loop.axis);
                if (variable(v).loop < 0) life(v) = {std::min(life(v).first, entry), end};
            });
            defined.insert(s.target);
        }
        for (const Statement& s : loop.body) {
            add_moment(stage, true, s.target);
            for_each_read(s, [&](const Read& r) {
                const int v = variable_of(r, stage, loop.axis);
                // A streamed input is met by the scan above before its moment exists: its life begins at its first read here.
                if (variable(v).loaded && variable(v).loop == stage && life(v).first <= entry) life(v).first = now();
                life(v).last = std::max(life(v).last, now());
            });
            if (states.contains(s.target)) continue;
            if (!defined_here(s.target, stage) || !reads_itself(s)) current_[s.target] = add_computed(s.target, stage);
            const int target = current_[s.target];
            life(target).last = now();
            variable(target).stored |= is_output(s.target);
        }
        ++step_;
    }

    bool defined_here(ArrayId array, int stage) {
        const auto found = current_.find(array);
        return found != current_.end() && variable(found->second).loop == stage;
    }

    /// Keeps only the moments whose variables are not all alive at another moment that happens as often.
    void drop_contained() {
        const std::vector<Moment>& all = out_.timeline;
        for (std::size_t i = 0; i < all.size(); ++i) {
            const Moment& a = all[i];
            bool contained = false;
            for (std::size_t j = 0; j < all.size() && !contained; ++j) {
                const Moment& b = all[j];
                if (i == j || (b.in_body && !(a.in_body && a.stage == b.stage))) continue;
                const bool inside = std::includes(b.alive.begin(), b.alive.end(), a.alive.begin(), a.alive.end());
                const bool happens_alike = a.in_body == b.in_body;
                contained = inside && (a.alive.size() < b.alive.size() || (happens_alike && i < j) ||
                                       (!happens_alike && a.in_body));
            }
            if (!contained) out_.moments.push_back(a);
        }
    }

    const Diagram& diagram_;
    const Kernel& kernel_;
    const Extents* extents_;          ///< may be null
    std::set<ArrayId> computed_;      ///< what the kernel defines; everything else that it reads is in memory
    std::map<ArrayId, int> current_;  ///< the variable that holds a computed array at this point
    int step_ = 0;
    std::vector<int> step_of_;  ///< by moment
    Liveness out_;
};

}  // namespace

Liveness liveness(const Derived& derived, const Kernel& kernel, const Extents* extents) {
    return Timeline(derived.diagram, kernel, extents).run();
}

std::vector<AxisId> axes_of(const std::vector<Index>& dims) {
    std::set<AxisId> axes;
    for (const Index& d : dims)
        for (const AxisId axis : d.axes()) axes.insert(axis);
    return {axes.begin(), axes.end()};
}

bool is_among(const std::vector<int>& ids, int id) { return contains(ids, id); }

}  // namespace napkin
