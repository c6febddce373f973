#pragma once
// Arrays that the calculus adds hold integers where what is computed into them are integers.
#include "derive/derived.hpp"

namespace napkin {

/// Gives every array of the derived form that the source does not have the type of its values, where that is an integer
/// type; all others keep theirs.
void give_integer_types(Derived& derived);

}  // namespace napkin
