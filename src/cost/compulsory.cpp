#include "cost/compulsory.hpp"

#include <cmath>

#include "diagram/box.hpp"
#include "support/ranges.hpp"

namespace napkin {
namespace {

double extent(const Extents& extents, AxisId axis) { return static_cast<double>(extents[at(axis)]); }

/// Different values of an affine index, at least: terms in ascending order of stride add up to a run without gaps, or repeat it.
double distinct(const Affine& index, const Extents& extents) {
    std::vector<std::pair<double, double>> terms;
    for (const auto& [axis, c] : index.terms)
        terms.emplace_back(std::abs(static_cast<double>(c)), extent(extents, axis));
    sort(terms);
    double run = 1, count = 1;
    bool gaps = false;
    for (const auto& [stride, size] : terms) {
        gaps = gaps || stride > run;
        run += stride * (size - 1);
        count = gaps ? std::max(count, size) : run;
    }
    return count;
}
/// Different values of an index, at least: of a quotient alone all of them, and of one that data decide a single one.
double distinct(const Index& index, const Extents& extents) {
    if (index.affine()) return distinct(*index.affine(), extents);
    const Index known = with_sizes(index, extents);
    const auto* quotient = known.expression() ? as<Binary>(*known.expression()) : nullptr;
    if (!quotient || quotient->op != BinaryOp::floor_div || !as<AxisIndex>(quotient->a)) return 1;
    return static_cast<double>(range_of(known, std::vector<std::int64_t>(extents.size(), 0), extents).size());
}

}  // namespace

double values_read(const std::vector<StatementWork>& work, ArrayId input, const Extents& extents) {
    double most = 0;
    for (const StatementWork& s : work)
        for (const OperandRead& read : s.operands) {
            if (read.array != input) continue;
            double all = 1, largest = 1;
            std::size_t axes = 0;
            for (const Index& dim : read.dims) {
                const double values = distinct(dim, extents);
                all *= values, largest = std::max(largest, values), axes += dim.axes().size();
            }
            most = std::max(most, axes == read.axes.size() ? all : largest);
        }
    return most;
}

Compulsory compulsory_transfers(const Derived& derived, const Kernel& kernel, const Extents& extents) {
    const Diagram& diagram = derived.diagram;
    const std::vector<StatementWork> work = statement_work(derived, kernel);
    Compulsory out;
    for (const ArrayId a : kernel.inputs)
        out.loaded_bytes += values_read(work, a, extents) * bytes(diagram.array(a).type);
    for (const ArrayId a : kernel.outputs)
        out.stored_bytes += static_cast<double>(count_values(diagram, a, extents)) * bytes(diagram.array(a).type);
    return out;
}

}  // namespace napkin
