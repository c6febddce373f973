#pragma once
// Derived forms written by hand, so that tiles are tested apart from the calculus that derives them.
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "derive/evaluate_derived.hpp"
#include "diagram_builder.hpp"
#include "support/sizes.hpp"
#include "tile/interpret.hpp"
#include "tile/print.hpp"
#include "tile/verify.hpp"

namespace napkin::tile_examples {

inline Expr exp(const Expr& a) { return unary(UnaryOp::exp, a); }

/// A derived form and the extents that it is tried with.
struct Example {
    Derived derived;
    Extents extents;

    Diagram& diagram() { return derived.diagram; }
    AxisId axis(const std::string& name, std::int64_t extent) {
        diagram().axes.push_back({name, std::nullopt, {}});
        extents.push_back(extent);
        return AxisId::of(extents.size() - 1);
    }
    ArrayId array(const std::string& name, std::vector<AxisId> axes, ArrayRole role = ArrayRole::temporary) {
        const ArrayId id = add_array(diagram(), name, std::move(axes), DType::f32, role);
        if (role == ArrayRole::input) diagram().inputs.push_back(id);
        if (role == ArrayRole::output) diagram().outputs.push_back(id);
        return id;
    }
    ArrayId input(const std::string& name, std::vector<AxisId> axes) {
        return array(name, std::move(axes), ArrayRole::input);
    }
    ArrayId output(const std::string& name, std::vector<AxisId> axes) {
        return array(name, std::move(axes), ArrayRole::output);
    }
    Expr self(ArrayId id) { return read_self(diagram(), id); }
    void define(ArrayId target, Expr body) {
        diagram().equations.push_back({target, std::nullopt, {}, std::move(body), {}, {}});
    }
    void define(ArrayId target, ReduceOp op, std::vector<AxisId> axes, Expr body) {
        diagram().equations.push_back({target, op, std::move(axes), std::move(body), {}, {}});
    }
};

inline Statement map(ArrayId target, Expr body) { return {target, std::nullopt, {}, std::move(body), nullptr, {}}; }
inline Statement reduce(ArrayId target, ReduceOp op, std::vector<AxisId> axes, Expr body, Expr carry = nullptr) {
    return {target, op, std::move(axes), std::move(body), std::move(carry), {}};
}

/// C[a, c] = sum(b) A[a, b] * B[b, c], streamed over b.
inline Example matmul(std::int64_t size_a = 7, std::int64_t size_b = 10, std::int64_t size_c = 5) {
    Example e;
    const AxisId a = e.axis("a", size_a), b = e.axis("b", size_b), c = e.axis("c", size_c);
    const ArrayId A = e.input("A", {a, b}), B = e.input("B", {b, c}), C = e.output("C", {a, c});
    const Expr product = e.self(A) * e.self(B);
    e.define(C, ReduceOp::sum, {b}, product);
    Loop loop{b, {}, {{C, 0.0}}, {reduce(C, ReduceOp::sum, {b}, product, e.self(C))}};
    Fold fold{b, {{C, ReduceOp::sum, 0, {b}, product, e.self(C), -1}}, {{C, e.self(C)}}};
    fold.states[0].old = e.array("C_old", {a, c});
    fold.states[0].carry = e.self(fold.states[0].old);
    e.derived.kernels.push_back({"C", {}, {a, c}, {}, {loop}, {A, B}, {C}, {fold}});
    return e;
}

/// A weighted mean by exp(S): m = max S, P = exp(S - m), z = sum P, O = sum P V / z, in one stream over x. With
/// `causal`, only x <= q contribute; the support says so.
inline Example weighted_mean(bool causal = false, std::int64_t size_q = 7, std::int64_t size_x = 11,
                             std::int64_t size_d = 3) {
    Example e;
    const AxisId q = e.axis("q", size_q), x = e.axis("x", size_x), d = e.axis("d", size_d);
    const ArrayId A = e.input("A", {q, x}), V = e.input("V", {x, d});
    const ArrayId S = e.array("S", {q, x}), mu = e.array("mu", {q}), z = e.array("z", {q}), P = e.array("P", {q, x}),
                  U = e.array("U", {q, d});
    const ArrayId O = e.output("O", {q, d}), mu_old = e.array("mu_old", {q}), z_old = e.array("z_old", {q}),
                  U_old = e.array("U_old", {q, d});
    const ArrayId correction = e.array("correction", {q});
    const Expr seen = binary(BinaryOp::le, axis_index(x), axis_index(q));
    const Expr s = causal ? select(seen, e.self(A), constant(-INFINITY)) : e.self(A);
    const Expr p = exp(e.self(S) - e.self(mu)), pv = e.self(P) * e.self(V);
    e.define(S, s);
    e.define(mu, ReduceOp::max, {x}, e.self(S));
    e.define(P, p);
    e.define(z, ReduceOp::sum, {x}, e.self(P));
    e.define(U, ReduceOp::sum, {x}, pv);
    e.define(O, e.self(U) / e.self(z));

    const Expr factor = exp(e.self(mu_old) - e.self(mu));
    Loop loop{x, {}, {{mu, -INFINITY}, {z, 0.0}, {U, 0.0}}, {}};
    if (causal) loop.support = {Affine::axis(q) - Affine::axis(x)};
    loop.body = {map(S, s),
                 map(mu_old, e.self(mu)),
                 reduce(mu, ReduceOp::max, {x}, e.self(S), e.self(mu)),
                 map(correction, factor),
                 map(P, p),
                 reduce(z, ReduceOp::sum, {x}, e.self(P), e.self(correction) * e.self(z)),
                 reduce(U, ReduceOp::sum, {x}, pv, e.self(correction) * e.self(U))};
    const Fold fold{x,
                    {{mu, ReduceOp::max, -INFINITY, {x}, e.self(S), e.self(mu_old), mu_old},
                     {z, ReduceOp::sum, 0, {x}, e.self(P), factor * e.self(z_old), z_old},
                     {U, ReduceOp::sum, 0, {x}, pv, factor * e.self(U_old), U_old}},
                    {{O, e.self(U) / e.self(z)}}};
    const Block tail{{map(O, e.self(U) / e.self(z))}};
    e.derived.kernels.push_back({"O", {}, {q, d}, {d}, {loop, tail}, {A, V}, {O}, {fold}});
    return e;
}

/// B[a, c] = exp(A[a, c]) * w[c]; T[a, c] = B[a, c] + w[c]: two maps in one kernel, the first result read where it was
/// computed.
inline Example maps() {
    Example e;
    const AxisId a = e.axis("a", 7), c = e.axis("c", 5);
    const ArrayId A = e.input("A", {a, c}), w = e.input("w", {c}), B = e.output("B", {a, c}), T = e.output("T", {a, c});
    e.define(B, exp(e.self(A)) * e.self(w));
    e.define(T, e.self(B) + e.self(w));
    e.derived.kernels.push_back(
        {"maps", {}, {a, c}, {}, {Block{{map(B, exp(e.self(A)) * e.self(w)), map(T, e.self(B) + e.self(w))}}}, {A, w}, {B, T}, {}});
    return e;
}

/// Y[i] = sum(w) X[i + w] * F[w]: the tile of X has a halo.
inline Example convolution() {
    Example e;
    const AxisId i = e.axis("i", 10), w = e.axis("w", 3), n = e.axis("n", 12);
    const ArrayId X = e.input("X", {n}), F = e.input("F", {w}), Y = e.output("Y", {i});
    const Expr product = read(X, {Affine::axis(i) + Affine::axis(w)}) * e.self(F);
    e.define(Y, ReduceOp::sum, {w}, product);
    e.derived.kernels.push_back({"Y", {}, {i}, {}, {Block{{reduce(Y, ReduceOp::sum, {w}, product)}}}, {X, F}, {Y}, {}});
    return e;
}

/// P[q, x] = exp(A - max A) / sum exp(A - max A), written out: the second loop reads the stream again and stores what
/// it computes.
inline Example two_loops() {
    Example e;
    const AxisId q = e.axis("q", 5), x = e.axis("x", 8);
    const ArrayId A = e.input("A", {q, x}), mu = e.array("mu", {q}), z = e.array("z", {q}), P = e.output("P", {q, x}),
                  mu_old = e.array("mu_old", {q});
    const ArrayId E = e.array("E", {q, x});
    const Expr term = exp(e.self(A) - e.self(mu));
    e.define(mu, ReduceOp::max, {x}, e.self(A));
    e.define(E, term);
    e.define(z, ReduceOp::sum, {x}, e.self(E));
    e.define(P, e.self(E) / e.self(z));
    Loop first{x, {}, {{mu, -INFINITY}, {z, 0.0}}, {}};
    first.body = {map(mu_old, e.self(mu)), reduce(mu, ReduceOp::max, {x}, e.self(A), e.self(mu)), map(E, term),
                  reduce(z, ReduceOp::sum, {x}, e.self(E), exp(e.self(mu_old) - e.self(mu)) * e.self(z))};
    Loop second{x, {}, {}, {map(E, term), map(P, e.self(E) / e.self(z))}};
    e.derived.kernels.push_back({"P", {}, {q}, {}, {first, second}, {A}, {P}, {}});
    return e;
}

/// Two kernels: T = A + A, then B[i] = T[i] - T[0].
inline Example two_kernels() {
    Example e;
    const AxisId i = e.axis("i", 6);
    const ArrayId A = e.input("A", {i}), T = e.array("T", {i}), B = e.output("B", {i});
    const Expr difference = e.self(T) - read(T, {Affine{}});
    e.define(T, e.self(A) + e.self(A));
    e.define(B, difference);
    e.derived.kernels.push_back({"T", {}, {i}, {}, {Block{{map(T, e.self(A) + e.self(A))}}}, {A}, {T}, {}});
    e.derived.kernels.push_back({"B", {}, {i}, {}, {Block{{map(B, difference)}}}, {T}, {B}, {}});
    return e;
}

using Sizes = NamedSizes;

inline PartitionSizes partition_for(const Diagram& diagram, const Sizes& group, const Sizes& stream) {
    PartitionSizes sizes{std::vector<std::int64_t>(diagram.axes.size(), 0),
                         std::vector<std::int64_t>(diagram.axes.size(), 0)};
    for (const auto& [axis, size] : group)
        if (const auto id = diagram.find_axis(axis)) sizes.group[static_cast<std::size_t>(*id)] = size;
    for (const auto& [axis, size] : stream)
        if (const auto id = diagram.find_axis(axis)) sizes.stream[static_cast<std::size_t>(*id)] = size;
    return sizes;
}

inline SizedProgram program_for(const Example& e, const Sizes& group, const Sizes& stream) {
    return program_with(e.derived, e.extents, group, stream);
}

/// Values of the array that were moved.
inline std::int64_t moved(const Example& e, const Counts& counts, const std::string& array) {
    for (const ArrayCount& a : counts.arrays)
        if (e.derived.diagram.array(a.array).name == array) return a.loaded + a.stored;
    return 0;
}

}  // namespace napkin::tile_examples
