#include "tile/count.hpp"

#include <algorithm>

#include "support/result.hpp"

namespace napkin {

namespace {
class Counter {
public:
    Counter(const SizedProgram& program, std::size_t k, std::int64_t& statements_left)
        : program_(program),
          kernel_(program.kernels[k]),
          sizes_(program.sizes[k]),
          groups_(groups_of(kernel_, sizes_)),
          left_(statements_left),
          begin_(program.extents.size(), 0),
          count_(program.extents),
          tile_(kernel_.variables.size(), 0),
          moved_(kernel_.variables.size(), 0) {}

    std::optional<KernelCounts> run() {
        group(0);
        if (left_ < 0) return std::nullopt;
        for (std::size_t v = 0; v < moved_.size(); ++v) {
            if (moved_[v] > 0) counts_.by_array[program_.diagram.array(kernel_.variables[v].array).name] += moved_[v];
        }
        return counts_;
    }

private:
    void set_tile(AxisId axis, std::int64_t tile, std::int64_t size) {
        begin_[at(axis)] = tile * size;
        count_[at(axis)] = std::min(size, program_.extents[at(axis)] - begin_[at(axis)]);
    }

    void group(std::size_t depth) {
        if (depth == groups_.size()) {
            run_list(kernel_.body);
            ++counts_.groups;
            return;
        }
        const auto& [axis, size] = groups_[depth];
        for (std::int64_t tile = 0; tile * size < program_.extents[at(axis)] && left_ >= 0; ++tile) {
            set_tile(axis, tile, size);
            group(depth + 1);
        }
    }

    void run_list(const std::vector<TileStatement>& list) {
        for (const TileStatement& statement : list) {
            if (--left_ < 0) return;
            std::visit([&](const auto& s) { run_one(s); }, statement);
        }
    }

    void allocate(VariableId v) {
        std::int64_t size = 1;
        for (const Index& dim : kernel_.variables[at(v)].dims) {
            const Interval range = range_of(dim, begin_, count_);
            size *= range.high - range.low + 1;
        }
        tile_[at(v)] = size;
        alive_ += size;
        counts_.peak_values = std::max(counts_.peak_values, alive_);
    }

    void run_one(const Load& load) {
        allocate(load.variable);
        const Variable& v = kernel_.variables[at(load.variable)];
        const std::int64_t values = values_inside(v.dims, v.limits, program_.extents, begin_, count_);
        counts_.transfers_loaded += values;
        moved_[at(load.variable)] += values;
    }
    void run_one(const Store& store) {
        counts_.transfers_stored += tile_[at(store.variable)];
        moved_[at(store.variable)] += tile_[at(store.variable)];
    }
    void run_one(const Init& init) { allocate(init.variable); }
    void run_one(const Compute& compute) {
        if (tile_[at(compute.variable)] == 0) allocate(compute.variable);
    }
    void run_one(const Free& free) {
        alive_ -= tile_[at(free.variable)];
        tile_[at(free.variable)] = 0;
    }
    void run_one(const std::shared_ptr<const TileLoop>& loop) {
        const std::int64_t extent = program_.extents[at(loop->axis)], size = chunk_of(*loop, sizes_, program_.extents);
        for (std::int64_t chunk = 0; chunk * size < extent && left_ >= 0; ++chunk) {
            set_tile(loop->axis, chunk, size);
            const bool skipped = std::any_of(loop->support.begin(), loop->support.end(),
                                             [&](const Affine& s) { return range_of(s, begin_, count_).high < 0; });
            ++(skipped ? counts_.chunks_skipped : counts_.chunks_run);
            if (!skipped) run_list(loop->body);
        }
        set_tile(loop->axis, 0, extent);
    }

    const SizedProgram& program_;
    const TileKernel& kernel_;
    const TileSizes& sizes_;
    const std::vector<std::pair<AxisId, std::int64_t>> groups_;
    std::int64_t& left_;                       ///< statements that may still be walked
    std::vector<std::int64_t> begin_, count_;  ///< the current tile of every axis
    std::vector<std::int64_t> tile_;           ///< values of each living variable, 0 when it is not alive
    std::vector<std::int64_t> moved_;          ///< values loaded and stored, by variable
    std::int64_t alive_ = 0;
    KernelCounts counts_;
};

}  // namespace

std::optional<std::vector<KernelCounts>> count(const SizedProgram& program, std::int64_t max_statements) {
    std::vector<KernelCounts> counts;
    for (std::size_t k = 0; k < program.kernels.size(); ++k) {
        auto counted = Counter(program, k, max_statements).run();
        if (!counted) return std::nullopt;
        counts.push_back(std::move(*counted));
    }
    return counts;
}

}  // namespace napkin
