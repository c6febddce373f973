#include "tile/exact.hpp"

#include <algorithm>
#include <map>
#include <set>

#include "diagram/box.hpp"
#include "support/result.hpp"
#include "support/saturate.hpp"

namespace napkin {
namespace {
__extension__ using Wide = __int128;

/// Π over the dimensions of the size of the interval over which the index runs, for a tile of these extents that begins at 0.
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

/// A half-open interval of chunk numbers.
struct ChunkRange {
    std::int64_t begin = 0, end = 0;
};

/// Cuts the range down to the chunks in which base + c·x ≥ 0 somewhere, where chunk j is x in [j·s, min((j+1)·s, extent)).
void restrict_range(ChunkRange& range, std::int64_t base, std::int64_t c, std::int64_t s, std::int64_t extent) {
    if (c == 0) {
        if (base < 0) range.end = range.begin;
    } else if (c > 0) {
        // The chunk's last value reaches the smallest x with base + c·x ≥ 0.
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

/// The chunks of the loop that run in a group: those in which no form of the support is negative everywhere.
ChunkRange chunks_in(const Loop& loop, const std::vector<std::int64_t>& begin, const std::vector<std::int64_t>& tile,
                     std::int64_t s, std::int64_t x) {
    ChunkRange range{0, ceil_div(x, s)};
    for (const Affine& form : loop.support) {
        Wide base = form.constant;
        for (const auto& [axis, c] : form.terms)
            if (axis != loop.axis) base += Wide(c) * (c > 0 ? begin[at(axis)] + tile[at(axis)] - 1 : begin[at(axis)]);
        const Wide far = limits::max_size_product;
        restrict_range(range, static_cast<std::int64_t>(std::clamp(base, -far, far)), form.coefficient(loop.axis), s, x);
    }
    return range;
}

}  // namespace

std::int64_t ExactCosts::transfers() const { return saturating_add(loaded, stored); }

TileCounter::TileCounter(const Derived& derived, const Kernel& kernel, const Liveness& live, const Extents& extents,
                         TileSizes sizes, std::int64_t walk_limit)
    : derived_(derived), kernel_(kernel), live_(live), extents_(extents), sizes_(std::move(sizes)), walk_limit_(walk_limit) {
    for (const AxisId axis : kernel.group_axes)
        if (is_grouped(axis)) grouped_.push_back(axis);
    for (const Stage& stage : kernel.stages) {
        const auto* loop = std::get_if<Loop>(&stage);
        internal_check(!loop || !is_grouped(loop->axis), "cost: a streamed axis is grouped in the same kernel");
        runs_.push_back(loop ? count_runs(*loop) : ChunkRuns{});
    }
}

AxisId TileCounter::loop_axis(int stage) const {
    return stage < 0 ? -1 : std::get<Loop>(kernel_.stages[at(stage)]).axis;
}

std::int64_t TileCounter::num_tiles(AxisId axis) const { return ceil_div(extent(axis), cut(axis, -1)); }

std::int64_t TileCounter::cut(AxisId axis, int stage) const {
    if (stage >= 0 && std::holds_alternative<Loop>(kernel_.stages[at(stage)]) && axis == loop_axis(stage))
        return sizes_.stream[at(axis)] > 0 ? sizes_.stream[at(axis)] : extent(axis);
    return is_grouped(axis) ? sizes_.group[at(axis)] : extent(axis);
}

std::int64_t TileCounter::groups() const {
    std::int64_t groups = 1;
    for (const AxisId axis : grouped_) groups = saturating_mul(groups, num_tiles(axis));
    return groups;
}

void TileCounter::walk_groups(
    const std::vector<AxisId>& axes,
    const std::function<void(const std::vector<std::int64_t>&, const std::vector<std::int64_t>&, std::int64_t)>& f) const {
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

TileCounter::ChunkRuns TileCounter::count_runs(const Loop& loop) const {
    const std::int64_t x = extent(loop.axis), s = sizes_.stream[at(loop.axis)] > 0 ? sizes_.stream[at(loop.axis)] : x,
                       num_chunks = ceil_div(x, s);
    ChunkRuns runs;
    for (const AxisId axis : grouped_) {
        const bool in_support = std::any_of(loop.support.begin(), loop.support.end(),
                                            [&](const Affine& f) { return f.coefficient(axis) != 0; });
        if (in_support)
            runs.axes.push_back(axis);
        else
            runs.other_groups = saturating_mul(runs.other_groups, num_tiles(axis));
    }
    std::map<std::vector<bool>, Case> cases;
    walk_groups(runs.axes,
                [&](const std::vector<std::int64_t>& begin, const std::vector<std::int64_t>& tile, std::int64_t weight) {
                    const ChunkRange range = chunks_in(loop, begin, tile, s, x);
                    std::int64_t run = range.end - range.begin;
                    if (run <= 0) return;
                    std::vector<bool> ragged;
                    for (const AxisId axis : runs.axes) ragged.push_back(tile[at(axis)] < cut(axis, -1));
                    Case& c = cases[ragged];
                    if (x % s != 0 && range.end == num_chunks) {
                        c.last = saturating_add(c.last, weight);
                        --run;
                    }
                    c.full = saturating_add(c.full, saturating_mul(weight, run));
                });
    for (auto& [key, c] : cases) {
        c.ragged = key;
        runs.cases.push_back(c);
    }
    return runs;
}

void TileCounter::for_each_place(
    const std::vector<AxisId>& axes, int stage,
    const std::function<void(const std::vector<std::int64_t>&, const std::vector<std::int64_t>&, std::int64_t)>& f) const {
    const Loop* loop = stage >= 0 ? std::get_if<Loop>(&kernel_.stages[at(stage)]) : nullptr;
    std::vector<AxisId> walked;
    std::int64_t repeats = 1;  // groups that differ only in axes that nobody asks for
    for (const AxisId axis : grouped_) {
        if (is_among(axes, axis) || (loop && is_among(runs_[at(stage)].axes, axis)))
            walked.push_back(axis);
        else
            repeats = saturating_mul(repeats, num_tiles(axis));
    }
    walk_groups(
        walked, [&](const std::vector<std::int64_t>& begin, const std::vector<std::int64_t>& tile, std::int64_t weight) {
            const std::int64_t times = saturating_mul(repeats, weight);
            if (!loop) return f(begin, tile, times);
            const std::int64_t x = extent(loop->axis), s = cut(loop->axis, stage);
            const ChunkRange range = chunks_in(*loop, begin, tile, s, x);
            std::vector<std::int64_t> from = begin, part = tile;
            const std::int64_t step = std::max<std::int64_t>(1, (range.end - range.begin) / walk_limit_);
            for (std::int64_t chunk = range.begin; chunk < range.end;) {
                const std::int64_t stands_for = chunk == range.end - 1 ? 1 : std::min(step, range.end - 1 - chunk);
                from[at(loop->axis)] = chunk * s;
                part[at(loop->axis)] = std::min(s, x - chunk * s);
                f(from, part, saturating_mul(times, stands_for));
                chunk += stands_for;
            }
        });
}

void TileCounter::for_each_tile(const std::vector<AxisId>& axes, int stage,
                                const std::function<void(const std::vector<std::int64_t>&, std::int64_t)>& f) const {
    std::vector<std::int64_t> tile = extents_;
    const bool in_loop = stage >= 0 && std::holds_alternative<Loop>(kernel_.stages[at(stage)]);
    const std::vector<AxisId> none;
    const std::vector<AxisId>& fixed = in_loop ? runs_[at(stage)].axes : none;

    std::vector<AxisId> free;
    std::int64_t repeats = 1;  // groups that differ only in axes that nobody asks for
    for (const AxisId axis : grouped_) {
        if (is_among(fixed, axis)) continue;
        if (is_among(axes, axis))
            free.push_back(axis);
        else
            repeats = saturating_mul(repeats, num_tiles(axis));
    }
    const auto walk = [&](const auto& self, std::size_t next, std::int64_t count) -> void {
        if (next == free.size()) return f(tile, count);
        const AxisId axis = free[next];
        const std::int64_t g = cut(axis, -1), full = extent(axis) / g, rest = extent(axis) % g;
        if (full > 0) tile[at(axis)] = g, self(self, next + 1, saturating_mul(count, full));
        if (rest > 0) tile[at(axis)] = rest, self(self, next + 1, count);
    };
    if (!in_loop) return walk(walk, 0, repeats);

    const AxisId x = loop_axis(stage);
    for (const Case& c : runs_[at(stage)].cases) {
        for (std::size_t i = 0; i < fixed.size(); ++i)
            tile[at(fixed[i])] = c.ragged[i] ? extent(fixed[i]) % cut(fixed[i], -1) : cut(fixed[i], -1);
        tile[at(x)] = cut(x, stage);
        if (c.full > 0) walk(walk, 0, saturating_mul(repeats, c.full));
        tile[at(x)] = extent(x) % cut(x, stage);
        if (c.last > 0) walk(walk, 0, saturating_mul(repeats, c.last));
    }
}

std::int64_t TileCounter::points(const std::vector<AxisId>& axes, int stage) const {
    std::int64_t total = 0;
    for_each_tile(axes, stage, [&](const std::vector<std::int64_t>& tile, std::int64_t count) {
        for (const AxisId axis : axes) count = saturating_mul(count, tile[at(axis)]);
        total = saturating_add(total, count);
    });
    return total;
}

/// Whether tiles of equal extents may hold different numbers of values: quotients and rests, and indices that leave the array.
bool TileCounter::depends_on_place(const CoreVariable& v, std::size_t d) const {
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
    const std::vector<AxisId> axes = axes_of(v.dims);
    const int stage = v.loop >= 0 && is_among(axes, loop_axis(v.loop)) ? v.loop : -1;
    std::int64_t total = 0;
    if (depends_on_place(v)) {
        // Where a tile stands matters along the axes of such dimensions; along others there are full tiles and a ragged one.
        std::vector<Index> placed;
        for (std::size_t d = 0; d < v.dims.size(); ++d)
            if (depends_on_place(v, d)) placed.push_back(v.dims[d]);
        const std::vector<AxisId> walked = axes_of(placed);
        std::vector<AxisId> others;
        for (const AxisId axis : axes)
            if (is_grouped(axis) && !is_among(walked, axis)) others.push_back(axis);
        for_each_place(
            walked, stage,
            [&](const std::vector<std::int64_t>& begin, const std::vector<std::int64_t>& tile, std::int64_t count) {
                std::vector<std::int64_t> part = tile;
                const auto sizes = [&](const auto& self, std::size_t next, std::int64_t times) -> void {
                    if (next == others.size()) {
                        const std::int64_t values = values_inside(v.dims, v.limits, extents_, begin, part);
                        total = saturating_add(total, saturating_mul(times, values));
                        return;
                    }
                    const AxisId axis = others[next];
                    // Those in a loop's support are walked whatever is asked for.
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
    for_each_tile(axes, stage, [&](const std::vector<std::int64_t>& tile, std::int64_t count) {
        total = saturating_add(total, saturating_mul(count, box(v.dims, tile)));
    });
    return total;
}

std::int64_t TileCounter::chunks_run(int stage) const { return points({}, stage); }

std::int64_t TileCounter::chunks(int stage) const {
    const AxisId x = loop_axis(stage);
    return saturating_mul(groups(), ceil_div(extent(x), cut(x, stage)));
}

std::int64_t TileCounter::peak_memory(const std::vector<Moment>& moments) const {
    std::vector<std::int64_t> tile(extents_.size());
    const auto size_at = [&](const Moment& moment) {
        std::int64_t size = 0;
        for (const int v : moment.alive) size = saturating_add(size, box(live_.variables[at(v)].dims, tile));
        return size;
    };
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
        for (AxisId axis = 0; axis < static_cast<AxisId>(tile.size()); ++axis) tile[at(axis)] = cut(axis, -1);
        if (!moment.in_body) {
            peak = std::max(peak, size_at(moment));
            continue;
        }
        // A variable of another loop that is alive here was made for that loop's chunk; only this loop's axis is cut here.
        const ChunkRuns& runs = runs_[at(moment.stage)];
        const AxisId x = loop_axis(moment.stage);
        for (const Case& c : runs.cases) {
            for (std::size_t i = 0; i < runs.axes.size(); ++i)
                tile[at(runs.axes[i])] = c.ragged[i] ? extent(runs.axes[i]) % cut(runs.axes[i], -1)
                                                     : cut(runs.axes[i], -1);
            // Variables of the group keep the whole axis; those of the chunk have its part.
            for (const bool last : {false, true}) {
                if ((last ? c.last : c.full) == 0) continue;
                const std::int64_t chunk = last ? extent(x) % cut(x, moment.stage) : cut(x, moment.stage);
                std::int64_t size = 0;
                for (const int v : moment.alive) {
                    const CoreVariable& variable = live_.variables[at(v)];
                    tile[at(x)] = variable.loop == moment.stage ? chunk : extent(x);
                    size = saturating_add(size, box(variable.dims, tile));
                }
                peak = std::max(peak, size);
            }
        }
    }
    return peak;
}

std::int64_t TileCounter::peak_by_place(const Moment& moment, const std::vector<AxisId>& axes) const {
    std::int64_t peak = 0;
    const AxisId x = moment.in_body ? loop_axis(moment.stage) : -1;
    for_each_place(axes, moment.in_body ? moment.stage : -1,
                   [&](const std::vector<std::int64_t>& begin, const std::vector<std::int64_t>& tile, std::int64_t) {
                       std::vector<std::int64_t> whole_begin = begin, whole = tile;
                       if (x >= 0) whole_begin[at(x)] = 0, whole[at(x)] = extent(x);
                       for (const AxisId axis : grouped_)
                           if (begin[at(axis)] == 0 && tile[at(axis)] == extent(axis)) whole[at(axis)] = cut(axis, -1);
                       std::vector<std::int64_t> chunk = whole;
                       if (x >= 0) chunk[at(x)] = tile[at(x)];
                       std::int64_t size = 0;
                       for (const int v : moment.alive) {
                           const CoreVariable& variable = live_.variables[at(v)];
                           const bool of_chunk = x >= 0 && variable.loop == moment.stage;
                           size = saturating_add(size, of_chunk ? box_at(variable.dims, begin, chunk)
                                                                : box_at(variable.dims, whole_begin, whole));
                       }
                       peak = std::max(peak, size);
                   });
    return peak;
}

ExactCosts TileCounter::costs() const {
    ExactCosts costs;
    costs.groups = groups();
    std::map<ArrayId, ArrayCount> arrays;
    for (const CoreVariable& v : live_.variables) {
        if (!v.loaded && !v.stored) continue;
        const std::int64_t values = moved(v);
        const std::int64_t moved = saturating_mul(values, bytes(derived_.diagram.array(v.array).type));
        ArrayCount& count = arrays[v.array];
        count.array = v.array;
        if (v.loaded) {
            count.loaded = saturating_add(count.loaded, values);
            costs.loaded = saturating_add(costs.loaded, values);
            costs.loaded_bytes = saturating_add(costs.loaded_bytes, moved);
        } else {
            count.stored = saturating_add(count.stored, values);
            costs.stored = saturating_add(costs.stored, values);
            costs.stored_bytes = saturating_add(costs.stored_bytes, moved);
        }
    }
    for (const auto& [array, count] : arrays) costs.arrays.push_back(count);
    for (int stage = 0; stage < static_cast<int>(kernel_.stages.size()); ++stage) {
        if (!std::holds_alternative<Loop>(kernel_.stages[at(stage)])) continue;
        const std::int64_t run = chunks_run(stage);
        costs.chunks_run = saturating_add(costs.chunks_run, run);
        costs.chunks_skipped = saturating_add(costs.chunks_skipped, chunks(stage) - run);
    }
    costs.peak_memory = peak_memory();
    return costs;
}

ExactCosts exact_costs(const Derived& derived, const Kernel& kernel, const Extents& extents, const TileSizes& sizes) {
    const Liveness live = liveness(derived, kernel, &extents);
    return TileCounter(derived, kernel, live, extents, sizes).costs();
}

}  // namespace napkin
