#include "tile/sizes.hpp"

#include <algorithm>
#include <functional>
#include <set>

#include "diagram/box.hpp"
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
        return box_of(*as<Read>(read(id, kernel.variables[id].gathers)),
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
    for (TileKernel& kernel : program.kernels) kernel = with_numbers(std::move(kernel), extents);
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
