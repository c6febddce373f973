#pragma once
// The form of least cost, by any measure of a test's own.
#include <cstddef>
#include <vector>

#include "derive/derive.hpp"
#include "derive/kernel_forms.hpp"
#include "support/ranges.hpp"

namespace napkin {

/// The derivation with the alternative of least cost in each region; the first one where several have it.
template <class Cost>
Derived least_form(const Derived& derived, const Cost& cost) {
    const KernelForms forms(derived);
    std::vector<std::size_t> chosen;
    for (const Region& region : derived.regions) {
        const auto costs = mapped<double>(region.alternatives,
                                          [&](const Alternative& a) { return cost(forms.of(a.kernels)); });
        chosen.push_back(static_cast<std::size_t>(min_element(costs) - costs.begin()));
    }
    return rederive(derived, chosen);
}

}  // namespace napkin
