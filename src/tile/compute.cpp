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

}  // namespace

Arithmetic::Compiled Arithmetic::compile(const Compute& c) const {
    std::vector<AxisId> target_axes, outer = c.reduce_axes;
    for (const Affine& dim : kernel_.variables[at(c.variable)].dims) {
        internal_check(dim.single_axis() >= 0, "interpret: a computed variable whose dimension is no axis");
        target_axes.push_back(dim.single_axis());
    }
    AxisId strip = -1;
    if (!outer.empty())
        strip = outer.back(), outer.pop_back();
    else if (!c.reduce && !target_axes.empty())
        strip = target_axes.back();
    Compiled result{std::move(target_axes), std::move(outer), strip, StripProgram(c.body, strip, extents_), {}};
    if (c.carry) result.carry.emplace_back(c.carry, -1, extents_);
    return result;
}

Arithmetic::LeafAddresses Arithmetic::addresses(const StripProgram& program, const Tile& tile,
                                                const std::vector<Buffer>& buffers) const {
    LeafAddresses result;
    for (const Read& r : program.reads()) {
        const Buffer& b = buffers[at(r.array)];
        internal_check(b.alive, "interpret: a variable is read that is not alive");
        internal_check(r.indices.size() == b.count.size(), "interpret: a read's rank is not its variable's");
        std::int64_t offset = 0;
        std::vector<std::int64_t> stride(extents_.size(), 0);
        for (std::size_t d = 0; d < r.indices.size(); ++d) {
            const Interval range = range_of(r.indices[d], tile.begin, tile.count);
            internal_check(range.low >= b.origin[d] && range.high < b.origin[d] + b.count[d],
                           "interpret: a read leaves its tile");
            offset += (r.indices[d].constant - b.origin[d]) * b.stride[d];
            for (const auto& [axis, coefficient] : r.indices[d].terms) stride[at(axis)] += coefficient * b.stride[d];
        }
        result.data.push_back(b.data.data());
        result.offset.push_back(offset);
        result.stride.push_back(std::move(stride));
    }
    return result;
}

void Arithmetic::run(const Compute& compute, const Tile& tile, std::vector<Buffer>& buffers) {
    const auto [found, added] = compiled_.try_emplace(&compute, nullptr);
    if (added) found->second = std::make_unique<Compiled>(compile(compute));
    Compiled& c = *found->second;
    const LeafAddresses body = addresses(c.body, tile, buffers);
    const LeafAddresses carry = c.carry.empty() ? LeafAddresses{} : addresses(c.carry[0], tile, buffers);

    const Variable& v = kernel_.variables[at(compute.variable)];
    Buffer& target = buffers[at(compute.variable)];
    if (!target.alive) place(target, v.dims, tile);
    // What is computed again must cover the tile that it covered before.
    internal_check(is_placed(target, v.dims, tile), "interpret: a variable's tile changes");
    std::vector<double> result(target.data.size());  // apart from the target, whose old values may still be read
    point_ = tile.begin;
    if (compute.reduce)
        reduce_points(*compute.reduce, c, body, carry, tile, result);
    else
        map_points(c, body, tile, result);
    // Whole numbers are what an integer array means; a state becomes one when it is complete.
    if (!is_float(v.memory_type) && !v.is_state)
        for (double& x : result) x = round_to(v.memory_type, x);
    target.data = std::move(result);
}

/// The leaves' values at the current point.
void Arithmetic::point_leaves(const LeafAddresses& leaves, const std::vector<AxisId>& axes, AxisId strip) {
    leaves_.resize(leaves.data.size());
    for (std::size_t r = 0; r < leaves.data.size(); ++r) {
        std::int64_t element = leaves.offset[r];
        for (const AxisId a : axes) element += leaves.stride[r][at(a)] * point_[at(a)];
        leaves_[r] = {leaves.data[r] + element, strip >= 0 ? leaves.stride[r][at(strip)] : 0};
    }
}

/// Runs the body along the strip axis from the current point and calls f(first position, values, count) for every strip.
template <class F>
void Arithmetic::for_each_strip(Compiled& c, const LeafAddresses& body, const Tile& tile,
                                const std::vector<AxisId>& axes, F f) {
    const std::int64_t length = c.strip_axis >= 0 ? tile.count[at(c.strip_axis)] : 1;
    for (std::int64_t done = 0; done < length;) {
        const std::int64_t n = std::min(StripProgram::max_points, length - done);
        if (c.strip_axis >= 0) point_[at(c.strip_axis)] = tile.begin[at(c.strip_axis)] + done;
        point_leaves(body, axes, c.strip_axis);
        f(done, c.body.run(leaves_, point_, n), n);
        done += n;
    }
}

void Arithmetic::map_points(Compiled& c, const LeafAddresses& body, const Tile& tile, std::vector<double>& result) {
    std::vector<AxisId> outer = c.target_axes;
    if (!outer.empty()) outer.pop_back();
    std::int64_t row = 0;
    for_each_point(counts_of(outer, tile), [&](const std::vector<std::int64_t>& offset) {
        for (std::size_t d = 0; d < outer.size(); ++d) point_[at(outer[d])] = tile.begin[at(outer[d])] + offset[d];
        for_each_strip(c, body, tile, c.target_axes, [&](std::int64_t first, const double* values, std::int64_t n) {
            std::copy_n(values, n, result.begin() + row + first);
        });
        row += c.target_axes.empty() ? 1 : tile.count[at(c.target_axes.back())];
    });
}

void Arithmetic::reduce_points(ReduceOp op, Compiled& c, const LeafAddresses& body, const LeafAddresses& carry,
                               const Tile& tile, std::vector<double>& result) {
    std::vector<AxisId> axes = c.target_axes;
    axes.insert(axes.end(), c.outer_reduce_axes.begin(), c.outer_reduce_axes.end());
    if (c.strip_axis >= 0) axes.push_back(c.strip_axis);
    const std::vector<std::int64_t> reduced = counts_of(c.outer_reduce_axes, tile);
    std::size_t element = 0;
    for_each_point(counts_of(c.target_axes, tile), [&](const std::vector<std::int64_t>& offset) {
        for (std::size_t d = 0; d < offset.size(); ++d)
            point_[at(c.target_axes[d])] = tile.begin[at(c.target_axes[d])] + offset[d];
        double total = identity(op);
        for_each_point(reduced, [&](const std::vector<std::int64_t>& inner) {
            for (std::size_t d = 0; d < inner.size(); ++d)
                point_[at(c.outer_reduce_axes[d])] = tile.begin[at(c.outer_reduce_axes[d])] + inner[d];
            for_each_strip(c, body, tile, axes, [&](std::int64_t, const double* values, std::int64_t n) {
                if (op == ReduceOp::sum)
                    for (std::int64_t i = 0; i < n; ++i) total += values[i];
                else
                    for (std::int64_t i = 0; i < n; ++i) total = apply(op, total, values[i]);
            });
        });
        if (!c.carry.empty()) {
            point_leaves(carry, c.target_axes, -1);
            total = apply(op, *c.carry[0].run(leaves_, point_, 1), total);
        }
        result[element++] = total;
    });
}

}  // namespace napkin
