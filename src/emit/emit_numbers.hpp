#pragma once
// Numbers in a kernel's text that follow from sizes. Where sizes are arguments of the launch, these numbers are, too:
// the text then serves all sizes for which nothing else in it differs. Else they are literals.
#include <string>
#include <vector>

#include "lower/size_formulas.hpp"

namespace napkin::writers {

class LaunchNumbers {
public:
    struct Number {
        std::string what;  ///< tells it from the kernel's other numbers, whatever its value
        std::string name;
        lower::LaunchNumber of_launch;
    };
    LaunchNumbers(std::vector<AxisId> axes, bool is_double) : axes_(std::move(axes)), is_double_(is_double) {}

    [[nodiscard]] bool vary_with(AxisId axis) const;
    /// Whether sizes on which the expression depends are arguments.
    [[nodiscard]] bool vary_with(const Expr& e) const;
    /// The name of the number, which is an argument from now on. It ends in an underscore, as no name of a diagram
    /// does.
    std::string whole(const std::string& what, const Expr& formula);
    std::string real(const std::string& what, const Expr& formula);
    [[nodiscard]] const std::vector<Number>& all() const { return numbers_; }

private:
    std::string add(Number number, std::string name);

    std::vector<AxisId> axes_;
    bool is_double_;
    std::vector<Number> numbers_;
};

}  // namespace napkin::writers
