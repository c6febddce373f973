// The laws of layouts on random ones: modes of 1, sizes that are no powers of two, nesting up to three deep, values
// that repeat.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>

#include "algebra/access.hpp"
#include "algebra/fragment.hpp"
#include "algebra/layout_tile.hpp"
#include "algebra/shared_operand.hpp"
#include "support/seeds.hpp"

namespace napkin::layouts {
namespace {

using Random = std::mt19937_64;

constexpr std::int64_t enough = 2048;  ///< elements that a test lists of one layout

std::int64_t below(Random& random, std::int64_t n) {
    return static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(n));
}

/// The leaves in their order under random parentheses. A tuple may have one mode.
Layout nested(Random& random, std::vector<Leaf> leaves, int depth) {
    if (leaves.empty()) leaves.push_back({1, 0});
    if (leaves.size() == 1 && below(random, 4) != 0) return {leaves[0].size, leaves[0].stride};
    std::vector<Layout> modes;
    for (std::size_t at = 0; at < leaves.size();) {
        const auto most = static_cast<std::int64_t>(leaves.size() - at);
        const std::int64_t count = depth > 1 ? 1 + below(random, most) : 1;
        const auto begin = leaves.begin() + static_cast<std::ptrdiff_t>(at);
        if (depth > 1) {
            modes.push_back(nested(random, {begin, begin + count}, depth - 1));
        } else {
            modes.emplace_back(begin->size, begin->stride);
        }
        at += static_cast<std::size_t>(count);
    }
    return Layout(std::move(modes));
}

std::int64_t random_size(Random& random) {
    static constexpr std::int64_t sizes[] = {1, 2, 2, 3, 4, 4, 5, 6, 8};
    return sizes[below(random, std::size(sizes))];
}

/// Any layout.
Layout any_layout(Random& random, std::int64_t largest_stride) {
    std::vector<Leaf> leaves;
    for (std::int64_t i = 1 + below(random, 4); i > 0; --i)
        leaves.push_back({random_size(random), below(random, largest_stride + 1)});
    return nested(random, leaves, 3);
}

/// A layout that takes no value twice: the strides of a compact one with gaps, in any order.
Layout injective_layout(Random& random) {
    std::vector<Leaf> leaves;
    std::int64_t reach = 1;
    for (std::int64_t i = 1 + below(random, 4); i > 0; --i) {
        if (below(random, 3) == 0) reach *= 1 + below(random, 3);
        const std::int64_t size = random_size(random);
        leaves.push_back({size, size == 1 ? below(random, 9) : reach});
        reach *= size;
    }
    std::shuffle(leaves.begin(), leaves.end(), random);
    return nested(random, leaves, 3);
}

/// A layout whose leaves are whole digits of the outer one's index, in any order, some left out: it must compose.
Layout of_digits(Random& random, const Layout& outer) {
    std::vector<Leaf> leaves;
    std::int64_t place = 1;
    for (const Leaf& l : coalesce(outer).leaves()) {
        std::int64_t rest = l.size;
        for (const std::int64_t prime : {2, 3, 5, 7})
            for (; rest % prime == 0; rest /= prime, place *= prime)
                if (below(random, 4) != 0) leaves.push_back({prime, place});
        EXPECT_EQ(rest, 1) << "a size with a prime above 7";
    }
    std::shuffle(leaves.begin(), leaves.end(), random);
    if (below(random, 3) == 0) leaves.push_back({1 + below(random, 3), 0});
    // Neighbours that follow each other become one leaf now and then.
    return below(random, 2) == 0 ? coalesce(from_leaves(leaves)) : nested(random, leaves, 3);
}

std::set<std::int64_t> values(const Layout& l) {
    std::set<std::int64_t> out;
    for (std::int64_t i = 0; i < l.size(); ++i) out.insert(l(i));
    return out;
}

/// Whether the mode is the pattern's, or, where the pattern has a leaf, a tuple of leaves of the same size in all.
bool refines(const Layout& mode, const Layout& pattern) {
    if (pattern.is_leaf()) return mode.size() == pattern.size() && mode.depth() <= 1;
    if (mode.is_leaf() || mode.rank() != pattern.rank()) return false;
    for (std::size_t i = 0; i < pattern.rank(); ++i)
        if (!refines(mode.mode(i), pattern.mode(i))) return false;
    return true;
}

void expect_composed(const Layout& outer, const Layout& inner, const Layout& r) {
    ASSERT_TRUE(refines(r, inner)) << to_string(outer) << " after " << to_string(inner) << " is " << to_string(r);
    for (std::int64_t c = 0; c < inner.size(); ++c)
        ASSERT_EQ(r(c), outer(inner(c))) << to_string(outer) << " after " << to_string(inner) << " is " << to_string(r)
                                         << " at " << c;
}

TEST(Layouts, ComposeAsFunctionsDo) {
    Random random(1);
    int composed = 0, refused = 0, nested_result = 0;
    for (int i = 0; i < 40000; ++i) {
        const Layout outer = any_layout(random, 20), inner = any_layout(random, 1 + below(random, 12));
        const auto r = composition(outer, inner);
        if (!r) {
            ++refused;
            continue;
        }
        ++composed;
        nested_result += r->leaves().size() > inner.leaves().size();
        ASSERT_NO_FATAL_FAILURE(expect_composed(outer, inner, *r));
    }
    EXPECT_GT(composed, 4000);
    EXPECT_GT(refused, 4000);
    EXPECT_GT(nested_result, 100);
}

// Refusing is no way out: digits of the outer layout always compose.
TEST(Layouts, ComposeWheneverTheInnerOneIsMadeOfDigits) {
    Random random(2);
    for (int i = 0; i < 10000; ++i) {
        const Layout outer = any_layout(random, 20), inner = of_digits(random, outer);
        const auto r = composition(outer, inner);
        ASSERT_TRUE(r.ok()) << render(r.errors());
        ASSERT_NO_FATAL_FAILURE(expect_composed(outer, inner, *r));
    }
}

// A leaf that is refused alone has no one stride, unless its steps take part in two digits of the outer layout at once.
TEST(Layouts, RefuseLeavesThatAreNotAffine) {
    Random random(3);
    int refused = 0;
    for (int i = 0; i < 20000; ++i) {
        const Layout outer = any_layout(random, 20), leaf(2 + below(random, 7), 1 + below(random, 12));
        if (leaf.cosize() > outer.size() || composition(outer, leaf).ok()) continue;
        ++refused;
        // With two elements every function is affine.
        bool affine = true;
        for (std::int64_t c = 0; c < leaf.size(); ++c) affine = affine && outer(leaf(c)) == c * outer(leaf(1));
        if (leaf.size() == 2 || !affine) continue;
        const auto message = render(composition(outer, leaf).errors());
        ASSERT_NE(message.find("neither divides"), std::string::npos) << message;
    }
    EXPECT_GT(refused, 500);
}

TEST(Layouts, AreComplementedToABijection) {
    Random random(4);
    int complemented = 0;
    for (int i = 0; i < 10000; ++i) {
        const Layout l = i % 2 == 0 ? injective_layout(random) : any_layout(random, 12);
        const auto free = free_modes(l);
        if (!free) {
            ASSERT_EQ(i % 2, 1) << to_string(l) << "\n" << render(free.errors());
            continue;
        }
        const std::int64_t size = free->reach * (1 + below(random, 4));
        if (size > enough) continue;
        ++complemented;
        const auto c = complement(l, size);
        ASSERT_TRUE(c.ok()) << render(c.errors());
        const std::string what = fmt::format("{} and {} in {}", to_string(l), to_string(*c), size);
        const Layout both({l, *c});
        ASSERT_EQ(both.size(), size) << what;
        const auto all = values(both);
        ASSERT_EQ(static_cast<std::int64_t>(all.size()), size) << what;
        ASSERT_EQ(*all.rbegin(), size - 1) << what;
        ASSERT_EQ(complement(l, size + 1).ok(), free->reach == 1) << what;
    }
    EXPECT_GT(complemented, 4000);
}

TEST(Layouts, AreInverted) {
    Random random(5);
    int longer = 0;
    for (int i = 0; i < 10000; ++i) {
        const Layout l = i % 2 == 0 ? injective_layout(random) : any_layout(random, 12);
        const Layout right = right_inverse(l);
        longer += right.size() > 1;
        for (std::int64_t x = 0; x < right.size(); ++x)
            ASSERT_EQ(l(right(x)), x) << to_string(l) << " " << to_string(right);
        if (i % 2 == 1) continue;
        const auto left = left_inverse(l);
        ASSERT_TRUE(left.ok()) << render(left.errors());
        ASSERT_GE(left->size(), l.cosize()) << to_string(l);
        for (std::int64_t x = 0; x < l.size(); ++x)
            ASSERT_EQ((*left)(l(x)), x) << to_string(l) << " " << to_string(*left);
        ASSERT_EQ(right.size() == l.size(), l.cosize() == l.size()) << to_string(l) << " " << to_string(right);
    }
    EXPECT_GT(longer, 3000);
}

TEST(Layouts, AreDividedIntoTiles) {
    Random random(6);
    int divided = 0;
    for (int i = 0; i < 10000; ++i) {
        const Layout l = any_layout(random, 20), tile = of_digits(random, l);
        const auto parts = logical_divide(l, tile);
        if (!parts) continue;
        ++divided;
        const Layout rest = complement(tile, l.size()).value();
        ASSERT_EQ(parts->size(), l.size());
        for (std::int64_t t = 0; t < tile.size(); ++t)
            for (std::int64_t r = 0; r < rest.size(); ++r)
                ASSERT_EQ((*parts)({t, r}), l(tile(t) + rest(r))) << to_string(l) << " by " << to_string(tile);
    }
    EXPECT_GT(divided, 3000);
}

TEST(Layouts, AreMultiplied) {
    Random random(7);
    int multiplied = 0, by_mode = 0;
    for (int i = 0; i < 10000; ++i) {
        const Layout l = injective_layout(random), copies = injective_layout(random);
        const auto product = logical_product(l, copies);
        if (!product || product->size() > enough) continue;
        ++multiplied;
        const std::string what = fmt::format("{} times {} is {}", to_string(l), to_string(copies), to_string(*product));
        ASSERT_EQ(product->mode(0), l) << what;
        ASSERT_TRUE(refines(product->mode(1), copies)) << what;
        ASSERT_EQ(static_cast<std::int64_t>(values(*product).size()), l.size() * copies.size()) << what;

        const auto blocked = blocked_product(l, copies);
        if (!blocked) continue;
        ++by_mode;
        for (std::size_t m = 0; m < std::min(l.rank(), copies.rank()); ++m) {
            const Layout& a = blocked->mode(m);
            const std::int64_t size = l.mode(m).size();
            ASSERT_EQ(a.size(), size * copies.mode(m).size()) << what;
            for (std::int64_t x = 0; x < size; ++x) ASSERT_EQ(a(x), l.mode(m)(x)) << what;
        }
        ASSERT_EQ(static_cast<std::int64_t>(values(*blocked).size()), l.size() * copies.size()) << what;
    }
    EXPECT_GT(multiplied, 3000);
    EXPECT_GT(by_mode, 1000);
}

TEST(Layouts, AreCoalescedWithoutChange) {
    Random random(8);
    int shorter = 0;
    for (int i = 0; i < 10000; ++i) {
        const Layout l = i % 2 == 0 ? injective_layout(random) : any_layout(random, 6);
        if (l.size() > enough) continue;
        const Layout c = coalesce(l), m = coalesce_modes(l);
        shorter += c.leaves().size() < l.leaves().size();
        ASSERT_EQ(c.size(), l.size()) << to_string(l);
        ASSERT_EQ(c.cosize(), l.cosize()) << to_string(l);
        ASSERT_EQ(coalesce(c), c) << to_string(l);
        ASSERT_EQ(m.rank(), l.rank()) << to_string(l);
        for (std::int64_t x = 0; x < l.size(); ++x) {
            ASSERT_EQ(c(x), l(x)) << to_string(l) << " " << to_string(c);
            ASSERT_EQ(m(x), l(x)) << to_string(l) << " " << to_string(m);
            ASSERT_EQ(l(l.coordinate(x)), l(x)) << to_string(l);
            std::int64_t sum = 0;
            for (const Term& t : terms(l)) sum += (t.last ? x / t.divisor : x / t.divisor % t.size) * t.stride;
            ASSERT_EQ(sum, l(x)) << to_string(l) << ": " << expression(l, "i");
        }
        const auto leaves = c.leaves();
        for (std::size_t k = 1; k < leaves.size(); ++k)
            ASSERT_NE(leaves[k].stride, leaves[k - 1].size * leaves[k - 1].stride) << to_string(c);
    }
    EXPECT_GT(shorter, 2000);
}

TEST(Layouts, AreReadBack) {
    Random random(9);
    int errors = 0;
    for (int i = 0; i < 10000; ++i) {
        const Swizzled s{below(random, 2) == 0
                             ? Swizzle{}
                             : Swizzle{1 + static_cast<int>(below(random, 3)), static_cast<int>(below(random, 5)), 3},
                         any_layout(random, 1000)};
        std::string text = to_string(s);
        const auto again = parse_swizzled(text);
        ASSERT_TRUE(again.ok()) << text << render(again.errors());
        ASSERT_EQ(*again, s) << text;
        // Whatever is wrong in a text is an error with a place in it, and nothing else.
        for (std::int64_t k = 1 + below(random, 3); k > 0; --k)
            text[static_cast<std::size_t>(below(random, static_cast<std::int64_t>(text.size())))] = "(),:0-9 <x"[below(random, 10)];
        const auto wrong = parse_swizzled(text);
        if (wrong) {
            ASSERT_EQ(*parse_swizzled(to_string(*wrong)), *wrong) << text;
        } else {
            ++errors;
            ASSERT_FALSE(render(wrong.errors()).empty());
        }
    }
    EXPECT_GT(errors, 5000);
}

TEST(Layouts, AreSwizzledByPermutations) {
    Random random(10);
    for (int i = 0; i < 1000; ++i) {
        const int bits = static_cast<int>(below(random, 4)), base = static_cast<int>(below(random, 4));
        const Swizzle s{bits, base, bits + static_cast<int>(below(random, 3))};
        const std::int64_t period = std::int64_t{1} << (s.base + s.shift + s.bits), run = std::int64_t{1} << base;
        std::set<std::int64_t> seen;
        for (std::int64_t x = 0; x < period; ++x) {
            seen.insert(s(x));
            ASSERT_EQ(s(s(x)), x);
            ASSERT_EQ(s(x) % run, x % run);
            ASSERT_EQ(s(x + period), s(x) + period);
        }
        ASSERT_EQ(static_cast<std::int64_t>(seen.size()), period);
        ASSERT_EQ(*seen.rbegin(), period - 1);
        const Layout outer = any_layout(random, 20), inner = of_digits(random, outer);
        const Swizzled r = composition(Swizzled{s, outer}, inner).value();
        for (std::int64_t x = 0; x < inner.size(); ++x) ASSERT_EQ(r(x), s(outer(inner(x))));
    }
}

// Banks served one word at a time until every thread of a phase has what it asked for.
TEST(Layouts, WavefrontsAreThoseOfServingEveryBank) {
    Random random(11);
    std::set<std::int64_t> seen;
    for (int i = 0; i < 4000; ++i) {
        const std::int64_t bytes = std::int64_t{1} << below(random, 5);
        const SharedMemoryFigures memory{i % 4 == 0 ? 16 : 32, i % 8 == 1 ? 8 : 4};
        const std::int64_t together = std::min<std::int64_t>(memory.banks, memory.banks * memory.bank_bytes / bytes);
        Layout lanes(32, 1 + below(random, 40));
        if (i % 3 == 0) lanes = Layout({Layout(8, below(random, 65)), Layout(4, below(random, 65))});
        const auto offsets = byte_offsets({{static_cast<int>(below(random, 4)), 0, 3}, lanes}, bytes);
        std::int64_t taken = 0;
        for (std::int64_t first = 0; first < 32; first += together) {
            std::set<std::int64_t> words;
            for (std::int64_t t = first; t < std::min<std::int64_t>(32, first + together); ++t)
                for (std::int64_t b = 0; b < bytes; ++b)
                    words.insert((offsets[static_cast<std::size_t>(t)] + b) / memory.bank_bytes);
            while (!words.empty()) {
                ++taken;
                std::set<std::int64_t> busy, left;
                for (const std::int64_t word : words)
                    if (!busy.insert(word % memory.banks).second) left.insert(word);
                words = left;
            }
        }
        const Wavefronts counted = wavefronts(offsets, bytes, memory);
        ASSERT_EQ(counted.taken, taken) << to_string(lanes) << " of " << bytes;
        ASSERT_EQ(counted.least, (32 + together - 1) / together);
        seen.insert(counted.taken);

        std::vector<char> sector(4096, 0);
        for (const std::int64_t at : offsets)
            for (std::int64_t b = 0; b < bytes; ++b) sector.at(static_cast<std::size_t>((at + b) / 32)) = 1;
        ASSERT_EQ(sectors(offsets, bytes, 32).touched, std::count(sector.begin(), sector.end(), 1)) << to_string(lanes);
    }
    EXPECT_GT(seen.size(), 8U);
}

// The descriptor's word, taken apart as the PTX ISA says, addresses every element where the tile has it.
TEST(Layouts, DescriptorsAddressEveryElement) {
    int tiles = 0;
    for (const std::int64_t box : {16, 32, 64, 128})
        for (const std::int64_t e : {1, 2, 4})
            for (const Major major : {Major::k, Major::mn})
                for (const std::int64_t mn : {8, 24, 64, 128, 192})
                    for (const std::int64_t ks : {1, 2, 3, 8}) {
                        const std::int64_t k = ks * 32 / e;
                        const auto tile = shared_operand(mn, k, e, major, box);
                        if (!tile) continue;
                        const auto descriptor = wgmma_descriptor(*tile, e, major);
                        if (!descriptor) {
                            ASSERT_TRUE(major == Major::mn && e != 2) << render(descriptor.errors());
                            continue;
                        }
                        ++tiles;
                        const std::int64_t step = ks - 1, start = tile->layout({0, step * 32 / e}) * e;
                        const std::uint64_t word = descriptor->bits(start);
                        const auto field = [&](int at) { return static_cast<std::int64_t>(word >> at & 0x3FFF) * 16; };
                        const std::int64_t begin = field(0), leading = field(16), stride = field(32);
                        const int mode = static_cast<int>(word >> 62);
                        const int swizzled_bits = mode == 0 ? 0 : 4 - mode;
                        for (std::int64_t row = 0; row < mn; ++row)
                            for (std::int64_t c = 0; c < 32 / e; ++c) {
                                std::int64_t at = 0;
                                if (major == Major::k) {
                                    at = row / 8 * stride + row % 8 * box + c * e % 16;
                                    at += c * e / 16 * (mode == 0 ? leading : 16);
                                } else if (mode == 0) {
                                    at = row * e % 16 + row * e / 16 * stride + c % 8 * 16 + c / 8 * leading;
                                } else {
                                    at = row * e % box + row * e / box * leading + c % 8 * box + c / 8 * stride;
                                }
                                std::int64_t address = begin + at;
                                address ^= (address / 128 % (1 << swizzled_bits)) * 16;
                                ASSERT_EQ(address, (*tile)({row, step * 32 / e + c}) * e)
                                    << to_string(*tile) << " " << row << " " << c << " of " << e << " bytes";
                            }
                    }
    EXPECT_GT(tiles, 150);
}

// Every fragment is one-to-one onto its tile, and what it reads of itself is where it is.
TEST(Layouts, FragmentsCoverTheirTiles) {
    Random random(12);
    for (int i = 0; i < 200; ++i) {
        const std::int64_t e = std::int64_t{1} << below(random, 3);
        const Fragment f = core_grid(e, 1 + below(random, 3), 1 + below(random, 4), std::int64_t{1} << below(random, 3));
        const Fragment t = tiled(f, f.rows * (1 + below(random, 2)), f.columns * (1 + below(random, 3))).value();
        for (const Fragment& x : {f, t}) {
            const auto all = values(x.map);
            ASSERT_EQ(static_cast<std::int64_t>(all.size()), x.rows * x.columns) << to_string(x.map);
            ASSERT_EQ(x.map.size(), x.rows * x.columns) << to_string(x.map);
            ASSERT_EQ(*all.rbegin(), x.rows * x.columns - 1) << to_string(x.map);
            const Layout row = row_of(x).value(), column = column_of(x).value();
            for (std::int64_t n = 0; n < x.map.size(); ++n)
                ASSERT_EQ(row(n) + x.rows * column(n), x.map(n)) << to_string(x.map);
        }
        const Layout own = registers(t, t).value();
        for (std::int64_t v = 0; v < t.values(); ++v) ASSERT_EQ(own(v), v) << to_string(t.map);
    }
}

}  // namespace
}  // namespace napkin::layouts
