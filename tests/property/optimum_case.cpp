#include "property/optimum_case.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <set>

#include "diagram/symbol_names.hpp"
#include "support/least_form.hpp"
#include "support/result.hpp"
#include "tile/exact.hpp"

namespace napkin::optima {
namespace {

/// Sizes from 1 to the extent, a ratio apart.
std::vector<std::int64_t> grid(std::int64_t extent, int steps) {
    std::set<std::int64_t> sizes{extent};
    for (int i = 0;; ++i) {
        const double size = std::round(std::exp2(static_cast<double>(i) / steps));
        if (size >= static_cast<double>(extent)) break;
        sizes.insert(static_cast<std::int64_t>(size));
    }
    return {sizes.begin(), sizes.end()};
}

}  // namespace

Compilation derived(const std::string& text, const std::map<std::string, std::int64_t>& sizes, bool fuse, double memory) {
    PipelineOptions options;
    options.sizes = sizes;
    options.until = Pass::parse;
    auto made = run_pipeline(std::make_shared<const Source>(Source{"<text>", text}), options);
    if (!made) throw InternalError(made.errors().front().message);
    Compilation c = std::move(made).value();
    DeriveOptions how;
    how.fuse = fuse;
    c.extents = bind_sizes(c.diagram).value();
    c.derived = derive(c.diagram, how).value();
    if (memory > 0)
        c.derived = least_form(c.derived, [&](const Derived& derived) {
            double transfers = 0;
            for (const Kernel& kernel : derived.kernels) {
                SearchOptions search;
                search.memory = memory;
                const SizedCost sized(symbolic_cost(derived, kernel, default_grouped(kernel)), c.extents);
                const SearchResult found = search_sizes(sized, search);
                transfers += found.fits ? found.transfers : std::numeric_limits<double>::infinity();
            }
            return transfers;
        });
    return c;
}

Sized::Sized(const Compilation& c, std::size_t index, Measure measure)
    : compilation(c),
      kernel(c.derived.kernels[index]),
      cost(symbolic_cost(c.derived, kernel, default_grouped(kernel), measure)),
      sized(cost, c.extents) {}

std::optional<double> Sized::value(Symbol symbol, double memory) const {
    return symbol == memory_symbol ? memory : axis_values(compilation.extents)(symbol);
}

std::optional<double> Sized::value(const Optimum& best, const Size& size, double memory) const {
    return best.value(size, [&](Symbol symbol) { return value(symbol, memory); });
}

Counted counted(const Sized& s, const std::vector<std::int64_t>& sizes) {
    const std::size_t n = s.compilation.extents.size();
    TileSizes tiles{std::vector<std::int64_t>(n, 0), std::vector<std::int64_t>(n, 0)};
    for (std::size_t i = 0; i < sizes.size(); ++i) tiles.group[s.cost.grouped[i]] = sizes[i];
    for (const AxisId axis : s.cost.streamed) tiles.stream[axis] = 1;
    const Counts costs = exact_costs(s.compilation.derived, s.kernel, s.compilation.extents, tiles);
    return {static_cast<double>(costs.transfers()), static_cast<double>(costs.peak_memory)};
}

Best exhaustive(const Sized& s, std::int64_t memory) {
    Best best;
    best.transfers = std::numeric_limits<double>::infinity();
    std::vector<std::int64_t> sizes(s.cost.grouped.size(), 1);
    while (true) {
        const Counted at = counted(s, sizes);
        if (at.memory <= static_cast<double>(memory)) {
            best.fits = true;
            if (at.transfers < best.transfers) best.transfers = at.transfers, best.sizes = sizes;
        }
        std::size_t i = 0;
        while (i < sizes.size() && sizes[i] == s.extent(s.cost.grouped[i])) sizes[i++] = 1;
        if (i == sizes.size()) return best;
        ++sizes[i];
    }
}

Best geometric(const Sized& s, double memory, int steps) {
    Best best;
    best.transfers = std::numeric_limits<double>::infinity();
    std::vector<std::int64_t> sizes(s.cost.grouped.size(), 1);
    sizes.resize(s.sized.num_sizes(), 1);
    const std::size_t n = s.cost.grouped.size();
    const auto fits = [&] { return s.sized.memory(sizes) <= memory; };
    const std::function<void(std::size_t)> nest = [&](std::size_t i) {
        if (i + 1 >= n) {
            if (n > 0) {
                std::int64_t low = 1, high = s.extent(s.cost.grouped[i]);
                while (low < high) {
                    sizes[i] = low + (high - low + 1) / 2;
                    fits() ? low = sizes[i] : high = sizes[i] - 1;
                }
                sizes[i] = low;
            }
            if (!fits()) return;
            best.fits = true;
            const double transfers = s.sized.transfers(sizes);
            if (transfers < best.transfers) best.transfers = transfers, best.sizes = sizes;
            return;
        }
        for (const std::int64_t size : grid(s.extent(s.cost.grouped[i]), steps)) {
            sizes[i] = size;
            for (std::size_t j = i + 1; j < n; ++j) sizes[j] = 1;
            if (!fits()) break;
            nest(i + 1);
        }
    };
    nest(0);
    best.sizes.resize(n);
    return best;
}

}  // namespace napkin::optima
