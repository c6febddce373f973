// Tiles of operands that threads compute and write to shared memory, where the tensor cores read them.
#include <fmt/format.h>

#include "emit/emit_body.hpp"
#include "emit/emit_fragment.hpp"
#include "emit/emit_index.hpp"
#include "emit/emit_write.hpp"
#include "support/ids.hpp"
#include "support/ranges.hpp"

namespace napkin::writers {
namespace {

/// Parts of a thread up to which they are unrolled, so that their loads are in flight together; estimated.
constexpr std::int64_t most_unrolled_parts = 16;

/// Writes one tile. Threads take 16 bytes of a row at a time, neighbours beside each other, so that no two of them meet
/// in a bank of shared memory.
class TileWriter {
public:
    TileWriter(const Frame& frame, Lines& out, const Step& step)
        : frame_(frame),
          out_(out),
          step_(step),
          id_(variable_of(step)),
          tile_(*frame.shape(id_).tile),
          rows_(axis_of(tile_.outer)),
          columns_(axis_of(tile_.inner)),
          names_(frame.names),
          body_(frame, step, frame.math(step).any.choices, {rows_, columns_}, 2, names_) {}

    void write() {
        const std::int64_t parts_of_row = columns_of(frame_, columns_, step_.scope) / written_values,
                           parts = tile_.rows * parts_of_row,
                           threads = frame_.schedule.warps.value * frame_.unit.warp_threads,
                           each = (parts + threads - 1) / threads;
        give_values();
        const ValueId root = body_.add_root(frame_.math(step_).any.value, 2, false, false, false);
        body_.decide();
        out_.open("");
        body_.hoist(out_, 0);
        out_.open(each <= most_unrolled_parts ? fmt::format("EACH(each_, {})", each)
                                              : fmt::format("for (int each_ = 0; each_ < {}; ++each_)", each));
        out_(fmt::format("const int part_ = {} * each_ + {} * {} + lane_of_thread();", threads, frame_.unit.warp_threads,
                         warp_name));
        if (parts % threads != 0) out_(fmt::format("if (part_ >= {}) break;", parts));
        out_(fmt::format("const Index row_ = part_ / {0}, column_ = part_ % {0} * {1};", parts_of_row, written_values));
        coordinate(rows_, "row_");
        body_.hoist(out_, 1);
        for (const std::string& line : loads_) out_(line);
        out_(fmt::format("float values_[{}];", written_values));
        out_.open(fmt::format("EACH(i_, {})", written_values));
        coordinate(columns_, "column_ + i_");
        body_.hoist(out_, 2);
        body_.statement(out_, root, [&](const std::string& text) {
            const std::string inside = is_inside();
            return fmt::format("values_[i_] = {};", inside.empty() ? text : fmt::format("{} ? {} : 0.0f", inside, text));
        });
        out_.close();
        out_(fmt::format("write_operand<{}, {}>({}, row_, column_, values_);",
                         memory_type(frame_.variable(id_).memory_type), tile_.panel_rows(), frame_.name(id_)));
        out_.close();
        out_.close();
    }

private:
    [[nodiscard]] AxisId axis_of(int dimension) const { return frame_.variable(id_).dims[at(dimension)].single_axis(); }
    [[nodiscard]] bool may_end(AxisId axis, std::int64_t n) const {
        const Span& span = frame_.span(axis, step_.scope);
        return span.ragged || span.tile != n;
    }
    [[nodiscard]] bool rows_may_end() const { return may_end(rows_, tile_.rows); }
    [[nodiscard]] bool columns_may_end() const {
        return may_end(columns_, columns_of(frame_, columns_, step_.scope));
    }
    /// Condition that a value is one of the tile; empty: it always is.
    [[nodiscard]] std::string is_inside() const {
        std::string text;
        if (rows_may_end()) text = fmt::format("row_ < {}", frame_.count(rows_, step_.scope));
        if (columns_may_end())
            text += fmt::format("{}column_ + i_ < {}", text.empty() ? "" : " && ", frame_.count(columns_, step_.scope));
        return text.empty() ? "" : "(" + text + ")";
    }
    /// Values past the tile's end are not used, and read memory inside of it.
    void coordinate(AxisId axis, const std::string& text) {
        const bool may_end = axis == rows_ ? rows_may_end() : columns_may_end();
        out_.declare("const Index", frame_.axis(axis).local,
                     may_end ? fmt::format("min_index({}, {} - 1)", text, frame_.count(axis, step_.scope)) : text);
    }

    /// Tells the body where a thread finds what it reads: values of a tile of the same columns, all of its part at a
    /// time, other values of tiles, and memory.
    void give_values() {
        for (const Read* r : step_.reads) {
            const VariableId v = r->variable();
            if (frame_.is_operand(v)) {
                give_operand(v);
            } else if (frame_.shape(v).is_read_by_rows) {
                body_.give_in_memory(v, [&](const Read&) { return BodyWriter::Element{frame_.name(v) + "[0]", {}}; });
            } else if (frame_.is_read_by_threads(v)) {
                body_.give_in_memory(v, [&](const Read& read) { return element_in_memory(frame_, read, step_.scope); });
            }
        }
    }
    void give_operand(VariableId v) {
        const OperandTile tile = *frame_.shape(v).tile;
        const auto running = [&](int dimension) {
            const AxisId axis = *running_axis(frame_, frame_.variable(v).dims[at(dimension)], step_.scope);
            return axis >= 0 && frame_.span(axis, step_.scope).tile > 1 ? axis : AxisId(-1);
        };
        const auto local = [&](AxisId axis) { return axis < 0 ? std::string("0") : frame_.axis(axis).local; };
        const AxisId outer = running(tile.outer), inner = running(tile.inner);
        const std::string where = fmt::format("{}, {}", frame_.name(v), stage_name(frame_, v)),
                          type = memory_type(frame_.variable(v).memory_type);
        if (inner != columns_ || outer == columns_)
            return body_.give(v, fmt::format("operand_value<{}, {}>({}, {}, {})", type, tile.panel_rows(), where,
                                             local(outer), local(inner)));
        const std::string name = frame_.name(v) + "_part_";
        loads_.push_back(fmt::format("float {}[{}];", name, written_values));
        loads_.push_back(fmt::format("operand_values<{}, {}>({}, {}, {}, column_);", type, tile.panel_rows(), name, where,
                                     outer == rows_ ? "row_" : local(outer)));
        body_.give(v, name + "[i_]");
    }

    const Frame& frame_;
    Lines& out_;
    const Step& step_;
    VariableId id_;
    const OperandTile tile_;
    AxisId rows_, columns_;
    Names names_;
    BodyWriter body_;
    std::vector<std::string> loads_;  ///< of parts of other tiles
};

}  // namespace

void write_tile(const Frame& frame, Lines& out, const Step& step) { TileWriter(frame, out, step).write(); }

}  // namespace napkin::writers
