// Tiles of operands that threads compute and write to shared memory, where the tensor cores read them.
#include <fmt/format.h>

#include "diagram/guards.hpp"
#include "emit/emit_body.hpp"
#include "emit/emit_fragment.hpp"
#include "emit/emit_index.hpp"
#include "emit/emit_write.hpp"
#include "support/ids.hpp"
#include "support/ranges.hpp"

namespace napkin::writers {
namespace {

/// Parts that a thread computes before it writes them. The compiler moves no load over a write to shared memory, and
/// one part at a time would wait for its own loads. Four have about as many instructions as a load takes clocks.
constexpr std::int64_t parts_together = 4;
/// Parts of a thread up to which their loops are unrolled; estimated.
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
        const auto runs = copied_runs(frame_, step_);
        if (!runs) give_values();
        const ValueId root = runs ? body_.add_root(holds(*runs), 2, false, false)
                                  : body_.add_root(frame_.math(step_).any.value, 2, false, false, false);
        body_.decide();
        out_.open("");
        body_.hoist(out_, 0);
        const std::int64_t together = std::min(each, parts_together), batches = (each + together - 1) / together;
        out_.open(each <= most_unrolled_parts ? fmt::format("EACH(batch_, {})", batches)
                                              : fmt::format("for (int batch_ = 0; batch_ < {}; ++batch_)", batches));
        out_(fmt::format("unsigned words_[{}][{}];", together, words));
        const auto each_part = [&](const std::function<void()>& write_part) {
            out_.open(fmt::format("EACH(p_, {})", together));
            out_(fmt::format("const int part_ = {} * ({} * batch_ + p_) + {} * {} + lane_of_thread();", threads,
                             together, frame_.unit.warp_threads, warp_name));
            if (parts % (threads * together) != 0) out_(fmt::format("if (part_ >= {}) break;", parts));
            out_(fmt::format("const Index row_ = part_ / {0}, column_ = part_ % {0} * {1};", parts_of_row, written_values));
            write_part();
            out_.close();
        };
        const std::string type = memory_type(frame_.variable(id_).memory_type);
        each_part([&] { runs ? copy_part(*runs, root) : compute_part(root, type); });
        each_part([&] {
            out_(fmt::format("write_operand<{}>({}, row_, column_, words_[p_]);", tile_.panel_rows(), frame_.name(id_)));
        });
        out_.close();
        out_.close();
    }

private:
    /// 32-bit words of a part.
    static constexpr std::int64_t words = operand_stride_bytes / word_bytes;

    /// 1 where all conditions hold, else 0.
    static Expr holds(const CopiedRuns& runs) {
        Expr all;
        for (const Expr& condition : runs.conditions) all = both_hold(all, condition);
        return all ? select(all, constant(1), constant(0)) : constant(1);
    }

    /// Eight neighbours in memory, or zeros. Conditions and places are those of the first.
    void copy_part(const CopiedRuns& runs, ValueId root) {
        coordinate(rows_, "row_");
        coordinate(columns_, "column_");
        body_.hoist(out_, 1);
        body_.hoist(out_, 2);
        const ArrayId array = frame_.variable(runs.read->variable()).array;
        const std::vector<AxisId>& axes = frame_.program->diagram.array(array).axes;
        std::string place = frame_.memory.at(array), holds;
        for (std::size_t d = 0; d < runs.read->indices.size(); ++d) {
            const std::string at = fmt::format("at_{}_", d);
            out_.declare("const Index", at, index_in_tile(frame_, runs.read->indices[d], step_.scope));
            place += fmt::format(" + {} * {}[{}]", at, frame_.strides.at(array), d);
            const std::string extent = frame_.extent_text(axes[d]);
            holds += d + 1 < runs.read->indices.size() ? fmt::format(" && {0} >= 0 && {0} < {1}", at, extent)
                                                       : fmt::format(" && {0} >= 0", at);
        }
        const std::string last = fmt::format("at_{}_", runs.read->indices.size() - 1),
                          left = fmt::format("{} - {}", frame_.extent_text(axes.back()), last);
        body_.statement(out_, root, [&](const std::string& text) {
            const std::string inside = is_inside("0");
            return fmt::format("copy_run_of_operand(words_[p_], {}, {} != 0{}{} ? int({}) : 0, {}[{}]);", place, text,
                               inside.empty() ? "" : " && " + inside, holds, left, frame_.strides.at(array),
                               runs.read->indices.size() - 1);
        });
    }

    void compute_part(ValueId root, const std::string& type) {
        coordinate(rows_, "row_");
        for (const std::string& line : loads_) out_(line);
        body_.hoist(out_, 1);
        out_(fmt::format("float values_[{}];", written_values));
        out_.open(fmt::format("EACH(i_, {})", written_values));
        coordinate(columns_, "column_ + i_");
        body_.hoist(out_, 2);
        body_.statement(out_, root, [&](const std::string& text) {
            const std::string inside = is_inside("i_");
            return fmt::format("values_[i_] = {};", inside.empty() ? text : fmt::format("{} ? {} : 0.0f", inside, text));
        });
        out_.close();
        out_(fmt::format("EACH(i_, {}) words_[p_][i_] = bits_of_pair<{}>(values_[2 * i_], values_[2 * i_ + 1]);", words,
                         type));
    }
    [[nodiscard]] AxisId axis_of(int dimension) const { return frame_.variable(id_).dims[at(dimension)].single_axis(); }
    [[nodiscard]] bool may_end(AxisId axis, std::int64_t n) const {
        const Span& span = frame_.span(axis, step_.scope);
        return span.ragged || span.tile != n;
    }
    [[nodiscard]] bool rows_may_end() const { return may_end(rows_, tile_.rows); }
    [[nodiscard]] bool columns_may_end() const { return may_end(columns_, columns_of(frame_, columns_, step_.scope)); }
    /// Condition that a value is one of the tile; empty: it always is.
    [[nodiscard]] std::string is_inside(const char* in_part) const {
        std::string text;
        if (rows_may_end()) text = fmt::format("row_ < {}", frame_.count(rows_, step_.scope));
        if (columns_may_end())
            text += fmt::format("{}column_ + {} < {}", text.empty() ? "" : " && ", in_part,
                                frame_.count(columns_, step_.scope));
        return text.empty() ? "" : "(" + text + ")";
    }
    /// Values past the tile's end are not used, and read memory inside of it.
    void coordinate(AxisId axis, const std::string& text) {
        const bool may_end = axis == rows_ ? rows_may_end() : columns_may_end();
        out_.declare("const Index", frame_.axis(axis).local,
                     may_end ? fmt::format("min_index({}, {} - 1)", text, frame_.count(axis, step_.scope)) : text);
    }

    /// Tells the body where a thread finds what it reads. Values of a tile of the same columns come all at once for a
    /// part. Other values of tiles, and those in memory, come one by one.
    void give_values() {
        for (const Read* r : step_.reads) {
            const VariableId v = r->variable();
            if (frame_.is_operand(v)) {
                give_operand(v);
            } else if (frame_.shape(v).is_read_by_rows) {
                body_.give_in_memory(v, [&](const Read&) { return BodyWriter::Element{frame_.name(v) + "[0]", {}}; });
            } else if (frame_.is_read_by_threads(v)) {
                body_.give_in_memory(v, [&](const Read& read) { return element(read); });
            }
        }
    }
    void give_operand(VariableId v) {
        const OperandTile tile = *frame_.shape(v).tile;
        const Variable& variable = frame_.variable(v);
        const auto runs_along = [&](int dimension, AxisId axis) {
            return variable.dims[at(dimension)].depends_on(axis) && frame_.span(axis, step_.scope).tile > 1;
        };
        const bool is_part = runs_along(tile.inner, columns_) && !runs_along(tile.outer, columns_) &&
                             written_values % tile.packed == 0;
        if (!is_part) return give_operand_value(frame_, step_, body_, v);
        const OperandPart part{v, written_values, frame_.name(v) + "_part_", "column_", "i_"};
        loads_.push_back(part_declaration(frame_, step_, part)), loads_.push_back(part_load(frame_, step_, part));
        give_part(frame_, step_, body_, part);
    }

    /// A value in memory. One that is the same for all columns of a part is read once, as a scale of a block is.
    BodyWriter::Element element(const Read& read) {
        BodyWriter::Element found = element_in_memory(frame_, read, step_.scope);
        if (!contains(found.axes, columns_) ||
            !all_of(read.indices, [&](const Index& i) { return is_one_for_part(frame_, i, columns_, step_.scope); }))
            return found;
        std::erase(found.axes, columns_);
        if (const auto known = read_once_.find(found.text); known != read_once_.end())
            return found.text = known->second, found;
        const std::string name = fmt::format("{}_of_part_{}_", frame_.name(read.variable()), read_once_.size());
        read_once_[found.text] = name;
        loads_.push_back(fmt::format("{} {};", found.is_whole ? "int64_t" : "real", name));
        loads_.push_back("{");
        loads_.push_back(fmt::format("    const Index {} = column_;", frame_.axis(columns_).local));
        loads_.push_back(fmt::format("    {} = {};", name, found.text));
        loads_.push_back("}");
        found.text = name;
        return found;
    }
    const Frame& frame_;
    Lines& out_;
    const Step& step_;
    VariableId id_;
    const OperandTile tile_;
    AxisId rows_, columns_;
    Names names_;
    BodyWriter body_;
    std::vector<std::string> loads_;                ///< of what a part reads at once
    std::map<std::string, std::string> read_once_;  ///< by text of what it reads: the name that has it
};

}  // namespace

void write_tile(const Frame& frame, Lines& out, const Step& step) { TileWriter(frame, out, step).write(); }

}  // namespace napkin::writers
