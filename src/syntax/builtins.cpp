#include "syntax/builtins.hpp"

#include <array>

#include "support/ids.hpp"
#include "support/result.hpp"

namespace napkin {
namespace {

constexpr std::array functions_of_one{UnaryOp::abs, UnaryOp::cos,   UnaryOp::erf, UnaryOp::exp,  UnaryOp::floor,
                                      UnaryOp::log, UnaryOp::rsqrt, UnaryOp::sin, UnaryOp::sqrt, UnaryOp::tanh};
struct FunctionOfTwo {
    std::string_view word;
    BinaryOp op;
};
constexpr std::array functions_of_two{FunctionOfTwo{"max", BinaryOp::max}, FunctionOfTwo{"min", BinaryOp::min},
                                      FunctionOfTwo{"pow", BinaryOp::pow}};
/// Besides functions of one number, of two and casts.
constexpr std::array<std::string_view, 9> others{"where", "size", "einsum", "rearrange", "reduce",
                                                 "sum",   "prod", "argmax", "argmin"};

}  // namespace

std::optional<ReduceOp> find_reduction(std::string_view word) {
    for (const ReduceOp op : {ReduceOp::sum, ReduceOp::prod, ReduceOp::max, ReduceOp::min}) {
        if (name(op) == word) return op;
    }
    return std::nullopt;
}

std::size_t count_arguments(std::string_view word) {
    if (word == "where") return 3;
    return is_scalar_function_of_two(word) ? 2 : 1;
}

bool is_scalar_function_of_two(std::string_view word) {
    return any_of(functions_of_two, [&](const FunctionOfTwo& f) { return f.word == word; });
}

bool is_scalar_function(std::string_view word) {
    return word == "where" || is_scalar_function_of_two(word) || dtype_from_name(word) ||
           any_of(functions_of_one, [&](UnaryOp op) { return name(op) == word; });
}

Expr call_scalar_function(std::string_view word, const std::vector<Expr>& arguments) {
    internal_check(arguments.size() == count_arguments(word),
                   "a function is called with too few or too many arguments");
    if (word == "where") return select(arguments[0], arguments[1], arguments[2]);
    for (const FunctionOfTwo& f : functions_of_two)
        if (f.word == word) return binary(f.op, arguments[0], arguments[1]);
    for (const UnaryOp op : functions_of_one)
        if (name(op) == word) return unary(op, arguments[0]);
    return cast(dtype_from_name(word).value(), arguments[0]);
}

bool is_builtin(std::string_view word) { return is_scalar_function(word) || contains(others, word); }

std::vector<std::string> builtin_names() {
    std::vector<std::string> out(others.begin(), others.end());
    for (const UnaryOp op : functions_of_one) out.emplace_back(name(op));
    for (const FunctionOfTwo& f : functions_of_two) out.emplace_back(f.word);
    for (const DType type : all_dtypes) out.emplace_back(name(type));
    return out;
}

}  // namespace napkin
