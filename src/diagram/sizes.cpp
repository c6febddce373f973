#include "diagram/sizes.hpp"

#include <fmt/format.h>

#include <cmath>
#include <functional>
#include <set>

#include "diagram/blocks.hpp"
#include "diagram/guards.hpp"
#include "diagram/product.hpp"
#include "diagram/solve_sizes.hpp"
#include "diagram/symbol_names.hpp"
#include "support/ids.hpp"
#include "support/limits.hpp"
#include "support/ranges.hpp"
#include "support/text.hpp"

namespace napkin {
namespace {
/// Where the `dimension`th index of a read stands in the text of its equation, when it can be told; else the equation.
SourceRange index_range(const SourceRange& equation, const std::string& array, std::size_t dimension,
                        const std::string& index) {
    if (!equation.source || equation.end > equation.source->text.size() || equation.begin >= equation.end)
        return equation;
    const std::string_view text = std::string_view(equation.source->text).substr(equation.begin, equation.end - equation.begin);
    const auto is_word = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || (c & 0x80); };
    // The terms of an index may stand in any order: compared are its characters, sorted.
    const auto squeezed = [](std::string_view what) {
        std::string out;
        std::copy_if(what.begin(), what.end(), std::back_inserter(out), [](char c) { return c != ' ' && c != '\t'; });
        sort(out);
        return out;
    };
    for (std::size_t found = text.find(array); found != std::string_view::npos; found = text.find(array, found + 1)) {
        std::size_t i = found + array.size();
        if ((found > 0 && is_word(text[found - 1])) || i >= text.size() || text[i] != '[') continue;
        std::size_t which = 0, begin = ++i;
        for (; i < text.size() && which <= dimension; ++i) {
            if (text[i] != ',' && text[i] != ']') continue;
            if (which == dimension && squeezed(text.substr(begin, i - begin)) == squeezed(index)) {
                while (begin < i && text[begin] == ' ') ++begin;
                return {equation.source, static_cast<std::uint32_t>(equation.begin + begin),
                        static_cast<std::uint32_t>(equation.begin + i)};
            }
            if (text[i] == ']') break;
            ++which;
            begin = i + 1;
        }
    }
    return equation;
}

class Binder {
public:
    Binder(const Diagram& diagram, const std::map<std::string, std::int64_t>& overrides)
        : d_(diagram),
          overrides_(overrides),
          extents_(diagram.axes.size(), 0),
          zero_(diagram.axes.size(), 0),
          states_(diagram.axes.size(), State::open) {}

    Result<Extents> run() {
        check_overrides();
        for (std::size_t i = 0; i < d_.axes.size(); ++i) bind(AxisId::of(i));
        report_missing();
        if (errors_.empty()) check_blocks();
        if (errors_.empty()) check_products();
        if (errors_.empty()) check_reads();
        if (!errors_.empty()) return std::move(errors_);
        return std::move(extents_);
    }

private:
    enum class State : std::uint8_t { open, busy, bound, missing, failed };

    void error(Diagnostic diagnostic) {
        if (errors_.size() < limits::max_errors) errors_.push_back(std::move(diagnostic));
    }

    [[nodiscard]] Diagnostic unknown_axis(const std::string& name, SourceRange range, const std::string& message) const {
        const std::vector<std::string> names = names_of(d_.axes);
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

    /// Reads may leave their arrays where a condition keeps them from being taken; those that data decide on are looked
    /// at when data are there (check_indices.hpp).
    void check_reads() {
        for (const Equation& equation : d_.equations) {
            if (runs_over_nothing(equation)) continue;
            std::set<std::tuple<ArrayId, std::size_t, std::string>> seen;
            const auto report_once = [&](const Read& r, std::size_t i, const Index& index) {
                const std::string text = to_string(r.indices[i], d_.names());
                if (!seen.insert({r.array, i, text}).second) return;
                const Array& array = d_.array(r.array);
                report_read(equation, array, i, text, range_of(index, zero_, extents_), extents_[array.axes[i]]);
            };
            const auto leaves = [&](const Read& r) {
                bool outside = false;
                for (std::size_t i = 0; i < r.indices.size(); ++i) {
                    const AxisId axis = d_.array(r.array).axes[i];
                    if (r.indices[i].is_axis(axis)) continue;
                    if (r.indices[i].expression()) check_division(equation, *r.indices[i].expression());
                    outside = outside || extents_[axis] == 0;
                    if (r.indices[i].is_gathered()) continue;
                    const Interval reach = range_of(with_sizes(r.indices[i], extents_), zero_, extents_);
                    outside = outside || reach.low < 0 || reach.high >= extents_[axis];
                }
                return outside;
            };
            for_each_guarded_read(equation.body, leaves, [&](const Read& r, const std::vector<Guard>& guards) {
                const bool by_data = any_of(guards,
                                            [](const Guard& guard) { return !read_arrays(guard.condition).empty(); });
                for (std::size_t i = 0; i < r.indices.size(); ++i) {
                    const std::int64_t extent = extents_[d_.array(r.array).axes[i]];
                    if (r.indices[i].is_gathered() && extent > 0) continue;
                    // No index lies in an empty array: any of them tells whether the guards let one through.
                    const Index index = extent > 0 ? with_sizes(r.indices[i], extents_) : Index(Affine{});
                    if (!by_data && !is_kept_inside(index, extent, guards, extents_)) report_once(r, i, index);
                }
            });
        }
    }

    [[nodiscard]] bool runs_over_nothing(const Equation& equation) const {
        const auto is_empty = [&](AxisId axis) { return extents_[axis] == 0; };
        return any_of(d_.array(equation.target).axes, is_empty) || any_of(equation.reduce_axes, is_empty);
    }

    /// Sizes in an index divide without rest, and what // and % divide by is at least 1.
    void check_division(const Equation& equation, const Expr& index) {
        visit(index, [&](const Expr& node) {
            const auto* b = as<Binary>(node);
            if (!b || (b->op != BinaryOp::div && b->op != BinaryOp::floor_div && b->op != BinaryOp::mod)) return;
            const auto number = [&](const Expr& e) { return value_at(with_sizes(Index::of(e), extents_), zero_, {}); };
            const std::string text = to_string(node, d_.names());
            const std::int64_t divisor = number(b->b);
            if (b->op != BinaryOp::div ? divisor < 1 : divisor == 0) {
                error({"bad-divisor",
                       equation.range,
                       fmt::format("the index {} divides by {}", text, divisor),
                       "at least 1",
                       "",
                       {}});
            } else if (b->op == BinaryOp::div && number(b->a) % divisor != 0) {
                error({"index-not-integer",
                       equation.range,
                       fmt::format("{} in an index is {}/{}", text, number(b->a), divisor),
                       "a whole number",
                       "// divides and rounds down",
                       {}});
            }
        });
    }

    void report_read(const Equation& equation, const Array& array, std::size_t dimension, const std::string& index,
                     Interval reach, std::int64_t extent) {
        const std::string& axis = d_.axis(array.axes[dimension]).name;
        const std::string whole = fmt::format("{}[…]", array.name);
        if (extent == 0) {
            error({"index-out-of-range",
                   index_range(equation.range, array.name, dimension, index),
                   fmt::format("{} is read at {}, but {} has no values: its size is 0", array.name, index, axis),
                   fmt::format("at least one value of {}", axis),
                   fmt::format("or read only where there is one: where(size({}) > 0, {}, 0)", axis, whole),
                   {}});
            return;
        }
        std::string hint;
        if (reach.low < 0) {
            hint = fmt::format(
                "add {} to the index, and shift what is read accordingly; or read only where it is inside: "
                "where({} >= 0, {}, 0)",
                -reach.low, index, whole);
        } else {
            hint = fmt::format(
                "--set {}={}, or make {} shorter; or read only where it is inside: where({} < size({}), {}, 0)", axis,
                reach.high + 1, index, index, axis, whole);
        }
        error({"index-out-of-range",
               index_range(equation.range, array.name, dimension, index),
               fmt::format("the index {} of {} runs from {} to {}, but {} has {} {}", index, array.name, reach.low,
                           reach.high, axis, extent, extent == 1 ? "value" : "values"),
               fmt::format("indices from 0 to {}", extent - 1),
               std::move(hint),
               {}});
    }

    const Diagram& d_;
    const std::map<std::string, std::int64_t>& overrides_;
    Extents extents_;
    const std::vector<std::int64_t> zero_;  ///< of every axis
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
