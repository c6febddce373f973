#pragma once
// The numeric optimum: integer group sizes, multiples of their divisors, with the least of an objective (transfers, or
// time) whose tiles fit. A search over the closed form; ragged tiles count as what they are.
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "cost/compiled_size.hpp"
#include "cost/transfers.hpp"
#include "diagram/sizes.hpp"

namespace napkin {

/// The group sizes of cost.grouped, the stream sizes of cost.streamed, and the axes' sizes: the order of CompiledSize's
/// numbers.
std::vector<Symbol> symbols_of_sizes(const KernelCost& cost, std::size_t num_axes);

/// A cost with numbers for the axes; only group and stream sizes are open.
class SizedCost {
public:
    SizedCost(const KernelCost& cost, const Extents& extents);

    /// Sizes of the grouped axes, in the order of cost.grouped, then of the streamed ones.
    using Sizes = std::vector<std::int64_t>;
    /// H; N_g of ragged tiles is a whole number, or, when they count as parts of whole ones, the formula's.
    [[nodiscard]] double transfers(const Sizes& sizes, bool ragged = true) const;
    [[nodiscard]] double memory(const Sizes& sizes) const;      ///< M: the largest column
    [[nodiscard]] double num_groups(const Sizes& sizes) const;  ///< N_g, ragged ones too
    [[nodiscard]] const std::vector<AxisId>& grouped() const { return grouped_; }
    [[nodiscard]] const std::vector<AxisId>& streamed() const { return streamed_; }
    [[nodiscard]] std::int64_t extent(std::size_t i) const { return extents_[i]; }  ///< of the i-th of Sizes
    [[nodiscard]] std::size_t num_sizes() const { return extents_.size(); }
    /// The grouped axis of which every group has one value, or -1.
    [[nodiscard]] AxisId part() const { return part_; }
    [[nodiscard]] bool may_grow() const { return may_grow_; }  ///< H with some group or stream size
    /// Whether H depends on the i-th of Sizes. On a stream size it does where neighbouring chunks have values in
    /// common, as those of a window.
    [[nodiscard]] bool moves_with(std::size_t i) const { return moves_with_[i]; }

private:
    [[nodiscard]] const std::vector<double>& values(const Sizes& sizes, bool ragged) const;
    std::vector<AxisId> grouped_, streamed_;
    std::vector<std::int64_t> extents_;
    CompiledSize transfers_;
    std::vector<CompiledSize> memory_;
    AxisId part_ = -1;
    bool may_grow_ = false;
    std::vector<bool> moves_with_;
    mutable std::vector<double> values_;
};

struct SearchOptions {
    double memory = 0;                             ///< M, in what the cost counts
    std::map<AxisId, std::int64_t> group_divisor;  ///< group sizes are multiples of it, or the whole axis
    std::map<AxisId, std::int64_t> stream = {};    ///< stream sizes; 1 where there is none
    /// Stream sizes on which H depends are searched, too, in multiples of those of `stream`.
    bool open_streams = false;
    std::map<AxisId, std::int64_t> fixed;  ///< group sizes by hand
    bool coarse = false;                   ///< fewer sizes to try, for comparing kernels
    double least_groups = 1;  ///< N_g at least, so that as many nodes have work; fewer where the axes give no more
    /// What is minimised; H where it is null.
    std::function<double(const SizedCost&, const SizedCost::Sizes&)> objective = {};
};

struct SearchResult {
    bool fits = false;  ///< false: even the smallest tiles exceed M; `sizes` are these
    SizedCost::Sizes sizes;
    double transfers = 0, memory = 0, objective = 0;
};

SearchResult search_sizes(const SizedCost& cost, const SearchOptions& options);

}  // namespace napkin
