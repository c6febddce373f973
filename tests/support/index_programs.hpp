#pragma once
// Programs that read at indices of every kind, behind guards and without: one text each, with sizes under which it is
// tried.
#include <string>
#include <vector>

namespace napkin {

/// Names of the axes whose sizes may vary freely stand without a size; the others follow from them.
inline const std::vector<std::string>& index_programs() {
    static const std::vector<std::string> programs{
        // quasi-affine
        "f(X[m, k], s[m, g]) -> Y[m]\n    Y[m] = sum(k) X[m, k] * s[m, k // 3]\nsizes k = 3 * g\n",
        "f(X[h, l, c]) -> Y[x, c]\n    Y[x, c] = X[x // size(l), x % size(l), c]\nsizes x = h * l\n",
        "f(X[a, b, c], W[c]) -> Y[x]\n    Y[x] = X[x // (size(b) * size(c)), x // size(c) % size(b), x % size(c)] * "
        "W[x % "
        "size(c)]\nsizes x = a * b * c\n",
        "f(X[n]) -> Y[n]\n    Y[n] = X[(n + 2) % size(n)] + X[size(n) - 1 - n]\n",
        "f(X[t, r], F[h]) -> Y[t, r]\n    Y[t, r] = X[t, r] * F[r % size(h)] + X[t, (r + size(r)/2) % size(r)]\nsizes "
        "r = 2 * h\n",
        "f(X[n, c]) -> Y[n, c]\n    Y[n, c] = X[max(n - 1, 0), c] - X[min(n + 1, size(n) - 1), c]\n",
        "f(K[p, l, k], Q[q, k]) -> M[q]\n    S[q, x] = sum(k) Q[q, k] * K[x // size(l), x % size(l), k]\n    M[q] = "
        "max(x) S[q, x]\nsizes x = p * l\n",
        "f(X[n], W[w]) -> Y[i]\n    Y[i] = sum(w) X[(2 * i + w) // 3] * W[w]\nsizes n = i + w\n",
        "f(X[n], W[n]) -> Y[n]\n    Y[n] = where(n >= 1, X[(n * 1000000007) // 1000000007 - 1], 0) * W[(n * "
        "2000000011) % "
        "size(n)]\n",
        // padded
        "f(X[n, c], W[w, c]) -> Y[n, c]\n    Y[n, c] = sum(w) where(n - w >= 0, X[n - w, c], 0) * W[w, c]\n",
        "f(X[n], W[w]) -> Y[n]\n    Y[n] = sum(w) where(n + w - 1 >= 0 and n + w - 1 < size(n), X[n + w - 1], 0) * "
        "W[w]\n",
        "f(X[b, t, c], m[c]) -> Y[b, t, c]\n    Y[b, t, c] = m[c] * X[b, t, c] + where(t > 0, X[b, t - 1, c], 0)\n",
        "f(X[n]) -> Y[n]\n    Y[n] = where(n < 2, -1, X[n - 2]) * where(not n >= size(n) - 1, X[n + 1], 2)\n",
        "f(X[n, m], W[a, b]) -> Y[n, m]\n    Y[n, m] = sum(a, b) where(n - a >= 0 and m - b >= 0, X[n - a, m - b], 0) "
        "* W[a, b]\n",
        "f(X[n], V[n]) -> Y\n    Z[n] = where(n > 0, X[n - 1], -inf)\n    M = max(n) Z[n]\n    Y = sum(n) exp(Z[n] - "
        "M) * V[n]\n",
        "f(X[y, c], W[r, c, d]) -> Y[h, d]\n    Y[h, d] = sum(r, c) where(h - r >= 0 and (h - r) % 2 == 0, X[(h - r) "
        "// 2, c] * "
        "W[r, c, d], 0)\nsizes h = 2 * y\n",
        // conditions around products
        "f(A[i, k], B[k, j]) -> Y[i, j]\n    Y[i, j] = sum(k) where(k <= i and k != 2 and i + j > k, A[i, k] * B[k, "
        "j], "
        "0)\n",
        "f(A[i, k], B[j, k], n[k]: i32) -> Y[i, j]\n    Y[i, j] = sum(k) where(k >= 1, where(n[k] < 2, A[i, k] * "
        "B[j, k - 1], 0), 0)\n",
        // windows
        "f(X[y, c]: bf16, W[o, r, c]: bf16) -> Y[h, o]\n    Y[h, o] = sum(r, c) X[2 * h + r, c] * W[o, r, c]\n"
        "sizes y = 2 * h + r\n",
        // sums of sums, and products of three
        "f(A[i, k], B[k, j], C[i, j], D[k]) -> Y[i, j]\n    Y[i, j] = sum(k) A[i, k] * B[k, j] - C[i, j] + exp(D[k])\n",
        "f(X[b, i], W[o, i, j], Z[b, j]) -> Y[b, o]\n    Y[b, o] = sum(i, j) X[b, i] * W[o, i, j] * Z[b, j]\n",
        // guards around what has, or is given, an equation of its own
        "f(X[n, c], W[w, c], G[c]) -> Y[n, c]\n    Z[n, c] = rmsnorm(c)(X[n, c], G[c])\n"
        "    Y[n, c] = sum(w) where(n - w >= 0, Z[n - w, c], 0) * W[w, c]\n",
        "f(X[n, c], W[w, c]) -> Y[n, c]\n    Y[n, c] = sum(w) where(n - w >= 0, silu(X[n - w, c]), 0) * W[w, c]\n",
        "f(X[c, b], Z[a]) -> R[a]\n    T[b, a] = tanh(sum(c) X[c, b]) * Z[a]\n"
        "    R[a] = sum(b) where(b >= 1, T[b - 1, a], 0)\n",
        "f(X[b, d], Z[d]) -> R[d], P[d]\n    S[b] = sum(d) X[b, d]\n    T[b, d] = exp(S[b]) * Z[d]\n"
        "    R[d] = sum(b) where(b >= 1 and d < 5, T[b - 1, d], -1)\n    P[d] = max(b) where(b + 2 < size(b), T[b + 2, "
        "d], 0)\n",
        "f(Q[q, k], K[q, k], V[q, d]) -> O[q, d]\n    S[q, w] = where(q - w >= 0, sum(k) Q[q, k] * K[q - w, k], -inf)\n"
        "    O[q, d] = sum(w) (softmax(w) S[q, w]) * where(q - w >= 0, V[q - w, d], 0)\nsizes w = 3\n",
        "f(X[n, m], W[m, k]) -> Y[n]\n    Y[n] = where(n < 2 or size(m) < 1, -1, logsumexp(m) X[n - 2, m]\n"
        "                 + (max(k) sum(m) X[n - 1, m] * W[m, k]))\n",
        "f(X[n, m]) -> Y[n, m]\n    Y[n, m] = where(n >= 1, (softmax(m) X[n - 1, m]) * 2, 0)\n",
        "f(T[v, c], i[t]: i32, X[c]) -> Y[t]\n    Y[t] = where(i[t] >= 2, sum(c) T[i[t] - 2, c] * X[c], -1)\n",
        "f(Q[q, k], W[d]) -> Y[d]\n    Y[d] = where(d >= 0 and d < size(k), max(q) Q[q, d], 0) * W[d]\n",
        // an axis bound anew
        "f(X[i, j]) -> Y[i, j]\n    Y[i, j] = X[i, j] / (1 + abs(sum(j) X[i, j])) - logsumexp(j) X[i, j]\n",
        // reads that a stream moves although their own axes are other ones, and those that it leaves alone
        "f(S[h, x], V[g, x]) -> O[h]\n    Z[h] = max(x) S[h, x]\n    O[h] = sum(x) Z[h] * V[h // 2, x]\nsizes h = 2 * "
        "g\n",
        "f(P[h, x], V[g, x]) -> O[h]\n    W[h, x] = softmax(x) P[h, x]\n    O[h] = sum(x) W[h, x] * V[h // 2, x]\n"
        "sizes h = 2 * g\n",
        "f(P[b, x], V[s, x, d], n[b]: i32) -> O[b, d]\n    W[b, x] = softmax(x) P[b, x]\n"
        "    O[b, d] = sum(x) W[b, x] * V[n[b], x, d]\n",
        "f(Z[d, c], I[e]: i32) -> R[e]\n    R[e] = sum(d) (softmax(d) Z[d, I[e]])\n",
        // gathered
        "f(T[v, c], i[t]: i32) -> Y[t, c]\n    Y[t, c] = T[i[t], c]\n",
        "f(T[v, c], i[t]: i32, W[c, d]) -> Y[t, d]\n    Y[t, d] = sum(c) T[i[t], c] * W[c, d]\n",
        "f(K[p, l, k], Q[q, k], t[b]: i32) -> Y[q]\n    S[q, x] = sum(k) Q[q, k] * K[t[x // size(l)], x % size(l), k]\n"
        "    E[q, x] = exp(S[q, x])\n    Y[q] = sum(x) E[q, x]\nsizes x = b * l\n",
        "f(X[n], i[t]: i32) -> Y[t]\n    Y[t] = where(i[t] >= 1, X[i[t] - 1], 0)\n",
        "f(X[n], a[m]: i32, b[t]: i32) -> Y[t]\n    Y[t] = X[a[b[t]]] + X[a[b[t]]] * X[0]\n",
        "f(X[n, t], i[t]: i32) -> Y\n    Y = sum(t) X[i[t], t]\n",
        "f(X[n], i[t]: i32) -> Y[t]\n    Y[t] = X[i[t] // 2] + X[(i[t] + t) % size(n)]\n",
        "f(T[v], i[t]: i32) -> Y[t]\n    Y[t] = T[i[size(t) - 1 - t]]\n",
        "f(A[h], K[h, n]: i32) -> F[h]\n    F[h] = max(n) A[K[h, size(n) - 1 - n] % size(h)]\n",
        "f(X[v, p], a[s]: i32, b[s]: i32, g[t]: i32) -> Y[t]\n    Y[t] = X[a[g[t]], b[g[t]]]\n",
        "f(X[v, c], a[v]: i32, b[v]: i32, g[t]: i32) -> Y[t, c]\n    Y[t, c] = sum(w) where(t - w >= 0, X[a[b[g[t - "
        "w]]], "
        "c] - X[b[a[g[size(t) - 1 - t + w]]], c], 0)\n",
        // matrices that rows choose, and places that terms choose
        "f(X[t, c]: bf16, W[e, h, c]: bf16, i[t, j]: i32) -> Y[t, j, h]\n"
        "    Y[t, j, h] = sum(c) X[t, c] * W[i[t, j], h, c]\n",
        "f(X[t, c]: bf16, W[e, h, c]: bf16, G[t, j], i[t, j]: i32) -> Y[t, h]\n"
        "    Y[t, h] = sum(j, c) G[t, j] * X[t, c] * W[i[t, j], h, c]\n",
        "f(X[n, d], i[n]: i32) -> Y[v, d]\n    Y[v, d] = sum(n) where(i[n] == v, X[n, d], 0)\n",
        "f(X[s, d], W[n, m], i[n, m]: i32, a[n]: i32) -> Y[v, d]\n"
        "    Y[v, d] = sum(n, m) where(v == i[n, m] and m <= n, X[a[n], d] * W[n, m], 0)\n",
        // gathered by what is computed
        "f(X[a, t], V[t, d]) -> Y[a, d]\n    I[a] = argmax(t) X[a, t]\n    Y[a, d] = V[I[a], d]\n",
        "f(X[a, t], K[t]: i32, V[m], W[a]) -> Y\n    I[a] = argmax(t) X[a, t]\n    J[a] = K[I[a]] % size(m)\n    Y = "
        "sum(a) V[J[a]] * "
        "W[a]\n",
        "f(X[a, t], V[m, d]) -> Y[a, d]\n    I[a] = argmin(t) X[a, t]\n    Y[a, d] = where(I[a] < size(m), V[I[a], "
        "d], 0)\n",
    };
    return programs;
}

}  // namespace napkin
