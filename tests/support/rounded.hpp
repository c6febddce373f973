#pragma once
// A tile program that says where a kernel rounds, so that the interpreter can run it as a kernel does.
#include "tile/sizes.hpp"

namespace napkin {

/// Every operation on real numbers, and every one that is read, is cast to the type that the kernel computes in: f64
/// where one of its arrays is, else f32. For interpret() with Precision::stored. Within one chunk sums are kept in
/// double precision; from chunk to chunk they round.
SizedProgram rounded(const SizedProgram& program);

}  // namespace napkin
