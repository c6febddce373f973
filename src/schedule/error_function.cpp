#include "schedule/error_function.hpp"

#include <cmath>

#include "algebra/expr_walk.hpp"
#include "schedule/quotients.hpp"
#include "support/ids.hpp"

namespace napkin {
namespace {

bool is_unary(const Expr& e, UnaryOp op) {
    const auto* u = as<Unary>(e);
    return u && u->op == op;
}
bool is_erf(const Expr& e) { return is_unary(e, UnaryOp::erf); }
bool is_error_function(const Expr& e) { return is_erf(e) || is_unary(e, UnaryOp::erfc); }

/// c + erf, c − erf or erf − c with |c| >= 1.
bool is_beside_one(const Binary& b) {
    if (b.op != BinaryOp::add && b.op != BinaryOp::sub) return false;
    const auto* c = as<Constant>(is_erf(b.a) ? b.b : b.a);
    return (is_erf(b.a) || is_erf(b.b)) && c && std::abs(c->value) >= 1;
}

}  // namespace

const Unary* near_error_function(const ScheduledKernel& kernel, const Step& step) {
    if (!kernel.in_blocks() || kernel.is_double || !is_result_alone(kernel, step)) return nullptr;
    const auto& compute = std::get<Compute>(*step.statement);
    const DType type = kernel.variable(compute.variable).memory_type;
    if (!is_float(type) || bytes(type) > 2) return nullptr;
    const Unary* found = nullptr;
    bool is_single = true;
    MetNodes held;  // nodes that contain the function, itself among them
    for_each_postorder(compute.body, [&](const Expr& e) {
        const auto* b = as<Binary>(e);
        const auto* u = as<Unary>(e);
        bool has_it = false;
        for_each_child(*e, [&](const Expr& child) { has_it = has_it || held.contains(child.get()); });
        if (is_error_function(e)) {
            is_single = is_single && !found && !has_it;
            found = u;
        } else if (has_it) {
            const bool is_sum = b && is_beside_one(*b),
                       is_product = (b && b->op == BinaryOp::mul && !is_erf(b->a) && !is_erf(b->b)) ||
                                    (u && u->op == UnaryOp::neg && !is_erf(u->a));
            is_single = is_single && (is_sum || is_product);
        }
        if (has_it || is_error_function(e)) held.insert(e.get());
    });
    // Where the function is all that the statement computes, no factor hides the difference.
    return is_single && found && !is_error_function(compute.body) ? found : nullptr;
}

}  // namespace napkin
