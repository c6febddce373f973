#include "algebra/held_layout.hpp"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <set>

namespace napkin::layouts {
namespace {

struct Tile {
    std::string_view name, extents;
    std::size_t num_extents;
};
constexpr std::array tiles{Tile{"accumulators", "rows,columns", 2}, Tile{"operand", "rows,k,bytes", 3},
                           Tile{"shared", "mn,k,bytes,box", 4}};

/// The numbers between the parentheses; empty where there is anything else.
std::vector<std::int64_t> numbers(std::string_view text) {
    std::vector<std::int64_t> out;
    while (!text.empty()) {
        std::int64_t n = 0;
        const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), n);
        const auto read = static_cast<std::size_t>(end - text.data());
        if (error != std::errc{} || n < 1 || (read < text.size() && (text[read] != ',' || read + 1 == text.size())))
            return {};
        out.push_back(n);
        text.remove_prefix(std::min(text.size(), read + 1));
    }
    return out;
}

Result<HeldLayout> held(const Result<Fragment>& one, std::int64_t rows, std::int64_t columns) {
    if (!one) return one.errors();
    auto all = one->rows == rows && one->columns == columns ? one : tiled(*one, rows, columns);
    if (!all) return all.errors();
    return HeldLayout{{{}, all->map}, *all};
}

}  // namespace

Result<HeldLayout> parse_held(std::string_view text) {
    const std::size_t open = text.find('(');
    const std::string_view name = text.substr(0, std::min(open, text.size()));
    if (name.empty() || name[0] < 'a' || name[0] > 'z') {
        const auto plain = parse_swizzled(text);
        if (!plain) return plain.errors();
        return HeldLayout{*plain, std::nullopt};
    }
    std::string expected;
    for (const Tile& tile : tiles) {
        expected += fmt::format("{}{}({})", expected.empty() ? "" : ", ", tile.name, tile.extents);
        if (tile.name != name || open == std::string_view::npos || text.back() != ')') continue;
        const std::vector<std::int64_t> n = numbers(text.substr(open + 1, text.size() - open - 2));
        if (n.size() != tile.num_extents) continue;
        if (name == "accumulators") return held(wgmma_accumulator(std::min(n[1], largest_wgmma_columns)), n[0], n[1]);
        if (n[2] != 1 && n[2] != 2 && n[2] != 4)
            return layout_error("layout-syntax", fmt::format("{} has elements of {} bytes", text, n[2]), "1, 2 or 4");
        if (name == "operand") return held(wgmma_operand(n[2]), n[0], n[1]);
        const auto shared = shared_operand(n[0], n[1], n[2], Major::k, n[3]);
        if (!shared) return shared.errors();
        return HeldLayout{*shared, std::nullopt};
    }
    return layout_error("layout-syntax", fmt::format("'{}' is no tile of a matrix instruction", text), expected);
}

SharedRows shared_rows(const Fragment& fragment) {
    const Layout row = row_of(fragment).value();
    SharedRows out;
    std::set<std::int64_t> own;
    for (std::int64_t v = 0; v < fragment.values(); ++v) own.insert(row({0, v}));
    for (std::int64_t t = 0; t < fragment.threads(); ++t) out.threads_a_row += row({t, 0}) == row({0, 0}) ? 1 : 0;
    out.rows_a_thread = static_cast<std::int64_t>(own.size());
    // Threads of a row are apart by the digits of their number that its row does not depend on; each digit is halved
    // until one thread is left.
    std::int64_t place = 1;
    for (const Leaf& digit : row.mode(0).leaves()) {
        if (digit.stride == 0)
            for (std::int64_t apart = digit.size / 2; apart >= 1; apart /= 2) out.exchanges.push_back(apart * place);
        place *= digit.size;
    }
    return out;
}

}  // namespace napkin::layouts
