#pragma once
// Sizes at which a diagram is small enough to evaluate many times and still means what it means at its own: relations
// between sizes hold, windows are narrower than what they slide over, and an axis that a mask compares with a number
// reaches past that number.
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <random>
#include <string>

#include "diagram/diagram.hpp"
#include "diagram/sizes.hpp"

namespace napkin {

/// By axis name, for every axis.
using SizesByName = std::map<std::string, std::int64_t>;

struct SmallSizes {
    SizesByName sizes;
    bool are_cut = false;  ///< larger ones were drawn first, which were not small
};

/// Random small sizes, 1 to 9 where nothing asks for more; a size that the text gives as a number is drawn like one
/// that it leaves open, one given by others follows them. Where these are not small, smaller ones are drawn. Where no
/// small sizes fit together, those of the text; nullopt where these are not known or are not small either.
std::optional<SmallSizes> small_sizes(const Diagram& diagram, std::mt19937_64& random,
                                      const std::function<bool(const Extents&)>& are_small);
/// Small are those that take at most `max_points` points of all equations together.
std::optional<SizesByName> small_sizes(const Diagram& diagram, std::mt19937_64& random, double max_points);

/// The extents of a diagram with these axes; one that the sizes do not name has 1.
Extents extents_of(const Diagram& diagram, const SizesByName& sizes);

}  // namespace napkin
