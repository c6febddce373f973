#pragma once
// Which figures of a machine contradict physics, each other or every machine there is; and which are possible, yet
// deserve a word.
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

/// A sentence for each link over which data arrives no faster than from the level above, which it is there to relieve.
std::vector<std::string> slow_links(const Machine& machine);

}  // namespace napkin
