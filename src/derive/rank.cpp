#include "derive/rank.hpp"

#include <fmt/format.h>

#include <cmath>
#include <map>
#include <tuple>

#include "derive/weigh.hpp"
#include "diagram/flat_axes.hpp"
#include "diagram/symbol_names.hpp"
#include "support/ranges.hpp"
#include "support/result.hpp"

namespace napkin {
namespace {
constexpr std::size_t most_alternatives = 16;

struct Candidate {
    std::vector<Gathering> kernels;
    Weight weight;
    GatheringCost cost;
};

/// The kernel's groups repeat work along every axis over which there are any.
bool repeats_work(const Kernel& kernel) {
    return !kernel.recompute_axes.empty() && kernel.recompute_axes.size() == kernel.group_axes.size();
}

/// One kernel of a candidate.
struct Piece {
    Weight weight;
    GatheringCost cost;
};

/// Counts what the core holds all at once, whatever its size. What is reduced without a stream counts once. So does
/// every intermediate array that carries a reduced axis besides the streamed one.
int held_whole(const KernelBuilder& builder, const Gathering& g, const Kernel& kernel) {
    std::vector<AxisId> reduced, streamed;
    if (g.stream) streamed = parts_of_flat_axis(builder.diagram(), *g.stream), streamed.push_back(*g.stream);
    for (const ArrayId t : g.targets)
        for (const AxisId a : builder.definition(t).reduce_axes)
            if (!contains(streamed, a)) reduced.push_back(a);
    int whole = !reduced.empty() && !g.stream ? 1 : 0;
    for (const ArrayId t : g.targets) {
        const auto& axes = builder.diagram().array(t).axes;
        const bool stored = contains(kernel.outputs, t);
        const bool carries = any_of(axes, [&](AxisId a) { return contains(reduced, a); });
        whole += carries && !stored ? 1 : 0;
    }
    return whole;
}
/// Nothing where the kernel cannot be built.
std::optional<Piece> piece(KernelBuilder& builder, const Gathering& g, const std::vector<double>& sizes) {
    const auto trial = builder.try_kernel(g);
    if (!trial) return std::nullopt;
    Weight weight = weigh(*trial);
    const GatheringCost cost{repeats_work(trial->kernel), held_whole(builder, g, trial->kernel),
                             at_sizes(weight.flops, sizes), at_sizes(weight.transfers, sizes), 1};
    return Piece{std::move(weight), cost};
}

/// a − b as what is more in a, and what is more in b.
std::pair<AxisPolynomial, AxisPolynomial> difference(const AxisPolynomial& a, const AxisPolynomial& b) {
    AxisPolynomial more, less;
    for (const auto& [axes, value] : a) {
        const double rest = value - value_or(b, axes, 0);
        if (rest > 0) more[axes] = rest;
        if (rest < 0) less[axes] = -rest;
    }
    for (const auto& [axes, value] : b)
        if (!a.contains(axes)) less[axes] = value;
    return {more, less};
}

/// When a costs less than b of something: "" never, "always", or the comparison that decides.
std::string when_less(const AxisPolynomial& a, const AxisPolynomial& b, const Diagram& diagram) {
    const auto [more, less] = difference(a, b);
    if (less.empty()) return "";
    if (more.empty()) return "always";
    const SymbolNames names = symbol_names(diagram);
    return fmt::format("{} < {}", to_string(as_size(more), names), to_string(as_size(less), names));
}

std::string condition(const Candidate& c, const Candidate& first, const Diagram& diagram) {
    if (&c == &first) return "its tiles fit a core's memory";
    if (first.cost.one_core && !c.cost.one_core) return "there is more than one core";
    if (c.cost.whole > first.cost.whole) return "what is reduced is short enough to lie whole at the core";
    const std::string flops = when_less(c.weight.flops, first.weight.flops, diagram);
    if (!flops.empty() && flops != "always") return "fewer FLOPs: " + flops;
    const std::string transfers = when_less(c.weight.transfers, first.weight.transfers, diagram);
    if (!transfers.empty() && transfers != "always") return "fewer transfers: " + transfers;
    return "the tiles of those above do not fit a core's memory, or smaller ones serve better";
}

}  // namespace

GatheringCost& GatheringCost::operator+=(const GatheringCost& other) {
    one_core = one_core || other.one_core, whole += other.whole, kernels += other.kernels;
    flops += other.flops, transfers += other.transfers;
    return *this;
}

std::optional<GatheringCost> cost_of(KernelBuilder& builder, const Gathering& g) {
    const auto found = piece(builder, g, nominal_sizes(builder.diagram()));
    return found ? std::optional(found->cost) : std::nullopt;
}

bool ranks_before(const GatheringCost& a, const GatheringCost& b, double least_flops) {
    // FLOPs are alike up to a factor of two: a map that is computed again costs less than bringing its result.
    const auto rank = [&](const GatheringCost& c) {
        const int times = least_flops > 0 ? static_cast<int>(std::log2(c.flops / least_flops)) : 0;
        return std::tuple(c.one_core, c.whole, times, c.transfers, c.flops, c.kernels);
    };
    return rank(a) < rank(b);
}

Region ranked(KernelBuilder& builder, const std::vector<std::vector<Gathering>>& candidates) {
    const Diagram& diagram = builder.diagram();
    const std::vector<double> sizes = nominal_sizes(diagram);
    std::vector<Candidate> built;
    std::map<std::pair<std::vector<ArrayId>, std::optional<AxisId>>, std::optional<Piece>> pieces;
    if (candidates.size() == 1) return {{{candidates[0], {}, {}, "there is no other"}}, 0};
    for (const auto& kernels : candidates) {
        Candidate c{kernels, {}, {}};
        bool legal = true;
        for (const Gathering& g : kernels) {
            const auto [known, fresh] = pieces.try_emplace({g.targets, g.stream});
            if (fresh) known->second = piece(builder, g, sizes);
            legal = legal && known->second.has_value();
            if (!legal) break;
            c.weight += known->second->weight;
            c.cost += known->second->cost;
        }
        if (legal) built.push_back(std::move(c));
    }
    internal_check(!built.empty(), "no alternative of a region can be built");
    double least = built.front().cost.flops;
    for (const Candidate& c : built) least = std::min(least, c.cost.flops);
    stable_sort(built, [&](const Candidate& a, const Candidate& b) { return ranks_before(a.cost, b.cost, least); });
    if (built.size() > most_alternatives) built.resize(most_alternatives);
    Region region;
    for (const Candidate& c : built)
        region.alternatives.push_back(
            {c.kernels, as_size(c.weight.flops), as_size(c.weight.transfers), condition(c, built.front(), diagram)});
    return region;
}

}  // namespace napkin
