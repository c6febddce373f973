// Registers that a thread's values take in kernel programs: some that one can count by hand, and all beside the number
// that the planner has of their schedules.
#include "lower/registers_alive.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "kernel_subjects.hpp"
#include "lower/lower.hpp"
#include "schedule/fragment_registers.hpp"
#include "schedule/stream_k.hpp"
#include "support/ids.hpp"
#include "support/ranges.hpp"

namespace napkin::test_registers_alive {
namespace {

using kernel_subjects::planned;
using kernel_subjects::Subject;
using lower::Block;
using lower::KernelProgram;
using lower::registers_alive;
using lower::RegistersAlive;
using testing::ElementsAre;

KernelProgram lowered(const ScheduledKernel& kernel) {
    return lower::lowered(std::make_shared<const ScheduledKernel>(kernel));
}

// ---- counted by hand

/// Four warps have 64 rows. A thread has 32 of the 64 · 64 values of D, and 16 of the 64 · 32 of P and of its weights.
KernelProgram chain(const std::string& first_factor, int blocks = 32, const std::string& machine = "h200") {
    const std::string text = fmt::format(
        "chain(A[m, k]: bf16, B[j, k]: bf16, C[n, j]: bf16) -> D[m, n]: bf16\n"
        "    P[m, j] = sum(k) {} * B[j, k]\n    D[m, n] = sum(j) exp(-abs(P[m, j])) * C[n, j]\n"
        "sizes m = 512, k = 64, j = {}, n = 64\n",
        first_factor, 32 * blocks);
    const std::string roles = machine == "h200" ? "role copies 4\n" : "",
                      schedule = "mma_m m\nwarps 4\n" + roles + "group m = 64\nstream j = 32\n";
    const std::vector<KernelPlan> kernels = planned({"chain", text, schedule}, load_machine(machine).value());
    return lowered(kernels.at(0).scheduled);
}
std::vector<std::string> names(const KernelProgram& program, const RegistersAlive& alive) {
    return mapped<std::string>(alive.variables, [&](VariableId v) { return program.kernel->variable(v).name; });
}
/// The last step that computes the variable.
StepId step_of(const KernelProgram& program, const std::string& name) {
    StepId found;
    for (const StepId s : program.kernel->steps.ids()) {
        const Step& step = program.kernel->step(s);
        if (step.atom >= 0 && program.kernel->variable(variable_of(step)).name == name) found = s;
    }
    return found;
}

// The weights overwrite P, and only the sums pass to the next iteration: 32 + 16.
TEST(RegistersAlive, GivesResultsTheRegistersOfWhatDies) {
    const KernelProgram program = chain("A[m, k]");
    const RegistersAlive alive = registers_alive(program);
    EXPECT_EQ(alive.most, 48);
    EXPECT_EQ(alive.at, "mma P");
    EXPECT_THAT(names(program, alive), ElementsAre("D", "P"));
    EXPECT_THAT(to_string(program), testing::HasSubstr("consumer: 4 warps, 48 registers of values alive at mma P\n"));
}

// Each iteration multiplies the 64 · 64 values of exp(A) by B. So 32 registers pass to the next one, beside 16 for what
// they are rounded to, 16 of P and 32 of D.
TEST(RegistersAlive, HandsValuesOnAroundALoop) {
    const KernelProgram program = chain("exp(A[m, k])");
    const RegistersAlive alive = registers_alive(program);
    EXPECT_EQ(alive.most, 96);
    EXPECT_EQ(alive.at, "mma P");
    EXPECT_THAT(names(program, alive), ElementsAre("weight", "D", "P"));
}

// In a single K block exp(A) dies at P. A warpgroup has rounded it before it writes P, so that 32 of D stand beside 32
// of exp(A), or 16 + 16. A warp rounds it step by step, and has 32 of it until P's 16 are complete.
TEST(RegistersAlive, HoldsAFactorAsLongAsItIsRounded) {
    EXPECT_EQ(registers_alive(chain("exp(A[m, k])", 1)).most, 64);
    EXPECT_EQ(registers_alive(chain("exp(A[m, k])", 1, "a100-sxm-80gb")).most, 80);
}

// The product D is still under way as the next P begins. It reads the weights' 16 values rounded, 8 registers: 32 + 16
// + 8.
TEST(RegistersAlive, HoldsARoundedFactorUntilItsProductIsDone) {
    KernelProgram program = chain("A[m, k]");
    const StepId p = step_of(program, "P"), d = step_of(program, "D"), weight = step_of(program, "weight");
    const auto variable = [&](StepId s) { return variable_of(program.kernel->step(s)); };
    lower::ForBlocks blocks{0, lower::KBlocks::all, {}};
    blocks.body.emplace_back(lower::Mma{p, {}});
    blocks.body.emplace_back(lower::WaitProducts{1, {variable(d)}});
    blocks.body.emplace_back(lower::WaitProducts{0, {variable(p)}});
    blocks.body.emplace_back(lower::Map{weight});
    blocks.body.emplace_back(lower::Mma{d, {}});
    program.consumer.body.clear();
    program.consumer.body.emplace_back(std::move(blocks));
    program.consumer.body.emplace_back(lower::WaitProducts{0, {variable(d)}});
    const RegistersAlive alive = registers_alive(program);
    EXPECT_EQ(alive.most, 56);
    EXPECT_EQ(alive.at, "mma P");
    EXPECT_THAT(names(program, alive), ElementsAre("D", "P", "weight"));
}

// ---- beside the planner's number

/// What most_registers leaves out of a schedule.
struct Simplified {
    bool moves_always = true;    ///< a running maximum moves in every K block
    bool waits_at_once = true;   ///< a product is done where it begins, and its first factor with it
    bool repeats = true;         ///< a loop of one K block keeps values for another one
    bool rounds_at_once = true;  ///< a product of one warp rounds all of its first factor
};

/// The list with a wait behind each product, and with loops in place of single K blocks.
Block simplified(const KernelProgram& program, const Block& list, const Simplified& how) {
    Block out;
    for (lower::Statement statement : list) {
        std::visit(
            [&](auto& s) {
                if constexpr (requires { s.body; }) s.body = simplified(program, s.body, how);
                if constexpr (requires { s.otherwise; }) s.otherwise = simplified(program, s.otherwise, how);
            },
            statement.kind);
        const auto* mma = std::get_if<lower::Mma>(&statement.kind);
        const auto* scope = std::get_if<lower::LoopScope>(&statement.kind);
        if (how.waits_at_once && std::holds_alternative<lower::WaitProducts>(statement.kind)) continue;
        if (how.repeats && scope && !is_repeated(*program.kernel, program.kernel->loop(scope->loop)))
            out.emplace_back(lower::ForBlocks{scope->loop, lower::KBlocks::all, scope->body});
        else
            out.push_back(statement);
        if (how.waits_at_once && mma)
            out.emplace_back(lower::WaitProducts{0, {variable_of(program.kernel->step(mma->step))}});
    }
    return out;
}

std::int64_t most(ScheduledKernel kernel, const Simplified& how) {
    if (how.moves_always) kernel.rescale.reset();
    KernelProgram program = lowered(kernel);
    program.consumer.body = simplified(program, program.consumer.body, how);
    std::vector<std::unique_ptr<Instruction>> together;
    for (lower::StepShape& shape : program.shapes.steps)
        if (how.rounds_at_once && shape.product && shape.product->by_warp()) {
            together.push_back(std::make_unique<Instruction>(*shape.product->instruction));
            together.back()->b_in_shared = true;
            shape.product->instruction = together.back().get();
        }
    return registers_alive(program).most;
}

/// How often each of what the planner leaves out changes a kernel's number.
struct Differences {
    int kernels = 0, equal = 0, moves = 0, waits = 0, repeats = 0, rounds = 0, parts = 0, stream_k = 0;

    void add(const std::string& name, const ScheduledKernel& kernel) {
        if (!kernel.on_tensor_cores()) return;
        const std::int64_t planner = most_registers(kernel), simple = most(kernel, {}),
                           own = registers_alive(lowered(kernel)).most;
        SCOPED_TRACE(fmt::format("{} {}: {}, and {} on the schedule", name, kernel.kernel->name, own, planner));
        EXPECT_EQ(simple, planner) << to_string(lowered(kernel));
        const std::int64_t moving = most(kernel, {.moves_always = false}),
                           waiting = most(kernel, {.waits_at_once = false}), once = most(kernel, {.repeats = false}),
                           by_steps = most(kernel, {.rounds_at_once = false});
        // Weights under a maximum that stays need what the iteration before has made of it.
        EXPECT_GE(moving, simple);
        // A factor in registers lives on until its product is done.
        EXPECT_GE(waiting, simple);
        // Nothing follows a single K block.
        EXPECT_LE(once, simple);
        // A warp that multiplies by itself rounds its factor step by step.
        EXPECT_LE(by_steps, simple);
        ++kernels, equal += own == planner;
        moves += moving > simple, waits += waiting > simple, repeats += once < simple, rounds += by_steps < simple;
        parts += kernel.column_parts.has_value(), stream_k += chosen_stream_k(kernel).has_value();
    }
};

/// Kernels in which a product runs on while others begin, which have one K block, or whose columns are in parts.
std::vector<Subject> more_subjects() {
    const std::string rows = "mma_m q\nwarps 8\nrole copies 4\nstream x = 16\nrescaling always\n";
    return {{"beside", kernel_subjects::attention(kernel_subjects::dense, "h = 4, q = x = 512, k = d = 128"), rows},
            {"one block", kernel_subjects::attention(kernel_subjects::dense, "h = 3, q = 200, x = 16, k = d = 32"), rows},
            {"parts",
             "f(A[m, block, k]: e4m3, B[n, block, k]: e4m3, sa[m, block], sb[w, block]) -> C[m, n]\n"
             "    P[m, n, block] = sum(k) A[m, block, k] * B[n, block, k]\n"
             "    C[m, n] = sum(block) P[m, n, block] * sb[n // 128, block] * sa[m, block]\n"
             "sizes m = n = 4096, w = block = 32, k = 128\n"}};
}

/// Warps multiply by themselves, and round what they make of Q in front of that.
const Subject by_warps{"by warps",
                       "attention(Q[h, q, k]: bf16, K[h, x, k]: bf16, V[h, x, d]: bf16) -> O[h, q, d]: bf16\n"
                       "    S[h, q, x] = sum(k) relu(Q[h, q, k]) * K[h, x, k]\n    P[h, q, x] = softmax(x) S[h, q, x]\n"
                       "    O[h, q, d] = sum(x) P[h, q, x] * V[h, x, d]\nsizes h = 8, q = x = 512, k = d = 128\n"};

TEST(RegistersAlive, AreThoseOfTheScheduleButForWhatThatLeavesOut) {
    Differences seen;
    kernel_subjects::for_each_kernel(
        [&](const std::string& name, const KernelPlan& kernel) { seen.add(name, kernel.scheduled); });
    for (const Subject& subject : more_subjects())
        for (const KernelPlan& kernel : planned(subject, load_machine("h200").value()))
            seen.add(subject.name, kernel.scheduled);
    for (const KernelPlan& kernel : planned(by_warps, load_machine("a100-sxm-80gb").value()))
        seen.add(by_warps.name, kernel.scheduled);
    fmt::print(
        "{} kernels, {} as on the schedule; in {} a maximum that stays takes more, in {} a product under way, in {} a "
        "single K block takes less, in {} a product of one warp\n",
        seen.kernels, seen.equal, seen.moves, seen.waits, seen.repeats, seen.rounds);
    for (const int count : {seen.equal, seen.moves, seen.waits, seen.repeats, seen.rounds, seen.parts, seen.stream_k})
        EXPECT_GT(count, 0);
}

}  // namespace
}  // namespace napkin::test_registers_alive
