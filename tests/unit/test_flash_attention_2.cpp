// The ablation of "A Case Study in CUDA Kernel Fusion" (arXiv:2312.11918, Table 1) from schedules in
// examples/schedules. It tests which of its tiles spill, by the estimate and by the assembler, and in which order they
// are predicted.
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "emit/cuda/emit.hpp"
#include "lower/rules.hpp"
#include "plan/choose.hpp"
#include "run/gpu/compiler.hpp"
#include "run/pipeline.hpp"
#include "schedule/fragment_registers.hpp"
#include "schedule/fragments.hpp"
#include "support/files.hpp"
#include "support/paths.hpp"

namespace napkin::test_flash_attention_2 {
namespace {

const std::string folder = in_sources("examples/schedules/flash-attention-2");

std::shared_ptr<const Source> source_of(const std::string& file) {
    const auto text = read_file(file);
    EXPECT_TRUE(text) << file;
    return std::make_shared<const Source>(Source{file, text.value_or("")});
}

struct Tile {
    std::int64_t d, rows, columns;
    /// TFLOP/s of napkin's kernel on one H200, where so many blocks shared an SM
    /// (bench/results/2026-11-23-seed-001-gpu.json).
    double measured;
    int blocks;
    bool spills;  ///< as the document says, and its table shows
};
const Tile tiles[] = {
    {64, 64, 64, 313, 2, false},   {64, 64, 128, 245, 1, false},  {64, 128, 64, 262, 1, false},
    {64, 128, 128, 362, 1, false}, {128, 64, 64, 290, 1, false},  {128, 64, 128, 407, 1, false},
    {128, 128, 64, 407, 1, false}, {128, 128, 128, 224, 1, true}, {256, 64, 64, 493, 1, false},
    {256, 64, 128, 567, 1, false}, {256, 128, 64, 146, 1, true},  {256, 128, 128, 199, 1, true},
};

std::string file_of(const Tile& tile) {
    return folder + "-" + std::to_string(tile.rows) + "x" + std::to_string(tile.columns) + ".schedule";
}

Result<Compilation> compiled(const Tile& tile, const std::string& schedule = "", Pass until = Pass::plan) {
    PipelineOptions options;
    options.diagram = "rows_" + std::to_string(tile.rows);
    options.sizes = {{"h", 8192 / tile.d}, {"k", tile.d}, {"d", tile.d}};
    options.machine = "h200";
    options.until = until;
    options.schedule_file = schedule.empty() ? source_of(file_of(tile))
                                             : std::make_shared<const Source>(Source{"a.schedule", schedule});
    return run_pipeline(source_of(folder + ".nk"), options);
}

/// The planner's own plan, which no assembler is asked about: that takes most of a plan's time, and says nothing of
/// predictions.
Result<Plan> planned(const Tile& tile, const std::string& schedule) {
    const auto c = compiled(tile, schedule, Pass::size);
    if (!c) return c.errors();
    PlanOptions options;
    options.file = std::make_shared<const Source>(Source{"a.schedule", schedule});
    return choose_plan(c->derived, c->extents, c->machine, {}, options);
}

std::vector<double> ranks(const std::vector<double>& values) {
    std::vector<double> out;
    for (const double v : values)
        out.push_back(static_cast<double>(std::count_if(values.begin(), values.end(), [&](double w) { return w < v; })));
    return out;
}

std::string name_of(const Tile& tile) {
    return std::to_string(tile.d) + ": " + std::to_string(tile.rows) + "x" + std::to_string(tile.columns);
}

/// No larger tile of as many columns of V is in registers, or no smaller one is not.
bool is_beside_the_limit(const Tile& tile) {
    return std::none_of(std::begin(tiles), std::end(tiles), [&](const Tile& other) {
        const std::int64_t larger = other.rows * other.columns - tile.rows * tile.columns;
        return other.d == tile.d && other.spills == tile.spills && (tile.spills ? larger < 0 : larger > 0);
    });
}

TEST(FlashAttention2, TilesThatSpillAreTold) {
    for (const Tile& tile : tiles) {
        const std::string name = name_of(tile);
        const auto plan = planned(tile, source_of(file_of(tile))->text);
        ASSERT_TRUE(plan.ok()) << name << render(plan.errors());
        ASSERT_EQ(plan->kernels.size(), 1) << name;
        const ScheduledKernel& kernel = plan->kernels[0].scheduled;
        EXPECT_EQ(kernel.schedule.warps.value, 4) << name;
        EXPECT_EQ(spilled_registers(kernel) > 0, tile.spills) << name << ": " << most_registers(kernel);
        EXPECT_EQ(to_string(*plan).find(" spill\n") != std::string::npos, tile.spills) << name;
    }
}

TEST(FlashAttention2, TheAssemblerSpillsTheSameTiles) {
    if (!gpu::cuda_compiler().ok()) GTEST_SKIP() << "no NVRTC";
    for (const Tile& tile : tiles) {
        if (!is_beside_the_limit(tile)) continue;
        const std::string name = name_of(tile);
        const auto c = compiled(tile);
        ASSERT_TRUE(c.ok()) << name << render(c.errors());
        const bool is_taken_though_refused = std::any_of(c->notes.begin(), c->notes.end(), [](const std::string& note) {
            return note.find("is taken all the same") != std::string::npos;
        });
        EXPECT_EQ(is_taken_though_refused, tile.spills) << name;
    }
}

/// One warpgroup a block, with one stage of each operand. Its copies overlap the rest of a mainloop iteration, and
/// blocks that share an SM overlap each other.
TEST(FlashAttention2, TilesArePredictedAsTheyWereMeasured) {
    constexpr double flops = 4.0 * 4 * 4096 * 4096 * 2048;
    constexpr int cores = 132;
    std::vector<double> predicted, measured;
    for (const Tile& tile : tiles) {
        const auto plan = planned(
            tile, source_of(file_of(tile))->text + "threads " + std::to_string(cores * tile.blocks) + "\n");
        ASSERT_TRUE(plan.ok()) << render(plan.errors());
        const double rate = flops / plan->kernels.at(0).time.seconds / 1e12;
        predicted.push_back(rate), measured.push_back(tile.measured);
        EXPECT_GT(rate / tile.measured, 1 / 1.3) << tile.d << ": " << tile.rows << "x" << tile.columns;
        EXPECT_LT(rate / tile.measured, 1.3) << tile.d << ": " << tile.rows << "x" << tile.columns;
    }
    const std::vector<double> a = ranks(predicted), b = ranks(measured);
    double squares = 0;
    for (std::size_t i = 0; i < a.size(); ++i) squares += (a[i] - b[i]) * (a[i] - b[i]);
    const auto n = static_cast<double>(a.size());
    EXPECT_GE(1 - 6 * squares / (n * (n * n - 1)), 0.9);  // Spearman's
}

/// The assembler leaves each of the blocks that share an SM its part of the registers, so that all of them run at a
/// time.
TEST(FlashAttention2, AsManyBlocksFitAnSmAsThePlanSays) {
    for (const auto& [tile, blocks] : {std::pair{tiles[0], 4}, {tiles[5], 2}, {tiles[9], 1}}) {
        const auto plan = planned(tile, source_of(file_of(tile))->text);
        ASSERT_TRUE(plan.ok()) << render(plan.errors());
        ScheduledProgram program;
        for (const KernelPlan& kernel : plan->kernels) program.kernels.push_back(kernel.scheduled);
        EXPECT_NE(cuda::emit(program).text.find("__launch_bounds__(256, " + std::to_string(blocks) + ")"), std::string::npos)
            << tile.d;
    }
}

TEST(FlashAttention2, OnlySizesByHandMaySpill) {
    const Tile widest{256, 128, 128, 0, 1, true};
    const auto by_user = planned(widest, source_of(file_of(widest))->text);
    ASSERT_TRUE(by_user.ok());
    ScheduledKernel kernel = by_user->kernels.at(0).scheduled;
    EXPECT_TRUE(verify(kernel).empty());
    kernel.schedule.warps.by_user = false;
    ASSERT_EQ(verify(kernel).size(), 1);
    EXPECT_NE(verify(kernel)[0].find("its fragments take 398 registers of 228 of a thread"), std::string::npos);
    // Warps that the plan chooses have tiles that fit.
    const auto chosen = planned(widest, "mma_m axis q\ngroup q 64\nstream x 128\n");
    ASSERT_TRUE(chosen.ok()) << render(chosen.errors());
    for (const KernelPlan& plan : chosen->kernels) EXPECT_EQ(spilled_registers(plan.scheduled), 0);
}

TEST(FlashAttention2, AFormThatLacksWhatItsLinesNameIsNotTaken) {
    const Tile widest{256, 128, 64, 0, 1, true};
    // At these sizes two kernels are faster, and one of both halves is what the line is about.
    EXPECT_EQ(compiled(widest, "kernel lower_O\n  warps 4\n")->plan.kernels.size(), 2);
    EXPECT_EQ(compiled(widest, "kernel lower_O\n  storage Q operand\n")->plan.kernels.size(), 1);
    const auto unknown = compiled(widest, "kernel lower_O\n  storage R operand\n");
    ASSERT_FALSE(unknown.ok());
    EXPECT_EQ(unknown.errors()[0].code, "unknown-variable");
}

}  // namespace
}  // namespace napkin::test_flash_attention_2
