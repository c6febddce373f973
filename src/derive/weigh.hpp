#pragma once
// What a gathering costs whatever machine runs it: its arithmetic, and the transfers that no schedule avoids.
#include <map>
#include <string>
#include <vector>

#include "derive/build.hpp"

namespace napkin {

/// Σ count · Π of the axes' sizes.
using AxisPolynomial = std::map<std::vector<AxisId>, double>;

struct Weight {
    AxisPolynomial flops, transfers;
    Weight& operator+=(const Weight& other);
};

/// The statements' operations, a sub-expression once for every point of its own axes; the arrays that are read and
/// written, once each.
Weight weigh(const KernelBuilder::Trial& trial);

Size as_size(const AxisPolynomial& polynomial);

/// Sizes by AxisId for ranking: what the diagram gives, and a large number where it gives none.
std::vector<double> nominal_sizes(const Diagram& diagram);
double at_sizes(const AxisPolynomial& polynomial, const std::vector<double>& sizes);

}  // namespace napkin
