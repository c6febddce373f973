#pragma once
// Several things that are costed beside each other, at sizes that they share: the sides of a comparison, or one diagram
// on many machines.
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "study/cost_study.hpp"

namespace napkin {

using AxisSizes = std::map<std::string, std::int64_t>;

struct Subject {
    std::string label;
    CostQuery query;
    Diagram diagram;  ///< with the query's sizes in place of the text's
    AxisSizes fixed;  ///< sizes that belong to this subject: no sweep changes them
    [[nodiscard]] bool has(const std::string& axis) const { return diagram.find_axis(axis).has_value(); }
};

/// Reads each query's text. A size of `sizes` goes to the subjects that have the axis. Errors: those of the text;
/// unknown-axis where no subject has it.
Result<std::vector<Subject>> make_subjects(std::vector<Subject> subjects, const AxisSizes& sizes);

/// What one subject costs at one point, or why it cannot run there.
struct Outcome {
    std::optional<CostSummary> figures;
    Diagnostic why;
    [[nodiscard]] bool is_planned() const;  ///< its time is a plan's
    /// The sizes make no sense for the diagram, whatever the machine.
    [[nodiscard]] bool has_no_sizes() const;
};

/// All subjects with these sizes in place of their own. A subject that does not fit its machine, or whose diagram does
/// not allow the sizes, has an outcome without figures. Errors: all others (missing-size, unknown-machine, …).
Result<std::vector<Outcome>> outcomes_at(const std::vector<Subject>& subjects, const AxisSizes& sizes);

enum class Criterion : std::uint8_t { time, energy, price };
inline constexpr Criterion all_criteria[] = {Criterion::time, Criterion::energy, Criterion::price};
std::string_view name(Criterion criterion);
/// Empty where the machine's file lacks the figure.
std::optional<double> value(const CostSummary& figures, Criterion criterion);
/// Who is best: a position, or one of these.
inline constexpr int nobody = -1, all_equal = -2;
/// The position with the least, the first where several are equal; all_equal, or nobody.
int best_of(const std::vector<Outcome>& outcomes, Criterion criterion);

/// Axes that the texts give one size ("q = x = 4096", "x = n") and that have it: they are moved together. Every axis
/// that something runs over is in one group; those whose size is a formula of others are in none. Errors: those of
/// bind_sizes.
struct TiedAxes {
    std::vector<std::string> axes;
    std::int64_t size = 1;
};
Result<std::vector<TiedAxes>> tied_axes(const std::vector<Subject>& subjects);

std::string names_text(const std::vector<std::string>& axes);  ///< "q = x"
std::string sizes_text(const std::vector<TiedAxes>& tied);     ///< "q = x = 4096, k = d = 128"
}  // namespace napkin
