#pragma once
// What `napkin cost` prints: H, M and N_g of every kernel with the paper's letters, the table of arrays, H*, and the numbers where
// sizes are known. Once as aligned text, once as JSON.
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "cost/exact.hpp"

namespace napkin {

/// What turns letters into numbers.
struct CostNumbers {
    Extents extents;
    std::vector<TileSizes> sizes;         ///< of every kernel
    std::optional<double> memory_values;  ///< what a core holds: M for H*
};

struct CostReport {
    std::string text;
    nlohmann::json json;  ///< {"kernels": [{"name", "groups", "transfers", "memory", "optimum", "arrays", "numbers"}, …], "total": {…}}
};

CostReport cost_report(const Derived& derived, const std::optional<CostNumbers>& numbers = std::nullopt);

}  // namespace napkin
