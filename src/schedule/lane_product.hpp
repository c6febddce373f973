#pragma once
// Products of narrow values, several in each lane. An instruction multiplies the neighbours in a lane of 32 bits and
// adds their products to the lane's sum. They are two of bf16 (vdpbf16ps), or four of 8 bits (vpdpbusd). A tile that
// such a statement reads keeps the type in memory, and each of its cells has neighbours along the summed axis.
#include <optional>

#include "schedule/scheduled.hpp"

namespace napkin {

struct LaneProduct {
    AxisId axis;                   ///< summed, along which a cell has neighbours
    const Read *a, *b;             ///< the factors
    DType type = DType::bf16;      ///< for which a machine has the instruction: bf16 or i8
    int terms = 2;                 ///< neighbours in a cell
    bool is_integer = false;       ///< sums are integers of 32 bits
    bool both_are_signed = false;  ///< the instruction takes u8 and i8, so that one of two factors of i8 is biased

    /// The factor whose tile is biased: the one that has no value for each lane. Its sum is too large by 128 times the
    /// sum of the other one. Pre: both_are_signed.
    [[nodiscard]] const Read& biased(AxisId vector_axis) const;
    [[nodiscard]] const Read& unbiased(AxisId vector_axis) const { return &biased(vector_axis) == a ? *b : *a; }
};

/// The statement as such a product, if it is one for some schedule: a sum of products of two arrays as they are loaded.
/// No sum passes 32 bits, unless its array wraps there.
std::optional<LaneProduct> lane_product(const ScheduledKernel& kernel, const Step& step);

/// Why the atom cannot run the product in vectors; empty where it can.
std::string_view why_not_in_lanes(const ScheduledKernel& kernel, const LaneProduct& product, const Atom& atom);

/// Marks the tiles that the chosen atoms read as cells of several values (Layout::terms).
void mark_lane_operands(ScheduledKernel& kernel);

}  // namespace napkin
