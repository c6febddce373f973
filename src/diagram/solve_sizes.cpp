#include "diagram/solve_sizes.hpp"

#include <fmt/format.h>

#include <cmath>
#include <optional>
#include <set>

#include "diagram/symbol_names.hpp"
#include "support/limits.hpp"
#include "support/ranges.hpp"
#include "support/text.hpp"

namespace napkin {
namespace {

/// slope · unknown + rest. Without an unknown it is a number. 64 bits of mantissa: whole numbers up to the limit are
/// exact.
struct InOneSize {
    long double slope = 0, rest = 0;
    AxisId unknown = -1;
};

bool is_whole_size(long double value) {
    return std::fabs(value - std::round(value)) < 1e-6L && std::round(value) >= 0 &&
           value <= static_cast<long double>(limits::max_size_product);
}

class SizeSolver {
public:
    SizeSolver(const Diagram& diagram, const std::map<std::string, std::int64_t>& given) : d_(diagram), sizes_(given) {
        for (const AxisId a : d_.axes.ids())
            if (const auto size = given.find(d_.axis(a).name); size != given.end() && size->second >= 0) {
                known_[a] = static_cast<long double>(size->second);
                if (d_.axis(a).size && !d_.axis(a).size->as_constant()) equations_.push_back(a);
            }
    }

    Result<std::map<std::string, std::int64_t>> run() {
        for (bool found = true; found;) {
            found = false;
            for (const AxisId a : equations_) {
                const auto side = in_one_size(*d_.axis(a).size);
                if (!side || side->unknown < 0 || side->slope == 0) continue;
                if (auto wrong = solve(a, *side)) return *wrong;
                found = true;
            }
        }
        for (const AxisId a : equations_) {
            free_default(a);
            const auto side = in_one_size(*d_.axis(a).size);
            freed_ = AxisId(-1);
            if (!side || side->unknown < 0 || side->slope == 0) continue;
            if (auto wrong = solve(a, *side)) return *wrong;
        }
        for (const AxisId a : equations_) {
            used_.clear();
            const auto side = in_one_size(*d_.axis(a).size);
            const auto solved = std::find_if(used_.begin(), used_.end(), [&](AxisId u) { return solved_by_.contains(u); });
            if (side && side->unknown < 0 && solved != used_.end() && std::fabs(side->rest - known_[a]) >= 1e-6L)
                return contradiction(a, *solved, side->rest);
        }
        return std::move(sizes_);
    }

private:
    /// Takes the equation's unknown from it, or says why that cannot be.
    std::optional<Diagnostic> solve(AxisId a, const InOneSize& side) {
        const long double value = (known_[a] - side.rest) / side.slope;
        if (!is_whole_size(value)) return no_solution(a, side, value);
        known_[side.unknown] = std::round(value);
        sizes_[d_.axis(side.unknown).name] = static_cast<std::int64_t>(std::round(value));
        solved_by_[side.unknown] = a;
        return std::nullopt;
    }

    [[nodiscard]] bool is_of_input(AxisId a) const {
        return any_of(d_.inputs, [&](ArrayId id) { return contains(d_.array(id).axes, a); });
    }

    /// Where the one default in an input's size does not agree with what is given, it counts as unknown. One that is
    /// an input's own size stays: the input may be longer than what is read of it.
    void free_default(AxisId a) {
        used_.clear();
        const auto side = in_one_size(*d_.axis(a).size);
        if (!side || side->unknown >= 0 || !is_of_input(a) || std::fabs(side->rest - known_[a]) < 1e-6L) return;
        const auto is_default = [&](AxisId u) {
            return !known_.contains(u) && d_.axis(u).size && d_.axis(u).size->as_constant();
        };
        if (std::count_if(used_.begin(), used_.end(), is_default) != 1) return;
        const AxisId only = *std::find_if(used_.begin(), used_.end(), is_default);
        if (!is_of_input(only)) freed_ = only;
    }

    std::optional<InOneSize> of_axis(AxisId a) {
        used_.insert(a);
        if (a == freed_) return InOneSize{1, 0, a};
        if (const auto value = known_.find(a); value != known_.end()) return InOneSize{0, value->second, -1};
        if (!d_.axis(a).size) return InOneSize{1, 0, a};
        if (!path_.insert(a).second) return std::nullopt;  // a size that depends on itself is reported elsewhere
        const auto out = in_one_size(*d_.axis(a).size);
        path_.erase(a);
        return out;
    }

    /// Nothing where the size has more than one unknown or is not affine in it.
    std::optional<InOneSize> in_one_size(const Size& size) {
        InOneSize sum;
        for (const auto& [monomial, coefficient] : size.terms()) {
            InOneSize term{0, static_cast<long double>(coefficient.numerator()) / coefficient.denominator(), -1};
            for (const auto& [symbol, exponent] : monomial) {
                const auto base = of_axis(symbol.axis());
                if (!base) return std::nullopt;
                if (base->unknown < 0) {
                    const long double factor = std::pow(
                        base->rest, static_cast<long double>(exponent.numerator()) / exponent.denominator());
                    term.slope *= factor, term.rest *= factor;
                } else if (term.unknown < 0 && exponent == Rational(1)) {
                    term = {term.rest * base->slope, term.rest * base->rest, base->unknown};
                } else {
                    return std::nullopt;
                }
            }
            if (sum.unknown >= 0 && term.unknown >= 0 && sum.unknown != term.unknown) return std::nullopt;
            sum = {sum.slope + term.slope, sum.rest + term.rest, std::max(sum.unknown, term.unknown)};
        }
        return sum;
    }

    [[nodiscard]] std::string equation_text(AxisId a) const {
        return fmt::format("{} = {}", d_.axis(a).name, to_string(*d_.axis(a).size, symbol_names(d_), true));
    }
    /// " with w = 4": what the equation takes from elsewhere.
    [[nodiscard]] std::string known_in(AxisId a) const {
        std::vector<std::string> out;
        for (const Symbol symbol : d_.axis(a).size->symbols())
            if (const auto value = known_.find(symbol.axis()); value != known_.end())
                out.push_back(fmt::format("{} = {:.0f}", d_.axis(symbol.axis()).name, static_cast<double>(value->second)));
        return out.empty() ? "" : " with " + join(out, ", ");
    }
    [[nodiscard]] Diagnostic wrong(AxisId a, std::string message, std::string expected) const {
        return {
            .code = "bad-size", .range = d_.axis(a).range, .message = std::move(message), .expected = std::move(expected)};
    }

    [[nodiscard]] Diagnostic no_solution(AxisId a, const InOneSize& side, long double value) const {
        const std::string& unknown = d_.axis(side.unknown).name;
        std::vector<std::string> near;
        for (const long double whole : {std::floor(value), std::ceil(value)}) {
            const long double given = side.slope * std::max(0.0L, whole) + side.rest;
            const std::string text = fmt::format("{:.0f}", static_cast<double>(given));
            if (is_whole_size(given) && !contains(near, text)) near.push_back(text);
        }
        return wrong(a,
                     fmt::format("the size {} is given as {:.0f}, and no whole number for {} gives that{}",
                                 equation_text(a), static_cast<double>(known_.at(a)), unknown, known_in(a)),
                     near.empty() ? fmt::format("a size for {}", unknown)
                                  : fmt::format("{} = {}, say", d_.axis(a).name, join(near, " or ")));
    }

    [[nodiscard]] Diagnostic contradiction(AxisId a, AxisId solved, long double wanted) const {
        return wrong(a,
                     fmt::format("the size {} is given as {:.0f}, but {} = {:.0f} follows from {}", equation_text(a),
                                 static_cast<double>(known_.at(a)), d_.axis(solved).name,
                                 static_cast<double>(known_.at(solved)), equation_text(solved_by_.at(solved))),
                     fmt::format("{} = {:.6g}", d_.axis(a).name, static_cast<double>(wanted)));
    }

    const Diagram& d_;
    std::map<std::string, std::int64_t> sizes_;
    std::map<AxisId, long double> known_;
    AxisId freed_ = -1;                   ///< a default that is to be solved for
    std::map<AxisId, AxisId> solved_by_;  ///< an axis that was solved for, and whose equation it was
    std::vector<AxisId> equations_;       ///< given axes with a size expression
    std::set<AxisId> path_, used_;        ///< axes whose size is being looked at; those that were
};

}  // namespace

Result<std::map<std::string, std::int64_t>> with_solved_sizes(const Diagram& diagram,
                                                              const std::map<std::string, std::int64_t>& given) {
    return SizeSolver(diagram, given).run();
}

}  // namespace napkin
