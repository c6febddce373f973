#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "algebra/number.hpp"
#include "emit/cpu/emit_body.hpp"
#include "emit/cpu/emit_write.hpp"

namespace napkin::cpu {
namespace {

std::string combined(ReduceOp op, const std::string& a, const std::string& b) {
    switch (op) {
        case ReduceOp::sum: return fmt::format("{} + {}", a, b);
        case ReduceOp::prod: return fmt::format("({}) * ({})", a, b);
        case ReduceOp::max: return fmt::format("maximum({}, {})", a, b);
        case ReduceOp::min: return fmt::format("minimum({}, {})", a, b);
    }
    return {};
}

/// Modulo 2^64.
std::string combined_whole(ReduceOp op, const std::string& a, const std::string& b) {
    switch (op) {
        case ReduceOp::sum: return fmt::format("whole_add<64>({}, {})", a, b);
        case ReduceOp::prod: return fmt::format("whole_mul<64>({}, {})", a, b);
        case ReduceOp::max: return fmt::format("max_index({}, {})", a, b);
        case ReduceOp::min: return fmt::format("min_index({}, {})", a, b);
    }
    return {};
}

const char* horizontal(ReduceOp op) {
    switch (op) {
        case ReduceOp::sum: return "sum";
        case ReduceOp::prod: return "prod";
        case ReduceOp::max: return "max_of";
        case ReduceOp::min: return "min_of";
    }
    return "";
}

/// A reduction that rides in the loops of the statement before it (Step::follower).
struct Follower {
    const Compute& compute;
    int level;  ///< of the loop over the points around the reduced axis
    std::string acc;
    BodyWriter body;
    ValueId root = -1, carry = -1;
};

/// Writes one nest: loops over the target's points around loops over the reduced ones, hoisting as BodyWriter decides.
class ComputeWriter {
public:
    ComputeWriter(const Frame& frame, Lines& out, const Step& step)
        : frame_(frame),
          out_(out),
          step_(step),
          nest_(step.nest),
          scope_(step.scope),
          compute_(std::get<Compute>(*step.statement)),
          names_(frame.names) {
        const bool in_panel = nest_.vector_axis == frame.vector_axis && !nest_.vector_reduces && !nest_.vector_last;
        if (nest_.vector_axis >= 0 && !nest_.vector_reduces && !in_panel && !nest_.vector_last)
            add_loop(nest_.vector_axis);
        for (const AxisId a : nest_.outer) add_loop(a);
        if (nest_.row_axis >= 0) add_loop(nest_.row_axis);
        if (nest_.vector_last) add_loop(nest_.vector_axis);
        target_level_ = static_cast<int>(loops_.size());
        for (const AxisId a : nest_.reduce) add_loop(a);
        if (nest_.vector_reduces) add_loop(nest_.vector_axis);
        plan_blocks();
    }

    void run() {
        BodyWriter body(frame_, nest_, scope_, loops_, target_level_, names_);
        body_ = &body;
        const int last = static_cast<int>(loops_.size());
        const ValueId root = body.add_root(compute_.body, last, true, true, is_whole());
        const ValueId carry = compute_.carry
                                  ? body.add_root(compute_.carry, target_level_, !nest_.vector_reduces, true, is_whole())
                                  : -1;
        body.decide();
        if (step_.follower >= 0) plan_follower();

        hoist(0);
        for (int level = 1; level <= target_level_; ++level) open_loop(level);
        if (!compute_.reduce) {
            if (follower_) out_(fmt::format("vec {}{};", result(), dims()));
            body.statement(out_, root, [&](const std::string& text) {
                return follower_ ? fmt::format("{}{} = {};", result(), index(), as_vector(text, body.is_vector(root)))
                                 : store(text, body.is_vector(root));
            });
        } else {
            if (blocked_level_ > 0) declare("total");
            for (int level = target_level_ + 1; level < blocked_level_; ++level) open_loop(level);
            if (blocked_level_ > 0) open_blocks();
            declare("acc");
            const int inner = std::max(blocked_level_, target_level_ + 1);
            for (int level = inner; level <= last; ++level) open_loop(level);
            body.statement(out_, root, [&](const std::string& text) { return accumulate(text, body.is_vector(root)); });
            for (int level = inner; level <= last; ++level) out_.close();
            if (blocked_level_ > 0) {
                out_(rows() + vectors() + fmt::format("total{0} += acc{0};", index()));
                for (int level = target_level_; level < blocked_level_; ++level) out_.close();
            }
            write_back(carry);
        }
        if (follower_) follow();
        for (int level = target_level_; level >= 0; --level) {
            if (follower_ && level == follower_->level) finish_follower();
            if (level > 0) out_.close();
        }
    }

private:
    /// The target's numbers are integers.
    [[nodiscard]] bool is_whole() const { return frame_.is_whole(compute_.variable); }
    /// An integer modulo 2^64, at the target's width.
    [[nodiscard]] std::string at_width(const std::string& text) const {
        return is_whole() && frame_.variable(compute_.variable).memory_type == DType::i32
                   ? fmt::format("wrap<32>({})", text)
                   : text;
    }

    // ---- the loops ---------------------------------------------------------------------------------------------------------------

    /// One block that covers the axis needs no loop.
    void add_loop(AxisId axis) {
        if (span_of(frame_.scope(scope_), axis).tile > block_size(frame_, nest_, axis)) loops_.push_back(axis);
    }
    [[nodiscard]] AxisId axis_at(int level) const { return loops_[static_cast<std::size_t>(level) - 1]; }

    void plan_blocks() {
        if (is_whole() || !compute_.reduce || *compute_.reduce != ReduceOp::sum || nest_.vector_reduces) return;
        const std::int64_t total = total_terms(frame_, compute_);
        std::int64_t inner = 1;
        for (int level = static_cast<int>(loops_.size()); level > target_level_; --level) {
            const std::int64_t tile = span_of(frame_.scope(scope_), axis_at(level)).tile;
            if (is_long_sum(inner * tile, total)) {
                const std::int64_t most = std::max<std::int64_t>(1, sum_block(total) / inner),
                                   blocks = std::max<std::int64_t>(2, (tile + most - 1) / most);
                blocked_level_ = level;
                block_ = (tile + blocks - 1) / blocks;
                return;
            }
            inner *= tile;
        }
    }
    [[nodiscard]] const std::string& block_name() const { return frame_.axis(axis_at(blocked_level_)).block; }
    void open_blocks() {
        out_.open(fmt::format("for (Index {0} = 0; {0} < {1}; {0} += {2})", block_name(),
                              frame_.count(axis_at(blocked_level_), scope_), block_));
    }

    void open_loop(int level) {
        const AxisId axis = axis_at(level);
        const std::string& name = frame_.axis(axis).local;
        if (level == blocked_level_) {
            const Span& span = span_of(frame_.scope(scope_), axis);
            const std::string end = fmt::format("{} + {}", block_name(), block_);
            const bool whole = !span.ragged && span.tile % block_ == 0;
            out_.open(fmt::format("for (Index {0} = {1}; {0} < {2}; ++{0})", name, block_name(),
                                  whole ? end : fmt::format("min_index({}, {})", end, frame_.count(axis, scope_))));
        } else {
            const std::int64_t by = block_size(frame_, nest_, axis);
            out_.open(fmt::format("for (Index {0} = 0; {0} < {1}; {2})", name, frame_.count(axis, scope_),
                                  by == 1 ? "++" + name : fmt::format("{} += {}", name, by)));
        }
        hoist(level);
    }

    void hoist(int level) {
        body_->hoist(out_, level);
        if (!follower_ || level > target_level_) return;
        follower_->body.hoist(out_, level);
        if (level != follower_->level) return;
        const bool several = nest_.block_vectors > 1;
        declare(follower_->acc, several ? fmt::format("[{}]", nest_.block_vectors) : "", vectors(),
                several ? "[j]" : "", *follower_->compute.reduce);
    }

    // ---- the block ---------------------------------------------------------------------------------------------------------------

    [[nodiscard]] std::string rows() const { return nest_.block_rows > 1 ? body_->rows_header() + " " : ""; }
    [[nodiscard]] std::string vectors() const { return nest_.block_vectors > 1 ? body_->vectors_header() + " " : ""; }
    [[nodiscard]] std::string index() const {
        return (nest_.block_rows > 1 ? "[i]" : std::string()) + (nest_.block_vectors > 1 ? "[j]" : "");
    }
    [[nodiscard]] std::string dims() const {
        std::string out;
        if (nest_.block_rows > 1) out += fmt::format("[{}]", nest_.block_rows);
        if (nest_.block_vectors > 1) out += fmt::format("[{}]", nest_.block_vectors);
        return out;
    }
    /// The block of results, before it is stored.
    [[nodiscard]] std::string result() const {
        if (!compute_.reduce) return "value";
        return blocked_level_ > 0 ? "total" : "acc";
    }

    [[nodiscard]] std::string target(bool with_vectors) const {
        const Variable& v = frame_.variable(compute_.variable);
        return fmt::format("{}[{}]", frame_.name(compute_.variable),
                           body_->position(frame_.address(compute_.variable, v.dims, scope_),
                                           frame_.layout(compute_.variable).panel_local, with_vectors));
    }
    [[nodiscard]] std::string store(const std::string& text, bool is_vector) const {
        if (nest_.vector_axis < 0 || nest_.vector_reduces)
            return fmt::format("{} = {};", target(false), at_width(text));
        return fmt::format("store(&{}, {});", target(true), is_vector ? text : fmt::format("splat({})", text));
    }
    [[nodiscard]] std::string as_vector(const std::string& text, bool is_vector) const {
        return nest_.vector_axis < 0 || is_vector ? text : fmt::format("splat({})", text);
    }

    /// Accumulators at the reduction's identity.
    void declare(const std::string& name, const std::string& extents, const std::string& headers,
                 const std::string& indices, ReduceOp op) {
        const char* type = is_whole() ? "int64_t" : nest_.vector_axis < 0 ? "real" : "vec";
        const Kind kind = kind_of(frame_.variable(compute_.variable).memory_type);
        const std::string start = is_whole() ? whole_literal(whole_identity(op, kind))
                                             : as_vector(literal(identity(op), frame_.is_double), false);
        if (extents.empty()) {
            out_(fmt::format("{} {} = {};", type, name, start));
            return;
        }
        out_(fmt::format("{} {}{};", type, name, extents));
        out_(fmt::format("{}{}{} = {};", headers, name, indices, start));
    }
    void declare(const std::string& name) { declare(name, dims(), rows() + vectors(), index(), *compute_.reduce); }

    /// acc ⊕= text
    [[nodiscard]] static std::string accumulated(ReduceOp op, const std::string& acc, const std::string& text) {
        if (op == ReduceOp::sum) return fmt::format("{} += {};", acc, text);
        if (op == ReduceOp::prod) return fmt::format("{} *= {};", acc, text);
        return fmt::format("{} = {};", acc, combined(op, acc, text));
    }

    [[nodiscard]] std::string accumulate(const std::string& text, bool is_vector) const {
        const ReduceOp op = *compute_.reduce;
        if (is_whole()) return fmt::format("acc{0} = {1};", index(), combined_whole(op, "acc" + index(), text));
        std::string value = as_vector(text, is_vector);
        if (nest_.vector_reduces) {
            // Lanes past the end must not take part.
            const Span& span = span_of(frame_.scope(scope_), nest_.vector_axis);
            if (span.ragged || span.tile % block_size(frame_, nest_, nest_.vector_axis) != 0) {
                std::string left = frame_.count(nest_.vector_axis, scope_);
                if (const std::string name = body_->loop_name(nest_.vector_axis); !name.empty()) left += " - " + name;
                if (nest_.block_vectors > 1) left += fmt::format(" - {} * j", frame_.lanes);
                value = fmt::format("where(iota<real>() < splat(real({})), {}, splat({}))", left, value,
                                    literal(identity(op), frame_.is_double));
            }
        }
        return accumulated(op, "acc" + index(), value);
    }

    /// The carry joins at the end: what accumulates over many chunks is then added to once a chunk, which keeps rounding errors small.
    void write_back(ValueId carry) {
        const ReduceOp op = *compute_.reduce;
        const std::string block = result() + index();
        std::string total = block;
        if (nest_.vector_reduces) {
            const std::string row = nest_.block_rows > 1 ? "acc[i]" : "acc";
            total = nest_.block_vectors > 1 ? row + "[0]" : row;
            for (int j = 1; j < nest_.block_vectors; ++j) total = combined(op, total, fmt::format("{}[{}]", row, j));
            total = fmt::format("{}({})", horizontal(op), total);
        }
        const bool is_vector = nest_.vector_axis >= 0;
        if (carry < 0) {
            if (!follower_) out_(rows() + (nest_.vector_reduces ? "" : vectors()) + store(total, is_vector));
            return;
        }
        body_->statement(out_, carry, [&](const std::string& text) {
            const bool splat = is_vector && !nest_.vector_reduces && !body_->is_vector(carry);
            const std::string sum = is_whole() ? combined_whole(op, text, total)
                                               : combined(op, splat ? fmt::format("splat({})", text) : text, total);
            return follower_ ? fmt::format("{} = {};", block, sum) : store(sum, is_vector);
        });
    }

    // ---- what follows ------------------------------------------------------------------------------------------------------------

    void plan_follower() {
        const Step& step = frame_.steps[static_cast<std::size_t>(step_.follower)];
        const auto& compute = std::get<Compute>(*step.statement);
        const bool has_loop = target_level_ > 0 && axis_at(target_level_) == compute.reduce_axes.front();
        const int around = has_loop ? target_level_ - 1 : target_level_;
        follower_nest_ = nest_;
        follower_nest_.outer.clear(), follower_nest_.reduce.clear();
        follower_ = std::make_unique<Follower>(Follower{
            compute, around, names_.add(frame_.name(compute.variable) + "_acc"),
            BodyWriter(frame_, follower_nest_, scope_, {loops_.begin(), loops_.begin() + target_level_}, around, names_)});
        BodyWriter& body = follower_->body;
        body.give(compute_.variable, result() + index());
        follower_->root = body.add_root(compute.body, target_level_, true);
        if (compute.carry) follower_->carry = body.add_root(compute.carry, around, true, false);
        body.decide();
    }
    [[nodiscard]] std::string follower_acc() const { return follower_->acc + (nest_.block_vectors > 1 ? "[j]" : ""); }

    /// Stores the block of results and reduces it; padding rows must not take part.
    void follow() {
        const AxisId axis = follower_->compute.reduce_axes.front();
        const Span& span = span_of(frame_.scope(scope_), axis);
        std::string guard;
        if (nest_.block_rows > 1 && (span.ragged || span.tile % nest_.block_rows != 0)) {
            const std::string name = body_->loop_name(axis);
            guard = fmt::format("if ({}i < {}) ", name.empty() ? "" : name + " + ", frame_.count(axis, scope_));
        }
        follower_->body.statement(out_, follower_->root, [&](const std::string& text) {
            const std::string value = as_vector(text, follower_->body.is_vector(follower_->root));
            return fmt::format("{{ {} {}{} }}", store(result() + index(), true), guard,
                               accumulated(*follower_->compute.reduce, follower_acc(), value));
        });
    }

    void finish_follower() {
        const Compute& c = follower_->compute;
        const auto store_to = [&](const std::string& text) {
            const Address address = frame_.address(c.variable, frame_.variable(c.variable).dims, scope_);
            return fmt::format("store(&{}[{}], {});", frame_.name(c.variable),
                               follower_->body.position(address, frame_.layout(c.variable).panel_local), text);
        };
        if (follower_->carry < 0) {
            out_(vectors() + store_to(follower_acc()));
            return;
        }
        follower_->body.statement(out_, follower_->carry, [&](const std::string& text) {
            return store_to(
                combined(*c.reduce, as_vector(text, follower_->body.is_vector(follower_->carry)), follower_acc()));
        });
    }

    const Frame& frame_;
    Lines& out_;
    const Step& step_;
    const Nest& nest_;
    int scope_;
    const Compute& compute_;
    Names names_;
    std::vector<AxisId> loops_;
    int target_level_ = 0;
    int blocked_level_ = 0;   ///< whose loop runs in blocks; 0: none
    std::int64_t block_ = 1;  ///< values of that loop
    BodyWriter* body_ = nullptr;
    Nest follower_nest_;
    std::unique_ptr<Follower> follower_;
};

/// Where the extremum of coordinates lies, all of them being reduced.
std::optional<std::string> extremum_of_place(const Frame& frame, const Compute& compute, int scope) {
    if (!compute.reduce || !lies_at_an_end(*compute.reduce, compute.body)) return std::nullopt;
    if (compute.carry || !frame.variable(compute.variable).dims.empty()) return std::nullopt;
    const bool is_max = *compute.reduce == ReduceOp::max;
    const auto form = affine_form(compute.body);
    std::string text;
    std::int64_t constant = form->constant;
    for (const auto& [axis, c] : form->terms) {
        const Span& span = span_of(frame.scope(scope), axis);
        std::string at = span.begins ? frame.axis(axis).begin : "";
        if ((c > 0) == is_max) {
            at += fmt::format("{}{}", at.empty() ? "" : " + ", frame.count(axis, scope));
            constant -= c;
        }
        if (at.empty()) continue;
        text += fmt::format("{}{}", text.empty() ? "" : " + ", c == 1 ? at : fmt::format("({}) * {}", at, c));
    }
    if (constant != 0 || text.empty()) text += fmt::format("{}{}", text.empty() ? "" : " + ", constant);
    return text;
}

}  // namespace

void write_compute(const Frame& frame, Lines& out, const Step& step) {
    const auto& compute = std::get<Compute>(*step.statement);
    if (const auto text = extremum_of_place(frame, compute, step.scope)) {
        out(fmt::format("{}[0] = {};", frame.name(compute.variable),
                        frame.is_whole(compute.variable) ? *text : fmt::format("real({})", *text)));
        return;
    }
    ComputeWriter(frame, out, step).run();
}

}  // namespace napkin::cpu
