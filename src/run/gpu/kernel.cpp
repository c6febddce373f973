#include "run/gpu/kernel.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "diagram/check_indices.hpp"
#include "run/index_inputs.hpp"
#include "support/ids.hpp"

namespace napkin::gpu {

std::vector<std::int64_t> GpuKernel::sizes(ArrayId array) const {
    std::vector<std::int64_t> out;
    for (const AxisId axis : program_.diagram.array(array).axes) out.push_back(program_.extents[at(axis)]);
    return out;
}

std::int64_t GpuKernel::array_bytes(ArrayId array) const {
    std::int64_t n = bytes(program_.diagram.array(array).type);
    for (const std::int64_t size : sizes(array)) n *= size;
    return n;
}

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
        auto memory = allocate(array_bytes(array));
        if (!memory) return memory.errors();
        arrays_[at(array)] = std::move(*memory);
        if (!given.contains(array)) extra_bytes_ += array_bytes(array);
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
            for (const ArrayId array : *list) {
                const std::vector<std::int64_t> extents = sizes(array);
                std::vector<std::int64_t> strides(extents.size(), 1);
                for (std::size_t d = extents.size(); d-- > 1;) strides[d - 1] = strides[d] * extents[d];
                for (const std::int64_t stride : strides)
                    ready.parameters.push_back(static_cast<std::uint64_t>(stride));
            }
        if (ready.parameters.size() == before) ready.parameters.push_back(0);
        ready.scratch = scratch_.address();
        ready.launch = {*found, std::max<std::int64_t>(entry.blocks, 1), entry.threads, entry.shared_bytes, {}};
        ready_.push_back(std::move(ready));
    }
    for (Ready& ready : ready_) ready.launch.arguments = {ready.parameters.data(), &ready.scratch};
    return Done{};
}

Status GpuKernel::upload(const std::vector<KernelInput>& inputs) {
    internal_check(inputs.size() == program_.diagram.inputs.size(), "gpu: not as many inputs as the diagram has");
    for (std::size_t i = 0; i < inputs.size(); ++i) {
        const ArrayId array = program_.diagram.inputs[i];
        if (const Status done = copy_to(arrays_[at(array)], inputs[i].data, array_bytes(array)); !done) return done;
    }
    return Done{};
}

Status GpuKernel::launch() const {
    for (const Ready& ready : ready_)
        if (const Status done = gpu::launch(ready.launch); !done) return done;
    return Done{};
}

Status GpuKernel::download(const std::vector<KernelOutput>& outputs) const {
    if (const Status done = synchronize(); !done) return done;
    for (std::size_t i = 0; i < outputs.size(); ++i) {
        const ArrayId array = program_.diagram.outputs[i];
        if (const Status done = copy_from(outputs[i].data, arrays_[at(array)], array_bytes(array)); !done) return done;
    }
    return Done{};
}

Status GpuKernel::poison_outputs() const {
    for (const cuda::KernelEntry& entry : entries_)
        for (const ArrayId array : entry.outputs)
            if (const Status done = fill(arrays_[at(array)], 0xff, array_bytes(array)); !done) return done;
    return Done{};
}

/// Whether the indices that entry k has computed lead inside of their arrays.
Status GpuKernel::check_computed(std::size_t k) const {
    std::vector<ArrayId> fresh;
    for (const ArrayId array : entries_[k].outputs)
        if (contains(deciding_, array)) fresh.push_back(array);
    if (fresh.empty()) return Done{};
    if (const Status done = synchronize(); !done) return done;
    std::set<ArrayId> known(program_.diagram.inputs.begin(), program_.diagram.inputs.end());
    for (std::size_t i = 0; i <= k; ++i) known.insert(entries_[i].outputs.begin(), entries_[i].outputs.end());
    std::map<ArrayId, std::vector<char>> here;
    for (const ArrayId array : deciding_) {
        if (!known.contains(array)) continue;
        std::vector<char>& values = here[array];
        values.resize(static_cast<std::size_t>(array_bytes(array)));
        if (const Status done = copy_from(values.data(), arrays_[at(array)], array_bytes(array)); !done) return done;
    }
    return check_computed_indices(
        program_.diagram, program_.extents, deciding_, fresh, [&](ArrayId array) -> std::optional<KernelInput> {
            if (!here.contains(array)) return std::nullopt;
            return KernelInput{here.at(array).data(), program_.diagram.array(array).type, sizes(array), {}};
        });
}

Status GpuKernel::run(const std::vector<KernelInput>& inputs, const std::vector<KernelOutput>& outputs) {
    if (const Status done = upload(inputs); !done) return done;
    if (const Status done = poison_outputs(); !done) return done;
    for (std::size_t k = 0; k < ready_.size(); ++k) {
        if (const Status done = gpu::launch(ready_[k].launch); !done) return done;
        if (const Status inside = check_computed(k); !inside) return inside;
    }
    return download(outputs);
}

}  // namespace napkin::gpu
