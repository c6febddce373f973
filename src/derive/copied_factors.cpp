#include "derive/copied_factors.hpp"

#include <fmt/format.h>

#include <functional>
#include <utility>

#include "support/ids.hpp"
#include "support/ranges.hpp"
#include "support/saturate.hpp"

namespace napkin {
namespace {

/// What a copy is called: after what it is for.
std::string name_of_copy(const Array& array, const FactorCopy& copy) {
    return array.name + (copy.type == array.type ? "_rows" : "_" + std::string(name(copy.type)));
}

/// The copy, of which every value is one of the array's or a zero behind them.
ArrayId add_copy(Derived& form, Extents& extents, const FactorCopy& copy) {
    Diagram& d = form.diagram;
    const Array array = d.array(copy.array);
    auto axes = mapped<AxisId>(copy.order, [&](int dimension) { return array.axes[at(dimension)]; });
    const AxisId last = axes.back();
    const std::int64_t unit = std::max<std::int64_t>(1, copy.row_bytes / bytes(copy.type)),
                       size = round_up(extents[last], unit);
    if (size != extents[last]) {
        extents.push_back(size);
        axes.back() = add_axis(d, d.axis(last).name + "_rows", size, last);
    }
    return add_array(d, name_of_copy(array, copy), std::move(axes), copy.type, ArrayRole::temporary);
}

Kernel copying_kernel(const Diagram& d, const FactorCopy& copy, ArrayId to) {
    const Array& array = d.array(copy.array);
    const AxisId own = array.axes[at(copy.order.back())], last = d.array(to).axes.back();
    std::vector<Index> indices;
    for (std::size_t i = 0; i < array.axes.size(); ++i)
        indices.emplace_back(Affine::axis(d.array(to).axes[at(find(copy.order, static_cast<int>(i)) - copy.order.begin())]));
    Kernel out;
    out.name = d.array(to).name;
    out.group_axes = d.array(to).axes;
    const Expr value = read(copy.array, std::move(indices));
    const Expr is_inside = binary(BinaryOp::lt, axis_index(last), axis_size(own));
    out.stages = {Block{{Statement{
        to, std::nullopt, {}, own == last ? value : select(is_inside, value, constant(0)), nullptr, array.range}}}};
    out.inputs = {copy.array}, out.outputs = {to};
    return out;
}

void read_instead(Kernel& kernel, const FactorCopy& copy, ArrayId to) {
    const auto in = [&](Expr& e) {
        if (!e) return;
        e = transform(e, [&](const Expr& node) -> Expr {
            const auto* r = as<Read>(node);
            if (!r || r->array != copy.array) return node;
            return read(to, mapped<Index>(copy.order, [&](int dimension) { return r->indices[at(dimension)]; }));
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
    std::replace(kernel.inputs.begin(), kernel.inputs.end(), copy.array, to);
}

}  // namespace

WithCopies with_copies(const Derived& derived, const Extents& extents, const std::vector<FactorCopy>& copies) {
    WithCopies out{derived, extents, {}};
    const auto targets = mapped<ArrayId>(copies, [&](const FactorCopy& c) { return add_copy(out.form, out.extents, c); });
    std::vector<Kernel> kernels;
    for (std::size_t k = 0; k < derived.kernels.size(); ++k) {
        Kernel kernel = derived.kernels[k];
        for (std::size_t c = 0; c < copies.size(); ++c) {
            if (!contains(kernel.inputs, copies[c].array)) continue;
            const bool is_there = any_of(kernels,
                                         [&](const Kernel& before) { return contains(before.outputs, targets[c]); });
            if (!is_there)
                kernels.push_back(copying_kernel(out.form.diagram, copies[c], targets[c])), out.whole.push_back(k);
            read_instead(kernel, copies[c], targets[c]);
        }
        kernels.push_back(std::move(kernel)), out.whole.push_back(k);
    }
    out.form.kernels = std::move(kernels);
    return out;
}

}  // namespace napkin
