#pragma once
// Texts of whole numbers whose C++ type holds their values. Literals and counters of unrolled loops have 32 bits
// everywhere. On a GPU an Index has 32 bits too where the arrays allow it. Sums and products may be larger. They are
// computed in 64 bits where interval arithmetic says so of an operator.
#include <string>

#include "algebra/interval.hpp"
#include "emit/emit_frame.hpp"

namespace napkin::writers {

struct IntegerText {
    std::string text;
    Interval range;  ///< in which its values lie: its type has 64 bits where an Index does not hold them
};

/// Whether 32 bits hold all values of the interval, and so an Index does.
bool fits_index(const Interval& range);
/// The coordinates of an axis in a scope, those of padding included.
Interval coordinates_of(const Frame& frame, AxisId axis, ScopeId scope);

IntegerText whole_number(std::int64_t value);
/// An operand: in brackets where it needs them. Pre: is_index_operator(op), and // and % are by a positive number.
IntegerText integer_binary(BinaryOp op, const IntegerText& a, const IntegerText& b);
IntegerText integer_negated(const IntegerText& a);

/// The text, with 64 bits where results of that interval are computed from it and an Index does not hold them.
std::string widened(const std::string& text, const Interval& results);
/// "Index", or a type that holds the text's values.
const char* type_of(const IntegerText& text);

}  // namespace napkin::writers
