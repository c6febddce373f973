// Runs kernels as tile/expand.hpp says. Every array at the core is kept at its full size in absolute coordinates and is unset
// where nothing was computed in this group (and, in a loop, in this chunk), so that a value out of reach shows.
#include "derive/evaluate_derived.hpp"

#include <cmath>
#include <map>
#include <set>

#include "derive/parts.hpp"
#include "support/ranges.hpp"
#include "support/result.hpp"

namespace napkin {
namespace {
struct Tile {
    std::vector<std::int64_t> begin, count;  ///< of every axis

    void set(AxisId axis, std::int64_t from, std::int64_t size, std::int64_t end) {
        begin[at(axis)] = from;
        count[at(axis)] = std::min(size, end - from);
    }
};

class KernelEvaluation {
public:
    KernelEvaluation(const Derived& derived, const Extents& extents, const PartitionSizes& sizes, const Kernel& kernel,
                     double split, bool single)
        : diagram_(derived.diagram), extents_(extents), sizes_(sizes), kernel_(kernel), split_(split), single_(single) {
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
        for (const ArrayId a : computed_) hidden[a] = std::move(values[a]);
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
    void forget(ArrayId a) { core_[a] = unset(a); }

    void run_groups(std::size_t depth, Tile tile) {
        if (depth == kernel_.group_axes.size()) return run_group(tile);
        const AxisId axis = kernel_.group_axes[depth];
        const std::int64_t g = axis == kernel_.parts.part ? 1 : size_or(sizes_.group, axis, extent(axis));
        for (std::int64_t from = 0; from < extent(axis); from += g) {
            tile.set(axis, from, g, extent(axis));
            run_groups(depth + 1, tile);
        }
    }

    void run_group(const Tile& tile) {
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

    void run_loop(const Loop& loop, const Tile& tile) {
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
        const std::map<ArrayId, Column> first = states(folds);
        run_part(loop, tile, cut, n, folds);
        const std::map<ArrayId, Column> second = states(folds);
        for (const auto& [state, value] : loop.init) forget(state);
        for (const Fold* fold : folds) {
            for (const FoldState& s : fold->states) merge(s, folds, first, second, tile);
            for (const auto& [result, e] : fold->finish) {
                write(result, evaluate_tile(result, tile, e), tile);
                finished_.insert(result);
            }
            ++num_merges_;
        }
    }

    /// `merged`: the folds that will be merged. What their states hold that the loop would know from its place in the whole stream is
    /// accumulated, for this part of the stream.
    void run_part(const Loop& loop, Tile tile, std::int64_t begin, std::int64_t end,
                  const std::vector<const Fold*>& merged = {}) {
        std::set<ArrayId> initialised;
        std::map<ArrayId, Statement> accumulated;
        for (const Fold* fold : merged)
            for (const FoldState& s : fold->states) {
                if (is_initialised(loop, s.state)) continue;
                const Expr own = read_self(diagram_, s.state);
                accumulated[s.state] = {s.state, s.op, s.reduce_axes, s.body, own, {}};
                accumulated[s.old] = {s.old, std::nullopt, {}, own, nullptr, {}};
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

    std::map<ArrayId, Column> states(const std::vector<const Fold*>& folds) const {
        std::map<ArrayId, Column> result;
        for (const Fold* fold : folds)
            for (const FoldState& s : fold->states) result[s.state] = core_[s.state];
        return result;
    }

    void merge(const FoldState& s, const std::vector<const Fold*>& folds, const std::map<ArrayId, Column>& first,
               const std::map<ArrayId, Column>& second, const Tile& tile) {
        const auto carried = [&](const std::map<ArrayId, Column>& part) {
            for (const Fold* fold : folds)
                for (const FoldState& other : fold->states)
                    if (other.old >= 0) core_[other.old] = part.at(other.state);
            if (s.carry) return evaluate_tile(s.state, tile, s.carry);
            Column current = std::move(core_[s.state]);
            core_[s.state] = part.at(s.state);
            std::vector<Number> result = evaluate_tile(s.state, tile, read_self(diagram_, s.state));
            core_[s.state] = std::move(current);
            return result;
        };
        std::vector<Number> merged = carried(first);
        const std::vector<Number> other = carried(second);
        for (std::size_t i = 0; i < merged.size(); ++i) merged[i] = apply(s.op, merged[i], other[i]);
        write(s.state, merged, tile);
    }

    void run_statement(const Statement& s, const Tile& tile) {
        // All of the target's points are computed before one is written: the statement reads the values from before it.
        std::vector<Number> result = evaluate_tile(s.target, tile, s.body, s.reduce, s.reduce_axes, s.carry);
        if (single_)
            for (Number& x : result)
                if (x.kind() == Kind::real) x = Number::real(round_to(DType::f32, x.as_real()));
        write(s.target, result, tile);
    }

    static std::size_t num_points(const std::vector<AxisId>& axes, const Tile& tile) {
        return product<std::size_t>(axes, [&](AxisId a) { return static_cast<std::size_t>(tile.count[at(a)]); });
    }

    /// Calls f with the point moved over the tile's box of the axes, the last axis fastest.
    template <class F>
    static void for_each(const std::vector<AxisId>& axes, std::size_t depth, const Tile& tile,
                         std::vector<std::int64_t>& point, const F& f) {
        if (depth == axes.size()) return f();
        const std::size_t a = at(axes[depth]);
        for (point[a] = tile.begin[a]; point[a] < tile.begin[a] + tile.count[a]; ++point[a])
            for_each(axes, depth + 1, tile, point, f);
    }

    /// carry ⊕ (⊕ over reduce_axes of body) at every point of the tile of `target`.
    std::vector<Number> evaluate_tile(ArrayId target, const Tile& tile, const Expr& body,
                                      std::optional<ReduceOp> reduce = {}, const std::vector<AxisId>& reduce_axes = {},
                                      const Expr& carry = nullptr) {
        const auto value = [&](const Expr& e, const std::vector<std::int64_t>& point) {
            return evaluate_at(e, kinds_, diagram_, extents_, core_, point);
        };
        std::vector<Number> result;
        std::vector<std::int64_t> point = tile.begin;
        for_each(diagram_.array(target).axes, 0, tile, point, [&] {
            if (!reduce) return result.push_back(value(body, point));
            Number total = identity(*reduce, accumulated_kind(kinds_(body), diagram_.array(target).type));
            for_each(reduce_axes, 0, tile, point, [&] { total = apply(*reduce, total, value(body, point)); });
            if (carry) total = apply(*reduce, value(carry, point), total);
            result.push_back(total);
        });
        return result;
    }

    /// Calls f(offset in the whole array) for every point of the tile of an array.
    template <class F>
    void for_each_offset(ArrayId a, const Tile& tile, const F& f) const {
        const std::vector<AxisId>& axes = diagram_.array(a).axes;
        std::vector<std::int64_t> point = tile.begin;
        for_each(axes, 0, tile, point, [&] {
            std::size_t offset = 0;
            for (const AxisId axis : axes)
                offset = offset * static_cast<std::size_t>(extent(axis)) + static_cast<std::size_t>(point[at(axis)]);
            f(offset);
        });
    }

    void write(ArrayId a, const std::vector<Number>& tile_values, const Tile& tile) {
        if (core_[a].empty()) forget(a);
        std::size_t next = 0;
        const DType type = diagram_.array(a).type;
        for_each_offset(a, tile, [&](std::size_t offset) { core_[a].set(offset, tile_values[next++].to(type)); });
    }

    void store(ArrayId a, const Tile& tile) {
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
    Kinds kinds_ = kinds_of(diagram_);
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
