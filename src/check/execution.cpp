#include "check/execution.hpp"

#include <map>
#include <set>

#include "derive/normal_form.hpp"
#include "diagram/blocks.hpp"
#include "diagram/flat_axes.hpp"
#include "support/ids.hpp"
#include "support/ranges.hpp"
#include "support/saturate.hpp"
#include "tile/uses.hpp"

namespace napkin {

namespace {
std::int64_t terms_of(const Equation& equation, const Extents& extents) {
    std::int64_t terms = 1;
    for (const AxisId axis : equation.reduce_axes) terms = saturating_mul(terms, extents[axis]);
    return terms;
}

/// Equations that say the same share one array, whose type rounds the values of all of them.
void keep_as_merged(const Diagram& diagram, ByArray<std::optional<DType>>& kept) {
    Diagram merged = diagram;
    std::vector<DerivationStep> steps;
    unify_axes(merged, steps);
    merge_equal_equations(merged, steps);
    for (const Equation& equation : merged.equations) {
        const auto* copied = as<Read>(equation.body);
        if (copied && !equation.reduce && !kept[equation.target]) kept[equation.target] = kept[copied->array];
    }
}

/// A reduction of the program.
struct Reduction {
    std::set<AxisId> axes;
    ReductionTree tree;
    bool multiplies = false;  ///< its terms have several operands, two of which a tensor core could multiply
};

/// The roundings of an equation over the axes of `terms`. Several reductions may carry the equation out one after
/// another, each over a maximal set of its axes. For example, a contraction of many operands becomes contractions of
/// two. An axis that no reduction has is reduced with all others, by its tree in `terms`.
std::int64_t depth_over(const std::map<AxisId, ReductionTree>& terms, const std::vector<Reduction>& reductions) {
    std::map<std::set<AxisId>, std::int64_t> depth;
    for (const Reduction& reduction : reductions) {
        std::set<AxisId> part;
        for (const AxisId axis : reduction.axes)
            if (terms.contains(axis)) part.insert(axis);
        if (part.empty()) continue;
        std::int64_t& most = depth[part];
        most = std::max(most, reduction.tree.depth());
    }
    std::int64_t in_turn = 0, with_all = 1;
    std::set<AxisId> reduced;
    for (const auto& [part, unused] : depth) {
        const auto holds = [](const auto& all, const auto& some) {
            return std::includes(all.begin(), all.end(), some.begin(), some.end());
        };
        const auto is_larger = [&, &part = part](const auto& other) {
            return other.first != part && holds(other.first, part);
        };
        if (any_of(depth, is_larger)) continue;
        std::int64_t most = 0;
        for (const auto& [other, roundings] : depth)
            if (holds(part, other)) most = std::max(most, roundings);
        in_turn = saturating_add(in_turn, most);
        reduced.insert(part.begin(), part.end());
    }
    for (const auto& [axis, tree] : terms)
        if (!reduced.contains(axis)) with_all = saturating_mul(with_all, tree.depth());
    return saturating_mul(with_all, std::max<std::int64_t>(in_turn, 1));
}

/// Whether it is a sum whose terms have factors that a tensor core could multiply. Two reads of one array count, as
/// they may be different rows.
bool multiplies(ReduceOp reduce, const Expr& body) {
    std::set<const Read*> reads;
    visit(body, [&](const Expr& e) {
        if (const auto* read = as<Read>(e)) reads.insert(read);
    });
    return reduce == ReduceOp::sum && reads.size() > 1;
}

/// The coarsest rounding of factors in a reduction over one of the axes. The terms of a sum that multiplies nothing are
/// rounded where those of such a sum are: as the left factors of a product that has it as a column.
double factor_unit_over(const std::map<AxisId, ReductionTree>& terms, const std::vector<Reduction>& reductions,
                        bool multiplies) {
    double most = 0;
    for (const Reduction& reduction : reductions)
        if ((multiplies || !reduction.multiplies) &&
            any_of(terms, [&](const auto& term) { return reduction.axes.contains(term.first); }))
            most = std::max(most, reduction.tree.factor_unit);
    return most;
}

}  // namespace

Execution plain_execution(const Diagram& diagram, const Extents& extents) {
    Execution e;
    e.working = DType::f64;
    for (const Array& array : diagram.arrays) {
        if (is_float(array.type) && epsilon(array.type) > epsilon(e.working)) e.working = DType::f32;
        e.kept.push_back(array.type);
    }
    for (const Equation& equation : diagram.equations)
        e.depth.push_back(equation.reduce ? terms_of(equation, extents) : 0);
    e.factor_unit.assign(diagram.equations.size(), 0);
    return e;
}

Execution execution_of(const Diagram& diagram, const Extents& extents, const SizedProgram& program,
                       std::vector<std::vector<ReductionTree>> trees) {
    // A derivation adds axes and arrays behind those of the definition, which keep their places.
    for (const AxisId axis : diagram.axes.ids())
        internal_check(program.diagram.axes.at(axis).name == diagram.axis(axis).name,
                       "execution_of: axes of another diagram");
    for (const ArrayId array : diagram.arrays.ids())
        internal_check(program.diagram.arrays.at(array).name == diagram.array(array).name,
                       "execution_of: arrays of another diagram");
    Execution e;
    e.kept.resize(diagram.arrays.size());
    e.working = DType::f64;
    std::vector<Reduction> reductions;
    std::map<std::int64_t, std::int64_t> chunks;  // the most of a reduction over an axis of this extent
    for (std::size_t k = 0; k < program.kernels.size(); ++k) {
        const TileKernel& kernel = program.kernels[k];
        bool is_double = false;
        for (const Variable& v : kernel.variables) {
            is_double = is_double || v.memory_type == DType::f64 || program.diagram.array(v.array).type == DType::f64;
            // Loads and stores alone touch memory: what is computed has the working type.
            if (at(v.array) < e.kept.size()) e.kept[v.array] = v.memory_type;
        }
        if (!is_double) e.working = DType::f32;
        if (trees.size() == k) trees.push_back(reduction_trees(kernel, program.sizes[k], program.extents));
        std::size_t next = 0;
        for_each_statement(kernel.body, [&](const TileStatement& s) {
            const auto* compute = std::get_if<Compute>(&s);
            if (!compute) return;
            const ReductionTree& tree = trees[k].at(next++);
            if (!compute->reduce) return;
            reductions.push_back({{}, tree, multiplies(*compute->reduce, compute->body)});
            for (const AxisId axis : compute->reduce_axes) {
                reductions.back().axes.insert(axis);
                // A flat axis runs in the place of its parts.
                if (at(axis) < diagram.axes.size())
                    for (const AxisId part : parts_of_flat_axis(diagram, axis)) reductions.back().axes.insert(part);
                std::int64_t& most = chunks[program.extents[axis]];
                most = std::max(most, tree.chunks);
            }
        });
    }
    keep_as_merged(diagram, e.kept);
    for (const Equation& equation : diagram.equations) {
        std::map<AxisId, ReductionTree> terms;
        std::vector<AxisId> axes = equation.reduce_axes;
        // A sum over blocks runs over the values in a block and over the blocks.
        for (const AxisId axis : equation.reduce_axes) {
            const auto blocks = blocks_of(diagram, axis);
            const bool is_reduced = any_of(reductions, [&](const Reduction& r) { return r.axes.contains(axis); });
            if (!blocks || is_reduced) continue;
            std::erase(axes, axis);
            axes.insert(axes.end(), {blocks->inside, blocks->block});
        }
        // Another axis of its size may run in its place.
        for (const AxisId axis : axes) terms[axis] = {.chain = extents[axis], .chunks = chunks[extents[axis]]};
        std::int64_t depth = equation.reduce ? depth_over(terms, reductions) : 0;
        // Where the program has an axis in tiles, one result of each tile is merged with the others.
        for (const AxisId axis : equation.reduce_axes)
            if (program.extents[axis] < extents[axis])
                depth = saturating_add(depth, extents[axis] / program.extents[axis]);
        e.depth.push_back(depth);
        e.factor_unit.push_back(equation.reduce == ReduceOp::sum
                                    ? factor_unit_over(terms, reductions, multiplies(*equation.reduce, equation.body))
                                    : 0);
    }
    return e;
}

}  // namespace napkin
