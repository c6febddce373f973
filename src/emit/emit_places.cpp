#include "emit/emit_places.hpp"

#include <fmt/format.h>

#include <cctype>

#include "emit/emit_header.hpp"
#include "emit/emit_k_block_ranges.hpp"
#include "emit/emit_text.hpp"
#include "emit/emit_write.hpp"
#include "support/ranges.hpp"

namespace napkin::writers {
namespace {

bool any_varies(const Frame& frame) {
    // An axis with a single tile now has no digit.
    return any_of(frame.kernel->group_axes, [&](AxisId axis) { return frame.vary_with({axis}); });
}

/// Where sizes are arguments, so are the order of the digits and their bands: the text is the same for all orders.
std::vector<std::pair<AxisId, std::string>> position_in_any_order(const Frame& frame, const std::string& group) {
    std::vector<std::pair<AxisId, std::string>> begins;
    const std::vector<lower::GroupDigit> digits = lower::SizeFormulas(frame.lowered).digits();
    const auto tiles_from = [&](std::size_t first) {
        Expr tiles = integer_constant(1);
        for (std::size_t d = first; d < digits.size(); ++d)
            tiles = lower::whole_formula(BinaryOp::mul, tiles, digits[d].tiles);
        return tiles;
    };
    const Expr one = integer_constant(1);
    for (const auto& [axis, size] : groups_of(*frame.kernel, frame.sizes)) {
        const std::string& name = frame.diagram().axis(axis).name;
        const auto number = [&](const char* what, const Expr& formula) {
            return frame.numbers->whole(fmt::format("{}_{}", what, name), formula);
        };
        Expr below = tiles_from(0), below_bands = below, tiles = one, bands = one, band = one;
        bool is_backward = false, is_one_tile = true;
        for (std::size_t d = 0; d < digits.size(); ++d) {
            const lower::GroupDigit& digit = digits[d];
            if (digit.axis != axis) continue;
            is_one_tile &= frame.group_order[d].tiles == 1;
            if (digit.is_band)
                below_bands = tiles_from(d + 1), bands = digit.tiles, band = digit.stride;
            else
                below = tiles_from(d + 1), tiles = digit.tiles, is_backward = digit.is_backward;
        }
        if (!frame.vary_with({axis}) && is_one_tile) continue;
        const Expr last = lower::whole_formula(BinaryOp::sub, tiles, one);
        std::string text = fmt::format("{} / {} % {}", group, number("below", below), number("tiles", tiles));
        text = fmt::format("({} + {} * ({}))", number("first", is_backward ? last : integer_constant(0)),
                           number("step", integer_constant(is_backward ? -1 : 1)), text);
        if (frame.in_blocks())
            text = fmt::format("({} + {} / {} % {} * {})", text, group, number("below_bands", below_bands),
                               number("bands", bands), number("band", band));
        const std::int64_t tile = frame.span(axis, 0).tile;
        begins.emplace_back(axis, tile == 1 ? text : fmt::format("{} * {}", text, tile));
    }
    return begins;
}

}  // namespace

void write_numbers(const Frame& frame, Lines& out) {
    std::size_t at = 0;
    for (const auto* arrays : {&frame.inputs, &frame.outputs})
        for (const ArrayId a : *arrays) at += frame.diagram().array(a).axes.size();
    for (const LaunchNumbers::Number& number : frame.numbers->all()) {
        const bool is_real = number.of_launch.is_real;
        const std::string bits = fmt::format("strides[{}]", at++);
        out.declare(is_real ? "const real" : "const Index", number.name,
                    fmt::format("{}({})", is_real ? "number_of_bits<real>" : "static_cast<Index>", bits));
    }
}

void write_memory_pointers(const Frame& frame, Lines& out) {
    std::size_t stride = 0;
    const auto declare = [&](const std::vector<ArrayId>& arrays, bool is_input) {
        for (std::size_t k = 0; k < arrays.size(); ++k) {
            const Array& a = frame.diagram().array(arrays[k]);
            const std::string& name = frame.memory.at(arrays[k]);
            const std::string type = (is_input ? "const " : "") + memory_type(a.type);
            if (is_input || !contains(frame.inputs, arrays[k])) {
                out.declare(type + "* const", name,
                            fmt::format("static_cast<{}*>({}[{}])", type, is_input ? "inputs" : "outputs", k));
                out.declare("const int64_t* const", frame.strides.at(arrays[k]), fmt::format("strides + {}", stride));
            }
            stride += a.axes.size();
        }
    };
    declare(frame.inputs, true);
    declare(frame.outputs, false);
}

void write_variable_pointers(const Frame& frame, Lines& out) {
    out("real* const base = static_cast<real*>(arena);");
    if (!frame.partials_name.empty())
        out(fmt::format("real* const {} = base + {};  // of {} warps", frame.partials_name, frame.partials_offset,
                        frame.schedule.warps.value));
    for (const VariableId id : frame.layouts.ids()) {
        const Layout& l = frame.layouts[id];
        const int inner = frame.place(id).innermost;
        if (frame.is_in_lanes(id) && !l.lives.empty() && !frame.shape(id).passes_by_rounds) {
            const LaneTile tile = *frame.shape(id).lanes;
            out(tile.axis < 0 ? fmt::format("real {};  // in every thread", frame.name(id))
                              : fmt::format("real {}[{}];  // of {} over all threads", frame.name(id), tile.values(),
                                            frame.span(tile.axis, l.scope).tile));
        }
        if (frame.is_in_accumulators(id))
            out(fmt::format("{} {}{};  // in those who add it up", accumulator_type(frame, id), frame.name(id),
                            accumulator_extents(frame, id)));
        if (!frame.is_held(id)) continue;
        std::string shape;
        for (std::size_t d = 0; d < l.sizes.size(); ++d)
            if (static_cast<int>(d) != inner) shape += std::to_string(l.sizes[d]) + " × ";
        shape += inner >= 0 ? std::to_string(l.sizes[at(inner)]) : "1";
        const std::string place = fmt::format("base + {}", l.offset);
        out(fmt::format(
            "{}* const {} = {};  // {}{}", frame.cell_type(id), frame.is_view(id) ? frame.copies[id] : frame.variables[id],
            frame.variable_facts[id].is_whole ? fmt::format("reinterpret_cast<int64_t*>({})", place) : place, shape,
            frame.is_panel(id)    ? ", one panel"
            : frame.is_packed(id) ? fmt::format(", panels of {}", frame.panel())
            : frame.lies_as_operand(id)
                ? fmt::format(" {}, stages: {}", name(frame.variable(id).memory_type), frame.place(id).stages)
                : ""));
    }
}

std::string whole_of_tiles(const Frame& frame, const char* what, const Expr& formula) {
    return any_varies(frame) ? frame.numbers->whole(what, formula)
                             : std::to_string(lower::whole_value(formula, frame.extents));
}

std::string num_tiles_text(const Frame& frame) {
    return whole_of_tiles(frame, "all_tiles", lower::SizeFormulas(frame.lowered).groups());
}

std::string section_text(const Frame& frame) {
    return whole_of_tiles(frame, "section_tiles", lower::SizeFormulas(frame.lowered).groups_of_section());
}

std::string blocks_text(const Frame& frame, const ScheduledLoop& loop) {
    const AxisId axis = loop.loop->axis;
    return frame.whole_text(fmt::format("blocks_{}_{}", frame.diagram().axis(axis).name, loop.scope),
                            lower::SizeFormulas(frame.lowered).k_blocks(loop));
}

std::string padded_text(const Frame& frame, AxisId axis, std::int64_t tile) {
    return frame.whole_text("padded_" + frame.diagram().axis(axis).name,
                            lower::rounded_up(lower::SizeFormulas(frame.lowered).size(axis), tile));
}

std::vector<std::pair<AxisId, std::string>> group_position(const Frame& frame, const std::string& group) {
    // The tiles of a cluster are a further digit.
    if (any_varies(frame) && !frame.in_cluster()) return position_in_any_order(frame, group);
    std::int64_t below = 1;
    std::vector<std::pair<AxisId, std::string>> begins;
    for (auto it = frame.group_order.rbegin(); it != frame.group_order.rend(); ++it) {
        const auto& [axis, tiles, stride, is_uneven, is_backward] = *it;
        if (tiles == 1) {
            const bool is_known = any_of(begins, [&, a = axis](const auto& b) { return b.first == a; });
            if (frame.span(axis, 0).begins && !is_known) begins.emplace_back(axis, "0");
            continue;
        }
        std::string text = below == 1 ? group : fmt::format("{} / {}", group, below);
        if (below * tiles != frame.num_groups()) text += fmt::format(" % {}", tiles);
        if (is_backward) text = fmt::format("({} - {})", tiles - 1, text);
        below *= tiles;
        const auto band = find_if(begins, [&, a = axis](const auto& b) { return b.first == a; });
        if (band != begins.end())
            band->second = fmt::format("({} + {} * {})", band->second, text, stride);
        else
            begins.emplace_back(axis, text);
    }
    for (auto& [axis, text] : begins)
        if (const std::int64_t tile = frame.span(axis, 0).tile; tile != 1 && text != "0")
            text += fmt::format(" * {}", tile);
    return begins;
}

void write_tiles_ahead(const Frame& frame, Lines& out) {
    for (const Prefetch& p : frame.schedule.prefetches) {
        if (p.ahead.value == 0 || p.fetched != Fetched::groups) continue;
        const Variable& v = frame.variable(p.variable);
        const std::string &name = frame.ahead.at(p.variable), group = name + "_group";
        out(fmt::format("const Index {} = min_index(group + {}, last_group - 1);", group, p.ahead.value));
        std::string position;
        for (const auto& [axis, text] : group_position(frame, group))
            for (std::size_t d = 0; d < v.dims.size(); ++d)
                if (v.dims[d].is_axis(axis))
                    position += fmt::format(" + {} * {}", text, stride_text(frame, p.variable, d));
        out(fmt::format("const real* const {} = {}{};", name, frame.memory.at(v.array), position));
    }
}
void write_k_block_bounds(const Frame& frame, Lines& out, const ScheduledLoop& node, const std::string& begin,
                          const std::string& from, const std::string& end, const std::string& to, const OwnRows* own) {
    const TileLoop& l = *node.loop;
    const Span& span = frame.span(l.axis, node.scope);
    const AxisId rows = frame.schedule.mma_m;
    const bool may_have_no_rows = own && frame.span(rows, 0).ragged;
    const bool is_fixed = l.support.empty() && !may_have_no_rows && !frame.shape(node).ranges &&
                          frame.shape(node).bounds.empty();
    out(fmt::format("{}Index {} = {}, {} = {};", is_fixed ? "const " : "", begin, from, end, to));
    if (may_have_no_rows) out(fmt::format("if ({} >= {}) {} = {};", own->first, frame.axis(rows).count, end, begin));
    for (const Affine& form : l.support) {
        const std::int64_t c = form.coefficient(l.axis);
        Affine rest = form;
        rest.add(l.axis, -c);
        const std::string most = highest(frame, rest, node.scope, own);
        ExprNames names = expression_names(frame);
        out(fmt::format("// {} >= 0", frame.form_text(form, names)));
        // A value that an Index does not hold may lie past the other end of the axis.
        const bool is_near = fits_index(frame, rest, node.scope);
        if (c == 0) {
            out(fmt::format("if ({} < 0) {} = 0;", most, end));
        } else if (c < 0) {
            const std::string last = fmt::format("floor_div({}, {}) + 1", most, -c);
            out(fmt::format("{0} = min_index({0}, {1});", end, is_near ? last : fmt::format("max_index({}, 0)", last)));
        } else {
            // The first K block that counts is the first whose last value reaches ceil(-most / c).
            const std::string first = fmt::format("-floor_div({}, {}) / {} * {}", most, c, span.tile, span.tile);
            const std::string past = padded_text(frame, l.axis, span.tile);
            out(fmt::format("{0} = max_index({0}, {1});", begin,
                            is_near ? first : fmt::format("min_index({}, {})", first, past)));
        }
    }
    write_k_block_range(frame, out, node, begin, end, own != nullptr);
    if (!own) write_bounds_of_tile(frame, out, node, begin, end);
}

}  // namespace napkin::writers
