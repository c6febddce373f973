#include "derive/gather.hpp"

#include <fmt/format.h>

#include <limits>
#include <map>
#include <set>

#include "derive/flat_stream.hpp"
#include "derive/gather_siblings.hpp"
#include "derive/gather_streams.hpp"
#include "derive/rank.hpp"
#include "derive/read_before.hpp"
#include "support/ranges.hpp"

namespace napkin {
namespace {
using Targets = std::vector<ArrayId>;

/// Up to this length, a row of equations is tried one equation after the other. A longer row is tried by doubling.
constexpr std::size_t short_row = 16;
/// A row that loses its last common axis may find one again within so many equations. An example is a norm of the keys
/// beside one of the queries, and then the scores, which have the axes of both.
constexpr std::size_t look_ahead = 4;

/// Equations in parts within each of which they are linked through computed arrays of the part.
std::vector<Targets> linked_parts(const KernelBuilder& builder, const Targets& targets) {
    std::vector<int> root(builder.diagram().arrays.size());
    iota(root, 0);
    const auto find = [&](int i) {
        while (root[at(i)] != i) i = root[at(i)] = root[at(root[at(i)])];
        return i;
    };
    const std::set<ArrayId> all(targets.begin(), targets.end());
    for (const ArrayId t : targets)
        for (const ArrayId r : read_arrays(builder.definition(t).body))
            if (all.contains(r)) root[at(find(t))] = find(r);
    std::vector<Targets> out;
    std::map<int, std::size_t> index;
    for (const ArrayId t : targets) {
        const auto [it, fresh] = index.emplace(find(t), out.size());
        if (fresh) out.emplace_back();
        out[it->second].push_back(t);
    }
    return out;
}

/// Cuts where a reduction would start from the result of two others, one inside the other, or beside such a one over
/// other axes. One of the two is streamed, and the other is done inside of its steps. There is no room for a third.
/// Reductions beside each other are one layer.
std::vector<std::size_t> layer_cuts(const KernelBuilder& builder, const Targets& targets) {
    using Layers = std::vector<std::vector<AxisId>>;  // the axes reduced on the longest way to an array of the piece
    std::map<ArrayId, Layers> layers;
    std::vector<AxisId> streamed;
    std::vector<std::size_t> cuts;
    std::size_t begin = 0;
    for (std::size_t i = 0; i < targets.size(); ++i) {
        const Equation& e = builder.definition(targets[i]);
        Layers own;
        for (const ArrayId r : read_arrays(e.body))
            if (const auto known = layers.find(r); known != layers.end() && known->second.size() > own.size())
                own = known->second;
        if (e.reduce && (own.empty() || own.back() != e.reduce_axes)) own.push_back(e.reduce_axes);
        if (own.size() < 2 || (own.size() == 2 && (streamed.empty() || own.back() == streamed))) {
            if (own.size() == 2) streamed = own.back();
            layers[targets[i]] = std::move(own);
            continue;
        }
        // What stands behind the last streamed result serves the next piece, also what needs the stream once more.
        const auto is_result = [&](ArrayId target) {
            const std::vector<AxisId>& axes = builder.diagram().array(target).axes;
            return layers.at(target).size() == 2 && (builder.definition(target).reduce ||
                                                     none_of(streamed, [&](AxisId axis) { return contains(axes, axis); }));
        };
        while (i - 1 > begin && !is_result(targets[i - 1])) --i;
        cuts.push_back(i);
        begin = i--;
        layers.clear(), streamed.clear();
    }
    return cuts;
}

/// All sets of few cuts; of many each alone, and all together.
std::vector<std::vector<std::size_t>> cut_sets(const std::vector<std::size_t>& cuts) {
    constexpr std::size_t few = 3, most = 8;
    std::vector<std::vector<std::size_t>> out;
    if (cuts.size() <= few) {
        for (std::size_t set = 1; set < (std::size_t{1} << cuts.size()); ++set) {
            out.emplace_back();
            for (std::size_t i = 0; i < cuts.size(); ++i)
                if ((set >> i) & 1U) out.back().push_back(cuts[i]);
        }
        return out;
    }
    const std::size_t stride = (cuts.size() + most - 1) / most;
    for (std::size_t i = 0; i < cuts.size(); i += stride) out.push_back({cuts[i]});
    out.push_back(cuts);
    return out;
}

class Gatherer {
public:
    Gatherer(KernelBuilder& builder, const GatherOptions& options, std::vector<Refusal>& refusals)
        : builder_(builder),
          d_(builder.diagram()),
          options_(options),
          refusals_(refusals),
          streams_(builder, options.stream) {}

    std::vector<Region> run() {
        if (!options_.kernels.empty() || !options_.fuse) return fixed();
        std::vector<Gathering> parts;
        for (const Targets& component : components())
            for (Gathering& part : parts_of(component)) parts.push_back(std::move(part));
        std::vector<Region> regions;
        for (const SiblingGroup& group : siblings(builder_, streams_, parts, refusals_))
            regions.push_back(region(group, parts));
        return regions;
    }

private:
    KernelBuilder& builder_;
    const Diagram& d_;
    const GatherOptions& options_;
    std::vector<Refusal>& refusals_;
    StreamChooser streams_;

    // --- by hand
    // ------------------------------------------------------------------------------------------------------------

    std::vector<Region> fixed() {
        std::vector<Region> out;
        std::set<ArrayId> placed;
        const auto add = [&](const Targets& targets) {
            if (targets.empty()) return;
            Region r;
            r.alternatives.push_back(
                {{streams_.with_axis(targets)}, {}, {}, options_.fuse ? "as the schedule says" : "nothing is fused"});
            out.push_back(std::move(r));
        };
        for (const auto& names : options_.kernels) {
            Targets targets;
            for (const auto& e : d_.equations)
                if (contains(names, d_.array(e.target).name) && placed.insert(e.target).second)
                    targets.push_back(e.target);
            add(targets);
        }
        for (const auto& e : d_.equations)
            if (builder_.is_needed(e.target) && placed.insert(e.target).second) add({e.target});
        return out;
    }

    // --- rows of equations that one kernel computes
    // ---------------------------------------------------------------------------

    /// All that is needed, in order, in parts that are linked. What other kernels need before they begin is apart.
    [[nodiscard]] std::vector<Targets> components() const {
        const std::set<ArrayId> before = read_before(d_);
        Targets first, rest;
        for (const auto& e : d_.equations)
            if (builder_.is_needed(e.target)) (before.contains(e.target) ? first : rest).push_back(e.target);
        std::vector<Targets> out = linked_parts(builder_, first);
        for (Targets& part : linked_parts(builder_, rest)) out.push_back(std::move(part));
        return out;
    }

    /// The component cut into the longest rows, from the front, that one kernel can compute.
    std::vector<Gathering> parts_of(const Targets& component) {
        std::vector<Gathering> parts;
        for (std::size_t from = 0; from < component.size();) {
            const std::size_t length = longest_row(component, from);
            const auto begin = component.begin() + static_cast<std::ptrdiff_t>(from);
            parts.push_back(streams_.with_axis({begin, begin + static_cast<std::ptrdiff_t>(length)}));
            from += length;
            if (from < component.size()) refuse_to_join(parts.back().targets, component[from]);
        }
        return parts;
    }

    std::size_t longest_row(const Targets& component, std::size_t from) {
        const std::size_t rest = component.size() - from;
        const auto begin = component.begin() + static_cast<std::ptrdiff_t>(from);
        const auto row = [&](std::size_t n) { return Targets(begin, begin + static_cast<std::ptrdiff_t>(n)); };
        bool groups = false;  // the row so far has an axis over which groups can be made
        const auto good = [&](std::size_t n) {
            const auto tried = builder_.try_kernel(streams_.with_axis(row(n)));
            if (!tried || (groups && tried->kernel.group_axes.empty())) return false;
            groups = groups || !tried->kernel.group_axes.empty();
            return true;
        };
        std::size_t length = 1;
        good(1);
        if (rest <= short_row) {
            for (std::size_t n = 2; n <= rest && n <= length + 1 + look_ahead; ++n)
                if (good(n)) length = n;
            return length;
        }
        std::size_t bad = 2;
        while (bad <= rest && good(bad)) length = bad, bad *= 2;
        if (bad > rest && good(rest)) return rest;
        bad = std::min(bad, rest);
        while (bad - length > 1) {
            const std::size_t middle = length + (bad - length) / 2;
            (good(middle) ? length : bad) = middle;
        }
        return length;
    }

    /// Why the next equation starts a kernel of its own.
    void refuse_to_join(const Targets& row, ArrayId next) {
        const Equation& e = builder_.definition(next);
        const bool linked = any_of(row, [&](ArrayId t) { return reads_array(e.body, t); });
        if (!linked) return;
        Targets longer = row;
        longer.push_back(next);
        const auto tried = builder_.traversals(streams_.with_axis(longer));
        if (const auto* refusal = std::get_if<Refusal>(&tried)) {
            refusals_.push_back(*refusal);
            return;
        }
        refusals_.push_back(
            {fmt::format("fuse {} with {}", d_.array(row.back()).name, d_.array(next).name),
             "no axis is woven over all of their results, so that one kernel could not be cut into groups", e.range});
    }

    // --- alternatives
    // ---------------------------------------------------------------------------------------------------------

    Region region(const SiblingGroup& group, const std::vector<Gathering>& parts) {
        std::vector<std::vector<Gathering>> candidates;
        std::vector<Gathering> apart;
        for (const std::size_t member : group) apart.push_back(parts[member]);
        if (group.size() > 1) candidates.push_back({streams_.with_axis(equations_of(builder_, group, parts))});
        candidates.push_back(apart);
        for (std::size_t i = 0; i < apart.size(); ++i) {
            for (const auto& split : splittings(apart[i])) {
                auto candidate = apart;
                candidate.erase(candidate.begin() + static_cast<std::ptrdiff_t>(i));
                candidate.insert(candidate.begin() + static_cast<std::ptrdiff_t>(i), split.begin(), split.end());
                candidates.push_back(std::move(candidate));
            }
        }
        return ranked(builder_, candidates);
    }

    /// Reductions of inputs alone, as norms of keys, become kernels of their own in front of the others. Each has fewer
    /// axes than another result, so that it is read where it would be computed again. A norm by which its own row is
    /// scaled stays with the row. `only_streamed`: those along the stream, which every group would compute.
    std::vector<Gathering> with_small_reductions_first(const Gathering& part, bool only_streamed) {
        const auto axes = [&](ArrayId id) -> const std::vector<AxisId>& { return d_.array(id).axes; };
        std::vector<Gathering> pieces;
        Targets rest;
        for (const ArrayId t : part.targets) {
            const Equation& e = builder_.definition(t);
            const auto reads = read_arrays(e.body);
            const bool is_leaf = e.reduce && none_of(reads, [&](ArrayId r) { return contains(part.targets, r); });
            const auto has_more_axes = [&](ArrayId other) {
                return axes(other).size() > axes(t).size() &&
                       all_of(axes(t), [&](AxisId a) { return contains(axes(other), a); });
            };
            if (is_leaf && (!only_streamed || (part.stream && contains(axes(t), *part.stream))) &&
                any_of(part.targets, has_more_axes) && !scales_its_input(t, part.targets))
                pieces.push_back(streams_.with_axis({t}));
            else
                rest.push_back(t);
        }
        if (!rest.empty()) pieces.push_back(streams_.with_axis(rest));
        return pieces;
    }

    /// Maps make of the reduction an array along an axis that it has reduced.
    [[nodiscard]] bool scales_its_input(ArrayId reduction, const Targets& targets) const {
        const std::vector<AxisId>& reduced = builder_.definition(reduction).reduce_axes;
        Targets made = {reduction};
        for (const ArrayId t : targets) {
            const Equation& e = builder_.definition(t);
            const auto reads = read_arrays(e.body);
            if (e.reduce || none_of(reads, [&](ArrayId r) { return contains(made, r); })) continue;
            if (any_of(d_.array(t).axes, [&](AxisId a) { return contains(reduced, a); })) return true;
            made.push_back(t);
        }
        return false;
    }

    /// The sets of cuts whose kernels cost the least, the best first. What a row costs up to a cut is what its kernels
    /// cost. So a set is among the best only if its part before each cut is.
    std::vector<std::vector<std::size_t>> best_cut_sets(const Targets& targets, std::vector<std::size_t> cuts) {
        constexpr std::size_t most = 64, most_joined = 12, wanted = 8;
        struct Row {
            std::vector<std::size_t> cuts;
            GatheringCost cost;
        };
        cuts.insert(cuts.begin(), 0), cuts.push_back(targets.size());
        std::vector<std::vector<Row>> rows(cuts.size());
        rows[0].push_back({});
        for (std::size_t to = 1; to < cuts.size(); ++to) {
            std::vector<Row>& here = rows[to];
            for (std::size_t from = to > most_joined ? to - most_joined : 0; from < to; ++from) {
                const auto cost = rows[from].empty() ? std::nullopt : cost_of_piece(targets, cuts[from], cuts[to]);
                if (!cost) continue;
                for (Row row : rows[from]) {
                    if (from > 0) row.cuts.push_back(cuts[from]);
                    row.cost += *cost;
                    here.push_back(std::move(row));
                }
            }
            double least = std::numeric_limits<double>::infinity();
            for (const Row& row : here) least = std::min(least, row.cost.flops);
            stable_sort(here, [&](const Row& a, const Row& b) { return ranks_before(a.cost, b.cost, least); });
            if (here.size() > most) here.resize(most);
        }
        std::vector<std::vector<std::size_t>> out;
        for (Row& row : rows.back())
            if (!row.cuts.empty() && out.size() < wanted) out.push_back(std::move(row.cuts));
        return out;
    }
    /// As one kernel, or as one for each linked part.
    std::optional<GatheringCost> cost_of_piece(const Targets& targets, std::size_t from, std::size_t to) {
        const Targets piece(targets.begin() + static_cast<std::ptrdiff_t>(from),
                            targets.begin() + static_cast<std::ptrdiff_t>(to));
        if (const auto cost = cost_of(builder_, streams_.with_axis(piece))) return cost;
        const std::vector<Targets> parts = linked_parts(builder_, piece);
        std::optional<GatheringCost> sum;
        for (const Targets& part : parts.size() > 1 ? parts : std::vector<Targets>()) {
            const auto cost = cost_of(builder_, streams_.with_axis(part));
            if (!cost) return std::nullopt;
            sum = sum.value_or(GatheringCost{});
            *sum += *cost;
        }
        return sum;
    }

    /// Other ways to compute the equations of one part: along another axis, and cut before reductions (a map alone has
    /// no reason to leave the kernel of its operands).
    std::vector<std::vector<Gathering>> splittings(const Gathering& part) {
        std::vector<std::vector<Gathering>> out;
        const auto axes = reduced_axes(builder_, part.targets);
        if (options_.stream.empty() && !axes.empty()) {
            if (part.stream) out.push_back({{part.targets, std::nullopt}});
            for (const AxisId a : axes)
                if (part.stream != a) out.push_back({{part.targets, a}});
            const auto equations = mapped<Equation>(part.targets, [&](ArrayId t) { return builder_.definition(t); });
            for (const AxisId a : flat_axes_of(d_, equations)) out.push_back({{part.targets, a}});
        }
        for (const bool only_streamed : {true, false})
            if (auto pieces = with_small_reductions_first(part, only_streamed); pieces.size() > 1 && !contains(out, pieces))
                out.push_back(std::move(pieces));
        std::vector<std::size_t> cuts;
        for (std::size_t i = 1; i < part.targets.size(); ++i)
            if (builder_.definition(part.targets[i]).reduce) cuts.push_back(i);
        auto sets = cut_sets(cuts);
        for (auto& best : best_cut_sets(part.targets, cuts))
            if (!contains(sets, best)) sets.push_back(std::move(best));
        if (const auto layers = layer_cuts(builder_, part.targets); !layers.empty() && !contains(sets, layers))
            sets.insert(sets.begin(), layers);
        for (const auto& chosen : sets) {
            std::vector<Gathering> pieces;
            std::size_t from = 0;
            for (std::size_t k = 0; k <= chosen.size(); ++k) {
                const std::size_t to = k < chosen.size() ? chosen[k] : part.targets.size();
                pieces.push_back(streams_.with_axis({part.targets.begin() + static_cast<std::ptrdiff_t>(from),
                                                     part.targets.begin() + static_cast<std::ptrdiff_t>(to)}));
                from = to;
            }
            // What a cut leaves without a link, as the norms of queries and of keys before their scores, may be as many
            // kernels.
            std::vector<Gathering> apart;
            for (const Gathering& piece : pieces)
                for (const Targets& linked : linked_parts(builder_, piece.targets))
                    apart.push_back(streams_.with_axis(linked));
            const bool any_apart = apart.size() > pieces.size() && !contains(out, apart);
            if (!contains(out, pieces)) out.push_back(std::move(pieces));
            if (any_apart) out.push_back(std::move(apart));
        }
        return out;
    }
};

}  // namespace

std::vector<Region> gather(KernelBuilder& builder, const GatherOptions& options, std::vector<Refusal>& refusals) {
    return Gatherer(builder, options, refusals).run();
}

}  // namespace napkin
