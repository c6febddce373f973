#include "run/contraction.hpp"

#include <algorithm>
#include <limits>

namespace napkin {

namespace {

struct Factors {
    double constant = 1;
    std::vector<const Read*> reads;
    bool plain = true;  ///< nothing but constants and reads
};

/// The factors of a product, through casts that lose nothing in the arithmetic of the evaluation.
void collect(const Expr& e, const Extents& extents, Factors& out) {
    if (const auto* c = as<Constant>(e)) {
        out.constant *= c->value;
    } else if (const auto* size = as<AxisSize>(e)) {
        out.constant *= static_cast<double>(extents[static_cast<std::size_t>(size->axis)]);
    } else if (const auto* r = as<Read>(e)) {
        out.reads.push_back(r);
    } else if (const auto* conversion = as<Cast>(e);
               conversion && (conversion->type == DType::f64 || conversion->type == DType::f32)) {
        collect(conversion->a, extents, out);
    } else if (const auto* product = as<Binary>(e); product && product->op == BinaryOp::mul) {
        collect(product->a, extents, out);
        collect(product->b, extents, out);
    } else {
        out.plain = false;
    }
}

/// One axis, or several that lie behind each other in all three arrays, with its distance in each.
struct Dimension {
    std::int64_t size = 1;
    std::int64_t a = 0, b = 0, c = 0;
};

/// Joins neighbours that are one dimension in every array: [h, q] with stride(h) = q·stride(q).
void merge(std::vector<Dimension>& dims) {
    std::sort(dims.begin(), dims.end(), [](const Dimension& l, const Dimension& r) {
        return std::max({l.a, l.b, l.c}) > std::max({r.a, r.b, r.c});
    });
    for (std::size_t i = 1; i < dims.size();) {
        Dimension& outer = dims[i - 1];
        const Dimension& inner = dims[i];
        if (outer.a == inner.a * inner.size && outer.b == inner.b * inner.size && outer.c == inner.c * inner.size) {
            outer = {outer.size * inner.size, inner.a, inner.b, inner.c};
            dims.erase(dims.begin() + static_cast<std::ptrdiff_t>(i));
        } else {
            ++i;
        }
    }
}

/// Strides of the array's storage by axis, as the read at plain indices sees them; nullopt when an index is not a plain axis or
/// an axis comes twice.
std::optional<std::vector<std::int64_t>> strides_by_axis(const Diagram& diagram, const Read& r, const Extents& extents) {
    std::vector<std::int64_t> result(diagram.axes.size(), 0);
    const std::vector<std::int64_t> strides = dense_strides(diagram, r.array, extents);
    for (std::size_t i = 0; i < r.indices.size(); ++i) {
        const AxisId axis = r.indices[i].single_axis();
        if (axis < 0 || result[static_cast<std::size_t>(axis)] != 0) return std::nullopt;
        result[static_cast<std::size_t>(axis)] = strides[i];
    }
    return result;
}

bool fits(std::int64_t size) { return size <= std::numeric_limits<std::int32_t>::max(); }

/// The multiply over one choice of m, n and k, when the strides allow it.
std::optional<Gemm> gemm_over(const Dimension& m, const Dimension& n, const Dimension& k) {
    Gemm g;
    g.m = m.size;
    g.n = n.size;
    g.k = k.size;
    if (n.c != 1) return std::nullopt;
    g.ldc = m.c;
    g.transpose_a = k.a != 1;
    if (g.transpose_a && m.a != 1) return std::nullopt;
    g.lda = g.transpose_a ? k.a : m.a;
    g.transpose_b = n.b != 1;
    if (g.transpose_b && k.b != 1) return std::nullopt;
    g.ldb = g.transpose_b ? n.b : k.b;
    // A broadcast operand (stride 0) or an interleaved one is no matrix.
    if (g.ldc < g.n || g.lda < (g.transpose_a ? g.m : g.k) || g.ldb < (g.transpose_b ? g.k : g.n)) return std::nullopt;
    if (!fits(g.m) || !fits(g.n) || !fits(g.k) || !fits(g.lda) || !fits(g.ldb) || !fits(g.ldc)) return std::nullopt;
    return g;
}

std::vector<GemmLoop> loops_over(const std::vector<Dimension>& dims, std::size_t but) {
    std::vector<GemmLoop> loops;
    for (std::size_t i = 0; i < dims.size(); ++i) {
        if (i != but) loops.push_back({dims[i].size, dims[i].a, dims[i].b, dims[i].c});
    }
    return loops;
}

}  // namespace

std::vector<std::int64_t> dense_strides(const Diagram& diagram, ArrayId array, const Extents& extents) {
    const std::vector<AxisId>& axes = diagram.array(array).axes;
    std::vector<std::int64_t> strides(axes.size(), 1);
    for (std::size_t i = axes.size(); i-- > 1;) {
        strides[i - 1] = strides[i] * extents[static_cast<std::size_t>(axes[i])];
    }
    return strides;
}

std::optional<Gemm> as_gemm(const Diagram& diagram, const Equation& equation, const Extents& extents) {
    if (equation.reduce != ReduceOp::sum) return std::nullopt;
    Factors factors;
    collect(equation.body, extents, factors);
    if (!factors.plain || factors.reads.size() != 2) return std::nullopt;

    // With the operands exchanged the target's columns may be the other operand's.
    for (const bool exchanged : {false, true}) {
        const Read& first = *factors.reads[exchanged ? 1 : 0];
        const Read& second = *factors.reads[exchanged ? 0 : 1];
        const auto a = strides_by_axis(diagram, first, extents);
        const auto b = strides_by_axis(diagram, second, extents);
        if (!a || !b) return std::nullopt;
        const std::vector<AxisId>& target_axes = diagram.array(equation.target).axes;
        const std::vector<std::int64_t> target_strides = dense_strides(diagram, equation.target, extents);

        std::vector<Dimension> batch, rows, columns, inner;
        for (std::size_t i = 0; i < target_axes.size(); ++i) {
            const auto axis = static_cast<std::size_t>(target_axes[i]);
            if (extents[axis] == 1) continue;
            const Dimension d{extents[axis], (*a)[axis], (*b)[axis], target_strides[i]};
            if (d.a == 0 && d.b == 0) return std::nullopt;
            (d.a != 0 && d.b != 0 ? batch : d.a != 0 ? rows : columns).push_back(d);
        }
        for (const AxisId axis_id : equation.reduce_axes) {
            const auto axis = static_cast<std::size_t>(axis_id);
            if (extents[axis] == 1) continue;
            inner.push_back({extents[axis], (*a)[axis], (*b)[axis], 0});
            if (inner.back().a == 0 || inner.back().b == 0) return std::nullopt;
        }
        merge(batch);
        merge(rows);
        merge(columns);
        merge(inner);

        std::optional<Gemm> best;
        for (std::size_t m = 0; m < rows.size(); ++m) {
            for (std::size_t n = 0; n < columns.size(); ++n) {
                for (std::size_t k = 0; k < inner.size(); ++k) {
                    std::optional<Gemm> g = gemm_over(rows[m], columns[n], inner[k]);
                    if (!g || (best && g->m * g->n * g->k <= best->m * best->n * best->k)) continue;
                    g->batch = loops_over(batch, batch.size());
                    for (const GemmLoop& loop : loops_over(rows, m)) g->batch.push_back(loop);
                    for (const GemmLoop& loop : loops_over(columns, n)) g->batch.push_back(loop);
                    g->accumulate = loops_over(inner, k);
                    best = std::move(g);
                }
            }
        }
        if (best) {
            best->a = first.array;
            best->b = second.array;
            best->c = equation.target;
            best->alpha = factors.constant;
            return best;
        }
    }
    return std::nullopt;
}

double contraction_flops(const Diagram& diagram, const Equation& equation, const Extents& extents) {
    if (equation.reduce != ReduceOp::sum) return 0;
    int reads = 0;
    visit(equation.body, [&](const Expr& e) { reads += as<Read>(e) != nullptr; });
    const auto* product = as<Binary>(equation.body);
    if (reads < 2 || product == nullptr || product->op != BinaryOp::mul) return 0;
    double points = 1;
    for (const AxisId axis : diagram.array(equation.target).axes)
        points *= static_cast<double>(extents[static_cast<std::size_t>(axis)]);
    for (const AxisId axis : equation.reduce_axes)
        points *= static_cast<double>(extents[static_cast<std::size_t>(axis)]);
    return 2 * points;
}

}  // namespace napkin
