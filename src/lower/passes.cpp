#include "lower/passes.hpp"

#include "lower/insert_barriers.hpp"
#include "schedule/column_parts.hpp"
#include "schedule/conditional_rescale.hpp"

namespace napkin {
namespace {

/// What a pass applies of the schedule; null where later passes read the schedule itself.
using Apply = void (*)(ScheduledKernel&);

constexpr Apply apply_of(SchedulePass pass) {
    switch (pass) {
        case SchedulePass::fusions: return apply_atoms;
        case SchedulePass::slots: return apply_slots;
        case SchedulePass::rescaling: return [](ScheduledKernel& kernel) { kernel.rescale = chosen_rescale(kernel); };
        case SchedulePass::column_parts:
            return [](ScheduledKernel& kernel) { kernel.column_parts = chosen_column_parts(kernel); };
        case SchedulePass::arena: return apply_storage;
        case SchedulePass::barriers: return insert_barriers;
        default: return nullptr;
    }
}

}  // namespace

void run_passes(ScheduledKernel& kernel, Choosing choose, SchedulePass end, SchedulePass begin) {
    for (SchedulePass pass = begin; pass < end; pass = static_cast<SchedulePass>(at(pass) + 1)) {
        choose(pass, kernel);
        if (const Apply apply = apply_of(pass)) apply(kernel);
    }
}

ScheduledKernel scheduled(const std::shared_ptr<const TileProgram>& program, std::size_t kernel, const Extents& extents,
                          const KernelSchedule& schedule, const VectorUnit& unit) {
    ScheduledKernel out = with_sizes(unscheduled(program, kernel, extents, unit), schedule);
    run_passes(out, [](SchedulePass, ScheduledKernel&) {});
    return out;
}

}  // namespace napkin
