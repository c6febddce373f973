// Batch-invariant plans: plans for any number of rows share the order of additions.
#include <gtest/gtest.h>

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "lower/order_of_additions.hpp"
#include "plan/batch_invariant.hpp"
#include "run/pipeline.hpp"
#include "support/batches.hpp"
#include "support/ids.hpp"
#include "support/parsed.hpp"
#include "support/paths.hpp"

namespace napkin {
namespace {

PipelineOptions options_of(const std::string& machine, std::int64_t rows) {
    PipelineOptions options;
    options.machine = machine, options.sizes = {{"m", rows}}, options.batch_invariant = true, options.until = Pass::plan;
    return options;
}

Result<Compilation> planned(const std::string& text, const PipelineOptions& options) {
    return run_pipeline(std::make_shared<const Source>(Source{"rows.nk", text}), options);
}

std::string order_of(const Plan& plan) {
    std::string out;
    for (const KernelPlan& kernel : plan.kernels)
        out += kernel.schedule().kernel + "\n" + order_of_additions(kernel.scheduled);
    return out;
}

struct OnMachine {
    const char* name;
    std::string machine, type;
    std::size_t program;  ///< of row_programs
    std::vector<std::int64_t> rows = {1, 3, 64, 1000};
};
class BatchInvariant : public ::testing::TestWithParam<OnMachine> {};

TEST_P(BatchInvariant, PlansOfAnyNumberOfRowsShareTheOrder) {
    const OnMachine& on = GetParam();
    const std::string text = row_programs(on.type)[on.program].text;
    std::set<std::string> orders;
    for (const std::int64_t rows : on.rows) {
        const auto made = planned(text, options_of(on.machine, rows));
        ASSERT_TRUE(made) << rows << " rows\n" << render(made.errors());
        orders.insert(order_of(made->plan));
    }
    EXPECT_EQ(orders.size(), 1U) << *orders.begin() << "\nand\n" << *orders.rbegin();
}

const std::string processor = in_sources("tests/machines/cpu-256.toml");
INSTANTIATE_TEST_SUITE_P(
    Machines, BatchInvariant,
    ::testing::Values(OnMachine{"product", processor, "f32", 0}, OnMachine{"softmax", processor, "f32", 1},
                      OnMachine{"attention", processor, "f32", 2}, OnMachine{"norm", processor, "f32", 3},
                      OnMachine{"row_sum", processor, "f32", 4}, OnMachine{"product_gpu", "h200", "bf16", 0},
                      OnMachine{"norm_gpu", "h200", "f32", 3, {3, 1000}},
                      OnMachine{"row_sum_gpu", "h200", "f32", 4, {3, 1000}}),
    [](const auto& on) { return std::string(on.param.name); });

/// The lengths of reduced axes are those at hand; rows have one number.
TEST(BatchInvariantPlans, ChooseTheOrderAtOneNumberOfRows) {
    const Diagram diagram = parsed(row_programs("f32").front().text);
    const auto at_sizes = [&](std::int64_t m, std::int64_t k, bool any_sizes = false) {
        const Diagram sized = any_sizes ? with_any_sizes(diagram) : diagram;
        const Extents extents = extents_of_order(sized, bind_sizes(sized, {{"m", m}, {"k", k}}).value());
        return std::pair(extents[*diagram.find_axis("m")], extents[*diagram.find_axis("k")]);
    };
    EXPECT_EQ(at_sizes(1, 1000), at_sizes(3000, 1000));
    EXPECT_EQ(at_sizes(1, 1000).second, 1000);
    EXPECT_EQ(at_sizes(7, 1000, true).second, 1024);
    EXPECT_EQ(at_sizes(7, 800, true).second, 896);
    EXPECT_EQ(at_sizes(7, 768, true).second, 768);
}

/// A plan serves other numbers of rows, and no lengths for which the order is another one.
TEST(BatchInvariantPlans, ServeNoLengthsOfAnotherOrder) {
    const std::string text = row_programs("f32").front().text;
    PipelineOptions options = options_of("generic-cpu", 64);
    options.until = Pass::emit;
    const auto made = planned(text, options);
    ASSERT_TRUE(made);
    options.sizes = {{"m", 100}};
    const auto other = at_other_sizes(*made, options);
    ASSERT_TRUE(other);
    EXPECT_EQ(order_of(other->plan), order_of(made->plan));
    options.sizes = {{"m", 64}, {"k", 500}};
    EXPECT_FALSE(at_other_sizes(*made, options));
}

TEST(BatchInvariantPlans, SayTheirPrice) {
    PipelineOptions options = options_of("generic-cpu", 64);
    options.says_price = true;
    const auto made = planned(row_programs("f32").front().text, options);
    ASSERT_TRUE(made);
    ASSERT_EQ(made->notes.size(), 1U);
    EXPECT_NE(made->notes.front().find("in any batch"), std::string::npos) << made->notes.front();
}

TEST(BatchInvariantPlans, RefuseWhatDependsOnTiles) {
    PipelineOptions options = options_of("h200", 4096);
    options.schedule_file = std::make_shared<const Source>(
        Source{"by_hand.schedule", "kernel C\nscheduler stream_k\n"});
    options.sizes = {{"m", 4096}, {"n", 4096}};
    const auto made = planned(row_programs("bf16").front().text, options);
    ASSERT_FALSE(made);
    EXPECT_EQ(made.errors().front().code, "not-batch-invariant") << render(made.errors());
}

}  // namespace
}  // namespace napkin
