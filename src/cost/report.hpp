#pragma once
// What `napkin cost` prints: H, M, N_g and the work of every kernel with the paper's letters, the table of arrays, H*,
// and the numbers where sizes are known. As aligned text, and as JSON: {"kernels": [{"name", "groups", "transfers",
// "memory", "optimum", "arrays", "numbers"}, …], "total": {…}}.
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "cost/cost_figures.hpp"

namespace napkin {

/// `tiles` as cost_figures has them.
std::string cost_text(const Derived& derived, const std::optional<CostNumbers>& numbers = std::nullopt,
                      const std::vector<TileKernel>& tiles = {});
nlohmann::json cost_json(const Derived& derived, const std::optional<CostNumbers>& numbers = std::nullopt,
                         const std::vector<TileKernel>& tiles = {});

}  // namespace napkin
