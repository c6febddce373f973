#pragma once
// An expression as a part of the stream plus a part of the running results: A(x) + B(ν), through sums, products with
// what is fixed, logarithms of products, and masks that make a side infinite.
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "derive/term.hpp"

namespace napkin {

class Separator {
public:
    explicit Separator(const Stream& stream) : stream_(stream) {}

    /// nullopt, and failure(), where e is no such sum.
    std::optional<Shifted> separate(const Expr& e);
    [[nodiscard]] const FactorFailure& failure() const { return failure_; }

private:
    const Stream& stream_;
    FactorFailure failure_;
    std::unordered_map<Expr, std::pair<std::optional<Shifted>, FactorFailure>> separated_;  // by node

    std::nullopt_t fail(const std::string& reason, const Expr& term);
    std::optional<Shifted> compute_separate(const Expr& e);
    std::optional<Shifted> separate_log(const Expr& e);
    std::optional<Shifted> separate_product(const Expr& e, const Binary& b);
};

/// Where the definition adds a running result to one part of the stream and then another part, (A − M) + V, the
/// separated form adds the parts first: A + V is rounded as what is as large as A. A that was computed has an error
/// like that anyway; A that is exact has none, and A − M may be far less. Gives the sum with such an A; null: there is
/// none.
Expr part_met_early(const Expr& e, const Stream& stream);
/// Why nothing is separated there.
inline constexpr std::string_view met_early =
    "a running result meets a part of the stream before another part does, and what is left of both may be far less "
    "than they are";

}  // namespace napkin
