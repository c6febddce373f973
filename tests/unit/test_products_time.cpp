// The time of products on the tensor cores of a GPU, and what is planned by it.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "derive/derive.hpp"
#include "emit/cuda/emit.hpp"
#include "plan/choose.hpp"
#include "plan/choose_form.hpp"
#include "support/ranges.hpp"
#include "syntax/parse.hpp"

namespace napkin::test_products_time {
namespace {

using testing::AllOf;
using testing::Each;
using testing::Ge;
using testing::HasSubstr;
using testing::Le;
using testing::Lt;
using testing::Not;

using Sizes = std::vector<std::pair<std::string, std::int64_t>>;

const std::string product_text =
    "f(A[m, k]: bf16, B[n, k]: bf16) -> C[m, n]: bf16\n    C[m, n] = sum(k) A[m, k] * B[n, k]\n";
const std::string gated_text =
    "f(A[m, k]: bf16, B[n, k]: bf16, G[n, k]: bf16) -> C[m, n]: bf16\n"
    "    C[m, n] = silu(sum(k) A[m, k] * B[n, k]) * (sum(k) A[m, k] * G[n, k])\n";
const std::string residual_text =
    "f(A[m, k]: bf16, B[n, k]: bf16, R[m, n]: bf16) -> D[m, n]: bf16\n"
    "    D[m, n] = (sum(k) A[m, k] * B[n, k]) + R[m, n]\n";
const std::string block_scaled_text =
    "f(A[m, block, k]: e4m3, B[n, block, k]: e4m3, sa[m, block], sb[w, block]) -> C[m, n]: bf16\n"
    "    P[m, n, block] = sum(k) A[m, block, k] * B[n, block, k]\n"
    "    C[m, n] = sum(block) P[m, n, block] * sb[n // 128, block] * sa[m, block]\n";

Plan planned(const std::string& text, const Sizes& sizes, const Machine& machine, const std::string& schedule = "") {
    const auto diagram = parse_diagram(std::make_shared<const Source>(Source{"a.nk", text}));
    EXPECT_TRUE(diagram.ok()) << render(diagram.errors());
    Derived derived = derive(*diagram).value();
    const Extents extents = bind_sizes(derived.diagram, {sizes.begin(), sizes.end()}).value();
    derived = choose_form(derived, extents, machine);
    PlanOptions options;
    if (!schedule.empty()) options.file = std::make_shared<const Source>(Source{"a.schedule", schedule});
    const auto plan = choose_plan(derived, extents, machine, {}, options);
    EXPECT_TRUE(plan.ok()) << render(plan.errors());
    return *plan;
}
Machine h200() { return load_machine("h200").value(); }
Sizes product(std::int64_t m, std::int64_t n, std::int64_t k) { return {{"m", m}, {"n", n}, {"k", k}}; }

/// Seconds of a product of few tiles by chunks of k, without a role.
double seconds_of_chunks(std::int64_t chunk, const Machine& machine) {
    return planned(product_text, product(128, 8192, 8192), machine,
                   fmt::format("mma_m m\nwarps 8\ngroup m = 128\ngroup n = 64\nstream k = {}\nsplit k = 1\n", chunk))
        .seconds();
}

/// While the first chunk is on its way nothing is computed.
TEST(ProductsTime, HasTheFirstChunkOnItsWay) {
    const Machine fast = h200();
    Machine slow = fast;
    for (CopyInstruction& copy : slow.copies)
        if (copy.name == "cp.async.bulk.tensor") copy.latency_clocks.value += 1830;
    EXPECT_NEAR(seconds_of_chunks(64, slow) - seconds_of_chunks(64, fast), 1e-6, 1e-8) << "one group a core waits once";
}

/// Operands come through the same pipe one after the other, and through the pipes of two levels at the same time: 41.6
/// µs were measured on one H200 on 2026-11-26.
TEST(ProductsTime, HasTheLevelsBesideEachOther) {
    const double seconds = seconds_of_chunks(256, h200());
    EXPECT_THAT(seconds * 1e6 / 41.6, AllOf(Ge(0.9), Le(1.15)));
}

/// Neighbours' equal requests leave the L2 once, and one SM gets no more than its own port lets through.
TEST(ProductsTime, FollowsWhatNeighboursAskForTogether) {
    Machine alone = h200(), narrow = h200();
    alone.levels.at(2).merging_cores = {};
    narrow.levels.at(2).core_bandwidth_bytes_per_s.value /= 1.4;
    const auto seconds = [](const Machine& machine) {
        return planned(product_text, product(512, 4096, 4096), machine,
                       "mma_m m\nwarps 16\nrole copies 4\ngroup n = 64\nstream k = 64\n")
            .seconds();
    };
    EXPECT_GE(seconds(alone), 1.2 * seconds(h200()));
    EXPECT_GE(seconds(narrow), 1.2 * seconds(h200()));
    Machine few = h200();
    few.levels.at(2).merging_cores.value = 2;
    EXPECT_THAT(seconds(few), AllOf(Ge(seconds(h200())), Le(seconds(alone))))
        << "two blocks have one tile of B in common";
}

/// A result's rows that begin anywhere are written in parts of sectors. On one H200 on 2026-11-26 at some 1.96 GHz,
/// 4095×4097×4112 took 221 to 262 µs, by tile, and 4096×4096×4112 took 181.
TEST(ProductsTime, OfRowsThatBeginAnywhereHasPartsOfSectors) {
    const double odd = planned(product_text, product(4095, 4097, 4112), h200()).seconds(),
                 even = planned(product_text, product(4096, 4096, 4112), h200()).seconds();
    EXPECT_THAT(odd / even, AllOf(Ge(1.1), Le(1.4)));
    Machine whole = h200();
    whole.partial_store_clocks = {};
    EXPECT_LE(planned(product_text, product(4095, 4097, 4112), whole).seconds(), 1.08 * even)
        << "a round of groups more";
}

/// 957 µs at 1.83 GHz were measured on one H200 on 2026-11-26; products alone take 608.
TEST(ProductsTime, OfWarpgroupsThatEndTogetherHasNothingBesideTheirResults) {
    const Sizes sizes{{"m", 8192}, {"n", 8192}, {"k", 128}, {"block", 64}, {"w", 64}};
    const double seconds = planned(block_scaled_text, sizes, h200(), "mma_m m\nwarps 12\nrole copies 4\ngroup n = 128\n")
                               .seconds();
    EXPECT_THAT(seconds * 1e6 / 957, AllOf(Ge(0.9), Le(1.15)));
}

/// Copies are many small blocks, the product few large ones, and a plan is read back as it is printed.
TEST(PlanOfProducts, HasBlocksOfItsOwnShapeForEveryKernel) {
    const Sizes sizes = product(4095, 4097, 4103);
    const Plan plan = planned(product_text, sizes, h200());
    ASSERT_EQ(plan.kernels.size(), 3U);
    const auto warps = mapped<std::int64_t>(plan.kernels, [](const KernelPlan& k) { return k.schedule().warps.value; });
    EXPECT_THAT((std::vector{warps[0], warps[1]}), Each(Lt(warps[2])));
    EXPECT_GT(plan.kernels[0].schedule().threads.value, plan.kernels[2].schedule().threads.value)
        << "several share an SM";
    const Plan again = planned(product_text, sizes, h200(), to_string(plan));
    ASSERT_EQ(again.kernels.size(), 3U);
    for (std::size_t k = 0; k < 3; ++k) {
        EXPECT_EQ(again.kernels[k].schedule().warps.value, warps[k]);
        EXPECT_DOUBLE_EQ(again.kernels[k].time.seconds, plan.kernels[k].time.seconds);
    }
}

/// Streams of several kernels are cut in one form, of which all kernels of the plan are.
TEST(PlanOfProducts, CutsTheStreamsOfSeveralKernelsInOneForm) {
    const std::string text =
        "other(Q[h, q, k]: bf16, K[h, x, k]: bf16, V[h, x, d]: bf16) -> O[h, q, d]: bf16, E[h, q]: f32\n"
        "    S[h, q, x] = sum(k) Q[h, q, k] * K[h, x, k]\n    P[h, q, x] = softmax(x) S[h, q, x] * k^-0.5\n"
        "    O[h, q, d] = sum(x) P[h, q, x] * (V[h, x, d] + 100)\n    E[h, q] = sum(x) 0 - P[h, q, x] * log(P[h, q, x] "
        "+ 1e-9)\n";
    int num_cut = 0;
    for (const std::int64_t q : {1, 65, 1023})
        for (const std::int64_t x : {1025, 4097}) {
            SCOPED_TRACE(fmt::format("q = {}, x = {}", q, x));
            const Plan plan = planned(text, {{"h", 2}, {"q", q}, {"x", x}, {"k", 64}, {"d", 64}}, h200());
            num_cut += *std::max_element(plan.change.parts.begin(), plan.change.parts.end()) > 1 ? 1 : 0;
            for (std::size_t k = 0; k < plan.kernels.size(); ++k) {
                const ScheduledKernel& kernel = plan.kernels[k].scheduled;
                ASSERT_EQ(kernel.program->kernels.size(), plan.kernels.size());
                EXPECT_EQ(kernel.program->kernels[k].name, kernel.kernel->name);
            }
            EXPECT_EQ(plan.tiles().kernels.size(), plan.kernels.size());
        }
    EXPECT_GE(num_cut, 3);
}

/// Rows of the copies are whole sectors: those that begin inside one share it with their neighbours.
TEST(PlanOfProducts, PadsRowsToSectors) {
    const Plan plan = planned(product_text, product(4095, 4097, 4103), h200());
    for (const std::size_t k : {0U, 1U}) {
        const ScheduledKernel& copy = plan.kernels.at(k).scheduled;
        const Variable& made = copy.variable(
            std::get<Compute>(*find_if(copy.steps, [](const Step& s) { return s.atom >= 0; })->statement).variable);
        EXPECT_EQ(copy.extent(made.limits.back()), 4112) << made.name;
    }
}

/// Beside two products of one loop nothing is computed that one of them could run ahead of.
TEST(PlanOfProducts, KeepsProductsWithNothingBesideThemInOrder) {
    for (const std::int64_t k : {1024, 4096}) {
        const Plan plan = planned(gated_text, product(4096, 4096, k), h200());
        EXPECT_THAT(to_string(plan), AllOf(Not(HasSubstr("ping_pong on")), Not(HasSubstr("ahead 1"))));
    }
}

/// What stands beside a product's results is read 16 bytes a thread, and fetched while the product is at work; columns
/// that fill no runs are read one by one.
TEST(PlanOfProducts, ReadsRowsBesideFragmentsInRuns) {
    const Machine machine = h200();
    const auto text = [&](std::int64_t columns) {
        return cuda::emit(planned(residual_text, product(4096, 4096, 4096), machine,
                                  fmt::format("mma_m m\nwarps 8\nrole copies 4\ngroup n = {}\nstream k = 64\n", columns))
                              .program())
            .text;
    };
    EXPECT_THAT(text(128), AllOf(HasSubstr("take_run(R_run_"), HasSubstr("fetch_rows(R_in")));
    EXPECT_THAT(text(80), AllOf(Not(HasSubstr("take_run(R_run_")), Not(HasSubstr("fetch_rows(R_in"))));
    Machine slow = machine;
    for (CopyInstruction& copy : slow.copies) copy.loaded_latency_clocks.value *= 4;
    const std::string schedule = "mma_m m\nwarps 16\nrole copies 4\ngroup n = 128\nstream k = 64\n";
    EXPECT_GT(planned(residual_text, product(8192, 4096, 1024), slow, schedule).seconds(),
              1.1 * planned(residual_text, product(8192, 4096, 1024), machine, schedule).seconds())
        << "threads wait for each row";
}

}  // namespace
}  // namespace napkin::test_products_time
