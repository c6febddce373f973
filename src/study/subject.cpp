#include "study/subject.hpp"

#include <fmt/format.h>

#include <set>

#include "support/ids.hpp"
#include "support/numbers.hpp"
#include "support/ranges.hpp"
#include "support/share_out.hpp"
#include "support/text.hpp"
#include "syntax/parse.hpp"
#include "syntax/parser.hpp"

namespace napkin {
namespace {
bool is_one_of(const std::string& code, std::initializer_list<std::string_view> codes) { return contains(codes, code); }

Diagnostic too_large_for_memory(const CostSummary& figures) {
    return Diagnostic{
        .code = "memory-exceeded",
        .message = fmt::format("the arrays take {}", bytes_text(figures.footprint_bytes)),
        .expected = fmt::format("at most {}, the memory of {}", bytes_text(figures.memory_bytes), figures.machine),
        .hint = "smaller sizes with --set"};
}

Result<Outcome> cost(const Subject& subject, const AxisSizes& sizes) {
    CostQuery query = subject.query;
    for (const auto& [axis, size] : sizes)
        if (subject.has(axis) && !subject.fixed.contains(axis)) query.pipeline.sizes[axis] = size;
    auto figures = cost_summary(query);
    Outcome outcome;
    if (figures) {
        if (figures->footprint_bytes > figures->memory_bytes) {
            outcome.why = too_large_for_memory(*figures);
        } else {
            outcome.figures = std::move(figures).value();
        }
        return outcome;
    }
    outcome.why = figures.errors().front();
    if (outcome.has_no_sizes() || is_one_of(outcome.why.code, {"memory-exceeded", "bad-cluster", "bad-devices"}))
        return outcome;
    return figures.errors();
}

/// Axes whose entry in `sizes` of the text names them together.
void tie_of_text(const std::vector<AstSize>& entries, std::vector<std::vector<std::string>>& ties) {
    for (const AstSize& entry : entries) {
        auto tie = mapped<std::string>(entry.names, &AstWord::text);
        if (tie.size() > 1 && entry.value) ties.push_back(std::move(tie));
    }
}

/// The axis whose size is given as this one's.
std::optional<AxisId> same_size_as(const Axis& axis) {
    const auto symbols = axis.size ? axis.size->symbols() : std::vector<Symbol>{};
    if (symbols.size() != 1 || *axis.size != Size(symbols[0])) return std::nullopt;
    return symbols[0].axis();
}

std::vector<std::vector<std::string>> declared_ties(const Subject& subject) {
    std::vector<std::vector<std::string>> ties;
    Diagnostics ignored;  // the text was read before
    const Module module = parse_module(subject.query.source, ignored);
    tie_of_text(module.sizes, ties);
    for (const AstDefinition& definition : module.definitions)
        if (definition.name.text == subject.diagram.name) tie_of_text(definition.sizes, ties);
    for (const Axis& axis : subject.diagram.axes)
        if (const auto other = same_size_as(axis)) ties.push_back({axis.name, subject.diagram.axis(*other).name});
    return ties;
}

std::set<AxisId> used_axes(const Diagram& diagram) {
    std::set<AxisId> used;
    for (const Array& array : diagram.arrays) used.insert(array.axes.begin(), array.axes.end());
    for (const Equation& equation : diagram.equations)
        used.insert(equation.reduce_axes.begin(), equation.reduce_axes.end());
    return used;
}

}  // namespace

Result<std::vector<Subject>> make_subjects(std::vector<Subject> subjects, const AxisSizes& sizes) {
    std::vector<std::string> axes;
    for (Subject& subject : subjects) {
        const PipelineOptions& options = subject.query.pipeline;
        auto diagram = parse_diagram(subject.query.source, {options.diagram, options.schedule});
        if (!diagram) return diagram.errors();
        subject.diagram = std::move(diagram).value();
        for (const Axis& axis : subject.diagram.axes) axes.push_back(axis.name);
    }
    for (const auto& [axis, size] : sizes) {
        if (contains(axes, axis)) continue;
        sort_unique(axes);
        return Diagnostic{.code = "unknown-axis",
                          .message = fmt::format("a size is given for {}, but {} has no such axis", axis,
                                                 subjects.front().diagram.name),
                          .expected = fmt::format("one of {}", join(axes, ", ")),
                          .hint = did_you_mean(axis, axes)};
    }
    for (Subject& subject : subjects) {
        for (const auto& [axis, size] : sizes)
            if (subject.has(axis) && !subject.fixed.contains(axis)) subject.query.pipeline.sizes[axis] = size;
        for (Axis& axis : subject.diagram.axes) {
            const auto& given = subject.query.pipeline.sizes;
            if (const auto size = given.find(axis.name); size != given.end()) axis.size = Size(size->second);
        }
    }
    return subjects;
}

bool Outcome::is_planned() const { return figures && figures->no_plan.empty(); }
bool Outcome::has_no_sizes() const { return is_one_of(why.code, {"size-overflow", "bad-size", "index-out-of-range"}); }

Result<std::vector<Outcome>> outcomes_at(const std::vector<Subject>& subjects, const AxisSizes& sizes) {
    std::vector<std::optional<Result<Outcome>>> costs(subjects.size());
    share_out(subjects.size(), [&](std::size_t i) { costs[i] = cost(subjects[i], sizes); });
    std::vector<Outcome> outcomes;
    for (std::optional<Result<Outcome>>& found : costs) {
        if (!found->ok()) return found->errors();
        outcomes.push_back(std::move(*found).value());
    }
    return outcomes;
}

std::string_view name(Criterion criterion) {
    constexpr std::string_view names[] = {"time", "energy", "price"};
    return names[at(criterion)];
}

std::optional<double> value(const CostSummary& figures, Criterion criterion) {
    switch (criterion) {
        case Criterion::time: return figures.seconds;
        case Criterion::energy: return figures.energy_j;
        case Criterion::price: return figures.price_usd;
    }
    return std::nullopt;
}

int best_of(const std::vector<Outcome>& outcomes, Criterion criterion) {
    constexpr double same = 1e-9;  // of the sums' rounding
    int best = nobody;
    double least = 0, most = 0;
    std::size_t known = 0;
    // An estimate is no rival of what runs.
    const bool any_planned = any_of(outcomes, [](const Outcome& o) { return o.is_planned(); });
    for (std::size_t i = 0; i < outcomes.size(); ++i) {
        const auto v = outcomes[i].figures ? value(*outcomes[i].figures, criterion) : std::nullopt;
        if (!v || (any_planned && !outcomes[i].is_planned())) continue;
        if (best == nobody || *v < least * (1 - same)) best = static_cast<int>(i), least = *v;
        most = std::max(most, *v);
        ++known;
    }
    const bool equal = known > 1 && known == outcomes.size() && most <= least * (1 + same);
    return equal ? all_equal : best;
}

Result<std::vector<TiedAxes>> tied_axes(const std::vector<Subject>& subjects) {
    std::vector<TiedAxes> groups;
    for (const Subject& subject : subjects) {
        const auto extents = bind_sizes(subject.diagram);
        if (!extents) return extents.errors();
        for (const AxisId id : used_axes(subject.diagram)) {
            const Axis& axis = subject.diagram.axis(id);
            const bool formula = axis.size && !axis.size->as_constant() && !same_size_as(axis);
            const bool seen = any_of(groups, [&](const TiedAxes& g) { return g.axes[0] == axis.name; });
            if (!formula && !seen) groups.push_back({{axis.name}, (*extents)[id]});
        }
    }
    const auto group_of = [&](const std::string& axis) {
        return find_if(groups, [&](const TiedAxes& g) { return contains(g.axes, axis); });
    };
    for (const Subject& subject : subjects) {
        for (const auto& tie : declared_ties(subject)) {
            auto to = groups.end();
            for (const std::string& axis : tie) to = std::min(to, group_of(axis));
            for (const std::string& axis : tie) {
                const auto from = group_of(axis);
                if (from == groups.end() || from == to || from->size != to->size) continue;
                append(to->axes, from->axes);
                groups.erase(from);
            }
        }
    }
    return groups;
}

std::string names_text(const std::vector<std::string>& axes) { return join(axes, " = "); }

std::string sizes_text(const std::vector<TiedAxes>& tied) {
    std::vector<std::string> parts;
    for (const TiedAxes& group : tied) parts.push_back(fmt::format("{} = {}", names_text(group.axes), group.size));
    return join(parts, ", ");
}

}  // namespace napkin
