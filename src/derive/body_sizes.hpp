#pragma once
// How large the bodies of equations may become when others are written out in them, in nodes.
#include <cstddef>

namespace napkin {

/// A map of more nodes is written out in one place only: what is written twice at every step of a chain doubles with
/// its length.
inline constexpr std::size_t largest_copied = 32;
/// Nothing is written into an expression of more nodes, which could be neither read nor compiled.
inline constexpr std::size_t largest_body = 512;

}  // namespace napkin
