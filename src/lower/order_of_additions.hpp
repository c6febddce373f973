#pragma once
// The order in which a scheduled kernel adds up. It is all of a schedule that the last bits of a result depend on.
#include <string>

#include "schedule/scheduled.hpp"

namespace napkin {

/// The order, a line for each choice: K blocks, parts of streams, how rescaling is decided, and for each statement its
/// instruction, its lanes, cuts and loops, and the forms of its functions. Where two schedules of one kernel have the
/// same text, they compute the same bits of a row, however many rows there are. No extent of an axis that is not
/// reduced is in it.
std::string order_of_additions(const ScheduledKernel& kernel);
/// The same without the forms of functions, which are slow to find.
std::string order_without_functions(const ScheduledKernel& kernel);

}  // namespace napkin
