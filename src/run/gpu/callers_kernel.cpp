#include "run/gpu/callers_kernel.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <atomic>

#include "diagram/array_sizes.hpp"
#include "run/overlap.hpp"
#include "run/strides.hpp"
#include "support/ids.hpp"
#include "support/ranges.hpp"
#include "support/saturate.hpp"

namespace napkin::gpu {
namespace {

/// Tuples of addresses whose launches are kept: programs that take turns between a few buffers encode nothing anew.
constexpr std::size_t most_recent = 16;
std::atomic<std::uint64_t> num_kernels = 0;

std::int64_t to_workspace_alignment(std::int64_t bytes) { return round_up(bytes, workspace_alignment); }

Diagnostic fault_of_arrays(const char* code, std::string message, std::string expected) {
    return Diagnostic{.code = code, .message = std::move(message), .expected = std::move(expected)};
}

}  // namespace

CallersKernel::CallersKernel(std::shared_ptr<const Launcher> launcher, const Diagram& callers, int device)
    : launcher_(std::move(launcher)), device_(device), number_(++num_kernels) {
    const Diagram& diagram = launcher_->program().diagram;
    given_ = diagram.inputs;
    append(given_, diagram.outputs);
    for (const auto* list : {&callers.inputs, &callers.outputs})
        for (const ArrayId array : *list) {
            sizes_.push_back(mapped<std::int64_t>(callers.array(array).axes,
                                                  [&](AxisId axis) { return launcher_->program().extents[axis]; }));
            dense_.push_back(row_major_strides(sizes_.back()));
        }
    for (const ArrayId array : launcher_->between()) {
        offsets_.push_back(workspace_bytes_);
        workspace_bytes_ += to_workspace_alignment(launcher_->bytes_of(array));
    }
    scratch_offset_ = workspace_bytes_;
    workspace_bytes_ += to_workspace_alignment(launcher_->scratch_bytes());
}

CallersKernel::~CallersKernel() {
    // Memory and code are given back where they were taken.
    const InPrimaryContext here(device_);
    own_ = DeviceMemory();
    copy_.reset();
    recent_.clear();
    launcher_.reset();
}

Result<std::shared_ptr<const CallersKernel>> CallersKernel::load(const Diagram& diagram, const SizedProgram& program,
                                                                 const cuda::CudaSource& source, int device,
                                                                 bool has_workspace, const CallersKernel* alike) {
    const auto found = gpu::device(device);
    if (!found) return found.errors();
    const InPrimaryContext here(device);
    auto cubin = alike ? Result<Cubin>(alike->cubin()) : compiled(source, found->architecture());
    if (!cubin) return cubin.errors();
    auto launcher = Launcher::load(program, source, std::move(*cubin), alike ? alike->launcher_.get() : nullptr);
    if (!launcher) return launcher.errors();
    std::shared_ptr<CallersKernel> kernel(new CallersKernel(std::move(*launcher), diagram, device));
    if (has_workspace && kernel->workspace_bytes_ > 0) {
        auto memory = allocate(kernel->workspace_bytes_);
        if (!memory) return memory.errors();
        kernel->own_ = std::move(*memory);
        if (const Status clean = fill(kernel->own_, 0, kernel->workspace_bytes_); !clean) return clean.errors();
        // The caller's streams do not wait for this one.
        if (const Status done = synchronize(); !done) return done.errors();
    }
    return std::shared_ptr<const CallersKernel>(std::move(kernel));
}

std::vector<Diagnostic> CallersKernel::faults(std::span<const std::uint64_t> addresses,
                                              const std::vector<std::vector<std::int64_t>>& strides,
                                              std::uint64_t workspace) const {
    const Diagram& diagram = launcher_->program().diagram;
    const auto name = [&](std::size_t i) { return diagram.array(given_[i]).name; };
    std::vector<Diagnostic> out;
    if (workspace_bytes_ > 0 && (workspace == 0 || workspace % workspace_alignment != 0))
        out.push_back(fault_of_arrays(
            "no-workspace",
            workspace == 0 ? fmt::format("{} has no workspace of its own, and is given none", diagram.name)
                           : fmt::format("the workspace of {} begins at {:#x}", diagram.name, workspace),
            fmt::format("{} bytes on the GPU that begin at a multiple of {}", workspace_bytes_, workspace_alignment)));
    const auto bytes = [&](std::size_t i) { return static_cast<std::uint64_t>(launcher_->bytes_of(given_[i])); };
    for (std::size_t i = 0; i < given_.size(); ++i) {
        if (bytes(i) == 0) continue;
        if (addresses[i] == 0)
            out.push_back(
                fault_of_arrays("view-null", fmt::format("{} points nowhere", name(i)), "a pointer to its numbers"));
        else if (addresses[i] + bytes(i) < addresses[i])
            out.push_back(fault_of_arrays("view-offset", fmt::format("{} begins at {:#x}", name(i), addresses[i]),
                                          fmt::format("an address with {} bytes behind it", bytes(i))));
    }
    if (!out.empty()) return out;
    const auto memory_of = [&](std::size_t i) {
        return StridedArray{addresses[i], napkin::bytes(diagram.array(given_[i]).type), sizes_[i], strides[i]};
    };
    for (std::size_t i = 0; i < given_.size(); ++i)
        if (!is_addressable(memory_of(i)))
            out.push_back(fault_of_arrays("view-strides", fmt::format("the strides of {} lead out of memory", name(i)),
                                          "addresses that do not wrap around"));
    if (!out.empty()) return out;
    // What is written shares no memory with anything else.
    for (std::size_t i = diagram.inputs.size(); i < given_.size(); ++i) {
        if (bytes(i) > 0 && overlaps_itself(memory_of(i)))
            out.push_back(fault_of_arrays("view-overlap", fmt::format("elements of {} overlap each other", name(i)),
                                          "memory of its own for every element"));
        for (std::size_t j = 0; j < i; ++j)
            if (bytes(i) > 0 && bytes(j) > 0 && overlap(memory_of(i), memory_of(j)))
                out.push_back(fault_of_arrays("view-overlap", fmt::format("{} and {} overlap", name(j), name(i)),
                                              "memory of its own for every output"));
    }
    return out;
}

bool CallersKernel::is_of(const Binding& binding, std::span<const std::uint64_t> addresses, StridesOfCall strides,
                          std::uint64_t workspace) const {
    if (binding.workspace != workspace || !std::ranges::equal(binding.addresses, addresses)) return false;
    for (std::size_t i = 0; i < given_.size(); ++i) {
        const std::int64_t* const given = strides.empty() || strides[i] == nullptr ? dense_[i].data() : strides[i];
        if (!std::equal(binding.strides[i].begin(), binding.strides[i].end(), given)) return false;
    }
    return true;
}

std::optional<std::vector<std::int64_t>> CallersKernel::taken_strides(std::size_t array, std::uint64_t address,
                                                                      const Strides& strides) const {
    const SizedProgram& program = launcher_->program();
    const ArrayId id = given_[array];
    const std::vector<std::int64_t> sizes = array_sizes(program.diagram, id, program.extents);
    if (launcher_->bytes_of(id) > 0 && address % array_alignment != 0) return std::nullopt;
    if (is_row_major(sizes_[array], strides)) return row_major_strides(sizes);
    auto joined = joined_strides(sizes_[array], strides, sizes);
    return joined && launcher_->takes(id, *joined) ? joined : std::nullopt;
}

Result<std::vector<BoundLaunch>> CallersKernel::launches_at(const Binding& binding,
                                                            std::span<const std::uint64_t> dense) const {
    GivenStrides strides;
    std::vector<std::uint64_t> places(launcher_->program().diagram.arrays.size());
    std::size_t copy = 0;
    for (std::size_t i = 0; i < given_.size(); ++i) {
        const bool is_copied = copy < binding.copied.size() && binding.copied[copy] == i;
        places[at(given_[i])] = is_copied ? dense[copy++] : binding.addresses[i];
        if (is_copied) continue;
        // What has no values is read by no kernel, whatever its strides.
        if (auto taken = taken_strides(i, binding.addresses[i], binding.strides[i]))
            strides[given_[i]] = std::move(*taken);
    }
    for (std::size_t i = 0; i < offsets_.size(); ++i)
        places[at(launcher_->between()[i])] = binding.workspace + static_cast<std::uint64_t>(offsets_[i]);
    return launcher_->bind(places, binding.workspace + static_cast<std::uint64_t>(scratch_offset_), strides);
}

Result<std::shared_ptr<const CallersKernel::Binding>> CallersKernel::bind(std::span<const std::uint64_t> addresses,
                                                                          StridesOfCall given,
                                                                          std::uint64_t workspace) const {
    auto binding = std::make_shared<Binding>();
    binding->addresses.assign(addresses.begin(), addresses.end());
    binding->strides = dense_;
    binding->workspace = workspace;
    for (std::size_t i = 0; i < given.size(); ++i)
        if (given[i] != nullptr) binding->strides[i].assign(given[i], given[i] + sizes_[i].size());
    if (auto wrong = faults(addresses, binding->strides, workspace); !wrong.empty()) return wrong;
    for (std::size_t i = 0; i < given_.size(); ++i)
        if (launcher_->bytes_of(given_[i]) > 0 && !taken_strides(i, addresses[i], binding->strides[i]))
            binding->copied.push_back(i);
    if (binding->copied.empty()) {
        auto launches = launches_at(*binding, {});
        if (!launches) return launches.errors();
        binding->launches = std::move(*launches);
    } else if (!copy_) {
        auto made = StridedCopy::load(*gpu::device(device_));
        if (!made) return made.errors();
        copy_ = std::move(*made);
    }
    return std::shared_ptr<const Binding>(std::move(binding));
}

Status CallersKernel::launch_by_copies(const Binding& binding, const StridedCopy& copier, Stream stream) const {
    const Diagram& diagram = launcher_->program().diagram;
    struct Dense {
        Stream stream;
        std::vector<std::uint64_t> addresses = {};
        ~Dense() {
            for (const std::uint64_t address : addresses) free_on(stream, address);
        }
    } dense{stream};
    num_copies_ += binding.copied.size();
    for (const std::size_t i : binding.copied) {
        auto memory = allocate_on(stream, launcher_->bytes_of(given_[i]));
        if (!memory) return memory.errors();
        dense.addresses.push_back(*memory);
    }
    auto launches = launches_at(binding, dense.addresses);
    if (!launches) return launches.errors();
    const auto copy = [&](std::size_t n, bool back) -> Status {
        const std::size_t i = binding.copied[n];
        const StridedPlace view{binding.addresses[i], binding.strides[i]}, own{dense.addresses[n], dense_[i]};
        const auto bound = copier.bind(back ? view : own, back ? own : view, sizes_[i],
                                       napkin::bytes(diagram.array(given_[i]).type));
        if (!bound) return bound.errors();
        return gpu::launch(*bound, stream);
    };
    const std::size_t outputs = diagram.inputs.size();
    for (std::size_t n = 0; n < binding.copied.size(); ++n)
        if (binding.copied[n] < outputs)
            if (const Status done = copy(n, false); !done) return done;
    for (const BoundLaunch& launch : *launches)
        if (const Status done = gpu::launch(launch, stream); !done) return done;
    for (std::size_t n = 0; n < binding.copied.size(); ++n)
        if (binding.copied[n] >= outputs)
            if (const Status done = copy(n, true); !done) return done;
    return Done{};
}

Result<std::shared_ptr<const CallersKernel::Binding>> CallersKernel::bound(std::span<const std::uint64_t> addresses,
                                                                           StridesOfCall strides,
                                                                           std::uint64_t workspace) const {
    const std::lock_guard lock(mutex_);
    for (const auto& binding : recent_)
        if (is_of(*binding, addresses, strides, workspace)) return binding;
    auto made = bind(addresses, strides, workspace);
    if (!made) return made;
    if (recent_.size() < most_recent)
        recent_.push_back(*made);
    else
        recent_[std::exchange(oldest_, (oldest_ + 1) % most_recent)] = *made;
    return made;
}

CallersKernel::OfThread& CallersKernel::slot_of_thread(std::span<const std::uint64_t> addresses) const {
    constexpr std::size_t slots = 256;  // some for each layer of a model
    thread_local std::array<OfThread, slots> all;
    std::uint64_t hash = number_;
    for (const std::uint64_t address : addresses) hash = (hash ^ address) * 0x9e3779b97f4a7c15;  // Fibonacci hashing
    return all[hash >> 56];
}

Status CallersKernel::prepare(std::span<const std::uint64_t> addresses, StridesOfCall strides) const {
    const InPrimaryContext here(device_);
    const auto made = bound(addresses, strides, own_.address());
    if (!made) return made.errors();
    return Done{};
}

Status CallersKernel::launch(std::span<const std::uint64_t> addresses, std::uint64_t workspace, Stream stream,
                             StridesOfCall strides) const {
    if (addresses.size() != given_.size())
        return fault_of_arrays("view-count",
                               fmt::format("{} arrays for {}", addresses.size(), launcher_->program().diagram.name),
                               fmt::format("{}", given_.size()));
    const InPrimaryContext here(device_);
    const std::uint64_t own = workspace != 0 ? workspace : own_.address();
    OfThread& slot = slot_of_thread(addresses);
    if (slot.kernel != number_ || !is_of(*slot.binding, addresses, strides, own)) {
        auto binding = bound(addresses, strides, own);
        if (!binding) return binding.errors();
        slot = {number_, std::move(*binding)};
    }
    const Binding& binding = *slot.binding;
    if (!binding.copied.empty()) return launch_by_copies(binding, *copy_, stream);
    for (const BoundLaunch& launch : binding.launches)
        if (const Status done = gpu::launch(launch, stream); !done) return done;
    return Done{};
}

}  // namespace napkin::gpu
