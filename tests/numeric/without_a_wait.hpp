#pragma once
// A kernel in blocks with each of its barriers and waits taken out in turn: what the clocks have to find.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "lower/lower.hpp"
#include "lower/prove.hpp"

namespace napkin {

/// The first fault of its warps in words; empty: there is none.
inline std::string race_text(const ScheduledKernel& kernel) { return lower::fault_of(lower::with_statements(kernel)); }

/// Expects a fault without any one of the kernel program's synchronizing statements. Returns how many there are.
inline int expect_each_wait_needed(const ScheduledKernel& kernel, const std::string& about) {
    const lower::KernelProgram program = lower::with_statements(kernel);
    const std::vector<lower::Deletion> all = lower::deletions(program);
    for (const lower::Deletion& deletion : all)
        EXPECT_NE(deletion.fault, "") << to_string(program, *deletion.statement) << "\n" << about;
    return static_cast<int>(all.size());
}

/// Its own statements, then those of every loop.
inline std::vector<std::vector<Node>*> lists_of(ScheduledKernel& kernel) {
    std::vector<std::vector<Node>*> out{&kernel.body};
    for (ScheduledLoop& l : kernel.loops) out.insert(out.end(), {&l.prologue, &l.body, &l.epilogue});
    return out;
}

/// Calls f with what was taken out and with the kernel that lacks it; how many times.
template <class F>
int each_without_a_wait(const ScheduledKernel& kernel, F f) {
    int taken = 0;
    const auto without = [&](const std::string& what, auto&& take_out) {
        ScheduledKernel changed = kernel;
        if (take_out(changed)) ++taken, f(what, changed);
    };
    for (const StepId s : kernel.steps.ids()) {
        const std::string name = fmt::format("{} of step {}", kernel.variable(variable_of(kernel.steps[s])).name, s);
        for (const auto& [flag, said] : {std::pair{&Step::waits, "wait for the copy"},
                                         {&Step::acquires, "wait for room"},
                                         {&Step::synchronizes, "barrier before"},
                                         {&Step::synchronizes_inside, "barrier inside"},
                                         {&Step::fences_proxy, "fence behind boxes"}})
            without(fmt::format("{} {}", said, name),
                    [&, flag = flag](ScheduledKernel& k) { return std::exchange(k.steps[s].*flag, false); });
    }
    for (const StepId s : kernel.steps.ids())
        without("wait for boxes", [&](ScheduledKernel& k) { return std::exchange(k.steps[s].staging_behind, -1) >= 0; });
    without("wait for all boxes", [&](ScheduledKernel& k) { return std::exchange(k.waits_for_staging, false); });
    for (const auto& [flag, said] :
         {std::pair{&ScheduledKernel::syncs_cluster_before, "wait for the cluster's barriers"},
          {&ScheduledKernel::syncs_cluster_after, "wait for the cluster's end"}})
        without(said, [&, flag = flag](ScheduledKernel& k) { return std::exchange(k.*flag, false); });
    for (const LoopId l : kernel.loops.ids())
        for (const auto flag : {&ScheduledLoop::synchronizes_before, &ScheduledLoop::synchronizes})
            without(fmt::format("barrier of loop {}", l),
                    [&](ScheduledKernel& k) { return std::exchange(k.loops[l].*flag, false); });
    ScheduledKernel read = kernel;
    for (std::size_t l = 0; l < lists_of(read).size(); ++l)
        for (std::size_t n = 0; n < lists_of(read)[l]->size(); ++n) {
            const auto* settle = std::get_if<WaitGroup>(&(*lists_of(read)[l])[n]);
            if (!settle) continue;
            const auto in = [&](ScheduledKernel& k) -> WaitGroup& { return std::get<WaitGroup>((*lists_of(k)[l])[n]); };
            without("wait for products", [&](ScheduledKernel& k) { return settle->pending >= 0 && ++in(k).pending > 0; });
            for (std::size_t f_ = 0; f_ < settle->frees.size(); ++f_)
                without(fmt::format("word that {} is free", kernel.variable(settle->frees[f_].operand).name),
                        [&](ScheduledKernel& k) {
                            in(k).frees.erase(in(k).frees.begin() + static_cast<std::ptrdiff_t>(f_));
                            return true;
                        });
        }
    return taken;
}

}  // namespace napkin
