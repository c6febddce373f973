#include "check/reach.hpp"

#include <cmath>
#include <limits>

#include "diagram/evaluate.hpp"
#include "support/ranges.hpp"
#include "support/result.hpp"

namespace napkin {

namespace {
/// By how much a factor, or a product of two, may be larger than the reference has it because of its error.
constexpr double margin = 1 + 0x1p-10;
/// Powers up to here are products of their own base.
constexpr double most_power = 8;

Expr larger(Expr a, Expr b) { return binary(BinaryOp::max, std::move(a), std::move(b)); }
Expr times(Expr a, Expr b) { return binary(BinaryOp::mul, std::move(a), std::move(b)); }

/// Infinities, NaN and an exact 0 are states of their own, which the definition carries by itself.
double reach_of(double value, double error, Reach::Of of) {
    if (!std::isfinite(value)) return 1;
    const double most = std::abs(value) + (error < infinity ? error : 0);
    if (of == Reach::Of::factors) return std::max(1.0, most);
    if (most == 0) return 1;
    return error < std::abs(value) ? std::max(1.0, 1 / (std::abs(value) - error)) : infinity;
}

double whole_power(const Binary& e) {
    const auto* power = as<Constant>(e.b);
    const bool is_product = power && power->value >= 1 && power->value <= most_power &&
                            power->value == std::floor(power->value);
    return is_product ? power->value : 0;
}

}  // namespace

Reach::Reach(const Diagram& diagram, const Extents& extents, const Rounding& rounding, Of of)
    : of_(of),
      rounding_(rounding),
      extents_(extents),
      extended_(diagram),
      definitions_(diagram.arrays.size(), nullptr),
      reduced_(diagram.arrays.size(), false),
      kinds_([&diagram](ArrayId a) { return diagram.array(a).type; }),
      most_of_array_(diagram.arrays.size(), -1),
      cells_(diagram.arrays.size()) {
    for (const Equation& e : diagram.equations) {
        definitions_[at(e.target)] = &e;
        reduced_[at(e.target)] = e.reduce || reads_reduced(e.body);
    }
    for (const Array& array : diagram.arrays)
        extended_.arrays.push_back({array.name, array.axes, DType::f64, ArrayRole::temporary, {}});
    extended_.arrays.push_back({"most", {}, DType::f64, ArrayRole::temporary, {}});
    extended_.equations.clear();
    if (of_ == Of::factors) reciprocals_ = std::make_unique<Reach>(diagram, extents, rounding, Of::reciprocals);
}

void Reach::widen(const Equation& equation, BoundedValues& values) {
    if (!is_float(extended_.array(equation.target).type)) return;
    const Part part = part_of(equation.body);
    const bool has_orders = !has_one_order(equation, part);
    std::vector<double>&error = values.error[at(equation.target)], &may = values.may[at(equation.target)];
    const bool is_open = reads_reduced(equation.body) || (has_orders && !is_product_of_inputs(equation));
    if (equation.reduce == ReduceOp::sum && is_open) {
        const Column& value = values.value[equation.target];
        for (std::size_t i = 0; i < may.size(); ++i)
            if (!std::isfinite(value[i])) may[i] = may_be_any;
    }
    if (!has_orders) return;
    values_ = &values;
    const double lost = part.products * rounding_.smallest;
    // Below this, what underflows is less than the smallest number's share of an ordinary one.
    const double harmless = std::min(rounding_.largest, 1 / (rounding_.unit * rounding_.unit));
    if (const double reach = most_of(equation); reach <= harmless) {
        for (double& e : error) e += e > 0 ? lost * reach : 0;
        return;
    }
    const Column reach = cells_of(equation);
    reciprocals_->values_ = &values;
    const Column shrinks = reciprocals_->cells_of(equation);  // by no more than this
    for (std::size_t i = 0; i < error.size(); ++i) {
        // What was not rounded anywhere is made of whole numbers, or 0.
        if (error[i] > 0 && shrinks[i] * rounding_.smallest > 1) error[i] += lost * reach[i];
        if (!(reach[i] <= rounding_.largest)) may[i] = may_be_any;
    }
}

/// A product of two whose factors both run over all that is summed has partial sums that are the definition's. The
/// terms of what is summed may be summed apart: Σ(A − B) is ΣA − n·B, where each may overflow by itself.
bool Reach::has_one_order(const Equation& equation, const Part& part) const {
    if (part.products == 0) return !equation.reduce || !part.has_terms;
    if (part.products > 1) return false;
    if (!equation.reduce) return true;
    const auto* product = as<Binary>(equation.body);
    return product && (product->op == BinaryOp::mul || product->op == BinaryOp::pow) &&
           all_of(equation.reduce_axes, [&](AxisId axis) {
               return depends_on_axis(product->a, axis) &&
                      (product->op == BinaryOp::pow || depends_on_axis(product->b, axis));
           });
}

/// But for finite numbers that are the same everywhere, so that the infinities among its terms are those of the sum in
/// every order.
bool Reach::is_product_of_inputs(const Equation& equation) const {
    std::vector<Expr> factors{equation.body};
    for (std::size_t i = 0; i < factors.size(); ++i) {
        const Expr e = factors[i];
        if (const auto* b = as<Binary>(e); b && b->op == BinaryOp::mul) {
            factors.push_back(b->a);
            factors.push_back(b->b);
            continue;
        }
        if (free_axes(e).empty() && read_arrays(e).empty()) continue;
        const auto* r = as<Read>(e);
        if (r == nullptr || !is_factor(r->array)) return false;
        for (const AxisId axis : equation.reduce_axes)
            if (!depends_on_axis(e, axis)) return false;
    }
    return true;
}

bool Reach::reads_reduced(const Expr& e) const {
    const std::vector<ArrayId> arrays = read_arrays(e);
    return any_of(arrays, [&](ArrayId a) { return reduced_[at(a)]; });
}

// ---- the reach as an expression

ArrayId Reach::reach_id(ArrayId array) const { return ArrayId::of(at(array) + definitions_.size()); }

bool Reach::is_factor(ArrayId array) const {
    const Equation* definition = definitions_[at(array)];
    return definition == nullptr || definition->reduce || !is_float(extended_.array(array).type);
}

Reach::Part Reach::factor(const Expr& e) {
    const Expr magnitude = unary(UnaryOp::abs, e);
    const Expr size = of_ == Of::factors ? times(magnitude, constant(margin))
                                         : binary(BinaryOp::div, constant(margin), magnitude);
    const Expr reach = select(binary(BinaryOp::lt, size, constant(infinity)), larger(constant(1), size), constant(1));
    factors_.emplace(reach, e);
    return {reach, 0};
}

Reach::Part Reach::part_of(const Expr& e) {
    if (const auto known = parts_.find(e); known != parts_.end()) return known->second;
    return parts_[e] = compute_part(e);
}

Reach::Part Reach::compute_part(const Expr& e) {
    if (const auto* c = as<Constant>(e)) return {constant(reach_of(c->value, 0, of_)), 0};
    if (is_integer(kinds_(e))) return factor(e);
    if (const auto* r = as<Read>(e)) {
        const Expr reach = read(reach_id(r->array), r->indices);
        if (is_factor(r->array)) return {reach, 0};
        const Part map = part_of(definitions_[at(r->array)]->body);
        return {reach, map.products, map.has_terms};
    }
    if (const auto* c = as<Cast>(e)) return part_of(c->a);
    if (const auto* s = as<Select>(e)) {
        const Part a = part_of(s->a), b = part_of(s->b);
        return {select(s->condition, a.reach, b.reach), std::max(a.products, b.products), a.has_terms || b.has_terms};
    }
    if (const auto* u = as<Unary>(e)) return u->op == UnaryOp::neg || u->op == UnaryOp::abs ? part_of(u->a) : factor(e);
    const auto* const b = as<Binary>(e);
    if (b == nullptr) return factor(e);
    switch (b->op) {
        case BinaryOp::add:
        case BinaryOp::sub: {
            const Part x = part_of(b->a), y = part_of(b->b);
            return {binary(BinaryOp::add, x.reach, y.reach), std::max(x.products, y.products), true};
        }
        case BinaryOp::max:
        case BinaryOp::min: {
            const Part x = part_of(b->a), y = part_of(b->b);
            return {larger(x.reach, y.reach), std::max(x.products, y.products)};
        }
        case BinaryOp::mul: {
            const Part x = part_of(b->a), y = part_of(b->b);
            const bool has_terms = x.has_terms || y.has_terms;
            return {times(times(x.reach, y.reach), constant(margin)), x.products + y.products + (has_terms ? 2 : 1),
                    has_terms};
        }
        case BinaryOp::div: {
            const Part x = part_of(b->a), y = factor(binary(BinaryOp::div, constant(1), b->b));
            return {times(x.reach, y.reach), x.products + 2, x.has_terms};
        }
        case BinaryOp::pow: {
            const double power = whole_power(*b);
            if (power == 0) return factor(e);
            const Part x = part_of(b->a);
            return {binary(BinaryOp::pow, x.reach, b->b), power * (x.products + 1) - 1, x.has_terms};
        }
        default: return factor(e);
    }
}

// ---- the largest reach, from the largest of each factor

double Reach::most_of_array(ArrayId array) {
    double& known = most_of_array_[at(array)];
    if (known >= 0) return known;
    if (!is_factor(array)) return known = most(part_of(definitions_[at(array)]->body).reach);
    known = 1;
    const Column& value = values_->value[array];
    for (std::size_t i = 0; i < value.size(); ++i) {
        const Bounded x = values_->at(array, i);
        known = std::max(known, reach_of(x.value, x.error, of_));
    }
    return known;
}

double Reach::most_of_factor(const Expr& factor) {
    const auto axes = free_axes(factor);
    Equation e{ArrayId::of(extended_.arrays.size() - 1), {}, axes, factor, {}, {}};
    if (!axes.empty()) e.reduce = ReduceOp::max;
    return evaluated(std::move(e))[0];
}

double Reach::most(const Expr& reach) {
    if (const auto known = most_.find(reach); known != most_.end()) return known->second;
    double result = 0;
    if (const auto* c = as<Constant>(reach))
        result = c->value;
    else if (const auto* r = as<Read>(reach))
        result = most_of_array(ArrayId::of(at(r->array) - definitions_.size()));
    else if (factors_.contains(reach))
        result = most_of_factor(reach);
    else if (const auto* s = as<Select>(reach))
        result = std::max(most(s->a), most(s->b));
    else if (const auto* b = as<Binary>(reach))
        result = apply(b->op, most(b->a), most(b->b));
    else
        throw InternalError("an unknown form of a reach");
    return most_[reach] = result;
}

double Reach::most_of(const Equation& equation) {
    const double each = most(part_of(equation.body).reach);
    double terms = 1;
    for (const AxisId axis : equation.reduce_axes) terms *= static_cast<double>(extents_[axis]);
    if (equation.reduce == ReduceOp::sum) return terms * each;
    return equation.reduce == ReduceOp::prod ? std::pow(each, terms) : each;
}

// ---- the reach of every value

const Column& Reach::cells_of(ArrayId array) {
    Column& known = cells_[at(array)];
    if (!known.empty()) return known;
    if (!is_factor(array)) return known = cells_of(*definitions_[at(array)]);
    std::vector<double> cells(values_->value[array].size());
    for (std::size_t i = 0; i < cells.size(); ++i) {
        const Bounded x = values_->at(array, i);
        cells[i] = reach_of(x.value, x.error, of_);
    }
    return known = Column(std::move(cells));
}

Column Reach::cells_of(const Equation& equation) {
    Equation e = equation;
    e.target = reach_id(equation.target);
    e.body = part_of(equation.body).reach;
    if (e.reduce == ReduceOp::min) e.reduce = ReduceOp::max;
    return evaluated(std::move(e));
}

Column Reach::evaluated(Equation equation) {
    Values& values = values_->value;
    const auto count = ArrayId::of(values.size());
    const auto target = equation.target;
    std::vector<ArrayId> reaches;
    for (const ArrayId a : read_arrays(equation.body))
        if (a >= count) reaches.push_back(ArrayId::of(a - count));
    for (const ArrayId a : reaches) static_cast<void>(cells_of(a));
    values.resize(extended_.arrays.size());
    for (const ArrayId a : reaches) std::swap(values[reach_id(a)], cells_[a]);
    extended_.equations = {std::move(equation)};
    evaluate(extended_, extents_, values);
    Column result = std::move(values[target]);
    for (const ArrayId a : reaches) std::swap(values[reach_id(a)], cells_[a]);
    values.resize(at(count));
    return result;
}

}  // namespace napkin
