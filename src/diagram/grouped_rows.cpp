#include "diagram/grouped_rows.hpp"

#include <deque>
#include <optional>
#include <utility>

#include "diagram/flat_axes.hpp"
#include "diagram/guards.hpp"
#include "diagram/hidden_axes.hpp"
#include "diagram/product.hpp"
#include "diagram/rewrite_equations.hpp"
#include "support/ids.hpp"
#include "support/ranges.hpp"

namespace napkin {
namespace {

/// Rows of a tile on the tensor cores of two warpgroups (PTX ISA, wgmma: 64 rows each), to which groups are filled up.
constexpr std::int64_t block_rows = 128;

struct GroupedProduct {
    const Read *rows, *matrices;
    bool rows_first = false;                     ///< whether they stand before the matrices
    std::size_t dimension = 0;                   ///< of the matrices' array: which one
    ArrayId which = {};                          ///< the integers
    std::vector<AxisId> row_axes = {};           ///< of the integers, outermost first
    AxisId matrix = {};                          ///< e
    Expr condition = {};                         ///< of rows, without which one is 0; null: there is none
    std::vector<AxisId> inner = {}, outer = {};  ///< summed axes of the product of two, and those behind it
    std::vector<Expr> others = {};               ///< factors that stand behind it
    [[nodiscard]] bool is_row(AxisId axis) const { return contains(row_axes, axis); }
    [[nodiscard]] Size positions() const {
        return size_of_flat_axis(row_axes) + Size(block_rows - 1) * Size(axis_symbol(matrix));
    }
    /// Whether the two factors have the axis, beside those of rows.
    [[nodiscard]] bool has(AxisId axis) const {
        return !is_row(axis) && (depends_on(rows->indices, axis) || depends_on(matrices->indices, axis));
    }
};

/// Whether each index is an axis of rows or has to do with none, and some index is one.
bool are_rows(const Read& read, const std::vector<AxisId>& row_axes) {
    bool has_row = false;
    for (const Index& index : read.indices) {
        const bool is_row = contains(row_axes, index.single_axis());
        has_row = has_row || is_row;
        if (index.is_gathered() || (!is_row && any_of(row_axes, [&](AxisId a) { return index.depends_on(a); })))
            return false;
    }
    return has_row;
}

/// The one dimension at which the read's index is an element of an array at its own axes, where nothing else of the
/// read depends on these.
std::optional<GroupedProduct> as_matrices(const Diagram& d, const Read& matrices, const Read& rows) {
    GroupedProduct out{&rows, &matrices};
    out.dimension = matrices.indices.size();
    for (std::size_t k = 0; k < matrices.indices.size(); ++k) {
        if (!matrices.indices[k].is_gathered()) continue;
        const auto* element = as<Read>(*matrices.indices[k].expression());
        if (out.dimension < matrices.indices.size() || !element || element->indices.empty()) return std::nullopt;
        out.dimension = k, out.which = element->array;
        out.row_axes = mapped<AxisId>(element->indices, [](const Index& index) { return index.single_axis(); });
    }
    if (out.dimension == matrices.indices.size() || out.row_axes != d.array(out.which).axes) return std::nullopt;
    for (std::size_t k = 0; k < matrices.indices.size(); ++k)
        if (k != out.dimension && any_of(out.row_axes, [&](AxisId a) { return matrices.indices[k].depends_on(a); }))
            return std::nullopt;
    if (!are_rows(rows, out.row_axes)) return std::nullopt;
    out.matrix = d.array(matrices.array).axes[out.dimension];
    return out;
}

/// The product of two factors among those of the equation.
std::optional<GroupedProduct> grouped_product(const Diagram& d, const Equation& e, const std::vector<Expr>& factors,
                                              std::size_t matrices, std::size_t rows) {
    // Wider values are multiplied by no tensor core, and rows of their own are then as fast.
    const auto narrow = [&](const Expr& factor) {
        const auto* r = as<Read>(factor);
        const DType type = r ? d.array(r->array).type : DType::f32;
        return is_float(type) && bytes(type) <= 2 ? r : nullptr;
    };
    const Read *a = narrow(factors[matrices]), *b = narrow(factors[rows]);
    auto out = a && b && matrices != rows ? as_matrices(d, *a, *b) : std::nullopt;
    if (!out) return std::nullopt;
    out->rows_first = rows < matrices;
    for (std::size_t i = 0; i < factors.size(); ++i)
        if (i != matrices && i != rows) out->others.push_back(factors[i]);
    for (const AxisId axis : e.reduce_axes) (out->has(axis) ? out->inner : out->outer).push_back(axis);
    const bool is_apart = none_of(out->inner, [&](AxisId axis) {
        return any_of(out->others, [&](const Expr& factor) { return depends_on_axis(factor, axis); });
    });
    // A matrix has columns of the result, or else each row multiplies a vector of its own.
    const auto& target = d.array(e.target).axes;
    const bool has_columns = any_of(target, [&](AxisId axis) { return out->has(axis) && !depends_on(b->indices, axis); });
    const bool has_rows = all_of(out->row_axes,
                                 [&](AxisId axis) { return contains(target, axis) || contains(out->outer, axis); });
    return is_apart && has_columns && has_rows && !out->inner.empty() ? out : std::nullopt;
}

std::optional<GroupedProduct> grouped_product(const Diagram& d, const Equation& e) {
    if (e.reduce != ReduceOp::sum) return std::nullopt;
    const Select* masked = zero_elsewhere(e.body);
    const std::vector<Expr> factors = factors_of(masked ? masked->a : e.body);
    const std::vector<AxisId> masks = masked ? free_axes(masked->condition) : std::vector<AxisId>();
    for (std::size_t matrices = 0; matrices < factors.size(); ++matrices)
        for (std::size_t rows = 0; rows < factors.size(); ++rows) {
            auto out = grouped_product(d, e, factors, matrices, rows);
            if (!out) continue;
            if (!masked) return out;
            out->condition = masked->condition;
            if (!masks.empty() && all_of(masks, [&](AxisId axis) { return out->is_row(axis); })) return out;
        }
    return std::nullopt;
}

class Grouping : EquationRewriter {
public:
    explicit Grouping(Diagram& diagram) : EquationRewriter(diagram) {}

    void run() {
        rewrite_each([&](const Equation& e) {
            const auto product = grouped_product(source_, e);
            return product && group(*product, e);
        });
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

    ArrayId define(const Equation& like, const std::string& name, std::vector<AxisId> axes, DType type,
                   std::optional<ReduceOp> reduce, std::vector<AxisId> reduced, Expr body) {
        Equation e = like;
        e.target = add_array(d_, name, std::move(axes), type, ArrayRole::temporary);
        e.reduce = reduce, e.reduce_axes = std::move(reduced), e.body = std::move(body);
        out_.push_back(e);
        return e.target;
    }

    static bool is_same(const Expr& a, const Expr& b) { return a && b ? equal(a, b) : !a && !b; }
    static Expr at(ArrayId array, const Expr& index) { return read(array, {Index::of(index)}); }
    static Expr number(std::int64_t value) { return integer_constant(value); }
    static std::vector<AxisId> ascending(std::vector<AxisId> axes) {
        sort(axes);
        return axes;
    }
    static Expr one_where(const Expr& condition) { return select(condition, number(1), number(0)); }

    /// The places, found once for all products of the same integers and as many matrices; none without axes.
    const Places* places_of(const GroupedProduct& p, const Equation& like) {
        const auto known = find_if(places_, [&](const Places& places) {
            return places.which == p.which && places.of_matrix == p.matrix && is_same(places.condition, p.condition);
        });
        if (known != places_.end()) return known->position < 0 ? nullptr : &*known;
        Places& places = places_.emplace_back(Places{p.which, p.matrix, p.condition});
        const AxisId e = p.matrix, g = free_axis(source_, Size(axis_symbol(e)), {}),
                     u = free_axis(source_, size_of_flat_axis(p.row_axes), {g}),
                     position = free_axis(source_, p.positions(), {g, u});
        if (g < 0 || u < 0 || position < 0) return nullptr;
        const std::string name = d_.array(p.which).name;
        const std::vector<AxisId>& t = p.row_axes;
        // A row that is 0 may choose no matrix at all.
        const ArrayId which = !p.condition ? p.which
                                           : define(like, name + "_chosen", t, DType::i32, std::nullopt, {},
                                                    select(p.condition, read_self(d_, p.which), number(0)));
        const Expr of_t = read_self(d_, which), row = value_of_flat_axis(t);
        const ArrayId flat = t.size() == 1
                                 ? which
                                 : define(like, name + "_flat", {u}, DType::i32, std::nullopt, {},
                                          read(which, mapped<Index>(values_of_parts(t, axis_index(u)), Index::of)));
        const ArrayId count = define(like, name + "_count", {e}, DType::i32, ReduceOp::sum, ascending(t),
                                     one_where(binary(BinaryOp::eq, of_t, axis_index(e))));
        const Expr blocks = binary(BinaryOp::floor_div,
                                   binary(BinaryOp::add, at(count, axis_index(g)), number(block_rows - 1)),
                                   number(block_rows));
        const ArrayId start = define(like, name + "_start", {e}, DType::i32, ReduceOp::sum, {g},
                                     select(binary(BinaryOp::lt, axis_index(g), axis_index(e)),
                                            binary(BinaryOp::mul, blocks, number(block_rows)), number(0)));
        const ArrayId rank = define(like, name + "_rank", t, DType::i32, ReduceOp::sum, {u},
                                    select(binary(BinaryOp::lt, axis_index(u), row),
                                           one_where(binary(BinaryOp::eq, at(flat, axis_index(u)), of_t)), number(0)));
        places.place = define(like, name + "_place", t, DType::i32, std::nullopt, {},
                              binary(BinaryOp::add, at(start, of_t), read_self(d_, rank)));
        places.source = define(
            like, name + "_source", {position}, DType::i32, ReduceOp::max, ascending(t),
            select(binary(BinaryOp::eq, read_self(d_, places.place), axis_index(position)), row, number(-1)));
        const ArrayId begun = define(like, name + "_begun", {position}, DType::i32, ReduceOp::sum, {e},
                                     one_where(binary(BinaryOp::le, at(start, axis_index(e)), axis_index(position))));
        places.matrix = define(like, name + "_matrix", {position}, DType::i32, std::nullopt, {},
                               binary(BinaryOp::sub, at(begun, axis_index(position)), number(1)));
        places.position = position;
        return &places;
    }

    bool group(const GroupedProduct& p, const Equation& e) {
        const Places* places = places_of(p, e);
        if (!places) return false;
        const Expr position = axis_index(places->position);
        // X_rows, of which every other dimension stays as it is read.
        const Array x = d_.array(p.rows->array), y = d_.array(e.target);
        const std::vector<Expr> row = values_of_parts(p.row_axes, at(places->source, position));
        std::vector<AxisId> axes;
        std::vector<Index> there, own;
        for (std::size_t k = 0; k < p.rows->indices.size(); ++k) {
            const auto axis = find(p.row_axes, p.rows->indices[k].single_axis());
            const bool is_row = axis != p.row_axes.end();
            there.push_back(is_row ? Index::of(row[static_cast<std::size_t>(axis - p.row_axes.begin())])
                                   : Index(Affine::axis(x.axes[k])));
            if (is_row && contains(axes, places->position)) continue;
            axes.push_back(is_row ? places->position : x.axes[k]);
            own.push_back(is_row ? Index(Affine::axis(places->position)) : p.rows->indices[k]);
        }
        const ArrayId rows = define(e, x.name + "_rows", std::move(axes), x.type, std::nullopt, {},
                                    select(binary(BinaryOp::ge, at(places->source, position), number(0)),
                                           read(p.rows->array, std::move(there)), constant(0)));
        std::vector<Index> of_matrices = p.matrices->indices;
        const Expr begin = binary(BinaryOp::mul, binary(BinaryOp::floor_div, position, number(block_rows)),
                                  number(block_rows));
        of_matrices[p.dimension] = Index::of(at(places->matrix, begin));
        const Expr first = read(rows, std::move(own)), second = read(p.matrices->array, std::move(of_matrices));
        // A row's place is where its first axis stands in the result, or else is the first one.
        std::vector<AxisId> of_result;
        std::vector<Index> back;
        const auto add = [&](AxisId axis) {
            if (!p.is_row(axis) && !p.has(axis)) return;
            if (p.is_row(axis) && contains(of_result, places->position)) return;
            of_result.push_back(p.is_row(axis) ? places->position : axis);
            back.push_back(p.is_row(axis) ? Index::of(read_self(d_, places->place)) : Index(Affine::axis(axis)));
        };
        if (none_of(y.axes, [&](AxisId axis) { return p.is_row(axis); })) add(p.row_axes.front());
        for (const AxisId axis : y.axes) add(axis);
        // What is multiplied or added up once more is not rounded before.
        const bool is_last = p.others.empty() && p.outer.empty();
        const ArrayId result = define(
            e, y.name + "_rows", std::move(of_result), is_last ? y.type : DType::f32, e.reduce, p.inner,
            binary(BinaryOp::mul, p.rows_first ? first : second, p.rows_first ? second : first));
        Equation last = e;
        last.body = read(result, std::move(back));
        for (auto factor = p.others.rbegin(); factor != p.others.rend(); ++factor)
            last.body = binary(BinaryOp::mul, *factor, last.body);
        last.reduce_axes = p.outer;
        if (p.outer.empty()) last.reduce = std::nullopt;
        if (p.condition) last.body = select(p.condition, last.body, constant(0));
        out_.push_back(std::move(last));
        return true;
    }

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
        taken.push_back(free_axis_of(diagram, size_of_flat_axis(p->row_axes), taken, p->row_axes.front(), "_again"));
        taken.push_back(free_axis_of(diagram, p->positions(), taken, p->row_axes.front(), "_rows"));
    }
    return diagram;
}

Diagram with_grouped_rows(Diagram diagram) {
    Grouping(diagram).run();
    return diagram;
}

}  // namespace napkin
