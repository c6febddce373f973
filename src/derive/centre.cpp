#include "derive/centre.hpp"

#include "algebra/polynomial.hpp"
#include "support/ranges.hpp"

namespace napkin {
namespace {
/// where(masks, e, 0), taken apart.
struct Masked {
    Conditions masks;
    Expr e;
};
Masked taken_apart(const Expr& e) {
    const auto* s = as<Select>(e);
    if (!s || !is_zero(s->b)) return {{}, e};
    return {conjuncts(s->condition), s->a};
}

class Centring {
public:
    Centring(const Term& term, const Stream& stream, const FactorOptions& options)
        : term_(term), stream_(stream), options_(options) {}

    std::variant<std::vector<Group>, FactorFailure> run(Conditions& undefined) {
        if (const Expr part = imprecise())
            return FactorFailure{"a difference from an extremum of other values is not kept apart from it", part};
        for (const auto& [a, b] : term_.shifted) group_of(a).b.push_back(b);
        for (auto& g : groups_) place(g, undefined);
        if (const Expr part = unstable())
            return FactorFailure{
                "the distance to what is no mean of these values may be far less than that to their mean", part};
        return std::move(groups_);
    }

private:
    const Term& term_;
    const Stream& stream_;
    const FactorOptions& options_;
    std::vector<Group> groups_;

    Group& group_of(const Expr& a) {
        for (auto& g : groups_)
            if (equal_over_reals(g.a, a)) return g;
        groups_.push_back({a, {}, nullptr, std::nullopt, {}});
        return groups_.back();
    }

    /// The number of factors A + B.
    [[nodiscard]] std::size_t degree() const { return term_.shifted.size(); }

    /// The part of a B that is an extremum, and not of its A: the definition's difference may have digits that no
    /// moment keeps. Null: none.
    [[nodiscard]] Expr imprecise() const {
        for (const auto& [a, b] : term_.shifted)
            for (const auto& [sign, part] : addends(where_defined(b))) {
                // An extremum that is converted, or chosen in place of something else, is one.
                if ((as<Select>(part) || as<Cast>(part)) && stream_.runs(part) && !is_extremum(part, stream_) &&
                    follows_extremum(part, stream_))
                    return part;
                if (!is_extremum(part, stream_)) continue;
                const auto found = origin(part, sign, a);
                if (!found) return part;
                // Under a mask that lets nothing through, the sum is 0 wherever the extremum lies; at an infinity, or
                // at NaN, no moment is.
                const auto extreme = found->extremum.is_max ? ValueClass::infinite : ValueClass::minus_infinite;
                const ValueClass values = stream_.values(part);
                if (!term_.masks.empty() && (values.has(extreme) || values.has(ValueClass::undefined))) return part;
            }
        return nullptr;
    }

    /// The shift that the definition subtracts from A, if the expansion's parts may be far larger than the definition's
    /// own; else null. They are not larger where r becomes what is subtracted. Nor are they in an even power about the
    /// mean under |w|: Σ |w|·(A − ν)^p is at least a share of Σ |w|·(A − r)^p and of Σ |w|·(r − ν)^p.
    [[nodiscard]] Expr unstable() const {
        if (degree() == 1) return nullptr;
        for (const Group& g : groups_) {
            const auto differs = [&](const Expr& s) { return !s != !g.shifts[0] || (s && !equal(s, g.shifts[0])); };
            const bool power = groups_.size() == 1 && g.b.size() % 2 == 0 && none_of(g.shifts, differs) && g.mean &&
                               !g.mean->exact;
            if (power) continue;
            for (std::size_t i = 0; i < g.shifts.size(); ++i)
                if (g.shifts[i]) return g.b[i];
        }
        return nullptr;
    }

    /// The addend as an extremum of A.
    [[nodiscard]] std::optional<Dominance> origin(const Expr& addend, int sign, const Expr& a) const {
        return extremum_of(addend, sign, a, term_.masks, stream_);
    }
    /// R as A lies: s·R, or −s·R beside −s·A.
    [[nodiscard]] static Expr placed(const Expr& r, const Dominance& beside) {
        const Expr scaled = times(r, beside.scale);
        return beside.sign < 0 ? scaled : negated(scaled);
    }

    /// r + B, in the order in which the definition adds the parts of B to A: what cancels there cancels here.
    [[nodiscard]] static Expr added(Expr r, const Expr& b) {
        for (const auto& [sign, part] : addends(b)) r = sign > 0 ? plus(r, part) : minus(r, part);
        return r;
    }

    void place(Group& g, Conditions& undefined) {
        std::vector<Expr> rest = g.b;  // r + B without the mean
        for (std::size_t i = 0; i < g.b.size() && !g.origin; ++i) {
            for (const auto& [sign, part] : addends(where_defined(g.b[i]))) {
                const auto found = origin(part, sign, g.a);
                if (!found) continue;
                const Expr value = placed(found->extremum.value, *found);
                g.origin = placed(found->extremum.guarded, *found);
                if (term_.masks.empty() && found->extremum.empty) undefined.push_back(found->extremum.empty);
                for (auto& b : rest) {
                    const Expr together = plus(b, value);
                    b = to_expr(polynomial(where_defined(b)) + polynomial(value));
                    if (!term_.masks.empty()) continue;
                    for (const Expr& c : lost(together, plus(b, value), stream_)) undefined.push_back(c);
                }
                break;
            }
        }
        // A sum of differences is multiplied out about 0, which rounds a part of A and B. This is no loss, as B is a
        // result of rounded sums and no better known in the definition. A part of B that does not run is not a rounded
        // sum. It is added to A first where A has its axes, or where it is an extremum and so may be as large as A.
        if (!g.origin && degree() == 1) {
            const auto axes = free_axes(g.a);
            Expr shift;
            for (const auto& [sign, part] : addends(g.b[0])) {
                const auto own = free_axes(part);
                const bool beside = !stream_.runs(part) && (all_of(own, [&](AxisId x) { return contains(axes, x); }) ||
                                                            follows_extremum(part, stream_));
                Expr& to = beside ? g.a : shift;
                to = sign > 0 ? plus(to, part) : minus(to, part);
            }
            g.shifts = {shift};
            return;
        }
        std::size_t exact = rest.size();  // the factor in which the definition subtracts this very mean
        for (std::size_t i = 0; i < rest.size() && !g.mean; ++i) {
            g.mean = subtracted_mean(rest[i], minus(g.a, g.origin));
            if (!g.mean) continue;
            exact = i;
            if (!term_.masks.empty()) continue;
            for (const Expr& c : lost(rest[i], to_expr(polynomial(where_defined(rest[i]))), stream_))
                undefined.push_back(c);
        }
        if (!g.mean && (!g.origin || rest.size() > 1)) g.mean = weighted_mean(g);
        for (const auto& b : rest) {
            const bool cancels = exact < rest.size() && equal_over_reals(where_defined(b), where_defined(rest[exact]));
            const Expr shift = cancels ? nullptr : g.mean ? added(g.mean->value, b) : b;
            g.shifts.push_back(shift && !is_zero(shift) ? shift : nullptr);
        }
    }

    [[nodiscard]] const Equation* running_sum(const Expr& e) const {
        const auto* r = as<Read>(e);
        const Equation* state = r && stream_.running(r->array) ? stream_.definition(r->array) : nullptr;
        return state && state->reduce == ReduceOp::sum && state->reduce_axes == stream_.axes ? state : nullptr;
    }

    /// −b as the very mean of `of`: N/D with N = Σ w·of and D = Σ w, or N = Σ κ·of times 1/(κ·n), κ being fixed.
    std::optional<Mean> subtracted_mean(const Expr& b, const Expr& of) {
        const Polynomial p = -polynomial(where_defined(b));
        if (p.size() != 1 || p[0].coefficient <= 0) return std::nullopt;
        Expr numerator, denominator;
        Polynomial other{{p[0].coefficient, {}}};
        for (const auto& [e, power] : p[0].powers) {
            if (power == 1 && !numerator && running_sum(e)) {
                numerator = e;
            } else if (power == -1 && !denominator && running_sum(e)) {
                denominator = e;
            } else if (stream_.fixed(e)) {
                other[0].powers.emplace_back(e, power);
            } else {
                return std::nullopt;
            }
        }
        if (!numerator) return std::nullopt;
        const Masked n = taken_apart(stream_.written_out(running_sum(numerator)->body));
        const Expr a = stream_.written_out(of);
        Mean mean{.masks = n.masks, .exact = true};
        if (denominator) {
            const Masked d = taken_apart(stream_.written_out(running_sum(denominator)->body));
            if (!(other == Polynomial{{1, {}}}) || !same_conditions(n.masks, d.masks) || !stream_.not_negative(d.e) ||
                !(polynomial(n.e) == polynomial(simplify(binary(BinaryOp::mul, d.e, a)))))
                return std::nullopt;
            mean.weight = is_one(d.e) ? nullptr : d.e;
            mean.value = ratio(numerator, denominator);
            return mean;
        }
        const auto scale = quotient(polynomial(n.e), polynomial(a));
        if (!n.masks.empty() || !scale || !stream_.fixed(to_expr(*scale)) ||
            !(other * *scale * polynomial(number_of_points(stream_)) == Polynomial{{1, {}}}))
            return std::nullopt;
        const Expr count = options_.make_state({"_count", ReduceOp::sum, constant(1), {}});
        mean.value = mean_of_points(numerator, count, *scale == Polynomial{{1, {}}} ? nullptr : to_expr(*scale));
        return mean;
    }

    /// The mean of a − origin under the part of the weights that says how much a point counts: their absolute values.
    Mean weighted_mean(const Group& g) {
        Mean mean;
        mean.masks = term_.masks;
        for (const auto& [sign, f] : term_.body ? factors(term_.body) : std::vector<Part>{}) {
            const Expr size = stream_.not_negative(f) ? f : simplify(unary(UnaryOp::abs, f));
            mean.weight = sign > 0 ? times(mean.weight, size) : over(mean.weight, size);
        }
        if (is_one(mean.weight)) mean.weight = nullptr;
        Correction correction;
        if (stream_.runs(or_one(mean.weight))) correction.references = term_.references;
        correction.selections = term_.selections;
        const Expr weight = options_.make_state(
            {mean.weight ? "_weight" : "_count", ReduceOp::sum, masked(mean.masks, or_one(mean.weight)), correction});
        if (g.origin) correction.moment = CentredMoment{{1}, {g.origin}, {{{0}, as<Read>(weight)->array}}};
        const Expr total = options_.make_state(
            {"_total", ReduceOp::sum, masked(mean.masks, times(mean.weight, minus(g.a, g.origin))), correction});
        mean.value = mean.weight ? ratio(total, weight) : mean_of_points(total, weight);
        return mean;
    }

    // Before anything counts, the weight is 0 and so is every moment: any centre will do, 0 does.
    static Expr ratio(const Expr& total, const Expr& weight) {
        return select(binary(BinaryOp::eq, weight, constant(0)), constant(0), binary(BinaryOp::div, total, weight));
    }
    static Expr mean_of_points(const Expr& total, const Expr& count, const Expr& scale = nullptr) {
        return binary(BinaryOp::div, total, times(binary(BinaryOp::max, count, constant(1)), scale));
    }
};

}  // namespace

bool is_zero(const Expr& e) {
    const auto* c = as<Constant>(e);
    return c && c->value == 0;
}

bool is_one(const Expr& e) {
    const auto* c = e ? as<Constant>(e) : nullptr;
    return !e || (c && c->value == 1);
}

bool same_conditions(const Conditions& a, const Conditions& b) {
    const auto within = [](const Conditions& inner, const Conditions& outer) {
        return all_of(inner, [&](const Expr& x) { return any_of(outer, [&](const Expr& y) { return equal(x, y); }); });
    };
    return within(a, b) && within(b, a);
}

Expr number_of_points(const Stream& stream) {
    Expr points;
    for (const AxisId a : stream.axes) points = points ? binary(BinaryOp::mul, points, axis_size(a)) : axis_size(a);
    return points;
}

std::variant<std::vector<Group>, FactorFailure> centred_groups(const Term& term, const Stream& stream,
                                                               const FactorOptions& options, Conditions& undefined) {
    return Centring(term, stream, options).run(undefined);
}

}  // namespace napkin
