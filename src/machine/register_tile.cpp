#include "machine/register_tile.hpp"

#include "algebra/fragment.hpp"
#include "support/ranges.hpp"

namespace napkin {
namespace {

using layouts::Layout;

/// The digits of a mode that are rows, with the stride of each in the mode's own number; or those that are columns.
std::vector<layouts::Leaf> digits(const Layout& mode, std::int64_t rows, bool of_columns) {
    std::vector<layouts::Leaf> out;
    std::int64_t stride = 1;
    for (const layouts::Leaf& leaf : mode.leaves()) {
        if (leaf.size > 1 && (leaf.stride >= rows) == of_columns) out.push_back({leaf.size, stride});
        stride *= leaf.size;
    }
    return out;
}

/// Values of so many bytes in place of the words of an operand: each word has several columns.
Layout in_values(const Layout& words, std::int64_t rows, std::int64_t value_bytes) {
    const std::int64_t each = word_bytes / value_bytes;
    const auto widened = [&](const Layout& mode) {
        return mapped<Layout>(mode.leaves(), [&](const layouts::Leaf& leaf) {
            return Layout(leaf.size, leaf.stride >= rows ? leaf.stride * each : leaf.stride);
        });
    };
    std::vector<Layout> values{Layout(each, each > 1 ? rows : 0)};
    append(values, widened(words.mode(1)));
    return Layout({Layout(widened(words.mode(0))), Layout(std::move(values))});
}

Layout of_lane(const Layout& d, std::int64_t rows, bool of_columns) {
    return layouts::from_leaves(mapped<layouts::Leaf>(d.mode(0).leaves(), [&](const layouts::Leaf& leaf) {
        if ((leaf.stride >= rows) != of_columns) return layouts::Leaf{leaf.size, 0};
        return layouts::Leaf{leaf.size, of_columns ? leaf.stride / rows : leaf.stride};
    }));
}

}  // namespace

std::optional<RegisterTile> register_tile(const Layout& d, std::int64_t rows) {
    if (d.rank() != 2 || d.size() % rows != 0 || d.cosize() != d.size() || !layouts::left_inverse(d))
        return std::nullopt;
    const auto own_rows = digits(d.mode(1), rows, false), own_columns = digits(d.mode(1), rows, true);
    if (own_rows.size() > 1 || own_columns.size() > 1) return std::nullopt;
    RegisterTile out{.rows = rows, .columns = d.size() / rows, .rows_a_thread = 1, .columns_a_thread = 1};
    if (!own_rows.empty()) out.rows_a_thread = own_rows[0].size, out.row_stride = own_rows[0].stride;
    if (!own_columns.empty()) out.columns_a_thread = own_columns[0].size, out.column_stride = own_columns[0].stride;
    return out;
}

bool takes_results(const Layout& d, const Layout& a, std::int64_t rows, std::int64_t value_bytes) {
    if (value_bytes > word_bytes || word_bytes % value_bytes != 0) return false;
    const Layout read = in_values(a, rows, value_bytes);
    const std::int64_t depth = read.size() / rows;
    const auto held = layouts::tiled({d, rows, d.size() / rows}, rows, depth);
    if (!held) return false;
    const auto place = layouts::registers(*held, {read, rows, depth});
    if (!place) return false;
    const Layout flat = layouts::coalesce(*place);
    return flat.is_leaf() && flat.leaf().stride == 1;
}

Layout row_of_lane(const Layout& d, std::int64_t rows) { return of_lane(d, rows, false); }
Layout column_of_lane(const Layout& d, std::int64_t rows) { return of_lane(d, rows, true); }

}  // namespace napkin
