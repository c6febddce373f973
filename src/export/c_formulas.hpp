#pragma once
// Formulas of sizes as C. A part that occurs in several formulas, or is long, is a variable of its own.
#include <functional>
#include <string>
#include <unordered_map>

#include "lower/size_formulas.hpp"

namespace napkin::c {

class Formulas {
public:
    /// `size` names the variable that holds an axis' size, and `line` takes each declaration.
    Formulas(std::function<std::string(AxisId)> size, std::function<void(const std::string&)> line)
        : size_(std::move(size)), line_(std::move(line)) {}

    /// An int64_t, which needs no brackets.
    std::string whole(const Expr& formula);
    /// A double. Throws InternalError where C has no function for it: of_c says which have one.
    std::string real(const Expr& formula);
    /// The number as the 64 bits that a launch passes.
    std::string bits(const lower::LaunchNumber& number);

private:
    std::function<std::string(AxisId)> size_;
    std::function<void(const std::string&)> line_;
    std::unordered_map<Expr, std::string> known_;
};

/// Whether C computes the formula of real numbers.
bool of_c(const Expr& formula);

}  // namespace napkin::c
