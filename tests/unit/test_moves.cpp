// The planner's table of moves, row by row.
#include <gtest/gtest.h>

#include <set>
#include <string>

#include "plan/moves.hpp"
#include "support/files.hpp"
#include "support/paths.hpp"

namespace napkin::test_moves {
namespace {

template <class F>
void for_each_row(F&& f) {
    for (const auto& move : shape_moves()) f(move.name, move.reason, move.worth);
    for (const auto& rows : {size_steps(), size_exchanges(), size_neighbours()})
        for (const auto& move : rows) f(move.name, move.reason, move.worth);
    for (const auto& move : part_moves()) f(move.name, move.reason, move.worth);
    for (const auto& move : schedule_moves()) f(move.name, move.reason, move.worth);
}

TEST(Moves, HaveNamesReasonsAndARowInTheDocumentation) {
    const std::string docs = read_file((source_dir() / "docs/plans.md").string()).value();
    std::set<std::string_view> names;
    for_each_row([&](std::string_view name, std::string_view reason, double worth) {
        EXPECT_TRUE(names.insert(name).second) << name;
        EXPECT_FALSE(reason.empty()) << name;
        EXPECT_TRUE(worth > 0.5 && worth <= 1) << name;
        EXPECT_NE(docs.find("`" + std::string(name) + "`"), std::string::npos) << name;
    });
    EXPECT_GE(names.size(), 14U);
}

// From each point of a grid of sizes, a move that may be made leads to another point of the grid, and others cannot.
TEST(Moves, OfSizesStayAmongTheCandidates) {
    const std::vector<SearchedSize> sizes{{0, false, {1, 2, 5, 8}, false}, {1, true, {16}, false}, {2, true, {4, 6}, false}};
    int made = 0;
    for (std::size_t a = 0; a < 4; ++a)
        for (std::size_t c = 0; c < 2; ++c)
            for (const auto& rows : {size_steps(), size_exchanges(), size_neighbours()})
                for (const SizeMove& move : rows)
                    for (std::size_t i = 0; i < 3; ++i)
                        for (std::size_t j = 0; j < 3; ++j) {
                            const Point from{a, 0, c};
                            const AtSizes at{sizes, from, i, j};
                            if (!move.when(at)) continue;
                            const Point to = move.apply(at);
                            ++made;
                            EXPECT_NE(to, from) << move.name;
                            for (std::size_t d = 0; d < 3; ++d) EXPECT_LT(to[d], sizes[d].sizes.size()) << move.name;
                        }
    EXPECT_GT(made, 50);
    const Point five{2, 0, 0};
    for (const SizeMove& move : size_neighbours())
        EXPECT_EQ(move.apply({sizes, five, 0})[0], move.name == "half" ? 1U : 3U)
            << "2 is half of 5, and 8 is near its double";
}

TEST(Moves, OfPartsGiveEveryCoreOneOrLeaveNoneIdle) {
    const auto numbers = [](std::int64_t groups, std::int64_t cores) {
        std::vector<std::int64_t> out;
        for (const PartMove& move : part_moves())
            if (move.when({groups, cores})) out.push_back(move.apply({groups, cores}));
        return out;
    };
    EXPECT_EQ(numbers(1, 132), std::vector<std::int64_t>{132});
    EXPECT_EQ(numbers(64, 132), (std::vector<std::int64_t>{3, 33, 66}));
    EXPECT_EQ(numbers(132, 132), (std::vector<std::int64_t>{1, 33, 66}));
}

}  // namespace
}  // namespace napkin::test_moves
