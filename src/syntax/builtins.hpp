#pragma once
// The functions of the language: what a word before parentheses means, and how many arguments it takes.
#include <optional>
#include <string>
#include <vector>

#include "algebra/expr.hpp"
#include "algebra/reduce.hpp"

namespace napkin {

/// sum, prod, max, min.
std::optional<ReduceOp> find_reduction(std::string_view word);

/// exp, max, f16, where, …: functions of numbers. Those over axes (sum, size) and of strings (einsum) are none.
bool is_scalar_function(std::string_view word);
bool is_scalar_function_of_two(std::string_view word);
/// The least number of them.
std::size_t count_arguments(std::string_view scalar_function);
bool takes_arguments(std::string_view scalar_function, std::size_t count);
/// Pre: as many arguments as it takes.
Expr call_scalar_function(std::string_view word, const std::vector<Expr>& arguments);

/// A number that has a name, pi, where nothing of the text is called so.
std::optional<double> find_constant(std::string_view word);

/// Any word that the language gives a meaning before parentheses.
bool is_builtin(std::string_view word);
std::vector<std::string> builtin_names();

}  // namespace napkin
