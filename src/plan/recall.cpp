#include "plan/recall.hpp"
#include "support/json.hpp"

#include <cstdint>
#include <limits>
#include <utility>

#include "derive/derive.hpp"
#include "plan/aligned.hpp"
#include "plan/by_hand.hpp"
#include "plan/parts.hpp"
#include "plan/tiled.hpp"
#include "schedule/rules.hpp"
#include "support/ids.hpp"
#include "support/ranges.hpp"

namespace napkin {

// Every field, by its name. Ids are numbers: the same code gives the same ones to the same diagram.
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Choice, value, reason, by_hand)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Atom, kind, vector_axis, across, shared, vectors, row_axis, rows, vector_inner,
                                   points, reduced, cut_axis, cut, parts, polynomials, polynomials_of, run, follows,
                                   reason, by_hand)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Place, holding, innermost, stages, non_temporal, boxes, by_hand)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Prefetch, variable, atom, ahead, fetched, cache)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Deferral, atom, in, groups)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Role, name, workers, reason, by_hand)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Slot, role, position, ahead)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(KernelSchedule, kernel, group, stream, subloop, split, threads, grid, dealing,
                                   cluster_axis, cluster, warps, blocks, vector_axis, vector_axis_reason,
                                   panel_vectors, tensor_axis, tensor_axis_reason, panel_by_hand,
                                   lazy, turns, rows, atoms, places, prefetches, deferrals, roles, slots)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Busy, what, seconds)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Traffic, path, loaded_bytes, stored_bytes)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Simulation, seconds, core_seconds, waves, transfers, groups, launch_seconds, busy, traffic)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(TiledReduction, producer, consumer, axis, tile)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(FormChange, tiled, has_aligned_rows, parts)
// Without what the machine says of instructions.
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(VectorUnit, bytes, registers, line_bytes, chains, warp_threads, block_bytes,
                                   share_bytes, block_registers, blocks_a_core, reread_bytes)

namespace {

using nlohmann::json;

/// Of a kernel's schedule: its ids are those of the program, its numbers those of sizes.
class Sound {
public:
    Sound(const TileProgram& program, const TileKernel& kernel, const KernelSchedule& schedule, bool on_gpu)
        : num_axes_(std::ssize(program.diagram.axes)), kernel_(kernel), s_(schedule), on_gpu_(on_gpu) {}

    [[nodiscard]] bool run() const {
        const std::int64_t statements = std::ssize(statement_names(kernel_));
        return s_.kernel == kernel_.name && s_.atoms.size() == atom_names(kernel_).size() &&
               s_.places.size() == kernel_.variables.size() && are_sizes(s_.group) && are_sizes(s_.stream) &&
               are_sizes(s_.subloop) && is_axis_or_none(s_.vector_axis) && is_axis_or_none(s_.tensor_axis) &&
               is_axis_or_none(s_.cluster_axis) && s_.cluster.value > 0 && s_.split.value > 0 && s_.threads.value > 0 &&
               s_.grid.value >= 0 && (s_.warps.value > 0) == on_gpu_ && (s_.blocks.value > 0) == on_gpu_ &&
               (on_gpu_ || s_.tensor_axis < 0) && s_.panel_vectors > 0 && s_.rows.value > 0 &&
               is_below(s_.lazy.value, std::ssize(lagging_words)) && (s_.turns.value == 0 || s_.turns.value == 1) &&
               is_below(s_.dealing.value, std::ssize(dealing_words)) &&
               all(s_.atoms, [&](const Atom& a) { return is_sound(a); }) && are_sound_places() &&
               all(s_.prefetches, [&](const Prefetch& p) { return is_sound(p); }) &&
               all(s_.deferrals,
                   [&](const Deferral& d) {
                       return is_below(d.atom, std::ssize(s_.atoms)) && is_below(d.in, std::ssize(s_.atoms)) &&
                              is_below(d.groups.value, 2);
                   }) &&
               all(s_.roles, [](const Role& role) { return role.workers > 0; }) && all(s_.slots, [&](const auto& slot) {
                   return is_below(slot.first, statements) && slot.second.role >= -1 &&
                          slot.second.role < std::ssize(s_.roles) && slot.second.ahead >= 0;
               });
    }

private:
    template <class List, class F>
    static bool all(const List& list, const F& f) {
        return all_of(list, f);
    }
    static bool is_below(std::int64_t id, std::int64_t count) { return id >= 0 && id < count; }
    [[nodiscard]] bool is_axis(AxisId axis) const { return is_below(axis, num_axes_); }
    [[nodiscard]] bool is_axis_or_none(AxisId axis) const { return axis == -1 || is_axis(axis); }
    [[nodiscard]] bool are_axes(const std::vector<AxisId>& axes) const {
        return all(axes, [&](AxisId axis) { return is_axis(axis); });
    }
    [[nodiscard]] bool are_sizes(const std::map<AxisId, Choice>& sizes) const {
        return all(sizes, [&](const auto& size) { return is_axis(size.first) && size.second.value > 0; });
    }
    [[nodiscard]] bool is_sound(const Atom& a) const {
        return is_below(static_cast<int>(a.kind), std::ssize(atom_kind_names)) && is_axis_or_none(a.vector_axis) &&
               is_axis_or_none(a.row_axis) && is_axis_or_none(a.cut_axis) && are_axes(a.points) &&
               are_axes(a.reduced) && a.vectors > 0 && a.rows > 0 && a.parts > 0 && a.polynomials >= 0 &&
               a.polynomials_of > 0 && (a.cut_axis < 0 || a.cut > 0);
    }
    [[nodiscard]] bool is_sound(const Prefetch& p) const {
        return is_below(p.variable, std::ssize(s_.places)) && is_below(p.atom, std::ssize(s_.atoms)) &&
               p.ahead.value >= 0 && p.fetched <= Fetched::blocks && p.cache >= 1 && p.cache <= 2;
    }
    [[nodiscard]] bool are_sound_places() const {
        for (std::size_t v = 0; v < s_.places.size(); ++v) {
            const Place& p = s_.places[v];
            const std::ptrdiff_t dims = std::ssize(kernel_.variables[v].dims);
            if (!is_below(static_cast<int>(p.holding), std::ssize(holding_names)) || p.stages < 1 || p.boxes < 0 ||
                !(dims == 0 ? p.innermost == -1 : is_below(p.innermost, dims)))
                return false;
        }
        return true;
    }

    const std::ptrdiff_t num_axes_;
    const TileKernel& kernel_;
    const KernelSchedule& s_;
    const bool on_gpu_;
};

bool is_sound(const VectorUnit& unit, bool on_gpu) {
    return unit.bytes >= 8 && unit.registers > 0 && unit.line_bytes > 0 && unit.blocks_a_core > 0 &&
           (on_gpu ? unit.warp_threads > 0 : unit.warp_threads == 0);
}

/// No whole number in it is past `most` or below -most: what is made of a plan multiplies them.
bool are_within(const json& value, std::int64_t most) {
    if (value.is_number_unsigned()) return value.get<std::uint64_t>() <= static_cast<std::uint64_t>(most);
    if (value.is_number_integer()) return value.get<std::int64_t>() >= -most && value.get<std::int64_t>() <= most;
    return !value.is_structured() || all_of(value, [&](const json& part) { return are_within(part, most); });
}

/// Of tiles none is longer than its axis, and of anything else there are fewer than this.
std::int64_t most_of_anything(const Extents& extents) {
    constexpr std::int64_t most = std::numeric_limits<std::int32_t>::max();
    return extents.empty() ? most : std::max(most, *max_element(extents));
}

std::optional<Plan> plan_in(const json& text, const Derived& derived, const Extents& extents, const Machine& machine,
                            const std::shared_ptr<const Source>& file) {
    Plan plan;
    text.at("machine").get_to(plan.machine);
    text.at("change").get_to(plan.change);
    const auto cut = changed_form(derived, extents, machine, plan.change);
    const auto items = all_by_hand(derived, {}, file);
    const json& kernels = text.at("kernels");
    if (!cut || !items || kernels.size() != cut->form.kernels.size()) return std::nullopt;
    const bool on_gpu = machine.kind == MachineKind::gpu;
    const auto program = std::make_shared<const TileProgram>(tiles_of(cut->form, cut->extents, *items));
    for (std::size_t k = 0; k < kernels.size(); ++k) {
        for (const char* part : {"schedule", "unit"})
            if (!are_within(kernels[k].at(part), most_of_anything(cut->extents))) return std::nullopt;
        const auto schedule = kernels[k].at("schedule").get<KernelSchedule>();
        auto unit = kernels[k].at("unit").get<VectorUnit>();
        if (!Sound(*program, program->kernels[k], schedule, on_gpu).run() || !is_sound(unit, on_gpu))
            return std::nullopt;
        if (on_gpu) unit.matrix = machine.instructions, unit.copies = copy_atoms(machine);
        KernelPlan kernel{.scheduled = scheduled(program, k, cut->extents, schedule, unit), .whole = cut->whole[k]};
        kernels[k].at("time").get_to(kernel.time);
        kernels[k].at("memory").get_to(kernel.memory_values);
        if (kernel.time.busy.empty() || !broken_rules(kernel.scheduled).empty()) return std::nullopt;
        plan.kernels.push_back(std::move(kernel));
    }
    return plan;
}

}  // namespace

std::optional<Cut> changed_form(const Derived& derived, const Extents& extents, const Machine& machine,
                                const FormChange& change) {
    const auto tiled = with_tiled_reductions(derived, extents, change.tiled);
    if (!tiled) return std::nullopt;
    std::optional<WithAlignedRows> aligned;
    if (change.has_aligned_rows && !(aligned = with_copied_rows(tiled->form, tiled->extents, machine)))
        return std::nullopt;
    const Derived& form = aligned ? aligned->form : tiled->form;
    if (change.parts.size() != form.kernels.size()) return std::nullopt;
    Cut cut = cut_streams(form, aligned ? aligned->extents : tiled->extents, change.parts);
    for (std::size_t& whole : cut.whole)
        if (aligned) whole = aligned->whole[whole];
    return cut;
}

std::string to_text(const Chosen& chosen) {
    json text{{"machine", chosen.plan.machine}, {"change", chosen.plan.change}, {"notes", chosen.notes}};
    for (const Region& region : chosen.derived.regions) text["alternatives"].push_back(region.chosen);
    for (const KernelPlan& kernel : chosen.plan.kernels)
        text["kernels"].push_back({{"schedule", kernel.schedule()},
                                   {"unit", kernel.scheduled.unit},
                                   {"time", kernel.time},
                                   {"memory", kernel.memory_values}});
    return text.dump();
}

std::optional<Chosen> recall(const std::string& text, const Derived& derived, const Extents& extents,
                             const Machine& machine, const std::shared_ptr<const Source>& file) try {
    const json read = json::parse(text);
    const auto alternatives = read.at("alternatives").get<std::vector<std::size_t>>();
    if (alternatives.size() != derived.regions.size()) return std::nullopt;
    bool differs = false;
    for (std::size_t i = 0; i < alternatives.size(); ++i) {
        if (alternatives[i] >= derived.regions[i].alternatives.size()) return std::nullopt;
        differs |= alternatives[i] != derived.regions[i].chosen;
    }
    Chosen out{differs ? rederive(derived, alternatives) : derived, {}, read.at("notes").get<std::vector<std::string>>()};
    auto plan = plan_in(read, out.derived, extents, machine, file);
    if (!plan) return std::nullopt;
    out.plan = std::move(*plan);
    return out;
} catch (const json::exception&) {
    return std::nullopt;
} catch (const InternalError&) {
    // What is made of a schedule looks at itself; here that says no more than that it is not one of this program.
    return std::nullopt;
}

}  // namespace napkin
