#include "schedule/fragments.hpp"
#include "schedule/k_block_ranges.hpp"

#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <set>

#include "diagram/guards.hpp"
#include "diagram/product.hpp"
#include "machine/block_machine.hpp"
#include "schedule/maxima.hpp"
#include "schedule/warpgroups.hpp"
#include "support/ids.hpp"
#include "support/ranges.hpp"

namespace napkin {
namespace {

bool is_wide(const ScheduledKernel& kernel, AxisId axis, ScopeId scope) { return kernel.span(axis, scope).tile > 1; }

/// A dimension of the read runs along the axis.
bool has_dimension_along(const ScheduledKernel& kernel, const Read& r, AxisId axis, ScopeId scope) {
    return any_of(r.indices, [&](const Index& i) { return running_axis(kernel, i, scope) == axis; });
}

/// The one axis of the read that is wide and not the given one; -1: there is none or several.
AxisId other_axis(const ScheduledKernel& kernel, const Read& r, AxisId axis, ScopeId scope) {
    AxisId found = -1;
    for (const Index& index : r.indices) {
        const auto a = running_axis(kernel, index, scope);
        if (!a) return -1;
        if (*a < 0 || *a == axis || !is_wide(kernel, *a, scope)) continue;
        if (found >= 0 && found != *a) return -1;
        found = *a;
    }
    return found;
}

/// Finds out whether what a statement computes is at most 1 in size. Then it may be rounded to a type of a narrow
/// range. That holds for products of such factors, and for exponentials of what is at most 0.
class AtMostOne {
public:
    explicit AtMostOne(const ScheduledKernel& kernel) : kernel_(kernel), maxima_(kernel) {}

    [[nodiscard]] bool variable(VariableId id) const {
        const std::optional<StepId> step = maxima_.definition(id);
        if (!step) return false;
        const auto& compute = std::get<Compute>(*kernel_.steps[*step].statement);
        return !compute.reduce && expression(compute.body, *step);
    }

private:
    /// Whether the expression is, as step `reader` finds it.
    [[nodiscard]] bool expression(const Expr& e, StepId reader) const {
        if (const auto* c = as<Constant>(e)) return std::abs(c->value) <= 1;
        if (const auto* s = as<Select>(e)) return expression(s->a, reader) && expression(s->b, reader);
        if (const auto* u = as<Unary>(e))
            return (u->op == UnaryOp::exp || u->op == UnaryOp::exp2) &&
                   maxima_.is_at_most_zero(u->a, reader, Bounding::nearly);
        const auto* b = as<Binary>(e);
        if (!b) return false;
        if (b->op == BinaryOp::mul) return expression(b->a, reader) && expression(b->b, reader);
        // A power of a size with an exponent of at most 0, as in 1 / size.
        const auto* exponent = b->op == BinaryOp::pow ? as<Constant>(b->b) : nullptr;
        return exponent && exponent->value <= 0 && as<AxisSize>(b->a);
    }

    const ScheduledKernel& kernel_;
    Maxima maxima_;
};

/// Registers that a thread needs beside its accumulators, or ptxas refuses the wgmma. CUDA 13.0 (ptxas C7602) asks for
/// 154 with 128 accumulators. Those at the launch count: ptxas ignores what setmaxnreg adds.
constexpr std::int64_t registers_of_instruction = 26;

std::int64_t registers_at_launch(const ScheduledKernel& kernel) {
    constexpr std::int64_t most = 255;
    if (kernel.unit.block_registers == 0) return most;
    if (const Role* role = kernel.producer_role())
        return role_registers(kernel.unit.block_registers, kernel.schedule.warps.value, role->workers).launch;
    return std::min(most, kernel.unit.block_registers / kernel.num_threads());
}

}  // namespace

bool takes_tiles(const ScheduledKernel& kernel, const Instruction& i, std::int64_t columns) {
    const VectorUnit& unit = kernel.unit;
    if (!i.b_in_shared) return unit.copies.loads_fragments && columns % i.n.to == 0;
    if (!kernel.has_bulk_copies()) return false;
    return kernel.schedule.warps.value * unit.warp_threads % i.threads == 0 && columns >= i.n.from &&
           columns <= i.n.to && columns % i.n.step == 0 &&
           columns * i.m.to / i.threads + registers_of_instruction <= registers_at_launch(kernel);
}

namespace {

class RoleChoice {
public:
    explicit RoleChoice(const ScheduledKernel& kernel) : kernel_(kernel), row_(kernel.schedule.mma_m) {}

    MmaRoles run() {
        out_.atoms.assign(num_atoms(), AtomKind::fragment);
        out_.places.resize(kernel_.layouts.size());
        out_.refusal = refusal();
        return std::move(out_);
    }

private:
    [[nodiscard]] std::size_t num_atoms() const {
        std::size_t n = 0;
        for (const Step& step : kernel_.steps) n = std::max(n, static_cast<std::size_t>(step.atom + 1));
        return n;
    }
    [[nodiscard]] const std::string& name(VariableId id) const { return kernel_.variable(id).name; }

    std::string refusal() {
        const Span& rows = kernel_.span(row_, 0);
        const std::int64_t held = kernel_.fragment_rows();
        const std::string& axis = kernel_.program->diagram.axis(row_).name;
        if (rows.tile < 2) return fmt::format("a group has one row of {}", axis);
        if (rows.tile > held || (rows.tile < held && rows.begins))
            return fmt::format("{} warps have {} rows, and a group has {} of {}", kernel_.schedule.warps.value, held,
                               rows.tile, axis);
        if (!kernel_.has_bulk_copies() && kernel_.unit.copies.past_registers == 0)
            return "the machine has no instruction that copies operands into a core's memory while threads go on";
        find_loops();
        computed_.assign(kernel_.layouts.size(), false);
        for (const Step& step : kernel_.steps) {
            if (const auto* c = std::get_if<Compute>(step.statement)) computed_[at(c->variable)] = true;
            if (const auto* i = std::get_if<Init>(step.statement)) computed_[at(i->variable)] = true;
        }
        for (const Step& step : kernel_.steps) {
            if (step.atom < 0) continue;
            const auto product = mma_product(kernel_, step);
            if (!product) continue;
            out_.atoms[at(step.atom)] = AtomKind::mma;
            for (const Read* r : {product->a, product->b})
                if (!computed_[at(r->variable())]) operands_.insert(r->variable());
            if (computed_[at(product->b->variable())]) written_.insert(product->b->variable());
        }
        find_written();
        for (const Step& step : kernel_.steps)
            if (comes_with_operands(step)) beside_.insert(std::get<Load>(*step.statement).variable);
        operands_.insert(beside_.begin(), beside_.end());
        if (operands_.empty() && !written_.empty()) return "no copy brings an operand of its products";
        if (!contains(out_.atoms, AtomKind::mma))
            return fmt::format("no statement is a product that an instruction of the unit takes, with rows along {}", axis);
        for (const Step& step : kernel_.steps) {
            if (step.atom >= 0) {
                const AtomKind kind = out_.atoms[at(step.atom)];
                const bool fits = kind == AtomKind::mma    ? reads_fragments(step)
                                  : kind == AtomKind::tile ? writes_tile(step)
                                                           : runs_on_fragments(step);
                if (!fits)
                    return fmt::format("{} is neither a product nor a map or reduction of rows and one axis of columns",
                                       name(std::get<Compute>(*step.statement).variable));
            }
            if (const auto* load = std::get_if<Load>(step.statement);
                load && operands_.contains(load->variable) && step.scope != 0 && !streams_.contains(step.scope)) {
                const auto loop = find_if(kernel_.loops, [&](const ScheduledLoop& l) { return l.scope == step.scope; });
                if (loop != kernel_.loops.end() && loop->loop->is_sub)
                    return fmt::format("subloop {} loads {} in parts, and tensor cores read whole operand tiles",
                                       kernel_.program->diagram.axis(loop->loop->axis).name, name(load->variable));
                return fmt::format("{} is loaded in a loop within a loop", name(load->variable));
            }
            // The barriers of an operand count the iterations of one loop.
            if (const auto* load = std::get_if<Load>(step.statement);
                load && operands_.contains(load->variable) && any_of(kernel_.steps, [&](const Step& other) {
                    const auto* again = std::get_if<Load>(other.statement);
                    return again && again->variable == load->variable && other.scope != step.scope;
                }))
                return fmt::format("{} is loaded in two loops", name(load->variable));
        }
        for (const VariableId id : out_.places.ids()) {
            if (operands_.contains(id)) out_.places[id] = MemorySpace::operand;
            if (computed_[id]) out_.places[id] = is_written(id) ? MemorySpace::written : MemorySpace::registers;
            if (computed_[id] && !is_written(id) && !has_fragments(id))
                return fmt::format("{} has no values along {}", name(id), axis);
        }
        return "";
    }

    /// What threads read in each iteration of a stream and what comes with the operands of products. That is a vector
    /// by columns: read from memory where it is needed, it would take the memory's latency, and read ahead by threads,
    /// registers for each column. And it is a matrix of 8-bit values, which threads would read byte by byte.
    [[nodiscard]] bool comes_with_operands(const Step& step) const {
        const auto* load = std::get_if<Load>(step.statement);
        if (!load || !kernel_.has_bulk_copies() || !streams_.contains(step.scope) || computed_[at(load->variable)])
            return false;
        const Variable& variable = kernel_.variable(load->variable);
        const bool is_narrow = bytes(variable.memory_type) == 1;
        const auto tile = is_narrow || variable.memory_type == DType::f32 ? operand_tile(kernel_, load->variable)
                                                                          : std::nullopt;
        const auto loads = [&](const Step& other, bool is_same) {
            const auto* l = std::get_if<Load>(other.statement);
            return l && (is_same ? &other != &step && l->variable == load->variable
                                 : other.scope == step.scope && operands_.contains(l->variable));
        };
        return tile && (is_narrow || tile->rows == 1) &&
               any_of(kernel_.steps, [&](const Step& other) { return loads(other, false); }) &&
               none_of(kernel_.steps, [&](const Step& other) { return loads(other, true); }) &&
               all_of(kernel_.steps, [&](const Step& other) {
                   return all_of(other.reads, [&](const Read* r) {
                       return r->variable() != load->variable ||
                              (other.scope == step.scope && other.atom >= 0 && r->indices == variable.dims);
                   });
               });
    }

    void find_loops() {
        for (const ScheduledLoop& loop : kernel_.loops) {
            const bool is_outermost = any_of(kernel_.body, [&](const Node& node) {
                const auto* ref = std::get_if<LoopId>(&node);
                return ref && &kernel_.loop(*ref) == &loop;
            });
            if (is_outermost && !loop.loop->is_sub) streams_.insert(loop.scope);
        }
    }
    [[nodiscard]] bool is_written(VariableId id) const { return written_.contains(id); }
    /// The statements that write tiles of operands, and the operands that they read.
    void find_written() {
        for (const Step& step : kernel_.steps) {
            if (step.atom < 0 || !is_written(variable_of(step))) continue;
            out_.atoms[at(step.atom)] = AtomKind::tile;
            for (const Read* r : step.reads)
                if (is_loaded(kernel_, r->variable()) && operand_tile(kernel_, r->variable()))
                    operands_.insert(r->variable());
        }
    }
    /// It reads tiles at its own rows and columns, and else what threads read in memory. Products alone read it.
    [[nodiscard]] bool writes_tile(const Step& step) const {
        const VariableId target = variable_of(step);
        return all_of(step.reads,
                      [&](const Read* r) {
                          return !operands_.contains(r->variable()) ||
                                 (r->indices == kernel_.variable(r->variable()).dims &&
                                  kernel_.layout(r->variable()).scope <= step.scope);
                      }) &&
               all_of(kernel_.steps, [&](const Step& other) {
                   return !reads(other, target) || (other.atom >= 0 && out_.atoms[at(other.atom)] == AtomKind::mma &&
                                                    mma_product(kernel_, other)->b->variable() == target);
               });
    }
    /// One value a row, or one for each column of the row along one axis. What has no rows is a map: each thread
    /// computes it for its own columns.
    [[nodiscard]] bool has_fragments(VariableId id) const {
        const Variable& variable = kernel_.variable(id);
        if ((kernel_.is_whole(id) && !fits_registers(id)) || (!carries(variable, row_) && !is_map(id))) return false;
        int columns = 0;
        for (const Index& dim : variable.dims) {
            const AxisId axis = dim.single_axis();
            if (axis < 0) return false;
            if (axis != row_ && is_wide(kernel_, axis, kernel_.layout(id).scope)) ++columns;
        }
        return columns <= 1;
    }

    /// Registers hold integers of 32 bits. Threads compute them one by one, and only instructions add them up.
    [[nodiscard]] bool fits_registers(VariableId id) const {
        return !kernel_.facts(id).is_long && none_of(kernel_.steps, [&](const Step& step) {
            const auto* c = std::get_if<Compute>(step.statement);
            return c && c->variable == id && c->reduce && out_.atoms[at(step.atom)] != AtomKind::mma;
        });
    }

    [[nodiscard]] bool is_map(VariableId id) const {
        return all_of(kernel_.steps, [&](const Step& step) {
            const auto* c = std::get_if<Compute>(step.statement);
            const auto* init = std::get_if<Init>(step.statement);
            const auto* store = std::get_if<Store>(step.statement);
            return !(init && init->variable == id) && !(store && store->variable == id) &&
                   !(c && c->variable == id && (c->reduce || c->carry));
        });
    }

    /// What the step reads from registers, it reads at the axes under which it was computed.
    [[nodiscard]] bool reads_fragments(const Step& step) const {
        return all_of(step.reads, [&](const Read* r) {
            if (!computed_[at(r->array)]) return true;
            return r->indices == kernel_.variable(r->variable()).dims &&
                   (is_written(r->variable()) || has_fragments(r->variable())) &&
                   kernel_.layout(r->variable()).scope <= step.scope;
        });
    }

    /// A map, or a reduction along the columns, with only one axis of columns.
    [[nodiscard]] bool runs_on_fragments(const Step& step) const {
        const auto& compute = std::get<Compute>(*step.statement);
        if (kernel_.is_double || !has_fragments(compute.variable) || !reads_fragments(step)) return false;
        std::set<AxisId> columns;
        const auto add = [&](AxisId axis) {
            if (axis >= 0 && axis != row_ && is_wide(kernel_, axis, step.scope)) columns.insert(axis);
        };
        for (const Index& dim : kernel_.variable(compute.variable).dims) add(dim.single_axis());
        for (const AxisId axis : compute.reduce_axes) {
            if (axis == row_) return false;
            add(axis);
        }
        for (const Read* r : step.reads) {
            if (operands_.contains(r->variable()) && !reads_operand(*r, step.scope)) return false;
            if (computed_[at(r->array)] && has_rows(kernel_, r->variable()) && !has_rows(kernel_, compute.variable))
                return false;
            for (const Index& index : r->indices) {
                if (index.is_gathered()) return false;
                for (const AxisId axis : index.axes()) add(axis);
            }
        }
        return columns.size() <= 1;
    }

    /// The read has the tile's own rows and columns, whichever of them is contiguous.
    [[nodiscard]] bool reads_operand(const Read& r, ScopeId scope) const {
        return r.indices == kernel_.variable(r.variable()).dims &&
               (beside_.contains(r.variable()) || has_dimension_along(kernel_, r, row_, scope)) &&
               kernel_.layout(r.variable()).scope <= scope;
    }

    const ScheduledKernel& kernel_;
    AxisId row_;
    MmaRoles out_;
    std::vector<bool> computed_;
    std::set<VariableId> operands_, beside_;  ///< of products; and what comes with them
    std::set<VariableId> written_;            ///< tiles that threads write for products
    std::set<int> streams_;                   ///< scopes of outermost loops
};

}  // namespace

MmaRoles mma_roles(const ScheduledKernel& kernel) { return RoleChoice(kernel).run(); }

namespace {

/// Whether sums as an instruction adds up products of the type are those of the statement. Integers wrap at 32 bits. So
/// does a target of 32 bits, and no sum passes them where the target is not long.
bool holds_sums(const ScheduledKernel& kernel, const Compute& compute, DType operands) {
    const DType sums = kernel.variable(compute.variable).memory_type;
    if (is_float(operands) || is_float(sums)) return is_float(operands) && is_float(sums);
    return bytes(sums) >= word_bytes && !kernel.facts(compute.variable).is_long &&
           (!compute.carry || adds_in_place(compute));
}

/// mma_product with an instruction of at most so many threads.
std::optional<MmaProduct> product_of_threads(const ScheduledKernel& kernel, const Step& step, std::int64_t most) {
    const auto* compute = std::get_if<Compute>(step.statement);
    const AxisId m = kernel.schedule.mma_m;
    if (!compute || m < 0 || kernel.is_double || compute->reduce != ReduceOp::sum) return std::nullopt;
    const auto* product = as_product(compute->body);
    if (!product) return std::nullopt;
    MmaProduct out;
    out.m = m;
    for (const AxisId axis : compute->reduce_axes) {
        if (!is_wide(kernel, axis, step.scope)) continue;
        if (out.k >= 0) return std::nullopt;
        out.k = axis;
    }
    const Read *x = as<Read>(product->a), *y = as<Read>(product->b);
    if (out.k < 0 || !x || !y || x->array == y->array) return std::nullopt;
    const auto has = [&](const Read* r, AxisId axis) { return has_dimension_along(kernel, *r, axis, step.scope); };
    out.a = has(x, m) ? x : y, out.b = has(x, m) ? y : x;
    if (!has(out.a, m) || has(out.b, m) || !has(out.a, out.k) || !has(out.b, out.k)) return std::nullopt;
    out.n = other_axis(kernel, *out.b, out.k, step.scope);
    if (out.n < 0 || other_axis(kernel, *out.b, out.n, step.scope) != out.k) return std::nullopt;
    if (is_wide(kernel, m, step.scope) && other_axis(kernel, *out.a, out.k, step.scope) != m) return std::nullopt;
    for (const Index& dim : kernel.variable(compute->variable).dims)
        if (const AxisId axis = dim.single_axis();
            axis < 0 || (axis != m && axis != out.n && is_wide(kernel, axis, step.scope)))
            return std::nullopt;
    if (!carries(kernel.variable(compute->variable), m) || !carries(kernel.variable(compute->variable), out.n))
        return std::nullopt;

    out.adds = compute->carry != nullptr;
    out.type = kernel.variable(out.b->variable()).memory_type;
    if (!is_loaded(kernel, out.b->variable()) && !may_be_written(kernel, out.b->variable())) return std::nullopt;
    if (!operand_tile(kernel, out.b->variable())) return std::nullopt;
    out.a_in_registers = !is_loaded(kernel, out.a->variable());
    out.type_a = out.a_in_registers ? out.type : kernel.variable(out.a->variable()).memory_type;
    if (!out.a_in_registers && !operand_tile(kernel, out.a->variable())) return std::nullopt;
    if (!holds_sums(kernel, *compute, out.type)) return std::nullopt;
    const bool are_along_k = (out.a_in_registers || runs_along(kernel, *out.a, out.k, step.scope)) &&
                             runs_along(kernel, *out.b, out.k, step.scope);

    // bf16 has the range of what is computed. f16 has not, so its values must be at most 1 in size.
    if (out.a_in_registers && out.type == DType::f16 && !AtMostOne(kernel).variable(out.a->variable()))
        return std::nullopt;

    const Span& span = kernel.span(out.k, step.scope);
    // Behind a tile of the axis lie values of the next tile. The same holds where the axis itself runs through only a
    // part of a dimension.
    bool is_part = span.begins;
    for (const Read* r : {out.a, out.b})
        for (const Index& index : r->indices) is_part = is_part || (index.depends_on(out.k) && index.single_axis() < 0);
    const std::int64_t columns = kernel.runs_in_parts(step) ? kernel.column_parts->columns
                                                            : columns_of(kernel, out.n, step.scope);
    for (const Instruction& i : kernel.unit.matrix) {
        if (!multiplies(i, out.type_a, out.type) || !adds_in(i, out.type, out.sum_type())) continue;
        if (i.threads > most || !takes_tiles(kernel, i, columns)) continue;
        if (out.instruction && i.threads <= out.instruction->threads) continue;
        if (!are_along_k && !contains(i.either_major, out.type)) continue;
        if (out.a_in_registers ? !contains(i.result_types, out.type) : i.b_in_shared && !i.a_in_shared) continue;
        // A last step of k may pass the tile's end only where zeros follow, at the end of the array.
        const std::int64_t k = i.k.at(out.type);
        if (is_part && span.tile % k != 0) continue;
        if (bytes(out.type) != 2 && span.tile % k != 0 && span.tile % 16 != 0) continue;
        out.instruction = &i;
    }
    if (!out.instruction) return std::nullopt;
    return out;
}

}  // namespace

DType register_type(const ScheduledKernel& kernel, VariableId id) {
    const bool is_integer = !is_float(kernel.variable(id).memory_type) &&
                            (kernel.is_whole(id) || any_of(kernel.steps, [&](const Step& step) {
                                 return step.atom >= 0 && variable_of(step) == id && kernel.atom(step).kind == AtomKind::mma;
                             }));
    return is_integer ? DType::i32 : DType::f32;
}

std::optional<MmaProduct> mma_product(const ScheduledKernel& kernel, const Step& step) {
    return product_of_threads(kernel, step, std::numeric_limits<std::int64_t>::max());
}
std::optional<MmaProduct> product_by_warp(const ScheduledKernel& kernel, const Step& step) {
    return product_of_threads(kernel, step, kernel.unit.warp_threads);
}

}  // namespace napkin
