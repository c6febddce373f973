#include "tile/sizes.hpp"

#include <algorithm>

#include "support/ids.hpp"
#include "support/result.hpp"

namespace napkin {
namespace {

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

}  // namespace

TileKernel with_numbers(TileKernel kernel, const Extents& extents) {
    for (Variable& v : kernel.variables)
        for (std::vector<Index>* indices : {&v.dims, &v.gathers})
            for (Index& index : *indices) index = with_sizes(index, extents);
    kernel.body = with_numbers(std::move(kernel.body), extents);
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

std::int64_t chunk_of(AxisId axis, bool is_sub, const TileSizes& sizes, const Extents& extents) {
    const std::vector<std::int64_t>& cuts = is_sub ? sizes.sub : sizes.stream;
    const std::int64_t size = cuts.empty() ? 0 : cuts[at(axis)];
    return size != 0 ? size : extents[axis];
}

}  // namespace napkin
