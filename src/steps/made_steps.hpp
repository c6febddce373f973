#pragma once
// A kernel's steps for one choice of sizes, with the time that they take.
#include <map>
#include <set>
#include <vector>

#include "plan/overrides.hpp"
#include "steps/open_sizes.hpp"
#include "steps/steps.hpp"

namespace napkin {

/// What follows from the axes that are cut, whatever the sizes are.
struct StepStructure {
    std::set<AxisId> cut;
    TileKernel in_parts;
    std::vector<StatementWork> work;
    Assigned assigned;
};
/// A kernel, what is fixed of it, and its structures by the axes that are cut: there are few for many sizes.
struct StepSubject {
    const Kernel& kernel;
    const TileKernel& expanded;
    const std::vector<ScheduleItem>& items;
    std::vector<StatementWork> work;
    std::map<std::set<AxisId>, StepStructure> structures;
};
/// Everything of one choice of sizes but what is told of it.
struct MadeSteps {
    StepContext context;
    StepChoices choices;
    const StepStructure* structure = nullptr;
    Assigned assigned;
    KernelSteps steps;
    double stream_clocks = 0;  ///< of a group; 0: no chart says
    [[nodiscard]] bool spills() const { return steps.registers.total() > steps.registers.limit; }
};

/// More memory or more threads than there are.
bool takes_too_much(const std::vector<Diagnostic>& errors);

/// Rows that all threads of a warpgroup take at a time. Where a warp has an instruction to itself, all warps have their
/// own rows; one that a single thread sets going is the warpgroup's.
std::int64_t rows_of_instruction(const Instruction& i, std::int64_t threads);

/// Makes steps. Errors of all: those of the steps.
class StepMaker {
public:
    StepMaker(const Diagram& diagram, const Extents& extents, const Machine& machine)
        : diagram_(diagram), extents_(extents), machine_(machine) {}

    /// With its tables, before any order of issue is tried.
    Result<MadeSteps> configured(StepSubject& subject, const StepChoices& choices, const TileSizes& sizes) const;
    /// In its order of issue, with the time that this takes.
    static void timed(const StepSubject& subject, MadeSteps& made);
    /// With sizes that are open made smaller until they fit and spill nothing; the largest that fit where all spill.
    Result<MadeSteps> made_smaller(StepSubject& subject, const StepChoices& choices, TileSizes sizes,
                                   bool is_timed = true) const;
    /// Where sizes that are open break their divisors, the nearest that keep them, else the least, where these fit.
    Result<MadeSteps> made_keeping_divisors(StepSubject& subject, const StepChoices& choices, const TileSizes& sizes) const;
    /// With the axis whose values warpgroups share, and how many each has: a row for every thread where the group has
    /// as many.
    [[nodiscard]] StepContext context_of(const StepSubject& subject, const StepChoices& choices, const TileSizes& sizes) const;

private:
    void share_among_warpgroups(StepContext& context, const StepChoices& choices, const Kernel& kernel,
                                const std::vector<StatementWork>& work) const;
    /// Errors: those of precision and names.
    Result<const StepStructure*> structure_of(StepSubject& subject, const StepChoices& choices) const;
    /// Sizes by hand may break their divisors where they fit and the least that keep them do not, as the model's own do
    /// then.
    Result<MadeSteps> made_with_divisors(StepSubject& subject, const StepChoices& choices, const TileSizes& sizes) const;

    const Diagram& diagram_;
    const Extents& extents_;
    const Machine& machine_;
};

}  // namespace napkin
