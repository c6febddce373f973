#pragma once
// Diagrams for the tests of optima: from text to a kernel's cost, and the fewest transfers found without the model's
// own search.
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "cost/optimum.hpp"
#include "cost/search.hpp"
#include "run/pipeline.hpp"

namespace napkin::optima {

/// Compiles a diagram's text with sizes by axis (those of dependent axes follow from the text), derived without a
/// machine. The form has the fewest transfers at `memory` values a core, or at the text's sizes where it is 0.
Compilation derived(const std::string& text, const std::map<std::string, std::int64_t>& sizes, bool fuse = true,
                    double memory = 0);

/// One kernel with numbers for its axes.
struct Sized {
    const Compilation& compilation;
    const Kernel& kernel;
    KernelCost cost;
    SizedCost sized;

    Sized(const Compilation& c, std::size_t index, Measure measure = Measure::values);
    [[nodiscard]] std::int64_t extent(AxisId axis) const { return compilation.extents[axis]; }
    [[nodiscard]] std::string name(AxisId axis) const { return compilation.diagram.axis(axis).name; }
    /// The value of an axis' letter, M being `memory`.
    [[nodiscard]] std::optional<double> value(Symbol symbol, double memory) const;
    /// The value of an optimum: with the sums that it writes as one symbol.
    [[nodiscard]] std::optional<double> value(const Optimum& best, const Size& size, double memory) const;
};

struct Best {
    bool fits = false;
    double transfers = 0;
    std::vector<std::int64_t> sizes;  ///< by cost.grouped
};

/// Every integer size of every grouped axis, counted tile by tile; stream sizes of 1.
Best exhaustive(const Sized& s, std::int64_t memory);

/// H as tiles are counted, at group sizes by cost.grouped and stream sizes of 1; and M.
struct Counted {
    double transfers = 0, memory = 0;
};
Counted counted(const Sized& s, const std::vector<std::int64_t>& sizes);

/// Sizes a ratio of 2^(1/steps) apart along all grouped axes but the last, which is as large as fits; H as the formula
/// has it.
Best geometric(const Sized& s, double memory, int steps);

}  // namespace napkin::optima
