#pragma once
// What `napkin cost` prints: H, M and N_g of every kernel with the paper's letters, the table of arrays, H*, and the numbers where
// sizes are known. Once as aligned text, once as JSON.
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "cost/on_machine.hpp"
#include "tile/exact.hpp"

namespace napkin {

/// What turns letters into numbers.
struct CostNumbers {
    Extents extents;
    std::vector<TileSizes> sizes;         ///< of every kernel
    std::optional<double> memory_values;  ///< what a core holds: M for H*
    const Machine* machine = nullptr;     ///< with the cost of every kernel on it, or null
    const std::vector<KernelOnMachine>* on_machine = nullptr;
    double special_overhead = 0;  ///< of overlap()
    bool explain = false;         ///< the derivation of the machine's figures in the text
};

struct CostReport {
    std::string text;
    nlohmann::json json;  ///< {"kernels": [{"name", "groups", "transfers", "memory", "optimum", "arrays", "numbers"}, …], "total": {…}}
};

CostReport cost_report(const Derived& derived, const std::optional<CostNumbers>& numbers = std::nullopt);

}  // namespace napkin
