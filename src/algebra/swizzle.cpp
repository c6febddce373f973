#include "algebra/swizzle.hpp"

#include <fmt/format.h>

#include <array>
#include <bit>
#include <charconv>

namespace napkin::layouts {

std::string to_string(const Swizzled& s) {
    if (s.swizzle.bits == 0) return to_string(s.layout);
    return fmt::format("Sw<{},{},{}> o {}", s.swizzle.bits, s.swizzle.base, s.swizzle.shift, to_string(s.layout));
}

Result<Swizzled> parse_swizzled(std::string_view text) {
    constexpr std::string_view opening = "Sw<", after = "> o ";
    if (!text.starts_with(opening)) {
        auto layout = parse_layout(text);
        if (!layout) return layout.errors();
        return Swizzled{{}, std::move(*layout)};
    }
    std::array<int, 3> numbers{};
    const char* at = text.data() + opening.size();
    const char* const end = text.data() + text.size();
    bool good = true;
    for (std::size_t i = 0; i < numbers.size() && good; ++i) {
        if (i > 0) good = at < end && *at++ == ',';
        const auto [next, code] = std::from_chars(at, end, numbers[i]);
        good = good && code == std::errc{};
        at = next;
    }
    const auto [bits, base, shift] = numbers;
    good = good && std::string_view(at, static_cast<std::size_t>(end - at)).starts_with(after);
    // The highest bit that takes part is below 62, as values are.
    if (!good || bits < 0 || base < 0 || shift < bits || base > 62 || shift > 62 || base + shift + bits > 62)
        return layout_error("layout-syntax", fmt::format("'{}' begins with no swizzle", text),
                            "Sw<bits,base,shift> o LAYOUT with bits at most shift, as in Sw<3,4,3> o (8,64):(64,1)");
    auto layout = parse_layout(std::string_view(at + after.size(), static_cast<std::size_t>(end - at) - after.size()));
    if (!layout) return layout.errors();
    return Swizzled{bits == 0 ? Swizzle{} : Swizzle{bits, base, shift}, std::move(*layout)};
}

Result<Swizzled> composition(const Swizzled& outer, const Layout& inner) {
    auto layout = composition(outer.layout, inner);
    if (!layout) return layout.errors();
    return Swizzled{outer.swizzle, std::move(*layout)};
}

Swizzle of_elements(const Swizzle& of_bytes, std::int64_t element_bytes) {
    internal_check(element_bytes > 0 && std::has_single_bit(static_cast<std::uint64_t>(element_bytes)),
                   "a swizzle of elements that are not a power of two of bytes");
    const int down = std::countr_zero(static_cast<std::uint64_t>(element_bytes));
    internal_check(of_bytes.bits == 0 || down <= of_bytes.base, "a swizzle within an element");
    return {of_bytes.bits, of_bytes.bits == 0 ? 0 : of_bytes.base - down, of_bytes.shift};
}

}  // namespace napkin::layouts
