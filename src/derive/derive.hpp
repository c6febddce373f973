#pragma once
// The calculus: a diagram becomes kernels of streamed loops. Pure; symbolic in all sizes.
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "derive/derived.hpp"
#include "diagram/evaluate.hpp"
#include "support/result.hpp"

namespace napkin {

enum class Form {
    unscaled,   ///< what does not depend on the streamed axis moves to the tail (FlashAttention-2)
    auxiliary,  ///< results are kept finished after every step and rescaled (paper Table 4, auxiliary SoftMax₀)
};

struct DeriveOptions {
    Form form = Form::unscaled;
    bool fuse = true;                               ///< false: every equation is a kernel of its own
    std::vector<std::vector<std::string>> kernels;  ///< fixes the partition: target names of each kernel; empty: derived
    std::vector<std::string> stream;  ///< axes that must be streamed where they are reduced; refused when they cannot be
    /// Says whether one kernel is better than two (total cost of the candidates); null: fewer transfers at the default sizes.
    std::function<double(const Derived&)> cost;
};

/// Errors: unknown-axis in `stream` or the schedule, not-streamable (rule, term) for an axis that was demanded.
Result<Derived> derive(const Diagram& diagram, const DeriveOptions& options = {});

/// Runs the derived form in double precision, kernel by kernel, with the given group and stream sizes by AxisId (0: the whole axis):
/// what a Derived means, for translation validation. `values` holds the inputs by ArrayId of derived.diagram; on return every
/// array in memory.
struct PartitionSizes {
    std::vector<std::int64_t> group, stream;
};
void evaluate(const Derived& derived, const Extents& extents, const PartitionSizes& sizes, Values& values);

}  // namespace napkin
