#include "diagram/phases.hpp"

#include <numeric>
#include <optional>
#include <utility>

#include "diagram/guards.hpp"
#include "diagram/hidden_axes.hpp"
#include "diagram/product.hpp"
#include "diagram/rewrite_equations.hpp"
#include "support/ids.hpp"
#include "support/ranges.hpp"

namespace napkin {
namespace {

/// A condition that place and tap have one distance, up to a multiple of a number: (u - i) % 2 == 0.
struct Phase {
    AxisId place, tap;    ///< of the result, and summed
    std::int64_t number;  ///< of phases
    std::int64_t sign;    ///< of the tap: tap ≡ sign * (place + shift) modulo the number
    std::int64_t shift;
    Expr condition;

    [[nodiscard]] std::int64_t first_tap(std::int64_t phase) const { return floor_mod(sign * (phase + shift), number); }
    [[nodiscard]] Size size(AxisId axis) const { return (Size(axis_symbol(axis)) + Size(number - 1)) / Size(number); }
};

/// A sum of products with such conditions, taken apart.
struct PhasedSum {
    std::vector<Phase> phases;
    std::vector<Expr> conditions;  ///< all others that stand around the product, the outermost first
    std::vector<Expr> factors;     ///< without the conditions of phases
    /// The factor that reads at the tap and not at its place, as weights do; -1: there is none.
    [[nodiscard]] int factor_of_tap(const Phase& p) const {
        const auto found = find_if(
            factors, [&](const Expr& f) { return depends_on_axis(f, p.tap) && !depends_on_axis(f, p.place); });
        return found == factors.end() ? -1 : static_cast<int>(found - factors.begin());
    }
};

std::optional<std::int64_t> number_in(const Expr& e) {
    const auto* c = as<Constant>(e);
    return c && c->value == static_cast<double>(static_cast<std::int64_t>(c->value))
               ? std::optional(static_cast<std::int64_t>(c->value))
               : std::nullopt;
}

std::optional<Phase> phase_in(const Diagram& d, const Equation& e, const Expr& condition) {
    const auto* equal = as<Binary>(condition);
    const auto* rest = equal && equal->op == BinaryOp::eq ? as<Binary>(equal->a) : nullptr;
    const auto wanted = rest && rest->op == BinaryOp::mod ? number_in(equal->b) : std::nullopt;
    const auto number = wanted ? number_in(rest->b) : std::nullopt;
    const auto form = number && *number > 1 ? affine_form(rest->a) : std::nullopt;
    if (!form || form->terms.size() != 2) return std::nullopt;
    const bool tap_first = contains(e.reduce_axes, form->terms.front().first);
    const auto [place, of_place] = form->terms[tap_first ? 1 : 0];
    const auto [tap, of_tap] = form->terms[tap_first ? 0 : 1];
    if (!contains(e.reduce_axes, tap) || !contains(d.array(e.target).axes, place) || std::abs(of_place) != 1 ||
        std::abs(of_tap) != 1)
        return std::nullopt;
    return Phase{place, tap, *number, -of_place * of_tap, of_place * (form->constant - *wanted), condition};
}

/// The expression without the selects around it that give 0 elsewhere, whose conditions are added to the list.
Expr without_conditions(Expr e, std::vector<Expr>& conditions) {
    while (const Select* outside = zero_elsewhere(e))
        append(conditions, conditions_in(outside->condition)), e = outside->a;
    return e;
}

Expr with_conditions(Expr value, const std::vector<Expr>& conditions) {
    for (auto c = conditions.rbegin(); c != conditions.rend(); ++c) value = select(*c, value, constant(0));
    return value;
}

std::optional<PhasedSum> phased_sum(const Diagram& d, const Equation& e) {
    if (e.reduce != ReduceOp::sum) return std::nullopt;
    PhasedSum out;
    const auto taken = [&](const std::vector<Expr>& conditions) {
        std::vector<Expr> others;
        for (const Expr& condition : conditions) {
            const auto phase = phase_in(d, e, condition);
            const auto is_known = [&](const Phase& p) { return p.place == phase->place || p.tap == phase->tap; };
            if (phase && none_of(out.phases, is_known))
                out.phases.push_back(*phase);
            else
                others.push_back(condition);
        }
        return others;
    };
    std::vector<Expr> around;
    const Expr product = without_conditions(e.body, around);
    out.conditions = taken(around);
    for (const Expr& factor : factors_of(product)) {
        std::vector<Expr> own;
        const Expr inner = without_conditions(factor, own);
        out.factors.push_back(with_conditions(inner, taken(own)));
    }
    return out.phases.empty() || out.factors.size() < 2 ? std::nullopt : std::optional(std::move(out));
}

/// The axes in the place of a phase's two.
struct PhaseAxes {
    AxisId step, tap, phase;
};

/// Expressions of places and taps at their steps, taps and phases.
class AtPhases {
public:
    AtPhases(const std::vector<Phase>& phases, const std::vector<PhaseAxes>& axes) : phases_(phases), axes_(axes) {}

    [[nodiscard]] Expr of(const Expr& e) const {
        if (none_of(phases_, [&](const Phase& p) { return depends_on_axis(e, p.place) || depends_on_axis(e, p.tap); }))
            return e;
        if (const auto form = affine_form(e)) return plain(*form);
        if (const auto* quotient = as<Binary>(e); quotient && quotient->op == BinaryOp::floor_div)
            if (const Expr whole = divided(*quotient)) return whole;
        if (const auto* r = as<Read>(e))
            return read(r->array, mapped<Index>(r->indices, [&](const Index& i) { return Index::of(of(i.value())); }));
        return in_lowest_terms(with_children(e, mapped<Expr>(children(e), [&](const Expr& c) { return of(c); })));
    }

    /// The tap's place on its own axis.
    [[nodiscard]] Expr tap(std::size_t i) const { return of(axis_index(phases_[i].tap)); }

private:
    /// 2 * step - 2 * tap >= 0 is step - tap >= 0, which says that an index is inside of its array.
    static Expr in_lowest_terms(const Expr& e) {
        const auto* compared = as<Binary>(e);
        const auto a = compared && compared->op == BinaryOp::ge ? affine_form(compared->a) : std::nullopt;
        const auto b = a ? affine_form(compared->b) : std::nullopt;
        if (!b) return e;
        Affine form = *a - *b;
        std::int64_t all = 0;
        for (const auto& [axis, factor] : form.terms) all = std::gcd(all, factor);
        if (all < 2) return e;
        for (auto& [axis, factor] : form.terms) factor /= all;
        form.constant = floor_div(form.constant, all);
        return binary(BinaryOp::ge, Index(form).value(), integer_constant(0));
    }

    /// A number for each phase, as an affine expression of the phase; null where it is none.
    template <class F>
    [[nodiscard]] Expr along(std::size_t i, const F& value) const {
        const std::int64_t first = value(0), step = value(1) - first;
        for (std::int64_t p = 0; p < phases_[i].number; ++p)
            if (value(p) != first + p * step) return nullptr;
        Affine out = Affine::axis(axes_[i].phase) * step;
        out.constant = first;
        return Index(out).value();
    }

    [[nodiscard]] Expr plain(const Affine& form) const {
        Affine out = form;
        Expr rests;
        for (std::size_t i = 0; i < phases_.size(); ++i) {
            const Phase& p = phases_[i];
            const std::int64_t of_place = form.coefficient(p.place), of_tap = form.coefficient(p.tap);
            if (of_place == 0 && of_tap == 0) continue;
            out = out - Affine::axis(p.place) * of_place - Affine::axis(p.tap) * of_tap +
                  Affine::axis(axes_[i].step) * (of_place * p.number) + Affine::axis(axes_[i].tap) * (of_tap * p.number);
            Expr rest = along(i, [&](std::int64_t phase) { return of_place * phase + of_tap * p.first_tap(phase); });
            if (!rest) {
                const Expr phase = axis_index(axes_[i].phase),
                           shifted = binary(BinaryOp::add, phase, integer_constant(p.shift));
                const Expr first = binary(BinaryOp::mod,
                                          p.sign < 0 ? binary(BinaryOp::sub, integer_constant(0), shifted) : shifted,
                                          integer_constant(p.number));
                rest = binary(BinaryOp::add, binary(BinaryOp::mul, integer_constant(of_place), phase),
                              binary(BinaryOp::mul, integer_constant(of_tap), first));
            }
            rests = rests ? binary(BinaryOp::add, rests, rest) : rest;
        }
        const Expr affine = Index(out).value();
        return Index::of(rests ? binary(BinaryOp::add, affine, rests) : affine).value();
    }

    /// A quotient of one pair's axes by its number; null: it is another one.
    [[nodiscard]] Expr divided(const Binary& quotient) const {
        const auto by = number_in(quotient.b);
        const auto form = by ? affine_form(quotient.a) : std::nullopt;
        for (std::size_t i = 0; form && i < phases_.size(); ++i) {
            const Phase& p = phases_[i];
            const std::int64_t of_place = form->coefficient(p.place), of_tap = form->coefficient(p.tap);
            const Affine others = *form - Affine::axis(p.place) * of_place - Affine::axis(p.tap) * of_tap;
            if (p.number != *by || (of_place == 0 && of_tap == 0) || !others.terms.empty()) continue;
            const Expr rest = along(i, [&](std::int64_t phase) {
                return floor_div(of_place * phase + of_tap * p.first_tap(phase) + others.constant, *by);
            });
            if (!rest) continue;
            const Affine whole = Affine::axis(axes_[i].step) * of_place + Affine::axis(axes_[i].tap) * of_tap;
            return Index::of(binary(BinaryOp::add, Index(whole).value(), rest)).value();
        }
        return nullptr;
    }

    const std::vector<Phase>& phases_;
    const std::vector<PhaseAxes>& axes_;
};

class Splitting : EquationRewriter {
public:
    explicit Splitting(Diagram& diagram) : EquationRewriter(diagram) {}

    void run() {
        rewrite_each([&](const Equation& e) {
            const auto sum = phased_sum(source_, e);
            const auto axes = sum ? axes_of(*sum) : std::nullopt;
            if (axes) add(e, *sum, *axes);
            return axes.has_value();
        });
    }

private:
    /// None: the diagram lacks some.
    [[nodiscard]] std::optional<std::vector<PhaseAxes>> axes_of(const PhasedSum& sum) const {
        std::vector<AxisId> taken;
        const auto next = [&](const Size& size) {
            taken.push_back(free_axis(source_, size, taken));
            return taken.back();
        };
        std::vector<PhaseAxes> out;
        for (const Phase& p : sum.phases) {
            PhaseAxes axes;
            axes.step = next(p.size(p.place)), axes.tap = next(p.size(p.tap)), axes.phase = next(Size(p.number));
            out.push_back(axes);
        }
        return any_of(taken, [](AxisId axis) { return axis < 0; }) ? std::nullopt : std::optional(std::move(out));
    }

    void add(const Equation& e, const PhasedSum& sum, const std::vector<PhaseAxes>& axes) {
        const AtPhases at_phases(sum.phases, axes);
        const Array& target = source_.array(e.target);
        std::vector<Expr> conditions;
        std::vector<AxisId> order = target.axes, reduced = e.reduce_axes;
        std::vector<Index> places;
        for (const AxisId axis : target.axes) places.emplace_back(Affine::axis(axis));
        std::size_t last = 0;
        std::vector<std::vector<Expr>> of_factors(sum.factors.size());
        std::vector<Expr> factors = mapped<Expr>(sum.factors, [&](const Expr& f) { return at_phases.of(f); });
        // At a factor with all of its axes, a condition leaves a product of two arrays.
        for (const Expr& outside : sum.conditions) {
            const Expr condition = at_phases.of(outside);
            const auto has_all = [&](const Expr& factor) {
                return as<Read>(factor) && read_arrays(condition).empty() &&
                       all_of(free_axes(condition), [&](AxisId axis) { return depends_on_axis(factor, axis); });
            };
            const auto factor = find_if(sum.factors, [&](const Expr& f) { return has_all(at_phases.of(f)); });
            if (factor == sum.factors.end())
                conditions.push_back(condition);
            else
                of_factors[at(factor - sum.factors.begin())].push_back(condition);
        }
        for (std::size_t i = 0; i < sum.phases.size(); ++i) {
            const Phase& p = sum.phases[i];
            const auto d = static_cast<std::size_t>(find(order, p.place) - order.begin());
            const Expr place = axis_index(p.place), number = integer_constant(p.number);
            order[d] = axes[i].step, last = std::max(last, d);
            places[d] = Index::of(binary(BinaryOp::floor_div, place, number));
            *find(reduced, p.tap) = axes[i].tap;
            // Past the end of the taps there is no weight.
            const Expr is_tap = binary(BinaryOp::lt, at_phases.tap(i), axis_size(p.tap));
            const int f = sum.factor_of_tap(p);
            (f < 0 ? conditions : of_factors[at(f)]).push_back(is_tap);
        }
        // Phases stand before what lies contiguous, as channels do.
        for (std::size_t i = 0; i < sum.phases.size(); ++i) {
            const auto behind = static_cast<std::ptrdiff_t>(last + 1 + i);
            order.insert(order.begin() + behind, axes[i].phase);
            places.insert(places.begin() + behind, Index::of(binary(BinaryOp::mod, axis_index(sum.phases[i].place),
                                                                    integer_constant(sum.phases[i].number))));
        }
        Expr product;
        for (std::size_t f = 0; f < factors.size(); ++f) {
            const Expr factor = with_conditions(factors[f], of_factors[f]);
            product = product ? binary(BinaryOp::mul, product, factor) : factor;
        }
        Equation made = e, put = e;
        made.target = add_array(d_, target.name + "_phases", order, target.type, ArrayRole::temporary);
        made.reduce_axes = reduced, made.body = with_conditions(product, conditions);
        put.reduce = std::nullopt, put.reduce_axes.clear();
        put.body = read(made.target, std::move(places));
        out_.push_back(std::move(made));
        out_.push_back(std::move(put));
    }
};

}  // namespace

Diagram with_axes_of_phases(Diagram diagram) {
    const Diagram text = diagram;
    for (const Equation& e : text.equations) {
        const auto sum = phased_sum(text, e);
        std::vector<AxisId> taken;
        for (std::size_t i = 0; sum && i < sum->phases.size(); ++i) {
            const Phase& p = sum->phases[i];
            const auto add = [&](const Size& size, AxisId like, const std::string& suffix) {
                taken.push_back(free_axis_of(diagram, size, taken, like, suffix));
                diagram.axes[taken.back()].rounds_down = true;
                diagram.axes[taken.back()].is_any = false;
            };
            add(p.size(p.place), p.place, "_step"), add(p.size(p.tap), p.tap, "_tap"),
                add(Size(p.number), p.place, "_phase");
        }
    }
    return diagram;
}

Diagram with_phases(Diagram diagram) {
    Splitting(diagram).run();
    return diagram;
}

}  // namespace napkin
