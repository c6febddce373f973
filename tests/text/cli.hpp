#pragma once
// The command line in a folder of the test's own, and the programs that its tests write there.
#include <string>

#include "text/tool.hpp"

class Cli : public ToolTest {
protected:
    [[nodiscard]] Outcome napkin(const std::string& arguments, const std::string& before = "") const {
        return tool(arguments, before);
    }

    static constexpr const char* attention = R"(
attention(Q[q, k], K[x, k], V[x, d]) -> O[q, d]
    S[q, x] = sum(k) Q[q, k] * K[x, k]
    P[q, x] = softmax(x) S[q, x] * k^-0.5
    O[q, d] = sum(x) P[q, x] * V[x, d]
sizes q = 33, x = 50, k = d = 16
)";
    static constexpr const char* matmul =
        "matmul(A[a, b], B[b, c]) -> C[a, c]\n    C[a, c] = sum(b) A[a, b] * B[b, c]\n";
};
