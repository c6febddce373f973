#pragma once
// What the sizes of a schedule leave open, by rule: the atom of every statement, the place of every variable. Each rule is one pass over
// the scheduled program, in this order; what the user fixed is kept.
#include "schedule/scheduled.hpp"

namespace napkin {

void choose_orders(ScheduledKernel& kernel);    ///< Place::innermost: along the kernel's vector axis, else as in memory
void choose_atoms(ScheduledKernel& kernel);     ///< vector axis, block and loops of every compute statement
void form_runs(ScheduledKernel& kernel);        ///< Atom::run: neighbours along the vector axis go panel by panel
void join_reductions(ScheduledKernel& kernel);  ///< Atom::follows
void choose_places(ScheduledKernel& kernel);    ///< Place::holding: views, panels, packed tiles

/// The schedule with its atoms and places, and all that follows from it. Pre: sizes, vector axis, panel and rows are there.
ScheduledKernel complete(const std::shared_ptr<const TileProgram>& program, std::size_t kernel, const Extents& extents,
                         KernelSchedule schedule, const VectorUnit& unit);

}  // namespace napkin
