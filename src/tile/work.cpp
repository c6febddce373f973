#include "tile/work.hpp"

#include <bit>
#include <map>
#include <set>
#include <unordered_map>

#include "algebra/number.hpp"
#include "algebra/power.hpp"
#include "algebra/scalar_function.hpp"
#include "diagram/product.hpp"
#include "support/ranges.hpp"
#include "support/saturate.hpp"
#include "tile/expand.hpp"
#include "tile/uses.hpp"

namespace napkin {

bool is_power_of_two(const Expr& e) {
    if (const auto* s = as<Select>(e)) return is_power_of_two(s->a) && is_power_of_two(s->b);
    const auto* c = as<Constant>(e);
    const auto n = c ? whole_of(*c) : std::nullopt;
    return n && *n > 0 && std::has_single_bit(static_cast<std::uint64_t>(*n));
}

namespace {

OpKind kind_of(BinaryOp op, const Expr& by) {
    if (op != BinaryOp::div && is_power_of_two(by)) return OpKind::simple;
    if (op == BinaryOp::div || op == BinaryOp::floor_div || op == BinaryOp::mod) return OpKind::div;
    return OpKind::simple;
}

std::optional<PowerSteps> steps_of_power(const Binary& b) {
    const auto* exponent = b.op == BinaryOp::pow ? as<Constant>(b.b) : nullptr;
    return exponent ? power_steps(exponent->value) : std::nullopt;
}

/// Whether the last operation is a multiplication.
bool is_product(const Expr& e) {
    const auto* b = as<Binary>(e);
    if (!b) return false;
    const auto steps = steps_of_power(*b);
    return b->op == BinaryOp::mul || (steps && steps->products() > 0 && !steps->is_reciprocal);
}

/// Collects the operations of one statement, each subexpression once. Numbers are computed beforehand and not counted.
class Counter {
public:
    /// Whether the expression is a number: it has no arrays and no axes, so that it is known once the sizes are.
    bool count(const Expr& e) {
        if (const auto known = seen_.find(e); known != seen_.end()) return known->second;
        bool number = !as<Read>(e) && !as<AxisIndex>(e);
        if (!as<Read>(e))  // indices are addresses, and no work of the pipes that are counted
            for (const Expr& child : children(e)) number = count(child) && number;
        seen_.emplace(e, number);
        if (!number) add_operation(e);
        return number;
    }

    void add_operation(const Expr& e) {
        if (const auto* u = as<Unary>(e)) add(scalar_function(u->op).is.work, free_axes(e));
        if (const auto* s = as<Select>(e)) (void)s, add(OpKind::simple, free_axes(e));
        if (const auto* c = as<Cast>(e)) (void)c, add(OpKind::simple, free_axes(e));
        if (const auto* b = as<Binary>(e)) {
            const std::vector<AxisId> axes = free_axes(e);
            const bool sum = b->op == BinaryOp::add || b->op == BinaryOp::sub;
            // A product and an addition at the same points are one fma.
            for (const Expr& child : {b->a, b->b})
                if (sum && is_product(child) && free_axes(child) == axes && remove(OpKind::simple, axes))
                    return add(OpKind::fma, axes);
            const auto* base = b->op == BinaryOp::pow ? as<Constant>(b->a) : nullptr;
            if (base && base->value == 2)
                add(scalar_function(UnaryOp::exp2).is.work, axes);
            else if (b->op == BinaryOp::pow)
                add_power(steps_of_power(*b), axes);
            else
                add(kind_of(b->op, b->b), axes);
        }
    }

    void add_power(const std::optional<PowerSteps>& steps, const std::vector<AxisId>& axes) {
        if (!steps) return add(OpKind::pow, axes);
        for (int i = 0; i < steps->products(); ++i) add(OpKind::simple, axes);
        if (steps->has_root)
            add(OpKind::sqrt, axes);
        else if (steps->is_reciprocal)
            add(OpKind::div, axes);
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
    std::unordered_map<Expr, bool, ExprHash, ExprEqual> seen_;  ///< whether it is a number
    std::map<std::pair<OpKind, std::vector<AxisId>>, std::int64_t> ops_;
};

std::vector<AxisId> united(std::vector<AxisId> a, const std::vector<AxisId>& b) {
    append(a, b);
    sort_unique(a);
    return a;
}

bool within(const std::vector<AxisId>& inner, const std::vector<AxisId>& outer) {
    return all_of(inner, [&](AxisId a) { return contains(outer, a); });
}

/// The statement as a product of two matrices, if its factors fall into two operands. A factor whose axes another one
/// has joins that one's operand.
std::optional<Contraction> contraction_of(const Diagram& diagram, const TileKernel& kernel, const Compute& s,
                                          const std::set<VariableId>& loaded) {
    if (!s.reduce || *s.reduce != ReduceOp::sum) return std::nullopt;
    std::vector<std::vector<AxisId>> operands;
    for (const Expr& factor : factors_of(s.body)) {
        const std::vector<AxisId> axes = free_axes(factor);
        if (axes.empty() || any_of(operands, [&](const auto& other) { return within(axes, other); })) continue;
        std::erase_if(operands, [&](const auto& other) { return within(other, axes); });
        operands.push_back(axes);
    }
    if (operands.size() != 2) return std::nullopt;
    auto axes = product_axes(operands[0], operands[1], diagram.array(kernel.variables[s.variable].array).axes,
                             s.reduce_axes);
    if (!axes) return std::nullopt;
    append(axes->n, axes->loose);
    if (axes->m.empty() || axes->n.empty()) return std::nullopt;
    Contraction c{axes->m, axes->n, axes->k, axes->batch};
    int widest = 0;
    for (const bool in_memory : {true, false}) {
        if (widest > 0) break;
        visit(s.body, [&](const Expr& e) {
            const auto* r = as<Read>(e);
            if (!r || (in_memory && !loaded.contains(r->variable()))) return;
            const DType type = kernel.variables[r->variable()].memory_type;
            if (bytes(type) > widest) widest = bytes(type), c.type = type;
        });
    }
    return c;
}

/// The arrays that the statement reads, including those that place gathered reads.
std::vector<OperandRead> operands_of(const TileKernel& kernel, const Compute& s) {
    std::vector<OperandRead> operands;
    const auto add = [&](ArrayId array, const std::vector<Index>& dims) {
        const bool known = any_of(operands, [&](const OperandRead& o) { return o.array == array && o.dims == dims; });
        if (!known) operands.push_back({array, dims, axes_of(dims)});
    };
    visit(s.body, [&](const Expr& e) {
        const auto* r = as<Read>(e);
        if (!r) return;
        const Variable& v = kernel.variables[r->variable()];
        const std::vector<Index> indices = v.gathers.empty() ? r->indices : array_indices(kernel, v);
        visit(read(v.array, indices), [&](const Expr& part) {
            if (const auto* element = as<Read>(part)) add(element->array, element->indices);
        });
    });
    return operands;
}

StatementWork work_of(const Diagram& diagram, const TileKernel& kernel, const Compute& s, int loop, AxisId stream,
                      const std::set<VariableId>& loaded) {
    const ArrayId target = kernel.variables[s.variable].array;
    StatementWork work{loop,
                       stream,
                       target,
                       diagram.array(target).axes,
                       s.reduce_axes,
                       operands_of(kernel, s),
                       s.carry != nullptr,
                       {},
                       contraction_of(diagram, kernel, s, loaded)};
    if (s.reduce && lies_at_an_end(*s.reduce, s.body)) return work;
    Counter counter;
    counter.count(s.body);
    if (s.reduce) {
        const std::vector<AxisId> points = united(free_axes(s.body), s.reduce_axes);
        const bool fused = *s.reduce == ReduceOp::sum && is_product(s.body) &&
                           counter.remove(OpKind::simple, free_axes(s.body));
        counter.add(fused ? OpKind::fma : OpKind::simple, points);
    }
    // A bare carry is where the sum starts, and costs no operation of its own.
    if (s.carry && !as<Read>(s.carry)) {
        counter.count(s.carry);
        std::vector<AxisId> points = work.target_axes;
        sort(points);
        const bool fused = s.reduce && *s.reduce == ReduceOp::sum && is_product(s.carry) &&
                           free_axes(s.carry) == points && counter.remove(OpKind::simple, points);
        counter.add(fused ? OpKind::fma : OpKind::simple, points);
    }
    work.ops = counter.ops();
    return work;
}

}  // namespace

std::vector<StatementWork> statement_work(const Diagram& diagram, const TileKernel& kernel) {
    std::set<VariableId> loaded;
    for_each_statement(kernel.body, [&](const TileStatement& s) {
        if (const auto* load = std::get_if<Load>(&s)) loaded.insert(load->variable);
    });
    std::vector<StatementWork> work;
    int loops = 0;
    const auto walk = [&](const auto& self, const std::vector<TileStatement>& list, int loop, AxisId stream) -> void {
        for (const TileStatement& s : list) {
            if (const auto* compute = std::get_if<Compute>(&s))
                work.push_back(work_of(diagram, kernel, *compute, loop, stream, loaded));
            if (const auto* inner = std::get_if<std::shared_ptr<const TileLoop>>(&s)) {
                const int id = loops++;
                self(self, (*inner)->body, id, (*inner)->is_sub ? stream : (*inner)->axis);
            }
        }
    };
    walk(walk, kernel.body, -1, -1);
    return work;
}

std::vector<StatementWork> statement_work(const Derived& derived, const Kernel& kernel) {
    return statement_work(derived.diagram, expand(derived, kernel));
}

double WorkTotals::flops() const {
    double flops = static_cast<double>(of(OpKind::fma));
    for (const std::int64_t count : by_kind) flops += static_cast<double>(count);
    return flops;
}

WorkTotals total_work(const TileCounter& counter, const std::vector<StatementWork>& work) {
    WorkTotals totals;
    for (const StatementWork& s : work)
        for (const OpCount& op : s.ops) {
            std::int64_t& total = totals.by_kind[at(op.kind)];
            total = saturating_add(total, saturating_mul(op.count, counter.points(op.axes, s.loop)));
        }
    return totals;
}

}  // namespace napkin
