#include "lower/size_formulas.hpp"

#include <algorithm>
#include <bit>
#include <functional>

#include "algebra/number.hpp"
#include "support/ids.hpp"
#include "support/ranges.hpp"

namespace napkin::lower {
namespace {

Expr number(std::int64_t value) { return integer_constant(value); }
Expr operator+(const Expr& a, const Expr& b) { return whole_formula(BinaryOp::add, a, b); }
Expr operator-(const Expr& a, const Expr& b) { return whole_formula(BinaryOp::sub, a, b); }
Expr operator*(const Expr& a, const Expr& b) { return whole_formula(BinaryOp::mul, a, b); }
Expr operator/(const Expr& a, const Expr& b) { return whole_formula(BinaryOp::floor_div, a, b); }
Expr least(const Expr& a, const Expr& b) { return whole_formula(BinaryOp::min, a, b); }
Expr most(const Expr& a, const Expr& b) { return whole_formula(BinaryOp::max, a, b); }

std::optional<std::int64_t> as_number(const Expr& e) {
    const auto* c = as<Constant>(e);
    return c ? whole_of(*c) : std::nullopt;
}

template <class T>
Expr product_of(const T& list, const std::function<Expr(const typename T::value_type&)>& factor) {
    Expr out = number(1);
    for (const auto& one : list) out = out * factor(one);
    return out;
}

}  // namespace

Expr whole_formula(BinaryOp op, const Expr& a, const Expr& b) {
    const auto x = as_number(a), y = as_number(b);
    if (x && y) return number(apply_integer(op, Kind::i64, *x, *y));
    const bool is_sum = op == BinaryOp::add || op == BinaryOp::sub, is_product = op == BinaryOp::mul;
    if ((is_sum && y == 0) || ((is_product || op == BinaryOp::floor_div) && y == 1)) return a;
    if ((op == BinaryOp::add && x == 0) || (is_product && x == 1)) return b;
    if (is_product && (x == 0 || y == 0)) return number(0);
    if (op == BinaryOp::mod && y == 1) return number(0);
    return binary(op, a, b);
}

Expr quotient_up(const Expr& a, std::int64_t by) { return (a + number(by - 1)) / number(by); }
Expr rounded_up(const Expr& a, std::int64_t unit) { return quotient_up(a, unit) * number(unit); }

std::int64_t whole_value(const Expr& formula, const Extents& extents) {
    const auto of = [&](const Expr& e) { return whole_value(e, extents); };
    if (const auto* size = as<AxisSize>(formula)) return extents[size->axis];
    if (const auto* b = as<Binary>(formula)) return apply_integer(b->op, Kind::i64, of(b->a), of(b->b));
    if (const auto* s = as<Select>(formula)) return of(of(s->condition) != 0 ? s->a : s->b);
    const auto value = as_number(formula);
    internal_check(value.has_value(), "a formula of sizes has no whole number");
    return *value;
}

double real_value(const Expr& formula, const Extents& extents) {
    const auto of = [&](const Expr& e) { return real_value(e, extents); };
    if (const auto* c = as<Constant>(formula)) return c->value;
    if (const auto* size = as<AxisSize>(formula)) return static_cast<double>(extents[size->axis]);
    if (const auto* u = as<Unary>(formula)) return apply(u->op, of(u->a));
    if (const auto* b = as<Binary>(formula)) return apply(b->op, of(b->a), of(b->b));
    if (const auto* s = as<Select>(formula)) return of(of(s->condition) != 0 ? s->a : s->b);
    const auto* cast = as<Cast>(formula);
    internal_check(cast != nullptr, "a formula of sizes reads an array");
    return round_to(cast->type, of(cast->a));
}

Expr SizeFormulas::size(AxisId axis) const {
    return contains(program_.size_arguments, axis) ? axis_size(axis) : number(kernel_.extent(axis));
}

Expr SizeFormulas::tiles(AxisId axis) const { return quotient_up(size(axis), kernel_.span(axis, 0).tile); }

std::vector<GroupDigit> SizeFormulas::digits() const {
    std::vector<GroupDigit> out;
    const AxisId clustered = kernel_.schedule.cluster.value.axis;
    for (const GroupAxis& digit : kernel_.group_order) {
        GroupDigit next{digit.axis,       number(digit.tiles), number(digit.stride),
                        digit.stride > 1, digit.is_uneven,     digit.is_backward};
        // The tiles of a cluster stay together, and its kernels are for one number of them.
        if (contains(program_.size_arguments, digit.axis) && digit.axis != clustered) {
            std::int64_t band = 1;
            for (const GroupAxis& other : kernel_.group_order)
                if (other.axis == digit.axis) band = std::max(band, other.stride);
            const Expr all = tiles(digit.axis), in_bands = whole_formula(BinaryOp::mod, all, number(band)),
                       width = band == 1 ? number(1)
                                         : select(binary(BinaryOp::eq, in_bands, number(0)), number(band), number(1));
            next.stride = next.is_band ? width : number(1);
            next.tiles = band == 1 ? all : next.is_band ? all / width : width;
        }
        out.push_back(std::move(next));
    }
    return out;
}

Expr SizeFormulas::groups() const {
    return product_of(digits(), [](const GroupDigit& digit) { return digit.tiles; });
}

Expr SizeFormulas::groups_of_section() const {
    std::vector<GroupDigit> inside = digits();
    const auto first = find_if(inside, [](const GroupDigit& digit) { return digit.is_uneven; });
    if (first != inside.end()) inside.erase(inside.begin(), first);
    return product_of(inside, [](const GroupDigit& digit) { return digit.tiles; });
}

Expr SizeFormulas::blocks() const {
    // the most CTAs along a grid's first dimension: CUDA's technical specifications
    constexpr std::int64_t most_blocks = (std::int64_t{1} << 31) - 1;
    const std::int64_t joined = kernel_.cluster_blocks(), grid = kernel_.schedule.grid.value,
                       threads = kernel_.schedule.threads.value;
    const Expr all = groups();
    if (threads > 1 && kernel_.has_block_a_group()) {
        const std::int64_t limit = most_blocks / joined * joined;
        return least(all, number(kernel_.schedule.grid.by_user ? std::min(grid, limit) : limit));
    }
    const Expr asked = least(all, number(std::min(grid > 0 ? std::min(grid, threads) : threads, most_blocks)));
    return most(asked / number(joined), number(1)) * number(joined);
}

Expr SizeFormulas::k_blocks(const ScheduledLoop& loop) const {
    return quotient_up(size(loop.loop->axis), kernel_.span(loop.loop->axis, loop.scope).tile);
}

/// A variable that gathers has the array's dimensions in another order.
std::size_t SizeFormulas::array_dimension(VariableId variable, std::size_t dimension) const {
    const int found = napkin::array_dimension(kernel_, variable, static_cast<int>(dimension));
    internal_check(found >= 0, "lower: a view has a dimension that its array has not");
    return at(found);
}

Expr SizeFormulas::stride(VariableId variable, std::size_t dimension) const {
    const std::vector<AxisId>& axes = kernel_.program->diagram.array(kernel_.variable(variable).array).axes;
    Expr out = number(1);
    for (std::size_t d = array_dimension(variable, dimension) + 1; d < axes.size(); ++d) out = out * size(axes[d]);
    return out;
}

Expr SizeFormulas::last_of_view(VariableId variable) const {
    const Layout& layout = kernel_.layout(variable);
    Expr reach = number(layout.reach > 0 ? 1 : 0);
    for (std::size_t d = 0; d < layout.strides.size(); ++d)
        if (layout.strides[d] != 0) reach = reach + stride(variable, d) * number(layout.sizes[d] - 1);
    return product_of(kernel_.program->diagram.array(kernel_.variable(variable).array).axes,
                      [&](AxisId axis) { return size(axis); }) -
           reach;
}

Expr SizeFormulas::split_rounds() const { return groups() / blocks() - number(1); }
Expr SizeFormulas::split_groups() const { return groups() - split_rounds() * blocks(); }
Expr SizeFormulas::stream_k_words_bytes() const {
    return rounded_up(split_groups() * number(kernel_.schedule.warps.value * 4), stream_k_alignment);
}
Expr SizeFormulas::stream_k_bytes() const {
    if (!program_.shapes.stream_k) return number(0);
    return stream_k_words_bytes() +
           split_groups() *
               number(kernel_.schedule.warps.value * program_.shapes.stream_k->registers * kernel_.unit.warp_threads * 4);
}

Expr SizeFormulas::row_ranges(const KBlockRanges& ranges) const {
    const AxisId rows = kernel_.schedule.mma_m;
    return tiles(rows) * number(kernel_.span(rows, 0).tile / ranges.rows);
}
Expr SizeFormulas::range_bytes() const {
    Expr bytes = number(0);
    for (const LoopShape& loop : program_.shapes.loops)
        if (loop.ranges)
            bytes = bytes + row_ranges(*loop.ranges) * product_of(loop.ranges->others, [&](AxisId axis) {
                                return tiles(axis);
                            }) * number(k_block_range_bytes);
    return bytes;
}

Expr SizeFormulas::scratch_bytes() const {
    const Expr arenas = kernel_.arena_in_core() ? number(0) : number(round_up(kernel_.arena_bytes(), 256)) * blocks();
    return arenas + range_bytes() + number(kernel_.is_dynamic() ? 4 : 0) + stream_k_bytes();
}

std::vector<std::int64_t> numbers_at(const LaunchFormulas& launch, const Extents& extents) {
    return mapped<std::int64_t>(launch.numbers, [&](const LaunchNumber& of) -> std::int64_t {
        if (!of.is_real) return whole_value(of.formula, extents);
        const double value = real_value(of.formula, extents);
        return of.is_double ? std::bit_cast<std::int64_t>(value) : std::bit_cast<std::int32_t>(static_cast<float>(value));
    });
}

}  // namespace napkin::lower
