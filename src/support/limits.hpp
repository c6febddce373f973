#pragma once
// Limits that turn hostile or mistaken input into an error instead of a crash or a hang.
#include <cstddef>
#include <cstdint>

namespace napkin::limits {

inline constexpr std::size_t max_file_bytes = std::size_t{1} << 20;
inline constexpr int max_nesting = 200;    ///< parentheses, calls and operators in one expression
inline constexpr int max_call_depth = 64;  ///< diagrams that call diagrams
inline constexpr std::size_t max_axes_per_array = 16;
inline constexpr std::size_t max_axes = 256;        ///< in one elaborated diagram
inline constexpr std::size_t max_equations = 1024;  ///< in one elaborated diagram
inline constexpr std::size_t max_expr_nodes = 20000;
inline constexpr std::size_t max_errors = 100;  ///< reported for one file
inline constexpr std::int64_t max_size_product = std::int64_t{1} << 62;

}  // namespace napkin::limits
