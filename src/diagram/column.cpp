#include "diagram/column.hpp"

#include <limits>

namespace napkin {

Column::Column(DType type, std::size_t count, const Number& value) {
    if (is_float(type))
        cells_ = std::vector<double>(count, value.as_real());
    else
        cells_ = std::vector<std::int64_t>(count, value.to(type).as_whole(Kind::i64));
}

Column Column::unset(DType type, std::size_t count) {
    if (is_float(type)) return std::vector<double>(count, std::numeric_limits<double>::quiet_NaN());
    return std::vector<std::int64_t>(count, unset_whole);
}

Column Column::in(DType type) const {
    if (is_float(type)) return is_whole() ? Column(to_doubles()) : *this;
    std::vector<std::int64_t> cells(size());
    for (std::size_t i = 0; i < cells.size(); ++i) cells[i] = at(i).to(type).as_whole(Kind::i64);
    return cells;
}

std::vector<double> Column::to_doubles() const {
    if (!is_whole()) return reals();
    return {wholes().begin(), wholes().end()};
}

}  // namespace napkin
