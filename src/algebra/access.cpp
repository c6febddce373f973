#include "algebra/access.hpp"

#include <set>

#include "support/ranges.hpp"
#include "support/saturate.hpp"

namespace napkin::layouts {
namespace {

/// The different units of `unit` bytes that accesses touch, ascending.
std::set<std::int64_t> touched_units(std::span<const std::int64_t> offsets, std::int64_t bytes, std::int64_t unit) {
    std::set<std::int64_t> out;
    for (const std::int64_t at : offsets)
        for (std::int64_t u = at / unit; u <= (at + bytes - 1) / unit; ++u) out.insert(u);
    return out;
}

}  // namespace

Wavefronts wavefronts(std::span<const std::int64_t> offsets, std::int64_t bytes_a_thread, const SharedMemoryFigures& memory) {
    const std::int64_t line = memory.banks * memory.bank_bytes;
    internal_check(bytes_a_thread >= 1 && bytes_a_thread <= line, "an access wider than all banks");
    const auto together = static_cast<std::size_t>(line / std::max(bytes_a_thread, memory.bank_bytes));
    Wavefronts out;
    for (std::size_t first = 0; first < offsets.size(); first += together) {
        const auto phase = offsets.subspan(first, std::min(together, offsets.size() - first));
        std::vector<std::int64_t> words(static_cast<std::size_t>(memory.banks), 0);
        for (const std::int64_t word : touched_units(phase, bytes_a_thread, memory.bank_bytes))
            ++words[static_cast<std::size_t>(word % memory.banks)];
        out.taken += *max_element(words);
        ++out.least;
    }
    return out;
}

Sectors sectors(std::span<const std::int64_t> offsets, std::int64_t bytes_a_thread, std::int64_t sector_bytes) {
    const auto touched = touched_units(offsets, bytes_a_thread, sector_bytes);
    const auto bytes = touched_units(offsets, bytes_a_thread, 1);
    return {static_cast<std::int64_t>(touched.size()), ceil_div(static_cast<std::int64_t>(bytes.size()), sector_bytes)};
}

std::vector<std::int64_t> byte_offsets(const Swizzled& elements, std::int64_t element_bytes) {
    std::vector<std::int64_t> out;
    for (std::int64_t i = 0; i < elements.layout.size(); ++i) out.push_back(elements(i) * element_bytes);
    return out;
}

}  // namespace napkin::layouts
