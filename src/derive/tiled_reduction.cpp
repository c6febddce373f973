#include "derive/tiled_reduction.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <set>

#include "algebra/reduce.hpp"
#include "support/ids.hpp"

namespace napkin {
namespace {

bool has_axis(const Diagram& d, const Statement& s, AxisId axis) {
    return contains(d.array(s.target).axes, axis) || contains(s.reduce_axes, axis) || depends_on_axis(s.body, axis) ||
           (s.carry && depends_on_axis(s.carry, axis));
}

bool computes(const Kernel& kernel, ArrayId array) {
    bool found = false;
    for_each_statement(kernel, [&](const Statement& s) { found = found || s.target == array; });
    return found;
}

/// The kernel has the axis in groups alone: it neither runs over it nor reduces it, and masks say nothing of it.
bool groups_alone(const Diagram& d, const Kernel& kernel, AxisId axis) {
    bool any = false, reduces = false;
    for_each_statement(kernel, [&](const Statement& s) {
        any = any || has_axis(d, s, axis);
        reduces = reduces || contains(s.reduce_axes, axis);
    });
    if (!any) return true;
    for (const Stage& stage : kernel.stages)
        if (const auto* loop = std::get_if<Loop>(&stage)) {
            if (loop->axis == axis || !loop->masks.empty()) return false;
            for (const Affine& form : loop->support)
                if (form.coefficient(axis) != 0) return false;
        }
    return !reduces && contains(kernel.group_axes, axis) && !contains(kernel.recompute_axes, axis);
}

/// The kernel's only statement with the axis, if it reduces just that one to a sum, a product or an extremum, which no
/// other number corrects.
const Statement* only_reduction(const Diagram& d, const Kernel& kernel, AxisId axis) {
    const Statement* found = nullptr;
    for (const Stage& stage : kernel.stages) {
        const auto* loop = std::get_if<Loop>(&stage);
        if (loop && loop->axis != axis) {
            // What follows stays as it is, without the axis.
            if (std::any_of(loop->body.begin(), loop->body.end(),
                            [&](const Statement& s) { return has_axis(d, s, axis); }))
                return nullptr;
            continue;
        }
        for (const Statement& s : statements_of(stage)) {
            if (!has_axis(d, s, axis) && !loop) continue;
            const bool is_plain = s.reduce && s.reduce_axes == std::vector<AxisId>{axis} &&
                                  (!s.carry || equal(s.carry, read_self(d, s.target)));
            if (found || !is_plain) return nullptr;
            found = &s;
        }
        // The merge begins with nothing, as every tile does.
        if (loop && (!found || !loop->masks.empty() || !loop->support.empty() || loop->init.size() != 1 ||
                     loop->init.front().second != identity(*found->reduce)))
            return nullptr;
    }
    return found;
}

bool can_be_tiled(const Derived& derived, std::size_t producer, std::size_t consumer, AxisId axis) {
    const Diagram& d = derived.diagram;
    const Kernel &p = derived.kernels[producer], &c = derived.kernels[consumer];
    if (!contains(p.group_axes, axis) || p.parts.any() || c.parts.any()) return false;
    for (std::size_t k = 0; k < derived.kernels.size(); ++k)
        if (k != consumer && !groups_alone(d, derived.kernels[k], axis)) return false;
    const Statement* s = only_reduction(d, c, axis);
    if (!s || !is_float(d.array(s->target).type)) return false;
    bool reads_result = false;
    for (const ArrayId read : read_arrays(s->body)) {
        reads_result = reads_result || contains(p.outputs, read);
        // What comes later than the producer is not there yet.
        for (std::size_t k = producer + 1; k < derived.kernels.size(); ++k)
            if (computes(derived.kernels[k], read)) return false;
    }
    std::vector<AxisId> axes = free_axes(s->body);
    const std::vector<AxisId>& target = d.array(s->target).axes;
    axes.insert(axes.end(), target.begin(), target.end());
    // Every group of the producer stores what it reduced, and only that.
    const auto is_grouped = [&](AxisId a) { return contains(p.group_axes, a) && (a == axis || contains(target, a)); };
    const auto is_kept = [&](AxisId a) { return a == axis || contains(target, a); };
    return reads_result && std::all_of(axes.begin(), axes.end(), is_grouped) &&
           std::all_of(p.group_axes.begin(), p.group_axes.end(), is_kept) && p.recompute_axes.empty();
}

/// Puts two axes in the place of one, everywhere in a form.
class Tiling {
public:
    Tiling(Diagram& diagram, AxisId axis, AxisId tiles, std::int64_t extent, std::int64_t tile)
        : d_(diagram), axis_(axis), tiles_(tiles), extent_(extent), tile_(tile), axes_before_(axes_of(diagram)) {
        for (Array& array : d_.arrays) array.axes = tiled(array.axes);
    }
    /// No index said more of the axis than it can.
    [[nodiscard]] bool is_done() const { return is_done_; }

    [[nodiscard]] std::vector<AxisId> tiled(std::vector<AxisId> axes) const {
        if (const auto at = std::find(axes.begin(), axes.end(), axis_); at != axes.end()) axes.insert(at, tiles_);
        return axes;
    }

    [[nodiscard]] Expr operator()(const Expr& e) {
        if (!e) return e;
        return transform(e, [&](const Expr& node) {
            if (as<AxisIndex>(node) && as<AxisIndex>(node)->axis == axis_)
                return binary(BinaryOp::add,
                              binary(BinaryOp::mul, axis_index(tiles_), constant(static_cast<double>(tile_))), node);
            if (as<AxisSize>(node) && as<AxisSize>(node)->axis == axis_) return constant(static_cast<double>(extent_));
            const auto* r = as<Read>(node);
            return r ? with_two(*r, node) : node;
        });
    }
    void operator()(Statement& s) { s.body = (*this)(s.body), s.carry = (*this)(s.carry); }
    void operator()(Kernel& kernel) {
        for (Stage& stage : kernel.stages)
            for (Statement& s : statements_of(stage)) (*this)(s);
        for (Fold& fold : kernel.folds) {
            for (FoldState& s : fold.states) s.body = (*this)(s.body), s.carry = (*this)(s.carry);
            for (auto& [array, e] : fold.finish) e = (*this)(e);
            for (FoldReference& r : fold.references) r.rate = (*this)(r.rate);
        }
        kernel.group_axes = tiled(kernel.group_axes);
    }

private:
    static std::vector<std::vector<AxisId>> axes_of(const Diagram& d) {
        std::vector<std::vector<AxisId>> out;
        for (const Array& array : d.arrays) out.push_back(array.axes);
        return out;
    }
    Expr with_two(const Read& r, const Expr& node) {
        std::vector<Index> indices;
        bool differs = false;
        for (std::size_t i = 0; i < r.indices.size(); ++i) {
            const Index& index = r.indices[i];
            const Affine* affine = index.affine();
            if (axes_before_[at(r.array)][i] == axis_) {
                // A shifted column may lie in the next tile.
                is_done_ = is_done_ && affine && affine->is_axis(axis_);
                indices.emplace_back(Affine::axis(tiles_)), indices.emplace_back(Affine::axis(axis_));
                differs = true;
            } else if (affine && affine->coefficient(axis_) != 0) {
                Affine of_both = *affine;
                of_both.add(tiles_, affine->coefficient(axis_) * tile_);
                indices.emplace_back(std::move(of_both));
                differs = true;
            } else {
                indices.push_back(index);
            }
        }
        return differs ? read(r.array, std::move(indices)) : node;
    }

    Diagram& d_;
    AxisId axis_, tiles_;
    std::int64_t extent_, tile_;
    std::vector<std::vector<AxisId>> axes_before_;
    bool is_done_ = true;
};

/// What the consumer is without its reduction: the merge of the parts, and all that stands behind it.
void merge_instead(Kernel& kernel, AxisId axis, ArrayId target, const Statement& merged, ArrayId part) {
    std::vector<Stage> stages;
    for (Stage& stage : kernel.stages) {
        std::vector<Statement>& list = statements_of(stage);
        const auto found = std::find_if(list.begin(), list.end(), [&](const Statement& s) { return s.target == target; });
        if (found == list.end())
            stages.push_back(std::move(stage));
        else if (std::holds_alternative<Loop>(stage))
            stages.emplace_back(Block{{merged}});
        else
            *found = merged, stages.push_back(std::move(stage));
    }
    kernel.stages = std::move(stages);
    std::set<ArrayId> inputs;
    for_each_statement(kernel, [&](const Statement& s) {
        for (const Expr& e : {s.body, s.carry})
            if (e)
                for (const ArrayId r : read_arrays(e))
                    if (!computes(kernel, r)) inputs.insert(r);
    });
    kernel.inputs.assign(inputs.begin(), inputs.end());
    std::erase_if(kernel.folds, [&](const Fold& fold) { return fold.axis == axis; });
    internal_check(contains(kernel.inputs, part), "tiled reduction: the merge reads no parts");
}

}  // namespace

std::vector<TiledReduction> tiled_reductions(const Derived& derived) {
    std::vector<TiledReduction> out;
    for (std::size_t c = 1; c < derived.kernels.size(); ++c)
        for (std::size_t p = 0; p < c; ++p)
            for (const AxisId axis : derived.kernels[p].group_axes)
                if (can_be_tiled(derived, p, c, axis)) out.push_back({p, c, axis, 0});
    return out;
}

std::optional<WithTiledReduction> with_tiled_reduction(const Derived& derived, const Extents& extents,
                                                       const TiledReduction& how) {
    if (how.consumer >= derived.kernels.size() || how.producer >= how.consumer || how.axis < 0 ||
        at(how.axis) >= extents.size() || how.tile < 1 || extents[how.axis] % how.tile != 0 ||
        extents[how.axis] == how.tile || !can_be_tiled(derived, how.producer, how.consumer, how.axis))
        return std::nullopt;
    WithTiledReduction out{derived, extents};
    Diagram& d = out.form.diagram;
    const std::int64_t extent = extents[how.axis];
    const AxisId tiles = add_axis(d, d.axis(how.axis).name + "_tiles", extent / how.tile, how.axis);
    d.axes[how.axis].size = Size(how.tile);
    out.extents[how.axis] = how.tile;
    out.extents.push_back(extent / how.tile);
    Tiling tile(d, how.axis, tiles, extent, how.tile);
    for (Equation& e : d.equations) {
        e.body = tile(e.body);
        if (contains(e.reduce_axes, how.axis)) e.reduce_axes.push_back(tiles);  // the last of the axes
    }
    for (Kernel& kernel : out.form.kernels) tile(kernel);
    if (!tile.is_done()) return std::nullopt;

    Kernel &producer = out.form.kernels[how.producer], &consumer = out.form.kernels[how.consumer];
    Statement reduction = *only_reduction(d, consumer, how.axis);
    const ArrayId target = reduction.target;
    std::vector<AxisId> axes = d.array(target).axes;
    axes.insert(axes.begin(), tiles);
    // What is accumulated keeps its precision on the way through memory.
    const DType type = d.array(target).type == DType::f64 ? DType::f64 : DType::f32;
    const ArrayId part = add_array(d, d.array(target).name + "_part", axes, type, ArrayRole::temporary);
    const Statement merged{target, reduction.reduce, {tiles}, read_self(d, part), nullptr, reduction.range};
    merge_instead(consumer, how.axis, target, merged, part);
    std::erase(consumer.group_axes, tiles), std::erase(consumer.group_axes, how.axis);

    reduction.target = part, reduction.carry = nullptr;
    if (producer.stages.empty() || std::holds_alternative<Loop>(producer.stages.back()))
        producer.stages.emplace_back(Block{});
    std::get<Block>(producer.stages.back()).statements.push_back(reduction);
    producer.outputs.push_back(part);
    for (const ArrayId r : read_arrays(reduction.body))
        if (!computes(producer, r) && !contains(producer.inputs, r)) producer.inputs.push_back(r);
    // A group has a tile of the axis whole.
    std::erase(producer.group_axes, how.axis);
    return out;
}

}  // namespace napkin
