#include "emit/cpu/prelude.hpp"

namespace napkin::cpu {

std::string_view prelude_text() {
    // Each file is a string literal. Their order matters, which the empty lines keep clang-format from changing.
    static constexpr std::string_view text =
#include "emit/cpu/prelude_vectors.inc"

#include "emit/cpu/prelude_math.inc"

#include "emit/cpu/prelude_types.inc"
        ;
    return text;
}

}  // namespace napkin::cpu
