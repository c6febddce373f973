// Fuses neighbouring compute statements that carry the kernel's vector axis and may run together. One panel of the axis
// goes through all of them before the next one starts, so that what they hand to each other stays in the nearest cache.
//
// Also fuses reductions into the loops of the statement before them: over the rows that it computes, of the values that
// it has just computed. The tile is then not read again, and rows that are reduced one by one hide each other's
// latency.
#include <set>

#include "plan/complete.hpp"
#include "schedule/legality.hpp"
#include "support/ranges.hpp"

namespace napkin {
namespace {

class FusionForming {
public:
    explicit FusionForming(ScheduledKernel& kernel) : kernel_(kernel) {
        for (const ArrayId a : kernel.outputs)
            if (contains(kernel.inputs, a)) stored_and_loaded_.insert(a);
        for (const Atom& a : kernel.schedule.atoms)
            if (a.by_user && a.run >= 0) by_user_.insert(a.run);
    }

    void list(const std::vector<Node>& nodes) {
        for (const Node& node : nodes) {
            if (const StepId* index = std::get_if<StepId>(&node))
                step(*index);
            else
                close();
        }
        close();
    }

private:
    Atom& atom(StepId step) { return kernel_.schedule.atoms[kernel_.step(step).atom]; }

    /// The fusion that an override puts the statement into; -1: none.
    int by_user(StepId step) { return atom(step).by_user ? atom(step).run : -1; }

    void close() {
        // A single statement that goes along the rows of its operands hands nothing to another.
        const bool alone = members_.size() == 1 && atom(members_[0]).vector_inner && open_by_user_ < 0;
        while (by_user_.contains(next_run_)) ++next_run_;
        const int run = alone ? -1 : open_by_user_ >= 0 ? open_by_user_ : next_run_;
        for (const StepId m : members_)
            if (!atom(m).by_user) atom(m).run = run, atom(m).vector_inner = alone;
        if (!members_.empty() && run == next_run_) ++next_run_;
        members_.clear();
        stored_.clear();
        open_by_user_ = -1;
    }

    void step(StepId index) {
        const Step& step = kernel_.step(index);
        const bool open = !members_.empty();
        if (const auto* load = std::get_if<Load>(step.statement)) {
            // The open fusion does not touch the variable, and nothing here writes what it loads: the load may come
            // first.
            if (open && stored_and_loaded_.contains(kernel_.variable(load->variable).array)) close();
        } else if (const auto* store = std::get_if<Store>(step.statement)) {
            if (open && !stored_and_loaded_.contains(kernel_.variable(store->variable).array))
                stored_.insert(store->variable);
            else
                close();
        } else if (const auto* compute = std::get_if<Compute>(step.statement)) {
            const Atom& a = atom(index);
            // A statement that an override leaves in no fusion stays by itself.
            const int said = by_user(index);
            if (kernel_.schedule.vector_axis >= 0 && a.vector_axis == kernel_.schedule.vector_axis && !a.across &&
                !(a.by_user && said < 0)) {
                const bool is_other = said >= 0 && open_by_user_ >= 0 && said != open_by_user_;
                if (open && (is_other || !may_join(kernel_, members_, step) || stored_.contains(compute->variable)))
                    close();
                if (said >= 0) open_by_user_ = said;
                members_.push_back(index);
            } else if (open && !is_independent(kernel_, members_, step)) {
                close();
            }
        } else {
            close();
        }
    }

    ScheduledKernel& kernel_;
    std::set<ArrayId> stored_and_loaded_;
    std::vector<StepId> members_;
    std::set<VariableId> stored_;  ///< variables that are stored after the open fusion
    std::set<int> by_user_;        ///< fusions that an override names
    int open_by_user_ = -1;        ///< the one of them that is open
    int next_run_ = 0;
};

}  // namespace

void form_fusions(ScheduledKernel& kernel) {
    FusionForming forming(kernel);
    forming.list(kernel.body);
    for (const ScheduledLoop& loop : kernel.loops) forming.list(loop.body);
}

void fuse_reductions(ScheduledKernel& kernel) {
    // In one fusion the steps follow in the order in which they stand.
    const Step* leader = nullptr;
    for (const Step& step : kernel.steps) {
        if (step.atom < 0 || kernel.atom(step).run < 0) continue;
        Atom& atom = kernel.schedule.atoms[step.atom];
        if (leader && !atom.by_user && may_fuse_reduction(kernel, *leader, step)) {
            // The reduced axis becomes the innermost loop over points, unless an override sets that loop.
            Atom& leading = kernel.schedule.atoms[leader->atom];
            auto& points = leading.points;
            const auto at = find(points, std::get<Compute>(*step.statement).reduce_axes.front());
            atom.follows = at == points.end() || at + 1 == points.end() || !leading.by_user;
            if (atom.follows && at != points.end()) std::rotate(at, at + 1, points.end());
        }
        leader = &step;
    }
}

}  // namespace napkin
