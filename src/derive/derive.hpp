#pragma once
// The calculus: a diagram becomes kernels of streamed loops. Pure; symbolic in all sizes.
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "derive/derived.hpp"
#include "diagram/evaluate.hpp"
#include "support/result.hpp"

namespace napkin {

struct DeriveOptions {
    Form form = Form::unscaled;
    bool fuse = true;  ///< false: every equation is a kernel of its own
    Rewriting rewriting;
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

/// The same derivation rewritten otherwise; none where that makes no difference, or where its kernels are given.
std::optional<Derived> rewritten(const Derived& derived, const Rewriting& rewriting);

/// Runs the derived form in double precision, kernel by kernel, with the given group and stream sizes by AxisId (0: the
/// whole axis). This is the meaning of a Derived, for translation validation. `values` holds the inputs by ArrayId of
/// derived.diagram, and on return every array in memory.
struct PartitionSizes {
    std::vector<std::int64_t> group, stream;
};
void evaluate(const Derived& derived, const Extents& extents, const PartitionSizes& sizes, Values& values);

}  // namespace napkin
