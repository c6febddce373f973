#pragma once
// Costs and optima with symbols by their names, for tests that say what they expect in letters: `in_letters(cost,
// diagram).transfers == letter("a") * letter("b")`. One table of names serves the whole test program; M is M.
#include "algebra/symbol.hpp"
#include "cost/optimum.hpp"
#include "cost/optimum_text.hpp"
#include "diagram/symbol_names.hpp"

namespace napkin {

inline SymbolTable& letter_table() {
    static SymbolTable table;
    return table;
}

inline Size letter(const std::string& name, Rational exponent = 1) {
    return {name == "M" ? memory_symbol : letter_table()(name), exponent};
}

inline Size by_name(const Size& size, const SymbolNames& names) {
    return size.renamed([&](Symbol s) { return s == memory_symbol ? s : letter_table()(names(s)); });
}

/// For failures' messages.
inline std::string letters_text(const Size& size) {
    return to_string(size, [](Symbol s) { return s == memory_symbol ? "M" : letter_table().names()(s); });
}

inline TiedLetters tied_letters(const Diagram& diagram, const std::map<std::string, std::string>& names) {
    TiedLetters letters;
    for (const auto& [from, to] : names)
        if (const auto a = diagram.find_axis(from), b = diagram.find_axis(to); a && b) letters[*a] = *b;
    return letters;
}

/// A symbol's number by what it is called.
inline SymbolValues values_by_name(const Diagram& diagram, const std::map<std::string, double>& values) {
    return [names = symbol_names(diagram), values](Symbol symbol) -> std::optional<double> {
        const auto found = values.find(names(symbol));
        return found == values.end() ? std::nullopt : std::optional(found->second);
    };
}

struct OptimumInLetters : Optimum {
    std::vector<std::string> at;
    std::string why_not;
};

inline OptimumInLetters in_letters(const Optimum& optimum, const Diagram& diagram) {
    const SymbolNames names = names_in(optimum, diagram);
    OptimumInLetters out{optimum, reached_at(optimum, diagram), why_numeric(optimum, diagram)};
    for (Size* size : {&out.transfers, &out.memory}) *size = by_name(*size, names);
    return out;
}

/// What is inherited is in letters; `cost` is as the model has it.
struct CostInLetters : KernelCost {
    KernelCost cost;
    Diagram diagram;
};

inline CostInLetters in_letters(const KernelCost& cost, const Diagram& diagram) {
    CostInLetters out{cost, cost, diagram};
    const SymbolNames names = symbol_names(out.diagram);
    for (Size* size : {&out.num_groups, &out.per_group, &out.transfers}) *size = by_name(*size, names);
    for (ArrayTransfers& a : out.arrays)
        for (Size* size : {&a.per_group, &a.per_launch}) *size = by_name(*size, names);
    for (MemoryColumn& column : out.memory) column.size = by_name(column.size, names);
    return out;
}

inline OptimumInLetters best_of(const CostInLetters& cost) { return in_letters(optimum(cost.cost), cost.diagram); }

}  // namespace napkin
