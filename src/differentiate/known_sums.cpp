#include "differentiate/known_sums.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "algebra/polynomial.hpp"
#include "diagram/same_size.hpp"
#include "support/ranges.hpp"

namespace napkin {
namespace {

constexpr std::size_t most_terms = 12;  // a longer sum is not multiplied out

using Powers = std::vector<std::pair<Expr, double>>;
using AxisMap = std::map<AxisId, AxisId>;

/// A sum of one product: its target is `factor` times Σ over `axes` of the product of `inside`.
struct KnownSum {
    ArrayId target;
    std::vector<AxisId> axes;
    Polynomial factor;
    Powers inside;
};

bool depends_on(const Expr& e, const std::vector<AxisId>& axes) {
    return any_of(axes, [&](AxisId axis) { return depends_on_axis(e, axis); });
}
Polynomial of_powers(const Powers& powers, double coefficient = 1) { return {{coefficient, powers}}; }

/// The factors that depend on the axes, and the others with the coefficient.
struct Split {
    Powers inside;
    Polynomial outside;
};
Split split(const AtomProduct& term, const std::vector<AxisId>& axes) {
    Split out;
    Powers others;
    for (const auto& power : term.powers) (depends_on(power.first, axes) ? out.inside : others).push_back(power);
    out.outside = of_powers(others, term.coefficient);
    return out;
}

/// Binds axes of `pattern` to axes of one size with them, so that it is `e`. Nothing is unbound on failure: the caller
/// keeps a copy.
bool unify(const Diagram& d, const Expr& pattern, const Expr& e, AxisMap& bound) {
    const auto bind = [&](AxisId from, AxisId to) {
        if (!same_size(d, from, to)) return false;
        const auto [at, added] = bound.try_emplace(from, to);
        if (!added) return at->second == to;
        // Different axes stay different.
        return std::count_if(bound.begin(), bound.end(), [&](const auto& entry) { return entry.second == to; }) == 1;
    };
    if (pattern->v.index() != e->v.index()) return false;
    if (const auto* p = as<AxisIndex>(pattern)) return bind(p->axis, as<AxisIndex>(e)->axis);
    if (const auto* p = as<Read>(pattern)) {
        const Read* r = as<Read>(e);
        if (p->array != r->array) return false;
        for (std::size_t i = 0; i < p->indices.size(); ++i) {
            const AxisId from = p->indices[i].single_axis(), to = r->indices[i].single_axis();
            if (from >= 0 && to >= 0) {
                if (!bind(from, to)) return false;
            } else if (!(p->indices[i] == r->indices[i]) ||
                       !all_of(p->indices[i].axes(), [&](AxisId axis) { return bind(axis, axis); })) {
                return false;
            }
        }
        return true;
    }
    const auto parts = children(pattern), others = children(e);
    if (parts.empty() || !equal(with_children(pattern, others), e)) return equal(pattern, e);
    for (std::size_t i = 0; i < parts.size(); ++i)
        if (!unify(d, parts[i], others[i], bound)) return false;
    return true;
}

/// The factors that are left of `all` without an image of `wanted`; none where they have no such image. Tries the
/// factors of `wanted` from `next` on.
std::optional<Powers> without(const Diagram& d, const Powers& all, const Powers& wanted, AxisMap& bound,
                              std::size_t next = 0) {
    if (next == wanted.size()) return all;
    for (std::size_t i = 0; i < all.size(); ++i) {
        if (all[i].second != wanted[next].second) continue;
        AxisMap tried = bound;
        if (!unify(d, wanted[next].first, all[i].first, tried)) continue;
        Powers rest = all;
        rest.erase(rest.begin() + static_cast<std::ptrdiff_t>(i));
        if (auto found = without(d, rest, wanted, tried, next + 1)) {
            bound = std::move(tried);
            return found;
        }
    }
    return std::nullopt;
}

class KnownSums {
public:
    explicit KnownSums(Diagram& diagram) : d_(diagram) {}

    void run(std::size_t first) {
        std::vector<Equation> equations = std::exchange(d_.equations, {});
        for (std::size_t i = 0; i < equations.size(); ++i) {
            Equation& e = equations[i];
            if (i >= first) e.body = without_zeros(e.body);
            if (i >= first && e.reduce == ReduceOp::sum) rewrite(e);
            if (i >= first && !e.reduce) share_factors(e);
            note(e);
            d_.equations.push_back(std::move(e));
        }
    }

private:
    static bool is_zero(const Expr& e) {
        const auto* c = as<Constant>(e);
        return c && c->value == 0;
    }

    Expr without_zeros(const Expr& e) const {
        if (!any_of(read_arrays(e), [&](ArrayId id) { return zeros_.contains(id); })) return e;
        return simplify(transform(e, [&](const Expr& node) {
            const auto* r = as<Read>(node);
            return r && zeros_.contains(r->array) ? constant(0) : node;
        }));
    }

    void note(const Equation& e) {
        if (!e.reduce && d_.array(e.target).role == ArrayRole::temporary) {
            if (is_zero(e.body)) zeros_.insert(e.target);
            maps_[e.target] = expanded(e.body);
        }
        if (e.reduce != ReduceOp::sum) return;
        const Polynomial body = expanded(e.body);
        if (body.size() != 1) return;
        Split parts = split(body[0], e.reduce_axes);
        sums_.push_back({e.target, e.reduce_axes, std::move(parts.outside), std::move(parts.inside)});
    }

    /// Multiplied out, with the terms of maps in place of what reads them.
    Polynomial expanded(const Expr& e) const {
        const auto short_enough = [&](const Polynomial& p) { return p.size() <= most_terms ? p : polynomial(e); };
        if (const auto* u = as<Unary>(e); u && u->op == UnaryOp::neg) return -expanded(u->a);
        if (const auto* b = as<Binary>(e)) {
            if (b->op == BinaryOp::add) return short_enough(expanded(b->a) + expanded(b->b));
            if (b->op == BinaryOp::sub) return short_enough(expanded(b->a) + -expanded(b->b));
            if (b->op == BinaryOp::mul) return short_enough(expanded(b->a) * expanded(b->b));
            if (b->op == BinaryOp::div)
                if (const auto q = quotient(expanded(b->a), expanded(b->b))) return *q;
            const auto* power = b->op == BinaryOp::pow ? as<Constant>(b->b) : nullptr;
            if (power && power->value == 2) return short_enough(expanded(b->a) * expanded(b->a));
        }
        const auto* r = as<Read>(e);
        const auto map = r ? maps_.find(r->array) : maps_.end();
        if (map == maps_.end()) return polynomial(e);
        return short_enough(at_indices(map->second, d_.array(r->array).axes, r->indices));
    }

    static Polynomial at_indices(const Polynomial& p, const std::vector<AxisId>& axes, const std::vector<Index>& indices) {
        Polynomial out;
        for (const AtomProduct& term : p) {
            Polynomial product = of_powers({}, term.coefficient);
            for (const auto& [atom, power] : term.powers)
                product = product * of_powers({{at_indices(atom, axes, indices), power}});
            out = out + product;
        }
        return out;
    }
    static Expr at_indices(const Expr& e, const std::vector<AxisId>& axes, const std::vector<Index>& indices) {
        return substitute_axes(e, [&](AxisId axis) -> std::optional<Index> {
            const auto place = find(axes, axis);
            return place == axes.end() ? std::nullopt : std::optional(indices[at(place - axes.begin())]);
        });
    }

    void rewrite(Equation& e) {
        const Polynomial body = expanded(e.body);
        if (body.size() > most_terms) return;
        Polynomial total;
        std::vector<Equation> made;
        for (const AtomProduct& term : body) {
            const auto sum = sum_of(term, e, made);
            if (!sum) return;
            total = total + *sum;
        }
        // A sum that the equation would only read stands in its place.
        Expr value = to_expr(total);
        if (made.size() == 1 && equal(value, read_self(d_, made[0].target)) &&
            d_.array(made[0].target).axes == d_.array(e.target).axes) {
            e.reduce_axes = made[0].reduce_axes, e.body = made[0].body;
            return;
        }
        for (Equation& sum : made) {
            note(sum);
            d_.equations.push_back(std::move(sum));
        }
        e.reduce.reset(), e.reduce_axes.clear(), e.body = std::move(value);
    }

    /// a·p + b·p = p·(a + b), where p is what a map computes: the map's value is read.
    void share_factors(Equation& e) const {
        const Polynomial body = expanded(e.body);
        if (body.size() < 2 || body.size() > most_terms) return;
        Powers common = body[0].powers;
        for (const AtomProduct& term : body)
            std::erase_if(common, [&](const auto& power) { return !contains(term.powers, power); });
        for (const auto& [target, value] : maps_) {
            if (value.size() != 1 || value[0].powers.size() < 2) continue;
            AxisMap bound;
            const auto others = without(d_, common, value[0].powers, bound);
            if (!others) continue;
            std::vector<Index> indices;
            for (const AxisId axis : d_.array(target).axes)
                if (bound.contains(axis)) indices.emplace_back(Affine::axis(bound.at(axis)));
            if (indices.size() != d_.array(target).axes.size()) continue;
            const Polynomial rest = body * *quotient(of_powers({}), of_powers(common, value[0].coefficient));
            const Expr shared = to_expr(of_powers(*others) * polynomial(read(target, indices)));
            e.body = binary(BinaryOp::mul, shared, to_expr(rest));
            return;
        }
    }

    /// Σ of the term over the equation's axes, from sums that are known.
    std::optional<Polynomial> sum_of(const AtomProduct& term, const Equation& e, std::vector<Equation>& made) {
        const auto [inside, outside] = split(term, e.reduce_axes);
        if (inside.empty()) {
            Polynomial out = outside;
            for (const AxisId axis : e.reduce_axes) out = out * polynomial(axis_size(axis));
            return out;
        }
        for (const KnownSum& known : sums_)
            if (const auto found = found_in(inside, e.reduce_axes, known); found && found->first.empty())
                return outside * found->second;
        for (std::size_t i = 0; i < inside.size(); ++i)
            if (auto out = in_other_order(inside, i, e, made)) return outside * *out;
        return std::nullopt;
    }

    /// The factors beside the known sum over just these axes, and that sum. The factors do not depend on the axes.
    [[nodiscard]] std::optional<std::pair<Powers, Polynomial>> found_in(const Powers& product,
                                                                        const std::vector<AxisId>& axes,
                                                                        const KnownSum& known) const {
        if (known.axes.size() != axes.size() || known.inside.size() > product.size()) return std::nullopt;
        AxisMap bound;
        const auto rest = without(d_, product, known.inside, bound);
        if (!rest) return std::nullopt;
        for (const AxisId axis : known.axes)
            if (!bound.contains(axis) || !contains(axes, bound.at(axis))) return std::nullopt;
        if (any_of(*rest, [&](const auto& power) { return depends_on(power.first, axes); })) return std::nullopt;
        std::vector<Index> indices;
        for (const AxisId axis : d_.array(known.target).axes) {
            if (!bound.contains(axis)) return std::nullopt;
            indices.emplace_back(Affine::axis(bound.at(axis)));
        }
        const auto there = [&](AxisId axis) -> std::optional<Index> {
            const auto found = bound.find(axis);
            return found == bound.end() ? std::nullopt : std::optional<Index>(Affine::axis(found->second));
        };
        // The known target is a factor times the sum, which it gives unless the factor is 0.
        for (const AtomProduct& term : known.factor)
            for (const auto& [atom, power] : term.powers)
                if (power > 0 && !is_positive(atom)) return std::nullopt;
        const auto sum = quotient(polynomial(read(known.target, indices)),
                                  polynomial(substitute_axes(to_expr(known.factor), there)));
        return sum ? std::optional(std::pair(*rest, *sum)) : std::nullopt;
    }

    /// With the sum that a factor reads taken last. A new equation sums what is left over that sum's axes.
    std::optional<Polynomial> in_other_order(const Powers& product, std::size_t factor, const Equation& e,
                                             std::vector<Equation>& made) {
        const auto* r = as<Read>(product[factor].first);
        if (!r || product[factor].second != 1) return std::nullopt;
        const auto inner = find_if(sums_, [&](const KnownSum& known) { return known.target == r->array; });
        if (inner == sums_.end()) return std::nullopt;
        const std::vector<AxisId> inner_axes = inner->axes;
        const bool clashes = any_of(inner_axes, [&](AxisId axis) {
            return contains(e.reduce_axes, axis) || contains(d_.array(e.target).axes, axis);
        });
        if (clashes) return std::nullopt;
        const std::vector<AxisId>& own = d_.array(r->array).axes;
        Powers others = product;
        others.erase(others.begin() + static_cast<std::ptrdiff_t>(factor));
        const Polynomial scale = at_indices(inner->factor, own, r->indices);
        if (scale.size() != 1 || !split(scale[0], e.reduce_axes).inside.empty()) return std::nullopt;
        const Powers all = (of_powers(others) * at_indices(of_powers(inner->inside), own, r->indices))[0].powers;
        for (const KnownSum& known : sums_) {
            if (known.target == inner->target) continue;
            const auto found = found_in(all, e.reduce_axes, known);
            if (!found) continue;
            const Polynomial left = of_powers(found->first) * found->second;
            if (left.size() != 1) continue;
            const auto [summed, outside] = split(left[0], inner_axes);
            if (summed.empty()) continue;
            const Array& array = d_.array(e.target);
            const ArrayId sum = add_array(d_, array.name + "_sum", array.axes, array.type, ArrayRole::temporary);
            made.push_back({sum, ReduceOp::sum, inner_axes, to_expr(of_powers(summed)), e.range, {}});
            return scale * outside * polynomial(read_self(d_, sum));
        }
        return std::nullopt;
    }

    Diagram& d_;
    std::vector<KnownSum> sums_;
    std::map<ArrayId, Polynomial> maps_;  ///< of temporaries, over their own axes
    std::set<ArrayId> zeros_;
};

}  // namespace

void use_known_sums(Diagram& diagram, std::size_t first) { KnownSums(diagram).run(first); }

}  // namespace napkin
