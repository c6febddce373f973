#include "diagram/evaluate.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <optional>
#include <type_traits>

#include "diagram/check_indices.hpp"
#include "diagram/equation_walk.hpp"
#include "diagram/row_program.hpp"
#include "support/result.hpp"
#include "support/split_mix.hpp"

namespace napkin {
namespace {
constexpr double points_per_thread = 1 << 22;  ///< less work than this is done before a thread is started

/// The whole array, row-major.
Operand locate(const Read& element, const Diagram& diagram, const Extents& extents, const Values& values) {
    const Array& array = diagram.array(element.array);
    Operand operand = operand_of(values[element.array]);
    operand.dimensions.resize(array.axes.size());
    std::int64_t stride = 1;
    for (std::size_t i = array.axes.size(); i-- > 0;) {
        operand.dimensions[i] = {0, extents[array.axes[i]], stride};
        stride *= extents[array.axes[i]];
    }
    return operand;
}

/// Reduces in eight interleaved parts, as a vectorised sum does: faster, and the rounding errors of long sums stay
/// small.
template <class T>
struct Reducer {
    static constexpr std::size_t lanes = 8;
    ReduceOp op;
    std::array<T, lanes> part;

    Reducer(ReduceOp reduce, Kind) : op(reduce) { part.fill(static_cast<T>(identity(op))); }

    template <class F>
    void add(const T* values, std::int64_t n, F f) {
        std::int64_t j = 0;
        for (; j + static_cast<std::int64_t>(lanes) <= n; j += lanes) {
            for (std::size_t lane = 0; lane < lanes; ++lane)
                part[lane] = f(part[lane], values[j + static_cast<std::int64_t>(lane)]);
        }
        for (; j < n; ++j) part[0] = f(part[0], values[j]);
    }
    static T sum(T a, T b) { return a + b; }
    static T prod(T a, T b) { return a * b; }
    static T max(T a, T b) { return std::isnan(a) || a > b ? a : b; }
    static T min(T a, T b) { return std::isnan(a) || a < b ? a : b; }

    void add(const T* values, std::int64_t n) {
        switch (op) {
            case ReduceOp::sum: return add(values, n, [](T a, T b) { return sum(a, b); });
            case ReduceOp::prod: return add(values, n, [](T a, T b) { return prod(a, b); });
            case ReduceOp::max: return add(values, n, [](T a, T b) { return max(a, b); });
            case ReduceOp::min: return add(values, n, [](T a, T b) { return min(a, b); });
        }
    }
    T result() {
        for (std::size_t half = lanes / 2; half > 0; half /= 2) {
            for (std::size_t lane = 0; lane < half; ++lane) {
                T& a = part[lane];
                const T b = part[lane + half];
                a = op == ReduceOp::sum    ? sum(a, b)
                    : op == ReduceOp::prod ? prod(a, b)
                    : op == ReduceOp::max  ? max(a, b)
                                           : min(a, b);
            }
        }
        return part[0];
    }
};

/// Reduces integers, whose order does not matter.
struct IntegerReducer {
    ReduceOp op;
    Kind kind;
    std::int64_t total;

    IntegerReducer(ReduceOp reduce, Kind accumulated)
        : op(reduce), kind(accumulated), total(integer_identity(reduce, accumulated)) {}
    void add(const std::int64_t* values, std::int64_t n) {
        for (std::int64_t j = 0; j < n; ++j) total = apply_integer(op, kind, total, values[j]);
    }
    [[nodiscard]] std::int64_t result() const { return total; }
};

/// One equation, in parts of its outer loop over the target: whole rows of a map, single points of a reduction.
template <class T>
struct EquationRun {
    const Diagram& diagram;
    const EquationWalk& walk;
    const Equation& equation;
    Precision precision;
    Kind kind = Kind::real;  ///< of the body's values, and in which they are accumulated
    Column& target;

    [[nodiscard]] DType type() const { return diagram.array(equation.target).type; }

    void store(std::int64_t place, T value) const {
        const auto i = static_cast<std::size_t>(place);
        if (target.is_whole())
            target.wholes()[i] = whole_of(type(), static_cast<double>(value));
        else
            target.reals()[i] = precision == Precision::stored ? round_to(type(), value) : static_cast<double>(value);
    }
    void store(std::int64_t place, std::int64_t value) const {
        const auto i = static_cast<std::size_t>(place);
        if (target.is_whole())
            target.wholes()[i] = wrap(type(), value);
        else
            store(place, static_cast<T>(value));
    }

    /// What a reduction of nothing is, in the type of the target.
    void store_nothing(std::int64_t place) const { store(place, static_cast<T>(identity(*equation.reduce))); }

    /// Cell: T where the body is real, else the integers' type.
    template <class Cell>
    void part(RowProgram<T> program, std::int64_t begin, std::int64_t end) const {
        constexpr bool is_real = std::is_same_v<Cell, T>;
        using CellReducer = std::conditional_t<is_real, Reducer<T>, IntegerReducer>;
        const auto values = [&](const std::vector<std::int64_t>& point, std::int64_t n) -> const Cell* {
            if constexpr (is_real)
                return program.run(point, n);
            else
                return program.run_integer(point, n);
        };
        if (equation.reduce) {
            std::optional<CellReducer> reducer;
            walk.part(
                begin, end, RowProgram<T>::max_row, [&] { reducer.emplace(*equation.reduce, kind); },
                [&](const auto& point, std::int64_t, std::int64_t n) { reducer->add(values(point, n), n); },
                [&](std::int64_t place) {
                    if (walk.reduces_nothing())
                        store_nothing(place);
                    else
                        store(place, reducer->result());
                });
        } else {
            walk.part(
                begin, end, RowProgram<T>::max_row, [] {},
                [&](const auto& point, std::int64_t place, std::int64_t n) {
                    const Cell* const row = values(point, n);
                    for (std::int64_t k = 0; k < n; ++k) store(place + k, row[k]);
                },
                [](std::int64_t) {});
        }
    }

    void part(const RowProgram<T>& program, std::int64_t begin, std::int64_t end) const {
        if (kind == Kind::real)
            part<T>(program, begin, end);
        else
            part<std::int64_t>(program, begin, end);
    }
};

template <class T>
void run_equation(const Diagram& diagram, const Extents& extents, const Equation& equation, Values& values,
                  Precision precision) {
    const Array& array = diagram.array(equation.target);
    Column& target = values[equation.target];
    target = Column(array.type, static_cast<std::size_t>(count_values(diagram, equation.target, extents)), Number::real(0));
    Kinds kinds = kinds_of(diagram);
    const Kind kind = accumulated_kind(kinds(equation.body), array.type);
    const EquationWalk walk(diagram, extents, equation);
    const EquationRun<T> run{diagram, walk, equation, precision, kind, target};
    const RowProgram<T> program(equation.body, kinds, extents,
                                [&](const Read& r) { return locate(r, diagram, extents, values); },
                                {walk.row_axis(), kind, precision == Precision::stored});
    walk.share_out(points_per_thread, [&](std::int64_t begin, std::int64_t end) { run.part(program, begin, end); });
}

struct Random {
    std::uint64_t state;
    std::uint64_t next() { return split_mix(state += split_mix_step); }
    double uniform() { return (static_cast<double>(next() >> 11) + 0.5) * 0x1p-53; }  // in (0, 1)
};

}  // namespace

void evaluate(const Diagram& diagram, const Extents& extents, Values& values, Precision precision) {
    internal_check(extents.size() == diagram.axes.size(), "evaluate: an extent for every axis is needed");
    values.resize(diagram.arrays.size());
    for (ArrayId id : diagram.inputs) {
        internal_check(values[id].size() == static_cast<std::size_t>(count_values(diagram, id, extents)),
                       "evaluate: an input has not the number of values that its axes say");
        values[id] = values[id].in(diagram.array(id).type);
    }
    for (const Equation& equation : diagram.equations) {
        bool wide = precision == Precision::exact || diagram.array(equation.target).type == DType::f64;
        for (ArrayId id : read_arrays(equation.body)) {
            internal_check(values[id].size() == static_cast<std::size_t>(count_values(diagram, id, extents)),
                           "evaluate: an equation reads an array that is not there yet");
            wide = wide || diagram.array(id).type == DType::f64;
        }
        if (wide) {
            run_equation<double>(diagram, extents, equation, values, precision);
        } else {
            run_equation<float>(diagram, extents, equation, values, precision);
        }
    }
}

Kinds kinds_of(const Diagram& diagram) {
    return Kinds([&diagram](ArrayId id) { return diagram.array(id).type; });
}

Kind accumulated_kind(Kind body, DType target) {
    if (body == Kind::whole) return is_float(target) ? Kind::real : Kind::i64;
    return body == Kind::real ? body : Kind::i64;
}

Number evaluate_at(const Expr& e, Kinds& kinds, const Diagram& diagram, const Extents& extents, const Values& values,
                   const std::vector<std::int64_t>& point) {
    const auto value = [&](const Expr& child) { return evaluate_at(child, kinds, diagram, extents, values, point); };
    if (const auto* n = as<Constant>(e)) return number_of(*n);
    if (const auto* n = as<AxisIndex>(e)) return Number::whole(Kind::i64, point.at(at(n->axis)));
    if (const auto* n = as<AxisSize>(e)) return Number::whole(Kind::i64, extents.at(n->axis));
    if (const auto* n = as<Unary>(e)) return apply(n->op, value(n->a));
    if (const auto* n = as<Binary>(e)) return apply(n->op, kinds(e), value(n->a), value(n->b));
    if (const auto* n = as<Select>(e)) return value(value(n->condition).truth() ? n->a : n->b).to(kinds(e));
    if (const auto* n = as<Cast>(e)) return value(n->a).to(n->type);
    const auto& element = std::get<Read>(e->v);
    const Array& array = diagram.array(element.array);
    const auto in_index = [&](const Read& r) { return value(read(r.array, r.indices)).as_whole(Kind::i64); };
    std::int64_t offset = 0;
    for (std::size_t i = 0; i < array.axes.size(); ++i) {
        const std::int64_t coordinate = value_at(with_sizes(element.indices[i], extents), point, in_index);
        // Where the indices leave the array there is no value.
        if (coordinate < 0 || coordinate >= extents[array.axes[i]]) return Column::unset(array.type, 1).at(0);
        offset = offset * extents[array.axes[i]] + coordinate;
    }
    const Column& column = values[element.array];
    if (static_cast<std::size_t>(offset) >= column.size())
        throw InternalError(array.name + " is read and was never computed");
    return column.at(static_cast<std::size_t>(offset)).to(array.type);
}

Values random_inputs(const Diagram& diagram, const Extents& extents, std::uint64_t seed) {
    Values values(diagram.arrays.size());
    for (std::size_t i = 0; i < diagram.inputs.size(); ++i) {
        const ArrayId id = diagram.inputs[i];
        const DType type = diagram.array(id).type;
        Random random{seed * split_mix_step + i};
        random.state = random.next();  // seeds and inputs that are neighbours have streams that are not
        Column& column = values[id];
        column = Column(type, static_cast<std::size_t>(count_values(diagram, id, extents)), Number::real(0));
        if (column.is_whole()) {
            const std::optional<std::int64_t> greatest = greatest_index(diagram, extents, id);
            const std::int64_t least = greatest ? 0 : std::max<std::int64_t>(-4, facts(type).least),
                               most = std::min(greatest.value_or(4), facts(type).most);
            for (std::int64_t& x : column.wholes())
                x = least + static_cast<std::int64_t>(random.next() % static_cast<std::uint64_t>(most - least + 1));
            continue;
        }
        std::vector<double>& data = column.reals();
        for (std::size_t j = 0; j < data.size(); ++j) {
            // Box and Muller: two values from two.
            const double radius = std::sqrt(-2 * std::log(random.uniform()));
            const double angle = 2 * std::numbers::pi * random.uniform();
            data[j] = round_to(type, radius * std::cos(angle));
            if (j + 1 < data.size()) data[++j] = round_to(type, radius * std::sin(angle));
        }
    }
    return values;
}

}  // namespace napkin
