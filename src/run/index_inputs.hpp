#pragma once
// Integer arrays that index others: numbers for inputs that are not given, and a look at those that are before a kernel
// reads by them.
#include <functional>
#include <vector>

#include "diagram/diagram.hpp"
#include "diagram/sizes.hpp"
#include "run/kernel.hpp"
#include "run/tensor.hpp"
#include "support/result.hpp"

namespace napkin {

/// Uniform from the least to the greatest, value i by the seed and i alone.
void fill_integers(Tensor& tensor, std::uint64_t seed, std::int64_t least, std::int64_t most);

/// Numbers of rows, 0 … `rows`: lengths, or offsets, of which the first is 0 and the last all rows.
void fill_row_numbers(Tensor& tensor, std::uint64_t seed, std::int64_t rows, bool ascend);

/// Errors: row-number-out-of-range and offsets-descend of inputs that count rows; index-out-of-range
/// (diagram/check_indices.hpp). A kernel reads nothing outside of its arrays whatever the values are; where they
/// lead outside, it would take zeros. Pre: the views have passed CpuKernel::check; where some have not, nothing is
/// looked at.
Status check_index_inputs(const Diagram& diagram, const Extents& extents, const std::vector<KernelInput>& inputs);

/// The same for the indices that the kernels of a program compute, each before the next kernel reads by them.
class ComputedIndices {
public:
    /// `deciding` are arrays_in_indices of the diagram. All three outlive this.
    ComputedIndices(const Diagram& diagram, const Extents& extents, const std::vector<ArrayId>& deciding);

    /// The next kernel wrote these arrays. `in_memory` gives an array that was given or written. Errors: those of
    /// in_memory, index-out-of-range.
    [[nodiscard]] Status after(const std::vector<ArrayId>& written,
                               const std::function<Result<KernelInput>(ArrayId)>& in_memory);

private:
    const Diagram& diagram_;
    const Extents& extents_;
    const std::vector<ArrayId>& deciding_;
    std::vector<bool> known_;  ///< by ArrayId
};

}  // namespace napkin
