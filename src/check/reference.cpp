#include "check/reference.hpp"

#include <cmath>
#include <optional>

#include "check/bounded_reduce.hpp"
#include "check/eliminate.hpp"
#include "check/reach.hpp"
#include "diagram/equation_walk.hpp"
#include "diagram/factor_conditions.hpp"
#include "support/ranges.hpp"
#include "support/result.hpp"

namespace napkin {

namespace {
constexpr double points_per_thread = 1 << 20;  ///< less work than this is done before a thread is started

/// What an equation gives: integers where its target's type is one, else real numbers.
struct Target {
    std::vector<double> value;
    std::vector<std::int64_t> integers;
    std::vector<double> error, may;
};

/// Reduces integers, whose order does not matter.
struct BoundedWholeReducer {
    ReduceOp op;
    Kind kind;
    BoundedWhole total;

    BoundedWholeReducer(ReduceOp reduce, Kind accumulated)
        : op(reduce), kind(accumulated), total(BoundedWhole::exactly(integer_identity(reduce, accumulated))) {}
    void add(const BoundedWhole* values, std::int64_t n) {
        for (std::int64_t j = 0; j < n; ++j) total = apply_integer(pairwise(op), kind, total, values[j]);
    }
};

/// One equation, in parts of the loop over its target: whole rows of a map, single points of a reduction.
class BoundedEquation {
public:
    /// `kind`: in which the body's values are accumulated.
    BoundedEquation(const Diagram& diagram, const Extents& extents, const Equation& equation, Kind kind, std::int64_t depth,
                    double factor_unit, std::optional<DType> kept, const Rounding& rounding, Target& target)
        : walk_(diagram, extents, equation),
          equation_(equation),
          kind_(kind),
          type_(diagram.array(equation.target).type),
          kept_(kept),
          depth_(depth),
          factor_unit_(factor_unit),
          rounding_(rounding),
          target_(target) {
        for (const AxisId axis : equation.reduce_axes) terms_ *= extents[axis];
        for (const ArrayId id : read_arrays(equation.body)) {
            const DType read = diagram.array(id).type;
            narrows_ = narrows_ || (kept_ && is_float(read) && epsilon(read) < epsilon(*kept_));
        }
    }

    void run(const BoundedRows& program) const {
        walk_.share_out(points_per_thread, [&](std::int64_t begin, std::int64_t end) { part(program, begin, end); });
    }

    [[nodiscard]] AxisId row_axis() const { return walk_.row_axis(); }

private:
    void part(BoundedRows program, std::int64_t begin, std::int64_t end) const {
        if (kind_ != Kind::real) return whole_part(program, begin, end);
        if (equation_.reduce) {
            std::optional<BoundedReducer> reducer;
            walk_.part(
                begin, end, BoundedRows::max_row,
                [&] { reducer.emplace(*equation_.reduce, depth_, terms_, program.whole(), rounding_, factor_unit_); },
                [&](const auto& point, std::int64_t, std::int64_t n) { reducer->add(program.run(point, n), n); },
                [&](std::int64_t place) { write(place, reducer->result()); });
        } else {
            walk_.part(
                begin, end, BoundedRows::max_row, [] {},
                [&](const auto& point, std::int64_t place, std::int64_t n) { write(place, program.run(point, n), n); },
                [](std::int64_t) {});
        }
    }

    void whole_part(BoundedRows& program, std::int64_t begin, std::int64_t end) const {
        std::optional<BoundedWholeReducer> reducer;
        walk_.part(
            begin, end, BoundedRows::max_row,
            [&] {
                if (equation_.reduce) reducer.emplace(*equation_.reduce, kind_);
            },
            [&](const auto& point, std::int64_t place, std::int64_t n) {
                const BoundedWhole* const row = program.run_integer(point, n);
                if (reducer) return reducer->add(row, n);
                for (std::int64_t k = 0; k < n; ++k) write(place + k, row[k]);
            },
            [&](std::int64_t place) {
                if (reducer) write(place, reducer->total);
            });
    }

    void write(std::int64_t place, const BoundedRow& row, std::int64_t n) const {
        if (as_computed()) {
            std::copy_n(row.value, n, target_.value.data() + place);
            if (row.error != nullptr) std::copy_n(row.error, n, target_.error.data() + place);
            if (row.may != nullptr) std::copy_n(row.may, n, target_.may.data() + place);
            return;
        }
        for (std::int64_t k = 0; k < n; ++k) write(place + k, row.at(k));
    }

    void write(std::int64_t place, Bounded x) const {
        if (!is_float(type_)) return keep(place, truncated(type_, x));
        if (!as_computed()) x = stored(*kept_, x);
        const auto k = static_cast<std::size_t>(place);
        target_.value[k] = x.value;
        target_.error[k] = x.error;
        target_.may[k] = x.may;
    }

    void write(std::int64_t place, const BoundedWhole& x) const {
        if (is_float(type_)) return write(place, as_real(kind_, x, rounding_));
        keep(place, wrapped(type_, x));
    }

    /// An integer of the target's type.
    void keep(std::int64_t place, const BoundedWhole& x) const {
        const auto k = static_cast<std::size_t>(place);
        const Bounded distance = distance_of(type_, x);
        target_.integers[k] = x.value;
        target_.error[k] = distance.error;
        target_.may[k] = distance.may;
    }

    /// No rounding of its own waits in memory. A copy, a maximum or a choice of wider values has none of its own before
    /// that.
    [[nodiscard]] bool as_computed() const {
        return is_float(type_) && (!kept_ || (epsilon(*kept_) <= epsilon(rounding_.type) && !narrows_));
    }

    EquationWalk walk_;
    const Equation& equation_;
    Kind kind_;
    DType type_;
    std::optional<DType> kept_;
    std::int64_t depth_;
    double factor_unit_;
    const Rounding& rounding_;
    std::int64_t terms_ = 1;  ///< that each value of the target reduces
    bool narrows_ = false;    ///< it reads wider values than the type in which its own are kept
    Target& target_;
};

/// What each number loses where numbers below the smallest are flushed: some processors do so with operands, too.
std::vector<double> lost_below(const std::vector<double>& values, double smallest) {
    return mapped<double>(values, [&](double x) { return std::abs(x) < smallest ? std::abs(x) : 0; });
}

void put(BoundedValues& values, ArrayId id, Target target) {
    values.value[id] = target.integers.empty() ? Column(std::move(target.value)) : Column(std::move(target.integers));
    values.error[at(id)] = std::move(target.error);
    values.may[at(id)] = std::move(target.may);
}

/// Drops errors and states that are 0 throughout, and notes whether the values are exact whole numbers.
void tidy(BoundedValues& values, ArrayId array, const Rounding& rounding) {
    const auto is_zero = [](double x) { return x == 0; };
    const auto a = array;
    if (all_of(values.may[a], is_zero)) values.may[a].clear();
    if (all_of(values.error[a], is_zero)) values.error[a].clear();
    values.whole[a] = values.is_exact(array);
    for (std::size_t i = 0; values.whole[a] && i < values.value[a].size(); ++i) {
        const double x = values.value[a][i];
        values.whole[a] = x == std::floor(x) && std::abs(x) <= rounding.whole;
    }
}

Kind kind_accumulated(const Diagram& diagram, const Equation& equation) {
    Kinds kinds = kinds_of(diagram);
    return accumulated_kind(kinds(equation.body), diagram.array(equation.target).type);
}

/// Whether the equation is integer arithmetic on exact numbers.
bool is_exact(const Diagram& diagram, const Equation& equation, const BoundedValues& values) {
    Kinds kinds = kinds_of(diagram);
    if (!is_integer(kind_accumulated(diagram, equation))) return false;
    bool exact = true;
    visit(equation.body, [&](const Expr& e) {
        if (const auto* r = as<Read>(e)) exact = exact && values.is_exact(r->array);
        exact = exact && is_integer(kinds(e));
    });
    return exact;
}

/// A sum over a product of arrays, evaluated as with_axes_eliminated takes it apart. Its terms are not looked at one by
/// one. The bound is that of the sum of their magnitudes, in any order. There is no bound where a factor is not finite
/// or a partial product may leave the range of normal numbers.
Target eliminated(const Diagram& parts, const Equation& equation, const Extents& extents, const BoundedValues& values,
                  std::int64_t depth, double factor_unit, const Rounding& rounding) {
    const ArrayId target = equation.target;
    const std::vector<ArrayId> factors = read_arrays(equation.body);
    double reach = 1, num_factors = 0, terms = 1;
    bool exact = true;
    visit(equation.body, [&](const Expr& e) {
        if (const auto* c = as<Constant>(e)) reach *= std::max(1.0, std::abs(c->value));
        num_factors += as<Read>(e) || as<Constant>(e);
    });
    for (const AxisId axis : equation.reduce_axes) terms *= static_cast<double>(extents[axis]);
    Diagram diagram = parts;
    diagram.inputs = factors;
    for (const ArrayId id : factors) diagram.arrays[id].type = DType::f64;
    // The values, their magnitudes, and those with their errors.
    Values of_value(parts.arrays.size()), of_size = of_value, of_most = of_value;
    for (const ArrayId id : factors) {
        const std::size_t count = values.value[id].size();
        std::vector<double> value(count), size(count), most(count);
        double largest = 1;
        for (std::size_t i = 0; i < count; ++i) {
            const Bounded x = values.at(id, i);
            value[i] = x.value, size[i] = std::abs(x.value), most[i] = size[i] + x.error;
            exact = exact && x.error == 0;
            largest = x.may != 0 || !std::isfinite(most[i]) ? infinity : std::max(largest, most[i]);
        }
        // An array may be several of the factors.
        visit(equation.body, [&](const Expr& e) {
            if (const auto* r = as<Read>(e); r && r->array == id) reach *= largest;
        });
        of_value[id] = std::move(value), of_size[id] = std::move(size), of_most[id] = std::move(most);
    }
    evaluate(diagram, extents, of_value, Precision::exact);
    const auto with_magnitudes = [](Equation e) {
        e.body = transform(e.body, [](const Expr& node) {
            const auto* c = as<Constant>(node);
            return c ? constant(std::abs(c->value)) : node;
        });
        return e;
    };
    for (Equation& e : diagram.equations) e = with_magnitudes(std::move(e));
    evaluate(diagram, extents, of_most, Precision::exact);
    if (!exact) evaluate(diagram, extents, of_size, Precision::exact);
    const double of_reference = (terms / 8 + num_factors + 8) * epsilon(DType::f64) / 2,
                 roundings = static_cast<double>(depth) * rounding.unit + factor_unit + of_reference +
                             num_factors * rounding.step,
                 gamma = roundings < 1 ? roundings / (1 - roundings) : infinity;
    // Below this, what underflows is less than the smallest number's share of an ordinary one.
    const bool is_tame = reach * terms <= std::min(rounding.largest, 1 / (rounding.unit * rounding.unit)) &&
                         gamma < infinity;
    const Column &value = of_value[target], &most = of_most[target], &size = exact ? most : of_size[target];
    Target out{value.to_doubles(), {}, std::vector<double>(value.size()), std::vector<double>(value.size())};
    for (std::size_t i = 0; i < value.size(); ++i) {
        Bounded x = anything(value[i]);
        if (is_tame) {
            const double lost = most[i] > 0 ? num_factors * rounding.smallest * reach * terms : 0;
            x = {value[i], most[i] - size[i] + gamma * most[i] + lost, 0};
        }
        out.error[i] = x.error, out.may[i] = x.may;
    }
    return out;
}

}  // namespace

BoundedValues evaluate_bounded(const Diagram& definition, const Extents& extents, const Values& values,
                               const Execution& execution) {
    internal_check(execution.depth.size() == definition.equations.size(), "a bound needs the depth of every equation");
    const Rounding rounding = rounding_of(execution.working);
    const std::size_t count = definition.arrays.size();
    BoundedValues result{Values(count), std::vector<std::vector<double>>(count),
                         std::vector<std::vector<double>>(count), std::vector<bool>(count)};
    for (const ArrayId id : definition.inputs) {
        result.value[id] = values[id];
        if (!values[id].is_whole()) {
            result.error[at(id)] = lost_below(values[id].reals(), rounding.smallest);
            result.finite_inputs &= all_of(values[id].reals(), [](double x) { return std::isfinite(x); });
        }
        tidy(result, id, rounding);
    }
    // A condition at one factor leaves 0 times the other one, which is NaN where that is infinite.
    const Diagram diagram = result.finite_inputs ? definition : with_conditions_at_factors(definition);
    Reach reach(diagram, extents, rounding);
    for (std::size_t i = 0; i < diagram.equations.size(); ++i) {
        const Equation& equation = diagram.equations[i];
        const ArrayId id = equation.target;
        if (is_exact(diagram, equation, result)) {
            Diagram alone = diagram;
            alone.equations = {equation};
            evaluate(alone, extents, result.value);
        } else if (const auto parts = is_float(diagram.array(id).type) ? with_axes_eliminated(diagram, equation, extents)
                                                                       : std::nullopt) {
            Target target = eliminated(*parts, equation, extents, result, execution.depth[i], execution.factor_unit[i],
                                       rounding);
            const std::optional<DType> kept = at(id) < execution.kept.size() ? execution.kept[id] : std::nullopt;
            for (std::size_t k = 0; k < target.value.size(); ++k) {
                Bounded x{target.value[k], target.error[k], static_cast<std::uint8_t>(target.may[k])};
                if (kept) x = stored(*kept, x);
                target.value[k] = x.value, target.error[k] = x.error, target.may[k] = x.may;
            }
            put(result, id, std::move(target));
        } else {
            const auto count_of_target = static_cast<std::size_t>(count_values(diagram, id, extents));
            const bool is_whole = !is_float(diagram.array(id).type);
            Target target;
            target.error.resize(count_of_target);
            target.may.resize(count_of_target);
            if (is_whole)
                target.integers.resize(count_of_target);
            else
                target.value.resize(count_of_target);
            const std::optional<DType> kept = at(id) < execution.kept.size() ? execution.kept[id] : std::nullopt;
            const Kind kind = kind_accumulated(diagram, equation);
            BoundedEquation run(diagram, extents, equation, kind, execution.depth[i], execution.factor_unit[i], kept,
                                rounding, target);
            run.run(BoundedRows(equation.body, run.row_axis(), diagram, extents, result, rounding, kind));
            put(result, id, std::move(target));
            reach.widen(equation, result);
        }
        tidy(result, id, rounding);
    }
    return result;
}

}  // namespace napkin
