#include "draw/seen.hpp"

#include <limits>
#include <utility>

#include "algebra/expr_walk.hpp"
#include "diagram/product.hpp"
#include "draw/box_text.hpp"
#include "support/ids.hpp"
#include "support/ranges.hpp"
#include "support/text.hpp"

namespace napkin::draw {
namespace {

std::vector<AxisId> axes_read(const Read& read) {
    return mapped<AxisId>(read.indices, [&](const Index& index) { return index.single_axis(); });
}

/// Without what stands in brackets, size(k) as k, signs as in print.
std::string without_indices(const std::string& text) {
    std::string out;
    int depth = 0;
    for (std::size_t i = 0; i < text.size(); ++i) {
        if (text[i] == '[') ++depth;
        if (depth == 0) out += text[i];
        if (text[i] == ']') --depth;
    }
    const auto replace = [&](std::string_view from, std::string_view to) {
        for (std::size_t at = out.find(from); at != std::string::npos; at = out.find(from, at + to.size()))
            out.replace(at, from.size(), to);
    };
    for (std::size_t at = out.find("size("); at != std::string::npos; at = out.find("size(", at)) {
        const std::size_t end = out.find(')', at);
        if (end == std::string::npos) break;
        out.erase(end, 1);
        out.erase(at, 5);
    }
    replace(" * ", "·");
    replace(" - ", " − ");
    replace(" <= ", " ≤ ");
    replace(" >= ", " ≥ ");
    replace(" == ", " = ");
    replace(" != ", " ≠ ");
    replace("-inf", "−∞");
    return out;
}

std::string reduce_name(ReduceOp op) {
    return op == ReduceOp::sum ? "Σ" : op == ReduceOp::prod ? "Π" : std::string(name(op));
}

/// Factors of a contraction that are no readings: numbers and sizes.
std::vector<Expr> scales_of(const Expr& body) {
    std::vector<Expr> out;
    for (const Expr& factor : factors_of(body))
        if (read_arrays(factor).empty()) out.push_back(factor);
    return out;
}

Expr without_casts(Expr e) {
    while (const auto* c = as<Cast>(e)) e = c->a;
    return e;
}

/// Indices that are more than an axis, each once, in brief.
std::vector<std::string> index_texts(const Expr& e, const ExprNames& names) {
    std::vector<std::string> out;
    for_each_postorder(e, [&](const Expr& node) {
        const auto* read = as<Read>(node);
        if (!read) return;
        for (const Index& index : read->indices) {
            if (index.single_axis() >= 0) continue;
            const std::string text = svg::shortened(without_indices(to_string(index, names)), 110, svg::small_text_size);
            if (!contains(out, text)) out.push_back(text);
        }
    });
    if (out.size() > 2) out.resize(2), out.emplace_back("…");
    return out;
}

SeenOperation seen(const Diagram& diagram, const Equation& equation) {
    Sign sign = sign_of(equation.reduce, equation.body, nullptr, equation.target, diagram.names());
    // A reindexing weave says where it reads.
    const std::vector<std::string> places = index_texts(equation.body, diagram.names());
    if (!places.empty()) {
        sign.label.push_back({(sign.label.empty() ? "at " : " at ") + join(places, ", ")});
        if (sign.shape == Shape::copy) sign.shape = Shape::box;
    }
    return {{equation.target}, equation.target,      readings_of(equation.body),  sign.shape,
            sign.label,        equation.reduce_axes, to_string(diagram, equation)};
}

/// Equations from..to as one operation.
SeenOperation together(const Diagram& diagram, std::size_t from, std::size_t to, const std::string& call) {
    SeenOperation out;
    std::vector<std::string> lines;
    for (std::size_t i = from; i < to; ++i) {
        const Equation& e = diagram.equations[i];
        out.targets.push_back(e.target);
        lines.push_back(to_string(diagram, e));
        for (const AxisId axis : e.reduce_axes)
            if (!contains(out.consumed, axis)) out.consumed.push_back(axis);
    }
    out.output = out.targets.back();
    for (std::size_t i = from; i < to; ++i)
        for (const Reading& r : readings_of(diagram.equations[i].body))
            if (!contains(out.targets, r.array) && !contains(out.readings, r)) out.readings.push_back(r);
    // Along an axis that is in the result; whatever else is reduced ends in it.
    const Array& result = diagram.array(out.output);
    const bool keeps = any_of(out.consumed, [&](AxisId a) { return contains(result.axes, a); });
    out.shape = keeps ? Shape::along : out.consumed.empty() ? Shape::box : Shape::reduction;
    out.label = {{svg::shortened_name(call, box_text_width, svg::small_text_size)}};
    out.description = join(lines, "\n");
    return out;
}

/// Whether equations from..to leave one array, the last, to the rest, and hold no contraction.
bool can_be_together(const Diagram& diagram, std::size_t from, std::size_t to) {
    std::vector<ArrayId> inner;
    for (std::size_t i = from; i < to; ++i) {
        const Equation& e = diagram.equations[i];
        if (is_contraction(e.reduce, e.body) && readings_of(e.body).size() > 1) return false;
        if (i + 1 < to) inner.push_back(e.target);
    }
    for (const ArrayId id : inner) {
        if (contains(diagram.outputs, id)) return false;
        for (std::size_t i = 0; i < diagram.equations.size(); ++i)
            if ((i < from || i >= to) && reads_array(diagram.equations[i].body, id)) return false;
    }
    return true;
}

}  // namespace

svg::Label size_label(std::string_view letter, std::string_view axis, std::string_view behind) {
    constexpr double most = 130;
    const std::string name = svg::shortened_name(axis, most) + std::string(behind);
    if (letter.empty()) return {{name, svg::Span::Shift::base, true}};
    return {{std::string(letter), svg::Span::Shift::base, true}, {name, svg::Span::Shift::sub, true}};
}

std::vector<Reading> readings_of(const Expr& e) {
    std::vector<Reading> out;
    for_each_postorder(e, [&](const Expr& node) {
        const auto* read = as<Read>(node);
        if (!read) return;
        Reading reading{read->array, axes_read(*read)};
        if (!contains(out, reading)) out.push_back(std::move(reading));
    });
    return out;
}

bool is_contraction(const std::optional<ReduceOp>& reduce, const Expr& body) {
    if (reduce != ReduceOp::sum) return false;
    std::size_t num_reads = 0;
    for (const Expr& factor : factors_of(body)) {
        if (as<Read>(without_casts(factor)))
            ++num_reads;
        else if (!read_arrays(factor).empty() || !free_axes(factor).empty())
            return false;
    }
    return num_reads >= 2;
}

std::string brief(const Expr& e, const ExprNames& names) {
    if (const auto* select = as<Select>(e)) {
        const auto* other = as<Constant>(select->b);
        if (other && other->value == -std::numeric_limits<double>::infinity())
            return brief(select->a, names) + ", mask: " + brief(select->condition, names);
    }
    return without_indices(to_string(e, names));
}

svg::Label formula_label(const std::string& text) {
    svg::Label out;
    std::string plain;
    const auto end_plain = [&] {
        if (!plain.empty()) out.push_back({std::exchange(plain, {})});
    };
    for (std::size_t i = 0; i < text.size(); ++i) {
        std::size_t end = i + 1;
        if (text[i] == '^')
            while (end < text.size() && (std::string_view("0123456789.").find(text[end]) != std::string_view::npos ||
                                         (end == i + 1 && text[end] == '-')))
                ++end;
        if (end == i + 1) {
            plain += text[i];
            continue;
        }
        end_plain();
        std::string power = text.substr(i + 1, end - i - 1);
        if (power[0] == '-') power.replace(0, 1, "−");
        out.push_back({power, svg::Span::Shift::super});
        i = end - 1;
    }
    end_plain();
    return out;
}

Sign sign_of(const std::optional<ReduceOp>& reduce, const Expr& body, const Expr& carry, ArrayId target,
             const ExprNames& names) {
    const std::string by = reduce ? reduce_name(*reduce) : "";
    std::string carried;
    if (carry) {
        const auto* same = as<Read>(carry);
        // A state that is only added to needs no word.
        carried = same && same->array == target ? "" : brief(carry, names) + (reduce == ReduceOp::sum ? " + " : "");
    }
    if (is_contraction(reduce, body)) {
        std::string text;
        for (const Expr& scale : scales_of(body)) text += "·" + brief(scale, names);
        if (!carried.empty() || !text.empty()) text = carried + "Σ" + text;
        return {Shape::contraction, formula_label(text)};
    }
    if (reduce) {
        const bool plain = as<Read>(without_casts(body)) != nullptr;
        return {Shape::reduction, formula_label(carried + by + (plain ? "" : " " + brief(body, names)))};
    }
    if (!carry && as<Read>(body)) return {Shape::copy, {}};
    return {Shape::box, formula_label(carried + brief(body, names))};
}

std::vector<SeenOperation> single_operations(const Diagram& diagram) {
    return mapped<SeenOperation>(diagram.equations, [&](const Equation& equation) { return seen(diagram, equation); });
}

std::vector<SeenOperation> seen_operations(const Diagram& diagram) {
    std::vector<SeenOperation> out;
    const auto& equations = diagram.equations;
    for (std::size_t i = 0; i < equations.size();) {
        const Equation& first = equations[i];
        std::size_t end = i + 1;
        std::string call;
        // The outermost call that can be one operation.
        for (std::size_t depth = 1; depth <= first.inlined.size() && call.empty(); ++depth) {
            const auto is_of_it = [&](const Equation& e) {
                return e.range == first.range && e.inlined.size() >= depth &&
                       std::equal(first.inlined.begin(), first.inlined.begin() + static_cast<std::ptrdiff_t>(depth),
                                  e.inlined.begin());
            };
            std::size_t to = i + 1;
            while (to < equations.size() && is_of_it(equations[to])) ++to;
            if (to > i + 1 && can_be_together(diagram, i, to)) end = to, call = first.inlined[depth - 1];
        }
        out.push_back(call.empty() ? seen(diagram, first) : together(diagram, i, end, call));
        i = end;
    }
    return out;
}

}  // namespace napkin::draw
