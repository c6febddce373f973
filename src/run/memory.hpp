#pragma once
// Memory for arrays of numbers: aligned to vectors and cache lines, in huge pages where it is large and the system has
// them.
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <utility>

#include "support/source.hpp"

namespace napkin {

struct FreeMemory {
    void operator()(void* p) const { std::free(p); }
};
using Memory = std::unique_ptr<void, FreeMemory>;

/// Zeros. Null when there is none, or when it is more than the machine has: the system would hand it out and kill
/// later.
Memory allocate(std::int64_t bytes);

/// What is said then.
inline Diagnostic too_little_memory(std::string message, std::string hint = "") {
    return Diagnostic{.code = "too-little-memory",
                      .message = std::move(message),
                      .hint = std::move(hint),
                      .exit_code = ExitCode::machine_lacks};
}

}  // namespace napkin
