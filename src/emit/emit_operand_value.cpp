// Values of operands' tiles in shared memory, as threads read them.
#include <fmt/format.h>

#include "emit/emit_fragment.hpp"
#include "emit/emit_index.hpp"
#include "emit/emit_write.hpp"
#include "support/ids.hpp"

namespace napkin::writers {
namespace {

/// Integers stay integers in a statement that computes with them.
bool is_read_whole(const Frame& frame, const Step& step, VariableId operand) {
    return step.is_whole && !is_float(frame.variable(operand).memory_type);
}

/// Text of the thread's own place along a dimension of the tile.
std::string place_in_operand(const Frame& frame, VariableId id, int dimension, ScopeId scope) {
    const OperandTile tile = *frame.shape(id).tile;
    const Index& index = frame.variable(id).dims[at(dimension)];
    const bool is_packed = tile.packed > 1 && dimension == tile.inner;
    const AxisId axis = is_packed ? index.axes().front() : *running_axis(frame, index, scope);
    if (axis < 0 || frame.span(axis, scope).tile == 1) return "0";
    return is_packed ? fmt::format("{} / {}", frame.axis(axis).local, tile.packed) : frame.axis(axis).local;
}

/// Where values that share a place in memory have the same number.
std::string packed_number(const OperandTile& tile, const std::string& number) {
    return tile.packed > 1 ? fmt::format("{} / {}", number, tile.packed) : number;
}

}  // namespace

std::string part_declaration(const Frame& frame, const Step& step, const OperandPart& part) {
    return fmt::format("{} {}[{}];", is_read_whole(frame, step, part.operand) ? "int" : "float", part.name,
                       part.values / frame.shape(part.operand).tile->packed);
}

std::string part_load(const Frame& frame, const Step& step, const OperandPart& part) {
    const OperandTile tile = *frame.shape(part.operand).tile;
    return fmt::format("operand_values<{}, {}>({}, {}, {}, {}, {});", memory_type(frame.variable(part.operand).memory_type),
                       tile.panel_rows(), part.name, frame.name(part.operand), stage_name(frame, part.operand),
                       place_in_operand(frame, part.operand, tile.outer, step.scope), packed_number(tile, part.column));
}

void give_part(const Frame& frame, const Step& step, BodyWriter& body, const OperandPart& part) {
    body.give(part.operand, fmt::format("{}[{}]", part.name, packed_number(*frame.shape(part.operand).tile, part.number)),
              false, is_read_whole(frame, step, part.operand));
}

void give_operand_value(const Frame& frame, const Step& step, BodyWriter& body, VariableId operand) {
    const OperandTile tile = *frame.shape(operand).tile;
    const bool is_whole = is_read_whole(frame, step, operand);
    body.give(operand,
              fmt::format("operand_value<{}, {}{}>({}, {}, {}, {})", memory_type(frame.variable(operand).memory_type),
                          tile.panel_rows(), is_whole ? ", int" : "", frame.name(operand), stage_name(frame, operand),
                          place_in_operand(frame, operand, tile.outer, step.scope),
                          place_in_operand(frame, operand, tile.inner, step.scope)),
              false, is_whole);
}

}  // namespace napkin::writers
