#include "tile/buffer.hpp"

#include <algorithm>

#include "diagram/box.hpp"
#include "support/result.hpp"

namespace napkin {
namespace {

/// Calls f(offset in the part, offset in the whole, length) for every segment of values that is contiguous in both.
template <class F>
void for_each_run(const Buffer& part, const Buffer& whole, F f) {
    internal_check(part.count.size() == whole.count.size(), "interpret: a variable's rank is not its array's");
    std::int64_t offset = 0;
    for (std::size_t d = 0; d < part.count.size(); ++d) {
        internal_check(
            part.origin[d] >= whole.origin[d] && part.origin[d] + part.count[d] <= whole.origin[d] + whole.count[d],
            "interpret: a transfer leaves what the level above holds");
        offset += (part.origin[d] - whole.origin[d]) * whole.stride[d];
    }
    const std::int64_t length = part.count.empty() ? 1 : part.count.back();
    std::vector<std::int64_t> outer = part.count;
    if (!outer.empty()) outer.pop_back();
    std::int64_t done = 0;
    for_each_point(outer, [&](const std::vector<std::int64_t>& point) {
        std::int64_t at = offset;
        for (std::size_t d = 0; d < point.size(); ++d) at += point[d] * whole.stride[d];
        f(done, at, length);
        done += length;
    });
}

}  // namespace

void Tile::cut(AxisId axis, std::int64_t from, std::int64_t size, std::int64_t limit) {
    begin[at(axis)] = from;
    count[at(axis)] = std::min(size, limit - from);
}

void place(Buffer& buffer, const std::vector<Index>& dims, const Tile& tile, DType type) {
    internal_check(!buffer.alive, "interpret: a variable begins to live twice");
    buffer.origin.resize(dims.size()), buffer.count.resize(dims.size()), buffer.stride.resize(dims.size());
    std::int64_t size = 1;
    for (std::size_t d = dims.size(); d-- > 0;) {
        const Interval range = range_of(dims[d], tile.begin, tile.count);
        buffer.origin[d] = range.low, buffer.count[d] = range.high - range.low + 1, buffer.stride[d] = size;
        size *= buffer.count[d];
    }
    buffer.data = Column::unset(type, static_cast<std::size_t>(size));
    buffer.collected = 0;
    buffer.alive = true;
}

bool is_placed(const Buffer& buffer, const std::vector<Index>& dims, const Tile& tile) {
    for (std::size_t d = 0; d < dims.size(); ++d) {
        const Interval range = range_of(dims[d], tile.begin, tile.count);
        if (range.low != buffer.origin[d] || range.high != buffer.origin[d] + buffer.count[d] - 1) return false;
    }
    return buffer.alive;
}

namespace {

/// Calls f with the cells of both, which are of one kind.
template <class F>
void with_cells(const Column& from, Column& to, F f) {
    internal_check(from.is_whole() == to.is_whole(), "interpret: a transfer between integers and real numbers");
    if (from.is_whole())
        f(from.wholes(), to.wholes());
    else
        f(from.reals(), to.reals());
}

}  // namespace

void load_box(const Buffer& whole, Buffer& part) {
    with_cells(whole.data, part.data, [&](const auto& source, auto& target) {
        for_each_run(part, whole, [&](std::int64_t to, std::int64_t from, std::int64_t length) {
            std::copy_n(source.begin() + from, length, target.begin() + to);
        });
    });
}

void load_cell(const Buffer& whole, std::int64_t from, Buffer& part, std::int64_t to) {
    with_cells(whole.data, part.data, [&](const auto& source, auto& target) { target[at(to)] = source[at(from)]; });
}

void load_inside(const Buffer& array, Buffer& part) {
    std::vector<std::int64_t> count(part.count.size());
    std::int64_t to = 0, at = 0;
    for (std::size_t d = 0; d < count.size(); ++d) {
        const Interval range{part.origin[d], part.origin[d] + part.count[d] - 1}, here = inside(range, array.count[d]);
        count[d] = here.size();
        if (count[d] <= 0) return;
        to += (here.low - part.origin[d]) * part.stride[d];
        at += here.low * array.stride[d];
    }
    for_each_point(count, [&](const std::vector<std::int64_t>& point) {
        std::int64_t into = to, out_of = at;
        for (std::size_t d = 0; d < point.size(); ++d)
            into += point[d] * part.stride[d], out_of += point[d] * array.stride[d];
        load_cell(array, out_of, part, into);
    });
}

void store_box(const Buffer& part, Buffer& whole) {
    with_cells(part.data, whole.data, [&](const auto& source, auto& target) {
        for_each_run(part, whole, [&](std::int64_t from, std::int64_t to, std::int64_t length) {
            std::copy_n(source.begin() + from, length, target.begin() + to);
        });
    });
    whole.collected += part.size();
}

}  // namespace napkin
