#include "emit/cuda/prelude.hpp"

#include <fmt/format.h>

#include <string>

#include "algebra/scalar_function.hpp"

namespace napkin::cuda {
namespace {

/// The functions of the table that CUDA has. log2 is among them, within 1 ulp: lg2.approx has no digits of its own
/// near 1.
std::string functions_of_cuda() {
    std::string out;
    for (const ScalarFunction& f : scalar_functions())
        if (!f.in_cuda.empty()) out += fmt::format("NAPKIN_FUNCTION({}, {}f, {})\n", f.name, f.in_cuda, f.in_cuda);
    return out;
}

}  // namespace

std::string_view prelude_text() {
    static const std::string text = [] {
        constexpr std::string_view written =
#include "emit/cuda/prelude_cuda.inc"
#include "emit/cuda/prelude_matrix.inc"
            ;
        constexpr std::string_view mark = "@functions@\n";
        const std::size_t at = written.find(mark);
        return std::string(written.substr(0, at)) + functions_of_cuda() + std::string(written.substr(at + mark.size()));
    }();
    return text;
}

}  // namespace napkin::cuda
