#pragma once
// What the simulator's files share.
#include <cmath>
#include <vector>

#include "machine/block_machine.hpp"
#include "schedule/simulate.hpp"
#include "schedule/thread_runs.hpp"
#include "support/ids.hpp"
#include "support/ranges.hpp"

namespace napkin {

/// Instructions of a quotient or a rest that each value or lane takes for itself. Estimated from a transposed
/// convolution on one H200 on 2026-11-30, whose 283 µs are those of some 80 instructions a value.
inline constexpr double quotient_instructions = 6;

/// Quotients and rests in an index or a condition.
inline int all_quotients_in(const Expr& e) {
    int found = 0;
    visit(e, [&](const Expr& node) {
        const auto* b = as<Binary>(node);
        found += b && (b->op == BinaryOp::floor_div || b->op == BinaryOp::mod) ? 1 : 0;
    });
    return found;
}

inline double ceil_of(double a, double b) { return std::ceil(a / b); }

/// Values that an index takes over a tile's box, for the tile that begins at 0.
inline double span_of(const Index& dim, const std::vector<std::int64_t>& tile) {
    // A span does not depend on where the tile begins. An index that is a sum, as nearly all are, needs no origin.
    if (const Affine* form = dim.affine()) {
        double last = 0;
        for (const auto& [axis, factor] : form->terms)
            last += std::abs(static_cast<double>(factor)) * static_cast<double>(tile[static_cast<std::size_t>(axis)] - 1);
        return last + 1;
    }
    return static_cast<double>(range_of(dim, std::vector<std::int64_t>(tile.size(), 0), tile).size());
}

inline bool counts(const StatementWork& work, OpKind kind) {
    return any_of(work.ops, [&](const OpCount& op) { return op.kind == kind; });
}

/// Loads of a thread for a run of a variable that lies in runs.
inline double loads_of_run(const ScheduledKernel& k, const Atom& atom, const Read& r) {
    return run_step(k, r, {atom.row_axis, atom.rows}, k.layout(r.variable()).scope) == RunStep::each ? atom.rows : 1;
}

/// Values of a register block that a thread of a GPU loads in one instruction, as they lie together. They are those of
/// several rows, or of several iterations of the innermost loop.
inline double values_in_a_load(const ScheduledKernel& k, const Atom& atom, const Read& r,
                               const std::vector<std::int64_t>& tile) {
    const int inner = k.place(r.variable()).innermost;
    if (!k.in_blocks() || inner < 0) return 1;
    // Lanes load words of their own: a run of narrow values takes the time of as many words.
    if (k.layout(r.variable()).in_runs)
        return loads_of_run(k, atom, r) == 1
                   ? std::max(1.0, static_cast<double>(word_bytes) / bytes(k.variable(r.variable()).memory_type))
                   : 1;
    const Index& dim = k.variable(r.variable()).dims[at(inner)];
    const std::int64_t most = k.unit.copies.vector_bytes / k.value_bytes();
    const auto together = [&](AxisId axis, int values) {
        return axis >= 0 && dim.is_axis(axis)
                   ? static_cast<double>(std::max<std::int64_t>(1, std::min<std::int64_t>(values, most)))
                   : 1;
    };
    const double of_rows = together(atom.row_axis, atom.rows);
    if (of_rows > 1 || atom.reduced.empty() || atom.rows * atom.vectors == 1) return of_rows;
    const AxisId last = atom.reduced.back();
    return tile[at(last)] % iterations_together == 0 ? together(last, iterations_together) : 1;
}

/// One statement's register block on one tile.
struct Simulator::Block {
    const Atom& atom;
    const std::vector<std::int64_t>& tile;
    double panels = 1, row_blocks = 1, steps = 1;
    const std::vector<const Read*>& reads;
    [[nodiscard]] double size(AxisId axis) const { return static_cast<double>(tile[at(axis)]); }
    /// Times that code goes through the axis: in vectors, in rows of whole blocks, or in single values.
    [[nodiscard]] double count(AxisId axis) const {
        return axis == atom.vector_axis ? panels * atom.vectors
               : axis == atom.row_axis  ? row_blocks * atom.rows
                                        : size(axis);
    }
    [[nodiscard]] double points(const std::vector<AxisId>& axes) const {
        double n = 1;
        for (const AxisId axis : axes) n *= count(axis);
        return n;
    }
};

/// Clocks of one statement by pipe.
struct Simulator::Pipes {
    double unit = 0;    ///< the part of `arithmetic` that tensor cores do while their warps may go on
    double shared = 0;  ///< in which shared memory feeds the tensor cores
    double arithmetic = 0, load = 0, store = 0, cache = 0, overhead = 0;
    double target = 0;  ///< in which sums that are added to come into L1 and leave it: nothing overlaps it
    double waits = 0;   ///< in which no unit is busy
    std::array<double, num_op_kinds> by_kind{};
    /// Clocks in which the schedulers of an SM issue all of it. Each issues one instruction a clock, and the FMA unit
    /// takes as many. A load or a store of all lanes takes the SM's one pipe a clock. Addresses, the ends of loops and
    /// copies come on top. Kernels of one CTA an SM executed 1.0 to 1.25 times what is counted here. They issued in
    /// 0.55 to 0.69 of the clocks (Nsight Compute on one H200, 2026-11-29). With 1.42, 26 kernels in floating
    /// point of more than 50 µs take 1.04 times what is predicted in the median, and 0.91 to 1.36 times.
    [[nodiscard]] double issue() const {
        constexpr double with_all_else = 1.42;
        return with_all_else * (arithmetic + (load + store) / schedulers_a_core);
    }
    /// Clocks of all units but the FMA unit, which also runs simple operations.
    [[nodiscard]] double special() const {
        double sum = 0;
        for (std::size_t i = 0; i < num_op_kinds; ++i)
            if (static_cast<OpKind>(i) != OpKind::fma && static_cast<OpKind>(i) != OpKind::simple) sum += by_kind[i];
        return sum;
    }
    void add(double times, const Pipes& other) {
        for (const auto pipe : {&Pipes::unit, &Pipes::shared, &Pipes::arithmetic, &Pipes::load, &Pipes::store,
                                &Pipes::cache, &Pipes::overhead, &Pipes::target, &Pipes::waits})
            this->*pipe += times * other.*pipe;
        for (std::size_t i = 0; i < num_op_kinds; ++i) by_kind[i] += times * other.by_kind[i];
    }
};

/// Bytes of one load or store: all of them (`bytes`), and those that no earlier transfer moved (`unique`).
struct Simulator::Moved {
    StepId step = {};  ///< the statement in which the core waits for them
    bool is_store, is_non_temporal;
    double bytes, unique;
    double by_groups = 0;  ///< bytes that no earlier transfer of the same output tile moved
    double together = 1;   ///< fraction of the bytes that is left where tiles that run together read each byte once
    VariableId variable = -1;
    bool is_fetched = false;  ///< it is in L2 by then
    double asks = 0;          ///< how often a core waits for L2 while all cores ask it
    bool is_ahead = false;    ///< it is copied while the core computes on other tiles
    /// how often the core stalls for the latency of the level that serves them, counted over all bytes
    double waits = 0;
    bool stays = false;  ///< they stay once they are in the core's memory
    double part = 0;     ///< of gathered ones: bytes of the part of the array in which tiles one after the other lie
    double parts = 1;    ///< how many such parts one core goes through, at most
    double merged = 1;   ///< L2 request coalescing: fraction of the bytes that neighbouring SMs request one by one
    /// fraction of the bytes that one CTA asks for where the CTAs of a cluster copy for each other
    double of_a_cluster = 1;
    double lines = 1;  ///< of L2 that are asked for with each line's bytes, beside these
    double run = 1;    ///< contiguous bytes
    double tiles = 1;  ///< number of tiles in which the bytes are moved
};

}  // namespace napkin
