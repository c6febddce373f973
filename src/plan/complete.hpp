#pragma once
// What the sizes of a schedule leave open, by rule: the atom of every statement, the place of every variable. Each rule
// is one pass over the scheduled program, in this order; what the user fixed is kept. Those of transfers ask the
// machine, too.
#include <cstdint>

#include "schedule/scheduled.hpp"
#include "schedule/simulate.hpp"

namespace napkin {

void choose_orders(ScheduledKernel& kernel);    ///< Place::innermost: along the kernel's vector axis, else as in memory
void choose_atoms(ScheduledKernel& kernel);     ///< vector axis, block and loops of every compute statement
void form_fusions(ScheduledKernel& kernel);     ///< Atom::run: neighbours along the vector axis go panel by panel
void fuse_reductions(ScheduledKernel& kernel);  ///< Atom::follows
/// Atoms and places of a kernel on the machine's matrix unit, where KernelSchedule::mma_m_axis is set; false, and
/// nothing done, where some statement or size does not suit it.
bool choose_fragments(ScheduledKernel& kernel);
/// Slots of the operands' loads in the role that asks for copies. There is none, but by hand, where copies are not
/// asked for by one thread or nothing is copied in a loop.
void choose_roles(ScheduledKernel& kernel);
/// Slots in which a loop's products run beside what is computed for the turn to come: those of the fastest order, then
/// of the fewest registers (modulo.hpp), by the model's clocks; without a model every statement takes one. Pre: roles
/// are chosen.
void choose_slots(ScheduledKernel& kernel, const Simulator* model);
/// KernelSchedule::turns: wherever they may be taken. Pre: slots are applied.
void choose_ping_pong(ScheduledKernel& kernel);
/// KernelSchedule::lazy: wherever a maximum may lag. Pre: slots are applied.
void choose_rescale(ScheduledKernel& kernel);
/// Place::stages of operands: as many as fit. Pre: places are chosen and shaped.
void choose_stages(ScheduledKernel& kernel);
/// Place::boxes: wherever bulk copies may store a variable and there is room left for boxes. Pre: stages are chosen.
void choose_staging(ScheduledKernel& kernel);
/// Place::stages of operands that are loaded once a group: a second one, where a role copies and there is room left, or
/// made by a box and stages that the copies do not need, so that it goes on to the next group's tiles while this one's
/// are still read. Pre: boxes are chosen.
void choose_group_stages(ScheduledKernel& kernel);
/// KernelSchedule::dealing: from a queue where a role copies ahead of the group at hand, there are more groups than
/// blocks that run at once, and groups differ in their chunks or in the rows that they have, or blocks in their pace.
/// Pre: stages are chosen.
void choose_tile_scheduler(ScheduledKernel& kernel);
/// Atom::parts of products, where registers would spill and hold in parts what they do not hold at once: the fewest.
/// Pre: places and stages are chosen.
void choose_column_parts(ScheduledKernel& kernel);
void choose_storage(ScheduledKernel& kernel);  ///< Place::holding: views, panels, packed tiles

/// Place::non_temporal, of what is written in place in the order of memory: where the kernel moves more than the
/// machine's caches hold on to, and another kernel that reads the result would not find it there either. Where the
/// result is written over an array that the kernel reads, the caches have its lines by then.
void choose_non_temporal(ScheduledKernel& kernel, const Machine& machine);
/// KernelSchedule::prefetches, of rows: wherever rows of a block share pages.
void fetch_rows_ahead(ScheduledKernel& kernel);
/// Keeps those that save time by simulation, and adds those of groups: each in the statement with which the simulator
/// finds the kernel the fastest, where that saves time and the tiles ahead fit beside the others. Returns how many
/// simulations that took.
int choose_prefetches(ScheduledKernel& kernel, const Simulator& model, std::int64_t threads, std::int64_t walk_limit);
/// KernelSchedule::tile_pipelining: of what is stored past the caches, in the statement with which the simulator finds
/// the kernel the fastest, unless it is slower than in its own group. As long as memory takes longest the model finds
/// both equally fast; fewer bytes then go in bursts, of which it has nothing. Returns how many simulations that took.
/// Pre: prefetches are chosen. Fetches the tiles of groups to come into the second cache where the first does not hold
/// them beside those at hand, of which others are as large: they would displace these. Pre: prefetches and
/// tile_pipelining are chosen.
void choose_caches(ScheduledKernel& kernel, const Machine& machine);
int choose_tile_pipelining(ScheduledKernel& kernel, const Simulator& model, std::int64_t threads, std::int64_t walk_limit);

/// What a completed kernel is for: one that is only rated has none of a matrix unit's waits, which no rating asks for
/// and which take long to find. One whose tiles alone are asked for has no waits at all: `synchronize` finds those that
/// its time depends on.
enum class Completion : std::uint8_t { whole, for_estimate, for_tiles };

/// How a completed kernel's products run where slots are not by hand: in the order of the statements, or beside what is
/// computed for the turn to come (choose_slots).
enum class ProductOrder : std::uint8_t { in_turn, ahead };

/// Whether the completed kernel runs on a matrix unit: found out of the first passes of `complete` alone.
bool suits_matrix_unit(ScheduledKernel unscheduled, KernelSchedule schedule);

/// The schedule with its atoms and places, and all that follows from it. `model`: that of the kernel, whose clocks say
/// which products run ahead. Pre: sizes, vector axis, panel and rows are there.
ScheduledKernel complete(ScheduledKernel unscheduled, KernelSchedule schedule, Completion completion = Completion::whole,
                         ProductOrder products = ProductOrder::in_turn, const Simulator* model = nullptr);

}  // namespace napkin
