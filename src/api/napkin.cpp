// The public API over the pipeline: options, errors and views in its types, nothing else.
#include <napkin/napkin.hpp>

#include <algorithm>
#include <cstring>
#include <new>

#include <fmt/format.h>

#include "api/public_errors.hpp"
#include "check/first_use.hpp"
#include "check/verdict.hpp"
#include "run/derivation.hpp"
#include "run/index_inputs.hpp"
#include "run/pipeline.hpp"
#include "support/stack.hpp"
#include "syntax/lexer.hpp"

namespace napkin {

namespace {

static_assert(static_cast<int>(ElementType::f64) == static_cast<int>(DType::f64) &&
                  static_cast<int>(ElementType::tf32) == static_cast<int>(DType::tf32),
              "the public element types are numbered as the internal ones");

bool is_known(ElementType type) { return static_cast<std::size_t>(type) < std::size(all_dtypes); }
/// Pre: known.
DType internal_type(ElementType type) { return static_cast<DType>(type); }
ElementType public_type(DType type) { return static_cast<ElementType>(type); }

ArrayInfo describe_array(const Diagram& diagram, ArrayId id, const Extents& extents) {
    ArrayInfo info;
    info.name = diagram.array(id).name;
    info.type = public_type(diagram.array(id).type);
    for (const AxisId axis : diagram.array(id).axes) {
        info.axes.push_back(diagram.axis(axis).name);
        info.sizes.push_back(extents[axis]);
    }
    return info;
}

/// The view's numbers as an array of its own. Pre: a run has found the view right.
template <class AnyView>
Tensor tensor_of(const AnyView& view) {
    const DType type = internal_type(view.type);
    auto made = Tensor::make(type, view.sizes);
    if (!made) throw std::bad_alloc();
    const std::int64_t width = bytes(type);
    for (std::int64_t i = 0; i < made->count(); ++i) {
        std::int64_t rest = i, offset = view.strides.empty() ? i : 0;
        for (std::size_t d = view.strides.size(); d-- > 0; rest /= view.sizes[d])
            offset += rest % view.sizes[d] * view.strides[d];
        std::memcpy(static_cast<char*>(made->data()) + i * width, static_cast<const char*>(view.data) + offset * width,
                    static_cast<std::size_t>(width));
    }
    return std::move(made).value();
}

}  // namespace

std::size_t bytes(ElementType type) {
    return is_known(type) ? static_cast<std::size_t>(bytes(internal_type(type))) : 0;
}

std::string_view version() { return NAPKIN_VERSION; }

struct Program::Impl {
    Compilation compilation;
    std::vector<ArrayInfo> inputs, outputs;
};

const std::string& Program::name() const { return impl_->compilation.diagram.name; }
const std::vector<ArrayInfo>& Program::inputs() const { return impl_->inputs; }
const std::vector<ArrayInfo>& Program::outputs() const { return impl_->outputs; }
std::string Program::derivation() const { return describe(impl_->compilation.derived); }
std::string Program::plan() const { return to_string(impl_->compilation.plan); }
const std::string& Program::source() const { return impl_->compilation.kernel->source(); }
std::int64_t Program::extra_bytes() const { return impl_->compilation.kernel->extra_bytes(); }

Predicted Program::prediction() const {
    Predicted prediction;
    for (const KernelPlan& kernel : impl_->compilation.plan.kernels) {
        prediction.transfers_values += kernel.time.transfers;
        prediction.memory_values = std::max(prediction.memory_values, kernel.memory_values);
    }
    prediction.seconds = impl_->compilation.plan.seconds();
    return prediction;
}

std::vector<Error> Program::run(std::span<const ConstView> inputs, std::span<const View> outputs) const {
    std::vector<Diagnostic> unknown;
    const auto check_type = [&](ElementType type) {
        if (is_known(type)) return;
        unknown.push_back({.code = "view-type",
                           .message = fmt::format("there is no element type of number {}", static_cast<int>(type)),
                           .expected = "one that ElementType names"});
    };
    for (const ConstView& view : inputs) check_type(view.type);
    for (const View& view : outputs) check_type(view.type);
    if (!unknown.empty()) return to_public(unknown);
    std::vector<KernelInput> in;
    std::vector<KernelOutput> out;
    for (const ConstView& view : inputs) in.push_back({view.data, internal_type(view.type), view.sizes, view.strides});
    for (const View& view : outputs) out.push_back({view.data, internal_type(view.type), view.sizes, view.strides});
    // Values are looked at once their views are known to fit.
    if (const Status fits = impl_->compilation.kernel->check(in, out); !fits) return to_public(fits.errors());
    if (const Status good = check_index_inputs(impl_->compilation.diagram, impl_->compilation.extents, in); !good)
        return to_public(good.errors());
    const Status status = impl_->compilation.kernel->run(in, out);
    return status ? std::vector<Error>{} : to_public(status.errors());
}

Expected<std::vector<OutputCheck>> Program::run_and_check(std::span<const ConstView> inputs,
                                                          std::span<const View> outputs, std::uint64_t seed) const {
    if (auto errors = run(inputs, outputs); !errors.empty()) return errors;
    std::vector<Tensor> in, out;
    for (const ConstView& view : inputs) in.push_back(tensor_of(view));
    for (const View& view : outputs) out.push_back(tensor_of(view));
    const auto verdict = on_enough_stack(
        [&]() -> Result<Verdict> { return check_outputs(impl_->compilation, in, out, {.seed = seed}); });
    if (!verdict) return to_public(verdict.errors());
    std::vector<OutputCheck> checks;
    for (const ArrayVerdict& v : verdict->arrays) {
        checks.push_back({v.array, v.values, v.beyond, v.unbounded, v.place, v.value, v.reference, v.bound,
                          v.judgement == Judgement::bad ? describe(v) : std::string()});
    }
    return checks;
}

Expected<Program> compile(std::string_view text, const CompileOptions& options) {
    PipelineOptions pipeline{.diagram = options.diagram, .sizes = options.sizes};
    std::vector<Diagnostic> errors;
    // Choices become text of the language, in which a name must not say more than a name.
    const auto choose = [&](const char* kind, const std::map<std::string, std::int64_t>& sizes) {
        for (const auto& [axis, size] : sizes) {
            pipeline.schedule.push_back(fmt::format("{} {} = {}", kind, axis, size));
            if (is_name(axis)) continue;
            errors.push_back({.code = "unknown-axis",
                              .message = fmt::format("there is no axis '{}' to {}", axis, kind),
                              .expected = "an axis of the diagram"});
        }
    };
    choose("group", options.group);
    choose("stream", options.stream);
    if (!errors.empty()) return to_public(errors);
    if (options.threads != 0) pipeline.schedule.push_back(fmt::format("threads = {}", options.threads));
    if (options.auxiliary) pipeline.schedule.emplace_back("form = auxiliary");
    pipeline.machine = options.machine;
    pipeline.batch_invariant = options.batch_invariant;
    pipeline.keep_plan = true;
    auto compilation = on_enough_stack([&] {
        auto made = run_pipeline(std::make_shared<const Source>(Source{options.file_name, std::string(text)}), pipeline);
        if (made && made->kernel && options.validate) validate_first_use(made->derived);
        return made;
    });
    if (!compilation) return to_public(compilation.errors());
    if (!compilation->kernel) {
        Diagnostic error;
        error.code = "gpu-in-library";
        error.message = compilation->machine.name + " is a GPU, and this function compiles for the processor";
        error.expected = "a machine of kind cpu, or none for this computer";
        error.hint = "<napkin/napkin.h> runs it there, on the caller's pointers and stream";
        error.exit_code = ExitCode::machine_lacks;
        return to_public(std::vector<Diagnostic>{error});
    }
    auto impl = std::make_shared<Program::Impl>(Program::Impl{std::move(compilation).value(), {}, {}});
    const Compilation& c = impl->compilation;
    for (const ArrayId id : c.diagram.inputs) impl->inputs.push_back(describe_array(c.diagram, id, c.extents));
    for (const ArrayId id : c.diagram.outputs) impl->outputs.push_back(describe_array(c.diagram, id, c.extents));
    return Program(std::move(impl));
}

}  // namespace napkin
