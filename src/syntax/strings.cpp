// Sugar that people paste: einsum("qk,xk->qx", Q, K), rearrange("b h q d -> b q h d", X), reduce("r c -> r", "max", X).
//
// A name of the string stands for an axis. It is the target's at the same place, else the operand's own at the place
// where the name first stands, else a fresh one.
#include <fmt/format.h>

#include "support/limits.hpp"
#include "support/ranges.hpp"
#include "support/text.hpp"
#include "syntax/elaborator.hpp"

namespace napkin {
namespace {

constexpr std::size_t max_operands = 64;

struct Term {
    std::vector<AstWord> names;
    SourceRange range;
};

/// One side of a string by terms: offsets are those of the text, for the carets.
struct Pattern {
    std::vector<Term> operands;
    std::optional<Term> output;
};

}  // namespace

std::optional<Body> Elaborator::lower_string_call(const AstCall& n, const AstNode& node, const Frame& frame,
                                                  const std::vector<AxisId>* target, std::vector<AxisId>* infer) {
    const std::string& function = n.name.text;
    const bool einsum = function == "einsum";
    const bool reduction = function == "reduce";
    const std::string usage = einsum      ? "einsum(\"qk,xk->qx\", Q, K)"
                              : reduction ? "reduce(\"r c -> r\", \"max\", X)"
                                          : "rearrange(\"b h d -> h b d\", X)";

    // Strings and arrays in whichever order the user's library has them.
    std::vector<const AstNode*> strings, arrays;
    for (const AstNode& argument : n.arguments)
        (std::holds_alternative<AstString>(argument.v) ? strings : arrays).push_back(&argument);
    if (strings.empty()) {
        error(Code::string_expected, n.arguments.empty() ? node.range : n.arguments[0].range,
              fmt::format("{} needs a string of axis names", function), usage);
        return std::nullopt;
    }
    const std::size_t wanted_strings = reduction ? 2 : 1;
    if (strings.size() != wanted_strings) {
        error(reduction && strings.size() == 1 ? Code::string_expected : Code::misplaced_string, strings.back()->range,
              reduction && strings.size() == 1 ? "the reduction is missing" : "one string too many", usage);
        return std::nullopt;
    }
    const bool pattern_last = reduction && std::get<AstString>(strings[0]->v).text.find("->") == std::string::npos;
    const AstNode& pattern_node = *strings[pattern_last ? 1 : 0];
    const std::string text = std::get<AstString>(pattern_node.v).text;
    const auto place = [&](std::size_t begin, std::size_t end) {
        const std::uint32_t first = pattern_node.range.begin + 1;
        return SourceRange{pattern_node.range.source, first + static_cast<std::uint32_t>(begin),
                           first + static_cast<std::uint32_t>(end)};
    };

    const std::size_t arrow = text.find("->");
    if (arrow == std::string::npos) {
        error(Code::bad_einsum, pattern_node.range, "the string does not say what stays",
              "-> and the names of the result's axes", usage);
        return std::nullopt;
    }
    if (const std::size_t parenthesis = text.find_first_of("()"); parenthesis != std::string::npos) {
        error(Code::einops_grouping, place(parenthesis, parenthesis + 1), "axes cannot be split or joined in a string",
              "the names of axes, in some order",
              "keep the axes apart; a joined one is split by its index: X[b, 64*h + d]");
        return std::nullopt;
    }

    // Terms; names are letters, or words where some term has spaces inside.
    Pattern pattern;
    struct Span {
        std::size_t begin, end;
    };
    std::vector<Span> spans;
    for (std::size_t at = 0;;) {
        const std::size_t comma = std::min(text.find(',', at), arrow);
        spans.push_back({at, comma});
        if (comma >= arrow) break;
        at = comma + 1;
    }
    spans.push_back({arrow + 2, text.size()});
    bool words = !einsum;
    for (Span& span : spans) {
        while (span.begin < span.end && text[span.begin] == ' ') ++span.begin;
        while (span.begin < span.end && text[span.end - 1] == ' ') --span.end;
        words |= text.substr(span.begin, span.end - span.begin).find(' ') != std::string::npos;
    }
    for (std::size_t i = 0; i < spans.size(); ++i) {
        Term term{{}, place(spans[i].begin, spans[i].end)};
        for (std::size_t at = spans[i].begin; at < spans[i].end;) {
            if (text[at] == ' ') {
                ++at;
                continue;
            }
            std::size_t end = at;
            while (end < spans[i].end && is_name_character(text[end]) && (words || end == at)) ++end;
            const bool letter = end > at && !(text[at] >= '0' && text[at] <= '9');
            if (!letter) {
                error(Code::bad_einsum, place(at, std::max(end, at + 1)), "this is no name of an axis",
                      "letters, and words between spaces",
                      text[at] == '.' ? "write the axes out; a string has no '...' here" : "");
                return std::nullopt;
            }
            term.names.push_back({text.substr(at, end - at), place(at, end)});
            at = end;
        }
        if (i + 1 < spans.size()) {
            pattern.operands.push_back(std::move(term));
        } else {
            pattern.output = std::move(term);
        }
    }

    if (arrays.size() != pattern.operands.size() || arrays.empty()) {
        error(Code::einsum_operand_count, node.range,
              fmt::format("the string has {} and the call {}", counted(pattern.operands.size(), "term"),
                          counted(arrays.size(), "array")),
              "an array for each term before ->", usage);
        return std::nullopt;
    }
    for (const Term& term : pattern.operands) {
        if (term.names.size() <= limits::max_axes_per_array && pattern.output->names.size() <= limits::max_axes_per_array)
            continue;
        error(Code::too_many_axes, term.range, "a term has too many names",
              fmt::format("at most {}", limits::max_axes_per_array));
        return std::nullopt;
    }
    if (arrays.size() > max_operands) {
        error(Code::einsum_operand_count, arrays[max_operands]->range,
              fmt::format("the call has {}", counted(arrays.size(), "array")), fmt::format("at most {}", max_operands),
              "multiply some of them in an equation of its own");
        return std::nullopt;
    }
    const std::size_t before = errors();
    for (std::size_t i = 0; i < pattern.output->names.size(); ++i) {
        const AstWord& word = pattern.output->names[i];
        const auto same = [&](const AstWord& other) { return other.text == word.text; };
        const bool known = any_of(pattern.operands, [&](const Term& t) { return any_of(t.names, same); });
        if (!known)
            error(Code::einsum_output, word.range,
                  fmt::format("{} stands after -> and in no term before it", word.text), "a name of some operand");
        if (std::any_of(pattern.output->names.begin(), pattern.output->names.begin() + static_cast<std::ptrdiff_t>(i), same)) {
            error(Code::einsum_output, word.range, fmt::format("{} stands twice after ->", word.text), "each name once");
        }
    }

    // Operands.
    std::vector<ArrayOperand> operands(arrays.size());
    std::set<AxisId> woven;
    for (std::size_t p = 0; p < arrays.size(); ++p) {
        const Term& term = pattern.operands[p];
        // The rank is the string's; a mismatch is said in its terms.
        const auto* bare = std::get_if<AstName>(&arrays[p]->v);
        const auto* indexed = std::get_if<AstIndexed>(&arrays[p]->v);
        const std::string name = bare ? bare->name : indexed ? indexed->name.text : "";
        const auto known = arrays_.find(name);
        if (known != arrays_.end() && defined_.contains(name) && known->second.shape_known) {
            const std::size_t total = d_.array(known->second.id).axes.size();
            std::size_t written = 0;
            if (indexed) {
                written = indexed->indices.size();
                const bool points = any_of(indexed->indices,
                                           [](const AstNode& i) { return std::holds_alternative<AstEllipsis>(i.v); });
                if (points) --written;
                if (!points) written = 0;
            }
            if (total != written + term.names.size()) {
                diagnostics_
                    .error(Code::einsum_rank, term.range,
                           fmt::format("the term has {} for {}", counted(term.names.size(), "name"), name),
                           fmt::format("{}: {}", counted(total - std::min(written, total), "name"),
                                       array_text(known->second.id)),
                           einsum && !words && total > 0 && term.names.size() > total
                               ? "names of several letters stand between spaces: \"batch head, head -> batch\""
                               : "")
                    .notes.push_back({d_.array(known->second.id).range, fmt::format("{} is declared here", name)});
                continue;
            }
        }
        if (!array_operand(*arrays[p], term.names.size(), "the string", frame, operands[p])) continue;
        for (const auto& index : operands[p].indices) {
            if (!index) continue;
            for (const AxisId a : index->axes()) woven.insert(a);
        }
    }
    if (errors() > before) return std::nullopt;
    if (any_of(operands, [](const ArrayOperand& o) { return o.array < 0; })) return std::nullopt;  // reported elsewhere

    if (!einsum && !reduction) {
        auto names_of = [](const Term& t) {
            std::vector<std::string> names;
            for (const AstWord& word : t.names) names.push_back(word.text);
            sort(names);
            return names;
        };
        if (names_of(pattern.operands[0]) != names_of(*pattern.output)) {
            error(Code::not_a_permutation, pattern_node.range, "rearrange must keep every axis",
                  "the same names on both sides of ->", "einsum or reduce takes axes away");
            return std::nullopt;
        }
    }

    // Names to axes.
    std::map<std::string, AxisId> axes;
    std::set<AxisId> used = woven;
    if (target) {
        std::vector<AxisId> given;
        for (const AxisId a : *target) {
            if (!woven.contains(a)) given.push_back(a);
        }
        if (given.size() != pattern.output->names.size()) {
            error(Code::call_target_mismatch, pattern.output->range,
                  fmt::format("the result of {} has {}", function, counted(pattern.output->names.size(), "axis")),
                  fmt::format("{}, as on the left-hand side: {}", counted(given.size(), "axis"), axis_list(*target)));
            return std::nullopt;
        }
        for (std::size_t i = 0; i < given.size(); ++i) {
            axes[pattern.output->names[i].text] = given[i];
            used.insert(given[i]);
        }
    }
    std::vector<AxisId> consumed;
    const auto stays = [&](const std::string& name) {
        return any_of(pattern.output->names, [&](const AstWord& w) { return w.text == name; });
    };
    for (std::size_t p = 0; p < operands.size(); ++p) {
        for (std::size_t j = 0; j < operands[p].open.size(); ++j) {
            const AstWord& word = pattern.operands[p].names[j];
            if (axes.contains(word.text)) continue;
            const AxisId dimension = d_.array(operands[p].array).axes[operands[p].open[j]];
            const AstWord& written = operands[p].names[operands[p].open[j]];
            const bool kept = stays(word.text);
            AxisId id = -1;
            if (!written.text.empty()) {
                id = axis(written.text);
            } else if (const auto same = axes_.find(word.text);
                       kept && same != axes_.end() && contains(frame.bound, same->second) && !used.contains(same->second)) {
                id = same->second;
            } else if (!used.contains(dimension) && (kept || !contains(frame.bound, dimension))) {
                id = dimension;
            } else {
                id = fresh_axis(word.text);
            }
            if (used.contains(id)) {
                error(Code::call_axis_clash, word.range,
                      fmt::format("{} and another name would both be the axis {}", word.text, d_.axis(id).name),
                      "an axis for each name");
                return std::nullopt;
            }
            if (kept && !infer && !contains(frame.bound, id)) {
                error(Code::unbound_index, word.range,
                      fmt::format("the axis {} stays in the result and is bound by nothing", d_.axis(id).name),
                      "an index of the left-hand side, or an axis under a reduction",
                      "give the result an equation of its own");
                return std::nullopt;
            }
            if (!kept && (target || infer)) check_consumed(id, word.range, n.name.text, frame);
            axes[word.text] = id;
            used.insert(id);
            if (!kept) consumed.push_back(id);
        }
    }
    if (infer) {
        for (const AstWord& word : pattern.output->names) infer->push_back(axes[word.text]);
    }

    Body body;
    for (std::size_t p = 0; p < operands.size(); ++p) {
        ArrayOperand& operand = operands[p];
        for (std::size_t j = 0; j < operand.open.size(); ++j) {
            const std::size_t dimension = operand.open[j];
            const AxisId image = axes[pattern.operands[p].names[j].text];
            operand.indices[dimension] = Affine::axis(image);
            const AxisId own = d_.array(operand.array).axes[dimension];
            if (image != own) plain_indices_.push_back({image, own, operand.range, operand.array});
        }
        std::vector<Index> indices;
        for (const auto& index : operand.indices) indices.push_back(*index);
        Expr factor = read(operand.array, std::move(indices));
        body.expr = body.expr ? binary(BinaryOp::mul, body.expr, std::move(factor)) : std::move(factor);
    }
    if (consumed.empty()) {
        if (!reduction) return body;
    }
    body.reduce_axes = consumed;
    body.reduce = ReduceOp::sum;
    if (reduction) {
        const AstNode& word = *strings[pattern_last ? 0 : 1];
        const std::string op = std::get<AstString>(word.v).text;
        static const std::map<std::string, ReduceOp> table{{"sum", ReduceOp::sum},
                                                           {"prod", ReduceOp::prod},
                                                           {"max", ReduceOp::max},
                                                           {"min", ReduceOp::min},
                                                           {"mean", ReduceOp::sum}};
        const auto at = table.find(op);
        if (at == table.end()) {
            error(Code::unknown_reduction, word.range, fmt::format("there is no reduction {}", op),
                  "sum, prod, max, min or mean", did_you_mean(op, {"sum", "prod", "max", "min", "mean"}));
            return std::nullopt;
        }
        body.reduce = at->second;
        if (consumed.empty()) body.reduce.reset();
        if (op == "mean" && !consumed.empty()) {
            Body mean;
            mean.expr = store(body, frame, "sum");
            for (const AxisId a : consumed) mean.expr = binary(BinaryOp::div, mean.expr, axis_size(a));
            return mean;
        }
    }
    return body;
}

}  // namespace napkin
