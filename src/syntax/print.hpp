// Diagram to text.
#pragma once

#include <string>

#include "diagram/diagram.hpp"

namespace napkin {

/// The diagram as text of the language: every type, size and schedule item written out, constants exact to the bit.
/// parse_diagram(print(d)) == canonical(d), and what parse_diagram returns is canonical. Diagrams whose text the
/// language refuses (a reduction over an axis that its body does not depend on) print too.
std::string print(const Diagram& diagram);

/// The same diagram with arrays and axes numbered in the order in which a reader meets them. Arrays are inputs,
/// outputs, then temporaries as they are defined, and axes count as they first appear. Temporaries that no equation
/// defines and axes that nothing mentions are left out.
Diagram canonical(const Diagram& diagram);

}  // namespace napkin
