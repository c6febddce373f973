// Operands in shared memory: the copies that fill their stages, and the waits until they are full.
#include <fmt/format.h>

#include <algorithm>

#include "emit/emit_fragment.hpp"
#include "emit/emit_write.hpp"
#include "schedule/fragments.hpp"
#include "support/ids.hpp"

namespace napkin::writers {
namespace {

int operand_number(const Frame& frame, VariableId id) {
    const std::vector<VariableId> all = operands_of(frame);
    return static_cast<int>(std::find(all.begin(), all.end(), id) - all.begin());
}

/// Of the operand's first stage, counted in the arena's barriers.
std::int64_t first_barrier(const Frame& frame, VariableId id) {
    std::int64_t n = 0;
    for (const VariableId v : operands_of(frame)) {
        if (v == id) break;
        n += frame.place(v).stages;
    }
    return n;
}

/// Where the tile begins along a dimension.
std::string begin_of(const Frame& frame, const Variable& v, int dimension, int scope) {
    const AxisId axis = v.dims[at(dimension)].single_axis();
    return frame.span(axis, scope).begins ? frame.axis(axis).begin : "";
}

/// Values between neighbours of each dimension of an array whose rows follow each other.
std::vector<std::int64_t> dense_strides(const Frame& frame, const Variable& v) {
    std::vector<std::int64_t> strides(v.dims.size(), 1);
    for (std::size_t d = v.dims.size() - 1; d > 0; --d) strides[d - 1] = strides[d] * frame.extent(v.limits[d]);
    return strides;
}

/// Every thread's parts of the tile.
void write_own_copies(const Frame& frame, Lines& out, VariableId variable, int scope, const std::string& stage,
                      const std::string& condition) {
    const Variable& v = frame.variable(variable);
    const OperandTile tile = *operand_tile(frame, variable);
    const std::vector<std::int64_t> strides = dense_strides(frame, v);
    std::string from = frame.memory.at(v.array);
    for (std::size_t d = 0; d < v.dims.size(); ++d)
        if (const std::string begin = begin_of(frame, v, static_cast<int>(d), scope); !begin.empty())
            from += strides[d] == 1 ? " + " + begin : fmt::format(" + {} * {}", begin, strides[d]);
    const auto left = [&](int dimension) {
        const std::int64_t extent = frame.extent(v.limits[at(dimension)]);
        const std::string begin = begin_of(frame, v, dimension, scope);
        return begin.empty() ? std::to_string(extent) : fmt::format("{} - {}", extent, begin);
    };
    const std::string to = stage == "0" ? "" : fmt::format(" + {} * unsigned({})", tile.bytes, stage);
    out(fmt::format("{}copy_operand<{}, {}, {}>(shared_address({}){}, {}, {}, {}, {});",
                    condition.empty() ? "" : fmt::format("if ({}) ", condition), tile.rows, tile.panels,
                    frame.schedule.warps.value * frame.unit.warp_threads, frame.name(variable), to, from,
                    strides[at(tile.outer)], left(tile.outer), left(tile.inner)));
    out("commit_copies();");
}

}  // namespace

std::string stage_name(const Frame& frame, VariableId variable) { return frame.name(variable) + "_stage"; }

std::vector<VariableId> operands_of(const ScheduledKernel& kernel) {
    std::vector<VariableId> out;
    for (std::size_t v = 0; v < kernel.layouts.size(); ++v)
        if (kernel.is_operand(static_cast<VariableId>(v))) out.push_back(static_cast<VariableId>(v));
    return out;
}

std::string stage_of_turn(const Frame& frame, VariableId variable, const std::string& turn) {
    const int stages = frame.place(variable).stages;
    return stages == 1 ? "0" : fmt::format("{} % {}", turn, stages);
}

void write_fill(const Frame& frame, Lines& out, VariableId variable, int scope, const std::string& stage,
                const std::string& condition) {
    if (!frame.has_bulk_copies()) return write_own_copies(frame, out, variable, scope, stage, condition);
    const Variable& v = frame.variable(variable);
    const OperandTile tile = *operand_tile(frame, variable);
    const int number = operand_number(frame, variable);
    out.open("");
    out(fmt::format("const int stage = int({});", stage));
    out(fmt::format("const unsigned full = barriers + 8 * ({} + stage);", first_barrier(frame, variable)));
    out(fmt::format("expect_bytes(full, {});", tile.bytes));
    std::string coordinates;
    for (std::size_t d = v.dims.size(); d-- > 0;) {
        const AxisId axis = v.dims[d].single_axis();
        std::string at = frame.span(axis, scope).begins ? frame.axis(axis).begin : "0";
        if (static_cast<int>(d) == tile.inner && tile.panels > 1) at += fmt::format(" + {} * panel", tile.width);
        coordinates += fmt::format(", int({})", at);
    }
    const std::string to = fmt::format("shared_address({}) + {} * stage", frame.name(variable), tile.bytes);
    if (tile.panels > 1)
        out(fmt::format("EACH(panel, {}) bulk_copy({} + {} * panel, &maps.of[{}], full{});", tile.panels, to,
                        tile.panel_bytes(), number, coordinates));
    else
        out(fmt::format("bulk_copy({}, &maps.of[{}], full{});", to, number, coordinates));
    out.close();
}

void write_wait(const Frame& frame, Lines& out, const Step& load, const std::string& turn) {
    const VariableId variable = std::get<Load>(*load.statement).variable;
    const int stages = frame.place(variable).stages;
    const std::string stage = stage_of_turn(frame, variable, turn);
    out(fmt::format("const unsigned {} = {};", stage_name(frame, variable),
                    stages == 1 ? "0" : fmt::format("unsigned({}) * {}", stage, operand_tile(frame, variable)->bytes)));
    if (!load.waits) return;
    if (!frame.has_bulk_copies()) {
        out(fmt::format("wait_copies<{}>();", load.copies_behind));
        out("sync();");
        return;
    }
    const std::string parity = stages == 1 ? fmt::format("{} & 1", turn) : fmt::format("{} / {} & 1", turn, stages);
    out(fmt::format("wait_full(barriers + 8 * ({} + {}), {});", first_barrier(frame, variable), stage, parity));
}

}  // namespace napkin::writers
