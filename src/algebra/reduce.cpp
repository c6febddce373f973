#include "algebra/reduce.hpp"

#include <cmath>
#include <limits>

#include "support/result.hpp"

namespace napkin {

double identity(ReduceOp op) {
    switch (op) {
        case ReduceOp::sum: return 0;
        case ReduceOp::prod: return 1;
        case ReduceOp::max: return -std::numeric_limits<double>::infinity();
        case ReduceOp::min: return std::numeric_limits<double>::infinity();
    }
    throw InternalError("unknown reduction");
}

double apply(ReduceOp op, double a, double b) {
    switch (op) {
        case ReduceOp::sum: return a + b;
        case ReduceOp::prod: return a * b;
        case ReduceOp::max: return std::isnan(a) || a > b ? a : b;  // a NaN in either place stays
        case ReduceOp::min: return std::isnan(a) || a < b ? a : b;
    }
    throw InternalError("unknown reduction");
}

bool lies_at_an_end(ReduceOp op, const Expr& body) {
    return (op == ReduceOp::max || op == ReduceOp::min) && affine_form(body);
}

BinaryOp pairwise(ReduceOp op) {
    switch (op) {
        case ReduceOp::sum: return BinaryOp::add;
        case ReduceOp::prod: return BinaryOp::mul;
        case ReduceOp::max: return BinaryOp::max;
        case ReduceOp::min: return BinaryOp::min;
    }
    throw InternalError("unknown reduction");
}

std::string_view name(ReduceOp op) {
    switch (op) {
        case ReduceOp::sum: return "sum";
        case ReduceOp::prod: return "prod";
        case ReduceOp::max: return "max";
        case ReduceOp::min: return "min";
    }
    throw InternalError("unknown reduction");
}

}  // namespace napkin
