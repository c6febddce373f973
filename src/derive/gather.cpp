#include "derive/gather.hpp"

#include <fmt/format.h>

#include <map>
#include <set>
#include <tuple>

#include "algebra/expr_walk.hpp"
#include "derive/rank.hpp"
#include "support/ranges.hpp"

namespace napkin {
namespace {
using Targets = std::vector<ArrayId>;

/// Up to this length, a row of equations is tried one equation after the other. A longer row is tried by doubling.
constexpr std::size_t short_row = 16;
/// A row that loses its last common axis may find one again within so many equations. An example is a norm of the keys
/// beside one of the queries, and then the scores, which have the axes of both.
constexpr std::size_t look_ahead = 4;
/// Kernels over one input are joined up to so many equations.
constexpr std::size_t largest_joined = 64;

class Gatherer {
public:
    Gatherer(KernelBuilder& builder, const GatherOptions& options, std::vector<Refusal>& refusals)
        : builder_(builder), d_(builder.diagram()), options_(options), refusals_(refusals) {}

    std::vector<Region> run() {
        if (!options_.kernels.empty() || !options_.fuse) return fixed();
        std::vector<Gathering> parts;
        for (const Targets& component : components())
            for (Gathering& part : parts_of(component)) parts.push_back(std::move(part));
        std::vector<Region> regions;
        for (const std::vector<std::size_t>& group : in_order(siblings(parts), parts))
            regions.push_back(region(group, parts));
        return regions;
    }

private:
    KernelBuilder& builder_;
    const Diagram& d_;
    const GatherOptions& options_;
    std::vector<Refusal>& refusals_;
    std::map<Targets, Gathering> with_axis_;  ///< what was asked for

    // --- by hand
    // ------------------------------------------------------------------------------------------------------------

    std::vector<Region> fixed() {
        std::vector<Region> out;
        std::set<ArrayId> placed;
        const auto add = [&](const Targets& targets) {
            if (targets.empty()) return;
            Region r;
            r.alternatives.push_back(
                {{with_axis(targets)}, {}, {}, options_.fuse ? "as the schedule says" : "nothing is fused"});
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

    /// All that is needed, in order, in parts that are linked.
    [[nodiscard]] std::vector<Targets> components() const {
        Targets needed;
        for (const auto& e : d_.equations)
            if (builder_.is_needed(e.target)) needed.push_back(e.target);
        return linked_parts(needed);
    }

    /// Equations in parts within each of which they are linked through computed arrays of the part.
    [[nodiscard]] std::vector<Targets> linked_parts(const Targets& targets) const {
        std::vector<int> root(d_.arrays.size());
        iota(root, 0);
        const auto find = [&](int i) {
            while (root[at(i)] != i) i = root[at(i)] = root[at(root[at(i)])];
            return i;
        };
        const std::set<ArrayId> all(targets.begin(), targets.end());
        for (const ArrayId t : targets)
            for (const ArrayId r : read_arrays(builder_.definition(t).body))
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

    /// The component cut into the longest rows, from the front, that one kernel can compute.
    std::vector<Gathering> parts_of(const Targets& component) {
        std::vector<Gathering> parts;
        for (std::size_t from = 0; from < component.size();) {
            const std::size_t length = longest_row(component, from);
            const auto begin = component.begin() + static_cast<std::ptrdiff_t>(from);
            parts.push_back(with_axis({begin, begin + static_cast<std::ptrdiff_t>(length)}));
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
            const auto tried = builder_.try_kernel(with_axis(row(n)));
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
        const auto tried = builder_.traversals(with_axis(longer));
        if (const auto* refusal = std::get_if<Refusal>(&tried)) {
            refusals_.push_back(*refusal);
            return;
        }
        refusals_.push_back(
            {fmt::format("fuse {} with {}", d_.array(row.back()).name, d_.array(next).name),
             "no axis is woven over all of their results, so that one kernel could not be cut into groups", e.range});
    }

    // --- which axis is streamed
    // -----------------------------------------------------------------------------------------------

    [[nodiscard]] std::vector<AxisId> reduced_axes(const Targets& targets) const {
        std::vector<AxisId> axes;
        for (const ArrayId t : targets)
            for (const AxisId a : builder_.definition(t).reduce_axes)
                if (!contains(axes, a)) axes.push_back(a);
        return axes;
    }

    /// True when some index adds the axis to others: neighbouring chunks of it overlap, and are loaded again.
    [[nodiscard]] bool chunks_overlap(const Targets& targets, AxisId axis) const {
        bool overlap = false;
        for (const ArrayId t : targets)
            for_each_postorder(builder_.definition(t).body, [&](const Expr& node) {
                if (const auto* read = as<Read>(node))
                    for (const Index& index : read->indices)
                        overlap |= index.axes().size() > 1 && index.depends_on(axis);
            });
        return overlap;
    }

    /// The axis under most reductions, then the fewest traversals, then one whose chunks do not overlap, then the
    /// latest: what it consumes need not be kept whole.
    Gathering with_axis(const Targets& targets) {
        const auto known = with_axis_.find(targets);
        return known != with_axis_.end() ? known->second : with_axis_[targets] = find_axis(targets);
    }
    Gathering find_axis(const Targets& targets) {
        Gathering best{targets, std::nullopt};
        const auto axes = reduced_axes(targets);
        for (const AxisId a : options_.stream)
            if (contains(axes, a)) return {targets, a};
        std::tuple<int, int, bool> best_score{-1, 0, false};
        for (const AxisId a : axes) {
            int reductions = 0;
            for (const ArrayId t : targets) reductions += contains(builder_.definition(t).reduce_axes, a) ? 1 : 0;
            const auto traversals = builder_.traversals({targets, a});
            if (std::holds_alternative<Refusal>(traversals)) continue;
            const std::tuple score{reductions, -std::get<int>(traversals), !chunks_overlap(targets, a)};
            if (score >= best_score) {
                best_score = score;
                best.stream = a;
            }
        }
        return best;
    }

    // --- kernels over one input
    // -------------------------------------------------------------------------------------------------

    /// Parts that no other feeds from one another and that read the same array, in groups that one kernel can compute.
    std::vector<std::vector<std::size_t>> siblings(const std::vector<Gathering>& parts) {
        std::vector<std::vector<std::size_t>> groups;
        std::vector<std::size_t> group_of(parts.size());
        std::map<ArrayId, std::vector<std::size_t>> read_by;
        std::vector<std::set<std::size_t>> feeds(parts.size());
        std::map<ArrayId, std::size_t> made_by;
        for (std::size_t i = 0; i < parts.size(); ++i) {
            groups.push_back({i});
            group_of[i] = i;
            for (const ArrayId t : parts[i].targets) made_by[t] = i;
        }
        for (std::size_t i = 0; i < parts.size(); ++i)
            for (const ArrayId t : parts[i].targets)
                for (const ArrayId r : read_arrays(builder_.definition(t).body)) {
                    const auto maker = made_by.find(r);
                    if (maker != made_by.end() && maker->second == i) continue;
                    if (maker != made_by.end()) feeds[maker->second].insert(i);
                    auto& list = read_by[r];
                    if (list.empty() || list.back() != i) list.push_back(i);
                }
        for (const auto& [array, readers] : read_by) {
            for (std::size_t k = 1; k < readers.size(); ++k) {
                const std::size_t a = group_of[readers[k - 1]], b = group_of[readers[k]];
                if (a == b || linked(groups[a], groups[b], feeds, groups, group_of)) continue;
                if (!may_stand_together(array, groups[a], groups[b], parts)) continue;
                for (const std::size_t member : groups[b]) group_of[member] = a;
                groups[a].insert(groups[a].end(), groups[b].begin(), groups[b].end());
                sort(groups[a]);
                groups[b].clear();
            }
        }
        std::erase_if(groups, [](const auto& group) { return group.empty(); });
        return groups;
    }

    /// True when what one of them makes reaches the other, through whatever stands between.
    static bool linked(const std::vector<std::size_t>& a, const std::vector<std::size_t>& b,
                       const std::vector<std::set<std::size_t>>& feeds,
                       const std::vector<std::vector<std::size_t>>& groups, const std::vector<std::size_t>& group_of) {
        const auto reaches = [&](const std::vector<std::size_t>& from, std::size_t to) {
            std::set<std::size_t> seen;
            std::vector<std::size_t> work = from;
            while (!work.empty()) {
                const std::size_t part = work.back();
                work.pop_back();
                for (const std::size_t next : feeds[part]) {
                    if (group_of[next] == to) return true;
                    if (!seen.insert(group_of[next]).second) continue;
                    work.insert(work.end(), groups[group_of[next]].begin(), groups[group_of[next]].end());
                }
            }
            return false;
        };
        return reaches(a, group_of[b.front()]) || reaches(b, group_of[a.front()]);
    }

    [[nodiscard]] Targets united(const std::vector<std::size_t>& group, const std::vector<Gathering>& parts) const {
        Targets all;
        for (const std::size_t member : group)
            all.insert(all.end(), parts[member].targets.begin(), parts[member].targets.end());
        sort(all, [&](ArrayId x, ArrayId y) { return builder_.position(x) < builder_.position(y); });
        return all;
    }

    bool may_stand_together(ArrayId shared, const std::vector<std::size_t>& a, const std::vector<std::size_t>& b,
                            const std::vector<Gathering>& parts) {
        if (d_.array(shared).axes.empty()) return false;
        std::vector<std::size_t> both = a;
        append(both, b);
        const Targets targets = united(both, parts);
        if (targets.size() > largest_joined) return false;
        const auto groups = [&](const Gathering& g) {
            const auto tried = builder_.try_kernel(g);
            return tried ? std::optional(!tried->kernel.group_axes.empty()) : std::nullopt;
        };
        const auto refuse = [&](const std::string& reason) {
            refusals_.push_back({fmt::format("compute {} and {} beside each other, over one {}",
                                             d_.array(parts[a.back()].targets.back()).name,
                                             d_.array(parts[b.front()].targets.back()).name, d_.array(shared).name),
                                 reason, builder_.definition(parts[b.front()].targets.back()).range});
            return false;
        };
        const Gathering first = with_axis(united(a, parts)), second = with_axis(united(b, parts));
        if (first.stream != second.stream)
            return refuse(fmt::format("one streams {}, the other {}", stream_name(first), stream_name(second)));
        const auto together = groups(with_axis(targets));
        if (!together) return refuse("one reads the other at other indices than its own");
        const auto alone = groups(first), other = groups(second);
        if (!*together && (alone.value_or(false) || other.value_or(false)))
            return refuse("no axis is woven over both results, so that one kernel could not be cut into groups");
        return true;
    }
    [[nodiscard]] std::string stream_name(const Gathering& g) const {
        return g.stream ? d_.axis(*g.stream).name : "nothing";
    }

    /// The groups so that each stands after those that feed it; else as they stand in the diagram.
    [[nodiscard]] std::vector<std::vector<std::size_t>> in_order(const std::vector<std::vector<std::size_t>>& groups,
                                                                 const std::vector<Gathering>& parts) const {
        std::map<ArrayId, std::size_t> made_by;
        for (std::size_t g = 0; g < groups.size(); ++g)
            for (const ArrayId t : united(groups[g], parts)) made_by[t] = g;
        std::vector<std::set<std::size_t>> feeds(groups.size());
        std::vector<std::size_t> waits(groups.size(), 0);
        for (std::size_t g = 0; g < groups.size(); ++g)
            for (const ArrayId t : united(groups[g], parts))
                for (const ArrayId r : read_arrays(builder_.definition(t).body))
                    if (const auto maker = made_by.find(r); maker != made_by.end() && maker->second != g)
                        if (feeds[maker->second].insert(g).second) ++waits[g];
        std::set<std::size_t> ready;
        for (std::size_t g = 0; g < groups.size(); ++g)
            if (waits[g] == 0) ready.insert(g);
        std::vector<std::vector<std::size_t>> out;
        while (!ready.empty()) {
            const std::size_t g = *ready.begin();
            ready.erase(ready.begin());
            out.push_back(groups[g]);
            for (const std::size_t next : feeds[g])
                if (--waits[next] == 0) ready.insert(next);
        }
        return out;
    }

    // --- alternatives
    // ---------------------------------------------------------------------------------------------------------

    Region region(const std::vector<std::size_t>& group, const std::vector<Gathering>& parts) {
        std::vector<std::vector<Gathering>> candidates;
        std::vector<Gathering> apart;
        for (const std::size_t member : group) apart.push_back(parts[member]);
        if (group.size() > 1) candidates.push_back({with_axis(united(group, parts))});
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

    /// Other ways to compute the equations of one part: along another axis, and cut before reductions (a map alone has
    /// no reason to leave the kernel of its operands).
    std::vector<std::vector<Gathering>> splittings(const Gathering& part) {
        std::vector<std::vector<Gathering>> out;
        const auto axes = reduced_axes(part.targets);
        if (options_.stream.empty() && !axes.empty()) {
            if (part.stream) out.push_back({{part.targets, std::nullopt}});
            for (const AxisId a : axes)
                if (part.stream != a) out.push_back({{part.targets, a}});
        }
        std::vector<std::size_t> cuts;
        for (std::size_t i = 1; i < part.targets.size(); ++i)
            if (builder_.definition(part.targets[i]).reduce) cuts.push_back(i);
        auto sets = cut_sets(cuts);
        if (const auto layers = layer_cuts(part.targets); layers.size() > 1) sets.insert(sets.begin(), layers);
        for (const auto& chosen : sets) {
            std::vector<Gathering> pieces;
            std::size_t from = 0;
            for (std::size_t k = 0; k <= chosen.size(); ++k) {
                const std::size_t to = k < chosen.size() ? chosen[k] : part.targets.size();
                pieces.push_back(with_axis({part.targets.begin() + static_cast<std::ptrdiff_t>(from),
                                            part.targets.begin() + static_cast<std::ptrdiff_t>(to)}));
                from = to;
            }
            // What a cut leaves without a link, as the norms of queries and of keys before their scores, may be as many
            // kernels.
            std::vector<Gathering> apart;
            for (const Gathering& piece : pieces)
                for (const Targets& linked : linked_parts(piece.targets)) apart.push_back(with_axis(linked));
            const bool any_apart = apart.size() > pieces.size();
            out.push_back(std::move(pieces));
            if (any_apart) out.push_back(std::move(apart));
        }
        return out;
    }

    /// Cuts where a reduction would start from the result of two others over different axes, one inside the other. One
    /// of the two is streamed, and the other is done inside of its steps. There is no room for a third.
    [[nodiscard]] std::vector<std::size_t> layer_cuts(const Targets& targets) const {
        using Layers = std::set<std::vector<AxisId>>;
        std::map<ArrayId, Layers> layers;  // the axes reduced on the way to each array of the piece
        std::vector<std::size_t> cuts;
        for (std::size_t i = 0; i < targets.size(); ++i) {
            const Equation& e = builder_.definition(targets[i]);
            const auto collect = [&] {
                Layers all;
                for (const ArrayId r : read_arrays(e.body))
                    if (const auto known = layers.find(r); known != layers.end())
                        all.insert(known->second.begin(), known->second.end());
                if (e.reduce) all.insert(e.reduce_axes);
                return all;
            };
            Layers own = collect();
            if (e.reduce && own.size() > 2) {
                cuts.push_back(i);
                layers.clear();
                own = collect();
            }
            layers[targets[i]] = std::move(own);
        }
        return cuts;
    }

    /// All sets of few cuts; of many each alone, and all together.
    static std::vector<std::vector<std::size_t>> cut_sets(const std::vector<std::size_t>& cuts) {
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
};

}  // namespace

std::vector<Region> gather(KernelBuilder& builder, const GatherOptions& options, std::vector<Refusal>& refusals) {
    return Gatherer(builder, options, refusals).run();
}

}  // namespace napkin
