#pragma once
// A plan whose schedules are read at other sizes than those that they were made for. Nothing is searched.
#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "machine/machine.hpp"
#include "plan/plan.hpp"

namespace napkin {

/// Kernels of different code that a program has for all its sizes, at most.
inline constexpr std::size_t most_kernels_of_classes = 6;
/// How much slower than the plan for the length alone another one may be, as a share of its time. Kernels for short
/// lengths take microseconds, of which launches are a part that no plan changes.
inline constexpr std::int64_t short_length = 512;
constexpr double most_slower(std::int64_t length) { return length < short_length ? 0.08 : 0.03; }
constexpr bool is_near_enough(double seconds, double best, std::int64_t length) {
    return seconds <= (1 + most_slower(length)) * best;
}
/// On a GPU, times of kernels for short lengths that differ by less are not told apart. An event's time has a
/// resolution of half a microsecond, and two events bound a launch (CUDA Runtime API, cudaEventElapsedTime).
inline constexpr double launch_scatter_s = 1e-6;
/// Whether a call takes a plan that is compiled in place of the best one, which is not.
constexpr bool is_worth_no_code(double seconds, double best, std::int64_t length, MachineKind place) {
    const bool is_scatter = place == MachineKind::gpu && length < short_length && seconds <= best + launch_scatter_s;
    return is_scatter || is_near_enough(seconds, best, length);
}
/// Whether the sizes of these axes are arguments of each kernel that has them.
bool takes_any(const Plan& plan, const std::set<std::string>& axes);
/// The longest axis of any size at the plan's own sizes; 1 where there is none.
std::int64_t longest_of_any(const Plan& plan);

/// The plan `read` at other sizes with as many CTAs or threads as its tiles need. None where
/// a schedule breaks a rule then. Times are those of the plan that was made.
/// Pre: both have the same kernels; `made` is of the sizes that it was made for.
std::optional<Plan> with_blocks_for(const Plan& made, Plan read, const Machine& machine);

/// The plan `made` with its streams in other numbers of parts, where these are arguments: so many that each core has a
/// part, and half of them. `read` is the same plan at the sizes that it is for.
std::vector<Plan> in_other_parts(const Plan& made, const Plan& read, const Machine& machine);

}  // namespace napkin
