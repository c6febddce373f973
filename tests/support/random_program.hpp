#pragma once
// Random programs: texts in the language itself, drawn from its grammar. So the parser and the elaboration are tested
// with everything after them. While random_diagram combines the calculus' own patterns with tame values, these hold
// what a person might write. They have masks of every kind and filler, several reductions over one axis that need each
// other, and second axes over a dimension. They have products of many, integers, casts, constants at the ends of their
// type, and calls of the library. Reads are at places that are computed, guarded or gathered.
#include <cstdint>
#include <string>
#include <vector>

#include "diagram/diagram.hpp"

namespace napkin {

/// What a production of the grammar may need; those that need what is not wanted are left out.
enum class Features : unsigned {
    none = 0,
    extremes = 1 << 0,    ///< constants such as 1e38, -1e30, 1e-30 and infinities outside of masks
    integers = 1 << 1,    ///< integer inputs, compared and counted
    types = 1 << 2,       ///< inputs, temporaries and results of every type
    places = 1 << 3,      ///< reads at sums, quotients and remainders of axes
    guards = 1 << 4,      ///< conditions that keep a read, a reduction or a call inside of an array
    gathers = 1 << 5,     ///< reads at places that integer arrays hold
    arithmetic = 1 << 6,  ///< of integers and, by // and %, of real numbers; integers next to 2^24 and 2^53
    casts = 1 << 7,       ///< conversions in both directions, and what is made of them
    inner = 1 << 8,       ///< reductions and calls inside of expressions
    scalars = 1 << 9,     ///< arguments without axes
    rebound = 1 << 10,    ///< reductions that bind a woven axis anew
    all = (1 << 11) - 1,
};
constexpr Features operator|(Features a, Features b) {
    return static_cast<Features>(static_cast<unsigned>(a) | static_cast<unsigned>(b));
}
constexpr Features operator&(Features a, Features b) {
    return static_cast<Features>(static_cast<unsigned>(a) & static_cast<unsigned>(b));
}
/// What of `a` is not in `b`.
constexpr Features operator-(Features a, Features b) {
    return static_cast<Features>(static_cast<unsigned>(a) & ~static_cast<unsigned>(b));
}

/// What the names say, as in "guards,gathers"; throws std::invalid_argument with the names that there are.
Features features_named(const std::vector<std::string>& names);

struct ProgramOptions {
    int max_equations = 10;  ///< a recipe that has begun may write a few more
    Features features = Features::all;
    std::vector<std::string> recipes = {};  ///< by name, the only ones; none: all
};

/// The same seed gives the same text everywhere. It parses, and sizes bind for any extents of the axes without a size.
/// Comparisons are of coordinates and of values that no rounding touches: inputs, their maxima and minima, integers.
std::string random_program(std::uint64_t seed, const ProgramOptions& options = {});

/// The names of the recipes, in the order of their table.
std::vector<std::string> recipe_names();

/// The diagram of a text that is known to be right; throws InternalError with the message where it is not.
Diagram parsed_program(const std::string& text);

}  // namespace napkin
