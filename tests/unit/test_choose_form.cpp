// The choice among forms, by several threads and by whole searches.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "bench/examples.hpp"
#include "derive/derive.hpp"
#include "machine/machine.hpp"
#include "plan/choose.hpp"
#include "plan/choose_form.hpp"
#include "run/pipeline.hpp"
#include "study/cost_study.hpp"
#include "support/parsed.hpp"
#include "support/paths.hpp"
#include "support/ranges.hpp"
#include "support/text.hpp"
#include "syntax/parse.hpp"
#include "syntax/print.hpp"

namespace napkin::test_choose_form {
namespace {

// Quick searches take decode for slower in one kernel, where whole ones find it faster.
TEST(ChooseForm, TakesNoFormThatIsSlowerThanTheWholeFold) {
    const Machine machine = load_machine("generic-cpu").value();
    int others = 0;
    for_each_example(source_dir() / "examples", [&](const std::string& name, const std::string& text) {
        SCOPED_TRACE(name);
        const Derived derived = derived_from(text);
        const auto extents = bind_sizes(derived.diagram);
        if (!extents) return;
        const Derived form = choose_form(derived, *extents, machine);
        if (name == "decode") {
            EXPECT_EQ(form.kernels.size(), 1U);
        }
        if (names_of(form.kernels) == names_of(derived.kernels)) return;
        ++others;
        const auto whole = choose_plan(derived, *extents, machine), chosen = choose_plan(form, *extents, machine);
        ASSERT_TRUE(whole.ok() && chosen.ok());
        EXPECT_LE(chosen->seconds(), whole->seconds());
    });
    EXPECT_GE(others, 3);
}

/// All passes up to the plan.
Result<Compilation> compiled(const std::string& text, const std::string& file = "",
                             const std::vector<std::string>& options = {}, const std::string& machine = "generic-cpu") {
    PipelineOptions pipeline;
    pipeline.machine = machine, pipeline.until = Pass::plan, pipeline.schedule = options;
    if (!file.empty()) pipeline.schedule_file = std::make_shared<const Source>(Source{"a.schedule", file});
    return run_pipeline(std::make_shared<const Source>(Source{"a.nk", text}), pipeline);
}

/// The text with the file's lines as its own block.
std::string with_block(const std::string& text, const std::string& file) {
    auto diagram = parse_diagram(std::make_shared<const Source>(Source{"a.nk", text}));
    EXPECT_TRUE(diagram.ok());
    diagram->schedule = parse_schedule_file(std::make_shared<const Source>(Source{"a.schedule", file})).value();
    std::erase_if(diagram->schedule, [](const ScheduleItem& item) { return item.kind == ChoiceKind::machine; });
    return print(*diagram);
}

std::string example(const std::string& wanted) {
    std::string found;
    for_each_example(source_dir() / "examples", [&](const std::string& name, const std::string& text) {
        if (name == wanted) found = text;
    });
    EXPECT_NE(found, "") << wanted;
    return found;
}

// Streams that are cut make kernels of other forms than the whole ones, and a merge may have the name of the kernel
// that was cut.
TEST(ChooseForm, ReadsPrintedPlansBackFromFilesAndBlocks) {
    const std::string total = "tot(A[i, j]) -> S\n    S = sum(i, j) A[i, j]^2\nsizes i = 1201, j = 601\n";
    for (const auto& [text, options] :
         std::vector<std::pair<std::string, std::vector<std::string>>>{{total, {}},
                                                                       {example("cross_attention"), {"split x = 2"}},
                                                                       {example("experts"), {"split h = 2"}},
                                                                       {example("layernorm_linear"), {"split c = 2"}},
                                                                       {example("layernorm_linear"), {"group r = 8"}},
                                                                       {example("rmsnorm_linear"), {"split c = 2"}}}) {
        const auto first = compiled(text, "", options);
        if (!first && first.errors()[0].code == "unknown-schedule-axis") continue;
        ASSERT_TRUE(first.ok()) << render(first.errors());
        const std::string printed = to_string(first->plan);
        SCOPED_TRACE(text + printed);
        const auto by_file = compiled(text, printed), by_block = compiled(with_block(text, printed));
        ASSERT_TRUE(by_file.ok()) << render(by_file.errors());
        ASSERT_TRUE(by_block.ok()) << render(by_block.errors());
        EXPECT_EQ(names_of(by_file->derived.kernels), names_of(first->derived.kernels));
        EXPECT_EQ(by_file->plan.seconds(), first->plan.seconds());
        EXPECT_EQ(by_block->plan.seconds(), first->plan.seconds());
        // What it costs is what is planned.
        CostQuery query;
        query.source = std::make_shared<const Source>(Source{"a.nk", text});
        query.pipeline.machine = "generic-cpu";
        query.pipeline.schedule_file = std::make_shared<const Source>(Source{"a.schedule", printed});
        const auto cost = cost_summary(query);
        ASSERT_TRUE(cost.ok()) << render(cost.errors());
        EXPECT_DOUBLE_EQ(cost->seconds, first->plan.seconds());
    }
}

/// Reductions that share an input and that no other gathering puts into one kernel than one along k, or along n.
const std::string two_extrema =
    "f(W[l, k], B[l, k]) -> R, Y[l]\n    R = max(k, l) W[l, k]\n    L = min(k, l) W[l, k]\n"
    "    Z[k] = max(l) W[l, k]\n    O[k] = sum(l) (B[l, (k + 2) % size(k)] - Z[k])\n    F = sum(k) O[k] * L\n"
    "    Y[l] = min(k) B[l, k] * F\nsizes k = 4096, l = 1\n";
const std::string entropy_and_extrema =
    "f(X[t], G[n]) -> R, Y, Z, O\n    L = softmax_entropy(t) X[t]\n    R = min(n) tanh(L) + G[n]\n"
    "    Y = sum(n) sin(size(n)) * G[n]\n    Z = min(n) G[n]\n    O = sum(n) exp(G[n] - Z) * G[n]\nsizes n = 1, t = "
    "128\n";

struct OtherForms {
    std::string name, text;
    std::vector<std::string> streams;
};

// By the model's own figures, no plan is slower than that of another form of the same text. It is read back, though its
// streams may be none that the calculus lists first, and its kernels those of another gathering.
TEST(ChooseForm, IsBeatenByNoOtherFormAndIsReadBack) {
    constexpr double worth_another_form = 1.02;
    for (const std::string machine : {"h200", "generic-cpu"})
        for (const auto& [name, text, streams] :
             std::vector<OtherForms>{{"attention", example("attention"), {"k", "x"}},
                                     {"mlp", example("mlp"), {"c", "h"}},
                                     {"swiglu", example("swiglu"), {"c", "h"}},
                                     {"cross_entropy", example("cross_entropy"), {"k", "v"}},
                                     {"grouped_query", example("grouped_query"), {"k", "x"}},
                                     {"layernorm_linear", example("layernorm_linear"), {"c"}},
                                     {"experts", example("experts"), {"c"}},
                                     {"two extrema", two_extrema, {"k", "l"}},
                                     {"entropy and extrema", entropy_and_extrema, {"t", "n"}}}) {
            const auto seconds = [&](const PipelineOptions& how) {
                PipelineOptions pipeline = how;
                pipeline.machine = machine, pipeline.until = Pass::plan;
                pipeline.is_wanted = [](const Plan&) { return false; };  // none is assembled
                const auto made = run_pipeline(std::make_shared<const Source>(Source{"a.nk", text}), pipeline);
                return made ? made->plan.seconds() : std::numeric_limits<double>::infinity();
            };
            const auto chosen = compiled(text, "", {}, machine);
            ASSERT_TRUE(chosen.ok()) << render(chosen.errors());
            const double least = chosen->plan.seconds() / worth_another_form;
            PipelineOptions apart;
            apart.fuse = false;
            EXPECT_GE(seconds(apart), least) << name << " on " << machine;
            for (const std::string& axis : streams) {
                PipelineOptions streamed;
                streamed.schedule = {"stream " + axis};
                EXPECT_GE(seconds(streamed), least) << name << " along " << axis << " on " << machine;
            }
            const auto again = compiled(text, to_string(chosen->plan), {}, machine);
            ASSERT_TRUE(again.ok()) << name << " on " << machine << render(again.errors());
            EXPECT_EQ(names_of(again->derived.kernels), names_of(chosen->derived.kernels)) << name << " on " << machine;
            EXPECT_EQ(again->plan.seconds(), chosen->plan.seconds()) << name << " on " << machine;
        }
}

// A scale inside of the sum, behind it, at the weights or as a quotient; factors in either order.
TEST(ChooseForm, PlansEqualFunctionsInEverySpellingAlike) {
    constexpr double alike = 1.01;
    const auto text = [](const std::string& scores, const std::string& weights = "S[h, q, x]",
                         const std::string& values = "P[h, q, x] * V[h, x, d]") {
        return fmt::format(
            "f(Q[h, q, k]: bf16, K[h, x, k]: bf16, V[h, x, d]: bf16) -> O[h, q, d]: bf16\n    S[h, q, x] = {}\n"
            "    P[h, q, x] = softmax(x) {}\n    O[h, q, d] = sum(x) {}\nsizes h = 16, q = x = 4096, k = d = 128\n",
            scores, weights, values);
    };
    const std::string product = "(sum(k) Q[h, q, k] * K[h, x, k])", scale = " * size(k)^-0.5";
    for (const std::string machine : {"h200", "generic-cpu"}) {
        const auto seconds = [&](const std::string& spelling) {
            return compiled(spelling, "", {}, machine).value().plan.seconds();
        };
        const double first = seconds(text(product + scale));
        for (const std::string& spelling :
             {text("sum(k) Q[h, q, k] * K[h, x, k]" + scale), text("sum(k) (Q[h, q, k]" + scale + ") * K[h, x, k]"),
              text(product + " / sqrt(size(k))"), text(product, "S[h, q, x]" + scale),
              text("(sum(k) K[h, x, k] * Q[h, q, k])" + scale, "S[h, q, x]", "V[h, x, d] * P[h, q, x]")}) {
            const double other = seconds(spelling);
            EXPECT_LT(std::max(first, other) / std::min(first, other), alike) << machine << ": " << spelling;
        }
    }
}

// A product and a map of rows: the block's stream of one kernel is no demand on the derivation of the other.
TEST(ChooseForm, PlansTheSameByTheSameLinesWhereverTheyStand) {
    const std::string two =
        "two(A[m, k], B[k, n], X[r, c]) -> C[m, n], Y[r, c]\n"
        "    C[m, n] = relu(sum(k) A[m, k] * B[k, n])\n    Y[r, c] = softmax(c) X[r, c]\n"
        "sizes m = 61, k = 103, n = 47, r = 97, c = 33\n";
    for (const std::string lines : {"kernel C\nstream k 103\n", "stream k 51\n", "group m 6\n", "kernel Y\ngroup r 5\n",
                                    "group m 5\nkernel C\ngroup m 7\n"}) {
        const auto by_file = compiled(two, lines), by_block = compiled(with_block(two, lines));
        ASSERT_EQ(by_file.ok(), by_block.ok()) << lines;
        if (!by_file) continue;
        EXPECT_EQ(to_string(by_file->plan), to_string(by_block->plan)) << lines;
    }
}

TEST(ChooseForm, LinesOfAKernelThatCannotBeReadAreRefusedForWhatTheySay) {
    const std::string text = example("layernorm_linear");
    const auto code = [&](const std::string& lines) {
        const auto made = compiled(text, lines);
        return made.ok() ? std::string("none") : made.errors()[0].code;
    };
    EXPECT_EQ(code("kernel N\nplace Zz view\n"), "unknown-variable");
    EXPECT_EQ(code("kernel N\natom Zz scalar\n"), "unknown-statement");
    EXPECT_EQ(code("kernel N\natom N scalar, points zz\n"), "unknown-axis");
    EXPECT_EQ(code("kernel N\nprefetch X blocks 1, in Zz\n"), "unknown-statement");
    EXPECT_EQ(code("kernel N\n"), "none");
    EXPECT_EQ(code("kernel Nn\n"), "unknown-kernel");
    // Statements that several kernels have are named once.
    const auto unknown = compiled(example("attention"), "atom Zz scalar\n", {"split x = 2"});
    ASSERT_FALSE(unknown.ok());
    const std::string& names = unknown.errors()[0].expected;
    EXPECT_NE(names.find(", weight,"), std::string::npos) << names;
    EXPECT_EQ(names.find(", weight,"), names.rfind(", weight,")) << names;
    EXPECT_EQ(names.find(", O_acc,"), names.rfind(", O_acc,")) << names;
}

// The text, the command line, a file: the later one stands before the earlier, also where that names a kernel.
TEST(ChooseForm, TakesFieldsByHandFromTheLastOfTheirPlaces) {
    const std::string text =
        "mm(A[a, k], B[k, c]) -> C[a, c]\n    C[a, c] = sum(k) A[a, k] * B[k, c]\n"
        "sizes a = 300, k = 103, c = 200\nschedule\n    kernel C\n    group a = 6\n    threads 2\n";
    const auto fields = [&](const std::string& file, const std::vector<std::string>& options) {
        const auto made = compiled(text, file, options);
        EXPECT_TRUE(made.ok()) << render(made.errors());
        const KernelSchedule& s = made->plan.kernels.at(0).schedule();
        return fmt::format("{} {}", s.group.at(made->diagram.find_axis("a").value()).value, s.threads.value);
    };
    EXPECT_EQ(fields("", {}), "6 2");
    EXPECT_EQ(fields("", {"group a = 12", "threads = 3"}), "12 3");
    EXPECT_EQ(fields("group a 24\nthreads 5\n", {"group a = 12", "threads = 3"}), "24 5");
    EXPECT_EQ(fields("kernel C\ngroup a 24\n", {"group a = 12", "threads = 3"}), "24 3");
    EXPECT_EQ(fields("group a 24\nkernel C\ngroup a 30\n", {}), "30 2");
}

constexpr const char* normed_attention =
    "f(Q[h, q, k]: f16, K[h, x, k]: f16, V[h, x, d]: f16, gq[k]: f16, gk[k]: f16) -> O[h, q, d]: f16\n"
    "    Qn[h, q, k]: f16 = rmsnorm(k)(f32(Q[h, q, k]), f32(gq[k]))\n"
    "    Kn[h, x, k]: f16 = rmsnorm(k)(f32(K[h, x, k]), f32(gk[k]))\n"
    "    S[h, q, x]: f32 = k^-0.5 * sum(k) f32(Qn[h, q, k]) * f32(Kn[h, x, k])\n"
    "    O[h, q, d] = sum(x) (softmax(x) S[h, q, x]) * f32(V[h, x, d])\n"
    "sizes h = 8, q = x = 4096, k = d = 64\n";

TEST(ChooseForm, NormsThatAreNotLinkedMayBeKernelsOfTheirOwn) {
    const Derived derived = derived_from(normed_attention);
    const auto is_apart = [](const Alternative& a) {
        return a.kernels.size() == 3 && a.kernels[0].targets.size() < 4 && a.kernels[1].targets.size() < 4;
    };
    int apart = 0;
    for (const Region& region : derived.regions) apart += static_cast<int>(count_if(region.alternatives, is_apart));
    EXPECT_GE(apart, 1);
}

// A norm of keys is read by every group of queries, which would compute it again. A norm that scales its own row stays
// with the row.
TEST(ChooseForm, SmallReductionsOfInputsMayBeKernelsOfTheirOwn) {
    const std::string cosines =
        "f(Q[h, q, k]: bf16, K[h, x, k]: bf16, V[h, x, d]: bf16) -> O[h, q, d]: bf16\n"
        "    S[h, q, x] = sum(k) Q[h, q, k] * K[h, x, k]\n    A[h, q] = sum(k) Q[h, q, k]^2\n"
        "    B[h, x] = sum(k) K[h, x, k]^2\n    P[h, q, x] = softmax(x) S[h, q, x] / (A[h, q]^0.5 * B[h, x]^0.5)\n"
        "    O[h, q, d] = sum(x) P[h, q, x] * V[h, x, d]\nsizes h = 16, q = x = 4096, k = d = 128\n";
    const auto of_keys_first = [](const Derived& derived) {
        return count_if(derived.regions.front().alternatives, [&](const Alternative& a) {
            const std::vector<ArrayId>& first = a.kernels.front().targets;
            return a.kernels.size() == 2 && first.size() == 1 && derived.diagram.array(first[0]).name == "B";
        });
    };
    const Derived derived = derived_from(cosines);
    EXPECT_EQ(of_keys_first(derived), 1);
    const Extents extents = bind_sizes(derived.source).value();
    const Machine h200 = load_machine("h200").value();
    const Plan plan = choose_plan(choose_form(derived, extents, h200), extents, h200).value();
    EXPECT_TRUE(plan.kernels.back().scheduled.on_tensor_cores()) << to_string(plan);
    EXPECT_LT(plan.seconds(), 1e-3) << "square roots of keys' norms stand in registers, without rows";
}

// What a mask makes 0 is one factor of the product, which the tensor cores then take as it is.
TEST(ChooseForm, MasksStayOnTheFactorThatTheyWereWrittenOn) {
    const std::string
        head =
            "f(Q[h, q, k]: bf16, K[h, x, k]: bf16, V[h, x, d]: bf16) -> O[h, q, d]: bf16\n"
            "    S[h, q, x] = sum(k) Q[h, q, k] * K[h, x, k]\n    M[h, q] = max(x) where(x <= q, S[h, q, x], -inf)\n",
        tail =
            "    Z[h, q] = sum(x) P[h, q, x]\n    O[h, q, d] = (sum(x) P[h, q, x] * V[h, x, d]) / Z[h, q]\n"
            "sizes h = 16, q = x = 4096, k = d = 128\n";
    const Derived derived = derived_from(head + "    P[h, q, x] = where(x <= q, exp(S[h, q, x] - M[h, q]), 0)\n" + tail);
    const Extents extents = bind_sizes(derived.source).value();
    const Machine h200 = load_machine("h200").value();
    const Plan plan = choose_plan(choose_form(derived, extents, h200), extents, h200).value();
    ASSERT_EQ(plan.kernels.size(), 1U) << to_string(plan);
    EXPECT_TRUE(plan.kernels[0].scheduled.on_tensor_cores() && plan.kernels[0].scheduled.rescale) << to_string(plan);
    EXPECT_LT(plan.seconds(), 2e-4) << to_string(plan);
}

/// The time of the chosen form on an H200, whose product runs on the tensor cores where one is named.
void expect_within(double seconds, const std::string& product, const std::string& text) {
    SCOPED_TRACE(text);
    const Derived derived = derived_from(text);
    const Extents extents = bind_sizes(derived.source).value();
    const Machine h200 = load_machine("h200").value();
    const Plan plan = choose_plan(choose_form(derived, extents, h200), extents, h200).value();
    EXPECT_LT(plan.seconds(), seconds) << to_string(plan);
    const auto kernel = find_if(plan.kernels, [&](const KernelPlan& k) { return k.scheduled.kernel->name == product; });
    if (product.empty()) return;
    EXPECT_TRUE(kernel != plan.kernels.end() && kernel->scheduled.on_tensor_cores()) << to_string(plan);
}

// Each takes many times as long as it is written.
TEST(ChooseForm, ProductsInOtherWordsRunOnTensorCores) {
    expect_within(5e-4, "Y_rows",
                  "f(X[t, c]: bf16, W[e, h, c]: bf16, of[t, j]: i32, G[t, j]: bf16) -> Y[t, h]: bf16\n"
                  "    Y[t, h] = sum(j, c) G[t, j] * X[t, c] * W[of[t, j], h, c]\n"
                  "sizes t = 4096, c = h = 2048, e = 8, j = 2\n");
    expect_within(5e-4, "dW",
                  "f(X[t, c]: bf16, dY[t, h]: bf16, of[t]: i32) -> dW[e, h, c]\n"
                  "    dW[e, h, c] = sum(t) where(of[t] == e, dY[t, h] * X[t, c], 0)\n"
                  "sizes t = 8192, c = h = 2048, e = 8\n");
    expect_within(5e-5, "Y_phases",
                  "f(X[b, y, x, c]: bf16, W[o, r, s, c]: bf16) -> Y[b, h, w, o]: bf16\n"
                  "    Y[b, h, w, o] = sum(r, s, c) where((h - r) % 2 == 0 and (w - s) % 2 == 0, "
                  "X[b, (h - r) // 2, (w - s) // 2, c] * W[o, r, s, c], 0)\n"
                  "sizes b = 32, h = w = 56, c = 128, o = 64, r = s = 2, y = x = 28\n");
    expect_within(4e-4, "",
                  "f(X[m, k]: bf16, W[n, k]: bf16, T[m, r]: bf16, B[n, r]: bf16) -> Y[m, n]: bf16\n"
                  "    Y[m, n] = sum(k) X[m, k] * W[n, k] + sum(r) T[m, r] * B[n, r]\n"
                  "sizes m = n = k = 4096, r = 16\n");
    expect_within(2e-4, "",
                  "f(X[b, i]: bf16, W[o, i, j]: bf16, Z[b, j]: bf16) -> Y[b, o]: bf16\n"
                  "    Y[b, o] = sum(i, j) X[b, i] * W[o, i, j] * Z[b, j]\nsizes b = 1024, i = j = o = 256\n");
}

// The gradient of an embedding looks at its own rows alone.
TEST(ChooseForm, TermsOfASumStandAtTheirPlaces) {
    expect_within(5e-4, "",
                  "f(dY[n, d]: bf16, I[n]: i32) -> dT[v, d]: f32\n"
                  "    dT[v, d] = sum(n) where(I[n] == v, dY[n, d], 0)\nsizes v = 50000, d = 1024, n = 8192\n");
}

TEST(ChooseForm, NormsBeforeAttentionHaveGroupsForAllCoresOfAGpu) {
    const Derived derived = derived_from(normed_attention);
    const Extents extents = bind_sizes(derived.source).value();
    const Machine h200 = load_machine("h200").value();
    const Derived form = choose_form(derived, extents, h200);
    const Plan plan = choose_plan(form, extents, h200).value();
    for (const KernelPlan& kernel : plan.kernels) EXPECT_GE(kernel.time.groups, 64) << to_string(plan);
    EXPECT_LT(plan.seconds(), 1e-4) << to_string(plan);
}

/// Seconds of the plan on an H200.
double seconds_on_h200(const std::string& text) {
    const auto made = compiled(text, "", {}, "h200");
    if (!made) throw std::runtime_error(render(made.errors()));
    return made->plan.seconds();
}

// Projections, attention and what follows stand in one row of equations.
TEST(ChooseForm, AttentionBetweenProductsIsOneKernel) {
    const std::string layer =
        "layer(X[t, c]: bf16, G[c]: bf16, WQ[h, k, c]: bf16, WK[h, k, c]: bf16, WV[h, k, c]: bf16, WO[c, h, k]: bf16, "
        "G2[c]: bf16, WG[f, c]: bf16, WU[f, c]: bf16, WD[c, f]: bf16) -> Z[t, c]: bf16\n"
        "    N[t, c]: bf16 = rmsnorm(c)(X[t, c], G[c])\n"
        "    Q[h, t, k]: bf16 = sum(c) N[t, c] * WQ[h, k, c]\n"
        "    K[h, s, k]: bf16 = sum(c) N[s, c] * WK[h, k, c]\n"
        "    V[h, s, k]: bf16 = sum(c) N[s, c] * WV[h, k, c]\n"
        "    S[h, t, s] = sum(k) Q[h, t, k] * K[h, s, k]\n"
        "    P[h, t, s] = softmax(s) where(s <= t, S[h, t, s] * k^-0.5, -inf)\n"
        "    A[h, t, k]: bf16 = sum(s) P[h, t, s] * V[h, s, k]\n"
        "    Y[t, c] = X[t, c] + sum(h, k) A[h, t, k] * WO[c, h, k]\n"
        "    M[t, c]: bf16 = rmsnorm(c)(Y[t, c], G2[c])\n"
        "    H[t, f]: bf16 = silu(sum(c) M[t, c] * WG[f, c]) * (sum(c) M[t, c] * WU[f, c])\n"
        "    Z[t, c] = Y[t, c] + sum(f) H[t, f] * WD[c, f]\n"
        "sizes t = s = 4096, c = 4096, h = 32, k = 128, f = 14336\n";
    const auto made = compiled(layer, "", {}, "h200");
    ASSERT_TRUE(made.ok()) << render(made.errors());
    EXPECT_LE(made->plan.kernels.size(), 9U) << to_string(made->plan);
    EXPECT_LT(made->plan.seconds(), 3e-3) << to_string(made->plan);
}

// Pairs of queries and keys stay on the chip, though a form with all of them in memory is predicted somewhat faster.
TEST(ChooseForm, LeavesNoPairsInMemoryForALittleTime) {
    const std::string gradient =
        "f(Q[h, q, k]: bf16, K[h, x, k]: bf16, V[h, x, d]: bf16, O[h, q, d]: bf16, L[h, q]: f32, dO[h, q, d]: bf16) -> "
        "dQ[h, q, k]: bf16, dK[h, x, k]: bf16, dV[h, x, d]: bf16\n"
        "    S[h, q, x]: bf16 = sum(k) Q[h, q, k] * K[h, x, k] * size(k)^-0.5\n"
        "    P[h, q, x]: bf16 = exp(S[h, q, x] - L[h, q])\n    R[h, q, x]: bf16 = sum(d) dO[h, q, d] * V[h, x, d]\n"
        "    D[h, q]: f32 = sum(d) dO[h, q, d] * O[h, q, d]\n"
        "    T[h, q, x]: bf16 = P[h, q, x] * (R[h, q, x] - D[h, q])\n"
        "    dQ[h, q, k] = sum(x) T[h, q, x] * (K[h, x, k] * size(k)^-0.5)\n"
        "    dK[h, x, k] = sum(q) T[h, q, x] * (Q[h, q, k] * size(k)^-0.5)\n"
        "    dV[h, x, d] = sum(q) dO[h, q, d] * P[h, q, x]\nsizes h = 16, q = x = 4096, k = d = 128\n";
    const auto made = compiled(gradient, "", {}, "h200");
    ASSERT_TRUE(made.ok()) << render(made.errors());
    const Diagram& d = made->derived.diagram;
    for (const KernelPlan& kernel : made->plan.kernels)
        for (const ArrayId id : kernel.scheduled.outputs)
            EXPECT_LT(d.array(id).axes.size(), 4U + (d.array(id).role == ArrayRole::output ? 1 : 0)) << d.array(id).name;
    EXPECT_EQ(made->plan.kernels.size(), 2U) << to_string(made->plan);
}

std::vector<std::string> planned_kernels(const Plan& plan) {
    return mapped<std::string>(plan.kernels, [](const KernelPlan& k) { return k.scheduled.kernel->name; });
}

// Factors that no instruction multiplies as they lie are copied. Values of 8 bits beside weights that the kernel
// computes become bf16. Those that are not contiguous along the sum change their dimensions.
TEST(ChooseForm, CopiesFactorsThatNoInstructionTakesAsTheyLie) {
    const std::string attention =
        "f(Q[h, q, k]: e4m3, K[h, x, k]: e4m3, V[h, x, d]: e4m3) -> O[h, q, d]: bf16\n"
        "    S[h, q, x] = sum(k) Q[h, q, k] * K[h, x, k]\n    P[h, q, x] = softmax(x) S[h, q, x] * k^-0.5\n"
        "    O[h, q, d] = sum(x) P[h, q, x] * V[h, x, d]\nsizes h = 16, q = x = 4096, k = d = 128\n";
    const auto copied = compiled(attention, "", {}, "h200");
    ASSERT_TRUE(copied.ok()) << render(copied.errors());
    EXPECT_THAT(planned_kernels(copied->plan), testing::ElementsAre("V_bf16", "O"));
    const std::string product =
        "f(A[m, k]: {0}, B[k, n]: {0}) -> C[m, n]: bf16\n    C[m, n] = sum(k) A[m, k] * B[k, n]\n"
        "sizes m = n = k = 4096\n";
    for (const char* type : {"e4m3", "e5m2", "tf32"}) {
        const auto transposed = compiled(fmt::format(fmt::runtime(product), type), "", {}, "h200");
        ASSERT_TRUE(transposed.ok()) << render(transposed.errors());
        EXPECT_THAT(planned_kernels(transposed->plan), testing::ElementsAre("B_rows", "C")) << type;
        EXPECT_TRUE(transposed->plan.kernels.back().scheduled.on_tensor_cores()) << type;
    }
    // Neighbours are of different products.
    const auto channels = compiled(
        "f(A[i, k, c]: bf16, B[j, k, c]: bf16) -> O[i, j, c]: bf16\n    O[i, j, c] = sum(k) A[i, k, c] * B[j, k, c]\n"
        "sizes i = j = k = 384, c = 128\n",
        "", {}, "h200");
    ASSERT_TRUE(channels.ok()) << render(channels.errors());
    EXPECT_TRUE(channels->plan.kernels.back().scheduled.on_tensor_cores()) << to_string(channels->plan);
}

// The same function with several axes of a product written as one. Summed axes lie beside each other, or one operand
// has rows between them. Rows are those of two axes.
TEST(ChooseForm, TakesSeveralAxesOfAProductAsOne) {
    const auto summed = [](const std::string& a, const std::string& b, const std::string& axes, const std::string& sizes) {
        return fmt::format(
            "f(A[{0}]: bf16, B[{1}]: bf16) -> C[m, n]: bf16\n    C[m, n] = sum({2}) A[{0}] * B[{1}]\n"
            "sizes m = n = 4096, {3}\n",
            a, b, axes, sizes);
    };
    const double one = seconds_on_h200(summed("m, t", "t, n", "t", "t = 4096"));
    EXPECT_NEAR(seconds_on_h200(summed("m, h, k", "h, k, n", "h, k", "h = 32, k = 128")) / one, 1, 0.01);
    EXPECT_NEAR(seconds_on_h200(summed("h, m, k", "h, k, n", "h, k", "h = 32, k = 128")) / one, 1, 0.02);
    EXPECT_NEAR(seconds_on_h200(summed("h, m, k", "h, k, n", "h, k", "h = 8, k = 512")) / one, 1, 0.02);
    const auto queries = [](const std::string& rows, const std::string& sizes) {
        return fmt::format(
            "f(Q[{0}, k]: bf16, K[x, k]: bf16, V[x, d]: bf16) -> O[{0}, d]: bf16\n"
            "    S[{0}, x] = sum(k) Q[{0}, k] * K[x, k]\n    P[{0}, x] = softmax(x) S[{0}, x] * k^-0.5\n"
            "    O[{0}, d] = sum(x) P[{0}, x] * V[x, d]\nsizes {1}, x = 65536, k = d = 128\n",
            rows, sizes);
    };
    EXPECT_NEAR(seconds_on_h200(queries("h, q", "h = q = 8")) / seconds_on_h200(queries("t", "t = 64")), 1, 0.01);
}

}  // namespace
}  // namespace napkin::test_choose_form
