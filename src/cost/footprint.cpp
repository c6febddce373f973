#include "cost/footprint.hpp"

#include "support/ranges.hpp"
#include "tile/liveness.hpp"

namespace napkin {

Footprint footprint(const Derived& derived, const Extents& extents) {
    Footprint out;
    for (const ArrayId id : derived.diagram.arrays.ids()) {
        const Array& array = derived.diagram.array(id);
        const bool moved = any_of(derived.kernels,
                                  [&](const Kernel& k) { return contains(k.inputs, id) || contains(k.outputs, id); });
        if (array.role == ArrayRole::temporary && !moved) continue;
        const double size = static_cast<double>(count_values(derived.diagram, id, extents)) * bytes(array.type);
        out.arrays[array.name] = size;
        (array.role == ArrayRole::input    ? out.inputs
         : array.role == ArrayRole::output ? out.outputs
                                           : out.between) += size;
    }
    return out;
}

}  // namespace napkin
