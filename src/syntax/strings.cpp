// Sugar that people paste: einsum("qk,xk->qx", Q, K), rearrange("b h q d -> b q h d", X), reduce("r c -> r", "max", X).
//
// A name of the string stands for an axis. It is the target's at the same place, else the operand's own at the place
// where the name first stands, else a fresh one.
#include <fmt/format.h>

#include "support/limits.hpp"
#include "support/ranges.hpp"
#include "support/text.hpp"
#include "syntax/elaborator.hpp"
#include "syntax/string_pattern.hpp"

namespace napkin {

/// One call while it is lowered: each step reports what is wrong, and is false where the steps after it have no ground.
class Elaborator::StringCall {
public:
    StringCall(Elaborator& elaborator, const AstCall& call, const AstNode& node, const Frame& frame)
        : e_(elaborator),
          call_(call),
          node_(node),
          frame_(frame),
          einsum_(call.name.text == "einsum"),
          reduction_(call.name.text == "reduce"),
          usage_(einsum_      ? "einsum(\"qk,xk->qx\", Q, K)"
                 : reduction_ ? "reduce(\"r c -> r\", \"max\", X)"
                              : "rearrange(\"b h d -> h b d\", X)") {}

    std::optional<Body> lower(const std::vector<AxisId>* target, std::vector<AxisId>* infer) {
        if (!sort_arguments()) return std::nullopt;
        auto pattern = read_string_pattern(*pattern_node_, !einsum_, usage_, e_.diagnostics_);
        if (!pattern) return std::nullopt;
        pattern_ = std::move(*pattern);
        if (!check_counts()) return std::nullopt;
        const std::size_t before = e_.errors();
        check_output();
        read_operands();
        if (e_.errors() > before) return std::nullopt;
        if (any_of(operands_, [](const ArrayOperand& o) { return o.array < 0; }))
            return std::nullopt;  // reported elsewhere
        if (!einsum_ && !reduction_ && !check_permutation()) return std::nullopt;
        if (target && !take_target_axes(*target)) return std::nullopt;
        if (!choose_axes(target, infer)) return std::nullopt;
        if (infer)
            for (const AstWord& word : pattern_.output.names) infer->push_back(axes_[word.text]);
        Body body;
        body.expr = product();
        if (!consumed_.empty()) {
            body.reduce = ReduceOp::sum;
            body.reduce_axes = consumed_;
        }
        return reduction_ ? reduced(std::move(body)) : body;
    }

private:
    /// Strings and arrays in whichever order the user's library has them.
    bool sort_arguments() {
        std::vector<const AstNode*> strings;
        for (const AstNode& argument : call_.arguments)
            (std::holds_alternative<AstString>(argument.v) ? strings : arrays_).push_back(&argument);
        if (strings.empty()) {
            e_.error(Code::string_expected, call_.arguments.empty() ? node_.range : call_.arguments[0].range,
                     fmt::format("{} needs a string of axis names", call_.name.text), usage_);
            return false;
        }
        if (strings.size() != (reduction_ ? 2U : 1U)) {
            const bool missing = reduction_ && strings.size() == 1;
            e_.error(missing ? Code::string_expected : Code::misplaced_string, strings.back()->range,
                     missing ? "the reduction is missing" : "one string too many", usage_);
            return false;
        }
        const bool pattern_last = reduction_ && std::get<AstString>(strings[0]->v).text.find("->") == std::string::npos;
        pattern_node_ = strings[pattern_last ? 1 : 0];
        reduction_node_ = strings[pattern_last ? 0 : strings.size() - 1];
        return true;
    }

    bool check_counts() {
        if (arrays_.size() != pattern_.operands.size() || arrays_.empty()) {
            e_.error(Code::einsum_operand_count, node_.range,
                     fmt::format("the string has {} and the call {}", counted(pattern_.operands.size(), "term"),
                                 counted(arrays_.size(), "array")),
                     "an array for each term before ->", usage_);
            return false;
        }
        for (const StringPattern::Term& term : pattern_.operands) {
            if (std::max(term.names.size(), pattern_.output.names.size()) <= limits::max_axes_per_array) continue;
            e_.error(Code::too_many_axes, term.range, "a term has too many names",
                     fmt::format("at most {}", limits::max_axes_per_array));
            return false;
        }
        constexpr std::size_t max_operands = 64;
        if (arrays_.size() <= max_operands) return true;
        e_.error(Code::einsum_operand_count, arrays_[max_operands]->range,
                 fmt::format("the call has {}", counted(arrays_.size(), "array")),
                 fmt::format("at most {}", max_operands), "multiply some of them in an equation of its own");
        return false;
    }

    void check_output() {
        std::set<std::string> before;
        for (const AstWord& word : pattern_.output.names) {
            if (none_of(pattern_.operands, [&](const StringPattern::Term& term) { return term.has(word.text); }))
                e_.error(Code::einsum_output, word.range,
                         fmt::format("{} stands after -> and in no term before it", word.text),
                         "a name of some operand");
            if (!before.insert(word.text).second)
                e_.error(Code::einsum_output, word.range, fmt::format("{} stands twice after ->", word.text),
                         "each name once");
        }
    }

    void read_operands() {
        operands_.resize(arrays_.size());
        for (std::size_t p = 0; p < arrays_.size(); ++p) {
            const StringPattern::Term& term = pattern_.operands[p];
            if (!check_rank(*arrays_[p], term)) continue;
            if (!e_.array_operand(*arrays_[p], term.names.size(), "the string", frame_, operands_[p])) continue;
            for (const auto& index : operands_[p].indices) {
                if (!index) continue;
                for (const AxisId a : index->axes()) used_.insert(a);
            }
        }
    }

    /// The rank is the string's; a mismatch is said in its terms. What is no known array is left to array_operand().
    bool check_rank(const AstNode& array, const StringPattern::Term& term) {
        const auto* bare = std::get_if<AstName>(&array.v);
        const auto* indexed = std::get_if<AstIndexed>(&array.v);
        const std::string name = bare ? bare->name : indexed ? indexed->name.text : "";
        const auto known = e_.arrays_.find(name);
        if (known == e_.arrays_.end() || !e_.defined_.contains(name) || !known->second.shape_known) return true;
        const Array& declared = e_.d_.array(known->second.id);
        const std::size_t total = declared.axes.size();
        const bool points = indexed && any_of(indexed->indices,
                                              [](const AstNode& i) { return std::holds_alternative<AstEllipsis>(i.v); });
        const std::size_t written = points ? indexed->indices.size() - 1 : 0;
        if (total == written + term.names.size()) return true;
        e_.diagnostics_
            .error(Code::einsum_rank, term.range,
                   fmt::format("the term has {} for {}", counted(term.names.size(), "name"), name),
                   fmt::format("{}: {}", counted(total - std::min(written, total), "name"), e_.array_text(known->second.id)),
                   einsum_ && !pattern_.words && total > 0 && term.names.size() > total
                       ? "names of several letters stand between spaces: \"batch head, head -> batch\""
                       : "")
            .notes.push_back({declared.range, fmt::format("{} is declared here", name)});
        return false;
    }

    bool check_permutation() {
        const auto sorted_names = [](const StringPattern::Term& term) {
            auto names = mapped<std::string>(term.names, &AstWord::text);
            sort(names);
            return names;
        };
        if (sorted_names(pattern_.operands[0]) == sorted_names(pattern_.output)) return true;
        e_.error(Code::not_a_permutation, pattern_node_->range, "rearrange must keep every axis",
                 "the same names on both sides of ->", "einsum or reduce takes axes away");
        return false;
    }

    /// The names behind the arrow are the target's axes, but for those that operands are woven over.
    bool take_target_axes(const std::vector<AxisId>& target) {
        std::vector<AxisId> given;
        for (const AxisId a : target) {
            if (!used_.contains(a)) given.push_back(a);
        }
        if (given.size() != pattern_.output.names.size()) {
            e_.error(
                Code::call_target_mismatch, pattern_.output.range,
                fmt::format("the result of {} has {}", call_.name.text, counted(pattern_.output.names.size(), "axis")),
                fmt::format("{}, as on the left-hand side: {}", counted(given.size(), "axis"), e_.axis_list(target)));
            return false;
        }
        for (std::size_t i = 0; i < given.size(); ++i) {
            axes_[pattern_.output.names[i].text] = given[i];
            used_.insert(given[i]);
        }
        return true;
    }

    /// An axis for each name that has none yet.
    bool choose_axes(const std::vector<AxisId>* target, const std::vector<AxisId>* infer) {
        for (std::size_t p = 0; p < operands_.size(); ++p) {
            for (std::size_t j = 0; j < operands_[p].open.size(); ++j) {
                const AstWord& word = pattern_.operands[p].names[j];
                if (axes_.contains(word.text)) continue;
                const bool kept = pattern_.output.has(word.text);
                const AxisId id = axis_for(word.text, kept, operands_[p], operands_[p].open[j]);
                if (used_.contains(id)) {
                    e_.error(Code::call_axis_clash, word.range,
                             fmt::format("{} and another name would both be the axis {}", word.text, e_.d_.axis(id).name),
                             "an axis for each name");
                    return false;
                }
                if (kept && !infer && !contains(frame_.bound, id)) {
                    e_.error(Code::unbound_index, word.range,
                             fmt::format("the axis {} stays in the result and is bound by nothing", e_.d_.axis(id).name),
                             "an index of the left-hand side, or an axis under a reduction",
                             "give the result an equation of its own");
                    return false;
                }
                if (!kept && (target || infer)) e_.check_consumed(id, word.range, call_.name.text, frame_);
                axes_[word.text] = id;
                used_.insert(id);
                if (!kept) consumed_.push_back(id);
            }
        }
        return true;
    }

    /// The axis that a name stands for where it is first read: at an open dimension of an operand.
    AxisId axis_for(const std::string& name, bool kept, const ArrayOperand& operand, std::size_t dimension) {
        const std::string& written = operand.names[dimension].text;
        if (!written.empty()) return e_.axis(written);
        const auto same = e_.axes_.find(name);
        if (kept && same != e_.axes_.end() && contains(frame_.bound, same->second) && !used_.contains(same->second))
            return same->second;
        const AxisId own = e_.d_.array(operand.array).axes[dimension];
        if (!used_.contains(own) && (kept || !contains(frame_.bound, own))) return own;
        return e_.fresh_axis(name);
    }

    /// The operands, each read at the axes of its names.
    Expr product() {
        Expr out;
        for (std::size_t p = 0; p < operands_.size(); ++p) {
            ArrayOperand& operand = operands_[p];
            for (std::size_t j = 0; j < operand.open.size(); ++j) {
                const std::size_t dimension = operand.open[j];
                const AxisId image = axes_[pattern_.operands[p].names[j].text];
                operand.indices[dimension] = Affine::axis(image);
                const AxisId own = e_.d_.array(operand.array).axes[dimension];
                if (image != own) e_.plain_indices_.push_back({image, own, operand.range, operand.array});
            }
            Expr factor = read(operand.array, mapped<Index>(operand.indices, [](const auto& index) { return *index; }));
            out = out ? binary(BinaryOp::mul, out, std::move(factor)) : std::move(factor);
        }
        return out;
    }

    /// A sum as the reduction that the call names.
    std::optional<Body> reduced(Body body) {
        const std::string& op = std::get<AstString>(reduction_node_->v).text;
        static const std::map<std::string, ReduceOp> table{{"sum", ReduceOp::sum},
                                                           {"prod", ReduceOp::prod},
                                                           {"max", ReduceOp::max},
                                                           {"min", ReduceOp::min},
                                                           {"mean", ReduceOp::sum}};
        const auto at = table.find(op);
        if (at == table.end()) {
            e_.error(Code::unknown_reduction, reduction_node_->range, fmt::format("there is no reduction {}", op),
                     "sum, prod, max, min or mean", did_you_mean(op, {"sum", "prod", "max", "min", "mean"}));
            return std::nullopt;
        }
        if (consumed_.empty()) return body;
        body.reduce = at->second;
        if (op != "mean") return body;
        Body mean;
        mean.expr = e_.store(body, frame_, "sum");
        for (const AxisId a : consumed_) mean.expr = binary(BinaryOp::div, mean.expr, axis_size(a));
        return mean;
    }

    Elaborator& e_;
    const AstCall& call_;
    const AstNode& node_;
    const Frame& frame_;
    bool einsum_, reduction_;
    std::string usage_;
    std::vector<const AstNode*> arrays_;
    const AstNode *pattern_node_ = nullptr, *reduction_node_ = nullptr;
    StringPattern pattern_;
    std::vector<ArrayOperand> operands_;  ///< by term of the pattern
    std::map<std::string, AxisId> axes_;  ///< what the names stand for
    std::set<AxisId> used_;               ///< by names, and those that operands are woven over
    std::vector<AxisId> consumed_;        ///< those that do not stay
};

std::optional<Body> Elaborator::lower_string_call(const AstCall& n, const AstNode& node, const Frame& frame,
                                                  const std::vector<AxisId>* target, std::vector<AxisId>* infer) {
    return StringCall(*this, n, node, frame).lower(target, infer);
}

}  // namespace napkin
