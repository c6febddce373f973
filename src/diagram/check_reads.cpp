#include "diagram/check_reads.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <tuple>

#include "diagram/guards.hpp"
#include "support/limits.hpp"
#include "support/ranges.hpp"

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

class ReadChecker {
public:
    ReadChecker(const Diagram& diagram, const Extents& extents)
        : d_(diagram), extents_(extents), zero_(diagram.axes.size(), 0) {}

    std::vector<Diagnostic> run() {
        for (const Equation& equation : d_.equations)
            if (!runs_over_nothing(equation)) check(equation);
        return std::move(errors_);
    }

private:
    void error(Diagnostic diagnostic) {
        if (errors_.size() < limits::max_errors) errors_.push_back(std::move(diagnostic));
    }

    void check(const Equation& equation) {
        std::set<std::tuple<ArrayId, std::size_t, std::string>> seen;
        const auto report_once = [&](const Read& r, std::size_t i, const Index& index) {
            const std::string text = to_string(r.indices[i], d_.names());
            if (!seen.insert({r.array, i, text}).second) return;
            const Array& array = d_.array(r.array);
            report_read(equation, array, i, text, range_of(index, zero_, extents_), extents_[array.axes[i]]);
        };
        const auto leaves = [&](const Read& r) { return may_leave(equation, r); };
        for_each_guarded_read(equation.body, leaves, [&](const Read& r, const std::vector<Guard>& guards) {
            const bool by_data = any_of(guards, [](const Guard& guard) { return !read_arrays(guard.condition).empty(); });
            for (std::size_t i = 0; i < r.indices.size(); ++i) {
                const std::int64_t extent = extents_[d_.array(r.array).axes[i]];
                if (r.indices[i].is_gathered() && extent > 0) continue;
                // No index lies in an empty array: any of them tells whether the guards let one through.
                const Index index = extent > 0 ? with_sizes(r.indices[i], extents_) : Index(Affine{});
                if (!by_data && !is_kept_inside(index, extent, guards, extents_)) report_once(r, i, index);
            }
        });
    }

    /// Whether some index leaves the array where no condition is looked at.
    bool may_leave(const Equation& equation, const Read& r) {
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
    const Extents& extents_;
    const std::vector<std::int64_t> zero_;  ///< of every axis
    std::vector<Diagnostic> errors_;
};

}  // namespace

std::vector<Diagnostic> read_errors(const Diagram& diagram, const Extents& extents) {
    return ReadChecker(diagram, extents).run();
}

}  // namespace napkin
