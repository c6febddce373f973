#pragma once
// How C++ writes the operations of expressions: for kernels, and for the loops that they are compared with. The
// functions are those of the preludes, which have one name for each operation.
#include <array>
#include <string>

#include "algebra/expr.hpp"

namespace napkin {

/// {0} and {1} stand for the operands.
struct OperatorText {
    std::string pattern;
    int precedence = 4;  ///< 4: an operand; 3: a sign; 2: a product; 1: a sum; 0: a comparison; -1: logic
    std::array<int, 2> operands = {0, 0};  ///< the least precedence with which each stands without brackets
};

OperatorText operator_text(UnaryOp op);
OperatorText operator_text(BinaryOp op);

/// The prelude's function that gives the integer of a narrow type that is equal to an integer modulo 2^bits.
std::string wrapping_function(DType type);
/// The prelude's function that rounds a real number to the type.
std::string rounding_function(DType type);

}  // namespace napkin
