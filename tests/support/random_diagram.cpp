#include "support/random_diagram.hpp"

#include <fmt/format.h>

#include <limits>
#include <map>
#include <set>

#include "diagram/symbol_names.hpp"
#include "support/random_expressions.hpp"
#include "support/result.hpp"

namespace napkin {
namespace random {
namespace {

constexpr double inf = std::numeric_limits<double>::infinity();

/// Diagrams made by recipes, each of which adds an equation or a few that belong together.
class Generator : private RandomExpressions {
public:
    Generator(std::uint64_t seed, const RandomDiagramOptions& options) : RandomExpressions(seed, options) {}

    Diagram run() {
        d_.name = "random";
        const int axes = std::min(options_.max_axes, 2 + pick(4));
        for (int i = 0; i < axes; ++i) add_axis(std::string(1, "qxkdhb"[i % 6]));
        const int inputs = 1 + pick(options_.max_inputs);
        for (int i = 0; i < inputs; ++i) add_input(random_axes());
        const int equations = 2 + pick(options_.max_equations - 1);
        while (static_cast<int>(d_.equations.size()) < equations) recipe();
        choose_outputs();
        return std::move(d_);
    }

private:
    // ---- recipes: one or a few equations each
    // --------------------------------------------------------------------------------
    void recipe() {
        switch (pick(13)) {
            case 0:
            case 1: return elementwise();
            case 2:
            case 3: return reduction();
            case 4:
            case 5: return contraction();
            case 6:
            case 7:
            case 8: return weighted_sum();
            case 9: return centred();
            case 10:
            case 11: return chain();
            default: return windows();
        }
    }

    void elementwise() { define(std::nullopt, {}, expression(operands(1 + pick(3)))); }

    void reduction() {
        const std::vector<Term> terms = operands(1 + pick(3));
        std::vector<AxisId> axes = axes_of(terms);
        if (axes.empty()) return elementwise();
        shuffle(axes);
        axes.resize(std::min(axes.size(), static_cast<std::size_t>(chance(25) ? 2 : 1)));
        // Perhaps an axis that the body does not know.
        if (chance(8) && options_.loose_reductions) axes = {AxisId::of(pick(static_cast<int>(d_.axes.size())))};
        const std::vector operators{ReduceOp::sum, ReduceOp::sum, ReduceOp::sum, ReduceOp::prod,
                                    ReduceOp::max, ReduceOp::max, ReduceOp::min};
        const ReduceOp op = one_of(operators);
        define(op, axes, expression(terms));
    }

    /// An axis of some array, and that array; chance decides which.
    ArrayId pick_with_axis(AxisId& axis) {
        const ArrayId id = pick_array([](const Array& a) { return !a.axes.empty(); });
        if (id >= 0) {
            axis = one_of(d_.array(id).axes);
            return id;
        }
        axis = 0;
        return add_input({0, 1});
    }
    /// Another operand that carries the axis; an input made for it when there is none.
    ArrayId partner(AxisId axis, ArrayId first) {
        const ArrayId id = pick_array(
            [&](const Array& a) { return has(a, axis) && &a != &d_.array(first) && a.axes.size() <= 3; });
        if (id >= 0 && (chance(80) || static_cast<int>(d_.inputs.size()) >= options_.max_inputs)) return id;
        std::vector<AxisId> axes{axis};
        const AxisId other = AxisId::of(pick(static_cast<int>(d_.axes.size())));
        if (other != axis) axes.push_back(other);
        return add_input(std::move(axes));
    }

    void contraction() {
        AxisId axis = 0;
        const ArrayId a = pick_with_axis(axis), b = partner(axis, a);
        std::vector<AxisId> axes{axis};
        for (AxisId other : d_.array(a).axes) {
            if (other != axis && has(d_.array(b), other) && chance(40) && axes.size() < 2) axes.push_back(other);
        }
        define(ReduceOp::sum, axes, limited(self(a), 10) * limited(self(b), 10));
    }

    /// The weights exp(s - max s), their sum, and what is made of them: nothing, a normalised map, weighted sums, the
    /// logarithm.
    void weighted_sum() {
        if (!room_for(3)) return reduction();
        AxisId axis = 0;
        const ArrayId a = pick_with_axis(axis);
        Term s = limited(self(a), 50);
        if (chance(30)) s = s * Term{binary(BinaryOp::pow, axis_size(axis), constant(-0.5)), {0, 1}};
        if (chance(15)) s = expression({s});
        if (!depends_on_axis(s.e, axis)) s = self(a);
        const std::vector<AxisId> axes = free_axes(s.e);
        bool masked = false;
        if (options_.masks && axes.size() > 1 && chance(45)) {
            // The first position stays, so every row keeps a value and -inf meets no -inf.
            AxisId row = one_of(axes);
            if (row != axis) {
                const Expr limit = chance(50) ? axis_index(row)
                                              : binary(BinaryOp::add, axis_index(row), constant(1 + pick(2)));
                s.e = select(binary(BinaryOp::le, axis_index(axis), limit), s.e, constant(-inf));
                masked = true;
            }
        } else if (options_.masks && chance(15)) {
            s.e = select(condition(axes), s.e, constant(-20));
            s.range.low = std::min(s.range.low, -20.0);
        }
        const Range finite = s.range;
        if (chance(40) && room_for(3)) s = define(std::nullopt, {}, s, finite, !masked);
        std::vector<AxisId> over{axis};
        if (!masked && axes.size() > 2 && chance(15)) over.push_back(axes[0] == axis ? axes[1] : axes[0]);
        const bool shifted = masked || finite.high > 4 || chance(70);
        Term weight = call(UnaryOp::exp, s, {0, std::exp(std::min(4.0, finite.high))});
        Term maximum = number(0);
        if (shifted) {
            maximum = define(ReduceOp::max, over, s, finite);
            weight = call(UnaryOp::exp, s - maximum, {0, 1});
        }
        if (chance(15) && room_for(2)) weight = define(std::nullopt, {}, weight, weight.range);
        const double points = std::pow(largest_extent, static_cast<double>(over.size()));
        const double least = shifted ? 1 : std::max(1e-9, std::exp(finite.low));
        const Term total = define(ReduceOp::sum, over, weight, Range{least, weight.range.high * points});
        for (int more = 1 + pick(2); more > 0 && room_for(1); --more) {
            switch (pick(6)) {
                case 0: define(std::nullopt, {}, maximum + call(UnaryOp::log, total, around(60)), around(120)); break;
                case 1: define(std::nullopt, {}, weight / total, Range{0, 1}); break;
                default: {
                    const Term value = limited(self(partner(axis, a)), 50);
                    if (chance(40) && room_for(2)) {
                        const Term share = define(std::nullopt, {}, weight / total, Range{0, 1});
                        define(ReduceOp::sum, over, share * value,
                               around(value.range.magnitude() * (over.size() > 1 ? largest_extent : 1)));
                    } else {
                        Term body = chance(50)   ? weight * value / total
                                    : chance(50) ? weight / total * value
                                                 : weight * value;
                        define(ReduceOp::sum, over, body, around(value.range.magnitude() * points * weight.range.high));
                        if (chance(40) && room_for(1)) {
                            const ArrayId sum = ArrayId::of(d_.arrays.size() - 1);
                            define(std::nullopt, {},
                                   limited(self(sum), 10) / Term{total.e, {std::max(least, 0.01), points}});
                        }
                    }
                }
            }
        }
    }

    /// Mean, squares about it (or about zero), the normalised value and its contraction.
    void centred() {
        if (!room_for(2)) return reduction();
        AxisId axis = 0;
        const ArrayId a = pick_with_axis(axis);
        const Term value = limited(self(a), 20);
        const double bound = value.range.magnitude();
        const Term count{axis_size(axis), {1, 40}};
        Term centre = value;
        if (chance(75)) {
            Term mean = number(0);
            if (chance(50)) {
                mean = define(ReduceOp::sum, {axis}, value / count, around(bound));
            } else {
                mean = define(ReduceOp::sum, {axis}, value, around(bound * largest_extent));
                mean = clipped(around(bound), mean / count);
                if (chance(40) && room_for(2)) mean = define(std::nullopt, {}, mean, around(bound));
            }
            centre = clipped(around(2 * bound), value - mean);
            if (chance(25) && room_for(2)) centre = define(std::nullopt, {}, centre, around(2 * bound));
        }
        const Term square = chance(50) ? centre * centre : Term{binary(BinaryOp::pow, centre.e, constant(2)), {}};
        const Range squares{0, 4 * bound * bound};
        Term spread = define(ReduceOp::sum, {axis},
                             clipped(squares, chance(50) ? clipped(squares, square) / count : square),
                             Range{0, squares.high * largest_extent});
        if (!room_for(1)) return;
        if (chance(30)) spread = spread / count;
        const Term scale = call(UnaryOp::rsqrt, spread + number(one_of(std::vector<double>{1e-3, 0.1, 1})), {0, 30});
        Term normal = clipped(around(largest_extent), centre * scale);
        if (chance(60)) normal = define(std::nullopt, {}, normal, around(largest_extent));
        if (room_for(1) && chance(60)) define(ReduceOp::sum, {axis}, normal * limited(self(partner(axis, a)), 6));
    }

    /// Reductions over one axis, each of which may use those before it.
    void chain() {
        AxisId axis = 0;
        const ArrayId a = pick_with_axis(axis);
        std::vector<Term> earlier;
        for (int steps = 2 + pick(2); steps > 0 && room_for(1); --steps) {
            std::vector<Term> terms{self(a)};
            if (!earlier.empty()) terms.push_back(earlier.back());
            if (earlier.size() > 1 && chance(50)) terms.push_back(earlier.front());
            if (chance(25)) {
                const Term more = self(partner(axis, a));
                std::vector<Term> together = terms;
                together.push_back(more);
                if (axes_of(together).size() <= 4) terms = std::move(together);
            }
            Term body = expression(terms);
            if (!depends_on_axis(body.e, axis)) body = limited(body, 100) * limited(self(a), 10);
            earlier.push_back(
                define(one_of(std::vector{ReduceOp::sum, ReduceOp::sum, ReduceOp::max, ReduceOp::min, ReduceOp::prod}),
                       {axis}, body));
        }
        if (!earlier.empty() && chance(40) && room_for(1))
            define(std::nullopt, {}, expression({self(a), earlier.back()}));
    }

    /// X[i + w], X[2*i + w], or X[i + 1], X[n - 1 - i] without a window's axis.
    void windows() {
        if (!options_.affine_reads || !room_for_axes(1)) return reduction();
        const AxisId i = AxisId::of(pick(static_cast<int>(d_.axes.size())));
        const Size length = axis_symbol(i);
        const bool windowed = room_for_axes(2) && chance(75);
        const std::int64_t stride = chance(35) ? 2 : 1, width = 2 + pick(2), step = chance(20) ? 2 : 1;
        Affine index = Affine::axis(i) * stride;
        // The last element read is the array's last, or one before it.
        Size size = Size(stride) * (length - 1) + 1 + Size(pick(2));
        std::vector<AxisId> over;
        if (windowed) {
            const AxisId w = add_axis("w", Size(width));
            index.add(w, step);
            size += Size(step * (width - 1));
            over.push_back(w);
        } else {
            index.constant = pick(3);
            size += Size(index.constant);
        }
        const AxisId n = add_axis("n", size);
        std::vector<AxisId> axes{n};
        const AxisId channel = AxisId::of(pick(static_cast<int>(d_.axes.size()) - 2));
        if (channel != i && channel != n && chance(50) && (over.empty() || channel != over[0])) axes.push_back(channel);
        shuffle(axes);
        const ArrayId x = add_input(axes);
        std::vector<Index> indices;
        for (AxisId axis : axes) indices.push_back(axis == n ? index : Affine::axis(axis));
        Term value{read(x, indices), around(6)};
        if (over.empty()) {
            define(std::nullopt, {}, expression({value, chance(50) ? value : self(pick_array([&](const Array& a) {
                                                     return a.axes.size() < 3;
                                                 }))}));
            return;
        }
        if (axes.size() > 1 && chance(50)) over.push_back(channel);
        const ArrayId filter = chance(60) ? add_input(over) : ArrayId();
        const auto op = one_of(std::vector{ReduceOp::sum, ReduceOp::sum, ReduceOp::max});
        define(op, over, filter >= 0 ? value * self(filter) : value);
    }

    void choose_outputs() {
        std::set<ArrayId> read;
        for (const Equation& equation : d_.equations) {
            for (ArrayId id : read_arrays(equation.body)) read.insert(id);
        }
        for (const Equation& equation : d_.equations) {
            const bool last = &equation == &d_.equations.back();
            const bool output = read.contains(equation.target) ? chance(15) : chance(90) || (last && d_.outputs.empty());
            if (!output && !(last && d_.outputs.empty())) continue;
            d_.arrays[equation.target].role = ArrayRole::output;
            d_.outputs.push_back(equation.target);
        }
    }
};

}  // namespace
}  // namespace random

Diagram random_diagram(std::uint64_t seed, const RandomDiagramOptions& options) {
    return random::Generator(seed, options).run();
}

Extents random_extents(const Diagram& diagram, std::uint64_t seed) {
    std::mt19937_64 random(seed * 0xBF58476D1CE4E5B9ULL + 7);
    std::map<std::string, std::int64_t> sizes;
    for (const Axis& axis : diagram.axes) {
        constexpr std::int64_t drawn[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 11};
        const std::int64_t size = drawn[random() % std::size(drawn)];
        if (!axis.size) sizes[axis.name] = size;
    }
    const auto bound = bind_sizes(diagram, sizes);
    if (!bound) throw InternalError(render(bound.errors()));
    return *bound;
}

std::string describe(const Diagram& diagram) {
    const auto signature = [&](const std::vector<ArrayId>& ids) {
        std::string out;
        for (ArrayId id : ids) {
            std::string axes;
            for (AxisId axis : diagram.array(id).axes) axes += (axes.empty() ? "" : ", ") + diagram.axis(axis).name;
            out += fmt::format("{}{}{}: {}", out.empty() ? "" : ", ", diagram.array(id).name,
                               axes.empty() ? "" : "[" + axes + "]", name(diagram.array(id).type));
        }
        return out;
    };
    std::string out = fmt::format("{}({}) -> {}\n", diagram.name, signature(diagram.inputs), signature(diagram.outputs));
    for (const Axis& axis : diagram.axes) {
        if (axis.size)
            out += fmt::format("    sizes {} = {}\n", axis.name, to_string(*axis.size, symbol_names(diagram), true));
    }
    for (const Equation& equation : diagram.equations) out += "    " + to_string(diagram, equation) + "\n";
    return out;
}

}  // namespace napkin
