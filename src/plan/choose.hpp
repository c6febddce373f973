#pragma once
// The plan from the model. For every kernel it has the group and stream sizes with the least predicted time whose tiles
// fit the core's memory. The search is over the closed form; nothing is run.
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "derive/derived.hpp"
#include "diagram/sizes.hpp"
#include "machine/machine.hpp"
#include "plan/complete.hpp"
#include "plan/plan.hpp"
#include "support/result.hpp"
#include "tile/sizes.hpp"

namespace napkin {

/// What tells the candidates of one kernel apart. All else of a schedule follows from it, or is an override.
struct KernelCandidate {
    std::string kernel;
    VectorUnit unit;  ///< with the share of an SM that a block has
    std::int64_t warps = 0, split = 1;
    AxisId vector_axis = -1, mma_m_axis = -1;
    int panel_vectors = 1;
    std::map<AxisId, std::int64_t> group, stream;
    bool runs_ahead = false;  ///< some of its statements run ahead in their loop
    AxisId cluster_axis = -1;
    std::int64_t cluster = 1;
    bool uses_stream_k = false;
    friend bool operator==(const KernelCandidate&, const KernelCandidate&) = default;
};
KernelCandidate candidate_of(const ScheduledKernel& kernel);

class Estimates;

/// Tile programs of a form and of its cuts, for all who plan it. Any number of threads may ask.
class KnownTiles {
public:
    /// The program of a cut, which its numbers tell from all others.
    std::shared_ptr<const TileProgram> program(const std::vector<std::int64_t>& cut,
                                               const std::function<TileProgram()>& make);
    /// text_of a kernel.
    std::string text(const std::vector<std::int64_t>& cut, std::size_t kernel, const std::function<std::string()>& make);

private:
    std::mutex mutex_;
    std::map<std::vector<std::int64_t>, std::shared_ptr<const TileProgram>> programs_;
    std::map<std::pair<std::vector<std::int64_t>, std::size_t>, std::string> texts_;
};

struct PlanOptions {
    Choice warps = {};            ///< of a block of threads, where the machine is block_machine's
    bool blocks_by_user = false;  ///< the number of a core's blocks, which the machine has, is an override
    int producer_warps = 0;       ///< beside them, for the copies of operands
    ProductOrder products = ProductOrder::in_turn;
    std::optional<CtaCluster> cluster = {};  ///< of CTAs on the tensor cores, where no override has one
    std::vector<std::size_t> only = {};      ///< the kernels of the form that are planned, in order; none: all
    /// of every kernel's stream, where they are settled without an override
    std::vector<std::optional<Choice>> parts = {};
    /// schedules as to_string prints them, or parts of them; what they say is an override
    std::shared_ptr<const Source> file = {};
    bool quick = false;  ///< the time alone, for comparing forms: a quarter of the schedules, and no reasons
    Completion completion = Completion::whole;
    /// Where the tile programs are kept, for all plans of one form with the same overrides, and the cut of the form
    /// that is planned.
    std::shared_ptr<KnownTiles> known_tiles = {};
    std::vector<std::int64_t> cut = {};
    /// What is found out of candidates, kept between calls with the same machine and overrides. Kernels of several
    /// forms are told apart by text_of.
    std::shared_ptr<Estimates> ratings = {};
    /// Candidates that a compiler refuses. They are taken only where a kernel has no other.
    std::vector<KernelCandidate> refused = {};
    /// Seconds that a kernel takes without its stream in parts, or about as long. Parts that take as long are not
    /// planned to their end.
    double enough = std::numeric_limits<double>::infinity();
    /// Seconds. A kernel all of whose plans take longer by a lower bound is not planned (KernelPlan::is_bound).
    double useless = std::numeric_limits<double>::infinity();
    /// an error where no tiles fit the core's memory; else the smallest are taken, and the reason says so
    bool strict = false;
    /// The bits of a row do not depend on how many rows there are (batch_invariant.hpp).
    bool is_batch_invariant = false;
    /// Then: kernels whose order of additions the plan keeps; none: the order is open.
    std::shared_ptr<const std::vector<ScheduledKernel>> orders = {};
    /// The kernel of that name among these; null: there is none.
    [[nodiscard]] const ScheduledKernel* order_of(const std::string& kernel) const;
};

/// Chooses every degree of freedom. What `by_user` and the diagram's schedule fix, the former first, is kept where it
/// breaks no rule. Pre: `extents` binds derived.diagram. Errors: those of parse_schedule_file, checked_overrides and
/// schedule_overrides; broken-schedule (the rule that an overridden field breaks); memory-exceeded (M, the core's
/// memory, the nearest size that fits).
Result<Plan> choose_plan(const Derived& derived, const Extents& extents, const Machine& machine,
                         const std::vector<ScheduleItem>& by_user = {}, const PlanOptions& options = {});

/// The tile programs of the form's kernels, cut by the subloops that its schedule or the file names. Sizes are still
/// letters in indices. Errors: those of parse_schedule_file.
Result<std::vector<TileKernel>> tiles_in_letters(const Derived& derived, const std::shared_ptr<const Source>& file);
/// The tile program that is planned, with the subloops that the items name. Items name statements of this program.
TileProgram tiles_of(const Derived& derived, const Extents& extents, const std::vector<ScheduleItem>& items);

/// The program with no axis cut, for text_of.
SizedProgram with_whole_axes(TileProgram program, const Extents& extents);
/// All that a kernel's plan depends on besides the machine and the overrides. These are its tile program as text, the
/// extents, and which of its axes repeat work where they are grouped. Pre: no axis is cut.
std::string text_of(const SizedProgram& program, std::size_t k, const Kernel& kernel);

}  // namespace napkin
