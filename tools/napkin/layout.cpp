// `napkin layout`: what a layout sends where, what operations make of it, and what it costs a warp to follow it.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <optional>

#include "algebra/access.hpp"
#include "algebra/held_layout.hpp"
#include "algebra/layout_tile.hpp"
#include "napkin/command.hpp"

namespace napkin::cli {

namespace {

using layouts::Layout;
using layouts::Swizzled;

struct LayoutCommand {
    Options common;
    std::string layout, compose, divide, read_as;
    std::int64_t complement = 0, access_bytes = 0;
    bool inverse = false;
    /// CUDA C++ Programming Guide, shared memory of compute capability 5 and later; --banks says others.
    std::int64_t banks = 32, bank_bytes = 4;
};

constexpr std::int64_t most_threads = 1024;  ///< CUDA C++ Programming Guide: of a block
constexpr std::int64_t most_elements = std::int64_t{1} << 40;
constexpr std::int64_t shown_rows = 32, shown_columns = 32;  ///< of a table of values, on a page

/// The values of a layout of two modes, a row for each index of the first; of any other in one row.
report::Table values_table(const Swizzled& s) {
    const bool grid = s.layout.rank() == 2 && s.layout.mode(1).size() > 1;
    const std::int64_t rows = grid ? s.layout.mode(0).size() : 1, columns = s.layout.size() / rows;
    report::Table out;
    if (rows > shown_rows || columns > shown_columns) return out;
    out.columns.resize(static_cast<std::size_t>(columns));
    for (std::int64_t r = 0; r < rows; ++r) {
        std::vector<report::Value>& row = out.rows.emplace_back();
        for (std::int64_t c = 0; c < columns; ++c) row.push_back(report::whole(s(r + rows * c)));
    }
    return out;
}

ExitCode show(const LayoutCommand& c) {
    const auto parsed = layouts::parse_held(c.layout);
    if (!parsed) return fail(parsed.errors(), c.common);
    Swizzled of = parsed->layout;
    std::vector<report::Figure> rows;
    const auto put = [&](const auto& what, const auto& text) { rows.push_back({what, what, report::words(text)}); };
    put("layout", to_string(of));
    std::optional<layouts::SharedRows> shared;
    if (parsed->fragment) {
        const layouts::Fragment& held = *parsed->fragment;
        put("row", to_string(layouts::row_of(held).value()));
        put("column", to_string(layouts::column_of(held).value()));
        shared = layouts::shared_rows(held);
    }
    if (!c.read_as.empty()) {
        const auto reader = layouts::parse_held(c.read_as);
        if (!reader) return fail(reader.errors(), c.common);
        if (!parsed->fragment || !reader->fragment)
            throw UsageError("--read-as: expected threads that hold a tile on both sides, as accumulators(64,128)");
        const auto read = layouts::registers(*parsed->fragment, *reader->fragment);
        if (!read) return fail(read.errors(), c.common);
        put("registers", to_string(*read));
    }
    if (!c.compose.empty()) {
        const auto inner = layouts::parse_layout(c.compose);
        if (!inner) return fail(inner.errors(), c.common);
        auto composed = composition(of, *inner);
        if (!composed) return fail(composed.errors(), c.common);
        of = std::move(*composed);
        put("composed", to_string(of));
    }
    const Layout& l = of.layout;
    put("coalesced", to_string(coalesce(l)));
    put(of.swizzle.bits == 0 ? "value" : "value before the swizzle", expression(l, "i"));
    const auto add = [&](const std::string& name, const Result<Layout>& made) {
        if (made) put(name, to_string(*made));
        return made.ok();
    };
    if (!c.divide.empty()) {
        const auto tile = layouts::parse_layout(c.divide);
        if (!tile) return fail(tile.errors(), c.common);
        const auto divided = logical_divide(l, *tile);
        if (!add("divided", divided)) return fail(divided.errors(), c.common);
    }
    if (c.complement > 0) {
        const auto rest = complement(l, c.complement);
        if (!add("complement", rest)) return fail(rest.errors(), c.common);
    }
    if (c.inverse) {
        add("right inverse", right_inverse(l));
        const auto left = left_inverse(l);
        if (!add("left inverse", left)) return fail(left.errors(), c.common);
    }
    std::optional<layouts::Wavefronts> taken;
    if (c.access_bytes > 0) {
        if (l.size() > most_threads)
            throw UsageError(fmt::format("--access: {} threads, where an access has at most {}", l.size(), most_threads));
        if (c.access_bytes > c.banks * c.bank_bytes)
            throw UsageError(fmt::format("--access {}: expected at most the {} bytes of all banks", c.access_bytes,
                                         c.banks * c.bank_bytes));
        taken = layouts::wavefronts(byte_offsets(of, 1), c.access_bytes, {c.banks, c.bank_bytes});
    }
    rows.push_back({"size", "size", {l.size(), fmt::format("{}, values before {}", l.size(), l.cosize())}});
    rows.push_back({"cosize", "", report::data(l.cosize())});
    if (taken) {
        const Json data{{"taken", taken->taken}, {"least", taken->least}};
        rows.push_back(
            {"wavefronts", "wavefronts", {data, fmt::format("{}, {} without bank conflicts", taken->taken, taken->least)}});
    }
    if (shared) {
        const auto& [row, thread, exchanges] = *shared;
        const Json data{{"threads_a_row", row}, {"rows_a_thread", thread}, {"exchanges", exchanges}};
        rows.push_back({"shared_rows",
                        "rows",
                        {data, fmt::format("{} a thread, each of {} threads: exchanged with lane xor {}", thread, row,
                                           fmt::join(exchanges, ", "))}});
    }
    report::Section out;
    out.rows(std::move(rows));
    if (report::Table values = values_table(of); !values.rows.empty()) out.text("\n"), out.table(std::move(values));
    for (std::int64_t i = 0; i < l.size() && l.size() <= shown_rows * shown_columns; ++i) out.data("values/[]", of(i));
    print(out, "layout", c.common);
    return ExitCode::success;
}

}  // namespace

void add_layout(CLI::App& app, Main& main) {
    const auto c = std::make_shared<LayoutCommand>();
    Command command(app, main, "layout", "What a layout shape:stride sends where, and what that costs a warp",
                    "napkin layout 'Sw<3,4,3> o (32,1):(128,0)' --access 16", [c] { return show(*c); });
    command.argument("LAYOUT", c->layout,
                     "As ((4,8),2):((2,16),1), or with a swizzle before it, Sw<3,4,3> o (8,64):(64,1); or of a matrix "
                     "instruction's tile: accumulators(ROWS,COLUMNS), operand(ROWS,K,BYTES), shared(MN,K,BYTES,BOX)");
    command.text("--compose", "LAYOUT", c->compose, "After this one: LAYOUT of what this one gives");
    command.text("--read-as", "LAYOUT", c->read_as,
                 "The registers in which threads find what they read of what they hold");
    command.text("--divide", "LAYOUT", c->divide, "Into tiles and the rest");
    command.number("--complement", c->complement, 1, most_elements, "What is left free of so many");
    command.flag("--inverse", c->inverse, "The right inverse and the left inverse");
    command.number("--access", c->access_bytes, 1, 4096,
                   "Bank conflicts, where an index is a thread, its value the byte at which it reads N bytes");
    command.number("--banks", c->banks, 1, 1024, "Banks of the shared memory (default 32, of 4 bytes)");
    command.output(c->common);
}

}  // namespace napkin::cli
