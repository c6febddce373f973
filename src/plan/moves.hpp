#pragma once
// The moves of the planner, as tables: where a search may go from where it stands. A new move is a new row. The
// searches try each row whose `when` holds, in the order of the rows.
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "plan/candidate_schedules.hpp"
#include "plan/complete.hpp"
#include "schedule/simulate.hpp"

namespace napkin {

template <class At, class To>
struct Move {
    std::string_view name;
    bool (*when)(const At& at);
    To (*apply)(const At& at);
    std::string_view reason;
    double worth = 1;  ///< it must take less than this share of the time before
};

// ---- shapes of CTAs (blocks.cpp)

struct CtaShape {
    int warps, blocks_a_core;
    int producer_warps = 0;  ///< beside the others, in kernels that load tensor core operands in a loop
    ProductOrder products = ProductOrder::in_turn;
    friend bool operator==(const CtaShape&, const CtaShape&) = default;
};
/// What the shapes that have been tried show.
struct TriedShapes {
    bool copies_operands = false;      ///< in a loop, which producer warps could do
    bool writes_operands = false;      ///< all warps of a CTA do so together
    bool leaves_tensor_cores = false;  ///< the fastest plan uses none
};
using ShapeMove = Move<TriedShapes, std::vector<CtaShape>>;
/// Neighbouring rows with the same `when` are tried at once.
std::span<const ShapeMove> shape_moves();

// ---- sizes (size_search.cpp)

struct AtSizes {
    const std::vector<SearchedSize>& sizes;
    const Point& point;
    std::size_t size;       ///< the one that changes
    std::size_t other = 0;  ///< and the one that changes with it
};
using SizeMove = Move<AtSizes, Point>;
/// Taken again and again, as long as they are faster.
std::span<const SizeMove> size_steps();
/// Tried where no step is faster.
std::span<const SizeMove> size_exchanges();
/// From where steps and exchanges end. The plan says of each what it would cost.
std::span<const SizeMove> size_neighbours();

// ---- parts of a stream (parts.cpp)

struct AtGroups {
    std::int64_t groups, cores;
};
using PartMove = Move<AtGroups, std::int64_t>;
std::span<const PartMove> part_moves();

// ---- fields of a whole schedule (plan_at_sizes.cpp, candidate_estimates.cpp)

struct AtSchedule {
    const ScheduledKernel& kernel;
    const Machine& machine;
    std::int64_t threads;
};
/// A move that has been tried, for its reason.
struct TriedMove {
    std::int64_t threads;
    const Simulation &before, &after;
    bool is_taken;
};
struct ScheduleMove : Move<AtSchedule, KernelSchedule> {
    /// Whether what it leads to is another candidate, which the compiler may refuse by itself.
    bool is_candidate;
    void (*say)(ScheduledKernel& kernel, const TriedMove& tried);
};
std::span<const ScheduleMove> schedule_moves();

constexpr std::int64_t whole_walk = std::int64_t{1} << 22;

/// The time of the kernel. Where data say how many K blocks a tile runs, its open grid becomes a CTA for each tile.
Simulation time_before_moves(ScheduledKernel& kernel, const Simulator& model, std::int64_t threads,
                             std::int64_t walk_limit = whole_walk);
/// Makes the move where it is worth it. Returns the time of the kernel as it is then.
Simulation time_after(const ScheduleMove& move, ScheduledKernel& kernel, const Simulator& model, std::int64_t threads,
                      Simulation before, std::int64_t walk_limit = whole_walk);

}  // namespace napkin
