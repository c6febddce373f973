#include "emit/emit_fragment.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "algebra/number.hpp"
#include "emit/emit_body.hpp"
#include "emit/emit_write.hpp"
#include "schedule/fragments.hpp"
#include "support/ids.hpp"
#include "support/result.hpp"

namespace napkin::writers {
namespace {

/// A thread's number of the element at rows r_ and columns (j_, c_) of the loops below.
std::string element(const Frame& frame, VariableId id) {
    return frame.name(id) + (column_axis(frame, id) < 0 ? "[r_]" : "[4 * j_ + 2 * r_ + c_]");
}

/// The loops of a thread over its values of one statement: over its rows, and over the columns where there are any.
class ValueLoops {
public:
    ValueLoops(const Frame& frame, Lines& out, int scope, AxisId columns, bool may_leave)
        : frame_(frame), out_(out), scope_(scope), columns_(columns), may_leave_(may_leave) {}

    void open_rows() {
        out_.open("EACH(r_, 2)");
        declare(frame_.schedule.tensor_axis, "fragment_row(r_)", fragment_rows * frame_.schedule.warps.value);
    }
    void open_columns() {
        if (columns_ < 0) return;
        const std::int64_t n = columns_of(frame_, columns_, scope_);
        out_.open(fmt::format("EACH(j_, {}) EACH(c_, 2)", n / fragment_columns));
        declare(columns_, "fragment_column(j_, c_)", n);
    }
    void close_columns() {
        if (columns_ >= 0) out_.close();
    }
    void close_rows() { out_.close(); }

    /// Whether some of `n` values along the axis lie past the tile's end.
    [[nodiscard]] bool is_padded(AxisId axis, std::int64_t n) const {
        const Span& span = frame_.span(axis, scope_);
        return span.ragged || span.tile != n;
    }
    [[nodiscard]] bool columns_are_padded() const {
        return columns_ >= 0 && is_padded(columns_, columns_of(frame_, columns_, scope_));
    }
    [[nodiscard]] bool rows_are_padded() const {
        return is_padded(frame_.schedule.tensor_axis, fragment_rows * frame_.schedule.warps.value);
    }
    /// "x < nx", of the columns.
    [[nodiscard]] std::string is_inside(AxisId axis) const {
        return fmt::format("{} < {}", frame_.axis(axis).local, frame_.count(axis, scope_));
    }

private:
    /// What is read elsewhere than in registers is read inside of the tile: the last value stands for those past its end.
    void declare(AxisId axis, std::string text, std::int64_t n) {
        if (frame_.span(axis, scope_).tile == 1) return;
        if (may_leave_ && is_padded(axis, n)) text = fmt::format("min_index({}, {} - 1)", text, frame_.count(axis, scope_));
        out_(fmt::format("[[maybe_unused]] const Index {} = {};", frame_.axis(axis).local, text));
    }

    const Frame& frame_;
    Lines& out_;
    int scope_;
    AxisId columns_;
    bool may_leave_;
};

/// The loops that BodyWriter hoists out of, rows around columns.
std::vector<AxisId> loops_of(const Frame& frame, AxisId columns) {
    std::vector<AxisId> loops{frame.schedule.tensor_axis};
    if (columns >= 0) loops.push_back(columns);
    return loops;
}

/// The axis of the statement's columns: of its target, of what it reduces, of what it reads.
AxisId columns_of_statement(const Frame& frame, const Step& step) {
    const auto& compute = std::get<Compute>(*step.statement);
    if (const AxisId axis = column_axis(frame, compute.variable); axis >= 0) return axis;
    const auto is_column = [&](AxisId axis) {
        return axis >= 0 && axis != frame.schedule.tensor_axis && frame.span(axis, step.scope).tile > 1;
    };
    for (const AxisId axis : compute.reduce_axes)
        if (is_column(axis)) return axis;
    return -1;
}

std::string stage_name(const Frame& frame, VariableId id) { return frame.name(id) + "_stage"; }

/// Where values of operands and fragments are found by a thread; an operand's dimensions that are not wide have one value.
void give_values(const Frame& frame, const Step& step, BodyWriter& body) {
    for (const Read* r : step.reads) {
        if (frame.is_in_registers(r->array)) body.give(r->array, element(frame, r->array));
        if (!frame.is_operand(r->array)) continue;
        const Variable& v = frame.variable(r->array);
        const OperandTile tile = *operand_tile(frame, r->array);
        const auto at_dimension = [&](int d) {
            const AxisId axis = v.dims[at(d)].single_axis();
            return frame.span(axis, step.scope).tile > 1 ? frame.axis(axis).local : std::string("0");
        };
        body.give(r->array, fmt::format("operand_value<{}, {}>({}, {}, {}, {})", memory_type(v.memory_type), tile.rows,
                                        frame.name(r->array), stage_name(frame, r->array), at_dimension(tile.outer),
                                        at_dimension(tile.inner)));
    }
}

bool reads_elsewhere(const Frame& frame, const Step& step) {
    return std::any_of(step.reads.begin(), step.reads.end(), [&](const Read* r) { return !frame.is_in_registers(r->array); });
}

int operand_number(const Frame& frame, VariableId id) {
    const std::vector<VariableId> all = operands_of(frame);
    return static_cast<int>(std::find(all.begin(), all.end(), id) - all.begin());
}

/// Of the operand's first stage, counted in the arena's barriers.
std::int64_t first_barrier(const Frame& frame, VariableId id) {
    std::int64_t n = 0;
    for (const VariableId v : operands_of(frame)) {
        if (v == id) break;
        n += frame.place(v).stages;
    }
    return n;
}

/// The instruction as a function: acc += A·B, or acc = A·B where `adds` is 0.
std::string instruction_name(const MatrixProduct& p, std::int64_t n, bool a_transposed, bool b_transposed) {
    return fmt::format("{}_m{}n{}k{}_{}_{}{}{}", p.instruction->name, p.instruction->m.to, n, p.instruction->k.at(p.type),
                       name(p.type), p.a_in_registers ? "r" : "s", a_transposed ? "t" : "", b_transposed ? "_t" : "");
}
std::string instruction_text(const MatrixProduct& p, std::int64_t n, bool a_transposed, bool b_transposed) {
    const std::int64_t registers = n / 2;
    std::string list, bound;
    for (std::int64_t i = 0; i < registers; ++i) {
        list += fmt::format("{}%{}", i == 0 ? "" : ", ", i);
        bound += fmt::format("{}\"+f\"(d[{}])", i == 0 ? "" : ", ", i);
    }
    const std::int64_t a = registers, b = a + (p.a_in_registers ? 4 : 1), adds = b + 1;
    const std::string a_text = p.a_in_registers ? fmt::format("{{%{}, %{}, %{}, %{}}}", a, a + 1, a + 2, a + 3)
                                                : fmt::format("%{}", a);
    std::string flags = ", 1, 1";
    if (bytes(p.type) == 2) flags += (p.a_in_registers ? "" : a_transposed ? ", 1" : ", 0") + std::string(b_transposed ? ", 1" : ", 0");
    const std::string type(name(p.type));
    return fmt::format(
        "NAPKIN_INLINE void {}(float (&d)[{}], {}, unsigned long long b, int adds) {{\n"
        "    asm volatile(\"{{.reg .pred p; setp.ne.b32 p, %{}, 0; wgmma.mma_async.sync.aligned.m{}n{}k{}.f32.{}.{} \"\n"
        "                 \"{{{}}}, {}, %{}, p{};}}\"\n"
        "                 : {}\n"
        "                 : {}, \"l\"(b), \"r\"(adds));\n"
        "}}\n",
        instruction_name(p, n, a_transposed, b_transposed), registers,
        p.a_in_registers ? "const unsigned* a" : "unsigned long long a", adds, p.instruction->m.to, n,
        p.instruction->k.at(p.type), type, type, list, a_text, b, flags, bound,
        p.a_in_registers ? "\"r\"(a[0]), \"r\"(a[1]), \"r\"(a[2]), \"r\"(a[3])" : "\"l\"(a)");
}

/// The descriptor of an operand for step k_ of the product (PTX ISA, wgmma matrix descriptor). Rows of 128 bytes along k: a step goes
/// along the row, and from panel to panel. Along m or n: a step goes down by as many rows as the instruction is deep.
std::string descriptor(const Frame& frame, const MatrixProduct& p, const Read& r, bool along_k, bool is_a) {
    const OperandTile tile = *operand_tile(frame, r.array);
    const std::int64_t deep = p.instruction->k.at(p.type) * bytes(p.type), steps = operand_row_bytes / deep;
    std::string address = fmt::format("{}_at", frame.name(r.array));
    if (is_a) {
        // Each group of warps that runs the instruction has its own rows.
        const std::int64_t warps = p.instruction->threads / frame.unit.warp_threads;
        const std::int64_t own = along_k ? p.instruction->m.to * operand_row_bytes : tile.panel_bytes();
        if (frame.schedule.warps.value > warps) address += fmt::format(" + warp_of_thread() / {} * {}", warps, own);
    }
    if (!along_k)
        address += fmt::format(" + k_ * {}", p.instruction->k.at(p.type) * operand_row_bytes);
    else if (tile.panels == 1)
        address += fmt::format(" + k_ * {}", deep);
    else
        address += fmt::format(" + k_ / {0} * {1} + k_ % {0} * {2}", steps, tile.panel_bytes(), deep);
    return fmt::format("matrix_descriptor({}, {}, {})", address, along_k ? 16 : tile.panel_bytes(), operand_alignment);
}

}  // namespace

std::vector<VariableId> operands_of(const ScheduledKernel& kernel) {
    std::vector<VariableId> out;
    for (std::size_t v = 0; v < kernel.layouts.size(); ++v)
        if (kernel.is_operand(static_cast<VariableId>(v))) out.push_back(static_cast<VariableId>(v));
    return out;
}

std::string fragment_declaration(const Frame& frame, VariableId id) {
    return fmt::format("float {}[{}];", frame.name(id), fragment_registers(frame, id));
}

void write_fragment(const Frame& frame, Lines& out, const Step& step) {
    const auto& compute = std::get<Compute>(*step.statement);
    const AxisId columns = columns_of_statement(frame, step);
    const bool is_row = column_axis(frame, compute.variable) < 0, reduces = compute.reduce && columns >= 0 && is_row;
    Names names = frame.names;
    // A single term needs no loop: the value itself is the reduction.
    const int target_level = is_row ? 1 : 2, last = columns >= 0 ? 2 : 1;
    BodyWriter body(frame, step, loops_of(frame, columns), target_level, names);
    give_values(frame, step, body);
    const ValueId root = body.add_root(compute.body, last, false, false, false);
    const ValueId carry = compute.carry ? body.add_root(compute.carry, target_level, false, false, false) : -1;
    body.decide();

    ValueLoops loops(frame, out, step.scope, columns, reads_elsewhere(frame, step));
    out.open("");
    body.hoist(out, 0);
    loops.open_rows();
    body.hoist(out, 1);
    const std::string target = element(frame, compute.variable);
    const auto write_result = [&](const std::string& value) {
        if (carry < 0) return out(fmt::format("{} = {};", target, value));
        body.statement(out, carry, [&](const std::string& text) {
            return fmt::format("{} = {};", target, combined(*compute.reduce, text, value));
        });
    };
    if (reduces) {
        const ReduceOp op = *compute.reduce;
        const std::string start = literal(identity(op), false);
        out(fmt::format("float acc = {};", start));
        loops.open_columns();
        body.hoist(out, 2);
        body.statement(out, root, [&](const std::string& text) {
            const std::string value = loops.columns_are_padded()
                                          ? fmt::format("({} ? {} : {})", loops.is_inside(columns), text, start)
                                          : text;
            return fmt::format("acc = {};", combined(op, "acc", value));
        });
        loops.close_columns();
        write_result(fmt::format("{}_over_quad(acc)", horizontal(op)));
    } else {
        loops.open_columns();
        body.hoist(out, 2);
        if (carry < 0) {
            body.statement(out, root, [&](const std::string& text) { return fmt::format("{} = {};", target, text); });
        } else {
            out("float value;");
            body.statement(out, root, [&](const std::string& text) { return fmt::format("value = {};", text); });
            write_result("value");
        }
        loops.close_columns();
    }
    loops.close_rows();
    out.close();
}

void write_product(const Frame& frame, Lines& out, const Step& step, std::set<std::string>& functions) {
    const auto& compute = std::get<Compute>(*step.statement);
    const MatrixProduct p = *matrix_product(frame, step);
    const std::string target = frame.name(compute.variable);
    const std::int64_t n = columns_of(frame, p.n, step.scope), deep = p.instruction->k.at(p.type);
    const std::int64_t steps = (frame.span(p.k, step.scope).tile + deep - 1) / deep;
    const bool a_along_k = p.a_in_registers || p.a->indices.back().is_axis(p.k), b_along_k = p.b->indices.back().is_axis(p.k);
    functions.insert(instruction_text(p, n, !a_along_k, !b_along_k));

    // What the target holds is corrected first; the products are added to it.
    const auto* kept = compute.carry ? as<Read>(compute.carry) : nullptr;
    if (compute.carry && !(kept && kept->array == compute.variable)) {
        Names names = frame.names;
        BodyWriter body(frame, step, loops_of(frame, p.n), 2, names);
        give_values(frame, step, body);
        const ValueId carry = body.add_root(compute.carry, 2, false, false, false);
        body.decide();
        ValueLoops loops(frame, out, step.scope, p.n, reads_elsewhere(frame, step));
        out.open("");
        body.hoist(out, 0);
        loops.open_rows();
        body.hoist(out, 1);
        loops.open_columns();
        body.hoist(out, 2);
        body.statement(out, carry, [&](const std::string& text) {
            return fmt::format("{} = {};", element(frame, compute.variable), text);
        });
        loops.close_columns();
        loops.close_rows();
        out.close();
    }
    out.open("");
    std::string a;
    if (p.a_in_registers) {
        const std::string from = frame.name(p.a->array);
        const bool padded = ValueLoops(frame, out, step.scope, p.k, false).columns_are_padded();
        const auto value = [&](int c) {
            const std::string text = fmt::format("{}[8 * k_ + 2 * i_ + {}]", from, c);
            // Past the tile's end the other operand has zeros, which infinities must not meet.
            return padded ? fmt::format("(fragment_column(2 * k_ + i_ / 2, {}) < {} ? {} : 0.0f)", c, frame.count(p.k, step.scope), text)
                          : text;
        };
        out(fmt::format("unsigned a_[{}];", 4 * steps));
        out(fmt::format("EACH(k_, {}) EACH(i_, 4) a_[4 * k_ + i_] = pack_{}({}, {});", steps, name(p.type), value(0), value(1)));
        a = "&a_[4 * k_]";
    } else {
        out(fmt::format("const unsigned {0}_at = shared_address({0}) + {1};", frame.name(p.a->array), stage_name(frame, p.a->array)));
        a = descriptor(frame, p, *p.a, a_along_k, true);
    }
    out(fmt::format("const unsigned {0}_at = shared_address({0}) + {1};", frame.name(p.b->array), stage_name(frame, p.b->array)));
    out(fmt::format("pin({});", target));
    if (p.a_in_registers) out("pin(a_);");
    out("wgmma_fence();");
    out(fmt::format("EACH(k_, {}) {}({}, {}, {}, {});", steps, instruction_name(p, n, !a_along_k, !b_along_k), target, a,
                    descriptor(frame, p, *p.b, b_along_k, false), p.adds ? "1" : "k_ > 0"));
    out("wgmma_commit();");
    out("wgmma_wait<0>();");
    out(fmt::format("pin({});", target));
    out.close();
}

void write_init_of_fragments(const Frame& frame, Lines& out, const Init& init) {
    out(fmt::format("EACH(i_, {}) {}[i_] = {};", fragment_registers(frame, init.variable), frame.name(init.variable),
                    literal(init.value, false)));
}

void write_store_of_fragments(const Frame& frame, Lines& out, VariableId variable, int scope) {
    const Variable& v = frame.variable(variable);
    const AxisId columns = column_axis(frame, variable), rows = frame.schedule.tensor_axis;
    ValueLoops loops(frame, out, scope, columns, false);
    const auto place = [&](bool with_columns) {
        std::string text = frame.memory.at(v.array);
        for (std::size_t d = 0; d < v.dims.size(); ++d) {
            const AxisId axis = v.dims[d].single_axis();
            const Span& span = frame.span(axis, scope);
            std::string at = span.begins ? frame.axis(axis).begin : "";
            if (span.tile > 1 && (axis != columns || with_columns)) at += (at.empty() ? "" : " + ") + frame.axis(axis).local;
            if (at.empty()) continue;
            const bool is_last = d + 1 == v.dims.size();
            text += is_last ? " + " + at : fmt::format(" + ({}) * {}[{}]", at, frame.strides.at(v.array), d);
        }
        return text;
    };
    const std::string type = memory_type(v.memory_type);
    loops.open_rows();
    if (loops.rows_are_padded()) out(fmt::format("if ({} >= {}) continue;", frame.axis(rows).local, frame.count(rows, scope)));
    if (columns < 0) {
        out(fmt::format("if (lane_of_thread() % 4 == 0) *({}) = convert<{}>({}[r_]);", place(true), type, frame.name(variable)));
    } else {
        const std::int64_t n = columns_of(frame, columns, scope);
        const bool neighbours = v.dims.back().is_axis(columns);
        if (neighbours) {
            out(fmt::format("EACH(j_, {}) store_pair<{}>({}, fragment_column(j_, 0), {}, {}[4 * j_ + 2 * r_], {}[4 * j_ + 2 * r_ + 1]);",
                            n / fragment_columns, type, place(false), frame.count(columns, scope), frame.name(variable),
                            frame.name(variable)));
        } else {
            loops.open_columns();
            const std::string guard = loops.columns_are_padded() ? fmt::format("if ({}) ", loops.is_inside(columns)) : "";
            out(fmt::format("{}*({}) = convert<{}>({});", guard, place(true), type, element(frame, variable)));
            loops.close_columns();
        }
    }
    loops.close_rows();
}

std::string stage_of_turn(const Frame& frame, VariableId variable, const std::string& turn) {
    const int stages = frame.place(variable).stages;
    return stages == 1 ? "0" : fmt::format("{} % {}", turn, stages);
}

void write_fill(const Frame& frame, Lines& out, VariableId variable, int scope, const std::string& stage) {
    const Variable& v = frame.variable(variable);
    const OperandTile tile = *operand_tile(frame, variable);
    const int number = operand_number(frame, variable);
    out.open("");
    out(fmt::format("const int stage = int({});", stage));
    out(fmt::format("const unsigned full = barriers + 8 * ({} + stage);", first_barrier(frame, variable)));
    out(fmt::format("expect_bytes(full, {});", tile.bytes));
    std::string coordinates;
    for (std::size_t d = v.dims.size(); d-- > 0;) {
        const AxisId axis = v.dims[d].single_axis();
        std::string at = frame.span(axis, scope).begins ? frame.axis(axis).begin : "0";
        if (static_cast<int>(d) == tile.inner && tile.panels > 1) at += fmt::format(" + {} * panel", tile.width);
        coordinates += fmt::format(", int({})", at);
    }
    const std::string to = fmt::format("shared_address({}) + {} * stage", frame.name(variable), tile.bytes);
    if (tile.panels > 1)
        out(fmt::format("EACH(panel, {}) bulk_copy({} + {} * panel, &maps.of[{}], full{});", tile.panels, to,
                        tile.panel_bytes(), number, coordinates));
    else
        out(fmt::format("bulk_copy({}, &maps.of[{}], full{});", to, number, coordinates));
    out.close();
}

void write_stage(const Frame& frame, Lines& out, VariableId variable, const std::string& turn) {
    out(fmt::format("const unsigned {} = {};", stage_name(frame, variable),
                    frame.place(variable).stages == 1
                        ? "0"
                        : fmt::format("unsigned({}) * {}", stage_of_turn(frame, variable, turn), operand_tile(frame, variable)->bytes)));
}

void write_wait(const Frame& frame, Lines& out, VariableId variable, const std::string& turn) {
    const int stages = frame.place(variable).stages;
    const std::string parity = stages == 1 ? fmt::format("{} & 1", turn) : fmt::format("{} / {} & 1", turn, stages);
    out(fmt::format("wait_full(barriers + 8 * ({} + {}), {});", first_barrier(frame, variable),
                    stage_of_turn(frame, variable, turn), parity));
}

}  // namespace napkin::writers
