#include "cost/transfers.hpp"

#include <cmath>
#include <cstdlib>

#include "cost/point_by_point.hpp"
#include "diagram/guards.hpp"
#include "support/ranges.hpp"
#include "support/result.hpp"
#include "tile/expand.hpp"
#include "tile/uses.hpp"

namespace napkin {
namespace {
/// The letters of a kernel: the size over which each axis runs in a group and in a loop's iteration.
class Letters {
public:
    Letters(const Diagram& diagram, const Liveness& live, const std::vector<AxisId>& grouped, Measure measure)
        : diagram_(diagram), live_(live), grouped_(grouped), measure_(measure) {}

    static Size whole(AxisId axis) { return axis_symbol(axis); }
    static Size group(AxisId axis) { return group_symbol(axis); }
    /// The letter of the axis in an iteration of the loop and of those around it; -1: in a group.
    [[nodiscard]] Size letter(AxisId axis, int loop) const {
        if (axis == live_.parts.part) return 1;
        for (const int l : live_.loops_around(loop))
            if (live_.loops[at(l)].axis == axis)
                return live_.loops[at(l)].is_sub ? Symbol{SymbolKind::subloop, axis} : stream_symbol(axis);
        return contains(grouped_, axis) ? group(axis) : whole(axis);
    }

    /// The number of values in a variable's tile, Π over its dimensions of Σ |c|·(t_a − 1) + 1, or their bytes; at one
    /// point of the axes in `single`.
    [[nodiscard]] Size tile(const CoreVariable& v, const std::vector<AxisId>& single = {}) const {
        Size size = measure_ == Measure::bytes ? bytes(diagram_.array(v.array).type) : 1;
        for (const Index& index : v.dims) {
            const auto here = [&](AxisId axis) { return contains(single, axis) ? Size(1) : letter(axis, v.loop); };
            if (!index.affine()) {
                size *= span(*index.expression(), here);
                continue;
            }
            const Affine& dim = *index.affine();
            if (dim.terms.size() == 1 && std::abs(dim.terms[0].second) == 1) {
                size *= here(dim.terms[0].first);
                continue;
            }
            Size box = 1;
            for (const auto& [axis, c] : dim.terms) box += Size(c < 0 ? -c : c) * (here(axis) - Size(1));
            size *= box;
        }
        return size;
    }

    /// How often a group runs the loop's body (-1: once).
    [[nodiscard]] Size times(int of_loop) const {
        Size times = 1;
        for (const int l : live_.loops_around(of_loop)) {
            const CoreLoop& loop = live_.loops[at(l)];
            times *= letter(loop.axis, loop.outer) / letter(loop.axis, l);
            if (!loop.is_sub && live_.parts.cut(loop.axis)) times = times / whole(live_.parts.part);
        }
        return times;
    }
    [[nodiscard]] Size num_groups() const {
        Size groups = 1;
        for (const AxisId axis : grouped_) groups *= whole(axis) / letter(axis, -1);
        return groups;
    }

private:
    /// The number of values that a quasi-affine index takes. Quotients and rests count as for tiles that begin and end
    /// with a period: of t values i // n takes t/n, and i % n takes all n.
    template <class F>
    [[nodiscard]] Size span(const Expr& e, const F& letter) const {
        if (const auto* i = as<AxisIndex>(e)) return letter(i->axis);
        if (const auto* u = as<Unary>(e)) return span(u->a, letter);
        const auto* b = as<Binary>(e);
        if (!b || free_axes(e).empty()) return 1;
        const Size one(1);
        if (b->op == BinaryOp::mul) {
            const Expr &factor = free_axes(b->a).empty() ? b->a : b->b, &other = &factor == &b->a ? b->b : b->a;
            return one + number(factor) * (span(other, letter) - one);
        }
        if (b->op == BinaryOp::floor_div) return span(b->a, letter) / number(b->b);
        if (b->op == BinaryOp::mod) return number(b->b);
        if (free_axes(b->a).empty() || free_axes(b->b).empty())
            return span(free_axes(b->a).empty() ? b->b : b->a, letter);
        return span(b->a, letter) + span(b->b, letter) - one;
    }
    /// What is made of numbers and sizes, as a size; quotients are taken to have no rest.
    [[nodiscard]] Size number(const Expr& e) const {
        if (const auto* c = as<Constant>(e)) return static_cast<std::int64_t>(std::abs(c->value));
        if (const auto* s = as<AxisSize>(e)) return whole(s->axis);
        if (const auto* u = as<Unary>(e)) return number(u->a);
        const auto* b = as<Binary>(e);
        internal_check(b != nullptr, "cost: an index holds what is no number");
        switch (b->op) {
            case BinaryOp::add: return number(b->a) + number(b->b);
            case BinaryOp::sub: return number(b->a) - number(b->b);
            case BinaryOp::mul: return number(b->a) * number(b->b);
            case BinaryOp::div:
            case BinaryOp::floor_div: return number(b->a) / number(b->b);
            default: return number(b->a);
        }
    }

    const Diagram& diagram_;
    const Liveness& live_;
    const std::vector<AxisId>& grouped_;
    Measure measure_;
};

std::string pattern_text(const Diagram& diagram, const CoreVariable& v) {
    return to_string(read(v.array, v.indices), diagram.names());
}

/// Whether the index stays in its array whatever the sizes are, as far as comparing terms can tell.
bool stays_inside(const Diagram& diagram, const Affine& index, AxisId limit) {
    const auto size = [&](AxisId axis) { return diagram.axis(axis).size.value_or(axis_symbol(axis)); };
    Size low = index.constant, high = index.constant;
    for (const auto& [axis, c] : index.terms) (c < 0 ? low : high) += Size(c) * (size(axis) - Size(1));
    return never_above(Size(0), low) && never_above(high + Size(1), size(limit));
}

/// Whether a read of the tile stands behind a condition on the axes of this dimension: what else would it keep out than
/// padding?
bool is_guarded(const TileKernel& kernel, const CoreVariable& v, std::size_t dimension) {
    const std::vector<AxisId> axes = v.dims[dimension].axes();
    bool guarded = false;
    for_each_statement(kernel.body, [&](const TileStatement& s) {
        const auto* compute = std::get_if<Compute>(&s);
        if (!compute) return;
        const auto wanted = [&](const Read& r) { return r.variable() == v.variable; };
        for_each_guarded_read(compute->body, wanted, [&](const Read&, const std::vector<Guard>& guards) {
            for (const Guard& guard : guards)
                for (const AxisId axis : free_axes(guard.condition)) guarded |= contains(axes, axis);
        });
    });
    return guarded;
}

void note_assumptions(const Diagram& diagram, const TileKernel& kernel, const CoreVariable& v, KernelCost& cost) {
    const auto note = [&](std::string text) {
        if (!contains(cost.assumptions, text)) cost.assumptions.push_back(std::move(text));
    };
    for (std::size_t d = 0; d < v.dims.size(); ++d) {
        const Index& dim = v.dims[d];
        const auto* top = dim.affine() ? nullptr : as<Binary>(*dim.expression());
        const bool inside = dim.affine() ? stays_inside(diagram, *dim.affine(), v.limits[d])
                                         : top && top->op == BinaryOp::mod;
        if (!inside && is_guarded(kernel, v, d)) {
            cost.counts_padding = true;
            note("counts padding of " + pattern_text(diagram, v) + " as read");
        }
        if (dim.affine()) continue;
        visit(*dim.expression(), [&](const Expr& node) {
            const auto* b = as<Binary>(node);
            if (!b || (b->op != BinaryOp::floor_div && b->op != BinaryOp::mod)) return;
            for (const AxisId axis : free_axes(b->a))
                note("where tiles of " + diagram.axis(axis).name + " are aligned with " + to_string(b->b, diagram.names()));
        });
    }
}

/// Keeps, in order, the columns that no other column is always at least as large as.
std::vector<MemoryColumn> maximal(const std::vector<MemoryColumn>& all) {
    std::vector<MemoryColumn> columns, kept;
    for (const MemoryColumn& column : all) {
        const bool known = any_of(columns, [&](const MemoryColumn& other) { return other.size == column.size; });
        if (!known) columns.push_back(column);
    }
    for (std::size_t i = 0; i < columns.size(); ++i) {
        bool below = false;
        for (std::size_t j = 0; j < columns.size() && !below; ++j)
            below = i != j && never_above(columns[i].size, columns[j].size) &&
                    (j < i || !never_above(columns[j].size, columns[i].size));
        if (!below) kept.push_back(columns[i]);
    }
    return kept;
}

/// b is a times a product of symbols with non-negative exponents.
bool divides(const Monomial& a, const Monomial& b) {
    for (const auto& [symbol, exponent] : a) {
        if (value_or(b, symbol, Rational(0)) < exponent) return false;
    }
    return all_of(b, [&](const auto& part) { return part.second >= Rational(0) || a.contains(part.first); });
}

}  // namespace

bool never_above(const Size& a, const Size& b) {
    // Every negative term of b − a is covered by positive terms that are multiples of it. A group or stream size is at
    // most its axis.
    auto covered_by = [](const Monomial& small, const Monomial& large) {
        if (divides(small, large)) return true;
        Monomial raised;
        for (const auto& [symbol, exponent] : large) {
            raised[symbol] = exponent;
            // g_a ≤ a: where the smaller one has g_a and the larger one a, the larger one may lend its a.
            if (symbol.kind != SymbolKind::axis || exponent <= Rational(0)) continue;
            for (const SymbolKind kind : {SymbolKind::group, SymbolKind::stream, SymbolKind::subloop}) {
                const Symbol part{kind, symbol.id};
                const auto wanted = small.find(part);
                if (wanted != small.end() && !large.contains(part) && exponent >= wanted->second &&
                    (!small.contains(symbol) || exponent >= small.at(symbol) + wanted->second)) {
                    raised[part] = wanted->second;
                    raised[symbol] = exponent - wanted->second;
                    break;
                }
            }
        }
        std::erase_if(raised, [](const auto& entry) { return entry.second == Rational(0); });
        return divides(small, raised);
    };
    std::map<Monomial, Rational> positive, negative;
    const Size difference = b - a;
    for (const auto& [monomial, coefficient] : difference.terms())
        (coefficient > Rational(0) ? positive : negative).emplace(monomial, coefficient);
    for (auto& [monomial, coefficient] : negative) {
        for (auto& [larger, available] : positive) {
            if (!(coefficient < Rational(0))) break;
            if (!(available > Rational(0)) || !covered_by(monomial, larger)) continue;
            const Rational used = std::min(available, Rational(0) - coefficient);
            available = available - used;
            coefficient = coefficient + used;
        }
        if (coefficient < Rational(0)) return false;
    }
    return true;
}

Size leading_terms(const Size& size) {
    Size leading;
    for (const auto& term : size.terms()) {
        const bool exceeded = any_of(size.terms(), [&](const auto& other) {
            return other.first != term.first && other.second > Rational(0) && divides(term.first, other.first);
        });
        if (exceeded) continue;
        leading += Size::term(term.first, term.second);
    }
    return leading;
}

std::vector<AxisId> default_grouped(const Kernel& kernel) {
    std::vector<AxisId> grouped;
    for (const AxisId axis : kernel.group_axes)
        if (!contains(kernel.recompute_axes, axis)) grouped.push_back(axis);
    return grouped;
}

KernelCost symbolic_cost(const Derived& derived, const Kernel& kernel, const std::vector<AxisId>& grouped,
                         Measure measure, HeldTiles held) {
    return symbolic_cost(derived.diagram, expand(derived, kernel), grouped, measure, held);
}

KernelCost symbolic_cost(const Diagram& diagram, const TileKernel& kernel, const std::vector<AxisId>& grouped,
                         Measure measure, HeldTiles held) {
    const Liveness live = liveness(kernel);
    const Letters letters(diagram, live, grouped, measure);

    KernelCost cost;
    cost.kernel = kernel.name;
    cost.grouped = grouped;
    for (const CoreLoop& loop : live.loops) {
        if (!loop.is_sub && !contains(cost.streamed, loop.axis)) cost.streamed.push_back(loop.axis);
        cost.may_skip |= loop.may_skip;
    }

    cost.part = live.parts.part;
    cost.num_groups = letters.num_groups();
    const auto move = [&](const CoreVariable& v, bool stored) {
        const Size per_group = letters.tile(v) * letters.times(v.loop);
        cost.per_group += per_group;
        cost.transfers += per_group * cost.num_groups;
        cost.arrays.push_back({v.array, pattern_text(diagram, v), stored, per_group, per_group * cost.num_groups});
    };
    for (const CoreVariable& v : live.variables)
        if (v.loaded) move(v, false), note_assumptions(diagram, kernel, v, cost);
    for (const CoreVariable& v : live.variables)
        if (v.stored) move(v, true);

    const auto moments = held == HeldTiles::whole ? live.moments : held_point_by_point(diagram, kernel, live, held);
    cost.memory = memory_columns(diagram, live, grouped, moments, [&](const CoreVariable& v, const Moment&) -> std::int64_t {
        return measure == Measure::bytes ? bytes(diagram.array(v.array).type) : 1;
    });
    return cost;
}

Size points(const Diagram& diagram, const Liveness& live, const std::vector<AxisId>& grouped,
            const std::vector<AxisId>& axes, int loop) {
    const Letters letters(diagram, live, grouped, Measure::values);
    Size points = letters.num_groups() * letters.times(loop);
    for (const AxisId axis : axes) points *= letters.letter(axis, loop);
    return points;
}

std::vector<MemoryColumn> memory_columns(const Diagram& diagram, const Liveness& live, const std::vector<AxisId>& grouped,
                                         const std::vector<Moment>& moments, const ValueWeight& weight) {
    const Letters letters(diagram, live, grouped, Measure::values);
    std::vector<MemoryColumn> columns;
    for (const Moment& moment : moments) {
        MemoryColumn column;
        column.in_loop = moment.loop >= 0;
        column.at = moment.target >= 0 ? diagram.array(moment.target).name : "entry of " + diagram.axis(moment.entered).name;
        for (const int v : moment.alive) {
            const CoreVariable& variable = live.variables[at(v)];
            const std::int64_t counts = weight(variable, moment);
            if (counts == 0) continue;
            column.arrays.push_back(variable.array);
            column.size += letters.tile(variable, contains(moment.rows, v) ? moment.row_axes : std::vector<AxisId>()) *
                           Size(counts);
        }
        columns.push_back(std::move(column));
    }
    return maximal(columns);
}

Size with_tied(const Size& size, const TiedLetters& letters) {
    return size.renamed([&](Symbol symbol) {
        const auto tied = letters.find(symbol.axis());
        return symbol.kind == SymbolKind::axis && tied != letters.end() ? axis_symbol(tied->second) : symbol;
    });
}

KernelCost with_tied(const KernelCost& cost, const TiedLetters& letters) {
    KernelCost tied = cost;
    for (Size* size : {&tied.num_groups, &tied.per_group, &tied.transfers}) *size = with_tied(*size, letters);
    for (ArrayTransfers& a : tied.arrays)
        a.per_group = with_tied(a.per_group, letters), a.per_launch = with_tied(a.per_launch, letters);
    for (MemoryColumn& m : tied.memory) m.size = with_tied(m.size, letters);
    tied.memory = maximal(tied.memory);
    return tied;
}

}  // namespace napkin
