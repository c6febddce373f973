// A sum of sums is the sum of each, as sum(k) (X[m, k] * W[n, k] + S[m, n]) is (sum(k) X[m, k] * W[n, k]) + S[m, n] *
// size(k). What is left is a product of two arrays alone, which a statement of its own multiplies.
#include <fmt/format.h>

#include <utility>

#include "derive/normal_form.hpp"
#include "derive/replay.hpp"
#include "diagram/product.hpp"
#include "support/ranges.hpp"

namespace napkin {
namespace {

struct Addend {
    Expr value;
    bool is_subtracted;
};

void take_apart(const Expr& e, bool is_subtracted, std::vector<Addend>& out) {
    const auto* b = as<Binary>(e);
    if (!b || (b->op != BinaryOp::add && b->op != BinaryOp::sub)) return out.push_back({e, is_subtracted});
    take_apart(b->a, is_subtracted, out);
    take_apart(b->b, is_subtracted != (b->op == BinaryOp::sub), out);
}

/// Whether two arrays are multiplied along a summed axis, each of which has an axis of the target that the other lacks.
bool is_matrix_product(const Diagram& d, const Equation& e, const Expr& addend) {
    const std::vector<Expr> factors = factors_of(addend);
    if (factors.size() != 2 || !as<Read>(factors[0]) || !as<Read>(factors[1])) return false;
    const auto axes = product_axes(free_axes(factors[0]), free_axes(factors[1]), d.array(e.target).axes, e.reduce_axes);
    return axes && !axes->m.empty() && !axes->n.empty();
}

class SumSplitter {
public:
    SumSplitter(Diagram& diagram, const Equation& e) : d_(diagram), e_(e) {}

    /// The equation's sums, one after the other, and their sum.
    std::vector<Equation> equations(const std::vector<Addend>& addends) {
        Expr others, all;
        for (const Addend& addend : addends) {
            const bool is_whole = all_of(e_.reduce_axes, [&](AxisId a) { return depends_on_axis(addend.value, a); });
            if (is_whole && !is_matrix_product(d_, e_, addend.value))
                others = added(others, addend);
            else
                all = added(all, {sum_of(addend.value), addend.is_subtracted});
        }
        if (others) all = added(all, {sum_of(others), false});
        Equation last = e_;
        last.reduce.reset(), last.reduce_axes.clear(), last.body = all;
        out_.push_back(std::move(last));
        return std::move(out_);
    }

private:
    static Expr added(const Expr& to, const Addend& addend) {
        if (to) return binary(addend.is_subtracted ? BinaryOp::sub : BinaryOp::add, to, addend.value);
        return addend.is_subtracted ? unary(UnaryOp::neg, addend.value) : addend.value;
    }

    /// The sum over the axes that the addend has, as often as there are values of those that it lacks.
    Expr sum_of(const Expr& addend) {
        Equation part = e_;
        part.body = addend;
        std::erase_if(part.reduce_axes, [&](AxisId a) { return !depends_on_axis(addend, a); });
        Expr out = addend;
        if (!part.reduce_axes.empty()) {
            const Array target = d_.array(e_.target);
            const DType type = target.type == DType::f64 ? DType::f64 : DType::f32;
            part.target = add_array(d_, target.name + "_sum", target.axes, type, ArrayRole::temporary);
            out_.push_back(part);
            out = read_self(d_, part.target);
        }
        for (const AxisId axis : e_.reduce_axes)
            if (!contains(part.reduce_axes, axis)) out = binary(BinaryOp::mul, out, axis_size(axis));
        return out;
    }

    Diagram& d_;
    const Equation& e_;
    std::vector<Equation> out_;
};

}  // namespace

void split_sums(Diagram& diagram, std::vector<DerivationStep>& steps) {
    std::vector<Equation> out;
    for (const Equation& e : std::vector<Equation>(std::move(diagram.equations))) {
        std::vector<Addend> addends;
        if (e.reduce == ReduceOp::sum && is_float(diagram.array(e.target).type)) take_apart(e.body, false, addends);
        const bool has_product = addends.size() > 1 && any_of(addends, [&](const Addend& addend) {
                                     return is_matrix_product(diagram, e, addend.value);
                                 });
        if (!has_product) {
            out.push_back(e);
            continue;
        }
        const std::size_t num_arrays = diagram.arrays.size();
        const std::vector<Equation> split = SumSplitter(diagram, e).equations(addends);
        Edit edit;
        edit.arrays.assign(diagram.arrays.begin() + static_cast<std::ptrdiff_t>(num_arrays), diagram.arrays.end());
        edit.equations.push_back({e, split});
        steps.push_back({"split sum", "sum at once", "a sum of sums is the sum of each",
                         fmt::format("{} is made of {} sums", diagram.array(e.target).name, split.size() - 1), e.range,
                         std::move(edit)});
        append(out, split);
    }
    diagram.equations = std::move(out);
}

}  // namespace napkin
