#pragma once
// Derived objects built by hand, for the passes behind the calculus: each as the calculus would give it.
#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include "derive/derived.hpp"
#include "diagram/sizes.hpp"
#include "diagram_builder.hpp"

namespace napkin::hand {

/// Builds one kernel over named axes and arrays.
class Builder {
public:
    AxisId axis(const std::string& name) {
        derived.diagram.axes.push_back({name, std::nullopt, {}});
        return AxisId::of(derived.diagram.axes.size() - 1);
    }
    ArrayId array(const std::string& name, std::vector<AxisId> axes, ArrayRole role, DType type = DType::f32) {
        derived.diagram.arrays.push_back({name, std::move(axes), type, role, {}});
        const auto id = ArrayId::of(derived.diagram.arrays.size() - 1);
        if (role == ArrayRole::input) derived.diagram.inputs.push_back(id), kernel.inputs.push_back(id);
        if (role == ArrayRole::output) derived.diagram.outputs.push_back(id), kernel.outputs.push_back(id);
        return id;
    }
    ArrayId input(const std::string& name, std::vector<AxisId> axes, DType type = DType::f32) {
        return array(name, std::move(axes), ArrayRole::input, type);
    }
    ArrayId output(const std::string& name, std::vector<AxisId> axes, DType type = DType::f32) {
        return array(name, std::move(axes), ArrayRole::output, type);
    }
    ArrayId temporary(const std::string& name, std::vector<AxisId> axes) {
        return array(name, std::move(axes), ArrayRole::temporary);
    }

    [[nodiscard]] Expr get(ArrayId id) const { return read_self(derived.diagram, id); }

    Derived finish(const std::string& name, std::vector<AxisId> group_axes, std::vector<AxisId> recompute_axes = {}) {
        kernel.name = name;
        kernel.group_axes = std::move(group_axes);
        kernel.recompute_axes = std::move(recompute_axes);
        derived.kernels.push_back(kernel);
        return derived;
    }

    Derived derived;
    Kernel kernel;
};

inline Expr exp(const Expr& a) { return unary(UnaryOp::exp, a); }

inline Statement map(ArrayId target, Expr body) { return {target, std::nullopt, {}, std::move(body), nullptr, {}}; }
inline Statement fold(ArrayId target, ReduceOp op, std::vector<AxisId> axes, Expr body, Expr carry = nullptr) {
    return {target, op, std::move(axes), std::move(body), std::move(carry), {}};
}

/// C[a, c] = sum(b) A[a, b] * B[b, c], streamed over b.
inline Derived matmul() {
    Builder b;
    const AxisId a = b.axis("a"), k = b.axis("b"), c = b.axis("c");
    const ArrayId A = b.input("A", {a, k}), B = b.input("B", {k, c}), C = b.output("C", {a, c});
    b.kernel.stages.emplace_back(Loop{k, {}, {{C, 0.0}}, {fold(C, ReduceOp::sum, {k}, b.get(A) * b.get(B), b.get(C))}});
    return b.finish("C", {a, c});
}

struct StreamedOptions {
    std::vector<std::string> woven;    ///< outer axes of every array ("h")
    std::vector<std::string> grouped;  ///< outer axes of Q and O only ("g")
    bool causal = false;
    std::int64_t window = 0;  ///< > 0: keys within `window` before the query
};

/// The streamed form of O = softmax(x)(Q Kᵀ) V: running maximum, correction, 1/z at the tail.
inline Derived streamed(const StreamedOptions& options = {}) {
    Builder b;
    std::vector<AxisId> woven, outer;
    for (const auto& name : options.woven) woven.push_back(b.axis(name));
    outer = woven;
    for (const auto& name : options.grouped) outer.push_back(b.axis(name));
    const AxisId q = b.axis("q"), k = b.axis("k"), x = b.axis("x"), d = b.axis("d");
    const auto with = [](std::vector<AxisId> axes, std::initializer_list<AxisId> more) {
        axes.insert(axes.end(), more);
        return axes;
    };
    const ArrayId Q = b.input("Q", with(outer, {q, k})), K = b.input("K", with(woven, {x, k})),
                  V = b.input("V", with(woven, {x, d}));
    const ArrayId O = b.output("O", with(outer, {q, d}));
    const ArrayId S = b.temporary("S", with(outer, {q, x})), P = b.temporary("P", with(outer, {q, x}));
    const ArrayId mu = b.temporary("mu", with(outer, {q})), old = b.temporary("mu_old", with(outer, {q}));
    const ArrayId delta = b.temporary("delta", with(outer, {q})), z = b.temporary("z", with(outer, {q}));
    const ArrayId Y = b.temporary("Y", with(outer, {q, d}));

    Loop loop{x, {}, {{mu, -1e30}, {z, 0.0}, {Y, 0.0}}, {}};
    Affine before = Affine::axis(q) - Affine::axis(x);  // x <= q
    if (options.causal || options.window > 0) loop.support.push_back(before);
    if (options.window > 0) {
        Affine near = Affine::axis(x) - Affine::axis(q);  // x > q - window
        near.constant = options.window - 1;
        loop.support.push_back(near);
    }
    loop.body.push_back(fold(S, ReduceOp::sum, {k}, b.get(Q) * b.get(K)));
    if (options.causal || options.window > 0) {
        const Expr kept = binary(BinaryOp::le, axis_index(x), axis_index(q));
        loop.body.push_back(map(S, select(kept, b.get(S), constant(-1e30))));
    }
    loop.body.push_back(map(old, b.get(mu)));
    loop.body.push_back(fold(mu, ReduceOp::max, {x}, b.get(S), b.get(mu)));
    loop.body.push_back(map(delta, exp(b.get(old) - b.get(mu))));
    loop.body.push_back(map(P, exp(b.get(S) - b.get(mu))));
    loop.body.push_back(fold(z, ReduceOp::sum, {x}, b.get(P), b.get(z) * b.get(delta)));
    loop.body.push_back(fold(Y, ReduceOp::sum, {x}, b.get(P) * b.get(V), b.get(Y) * b.get(delta)));
    b.kernel.stages.emplace_back(std::move(loop));
    b.kernel.stages.emplace_back(Block{{map(O, b.get(Y) / b.get(z))}});
    std::vector<AxisId> groups = with(outer, {q, d});
    return b.finish("O", groups, {d});
}

/// Y[i, c] = sum(w) X[2*i + w, c] * F[w]: an affine access, not streamed.
inline Derived strided_window() {
    Builder b;
    const AxisId n = b.axis("n"), i = b.axis("i"), w = b.axis("w"), c = b.axis("c");
    const ArrayId X = b.input("X", {n, c}), F = b.input("F", {w}), Y = b.output("Y", {i, c});
    Affine index = Affine::axis(i) * 2 + Affine::axis(w);
    b.kernel.stages.emplace_back(Block{{fold(Y, ReduceOp::sum, {w}, read(X, {index, Affine::axis(c)}) * b.get(F))}});
    return b.finish("Y", {i, c});
}

/// The same, streamed over w, so that the halo is loaded chunk by chunk.
inline Derived streamed_window() {
    Builder b;
    const AxisId n = b.axis("n"), i = b.axis("i"), w = b.axis("w"), c = b.axis("c");
    const ArrayId X = b.input("X", {n, c}), F = b.input("F", {w}), Y = b.output("Y", {i, c});
    Affine index = Affine::axis(i) * 2 + Affine::axis(w);
    b.kernel.stages.emplace_back(
        Loop{w, {}, {{Y, 0.0}}, {fold(Y, ReduceOp::sum, {w}, read(X, {index, Affine::axis(c)}) * b.get(F), b.get(Y))}});
    return b.finish("Y", {i, c});
}

/// Y[i, j] = exp(X[i, j]) * W[j].
inline Derived pointwise() {
    Builder b;
    const AxisId i = b.axis("i"), j = b.axis("j");
    const ArrayId X = b.input("X", {i, j}), W = b.input("W", {j}), Y = b.output("Y", {i, j});
    b.kernel.stages.emplace_back(Block{{map(Y, exp(b.get(X)) * b.get(W))}});
    return b.finish("Y", {i, j});
}

/// Y[r, c] = E[r, c] / Z[r], E[r, c] = exp(X[r, c] - M[r]), whole rows at the core. E may be stored, too.
inline Derived softmax(DType type = DType::f32, bool stores_exponentials = false) {
    Builder b;
    const AxisId r = b.axis("r"), c = b.axis("c");
    const ArrayId X = b.input("X", {r, c}), M = b.temporary("M", {r}),
                  E = stores_exponentials ? b.output("E", {r, c}) : b.temporary("E", {r, c}), Z = b.temporary("Z", {r}),
                  Y = b.output("Y", {r, c}, type);
    b.kernel.stages.emplace_back(Block{{fold(M, ReduceOp::max, {c}, b.get(X)), map(E, exp(b.get(X) - b.get(M))),
                                        fold(Z, ReduceOp::sum, {c}, b.get(E)), map(Y, b.get(E) / b.get(Z))}});
    return b.finish("Y", {r});
}

/// Extents by axis name, in the order of the diagram's axes.
inline Extents extents(const Derived& derived, const std::vector<std::pair<std::string, std::int64_t>>& sizes) {
    Extents out(derived.diagram.axes.size(), 1);
    for (const auto& [name, size] : sizes) out[derived.diagram.find_axis(name).value()] = size;
    return out;
}

}  // namespace napkin::hand
