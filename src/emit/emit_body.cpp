#include "emit/emit_body.hpp"

#include <fmt/format.h>

#include <array>
#include <cmath>

#include "emit/emit_index.hpp"
#include "emit/emit_write.hpp"
#include "emit/operator_text.hpp"
#include "support/ranges.hpp"
#include "support/result.hpp"

namespace napkin::writers {

BodyWriter::BodyWriter(const Frame& frame, const Step& step, const lower::MathChoices& math, std::vector<AxisId> loops,
                       int point_level, Names& names)
    : frame_(frame),
      step_(step),
      atom_(frame.atom(step)),
      scope_(step.scope),
      loops_(std::move(loops)),
      point_level_(point_level),
      names_(names),
      integer_values_(frame),
      math_(math) {}

ValueId BodyWriter::add_root(const Expr& e, int level, bool vectors, bool rows, bool whole) {
    const ValueId id = whole ? as_whole(lower(e)) : as_number(lower(e));
    roots_[id] = {level, vectors, rows};
    return id;
}

ValueId BodyWriter::add_factors(const LaneProduct& product, int level) {
    const ValueId id = op("{0}, {1}", {read_value(*product.a), read_value(*product.b)}, 0, {0, 0});
    at(id).is_given = true;  // two values take no name
    roots_[id] = {level, true, true};
    return id;
}

ValueId BodyWriter::add_factor(const Read& r, int level) {
    const ValueId id = read_value(r);
    roots_[id] = {level, true, false};
    return id;
}

// ---- where values stand
// ------------------------------------------------------------

void BodyWriter::reach(ValueId id, ValueId root) {
    if (!at(id).roots.insert(root).second) return;
    for (const ValueId a : at(id).args) reach(a, root);
}

void BodyWriter::decide() {
    for (const auto& [id, root] : roots_) {
        reach(id, id);
        Value& v = at(id);
        ++v.uses;
        v.is_moved |= v.level != root.level || tall(v) != (root.rows && atom_.rows > 1) ||
                      (root.vectors && wide(v) != (atom_.vectors > 1));
    }
    // Consumers have larger ids than what they consume.
    for (std::size_t k = values_.size(); k-- > 0;) {
        const Value& v = values_[k];
        if (v.roots.empty()) continue;
        for (const ValueId id : v.args) {
            Value& a = at(id);
            ++a.uses;
            a.is_moved |= a.level != v.level || tall(a) != tall(v) || wide(a) != wide(v);
        }
    }
    for (Value& v : values_) {
        if (v.roots.empty() || v.is_constant || v.is_given || (v.uses < 2 && !v.is_moved && !v.is_pointer && !v.is_run))
            continue;
        v.in_statement = v.roots.size() == 1 && roots_.at(*v.roots.begin()).level == v.level;
        v.array_vectors = wide(v) && (!v.in_statement || (!v.row && atom_.rows > 1));
        v.array_rows = tall(v) && (!v.in_statement || v.is_run);
        v.name = names_.add(v.is_pointer || v.hint == "t" ? v.hint : v.hint + "_at");
    }
}

// ---- text
// ------------------------------------------------------------

std::string BodyWriter::loop_name(AxisId axis) const {
    return frame_.span(axis, scope_).tile > frame_.block_size(atom_, axis) ? frame_.axis(axis).local : "";
}

int BodyWriter::level_of(AxisId axis) const {
    const auto it = find(loops_, axis);
    return it == loops_.end() ? 0 : static_cast<int>(it - loops_.begin()) + 1;
}

std::string BodyWriter::position(VariableId variable, const Address& address, bool vectors, Part part) const {
    // Panels of a packed tile lie one after the other, so the vector axis has a stride of its own from panel to panel.
    const std::int64_t panel_step = frame_.is_packed(variable) ? frame_.layout(variable).panel_stride / frame_.panel() : 1;
    std::vector<std::pair<AxisId, std::int64_t>> terms(address.local.begin(), address.local.end());
    stable_sort(terms, [](const auto& a, const auto& b) { return std::abs(a.second) > std::abs(b.second); });
    std::string out;
    // The stride of a view may be an argument.
    const auto step_text = [&](AxisId axis, std::int64_t size) {
        const Variable& v = frame_.variable(variable);
        for (std::size_t d = 0; axis >= 0 && frame_.is_view(variable) && d < v.dims.size(); ++d)
            if (v.dims[d].single_axis() == axis && frame_.layout(variable).strides[d] == size)
                return stride_text(frame_, variable, d);
        return std::to_string(size);
    };
    const auto add = [&](const std::string& what, bool is_sum, std::int64_t factor, AxisId axis = -1) {
        if (what.empty()) return;
        const std::int64_t size = std::abs(factor);
        const std::string step = step_text(axis, size);
        const bool brackets = is_sum && (step != "1" || factor < 0);
        std::string term = brackets ? "(" + what + ")" : what;
        if (step != "1") term += " * " + step;
        out += out.empty() ? (factor < 0 ? "-" : "") + term : (factor < 0 ? " - " : " + ") + term;
    };
    for (const auto& [axis, factor] : terms) {
        const bool is_vector = axis == atom_.vector_axis, is_row = axis == atom_.row_axis,
                   fixes = level_of(axis) <= point_level_;
        std::string loop = is_vector && frame_.is_panel(variable) ? "" : loop_name(axis);
        if (is_vector && panel_step != 1 && !loop.empty()) loop += fmt::format(" * {}", panel_step);
        if (part == (fixes ? Part::rest : Part::fixed)) loop.clear();
        const bool in_block = part != Part::fixed;
        const bool j = in_block && is_vector && vectors && atom_.vectors > 1, i = in_block && is_row && atom_.rows > 1;
        if (loop.empty() && j)
            add(fmt::format("{} * j", frame_.lanes * std::abs(factor)), false, factor < 0 ? -1 : 1);
        else if (j)
            add(fmt::format("{} + {} * j", loop, frame_.lanes), true, factor, axis);
        else if (loop.empty() && i)
            add("i", false, factor, axis);
        else if (i)
            add(loop + " + i", true, factor, axis);
        else
            add(loop, false, factor, axis);
    }
    if (part != Part::rest)
        for (const auto& [axis, factor] : address.begin) add(frame_.axis(axis).begin, false, factor, axis);
    const std::int64_t constant = part == Part::fixed ? 0 : address.constant;
    if (constant != 0)
        out += out.empty() ? std::to_string(constant)
                           : fmt::format(" {} {}", constant < 0 ? "-" : "+", std::abs(constant));
    return out.empty() && part != Part::fixed ? "0" : out;
}

std::string BodyWriter::text_at(ValueId id, int precedence) const {
    const Value& v = at(id);
    if (!v.name.empty()) return v.name + (v.array_rows ? "[i]" : "") + (v.array_vectors ? "[j]" : "");
    std::string text = definition(id);
    return v.precedence < precedence ? "(" + text + ")" : text;
}

std::string BodyWriter::definition(ValueId id) const {
    const Value& v = at(id);
    std::array<std::string, 3> texts;
    for (std::size_t k = 0; k < v.args.size(); ++k) {
        const Use use = v.argument_use[k];
        texts[k] = text_at(v.args[k], use == Use::plain ? v.argument_precedence[k] : 0);
        if (use == Use::splat) texts[k] = fmt::format("splat({})", texts[k]);
        if (use == Use::splat_mask) texts[k] = fmt::format("splat_mask<real>({})", texts[k]);
    }
    if (v.args.empty()) return v.pattern;
    return fmt::format(fmt::runtime(v.pattern), texts[0], texts[1], texts[2]);
}

std::string BodyWriter::declaration(ValueId id) const {
    const Value& v = at(id);
    if (v.is_whole) return v.is_pointer ? "int64_t*" : "int64_t";
    if (v.is_pointer) return "real*";
    return v.is_mask ? (v.vec ? "mask" : "bool") : (v.vec ? "vec" : "real");
}

std::string BodyWriter::rows_header() const { return fmt::format("EACH(i, {})", atom_.rows); }
std::string BodyWriter::vectors_header() const { return fmt::format("EACH(j, {})", atom_.vectors); }

void BodyWriter::declare_array(Lines& out, ValueId id) const {
    const Value& v = at(id);
    out(fmt::format("{} {}{}{};", declaration(id), v.name, v.array_rows ? fmt::format("[{}]", atom_.rows) : "",
                    v.array_vectors ? fmt::format("[{}]", atom_.vectors) : ""));
    if (v.is_run) return out(fmt::format(fmt::runtime(v.pattern), v.name));
    // A block of rows uses what is loaded here several times, but the compiler would load it each time. A mask is no
    // longer what is loaded, and a comparison's own type is not every compiler's type of masks.
    std::string value = definition(id);
    if (v.in_statement && !v.is_mask && value.starts_with("load")) value = fmt::format("keep({})", value);
    out(fmt::format("{}{}{} = {};", v.array_rows ? rows_header() + " " : "",
                    v.array_vectors ? vectors_header() + " " : "", text_at(id, 0), value));
}

void BodyWriter::hoist(Lines& out, int level) {
    for (std::size_t k = 0; k < values_.size(); ++k) {
        const Value& v = values_[k];
        if (v.name.empty() || v.in_statement || v.level != level) continue;
        const auto id = static_cast<ValueId>(k);
        if (v.array_rows || v.array_vectors)
            declare_array(out, id);
        else if (v.is_pointer)
            out(fmt::format("const {} const {} = {};", declaration(id), v.name, definition(id)));
        else
            out(fmt::format("const {} {} = {};", declaration(id), v.name, definition(id)));
    }
}

void BodyWriter::statement(Lines& out, ValueId root, const std::function<std::string(const std::string&)>& write) {
    const bool rows = roots_.at(root).rows && atom_.rows > 1, vectors = roots_.at(root).vectors && atom_.vectors > 1;
    // Classes by the innermost of the loops i and j in which a value stands: 0 before both, 1 in i, 2 in j.
    const auto place = [&](const Value& v) {
        return wide(v) && !v.array_vectors ? 2 : tall(v) && !v.array_rows ? 1 : 0;
    };
    const auto emit = [&](int wanted) {
        for (std::size_t k = 0; k < values_.size(); ++k) {
            const Value& v = values_[k];
            if (v.name.empty() || !v.in_statement || !v.roots.contains(root) || place(v) != wanted) continue;
            const auto id = static_cast<ValueId>(k);
            if (v.array_vectors || v.array_rows)
                declare_array(out, id);
            else
                out(fmt::format("const {} {} = {};", declaration(id), v.name, definition(id)));
        }
    };
    const auto any = [&](int wanted) {
        return any_of(values_, [&](const Value& v) {
            return !v.name.empty() && v.in_statement && v.roots.contains(root) && place(v) == wanted;
        });
    };
    emit(0);
    const bool open_rows = rows && (any(1) || any(2)), open_vectors = vectors && any(2);
    std::string header;
    if (rows) {
        if (open_rows)
            out.open(rows_header());
        else
            header += rows_header() + " ";
    }
    emit(1);
    if (vectors) {
        if (open_vectors)
            out.open(header + vectors_header()), header.clear();
        else
            header += vectors_header() + " ";
    }
    emit(2);
    out(header + write(text_at(root, 0)));
    if (open_vectors) out.close();
    if (open_rows) out.close();
}

}  // namespace napkin::writers
