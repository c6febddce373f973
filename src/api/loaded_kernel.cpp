#include "api/loaded_kernel.hpp"

#include <fmt/format.h>

#include <array>

#include "check/first_use.hpp"
#include "diagram/array_sizes.hpp"
#include "run/gpu/device_machine.hpp"
#include "run/index_inputs.hpp"
#include "support/ranges.hpp"

namespace napkin {
namespace {

/// Programs of more arrays than this have the addresses of a launch in memory that is allocated.
constexpr std::size_t arrays_on_stack = 64;

std::uint64_t address_of(const void* pointer) { return reinterpret_cast<std::uintptr_t>(pointer); }

/// f(a place for so many addresses).
template <class F>
Status with_addresses(std::size_t count, const F& f) {
    if (count <= arrays_on_stack) {
        std::array<std::uint64_t, arrays_on_stack> places;  // NOLINT: f writes those that count
        return f(std::span(places).first(count));
    }
    std::vector<std::uint64_t> places(count);
    return f(std::span(places));
}

/// f(the strides of each array).
template <class F>
Status with_strides(Arrays arrays, const F& f) {
    std::array<const std::int64_t*, arrays_on_stack> few;  // NOLINT: those that count are written
    std::vector<const std::int64_t*> many(arrays.size() > few.size() ? arrays.size() : 0);
    const std::span<const std::int64_t*> all = many.empty() ? std::span(few).first(arrays.size()) : std::span(many);
    for (std::size_t i = 0; i < arrays.size(); ++i) all[i] = arrays[i]->strides;
    return f(all);
}

/// f(the address of each array, its strides).
template <class F>
Status with_views(Arrays arrays, const F& f) {
    return with_addresses(arrays.size(), [&](std::span<std::uint64_t> places) {
        for (std::size_t i = 0; i < places.size(); ++i) places[i] = address_of(begin_of(*arrays[i]));
        return with_strides(arrays, [&](std::span<const std::int64_t* const> strides) { return f(places, strides); });
    });
}

}  // namespace

Result<std::shared_ptr<const LoadedKernel>> LoadedKernel::load(const Compilation& planned, unsigned flags, int device,
                                                               const std::vector<std::shared_ptr<const LoadedKernel>>& others) {
    if ((flags & NAPKIN_NOT_VALIDATED) == 0) validate_first_use(planned.derived);
    auto out = std::make_shared<LoadedKernel>();
    out->diagram_ = planned.diagram, out->extents_ = planned.extents;
    out->taken_ = taken_arrays(planned.diagram, planned.extents);
    std::string text = complete(planned.code);
    const auto same = find_if(
        others, [&](const auto& other) { return other->is_of(text, Location{planned.machine.kind, device}); });
    const LoadedKernel* const alike = same == others.end() ? nullptr : same->get();
    out->shares_code_ = alike != nullptr;
    if (!alike) out->text_ = std::move(text);
    if (const auto* code = std::get_if<cuda::CudaSource>(&planned.code)) {
        const auto there = gpu::device(device);
        if (!there) return there.errors();
        if (const auto note = gpu::note_on_device(*there, planned.machine); !note) return note.errors();
        auto kernel = gpu::CallersKernel::load(planned.diagram, planned.program, *code, device,
                                               (flags & NAPKIN_CALLERS_WORKSPACE) == 0,
                                               alike ? alike->on_gpu_.get() : nullptr);
        if (!kernel) return kernel.errors();
        out->on_gpu_ = std::move(*kernel), out->device_ = device;
    } else {
        auto kernel = loaded_on_processor(planned, alike ? alike->on_processor_.get() : nullptr);
        if (!kernel) return kernel.errors();
        out->on_processor_ = std::move(*kernel);
    }
    return std::shared_ptr<const LoadedKernel>(std::move(out));
}

Status LoadedKernel::run_on_processor(const std::vector<KernelInput>& inputs, const std::vector<KernelOutput>& outputs,
                                      const void* stream) const {
    if (stream != nullptr) {
        return Diagnostic{.code = "no-stream",
                          .message = fmt::format("{} is compiled for the processor, and is given a stream", diagram_.name),
                          .expected = "NULL: it has run when the call returns"};
    }
    // Values are looked at once their views are known to fit.
    if (Status fits = on_processor_->check(inputs, outputs); !fits) return fits;
    if (Status good = check_index_inputs(diagram_, extents_, inputs); !good) return good;
    return on_processor_->run(inputs, outputs);
}

Status LoadedKernel::prepare(Arrays arrays) const {
    if (!are_taken(arrays, taken_, place())) return faults_of(arrays, taken_, place());
    if (!on_gpu_) return Done{};
    return with_views(arrays, [&](std::span<const std::uint64_t> places, std::span<const std::int64_t* const> strides) {
        return on_gpu_->prepare(places, strides);
    });
}

Status LoadedKernel::run(Arrays arrays, void* stream) const {
    if (!are_taken(arrays, taken_, place())) return faults_of(arrays, taken_, place());
    if (on_gpu_)
        return with_views(arrays, [&](std::span<const std::uint64_t> places, std::span<const std::int64_t* const> strides) {
            return on_gpu_->launch(places, 0, stream, strides);
        });
    std::vector<KernelInput> inputs;
    std::vector<KernelOutput> outputs;
    for (std::size_t i = 0; i < arrays.size(); ++i)
        if (i < diagram_.inputs.size())
            inputs.push_back(input_view(*arrays[i], taken_[i]));
        else
            outputs.push_back(output_view(*arrays[i], taken_[i]));
    return run_on_processor(inputs, outputs, stream);
}

Status LoadedKernel::run_at(std::span<void* const> addresses, void* workspace, void* stream) const {
    if (on_gpu_)
        return with_addresses(addresses.size(), [&](std::span<std::uint64_t> places) {
            for (std::size_t i = 0; i < places.size(); ++i) places[i] = address_of(addresses[i]);
            return on_gpu_->launch(places, address_of(workspace), stream);
        });
    std::vector<KernelInput> inputs;
    std::vector<KernelOutput> outputs;
    for (std::size_t i = 0; i < addresses.size(); ++i) {
        // One too many is an output that the kernel does not know, which it says.
        const TakenArray none, &taken = i < taken_.size() ? taken_[i] : none;
        if (i < diagram_.inputs.size())
            inputs.push_back({addresses[i], taken.type, taken.sizes, {}});
        else
            outputs.push_back({addresses[i], taken.type, taken.sizes, {}});
    }
    return run_on_processor(inputs, outputs, stream);
}

bool LoadedKernel::from_cache() const { return on_gpu_ ? on_gpu_->cubin().from_cache : on_processor_->from_cache(); }
double LoadedKernel::compile_seconds() const {
    return on_gpu_ ? on_gpu_->cubin().compile_seconds : on_processor_->compile_seconds();
}

}  // namespace napkin
