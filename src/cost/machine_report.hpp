#pragma once
// What a kernel costs on a machine, for readers: as aligned text and as JSON.
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "cost/machine_figures.hpp"

namespace napkin {

std::string operations_text(double value);  ///< "1.5 T"

/// `explain`: with the derivation of the figures, numbers put in.
std::string machine_text(const Derived& derived, const MachineFigures& figures, bool explain);
nlohmann::json machine_json(const Derived& derived, const MachineFigures& figures);

}  // namespace napkin
