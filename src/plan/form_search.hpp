#pragma once
// The form of a derivation whose plan is the fastest. Each way to gather its equations into regions is searched
// (gatherings_of), and each region by itself. Its alternatives say which equations are one kernel; each kernel may
// stream any axis that its equations reduce.
//
// Kernels are planned one by one, and each only once. Until it is planned, a kernel counts with a lower bound of its
// time. The next one is always of the alternative with the least sum. So an alternative with the least sum whose
// kernels are all planned is the fastest, and what is left need not be planned.
#include <memory>
#include <optional>

#include "derive/derived.hpp"
#include "diagram/sizes.hpp"
#include "machine/machine.hpp"
#include "plan/estimates.hpp"

namespace napkin {

struct FoundForm {
    Derived form;
    double seconds = 0;  ///< on a GPU of quick plans (PlanOptions::quick)
};

/// None where every form takes `enough` seconds or more. Pre: `extents` binds derived.diagram; the machine is a CPU or
/// a GPU that CUDA programs; nothing is overridden.
std::optional<FoundForm> fastest_form(const Derived& derived, const Extents& extents, const Machine& machine,
                                      const std::shared_ptr<Estimates>& ratings, double enough);

}  // namespace napkin
