#include "schedule/integer_values.hpp"

#include <algorithm>
#include <cmath>

#include "algebra/expr_walk.hpp"
#include "algebra/scalar_function.hpp"
#include "support/ids.hpp"
#include "tile/work.hpp"

namespace napkin {
namespace {
/// Bounds stay far inside 64 bits, so that sums and products of them fit into 128.
constexpr std::int64_t far = std::int64_t{1} << 54;

std::optional<Interval> within(__int128 low, __int128 high) {
    if (low < -far || high > far) return std::nullopt;
    return Interval{static_cast<std::int64_t>(low), static_cast<std::int64_t>(high)};
}

std::optional<Interval> range_of(DType type) { return within(facts(type).least, facts(type).most); }

Interval hull(const Interval& a, const Interval& b) { return {std::min(a.low, b.low), std::max(a.high, b.high)}; }

}  // namespace

IntegerValues::IntegerValues(const ScheduledKernel& kernel)
    : kernel_(kernel),
      kinds_([&kernel](ArrayId read) { return kernel.variable(as_variable(read)).memory_type; }),
      largest_((std::int64_t{1} << (kernel.is_double ? 53 : 24)) - 1),
      variable_bounds_(kernel.layouts.size()),
      known_(kernel.layouts.size()),
      whole_(kernel.layouts.size()) {
    const auto is_integer_variable = [&](VariableId v) { return !is_float(kernel.variable(v).memory_type); };
    const auto kind_of = [&](VariableId v) {
        return kernel.variable(v).memory_type == DType::i64 ? Kind::i64 : Kind::i32;
    };
    // What is loaded may be any integer of its type.
    for (const Step& step : kernel.steps) {
        const auto* load = std::get_if<Load>(step.statement);
        if (!load || !is_integer_variable(load->variable)) continue;
        const std::size_t v = at(load->variable);
        variable_bounds_[v] = range_of(kernel.variable(load->variable).memory_type);
        known_[v] = fits(variable_bounds_[v], kind_of(load->variable));
        whole_[v] = !known_[v];
    }
    // A state is read before the statement that computes it, so its bounds may grow for some rounds. Bounds that grow
    // in the last round, too, are not known.
    constexpr int rounds = 4;
    for (int round = 0; round < rounds; ++round) {
        bool changed = false;
        for (const Step& step : kernel.steps) {
            const auto* compute = std::get_if<Compute>(step.statement);
            if (!compute || !is_integer_variable(compute->variable) || whole_[at(compute->variable)]) continue;
            const std::size_t v = at(compute->variable);
            bounds_.clear();
            Bounds found = bounds_of_statement(*compute);
            if (found && known_[v]) found = hull(*found, *variable_bounds_[v]);
            const bool stays = known_[v] && found && *found == *variable_bounds_[v];
            if (stays) continue;
            changed = true;
            if (!fits(found, kind_of(compute->variable)) || round + 1 == rounds || needs_integers(*compute)) {
                whole_[v] = true;
                variable_bounds_[v].reset();
            } else {
                variable_bounds_[v] = found;
                known_[v] = true;
            }
        }
        if (!changed) break;
    }
    bounds_.clear();
}

IntegerValues::Bounds IntegerValues::bounds_of_statement(const Compute& compute) {
    Bounds body = bounds(compute.body);
    if (!body || !compute.reduce) return body;
    const auto* own = compute.carry ? as<Read>(compute.carry) : nullptr;
    const bool carries_on = own && own->variable() == compute.variable;
    switch (*compute.reduce) {
        case ReduceOp::max:
        case ReduceOp::min: {
            if (!compute.carry || carries_on) return body;
            const Bounds before = bounds(compute.carry);
            return before ? Bounds(hull(*before, *body)) : std::nullopt;
        }
        case ReduceOp::sum: {
            if (compute.carry && !carries_on) return std::nullopt;
            const std::int64_t terms = total_terms(kernel_, compute);
            return within(std::min<__int128>(0, static_cast<__int128>(body->low) * terms),
                          std::max<__int128>(0, static_cast<__int128>(body->high) * terms));
        }
        case ReduceOp::prod: return std::nullopt;
    }
    return std::nullopt;
}

namespace {
/// A quick test of the expression's first nodes. True: it is a real number. False: it is a small constant. None:
/// integers of another kind may be in it, or an operation on two integers. Most statements pass the test, and all are
/// asked for every schedule that is tried.
std::optional<bool> is_plainly_real(const ScheduledKernel& kernel, const Expr& e, int& nodes) {
    constexpr int most_nodes = 64;
    constexpr double held = 1 << 24;
    if (++nodes > most_nodes) return std::nullopt;
    if (const auto* r = as<Read>(e))
        return is_float(kernel.variable(r->variable()).memory_type) ? std::optional(true) : std::nullopt;
    if (const auto* c = as<Constant>(e)) return std::abs(c->value) < held ? std::optional(false) : std::nullopt;
    if (const auto* u = as<Unary>(e)) {
        const auto of = is_plainly_real(kernel, u->a, nodes);
        return gives_integer(u->op) || !of || !*of ? std::nullopt : of;
    }
    if (const auto* s = as<Select>(e)) {
        const auto condition = is_plainly_real(kernel, s->condition, nodes), a = is_plainly_real(kernel, s->a, nodes),
                   b = is_plainly_real(kernel, s->b, nodes);
        return condition && a && b ? std::optional(*a || *b) : std::nullopt;
    }
    const auto* binary = as<Binary>(e);
    if (!binary || binary->op == BinaryOp::floor_div || binary->op == BinaryOp::mod) return std::nullopt;
    const auto a = is_plainly_real(kernel, binary->a, nodes), b = is_plainly_real(kernel, binary->b, nodes);
    if (!a || !b || (!*a && !*b)) return std::nullopt;
    return !is_comparison(binary->op) && binary->op != BinaryOp::logical_and && binary->op != BinaryOp::logical_or;
}
}  // namespace

bool IntegerValues::needs_integers(const Compute& compute) {
    if (whole_[at(compute.variable)]) return true;
    int nodes = 0;
    if (is_plainly_real(kernel_, compute.body, nodes) && (!compute.carry || is_plainly_real(kernel_, compute.carry, nodes)))
        return false;
    bool needed = false;
    const auto look = [&](const Expr& e) {
        if (!e) return;
        const auto node = [&](const Expr& n) {
            const auto is_wide = [&](const Expr& child) { return is_integer(kinds_(child)) && !is_small(child); };
            if (const auto* b = as<Binary>(n); b && is_comparison(b->op)) {
                // Where real numbers hold one side exactly, the other may be rounded: rounding keeps the order.
                needed |= kinds_(b->a) != Kind::real && kinds_(b->b) != Kind::real && is_wide(b->a) && is_wide(b->b);
                return;
            }
            // A leaf alone may become a real number. Integer arithmetic on a wide one makes a wide node.
            const bool leaf = as<Read>(n) || as<Constant>(n) || as<AxisIndex>(n) || as<AxisSize>(n);
            needed |= !leaf && is_wide(n);
            const auto* c = as<Cast>(n);
            needed |= c && !is_float(c->type) && is_wide(c->a);
            const auto* b = as<Binary>(n);
            needed |= b && (b->op == BinaryOp::floor_div || b->op == BinaryOp::mod) && is_integer(kinds_(n)) &&
                      !divides_in_lanes(*b);
        };
        for_each_postorder(e, node, Walk::values);
    };
    look(compute.body);
    look(compute.carry);
    return needed;
}

bool IntegerValues::divides_in_lanes(const Binary& b) {
    return kernel_.unit.warp_threads == 0 && is_power_of_two(b.b) && is_small(b.a);
}

namespace {
bool is_within(DType type, const std::optional<Interval>& b) {
    return b && is_in_range(type, b->low) && is_in_range(type, b->high);
}
}  // namespace

bool IntegerValues::keeps_all(DType type, const Expr& e) {
    return !is_float(type) && is_integer(kinds_(e)) && is_within(type, bounds(e));
}

bool IntegerValues::may_be_long(const Compute& compute) {
    return kernel_.variable(compute.variable).memory_type == DType::i64 &&
           !is_within(DType::i32, bounds_of_statement(compute));
}

bool IntegerValues::is_small(const Expr& e) { return is_integer(kinds_(e)) && fits(bounds(e), kinds_(e)); }

bool IntegerValues::fits(const Bounds& b, Kind kind) const {
    if (!b || b->low < -largest_ || b->high > largest_) return false;
    return kind != Kind::i32 || (is_in_range(DType::i32, b->low) && is_in_range(DType::i32, b->high));
}

IntegerValues::Bounds IntegerValues::bounds(const Expr& e) {
    if (const auto found = bounds_.find(e.get()); found != bounds_.end()) return found->second;
    for_each_postorder(
        e,
        [&](const Expr& node) {
            Bounds b;
            if (const auto* c = as<Constant>(node)) {
                if (const auto n = whole_of(*c)) b = within(*n, *n);
            } else if (const auto* index = as<AxisIndex>(node)) {
                b = within(0, kernel_.extent(index->axis) - 1);
            } else if (const auto* size = as<AxisSize>(node)) {
                b = within(kernel_.extent(size->axis), kernel_.extent(size->axis));
            } else if (const auto* r = as<Read>(node)) {
                // A variable whose bounds are not found yet counts as 0.
                if (!whole_[at(r->array)]) b = known_[at(r->array)] ? variable_bounds_[at(r->array)] : Interval{0, 0};
            } else if (const auto* u = as<Unary>(node)) {
                const Bounds a = bounds_[u->a.get()];
                if (gives_truth(u->op)) b = Interval{0, 1};
                if (a && u->op == UnaryOp::neg) b = Interval{-a->high, -a->low};
                if (a && gives_integer(u->op)) b = a;
                if (a && u->op == UnaryOp::abs) b = Interval{0, std::max(std::abs(a->low), std::abs(a->high))};
            } else if (const auto* op = as<Binary>(node)) {
                b = bounds_of_binary(*op);
            } else if (const auto* s = as<Select>(node)) {
                const Bounds x = bounds_[s->a.get()], y = bounds_[s->b.get()];
                if (x && y) b = hull(*x, *y);
            } else if (const auto* t = as<Cast>(node)) {
                // Inside the type's range nothing wraps.
                if (keeps_all(t->type, t->a))
                    b = bounds_[t->a.get()];
                else if (!is_float(t->type))
                    b = range_of(t->type);
            }
            bounds_[node.get()] = b;
        },
        Walk::values);
    return bounds_[e.get()];
}

IntegerValues::Bounds IntegerValues::bounds_of_binary(const Binary& b) {
    if (is_comparison(b.op) || b.op == BinaryOp::logical_and || b.op == BinaryOp::logical_or) return Interval{0, 1};
    const Bounds x = bounds_[b.a.get()], y = bounds_[b.b.get()];
    if (!x || !y) return std::nullopt;
    using Wide = __int128;
    switch (b.op) {
        case BinaryOp::add: return within(Wide{x->low} + y->low, Wide{x->high} + y->high);
        case BinaryOp::sub: return within(Wide{x->low} - y->high, Wide{x->high} - y->low);
        case BinaryOp::mul: {
            const auto [low, high] = std::minmax(
                {Wide{x->low} * y->low, Wide{x->low} * y->high, Wide{x->high} * y->low, Wide{x->high} * y->high});
            return within(low, high);
        }
        case BinaryOp::min: return Interval{std::min(x->low, y->low), std::min(x->high, y->high)};
        case BinaryOp::max: return Interval{std::max(x->low, y->low), std::max(x->high, y->high)};
        case BinaryOp::mod:
            if (y->low > 0) return Interval{0, y->high - 1};
            [[fallthrough]];
        case BinaryOp::floor_div: {
            const std::int64_t most = std::max({std::abs(x->low), std::abs(x->high), std::abs(y->low), std::abs(y->high)});
            return Interval{-most, most};
        }
        default: return std::nullopt;
    }
}

}  // namespace napkin
