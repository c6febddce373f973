#include "algebra/reduce.hpp"

#include "support/dtype.hpp"

namespace napkin {

namespace {
struct Reduction {
    std::string_view name;
    BinaryOp pairwise;
    double identity;
};
/// In the order of ReduceOp.
constexpr Reduction reductions[] = {{"sum", BinaryOp::add, 0},
                                    {"prod", BinaryOp::mul, 1},
                                    {"max", BinaryOp::max, -infinity},
                                    {"min", BinaryOp::min, infinity}};
const Reduction& of(ReduceOp op) { return reductions[static_cast<std::size_t>(op)]; }
}  // namespace

double identity(ReduceOp op) { return of(op).identity; }
BinaryOp pairwise(ReduceOp op) { return of(op).pairwise; }
std::string_view name(ReduceOp op) { return of(op).name; }
double apply(ReduceOp op, double a, double b) { return apply(pairwise(op), a, b); }

bool lies_at_an_end(ReduceOp op, const Expr& body) {
    return (op == ReduceOp::max || op == ReduceOp::min) && affine_form(body);
}

}  // namespace napkin
