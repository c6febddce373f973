#include "emit/emit_text.hpp"

#include <fmt/format.h>

#include <cctype>
#include <cmath>
#include <limits>

namespace napkin::writers {
namespace {

// Keywords, and what emitted functions call or declare themselves.
constexpr const char* reserved[] = {"alignas",
                                    "alignof",
                                    "and",
                                    "and_eq",
                                    "asm",
                                    "auto",
                                    "bitand",
                                    "bitor",
                                    "bool",
                                    "break",
                                    "case",
                                    "catch",
                                    "char",
                                    "char8_t",
                                    "char16_t",
                                    "char32_t",
                                    "class",
                                    "compl",
                                    "concept",
                                    "const",
                                    "consteval",
                                    "constexpr",
                                    "constinit",
                                    "const_cast",
                                    "continue",
                                    "co_await",
                                    "co_return",
                                    "co_yield",
                                    "decltype",
                                    "default",
                                    "delete",
                                    "do",
                                    "double",
                                    "dynamic_cast",
                                    "else",
                                    "enum",
                                    "explicit",
                                    "export",
                                    "extern",
                                    "false",
                                    "float",
                                    "for",
                                    "friend",
                                    "goto",
                                    "if",
                                    "inline",
                                    "int",
                                    "long",
                                    "mutable",
                                    "namespace",
                                    "new",
                                    "noexcept",
                                    "not",
                                    "not_eq",
                                    "nullptr",
                                    "operator",
                                    "or",
                                    "or_eq",
                                    "private",
                                    "protected",
                                    "public",
                                    "register",
                                    "reinterpret_cast",
                                    "requires",
                                    "return",
                                    "short",
                                    "signed",
                                    "sizeof",
                                    "static",
                                    "static_assert",
                                    "static_cast",
                                    "struct",
                                    "switch",
                                    "template",
                                    "this",
                                    "thread_local",
                                    "throw",
                                    "true",
                                    "try",
                                    "typedef",
                                    "typeid",
                                    "typename",
                                    "union",
                                    "unsigned",
                                    "using",
                                    "virtual",
                                    "void",
                                    "volatile",
                                    "wchar_t",
                                    "while",
                                    "xor",
                                    "xor_eq",
                                    "EACH",
                                    "Index",
                                    "Vec",
                                    "abs",
                                    "acc",
                                    "arena",
                                    "base",
                                    "bf16",
                                    "copy_in",
                                    "copy_out",
                                    "cos",
                                    "e4m3",
                                    "e5m2",
                                    "erf",
                                    "exp",
                                    "f16",
                                    "f32",
                                    "f64",
                                    "fill",
                                    "first_group",
                                    "floor",
                                    "floor_div",
                                    "floor_mod",
                                    "lane",
                                    "load_each",
                                    "nowhere",
                                    "group",
                                    "i",
                                    "infinity",
                                    "inputs",
                                    "int32_t",
                                    "int64_t",
                                    "iota",
                                    "keep",
                                    "j",
                                    "lanes",
                                    "last_group",
                                    "load",
                                    "load_strided",
                                    "log",
                                    "main",
                                    "mask",
                                    "max_index",
                                    "max_of",
                                    "maximum",
                                    "min_index",
                                    "min_of",
                                    "minimum",
                                    "napkin_cpu",
                                    "not_a_number",
                                    "number",
                                    "outputs",
                                    "pow",
                                    "prod",
                                    "real",
                                    "round_bf16",
                                    "round_e4m3",
                                    "round_e5m2",
                                    "round_f16",
                                    "round_f32",
                                    "round_i32",
                                    "rsqrt",
                                    "sin",
                                    "splat",
                                    "splat_mask",
                                    "sqrt",
                                    "std",
                                    "store",
                                    "strides",
                                    "sum",
                                    "tanh",
                                    "total",
                                    "truth",
                                    "value",
                                    "vec",
                                    "where",
                                    "wrap",
                                    "whole_add",
                                    "whole_sub",
                                    "whole_mul",
                                    "whole_neg",
                                    "whole_abs",
                                    "whole_div",
                                    "whole_mod",
                                    "whole_pow",
                                    "whole_of",
                                    "convert",
                                    "fmod",
                                    "load_real",
                                    "load_strided_real",
                                    "block",
                                    "divide",
                                    "put",
                                    "sync",
                                    "scratch",
                                    "arguments",
                                    "Arguments",
                                    "blockIdx",
                                    "threadIdx",
                                    "gridDim",
                                    "blockDim",
                                    "num_warps",
                                    "num_threads",
                                    "shared_memory",
                                    "clear",
                                    "copy_run",
                                    "copies_arrive",
                                    "group_after"};

}  // namespace

Names::Names() : taken_(std::begin(reserved), std::end(reserved)) {}

std::string Names::add(std::string_view wanted) {
    std::string base;
    for (const char c : wanted)
        if (std::isalnum(static_cast<unsigned char>(c)) || c == '_')
            base += c;
        else
            base += fmt::format("x{:02x}", static_cast<unsigned char>(c));
    if (base.empty() || std::isdigit(static_cast<unsigned char>(base[0])) || base[0] == '_') base = "v" + base;
    // Double underscores and NAPKIN_ macros belong to others.
    for (std::size_t at; (at = base.find("__")) != std::string::npos;) base.replace(at, 2, "_u");
    if (base.starts_with("NAPKIN")) base = "v" + base;
    if (base.ends_with('_')) base += "u";
    std::string name = base;
    for (int k = 2; !taken_.insert(name).second; ++k) name = fmt::format("{}_{}", base, k);
    return name;
}

std::string whole_literal(std::int64_t value) {
    if (value == std::numeric_limits<std::int64_t>::min()) return fmt::format("int64_t({} - 1)", value + 1);
    return fmt::format("int64_t({})", value);
}

std::string literal(double value, bool is_double) {
    if (std::isnan(value)) return "not_a_number<real>";
    if (!is_double && std::isfinite(value)) value = static_cast<double>(static_cast<float>(value));
    if (std::isinf(value)) return value > 0 ? "infinity<real>" : "-infinity<real>";
    std::string text = is_double ? fmt::format("{}", value) : fmt::format("{}", static_cast<float>(value));
    if (text.find_first_of(".e") == std::string::npos) text += ".0";
    return is_double ? text : text + "f";
}

void Lines::operator()(std::string_view line) {
    if (!line.empty() && line[0] != '#') text_.append(4 * static_cast<std::size_t>(depth_), ' ');
    text_ += line;
    text_ += '\n';
}

void Lines::open(std::string_view line) {
    (*this)(line.empty() ? std::string("{") : fmt::format("{} {{", line));
    ++depth_;
}

void Lines::close(std::string_view after) {
    --depth_;
    (*this)("}" + std::string(after));
}

}  // namespace napkin::writers
