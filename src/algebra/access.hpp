#pragma once
// What a warp's accesses cost, counted from where its threads' data lie.
#include <span>

#include "algebra/swizzle.hpp"

namespace napkin::layouts {

/// The figures of a memory that threads access together.
struct SharedMemoryFigures {
    std::int64_t banks = 0;       ///< each gives one word a wavefront
    std::int64_t bank_bytes = 0;  ///< of a word
};

/// Wavefronts that a warp's access of shared memory takes, and those that it would take without bank conflicts.
struct Wavefronts {
    std::int64_t taken = 0, least = 0;
    [[nodiscard]] std::int64_t conflicts() const { return taken - least; }
    friend bool operator==(const Wavefronts&, const Wavefronts&) = default;
};

/// The access is split into phases of as many threads as all banks serve together. With 32 banks of 4 bytes, a phase is
/// a whole warp at 4 bytes a thread, half of it at 8 and a quarter at 16. A phase takes as many wavefronts as its
/// busiest bank has different words. Threads that read the same word share it. `offsets` has the byte at which each
/// thread's data begin, in the order of threads. Pre: 1 ≤ bytes_a_thread ≤ banks · bank_bytes, offsets are multiples of
/// bytes_a_thread.
Wavefronts wavefronts(std::span<const std::int64_t> offsets, std::int64_t bytes_a_thread, const SharedMemoryFigures& memory);

/// Sectors of memory that a warp's access touches, and the fewest that hold as many different bytes.
struct Sectors {
    std::int64_t touched = 0, least = 0;
    friend bool operator==(const Sectors&, const Sectors&) = default;
};
Sectors sectors(std::span<const std::int64_t> offsets, std::int64_t bytes_a_thread, std::int64_t sector_bytes);

/// The byte of each index of a layout of elements: of each thread, where the layout sends threads to elements.
std::vector<std::int64_t> byte_offsets(const Swizzled& elements, std::int64_t element_bytes);

}  // namespace napkin::layouts
