#include "schedule/window_copy.hpp"

#include <array>
#include <utility>

#include "algebra/linear_terms.hpp"
#include "diagram/box.hpp"
#include "schedule/fragments.hpp"
#include "support/ids.hpp"
#include "support/ranges.hpp"

namespace napkin {
namespace {

/// What a tensor map and a copy have room for, by the number of shifted dimensions (CUDA driver API,
/// cuTensorMapEncodeIm2col: ranges of corners; PTX ISA, im2col offsets: 16, 8 and 5 bits).
struct Room {
    std::int64_t corner_low, corner_high, offset;
};
constexpr std::array<Room, 3> rooms{{{-32768, 32767, 65535}, {-128, 127, 255}, {-16, 15, 31}}};
constexpr std::int64_t most_stride = 8;  ///< elementStrides, CUDA driver API

/// t // apart % steps
struct Digit {
    std::int64_t apart = 1, steps = 0;  ///< steps 0: it goes on
};

std::optional<std::int64_t> divisor(const Binary* b, BinaryOp op) {
    const auto* by = b && b->op == op ? as<Constant>(b->b) : nullptr;
    return by ? std::optional(static_cast<std::int64_t>(by->value)) : std::nullopt;
}

std::optional<Digit> digit_of(const Expr& e, AxisId axis) {
    Digit out;
    Expr rest = e;
    if (const auto n = divisor(as<Binary>(rest), BinaryOp::mod)) out.steps = *n, rest = as<Binary>(rest)->a;
    if (const auto n = divisor(as<Binary>(rest), BinaryOp::floor_div)) out.apart = *n, rest = as<Binary>(rest)->a;
    const auto* index = as<AxisIndex>(rest);
    return index && index->axis == axis ? std::optional(out) : std::nullopt;
}

class WindowWalk {
public:
    WindowWalk(const ScheduledKernel& kernel, VariableId id, AxisId rows)
        : k_(kernel),
          v_(kernel.variable(id)),
          axes_(kernel.program->diagram.array(v_.array).axes),
          scope_(kernel.layout(id).scope),
          rows_(rows),
          room_(rooms.at(v_.gathers.size() - 3)) {}

    std::optional<std::vector<WindowDimension>> dims() {
        std::vector<WindowDimension> out(v_.gathers.size() - 1);
        for (std::size_t d = out.size(); d-- > 0;) {
            auto next = dimension(d);
            if (!next) return std::nullopt;
            out[d] = std::move(*next);
        }
        return out;
    }

private:
    std::optional<WindowDimension> dimension(std::size_t d) {
        LinearTerms all;
        all.add(v_.gathers[d].value(), 1);
        Expr digit, rest;
        WindowDimension out;
        for (const auto& [term, factor] : all.terms()) {
            const Expr scaled = factor == 1 ? term : binary(BinaryOp::mul, integer_constant(factor), term);
            if (!depends_on_axis(term, rows_)) {
                rest = sum_of(rest, scaled);
                continue;
            }
            const auto found = digit ? std::nullopt : digit_of(term, rows_);
            if (!found || has_ended_ || found->apart != apart_ || factor <= 0) return std::nullopt;
            digit = scaled, out.stride = factor;
            has_ended_ = found->steps == 0;
            out.steps = has_ended_ ? ceil_div(k_.extent(rows_), apart_) : found->steps;
            apart_ *= out.steps;
        }
        const Expr shift = plus(rest, all.constant());
        const Index constant = Index::of(shift);
        const auto running = running_axis(k_, constant, scope_);
        if (!running || *running >= 0) return std::nullopt;
        if (d == 0) {
            out.first = Index::of(digit ? plus(sum_of(digit, rest), all.constant()) : shift);
            return out.stride == 1 ? std::optional(out) : std::nullopt;
        }
        const Interval range = range_of(constant, std::vector<std::int64_t>(k_.extents.size(), 0), k_.extents);
        out.lower = range.low, out.upper = range.low + (out.steps - 1) * out.stride + 1 - k_.extent(axes_[d]);
        out.first = Index::of(plus(digit, range.low)), out.offset = Index::of(plus(rest, all.constant() - range.low));
        const auto has_room = [&](std::int64_t corner) {
            return corner >= room_.corner_low && corner <= room_.corner_high;
        };
        if (!has_room(out.lower) || !has_room(out.upper) || range.size() - 1 > room_.offset ||
            out.stride > most_stride || k_.is_any(axes_[d]))
            return std::nullopt;
        return out;
    }

    static Expr sum_of(const Expr& a, const Expr& b) { return !a ? b : !b ? a : binary(BinaryOp::add, a, b); }
    /// Pre: the expression, which may be null, or a number.
    static Expr plus(const Expr& e, std::int64_t n) { return e && n == 0 ? e : sum_of(e, integer_constant(n)); }

    const ScheduledKernel& k_;
    const Variable& v_;
    const std::vector<AxisId>& axes_;
    const ScopeId scope_;
    const AxisId rows_;
    const Room& room_;
    std::int64_t apart_ = 1;
    bool has_ended_ = false;  ///< a digit that goes on has been met
};

}  // namespace

std::optional<WindowCopy> window_copy(const ScheduledKernel& kernel, VariableId id) {
    const Variable& variable = kernel.variable(id);
    const std::size_t rank = variable.gathers.size();
    if (!are_walks(variable.gathers) || kernel.unit.copies.window_box == 0 || rank < 3 || rank - 3 >= rooms.size())
        return std::nullopt;
    WindowCopy out{-1, -1, {}};
    for (const Index& dim : variable.dims) {
        const AxisId axis = dim.single_axis();
        if (axis < 0) return std::nullopt;
        if (kernel.program->diagram.axis(axis).walks) {
            if (out.rows >= 0) return std::nullopt;
            out.rows = axis;
        } else if (kernel.span(axis, kernel.layout(id).scope).tile > 1) {
            if (out.columns >= 0) return std::nullopt;
            out.columns = axis;
        }
    }
    const Index& last = variable.gathers.back();
    if (out.rows < 0 || out.columns < 0 || running_axis(kernel, last, kernel.layout(id).scope) != out.columns)
        return std::nullopt;
    auto dims = WindowWalk(kernel, id, out.rows).dims();
    if (!dims) return std::nullopt;
    out.dims = std::move(*dims);
    return out;
}

}  // namespace napkin
