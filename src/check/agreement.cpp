#include "check/agreement.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace napkin {
namespace {

/// Roundings of a derived form for one rounding of the definition. A running reference is subtracted and added again
/// later, and a factor is divided out and multiplied in. The number is chosen, not derived.
constexpr double slack = 16;

/// What cancels in a rewrite, such as the square of a mean in a variance, leaves rounding errors of the intermediate
/// values. They amount to a few roundings of the largest such value. Values that stand for a mask do not count, as they
/// must not cancel. Other inputs are of the size of 1, while masks are written as -1e9 and the like. So a value beyond
/// 1e6 is taken for a mask.
constexpr double roundings_left = 8, largest_that_cancels = 1e6;

Execution in_double(const Diagram& diagram, const Extents& extents) {
    Execution execution = plain_execution(diagram, extents);
    execution.working = DType::f64;
    for (auto& kept : execution.kept) kept = std::nullopt;
    return execution;
}

/// Double precision rounds to no narrower type, in the definition as in all that is compared with it.
Diagram without_casts(Diagram diagram) {
    for (Equation& equation : diagram.equations) {
        equation.body = transform(equation.body, [](const Expr& e) {
            const auto* c = as<Cast>(e);
            return c && is_float(c->type) ? cast(DType::f64, c->a) : e;
        });
    }
    return diagram;
}

bool within(const Bounded& want, double have, double allowed) {
    if (is_unbounded(want)) return true;
    if (std::isnan(have)) return std::isnan(want.value) || (want.may & may_be_nan) != 0;
    if (std::isinf(have))
        return have == want.value || (want.may & (have > 0 ? may_be_infinite : may_be_minus_infinite)) != 0;
    return std::abs(have - want.value) <= allowed;
}

}  // namespace

std::string to_string(const Disagreement& d) {
    return fmt::format("{} at {} is {} in place of {}, allowed {}", d.array, d.place, d.made, d.wanted, d.allowed);
}

Definition::Definition(const Diagram& diagram, const Extents& extents, const Values& inputs) : diagram_(&diagram) {
    values_ = evaluate_bounded(without_casts(diagram), extents, inputs, in_double(diagram, extents));
    double largest = 0;
    for (const Column& array : values_.value)
        for (std::size_t i = 0; i < array.size(); ++i)
            if (std::abs(array[i]) <= largest_that_cancels) largest = std::max(largest, std::abs(array[i]));
    left_behind_ = roundings_left * std::numeric_limits<double>::epsilon() * largest;
}

std::optional<Disagreement> Definition::difference(const Diagram& other, const Values& made) const {
    for (const ArrayId id : diagram_->outputs) {
        const std::string& name = diagram_->array(id).name;
        const auto there = other.find_array(name);
        if (!there) throw InternalError("the output " + name + " is gone");
        const Column& want = values_.value[id];
        const Column& have = made[*there];
        if (want.size() != have.size()) throw InternalError("the output " + name + " has another number of values");
        for (std::size_t i = 0; i < have.size(); ++i) {
            const Bounded x = values_.at(id, i);
            const double allowed = slack * x.error + left_behind_;
            // Integers are compared as such: doubles do not hold them all.
            const bool good = want.is_whole() && have.is_whole() && x.error == 0
                                  ? want.wholes()[i] == have.wholes()[i]
                                  : within(x, have[i], allowed) || values_.is_open(x.value);
            if (!good) return Disagreement{name, static_cast<std::int64_t>(i), x.value, have[i], allowed};
        }
    }
    return std::nullopt;
}

Values inputs_for(const Diagram& other, const Diagram& diagram, const Values& given) {
    Values values(other.arrays.size());
    for (const ArrayId id : diagram.inputs)
        if (const auto there = other.find_array(diagram.array(id).name)) values[*there] = given[id];
    return values;
}

}  // namespace napkin
