// Copies between the levels of memory, as the interpreter's warps make them.
#include <algorithm>
#include <cmath>

#include "lower/interpret_state.hpp"
#include "schedule/fragment_registers.hpp"
#include "schedule/gathered.hpp"
#include "support/ranges.hpp"

namespace napkin::lower::interpreter {
namespace {

void write(Cta& cta, const BulkCopy& copy, bool is_late) {
    for (std::int64_t r = 0; r < copy.rows; ++r)
        for (std::int64_t c = 0; c < copy.width; ++c)
            cta.shared.write(copy.to + r * operand_row_bytes + c * copy.bytes, copy.bytes,
                             is_late ? nothing : copy.values[static_cast<std::size_t>(r * copy.width + c)]);
}

void count(Warp& warp, const BulkCopy& copy) {
    warp.grid.moved.global_to_shared.add(copy.moved, copy.bytes);
    warp.grid.moved.past_tiles.add(copy.past_tile, copy.bytes);
}

/// Coordinates at which the operand's tile begins in its array.
std::vector<std::int64_t> begin_in_array(const Warp& warp, VariableId operand, ScopeId scope, const Tile& at) {
    std::vector<std::int64_t> point(at.begin.size(), 0);
    for (std::size_t a = 0; a < point.size(); ++a)
        if (warp.kernel.span(AxisId::of(a), scope).begins) point[a] = at.begin[a];
    return warp.index_in_array(operand, warp.coordinates(warp.grid.variable(operand).dims, point));
}

/// Coordinates in the array of a row of windows, as the copy walks to it from the tile's first; of its first column.
std::vector<std::int64_t> window_row(const Warp& warp, VariableId operand, const Tile& at_tile, ScopeId scope,
                                     std::int64_t row) {
    const WindowCopy& window = *warp.grid.fact(operand).window;
    std::vector<std::int64_t> point(at_tile.begin.size(), 0);
    for (std::size_t a = 0; a < point.size(); ++a)
        if (warp.kernel.span(AxisId::of(a), scope).begins) point[a] = at_tile.begin[a];
    std::vector<std::int64_t> out = warp.coordinates(warp.grid.variable(operand).gathers, point);
    for (std::size_t d = window.dims.size(); d-- > 0;) {
        const WindowDimension& dim = window.dims[d];
        const std::int64_t first = value_at(dim.first, point, {});
        if (d == 0) {
            out[d] = first + row;
            break;
        }
        const std::int64_t steps = (first - dim.lower) / dim.stride + row,
                           size = warp.kernel.extent(
                               warp.kernel.program->diagram.array(warp.grid.variable(operand).array).axes[d]),
                           in_box = (size - 1 + dim.upper - dim.lower) / dim.stride + 1;
        out[d] = dim.lower + steps % in_box * dim.stride + value_at(dim.offset, point, {});
        row = steps / in_box;
    }
    return out;
}

/// Where a row of the operand's tile begins in its array. It may lie outside.
std::vector<std::int64_t> row_in_array(const Warp& warp, VariableId operand, ScopeId scope, const Tile& tile,
                                       std::int64_t row) {
    if (warp.grid.fact(operand).window) return window_row(warp, operand, tile, scope, row);
    std::vector<std::int64_t> begin = begin_in_array(warp, operand, scope, tile);
    const OperandTile& of = *warp.grid.fact(operand).tile;
    if (!of.is_of_single_rows) {
        begin[at(array_dimension(warp.kernel, operand, of.outer))] += row;
        return begin;
    }
    const std::vector<Index>& dims = warp.grid.variable(operand).dims;
    const AxisId axis = *running_axis(warp.kernel, dims[at(of.outer)], warp.kernel.layout(operand).scope);
    if (row >= tile.count[at(axis)]) return std::vector<std::int64_t>(begin.size(), -1);
    std::vector<std::int64_t> point = tile.begin;
    point[at(axis)] += row;
    return warp.index_in_array(operand, warp.coordinates(dims, point));
}

/// Rows of a panel of the operand's tile, from a row and a column on; zeros outside of the array.
BulkCopy panel_of(const Warp& warp, VariableId operand, ScopeId scope, const Tile& tile, std::int64_t first_row,
                  std::int64_t rows, std::int64_t column) {
    const VariableFact& f = warp.grid.fact(operand);
    const Variable& variable = warp.grid.variable(operand);
    const ArrayId array = variable.array;
    const auto size = [&](int d) { return range_of(variable.dims[at(d)], tile.begin, tile.count).size(); };
    const std::int64_t all_rows = size(f.tile->outer), all_columns = size(f.tile->inner);
    BulkCopy out{0, rows, f.tile->width, f.bytes, {}, 0, 0};
    const std::size_t columns = variable.gathers.empty() ? variable.dims.size() : variable.gathers.size();
    const std::size_t column_of = f.window ? columns - 1 : at(array_dimension(warp.kernel, operand, f.tile->inner));
    for (std::int64_t r = 0; r < rows; ++r) {
        std::vector<std::int64_t> place = row_in_array(warp, operand, scope, tile, first_row + r);
        place[column_of] += column;
        for (std::int64_t c = 0; c < f.tile->width; ++c, ++place[column_of]) {
            const auto cell = warp.grid.cell(array, place);
            out.values.push_back(cell ? warp.grid.memory[array][*cell] : 0);
            out.moved += cell ? 1 : 0;
            out.past_tile += cell && (first_row + r >= all_rows || column + c >= all_columns) ? 1 : 0;
        }
    }
    return out;
}

}  // namespace

/// One thread asks for a bulk copy of each panel. In a cluster it asks for its CTA's part of the tile, which goes to
/// the same place in all CTAs.
void copy_operand(Warp& warp, VariableId operand, ScopeId scope, std::int64_t stage, const Tile& at) {
    const VariableFact& f = warp.grid.fact(operand);
    MemoryBarrier& own = warp.cta.full[operand][static_cast<std::size_t>(stage)];
    own.bytes += f.tile->copied_bytes();
    own.arrive();
    const std::int64_t rank = warp.cta.rank, rows = f.part ? f.part->rows : f.tile->rows,
                       panels = f.part ? f.part->panels : f.tile->panels,
                       first_row = f.part && f.part->by_rows ? rows * rank : 0,
                       first_panel = f.part && !f.part->by_rows ? panels * rank : 0;
    for (std::int64_t p = first_panel; p < first_panel + panels; ++p) {
        BulkCopy copy = panel_of(warp, operand, scope, at, first_row, rows, p * f.tile->width);
        copy.to = warp.stage_byte(operand, stage) + p * f.tile->panel_bytes() + first_row * operand_row_bytes;
        for (Cta* cta : f.part ? warp.cta.cluster : std::vector<Cta*>{&warp.cta}) {
            if (cta->has_ended()) throw Stop{"bad-access", "a bulk copy goes to a CTA that has ended"};
            MemoryBarrier& full = cta->full[operand][static_cast<std::size_t>(stage)];
            if (!full.is_made) throw Stop{"bad-access", "a bulk copy tells a barrier that is not made"};
            count(warp, copy);
            write(*cta, copy, warp.grid.is_late);
            if (warp.grid.is_late) {
                full.pending.push_back(copy);
                continue;
            }
            full.bytes -= rows * operand_row_bytes;
            full.settle();
        }
    }
}

/// Eight threads copy a row of a panel, 16 bytes each.
void copy_own_part(Warp& warp, VariableId operand, ScopeId scope, std::int64_t stage, const Tile* at) {
    std::vector<BulkCopy>& group = warp.own_copies.emplace_back();
    if (!at) return;
    constexpr std::int64_t threads_a_row = 8;
    const VariableFact& f = warp.grid.fact(operand);
    const std::int64_t rows_of_warp = Warp::lanes / threads_a_row;
    for (std::int64_t p = 0; p < f.tile->panels; ++p)
        for (std::int64_t r = warp.number * rows_of_warp; r < f.tile->rows; r += warp.warps() * rows_of_warp) {
            const std::int64_t rows = std::min(rows_of_warp, f.tile->rows - r);
            BulkCopy copy = panel_of(warp, operand, scope, *at, r, rows, p * f.tile->width);
            copy.to = warp.stage_byte(operand, stage) + p * f.tile->panel_bytes() + r * operand_row_bytes;
            count(warp, copy);
            write(warp.cta, copy, warp.grid.is_late);
            group.push_back(std::move(copy));
        }
}

void complete_own_copies(Warp& warp, std::int64_t outstanding) {
    for (; std::ssize(warp.own_copies) > outstanding; warp.own_copies.pop_front())
        for (const BulkCopy& copy : warp.own_copies.front())
            if (warp.grid.is_late) write(warp.cta, copy, false);
}

// ---- tiles of the arena
// ------------------------------------------------------------

namespace {

/// Calls f(coordinates) for the warp's share of the variable's box. Each step has its own order of warps, so that a
/// missing barrier between two steps shows.
template <class F>
void for_each_of_box(Warp& warp, const Step& step, F f) {
    const VariableId v = variable_of(step);
    const Tile& tile = warp.at[at(step.scope)];
    std::vector<std::int64_t> count, low;
    for (const Index& dim : warp.grid.variable(v).dims) {
        const Interval range = range_of(dim, tile.begin, tile.count);
        low.push_back(range.low), count.push_back(range.size());
    }
    // A warp stores the sums that it has added up.
    std::int64_t number = warp.grid.fact(v).added_by.value_or(warp.kernel.number(step));
    std::vector<std::int64_t> there(low.size());
    for_each_point(count, [&](const std::vector<std::int64_t>& point) {
        for (std::size_t d = 0; d < point.size(); ++d) there[d] = low[d] + point[d];
        const auto& lanes = warp.grid.fact(v).lanes;
        const bool is_turn = number++ % warp.warps() == warp.number,
                   is_single_store = lanes && lanes->axis < 0 && std::holds_alternative<Store>(*step.statement);
        if (is_single_store ? warp.number == 0 : lanes ? warp.has_lane(*lanes, warp.place_in_lanes(v, there)) : is_turn)
            f(there);
    });
}

/// Whether the coordinates of a box lie inside of what it is a box of.
bool is_inside(const Warp& warp, VariableId v, const std::vector<std::int64_t>& box) {
    const Variable& variable = warp.grid.variable(v);
    for (std::size_t d = 0; d < box.size(); ++d)
        if (box[d] < 0 || box[d] >= warp.kernel.extent(variable.limits[d])) return false;
    return true;
}

}  // namespace

void clear_tile(Warp& warp, const Step& load) {
    const VariableId v = variable_of(load);
    if (warp.grid.fact(v).is_view || !warp.kernel.facts(v).is_cut) return;
    for_each_of_box(warp, load, [&](const std::vector<std::int64_t>& box) {
        if (!is_inside(warp, v, box)) warp.write_arena(v, warp.byte_of(v, box), Number::real(0));
    });
}

void load_tile(Warp& warp, const Step& load) {
    const VariableId v = variable_of(load);
    const VariableFact& f = warp.grid.fact(v);
    if (f.is_view) return;  // it is read where it lies
    for_each_of_box(warp, load, [&](const std::vector<std::int64_t>& box) {
        if (!is_inside(warp, v, box)) return;
        const auto place = warp.place_in_array(v, box);
        const Number value = place ? warp.grid.load(warp.grid.variable(v).array, *place) : Number::real(0);
        Moved& moved = f.lanes ? warp.grid.moved.global_to_registers : warp.grid.moved.global_to_shared;
        // What every warp loads for itself counts once.
        moved.add(place && !(f.lanes && f.lanes->axis < 0 && warp.number > 0) ? 1 : 0, f.bytes);
        f.lanes ? warp.write_lanes(v, box, value) : warp.write_arena(v, warp.byte_of(v, box), value);
    });
}

namespace {

void store_arena(Warp& warp, const Step& store, VariableId v) {
    for_each_of_box(warp, store, [&](const std::vector<std::int64_t>& box) {
        const bool in_threads = warp.grid.fact(v).is_in_threads();
        if (!warp.grid.store(warp.grid.variable(v).array, box,
                             in_threads ? warp.read_lanes(v, box) : warp.read_arena(v, warp.byte_of(v, box))))
            throw InternalError("interpret: a store leaves its array");
        (in_threads ? warp.grid.moved.registers_to_global : warp.grid.moved.shared_to_global).add(1, warp.grid.fact(v).bytes);
    });
}

/// Calls f(lane, number, row and column in the tile) for the values that the warp has of a variable.
template <class F>
void for_each_fragment(Warp& warp, VariableId v, ScopeId scope, F f) {
    const VariableFact& fact = warp.grid.fact(v);
    const RegisterTile& tile = warp.fragments();
    if (!fact.has_rows) unsupported("a store of " + warp.grid.variable(v).name + ", which has no rows");
    const std::int64_t n = fact.columns < 0 ? 0 : columns_of(warp.kernel, fact.columns, scope);
    for (std::int64_t lane = 0; lane < Warp::lanes; ++lane)
        for_each_own_value(tile, true, n, [&](std::int64_t r, std::int64_t j, std::int64_t c) {
            f(lane, number_in_thread(warp, v, nullptr, r, j, c),
              warp.number * tile.rows + warp.grid.lane_row[at(lane)] + warp.grid.row_step * r,
              tile.columns * j + warp.grid.lane_column[at(lane)] + warp.grid.column_step * c);
        });
}

}  // namespace

void store_tile(Warp& warp, const Step& store) {
    const VariableId v = variable_of(store);
    const VariableFact& f = warp.grid.fact(v);
    if (!f.in_registers) return store_arena(warp, store, v);
    const Tile& tile = warp.at[at(store.scope)];
    const AxisId rows = warp.kernel.schedule.mma_m;
    for_each_fragment(warp, v, store.scope, [&](std::int64_t lane, std::int64_t n, std::int64_t row, std::int64_t column) {
        if (f.columns < 0 && lane % warp.fragments().threads_a_row() != 0) return;
        if (row >= tile.count[at(rows)] || (f.columns >= 0 && column >= tile.count[at(f.columns)])) return;
        std::vector<std::int64_t> point = tile.begin;
        point[at(rows)] += row;
        if (f.columns >= 0) point[at(f.columns)] += column;
        if (!warp.grid.store(warp.grid.variable(v).array, warp.coordinates(warp.grid.variable(v).dims, point),
                             f.number(warp.value(v, lane, n))))
            throw InternalError("interpret: a store leaves its array");
        warp.grid.moved.registers_to_global.add(1, f.bytes);
    });
}

// ---- staging tiles
// ------------------------------------------------------------

namespace {
std::int64_t staging_byte(const Warp& warp, VariableId v, std::int64_t tile) {
    const std::int64_t held = warp.kernel.place(v).staging_tiles;
    return warp.kernel.layout(v).offset * warp.kernel.value_bytes() +
           staging_bytes(warp.kernel) * (held * warp.number + tile % held);
}

/// The staging tile goes to memory as it is now. What lies past the end of the array does not.
void send(Warp& warp, const Step& store, std::int64_t tile) {
    const VariableId v = variable_of(store);
    const VariableFact& f = warp.grid.fact(v);
    const StagingTiles tiles = *warp.grid.fact(v).staging;
    const std::int64_t from = staging_byte(warp, v, tile);
    std::vector<std::int64_t> begin = begin_in_array(warp, v, store.scope, warp.at[at(store.scope)]);
    const std::int64_t row = begin[at(tiles.rows)] + warp.fragments().rows * warp.number,
                       column = begin[at(tiles.columns)] + tiles.width * tile;
    for (std::int64_t r = 0; r < warp.fragments().rows; ++r)
        for (std::int64_t c = 0; c < tiles.width; ++c) {
            begin[at(tiles.rows)] = row + r, begin[at(tiles.columns)] = column + c;
            const double value = warp.cta.shared.read(from + r * operand_row_bytes + c * f.bytes);
            if (warp.grid.store(warp.grid.variable(v).array, begin, Number::real(value)))
                warp.grid.moved.shared_to_global.add(1, f.bytes);
        }
}
}  // namespace

void write_staging(Warp& warp, const Step& store) {
    const VariableId v = variable_of(store);
    const VariableFact& f = warp.grid.fact(v);
    const StagingTiles tiles = *warp.grid.fact(v).staging;
    const std::int64_t to = staging_byte(warp, v, warp.staging_tile), first = tiles.width * warp.staging_tile;
    const DType type = warp.grid.variable(v).memory_type;
    for_each_fragment(warp, v, store.scope, [&](std::int64_t lane, std::int64_t n, std::int64_t row, std::int64_t column) {
        if (column < first || column >= first + tiles.width) return;
        const std::int64_t in_warp = row - warp.number * warp.fragments().rows;
        warp.cta.shared.write(to + in_warp * operand_row_bytes + (column - first) * f.bytes, f.bytes,
                              round_to(type, warp.value(v, lane, n)));
        warp.grid.moved.registers_to_shared.add(1, f.bytes);
    });
    warp.unfenced.emplace_back(to, to + staging_bytes(warp.kernel));
}

/// Bulk copies do not see what threads have written before a proxy fence. A late one reads the tile when it is waited
/// for.
void send_staging(Warp& warp, const Step& store) {
    const std::int64_t from = staging_byte(warp, variable_of(store), warp.staging_tile);
    if (warp.grid.is_late && any_of(warp.unfenced, [&](const auto& bytes) { return bytes.first == from; }))
        for (std::int64_t b = from; b < from + staging_bytes(warp.kernel); ++b) warp.cta.shared.write(b, 1, nothing);
    warp.stores.emplace_back(warp.kernel.number(store), warp.staging_tile);
    warp.store_tiles.push_back(warp.at[at(store.scope)]);
    if (!warp.grid.is_late) complete_stores(warp, 0);
}

void complete_stores(Warp& warp, std::int64_t outstanding) {
    for (; std::ssize(warp.stores) > outstanding; warp.stores.pop_front(), warp.store_tiles.pop_front()) {
        const Step& store = warp.kernel.step(warp.stores.front().first);
        Tile& now = warp.at[at(store.scope)];
        std::swap(now, warp.store_tiles.front());
        send(warp, store, warp.stores.front().second);
        std::swap(now, warp.store_tiles.front());
    }
}

// ---- rows that are read in place
// ------------------------------------------------------------

namespace {

/// Each thread reads the values of its rows, of each part of the columns where these differ.
std::vector<Number> rows_at(Warp& warp, VariableId v, ScopeId scope, const Tile& tile) {
    const VariableFact& f = warp.grid.fact(v);
    const std::int64_t rows = warp.fragments().rows_a_thread, parts = f.row_values / rows;
    const AxisId m = warp.kernel.schedule.mma_m;
    std::vector<Number> out;
    for (std::int64_t lane = 0; lane < Warp::lanes; ++lane)
        for (std::int64_t p = 0; p < parts; ++p)
            for (std::int64_t r = 0; r < rows; ++r) {
                std::vector<std::int64_t> point = tile.begin;
                const std::int64_t row = warp.number * warp.fragments().rows + warp.grid.lane_row[at(lane)] +
                                         warp.grid.row_step * r;
                if (warp.kernel.span(m, scope).tile > 1) point[at(m)] += std::min(row, tile.count[at(m)] - 1);
                if (parts > 1) {
                    const AxisId axis = warp.kernel.column_parts->axis;
                    point[at(axis)] = std::min(point[at(axis)] + warp.kernel.column_parts->columns * p,
                                               warp.kernel.extent(axis) - 1);
                }
                const Variable& variable = warp.grid.variable(v);
                out.push_back(warp.grid.load(variable.array, warp.coordinates(variable.dims, point)));
            }
    warp.grid.moved.global_to_registers.add(std::ssize(out), f.bytes);
    return out;
}

const ScheduledLoop& loop_of(const Warp& warp, ScopeId scope) {
    return *find_if(warp.kernel.loops, [&](const ScheduledLoop& l) { return l.scope == scope; });
}

/// The rows of the iteration that begins there. Past the end the last ones are read, and nobody uses them.
std::vector<Number> rows_of_iteration(Warp& warp, const Step& load, std::int64_t begin) {
    const ScheduledLoop& loop = loop_of(warp, load.scope);
    const AxisId axis = loop.loop->axis;
    Tile tile = warp.at[at(loop.outer_scope)];
    tile.begin[at(axis)] = std::min(begin, warp.kernel.extent(axis) - 1);
    tile.count[at(axis)] = 1;
    return rows_at(warp, variable_of(load), load.scope, tile);
}

}  // namespace

void load_rows(Warp& warp, const Step& load) {
    const VariableId v = variable_of(load);
    const int ahead = warp.grid.program.shapes.steps[warp.kernel.number(load)].iterations_ahead;
    if (ahead == 0) {
        warp.rows[v] = rows_at(warp, v, load.scope, warp.at[at(load.scope)]);
        return;
    }
    std::deque<std::vector<Number>>& next = warp.rows_ahead[v];
    warp.rows[v] = next.front();
    next.pop_front();
    const AxisId axis = loop_of(warp, load.scope).loop->axis;
    next.push_back(rows_of_iteration(
        warp, load, warp.at[at(load.scope)].begin[at(axis)] + ahead * warp.kernel.span(axis, load.scope).tile));
}

void load_first_rows(Warp& warp, const Step& load, std::int64_t begin) {
    const std::int64_t tile = warp.kernel.span(loop_of(warp, load.scope).loop->axis, load.scope).tile;
    std::deque<std::vector<Number>>& next = warp.rows_ahead[variable_of(load)];
    next.clear();
    for (int turn = 0; turn < warp.grid.program.shapes.steps[warp.kernel.number(load)].iterations_ahead; ++turn)
        next.push_back(rows_of_iteration(warp, load, begin + turn * tile));
}

// ---- stream-K
// ------------------------------------------------------------

std::int64_t pair_of(const Warp& warp) {
    return (warp.tile - warp.grid.stream_k->rounds * warp.grid.stream_k->blocks) * warp.warps() + warp.number;
}

void leave_states(Warp& warp) {
    for (const StateMerge& merge : warp.kernel.kernel->merges) {
        warp.grid.states[{pair_of(warp), merge.state}] = warp.registers[merge.state];
        warp.grid.moved.registers_to_global.add(std::ssize(warp.registers[merge.state]), 4);
    }
}

}  // namespace napkin::lower::interpreter
