#pragma once
// Operands of wgmma in shared memory: where a copy puts them, and the matrix descriptor for the instruction.
//
// It follows from three facts. Memory moves in units of 16 bytes, and eight units are a line of all banks. A copy
// writes a tile in boxes. A box has a fixed number of bytes (its width) along the contiguous direction, and all of the
// other direction. Boxes follow each other. In a box of 32, 64 or 128 bytes the unit's number is xor-ed with the line's
// number. So the eight rows of a core matrix lie in different banks. Sources: PTX ISA, "Shared Memory Matrix Layout",
// "Strides" and "Matrix Descriptor Format" of wgmma.mma_async; seed 001, §3.2.
#include "algebra/swizzle.hpp"

namespace napkin::layouts {

inline constexpr std::int64_t unit_bytes = 16;   ///< PTX ISA: descriptors count in these; swizzles move them
inline constexpr std::int64_t line_bytes = 128;  ///< PTX ISA: a swizzle repeats after 8 lines at most

/// Which direction of an operand lies together in memory: k, or the rows that it gives to the product (m of A, n of B).
enum class Major : std::uint8_t { k, mn };

/// The permutation of bytes in boxes of 16 (none), 32, 64 or 128 bytes.
Swizzle box_swizzle(std::int64_t box_bytes);

/// (mn, k) → element, as a copy with boxes of that width lays it down. Errors: an extent is no multiple of the box or
/// of the 8 of a core matrix; no such box.
Result<Swizzled> shared_operand(std::int64_t mn, std::int64_t k, std::int64_t element_bytes, Major major,
                                std::int64_t box_bytes);

/// The operand of one instruction relative to its first byte.
struct MatrixDescriptor {
    std::int64_t leading_bytes = 0, stride_bytes = 0;  ///< LBO and SBO; one that is not used is 16
    std::int64_t box_bytes = 0;

    /// The 64-bit word. Pre: the address is a multiple of 16 below 2^18, and a swizzled tile begins at a multiple of 8
    /// of its lines.
    [[nodiscard]] std::uint64_t bits(std::int64_t address) const;
    friend bool operator==(const MatrixDescriptor&, const MatrixDescriptor&) = default;
};

/// The descriptor for an instruction that takes all of mn and 32 bytes of k from a tile in shared memory, (mn, k) →
/// element. The descriptor for the next k begins tile.layout({0, k}) elements later. Errors: the instruction cannot
/// address a mode of the tile, which is named; mn is contiguous and elements are not of 2 bytes.
Result<MatrixDescriptor> wgmma_descriptor(const Swizzled& tile, std::int64_t element_bytes, Major major);

}  // namespace napkin::layouts
