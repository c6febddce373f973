#include "cost/compiled_size.hpp"

#include <cmath>

#include "support/ranges.hpp"
#include "support/result.hpp"

namespace napkin {

CompiledSize::CompiledSize(const Size& size, const std::vector<Symbol>& symbols) {
    for (const auto& [monomial, coefficient] : size.terms()) {
        Term term{coefficient.to_double(), {}};
        for (const auto& [symbol, exponent] : monomial) {
            const auto at = find(symbols, symbol);
            if (at != symbols.end()) {
                term.factors.push_back({static_cast<std::size_t>(at - symbols.begin()), exponent.to_double()});
                continue;
            }
            const auto number = Size(symbol, exponent).evaluate([](Symbol) { return std::nullopt; });
            internal_check(number.has_value(), "a size with a symbol that has no number");
            term.coefficient *= *number;
        }
        terms_.push_back(std::move(term));
    }
}

double CompiledSize::operator()(const std::vector<double>& values) const {
    double sum = 0;
    for (const Term& term : terms_) {
        double product = term.coefficient;
        for (const Factor& factor : term.factors) {
            const double base = values[factor.slot];
            if (factor.exponent == 1)
                product *= base;
            else if (factor.exponent == -1)
                product /= base;
            else
                product *= std::pow(base, factor.exponent);
        }
        sum += product;
    }
    return sum;
}

}  // namespace napkin
