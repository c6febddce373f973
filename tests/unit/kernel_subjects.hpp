#pragma once
// Texts whose kernels have everything that a kernel program may have, and their plans.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "bench/examples.hpp"
#include "derive/derive.hpp"
#include "diagram/sizes.hpp"
#include "machine/machine.hpp"
#include "plan/choose.hpp"
#include "support/paths.hpp"
#include "syntax/parse.hpp"

namespace napkin::kernel_subjects {

/// A text with sizes, and lines of a schedule that fix a part of its plan.
struct Subject {
    std::string name;
    std::string text, schedule = "";
};

inline std::string attention(const std::string& score, const std::string& sizes, const std::string& more = "") {
    return fmt::format(
        "attention(Q[h, q, k]: bf16, K[h, x, k]: bf16, V[h, x, d]: bf16{0}) -> O[h, q, d]: bf16\n"
        "    S[h, q, x] = sum(k) Q[h, q, k] * K[h, x, k] * size(k)^-0.5\n"
        "    P[h, q, x] = softmax(x) {1}\n"
        "    O[h, q, d] = sum(x) P[h, q, x] * V[h, x, d]\n"
        "sizes {2}\n",
        more, score, sizes);
}
inline const std::string dense = "S[h, q, x]", causal = "where(x <= q, S[h, q, x], -inf)",
                         window = "where(x <= q, where(x > q - 1024, S[h, q, x], -inf), -inf)";

inline std::string product(const std::string& sizes) {
    return "product(A[m, k]: bf16, B[n, k]: bf16) -> C[m, n]: bf16\n    C[m, n] = sum(k) A[m, k] * B[n, k]\nsizes " +
           sizes + "\n";
}

inline std::vector<KernelPlan> planned(const Subject& subject, const Machine& machine) {
    const auto diagram = parse_diagram(std::make_shared<const Source>(Source{subject.name, subject.text}));
    EXPECT_TRUE(diagram.ok()) << render(diagram.errors());
    const auto extents = bind_sizes(*diagram);
    EXPECT_TRUE(extents.ok()) << render(extents.errors());
    PlanOptions options;
    if (!subject.schedule.empty())
        options.file = std::make_shared<const Source>(Source{"a.schedule", subject.schedule});
    const auto plan = choose_plan(derive(*diagram).value(), *extents, machine, {}, options);
    EXPECT_TRUE(plan.ok()) << subject.name << render(plan.errors());
    return plan ? plan->kernels : std::vector<KernelPlan>{};
}

/// Kernels of every kind on an H200.
inline std::vector<Subject> subjects() {
    std::vector<Subject> out;
    for (const char* d : {"64", "128", "256"})
        for (const char* length : {"1000", "4096"})
            for (const auto& [name, score] : {std::pair{"dense", dense}, {"causal", causal}, {"window", window}})
                out.push_back({name, attention(score, fmt::format("h = 16, q = x = {}, k = d = {}", length, d))});
    // The last warpgroup has no rows in the last tile, and threads read the bias in place.
    out.push_back({"bias", attention("S[h, q, x] + B[q, x]", "h = 16, q = x = 8192, k = d = 128", ", B[q, x]: bf16"),
                   "mma_m q\nwarps 12\nrole copies 4\nstream x = 32\nscheduler stream_k\n"});
    for (const char* sizes : {"m = n = k = 4096", "m = n = k = 8192", "m = 8192, n = 1024, k = 2048",
                              "m = 256, n = 4096, k = 16384", "m = 3000, n = 5000, k = 1000", "m = n = k = 96"})
        out.push_back({"product", product(sizes)});
    // Tiles one after the other in a CTA, whose loop runs ahead with the norm of the next K block.
    for (const char* sizes : {"m = 1024, n = 8192, k = 4096", "m = 8192, n = 4096, k = 512"})
        out.push_back({"normed rows", fmt::format("normed(X[m, k]: bf16, W[n, k]: bf16) -> Y[m, n]: bf16\n"
                                                  "    R[m] = rsqrt(sum(k) X[m, k] * X[m, k] / size(k) + 1e-5)\n"
                                                  "    Y[m, n] = sum(k) X[m, k] * R[m] * W[n, k]\nsizes {}\n",
                                                  sizes)});
    out.push_back({"heads summed",
                   "heads(A[h, m, k]: bf16, B[h, k, n]: bf16) -> C[m, n]: bf16\n"
                   "    C[m, n] = sum(h, k) A[h, m, k] * B[h, k, n]\nsizes m = n = 4096, h = 8, k = 512\n"
                   "schedule\n    stream hk\n"});
    out.push_back({"convolution",
                   "conv(X[b, y, z, c]: bf16, W[r, s, c, n]: bf16) -> Y[b, u, v, n]: bf16\n"
                   "    Y[b, u, v, n] = sum(r, s, c) X[b, u + r, v + s, c] * W[r, s, c, n]\n"
                   "sizes b = 16, u = v = 64, r = s = 3, c = n = 256, y = u + r - 1, z = v + s - 1\n"
                   "schedule\n    stream rsc\n"});
    // A sum of products that runs ahead of another sum, with a last tile in which some warpgroups have no rows.
    out.push_back({"two sums",
                   "two(F[q, k]: f16, A[k, d]: f16, Z[k]: f16) -> O[q, d]: f16\n"
                   "    N[q, d] = sum(k) F[q, k] * A[k, d]\n    D[q] = sum(k) F[q, k] * Z[k]\n"
                   "    O[q, d] = N[q, d] / D[q]\nsizes q = 4096, k = d = 64\n",
                   "mma_m q\nwarps 12\nrole copies 4\ngroup q = 192\nstream k = 32\nslot N order 0, stage_offset 1\n"
                   "slot D order 1\n"});
    const std::string four = "mma_m m\nwarps 4\nrole copies 4\n", eight = "mma_m m\nwarps 8\nrole copies 4\n";
    for (const std::string& schedule : {four + "group n = 32\nstream k = 32\nthreads 2\ncluster m 2\n",
                                        four + "group n = 128\nstream k = 16\ngrid 4\ncluster m 2\n",
                                        eight + "group n = 32\nstream k = 32\nthreads 2\ncluster n 2\n",
                                        four + "group n = 64\nstream k = 16\nthreads 4\ncluster m 4\n",
                                        four + "group n = 64\nstream k = 16\nscheduler stream_k\nthreads 3\n",
                                        eight + "group n = 64\nstream k = 32\nscheduler dynamic\nthreads 3\n"})
        out.push_back({"product", product("m = 512, n = 512, k = 256"), schedule});
    // Operands that threads convert and write to shared memory.
    for (const char* schedule : {"", "mma_m j\nwarps 8\nrole copies 4\nstream x = 64\n"})
        out.push_back({"written operands",
                       "cache(Q[b, j, k]: bf16, K[b, x, k]: e4m3, V[b, x, d]: e4m3) -> O[b, j, d]: bf16\n"
                       "    S[b, j, x] = sum(k) Q[b, j, k] * K[b, x, k]\n    P[b, j, x] = softmax(x) S[b, j, x]\n"
                       "    O[b, j, d] = sum(x) P[b, j, x] * V[b, x, d]\nsizes b = 64, j = 128, x = 4096, k = d = 64\n",
                       schedule});
    const char* const ragged = "h = 7, q = 200, x = 100, k = d = 16";
    for (const int warps : {4, 8})
        for (const char* scheduler : {"stream_k", "dynamic"})
            out.push_back({"dense", attention(dense, ragged),
                           fmt::format("mma_m q\nwarps {}\nrole copies 4\nstream x = 16\nscheduler {}\nthreads 3\n",
                                       warps, scheduler)});
    return out;
}

/// Calls f(name, plan) for each kernel of the subjects on an H200, and of the examples on that and on an A100.
template <class F>
void for_each_kernel(F f) {
    for (const char* name : {"h200", "a100-sxm-80gb"}) {
        const Machine machine = load_machine(name).value();
        std::vector<Subject> all = std::string(name) == "h200" ? subjects() : std::vector<Subject>{};
        for_each_example(source_dir() / "examples",
                         [&](const std::string& example, const std::string& text) { all.push_back({example, text}); });
        for (const Subject& subject : all)
            for (const KernelPlan& kernel : planned(subject, machine))
                f(fmt::format("{} on {}", subject.name, name), kernel);
    }
}

}  // namespace napkin::kernel_subjects
