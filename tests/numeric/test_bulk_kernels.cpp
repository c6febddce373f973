// Kernels with mma_m maps, barriers in shared memory and wgmma, as planned for a GPU that has them. They run on the
// CPU against their definition. Whatever is asynchronous to their threads completes early or late.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <memory>

#include "algebra/fragment.hpp"
#include "algebra/shared_operand.hpp"
#include "diagram/grouped_rows.hpp"
#include "numeric/planned_on_cpu.hpp"
#include "numeric/without_a_wait.hpp"
#include "schedule/fragments.hpp"
#include "support/keys_gradient.hpp"
#include "support/parsed.hpp"
#include "syntax/print.hpp"

namespace napkin {
namespace {

using cpu_case::Planned;
using cpu_case::planned;
using cpu_case::Timing;

Machine hopper() { return load_machine("h200").value(); }

std::string told(Timing t) {
    return fmt::format("copies {}, results {}, {}", t.copies_late ? "late" : "early", t.results_late ? "late" : "early",
                       t.backwards ? "the last thread first" : "the first thread first");
}

std::vector<Timing> all_timings() {
    std::vector<Timing> out;
    for (const bool copies_late : {false, true})
        for (const bool results_late : {false, true})
            for (const bool backwards : {false, true}) out.push_back({copies_late, results_late, backwards});
    return out;
}

struct Subject {
    std::string name, text, schedule;
};

/// All are, and these words stand somewhere in their text.
void expect_all_right(const std::vector<Subject>& subjects, const std::vector<std::string>& words,
                      const Rewriting& rewriting = {}) {
    std::vector<Planned> all;
    for (std::size_t i = 0; i < subjects.size(); ++i) {
        SCOPED_TRACE(subjects[i].name);
        // Boxes of windows have numbers for sizes, as texts of an even length have.
        const bool is_even = subjects[i].text.size() % 2 == 0;
        const std::string text = subjects[i].text + (rewriting.windows && !is_even ? " " : "");
        all.push_back(planned(text, subjects[i].schedule, hopper(), fmt::format("k{}_", i), rewriting));
        EXPECT_THAT(all.back().source.text, testing::HasSubstr(rewriting.windows ? "window_copy" : "wgmma"));
    }
    const cuda::CudaSource source = cpu_case::in_one_source(all);
    for (const std::string& word : words) EXPECT_THAT(source.text, testing::HasSubstr(word));
    const auto module = cpu_case::compiled_for_cpu(source);
    for (std::size_t i = 0; i < subjects.size(); ++i) {
        const cpu_case::Reference reference = cpu_case::reference_of(all[i]);
        for (const Timing timing : all_timings())
            EXPECT_EQ(fault_of(all[i], reference, *module, timing), "") << subjects[i].name << ": " << told(timing) << "\n"
                                                                        << all[i].source.text;
    }
}

std::string product_of(const std::string& a, const std::string& b, const std::string& type, const std::string& result,
                       const std::string& sizes) {
    return fmt::format(
        "product(A[{0}]: {2}, B[{1}]: {2}) -> C[m, n]: {3}\n    C[m, n] = sum(k) A[{0}] * B[{1}]\nsizes {4}\n", a, b,
        type, result, sizes);
}

// ---- what stands in for the GPU, against the layouts

std::uint64_t place_of(auto& of) { return reinterpret_cast<std::uint64_t>(of.data()); }

// A box begins before an array's rows and ends after its columns; what it brought goes to another place, where it is
// cut off, too.
TEST(BulkKernels, BoxesLieAsTheLayoutsSay) {
    constexpr std::int64_t rows = 60, columns = 120, box = 64;
    cuda::CudaSource source;
    cuda::KernelEntry& probe = source.entries.emplace_back();
    probe.name = "probe";
    source.text = R"(
namespace napkin_gpu::probe_code {
extern "C" __global__ void __launch_bounds__(32, 1) probe(const __grid_constant__ Arguments<1, 1, 1> arguments, char* scratch, const __grid_constant__ TensorMaps<2> maps) {
    extern __shared__ __align__(1024) char shared_memory[];
    const unsigned full = shared_address(shared_memory) + 8192;
    if (lane_of_thread() == 0) {
        init_barrier(full, 1);
        fence_barriers();
        expect_bytes(full, 8192);
        bulk_copy(shared_address(shared_memory), &maps.of[0], full, 72, -3);
    }
    __syncthreads();
    wait_phase(full, 0);
    unsigned short* const held = static_cast<unsigned short*>(arguments.outputs[0]);
    for (int i = threadIdx.x; i < 64 * 64; i += 32) held[i] = reinterpret_cast<const unsigned short*>(shared_memory)[i];
    store_staging(shared_address(shared_memory), &maps.of[1], -5, 40);
    wait_staging<0>();
}
}
)";
    const layouts::Swizzled tile = layouts::shared_operand(box, box, 2, layouts::Major::k, operand_row_bytes).value();
    const auto module = cpu_case::compiled_for_cpu(source);
    for (const Timing timing : all_timings()) {
        std::vector<std::uint16_t> given(rows * columns), held(box * box), sent(given.size(), 7777);
        for (std::size_t i = 0; i < given.size(); ++i) given[i] = static_cast<std::uint16_t>(i + 1);
        const auto map = [&](const auto& of) {
            return cpu_case::bulk_map(of.data(), DType::bf16, {rows, columns}, cuda::TensorMap{-1, {box, box}});
        };
        ASSERT_TRUE(cpu_case::run_on_cpu(*module, probe, {0, place_of(held), 0}, timing, {map(given), map(sent)}));
        const auto in_box = [&](std::int64_t r, std::int64_t c) {
            return r < 3 || r - 3 >= rows || c + 72 >= columns ? 0 : (r - 3) * columns + c + 72 + 1;
        };
        for (std::int64_t r = 0; r < box; ++r)
            for (std::int64_t c = 0; c < box; ++c)
                ASSERT_EQ(held[static_cast<std::size_t>(tile({r, c}))], in_box(r, c));
        for (std::int64_t r = 0; r < rows; ++r)
            for (std::int64_t c = 0; c < columns; ++c)
                ASSERT_EQ(sent[static_cast<std::size_t>(r * columns + c)], r >= 40 && c < box - 5 ? in_box(r - 40, c + 5) : 7777)
                    << told(timing) << " " << r << " " << c;
    }
}

/// The instruction for operands along m or n (1) or along k (0), as kernels have it.
std::string instruction(int a, int b) {
    std::string registers, bound;
    for (int i = 0; i < 32; ++i) {
        registers += fmt::format("{}%{}", i == 0 ? "" : ", ", i);
        bound += fmt::format("{}\"+f\"(d[{}])", i == 0 ? "" : ", ", i);
    }
    return fmt::format(
        "NAPKIN_INLINE void product_{0}{1}(float (&d)[32], unsigned long long a, unsigned long long b, int adds) {{\n"
        "    asm volatile(\"{{.reg .pred p; setp.ne.b32 p, %34, 0; "
        "wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 \"\n"
        "                 \"{{{2}}}, %32, %33, p, 1, 1, {0}, {1};}}\" : {3} : \"l\"(a), \"l\"(b), \"r\"(adds));\n}}\n",
        a, b, registers, bound);
}

// Tiles lie in boxes of each width, along k or across it; the accumulator's values are where its fragment has them.
TEST(BulkKernels, ProductsReadWhatDescriptorsSay) {
    using layouts::Major;
    constexpr std::int64_t size = 64, deep = 16, tile_bytes = size * size * 2;
    cuda::CudaSource source;
    cuda::KernelEntry& probe = source.entries.emplace_back();
    probe.name = "probe", probe.threads = 128;
    source.text = "namespace napkin_gpu::probe_code {\n" + instruction(0, 0) + instruction(0, 1) + instruction(1, 0) +
                  instruction(1, 1) + R"(
extern "C" __global__ void __launch_bounds__(128) probe(const __grid_constant__ Arguments<2, 1, 1> arguments, char* scratch) {
    extern __shared__ __align__(1024) char shared_memory[];
    for (int i = threadIdx.x; i < 16384; i += 128) shared_memory[i] = static_cast<const char*>(arguments.inputs[0])[i];
    const unsigned long long* const a = static_cast<const unsigned long long*>(arguments.inputs[1]);
    const unsigned long long* const b = a + 4;
    const unsigned long long along = a[8];
    sync();
    float d[32];
    for (int i = 0; i < 32; ++i) d[i] = 1000;
    wgmma_fence();
    for (int k = 0; k < 4; ++k)
        along == 0 ? product_00(d, a[k], b[k], k > 0) : along == 1 ? product_01(d, a[k], b[k], k > 0)
        : along == 2 ? product_10(d, a[k], b[k], k > 0) : product_11(d, a[k], b[k], k > 0);
    wgmma_commit();
    wgmma_wait<0>();
    for (int i = 0; i < 32; ++i) static_cast<float*>(arguments.outputs[0])[threadIdx.x * 32 + i] = d[i];
}
}
)";
    const auto module = cpu_case::compiled_for_cpu(source);
    const layouts::Fragment accumulator = layouts::wgmma_accumulator(size).value();
    const auto value = [](std::int64_t mn, std::int64_t k, std::int64_t seed) {
        return (mn * 7 + k * 3 + mn * k + seed) % 9 - 4;
    };
    int number = 0;
    for (const std::int64_t box : {16, 32, 64, 128})
        for (const Major a : {Major::k, Major::mn})
            for (const Major b : {Major::k, Major::mn}) {
                std::vector<std::uint16_t> image(2 * size * size);
                std::vector<std::uint64_t> descriptors;
                std::int64_t begins = 0;
                for (const Major major : {a, b}) {
                    const layouts::Swizzled tile = layouts::shared_operand(size, size, 2, major, box).value();
                    for (std::int64_t mn = 0; mn < size; ++mn)
                        for (std::int64_t k = 0; k < size; ++k) {
                            const auto bits = std::bit_cast<std::uint32_t>(static_cast<float>(value(mn, k, begins)));
                            image[static_cast<std::size_t>(begins / 2 + tile({mn, k}))] = static_cast<std::uint16_t>(
                                bits >> 16);
                        }
                    for (std::int64_t k = 0; k < size; k += deep)
                        descriptors.push_back(
                            layouts::wgmma_descriptor(tile, 2, major).value().bits(begins + 2 * tile.layout({0, k})));
                    begins += tile_bytes;
                }
                descriptors.push_back((a == Major::mn ? 2 : 0) + (b == Major::mn ? 1 : 0));
                std::vector<float> made(128 * 32);
                Timing timing;
                timing.results_late = number++ % 2 == 0;
                ASSERT_TRUE(cpu_case::run_on_cpu(*module, probe,
                                                 {place_of(image), place_of(descriptors), place_of(made), 0}, timing));
                for (std::int64_t thread = 0; thread < 128; ++thread)
                    for (std::int64_t i = 0; i < 32; ++i) {
                        const std::int64_t place = accumulator.map({thread, i}), m = place % size, n = place / size;
                        std::int64_t sum = 0;
                        for (std::int64_t k = 0; k < size; ++k) sum += value(m, k, 0) * value(n, k, tile_bytes);
                        ASSERT_EQ(made[static_cast<std::size_t>(thread * 32 + i)], static_cast<float>(sum))
                            << box << " " << (a == Major::mn) << (b == Major::mn) << " " << m << " " << n;
                    }
            }
}

// ---- kernels

std::string attention(const std::string& type, const std::string& result, const std::string& sizes) {
    return fmt::format(
        "attention(Q[h, q, k]: {0}, K[h, x, k]: {0}, V[h, x, d]: {0}) -> O[h, q, d]: {1}\n"
        "    S[h, q, x] = sum(k) Q[h, q, k] * K[h, x, k]\n    P[h, q, x] = softmax(x) S[h, q, x] * k^-0.5\n"
        "    O[h, q, d] = sum(x) P[h, q, x] * V[h, x, d]\nsizes {2}\n",
        type, result, sizes);
}

/// Attention where the mask holds.
std::string masked(const std::string& mask, const std::string& sizes) {
    return fmt::format(
        "f(Q[q, k]: bf16, K[x, k]: bf16, V[x, d]: bf16) -> O[q, d]: bf16\n    S[q, x] = sum(k) Q[q, k] * K[x, k]\n"
        "    M[q, x] = where({}, S[q, x] * k^-0.5, -inf)\n    P[q, x] = softmax(x) M[q, x]\n"
        "    O[q, d] = sum(x) P[q, x] * V[x, d]\nsizes {}\n",
        mask, sizes);
}

std::string normed_rows(const std::string& sizes) {
    return "f(X[m, k]: bf16, W[n, k]: bf16) -> Y[m, n]\n    R[m] = rsqrt(sum(k) X[m, k] * X[m, k] / size(k) + 1e-5)\n"
           "    Y[m, n] = sum(k) X[m, k] * R[m] * W[n, k]\nsizes " +
           sizes + "\n";
}

/// The softmax of the next chunk is computed while the weights of this one are multiplied.
constexpr const char* ahead =
    "slot S order 0, stage_offset 1\nslot P_M_old order 2, stage_offset 1\nslot P_M order 2, stage_offset 1\n"
    "slot guarded order 2, stage_offset 1\nslot delta order 2, stage_offset 1\nslot weight order 2, stage_offset 1\n"
    "slot P_Z_acc order 2, stage_offset 1\nslot O_acc order 1\n";

// Nine chunks and four stages: each stage is filled once more after it was freed twice.
TEST(BulkKernels, ReadOperandsAlongEitherDimension) {
    std::vector<Subject> subjects;
    for (const char* a : {"m, k", "k, m"})
        for (const char* b : {"n, k", "k, n"}) {
            const bool is_f16 = subjects.size() % 2 == 0;
            subjects.push_back(
                {fmt::format("{} {}", a, b),
                 product_of(a, b, is_f16 ? "f16" : "bf16", is_f16 ? "f32" : "bf16", "m = 72, n = 80, k = 144"),
                 fmt::format("mma_m m\nwarps 4\ngroup n = 40\nstream k = 16\nthreads 2\n{}",
                             std::string(a) == "m, k" ? "role copies 4\n" : "")});
        }
    expect_all_right(subjects, {"f16_s(", "f16_st(", "f16_s_t(", "f16_st_t(", "fence_barriers", "sync();"});
}

/// Behind a loop and inside of one; rows that begin at 16 bytes and elsewhere, end inside of a run, or run the other
/// way; two reads of one array.
TEST(BulkKernels, ReadRowsBesideFragments) {
    const auto beside = [](const std::string& type, const std::string& read, const std::string& expression,
                           const std::string& sizes) {
        return fmt::format(
            "f(A[m, k]: bf16, B[n, k]: bf16, R[{}]: {}) -> C[m, n]: f32\n    C[m, n] = (sum(k) A[m, k] * B[n, k]) + "
            "{}\nsizes {}\n",
            read, type, expression, sizes);
    };
    const std::string of_128 = "mma_m m\nwarps 8\nrole copies 4\ngroup n = 128\nstream k = 16\nthreads 1\n",
                      of_64 = "mma_m m\nwarps 4\nrole copies 4\ngroup n = 64\nstream k = 16\nthreads 2\n";
    expect_all_right(
        {
            {"bf16", beside("bf16", "m, n", "R[m, n]", "m = 136, n = 256, k = 48"), of_128},
            {"f16 in odd rows", beside("f16", "m, n", "R[m, n]", "m = 72, n = 101, k = 48"), of_64},
            {"f32", beside("f32", "m, n", "R[m, n] * 2", "m = 72, n = 124, k = 48"), of_64},
            {"f32 in odd rows", beside("f32", "m, n", "R[m, n]", "m = 70, n = 67, k = 48"), of_64},
            {"columns", beside("bf16", "n, m", "R[n, m]", "m = 72, n = 96, k = 48"), of_64},
            {"twice", beside("bf16", "j, m, n", "R[0, m, n] - R[1, m, n]", "m = 72, n = 96, k = 48, j = 2"), of_64},
            {"in a loop",
             "f(Q[q, k]: bf16, K[x, k]: bf16, V[x, d]: bf16, B[q, x]: f16) -> O[q, d]: bf16\n"
             "    S[q, x] = sum(k) Q[q, k] * K[x, k]\n    M[q, x] = S[q, x] + B[q, x]\n"
             "    P[q, x] = softmax(x) M[q, x]\n    O[q, d] = sum(x) P[q, x] * V[x, d]\nsizes q = 72, x = 150, k = 32, "
             "d = 24\n",
             "mma_m q\nwarps 4\nrole copies 4\nstream x = 32\nthreads 1\n"},
        },
        {"ask_for_run(R_in", "take_run(R_run_", "take_run(R_2_run_", "fetch_rows(R_in", "take_run(B_run_"});
}

/// Matrices of experts and pages: the thread that asks for copies reads where the tiles lie.
TEST(BulkKernels, FindTilesByIntegersInMemory) {
    const std::string experts =
        "f(X[p, c]: bf16, W[e, h, c]: bf16, E[b]: i32) -> Y[p, h]: bf16\n"
        "    Y[p, h] = sum(c) X[p, c] * W[E[p // 64], h, c]\nsizes p = 200, b = 4, c = 136, h = 72, e = 3\n";
    const auto pages = [](const char* x, const char* score) {
        return fmt::format(
            "f(Q[b, g, k]: bf16, K[page, slot, k]: bf16, V[page, slot, d]: bf16, table[b, n]: i64) -> O[b, g, d]: "
            "bf16\n"
            "    S[b, g, x] = sum(k) Q[b, g, k] * K[table[b, x // 32], x % 32, k]\n    P[b, g, x] = softmax(x) {1}\n"
            "    O[b, g, d] = sum(x) P[b, g, x] * V[table[b, x // 32], x % 32, d]\n"
            "sizes b = 3, g = 9, x = {0}, n = 4, slot = 32, page = 7, k = d = 32\n",
            x, score);
    };
    const std::string lists =
        "f(Q[h, q, k]: bf16, K[h, n, k]: bf16, V[h, n, d]: bf16, I[h, r, j]: i32) -> O[h, q, d]: bf16\n"
        "    S[h, q, x] = sum(k) Q[h, q, k] * K[h, I[h, q // 64, x // 32] * 32 + x % 32, k]\n"
        "    P[h, q, x] = softmax(x) where(I[h, q // 64, x // 32] * 32 + x % 32 <= q, S[h, q, x], -inf)\n"
        "    O[h, q, d] = sum(x) P[h, q, x] * V[h, I[h, q // 64, x // 32] * 32 + x % 32, d]\n"
        "sizes h = 2, q = 150, r = 3, j = 3, x = 75, n = 160, k = d = 32\n";
    const auto rows = [](const char* sizes) {
        return fmt::format(
            "f(Q[q, h, k]: bf16, K[n, k]: bf16, V[n, d]: bf16, I[q, x]: i32) -> O[q, h, d]: bf16\n"
            "    S[q, h, x] = sum(k) Q[q, h, k] * K[max(I[q, x], 0), k]\n"
            "    P[q, h, x] = softmax(x) where(I[q, x] >= 3, S[q, h, x], -inf)\n"
            "    O[q, h, d] = sum(x) P[q, h, x] * V[max(I[q, x], 0), d]\nsizes {}\n",
            sizes);
    };
    const std::string of_h = "mma_m h\nwarps 4\nrole copies 4\n";
    const std::string of_p = "mma_m p\nwarps 4\nrole copies 4\n", of_g = "mma_m g\nwarps 4\nrole copies 4\n";
    expect_all_right(
        {{"rows", rows("q = 5, h = 20, x = 192, n = 40, k = d = 32"), of_h},
         {"rows that end in a K block", rows("q = 3, h = 64, x = 75, n = 300, k = 80, d = 136"), of_h + "stream x = 32\n"},
         {"experts", experts, of_p + "group p = 64\nthreads 3\n"},
         {"masked lists of blocks", lists, "mma_m q\nwarps 4\nrole copies 4\n"},
         {"pages", pages("128", "S[b, g, x] * k^-0.5"), of_g},
         {"an end within a page", pages("107", "S[b, g, x] * k^-0.5"), of_g + "stream x = 16\n"},
         {"masked", pages("128", "where(x < 5 * g + 40, S[b, g, x], -inf)"), of_g}},
        {"E_in[", "table_in[", "I_in[", "copy_rows<"});
}

/// The equations by which rows that choose a matrix stand beside others that choose the same.
TEST(BulkKernels, MultiplyRowsInGroups) {
    const Diagram experts = parsed(
        "f(X[t, c]: bf16, W[e, h, c]: bf16, of[t]: i32) -> Y[t, h]: bf16\n"
        "    Y[t, h] = sum(c) X[t, c] * W[of[t], h, c]\nsizes t = 45, c = 32, h = 24, e = 3\n");
    const Diagram two_each = parsed(
        "f(X[t, c]: bf16, W[e, h, c]: bf16, G[t, j], of[t, j]: i32) -> Y[t, h]: bf16\n"
        "    Y[t, h] = sum(j, c) G[t, j] * X[t, c] * W[of[t, j], h, c]\nsizes t = 23, j = 2, c = 32, h = 24, e = 3\n");
    expect_all_right({{"grouped", print(with_grouped_rows(experts)),
                       "kernel Y_rows\nmma_m t_rows\nwarps 4\nrole copies 4\nstream c = 16\n"},
                      {"two experts each", print(with_grouped_rows(two_each)),
                       "kernel Y_rows\nmma_m t_rows\nwarps 4\nrole copies 4\nstream c = 16\n"}},
                     {"of_matrix_in["});
}

/// Terms of one place of a sum beside each other: offsets say where each place begins.
TEST(BulkKernels, SumTermsOfEachPlace) {
    const std::string of_experts =
        "f(X[t, c]: bf16, dY[t, h]: bf16, begin[w]: i32) -> dW[e, h, c]\n"
        "    dW[e, h, c] = sum(t) where(t >= begin[e] and t < begin[e + 1], dY[t, h] * X[t, c], 0)\n"
        "sizes t = 90, c = 32, h = 72, e = 5, w = e + 1\n";
    expect_all_right({{"gradient", of_experts, "mma_m h\nwarps 4\nrole copies 4\nstream t = 16\n"}}, {"begin"});
}

/// A value of each column, which copies bring with the operands of the iteration.
TEST(BulkKernels, ReadVectorsBesideOperands) {
    const std::string of_x = "mma_m x\nwarps 4\nrole copies 4\nstream q = 32\n";
    expect_all_right({{"dense", keys_gradient(false, "h = 2, q = 128, x = 200, k = d = 32"), of_x},
                      {"causal", keys_gradient(true, "h = 2, q = 168, x = 168, k = d = 32"), of_x}},
                     {"operand_values<float, 8>(L_pair_, ", "operand_values<float, 8>(D_pair_, "});
}

/// Copies of factors of 8 bits: in a wider type, and in another order of dimensions.
TEST(BulkKernels, MultiplyCopiesOfWhatNoInstructionTakes) {
    const std::string of_q = "kernel O\nmma_m q\nwarps 4\nrole copies 4\nstream x = 32\n",
                      of_m = "kernel C\nmma_m m\nwarps 4\nrole copies 4\nstream k = 32\n";
    expect_all_right(
        {{"attention",
          "f(Q[h, q, k]: e4m3, K[h, x, k]: e4m3, V[h, x, d]: e4m3) -> O[h, q, d]: bf16\n"
          "    S[h, q, x] = sum(k) Q[h, q, k] * K[h, x, k]\n    P[h, q, x] = softmax(x) S[h, q, x] * k^-0.5\n"
          "    O[h, q, d] = sum(x) P[h, q, x] * V[h, x, d]\nsizes h = 2, q = 72, x = 96, k = d = 32\n",
          of_q},
         {"transposed",
          "f(A[k, m]: e4m3, B[k, n]: e4m3) -> C[m, n]: bf16\n    C[m, n] = sum(k) A[k, m] * B[k, n]\n"
          "sizes m = 80, n = 48, k = 100\n",
          of_m},
         {"of each channel",
          "f(A[m, k, c]: bf16, B[n, k, c]: bf16) -> C[m, n, c]: bf16\n    C[m, n, c] = sum(k) A[m, k, c] * B[n, k, c]\n"
          "sizes m = 72, n = 40, k = 80, c = 3\n",
          of_m}},
        {"V_bf16", "B_rows", "A_rows"});
}

/// Weights of 8 bits become the first factor in registers, where each thread finds its own.
TEST(BulkKernels, ReadMatricesOfEightBitsBesideOperands) {
    const auto weights = [](const char* type, const char* value) {
        return fmt::format(
            "f(X[m, k]: bf16, W[n, k]: {}, S[n]: f32) -> Y[m, n]: bf16\n    Y[m, n] = sum(k) X[m, k] * ({} * S[n])\n"
            "sizes m = 16, n = 72, k = 176\n",
            type, value);
    };
    const std::string of_n = "mma_m n\nwarps 4\nrole copies 4\nstream k = 32\n";
    expect_all_right(
        {{"i8", weights("i8", "f32(W[n, k])"), of_n},
         {"u8 in halves", weights("u8", "f32(W[n, k] // 16 - 8)"), of_n},
         {"e4m3", weights("e4m3", "W[n, k]"), of_n},
         {"mask",
          "f(Q[q, k]: bf16, K[x, k]: bf16, V[x, d]: bf16, M[q, x]: bool) -> O[q, d]: bf16\n"
          "    S[q, x] = sum(k) Q[q, k] * K[x, k]\n    P[q, x] = softmax(x) where(M[q, x], S[q, x], -100)\n"
          "    O[q, d] = sum(x) P[q, x] * V[x, d]\nsizes q = 72, x = 144, k = 32, d = 24\n",
          "mma_m q\nwarps 4\nrole copies 4\nstream x = 32\n"}},
        {"operand_values<int8_t", "operand_values<uint8_t", "operand_values<e4m3"});
}

/// Factors of another type, and what is computed of memory, which threads write to shared memory for a product.
TEST(BulkKernels, WriteOperandsThatTheyConvert) {
    const auto cache = [](const char* array, const char* read, const char* more, const char* scale, const char* sizes) {
        return fmt::format(
            "f(Q[b, g, k]: bf16, K[{0}, k]: e4m3, V[{0}, d]: e4m3{2}) -> O[b, g, d]: bf16\n"
            "    S[b, g, x] = (sum(k) Q[b, g, k] * K[{1}, k]){3}\n    P[b, g, x] = softmax(x) S[b, g, x] * k^-0.5\n"
            "    O[b, g, d] = sum(x) P[b, g, x] * V[{1}, d]\nsizes {4}\n",
            array, read, more, scale, sizes);
    };
    const auto weights = [](const char* type, const char* value, const char* sizes) {
        return fmt::format(
            "f(X[m, k]: bf16, W[n, k]: {}, S[n]: f32) -> Y[m, n]: bf16\n    Y[m, n] = sum(k) X[m, k] * {}\nsizes {}\n",
            type, value, sizes);
    };
    const std::string of_g = "mma_m g\nwarps 4\nrole copies 4\n", of_m = "mma_m m\nwarps 4\nrole copies 4\n";
    expect_all_right(
        {{"cache", cache("b, x", "b, x", ", s[b]", " * s[b]", "b = 3, g = 9, x = 107, k = 32, d = 64"),
          of_g + "stream x = 32\n"},
         {"without a role", cache("b, x", "b, x", "", "", "b = 3, g = 72, x = 96, k = d = 64"),
          "mma_m g\nwarps 4\nstream x = 32\n"},
         {"pages",
          cache("page, slot", "table[b, x // 32], x % 32", ", table[b, n]: i32", "",
                "b = 3, g = 9, x = 128, n = 4, slot = 32, page = 7, k = d = 32"),
          of_g + "stream x = 32\n"},
         {"weights", weights("e4m3", "W[n, k]", "m = 72, n = 40, k = 176"), of_m + "stream k = 32\n"},
         {"e5m2", weights("e5m2", "W[n, k]", "m = 72, n = 104, k = 176"), of_m + "stream k = 48\n"},
         {"i8", weights("i8", "f32(W[n, k])", "m = 72, n = 40, k = 176"), of_m + "stream k = 32\n"},
         {"blocks that tiles cut",
          "f(X[m, k]: bf16, W[k, n]: i8, S[s]) -> Y[m, n]: bf16\n"
          "    Y[m, n] = sum(k) X[m, k] * (f32(W[k, n]) * S[n // 8])\nsizes m = 72, n = 48, k = 64, s = 6\n",
          of_m + "group n = 6\nstream k = 32\n"},
         {"scaled", weights("i8", "(f32(W[n, k]) * S[n])", "m = 130, n = 72, k = 144"), of_m + "stream k = 64\n"}},
        {"write_operand<", "operand_values<e4m3, ", "operand_values<int8_t, "});
}

/// Two weights of 4 bits in a byte, as the first factor in registers and as the second one in shared memory.
TEST(BulkKernels, ReadWeightsThatShareAByte) {
    const auto weights = [](const char* value, const char* sizes) {
        return fmt::format(
            "f(X[m, k]: bf16, W[n, j]: u8, S[n, g]: bf16) -> Y[m, n]: bf16\n"
            "    Y[m, n] = sum(k) X[m, k] * (f32({}) * S[n, k // 32])\nsizes {}\n",
            value, sizes);
    };
    const char *const shifted = "(W[n, k // 2] // where(k % 2 == 0, 1, 16)) % 16 - 8",
                      *const chosen = "where(k % 2 == 0, W[n, k // 2] % 16, W[n, k // 2] // 16) - 8",
                      *const few = "m = 16, n = 72, k = 192, j = 96, g = 6",
                      *const many = "m = 72, n = 40, k = 192, j = 96, g = 6";
    const std::string of_n = "mma_m n\nwarps 4\nrole copies 4\nstream k = 64\n",
                      of_m = "mma_m m\nwarps 4\nrole copies 4\nstream k = 64\n";
    expect_all_right({{"of one row", weights(shifted, "m = 1, n = 72, k = 192, j = 96, g = 6"), of_n + "group m = 16\n"},
                      {"in registers", weights(shifted, few), of_n},
                      {"chosen in registers", weights(chosen, few), of_n},
                      {"written", weights(shifted, many), of_m},
                      {"chosen and written", weights(chosen, many), of_m}},
                     {"operand_values<uint8_t, ", "W_pair_", "S_of_part_0_"});
}

TEST(BulkKernels, TakeAnyTilesAndTypes) {
    expect_all_right(
        {
            {"one row, whose tile has an instruction's columns",
             product_of("m, k", "n, k", "bf16", "bf16", "m = 1, n = 88, k = 80"),
             "mma_m n\nwarps 4\nrole copies 4\nstream k = 16\ngroup m = 16\nthreads 1\n"},
            {"batches",
             "f(A[b, h, m, k]: bf16, B[b, h, k, n]: bf16) -> C[b, h, m, n]: bf16\n"
             "    C[b, h, m, n] = sum(k) A[b, h, m, k] * B[b, h, k, n]\nsizes b = 2, h = 2, m = 40, n = 72, k = 80\n",
             "mma_m m\nwarps 4\nrole copies 4\nstream k = 16\nthreads 3\n"},
            {"two groups of four warps", product_of("k, m", "n, k", "f16", "f16", "m = 136, n = 24, k = 72"),
             "mma_m m\nwarps 8\nrole copies 4\nstream k = 16\nthreads 1\n"},
            {"e4m3", product_of("m, k", "n, k", "e4m3", "f32", "m = 72, n = 40, k = 304"),
             "mma_m m\nwarps 4\nrole copies 4\nstream k = 32\nthreads 1\n"},
            {"e5m2", product_of("m, k", "n, k", "e5m2", "bf16", "m = 64, n = 80, k = 160"),
             "mma_m m\nwarps 4\nstream k = 32\n"},
            {"tf32", product_of("m, k", "n, k", "tf32", "f32", "m = 72, n = 40, k = 104"),
             "mma_m m\nwarps 4\nrole copies 4\nstream k = 32\nthreads 1\n"},
            {"normed rows", normed_rows("m = 72, n = 24, k = 272"), "mma_m m\nwarps 4\nstream k = 32\nthreads 1\n"},
            {"epilogue",
             "f(A[m, k]: bf16, B[n, k]: bf16, b[n], R[m, n]: bf16) -> C[m, n]: bf16\n"
             "    H[m, n] = sum(k) A[m, k] * B[n, k]\n    C[m, n] = max(H[m, n] * 0.5 + b[n], 0) + R[m, n]\n"
             "sizes m = 72, n = 56, k = 80\n",
             "mma_m m\nwarps 4\nrole copies 4\nstream k = 16\ngroup n = 32\nthreads 2\n"},
        },
        {"e4m3_s(", "e5m2_s(", "k8_tf32_s(", "operand_value", "store_staging", "store_row", "warp_ / 4"});
}

/// Sums over several axes as one: tiles of the flat axis lie inside of one head, or of one tap of a window.
TEST(BulkKernels, SumAlongFlatAxes) {
    const auto heads = [](const std::string& a, const std::string& b, const std::string& type) {
        return fmt::format(
            "f(A[{0}]: {2}, B[{1}]: {2}) -> C[m, n]\n    C[m, n] = sum(h, k) A[{0}] * B[{1}]\n"
            "sizes h = 3, m = 72, n = 80, k = 96\nschedule\n    stream hk\n",
            a, b, type);
    };
    expect_all_right(
        {
            {"rows between", heads("h, m, k", "h, k, n", "bf16"),
             "mma_m m\nwarps 4\nrole copies 4\nstream hk = 48\ngroup n = 40\nthreads 2\n"},
            {"rows along the sum", heads("h, k, m", "h, n, k", "f16"),
             "mma_m m\nwarps 4\nrole copies 4\nstream hk = 16\nthreads 1\n"},
            {"8 bits", heads("h, m, k", "n, h, k", "e4m3"), "mma_m m\nwarps 4\nstream hk = 32\nthreads 1\n"},
            {"window",
             "f(X[b, y, z, c]: bf16, W[r, s, c, n]: bf16) -> Y[b, u, v, n]: bf16\n"
             "    Y[b, u, v, n] = sum(r, s, c) X[b, u + r, v + s, c] * W[r, s, c, n]\n"
             "sizes b = 2, u = 2, v = 40, r = 2, s = 3, c = 32, n = 24, y = u + r - 1, z = v + s - 1\n"
             "schedule\n    stream rsc\n",
             "mma_m v\nwarps 4\nrole copies 4\nstream rsc = 16\ngroup u = 1\nthreads 2\n"},
            {"one place",
             "f(A[h, m, k]: bf16, B[n, k]: bf16) -> C[m, n]\n    C[m, n] = sum(k) A[2, m, k] * B[n, k]\n"
             "sizes h = 3, m = 72, n = 40, k = 80\n",
             "mma_m m\nwarps 4\nrole copies 4\nstream k = 16\nthreads 1\n"},
        },
        {"/ 96", "% 96"});
}

/// Convolutions, whose rows walk over images, rows and columns. They have strides, are dilated or padded, and walk
/// along one axis or three.
TEST(BulkKernels, WindowsOfRows) {
    const auto windows = [](const char* place, const char* sizes) {
        return fmt::format(
            "f(X[b, y, z, c]: bf16, W[o, r, s, c]: bf16) -> Y[b, u, v, o]: bf16\n"
            "    Y[b, u, v, o] = sum(r, s, c) {} * W[o, r, s, c]\nsizes {}\nschedule\n    stream rsc\n",
            place, sizes);
    };
    const std::string of_rows = "mma_m buv\nwarps 4\nrole copies 4\n", rsc = of_rows + "stream rsc = 32\n";
    const Subject all[] = {
        {"of one place each",
         windows("X[b, u + r, v + s, c]", "b = 3, y = 9, z = 12, c = 64, o = 40, r = s = 3, u = 7, v = 10"),
         rsc + "threads 2\n"},
        {"by steps",
         windows("X[b, 2 * u + r, 3 * v + s, c]", "b = 2, y = 17, z = 26, c = 32, o = 24, r = 3, s = 2, u = 8, v = 9"),
         rsc + "threads 1\n"},
        {"dilated",
         windows("X[b, u + 2 * r, v + 3 * s, c]", "b = 2, y = 11, z = 15, c = 32, o = 24, r = s = 3, u = 7, v = 9"),
         rsc + "threads 1\n"},
        {"backwards",
         windows("X[b, u - r + 2, v - s + 1, c]", "b = 2, y = 9, z = 11, c = 32, o = 24, r = 3, s = 2, u = 7, v = 10"),
         rsc + "threads 1\n"},
        {"with padding",
         windows("where(u + r >= 1 and u + r <= size(y) and v + s - 2 >= 0 and v + s - 2 < size(z), "
                 "X[b, u + r - 1, v + s - 2, c], 0)",
                 "b = 3, y = 7, z = 9, c = 32, o = 40, r = 3, s = 5, u = 7, v = 9"),
         rsc + "threads 2\n"},
        {"in a cluster",
         windows("X[b, u + r, v + s, c]", "b = 4, y = 10, z = 10, c = 32, o = 128, r = s = 3, u = v = 8"),
         rsc + "group o = 64\ncluster o = 2\nthreads 4\n"},
        {"along one axis",
         "f(X[b, y, c]: f16, W[r, c, o]: f16) -> Y[b, u, o]: f32\n"
         "    Y[b, u, o] = sum(r, c) X[b, u + r, c] * W[r, c, o]\n"
         "sizes b = 5, y = 37, c = 32, o = 40, r = 4, u = 34\nschedule\n    stream rc\n",
         "mma_m bu\nwarps 4\nstream rc = 16\nthreads 1\n"},
        {"of no batch",
         "f(X[y, z, c]: bf16, W[o, r, s, c]: bf16) -> Y[u, v, o]: bf16\n"
         "    Y[u, v, o] = sum(r, s, c) X[u + r, v + s, c] * W[o, r, s, c]\n"
         "sizes y = 15, z = 12, c = 32, o = 24, r = s = 3, u = 13, v = 10\nschedule\n    stream rsc\n",
         "mma_m uv\nwarps 4\nstream rsc = 32\nthreads 1\n"},
        {"along three axes",
         "f(X[b, x, y, z, c]: bf16, W[o, q, r, s, c]: bf16) -> Y[b, t, u, v, o]: bf16\n"
         "    Y[b, t, u, v, o] = sum(q, r, s, c) X[b, t + q, u + r, v + s, c] * W[o, q, r, s, c]\n"
         "sizes b = 2, x = 5, y = 6, z = 7, c = 32, o = 24, q = 2, r = 3, s = 2, t = 4, u = 4, v = 6\n"
         "schedule\n    stream qrsc\n",
         "mma_m btuv\nwarps 4\nstream qrsc = 32\nthreads 1\n"},
    };
    expect_all_right({std::begin(all), std::end(all)}, {"window_copy("}, {.windows = true});
}

TEST(BulkKernels, GoIntoEachOther) {
    expect_all_right(
        {
            {"in turn", attention("f16", "f16", "h = 2, q = 72, x = 88, k = 64, d = 48"),
             "mma_m q\nwarps 4\nstream x = 16\nthreads 1\n"},
            {"with a role", attention("bf16", "f32", "h = 2, q = 72, x = 144, k = 48, d = 40"),
             "mma_m q\nwarps 4\nrole copies 4\nstream x = 16\nthreads 2\n"},
            {"ahead", attention("bf16", "bf16", "h = 2, q = 136, x = 136, k = 32, d = 64"),
             std::string("mma_m q\nwarps 8\nrole copies 4\nstream x = 16\nthreads 1\n") + ahead},
            {"causal",
             "f(Q[q, k]: bf16, K[x, k]: bf16, V[x, d]: bf16) -> O[q, d]: bf16\n"
             "    S[q, x] = sum(k) Q[q, k] * K[x, k]\n    M[q, x] = where(x <= q, S[q, x] * k^-0.5, -inf)\n"
             "    P[q, x] = softmax(x) M[q, x]\n    O[q, d] = sum(x) P[q, x] * V[x, d]\nsizes q = x = 144, k = 32, d = "
             "24\n",
             std::string("mma_m q\nwarps 4\nrole copies 4\nstream x = 16\nthreads 1\n") + ahead},
            {"causal heads in turn",
             "f(Q[h, q, k]: bf16, K[h, x, k]: bf16, V[h, x, d]: bf16) -> O[h, q, d]: bf16\n"
             "    S[h, q, x] = sum(k) Q[h, q, k] * K[h, x, k]\n    M[h, q, x] = where(x <= q, S[h, q, x] * k^-0.5, "
             "-inf)\n"
             "    P[h, q, x] = softmax(x) M[h, q, x]\n    O[h, q, d] = sum(x) P[h, q, x] * V[h, x, d]\n"
             "sizes h = 3, q = x = 144, k = 32, d = 24\n",
             "mma_m q\nwarps 4\nrole copies 4\nstream x = 16\ngrid 2\n"},
            {"causal heads, a block for each group",
             "f(Q[h, q, k]: bf16, K[h, x, k]: bf16, V[h, x, d]: bf16) -> O[h, q, d]: bf16\n"
             "    S[h, q, x] = sum(k) Q[h, q, k] * K[h, x, k]\n    M[h, q, x] = where(x <= q, S[h, q, x] * k^-0.5, "
             "-inf)\n"
             "    P[h, q, x] = softmax(x) M[h, q, x]\n    O[h, q, d] = sum(x) P[h, q, x] * V[h, x, d]\n"
             "sizes h = 3, q = x = 144, k = 32, d = 24\n",
             "mma_m q\nwarps 4\nrole copies 4\nstream x = 16\ngrid 9\n"},
            {"causal in two groups of warps", masked("x <= q", "q = x = 200, k = 32, d = 24"),
             std::string("mma_m q\nwarps 8\nrole copies 4\nstream x = 16\nthreads 1\n") + ahead},
            {"causal in three, without turns", masked("x <= q", "q = x = 208, k = 16, d = 16"),
             std::string("mma_m q\nwarps 12\nrole copies 4\nstream x = 16\nthreads 1\nmatrix free\n") + ahead},
            {"window in turn", masked("x <= q and q < x + 40", "q = x = 264, k = 16, d = 16"),
             "mma_m q\nwarps 8\nrole copies 4\nstream x = 16\nthreads 2\n"},
            {"window ahead", masked("x <= q and q < x + 24", "q = x = 264, k = 16, d = 16"),
             std::string("mma_m q\nwarps 12\nrole copies 4\nstream x = 16\nthreads 1\n") + ahead},
            {"later rows", masked("q <= x + 8", "q = 200, x = 136, k = 16, d = 16"),
             std::string("mma_m q\nwarps 8\nrole copies 4\nstream x = 16\nthreads 1\n") + ahead},
            {"grouped queries",
             "f(Q[b, h, q, k]: bf16, K[b, x, k]: bf16, V[b, d, x]: bf16) -> O[b, h, q, d]: bf16\n"
             "    S[b, h, q, x] = sum(k) Q[b, h, q, k] * K[b, x, k]\n    P[b, h, q, x] = softmax(x) S[b, h, q, x] * "
             "k^-0.5\n"
             "    O[b, h, q, d] = sum(x) P[b, h, q, x] * V[b, d, x]\nsizes b = 2, h = 2, q = 24, x = 80, k = 32, d = "
             "24\n",
             "mma_m q\nwarps 4\nrole copies 4\nstream x = 16\nthreads 1\n"},
        },
        {"f16_r_t(", "bf16_r(", "store_staging", "fence_proxy_async", "wgmma_wait<1>", "_phase_ ^ 1",
         "group_after(group, 9, 9)"});
}

// ---- waits

/// A subject with each wait taken out in turn, all in one source.
struct Without {
    const Subject* subject;
    std::string taken;
    Planned planned;
    std::shared_ptr<const cpu_case::Reference> reference;
};
std::vector<Without> each_without(const Subject& subject, std::size_t num_before) {
    std::vector<Without> out;
    const Planned p = planned(subject.text, subject.schedule, hopper());
    const auto reference = std::make_shared<const cpu_case::Reference>(cpu_case::reference_of(p));
    each_without_a_wait(p.plan.kernels.at(0).scheduled, [&](const std::string& what, const ScheduledKernel& kernel) {
        ScheduledProgram program = p.plan.program();
        program.kernels.at(0) = kernel;
        out.push_back({&subject, what, p, reference});
        out.back().planned.source = cuda::emit(program, fmt::format("k{}_", num_before + out.size()));
    });
    return out;
}

// Values differ, or threads wait for ever, by some order in which what is under way is done. A maximum that lags
// touches no sums that products are adding to, whose waits order registers alone then.
TEST(BulkKernels, ShowThatAWaitIsMissing) {
    const Subject subjects[] = {
        {"product", product_of("m, k", "n, k", "bf16", "bf16", "m = 64, n = 80, k = 144"),
         "mma_m m\nwarps 4\ngroup n = 40\nstream k = 16\nthreads 1\nrole copies 4\n"},
        {"attention", attention("bf16", "bf16", "h = 2, q = 72, x = 144, k = 32, d = 64"),
         std::string("mma_m q\nwarps 4\nrole copies 4\nstream x = 16\nthreads 1\nmaximum exact\n") + ahead},
        {"normed rows", normed_rows("m = 72, n = 24, k = 272"), "mma_m m\nwarps 4\nstream k = 32\nthreads 1\n"},
    };
    std::vector<Without> all;
    std::vector<Planned> kernels;
    for (const Subject& subject : subjects)
        for (Without& one : each_without(subject, all.size())) {
            kernels.push_back(one.planned);
            all.push_back(std::move(one));
        }
    const auto module = cpu_case::compiled_for_cpu(cpu_case::in_one_source(kernels));
    std::vector<std::string> unseen;
    for (const Without& one : all) {
        const std::vector<Timing> timings = all_timings();
        if (std::all_of(timings.begin(), timings.end(),
                        [&](Timing timing) { return fault_of(one.planned, *one.reference, *module, timing).empty(); }))
            unseen.push_back(one.subject->name + ": " + one.taken);
    }
    EXPECT_GE(all.size(), 30U);
    // What is owed behind the loop is told a turn later, in the next group: the copies come later, and nothing else
    // changes. And room for the next group's Q but one there is as soon as its K have room, which come behind those of
    // the group between.
    EXPECT_THAT(unseen, testing::ElementsAre("product: word that A is free", "attention: wait for room Q of step 0"));
}

}  // namespace
}  // namespace napkin
