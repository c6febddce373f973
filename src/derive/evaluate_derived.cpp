// Runs kernels as tile/expand.hpp says. Every array at the core is kept at its full size in absolute coordinates. Its
// values are unset where nothing was computed in this group (and, in a loop, in this chunk), so that a value out of
// reach shows.
#include "derive/evaluate_derived.hpp"

#include <cmath>
#include <map>
#include <set>
#include <utility>

#include "derive/evaluate_tile.hpp"
#include "derive/parts.hpp"
#include "support/ranges.hpp"
#include "support/result.hpp"

namespace napkin {
namespace {
class KernelEvaluation {
public:
    KernelEvaluation(const Derived& derived, const Extents& extents, const PartitionSizes& sizes, const Kernel& kernel,
                     double split, bool single)
        : diagram_(derived.diagram),
          extents_(extents),
          sizes_(sizes),
          kernel_(kernel),
          split_(split),
          single_(single),
          tiles_(derived.diagram, extents) {
        for (const Stage& stage : kernel.stages) {
            if (const auto* block = std::get_if<Block>(&stage)) {
                for (const Statement& s : block->statements) computed_.insert(s.target);
            } else {
                for (const auto& [state, value] : std::get<Loop>(stage).init) computed_.insert(state);
                for (const Statement& s : std::get<Loop>(stage).body) computed_.insert(s.target);
            }
        }
        for (const Fold& fold : kernel.folds) {
            for (const FoldState& s : fold.states)
                if (s.old >= 0) computed_.insert(s.old);
            for (const auto& [result, e] : fold.finish) computed_.insert(result);
        }
    }

    std::int64_t run(Values& values) {
        // The core sees memory, except for what the kernel computes itself.
        std::map<ArrayId, Column> hidden;
        for (const ArrayId a : computed_) hidden[a] = std::exchange(values[a], unset(a));
        core_ = std::move(values);
        for (const ArrayId a : kernel_.outputs) stored_[a] = unset(a);
        run_groups(0, {std::vector<std::int64_t>(extents_.size(), 0), extents_});
        values = std::move(core_);
        for (auto& [a, data] : hidden) values[a] = std::move(data);
        for (auto& [a, data] : stored_) values[a] = std::move(data);
        return num_merges_;
    }

private:
    [[nodiscard]] std::size_t size_of(ArrayId a) const {
        return static_cast<std::size_t>(count_values(diagram_, a, extents_));
    }
    [[nodiscard]] std::int64_t extent(AxisId a) const { return extents_[a]; }

    static std::int64_t size_or(const std::vector<std::int64_t>& sizes, AxisId axis, std::int64_t otherwise) {
        return at(axis) < sizes.size() && sizes[at(axis)] > 0 ? sizes[at(axis)] : otherwise;
    }

    [[nodiscard]] Column unset(ArrayId a) const { return Column::unset(diagram_.array(a).type, size_of(a)); }
    void forget(ArrayId a) {
        std::vector<std::size_t>& written = written_[a];
        if (written.empty()) return;
        const Number nothing = Column::unset(diagram_.array(a).type, 1).at(0);
        for (const std::size_t offset : written) core_[a].set(offset, nothing);
        written.clear();
    }

    void run_groups(std::size_t depth, CoreTile tile) {
        if (depth == kernel_.group_axes.size()) return run_group(tile);
        const AxisId axis = kernel_.group_axes[depth];
        const std::int64_t g = axis == kernel_.parts.part ? 1 : size_or(sizes_.group, axis, extent(axis));
        for (std::int64_t from = 0; from < extent(axis); from += g) {
            tile.set(axis, from, g, extent(axis));
            run_groups(depth + 1, tile);
        }
    }

    void run_group(const CoreTile& tile) {
        for (const ArrayId a : computed_) forget(a);
        finished_.clear();
        for (const Stage& stage : kernel_.stages) {
            if (const auto* block = std::get_if<Block>(&stage)) {
                for (const Statement& s : block->statements) {
                    if (!finished_.contains(s.target)) run_statement(s, tile);
                    store(s.target, tile);
                }
            } else {
                const Loop& loop = std::get<Loop>(stage);
                run_loop(loop, tile);
                for (const auto& [state, value] : loop.init) store(state, tile);
            }
        }
    }

    void run_loop(const Loop& loop, const CoreTile& tile) {
        const std::vector<const Fold*> folds = folds_of(kernel_, loop);
        const std::int64_t n = extent(loop.axis);
        if (const StreamParts& parts = kernel_.parts; parts.cut(loop.axis)) {
            const std::int64_t first = tile.begin[at(parts.part)];
            const Stretch here = stretch_of_parts(first, first + tile.count[at(parts.part)], extent(parts.part), n,
                                                  size_or(sizes_.stream, loop.axis, n));
            return run_part(loop, tile, here.begin, here.end);
        }
        if (split_ <= 0 || folds.empty() || n < 2) return run_part(loop, tile, 0, n);

        const std::int64_t cut = std::clamp<std::int64_t>(std::llround(split_ * static_cast<double>(n)), 1, n - 1);
        run_part(loop, tile, 0, cut, folds);
        const StateValues first = states(folds, tile);
        run_part(loop, tile, cut, n, folds);
        const StateValues second = states(folds, tile);
        for (const auto& [state, value] : loop.init) forget(state);
        for (const Fold* fold : folds) {
            for (const FoldState& s : fold->states) merge(s, folds, first, second, tile);
            for (const auto& [result, e] : fold->finish) {
                write(result, tiles_.evaluate(core_, result, tile, {e, {}, {}, {}}), tile);
                finished_.insert(result);
            }
            ++num_merges_;
        }
    }

    /// `merged`: the folds that will be merged. What their states hold that the loop would know from its place in the
    /// whole stream is accumulated, for this part of the stream.
    void run_part(const Loop& loop, CoreTile tile, std::int64_t begin, std::int64_t end,
                  const std::vector<const Fold*>& merged = {}) {
        std::set<ArrayId> initialised;
        const auto& accumulated = accumulated_of(loop, merged);
        for (const Fold* fold : merged)
            for (const FoldState& s : fold->states) {
                if (!accumulated.contains(s.state)) continue;
                write(s.state,
                      std::vector<Number>(num_points(diagram_.array(s.state).axes, tile), Number::real(s.init)), tile);
                initialised.insert(s.state);
            }
        for (const auto& [state, value] : loop.init) {
            write(state, std::vector<Number>(num_points(diagram_.array(state).axes, tile), Number::real(value)), tile);
            initialised.insert(state);
        }
        const std::int64_t s = size_or(sizes_.stream, loop.axis, extent(loop.axis));
        for (std::int64_t from = begin; from < end; from += s) {
            tile.set(loop.axis, from, s, end);
            const auto is_empty = [&](const Affine& form) { return range_of(form, tile.begin, tile.count).high < 0; };
            if (any_of(loop.support, is_empty)) continue;
            for (const Statement& statement : loop.body)
                if (!initialised.contains(statement.target)) forget(statement.target);
            for (const Statement& statement : loop.body) {
                const auto other = accumulated.find(statement.target);
                run_statement(other == accumulated.end() ? statement : other->second, tile);
                const std::vector<AxisId>& axes = diagram_.array(statement.target).axes;
                if (contains(axes, loop.axis)) store(statement.target, tile);
            }
        }
    }

    static bool is_initialised(const Loop& loop, ArrayId id) {
        return any_of(loop.init, [&](const auto& state) { return state.first == id; });
    }

    /// The statements that stand in place of the loop's own where the folds' states are to be merged. They are those of
    /// states that the loop does not initialise, and of their values before the step.
    const std::map<ArrayId, Statement>& accumulated_of(const Loop& loop, const std::vector<const Fold*>& merged) {
        const auto [found, is_new] = accumulated_.try_emplace({&loop, !merged.empty()});
        if (!is_new) return found->second;
        for (const Fold* fold : merged)
            for (const FoldState& s : fold->states) {
                if (is_initialised(loop, s.state)) continue;
                const Expr own = read_self(diagram_, s.state);
                found->second[s.state] = {s.state, s.op, s.reduce_axes, s.body, own, {}};
                found->second[s.old] = {s.old, std::nullopt, {}, own, nullptr, {}};
            }
        return found->second;
    }

    using StateValues = std::map<ArrayId, std::vector<Number>>;
    [[nodiscard]] StateValues states(const std::vector<const Fold*>& folds, const CoreTile& tile) const {
        StateValues result;
        for (const Fold* fold : folds)
            for (const FoldState& s : fold->states)
                for_each_offset(s.state, tile,
                                [&](std::size_t offset) { result[s.state].push_back(core_[s.state].at(offset)); });
        return result;
    }

    void merge(const FoldState& s, const std::vector<const Fold*>& folds, const StateValues& first,
               const StateValues& second, const CoreTile& tile) {
        const auto carried = [&](const StateValues& part) {
            if (!s.carry) return part.at(s.state);
            for (const Fold* fold : folds)
                for (const FoldState& other : fold->states)
                    if (other.old >= 0) forget(other.old), write(other.old, part.at(other.state), tile);
            return tiles_.evaluate(core_, s.state, tile, {s.carry, {}, {}, {}});
        };
        std::vector<Number> merged = carried(first);
        const std::vector<Number> other = carried(second);
        for (std::size_t i = 0; i < merged.size(); ++i) merged[i] = apply(s.op, merged[i], other[i]);
        write(s.state, merged, tile);
    }

    void run_statement(const Statement& s, const CoreTile& tile) {
        // All of the target's points are computed before one is written: the statement reads the values from before it.
        std::vector<Number> result = tiles_.evaluate(core_, s.target, tile, {s.body, s.reduce, s.reduce_axes, s.carry});
        if (single_)
            for (Number& x : result)
                if (x.kind() == Kind::real) x = Number::real(round_to(DType::f32, x.as_real()));
        write(s.target, result, tile);
    }

    static std::size_t num_points(const std::vector<AxisId>& axes, const CoreTile& tile) {
        return product<std::size_t>(axes, [&](AxisId a) { return static_cast<std::size_t>(tile.count[at(a)]); });
    }

    /// Calls f(offset in the whole array) for every point of the tile of an array.
    template <class F>
    void for_each_offset(ArrayId a, const CoreTile& tile, const F& f) const {
        const std::vector<AxisId>& axes = diagram_.array(a).axes;
        std::vector<std::int64_t> point = tile.begin;
        for_each_point_of(axes, tile, point, [&] {
            std::size_t offset = 0;
            for (const AxisId axis : axes)
                offset = offset * static_cast<std::size_t>(extent(axis)) + static_cast<std::size_t>(point[at(axis)]);
            f(offset);
        });
    }

    void write(ArrayId a, const std::vector<Number>& tile_values, const CoreTile& tile) {
        std::size_t next = 0;
        const DType type = diagram_.array(a).type;
        Column& cells = core_[a];
        std::vector<std::size_t>& written = written_[a];
        for_each_offset(a, tile, [&](std::size_t offset) {
            cells.set(offset, tile_values[next++].to(type));
            written.push_back(offset);
        });
    }

    void store(ArrayId a, const CoreTile& tile) {
        const auto to = stored_.find(a);
        if (to == stored_.end()) return;
        for_each_offset(a, tile, [&](std::size_t offset) { to->second.set(offset, core_[a].at(offset)); });
    }

    const Diagram& diagram_;
    const Extents& extents_;
    const PartitionSizes& sizes_;
    const Kernel& kernel_;
    double split_;  ///< where streams are cut; 0: nowhere
    bool single_;   ///< statements round to single precision
    std::set<ArrayId> computed_, finished_;
    Values core_;
    TileEvaluator tiles_;
    std::map<ArrayId, std::vector<std::size_t>> written_;  ///< the cells of a computed array that are set
    /// of loops that are merged and that are not
    std::map<std::pair<const Loop*, bool>, std::map<ArrayId, Statement>> accumulated_;
    std::map<ArrayId, Column> stored_;
    std::int64_t num_merges_ = 0;
};

std::int64_t evaluate_kernels(const Derived& derived, const Extents& extents, const PartitionSizes& sizes, double split,
                              bool single, Values& values) {
    internal_check(extents.size() == derived.diagram.axes.size(), "evaluate: the extents are those of another diagram");
    values.resize(derived.diagram.arrays.size());
    for (const ArrayId a : values.ids())
        if (derived.diagram.arrays[a].role != ArrayRole::input)
            values[a].clear();
        else
            values[a] = values[a].in(derived.diagram.arrays[a].type);
    return sum<std::int64_t>(derived.kernels, [&](const Kernel& kernel) {
        return KernelEvaluation(derived, extents, sizes, kernel, split, single).run(values);
    });
}

}  // namespace

void evaluate(const Derived& derived, const Extents& extents, const PartitionSizes& sizes, Values& values) {
    evaluate_kernels(derived, extents, sizes, 0, false, values);
}

std::int64_t evaluate_by_merge(const Derived& derived, const Extents& extents, const PartitionSizes& sizes,
                               double split, Values& values) {
    return evaluate_kernels(derived, extents, sizes, split, false, values);
}

void evaluate_in_single_precision(const Derived& derived, const Extents& extents, const PartitionSizes& sizes,
                                  Values& values) {
    evaluate_kernels(derived, extents, sizes, 0, true, values);
}

}  // namespace napkin
