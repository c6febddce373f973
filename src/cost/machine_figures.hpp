#pragma once
// Everything that a report says of a kernel on a machine: levels, units, what binds, bounds. machine_report.cpp prints
// it.
#include <optional>
#include <string>
#include <vector>

#include "cost/bounds.hpp"
#include "cost/multilevel.hpp"
#include "cost/on_machine.hpp"

namespace napkin {

/// One statement of a kernel's loop on one unit, for one chunk and one row (paper Table 3).
struct IterationRow {
    std::string statement, unit;
    DType type = DType::f32;
    double operations = 0;  ///< FLOPs where the unit multiplies and adds
    double per_clock = 0;   ///< of the same
    [[nodiscard]] double clocks() const { return operations / per_clock; }
};
std::vector<IterationRow> iteration_rows(const Derived& derived, const Kernel& kernel, const Extents& extents,
                                         const Machine& machine, const KernelOnMachine& cost);

/// How the clocks of tensor cores and special function units (SFUs) overlap in one chunk (paper.md §7). Here `overhead`
/// is what a row of special functions costs beside its operations, as a share of them.
struct Overlap {
    double tensor_clocks = 0, special_clocks = 0;
    double between_groups = 0;  ///< clocks, two groups of rows in turn: the longer of the two
    double within_group = 0;    ///< one group: its special functions run beside the longest contraction, the rest waits
};
Overlap overlap(const std::vector<IterationRow>& rows, double overhead);

/// What each size of a link between cores saves: (Ḣ⁻¹(h→c) − Ḣ⁻¹(x→c))·(H*(a, M_c) − H*(a, N·M_c)) (Theorem 3). It
/// holds where nothing caches between the pipe and the core.
struct LinkSaving {
    std::string link, from;
    struct Choice {
        LinkChoice link;
        double alone_bytes = 0, joined_bytes = 0;  ///< H*(a, M_c) and H*(a, N·M_c)
        double saved_s = 0;
    };
    std::vector<Choice> choices;
    std::int64_t best = 1;  ///< 1: no size saves anything
    double relieved_s = 0;  ///< what the pipe takes for all that goes through it
    bool binds = false;     ///< that pipe is what the kernel waits for
    /// What the best size can save of the kernel's time: nothing where something else binds, and never more than the
    /// pipe takes.
    [[nodiscard]] double advised_s() const;
};
/// Where H* has no closed form, the numeric optimum stands for it.
std::vector<LinkSaving> link_savings(const Derived& derived, const Kernel& kernel, const Extents& extents,
                                     const Machine& machine, const KernelOnMachine& cost);

/// FLOP a byte at which the units take as long as the level's pipes, for the mix of operations at hand.
double ridge_flop_per_byte(const KernelOnMachine& cost, const LevelLoad& load);

struct MachineFigures {
    const Machine* machine = nullptr;
    const KernelOnMachine* cost = nullptr;
    MultiLevel levels;  ///< the closed form over all levels
    Bounds limits;
    std::vector<IterationRow> iteration;
    std::vector<LinkSaving> links;
    std::optional<double> fewest_values;  ///< of the numeric optimum at M; none where M holds no tile
    std::string why_fewest_is_a_bound;    ///< why_upper_bound() of it
    double special_overhead = 0;          ///< of overlap()
};

}  // namespace napkin
