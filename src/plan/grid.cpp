#include "plan/grid.hpp"

#include <fmt/format.h>

#include <utility>

#include "plan/reasons.hpp"
#include "schedule/fragments.hpp"
#include "schedule/k_block_ranges.hpp"
#include "schedule/stream_k.hpp"
#include "support/ranges.hpp"

namespace napkin {
namespace {

/// Persistent blocks must be so much faster: SMs keep different paces, and none takes over what is left to another.
/// Measured on one H200 on 2026-11-23 on causal attention of 192 rows. Where the model finds them 16% and 5% faster,
/// they are 11% and 6% faster. Where it finds them 1.2% faster and 0.3% slower, they are 0.6% and 1.7% slower.
constexpr double worth_ping_pong = 0.98;

/// Stream-K must make a kernel so much faster: it is more code, and states go through memory. Measured on one H200 on
/// 2026-11-25 on 16 shapes of dense attention. The model finds 11 of them 1.5% faster and more. Among these, 10 are 0.8
/// to 8.7% faster and one is 1.4% slower. The others are 1.2% faster to 3.2% slower.
constexpr double worth_cutting = 0.985;

}  // namespace

Simulation choose_grid(ScheduledKernel& kernel, const Simulator& model, std::int64_t threads, std::int64_t walk_limit) {
    Choice& grid = kernel.schedule.grid;
    const std::int64_t groups = kernel.num_groups();
    const bool by_data = any_of(kernel.loops,
                                [&](const ScheduledLoop& loop) { return k_block_ranges(kernel, loop).has_value(); });
    if (kernel.is_dynamic()) return model.run(kernel, threads, walk_limit);
    if (by_data && grid.value == 0 && kernel.producer_role() && threads > 1 && groups > threads) {
        grid.value = groups;
        grid.reason = "a block for each group: data say how many chunks one runs";
    }
    Simulation time = model.run(kernel, threads, walk_limit);
    if (grid.value > 0 || !kernel.has_block_a_group() || !kernel.producer_role() || threads <= 1 || groups <= threads)
        return time;
    grid.value = threads;
    Simulation in_turn = model.run(kernel, threads, walk_limit);
    const double slower = time.seconds / in_turn.seconds;
    if (in_turn.seconds < worth_ping_pong * time.seconds) {
        grid.reason = fmt::format("in turn, back and forth; a block for each of {} groups is {}", groups,
                                  time_change(slower));
        return in_turn;
    }
    grid.value = groups;
    grid.reason = fmt::format("a block for each group; {} in turn are {}{}", threads, time_change(1 / slower),
                              slower > 1 ? ", which their different paces take" : "");
    return time;
}

Simulation choose_stream_k(ScheduledKernel& kernel, const Simulator& model, std::int64_t threads, Simulation whole,
                           std::int64_t walk_limit) {
    Chosen<TileScheduler>& scheduler = kernel.schedule.scheduler;
    // With stream-K, a block that is late hands nothing to others. Measured on one H200 on 2026-11-25 on block-scaled
    // products of 8192³. The model finds stream-K 1.6% faster than whole tiles, but it is 4% slower than the dynamic
    // scheduler.
    if (!model.machine().meeting_s.known() || scheduler.by_user || threads_read_ahead(kernel) || threads <= 1)
        return whole;
    const auto found = stream_k(kernel);
    const auto* cut = std::get_if<StreamK>(&found);
    if (!cut || cut->blocks != threads) return whole;
    const auto before = std::exchange(scheduler, {TileScheduler::stream_k, "", false});
    Simulation time = model.run(kernel, threads, walk_limit);
    if (time.seconds < worth_cutting * whole.seconds) {
        scheduler.reason = fmt::format("{} groups of {} chunks, {:.1f} for each of {} blocks; whole ones are {}",
                                       time.groups, cut->chunks,
                                       static_cast<double>(time.groups) / static_cast<double>(cut->blocks), cut->blocks,
                                       time_change(whole.seconds / time.seconds));
        return time;
    }
    scheduler = before;
    return whole;
}

}  // namespace napkin
