#include "cost/optimum_text.hpp"

#include <fmt/format.h>

#include "diagram/symbol_names.hpp"

namespace napkin {
namespace {

/// One term with its negative powers under a fraction bar: "M/(2·d)".
std::string as_fraction(const Size& size, const SymbolNames& names) {
    const auto& [monomial, coefficient] = *size.terms().begin();
    Size above = coefficient.numerator(), below = coefficient.denominator();
    std::size_t factors_below = below == Size(1) ? 0 : 1;
    for (const auto& [symbol, exponent] : monomial) {
        if (exponent > Rational(0)) {
            above *= Size(symbol, exponent);
        } else {
            below *= Size(symbol, Rational(0) - exponent);
            ++factors_below;
        }
    }
    const std::string text = to_string(below, names);
    if (factors_below == 0) return to_string(above, names);
    return to_string(above, names) + (factors_below == 1 ? "/" + text : "/(" + text + ")");
}

}  // namespace

SymbolNames names_in(const Optimum& optimum, const Diagram& diagram) {
    return [sums = optimum.sums, of_diagram = symbol_names(diagram)](Symbol symbol) {
        if (symbol.kind != SymbolKind::sum) return of_diagram(symbol);
        return "(" + to_string(sums[at(static_cast<int>(symbol.id))], of_diagram) + ")";
    };
}

std::vector<std::string> reached_at(const Optimum& optimum, const Diagram& diagram) {
    const SymbolNames names = names_in(optimum, diagram);
    std::vector<std::string> texts;
    for (const GroupEquation& group : optimum.groups)
        if (!group.any)
            texts.push_back(to_string(Size::term(group.product), names) + " = " + as_fraction(group.value, names) +
                            (group.whole ? ", its whole axis" : ""));
    const std::string m = names(memory_symbol);
    bool first = true;
    for (const OptimumCondition& condition : optimum.where) {
        const std::string text = condition.far_below ? m + " ≫ " + as_fraction(condition.small, names)
                                                     : to_string(condition.small, names) + " ≤ " + m;
        texts.push_back((first ? "where " : "and ") + text);
        first = false;
    }
    return texts;
}

std::string why_numeric(const Optimum& optimum, const Diagram& diagram) {
    const SymbolNames names = symbol_names(diagram);
    switch (optimum.obstacle) {
        case Obstacle::none: return "";
        case Obstacle::columns: return "none of the columns of M is always the largest";
        case Obstacle::stream: return "H depends on the stream size " + names(optimum.obstacle_at);
        case Obstacle::growing: return "H grows with " + names(optimum.obstacle_at);
        case Obstacle::negative: return "a term of H is negative";
        case Obstacle::too_many: return "too many group sizes and terms";
        case Obstacle::unbalanced:
            return fmt::format("{} terms of one order in H for {} group sizes", optimum.num_terms, optimum.num_groups);
        case Obstacle::coefficient: return "a coefficient of H is not positive at these sizes";
    }
    return "";
}

}  // namespace napkin
