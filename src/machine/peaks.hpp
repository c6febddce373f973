#pragma once
// What follows from a machine's figures: peak rates, rates of whole levels, and the arithmetic intensities at which
// they meet.
#include <string>
#include <vector>

#include "machine/machine.hpp"

namespace napkin {

/// Into all instances of the level together, bytes/s; 0 for the first level.
double total_bandwidth(const Level& level);

/// What all cores do in a second when the unit is always busy: FLOP/s of "fma" and "tensor" (a multiply-add is two),
/// operations/s of the others. 0 where the machine does not name the unit and type.
double peak_per_s(const Machine& machine, const std::string& unit, DType type);

/// The arithmetic intensity at which a unit and the pipe into a level take equally long (paper.md §9, roofline): below
/// it the pipe binds, above it the unit.
struct Ridge {
    std::string unit;
    DType type = DType::f32;
    std::size_t level = 1;  ///< index of the level below the pipe
    double flop_per_byte = 0;
    std::string formula;  ///< with the figures put in
};
/// Ridges for every type of the units that do FLOPs ("tensor", "fma") and every pipe, in the file's order.
std::vector<Ridge> ridges(const Machine& machine);

/// Transactions (lines of Machine::line_bytes) that one access of a warp makes. Values of neighbouring threads lie
/// `stride_values` apart, from an address on a line's boundary. It is 1 for stride 0 (a broadcast). A CPU's vector of
/// 32-bit lanes counts as a warp.
std::int64_t warp_transactions(const Machine& machine, std::int64_t stride_values, int bytes_a_value);

}  // namespace napkin
