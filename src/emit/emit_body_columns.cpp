// The part of BodyWriter that compares a fragment's columns with what a row says of them, as masks do.
#include <fmt/format.h>

#include "emit/emit_body.hpp"
#include "support/ids.hpp"

namespace napkin::writers {

/// A comparison of affine forms in which a thread's column stands once, on fragments: columns are numbers that the compiler knows, once the loop
/// over them is unrolled, and everything else is one number a row. Else every column's coordinate would be a number in a register. -1: the
/// comparison is no such one.
ValueId BodyWriter::compare_column(const Binary& b) {
    if (step_.atom < 0 || frame_.atom(step_).kind == AtomKind::block || loops_.size() < 2) return -1;
    if (b.op != BinaryOp::le && b.op != BinaryOp::lt && b.op != BinaryOp::ge && b.op != BinaryOp::gt) return -1;
    const AxisId column = loops_.back();
    const auto form_of = [&](const Expr& e) {
        return affine_form(transform(e, [&](const Expr& node) -> Expr {
            const auto* size = as<AxisSize>(node);
            return size ? constant(static_cast<double>(frame_.extent(size->axis))) : node;
        }));
    };
    const auto x = form_of(b.a), y = form_of(b.b);
    if (!x || !y || !whole_values_.is_small(b.a) || !whole_values_.is_small(b.b)) return -1;
    // column · c + rest, compared with 0.
    const Affine form = *x - *y;
    const std::int64_t c = form.coefficient(column);
    if (std::abs(c) != 1 || frame_.span(column, scope_).tile == 1) return -1;
    std::string rest;
    int level = 0;
    const auto add = [&](std::int64_t factor, const std::string& what) {
        const bool is_sum = what.find(" + ") != std::string::npos && factor != 1;
        const std::string term = (std::abs(factor) == 1 ? "" : fmt::format("{} * ", std::abs(factor))) +
                                 (is_sum ? "(" + what + ")" : what);
        rest += rest.empty() ? (factor < 0 ? "-" : "") + term : (factor < 0 ? " - " : " + ") + term;
    };
    for (const auto& [axis, factor] : form.terms) {
        if (axis == column) continue;
        add(-c * factor, coordinate_sum(axis, ""));
        if (frame_.span(axis, scope_).tile > 1) level = std::max(level, level_of(axis));
    }
    if (frame_.span(column, scope_).begins) add(-1, frame_.axis(column).begin);
    add(-1, "fragment_column(0, 0)");
    if (form.constant != 0) add(c * form.constant < 0 ? 1 : -1, std::to_string(std::abs(form.constant)));
    Value own, of_row;
    own.pattern = "real(8 * j_ + c_)", own.level = level_of(column);
    of_row.pattern = fmt::format("real({})", rest), of_row.level = level, of_row.hint = "last_column";
    const BinaryOp turned = b.op == BinaryOp::le   ? BinaryOp::ge
                            : b.op == BinaryOp::lt ? BinaryOp::gt
                            : b.op == BinaryOp::ge ? BinaryOp::le
                                                   : BinaryOp::lt;
    return compare(c > 0 ? b.op : turned, intern(std::move(own)), intern(std::move(of_row)));
}

}  // namespace napkin::writers
