#include "run/gpu/kernel.hpp"

#include <algorithm>
#include <map>
#include <set>

#include "diagram/array_sizes.hpp"
#include "diagram/check_indices.hpp"
#include "support/ids.hpp"

namespace napkin::gpu {

std::int64_t GpuKernel::bytes_of(ArrayId array) const { return array_bytes(program_.diagram, array, program_.extents); }

Result<std::shared_ptr<GpuKernel>> GpuKernel::load(const SizedProgram& program, const cuda::CudaSource& source) {
    const auto found = gpu::device();
    if (!found) return found.errors();
    auto cubin = compile_cuda(cuda::complete(source), found->architecture());
    if (!cubin) return cubin.errors();
    return load(program, source, std::move(*cubin));
}

Result<std::shared_ptr<GpuKernel>> GpuKernel::load(const SizedProgram& program, const cuda::CudaSource& source, Cubin cubin) {
    const auto found = gpu::device();
    if (!found) return found.errors();
    auto kernel = std::make_shared<GpuKernel>();
    kernel->program_ = program, kernel->device_ = *found, kernel->entries_ = source.entries;
    kernel->cubin_ = std::move(cubin);
    kernel->deciding_ = arrays_in_indices(program.diagram);
    if (const Status prepared = kernel->prepare(source); !prepared) return prepared.errors();
    return kernel;
}

Status GpuKernel::prepare(const cuda::CudaSource& source) {
    auto module = gpu::load(cubin_.code);
    if (!module) return module.errors();
    module_ = *module;
    arrays_.resize(program_.diagram.arrays.size());
    std::int64_t scratch = 0;
    std::set<ArrayId> used(program_.diagram.inputs.begin(), program_.diagram.inputs.end());
    used.insert(program_.diagram.outputs.begin(), program_.diagram.outputs.end());
    const std::set<ArrayId> given = used;
    for (const cuda::KernelEntry& entry : source.entries) {
        used.insert(entry.inputs.begin(), entry.inputs.end());
        used.insert(entry.outputs.begin(), entry.outputs.end());
        scratch = std::max(scratch, entry.scratch_bytes * entry.blocks);
    }
    for (const ArrayId array : used) {
        auto memory = allocate(bytes_of(array));
        if (!memory) return memory.errors();
        arrays_[at(array)] = std::move(*memory);
        if (!given.contains(array)) extra_bytes_ += bytes_of(array);
    }
    if (scratch > 0) {
        auto memory = allocate(scratch);
        if (!memory) return memory.errors();
        scratch_ = std::move(*memory);
        if (const Status clean = fill(scratch_, 0, scratch); !clean) return clean;
        extra_bytes_ += scratch;
    }
    for (const cuda::KernelEntry& entry : entries_) {
        auto found = function(*module_, entry.name, entry.shared_bytes);
        if (!found) return found.errors();
        Ready ready;
        const auto pointers = [&](const std::vector<ArrayId>& list) {
            for (const ArrayId array : list) ready.parameters.push_back(arrays_[at(array)].address());
            if (list.empty()) ready.parameters.push_back(0);
        };
        pointers(entry.inputs), pointers(entry.outputs);
        const std::size_t before = ready.parameters.size();
        for (const auto* list : {&entry.inputs, &entry.outputs})
            for (const ArrayId array : *list)
                for (const std::int64_t stride : row_major_strides(array_sizes(program_.diagram, array, program_.extents)))
                    ready.parameters.push_back(static_cast<std::uint64_t>(stride));
        if (ready.parameters.size() == before) ready.parameters.push_back(0);
        ready.scratch = scratch_.address();
        for (const cuda::TensorMap& map : entry.maps) {
            auto encoded = encode_map(arrays_[at(map.array)].address(), program_.diagram.array(map.array).type,
                                      array_sizes(program_.diagram, map.array, program_.extents), map.box);
            if (!encoded) return encoded.errors();
            ready.maps.push_back(*encoded);
        }
        ready.launch = {*found, std::max<std::int64_t>(entry.blocks, 1), entry.threads, entry.rows, entry.shared_bytes,
                        {}};
        ready_.push_back(std::move(ready));
    }
    for (Ready& ready : ready_) {
        ready.launch.arguments = {ready.parameters.data(), &ready.scratch};
        if (!ready.maps.empty()) ready.launch.arguments.push_back(ready.maps.data());
    }
    return Done{};
}

Status GpuKernel::upload(const std::vector<KernelInput>& inputs) {
    internal_check(inputs.size() == program_.diagram.inputs.size(), "gpu: not as many inputs as the diagram has");
    for (std::size_t i = 0; i < inputs.size(); ++i) {
        const ArrayId array = program_.diagram.inputs[i];
        if (const Status done = copy_to(arrays_[at(array)], inputs[i].data, bytes_of(array)); !done) return done;
    }
    return Done{};
}

Status GpuKernel::launch(const Ready& ready) { return ready.instead ? ready.instead() : gpu::launch(ready.launch); }

Status GpuKernel::launch() const {
    for (const Ready& ready : ready_)
        if (const Status done = launch(ready); !done) return done;
    return Done{};
}

Status GpuKernel::download(const std::vector<KernelOutput>& outputs) const {
    if (const Status done = synchronize(); !done) return done;
    for (std::size_t i = 0; i < outputs.size(); ++i) {
        const ArrayId array = program_.diagram.outputs[i];
        if (const Status done = copy_from(outputs[i].data, arrays_[at(array)], bytes_of(array)); !done) return done;
    }
    return Done{};
}

Status GpuKernel::poison_outputs() const {
    for (const cuda::KernelEntry& entry : entries_)
        for (const ArrayId array : entry.outputs)
            if (const Status done = fill(arrays_[at(array)], 0xff, bytes_of(array)); !done) return done;
    return Done{};
}

Status GpuKernel::check_computed(ComputedIndices& indices, const std::vector<ArrayId>& written) const {
    std::map<ArrayId, std::vector<char>> here;
    return indices.after(written, [&](ArrayId array) -> Result<KernelInput> {
        std::vector<char>& values = here[array];
        values.resize(static_cast<std::size_t>(bytes_of(array)));
        if (const Status done = synchronize(); !done) return done.errors();
        if (const Status done = copy_from(values.data(), arrays_[at(array)], bytes_of(array)); !done)
            return done.errors();
        return KernelInput{
            values.data(), program_.diagram.array(array).type, array_sizes(program_.diagram, array, program_.extents), {}};
    });
}

Status GpuKernel::run(const std::vector<KernelInput>& inputs, const std::vector<KernelOutput>& outputs) {
    if (const Status done = upload(inputs); !done) return done;
    if (const Status done = poison_outputs(); !done) return done;
    ComputedIndices indices(program_.diagram, program_.extents, deciding_);
    for (std::size_t k = 0; k < ready_.size(); ++k) {
        if (const Status done = launch(ready_[k]); !done) return done;
        if (const Status inside = check_computed(indices, entries_[k].outputs); !inside) return inside;
    }
    return download(outputs);
}

}  // namespace napkin::gpu
