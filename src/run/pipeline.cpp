#include "run/pipeline.hpp"

#include <fmt/format.h>

#include <charconv>
#include <chrono>
#include <mutex>

#include "derive/verify.hpp"
#include "diagram/empty_axes.hpp"
#include "diagram/flat_axes.hpp"
#include "diagram/solve_sizes.hpp"
#include "diagram/verifier.hpp"
#include "emit/cpu/emit.hpp"
#include "emit/cuda/emit.hpp"
#include "lower/lower.hpp"
#include "lower/prove.hpp"
#include "lower/rules.hpp"
#include "machine/builtin.hpp"
#include "machine/measured.hpp"
#include "machine/processor.hpp"
#include "plan/batch_invariant.hpp"
#include "plan/choose.hpp"
#include "plan/choose_form.hpp"
#include "plan/other_sizes.hpp"
#include "plan/overrides.hpp"
#include "plan/reasons.hpp"
#include "plan/simulate_again.hpp"
#include "run/gpu/assembled_plan.hpp"
#include "run/gpu/compiler.hpp"
#include "run/gpu/device_machine.hpp"
#include "run/plan_cache.hpp"
#include "support/ids.hpp"
#include "support/numbers.hpp"
#include "support/ranges.hpp"
#include "support/share_out.hpp"
#include "support/text.hpp"
#include "syntax/parse.hpp"
#include "syntax/print.hpp"
#include "tile/expand.hpp"
#include "tile/print.hpp"
#include "tile/verify.hpp"

namespace napkin {

namespace {
// How each pass' result is checked and shown: overloads, so that the wrapper finds them by type.
std::vector<std::string> faults(const Diagram& diagram) { return verify(diagram); }
std::vector<std::string> faults(const SizedProgram& program) { return verify(program); }
std::vector<std::string> faults(const Derived& derived) { return verify(derived); }
std::vector<std::string> faults(const Plan& plan) {
    std::vector<std::string> messages;
    for (const KernelPlan& kernel : plan.kernels)
        for (std::string& message : verify(kernel.scheduled)) messages.push_back(std::move(message));
    return messages;
}
std::vector<std::string> faults(const lower::LoweredProgram& program) {
    std::vector<std::string> messages;
    for (const lower::KernelProgram& kernel : program.kernels)
        if (kernel.kernel->in_blocks())
            if (std::string fault = lower::fault_of(kernel); !fault.empty()) messages.push_back(std::move(fault));
    return messages;
}
template <class T>
std::vector<std::string> faults(const T&) {
    return {};
}

std::string shown(const Diagram& diagram) { return print(diagram); }
std::string shown(const Derived& derived) { return print(derived.diagram); }
std::string shown(const Plan& plan) { return to_string(plan); }
std::string shown(const SizedProgram& program) { return to_string(program); }
std::string shown(const lower::LoweredProgram& program) {
    std::string out;
    for (const lower::KernelProgram& kernel : program.kernels) out += to_string(kernel);
    return out;
}
std::string shown(const KernelSource& source) { return complete(source); }
std::string shown(const Machine& machine) { return to_toml(machine); }
template <class T>
std::string shown(const T&) {
    return "";
}

DeriveOptions derive_options(const PipelineOptions& options) {
    DeriveOptions result;
    result.fuse = options.fuse;
    return result;
}

std::string kernel_names(const Derived& derived) {
    std::string names;
    for (const Kernel& kernel : derived.kernels) names += (names.empty() ? "" : " | ") + kernel.name;
    return names;
}

/// The derived form that is fastest on the machine, where the sizes are known; else the calculus' own first choice.
/// Sizes by hand may make another form the fastest than all sizes would that may be chosen, which is said.
Derived choose(Compilation& c, const std::shared_ptr<const Source>& schedule_file, FormTimes times,
               const std::shared_ptr<Estimates>& ratings, bool is_batch_invariant) {
    auto extents = bind_sizes(c.diagram);
    if (!extents) return c.derived;
    if (is_batch_invariant) extents = extents_of_order(c.diagram, *extents);
    // What is wrong in the file is said where the plan reads it.
    const auto items = all_overrides(c.derived, {}, schedule_file);
    Derived chosen = choose_form(c.derived, *extents, c.machine, items ? *items : std::vector<ScheduleItem>{}, ratings,
                                 times);
    std::string by_user;
    for (const ScheduleItem& item : c.derived.source.schedule)
        if (item.value && item.kernel.empty() && (item.kind == ChoiceKind::group || item.kind == ChoiceKind::stream))
            by_user += fmt::format("{}{} {} = {}", by_user.empty() ? "" : ", ", name(item.kind), item.axis, *item.value);
    if (by_user.empty()) return chosen;
    Derived free = c.derived;
    free.source.schedule.clear();
    free.diagram.schedule.clear();
    const std::string with = kernel_names(chosen),
                      without = kernel_names(choose_form(free, *extents, c.machine, {}, nullptr, times));
    if (with != without)
        c.notes.push_back(
            fmt::format("with {} the kernels {} are the fastest form; with sizes of the plan's own choice it is {}",
                        by_user, with, without));
    return chosen;
}

/// Code for narrower vectors than this processor's is compiled as for a processor that has no wider ones.
JitOptions for_width(int vector_bytes) {
    JitOptions options;
    options.flags = flags_for_vectors(vector_bytes);
    return options;
}

/// The diagram with sizes in place of its own, and without what runs over sizes of 0. Sizes that are still missing are
/// no error yet: derivations do without.
Result<Diagram> with_sizes(Result<Diagram> parsed, const std::map<std::string, std::int64_t>& sizes) {
    if (!parsed) return parsed;
    for (const auto& [name, size] : sizes)
        if (const auto axis = parsed->find_axis(name); axis && !parts_of_flat_axis(*parsed, *axis).empty())
            return Diagnostic{
                .code = "unknown-axis",
                .message = fmt::format("a size is given for {}, which has the product of other sizes", name),
                .expected = fmt::format("sizes of {}",
                                        join(names_of(parsed->axes, parts_of_flat_axis(*parsed, *axis)), ", "))};
    const auto all = with_solved_sizes(*parsed, sizes);
    if (!all) return all.errors();
    Diagram diagram = *parsed;
    for (Axis& axis : diagram.axes) {
        if (const auto size = all->find(axis.name); size != all->end()) axis.size = Size(size->second);
    }
    Diagram filled = without_empty_axes(diagram);
    if (sizes.empty() && filled == diagram) return parsed;
    // Errors are those of the whole text, with the names of all that is set.
    if (const auto bound = bind_sizes(*parsed, *all); !bound) {
        std::vector<Diagnostic> errors = bound.errors();
        std::erase_if(errors, [](const Diagnostic& error) { return error.code == "missing-size"; });
        if (!errors.empty()) return errors;
    }
    return filled;
}

/// The diagram with a file's lines as further ones of its own schedule, so that all that follows from a schedule
/// follows from both. The machine that a file is for is none of the diagram's.
Result<Diagram> with_lines_of(Result<Diagram> parsed, const std::shared_ptr<const Source>& file) {
    if (!parsed || !file) return parsed;
    auto items = parse_schedule_file(file);
    if (!items) return items.errors();
    std::erase_if(*items, [](const ScheduleItem& item) { return item.kind == ChoiceKind::machine; });
    Diagram diagram = std::move(parsed).value();
    diagram.schedule = with_items_over(std::move(diagram.schedule), *items);
    return diagram;
}

Result<Diagram> with_types(Result<Diagram> parsed, const std::optional<DType>& type) {
    if (!parsed || !type) return parsed;
    Diagram diagram = std::move(parsed).value();
    for (Array& array : diagram.arrays)
        if (is_float(array.type)) array.type = *type;
    return diagram;
}

Result<Diagram> sized_diagram(const std::shared_ptr<const Source>& source, const PipelineOptions& options) {
    auto diagram = with_lines_of(parse_diagram(source, {options.diagram, options.schedule}), options.schedule_file);
    auto sized = with_types(with_sizes(std::move(diagram), options.sizes), options.types);
    if (sized && options.any_sizes) sized = with_any_sizes(std::move(*sized));
    if (sized && options.batch_invariant) sized = with_any_rows(std::move(*sized));
    return sized;
}

/// On a GPU, of kernels that the assembler's report lets pass.
Result<Plan> plan_for(Compilation& c, const PipelineOptions& options, const std::shared_ptr<Estimates>& ratings) {
    PlanOptions plan;
    plan.file = options.schedule_file;
    plan.ratings = ratings;
    const auto planned = [&](const Extents& extents, const PlanOptions& how) -> Result<Plan> {
        // The order of additions must not depend on which plans are worth compiling.
        const bool decides_order = how.is_batch_invariant && !how.orders;
        if (c.machine.kind != MachineKind::gpu || decides_order)
            return choose_plan(c.derived, extents, c.machine, {}, how);
        auto accepted = gpu::assembled_plan(c.derived, extents, c.machine, how, options.is_wanted);
        if (!accepted) return accepted.errors();
        append(c.notes, accepted->notes);
        return std::move(accepted->plan);
    };
    return options.batch_invariant ? batch_invariant_plan(c.derived, c.extents, c.machine, plan, planned)
                                   : planned(c.extents, plan);
}

/// What a batch-invariant plan costs: its predicted time, and that of a plan without the condition.
void say_price(Compilation& c, const Plan& plan, PipelineOptions options) {
    options.batch_invariant = false, options.until = Pass::plan, options.print_after.clear();
    const auto open = run_pipeline(c.source, options);
    if (!open) return;
    const double with = plan.seconds(), without = open->plan.seconds();
    c.notes.push_back(fmt::format("predicted {} for rows of the same bits in any batch, {} without that: {}",
                                  seconds_text(with), seconds_text(without), time_change(with / without)));
}

/// Every part with its length, so that none passes as the end of another.
std::string asked_for(const Compilation& c, const PipelineOptions& options) {
    std::string out;
    const auto part = [&](const std::string& text) { out += fmt::format("{}\n{}\n", text.size(), text); };
    part(c.source->text), part(c.diagram.name), part(options.fuse ? "" : "no fusion"),
        part(options.any_sizes ? "any sizes" : "");
    if (options.batch_invariant) part(options.says_price ? "batch-invariant, with a price" : "batch-invariant");
    part(options.types ? std::string(name(*options.types)) : "");
    for (const auto& [axis, size] : options.sizes) part(fmt::format("{} = {}", axis, size));
    for (const std::string& item : options.schedule) part(item);
    if (options.schedule_file) part("schedule"), part(options.schedule_file->text);
    return out;
}

/// The derivation of what was asked for last: it depends on no machine, and who compares machines asks for one of them
/// again and again.
class LastDerivation {
public:
    Result<Derived> operator()(const Compilation& c, const PipelineOptions& options) {
        const std::string question = fmt::format("{}\n{}", c.source->name, asked_for(c, options));
        {
            const std::lock_guard lock(mutex_);
            if (derived_ && question == question_) return *derived_;
        }
        auto made = derive(c.diagram, derive_options(options));
        if (!made) return made;
        const std::lock_guard lock(mutex_);
        question_ = question;
        derived_ = *made;
        return made;
    }

private:
    std::mutex mutex_;
    std::string question_;
    std::optional<Derived> derived_;
};
LastDerivation& last_derivation() {
    static LastDerivation last;
    return last;
}

/// The form and the plan that an earlier run chose, or choices that are made now and kept for later ones.
class Choices {
public:
    Choices(Compilation& c, const PipelineOptions& options) : c_(c), options_(options) {
        if (!options.keep_plan || options.until < Pass::plan || own_identity().empty()) return;
        const auto extents = bind_sizes(c.diagram);
        if (!extents) return;
        PlanQuestion question{asked_for(c, options), c.machine, ""};
        if (c.machine.kind == MachineKind::gpu && !c.machine.architecture.empty())
            if (auto compiler = gpu::cuda_compiler()) question.compiler = std::move(*compiler);
        key_ = plan_key(question);
        if (const auto text = kept_plan(key_))
            kept_ = recall(*text, c.derived, *extents, c.machine, options.schedule_file);
    }

    Derived form() {
        if (!kept_)
            return choose(c_, options_.schedule_file,
                          options_.until >= Pass::plan ? FormTimes::of_plans : FormTimes::of_closed_form, ratings_,
                          options_.batch_invariant);
        append(c_.notes, kept_->notes);
        c_.plan_from_cache = true;
        return std::move(kept_->derived);
    }
    Result<Plan> plan() {
        if (kept_) return std::move(kept_->plan);
        auto made = plan_for(c_, options_, ratings_);
        if (made && options_.batch_invariant && options_.says_price) say_price(c_, *made, options_);
        if (made && !key_.empty() && (!options_.is_wanted || options_.is_wanted(*made)))
            keep_plan(key_, to_text({c_.derived, *made, c_.notes}),
                      fmt::format("plan of {} on {}", c_.diagram.name, c_.machine.name));
        return made;
    }

private:
    Compilation& c_;
    const PipelineOptions& options_;
    const std::shared_ptr<Estimates> ratings_ = std::make_shared<Estimates>();
    std::string key_;  ///< empty: nothing is kept
    std::optional<ChosenPlan> kept_;
};

/// Where no output has values there are no kernels, and no plan that tells of what form they are.
SizedProgram tiles_of_plan(const Compilation& c) {
    return c.plan.kernels.empty() ? sized(expand(c.derived), c.extents, {}) : c.plan.tiles();
}

KernelSource emitted(const Compilation& c) {
    if (c.machine.kind == MachineKind::gpu) return cuda::emit(c.lowered);
    return cpu::emit(c.lowered);
}

/// The number of the GPU at hand that is named: 0 for "gpu", 1 for "gpu:1". None: another machine is named.
std::optional<int> number_of_gpu(const std::string& name) {
    const std::string first = "gpu", numbered = first + ":";
    if (name == first) return 0;
    if (!name.starts_with(numbered)) return std::nullopt;
    int number = 0;
    const char *const begin = name.data() + numbered.size(), *const end = name.data() + name.size();
    const auto [rest, error] = std::from_chars(begin, end, number);
    return error == std::errc() && rest == end && number >= 0 ? std::optional(number) : std::nullopt;
}

/// The built-in machine that describes a GPU at hand, where one is named.
Result<Machine> machine_named(const std::string& asked) {
    const std::string name = asked.empty() ? default_machine() : asked;
    const auto number = number_of_gpu(name);
    if (!number) return load_machine(name);
    const auto device = gpu::device(*number);
    if (!device) return device.errors();
    const auto among = [&](const auto& is_read) {
        std::vector<Machine> machines;
        for (const EmbeddedText& text : builtin_machine_texts())
            if (is_read(text.text))
                if (auto machine = load_machine(std::string(text.name))) machines.push_back(std::move(*machine));
        return gpu::machine_of(*device, machines);
    };
    // Reading a file takes longer than looking for the GPU's name in it.
    auto machine = among([&](std::string_view text) { return text.find(device->name) != std::string_view::npos; });
    return machine ? machine : among([](std::string_view) { return true; });
}

/// By name; else the one that the schedule's file is for; else this computer.
Result<Machine> machine_for(Compilation& c, const PipelineOptions& options) {
    if (!options.schedule_file) return machine_named(options.machine);
    const auto items = parse_schedule_file(options.schedule_file);
    if (!items) return items.errors();
    const ScheduleItem* line = machine_line(*items);
    if (!line) return machine_named(options.machine);
    if (!options.machine.empty()) {
        auto asked = machine_named(options.machine);
        if (asked && asked->name != line->word && options.machine != line->word)
            c.notes.push_back(fmt::format("the schedule is for {}, and is read for {}", line->word, asked->name));
        return asked;
    }
    auto machine = machine_named(line->word);
    if (machine) return machine;
    std::vector<Diagnostic> errors = machine.errors();
    for (Diagnostic& error : errors)
        if (!error.range.source) error.range = line->range;
    return errors;
}

Result<std::shared_ptr<gpu::GpuKernel>> loaded_on_gpu(Compilation& c) {
    const auto device = gpu::device();
    if (!device) return device.errors();
    const auto note = gpu::note_on_device(*device, c.machine);
    if (!note) return note.errors();
    if (!note->empty()) c.notes.push_back(*note);
    return gpu::GpuKernel::load(c.program, std::get<cuda::CudaSource>(c.code));
}

/// Runs one pass: times it, keeps its result or its errors, verifies, prints. True when the next pass may run.
class Runner {
public:
    Runner(const PipelineOptions& options, std::vector<PassTime>& times) : options_(options), times_(times) {}

    template <class T, class F>
    bool operator()(Pass pass, T& result, F run) {
        const auto start = std::chrono::steady_clock::now();
        auto made = run();
        times_.push_back({pass, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count()});
        if constexpr (requires { made.errors(); }) {
            if (!made.ok()) {
                errors_ = made.errors();
                return false;
            }
            result = std::move(made).value();
        } else {
            result = std::move(made);
        }
        if (contains(options_.print_after, pass)) options_.print(shown(result));
        for (const std::string& fault : faults(result))
            throw InternalError("after " + std::string(name(pass)) + ": " + fault);
        return pass != options_.until;
    }

    [[nodiscard]] const std::vector<Diagnostic>& errors() const { return errors_; }

private:
    const PipelineOptions& options_;
    std::vector<PassTime>& times_;
    std::vector<Diagnostic> errors_;
};

}  // namespace

std::string complete(const KernelSource& source) {
    if (const auto* code = std::get_if<cuda::CudaSource>(&source)) return cuda::complete(*code);
    return cpu::complete(std::get<cpu::CpuSource>(source));
}

const std::string& kernels_of(const KernelSource& source) {
    if (const auto* code = std::get_if<cuda::CudaSource>(&source)) return code->text;
    return std::get<cpu::CpuSource>(source).text;
}

std::string_view name(Pass pass) {
    constexpr std::string_view names[] = {"parse", "machine", "derive", "choose", "size",
                                          "plan",  "expand",  "lower",  "emit",   "compile"};
    return names[at(pass)];
}

Result<std::shared_ptr<const CpuKernel>> loaded_on_processor(const Compilation& emitted, const CpuKernel* alike) {
    const auto& code = std::get<cpu::CpuSource>(emitted.code);
    if (alike) return CpuKernel::bind(emitted.diagram, emitted.program, code, emitted.plan.threads(), alike->module());
    return CpuKernel::load(emitted.diagram, emitted.program, code, emitted.plan.threads(), for_width(code.vector_bytes));
}

namespace {

/// Times of the plan's kernels at the sizes at hand. On a processor little work runs on one thread, as a plan for these
/// sizes decides, too.
void time_again(Compilation& c) {
    const auto times_on = [&](std::optional<std::int64_t> threads) {
        return simulate_again(c.derived, c.extents, c.machine, c.plan, {.threads = threads});
    };
    const std::vector<Simulation> together = times_on(std::nullopt);
    const auto alone = c.machine.kind == MachineKind::cpu ? times_on(1) : together;
    for (std::size_t k = 0; k < together.size(); ++k) {
        KernelPlan& kernel = c.plan.kernels[k];
        Choice& threads = kernel.scheduled.schedule.threads;
        const bool is_alone = c.machine.kind == MachineKind::cpu && !threads.by_user &&
                              alone[k].seconds <= together[k].seconds;
        if (is_alone) threads.value = 1;
        kernel.time = is_alone ? alone[k] : together[k];
    }
}

}  // namespace

namespace {

/// Whether the order of additions is chosen at the same extents for both.
bool have_one_order(const Compilation& a, const Compilation& b) {
    return extents_of_order(a.diagram, a.extents) == extents_of_order(b.diagram, b.extents);
}

/// `plan`, made for `planned`, at the sizes of these options. The result has its times, and no code.
std::optional<Compilation> read_at_other_sizes(const Compilation& planned, const Plan& plan, const PipelineOptions& options) {
    Compilation c;
    c.source = planned.source, c.machine = planned.machine;
    auto diagram = sized_diagram(c.source, options);
    if (!diagram) return std::nullopt;
    c.diagram = std::move(*diagram);
    auto extents = bind_sizes(c.diagram);
    if (!extents) return std::nullopt;
    c.extents = std::move(*extents);
    if (options.batch_invariant && !have_one_order(planned, c)) return std::nullopt;
    // What the calculus finds may depend on sizes, as whether two dimensions are read as one.
    const auto derived = last_derivation()(c, options);
    if (!derived) return std::nullopt;
    auto read = recall(to_text({planned.derived, plan, {}}), *derived, c.extents, c.machine, options.schedule_file);
    if (!read || read->plan.kernels.empty()) return std::nullopt;
    c.derived = std::move(read->derived);
    auto served = with_blocks_for(planned.plan, std::move(read->plan), c.machine);
    if (!served) return std::nullopt;
    c.plan = std::move(*served);
    time_again(c);
    return c;
}

}  // namespace

std::optional<Compilation> at_other_sizes(const Compilation& planned, const PipelineOptions& options) {
    // Fewer parts start fewer CTAs, and are taken where they are predicted to take as long within this factor.
    constexpr double as_long = 1.02;
    auto c = read_at_other_sizes(planned, planned.plan, options);
    if (!c) return std::nullopt;
    const auto num_groups = [](const Compilation& of) {
        return sum<std::int64_t>(of.plan.kernels, [](const KernelPlan& k) { return k.time.groups; });
    };
    for (const Plan& other : in_other_parts(planned.plan, c->plan, c->machine)) {
        auto found = read_at_other_sizes(planned, other, options);
        const double enough = found && num_groups(*found) < num_groups(*c) ? as_long : 1;
        if (found && found->plan.seconds() < enough * c->plan.seconds()) c = std::move(found);
    }
    if (options.until < Pass::emit) return c;
    c->program = tiles_of_plan(*c);
    c->lowered = lower::lowered(c->plan.program());
    c->code = emitted(*c);
    return c;
}

Result<Compilation> run_pipeline(std::shared_ptr<const Source> source, const PipelineOptions& options) {
    const Helpers helpers;
    Compilation c;
    c.source = std::move(source);
    Runner pass(options, c.times);
    std::optional<Choices> choices;
    pass(Pass::parse, c.diagram, [&] { return sized_diagram(c.source, options); }) &&
        pass(Pass::machine, c.machine, [&] { return machine_for(c, options); }) &&
        pass(Pass::derive, c.derived, [&] { return last_derivation()(c, options); }) &&
        pass(Pass::choose, c.derived, [&] { return choices.emplace(c, options).form(); }) &&
        pass(Pass::size, c.extents, [&] { return bind_sizes(c.diagram); }) &&
        pass(Pass::plan, c.plan, [&] { return choices->plan(); }) &&
        pass(Pass::expand, c.program, [&] { return tiles_of_plan(c); }) &&
        pass(Pass::lower, c.lowered, [&] { return lower::lowered(c.plan.program()); }) &&
        pass(Pass::emit, c.code, [&] { return emitted(c); }) &&
        (c.machine.kind == MachineKind::gpu ? pass(Pass::compile, c.gpu_kernel, [&] { return loaded_on_gpu(c); })
                                            : pass(Pass::compile, c.kernel, [&] { return loaded_on_processor(c); }));
    if (!pass.errors().empty()) return pass.errors();
    return c;
}

}  // namespace napkin
