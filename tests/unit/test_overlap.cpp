// Overlaps of strided arrays, against a list of every byte.
#include "run/overlap.hpp"

#include <gtest/gtest.h>

#include <map>
#include <random>

namespace napkin::test_overlap {
namespace {

/// How many elements lie on each byte.
std::map<std::uintptr_t, int> bytes_of(const StridedArray& a) {
    std::map<std::uintptr_t, int> bytes;
    std::vector<std::int64_t> index(a.sizes.size(), 0);
    for (const std::int64_t size : a.sizes)
        if (size == 0) return bytes;
    for (;;) {
        std::int64_t at = 0;
        for (std::size_t d = 0; d < index.size(); ++d) at += index[d] * a.strides[d] * a.width;
        for (std::int64_t byte = 0; byte < a.width; ++byte) ++bytes[a.base + static_cast<std::uintptr_t>(at + byte)];
        std::size_t d = 0;
        while (d < index.size() && ++index[d] == a.sizes[d]) index[d++] = 0;
        if (d == index.size()) return bytes;
    }
}

StridedArray random_array(std::mt19937_64& random) {
    const auto some = [&](std::int64_t from, std::int64_t to) {
        return from + static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(to - from + 1));
    };
    StridedArray a{static_cast<std::uintptr_t>(1000 + some(0, 60)), std::int64_t{1} << some(0, 3), {}, {}};
    for (std::int64_t axes = some(0, 3); axes > 0; --axes) {
        a.sizes.push_back(some(random() % 20 == 0 ? 0 : 1, 4));
        a.strides.push_back(some(-9, 9));
    }
    return a;
}

TEST(Overlap, is_what_a_list_of_bytes_says) {
    std::mt19937_64 random(1);
    int themselves = 0, each_other = 0;
    constexpr int cases = 20000;
    for (int i = 0; i < cases; ++i) {
        const StridedArray a = random_array(random), b = random_array(random);
        const auto in_a = bytes_of(a), in_b = bytes_of(b);
        bool twice = false, shared = false;
        for (const auto& [byte, count] : in_a) {
            twice = twice || count > 1;
            shared = shared || in_b.contains(byte);
        }
        ASSERT_TRUE(is_addressable(a));
        ASSERT_EQ(overlaps_itself(a), twice) << "case " << i;
        ASSERT_EQ(overlap(a, b), shared) << "case " << i;
        themselves += twice;
        each_other += shared;
    }
    EXPECT_GT(themselves, cases / 10);
    EXPECT_GT(each_other, cases / 10);
    EXPECT_LT(each_other, cases * 9 / 10);
}

TEST(Overlap, columns_of_one_matrix_are_apart) {
    // Three outputs as the slices of one array of 1000 rows, as a projection to queries, keys and values has them.
    const StridedArray q{4096, 4, {1000, 64}, {192, 1}}, k{4096 + 256, 4, {1000, 64}, {192, 1}};
    EXPECT_FALSE(overlap(q, k));
    EXPECT_FALSE(overlaps_itself(q));
    const StridedArray late{4096 + 252, 4, {1000, 64}, {192, 1}};
    EXPECT_TRUE(overlap(q, late));
}

TEST(Overlap, addresses_do_not_wrap_around) {
    EXPECT_FALSE(is_addressable({1 << 20, 4, {2}, {INT64_MAX}}));
    EXPECT_FALSE(is_addressable({1 << 20, 4, {3, 3}, {INT64_MAX / 8, INT64_MAX / 8}}));
    EXPECT_FALSE(is_addressable({1 << 20, 4, {2}, {-(1 << 20)}}));
    EXPECT_FALSE(is_addressable({1 << 20, 4, {2, 2}, {INT64_MAX / 20, INT64_MAX / 20}}))
        << "either axis alone would do";
    EXPECT_TRUE(is_addressable({1 << 20, 4, {2}, {INT64_MAX / 20}}));
    EXPECT_TRUE(is_addressable({1 << 20, 4, {1}, {INT64_MAX}})) << "a stride along one value leads nowhere";
    EXPECT_TRUE(is_addressable({1 << 20, 4, {0, 5}, {1, INT64_MAX}})) << "nothing is read";
}

}  // namespace
}  // namespace napkin::test_overlap
