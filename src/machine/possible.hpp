#pragma once
// Which figures of a machine contradict physics, each other or every machine there is.
#include <string>
#include <vector>

#include "machine/figure_reader.hpp"

namespace napkin {

struct Impossible {
    SourceRange range;
    std::string why;
};

/// Looks only at figures that have a place: what was not read has been told about already.
std::vector<Impossible> impossible_figures(const Machine& machine, const Places& places);

}  // namespace napkin
