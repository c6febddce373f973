#include "support/batches.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "run/tensor.hpp"
#include "support/ids.hpp"
#include "support/ranges.hpp"

namespace napkin {

std::vector<BatchProgram> row_programs(const std::string& type) {
    const auto typed = [&](const std::string& text) { return fmt::format(fmt::runtime(text), type); };
    return {
        {"product", typed("f(A[m, k]: {0}, B[k, n]: {0}) -> C[m, n]: {0}\n    C[m, n] = sum(k) A[m, k] * B[k, n]\n"
                          "sizes m = 200, n = 72, k = 1000\n")},
        {"softmax",
         typed("f(X[m, x]: {0}) -> Y[m, x]: {0}\n    Y[m, x] = softmax(x) X[m, x]\nsizes m = 200, x = 1111\n")},
        {"attention", typed("f(Q[m, k]: {0}, K[x, k]: {0}, V[x, d]: {0}) -> O[m, d]: {0}\n"
                            "    S[m, x] = sum(k) Q[m, k] * K[x, k]\n    P[m, x] = softmax(x) S[m, x] * k^-0.5\n"
                            "    O[m, d] = sum(x) P[m, x] * V[x, d]\nsizes m = 200, x = 777, k = d = 64\n")},
        {"norm", typed("f(X[m, c]: {0}, G[c]: {0}) -> Y[m, c]: {0}\n    A[m] = sum(c) X[m, c] * size(c)^-1\n"
                       "    D[m] = sum(c) (X[m, c] - A[m])^2 * size(c)^-1\n"
                       "    Y[m, c] = (X[m, c] - A[m]) * (D[m] + 1e-5)^-0.5 * G[c]\nsizes m = 200, c = 768\n")},
        {"row_sum", typed("f(X[m, k]: {0}) -> Y[m]: {0}\n    Y[m] = sum(k) X[m, k]\nsizes m = 200, k = 5003\n")},
    };
}

std::int64_t first_row(std::int64_t batch) { return std::min<std::int64_t>(37, largest_batch - batch); }

Values inputs_of_batch(const Diagram& diagram, const Extents& extents) {
    Values values(diagram.arrays.size());
    const auto rows = diagram.find_axis("m");
    for (const ArrayId id : diagram.inputs) {
        const Array& array = diagram.array(id);
        const bool has_rows = !array.axes.empty() && array.axes.front() == rows;
        const std::int64_t count = count_values(diagram, id, extents);
        const std::int64_t first = has_rows ? first_row(extents[*rows]) * (count / extents[*rows]) : 0;
        std::vector<double> numbers;
        for (std::int64_t i = 0; i < count; ++i)
            numbers.push_back(normal_number(at(id) + 1, static_cast<std::uint64_t>(first + i)));
        values[id] = std::move(numbers);
    }
    return values;
}

}  // namespace napkin
