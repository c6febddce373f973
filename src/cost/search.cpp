#include "cost/search.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace napkin {
namespace {

std::string letter(const Diagram& diagram, const char* prefix, AxisId axis) { return prefix + diagram.axis(axis).name; }

/// Sizes worth trying along an axis, ascending: for every number of tiles the smallest size that gives it, as a multiple of the divisor;
/// thinned to about `most` with equal ratios.
std::vector<std::int64_t> candidates(std::int64_t extent, std::int64_t divisor, std::size_t most) {
    std::vector<std::int64_t> sizes;
    for (std::int64_t tiles = 1, next = 0; tiles <= extent; tiles = next) {
        std::int64_t size = (extent + tiles - 1) / tiles;
        if (size < extent) size = (size + divisor - 1) / divisor * divisor;
        size = std::min(size, extent);
        if (sizes.empty() || sizes.back() > size) sizes.push_back(size);
        // The next count of tiles that a smaller size gives.
        const std::int64_t smaller = size == extent ? (extent - 1) / divisor * divisor : size - divisor;
        if (smaller < 1) break;
        next = std::max(tiles + 1, (extent + smaller - 1) / smaller);
    }
    std::reverse(sizes.begin(), sizes.end());
    if (sizes.size() <= most) return sizes;
    std::vector<std::int64_t> kept;
    const double ratio = std::pow(static_cast<double>(sizes.back()) / static_cast<double>(sizes.front()),
                                  1.0 / static_cast<double>(most - 1));
    double wanted = static_cast<double>(sizes.front());
    for (const std::int64_t size : sizes)
        if (static_cast<double>(size) >= wanted * (1 - 1e-9)) {
            kept.push_back(size);
            while (wanted <= static_cast<double>(size)) wanted *= ratio;
        }
    if (kept.back() != sizes.back()) kept.push_back(sizes.back());
    return kept;
}

/// Nested choice of candidates for the first n axes, the largest that fits for the last where the objective is H; then steps to neighbours.
class Search {
public:
    Search(const SizedCost& cost, const SearchOptions& options) : cost_(cost), options_(options) {
        num_groups_ = cost.grouped().size();
        std::size_t open = 0;
        for (const AxisId axis : cost.grouped()) open += options.fixed.contains(axis) ? 0 : 1;
        constexpr std::size_t by_bisection[] = {1U << 20, 1U << 20, 1024, 40, 14, 7},
                              one_by_one[] = {512, 512, 40, 12, 6, 4};
        const std::size_t row = std::min<std::size_t>(open, 5);
        const std::size_t most = options.objective ? one_by_one[row] : by_bisection[row];
        for (std::size_t i = 0; i < cost.num_sizes(); ++i) {
            if (i >= num_groups_) {
                const auto stream = options.stream.find(cost.streamed()[i - num_groups_]);
                choices_.push_back({stream == options.stream.end() ? 1 : std::min(stream->second, cost.extent(i))});
                continue;
            }
            const AxisId axis = cost.grouped()[i];
            if (const auto fixed = options.fixed.find(axis); fixed != options.fixed.end()) {
                choices_.push_back({std::min(fixed->second, cost.extent(i))});
                continue;
            }
            choices_.push_back(candidates(cost.extent(i), divisor(axis), most));
        }
        // The axis with the most choices comes last: its size is found by bisection.
        for (std::size_t i = 0; i < num_groups_; ++i) order_.push_back(i);
        std::stable_sort(order_.begin(), order_.end(),
                         [&](std::size_t a, std::size_t b) { return choices_[a].size() < choices_[b].size(); });
        for (const auto& choice : choices_) best_.sizes.push_back(choice.front());
        best_.objective = std::numeric_limits<double>::infinity();
    }

    SearchResult run() {
        SizedCost::Sizes sizes = best_.sizes;
        least_groups_ = std::min(options_.least_groups, cost_.num_groups(sizes));
        best_.fits = cost_.memory(sizes) <= options_.memory;
        if (best_.fits) {
            nest(0, sizes);
            refine();
        }
        best_.transfers = cost_.transfers(best_.sizes);
        best_.memory = cost_.memory(best_.sizes);
        best_.objective = objective(best_.sizes);
        return best_;
    }

private:
    [[nodiscard]] std::int64_t divisor(AxisId axis) const {
        const auto at = options_.group_divisor.find(axis);
        return at == options_.group_divisor.end() ? 1 : at->second;
    }
    [[nodiscard]] bool allowed(const SizedCost::Sizes& sizes) const {
        return cost_.memory(sizes) <= options_.memory && cost_.num_groups(sizes) >= least_groups_;
    }
    [[nodiscard]] double objective(const SizedCost::Sizes& sizes) const {
        return options_.objective ? options_.objective(cost_, sizes) : cost_.transfers(sizes);
    }
    void look_at(const SizedCost::Sizes& sizes) {
        const double value = objective(sizes);
        if (value < best_.objective) best_.objective = value, best_.sizes = sizes;
    }

    void nest(std::size_t depth, SizedCost::Sizes& sizes) {
        if (depth == order_.size()) {
            look_at(sizes);
            return;
        }
        const std::size_t i = order_[depth];
        const auto& choice = choices_[i];
        const std::int64_t before = sizes[i];
        // Memory grows with every size, and groups become fewer: what does not fit here fits nowhere deeper.
        const auto fits = [&](std::int64_t size) {
            sizes[i] = size;
            return allowed(sizes);
        };
        const auto end = std::partition_point(choice.begin(), choice.end(), fits);
        if (depth + 1 == order_.size() && !options_.objective) {
            if (end != choice.begin()) sizes[i] = *(end - 1), look_at(sizes);
        } else {
            for (auto at = choice.begin(); at != end; ++at) {
                sizes[i] = *at;
                nest(depth + 1, sizes);
            }
        }
        sizes[i] = before;
    }

    /// Steps of one divisor in one axis, and of one up and another down, as long as they help.
    void refine() {
        for (int round = 0; round < 64; ++round) {
            const SizedCost::Sizes from = best_.sizes;
            const double before = best_.objective;
            for (std::size_t i = 0; i < num_groups_; ++i)
                for (const std::int64_t up : {-1, 1}) {
                    SizedCost::Sizes moved = from;
                    if (!step(moved, i, up)) continue;
                    try_and_fill(moved, i);
                }
            if (!(best_.objective < before)) return;
        }
    }
    void try_and_fill(SizedCost::Sizes moved, std::size_t i) {
        if (allowed(moved)) look_at(moved);
        for (std::size_t j = 0; j < num_groups_; ++j) {
            if (j == i) continue;
            SizedCost::Sizes other = moved;
            // The largest size of j that fits beside.
            std::int64_t low = 0, high = other[j] * 2;
            const std::int64_t unit = divisor(cost_.grouped()[j]);
            if (options_.fixed.contains(cost_.grouped()[j])) continue;
            low = 1, high = std::max<std::int64_t>(1, std::min(high, cost_.extent(j)) / unit);
            while (low < high) {
                const std::int64_t middle = (low + high + 1) / 2;
                other[j] = middle * unit;
                allowed(other) ? low = middle : high = middle - 1;
            }
            other[j] = std::min(low * unit, cost_.extent(j));
            if (allowed(other)) look_at(other);
        }
    }
    bool step(SizedCost::Sizes& sizes, std::size_t i, std::int64_t up) const {
        const AxisId axis = cost_.grouped()[i];
        if (options_.fixed.contains(axis)) return false;
        const std::int64_t unit = divisor(axis), extent = cost_.extent(i);
        std::int64_t size = sizes[i] == extent && up < 0 ? (extent - 1) / unit * unit : sizes[i] + up * unit;
        size = std::min(size, extent);
        if (size < 1 || size == sizes[i]) return false;
        sizes[i] = size;
        return true;
    }

    const SizedCost& cost_;
    const SearchOptions& options_;
    std::size_t num_groups_ = 0;
    double least_groups_ = 1;
    std::vector<std::vector<std::int64_t>> choices_;
    std::vector<std::size_t> order_;
    SearchResult best_;
};

}  // namespace

SizedCost::SizedCost(const Diagram& diagram, const KernelCost& cost, const Extents& extents)
    : grouped_(cost.grouped), streamed_(cost.streamed) {
    std::vector<std::string> symbols;
    const auto add = [&](const char* prefix, AxisId axis) {
        symbols.push_back(letter(diagram, prefix, axis));
        extents_.push_back(extents[static_cast<std::size_t>(axis)]);
    };
    for (const AxisId axis : grouped_) add("g_", axis);
    for (const AxisId axis : streamed_) add("s_", axis);
    values_.resize(symbols.size());
    for (std::size_t axis = 0; axis < diagram.axes.size(); ++axis) {
        symbols.push_back(diagram.axes[axis].name);
        values_.push_back(static_cast<double>(extents[axis]));
    }
    transfers_ = CompiledSize(cost.transfers, symbols);
    for (const MemoryColumn& column : cost.memory) memory_.emplace_back(column.size, symbols);
}

const std::vector<double>& SizedCost::values(const Sizes& sizes, bool ragged) const {
    for (std::size_t i = 0; i < sizes.size(); ++i) {
        const auto extent = static_cast<double>(extents_[i]), size = static_cast<double>(sizes[i]);
        // ⌈a/g⌉ tiles hold the axis in all, so that a/g in H becomes the number of tiles.
        values_[i] = ragged ? extent / std::ceil(extent / size) : size;
    }
    return values_;
}

double SizedCost::transfers(const Sizes& sizes) const { return transfers_(values(sizes, true)); }

double SizedCost::memory(const Sizes& sizes) const {
    const std::vector<double>& at = values(sizes, false);
    double largest = 0;
    for (const CompiledSize& column : memory_) largest = std::max(largest, column(at));
    return largest;
}

double SizedCost::num_groups(const Sizes& sizes) const {
    double groups = 1;
    for (std::size_t i = 0; i < grouped_.size(); ++i)
        groups *= std::ceil(static_cast<double>(extents_[i]) / static_cast<double>(sizes[i]));
    return groups;
}

SearchResult search_sizes(const SizedCost& cost, const SearchOptions& options) { return Search(cost, options).run(); }

}  // namespace napkin
