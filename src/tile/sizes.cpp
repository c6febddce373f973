#include "tile/sizes.hpp"

#include <algorithm>
#include <functional>
#include <set>

#include "diagram/box.hpp"
#include "diagram/guards.hpp"
#include "support/ids.hpp"
#include "support/result.hpp"

namespace napkin {
namespace {

std::vector<TileStatement> with_reads(std::vector<TileStatement> body, const std::function<Expr(const Expr&)>& of_node) {
    for (TileStatement& s : body) {
        if (auto* compute = std::get_if<Compute>(&s)) {
            compute->body = transform(compute->body, of_node);
            if (compute->carry) compute->carry = transform(compute->carry, of_node);
        }
        if (auto* loop = std::get_if<std::shared_ptr<const TileLoop>>(&s)) {
            TileLoop inner = **loop;
            inner.body = with_reads(std::move(inner.body), of_node);
            *loop = std::make_shared<const TileLoop>(std::move(inner));
        }
    }
    return body;
}

std::vector<TileStatement> with_numbers(std::vector<TileStatement> body, const Extents& extents) {
    for (TileStatement& s : body) {
        if (auto* compute = std::get_if<Compute>(&s)) {
            compute->body = with_sizes(compute->body, extents);
            if (compute->carry) compute->carry = with_sizes(compute->carry, extents);
        }
        if (auto* loop = std::get_if<std::shared_ptr<const TileLoop>>(&s)) {
            TileLoop inner = **loop;
            inner.body = with_numbers(std::move(inner.body), extents);
            for (MaskForm& form : std::exchange(inner.masks, {})) {
                form = with_sizes(std::move(form), extents);
                if (!form.is_affine())
                    inner.masks.push_back(std::move(form));
                else if (!contains(inner.support, form.affine))
                    inner.support.push_back(std::move(form.affine));
            }
            *loop = std::make_shared<const TileLoop>(std::move(inner));
        }
    }
    return body;
}

/// Leaves out of a kernel what its numbers show to be nothing. Pre: its expressions have numbers in place of sizes.
class AtNumbers {
public:
    AtNumbers(TileKernel& kernel, const Diagram& diagram, const Extents& extents)
        : kernel_(kernel), diagram_(diagram), extents_(extents) {}

    void run() {
        for (const VariableId id : kernel_.variables.ids())
            if (is_plain(id))
                for (Index& index : kernel_.variables[id].dims) index = of(index);
        kernel_.body = of(std::move(kernel_.body));
    }

private:
    /// What data choose is a box, whose coordinates stay.
    [[nodiscard]] bool is_plain(VariableId id) const { return kernel_.variables[id].gathers.empty(); }
    [[nodiscard]] bool is_fixed(AxisId axis) const { return !diagram_.axis(axis).is_any && extents_[axis] > 0; }

    std::vector<TileStatement> of(std::vector<TileStatement> body) const {
        for (TileStatement& s : body) {
            if (auto* compute = std::get_if<Compute>(&s)) {
                compute->body = of(compute->body);
                if (compute->carry) compute->carry = of(compute->carry);
            }
            if (auto* loop = std::get_if<std::shared_ptr<const TileLoop>>(&s)) {
                TileLoop inner = **loop;
                inner.body = of(std::move(inner.body));
                std::erase_if(inner.support, [&](const Affine& form) { return is_never_negative(form); });
                *loop = std::make_shared<const TileLoop>(std::move(inner));
            }
        }
        return body;
    }

    /// The index without axes of one value, which are 0, beside others.
    [[nodiscard]] Index of(const Index& index) const {
        const std::vector<AxisId> axes = index.axes();
        const auto is_single = [&](AxisId axis) { return is_fixed(axis) && extents_[axis] == 1; };
        if (axes.size() < 2 || index.is_gathered() || none_of(axes, is_single) || all_of(axes, is_single)) return index;
        return substitute(index,
                          [&](AxisId axis) { return is_single(axis) ? std::optional<Index>(Affine{}) : std::nullopt; });
    }
    /// The expression without conditions that hold for all values of their axes.
    [[nodiscard]] Expr of(const Expr& e) const {
        return transform(e, [&](const Expr& node) -> Expr {
            if (const auto* r = as<Read>(node))
                return is_plain(r->variable())
                           ? read(r->variable(), mapped<Index>(r->indices, [&](const Index& i) { return of(i); }))
                           : node;
            const Select* outside = zero_elsewhere(node);
            if (!outside) return node;
            Expr left;
            bool has_changed = false;
            for (const Expr& condition : conditions_in(outside->condition))
                if (always_holds(condition))
                    has_changed = true;
                else
                    left = both_hold(left, condition);
            return !has_changed ? node : left ? select(left, outside->a, outside->b) : outside->a;
        });
    }
    [[nodiscard]] bool always_holds(const Expr& condition) const {
        const auto forms = equivalent_mask_forms(condition, true);
        return forms && all_of(*forms, [&](const MaskForm& form) {
                   const MaskForm here = with_sizes(form, extents_);
                   return here.is_affine() && is_never_negative(here.affine) &&
                          all_of(form.sizes, [&](const auto& size) { return is_fixed(size.first); });
               });
    }
    [[nodiscard]] bool is_never_negative(const Affine& form) const {
        return all_of(form.terms, [&](const auto& term) { return is_fixed(term.first); }) &&
               range_of(form, std::vector<std::int64_t>(extents_.size(), 0), extents_).low >= 0;
    }

    TileKernel& kernel_;
    const Diagram& diagram_;
    const Extents& extents_;
};

/// The boxes of gathered variables. Limits are numbers of dimensions, the same with letters as with numbers.
class Boxes {
public:
    explicit Boxes(const TileKernel& kernel) {
        std::size_t count = past_axes;
        for (const Variable& v : kernel.variables) {
            dimensions_.emplace_back();
            for (std::size_t d = 0; d < (v.gathers.empty() ? v.dims : v.gathers).size(); ++d)
                dimensions_.back().push_back(AxisId::of(count++));
        }
    }

    [[nodiscard]] Box of(const TileKernel& kernel, VariableId id) const {
        return box_of(
            *as<Read>(read(id, kernel.variables[id].gathers)),
            [&](ArrayId read) -> const std::vector<AxisId>& { return dimensions_[at(as_variable(read))]; },
            are_walks(kernel.variables[id].gathers));
    }

private:
    /// An axis may be a limit, too. A program has fewer.
    static constexpr std::size_t past_axes = std::size_t{1} << 20U;

    std::vector<std::vector<AxisId>> dimensions_;
};

/// Indices that differ with letters may be equal with numbers, and then share a coordinate of the box.
/// Pre: `before` is the kernel with letters.
void box_again(const TileKernel& before, TileKernel& kernel) {
    const Boxes boxes(before);
    std::set<VariableId> changed;
    for (const VariableId id : kernel.variables.ids()) {
        Variable& v = kernel.variables[id];
        if (v.gathers.empty()) continue;
        const Box in_letters = boxes.of(before, id);
        Box box = boxes.of(kernel, id);
        if (box.dims == v.dims) continue;
        changed.insert(id);
        const std::vector<AxisId> limits = std::exchange(v.limits, {});
        for (const AxisId limit : box.limits) {
            const auto known = std::find(in_letters.limits.begin(), in_letters.limits.end(), limit);
            internal_check(known != in_letters.limits.end(), "sized: numbers keep an index from reading elements");
            v.limits.push_back(limits[static_cast<std::size_t>(known - in_letters.limits.begin())]);
        }
        v.dims = std::move(box.dims);
    }
    if (changed.empty()) return;
    kernel.body = with_reads(std::move(kernel.body), [&](const Expr& node) {
        const auto* r = as<Read>(node);
        return r && changed.contains(r->variable()) ? read(r->variable(), kernel.variables[r->variable()].dims) : node;
    });
}

}  // namespace

TileKernel with_numbers(TileKernel kernel, const Extents& extents) {
    const TileKernel before = kernel;
    for (Variable& v : kernel.variables)
        for (std::vector<Index>* indices : {&v.dims, &v.gathers})
            for (Index& index : *indices) index = with_sizes(index, extents);
    kernel.body = with_numbers(std::move(kernel.body), extents);
    box_again(before, kernel);
    for (StateMerge& merge : kernel.merges) merge.given = with_sizes(merge.given, extents);
    return kernel;
}

SizedProgram sized(TileProgram program, Extents extents, std::vector<TileSizes> sizes) {
    internal_check(extents.size() == program.diagram.axes.size(), "sized: the extents are those of another diagram");
    internal_check(sizes.size() == program.kernels.size(), "sized: sizes for another number of kernels");
    for (TileKernel& kernel : program.kernels) {
        kernel = with_numbers(std::move(kernel), extents);
        AtNumbers(kernel, program.diagram, extents).run();
    }
    for (TileSizes& s : sizes)
        for (std::vector<std::int64_t>* cuts : {&s.group, &s.stream, &s.sub}) {
            cuts->resize(extents.size());
            for (const AxisId a : extents.ids()) (*cuts)[a] = std::min((*cuts)[a], extents[a]);
        }
    for (std::size_t k = 0; k < sizes.size(); ++k)
        if (const StreamParts& parts = program.kernels[k].parts; parts.any()) sizes[k].group[parts.part] = 1;
    return {std::move(program), std::move(extents), std::move(sizes)};
}

std::vector<std::pair<AxisId, std::int64_t>> groups_of(const TileKernel& kernel, const TileSizes& sizes) {
    std::vector<std::pair<AxisId, std::int64_t>> groups;
    for (const AxisId axis : kernel.group_axes)
        if (const std::int64_t size = axis == kernel.parts.part ? 1 : sizes.group[axis]; size != 0)
            groups.emplace_back(axis, size);
    return groups;
}

std::int64_t k_block_of(AxisId axis, bool is_sub, const TileSizes& sizes, const Extents& extents) {
    const std::vector<std::int64_t>& cuts = is_sub ? sizes.sub : sizes.stream;
    const std::int64_t size = cuts.empty() ? 0 : cuts[at(axis)];
    return size != 0 ? size : extents[axis];
}

}  // namespace napkin
