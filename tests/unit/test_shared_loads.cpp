// What several blocks of a GPU load at the same time comes from memory once: counted tile by tile in the order of the
// groups.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "plan/blocks.hpp"
#include "support/parsed.hpp"

namespace napkin::test_shared_loads {
namespace {

/// Tiles of 128 × 64 of a product whose operands are longer than what the L2 holds of all blocks' rows.
struct ProductOnH200 {
    Derived derived = derived_from(
        "product(A[m, k]: bf16, B[n, k]: bf16) -> C[m, n]: f32\n    C[m, n] = sum(k) A[m, k] * B[n, k]\n"
        "sizes m = 4096, n = 4096, k = 65536\n");
    Extents extents = bind_sizes(derived.diagram, {}).value();
    Machine machine = load_machine("h200").value();
    Plan plan;

    ProductOnH200() {
        PlanOptions options;
        options.file = std::make_shared<const Source>(
            Source{"by_hand.schedule", "mma_m m\nwarps 8\ngroup m = 128\ngroup n = 64\nstream k = 64\nthreads 132\n"});
        plan = choose_blocks(derived, extents, machine, {}, options).value();
    }
    /// On a cache that holds so much of what is read again.
    ScheduledKernel kernel(std::int64_t reread_bytes) const {
        ScheduledKernel k = plan.kernels.at(0).scheduled;
        k.unit.reread_bytes = reread_bytes;
        return k;
    }
    AxisId axis(const std::string& name) const { return derived.diagram.find_axis(name).value(); }

    Traffic from_memory(const ScheduledKernel& k, std::int64_t workers) const {
        const Simulator model(derived, derived.kernels.at(0), k.program->kernels.at(0), extents, machine);
        return model.run(k, workers).traffic.at(0);
    }
};

/// How many tiles along the axis the first groups have, of which each has another one in the given order, innermost
/// last.
std::size_t different_tiles_of(const std::vector<GroupAxis>& order, AxisId axis, std::int64_t groups) {
    std::set<std::int64_t> tiles;
    for (std::int64_t group = 0; group < groups; ++group) {
        std::int64_t rest = group, tile = 0;
        for (auto a = order.rbegin(); a != order.rend(); ++a) {
            if (a->axis == axis) tile += rest % a->tiles * a->stride;
            rest /= a->tiles;
        }
        tiles.insert(tile);
    }
    return tiles.size();
}

TEST(SharedLoads, ComeFromMemoryOnceForAllBlocksThatRunTogether) {
    const ProductOnH200 p;
    const AxisId m = p.axis("m"), n = p.axis("n");
    ScheduledKernel k = p.kernel(0);
    ASSERT_EQ(k.num_groups(), 32 * 64);
    // One group's rows of A and of B, along the whole of k.
    const double rows_of_a = 128.0 * 65536 * 2, rows_of_b = 64.0 * 65536 * 2, groups = 32 * 64;
    const std::vector<std::vector<GroupAxis>> orders{
        k.group_order, {{m, 32}, {n, 64}}, {{n, 64}, {m, 32}}, {{m, 4, 8}, {n, 64}, {m, 8}}};
    for (std::size_t o = 0; o < orders.size(); ++o) {
        k.group_order = orders[o];
        for (const std::int64_t workers : {132, 100, 7}) {
            const auto together = static_cast<double>(workers);
            const auto a = static_cast<double>(different_tiles_of(k.group_order, m, workers)),
                       b = static_cast<double>(different_tiles_of(k.group_order, n, workers));
            const Traffic traffic = p.from_memory(k, workers);
            EXPECT_NEAR(traffic.loaded_bytes / (groups * (rows_of_a * a + rows_of_b * b) / together), 1, 1e-9)
                << o << " " << workers << ": " << a << " tiles of A and " << b << " of B";
            EXPECT_EQ(traffic.stored_bytes, 4096.0 * 4096 * 4);
        }
    }
    // In numbers: 132 groups are 2 rows of 64 tiles and 4 of a third.
    k.group_order = orders[1];
    EXPECT_EQ(different_tiles_of(k.group_order, m, 132), 3U);
    EXPECT_EQ(different_tiles_of(k.group_order, n, 132), 64U);
    EXPECT_NEAR(p.from_memory(k, 132).loaded_bytes, groups / 132 * (3 * rows_of_a + 64 * rows_of_b), 1);
}

// One row of 64 tiles of B after the other, of which the cache holds four rows of A, or all of B.
TEST(SharedLoads, StayInTheCacheUntilLaterGroupsReadThemAgain) {
    const ProductOnH200 p;
    const AxisId m = p.axis("m"), n = p.axis("n");
    const double rows_of_a = 128.0 * 65536 * 2, rows_of_b = 64.0 * 65536 * 2, all_of_a = 32 * rows_of_a,
                 all_of_b = 64 * rows_of_b;
    const auto loaded = [&](double bytes, const std::vector<GroupAxis>& order) {
        ScheduledKernel k = p.kernel(static_cast<std::int64_t>(bytes));
        k.group_order = order;
        return p.from_memory(k, 16).loaded_bytes;
    };
    EXPECT_EQ(p.kernel(0).kernel->group_axes.size(), 2U);
    EXPECT_EQ(p.plan.kernels.at(0).scheduled.unit.reread_bytes, 32 << 20);
    const std::vector<GroupAxis> rows{{m, 32}, {n, 64}}, bands{{m, 8, 4}, {n, 64}, {m, 4}};
    // Sixteen groups have a row of A in common, and so do all 64 where it stays; B comes for every row of A unless all
    // of it stays.
    EXPECT_NEAR(loaded(0, rows), 4 * all_of_a + 32 * all_of_b, 1);
    EXPECT_NEAR(loaded(rows_of_a, rows), all_of_a + 32 * all_of_b, 1);
    EXPECT_NEAR(loaded(all_of_b - 1, rows), all_of_a + 32 * all_of_b, 1);
    EXPECT_NEAR(loaded(all_of_b, rows), all_of_a + all_of_b, 1) << "A passes through beside it";
    // In bands of four rows of A, B comes for every band, and A once where the band stays.
    EXPECT_NEAR(loaded(0, bands), 16 * all_of_a + 8 * all_of_b, 1);
    EXPECT_NEAR(loaded(4 * rows_of_a - 1, bands), 16 * all_of_a + 8 * all_of_b, 1);
    EXPECT_NEAR(loaded(4 * rows_of_a, bands), all_of_a + 8 * all_of_b, 1);
}

}  // namespace
}  // namespace napkin::test_shared_loads
