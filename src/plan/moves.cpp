#include "plan/moves.hpp"

#include <fmt/format.h>

#include <cstdlib>
#include <numeric>
#include <utility>
#include <variant>

#include "plan/reasons.hpp"
#include "schedule/fragments.hpp"
#include "schedule/k_block_ranges.hpp"
#include "schedule/stream_k.hpp"
#include "support/ids.hpp"
#include "support/ranges.hpp"
#include "support/saturate.hpp"

namespace napkin {
namespace {

// ---- shapes of CTAs

bool always(const TriedShapes& /*tried*/) { return true; }
bool copies_operands(const TriedShapes& tried) { return tried.copies_operands; }
bool writes_operands(const TriedShapes& tried) { return tried.writes_operands; }
bool leaves_tensor_cores(const TriedShapes& tried) { return tried.leaves_tensor_cores; }

constexpr auto ahead = ProductOrder::ahead;
using Shapes = std::vector<CtaShape>;
using AtShapes = const TriedShapes&;

const ShapeMove of_shapes[] = {
    {"ordinary CTAs", always, [](AtShapes) { return Shapes{{8, 1}, {8, 2}, {8, 4}, {4, 8}}; },
     "A few large tiles lie in many registers. With small ones, CTAs that load run beside CTAs that compute."},
    {"producer warps", copies_operands, [](AtShapes) { return Shapes{{8, 1, 4}, {12, 1, 4}}; },
     "Two consumer warpgroups have many registers. With three, two hide what one waits for."},
    {"products ahead", copies_operands,
     [](AtShapes) { return Shapes{{8, 1, 4, ahead}, {12, 1, 4, ahead}, {16, 1, 4, ahead}}; },
     "The tensor cores multiply for the next K block while the other units compute."},
    {"one warpgroup an SM", copies_operands, [](AtShapes) { return Shapes{{4, 1}}; },
     "So few tiles all wait for memory. Each has an SM's shared memory for what is on its way."},
    {"CTAs that write operands", writes_operands,
     [](AtShapes) { return Shapes{{4, 2}, {4, 2, 4}, {4, 3, 4}, {8, 2, 4}}; },
     "The warps of a CTA meet around each tile that they write. Others compute meanwhile."},
    {"CTAs of rows", leaves_tensor_cores, [](AtShapes) { return Shapes{{8, 3}, {4, 12}, {32, 1}}; },
     "Three long rows fit an SM. Short ones need many CTAs, and few rows have an SM each."},
};

// ---- sizes

std::size_t candidates(const AtSizes& at) { return at.sizes[at.size].sizes.size(); }
std::int64_t size_of(const AtSizes& at) { return at.sizes[at.size].sizes[at.point[at.size]]; }
bool can_grow(const AtSizes& at) { return at.point[at.size] + 1 < candidates(at); }
bool can_shrink(const AtSizes& at) { return at.point[at.size] > 0; }

Point larger(const AtSizes& at) {
    Point out = at.point;
    ++out[at.size];
    return out;
}
Point smaller(const AtSizes& at) {
    Point out = at.point;
    --out[at.size];
    return out;
}
Point exchanged(const AtSizes& at) {
    Point out = at.point;
    --out[at.size], ++out[at.other];
    return out;
}
/// The candidate nearest to the wanted size, on that side of the current one.
Point nearest(const AtSizes& at, std::int64_t wanted) {
    const std::vector<std::int64_t>& sizes = at.sizes[at.size].sizes;
    const std::int64_t size = size_of(at);
    Point out = at.point;
    for (std::size_t k = 0; k < sizes.size(); ++k) {
        const bool is_first = out[at.size] == at.point[at.size];
        if (k != at.point[at.size] && (sizes[k] < size) == (wanted < size) &&
            (is_first || std::abs(sizes[k] - wanted) < std::abs(sizes[out[at.size]] - wanted)))
            out[at.size] = k;
    }
    return out;
}

/// What rounding may make of equal times.
constexpr double faster = 1 - 1e-6;
/// A restart must be faster by more than the model is off in the median (bench/results, predictions). If the model
/// finds two sizes within 7%, the one that fills less of the cache was measured as the faster one. Those were
/// attention_fp8 and attention_bf16 on two cores of a Xeon of which other work took a quarter, 2026-11-28.
constexpr double worth_restarting = 0.9;

const SizeMove steps[] = {
    {"larger size", can_grow, larger, "What is loaded is used more often.", faster},
    {"smaller size", can_shrink, smaller, "Tiles need less memory, and more cores have one.", faster},
};
const SizeMove exchanges[] = {
    {"exchange of sizes",
     [](const AtSizes& at) { return at.size != at.other && can_shrink(at) && can_grow({at.sizes, at.point, at.other}); },
     exchanged, "At the memory's limit one size can grow only where another one shrinks.", faster},
};
const SizeMove neighbours[] = {
    {"half", can_shrink, [](const AtSizes& at) { return nearest(at, size_of(at) / 2); },
     "A size with a ragged last tile, or with few tiles for a core, may lie between two better ones.", worth_restarting},
    {"double", can_grow, [](const AtSizes& at) { return nearest(at, 2 * size_of(at)); }, "As half.", worth_restarting},
};

// ---- parts of a stream

/// Parts are more code and more kernels to start.
constexpr double worth_parting = 0.95;

std::int64_t part_for_every_core(const AtGroups& at) { return ceil_div(at.cores, at.groups); }
std::int64_t parts_in_even_rounds(const AtGroups& at) { return at.cores / std::gcd(at.groups, at.cores); }

/// So many parts that a few groups, of wide tiles, have a part for every core.
template <int groups>
std::int64_t parts_of_few(const AtGroups& at) {
    return at.cores / groups;
}
template <int groups>
bool are_fewer(const AtGroups& at) {
    return parts_of_few<groups>(at) > parts_in_even_rounds(at);
}

const PartMove of_parts[] = {
    {"a part for every core", [](const AtGroups&) { return true; }, part_for_every_core,
     "Groups are too few for the cores.", worth_parting},
    {"parts in even rounds", [](const AtGroups& at) { return parts_in_even_rounds(at) != part_for_every_core(at); },
     parts_in_even_rounds, "Cores would idle in the last round of groups.", worth_parting},
    {"parts of four groups", are_fewer<4>, parts_of_few<4>,
     "Tiles are small, for more groups, where the stream is whole.", worth_parting},
    {"parts of two groups", are_fewer<2>, parts_of_few<2>, "As of four.", worth_parting},
};

// ---- fields of a whole schedule

/// Persistent blocks must be so much faster: SMs keep different paces, and none takes over what is left to another.
/// Measured on one H200 on 2026-11-23 on causal attention of 192 rows. Where the model finds them 16% and 5% faster,
/// they are 11% and 6% faster. Where it finds them 1.2% faster and 0.3% slower, they are 0.6% and 1.7% slower.
constexpr double worth_turns = 0.98;

/// Stream-K must make a kernel so much faster: it is more code, and states go through memory. Measured on one H200 on
/// 2026-11-25 on 16 shapes of dense attention. The model finds 11 of them 1.5% faster and more. Among these, 10 are 0.8
/// to 8.7% faster and one is 1.4% slower. The others are 1.2% faster to 3.2% slower.
constexpr double worth_cutting = 0.985;

bool has_tiles_to_come(const ScheduledKernel& kernel, std::int64_t threads) {
    return !kernel.is_dynamic() && kernel.schedule.grid.value == 0 && kernel.producer_role() && threads > 1 &&
           kernel.num_groups() > threads;
}
KernelSchedule with_ctas_in_turn(const AtSchedule& at) {
    KernelSchedule out = at.kernel.schedule;
    out.grid.value = at.threads;
    return out;
}
void say_turns(ScheduledKernel& kernel, const TriedMove& tried) {
    Choice& grid = kernel.schedule.grid;
    const std::int64_t groups = kernel.num_groups();
    const double slower = tried.before.seconds / tried.after.seconds;
    if (tried.is_taken) {
        grid.reason = fmt::format("in turn, back and forth; a block for each of {} groups is {}", groups,
                                  time_change(slower));
    } else {
        grid.value = groups;
        grid.reason = fmt::format("a block for each group; {} in turn are {}{}", tried.threads, time_change(1 / slower),
                                  slower > 1 ? ", which their different paces take" : "");
    }
}

/// With stream-K, a block that is late hands nothing to others. Measured on one H200 on 2026-11-25 on block-scaled
/// products of 8192³. The model finds stream-K 1.6% faster than whole tiles, but it is 4% slower than the dynamic
/// scheduler.
bool may_cut_last_tiles(const AtSchedule& at) {
    if (!at.machine.meeting_s.known() || at.kernel.schedule.scheduler.by_user || threads_read_ahead(at.kernel) ||
        at.threads <= 1)
        return false;
    const auto found = stream_k(at.kernel);
    const auto* cut = std::get_if<StreamK>(&found);
    return cut && cut->blocks == at.threads && cut->num_split_tiles() > 0;
}
KernelSchedule with_stream_k(const AtSchedule& at) {
    KernelSchedule out = at.kernel.schedule;
    out.scheduler = {TileScheduler::stream_k, "", false};
    return out;
}
void say_stream_k(ScheduledKernel& kernel, const TriedMove& tried) {
    if (!tried.is_taken) return;
    const StreamK cut = chosen_stream_k(kernel).value();
    const std::int64_t groups = tried.after.groups;
    kernel.schedule.scheduler.reason = fmt::format(
        "{} groups of {} chunks, {:.1f} for each of {} blocks; whole ones are {}", groups, cut.chunks,
        static_cast<double>(groups) / static_cast<double>(cut.blocks), cut.blocks,
        time_change(tried.before.seconds / tried.after.seconds));
}

const ScheduleMove of_schedules[] = {
    {{"CTAs in turn",
      [](const AtSchedule& at) { return has_tiles_to_come(at.kernel, at.threads) && at.kernel.has_block_a_group(); },
      with_ctas_in_turn, "A CTA copies for its next tile while it computes.", worth_turns},
     false,
     say_turns},
    {{"stream-K", may_cut_last_tiles, with_stream_k, "The last tiles leave SMs without work.", worth_cutting}, true, say_stream_k},
};

}  // namespace

std::span<const ShapeMove> shape_moves() { return of_shapes; }
std::span<const SizeMove> size_steps() { return steps; }
std::span<const SizeMove> size_exchanges() { return exchanges; }
std::span<const SizeMove> size_neighbours() { return neighbours; }
std::span<const PartMove> part_moves() { return of_parts; }
std::span<const ScheduleMove> schedule_moves() { return of_schedules; }

Simulation time_before_moves(ScheduledKernel& kernel, const Simulator& model, std::int64_t threads, std::int64_t walk_limit) {
    const auto is_by_data = [&](const ScheduledLoop& loop) { return k_block_ranges(kernel, loop).has_value(); };
    if (has_tiles_to_come(kernel, threads) && any_of(kernel.loops, is_by_data)) {
        kernel.schedule.grid.value = kernel.num_groups();
        kernel.schedule.grid.reason = "a block for each group: data say how many chunks one runs";
    }
    return model.run(kernel, threads, walk_limit);
}

Simulation time_after(const ScheduleMove& move, ScheduledKernel& kernel, const Simulator& model, std::int64_t threads,
                      Simulation before, std::int64_t walk_limit) {
    const AtSchedule at{kernel, model.machine(), threads};
    if (!move.when(at)) return before;
    KernelSchedule kept = std::exchange(kernel.schedule, move.apply(at));
    Simulation after = model.run(kernel, threads, walk_limit);
    const bool is_taken = after.seconds < move.worth * before.seconds;
    if (!is_taken) kernel.schedule = std::move(kept);
    move.say(kernel, {threads, before, after, is_taken});
    return is_taken ? after : before;
}

}  // namespace napkin
