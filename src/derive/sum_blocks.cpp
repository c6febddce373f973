// Sums over blocks, and casts that round nothing: what keeps a product of narrow types from being seen as one.
#include <fmt/format.h>

#include "derive/normal_form.hpp"
#include "derive/replay.hpp"
#include "diagram/blocks.hpp"
#include "diagram/product.hpp"
#include "support/ids.hpp"
#include "support/ranges.hpp"

namespace napkin {
namespace {

/// With shorter blocks the factors are multiplied about as often as without them.
constexpr std::int64_t shortest_block = 16;

/// A sum over k = c · block whose factors are told apart by k // c, or by k.
class BlockSum {
public:
    BlockSum(Diagram& diagram, const Equation& e) : d_(diagram), e_(e) {}

    /// The sums in the blocks and the sum over them; none where there are no such factors.
    std::vector<Equation> run() {
        if (e_.reduce != ReduceOp::sum || !is_float(d_.array(e_.target).type)) return {};
        const std::vector<ArrayId> arrays = read_arrays(e_.body);
        if (any_of(arrays, [&](ArrayId a) { return !is_float(d_.array(a).type); })) return {};
        for (const AxisId axis : e_.reduce_axes)
            if (auto sums = over(axis); !sums.empty()) return sums;
        return {};
    }

private:
    [[nodiscard]] std::vector<Equation> over(AxisId axis) {
        const auto blocks = blocks_of(d_, axis);
        const std::vector<AxisId>& target = d_.array(e_.target).axes;
        if (!blocks || blocks->length < shortest_block) return {};
        for (const AxisId other : {blocks->block, blocks->inside})
            if (contains(target, other) || contains(e_.reduce_axes, other)) return {};
        std::vector<AxisId> others = e_.reduce_axes;
        std::erase(others, axis);
        Expr inner, outer;
        bool has_blocks = false;
        for (const Expr& factor : factors_of(e_.body)) {
            const bool depends = depends_on_axis(factor, axis),
                       is_inner = any_of(others, [&](AxisId a) { return depends_on_axis(factor, a); });
            const bool is_of_block = depends && block_length(factor, axis) == blocks->length;
            if (is_of_block && is_inner) return {};
            has_blocks = has_blocks || is_of_block;
            Expr& product = is_of_block || (!depends && !is_inner) ? outer : inner;
            const Expr written = is_of_block ? at_block(factor, axis, blocks->block) : factor;
            product = product ? binary(BinaryOp::mul, product, written) : written;
        }
        if (!has_blocks || !inner) return {};
        Affine place = Affine::axis(blocks->block) * blocks->length + Affine::axis(blocks->inside);
        inner = substitute_axes(inner, [&](AxisId a) { return a == axis ? std::optional<Index>(place) : std::nullopt; });

        std::vector<AxisId> axes;
        for (const AxisId a : target)
            if (depends_on_axis(inner, a)) axes.push_back(a);
        axes.push_back(blocks->block);
        const std::vector<ArrayId> factors = read_arrays(e_.body);
        const bool is_double = d_.array(e_.target).type == DType::f64 ||
                               any_of(factors, [&](ArrayId a) { return d_.array(a).type == DType::f64; });
        Equation part = e_, sum = e_;
        others.push_back(blocks->inside);
        sort(others);
        part.body = inner, part.reduce_axes = std::move(others);
        part.target = add_array(d_, d_.array(e_.target).name + "_block", axes, is_double ? DType::f64 : DType::f32,
                                ArrayRole::temporary);
        sum.body = binary(BinaryOp::mul, read_self(d_, part.target), outer), sum.reduce_axes = {blocks->block};
        return {part, sum};
    }

    Diagram& d_;
    const Equation& e_;
};

}  // namespace

void sum_blocks(Diagram& diagram, std::vector<DerivationStep>& steps) {
    std::vector<Equation> out;
    for (const Equation& e : std::vector<Equation>(std::move(diagram.equations))) {
        const std::size_t num_arrays = diagram.arrays.size();
        std::vector<Equation> sums = BlockSum(diagram, e).run();
        if (sums.empty()) {
            out.push_back(e);
            continue;
        }
        Edit edit;
        edit.arrays.assign(diagram.arrays.begin() + static_cast<std::ptrdiff_t>(num_arrays), diagram.arrays.end());
        edit.equations.push_back({e, sums});
        steps.push_back({"sum blocks", "sum at once",
                         "a factor that is one for each block leaves the sum over the block",
                         fmt::format("{} is summed in blocks of {}", diagram.array(e.target).name,
                                     diagram.axis(sums.back().reduce_axes.front()).name),
                         e.range, std::move(edit)});
        append(out, sums);
    }
    diagram.equations = std::move(out);
}

void drop_exact_casts(Diagram& diagram, std::vector<DerivationStep>& steps) {
    for (Equation& e : diagram.equations) {
        const Equation before = e;
        e.body = transform(e.body, [&](const Expr& node) {
            const auto* cast = as<Cast>(node);
            const auto* r = cast && cast->type == DType::f32 ? as<Read>(cast->a) : nullptr;
            const DType type = r ? diagram.array(r->array).type : DType::f64;
            return is_float(type) && bytes(type) < bytes(DType::f32) ? cast->a : node;
        });
        if (e == before) continue;
        Edit edit;
        edit.equations.push_back({before, {e}});
        steps.push_back({"drop cast", "cast", "f32 has all values of narrower types",
                         fmt::format("{} reads them as they are", diagram.array(e.target).name), e.range, std::move(edit)});
    }
}

}  // namespace napkin
