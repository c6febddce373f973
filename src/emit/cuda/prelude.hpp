#pragma once
// The prelude of emitted CUDA: what a warp's values are, the language's functions, storage types, copies of tiles.
#include <string_view>

namespace napkin::cuda {

/// Source text, in namespace napkin_gpu; stands before the kernels. Reads the macro NAPKIN_WIDE_INDEX: 1 where an index
/// may pass 2^31.
std::string_view prelude_text();

}  // namespace napkin::cuda
