#pragma once
// Indices that are no affine forms, as C++ integer expressions, and where the tiles that they span begin.
#include <functional>
#include <string>

#include "emit/emit_frame.hpp"
#include "emit/whole_text.hpp"

namespace napkin::writers {

using CoordinateText = std::function<IntegerText(AxisId)>;
using ElementText = std::function<IntegerText(const Read&)>;

/// The value of an index: an operand, in brackets where it needs them. Pre: sizes are numbers.
IntegerText index_text(const Index& index, const CoordinateText& coordinate, const ElementText& element = {});

/// The index over tiles that begin at multiples of their own length. The part of a quotient or a remainder that is the
/// same for the whole tile stands alone. The rest follows from the position in the tile (inner_axes).
std::string index_in_tile(const Frame& frame, const Index& index, ScopeId scope);

/// Text of bounds of an index over a scope's tile, with or without padding. A buffer's dimension begins at `low`. A
/// remainder is taken to run over all of its values.
struct BoundsText {
    IntegerText low, high;
};
BoundsText bounds_text(const Frame& frame, const Index& index, ScopeId scope, bool padded = true);

/// The part of an interval that lies inside of an array of this extent: texts of its first coordinate and of its end,
/// of type Index.
struct InsideText {
    std::string first, end;
};
InsideText inside_text(const BoundsText& bounds, const std::string& extent);

/// Sets the variable's buffer to zeros, with a barrier behind them where others write over them.
void write_zeros(const Frame& frame, Lines& out, VariableId variable, bool synchronizes);

/// Loads a gathered tile, from where the elements of other arrays say.
void write_gather(const Frame& frame, Lines& out, VariableId variable, ScopeId scope, bool synchronizes);

}  // namespace napkin::writers
