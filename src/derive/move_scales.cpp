// A scale is a number that depends on sizes alone, as size(k)^-0.5. Wherever it is written, the products are the same.
#include <fmt/format.h>

#include <cmath>

#include "derive/normal_form.hpp"
#include "derive/replay.hpp"
#include "diagram/product.hpp"
#include "support/ranges.hpp"

namespace napkin {
namespace {

/// By 0 or an infinity, a sum is not what its terms are.
bool is_scale(const Expr& e) {
    const auto* number = as<Constant>(e);
    return (!number || (std::isfinite(number->value) && number->value != 0)) && read_arrays(e).empty() &&
           free_axes(e).empty();
}

bool has_only_floats(const Diagram& d, const Equation& e) {
    return is_float(d.array(e.target).type) &&
           all_of(read_arrays(e.body), [&](ArrayId a) { return is_float(d.array(a).type); });
}

Expr inverse(const Expr& scale) { return simplify(binary(BinaryOp::pow, scale, constant(-1))); }

/// Whether a product by its inverse is as good as a quotient by it. A root is rounded, so its quotients are not exact
/// either; a power of two has an exact inverse. By 3, floor(S / 3) tells the two apart.
bool has_good_inverse(const Expr& scale) {
    if (const auto* number = as<Constant>(scale)) {
        int exponent = 0;
        return std::abs(std::frexp(number->value, &exponent)) == 0.5 || number->value != std::floor(number->value);
    }
    if (const auto* root = as<Unary>(scale)) return root->op == UnaryOp::sqrt;
    const auto* power = as<Binary>(scale);
    const auto* exponent = power && power->op == BinaryOp::pow ? as<Constant>(power->b) : nullptr;
    return exponent && exponent->value != std::floor(exponent->value);
}

const Binary* quotient_by_scale(const Expr& e) {
    const auto* quotient = as<Binary>(e);
    const bool is_one = quotient && quotient->op == BinaryOp::div && !is_scale(quotient->a) && is_scale(quotient->b);
    return is_one && has_good_inverse(quotient->b) ? quotient : nullptr;
}

/// The body with a product by the inverse in the place of a quotient by a scale, if that is of a sum's terms or of what
/// is computed. A quotient of inputs remains, since it is rounded once.
Expr with_products_by_scales(const Diagram& d, const Equation& e) {
    const auto* whole = e.reduce == ReduceOp::sum ? quotient_by_scale(e.body) : nullptr;
    const Expr body = whole ? binary(BinaryOp::mul, whole->a, inverse(whole->b)) : e.body;
    return transform(body, [&](const Expr& node) {
        const auto* quotient = quotient_by_scale(node);
        const bool is_computed = quotient && any_of(read_arrays(quotient->a),
                                                    [&](ArrayId a) { return d.array(a).role != ArrayRole::input; });
        return is_computed ? binary(BinaryOp::mul, quotient->a, inverse(quotient->b)) : node;
    });
}

/// Moves the scales of the sums of a diagram behind them.
class ScaleMover {
public:
    ScaleMover(Diagram& diagram, std::vector<DerivationStep>& steps) : d_(diagram), steps_(steps) {}

    void run() {
        for (const Equation& e : std::vector<Equation>(d_.equations))
            if (has_only_floats(d_, e)) with_products(e);
        for (const Equation& e : std::vector<Equation>(d_.equations))
            if (e.reduce == ReduceOp::sum && has_only_floats(d_, e)) move_from(*d_.definition(e.target));
    }

private:
    void with_products(const Equation& before) {
        Equation after = before;
        after.body = with_products_by_scales(d_, before);
        if (after == before) return;
        Edit edit;
        replace(edit, before, {after});
        steps_.push_back({"multiply by the inverse", "divide", "a number's inverse is one more number",
                          fmt::format("{} has a product in the place of a quotient", d_.array(before.target).name),
                          before.range, std::move(edit)});
    }

    void move_from(const Equation& found) {
        const Equation before = found;
        Expr scale, rest;
        for (const Expr& factor : factors_of(before.body)) {
            Expr& product = is_scale(factor) ? scale : rest;
            product = product ? binary(BinaryOp::mul, product, factor) : factor;
        }
        if (!scale || !rest) return;
        Edit edit;
        Equation sum = before;
        sum.body = rest;
        const Array target = d_.array(before.target);
        // A sum without its scale may be too large for a type of fewer exponent bits than f32 has.
        const bool has_range = facts(target.type).largest >= facts(DType::bf16).largest;
        if (target.role == ArrayRole::temporary && has_range) {
            replace(edit, before, {sum});
            for (const Equation& reader : std::vector<Equation>(d_.equations)) {
                Equation scaled = reader;
                scaled.body = transform(reader.body, [&](const Expr& node) {
                    const auto* read = as<Read>(node);
                    return read && read->array == before.target ? binary(BinaryOp::mul, node, scale) : node;
                });
                if (scaled != reader) replace(edit, reader, {scaled});
            }
        } else {
            const std::size_t num_arrays = d_.arrays.size();
            sum.target = add_array(d_, target.name + "_sum", target.axes,
                                   target.type == DType::f64 ? DType::f64 : DType::f32, ArrayRole::temporary);
            edit.arrays.assign(d_.arrays.begin() + static_cast<std::ptrdiff_t>(num_arrays), d_.arrays.end());
            Equation map = before;
            map.reduce.reset(), map.reduce_axes.clear();
            map.body = binary(BinaryOp::mul, read_self(d_, sum.target), scale);
            replace(edit, before, {sum, map});
        }
        steps_.push_back({"move scale", "scale inside", "multiplication by a number distributes over sums",
                          fmt::format("the sum of {} is multiplied by it", target.name), before.range, std::move(edit)});
    }

    void replace(Edit& edit, const Equation& before, const std::vector<Equation>& after) {
        const auto place = d_.equations.begin() + (find(d_.equations, before) - d_.equations.begin());
        d_.equations.insert(d_.equations.erase(place), after.begin(), after.end());
        edit.equations.push_back({before, after});
    }

    Diagram& d_;
    std::vector<DerivationStep>& steps_;
};

}  // namespace

void move_scales(Diagram& diagram, std::vector<DerivationStep>& steps) { ScaleMover(diagram, steps).run(); }

}  // namespace napkin
