#pragma once
// What a Neural Circuit Diagram shows, before anything in it is placed: values and the operations between them in
// order. A value is an array at a level of the hierarchy with a wire for each axis. Every value is written once. An
// update of a state reads one value and writes another. Circuits are read off a diagram, its derivation and its tile
// program (readings.hpp). The places follow from layout.hpp.
#include <cstddef>
#include <string>
#include <vector>

#include "algebra/index.hpp"
#include "draw/svg.hpp"

namespace napkin::draw {

using ValueId = int;

struct Wire {
    AxisId axis = -1;  ///< -1: an index of several axes
    svg::Label label;  ///< the size: q, g_q, s_x, with divisors as superscripts
    std::string name;  ///< of the axis, as the text has it
    friend bool operator==(const Wire&, const Wire&) = default;
};

/// g and the axis below it; without a letter the axis alone. Long names are cut.
svg::Label size_label(std::string_view letter, std::string_view axis, std::string_view behind = {});

struct Value {
    std::string name;  ///< of the array, or of the variable that is its tile
    std::vector<Wire> wires;
    int level = 0;            ///< of the hierarchy, which is a colour
    bool maintained = false;  ///< kept from chunk to chunk of a stream: in parentheses
    bool cached = false;      ///< kept at a lower level than this column's, which only passes it on: an asterisk
    bool is_stub = false;     ///< stands in one column, for the memory that it takes, and is wired to nothing
    std::string precision;    ///< a tag; empty: not said
    bool is_carried = false;  ///< goes unused through what is shown: one wire, with the array's name on it
    int times = 1;            ///< how often it is transferred where its kernel goes over a stream again
    int held = -1;            ///< alive until this operation at least, whoever reads it last
    friend bool operator==(const Value&, const Value&) = default;
};

/// What an operation is drawn as follows from what it is: a contraction joins wires, a transfer changes their colour, …
enum class Shape : unsigned char {
    box,          ///< a map, or anything that has no sign of its own
    contraction,  ///< a sum of products of values: the summed wires end in each other
    reduction,    ///< the reduced wires end
    along,        ///< an operation along an axis that it keeps: a triangle on that wire
    copy,         ///< the same value once more
    transfer,     ///< the same value at another level
    start,        ///< a value out of nothing: the state of an empty stream
    join,         ///< parts of an axis become one array
};
std::string_view name(Shape shape);

struct Operand {
    ValueId value = -1;
    /// by wire of the value: the axis that stands in this dimension where it is read; -1: several
    std::vector<AxisId> axes;
    friend bool operator==(const Operand&, const Operand&) = default;
};

struct Operation {
    Shape shape = Shape::box;
    svg::Label label;         ///< in the box, or above the sign
    std::string statement;    ///< the array that it defines
    std::string description;  ///< the whole of it: the equation
    std::vector<Operand> inputs;
    ValueId output = -1;
    std::vector<AxisId> consumed;  ///< reduced axes, and the axis of an operation along an axis
    int level = 0;
    bool splittable = false;  ///< runs in parts along any axis, which add up: a dotted box
    friend bool operator==(const Operation&, const Operation&) = default;
};

/// Operations that run for every chunk of a stream, or for every part of one operation.
struct Bracket {
    std::size_t first = 0, last = 0;  ///< from operation `first` to before `last`
    svg::Label label = {};
    bool is_sub = false;
    std::vector<ValueId> maintained = {};  ///< values at its end that the next turn begins with
    friend bool operator==(const Bracket&, const Bracket&) = default;
};

struct LevelName {
    int level = 0;
    std::string name;
    friend bool operator==(const LevelName&, const LevelName&) = default;
};

struct Circuit {
    std::string caption;  ///< which step of what this is
    std::vector<Value> values;
    std::vector<ValueId> inputs, outputs;  ///< outputs stay to the end
    std::vector<Operation> operations;
    std::vector<Bracket> brackets;  ///< nested or apart
    bool is_concurrent = false;     ///< functions that do not depend on each other may stand under each other
    std::vector<LevelName> levels;
    std::vector<std::string> notes;  ///< lines below the picture: sizes, costs
    friend bool operator==(const Circuit&, const Circuit&) = default;
};

/// Pictures of one kind, drawn under each other; `relation` stands between two: "≡", "=".
struct Drawing {
    std::string title;
    std::vector<Circuit> circuits;
    std::string relation;
    friend bool operator==(const Drawing&, const Drawing&) = default;
};

}  // namespace napkin::draw
