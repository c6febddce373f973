#include "diagram/check_indices.hpp"

#include <fmt/format.h>

#include <map>
#include <set>

#include "diagram/guards.hpp"
#include "support/limits.hpp"
#include "support/ranges.hpp"

namespace napkin {
namespace {
/// Steps the coordinates of the axes; false after the last.
class Check {
public:
    Check(const Diagram& diagram, const Extents& extents, const Values& values, const std::vector<ArrayId>& fresh)
        : diagram_(diagram), extents_(extents), values_(values), fresh_(fresh) {}

    std::optional<Diagnostic> run() {
        for (const Equation& equation : diagram_.equations) {
            const auto wanted = [&](const Read& r) {
                return any_of(r.indices, [&](const Index& i) { return is_decided(i); });
            };
            for_each_guarded_read(equation.body, wanted, [&](const Read& r, const std::vector<Guard>& guards) {
                for (std::size_t d = 0; d < r.indices.size() && !found_; ++d)
                    if (is_decided(r.indices[d]) && !lies_inside(r, d)) check(equation, r, d, guards);
            });
            if (found_) break;
        }
        return std::move(found_);
    }

private:
    [[nodiscard]] bool is_known(ArrayId array) const { return !values_[array].empty(); }
    [[nodiscard]] bool is_decided(const Index& index) const {
        if (!index.is_gathered()) return false;
        const std::vector<ArrayId> arrays = read_arrays(*index.expression());
        return all_of(arrays, [&](ArrayId a) { return is_known(a); }) &&
               (fresh_.empty() ||
                std::find_first_of(arrays.begin(), arrays.end(), fresh_.begin(), fresh_.end()) != arrays.end());
    }

    /// Whether the index' interval shows that it does, from the least and the greatest element of each array in it:
    /// that is quick, and nearly always enough.
    bool lies_inside(const Read& r, std::size_t d) {
        const Index index = with_sizes(r.indices[d], extents_);
        bool inside = true;
        if (const Expr* e = index.expression())
            visit(*e, [&](const Expr& node) {
                const auto* element = as<Read>(node);
                for (std::size_t k = 0; element && k < element->indices.size(); ++k)
                    inside = inside && lies_inside(*element, k);
            });
        if (!inside) return false;
        const Interval reach = range_of(index, std::vector<std::int64_t>(extents_.size(), 0), extents_,
                                        [&](const Read& element) { return elements_of(element.array); });
        return reach.low >= 0 && reach.high < extents_[diagram_.array(r.array).axes[d]];
    }
    Interval elements_of(ArrayId array) {
        const auto [known, is_new] = elements_.try_emplace(array);
        if (is_new) {
            const std::vector<std::int64_t>& values = values_[array].wholes();
            const auto [least, greatest] = std::minmax_element(values.begin(), values.end());
            known->second = {*least, *greatest};
        }
        return known->second;
    }

    [[nodiscard]] std::int64_t element(const Read& r, const std::vector<std::int64_t>& point) const {
        std::int64_t offset = 0;
        const std::vector<AxisId>& axes = diagram_.array(r.array).axes;
        for (std::size_t d = 0; d < axes.size(); ++d) {
            const std::int64_t coordinate = value_at(r.indices[d], point,
                                                     [&](const Read& inner) { return element(inner, point); });
            if (coordinate < 0 || coordinate >= extents_[axes[d]]) return limits::max_size_product;
            offset = offset * extents_[axes[d]] + coordinate;
        }
        return values_[r.array].at(static_cast<std::size_t>(offset)).as_whole(Kind::i64);
    }

    void check(const Equation& equation, const Read& r, std::size_t d, const std::vector<Guard>& guards) {
        const AxisId dimension = diagram_.array(r.array).axes[d];
        // The elements' own indices need numbers for sizes too.
        const Index index = with_sizes(Index::of(with_sizes(*r.indices[d].expression(), extents_)), extents_);
        const std::vector<AxisId> axes = index.axes();
        std::vector<std::int64_t> point(extents_.size(), 0);
        do {
            const std::int64_t value = value_at(index, point, [&](const Read& inner) { return element(inner, point); });
            if (value >= 0 && value < extents_[dimension]) continue;
            if (!is_taken(guards, axes, point)) continue;
            std::string position;
            for (const AxisId axis : axes)
                position += fmt::format("{}{} = {}", position.empty() ? " at " : ", ", diagram_.axis(axis).name,
                                        point[at(axis)]);
            const ExprNames names = diagram_.names();
            const std::string text = to_string(r.indices[d], names),
                              inside = value < 0 ? ">= 0" : fmt::format("< size({})", diagram_.axis(dimension).name);
            found_ = Diagnostic{
                "index-out-of-range",
                equation.range,
                fmt::format("{} is {}{}, but {} of {} has {} {}", text,
                            value == limits::max_size_product ? "outside of its own array" : std::to_string(value),
                            position, diagram_.axis(dimension).name, diagram_.array(r.array).name, extents_[dimension],
                            extents_[dimension] == 1 ? "value" : "values"),
                fmt::format("values from 0 to {}", extents_[dimension] - 1),
                fmt::format("a condition keeps such reads out: where({} {}, {}, 0)", text, inside,
                            to_string(read(r.array, r.indices), names)),
                {}};
            return;
        } while (next_point(axes, extents_, point));
    }

    /// Whether the guards hold at the point, for some coordinates of the axes that it does not fix.
    [[nodiscard]] bool is_taken(const std::vector<Guard>& guards, const std::vector<AxisId>& fixed,
                                std::vector<std::int64_t> point) const {
        std::vector<AxisId> open;
        for (const Guard& guard : guards) {
            const std::vector<ArrayId> arrays = read_arrays(guard.condition);
            if (!all_of(arrays, [&](ArrayId a) { return is_known(a); })) return false;
            for (const AxisId axis : free_axes(guard.condition))
                if (!contains(fixed, axis) && !contains(open, axis)) open.push_back(axis);
        }
        Kinds kinds = kinds_of(diagram_);
        do {
            const bool taken = all_of(guards, [&](const Guard& guard) {
                return (evaluate_at(guard.condition, kinds, diagram_, extents_, values_, point).truth()) == guard.holds;
            });
            if (taken) return true;
        } while (next_point(open, extents_, point));
        return false;
    }

    const Diagram& diagram_;
    const Extents& extents_;
    const Values& values_;
    const std::vector<ArrayId>& fresh_;
    std::map<ArrayId, Interval> elements_;
    std::optional<Diagnostic> found_;
};

}  // namespace

std::optional<Diagnostic> check_indices(const Diagram& diagram, const Extents& extents, const Values& values,
                                        const std::vector<ArrayId>& fresh) {
    return Check(diagram, extents, values, fresh).run();
}

std::vector<ArrayId> arrays_in_indices(const Diagram& diagram) {
    std::set<ArrayId> arrays;
    for (const Equation& equation : diagram.equations) {
        const auto gathers = [](const Read& r) {
            return any_of(r.indices, [](const Index& i) { return i.is_gathered(); });
        };
        for_each_guarded_read(equation.body, gathers, [&](const Read& r, const std::vector<Guard>& guards) {
            for (const Index& index : r.indices)
                if (index.is_gathered())
                    for (const ArrayId id : read_arrays(*index.expression())) arrays.insert(id);
            for (const Guard& guard : guards)
                for (const ArrayId id : read_arrays(guard.condition)) arrays.insert(id);
        });
    }
    return {arrays.begin(), arrays.end()};
}

std::optional<std::int64_t> greatest_index(const Diagram& diagram, const Extents& extents, ArrayId input) {
    std::optional<std::int64_t> greatest;
    const std::vector<std::int64_t> zero(extents.size(), 0);
    for (const Equation& equation : diagram.equations) {
        visit(equation.body, [&](const Expr& node) {
            const auto* r = as<Read>(node);
            for (std::size_t d = 0; r && d < r->indices.size(); ++d) {
                if (!r->indices[d].is_gathered() || !reads_array(*r->indices[d].expression(), input)) continue;
                const Index index = with_sizes(r->indices[d], extents);
                const std::int64_t extent = extents[diagram.array(r->array).axes[d]];
                // The interval of the index grows with that of the elements.
                std::int64_t good = 0, bad = extent + 1;
                while (bad - good > 1) {
                    const std::int64_t middle = good + (bad - good) / 2;
                    const Interval reach = range_of(index, zero, extents, [&](const Read& element) {
                        return element.array == input ? Interval{0, middle} : Interval{0, 0};
                    });
                    (reach.low >= 0 && reach.high < extent ? good : bad) = middle;
                }
                greatest = std::min(greatest.value_or(good), good);
            }
        });
    }
    return greatest;
}

}  // namespace napkin
