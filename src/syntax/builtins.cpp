#include "syntax/builtins.hpp"

#include <array>
#include <numbers>

#include "algebra/scalar_function.hpp"
#include "support/ids.hpp"
#include "support/result.hpp"

namespace napkin {
namespace {

struct FunctionOfTwo {
    std::string_view word;
    BinaryOp op;
    bool takes_more = false;  ///< of three numbers that of the first two and the third, and so on
};
constexpr std::array functions_of_two{FunctionOfTwo{"max", BinaryOp::max, true},
                                      FunctionOfTwo{"min", BinaryOp::min, true}, FunctionOfTwo{"pow", BinaryOp::pow}};
const FunctionOfTwo* find_function_of_two(std::string_view word) {
    const auto* at = find_if(functions_of_two, [&](const FunctionOfTwo& f) { return f.word == word; });
    return at == functions_of_two.end() ? nullptr : at;
}
const ScalarFunction* find_function_of_one(std::string_view word) {
    for (const ScalarFunction& f : scalar_functions())
        if (f.is.is_called && f.name == word) return &f;
    return nullptr;
}
/// Besides functions of one number, of two and casts.
constexpr std::array<std::string_view, 10> others{"where", "size", "einsum", "rearrange", "reduce",
                                                  "grad",  "sum",  "prod",   "argmax",    "argmin"};

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

bool takes_arguments(std::string_view word, std::size_t count) {
    const FunctionOfTwo* f = find_function_of_two(word);
    return count == count_arguments(word) || (f && f->takes_more && count > 2);
}

bool is_scalar_function_of_two(std::string_view word) { return find_function_of_two(word) != nullptr; }

bool is_scalar_function(std::string_view word) {
    return word == "where" || is_scalar_function_of_two(word) || dtype_from_name(word) || find_function_of_one(word);
}

Expr call_scalar_function(std::string_view word, const std::vector<Expr>& arguments) {
    internal_check(takes_arguments(word, arguments.size()), "a function is called with too few or too many arguments");
    if (word == "where") return select(arguments[0], arguments[1], arguments[2]);
    if (const ScalarFunction* f = find_function_of_one(word)) return unary(f->op, arguments[0]);
    if (const FunctionOfTwo* f = find_function_of_two(word)) {
        Expr e = arguments[0];
        for (std::size_t i = 1; i < arguments.size(); ++i) e = binary(f->op, e, arguments[i]);
        return e;
    }
    return cast(dtype_from_name(word).value(), arguments[0]);
}

std::optional<double> find_constant(std::string_view word) {
    return word == "pi" ? std::optional(std::numbers::pi) : std::nullopt;
}

bool is_builtin(std::string_view word) { return is_scalar_function(word) || contains(others, word); }

std::vector<std::string> builtin_names() {
    std::vector<std::string> out(others.begin(), others.end());
    for (const ScalarFunction& f : scalar_functions())
        if (f.is.is_called) out.emplace_back(f.name);
    for (const FunctionOfTwo& f : functions_of_two) out.emplace_back(f.word);
    for (const DType type : all_dtypes) out.emplace_back(name(type));
    return out;
}

}  // namespace napkin
