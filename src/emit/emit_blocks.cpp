#include "emit/emit_blocks.hpp"

#include <fmt/format.h>

#include <vector>

#include "emit/emit_header.hpp"
#include "emit/emit_write.hpp"
#include "support/ranges.hpp"

namespace napkin::writers {
namespace {

/// What the function's text mentions, as parameters and as arguments. Each has the same name in the kernel.
class Parameters {
public:
    Parameters(const Frame& frame, std::string text) : frame_(frame), text_(std::move(text)) {}

    void add_tiles(const std::vector<const Compute*>& computes) {
        std::vector<VariableId> used;
        for (const VariableId v : frame_.layouts.ids())
            if (mentions_name(text_, frame_.variables[v])) used.push_back(v);
        for (const VariableId v : used) {
            const bool written = any_of(computes, [&](const Compute* c) { return c->variable == v; });
            const bool shared = any_of(used, [&](VariableId other) {
                return other != v && frame_.is_held(v) && frame_.is_held(other) && !frame_.is_view(v) &&
                       !frame_.is_view(other) && frame_.layout(other).offset == frame_.layout(v).offset;
            });
            if (frame_.is_in_lanes(v)) {
                pass_lanes(v, written);
                continue;
            }
            if (frame_.is_in_accumulators(v)) {
                const std::string extents = accumulator_extents(frame_, v);
                const std::string name = extents.empty() ? "& " + frame_.name(v) : fmt::format(" (&{})", frame_.name(v));
                add_parameter(accumulator_type(frame_, v) + name + extents, frame_.name(v));
                continue;
            }
            pass(fmt::format("{}{}*{} ", written ? "" : "const ", frame_.cell_type(v), shared ? "" : " __restrict"),
                 frame_.name(v));
        }
        for (const auto& [id, name] : frame_.before)
            pass_if_used(fmt::format("{}real* __restrict ", frame_.is_output(id) ? "" : "const "), name);
        pass_if_used("real* ", frame_.partials_name);
        for (const auto& [id, name] : frame_.ahead) pass_if_used("const real* ", name);
    }
    /// Arrays that statements by runs access, and their strides.
    void add_memory() {
        for (const auto& [array, name] : frame_.memory) {
            const bool written = contains(frame_.outputs, array);
            pass_if_used(fmt::format("{}{}* __restrict ", written ? "" : "const ",
                                     memory_type(frame_.diagram().array(array).type)),
                         name);
            pass_if_used("const int64_t* __restrict ", frame_.strides.at(array));
        }
    }
    void add_positions() {
        for (const AxisNames& a : frame_.axes) {
            if (!mentions_name(text_, fmt::format("Index {} =", a.local))) pass_if_used("Index ", a.local);
            pass_if_used("Index ", a.begin);
            pass_if_used("Index ", a.count);
        }
    }

    void add_numbers() {
        for (const LaunchNumbers::Number& number : frame_.numbers->all())
            pass_if_used(number.of_launch.is_real ? "real " : "Index ", number.name);
    }

    std::string parameters, arguments;

private:
    void pass_if_used(const std::string& type, const std::string& name) {
        if (!name.empty() && mentions_name(text_, name)) pass(type, name);
    }
    void pass_lanes(VariableId v, bool written) {
        const LaneTile tile = *frame_.shape(v).lanes;
        if (frame_.shape(v).passes_by_rounds)
            return pass(fmt::format("const {}& ", lanes_type(frame_, v)), lanes_in_memory(frame_, v));
        const std::string type = written ? "real" : "const real", &name = frame_.name(v);
        add_parameter(
            tile.axis < 0 ? fmt::format("{}& {}", type, name) : fmt::format("{} (&{})[{}]", type, name, tile.values()),
            name);
    }
    void pass(const std::string& type, const std::string& name) { add_parameter(type + name, name); }
    void add_parameter(const std::string& declared, const std::string& name) {
        parameters += fmt::format("{}{}", parameters.empty() ? "" : ", ", declared);
        arguments += fmt::format("{}{}", arguments.empty() ? "" : ", ", name);
    }

    const Frame& frame_;
    const std::string text_;
};

}  // namespace

namespace {

/// The function of such a body, under lines of comments. Its name begins with what it does.
BlocksFunction function_of(Frame& frame, Lines body, const std::vector<const Compute*>& computes,
                           const std::string& does, const std::vector<std::string>& comments) {
    Lines code;
    for (const std::string& comment : comments) code("// " + comment);
    std::string name = does;
    for (const Compute* c : computes) name += (name == does ? "_" : "_and_") + frame.name(c->variable);
    name = frame.names.add(name);
    Parameters passed(frame, body.text());
    passed.add_tiles(computes);
    passed.add_memory();
    passed.add_positions();
    passed.add_numbers();
    code.open(fmt::format("NAPKIN_APART void {}({})", name, passed.parameters));
    code.append(std::move(body));
    code.close();
    code("");
    return {std::move(code), fmt::format("{}({});", name, passed.arguments)};
}

}  // namespace

BlocksFunction function_of_blocks(Frame& frame, const Step& step, const Step* before) {
    Lines body;
    step.is_tile_pipelined() ? write_compute(frame.of_group_before(), body, step)
                             : write_compute(frame, body, step, before);
    std::vector<const Compute*> computes = {&std::get<Compute>(*step.statement)};
    if (before) computes.insert(computes.begin(), &std::get<Compute>(*before->statement));
    if (step.follower >= 0) computes.push_back(&std::get<Compute>(*frame.step(step.follower).statement));
    std::vector<std::string> equations;
    for (const Compute* c : computes) equations.push_back(equation(frame, *c));
    return function_of(frame, std::move(body), computes, "compute", equations);
}

BlocksFunction function_of_sums_to_memory(Frame& frame, const Step& step) {
    Lines body;
    write_sums_to_memory(frame, body, step);
    const auto& compute = std::get<Compute>(*step.statement);
    return function_of(frame, std::move(body), {&compute}, "store",
                       {fmt::format("{} from registers to memory", frame.name(compute.variable))});
}

}  // namespace napkin::writers
