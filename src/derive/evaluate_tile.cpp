#include "derive/evaluate_tile.hpp"

#include <algorithm>
#include <array>
#include <type_traits>

#include "diagram/cells.hpp"
#include "support/ranges.hpp"
#include "support/result.hpp"

namespace napkin {
namespace {

/// The axis of which the tile has most values: the rows along it are the longest.
AxisId longest_of(const CoreTile& tile, const std::vector<AxisId>& target_axes, const std::vector<AxisId>& reduced) {
    AxisId longest = -1;
    for (const auto* axes : {&target_axes, &reduced})
        for (const AxisId axis : *axes)
            if (longest < 0 || tile.count[at(axis)] >= tile.count[at(longest)]) longest = axis;
    return longest;
}

}  // namespace

TileEvaluator::Compiled& TileEvaluator::compiled(const Values& values, ArrayId target, AxisId row, const TileExpression& e) {
    const std::tuple key{target, row, e.body.get(), e.carry.get()};
    if (const auto found = compiled_.find(key); found != compiled_.end()) return found->second;
    const auto locate = [&](const Read& r) {
        const Array& array = diagram_.array(r.array);
        const Column& cells = values[r.array];
        if (std::cmp_not_equal(cells.size(), count_values(diagram_, r.array, extents_)))
            throw InternalError(array.name + " is read and was never computed");
        Operand operand = operand_of(cells);
        operand.dimensions.resize(array.axes.size());
        std::int64_t stride = 1;
        for (std::size_t i = array.axes.size(); i-- > 0; stride *= extents_[array.axes[i]])
            operand.dimensions[i] = {0, extents_[array.axes[i]], stride};
        return operand;
    };
    Kind kind = kinds_(e.body);
    if (e.reduce) kind = accumulated_kind(kind, diagram_.array(target).type);
    if (e.carry && kinds_(e.carry) == Kind::real) kind = Kind::real;
    if (kind != Kind::real) kind = Kind::i64;
    const Row::Options options{row, kind, false};
    Compiled made{kind, Row(e.body, kinds_, extents_, locate, options), {}};
    if (e.carry) made.carry.emplace_back(e.carry, kinds_, extents_, locate, options);
    return compiled_.emplace(key, std::move(made)).first->second;
}

std::vector<Number> TileEvaluator::evaluate(const Values& values, ArrayId target, const CoreTile& tile,
                                            const TileExpression& e) {
    const std::vector<AxisId>& axes = diagram_.array(target).axes;
    const AxisId row = longest_of(tile, axes, e.reduce_axes);
    Compiled& c = compiled(values, target, row, e);
    std::vector<Number> result(
        product<std::size_t>(axes, [&](AxisId a) { return static_cast<std::size_t>(tile.count[at(a)]); }));
    if (c.kind == Kind::real)
        run<double>(c, target, row, tile, e, result);
    else
        run<std::int64_t>(c, target, row, tile, e, result);
    return result;
}

template <class Cell>
void TileEvaluator::run(Compiled& c, ArrayId target, AxisId row, const CoreTile& tile, const TileExpression& e,
                        std::vector<Number>& result) {
    std::vector<AxisId> outer = diagram_.array(target).axes, inner = e.reduce_axes;
    const bool along_target = contains(outer, row);
    std::vector<std::size_t> strides(outer.size(), 1);
    for (std::size_t d = outer.size(); d-- > 1;)
        strides[d - 1] = strides[d] * static_cast<std::size_t>(tile.count[at(outer[d])]);
    std::size_t row_stride = 0;
    if (along_target) {
        const auto place = static_cast<std::size_t>(find(outer, row) - outer.begin());
        row_stride = strides[place];
        outer.erase(outer.begin() + static_cast<std::ptrdiff_t>(place));
        strides.erase(strides.begin() + static_cast<std::ptrdiff_t>(place));
    } else {
        std::erase(inner, row);
    }
    const auto number = [](Cell x) {
        if constexpr (std::is_same_v<Cell, double>)
            return Number::real(x);
        else
            return Number::whole(Kind::i64, x);
    };
    const auto start = [&]() -> Cell {
        if constexpr (std::is_same_v<Cell, double>)
            return identity(*e.reduce);
        else
            return integer_identity(*e.reduce, c.kind);
    };
    std::vector<std::int64_t> point = tile.begin;
    const std::int64_t length = row < 0 ? 1 : tile.count[at(row)];
    std::array<Cell, Row::max_row> totals;  // NOLINT(*-member-init): of a row along the target, set before it is read
    for_each_point_of(outer, tile, point, [&] {
        std::size_t place = 0;
        for (std::size_t d = 0; d < outer.size(); ++d)
            place += strides[d] * static_cast<std::size_t>(point[at(outer[d])] - tile.begin[at(outer[d])]);
        const auto to_row = [&](std::int64_t from) {
            if (row >= 0) point[at(row)] = tile.begin[at(row)] + from;
            return std::min(Row::max_row, length - from);
        };
        if (e.reduce && !along_target) {
            Cell total = start();
            for_each_point_of(inner, tile, point, [&] {
                for (std::int64_t from = 0; from < length; from += Row::max_row) {
                    const std::int64_t n = to_row(from);
                    const Cell* const cells = cells_of_row<Cell>(c.body, point, n);
                    for (std::int64_t j = 0; j < n; ++j) total = combined(*e.reduce, c.kind, total, cells[j]);
                }
            });
            if (!c.carry.empty()) total = combined(*e.reduce, c.kind, *cells_of_row<Cell>(c.carry[0], point, 1), total);
            result[place] = number(total);
            return;
        }
        for (std::int64_t from = 0; from < length; from += Row::max_row) {
            const std::int64_t n = to_row(from);
            const Cell* cells = totals.data();
            if (!e.reduce) {
                cells = cells_of_row<Cell>(c.body, point, n);
            } else {
                std::fill_n(totals.begin(), n, start());
                const auto add = [&](const Cell* terms, bool first) {
                    for (std::size_t j = 0; j < static_cast<std::size_t>(n); ++j)
                        totals[j] = first ? combined(*e.reduce, c.kind, terms[j], totals[j])
                                          : combined(*e.reduce, c.kind, totals[j], terms[j]);
                };
                for_each_point_of(inner, tile, point, [&] { add(cells_of_row<Cell>(c.body, point, n), false); });
                if (!c.carry.empty()) add(cells_of_row<Cell>(c.carry[0], point, n), true);
            }
            for (std::int64_t j = 0; j < n; ++j)
                result[place + row_stride * static_cast<std::size_t>(from + j)] = number(cells[j]);
        }
    });
}

}  // namespace napkin
