#include "lower/interpret_tiles.hpp"

#include <algorithm>
#include <map>

#include "schedule/warpgroups.hpp"
#include "support/ranges.hpp"

namespace napkin::lower::interpreter {

void prepare(const Grid& grid, Cta& cta) {
    const ScheduledKernel& kernel = grid.kernel;
    cta.full.resize(kernel.layouts.size()), cta.empty.resize(kernel.layouts.size());
    for (const VariableId v : kernel.layouts.ids())
        if (kernel.is_operand(v)) {
            cta.full[v].resize(static_cast<std::size_t>(kernel.place(v).stages));
            cta.empty[v].resize(static_cast<std::size_t>(kernel.place(v).stages));
        }
    if (kernel.on_tensor_cores())
        cta.ping_pong.resize(
            static_cast<std::size_t>(ceil_div(kernel.schedule.warps.value, kernel.unit.matrix.warps_together())));
}

/// A stage is full by the arrival of the one who copies. It is empty by those of all consumer warps.
void Tiles::make_barriers() {
    const std::int64_t warps = warp_.warps();
    for (const VariableId v : kernel_.layouts.ids()) {
        for (MemoryBarrier& b : warp_.cta.full[v]) b = {.is_made = true};
        const std::int64_t ctas = grid_.fact(v).part ? kernel_.cluster_blocks() : 1;
        for (MemoryBarrier& b : warp_.cta.empty[v]) b = {.is_made = true, .needed = warps * ctas};
    }
    for (Cta::QueueStage& stage : warp_.cta.queue)
        stage.full = {.is_made = true}, stage.empty = {.is_made = true, .needed = warps};
}

void Tiles::complete_copies(MemoryBarrier& barrier) {
    for (; !barrier.pending.empty(); barrier.pending.pop_front()) {
        const BulkCopy& copy = barrier.pending.front();
        for (std::int64_t r = 0; r < copy.rows; ++r)
            for (std::int64_t c = 0; c < copy.width; ++c)
                warp_.cta.shared.write(copy.to + r * operand_row_bytes + c * copy.bytes, copy.bytes,
                                       copy.values[static_cast<std::size_t>(r * copy.width + c)]);
        barrier.bytes -= copy.rows * operand_row_bytes;
    }
    barrier.settle();
}

// ---- output tiles
// ------------------------------------------------------------

/// The CTAs of a section begin behind the one that ended the section before (prelude of CUDA, rounds of groups).
std::int64_t Tiles::place_of_block(std::int64_t section) const {
    const std::int64_t grid = kernel_.num_blocks();
    return (warp_.cta.number + grid - section % grid) % grid;
}
std::int64_t Tiles::first_of_sections(std::int64_t section) const {
    const std::int64_t tiles = kernel_.num_groups(), size = tiles / kernel_.num_sections();
    for (; section < tiles; section += size)
        if (const std::int64_t place = place_of_block(section); place < size) return section + place;
    return tiles;
}

bool Tiles::first(TileOrder order) {
    warp_.tile = warp_.cta.number;
    switch (order) {
        case TileOrder::range: unsupported("tiles of a CPU's threads");
        case TileOrder::alternating: warp_.tile = first_of_sections(0); break;
        case TileOrder::stream_k:
            if (grid_.stream_k->rounds == 0) {
                rest_from(grid_.stream_k->begin(warp_.cta.number));
                if (warp_.share_begin == warp_.share_end) return false;
            } else {
                is_split_ = false, warp_.share_begin = 0;
                warp_.share_end = grid_.stream_k->chunks * kernel_
                                                               .span(kernel_.loop(grid_.stream_k->loop).loop->axis,
                                                                     kernel_.loop(grid_.stream_k->loop).scope)
                                                               .tile;
            }
            break;
        case TileOrder::strided:
        case TileOrder::queue: break;
    }
    if (warp_.tile >= kernel_.num_groups()) return false;
    stand();
    return true;
}

bool Tiles::next(TileOrder order) {
    const std::int64_t grid = kernel_.num_blocks(), tiles = kernel_.num_groups();
    switch (order) {
        case TileOrder::queue: ++warp_.queue_iteration; break;  // the tile's number has been read
        case TileOrder::alternating: {
            const std::int64_t size = tiles / kernel_.num_sections(), section = warp_.tile - warp_.tile % size,
                               place = place_of_block(section);
            const bool is_back = (warp_.tile - section) / grid % 2 != 0;
            const std::int64_t next = warp_.tile + 2 * (is_back ? place + 1 : grid - place) - 1;
            warp_.tile = next < section + size ? next : first_of_sections(section + size);
            break;
        }
        case TileOrder::stream_k: {
            const StreamK& cut = *grid_.stream_k;
            const ScheduledLoop& loop = kernel_.loop(cut.loop);
            const std::int64_t whole = cut.rounds * cut.blocks;
            if (warp_.tile + cut.blocks < whole) {
                warp_.tile += cut.blocks;
            } else {
                rest_from(warp_.tile < whole ? cut.begin(warp_.cta.number)
                                             : (warp_.tile - whole) * cut.chunks +
                                                   warp_.share_end / kernel_.span(loop.loop->axis, loop.scope).tile);
                if (warp_.share_begin == warp_.share_end) return false;
            }
            break;
        }
        default: warp_.tile += grid; break;
    }
    if (warp_.tile >= tiles) return false;
    stand();
    return true;
}

/// What the CTA's share of the split tiles has of one tile, from a K block on.
void Tiles::rest_from(std::int64_t place) {
    const StreamK& cut = *grid_.stream_k;
    const ScheduledLoop& loop = kernel_.loop(cut.loop);
    const std::int64_t size = kernel_.span(loop.loop->axis, loop.scope).tile, group = place / cut.chunks,
                       first = place % cut.chunks,
                       n = std::min(cut.chunks - first, cut.begin(warp_.cta.number + 1) - place);
    warp_.tile = cut.rounds * cut.blocks + group;
    is_split_ = n < cut.chunks;
    warp_.share_begin = first * size, warp_.share_end = (first + n) * size;
}

/// The digits of the tile's number say where it begins along each axis.
void Tiles::stand() {
    Tile& tile = warp_.at[0];
    std::map<AxisId, std::int64_t> place;
    std::int64_t below = 1;
    for (auto it = kernel_.group_order.rbegin(); it != kernel_.group_order.rend(); ++it) {
        std::int64_t digit = warp_.tile / below % it->tiles;
        if (it->is_backward) digit = it->tiles - 1 - digit;
        below *= it->tiles;
        place[it->axis] += digit * it->stride;
    }
    for (std::size_t a = 0; a < tile.begin.size(); ++a) {
        const AxisId axis = AxisId::of(a);
        const std::int64_t size = kernel_.span(axis, ScopeId(0)).tile;
        const auto found = place.find(axis);
        tile.cut(axis, found == place.end() ? 0 : found->second * size, size, kernel_.extent(axis));
    }
    warp_.ranges.clear();
}

// ---- K blocks
// ------------------------------------------------------------

BlockRange& Tiles::range(LoopId loop) {
    const auto [found, added] = warp_.ranges.try_emplace(loop);
    if (added) found->second.end = kernel_.extent(kernel_.loop(loop).loop->axis);
    return found->second;
}

void Tiles::bounds(LoopId loop) {
    const ScheduledLoop& node = kernel_.loop(loop);
    const AxisId axis = node.loop->axis;
    const std::int64_t extent = kernel_.extent(axis), size = kernel_.span(axis, node.scope).tile;
    BlockRange r{.end = extent};
    if (grid_.stream_k) r.begin = warp_.share_begin, r.end = std::min(warp_.share_end, extent);
    if (const StreamParts& parts = kernel_.kernel->parts; runs_a_part(kernel_, node)) {
        const std::int64_t chunks = ceil_div(extent, size), n = kernel_.extent(parts.part),
                           part = warp_.at[at(node.outer_scope)].begin[at(parts.part)];
        r.begin = part * chunks / n * size, r.end = std::min((part + 1) * chunks / n * size, extent);
    }
    cut_by_masks(loop, r.begin, r.end, nullptr);
    if (const KBlockRange* of = grid_.ranges_of(loop); of && !warp_.is_producer && !have_own_k_blocks(kernel_, node))
        r.whole_first = whole_.whole_first, r.whole_last = whole_.whole_last;
    warp_.ranges[loop] = r;
}

void Tiles::own_bounds(LoopId loop) {
    BlockRange& r = range(loop);
    const std::int64_t rows = kernel_.unit.matrix.warps_together() * kernel_.fragments().rows;
    const std::pair<std::int64_t, std::int64_t> own{rows * warp_.warpgroup(), rows};
    r.own_first = r.begin, r.own_last = r.end;
    cut_by_masks(loop, r.own_first, r.own_last, &own);
    if (grid_.ranges_of(loop)) r.whole_first = whole_.whole_first, r.whole_last = whole_.whole_last;
    r.all_end = r.end, r.at = r.begin, r.end = r.own_last, r.has_own = true;
}

/// K blocks that masks leave to the rows at hand.
void Tiles::cut_by_masks(LoopId loop, std::int64_t& begin, std::int64_t& end,
                         const std::pair<std::int64_t, std::int64_t>* own) {
    const ScheduledLoop& node = kernel_.loop(loop);
    const AxisId axis = node.loop->axis, rows = kernel_.schedule.mma_m;
    const std::int64_t size = kernel_.span(axis, node.scope).tile;
    const Tile& tile = warp_.at[at(node.outer_scope)];
    if (own && own->first >= tile.count[at(rows)]) end = begin;
    for (const Affine& form : node.loop->support) {
        const std::int64_t c = form.coefficient(axis);
        Affine rest = form;
        rest.add(axis, -c);
        const std::int64_t most = grid_.bound(rest, tile, true, own);
        if (c == 0 && most < 0) end = 0;
        if (c < 0) end = std::min(end, std::max<std::int64_t>(floor_div(most, -c) + 1, 0));
        if (c > 0)
            begin = std::max(begin, std::min(-floor_div(most, c) / size * size, round_up(kernel_.extent(axis), size)));
    }
    const KBlockRange* of = grid_.ranges_of(loop);
    if (!of) return;
    const KBlockRanges& ranges = *grid_.program.shapes.loops[loop].ranges;
    std::int64_t number = 0;
    for (const AxisId other : ranges.others)
        number = number * kernel_.num_tiles(other) + tile.begin[at(other)] / kernel_.span(other, ScopeId(0)).tile;
    number = number * ranges.tiles + tile.begin[at(rows)] / ranges.rows + (own ? warp_.warpgroup() : 0);
    whole_ = of[number];
    for (std::int64_t i = 1; i < (own ? 1 : kernel_.span(rows, ScopeId(0)).tile / ranges.rows); ++i) {
        const KBlockRange& next = of[number + i];
        whole_ = {std::min(whole_.first, next.first), std::max(whole_.last, next.last),
                  std::max(whole_.whole_first, next.whole_first), std::min(whole_.whole_last, next.whole_last)};
    }
    begin = std::max(begin, whole_.first), end = std::min(end, whole_.last);
}

// ---- the queue of tiles
// ------------------------------------------------------------

Cta::QueueStage& Tiles::queue_stage() const {
    return warp_.cta.queue[static_cast<std::size_t>(warp_.queue_iteration % queue_stages)];
}
/// Each CTA asks once after each of its tiles, so the counter is 0 again behind the last one.
void Tiles::ask(bool is_due) {
    if (!is_due) return;
    claimed_ = kernel_.num_blocks() + grid_.next_claim;
    grid_.next_claim = (grid_.next_claim + 1) % kernel_.num_groups();
    has_asked_ = true;
}
void Tiles::write_number() { warp_.tile = queue_stage().tile = claimed_; }
void Tiles::read_number() {
    warp_.tile = queue_stage().tile;
    if (warp_.tile < 0) throw Stop{"bad-access", "a tile's number is read that nobody has written"};
}

}  // namespace napkin::lower::interpreter
