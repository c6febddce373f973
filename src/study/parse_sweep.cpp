#include <fmt/format.h>

#include <cmath>

#include "study/sweep.hpp"
#include "support/ids.hpp"
#include "support/limits.hpp"
#include "support/ranges.hpp"
#include "support/text.hpp"

namespace napkin {
namespace {
constexpr const char* forms =
    "AXIS=LO..HI, AXIS=LO..HI:STEP, AXIS=LO..HI:*FACTOR or AXIS=a,b,c, as in d=32..512 or q=x=1024..65536";

Diagnostic bad_sweep(std::string_view text, const std::string& what) {
    return Diagnostic{.code = "bad-sweep",
                      .message = fmt::format("--sweep {}: {}", text, what),
                      .expected = forms,
                      .exit_code = ExitCode::usage};
}

std::optional<std::int64_t> size_of(std::string_view text) {
    const auto value = parse_number<std::int64_t>(text);
    return value && *value >= 1 && *value <= limits::max_size_product ? value : std::nullopt;
}

std::optional<double> factor_of(std::string_view text) {
    const auto value = parse_number<double>(text);
    return value && *value > 1 && *value <= 1e18 ? value : std::nullopt;
}

std::int64_t power_of_two_above(std::int64_t size) {
    std::int64_t power = 1;
    while (power <= size) power *= 2;
    return power;
}

/// From low to high, by `next`; high is the last.
template <class Next>
std::optional<std::vector<std::int64_t>> from_to(std::int64_t low, std::int64_t high, Next next) {
    std::vector<std::int64_t> sizes;
    for (std::int64_t size = low; size < high; size = next(size)) {
        sizes.push_back(size);
        if (sizes.size() > max_sweep_points) return std::nullopt;
    }
    sizes.push_back(high);
    return sizes;
}

bool is_axis_name(std::string_view text) {
    return !text.empty() && !(text[0] >= '0' && text[0] <= '9') && text.find_first_of(" \t,.:*") == std::string_view::npos;
}

}  // namespace

Result<SweepAxis> parse_sweep(std::string_view text) {
    SweepAxis out;
    std::string_view rest = text;
    for (std::size_t sign = rest.find('='); sign != std::string_view::npos; sign = rest.find('=')) {
        const std::string axis(rest.substr(0, sign));
        if (!is_axis_name(axis))
            return bad_sweep(text, axis.empty() ? "an axis is missing" : fmt::format("{} is no axis", axis));
        if (contains(out.axes, axis)) return bad_sweep(text, fmt::format("{} stands there twice", axis));
        out.axes.push_back(axis);
        rest.remove_prefix(sign + 1);
    }
    if (out.axes.empty()) return bad_sweep(text, "there is no axis");
    if (rest.empty()) return bad_sweep(text, "there are no sizes");

    const std::size_t dots = rest.find("..");
    if (dots == std::string_view::npos) {
        while (true) {
            const std::size_t comma = rest.find(',');
            const auto size = size_of(rest.substr(0, comma));
            if (!size) return bad_sweep(text, fmt::format("'{}' is no size of at least 1", rest.substr(0, comma)));
            out.sizes.push_back(*size);
            if (comma == std::string_view::npos) break;
            rest.remove_prefix(comma + 1);
        }
        sort_unique(out.sizes);
        if (out.sizes.size() > max_sweep_points)
            return bad_sweep(text, fmt::format("more than {} sizes", max_sweep_points));
        return out;
    }
    const std::size_t colon = rest.find(':');
    const std::string_view low_text = rest.substr(0, dots);
    const std::string_view high_text = rest.substr(dots + 2, colon == std::string_view::npos ? colon : colon - dots - 2);
    const auto low = size_of(low_text), high = size_of(high_text);
    if (!low || !high) return bad_sweep(text, fmt::format("'{}' is no size of at least 1", low ? high_text : low_text));
    if (*low > *high) return bad_sweep(text, fmt::format("{} is more than {}", *low, *high));
    std::optional<std::vector<std::int64_t>> sizes;
    if (colon == std::string_view::npos) {
        sizes = from_to(*low, *high, power_of_two_above);
    } else if (const std::string_view by = rest.substr(colon + 1); by.starts_with('*')) {
        const auto factor = factor_of(by.substr(1));
        if (!factor) return bad_sweep(text, fmt::format("'{}' is no factor above 1", by.substr(1)));
        sizes = from_to(*low, *high, [&](std::int64_t size) {
            const double next = std::round(static_cast<double>(size) * *factor);
            return next >= static_cast<double>(*high) ? *high : std::max(size + 1, static_cast<std::int64_t>(next));
        });
    } else {
        const auto step = size_of(by);
        if (!step) return bad_sweep(text, fmt::format("'{}' is no step of at least 1", by));
        sizes = from_to(*low, *high, [&](std::int64_t size) { return *high - size <= *step ? *high : size + *step; });
    }
    if (!sizes) return bad_sweep(text, fmt::format("more than {} sizes", max_sweep_points));
    out.sizes = std::move(*sizes);
    return out;
}

}  // namespace napkin
