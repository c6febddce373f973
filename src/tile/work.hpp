#pragma once
// The arithmetic of a kernel by kind of operation, statement by statement. A subexpression is counted once for every
// point of its own axes, as in code that hoists what does not change. Skipped K blocks do not count.
#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "algebra/op_kind.hpp"
#include "tile/exact.hpp"

namespace napkin {

struct OpCount {
    OpKind kind = OpKind::simple;
    std::vector<AxisId> axes;  ///< done once for every point of these
    std::int64_t count = 0;
};

/// An array that a statement reads, through one index pattern.
struct OperandRead {
    ArrayId array = -1;
    std::vector<Index> dims;
    std::vector<AxisId> axes;  ///< of the pattern, ascending
};

/// A sum over products of two tensors, each with axes of the result that the other lacks. Tensor cores run it, with
/// 2·m·n·k FLOPs for every point of the batch axes.
struct Contraction {
    /// axes of the first operand and the result; of the second and the result; summed; of all three
    std::vector<AxisId> m, n, k, batch;
    DType type = DType::f32;  ///< the widest of the operands in memory: what is computed at the core takes it
    friend bool operator==(const Contraction&, const Contraction&) = default;
};

struct StatementWork {
    int loop = -1;       ///< into Liveness::loops: that in whose iterations it runs, or -1
    AxisId stream = -1;  ///< of the stream in whose K blocks it runs, or -1
    ArrayId target = -1;
    std::vector<AxisId> target_axes, reduce_axes;
    std::vector<OperandRead> operands;  ///< of the body, each once
    bool carries = false;               ///< reads its own target to go on from it
    std::vector<OpCount> ops;
    std::optional<Contraction> contraction;  ///< its multiply-adds are the ops of kind fma over m, n, k and batch
};

/// A power of two, or a choice between such: quotients and rests of integers by it are simple operations.
bool is_power_of_two(const Expr& e);

std::vector<StatementWork> statement_work(const Diagram& diagram, const TileKernel& kernel);
std::vector<StatementWork> statement_work(const Derived& derived, const Kernel& kernel);

/// Operations by kind over a launch, saturating at 2^62.
struct WorkTotals {
    std::array<std::int64_t, num_op_kinds> by_kind{};
    [[nodiscard]] std::int64_t of(OpKind kind) const { return by_kind[at(kind)]; }
    [[nodiscard]] double flops() const;  ///< an fma counts as 2, everything else as 1
    friend bool operator==(const WorkTotals&, const WorkTotals&) = default;
};
WorkTotals total_work(const TileCounter& counter, const std::vector<StatementWork>& work);

}  // namespace napkin
