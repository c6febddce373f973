#include "support/fault.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <memory>
#include <utility>

#include "algebra/expr_walk.hpp"

namespace napkin {

namespace {
using Statements = std::vector<TileStatement>;

/// Another expression in place of one node, and what that does.
struct Replacement {
    FaultKind kind;
    std::string what;
    Expr e;
};

Expr moved_by_one(const Expr& e) { return binary(BinaryOp::add, e, constant(1)); }

std::vector<Replacement> replacements(const Expr& e) {
    std::vector<Replacement> all;
    const auto add = [&](FaultKind kind, const std::string& what, Expr by) {
        all.push_back({kind, what, std::move(by)});
    };
    if (const auto* c = as<Constant>(e)) {
        if (std::isfinite(c->value))
            add(FaultKind::constant, fmt::format("{} is taken for {}", c->value, 2 * c->value + 1),
                constant(2 * c->value + 1));
    } else if (as<AxisIndex>(e)) {
        add(FaultKind::mask, "a coordinate is one too large", moved_by_one(e));
    } else if (as<AxisSize>(e)) {
        add(FaultKind::constant, "a size is one too large", moved_by_one(e));
    } else if (const auto* u = as<Unary>(e)) {
        add(FaultKind::function, fmt::format("{} is left out", name(u->op)), u->a);
    } else if (const auto* s = as<Select>(e)) {
        add(FaultKind::mask, "the first side is always taken", s->a);
        add(FaultKind::mask, "the second side is always taken", s->b);
    } else if (const auto* b = as<Binary>(e)) {
        switch (b->op) {
            case BinaryOp::lt: add(FaultKind::mask, "< is taken for <=", binary(BinaryOp::le, b->a, b->b)); break;
            case BinaryOp::le: add(FaultKind::mask, "<= is taken for <", binary(BinaryOp::lt, b->a, b->b)); break;
            case BinaryOp::gt: add(FaultKind::mask, "> is taken for >=", binary(BinaryOp::ge, b->a, b->b)); break;
            case BinaryOp::ge: add(FaultKind::mask, ">= is taken for >", binary(BinaryOp::gt, b->a, b->b)); break;
            case BinaryOp::eq: add(FaultKind::mask, "== is taken for !=", binary(BinaryOp::ne, b->a, b->b)); break;
            case BinaryOp::max:
                add(FaultKind::operand, "max is taken for min", binary(BinaryOp::min, b->a, b->b));
                break;
            case BinaryOp::min:
                add(FaultKind::operand, "min is taken for max", binary(BinaryOp::max, b->a, b->b));
                break;
            case BinaryOp::sub:
            case BinaryOp::div:
                add(FaultKind::operand, fmt::format("the operands of {} are swapped", name(b->op)),
                    binary(b->op, b->b, b->a));
                add(FaultKind::operand, fmt::format("the second operand of {} is left out", name(b->op)), b->a);
                break;
            case BinaryOp::add:
            case BinaryOp::mul:
                add(FaultKind::operand, fmt::format("the first operand of {} is left out", name(b->op)), b->b);
                add(FaultKind::operand, fmt::format("the second operand of {} is left out", name(b->op)), b->a);
                break;
            default: break;
        }
    }
    return all;
}

Expr with_replacement(const Expr& root, const ExprNode* node, const Expr& by) {
    // Each node is met after its children, which stay the same objects until the one that is replaced.
    return transform(root, [&](const Expr& e) { return e.get() == node ? by : e; });
}

class Planting {
public:
    explicit Planting(const SizedProgram& program) : program_(program) {}

    std::vector<PlantedFault> run() {
        for (kernel_ = 0; kernel_ < program_.kernels.size(); ++kernel_) {
            visit(program_.kernels[kernel_].body, [&](Statements body) { replace_body(std::move(body)); });
        }
        return std::move(faults_);
    }

private:
    using Put = std::function<void(Statements)>;

    void replace_body(Statements body) {
        PlantedFault fault{kind_, what_, program_};
        fault.program.kernels[kernel_].body = std::move(body);
        faults_.push_back(std::move(fault));
    }

    void plant(FaultKind kind, std::string what, Statements body, const Put& put) {
        kind_ = kind;
        what_ = std::move(what);
        put(std::move(body));
    }

    [[nodiscard]] const Variable& variable(VariableId v) const { return program_.kernels[kernel_].variables[v]; }

    /// `put` makes a program with another list in this one's place.
    void visit(const Statements& body, const Put& put) {
        for (std::size_t i = 0; i < body.size(); ++i) {
            const auto replaced = [&](TileStatement s) {
                Statements other = body;
                other[i] = std::move(s);
                return other;
            };
            if (const auto* loop = std::get_if<std::shared_ptr<const TileLoop>>(&body[i])) {
                visit_loop(**loop, body, i, put);
                std::vector<VariableId> outer_states = std::exchange(states_, states_of(**loop));
                visit((*loop)->body, [&](Statements inner) {
                    TileLoop other = **loop;
                    other.body = std::move(inner);
                    put(replaced(std::make_shared<const TileLoop>(std::move(other))));
                });
                states_ = std::move(outer_states);
            } else if (const auto* init = std::get_if<Init>(&body[i])) {
                const double other = std::isinf(init->value) ? 0 : init->value + 1;
                plant(FaultKind::init, fmt::format("{} begins at {}", variable(init->variable).name, other),
                      replaced(Init{init->variable, other}), put);
            } else if (const auto* compute = std::get_if<Compute>(&body[i])) {
                visit_compute(*compute, [&](FaultKind kind, const std::string& what, Compute other) {
                    plant(kind, fmt::format("{}: {}", variable(compute->variable).name, what),
                          replaced(std::move(other)), put);
                });
                // A state read before it is brought up to date.
                if (i + 1 < body.size()) {
                    const auto* next = std::get_if<Compute>(&body[i + 1]);
                    const bool is_state = contains(states_, compute->variable);
                    if (next && is_state &&
                        (reads_variable(next->body, compute->variable) ||
                         (next->carry && reads_variable(next->carry, compute->variable)))) {
                        Statements other = body;
                        std::swap(other[i], other[i + 1]);
                        plant(FaultKind::stale,
                              fmt::format("{} is read before it is up to date", variable(compute->variable).name),
                              std::move(other), put);
                    }
                }
            }
        }
    }

    [[nodiscard]] static std::vector<VariableId> states_of(const TileLoop& loop) {
        std::vector<VariableId> states;
        for (const TileStatement& s : loop.body)
            if (const auto* compute = std::get_if<Compute>(&s); compute && compute->carry)
                states.push_back(compute->variable);
        return states;
    }

    void visit_loop(const TileLoop& loop, const Statements& body, std::size_t i, const Put& put) {
        const std::int64_t extent = program_.extents[loop.axis],
                           chunk = k_block_of(loop, program_.sizes[kernel_], program_.extents);
        const std::string title = fmt::format("loop over {}: ", program_.diagram.axis(loop.axis).name);
        const std::int64_t last = (extent - 1) / chunk * chunk;
        const auto restricted = [&](Affine form) {
            TileLoop other = loop;
            other.support.push_back(std::move(form));
            return std::make_shared<const TileLoop>(std::move(other));
        };
        const auto with = [&](TileStatement s) {
            Statements other = body;
            other[i] = std::move(s);
            return other;
        };
        const bool has_states = !states_of(loop).empty();
        if (last > 0 && has_states) {
            plant(FaultKind::chunk, title + "its first chunk is left out",
                  with(restricted(Affine::axis(loop.axis) + Affine{{}, -chunk})), put);
            plant(FaultKind::chunk, title + "its last chunk is left out",
                  with(restricted(Affine{{}, last - 1} - Affine::axis(loop.axis))), put);
            Statements twice = body;
            twice.insert(twice.begin() + static_cast<std::ptrdiff_t>(i),
                         restricted(Affine{{}, chunk - 1} - Affine::axis(loop.axis)));
            plant(FaultKind::chunk, title + "its first chunk is taken twice", std::move(twice), put);
        }
        if (extent < 2) return;
        for (std::size_t k = 0; k < loop.body.size(); ++k) {
            const auto* compute = std::get_if<Compute>(&loop.body[k]);
            if (!compute || !compute->reduce || !contains(compute->reduce_axes, loop.axis)) continue;
            TileLoop other = loop;
            Compute shorter = *compute;
            shorter.body = select(binary(BinaryOp::lt, axis_index(loop.axis), constant(static_cast<double>(extent - 1))),
                                  compute->body, constant(identity(*compute->reduce)));
            other.body[k] = std::move(shorter);
            plant(FaultKind::tail, title + "the last point is left out of " + variable(compute->variable).name,
                  with(std::make_shared<const TileLoop>(std::move(other))), put);
        }
    }

    template <class F>
    void visit_compute(const Compute& compute, F add) {
        const auto with_body = [&](Expr body) {
            Compute other = compute;
            other.body = std::move(body);
            return other;
        };
        if (compute.carry) {
            Compute other = compute;
            other.carry = nullptr;
            add(FaultKind::correction, "what was accumulated is forgotten", other);
            if (!as<Read>(compute.carry)) {
                std::vector<Index> at;
                for (const auto& dim : variable(compute.variable).dims) at.emplace_back(dim);
                other.carry = read(compute.variable, std::move(at));
                add(FaultKind::correction, "what was accumulated is not corrected", other);
            }
        }
        if (compute.reduce) {
            Compute other = compute;
            switch (*compute.reduce) {
                case ReduceOp::sum: other.reduce = ReduceOp::max; break;
                case ReduceOp::prod: other.reduce = ReduceOp::sum; break;
                case ReduceOp::max: other.reduce = ReduceOp::min; break;
                case ReduceOp::min: other.reduce = ReduceOp::max; break;
            }
            add(FaultKind::reduction, fmt::format("{} is taken for {}", name(*compute.reduce), name(*other.reduce)), other);
        }
        for_each_postorder(compute.body, [&](const Expr& node) {
            for (const Replacement& r : replacements(node))
                add(r.kind, r.what, with_body(with_replacement(compute.body, node.get(), r.e)));
        });
    }

    const SizedProgram& program_;
    std::size_t kernel_ = 0;
    FaultKind kind_{};
    std::string what_;
    std::vector<VariableId> states_;  ///< of the loop that is visited
    std::vector<PlantedFault> faults_;
};

}  // namespace

std::string_view name(FaultKind kind) {
    constexpr std::string_view names[] = {"chunk",     "tail", "correction", "stale",    "init",
                                          "reduction", "mask", "operand",    "function", "constant"};
    return names[static_cast<std::size_t>(kind)];
}

std::vector<PlantedFault> plant_faults(const SizedProgram& program) { return Planting(program).run(); }

}  // namespace napkin
