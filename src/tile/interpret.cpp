#include "tile/interpret.hpp"

#include <algorithm>
#include <limits>
#include <memory>
#include <unordered_map>
#include <utility>

#include "support/result.hpp"
#include "tile/strip.hpp"

namespace napkin {
namespace {

std::size_t at(AxisId id) { return static_cast<std::size_t>(id); }

/// A tile at the core. Empty data: not alive.
struct Buffer {
    std::vector<std::int64_t> origin, count, stride;
    std::vector<double> data;
    bool alive = false;
};

/// Calls f for every point of a box given by counts (all zero-based), last dimension fastest.
template <class F>
void for_each_point(const std::vector<std::int64_t>& count, F f) {
    for (const std::int64_t n : count)
        if (n <= 0) return;
    std::vector<std::int64_t> point(count.size(), 0);
    while (true) {
        f(point);
        std::size_t d = count.size();
        while (d > 0 && ++point[d - 1] == count[d - 1]) point[--d] = 0;
        if (d == 0) return;
    }
}

/// A Compute whose expressions are compiled, with the axes it runs over.
struct CompiledCompute {
    std::vector<AxisId> target_axes;
    std::vector<AxisId> outer_reduce_axes;
    AxisId strip_axis = -1;  ///< the innermost reduced axis; of a map, the innermost target axis; -1 at a scalar
    StripProgram body;
    std::vector<StripProgram> carry;  ///< none or one, evaluated at single points
};

CompiledCompute compile(const Compute& c, const Variable& target, const Extents& extents) {
    std::vector<AxisId> target_axes, outer = c.reduce_axes;
    for (const Affine& dim : target.dims) {
        internal_check(dim.single_axis() >= 0, "interpret: a computed variable whose dimension is no axis");
        target_axes.push_back(dim.single_axis());
    }
    AxisId strip = -1;
    if (!outer.empty())
        strip = outer.back(), outer.pop_back();
    else if (!c.reduce && !target_axes.empty())
        strip = target_axes.back();
    CompiledCompute result{std::move(target_axes), std::move(outer), strip, StripProgram(c.body, strip, extents), {}};
    if (c.carry) result.carry.emplace_back(c.carry, -1, extents);
    return result;
}

/// How the leaves of a strip program move when the axes move, for the current tile.
struct LeafAddresses {
    std::vector<const double*> data;
    std::vector<std::int64_t> offset;               ///< at axis coordinates 0
    std::vector<std::vector<std::int64_t>> stride;  ///< by leaf and AxisId

    void point_at(const std::vector<std::int64_t>& point, const std::vector<AxisId>& axes, AxisId strip,
                  std::vector<StripRead>& out) const {
        out.resize(data.size());
        for (std::size_t r = 0; r < data.size(); ++r) {
            std::int64_t element = offset[r];
            for (const AxisId a : axes) element += stride[r][at(a)] * point[at(a)];
            out[r] = {data[r] + element, strip >= 0 ? stride[r][at(strip)] : 0};
        }
    }
};

class KernelRun {
public:
    KernelRun(const TileProgram& program, const TileKernel& kernel, Values& memory)
        : program_(program),
          kernel_(kernel),
          memory_(memory),
          begin_(program.extents.size(), 0),
          count_(program.extents),
          buffers_(kernel.variables.size()) {}

    KernelCounts run() {
        std::vector<std::int64_t> tiles;
        for (const auto& [axis, size] : kernel_.groups) {
            internal_check(size >= 1, "interpret: a group size below 1");
            tiles.push_back((program_.extents[at(axis)] + size - 1) / size);
        }
        for_each_point(tiles, [&](const std::vector<std::int64_t>& tile) {
            for (std::size_t g = 0; g < tile.size(); ++g)
                set_tile(kernel_.groups[g].first, tile[g], kernel_.groups[g].second);
            run_list(kernel_.body);
            for (const Buffer& b : buffers_) internal_check(!b.alive, "interpret: a variable outlives its group");
            ++counts_.groups;
        });
        return counts_;
    }

private:
    void set_tile(AxisId axis, std::int64_t tile, std::int64_t size) {
        begin_[at(axis)] = tile * size;
        count_[at(axis)] = std::min(size, program_.extents[at(axis)] - begin_[at(axis)]);
    }

    const Variable& variable(VariableId v) const { return kernel_.variables[static_cast<std::size_t>(v)]; }
    Buffer& buffer(VariableId v) { return buffers_[static_cast<std::size_t>(v)]; }

    void run_list(const std::vector<TileStatement>& list) {
        for (const TileStatement& statement : list) std::visit([&](const auto& s) { run_one(s); }, statement);
    }

    void allocate(VariableId v) {
        Buffer& b = buffer(v);
        internal_check(!b.alive, "interpret: a variable begins to live twice");
        const std::vector<Affine>& dims = variable(v).dims;
        b.origin.resize(dims.size()), b.count.resize(dims.size()), b.stride.resize(dims.size());
        std::int64_t size = 1;
        for (std::size_t d = dims.size(); d-- > 0;) {
            const Interval range = range_of(dims[d], begin_, count_);
            b.origin[d] = range.low, b.count[d] = range.high - range.low + 1, b.stride[d] = size;
            size *= b.count[d];
        }
        b.data.assign(static_cast<std::size_t>(size), std::numeric_limits<double>::quiet_NaN());
        b.alive = true;
        alive_values_ += size;
        counts_.peak_values = std::max(counts_.peak_values, alive_values_);
    }

    /// What is computed again must cover the tile that it covered before.
    void check_tile(VariableId v) {
        const Buffer& b = buffer(v);
        for (std::size_t d = 0; d < b.origin.size(); ++d) {
            const Interval range = range_of(variable(v).dims[d], begin_, count_);
            internal_check(range.low == b.origin[d] && range.high == b.origin[d] + b.count[d] - 1,
                           "interpret: a variable's tile changes");
        }
    }

    /// Calls f(memory offset, buffer offset, length) for every contiguous run of the variable's tile.
    template <class F>
    void for_each_run(VariableId v, F f) {
        const Buffer& b = buffer(v);
        const Array& array = program_.diagram.array(variable(v).array);
        internal_check(b.count.size() == array.axes.size(), "interpret: a variable's rank is not its array's");
        std::vector<std::int64_t> stride(b.count.size());
        std::int64_t size = 1, offset = 0, tile_offset = 0;
        for (std::size_t d = b.count.size(); d-- > 0;) {
            const std::int64_t extent = program_.extents[at(array.axes[d])];
            internal_check(b.origin[d] >= 0 && b.origin[d] + b.count[d] <= extent,
                           "interpret: a transfer leaves its array");
            stride[d] = size;
            size *= extent;
            offset += b.origin[d] * stride[d];
        }
        const std::int64_t length = b.count.empty() ? 1 : b.count.back();
        std::vector<std::int64_t> outer = b.count;
        if (!outer.empty()) outer.pop_back();
        for_each_point(outer, [&](const std::vector<std::int64_t>& point) {
            std::int64_t from = offset;
            for (std::size_t d = 0; d < point.size(); ++d) from += point[d] * stride[d];
            f(from, tile_offset, length);
            tile_offset += length;
        });
        counts_.by_array[array.name] += static_cast<std::int64_t>(b.data.size());
    }

    std::vector<double>& memory(VariableId v) {
        const auto id = static_cast<std::size_t>(variable(v).array);
        if (memory_.size() <= id) memory_.resize(program_.diagram.arrays.size());
        return memory_[id];
    }

    void run_one(const Load& load) {
        allocate(load.variable);
        Buffer& b = buffer(load.variable);
        const std::vector<double>& from = memory(load.variable);
        internal_check(
            std::cmp_equal(from.size(), count_values(program_.diagram, variable(load.variable).array, program_.extents)),
            "interpret: an array is loaded before it is in memory");
        for_each_run(load.variable, [&](std::int64_t source, std::int64_t target, std::int64_t length) {
            std::copy_n(from.begin() + source, length, b.data.begin() + target);
        });
        counts_.transfers_loaded += static_cast<std::int64_t>(b.data.size());
    }

    void run_one(const Store& store) {
        Buffer& b = buffer(store.variable);
        internal_check(b.alive, "interpret: a variable is stored that is not alive");
        std::vector<double>& to = memory(store.variable);
        const auto size = static_cast<std::size_t>(
            count_values(program_.diagram, variable(store.variable).array, program_.extents));
        if (to.size() != size) to.assign(size, std::numeric_limits<double>::quiet_NaN());
        const bool whole = !is_float(variable(store.variable).memory_type);
        for_each_run(store.variable, [&](std::int64_t target, std::int64_t source, std::int64_t length) {
            const auto from = b.data.begin() + source;
            std::transform(from, from + length, to.begin() + target,
                           [&](double x) { return whole ? round_to(variable(store.variable).memory_type, x) : x; });
        });
        counts_.transfers_stored += static_cast<std::int64_t>(b.data.size());
    }

    void run_one(const Init& init) {
        allocate(init.variable);
        std::fill(buffer(init.variable).data.begin(), buffer(init.variable).data.end(), init.value);
    }

    void run_one(const Free& free) {
        Buffer& b = buffer(free.variable);
        internal_check(b.alive, "interpret: a variable is freed that is not alive");
        alive_values_ -= static_cast<std::int64_t>(b.data.size());
        b.alive = false;
        b.data.clear();
    }

    void run_one(const std::shared_ptr<const TileLoop>& loop) {
        internal_check(loop->chunk >= 1, "interpret: a stream size below 1");
        const std::int64_t extent = program_.extents[at(loop->axis)];
        for (std::int64_t chunk = 0; chunk * loop->chunk < extent; ++chunk) {
            set_tile(loop->axis, chunk, loop->chunk);
            const bool skipped = std::any_of(loop->support.begin(), loop->support.end(),
                                             [&](const Affine& s) { return range_of(s, begin_, count_).high < 0; });
            ++(skipped ? counts_.chunks_skipped : counts_.chunks_run);
            if (!skipped) run_list(loop->body);
        }
        set_tile(loop->axis, 0, extent);
    }

    LeafAddresses addresses(const StripProgram& program) {
        LeafAddresses result;
        for (const Read& r : program.reads()) {
            const Buffer& b = buffer(r.array);
            internal_check(b.alive, "interpret: a variable is read that is not alive");
            internal_check(r.indices.size() == b.count.size(), "interpret: a read's rank is not its variable's");
            std::int64_t offset = 0;
            std::vector<std::int64_t> stride(program_.extents.size(), 0);
            for (std::size_t d = 0; d < r.indices.size(); ++d) {
                const Interval range = range_of(r.indices[d], begin_, count_);
                internal_check(range.low >= b.origin[d] && range.high < b.origin[d] + b.count[d],
                               "interpret: a read leaves its tile");
                offset += (r.indices[d].constant - b.origin[d]) * b.stride[d];
                for (const auto& [axis, coefficient] : r.indices[d].terms)
                    stride[at(axis)] += coefficient * b.stride[d];
            }
            result.data.push_back(b.data.data());
            result.offset.push_back(offset);
            result.stride.push_back(std::move(stride));
        }
        return result;
    }

    void run_one(const Compute& compute) {
        const auto [found, added] = compiled_.try_emplace(&compute, nullptr);
        if (added)
            found->second = std::make_unique<CompiledCompute>(compile(compute, variable(compute.variable), program_.extents));
        CompiledCompute& c = *found->second;
        const LeafAddresses body = addresses(c.body);
        const LeafAddresses carry = c.carry.empty() ? LeafAddresses{} : addresses(c.carry[0]);
        if (!buffer(compute.variable).alive) allocate(compute.variable);
        check_tile(compute.variable);
        const Buffer& target = buffer(compute.variable);
        std::vector<double> result(target.data.size());  // apart from the target, whose old values may still be read

        point_ = begin_;
        if (compute.reduce)
            reduce_points(compute, c, body, carry, target, result);
        else
            map_points(c, body, target, result);
        // Whole numbers are what an integer array means; a state becomes one when it is complete.
        const Variable& v = variable(compute.variable);
        if (!is_float(v.memory_type) && !v.is_state)
            for (double& x : result) x = round_to(v.memory_type, x);
        buffer(compute.variable).data = std::move(result);
    }

    std::vector<std::int64_t> counts_of(const std::vector<AxisId>& axes) const {
        std::vector<std::int64_t> counts;
        for (const AxisId a : axes) counts.push_back(count_[at(a)]);
        return counts;
    }

    /// Runs the body along the strip axis from the current point and calls f(first position, values, count) for every strip.
    template <class F>
    void for_each_strip(CompiledCompute& c, const LeafAddresses& body, const std::vector<AxisId>& axes, F f) {
        const std::int64_t length = c.strip_axis >= 0 ? count_[at(c.strip_axis)] : 1;
        for (std::int64_t done = 0; done < length;) {
            const std::int64_t n = std::min(StripProgram::max_points, length - done);
            if (c.strip_axis >= 0) point_[at(c.strip_axis)] = begin_[at(c.strip_axis)] + done;
            body.point_at(point_, axes, c.strip_axis, leaves_);
            f(done, c.body.run(leaves_, point_, n), n);
            done += n;
        }
    }

    void map_points(CompiledCompute& c, const LeafAddresses& body, const Buffer& target, std::vector<double>& result) {
        std::vector<AxisId> outer = c.target_axes;
        if (!outer.empty()) outer.pop_back();
        std::int64_t row = 0;
        for_each_point(counts_of(outer), [&](const std::vector<std::int64_t>& offset) {
            for (std::size_t d = 0; d < outer.size(); ++d) point_[at(outer[d])] = begin_[at(outer[d])] + offset[d];
            for_each_strip(c, body, c.target_axes, [&](std::int64_t first, const double* values, std::int64_t n) {
                std::copy_n(values, n, result.begin() + row + first);
            });
            row += target.count.empty() ? 1 : target.count.back();
        });
    }

    void reduce_points(const Compute& compute, CompiledCompute& c, const LeafAddresses& body,
                       const LeafAddresses& carry, const Buffer& target, std::vector<double>& result) {
        const ReduceOp op = *compute.reduce;
        std::vector<AxisId> axes = c.target_axes;
        axes.insert(axes.end(), c.outer_reduce_axes.begin(), c.outer_reduce_axes.end());
        if (c.strip_axis >= 0) axes.push_back(c.strip_axis);
        const std::vector<std::int64_t> reduced = counts_of(c.outer_reduce_axes);
        std::size_t element = 0;
        for_each_point(target.count, [&](const std::vector<std::int64_t>& offset) {
            for (std::size_t d = 0; d < offset.size(); ++d)
                point_[at(c.target_axes[d])] = begin_[at(c.target_axes[d])] + offset[d];
            double total = identity(op);
            for_each_point(reduced, [&](const std::vector<std::int64_t>& inner) {
                for (std::size_t d = 0; d < inner.size(); ++d)
                    point_[at(c.outer_reduce_axes[d])] = begin_[at(c.outer_reduce_axes[d])] + inner[d];
                for_each_strip(c, body, axes, [&](std::int64_t, const double* values, std::int64_t n) {
                    if (op == ReduceOp::sum)
                        for (std::int64_t i = 0; i < n; ++i) total += values[i];
                    else
                        for (std::int64_t i = 0; i < n; ++i) total = apply(op, total, values[i]);
                });
            });
            if (!c.carry.empty()) {
                carry.point_at(point_, c.target_axes, -1, leaves_);
                total = apply(op, *c.carry[0].run(leaves_, point_, 1), total);
            }
            result[element++] = total;
        });
    }

    const TileProgram& program_;
    const TileKernel& kernel_;
    Values& memory_;
    std::vector<std::int64_t> begin_, count_;  ///< the current tile of every axis
    std::vector<Buffer> buffers_;
    std::int64_t alive_values_ = 0;
    KernelCounts counts_;
    std::unordered_map<const Compute*, std::unique_ptr<CompiledCompute>> compiled_;
    std::vector<std::int64_t> point_;
    std::vector<StripRead> leaves_;
};

}  // namespace

std::vector<KernelCounts> interpret(const TileProgram& program, Values& values) {
    internal_check(program.extents.size() == program.diagram.axes.size(),
                   "interpret: the extents are those of another diagram");
    values.resize(program.diagram.arrays.size());
    for (std::size_t a = 0; a < values.size(); ++a)
        if (program.diagram.arrays[a].role != ArrayRole::input) values[a].clear();
    std::vector<KernelCounts> counts;
    for (const TileKernel& kernel : program.kernels) counts.push_back(KernelRun(program, kernel, values).run());
    return counts;
}

}  // namespace napkin
