#include "tile/reduction_tree.hpp"

#include <algorithm>

#include "support/ids.hpp"
#include "support/saturate.hpp"

namespace napkin {

std::int64_t ReductionTree::depth() const {
    const std::int64_t roundings_a_merge = is_corrected ? 8 : 1;
    return saturating_add(saturating_add(chain, lanes - 1 + blocks - 1),
                          saturating_mul(roundings_a_merge, saturating_add(chunks, splits - 1)));
}

std::vector<ReductionTree> reduction_trees(const TileKernel& kernel, const TileSizes& sizes, const Extents& extents) {
    std::vector<ReductionTree> trees;
    std::vector<const TileLoop*> around;
    const auto of = [&](const Compute& compute) {
        ReductionTree tree;
        const auto* carried = compute.carry ? as<Read>(compute.carry) : nullptr;
        tree.is_corrected = compute.carry && !(carried && carried->variable() == compute.variable);
        for (const AxisId axis : compute.reduce_axes) {
            std::int64_t terms = extents[axis];
            for (const TileLoop* loop : around) {
                if (loop->axis != axis) continue;
                const std::int64_t chunk = k_block_of(*loop, sizes, extents);
                std::int64_t chunks = ceil_div(terms, chunk);
                // A part adds its own K blocks, and then the parts are added.
                if (kernel.parts.cut(loop->axis)) {
                    tree.splits = extents[kernel.parts.part];
                    chunks = ceil_div(chunks, tree.splits);
                }
                tree.chunks = saturating_mul(std::max<std::int64_t>(tree.chunks, 1), chunks);
                terms = std::min(terms, chunk);
            }
            tree.chain = saturating_mul(tree.chain, terms);
        }
        return tree;
    };
    const auto walk = [&](const auto& self, const std::vector<TileStatement>& list) -> void {
        for (const TileStatement& s : list) {
            if (const auto* compute = std::get_if<Compute>(&s)) trees.push_back(of(*compute));
            if (const auto* loop = std::get_if<std::shared_ptr<const TileLoop>>(&s)) {
                around.push_back(loop->get());
                self(self, (*loop)->body);
                around.pop_back();
            }
        }
    };
    walk(walk, kernel.body);
    return trees;
}

}  // namespace napkin
