#include "derive/converted_factors.hpp"

#include <fmt/format.h>

#include <utility>

#include "support/ids.hpp"
#include "support/ranges.hpp"

namespace napkin {
namespace {

class Converting {
public:
    Converting(Derived& form, const std::vector<FactorConversion>& conversions) : d_(form.diagram), all_(conversions) {}

    void in(Kernel& kernel) {
        for (Stage& stage : kernel.stages) {
            std::vector<Statement> out;
            converted_.clear();
            // Conversions for a product stand right behind the product before it, beside which they then run.
            std::size_t behind_product = 0;
            for (Statement& s : statements_of(stage)) {
                std::vector<Statement> before;
                if (s.reduce == ReduceOp::sum) s.body = multiplied(kernel, s, before);
                const bool is_converted = !before.empty();
                out.insert(out.begin() + static_cast<std::ptrdiff_t>(behind_product), before.begin(), before.end());
                out.push_back(std::move(s));
                if (is_converted) behind_product = out.size();
            }
            statements_of(stage) = std::move(out);
            const auto* loop = std::get_if<Loop>(&stage);
            for (Fold& fold : kernel.folds)
                for (FoldState& state : fold.states)
                    for (const auto& [from, to] : converted_)
                        if (loop && fold.axis == loop->axis) state.body = replaced(state.body, from, to);
        }
    }

private:
    /// The sum's product with its factors converted, of which `before` gets the statements.
    Expr multiplied(Kernel& kernel, const Statement& s, std::vector<Statement>& before) {
        const auto* product = as<Binary>(s.body);
        if (!product || product->op != BinaryOp::mul) return s.body;
        Expr body = s.body;
        for (const Expr& factor : {product->a, product->b}) {
            const auto* r = as<Read>(factor);
            const auto conversion = find_if(all_, [&](const FactorConversion& c) { return r && c.array == r->array; });
            if (conversion == all_.end()) continue;
            if (!contains(kernel.inputs, r->array)) {
                d_.arrays[r->array].type = conversion->type;
                continue;
            }
            auto known = find_if(converted_, [&](const auto& c) { return c.first == factor; });
            if (known == converted_.end()) {
                const std::vector<AxisId> axes = axes_of(*r);
                const ArrayId to = add_array(d_, fmt::format("{}_{}", d_.array(r->array).name, name(conversion->type)),
                                             axes, conversion->type, ArrayRole::temporary);
                before.push_back({.target = to, .body = factor, .range = s.range});
                converted_.emplace_back(factor, read_self(d_, to));
                known = converted_.end() - 1;
            }
            body = replaced(body, known->first, known->second);
        }
        return body;
    }
    /// Those that the read's indices depend on, in their order.
    static std::vector<AxisId> axes_of(const Read& r) {
        std::vector<AxisId> out;
        for (const Index& index : r.indices)
            for (const AxisId axis : index.axes())
                if (!contains(out, axis)) out.push_back(axis);
        return out;
    }
    static Expr replaced(const Expr& e, const Expr& from, const Expr& to) {
        return e ? transform(e, [&](const Expr& node) { return node == from ? to : node; }) : e;
    }

    Diagram& d_;
    const std::vector<FactorConversion>& all_;
    std::vector<std::pair<Expr, Expr>> converted_;  ///< of the list at hand: what is read, and what is read instead
};

}  // namespace

Derived with_conversions(const Derived& derived, const std::vector<FactorConversion>& conversions) {
    Derived out = derived;
    Converting converting(out, conversions);
    for (Kernel& kernel : out.kernels) converting.in(kernel);
    return out;
}

}  // namespace napkin
