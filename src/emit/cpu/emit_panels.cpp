// Merges neighbouring compute statements that carry the vector axis into runs: one panel of the axis goes through all of them before
// the next one starts, so that what they hand to each other stays in the nearest cache.
#include <algorithm>
#include <set>

#include "emit/cpu/emit_frame.hpp"

namespace napkin::cpu {
namespace {
class PanelForming {
public:
    explicit PanelForming(Frame& frame) : frame_(frame) {
        for (const ArrayId a : frame.outputs)
            if (contains(frame.inputs, a)) stored_and_loaded_.insert(a);
    }

    std::vector<Node> run(const std::vector<Node>& nodes) {
        std::vector<Node> out;
        std::vector<Node> before, after;
        Panels panels;
        const auto close = [&] {
            out.insert(out.end(), before.begin(), before.end());
            if (panels.steps.size() == 1 && frame_.steps[static_cast<std::size_t>(panels.steps[0])].nest.vector_last) {
                out.emplace_back(panels.steps[0]);  // it hands nothing to another
            } else if (!panels.steps.empty()) {
                for (const int s : panels.steps) frame_.steps[static_cast<std::size_t>(s)].nest.vector_last = false;
                out.emplace_back(panels);
            }
            out.insert(out.end(), after.begin(), after.end());
            before.clear(), after.clear();
            panels.steps.clear();
            members_.clear();
        };
        for (const Node& node : nodes) {
            if (const auto* loop = std::get_if<std::shared_ptr<LoopNode>>(&node)) {
                close();
                (*loop)->body = run((*loop)->body);
                out.push_back(node);
                continue;
            }
            const int index = std::get<int>(node);
            const Step& step = frame_.steps[static_cast<std::size_t>(index)];
            const bool open = !panels.steps.empty();
            if (const auto* load = std::get_if<Load>(step.statement)) {
                // The run has not touched the variable, and what it loads is not written here: it may come first.
                if (open && stored_and_loaded_.contains(frame_.variable(load->variable).array)) close();
                if (open)
                    before.push_back(node);
                else
                    out.push_back(node);
            } else if (const auto* store = std::get_if<Store>(step.statement)) {
                if (open && !stored_and_loaded_.contains(frame_.variable(store->variable).array))
                    after.push_back(node), stored_.insert(store->variable);
                else
                    close(), out.push_back(node);
            } else if (const auto* compute = std::get_if<Compute>(step.statement)) {
                if (is_panel_step(step)) {
                    if (open && (!may_join(*compute) || stored_.contains(compute->variable))) close();
                    panels.steps.push_back(index);
                    members_.push_back(compute);
                } else if (open && independent(*compute)) {
                    before.push_back(node);
                } else {
                    close();
                    out.push_back(node);
                }
            } else {
                close();
                out.push_back(node);
            }
            if (panels.steps.empty()) stored_.clear();
        }
        close();
        stored_.clear();
        return out;
    }

private:
    [[nodiscard]] bool is_panel_step(const Step& step) const {
        return frame_.vector_axis >= 0 && step.nest.vector_axis == frame_.vector_axis && !step.nest.vector_reduces;
    }

    /// Reads each element in the panel in which it is computed.
    [[nodiscard]] bool reads_in_panel(const Read& r) const {
        const Variable& v = frame_.variable(r.array);
        for (std::size_t d = 0; d < r.indices.size(); ++d)
            if (v.dims[d].depends_on(frame_.vector_axis)
                    ? !(r.indices[d].is_axis(frame_.vector_axis) && v.dims[d] == r.indices[d])
                    : r.indices[d].depends_on(frame_.vector_axis))
                return false;
        return true;
    }

    [[nodiscard]] bool may_join(const Compute& compute) const {
        for (const Read* r : reads_of(compute))
            for (const Compute* m : members_)
                if (m->variable == r->array && !reads_in_panel(*r)) return false;
        for (const Compute* m : members_)
            for (const Read* r : reads_of(*m))
                if (r->array == compute.variable && !reads_in_panel(*r)) return false;
        return true;
    }

    [[nodiscard]] bool independent(const Compute& compute) const {
        for (const Compute* m : members_) {
            if (m->variable == compute.variable) return false;
            for (const Read* r : reads_of(*m))
                if (r->array == compute.variable) return false;
            for (const Read* r : reads_of(compute))
                if (r->array == m->variable) return false;
        }
        return true;
    }

    Frame& frame_;
    std::set<ArrayId> stored_and_loaded_;
    std::vector<const Compute*> members_;
    std::set<VariableId> stored_;  ///< by the open run, after it
};

/// Collects for every variable the runs that touch it; -1 stands for everything outside of runs.
class PanelUses {
public:
    explicit PanelUses(const Frame& frame)
        : frame_(frame), runs_(frame.layouts.size()), early_(frame.layouts.size(), false) {
        walk(frame.body);
    }
    [[nodiscard]] bool local(std::size_t v) const {
        return runs_[v].size() == 1 && *runs_[v].begin() >= 0 && !early_[v];
    }

private:
    void walk(const std::vector<Node>& nodes) {
        for (const Node& node : nodes) {
            if (const auto* loop = std::get_if<std::shared_ptr<LoopNode>>(&node)) walk((*loop)->body);
            if (const int* step = std::get_if<int>(&node)) touch(*step, -1);
            if (const auto* panels = std::get_if<Panels>(&node)) {
                std::set<VariableId> defined;
                for (const int s : panels->steps) {
                    const auto& compute = std::get<Compute>(*frame_.steps[static_cast<std::size_t>(s)].statement);
                    for (const Read* r : reads_of(compute))
                        if (!defined.contains(r->array)) early_[static_cast<std::size_t>(r->array)] = true;
                    defined.insert(compute.variable);
                    touch(s, next_run_);
                }
                ++next_run_;
            }
        }
    }

    void touch(int step, int run) {
        const TileStatement& s = *frame_.steps[static_cast<std::size_t>(step)].statement;
        const auto use = [&](VariableId v) { runs_[static_cast<std::size_t>(v)].insert(run); };
        if (const auto* load = std::get_if<Load>(&s)) use(load->variable);
        if (const auto* store = std::get_if<Store>(&s)) use(store->variable);
        if (const auto* init = std::get_if<Init>(&s)) use(init->variable);
        if (const auto* compute = std::get_if<Compute>(&s)) {
            use(compute->variable);
            for (const Read* r : reads_of(*compute)) use(r->array);
        }
    }

    const Frame& frame_;
    std::vector<std::set<int>> runs_;
    std::vector<bool> early_;  ///< read before the run defines it
    int next_run_ = 0;
};

}  // namespace

void form_panels(Frame& frame) {
    frame.body = PanelForming(frame).run(frame.body);
    if (frame.vector_axis < 0) return;
    const PanelUses uses(frame);
    for (std::size_t v = 0; v < frame.layouts.size(); ++v) frame.layouts[v].panel_local = uses.local(v);
}

}  // namespace napkin::cpu
