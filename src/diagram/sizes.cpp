#include "diagram/sizes.hpp"

#include <fmt/format.h>

#include <cmath>
#include <functional>
#include <set>

#include "diagram/blocks.hpp"
#include "diagram/check_reads.hpp"
#include "diagram/hidden_axes.hpp"
#include "diagram/product.hpp"
#include "diagram/solve_sizes.hpp"
#include "diagram/symbol_names.hpp"
#include "support/ids.hpp"
#include "support/limits.hpp"
#include "support/ranges.hpp"
#include "support/text.hpp"

namespace napkin {
namespace {
class Binder {
public:
    Binder(const Diagram& diagram, const std::map<std::string, std::int64_t>& overrides)
        : d_(diagram), overrides_(overrides), extents_(diagram.axes.size(), 0), states_(diagram.axes.size(), State::open) {}

    Result<Extents> run() {
        check_overrides();
        for (std::size_t i = 0; i < d_.axes.size(); ++i) bind(AxisId::of(i));
        report_missing();
        if (errors_.empty()) check_blocks();
        if (errors_.empty()) check_products();
        if (errors_.empty()) errors_ = read_errors(d_, extents_);
        if (!errors_.empty()) return std::move(errors_);
        return std::move(extents_);
    }

private:
    enum class State : std::uint8_t { open, busy, bound, missing, failed };

    void error(Diagnostic diagnostic) {
        if (errors_.size() < limits::max_errors) errors_.push_back(std::move(diagnostic));
    }

    [[nodiscard]] Diagnostic unknown_axis(const std::string& name, SourceRange range, const std::string& message) const {
        const std::vector<std::string> names = names_of(d_.axes, axes_of_text(d_));
        return {"unknown-axis",
                std::move(range),
                message,
                fmt::format("one of {}", join(names, ", ")),
                did_you_mean(name, names),
                {}};
    }

    void check_overrides() {
        for (const auto& [name, value] : overrides_) {
            if (!d_.find_axis(name)) {
                error(unknown_axis(name, {}, fmt::format("a size is given for {}, but {} has no such axis", name, d_.name)));
            } else if (value < 0) {
                error({"bad-size", {}, fmt::format("the size of {} is given as {}", name, value), "at least 0", "", {}});
            }
        }
    }

    /// An axis that equations read by blocks has whole blocks, of as many values as they say.
    void check_blocks() {
        const std::vector<AxisId> fixed = fixed_axes(d_);
        for (const AxisId a : d_.axes.ids()) {
            if (fixed.empty()) break;
            const auto blocks = blocks_of(d_, a);
            if (!blocks || !contains(fixed, blocks->inside)) continue;
            const std::int64_t wanted = blocks->length * extents_[blocks->block];
            const auto refuse = [&](AxisId axis, std::int64_t expected) {
                error({"bad-size",
                       d_.axis(axis).range,
                       fmt::format("the size of {} is given as {}, but {} is read in {} blocks of {}", d_.axis(axis).name,
                                   extents_[axis], d_.axes[a].name, extents_[blocks->block], blocks->length),
                       std::to_string(expected),
                       fmt::format("set {}", d_.axis(blocks->block).name),
                       {}});
            };
            if (extents_[blocks->inside] != blocks->length) refuse(blocks->inside, blocks->length);
            if (extents_[a] != wanted) refuse(a, wanted);
        }
    }

    /// Binds the axis and first those that its size depends on.
    State bind(AxisId id) {
        State& state = states_[at(id)];
        if (state == State::busy) {
            report_cycle(id);
            return state = State::failed;
        }
        if (state != State::open) return state;
        const Axis& axis = d_.axis(id);
        if (const auto given = overrides_.find(axis.name); given != overrides_.end()) {
            extents_[id] = std::max<std::int64_t>(0, given->second);
            return state = State::bound;
        }
        if (!axis.size) return state = State::missing;
        state = State::busy;
        path_.push_back(id);
        State needed = State::bound;
        for (const Symbol symbol : axis.size->symbols()) {
            const State found = bind(symbol.axis());
            if (found == State::failed || needed == State::failed) {
                needed = State::failed;
            } else if (found == State::missing) {
                needed = State::missing;
                derived_from_missing_.insert(id);
            }
        }
        path_.pop_back();
        // A cycle through this axis has marked it.
        if (states_[at(id)] == State::failed) return State::failed;
        return states_[at(id)] = needed == State::bound ? compute(id) : needed;
    }

    void report_cycle(AxisId id) {
        const auto from = find(path_, id);
        std::vector<std::string> names;
        for (auto i = from; i != path_.end(); ++i) names.push_back(d_.axis(*i).name);
        names.push_back(d_.axis(id).name);
        error({"size-cycle",
               d_.axis(id).range,
               fmt::format("the size of {} depends on itself: {}", d_.axis(id).name, join(names, " → ")),
               "a number, or sizes that are known without it",
               fmt::format("--set {}=…", d_.axis(id).name),
               {}});
        for (auto i = from; i != path_.end(); ++i) states_[at(*i)] = State::failed;
    }

    State compute(AxisId id) {
        const Axis& axis = d_.axis(id);
        long double value = 0;  // 64 bits of mantissa: whole numbers up to the limit are exact
        for (const auto& [monomial, coefficient] : axis.size->terms()) {
            long double term = static_cast<long double>(coefficient.numerator());
            for (const auto& [symbol, exponent] : monomial) {
                const auto base = static_cast<long double>(extents_[symbol.axis()]);
                term *= std::pow(base, static_cast<long double>(exponent.numerator()) / exponent.denominator());
            }
            value += term / coefficient.denominator();
        }
        const auto shown = [&] {
            const SymbolNames names = symbol_names(d_);
            std::string formula = to_string(*axis.size, names, true);
            if (axis.size->as_constant()) return formula;
            const auto with = mapped<std::string>(
                axis.size->symbols(), [&](Symbol s) { return fmt::format("{} = {}", names(s), extents_[s.axis()]); });
            return fmt::format("{} = {:.6g} with {}", formula, static_cast<double>(value), join(with, ", "));
        };
        if (value > static_cast<long double>(limits::max_size_product)) {
            error({"size-overflow",
                   axis.range,
                   fmt::format("the size of {} is {}", axis.name, shown()),
                   "at most 2^62",
                   "",
                   {}});
            return State::failed;
        }
        if (axis.rounds_down) value = std::floor(value + 1e-6L);
        const auto of_multiple = static_cast<long double>(axis.multiple);
        if (axis.multiple > 1) value = std::ceil(value / of_multiple - 1e-6L) * of_multiple;
        const long double whole = std::round(value);
        if (!(std::fabs(value - whole) < 1e-6L) || whole < 0) {
            error({"bad-size",
                   axis.range,
                   fmt::format("the size of {} is {}", axis.name, shown()),
                   "a whole number, at least 0",
                   "",
                   {}});
            return State::failed;
        }
        extents_[id] = static_cast<std::int64_t>(whole);
        return State::bound;
    }

    /// Axes that something runs over or asks the size of. Inlining may leave others behind, which need no number.
    [[nodiscard]] std::set<AxisId> used_axes() const {
        std::set<AxisId> used;
        for (const Array& array : d_.arrays) used.insert(array.axes.begin(), array.axes.end());
        for (const Equation& equation : d_.equations) {
            used.insert(equation.reduce_axes.begin(), equation.reduce_axes.end());
            visit(equation.body, [&](const Expr& node) {
                if (const auto* size = as<AxisSize>(node)) used.insert(size->axis);
            });
        }
        for (const AxisId i : d_.axes.ids()) {
            if (!d_.axes[i].size || overrides_.contains(d_.axes[i].name)) continue;
            for (const Symbol symbol : d_.axes[i].size->symbols()) used.insert(symbol.axis());
        }
        return used;
    }

    void report_missing() {
        std::vector<AxisId> missing;
        const std::set<AxisId> used = used_axes();
        for (const AxisId i : d_.axes.ids()) {
            const auto id = i;
            if (states_[i] != State::missing || derived_from_missing_.contains(id)) continue;
            if (used.contains(id)) {
                missing.push_back(id);
            } else {
                extents_[i] = 1;
            }
        }
        if (missing.empty()) return;
        std::vector<std::string> names, settings;
        std::vector<Note> notes;
        for (AxisId id : missing) {
            const Axis& axis = d_.axis(id);
            names.push_back(axis.name);
            settings.push_back(fmt::format("--set {}=…", axis.name));
            if (notes.size() < 10 && id != missing.front())
                notes.push_back({axis.range, fmt::format("{} first stands here", axis.name)});
        }
        error({"missing-size", d_.axis(missing.front()).range,
               fmt::format("{} of {} {} not known: {}", missing.size() == 1 ? "one size" : "some sizes",
                           d_.name.empty() ? "the diagram" : d_.name, missing.size() == 1 ? "is" : "are",
                           join(names, ", ")),
               fmt::format("a number for {}", join(names, ", ")), join(settings, " "), std::move(notes)});
    }

    void check_product(const std::vector<AxisId>& axes, const SourceRange& range, const std::string& what) {
        std::int64_t product = 1;
        for (AxisId axis : axes) {
            const auto next = checked_product(product, extents_[axis]);
            if (!next) {
                std::vector<std::string> factors;
                for (AxisId a : axes) factors.push_back(fmt::format("{}={}", d_.axis(a).name, extents_[a]));
                error({"size-overflow",
                       range,
                       fmt::format("{} has more than 2^62 points: {}", what, join(factors, ", ")),
                       "a product of sizes of at most 2^62",
                       "",
                       {}});
                return;
            }
            product = *next;
        }
    }

    void check_products() {
        for (const Array& array : d_.arrays)
            check_product(array.axes, array.range, fmt::format("the array {}", array.name));
        for (const Equation& equation : d_.equations) {
            if (equation.reduce_axes.empty() || is_product_of_arrays(equation)) continue;
            std::vector<AxisId> axes = d_.array(equation.target).axes;
            append(axes, equation.reduce_axes);
            check_product(axes, equation.range, fmt::format("the equation of {}", d_.array(equation.target).name));
        }
    }

    const Diagram& d_;
    const std::map<std::string, std::int64_t>& overrides_;
    Extents extents_;
    std::vector<State> states_;
    std::vector<AxisId> path_;  ///< axes being bound, each because of the one before it
    std::set<AxisId> derived_from_missing_;
    std::vector<Diagnostic> errors_;
};

}  // namespace

Result<Extents> bind_sizes(const Diagram& diagram, const std::map<std::string, std::int64_t>& overrides) {
    const auto all = with_solved_sizes(diagram, overrides);
    if (!all) return all.errors();
    return Binder(diagram, *all).run();
}

std::int64_t count_values(const Diagram& diagram, ArrayId array, const Extents& extents) {
    return product<std::int64_t>(diagram.array(array).axes, [&](AxisId axis) { return extents[axis]; });
}

bool next_point(const std::vector<AxisId>& axes, const Extents& extents, std::vector<std::int64_t>& point) {
    for (std::size_t i = axes.size(); i-- > 0;) {
        if (++point[axes[i]] < extents[axes[i]]) return true;
        point[at(axes[i])] = 0;
    }
    return false;
}

}  // namespace napkin
