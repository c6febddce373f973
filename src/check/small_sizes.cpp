#include "check/small_sizes.hpp"

#include <algorithm>
#include <cmath>
#include <set>

#include "check/sample.hpp"
#include "diagram/blocks.hpp"
#include "diagram/empty_axes.hpp"
#include "support/ids.hpp"
#include "support/ranges.hpp"

namespace napkin {

namespace {

constexpr std::int64_t usual_size = 9;
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

SizesByName by_name(const Diagram& diagram, const Extents& extents) {
    SizesByName sizes;
    for (const AxisId i : extents.ids()) sizes[diagram.axes[i].name] = extents[i];
    return sizes;
}

}  // namespace

Extents extents_of(const Diagram& diagram, const SizesByName& sizes) {
    Extents extents;
    for (const Axis& axis : diagram.axes) {
        extents.push_back(value_or(sizes, axis.name, 1));
    }
    return extents;
}

std::optional<SizesByName> small_sizes(const Diagram& diagram, std::mt19937_64& random, double max_points) {
    const std::vector<std::int64_t> reach = reaches(diagram);
    // Half of the time a mask's number is within reach; at times it is not, which is a case too.
    bool reaching = random() % 2 == 0;
    std::vector<AxisId> fixed = fixed_axes(diagram);
    append(fixed, axes_of_rests(diagram));
    for (int attempt = 0; attempt < attempts; ++attempt) {
        // Windows that reach over an edge need room: later attempts draw larger sizes.
        const std::int64_t least = attempt < attempts / 3 ? 1 : 3, most = usual_size + attempt / 6;
        SizesByName drawn;
        for (const AxisId i : diagram.axes.ids()) {
            const Axis& axis = diagram.axes[i];
            if ((axis.size && !axis.size->as_constant()) || has_no_values(diagram, i) || contains(fixed, i)) continue;
            const std::int64_t extra = reaching ? reach[i] : 0;
            drawn[axis.name] = std::uniform_int_distribution<std::int64_t>(least, most)(random) + extra;
        }
        const auto extents = bind_sizes(diagram, drawn);
        if (extents && evaluation_points(diagram, *extents) <= max_points) return by_name(diagram, *extents);
        if (extents) reaching = false;
    }
    // Fixed sizes may be the only ones that fit together.
    const auto extents = bind_sizes(diagram);
    if (!extents || evaluation_points(diagram, *extents) > max_points) return std::nullopt;
    return by_name(diagram, *extents);
}

}  // namespace napkin
