#include "emit/cpu/prelude.hpp"

namespace napkin::cpu {

std::string_view prelude_text() {
    // Each file is a string literal. Their order matters, which the empty lines keep clang-format from changing.
    static constexpr std::string_view text =
#include "emit/cpu/prelude_vectors.inc"

#include "emit/cpu/prelude_math.inc"

#include "emit/cpu/prelude_types.inc"

#include "emit/cpu/prelude_cells.inc"

        "namespace napkin_cpu {\n\n"
#include "emit/cpu/prelude_flush.inc"
        "\n}  // namespace napkin_cpu\n";
    return text;
}

}  // namespace napkin::cpu
