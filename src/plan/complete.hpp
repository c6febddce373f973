#pragma once
// What the sizes of a schedule leave open, by rule: the atom of every statement, the place of every variable. Each rule
// is one pass over the scheduled program, in this order, and keeps overrides. Rules of transfers ask the machine, too.
#include <cstdint>

#include "schedule/scheduled.hpp"
#include "schedule/simulate.hpp"

namespace napkin {

/// KernelSchedule::any: the axes of any size of which a tile is shorter, or longer. Pre: the schedule has its sizes.
void choose_any_sizes(const ScheduledKernel& unscheduled, KernelSchedule& schedule);
void choose_orders(ScheduledKernel& kernel);    ///< Place::innermost: along the kernel's vector axis, else as in memory
void choose_atoms(ScheduledKernel& kernel);     ///< vector axis, block and loops of every compute statement
void form_fusions(ScheduledKernel& kernel);     ///< Atom::run: neighbours along the vector axis go panel by panel
void fuse_reductions(ScheduledKernel& kernel);  ///< Atom::follows
/// Atoms and places of a kernel on the tensor cores, where KernelSchedule::mma_m_axis is set. Returns false, and
/// changes nothing, where some statement or size does not suit them.
bool choose_fragments(ScheduledKernel& kernel);
/// Slots of the operands' loads in the producer role. Without an override there is no such role on machines without
/// bulk copies, or where no loop copies anything.
void choose_roles(ScheduledKernel& kernel);
/// Slots with which a loop's products run beside what is computed for the next iteration. The fastest order is taken,
/// then the one with the fewest registers (modulo.hpp), by the model's clocks. Without a model every statement takes
/// one clock. Pre: roles are chosen.
void choose_slots(ScheduledKernel& kernel, const Simulator* model);
/// Ping-pong (`KernelSchedule::turns`): wherever it is possible. Pre: slots are applied.
void choose_ping_pong(ScheduledKernel& kernel);
/// Conditional rescaling (`KernelSchedule::lazy`): wherever a running maximum allows it. Pre: slots are applied.
void choose_rescale(ScheduledKernel& kernel);
/// Place::stages of operands: as many as fit. Pre: places are chosen and shaped.
void choose_stages(ScheduledKernel& kernel);
/// Staging tiles (Place::boxes): wherever bulk copies may store a variable and there is room left. Pre: stages are
/// chosen.
void choose_staging(ScheduledKernel& kernel);
/// Place::stages of operands that are loaded once per CTA tile. A second stage lets the producer go on to the next
/// tile's operands while this one's are still read. It needs a producer role and room. The room may come from a staging
/// tile and from stages that the copies do not need. Pre: staging tiles are chosen.
void choose_group_stages(ScheduledKernel& kernel);
/// The tile scheduler (`KernelSchedule::scheduler`). It is dynamic where producers copy ahead of the current tile, and
/// there are more tiles than blocks that run at once. Also, tiles must differ in their K blocks or in the rows that
/// they have, or blocks in their pace. Pre: stages are chosen.
void choose_tile_scheduler(ScheduledKernel& kernel);
/// Atom::parts of products whose registers would spill: the fewest parts of their columns with which nothing spills.
/// Pre: places and stages are chosen.
void choose_column_parts(ScheduledKernel& kernel);
void choose_storage(ScheduledKernel& kernel);  ///< Place::holding: views, panels, packed tiles

/// Place::non_temporal, of what is written in place in the order of memory. It is set where the kernel moves more than
/// the machine's caches hold, so that another kernel that reads the result would not find it there either. It is not
/// set where the result is written over an array that the kernel reads: the caches have its lines by then.
void choose_non_temporal(ScheduledKernel& kernel, const Machine& machine);
/// KernelSchedule::prefetches, of rows: wherever rows of a block share pages.
void fetch_rows_ahead(ScheduledKernel& kernel);
/// Keeps the prefetches that save time by simulation, and adds prefetches of groups. Each of these is in the statement
/// with which the simulator finds the kernel the fastest. It must save time, and the tiles ahead must fit beside the
/// others. Returns the number of simulations.
int choose_prefetches(ScheduledKernel& kernel, const Simulator& model, std::int64_t threads, std::int64_t walk_limit);
/// Fetches the tiles of groups to come into the second cache, where the first does not hold them beside the current
/// ones. Other current tiles must be as large, as they would be displaced. Pre: prefetches and tile_pipelining are
/// chosen.
void choose_caches(ScheduledKernel& kernel, const Machine& machine);
/// KernelSchedule::tile_pipelining of what is stored past the caches. It is in the statement with which the simulator
/// finds the kernel the fastest, unless that is slower than in its own group. As long as memory takes longest, the
/// model finds both equally fast. Fewer bytes then go in bursts, which the model does not know. Returns the number of
/// simulations. Pre: prefetches are chosen.
int choose_tile_pipelining(ScheduledKernel& kernel, const Simulator& model, std::int64_t threads, std::int64_t walk_limit);

/// What a completed kernel is for. An estimate has none of the waits on tensor cores, which it does not need and which
/// take long to find. A kernel for its tiles alone has no waits at all: `synchronize` finds those that its time depends
/// on.
enum class Completion : std::uint8_t { whole, for_estimate, for_tiles };

/// How a completed kernel's products run without an override of slots: in the order of the statements, or beside what
/// is computed for the next iteration (choose_slots).
enum class ProductOrder : std::uint8_t { in_turn, ahead };

/// Whether the completed kernel runs on the tensor cores, from the first passes of `complete` alone. The kernel then
/// has the schedule's sizes and orders. It may be asked with another schedule.
bool suits_matrix_unit(ScheduledKernel& kernel, KernelSchedule schedule);

/// The schedule with its atoms and places, and all that follows from it. The clocks of the kernel's `model` say which
/// products run ahead. Pre: sizes, vector axis, panel and rows are there.
ScheduledKernel complete(ScheduledKernel unscheduled, KernelSchedule schedule, Completion completion = Completion::whole,
                         ProductOrder products = ProductOrder::in_turn, const Simulator* model = nullptr);
/// The same in two steps. The first one runs the passes that read the vector axis and the panels of a block.
void add_atoms(ScheduledKernel& unscheduled, KernelSchedule schedule);
void complete_with_atoms(ScheduledKernel& kernel, Completion completion, ProductOrder products, const Simulator* model);

/// What add_atoms chooses for the later passes. They find the same, and simulation does, in kernels that agree in it.
/// Such kernels also have the same sizes, the same axis M and the same overrides.
struct ChosenAtoms {
    By<AtomId, Atom> atoms;
    ByVariable<Place> places;
    AxisId vector_axis = -1;
    int panel_vectors = 1;
    friend bool operator==(const ChosenAtoms&, const ChosenAtoms&) = default;
};
ChosenAtoms chosen_atoms(const ScheduledKernel& kernel);

}  // namespace napkin
