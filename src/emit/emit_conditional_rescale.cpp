// Conditional rescaling (schedule/conditional_rescale.hpp). Weights are computed with the maximum as it stands where
// their sums say that it may stay, else after it has moved.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <numbers>

#include "emit/emit_fragment.hpp"
#include "emit/emit_header.hpp"
#include "emit/emit_text.hpp"

namespace napkin::writers {
namespace {

/// Factor by which a weight may exceed its largest value and still be rescaled. What corrects it is then a normal
/// number. Its exponent had few digits before the point, and the rounding of the sums exceeds the rounding of that.
constexpr double largest_rescaled_weight = 0x1p64;

/// The maximum moved little in the previous iteration, so it is worth trying without.
std::string stays_name(const Frame& frame) { return frame.name(frame.rescale->maximum) + "_stays_"; }

class RescaleWriter {
public:
    RescaleWriter(const Frame& frame, Lines& out, std::set<std::string>& functions)
        : frame_(frame), rescale_(*frame.rescale), out_(out), functions_(functions) {}

    /// Weights with the maximum as it stands, and again after it has moved where that was too little.
    void try_as_it_stands() {
        const std::string maximum = frame_.name(rescale_.maximum), moves = moves_name(frame_);
        out_(fmt::format("// {} may stay where it is while no weight grows large: nothing depends on it in the end",
                         maximum));
        out_(fmt::format("{} {}[r_] = 1.0f;", rows_, frame_.name(rescale_.correction)));
        declare_guard();
        // Functions, not a loop: the assembler keeps flags and addresses of a loop's two rounds in registers. With CUDA
        // 13.0, 60 and 72 bytes of a thread spill in place of 32 and 24, in attention at d = 64 in K blocks of 128.
        const std::string move_name = maximum + "_move_", weigh_name = maximum + "_weigh_";
        out_.open(fmt::format("const auto {} = [&]", move_name));
        move();
        out_.close(";");
        out_.open(fmt::format("const auto {} = [&]", weigh_name));
        weigh();
        out_.close(";");
        out_(fmt::format("if ({0} = !{1}; {0}) {2}();", moves, stays_name(frame_), move_name));
        out_(fmt::format("{}();", weigh_name));
        out_.open(fmt::format("if (const unsigned {0} = those_of_warp(!({1})); !{2} && {0} != 0)", large(), is_small(),
                              moves));
        out_(fmt::format("{} = true;", moves));
        rescale();
        out_.open("else");
        for (const StepId s : rescale_.again) run_again(s);
        out_(fmt::format("{}(), {}();", move_name, weigh_name));
        out_.close();
        out_.close();
        add_up();
    }
    /// In the first iteration of a tile the maximum moves.
    void as_it_moves() {
        move();
        declare_guard();
        weigh();
        add_up();
    }

private:
    void move() {
        for (const StepId s : rescale_.moving) write(s);
        say_whether_it_stays();
    }
    void say_whether_it_stays() {
        // A maximum that moved far may do so again, and that of a row that has none yet will. What was infinite has no
        // correction.
        const std::string delta = frame_.name(rescale_.correction), maximum = frame_.name(rescale_.maximum);
        std::string moves_again;
        for (int r = 0; r < frame_.fragments().rows_a_thread; ++r)
            moves_again += fmt::format(
                "{0}({1}[{2}] > 0.0f && {1}[{2}] < {3}) || {4}[{2}] == {5}", r > 0 ? " || " : "", delta, r,
                frame_.real_text("1 / limit", inverse(rescale_.limit)), maximum,
                literal(std::copysign(std::numeric_limits<double>::infinity(), -rescale_.rate), false));
        out_(fmt::format("{} = !any_of_warp({});", stays_name(frame_), moves_again));
    }
    /// Where all weights of the warp's rows are in range, the reference moves by whole powers of two, by each row's
    /// largest.
    void rescale() {
        const std::string maximum = frame_.name(rescale_.maximum), &weights = name_of(rescale_.weights),
                          &delta = frame_.name(rescale_.correction), most = maximum + "_most_";
        const Step& step = frame_.step(rescale_.weights);
        const std::string columns = each_column(frame_, columns_of(frame_, frame_.shape(step).columns, step.scope)),
                          weight = fmt::format("{}[{}]", weights, number_in_thread(frame_, variable_of(step)));
        out_("// where all weights are in range, they move with the sums by whole powers of two");
        out_(fmt::format("float {}[{}];", most, frame_.fragments().rows_a_thread));
        out_.open(rows_);
        out_("float acc = 0;");
        out_(fmt::format("{} acc = maximum(acc, {});", columns, weight));
        out_(fmt::format(
            "{}[r_] = {}{};", most, over_row(frame_, "max_of", "acc"),
            frame_.is_number(rescale_.largest, 1) ? "" : " * " + frame_.real_text("1 / weight", inverse(rescale_.largest))));
        out_.close();
        const std::string range = literal(largest_rescaled_weight, false);
        out_.open(fmt::format("if (!any_of_warp(!({} && {})))", all_below(most, "<", range),
                              all_below(sums(), "<", "infinity<real>")));
        for (const StepId s : rescale_.moving) {
            if (variable_of(frame_.step(s)) == rescale_.maximum)
                out_(fmt::format("{3} {0}[r_] = {0}[r_] + whole_powers({1}[r_]) * {2};", maximum, most,
                                 literal(std::numbers::ln2 / rescale_.rate, false), rows_));
            else
                write(s);
        }
        say_whether_it_stays();
        out_(fmt::format("{} {} {} *= {}[r_];", rows_, columns, weight, delta));
        out_(fmt::format("{} {}[r_] *= {}[r_];", rows_, sums(), delta));
        out_.close();
    }
    /// The sums of weights say how large the weights are, and are needed anyway.
    void declare_guard() { out_(fmt::format("float {}[{}];", sums(), frame_.fragments().rows_a_thread)); }
    void weigh() {
        write(rescale_.weights, [&](bool has_whole_columns) {
            write_sum_of_thread(frame_, out_, frame_.step(rescale_.sum), sums(), has_whole_columns);
        });
    }
    void add_up() {
        const Step& s = frame_.step(rescale_.sum);
        const auto& compute = std::get<Compute>(*s.statement);
        const std::string own = sums() + "[r_]";
        out_(fmt::format("// {}", equation(frame_, compute)));
        out_(fmt::format("{3} {0}[r_] = {0}[r_] * {1}[r_] + {2};", name_of(rescale_.sum), frame_.name(rescale_.correction),
                         frame_.shape(compute.variable).is_kept_by_threads ? own : over_row(frame_, "sum", own), rows_));
    }
    static Expr inverse(const Expr& e) { return binary(BinaryOp::div, constant(1), e); }
    [[nodiscard]] std::string sums() const { return frame_.name(rescale_.maximum) + "_sums_"; }
    /// The threads whose weights are too large, or no numbers.
    [[nodiscard]] std::string large() const { return frame_.name(rescale_.maximum) + "_large_"; }
    /// False where something is no number.
    [[nodiscard]] std::string is_small() const {
        return all_below(sums(), "<=", frame_.real_text("limit", rescale_.limit));
    }
    /// Whether the values of all of a thread's rows are below a limit.
    [[nodiscard]] std::string all_below(const std::string& values, const char* how, const std::string& limit) const {
        std::string out;
        for (int r = 0; r < frame_.fragments().rows_a_thread; ++r)
            out += fmt::format("{}{}[{}] {} {}", r > 0 ? " && " : "", values, r, how, limit);
        return out;
    }

    [[nodiscard]] const std::string& name_of(StepId step) const { return frame_.name(variable_of(frame_.step(step))); }

    void write(StepId step, const AfterFragment& then = {}) {
        const Step& s = frame_.step(step);
        out_(fmt::format("// {}", equation(frame_, std::get<Compute>(*s.statement))));
        write_fragment(frame_, out_, s, then);
    }
    /// Each warp decides for itself and none waits for another. So one warp computes again what four warps compute
    /// together.
    void run_again(StepId step) {
        const Step& s = frame_.step(step);
        if (frame_.atom(s).kind != AtomKind::mma) return write(step);
        out_(fmt::format("// {}", equation(frame_, std::get<Compute>(*s.statement))));
        // Two products would declare the same names.
        const bool is_alone = std::count_if(rescale_.again.begin(), rescale_.again.end(), [&](StepId other) {
                                  return frame_.atom(frame_.step(other)).kind == AtomKind::mma;
                              }) == 1;
        if (!is_alone) out_.open("");
        write_product_again(frame_, out_, s, large(), functions_);
        if (!is_alone) out_.close();
    }

    const Frame& frame_;
    const ConditionalRescale& rescale_;
    Lines& out_;
    std::set<std::string>& functions_;
    std::string rows_ = each_row(frame_);
};

}  // namespace

std::string moves_name(const Frame& frame) { return frame.name(frame.rescale->maximum) + "_moves_"; }

void declare_rescale(const Frame& frame, Lines& out) {
    // Integers, not truth values: they live through the loop in registers. In a kernel that is short of registers, the
    // assembler (CUDA 13.0) spills a few bytes more for truth values.
    if (frame.rescale) out(fmt::format("int {} = true, {} = false;", moves_name(frame), stays_name(frame)));
}

void write_init_of_rescale(const Frame& frame, Lines& out) {
    out(fmt::format("{} = true, {} = false;", moves_name(frame), stays_name(frame)));
}

void write_rescaled_weights(const Frame& frame, Lines& out, bool is_first_iteration, std::set<std::string>& functions) {
    RescaleWriter writer(frame, out, functions);
    is_first_iteration ? writer.as_it_moves() : writer.try_as_it_stands();
}

}  // namespace napkin::writers
