// Kernels that leave out chunks by what a pass before them finds among the data, run on the CPU against their
// definition.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <functional>
#include <map>
#include <stdexcept>

#include "numeric/planned_on_cpu.hpp"
#include "schedule/k_block_ranges.hpp"
#include "support/ids.hpp"

namespace napkin::test_chunk_ranges {
namespace {

using cpu_case::Planned;

constexpr const char* eight_warps = "mma_m q\nwarps 8\nrole copies 4\nstream x = 16\nthreads 2\n";
constexpr const char* four_warps = "mma_m q\nwarps 4\nstream x = 16\nthreads 1\n";

/// Attention whose logits a mask leaves, or -inf.
Planned masked_by(const std::string& mask, const std::string& inputs, const std::string& sizes,
                  const std::string& schedule, const std::string& prefix) {
    return cpu_case::planned(
        fmt::format(
            "f(Q[h, q, k]: bf16, K[h, x, k]: bf16, V[h, x, d]: bf16, {1}) -> O[h, q, d]: bf16\n"
            "    S[h, q, x] = sum(k) Q[h, q, k] * K[h, x, k]\n    A[h, q, x] = where({0}, S[h, q, x] / k, -inf)\n"
            "    P[h, q, x] = softmax(x) A[h, q, x]\n    O[h, q, d] = sum(x) P[h, q, x] * V[h, x, d]\n"
            "sizes {2}, k = 32, d = 16\n",
            mask, inputs, sizes),
        schedule, load_machine("h200").value(), prefix);
}

/// Inputs of the probe, with numbers of the array by their place.
Values given_with(const Planned& p, const std::map<std::string, std::function<double(std::int64_t)>>& arrays) {
    Values given = probe_inputs(p.diagram, p.extents, Probe::normal, 1);
    for (const auto& [name, value] : arrays) {
        auto& column = given[*p.diagram.find_array(name)];
        for (std::size_t i = 0; i < column.size(); ++i)
            if (const double v = value(static_cast<std::int64_t>(i)); column.is_whole())
                column.wholes()[i] = static_cast<std::int64_t>(v);
            else
                column.reals()[i] = v;
    }
    return given;
}

struct Subject {
    const char *name, *mask, *inputs, *sizes;
    std::vector<std::map<std::string, std::function<double(std::int64_t)>>> data;
};

const std::vector<Subject> subjects = {
    {"documents",
     "D[q] == E[x]",
     "D[q]: i32, E[x]: i32",
     "h = 2, q = 200, x = 120",
     {
         {{"D", [](auto i) { return i / 40; }}, {"E", [](auto i) { return i / 24; }}},
         {{"D", [](auto) { return 1; }}, {"E", [](auto) { return 1; }}},                   // nothing is masked
         {{"D", [](auto) { return 1; }}, {"E", [](auto i) { return i == 77 ? 1 : -5; }}},  // one key for all
         {{"D", [](auto i) { return i % 3; }}, {"E", [](auto i) { return i * 7 % 5; }}},   // in no order
         // rows without keys, falling
         {{"D", [](auto i) { return i / 64; }}, {"E", [](auto i) { return 2 - i / 48; }}},
     }},
    {"documents of 64 bits",
     "x <= q and D[h, q] == E[h, x]",
     "D[h, q]: i64, E[h, x]: i64",
     "h = 2, q = 136, x = 136",
     {
         {{"D", [](auto i) { return i / 30; }}, {"E", [](auto i) { return i / 30; }}},
         // Past the numbers of which extrema are known.
         {{"D", [](auto i) { return -0x1p60 * (1 + i / 50); }}, {"E", [](auto i) { return -0x1p60 * (1 + i / 50); }}},
     }},
    {"lengths",
     "x < L[h]",
     "L[h]: i32",
     "h = 5, q = 72, x = 88",
     {
         {{"L", [](auto i) { return std::array<int, 5>{88, 1, 33, 1000, 0}[static_cast<std::size_t>(i)]; }}},
         {{"L", [](auto) { return -3; }}},
     }},
    {"windows",
     "B[q] <= x and x < B[q] + 20 and x <= E[q]",
     "B[q]: i32, E[q]: i64",
     "h = 1, q = 130, x = 140",
     {
         {{"B", [](auto i) { return i - 10; }}, {"E", [](auto i) { return i + 4; }}},
     }},
    {"blocks",
     "M[q, x] > 0",
     "M[q, x]: i32",
     "h = 2, q = 150, x = 90",
     {
         {{"M", [](auto i) { return (i / 90 / 32 + i % 90 / 32) % 2; }}},
         {{"M", [](auto i) { return i / 90 % 7 == 3 || i % 90 == 5 ? 1 : 0; }}},
         {{"M", [](auto i) { return i % 90 / 16 == 2 ? 1 : 0; }}},
     }},
    {"bottom right", "x - size(x) <= q - size(q)", "D[q]: i32", "h = 1, q = 72, x = 120", {{}}},
};

TEST(KBlockRanges, LeaveOutNothingThatCounts) {
    std::vector<Planned> all;
    for (const Subject& s : subjects)
        for (const char* schedule : {eight_warps, four_warps})
            all.push_back(masked_by(s.mask, s.inputs, s.sizes, schedule, fmt::format("k{}_", all.size())));
    const auto module = cpu_case::compiled_for_cpu(cpu_case::in_one_source(all));
    for (std::size_t i = 0; i < all.size(); ++i) {
        const Subject& s = subjects[i / 2];
        EXPECT_EQ(all[i].source.entries.front().before.has_value(), s.name != std::string("bottom right")) << s.name;
        for (const auto& data : s.data) {
            const cpu_case::Reference reference = reference_of(all[i], given_with(all[i], data));
            EXPECT_EQ(fault_early_or_late(all[i], reference, *module), "")
                << s.name << " by " << (i % 2 == 0 ? "eight" : "four") << " warps";
        }
    }
}

/// What is wrong once `a` is `b` wherever it stands in the kernels.
std::string fault_with(Planned p, const cpu_case::Reference& reference, const std::string& a, const std::string& b) {
    std::size_t at = p.source.text.find(a);
    if (at == std::string::npos) throw std::runtime_error("nothing to replace: " + a);
    for (; at != std::string::npos; at = p.source.text.find(a, at + b.size())) p.source.text.replace(at, a.size(), b);
    return fault_of(p, reference, *cpu_case::compiled_for_cpu(p.source), {});
}

// The ranges matter: where one chunk fewer is said to contribute, or one more to be whole, results are wrong.
TEST(KBlockRanges, AreWhatTheKernelRuns) {
    const Subject& documents = subjects[0];
    const Planned p = masked_by(documents.mask, documents.inputs, documents.sizes, eight_warps, "k");
    const cpu_case::Reference reference = reference_of(p, given_with(p, documents.data[0]));
    EXPECT_EQ(fault_with(p, reference, "x0_own_range_.last", "x0_own_range_.last"), "");
    EXPECT_NE(fault_with(p, reference, "x0_own_range_.last", "x0_own_range_.last - 16"), "");
    EXPECT_NE(fault_with(p, reference, "x0_own_range_.first", "x0_own_range_.first + 16"), "");
    EXPECT_NE(fault_with(p, reference, "x0_own_range_.whole_last", "120"), "");
}

// Numbers past those of which extrema are known are told apart one by one.
TEST(KBlockRanges, SayNothingOfNumbersTooLarge) {
    const Subject& large = subjects[1];
    const Planned p = masked_by(large.mask, large.inputs, large.sizes, eight_warps, "k");
    const cpu_case::Reference reference = reference_of(p, given_with(p, large.data[1]));
    EXPECT_EQ(fault_with(p, reference, ".is_exact()", ".is_exact()"), "");
    EXPECT_NE(fault_with(p, reference, ".is_exact()", ".least < (1ll << 62)"), "");
}

// A slope that is computed, with distances along columns, leaves its mask's bounds as they are.
TEST(KBlockRanges, SlopesLeaveTheMaskItsBounds) {
    const Planned p = cpu_case::planned(
        "f(Q[h, q, k]: bf16, K[h, x, k]: bf16, V[h, x, d]: bf16) -> O[h, q, d]: bf16\n"
        "    S[h, q, x] = sum(k) Q[h, q, k] * K[h, x, k]\n"
        "    A[h, q, x] = where(x <= q, S[h, q, x] / k - 2^(-8 * (h + 1) / size(h)) * (q - x), -inf)\n"
        "    P[h, q, x] = softmax(x) A[h, q, x]\n    O[h, q, d] = sum(x) P[h, q, x] * V[h, x, d]\n"
        "sizes h = 3, q = 136, x = 136, k = 32, d = 16\n",
        eight_warps, load_machine("h200").value(), "k");
    EXPECT_THAT(p.source.text, testing::HasSubstr("x0_last_ = min_index(x0_last_"));
    EXPECT_EQ(fault_of(p, cpu_case::reference_of(p), *cpu_case::compiled_for_cpu(p.source), {}), "");
}

// Bottom-right causal is known once sizes are, and takes no pass.
TEST(KBlockRanges, AreNotOfWhatSizesSay) {
    const Planned p = masked_by("x - size(x) <= q - size(q)", "D[q]: i32", "h = 1, q = 72, x = 120", eight_warps, "k");
    EXPECT_THAT(p.source.text, testing::HasSubstr("x0_last_ = min_index(x0_last_"));
    EXPECT_THAT(p.source.text, testing::Not(testing::HasSubstr("KBlockRange ")));
}

// Numbers that are no integers, and those that another kernel or the same one makes, say nothing beforehand.
TEST(KBlockRanges, AreOfIntegersAmongTheInputs) {
    const Planned p = masked_by("F[q] <= x", "F[q]: f32", "h = 1, q = 72, x = 120", eight_warps, "k");
    EXPECT_FALSE(p.source.entries.front().before);
}

}  // namespace
}  // namespace napkin::test_chunk_ranges
