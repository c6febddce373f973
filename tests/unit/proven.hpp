#pragma once
// Plans of small texts on an H200, and the proofs of their orders.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "derive/derive.hpp"
#include "plan/choose.hpp"
#include "plan/prove.hpp"
#include "syntax/parse.hpp"

namespace napkin::proven {

struct Planned {
    Derived derived;
    Extents extents;
    Machine machine;
    Plan plan;
    [[nodiscard]] Result<std::vector<LoopProof>> proofs() const {
        return prove_orders(derived, extents, machine, plan);
    }
};

/// As the model has it, whatever an assembler says. Throws where the text or the schedule is wrong.
inline Planned planned(const std::string& text, const std::string& schedule = "", const std::string& machine = "h200") {
    const auto diagram = parse_diagram(std::make_shared<const Source>(Source{"<test>", text}));
    if (!diagram) throw std::runtime_error(render(diagram.errors()));
    Planned out{derive(*diagram).value(), bind_sizes(*diagram).value(), load_machine(machine).value(), {}};
    PlanOptions options;
    if (!schedule.empty()) options.file = std::make_shared<const Source>(Source{"<schedule>", schedule});
    auto plan = choose_plan(out.derived, out.extents, out.machine, {}, options);
    if (!plan) throw std::runtime_error(render(plan.errors()));
    out.plan = std::move(*plan);
    return out;
}

inline std::string attention(int d, const std::string& scores = "S[h, q, x] * k^-0.5") {
    return "attention(Q[h, q, k]: bf16, K[h, x, k]: bf16, V[h, x, d]: bf16) -> O[h, q, d]: bf16\n"
           "    S[h, q, x] = sum(k) Q[h, q, k] * K[h, x, k]\n    P[h, q, x] = softmax(x) " +
           scores + "\n    O[h, q, d] = sum(x) P[h, q, x] * V[h, x, d]\nsizes h = " + std::to_string(8192 / d) +
           ", q = x = 4096, k = d = " + std::to_string(d) + "\n";
}

}  // namespace napkin::proven
