#include "derive/aligned_rows.hpp"

#include <fmt/format.h>

#include <functional>
#include <utility>

#include "support/ids.hpp"
#include "support/ranges.hpp"
#include "support/saturate.hpp"

namespace napkin {
namespace {

bool has_odd_rows(const Diagram& diagram, const Extents& extents, ArrayId id, std::int64_t row_bytes) {
    const Array& array = diagram.array(id);
    return array.axes.size() > 1 && extents[array.axes.back()] * bytes(array.type) % row_bytes != 0;
}

/// The copy, of which every value is one of the array's or a zero behind them.
ArrayId add_copy(Derived& form, Extents& extents, ArrayId id, std::int64_t row_bytes) {
    Diagram& d = form.diagram;
    const Array array = d.array(id);
    const AxisId last = array.axes.back();
    const std::int64_t unit = row_bytes / bytes(array.type), size = round_up(extents[last], unit);
    extents.push_back(size);
    std::vector<AxisId> axes = array.axes;
    axes.back() = add_axis(d, d.axis(last).name + "_rows", size, last);
    return add_array(d, array.name + "_rows", std::move(axes), array.type, ArrayRole::temporary);
}

Kernel copying_kernel(const Diagram& d, ArrayId from, ArrayId to) {
    const AxisId own = d.array(from).axes.back(), last = d.array(to).axes.back();
    const auto indices = mapped<Index>(d.array(to).axes, [&](AxisId a) { return Index(Affine::axis(a)); });
    Kernel out;
    out.name = d.array(to).name;
    out.group_axes = d.array(to).axes;
    const Expr is_inside = binary(BinaryOp::lt, axis_index(last), axis_size(own));
    out.stages = {Block{{Statement{
        to, std::nullopt, {}, select(is_inside, read(from, indices), constant(0)), nullptr, d.array(from).range}}}};
    out.inputs = {from}, out.outputs = {to};
    return out;
}

void read_instead(Kernel& kernel, ArrayId from, ArrayId to) {
    const auto in = [&](Expr& e) {
        if (!e) return;
        e = transform(e, [&](const Expr& node) {
            const auto* r = as<Read>(node);
            return r && r->array == from ? read(to, r->indices) : node;
        });
    };
    for (Stage& stage : kernel.stages) {
        auto* loop = std::get_if<Loop>(&stage);
        for (Statement& s : loop ? loop->body : std::get<Block>(stage).statements) in(s.body), in(s.carry);
    }
    for (Fold& fold : kernel.folds) {
        for (FoldState& s : fold.states) in(s.body), in(s.carry);
        for (auto& [array, e] : fold.finish) in(e);
    }
    std::replace(kernel.inputs.begin(), kernel.inputs.end(), from, to);
}

}  // namespace

std::vector<ArrayId> factors_in_odd_rows(const Derived& derived, const Extents& extents, std::int64_t row_bytes) {
    std::vector<ArrayId> out;
    for (const Kernel& kernel : derived.kernels)
        for_each_statement(kernel, [&](const Statement& s) {
            const auto* product = s.reduce == ReduceOp::sum ? as<Binary>(s.body) : nullptr;
            if (!product || product->op != BinaryOp::mul) return;
            for (const Expr& factor : {product->a, product->b})
                if (const auto* r = as<Read>(factor); r && contains(kernel.inputs, r->array) && !contains(out, r->array) &&
                                                      has_odd_rows(derived.diagram, extents, r->array, row_bytes))
                    out.push_back(r->array);
        });
    return out;
}

WithAlignedRows with_aligned_rows(const Derived& derived, const Extents& extents, const std::vector<ArrayId>& arrays,
                                  std::int64_t row_bytes) {
    WithAlignedRows out{derived, extents, {}};
    std::vector<std::pair<ArrayId, ArrayId>> copies;
    for (const ArrayId a : arrays) copies.emplace_back(a, add_copy(out.form, out.extents, a, row_bytes));
    std::vector<Kernel> kernels;
    for (std::size_t k = 0; k < derived.kernels.size(); ++k) {
        Kernel kernel = derived.kernels[k];
        for (const auto& [from, to] : copies) {
            if (!contains(kernel.inputs, from)) continue;
            const bool is_there = any_of(
                kernels, [&, copy = to](const Kernel& before) { return contains(before.outputs, copy); });
            if (!is_there) kernels.push_back(copying_kernel(out.form.diagram, from, to)), out.whole.push_back(k);
            read_instead(kernel, from, to);
        }
        kernels.push_back(std::move(kernel)), out.whole.push_back(k);
    }
    out.form.kernels = std::move(kernels);
    return out;
}

}  // namespace napkin
