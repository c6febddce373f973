// Random diagrams and all examples on one to three levels, with streams whole and in parts. The values that moved
// through every level give what the definition gives. The counts of every level are those of the formulas, exactly.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <random>
#include <set>
#include <sstream>

#include "cost/nested.hpp"
#include "cost/transfers.hpp"
#include "derive/derive.hpp"
#include "derive/parts.hpp"
#include "diagram/blocks.hpp"
#include "plan/plan.hpp"
#include "support/ids.hpp"
#include "support/paths.hpp"
#include "support/random_diagram.hpp"
#include "support/saturate.hpp"
#include "syntax/parse.hpp"
#include "tile/expand.hpp"
#include "tile/interpret.hpp"

namespace napkin {
namespace {
struct Coverage {
    int kernels = 0, symbolic = 0, sums = 0, skipping = 0, stored_chunks = 0, held_apart = 0;
    int parts = 0, symbolic_parts = 0, levels_above_parts = 0, skipping_parts = 0;
};

class Random {
public:
    explicit Random(std::uint64_t seed) : random_(seed) {}
    std::int64_t below(std::int64_t n) { return static_cast<std::int64_t>(random_() % static_cast<std::uint64_t>(n)); }

    /// Sizes of one axis, outermost level first: 0 for the whole axis now and then, else multiples, ragged at the end
    /// of the axis or not.
    std::vector<std::int64_t> sizes(std::int64_t extent, std::size_t num_levels, bool dividing) {
        std::vector<std::int64_t> sizes;
        std::int64_t size = 1 + below(extent);
        while (dividing && extent % size != 0) --size;
        for (std::size_t level = 0; level < num_levels; ++level) {
            if (size < extent && below(6) == 0) size = extent;
            sizes.insert(sizes.begin(), size >= extent && below(2) == 0 ? 0 : size);
            std::int64_t times = 1 + below(3);
            while (dividing && extent % (size * times) != 0) --times;
            size *= times;
        }
        return sizes;
    }

    std::vector<TileSizes> levels(const Extents& extents, std::size_t num_levels, bool dividing) {
        std::vector<TileSizes> levels(num_levels);
        for (const std::int64_t extent : extents) {
            const auto group = sizes(extent, num_levels, dividing), stream = sizes(extent, num_levels, dividing);
            for (std::size_t l = 0; l < num_levels; ++l)
                levels[l].group.push_back(group[l]), levels[l].stream.push_back(stream[l]);
        }
        return levels;
    }

private:
    std::mt19937_64 random_;
};

/// How outputs differ from the definition's, or "". Where the definition is not finite nothing is promised.
std::string difference(const Diagram& source, const Values& reference, const Diagram& diagram, const Values& values) {
    for (const ArrayId id : source.outputs) {
        const auto other = diagram.find_array(source.array(id).name);
        if (!other) return source.array(id).name + " is gone";
        const auto &want = reference[id], &have = values[*other];
        if (want.size() != have.size()) return source.array(id).name + " has another size";
        double scale = 1;
        for (const double w : want)
            if (std::isfinite(w)) scale = std::max(scale, std::abs(w));
        for (std::size_t i = 0; i < want.size(); ++i)
            if (std::isfinite(want[i]) && !(std::abs(want[i] - have[i]) <= 1e-8 * scale))
                return fmt::format("{} at {} is {} in place of {}", source.array(id).name, i, have[i], want[i]);
    }
    return "";
}

std::string describe(const Counts& c) {
    std::string out = fmt::format("{} groups, {} loaded, {} stored, {} held at most;", c.groups, c.loaded, c.stored,
                                  c.peak_memory);
    for (const ArrayCount& a : c.arrays) out += fmt::format(" array {}: {} + {}", a.array, a.loaded, a.stored);
    return out;
}

std::string describe(const Derived& derived, const Extents& extents, const std::vector<TileSizes>& levels) {
    std::string out = napkin::describe(derived.source);
    for (const AxisId a : extents.ids()) {
        out += fmt::format("{} = {}:", derived.diagram.axes[a].name, extents[a]);
        for (const TileSizes& level : levels)
            out += fmt::format(" group {} stream {};", level.group[a], level.stream[a]);
        out += "\n";
    }
    return out;
}

/// H with the letters' values at a level; nothing may be skipped there.
double symbolic_transfers(const Derived& derived, const Kernel& kernel, const Extents& extents, const TileSizes& sizes,
                          const std::vector<AxisId>& grouped) {
    const KernelCost cost = symbolic_cost(derived, kernel, grouped);
    const auto value = [&](Symbol symbol) -> std::optional<double> {
        const auto axis = symbol.axis();
        if (symbol.kind == SymbolKind::axis) return static_cast<double>(extents[axis]);
        if (symbol.kind != SymbolKind::group && symbol.kind != SymbolKind::stream) return std::nullopt;
        const std::int64_t size = (symbol.kind == SymbolKind::group ? sizes.group : sizes.stream)[axis];
        return static_cast<double>(size > 0 ? size : extents[axis]);
    };
    return cost.transfers.evaluate(value).value();
}

/// Whether the letters' tiles are the tiles: sizes divide their axes, and the parts of a stream.
bool divides(const Kernel& kernel, const TileSizes& sizes, const Extents& extents) {
    if (const StreamParts& parts = kernel.parts; parts.any()) {
        const std::int64_t size = sizes.stream[parts.axis];
        if (size == 0 || extents[parts.axis] % (size * extents[parts.part]) != 0) return false;
    }
    for (const AxisId a : extents.ids())
        for (const std::int64_t size : {sizes.group[a], sizes.stream[a]})
            if (size > 0 && extents[a] % size != 0) return false;
    return true;
}

/// Whether every place in a loaded tile lies in some child's tile: not so between the places of X[2*i] and beside the
/// diagonal of X[i, i].
bool without_gaps(const Liveness& live) {
    for (const CoreVariable& v : live.variables) {
        std::set<AxisId> met;
        for (const Index& dim : v.dims) {
            if (!dim.affine()) return false;
            for (const auto& [axis, c] : dim.affine()->terms)
                if (v.loaded && ((c != 1 && c != -1) || !met.insert(axis).second)) return false;
        }
    }
    return true;
}

/// Whether some tile's size depends on where it stands: quotients, rests, and what reaches past its array. The letters'
/// H counts a whole box there.
bool depends_on_place(const Liveness& live, const Extents& extents) {
    for (const CoreVariable& v : live.variables)
        for (std::size_t d = 0; d < v.dims.size(); ++d) {
            if (!v.dims[d].affine()) return true;
            const Interval range = range_of(v.dims[d], std::vector<std::int64_t>(extents.size(), 0), extents);
            if (range.low < 0 || range.high >= extents[v.limits[d]]) return true;
        }
    return false;
}

std::string check_kernel(const Derived& derived, const Kernel& kernel, const Extents& extents,
                         const std::vector<TileSizes>& levels, const std::vector<Counts>& counted, Coverage& seen) {
    const std::vector<Counts> model = nested_costs(derived, kernel, extents, levels);
    std::vector<AxisId> grouped;
    for (const AxisId axis : kernel.group_axes)
        if (levels.back().group[axis] > 0) grouped.push_back(axis);
    const bool may_skip = symbolic_cost(derived, kernel, grouped).may_skip;
    const Liveness live = liveness(derived, kernel, &extents);
    for (std::size_t l = 0; l < levels.size(); ++l) {
        if (counted[l] != model[l])
            return fmt::format("level {}: counted {}\n         model {}", l + 1, describe(counted[l]), describe(model[l]));
        // Parts consist of the core's chunks, and would of other ones on two levels.
        if (!kernel.parts.any() && exact_costs(derived, kernel, extents, levels[l]).transfers() != model[l].transfers())
            return "H at a level is not that of two levels";
        if (!may_skip && !depends_on_place(live, extents) && divides(kernel, levels[l], extents)) {
            const double symbolic = symbolic_transfers(derived, kernel, extents, levels[l], grouped);
            if (std::abs(symbolic - static_cast<double>(counted[l].transfers())) > 1e-9 * symbolic)
                return fmt::format("level {}: counted {}, symbolic {}", l + 1, counted[l].transfers(), symbolic);
            ++seen.symbolic;
            seen.symbolic_parts += kernel.parts.any();
        }
        if (l + 1 == levels.size() || may_skip || !without_gaps(live)) continue;
        if (counted[l].transfers() > counted[l + 1].transfers())
            return fmt::format("level {} moves {} values, the level below it {}", l + 1, counted[l].transfers(),
                               counted[l + 1].transfers());
        ++seen.sums;
    }
    ++seen.kernels;
    seen.skipping += may_skip;
    if (kernel.parts.any()) {
        ++seen.parts;
        seen.levels_above_parts += static_cast<int>(levels.size()) - 1;
        seen.skipping_parts += counted.back().chunks_skipped > 0;
    }
    for (const CoreVariable& v : live.variables) {
        seen.stored_chunks += v.stored && v.loop >= 0;
        seen.held_apart += v.loaded && v.loop < 0 && v.first_step < v.last_step;
    }
    return "";
}

/// The form with its streams cut, each in at most as many parts as the core has chunks.
Derived in_parts(Derived form, const Extents& extents, const TileSizes& core, Random& random) {
    for (std::size_t k = 0; k < form.kernels.size(); ++k) {
        std::int64_t chunks = 1;
        for (const Stage& stage : form.kernels[k].stages)
            if (const auto* loop = std::get_if<Loop>(&stage))
                if (const std::int64_t size = core.stream[loop->axis]; size > 0)
                    chunks = ceil_div(extents[loop->axis], size);
        if (chunks < 2) continue;
        Parted cut = with_parts(form, k, 2 + random.below(chunks - 1));
        if (!cut.form) continue;
        form = std::move(*cut.form);
        k += cut.num_kernels - 1;
    }
    return form;
}

std::string check(const Diagram& diagram, const Extents& given, const DeriveOptions& options, std::uint64_t seed,
                  std::size_t num_levels, bool parts, Coverage& seen) {
    auto derived = derive(diagram, options);
    if (!derived.ok()) return "derive: " + render(derived.errors());
    Random random(seed * 31 + num_levels);
    auto levels = random.levels(given, num_levels, seed % 2 == 0);
    if (parts) derived = in_parts(std::move(derived).value(), given, levels.back(), random);
    const Extents extents = with_part_extents(*derived, given);
    for (TileSizes& level : levels) level.group.resize(extents.size()), level.stream.resize(extents.size());

    std::vector<TileSizes> cores;
    std::vector<std::vector<TileSizes>> all, outer;
    for (const Kernel& kernel : derived->kernels) {
        const auto nested = nest(*derived, kernel, extents, levels);
        if (!nested.ok()) return "nest: " + render(nested.errors());
        cores.push_back(nested->back());
        all.push_back(*nested);
        outer.emplace_back(nested->begin(), nested->end() - 1);
    }
    Values values = random_inputs(diagram, given, seed), reference = values;
    evaluate(diagram, given, reference);
    values.resize(derived->diagram.arrays.size());
    const auto counted = interpret_levels(sized(expand(*derived), extents, cores), outer, values);
    if (const auto d = difference(diagram, reference, derived->diagram, values); !d.empty())
        return d + "\n" + describe(*derived, extents, levels);
    for (std::size_t k = 0; k < counted.size(); ++k)
        if (const auto d = check_kernel(*derived, derived->kernels[k], extents, all[k], counted[k], seen); !d.empty())
            return fmt::format("kernel {}, {}\n{}", derived->kernels[k].name, d, describe(*derived, extents, levels));
    return "";
}

TEST(Levels, RandomDiagrams) {
    Coverage seen;
    int failures = 0;
    for (std::uint64_t seed = 0; seed < 900 && failures < 3; ++seed) {
        const Diagram diagram = random_diagram(seed);
        DeriveOptions options;
        options.form = seed % 5 == 0 ? Form::auxiliary : Form::unscaled;
        options.fuse = seed % 7 != 0;
        std::string failure;
        try {
            const Extents extents = random_extents(diagram, seed);
            for (const bool parts : {false, true})
                if (failure.empty()) failure = check(diagram, extents, options, seed, 1 + seed % 3, parts, seen);
        } catch (const std::exception& e) {
            failure = fmt::format("thrown: {}\n{}", e.what(), describe(diagram));
        }
        if (failure.empty()) continue;
        ADD_FAILURE() << "seed " << seed << ", " << 1 + seed % 3 << " levels: " << failure;
        ++failures;
    }
    fmt::print(
        "{} kernels, {} levels equal the symbolic H, {} sums, {} kernels that skip, {} stored in chunks, {} held over "
        "steps; {} kernels of parts, {} levels above them, {} equal the symbolic H, {} that skip\n",
        seen.kernels, seen.symbolic, seen.sums, seen.skipping, seen.stored_chunks, seen.held_apart, seen.parts,
        seen.levels_above_parts, seen.symbolic_parts, seen.skipping_parts);
    // The property means little where nothing of its kind occurs.
    EXPECT_GT(seen.symbolic, 500);
    EXPECT_GT(seen.sums, 500);
    EXPECT_GT(seen.skipping, 20);
    EXPECT_GT(seen.stored_chunks, 20);
    EXPECT_GT(seen.held_apart, 30);
    EXPECT_GT(seen.levels_above_parts, 50);
    EXPECT_GT(seen.symbolic_parts, 20);
    EXPECT_GT(seen.skipping_parts, 5);
}

std::shared_ptr<const Source> example(const std::string& name) {
    const std::ifstream in(source_dir() / "examples" / name);
    std::ostringstream text;
    text << in.rdbuf();
    return std::make_shared<const Source>(Source{name, text.str()});
}

/// The example with every size that is a plain number made one of 2 to 12, such that sizes which follow from them (n -
/// w + 1) exist.
Extents small_extents(const Diagram& diagram, std::uint64_t seed) {
    Random random(seed);
    const std::vector<AxisId> fixed = fixed_axes(diagram);
    for (int tries = 0;; ++tries) {
        std::map<std::string, std::int64_t> sizes;
        for (const AxisId a : diagram.axes.ids())
            if (const Axis& axis = diagram.axes[a]; (!axis.size || axis.size->as_constant()) && !contains(fixed, a))
                sizes[axis.name] = 2 + random.below(11);
        auto extents = bind_sizes(diagram, sizes);
        if (extents.ok() || tries == 20) return std::move(extents).value();
    }
}

TEST(Levels, EveryExample) {
    Coverage seen;
    for (const auto& entry : std::filesystem::directory_iterator(source_dir() / "examples")) {
        const std::string name = entry.path().filename();
        if (entry.path().extension() != ".nk") continue;
        SCOPED_TRACE(name);
        const auto diagram = parse_diagram(example(name));
        ASSERT_TRUE(diagram.ok()) << name;
        for (std::uint64_t seed = 0; seed < 6; ++seed) {
            const Extents extents = small_extents(*diagram, seed);
            for (const bool parts : {false, true})
                ASSERT_EQ(check(*diagram, extents, {}, seed, 1 + seed % 3, parts, seen), "") << name << ", seed " << seed;
        }
    }
    EXPECT_GT(seen.kernels, 100);
    EXPECT_GT(seen.skipping, 10);
}

/// The sizes by axis name: groups and stream sizes of one level.
TileSizes sizes_at(const Diagram& diagram, const std::map<std::string, std::int64_t>& group,
                   const std::map<std::string, std::int64_t>& stream) {
    TileSizes sizes{std::vector<std::int64_t>(diagram.axes.size()), std::vector<std::int64_t>(diagram.axes.size())};
    for (const auto& [axis, size] : group) sizes.group[diagram.find_axis(axis).value()] = size;
    for (const auto& [axis, size] : stream) sizes.stream[diagram.find_axis(axis).value()] = size;
    return sizes;
}

struct Caching {
    std::string name;
    std::map<std::string, std::int64_t> extents, cache, core, stream;  ///< by axis name
    std::int64_t children, core_memory;                                ///< N, and M in values
    std::function<double(double)> optimum;                             ///< H*(a, M)
};

/// Theorem 2 (intermediate caching): N children below a cache need of it what one core of N times the memory would, M_1
/// = N·M_2.
void expect_caching(const Caching& c) {
    const Diagram diagram = parse_diagram(example(c.name)).value();
    const Derived derived = derive(diagram).value();
    const Extents extents = bind_sizes(diagram, c.extents).value();
    ASSERT_EQ(derived.kernels.size(), 1U) << c.name;
    const Kernel& kernel = derived.kernels[0];
    const TileSizes cache = sizes_at(diagram, c.cache, c.stream), core = sizes_at(diagram, c.core, c.stream);
    Values values = random_inputs(diagram, extents, 1);
    values.resize(derived.diagram.arrays.size());
    const auto counted = interpret_levels(sized(expand(derived), extents, {core}), {{cache}}, values).at(0);
    EXPECT_EQ(counted[1].groups, counted[0].groups * c.children) << c.name;
    EXPECT_EQ(counted[0].transfers(), exact_costs(derived, kernel, extents, cache).transfers()) << c.name;
    EXPECT_EQ(counted[1].transfers(), exact_costs(derived, kernel, extents, core).transfers()) << c.name;
    // The group sizes are those that reach H* at M.
    const auto memory = static_cast<double>(c.core_memory);
    EXPECT_DOUBLE_EQ(static_cast<double>(counted[0].transfers()), c.optimum(memory * static_cast<double>(c.children)))
        << c.name;
    EXPECT_DOUBLE_EQ(static_cast<double>(counted[1].transfers()), c.optimum(memory)) << c.name;
    EXPECT_LE(counted[0].peak_memory, c.core_memory * c.children) << c.name;
}

TEST(Levels, IntermediateCaching) {
    // √M = 4 values of each axis at the core; 3·3 children share: H* = 2abc·M^-½ + ac.
    expect_caching(
        {"matmul.nk", {{"a", 24}, {"b", 10}, {"c", 36}}, {{"a", 12}, {"c", 12}}, {{"a", 4}, {"c", 4}}, {{"b", 1}}, 9, 16, [](double m) {
             return 2 * 24 * 10 * 36 / std::sqrt(m) + 24 * 36;
         }});
    // M = 2·d·g_q at the core; 4 children share: H* = 2q̄d + 4x̄q̄d²·M^-1.
    expect_caching(
        {"attention.nk", {{"q", 24}, {"x", 20}, {"k", 8}, {"d", 8}}, {{"q", 12}}, {{"q", 3}}, {{"x", 1}}, 4, 2 * 8 * 3, [](double m) {
             return 2 * 24 * 8 + 4 * 20 * 24 * 8 * 8 / m;
         }});
}

}  // namespace
}  // namespace napkin
