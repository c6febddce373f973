#pragma once
// What `napkin cost` says of every kernel, before it is printed: H, M and N_g in the paper's letters, H*, and the
// numbers where sizes are known. report.hpp prints it.
#include <optional>
#include <vector>

#include "cost/least.hpp"
#include "cost/machine_figures.hpp"
#include "cost/search.hpp"
#include "cost/symbolic_work.hpp"
#include "tile/exact.hpp"
#include "tile/work.hpp"

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

struct KernelFigures {
    std::size_t kernel = 0;
    TileKernel tiles;        ///< what is costed
    KernelCost cost, tied;   ///< in letters; with one letter for axes of equal size
    Size flops, tied_flops;  ///< the work, in letters
    WorkInLetters operations;
    TiedLetters tied_letters;  ///< inner axes (neither grouped nor streamed): the letter that stands for each
    Optimum optimum, tied_optimum;
    // Where sizes are known:
    std::optional<Counts> counts;
    WorkTotals work;
    std::optional<LeastTransfers> least;  ///< where M is, too
    std::optional<SearchResult> legal;    ///< the same among sizes that the machine's lines and instructions take
    Optimum at_hand;  ///< in letters as far as the sizes allow: axes that would not fill a group are whole
    std::optional<MachineFigures> machine;
};

/// Figures of every kernel; `tiles` has their tile programs where subloops cut them. H* is of the kernel without
/// subloops, which move what it moves. What points to the machine and its costs points into `numbers`.
std::vector<KernelFigures> cost_figures(const Derived& derived, const std::optional<CostNumbers>& numbers,
                                        const std::vector<TileKernel>& tiles = {});

/// The transfers of all kernels together; the numbers where sizes are known.
struct TotalTransfers {
    Size letters;
    double values = 0, bytes = 0;
};
TotalTransfers total_transfers(const std::vector<KernelFigures>& kernels);

/// The value of a symbol at the extents and the kernel's sizes at hand, M being what a core holds.
std::optional<double> value_at_hand(const CostNumbers& numbers, std::size_t kernel, Symbol symbol);

}  // namespace napkin
