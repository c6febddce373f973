#include "diagram/packed_terms.hpp"

#include <functional>
#include <map>
#include <optional>
#include <utility>

#include "algebra/number.hpp"
#include "diagram/flat_axes.hpp"
#include "diagram/guards.hpp"
#include "diagram/hidden_axes.hpp"
#include "diagram/rewrite_equations.hpp"
#include "support/ids.hpp"
#include "support/ranges.hpp"

namespace napkin {
namespace {

/// A sum of terms, each of which counts at one place.
struct PlacedSum {
    ArrayId which;              ///< the integers
    std::vector<AxisId> terms;  ///< the axes of these, as their array has them
    AxisId place;
    Expr body;  ///< of a term at its place
    [[nodiscard]] bool is_term(AxisId axis) const { return contains(terms, axis); }
    [[nodiscard]] Size places_and_end() const { return Size(axis_symbol(place)) + Size(1); }
};

/// The places that a condition asks for: an element of integers at their own axes equals an axis of the target.
std::optional<PlacedSum> as_places(const Diagram& d, const Equation& e, const Expr& condition) {
    const auto* equality = as<Binary>(condition);
    if (!equality || equality->op != BinaryOp::eq) return std::nullopt;
    for (const auto& [element, other] : {std::pair(equality->a, equality->b), {equality->b, equality->a}}) {
        const auto* integers = as<Read>(element);
        const auto* place = as<AxisIndex>(other);
        if (!integers || !place || !contains(d.array(e.target).axes, place->axis)) continue;
        const Array& array = d.array(integers->array);
        const bool is_plain = equal(element, read_self(d, integers->array)) && !array.axes.empty() &&
                              all_of(array.axes, [&](AxisId axis) { return contains(e.reduce_axes, axis); });
        if (is_plain && is_integer(kind_of(array.type)))
            return PlacedSum{integers->array, array.axes, place->axis, nullptr};
    }
    return std::nullopt;
}

/// The sum of the expression, which is 0 where such a condition does not hold.
std::optional<PlacedSum> placed_terms(const Diagram& d, const Equation& e, const Expr& term) {
    const Select* masked = zero_elsewhere(term);
    const auto* product = as<Binary>(term);
    if (product && product->op == BinaryOp::mul)
        for (const bool is_first : {true, false}) {
            auto found = placed_terms(d, e, is_first ? product->a : product->b);
            if (!found) continue;
            found->body = simplify(is_first ? binary(BinaryOp::mul, found->body, product->b)
                                            : binary(BinaryOp::mul, product->a, found->body));
            return found;
        }
    if (!masked) return std::nullopt;
    const std::vector<Expr> conditions = conditions_in(masked->condition);
    const auto with = [&](const Expr& condition, const Expr& value) {
        return condition ? select(condition, value, masked->b) : value;
    };
    for (std::size_t chosen = 0; chosen < conditions.size(); ++chosen) {
        auto found = as_places(d, e, conditions[chosen]);
        if (!found) continue;
        Expr others;
        for (std::size_t i = 0; i < conditions.size(); ++i)
            if (i != chosen) others = both_hold(others, conditions[i]);
        found->body = with(others, masked->a);
        return found;
    }
    auto found = placed_terms(d, e, masked->a);
    if (found) found->body = with(masked->condition, found->body);
    return found;
}

std::optional<PlacedSum> placed_sum(const Diagram& d, const Equation& e) {
    auto found = e.reduce == ReduceOp::sum ? placed_terms(d, e, e.body) : std::nullopt;
    const std::size_t num_axes = d.array(e.target).axes.size() + e.reduce_axes.size();
    return found && num_axes > found->terms.size() + 1 ? found : std::nullopt;
}

class Packing : EquationRewriter {
public:
    explicit Packing(Diagram& diagram) : EquationRewriter(diagram) {}

    void run() {
        rewrite_each([&](const Equation& e) {
            const auto sum = placed_sum(source_, e);
            return sum && pack(*sum, e);
        });
    }

private:
    static Expr number(std::int64_t value) { return integer_constant(value); }
    static Expr one_where(const Expr& condition) { return select(condition, number(1), number(0)); }
    static Expr at(ArrayId array, const Expr& index) { return read(array, {Index::of(index)}); }
    static std::vector<AxisId> ascending(std::vector<AxisId> axes) {
        sort(axes);
        return axes;
    }

    ArrayId define(const Equation& like, const std::string& name, std::vector<AxisId> axes, DType type,
                   std::optional<ReduceOp> reduce, std::vector<AxisId> reduced, Expr body) {
        Equation e = like;
        e.target = add_array(d_, name, std::move(axes), type, ArrayRole::temporary);
        e.reduce = reduce, e.reduce_axes = std::move(reduced), e.body = std::move(body);
        out_.push_back(e);
        return e.target;
    }

    /// The order in which terms of one place stand beside each other, found once for all sums by the same integers.
    ArrayId order_of(const PlacedSum& sum, AxisId u, const Equation& like) {
        const auto known = order_.find(sum.which);
        if (known != order_.end()) return known->second;
        const std::string name = d_.array(sum.which).name;
        const Expr term = value_of_flat_axis(sum.terms), own = read_self(d_, sum.which);
        const ArrayId flat = sum.terms.size() == 1 ? sum.which
                                                   : define(like, name + "_flat", {u}, d_.array(sum.which).type,
                                                            std::nullopt, {}, at_term(sum, sum.which, axis_index(u)));
        const Expr other = at(flat, axis_index(u));
        const ArrayId rank = define(
            like, name + "_rank", sum.terms, DType::i32, ReduceOp::sum, {u},
            select(binary(BinaryOp::lt, axis_index(u), term), one_where(binary(BinaryOp::le, other, own)),
                   one_where(binary(BinaryOp::lt, other, own))));
        const ArrayId order = define(like, name + "_order", {u}, DType::i32, ReduceOp::max, ascending(sum.terms),
                                     select(binary(BinaryOp::eq, read_self(d_, rank), axis_index(u)), term, number(0)));
        return order_[sum.which] = order;
    }

    /// Where the terms of each place begin, and behind the last place where they end.
    ArrayId begin_of(const PlacedSum& sum, AxisId u, AxisId w, const Equation& like) {
        const auto known = begin_.find({sum.which, sum.place});
        if (known != begin_.end()) return known->second;
        const ArrayId begin = define(like, d_.array(sum.which).name + "_begin", {w}, DType::i32, ReduceOp::sum,
                                     ascending(sum.terms),
                                     one_where(binary(BinaryOp::lt, read_self(d_, sum.which), axis_index(w))));
        d_.arrays[begin].rows = RowNumbers{u, true};
        return begin_[{sum.which, sum.place}] = begin;
    }

    /// The array of the terms, at the one of this number.
    static Expr at_term(const PlacedSum& sum, ArrayId array, const Expr& number) {
        return read(array, mapped<Index>(values_of_parts(sum.terms, number), Index::of));
    }

    /// The read in the order of packed terms: of an array that has them so, where the terms' axes are its own.
    Expr packed_read(const PlacedSum& sum, const Read& r, ArrayId order, AxisId u, const Equation& like) {
        const Array array = d_.array(r.array);
        const std::vector<Expr> term = values_of_parts(sum.terms, at(order, axis_index(u)));
        std::vector<AxisId> axes;
        std::vector<Index> there, own;
        for (std::size_t k = 0; k < array.axes.size(); ++k) {
            const AxisId axis = r.indices[k].single_axis();
            const auto part = find(sum.terms, axis);
            const bool is_term = part != sum.terms.end();
            if (is_term ? axis != array.axes[k] : any_of(sum.terms, [&](AxisId a) { return r.indices[k].depends_on(a); }))
                return nullptr;
            there.push_back(is_term ? Index::of(term[static_cast<std::size_t>(part - sum.terms.begin())])
                                    : Index(Affine::axis(array.axes[k])));
            if (is_term && contains(axes, u)) continue;
            axes.push_back(is_term ? u : array.axes[k]);
            own.push_back(is_term ? Index(Affine::axis(u)) : r.indices[k]);
        }
        const Expr value = read(r.array, std::move(there));
        const auto known = find_if(out_, [&](const Equation& made) { return !made.reduce && equal(made.body, value); });
        const ArrayId packed = known != out_.end() ? known->target
                                                   : define(like, array.name + "_packed", std::move(axes), array.type,
                                                            std::nullopt, {}, value);
        return read(packed, std::move(own));
    }

    bool pack(const PlacedSum& sum, const Equation& e) {
        const AxisId u = free_axis(source_, size_of_flat_axis(sum.terms), {}),
                     w = free_axis(source_, sum.places_and_end(), {u});
        if (u < 0 || w < 0) return false;
        const ArrayId order = order_of(sum, u, e), begin = begin_of(sum, u, w, e);
        const auto reads_terms = [&](const Expr& node) {
            return any_of(sum.terms, [&](AxisId axis) { return depends_on_axis(node, axis); });
        };
        Expr body = transform(sum.body, [&](const Expr& node) -> Expr {
            const auto* r = reads_terms(node) ? as<Read>(node) : nullptr;
            const Expr packed = r ? packed_read(sum, *r, order, u, e) : nullptr;
            return packed ? packed : node;
        });
        const std::vector<Expr> term = values_of_parts(sum.terms, at(order, axis_index(u)));
        body = substitute_axes(body, [&](AxisId axis) -> std::optional<Index> {
            const auto part = find(sum.terms, axis);
            if (part == sum.terms.end()) return std::nullopt;
            return Index::of(term[static_cast<std::size_t>(part - sum.terms.begin())]);
        });
        const Expr is_behind = binary(BinaryOp::ge, axis_index(u), at(begin, axis_index(sum.place))),
                   is_before = binary(BinaryOp::lt, axis_index(u), read(begin, {Index(Affine{{{sum.place, 1}}, 1, {}})}));
        Equation last = e;
        std::erase_if(last.reduce_axes, [&](AxisId axis) { return sum.is_term(axis); });
        last.reduce_axes.push_back(u);
        last.body = select(both_hold(is_behind, is_before), body, constant(0));
        out_.push_back(std::move(last));
        return true;
    }

    std::map<ArrayId, ArrayId> order_;                     ///< by the integers
    std::map<std::pair<ArrayId, AxisId>, ArrayId> begin_;  ///< by the integers and the axis of places
};

}  // namespace

Diagram with_axes_of_packed_terms(Diagram diagram) {
    const Diagram text = diagram;
    for (const Equation& e : text.equations) {
        const auto sum = placed_sum(text, e);
        if (!sum) continue;
        const AxisId u = free_axis_of(diagram, size_of_flat_axis(sum->terms), {}, sum->terms.front(), "_packed");
        free_axis_of(diagram, sum->places_and_end(), {u}, sum->place, "_and_end");
    }
    return diagram;
}

Diagram with_packed_terms(Diagram diagram) {
    Packing(diagram).run();
    return diagram;
}

}  // namespace napkin
