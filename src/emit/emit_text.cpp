#include "emit/emit_text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <limits>
#include <set>
#include <string_view>

namespace napkin::writers {
namespace {

// Keywords, and what emitted functions declare themselves or find around them.
constexpr std::string_view reserved = R"(
alignas alignof and and_eq asm auto bitand bitor bool break case catch char char8_t char16_t char32_t class compl concept const
consteval constexpr constinit const_cast continue co_await co_return co_yield decltype default delete do double dynamic_cast else
enum explicit export extern false float for friend goto if inline int long mutable namespace new noexcept not not_eq nullptr
operator or or_eq private protected public register reinterpret_cast requires return short signed sizeof static static_assert
static_cast struct switch template this thread_local throw true try typedef typeid typename union unsigned using virtual void
volatile wchar_t while xor xor_eq

acc arena base bf16 tf32 e4m3 e5m2 f16 f32 f64 lane nowhere group i inputs j last_group main max_of min_of outputs prod real round_i32
std strides sum total value whole_add block scratch queue arguments blockIdx threadIdx gridDim blockDim shared_memory
sum_over_row prod_over_row max_of_over_row min_of_over_row fragment_row fragment_column
)";

/// Longest name of a parameter in a prelude. Longer names are taken where the prelude calls them, gives them arguments
/// in angle brackets, or declares them as types.
constexpr std::size_t longest_parameter = 2;

bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; }

}  // namespace

Names::Names(std::string_view prelude) {
    for (std::size_t at = 0; at < reserved.size();) {
        const std::size_t begin = reserved.find_first_not_of(" \n", at), end = reserved.find_first_of(" \n", begin);
        if (begin == std::string_view::npos) break;
        taken_.emplace(reserved.substr(begin, end - begin));
        at = end;
    }
    std::string_view before;
    for (std::size_t at = 0, end = 0; at < prelude.size(); at = std::max(end, at + 1)) {
        end = at;
        while (end < prelude.size() && is_word(prelude[end])) ++end;
        if (end == at) continue;
        const std::string_view word = prelude.substr(at, end - at);
        const bool is_called = end < prelude.size() && (prelude[end] == '(' || prelude[end] == '<');
        if (word.size() > longest_parameter && (is_called || before == "struct" || before == "using" || before == "namespace" ||
                                                before == "define" || before.starts_with("NAPKIN_")))
            taken_.emplace(word);
        before = word;
    }
}

std::string Names::add(std::string_view wanted) {
    std::string base;
    for (const char c : wanted)
        if (std::isalnum(static_cast<unsigned char>(c)) || c == '_')
            base += c;
        else
            base += fmt::format("x{:02x}", static_cast<unsigned char>(c));
    if (base.empty() || std::isdigit(static_cast<unsigned char>(base[0])) || base[0] == '_') base = "v" + base;
    // Double underscores, NAPKIN_ macros and matrix instructions belong to others.
    for (std::size_t at; (at = base.find("__")) != std::string::npos;) base.replace(at, 2, "_u");
    if (base.starts_with("NAPKIN") || base.starts_with("mma_") || base.starts_with("wgmma_")) base = "v" + base;
    if (base.ends_with('_')) base += "u";
    std::string name = base;
    for (int k = 2; !taken_.insert(name).second; ++k) name = fmt::format("{}_{}", base, k);
    return name;
}

std::string one_less(const std::string& number) {
    std::int64_t value = 0;
    const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), value);
    return error == std::errc() ? std::to_string(value - 1) : number + " - 1";
}

std::string integer_literal(std::int64_t value) {
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

bool mentions_name(std::string_view text, std::string_view name) {
    for (std::size_t at = text.find(name); at != std::string_view::npos; at = text.find(name, at + 1)) {
        const std::size_t end = at + name.size();
        if ((at == 0 || !is_word(text[at - 1])) && (end == text.size() || !is_word(text[end]))) return true;
    }
    return false;
}

}  // namespace napkin::writers
