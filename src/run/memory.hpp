#pragma once
// Memory for arrays of numbers: aligned to vectors and cache lines, in huge pages where it is large and the system has them.
#include <cstdint>
#include <cstdlib>
#include <memory>

namespace napkin {

struct FreeMemory {
    void operator()(void* p) const { std::free(p); }
};
using Memory = std::unique_ptr<void, FreeMemory>;

/// Zeros. Null when there is none, or when it is more than the machine has: the system would hand it out and kill later.
Memory allocate(std::int64_t bytes);

}  // namespace napkin
