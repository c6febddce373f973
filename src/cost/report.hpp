#pragma once
// What `napkin cost` says: H, M, N_g and the work of every kernel with the paper's letters, the table of arrays, H*,
// and the numbers where sizes are known. For programs {"kernels": [{"name", "groups", "transfers", "memory", "optimum",
// "arrays", "numbers"}, …], "total": {…}}.
#include <optional>

#include "cost/cost_figures.hpp"
#include "report/print.hpp"

namespace napkin {

/// `tiles` as cost_figures has them.
report::Section cost_report(const Derived& derived, const std::optional<CostNumbers>& numbers = std::nullopt,
                            const std::vector<TileKernel>& tiles = {});

/// The letters of a kernel, and what it moves.
report::Section letters_report(const Derived& derived, const KernelFigures& figures);
/// What a kernel costs on a machine, behind what `out` says of it. `explain`: people get the derivation of the figures,
/// with the numbers put in.
void add_machine(report::Section& out, const Derived& derived, const MachineFigures& figures, bool explain);

}  // namespace napkin
