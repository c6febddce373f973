// Operands of matrix instructions: against the formulas of the PTX ISA, the listings of seed 001 and descriptors that
// ran on an H200.
#include "algebra/fragment.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "algebra/access.hpp"
#include "algebra/layout_tile.hpp"
#include "algebra/shared_operand.hpp"

namespace napkin::layouts::test_layout_fragments {
namespace {

using testing::HasSubstr;

Layout of(std::string_view text) { return parse_layout(text).value(); }
std::string text(const Result<Layout>& r) { return r ? to_string(*r) : render(r.errors()); }
template <class T>
std::string errors(const Result<T>& r) {
    return r ? "no error" : render(r.errors());
}

/// The strides of [0, size) in order instead of the layout's own, as the listings print what a thread has in its
/// registers.
Layout compact(const Layout& shape, std::int64_t& next) {
    if (shape.is_leaf()) {
        const std::int64_t size = shape.leaf().size, stride = size == 1 ? 0 : next;
        next *= size;
        return {size, stride};
    }
    std::vector<Layout> modes;
    for (const Layout& mode : shape.modes()) modes.push_back(compact(mode, next));
    return Layout(std::move(modes));
}
std::string compact_text(const Layout& shape) {
    std::int64_t next = 1;
    return to_string(compact(shape, next));
}

/// The accumulators of mma.sync.m16n8: two core matrices of a warp, below each other, of elements that lie as those of
/// 2 bytes do.
const Fragment accumulators_of_a_warp = core_grid(accumulator_deal_bytes, instruction_row_blocks, 1, 1);

using Formula = std::function<std::int64_t(std::int64_t thread, std::int64_t value)>;

void expect_places(const Fragment& f, const Formula& row, const Formula& column) {
    const Layout rows = row_of(f).value(), columns = column_of(f).value();
    for (std::int64_t t = 0; t < f.threads(); ++t) {
        for (std::int64_t v = 0; v < f.values(); ++v) {
            ASSERT_EQ(f.map({t, v}) % f.rows, row(t, v)) << t << " " << v;
            ASSERT_EQ(f.map({t, v}) / f.rows, column(t, v)) << t << " " << v;
            ASSERT_EQ(rows({t, v}), row(t, v)) << t << " " << v;
            ASSERT_EQ(columns({t, v}), column(t, v)) << t << " " << v;
        }
    }
}

// Listing 1, and the operand of §4.2.
TEST(Fragment, AccumulatorsAreThoseOfSeed001) {
    EXPECT_EQ(wgmma_accumulator(64)->map, of("((4,8,4),(2,2,8)):((128,1,16),(64,8,512))"));
    EXPECT_EQ(wgmma_accumulator(16)->map, of("((4,8,4),(2,2,2)):((128,1,16),(64,8,512))"));
    EXPECT_EQ(wgmma_operand(2), *wgmma_accumulator(16));
    EXPECT_EQ(wgmma_operand(1).map, of("((4,8,4),(4,2,2)):((256,1,16),(64,8,1024))"));
    EXPECT_THAT(errors(wgmma_accumulator(20)), HasSubstr("a multiple of 8 up to 256"));
    EXPECT_THAT(errors(wgmma_accumulator(264)), HasSubstr("a multiple of 8 up to 256"));
}

// Listings 7 and 8: tSrS, tOrS and tOrPLayout for tiles of 128×128 and of 64×128.
TEST(Fragment, AccumulatorsReadAgainAreThoseOfSeed001) {
    const auto listing = [](std::int64_t rows) {
        const Fragment s = tiled(*wgmma_accumulator(128), rows, 128).value(),
                       o = tiled(wgmma_operand(2), rows, 128).value();
        return std::vector{compact_text(s.map.mode(1)), compact_text(o.map.mode(1)), text(registers(s, o))};
    };
    EXPECT_THAT(listing(128), testing::ElementsAre("((2,2,16),2,1):((1,2,4),64,0)", "((2,2,2),2,8):((1,2,4),8,16)",
                                                   "((2,2,2),2,8):((1,2,4),64,8)"));
    EXPECT_THAT(listing(64), testing::ElementsAre("((2,2,16),1,1):((1,2,4),0,0)", "((2,2,2),1,8):((1,2,4),0,8)",
                                                  "((2,2,2),1,8):((1,2,4),0,8)"));
}

// What holds for every size: no value changes its thread, whatever the product's N.
TEST(Fragment, AccumulatorsOfSixteenBitsAreOperandsInPlace) {
    for (std::int64_t n = 16; n <= 256; n += 16) {
        const Fragment s = wgmma_accumulator(n).value(), p = tiled(wgmma_operand(2), 64, n).value();
        const Layout held = registers(s, p).value();
        EXPECT_EQ(coalesce(held), Layout(n / 2, 1)) << n;
        for (std::int64_t t = 0; t < 128; ++t)
            for (std::int64_t v = 0; v < n / 2; ++v) ASSERT_EQ(p.map({t, v}), s.map({t, held(v)}));
    }
    const Fragment s = tiled(accumulators_of_a_warp, 16, 64).value(), p = tiled(core_grid(2, 2, 2, 1), 16, 64).value();
    EXPECT_EQ(text(registers(s, p)), "((2,2,2),1,4):((1,2,4),0,8)");
}

TEST(Fragment, AccumulatorsOfEightBitsWouldMove) {
    const Fragment s = wgmma_accumulator(32).value(), p = wgmma_operand(1);
    EXPECT_THAT(errors(registers(s, p)), HasSubstr("thread 1 reads value 0, row 0 and column 4, which thread 2 holds"));
    EXPECT_THAT(errors(registers(s, wgmma_operand(2))),
                HasSubstr("64 × 32 elements of 128 threads, read as 64 × 16 by 128"));
}

// PTX ISA, the formulas below the figures of wgmma's D and A, and of mma.m16n8k16, k8 and k32.
TEST(Fragment, PlacesAreThoseOfThePtxIsa) {
    const auto group = [](std::int64_t t) { return t % 32 / 4; };
    expect_places(
        *wgmma_accumulator(96), [&](auto t, auto v) { return 16 * (t / 32) + group(t) + 8 * (v / 2 % 2); },
        [](auto t, auto v) { return 8 * (v / 4) + t % 4 * 2 + v % 2; });
    const auto a_row = [&](auto t, auto v) { return group(t) + (v < 2 || (v >= 4 && v < 6) ? 0 : 8); };
    expect_places(core_grid(2, 2, 2, 1), a_row, [](auto t, auto v) { return t % 4 * 2 + v % 2 + (v < 4 ? 0 : 8); });
    expect_places(
        core_grid(2, 1, 2, 1), [&](auto t, auto) { return group(t); },
        [](auto t, auto v) { return t % 4 * 2 + v % 2 + (v < 2 ? 0 : 8); });
    expect_places(
        accumulators_of_a_warp, [&](auto t, auto v) { return group(t) + (v < 2 ? 0 : 8); },
        [](auto t, auto v) { return t % 4 * 2 + v % 2; });
    expect_places(
        core_grid(2, 2, 1, 1), [&](auto t, auto v) { return group(t) + (v < 2 ? 0 : 8); },
        [](auto t, auto v) { return t % 4 * 2 + v % 2; });
    expect_places(
        core_grid(1, 2, 2, 1), [&](auto t, auto v) { return group(t) + (v < 4 || (v >= 8 && v < 12) ? 0 : 8); },
        [](auto t, auto v) { return t % 4 * 4 + v % 4 + (v < 8 ? 0 : 16); });
    expect_places(
        core_grid(1, 1, 2, 1), [&](auto t, auto) { return group(t); },
        [](auto t, auto v) { return t % 4 * 4 + v % 4 + (v < 4 ? 0 : 16); });
    expect_places(
        core_grid(4, 2, 2, 1), [&](auto t, auto v) { return group(t) + 8 * (v % 2); },
        [](auto t, auto v) { return t % 4 + 4 * (v / 2); });
    expect_places(
        core_grid(4, 1, 2, 1), [&](auto t, auto) { return group(t); }, [](auto t, auto v) { return t % 4 + 4 * v; });
    expect_places(
        core_grid(2, 1, 1, 1), [&](auto t, auto) { return group(t); }, [](auto t, auto v) { return t % 4 * 2 + v; });
}

TEST(Fragment, RowsAndColumnsAreArithmetic) {
    const Fragment s = wgmma_accumulator(128).value();
    const Layout row = row_of(s).value(), column = column_of(s).value();
    EXPECT_EQ(expression(row.mode(0), "t"), "t / 4 % 8 + t / 32 * 16");
    EXPECT_EQ(expression(row.mode(1), "v"), "v / 2 % 2 * 8");
    EXPECT_EQ(expression(column.mode(0), "t"), "t % 4 * 2");
    EXPECT_EQ(expression(column.mode(1), "v"), "v % 2 + v / 4 * 8");
}

// §4.1: V, laid down with d together, read as the operand whose rows are d and whose k are keys.
TEST(SharedOperand, TransposedIsComposedWithTheRowMajorLayout) {
    const std::int64_t keys = 96, d = 128;
    const Swizzled v = shared_operand(keys, d, 2, Major::k, 128).value();
    EXPECT_EQ(to_string(v), "Sw<3,3,3> o (96,(64,2)):(64,(1,6144))");
    const Swizzled vt = composition(v, Layout({Layout(d, keys), Layout(keys, 1)})).value();
    EXPECT_EQ(vt, shared_operand(d, keys, 2, Major::mn, 128).value());
    EXPECT_EQ(to_string(vt), "Sw<3,3,3> o ((64,2),96):((1,6144),64)");
}

TEST(SharedOperand, AtomsAreThoseOfEachSwizzle) {
    EXPECT_EQ(box_swizzle(128), (Swizzle{3, 4, 3}));
    EXPECT_EQ(box_swizzle(64), (Swizzle{2, 4, 3}));
    EXPECT_EQ(box_swizzle(32), (Swizzle{1, 4, 3}));
    EXPECT_EQ(box_swizzle(16), Swizzle{});
    EXPECT_EQ(to_string(*shared_operand(8, 32, 4, Major::k, 128)), "Sw<3,2,3> o (8,32):(32,1)");
    EXPECT_EQ(to_string(*shared_operand(64, 64, 2, Major::k, 16)), "(64,(8,8)):(8,(1,512))");
    EXPECT_EQ(to_string(*shared_operand(64, 16, 2, Major::mn, 64)), "Sw<2,3,3> o ((32,2),16):((1,512),32)");
    EXPECT_THAT(errors(shared_operand(64, 64, 2, Major::k, 48)), HasSubstr("16, 32, 64 or 128 bytes"));
    EXPECT_THAT(errors(shared_operand(60, 64, 2, Major::k, 128)),
                HasSubstr("extent 60 of mode 0 is not a multiple of the atom's 8"));
}

// The words with which the prototypes ran on an H200: K-major with a stride of 1024, the next k 32 bytes on; V
// transposed with a leading offset of keys · 128 bytes, the next k 2048 bytes on.
TEST(SharedOperand, DescriptorsAreThoseThatRan) {
    const Swizzled k_major = shared_operand(128, 128, 2, Major::k, 128).value();
    const MatrixDescriptor dk = wgmma_descriptor(k_major, 2, Major::k).value();
    EXPECT_EQ(dk, (MatrixDescriptor{16, 1024, 128}));
    EXPECT_EQ(dk.bits(0x8400), 0x4000004000010840ULL);
    EXPECT_EQ(k_major.layout({0, 16}) * 2, 32);
    EXPECT_EQ(k_major.layout({0, 64}) * 2, 128 * 128);

    const Swizzled v = shared_operand(128, 80, 2, Major::mn, 128).value();
    EXPECT_EQ(wgmma_descriptor(v, 2, Major::mn).value(), (MatrixDescriptor{80 * 128, 1024, 128}));
    EXPECT_EQ(v.layout({0, 16}) * 2, 2048);

    const Swizzled e4m3 = shared_operand(256, 128, 1, Major::k, 128).value();
    EXPECT_EQ(wgmma_descriptor(e4m3, 1, Major::k).value(), (MatrixDescriptor{16, 1024, 128}));
    EXPECT_EQ(e4m3.layout({0, 32}), 32);
}

// PTX ISA, strides of the canonical layouts, here with core matrices of 128 bytes.
TEST(SharedOperand, DescriptorsOfOtherBoxes) {
    const auto descriptor = [](std::int64_t mn, std::int64_t k, Major major, std::int64_t box) {
        return wgmma_descriptor(*shared_operand(mn, k, 2, major, box), 2, major).value();
    };
    EXPECT_EQ(descriptor(64, 64, Major::k, 64), (MatrixDescriptor{16, 512, 64}));
    EXPECT_EQ(descriptor(64, 64, Major::k, 32), (MatrixDescriptor{16, 256, 32}));
    EXPECT_EQ(descriptor(64, 64, Major::k, 16), (MatrixDescriptor{64 * 16, 128, 16}));
    EXPECT_EQ(descriptor(64, 64, Major::mn, 64), (MatrixDescriptor{64 * 64, 512, 64}));
    EXPECT_EQ(descriptor(64, 48, Major::mn, 32), (MatrixDescriptor{48 * 32, 256, 32}));
    EXPECT_EQ(descriptor(64, 48, Major::mn, 16), (MatrixDescriptor{128, 48 * 16, 16}));  // along k, then along mn
    EXPECT_EQ(descriptor(64, 48, Major::mn, 128), (MatrixDescriptor{16, 1024, 128}));    // one box
    const auto mode = [&](std::int64_t box) { return descriptor(64, 64, Major::k, box).bits(0) >> 62; };
    EXPECT_EQ(mode(16), 0U);
    EXPECT_EQ(mode(128), 1U);
    EXPECT_EQ(mode(64), 2U);
    EXPECT_EQ(mode(32), 3U);
}

TEST(SharedOperand, SaysWhatNoDescriptorCanAddress) {
    const auto error = [](std::string_view tile, std::int64_t bytes, Major major) {
        return errors(wgmma_descriptor(*parse_swizzled(tile), bytes, major));
    };
    EXPECT_THAT(error("Sw<3,3,3> o (64,64):(64,1)", 2, Major::k), HasSubstr("no error"));
    EXPECT_THAT(error("(64,64):(64,1)", 2, Major::k), HasSubstr("mn of the tile, 64:64, has runs of 8 at 8:64"));
    EXPECT_THAT(error("Sw<3,4,3> o (64,64):(64,1)", 2, Major::k), HasSubstr("a swizzle of 16-byte units"));
    EXPECT_THAT(error("Sw<3,3,3> o ((8,2,4),64):((64,1024,512),1)", 2, Major::k),
                HasSubstr("at uneven steps, (2,4):(1024,512)"));
    EXPECT_THAT(error("Sw<3,3,3> o (64,64):(1,64)", 2, Major::k),
                HasSubstr("k of the tile, 16:64, has runs of 8 at 8:64"));
    EXPECT_THAT(error("Sw<3,3,3> o (60,64):(64,1)", 2, Major::k), HasSubstr("mn has 60 elements"));
    EXPECT_THAT(error("Sw<3,3,3> o (64,24):(64,1)", 2, Major::k), HasSubstr("k of 24 elements"));
    EXPECT_THAT(error("Sw<3,4,3> o (128,64):(1,128)", 1, Major::mn), HasSubstr("elements of 2 bytes, or k together"));
    EXPECT_THAT(error("Sw<3,3,3> o (64,(8,8)):(64,(1,4096))", 2, Major::k),
                HasSubstr("all of the instruction's k within one box"));
    EXPECT_THAT(error("(64,(8,2)):(8,(1,524288))", 2, Major::k), HasSubstr("a step of 1048576 bytes"));
}

// CUDA C++ Programming Guide, shared memory of compute capability 5 and later
constexpr SharedMemoryFigures shared{32, 4};
constexpr std::int64_t sector_bytes = 32;  // the same, device memory

Wavefronts warp(std::string_view lanes, std::int64_t element_bytes, std::int64_t bytes_a_thread) {
    return wavefronts(byte_offsets(*parse_swizzled(lanes), element_bytes), bytes_a_thread, shared);
}

TEST(Access, CountsBankConflicts) {
    EXPECT_EQ(warp("32:1", 4, 4), (Wavefronts{1, 1}));
    EXPECT_EQ(warp("32:2", 4, 4), (Wavefronts{2, 1}));
    EXPECT_EQ(warp("32:32", 4, 4), (Wavefronts{32, 1}));
    EXPECT_EQ(warp("32:33", 4, 4), (Wavefronts{1, 1}));
    EXPECT_EQ(warp("32:0", 4, 4), (Wavefronts{1, 1}));     // all read one word
    EXPECT_EQ(warp("32:1", 2, 2), (Wavefronts{1, 1}));     // two threads a word
    EXPECT_EQ(warp("32:1", 8, 8), (Wavefronts{2, 2}));     // half a warp a phase
    EXPECT_EQ(warp("32:1", 16, 16), (Wavefronts{4, 4}));   // a quarter a phase
    EXPECT_EQ(warp("32:8", 16, 16), (Wavefronts{32, 4}));  // rows of 128 bytes, all in the same four banks
    EXPECT_EQ(warp("Sw<3,0,3> o 32:8", 16, 16), (Wavefronts{4, 4}));
    EXPECT_EQ(warp("Sw<2,0,3> o 32:8", 16, 16), (Wavefronts{8, 4}));
    EXPECT_EQ(wavefronts(byte_offsets(*parse_swizzled("32:1"), 4), 4, {16, 4}), (Wavefronts{2, 2}));  // another machine
}

TEST(Access, CountsSectors) {
    const auto touched = [](std::string_view lanes, std::int64_t element_bytes, std::int64_t bytes) {
        return sectors(byte_offsets(*parse_swizzled(lanes), element_bytes), bytes, sector_bytes);
    };
    EXPECT_EQ(touched("32:1", 4, 4), (Sectors{4, 4}));
    EXPECT_EQ(touched("32:1", 16, 16), (Sectors{16, 16}));
    EXPECT_EQ(touched("32:64", 4, 4), (Sectors{32, 4}));
    EXPECT_EQ(touched("(8,4):(1,1000)", 4, 4), (Sectors{4, 4}));
    EXPECT_EQ(touched("32:0", 4, 4), (Sectors{1, 1}));
    EXPECT_EQ(touched("32:1", 2, 2), (Sectors{2, 2}));
}

// Why boxes are swizzled: lanes that store accumulators row by row, and the rows that a matrix instruction's lanes
// give.
TEST(Access, SwizzledBoxesHaveNoConflictsWhereMatricesAreStored) {
    const Fragment d = tiled(accumulators_of_a_warp, 16, 64).value();
    // (row of a matrix, matrix) → row + 16 · column of the 16×64 tile where the row's 16 bytes begin: of every fourth
    // thread the first of each pair.
    const Layout lanes = composition(d.map, of("(8,16):(4,64)")).value();
    const auto count = [&](std::int64_t box) {
        const Swizzled tile = shared_operand(16, 64, 2, Major::k, box).value();
        return wavefronts(byte_offsets(composition(tile, lanes).value(), 2), 16, shared);
    };
    EXPECT_EQ(count(128), (Wavefronts{16, 16}));
    EXPECT_EQ(count(64), (Wavefronts{16, 16}));
    EXPECT_EQ(count(32), (Wavefronts{16, 16}));
    EXPECT_EQ(count(16), (Wavefronts{16, 16}));
    const Swizzled plain{{}, of("(16,64):(64,1)")};
    EXPECT_EQ(wavefronts(byte_offsets(composition(plain, lanes).value(), 2), 16, shared), (Wavefronts{128, 16}));
}

}  // namespace
}  // namespace napkin::layouts::test_layout_fragments
