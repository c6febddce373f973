#include "emit/emit_index.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <optional>

#include "support/result.hpp"

namespace napkin::writers {
namespace {

std::int64_t whole(const Expr& e) {
    const auto* c = as<Constant>(e);
    internal_check(c != nullptr, "emit: an index holds a size");
    return static_cast<std::int64_t>(c->value);
}

std::string text_of(const Expr& e, const CoordinateText& coordinate, const ElementText& element) {
    if (const auto* i = as<AxisIndex>(e)) return coordinate(i->axis);
    if (const auto* r = as<Read>(e)) return element(*r);
    if (const auto* u = as<Unary>(e)) return fmt::format("-({})", text_of(u->a, coordinate, element));
    const auto* b = as<Binary>(e);
    if (!b) return std::to_string(whole(e));
    const std::string x = text_of(b->a, coordinate, element), y = text_of(b->b, coordinate, element);
    // By a power of two both are single instructions, of which compilers see what is the same for neighbours.
    const auto* divisor = as<Constant>(b->b);
    if (divisor && divisor->value >= 1 && std::has_single_bit(static_cast<std::uint64_t>(whole(b->b)))) {
        if (b->op == BinaryOp::floor_div)
            return fmt::format("({} >> {})", x, std::countr_zero(static_cast<std::uint64_t>(whole(b->b))));
        if (b->op == BinaryOp::mod) return fmt::format("({} & {})", x, whole(b->b) - 1);
    }
    switch (b->op) {
        case BinaryOp::floor_div: return fmt::format("floor_div({}, {})", x, y);
        case BinaryOp::mod: return fmt::format("floor_mod({}, {})", x, y);
        case BinaryOp::min: return fmt::format("min_index({}, {})", x, y);
        case BinaryOp::max: return fmt::format("max_index({}, {})", x, y);
        default: return fmt::format("({} {} {})", x, name(b->op), y);
    }
}

BoundsText bounds_of(const Frame& frame, const Expr& e, int scope) {
    if (const auto* i = as<AxisIndex>(e)) {
        const Span& span = frame.span(i->axis, scope);
        const std::string low = span.begins ? frame.axis(i->axis).begin : "0";
        return {low, span.begins ? fmt::format("({} + {})", low, span.padded - 1) : std::to_string(span.padded - 1)};
    }
    if (const auto* u = as<Unary>(e)) {
        const BoundsText a = bounds_of(frame, u->a, scope);
        return {fmt::format("-({})", a.high), fmt::format("-({})", a.low)};
    }
    const auto* b = as<Binary>(e);
    if (!b) return {std::to_string(whole(e)), std::to_string(whole(e))};
    const BoundsText x = bounds_of(frame, b->a, scope), y = bounds_of(frame, b->b, scope);
    const auto both = [](const char* pattern, const std::string& p, const std::string& q) {
        return fmt::format(fmt::runtime(pattern), p, q);
    };
    switch (b->op) {
        case BinaryOp::add: return {both("({} + {})", x.low, y.low), both("({} + {})", x.high, y.high)};
        case BinaryOp::sub: return {both("({} - {})", x.low, y.high), both("({} - {})", x.high, y.low)};
        case BinaryOp::floor_div:
            return {both("floor_div({}, {})", x.low, y.low), both("floor_div({}, {})", x.high, y.low)};
        case BinaryOp::mod: return {"0", std::to_string(whole(b->b) - 1)};
        case BinaryOp::min: return {both("min_index({}, {})", x.low, y.low), both("min_index({}, {})", x.high, y.high)};
        case BinaryOp::max: return {both("max_index({}, {})", x.low, y.low), both("max_index({}, {})", x.high, y.high)};
        default: break;
    }
    // A product with a number.
    const bool left = as<Constant>(b->a) != nullptr;
    const std::int64_t factor = whole(left ? b->a : b->b);
    const BoundsText& other = left ? y : x;
    BoundsText out{fmt::format("({} * {})", factor, other.low), fmt::format("({} * {})", factor, other.high)};
    if (factor < 0) std::swap(out.low, out.high);
    return out;
}

}  // namespace

std::string index_in_tile(const Frame& frame, const Index& index, int scope) {
    const auto begin = [&](AxisId axis) {
        return frame.span(axis, scope).begins ? frame.axis(axis).begin : std::string("0");
    };
    const auto local = [&](AxisId axis) {
        return frame.span(axis, scope).tile == 1 ? std::string("0") : frame.axis(axis).local;
    };
    const auto sum = [](const std::string& a, const std::string& b) {
        return a == "0" ? b : b == "0" ? a : fmt::format("({} + {})", a, b);
    };
    const auto whole_in_tile = [&](const Expr& e) -> std::optional<std::string> {
        const auto* b = as<Binary>(e);
        const auto* axis = b && (b->op == BinaryOp::floor_div || b->op == BinaryOp::mod) ? as<AxisIndex>(b->a) : nullptr;
        const auto* divisor = axis ? as<Constant>(b->b) : nullptr;
        if (!divisor) return std::nullopt;
        const std::int64_t c = whole(b->b), tile = frame.span(axis->axis, scope).tile;
        const auto of = [&](const std::string& x) {
            const CoordinateText same = [&](AxisId) { return x; };
            return x == "0" ? x : text_of(e, same, {});
        };
        if (c % tile == 0)
            return b->op == BinaryOp::floor_div ? of(begin(axis->axis)) : sum(of(begin(axis->axis)), local(axis->axis));
        if (tile % c == 0)
            return b->op == BinaryOp::mod ? of(local(axis->axis)) : sum(of(begin(axis->axis)), of(local(axis->axis)));
        return std::nullopt;
    };
    // Other parts are printed as they are, with these in their places.
    const std::function<std::string(const Expr&)> text = [&](const Expr& e) -> std::string {
        if (auto found = whole_in_tile(e)) return *found;
        const auto* b = as<Binary>(e);
        if (!b) return text_of(e, [&](AxisId axis) { return sum(begin(axis), local(axis)); }, {});
        // Axes stand for the two sides while the operator is printed.
        const std::string sides[] = {text(b->a), text(b->b)};
        const Expr operation = binary(b->op, axis_index(0), as<Constant>(b->b) ? b->b : axis_index(1));
        return text_of(operation, [&](AxisId side) { return sides[side]; }, {});
    };
    return text(index.value());
}

std::string index_text(const Index& index, const CoordinateText& coordinate, const ElementText& element) {
    return text_of(index.value(), coordinate, element);
}

BoundsText bounds_text(const Frame& frame, const Index& index, int scope) {
    return bounds_of(frame, index.value(), scope);
}

void write_zeros(const Frame& frame, Lines& out, VariableId variable, bool synchronizes) {
    out(fmt::format("fill({}, {}, {});", frame.name(variable), frame.layout(variable).count,
                    frame.is_whole(variable) ? whole_literal(0) : literal(0, frame.is_double)));
    if (synchronizes) out("sync();");
}

void write_gather(const Frame& frame, Lines& out, VariableId variable, int scope, bool synchronizes) {
    const Variable& v = frame.variable(variable);
    const Layout& layout = frame.layout(variable);
    const std::string& name = frame.name(variable);
    const std::string& memory = frame.memory.at(v.array);
    const std::string& strides = frame.strides.at(v.array);
    const auto place = [&](AxisId position) { return fmt::format("{}_p{}_", name, position); };
    out.open("");
    if (is_cut(frame, v)) write_zeros(frame, out, variable, synchronizes);
    std::string target;
    std::size_t opened = 1;
    for (std::size_t p = 0; p < v.dims.size(); ++p) {
        const BoundsText bounds = bounds_text(frame, v.dims[p], scope);
        const std::string at = place(static_cast<AxisId>(p));
        out(fmt::format("const Index {0}low_ = {1}, {0}high_ = min_index({2}, {3});", at, bounds.low, bounds.high,
                        frame.extent(v.limits[p]) - 1));
        // Threads take the innermost dimension's elements in turn; where there are runs of them, warps take these.
        const bool has_runs = v.dims.size() > 1 && layout.sizes[v.dims.size() - 2] > 1;
        const bool is_run = has_runs && p + 2 == v.dims.size(), is_innermost = p + 1 == v.dims.size();
        const auto [first, step] = !frame.in_blocks() ? std::pair("", "1")
                                   : is_run           ? std::pair(" + warp_of_thread()", "num_warps()")
                                   : !is_innermost    ? std::pair("", "1")
                                   : has_runs         ? std::pair(" + lane_of_thread()", "lanes")
                                                      : std::pair(" + thread_of_block()", "num_threads()");
        out.open(fmt::format("for (Index {0} = max_index({0}low_, 0){1}; {0} <= {0}high_; {2})", at, first,
                             *step == '1' ? "++" + at : fmt::format("{} += {}", at, step)));
        ++opened;
        target += fmt::format("{}({} - {}low_) * {}", target.empty() ? "" : " + ", at, at, layout.strides[p]);
    }
    // Elements of arrays in memory are read there, where they are exact; those that were gathered themselves lie in their tiles.
    const auto element = [&](const Read& r) {
        const Variable& inner = frame.variable(r.array);
        const Layout& tile = frame.layout(r.array);
        const std::string& array = frame.memory.at(inner.array);
        std::string position, there;
        for (std::size_t d = 0; d < r.indices.size(); ++d) {
            const std::string coordinate = index_text(r.indices[d], place);
            // The box's own coordinates are inside; what is reckoned from them may not be, where a condition keeps it from being taken.
            if (r.indices[d].single_axis() < 0)
                there += fmt::format("{0}{1} >= 0 && {1} < {2}", there.empty() ? "" : " && ", coordinate,
                                     frame.extent(inner.limits[d]));
            position += position.empty() ? "" : " + ";
            position += inner.gathers.empty()
                            ? fmt::format("{} * {}[{}]", coordinate, frame.strides.at(inner.array), d)
                            : fmt::format("({} - {}) * {}", coordinate,
                                          bounds_text(frame, inner.dims[d], tile.scope).low, tile.strides[d]);
        }
        const std::string value = fmt::format("static_cast<Index>({}[{}])",
                                              inner.gathers.empty() ? array : frame.name(r.array),
                                              position.empty() ? "0" : position);
        return there.empty() ? value : fmt::format("({} ? {} : nowhere)", there, value);
    };
    const Expr written = read(variable, v.gathers);
    const std::vector<Index> source = box_of(frame.diagram(), *frame.kernel, *as<Read>(written)).source;
    std::string inside, from;
    const std::vector<AxisId>& axes = frame.diagram().array(v.array).axes;
    for (std::size_t d = 0; d < source.size(); ++d) {
        const std::string row = fmt::format("{}_i{}_", name, d);
        out(fmt::format("const Index {} = {};", row, index_text(source[d], place, element)));
        inside += fmt::format("{0}{1} >= 0 && {1} < {2}", inside.empty() ? "" : " && ", row, frame.extent(axes[d]));
        from += fmt::format("{}{} * {}[{}]", from.empty() ? "" : " + ", row, strides, d);
    }
    const std::string cell = frame.cell_type(variable);
    out(fmt::format("{}{}[{}] = {} ? static_cast<{}>({}[{}]) : {}(0);",
                    frame.in_blocks() && v.dims.empty() ? "if (thread_of_block() == 0) " : "", name,
                    target.empty() ? "0" : target, inside, cell, memory, from, cell));
    for (; opened > 0; --opened) out.close();
}

}  // namespace napkin::writers
