// The interpreter of the kernel program: what kernels store is what the definition says, with asynchronous work done
// early or late. A statement of synchronization that is left out shows.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <fstream>
#include <map>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "derive/derive.hpp"
#include "diagram/evaluate.hpp"
#include "diagram/sizes.hpp"
#include "lower/interpret.hpp"
#include "lower/lower.hpp"
#include "lower/prove.hpp"
#include "machine/machine.hpp"
#include "plan/choose.hpp"
#include "run/pipeline.hpp"
#include "schedule/stream_k.hpp"
#include "support/keys_gradient.hpp"
#include "support/paths.hpp"
#include "support/ranges.hpp"
#include "syntax/parse.hpp"
#include "tile/interpret.hpp"

namespace napkin::test_interpret {
namespace {

using lower::Completion;

/// A text with sizes, and lines of a schedule that fix a part of its plan.
struct Subject {
    std::string name;
    std::string text, schedule = "";
    std::map<std::string, std::int64_t> sizes = {};
};

struct Planned {
    Diagram diagram;
    Extents extents;
    Plan plan;
    lower::LoweredProgram program;
};

Planned planned(const Subject& subject, const Machine& machine) {
    const auto diagram = parse_diagram(std::make_shared<const Source>(Source{subject.name, subject.text}));
    if (!diagram) throw std::runtime_error(render(diagram.errors()));
    std::map<std::string, std::int64_t> sizes = subject.sizes;
    std::erase_if(sizes, [&](const auto& size) {
        return none_of(diagram->axes, [&](const Axis& axis) { return axis.name == size.first; });
    });
    Planned out{*diagram, bind_sizes(*diagram, sizes).value(), {}, {}};
    PlanOptions options;
    if (!subject.schedule.empty())
        options.file = std::make_shared<const Source>(Source{"a.schedule", subject.schedule});
    auto plan = choose_plan(derive(*diagram).value(), out.extents, machine, {}, options);
    if (!plan) throw std::runtime_error(subject.name + ": " + render(plan.errors()));
    out.plan = std::move(*plan);
    out.program = lower::lowered(out.plan.program());
    return out;
}

/// Spacing of the coarsest type among the arrays, which rounds operands and results.
double coarsest(const Diagram& diagram) {
    double out = 0;
    for (const Array& a : diagram.arrays)
        if (is_float(a.type)) out = std::max(out, epsilon(a.type));
    return out;
}

/// Runs all kernels. Returns what is wrong with the outputs; empty: nothing. `movement`: what each kernel moves.
std::string fault_of(const Planned& p, const lower::LoweredProgram& program, Completion completion,
                     std::vector<lower::Movement>* movement = nullptr) {
    const SizedProgram tiles = p.plan.tiles();
    Values given = random_inputs(p.diagram, p.extents, 1), memory(tiles.diagram.arrays.size());
    for (const ArrayId a : tiles.diagram.inputs) memory[a] = given[*p.diagram.find_array(tiles.diagram.array(a).name)];
    for (const lower::KernelProgram& kernel : program.kernels) {
        const auto moved = lower::interpret(kernel, memory, completion);
        if (!moved) return moved.errors().front().code + ": " + moved.errors().front().message;
        if (movement) movement->push_back(*moved);
    }
    evaluate(p.diagram, p.extents, given);
    for (const ArrayId a : tiles.diagram.outputs) {
        const ArrayId known = *p.diagram.find_array(tiles.diagram.array(a).name);
        const Column &want = given[known], &got = memory[a];
        if (want.size() != got.size()) return "sizes differ";
        double largest = 0, worst = 0;
        for (std::size_t i = 0; i < want.size(); ++i) largest = std::max(largest, std::abs(want[i]));
        for (std::size_t i = 0; i < want.size(); ++i) {
            if (want[i] == got[i] || (std::isnan(want[i]) && std::isnan(got[i]))) continue;
            const double e = std::abs(want[i] - got[i]) / (std::abs(want[i]) + largest);
            if (!(e <= worst)) worst = e;
            if (std::isnan(worst)) break;
        }
        if (!(worst <= coarsest(p.diagram))) return fmt::format("{}: off by {}", tiles.diagram.array(a).name, worst);
    }
    return "";
}

std::string attention(const std::string& score, const std::string& sizes, const std::string& more = "",
                      const std::string& type = "bf16") {
    return fmt::format(
        "attention(Q[h, q, k]: {3}, K[h, x, k]: {3}, V[h, x, d]: {3}{0}) -> O[h, q, d]: {3}\n"
        "    S[h, q, x] = sum(k) Q[h, q, k] * K[h, x, k] * size(k)^-0.5\n"
        "    P[h, q, x] = softmax(x) {1}\n"
        "    O[h, q, d] = sum(x) P[h, q, x] * V[h, x, d]\n"
        "sizes {2}\n",
        more, score, sizes, type);
}
const std::string dense = "S[h, q, x]", causal = "where(x <= q, S[h, q, x], -inf)",
                  window = "where(x <= q, where(x > q - 96, S[h, q, x], -inf), -inf)";

std::string product(const std::string& a, const std::string& b, const std::string& type, const std::string& sizes,
                    const std::string& value = "sum(k) A[{0}] * B[{1}]", const std::string& more = "") {
    return fmt::format("product(A[{0}]: {2}, B[{1}]: {2}{4}) -> C[m, n]\n    C[m, n] = {5}\nsizes {3}\n", a, b, type,
                       sizes, more, fmt::format(fmt::runtime(value), a, b));
}

const std::string four = "mma_m m\nwarps 4\nrole copies 4\n", eight = "mma_m m\nwarps 8\nrole copies 4\n",
                  rows = "mma_m q\nwarps 4\nrole copies 4\nstream x = 16\nthreads 2\n",
                  ahead =
                      "slot S order 0, stage_offset 1\nslot P_M_old order 2, stage_offset 1\nslot P_M order 2, "
                      "stage_offset 1\nslot guarded order 2, stage_offset 1\nslot delta order 2, stage_offset 1\n"
                      "slot weight order 2, stage_offset 1\nslot P_Z_acc order 2, stage_offset 1\nslot O_acc order 1\n";

/// Attention on an H200: masks, biases, heads that share keys, and each way to hand out tiles.
std::vector<Subject> attentions() {
    std::vector<Subject> out;
    for (const char* d : {"64", "128"})
        for (const auto& [name, score] : {std::pair{"dense", dense}, {"causal", causal}, {"window", window}})
            out.push_back({fmt::format("{} of {}", name, d),
                           attention(score, fmt::format("h = 1, q = x = 330, k = d = {}", d)), "mma_m q\n"});
    const std::string ragged = "h = 3, q = 200, x = 112, k = d = 32";
    out.push_back({"bias", attention("S[h, q, x] + B[q, x]", "h = 2, q = x = 200, k = d = 64", ", B[q, x]: bf16")});
    out.push_back({"bias of 12 warps",
                   attention("S[h, q, x] + B[q, x]", "h = 3, q = x = 200, k = d = 64", ", B[q, x]: bf16"),
                   "mma_m q\nwarps 12\nrole copies 4\nstream x = 32\nscheduler stream_k\nthreads 4\n"});
    out.push_back({"f16",
                   "f(Q[h, q, k]: f16, K[h, x, k]: f16, V[h, x, d]: f16) -> O[h, q, d]: f16\n"
                   "    S[h, q, x] = sum(k) Q[h, q, k] * K[h, x, k]\n    P[h, q, x] = softmax(x) S[h, q, x] / k\n"
                   "    O[h, q, d] = sum(x) P[h, q, x] * V[h, x, d]\nsizes h = 2, q = 72, x = 136, k = 32, d = 24\n",
                   rows});
    out.push_back({"ahead", attention(dense, ragged), rows + ahead});
    out.push_back({"causal ahead", attention(causal, "h = 2, q = x = 200, k = d = 32"), rows + ahead});
    out.push_back(
        {"one stage", attention(dense, ragged),
         "mma_m q\nwarps 4\nrole copies 4\nstream x = 16\nplace K operand, stages 1\nplace V operand, stages 1\n"});
    for (const int warps : {4, 8})
        for (const char* scheduler : {"stream_k", "dynamic"})
            for (const auto& [name, score] : {std::pair{"dense", dense}, {"causal", causal}})
                if (score == dense || std::string(scheduler) == "dynamic")
                    out.push_back(
                        {fmt::format("{} {} {}", name, scheduler, warps),
                         attention(score, "h = 7, q = 200, x = 100, k = d = 16"),
                         fmt::format("mma_m q\nwarps {}\nrole copies 4\nstream x = 16\nscheduler {}\nthreads 3\n",
                                     warps, scheduler)});
    for (const char* score : {"S[h, q, x] * 4", "S[h, q, x] + x * 0.17", "S[h, q, x] + x * 0.43", "S[h, q, x] + x * 3"})
        for (const std::string& order : {std::string(), ahead})
            out.push_back({fmt::format("rescaled {} {}", score, order.empty() ? "in turn" : "ahead"),
                           attention(score, "h = 1, q = 72, x = 144, k = 32, d = 16"),
                           rows + "rescaling rescale\n" + order});
    out.push_back({"always rescaled", attention("S[h, q, x] * 4", ragged), rows + "rescaling always\n"});
    out.push_back({"documents",
                   attention("where(D[q] == E[x], S[h, q, x], -inf)", "h = 2, q = 200, x = 120, k = d = 32",
                             ", D[q]: i32, E[x]: i32"),
                   "mma_m q\nwarps 8\nrole copies 4\nstream x = 16\nthreads 2\n"});
    out.push_back({"lengths",
                   attention("where(x < L[h], S[h, q, x], -1000)", "h = 5, q = 72, x = 88, k = d = 32", ", L[h]: i32"),
                   "mma_m q\nwarps 8\nrole copies 4\nstream x = 16\nthreads 2\n"});
    out.push_back(
        {"grouped queries",
         "f(Q[g, h, q, k]: bf16, K[g, x, k]: bf16, V[g, x, d]: bf16) -> O[g, h, q, d]: bf16\n"
         "    S[g, h, q, x] = sum(k) Q[g, h, q, k] * K[g, x, k] * size(k)^-0.5\n"
         "    P[g, h, q, x] = softmax(x) where(x <= q, S[g, h, q, x], -inf)\n"
         "    O[g, h, q, d] = sum(x) P[g, h, q, x] * V[g, x, d]\nsizes g = 2, h = 2, q = x = 200, k = d = 64\n"});
    const std::string heads =
        "f(Q[b, h, q, k]: bf16, K[b, x, k]: bf16, V[b, x, d]: bf16) -> O[b, h, q, d]: bf16\n"
        "    S[b, h, q, x] = sum(k) Q[b, h, q, k] * K[b, x, k]\n    P[b, h, q, x] = softmax(x) S[b, h, q, x] * "
        "k^-0.5\n    O[b, h, q, d] = sum(x) P[b, h, q, x] * V[b, x, d]\n";
    out.push_back({"cluster of queries", heads + "sizes b = 1, h = 3, q = 100, x = 100, k = 32, d = 32\n",
                   rows + "cluster q 2\n" + ahead});
    out.push_back(
        {"cluster of heads", heads + "sizes b = 2, h = 4, q = 60, x = 80, k = 32, d = 64\n",
         "mma_m q\nwarps 4\nrole copies 4\nstream x = 16\nthreads 4\ngroup b = 1\ngroup h = 1\ncluster h 2\n"});
    return out;
}

/// Products on an H200: types, either dimension contiguous, epilogues, and each way to hand out tiles.
std::vector<Subject> products() {
    std::vector<Subject> out;
    for (const char* a : {"m, k", "k, m"})
        for (const char* b : {"n, k", "k, n"})
            for (const char* type : {"bf16", "f16"})
                out.push_back({fmt::format("{}: {} {}", type, a, b), product(a, b, type, "m = 200, n = 136, k = 144")});
    out.push_back({"e4m3", product("m, k", "n, k", "e4m3", "m = 256, n = 128, k = 256")});
    out.push_back({"tf32", product("m, k", "n, k", "tf32", "m = 256, n = 128, k = 96")});
    out.push_back({"gelu", product("m, k", "n, k", "bf16", "m = 200, n = 80, k = 248",
                                   "gelu((sum(k) A[{0}] * B[{1}]) + b[n])", ", b[n]: bf16")});
    out.push_back(
        {"two products", product("m, k", "n, k", "bf16", "m = 200, n = 64, k = 128",
                                 "silu(sum(k) A[{0}] * B[{1}]) * (sum(k) A[{0}] * G[n, k])", ", G[n, k]: bf16")});
    out.push_back({"residual", product("m, k", "n, k", "bf16", "m = 256, n = 128, k = 128",
                                       "(sum(k) A[{0}] * B[{1}]) + R[m, n]", ", R[m, n]: bf16")});
    for (const std::string& schedule : {four + "group n = 32\nstream k = 32\nthreads 2\ncluster m 2\n",
                                        four + "group n = 128\nstream k = 16\ngrid 4\ncluster m 2\n",
                                        eight + "group n = 32\nstream k = 32\nthreads 2\ncluster n 2\n",
                                        four + "group n = 64\nstream k = 16\nthreads 4\ncluster m 4\n",
                                        four + "group n = 64\nstream k = 16\nscheduler stream_k\nthreads 3\n",
                                        eight + "group n = 64\nstream k = 32\nscheduler dynamic\nthreads 3\n",
                                        std::string("mma_m m\nwarps 4\ngroup n = 64\nstream k = 32\nthreads 2\n")})
        out.push_back({schedule, product("m, k", "n, k", "bf16", "m = 256, n = 128, k = 128"), schedule});
    out.push_back({"normed rows",
                   "normed(X[m, k]: bf16, W[n, k]: bf16) -> Y[m, n]: bf16\n"
                   "    R[m] = rsqrt(sum(k) X[m, k] * X[m, k] / size(k) + 1e-5)\n"
                   "    Y[m, n] = sum(k) X[m, k] * R[m] * W[n, k]\nsizes m = 200, n = 96, k = 256\n"});
    out.push_back({"heads summed",
                   "heads(A[h, m, k]: bf16, B[h, k, n]: bf16) -> C[m, n]: bf16\n"
                   "    C[m, n] = sum(h, k) A[h, m, k] * B[h, k, n]\nsizes m = n = 128, h = 4, k = 64\n"
                   "schedule\n    stream hk\n"});
    out.push_back({"convolution",
                   "conv(X[b, y, z, c]: bf16, W[r, s, c, n]: bf16) -> Y[b, u, v, n]: bf16\n"
                   "    Y[b, u, v, n] = sum(r, s, c) X[b, u + r, v + s, c] * W[r, s, c, n]\n"
                   "sizes b = 1, u = 2, v = 64, r = s = 3, c = n = 32, y = u + r - 1, z = v + s - 1\n"
                   "schedule\n    stream rsc\n"});
    const auto scaled = [](int of, const char* sizes) {
        return fmt::format(
            "f(A[m, block, k]: e4m3, B[n, block, k]: e4m3, sa[m, block], sb[w, block]) -> C[m, n]\n"
            "    P[m, n, block] = sum(k) A[m, block, k] * B[n, block, k]\n"
            "    C[m, n] = sum(block) P[m, n, block] * sb[n // {}, block] * sa[m, block]\nsizes {}\n",
            of, sizes);
    };
    const auto parts = [](int n) { return fmt::format("atom P matrix, points m n block, over k, parts {}\n", n); };
    const char* const uneven = "m = 200, n = 208, w = 7, block = 3, k = 64";
    out.push_back({"a scale a part", scaled(32, uneven), eight + "group n = 64\n" + parts(2)});
    out.push_back({"a scale for both", scaled(64, "m = 128, n = 128, w = 2, block = 2, k = 64"),
                   eight + "group n = 64\n" + parts(2)});
    out.push_back({"two scales a part", scaled(16, "m = 130, n = 96, w = 6, block = 3, k = 32"),
                   eight + "group n = 64\n" + parts(2)});
    out.push_back({"four parts", scaled(32, uneven), eight + "group n = 128\n" + parts(4)});
    out.push_back({"parts in a cluster", scaled(32, uneven), eight + "group n = 64\nthreads 2\ncluster m 2\n" + parts(2)});
    return out;
}

/// Operands of which integers in memory say where their tiles lie: matrices of experts, and pages of keys and values.
std::vector<Subject> gathered_operands() {
    const auto experts = [](int block, const char* sizes) {
        return fmt::format(
            "experts(X[p, c]: bf16, W[e, h, c]: bf16, E[b]: i32) -> Y[p, h]: bf16\n"
            "    Y[p, h] = sum(c) X[p, c] * W[E[p // {}], h, c]\nsizes {}\n",
            block, sizes);
    };
    const auto pages = [](int page, const char* score, const char* sizes) {
        return fmt::format(
            "paged(Q[b, h, g, k]: bf16, K[page, slot, h, k]: bf16, V[page, slot, h, d]: bf16, table[b, n]: i32)"
            " -> O[b, h, g, d]: bf16\n"
            "    S[b, h, g, x] = sum(k) Q[b, h, g, k] * K[table[b, x // {0}], x % {0}, h, k]\n"
            "    P[b, h, g, x] = softmax(x) {1}\n"
            "    O[b, h, g, d] = sum(x) P[b, h, g, x] * V[table[b, x // {0}], x % {0}, h, d]\nsizes {2}\n",
            page, score, sizes);
    };
    // Blocks of keys that a list has for 64 queries: its numbers of blocks, or their first rows.
    const auto lists = [](const char* place, const char* score, const char* sizes) {
        return fmt::format(
            "lists(Q[h, q, k]: bf16, K[h, n, k]: bf16, V[h, n, d]: bf16, I[r, j]: i32) -> O[h, q, d]: bf16\n"
            "    S[h, q, x] = sum(k) Q[h, q, k] * K[h, {0}, k]\n    P[h, q, x] = softmax(x) {1}\n"
            "    O[h, q, d] = sum(x) P[h, q, x] * V[h, {0}, d]\nsizes {2}\n",
            place, score, sizes);
    };
    // Rows of keys that each query chooses.
    const auto rows = [](const char* place, const char* score, const char* sizes) {
        return fmt::format(
            "rows(Q[q, h, k]: bf16, K[n, k]: bf16, V[n, d]: bf16, I[q, x]: i32) -> O[q, h, d]: bf16\n"
            "    S[q, h, x] = sum(k) Q[q, h, k] * K[{0}, k]\n    P[q, h, x] = softmax(x) {1}\n"
            "    O[q, h, d] = sum(x) P[q, h, x] * V[{0}, d]\nsizes {2}\n",
            place, score, sizes);
    };
    const std::string of_h = "mma_m h\nwarps 4\nrole copies 4\n";
    const char* const by_number = "I[q // 64, x // 32] * 32 + x % 32";
    const char* const scaled = "S[b, h, g, x] * k^-0.5";
    const std::string of_q = "mma_m q\nwarps 4\nrole copies 4\n";
    const std::string of_p = "mma_m p\nwarps 4\nrole copies 4\n", of_g = "mma_m g\nwarps 4\nrole copies 4\n";
    return {
        {"experts", experts(64, "p = 256, b = 4, c = 96, h = 72, e = 3"), of_p + "threads 3\n"},
        {"experts that end early", experts(128, "p = 200, b = 2, c = 64, h = 64, e = 2"), of_p},
        {"pages", pages(32, scaled, "b = 2, h = 2, g = 5, x = n * 32, n = 4, slot = 32, page = 7, k = d = 32"), of_g},
        {"short pages",
         pages(16, scaled, "b = 3, h = 1, g = 8, x = n * 16, n = 6, slot = 16, page = 20, k = 64, d = 32"), of_g},
        {"an end within a page",
         pages(32, scaled, "b = 2, h = 2, g = 8, x = 100, n = 4, slot = 32, page = 9, k = d = 32"), of_g},
        {"masked pages",
         pages(32, "where(x < 3 * g + 40, S[b, h, g, x], -inf)",
               "b = 2, h = 2, g = 8, x = n * 32, n = 4, slot = 32, page = 9, k = d = 32"),
         of_g},
        {"lists", lists(by_number, "S[h, q, x] * k^-0.5", "h = 2, q = 150, r = 3, j = 3, x = 96, n = 320, k = d = 32"), of_q},
        {"lists that end in a block",
         lists(by_number, "S[h, q, x] * k^-0.5", "h = 2, q = 128, r = 2, j = 3, x = 75, n = 200, k = d = 32"), of_q},
        {"masked lists",
         lists(by_number, "where(I[q // 64, x // 32] * 32 + x % 32 <= q, S[h, q, x], -inf)",
               "h = 2, q = 130, r = 3, j = 3, x = 96, n = 160, k = d = 32"),
         of_q},
        {"lists of first rows",
         lists("I[q // 64, x // 48] + x % 48", "S[h, q, x]",
               "h = 1, q = 128, r = 2, j = 3, x = 144, n = 100, k = d = 32"),
         of_q},
        {"rows", rows("I[q, x]", "S[q, h, x] * k^-0.5", "q = 3, h = 20, x = 96, n = 40, k = d = 32"), of_h},
        {"rows that end in a K block",
         rows("I[q, x]", "S[q, h, x] * k^-0.5", "q = 2, h = 64, x = 75, n = 300, k = 80, d = 136"), of_h + "stream x = 32\n"},
        {"masked rows",
         rows("max(I[q, x], 0)", "where(I[q, x] >= 5, S[q, h, x], -inf)", "q = 3, h = 16, x = 64, n = 90, k = d = 32"),
         of_h}};
}

/// Vectors by column, and matrices of 8 bits, that come with the operands of a loop.
std::string converted_cache() {
    return "f(Q[b, g, k]: bf16, K[b, x, k]: e4m3, V[b, x, d]: e4m3, s[b]) -> O[b, g, d]: bf16\n"
           "    S[b, g, x] = (sum(k) Q[b, g, k] * K[b, x, k]) * s[b]\n    P[b, g, x] = softmax(x) S[b, g, x] * k^-0.5\n"
           "    O[b, g, d] = sum(x) P[b, g, x] * V[b, x, d]\nsizes b = 3, g = 9, x = 107, k = 32, d = 64\n";
}
std::vector<Subject> vectors() {
    std::vector<Subject> out;
    for (const char* sizes : {"h = 2, q = 128, x = 200, k = d = 32", "h = 1, q = 200, x = 72, k = d = 64",
                              "h = 2, q = 101, x = 64, k = d = 32"})
        for (const bool is_causal : {false, true})
            out.push_back({fmt::format("keys' gradients{} {}", is_causal ? ", causal," : "", sizes),
                           keys_gradient(is_causal, sizes), "mma_m x\nwarps 4\nrole copies 4\nstream q = 32\n"});
    for (const auto& [type, value] :
         {std::pair("i8", "f32(W[n, k])"), {"u8", "f32(W[n, k] % 16 - 8)"}, {"e5m2", "W[n, k]"}})
        out.push_back({fmt::format("weights of {}", type),
                       fmt::format("f(X[m, k]: bf16, W[n, k]: {}, S[n]: f32) -> Y[m, n]: bf16\n"
                                   "    Y[m, n] = sum(k) X[m, k] * ({} * S[n])\nsizes m = 16, n = 136, k = 176\n",
                                   type, value),
                       "mma_m n\nwarps 4\nrole copies 4\nstream k = 32\n"});
    // Threads write these to shared memory, where products read them.
    for (const auto& [type, value] :
         {std::pair("i8", "f32(W[n, k])"), {"u8", "f32(W[n, k] % 16 - 8) * S[n]"}, {"e4m3", "W[n, k]"}})
        out.push_back({fmt::format("converted weights of {}", type),
                       fmt::format("f(X[m, k]: bf16, W[n, k]: {}, S[n]: f32) -> Y[m, n]: bf16\n"
                                   "    Y[m, n] = sum(k) X[m, k] * ({})\nsizes m = 136, n = 72, k = 176\n",
                                   type, value),
                       "mma_m m\nwarps 4\nrole copies 4\nstream k = 32\n"});
    for (const char* schedule :
         {"mma_m n\nwarps 4\nrole copies 4\nstream k = 64\n", "mma_m m\nwarps 4\nrole copies 4\nstream k = 64\n"})
        out.push_back({"weights of 4 bits",
                       "f(X[m, k]: bf16, W[n, j]: u8, S[n, g]: bf16) -> Y[m, n]: bf16\n"
                       "    Y[m, n] = sum(k) X[m, k] * (f32((W[n, k // 2] // where(k % 2 == 0, 1, 16)) % 16 - 8) * "
                       "S[n, k // 32])\n"
                       "sizes m = 40, n = 72, k = 192, j = 96, g = 6\n",
                       schedule});
    out.push_back({"converted keys and values", converted_cache(), "mma_m g\nwarps 4\nrole copies 4\nstream x = 32\n"});
    out.push_back(
        {"a mask in memory",
         attention("where(M[q, x], S[h, q, x], -1000)", "h = 2, q = 72, x = 96, k = d = 32", ", M[q, x]: bool"), rows});
    return out;
}

/// The examples, at sizes at which they take little time.
std::vector<Subject> examples() {
    using Sizes = std::map<std::string, std::int64_t>;
    const Sizes heads{{"h", 2}, {"q", 72}, {"x", 100}}, rows_and_columns{{"r", 40}, {"c", 200}};
    const std::vector<std::pair<const char*, Sizes>> all{
        {"alibi", heads},
        {"argmax", rows_and_columns},
        {"attention", {{"q", 72}, {"x", 100}}},
        {"attention_bf16", heads},
        {"attention_bias", heads},
        {"attention_fp8", {{"q", 64}, {"x", 128}}},
        {"attention_lse", {{"q", 72}, {"x", 100}}},
        {"batched_matmul", {{"n", 2}, {"i", 96}, {"j", 96}, {"k", 96}}},
        {"block_scaled_matmul", {{"m", 128}, {"n", 128}, {"block", 2}}},
        {"causal", heads},
        {"causal_convolution", {{"n", 100}, {"w", 4}, {"c", 32}}},
        {"conv1d", {{"b", 2}, {"c", 8}, {"o", 8}, {"n", 64}}},
        {"cosine_attention", heads},
        {"cross_attention", {{"b", 2}, {"q", 100}, {"x", 150}}},
        {"cross_entropy", {{"n", 64}, {"k", 64}, {"v", 200}}},
        {"decode", {{"h", 2}, {"x", 300}}},
        {"elu_chain", rows_and_columns},
        {"embedding", {{"t", 50}, {"v", 100}, {"c", 32}}},
        {"entropy", rows_and_columns},
        {"experts", {{"t", 32}, {"e", 4}, {"c", 32}, {"d", 32}, {"h", 64}}},
        {"grouped_query", {{"g", 2}, {"h", 2}, {"q", 72}, {"x", 72}}},
        {"groupnorm", {{"b", 2}, {"g", 2}, {"c", 8}, {"n", 64}}},
        {"kv_cache", {{"n", 64}, {"x", 64}}},
        {"layernorm", rows_and_columns},
        {"layernorm_linear", {{"r", 96}, {"c", 128}, {"n", 64}}},
        {"linear_attention", {{"h", 2}, {"q", 128}, {"x", 128}}},
        {"logsumexp", rows_and_columns},
        {"matching_ids", {{"i", 64}, {"j", 300}}},
        {"matmul", {{"a", 128}, {"b", 96}, {"c", 64}}},
        {"matmul_chain", {{"a", 96}, {"b", 64}, {"c", 96}, {"d", 64}}},
        {"max_pool", {{"c", 16}, {"i", 64}}},
        {"mlp", {{"r", 64}, {"c", 64}, {"h", 96}, {"d", 64}}},
        {"multihead", heads},
        {"paged_attention", {{"b", 2}, {"q", 4}, {"n", 4}, {"page", 16}}},
        {"pointwise", {{"i", 1000}, {"r", 40}, {"c", 200}}},
        {"quantize", {{"p", 256}, {"i", 32}, {"j", 32}, {"r", 32}}},
        {"rmsnorm_linear", {{"r", 96}, {"c", 128}, {"n", 64}}},
        {"roofline", {{"i", 1000}, {"a", 64}, {"b", 64}, {"c", 64}}},
        {"rotary", {{"t", 50}}},
        {"sigmoid_attention", heads},
        {"sink", heads},
        {"sliding_window", heads},
        {"softcap", heads},
        {"softmax", rows_and_columns},
        {"swiglu", {{"r", 64}, {"c", 64}, {"h", 96}, {"d", 64}}},
        {"temperature", heads},
        {"token_shift", {{"b", 2}, {"t", 50}, {"c", 32}}},
        {"training", {{"p", 300}}},
        {"variance", rows_and_columns}};
    std::vector<Subject> out;
    for (const auto& [name, sizes] : all) {
        std::stringstream text;
        text << std::ifstream(source_dir() / "examples" / fmt::format("{}.nk", name)).rdbuf();
        out.push_back({name, text.str(), "", sizes});
    }
    return out;
}

struct Seen {
    int programs = 0, kernels = 0, on_tensor_cores = 0, counted = 0;
};

/// Whether all that the kernel loads goes to shared memory or into lanes, tile by tile as the model counts it.
bool loads_tiles(const ScheduledKernel& kernel) {
    return !chosen_stream_k(kernel) && kernel.arena_in_core() && all_of(kernel.steps, [&](const Step& step) {
        const auto* load = std::get_if<Load>(step.statement);
        return !load || (!kernel.is_view(load->variable) && !step.stays);
    });
}

/// Plans and interprets all of them, with work done early and late. Bytes that move are those of the model.
void expect_right(const std::vector<Subject>& subjects, const char* machine_name, Seen& seen) {
    const Machine machine = load_machine(machine_name).value();
    for (const Subject& subject : subjects) {
        SCOPED_TRACE(fmt::format("{} on {}", subject.name, machine_name));
        const Planned p = planned(subject, machine);
        std::vector<lower::Movement> early, late;
        EXPECT_EQ(fault_of(p, p.program, Completion::early, &early), "");
        EXPECT_EQ(fault_of(p, p.program, Completion::late, &late), "");
        EXPECT_EQ(early, late);
        ++seen.programs;
        Values values = random_inputs(p.diagram, p.extents, 1), given(p.plan.tiles().diagram.arrays.size());
        for (const ArrayId a : p.plan.tiles().diagram.inputs)
            given[a] = values[*p.diagram.find_array(p.plan.tiles().diagram.array(a).name)];
        const std::vector<Counts> counts = interpret(p.plan.tiles(), given);
        for (std::size_t k = 0; k < early.size(); ++k) {
            const ScheduledKernel& kernel = p.plan.kernels[k].scheduled;
            ++seen.kernels, seen.on_tensor_cores += kernel.on_tensor_cores();
            if (!loads_tiles(kernel)) continue;
            ++seen.counted;
            EXPECT_EQ(early[k].global_to_shared.bytes + early[k].global_to_registers.bytes - early[k].past_tiles.bytes,
                      counts[k].loaded_bytes)
                << kernel.kernel->name;
            EXPECT_EQ(early[k].registers_to_global.bytes + early[k].shared_to_global.bytes, counts[k].stored_bytes);
        }
    }
}

TEST(Interpret, AttentionIsWhatTheDefinitionSays) {
    Seen seen;
    expect_right(attentions(), "h200", seen);
    fmt::print("{} programs, {} kernels, {} on tensor cores, {} counted\n", seen.programs, seen.kernels,
               seen.on_tensor_cores, seen.counted);
    EXPECT_EQ(seen.on_tensor_cores, seen.kernels);
}
TEST(Interpret, ProductsAreWhatTheDefinitionSays) {
    Seen seen;
    expect_right(products(), "h200", seen);
    fmt::print("{} programs, {} kernels, {} on tensor cores, {} counted\n", seen.programs, seen.kernels,
               seen.on_tensor_cores, seen.counted);
    EXPECT_GE(seen.counted, 20);
}
/// A map finds the sum in the warp that added it up.
TEST(Interpret, SumsInAccumulatorsAreWhatTheDefinitionSays) {
    Seen seen;
    expect_right({{"bias and residual",
                   "f(A[m, k], B[k, n], b[n], R[m, n]) -> C[m, n]\n    S[m, n] = sum(k) A[m, k] * B[k, n]\n"
                   "    C[m, n] = max(S[m, n] + b[n], 0) + R[m, n]\nsizes m = 21, n = 91, k = 19\n",
                   "vector axis n\npanel vectors 2\ngroup m 16\ngroup n 64\nstream k 8\nwarps 4\nblocks 2\n"}},
                 "h200", seen);
    EXPECT_EQ(seen.programs, 1);
}
TEST(Interpret, GatheredOperandsAreWhatTheDefinitionSays) {
    Seen seen;
    expect_right(gathered_operands(), "h200", seen);
    EXPECT_EQ(seen.on_tensor_cores, seen.kernels);
}
TEST(Interpret, WhatComesWithOperandsIsWhatTheDefinitionSays) {
    Seen seen;
    expect_right(vectors(), "h200", seen);
    EXPECT_EQ(seen.on_tensor_cores, seen.kernels);
}
TEST(Interpret, ExamplesAreWhatTheDefinitionSays) {
    Seen seen;
    // Every second example, on one of two machines in turn: CI has few minutes.
    const std::vector<Subject> all = examples();
    std::array<std::vector<Subject>, 2> shares;
    for (std::size_t i = 0; i < all.size(); i += 2) shares[i / 2 % 2].push_back(all[i]);
    expect_right(shares[0], "h200", seen);
    expect_right(shares[1], "a100-sxm-80gb", seen);
    fmt::print("{} programs, {} kernels, {} on tensor cores, {} counted\n", seen.programs, seen.kernels,
               seen.on_tensor_cores, seen.counted);
    EXPECT_GE(seen.counted, 15);
}

// ---- faults
// ------------------------------------------------------------

/// Leaves out the synchronizing statement of this number, or the barrier inside of one. Counts down to it.
bool leave_out(lower::Block& list, int& number, std::string& what, const lower::KernelProgram& program) {
    for (std::size_t n = 0; n < list.size(); ++n) {
        if (lower::synchronizes(list[n]) && number-- == 0) {
            what = to_string(program, list[n]);
            const bool was_inside = std::visit(
                [](auto& s) {
                    if constexpr (requires { s.has_barrier_inside; }) return std::exchange(s.has_barrier_inside, false);
                    return false;
                },
                list[n].kind);
            if (!was_inside) list.erase(list.begin() + static_cast<std::ptrdiff_t>(n));
            return true;
        }
        const bool is_found = std::visit(
            [&](auto& s) {
                bool found = false;
                if constexpr (requires { s.body; }) found = leave_out(s.body, number, what, program);
                if constexpr (requires { s.otherwise; }) found = found || leave_out(s.otherwise, number, what, program);
                return found;
            },
            list[n].kind);
        if (is_found) return true;
    }
    return false;
}
bool leave_out(lower::KernelProgram& program, int number, std::string& what) {
    if (leave_out(program.entry, number, what, program)) return true;
    if (program.producer && (leave_out(program.producer->body, number, what, program) ||
                             leave_out(program.producer->end, number, what, program)))
        return true;
    return leave_out(program.consumer.body, number, what, program) ||
           leave_out(program.consumer.end, number, what, program);
}

TEST(Interpret, StatementsThatAreLeftOutShow) {
    const std::string ragged = "h = 2, q = 100, x = 112, k = d = 32";
    std::vector<std::pair<const char*, Subject>> subjects;
    for (const Subject& s : std::vector<Subject>{
             {"dense", attention(dense, ragged), rows},
             {"ahead", attention(causal, "h = 2, q = x = 128, k = d = 32"), rows + ahead},
             {"ping-pong", attention(dense, "h = 2, q = 256, x = 128, k = d = 32"),
              "mma_m q\nwarps 8\nrole copies 4\nstream x = 16\nthreads 2\nping_pong on\n" + ahead},
             {"stream-K", attention(dense, "h = 3, q = 100, x = 112, k = d = 16"),
              "mma_m q\nwarps 4\nrole copies 4\nstream x = 16\nscheduler stream_k\nthreads 4\n"},
             {"queue", attention(causal, "h = 5, q = 100, x = 100, k = d = 16"), rows + "scheduler dynamic\n"},
             {"cluster", product("m, k", "n, k", "bf16", "m = 256, n = 64, k = 128"),
              four + "group n = 32\nstream k = 32\nthreads 2\ncluster m 2\n"},
             {"no producer", product("m, k", "n, k", "bf16", "m = 128, n = 64, k = 192"),
              "mma_m m\nwarps 4\ngroup n = 64\nstream k = 32\nthreads 1\n"},
             {"written operands", converted_cache(), "mma_m g\nwarps 4\nrole copies 4\nstream x = 32\n"},
             {"softmax", "f(X[r, c]) -> Y[r, c]\n    Y[r, c] = softmax(c) X[r, c]\nsizes r = 8, c = 500\n"}})
        subjects.emplace_back("h200", s);
    subjects.emplace_back("a100-sxm-80gb",
                          Subject{"product by warps", product("m, k", "n, k", "bf16", "m = 128, n = 64, k = 192"),
                                  "mma_m m\nwarps 4\ngroup n = 64\nstream k = 32\nthreads 1\n"});
    int all = 0, shown = 0;
    for (const auto& [machine, subject] : subjects) {
        const Planned p = planned(subject, load_machine(machine).value());
        ASSERT_EQ(fault_of(p, p.program, Completion::late), "") << subject.name;
        for (std::size_t k = 0; k < p.program.kernels.size(); ++k)
            for (int number = 0;; ++number) {
                lower::LoweredProgram faulty = p.program;
                std::string what;
                if (!leave_out(faulty.kernels[k], number, what)) break;
                ++all;
                std::string fault;
                for (const Completion completion : {Completion::late, Completion::early}) {
                    try {
                        fault = fault_of(p, faulty, completion);
                    } catch (const std::exception& e) {
                        fault = e.what();
                    }
                    if (!fault.empty()) break;
                }
                shown += fault.empty() ? 0 : 1;
                if (fault.empty()) fmt::print("{} does not need: {}\n", subject.name, what);
            }
    }
    fmt::print("{} of {} statements that are left out show\n", shown, all);
    EXPECT_GE(shown, all * 4 / 5);  // measured: 110 of 122
}

/// What is planned for long axes of any size, for axes that are shorter than a tile, and for those that tiles do not
/// divide.
TEST(Interpret, KernelsOfAnySizeAreRightAtOtherSizes) {
    const std::string behind_a_cache =
        "attention(Q[h, q, k]: bf16, K[h, x, k]: bf16, V[h, x, d]: bf16) -> O[h, q, d]: bf16\n"
        "    S[h, q, x] = sum(k) Q[h, q, k] * K[h, x, k]\n"
        "    P[h, q, x] = softmax(x) where(x <= q + size(x) - size(q), S[h, q, x] * k^-0.5, -inf)\n"
        "    O[h, q, d] = sum(x) P[h, q, x] * V[h, x, d]\n"
        "sizes h = any(2), q = any(300), x = any(400), k = d = 64\n";
    const std::string product =
        "product(A[m, k]: bf16, B[n, k]: bf16) -> C[m, n]: f32\n"
        "    C[m, n] = sum(k) A[m, k] * B[n, k]\n"
        "sizes m = any(300), n = any(200), k = 128\n";
    const std::string in_parts =
        "attention(Q[h, q, k]: bf16, K[h, x, k]: bf16, V[h, x, d]: bf16) -> O[h, q, d]: bf16\n"
        "    S[h, q, x] = sum(k) Q[h, q, k] * K[h, x, k]\n"
        "    P[h, q, x] = softmax(x) S[h, q, x] * k^-0.5\n"
        "    O[h, q, d] = sum(x) P[h, q, x] * V[h, x, d]\n"
        "sizes h = 2, q = 1, x = any(400), k = d = 64\n"
        "schedule\n    split x = 5\n";
    const std::string by_scheduler =
        "attention(Q[h, q, k]: bf16, K[h, x, k]: bf16, V[h, x, d]: bf16) -> O[h, q, d]: bf16\n"
        "    S[h, q, x] = sum(k) Q[h, q, k] * K[h, x, k]\n"
        "    P[h, q, x] = softmax(x) S[h, q, x] * k^-0.5\n"
        "    O[h, q, d] = sum(x) P[h, q, x] * V[h, x, d]\n"
        "sizes h = 3, q = any(100), x = any(112), k = d = 16\n"
        "schedule\n    mma_m q\n    warps 4\n    role copies 4\n    stream x = 16\n    threads 4\n    scheduler ";
    using Sizes = std::map<std::string, std::int64_t>;
    const std::pair<std::string, std::vector<Sizes>> subjects[] = {
        {in_parts, {{{"x", 1}}, {{"x", 2}}, {{"x", 64}}, {{"x", 65}}, {{"x", 200}}, {{"x", 401}}, {{"x", 640}}}},
        {behind_a_cache, {{{"q", 5}, {"x", 7}}, {{"q", 57}, {"x", 130}}, {{"q", 1}, {"x", 33}}, {{"q", 129}, {"x", 257}}}},
        {by_scheduler + "stream_k\n",
         {{{"q", 3}, {"x", 16}}, {{"q", 64}, {"x", 16}}, {{"q", 129}, {"x", 50}}, {{"q", 300}, {"x", 200}}}},
        {by_scheduler + "dynamic\n", {{{"q", 3}}, {{"q", 64}}, {{"q", 129}}, {{"q", 500}}}},
        {product, {{{"m", 3}, {"n", 8}}, {{"m", 65}, {"n", 136}}, {{"m", 128}, {"n", 16}}}}};
    int runs = 0;
    for (const auto& [text, all] : subjects) {
        PipelineOptions options;
        options.machine = "h200", options.until = Pass::emit;
        const auto first = run_pipeline(std::make_shared<const Source>(Source{"any.nk", text}), options);
        ASSERT_TRUE(first) << render(first.errors());
        EXPECT_TRUE(first->plan.kernels.front().scheduled.on_tensor_cores() || text == in_parts);
        for (const Sizes& sizes : all) {
            options.sizes = sizes;
            const auto other = at_other_sizes(*first, options);
            if (!other) continue;  // a rule refuses these sizes
            ++runs;
            const Planned p{other->diagram, other->extents, other->plan, other->lowered};
            for (const Completion completion : {Completion::early, Completion::late})
                EXPECT_EQ(fault_of(p, p.program, completion), "") << testing::PrintToString(sizes);
        }
    }
    EXPECT_GE(runs, 20);
}

}  // namespace
}  // namespace napkin::test_interpret
