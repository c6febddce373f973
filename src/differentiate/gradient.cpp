#include "differentiate/gradient.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "algebra/derivative.hpp"
#include "algebra/expr_walk.hpp"
#include "diagram/row_major_place.hpp"
#include "differentiate/known_sums.hpp"
#include "differentiate/log_divisors.hpp"
#include "differentiate/readers.hpp"
#include "differentiate/references.hpp"
#include "support/ranges.hpp"

namespace napkin {
namespace {

Expr whole(std::int64_t value) { return integer_constant(value); }
Expr equals(const Expr& a, const Expr& b) { return binary(BinaryOp::eq, a, b); }

bool is_zero(const Expr& e) {
    const auto* c = as<Constant>(e);
    return c && c->value == 0;
}

/// A product, which goes into a choice that is 0 otherwise: its reads stay where they are taken.
Expr times(const Expr& a, const Expr& b) {
    if (const auto* s = as<Select>(b); s && is_zero(s->b)) return select(s->condition, times(a, s->a), s->b);
    if (const auto* s = as<Select>(b); s && is_zero(s->a)) return select(s->condition, s->a, times(a, s->b));
    if (const auto* d = as<Binary>(b); d && d->op == BinaryOp::div && equal(d->a, constant(1)))
        return binary(BinaryOp::div, a, d->b);
    return simplify(binary(BinaryOp::mul, a, b));
}

/// Keeps sums of fewer values than they read, such as a row's, in f32 at least. That costs nothing, and 16 bits would
/// lose what the values made of them need. Gives the temporaries whose type that changes.
std::vector<ArrayId> keep_sums_precise(Diagram& d) {
    std::vector<ArrayId> out;
    for (const Equation& e : d.equations) {
        Array& array = d.arrays[e.target];
        if (array.role != ArrayRole::temporary || !is_float(array.type) || array.type == DType::f64) continue;
        const std::vector<ArrayId> arrays = read_arrays(e.body);
        const auto is_larger = [&](ArrayId id) {
            const std::vector<AxisId>& axes = d.array(id).axes;
            return axes.size() > array.axes.size() &&
                   all_of(array.axes, [&](AxisId axis) { return contains(axes, axis); });
        };
        const bool is_of_sums = !e.reduce && !arrays.empty() && all_of(arrays, [&](ArrayId id) {
            return d.array(id).type == DType::f32 || !is_float(d.array(id).type);
        });
        if (!is_of_sums && !(e.reduce && any_of(arrays, is_larger))) continue;
        array.type = DType::f32;
        out.push_back(e.target);
    }
    return out;
}

/// The type of an array's adjoint: its own, but 8 bits are too few.
DType adjoint_type(DType type) { return bytes(type) == 1 ? DType::f32 : type; }

/// Leaves out equations that no output needs.
void drop_unused(Diagram& d) {
    std::set<ArrayId> used(d.outputs.begin(), d.outputs.end());
    std::vector<Equation> kept;
    for (auto e = d.equations.rbegin(); e != d.equations.rend(); ++e) {
        if (!used.contains(e->target)) continue;
        for (const ArrayId id : read_arrays(e->body)) used.insert(id);
        kept.push_back(std::move(*e));
    }
    std::reverse(kept.begin(), kept.end());
    d.equations = std::move(kept);
}

class Reverse {
public:
    Reverse(const Diagram& forward, const GradientOptions& options)
        : d_(with_log_divisors(forward)), options_(options), by_(options.by.empty() ? real_inputs(forward) : options.by) {}

    Gradient run() {
        merge_equal();
        std::vector<ArrayId> precise = keep_sums_precise(d_);
        find_active();
        name_what_extrema_are_of();
        const std::vector<Equation> forward = d_.equations;
        begin();
        for (std::size_t i = forward.size(); i-- > 0;) pass_on(forward[i]);
        Gradient out;
        for (const ArrayId id : by_) {
            if (!contributions_.contains(id)) out.independent.push_back(id);
            d_.outputs.push_back(adjoint(id));
        }
        use_known_sums(d_, forward.size());
        use_log_divisors(d_, forward.size(), options_.keep);
        drop_unused(d_);
        out.kept = take_kept();
        if (options_.only_needed) drop_inputs();
        append(precise, keep_sums_precise(d_));
        out.precise = std::move(precise);
        out.diagram = std::move(d_);
        return out;
    }

private:
    /// What an equation adds to an adjoint: the sum of `body` over axes, or just the body.
    struct Contribution {
        Expr body;
        std::vector<AxisId> over;
        ArrayId from;  ///< the equation's target
    };

    [[nodiscard]] bool is_active(ArrayId id) const { return active_.contains(id); }

    /// Equations that say the same become one, so that what cancels is seen to.
    void merge_equal() {
        std::map<std::tuple<std::optional<ReduceOp>, std::vector<AxisId>, std::vector<AxisId>, DType, Expr>, ArrayId> known;
        std::map<ArrayId, ArrayId> same;
        std::erase_if(d_.equations, [&](Equation& e) {
            e.body = transform(e.body, [&](const Expr& node) {
                const auto* r = as<Read>(node);
                const auto found = r ? same.find(r->array) : same.end();
                return found == same.end() ? node : read(found->second, r->indices);
            });
            const Array& array = d_.array(e.target);
            const auto [first, is_new] = known.try_emplace({e.reduce, e.reduce_axes, array.axes, array.type, e.body},
                                                           e.target);
            if (is_new || array.role != ArrayRole::temporary || contains(options_.keep, e.target)) return false;
            same[e.target] = first->second;
            return true;
        });
    }

    void find_active() {
        const std::set<ArrayId> references = cancelling_references(d_);
        active_.insert(by_.begin(), by_.end());
        for (const Equation& e : d_.equations) {
            const bool reads_active = any_of(read_arrays(e.body), [&](ArrayId id) { return is_active(id); });
            if (reads_active && is_float(d_.array(e.target).type) && !references.contains(e.target))
                active_.insert(e.target);
        }
    }

    /// Where an extremum lies is seen by comparing it with what it was found among: both must be the same numbers.
    void name_what_extrema_are_of() {
        for (Equation& e : std::exchange(d_.equations, {})) {
            const bool is_extremum = e.reduce == ReduceOp::max || e.reduce == ReduceOp::min;
            if (is_extremum && is_active(e.target) && !as<Read>(e.body)) {
                const Array target = d_.array(e.target);
                std::vector<AxisId> points = target.axes;
                append(points, e.reduce_axes);
                const ArrayId among = add_array(d_, target.name + "_among", std::move(points), target.type,
                                                ArrayRole::temporary);
                define(among, e.body, {}, e.range);
                active_.insert(among);
                e.body = read_self(d_, among);
            }
            d_.equations.push_back(std::move(e));
        }
    }

    void begin() {
        const std::vector<ArrayId> outputs = std::exchange(d_.outputs, {});
        d_.name += "_grad";
        d_.schedule.clear();
        for (const ArrayId id : outputs) {
            d_.arrays[id].role = ArrayRole::temporary;
            if (!is_float(d_.array(id).type)) continue;
            const ArrayId given = add_like(id, ArrayRole::input);
            d_.inputs.push_back(given);
            if (is_active(id)) contributions_[id].push_back({read_self(d_, given), {}, given});
        }
    }

    ArrayId add_like(ArrayId id, ArrayRole role, const std::string& from = {}) {
        const Array array = d_.array(id);
        return add_array(d_, "d" + array.name + from, array.axes, adjoint_type(array.type), role);
    }

    void define(ArrayId target, Expr body, std::vector<AxisId> over, const SourceRange& range, ReduceOp op = ReduceOp::sum) {
        sort(over);
        const auto reduce = over.empty() ? std::nullopt : std::optional(op);
        d_.equations.push_back({target, reduce, std::move(over), std::move(body), range, {}});
    }

    /// The array that holds the adjoint, which nothing is added to from here on.
    ArrayId adjoint(ArrayId id) {
        const bool is_result = d_.array(id).role == ArrayRole::input;
        std::vector<Contribution> parts = contributions_[id];
        const SourceRange range = d_.array(id).range;
        if (!is_result && parts.size() == 1 && d_.array(parts[0].from).role == ArrayRole::input) return parts[0].from;
        const ArrayId target = add_like(id, is_result ? ArrayRole::output : ArrayRole::temporary);
        if (parts.size() == 1) {
            define(target, parts[0].body, parts[0].over, range);
            return target;
        }
        Expr total;
        for (Contribution& part : parts) {
            if (!part.over.empty()) {
                const ArrayId sum = add_like(id, ArrayRole::temporary, "_" + d_.array(part.from).name);
                define(sum, part.body, part.over, range);
                part.body = read_self(d_, sum);
            }
            total = total ? binary(BinaryOp::add, total, part.body) : part.body;
        }
        define(target, total ? total : constant(0), {}, range);
        return target;
    }

    void pass_on(const Equation& e) {
        if (!is_active(e.target) || !contributions_.contains(e.target)) return;
        const ArrayId of_target = adjoint(e.target);
        const Expr upstream = of_body(e, read_self(d_, of_target));
        std::vector<Expr> leaves;
        for_each_postorder(
            e.body,
            [&](const Expr& node) {
                if (const auto* r = as<Read>(node); r && is_active(r->array)) leaves.push_back(node);
            },
            Walk::values);
        for (const Expr& leaf : leaves)
            if (const Expr slope = derivative(e.body, leaf))
                pass_to(e, leaf, times(upstream, in_terms_of_target(slope, e)));
    }

    /// What an equation computes is read where its slope contains it.
    Expr in_terms_of_target(const Expr& slope, const Equation& e) const {
        if (e.reduce || as<Read>(e.body) || as<Constant>(e.body)) return slope;
        return transform(slope, [&](const Expr& node) { return equal(node, e.body) ? read_self(d_, e.target) : node; });
    }

    void pass_to(const Equation& e, const Expr& leaf, Expr what) {
        const Read* read_of = as<Read>(leaf);
        std::vector<Index> indices = read_of->indices;
        const std::vector<AxisId> element = d_.array(read_of->array).axes;
        std::vector<AxisId> points = d_.array(e.target).axes;
        append(points, e.reduce_axes);
        // The element's axes are its coordinates; points that run along them otherwise get axes of their own.
        std::map<AxisId, AxisId> renamed;
        for (AxisId& axis : points) {
            const auto place = find(element, axis);
            if (place == element.end() || indices[at(place - element.begin())].is_axis(axis)) continue;
            renamed[axis] = axis_like(axis);
            axis = renamed[axis];
        }
        if (!renamed.empty()) {
            const auto there = [&](AxisId axis) -> std::optional<Index> {
                const auto found = renamed.find(axis);
                return found == renamed.end() ? std::nullopt : std::optional<Index>(Affine::axis(found->second));
            };
            what = substitute_axes(what, there);
            for (Index& index : indices) index = substitute(index, there);
        }
        Readers readers = readers_of(d_, indices, element, points);
        Expr body = readers.seen(what);
        std::erase_if(readers.over, [&](AxisId axis) {
            if (depends_on_axis(body, axis)) return false;
            body = times(axis_size(axis), body);
            return true;
        });
        contributions_[read_of->array].push_back({body, readers.over, e.target});
    }

    AxisId axis_like(AxisId axis) {
        const AxisId out = add_axis(d_, d_.axis(axis).name, 1, axis);
        const auto given = d_.axis(axis).size;
        d_.axes[out].size = given && !given->as_constant() ? *given : Size(axis_symbol(axis));
        return out;
    }

    // ---- the adjoint of a reduction's body

    Expr of_body(const Equation& e, const Expr& of_target) {
        if (!e.reduce || e.reduce == ReduceOp::sum) return of_target;
        return e.reduce == ReduceOp::prod ? of_product(e, of_target) : of_extremum(e, of_target);
    }

    ArrayId helper(const Equation& e, const std::string& suffix, DType type, ReduceOp op, const Expr& body) {
        const Array array = d_.array(e.target);
        const ArrayId id = add_array(d_, array.name + suffix, array.axes, type, ArrayRole::temporary);
        define(id, body, e.reduce_axes, e.range, op);
        return id;
    }

    /// Each factor gets what the others multiply to: without zeros the quotient by it, with one zero that one alone.
    Expr of_product(const Equation& e, const Expr& of_target) {
        const Expr is_none = equals(e.body, constant(0));
        const DType type = d_.array(e.target).type;
        const ArrayId zeros = helper(e, "_zeros", DType::i32, ReduceOp::sum, select(is_none, whole(1), whole(0)));
        const ArrayId others = helper(e, "_others", type, ReduceOp::prod, select(is_none, constant(1), e.body));
        const Expr product = read_self(d_, others), number = read_self(d_, zeros);
        const Expr of_zero = select(equals(number, whole(1)), product, constant(0));
        const Expr of_other = select(equals(number, whole(0)), binary(BinaryOp::div, product, e.body), constant(0));
        return binary(BinaryOp::mul, of_target, select(is_none, of_zero, of_other));
    }

    Expr of_extremum(const Equation& e, const Expr& of_target) {
        const Expr is_extremum = equals(e.body, read_self(d_, e.target));
        if (options_.ties == Ties::shared) {
            const ArrayId count = helper(e, "_ties", DType::i32, ReduceOp::sum, select(is_extremum, whole(1), whole(0)));
            return select(is_extremum, binary(BinaryOp::div, of_target, read_self(d_, count)), constant(0));
        }
        const auto [place, count] = row_major_place(e.reduce_axes);
        const ArrayId first = helper(e, "_place", DType::i64, ReduceOp::min, select(is_extremum, place, count));
        return select(equals(place, read_self(d_, first)), of_target, constant(0));
    }

    // ---- the whole diagram

    /// Makes inputs of what is kept, as far as something reads it. They stand before the adjoints.
    std::vector<ArrayId> take_kept() {
        std::vector<ArrayId> kept = options_.keep;
        std::erase_if(d_.equations, [&](const Equation& e) { return contains(kept, e.target); });
        drop_unused(d_);
        std::erase_if(kept, [&](ArrayId id) {
            return none_of(d_.equations, [&](const Equation& e) { return reads_array(e.body, id); });
        });
        const auto own = find_if(d_.inputs, [&](ArrayId id) { return !contains(forward_inputs_, id); });
        d_.inputs.insert(own, kept.begin(), kept.end());
        for (const ArrayId id : kept) d_.arrays[id].role = ArrayRole::input;
        return kept;
    }

    void drop_inputs() {
        std::set<ArrayId> used;
        for (const Equation& e : d_.equations)
            for (const ArrayId id : read_arrays(e.body)) used.insert(id);
        std::erase_if(d_.inputs, [&](ArrayId id) { return !used.contains(id); });
    }

    Diagram d_;
    const GradientOptions& options_;
    const std::vector<ArrayId> by_, forward_inputs_ = d_.inputs;
    std::set<ArrayId> active_;  ///< real numbers that depend on an input of `by`, without references that cancel
    std::map<ArrayId, std::vector<Contribution>> contributions_;
};

}  // namespace

std::vector<ArrayId> real_inputs(const Diagram& diagram) {
    std::vector<ArrayId> out;
    for (const ArrayId id : diagram.inputs)
        if (is_float(diagram.array(id).type)) out.push_back(id);
    return out;
}

std::optional<WrongInput> wrong_input(const Diagram& d, const std::vector<ArrayId>& candidates,
                                      const std::vector<std::string>& by) {
    const auto fault = [&](std::string message, const std::string& name = {}) {
        return WrongInput{std::move(message), name,
                          mapped<std::string>(candidates, [&](ArrayId id) { return d.array(id).name; })};
    };
    if (candidates.empty()) return fault(fmt::format("{} has no argument of real numbers", d.name));
    if (none_of(d.outputs, [&](ArrayId id) { return is_float(d.array(id).type); }))
        return fault(fmt::format("{} has no result of real numbers", d.name));
    for (const std::string& name : by) {
        const auto id = d.find_array(name);
        if (!id || !contains(d.inputs, *id)) return fault(fmt::format("{} has no argument {}", d.name, name), name);
        if (!contains(candidates, *id)) return fault(fmt::format("there is no gradient by {}", name), name);
        if (std::count(by.begin(), by.end(), name) > 1)
            return fault(fmt::format("{} is differentiated by {} twice", d.name, name), name);
    }
    return std::nullopt;
}

Diagram with_outputs(Diagram diagram, const std::vector<ArrayId>& kept) {
    Diagram precise = diagram;
    (void)keep_sums_precise(precise);
    for (const ArrayId id : kept) {
        if (diagram.array(id).role == ArrayRole::output) continue;
        diagram.arrays[id].type = precise.array(id).type;
        // What is made of a row's sums is as precise as they are.
        for (const Equation& e : diagram.equations)
            if (e.target == id && !e.reduce)
                for (const ArrayId part : read_arrays(e.body))
                    if (diagram.array(part).role == ArrayRole::temporary)
                        diagram.arrays[part].type = precise.array(part).type;
        diagram.arrays[id].role = ArrayRole::output;
        diagram.outputs.push_back(id);
    }
    drop_unused(diagram);
    return diagram;
}

Gradient gradient(const Diagram& diagram, const GradientOptions& options) { return Reverse(diagram, options).run(); }

}  // namespace napkin
