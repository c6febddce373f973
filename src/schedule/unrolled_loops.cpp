// How many of a reduction's loops a compiler may unroll.
#include "schedule/scheduled.hpp"
#include "support/saturate.hpp"

namespace napkin {

namespace {
/// Operands on their way get one of so many parts of a thread's registers. The others hold results, addresses and
/// conditions.
constexpr std::int64_t part_of_registers = 2;
}  // namespace

std::size_t first_unrolled(const ScheduledKernel& kernel, const Step& step, const std::vector<AxisId>& loops) {
    if (loops.empty()) return 0;
    const Atom& atom = kernel.atom(step);
    const std::int64_t operands = atom.rows + atom.vectors, most = kernel.unit.registers / part_of_registers;
    const auto iterations_of = [&](AxisId axis) {
        const std::int64_t by = kernel.block_size(atom, axis);
        return ceil_div(kernel.span(axis, step.scope).tile, by);
    };
    std::size_t first = loops.size() - 1;
    std::int64_t turns = iterations_of(loops[first]);
    while (first > 0) {
        // A loop whose length is known only at run time is not unrolled as a whole.
        turns = saturating_mul(turns,
                               kernel.span(loops[first - 1], step.scope).ragged ? 1 : iterations_of(loops[first - 1]));
        if (saturating_mul(turns, operands) > most) break;
        --first;
    }
    return first;
}

}  // namespace napkin
