#include <fmt/format.h>

#include "cost/divisors.hpp"
#include "steps/steps.hpp"
#include "support/ids.hpp"
#include "support/ranges.hpp"
#include "support/saturate.hpp"

namespace napkin {

const Instruction* StepContext::instruction_of(const StatementWork& work) const {
    if (planned) return value_or(*planned, work.target, nullptr);
    return instruction_for(machine, work.contraction->type);
}

std::int64_t StepContext::num_warpgroups() const {
    std::int64_t n = sharing;
    for (const auto& [axis, share] : warpgroup) {
        const std::int64_t group = sizes.group[axis] > 0 ? sizes.group[axis] : extents[axis];
        n *= (group + share - 1) / share;
    }
    return n;
}

CutSize StepContext::cut(AxisId axis, const std::set<AxisId>& streamed, const std::set<AxisId>& parts, bool on_threads) const {
    const auto a = axis;
    if (const auto share = warpgroup.find(axis); share != warpgroup.end()) {
        if (!on_threads) return {axis, 'w', share->second};
        return {axis, 't', ceil_div(share->second, threads)};
    }
    if (parts.contains(axis))
        return {axis, 'u', std::min(sizes.sub[a], streamed.contains(axis) ? sizes.stream[a] : extents[a])};
    if (streamed.contains(axis)) return {axis, 's', sizes.stream[a]};
    if (sizes.group[a] > 0 && sizes.group[a] < extents[a]) return {axis, 'g', sizes.group[a]};
    return {axis, 0, extents[a]};
}

std::vector<CutSize> StepContext::cuts_of(const Assigned& assigned, VariableId id, const StepChoices& choices) const {
    const Variable& v = assigned.kernel.variables[id];
    const AssignedVariable& where = assigned.variables[id];
    const bool on_threads = where.at == HeldAt::threads;
    const auto pieces = choices.pieces.find(v.name);
    std::vector<CutSize> out;
    std::vector<std::int64_t> tile = extents;
    for (std::size_t a = 0; a < tile.size(); ++a) tile[a] = cut(AxisId::of(a), where.streamed, where.cut, false).size;
    for (const Index& dim : v.dims) {
        const AxisId axis = dim.single_axis();
        if (axis < 0) {
            const Interval range = range_of(dim, std::vector<std::int64_t>(tile.size(), 0), tile);
            out.push_back({-1, 0, range.high - range.low + 1});
        } else if (pieces != choices.pieces.end() && pieces->second.contains(axis)) {
            out.push_back({axis, 'p', pieces->second.at(axis).value});
        } else {
            out.push_back(cut(axis, where.streamed, where.cut, on_threads));
        }
    }
    return out;
}

std::vector<CutSize> sizes_of(const StepContext& context, const Assigned& assigned, const StepChoices& choices) {
    std::vector<CutSize> out;
    for (const auto& [axis, share] : context.warpgroup)
        out.push_back({axis, 'g', context.sizes.group[axis] > 0 ? context.sizes.group[axis] : context.extents[axis]});
    for (std::size_t v = 0; v < assigned.variables.size(); ++v)
        for (const CutSize& cut : context.cuts_of(assigned, VariableId::of(v), choices))
            if (cut.letter != 0 && !contains(out, cut)) out.push_back(cut);
    for (const AxisId axis : context.sizes.sub.ids())
        if (const CutSize cut{axis, 'u', context.sizes.sub[axis]}; cut.size > 0 && !contains(out, cut))
            out.push_back(cut);
    return out;
}

const std::vector<AxisId>& columns_of(const StepContext& context, const Contraction& contraction) {
    const auto is_shared_out = [&](AxisId axis) { return context.warpgroup.contains(axis); };
    return any_of(contraction.n, is_shared_out) && none_of(contraction.m, is_shared_out) ? contraction.m : contraction.n;
}

bool is_shared(const StepContext& context, const Variable& variable) {
    return none_of(variable.dims, [&](const Index& dim) {
        return any_of(context.warpgroup, [&](const auto& share) { return dim.depends_on(share.first); });
    });
}

std::string to_string(const CutSize& size, const std::vector<std::string>& axes) {
    if (size.axis < 0) return std::to_string(size.size);
    return size.letter == 0 ? axes[at(size.axis)] : fmt::format("{}_{}", size.letter, axes[at(size.axis)]);
}

}  // namespace napkin
