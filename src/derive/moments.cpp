#include "derive/moments.hpp"

#include "derive/carry.hpp"
#include "derive/centre.hpp"
#include "support/ranges.hpp"

namespace napkin {
namespace {

using Powers = std::vector<int>;

class Expansion {
public:
    Expansion(const Term& term, const Stream& stream, const FactorOptions& options)
        : term_(term), stream_(stream), options_(options) {}

    std::variant<Expr, FactorFailure> run(Conditions& undefined) {
        auto centred = centred_groups(term_, stream_, options_, undefined);
        if (auto* failure = std::get_if<FactorFailure>(&centred)) return *failure;
        groups_ = std::get<std::vector<Group>>(std::move(centred));
        Expr total;
        Powers powers(groups_.size(), 0);
        do {
            const Expr c = coefficient(powers);
            if (is_zero(c)) continue;
            const Expr value = value_of(powers);
            if (!value) continue;
            Expr part = is_one(c) ? value : times(value, c);
            // What a mask lets nothing of through is 0, whatever the running results are.
            if (!term_.masks.empty() && !is_one(c))
                part = select(binary(BinaryOp::eq, value, constant(0)), constant(0), part);
            total = plus(part, total);  // the highest power first
        } while (next(powers));
        return or_zero(total);
    }

private:
    const Term& term_;
    const Stream& stream_;
    const FactorOptions& options_;
    std::vector<Group> groups_;

    /// The powers after these, up to each group's number of factors; false after the last.
    bool next(Powers& powers) const {
        for (std::size_t i = 0; i < powers.size(); ++i) {
            if (powers[i] < static_cast<int>(groups_[i].b.size())) {
                ++powers[i];
                return true;
            }
            powers[i] = 0;
        }
        return false;
    }

    /// The coefficient of Π_g (A_g − r_g)^p_g in the expansion of Π_g Π_i ((A_g − r_g) + s_gi).
    [[nodiscard]] Expr coefficient(const Powers& powers) const {
        Expr out = constant(1);
        for (std::size_t i = 0; i < groups_.size(); ++i) {
            const auto& shifts = groups_[i].shifts;
            const int n = static_cast<int>(shifts.size()), p = powers[i];
            const auto differs = [&](const Expr& s) { return !s != !shifts[0] || (s && !equal(s, shifts[0])); };
            if (none_of(shifts, differs)) {
                if (p < n && !shifts[0]) return constant(0);
                Expr power;
                for (int k = p; k < n; ++k) power = times(power, shifts[0]);
                if (const double ways = binomial(n, p); ways != 1) power = times(constant(ways), power);
                if (power) out = simplify(binary(BinaryOp::mul, out, power));
                continue;
            }
            std::vector<Expr> symmetric(static_cast<std::size_t>(n) + 1, constant(0));  // by the power of A − r
            symmetric[0] = constant(1);
            for (int k = 0; k < n; ++k) {
                const Expr& s = shifts[at(k)];
                for (int power = k + 1; power >= 0; --power) {
                    auto& c = symmetric[at(power)];
                    const Expr by_shift = s && !is_zero(c) ? simplify(binary(BinaryOp::mul, c, s)) : constant(0);
                    const Expr lower = power > 0 ? symmetric[static_cast<std::size_t>(power) - 1] : constant(0);
                    c = simplify(binary(BinaryOp::add, lower, by_shift));
                }
            }
            if (is_zero(symmetric[at(p)])) return constant(0);
            out = simplify(binary(BinaryOp::mul, out, symmetric[at(p)]));
        }
        return out;
    }

    /// Σ w·(A − r) of one group is 0 where r is the mean under w itself.
    [[nodiscard]] bool vanishes(const Powers& powers) const {
        const Group* only = nullptr;
        for (std::size_t i = 0; i < powers.size(); ++i) {
            if (powers[i] == 0) continue;
            if (powers[i] > 1 || only) return false;
            only = &groups_[i];
        }
        if (!only || !only->mean || !term_.selections.empty()) return false;
        const Mean& m = *only->mean;
        return same_conditions(m.masks, term_.masks) && equal(or_one(m.weight), or_one(term_.body));
    }

    /// The moment at the end of the stream; null where it is 0.
    Expr value_of(const Powers& powers) {
        const bool counts = all_of(powers, [](int p) { return p == 0; });
        if (counts && !term_.body && term_.masks.empty()) return number_of_points(stream_);
        return moment(powers);
    }

    Expr moment(const Powers& powers) {
        if (vanishes(powers)) return nullptr;
        Expr body = term_.body;
        int degree = 0;
        for (std::size_t i = 0; i < powers.size(); ++i)
            for (int k = 0; k < powers[i]; ++k, ++degree) body = times(body, groups_[i].centred());
        Correction correction{.references = term_.references, .selections = term_.selections};
        const auto moves = [](const Group& g) { return g.origin || g.mean; };
        if (degree > 0 && any_of(groups_, moves)) {
            CentredMoment follows{.powers = powers, .is_masked = !term_.masks.empty()};
            for (const auto& g : groups_) follows.origins.push_back(g.reference());
            Powers lower(powers.size(), 0);
            do {
                bool below = lower != powers;
                for (std::size_t i = 0; i < powers.size(); ++i) below = below && lower[i] <= powers[i];
                if (!below) continue;
                if (const Expr state = moment(lower)) follows.lower.emplace_back(lower, as<Read>(state)->array);
            } while (next(lower));
            correction.moment = std::move(follows);
        }
        const std::string name = degree > 0 ? "_moment" + std::to_string(degree) : term_.body ? "_weight" : "_count";
        return options_.make_state({name, ReduceOp::sum, masked(term_.masks, or_one(body)), correction});
    }
};

}  // namespace

std::variant<Expr, FactorFailure> moments(const Term& term, const Stream& stream, const FactorOptions& options,
                                          Conditions& undefined) {
    return Expansion(term, stream, options).run(undefined);
}

}  // namespace napkin
