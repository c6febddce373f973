#include "diagram/padded_reads.hpp"

#include <functional>
#include <optional>
#include <utility>

#include "diagram/guards.hpp"
#include "diagram/hidden_axes.hpp"
#include "diagram/product.hpp"
#include "support/ids.hpp"
#include "support/ranges.hpp"

namespace napkin {
namespace {

/// A dimension along which the read may leave its array.
struct Padded {
    std::size_t dimension;
    std::int64_t first;  ///< the least index
    Size size;           ///< of all indices
};

/// A factor in a sum of products, whose read finds zeros around its array.
struct PaddedFactor {
    const Read* read;
    std::vector<Padded> dimensions;
    std::vector<Expr> others;  ///< conditions that say more, the outermost first
};

Affine negative(const Affine& form) { return form * -1; }

std::optional<PaddedFactor> padded_factor(const Diagram& d, const Expr& factor) {
    std::vector<Expr> conditions;
    Expr inner = factor;
    while (const Select* select = zero_elsewhere(inner)) conditions.push_back(select->condition), inner = select->a;
    PaddedFactor out{as<Read>(inner), {}, {}};
    if (!out.read || conditions.empty()) return std::nullopt;
    const std::vector<AxisId>& axes = d.array(out.read->array).axes;
    // What is not negative where an index is inside.
    std::vector<MaskForm> inside;
    for (std::size_t k = 0; k < axes.size(); ++k) {
        const Affine* index = out.read->indices[k].affine();
        if (!index) return std::nullopt;
        if (index->is_axis(axes[k])) continue;
        if (!index->sizes.empty() || any_of(index->terms, [](const auto& term) { return term.second < 0; }))
            return std::nullopt;
        Padded padded{k, index->constant, Size(1)};
        for (const auto& [axis, factor_of] : index->terms)
            padded.size = padded.size + Size(factor_of) * (Size(axis_symbol(axis)) - Size(1));
        out.dimensions.push_back(std::move(padded));
        Affine last = negative(*index);
        last.constant -= 1;
        inside.push_back({*index, {}, nullptr, nullptr});
        inside.push_back({last, {{axes[k], 1}}, nullptr, nullptr});
        if (const auto& size = d.axis(axes[k]).size; size && size->as_constant()) {
            last.constant += size->as_constant()->numerator();
            inside.push_back({last, {}, nullptr, nullptr});
        }
    }
    for (const Expr& condition : conditions) {
        const auto forms = equivalent_mask_forms(condition, true);
        const bool is_inside = forms && all_of(*forms, [&](const MaskForm& form) { return contains(inside, form); });
        if (!is_inside) out.others.push_back(condition);
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

    /// The read of the padded array; null where the diagram lacks an axis of it.
    Expr read_of(const PaddedFactor& padded) {
        const Array source = d_.array(padded.read->array);
        std::vector<AxisId> axes = source.axes, taken;
        std::vector<Index> there, indices = padded.read->indices;
        for (const AxisId axis : axes) there.emplace_back(Affine::axis(axis));
        std::vector<Expr> inside;
        for (const Padded& p : padded.dimensions) {
            const AxisId axis = free_axis(source_, p.size, taken);
            if (axis < 0) return nullptr;
            taken.push_back(axis);
            axes[p.dimension] = axis;
            Affine at = Affine::axis(axis), own = *padded.read->indices[p.dimension].affine();
            at.constant += p.first, own.constant -= p.first;
            there[p.dimension] = at, indices[p.dimension] = own;
            const Expr place = Index(at).value();
            inside.push_back(binary(BinaryOp::ge, place, constant(0)));
            inside.push_back(binary(BinaryOp::lt, place, axis_size(source.axes[p.dimension])));
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
    const Diagram text = diagram;
    for_each_padded(text, [&](const Expr&, const PaddedFactor& padded) {
        std::vector<AxisId> taken;
        for (const Padded& p : padded.dimensions) {
            const AxisId like = text.array(padded.read->array).axes[p.dimension];
            const AxisId axis = free_axis_of(diagram, p.size, taken, like, "_padded");
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
