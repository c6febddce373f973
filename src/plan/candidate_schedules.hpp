#pragma once
// The schedules among which the search of one kernel chooses. Each is made of a tiling strategy and of sizes, and
// completed by rules.
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
/// or on the tensor cores.
struct TilingStrategy {
    VectorAxis axis;
    int vectors = 1;
    /// the axis M, along which warps share the rows of tiles on the tensor cores; -1: they are not used
    AxisId tensor = -1;
    /// axis of the columns of tensor core tiles, where a group has one value of every other axis. If it is the tensor
    /// axis, the group has one value of all others; -1: all sizes are open
    AxisId columns = -1;
    /// K block of a stream before any is chosen, so long that it leaves tensor core tiles the registers and the memory
    /// that they need
    std::int64_t chunk = 128;
    /// a stream whose K blocks are single values, along which tensor core tiles would be wide otherwise; -1: K blocks
    /// are open
    AxisId single = -1;
};

/// One size to be chosen: of a group or of a K block.
struct SearchedSize {
    AxisId axis = -1;
    bool stream = false;
    std::vector<std::int64_t> sizes;  ///< candidates, ascending
    bool by_user = false;
};

/// An index into the candidates of each size.
using Point = std::vector<std::size_t>;

/// Makes the schedules of one kernel. Each of them keeps the overrides.
class CandidateSchedules {
public:
    /// The references outlive it. Pre: `model` is of the kernel and of the machine that runs it; `given` is what a file
    /// says of the statements.
    CandidateSchedules(const std::shared_ptr<const TileProgram>& program, std::size_t kernel, const Simulator& model,
                       const Overrides& hand, const PlanOptions& options, KernelSchedule given);

    /// The ways to fill vectors, never none; in_panels has panels of `vectors`, or as many as an override says.
    [[nodiscard]] std::vector<VectorAxis> vectors() const;
    [[nodiscard]] TilingStrategy in_panels(const VectorAxis& axis, int vectors) const;
    /// The ways to run on the tensor cores: one for every grouped axis that may be the axis M of its products.
    [[nodiscard]] std::vector<TilingStrategy> on_tensor_cores() const;
    /// The error of an override of the axis M for which on_tensor_cores has nothing, if it is said of this kernel.
    [[nodiscard]] std::optional<Diagnostic> why_no_mma() const;

    /// Whether the kernel runs on the tensor cores wherever it keeps its order of additions.
    [[nodiscard]] bool keeps_tensor_cores() const { return order_ && order_->on_tensor_cores(); }

    /// The sizes of groups and K blocks that the strategy leaves open, each with its candidates. Those of axes whose
    /// grouping repeats work are left out.
    [[nodiscard]] std::vector<SearchedSize> sizes(const TilingStrategy& shape) const;
    /// The sizes of axes whose grouping repeats work.
    [[nodiscard]] std::vector<SearchedSize> repeating_sizes(const TilingStrategy& shape) const;

    /// Sizes on which strategies are compared before the sizes are known. Overridden sizes are kept.
    [[nodiscard]] KernelSchedule ordinary(const TilingStrategy& shape) const;
    [[nodiscard]] KernelSchedule at_sizes(const TilingStrategy& shape, const std::vector<SearchedSize>& sizes,
                                          const Point& point) const;
    [[nodiscard]] ScheduledKernel completed(KernelSchedule schedule, Completion completion = Completion::for_estimate) const;
    /// The same in two steps (add_atoms). What the kernel was before is lost.
    void begin(ScheduledKernel& kernel, KernelSchedule schedule) const;
    void complete(ScheduledKernel& begun, Completion completion) const;

    /// The kernel without a schedule.
    [[nodiscard]] const ScheduledKernel& without_schedule() const { return unscheduled_; }
    [[nodiscard]] const VectorUnit& unit() const { return unit_; }
    /// The override, or all that the machine has.
    [[nodiscard]] std::int64_t threads() const { return threads_; }

private:
    /// Grouping the axis repeats work. Not what the mma rows do: each tile of them multiplies anyway.
    [[nodiscard]] bool repeats(const TilingStrategy& shape, AxisId axis) const;
    [[nodiscard]] KernelSchedule of_shape(const TilingStrategy& shape) const;
    [[nodiscard]] TilingStrategy on_tensor_cores(AxisId axis) const;
    [[nodiscard]] bool find_columns(TilingStrategy& shape, ScheduledKernel& scratch) const;
    [[nodiscard]] bool runs_there(const TilingStrategy& shape, ScheduledKernel& scratch) const;
    [[nodiscard]] bool may_have_products() const;
    [[nodiscard]] bool joins_blocks(const TilingStrategy& shape) const;
    [[nodiscard]] std::optional<SearchedSize> group_size(const TilingStrategy& shape, AxisId axis) const;
    [[nodiscard]] SearchedSize stream_size(const TilingStrategy& shape, AxisId axis) const;
    [[nodiscard]] std::vector<AxisId> streamed_axes() const;
    [[nodiscard]] std::int64_t extent(AxisId axis) const;
    /// The override of the size, or that of the order which is kept; none where both leave it open.
    [[nodiscard]] std::optional<std::int64_t> fixed_size(ChoiceKind kind, AxisId axis) const;
    [[nodiscard]] std::int64_t num_parts() const;
    [[nodiscard]] std::int64_t longest_k_block(AxisId axis) const;
    [[nodiscard]] std::int64_t panel(const TilingStrategy& shape) const;
    [[nodiscard]] std::int64_t longest_tile(AxisId axis, std::int64_t length) const;
    [[nodiscard]] std::int64_t rows_of_warps() const;
    [[nodiscard]] std::int64_t columns_of_one() const;
    [[nodiscard]] bool is_cut_whole(AxisId axis) const;
    [[nodiscard]] bool keeps_vector_axis() const;

    const Simulator& model_;
    const Overrides& overrides_;
    const PlanOptions& options_;
    const ScheduledKernel* order_;  ///< the kernel whose order of additions is kept; null: it is open
    KernelSchedule given_;
    VectorUnit unit_;
    ScheduledKernel unscheduled_;
    std::int64_t threads_ = 1;
};

}  // namespace napkin
