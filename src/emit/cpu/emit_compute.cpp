#include <fmt/format.h>

#include <algorithm>

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

const char* horizontal(ReduceOp op) {
    switch (op) {
        case ReduceOp::sum: return "sum";
        case ReduceOp::prod: return "prod";
        case ReduceOp::max: return "max_of";
        case ReduceOp::min: return "min_of";
    }
    return "";
}

/// Writes one nest: loops over the target's points around loops over the reduced ones, hoisting as BodyWriter decides.
class ComputeWriter {
public:
    ComputeWriter(const Frame& frame, Lines& out, const Step& step)
        : frame_(frame), out_(out), nest_(step.nest), scope_(step.scope), compute_(std::get<Compute>(*step.statement)) {
        const bool in_panel = nest_.vector_axis == frame.vector_axis && !nest_.vector_reduces;
        if (nest_.vector_axis >= 0 && !nest_.vector_reduces && !in_panel) add_loop(nest_.vector_axis);
        for (const AxisId a : nest_.outer) add_loop(a);
        if (nest_.row_axis >= 0) add_loop(nest_.row_axis);
        target_level_ = static_cast<int>(loops_.size());
        for (const AxisId a : nest_.reduce) add_loop(a);
        if (nest_.vector_reduces) add_loop(nest_.vector_axis);
    }

    void run() {
        BodyWriter body(frame_, nest_, scope_, loops_, target_level_);
        body_ = &body;
        const int last = static_cast<int>(loops_.size());
        const ValueId root = body.add_root(compute_.body, last, true);
        const ValueId carry = compute_.carry ? body.add_root(compute_.carry, target_level_, !nest_.vector_reduces) : -1;
        body.decide();

        body.hoist(out_, 0);
        for (int level = 1; level <= target_level_; ++level) open_loop(level);
        if (!compute_.reduce) {
            body.statement(out_, root, [&](const std::string& text) { return store(text, body.is_vector(root)); });
        } else {
            plan_blocks();
            if (blocked_level_ > 0) declare("total");
            for (int level = target_level_ + 1; level < blocked_level_; ++level) open_loop(level);
            if (blocked_level_ > 0) open_blocks();
            declare("acc");
            for (int level = std::max(blocked_level_, target_level_ + 1); level <= last; ++level) open_loop(level);
            body.statement(out_, root, [&](const std::string& text) { return accumulate(text, body.is_vector(root)); });
            for (int level = std::max(blocked_level_, target_level_ + 1); level <= last; ++level) out_.close();
            if (blocked_level_ > 0) {
                out_(rows() + vectors() + fmt::format("total{0} += acc{0};", index()));
                for (int level = target_level_; level < blocked_level_; ++level) out_.close();
            }
            write_back(carry);
        }
        for (int level = target_level_; level >= 1; --level) out_.close();
    }

private:
    /// One block that covers the axis needs no loop.
    void add_loop(AxisId axis) {
        if (span_of(frame_.scope(scope_), axis).tile > block_size(frame_, nest_, axis)) loops_.push_back(axis);
    }
    [[nodiscard]] AxisId axis_at(int level) const { return loops_[static_cast<std::size_t>(level) - 1]; }
    [[nodiscard]] std::string index() const {
        return (nest_.block_rows > 1 ? "[i]" : std::string()) + (nest_.block_vectors > 1 ? "[j]" : "");
    }

    void plan_blocks() {
        if (*compute_.reduce != ReduceOp::sum || nest_.vector_reduces) return;
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
        if (level == blocked_level_) {
            const Span& span = span_of(frame_.scope(scope_), axis);
            const std::string end = fmt::format("{} + {}", block_name(), block_);
            const bool whole = !span.ragged && span.tile % block_ == 0;
            out_.open(fmt::format("for (Index {0} = {1}; {0} < {2}; ++{0})", frame_.axis(axis).local, block_name(),
                                  whole ? end : fmt::format("min_index({}, {})", end, frame_.count(axis, scope_))));
            body_->hoist(out_, level);
            return;
        }
        const std::int64_t by = block_size(frame_, nest_, axis);
        const std::string& name = frame_.axis(axis).local;
        out_.open(fmt::format("for (Index {0} = 0; {0} < {1}; {2})", name, frame_.count(axis, scope_),
                              by == 1 ? "++" + name : fmt::format("{} += {}", name, by)));
        body_->hoist(out_, level);
    }

    [[nodiscard]] std::string target(bool vectors) const {
        const Variable& v = frame_.variable(compute_.variable);
        return fmt::format("{}[{}]", frame_.name(compute_.variable),
                           body_->position(frame_.address(compute_.variable, v.dims, scope_),
                                           frame_.layout(compute_.variable).panel_local, vectors));
    }

    [[nodiscard]] std::string store(const std::string& text, bool is_vector) const {
        if (nest_.vector_axis < 0 || nest_.vector_reduces) return fmt::format("{} = {};", target(false), text);
        return fmt::format("store(&{}, {});", target(true), is_vector ? text : fmt::format("splat({})", text));
    }

    [[nodiscard]] std::string as_vector(const std::string& text, bool is_vector) const {
        return nest_.vector_axis < 0 || is_vector ? text : fmt::format("splat({})", text);
    }

    [[nodiscard]] std::string rows() const { return nest_.block_rows > 1 ? body_->rows_header() + " " : ""; }
    [[nodiscard]] std::string vectors() const { return nest_.block_vectors > 1 ? body_->vectors_header() + " " : ""; }

    /// Accumulators for the block of targets, at the reduction's identity.
    void declare(const char* name) {
        const char* type = nest_.vector_axis < 0 ? "real" : "vec";
        std::string dims;
        if (nest_.block_rows > 1) dims += fmt::format("[{}]", nest_.block_rows);
        if (nest_.block_vectors > 1) dims += fmt::format("[{}]", nest_.block_vectors);
        const std::string start = as_vector(literal(identity(*compute_.reduce), frame_.is_double), false);
        if (dims.empty()) {
            out_(fmt::format("{} {} = {};", type, name, start));
            return;
        }
        out_(fmt::format("{} {}{};", type, name, dims));
        out_(fmt::format("{}{}{}{} = {};", rows(), vectors(), name, index(), start));
    }

    [[nodiscard]] std::string accumulate(const std::string& text, bool is_vector) const {
        const std::string acc = "acc" + index();
        std::string value = text;
        const ReduceOp op = *compute_.reduce;
        if (nest_.vector_reduces) {
            // Lanes past the end must not take part.
            const Span& span = span_of(frame_.scope(scope_), nest_.vector_axis);
            if (span.ragged || span.tile % block_size(frame_, nest_, nest_.vector_axis) != 0) {
                std::string left = frame_.count(nest_.vector_axis, scope_);
                if (const std::string name = body_->loop_name(nest_.vector_axis); !name.empty()) left += " - " + name;
                if (nest_.block_vectors > 1) left += fmt::format(" - {} * j", frame_.lanes);
                return fmt::format(
                    "{} = {};", acc,
                    combined(op, acc,
                             fmt::format("where(iota<real>() < splat(real({})), {}, splat({}))", left,
                                         as_vector(text, is_vector), literal(identity(op), frame_.is_double))));
            }
        }
        if (op == ReduceOp::sum) return fmt::format("{} += {};", acc, value);
        if (op == ReduceOp::prod) return fmt::format("{} *= {};", acc, value);
        return fmt::format("{} = {};", acc, combined(op, acc, as_vector(value, is_vector)));
    }

    /// The carry joins at the end: what accumulates over many chunks is then added to once a chunk, which keeps rounding errors small.
    void write_back(ValueId carry) {
        const ReduceOp op = *compute_.reduce;
        std::string total = (blocked_level_ > 0 ? "total" : "acc") + index();
        if (nest_.vector_reduces) {
            const std::string row = nest_.block_rows > 1 ? "acc[i]" : "acc";
            total = nest_.block_vectors > 1 ? row + "[0]" : row;
            for (int j = 1; j < nest_.block_vectors; ++j) total = combined(op, total, fmt::format("{}[{}]", row, j));
            total = fmt::format("{}({})", horizontal(op), total);
        }
        const bool is_vector = nest_.vector_axis >= 0;
        if (carry < 0) {
            out_(rows() + (nest_.vector_reduces ? "" : vectors()) + store(total, is_vector));
            return;
        }
        body_->statement(out_, carry, [&](const std::string& text) {
            const bool splat = is_vector && !nest_.vector_reduces && !body_->is_vector(carry);
            return store(combined(op, splat ? fmt::format("splat({})", text) : text, total), is_vector);
        });
    }

    const Frame& frame_;
    Lines& out_;
    const Nest& nest_;
    int scope_;
    const Compute& compute_;
    std::vector<AxisId> loops_;
    int target_level_ = 0;
    int blocked_level_ = 0;   ///< whose loop runs in blocks; 0: none
    std::int64_t block_ = 1;  ///< values of that loop
    BodyWriter* body_ = nullptr;
};

}  // namespace

void write_compute(const Frame& frame, Lines& out, const Step& step) { ComputeWriter(frame, out, step).run(); }

}  // namespace napkin::cpu
