#include "diagram/padded_reads.hpp"

#include <functional>
#include <optional>
#include <utility>

#include "diagram/factor_conditions.hpp"
#include "diagram/guards.hpp"
#include "diagram/hidden_axes.hpp"
#include "diagram/product.hpp"
#include "support/ids.hpp"
#include "support/ranges.hpp"

namespace napkin {
namespace {

/// A dimension at which a sum of axes decides where is read, as y + i in X[y + i - 1], or h - r in X[(h - r) // 2].
struct Padded {
    std::size_t dimension;
    Affine sum;                    ///< without a constant
    std::vector<Expr> conditions;  ///< beside those that it is inside, of the sum alone
    /// Number of its values.
    [[nodiscard]] Size size() const { return range(true) + range(false) + Size(1); }

private:
    [[nodiscard]] Size range(bool is_above) const {
        Size out;
        for (const auto& [axis, factor] : sum.terms)
            if ((factor > 0) == is_above) out += Size(std::abs(factor)) * (Size(axis_symbol(axis)) - Size(1));
        return out;
    }
};

/// A factor in a sum of products, whose read finds zeros around its array, or between its values.
struct PaddedFactor {
    const Read* read;
    std::vector<Padded> dimensions;
    std::vector<Expr> others;  ///< conditions that say more, the outermost first
};

/// The expression where the sum of axes has a value; null where it is made of these axes in another way.
Expr at_value(const Expr& e, const Affine& sum, const Expr& value) {
    if (none_of(sum.terms, [&](const auto& term) { return depends_on_axis(e, term.first); })) return e;
    if (const auto form = affine_form(e)) {
        const std::int64_t factor = form->coefficient(sum.terms.front().first) / sum.terms.front().second;
        Affine rest = *form - sum * factor;
        if (!rest.terms.empty() || factor == 0) return nullptr;
        const Expr scaled = factor == 1 ? value : binary(BinaryOp::mul, integer_constant(factor), value);
        return rest.constant == 0 ? scaled : binary(BinaryOp::add, scaled, integer_constant(rest.constant));
    }
    if (as<Read>(e)) return nullptr;
    const std::vector<Expr> parts = mapped<Expr>(children(e), [&](const Expr& c) { return at_value(c, sum, value); });
    return contains(parts, nullptr) ? nullptr : with_children(e, parts);
}

/// The sum of axes that decides an index.
Affine sum_in(const Index& index) {
    Affine sum;
    visit(index.value(), [&](const Expr& node) {
        const auto form = sum.terms.empty() ? affine_form(node) : std::nullopt;
        if (form) sum.terms = form->terms;
    });
    return sum;
}

/// What is not negative where an affine index is inside of the dimension.
std::vector<MaskForm> forms_inside(const Diagram& d, const Affine& index, AxisId dimension) {
    Affine last = index * -1;
    last.constant -= 1;
    std::vector<MaskForm> out{{index, {}, nullptr, nullptr}, {last, {{dimension, 1}}, nullptr, nullptr}};
    if (const auto& size = d.axis(dimension).size; size && size->as_constant()) {
        last.constant += size->as_constant()->numerator();
        out.push_back({last, {}, nullptr, nullptr});
    }
    return out;
}

std::optional<PaddedFactor> padded_factor(const Diagram& d, const Expr& factor) {
    std::vector<Expr> conditions;
    Expr inner = factor;
    while (const Select* select = zero_elsewhere(inner))
        append(conditions, conditions_in(select->condition)), inner = select->a;
    PaddedFactor out{as<Read>(inner), {}, {}};
    if (!out.read || conditions.empty()) return std::nullopt;
    const std::vector<AxisId>& axes = d.array(out.read->array).axes;
    std::vector<MaskForm> inside;
    for (std::size_t k = 0; k < axes.size(); ++k) {
        const Index& index = out.read->indices[k];
        if (index.is_axis(axes[k])) continue;
        Padded padded{k, sum_in(index), {}};
        if (index.is_gathered() || padded.sum.terms.empty() || !at_value(index.value(), padded.sum, constant(0)))
            return std::nullopt;
        if (index.affine()) append(inside, forms_inside(d, *index.affine(), axes[k]));
        out.dimensions.push_back(std::move(padded));
    }
    for (const Expr& condition : conditions) {
        const auto forms = equivalent_mask_forms(condition, true);
        if (forms && all_of(*forms, [&](const MaskForm& form) { return contains(inside, form); })) continue;
        const auto along = find_if(out.dimensions, [&](const Padded& p) {
            const std::vector<AxisId> of = free_axes(condition);
            return of.size() == p.sum.terms.size() && at_value(condition, p.sum, constant(0)) &&
                   all_of(p.sum.terms, [&](const auto& term) { return contains(of, term.first); });
        });
        (along == out.dimensions.end() ? out.others : along->conditions).push_back(condition);
    }
    if (out.others.size() == conditions.size()) return std::nullopt;
    return out;
}

/// Calls f for every factor of a sum of products that is padded.
void for_each_padded(const Diagram& d, const std::function<void(const Expr&, const PaddedFactor&)>& f) {
    for (const Equation& e : d.equations) {
        if (e.reduce != ReduceOp::sum) continue;
        const std::vector<Expr> factors = factors_of(e.body);
        for (const Expr& factor : factors)
            if (const auto padded = factors.size() > 1 ? padded_factor(d, factor) : std::nullopt) f(factor, *padded);
    }
}

class Padding {
public:
    explicit Padding(Diagram& diagram) : d_(diagram), source_(diagram) {}

    void run() {
        std::vector<std::pair<Expr, Expr>> replaced;
        for_each_padded(source_, [&](const Expr& factor, const PaddedFactor& padded) {
            if (const Expr read = read_of(padded)) replaced.emplace_back(factor, with_others(read, padded.others));
        });
        for (Equation& e : d_.equations) {
            if (e.reduce != ReduceOp::sum) continue;
            e.body = transform(e.body, [&](const Expr& node) {
                const auto found = find_if(replaced, [&](const auto& r) { return equal(r.first, node); });
                return found == replaced.end() ? node : found->second;
            });
        }
        for (Equation& made : made_) {
            const auto reader = find_if(d_.equations, [&](const Equation& e) { return reads_array(e.body, made.target); });
            made.range = reader->range;
            d_.equations.insert(reader, std::move(made));
        }
    }

private:
    static Expr with_others(Expr value, const std::vector<Expr>& conditions) {
        for (auto condition = conditions.rbegin(); condition != conditions.rend(); ++condition)
            value = select(*condition, value, constant(0));
        return value;
    }

    /// What is added to a sum of axes so that its least value is 0; null: nothing.
    static Expr below(const Padded& p) {
        Expr out;
        for (const auto& [axis, factor] : p.sum.terms) {
            if (factor > 0) continue;
            const Expr last = binary(BinaryOp::sub, axis_size(axis), integer_constant(1)),
                       term = factor == -1 ? last : binary(BinaryOp::mul, integer_constant(-factor), last);
            out = out ? binary(BinaryOp::add, out, term) : term;
        }
        return out;
    }

    /// The read of the padded array; null where the diagram lacks an axis of it.
    Expr read_of(const PaddedFactor& padded) {
        const Array source = d_.array(padded.read->array);
        std::vector<AxisId> axes = source.axes, taken;
        std::vector<Index> there, indices = padded.read->indices;
        for (const AxisId axis : axes) there.emplace_back(Affine::axis(axis));
        std::vector<Expr> inside;
        for (const Padded& p : padded.dimensions) {
            const AxisId axis = free_axis(source_, p.size(), taken);
            if (axis < 0) return nullptr;
            taken.push_back(axis);
            axes[p.dimension] = axis;
            // The padded axis counts from the least value of the sum.
            const Expr least = below(p), sum = Index(p.sum).value();
            const Expr value = least ? binary(BinaryOp::sub, axis_index(axis), least) : axis_index(axis);
            const Index place = Index::of(at_value(padded.read->indices[p.dimension].value(), p.sum, value));
            there[p.dimension] = place;
            indices[p.dimension] = Index::of(least ? binary(BinaryOp::add, sum, least) : sum);
            inside.push_back(binary(BinaryOp::ge, place.value(), constant(0)));
            inside.push_back(binary(BinaryOp::lt, place.value(), axis_size(source.axes[p.dimension])));
            for (const Expr& condition : p.conditions) inside.push_back(at_value(condition, p.sum, value));
        }
        const Expr body = with_others(read(padded.read->array, std::move(there)), inside);
        const auto known = find_if(made_, [&](const Equation& made) { return equal(made.body, body); });
        if (known != made_.end()) return read(known->target, std::move(indices));
        Equation made = d_.equations.front();
        made.target = add_array(d_, source.name + "_padded", axes, source.type, ArrayRole::temporary);
        made.reduce = std::nullopt, made.reduce_axes.clear(), made.body = body;
        made_.push_back(made);
        return read(made.target, std::move(indices));
    }

    Diagram& d_;
    const Diagram source_;
    std::vector<Equation> made_;
};

}  // namespace

Diagram with_axes_of_padding(Diagram diagram) {
    const Diagram text = with_conditions_at_factors(diagram);
    for_each_padded(text, [&](const Expr&, const PaddedFactor& padded) {
        std::vector<AxisId> taken;
        for (const Padded& p : padded.dimensions) {
            const AxisId like = text.array(padded.read->array).axes[p.dimension];
            const AxisId axis = free_axis_of(diagram, p.size(), taken, like, "_padded");
            taken.push_back(axis);
        }
    });
    return diagram;
}

Diagram with_padded_reads(Diagram diagram) {
    Padding(diagram).run();
    return diagram;
}

bool is_padding(const Equation& equation) {
    if (equation.reduce || !zero_elsewhere(equation.body)) return false;
    Expr inner = equation.body;
    while (const Select* select = zero_elsewhere(inner)) inner = select->a;
    return as<Read>(inner) != nullptr;
}

}  // namespace napkin
