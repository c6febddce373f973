#pragma once
// Products of 8-bit integers, as quantized layers have them, and inputs that reach the ends of their types.
#include <fmt/format.h>

#include <string>

#include "diagram/evaluate.hpp"
#include "diagram/sizes.hpp"

namespace napkin {

/// A product of matrices of the types, both of one, or of two such as "u8, i8". `result`: the type of Y. `value`:
/// Y[m, n], of the product {}.
inline std::string integer_product(const std::string& type, const std::string& result, const std::string& value,
                                   const std::string& sizes, const std::string& inputs = "") {
    const std::size_t comma = type.find(", ");
    return fmt::format("f(X[m, k]: {0}, W[n, k]: {5}{4}) -> Y[m, n]: {1}\n    Y[m, n] = {2}\nsizes {3}\n",
                       type.substr(0, comma), result, fmt::format(fmt::runtime(value), "(sum(k) X[m, k] * W[n, k])"),
                       sizes, inputs, comma == std::string::npos ? type : type.substr(comma + 2));
}

/// Inputs at random. Those of narrow integers go through all of their range, and every third one lies at an end of it.
inline Values inputs_of_full_range(const Diagram& diagram, const Extents& extents) {
    Values out = random_inputs(diagram, extents, 1);
    for (const ArrayId id : diagram.inputs) {
        const DTypeFacts& type = facts(diagram.array(id).type);
        if (!is_narrow_integer(diagram.array(id).type)) continue;
        std::uint64_t state = 1;
        for (std::int64_t& x : out[id].wholes()) {
            state = state * 6364136223846793005U + 1442695040888963407U;  // Knuth, MMIX
            const std::uint64_t drawn = state >> 33;
            x = drawn % 3 == 0
                    ? (drawn % 2 == 0 ? type.least : type.most)
                    : type.least +
                          static_cast<std::int64_t>(drawn / 8 % static_cast<std::uint64_t>(type.most - type.least + 1));
        }
    }
    return out;
}

/// Inputs of narrow integers at the largest of their type.
inline Values largest_inputs(const Diagram& diagram, const Extents& extents) {
    Values out = random_inputs(diagram, extents, 1);
    for (const ArrayId id : diagram.inputs)
        if (const DType type = diagram.array(id).type; is_narrow_integer(type))
            std::fill(out[id].wholes().begin(), out[id].wholes().end(), facts(type).most);
    return out;
}

}  // namespace napkin
