#pragma once
// The schedules among which the search of one kernel chooses: each is made of a shape and of sizes, and completed by
// rule.
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "plan/axes.hpp"
#include "plan/choose.hpp"
#include "plan/overrides.hpp"

namespace napkin {

/// How threads go over the points of a kernel's tiles, whatever the tiles' sizes: in panels of vectors along an axis,
/// or as a matrix unit does.
struct TilingStrategy {
    VectorAxis axis;
    int vectors = 1;
    AxisId tensor = -1;  ///< along which warps share the rows of the matrix unit's tiles; -1: it is not used
    /// of a matrix unit's tiles, where a group has one value of every other axis, or the tensor axis itself: of all
    /// others; -1: all sizes are open
    AxisId columns = -1;
    /// of a stream, before any is chosen: as long as leaves a matrix unit's tiles the registers and the memory that
    /// they need
    std::int64_t chunk = 128;
    /// of a stream whose chunks are single values, along which a matrix unit's tiles would be wide otherwise; -1:
    /// chunks are open
    AxisId single = -1;
};

/// One size to be chosen: of a group or of a chunk.
struct SearchedSize {
    AxisId axis = -1;
    bool stream = false;
    std::vector<std::int64_t> sizes;  ///< candidates, ascending
    bool by_user = false;
};

/// An index into the candidates of each size.
using Point = std::vector<std::size_t>;

/// Makes the schedules of one kernel. What is by hand is in each of them.
class CandidateSchedules {
public:
    /// The references outlive it. Pre: `model` is of the kernel and of the machine that runs it; `given` is of the
    /// statements, by a file.
    CandidateSchedules(const std::shared_ptr<const TileProgram>& program, std::size_t kernel, const Simulator& model,
                       const Overrides& hand, const PlanOptions& options, KernelSchedule given);

    /// The ways to fill vectors, never none, with panels of `vectors`, or as many as by hand.
    [[nodiscard]] std::vector<VectorAxis> vectors() const;
    [[nodiscard]] TilingStrategy in_panels(const VectorAxis& axis, int vectors) const;
    /// The ways to run on a matrix unit: one for every grouped axis of which its products may take their rows.
    [[nodiscard]] std::vector<TilingStrategy> on_tensor_cores() const;
    /// The error of an axis by hand for the matrix unit where on_tensor_cores has none, if it is said of this kernel.
    [[nodiscard]] std::optional<Diagnostic> why_no_mma() const;

    /// The sizes of groups and chunks that the shape leaves open, each with its candidates, without those of axes whose
    /// grouping repeats work.
    [[nodiscard]] std::vector<SearchedSize> sizes(const TilingStrategy& shape) const;
    /// Those of axes whose grouping repeats work.
    [[nodiscard]] std::vector<SearchedSize> repeating_sizes(const TilingStrategy& shape) const;

    /// Sizes on which shapes are compared before the sizes are known; those by hand are what they are.
    [[nodiscard]] KernelSchedule ordinary(const TilingStrategy& shape) const;
    [[nodiscard]] KernelSchedule at_sizes(const TilingStrategy& shape, const std::vector<SearchedSize>& sizes,
                                          const Point& point) const;
    [[nodiscard]] ScheduledKernel completed(KernelSchedule schedule, Completion completion = Completion::for_estimate) const;

    [[nodiscard]] const VectorUnit& unit() const { return unit_; }
    /// By hand, or all that the machine has.
    [[nodiscard]] std::int64_t threads() const { return threads_; }

private:
    [[nodiscard]] KernelSchedule of_shape(const TilingStrategy& shape) const;
    [[nodiscard]] TilingStrategy on_tensor_cores(AxisId axis) const;
    [[nodiscard]] bool find_columns(TilingStrategy& shape) const;
    [[nodiscard]] bool runs_there(const TilingStrategy& shape) const;
    [[nodiscard]] bool may_have_products() const;
    [[nodiscard]] bool joins_blocks(const TilingStrategy& shape) const;
    [[nodiscard]] std::optional<SearchedSize> group_size(const TilingStrategy& shape, AxisId axis) const;
    [[nodiscard]] SearchedSize stream_size(const TilingStrategy& shape, AxisId axis) const;
    [[nodiscard]] std::vector<AxisId> streamed_axes() const;
    [[nodiscard]] std::int64_t extent(AxisId axis) const;
    [[nodiscard]] std::int64_t num_parts() const;
    [[nodiscard]] std::int64_t longest_k_block(AxisId axis) const;
    [[nodiscard]] std::int64_t panel(const TilingStrategy& shape) const;
    [[nodiscard]] std::int64_t rows_of_warps() const;
    [[nodiscard]] bool is_cut_whole(AxisId axis) const;

    const Simulator& model_;
    const Overrides& overrides_;
    const PlanOptions& options_;
    KernelSchedule given_;
    VectorUnit unit_;
    ScheduledKernel unscheduled_;
    std::int64_t threads_ = 1;
};

}  // namespace napkin
