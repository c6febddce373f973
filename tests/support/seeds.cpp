#include "support/seeds.hpp"

#include <cstdlib>

namespace napkin {

std::pair<std::uint64_t, std::uint64_t> seeds(std::uint64_t every_day) {
    const char* given = std::getenv("NAPKIN_SEEDS");
    if (!given) return {0, every_day};
    char* end = nullptr;
    const std::uint64_t from = std::strtoull(given, &end, 10);
    return {from, *end == ':' ? std::strtoull(end + 1, nullptr, 10) : from + 1};
}

}  // namespace napkin
