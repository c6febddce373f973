#include "emit/cpu/emit.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <set>
#include <utility>

#include "emit/cpu/emit_frame.hpp"
#include "emit/cpu/emit_write.hpp"
#include "emit/cpu/prelude.hpp"
#include "support/result.hpp"

namespace napkin::cpu {
namespace {
ExprNames expression_names(const Frame& frame) {
    return {[&frame](AxisId a) { return frame.program->diagram.axis(a).name; },
            [&frame](ArrayId v) { return frame.variable(v).name; }};
}

std::string joined(const std::vector<AxisId>& axes, const Diagram& diagram) {
    std::string out;
    for (const AxisId a : axes) out += (out.empty() ? "" : ", ") + diagram.axis(a).name;
    return out;
}

/// The statement as an equation over the kernel's variables.
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
            return fmt::format("{}{}({}, {}({}) {})", out, op, carry, op, joined(c.reduce_axes, frame.program->diagram),
                               body);
    }
    return fmt::format("{}{}({}) {}", out, op, joined(c.reduce_axes, frame.program->diagram), body);
}

class KernelWriter {
public:
    KernelWriter(Frame& frame, std::string entry) : frame_(frame), entry_(std::move(entry)) {}

    std::string run() {
        out_.open(fmt::format(
            "extern \"C\" void {}(const void* const* inputs, void* const* outputs, const int64_t* strides,\n"
            "        int64_t first_group, int64_t last_group, void* arena)",
            entry_));
        const Lines head = std::exchange(out_, Lines(1));
        out_.open("for (Index group = first_group; group < last_group; ++group)");
        group_position();
        nodes(frame_.body);
        out_.close();
        const std::string groups_loop = std::exchange(out_, head).text();
        memory_pointers(groups_loop);
        variable_pointers();
        out_.append(groups_loop);
        out_.close();
        const std::string main = std::exchange(out_, Lines()).text();

        header_comment();
        out_(fmt::format("namespace napkin_cpu::{}_code {{", entry_));
        out_("");
        out_(fmt::format("using real = {};", frame_.is_double ? "double" : "float"));
        out_("using vec = Vec<real>;");
        out_("using mask = Mask<real>;");
        out_("");
        return out_.text() + functions_ + main + fmt::format("\n}}  // namespace napkin_cpu::{}_code\n", entry_);
    }

private:
    [[nodiscard]] const Diagram& diagram() const { return frame_.program->diagram; }

    void header_comment() {
        out_(fmt::format("// Kernel {} of {}.", frame_.kernel->name, diagram().name));
        out_("//");
        const std::set<ArrayId> shown = computed();
        for (const Equation& e : diagram().equations)
            if (shown.contains(e.target)) out_("//     " + to_string(diagram(), e));
        out_("//");
        for (const auto& [axis, size] : frame_.kernel->groups) table("group", axis, size, frame_.plan->group);
        for (const auto& [name, choice] : frame_.plan->stream) line("stream " + name, choice.value, choice.reason);
        line("threads", frame_.plan->threads.value, frame_.plan->threads.reason);
        if (!frame_.plan->vector_axis.empty())
            out_(fmt::format("//     {:<14} {:>6}  {}", "vector axis", frame_.plan->vector_axis,
                             frame_.plan->vector_axis_reason));
        line("block rows", frame_.plan->block_rows.value, frame_.plan->block_rows.reason);
        line("block vectors", frame_.plan->block_vectors.value, frame_.plan->block_vectors.reason);
    }
    void line(const std::string& what, std::int64_t value, const std::string& reason) {
        std::string text = fmt::format("//     {:<14} {:>6}  {}", what, value, reason);
        text.erase(text.find_last_not_of(' ') + 1);
        out_(text);
    }
    void table(const char* kind, AxisId axis, std::int64_t size, const std::map<std::string, Choice>& choices) {
        const std::string& name = diagram().axis(axis).name;
        const auto it = choices.find(name);
        line(fmt::format("{} {}", kind, name), size, it == choices.end() ? "" : it->second.reason);
    }
    /// The equations that the kernel computes: those of its variables, and what they are made of short of what it loads.
    [[nodiscard]] std::set<ArrayId> computed() const {
        std::set<ArrayId> loaded(frame_.inputs.begin(), frame_.inputs.end()), out;
        std::vector<ArrayId> open;
        for (const Variable& v : frame_.kernel->variables) open.push_back(v.array);
        while (!open.empty()) {
            const ArrayId a = open.back();
            open.pop_back();
            if (loaded.contains(a) || !out.insert(a).second) continue;
            if (const Equation* e = diagram().definition(a))
                for (const ArrayId r : read_arrays(e->body)) open.push_back(r);
        }
        return out;
    }

    void memory_pointers(const std::string& user) {
        std::size_t stride = 0;
        const auto declare = [&](const std::vector<ArrayId>& arrays, bool is_input) {
            for (std::size_t k = 0; k < arrays.size(); ++k) {
                const Array& a = diagram().array(arrays[k]);
                const std::string& name = frame_.memory.at(arrays[k]);
                const std::string type = (is_input ? "const " : "") + memory_type(a.type);
                if (is_input || !contains(frame_.inputs, arrays[k])) {
                    out_(fmt::format("{0}* const {1} = static_cast<{0}*>({2}[{3}]);", type, name,
                                     is_input ? "inputs" : "outputs", k));
                    if (const std::string& strides = frame_.strides.at(arrays[k]); mentions_name(user, strides))
                        out_(fmt::format("const int64_t* const {} = strides + {};", strides, stride));
                }
                stride += a.axes.size();
            }
        };
        declare(frame_.inputs, true);
        declare(frame_.outputs, false);
    }

    void variable_pointers() {
        out_("real* const base = static_cast<real*>(arena);");
        for (std::size_t v = 0; v < frame_.layouts.size(); ++v) {
            const Layout& l = frame_.layouts[v];
            if (l.first < 0 || (l.is_view && !l.may_overrun)) continue;
            std::string shape;
            for (std::size_t d = 0; d < l.sizes.size(); ++d)
                if (static_cast<int>(d) != l.innermost) shape += std::to_string(l.sizes[d]) + " × ";
            shape += l.innermost >= 0 ? std::to_string(l.sizes[static_cast<std::size_t>(l.innermost)]) : "1";
            const std::string place = fmt::format("base + {}", l.offset);
            out_(fmt::format("{}* const {} = {};  // {}{}", frame_.cell_type(static_cast<VariableId>(v)),
                             l.is_view ? frame_.copies[v] : frame_.variables[v],
                             frame_.whole[v] ? fmt::format("reinterpret_cast<int64_t*>({})", place) : place, shape,
                             l.panel_local ? ", one panel" : ""));
        }
    }

    void group_position() {
        std::int64_t below = 1;
        std::vector<std::string> lines;
        for (auto it = frame_.kernel->groups.rbegin(); it != frame_.kernel->groups.rend(); ++it) {
            const auto& [axis, size] = *it;
            const Span& span = span_of(frame_.scope(0), axis);
            const std::int64_t tiles = (frame_.extent(axis) + span.tile - 1) / span.tile;
            if (!span.begins) continue;
            std::string text = below == 1 ? "group" : fmt::format("group / {}", below);
            if (below * tiles != groups()) text += fmt::format(" % {}", tiles);
            if (span.tile != 1) text += fmt::format(" * {}", span.tile);
            lines.push_back(fmt::format("[[maybe_unused]] const Index {} = {};", frame_.axis(axis).begin, text));
            if (span.ragged)
                lines.push_back(fmt::format("[[maybe_unused]] const Index {} = min_index({}, {} - {});",
                                            frame_.axis(axis).count, span.tile, frame_.extent(axis),
                                            frame_.axis(axis).begin));
            below *= tiles;
        }
        for (const std::string& l : lines) out_(l);
    }
    [[nodiscard]] std::int64_t groups() const { return group_count(frame_); }

public:
    static std::int64_t group_count(const Frame& frame) {
        std::int64_t n = 1;
        for (const auto& [axis, size] : frame.kernel->groups) {
            const std::int64_t tile = span_of(frame.scope(0), axis).tile;
            n *= (frame.extent(axis) + tile - 1) / tile;
        }
        return n;
    }

private:
    void nodes(const std::vector<Node>& list) {
        for (const Node& node : list) {
            if (const int* s = std::get_if<int>(&node)) step(frame_.steps[static_cast<std::size_t>(*s)]);
            if (const auto* p = std::get_if<Panels>(&node)) panels(*p);
            if (const auto* l = std::get_if<std::shared_ptr<LoopNode>>(&node)) loop(**l);
        }
    }

    void step(const Step& s) {
        const auto tile = [&](VariableId v) {
            const Variable& variable = frame_.variable(v);
            return to_string(read(v, variable.gathers.empty() ? variable.dims : variable.gathers), expression_names(frame_));
        };
        if (const auto* load = std::get_if<Load>(s.statement)) {
            out_(fmt::format("// load {}", tile(load->variable)));
            write_load(frame_, out_, load->variable, s.scope);
        } else if (const auto* store = std::get_if<Store>(s.statement)) {
            out_(fmt::format("// store {}", tile(store->variable)));
            write_store(frame_, out_, store->variable, s.scope);
        } else if (const auto* init = std::get_if<Init>(s.statement)) {
            write_init(frame_, out_, *init);
        } else {
            compute(s);
        }
    }

    /// A function of its own, so that the compiler gives its loops all registers; it gets what its text mentions.
    void compute(const Step& s) {
        if (s.follows) return;
        Lines body(1);
        write_compute(frame_, body, s);
        std::vector<const Compute*> computes = {&std::get<Compute>(*s.statement)};
        if (s.follower >= 0)
            computes.push_back(&std::get<Compute>(*frame_.steps[static_cast<std::size_t>(s.follower)].statement));
        std::string comment, name = "compute";
        for (const Compute* c : computes) {
            comment += fmt::format("// {}\n", equation(frame_, *c));
            name += (name == "compute" ? "_" : "_and_") + frame_.name(c->variable);
        }
        name = frame_.names.add(name);

        std::vector<VariableId> used;
        for (std::size_t v = 0; v < frame_.layouts.size(); ++v)
            if (mentions_name(body.text(), frame_.variables[v])) used.push_back(static_cast<VariableId>(v));
        std::string parameters, arguments;
        const auto pass = [&](const std::string& type, const std::string& what) {
            parameters += fmt::format("{}{}{}", parameters.empty() ? "" : ", ", type, what);
            arguments += fmt::format("{}{}", arguments.empty() ? "" : ", ", what);
        };
        for (const VariableId v : used) {
            const bool written = std::any_of(computes.begin(), computes.end(),
                                             [&](const Compute* c) { return c->variable == v; });
            const bool shared = std::any_of(used.begin(), used.end(), [&](VariableId other) {
                return other != v && !frame_.layout(v).is_view && !frame_.layout(other).is_view &&
                       frame_.layout(other).offset == frame_.layout(v).offset;
            });
            pass(fmt::format("{}{}*{} ", written ? "" : "const ", frame_.cell_type(v), shared ? "" : " __restrict"),
                 frame_.name(v));
        }
        for (const AxisNames& a : frame_.axes) {
            const auto pass_if_used = [&](const std::string& what) {
                if (!what.empty() && mentions_name(body.text(), what)) pass("Index ", what);
            };
            if (!mentions_name(body.text(), fmt::format("Index {} =", a.local))) pass_if_used(a.local);
            pass_if_used(a.begin);
            pass_if_used(a.count);
        }
        functions_ += fmt::format("{}NAPKIN_APART void {}({}) {{\n{}}}\n\n", comment, name, parameters, body.text());
        out_(fmt::format("{}({});", name, arguments));
    }

    void panels(const Panels& p) {
        const AxisId v = frame_.vector_axis;
        const Step& first = frame_.steps[static_cast<std::size_t>(p.steps.front())];
        const bool several = span_of(frame_.scope(first.scope), v).tile > frame_.panel();
        if (several)
            out_.open(fmt::format("for (Index {0} = 0; {0} < {1}; {0} += {2})", frame_.axis(v).local,
                                  frame_.count(v, first.scope), frame_.panel()));
        for (const int s : p.steps) compute(frame_.steps[static_cast<std::size_t>(s)]);
        if (several) out_.close();
    }

    void loop(const LoopNode& node) {
        const TileLoop& l = *node.loop;
        const Span& span = span_of(frame_.scope(node.scope), l.axis);
        const std::int64_t extent = frame_.extent(l.axis);
        const AxisNames& names = frame_.axis(l.axis);
        if (l.support.empty() && !span.begins) {
            out_.open("");
            nodes(node.body);
            out_.close();
            return;
        }
        std::string begin = "0", end = std::to_string(extent);
        if (!l.support.empty()) {
            out_.open("");
            begin = names.begin + "_first_", end = names.begin + "_last_";
            support(node, begin, end);
        }
        out_.open(fmt::format("for (Index {0} = {1}; {0} < {2}; {0} += {3})", names.begin, begin, end, span.tile));
        if (span.ragged)
            out_(fmt::format("const Index {} = min_index({}, {} - {});", names.count, span.tile, extent, names.begin));
        nodes(node.body);
        out_.close();
        if (!l.support.empty()) out_.close();
    }

    /// The chunks that contribute: those in which every support form reaches 0 somewhere.
    void support(const LoopNode& node, const std::string& begin, const std::string& end) {
        const TileLoop& l = *node.loop;
        const Span& span = span_of(frame_.scope(node.scope), l.axis);
        const std::int64_t extent = frame_.extent(l.axis);
        out_(fmt::format("Index {} = 0, {} = {};", begin, end, extent));
        for (const Affine& form : l.support) {
            const std::int64_t c = form.coefficient(l.axis);
            Affine rest = form;
            rest.add(l.axis, -c);
            const std::string most = highest(frame_, rest, node.scope);
            ExprNames names = expression_names(frame_);
            out_(fmt::format("// {} >= 0", to_string(form, names)));
            if (c == 0) {
                out_(fmt::format("if ({} < 0) {} = 0;", most, end));
            } else if (c < 0) {
                out_(fmt::format("{0} = min_index({0}, floor_div({1}, {2}) + 1);", end, most, -c));
            } else {
                // The last value of a chunk is the first that must reach ceil(-most / c).
                out_(fmt::format("{0} = max_index({0}, -floor_div({1}, {2}) / {3} * {3});", begin, most, c, span.tile));
            }
        }
    }

    Frame& frame_;
    std::string entry_, functions_;
    Lines out_;
};

}  // namespace

bool mentions_name(const std::string& text, const std::string& name) {
    const auto is_word = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; };
    for (std::size_t at = text.find(name); at != std::string::npos; at = text.find(name, at + 1)) {
        const std::size_t end = at + name.size();
        if ((at == 0 || !is_word(text[at - 1])) && (end == text.size() || !is_word(text[end]))) return true;
    }
    return false;
}

CpuSource emit(const TileProgram& program, const Plan& plan, const EmitOptions& options) {
    internal_check(plan.kernels.size() == program.kernels.size(), "emit: the plan has another number of kernels");
    CpuSource out;
    out.vector_bytes = options.vector_bytes;
    for (std::size_t k = 0; k < program.kernels.size(); ++k) {
        Frame frame = analyse(program, program.kernels[k], plan.kernels[k], options);
        const std::string entry = fmt::format("{}{}", options.prefix, k);
        if (k > 0) out.text += "\n";
        out.text += KernelWriter(frame, entry).run();
        out.entries.push_back({entry, frame.inputs, frame.outputs, frame.packed, KernelWriter::group_count(frame),
                               frame.arena_values * (frame.is_double ? 8 : 4)});
    }
    return out;
}

std::string complete(const CpuSource& source) {
    return fmt::format("#define NAPKIN_VECTOR_BYTES {}\n", source.vector_bytes) + std::string(prelude_text()) + "\n" +
           source.text;
}

}  // namespace napkin::cpu
