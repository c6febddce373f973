// Products of 8-bit integers: which plans have them on the tensor cores, and what their kernel programs compute.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "diagram/evaluate.hpp"
#include "lower/interpret.hpp"
#include "lower/lower.hpp"
#include "machine/machine.hpp"
#include "plan/choose.hpp"
#include "plan/misses.hpp"
#include "schedule/fragments.hpp"
#include "support/integer_products.hpp"
#include "support/parsed.hpp"
#include "support/ranges.hpp"

namespace napkin::test_integer_products {
namespace {

struct Planned {
    Planned(const std::string& text, const char* machine, const std::string& schedule = "")
        : diagram(parsed(text)), extents(bind_sizes(diagram, {}).value()) {
        PlanOptions options;
        if (!schedule.empty()) options.file = std::make_shared<const Source>(Source{"a.schedule", schedule});
        plan = choose_plan(derived_from(text), extents, load_machine(machine).value(), {}, options).value();
    }
    Diagram diagram;
    Extents extents;
    Plan plan;
};

/// Types whose products the plan has on tensor cores.
std::vector<DType> multiplied(const Plan& plan) {
    std::vector<DType> out;
    for (const KernelPlan& kernel : plan.kernels)
        for (const Step& step : kernel.scheduled.steps)
            if (step.atom >= 0 && kernel.scheduled.atom(step).kind == AtomKind::mma)
                out.push_back(mma_product(kernel.scheduled, step)->type);
    return out;
}

const std::string scaled = "{} * s[m] * S[n] + b[n]", scales = ", s[m], S[n], b[n]: bf16", large = "m = n = k = 4096";

// ---- plans

TEST(IntegerProducts, RunOnTensorCores) {
    for (const char* machine : {"h200", "a100-sxm-80gb", "rtx-4090"})
        for (const char* result : {"i32", "i64", "f32", "bf16", "i8"}) {
            SCOPED_TRACE(fmt::format("{} on {}", result, machine));
            EXPECT_EQ(multiplied(Planned(integer_product("i8", result, "{}", large), machine).plan), std::vector{DType::i8});
        }
    const Planned p(integer_product("i8", "bf16", scaled, large, scales), "h200");
    EXPECT_EQ(multiplied(p.plan), std::vector{DType::i8});
    EXPECT_LT(p.plan.seconds(), 110e-6) << "as fast as e4m3";
    EXPECT_EQ(multiplied(Planned(integer_product("u8", "f16", "({} - z[m] * C[n]) * S[n]", large,
                                                 ", z[m]: i32, C[n]: i32, S[n]"),
                                 "h200")
                             .plan),
              std::vector{DType::u8});
}

// A cast to i32 changes nothing of what is computed in 32 bits.
TEST(IntegerProducts, MayBeWrittenWithCasts) {
    const std::string text =
        "f(X[m, k]: i8, W[n, k]: i8) -> Y[m, n]: i32\n    Y[m, n] = sum(k) i32(X[m, k]) * i32(W[n, k])\nsizes " + large;
    EXPECT_EQ(multiplied(Planned(text, "h200").plan), std::vector{DType::i8});
}

// 131,071 products of -128 and -128 fit into 32 bits, and 131,072 do not.
TEST(IntegerProducts, StayWhereTheirSumsFit) {
    const auto in = [](const char* type, const char* result, std::int64_t k) {
        return Planned(integer_product(type, result, "{}", fmt::format("m = n = 256, k = {}", k)), "h200");
    };
    EXPECT_EQ(multiplied(in("i8", "f32", 131056).plan), std::vector{DType::i8});
    const Planned too_long = in("i8", "f32", 131072);
    EXPECT_TRUE(multiplied(too_long.plan).empty());
    std::vector<std::string> told;
    for (const Miss& miss : misses(too_long.plan.kernels.front())) told.push_back(to_string(miss));
    EXPECT_THAT(told, testing::Contains(testing::HasSubstr("sums of 131072 products of X and W may pass 32 bits")));
    EXPECT_TRUE(multiplied(in("i8", "i64", 131072).plan).empty());
    EXPECT_EQ(multiplied(in("i8", "i32", 131072).plan), std::vector{DType::i8}) << "an i32 array wraps";
    EXPECT_EQ(multiplied(in("u8", "f32", 33008).plan), std::vector{DType::u8});
    EXPECT_TRUE(multiplied(in("u8", "f32", 33040).plan).empty()) << "255 * 255 * 33040 passes 2^31";
}

// Signed and unsigned integers of 8 bits are multiplied with each other, and so are the two types of real numbers.
// Integers that are multiplied as bf16, or in other widths, are left as they were.
TEST(IntegerProducts, AreOfTypesThatGoTogether) {
    const auto of = [](const char* x, const char* w) {
        return Planned(
                   fmt::format("f(X[m, k]: {}, W[n, k]: {}) -> Y[m, n]: f32\n    Y[m, n] = sum(k) X[m, k] * W[n, k]\n"
                               "sizes m = n = k = 512\n",
                               x, w),
                   "h200")
            .plan;
    };
    for (const auto& [x, w] : {std::pair("u8", "i8"), {"i8", "u8"}, {"e4m3", "e5m2"}, {"e5m2", "e4m3"}})
        EXPECT_EQ(multiplied(of(x, w)), std::vector{*dtype_from_name(w)}) << x;
    EXPECT_TRUE(multiplied(of("i16", "i16")).empty());
    EXPECT_TRUE(multiplied(of("i8", "i16")).empty());
    EXPECT_EQ(multiplied(of("bf16", "i8")), std::vector{DType::bf16});
}

// ---- kernel programs

/// Interprets all kernels, lane by lane. Returns what is wrong with the result; empty: nothing.
std::string fault_of(const Planned& p, lower::Completion completion, Values given) {
    const SizedProgram tiles = p.plan.tiles();
    Values memory(tiles.diagram.arrays.size());
    for (const ArrayId a : tiles.diagram.inputs) memory[a] = given[*p.diagram.find_array(tiles.diagram.array(a).name)];
    for (const lower::KernelProgram& kernel : lower::lowered(p.plan.program()).kernels)
        if (const auto moved = lower::interpret(kernel, memory, completion); !moved)
            return moved.errors().front().message;
    evaluate(p.diagram, p.extents, given);
    const ArrayId output = tiles.diagram.outputs.front();
    const DType type = tiles.diagram.array(output).type;
    const Column &want = given[p.diagram.outputs.front()], &got = memory[output];
    double largest = 0;
    for (const double x : want) largest = std::max(largest, std::abs(x));
    for (std::size_t i = 0; i < want.size(); ++i)
        if (!(std::abs(want[i] - got[i]) <= epsilon(type) * largest))
            return fmt::format("{} in place of {} at {}", got[i], want[i], i);
    return "";
}

void expect_exact(const std::string& text, const std::string& schedule, const char* machine = "h200",
                  Values (*inputs)(const Diagram&, const Extents&) = inputs_of_full_range) {
    SCOPED_TRACE(text + schedule + machine);
    const Planned p(text, machine, schedule);
    EXPECT_FALSE(multiplied(p.plan).empty());
    for (const lower::Completion completion : {lower::Completion::early, lower::Completion::late})
        EXPECT_EQ(fault_of(p, completion, inputs(p.diagram, p.extents)), "");
}

const std::string role = "mma_m m\nwarps 4\nrole copies 4\nthreads 2\n";

TEST(IntegerProducts, AreExactInEveryLane) {
    for (const char* result : {"i32", "i64", "f32", "bf16", "i8"})
        expect_exact(integer_product("i8", result, "{}", "m = 200, n = 72, k = 304"),
                     role + "stream k = 64\ngroup n = 40\n");
    for (const char* sizes : {"m = 72, n = 40, k = 144", "m = 64, n = 136, k = 2064", "m = 33, n = 17, k = 1100"})
        expect_exact(integer_product("i8", "f32", scaled, sizes, scales), "kernel Y\n" + role + "stream k = 128\n");
    for (const char* type : {"i8", "u8"})
        expect_exact(integer_product(type, "i32", "{} + B[n]", "m = 72, n = 40, k = 176", ", B[n]: i32"),
                     "mma_m m\nwarps 2\nstream k = 32\n", "a100-sxm-80gb");
}

TEST(IntegerProducts, AreExactInParts) {
    for (const char* result : {"i32", "f32"})
        expect_exact(integer_product("i8", result, "{}", "m = 300, n = 96, k = 400"),
                     "mma_m m\nwarps 4\nrole copies 4\nstream k = 32\ngroup n = 48\nscheduler stream_k\nthreads 4\n");
}

TEST(IntegerProducts, WrapIn32Bits) {
    expect_exact(integer_product("u8", "i32", "{}", "m = 8, n = 8, k = 33072"), role + "stream k = 256\n", "h200",
                 largest_inputs);
}

}  // namespace
}  // namespace napkin::test_integer_products
