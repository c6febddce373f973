#pragma once
// A body as a sum of separable terms, up to the laws. Products and quotients are flattened, sums are distributed over
// products, and exponentials of one base are joined. Maps of the form A(x) + B(ν) are kept together as factors until
// all that they are multiplied with is known.
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "derive/separate.hpp"
#include "derive/term.hpp"

namespace napkin {

class Splitter {
public:
    /// `wraps`: the body is an integer. Its sums are then multiplied out as they stand, which is exact modulo 2^n;
    /// nothing cancels.
    Splitter(const Stream& stream, const FactorOptions& options, bool wraps)
        : stream_(stream), options_(options), wraps_(wraps), separator_(stream) {}

    /// Σ terms, under conditions of the stream that stand around e; nullopt and `failure` where e does not separate.
    std::optional<Terms> split(const Expr& e, const Conditions& masks = {});
    /// e as a(x) + b(ν).
    std::optional<Shifted> separate(const Expr& e);
    /// The selection that a condition on a running extremum states: A(x) == M, or A(x) == M or A(x) != A(x), which
    /// holds for NaN alone.
    std::optional<Selection> selected(const Expr& condition, const Expr& nothing, const Conditions& masks) const;

    FactorFailure failure;
    std::vector<std::string> conditions;
    void note(std::string_view condition);
    std::nullopt_t fail(const std::string& reason, const Expr& term);

private:
    const Stream& stream_;
    const FactorOptions& options_;
    bool wraps_;
    std::unordered_map<Expr, std::optional<Terms>> known_;  // by node, outside of masks
    Separator separator_;

    std::optional<Terms> compute(const Expr& e, const Conditions& masks);
    std::optional<Terms> sum(const Expr& e, const Conditions& masks);
    std::optional<Terms> product(const Expr& e, const Conditions& masks);
    std::optional<Terms> multiplied(const Expr& whole, const Terms& a, const Terms& b);
    std::optional<Terms> inverse(const Expr& e, const Conditions& masks);
    std::optional<Terms> power(const Expr& whole, const Expr& base, double exponent, const Conditions& masks);
    /// It is a(x) less a running maximum of it, or the like.
    bool is_dominated(const Expr& exponent, const Conditions& masks);
    std::optional<Terms> exponential_of(const Expr& whole, const Expr& base, const Expr& exponent, const Conditions& masks);
    void lower(Term& t) const;
    std::optional<Terms> choice(const Expr& e, const Select& s, const Conditions& masks);
    std::optional<Terms> branch(const Expr& side, const Conditions& stated, const Conditions& masks);
    std::optional<Terms> wrapped(const Expr& e, const Expr& inner, const Conditions& masks);
};

}  // namespace napkin
