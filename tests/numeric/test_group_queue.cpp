// Kernels whose blocks take groups from a queue, run on the CPU against their definition, one launch after the other.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <stdexcept>

#include "numeric/planned_on_cpu.hpp"

namespace napkin::test_group_queue {
namespace {

using cpu_case::Planned;
using cpu_case::Timing;

Planned causal(const std::string& schedule, const std::string& prefix = "k") {
    return cpu_case::planned(
        "f(Q[h, q, k]: bf16, K[h, x, k]: bf16, V[h, x, d]: bf16) -> O[h, q, d]: bf16\n"
        "    S[h, q, x] = sum(k) Q[h, q, k] * K[h, x, k]\n    A[h, q, x] = where(x <= q, S[h, q, x] / k, -inf)\n"
        "    P[h, q, x] = softmax(x) A[h, q, x]\n    O[h, q, d] = sum(x) P[h, q, x] * V[h, x, d]\n"
        "sizes h = 5, q = 200, x = 200, k = 32, d = 16\n",
        schedule, load_machine("h200").value(), prefix);
}
std::string with_threads(int threads) {
    return "mma_m q\nwarps 8\nrole copies 4\nstream x = 16\ngroups queue\nthreads " + std::to_string(threads) + "\n";
}

// Each launch leaves the counter as the next one has to find it.
TEST(GroupQueue, RunsEveryGroupOnceInEveryLaunch) {
    std::vector<Planned> all;
    for (const int threads : {1, 2, 3, 9})
        all.push_back(causal(with_threads(threads), "k" + std::to_string(threads) + "_"));
    const auto module = cpu_case::compiled_for_cpu(cpu_case::in_one_source(all));
    const cpu_case::Reference reference = reference_of(all.front());
    for (const Planned& p : all) {
        EXPECT_TRUE(p.source.entries.front().keeps_scratch);
        EXPECT_GT(p.source.entries.front().groups, p.source.entries.front().blocks);
        for (const bool late : {false, true, false}) {
            Timing timing;
            timing.copies_late = timing.results_late = timing.backwards = late;
            EXPECT_EQ(fault_of(p, reference, *module, timing), "") << p.source.entries.front().blocks << " blocks";
        }
    }
}

/// What is wrong with a first launch and with a second one, once `a` is `b` in the kernel.
std::pair<std::string, std::string> faults_with(Planned p, const std::string& a, const std::string& b) {
    const std::size_t at = p.source.text.find(a);
    if (at == std::string::npos) throw std::runtime_error("nothing to replace: " + a);
    p.source.text.replace(at, a.size(), b);
    const cpu_case::Reference reference = reference_of(p);
    const auto module = cpu_case::compiled_for_cpu(p.source);
    const std::string first = fault_of(p, reference, *module, {});
    return {first, fault_of(p, reference, *module, {})};
}

// A counter that is left where it was ends the next launch at once; a number that is read without a wait is another
// group's.
TEST(GroupQueue, ItsFaultsAreSeen) {
    const Planned p = causal(with_threads(2));
    EXPECT_EQ(faults_with(p, "has_asked_ = false;\n        for", "has_asked_ = false;\n        for"),
              std::pair(std::string(), std::string()));
    Planned unending = p;
    for (std::size_t at = 0; (at = unending.source.text.find("scratch + 0, 10)", at)) != std::string::npos; ++at)
        unending.source.text.replace(at, 16, "scratch + 0, 1000)");
    const auto [first, second] = faults_with(unending, "scratch + 0, 1000)", "scratch + 0, 1000)");
    EXPECT_EQ(first, "");
    EXPECT_NE(second, "");
    EXPECT_NE(faults_with(p, "group = pop_tile(queue, queue_iteration_)", "group = group + 2").first, "");
}

}  // namespace
}  // namespace napkin::test_group_queue
