#include "tile/exact.hpp"

#include <map>
#include <set>

#include "diagram/box.hpp"
#include "support/ranges.hpp"
#include "support/result.hpp"
#include "support/saturate.hpp"

namespace napkin {
namespace {
__extension__ using Wide = __int128;

/// Number of values in the box that the indices span over a tile of these extents that begins at 0.
std::int64_t box(const std::vector<Index>& dims, const std::vector<std::int64_t>& tile) {
    std::int64_t size = 1;
    for (const Index& dim : dims) {
        if (!dim.affine()) {
            size = saturating_mul(size, range_of(dim, std::vector<std::int64_t>(tile.size(), 0), tile).size());
            continue;
        }
        std::int64_t span = 1;
        for (const auto& [axis, c] : dim.affine()->terms)
            span = saturating_add(span, saturating_mul(c < 0 ? -c : c, tile[at(axis)] - 1));
        size = saturating_mul(size, span);
    }
    return size;
}

std::int64_t box_at(const std::vector<Index>& dims, const std::vector<std::int64_t>& begin,
                    const std::vector<std::int64_t>& tile) {
    std::int64_t size = 1;
    for (const Index& dim : dims) size = saturating_mul(size, range_of(dim, begin, tile).size());
    return size;
}

/// Narrows the range to the K blocks in which base + c·x ≥ 0 for some x. K block j holds the x of [j·s, min((j+1)·s,
/// extent)).
template <class Range>
void restrict_range(Range& range, std::int64_t base, std::int64_t c, std::int64_t s, std::int64_t extent) {
    if (c == 0) {
        if (base < 0) range.end = range.begin;
    } else if (c > 0) {
        // The first K block that counts holds the smallest x with base + c·x ≥ 0.
        const std::int64_t first = std::max<std::int64_t>(0, -floor_div(base, c));
        if (first >= extent)
            range.end = range.begin;
        else
            range.begin = std::max(range.begin, first / s);
    } else {
        const std::int64_t last = floor_div(base, -c);
        range.end = last < 0 ? range.begin : std::min(range.end, last / s + 1);
    }
    range.end = std::max(range.end, range.begin);
}

}  // namespace

std::int64_t KnownCounts::of(std::vector<std::int64_t> question, const std::function<std::int64_t()>& find) {
    {
        const std::lock_guard lock(mutex_);
        if (const auto found = known_.find(question); found != known_.end()) return found->second;
    }
    const std::int64_t count = find();
    const std::lock_guard lock(mutex_);
    return known_.emplace(std::move(question), count).first->second;
}

std::shared_ptr<const RunningKBlocks> KnownCounts::running(std::vector<std::int64_t> question,
                                                           const std::function<RunningKBlocks()>& find) {
    {
        const std::lock_guard lock(mutex_);
        if (const auto found = running_.find(question); found != running_.end()) return found->second;
    }
    auto running = std::make_shared<const RunningKBlocks>(find());
    const std::lock_guard lock(mutex_);
    return running_.emplace(std::move(question), std::move(running)).first->second;
}

TileCounter::TileCounter(const Diagram& diagram, const Liveness& live, const Extents& extents, const TileSizes& sizes,
                         std::int64_t walk_limit, const TileSizes* core, KnownCounts* known)
    : diagram_(diagram), live_(live), extents_(extents), sizes_(sizes), walk_limit_(walk_limit), known_(known) {
    if (live.parts.any()) {
        sizes_.group[live.parts.part] = 1;
        part_k_block_ = k_block_of(live.parts.axis, false, core ? *core : sizes, extents);
    }
    for (const AxisId axis : live.group_axes)
        if (is_grouped(axis)) grouped_.push_back(axis);
    for (const CoreLoop& l : live.loops) {
        internal_check(l.is_sub || !is_grouped(l.axis), "cost: a streamed axis is grouped in the same kernel");
        runs_.push_back(l.is_sub ? KBlockRuns{} : count_runs(l));
    }
}

int TileCounter::stream_of(int id) const {
    while (id >= 0 && loop(id).is_sub) id = loop(id).outer;
    return id;
}

std::vector<int> TileCounter::subloops_of(int id) const {
    std::vector<int> out;
    for (; id >= 0 && loop(id).is_sub; id = loop(id).outer) out.insert(out.begin(), id);
    return out;
}

std::int64_t TileCounter::num_tiles(AxisId axis) const { return ceil_div(extent(axis), cut(axis, -1)); }

std::int64_t TileCounter::cut(AxisId axis, int id) const {
    for (; id >= 0; id = loop(id).outer)
        if (loop(id).axis == axis) return k_block_of(axis, loop(id).is_sub, sizes_, extents_);
    return is_grouped(axis) ? sizes_.group[axis] : extent(axis);
}

std::int64_t TileCounter::groups() const {
    std::int64_t groups = 1;
    for (const AxisId axis : grouped_) groups = saturating_mul(groups, num_tiles(axis));
    return groups;
}

template <class F>
void TileCounter::walk_groups(const std::vector<AxisId>& axes, const F& f) const {
    // A step past 1 visits every step-th tile and always the last one, which may be ragged.
    std::vector<std::int64_t> step(axes.size(), 1);
    std::int64_t visits = 1;
    for (const AxisId axis : axes) visits = saturating_mul(visits, num_tiles(axis));
    for (std::size_t i = 0; i < step.size() && visits > walk_limit_; ++i) {
        const std::int64_t tiles = num_tiles(axes[i]);
        step[i] = std::min(tiles, ceil_div(visits, std::max<std::int64_t>(1, walk_limit_)));
        visits = saturating_mul(visits / tiles, ceil_div(tiles, step[i]));
    }
    std::vector<std::int64_t> begin(extents_.size(), 0), tile = extents_;
    const auto walk = [&](const auto& self, std::size_t next, std::int64_t weight) -> void {
        if (next == axes.size()) return f(begin, tile, weight);
        const AxisId axis = axes[next];
        const std::int64_t g = cut(axis, -1), tiles = num_tiles(axis);
        for (std::int64_t t = 0; t < tiles;) {
            const std::int64_t stands_for = t == tiles - 1 ? 1 : std::min(step[next], tiles - 1 - t);
            begin[at(axis)] = t * g;
            tile[at(axis)] = std::min(g, extent(axis) - t * g);
            self(self, next + 1, saturating_mul(weight, stands_for));
            t += stands_for;
        }
        begin[at(axis)] = 0, tile[at(axis)] = extent(axis);
    };
    walk(walk, 0, 1);
}

Stretch TileCounter::stretch_of(const CoreLoop& loop, std::int64_t first, std::int64_t last) const {
    const std::int64_t x = extent(loop.axis);
    if (!live_.parts.cut(loop.axis)) return {0, x};
    return stretch_of_parts(first, last, extent(live_.parts.part), x, part_k_block_);
}

TileCounter::ChunkRange TileCounter::k_blocks_in(const CoreLoop& loop, const std::vector<std::int64_t>& begin,
                                                 const std::vector<std::int64_t>& tile) const {
    const std::int64_t s = k_block_of(loop.axis, false, sizes_, extents_);
    const std::int64_t first = live_.parts.any() ? begin[at(live_.parts.part)] : 0;
    const Stretch all = stretch_of(loop, first, first + 1);
    ChunkRange range{0, ceil_div(all.end - all.begin, s), all, s};
    for (const Affine& form : loop.support) {
        Wide base = form.constant;
        for (const auto& [axis, c] : form.terms)
            base += Wide(c) * (axis == loop.axis ? all.begin
                               : c > 0           ? begin[at(axis)] + tile[at(axis)] - 1
                                                 : begin[at(axis)]);
        const Wide far = limits::max_size_product;
        restrict_range(range, static_cast<std::int64_t>(std::clamp(base, -far, far)), form.coefficient(loop.axis), s,
                       all.end - all.begin);
    }
    return range;
}

TileCounter::KBlockRuns TileCounter::count_runs(const CoreLoop& loop) const {
    KBlockRuns runs;
    for (const AxisId axis : grouped_) {
        const bool in_support = (live_.parts.cut(loop.axis) && axis == live_.parts.part) ||
                                any_of(loop.support, [&](const Affine& f) { return f.coefficient(axis) != 0; });
        if (in_support) runs.axes.push_back(axis);
    }
    const auto find = [&] { return count_running(loop, runs.axes); };
    if (!known_) {
        runs.running = std::make_shared<const RunningKBlocks>(find());
        return runs;
    }
    std::vector<std::int64_t> question{&loop - live_.loops.data(), walk_limit_, part_k_block_,
                                       k_block_of(loop.axis, false, sizes_, extents_)};
    for (const AxisId axis : runs.axes) question.push_back(axis), question.push_back(cut(axis, -1));
    runs.running = known_->running(std::move(question), find);
    return runs;
}

RunningKBlocks TileCounter::count_running(const CoreLoop& loop, const std::vector<AxisId>& axes) const {
    RunningKBlocks runs;
    // By the digits of which axes are ragged, the first one's the highest.
    std::map<std::uint64_t, Case> cases;
    const auto is_ragged = [&](const std::vector<std::int64_t>& tile, AxisId axis) {
        return tile[at(axis)] < cut(axis, -1);
    };
    walk_groups(axes, [&](const Numbers& begin, const Numbers& tile, std::int64_t weight) {
        const ChunkRange range = k_blocks_in(loop, begin, tile);
        std::int64_t& tiles = runs.tiles_by_chunks[range.end - range.begin];
        tiles = saturating_add(tiles, weight);
        if (range.end <= range.begin) return;
        std::uint64_t digits = 0;
        for (const AxisId axis : axes) digits = 2 * digits + (is_ragged(tile, axis) ? 1 : 0);
        Case& c = cases[digits];
        if (c.chunks.empty()) c.ragged = mapped<bool>(axes, [&](AxisId axis) { return is_ragged(tile, axis); });
        // All but the last one are full.
        const auto add = [&](std::int64_t size, std::int64_t times) {
            if (times > 0) c.chunks[size] = saturating_add(c.chunks[size], saturating_mul(weight, times));
        };
        add(range.size, range.end - range.begin - 1);
        add(range.size_of(range.end - 1), 1);
    });
    for (auto& [digits, c] : cases) runs.cases.push_back(std::move(c));
    return runs;
}

void TileCounter::for_each_place(const std::vector<AxisId>& axes, int id, Places f) const {
    const int stream = stream_of(id);
    const std::vector<int> subloops = subloops_of(id);
    std::vector<AxisId> walked;
    std::int64_t repeats = 1;  // groups that differ only along axes not asked for
    for (const AxisId axis : grouped_) {
        if (is_asked(axis, axes, subloops) || (stream >= 0 && contains(runs_[at(stream)].axes, axis)))
            walked.push_back(axis);
        else
            repeats = saturating_mul(repeats, num_tiles(axis));
    }
    std::vector<std::int64_t> from, part;
    const auto in_subloops = [&](const auto& self, std::size_t next, std::int64_t times) -> void {
        if (next == subloops.size()) return f(from, part, times);
        const AxisId axis = loop(subloops[next]).axis;
        const std::int64_t begin = from[at(axis)], end = begin + part[at(axis)], s = cut(axis, subloops[next]);
        for (std::int64_t chunk = begin; chunk < end; chunk += s) {
            from[at(axis)] = chunk, part[at(axis)] = std::min(s, end - chunk);
            self(self, next + 1, times);
        }
        from[at(axis)] = begin, part[at(axis)] = end - begin;
    };
    walk_groups(
        walked, [&](const std::vector<std::int64_t>& begin, const std::vector<std::int64_t>& tile, std::int64_t weight) {
            const std::int64_t times = saturating_mul(repeats, weight);
            from = begin, part = tile;
            if (stream < 0) return in_subloops(in_subloops, 0, times);
            const AxisId axis = loop(stream).axis;
            const ChunkRange range = k_blocks_in(loop(stream), begin, tile);
            const std::int64_t step = std::max<std::int64_t>(1, (range.end - range.begin) / walk_limit_);
            for (std::int64_t chunk = range.begin; chunk < range.end;) {
                const std::int64_t stands_for = chunk == range.end - 1 ? 1 : std::min(step, range.end - 1 - chunk);
                from[at(axis)] = range.from(chunk);
                part[at(axis)] = range.size_of(chunk);
                in_subloops(in_subloops, 0, saturating_mul(times, stands_for));
                chunk += stands_for;
            }
        });
}

void TileCounter::for_each_tile(const std::vector<AxisId>& axes, int id, Tiles f) const {
    std::vector<std::int64_t> tile = extents_;
    const int stream = stream_of(id);
    const std::vector<int> subloops = subloops_of(id);
    const std::vector<AxisId> none;
    const std::vector<AxisId>& fixed = stream >= 0 ? runs_[at(stream)].axes : none;

    std::vector<AxisId> free;
    free.reserve(grouped_.size());
    std::int64_t repeats = 1;  // groups that differ only along axes not asked for
    for (const AxisId axis : grouped_) {
        if (contains(fixed, axis)) continue;
        if (is_asked(axis, axes, subloops))
            free.push_back(axis);
        else
            repeats = saturating_mul(repeats, num_tiles(axis));
    }
    // Cuts `all` values of the axis into tiles of `size` and a ragged rest.
    const auto cut_axis = [&](AxisId axis, std::int64_t all, std::int64_t size, std::int64_t count, const auto& next) {
        if (all / size > 0) tile[at(axis)] = size, next(saturating_mul(count, all / size));
        if (all % size > 0) tile[at(axis)] = all % size, next(count);
        tile[at(axis)] = all;
    };
    const auto in_subloops = [&](const auto& self, std::size_t next, std::int64_t count) -> void {
        if (next == subloops.size()) return f(tile, count);
        const AxisId axis = loop(subloops[next]).axis;
        cut_axis(axis, tile[at(axis)], cut(axis, subloops[next]), count,
                 [&](std::int64_t times) { self(self, next + 1, times); });
    };
    const auto walk = [&](const auto& self, std::size_t next, std::int64_t count) -> void {
        if (next == free.size()) return in_subloops(in_subloops, 0, count);
        cut_axis(free[next], extent(free[next]), cut(free[next], -1), count,
                 [&](std::int64_t times) { self(self, next + 1, times); });
    };
    if (stream < 0) return walk(walk, 0, repeats);

    const AxisId x = loop(stream).axis;
    for (const Case& c : runs_[at(stream)].running->cases) {
        for (std::size_t i = 0; i < fixed.size(); ++i)
            tile[at(fixed[i])] = c.ragged[i] ? extent(fixed[i]) % cut(fixed[i], -1) : cut(fixed[i], -1);
        for (const auto& [size, count] : c.chunks) {
            tile[at(x)] = size;
            walk(walk, 0, saturating_mul(repeats, count));
        }
    }
}

void TileCounter::for_each_group(Groups f) const {
    std::vector<AxisId> walked;
    std::int64_t repeats = 1;
    for (const AxisId axis : grouped_) {
        if (any_of(runs_, [&](const KBlockRuns& r) { return contains(r.axes, axis); }))
            walked.push_back(axis);
        else
            repeats = saturating_mul(repeats, num_tiles(axis));
    }
    std::vector<std::int64_t> chunks(live_.loops.size());
    // One loop has counted them.
    if (live_.loops.size() == 1 && walked == runs_.front().axes) {
        for (const auto& [length, tiles] : runs_.front().running->tiles_by_chunks)
            chunks.front() = length, f(chunks, saturating_mul(repeats, tiles));
        return;
    }
    walk_groups(walked,
                [&](const std::vector<std::int64_t>& begin, const std::vector<std::int64_t>& tile, std::int64_t weight) {
                    for (std::size_t l = 0; l < chunks.size(); ++l) {
                        if (live_.loops[l].is_sub) continue;
                        const ChunkRange range = k_blocks_in(live_.loops[l], begin, tile);
                        chunks[l] = range.end - range.begin;
                    }
                    f(chunks, saturating_mul(repeats, weight));
                });
}

std::int64_t TileCounter::points(const std::vector<AxisId>& axes, int loop) const {
    std::int64_t total = 0;
    for_each_tile(axes, loop, [&](const std::vector<std::int64_t>& tile, std::int64_t count) {
        for (const AxisId axis : axes) count = saturating_mul(count, tile[at(axis)]);
        total = saturating_add(total, count);
    });
    return total;
}

/// Whether tiles of equal extents may hold different numbers of values. They may where an index is a quotient or a
/// remainder, or leaves the array.
bool TileCounter::depends_on_place(const CoreVariable& v, std::size_t d) const {
    if (const AxisId axis = v.dims[d].single_axis(); axis >= 0) return extent(axis) > extent(v.limits[d]);
    if (!v.dims[d].affine()) return true;
    const Interval range = range_of(*v.dims[d].affine(), std::vector<std::int64_t>(extents_.size(), 0), extents_);
    return range.low < 0 || range.high >= extent(v.limits[d]);
}
bool TileCounter::depends_on_place(const CoreVariable& v) const {
    for (std::size_t d = 0; d < v.dims.size(); ++d)
        if (depends_on_place(v, d)) return true;
    return false;
}

std::int64_t TileCounter::moved(const CoreVariable& v) const {
    if (depends_on_place(v)) {
        if (!known_) return moved_by_place(v);
        // The K block of the stream's parts is all that the count takes from the core's sizes.
        std::vector<std::int64_t> question{&v - live_.variables.data(), walk_limit_, part_k_block_};
        for (int id = v.loop; id >= 0; id = loop(id).outer)
            question.push_back(k_block_of(loop(id).axis, loop(id).is_sub, sizes_, extents_));
        // Tiles that differ along other axes alone move the same.
        const std::vector<AxisId> axes = axes_of(v.dims);
        const std::vector<int> subloops = subloops_of(v.loop);
        const int stream = stream_of(v.loop);
        std::int64_t repeats = 1;
        for (const AxisId axis : grouped_)
            if (is_asked(axis, axes, subloops) || (stream >= 0 && contains(runs_[at(stream)].axes, axis)))
                question.push_back(axis), question.push_back(cut(axis, -1));
            else
                repeats = saturating_mul(repeats, num_tiles(axis));
        constexpr std::int64_t too_many = -1;
        const std::int64_t once = known_->of(std::move(question), [&] {
            const std::int64_t all = moved_by_place(v);
            return all < limits::max_size_product ? all / repeats : too_many;
        });
        return once == too_many ? moved_by_place(v) : saturating_mul(once, repeats);
    }
    std::int64_t total = 0;
    for_each_tile(axes_of(v.dims), v.loop, [&](const std::vector<std::int64_t>& tile, std::int64_t count) {
        total = saturating_add(total, saturating_mul(count, box(v.dims, tile)));
    });
    return total;
}

std::int64_t TileCounter::moved_by_place(const CoreVariable& v) const {
    const std::vector<AxisId> axes = axes_of(v.dims);
    std::int64_t total = 0;
    // A tile's position matters only along the axes of such dimensions. Other axes have full tiles and at most one
    // ragged tile.
    std::vector<Index> placed;
    for (std::size_t d = 0; d < v.dims.size(); ++d)
        if (depends_on_place(v, d)) placed.push_back(v.dims[d]);
    const std::vector<AxisId> walked = axes_of(placed);
    std::vector<AxisId> others;
    for (const AxisId axis : axes)
        if (is_grouped(axis) && !contains(walked, axis)) others.push_back(axis);
    for_each_place(walked, v.loop,
                   [&](const std::vector<std::int64_t>& begin, const std::vector<std::int64_t>& tile, std::int64_t count) {
                       std::vector<std::int64_t> part = tile;
                       const auto sizes = [&](const auto& self, std::size_t next, std::int64_t times) -> void {
                           if (next == others.size()) {
                               const std::int64_t values = values_inside(v.dims, v.limits, extents_, begin, part);
                               total = saturating_add(total, saturating_mul(times, values));
                               return;
                           }
                           const AxisId axis = others[next];
                           // Axes in a loop's support have been walked by for_each_place already.
                           if (tile[at(axis)] != extent(axis)) return self(self, next + 1, times);
                           const std::int64_t g = cut(axis, -1), full = extent(axis) / g, rest = extent(axis) % g;
                           if (full > 0) part[at(axis)] = g, self(self, next + 1, saturating_mul(times, full));
                           if (rest > 0) part[at(axis)] = rest, self(self, next + 1, times);
                       };
                       std::int64_t repeated = 1;  // for_each_place counts every tile of the others
                       for (const AxisId axis : others)
                           if (tile[at(axis)] == extent(axis)) repeated = saturating_mul(repeated, num_tiles(axis));
                       sizes(sizes, 0, count / repeated);
                   });
    return total;
}

std::int64_t TileCounter::chunks(int id) const {
    if (loop(id).is_sub) return chunks_run(id);
    // Groups that differ only in their part together run all parts of the stream.
    const std::int64_t parts = live_.parts.cut(loop(id).axis) ? extent(live_.parts.part) : 1;
    std::int64_t of_all_parts = 0;
    for (std::int64_t part = 0; part < parts; ++part) {
        const Stretch stretch = stretch_of(loop(id), part, part + 1);
        of_all_parts += ceil_div(stretch.end - stretch.begin, cut(loop(id).axis, id));
    }
    return saturating_mul(groups() / parts, of_all_parts);
}

std::int64_t TileCounter::peak_memory(const std::vector<Moment>& moments) const {
    Extents tile(extents_.size());
    std::int64_t peak = 0;
    for (const Moment& moment : moments) {
        std::vector<Index> placed;
        for (const int v : moment.alive)
            for (const Index& dim : live_.variables[at(v)].dims)
                if (!dim.affine()) placed.push_back(dim);
        if (!placed.empty()) {
            peak = std::max(peak, peak_by_place(moment, axes_of(placed)));
            continue;
        }
        for (const AxisId axis : tile.ids()) tile[axis] = cut(axis, -1);
        const int stream = stream_of(moment.loop);
        // A variable that lives inside a loop holds the loop's part of that axis. Along other axes it holds all that
        // the group has.
        const auto alive_now = [&](std::int64_t chunk) {
            std::int64_t size = 0;
            for (const int id : moment.alive) {
                const CoreVariable& v = live_.variables[at(id)];
                std::vector<std::int64_t> own = tile;
                for (const int l : live_.loops_around(v.loop)) {
                    std::int64_t& part = own[at(loop(l).axis)];
                    part = l == stream ? chunk : std::min(part, cut(loop(l).axis, l));
                }
                size = saturating_add(size, box(v.dims, own));
            }
            peak = std::max(peak, size);
        };
        if (stream < 0) {
            alive_now(0);
            continue;
        }
        const KBlockRuns& runs = runs_[at(stream)];
        for (const Case& c : runs.running->cases) {
            for (std::size_t i = 0; i < runs.axes.size(); ++i)
                tile[runs.axes[i]] = c.ragged[i] ? extent(runs.axes[i]) % cut(runs.axes[i], -1) : cut(runs.axes[i], -1);
            for (const auto& [size, count] : c.chunks) alive_now(size);
        }
    }
    return peak;
}

std::int64_t TileCounter::peak_by_place(const Moment& moment, const std::vector<AxisId>& axes) const {
    std::int64_t peak = 0;
    const int stream = stream_of(moment.loop);
    for_each_place(axes, moment.loop,
                   [&](const std::vector<std::int64_t>& begin, const std::vector<std::int64_t>& tile, std::int64_t) {
                       // Axes that were not walked count with a full tile, the largest.
                       std::vector<std::int64_t> full = tile;
                       for (const AxisId axis : grouped_)
                           if (begin[at(axis)] == 0 && tile[at(axis)] == extent(axis)) full[at(axis)] = cut(axis, -1);
                       std::int64_t size = 0;
                       for (const int id : moment.alive) {
                           const CoreVariable& v = live_.variables[at(id)];
                           const std::vector<int> around = live_.loops_around(v.loop);
                           std::vector<std::int64_t> own_begin = begin, own = full;
                           for (const int l : live_.loops_around(moment.loop)) {
                               const AxisId axis = loop(l).axis;
                               if (contains(around, l)) continue;
                               const std::int64_t whole = l == stream ? extent(axis) : cut(axis, -1);
                               own_begin[at(axis)] = begin[at(axis)] / whole * whole;
                               own[at(axis)] = std::min(whole, extent(axis) - own_begin[at(axis)]);
                           }
                           size = saturating_add(size, box_at(v.dims, own_begin, own));
                       }
                       peak = std::max(peak, size);
                   });
    return peak;
}

Counts TileCounter::costs() const {
    Counts costs;
    costs.groups = groups();
    std::map<ArrayId, ArrayCount> arrays;
    const auto add = [](std::int64_t& sum, std::int64_t value) { sum = saturating_add(sum, value); };
    for (const CoreVariable& v : live_.variables) {
        const std::int64_t values = v.loaded || v.stored ? moved(v) : 0;
        if (values == 0) continue;
        ArrayCount& count = arrays[v.array];
        count.array = v.array;
        add(v.loaded ? count.loaded : count.stored, values);
        add(v.loaded ? costs.loaded : costs.stored, values);
        add(v.loaded ? costs.loaded_bytes : costs.stored_bytes,
            saturating_mul(values, bytes(diagram_.array(v.array).type)));
    }
    for (const auto& [array, count] : arrays) costs.arrays.push_back(count);
    for (int id = 0; id < static_cast<int>(live_.loops.size()); ++id) {
        if (loop(id).is_sub) continue;
        const std::int64_t run = chunks_run(id);
        add(costs.chunks_run, run);
        add(costs.chunks_skipped, chunks(id) - run);
    }
    costs.peak_memory = peak_memory();
    return costs;
}

Counts exact_costs(const Derived& derived, const Kernel& kernel, const Extents& extents, const TileSizes& sizes) {
    const Liveness live = liveness(derived, kernel, &extents);
    return TileCounter(derived.diagram, live, extents, sizes).costs();
}

Counts exact_costs(const SizedProgram& program, std::size_t kernel) {
    const Liveness live = liveness(program.kernels[kernel]);
    return TileCounter(program.diagram, live, program.extents, program.sizes[kernel]).costs();
}

}  // namespace napkin
