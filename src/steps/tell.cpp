// What each step changed and why, with its program and how it was tried.
#include "steps/tell.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "support/ids.hpp"
#include "support/text.hpp"
#include "tile/print.hpp"
#include "tile/uses.hpp"

namespace napkin {
namespace {

constexpr int num_trials = 12;

std::string validated(int trials) {
    return fmt::format("verified, and run on {} small sizes against the definition, on inputs that show faults", trials);
}

class Narrator {
public:
    Narrator(const Derived& derived, const StepContext& context, const Assigned& assigned, const KernelSteps& out)
        : derived_(derived), context_(context), assigned_(assigned), out_(out) {}

    static std::vector<StepChange> changes(const std::vector<std::pair<std::string, std::string>>& notes) {
        std::vector<StepChange> out;
        for (const auto& [what, why] : notes) out.push_back({what, why});
        return out;
    }

    std::vector<PaperStep> run(const TileProgram& expanded, std::size_t k, const std::set<AxisId>& cut) {
        std::vector<PaperStep> steps;
        const auto tried = [&](const TileKernel& kernel) {
            std::vector<TileKernel> kernels = expanded.kernels;
            kernels[k] = kernel;
            return tried_on_small_sizes(derived_, kernels, num_trials);
        };
        // Sizes in indices stay letters: what is tried has others.
        const TileKernel& plain = expanded.kernels[k];
        const TileKernel in_parts = with_subloops_along(context_.diagram, plain, cut);
        steps.push_back({"pseudocode expansion", expansion(context_, plain),
                         pseudocode(context_, with_numbers(plain, context_.extents)), validated(num_trials), tried(plain)});
        PaperStep subloops{"subloops", {}, "", validated(num_trials), ""};
        cut_apart(in_parts, in_parts.body, {}, subloops.changes);
        if (subloops.changes.empty())
            subloops.changes.push_back(
                {"none", "no line `subloop` cuts an accumulator or a contraction: parts are whole chunks"});
        if (!cut.empty())
            subloops.program = pseudocode(
                context_, with_subloops_along(context_.diagram, with_numbers(plain, context_.extents), cut));
        subloops.fault = tried(in_parts);
        steps.push_back(std::move(subloops));
        PaperStep levels{"levels and units", changes(assigned_.places), pseudocode(context_, assigned_.kernel),
                         validated(num_trials), tried(assign_levels(context_.diagram, in_parts, context_.machine).kernel)};
        for (const auto& [what, why] : assigned_.moves) levels.changes.push_back({what, why});
        steps.push_back(std::move(levels));
        PaperStep precision{"precision", {}, "", "types of products are those that an instruction takes", ""};
        for (const VariableLife& life : out_.lives) {
            const AssignedVariable& v = assigned_.variables[life.variable];
            precision.changes.push_back(
                {fmt::format("{}: {}", assigned_.kernel.variables[life.variable].name, name(v.type)), v.type_reason});
        }
        steps.push_back(std::move(precision));
        steps.push_back(divisor_step(context_, out_.divisors));
        steps.push_back(variables());
        return steps;
    }

    /// Every subloop: what it cuts, and why that may be cut.
    void cut_apart(const TileKernel& kernel, const std::vector<TileStatement>& list, const std::set<AxisId>& streams,
                   std::vector<StepChange>& out) const {
        for (const TileStatement& s : list) {
            const auto* loop = std::get_if<std::shared_ptr<const TileLoop>>(&s);
            if (!loop) continue;
            const AxisId axis = (*loop)->axis;
            const std::string over = fmt::format("over {}, {} at a time", context_.diagram.axis(axis).name,
                                                 context_.sizes.sub[axis]);
            std::set<AxisId> inside = streams;
            inside.insert(axis);
            cut_apart(kernel, (*loop)->body, inside, out);
            if (!(*loop)->is_sub) continue;
            if (streams.contains(axis)) {
                out.push_back({"the accumulators " + over,
                               "what accumulates a chunk accumulates any part of it: it is streamable itself"});
                continue;
            }
            std::vector<std::string> targets;
            for_each_statement((*loop)->body, [&](const TileStatement& inner) {
                if (const auto* compute = std::get_if<Compute>(&inner))
                    targets.push_back(kernel.variables[compute->variable].name);
            });
            out.push_back({join(targets, ", ") + " " + over,
                           "a contraction is linear in every axis: its parts are computed and added by themselves"});
        }
    }

    [[nodiscard]] PaperStep variables() const {
        PaperStep step{"variables", {}, "", "no two variables of one place are alive at the same time", ""};
        const auto name_of = [&](VariableId v) { return assigned_.kernel.variables[v].name; };
        std::map<int, VariableId> first;
        for (const VariableLife& life : out_.lives) {
            const std::string name = name_of(life.variable), lives = fmt::format("alive {}–{}", life.first, life.last);
            if (life.slot < 0)
                step.changes.push_back({fmt::format("{} takes no place", name), life.recomputed});
            else if (const auto [known, is_new] = first.try_emplace(life.slot, life.variable); !is_new)
                step.changes.push_back({fmt::format("{} takes the place of {}", name, name_of(known->second)),
                                        lives + ": no larger, and not alive at the same time"});
            else if (assigned_.variables[life.variable].stages > 1)
                step.changes.push_back({fmt::format("{} {} times", name, assigned_.variables[life.variable].stages),
                                        lives + ": the next chunk's comes while this one's is in use"});
            else
                step.changes.push_back({name, lives});
        }
        for (const VariableLife& a : out_.lives)
            for (const VariableLife& b : out_.lives)
                if (a.slot >= 0 && a.slot == b.slot && a.variable != b.variable && a.first <= b.first && b.first < a.last)
                    step.fault = fmt::format("{} and {} share a place and are alive together", name_of(a.variable),
                                             name_of(b.variable));
        return step;
    }

    const Derived& derived_;
    const StepContext& context_;
    const Assigned& assigned_;
    const KernelSteps& out_;
};

}  // namespace

std::vector<StepChange> expansion(const StepContext& context, const TileKernel& kernel) {
    std::vector<StepChange> out;
    int head = 0, tail = 0;
    bool streams = false;
    for (const TileStatement& s : kernel.body) {
        if (const auto* loop = std::get_if<std::shared_ptr<const TileLoop>>(&s)) {
            int body = 0;
            for (const TileStatement& inner : (*loop)->body) body += !std::holds_alternative<Free>(inner);
            out.push_back(
                {fmt::format("body: {} statements for each chunk of {}", body, context.diagram.axis((*loop)->axis).name),
                 fmt::format("a fold's step takes any number of values: {} at a time", context.sizes.stream[(*loop)->axis])});
            streams = true;
        } else if (!std::holds_alternative<Free>(s)) {
            ++(streams ? tail : head);
        }
    }
    out.insert(out.begin(), {fmt::format("head: {} statement{}", head, head == 1 ? "" : "s"),
                             streams ? "states begin as those of a stream of size 0" : "nothing is streamed"});
    if (streams)
        out.push_back({fmt::format("tail: {} statement{}", tail, tail == 1 ? "" : "s"),
                       "what does not depend on the stream runs once behind it"});
    return out;
}

void try_programs(const Derived& derived, const std::vector<TileKernel>& kernels, StepReport& report) {
    const std::string fault = tried_on_small_sizes(derived, kernels, num_trials);
    for (KernelSteps& kernel : report.kernels)
        for (PaperStep* step : {&kernel.steps.at(0), &kernel.steps.at(1)}) {
            step->validation = validated(num_trials);
            if (step->fault.empty()) step->fault = fault;
        }
}

std::string pseudocode(const StepContext& context, const TileKernel& kernel) {
    const std::string text = to_string(sized({context.diagram, {kernel}}, context.extents, {context.sizes}));
    const std::size_t head = text.find("kernel " + kernel.name), lines = text.find("\n\n", head);
    return lines == std::string::npos ? text.substr(head) : text.substr(lines + 2);
}

PaperStep divisor_step(const StepContext& context, const SizeDivisors& divisors) {
    PaperStep out{"divisors", {}, "", "every size is a multiple of its divisor, or the whole axis", ""};
    std::vector<std::string> broken;
    for (const auto& [size, multiple] : divisors.merged()) {
        const bool is_multiple = size.size % multiple == 0;
        out.changes.push_back(
            {fmt::format("{} = {} is {} multiple of {}", to_string(size, names_of(context.diagram.axes)), size.size,
                         is_multiple ? "a" : "no", multiple),
             divisors.causes(size) +
                 (is_multiple ? "" : "; what is missing is padding, or a part of a line that is not used")});
        if (is_broken(context, size, multiple)) broken.push_back(out.changes.back().what);
    }
    out.unkept = join(broken, ", ");
    return out;
}

std::vector<PaperStep> narrated_steps(const Derived& derived, const TileProgram& expanded, std::size_t k,
                                      const std::set<AxisId>& subloops, const StepContext& context,
                                      const Assigned& assigned, const KernelSteps& made) {
    return Narrator(derived, context, assigned, made).run(expanded, k, subloops);
}

namespace {
/// What the model chooses again from the sizes is a comment.
const std::string model_mark = "# ";

std::string list_line(const char* kind, const std::vector<Listed>& list) {
    std::vector<std::string> names;
    for (const Listed& l : list) names.push_back(l.ahead > 0 ? fmt::format("{} {}", l.name, l.ahead) : l.name);
    return fmt::format("{} {}", kind, join(names, ", "));
}
}  // namespace

std::string machine_text(const Machine& machine) {
    return contains(machine_names(), machine.name) ? fmt::format("machine {}\n", machine.name) : "";
}

std::vector<std::string> reading_lines(const StepChoices& choices) {
    std::vector<std::string> out;
    for (const auto& [unit, overhead] : choices.overheads)
        out.push_back(fmt::format("overhead {} {:.0f}  {}", unit, 100 * overhead.share, overhead.source));
    if (!choices.units.empty()) out.push_back(list_line("units", choices.units));
    return out;
}

std::string schedule_of(const StepContext& context, const StepChoices& choices, const Assigned& assigned,
                        const KernelSteps& steps) {
    std::string out = machine_text(context.machine) + fmt::format("kernel {}\n", steps.kernel);
    const auto sizes = [&](const char* kind, const auto& by_axis) {
        for (const auto& [axis, size] : by_axis)
            out += fmt::format("{} {} {}\n", kind, context.diagram.axis(axis).name, size);
    };
    std::map<AxisId, std::int64_t> group, stream, sub;
    for (const AxisId a : context.extents.ids()) {
        if (context.sizes.group[a] > 0) group[a] = context.sizes.group[a];
        if (context.sizes.stream[a] > 0) stream[a] = context.sizes.stream[a];
        if (context.sizes.sub[a] > 0) sub[a] = context.sizes.sub[a];
    }
    sizes("group", group), sizes("stream", stream), sizes("warpgroup", context.warpgroup), sizes("subloop", sub);
    for (const auto& [variable, pieces] : choices.pieces)
        for (const auto& [axis, size] : pieces)
            out += fmt::format("piece {} {} {}\n", variable, context.diagram.axis(axis).name, size.value);
    for (const VariableId v : assigned.variables.ids()) {
        const std::string& name = assigned.kernel.variables[v].name;
        if (choices.precision.contains(name))
            out += fmt::format("precision {} {}\n", name, napkin::name(assigned.variables[v].type));
        const auto stages = choices.stages.find(name);
        if (assigned.variables[v].stages > 1 || stages != choices.stages.end())
            out += fmt::format("{}storage {} operand, stages {}\n",
                               stages != choices.stages.end() && !stages->second.range.source ? model_mark : "", name,
                               assigned.variables[v].stages);
    }
    for (const auto& [kind, list] : {std::pair{"issue", &choices.issue}, {"turns", &choices.turns}})
        if (!list->empty()) out += (list->front().range.source ? "" : model_mark) + list_line(kind, *list) + "\n";
    for (const std::string& line : reading_lines(choices)) out += line + "\n";
    return out;
}

}  // namespace napkin
