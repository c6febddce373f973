#include "cost/nested.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace napkin {
namespace {
/// The moments at which an outer level may hold most.
class Held {
public:
    explicit Held(const Liveness& live) : live_(live) {
        int steps = 0;
        for (const CoreVariable& v : live.variables) steps = std::max(steps, v.last_step + 1);
        for (int step = 0; step < steps; ++step) {
            const std::vector<int> around = loaded(step, step);
            out_.push_back({-1, -1, -1, around});
            for (int loop = 0; loop < static_cast<int>(live.loops.size()); ++loop)
                if (live.loops[at(loop)].outer < 0 && live.loops[at(loop)].step == step) add_chunk(loop, around);
            add_stored(step);
        }
    }

    std::vector<Moment> moments() && { return std::move(out_); }

private:
    /// What is loaded once a group, at the latest for step `first`, and is used at step `last` or after it.
    [[nodiscard]] std::vector<int> loaded(int first, int last) const {
        std::vector<int> held;
        for (int v = 0; v < static_cast<int>(live_.variables.size()); ++v) {
            const CoreVariable& variable = live_.variables[at(v)];
            if (variable.loaded && variable.loop < 0 && variable.first_step <= first && variable.last_step >= last)
                held.push_back(v);
        }
        return held;
    }

    void add_stored(int step) {
        for (int v = 0; v < static_cast<int>(live_.variables.size()); ++v) {
            const CoreVariable& variable = live_.variables[at(v)];
            if (!variable.stored || variable.loop >= 0 || variable.first_step != step) continue;
            out_.push_back({-1, -1, variable.array, loaded(step, step + 1)});
            out_.back().alive.push_back(v);
        }
    }

    void add_chunk(int loop, const std::vector<int>& around) {
        out_.push_back({loop, -1, -1, around});
        for (int v = 0; v < static_cast<int>(live_.variables.size()); ++v) {
            const CoreVariable& variable = live_.variables[at(v)];
            const std::vector<int> loops = live_.loops_around(variable.loop);
            if ((variable.loaded || variable.stored) && !loops.empty() && loops.back() == loop)
                out_.back().alive.push_back(v);
        }
    }

    const Liveness& live_;
    std::vector<Moment> out_;
};

/// Cuts the sizes of one axis down to its extent, outermost level first, and says where they do not nest.
void nest_axis(const Axis& axis, std::int64_t extent, const char* kind, const std::vector<std::int64_t*>& sizes,
               std::vector<Diagnostic>& errors) {
    const auto error = [&](std::string message, std::string expected, std::string hint) {
        errors.push_back({.code = "bad-level-size",
                          .range = axis.range,
                          .message = std::move(message),
                          .expected = std::move(expected),
                          .hint = std::move(hint)});
    };
    for (std::size_t level = 0; level < sizes.size(); ++level) {
        if (*sizes[level] < 0)
            return error(fmt::format("the {} size of {} at level {} is {}", kind, axis.name, level + 1, *sizes[level]),
                         "a size of 1 or more, or 0 for the whole axis", "");
        *sizes[level] = std::min(*sizes[level], extent);
    }
    for (std::size_t level = 0; level + 1 < sizes.size(); ++level) {
        const std::int64_t outer = *sizes[level] > 0 ? *sizes[level] : extent;
        const std::int64_t inner = *sizes[level + 1] > 0 ? *sizes[level + 1] : extent;
        if (outer == extent || outer % inner == 0) continue;
        const std::int64_t nearest = round_up(outer, inner);
        error(fmt::format("the {} size of {} is {} at level {} and {} at the next inner level", kind, axis.name, outer,
                          level + 1, inner),
              fmt::format("a multiple of {}, or the whole axis of {}", inner, extent),
              nearest < extent ? fmt::format("the next one is {}", nearest) : "the whole axis");
    }
}

}  // namespace

Result<std::vector<TileSizes>> nest(const Derived& derived, const Kernel& kernel, const Extents& extents,
                                    std::vector<TileSizes> levels) {
    std::vector<bool> grouped(extents.size()), streamed(extents.size());
    for (const AxisId axis : kernel.group_axes) grouped[at(axis)] = true;
    for (const Stage& stage : kernel.stages)
        if (const auto* loop = std::get_if<Loop>(&stage)) streamed[at(loop->axis)] = true;
    for (TileSizes& sizes : levels) {
        sizes.group.resize(extents.size());
        sizes.stream.resize(extents.size());
        if (kernel.parts.any()) sizes.group[kernel.parts.part] = 1;
        for (const AxisId a : extents.ids()) {
            if (!grouped[a]) sizes.group[a] = 0;
            if (!streamed[a]) sizes.stream[a] = 0;
        }
    }
    std::vector<Diagnostic> errors;
    for (const AxisId a : extents.ids())
        for (const auto& kind : {std::pair{&TileSizes::group, "group"}, {&TileSizes::stream, "stream"}}) {
            const auto sizes = mapped<std::int64_t*>(levels, [&](TileSizes& level) { return &(level.*kind.first)[a]; });
            nest_axis(derived.diagram.axes[a], extents[a], kind.second, sizes, errors);
        }
    if (!errors.empty()) return errors;
    return levels;
}

std::vector<Counts> nested_costs(const Derived& derived, const Kernel& kernel, const Extents& extents,
                                 const std::vector<TileSizes>& levels, const TileKernel* tiles) {
    const auto sizes = nest(derived, kernel, extents, levels);
    internal_check(sizes.ok(), "cost: the levels' sizes do not nest");
    const Liveness live = tiles ? liveness(with_numbers(*tiles, extents)) : liveness(derived, kernel, &extents);
    const std::vector<Moment> held = Held(live).moments();
    std::vector<Counts> counts;
    for (const TileSizes& level : *sizes) {
        constexpr std::int64_t every_tile = std::int64_t{1} << 22;
        const TileCounter counter(derived.diagram, live, extents, level, every_tile, &sizes->back());
        counts.push_back(counter.costs());
        if (counts.size() < sizes->size()) counts.back().peak_memory = counter.peak_memory(held);
    }
    return counts;
}

}  // namespace napkin
