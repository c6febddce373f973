#pragma once
// The plan from the model: for every kernel the group and stream sizes with the least predicted time whose tiles fit
// the core's memory. A search over the closed form; nothing is run.
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

/// What tells the candidates of one kernel apart; all else of a schedule follows from it, or is by hand.
struct KernelCandidate {
    std::string kernel;
    VectorUnit unit;  ///< with the share of an SM that a block has
    std::int64_t warps = 0, split = 1;
    AxisId vector_axis = -1, mma_m_axis = -1;
    int panel_vectors = 1;
    std::map<AxisId, std::int64_t> group, stream;
    bool runs_ahead = false;  ///< some of its statements, of the loop that they are in
    AxisId cluster_axis = -1;
    std::int64_t cluster = 1;
    bool uses_stream_k = false;
    friend bool operator==(const KernelCandidate&, const KernelCandidate&) = default;
};
KernelCandidate candidate_of(const ScheduledKernel& kernel);

class KernelTimes;
class Estimates;

/// The kernels of a form as they are planned.
struct TilesToPlan {
    TileProgram program;
    std::vector<std::string> texts = {};  ///< text_of each kernel; of what asks no ratings, none
};

/// Those of a form and of what cuts of it make, for all who plan it: any number of threads may ask.
class KnownTiles {
public:
    /// The cut is told from all others by its numbers.
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
    bool blocks_by_user = false;  ///< of a core: its number is that machine's
    int producer_warps = 0;       ///< beside them, which ask for the copies of operands
    ProductOrder products = ProductOrder::in_turn;
    std::vector<std::size_t> only = {};  ///< the kernels of the form that are planned, in order; none: all
    /// of every kernel's stream, where they are settled and not by hand
    std::vector<std::optional<Choice>> parts = {};
    /// schedules as to_string prints them, or parts of them: what they say is by hand
    std::shared_ptr<const Source> file = {};
    bool quick = false;  ///< the time alone, for comparing forms: a quarter of the schedules, and no reasons
    Completion completion = Completion::whole;
    /// Those of the form, where the caller has them.
    std::shared_ptr<const TilesToPlan> tiles = {};
    /// Else where they are kept for all plans of one form with the same choices by hand, and the cut of it that is
    /// planned.
    std::shared_ptr<KnownTiles> known_tiles = {};
    std::vector<std::int64_t> cut = {};
    /// What is found out of candidates, kept between calls that have the machine and all that is by hand in common;
    /// kernels of several forms are told apart by text_of.
    std::shared_ptr<Estimates> ratings = {};
    /// Not taken where a kernel has any other candidate: who compiles it refuses it.
    std::vector<KernelCandidate> refused = {};
    /// Seconds that a kernel takes without its stream in parts, or about as long: parts that take as long are not
    /// planned to their end.
    double enough = std::numeric_limits<double>::infinity();
    /// tiles that do not fit the core's memory at any size are an error; else the smallest are taken, and the reason
    /// says so
    bool strict = false;
};

/// Chooses every degree of freedom; what the diagram's schedule and `by_user` fix is kept (the latter first) where it
/// breaks no rule. Pre: `extents` binds derived.diagram. Errors: those of parse_schedule_file, checked_overrides and
/// schedule_overrides, broken-schedule (the rule that a field by hand breaks), and memory-exceeded (M, the core's
/// memory, the nearest size that fits).
Result<Plan> choose_plan(const Derived& derived, const Extents& extents, const Machine& machine,
                         const std::vector<ScheduleItem>& by_user = {}, const PlanOptions& options = {});

/// The tile programs of the form's kernels, cut by the subloops that its schedule or the file names, before sizes stand
/// in indices. Errors: those of parse_schedule_file.
Result<std::vector<TileKernel>> tiles_in_letters(const Derived& derived, const std::shared_ptr<const Source>& file);
/// The tile program that is planned, with the subloops that the items name: statements have their names when these are
/// there.
TileProgram tiles_of(const Derived& derived, const Extents& extents, const std::vector<ScheduleItem>& items);

/// With no axis cut, for text_of.
SizedProgram with_whole_axes(TileProgram program, const Extents& extents);
/// All that a kernel's plan follows from beside the machine and what is by hand: its tile program as text, the extents,
/// and which of its axes repeat work where they are grouped. Pre: no axis is cut.
std::string text_of(const SizedProgram& program, std::size_t k, const Kernel& kernel);

/// The time alone, for comparing forms, from a quarter of the schedules; infinite where a choice by hand breaks a rule.
/// Not less than `enough` once the kernels' times, with what nothing can beat of those that are not simulated
/// (cost/compulsory.hpp), come to that. Alternatives share many kernels, of which `known` remembers the times; any
/// number of threads may ask with one `known`. Of what is by hand, which is to be legal for the form, the lines of
/// single kernels are not looked at.
double estimated_seconds(const Derived& derived, const Extents& extents, const Machine& machine, KernelTimes& known,
                         double enough, const std::vector<ScheduleItem>& by_user = {});

}  // namespace napkin
