#pragma once
// The calculus: a diagram becomes kernels of streamed loops. Pure; symbolic in all sizes.
#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "derive/derived.hpp"
#include "diagram/evaluate.hpp"
#include "support/result.hpp"

namespace napkin {

struct DeriveOptions {
    Form form = Form::unscaled;
    bool fuse = true;        ///< false: every equation is a kernel of its own
    bool flat_rows = false;  ///< axes along which products have rows become one (diagram/flat_axes.hpp)
    /// fixes the partition: target names of each kernel; empty: derived
    std::vector<std::vector<std::string>> kernels;
    /// axes that must be streamed where they are reduced; refused when they cannot be
    std::vector<std::string> stream;
};

/// The kernels are the first alternative of every region. Errors: unknown-axis in `stream` or the schedule,
/// not-streamable (rule, term) for an axis that was demanded.
Result<Derived> derive(const Diagram& diagram, const DeriveOptions& options = {});

/// The same derivation with another alternative of each region.
Derived rederive(const Derived& derived, const std::vector<std::size_t>& chosen);

/// The same derivation with flat rows; none where there are no such axes, or it has them already.
std::optional<Derived> with_flat_rows(const Derived& derived);

/// The same derivation with the alternative of least cost in each region, found region by region. `cost` is asked of
/// the kernels of one alternative alone. Its second argument is a limit: above it, it may return anything that is not
/// less than the limit. The earlier alternative stays unless another costs less by more than `least_gain` of it.
/// `threads` threads ask for the costs of a region's alternatives. Their number changes no result, as an alternative is
/// judged by those before it alone. With `mismatch`, the alternatives are asked for it first, and only those with the
/// least mismatch are costed.
Derived with_least_cost(const Derived& derived, const std::function<double(const Derived&, double)>& cost,
                        std::size_t threads = 1, double least_gain = 0.02,
                        const std::function<double(const Derived&)>& mismatch = {});

/// Runs the derived form in double precision, kernel by kernel, with the given group and stream sizes by AxisId (0: the
/// whole axis). This is the meaning of a Derived, for translation validation. `values` holds the inputs by ArrayId of
/// derived.diagram, and on return every array in memory.
struct PartitionSizes {
    std::vector<std::int64_t> group, stream;
};
void evaluate(const Derived& derived, const Extents& extents, const PartitionSizes& sizes, Values& values);

}  // namespace napkin
