// Sizes: the text's `sizes`, those that axes take from the dimensions they index, and whether they agree.
#include <fmt/format.h>

#include <cmath>

#include "algebra/number.hpp"
#include "support/limits.hpp"
#include "support/ranges.hpp"
#include "support/result.hpp"
#include "syntax/elaborator.hpp"

namespace napkin {
namespace {

/// More terms than this in one size are a mistake, and would take long.
constexpr std::size_t max_terms = 64;

bool leads_to(const Diagram& diagram, const Size& from, AxisId wanted, std::set<Symbol>& seen) {
    for (const Symbol symbol : from.symbols()) {
        if (symbol == axis_symbol(wanted)) return true;
        if (!seen.insert(symbol).second) continue;
        const auto& size = diagram.axis(symbol.axis()).size;
        if (size && leads_to(diagram, *size, wanted, seen)) return true;
    }
    return false;
}

}  // namespace

std::optional<Size> Elaborator::lower_size_expression(const AstNode& node) {
    if (const auto* n = std::get_if<AstNumber>(&node.v)) {
        if (n->value != std::floor(n->value)) {
            error(Code::size_not_integer, node.range, fmt::format("the size {} is not a whole number", n->value),
                  "a whole number");
            return std::nullopt;
        }
        const bool large = n->integer ? n->whole > limits::max_size_product || n->whole < -limits::max_size_product
                                      : std::abs(n->value) > static_cast<double>(limits::max_size_product);
        if (large) {
            error(Code::size_too_large, node.range, fmt::format("the size {} is too large", n->value),
                  fmt::format("at most {}", limits::max_size_product));
            return std::nullopt;
        }
        return Size(n->integer ? n->whole : static_cast<std::int64_t>(n->value));
    }
    const auto* name = std::get_if<AstName>(&node.v);
    std::string axis_name = name ? name->name : "";
    if (const auto* call = std::get_if<AstCall>(&node.v); call && call->name.text == "size" && call->arguments.size() == 1) {
        if (const auto* word = std::get_if<AstName>(&call->arguments[0].v)) axis_name = word->name;
    }
    if (!axis_name.empty()) {
        if (!axis_names_.contains(axis_name)) {
            error(Code::unknown_size_axis, node.range, fmt::format("there is no axis {}", axis_name),
                  fmt::format("an axis of {}", d_.name), did_you_mean(axis_name, axis_names()));
            return std::nullopt;
        }
        return Size(axis_symbol(axis(axis_name)));
    }
    if (const auto* n = std::get_if<AstUnary>(&node.v); n && n->op == UnaryOp::neg) {
        const auto a = lower_size_expression(n->operand[0]);
        return a ? std::optional(Size(std::int64_t{0}) - *a) : std::nullopt;
    }
    if (const auto* n = std::get_if<AstBinary>(&node.v)) {
        const auto a = lower_size_expression(n->operands[0]);
        const auto b = lower_size_expression(n->operands[1]);
        if (!a || !b) return std::nullopt;
        if (const auto x = a->as_constant(), y = b->as_constant(); x && y) {
            const double value = apply(n->op, x->to_double(), y->to_double());
            if (std::abs(value) > static_cast<double>(limits::max_size_product)) {
                error(Code::size_too_large, node.range, fmt::format("the size {} is too large", value),
                      fmt::format("at most {}", limits::max_size_product));
                return std::nullopt;
            }
        }
        try {
            switch (n->op) {
                case BinaryOp::add: return *a + *b;
                case BinaryOp::sub: return *a - *b;
                case BinaryOp::mul:
                    if (a->terms().size() * b->terms().size() <= max_terms) return *a * *b;
                    break;
                case BinaryOp::div:
                    if (b->terms().size() == 1) return *a / *b;
                    break;
                case BinaryOp::pow:
                    if (const auto exponent = b->as_constant();
                        exponent && exponent->is_integer() && std::abs(exponent->to_double()) <= 62 &&
                        (a->terms().size() <= 1 || std::abs(exponent->to_double()) <= 3)) {
                        if (a->is_zero() && exponent->numerator() < 0) break;
                        if (const auto power = a->pow(*exponent)) return power;
                    }
                    break;
                default: break;
            }
        } catch (const InternalError&) {
            // The exact arithmetic of sizes gives up past 64 bits; here it is the text that asks for that.
            error(Code::size_too_large, node.range, "the size is too large",
                  fmt::format("at most {}", limits::max_size_product));
            return std::nullopt;
        }
    }
    error(Code::bad_size_expression, node.range, "this cannot be a size",
          "whole numbers and axes with + - * and ^, such as n - w + 1");
    return std::nullopt;
}

/// Lengths that are data: F[b] .. F[b + 1], or L[b].
std::optional<JaggedAxis> Elaborator::lower_lengths(const AstSize& entry) {
    const auto fail = [&](const AstNode& node, const std::string& message, const std::string& expected) {
        error(Code::bad_lengths, node.range, message, expected);
        return std::nullopt;
    };
    if (&ast_ != library_.main())
        return fail(*entry.value, fmt::format("{} is called, and its lengths are data", d_.name),
                    "lengths of the main diagram's axes");
    const std::size_t before = errors();
    JaggedAxis out{-1, nullptr, nullptr};
    for (const AstNode* node : {&*entry.value, entry.last ? &*entry.last : nullptr}) {
        if (!node) continue;
        std::vector<AxisId> all;
        for (const AxisId id : d_.axes.ids()) all.push_back(id);
        const Expr e = lower(*node, {all, d_.name, node->range});
        if (errors() > before) return std::nullopt;
        const auto* r = as<Read>(e);
        const bool is_plain = r && d_.array(r->array).role == ArrayRole::input &&
                              is_integer(kind_of(d_.array(r->array).type)) &&
                              all_of(r->indices, [](const Index& i) { return i.affine() && i.axes().size() == 1; });
        if (!is_plain)
            return fail(*node, "this is no length", "an element of an argument of whole numbers, such as L[b]");
        (node == &*entry.value && entry.last ? out.first : out.last) = e;
    }
    if (!out.first) return out;
    const Read &first = *as<Read>(out.first), &last = *as<Read>(out.last);
    const bool is_next = first.array == last.array && first.indices.size() == 1 && first.indices[0].single_axis() >= 0 &&
                         *last.indices[0].affine() == *first.indices[0].affine() + Affine{{}, 1, {}};
    if (!is_next) return fail(*entry.last, "rows end where those of the next sequence begin", "F[b] .. F[b + 1]");
    return out;
}

/// The axes whose lengths are data. Those of packed rows are named before sizes are given to them.
void Elaborator::apply_lengths() {
    const auto apply = [&](const std::vector<AstSize>& entries) {
        for (const AstSize& entry : entries) {
            const bool is_ours = any_of(entry.names, [&](const AstWord& word) { return axes_.contains(word.text); });
            if (!entry.is_data() || !is_ours) continue;
            auto lengths = lower_lengths(entry);
            for (const AstWord& word : entry.names) {
                if (!lengths) break;
                lengths->axis = axis(word.text);
                if (lengths->first) {
                    const AxisId by = free_axes(lengths->first)[0];
                    const std::string name = d_.axis(by).name + word.text;
                    lengths->rows = axis(is_array(name) ? unique_name(name) : name);
                }
                lengths->range = word.range;
                out_.jagged.push_back(*lengths);
            }
        }
    };
    if (&ast_ == library_.main()) apply(library_.module().sizes);
    apply(ast_.sizes);
}

void Elaborator::suggest_size(AxisId axis, Size size) { suggested_sizes_.emplace_back(axis, std::move(size)); }

void Elaborator::apply_sizes() {
    apply_lengths();
    // The text's own entries; those beside the definition stand before the definition's own.
    std::map<std::string, SourceRange> given;
    const auto apply = [&](const std::vector<AstSize>& entries, bool outer) {
        std::set<std::string> here;
        for (const AstSize& entry : entries) {
            // Entries beside the definitions are for the main diagram and may name axes that this one does not have.
            const bool ours = any_of(entry.names, [&](const AstWord& word) { return axes_.contains(word.text); });
            if (entry.is_data() || (outer && !ours)) continue;
            std::optional<Size> size;
            if (entry.value) {
                size = lower_size_expression(*entry.value);
                if (!size) {
                    for (const AstWord& word : entry.names) given.try_emplace(word.text, word.range);
                    continue;
                }
                if (const auto number = size->as_constant()) {
                    if (!number->is_integer()) {
                        error(Code::size_not_integer, entry.value->range,
                              fmt::format("the size {} is not a whole number", to_string(*number)), "a whole number");
                        continue;
                    }
                    if (number->numerator() < 0) {
                        error(Code::bad_size, entry.value->range,
                              fmt::format("the size of {} cannot be {}", entry.names[0].text, number->numerator()),
                              "at least 0");
                        continue;
                    }
                    if (number->numerator() > limits::max_size_product) {
                        error(Code::size_too_large, entry.value->range,
                              fmt::format("the size of {} is too large", entry.names[0].text),
                              fmt::format("at most {}", limits::max_size_product));
                        continue;
                    }
                }
            }
            for (const AstWord& word : entry.names) {
                if (outer && !axes_.contains(word.text)) continue;
                if (!here.insert(word.text).second) {
                    if (!outer) {
                        diagnostics_
                            .error(Code::duplicate_size, word.range, fmt::format("{} is given a size twice", word.text),
                                   "one size for each axis")
                            .notes.push_back({given[word.text], "the first stands here"});
                    }
                    continue;
                }
                if (!given.try_emplace(word.text, word.range).second) continue;
                const AxisId id = axis(word.text);
                d_.axes[id].is_any = entry.is_any;
                if (!size) continue;
                std::set<Symbol> seen;
                if (leads_to(d_, *size, id, seen)) {
                    error(Code::size_cycle, word.range, fmt::format("the size of {} depends on itself", word.text),
                          "a number, or axes whose sizes are given");
                    continue;
                }
                d_.axes[id].size = size;
            }
        }
    };
    if (&ast_ == library_.main()) apply(library_.module().sizes, true);
    apply(ast_.sizes, false);

    // An axis without a size of its own takes that of the dimension it indexes; then what called definitions say.
    const auto take = [&](AxisId id, const Size& size) {
        Axis& target = d_.axes[id];
        std::set<Symbol> seen;
        if (target.size || given.contains(target.name) || leads_to(d_, size, id, seen)) return;
        target.size = size;
    };
    for (const PlainIndex& p : plain_indices_) {
        if (!is_of_input(p.axis)) take(p.axis, axis_symbol(p.dimension));
    }
    for (const auto& [id, size] : suggested_sizes_) take(id, size);

    // A size that follows from one of any size is one, too. Sizes lead to each other in no circle.
    for (std::size_t changed = 1; changed > 0;) {
        changed = 0;
        for (Axis& axis : d_.axes) {
            if (axis.is_any || !axis.size) continue;
            axis.is_any = any_of(axis.size->symbols(), [&](Symbol s) { return d_.axis(s.axis()).is_any; });
            changed += axis.is_any ? 1 : 0;
        }
    }
}

/// A plain index whose axis has another size than the dimension is most likely the wrong axis; a part of an array is
/// read with an offset.
void Elaborator::check_size_agreement() {
    const auto number = [&](AxisId id) -> std::optional<std::int64_t> {
        const auto& size = d_.axis(id).size;
        const auto value = size ? size->as_constant() : std::nullopt;
        return value && value->is_integer() ? std::optional(value->numerator()) : std::nullopt;
    };
    std::set<std::pair<AxisId, AxisId>> reported;
    for (const PlainIndex& p : plain_indices_) {
        const auto given = number(p.axis), wanted = number(p.dimension);
        if (!given || !wanted || *given == *wanted || !reported.insert({p.axis, p.dimension}).second) continue;
        const std::string& axis = d_.axis(p.axis).name;
        diagnostics_
            .error(Code::size_mismatch, p.range,
                   fmt::format("{} has the size {}, and this dimension of {} is {} = {}", axis, *given,
                               d_.array(p.array).name, d_.axis(p.dimension).name, *wanted),
                   fmt::format("an axis of size {}", *wanted),
                   *given < *wanted ? fmt::format("to read only the first {}, write {} + 0", *given, axis) : "")
            .notes.push_back({d_.array(p.array).range, fmt::format("{} is declared here", d_.array(p.array).name)});
    }
}

}  // namespace napkin
