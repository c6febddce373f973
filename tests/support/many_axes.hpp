#pragma once
// Programs of many axes, with windows, blocks and quotients in their indices: what evaluating them costs shows.

namespace napkin::many_axes {

/// Attention in windows of an image that is rolled by half a window.
inline constexpr const char* shifted_windows =
    "f(X[i, j, c], Wq[c, h, k], Wk[c, h, k], Wv[c, h, k], bias[h, q, x]) -> O[a, b, h, q, k]\n"
    "    XW[a, b, q, c] = X[(a * 4 + q // 4 + 2) % size(i), (b * 4 + q % 4 + 2) % size(j), c]\n"
    "    Q[a, b, h, q, k] = sum(c) XW[a, b, q, c] * Wq[c, h, k]\n"
    "    K[a, b, h, x, k] = sum(c) XW[a, b, x, c] * Wk[c, h, k]\n"
    "    V[a, b, h, x, k] = sum(c) XW[a, b, x, c] * Wv[c, h, k]\n"
    "    S[a, b, h, q, x] = k^-0.5 * (sum(k) Q[a, b, h, q, k] * K[a, b, h, x, k]) + bias[h, q, x]\n"
    "    O[a, b, h, q, k] = sum(x) (softmax(x) S[a, b, h, q, x]) * V[a, b, h, x, k]\n"
    "sizes i = j = 32, a = i / 4, b = j / 4, q = 16, x = q, c = 32, h = 2, k = 16\n";

/// In groups, every second place, with padding.
inline constexpr const char* strided_convolution =
    "f(X[b, g, c, h, w], W[g, o, c, u, v]) -> Y[b, g, o, y, x]\n"
    "    Y[b, g, o, y, x] = sum(c, u, v) where(2*y + u - 1 >= 0 and 2*y + u - 1 < size(h) and 2*x + v - 1 >= 0 and\n"
    "        2*x + v - 1 < size(w), X[b, g, c, 2*y + u - 1, 2*x + v - 1], 0) * W[g, o, c, u, v]\n"
    "sizes b = 2, g = 4, c = 8, o = 8, u = v = 3, h = w = 28, y = x = 14\n";

inline constexpr const char* padded_convolution =
    "f(X[b, c, h, w], W[o, c, u, v], B[o]) -> Y[b, o, y, x]\n"
    "    Y[b, o, y, x] = B[o] + sum(c, u, v) where(y + u - 1 >= 0 and y + u - 1 < h and x + v - 1 >= 0 and x + v - 1 < "
    "w,\n"
    "        X[b, c, y + u - 1, x + v - 1], 0) * W[o, c, u, v]\n"
    "sizes b = 1, c = o = 16, u = v = 3, h = w = 32, y = h, x = w\n";

/// Patches of 16 by 16, then a norm.
inline constexpr const char* patches =
    "f(X[c, y, x], W[c, u, v, e], B[e], G[e]) -> P[a, b, e]\n"
    "    E[a, b, e] = B[e] + sum(c, u, v) X[c, a * 16 + u, b * 16 + v] * W[c, u, v, e]\n"
    "    P[a, b, e] = rmsnorm(e)(E[a, b, e], G[e])\n"
    "sizes c = 3, y = x = 224, u = v = 16, a = y / 16, b = x / 16, e = 192\n";

/// 6^12 terms as they are written.
inline constexpr const char* eleven_matrices =
    "f(A[a, b], B[b, c], C[c, d], D[d, e], E[e, g], F[g, h], G[h, i], H[i, j], I[j, k], J[k, l], K[l, m]) -> O[a, m]\n"
    "    O[a, m] = sum(b, c, d, e, g, h, i, j, k, l) A[a, b] * B[b, c] * C[c, d] * D[d, e] * E[e, g] * F[g, h] * G[h, "
    "i] *\n"
    "        H[i, j] * I[j, k] * J[k, l] * K[l, m]\n"
    "sizes a = b = c = d = e = g = h = i = j = k = l = m = 6\n";

/// Whose numbers an axis must pass for all of its cases.
inline constexpr const char* masked_blocks =
    "f(Q[q, k], K[x, k], V[x, d]) -> O[q, d]\n"
    "    S[q, x] = k^-0.5 * sum(k) Q[q, k] * K[x, k]\n"
    "    M[q, x] = where(q // 64 == x // 64 or x // 128 <= q // 128 - 1 and x % 128 < 16, S[q, x], -inf)\n"
    "    O[q, d] = sum(x) (softmax(x) M[q, x]) * V[x, d]\n"
    "sizes q = x = 1024, k = d = 64\n";

inline constexpr const char* all[] = {shifted_windows, strided_convolution, padded_convolution,
                                      patches,         eleven_matrices,     masked_blocks};

}  // namespace napkin::many_axes
