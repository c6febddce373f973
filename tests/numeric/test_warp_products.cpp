// Products that every warp runs by itself, with operands that threads copy. They are emitted for a GPU without wgmma
// and without bulk copies, and run thread by thread on the CPU against their definition. They are also compiled where
// NVRTC is found.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "algebra/fragment.hpp"
#include "algebra/shared_operand.hpp"
#include "diagram/sizes.hpp"
#include "machine/machine.hpp"
#include "numeric/block_on_cpu.hpp"
#include "numeric/planned_on_cpu.hpp"
#include "plan/blocks.hpp"
#include "plan/choose.hpp"
#include "run/gpu/compiler.hpp"
#include "schedule/fragments.hpp"
#include "support/ids.hpp"
#include "support/parsed.hpp"

namespace napkin {
namespace {

using cpu_case::fault_of;
using cpu_case::Planned;
using cpu_case::planned;
using testing::HasSubstr;

void expect_right(const std::string& text, const std::string& schedule, const Machine& machine, std::size_t num_others = 0) {
    const Planned p = planned(text, schedule, machine);
    const auto others = std::count_if(p.plan.kernels.begin(), p.plan.kernels.end(),
                                      [](const KernelPlan& k) { return !k.scheduled.on_tensor_cores(); });
    ASSERT_EQ(static_cast<std::size_t>(others), num_others) << to_string(p.plan);
    EXPECT_THAT(p.source.text, HasSubstr("load_matrices"));
    const auto module = cpu_case::compiled_for_cpu(p.source);
    const cpu_case::Reference reference = cpu_case::reference_of(p);
    for (const bool late : {false, true})
        for (const bool backwards : {false, true})
            EXPECT_EQ(fault_of(p, reference, *module, {late, late, backwards}), "")
                << (late ? "late " : "early ") << backwards << "\n"
                << p.source.text;
    if (!gpu::cuda_compiler()) return;
    const auto cubin = gpu::compile_cuda(cuda::complete(p.source), machine.architecture);
    ASSERT_TRUE(cubin.ok()) << render(cubin.errors());
    for (const gpu::AssemblerReport& report : cubin->kernels) {
        EXPECT_EQ(report.spill_store_bytes, 0) << p.source.text;
        EXPECT_EQ(report.stack_bytes, 0) << p.source.text;
    }
}

const ScheduledKernel& only(const Planned& p) { return p.plan.kernels.at(0).scheduled; }
Machine a100() { return load_machine("a100-sxm-80gb").value(); }

std::string product(const std::string& a, const std::string& b, const std::string& type, const std::string& sizes,
                    const std::string& result = "f32") {
    return fmt::format(
        "product(A[{0}]: {2}, B[{1}]: {2}) -> C[m, n]: {4}\n    C[m, n] = sum(k) A[{0}] * B[{1}]\nsizes {3}\n", a, b,
        type, sizes, result);
}

// What a thread gets is what the layouts of the instruction's operands say, from where the layout of the tile in shared
// memory has it.
TEST(WarpProducts, MatricesAreLoadedAsTheLayoutsSay) {
    constexpr std::int64_t rows = 64, columns = 128, rows_left = 60, columns_left = 120, values = 8;
    cuda::CudaSource source;
    cuda::KernelEntry& probe = source.entries.emplace_back();
    probe.name = "probe", probe.threads = 64;
    source.text = R"(
namespace napkin_gpu::probe_code {
template <bool down, bool transposed> NAPKIN_INLINE unsigned short* load_all(unsigned short* to, unsigned tile) {
    for (int row = 0; row < 64; row += 16)
        for (int part = 0; part < 16; part += 2) {
            unsigned x[4];
            load_matrices<down, transposed>(x, tile, 64 * 128, row, part);
            for (int i = 0; i < 8; ++i)
                if (warp_of_thread() == 0) to[lane_of_thread() * 8 + i] = (unsigned short)(x[i / 2] >> i % 2 * 16);
            to += 32 * 8;
        }
    return to;
}
extern "C" __global__ void __launch_bounds__(64) probe(const __grid_constant__ Arguments<1, 2, 1> arguments, char* scratch) {
    extern __shared__ __align__(1024) char shared_memory[];
    const unsigned tile = shared_address(shared_memory);
    copy_operand<64, 2, 64>(tile, static_cast<const f16*>(arguments.inputs[0]), 128, 60, 120);
    commit_copies();
    wait_copies<0>();
    sync();
    unsigned short *loaded = static_cast<unsigned short*>(arguments.outputs[0]), *held = static_cast<unsigned short*>(arguments.outputs[1]);
    for (int i = threadIdx.x; i < 64 * 128; i += 64) held[i] = reinterpret_cast<const unsigned short*>(shared_memory)[i];
    loaded = load_all<true, false>(loaded, tile), loaded = load_all<false, true>(loaded, tile);
    loaded = load_all<false, false>(loaded, tile), loaded = load_all<true, true>(loaded, tile);
}
}
)";
    std::vector<std::uint16_t> given(rows * columns), held(given.size()), loaded(4 * 4 * 8 * 32 * values);
    for (std::size_t i = 0; i < given.size(); ++i) given[i] = static_cast<std::uint16_t>(i + 1);
    const auto address = [](auto& of) { return reinterpret_cast<std::uint64_t>(of.data()); };
    const auto module = cpu_case::compiled_for_cpu(source);
    ASSERT_TRUE(cpu_case::run_on_cpu(*module, source.entries[0], {address(given), address(loaded), address(held), 0}, {}));

    const auto expected = [&](std::int64_t row, std::int64_t column) {
        return row < rows_left && column < columns_left ? row * columns + column + 1 : 0;
    };
    const layouts::Swizzled tile = layouts::shared_operand(rows, columns, 2, layouts::Major::k, operand_row_bytes).value();
    for (std::int64_t r = 0; r < rows; ++r)
        for (std::int64_t c = 0; c < columns; ++c)
            ASSERT_EQ(held[static_cast<std::size_t>(tile({r, c}))], expected(r, c)) << r << " " << c;

    // The operands of mma.sync.m16n8k16: core matrices of a warp, two by two, and one by two.
    const layouts::Fragment a = layouts::core_grid(2, 2, 2, 1),
                            b = layouts::tiled(layouts::core_grid(2, 1, 2, 1), 16, 16).value();
    std::size_t at_loaded = 0;
    for (const auto& [fragment, transposed] : {std::pair{a, false}, {a, true}, {b, false}, {b, true}})
        for (std::int64_t row = 0; row < rows; row += 16)
            for (std::int64_t part = 0; part < 16; part += 2)
                for (std::int64_t lane = 0; lane < 32; ++lane)
                    for (std::int64_t v = 0; v < values; ++v) {
                        const std::int64_t place = fragment.map({lane, v}), mn = place % 16, k = place / 16;
                        ASSERT_EQ(loaded[at_loaded++],
                                  transposed ? expected(row + k, 8 * part + mn) : expected(row + mn, 8 * part + k))
                            << transposed << " " << row << " " << part << " " << lane << " " << v;
                    }
}

TEST(WarpProducts, ReadOperandsAlongEitherDimension) {
    for (const char* a : {"m, k", "k, m"})
        for (const char* b : {"n, k", "k, n"}) {
            const std::string type = std::string(a) == "m, k" ? "f16" : "bf16";
            SCOPED_TRACE(fmt::format("{} {} {}", a, b, type));
            expect_right(product(a, b, type, "m = 64, n = 80, k = 96"),
                         "mma_m m\nwarps 2\ngroup n = 80\nstream k = 32\n", a100());
        }
}

TEST(WarpProducts, TakeRaggedTilesOfAnyNumberOfWarps) {
    int number = 0;
    for (const int warps : {1, 2, 3, 4, 8}) {
        const char* const sizes[] = {"m = 200, n = 56, k = 40", "m = 24, n = 200, k = 72", "m = 136, n = 264, k = 16"};
        const char* const these = sizes[number++ % 3];
        SCOPED_TRACE(fmt::format("{} {}", warps, these));
        const bool is_odd = warps % 2 == 1;
        expect_right(product(is_odd ? "m, k" : "k, m", is_odd ? "k, n" : "n, k", "bf16", these),
                     fmt::format("mma_m m\nwarps {}\n", warps), a100());
    }
}

TEST(WarpProducts, SumAlongFlatAxes) {
    expect_right(
        "f(A[h, m, k]: f16, B[h, k, n]: f16) -> C[m, n]\n    C[m, n] = sum(h, k) A[h, m, k] * B[h, k, n]\n"
        "sizes h = 3, m = 72, n = 80, k = 64\nschedule\n    stream hk\n",
        "mma_m m\nwarps 2\ngroup n = 80\nstream hk = 32\n", a100());
    expect_right(
        "f(X[b, y, z, c]: bf16, W[r, s, c, n]: bf16) -> Y[b, u, v, n]\n"
        "    Y[b, u, v, n] = sum(r, s, c) X[b, u + r, v + s, c] * W[r, s, c, n]\n"
        "sizes b = 2, u = 2, v = 40, r = 2, s = 3, c = 32, n = 24, y = u + r - 1, z = v + s - 1\n"
        "schedule\n    stream rsc\n",
        "mma_m v\nwarps 2\nstream rsc = 16\ngroup u = 1\n", a100());
}

TEST(WarpProducts, TakeEightBits) {
    for (const char* type : {"e4m3", "e5m2"})
        expect_right(product("m, k", "n, k", type, "m = 96, n = 80, k = 160"),
                     "mma_m m\nwarps 2\ngroup n = 48\nstream k = 64\n", load_machine("rtx-4090").value());
}

TEST(WarpProducts, TakeTf32) {
    for (const char* name : {"a100-sxm-80gb", "h200"})
        expect_right(product("m, k", "n, k", "tf32", "m = 96, n = 80, k = 100"),
                     "mma_m m\nwarps 2\ngroup n = 48\nstream k = 32\n", load_machine(name).value());
}

TEST(WarpProducts, GoIntoEachOther) {
    const std::string attention = R"(
attention(Q[h, q, k]: bf16, K[h, x, k]: bf16, V[h, x, d]: bf16) -> O[h, q, d]: f32
    S[h, q, x] = sum(k) Q[h, q, k] * K[h, x, k]
    P[h, q, x] = softmax(x) S[h, q, x] * k^-0.5
    O[h, q, d] = sum(x) P[h, q, x] * V[h, x, d]
sizes h = 2, q = 72, x = 104, k = 64, d = 48
)";
    expect_right(attention, "mma_m q\nwarps 2\nstream x = 16\n", a100());
    expect_right(attention, "mma_m q\nwarps 4\nstream x = 32\n", a100());
    expect_right(attention, "mma_m q\nwarps 4\n", a100());
}

// Rows that begin anywhere are copied into longer ones first, each array once.
TEST(WarpProducts, HaveFactorsInRowsOfAnyLength) {
    const std::string schedule = "mma_m m\nwarps 2\n";
    expect_right(product("m, k", "n, k", "bf16", "m = 95, n = 97, k = 103"), schedule, a100(), 2);
    expect_right(product("m, k", "k, n", "f16", "m = 64, n = 44, k = 96"), schedule, a100(), 1);
    expect_right(
        "f(A[b, m, k]: bf16, B[n, k]: bf16) -> C[b, m, n]\n    C[b, m, n] = sum(k) A[b, m, k] * B[n, k]\n"
        "sizes b = 3, m = 40, n = 24, k = 37\n",
        schedule, a100(), 2);
    const Planned alike = planned(product("m, k", "n, k", "bf16", "m = 64, n = 64, k = 64"), schedule, a100());
    EXPECT_EQ(alike.plan.kernels.size(), 1U);
}

// Rows of any length go to memory, in 16 bytes where those are aligned.
TEST(WarpProducts, GoToMemoryInAnyType) {
    const auto stored = [](const std::string& type, const std::string& sizes, const std::string& schedule) {
        SCOPED_TRACE(type + " " + sizes);
        expect_right("product(A[m, k]: bf16, B[n, k]: bf16) -> C[m, n]: " + type +
                         "\n    C[m, n] = sum(k) A[m, k] * B[n, k]\nsizes " + sizes + "\n",
                     "mma_m m\nwarps 2\n" + schedule, a100());
    };
    stored("bf16", "m = 40, n = 77, k = 48", "group n = 40\n");
    stored("f16", "m = 32, n = 104, k = 48", "group n = 72\n");
    stored("e4m3", "m = 40, n = 80, k = 16", "");
    stored("f32", "m = 40, n = 77, k = 16", "group n = 24\n");
}

// Groups with the most chunks come first, one for each block.
TEST(WarpProducts, SkipWhatMasksLeaveOut) {
    for (const char* condition : {"x <= q", "x >= q", "x <= 2 * q and x >= q"})
        for (const char* schedule :
             {"mma_m q\nwarps 2\nstream x = 16\n", "mma_m q\nwarps 1\nstream x = 32\nthreads 3\n"}) {
            SCOPED_TRACE(condition);
            const std::string text = fmt::format(
                "masked(Q[h, q, k]: bf16, K[h, x, k]: bf16, V[h, x, d]: bf16) -> O[h, q, d]: bf16\n"
                "    S[h, q, x] = sum(k) Q[h, q, k] * K[h, x, k]\n    M[h, q, x] = where({}, S[h, q, x] * k^-0.5, "
                "-inf)\n"
                "    P[h, q, x] = softmax(x) M[h, q, x]\n    O[h, q, d] = sum(x) P[h, q, x] * V[h, x, d]\n"
                "sizes h = 3, q = 72, x = 104, k = 32, d = 24\n",
                condition);
            const Planned p = planned(text, schedule, a100());
            EXPECT_TRUE(only(p).has_uneven_groups());
            const bool is_said = std::string(schedule).find("threads 3") != std::string::npos;
            EXPECT_EQ(p.source.entries[0].blocks, is_said ? 3 : p.source.entries[0].groups) << p.source.text;
            expect_right(text, schedule, a100());
        }
}

// ---- which instruction, and which copies

std::string instruction_of(const Planned& p) {
    for (const Step& step : only(p).steps)
        if (const auto product = mma_product(only(p), step)) return product->instruction->name;
    return "none";
}

/// What is said of products on the tensor cores of a machine that cannot have them.
std::string code_of(const std::string& text, const Machine& machine) {
    PlanOptions options;
    options.file = std::make_shared<const Source>(Source{"by_hand.schedule", "mma_m m\n"});
    const Derived derived = derived_from(text);
    const auto plan = choose_blocks(derived, bind_sizes(derived.diagram, {}).value(), machine, {}, options);
    return plan.ok() ? "" : plan.errors().front().code;
}

TEST(WarpProducts, AreForTilesThatSeveralWarpsDoNotTakeTogether) {
    const std::string text = product("m, k", "n, k", "bf16", "m = 512, n = 512, k = 512");
    const Machine h200 = load_machine("h200").value();
    const auto of = [&](const Machine& machine, const std::string& schedule) {
        return instruction_of(planned(text, "mma_m m\n" + schedule, machine));
    };
    EXPECT_EQ(of(h200, "warps 4\n"), "wgmma");
    EXPECT_EQ(of(h200, "warps 2\n"), "mma");
    EXPECT_EQ(of(a100(), "warps 4\n"), "mma");
    Machine without_copies = h200;
    std::erase_if(without_copies.copies, [](const CopyInstruction& c) { return c.name == "cp.async.bulk.tensor"; });
    EXPECT_EQ(of(without_copies, "warps 4\n"), "mma") << "wgmma does not see what threads copy";
    const auto without = [](Machine machine, const char* name) {
        std::erase_if(machine.copies, [&](const CopyInstruction& c) { return c.name == name; });
        return machine;
    };
    EXPECT_EQ(code_of(text, without(a100(), "ldmatrix")), "no-tensor") << "a warp's operands are in registers";
    EXPECT_EQ(code_of(text, without(a100(), "cp.async")), "no-tensor");
    EXPECT_EQ(of(without(h200, "ldmatrix"), "warps 4\n"), "wgmma");
    EXPECT_EQ(of(without(h200, "cp.async"), "warps 4\n"), "wgmma");
    const std::string narrow = product("m, k", "n, k", "bf16", "m = 512, n = 512, k = 512", "bf16");
    const auto boxes_of = [&](const Machine& machine) {
        const Planned p = planned(narrow, "mma_m m\nwarps 4\ngroup n = 64\n", machine);
        int boxes = 0;
        for (const Place& place : only(p).schedule.places) boxes += place.staging_tiles;
        return boxes;
    };
    EXPECT_GT(boxes_of(h200), 0);
    EXPECT_EQ(boxes_of(without(h200, "stmatrix")), 0);
    Machine without_stores = h200;
    std::erase_if(without_stores.copies,
                  [](const CopyInstruction& c) { return c.name == "cp.async.bulk.tensor" && c.to == "GMEM"; });
    EXPECT_EQ(boxes_of(without_stores), 0);
    Machine without_mma = a100();
    std::erase_if(without_mma.instructions, [](const Instruction& i) { return i.name == "mma"; });
    EXPECT_EQ(code_of(text, without_mma), "no-tensor");
}

TEST(WarpProducts, AreFilledByBulkCopiesWhereThereAreSome) {
    const std::string text = product("m, k", "n, k", "bf16", "m = 512, n = 512, k = 512");
    const Machine h200 = load_machine("h200").value();
    const Planned bulk = planned(text, "mma_m m\nwarps 2\n", h200), own = planned(text, "mma_m m\nwarps 2\n", a100());
    EXPECT_EQ(bulk.source.entries[0].maps.size(), 3U) << "they bring A and B, and store C";
    EXPECT_THAT(bulk.source.text, HasSubstr("wait_phase"));
    EXPECT_GT(num_barriers(only(bulk)), 0);
    EXPECT_TRUE(own.source.entries[0].maps.empty());
    EXPECT_THAT(own.source.text, HasSubstr("wait_copies"));
    EXPECT_EQ(num_barriers(only(own)), 0);
    EXPECT_EQ(own.source.entries[0].packed, (std::vector<bool>{true, true}));
    if (!gpu::cuda_compiler()) GTEST_SKIP() << "NVRTC is not found";
    const auto cubin = gpu::compile_cuda(cuda::complete(bulk.source), "sm_90a");
    ASSERT_TRUE(cubin.ok()) << render(cubin.errors());
    EXPECT_EQ(cubin->kernels.at(0).spill_store_bytes, 0);
}

// Threads copy 16 bytes at a time, and a bulk copy begins at a multiple of as many.
TEST(WarpProducts, TilesBeginWhereThreadsMayCopyFrom) {
    const auto is_operand = [&](const std::string& columns, const Machine& machine) {
        const std::string text = product("m, k", "k, n", "bf16", "m = 64, n = 80, k = 64");
        const Derived derived = derived_from(text);
        PlanOptions options;
        options.file = std::make_shared<const Source>(
            Source{"by_hand.schedule", "mma_m m\nwarps 2\ngroup n = " + columns + "\n"});
        return choose_blocks(derived, bind_sizes(derived.diagram, {}).value(), machine, {}, options).ok();
    };
    EXPECT_TRUE(is_operand("40", a100()));
    EXPECT_FALSE(is_operand("36", a100()));
    EXPECT_TRUE(is_operand("40", load_machine("h200").value()));
    EXPECT_FALSE(is_operand("36", load_machine("h200").value()));
}

// What is read elsewhere than in registers is not read past a ragged tile's end, and what stands for it there does not
// count.
TEST(WarpProducts, StandBesideOtherLoads) {
    expect_right(
        "f(Q[q, k]: bf16, K[k, x]: bf16, V[d, x]: bf16) -> O[q, d]\n    S[q, x] = sum(k) Q[q, k] * K[k, x]\n"
        "    P[q, x] = softmax(x) S[q, x] * k^-0.5\n    O[q, d] = sum(x) P[q, x] * V[d, x]\n"
        "sizes q = 128, k = 64, x = 496, d = 3\n",
        "mma_m q\nwarps 8\ngroup d = 1\nstream x = 80\nthreads 1\n", a100());
    expect_right(
        "f(X[m, k]: bf16, W[n, k]: bf16) -> Y[m, n]\n    R[m] = rsqrt(sum(k) X[m, k] * X[m, k] / size(k) + 1e-5)\n"
        "    Y[m, n] = sum(k) X[m, k] * R[m] * W[n, k]\nsizes m = 8, n = 24, k = 1040\n",
        "mma_m m\nwarps 8\ngroup n = 16\nstream k = 128\nthreads 1\n", a100());
}

// ---- waits

TEST(WarpProducts, WaitForTheCopiesOfTheirTurnAndForNoLaterOnes) {
    const auto waits = [](const Planned& p) {
        std::map<std::string, int> out;
        for (const Step& step : only(p).steps)
            if (const auto* load = std::get_if<Load>(step.statement); load && only(p).is_operand(load->variable))
                out[only(p).variable(load->variable).name] = step.copies_behind;
        return out;
    };
    using Waits = std::map<std::string, int>;
    const Planned p = planned(product("m, k", "n, k", "bf16", "m = 64, n = 64, k = 512"),
                              "mma_m m\nwarps 4\ngroup n = 64\nstream k = 64\n", a100());
    EXPECT_THAT(to_string(p.plan), testing::ContainsRegex("storage A +operand, inner k, stages 4"));
    EXPECT_EQ(waits(p), (Waits{{"A", -1}, {"B", 2 * 3}})) << "B comes after A, and both have to be there";
    const Planned once = planned(product("m, k", "n, k", "bf16", "m = 64, n = 64, k = 64"),
                                 "mma_m m\nwarps 4\nstream k = 64\n", a100());
    EXPECT_EQ(waits(once), (Waits{{"A", -1}, {"B", 0}}));
}

}  // namespace
}  // namespace napkin
