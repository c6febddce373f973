#pragma once
// A sum that the matrix unit computes beside a product. Σ_k a[m, k] is what Σ_k a[m, k]·b[k, n] has in a further column of b that holds nothing but 1. Where a
// loop has both, over the same values of a and with the same corrections, the product's instruction takes 8 columns more, and no thread adds up its values
// of a. The columns are read from a tile of ones in shared memory, which is written once as the kernel starts. What is summed up is what the instruction
// multiplies: values of a that are computed are rounded to its type, in the sum as in the product, so that a quotient of the two has nothing of that
// rounding but what differs from value to value.
#include <string>
#include <variant>
#include <vector>

#include "schedule/fragments.hpp"

namespace napkin {

/// Columns of ones, the fewest by which an instruction grows, and what a thread has of them in registers: one of each pair in each of its two rows is read.
inline constexpr std::int64_t ones_columns = fragment_columns, ones_registers = ones_columns / 2;
/// Bytes of the ones that one instruction reads: its depth of rows of 128 bytes.
inline constexpr std::int64_t ones_tile_bytes = 16 * operand_row_bytes;

/// Who takes a sum of products' left factors without these products, and would have of it no more digits than such factors have; "": nobody. Pre: the sum's body
/// is a read.
std::string why_apart_from_products(const ScheduledKernel& kernel, const Step& sum);

/// The product, a step's number, of which the sum may be a column, or why there is none. Pre: the kernel's atoms are applied.
std::variant<StepId, std::string> product_beside(const ScheduledKernel& kernel, const Step& sum);
/// The sum whose atom is a column of the product; null: none is.
const Step* column_of_ones(const ScheduledKernel& kernel, const Step& product);
/// The sum in whose product's registers a variable lies that such a sum computes; null: it is no such variable.
const Step* sum_in_column(const ScheduledKernel& kernel, VariableId id);
/// Both are the same registers, or belong to the same product.
VariableId registers_of(const ScheduledKernel& kernel, VariableId id);

/// The types of which the kernel needs ones, each once, in the order of their tiles.
std::vector<DType> types_of_ones(const ScheduledKernel& kernel);
inline std::int64_t ones_bytes(const ScheduledKernel& kernel) {
    return static_cast<std::int64_t>(types_of_ones(kernel).size()) * ones_tile_bytes;
}

}  // namespace napkin
