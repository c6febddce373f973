#include "schedule/exponentials.hpp"

#include <fmt/format.h>

#include "algebra/expr_walk.hpp"
#include "schedule/fragments.hpp"
#include "schedule/ones_column.hpp"
#include "support/ids.hpp"
#include "support/ranges.hpp"

namespace napkin {
namespace {

/// The part of the rounding of a factor that the polynomial's error may be.
constexpr double share_of_rounding = 0.25;

bool depends_on(const ScheduledKernel& kernel, const Expr& e, AxisId axis) {
    bool found = false;
    visit(e, [&](const Expr& part) {
        if (const auto* index = as<AxisIndex>(part)) found |= index->axis == axis;
        if (const auto* r = as<Read>(part))
            found |= any_of(r->indices, [&](const Index& i) { return i.depends_on(axis); });
    });
    return found && kernel.extent(axis) > 1;
}

/// What an expression makes of its exponentials' relative errors: no more than the largest of them.
struct Carried {
    bool has_any = false;      ///< exponentials
    bool is_positive = false;  ///< or 0
};
std::optional<Carried> carried(const Expr& e) {
    if (const auto* c = as<Constant>(e)) return Carried{false, c->value >= 0};
    if (as<AxisSize>(e)) return Carried{false, true};
    if (as<Read>(e) || as<AxisIndex>(e)) return Carried{};
    if (const auto* c = as<Cast>(e)) return carried(c->a);
    if (const auto* u = as<Unary>(e)) {
        const auto a = carried(u->a);
        if (a && !a->has_any) return Carried{u->op == UnaryOp::exp, u->op == UnaryOp::exp};
        return a && u->op == UnaryOp::neg ? std::optional(Carried{true, false}) : std::nullopt;
    }
    if (const auto* s = as<Select>(e)) {
        const auto c = carried(s->condition), a = carried(s->a), b = carried(s->b);
        if (!c || c->has_any || !a || !b) return std::nullopt;
        return Carried{a->has_any || b->has_any, a->is_positive && b->is_positive};
    }
    const auto* b = as<Binary>(e);
    const auto x = b ? carried(b->a) : std::nullopt, y = b ? carried(b->b) : std::nullopt;
    if (!x || !y) return std::nullopt;
    const bool has_any = x->has_any || y->has_any, are_positive = x->is_positive && y->is_positive;
    switch (b->op) {
        case BinaryOp::mul:
        case BinaryOp::div:
            return x->has_any && y->has_any ? std::nullopt : std::optional(Carried{has_any, are_positive});
        case BinaryOp::add:
            return has_any && !are_positive ? std::nullopt : std::optional(Carried{has_any, are_positive});
        default: return has_any ? std::nullopt : std::optional(Carried{});
    }
}

/// The type to which products round the statement's values, the finest of several, where nothing else tells its exponentials' errors apart from that rounding;
/// else none.
std::optional<DType> rounded_by_all(const ScheduledKernel& kernel, const Step& step) {
    const auto& compute = std::get<Compute>(*step.statement);
    if (compute.reduce || compute.carry || !carried(compute.body)) return std::nullopt;
    std::optional<DType> type;
    for (const Step& reader : kernel.steps) {
        const auto* store = std::get_if<Store>(reader.statement);
        if (store && store->variable == compute.variable) return std::nullopt;
        if (reader.atom < 0 || &reader == &step || !reads(reader, compute.variable)) continue;
        const auto& of_reader = std::get<Compute>(*reader.statement);
        const auto product = kernel.atom(reader).kind == AtomKind::matrix ? matrix_product(kernel, reader) : std::nullopt;
        if (product && product->a_in_registers && product->a->variable() == compute.variable) {
            if (!type || epsilon(product->type) < epsilon(*type)) type = product->type;
        } else if (of_reader.reduce != ReduceOp::sum || !as<Read>(of_reader.body) ||
                   !why_apart_from_products(kernel, reader).empty()) {
            return std::nullopt;
        }
    }
    return type;
}

const PowerPolynomial& enough_for(const std::optional<DType>& rounded) {
    for (const PowerPolynomial& p : power_polynomials)
        if (rounded && p.error <= share_of_rounding * epsilon(*rounded) / 2) return p;
    return power_polynomials.back();
}

}  // namespace

std::variant<std::int64_t, std::string> exponentials_of_row(const ScheduledKernel& kernel, const Step& step) {
    const std::string& name = kernel.variable(variable_of(step)).name;
    if (!kernel.on_matrix_unit() || kernel.atom(step).kind != AtomKind::fragment)
        return fmt::format("{} is no fragment atom", name);
    if (kernel.is_double) return std::string("powers of two of 64 bits are no instruction either way");
    const AxisId columns = columns_of_statement(kernel, step);
    bool has_any = false;
    if (columns >= 0)
        visit(std::get<Compute>(*step.statement).body, [&](const Expr& e) {
            const auto* u = as<Unary>(e);
            has_any |= u && u->op == UnaryOp::exp && depends_on(kernel, u->a, columns);
        });
    if (!has_any) return fmt::format("{} has no exponential that differs from column to column", name);
    const std::int64_t n = kernel.runs_in_parts(step) ? kernel.column_parts->columns
                                                      : columns_of(kernel, columns, step.scope);
    return n / fragment_columns * 2;
}

std::int64_t nearest_divisor(std::int64_t n, std::int64_t wanted) {
    std::int64_t best = 1;
    for (std::int64_t d = 2; d <= n; ++d)
        if (n % d == 0 && std::abs(d - wanted) < std::abs(best - wanted)) best = d;
    return best;
}

std::optional<PolynomialPart> polynomial_part(const ScheduledKernel& kernel, const Step& step) {
    if (step.atom < 0 || kernel.atom(step).polynomials == 0) return std::nullopt;
    const Atom& atom = kernel.atom(step);
    if (std::holds_alternative<std::string>(exponentials_of_row(kernel, step))) return std::nullopt;
    return PolynomialPart{atom.polynomials, atom.polynomials_of, enough_for(rounded_by_all(kernel, step))};
}

double error_of_polynomials(const ScheduledKernel& kernel, VariableId id) {
    double most = 0;
    for (const Step& step : kernel.steps) {
        if (step.atom < 0 || kernel.atom(step).polynomials == 0 || variable_of(step) != id) continue;
        const auto part = polynomial_part(kernel, step);
        if (part && part->polynomial != power_polynomials.back()) most = std::max(most, part->polynomial.error);
    }
    return most;
}

}  // namespace napkin
