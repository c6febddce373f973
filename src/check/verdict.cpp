#include "check/verdict.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>
#include <limits>

#include "check/eliminate.hpp"
#include "check/sample.hpp"
#include "diagram/array_sizes.hpp"
#include "diagram/evaluate.hpp"
#include "schedule/reduction_trees.hpp"
#include "support/ranges.hpp"

namespace napkin {

namespace {
/// With more values than this share without a bound, an output has not been checked.
constexpr double most_unbounded = 0.1;
/// Evaluations of the definition in a check: with its bounds, which cost several plain ones, and in the arrays' types.
constexpr double evaluations = 5;
/// Share of a check's operations for which a sample is drawn where it can be.
constexpr double share_of_sample = 0.5;
/// So many times what a check may take, the fewest values that can be compared may take: numbers that nobody has looked
/// at are worse than a longer wait.
constexpr double most_over_budget = 8;

/// Half the distance of neighbouring numbers of the type at x.
double rounding_at(DType type, double x) {
    if (!is_float(type)) return 0;
    const FormatRange range = format_range(type);
    return std::max(std::abs(x) * range.epsilon, range.smallest_subnormal) / 2;
}

/// Whether a number in the output's type lies within the bound's interval.
bool is_within(const Bounded& reference, DType type, double x) {
    if (x == 0 && is_float(type) && may_be_flushed(type, reference.value, reference.error)) return true;
    const double from = reference.value - reference.error, to = reference.value + reference.error;
    const double low = round_to(type, from), high = round_to(type, to);
    // e4m3 has NaN in place of infinities: no number lies between two NaN but where the ends pass the range on either
    // side.
    if (std::isnan(x)) return std::isnan(low) || std::isnan(high);
    if (std::isnan(reference.value)) return false;
    return (std::isnan(low) || low <= x) && (std::isnan(high) || x <= high) &&
           !(std::isnan(low) && std::isnan(high) && (from > 0) == (to > 0));
}

/// Whether it is one of the special values that may stand in place of the interval.
bool may_stand(const Bounded& reference, double x) {
    if (std::isnan(x)) return (reference.may & may_be_nan) != 0;
    return std::isinf(x) && (reference.may & (x > 0 ? may_be_infinite : may_be_minus_infinite)) != 0;
}

/// How far a value is out: at most 1 where it is good, though the type's own rounding may show otherwise.
double share_of(double distance, double bound, bool good) {
    if (!good) return distance > bound ? distance / bound : infinity;
    return distance > 0 && distance < infinity ? std::min(1.0, distance / bound) : 0;
}

std::vector<std::int64_t> coordinates(std::int64_t place, const std::vector<std::int64_t>& sizes) {
    std::vector<std::int64_t> result(sizes.size());
    for (std::size_t i = sizes.size(); i-- > 0; place /= sizes[i]) result[i] = place % sizes[i];
    return result;
}

/// Over the values that are finite on both sides.
double largest_distance(const Column& a, const Column& b) {
    double largest = 0;
    for (std::size_t i = 0; i < a.size(); ++i)
        if (std::isfinite(a[i]) && std::isfinite(b[i])) largest = std::max(largest, std::abs(a[i] - b[i]));
    return largest;
}

}  // namespace

std::string_view name(Judgement judgement) {
    switch (judgement) {
        case Judgement::good: return "good";
        case Judgement::unbounded: return "no bound";
        case Judgement::bad: return "BAD";
    }
    return "";
}

bool Verdict::good() const {
    return none_of(arrays, [](const ArrayVerdict& a) { return a.judgement == Judgement::bad; });
}

std::string describe(const ArrayVerdict& v) {
    const std::string where = v.place.empty() ? "" : fmt::format("[{}]", fmt::join(v.place, ", "));
    return fmt::format("{}{} is {}, where the definition gives {} ± {:.2g}", v.array, where, v.value, v.reference, v.bound);
}

ArrayVerdict judge(const Diagram& diagram, ArrayId array, const Extents& extents, const BoundedValues& reference,
                   const Column& values) {
    const Array& about = diagram.array(array);
    const std::vector<std::int64_t> sizes = array_sizes(diagram, array, extents);
    const Column& wanted_values = reference.value[array];
    const bool are_integers = values.is_whole() && wanted_values.is_whole();
    ArrayVerdict verdict{.array = about.name, .type = about.type, .values = static_cast<std::int64_t>(values.size())};
    double farthest = -1;
    for (std::size_t i = 0; i < values.size(); ++i) {
        const Bounded wanted = reference.at(array, i);
        // Integers are compared as such: doubles do not hold them all.
        const bool within = are_integers && wanted.error == 0 ? values.wholes()[i] == wanted_values.wholes()[i]
                                                              : is_within(wanted, about.type, values[i]);
        const bool stands = !within && may_stand(wanted, values[i]), is_lost = stands && std::isfinite(wanted.value);
        verdict.lost += is_lost ? 1 : 0;
        if (is_unbounded(wanted) || is_lost || (!within && reference.is_open(wanted.value))) {
            ++verdict.unbounded;
            continue;
        }
        const bool good = within || stands;
        verdict.beyond += good ? 0 : 1;
        const double bound = wanted.error + rounding_at(about.type, wanted.value);
        const double share = share_of(std::abs(values[i] - wanted.value), bound, good);
        if (share <= farthest) continue;
        farthest = share;
        verdict.share = share;
        verdict.place = coordinates(static_cast<std::int64_t>(i), sizes);
        verdict.value = values[i];
        verdict.reference = wanted.value;
        verdict.bound = bound;
    }
    if (verdict.beyond > 0)
        verdict.judgement = Judgement::bad;
    else if (static_cast<double>(verdict.unbounded) > most_unbounded * static_cast<double>(verdict.values))
        verdict.judgement = Judgement::unbounded;
    return verdict;
}

Verdict check_outputs(const Compilation& c, const std::vector<Tensor>& inputs, const std::vector<Tensor>& outputs,
                      const CheckOptions& options) {
    const Diagram& diagram = c.diagram;
    // Small samples show as much: what one is drawn for is a part of what may be spent where single values take long.
    const Sample sample = sample_outputs(diagram, c.extents, share_of_sample * options.operations / evaluations,
                                         options.seed);
    Verdict verdict;
    verdict.seed = options.seed;
    const double operations = evaluations * evaluation_operations(sample.diagram, sample.extents),
                 most = most_over_budget * options.operations;
    if (operations > most) {
        for (const ArrayId id : diagram.outputs) {
            const Array& array = diagram.array(id);
            verdict.output_values += count_values(diagram, id, c.extents);
            verdict.arrays.push_back({.array = array.name, .type = array.type, .judgement = Judgement::unbounded});
        }
        verdict.left_out = fmt::format(
            "the fewest values that can be compared take {:.2g} operations in double precision, and a check takes "
            "{:.2g} at most",
            operations, most);
        return verdict;
    }
    // The whole of a long array takes longer to read than the check of its sample.
    const auto sample_of = [&](ArrayId id, const Tensor& tensor) {
        return take_sample(sample, id, c.extents, [&](std::int64_t place) { return tensor.number(place); });
    };
    Values given(sample.diagram.arrays.size());
    for (std::size_t i = 0; i < diagram.inputs.size(); ++i)
        given[diagram.inputs[i]] = sample_of(diagram.inputs[i], inputs[i]);
    fill_coordinates(sample, given);
    std::vector<std::vector<ReductionTree>> trees;
    for (const KernelPlan& kernel : c.plan.kernels) trees.push_back(reduction_trees(kernel.scheduled));
    const BoundedValues reference = evaluate_bounded(sample.diagram, sample.extents, given,
                                                     execution_of(diagram, c.extents, c.program, std::move(trees)));
    Values plain = std::move(given);
    evaluate(with_all_eliminated(sample.diagram, sample.extents), sample.extents, plain, Precision::stored);

    for (std::size_t i = 0; i < diagram.outputs.size(); ++i) {
        const ArrayId id = diagram.outputs[i];
        const Array& array = diagram.array(id);
        const Column values = sample_of(id, outputs[i]);
        ArrayVerdict one = judge(sample.diagram, id, sample.extents, reference, values);
        for (std::size_t d = 0; d < one.place.size(); ++d) {
            const std::vector<std::int64_t>& kept = sample.kept[at(array.axes[d])];
            if (!kept.empty()) one.place[d] = kept[at(one.place[d])];
        }
        const Column& exact = reference.value[id];
        one.error = largest_distance(values, exact);
        one.plain_error = largest_distance(plain[id], exact);
        double largest = 0;
        for (const double x : exact)
            if (std::isfinite(x)) largest = std::max(largest, std::abs(x));
        one.rounding = largest * epsilon(array.type) / 2;
        verdict.checked_values += one.values;
        verdict.output_values += outputs[i].count();
        verdict.arrays.push_back(std::move(one));
    }
    return verdict;
}

}  // namespace napkin
