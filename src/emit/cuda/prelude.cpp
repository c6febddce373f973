#include "emit/cuda/prelude.hpp"

namespace napkin::cuda {

std::string_view prelude_text() {
    static constexpr std::string_view text =
#include "emit/cuda/prelude_cuda.inc"
#include "emit/cuda/prelude_matrix.inc"
        ;
    return text;
}

}  // namespace napkin::cuda
