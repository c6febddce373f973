#include "algebra/fragment.hpp"

#include <fmt/format.h>

#include <optional>

#include "algebra/layout_tile.hpp"
#include "support/ranges.hpp"

namespace napkin::layouts {
namespace {

constexpr std::int64_t warp_threads = core_rows * core_row_bytes / register_bytes;

/// (thread, value) → row + 8 · column of a core matrix: how threads run through its bytes row after row, then where
/// those are.
Layout core(std::int64_t element_bytes) {
    const std::int64_t columns = core_row_bytes / element_bytes, values = register_bytes / element_bytes;
    const Layout dealt({Layout(warp_threads, values), Layout(values, 1)});
    const Layout row_by_row({Layout(columns, core_rows), Layout(core_rows, 1)});
    return composition(row_by_row, dealt).value();
}

/// The place in a larger tile of a place in its corner.
Layout corner(std::int64_t rows, std::int64_t columns, std::int64_t tile_rows) {
    return Layout({Layout(rows, 1), Layout(columns, tile_rows)});
}

/// The leaves of both side by side, as one mode.
Layout extended(const Layout& mode, const std::vector<Layout>& more) {
    std::vector<Layout> modes(mode.modes().begin(), mode.modes().end());
    append(modes, more);
    return modes.size() == 1 ? modes[0] : Layout(std::move(modes));
}

Layout of_coordinates(const Fragment& f, std::int64_t row_stride, std::int64_t column_stride) {
    return Layout({Layout(f.rows, row_stride), Layout(f.columns, column_stride)});
}

Diagnostic fragment_error(std::string message, std::string expected) {
    return layout_error("layout-fragment", std::move(message), std::move(expected));
}

/// The first value that a thread reads and does not hold, in words.
std::optional<Diagnostic> moved_value(const Fragment& reader, const Layout& holder_of) {
    const std::int64_t threads = reader.threads();
    for (std::int64_t v = 0; v < reader.values(); ++v) {
        for (std::int64_t t = 0; t < threads; ++t) {
            const std::int64_t element = reader.map({t, v}), held_by = holder_of(element) % threads;
            if (held_by != t)
                return fragment_error(
                    fmt::format("thread {} reads value {}, row {} and column {}, which thread {} holds", t, v,
                                element % reader.rows, element / reader.rows, held_by),
                    "every thread to read what it holds");
        }
    }
    return std::nullopt;
}

}  // namespace

Result<Layout> row_of(const Fragment& f) { return composition(of_coordinates(f, 1, 0), f.map); }
Result<Layout> column_of(const Fragment& f) { return composition(of_coordinates(f, 0, 1), f.map); }

Fragment core_grid(std::int64_t element_bytes, std::int64_t row_blocks, std::int64_t column_blocks, std::int64_t warps) {
    internal_check(element_bytes == 1 || element_bytes == 2 || element_bytes == 4, "operands of 1, 2 or 4 bytes");
    const std::int64_t block_columns = core_row_bytes / element_bytes, warp_rows = core_rows * row_blocks;
    const std::int64_t rows = warp_rows * warps, columns = block_columns * column_blocks;
    const Layout one = composition(corner(core_rows, block_columns, rows), core(element_bytes)).value();
    std::vector<Layout> below, grid;
    if (warps > 1) below.emplace_back(warps, warp_rows);
    if (row_blocks > 1) grid.emplace_back(row_blocks, core_rows);
    if (column_blocks > 1) grid.emplace_back(column_blocks, block_columns * rows);
    const Layout values = one.mode(1).size() == 1 && !grid.empty() ? (grid.size() == 1 ? grid[0] : Layout(grid))
                                                                   : extended(one.mode(1), grid);
    return {Layout({extended(one.mode(0), below), values}), rows, columns};
}

Result<Fragment> wgmma_accumulator(std::int64_t columns) {
    constexpr std::int64_t step = core_row_bytes / accumulator_deal_bytes;
    if (columns < step || columns > largest_wgmma_columns || columns % step != 0)
        return fragment_error(fmt::format("{} columns of accumulators", columns),
                              fmt::format("a multiple of {} up to {}", step, largest_wgmma_columns));
    return core_grid(accumulator_deal_bytes, instruction_row_blocks, columns / step, warpgroup_warps);
}

Fragment wgmma_operand(std::int64_t element_bytes) {
    return core_grid(element_bytes, instruction_row_blocks, instruction_k_bytes / core_row_bytes, warpgroup_warps);
}

Result<Fragment> tiled(const Fragment& f, std::int64_t rows, std::int64_t columns) {
    if (rows < 1 || columns < 1 || rows % f.rows != 0 || columns % f.columns != 0)
        return fragment_error(fmt::format("a tile of {} × {} from fragments of {} × {}", rows, columns, f.rows, f.columns),
                              fmt::format("multiples of {} and {}", f.rows, f.columns));
    const auto one = composition(corner(f.rows, f.columns, rows), f.map);
    if (!one) return one.errors();
    const auto copies = [](std::int64_t count, std::int64_t stride) { return Layout(count, count == 1 ? 0 : stride); };
    return Fragment{Layout({one->mode(0), Layout({one->mode(1), copies(rows / f.rows, f.rows),
                                                  copies(columns / f.columns, rows * f.columns)})}),
                    rows, columns};
}

Result<Layout> registers(const Fragment& holder, const Fragment& reader) {
    if (holder.rows != reader.rows || holder.columns != reader.columns || holder.threads() != reader.threads())
        return fragment_error(fmt::format("{} × {} elements of {} threads, read as {} × {} by {}", holder.rows,
                                          holder.columns, holder.threads(), reader.rows, reader.columns, reader.threads()),
                              "the same tile and the same threads");
    const auto holder_of = left_inverse(holder.map);
    if (!holder_of) return holder_of.errors();
    if (auto error = moved_value(reader, *holder_of)) return *error;
    const auto place = composition(*holder_of, reader.map);  // of thread + threads · value
    if (!place) return place;
    const Layout value_alone({Layout(holder.threads(), 0), Layout(holder.values(), 1)});
    const auto value = composition(value_alone, *place);
    if (!value) return value;
    return value->mode(1);
}

}  // namespace napkin::layouts
