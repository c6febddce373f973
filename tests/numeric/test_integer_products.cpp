// Products of 8-bit integers on the tensor cores, run on the CPU against their definition. Sums are exact, and wrap
// where the text says so.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "numeric/planned_on_cpu.hpp"
#include "run/gpu/kernel.hpp"
#include "schedule/stream_k.hpp"
#include "support/integer_products.hpp"
#include "support/ranges.hpp"

namespace napkin::test_integer_products_numbers {
namespace {

using cpu_case::Planned;
using testing::HasSubstr;

struct Subject {
    std::string name, text, schedule;
};

std::vector<Planned> planned(const std::vector<Subject>& subjects, const char* machine) {
    std::vector<Planned> out;
    for (const Subject& s : subjects) {
        out.push_back(cpu_case::planned(s.text, s.schedule, load_machine(machine).value(), fmt::format("k{}_", out.size())));
        EXPECT_TRUE(any_of(out.back().plan.kernels, [](const KernelPlan& k) { return k.scheduled.on_tensor_cores(); }))
            << s.name;
        EXPECT_THAT(out.back().source.text, HasSubstr(".s32.")) << s.name;
    }
    return out;
}

using InputsOf = Values (*)(const Diagram&, const Extents&);

/// Every subject is right with its inputs, with asynchronous work done early or late.
void expect_right(const std::vector<Subject>& subjects, const char* machine, InputsOf inputs_of, int architecture = 900) {
    const std::vector<Planned> all = planned(subjects, machine);
    const auto module = cpu_case::compiled_for_cpu(cpu_case::in_one_source(all), architecture);
    for (std::size_t i = 0; i < all.size(); ++i)
        EXPECT_EQ(fault_early_or_late(all[i], reference_of(all[i], inputs_of(all[i].diagram, all[i].extents)), *module),
                  "")
            << subjects[i].name << "\n"
            << all[i].source.text;
}

const std::string role = "mma_m m\nwarps 4\nrole copies 4\nthreads 2\n";
const std::string scaled = "{} * s[m] * S[n] + b[n]", scales = ", s[m], S[n], b[n]: bf16",
                  zero_points = "({} - z[m] * C[n]) * S[n]", zeros = ", z[m]: i32, C[n]: i32, S[n]";

std::vector<Subject> results() {
    return {
        {"sums", integer_product("i8", "i32", "{}", "m = 72, n = 40, k = 304"), role + "stream k = 128\n"},
        {"scaled", integer_product("i8", "bf16", scaled, "m = 71, n = 37, k = 1040", scales), role + "stream k = 128\n"},
        {"real", integer_product("i8", "f32", "{}", "m = 136, n = 24, k = 2064"),
         "mma_m m\nwarps 8\nrole copies 4\nstream k = 64\n"},
        {"few terms", integer_product("i8", "f16", scaled, "m = 64, n = 16, k = 48", scales),
         "mma_m m\nwarps 4\nstream k = 32\n"},
        {"long", integer_product("i8", "i64", "{}", "m = 64, n = 16, k = 160"), role + "stream k = 32\n"},
        {"zero points", integer_product("u8", "f32", zero_points, "m = 40, n = 72, k = 336", zeros),
         role + "stream k = 64\ngroup n = 32\n"},
        {"mixed", integer_product("u8, i8", "i32", "{}", "m = 72, n = 40, k = 304"), role + "stream k = 128\n"},
        {"mixed the other way", integer_product("i8, u8", "bf16", scaled, "m = 40, n = 72, k = 176", scales),
         role + "stream k = 32\n"},
        {"bias", integer_product("u8", "i32", "{} + B[n]", "m = 72, n = 40, k = 112", ", B[n]: i32"),
         role + "stream k = 32\n"},
        {"in 8 bits", integer_product("i8", "i8", "i8(round({} * S[n] * 0.01))", "m = 72, n = 40, k = 176", ", S[n]"),
         role + "stream k = 32\n"},
        {"wrapped to 8 bits", integer_product("i8", "u8", "{}", "m = 72, n = 40, k = 176"), role + "stream k = 32\n"}};
}

TEST(IntegerProducts, HaveResultsOfAnyType) { expect_right(results(), "h200", inputs_of_full_range); }

TEST(IntegerProducts, GoThroughWarpsAlone) {
    std::vector<Subject> all = results();
    for (Subject& s : all) s.schedule = "mma_m m\nwarps 2\ngroup n = 16\nstream k = 32\n";
    expect_right(all, "a100-sxm-80gb", inputs_of_full_range, 800);
}

TEST(IntegerProducts, TakeOperandsInAnyOrder) {
    expect_right(
        {{"transposed",
          "f(X[m, k]: i8, W[k, n]: i8) -> Y[m, n]: i32\n    Y[m, n] = sum(k) X[m, k] * W[k, n]\n"
          "sizes m = 64, n = 48, k = 96\n",
          "kernel Y\n" + role + "stream k = 32\n"},
         {"rows of any length", integer_product("i8", "f32", "{}", "m = 40, n = 24, k = 1100"),
          "kernel Y\n" + role + "stream k = 64\n"},
         {"heads summed",
          "f(A[h, m, k]: i8, B[n, h, k]: i8) -> C[m, n]: f32\n    C[m, n] = sum(h, k) A[h, m, k] * B[n, h, k]\n"
          "sizes h = 3, m = 72, n = 80, k = 96\nschedule\n    stream hk\n",
          "mma_m m\nwarps 4\nstream hk = 32\nthreads 1\n"}},
        "h200", inputs_of_full_range);
}

TEST(IntegerProducts, GoIntoOtherStatements) {
    expect_right(
        {{"attention",
          "f(Q[h, q, k]: i8, K[h, x, k]: i8, V[h, x, d]: bf16, s[h, q]) -> O[h, q, d]: bf16\n"
          "    S[h, q, x] = (sum(k) Q[h, q, k] * K[h, x, k]) * s[h, q] * 0.0001\n"
          "    P[h, q, x] = softmax(x) where(x <= q, S[h, q, x], -inf)\n"
          "    O[h, q, d] = sum(x) P[h, q, x] * V[h, x, d]\nsizes h = 3, q = x = 136, k = 32, d = 24\n",
          "mma_m q\nwarps 4\nrole copies 4\nstream x = 16\nthreads 2\n"},
         {"two",
          "f(X[m, k]: i8, W[n, k]: i8, G[n, k]: i8, S[n]) -> Y[m, n]: bf16\n"
          "    Y[m, n] = silu((sum(k) X[m, k] * W[n, k]) * S[n] * 0.001) * (sum(k) X[m, k] * G[n, k])\n"
          "sizes m = 72, n = 40, k = 208\n",
          role + "stream k = 32\n"},
         {"blocks",
          "f(A[m, block, k]: i8, B[n, block, k]: i8, sa[m, block], sb[w, block]) -> C[m, n]\n"
          "    P[m, n, block] = sum(k) A[m, block, k] * B[n, block, k]\n"
          "    C[m, n] = sum(block) P[m, n, block] * sb[n // 32, block] * sa[m, block]\n"
          "sizes m = 136, n = 104, w = 4, block = 3, k = 64\n",
          "mma_m m\nwarps 8\nrole copies 4\ngroup n = 64\natom P matrix, points m n block, over k, parts 2\n"}},
        "h200", inputs_of_full_range);
}

// Sums of 33,072 products of 255 and 255 pass 32 bits.
TEST(IntegerProducts, WrapInArraysOf32Bits) {
    const std::string text = integer_product("u8", "i32", "{}", "m = 8, n = 8, k = 33072"),
                      long_blocks = "stream k = 128\n";
    expect_right({{"together", text, role + long_blocks}}, "h200", largest_inputs);
    expect_right({{"alone", text, "mma_m m\nwarps 1\n" + long_blocks}}, "a100-sxm-80gb", largest_inputs, 800);
}

// Two blocks add up what each has of a tile. They leave each other words that as real numbers would be NaN.
TEST(IntegerProducts, AreCutAlongTheirStream) {
    const std::string cut = "mma_m m\nwarps 4\nrole copies 4\nstream k = 32\ngroups cut\n";
    const std::vector<Subject> subjects{
        {"scaled", integer_product("i8", "bf16", scaled, "m = 200, n = 80, k = 240", scales),
         cut + "group n = 40\nthreads 3\n"},
        {"sums", integer_product("i8", "i32", "{}", "m = 300, n = 96, k = 400"), cut + "group n = 48\nthreads 4\n"},
        {"real", integer_product("i8", "f32", "{}", "m = 200, n = 80, k = 1104"), cut + "group n = 40\nthreads 3\n"}};
    for (const Planned& p : planned(subjects, "h200")) {
        const auto shares = chosen_stream_k(p.plan.kernels.front().scheduled);
        EXPECT_TRUE(shares && shares->num_split_tiles() > 0);
    }
    expect_right(subjects, "h200", inputs_of_full_range);
}

// ptxas takes the instructions, and keeps all sums in registers.
TEST(IntegerProducts, Compile) {
    if (!gpu::cuda_compiler()) GTEST_SKIP() << "NVRTC is not found";
    for (const char* name : {"h200", "a100-sxm-80gb"}) {
        std::vector<Subject> all = results();
        for (Subject& s : all) s.schedule = "mma_m m\nwarps 4\n";
        const auto cubin = gpu::compile_cuda(cuda::complete(cpu_case::in_one_source(planned(all, name))),
                                             load_machine(name).value().architecture);
        ASSERT_TRUE(cubin.ok()) << render(cubin.errors());
        for (const gpu::AssemblerReport& report : cubin->kernels) {
            EXPECT_EQ(report.spill_store_bytes, 0);
            EXPECT_EQ(report.stack_bytes, 0);
        }
    }
}

}  // namespace
}  // namespace napkin::test_integer_products_numbers
