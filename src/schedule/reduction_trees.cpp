#include "schedule/reduction_trees.hpp"

#include "schedule/fragments.hpp"
#include "schedule/stream_k.hpp"
#include "support/saturate.hpp"

namespace napkin {

std::vector<ReductionTree> reduction_trees(const ScheduledKernel& kernel) {
    std::vector<ReductionTree> trees = reduction_trees(*kernel.kernel, kernel.sizes, kernel.extents);
    const auto cut = chosen_stream_k(kernel);
    for (const Step& step : kernel.steps) {
        if (step.atom < 0) continue;
        const Atom& atom = kernel.atom(step);
        ReductionTree& tree = trees[at(step.atom)];
        if (cut && step.scope == kernel.loops[cut->loop].scope) tree.splits = 2;
        const auto terms = [&](AxisId axis) { return kernel.span(axis, step.scope).tile; };
        if (const auto product = atom.kind == AtomKind::mma ? mma_product(kernel, step) : std::nullopt) {
            if (!is_float(product->type)) continue;  // sums of integers are exact
            const double rounding = epsilon(product->type) / 2;
            if (product->a_in_registers) tree.factor_unit += rounding;
            if (kernel.is_written(product->b->variable())) tree.factor_unit += rounding;
            const double unit = bytes(product->type) == 1 ? accumulation_unit_of_8_bits : accumulation_unit_of_16_bits;
            tree.factor_unit += unit * static_cast<double>(ceil_div(total_terms(kernel, std::get<Compute>(*step.statement)),
                                                                    product->instruction->k.at(product->type)));
        } else if (atom.across) {
            const std::int64_t warps = atom.shared ? kernel.schedule.warps.value : 1;
            tree.lanes = kernel.lanes, tree.blocks = atom.vectors * warps;
            tree.chain = ceil_div(terms(atom.vector_axis), kernel.block_size(atom, atom.vector_axis) * warps);
            for (const AxisId axis : atom.reduced) tree.chain = saturating_mul(tree.chain, terms(axis));
        } else if (atom.cut_axis >= 0) {
            tree.chain = atom.cut;
            for (auto axis = atom.reduced.rbegin(); axis != atom.reduced.rend() && *axis != atom.cut_axis; ++axis)
                tree.chain = saturating_mul(tree.chain, terms(*axis));
            std::int64_t parts = ceil_div(terms(atom.cut_axis), atom.cut);
            for (auto axis = atom.reduced.begin(); axis != atom.reduced.end() && *axis != atom.cut_axis; ++axis)
                parts = saturating_mul(parts, terms(*axis));
            tree.blocks = parts;
        }
    }
    return trees;
}

}  // namespace napkin
