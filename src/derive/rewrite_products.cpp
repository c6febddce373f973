// Products that read arrays made for them, over axes that the text has not (diagram/hidden_axes.hpp).
#include <fmt/format.h>

#include <functional>

#include "derive/normal_form.hpp"
#include "derive/replay.hpp"
#include "diagram/factor_conditions.hpp"
#include "diagram/grouped_rows.hpp"
#include "diagram/packed_terms.hpp"
#include "diagram/padded_reads.hpp"
#include "diagram/phases.hpp"
#include "diagram/unrolled_windows.hpp"
#include "support/text.hpp"

namespace napkin {
namespace {

/// What the rewrite is called, what it replaces, why it holds, and what it does, behind the names of new arrays.
struct NewArrays {
    const char *rule, *instead_of, *because, *what;
};

void rewrite(Diagram& diagram, Diagram rewritten, const NewArrays& made, std::vector<DerivationStep>& steps) {
    const std::vector<Equation> before = diagram.equations;
    const std::size_t num_arrays = diagram.arrays.size();
    diagram = std::move(rewritten);
    if (diagram.arrays.size() == num_arrays) return;
    std::vector<std::string> names;
    for (std::size_t i = num_arrays; i < diagram.arrays.size(); ++i)
        names.push_back(diagram.array(ArrayId::of(i)).name);
    steps.push_back({made.rule, made.instead_of, made.because, fmt::format("{}: {}", fmt::join(names, ", "), made.what),
                     before.front().range, edit_between(before, num_arrays, diagram)});
}

}  // namespace

void split_conditions(Diagram& diagram, std::vector<DerivationStep>& steps) {
    Diagram split = with_conditions_at_factors(diagram);
    for (std::size_t i = 0; i < split.equations.size(); ++i) {
        const Equation &before = diagram.equations[i], &after = split.equations[i];
        if (after == before) continue;
        Edit edit;
        edit.equations.push_back({before, {after}});
        steps.push_back({"split condition", "condition around a product",
                         "a product with a factor 0 is 0, and the others are finite",
                         fmt::format("{} has conditions at its factors", diagram.array(before.target).name),
                         before.range, std::move(edit)});
    }
    diagram = std::move(split);
}

void pad_reads(Diagram& diagram, std::vector<DerivationStep>& steps) {
    rewrite(diagram, with_padded_reads(diagram),
            {"pad reads", "read in place", "an array with zeros around it is 0 where it has no value",
             "zeros around the values"},
            steps);
}

void split_phases(Diagram& diagram, std::vector<DerivationStep>& steps) {
    rewrite(diagram, with_phases(diagram),
            {"split phases", "condition on a rest", "terms whose condition does not hold are 0",
             "places and taps of one phase beside each other"},
            steps);
}

void unroll_windows(Diagram& diagram, std::vector<DerivationStep>& steps) {
    rewrite(diagram, with_unrolled_windows(diagram),
            {"unroll windows", "read in place", "an array may hold what is read of another, in the order of the reads",
             "values of each window beside each other"},
            steps);
}

void group_rows(Diagram& diagram, std::vector<DerivationStep>& steps) {
    rewrite(diagram, with_grouped_rows(diagram),
            {"group rows", "read in place", "the rows of a product may stand in any order",
             "rows of one matrix beside each other"},
            steps);
}

void pack_terms(Diagram& diagram, std::vector<DerivationStep>& steps) {
    rewrite(diagram, with_packed_terms(diagram),
            {"pack terms", "look at every term", "the terms of a sum may stand in any order, and others are 0",
             "terms of one place beside each other"},
            steps);
}

}  // namespace napkin
