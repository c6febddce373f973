// The C++ and the CUDA that tile programs become, whole: tests/text/cpu/<name>.txt, tests/text/cuda/<name>.txt.
// NAPKIN_UPDATE_GOLDEN=1 rewrites them.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <iterator>

#include "derive/derive.hpp"
#include "diagram/sizes.hpp"
#include "emit/cpu/emit.hpp"
#include "emit/cuda/emit.hpp"
#include "lower/passes.hpp"
#include "lower/rules.hpp"
#include "machine/machine.hpp"
#include "plan/blocks.hpp"
#include "plan/complete.hpp"
#include "support/ids.hpp"
#include "support/parsed.hpp"
#include "support/paths.hpp"
#include "support/whole_rows.hpp"
#include "syntax/parse.hpp"
#include "tile/expand.hpp"
#include "unit/tile_examples.hpp"

namespace napkin {
namespace {

using tile_examples::Example;
using tile_examples::Sizes;

std::string read_file(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

void expect_text(const std::string& text, const std::string& file) {
    const std::string path = in_sources("tests/text/" + file);
    if (std::getenv("NAPKIN_UPDATE_GOLDEN")) std::ofstream(path, std::ios::binary) << text;
    EXPECT_EQ(text, read_file(path)) << file;
}

/// For a processor with vectors of 64 bytes, and for a GPU whose blocks have four warps.
void expect_source(const std::string& name, const Example& example, const Sizes& group, const Sizes& stream,
                   const std::string& vector_axis, std::int64_t rows, int vectors, bool fetches_ahead = false) {
    const auto tiles = std::make_shared<const TileProgram>(tile_examples::program_for(example, group, stream));
    ScheduledProgram program, in_blocks;
    for (std::size_t i = 0; i < tiles->kernels.size(); ++i) {
        KernelSchedule k;
        k.kernel = tiles->kernels[i].name;
        for (const auto& [axis, size] : group)
            if (const auto id = tiles->diagram.find_axis(axis); id && contains(tiles->kernels[i].group_axes, *id))
                k.group[*id] = {size, "", true};
        for (const auto& [axis, size] : stream) k.stream[tiles->diagram.find_axis(axis).value()] = {size, "", true};
        k.vector_axis.value = tiles->diagram.find_axis(vector_axis).value_or(AxisId());
        k.vector_axis.reason = "chosen by hand";
        k.rows = {rows, "", true};
        k.panel_vectors.value = vectors;
        ScheduledKernel scheduled = complete(unscheduled(tiles, i, example.extents, {64, 32, 64, 0, 0, 0, {}}), k);
        if (fetches_ahead) fetch_rows_ahead(scheduled);
        program.kernels.push_back(std::move(scheduled));
        k.warps = {4, "chosen by hand", true};
        in_blocks.kernels.push_back(
            complete(unscheduled(tiles, i, example.extents,
                                 {.bytes = 128, .registers = 96, .warp_threads = 32, .block_bytes = 48 << 10}),
                     k));
    }
    const std::string text = cpu::emit(program).text;
    EXPECT_EQ(text, cpu::emit(program).text) << "the same program gives the same text";
    expect_text(text, "cpu/" + name + ".txt");
    expect_text(cuda::emit(in_blocks).text, "cuda/" + name + ".txt");
}

TEST(CpuSource, MatrixProductWithARaggedEnd) {
    expect_source("matmul", tile_examples::matmul(70, 100, 50), {{"a", 32}, {"c", 48}}, {{"b", 40}}, "c", 8, 3);
}

TEST(CpuSource, WeightedMeanWithAMaskRunsTheChunksOfItsSupport) {
    expect_source("weighted_mean", tile_examples::weighted_mean(true, 100, 203, 40), {{"q", 32}}, {{"x", 64}}, "q", 8, 2);
}

TEST(CpuSource, PanelsOfTheVectorAxisGoThroughAllStatements) {
    expect_source("panels", tile_examples::weighted_mean(false, 96, 128, 16), {{"q", 96}}, {{"x", 64}}, "q", 4, 3);
}

TEST(CpuSource, RowsOfTheNextBlockAreFetchedAhead) {
    expect_source("rows_ahead", tile_examples::matmul(64, 96, 48), {{"a", 32}, {"c", 48}}, {{"b", 48}}, "c", 8, 3, true);
}

std::shared_ptr<const TileProgram> tiles_of_rows(const Derived& derived, const Extents& extents) {
    return std::make_shared<const TileProgram>(
        sized(expand(derived), extents, std::vector<TileSizes>(derived.kernels.size())));
}

/// Groups of two rows r.
KernelSchedule two_rows(const TileProgram& tiles) {
    KernelSchedule k;
    k.kernel = tiles.kernels[0].name;
    k.group[tiles.diagram.find_axis("r").value()] = {2, "", true};
    return k;
}

TEST(CudaSource, WarpsShareTheRowsOfATileThatStaysAtTheCore) {
    const auto diagram = parse_diagram(std::make_shared<const Source>(
        Source{"rows.nk", "rows(X[r, c]) -> Y[r, c]\n    Y[r, c] = softmax(c) X[r, c]\nsizes r = 64, c = 1000\n"}));
    ASSERT_TRUE(diagram.ok()) << render(diagram.errors());
    const Derived derived = derive(*diagram).value();
    const Extents extents = bind_sizes(derived.diagram).value();
    const auto tiles = tiles_of_rows(derived, extents);
    KernelSchedule k = two_rows(*tiles);
    k.stream[derived.diagram.find_axis("c").value()] = {1000, "", true};
    k.vector_axis.value = derived.diagram.find_axis("c").value();
    k.vector_axis.reason = "chosen by hand";
    k.warps = {4, "chosen by hand", true};
    expect_text(cuda::emit({{complete(unscheduled(tiles, 0, extents, {128, 96, 64, 32, 48 << 10, 0, {}}), k)}}).text,
                "cuda/rows_shared.txt");
}

TEST(CpuSource, QuotientsAreStoredBesideTheNextGroupsExponentials) {
    const Derived derived = in_whole_rows(
        derived_from("rows(X[r, c]) -> Y[r, c]\n    Y[r, c] = softmax(c) X[r, c]\nsizes r = 6, c = 100\n"));
    const Extents extents = bind_sizes(derived.diagram).value();
    const auto tiles = tiles_of_rows(derived, extents);
    KernelSchedule k = two_rows(*tiles);
    ScheduledKernel alone = complete(unscheduled(tiles, 0, extents, {64, 32, 64, 0, 0, 0, {}}), k);
    k = alone.schedule;
    const auto atom = [&](const std::string& name) {
        const std::vector<std::string> names = atom_names(tiles->kernels[0]);
        return AtomId::of(std::find(names.begin(), names.end(), name) - names.begin());
    };
    k.tile_pipelining = {{atom("Y"), atom("Y_E"), {1, "", true}}};
    const ScheduledKernel deferred = scheduled(tiles, 0, extents, k, alone.unit);
    ASSERT_TRUE(verify(deferred).empty()) << verify(deferred).front();
    expect_text(cpu::emit({{deferred}}).text, "cpu/deferred.txt");
}

TEST(CpuSource, ConvolutionReadsAHalo) {
    expect_source("convolution", tile_examples::convolution(), {{"i", 10}}, {}, "i", 1, 1);
}

Example chosen_rows() {
    const Derived derived = derived_from(
        "chosen(W[e, h, c], first[t]: i32, X[t, c]) -> H[t, h]\n"
        "    H[t, h] = sum(c) X[t, c] * where(first[t] >= 1, W[first[t] - 1, h, c], 0)\n"
        "sizes t = 10, e = 8, h = 20, c = 40\n");
    return {derived, bind_sizes(derived.diagram, {}).value()};
}

TEST(CpuSource, RowsThatDataChooseAreCopiedAsBlocks) {
    expect_source("chosen_rows", chosen_rows(), {{"t", 4}}, {}, "", 4, 2);
}

TEST(CpuSource, ABlockThatDataChooseIsReadWhereItLies) {
    expect_source("chosen_block", chosen_rows(), {{"t", 1}}, {}, "", 4, 2);
}

TEST(CpuSource, ScalarCodeAndSeveralKernels) {
    expect_source("two_kernels", tile_examples::two_kernels(), {{"i", 1}}, {}, "", 1, 1);
}

/// A program that needs tensor cores, with sizes and warps by hand.
void expect_on_matrix_unit(const std::string& text, const std::string& machine, const std::string& schedule,
                           const std::string& file) {
    const Derived derived = derived_from(text);
    PlanOptions options;
    options.file = std::make_shared<const Source>(Source{"by_hand.schedule", schedule});
    const auto plan = choose_blocks(derived, bind_sizes(derived.diagram, {}).value(), load_machine(machine).value(), {},
                                    options);
    ASSERT_TRUE(plan.ok()) << render(plan.errors());
    EXPECT_TRUE(plan->kernels.front().scheduled.on_tensor_cores());
    expect_text(cuda::emit(plan->program()).text, file);
}

// Every warp multiplies by itself, and threads copy the operands.
TEST(CudaSource, ProductOnAMatrixUnitWithoutBulkCopies) {
    expect_on_matrix_unit(
        "matmul(A[m, k]: bf16, B[k, n]: bf16) -> C[m, n]: bf16\n    C[m, n] = sum(k) A[m, k] * B[k, n]\n"
        "sizes m = 200, n = 120, k = 512\n",
        "a100-sxm-80gb", "mma_m m\nwarps 4\ngroup n = 80\nstream k = 64\n", "cuda/warp_product.txt");
}

// Operands by bulk copies, scores and weights in registers, which are an operand themselves.
TEST(CudaSource, AttentionOnAMatrixUnit) {
    expect_on_matrix_unit(
        "attention(Q[h, q, k]: bf16, K[h, x, k]: bf16, V[h, x, d]: bf16) -> O[h, q, d]: bf16\n"
        "    S[h, q, x] = sum(k) Q[h, q, k] * K[h, x, k]\n    P[h, q, x] = softmax(x) S[h, q, x] * k^-0.5\n"
        "    O[h, q, d] = sum(x) P[h, q, x] * V[h, x, d]\nsizes h = 4, q = 300, x = 1000, k = d = 64\n",
        "h200", "mma_m q\nwarps 8\nstream x = 96\n", "cuda/attention.txt");
}

// Twelve groups for five blocks: one each, and then stretches of the chunks of seven, whose parts meet in memory.
TEST(CudaSource, GroupsThatAreCutOnAMatrixUnit) {
    expect_on_matrix_unit(
        "attention(Q[h, q, k]: bf16, K[h, x, k]: bf16, V[h, x, d]: bf16) -> O[h, q, d]: bf16\n"
        "    S[h, q, x] = sum(k) Q[h, q, k] * K[h, x, k]\n    P[h, q, x] = softmax(x) S[h, q, x] * k^-0.5\n"
        "    O[h, q, d] = sum(x) P[h, q, x] * V[h, x, d]\nsizes h = 4, q = 300, x = 1000, k = d = 64\n",
        "h200", "mma_m q\nwarps 8\nrole copies 4\nstream x = 96\nthreads 5\ngroups cut\n", "cuda/stream_k.txt");
}

// A maximum that may lag, products of the next iteration beside it, ping-pong warpgroups, and K blocks of a warpgroup's
// own rows.
TEST(CudaSource, CausalAttentionOnAMatrixUnit) {
    expect_on_matrix_unit(
        "causal(Q[h, q, k]: f16, K[h, x, k]: f16, V[h, x, d]: f16) -> O[h, q, d]: f16\n"
        "    S[h, q, x] = sum(k) Q[h, q, k] * K[h, x, k]\n    M[h, q, x] = where(x <= q, S[h, q, x] * k^-0.5, -inf)\n"
        "    P[h, q, x] = softmax(x) M[h, q, x]\n    O[h, q, d] = sum(x) P[h, q, x] * V[h, x, d]\n"
        "sizes h = 256, q = x = 1024, k = d = 64\n",
        "h200",
        "mma_m q\nwarps 8\nrole copies 4\nstream x = 64\nslot S order 0, stage_offset 1\nslot P_M_old order 2, ahead "
        "1\n"
        "slot P_M order 2, stage_offset 1\nslot guarded order 2, stage_offset 1\nslot delta order 2, stage_offset 1\n"
        "slot weight order 2, stage_offset 1\nslot P_Z_acc order 2, stage_offset 1\nslot O_acc order 1\n",
        "cuda/causal_attention.txt");
}

// Pairs of blocks that copy B for each other.
TEST(CudaSource, ProductInClusters) {
    expect_on_matrix_unit(
        "matmul(A[m, k]: bf16, B[n, k]: bf16) -> C[m, n]: bf16\n    C[m, n] = sum(k) A[m, k] * B[n, k]\n"
        "sizes m = 1000, n = 640, k = 512\n",
        "h200", "mma_m m\nwarps 8\nrole copies 4\ngroup n = 128\nstream k = 64\ncluster m 2\n",
        "cuda/cluster_product.txt");
}

// What is multiplied is read elementwise, too.
TEST(CudaSource, ProductOfNormedRowsOnAMatrixUnit) {
    expect_on_matrix_unit(
        "normed(X[m, k]: f16, W[n, k]: f16) -> Y[m, n]: f16\n    R[m] = rsqrt(sum(k) X[m, k] * X[m, k] / size(k) + "
        "1e-5)\n"
        "    Y[m, n] = sum(k) X[m, k] * R[m] * W[n, k]\nsizes m = 256, n = 192, k = 512\n",
        "h200", "mma_m m\nwarps 8\n", "cuda/normed_rows.txt");
}

}  // namespace
}  // namespace napkin
