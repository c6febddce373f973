// The time of statements on tensor cores, and of those whose values threads hold in register fragments.
#include <algorithm>

#include "schedule/error_function.hpp"
#include "schedule/fragment_registers.hpp"
#include "schedule/fragments.hpp"
#include "schedule/simulate_parts.hpp"
#include "support/ids.hpp"
#include "support/ranges.hpp"

namespace napkin {
namespace {

/// Instructions that each thread issues for a statement beside the operations on its values: addresses, barriers,
/// fences, moves. Counted in the assembly of attention's main loop (NVRTC 13, sm_90a) of 9 statements. An iteration has
/// 445 instructions: 208 compute values, and 12 are for the tensor cores.
constexpr double statement_instructions = 20;

/// Fraction of a tile's K blocks in which the maximum moves. With conditional rescaling it moves only in the first one.
double share_of_moves(const ScheduledKernel& k, ScopeId scope) {
    if (!k.rescale || k.step(k.rescale->weights).scope != scope) return 1;
    for (const ScheduledLoop& l : k.loops)
        if (l.scope == scope) {
            const Iterations turns = iterations_of(k, l);
            return 2 / std::max(2.0, static_cast<double>(turns.least + turns.most));
        }
    return 1;
}

}  // namespace

/// The unit that runs the kernel's products. It works in parallel with the FMA units of threads.
std::string Simulator::name_of_tensor_core(const ScheduledKernel& k) {
    for (const Step& step : k.steps)
        if (step.atom >= 0 && k.atom(step).kind == AtomKind::mma)
            if (const auto product = mma_product(k, step)) return product->instruction->unit;
    return std::string(name(OpKind::fma));
}

void Simulator::add_product(const ScheduledKernel& k, const Step& step, const MmaProduct& product,
                            const std::vector<std::int64_t>& tile, Pipes& pipes) const {
    const auto lanes = static_cast<double>(k.lanes);
    const double rows = static_cast<double>(k.fragment_rows()),
                 columns = static_cast<double>(columns_of(k, product.n, step.scope)),
                 depth = static_cast<double>(round_up(tile[at(product.k)], product.instruction->k.at(product.type)));
    const Instruction& instruction = *product.instruction;
    const double share = instruction.sustained.known() ? instruction.sustained.value : 1;
    pipes.unit = rows * columns * depth / (share * per_clock(machine_, instruction.unit, product.type));
    pipes.arithmetic += pipes.unit;
    // A product in parts of columns reads A again for each part. Parts of other warpgroups hide that it begins
    // again.
    const double parts = k.runs_in_parts(step) ? static_cast<double>(k.column_parts->parts) : 1;
    pipes.overhead += instruction.overhead_clocks.value;
    // Instructions whose registers spill run one after the other (CUDA 13.0, ptxas C7510 to C7512). What spills
    // moves between them.
    if (spilled_registers(k) > 0) {
        const auto of_loop = std::count_if(k.steps.begin(), k.steps.end(), [&](const Step& other) {
            return other.scope == step.scope && other.atom >= 0 && k.atom(other).kind == AtomKind::mma;
        });
        pipes.overhead = pipes.overhead * depth / static_cast<double>(instruction.k.at(product.type)) +
                         clocks_of_spills(k) / static_cast<double>(of_loop);
    }
    // Each instruction reads its own rows of A, unless registers hold them, and all of B.
    const double tiles = rows / static_cast<double>(instruction.m.to),
                 read = ((product.a_in_registers ? 0 : parts * rows) + tiles * columns) * depth *
                        static_cast<double>(bytes(product.type));
    pipes.shared += clocks_of_shared(k, read);
    // A product that a warp runs by itself has its operands in registers: the warp's own rows of A, and all of B.
    if (product.by_warp()) {
        const auto warps = static_cast<double>(k.schedule.warps.value), value = static_cast<double>(bytes(product.type));
        const double loaded = (product.a_in_registers ? 0 : rows) * depth * value + warps * columns * depth * value;
        pipes.load += loaded / (lanes * static_cast<double>(k.value_bytes())) * load_clocks_;
    }
    if (product.a_in_registers) {
        const double rounding = rows * depth / lanes * clocks_a_vector_[at(OpKind::simple)];
        pipes.by_kind[at(OpKind::simple)] += rounding;
        pipes.arithmetic += rounding;
    }
}

/// Instructions that a value takes which threads write to an operand's tile, beside the statement's own operations:
/// those that widen and round it, and a part's addresses. Counted in the assembly of a tile from e4m3 to bf16 (nvcc
/// 13.0, sm_90a): 27 for 8 values.
constexpr double written_value_instructions = 27.0 / written_values;

/// Instructions of a part that threads copy to an operand's tile as it lies in memory. Estimated: its places at both
/// ends, whether it is inside of the array, and both accesses.
constexpr double run_instructions = 40;

/// Quotients and rests by other than a constant, which no shift or mask replaces, in an expression and its indices.
int quotients_in(const Expr& e) {
    int found = 0;
    visit(e, [&](const Expr& node) {
        const auto* b = as<Binary>(node);
        if (b && (b->op == BinaryOp::floor_div || b->op == BinaryOp::mod) && !as<Constant>(b->b) && !as<Select>(b->b))
            ++found;
        if (const auto* r = as<Read>(node))
            for (const Index& index : r->indices)
                if (!index.affine()) found += quotients_in(index.value());
    });
    return found;
}

/// Share of a scheduler's issue slots that one warp uses by itself as it converts what it reads in shared memory.
/// Measured on one H200 on 2026-11-30 in products that widen weights of 8 and 4 bits: 0.27 and 0.37. In attention over
/// a cache in e4m3 it is 0.34, and 0.47 with two warps.
constexpr double issue_share_of_lone_warps = 0.33, issue_share_of_writers = 0.47;

/// Where several warps share a scheduler, the fitted constants of their loops have it (simulate_warpgroups.cpp).
double Simulator::issue_share(const ScheduledKernel& k, const Step& step) const {
    const bool converts = k.on_tensor_cores() && k.atom(step).kind != AtomKind::mma &&
                          any_of(step.reads, [&](const Read* r) { return k.is_operand(r->variable()); });
    if (!converts) return 1;
    if (warpgroups_beside(k) <= 1) return issue_share_of_lone_warps;
    return k.atom(step).kind == AtomKind::tile ? issue_share_of_writers : 1;
}

/// Threads read and write 16 bytes at a time.
void Simulator::add_written_tile(const ScheduledKernel& k, const Step& step, double values, Pipes& pipes) const {
    const auto lanes = static_cast<double>(k.lanes);
    const auto accesses = [&](DType type) {
        const double parts = values / static_cast<double>(written_values);
        return parts / lanes * std::max(1.0, static_cast<double>(written_values * bytes(type)) / operand_stride_bytes);
    };
    const DType type = k.variable(variable_of(step)).memory_type;
    double crossing = values * bytes(type);
    if (const auto runs = copied_runs(k, step)) {
        // What is computed once for a part: places, and conditions.
        pipes.load += accesses(type) * load_clocks_, pipes.store += accesses(type) * store_clocks_;
        pipes.shared += clocks_of_shared(k, crossing);
        int quotients = 0;
        for (const Index& index : runs->read->indices) quotients += all_quotients_in(index.value());
        for (const Expr& condition : runs->conditions) quotients += all_quotients_in(condition);
        const double parts = values / static_cast<double>(written_values) / lanes,
                     clocks = (run_instructions + quotient_instructions * quotients) * parts *
                              clocks_a_vector_[at(OpKind::simple)];
        pipes.by_kind[at(OpKind::simple)] += clocks, pipes.arithmetic += clocks;
        return;
    }
    for (const Read* r : step.reads) {
        const DType from = k.variable(r->variable()).memory_type;
        if (k.is_operand(r->variable()))
            pipes.load += accesses(from) * load_clocks_, crossing += values * bytes(from);
        else if (!is_read_by_rows(k, r->variable()))
            pipes.load += values / lanes * load_clocks_;
    }
    pipes.store += accesses(type) * store_clocks_;
    pipes.shared += clocks_of_shared(k, crossing);
    const double instructions = written_value_instructions +
                                quotient_instructions * quotients_in(std::get<Compute>(*step.statement).body),
                 converted = instructions * values / lanes * clocks_a_vector_[at(OpKind::simple)];
    pipes.by_kind[at(OpKind::simple)] += converted, pipes.arithmetic += converted;
}

/// Tensor cores multiply whole tiles, padding included. In fragments each thread goes through its own values, those of
/// rows that no tile has, too.
Simulator::Pipes Simulator::fragment_clocks(const ScheduledKernel& k, const Step& step, const StatementWork& work,
                                            const std::vector<std::int64_t>& of_step) const {
    std::vector<std::int64_t> tile = of_step;
    const AxisId rows = k.schedule.mma_m.value;
    if (k.span(rows, 0).tile < k.fragment_rows()) tile[at(rows)] = k.fragment_rows();
    const Atom& atom = k.atom(step);
    const Block block{.atom = atom, .tile = tile, .reads = step.reads};
    const auto lanes = static_cast<double>(k.lanes);
    const auto product = atom.kind == AtomKind::mma ? mma_product(k, step) : std::nullopt;
    Pipes pipes;
    const auto add = [&](OpKind kind, double clocks) {
        pipes.by_kind[at(static_cast<int>(kind))] += clocks;
        pipes.arithmetic += clocks;
    };
    const StepId number = k.number(step);
    // Each warp computes for itself what has no rows: half of what it computes for its 16 rows.
    const double for_each_warp = has_rows(k, variable_of(step)) || atom.kind == AtomKind::tile
                                     ? 1
                                     : static_cast<double>(k.fragment_rows()) /
                                           static_cast<double>(k.fragments().rows_a_thread);
    const double moves = share_of_moves(k, step.scope), runs = k.rescale && k.rescale->moves(number) ? moves : for_each_warp;
    const bool is_corrected_rarely = k.rescale && work.carries && k.rescale->is_corrected(step);
    const auto is_of_terms = [&](const OpCount& op) {
        return std::any_of(work.reduce_axes.begin(), work.reduce_axes.end(),
                           [&](AxisId axis) { return contains(op.axes, axis); });
    };
    const Unary* const near = counts(work, OpKind::erf) ? near_error_function(k, step) : nullptr;
    const bool is_near_erfc = near && near->op == UnaryOp::erfc;
    const int near_instructions = is_near_erfc ? near_erfc_instructions : near_erf_instructions;
    for (const OpCount& op : work.ops)
        if (!product || !contains(op.axes, product->k)) {
            // The correction of a sum is 1 where the maximum stays.
            const double times = is_corrected_rarely && !is_of_terms(op) ? moves : runs,
                         vectors = times * static_cast<double>(op.count) * block.points(op.axes) / lanes;
            if (op.kind == OpKind::erf && near) {
                add(OpKind::exp, vectors * near_specials * clocks_a_vector_[at(static_cast<int>(OpKind::exp))]);
                add(OpKind::simple, vectors * near_instructions * clocks_a_vector_[at(static_cast<int>(OpKind::simple))]);
                continue;
            }
            add(op.kind, vectors * clocks_a_vector_[at(static_cast<int>(op.kind))]);
        }
    const auto& compute = std::get<Compute>(*step.statement);
    if (!product)
        add(OpKind::simple,
            -static_cast<double>(
                with_row_factors_together(k, compute.body, step.scope, column_axis(k, compute.variable)).saved) *
                block.points(work.target_axes) * block.points(work.reduce_axes) / lanes *
                clocks_a_vector_[at(static_cast<int>(OpKind::simple))]);
    add(OpKind::simple, runs * statement_instructions * static_cast<double>(k.schedule.warps.value) *
                            clocks_a_vector_[at(static_cast<int>(OpKind::simple))]);
    if (product) {
        add_product(k, step, *product, tile, pipes);
        return pipes;
    }
    if (atom.kind == AtomKind::tile) {
        add_written_tile(k, step, block.points(work.target_axes), pipes);
        return pipes;
    }
    // Each warp loads for itself. A thread loads one value for each of its rows and pairs of columns that the read
    // tells apart. Rows or columns that are not contiguous in memory take a line each.
    const AxisId row = k.schedule.mma_m;
    const RegisterTile& tile_of_warp = k.fragments();
    for (const Read* r : step.reads) {
        if (k.is_in_registers(r->variable())) continue;
        double loads = 1, lines = 1;
        if (is_read_in_runs(k, step, *r)) {
            // A thread reads 16 bytes at a time. The exchange among four threads takes an instruction and two selects
            // for each word. Each value takes one more instruction.
            const double per_thread = static_cast<double>(tile[at(columns_of_statement(k, step))] *
                                                          tile_of_warp.rows_a_thread) /
                                      static_cast<double>(tile_of_warp.threads_a_row()),
                         words = per_thread * bytes(k.variable(r->variable()).memory_type) / 4;
            const auto warps = static_cast<double>(k.schedule.warps.value);
            pipes.load += warps * (words / 4 * (static_cast<double>(tile_of_warp.rows) / 2) + words) * load_clocks_;
            add(OpKind::simple, warps * (3 * words + per_thread) * clocks_a_vector_[at(static_cast<int>(OpKind::simple))]);
            continue;
        }
        for (const AxisId axis : inner_axes(k, r->indices, step.scope)) {
            const bool is_near = r->indices.back().depends_on(axis);
            const double threads_a_row = static_cast<double>(tile_of_warp.threads_a_row());
            loads *= axis == row ? static_cast<double>(tile_of_warp.rows_a_thread)
                                 : std::max<double>(1, static_cast<double>(tile[at(axis)]) / threads_a_row);
            lines *= is_near ? 1 : axis == row ? static_cast<double>(k.lanes) / threads_a_row : threads_a_row;
        }
        // The swizzle puts rows of an operand into banks of their own.
        if (k.is_operand(r->variable())) lines = 1;
        const double of_warps = static_cast<double>(k.schedule.warps.value) * loads * lines;
        pipes.load += of_warps * load_clocks_;
        // The port of shared memory fills a register of every thread at a time, whether the threads read one value or
        // many. Measured on an H200 on 2026-11-28, in a gradient of attention.
        if (k.is_operand(r->variable()))
            pipes.shared += clocks_of_shared(k, of_warps * static_cast<double>(k.unit.warp_threads * word_bytes));
    }
    return pipes;
}

}  // namespace napkin
