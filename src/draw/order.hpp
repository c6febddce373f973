#pragma once
// The columns of a circuit and the order of what stands in each from top to bottom. Values never change places: a
// result stands where an operand that it replaces stood, or below one that stays, so that wires run straight. What is
// left open, where inputs and states stand and how the wires of an array are ordered, is chosen so that as few wires as
// may be are crossed.
#include <vector>

#include "draw/circuit.hpp"

namespace napkin::draw {

/// Stands for the axis of the one wire of a value without axes.
constexpr AxisId scalar_axis = -2;

/// A wire inside of an operation's column.
struct Row {
    enum class Use : unsigned char {
        pass,      ///< goes on as a wire of the result
        consumed,  ///< ends here
        merge,     ///< goes on in another row of the same axis
        fresh,     ///< begins here
    };
    Use use = Use::pass;
    AxisId axis = -1;
    ValueId from = -1;      ///< whose wire enters; -1: nobody's
    int from_wire = -1;     ///< which of its wires, as the value lists them
    int to_wire = -1;       ///< which wire of the result it becomes, likewise
    bool straight = false;  ///< the wire enters at the height it had: its value ends here, beside the block
};

/// An operation as it stands in its column.
struct Placed {
    std::size_t operation = 0;
    std::vector<Row> rows;
    /// Wires that come from elsewhere and go into a pass row: (value, wire, row).
    struct Joining {
        ValueId from;
        int wire;
        std::size_t row;
    };
    std::vector<Joining> joining;
};

/// What stands in a column of operations, from top to bottom: values that pass by, and operations.
struct Item {
    ValueId value = -1;
    int placed = -1;  ///< index into Column::placed
};
struct Column {
    std::vector<Placed> placed;
    std::vector<Item> items;
};

struct Ordered {
    Circuit circuit;
    std::vector<std::vector<int>> wire_order;  ///< by value: its wires from top to bottom
    /// Data column i stands before operation column i; there is one more of them.
    std::vector<std::vector<ValueId>> data;
    std::vector<int> born, last;  ///< by value: the data columns from and to which it stands
    std::vector<Column> columns;
    std::vector<std::size_t> column_of;  ///< by operation
    double crossings = 0;                ///< what the choice made as small as it found
};

Ordered ordered(const Circuit& circuit);

}  // namespace napkin::draw
