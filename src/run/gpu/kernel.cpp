#include "run/gpu/kernel.hpp"

#include <map>

#include "diagram/array_sizes.hpp"
#include "diagram/check_indices.hpp"
#include "support/ids.hpp"

namespace napkin::gpu {

Result<std::shared_ptr<GpuKernel>> GpuKernel::load(const SizedProgram& program, const cuda::CudaSource& source) {
    const auto found = gpu::device();
    if (!found) return found.errors();
    auto cubin = compiled(source, found->architecture());
    if (!cubin) return cubin.errors();
    return load(program, source, std::move(*cubin));
}

Result<std::shared_ptr<GpuKernel>> GpuKernel::load(const SizedProgram& program, const cuda::CudaSource& source, Cubin cubin) {
    const auto found = gpu::device();
    if (!found) return found.errors();
    auto launcher = Launcher::load(program, source, std::move(cubin));
    if (!launcher) return launcher.errors();
    auto kernel = std::make_shared<GpuKernel>();
    kernel->device_ = *found, kernel->launcher_ = *launcher;
    kernel->deciding_ = arrays_in_indices(program.diagram);
    if (const Status prepared = kernel->prepare(); !prepared) return prepared.errors();
    return kernel;
}

Status GpuKernel::prepare() {
    arrays_.resize(diagram().arrays.size());
    std::vector<std::uint64_t> addresses(arrays_.size());
    for (const ArrayId array : launcher_->arrays()) {
        auto memory = allocate(launcher_->bytes_of(array));
        if (!memory) return memory.errors();
        addresses[at(array)] = memory->address();
        arrays_[at(array)] = std::move(*memory);
    }
    for (const ArrayId array : launcher_->between()) extra_bytes_ += launcher_->bytes_of(array);
    if (const std::int64_t scratch = launcher_->scratch_bytes(); scratch > 0) {
        auto memory = allocate(scratch);
        if (!memory) return memory.errors();
        scratch_ = std::move(*memory);
        if (const Status clean = fill(scratch_, 0, scratch); !clean) return clean;
        extra_bytes_ += scratch;
    }
    auto bound = launcher_->bind(addresses, scratch_.address());
    if (!bound) return bound.errors();
    for (BoundLaunch& launch : *bound) ready_.push_back({std::move(launch), {}});
    return Done{};
}

Status GpuKernel::upload(const std::vector<KernelInput>& inputs) {
    internal_check(inputs.size() == diagram().inputs.size(), "gpu: not as many inputs as the diagram has");
    for (std::size_t i = 0; i < inputs.size(); ++i) {
        const ArrayId array = diagram().inputs[i];
        if (const Status done = copy_to(arrays_[at(array)], inputs[i].data, launcher_->bytes_of(array)); !done)
            return done;
    }
    return Done{};
}

Status GpuKernel::launch(const Ready& ready) { return ready.instead ? ready.instead() : gpu::launch(ready.bound); }

Status GpuKernel::launch() const {
    for (const Ready& ready : ready_)
        if (const Status done = launch(ready); !done) return done;
    return Done{};
}

Status GpuKernel::download(const std::vector<KernelOutput>& outputs) const {
    if (const Status done = synchronize(); !done) return done;
    for (std::size_t i = 0; i < outputs.size(); ++i) {
        const ArrayId array = diagram().outputs[i];
        if (const Status done = copy_from(outputs[i].data, arrays_[at(array)], launcher_->bytes_of(array)); !done)
            return done;
    }
    return Done{};
}

Status GpuKernel::poison_outputs() const {
    for (const cuda::KernelEntry& entry : launcher_->entries())
        for (const ArrayId array : entry.outputs)
            if (const Status done = fill(arrays_[at(array)], 0xff, launcher_->bytes_of(array)); !done) return done;
    return Done{};
}

Status GpuKernel::check_computed(ComputedIndices& indices, const std::vector<ArrayId>& written) const {
    std::map<ArrayId, std::vector<char>> here;
    return indices.after(written, [&](ArrayId array) -> Result<KernelInput> {
        std::vector<char>& values = here[array];
        values.resize(static_cast<std::size_t>(launcher_->bytes_of(array)));
        if (const Status done = synchronize(); !done) return done.errors();
        if (const Status done = copy_from(values.data(), arrays_[at(array)], launcher_->bytes_of(array)); !done)
            return done.errors();
        return KernelInput{values.data(), diagram().array(array).type, array_sizes(diagram(), array, extents()), {}};
    });
}

Status GpuKernel::run(const std::vector<KernelInput>& inputs, const std::vector<KernelOutput>& outputs) {
    if (const Status done = upload(inputs); !done) return done;
    if (const Status done = poison_outputs(); !done) return done;
    ComputedIndices indices(diagram(), extents(), deciding_);
    for (std::size_t k = 0; k < ready_.size(); ++k) {
        if (const Status done = launch(ready_[k]); !done) return done;
        if (const Status inside = check_computed(indices, launcher_->entries()[k].outputs); !inside) return inside;
    }
    return download(outputs);
}

}  // namespace napkin::gpu
