#pragma once
// Sizes of groups and chunks by the axes' names, for tests.
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "derive/derived.hpp"
#include "support/ids.hpp"
#include "tile/expand.hpp"
#include "tile/sizes.hpp"

namespace napkin {

using NamedSizes = std::map<std::string, std::int64_t>;

/// Those of a kernel: of group axes and of loops' axes; others are left out, and sizes past an extent are the extent.
inline TileSizes tile_sizes(const Derived& derived, const Kernel& kernel, const Extents& extents,
                            const NamedSizes& group, const NamedSizes& stream) {
    TileSizes sizes{std::vector<std::int64_t>(extents.size()), std::vector<std::int64_t>(extents.size())};
    const auto set = [&](AxisId axis, const NamedSizes& named, std::vector<std::int64_t>& out) {
        const auto found = named.find(derived.diagram.axis(axis).name);
        if (found != named.end()) out[axis] = std::min(found->second, extents[axis]);
    };
    for (const AxisId axis : kernel.group_axes) set(axis, group, sizes.group);
    for (const Stage& stage : kernel.stages)
        if (const auto* loop = std::get_if<Loop>(&stage)) set(loop->axis, stream, sizes.stream);
    return sizes;
}

/// The tile program, every kernel cut by these sizes.
inline SizedProgram program_with(const Derived& derived, const Extents& extents, const NamedSizes& group,
                                 const NamedSizes& stream) {
    std::vector<TileSizes> sizes;
    for (const Kernel& kernel : derived.kernels) sizes.push_back(tile_sizes(derived, kernel, extents, group, stream));
    return sized(expand(derived), extents, std::move(sizes));
}

}  // namespace napkin
