#pragma once
// A program that reads a value of each column beside the operands of its loop.
#include <fmt/format.h>

#include <string>

namespace napkin {

/// The gradients of attention's keys and values, of weights exp(S − L). Causal ones are 0 where x > q.
inline std::string keys_gradient(bool is_causal, const std::string& sizes) {
    return fmt::format(
        "f(Q[h, q, k]: bf16, K[h, x, k]: bf16, V[h, x, d]: bf16, G[h, q, d]: bf16, L[h, q]: f32, D[h, q]: f32)"
        " -> A[h, x, k]: bf16, B[h, x, d]: bf16\n"
        "    S[h, q, x]: f32 = sum(k) Q[h, q, k] * K[h, x, k]\n"
        "    P[h, q, x]: bf16 = {0}exp(S[h, q, x] * 0.2 - L[h, q]){1}\n"
        "    R[h, q, x]: f32 = sum(d) G[h, q, d] * V[h, x, d]\n"
        "    T[h, q, x]: bf16 = P[h, q, x] * (R[h, q, x] - D[h, q])\n"
        "    A[h, x, k] = sum(q) T[h, q, x] * Q[h, q, k]\n"
        "    B[h, x, d] = sum(q) P[h, q, x] * G[h, q, d]\nsizes {2}\n",
        is_causal ? "where(x <= q, " : "", is_causal ? ", 0)" : "", sizes);
}

}  // namespace napkin
