#include "plan/recall.hpp"
#include "support/json.hpp"

#include <cmath>
#include <cstdint>
#include <limits>
#include <utility>

#include "derive/derive.hpp"
#include "derive/kernel_forms.hpp"
#include "lower/passes.hpp"
#include "lower/rules.hpp"
#include "plan/copied.hpp"
#include "plan/overrides.hpp"
#include "plan/parts.hpp"
#include "plan/tiled.hpp"
#include "support/ids.hpp"
#include "support/ranges.hpp"
#include "syntax/parse.hpp"

template <class Kind>
struct nlohmann::adl_serializer<napkin::Id<Kind>> {
    static void to_json(json& j, napkin::Id<Kind> id) { j = id.place(); }
    static void from_json(const json& j, napkin::Id<Kind>& id) { id = napkin::Id<Kind>::of(j.get<int>()); }
};

namespace napkin {

// What a plan says beside its schedules, every field by its name. Ids are numbers: the same code gives the same ones to
// the same diagram.
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Busy, what, seconds)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Traffic, path, loaded_bytes, stored_bytes)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Simulation, seconds, core_seconds, waves, transfers, groups, launch_seconds, busy, traffic)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(TiledReduction, producer, consumer, axis, tile)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(FormChange, tiled, factors, parts)
void to_json(nlohmann::json& j, const Gathering& g) {
    j = {{"targets", g.targets}, {"stream", g.stream.value_or(AxisId(-1))}};
}
void from_json(const nlohmann::json& j, Gathering& g) {
    j.at("targets").get_to(g.targets);
    if (const auto stream = j.at("stream").get<AxisId>(); stream >= 0) g.stream = stream;
}
// The machine's instructions are left out.
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(VectorUnit, bytes, registers, line_bytes, chains, warp_threads, block_bytes,
                                   share_bytes, block_registers, blocks_a_core, reread_bytes)

namespace {

using nlohmann::json;

/// Whether each atom and each place is set, and no size is past `most`: code that uses a plan multiplies them.
bool is_whole(const KernelSchedule& s, const TileKernel& kernel, bool on_gpu, std::int64_t most) {
    const auto are_within = [&](const std::map<AxisId, Choice>& sizes) {
        return all_of(sizes, [&](const auto& size) { return size.second.value <= most; });
    };
    const bool whole = s.atoms.size() == atom_names(kernel).size() && s.places.size() == kernel.variables.size() &&
                       are_within(s.group) && are_within(s.stream) && are_within(s.subloop) && s.threads.value <= most &&
                       (s.warps.value > 0) == on_gpu && (s.blocks.value > 0) == on_gpu && (on_gpu || s.mma_m < 0);
    return whole &&
           all_of(s.places.ids(),
                  [&](VariableId v) { return kernel.variables[v].dims.empty() == (s.places[v].innermost < 0); }) &&
           all_of(s.atoms, [&](const Atom& a) { return a.cut <= most; });
}

bool is_sound(const VectorUnit& unit, bool on_gpu) {
    return unit.bytes >= 8 && unit.registers > 0 && unit.line_bytes > 0 && unit.blocks_a_core > 0 &&
           (on_gpu ? unit.warp_threads > 0 : unit.warp_threads == 0);
}

/// Whether no number in it is past `most` or below -most: code that uses a plan multiplies them.
bool are_within(const json& unit, std::int64_t most) {
    const auto limit = static_cast<double>(most);
    return all_of(unit, [&](const json& n) { return std::abs(n.get<double>()) <= limit; });
}

/// Limit of all numbers in a plan. No tile is longer than its axis, and there is less than this of anything else.
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
    const auto items = all_overrides(derived, {}, file);
    const json& kernels = text.at("kernels");
    if (!cut || !items || kernels.size() != cut->form.kernels.size()) return std::nullopt;
    const bool on_gpu = machine.kind == MachineKind::gpu;
    const auto program = std::make_shared<const TileProgram>(tiles_of(cut->form, cut->extents, *items));
    const auto lines = parse_schedule_file(
        std::make_shared<const Source>(Source{"a kept plan", text.at("schedules").get<std::string>()}));
    if (!lines) return std::nullopt;
    const auto schedules = schedules_as_printed(*lines, *program);
    if (!schedules) return std::nullopt;
    const std::int64_t most = most_of_anything(cut->extents);
    for (std::size_t k = 0; k < kernels.size(); ++k) {
        const KernelSchedule& schedule = (*schedules)[k];
        auto unit = kernels[k].at("unit").get<VectorUnit>();
        if (!is_whole(schedule, program->kernels[k], on_gpu, most) || !are_within(kernels[k].at("unit"), most) ||
            !is_sound(unit, on_gpu))
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

/// The derivation with these kernels in its regions; none where they do not compute the regions' equations.
std::optional<Derived> with_kernels_of_its_regions(const Derived& derived,
                                                   const std::vector<std::vector<Gathering>>& kernels) {
    if (kernels.size() != derived.regions.size()) return std::nullopt;
    const auto targets_of = [](const std::vector<Gathering>& gatherings) {
        std::vector<ArrayId> targets;
        for (const Gathering& g : gatherings) append(targets, g.targets);
        sort(targets);
        return targets;
    };
    bool differs = false;
    for (std::size_t r = 0; r < kernels.size(); ++r) {
        const Region& region = derived.regions[r];
        const std::vector<Gathering>& chosen = region.alternatives[region.chosen].kernels;
        if (targets_of(kernels[r]) != targets_of(chosen)) return std::nullopt;
        for (const Gathering& g : kernels[r])
            if (g.stream && at(*g.stream) >= derived.diagram.axes.size()) return std::nullopt;
        differs |= kernels[r] != chosen;
    }
    return differs ? with_kernels(derived, kernels) : derived;
}

/// The same in the first of the derivation's gatherings whose equations they compute.
std::optional<Derived> with_read_kernels(const Derived& derived, const std::vector<std::vector<Gathering>>& kernels) {
    if (auto read = with_kernels_of_its_regions(derived, kernels)) return read;
    for (std::vector<Region>& regions : gatherings_of(derived)) {
        Derived gathered = derived;
        gathered.regions = std::move(regions);
        if (auto read = with_kernels_of_its_regions(gathered, kernels)) return read;
    }
    return std::nullopt;
}

}  // namespace

std::optional<Cut> changed_form(const Derived& derived, const Extents& extents, const Machine& machine,
                                const FormChange& change) {
    const auto tiled = with_tiled_reductions(derived, extents, change.tiled);
    if (!tiled) return std::nullopt;
    std::optional<WithCopies> copied;
    if (change.factors != FactorForm::as_they_are &&
        !(copied = with_factors(tiled->form, tiled->extents, machine, change.factors)))
        return std::nullopt;
    const Derived& form = copied ? copied->form : tiled->form;
    if (change.parts.size() != form.kernels.size()) return std::nullopt;
    Cut cut = cut_streams(form, copied ? copied->extents : tiled->extents, change.parts);
    for (std::size_t& whole : cut.whole)
        if (copied) whole = copied->whole[whole];
    return cut;
}

std::string to_text(const ChosenPlan& chosen) {
    std::string schedules;
    for (const KernelPlan& kernel : chosen.plan.kernels)
        schedules += to_string(*kernel.scheduled.program, *kernel.scheduled.kernel, kernel.schedule());
    json text{{"machine", chosen.plan.machine},
              {"change", chosen.plan.change},
              {"notes", chosen.notes},
              {"schedules", schedules},
              {"flat_rows", chosen.derived.rewriting.flat_rows},
              {"again", chosen.derived.rewriting.again},
              {"padded", chosen.derived.rewriting.padded},
              {"grouped", chosen.derived.rewriting.grouped},
              {"nested", chosen.derived.rewriting.nested},
              {"packed", chosen.derived.rewriting.packed},
              {"unrolled", chosen.derived.rewriting.unrolled},
              {"phased", chosen.derived.rewriting.phased},
              {"windows", chosen.derived.rewriting.windows}};
    for (const Region& region : chosen.derived.regions)
        text["regions"].push_back(region.alternatives[region.chosen].kernels);
    for (const KernelPlan& kernel : chosen.plan.kernels)
        text["kernels"].push_back(
            {{"unit", kernel.scheduled.unit}, {"time", kernel.time}, {"memory", kernel.memory_values}});
    return text.dump();
}

std::optional<ChosenPlan> recall(const std::string& text, const Derived& first, const Extents& extents,
                                 const Machine& machine, const std::shared_ptr<const Source>& file) try {
    const json read = json::parse(text);
    const auto is_chosen = [&](const char* name) { return read.at(name).get<bool>(); };
    const auto other = rewritten(first, {is_chosen("flat_rows"), is_chosen("again"), is_chosen("padded"),
                                         is_chosen("grouped"), is_chosen("nested"), is_chosen("packed"),
                                         is_chosen("unrolled"), is_chosen("windows"), is_chosen("phased")});
    const Derived& derived = other ? *other : first;
    auto form = with_read_kernels(derived, read.at("regions").get<std::vector<std::vector<Gathering>>>());
    if (!form) return std::nullopt;
    ChosenPlan out{std::move(*form), {}, read.at("notes").get<std::vector<std::string>>()};
    auto plan = plan_in(read, out.derived, extents, machine, file);
    if (!plan) return std::nullopt;
    out.plan = std::move(*plan);
    return out;
} catch (const json::exception&) {
    return std::nullopt;
} catch (const InternalError&) {
    // Code that uses a schedule checks it. A failed check here only says that the text is not of this program.
    return std::nullopt;
}

}  // namespace napkin
