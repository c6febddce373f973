#pragma once
// A diagram's text derived for a machine and sized, for the tests of what stands on it.
#include <map>
#include <memory>
#include <string>

#include "cost/on_machine.hpp"
#include "run/pipeline.hpp"

namespace napkin::costed {

inline Compilation compile(const std::string& text, const std::string& machine,
                           const std::map<std::string, std::int64_t>& sizes = {}) {
    PipelineOptions options;
    options.sizes = sizes;
    options.machine = machine;
    options.until = Pass::derive;
    auto made = run_pipeline(std::make_shared<const Source>(Source{"<text>", text}), options);
    if (!made) throw InternalError(render(made.errors()));
    Compilation c = std::move(made).value();
    c.extents = bind_sizes(c.diagram).value();
    return c;
}

inline Result<KernelOnMachine> place(const Compilation& c, const MachineCostOptions& options = {}, std::size_t kernel = 0) {
    return cost_on_machine(c.derived, c.derived.kernels[kernel], c.extents, c.machine, options);
}

inline AxisId axis(const Compilation& c, const std::string& name) { return c.derived.diagram.find_axis(name).value(); }

/// FP8 scores and FP16 results: the configuration of the paper's §5.
inline constexpr const char* attention_fp8 = R"(
attention(Q[q, k]: e4m3, K[x, k]: e4m3, V[x, d]: f16) -> O[q, d]: f16
    S[q, x] = sum(k) Q[q, k] * K[x, k]
    P[q, x] = softmax(x) S[q, x] * k^-0.5
    O[q, d] = sum(x) P[q, x] * V[x, d]
)";
inline constexpr const char* attention_f16 = R"(
attention(Q[q, k]: f16, K[x, k]: f16, V[x, d]: f16) -> O[q, d]: f16
    S[q, x] = sum(k) Q[q, k] * K[x, k]
    P[q, x] = softmax(x) S[q, x] * k^-0.5
    O[q, d] = sum(x) P[q, x] * V[x, d]
)";
inline constexpr const char* matmul_f16 = R"(
matmul(A[a, b]: f16, B[b, c]: f16) -> C[a, c]: f16
    C[a, c] = sum(b) A[a, b] * B[b, c]
)";

}  // namespace napkin::costed
