// The part of BodyWriter for the columns of a fragment. Once the loop over them is unrolled, the compiler knows a
// thread's columns as constants beside one number a row. Otherwise every column's coordinate would need a register, and
// a conversion from an integer.
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "emit/emit_body.hpp"
#include "support/ids.hpp"

namespace napkin::writers {

/// The part of factor · form that is the same for a row: all of it but the thread's own column (own_column).
ValueId BodyWriter::form_of_row(const Affine& form, std::int64_t factor, const char* hint) {
    const AxisId column = loops_.back();
    std::string rest;
    int level = 0;
    const auto add = [&](std::int64_t times, const std::string& what) {
        const bool is_sum = what.find(" + ") != std::string::npos && times != 1;
        const std::string term = (std::abs(times) == 1 ? "" : fmt::format("{} * ", std::abs(times))) +
                                 (is_sum ? "(" + what + ")" : what);
        rest += rest.empty() ? (times < 0 ? "-" : "") + term : (times < 0 ? " - " : " + ") + term;
    };
    for (const auto& [axis, times] : form.terms) {
        if (axis == column) continue;
        add(factor * times, coordinate_sum(axis, ""));
        if (frame_.span(axis, scope_).tile > 1) level = std::max(level, level_of(axis));
    }
    const std::int64_t of_column = factor * form.coefficient(column);
    if (frame_.span(column, scope_).begins) add(of_column, frame_.axis(column).begin);
    add(of_column, "fragment_column(0, 0)");
    const auto [constant, number] = frame_.constant_of(form);
    if (constant != 0) add(factor * constant < 0 ? -1 : 1, std::to_string(std::abs(constant)));
    if (!number.empty()) add(factor, number);
    Value of_row;
    of_row.pattern = fmt::format("real({})", rest), of_row.level = level, of_row.hint = hint;
    return intern(std::move(of_row));
}
ValueId BodyWriter::own_column() {
    Value own;
    own.pattern = fmt::format("real({} * j_ + c_)", frame_.fragments().columns), own.level = level_of(loops_.back());
    return intern(std::move(own));
}

/// A sum in which the column stands once, or a comparison of such: column · c + rest, compared with 0.
ValueId BodyWriter::with_own_column(const Expr& e, const Affine& form) {
    const auto* b = as<Binary>(e);
    const std::int64_t c = form.coefficient(loops_.back());
    if (!b || !is_comparison(b->op))
        return arithmetic(c > 0 ? BinaryOp::add : BinaryOp::sub, form_of_row(form, 1, "of_row"), own_column());
    const BinaryOp turned = b->op == BinaryOp::le   ? BinaryOp::ge
                            : b->op == BinaryOp::lt ? BinaryOp::gt
                            : b->op == BinaryOp::ge ? BinaryOp::le
                                                    : BinaryOp::lt;
    return compare(c > 0 ? b->op : turned, own_column(), form_of_row(form, -c, "last_column"));
}

}  // namespace napkin::writers
