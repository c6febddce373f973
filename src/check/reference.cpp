#include "check/reference.hpp"

#include <cmath>
#include <thread>

#include "check/bounded_reduce.hpp"
#include "check/reach.hpp"
#include "support/ranges.hpp"
#include "support/result.hpp"

namespace napkin {

namespace {
constexpr double points_per_thread = 1 << 20;  ///< less work than this is done before a thread is started

std::int64_t product(const std::vector<AxisId>& axes, const Extents& extents) {
    return napkin::product<std::int64_t>(axes, [&](AxisId axis) { return extents[at(axis)]; });
}

/// What an equation gives, before integers are what their type holds.
struct Target {
    std::vector<double> value, error, may;
};

/// One equation, in parts of the loop over its target: whole rows of a map, single points of a reduction.
class BoundedEquation {
public:
    BoundedEquation(const Diagram& diagram, const Extents& extents, const Equation& equation, std::int64_t depth,
                    double factor_unit, std::optional<DType> kept, const Rounding& rounding, Target& target)
        : extents_(extents),
          equation_(equation),
          type_(diagram.array(equation.target).type),
          kept_(kept),
          depth_(depth),
          factor_unit_(factor_unit),
          rounding_(rounding),
          outer_(diagram.array(equation.target).axes),
          inner_(equation.reduce_axes),
          target_(target) {
        for (const ArrayId id : read_arrays(equation.body)) {
            const DType read = diagram.array(id).type;
            narrows_ = narrows_ || (kept_ && is_float(read) && epsilon(read) < epsilon(*kept_));
        }
        std::vector<AxisId>& rows = equation.reduce ? inner_ : outer_;
        if (rows.empty()) return;
        row_axis_ = rows.back();
        rows.pop_back();
    }

    void run(BoundedRows program) {
        const std::int64_t total = product(outer_, extents_);
        const double points = static_cast<double>(target_.value.size()) *
                              static_cast<double>(product(equation_.reduce_axes, extents_));
        const double wanted = std::min<double>(std::max(1U, std::thread::hardware_concurrency()),
                                               points / points_per_thread);
        const std::int64_t parts = std::clamp<std::int64_t>(static_cast<std::int64_t>(wanted), 1, total);
        std::vector<std::thread> threads;
        for (std::int64_t p = 1; p < parts; ++p)
            threads.emplace_back([=, this] { part(program, total * p / parts, total * (p + 1) / parts); });
        part(std::move(program), 0, total / parts);
        for (std::thread& thread : threads) thread.join();
    }

    [[nodiscard]] AxisId row_axis() const { return row_axis_; }

private:
    void part(BoundedRows program, std::int64_t begin, std::int64_t end) const {
        std::vector<std::int64_t> point(extents_.size(), 0);
        std::int64_t rest = begin;
        for (std::size_t i = outer_.size(); i-- > 0;) {
            point[at(outer_[i])] = rest % extents_[at(outer_[i])];
            rest /= extents_[at(outer_[i])];
        }
        const std::int64_t length = row_axis_ < 0 ? 1 : extents_[at(row_axis_)];
        const auto for_row = [&](auto&& f) {
            for (std::int64_t j = 0; j < length; j += BoundedRows::max_row) {
                const std::int64_t n = std::min(BoundedRows::max_row, length - j);
                if (row_axis_ >= 0) point[at(row_axis_)] = j;
                f(program.run(point, n), j, n);
            }
            if (row_axis_ >= 0) point[at(row_axis_)] = 0;
        };
        const std::int64_t terms = product(equation_.reduce_axes, extents_);
        for (std::int64_t i = begin; i < end; ++i) {
            if (equation_.reduce) {
                BoundedReducer reducer(*equation_.reduce, depth_, terms, program.whole(), rounding_, factor_unit_);
                do {
                    for_row([&](const BoundedRow& row, std::int64_t, std::int64_t n) { reducer.add(row, n); });
                } while (next_point(inner_, extents_, point));
                write(i, reducer.result());
            } else {
                for_row([&](const BoundedRow& row, std::int64_t j, std::int64_t n) { write(i * length + j, row, n); });
            }
            next_point(outer_, extents_, point);
        }
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
        if (!is_float(type_))
            x = cast(type_, x);
        else if (!as_computed())
            x = stored(*kept_, x);
        const auto k = static_cast<std::size_t>(place);
        target_.value[k] = x.value;
        target_.error[k] = x.error;
        target_.may[k] = x.may;
    }

    /// No rounding of its own waits in memory. A copy, a maximum or a choice of wider values has none of its own before that.
    [[nodiscard]] bool as_computed() const {
        return is_float(type_) && (!kept_ || (epsilon(*kept_) <= epsilon(rounding_.type) && !narrows_));
    }

    const Extents& extents_;
    const Equation& equation_;
    DType type_;
    std::optional<DType> kept_;
    std::int64_t depth_;
    double factor_unit_;
    const Rounding& rounding_;
    std::vector<AxisId> outer_, inner_;  ///< inner: reduced axes but the row's
    AxisId row_axis_ = -1;
    bool narrows_ = false;  ///< it reads wider values than the type in which its own are kept
    Target& target_;
};

/// Drops errors and states that are 0 throughout, and notes whether the values are exact whole numbers.
void tidy(BoundedValues& values, ArrayId array, const Rounding& rounding) {
    const auto is_zero = [](double x) { return x == 0; };
    const std::size_t a = at(array);
    if (all_of(values.may[a], is_zero)) values.may[a].clear();
    if (all_of(values.error[a], is_zero)) values.error[a].clear();
    values.whole[a] = values.is_exact(array);
    for (std::size_t i = 0; values.whole[a] && i < values.value[a].size(); ++i) {
        const double x = values.value[a][i];
        values.whole[a] = x == std::floor(x) && std::abs(x) <= rounding.whole;
    }
}

/// Whether the equation is integer arithmetic on exact numbers.
bool is_exact(const Diagram& diagram, const Equation& equation, const BoundedValues& values) {
    Kinds kinds = kinds_of(diagram);
    if (!is_integer(accumulated_kind(kinds(equation.body), diagram.array(equation.target).type))) return false;
    bool exact = true;
    visit(equation.body, [&](const Expr& e) {
        if (const auto* r = as<Read>(e)) exact = exact && values.is_exact(r->array);
        exact = exact && is_integer(kinds(e));
    });
    return exact;
}

}  // namespace

BoundedValues evaluate_bounded(const Diagram& diagram, const Extents& extents, const Values& values,
                               const Execution& execution) {
    internal_check(execution.depth.size() == diagram.equations.size(), "a bound needs the depth of every equation");
    const Rounding rounding = rounding_of(execution.working);
    const std::size_t count = diagram.arrays.size();
    BoundedValues result{Values(count), std::vector<std::vector<double>>(count),
                         std::vector<std::vector<double>>(count), std::vector<bool>(count)};
    for (const ArrayId id : diagram.inputs) {
        result.value[at(id)] = values[at(id)];
        tidy(result, id, rounding);
    }
    Reach reach(diagram, extents, rounding);
    for (std::size_t i = 0; i < diagram.equations.size(); ++i) {
        const Equation& equation = diagram.equations[i];
        const ArrayId id = equation.target;
        if (is_exact(diagram, equation, result)) {
            Diagram alone = diagram;
            alone.equations = {equation};
            evaluate(alone, extents, result.value);
        } else {
            const std::vector<double> none(static_cast<std::size_t>(count_values(diagram, id, extents)), 0);
            Target target{none, none, none};
            const std::optional<DType> kept = at(id) < execution.kept.size() ? execution.kept[at(id)] : std::nullopt;
            BoundedEquation run(diagram, extents, equation, execution.depth[i], execution.factor_unit[i], kept,
                                rounding, target);
            run.run(BoundedRows(equation.body, run.row_axis(), diagram, extents, result, rounding));
            result.value[at(id)] = Column(std::move(target.value)).in(diagram.array(id).type);
            result.error[at(id)] = std::move(target.error);
            result.may[at(id)] = std::move(target.may);
            reach.widen(equation, result);
        }
        tidy(result, id, rounding);
    }
    return result;
}

}  // namespace napkin
