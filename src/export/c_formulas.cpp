#include "export/c_formulas.hpp"

#include <fmt/format.h>

#include "algebra/number.hpp"
#include "algebra/scalar_function.hpp"
#include "support/result.hpp"

namespace napkin::c {
namespace {

/// What stands for the operator on doubles; empty: nothing in C.
std::string real_pattern(BinaryOp op) {
    switch (op) {
        case BinaryOp::add: return "({} + {})";
        case BinaryOp::sub: return "({} - {})";
        case BinaryOp::mul: return "({} * {})";
        case BinaryOp::div: return "({} / {})";
        case BinaryOp::floor_div: return "floor({} / {})";
        case BinaryOp::pow: return "pow({}, {})";
        case BinaryOp::min: return "fmin({}, {})";
        case BinaryOp::max: return "fmax({}, {})";
        default: return "";
    }
}
std::string real_pattern(UnaryOp op) {
    if (op == UnaryOp::neg) return "(-{})";
    if (op == UnaryOp::rsqrt) return "(1 / sqrt({}))";
    if (op == UnaryOp::exp2) return "exp2({})";
    const ScalarFunction& f = scalar_function(op);
    return f.in_cuda.empty() ? "" : fmt::format("{}({{}})", f.in_cuda);
}

}  // namespace

bool of_c(const Expr& formula) {
    if (const auto* u = as<Unary>(formula)) return !real_pattern(u->op).empty() && of_c(u->a);
    if (const auto* b = as<Binary>(formula)) return !real_pattern(b->op).empty() && of_c(b->a) && of_c(b->b);
    if (const auto* cast = as<Cast>(formula))
        return (cast->type == DType::f64 || cast->type == DType::f32) && of_c(cast->a);
    return as<Constant>(formula) || as<AxisSize>(formula);
}

std::string Formulas::whole(const Expr& formula) {
    if (const auto* c = as<Constant>(formula)) {
        const auto value = whole_of(*c);
        internal_check(value.has_value(), "export: a formula has no whole number");
        return *value > INT32_MAX ? fmt::format("INT64_C({})", *value)
               : *value < 0       ? fmt::format("({})", *value)
                                  : std::to_string(*value);
    }
    if (const auto* size = as<AxisSize>(formula)) return size_(size->axis);
    if (const auto found = known_.find(formula); found != known_.end()) return found->second;
    std::string text;
    if (const auto* s = as<Select>(formula)) {
        text = fmt::format("{} ? {} : {}", whole(s->condition), whole(s->a), whole(s->b));
    } else {
        const auto* b = as<Binary>(formula);
        internal_check(b != nullptr, "export: a formula of sizes has another operator");
        const bool is_call = b->op == BinaryOp::min || b->op == BinaryOp::max;
        const std::string_view op = b->op == BinaryOp::floor_div ? "/" : b->op == BinaryOp::eq ? "==" : name(b->op);
        text = fmt::format(fmt::runtime(is_call ? "{2}({0}, {1})" : "{0} {2} {1}"), whole(b->a), whole(b->b),
                           b->op == BinaryOp::min   ? "least"
                           : b->op == BinaryOp::max ? "most"
                                                    : op);
    }
    const std::string variable = fmt::format("v{}_", known_.size());
    line_(fmt::format("const int64_t {} = {};", variable, text));
    return known_[formula] = variable;
}

std::string Formulas::real(const Expr& formula) {
    if (const auto* c = as<Constant>(formula)) return fmt::format("{:a}", c->value);
    if (const auto* size = as<AxisSize>(formula)) return fmt::format("(double){}", size_(size->axis));
    if (const auto* u = as<Unary>(formula)) return fmt::format(fmt::runtime(real_pattern(u->op)), real(u->a));
    if (const auto* b = as<Binary>(formula))
        return fmt::format(fmt::runtime(real_pattern(b->op)), real(b->a), real(b->b));
    const auto* cast = as<Cast>(formula);
    internal_check(cast != nullptr && of_c(formula), "export: a formula of sizes has no C");
    return cast->type == DType::f32 ? fmt::format("(double)(float){}", real(cast->a)) : real(cast->a);
}

std::string Formulas::bits(const lower::LaunchNumber& number) {
    if (!number.is_real) return fmt::format("(uint64_t){}", whole(number.formula));
    return fmt::format("{}({})", number.is_double ? "bits_of_double" : "bits_of_float", real(number.formula));
}

}  // namespace napkin::c
