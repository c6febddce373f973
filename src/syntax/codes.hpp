// The user errors of the front end: one stable code each. tests/error holds a case for every one of them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "support/source.hpp"

namespace napkin {

// clang-format off
#define NAPKIN_SYNTAX_CODES(X)                                                                                          \
    /* the text */                                                                                                      \
    X(file_too_large) X(not_utf8) X(control_character) X(tab_indentation) X(bad_character) X(bad_number)                \
    X(number_out_of_range) X(unterminated_string) X(unclosed_bracket) X(unmatched_bracket) X(bad_indentation)           \
    /* the shape of definitions and equations */                                                                        \
    X(expected_definition) X(expected_expression) X(expected_token) X(expected_name) X(expected_type) X(unknown_type)   \
    X(missing_results) X(no_results) X(empty_definition) X(empty_file) X(reserved_name) X(trailing_input)               \
    X(missing_operator) X(chained_comparison) X(bad_target) X(bad_default) X(nesting_too_deep) X(misplaced_string)      \
    X(misplaced_tuple)                                                                                                  \
    /* names */                                                                                                         \
    X(unknown_diagram) X(duplicate_definition) X(builtin_redefined) X(duplicate_argument) X(duplicate_axis)             \
    X(name_clash) X(defined_twice) X(assigned_input) X(unknown_name) X(unknown_array) X(unknown_axis)                   \
    X(unknown_function) X(used_before_definition) X(never_defined) X(recursion) X(array_as_index) X(not_an_array)       \
    X(function_as_value) X(array_called)                                                                                \
    /* ranks, indices and types */                                                                                      \
    X(rank_mismatch) X(target_mismatch) X(unbound_index) X(axis_bound_twice) X(compared_with_nan) X(reduction_without_axes)                  \
    X(bad_reduction) X(unused_reduction_axis) X(index_not_affine) X(index_not_integer) X(index_too_large)               \
    X(ellipsis_misuse) X(size_mismatch) X(type_mismatch) X(type_conflict) X(not_a_condition)                            \
    X(coordinate_as_divisor) X(bad_divisor)                                                                                          \
    /* calls */                                                                                                         \
    X(argument_count) X(result_count) X(bad_gradient) X(call_axis_count) X(array_expected) X(argument_rank) X(unused_call_axis)         \
    X(call_axis_clash) X(call_target_mismatch)                                                                          \
    /* einsum and einops strings */                                                                                     \
    X(string_expected) X(bad_einsum) X(einsum_operand_count) X(einsum_rank) X(einsum_output) X(einops_grouping)         \
    X(not_a_permutation) X(unknown_reduction)                                                                           \
    /* sizes and schedule */                                                                                            \
    X(unknown_size_axis) X(bad_size) X(size_not_integer) X(size_cycle) X(duplicate_size) X(size_too_large)              \
    X(bad_size_expression) X(bad_lengths) X(bad_schedule) X(unknown_choice) X(unknown_schedule_axis) X(bad_schedule_value) X(duplicate_schedule)         \
    /* limits */                                                                                                        \
    X(too_many_axes) X(too_many_definitions) X(too_many_equations) X(expression_too_large) X(calls_too_deep)

enum class Code {
#define NAPKIN_CODE(name) name,
    NAPKIN_SYNTAX_CODES(NAPKIN_CODE)
#undef NAPKIN_CODE
};
// clang-format on

/// As it stands in Diagnostic::code: "unknown-array".
std::string name(Code code);

/// Collects user errors, at most limits::max_errors of them and one for a place.
class Diagnostics {
public:
    /// Returns the error for adding notes, or a dummy when it is not kept.
    Diagnostic& error(Code code, SourceRange range, std::string message, std::string expected = {}, std::string hint = {}) {
        return error(name(code), std::move(range), std::move(message), std::move(expected), std::move(hint));
    }
    /// With the code of an error that the language itself does not have.
    Diagnostic& error(std::string code, SourceRange range, std::string message, std::string expected = {},
                      std::string hint = {});

    /// Counts an error that is not shown because its like is.
    void again() { ++count_; }

    [[nodiscard]] std::size_t count() const { return count_; }
    /// No further error will be shown, so looking for more is in vain.
    [[nodiscard]] bool full() const;
    [[nodiscard]] bool empty() const { return count_ == 0; }
    /// In order of place within each source, sources in order of their first error.
    [[nodiscard]] std::vector<Diagnostic> take();

private:
    std::vector<Diagnostic> errors_;
    Diagnostic dummy_;
    std::size_t count_ = 0;
};

/// "1 axis", "2 axes".
std::string counted(std::size_t n, const std::string& what);

}  // namespace napkin
