#include "run/contraction.hpp"

#include <limits>

#include "diagram/product.hpp"
#include "support/ranges.hpp"
#include "tile/liveness.hpp"

namespace napkin {

namespace {

/// A product of two reads and constants, through casts that lose nothing in the arithmetic of the evaluation.
struct Factors {
    double constant = 1;
    std::vector<const Read*> reads;
    bool plain = true;  ///< nothing but constants and reads
};

void collect(const Expr& e, const Extents& extents, Factors& out) {
    for (const Expr& factor : factors_of(e)) {
        const auto* conversion = as<Cast>(factor);
        if (const auto* c = as<Constant>(factor))
            out.constant *= c->value;
        else if (const auto* size = as<AxisSize>(factor))
            out.constant *= static_cast<double>(extents[size->axis]);
        else if (const auto* r = as<Read>(factor))
            out.reads.push_back(r);
        else if (conversion && (conversion->type == DType::f64 || conversion->type == DType::f32))
            collect(conversion->a, extents, out);
        else
            out.plain = false;
    }
}

/// One axis, or several that lie behind each other in all three arrays, with its distance in each.
struct StridedDim {
    std::int64_t size = 1;
    std::int64_t a = 0, b = 0, c = 0;
};

/// Joins neighbours that are one dimension in every array: [h, q] with stride(h) = q·stride(q).
void merge(std::vector<StridedDim>& dims) {
    sort(dims,
         [](const StridedDim& l, const StridedDim& r) { return std::max({l.a, l.b, l.c}) > std::max({r.a, r.b, r.c}); });
    for (std::size_t i = 1; i < dims.size();) {
        StridedDim& outer = dims[i - 1];
        const StridedDim& inner = dims[i];
        if (outer.a == inner.a * inner.size && outer.b == inner.b * inner.size && outer.c == inner.c * inner.size) {
            outer = {outer.size * inner.size, inner.a, inner.b, inner.c};
            dims.erase(dims.begin() + static_cast<std::ptrdiff_t>(i));
        } else {
            ++i;
        }
    }
}

/// Strides of the array's storage by axis, as the read at plain indices sees them; nullopt when an index is not a plain
/// axis or an axis comes twice.
std::optional<std::vector<std::int64_t>> strides_by_axis(const Diagram& diagram, const Read& r, const Extents& extents) {
    std::vector<std::int64_t> result(diagram.axes.size(), 0);
    const std::vector<std::int64_t> strides = dense_strides(diagram, r.array, extents);
    for (std::size_t i = 0; i < r.indices.size(); ++i) {
        const AxisId axis = r.indices[i].single_axis();
        if (axis < 0 || result[at(axis)] != 0) return std::nullopt;
        result[at(axis)] = strides[i];
    }
    return result;
}

bool fits(std::int64_t size) { return size <= std::numeric_limits<std::int32_t>::max(); }

/// The multiply over one choice of m, n and k, when the strides allow it.
std::optional<Gemm> gemm_over(const StridedDim& m, const StridedDim& n, const StridedDim& k) {
    Gemm g{.m = m.size, .n = n.size, .k = k.size};
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

std::vector<GemmLoop> loops_over(const std::vector<StridedDim>& dims, std::size_t but) {
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
        strides[i - 1] = strides[i] * extents[axes[i]];
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
        // An axis of one value is none.
        const auto long_axes = [&](std::vector<AxisId> axes) {
            std::erase_if(axes, [&](AxisId axis) { return extents[axis] == 1; });
            return axes;
        };
        const Expr target = read_self(diagram, equation.target);
        const auto c = strides_by_axis(diagram, *as<Read>(target), extents);
        const auto axes = product_axes(axes_of(first.indices), axes_of(second.indices),
                                       long_axes(diagram.array(equation.target).axes), long_axes(equation.reduce_axes));
        if (!axes || !axes->loose.empty()) return std::nullopt;
        const auto dimensions = [&](const std::vector<AxisId>& ids) {
            std::vector<StridedDim> dims;
            for (const AxisId id : ids) {
                const auto axis = id;
                dims.push_back({extents[axis], (*a)[axis], (*b)[axis], (*c)[axis]});
            }
            merge(dims);
            return dims;
        };
        const std::vector<StridedDim> batch = dimensions(axes->batch), rows = dimensions(axes->m),
                                      columns = dimensions(axes->n), inner = dimensions(axes->k);

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
    if (reads < 2 || factors_of(equation.body).size() < 2) return 0;
    return 2 * count_points(diagram, equation, extents);
}

}  // namespace napkin
