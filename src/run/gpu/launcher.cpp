#include "run/gpu/launcher.hpp"

#include <algorithm>
#include <set>

#include "diagram/array_sizes.hpp"
#include "support/ids.hpp"
#include "support/ranges.hpp"

namespace napkin::gpu {
namespace {

/// Kernels' scratch memory begins as what cudaMalloc gives does.
std::int64_t to_scratch_alignment(std::int64_t bytes) { return (bytes + 255) / 256 * 256; }

}  // namespace

Result<Cubin> compiled(const cuda::CudaSource& source, const std::string& architecture) {
    if (source.entries.empty()) return Cubin{};
    return compile_cuda(cuda::complete(source), architecture);
}

std::int64_t Launcher::bytes_of(ArrayId array) const { return array_bytes(program_.diagram, array, program_.extents); }

Result<std::shared_ptr<const Launcher>> Launcher::load(const SizedProgram& program, const cuda::CudaSource& source,
                                                       Cubin cubin, const Launcher* alike) {
    auto launcher = std::make_shared<Launcher>();
    launcher->program_ = program, launcher->entries_ = source.entries, launcher->cubin_ = std::move(cubin);
    if (alike) launcher->module_ = alike->module_;
    if (!launcher->entries_.empty() && !alike) {
        auto module = gpu::load(launcher->cubin_.code);
        if (!module) return module.errors();
        launcher->module_ = *module;
    }
    std::set<ArrayId> used(program.diagram.inputs.begin(), program.diagram.inputs.end());
    used.insert(program.diagram.outputs.begin(), program.diagram.outputs.end());
    const std::set<ArrayId> given = used;
    std::int64_t shared = 0;  // of scratch memory, by kernels that keep nothing there
    for (const cuda::KernelEntry& entry : launcher->entries_) {
        used.insert(entry.inputs.begin(), entry.inputs.end());
        used.insert(entry.outputs.begin(), entry.outputs.end());
        if (!entry.keeps_scratch) shared = std::max(shared, to_scratch_alignment(entry.scratch_bytes));
        auto found = function(*launcher->module_, entry.name, entry.shared_bytes);
        if (!found) return found.errors();
        launcher->functions_.push_back(*found);
        launcher->before_.push_back(nullptr);
        if (!entry.before) continue;
        auto before = function(*launcher->module_, entry.before->name, 0);
        if (!before) return before.errors();
        launcher->before_.back() = *before;
    }
    launcher->scratch_bytes_ = shared;
    for (const cuda::KernelEntry& entry : launcher->entries_) {
        launcher->scratch_offsets_.push_back(entry.keeps_scratch ? launcher->scratch_bytes_ : 0);
        if (entry.keeps_scratch) launcher->scratch_bytes_ += to_scratch_alignment(entry.scratch_bytes);
    }
    launcher->arrays_.assign(used.begin(), used.end());
    for (const ArrayId array : used)
        if (!given.contains(array)) launcher->between_.push_back(array);
    return std::shared_ptr<const Launcher>(std::move(launcher));
}

Status launch(const BoundLaunch& bound, Stream stream) {
    if (bound.before)
        if (const Status done = launch(*bound.before, stream); !done) return done;
    return launch(bound.launch, stream);
}

bool Launcher::takes(ArrayId array, const std::vector<std::int64_t>& strides) const {
    const std::vector<std::int64_t> sizes = array_sizes(program_.diagram, array, program_.extents);
    const std::int64_t width = bytes(program_.diagram.array(array).type);
    const auto suits_map = [&] {
        for (std::size_t d = 0; d < strides.size(); ++d) {
            const std::int64_t apart = strides[d] * width;
            const bool is_last = d + 1 == strides.size();
            if (is_last ? strides[d] != 1 && sizes[d] > 1
                        : apart <= 0 || apart % map_stride_bytes != 0 || apart >= most_map_stride_bytes)
                return false;
        }
        return true;
    };
    for (const cuda::KernelEntry& entry : entries_) {
        const bool has_map = any_of(entry.maps, [&](const cuda::TensorMap& map) { return map.array == array; });
        const auto must_be_dense = [&](const std::vector<ArrayId>& arrays, const std::vector<bool>& dense) {
            for (std::size_t i = 0; i < arrays.size(); ++i)
                if (arrays[i] == array && dense[i]) return true;
            return false;
        };
        const bool has_gaps = !strides.empty() && strides.back() != 1 && sizes.back() > 1;
        if (has_gaps && must_be_dense(entry.outputs, entry.in_rows)) return false;
        if (has_map ? !suits_map() : must_be_dense(entry.inputs, entry.packed) || must_be_dense(entry.outputs, entry.dense))
            return false;
    }
    return true;
}

Result<std::vector<BoundLaunch>> Launcher::bind(const std::vector<std::uint64_t>& addresses, std::uint64_t scratch,
                                                const GivenStrides& given) const {
    const auto sizes = [&](ArrayId array) { return array_sizes(program_.diagram, array, program_.extents); };
    const auto strides = [&](ArrayId array) {
        const auto found = given.find(array);
        return found == given.end() ? row_major_strides(sizes(array)) : found->second;
    };
    std::vector<BoundLaunch> out;
    for (std::size_t k = 0; k < entries_.size(); ++k) {
        const cuda::KernelEntry& entry = entries_[k];
        BoundLaunch bound;
        const auto pointers = [&](const std::vector<ArrayId>& list) {
            for (const ArrayId array : list) bound.parameters.push_back(addresses[at(array)]);
            if (list.empty()) bound.parameters.push_back(0);
        };
        pointers(entry.inputs), pointers(entry.outputs);
        const std::size_t before = bound.parameters.size();
        for (const auto* list : {&entry.inputs, &entry.outputs})
            for (const ArrayId array : *list)
                for (const std::int64_t stride : strides(array))
                    bound.parameters.push_back(static_cast<std::uint64_t>(stride));
        for (const std::int64_t number : entry.numbers) bound.parameters.push_back(static_cast<std::uint64_t>(number));
        if (bound.parameters.size() == before) bound.parameters.push_back(0);
        bound.scratch = {scratch + static_cast<std::uint64_t>(scratch_offsets_[k])};
        for (const cuda::TensorMap& map : entry.maps) {
            auto encoded = encode_map(addresses[at(map.array)], program_.diagram.array(map.array).type,
                                      sizes(map.array), strides(map.array), map);
            if (!encoded) return encoded.errors();
            bound.maps.push_back(*encoded);
        }
        bound.launch = {functions_[k],      std::max<std::int64_t>(entry.blocks, 1),        entry.threads, entry.rows,
                        entry.shared_bytes, {bound.parameters.data(), bound.scratch.data()}};
        if (!bound.maps.empty()) bound.launch.arguments.push_back(bound.maps.data());
        if (entry.before)
            bound.before = Launch{before_[k], entry.before->blocks,  entry.before->threads, 1,
                                  0,          bound.launch.arguments};
        out.push_back(std::move(bound));
    }
    return out;
}

}  // namespace napkin::gpu
