#pragma once
// The model's transfers and memory at every level beside those that the tile interpreter counts by moving each value
// through all of them.
#include <string>
#include <vector>

#include "cost/nested.hpp"
#include "cost/on_machine.hpp"
#include "diagram/diagram.hpp"
#include "report/print.hpp"

namespace napkin {

struct CountedLevel {
    std::string kernel, level;
    TileSizes sizes;
    Counts predicted, counted;
};

struct LevelCount {
    std::vector<CountedLevel> levels;  ///< of every kernel, outermost first
    double error = 0;                  ///< largest |a − b| / max(1, |b|) of the results against the definition's
    [[nodiscard]] bool equal() const;
};

/// Runs the kernels in double precision on random inputs. The sizes are those of the core's groups and of every
/// caching, clustered or plain level above it, cut down to multiples of each other. Errors: too-many-points (the
/// interpreter goes point by point). `tiles` as cost_figures has them.
Result<LevelCount> count_levels(const Derived& derived, const Extents& extents,
                                const std::vector<KernelOnMachine>& kernels, const std::vector<TileKernel>& tiles = {});

/// A row for each level, predicted beside counted.
report::Section report_of(const LevelCount& count);

}  // namespace napkin
