// The C API over the same passes: options, errors and arrays in its types. What is thrown inside ends here.
#include <napkin/napkin.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <initializer_list>
#include <new>
#include <optional>
#include <string>
#include <vector>

#include "api/kernels_by_device.hpp"
#include "api/kernels_by_shape.hpp"
#include "api/loaded_kernel.hpp"
#include "api/public_errors.hpp"
#include "diagram/symbol_names.hpp"
#include "run/at_clock.hpp"
#include "run/pipeline.hpp"
#include "support/files.hpp"
#include "support/ids.hpp"
#include "support/ranges.hpp"
#include "support/stack.hpp"
#include "syntax/parse.hpp"
#include "syntax/typed_text.hpp"

struct napkin_error {
    std::vector<napkin::Error> errors;
    std::string text;
};

struct napkin_program {
    std::shared_ptr<const napkin::Source> source;
    napkin::Diagram diagram;
    std::vector<napkin::TakenArray> arrays;
    std::vector<std::string> open_types;               ///< names of arrays that the text gives no type
    std::vector<std::vector<std::string>> axis_sizes;  ///< by array and axis; empty: none is given
    napkin::PipelineOptions options;                   ///< what is said of all plans
    napkin::KernelsByShape kernels;
};

struct napkin_plan {
    std::shared_ptr<const napkin::Compilation> compilation;
    std::string text, source, bound_by;
    double seconds = 0, busy_seconds = 0;
};

struct napkin_kernel {
    std::unique_ptr<const napkin::KernelsByDevice> loaded;
};

namespace napkin {
namespace {

/// Where there is no memory for an error either.
napkin_error* no_memory_error() {
    static napkin_error* const error = [] {
        auto* made = new napkin_error;
        made->text = "error: memory ran out\n";
        made->errors.push_back({Error::Kind::machine, "too-little-memory", "memory ran out", 0, 0, made->text});
        return made;
    }();
    return error;
}

napkin_status failed(napkin_error** error, std::vector<Error> errors) {
    const bool machine = errors.front().kind == Error::Kind::machine;
    if (error != nullptr) {
        auto made = std::make_unique<napkin_error>();
        for (const Error& one : errors) made->text += one.rendered;
        made->errors = std::move(errors);
        *error = made.release();
    }
    return machine ? NAPKIN_MACHINE_LACKS : NAPKIN_BAD_INPUT;
}

/// Runs f, which returns a Status, and makes a public error of what goes wrong.
template <class F>
napkin_status guarded(napkin_error** error, const F& f) noexcept {
    if (error != nullptr) *error = nullptr;
    try {
        try {
            const Status done = f();
            return done ? NAPKIN_OK : failed(error, to_public(done.errors()));
        } catch (const std::bad_alloc&) {
            throw;
        } catch (const std::exception& fault) {
            static_cast<void>(
                failed(error, {{Error::Kind::machine, "fault", fault.what(), 0, 0, fault.what() + std::string("\n")}}));
            return NAPKIN_FAULT;
        }
    } catch (...) {
        if (error != nullptr) *error = no_memory_error();
        return NAPKIN_MACHINE_LACKS;
    }
}

/// The same for what reads texts, makes plans or compiles, which take more stack than a caller's thread may have.
template <class F>
napkin_status guarded_on_enough_stack(napkin_error** error, const F& f) noexcept {
    return guarded(error, [&] { return on_enough_stack(f); });
}

struct Argument {
    const char* name;
    const void* value;
};

/// What a function cannot do without.
Status given(std::initializer_list<Argument> arguments) {
    std::vector<Diagnostic> missing;
    for (const Argument& argument : arguments) {
        if (argument.value != nullptr) continue;
        missing.push_back({.code = "null-argument", .message = std::string("argument '") + argument.name + "' is NULL"});
    }
    if (missing.empty()) return Done{};
    return missing;
}

/// By array and axis.
std::vector<std::vector<std::string>> sizes_given(const Diagram& diagram) {
    std::vector<std::vector<std::string>> out;
    const auto size_of = [&](AxisId axis) {
        const auto& size = diagram.axis(axis).size;
        return size ? to_string(*size, symbol_names(diagram), true) : std::string();
    };
    for (const auto* list : {&diagram.inputs, &diagram.outputs})
        for (const ArrayId id : *list) out.push_back(mapped<std::string>(diagram.array(id).axes, size_of));
    return out;
}

/// Adds the sizes to those that are there, in their place. Error: null-argument.
Status take_sizes(const napkin_size* sizes, size_t count, std::map<std::string, std::int64_t>& out) {
    if (count > 0 && sizes == nullptr) return given({{"sizes", sizes}});
    for (size_t i = 0; i < count; ++i) {
        if (sizes[i].axis == nullptr) return given({{"sizes[].axis", nullptr}});
        out[sizes[i].axis] = sizes[i].value;
    }
    return Done{};
}

/// The types that the options give, by array. Error: unknown-type.
Result<std::map<std::string, DType>> types_given(const napkin_options& options, const std::vector<TakenArray>& arrays) {
    std::map<std::string, DType> types;
    for (size_t i = 0; i < options.type_count && i < arrays.size(); ++i) {
        const napkin_type& type = options.types[i];
        if (type.bits == 0) continue;
        const auto known = known_type(type);
        if (!known)
            return Diagnostic{.code = "unknown-type",
                              .message = arrays[i].name + " holds " + type_text(type),
                              .expected = "a type of the language"};
        types[arrays[i].name] = *known;
    }
    return types;
}

napkin_options options_of(const char* diagram) {
    napkin_options options{};
    options.diagram = diagram;
    return options;
}

Status parse(std::shared_ptr<const Source> source, const napkin_options& options, napkin_program** program) {
    PipelineOptions all;
    if (options.diagram != nullptr) all.diagram = options.diagram;
    if (Status taken = take_sizes(options.sizes, options.size_count, all.sizes); !taken) return taken;
    if (options.type_count > 0 && options.types == nullptr) return given({{"types", options.types}});
    all.batch_invariant = options.batch_invariant != 0;
    if (options.schedule != nullptr)
        all.schedule_file = std::make_shared<const Source>(Source{"<schedule>", options.schedule});
    auto parsed = parse_diagram(source, {all.diagram, {}});
    if (!parsed) return parsed.errors();
    const auto open = untyped_names(source, {all.diagram, {}});
    const auto types = types_given(options, taken_arrays(*parsed));
    if (!types) return types.errors();
    const auto typed = types->empty() ? source : with_types_in_text(source, {all.diagram, {}}, *types);
    if (!open || !typed) return open ? typed.errors() : open.errors();
    if (*typed != source || !all.sizes.empty() || all.schedule_file) {
        source = *typed;
        // Its result is not taken, since sizes of shapes go before these.
        all.until = Pass::parse;
        if (auto sized = run_pipeline(source, all); !sized) return sized.errors();
        parsed = parse_diagram(source, {all.diagram, {}});
        if (!parsed) return parsed.errors();
    }
    all.diagram = parsed->name;
    *program = new napkin_program{
        source, *parsed, taken_arrays(*parsed), *open, sizes_given(*parsed), all, {source, *parsed, all}};
    return Done{};
}

napkin_plan* planned_of(Compilation compilation) {
    auto out = std::make_unique<napkin_plan>();
    out->text = to_string(compilation.plan);
    out->source = complete(compilation.code);
    out->seconds = compilation.plan.seconds();
    double longest = -1;
    for (const KernelPlan& kernel : compilation.plan.kernels) {
        if (kernel.time.busy.empty()) continue;
        out->busy_seconds += kernel.time.busy.front().seconds;
        if (kernel.time.seconds > longest) longest = kernel.time.seconds, out->bound_by = kernel.time.bound_by();
    }
    out->compilation = std::make_shared<const Compilation>(std::move(compilation));
    return out.release();
}

const Error* error_at(const napkin_error* error, size_t index) {
    return error != nullptr && index < error->errors.size() ? &error->errors[index] : nullptr;
}
const TakenArray* array_at(const napkin_program* program, size_t array) {
    return program != nullptr && array < program->arrays.size() ? &program->arrays[array] : nullptr;
}

}  // namespace
}  // namespace napkin

using napkin::Done, napkin::given, napkin::guarded, napkin::guarded_on_enough_stack, napkin::Status;

const char* napkin_version(void) { return NAPKIN_VERSION; }

// ---- errors
// ------------------------------------------------------------

size_t napkin_error_count(const napkin_error* error) { return error != nullptr ? error->errors.size() : 0; }
const char* napkin_error_code(const napkin_error* error, size_t index) {
    const auto* one = napkin::error_at(error, index);
    return one != nullptr ? one->code.c_str() : nullptr;
}
const char* napkin_error_message(const napkin_error* error, size_t index) {
    const auto* one = napkin::error_at(error, index);
    return one != nullptr ? one->message.c_str() : nullptr;
}
int napkin_error_line(const napkin_error* error, size_t index) {
    const auto* one = napkin::error_at(error, index);
    return one != nullptr ? one->line : 0;
}
int napkin_error_column(const napkin_error* error, size_t index) {
    const auto* one = napkin::error_at(error, index);
    return one != nullptr ? one->column : 0;
}
const char* napkin_error_text(const napkin_error* error) { return error != nullptr ? error->text.c_str() : nullptr; }
void napkin_error_free(napkin_error* error) {
    if (error != nullptr && error != napkin::no_memory_error()) delete error;
}

// ---- text
// ------------------------------------------------------------

napkin_status napkin_parse(const char* text, size_t length, const char* diagram, napkin_program** program,
                           napkin_error** error) {
    if (program != nullptr) *program = nullptr;
    return guarded_on_enough_stack(error, [&]() -> Status {
        if (Status all = given({{"text", text}, {"program", program}}); !all) return all;
        return napkin::parse(std::make_shared<const napkin::Source>(napkin::Source{"<text>", std::string(text, length)}),
                             napkin::options_of(diagram), program);
    });
}

napkin_status napkin_parse_with(const char* text, size_t length, const char* name, const napkin_options* options,
                                napkin_program** program, napkin_error** error) {
    if (program != nullptr) *program = nullptr;
    return guarded_on_enough_stack(error, [&]() -> Status {
        if (Status all = given({{"text", text}, {"options", options}, {"program", program}}); !all) return all;
        napkin::Source source{name != nullptr ? name : "<text>", std::string(text, length)};
        return napkin::parse(std::make_shared<const napkin::Source>(std::move(source)), *options, program);
    });
}

napkin_status napkin_load(const char* path, const char* diagram, napkin_program** program, napkin_error** error) {
    if (program != nullptr) *program = nullptr;
    return guarded_on_enough_stack(error, [&]() -> Status {
        if (Status all = given({{"path", path}, {"program", program}}); !all) return all;
        auto text = napkin::read_file(path);
        if (!text) {
            napkin::Diagnostic d;
            d.code = "unreadable-file";
            d.message = std::string(path) + " cannot be read";
            d.expected = "a file with the text of a diagram";
            d.hint = napkin::why_unreadable(path);
            return d;
        }
        return napkin::parse(std::make_shared<const napkin::Source>(napkin::Source{path, std::move(*text)}),
                             napkin::options_of(diagram), program);
    });
}

const char* napkin_program_name(const napkin_program* program) {
    return program != nullptr ? program->diagram.name.c_str() : nullptr;
}
size_t napkin_program_inputs(const napkin_program* program) {
    return program != nullptr ? program->diagram.inputs.size() : 0;
}
size_t napkin_program_outputs(const napkin_program* program) {
    return program != nullptr ? program->diagram.outputs.size() : 0;
}
const char* napkin_program_array_name(const napkin_program* program, size_t array) {
    const auto* one = napkin::array_at(program, array);
    return one != nullptr ? one->name.c_str() : nullptr;
}
napkin_type napkin_program_array_type(const napkin_program* program, size_t array) {
    const auto* one = napkin::array_at(program, array);
    return one != nullptr ? one->dlpack : napkin_type{};
}
size_t napkin_program_array_axes(const napkin_program* program, size_t array) {
    const auto* one = napkin::array_at(program, array);
    return one != nullptr ? one->axes.size() : 0;
}
const char* napkin_program_axis_name(const napkin_program* program, size_t array, size_t axis) {
    const auto* one = napkin::array_at(program, array);
    return one != nullptr && axis < one->axes.size() ? one->axes[axis].c_str() : nullptr;
}
const char* napkin_program_axis_size(const napkin_program* program, size_t array, size_t axis) {
    if (program == nullptr || array >= program->axis_sizes.size() || axis >= program->axis_sizes[array].size())
        return nullptr;
    const std::string& size = program->axis_sizes[array][axis];
    return size.empty() ? nullptr : size.c_str();
}
int napkin_program_type_is_open(const napkin_program* program, size_t array) {
    const auto* one = napkin::array_at(program, array);
    return one != nullptr && napkin::contains(program->open_types, one->name) ? 1 : 0;
}
const char* napkin_program_text(const napkin_program* program) {
    return program != nullptr ? program->source->text.c_str() : nullptr;
}
napkin_status napkin_output_shapes(const napkin_program* program, const napkin_array* const* inputs, size_t count,
                                   int64_t* shapes, napkin_error** error) {
    return guarded_on_enough_stack(error, [&]() -> Status {
        if (program == nullptr || inputs == nullptr || shapes == nullptr)
            return given({{"program", program}, {"inputs", inputs}, {"shapes", shapes}});
        const auto sizes = program->kernels.output_sizes({inputs, count});
        if (!sizes) return sizes.errors();
        for (const std::vector<std::int64_t>& one : *sizes) shapes = std::ranges::copy(one, shapes).out;
        return Done{};
    });
}
void napkin_program_free(napkin_program* program) { delete program; }

// ---- plans
// ------------------------------------------------------------

napkin_status napkin_plan_for(const napkin_program* program, const char* machine, const napkin_size* sizes,
                              size_t count, napkin_plan** plan, napkin_error** error) {
    if (plan != nullptr) *plan = nullptr;
    return guarded_on_enough_stack(error, [&]() -> Status {
        if (Status all = given({{"program", program}, {"plan", plan}}); !all) return all;
        napkin::PipelineOptions options = program->options;
        options.machine = machine != nullptr ? machine : "";
        options.until = napkin::Pass::emit;
        options.keep_plan = true;
        if (Status taken = napkin::take_sizes(sizes, count, options.sizes); !taken) return taken;
        std::optional<napkin::gpu::KeepsContext> callers;
        if (options.machine.starts_with("gpu")) callers.emplace();
        auto compilation = napkin::run_pipeline(program->source, options);
        if (!compilation) return compilation.errors();
        *plan = napkin::planned_of(std::move(*compilation));
        return Done{};
    });
}

const char* napkin_plan_machine(const napkin_plan* plan) {
    return plan != nullptr ? plan->compilation->machine.name.c_str() : nullptr;
}
const char* napkin_plan_text(const napkin_plan* plan) { return plan != nullptr ? plan->text.c_str() : nullptr; }
const char* napkin_plan_source(const napkin_plan* plan) { return plan != nullptr ? plan->source.c_str() : nullptr; }
double napkin_plan_seconds(const napkin_plan* plan) { return plan != nullptr ? plan->seconds : 0; }
double napkin_plan_seconds_at(const napkin_plan* plan, double clock_hz) {
    if (plan == nullptr || !(clock_hz > 0) || !std::isfinite(clock_hz)) return 0;
    try {
        const napkin::Compilation& made = *plan->compilation;
        return napkin::seconds_at_clock(made.derived, made.extents, made.machine, made.plan, clock_hz);
    } catch (...) {
        return 0;
    }
}
double napkin_plan_busy_seconds(const napkin_plan* plan) { return plan != nullptr ? plan->busy_seconds : 0; }
const char* napkin_plan_bound_by(const napkin_plan* plan) { return plan != nullptr ? plan->bound_by.c_str() : nullptr; }
int64_t napkin_plan_size(const napkin_plan* plan, const char* axis) {
    if (plan == nullptr || axis == nullptr) return 0;
    const auto id = plan->compilation->diagram.find_axis(axis);
    return id ? plan->compilation->extents[*id] : 0;
}
void napkin_plan_free(napkin_plan* plan) { delete plan; }

// ---- kernels
// ------------------------------------------------------------

napkin_status napkin_compile(const napkin_plan* plan, unsigned flags, napkin_kernel** kernel, napkin_error** error) {
    if (kernel != nullptr) *kernel = nullptr;
    return guarded_on_enough_stack(error, [&]() -> Status {
        if (Status all = given({{"plan", plan}, {"kernel", kernel}}); !all) return all;
        auto loaded = napkin::KernelsByDevice::load(plan->compilation, flags);
        if (!loaded) return loaded.errors();
        *kernel = new napkin_kernel{std::move(*loaded)};
        return Done{};
    });
}

int64_t napkin_kernel_workspace_bytes(const napkin_kernel* kernel) {
    return kernel != nullptr ? kernel->loaded->first().workspace_bytes() : 0;
}
int napkin_kernel_from_cache(const napkin_kernel* kernel) {
    return kernel != nullptr && kernel->loaded->first().from_cache() ? 1 : 0;
}
double napkin_kernel_compile_seconds(const napkin_kernel* kernel) {
    return kernel != nullptr ? kernel->loaded->first().compile_seconds() : 0;
}

napkin_status napkin_run(const napkin_kernel* kernel, const napkin_array* const* arrays, size_t count, void* stream,
                         napkin_error** error) {
    return guarded(error, [&]() -> Status {
        if (kernel == nullptr || arrays == nullptr) return given({{"kernel", kernel}, {"arrays", arrays}});
        const auto place = count > 0 && arrays[0] != nullptr ? napkin::place_of(*arrays[0]) : std::nullopt;
        const auto there = kernel->loaded->on(place ? place->device : 0);
        if (!there) return there.errors();
        return (*there)->run({arrays, count}, stream);
    });
}

napkin_status napkin_run_at(const napkin_kernel* kernel, void* const* addresses, size_t count, void* workspace,
                            void* stream, napkin_error** error) {
    return guarded(error, [&]() -> Status {
        if (kernel == nullptr || addresses == nullptr) return given({{"kernel", kernel}, {"addresses", addresses}});
        const auto there = kernel->loaded->at({addresses, count});
        if (!there) return there.errors();
        return (*there)->run_at({addresses, count}, workspace, stream);
    });
}

void napkin_kernel_free(napkin_kernel* kernel) { delete kernel; }

// ---- all of it, by the shapes of arrays
// ------------------------------------------------------------

napkin_status napkin_call(napkin_program* program, const napkin_array* const* arrays, size_t count, void* stream,
                          napkin_error** error) {
    return guarded(error, [&]() -> Status {
        if (program == nullptr || arrays == nullptr) return given({{"program", program}, {"arrays", arrays}});
        const auto kernel = program->kernels.of({arrays, count});
        if (!kernel) return kernel.errors();
        return (*kernel)->run({arrays, count}, stream);
    });
}

napkin_status napkin_prepare(napkin_program* program, const napkin_array* const* arrays, size_t count, napkin_error** error) {
    return guarded(error, [&]() -> Status {
        if (program == nullptr || arrays == nullptr) return given({{"program", program}, {"arrays", arrays}});
        const auto kernel = program->kernels.of({arrays, count});
        if (!kernel) return kernel.errors();
        return (*kernel)->prepare({arrays, count});
    });
}

size_t napkin_program_kernels(const napkin_program* program) {
    return program != nullptr ? program->kernels.count() : 0;
}
size_t napkin_program_codes(const napkin_program* program) {
    return program != nullptr ? program->kernels.num_codes() : 0;
}
size_t napkin_program_copies(const napkin_program* program) {
    return program != nullptr ? program->kernels.num_copies() : 0;
}
