// The ablation of A Case Study in CUDA Kernel Fusion (arXiv:2312.11918, Table 1) from schedules in examples/schedules: which of its tiles spill,
// by the estimate and by the assembler, and in which order they are predicted.
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "run/gpu/compiler.hpp"
#include "run/pipeline.hpp"
#include "schedule/fragment_registers.hpp"
#include "schedule/fragments.hpp"
#include "schedule/rules.hpp"
#include "support/files.hpp"

namespace napkin::test_flash_attention_2 {
namespace {

const std::string folder = NAPKIN_SOURCE_DIR "/examples/schedules/flash-attention-2";

std::shared_ptr<const Source> source_of(const std::string& file) {
    const auto text = read_file(file);
    EXPECT_TRUE(text) << file;
    return std::make_shared<const Source>(Source{file, text.value_or("")});
}

struct Tile {
    std::int64_t d, rows, columns;
    double measured;  ///< TFLOP/s of the document's own kernel on an H200
    bool spills;      ///< as the document says, and its table shows
};
const Tile tiles[] = {
    {64, 64, 64, 386, false},  {64, 64, 128, 423, false},  {64, 128, 64, 400, false},  {64, 128, 128, 427, false},
    {128, 64, 64, 480, false}, {128, 64, 128, 474, false}, {128, 128, 64, 481, false}, {128, 128, 128, 333, true},
    {256, 64, 64, 529, false}, {256, 64, 128, 456, false}, {256, 128, 64, 57, true},   {256, 128, 128, 59, true},
};

Result<Compilation> compiled(const Tile& tile, const std::string& schedule = "") {
    PipelineOptions options;
    options.diagram = "rows_" + std::to_string(tile.rows);
    options.sizes = {{"h", 8192 / tile.d}, {"k", tile.d}, {"d", tile.d}};
    options.machine = "h200";
    options.until = Pass::plan;
    const std::string file = folder + "-" + std::to_string(tile.rows) + "x" + std::to_string(tile.columns) + ".schedule";
    options.schedule_file = schedule.empty() ? source_of(file)
                                             : std::make_shared<const Source>(Source{"a.schedule", schedule});
    return run_pipeline(source_of(folder + ".nk"), options);
}

std::vector<double> ranks(const std::vector<double>& values) {
    std::vector<double> out;
    for (const double v : values)
        out.push_back(static_cast<double>(std::count_if(values.begin(), values.end(), [&](double w) { return w < v; })));
    return out;
}

// One test, as each tile is planned and assembled once for both.
TEST(FlashAttention2, TilesThatSpillAreToldAndTheOrderThatWasMeasuredIsPredicted) {
    const bool has_assembler = gpu::cuda_compiler().ok();
    std::vector<double> predicted, measured;
    for (const Tile& tile : tiles) {
        const auto c = compiled(tile);
        const std::string name = std::to_string(tile.d) + ": " + std::to_string(tile.rows) + "x" +
                                 std::to_string(tile.columns);
        ASSERT_TRUE(c.ok()) << name << render(c.errors());
        ASSERT_EQ(c->plan.kernels.size(), 1) << name;
        const ScheduledKernel& kernel = c->plan.kernels[0].scheduled;
        EXPECT_EQ(kernel.schedule.warps.value, 4) << name;
        EXPECT_EQ(spilled_registers(kernel) > 0, tile.spills) << name << ": " << most_registers(kernel);
        EXPECT_EQ(to_string(c->plan).find(" spill\n") != std::string::npos, tile.spills) << name;
        const bool is_taken_though_refused = std::any_of(c->notes.begin(), c->notes.end(), [](const std::string& note) {
            return note.find("is taken all the same") != std::string::npos;
        });
        EXPECT_EQ(is_taken_though_refused, tile.spills && has_assembler) << name;
        predicted.push_back(1 / c->plan.kernels[0].time.seconds);
        measured.push_back(tile.measured);
    }
    const std::vector<double> a = ranks(predicted), b = ranks(measured);
    double squares = 0;
    for (std::size_t i = 0; i < a.size(); ++i) squares += (a[i] - b[i]) * (a[i] - b[i]);
    const auto n = static_cast<double>(a.size());
    EXPECT_GE(1 - 6 * squares / (n * (n * n - 1)), 0.8);  // Spearman's, as no two are equal
}

TEST(FlashAttention2, OnlySizesByHandMaySpill) {
    const Tile widest{256, 128, 128, 0, true};
    const auto by_hand = compiled(widest);
    ASSERT_TRUE(by_hand.ok());
    ScheduledKernel kernel = by_hand->plan.kernels.at(0).scheduled;
    EXPECT_TRUE(verify(kernel).empty());
    kernel.schedule.warps.by_hand = false;
    ASSERT_EQ(verify(kernel).size(), 1);
    EXPECT_NE(verify(kernel)[0].find("its fragments take 398 registers of 228 of a thread"), std::string::npos);
    // Warps that the plan chooses have tiles that fit.
    const auto chosen = compiled(widest, "tensor axis q\ngroup q 64\nstream x 128\n");
    ASSERT_TRUE(chosen.ok()) << render(chosen.errors());
    for (const KernelPlan& plan : chosen->plan.kernels) EXPECT_EQ(spilled_registers(plan.scheduled), 0);
}

TEST(FlashAttention2, AFormThatLacksWhatItsLinesNameIsNotTaken) {
    const Tile widest{256, 128, 64, 0, true};
    // At these sizes two kernels are faster, and one of both halves is what the line is about.
    EXPECT_EQ(compiled(widest, "kernel lower_O\n  warps 4\n")->plan.kernels.size(), 2);
    EXPECT_EQ(compiled(widest, "kernel lower_O\n  place Q operand\n")->plan.kernels.size(), 1);
    const auto unknown = compiled(widest, "kernel lower_O\n  place R operand\n");
    ASSERT_FALSE(unknown.ok());
    EXPECT_EQ(unknown.errors()[0].code, "unknown-variable");
}

}  // namespace
}  // namespace napkin::test_flash_attention_2
