#pragma once
// Conditional rescaling: a running maximum or minimum that exponentials refer to, and that may stay behind.
//
// A fold with weights exp(A − m), where m is the running maximum of A, corrects its sums by exp(m′ − m) in every KV
// block. Another base or factor of the exponent is a rate of the reference. A minimum has a negative rate. The calculus
// says what the parts are (TileReference, tile/program.hpp). The result does not depend on m. Another reference r
// multiplies all sums by exp(m − r), which cancels in quotients of sums and in log(sum) + r. Only the range of numbers
// matters: a weight must not exceed what the type takes in which it is multiplied. So r may stay what it was, at no
// cost, while a KV block's own sums of weights under r stay within a limit. A sum within the limit shows that each of
// its weights is. Else the KV block is computed again as it is written: with the maximum, which moves r, and with the
// corrections. Weights under r are those under m times a factor of at least 1. So no weight underflows that the maximum
// would have kept, and relative errors are those of any reference.
//
// Weights that are still in range need not be computed again (`rescaling rescale`). Let the largest of them be w times
// what it is under a maximum that has moved. The reference moves by the whole powers of two of w. The weights are
// multiplied by the factor that corrects the sums. Where a weight is infinite, or w exceeds 2^64, the KV block is
// computed again. The multiplication rounds once more, as it does for sums that are corrected.
#include <string>
#include <variant>
#include <vector>

#include "schedule/scheduled.hpp"

namespace napkin {

/// The rescaling, or why no maximum of the kernel may stay behind. Pre: the kernel's atoms and slots are applied.
std::variant<ConditionalRescale, std::string> conditional_rescale(const ScheduledKernel& kernel);

/// Whether the values under the maximum grow with the position along its loop, masks aside, as by a bias of distances.
/// The maximum would then be behind in every KV block, and the weights would be computed twice.
bool moves_by_position(const ScheduledKernel& kernel, const ConditionalRescale& lazy);

/// The rescaling that the kernel's schedule asks for; none where it asks for none, or where none is possible.
std::optional<ConditionalRescale> chosen_rescale(const ScheduledKernel& kernel);

/// Step `step` of the kernel may run other steps again that read the operand.
bool reads_again(const ScheduledKernel& kernel, StepId step, VariableId operand);

}  // namespace napkin
