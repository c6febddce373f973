#pragma once
// Which axis the equations of a kernel are streamed along.
#include <map>
#include <vector>

#include "derive/build.hpp"

namespace napkin {

/// The axes that the equations reduce over, in order.
std::vector<AxisId> reduced_axes(const KernelBuilder& builder, const std::vector<ArrayId>& targets);

/// Chooses the axis under most reductions, then the fewest traversals, then one whose chunks do not overlap, then the
/// latest: what it consumes need not be kept whole.
class StreamChooser {
public:
    /// `wanted`: axes that must be streamed where they are reduced.
    StreamChooser(KernelBuilder& builder, const std::vector<AxisId>& wanted) : builder_(builder), wanted_(wanted) {}
    Gathering with_axis(const std::vector<ArrayId>& targets);

private:
    Gathering find_axis(const std::vector<ArrayId>& targets);

    KernelBuilder& builder_;
    const std::vector<AxisId>& wanted_;
    std::map<std::vector<ArrayId>, Gathering> known_;  ///< what was asked for
};

}  // namespace napkin
