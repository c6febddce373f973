#include "tile/compute.hpp"

#include <algorithm>
#include <type_traits>
#include <utility>

#include "diagram/cells.hpp"
#include "diagram/evaluate.hpp"
#include "support/result.hpp"

namespace napkin {
namespace {
std::vector<std::int64_t> counts_of(const std::vector<AxisId>& axes, const Tile& tile) {
    return mapped<std::int64_t>(axes, [&](AxisId a) { return tile.count[at(a)]; });
}

/// Where a read of a tile finds its element among the core's buffers.
Operand locate(const Read& r, const Tile& tile, const std::vector<Buffer>& buffers) {
    const Buffer& b = buffers[at(r.array)];
    internal_check(b.alive, "interpret: a variable is read that is not alive");
    internal_check(r.indices.size() == b.count.size(), "interpret: a read's rank is not its variable's");
    Operand operand = operand_of(b.data);
    for (std::size_t d = 0; d < r.indices.size(); ++d) {
        const Interval range = range_of(r.indices[d], tile.begin, tile.count);
        internal_check(range.low >= b.origin[d] && range.high < b.origin[d] + b.count[d],
                       "interpret: a read leaves its tile");
        operand.dimensions.push_back({b.origin[d], b.count[d], b.stride[d]});
    }
    return operand;
}

}  // namespace

Arithmetic::Compiled& Arithmetic::compiled(const Compute& compute, const Tile& tile, const std::vector<Buffer>& buffers) {
    const auto find = [&](const Read& r) { return locate(r, tile, buffers); };
    const auto [found, added] = compiled_.try_emplace(&compute, nullptr);
    if (!added) {
        found->second->body.relocate(find);
        for (Row& carry : found->second->carry) carry.relocate(find);
        return *found->second;
    }
    std::vector<AxisId> target_axes, outer = compute.reduce_axes;
    for (const Index& dim : kernel_.variables[compute.variable].dims) {
        internal_check(dim.single_axis() >= 0, "interpret: a computed variable whose dimension is no axis");
        target_axes.push_back(dim.single_axis());
    }
    AxisId row = -1;
    if (!outer.empty())
        row = outer.back(), outer.pop_back();
    else if (!compute.reduce && !target_axes.empty())
        row = target_axes.back();
    Kind kind = accumulated_kind(kinds_(compute.body), kernel_.variables[compute.variable].memory_type);
    if (compute.carry && kinds_(compute.carry) == Kind::real) kind = Kind::real;
    found->second = std::make_unique<Compiled>(Compiled{std::move(target_axes),
                                                        std::move(outer),
                                                        row,
                                                        kind,
                                                        Row(compute.body, kinds_, extents_, find, {row, kind, round_casts_}),
                                                        {}});
    if (compute.carry)
        found->second->carry.emplace_back(compute.carry, kinds_, extents_, find, Row::Options{-1, kind, round_casts_});
    return *found->second;
}

void Arithmetic::run(const Compute& compute, const Tile& tile, std::vector<Buffer>& buffers) {
    Compiled& c = compiled(compute, tile, buffers);
    const Variable& v = kernel_.variables[compute.variable];
    Buffer& target = buffers[at(compute.variable)];
    if (!target.alive) place(target, v.dims, tile, v.memory_type);
    // Results go into a buffer of their own. The target's old values may still be read, and a subloop computes only a
    // part of the target.
    Buffer part;
    place(part, v.dims, tile, v.memory_type);
    Column& result = part.data;
    point_ = tile.begin;
    if (c.kind == Kind::real)
        run_points<double>(compute, c, tile, result);
    else
        run_points<std::int64_t>(compute, c, tile, result);
    if (is_placed(target, v.dims, tile))
        target.data = std::move(result);
    else
        store_box(part, target);
}

template <class Cell>
void Arithmetic::run_points(const Compute& compute, Compiled& c, const Tile& tile, Column& result) {
    if (compute.reduce)
        reduce_points<Cell>(*compute.reduce, c, tile, result);
    else
        map_points<Cell>(c, tile, result);
    if (result.is_whole()) result = result.in(kernel_.variables[compute.variable].memory_type);
}

namespace {
/// Values of a row into the cells of a column.
template <class Cell>
void put(const Cell* values, std::int64_t n, Column& to, std::int64_t place) {
    const auto number = [](Cell x) {
        if constexpr (std::is_same_v<Cell, double>)
            return Number::real(x);
        else
            return Number::whole(Kind::i64, x);
    };
    for (std::int64_t i = 0; i < n; ++i) to.set(static_cast<std::size_t>(place + i), number(values[i]));
}

}  // namespace

/// Runs the body along the row axis from the current point. Calls f(first position, values, count) for every part of
/// the row.
template <class Cell, class F>
void Arithmetic::for_each_row(Compiled& c, const Tile& tile, F f) {
    const std::int64_t length = c.row_axis >= 0 ? tile.count[at(c.row_axis)] : 1;
    for (std::int64_t done = 0; done < length;) {
        const std::int64_t n = std::min(Row::max_row, length - done);
        if (c.row_axis >= 0) point_[at(c.row_axis)] = tile.begin[at(c.row_axis)] + done;
        f(done, cells_of_row<Cell>(c.body, point_, n), n);
        done += n;
    }
}

template <class Cell>
void Arithmetic::map_points(Compiled& c, const Tile& tile, Column& result) {
    std::vector<AxisId> outer = c.target_axes;
    if (!outer.empty()) outer.pop_back();
    std::int64_t row = 0;
    for_each_point(counts_of(outer, tile), [&](const std::vector<std::int64_t>& offset) {
        for (std::size_t d = 0; d < outer.size(); ++d) point_[at(outer[d])] = tile.begin[at(outer[d])] + offset[d];
        for_each_row<Cell>(c, tile, [&](std::int64_t first, const Cell* values, std::int64_t n) {
            put(values, n, result, row + first);
        });
        row += c.target_axes.empty() ? 1 : tile.count[at(c.target_axes.back())];
    });
}

template <class Cell>
void Arithmetic::reduce_points(ReduceOp op, Compiled& c, const Tile& tile, Column& result) {
    const std::vector<std::int64_t> reduced = counts_of(c.outer_reduce_axes, tile);
    const auto start = [&]() -> Cell {
        if constexpr (std::is_same_v<Cell, double>)
            return identity(op);
        else
            return integer_identity(op, c.kind);
    };
    std::int64_t element = 0;
    for_each_point(counts_of(c.target_axes, tile), [&](const std::vector<std::int64_t>& offset) {
        for (std::size_t d = 0; d < offset.size(); ++d)
            point_[at(c.target_axes[d])] = tile.begin[at(c.target_axes[d])] + offset[d];
        Cell total = start();
        for_each_point(reduced, [&](const std::vector<std::int64_t>& inner) {
            for (std::size_t d = 0; d < inner.size(); ++d)
                point_[at(c.outer_reduce_axes[d])] = tile.begin[at(c.outer_reduce_axes[d])] + inner[d];
            for_each_row<Cell>(c, tile, [&](std::int64_t, const Cell* values, std::int64_t n) {
                for (std::int64_t i = 0; i < n; ++i) total = combined(op, c.kind, total, values[i]);
            });
        });
        if (!c.carry.empty()) total = combined(op, c.kind, *cells_of_row<Cell>(c.carry[0], point_, 1), total);
        put(&total, 1, result, element++);
    });
}

}  // namespace napkin
