#pragma once
// The programs of examples/, as diagrams.
#include <string>
#include <vector>

#include "diagram/diagram.hpp"

namespace napkin {

struct ExampleDiagram {
    std::string name;
    Diagram diagram;
};

/// All of them, by name. Throws std::runtime_error where one does not parse.
std::vector<ExampleDiagram> example_diagrams();

}  // namespace napkin
