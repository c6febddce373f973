// Copies between strided arrays: what the kernel's arguments say, run by a loop on the processor.
#include <gtest/gtest.h>

#include <cstring>
#include <numeric>
#include <random>
#include <vector>

#include "run/gpu/compiler.hpp"
#include "run/gpu/strided_copy.hpp"

namespace napkin::gpu {
namespace {

/// What the kernel does with its arguments.
void run(const CopyArguments& copy) {
    for (std::int64_t i = 0; i < copy.count; ++i) {
        std::int64_t rest = i;
        std::uint64_t to = copy.to, from = copy.from;
        for (auto d = static_cast<std::size_t>(copy.axes); d-- > 0;) {
            const std::int64_t at = rest % copy.sizes[d];
            rest /= copy.sizes[d];
            to += static_cast<std::uint64_t>(at * copy.to_strides[d]);
            from += static_cast<std::uint64_t>(at * copy.from_strides[d]);
        }
        std::memcpy(reinterpret_cast<void*>(to), reinterpret_cast<const void*>(from), static_cast<std::size_t>(copy.unit));
    }
}

TEST(StridedCopy, BringsRandomViewsToRowsAndBack) {
    std::mt19937_64 random(1);
    for (int round = 0; round < 500; ++round) {
        const std::int64_t width = std::int64_t{1} << random() % 4;
        std::vector<std::int64_t> sizes, order;
        for (std::size_t d = 0, n = random() % 5; d < n; ++d)
            sizes.push_back(1 + static_cast<std::int64_t>(random() % 5));
        std::vector<std::int64_t> strides(sizes.size()), dense(sizes.size());
        order.resize(sizes.size());
        std::iota(order.begin(), order.end(), 0);
        std::shuffle(order.begin(), order.end(), random);
        std::int64_t apart = 1, count = 1, lowest = 0;
        for (const std::int64_t d : order) {
            const auto at = static_cast<std::size_t>(d);
            apart += static_cast<std::int64_t>(random() % 3);
            strides[at] = random() % 4 == 0 ? -apart : apart;
            apart *= sizes[at];
            if (strides[at] < 0) lowest += strides[at] * (sizes[at] - 1);
        }
        for (std::size_t d = sizes.size(); d-- > 0;) dense[d] = count, count *= sizes[d];
        const std::int64_t offset = static_cast<std::int64_t>(random() % 9);
        std::vector<unsigned char> view(static_cast<std::size_t>(offset + (apart - lowest + 8) * width), 0xee);
        const auto begin = reinterpret_cast<std::uint64_t>(view.data()) +
                           static_cast<std::uint64_t>(offset - lowest * width);
        std::vector<unsigned char> rows(static_cast<std::size_t>(count * width)), back(rows.size());
        for (unsigned char& byte : rows) byte = static_cast<unsigned char>(random() % 200);
        const auto address = [](std::vector<unsigned char>& of) { return reinterpret_cast<std::uint64_t>(of.data()); };
        const auto scatter = copy_arguments({begin, strides}, {address(rows), dense}, sizes, width);
        const auto gather = copy_arguments({address(back), dense}, {begin, strides}, sizes, width);
        ASSERT_TRUE(scatter && gather);
        run(*scatter);
        for (std::int64_t i = 0; i < count; ++i) {  // each value stands where its strides say
            std::int64_t place = 0;
            for (std::size_t d = 0; d < sizes.size(); ++d) place += i / dense[d] % sizes[d] * strides[d];
            const auto* value = reinterpret_cast<const unsigned char*>(begin + static_cast<std::uint64_t>(place * width));
            EXPECT_EQ(std::memcmp(value, rows.data() + i * width, static_cast<std::size_t>(width)), 0);
        }
        EXPECT_EQ(std::count(view.begin(), view.end(), 0xee), std::ssize(view) - count * width) << "gaps stay";
        run(*gather);
        EXPECT_EQ(back, rows);
        for (const CopyArguments* copy : {&*scatter, &*gather})
            EXPECT_EQ((copy->to | copy->from) % static_cast<std::uint64_t>(copy->unit), 0U) << "units are aligned";
    }
}

TEST(StridedCopy, JoinsAxesThatFollowEachOther) {
    const auto rows = copy_arguments({0, {64, 8, 1}}, {1024, {64, 8, 1}}, {4, 8, 8}, 2);
    EXPECT_EQ(rows->axes, 1);
    EXPECT_EQ(rows->unit, 2);
    const auto misaligned = copy_arguments({0, {8, 1}}, {1025, {8, 1}}, {4, 8}, 4);
    EXPECT_EQ(misaligned->unit, 1);
    EXPECT_EQ(misaligned->count, 4 * 8 * 4);
    const std::vector<std::int64_t> many(17, 2), apart(17, 3);
    EXPECT_EQ(copy_arguments({0, apart}, {0, apart}, many, 4).errors().front().code, "view-strides");
}

TEST(StridedCopy, TextCompiles) {
    if (!cuda_compiler()) GTEST_SKIP() << "there is no NVRTC";
    EXPECT_TRUE(compile_cuda(strided_copy_text(), "sm_90a", false));
}

}  // namespace
}  // namespace napkin::gpu
