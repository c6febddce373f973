// Dimensions of an input that are read at a quotient and the rest of it: digits of one index, which the array's
// row-major order puts together again.
#include <fmt/format.h>

#include "derive/normal_form.hpp"
#include "diagram/blocks.hpp"
#include "support/ids.hpp"
#include "support/ranges.hpp"
#include "support/text.hpp"

namespace napkin {
namespace {

/// A number that an index is divided by, as it stands there and as a size.
struct Divisor {
    Expr text;
    Size size;
};
/// (whole // divisor) % modulus; none: without it.
struct Digit {
    Expr whole;
    std::optional<Divisor> divisor, modulus;
};

/// Neighbouring dimensions of an array, both included, that are read as one along the axis.
struct Joined {
    std::size_t first, last;
    AxisId axis;
};

class Joining {
public:
    /// Sizes that are numbers in the text are numbers here, or letters, which say the same whatever they are.
    Joining(const Diagram& diagram, bool by_number)
        : d_(diagram), by_number_(by_number), fixed_(axes_of_rests(diagram)) {
        for (const Equation& e : d_.equations)
            visit(e.body, [&](const Expr& node) {
                if (const auto* r = as<Read>(node)) reads_.push_back(r);
            });
    }

    [[nodiscard]] std::vector<Joined> dimensions_of(ArrayId array) const {
        std::vector<Joined> out;
        const std::size_t rank = d_.array(array).axes.size();
        for (std::size_t first = 0; first + 1 < rank; ++first)
            for (std::size_t last = rank - 1; last > first; --last)
                if (const AxisId axis = axis_of(array, first, last, out); axis >= 0) {
                    out.push_back({first, last, axis});
                    first = last;
                    break;
                }
        return out;
    }

    /// The one index of a read along these dimensions; none where it is no number's digits.
    [[nodiscard]] std::optional<Index> index_of(const Read& r, std::size_t first, std::size_t last) const {
        const std::vector<AxisId>& axes = d_.array(r.array).axes;
        Digit low = digit_of(r.indices[last].value());
        Size below = size_of(axes[last]);
        for (std::size_t d = last; d-- > first; below = below * size_of(axes[d])) {
            const Digit high = digit_of(r.indices[d].value());
            if (!low.modulus || low.modulus->size != below || !high.divisor ||
                high.divisor->size != size_of(low.divisor) * below || !(Index::of(high.whole) == Index::of(low.whole)))
                return std::nullopt;
            low.modulus = high.modulus ? std::optional(product(*high.modulus, *low.modulus)) : std::nullopt;
        }
        Expr e = low.whole;
        if (low.divisor) e = binary(BinaryOp::floor_div, e, low.divisor->text);
        if (low.modulus) e = binary(BinaryOp::mod, e, low.modulus->text);
        return Index::of(e);
    }

    [[nodiscard]] Size size_of(AxisId axis) const {
        const auto size = d_.axis(axis).exact_size();
        if (!size || (size->as_constant() && !by_number_ && !contains(fixed_, axis))) return Size(axis_symbol(axis));
        Size out = *size;
        for (const Symbol symbol : size->symbols())
            if (symbol.kind == SymbolKind::axis && symbol.axis() != axis)
                out = out.substitute(symbol, size_of(symbol.axis()));
        return out;
    }

private:
    /// An axis of as many values, which no other dimension of the array has; -1: there is none, or the dimensions are
    /// not read as one.
    [[nodiscard]] AxisId axis_of(ArrayId array, std::size_t first, std::size_t last, const std::vector<Joined>& others) const {
        const std::vector<AxisId>& axes = d_.array(array).axes;
        Size together(1);
        for (std::size_t d = first; d <= last; ++d) together = together * size_of(axes[d]);
        std::vector<AxisId> candidates;
        bool is_read = false;
        for (const Read* r : reads_) {
            if (r->array != array) continue;
            const auto index = index_of(*r, first, last);
            if (!index) return -1;
            is_read = true;
            if (index->single_axis() >= 0) candidates.push_back(index->single_axis());
        }
        if (!is_read) return -1;
        // Numbers that are equal by chance prove nothing.
        if (!by_number_) append(candidates, d_.axes.ids());
        const auto found = find_if(candidates, [&](AxisId axis) {
            for (std::size_t d = 0; d < axes.size(); ++d)
                if (axes[d] == axis) return false;
            return none_of(others, [&](const Joined& other) { return other.axis == axis; }) && size_of(axis) == together;
        });
        return found == candidates.end() ? AxisId() : *found;
    }

    [[nodiscard]] Digit digit_of(const Expr& e) const {
        const auto* b = as<Binary>(e);
        const bool divides = b && (b->op == BinaryOp::floor_div || b->op == BinaryOp::mod);
        const auto by = divides ? size_of(b->b) : std::nullopt;
        if (!by) return {e, std::nullopt, std::nullopt};
        Digit of = digit_of(b->a);
        const Divisor divisor{b->b, *by};
        if (of.modulus) return {e, std::nullopt, std::nullopt};
        if (b->op == BinaryOp::mod)
            of.modulus = divisor;
        else
            of.divisor = of.divisor ? product(*of.divisor, divisor) : divisor;
        return of;
    }
    static Divisor product(const Divisor& a, const Divisor& b) {
        return {Index::of(binary(BinaryOp::mul, a.text, b.text)).value(), a.size * b.size};
    }
    static Size size_of(const std::optional<Divisor>& divisor) { return divisor ? divisor->size : Size(1); }
    [[nodiscard]] std::optional<Size> size_of(const Expr& e) const {
        if (const auto* c = as<Constant>(e)) return Size(static_cast<std::int64_t>(c->value));
        if (const auto* s = as<AxisSize>(e)) return size_of(s->axis);
        const auto* b = as<Binary>(e);
        const auto x = b && b->op == BinaryOp::mul ? size_of(b->a) : std::nullopt;
        const auto y = x ? size_of(b->b) : std::nullopt;
        return y ? std::optional(*x * *y) : std::nullopt;
    }

    const Diagram& d_;
    bool by_number_;
    std::vector<AxisId> fixed_;
    std::vector<const Read*> reads_;
};

}  // namespace

Diagram with_sizes_of_joined_dimensions(Diagram diagram) {
    for (const ArrayId array : std::vector<ArrayId>(diagram.inputs))
        for (const Joined& joined : Joining(diagram, true).dimensions_of(array)) {
            Size together(1);
            for (std::size_t d = joined.first; d <= joined.last; ++d)
                together = together * Size(axis_symbol(diagram.array(array).axes[d]));
            const auto& size = diagram.axis(joined.axis).size;
            if (size && size->as_constant()) diagram.axes[joined.axis].size = together;
        }
    return diagram;
}

void join_dimensions(Diagram& diagram, std::vector<DerivationStep>& steps) {
    for (const ArrayId array : std::vector<ArrayId>(diagram.inputs)) {
        const Diagram before = diagram;
        const Joining joining(before, false);
        const std::vector<Joined> all = joining.dimensions_of(array);
        if (all.empty()) continue;
        const auto joined = [&]<class T>(std::vector<T> list, const auto& one) {
            for (auto j = all.rbegin(); j != all.rend(); ++j) {
                list[j->first] = one(*j);
                list.erase(list.begin() + static_cast<std::ptrdiff_t>(j->first) + 1,
                           list.begin() + static_cast<std::ptrdiff_t>(j->last) + 1);
            }
            return list;
        };
        Array& a = diagram.arrays[array];
        a.axes = joined(a.axes, [](const Joined& j) { return j.axis; });
        Edit edit;
        edit.axes.emplace_back(array, a.axes);
        SourceRange range = a.range;
        for (Equation& e : diagram.equations) {
            const Equation old = e;
            e.body = transform(e.body, [&](const Expr& node) -> Expr {
                const auto* r = as<Read>(node);
                if (!r || r->array != array) return node;
                return read(
                    array, joined(r->indices, [&](const Joined& j) { return *joining.index_of(*r, j.first, j.last); }));
            });
            if (e == old) continue;
            edit.equations.push_back({old, {e}});
            range = e.range;
        }
        const ExprNames names = diagram.names();
        steps.push_back(
            {"join dimensions", "split dimension",
             "rows follow each other in memory, and each read's indices are digits of one number",
             fmt::format("{}[{}] is {}[{}]", a.name, join(names_of(before.axes, before.array(array).axes), ", "),
                         a.name, join(names_of(before.axes, a.axes), ", ")),
             range, std::move(edit)});
    }
}

}  // namespace napkin
