#include "tile/compute.hpp"

#include <algorithm>
#include <utility>

#include "support/result.hpp"

namespace napkin {
namespace {

std::size_t at(int id) { return static_cast<std::size_t>(id); }

std::vector<std::int64_t> counts_of(const std::vector<AxisId>& axes, const Tile& tile) {
    std::vector<std::int64_t> counts;
    for (const AxisId a : axes) counts.push_back(tile.count[at(a)]);
    return counts;
}

/// Where a read of a tile finds its element among the core's buffers.
Operand locate(const Read& r, const Tile& tile, const std::vector<Buffer>& buffers) {
    const Buffer& b = buffers[at(r.array)];
    internal_check(b.alive, "interpret: a variable is read that is not alive");
    internal_check(r.indices.size() == b.count.size(), "interpret: a read's rank is not its variable's");
    Operand operand{b.data.data(), {}};
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
    for (const Index& dim : kernel_.variables[at(compute.variable)].dims) {
        internal_check(dim.single_axis() >= 0, "interpret: a computed variable whose dimension is no axis");
        target_axes.push_back(dim.single_axis());
    }
    AxisId row = -1;
    if (!outer.empty())
        row = outer.back(), outer.pop_back();
    else if (!compute.reduce && !target_axes.empty())
        row = target_axes.back();
    // In double precision a number format only says that a value is whole, or not (diagram/evaluate.hpp, Precision::exact).
    found->second = std::make_unique<Compiled>(
        Compiled{std::move(target_axes), std::move(outer), row, Row(compute.body, row, extents_, find, false), {}});
    if (compute.carry) found->second->carry.emplace_back(compute.carry, -1, extents_, find, false);
    return *found->second;
}

void Arithmetic::run(const Compute& compute, const Tile& tile, std::vector<Buffer>& buffers) {
    Compiled& c = compiled(compute, tile, buffers);
    const Variable& v = kernel_.variables[at(compute.variable)];
    Buffer& target = buffers[at(compute.variable)];
    if (!target.alive) place(target, v.dims, tile);
    // What is computed again must cover the tile that it covered before.
    internal_check(is_placed(target, v.dims, tile), "interpret: a variable's tile changes");
    std::vector<double> result(target.data.size());  // apart from the target, whose old values may still be read
    point_ = tile.begin;
    if (compute.reduce)
        reduce_points(*compute.reduce, c, tile, result);
    else
        map_points(c, tile, result);
    // Whole numbers are what an integer array means; a state becomes one when it is complete.
    if (!is_float(v.memory_type) && !v.is_state)
        for (double& x : result) x = round_to(v.memory_type, x);
    target.data = std::move(result);
}

/// Runs the body along the row axis from the current point and calls f(first position, values, count) for every part of the row.
template <class F>
void Arithmetic::for_each_row(Compiled& c, const Tile& tile, F f) {
    const std::int64_t length = c.row_axis >= 0 ? tile.count[at(c.row_axis)] : 1;
    for (std::int64_t done = 0; done < length;) {
        const std::int64_t n = std::min(Row::max_row, length - done);
        if (c.row_axis >= 0) point_[at(c.row_axis)] = tile.begin[at(c.row_axis)] + done;
        f(done, c.body.run(point_, n), n);
        done += n;
    }
}

void Arithmetic::map_points(Compiled& c, const Tile& tile, std::vector<double>& result) {
    std::vector<AxisId> outer = c.target_axes;
    if (!outer.empty()) outer.pop_back();
    std::int64_t row = 0;
    for_each_point(counts_of(outer, tile), [&](const std::vector<std::int64_t>& offset) {
        for (std::size_t d = 0; d < outer.size(); ++d) point_[at(outer[d])] = tile.begin[at(outer[d])] + offset[d];
        for_each_row(c, tile, [&](std::int64_t first, const double* values, std::int64_t n) {
            std::copy_n(values, n, result.begin() + row + first);
        });
        row += c.target_axes.empty() ? 1 : tile.count[at(c.target_axes.back())];
    });
}

void Arithmetic::reduce_points(ReduceOp op, Compiled& c, const Tile& tile, std::vector<double>& result) {
    const std::vector<std::int64_t> reduced = counts_of(c.outer_reduce_axes, tile);
    std::size_t element = 0;
    for_each_point(counts_of(c.target_axes, tile), [&](const std::vector<std::int64_t>& offset) {
        for (std::size_t d = 0; d < offset.size(); ++d)
            point_[at(c.target_axes[d])] = tile.begin[at(c.target_axes[d])] + offset[d];
        double total = identity(op);
        for_each_point(reduced, [&](const std::vector<std::int64_t>& inner) {
            for (std::size_t d = 0; d < inner.size(); ++d)
                point_[at(c.outer_reduce_axes[d])] = tile.begin[at(c.outer_reduce_axes[d])] + inner[d];
            for_each_row(c, tile, [&](std::int64_t, const double* values, std::int64_t n) {
                if (op == ReduceOp::sum)
                    for (std::int64_t i = 0; i < n; ++i) total += values[i];
                else
                    for (std::int64_t i = 0; i < n; ++i) total = apply(op, total, values[i]);
            });
        });
        if (!c.carry.empty()) total = apply(op, *c.carry[0].run(point_, 1), total);
        result[element++] = total;
    });
}

}  // namespace napkin
