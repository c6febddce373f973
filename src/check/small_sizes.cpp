#include "check/small_sizes.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>

#include "check/sample.hpp"
#include "diagram/blocks.hpp"
#include "diagram/empty_axes.hpp"
#include "support/ids.hpp"
#include "support/ranges.hpp"

namespace napkin {

namespace {

constexpr std::int64_t usual_size = 9;
/// By which the sizes shrink that are drawn after some that were not small.
constexpr double shrinks_to = 0.8;
constexpr std::int64_t largest_reach = 400;  ///< of a number in a mask that an axis is made to pass
constexpr int attempts = 60;

/// The largest number with which a condition compares each axis' coordinate, by axis; 0 where none does.
std::vector<std::int64_t> reaches(const Diagram& diagram) {
    std::vector<std::int64_t> result(diagram.axes.size(), 0);
    for (const Equation& equation : diagram.equations) {
        visit(equation.body, [&](const Expr& e) {
            const auto* comparison = as<Binary>(e);
            if (!comparison || !is_comparison(comparison->op)) return;
            std::set<AxisId> axes;
            std::int64_t number = 0;
            visit(e, [&](const Expr& part) {
                if (const auto* index = as<AxisIndex>(part)) axes.insert(index->axis);
                const auto* c = as<Constant>(part);
                if (c && std::abs(c->value) <= static_cast<double>(largest_reach))
                    number = std::max(number, static_cast<std::int64_t>(std::abs(c->value)));
            });
            for (const AxisId axis : axes) {
                auto& reach = result[at(axis)];
                reach = std::max(reach, number);
            }
        });
    }
    return result;
}

/// What each axis' size is drawn in whole multiples of, by axis: what the sizes made of it divide it by.
std::vector<std::int64_t> units_of(const Diagram& diagram) {
    std::vector<std::int64_t> units(diagram.axes.size(), 1);
    for (const Axis& axis : diagram.axes) {
        if (!axis.size) continue;
        for (const auto& [monomial, coefficient] : axis.size->terms())
            for (const auto& [symbol, exponent] : monomial)
                if (coefficient.denominator() <= largest_reach) {
                    std::int64_t& unit = units[at(symbol.axis())];
                    unit = std::lcm(unit, coefficient.denominator());
                }
    }
    return units;
}

SizesByName by_name(const Diagram& diagram, const Extents& extents) {
    SizesByName sizes;
    for (const AxisId i : extents.ids()) sizes[diagram.axes[i].name] = extents[i];
    return sizes;
}

bool has_no_values_by_chance(const Diagram& diagram, const Extents& extents) {
    return any_of(diagram.axes.ids(), [&](AxisId i) { return extents[i] == 0 && !has_no_values(diagram, i); });
}

}  // namespace

Extents extents_of(const Diagram& diagram, const SizesByName& sizes) {
    Extents extents;
    for (const Axis& axis : diagram.axes) {
        extents.push_back(value_or(sizes, axis.name, 1));
    }
    return extents;
}

std::optional<SmallSizes> small_sizes(const Diagram& diagram, std::mt19937_64& random,
                                      const std::function<bool(const Extents&)>& are_small) {
    const std::vector<std::int64_t> reach = reaches(diagram), units = units_of(diagram);
    // Half of the time a mask's number is within reach; at times it is not, which is a case too.
    bool reaching = random() % 2 == 0;
    std::vector<AxisId> fixed = fixed_axes(diagram);
    append(fixed, axes_of_rests(diagram));
    for (const AxisId i : diagram.axes.ids())
        if (diagram.axis(i).rounds_down) fixed.push_back(i);
    double usual = static_cast<double>(usual_size);
    bool are_cut = false;
    for (int attempt = 0; attempt < attempts; ++attempt) {
        // Windows that reach over an edge need room: later attempts draw larger sizes.
        const std::int64_t least = attempt < attempts / 3 || are_cut ? 1 : 3,
                           most = std::max<std::int64_t>(1, std::llround(usual)) + (are_cut ? 0 : attempt / 6);
        SizesByName drawn;
        for (const AxisId i : diagram.axes.ids()) {
            const Axis& axis = diagram.axes[i];
            if ((axis.size && !axis.size->as_constant()) || has_no_values(diagram, i) || contains(fixed, i)) continue;
            const std::int64_t unit = units[at(i)], extra = reaching ? reach[i] : 0,
                               count = std::uniform_int_distribution<std::int64_t>(least, most)(random);
            drawn[axis.name] = unit * (count + (extra + unit - 1) / unit);
        }
        const auto extents = bind_sizes(diagram, drawn);
        // An axis whose size follows from others may be left without values, which is no case of what the text
        // computes.
        if (!extents || has_no_values_by_chance(diagram, *extents)) continue;
        if (are_small(*extents)) return SmallSizes{by_name(diagram, *extents), are_cut};
        are_cut = true;
        if (usual > 1)
            usual = std::max(1.0, usual * shrinks_to);
        else
            reaching = false, usual = static_cast<double>(usual_size);
    }
    // Fixed sizes may be the only ones that fit together.
    const auto extents = bind_sizes(diagram);
    if (!extents || !are_small(*extents)) return std::nullopt;
    return SmallSizes{by_name(diagram, *extents), are_cut};
}

std::optional<SizesByName> small_sizes(const Diagram& diagram, std::mt19937_64& random, double max_points) {
    auto drawn = small_sizes(diagram, random,
                             [&](const Extents& extents) { return evaluation_points(diagram, extents) <= max_points; });
    if (!drawn) return std::nullopt;
    return std::move(drawn->sizes);
}

}  // namespace napkin
