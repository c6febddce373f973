#include "diagram/row_major_place.hpp"

namespace napkin {

RowMajorPlace row_major_place(const std::vector<AxisId>& axes) {
    RowMajorPlace out;
    for (const AxisId axis : axes) {
        const Expr index = axis_index(axis), size = axis_size(axis);
        out.place = out.place ? binary(BinaryOp::add, binary(BinaryOp::mul, out.place, size), index) : index;
        out.count = out.count ? binary(BinaryOp::mul, out.count, size) : size;
    }
    return out;
}

}  // namespace napkin
