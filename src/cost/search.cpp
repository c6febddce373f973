#include "cost/search.hpp"

#include <cmath>
#include <limits>

#include "support/ranges.hpp"
#include "support/saturate.hpp"

namespace napkin {
namespace {

/// The smallest multiple of the divisor, or the whole axis, that cuts the axis into as many tiles as `size` does.
std::int64_t tightened(std::int64_t size, std::int64_t extent, std::int64_t divisor) {
    const std::int64_t tiles = ceil_div(extent, size), least = ceil_div(extent, tiles);
    return tiles == 1 ? extent : std::min(extent, ceil_div(least, divisor) * divisor);
}

/// Sizes worth trying along an axis, ascending: for every number of tiles the smallest size that gives it; when these
/// are more than about `most`, some at equal ratios.
std::vector<std::int64_t> candidates(std::int64_t extent, std::int64_t divisor, std::size_t most) {
    std::vector<std::int64_t> sizes{extent};
    const std::int64_t multiples = extent / divisor;
    const double bound = std::min(static_cast<double>(multiples), 2 * std::sqrt(static_cast<double>(extent)));
    if (bound > static_cast<double>(most)) {
        const double ratio = std::pow(static_cast<double>(multiples), 1.0 / static_cast<double>(most - 1));
        for (double wanted = static_cast<double>(extent) / ratio; wanted >= 1; wanted /= ratio) {
            const auto size = tightened(ceil_div(static_cast<std::int64_t>(wanted), divisor) * divisor, extent, divisor);
            if (size < sizes.back()) sizes.push_back(size);
        }
    } else {
        // The next smaller size gives more tiles; the smallest with as many is the next candidate.
        for (std::int64_t next = (extent - 1) / divisor * divisor; next >= 1; next = sizes.back() - divisor)
            sizes.push_back(std::min(next, tightened(next, extent, divisor)));
    }
    reverse(sizes);
    return sizes;
}

/// Nested choice of candidates for the first n axes, the largest that fits for the last where the objective is H; then
/// steps from the best of them, ever finer.
class Search {
public:
    Search(const SizedCost& cost, const SearchOptions& options) : cost_(cost), options_(options) {
        num_groups_ = cost.grouped().size();
        std::size_t open = 0;
        for (std::size_t i = 0; i < cost.num_sizes(); ++i) open += is_open(i) ? 1 : 0;
        constexpr std::size_t by_bisection[] = {4096, 4096, 512, 40, 12, 7}, one_by_one[] = {512, 512, 40, 12, 6, 4},
                              coarse[] = {512, 512, 24, 8, 5, 3};
        const std::size_t row = std::min<std::size_t>(open, 5);
        const std::size_t most = options.coarse ? coarse[row] : options.objective ? one_by_one[row] : by_bisection[row];
        for (std::size_t i = 0; i < cost.num_sizes(); ++i)
            choices_.push_back(is_open(i) ? candidates(cost.extent(i), divisor(i), most) : std::vector{closed_size(i)});
        // The axis with the most choices comes last: its size is found by bisection.
        for (std::size_t i = 0; i < cost.num_sizes(); ++i)
            if (i < num_groups_ || is_open(i)) order_.push_back(i);
        stable_sort(order_, [&](std::size_t a, std::size_t b) { return choices_[a].size() < choices_[b].size(); });
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
            if (!options_.objective) refine_smoothly();
        }
        best_.transfers = cost_.transfers(best_.sizes);
        best_.memory = cost_.memory(best_.sizes);
        best_.objective = objective(best_.sizes);
        return best_;
    }

private:
    [[nodiscard]] std::int64_t divisor(std::size_t i) const {
        return i < num_groups_
                   ? value_or(options_.group_divisor, cost_.grouped()[i], 1)
                   : std::min(value_or(options_.stream, cost_.streamed()[i - num_groups_], 1), cost_.extent(i));
    }
    /// The size of an axis that is not open.
    [[nodiscard]] std::int64_t closed_size(std::size_t i) const {
        if (i >= num_groups_) return divisor(i);
        const AxisId axis = cost_.grouped()[i];
        return axis == cost_.part() ? 1 : std::min(options_.fixed.at(axis), cost_.extent(i));
    }
    [[nodiscard]] bool allowed(const SizedCost::Sizes& sizes) const {
        return cost_.memory(sizes) <= options_.memory && cost_.num_groups(sizes) >= least_groups_;
    }
    [[nodiscard]] double objective(const SizedCost::Sizes& sizes) const {
        return options_.objective ? options_.objective(cost_, sizes) : cost_.transfers(sizes, !smooth_);
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
            if (end == choice.begin()) return void(sizes[i] = before);
            sizes[i] = *(end - 1);
            fill(sizes, i);
            // Tiles that span what they do not use may move more as they grow: then it is the smallest, or, where sums
            // are mixed, any.
            constexpr std::ptrdiff_t few = 16;
            if (cost_.may_grow())
                for (auto at = choice.begin(); at != (end - choice.begin() > few ? choice.begin() + 1 : end); ++at)
                    sizes[i] = *at, look_at(sizes);
        } else {
            for (auto at = choice.begin(); at != end; ++at) {
                sizes[i] = *at;
                nest(depth + 1, sizes);
            }
        }
        sizes[i] = before;
    }

    /// Improves the best sizes so far, as long as it helps. First it tries every pair of axes against each other. Then
    /// it makes one axis longer or shorter by a ratio, at the end by one divisor, and another as long as then fits.
    void refine() {
        while_it_helps([&](const SizedCost::Sizes& from) {
            for (std::size_t i = 0; i < cost_.num_sizes(); ++i) {
                if (!is_open(i)) continue;
                constexpr std::size_t most = 40;
                SizedCost::Sizes moved = from;
                for (const std::int64_t size : candidates(cost_.extent(i), divisor(i), most)) {
                    moved[i] = size;
                    for (std::size_t j = 0; j < cost_.num_sizes(); ++j)
                        if (j != i && is_open(j)) fill(moved, j);
                }
            }
        });
        constexpr double ratios[] = {1.4, 1.15, 1.05, 1.02, 1};
        for (const double ratio : ratios)
            while_it_helps([&](const SizedCost::Sizes& from) {
                for (std::size_t i = 0; i < cost_.num_sizes(); ++i)
                    for (const bool up : {false, true}) step(from, i, ratio, up);
            });
    }
    /// The same by way of the sizes that are best when ragged tiles count as parts of whole ones: H is level in steps,
    /// which hide where it falls.
    void refine_smoothly() {
        const SizedCost::Sizes sizes = best_.sizes;
        const double least = best_.objective;
        smooth_ = true;
        best_.objective = objective(sizes);
        refine();
        smooth_ = false;
        best_.objective = objective(best_.sizes);
        refine();
        if (least <= best_.objective) best_.objective = least, best_.sizes = sizes;
    }
    template <class Moves>
    void while_it_helps(Moves moves) {
        for (int round = 0; round < 32; ++round) {
            const SizedCost::Sizes from = best_.sizes;
            const double before = best_.objective;
            moves(from);
            if (!(best_.objective < before)) return;
        }
    }
    void step(const SizedCost::Sizes& from, std::size_t i, double ratio, bool up) {
        if (!is_open(i)) return;
        const std::int64_t unit = divisor(i), extent = cost_.extent(i);
        const auto scaled = static_cast<double>(from[i]) * (up ? ratio : 1 / ratio) / static_cast<double>(unit);
        const std::int64_t most = extent / unit;
        std::int64_t units = scaled < static_cast<double>(most) ? static_cast<std::int64_t>(scaled) : most;
        const std::int64_t at = up ? from[i] / unit : ceil_div(from[i], unit);
        units = up ? std::max(units, at + 1) : std::min(units, at - 1);
        if (units < 1) return;
        SizedCost::Sizes moved = from;
        moved[i] = units > extent / unit ? extent : units * unit;
        if (moved[i] == from[i]) return;
        if (allowed(moved)) look_at(moved);
        for (std::size_t j = 0; j < cost_.num_sizes(); ++j)
            if (j != i && is_open(j)) fill(moved, j);
    }
    /// Looks at the sizes with the largest of the i-th that fits beside the others.
    void fill(SizedCost::Sizes sizes, std::size_t i) {
        const std::int64_t unit = divisor(i), extent = cost_.extent(i), start = sizes[i];
        const auto fits = [&](std::int64_t units) {
            sizes[i] = units > extent / unit ? extent : units * unit;
            return allowed(sizes);
        };
        // From where it is by doubling, then by bisection.
        const std::int64_t most = ceil_div(extent, unit);
        std::int64_t low = 0, high = most + 1;
        for (std::int64_t probe = std::max<std::int64_t>(1, start / unit); low < probe && probe < high;) {
            if (fits(probe)) {
                low = probe;
                probe = probe > most / 2 ? most : probe * 2;
            } else {
                high = probe;
                probe /= 2;
            }
        }
        while (high - low > 1) {
            const std::int64_t middle = low + (high - low) / 2;
            (fits(middle) ? low : high) = middle;
        }
        if (low < 1) return;
        fits(low);
        if (!smooth_) sizes[i] = tightened(sizes[i], extent, unit);
        look_at(sizes);
    }
    [[nodiscard]] bool is_open(std::size_t i) const {
        if (i >= num_groups_) return options_.open_streams && cost_.moves_with(i);
        const AxisId axis = cost_.grouped()[i];
        return axis != cost_.part() && !options_.fixed.contains(axis);
    }

    const SizedCost& cost_;
    const SearchOptions& options_;
    std::size_t num_groups_ = 0;
    double least_groups_ = 1;
    bool smooth_ = false;
    std::vector<std::vector<std::int64_t>> choices_;
    std::vector<std::size_t> order_;
    SearchResult best_;
};

}  // namespace

std::vector<Symbol> symbols_of_sizes(const KernelCost& cost, std::size_t num_axes) {
    auto symbols = mapped<Symbol>(cost.grouped, [&](AxisId axis) { return group_symbol(axis); });
    for (const AxisId axis : cost.streamed) symbols.push_back(stream_symbol(axis));
    for (std::size_t axis = 0; axis < num_axes; ++axis) symbols.push_back(axis_symbol(AxisId::of(axis)));
    return symbols;
}

SizedCost::SizedCost(const KernelCost& cost, const Extents& extents)
    : grouped_(cost.grouped), streamed_(cost.streamed), part_(cost.part) {
    const std::vector<Symbol> symbols = symbols_of_sizes(cost, extents.size());
    for (const auto* axes : {&grouped_, &streamed_})
        for (const AxisId axis : *axes) extents_.push_back(extents[axis]);
    values_.resize(extents_.size());
    append(values_, extents);
    transfers_ = CompiledSize(cost.transfers, symbols);
    const auto is_size = [](Symbol symbol) {
        return symbol.kind == SymbolKind::group || symbol.kind == SymbolKind::stream;
    };
    for (const auto& [monomial, coefficient] : cost.transfers.terms())
        for (const auto& [symbol, exponent] : monomial)
            may_grow_ |= is_size(symbol) && (exponent > Rational(0) || coefficient < Rational(0));
    const std::vector<Symbol> used = cost.transfers.symbols();
    for (std::size_t i = 0; i < extents_.size(); ++i) moves_with_.push_back(contains(used, symbols[i]));
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

double SizedCost::transfers(const Sizes& sizes, bool ragged) const { return transfers_(values(sizes, ragged)); }

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
