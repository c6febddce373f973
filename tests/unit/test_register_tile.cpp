// What kernels read off the layouts of a machine's matrix instructions.
#include "machine/register_tile.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>

#include "machine/machine.hpp"

namespace napkin::test_register_tile {
namespace {

using layouts::Coordinate;
using layouts::parse_layout;

Instruction instruction(const std::string& machine, const std::string& name) {
    const Machine m = load_machine(machine).value();
    for (const Instruction& i : m.instructions)
        if (i.name == name) return i;
    ADD_FAILURE() << machine << " has no " << name;
    return {};
}

// Every value of the tile is where its layout says, by the numbers that loops use.
void expect_tile_of(const Instruction& i) {
    ASSERT_TRUE(i.tile && i.d);
    const RegisterTile& t = *i.tile;
    const std::int64_t lanes = i.d->mode(0).size();
    EXPECT_EQ(lanes * t.values(), t.rows * t.columns);
    const layouts::Layout row = row_of_lane(*i.d, t.rows), column = column_of_lane(*i.d, t.rows);
    std::set<std::int64_t> seen;
    for (std::int64_t lane = 0; lane < lanes; ++lane)
        for (std::int64_t r = 0; r < t.rows_a_thread; ++r)
            for (std::int64_t c = 0; c < t.columns_a_thread; ++c) {
                const std::int64_t value = r * t.row_stride + c * t.column_stride, place = (*i.d)(Coordinate{lane, value});
                seen.insert(place);
                EXPECT_EQ(place % t.rows, row(lane) + (*i.d)(Coordinate{0, r * t.row_stride}));
                EXPECT_EQ(place / t.rows, column(lane) + (*i.d)(Coordinate{0, c * t.column_stride}) / t.rows);
            }
    EXPECT_EQ(static_cast<std::int64_t>(seen.size()), t.rows * t.columns);
}

TEST(RegisterTile, HasEachValueWhereTheLayoutSays) {
    for (const char* name : {"wgmma", "mma"}) expect_tile_of(instruction("h200", name));
    expect_tile_of(instruction("mi300x", "mfma.16x16"));
    EXPECT_EQ(instruction("h200", "wgmma").tile, instruction("a100-sxm-80gb", "mma").tile);
    const RegisterTile amd = *instruction("mi300x", "mfma.16x16").tile;
    EXPECT_EQ(amd.rows_a_thread, 4);
    EXPECT_EQ(amd.threads_a_row(), 16);
    EXPECT_FALSE(instruction("h200", "mma.f64").tile) << "its layout is not known";
}

// Two neighbours of a row lie in one word of 16-bit operands, and not in one of 8 or 32 bits.
TEST(RegisterTile, IsAnOperandAsItLiesIn16BitsAlone) {
    EXPECT_THAT(instruction("h200", "wgmma").result_types, testing::UnorderedElementsAre(DType::f16, DType::bf16));
    EXPECT_THAT(instruction("h200", "mma").result_types, testing::UnorderedElementsAre(DType::f16, DType::bf16));
    EXPECT_THAT(instruction("mi300x", "mfma.16x16").result_types, testing::IsEmpty()) << "rows of D are columns of A";
}

TEST(RegisterTile, RefusesWhatLoopsDoNotReach) {
    const auto tile_of = [](const char* d) { return register_tile(parse_layout(d).value(), 16).has_value(); };
    EXPECT_TRUE(tile_of("((4,8),(2,2)):((32,1),(16,8))"));
    EXPECT_FALSE(tile_of("((4,8),(2,2)):((32,1),(16,16))")) << "a value is held twice";
    EXPECT_FALSE(tile_of("((4,4),(2,2,2)):((32,1),(16,8,4))")) << "rows of a thread are not equally far apart";
    EXPECT_FALSE(tile_of("(8,3):(1,8)")) << "no whole rows";
}

}  // namespace
}  // namespace napkin::test_register_tile
