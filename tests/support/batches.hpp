#pragma once
// Programs whose rows are computed in batches of several sizes.
#include <cstdint>
#include <string>
#include <vector>

#include "diagram/diagram.hpp"
#include "diagram/evaluate.hpp"
#include "diagram/sizes.hpp"

namespace napkin {

struct BatchProgram {
    const char* name;
    std::string text;
};
/// A product, a softmax, an attention, a layer norm and a row sum, whose rows are `m`; all of this type.
std::vector<BatchProgram> row_programs(const std::string& type);

/// Rows of a batch of `batch`, as numbers of rows of the largest one.
std::int64_t first_row(std::int64_t batch);
inline constexpr std::int64_t largest_batch = 200;

/// Inputs: a value of an array with rows depends on the number that the row has in the largest batch.
Values inputs_of_batch(const Diagram& diagram, const Extents& extents);

}  // namespace napkin
