#include "emit/operator_text.hpp"

#include "support/result.hpp"

namespace napkin {

OperatorText operator_text(UnaryOp op) {
    if (op == UnaryOp::neg) return {"-{0}", 3, {4, 0}};
    if (op == UnaryOp::logical_not) return {"!{0}", 3, {3, 0}};
    return {std::string(name(op)) + "({0})"};
}

OperatorText operator_text(BinaryOp op) {
    switch (op) {
        case BinaryOp::add: return {"{0} + {1}", 1, {1, 2}};
        case BinaryOp::sub: return {"{0} - {1}", 1, {1, 2}};
        case BinaryOp::mul: return {"{0} * {1}", 2, {2, 3}};
        case BinaryOp::div: return {"{0} / {1}", 2, {2, 3}};
        case BinaryOp::floor_div: return {"floor({0} / {1})", 4, {2, 3}};
        case BinaryOp::mod: return {"fmod({0}, {1})"};
        case BinaryOp::pow: return {"pow({0}, {1})"};
        case BinaryOp::min: return {"minimum({0}, {1})"};
        case BinaryOp::max: return {"maximum({0}, {1})"};
        case BinaryOp::lt: return {"{0} < {1}", 0, {1, 1}};
        case BinaryOp::le: return {"{0} <= {1}", 0, {1, 1}};
        case BinaryOp::gt: return {"{0} > {1}", 0, {1, 1}};
        case BinaryOp::ge: return {"{0} >= {1}", 0, {1, 1}};
        case BinaryOp::eq: return {"{0} == {1}", 0, {1, 1}};
        case BinaryOp::ne: return {"{0} != {1}", 0, {1, 1}};
        // Conditions are combined lane by lane; a single one is no slower.
        case BinaryOp::logical_and: return {"{0} & {1}", -1, {1, 1}};
        case BinaryOp::logical_or: return {"{0} | {1}", -1, {1, 1}};
    }
    throw InternalError("unknown binary operator");
}

std::string wrapping_function(DType type) { return "wrap_" + std::string(name(type)); }
std::string rounding_function(DType type) { return "round_" + std::string(name(type)); }

}  // namespace napkin
