#pragma once
// Sizes at which a diagram is small enough to evaluate many times and still behaves as at its own sizes. Relations
// between sizes hold, and windows are narrower than what they slide over. An axis that a mask compares with a number
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

/// Random small sizes, 1 to 9 where nothing asks for more. A size that the text gives as a number is drawn like an open
/// one. A size that the text gives by other sizes follows from them. If the drawn sizes are not small, smaller ones are
/// drawn. If no small sizes fit together, the sizes of the text are taken. The result is nullopt if these are not known
/// or not small either.
std::optional<SmallSizes> small_sizes(const Diagram& diagram, std::mt19937_64& random,
                                      const std::function<bool(const Extents&)>& are_small);
/// Sizes are small if they have at most `max_points` points of all equations together.
std::optional<SizesByName> small_sizes(const Diagram& diagram, std::mt19937_64& random, double max_points);

/// The extents of a diagram with these axes; one that the sizes do not name has 1.
Extents extents_of(const Diagram& diagram, const SizesByName& sizes);

}  // namespace napkin
