#include "emit/emit_header.hpp"

#include <fmt/format.h>

#include <set>

#include "support/text.hpp"

namespace napkin::writers {
namespace {

std::string joined(const std::vector<AxisId>& axes, const Diagram& diagram) {
    return join(names_of(diagram.axes, axes), ", ");
}

/// The equations that the kernel computes: those of its variables, and those that they are made of, up to what it
/// loads.
std::set<ArrayId> computed(const Frame& frame) {
    std::set<ArrayId> loaded(frame.inputs.begin(), frame.inputs.end()), out;
    auto open = mapped<ArrayId>(frame.kernel->variables, &Variable::array);
    while (!open.empty()) {
        const ArrayId a = open.back();
        open.pop_back();
        if (loaded.contains(a) || !out.insert(a).second) continue;
        if (const Equation* e = frame.diagram().definition(a))
            for (const ArrayId r : read_arrays(e->body)) open.push_back(r);
    }
    return out;
}

}  // namespace

ExprNames expression_names(const Frame& frame) {
    return {[&frame](AxisId a) { return frame.diagram().axis(a).name; },
            [&frame](ArrayId read) { return frame.variable(as_variable(read)).name; }};
}

std::string equation(const Frame& frame, const Compute& c) {
    const ExprNames names = expression_names(frame);
    const Variable& v = frame.variable(c.variable);
    std::string out = to_string(read(c.variable, v.dims), names) + " = ";
    std::string body = to_string(c.body, names);
    if (!c.reduce) return out + body;
    const std::string op(name(*c.reduce));
    if (c.carry) {
        const std::string carry = to_string(c.carry, names);
        if (*c.reduce == ReduceOp::sum)
            out += carry + " + ";
        else if (*c.reduce == ReduceOp::prod)
            out += "(" + carry + ") * ";
        else
            return fmt::format("{}{}({}, {}({}) {})", out, op, carry, op, joined(c.reduce_axes, frame.diagram()), body);
    }
    return fmt::format("{}{}({}) {}", out, op, joined(c.reduce_axes, frame.diagram()), body);
}

void write_header(const Frame& frame, Lines& out) {
    const Diagram& diagram = frame.diagram();
    out(fmt::format("// Kernel {} of {}.", frame.kernel->name, diagram.name));
    out("//");
    const std::set<ArrayId> shown = computed(frame);
    for (const Equation& e : diagram.equations)
        if (shown.contains(e.target)) out("//     " + to_string(diagram, e));
    out("//");
    // Reasons, and what follows from sizes, are not those of one text that serves several sizes.
    const bool is_of_one = frame.lowered.size_arguments.empty();
    const auto row = [&](const std::string& what, const auto& value, const std::string& reason) {
        std::string text = fmt::format("//     {:<14} {:>6}  {}", what, value, is_of_one ? reason : "");
        text.erase(text.find_last_not_of(' ') + 1);
        out(text);
    };
    const auto line = [&](const std::string& what, const Choice& choice) { row(what, choice.value, choice.reason); };
    const KernelSchedule& s = frame.schedule;
    for (const auto& [axis, choice] : s.group) line("group " + diagram.axis(axis).name, choice);
    for (const auto& [axis, choice] : s.stream) line("stream " + diagram.axis(axis).name, choice);
    if (is_of_one) line("threads", s.threads);
    if (is_of_one && s.grid.value > 0) line("grid", s.grid);
    if (const auto& [axis, ctas] = s.cluster.value; axis >= 0)
        row("cluster " + diagram.axis(axis).name, ctas, s.cluster.reason);
    if (frame.uses_stream_k()) row("scheduler", name(TileScheduler::stream_k), s.scheduler.reason);
    if (frame.in_blocks())
        line("warps", {s.warps.value, fmt::format("{} block{} an SM{}{}", s.blocks.value, s.blocks.value == 1 ? "" : "s",
                                                  s.warps.reason.empty() ? "" : "; ", s.warps.reason)});
    if (s.vector_axis >= 0) row("vector axis", diagram.axis(s.vector_axis).name, s.vector_axis.reason);
}

}  // namespace napkin::writers
