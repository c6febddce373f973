#pragma once
// What `napkin cost` prints: H, M and N_g of every kernel with the paper's letters, the table of arrays, H*, and the numbers where
// sizes are known. As aligned text, and as JSON: {"kernels": [{"name", "groups", "transfers", "memory", "optimum", "arrays", "numbers"}, …],
// "total": {…}}.
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "cost/cost_figures.hpp"

namespace napkin {

std::string cost_text(const Derived& derived, const std::optional<CostNumbers>& numbers = std::nullopt);
nlohmann::json cost_json(const Derived& derived, const std::optional<CostNumbers>& numbers = std::nullopt);

}  // namespace napkin
