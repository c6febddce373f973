#include "derive/gather_siblings.hpp"

#include <fmt/format.h>

#include <map>
#include <set>

#include "support/ranges.hpp"

namespace napkin {
namespace {

/// Kernels over one input are joined up to so many equations.
constexpr std::size_t largest_joined = 64;

class SiblingJoiner {
public:
    SiblingJoiner(KernelBuilder& builder, StreamChooser& streams, const std::vector<Gathering>& parts,
                  std::vector<Refusal>& refusals)
        : builder_(builder), d_(builder.diagram()), streams_(streams), parts_(parts), refusals_(refusals) {}

    std::vector<SiblingGroup> run() { return in_order(joined()); }

private:
    /// Parts that no other feeds from one another and that read the same array, in groups that one kernel can compute.
    std::vector<SiblingGroup> joined() {
        std::vector<SiblingGroup> groups;
        std::vector<std::size_t> group_of(parts_.size());
        std::map<ArrayId, std::vector<std::size_t>> read_by;
        std::vector<std::set<std::size_t>> feeds(parts_.size());
        std::map<ArrayId, std::size_t> made_by;
        for (std::size_t i = 0; i < parts_.size(); ++i) {
            groups.push_back({i});
            group_of[i] = i;
            for (const ArrayId t : parts_[i].targets) made_by[t] = i;
        }
        for (std::size_t i = 0; i < parts_.size(); ++i)
            for (const ArrayId t : parts_[i].targets)
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
                if (!may_stand_together(array, groups[a], groups[b])) continue;
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
    static bool linked(const SiblingGroup& a, const SiblingGroup& b, const std::vector<std::set<std::size_t>>& feeds,
                       const std::vector<SiblingGroup>& groups, const std::vector<std::size_t>& group_of) {
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

    bool may_stand_together(ArrayId shared, const SiblingGroup& a, const SiblingGroup& b) {
        if (d_.array(shared).axes.empty()) return false;
        std::vector<std::size_t> both = a;
        append(both, b);
        const std::vector<ArrayId> targets = equations_of(builder_, both, parts_);
        if (targets.size() > largest_joined) return false;
        const auto groups = [&](const Gathering& g) {
            const auto tried = builder_.try_kernel(g);
            return tried ? std::optional(!tried->kernel.group_axes.empty()) : std::nullopt;
        };
        const auto refuse = [&](const std::string& reason) {
            refusals_.push_back({fmt::format("compute {} and {} beside each other, over one {}",
                                             d_.array(parts_[a.back()].targets.back()).name,
                                             d_.array(parts_[b.front()].targets.back()).name, d_.array(shared).name),
                                 reason, builder_.definition(parts_[b.front()].targets.back()).range});
            return false;
        };
        const Gathering first = streams_.with_axis(equations_of(builder_, a, parts_)),
                        second = streams_.with_axis(equations_of(builder_, b, parts_));
        if (first.stream != second.stream)
            return refuse(fmt::format("one streams {}, the other {}", stream_name(first), stream_name(second)));
        const auto together = groups(streams_.with_axis(targets));
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
    [[nodiscard]] std::vector<SiblingGroup> in_order(const std::vector<SiblingGroup>& groups) const {
        std::map<ArrayId, std::size_t> made_by;
        for (std::size_t g = 0; g < groups.size(); ++g)
            for (const ArrayId t : equations_of(builder_, groups[g], parts_)) made_by[t] = g;
        std::vector<std::set<std::size_t>> feeds(groups.size());
        std::vector<std::size_t> waits(groups.size(), 0);
        for (std::size_t g = 0; g < groups.size(); ++g)
            for (const ArrayId t : equations_of(builder_, groups[g], parts_))
                for (const ArrayId r : read_arrays(builder_.definition(t).body))
                    if (const auto maker = made_by.find(r); maker != made_by.end() && maker->second != g)
                        if (feeds[maker->second].insert(g).second) ++waits[g];
        std::set<std::size_t> ready;
        for (std::size_t g = 0; g < groups.size(); ++g)
            if (waits[g] == 0) ready.insert(g);
        std::vector<SiblingGroup> out;
        while (!ready.empty()) {
            const std::size_t g = *ready.begin();
            ready.erase(ready.begin());
            out.push_back(groups[g]);
            for (const std::size_t next : feeds[g])
                if (--waits[next] == 0) ready.insert(next);
        }
        return out;
    }

    KernelBuilder& builder_;
    const Diagram& d_;
    StreamChooser& streams_;
    const std::vector<Gathering>& parts_;
    std::vector<Refusal>& refusals_;
};

}  // namespace

std::vector<ArrayId> equations_of(const KernelBuilder& builder, const SiblingGroup& group,
                                  const std::vector<Gathering>& parts) {
    std::vector<ArrayId> all;
    for (const std::size_t member : group)
        all.insert(all.end(), parts[member].targets.begin(), parts[member].targets.end());
    sort(all, [&](ArrayId x, ArrayId y) { return builder.position(x) < builder.position(y); });
    return all;
}

std::vector<SiblingGroup> siblings(KernelBuilder& builder, StreamChooser& streams, const std::vector<Gathering>& parts,
                                   std::vector<Refusal>& refusals) {
    return SiblingJoiner(builder, streams, parts, refusals).run();
}

}  // namespace napkin
