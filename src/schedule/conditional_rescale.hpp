#pragma once
// A running maximum that exponentials refer to and that may lag behind.
//
// A fold with weights exp(A − m), m being the running maximum of A, corrects its sums by exp(m′ − m) in every chunk.
// What it computes in the end does not depend on m: another reference r multiplies all sums by exp(m − r), which
// quotients of sums and log(sum) + r do not see. Only the range of numbers does: a weight must not exceed what the type
// takes in which it is multiplied. So r may stay what it was, at no cost, while a chunk's own sums of weights under r
// stay within a limit, which says that each of the weights does. Where they do not, the chunk is computed again as it
// is written: with the maximum, which moves r, and with the corrections. Weights under r are those under m times a
// factor of at least 1, so that none is lost at the lower end that the maximum would have kept; and the relative errors
// are those of any reference.
//
// Weights that have left no range, of which the largest is w times what it is beside a maximum that has moved, need not
// be computed again: the reference moves by the whole powers of two of w, and weights are multiplied by what corrects
// the sums (`maximum rescaled`). Where one is infinite, or more than 2^64 times that, the chunk is computed again.
// Multiplying rounds once more, as sums are rounded that are corrected.
#include <string>
#include <variant>
#include <vector>

#include "schedule/scheduled.hpp"

namespace napkin {

/// It, or why no maximum of the kernel may lag. Pre: the kernel's atoms and slots are applied.
std::variant<ConditionalRescale, std::string> conditional_rescale(const ScheduledKernel& kernel);

/// What the maximum is taken of grows with the position along its loop, masks aside, as by a bias of distances: it
/// would be behind in every chunk, and the weights be computed twice.
bool moves_by_position(const ScheduledKernel& kernel, const ConditionalRescale& lazy);

/// The kernel's schedule has one that lags.
std::optional<ConditionalRescale> chosen_rescale(const ScheduledKernel& kernel);

/// Step `step` of the kernel may run others again that read the operand.
bool reads_again(const ScheduledKernel& kernel, StepId step, VariableId operand);

}  // namespace napkin
