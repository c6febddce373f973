// Stream-K: what the warps of two blocks, each with a part of a tile, leave for each other, and how they combine it.
#include <fmt/format.h>

#include "algebra/expr_walk.hpp"
#include "emit/emit_fragment.hpp"
#include "emit/emit_header.hpp"
#include "emit/emit_places.hpp"
#include "support/ids.hpp"

namespace napkin::writers {
namespace {

constexpr const char* left_name = "left_";

/// The frame with more variables behind all others. They are for what this warp's part has of each variable, and for
/// what the other part has of it.
class FrameOfParts {
public:
    explicit FrameOfParts(const Frame& frame)
        : frame_(frame), tiles_(*frame.kernel), count_(std::ssize(frame.layouts)) {
        for (const char* const part : {"own", "other"})
            for (const VariableId v : frame.layouts.ids()) {
                tiles_.variables.push_back(frame.kernel->variables[v]);
                frame_.layouts.push_back(frame.layouts[v]);
                frame_.shapes.variables.push_back(frame.shapes.variables[v]);
                frame_.variable_facts.push_back(frame.variable_facts[v]);
                frame_.schedule.places.push_back(frame.schedule.places[v]);
                frame_.variables.push_back(fmt::format("{}_{}_", frame.variables[v], part));
            }
        frame_.kernel = &tiles_;
    }
    FrameOfParts(const FrameOfParts&) = delete;
    FrameOfParts& operator=(const FrameOfParts&) = delete;

    [[nodiscard]] const Frame& frame() const { return frame_; }
    [[nodiscard]] VariableId of(VariableId variable, int part) const {
        return VariableId::of(variable + (part + 1) * count_);
    }
    [[nodiscard]] const std::string& name(VariableId variable, int part) const {
        return frame_.name(of(variable, part));
    }
    [[nodiscard]] Expr given(const Expr& e, int part) const {
        return transform(e, [&](const Expr& node) {
            const auto* r = as<Read>(node);
            return r && is_in_part(r->variable()) ? read(of(variable_in_part(r->variable()), part), r->indices) : node;
        });
    }

private:
    Frame frame_;
    TileKernel tiles_;
    std::ptrdiff_t count_;
};

/// Calls f for each state that parts of a tile merge, with the number of its first register among those left.
template <class F>
void for_each_state(const Frame& frame, F f) {
    std::int64_t first = 0;
    for (const StateMerge& merge : frame.kernel->merges) f(merge, first), first += frame.shape(merge.state).registers;
}
std::string place_left(const Frame& frame, std::int64_t first, const std::string& number) {
    return fmt::format("{} + {} * ({}{})", left_name, frame.unit.warp_threads,
                       first == 0 ? "" : fmt::format("{} + ", first), number);
}

}  // namespace

std::string shares_type(const Frame& frame) {
    const StreamK& cut = *frame.shapes.stream_k;
    const ScheduledLoop& loop = frame.loops[cut.loop];
    const lower::SizeFormulas of(frame.lowered);
    const auto number = [&](const char* what, const Expr& formula) { return whole_of_tiles(frame, what, formula); };
    return fmt::format("StreamKSchedule{{unsigned({}), unsigned({}), unsigned({}), unsigned({}), {}}}",
                       number("split_ctas", of.blocks()), number("split_rounds", of.split_rounds()),
                       number("split_groups", of.split_groups()), number("split_blocks", of.k_blocks(loop)),
                       frame.span(loop.loop->axis, loop.scope).tile);
}

void write_claim(const Frame& frame, Lines& out) {
    const StreamK& cut = *frame.shapes.stream_k;
    const lower::SizeFormulas of(frame.lowered);
    const Expr whole_groups = lower::whole_formula(BinaryOp::mul, of.split_rounds(), of.blocks());
    out("// the same warp of another block has the rest of the stream");
    out(fmt::format("const Index pair_ = (group - {}) * {} + {};", whole_of_tiles(frame, "whole_groups", whole_groups),
                    frame.schedule.warps.value, warp_name));
    out("unsigned* const word_ = reinterpret_cast<unsigned*>(scratch) + pair_;");
    out(fmt::format("float* const {} = reinterpret_cast<float*>(scratch + {}) + pair_ * {} + lane_of_thread();",
                    left_name, whole_of_tiles(frame, "words_bytes", of.stream_k_words_bytes()),
                    cut.registers * frame.unit.warp_threads));
    out(fmt::format("{} = arrives_second(word_);", goes_on_name));
}

void write_states_left(const Frame& frame, Lines& out) {
    for_each_state(frame, [&](const StateMerge& merge, std::int64_t first) {
        out(fmt::format("EACH(i_, {}) leave_partial({}, {}[i_]);", frame.shape(merge.state).registers,
                        place_left(frame, first, "i_"), frame.name(merge.state)));
    });
}

void write_merged_states(const Frame& frame, Lines& out) {
    const FrameOfParts parts(frame);
    for_each_state(frame, [&](const StateMerge& merge, std::int64_t first) {
        const bool has_columns = frame.shape(merge.state).columns >= 0;
        const DType type = frame.shape(merge.state).register_type;
        const std::string number = number_in_thread(frame, merge.state),
                          word = fmt::format("partial_left({})", place_left(frame, first, number)),
                          left = type == DType::i32 ? fmt::format("bits({})", word) : word;
        out(fmt::format("// {} of both parts", frame.name(merge.state)));
        if (!has_columns) {
            // Other states are merged by what each part has of this one.
            const std::string &own = parts.name(merge.state, 0), &other = parts.name(merge.state, 1);
            out(fmt::format("float {0}[{2}], {1}[{2}];", own, other, frame.fragments().rows_a_thread));
            out(fmt::format("{} {}[r_] = {}[r_], {}[r_] = {};", each_row(frame), own, frame.name(merge.state), other, left));
        }
        std::map<VariableId, std::string> texts;
        visit(merge.given, [&](const Expr& node) {
            const auto* r = as<Read>(node);
            if (!r) return;
            if (!is_in_part(r->variable())) {
                texts[r->variable()] = fmt::format("{}[{}]", frame.name(r->variable()),
                                                   number_in_thread(frame, r->variable()));
                return;
            }
            const VariableId of = variable_in_part(r->variable());
            const bool is_target = of == merge.state && has_columns;
            for (int part = 0; part < 2; ++part)
                texts[parts.of(of, part)] = !is_target
                                                ? fmt::format("{}[{}]", parts.name(of, part), number_in_thread(frame, of))
                                            : part == 0 ? fmt::format("{}[{}]", frame.name(of), number)
                                                        : "other_";
        });
        lower::MathChoices math;
        for (int part = 0; part < 2; ++part)
            for (lower::MathChoice choice : frame.lowered.math.merges[at(&merge - frame.kernel->merges.data())]) {
                choice.node = parts.given(choice.node, part);
                math.push_back(std::move(choice));
            }
        write_state_of_parts(parts.frame(), out, merge, {parts.given(merge.given, 0), parts.given(merge.given, 1)}, math,
                             texts, has_columns ? fmt::format("const {} other_ = {};", register_text(type), left) : "");
    });
}

}  // namespace napkin::writers
