#include "run/memory.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

namespace napkin {

Memory allocate(std::int64_t bytes) {
    constexpr std::size_t alignment_bytes = 64, huge_page_bytes = std::size_t{1} << 21;
    const std::int64_t pages = ::sysconf(_SC_PHYS_PAGES), page = ::sysconf(_SC_PAGESIZE);
    if (pages > 0 && page > 0 && bytes / page > pages) return nullptr;
    const auto wanted = static_cast<std::size_t>(bytes);
    const std::size_t unit = wanted >= huge_page_bytes ? huge_page_bytes : alignment_bytes;
    const std::size_t rounded = std::max(unit, (wanted + unit - 1) / unit * unit);
    Memory memory(std::aligned_alloc(unit, rounded));
    if (!memory) return memory;
    if (unit == huge_page_bytes) ::madvise(memory.get(), rounded, MADV_HUGEPAGE);
    std::memset(memory.get(), 0, rounded);
    return memory;
}

}  // namespace napkin
