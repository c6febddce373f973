// Indices whose parts pass 32 bits: products of coordinates and factors, elements of 64 bits, bounds of chunks. Kernels
// for a GPU, of which the arrays have few values, are run on the CPU.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "numeric/block_on_cpu.hpp"
#include "numeric/cpu_kernel_case.hpp"
#include "numeric/planned_on_cpu.hpp"
#include "run/gpu/compiler.hpp"

namespace napkin {
namespace {

using cpu_case::Planned;

std::vector<Planned> planned_all(const std::vector<std::string>& texts) {
    std::vector<Planned> all;
    for (std::size_t k = 0; k < texts.size(); ++k)
        all.push_back(cpu_case::planned_on_hopper(texts[k], "", fmt::format("w{}_", k)));
    return all;
}

void expect_definitions(const std::vector<std::string>& texts) {
    const std::vector<Planned> all = planned_all(texts);
    const auto module = cpu_case::compiled_for_cpu(cpu_case::in_one_source(all));
    for (std::size_t k = 0; k < all.size(); ++k)
        EXPECT_EQ(cpu_case::fault_early_or_late(all[k], cpu_case::reference_of(all[k]), *module), "")
            << texts[k] << all[k].source.text;
}

TEST(WideIndices, AreReckonedInSixtyFourBitsWhereTheyNeedThem) {
    expect_definitions({
        "f(X[c, n]) -> Y[c, i]\n    Y[c, i] = X[c, (i * 44100) // 48000]\nsizes c = 2, i = 72000, n = 66150\n",
        "f(X[n]) -> Y[i]\n    Y[i] = X[(i * 100003) % size(n)] - X[size(n) - 1 - (i * 16777216) // 83886080]\n"
        "sizes i = 50000, n = 10000\n",
        "f(X[n]) -> Y[i]\n    Y[i] = where(i * 44100 < size(n), X[i * 44100], 1)\nsizes i = 72000, n = 100000\n",
        "f(X[n], W[w]) -> Y[i]\n    Y[i] = sum(w) where(70000 * i - 65536 * w >= 0 and 70000 * i - 65536 * w < "
        "size(n),\n"
        "        X[70000 * i - 65536 * w], 0) * W[w]\nsizes i = 40000, w = 3, n = 1000\n",
        "f(X[n], T[t]: i32) -> Y[i, t]\n    Y[i, t] = X[(i * 70000 + T[t]) // 40000000]\nsizes i = 40000, t = 3, n = "
        "100\n",
        "f(X[n], T[t]: i64) -> Y[i, t]\n    Y[i, t] = X[(i * 70000) // 40000000 + T[t] % 2]\nsizes i = 40000, t = 3, n "
        "= 100\n",
    });
}

/// Tiles of rows are skipped by the same forms that mask them, of large factors here.
TEST(WideIndices, BoundsOfChunksAreReckonedInSixtyFourBits) {
    std::vector<std::string> texts;
    for (const char* mask : {"16777217 * x <= 16777216 * q + 77", "16777216 * q <= 16777217 * x + 3",
                             "16777217 * x <= 16777216 * q + L[q]", "x * 9000000 + L[q] <= 1500000000 and q >= 3"})
        texts.push_back(cpu_case::attention_of_logits(fmt::format("where({}, S[h, q, x], -inf)", mask), "f16",
                                                      "h = 1, q = x = 512, d = 32", ", L[q]: i32"));
    expect_definitions(texts);
}

/// The kernels of `text`, given elements of T, and what they make of X[v, c] = 100 · v + c + 1.
std::vector<double> rows_of(const std::string& text, const std::vector<std::int64_t>& elements) {
    const Planned p = cpu_case::planned_on_hopper(text, "");
    cpu_case::Reference reference;
    reference.given = probe_inputs(p.diagram, p.extents, Probe::normal, 1);
    Column& table = reference.given[*p.diagram.find_array("T")];
    for (std::size_t i = 0; i < table.size(); ++i) table.set(i, Number::whole(Kind::i64, elements.at(i)));
    Column& rows = reference.given[*p.diagram.find_array("X")];
    const std::int64_t columns = p.extents[*p.diagram.find_axis("c")];
    for (std::size_t i = 0; i < rows.size(); ++i) {
        const auto at = static_cast<std::int64_t>(i);
        rows.set(i, Number::real(static_cast<double>(100 * (at / columns) + at % columns + 1)));
    }
    const auto module = cpu_case::compiled_for_cpu(p.source);
    const auto outputs = cpu_case::outputs_of(p, reference, *module, {});
    std::vector<double> out;
    for (std::int64_t i = 0; outputs && i < outputs->front().count(); i += columns)
        out.push_back(outputs->front().at(i));
    return out;
}

/// napkin.h promises zeros for rows that lie outside of an array.
TEST(WideIndices, ElementsAreComparedWithTheExtentBeforeTheyAreNarrowed) {
    constexpr std::int64_t two_32 = std::int64_t{1} << 32, two_62 = std::int64_t{1} << 62;
    const std::string sizes = "sizes v = 9, n = 6, c = 8\n";
    EXPECT_THAT(rows_of("f(X[v, c], T[n]: i64) -> Y[n, c]\n    Y[n, c] = X[T[n], c]\n" + sizes,
                        {two_32 + 5, 5, -two_32 + 2, 8, 9, two_62 + two_32}),
                testing::ElementsAre(0, 501, 0, 801, 0, 0));
    EXPECT_THAT(rows_of("f(X[v, c], T[n]: i64) -> Y[n, c]\n    Y[n, c] = X[T[n] * 4 + n, c]\n" + sizes,
                        {two_62, 1, two_32, -two_62, 1, 2 * (two_62 - 1) + 1}),
                testing::ElementsAre(0, 501, 0, 0, 801, 0));
    EXPECT_THAT(rows_of("f(X[v, c], T[n]: i32) -> Y[n, c]\n    Y[n, c] = X[T[n] * 4 + n, c]\n" + sizes,
                        {1 << 30, 1, -(1 << 30), 1 << 29, 1, 0x7fffffff}),
                testing::ElementsAre(0, 501, 0, 0, 801, 0));
    EXPECT_THAT(rows_of("f(X[v, c], T[m]: i64, G[n]: i32) -> Y[n, c]\n    Y[n, c] = X[T[G[n] * 0 + n], c]\nsizes m = "
                        "6, v = 9, n = 6, c = 8\n",
                        {two_32 + 5, 5, -two_32 + 2, 8, 9, two_62 + two_32}),
                testing::ElementsAre(0, 501, 0, 801, 0, 0));
}

/// With their products in 32 bits again, kernels are found wrong. The rest keeps what is read inside of the array.
TEST(WideIndices, ProductsThatWrapAreFound) {
    Planned p = cpu_case::planned_on_hopper(
        "f(X[n]) -> Y[i]\n    Y[i] = X[(i * 100003) % size(n)]\nsizes i = 50000, n = 10000\n", "");
    for (std::size_t at = 0; (at = p.source.text.find("int64_t(", at)) != std::string::npos;)
        p.source.text.replace(at, 8, "Index(");
    const auto module = cpu_case::compiled_for_cpu(p.source);
    EXPECT_NE(cpu_case::fault_early_or_late(p, cpu_case::reference_of(p), *module), "");
}

/// Where intervals allow it, Index has 32 bits, and no operand is made wider.
TEST(WideIndices, AreNarrowWhereTheyFit) {
    const Planned near = cpu_case::planned_on_hopper(
        "f(X[c, n], T[t]: i32) -> Y[c, i], Z[c, t]\n    Y[c, i] = X[c, (i * 44100) // 48000]\n    Z[c, t] = X[c, "
        "T[t]]\n"
        "sizes c = 2, i = 48000, n = 44100, t = 7\n",
        "");
    EXPECT_FALSE(near.source.wide_index);
    EXPECT_THAT(near.source.text, testing::HasSubstr("(44100 * (i"));
    EXPECT_THAT(near.source.text, testing::Not(testing::HasSubstr("int64_t(")));
    // Coordinates that no array has.
    const Planned far = cpu_case::planned_on_hopper(
        "f(X[n]) -> Y[n]\n    Y[n] = max(i) where(i < 3000000000 - n, i, 0) + X[n]\nsizes n = 4, i = 3000000000\n", "");
    EXPECT_TRUE(far.source.wide_index);
    // Parts of a stream of many chunks.
    const Planned parts = cpu_case::planned_on_hopper("f(X[n]: f16) -> Y\n    Y = max(n) X[n]\nsizes n = 536870912\n",
                                                      "split n = 1024\nstream n = 64\n");
    EXPECT_FALSE(parts.source.wide_index);
    EXPECT_THAT(parts.source.text, testing::HasSubstr(") * 8388608 / 1024 * 64"));
    if (!gpu::cuda_compiler()) return;
    for (const Planned* p : {&near, &far, &parts}) {
        const auto cubin = gpu::compile_cuda(cuda::complete(p->source), "sm_90a");
        EXPECT_TRUE(cubin.ok()) << render(cubin.errors()) << p->source.text;
    }
}

/// Index tiles of one read, reversed, padded and nested.
TEST(WideIndices, IndexTilesOfOneReadLieApart) {
    std::vector<std::string> texts;
    for (const int n : {1, 4, 7, 9, 33}) {
        texts.push_back(
            fmt::format("f(T[v], i[t]: i32) -> Y[t]\n    Y[t] = T[i[size(t) - 1 - t]]\nsizes v = 5, t = {}\n", n));
        texts.push_back(
            fmt::format("f(X[v, p], a[s]: i32, b[s]: i32, g[t]: i32) -> Y[t]\n    Y[t] = X[a[g[t]], b[g[t]]]\n"
                        "sizes v = 3, p = 4, s = 6, t = {}\n",
                        n));
        texts.push_back(fmt::format(
            "f(X[v, c], a[v]: i32, b[v]: i32, g[t]: i32) -> Y[t, c]\n"
            "    Y[t, c] = sum(w) where(t - w >= 0, X[a[b[g[t - w]]], c] - X[b[a[g[size(t) - 1 - t + w]]], c], 0)\n"
            "sizes v = 5, c = 6, w = 3, t = {}\n",
            n));
    }
    expect_definitions(texts);
}

}  // namespace
}  // namespace napkin
