// Puts a kernel on the machine's tensor cores: which statements are mma products, which run on fragments beside them,
// and where every variable lies then.
#include <fmt/format.h>

#include <algorithm>

#include "plan/complete.hpp"
#include "schedule/column_parts.hpp"
#include "schedule/conditional_rescale.hpp"
#include "schedule/fragment_registers.hpp"
#include "schedule/fragments.hpp"
#include "schedule/k_block_ranges.hpp"
#include "schedule/warpgroups.hpp"
#include "support/ids.hpp"

namespace napkin {
namespace {

/// Most stages of an operand. Where an iteration does more than multiply, more than four hide no more latency. A loop
/// that does nothing else takes tiles as fast as they come. Measured on one H200 on 2026-11-24 on 512×4096×4096 in
/// bf16, in tiles of 128×128 whose stages have 32 KiB: four take 32.0 µs, five 30.0, six and seven 28.8.
constexpr std::int64_t most_stages = 4, most_stages_of_products = 6;

/// Bytes of a loop's operands that are copied while a stage is read: more hides no more of a copy's latency. Measured
/// on one H200 on 2026-11-23 on causal attention of 192 rows at d = 128, with persistent blocks. In K blocks of 64,
/// whose stages have 32 KiB, it takes up to 8% longer with 2 stages than with 3. With 3 and a second tile of Q it takes
/// 0 to 7% less than with 4 and no second tile.
constexpr std::int64_t bytes_under_way = 64 * 1024;

/// Most tiles of a queue: its counter has 32 bits.
constexpr std::int64_t most_queued = std::int64_t{1} << 31;

/// Most parts of a product's columns, and least columns of a part. The tensor cores are as fast from 64 columns on as
/// with more (measured 2026-11-20 on one H200: 4095 FLOP a clock of 4096).
constexpr std::int64_t most_parts = 8, least_columns_of_part = 64;

/// Most staging tiles of a warp: one is written while the one before it is read.
constexpr std::int64_t most_staging = 2;

/// An atom that only names its loops: the instruction says which values are whose.
Atom scalar_loops(const ScheduledKernel& kernel, const Step& step, AtomKind kind) {
    const auto& compute = std::get<Compute>(*step.statement);
    Atom atom;
    atom.kind = kind;
    atom.points = target_axes(kernel.variable(compute.variable));
    atom.reduced = compute.reduce_axes;
    return atom;
}

/// Shared memory that tiles leave to alignment and barriers.
constexpr std::int64_t margin_bytes = operand_alignment;

/// Bytes of one stage of an operand's tile. 0 where it lies as no copy brings it, which the rules refuse.
std::int64_t operand_bytes(const ScheduledKernel& kernel, VariableId id) {
    const auto tile = operand_tile(kernel, id);
    return tile ? tile->bytes : 0;
}

/// Bytes of shared memory: of one stage of all operands that are loaded in loops, with their number of stages; of
/// staging tiles; and of all else. Pre: places are chosen.
struct SharedBytes {
    std::int64_t share = 0, staged = 0, stages = 1, boxes = 0, others = 0;
    [[nodiscard]] std::int64_t left_for_stages() const { return share - others - margin_bytes; }
    [[nodiscard]] std::int64_t left() const { return left_for_stages() - staged * stages - boxes; }
};
SharedBytes shared_bytes(ScheduledKernel& kernel) {
    SharedBytes out{.share = kernel.unit.share_bytes};
    for (const VariableId id : kernel.layouts.ids()) {
        const Place& place = kernel.place(id);
        out.boxes += place.staging_tiles * kernel.schedule.warps.value * staging_bytes(kernel);
        if (kernel.is_operand(id)) {
            const bool is_staged = kernel.layouts[id].scope > 0;
            (is_staged ? out.staged : out.others) += operand_bytes(kernel, id);
            if (is_staged) out.stages = std::max<std::int64_t>(out.stages, place.stages);
        } else if (kernel.is_written(id)) {
            out.others += operand_bytes(kernel, id);
        } else if (!kernel.is_in_registers(id)) {
            shape(kernel, id);
            out.others += kernel.layouts[id].count * kernel.value_bytes();
        }
    }
    return out;
}

}  // namespace

bool choose_fragments(ScheduledKernel& kernel) {
    const MmaRoles roles = mma_roles(kernel);
    if (!roles.refusal.empty()) return false;
    for (const Step& step : kernel.steps)
        if (step.atom >= 0 && !kernel.schedule.atoms[step.atom].by_user)
            kernel.schedule.atoms[step.atom] = scalar_loops(kernel, step, roles.atoms[step.atom]);
    for (const VariableId v : roles.places.ids()) {
        Place& place = kernel.schedule.places[v];
        if (!roles.places[v] || place.by_user) continue;
        place.holding = *roles.places[v];
        if (place.holding == MemorySpace::operand || place.holding == MemorySpace::written)
            place.innermost = static_cast<int>(kernel.kernel->variables[v].dims.size()) - 1;
    }
    return true;
}

void choose_roles(ScheduledKernel& kernel) {
    std::vector<Role>& roles = kernel.schedule.roles;
    if (roles.empty()) return;
    const bool repeats = std::any_of(kernel.steps.begin(), kernel.steps.end(),
                                     [&](const Step& step) { return kernel.loads_operand(step) && step.scope > 0; });
    if (!kernel.on_tensor_cores() || !kernel.has_bulk_copies() || !repeats) {
        std::erase_if(roles, [](const Role& role) { return !role.by_user; });
        return;
    }
    for (const StepId s : kernel.steps.ids())
        if (kernel.loads_operand(kernel.steps[s])) kernel.schedule.slots.try_emplace(s, Slot{0});
}

void choose_tile_scheduler(ScheduledKernel& kernel) {
    Chosen<TileScheduler>& scheduler = kernel.schedule.scheduler;
    if (scheduler.by_user) return;
    scheduler = {};
    const bool by_data = std::any_of(kernel.loops.begin(), kernel.loops.end(),
                                     [&](const ScheduledLoop& loop) { return k_block_ranges(kernel, loop).has_value(); });
    const bool has_shorter = std::any_of(kernel.loops.begin(), kernel.loops.end(),
                                         [&](const ScheduledLoop& loop) { return have_own_k_blocks(kernel, loop); });
    const std::int64_t groups = kernel.num_groups(), blocks = kernel.schedule.threads.value,
                       grid = kernel.schedule.grid.value;
    // Blocks of a cluster keep step, so none takes the next tile as it is done.
    // More tiles than CTAs may come, even where the size at hand has fewer.
    const bool may_have_more = possible_groups(kernel) > groups;
    const bool may_be_uneven = may_have_more &&
                               any_of(kernel.loops, [](const ScheduledLoop& loop) { return !loop.loop->support.empty(); });
    const char* why = by_data                                       ? "data say how many chunks a group runs"
                      : kernel.has_uneven_groups() || may_be_uneven ? "masks say how many chunks a group runs"
                      : kernel.in_cluster()                         ? nullptr
                      : threads_read_ahead(kernel) ? "turns wait for what threads read, and blocks keep different paces"
                      : has_shorter                ? "groups that end before their tiles do run fewer products"
                                                   : nullptr;
    // One thread writes the queue, and does not wait for others that copy rows.
    if (!kernel.producer_role() || !why || blocks <= 1 || groups > most_queued || copies_single_rows(kernel)) return;
    if (!may_be_uneven && (groups <= blocks || grid >= groups)) return;
    // A producer that cannot go on to the next tile's operands has nothing to fetch meanwhile.
    for (const Step* load : kernel.operand_loads(0))
        if (kernel.place(kernel.operand_loaded(*load)).stages < 2) return;
    scheduler = {TileScheduler::dynamic, fmt::format("{}: a block takes the next one as it ends one", why), false};
}

void choose_ping_pong(ScheduledKernel& kernel) {
    Chosen<bool>& chosen = kernel.schedule.ping_pong;
    if (!chosen.by_user) chosen = {ping_pong(kernel).has_value(), "", false};
}

// Weights that grew large are multiplied where they are finite. That takes a part of the time of computing the K block
// again, with its product and its exponentials. Where none grew, both modes issue the same.
void choose_rescale(ScheduledKernel& kernel) {
    Chosen<RescaleMode>& rescaling = kernel.schedule.rescaling;
    if (rescaling.by_user) return;
    rescaling = {};
    if (!kernel.on_tensor_cores()) return;
    const auto found = conditional_rescale(kernel);
    const auto* reference = std::get_if<ConditionalRescale>(&found);
    if (!reference) return;
    if (moves_by_position(kernel, *reference))
        rescaling.reason = "what it is taken of grows with the position: it moves in every chunk";
    else
        rescaling.value = RescaleMode::rescale;
}

void choose_column_parts(ScheduledKernel& kernel) {
    const auto is_by_user = [](const Atom& atom) { return atom.by_user; };
    if (!kernel.on_tensor_cores() || std::holds_alternative<std::string>(columns_in_parts(kernel, 2)) ||
        std::any_of(kernel.schedule.atoms.begin(), kernel.schedule.atoms.end(), is_by_user))
        return;
    // Registers follow from what lives at the same time, which the places say.
    ScheduledKernel placed = kernel;
    placed.column_parts = chosen_column_parts(kernel);
    apply_storage(placed);
    for (std::int64_t parts = 2; spilled_registers(placed) > 0 && parts <= most_parts; parts *= 2) {
        auto found = columns_in_parts(kernel, parts);
        if (std::holds_alternative<std::string>(found) || std::get<ColumnParts>(found).columns < least_columns_of_part)
            return;
        placed.column_parts = std::get<ColumnParts>(std::move(found));
    }
    if (!placed.column_parts || spilled_registers(placed) > 0) return;
    for (const StepId s : placed.column_parts->steps)
        if (Atom& atom = kernel.schedule.atoms[kernel.step(s).atom]; atom.kind == AtomKind::mma)
            atom.parts = static_cast<int>(placed.column_parts->parts);
}

void choose_stages(ScheduledKernel& kernel) {
    const SharedBytes bytes = shared_bytes(kernel);
    std::int64_t chunks = 1;
    for (const ScheduledLoop& loop : kernel.loops) chunks = std::max(chunks, possible_iterations(kernel, loop).most);
    const std::int64_t fit = bytes.staged == 0 ? 1 : (bytes.left_for_stages() - bytes.boxes) / bytes.staged;
    const bool only_adds = kernel.producer_role() &&
                           std::all_of(kernel.loops.begin(), kernel.loops.end(),
                                       [&](const ScheduledLoop& loop) { return only_adds_products(kernel, loop.scope); });
    const auto stages = static_cast<int>(
        std::clamp<std::int64_t>(std::min(fit, chunks), 1, only_adds ? most_stages_of_products : most_stages));
    // The operands of a loop have as many stages as each other: those that a line fixes, if one does.
    const auto is_staged = [&](VariableId v) { return kernel.is_operand(v) && kernel.layouts[v].scope > 0; };
    std::map<ScopeId, int> fixed;
    for (const VariableId v : kernel.layouts.ids())
        if (is_staged(v) && kernel.schedule.places[v].by_user)
            fixed[kernel.layouts[v].scope] = kernel.schedule.places[v].stages;
    for (const VariableId v : kernel.layouts.ids())
        if (is_staged(v) && !kernel.schedule.places[v].by_user)
            kernel.schedule.places[v].stages = value_or(fixed, kernel.layouts[v].scope, stages);
}

void choose_staging(ScheduledKernel& kernel) {
    std::int64_t left = shared_bytes(kernel).left();
    for (const VariableId v : kernel.layouts.ids()) {
        Place& place = kernel.schedule.places[v];
        const auto boxes = staging_tiles_of(kernel, v);
        if (place.by_user || !boxes) continue;
        // The ring of staging tiles is back at the same one in every output tile.
        std::int64_t n = std::min(boxes->count, most_staging);
        const auto bytes_of = [&](std::int64_t count) {
            return count * kernel.schedule.warps.value * staging_bytes(kernel);
        };
        while (n > 0 && (boxes->count % n != 0 || bytes_of(n) > left)) --n;
        place.staging_tiles = static_cast<int>(n);
        left -= bytes_of(n);
    }
}

void choose_group_stages(ScheduledKernel& kernel) {
    if (!kernel.producer_role() || kernel.num_groups() < 2) return;
    // operands loaded once per tile, operands loaded in loops, and variables with staging tiles
    std::vector<Place*> once, repeated, stored;
    std::int64_t needed = 0;
    for (const VariableId id : kernel.layouts.ids()) {
        Place& place = kernel.schedule.places[id];
        if (kernel.is_operand(id)) (kernel.layouts[id].scope == 0 ? once : repeated).push_back(&place);
        if (kernel.is_operand(id) && kernel.layouts[id].scope == 0) needed += operand_bytes(kernel, id);
        if (place.staging_tiles > 0) stored.push_back(&place);
    }
    const auto is_open = [](const Place* place) { return !place->by_user; };
    if (once.empty() || !std::all_of(once.begin(), once.end(), is_open)) return;
    const std::vector<Place> before = kernel.schedule.places;
    const auto has_room = [&] { return shared_bytes(kernel).left() >= needed; };
    // A second staging tile, and stages past those that the copies need, are worth less than the next tile's operands.
    for (Place* place : stored)
        if (!has_room() && is_open(place)) place->staging_tiles = 1;
    const std::int64_t staged = shared_bytes(kernel).staged;
    const auto enough = static_cast<int>(staged == 0 ? 1 : 1 + (bytes_under_way + staged - 1) / staged);
    while (!has_room() && !repeated.empty() && std::all_of(repeated.begin(), repeated.end(), is_open) &&
           repeated.front()->stages > enough)
        for (Place* place : repeated) --place->stages;
    if (!has_room()) {
        kernel.schedule.places = before;
        return;
    }
    for (Place* place : once) place->stages = 2;
}

}  // namespace napkin
