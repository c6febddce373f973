#include "diagram/blocks.hpp"

#include <fmt/format.h>

#include "support/ids.hpp"
#include "support/ranges.hpp"

namespace napkin {
namespace {

/// Finds every place of one axis.
class Places {
public:
    explicit Places(AxisId axis) : axis_(axis) {}

    /// False where the axis stands elsewhere than in a quotient by the one length.
    bool visit(const Expr& e) {
        if (const auto* i = as<AxisIndex>(e)) return i->axis != axis_;
        if (const auto* r = as<Read>(e))
            return all_of(r->indices, [&](const Index& index) {
                return index.affine() ? !index.depends_on(axis_) : visit(*index.expression());
            });
        if (const auto* u = as<Unary>(e)) return visit(u->a);
        if (const auto* c = as<Cast>(e)) return visit(c->a);
        if (const auto* s = as<Select>(e)) return visit(s->condition) && visit(s->a) && visit(s->b);
        const auto* b = as<Binary>(e);
        if (!b) return true;
        const auto* of = b->op == BinaryOp::floor_div ? as<AxisIndex>(b->a) : nullptr;
        const auto* by = of && of->axis == axis_ ? as<Constant>(b->b) : nullptr;
        if (!by) return visit(b->a) && visit(b->b);
        const auto found = static_cast<std::int64_t>(by->value);
        if (length && *length != found) return false;
        length = found;
        return true;
    }

    std::optional<std::int64_t> length;

private:
    AxisId axis_;
};

/// Sizes of two axes multiplied.
std::optional<std::pair<AxisId, AxisId>> product_of_axes(const Size& size) {
    if (size.terms().size() != 1) return std::nullopt;
    const auto& [monomial, coefficient] = *size.terms().begin();
    if (coefficient != Rational(1) || monomial.size() != 2) return std::nullopt;
    std::vector<AxisId> axes;
    for (const auto& [symbol, exponent] : monomial) {
        if (symbol.kind != SymbolKind::axis || exponent != Rational(1)) return std::nullopt;
        axes.push_back(symbol.axis());
    }
    return std::pair(axes[0], axes[1]);
}

/// The axis whose size times the length is the given one's.
std::optional<AxisId> block_axis(const Diagram& diagram, AxisId axis, std::int64_t length) {
    const auto size = diagram.axis(axis).exact_size();
    for (std::size_t a = 0; size && a < diagram.axes.size(); ++a)
        if (AxisId::of(a) != axis && *size == Size(axis_symbol(AxisId::of(a))) * Size(length)) return AxisId::of(a);
    return std::nullopt;
}

}  // namespace

std::optional<std::int64_t> block_length(const Expr& e, AxisId axis) {
    Places places(axis);
    return places.visit(e) ? places.length : std::nullopt;
}

Expr at_block(const Expr& e, AxisId axis, AxisId block) {
    const std::function<Expr(const Expr&)> replaced = [&](const Expr& node) -> Expr {
        if (const auto* b = as<Binary>(node); b && b->op == BinaryOp::floor_div)
            if (const auto* of = as<AxisIndex>(b->a); of && of->axis == axis) return axis_index(block);
        const auto* r = as<Read>(node);
        if (!r) return node;
        std::vector<Index> indices;
        for (const Index& index : r->indices)
            indices.push_back(index.depends_on(axis) ? Index::of(transform(*index.expression(), replaced)) : index);
        return read(r->array, std::move(indices));
    };
    return transform(e, replaced);
}

std::optional<BlocksOf> blocks_of(const Diagram& diagram, AxisId axis) {
    const auto size = diagram.axis(axis).exact_size();
    const auto axes = size ? product_of_axes(*size) : std::nullopt;
    if (!axes) return std::nullopt;
    for (const auto& [block, inside] : {*axes, std::pair(axes->second, axes->first)}) {
        const auto& length = diagram.axis(inside).size;
        if (const auto number = length ? length->as_constant() : std::nullopt; number && number->is_integer())
            return BlocksOf{block, inside, number->numerator()};
    }
    return std::nullopt;
}

std::vector<AxisId> fixed_axes(const Diagram& diagram) {
    std::vector<AxisId> fixed;
    for (std::size_t a = 0; a < diagram.axes.size(); ++a) {
        const auto axis = AxisId::of(a);
        const auto blocks = blocks_of(diagram, axis);
        if (!blocks) continue;
        bool is_told = false;
        for (const Equation& e : diagram.equations)
            visit(e.body, [&](const Expr& node) {
                if (as<Read>(node)) is_told = is_told || block_length(node, axis) == blocks->length;
            });
        if (is_told) fixed.push_back(blocks->inside);
    }
    return fixed;
}

std::vector<AxisId> axes_of_rests(const Diagram& diagram) {
    std::vector<AxisId> out;
    const auto is_rest_by = [](const Expr& e, const Size& size) {
        bool found = false;
        visit(e, [&](const Expr& node) {
            const auto* b = as<Binary>(node);
            const auto* by = b && b->op == BinaryOp::mod ? as<Constant>(b->b) : nullptr;
            found = found || (by && size == Size(static_cast<std::int64_t>(by->value)));
        });
        return found;
    };
    for (const Equation& e : diagram.equations)
        visit(e.body, [&](const Expr& node) {
            const auto* r = as<Read>(node);
            for (std::size_t d = 0; r && d < r->indices.size(); ++d) {
                const AxisId axis = diagram.array(r->array).axes[d];
                const auto size = diagram.axis(axis).exact_size();
                if (size && r->indices[d].expression() && !contains(out, axis) &&
                    is_rest_by(*r->indices[d].expression(), *size))
                    out.push_back(axis);
            }
        });
    return out;
}

Diagram with_axes_in_blocks(Diagram diagram) {
    for (const Equation& e : diagram.equations) {
        if (e.reduce != ReduceOp::sum) continue;
        for (const AxisId axis : e.reduce_axes) {
            std::optional<std::int64_t> length;
            visit(e.body, [&](const Expr& node) {
                if (as<Read>(node) && !length) length = block_length(node, axis);
            });
            const auto block = length && *length > 1 ? block_axis(diagram, axis, *length) : std::nullopt;
            if (!block) continue;
            std::string name = fmt::format("{}_{}", diagram.axis(axis).name, *length);
            while (diagram.find_axis(name) || diagram.find_array(name)) name += "_";
            const auto inside = AxisId::of(diagram.axes.size());
            diagram.axes.push_back({std::move(name), Size(*length), diagram.axis(axis).range});
            diagram.axes[axis].size = Size(axis_symbol(inside)) * Size(axis_symbol(*block));
        }
    }
    return diagram;
}

}  // namespace napkin
