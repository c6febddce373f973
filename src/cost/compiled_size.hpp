#pragma once
// A size expression made ready to be evaluated many times: symbols become slots of an array of numbers.
#include <vector>

#include "algebra/size.hpp"

namespace napkin {

class CompiledSize {
public:
    CompiledSize() = default;
    /// Pre: every symbol of the size is among `symbols`.
    CompiledSize(const Size& size, const std::vector<Symbol>& symbols);
    /// The value at values[i] for symbols[i].
    [[nodiscard]] double operator()(const std::vector<double>& values) const;

private:
    struct Factor {
        std::size_t slot;
        double exponent;
    };
    struct Term {
        double coefficient;
        std::vector<Factor> factors;
    };
    std::vector<Term> terms_;
};

}  // namespace napkin
