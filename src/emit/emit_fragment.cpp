#include "emit/emit_fragment.hpp"

#include <fmt/format.h>

#include <functional>
#include <optional>
#include <utility>

#include "algebra/number.hpp"
#include "emit/emit_body.hpp"
#include "emit/emit_header.hpp"
#include "emit/emit_index.hpp"
#include "emit/emit_k_block_ranges.hpp"
#include "emit/emit_write.hpp"
#include "support/ids.hpp"
#include "support/ranges.hpp"
#include "support/result.hpp"

namespace napkin::writers {
namespace {

std::string times(std::int64_t stride, const char* index) {
    return stride == 1 ? std::string(index) : fmt::format("{} * {}", stride, index);
}

/// A thread's value of the element at row r_ and column (j_, c_) of the loops below.
std::string element(const Frame& frame, VariableId id) {
    return fmt::format("{}[{}]", frame.name(id), number_in_thread(frame, id));
}
/// The same in a step that may run for each part of the columns.
std::string element(const Frame& frame, const Step& step, VariableId id) {
    if (!frame.runs_in_parts(step) || frame.shape(id).columns < 0 || frame.column_parts->is_passing(id))
        return element(frame, id);
    const RegisterTile& tile = frame.fragments();
    const std::int64_t of_tile = frame.shape(id).has_rows ? tile.values() : tile.columns_a_thread;
    return fmt::format("{}[{} * part_ + {}]", frame.name(id), frame.column_parts->columns / tile.columns * of_tile,
                       number_in_thread(frame, id));
}
/// What a thread has of a variable that is read by rows.
std::string row_element(const Frame& frame, VariableId id, const std::string& name) {
    const std::int64_t rows = frame.fragments().rows_a_thread;
    return fmt::format("{}[{}r_]", name, frame.shape(id).row_values > rows ? fmt::format("{} * part_ + ", rows) : "");
}

/// The loops of a thread over its values of one statement: over its rows, and over the columns where there are any.
class ValueLoops {
public:
    ValueLoops(const Frame& frame, Lines& out, ScopeId scope, AxisId columns, bool may_leave,
               bool has_whole_columns = false, std::int64_t columns_of_part = 0)
        : frame_(frame),
          out_(out),
          scope_(scope),
          columns_(columns),
          may_leave_(may_leave),
          has_whole_columns_(has_whole_columns),
          columns_of_part_(columns_of_part) {}

    /// Nothing that follows differs from row to row.
    void leave_out_rows() { has_rows_ = false; }
    void open_rows() {
        if (!has_rows_) return;
        out_.open(each_row(frame_));
        declare(frame_.schedule.mma_m, "fragment_row(r_)", frame_.fragment_rows());
    }
    /// What `ask` writes stands before the neighbours of each tile of columns; null: nothing does.
    void open_columns(const std::function<void()>& ask = nullptr) {
        if (columns_ < 0) return;
        const std::int64_t n = columns_of(frame_, columns_, scope_);
        const std::string column = "fragment_column(j_, c_)";
        if (ask) {
            out_.open(fmt::format("EACH(j_, {})", n / frame_.fragments().columns));
            ask();
            out_.open(fmt::format("EACH(c_, {})", frame_.fragments().columns_a_thread));
            asks_ = true;
        } else {
            out_.open(each_column(frame_, columns_of_part_ > 0 ? columns_of_part_ : n));
        }
        declare(columns_, columns_of_part_ > 0 ? fmt::format("{} * part_ + {}", columns_of_part_, column) : column, n);
    }
    /// The same in contiguous segments of columns. What `ask` writes stands before several of them, and what `take`
    /// writes begins each.
    void open_columns_in_runs(std::int64_t together, const std::function<void()>& ask, const std::function<void()>& take) {
        const std::int64_t n = columns_of(frame_, columns_, scope_);
        const std::int64_t tiles = frame_.shapes.run_columns / frame_.fragments().columns;
        out_.open(fmt::format("EACH(runs_, {})", n / frame_.shapes.run_columns / together));
        ask();
        out_.open(fmt::format("EACH(own_run_, {})", together));
        out_(fmt::format("const int run_ = {} * runs_ + own_run_;", together));
        take();
        out_.open(fmt::format("EACH(i_, {}) EACH(c_, {})", tiles, frame_.fragments().columns_a_thread));
        out_(fmt::format("const int j_ = {} * run_ + i_;", tiles));
        declare(columns_, "fragment_column(j_, c_)", n);
        in_runs_ = true;
    }
    void close_columns() {
        if (columns_ >= 0) out_.close();
        if (in_runs_) out_.close(), out_.close();
        if (asks_) out_.close();
    }
    void close_rows() {
        if (has_rows_) out_.close();
    }

    /// Whether some of `n` values along the axis lie past the tile's end.
    [[nodiscard]] bool is_padded(AxisId axis, std::int64_t n) const {
        const Span& span = frame_.span(axis, scope_);
        return !(has_whole_columns_ && axis == columns_) && (span.ragged || span.tile != n);
    }
    [[nodiscard]] bool columns_are_padded() const {
        return columns_ >= 0 && is_padded(columns_, columns_of(frame_, columns_, scope_));
    }
    [[nodiscard]] bool rows_are_padded() const { return is_padded(frame_.schedule.mma_m, frame_.fragment_rows()); }
    /// Whether a thread's column is one of the tile, and not what stands for one past its end.
    [[nodiscard]] std::string is_inside() const {
        return fmt::format("fragment_column(j_, c_) < {}", frame_.count(columns_, scope_));
    }

private:
    /// What is read elsewhere than in registers is read inside of the tile. The last value stands for those past its
    /// end.
    void declare(AxisId axis, std::string text, std::int64_t n) {
        if (frame_.span(axis, scope_).tile == 1) return;
        if (may_leave_ && is_padded(axis, n))
            text = fmt::format("min_index({}, {} - 1)", text, frame_.count(axis, scope_));
        out_.declare("const Index", frame_.axis(axis).local, text);
    }

    const Frame& frame_;
    Lines& out_;
    ScopeId scope_;
    AxisId columns_;
    bool may_leave_, has_whole_columns_;
    std::int64_t columns_of_part_;  ///< that the loop over columns covers; 0: all of them
    bool in_runs_ = false, has_rows_ = true, asks_ = false;
};

/// The loops that BodyWriter hoists out of, rows around columns.
std::vector<AxisId> loops_of(const Frame& frame, AxisId columns) {
    std::vector<AxisId> loops{frame.schedule.mma_m};
    if (columns >= 0) loops.push_back(columns);
    return loops;
}

std::string run_name(const Frame& frame, VariableId id) { return frame.name(id) + "_run_"; }
void ask_for_runs(const Frame& frame, Lines& out, const Step& step, AxisId columns, const std::vector<const Read*>& runs) {
    const std::int64_t together = frame.shape(step).runs_together;
    for (const Read* r : runs) {
        const Variable& v = frame.variable(r->variable());
        const std::string &strides = frame.strides.at(v.array), name = run_name(frame, r->variable());
        std::string row = frame.memory.at(v.array);
        for (std::size_t d = 0; d + 1 < r->indices.size(); ++d)
            if (const std::string index = index_in_tile(frame, r->indices[d], step.scope); index != "0")
                row += fmt::format(" + {} * {}[{}]", index, strides, d);
        const std::string column = fmt::format("{}[{}]", strides, r->indices.size() - 1);
        if (frame.span(columns, step.scope).begins) row += fmt::format(" + {} * {}", frame.axis(columns).begin, column);
        out(fmt::format("RunPart<{}> {}asked_[{}];", memory_type(v.memory_type), name, together));
        out(fmt::format("EACH(i_, {}) {}asked_[i_] = ask_for_run({}, {}, {} * ({} * runs_ + i_), {});", together, name,
                        row, column, frame.shapes.run_columns, together, frame.count(columns, step.scope)));
    }
}
void take_runs(const Frame& frame, Lines& out, const std::vector<const Read*>& runs) {
    for (const Read* r : runs) {
        const std::string name = run_name(frame, r->variable());
        out(fmt::format("float {}[{}];", name, frame.shapes.run_columns / frame.fragments().threads_a_row()));
        out(fmt::format("take_run({0}, {0}asked_[own_run_]);", name));
    }
}

/// The neighbours that a thread has of those of the value's operands whose rows run along the step's columns.
std::vector<OperandPart> neighbours_of(const Frame& frame, const Step& step, AxisId columns, const Expr& value) {
    std::vector<OperandPart> out;
    const std::int64_t together = frame.fragments().columns_a_thread;
    for (const Read* r : step.reads) {
        const VariableId v = r->variable();
        if (columns < 0 || !frame.is_operand(v) || frame.runs_in_parts(step) || !reads_variable(value, v)) continue;
        const OperandTile tile = *frame.shape(v).tile;
        const auto runs = [&](int d) { return frame.variable(v).dims[at(d)].depends_on(columns); };
        if (runs(tile.inner) && !runs(tile.outer) && together % tile.packed == 0 &&
            none_of(out, [&](const OperandPart& part) { return part.operand == v; }))
            out.push_back({v, together, frame.name(v) + "_pair_", "fragment_column(j_, 0)", "c_"});
    }
    return out;
}

/// Tells the body where a thread finds values of operands and fragments. Dimensions of an operand that are not wide
/// have one value.
void give_values(const Frame& frame, const Step& step, BodyWriter& body, const std::vector<const Read*>& runs = {},
                 const std::vector<OperandPart>& neighbours = {}) {
    for (const Read* r : step.reads) {
        if (frame.is_in_registers(r->variable())) body.give(r->variable(), element(frame, step, r->variable()));
        if (frame.is_read_by_threads(r->variable()))
            body.give_in_memory(r->variable(), [&frame, &step, runs](const Read& read) {
                if (any_of(runs, [&](const Read* run) { return run->array == read.array; }))
                    return BodyWriter::Element{run_name(frame, read.variable()) + "[2 * i_ + c_]",
                                               inner_axes(frame, read.indices, step.scope)};
                if (!frame.shape(read.variable()).is_read_by_rows) return element_in_memory(frame, read, step.scope);
                if (!frame.shape(variable_of(step)).has_rows)  // all rows have the one value
                    return BodyWriter::Element{frame.name(read.variable()) + "[0]", {}};
                return BodyWriter::Element{row_element(frame, read.variable(), frame.name(read.variable())),
                                           {frame.schedule.mma_m}};
            });
        if (!frame.is_operand(r->variable())) continue;
        const auto part = find_if(neighbours, [&](const OperandPart& p) { return p.operand == r->variable(); });
        part == neighbours.end() ? give_operand_value(frame, step, body, r->variable())
                                 : give_part(frame, step, body, *part);
    }
}

bool reads_elsewhere(const Frame& frame, const Step& step) {
    return any_of(step.reads, [&](const Read* r) { return !frame.is_in_registers(r->variable()); });
}

/// Every thread computes the value for each of its values of the statement's target.
void each_value(const Frame& frame, Lines& out, const Step& step, AxisId columns, const lower::PointMath& point) {
    const auto& compute = std::get<Compute>(*step.statement);
    const int level = columns >= 0 ? 2 : 1;
    Names names = frame.names;
    // A value without rows stands under the same levels, of which that of rows has no loop.
    BodyWriter body(frame, step, point.choices, loops_of(frame, columns), level, names);
    const std::vector<const Read*>& runs = frame.shape(step).in_runs;
    const std::vector<OperandPart> neighbours = runs.empty() ? neighbours_of(frame, step, columns, point.value)
                                                             : std::vector<OperandPart>{};
    give_values(frame, step, body, runs, neighbours);
    const bool is_integer = frame.shape(compute.variable).register_type == DType::i32;
    const ValueId root = body.add_root(point.value, level, false, false, is_integer);
    body.decide();

    ValueLoops loops(frame, out, step.scope, columns, reads_elsewhere(frame, step), point.has_whole_columns,
                     frame.runs_in_parts(step) ? frame.column_parts->columns : 0);
    if (!frame.shape(compute.variable).has_rows) loops.leave_out_rows();
    out.open("");
    body.hoist(out, 0);
    loops.open_rows();
    body.hoist(out, 1);
    const auto ask = [&] {
        for (const OperandPart& part : neighbours)
            out(part_declaration(frame, step, part)), out(part_load(frame, step, part));
    };
    if (runs.empty())
        neighbours.empty() ? loops.open_columns() : loops.open_columns(ask);
    else
        loops.open_columns_in_runs(
            frame.shape(step).runs_together, [&] { ask_for_runs(frame, out, step, columns, runs); },
            [&] { take_runs(frame, out, runs); });
    if (columns >= 0) body.hoist(out, 2);
    body.statement(out, root, [&](const std::string& text) {
        return fmt::format("{} = {};", element(frame, step, compute.variable), text);
    });
    loops.close_columns();
    loops.close_rows();
    out.close();
}

/// Every thread reduces its columns of a row into the target. Where the result is of the whole row, the four threads of
/// the row then combine what they found.
struct Reduced {
    const lower::PointMath& point;
    Expr carried;
    std::string target;
    bool of_row = true;
};
void write_reduction(const Frame& frame, Lines& out, const Step& step, AxisId columns, const Reduced& reduced) {
    const auto& compute = std::get<Compute>(*step.statement);
    const ReduceOp op = *compute.reduce;
    Names names = frame.names;
    BodyWriter body(frame, step, reduced.point.choices, loops_of(frame, columns), 1, names);
    give_values(frame, step, body);
    const ValueId root = body.add_root(reduced.point.value, 2, false, false, false);
    const ValueId carry = reduced.carried ? body.add_root(reduced.carried, 1, false, false, false) : -1;
    body.decide();

    ValueLoops loops(frame, out, step.scope, columns, reads_elsewhere(frame, step), reduced.point.has_whole_columns);
    out.open("");
    body.hoist(out, 0);
    loops.open_rows();
    body.hoist(out, 1);
    const std::string start = literal(identity(op), false);
    out(fmt::format("float acc = {};", start));
    loops.open_columns();
    body.hoist(out, 2);
    body.statement(out, root, [&](const std::string& text) {
        const std::string value = loops.columns_are_padded()
                                      ? fmt::format("({} ? {} : {})", loops.is_inside(), text, start)
                                      : text;
        return fmt::format("acc = {};", combined(op, "acc", value));
    });
    loops.close_columns();
    std::string result = reduced.of_row ? over_row(frame, horizontal(op), "acc") : "acc";
    if (const Expr& factor = reduced.point.factor; factor && !frame.is_number(factor, 1))
        result += " * " + frame.real_text(to_string(factor, expression_names(frame)), factor);
    if (carry < 0) {
        out(fmt::format("{} = {};", reduced.target, result));
    } else {
        body.statement(out, carry, [&](const std::string& text) {
            return fmt::format("{} = {};", reduced.target, combined(op, text, result));
        });
    }
    loops.close_rows();
    out.close();
}

const ScheduledLoop& loop_of(const Frame& frame, const Step& step) {
    return *find_if(frame.loops, [&](const ScheduledLoop& l) { return l.scope == step.scope; });
}
std::string ahead_name(const Frame& frame, VariableId id) { return frame.name(id) + "_ahead_"; }

/// Reads the rows' values of a variable, where the axes stand, into registers of this name.
void write_rows_into(const Frame& frame, Lines& out, const Step& step, const std::string& name) {
    const VariableId id = std::get<Load>(*step.statement).variable;
    const bool has_parts = frame.shape(id).row_values > frame.fragments().rows_a_thread;
    ValueLoops loops(frame, out, step.scope, -1, true);
    if (has_parts) out.open(fmt::format("EACH(part_, {})", frame.column_parts->parts));
    loops.open_rows();
    out(fmt::format("{} = {};", row_element(frame, id, name),
                    element_in_memory(frame, *as<Read>(read(id, frame.variable(id).dims)), step.scope).text));
    loops.close_rows();
    if (has_parts) out.close();
}
/// The same for the iteration that starts at `begin`, `ahead` iterations before it is used. Past the end, the last
/// values are read, and nobody uses them.
void write_rows_at(const Frame& frame, Lines& out, const Step& step, const std::string& begin, int ahead) {
    const AxisId axis = loop_of(frame, step).loop->axis;
    out.open("");
    out(fmt::format("const Index next_ = min_index({}, {});", begin, one_less(frame.extent_text(axis))));
    out.open("");
    out(fmt::format("const Index {} = next_;", frame.axis(axis).begin));
    write_rows_into(frame, out, step,
                    fmt::format("{}[{}]", ahead_name(frame, std::get<Load>(*step.statement).variable), ahead - 1));
    out.close();
    out.close();
}

}  // namespace

BodyWriter::Element element_in_memory(const Frame& frame, const Read& r, ScopeId scope) {
    const ArrayId array = frame.variable(r.variable()).array;
    std::string at;
    for (std::size_t d = 0; d < r.indices.size(); ++d)
        if (const std::string index = index_in_tile(frame, r.indices[d], scope); index != "0")
            at += fmt::format("{}{} * {}[{}]", at.empty() ? "" : " + ", index, frame.strides.at(array), d);
    const bool is_whole = frame.is_whole(r.variable());
    return {fmt::format("static_cast<{}>({}[{}])", is_whole ? "int64_t" : "real", frame.memory.at(array),
                        at.empty() ? "0" : at),
            inner_axes(frame, r.indices, scope), is_whole};
}

std::string is_whole_tile(const Frame& frame, AxisId axis, ScopeId scope) {
    return fmt::format("{} == {}", frame.count(axis, scope), frame.span(axis, scope).tile);
}

std::string warpgroup_text(const Frame& frame) {
    return fmt::format("{} / {}", warp_name, frame.unit.matrix.warps_together());
}

std::string each_row(const Frame& frame) { return fmt::format("EACH(r_, {})", frame.fragments().rows_a_thread); }

std::string each_column(const Frame& frame, std::int64_t columns) {
    const RegisterTile& tile = frame.fragments();
    return fmt::format("EACH(j_, {}) EACH(c_, {})", columns / tile.columns, tile.columns_a_thread);
}

std::string over_row(const Frame& frame, std::string_view reduction, const std::string& value) {
    return fmt::format("{}_over_row<{}>({})", reduction, frame.fragments().threads_a_row(), value);
}

void write_coordinates(const Frame& frame, Lines& out) {
    const RegisterTile& tile = frame.fragments();
    const layouts::Layout& d = *frame.unit.matrix.begin()->d;
    const std::string lane = "lane_of_thread()";
    out(fmt::format("NAPKIN_INLINE Index fragment_row(int r) {{ return warp_of_thread() * {} + {} + {}; }}", tile.rows,
                    layouts::expression(row_of_lane(d, tile.rows), lane),
                    times(d(layouts::Coordinate{0, tile.row_stride}), "r")));
    out(fmt::format("NAPKIN_INLINE Index fragment_column(int j, int c) {{ return {} * j + {} + {}; }}", tile.columns,
                    layouts::expression(column_of_lane(d, tile.rows), lane),
                    times(d(layouts::Coordinate{0, tile.column_stride}) / tile.rows, "c")));
}

std::string number_in_thread(const Frame& frame, VariableId id) {
    const bool has_columns = frame.shape(id).columns >= 0;
    const RegisterTile& tile = frame.fragments();
    if (!frame.shape(id).has_rows) return has_columns ? fmt::format("{} * j_ + c_", tile.columns_a_thread) : "0";
    if (!has_columns) return "r_";
    return fmt::format("{} * j_ + {} + {}", tile.values(), times(tile.row_stride, "r_"),
                       times(tile.column_stride, "c_"));
}

void write_state_of_parts(const Frame& frame, Lines& out, const StateMerge& merge, const std::array<Expr, 2>& given,
                          const lower::MathChoices& math, const std::map<VariableId, std::string>& texts,
                          const std::string& before) {
    const AxisId columns = frame.shape(merge.state).columns;
    const int level = columns >= 0 ? 2 : 1;
    const Step& step = *find_if(frame.steps, [&](const Step& s) { return s.atom >= 0 && variable_of(s) == merge.state; });
    Names names = frame.names;
    BodyWriter body(frame, step, math, loops_of(frame, columns), level, names);
    for (const auto& [id, text] : texts) body.give(id, text);
    std::array<ValueId, 2> roots{};
    const DType type = frame.shape(merge.state).register_type;
    for (std::size_t part = 0; part < 2; ++part)
        roots[part] = body.add_root(given[part], level, false, false, type == DType::i32);
    body.decide();

    ValueLoops loops(frame, out, 0, columns, false);
    out.open("");
    body.hoist(out, 0);
    loops.open_rows();
    body.hoist(out, 1);
    loops.open_columns();
    if (!before.empty()) out(before);
    if (columns >= 0) body.hoist(out, 2);
    body.statement(out, roots[0], [&](const std::string& text) {
        return fmt::format("const {} own_ = {};", register_text(type), text);
    });
    body.statement(out, roots[1], [&](const std::string& text) {
        return fmt::format(
            "{} = {};", element(frame, merge.state),
            merge.op == ReduceOp::sum ? fmt::format("sum_of_parts(own_, {})", text) : combined(merge.op, "own_", text));
    });
    loops.close_columns();
    loops.close_rows();
    out.close();
}

const char* register_text(DType type) { return type == DType::i32 ? "int" : "float"; }

std::string fragment_declaration(const Frame& frame, VariableId id) {
    return fmt::format("{} {}[{}];", register_text(frame.shape(id).register_type), frame.name(id),
                       frame.shape(id).registers);
}

void write_fragment(const Frame& frame, Lines& out, const Step& step, const AfterFragment& then) {
    const auto& compute = std::get<Compute>(*step.statement);
    const AxisId columns = frame.shape(step).columns;
    const lower::StatementMath& math = frame.math(step);
    const auto write = [&](const lower::PointMath& point) {
        if (math.reduces_columns)
            write_reduction(frame, out, step, columns,
                            {point, point.carry, element(frame, compute.variable),
                             !frame.shape(compute.variable).is_kept_by_threads});
        else
            each_value(frame, out, step, columns, point);
        if (then) then(point.has_whole_columns);
    };
    if (!math.within) return write(math.any);
    // A second copy without masks costs less than they do: most tiles lie wholly on one side of them.
    std::string everywhere;
    const auto add = [&](const std::string& text) { everywhere += (everywhere.empty() ? "" : " && ") + text; };
    const std::int64_t rows = frame.fragments().rows;
    const OwnRows own{fmt::format("{} * {}", rows, frame.has_bulk_copies() ? warp_name : "warp_of_thread()"), rows};
    if (math.within->whole >= 0) add(is_whole_tile(frame, math.within->whole, step.scope));
    for (const Affine& form : math.within->forms) add(fmt::format("{} >= 0", lowest(frame, form, step.scope, &own)));
    if (math.within->by_data) add(is_unmasked_k_block(frame, step.scope));
    out.open(fmt::format("if ({})", everywhere));
    write(*math.unmasked);
    out.close();
    out.open("else");
    write(math.any);
    out.close();
}

void write_sum_of_thread(const Frame& frame, Lines& out, const Step& step, const std::string& target,
                         bool has_whole_columns) {
    lower::PointMath point = frame.math(step).any;
    point.has_whole_columns = has_whole_columns;
    write_reduction(frame, out, step, frame.shape(step).columns, {point, nullptr, target + "[r_]", false});
}

void write_sums_of_rows(const Frame& frame, Lines& out, ScopeId scope) {
    for (const Step& step : frame.steps)
        if (const auto* compute = std::get_if<Compute>(step.statement);
            compute && step.scope == scope && frame.shape(compute->variable).is_kept_by_threads)
            out(fmt::format("{} {}[r_] = {};", each_row(frame), frame.name(compute->variable),
                            over_row(frame, "sum", frame.name(compute->variable) + "[r_]")));
}

void write_correction(const Frame& frame, Lines& out, const Step& step, AxisId columns) {
    const auto& compute = std::get<Compute>(*step.statement);
    if (!compute.carry || adds_in_place(compute)) return;
    const bool is_rescaled_late = frame.rescale && reads_variable(compute.carry, frame.rescale->correction);
    if (is_rescaled_late) out.open(fmt::format("if ({})", moves_name(frame)));
    each_value(frame, out, step, columns, frame.math(step).any);
    if (is_rescaled_late) out.close();
}

void write_fetches(const Frame& frame, Lines& out) {
    std::vector<VariableId> written;
    for (const Step& step : frame.steps) {
        for (const Read* r : frame.shape(step).fetched) {
            if (contains(written, r->variable())) continue;
            written.push_back(r->variable());
            const Variable& v = frame.variable(r->variable());
            const std::string& strides = frame.strides.at(v.array);
            std::string tile = frame.memory.at(v.array);
            std::size_t row = 0;
            for (std::size_t d = 0; d < r->indices.size(); ++d) {
                const AxisId axis = r->indices[d].single_axis();
                const bool is_wide = r->indices[d].is_axis(frame.schedule.mma_m) || d + 1 == r->indices.size();
                if (r->indices[d].is_axis(frame.schedule.mma_m)) row = d;
                const std::string at = !is_wide                     ? index_in_tile(frame, r->indices[d], 0)
                                       : frame.span(axis, 0).begins ? frame.axis(axis).begin
                                                                    : std::string("0");
                if (at != "0") tile += fmt::format(" + {} * {}[{}]", at, strides, d);
            }
            out(fmt::format("fetch_rows({0}, {1}[{2}], {1}[{3}], {4}, {5});  // {6}", tile, strides, row,
                            r->indices.size() - 1, frame.count(frame.schedule.mma_m, 0),
                            frame.count(r->indices.back().single_axis(), 0), v.name));
        }
    }
}

void write_load_of_rows(const Frame& frame, Lines& out, const Step& step) {
    const VariableId id = std::get<Load>(*step.statement).variable;
    const int ahead = frame.shape(step).iterations_ahead;
    if (ahead == 0) return write_rows_into(frame, out, step, frame.name(id));
    const AxisId axis = loop_of(frame, step).loop->axis;
    const std::string name = ahead_name(frame, id);
    out(fmt::format("EACH(i_, {}) {}[i_] = {}[0][i_];", frame.shape(id).row_values, frame.name(id), name));
    for (int turn = 1; turn < ahead; ++turn)
        out(fmt::format("EACH(i_, {0}) {1}[{2}][i_] = {1}[{3}][i_];", frame.shape(id).row_values, name, turn - 1, turn));
    write_rows_at(frame, out, step,
                  fmt::format("{} + {}", frame.axis(axis).begin, ahead * frame.span(axis, step.scope).tile), ahead);
}

void write_first_rows(const Frame& frame, Lines& out, const Step& step, const std::string& begin) {
    const std::int64_t tile = frame.span(loop_of(frame, step).loop->axis, step.scope).tile;
    const int ahead = frame.shape(step).iterations_ahead;
    for (int turn = 0; turn < ahead; ++turn)
        write_rows_at(frame, out, step, turn == 0 ? begin : fmt::format("{} + {}", begin, turn * tile), turn + 1);
}

void declare_rows(const Frame& frame, Lines& out, const Step& step) {
    const VariableId id = std::get<Load>(*step.statement).variable;
    out(fmt::format("float {}[{}];", frame.name(id), frame.shape(id).row_values));
    if (const int ahead = frame.shape(step).iterations_ahead; ahead > 0)
        out(fmt::format("float {}[{}][{}];", ahead_name(frame, id), ahead, frame.shape(id).row_values));
}

void write_init_of_fragments(const Frame& frame, Lines& out, const Init& init) {
    const bool is_integer = frame.shape(init.variable).register_type == DType::i32;
    out(fmt::format("EACH(i_, {}) {}[i_] = {};", frame.shape(init.variable).registers, frame.name(init.variable),
                    is_integer ? std::to_string(whole_of(DType::i32, init.value)) : literal(init.value, false)));
}

void write_store_of_fragments(const Frame& frame, Lines& out, VariableId variable, ScopeId scope) {
    const Variable& v = frame.variable(variable);
    const AxisId columns = frame.shape(variable).columns, rows = frame.schedule.mma_m;
    ValueLoops loops(frame, out, scope, columns, false);
    const auto place = [&](bool with_columns) {
        std::string text = frame.memory.at(v.array);
        for (std::size_t d = 0; d < v.dims.size(); ++d) {
            const AxisId axis = v.dims[d].single_axis();
            const Span& span = frame.span(axis, scope);
            std::string at = span.begins ? frame.axis(axis).begin : "";
            if (span.tile > 1 && (axis != columns || with_columns))
                at += (at.empty() ? "" : " + ") + frame.axis(axis).local;
            if (at.empty()) continue;
            const bool is_last = d + 1 == v.dims.size();
            text += is_last ? " + " + at : fmt::format(" + ({}) * {}[{}]", at, frame.strides.at(v.array), d);
        }
        return text;
    };
    const std::string type = memory_type(v.memory_type);
    const bool whole_rows = columns >= 0 && v.dims.back().is_axis(columns);
    loops.open_rows();
    const std::string row = frame.axis(rows).local, num_rows = frame.count(rows, scope);
    if (loops.rows_are_padded() && !whole_rows) out(fmt::format("if ({} >= {}) continue;", row, num_rows));
    if (columns < 0) {
        out(fmt::format("if (lane_of_thread() % {} == 0) *({}) = convert<{}>({});", frame.fragments().threads_a_row(),
                        place(true), type, element(frame, variable)));
    } else if (whole_rows) {
        // Threads of rows past the end take part in the exchange.
        const std::string count = frame.count(columns, scope);
        out(fmt::format("store_row<{}, {}>({}, {}, {} + {} * r_);", type,
                        columns_of(frame, columns, scope) / frame.fragments().columns, place(false),
                        loops.rows_are_padded() ? fmt::format("{} < {} ? {} : 0", row, num_rows, count) : count,
                        frame.name(variable), frame.fragments().row_stride));
    } else {
        loops.open_columns();
        const std::string guard = loops.columns_are_padded() ? fmt::format("if ({}) ", loops.is_inside()) : "";
        out(fmt::format("{}*({}) = convert<{}>({});", guard, place(true), type, element(frame, variable)));
        loops.close_columns();
    }
    loops.close_rows();
}

}  // namespace napkin::writers
