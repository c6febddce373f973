// Emitted CUDA: compiled where NVRTC is found, and run against the definition of its diagrams where there is a GPU.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <optional>
#include <random>
#include <set>

#include "check/sample.hpp"
#include "check/small_sizes.hpp"
#include "derive/derive.hpp"
#include "numeric/cpu_kernel_case.hpp"
#include "numeric/without_a_wait.hpp"
#include "plan/choose.hpp"
#include "plan/choose_form.hpp"
#include "run/gpu/assembled_plan.hpp"
#include "run/gpu/kernel.hpp"
#include "support/examples.hpp"
#include "support/random_diagram.hpp"
#include "support/text.hpp"

namespace napkin {
namespace {

constexpr std::uint64_t batch_size = 40;
/// What is compiled where no GPU runs it, half a second to a second for each kernel: so many batches, of each so many
/// kernels.
constexpr int compiled_batches = 3;
constexpr std::uint64_t compiled_kernels = 15;
/// What the slow paths of CUDA's own functions keep in local memory: the sine's digits of 2/π, and registers around a
/// call.
constexpr std::int64_t most_local_bytes = 128;

std::uint64_t first_gpu_seed() {
    const char* given = std::getenv("NAPKIN_SEED");
    return given ? std::strtoull(given, nullptr, 10) : 1;
}

/// Runs the cases where there is a GPU; else they must compile for Hopper, with what their assembler may not say left
/// unsaid.
void check(const std::vector<cpu_case::Case>& cases) {
    if (gpu::device()) {
        const auto failures = cpu_case::failures_on_gpu(cases);
        for (std::size_t k = 0; k < cases.size(); ++k) EXPECT_EQ(failures[k], "") << cpu_case::describe(cases[k]);
        return;
    }
    const auto cubin = gpu::compile_cuda(cuda::complete(cpu_case::in_one_source(cases)), "sm_90a");
    ASSERT_TRUE(cubin.ok()) << render(cubin.errors());
    EXPECT_TRUE(cubin->remarks.empty()) << cubin->remarks.front();
    std::size_t kernels = 0;
    for (const cpu_case::Case& c : cases) kernels += c.gpu_source.entries.size();
    EXPECT_EQ(cubin->kernels.size(), kernels);
    // Schedules are drawn at random here, and nobody asks for the next one: all that is refused is named.
    std::vector<std::string> refused;
    for (const gpu::AssemblerReport& report : cubin->kernels) {
        for (const std::string& why : gpu::refusals(report))
            refused.push_back(fmt::format("{}: {}", report.kernel, why));
        EXPECT_LE(report.stack_bytes, most_local_bytes)
            << report.kernel << " spills " << report.spill_store_bytes << " bytes";
    }
    testing::Test::RecordProperty("refused", join(refused, "\n"));
}

class GpuKernels : public testing::TestWithParam<int> {};
TEST_P(GpuKernels, ComputeTheirDefinition) {
    const int batch = GetParam();
    if (!gpu::cuda_compiler()) GTEST_SKIP() << "NVRTC is not found";
    if (!gpu::device() && batch >= compiled_batches) GTEST_SKIP() << "there is no GPU";
    RandomDiagramOptions options;
    if (batch % 3 == 1) options.types = {DType::f32, DType::f16, DType::bf16};
    if (batch % 3 == 2) options.types = {DType::f64, DType::f32};
    std::vector<cpu_case::Case> cases;
    for (std::uint64_t k = 0; k < (gpu::device() ? batch_size : compiled_kernels); ++k) {
        const std::uint64_t seed = first_gpu_seed() + static_cast<std::uint64_t>(batch) * batch_size + k;
        const Diagram diagram = random_diagram(seed, options);
        cases.push_back(cpu_case::make_case(diagram, cpu_case::some_extents(diagram, seed), seed,
                                            fmt::format("k{}", seed), {}, cpu_case::warps()));
    }
    check(cases);
}
INSTANTIATE_TEST_SUITE_P(Batches, GpuKernels, testing::Range(0, 25));

// ---- barriers: an order of steps is right when two that touch the same memory, one of them writing, have a barrier
// between them -----

/// What one step touches: cells of the arena, and whole arrays in memory, which count as cells behind all others.
struct Accesses {
    std::set<std::int64_t> reads, writes;
};

/// The phases of a reduction that warps share: what each of them does, and what is done once all have.
using Phases = std::vector<Accesses>;
/// behind all that lies in the arena, where it must not lie
constexpr std::int64_t partial_cells = std::int64_t{1} << 40;

/// Where the variable's tile lies.
std::set<std::int64_t> cells_of(const ScheduledKernel& k, VariableId v) {
    std::set<std::int64_t> cells;
    const Layout& l = k.layout(v);
    for (std::int64_t i = 0; k.is_held(v) && i < l.count * k.cell_values(k.is_whole(v)); ++i)
        cells.insert(l.offset + i);
    if (k.is_view(v)) cells.insert(-1 - k.variable(v).array);
    return cells;
}

Accesses accesses_of(const ScheduledKernel& k, const Step& step) {
    Accesses out;
    const auto arena = [&](std::set<std::int64_t>& cells, VariableId v) {
        const Layout& l = k.layout(v);
        if (!k.is_held(v)) return;
        for (std::int64_t i = 0; i < l.count * k.cell_values(k.is_whole(v)); ++i) cells.insert(l.offset + i);
    };
    const auto memory = [&](std::set<std::int64_t>& cells, VariableId v) { cells.insert(-1 - k.variable(v).array); };
    if (const auto* load = std::get_if<Load>(step.statement); load && !step.stays) {
        arena(out.writes, load->variable), memory(out.reads, load->variable);
        for (const Index& index : k.variable(load->variable).gathers)
            for (const VariableId v : read_variables(index.value())) arena(out.reads, v), memory(out.reads, v);
    }
    if (const auto* store = std::get_if<Store>(step.statement); store && !k.is_view(store->variable))
        arena(out.reads, store->variable), memory(out.writes, store->variable);
    if (const auto* init = std::get_if<Init>(step.statement)) arena(out.writes, init->variable);
    if (const auto* compute = std::get_if<Compute>(step.statement)) {
        arena(out.writes, compute->variable);
        if (k.is_view(compute->variable)) memory(out.writes, compute->variable);
        for (const Read* r : reads_of(*compute)) {
            arena(out.reads, r->variable());
            if (k.is_view(r->variable())) memory(out.reads, r->variable());
        }
    }
    return out;
}

Phases phases_of(const ScheduledKernel& k, const Step& step) {
    const Accesses whole = accesses_of(k, step);
    if (step.atom < 0 || !k.atom(step).shared) return {whole};
    // What the body reads is read by every warp, what the carry reads by whoever makes the result.
    const auto reads = [&](const Expr& e) {
        std::set<std::int64_t> cells;
        if (!e) return cells;
        visit(e, [&](const Expr& node) {
            const Read* r = as<Read>(node);
            if (!r) return;
            const std::set<std::int64_t> own = cells_of(k, r->variable());
            cells.insert(own.begin(), own.end());
        });
        return cells;
    };
    const auto& compute = std::get<Compute>(*step.statement);
    Accesses shares{reads(compute.body), {partial_cells}}, result{reads(compute.carry), whole.writes};
    result.reads.insert(partial_cells);
    return {shares, result};
}

/// The steps in the order of one group; loop i turns turns[i] times.
void trace(const ScheduledKernel& k, const std::vector<Node>& nodes, const std::vector<std::int64_t>& turns,
           std::vector<StepId>& out) {
    for (const Node& node : nodes) {
        if (const StepId* step = std::get_if<StepId>(&node)) out.push_back(*step);
        if (const auto* loop = std::get_if<LoopId>(&node))
            for (std::int64_t i = 0; i < turns[at(*loop)]; ++i) trace(k, k.loop(*loop).body, turns, out);
    }
}

bool races_with(const ScheduledKernel& k, const std::vector<Phases>& touches, const std::vector<std::int64_t>& turns) {
    const auto meet = [](const std::set<std::int64_t>& a, const std::set<std::int64_t>& b) {
        return std::any_of(a.begin(), a.end(), [&](std::int64_t cell) { return b.contains(cell); });
    };
    std::vector<StepId> steps;
    for (std::int64_t group = 0; group < std::min<std::int64_t>(2, k.num_groups()); ++group)
        trace(k, k.body, turns, steps);
    struct Moment {
        const Accesses* touches;
        bool synchronizes;  ///< before it
    };
    std::vector<Moment> moments;
    for (const StepId s : steps) {
        const Phases& phases = touches[static_cast<std::size_t>(s)];
        for (std::size_t p = 0; p < phases.size(); ++p)
            moments.push_back({&phases[p], p == 0 ? k.step(s).synchronizes : k.step(s).synchronizes_inside});
    }
    for (std::size_t j = 0; j < moments.size(); ++j)
        for (std::size_t i = j; i-- > 0;) {
            if (moments[i + 1].synchronizes) break;
            const Accesses &a = *moments[i].touches, &b = *moments[j].touches;
            if (meet(a.writes, b.reads) || meet(a.reads, b.writes) || meet(a.writes, b.writes)) return true;
        }
    return false;
}

/// Whether two steps meet without a barrier between them, over two groups whose loops turn as often as they may, at
/// most two times.
bool races(const ScheduledKernel& k, const std::vector<Phases>& touches) {
    std::vector<std::int64_t> turns;
    for (const ScheduledLoop& loop : k.loops) turns.push_back(iterations_of(k, loop).least);
    while (true) {
        if (races_with(k, touches, turns)) return true;
        std::size_t i = 0;
        for (; i < turns.size(); ++i) {
            const Iterations may = iterations_of(k, k.loops[LoopId::of(i)]);
            if (turns[i]++ < std::min<std::int64_t>(2, may.most)) break;
            turns[i] = may.least;
        }
        if (i == turns.size()) return false;
    }
}

TEST(Synchronisation, NoStepMeetsAnotherWithoutABarrierAndNoBarrierIsTooMany) {
    int barriers = 0, kernels = 0, shared = 0;
    for (std::uint64_t seed = 1; seed <= 200; ++seed) {
        const Diagram diagram = random_diagram(seed, {});
        const cpu_case::Case c = cpu_case::make_case(diagram, cpu_case::some_extents(diagram, seed), seed, "k", {},
                                                     cpu_case::warps());
        for (const ScheduledKernel& kernel : c.scheduled.kernels) {
            std::vector<Phases> touches;
            for (const Step& step : kernel.steps) touches.push_back(phases_of(kernel, step));
            EXPECT_FALSE(races(kernel, touches)) << cpu_case::describe(c);
            ++kernels;
            EXPECT_EQ(race_text(kernel), "") << cpu_case::describe(c);
            expect_each_wait_needed(kernel, fmt::format("seed {}\n{}", seed, cpu_case::describe(c)));
            // Where any size may come, the sizes at hand may need fewer.
            if (seed % 2 != 0) continue;
            ScheduledKernel less = kernel;
            for (Step& step : less.steps) {
                if (!step.synchronizes) continue;
                ++barriers;
                step.synchronizes = false;
                EXPECT_TRUE(races(less, touches)) << "a barrier too many in seed " << seed << "\n"
                                                  << cpu_case::describe(c);
                step.synchronizes = true;
            }
            for (Step& step : less.steps) {
                if (step.atom < 0 || !kernel.atom(step).shared) continue;
                ++shared;
                step.synchronizes_inside = false;
                EXPECT_TRUE(races(less, touches)) << "its warps need not meet in seed " << seed << "\n"
                                                  << cpu_case::describe(c);
                step.synchronizes_inside = true;
                // What warps leave behind has room of its own: every variable lies before it.
                for (const VariableId id : kernel.layouts.ids()) {
                    if (!kernel.is_held(id)) continue;
                    const std::int64_t count = kernel.layouts[id].count * kernel.cell_values(kernel.is_whole(id));
                    EXPECT_LE(kernel.layouts[id].offset + count, kernel.partials_offset) << cpu_case::describe(c);
                }
                const VariableId target = std::get<Compute>(*step.statement).variable;
                EXPECT_LE(kernel.partials_offset + kernel.layout(target).count * kernel.schedule.warps.value,
                          kernel.arena_values);
            }
            if (testing::Test::HasFailure()) return;
        }
    }
    EXPECT_GE(kernels, 200);
    EXPECT_GE(barriers, 500);
    EXPECT_GE(shared, 40);
}

TEST(Synchronisation, OfExamplesHasNoWaitTooFewOrTooMany) {
    int waits = 0, programs = 0;
    // Every second one, and a quarter where threads copy themselves, for CI's sake: the random kernels of the tensor
    // cores' tests are of both kinds, too.
    for (const auto& [name, each] : {std::pair{"h200", 2}, std::pair{"a100-sxm-80gb", 4}}) {
        int number = 0;
        const Machine machine = load_machine(name).value();
        PlanOptions options;
        options.quick = true;
        for (const ExampleDiagram& example : example_diagrams()) {
            const auto extents = bind_sizes(example.diagram);
            if (!extents || number++ % each != 0) continue;
            const Derived derived = choose_form(derive(example.diagram).value(), *extents, machine);
            const auto plan = choose_plan(derived, *extents, machine, {}, options);
            ASSERT_TRUE(plan.ok()) << example.name << "\n" << render(plan.errors());
            ++programs;
            for (const KernelPlan& kernel : plan->kernels) {
                EXPECT_EQ(race_text(kernel.scheduled), "") << example.name << " on " << name;
                waits += expect_each_wait_needed(kernel.scheduled, example.name + " on " + name);
            }
        }
    }
    EXPECT_GE(programs, 30);
    EXPECT_GE(waits, 100);
}

TEST(GpuExamples, AreNeverBadAtRaggedSizes) {
    if (!gpu::cuda_compiler()) GTEST_SKIP() << "NVRTC is not found";
    constexpr double most_points = 60000;
    std::vector<cpu_case::Case> cases;
    std::uint64_t seed = first_gpu_seed();
    for (const ExampleDiagram& example : example_diagrams()) {
        std::mt19937_64 random(++seed);
        const auto sizes = small_sizes(example.diagram, random, most_points);
        if (!sizes) continue;
        cases.push_back(cpu_case::make_case(example.diagram, extents_of(example.diagram, *sizes), seed,
                                            fmt::format("k{}_", seed), {}, cpu_case::warps()));
        cases.back().probes.assign(std::begin(all_probes), std::end(all_probes));
        cases.back().nan_is_open = false;
    }
    EXPECT_GE(cases.size(), 40u);
    // Where none runs them, every other one is compiled.
    if (!gpu::device()) std::erase_if(cases, [](const cpu_case::Case& c) { return c.seed % 2 == 0; });
    check(cases);
}

TEST(GpuExamples, ArePlannedAsTheAssemblerAccepts) {
    if (!gpu::cuda_compiler()) GTEST_SKIP() << "NVRTC is not found";
    const Machine machine = load_machine("h200").value();
    int programs = 0, refused = 0, number = 0;
    for (const ExampleDiagram& example : example_diagrams()) {
        const auto extents = bind_sizes(example.diagram);
        if (!extents || number++ % 4 != 0) continue;
        const Derived derived = choose_form(derive(example.diagram).value(), *extents, machine);
        const auto accepted = gpu::assembled_plan(derived, *extents, machine);
        ASSERT_TRUE(accepted.ok()) << example.name << "\n" << render(accepted.errors());
        ++programs;
        // Where no candidate is accepted, a note says which is taken all the same.
        const bool is_said = std::any_of(accepted->notes.begin(), accepted->notes.end(), [](const std::string& note) {
            return note.find("is taken all the same") != std::string::npos;
        });
        refused += is_said ? 1 : 0;
        // What was accepted was compiled for that; some are compiled once more, to see that it is what was accepted.
        constexpr int each = 4;
        if (is_said || programs % each != 0) continue;
        const auto cubin = gpu::compile_cuda(cuda::complete(cuda::emit(accepted->plan.program())), machine.architecture);
        ASSERT_TRUE(cubin.ok()) << example.name << "\n" << render(cubin.errors());
        for (const gpu::AssemblerReport& report : cubin->kernels)
            EXPECT_THAT(gpu::refusals(report), testing::IsEmpty()) << example.name << ", kernel " << report.kernel;
    }
    EXPECT_GE(programs, 12);
    EXPECT_LE(refused, programs / 6);
}

}  // namespace
}  // namespace napkin
