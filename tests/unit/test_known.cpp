// What planning keeps is what it would find again.
#include <gtest/gtest.h>

#include <memory>

#include "bench/examples.hpp"
#include "derive/derive.hpp"
#include "lower/lower.hpp"
#include "lower/prove.hpp"
#include "plan/choose.hpp"
#include "support/parsed.hpp"
#include "support/paths.hpp"
#include "tile/exact.hpp"

namespace napkin::test_known {
namespace {

void expect_same_counts(const TileCounter& knows, const TileCounter& walks, const Liveness& live) {
    for (const CoreVariable& v : live.variables) {
        if (!v.loaded && !v.stored) continue;
        EXPECT_EQ(knows.moved(v), walks.moved(v));
    }
    for (std::size_t loop = 0; loop < live.loops.size(); ++loop)
        EXPECT_EQ(knows.chunks_run(static_cast<int>(loop)), walks.chunks_run(static_cast<int>(loop)));
    EXPECT_EQ(knows.peak_memory(), walks.peak_memory());
}

// One text gathers, and the other has a mask.
TEST(Known, CountsAreThoseThatAWalkFinds) {
    std::vector<std::string> texts;
    for_each_example(source_dir() / "examples", [&](const std::string& name, const std::string& example) {
        if (name == "paged_attention" || name == "alibi") texts.push_back(example);
    });
    ASSERT_EQ(texts.size(), 2u);
    for (const std::string& text : texts) {
        const Derived derived = derived_from(text);
        const Extents extents = bind_sizes(derived.source).value();
        for (const Kernel& kernel : derived.kernels) {
            const Liveness live = liveness(derived, kernel, &extents);
            KnownCounts known;
            for (const std::int64_t chunk : {16, 48, 64})
                for (const std::int64_t first : {1, 4})
                    for (const std::int64_t group : {1, 4})
                        for (const std::int64_t limit : {8, 1 << 20}) {
                            SCOPED_TRACE(testing::Message() << chunk << ' ' << first << ' ' << group << ' ' << limit);
                            TileSizes sizes{ByAxis<std::int64_t>(extents.size()), ByAxis<std::int64_t>(extents.size())};
                            for (const AxisId axis : kernel.group_axes)
                                sizes.group[axis] = std::min(axis == kernel.group_axes.front() ? first : group,
                                                             extents[axis]);
                            for (const CoreLoop& loop : live.loops)
                                sizes.stream[loop.axis] = std::min(chunk, extents[loop.axis]);
                            const auto counter = [&](KnownCounts* counts) {
                                return TileCounter(derived.diagram, live, extents, sizes, limit, nullptr, counts);
                            };
                            for (int again = 0; again < 2; ++again)
                                expect_same_counts(counter(&known), counter(nullptr), live);
                        }
        }
    }
}

// Barriers that were found for one number of turns are kept for others.
TEST(Known, BarriersKeepTheOrderWhateverTheTurns) {
    for (const int size : {64, 100, 128, 1000, 4096})
        for (const char* stream : {"32", "64", "1000"}) {
            const Derived derived = derived_from(
                "f(X[i, j], Y[j, k]) -> Z[i, k]\n    Z[i, k] = sum(j) exp(X[i, j]) * Y[j, k]\n"
                "sizes i = k = 512, j = " +
                std::to_string(size) + "\n");
            const auto plan = choose_plan(derived, bind_sizes(derived.diagram).value(), load_machine("h200").value(),
                                          {{ChoiceKind::stream, "j", std::min<std::int64_t>(std::stoi(stream), size)}});
            ASSERT_TRUE(plan.ok()) << render(plan.errors());
            for (const KernelPlan& kernel : plan->kernels)
                EXPECT_EQ(lower::fault_of(lower::with_statements(kernel.scheduled)), "") << size << stream;
        }
}

TEST(Known, InstructionsThatAreSharedAreEqualByWhatTheyAre) {
    const std::vector<Instruction> all = load_machine("h200").value().instructions;
    const SharedInstructions one = all, other = all, none;
    EXPECT_EQ(one, other);
    EXPECT_FALSE(one == none);
    EXPECT_TRUE(SharedInstructions(std::vector<Instruction>{}) == none);
    std::vector<std::string> names;
    for (const Instruction& i : one) names.push_back(i.name);
    EXPECT_EQ(names, (std::vector<std::string>{"wgmma", "wgmma", "mma"})) << "mma.f64 has no layout";
}

}  // namespace
}  // namespace napkin::test_known
