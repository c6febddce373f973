#include "derive/law.hpp"

#include <array>
#include <limits>

#include "support/ranges.hpp"
#include "support/result.hpp"

namespace napkin {

const std::vector<Law>& laws() {
    using enum ReduceOp;
    static const std::vector<Law> table{
        {"a factor leaves a sum", sum, Action::multiply, 0, 0, "×", "1/a", "sum distributes over ×"},
        {"an exponential follows a sum", sum, Action::exponential, 0, 0, "× b^a", "× b^-a",
         "b^(A(x) + B(ν)) is kept as b^(A(x) − R) and corrected by b^(R′ − R), R being a running maximum that is at "
         "least A(x) "
         "wherever the factor counts; b^(B(ν) + R) waits for the end; where a division by the sum of n such factors "
         "waits as well and "
         "what they weight may be as large as its type allows, they are taken as 1/n of that, so that no partial sum "
         "is larger than the "
         "mean's own terms"},
        {"a centre follows a power", sum, Action::shift, 0, 0, "A − r", "A + r",
         "a sum of A(x) + B(ν) is one of A(x) and a multiple of B(ν); its powers are moments about a running r, moved "
         "by "
         "the binomial theorem, where r is what the definition subtracts, an extremum or mean of A, or for an even "
         "power "
         "the mean of A under the absolute weights"},
        {"a choice leaves a sum", sum, Action::choose, 0, 0, "where c", "where not c",
         "a condition without the stream selects whole sums"},
        {"a selection follows a sum", sum, Action::select, 0, 0, "where A = M", "",
         "what is summed where A(x) equals its running extremum is void as soon as that moves"},
        {"a factor leaves a product", prod, Action::raise, 1, std::nullopt, "×", "1/a",
         "a factor of every one of n points is its n-th power"},
        {"a term leaves a maximum", max, Action::add, -infinity, -infinity, "+", "-a", "max distributes over +"},
        {"a term leaves a minimum", min, Action::add, infinity, infinity, "+", "-a", "min distributes over +"},
        {"a positive factor leaves a maximum", max, Action::multiply, -infinity, -infinity, "×", "1/a",
         "max distributes over × by a positive factor"},
        {"a positive factor leaves a minimum", min, Action::multiply, infinity, infinity, "×", "1/a",
         "min distributes over × by a positive factor"},
        {"a monotone function leaves a maximum", max, Action::map, -infinity, std::nullopt, "φ", "φ⁻¹",
         "a monotone function of a maximum is the maximum of its values, and of a minimum where it decreases"},
        {"a monotone function leaves a minimum", min, Action::map, infinity, std::nullopt, "φ", "φ⁻¹",
         "a monotone function of a minimum is the minimum of its values, and of a maximum where it decreases"},
        {"a selection follows a maximum", max, Action::select, -infinity, -infinity, "where A = M", "",
         "what is selected where A(x) equals its running extremum is void as soon as that moves"},
        {"a selection follows a minimum", min, Action::select, infinity, infinity, "where A = M", "",
         "what is selected where A(x) equals its running extremum is void as soon as that moves"},
    };
    return table;
}

const Law& law(ReduceOp plus, Action action) {
    const auto row = find_if(laws(), [&](const Law& l) { return l.plus == plus && l.action == action; });
    internal_check(row != laws().end(), "no law for this reduction and action");
    return *row;
}

}  // namespace napkin
