#include "diagram/grouped_rows.hpp"

#include <deque>
#include <optional>
#include <utility>

#include "diagram/guards.hpp"
#include "diagram/hidden_axes.hpp"
#include "support/ids.hpp"
#include "support/ranges.hpp"

namespace napkin {
namespace {

/// Rows of a tile on the tensor cores of two warpgroups (PTX ISA, wgmma: 64 rows each), to which groups are filled up.
constexpr std::int64_t block_rows = 128;

struct GroupedProduct {
    const Read *rows, *matrices;
    bool rows_first;        ///< whether they are the first factor
    std::size_t dimension;  ///< of the matrices' array: which one
    ArrayId which;          ///< the integers
    AxisId row, matrix;     ///< t and e
    Expr condition;         ///< of t, without which a row is 0; null: there is none
    [[nodiscard]] Size positions() const {
        return Size(axis_symbol(row)) + Size(block_rows - 1) * Size(axis_symbol(matrix));
    }
};

/// The one dimension at which the read's index is a bare element G[t], where nothing else of it depends on t.
std::optional<GroupedProduct> as_matrices(const Diagram& d, const Read& matrices, const Read& rows, bool rows_first) {
    GroupedProduct out{&rows, &matrices, rows_first, matrices.indices.size(), {}, {}, {}, {}};
    for (std::size_t k = 0; k < matrices.indices.size(); ++k) {
        if (!matrices.indices[k].is_gathered()) continue;
        const auto* element = as<Read>(*matrices.indices[k].expression());
        if (out.dimension < matrices.indices.size() || !element || element->indices.size() != 1) return std::nullopt;
        out.dimension = k, out.which = element->array, out.row = element->indices[0].single_axis();
    }
    if (out.dimension == matrices.indices.size() || out.row < 0 || d.array(out.which).axes.front() != out.row)
        return std::nullopt;
    for (std::size_t k = 0; k < matrices.indices.size(); ++k)
        if (k != out.dimension && matrices.indices[k].depends_on(out.row)) return std::nullopt;
    const auto own = find_if(rows.indices, [&](const Index& index) { return index.is_axis(out.row); });
    if (own == rows.indices.end() || any_of(rows.indices, [](const Index& index) { return index.is_gathered(); }))
        return std::nullopt;
    const auto position = static_cast<std::size_t>(own - rows.indices.begin());
    for (std::size_t k = 0; k < rows.indices.size(); ++k)
        if (k != position && rows.indices[k].depends_on(out.row)) return std::nullopt;
    out.matrix = d.array(matrices.array).axes[out.dimension];
    return out;
}

std::optional<GroupedProduct> grouped_product(const Diagram& d, const Equation& e) {
    const Select* masked = e.reduce == ReduceOp::sum ? zero_elsewhere(e.body) : nullptr;
    const auto* product = e.reduce == ReduceOp::sum ? as<Binary>(masked ? masked->a : e.body) : nullptr;
    const Read *a = product && product->op == BinaryOp::mul ? as<Read>(product->a) : nullptr,
               *b = a ? as<Read>(product->b) : nullptr;
    if (!b) return std::nullopt;
    auto out = as_matrices(d, *b, *a, true);
    if (!out) out = as_matrices(d, *a, *b, false);
    // Wider values are multiplied by no tensor core, and rows of their own are then as fast.
    const auto is_narrow = [&](const Read* r) {
        const DType type = d.array(r->array).type;
        return is_float(type) && bytes(type) <= 2;
    };
    if (!out || !is_narrow(a) || !is_narrow(b)) return std::nullopt;
    if (masked) {
        out->condition = masked->condition;
        if (free_axes(out->condition) != std::vector<AxisId>{out->row}) return std::nullopt;
    }
    // A matrix has columns of the result, or else each row multiplies a vector of its own.
    const auto& target = d.array(e.target).axes;
    const bool has_columns = any_of(target, [&](AxisId axis) {
        return depends_on(out->matrices->indices, axis) && !depends_on(out->rows->indices, axis);
    });
    return has_columns && contains(target, out->row) ? out : std::nullopt;
}

class Grouping {
public:
    explicit Grouping(Diagram& diagram) : d_(diagram), source_(diagram) {}

    void run() {
        std::vector<Equation> out;
        for (const Equation& e : source_.equations) {
            const auto product = grouped_product(source_, e);
            if (!product || !group(*product, e, out)) out.push_back(e);
        }
        d_.equations = std::move(out);
    }

private:
    /// Where the rows of one choice of matrices stand.
    struct Places {
        ArrayId which;
        AxisId of_matrix;
        Expr condition;
        AxisId position = -1;
        ArrayId place = {}, source = {}, matrix = {};
    };

    ArrayId define(std::vector<Equation>& out, const Equation& like, const std::string& name, std::vector<AxisId> axes,
                   DType type, std::optional<ReduceOp> reduce, std::vector<AxisId> reduced, Expr body) {
        Equation e = like;
        e.target = add_array(d_, name, std::move(axes), type, ArrayRole::temporary);
        e.reduce = reduce, e.reduce_axes = std::move(reduced), e.body = std::move(body);
        out.push_back(e);
        return e.target;
    }

    static bool is_same(const Expr& a, const Expr& b) { return a && b ? equal(a, b) : !a && !b; }
    static Expr at(ArrayId array, const Expr& index) { return read(array, {Index::of(index)}); }
    static Expr number(std::int64_t value) { return integer_constant(value); }
    static Expr one_where(const Expr& condition) { return select(condition, number(1), number(0)); }

    /// The places, found once for all products of the same integers and as many matrices; none without axes.
    const Places* places_of(const GroupedProduct& p, const Equation& like, std::vector<Equation>& out) {
        const auto known = find_if(places_, [&](const Places& places) {
            return places.which == p.which && places.of_matrix == p.matrix && is_same(places.condition, p.condition);
        });
        if (known != places_.end()) return known->position < 0 ? nullptr : &*known;
        Places& places = places_.emplace_back(Places{p.which, p.matrix, p.condition});
        const AxisId e = p.matrix, t = p.row, g = free_axis(source_, Size(axis_symbol(e)), {}),
                     u = free_axis(source_, Size(axis_symbol(t)), {g}),
                     position = free_axis(source_, p.positions(), {g, u});
        if (g < 0 || u < 0 || position < 0) return nullptr;
        const std::string name = d_.array(p.which).name;
        // A row that is 0 may choose no matrix at all.
        const ArrayId which = !p.condition ? p.which
                                           : define(out, like, name + "_chosen", {t}, DType::i32, std::nullopt, {},
                                                    select(p.condition, at(p.which, axis_index(t)), number(0)));
        const Expr of_t = at(which, axis_index(t));
        const ArrayId count = define(out, like, name + "_count", {e}, DType::i32, ReduceOp::sum, {t},
                                     one_where(binary(BinaryOp::eq, of_t, axis_index(e))));
        const Expr blocks = binary(BinaryOp::floor_div,
                                   binary(BinaryOp::add, at(count, axis_index(g)), number(block_rows - 1)),
                                   number(block_rows));
        const ArrayId start = define(out, like, name + "_start", {e}, DType::i32, ReduceOp::sum, {g},
                                     select(binary(BinaryOp::lt, axis_index(g), axis_index(e)),
                                            binary(BinaryOp::mul, blocks, number(block_rows)), number(0)));
        const ArrayId rank = define(out, like, name + "_rank", {t}, DType::i32, ReduceOp::sum, {u},
                                    select(binary(BinaryOp::lt, axis_index(u), axis_index(t)),
                                           one_where(binary(BinaryOp::eq, at(which, axis_index(u)), of_t)), number(0)));
        places.place = define(out, like, name + "_place", {t}, DType::i32, std::nullopt, {},
                              binary(BinaryOp::add, at(start, of_t), at(rank, axis_index(t))));
        places.source = define(out, like, name + "_source", {position}, DType::i32, ReduceOp::max, {t},
                               select(binary(BinaryOp::eq, at(places.place, axis_index(t)), axis_index(position)),
                                      axis_index(t), number(-1)));
        const ArrayId begun = define(out, like, name + "_begun", {position}, DType::i32, ReduceOp::sum, {e},
                                     one_where(binary(BinaryOp::le, at(start, axis_index(e)), axis_index(position))));
        places.matrix = define(out, like, name + "_matrix", {position}, DType::i32, std::nullopt, {},
                               binary(BinaryOp::sub, at(begun, axis_index(position)), number(1)));
        places.position = position;
        return &places;
    }

    bool group(const GroupedProduct& p, const Equation& e, std::vector<Equation>& out) {
        const Places* places = places_of(p, e, out);
        if (!places) return false;
        const Expr position = axis_index(places->position);
        // X_rows, of which every other dimension stays as it is read.
        const Array x = d_.array(p.rows->array), y = d_.array(e.target);
        std::vector<AxisId> axes;
        std::vector<Index> there, own;
        for (std::size_t k = 0; k < p.rows->indices.size(); ++k) {
            const bool is_row = p.rows->indices[k].is_axis(p.row);
            axes.push_back(is_row ? places->position : x.axes[k]);
            there.push_back(is_row ? Index::of(at(places->source, position)) : Index(Affine::axis(x.axes[k])));
            own.push_back(is_row ? Index(Affine::axis(places->position)) : p.rows->indices[k]);
        }
        const ArrayId rows = define(out, e, x.name + "_rows", std::move(axes), x.type, std::nullopt, {},
                                    select(binary(BinaryOp::ge, at(places->source, position), number(0)),
                                           read(p.rows->array, std::move(there)), constant(0)));
        std::vector<Index> of_matrices = p.matrices->indices;
        const Expr begin = binary(BinaryOp::mul, binary(BinaryOp::floor_div, position, number(block_rows)),
                                  number(block_rows));
        of_matrices[p.dimension] = Index::of(at(places->matrix, begin));
        const Expr first = read(rows, std::move(own)), second = read(p.matrices->array, std::move(of_matrices));
        std::vector<AxisId> of_result = y.axes;
        std::replace(of_result.begin(), of_result.end(), p.row, places->position);
        const ArrayId result = define(out, e, y.name + "_rows", std::move(of_result), y.type, e.reduce, e.reduce_axes,
                                      binary(BinaryOp::mul, p.rows_first ? first : second, p.rows_first ? second : first));
        std::vector<Index> back;
        for (const AxisId axis : y.axes)
            back.push_back(axis == p.row ? Index::of(at(places->place, axis_index(axis))) : Index(Affine::axis(axis)));
        Equation last = e;
        last.reduce = std::nullopt, last.reduce_axes.clear(), last.body = read(result, std::move(back));
        if (p.condition) last.body = select(p.condition, last.body, constant(0));
        out.push_back(std::move(last));
        return true;
    }

    Diagram& d_;
    const Diagram source_;
    std::deque<Places> places_;
};

}  // namespace

Diagram with_axes_of_groups(Diagram diagram) {
    const Diagram text = diagram;
    for (const Equation& e : text.equations) {
        const auto p = grouped_product(text, e);
        if (!p) continue;
        std::vector<AxisId> taken;
        taken.push_back(free_axis_of(diagram, Size(axis_symbol(p->matrix)), taken, p->matrix, "_again"));
        taken.push_back(free_axis_of(diagram, Size(axis_symbol(p->row)), taken, p->row, "_again"));
        taken.push_back(free_axis_of(diagram, p->positions(), taken, p->row, "_rows"));
    }
    return diagram;
}

Diagram with_grouped_rows(Diagram diagram) {
    Grouping(diagram).run();
    return diagram;
}

}  // namespace napkin
