#include "cost/work.hpp"

#include <algorithm>
#include <map>
#include <unordered_set>

#include "cost/saturate.hpp"

namespace napkin {
namespace {

OpKind kind_of(UnaryOp op) {
    switch (op) {
        case UnaryOp::exp: return OpKind::exp;
        case UnaryOp::log: return OpKind::log;
        case UnaryOp::tanh: return OpKind::tanh;
        case UnaryOp::erf: return OpKind::erf;
        case UnaryOp::sqrt:
        case UnaryOp::rsqrt: return OpKind::sqrt;
        case UnaryOp::sin:
        case UnaryOp::cos: return OpKind::sin;
        case UnaryOp::neg:
        case UnaryOp::abs:
        case UnaryOp::logical_not:
        case UnaryOp::floor: return OpKind::simple;
    }
    return OpKind::simple;
}

OpKind kind_of(BinaryOp op) {
    if (op == BinaryOp::div) return OpKind::div;
    if (op == BinaryOp::pow) return OpKind::pow;
    return OpKind::simple;
}

const Binary* product(const Expr& e) {
    const auto* b = as<Binary>(e);
    return b && b->op == BinaryOp::mul ? b : nullptr;
}

/// Collects the operations of one statement, each subexpression once.
class Counter {
public:
    void count(const Expr& e) {
        if (!seen_.insert(e).second) return;
        for (const Expr& child : children(e)) count(child);
        if (const auto* u = as<Unary>(e)) add(kind_of(u->op), free_axes(e));
        if (const auto* s = as<Select>(e)) (void)s, add(OpKind::simple, free_axes(e));
        if (const auto* c = as<Cast>(e)) (void)c, add(OpKind::simple, free_axes(e));
        if (const auto* b = as<Binary>(e)) {
            const std::vector<AxisId> axes = free_axes(e);
            const bool sum = b->op == BinaryOp::add || b->op == BinaryOp::sub;
            // A product that is added once more at the same points is one operation with the addition.
            for (const Expr& child : {b->a, b->b})
                if (sum && product(child) && free_axes(child) == axes && remove(OpKind::simple, axes))
                    return add(OpKind::fma, axes);
            add(kind_of(b->op), axes);
        }
    }

    void add(OpKind kind, const std::vector<AxisId>& axes) { ++ops_[{kind, axes}]; }

    bool remove(OpKind kind, const std::vector<AxisId>& axes) {
        const auto found = ops_.find({kind, axes});
        if (found == ops_.end()) return false;
        if (--found->second == 0) ops_.erase(found);
        return true;
    }

    [[nodiscard]] std::vector<OpCount> ops() const {
        std::vector<OpCount> out;
        for (const auto& [key, count] : ops_) out.push_back({key.first, key.second, count});
        return out;
    }

private:
    std::unordered_set<Expr, ExprHash, ExprEqual> seen_;
    std::map<std::pair<OpKind, std::vector<AxisId>>, std::int64_t> ops_;
};

std::vector<AxisId> united(std::vector<AxisId> a, const std::vector<AxisId>& b) {
    a.insert(a.end(), b.begin(), b.end());
    std::sort(a.begin(), a.end());
    a.erase(std::unique(a.begin(), a.end()), a.end());
    return a;
}

StatementWork work_of(const Diagram& diagram, const Statement& s, int stage, bool in_loop) {
    StatementWork work{stage,         in_loop, s.target,           diagram.array(s.target).axes,
                       s.reduce_axes, {},      s.carry != nullptr, {}};
    visit(s.body, [&](const Expr& e) {
        const auto* r = as<Read>(e);
        if (!r) return;
        const bool known = std::any_of(work.operands.begin(), work.operands.end(),
                                       [&](const OperandRead& o) { return o.array == r->array && o.dims == r->indices; });
        if (!known) work.operands.push_back({r->array, r->indices, axes_of(r->indices)});
    });
    Counter counter;
    counter.count(s.body);
    if (s.reduce) {
        const std::vector<AxisId> points = united(free_axes(s.body), s.reduce_axes);
        const bool fused = *s.reduce == ReduceOp::sum && product(s.body) &&
                           counter.remove(OpKind::simple, free_axes(s.body));
        counter.add(fused ? OpKind::fma : OpKind::simple, points);
    }
    if (s.carry) {
        counter.count(s.carry);
        std::vector<AxisId> points = work.target_axes;
        std::sort(points.begin(), points.end());
        counter.add(OpKind::simple, points);
    }
    work.ops = counter.ops();
    return work;
}

}  // namespace

std::string_view name(OpKind kind) {
    constexpr std::string_view names[num_op_kinds] = {"fma", "simple", "div", "sqrt", "exp",
                                                      "log", "tanh",   "erf", "sin",  "pow"};
    return names[static_cast<std::size_t>(kind)];
}

std::vector<StatementWork> statement_work(const Diagram& diagram, const Kernel& kernel) {
    std::vector<StatementWork> work;
    for (int stage = 0; stage < static_cast<int>(kernel.stages.size()); ++stage) {
        const Stage& what = kernel.stages[static_cast<std::size_t>(stage)];
        const auto* block = std::get_if<Block>(&what);
        for (const Statement& s : block ? block->statements : std::get<Loop>(what).body)
            work.push_back(work_of(diagram, s, stage, !block));
    }
    return work;
}

double WorkTotals::flops() const {
    double flops = static_cast<double>(of(OpKind::fma));
    for (const std::int64_t count : by_kind) flops += static_cast<double>(count);
    return flops;
}

double WorkTotals::special() const {
    double special = 0;
    for (const OpKind kind : {OpKind::exp, OpKind::log, OpKind::tanh, OpKind::erf, OpKind::sin, OpKind::pow})
        special += static_cast<double>(of(kind));
    return special;
}

WorkTotals total_work(const TileCounter& counter, const std::vector<StatementWork>& work) {
    WorkTotals totals;
    for (const StatementWork& s : work)
        for (const OpCount& op : s.ops) {
            std::vector<Affine> points;
            for (const AxisId axis : op.axes) points.push_back(Affine::axis(axis));
            std::int64_t& total = totals.by_kind[static_cast<std::size_t>(op.kind)];
            total = saturating_add(total, saturating_mul(op.count, counter.sum(points, s.in_loop ? s.stage : -1)));
        }
    return totals;
}

}  // namespace napkin
