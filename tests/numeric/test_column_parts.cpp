// Products whose columns are computed in parts, run on the CPU against their definition, and what is refused.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <stdexcept>

#include "numeric/planned_on_cpu.hpp"
#include "schedule/column_parts.hpp"
#include "schedule/fragment_registers.hpp"

namespace napkin::test_column_parts {
namespace {

using cpu_case::Planned;
using cpu_case::Timing;
using testing::HasSubstr;

const std::string head = "mma_m m\nwarps 8\nrole copies 4\n";

/// Blocks of `of` columns share a scale.
std::string scaled(int of, const std::string& sizes) {
    return "f(A[m, block, k]: e4m3, B[n, block, k]: e4m3, sa[m, block], sb[w, block]) -> C[m, n]\n"
           "    P[m, n, block] = sum(k) A[m, block, k] * B[n, block, k]\n"
           "    C[m, n] = sum(block) P[m, n, block] * sb[n // " +
           std::to_string(of) + ", block] * sa[m, block]\nsizes " + sizes + "\n";
}
std::string parts(int n, const std::string& product = "P") {
    return "atom " + product + " matrix, points m n block, over k, parts " + std::to_string(n) + "\n";
}
Planned in_parts(const std::string& text, const std::string& schedule, const std::string& prefix = "k") {
    return cpu_case::planned(text, head + schedule, load_machine("h200").value(), prefix);
}

struct Case {
    const char* name;
    std::string text, schedule;
};
const std::string ragged = "m = 200, n = 208, w = 7, block = 3, k = 64";

// A scale for each part, for two parts, for half a part; columns that end inside of a part, and parts that begin behind
// the end.
std::vector<Case> cases() {
    return {{"a scale a part", scaled(32, ragged), "group n = 64\n" + parts(2)},
            {"a scale for both", scaled(64, "m = 128, n = 128, w = 2, block = 2, k = 64"), "group n = 64\n" + parts(2)},
            {"two scales a part", scaled(16, "m = 130, n = 96, w = 6, block = 3, k = 32"), "group n = 64\n" + parts(2)},
            {"four parts", scaled(32, ragged), "group n = 128\n" + parts(4)},
            {"one block", scaled(32, "m = 130, n = 64, w = 2, block = 1, k = 64"), "group n = 64\n" + parts(2)},
            {"columns along memory",
             "f(A[m, block, k]: bf16, B[block, k, n]: bf16, s[m, block]) -> C[m, n]\n"
             "    P[m, n, block] = sum(k) A[m, block, k] * B[block, k, n]\n    C[m, n] = sum(block) tanh(P[m, n, "
             "block]) * s[m, block]\n"
             "sizes m = 140, n = 136, block = 3, k = 32\n",
             "group n = 128\n" + parts(2)},
            {"two products",
             "f(A[m, block, k]: bf16, B[n, block, k]: bf16, G[n, block, k]: bf16) -> C[m, n]\n"
             "    P[m, n, block] = sum(k) A[m, block, k] * B[n, block, k]\n    R[m, n, block] = sum(k) A[m, block, k] "
             "* G[n, block, k]\n"
             "    C[m, n] = sum(block) P[m, n, block] * exp(-abs(R[m, n, block]))\nsizes m = 150, n = 96, block = 3, k "
             "= 32\n",
             "group n = 32\n" + parts(2) + parts(2, "R")}};
}

TEST(ColumnParts, AreWhatTheDefinitionSays) {
    std::vector<Planned> all;
    for (const Case& c : cases()) all.push_back(in_parts(c.text, c.schedule, "k" + std::to_string(all.size()) + "_"));
    const auto module = cpu_case::compiled_for_cpu(cpu_case::in_one_source(all));
    for (std::size_t i = 0; i < all.size(); ++i) {
        SCOPED_TRACE(cases()[i].name);
        ASSERT_TRUE(all[i].plan.kernels.front().scheduled.column_parts);
        const cpu_case::Reference reference = reference_of(all[i]);
        for (const bool late : {false, true}) {
            Timing timing;
            timing.copies_late = timing.results_late = timing.backwards = late;
            EXPECT_EQ(fault_of(all[i], reference, *module, timing), "");
        }
    }
}

/// What is wrong once `a` is `b` in the kernel of the first case.
std::string fault_with(const std::string& a, const std::string& b, bool late = false) {
    Planned p = in_parts(cases().front().text, cases().front().schedule);
    const std::size_t at = p.source.text.find(a);
    if (at == std::string::npos) throw std::runtime_error("nothing to replace: " + a);
    p.source.text.replace(at, a.size(), b);
    Timing timing;
    timing.copies_late = timing.results_late = late;
    return fault_of(p, reference_of(p), *cpu_case::compiled_for_cpu(p.source), timing);
}

TEST(ColumnParts, TheirFaultsAreSeen) {
    EXPECT_EQ(fault_with("part_ == 1 &&", "part_ == 1 &&", true), "");
    EXPECT_NE(fault_with("+ part_ * 4096", "+ 0 * part_"), "");
    EXPECT_NE(fault_with("C[16 * part_ + ", "C["), "");
    EXPECT_NE(fault_with("min_index(block0 + 2, 2)", "min_index(block0 + 1, 2)"), "");
    // Four turns one after the other: the two sets of values that are under way need no moves.
    EXPECT_EQ(fault_with("NAPKIN_UNROLL_BY(4)", "NAPKIN_UNROLL_BY(4)"), "");
    EXPECT_NE(fault_with("sa_ahead_[0][i_] = sa_ahead_[1][i_]", "sa_ahead_[1][i_] = sa_ahead_[1][i_]"), "");
    EXPECT_NE(fault_with("sb[2 * part_ + r_];", "sb[r_];"), "");
}

// Registers hold a part of what passes, and all of what stays.
TEST(ColumnParts, ArePlannedWhereRegistersDoNotHoldAllColumns) {
    const std::string text = scaled(128, "m = 4096, n = 4096, w = 32, block = 32, k = 128");
    const Planned p = cpu_case::planned(text, "", load_machine("h200").value());
    const ScheduledKernel& k = p.plan.kernels.front().scheduled;
    ASSERT_TRUE(k.column_parts);
    EXPECT_EQ(k.column_parts->parts, 2);
    EXPECT_EQ(k.column_parts->columns, 128);
    EXPECT_EQ(spilled_registers(k), 0);
    EXPECT_EQ(k.column_parts->passing.size(), 1U);
    EXPECT_EQ(2 * fragment_registers(k, k.column_parts->passing.front()),
              fragment_registers(k, variable_of(k.step(k.column_parts->steps.back()))));
    EXPECT_GE(p.plan.kernels.front().time.seconds, p.plan.kernels.front().time.busy.front().seconds);
}

/// Why the schedule is refused.
std::string refusal(const std::string& text, const std::string& schedule) {
    try {
        in_parts(text, schedule);
    } catch (const std::runtime_error& e) {
        return e.what();
    }
    return "";
}

TEST(ColumnParts, ThatCannotBeAreRefused) {
    EXPECT_THAT(refusal(cases()[0].text, "group n = 64\n" + parts(3)),
                HasSubstr("64 columns of P are not 3 parts of whole 16"));
    EXPECT_THAT(refusal(cases()[5].text, "group n = 64\n" + parts(2)),
                HasSubstr("the operand of P has no parts of 32 columns"));
    EXPECT_THAT(refusal(cases()[6].text, "group n = 32\n" + parts(2) + parts(1, "R")),
                HasSubstr("R has 1 parts of columns, where the loop's products, and they alone, have 2"));
    const std::string sum =
        "f(A[m, k]: bf16, B[n, k]: bf16) -> C[m, n]\n    C[m, n] = sum(k) A[m, k] * B[n, k]\nsizes m = 128, n = 64, k "
        "= 64\n";
    EXPECT_THAT(refusal(sum, "stream k = 32\ngroup n = 64\natom C matrix, points m n, over k, column_parts 2\n"),
                HasSubstr("C adds to what it holds"));
    EXPECT_THAT(refusal(sum, "stream k = 32\ngroup n = 64\natom C matrix, points m n, over k, column_parts 0\n"),
                HasSubstr("parts"));
}

}  // namespace
}  // namespace napkin::test_column_parts
