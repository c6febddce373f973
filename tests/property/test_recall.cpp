// Plans as kept text and back: what is recalled of every example and of random programs is the plan that was chosen,
// and its code the same. Text in which a number is another one, or a line is missing, is refused, or recalled as a plan
// that keeps the rules.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cctype>
#include <limits>

#include "derive/derive.hpp"
#include "diagram/sizes.hpp"
#include "emit/cpu/emit.hpp"
#include "emit/cuda/emit.hpp"
#include "lower/rules.hpp"
#include "plan/choose.hpp"
#include "plan/choose_form.hpp"
#include "plan/recall.hpp"
#include "support/examples.hpp"
#include "support/json.hpp"
#include "support/parsed.hpp"
#include "support/random_diagram.hpp"
#include "support/random_program.hpp"

namespace napkin {
namespace {

using nlohmann::json;

std::string code_of(const Plan& plan, const Machine& machine) {
    return machine.kind == MachineKind::gpu ? cuda::complete(cuda::emit(plan.program()))
                                            : cpu::complete(cpu::emit(plan.program()));
}

/// The chosen plan, which is the same once recalled.
ChosenPlan chosen_twice(const std::string& name, const Diagram& diagram, const Machine& machine,
                        const std::shared_ptr<const Source>& file, const Extents& extents) {
    const Derived derived = derive(diagram).value();
    PlanOptions options;
    options.file = file;
    ChosenPlan chosen{choose_form(derived, extents, machine), {}, {"a note"}};
    auto plan = choose_plan(chosen.derived, extents, machine, {}, options);
    EXPECT_TRUE(plan.ok()) << name << "\n" << (plan.ok() ? "" : render(plan.errors()));
    if (!plan) return chosen;
    chosen.plan = std::move(*plan);
    const std::string text = to_text(chosen);
    const auto again = recall(text, derived, extents, machine, file);
    EXPECT_TRUE(again.has_value()) << name;
    if (!again) return chosen;
    EXPECT_EQ(to_text(*again), text) << name;
    EXPECT_EQ(again->notes, chosen.notes) << name;
    EXPECT_EQ(again->plan.seconds(), chosen.plan.seconds()) << name;
    EXPECT_EQ(to_string(again->plan), to_string(chosen.plan)) << name;
    for (std::size_t k = 0; k < again->plan.kernels.size(); ++k)
        EXPECT_EQ(again->plan.kernels[k].schedule(), chosen.plan.kernels[k].schedule()) << name;
    EXPECT_EQ(code_of(again->plan, machine), code_of(chosen.plan, machine)) << name;
    return chosen;
}

ChosenPlan chosen_twice(const std::string& name, const Diagram& diagram, const Machine& machine,
                        const std::shared_ptr<const Source>& file = nullptr) {
    return chosen_twice(name, diagram, machine, file, bind_sizes(diagram).value());
}

const std::string bf16_attention =
    "f(Q[q, k]: bf16, K[x, k]: bf16, V[x, d]: bf16) -> O[q, d]\n    S[q, x] = sum(k) Q[q, k] * K[x, k]\n"
    "    P[q, x] = softmax(x) S[q, x]\n    O[q, d] = sum(x) P[q, x] * V[x, d]\nsizes q = x = 1024, k = d = 64\n";

TEST(Recall, GivesThePlanOfEveryExample) {
    Machine cpu = load_machine("generic-cpu").value();
    const Machine gpu = load_machine("h200").value();
    int plans = 0, on_gpu = 0;
    for (const ExampleDiagram& example : example_diagrams()) {
        if (!bind_sizes(example.diagram)) continue;
        cpu.cores.value = 2 + 30 * (plans % 2);
        chosen_twice(example.name, example.diagram, cpu);
        if (plans++ % 5 == 0) chosen_twice(example.name, example.diagram, gpu), ++on_gpu;
    }
    EXPECT_GT(plans, 40);
    EXPECT_GT(on_gpu, 8);
}

TEST(Recall, GivesFormsThatWereChangedAndChoicesByHand) {
    const Machine gpu = load_machine("h200").value(), cpu = load_machine("generic-cpu").value();
    const std::string product = "f(A[m, k]: bf16, B[k, n]: bf16) -> C[m, n]\n    C[m, n] = sum(k) A[m, k] * B[k, n]\n";
    const ChosenPlan copied = chosen_twice("odd rows", parsed(product + "sizes m = n = 4096, k = 4103\n"), gpu);
    EXPECT_EQ(copied.plan.change.factors, FactorForm::copied);
    const ChosenPlan tiled = chosen_twice(
        "tiles",
        parsed("f(A[m, k]: bf16, B[n, k]: bf16) -> D[m, n]: bf16, Q[m]: f32\n    D[m, n] = sum(k) A[m, k] * B[n, k]\n"
               "    Q[m] = sum(n) D[m, n] * D[m, n]\nsizes m = 8192, n = 4096, k = 1024\n"),
        gpu);
    EXPECT_EQ(tiled.plan.change.tiled.size(), 1U);
    const ChosenPlan padded = chosen_twice(
        "padding",
        parsed("f(X[n, y, c]: bf16, W[h, i, c]: bf16) -> O[n, y, h]: bf16\n    O[n, y, h] = sum(i, c) where(y + i >= 1 "
               "and y "
               "+ i <= size(y), X[n, y + i - 1, c], 0) * W[h, i, c]\nsizes n = 32, y = 4096, i = 3, c = h = 128\n"),
        gpu);
    EXPECT_EQ(padded.plan.change.factors, FactorForm::padded);
    const ChosenPlan phased = chosen_twice(
        "phases",
        parsed("f(X[n, y, c]: bf16, W[h, i, c]: bf16) -> O[n, u, h]: bf16\n    O[n, u, h] = sum(i, c) where((u - i) % "
               "2 == "
               "0, X[n, (u - i) // 2, c], 0) * W[h, i, c]\nsizes n = 32, y = 2048, u = 4096, i = 2, c = h = 128\n"),
        gpu);
    EXPECT_TRUE(phased.derived.rewriting.phased);
    const ChosenPlan grouped = chosen_twice(
        "groups",
        parsed("f(X[t, c]: bf16, W[e, h, c]: bf16, of[t]: i32) -> Y[t, h]: bf16\n"
               "    Y[t, h] = sum(c) X[t, c] * W[of[t], h, c]\nsizes t = 4096, c = h = 2048, e = 8\n"),
        gpu);
    EXPECT_TRUE(grouped.derived.rewriting.grouped);
    const auto file = std::make_shared<const Source>(
        Source{"by hand", "group q = 64\nsubloop k = 32\nthreads = 3\nvector q\n"});
    const ChosenPlan by_user = chosen_twice("by hand", parsed(bf16_attention), cpu, file);
    EXPECT_EQ(by_user.plan.kernels.at(0).schedule().threads.value, 3);
    EXPECT_FALSE(by_user.plan.kernels.at(0).schedule().subloop.empty());
    const auto split = std::make_shared<const Source>(Source{"split", "split x = 3\n"});
    for (const Machine* machine : {&cpu, &gpu})
        EXPECT_EQ(chosen_twice("split", parsed(bf16_attention), *machine, split).plan.kernels.size(), 2U);
}

TEST(Recall, GivesThePlanOfRandomProgramsAndDiagrams) {
    Machine cpu = load_machine("generic-cpu").value();
    const Machine gpu = load_machine("h200").value();
    for (std::uint64_t seed = 1; seed <= 60; ++seed) {
        cpu.cores.value = seed % 2 == 0 ? 2 : 16;
        const std::string name = fmt::format("seed {}", seed);
        const Machine& machine = seed % 6 == 0 ? gpu : cpu;
        const Diagram program = parsed_program(random_program(seed)), diagram = random_diagram(seed);
        chosen_twice(name, program, machine, nullptr, random_extents(program, seed));
        chosen_twice(name, diagram, machine, nullptr, random_extents(diagram, seed));
    }
}

TEST(Recall, GivesWhatIsByHandOfEveryField) {
    const Machine gpu = load_machine("h200").value();
    const auto file = [](const std::string& text) { return std::make_shared<const Source>(Source{"by hand", text}); };
    const std::string warps = "warps 8\nrole copies 4\ntensor axis ";
    const ChosenPlan product = chosen_twice(
        "product",
        parsed("f(A[m, k]: bf16, B[k, n]: bf16) -> C[m, n]: bf16\n    C[m, n] = sum(k) A[m, k] * B[k, n]\n"
               "sizes m = n = k = 4096\n"),
        gpu,
        file(warps + "m\ngroup m 128\ngroup n 256\nstream k 64\ncluster m 2\nplace A operand, inner k, stages 4\n"
                     "storage B operand, inner n, stages 4\nblocks 1\ngroups fixed\n"));
    const KernelSchedule& s = product.plan.kernels.at(0).schedule();
    EXPECT_TRUE(s.cluster.by_user && s.scheduler.by_user && s.roles.at(0).by_user);
    EXPECT_EQ(count_if(s.places, [](const Place& p) { return p.by_user && p.stages == 4; }), 2);
    const ChosenPlan attention = chosen_twice(
        "attention", parsed(bf16_attention), gpu,
        file(warps + "q\ngroup q 128\nstream x 64\nmaximum rescaled\nmatrix free\natom weight fragment, points q x\n"));
    const KernelSchedule& lazy = attention.plan.kernels.at(0).schedule();
    EXPECT_TRUE(lazy.rescaling.by_user && lazy.ping_pong.by_user);
    const Machine cpu = load_machine("generic-cpu").value();
    const ChosenPlan blocks = chosen_twice("blocks", parsed(bf16_attention), cpu,
                                           file("rows 4\nvectors 2\nplace K buffer, inner k\n"));
    EXPECT_TRUE(blocks.plan.kernels.at(0).schedule().panel_vectors.by_user &&
                blocks.plan.kernels.at(0).schedule().rows.by_user);
}

/// Calls f with every copy of the text in which one number is another one.
template <class F>
void with_other_numbers(json& whole, json& part, const F& f) {
    if (part.is_structured())
        for (json& child : part) with_other_numbers(whole, child, f);
    if (!part.is_number() && !part.is_boolean()) return;
    const json kept = part;
    for (const json& other : {json(-2), json(-1), json(0), json(1), json(3), json(1000), json(std::int64_t{1} << 40),
                              json(std::numeric_limits<std::int64_t>::max()), json(true), json(false), json("text"),
                              json(nullptr), json::array()}) {
        if (other == kept) continue;
        part = other;
        f(whole.dump());
    }
    part = kept;
}

/// Calls f with every copy of the schedules in which one number is another one, and with every one that lacks a line.
template <class F>
void with_other_lines(const std::string& schedules, const F& f) {
    for (std::size_t begin = 0; begin < schedules.size();) {
        const auto is_digit = [&](std::size_t i) { return i < schedules.size() && std::isdigit(schedules[i]) != 0; };
        std::size_t end = begin + 1;
        if (schedules[begin] == ' ' && is_digit(end)) {
            while (is_digit(end)) ++end;
            for (const char* other : {"0", "1", "3", "1000", "65536", "1099511627776", "9223372036854775807"})
                f(schedules.substr(0, begin + 1) + other + schedules.substr(end));
        } else if (schedules[begin] == '\n') {
            f(schedules.substr(0, begin) + schedules.substr(std::min(schedules.find('\n', end), schedules.size())));
        }
        begin = end;
    }
}

TEST(Recall, TakesNoTextThatBreaksARule) {
    for (const char* name : {"generic-cpu", "h200"}) {
        const Machine machine = load_machine(name).value();
        const Diagram diagram = parsed(bf16_attention);
        const Derived derived = derive(diagram).value();
        const Extents extents = bind_sizes(diagram).value();
        json text = json::parse(to_text(chosen_twice(name, diagram, machine)));
        int refused = 0, taken = 0;
        const auto try_text = [&](const std::string& changed) {
            SCOPED_TRACE(changed);
            const auto chosen = recall(changed, derived, extents, machine, nullptr);
            ++(chosen ? taken : refused);
            if (!chosen) return;
            for (const KernelPlan& kernel : chosen->plan.kernels) EXPECT_TRUE(verify(kernel.scheduled).empty());
            EXPECT_FALSE(code_of(chosen->plan, machine).empty());
        };
        with_other_numbers(text, text, try_text);
        with_other_lines(text["schedules"].get<std::string>(), [&](const std::string& schedules) {
            json changed = text;
            changed["schedules"] = schedules;
            try_text(changed.dump());
        });
        EXPECT_GT(refused, 300) << name;
        EXPECT_GT(taken, 50) << "times and numbers of threads are open: " << name;
        for (const std::string& damaged : {std::string(), std::string("{"), text.dump().substr(0, 400), std::string("[]"),
                                           std::string("\xff\xfe"), std::string("{\"alternatives\": {}}")})
            EXPECT_FALSE(recall(damaged, derived, extents, machine, nullptr)) << damaged;
        // It may be sound for the same program with other sizes; for another program it is not.
        const Derived other = derived_from("g(X[i, j]) -> Y[i]\n    Y[i] = sum(j) X[i, j]\nsizes i = j = 64\n");
        EXPECT_FALSE(recall(text.dump(), other, bind_sizes(other.source).value(), machine, nullptr));
    }
}

}  // namespace
}  // namespace napkin
