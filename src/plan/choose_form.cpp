#include "plan/choose_form.hpp"

#include "cost/on_machine.hpp"
#include "plan/choose.hpp"

namespace napkin {

Derived choose_form(const Derived& derived, const Extents& extents, const Machine& machine) {
    KernelTimes known;
    return with_least_cost(derived, [&](const Derived& alone, double enough) {
        return machine.kind == MachineKind::gpu ? quick_seconds(alone, extents, machine)
                                                : quick_seconds(alone, extents, machine, known, enough);
    });
}

}  // namespace napkin
