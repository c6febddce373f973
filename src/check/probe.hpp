#pragma once
// Inputs that show faults which random numbers alone leave hidden. A dropped chunk, a lost correction or a stale
// maximum only shows with certain inputs. These are growing maxima, weights that lie on one key, exact zeros, masks
// written as numbers, and values at the ends of their type.
#include <cstdint>
#include <string_view>

#include "diagram/evaluate.hpp"

namespace napkin {

enum class Probe : std::uint8_t {
    normal,    ///< N(0, 1)
    integers,  ///< whole numbers from -4 to 4: sums and products are exact
    growing,   ///< rise along every axis, so that a running maximum changes in every chunk
    falling,   ///< the maximum stands first
    constant,  ///< one value in the whole array: variances are 0, maxima are ties
    one_key,   ///< 40 above the rest at one coordinate of the last axis
    zeros,     ///< N(0, 1) with every third value exactly 0: weights that vanish
    /// N(0, 1) with every third value -1e9, or the type's lowest where that is above: a mask written as a number
    masked,
    offset,    ///< N(0, 1) about 1000: differences of large numbers
    huge,      ///< N(0, 1) with every fourth value 1e38 or -1e38, or a third of the type's largest where that is less
    infinite,  ///< N(0, 1) with every sixth value ±infinity
    invalid,   ///< N(0, 1) with one value NaN
};
inline constexpr Probe all_probes[] = {Probe::normal,   Probe::integers, Probe::growing,  Probe::falling,
                                       Probe::constant, Probe::one_key,  Probe::zeros,    Probe::masked,
                                       Probe::offset,   Probe::huge,     Probe::infinite, Probe::invalid};

std::string_view name(Probe probe);

/// Deterministic inputs for a seed, representable in each input's type. Integer arrays are uniform small integers in
/// every probe, for they may be indices.
Values probe_inputs(const Diagram& diagram, const Extents& extents, Probe probe, std::uint64_t seed);

}  // namespace napkin
