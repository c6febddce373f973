#include "study/count_levels.hpp"

#include <fmt/format.h>

#include <cmath>

#include "check/sample.hpp"
#include "diagram/evaluate.hpp"
#include "support/numbers.hpp"
#include "support/ranges.hpp"
#include "tile/expand.hpp"
#include "tile/interpret.hpp"

namespace napkin {
namespace {
/// The sizes of the core and of the levels above it, outermost first and the core last; each a multiple of the next
/// one's.
struct Nest {
    std::vector<std::string> names;
    std::vector<TileSizes> sizes;
};

Nest nest_of(const KernelOnMachine& kernel, const Extents& extents) {
    Nest out;
    TileSizes inner{std::vector<std::int64_t>(extents.size(), 0), std::vector<std::int64_t>(extents.size(), 0)};
    for (const auto& [axis, size] : kernel.group) inner.group[axis] = size;
    for (const auto& [axis, size] : kernel.stream) inner.stream[axis] = size;
    inner.sub.resize(extents.size());
    for (const auto& [axis, size] : kernel.sub) inner.sub[axis] = size;
    bool above = false;
    for (auto load = kernel.levels.rbegin(); load != kernel.levels.rend(); ++load) {
        if (load->level.is_core) {
            above = true;
        } else if (!above || load->level.rule == LevelRule::devices) {
            continue;
        } else {
            for (const auto& [axis, size] : load->group) {
                std::int64_t& g = inner.group[axis];
                g = size >= extents[axis] ? extents[axis] : std::max(g, size / g * g);
            }
        }
        out.names.push_back(load->level.name);
        out.sizes.push_back(inner);
        inner.sub.clear();
    }
    reverse(out.names);
    reverse(out.sizes);
    return out;
}

}  // namespace

bool LevelCount::equal() const {
    return all_of(levels, [](const CountedLevel& l) { return l.predicted == l.counted; });
}

Result<LevelCount> count_levels(const Derived& derived, const Extents& extents,
                                const std::vector<KernelOnMachine>& kernels, const std::vector<TileKernel>& tiles) {
    constexpr double most_points = 2e8;
    if (const double points = evaluation_points(derived.source, extents); points > most_points) {
        return Diagnostic{.code = "too-many-points",
                          .range = derived.source.range,
                          .message = fmt::format("{:.3g} points are too many to count one by one", points),
                          .expected = fmt::format("at most {:.0g} points", most_points),
                          .hint = "smaller sizes, with --set"};
    }
    std::vector<Nest> nests;
    std::vector<TileSizes> cores;
    std::vector<std::vector<TileSizes>> outer;
    for (std::size_t k = 0; k < kernels.size(); ++k) {
        nests.push_back(nest_of(kernels[k], extents));
        cores.push_back(nests[k].sizes.back());
        outer.emplace_back(nests[k].sizes.begin(), nests[k].sizes.end() - 1);
    }
    const Extents defined(extents.begin(), extents.begin() + static_cast<std::ptrdiff_t>(derived.source.axes.size()));
    Values reference = random_inputs(derived.source, defined, 1);
    Values values = reference;
    values.resize(derived.diagram.arrays.size());
    evaluate(derived.source, defined, reference);
    TileProgram program = expand(derived);
    if (!tiles.empty()) program.kernels = tiles;
    const auto counted = interpret_levels(sized(std::move(program), extents, std::move(cores)), outer, values);

    LevelCount out;
    for (std::size_t k = 0; k < kernels.size(); ++k) {
        const auto predicted = nested_costs(derived, derived.kernels[k], extents, nests[k].sizes,
                                            tiles.empty() ? nullptr : &tiles[k]);
        for (std::size_t l = 0; l < predicted.size(); ++l)
            out.levels.push_back(
                {derived.kernels[k].name, nests[k].names[l], nests[k].sizes[l], predicted[l], counted[k][l]});
    }
    for (const ArrayId id : derived.source.outputs) {
        const auto same = derived.diagram.find_array(derived.source.array(id).name);
        internal_check(same.has_value(), "an output that the derived diagram lacks");
        for (std::size_t i = 0; i < reference[id].size(); ++i) {
            const double want = reference[id][i], have = values[*same][i];
            if (std::isfinite(want))
                out.error = std::max(out.error, std::abs(have - want) / std::max(1.0, std::abs(want)));
        }
    }
    return out;
}

report::Section report_of(const LevelCount& count) {
    using Level = const CountedLevel&;
    report::Section out{"counted", "counted by moving every value through every level", 2, {}};
    out.table(report::table_of<CountedLevel>(
        "levels", "", count.levels,
        {{"kernel", "kernel", [](Level l) { return report::words(l.kernel); }},
         {"level", "level", [](Level l) { return report::words(l.level); }},
         {"groups", "groups", [](Level l) { return report::count(l.counted.groups); }},
         {"transfers_predicted", "H predicted", [](Level l) { return report::count(l.predicted.transfers()); }},
         {"transfers_counted", "H counted", [](Level l) { return report::count(l.counted.transfers()); }},
         {"memory_predicted", "M predicted", [](Level l) { return report::count(l.predicted.peak_memory); }},
         {"memory_counted", "M counted", [](Level l) { return report::count(l.counted.peak_memory); }},
         {"", "beside", [](Level l) { return report::shown(l.predicted == l.counted ? "equal" : "DIFFERENT"); }}}));
    out.line({{"equal", "", report::data(count.equal())},
              {"error", "results differ from the definition's by at most", {count.error, error_text(count.error)}}});
    return out;
}

}  // namespace napkin
