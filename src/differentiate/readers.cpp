#include "differentiate/readers.hpp"

#include <algorithm>
#include <limits>
#include <optional>

#include "algebra/number.hpp"
#include "diagram/guards.hpp"
#include "diagram/same_size.hpp"
#include "support/ranges.hpp"

namespace napkin {
namespace {

/// A quotient with a larger divisor has too many neighbours to run over for each element: all points are.
constexpr std::int64_t most_neighbours = 1024;

Expr join(BinaryOp op, const Expr& a, const Expr& b) { return simplify(binary(op, a, b)); }

class Inverse {
public:
    Inverse(Diagram& diagram, const std::vector<AxisId>& element, const std::vector<AxisId>& points)
        : d_(diagram), element_(element) {
        out_.over = points;
    }

    Readers of(const std::vector<Index>& indices) {
        std::vector<std::size_t> rest;
        // A plain axis has one reader, whatever the other indices are.
        for (std::size_t i = 0; i < indices.size(); ++i) {
            const AxisId axis = indices[i].single_axis();
            if (!contains(out_.over, axis) || takes_own_dimension(indices, axis, i)) {
                rest.push_back(i);
                continue;
            }
            set(axis, axis_index(element_[i]));
            if (!same_size(d_, axis, element_[i])) require_below(axis_index(element_[i]), axis);
        }
        // What is gathered has no inverse, and is a condition on the points that the others leave.
        std::stable_partition(rest.begin(), rest.end(), [&](std::size_t i) { return !indices[i].is_gathered(); });
        for (std::size_t i = 0; i < rest.size(); ++i) {
            const std::size_t partner = i + 1 < rest.size() ? rest[i + 1] : rest[i];
            if (rest[i] != partner && solve_parts(indices[rest[i]], indices[partner], rest[i], partner)) {
                ++i;
                continue;
            }
            solve(now(indices[rest[i]].value()), axis_index(element_[rest[i]]));
        }
        return std::move(out_);
    }

private:
    /// The axis is one of the element's, and the index of a later dimension is its own: that one must be its inverse.
    [[nodiscard]] bool takes_own_dimension(const std::vector<Index>& indices, AxisId axis, std::size_t dimension) const {
        for (std::size_t i = 0; i < indices.size(); ++i)
            if (i != dimension && element_[i] == axis && indices[i].is_axis(axis)) return true;
        return false;
    }
    [[nodiscard]] bool is_open(AxisId axis) const { return contains(out_.over, axis); }

    /// As far as the text gives it as a number.
    [[nodiscard]] std::optional<std::int64_t> number_of_values(AxisId axis) const {
        const auto& given = d_.axis(axis).size;
        const auto size = given ? given->as_constant() : std::nullopt;
        return size && size->is_integer() ? std::optional(size->numerator()) : std::nullopt;
    }
    void assume(BinaryOp op, AxisId axis, std::int64_t size) {
        out_.assumed.push_back(binary(op, axis_size(axis), integer_constant(size)));
    }

    [[nodiscard]] Expr now(const Expr& e) const {
        return substitute_axes(e, [&](AxisId axis) -> std::optional<Index> {
            const auto found = out_.at.find(axis);
            return found == out_.at.end() ? std::nullopt : std::optional(Index::of(found->second));
        });
    }
    void set(AxisId axis, const Expr& value) {
        std::erase(out_.over, axis);
        out_.at[axis] = value;
        for (auto& [other, e] : out_.at)
            if (other != axis && depends_on_axis(e, axis)) e = now(e);
        for (Expr& e : out_.required) e = now(e);
    }
    void require(BinaryOp op, const Expr& a, const Expr& b) {
        const Expr condition = simplify(binary(op, a, b));
        const auto* known = as<Constant>(condition);
        if (!known || known->value == 0) out_.required.push_back(condition);
    }
    void require_below(const Expr& value, AxisId axis) { require(BinaryOp::lt, value, axis_size(axis)); }

    /// The axis is the value, as far as that is one of its coordinates.
    void set_within(AxisId axis, const Expr& value) {
        const auto form = affine_form(value);
        const bool is_never_below = form && form->constant >= 0 && form->sizes.empty() &&
                                    all_of(form->terms, [](const auto& term) { return term.second >= 0; });
        set(axis, value);
        if (!is_never_below) require(BinaryOp::ge, value, integer_constant(0));
        require_below(value, axis);
    }

    /// Whether terms, by ascending factor, count the values of one number, as h * 64 + d does with 64 values of d.
    [[nodiscard]] bool are_digits(const std::vector<std::pair<AxisId, std::int64_t>>& terms) const {
        for (std::size_t i = 0; i + 1 < terms.size(); ++i) {
            const auto values = number_of_values(terms[i].first);
            if (!values || *values * terms[i].second > terms[i + 1].second) return false;
        }
        return terms[0].second > 0;
    }

    /// Σ factor·axis + rest = value.
    void solve_affine(const Affine& form, const Expr& value) {
        std::vector<std::pair<AxisId, std::int64_t>> open;
        Affine rest = form;
        for (const auto& [axis, factor] : form.terms) {
            if (!is_open(axis)) continue;
            open.emplace_back(axis, factor);
            rest.add(axis, -factor);
        }
        if (open.empty()) return require(BinaryOp::eq, Index(form).value(), value);
        sort(open, [](const auto& a, const auto& b) { return a.second < b.second; });
        Expr left = join(BinaryOp::sub, value, Index(rest).value());
        if (are_digits(open)) {
            for (std::size_t i = open.size(); i-- > 0;) {
                const auto [axis, factor] = open[i];
                const bool is_last = i == 0;
                const Expr quotient = factor == 1 ? left : join(BinaryOp::floor_div, left, integer_constant(factor));
                const Expr remainder = factor == 1 ? integer_constant(0)
                                                   : join(BinaryOp::mod, left, integer_constant(factor));
                if (is_last && factor != 1) require(BinaryOp::eq, remainder, integer_constant(0));
                if (i + 1 < open.size()) assume(BinaryOp::le, axis, open[i + 1].second / factor);
                set_within(axis, quotient);
                left = remainder;
            }
            return;
        }
        const auto [axis, factor] = best(open);
        for (const auto& [other, of_other] : open)
            if (other != axis)
                left = join(BinaryOp::sub, left, join(BinaryOp::mul, integer_constant(of_other), axis_index(other)));
        if (factor < 0) left = simplify(unary(UnaryOp::neg, left));
        const std::int64_t size = std::abs(factor);
        if (size == 1) return set_within(axis, left);
        require(BinaryOp::eq, join(BinaryOp::mod, left, integer_constant(size)), integer_constant(0));
        set_within(axis, join(BinaryOp::floor_div, left, integer_constant(size)));
    }

    /// The axis to solve for: that of the most values, so that the sum over the others is short. Where sizes are not
    /// known, those of the equation's target count as the longest.
    [[nodiscard]] std::pair<AxisId, std::int64_t> best(const std::vector<std::pair<AxisId, std::int64_t>>& open) const {
        const auto values = [&](const auto& term) {
            const auto known = number_of_values(term.first);
            // The first axes of an equation are those of its target.
            const auto place = find(out_.over, term.first) - out_.over.begin();
            return std::pair(known.value_or(std::numeric_limits<std::int64_t>::max()), -place);
        };
        return *std::max_element(open.begin(), open.end(),
                                 [&](const auto& a, const auto& b) { return values(a) < values(b); });
    }

    [[nodiscard]] bool has_open(const Expr& e) const {
        return any_of(free_axes(e), [&](AxisId axis) { return is_open(axis); });
    }
    static std::optional<std::int64_t> number_in(const Expr& e) {
        const auto* c = as<Constant>(e);
        return c ? whole_of(*c) : std::nullopt;
    }

    void solve(const Expr& index, const Expr& value) {
        if (const auto form = affine_form(index)) return solve_affine(*form, value);
        const auto* n = as<Binary>(index);
        if (n && n->op == BinaryOp::add && !has_open(n->a)) return solve(n->b, join(BinaryOp::sub, value, n->a));
        if (n && n->op == BinaryOp::add && !has_open(n->b)) return solve(n->a, join(BinaryOp::sub, value, n->b));
        if (n && n->op == BinaryOp::sub && !has_open(n->b)) return solve(n->a, join(BinaryOp::add, value, n->b));
        const auto divisor = n ? number_in(n->b) : std::nullopt;
        if (n && n->op == BinaryOp::floor_div && divisor && has_open(n->a) && *divisor <= most_neighbours) {
            // As many neighbours have this quotient as the divisor says.
            const AxisId among = add_axis(d_, d_.axis(out_.over.front()).name + "_in", *divisor, out_.over.front());
            out_.over.push_back(among);
            const Expr first = join(BinaryOp::mul, value, integer_constant(*divisor));
            return solve(n->a, binary(BinaryOp::add, first, axis_index(among)));
        }
        if (n && n->op == BinaryOp::mod && solve_rotation(*n, value)) return;
        require(BinaryOp::eq, index, value);
    }

    /// (i + s) % size(i) = value: a rotation has one reader.
    bool solve_rotation(const Binary& n, const Expr& value) {
        std::vector<AxisId> open;
        for (const AxisId axis : free_axes(n.a))
            if (is_open(axis)) open.push_back(axis);
        if (open.size() != 1) return false;
        const auto divisor = number_in(n.b), values = number_of_values(open[0]);
        const auto* size = as<AxisSize>(n.b);
        if (!(divisor && values && *divisor == *values) && !(size && same_size(d_, size->axis, open[0]))) return false;
        // What is left of a sum without the axis.
        const Expr shift = simplify(substitute_axes(n.a, [&](AxisId axis) -> std::optional<Index> {
            return axis == open[0] ? std::optional<Index>(Affine{}) : std::nullopt;
        }));
        const auto form = affine_form(n.a);
        const bool is_shift = form ? form->coefficient(open[0]) == 1 : is_sum_with(n.a, open[0]);
        if (!is_shift) return false;
        if (!size) assume(BinaryOp::eq, open[0], *divisor);
        set(open[0], join(BinaryOp::mod, join(BinaryOp::sub, value, shift), n.b));
        return true;
    }
    /// a + i, with nothing of i in a.
    static bool is_sum_with(const Expr& e, AxisId axis) {
        if (const auto* i = as<AxisIndex>(e)) return i->axis == axis;
        const auto* n = as<Binary>(e);
        if (!n || (n->op != BinaryOp::add && n->op != BinaryOp::sub)) return false;
        const bool in_a = depends_on_axis(n->a, axis), in_b = depends_on_axis(n->b, axis);
        return in_a != in_b && (in_a ? is_sum_with(n->a, axis) : n->op == BinaryOp::add && is_sum_with(n->b, axis));
    }

    /// X[w // c, w % c]: two indices that together are one number.
    bool solve_parts(const Index& first, const Index& second, std::size_t at_first, std::size_t at_second) {
        const auto part = [&](const Index& index, BinaryOp op) -> const Binary* {
            const auto* n = index.expression() ? as<Binary>(*index.expression()) : nullptr;
            return n && n->op == op ? n : nullptr;
        };
        const Binary *quotient = part(first, BinaryOp::floor_div), *rest = part(second, BinaryOp::mod);
        std::size_t of_quotient = at_first, of_rest = at_second;
        if (!quotient || !rest) {
            quotient = part(second, BinaryOp::floor_div), rest = part(first, BinaryOp::mod);
            std::swap(of_quotient, of_rest);
        }
        if (!quotient || !rest || !equal(quotient->a, rest->a) || !equal(quotient->b, rest->b)) return false;
        if (!has_open(now(quotient->a))) return false;
        const Expr blocks = binary(BinaryOp::mul, axis_index(element_[of_quotient]), quotient->b);
        const Expr in_block = axis_index(element_[of_rest]);
        // A dimension longer than the divisor has elements that nobody reads.
        require(BinaryOp::lt, in_block, quotient->b);
        solve(now(quotient->a), binary(BinaryOp::add, blocks, in_block));
        return true;
    }

    Diagram& d_;
    const std::vector<AxisId>& element_;
    Readers out_;
};

}  // namespace

Expr Readers::seen(const Expr& e) const {
    const Expr there = substitute_axes(e, [&](AxisId axis) -> std::optional<Index> {
        const auto found = at.find(axis);
        return found == at.end() ? std::nullopt : std::optional(Index::of(found->second));
    });
    Expr condition;
    for (const Expr& part : required) condition = both_hold(condition, part);
    Expr out = condition ? select(condition, there, constant(0)) : there;
    for (const Expr& part : assumed) out = select(part, out, constant(std::numeric_limits<double>::quiet_NaN()));
    return out;
}

Readers readers_of(Diagram& diagram, const std::vector<Index>& indices, const std::vector<AxisId>& element,
                   const std::vector<AxisId>& points) {
    return Inverse(diagram, element, points).of(indices);
}

}  // namespace napkin
