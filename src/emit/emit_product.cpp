// Products on the tensor cores. Either several warps run an instruction together, with operands in shared memory
// (wgmma). Or every warp runs one by itself, with operands that it loads into registers (mma).
#include <fmt/format.h>

#include "algebra/fragment.hpp"
#include "emit/emit_fragment.hpp"
#include "support/ids.hpp"
#include "support/ranges.hpp"

namespace napkin::writers {
namespace {

/// A product as it is written.
struct Product : MmaProduct {
    Product(const Frame& frame, const Step& step) : Product(frame, step, *frame.shape(step).product) {}
    Product(const Frame& frame, const Step& step, const MmaProduct& product)
        : MmaProduct(product),
          target(frame.name(std::get<Compute>(*step.statement).variable)),
          continues(frame.shape(step).outlasts_iteration),
          columns(frame.runs_in_parts(step) ? frame.column_parts->columns : columns_of(frame, n, step.scope)),
          is_in_parts(frame.runs_in_parts(step)),
          deep(instruction->k.at(type)),
          steps((frame.span(k, step.scope).tile + deep - 1) / deep),
          a_along_k(a_in_registers || runs_along(frame, *a, k, step.scope)),
          b_along_k(runs_along(frame, *b, k, step.scope)) {}

    std::string target;
    bool continues;        ///< an earlier iteration's product may still be adding to the target
    std::int64_t columns;  ///< along n, of a part where it runs for each
    bool is_in_parts;
    std::int64_t deep, steps;   ///< along k, of one instruction; instructions along k
    bool a_along_k, b_along_k;  ///< whether the operands are contiguous along k
};

/// Registers of a thread for A, or for B.
std::int64_t words(const std::optional<layouts::Layout>& operand) { return operand->mode(1).size(); }

/// The instruction as a function: acc += A·B, or acc = A·B where `adds` is 0.
std::string instruction_name(const Product& p) {
    const std::string types = (p.type_a == p.type ? "" : fmt::format("{}_", name(p.type_a))) + std::string(name(p.type));
    const std::string shape = fmt::format("{}_m{}n{}k{}_{}", p.instruction->name, p.instruction->m.to,
                                          p.by_warp() ? p.instruction->n.to : p.columns, p.deep, types);
    if (p.by_warp()) return shape;
    return fmt::format("{}_{}{}{}", shape, p.a_in_registers ? "r" : "s", p.a_along_k ? "" : "t", p.b_along_k ? "" : "_t");
}

/// Registers from a number on, as an instruction names them: "{%4, %5}".
std::string register_list(std::int64_t first, std::int64_t count) {
    std::string out;
    for (std::int64_t i = 0; i < count; ++i) out += fmt::format("{}%{}", i == 0 ? "" : ", ", first + i);
    return "{" + out + "}";
}
/// What is bound to registers: `"r"(a[0]), "r"(a[1])`.
std::string bindings(std::string_view how, std::string_view of, std::int64_t count) {
    std::string out;
    for (std::int64_t i = 0; i < count; ++i) out += fmt::format("{}\"{}\"({}[{}])", i == 0 ? "" : ", ", how, of, i);
    return out;
}

/// What PTX calls a type of operands or sums.
std::string ptx_type(DType type) {
    if (is_float(type)) return std::string(name(type));
    return fmt::format("{}{}", facts(type).least < 0 ? 's' : 'u', 8 * bytes(type));
}
/// How PTX registers of a type of sums are bound.
const char* binding(DType sums) { return is_float(sums) ? "f" : "r"; }

/// An instruction of one warp, with and without what D holds so far (PTX ISA, mma.sync).
std::string text_by_warp(const Product& p) {
    const std::int64_t d = p.instruction->tile->values(), a = words(p.instruction->a), b = words(p.instruction->b);
    const DType sums = p.sum_type();
    const auto line = [&](bool adds) {
        const std::string zero = fmt::format("%{}", d + a + b), how = binding(sums);
        std::string zeros;
        for (std::int64_t i = 0; i < d; ++i) zeros += (i == 0 ? "" : ", ") + zero;
        return fmt::format(
            "asm(\"{0}.sync.aligned.m{1}n{2}k{3}.row.col.{4}.{5}.{6}.{4} {7}, {8}, {9}, {10};\"\n"
            "            : {11} : {12}, {13}{14});\n",
            p.instruction->name, p.instruction->m.to, p.instruction->n.to, p.deep, ptx_type(sums), ptx_type(p.type_a),
            ptx_type(p.type), register_list(0, d), register_list(d, a), register_list(d + a, b),
            adds ? register_list(0, d) : "{" + zeros + "}", bindings((adds ? "+" : "=") + how, "d", d),
            bindings("r", "a", a), bindings("r", "b", b),
            adds ? "" : fmt::format(", \"{}\"({})", how, is_float(sums) ? "0.0f" : "0"));
    };
    return fmt::format(
        "NAPKIN_INLINE void {}({}* d, const unsigned (&a)[{}], const unsigned* b, bool adds) {{\n"
        "    if (adds)\n        {}    else\n        {}}}\n",
        instruction_name(p), register_text(sums), a, line(true), line(false));
}

/// An instruction of a warpgroup (PTX ISA, wgmma.mma_async).
std::string text_together(const Product& p) {
    const std::int64_t registers = p.columns / p.instruction->tile->columns * p.instruction->tile->values(),
                       of_a = p.a_in_registers ? words(p.instruction->a) : 1;
    const DType sums = p.sum_type();
    const std::string bound = bindings(fmt::format("+{}", binding(sums)), "d", registers);
    const std::int64_t a = registers, b = a + of_a, adds = b + 1;
    const std::string a_text = p.a_in_registers ? register_list(a, of_a) : fmt::format("%{}", a);
    std::string flags = is_float(p.type) ? ", 1, 1" : "";  // factors of A and B, 1 or -1, which integers lack
    if (contains(p.instruction->either_major, p.type))
        flags += (p.a_in_registers ? "" : p.a_along_k ? ", 0" : ", 1") + std::string(p.b_along_k ? ", 0" : ", 1");
    return fmt::format(
        "NAPKIN_INLINE void {}({} (&d)[{}], {}, unsigned long long b, int adds) {{\n"
        "    asm volatile(\"{{.reg .pred p; setp.ne.b32 p, %{}, 0; wgmma.mma_async.sync.aligned.m{}n{}k{}.{}.{}.{} "
        "\"\n"
        "                 \"{}, {}, %{}, p{};}}\"\n"
        "                 : {}\n"
        "                 : {}, \"l\"(b), \"r\"(adds));\n"
        "}}\n",
        instruction_name(p), register_text(sums), registers, p.a_in_registers ? "const unsigned* a" : "unsigned long long a",
        adds, p.instruction->m.to, p.columns, p.deep, ptx_type(sums), ptx_type(p.type_a), ptx_type(p.type),
        register_list(0, registers), a_text, b, flags, bound, p.a_in_registers ? bindings("r", "a", of_a) : "\"l\"(a)");
}

/// The descriptor of an operand for step k_ of the product (PTX ISA, wgmma matrix descriptor). Rows of 128 bytes along
/// k: a step goes along the row, and from panel to panel. Along m or n: a step goes down by as many rows as the
/// instruction is deep.
std::string descriptor(const Frame& frame, const Product& p, const Read& r, bool is_a) {
    const OperandTile tile = *frame.shape(r.variable()).tile;
    const bool along_k = is_a ? p.a_along_k : p.b_along_k;
    const std::int64_t deep = p.deep * bytes(p.type), steps = operand_row_bytes / deep;
    std::string offset;
    if (!along_k)
        offset = fmt::format("k_ * {}", p.deep * operand_row_bytes);
    else if (tile.panels == 1)
        offset = fmt::format("k_ * {}", deep);
    else
        offset = fmt::format("k_ / {0} * {1} + k_ % {0} * {2}", steps, tile.panel_bytes(), deep);
    return fmt::format("wgmma_descriptor({}_at_, {}, {})", frame.name(r.variable()), offset, operand_alignment);
}

/// The word that an operand's descriptors have in common.
void declare_word(const Frame& frame, Lines& out, const Product& p, const Read& r, bool is_a) {
    const OperandTile tile = *frame.shape(r.variable()).tile;
    const bool along_k = is_a ? p.a_along_k : p.b_along_k;
    std::string own;
    // Each warpgroup that runs the instruction has its own rows of A.
    if (const std::int64_t warps = p.instruction->threads / frame.unit.warp_threads;
        is_a && frame.schedule.warps.value > warps)
        own = fmt::format(" + {} / {} * {}", warp_name, warps,
                          along_k ? p.instruction->m.to * operand_row_bytes : tile.panel_bytes());
    if (!is_a && p.is_in_parts)
        own += fmt::format(" + part_ * {}",
                           along_k ? p.columns * operand_row_bytes : p.columns / tile.width * tile.panel_bytes());
    out(fmt::format("const unsigned {0}_at_ = wgmma_descriptor_base(shared_address({0}) + {1}{2}, {3});",
                    frame.name(r.variable()), stage_name(frame, r.variable()), own, along_k ? 16 : tile.panel_bytes()));
}

/// The fragments of A in registers, rounded, neighbours in each register: those of step k_ at i_. They are results in
/// their own order (Instruction::result_types).
std::string packed(const Frame& frame, const Product& p, ScopeId scope, bool is_whole = false) {
    const std::string from = frame.name(p.a->variable());
    // Past the tile's end the other operand has zeros, which infinities must not meet.
    const bool padded = !is_whole &&
                        (frame.span(p.k, scope).ragged || frame.span(p.k, scope).tile != columns_of(frame, p.k, scope));
    const RegisterTile& tile = frame.fragments();
    const std::int64_t each = word_bytes / bytes(p.type), step = each * words(p.instruction->a);
    const auto value = [&](int c) {
        const std::string text = fmt::format("{}[{} * k_ + {} * i_ + {}]", from, step, each, c);
        return padded ? fmt::format("(fragment_column({} * k_ + i_ / {}, {}) < {} ? {} : 0.0f)", step / tile.values(),
                                    tile.values() / each, c, frame.count(p.k, scope), text)
                      : text;
    };
    return fmt::format("pack_{}({}, {})", name(p.type), value(0), value(1));
}

void declare_address(const Frame& frame, Lines& out, const Read& r) {
    out(fmt::format("const unsigned {0}_at_ = shared_address({0}) + {1};", frame.name(r.variable()),
                    stage_name(frame, r.variable())));
}

std::string rounded_name(const Frame& frame, VariableId id) { return frame.name(id) + "_rounded_"; }

/// Rounds the fragments of A for all steps.
void round_all(const Frame& frame, Lines& out, const Product& p, ScopeId scope, const std::string& to) {
    const std::int64_t of_a = words(p.instruction->a);
    const auto text = [&](bool is_whole) {
        return fmt::format("EACH(k_, {}) EACH(i_, {}) {}[{} * k_ + i_] = {};", p.steps, of_a, to, of_a,
                           packed(frame, p, scope, is_whole));
    };
    if (!is_cut_at_its_end(frame, p.k, scope)) return out(text(false));
    out.open(fmt::format("if ({})", is_whole_tile(frame, p.k, scope)));
    out(text(true));
    out.close();
    out.open("else");
    out(text(false));
    out.close();
}

/// One asynchronous group of instructions.
void write_together(const Frame& frame, Lines& out, const Product& p, ScopeId scope) {
    std::string a, a_registers = "a_";
    if (p.a_in_registers) {
        if (frame.shape(p.a->variable()).is_rounded_ahead) {
            a_registers = rounded_name(frame, p.a->variable());
        } else {
            out(fmt::format("unsigned a_[{}];", words(p.instruction->a) * p.steps));
            round_all(frame, out, p, scope, "a_");
        }
        a = fmt::format("&{}[{} * k_]", a_registers, words(p.instruction->a));
    } else {
        declare_word(frame, out, p, *p.a, true);
        a = descriptor(frame, p, *p.a, true);
    }
    declare_word(frame, out, p, *p.b, false);
    if (!p.continues) out(fmt::format("pin({});", p.target));
    if (p.a_in_registers) out(fmt::format("pin({});", a_registers));
    out("wgmma_fence();");
    out(fmt::format("EACH(k_, {}) {}({}, {}, {}, {});", p.steps, instruction_name(p), p.target, a,
                    descriptor(frame, p, *p.b, false), p.adds ? "1" : "k_ > 0"));
    out("wgmma_commit();");
}

/// The call that loads four matrices, from a row and a part of 16 bytes, along k and across it. Two matrices of A below
/// each other go to neighbouring registers, and two of B beside each other. Both lie so where k is contiguous. Four
/// matrices are the rows of a warp, or two tiles of columns.
std::string matrices(const Frame& frame, const Product& p, const Read& r, bool is_a, const std::string& across,
                     const std::string& lane) {
    const OperandTile tile = *frame.shape(r.variable()).tile;
    const bool along_k = is_a ? p.a_along_k : p.b_along_k;
    return fmt::format(
        "load_matrices<{}, {}>({}, {}_at_, {}, {}, {}{});", is_a == along_k, !along_k, is_a ? "a_" : "b_",
        frame.name(r.variable()), tile.panel_bytes(),
        along_k ? fmt::format("{} * {}", frame.fragments().rows, across) : fmt::format("{} * k_", p.deep),
        along_k ? fmt::format("{} * k_", p.deep * bytes(p.type) / layouts::core_row_bytes)
                : fmt::format("{} * {}", frame.fragments().rows * bytes(p.type) / layouts::core_row_bytes, across),
        lane);
}

/// Every warp goes through k, and in each step through its columns, of which it loads 16 at once.
void write_by_warp(const Frame& frame, Lines& out, const Product& p, ScopeId scope, const std::string& lane = "") {
    if (!p.a_in_registers) {
        declare_address(frame, out, *p.a);
        // A warp whose rows all lie past the tile's end multiplies those of the last one.
        const std::int64_t warps = columns_of(frame, p.m, scope) / frame.fragments().rows;
        const bool is_known = frame.has_bulk_copies() && warps >= frame.schedule.warps.value;
        if (!is_known)
            out(warps < frame.schedule.warps.value ? fmt::format("const int warp_ = min(warp_of_thread(), {});", warps - 1)
                                                   : "const int warp_ = warp_of_thread();");
    }
    declare_address(frame, out, *p.b);
    out.open(fmt::format("EACH(k_, {})", p.steps));
    out(fmt::format("unsigned a_[{}];", words(p.instruction->a)));
    out(p.a_in_registers ? fmt::format("EACH(i_, {}) a_[i_] = {};", words(p.instruction->a), packed(frame, p, scope))
                         : matrices(frame, p, *p.a, true, "warp_", lane));
    const RegisterTile& tile = frame.fragments();
    const std::int64_t of_b = words(p.instruction->b);
    out.open(fmt::format("EACH(j_, {})", p.columns / (2 * tile.columns)));
    out(fmt::format("unsigned b_[{}];", 2 * of_b));
    out(matrices(frame, p, *p.b, false, "j_", lane));
    out(fmt::format("EACH(i_, 2) {}(&{}[{} * j_ + {} * i_], a_, &b_[{} * i_], {});", instruction_name(p), p.target,
                    2 * tile.values(), tile.values(), of_b, p.adds ? "true" : "k_ > 0"));
    out.close();
    out.close();
}

}  // namespace

void write_product(const Frame& frame, Lines& out, const Step& step, std::set<std::string>& functions) {
    const Product p(frame, step);
    write_correction(frame, out, step, p.n);
    out.open("");
    functions.insert(p.by_warp() ? text_by_warp(p) : text_together(p));
    p.by_warp() ? write_by_warp(frame, out, p, step.scope) : write_together(frame, out, p, step.scope);
    out.close();
}

void write_product_again(const Frame& frame, Lines& out, const Step& step, const std::string& those,
                         std::set<std::string>& functions) {
    const Product p(frame, step, *frame.shape(step).by_warp);
    functions.insert(text_by_warp(p));
    out(fmt::format("const int lane_ = lane_after({});", those));
    write_by_warp(frame, out, p, step.scope, ", lane_");
}

/// The product whose first factor is the variable.
const Step& product_of(const Frame& frame, VariableId id) {
    return *find_if(frame.steps, [&](const Step& s) {
        const auto& product = frame.shape(s).product;
        return product && product->a_in_registers && product->a->variable() == id;
    });
}

void declare_rounded(const Frame& frame, Lines& out) {
    for (const VariableId v : frame.layouts.ids()) {
        if (!frame.shape(v).is_rounded_ahead) continue;
        const Product p(frame, product_of(frame, v));
        out(fmt::format("unsigned {}[{}];", rounded_name(frame, v), words(p.instruction->a) * p.steps));
    }
}

void write_rounded(const Frame& frame, Lines& out, ScopeId scope, int ahead) {
    for (const Step& step : frame.steps) {
        if (step.atom < 0 || step.scope != scope || step.ahead != ahead || !frame.shape(variable_of(step)).is_rounded_ahead)
            continue;
        const Product p(frame, product_of(frame, variable_of(step)));
        round_all(frame, out, p, scope, rounded_name(frame, variable_of(step)));
    }
}

}  // namespace napkin::writers
