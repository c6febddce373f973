#include <fmt/format.h>

#include <memory>
#include <utility>

#include "algebra/number.hpp"
#include "emit/emit_body.hpp"
#include "emit/emit_register_block.hpp"
#include "emit/emit_write.hpp"
#include "support/ranges.hpp"

namespace napkin::writers {
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

std::string combined_integer(ReduceOp op, const std::string& a, const std::string& b) {
    switch (op) {
        case ReduceOp::sum: return fmt::format("whole_add<64>({}, {})", a, b);
        case ReduceOp::prod: return fmt::format("whole_mul<64>({}, {})", a, b);
        case ReduceOp::max: return fmt::format("max_index({}, {})", a, b);
        case ReduceOp::min: return fmt::format("min_index({}, {})", a, b);
    }
    return {};
}

namespace {

/// A reduction that is fused into the loops of the statement before it (Step::follower).
struct FusedReduction {
    const Compute& compute;
    int level;  ///< of the loop over the points around the reduced axis
    std::string acc;
    BodyWriter body;
    ValueId root = -1, carry = -1;
};

/// Says how the reduction's loop of this number is unrolled, where the compiler does not decide. It leaves the
/// innermost loop as it is where a register block is large, and each of its loads is waited for.
void write_unrolling(Lines& out, const Frame& frame, const Atom& atom, int first_unrolled, int reduced, int num_reduced) {
    if (reduced < 0) return;
    const bool is_alone = reduced == first_unrolled && reduced + 1 == num_reduced;
    if (reduced < first_unrolled)
        out("NAPKIN_UNROLL_BY(1)");
    else if (frame.in_blocks() && is_alone && atom.rows * atom.vectors > 1)
        out(fmt::format("NAPKIN_UNROLL_BY({})", iterations_together));
}

/// Writes one statement: loops over the target's points around loops over the reduced ones, hoisting as BodyWriter
/// decides.
class ComputeWriter : BlockInLanes {
public:
    ComputeWriter(const Frame& frame, Lines& out, const Step& step)
        : BlockInLanes(frame, out, step), names_(frame.names) {
        if (lanes_) {
            loops_.push_back(lanes_->axis), target_level_ = atom_.across ? 0 : 1;
            return;
        }
        add_target_loops();
        for (const AxisId a : atom_.reduced) add_loop(a);
        if (atom_.across && atom_.shared)
            loops_.push_back(atom_.vector_axis);
        else if (atom_.across)
            add_loop(atom_.vector_axis);
        for (std::size_t l = 0; l < loops_.size(); ++l)
            if (atom_.cut_axis >= 0 && loops_[l] == atom_.cut_axis) cut_level_ = static_cast<int>(l) + 1;
        if (frame.in_blocks())
            first_unrolled_ = static_cast<int>(first_unrolled(frame, step, {loops_.begin() + target_level_, loops_.end()}));
    }

    /// `before`: a statement of the previous group, which runs at every point before this one does.
    void run(const Step* before) {
        if (frame_.partials(step_) > 0) return run_shared();
        BodyWriter body(frame_, step_, choices(), loops_, target_level_, names_);
        body_ = &body;
        give_registers(body);
        const int last = static_cast<int>(loops_.size());
        const ValueId root = product_ ? body.add_factors(*product_, last)
                                      : body.add_root(compute_.body, last, true, true, is_whole());
        const ValueId carry = compute_.carry && !(product_ && is_whole()) && !goes_on()
                                  ? body.add_root(compute_.carry, target_level_, !atom_.across, true, is_whole())
                                  : -1;
        body.decide();
        if (step_.follower >= 0) plan_fused_reduction();
        if (before) plan_before(*before);

        const std::string are_known = body.condition_of_runs(), run = names_.add("run");
        if (are_known.empty()) return loops(root, carry, run);
        for (const bool known : {true, false}) {
            out_.open(known ? fmt::format("if ({})", are_known) : "else");
            out_(fmt::format("constexpr Runs<{}> runs_;", known));
            loops(root, carry, run);
            out_.close();
        }
    }

private:
    /// All loops of the statement. `run`: the array of a run's values, where it goes by runs.
    void loops(ValueId root, ValueId carry, const std::string& run) {
        hoist(0);
        if (lanes_ && !compute_.reduce) return map_in_lanes(root);
        if (frame_.in_blocks()) frame_.is_in_lanes(compute_.variable) ? out_.open("") : share_points();
        write_bias(0);
        for (int level = 1; level <= target_level_; ++level) {
            frame_.in_blocks() ? hoist(level) : open_loop(level);
            write_bias(level);
        }
        if (frame_.layout(compute_.variable).in_runs) begin_run(run);
        if (!compute_.reduce) {
            if (fused_reduction_) out_(fmt::format("vec {}{};", result(), dims()));
            if (before_) before_->write_point();
            prefetches();
            body_->statement(out_, root, [&](const std::string& text) {
                return fused_reduction_
                           ? fmt::format("{}{} = {};", result(), index(), as_vector(text, body_->is_vector(root)))
                           : store(text, body_->is_vector(root));
            });
        } else if (cut_level_ > 0) {
            cut_sum(root, carry);
        } else {
            reduce(root, target_level_ + 1);
            if (!goes_on()) product_&& is_whole() ? write_back_whole(compute_.carry != nullptr) : write_back(carry);
        }
        if (fused_reduction_) follow();
        if (!run_.empty()) out_(body_->store_of_run(run_));
        for (int level = target_level_; level >= 0; --level) {
            if (fused_reduction_ && level == fused_reduction_->level) finish_fused_reduction();
            if (level > (frame_.in_blocks() ? target_level_ - 1 : 0)) out_.close();
        }
    }
    /// Warps share the vectors of every row, and each leaves its result in a copy of the target of its own. Then the
    /// warps share the rows and combine these results.
    void run_shared() {
        const int last = static_cast<int>(loops_.size());
        BodyWriter shares(frame_, step_, choices(), loops_, target_level_, names_);
        body_ = &shares;
        give_registers(shares);
        const ValueId root = shares.add_root(compute_.body, last, true);
        shares.decide();
        hoist(0);
        for (int level = 1; level <= target_level_; ++level) open_loop(level);
        declare("acc");
        if (lanes_) {
            sum_in_lanes(root);
        } else {
            for (int level = target_level_ + 1; level <= last; ++level) open_loop(level);
            prefetches();
            shares.statement(out_, root,
                             [&](const std::string& text) { return accumulate(text, shares.is_vector(root)); });
            for (int level = target_level_ + 1; level <= last; ++level) out_.close();
        }
        out_(rows() + fmt::format("put(&{}, real({}));", partial("warp_of_thread() * " + partials_of_warp() + " + "),
                                  over_lanes()));
        for (int level = 1; level <= target_level_; ++level) out_.close();
        if (step_.synchronizes_inside) out_("sync();");

        BodyWriter totals(frame_, step_, choices(), {loops_.begin(), loops_.begin() + target_level_}, target_level_, names_);
        body_ = &totals;
        give_registers(totals);
        const ValueId carry = compute_.carry ? totals.add_root(compute_.carry, target_level_, false) : -1;
        totals.decide();
        hoist(0);
        frame_.is_in_lanes(compute_.variable) ? out_.open("") : share_points();
        for (int level = 1; level <= target_level_; ++level) hoist(level);
        const ReduceOp op = *compute_.reduce;
        write_back(carry, fmt::format("{}(of_warps(&{}, {}, {}))", horizontal(op), partial(""), partials_of_warp(),
                                      literal(identity(op), frame_.is_double)));
        out_.close();
    }

    // ---- the loops
    /// What the biased factor adds too much to the lanes' sums, in the outermost loop on which the other one depends.
    void write_bias(int level) {
        if (!has_bias()) return;
        const Read& other = product_->unbiased(atom_.vector_axis);
        const int last = static_cast<int>(loops_.size());
        int outermost = target_level_;
        while (outermost > 0 && !depends_on(other.indices, axis_at(outermost))) --outermost;
        if (level != outermost) return;
        BodyWriter factor(frame_, step_, choices(), loops_, target_level_, names_);
        BodyWriter* const of_sums = std::exchange(body_, &factor);
        const ValueId root = factor.add_factor(other, last);
        factor.decide();
        for (int l = 0; l <= level; ++l) factor.hoist(out_, l);
        out_(fmt::format("vec bias{};", atom_.vectors > 1 ? fmt::format("[{}]", atom_.vectors) : ""));
        out_(fmt::format("{}{} = splat(0.0f);", vectors(), bias()));
        for (int l = target_level_ + 1; l <= last; ++l) open_loop(l);
        factor.statement(out_, root, [&](const std::string& text) {
            return fmt::format("{0} = add_bias({0}, {1});", bias(), as_vector(text, factor.is_vector(root)));
        });
        for (int l = target_level_ + 1; l <= last; ++l) out_.close();
        body_ = of_sums;
    }

    /// The accumulators, and the loops from `level` on that add to them.
    void reduce(ValueId root, int level) {
        goes_on() ? out_(fmt::format("auto& acc = {};", frame_.name(compute_.variable))) : declare("acc");
        for (int l = level; l <= std::ssize(loops_); ++l) open_loop(l);
        prefetches();
        body_->statement(out_, root, [&](const std::string& text) { return accumulate(text, body_->is_vector(root)); });
        for (int l = level; l <= std::ssize(loops_); ++l) out_.close();
        finish_lanes();
    }

    /// A long sum: the target takes up the sums of parts, so that no chain of additions grows with the whole length.
    void cut_sum(ValueId root, ValueId carry) {
        if (carry < 0)
            out_(rows() + vectors() + store(as_vector(literal(0, frame_.is_double), false), true));
        else
            body_->statement(out_, carry, [&](const std::string& text) { return store(text, body_->is_vector(carry)); });
        for (int level = target_level_ + 1; level < cut_level_; ++level) open_loop(level);
        out_.open(fmt::format("for (Index {0} = 0; {0} < {1}; {0} += {2})", block_name(), count(atom_.cut_axis), cut()));
        reduce(root, cut_level_);
        const std::string sum = fmt::format("{} + acc{}", value_of_target(), index());
        out_(rows() + vectors() + store(sum, true));
        for (int level = target_level_; level < cut_level_; ++level) out_.close();
    }

    [[nodiscard]] const std::string& block_name() const { return frame_.axis(axis_at(cut_level_)).block; }
    void open_loop(int level) {
        const AxisId axis = axis_at(level);
        const std::string& name = frame_.axis(axis).local;
        if (level == cut_level_) {
            const Span& span = frame_.span(axis, scope_);
            const std::string end = fmt::format("{} + {}", block_name(), cut());
            const bool whole = !span.ragged && span.tile % atom_.cut == 0;
            out_.open(fmt::format("for (Index {0} = {1}; {0} < {2}; ++{0})", name, block_name(),
                                  whole ? end : fmt::format("min_index({}, {})", end, count(axis))));
        } else {
            const std::int64_t by = frame_.block_size(atom_, axis);
            const int num_reduced = static_cast<int>(loops_.size()) - target_level_;
            write_unrolling(out_, frame_, atom_, first_unrolled_, level - target_level_ - 1, num_reduced);
            if (atom_.shared && axis == atom_.vector_axis)
                out_.open(fmt::format("for (Index {0} = warp_of_thread() * {2}; {0} < {1}; {0} += num_warps() * {2})",
                                      name, frame_.count(axis, scope_), by));
            else
                out_.open(fmt::format("for (Index {0} = 0; {0} < {1}; {2})", name, count(axis),
                                      by == 1 ? "++" + name : fmt::format("{} += {}", name, by)));
        }
        hoist(level);
    }

    void hoist(int level) {
        if (before_) before_->body_->hoist(out_, level);
        body_->hoist(out_, level);
        if (!fused_reduction_ || level > target_level_) return;
        fused_reduction_->body.hoist(out_, level);
        if (level != fused_reduction_->level) return;
        const bool several = atom_.vectors > 1;
        declare(fused_reduction_->acc, several ? fmt::format("[{}]", atom_.vectors) : "", vectors(),
                several ? "[j]" : "", *fused_reduction_->compute.reduce);
    }

    /// The carry joins at the end. What accumulates over many K blocks is then added to once a K block, which keeps
    /// rounding errors small.
    void write_back(ValueId carry) { write_back(carry, atom_.across ? over_lanes() : result() + index()); }
    void write_back(ValueId carry, const std::string& total) {
        const ReduceOp op = *compute_.reduce;
        const std::string block = result() + index();
        const bool is_vector = atom_.vector_axis >= 0;
        if (carry < 0) {
            if (!fused_reduction_) out_(rows() + (atom_.across ? "" : vectors()) + store(total, is_vector));
            return;
        }
        body_->statement(out_, carry, [&](const std::string& text) {
            const bool splat = is_vector && !atom_.across && !body_->is_vector(carry);
            const std::string sum = is_whole() ? combined_integer(op, text, total)
                                               : combined(op, splat ? fmt::format("splat({})", text) : text, total);
            return fused_reduction_ ? fmt::format("{} = {};", block, sum) : store(sum, is_vector);
        });
    }

    // ---- the previous group
    // ------------------------------------------------------------

    void plan_before(const Step& step) {
        frame_before_ = std::make_unique<Frame>(frame_.of_group_before());
        before_ = std::make_unique<ComputeWriter>(*frame_before_, out_, step);
        before_->own_body_ = std::make_unique<BodyWriter>(*frame_before_, step, before_->choices(), loops_,
                                                          target_level_, names_);
        before_->body_ = before_->own_body_.get();
        before_->root_ = before_->body_->add_root(before_->compute_.body, target_level_, true);
        before_->body_->decide();
    }
    void write_point() {
        body_->statement(out_, root_, [&](const std::string& text) { return store(text, body_->is_vector(root_)); });
    }

    // ---- the fused reduction
    // ------------------------------------------------------------

    void plan_fused_reduction() {
        const Step& step = frame_.step(step_.follower);
        const auto& compute = std::get<Compute>(*step.statement);
        const bool has_loop = target_level_ > 0 && axis_at(target_level_) == compute.reduce_axes.front();
        const int around = has_loop ? target_level_ - 1 : target_level_;
        fused_reduction_ = std::make_unique<FusedReduction>(
            FusedReduction{compute, around, names_.add(frame_.name(compute.variable) + "_acc"),
                           BodyWriter(frame_, step_, frame_.math(step).any.choices,
                                      {loops_.begin(), loops_.begin() + target_level_}, around, names_)});
        BodyWriter& body = fused_reduction_->body;
        body.give(compute_.variable, result() + index(), true);
        fused_reduction_->root = body.add_root(compute.body, target_level_, true);
        if (compute.carry) fused_reduction_->carry = body.add_root(compute.carry, around, true, false);
        body.decide();
    }
    [[nodiscard]] std::string fused_reduction_acc() const {
        return fused_reduction_->acc + (atom_.vectors > 1 ? "[j]" : "");
    }

    /// Stores the block of results and reduces it; padding rows must not take part.
    void follow() {
        const AxisId axis = fused_reduction_->compute.reduce_axes.front();
        const Span& span = frame_.span(axis, scope_);
        std::string guard;
        if (atom_.rows > 1 && (span.ragged || span.tile % atom_.rows != 0)) {
            const std::string name = body_->loop_name(axis);
            guard = fmt::format("if ({}i < {}) ", name.empty() ? "" : name + " + ", frame_.count(axis, scope_));
        }
        fused_reduction_->body.statement(out_, fused_reduction_->root, [&](const std::string& text) {
            const std::string value = as_vector(text, fused_reduction_->body.is_vector(fused_reduction_->root));
            return fmt::format("{{ {} {}{} }}", store(result() + index(), true), guard,
                               accumulated(*fused_reduction_->compute.reduce, fused_reduction_acc(), value));
        });
    }

    void finish_fused_reduction() {
        const Compute& c = fused_reduction_->compute;
        const auto store_to = [&](const std::string& text) {
            const Address address = frame_.address(c.variable, frame_.variable(c.variable).dims, scope_);
            return fmt::format("store(&{}[{}], {});", frame_.name(c.variable),
                               fused_reduction_->body.position(c.variable, address), text);
        };
        if (fused_reduction_->carry < 0) {
            out_(vectors() + store_to(fused_reduction_acc()));
            return;
        }
        fused_reduction_->body.statement(out_, fused_reduction_->carry, [&](const std::string& text) {
            return store_to(combined(*c.reduce, as_vector(text, fused_reduction_->body.is_vector(fused_reduction_->carry)),
                                     fused_reduction_acc()));
        });
    }

    Names names_;
    int cut_level_ = 0;                     ///< whose loop is cut into parts; 0: none
    int first_unrolled_ = 0;                ///< of the reduction's loops: those around it stay loops
    std::unique_ptr<BodyWriter> own_body_;  ///< of the previous group's statement
    ValueId root_ = -1;                     ///< and its value
    std::unique_ptr<Frame> frame_before_;
    std::unique_ptr<ComputeWriter> before_;
    std::unique_ptr<FusedReduction> fused_reduction_;
};

/// Text of the extremum of coordinates that are all reduced, which lies at an end.
std::optional<std::string> extremum_of_place(const Frame& frame, const Compute& compute, ScopeId scope) {
    if (!compute.reduce || !lies_at_an_end(*compute.reduce, compute.body)) return std::nullopt;
    if (compute.carry || !frame.variable(compute.variable).dims.empty()) return std::nullopt;
    const bool is_max = *compute.reduce == ReduceOp::max;
    const auto form = affine_form(compute.body);
    std::string text;
    std::int64_t constant = form->constant;
    for (const auto& [axis, c] : form->terms) {
        const Span& span = frame.span(axis, scope);
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

void write_compute(const Frame& frame, Lines& out, const Step& step, const Step* before) {
    const auto& compute = std::get<Compute>(*step.statement);
    if (const auto text = extremum_of_place(frame, compute, step.scope);
        text && frame.in_blocks() && frame.partials(step) == 0) {
        out(fmt::format("if (warp_of_thread() == 0) put({}, {}({}));", frame.name(compute.variable),
                        frame.cell_type(compute.variable), *text));
        return;
    } else if (text && !frame.in_blocks()) {
        out(fmt::format("{}[0] = {};", frame.name(compute.variable),
                        frame.is_whole(compute.variable) ? *text : fmt::format("real({})", *text)));
        return;
    }
    ComputeWriter(frame, out, step).run(before);
}

}  // namespace napkin::writers
