#pragma once
// Texts of whole numbers whose C++ type holds their values. On a GPU what coordinates are is an Index of 32 bits where the arrays allow it; sums and products of them
// may be larger, and then are computed in 64 bits, as interval arithmetic says of every operator.
#include <string>

#include "algebra/interval.hpp"
#include "emit/emit_frame.hpp"

namespace napkin::writers {

struct WholeText {
    std::string text;
    Interval range;  ///< in which its values lie: its type has 64 bits where an Index does not hold them
};

/// Whether an Index holds all values of the interval. On a GPU it is asked of an Index of 32 bits.
bool fits_index(const Frame& frame, const Interval& range);
/// The coordinates of an axis in a scope, those of padding included.
Interval coordinates_of(const Frame& frame, AxisId axis, ScopeId scope);

WholeText whole_number(std::int64_t value);
/// An operand: in brackets where it needs them. Pre: is_index_operator(op), and // and % are by a positive number.
WholeText whole_binary(const Frame& frame, BinaryOp op, const WholeText& a, const WholeText& b);
WholeText whole_negated(const Frame& frame, const WholeText& a);

/// The text, of 64 bits where results of the interval are made of it that an Index does not hold.
std::string widened(const Frame& frame, const std::string& text, const Interval& results);
/// "Index", or a type that holds the text's values.
const char* type_of(const Frame& frame, const WholeText& text);

}  // namespace napkin::writers
