// Operands in shared memory: the copies that fill their stages, and the barriers that say when these are full or free.
#include <fmt/format.h>

#include <limits>

#include "emit/emit_fragment.hpp"
#include "emit/emit_index.hpp"
#include "emit/emit_write.hpp"
#include "support/ids.hpp"
#include "support/ranges.hpp"

namespace napkin::writers {
namespace {

int operand_number(const Frame& frame, VariableId id) {
    const std::vector<VariableId> all = operands_of(frame);
    return static_cast<int>(find(all, id) - all.begin());
}

/// The barrier of the operand's first stage, counted in the arena's barriers.
std::int64_t first_barrier(const Frame& frame, VariableId id) {
    std::int64_t n = 0;
    for (const VariableId v : operands_of(frame)) {
        if (v == id) break;
        n += frame.place(v).stages;
    }
    return n;
}

/// Counts the stages of all operands: as many barriers say that a stage is full.
std::int64_t num_stages(const Frame& frame) {
    return sum<std::int64_t>(operands_of(frame), [&](VariableId v) { return frame.place(v).stages; });
}

/// Rows of an axis behind the tile's first; empty: none.
struct RowsBehind {
    AxisId axis = -1;
    std::string count = {};
};

/// The index where the tile begins, or so many rows behind.
std::string begin_of(const Frame& frame, const Index& index, ScopeId scope, const RowsBehind& behind = {}) {
    if (!index.affine())
        return index_text(index,
                          [&](AxisId axis) {
                              std::string begin = frame.span(axis, scope).begins ? frame.axis(axis).begin : "0";
                              if (axis == behind.axis && !behind.count.empty())
                                  begin = fmt::format("({} + {})", begin, behind.count);
                              return IntegerText{begin, coordinates_of(frame, axis, scope)};
                          })
            .text;
    const Affine& form = *index.affine();
    std::string text;
    const auto add = [&](const std::string& term) { text += (text.empty() ? "" : " + ") + term; };
    for (const auto& [axis, factor] : form.terms)
        if (frame.span(axis, scope).begins)
            add(factor == 1 ? frame.axis(axis).begin : fmt::format("{} * {}", factor, frame.axis(axis).begin));
    const auto [constant, number] = frame.constant_of(form);
    if (constant != 0) add(std::to_string(constant));
    if (!number.empty()) add(number);
    return form.terms.size() > 1 && !text.empty() ? "(" + text + ")" : text;
}

std::string begin_of(const Frame& frame, const Variable& v, int dimension, ScopeId scope) {
    return begin_of(frame, v.dims[at(dimension)], scope);
}

/// An index of the array, one for the whole tile, or of its row of this name. Integers that it reads lie in memory.
std::string looked_up(const Frame& frame, VariableId variable, const Index& index, ScopeId scope,
                      const std::string& row = "") {
    const Variable& v = frame.variable(variable);
    const int rows = row.empty() ? -1 : frame.shape(variable).tile->outer;
    const auto coordinate = [&](AxisId p) {
        std::string begin = begin_of(frame, v, p.place(), scope);
        if (p.place() == rows) begin = begin.empty() ? row : fmt::format("({} + {})", begin, row);
        return IntegerText{begin.empty() ? "0" : begin, {0, frame.extent(v.limits[at(p.place())]) - 1}};
    };
    return index_text(
               index, coordinate,
               [&](const Read& r) {
                   const Variable& table = frame.variable(r.variable());
                   std::string at;
                   for (std::size_t d = 0; d < r.indices.size(); ++d)
                       at += fmt::format("{}({}) * {}[{}]", d > 0 ? " + " : "",
                                         index_text(r.indices[d], coordinate).text, frame.strides.at(table.array), d);
                   return IntegerText{fmt::format("{}[{}]", frame.memory.at(table.array), at),
                                      {std::numeric_limits<std::int32_t>::min(), std::numeric_limits<std::int32_t>::max()}};
               })
        .text;
}

std::string or_zero(const std::string& text) { return text.empty() ? "0" : text; }

/// Coordinates of the first row's place, then offsets of all rows, the innermost first.
std::string window_coordinates(const Frame& frame, VariableId variable, ScopeId scope, const std::string& first_row,
                               const std::string& first_column) {
    const WindowCopy& window = *frame.shape(variable).window;
    std::string out = fmt::format(", int({}{})",
                                  or_zero(begin_of(frame, frame.variable(variable).gathers.back(), scope)), first_column),
                offsets;
    for (std::size_t d = window.dims.size(); d-- > 0;) {
        out += fmt::format(", int({})", or_zero(begin_of(frame, window.dims[d].first, scope, {window.rows, first_row})));
        if (d > 0) offsets += fmt::format(", int({})", or_zero(begin_of(frame, window.dims[d].offset, scope)));
    }
    return out + offsets;
}

/// Coordinates of a box's first value, the innermost first.
std::string box_coordinates(const Frame& frame, Lines& out, VariableId variable, ScopeId scope,
                            const std::string& first_row, const std::string& first_column) {
    const Variable& v = frame.variable(variable);
    const OperandTile tile = *frame.shape(variable).tile;
    std::string coordinates;
    const std::vector<Index> source = source_of(frame, variable);
    for (std::size_t d = source.size(); d-- > 0;) {
        const int p = run_of(source[d]);
        const bool is_gathered = source[d].is_gathered();
        std::string at = is_gathered ? looked_up(frame, variable, source[d], scope) : begin_of(frame, v, p, scope);
        // Each panel would read the integers again.
        if (is_gathered && tile.panels > 1) {
            const std::string name = fmt::format("{}_index_{}_", frame.name(variable), d);
            out.declare("const Index", name, at);
            at = name;
        }
        at = or_zero(at);
        if (p == tile.outer && !first_row.empty()) at += " + " + first_row;
        if (p == tile.inner) at += first_column;
        coordinates += fmt::format(", int({})", at);
    }
    return coordinates;
}

/// Copies every thread's own parts of the tile.
void write_own_copies(const Frame& frame, Lines& out, VariableId variable, ScopeId scope, const std::string& stage,
                      const std::string& condition) {
    const Variable& v = frame.variable(variable);
    const OperandTile tile = *frame.shape(variable).tile;
    const auto stride = [&](std::size_t d) { return stride_text(frame, variable, d); };
    std::string from = frame.memory.at(v.array);
    for (std::size_t d = 0; d < v.dims.size(); ++d)
        if (const std::string begin = begin_of(frame, v, static_cast<int>(d), scope); !begin.empty())
            from += stride(d) == "1" ? " + " + begin : fmt::format(" + {} * {}", begin, stride(d));
    const auto left = [&](int dimension) {
        const std::string extent = frame.extent_text(v.limits[at(dimension)]), begin = begin_of(frame, v, dimension, scope);
        return begin.empty() ? extent : fmt::format("{} - {}", extent, begin);
    };
    const std::string to = stage == "0" ? "" : fmt::format(" + {} * unsigned({})", tile.bytes, stage);
    out(fmt::format("{}copy_operand<{}, {}, {}>(shared_address({}){}, {}, {}, {}, {});",
                    condition.empty() ? "" : fmt::format("if ({}) ", condition), tile.rows, tile.panels,
                    frame.schedule.warps.value * frame.unit.warp_threads, frame.name(variable), to, from,
                    stride(at(tile.outer)), left(tile.outer), left(tile.inner)));
    out("commit_copies();");
}

/// Threads of the producer warps copy the rows of the tile, each from where integers say.
void write_copies_of_rows(const Frame& frame, Lines& out, VariableId variable, ScopeId scope, const std::string& stage) {
    const Variable& v = frame.variable(variable);
    const OperandTile tile = *frame.shape(variable).tile;
    const std::vector<Index> source = source_of(frame, variable);
    const std::string &strides = frame.strides.at(v.array), row = "row_", column = begin_of(frame, v, tile.inner, scope),
                      columns = frame.extent_text(v.limits[at(tile.inner)]);
    std::string to = fmt::format("shared_address({})", frame.name(variable));
    if (stage != "0") to += fmt::format(" + {} * {}", tile.bytes, stage);
    out.open(fmt::format("copy_rows<{}, {}, {}, {}>({}, copier_, {}, {}, [&](Index {}) -> const {}*", tile.rows,
                         tile.panels, frame.producer_role()->workers * frame.unit.warp_threads, memory_type(v.memory_type),
                         to, column.empty() ? columns : fmt::format("{} - {}", columns, column),
                         operand_barrier(frame, variable, false, stage), row, memory_type(v.memory_type)));
    const AxisId axis = *running_axis(frame, v.dims[at(tile.outer)], scope);
    if (frame.span(axis, scope).ragged || frame.span(axis, scope).tile < tile.rows)
        out(fmt::format("if ({} >= {}) return nullptr;", row, frame.count(axis, scope)));
    std::string from = frame.memory.at(v.array);
    for (std::size_t d = 0; d < source.size(); ++d) {
        std::string at = source[d].is_gathered() ? looked_up(frame, variable, source[d], scope, row)
                                                 : begin_of(frame, v, source[d].single_axis().place(), scope);
        if (source[d].is_gathered()) {
            const std::string name = fmt::format("index_{}_", d);
            out(fmt::format("const auto {} = {};", name, at));
            out(fmt::format("if ({0} < 0 || {0} >= {1}) return nullptr;", name,
                            frame.extent_text(frame.diagram().array(v.array).axes[d])));
            at = fmt::format("Index({})", name);
        }
        if (!at.empty() && at != "0") from += fmt::format(" + {} * {}[{}]", at, strides, d);
    }
    out(fmt::format("return {};", from));
    out.close(");");
}

}  // namespace

std::string stage_name(const Frame& frame, VariableId variable) {
    return frame.is_written(variable) ? "0" : frame.name(variable) + "_begin_";
}

std::vector<VariableId> operands_of(const ScheduledKernel& kernel) {
    std::vector<VariableId> out;
    for (std::size_t v = 0; v < kernel.layouts.size(); ++v)
        if (kernel.is_operand(VariableId::of(v))) out.push_back(VariableId::of(v));
    return out;
}

std::vector<VariableId> operands_of(const ScheduledKernel& kernel, ScopeId scope) {
    return mapped<VariableId>(kernel.operand_loads(scope), [&](const Step* s) { return kernel.operand_loaded(*s); });
}

IterationNames iteration_names(const Frame& frame, ScopeId scope, int ahead) {
    std::string of = "group";
    for (const ScheduledLoop& loop : frame.loops)
        if (loop.scope == scope && scope > 0) of = fmt::format("{}_{}", frame.axis(loop.loop->axis).begin, scope);
    const std::vector<VariableId> operands = operands_of(frame, scope);
    const bool has_stages = !operands.empty() && frame.place(operands.front()).stages > 1;
    const std::string phase = of + "_phase_", stage = of + "_stage_";
    if (!has_stages) return {"0", ahead == 0 ? phase : fmt::format("({} ^ 1)", phase)};
    const int last = frame.place(operands.front()).stages - 1;
    if (ahead > 0)
        return {fmt::format("({0} == {1} ? 0 : {0} + 1)", stage, last),
                fmt::format("({} == {} ? {} ^ 1 : {})", stage, last, phase, phase)};
    if (ahead < 0) return {fmt::format("({0} == 0 ? {1} : {0} - 1)", stage, last), ""};
    return {stage, phase};
}

void declare_iteration(const Frame& frame, Lines& out, ScopeId scope) {
    const IterationNames turn = iteration_names(frame, scope);
    if (turn.stage == "0")
        out.declare("unsigned", turn.phase, "0");
    else
        out(fmt::format("unsigned {} = 0, {} = 0;", turn.phase, turn.stage));
}

void next_iteration(const Frame& frame, Lines& out, ScopeId scope) {
    const IterationNames turn = iteration_names(frame, scope);
    if (turn.stage == "0") return out(fmt::format("{} ^= 1;", turn.phase));
    out(fmt::format("if (++{0} == {1}) {0} = 0, {2} ^= 1;", turn.stage,
                    frame.place(operands_of(frame, scope).front()).stages, turn.phase));
}

void write_copy(const Frame& frame, Lines& out, VariableId variable, ScopeId scope, const std::string& stage,
                const std::string& condition) {
    if (!frame.has_bulk_copies()) return write_own_copies(frame, out, variable, scope, stage, condition);
    const OperandTile tile = *frame.shape(variable).tile;
    if (tile.is_of_single_rows) return write_copies_of_rows(frame, out, variable, scope, stage);
    const int number = operand_number(frame, variable);
    const std::string full = operand_barrier(frame, variable, false, stage);
    out(fmt::format("expect_bytes({}, {});", full, tile.copied_bytes()));
    const auto part = frame.shape(variable).part;
    const std::int64_t panels = part ? part->panels : tile.panels;
    // Where a block's part begins, by its number in the cluster.
    const std::string first_row = part && part->by_rows ? fmt::format("{} * {}", part->rows, cluster_rank_name) : "",
                      first_panel = part && !part->by_rows ? fmt::format("{} * {}", part->panels, cluster_rank_name) : "";
    std::string first_column;
    if (!first_panel.empty()) first_column = fmt::format(" + {} * {}", tile.width * part->panels, cluster_rank_name);
    if (panels > 1) first_column += fmt::format(" + {} * panel", tile.width);
    const bool is_window = frame.shape(variable).window.has_value();
    const std::string coordinates = is_window ? window_coordinates(frame, variable, scope, first_row, first_column)
                                              : box_coordinates(frame, out, variable, scope, first_row, first_column);
    std::string to = fmt::format("shared_address({})", frame.name(variable));
    if (stage != "0") to += fmt::format(" + {} * {}", tile.bytes, stage);
    if (part)
        to += fmt::format(" + {} * {}", part->by_rows ? part->rows * operand_row_bytes : part->panels * tile.panel_bytes(),
                          cluster_rank_name);
    const std::string kind = is_window ? "window_copy" : "bulk_copy",
                      copy = part ? fmt::format("{}_to_all<{}>", kind, frame.cluster_blocks()) : kind;
    if (panels > 1)
        out(fmt::format("EACH(panel, {}) {}({} + {} * panel, &maps.of[{}], {}{});", panels, copy, to,
                        tile.panel_bytes(), number, full, coordinates));
    else
        out(fmt::format("{}({}, &maps.of[{}], {}{});", copy, to, number, full, coordinates));
}

void declare_stage(const Frame& frame, Lines& out, VariableId operand, int ahead) {
    const IterationNames turn = iteration_names(frame, frame.layout(operand).scope, ahead);
    out.declare("const unsigned", stage_name(frame, operand),
                turn.stage == "0" ? "0" : fmt::format("{} * {}", turn.stage, frame.shape(operand).tile->bytes));
}

std::string operand_barrier(const Frame& frame, VariableId operand, bool is_empty, const std::string& stage) {
    return fmt::format("barriers + 8 * ({} + {})", (is_empty ? num_stages(frame) : 0) + first_barrier(frame, operand),
                       stage);
}

std::string deferred_release_name(const Frame& frame, VariableId operand) { return frame.name(operand) + "_deferred_"; }

void write_barriers(const Frame& frame, Lines& out) {
    const std::int64_t count = frame.shapes.num_barriers, stages = num_stages(frame);
    out(fmt::format("const unsigned barriers = shared_address(shared_memory) + {};",
                    frame.arena_bytes() - frame.shapes.barrier_bytes));
    if (frame.is_dynamic())
        out(fmt::format("char* const queue = shared_memory + {};  // numbers of groups, stages: {}",
                        frame.arena_bytes() - frame.shapes.barrier_bytes + 8 * count, queue_stages));
    out.open("if (thread_of_block() == 0)");
    out(fmt::format("for (int i = 0; i < {}; ++i) init_barrier(barriers + 8 * i, 1);", stages));
    for (const VariableId v : operands_of(frame))
        if (frame.shape(v).tile->is_of_single_rows)
            out(fmt::format("for (int i = {0}; i < {0} + {1}; ++i) init_barrier(barriers + 8 * i, {2});",
                            first_barrier(frame, v), frame.place(v).stages,
                            frame.producer_role()->workers * frame.unit.warp_threads));
    // Stages are released by the consumer warps of the block, or of all blocks of a cluster.
    std::int64_t first = stages;
    const std::vector<VariableId> operands = operands_of(frame);
    for (std::size_t v = 0; v < operands.size() && count > stages; ++v) {
        const auto arrivals = [&](std::size_t of) {
            return frame.schedule.warps.value * (frame.shape(operands[of]).part ? frame.cluster_blocks() : 1);
        };
        const std::int64_t end = stages + first_barrier(frame, operands[v]) + frame.place(operands[v]).stages;
        if (v + 1 < operands.size() && arrivals(v + 1) == arrivals(v)) continue;
        out(fmt::format("for (int i = {}; i < {}; ++i) init_barrier(barriers + 8 * i, {});", first, end, arrivals(v)));
        first = end;
    }
    if (frame.is_dynamic()) out(fmt::format("init_tile_queue(queue, {});", frame.schedule.warps.value));
    out("fence_barriers();");
    out.close();
}

}  // namespace napkin::writers
