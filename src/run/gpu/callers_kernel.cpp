#include "run/gpu/callers_kernel.hpp"

#include <fmt/format.h>

#include "support/ids.hpp"
#include "support/ranges.hpp"
#include "support/saturate.hpp"

namespace napkin::gpu {
namespace {

/// Tuples of addresses whose launches are kept: programs that take turns between a few buffers encode nothing anew.
constexpr std::size_t most_recent = 16;

std::int64_t to_workspace_alignment(std::int64_t bytes) { return round_up(bytes, workspace_alignment); }

Diagnostic fault_of_arrays(const char* code, std::string message, std::string expected) {
    return Diagnostic{.code = code, .message = std::move(message), .expected = std::move(expected)};
}

}  // namespace

CallersKernel::CallersKernel(std::shared_ptr<const Launcher> launcher) : launcher_(std::move(launcher)) {
    const Diagram& diagram = launcher_->program().diagram;
    given_ = diagram.inputs;
    append(given_, diagram.outputs);
    for (const ArrayId array : launcher_->between()) {
        offsets_.push_back(workspace_bytes_);
        workspace_bytes_ += to_workspace_alignment(launcher_->bytes_of(array));
    }
    scratch_offset_ = workspace_bytes_;
    workspace_bytes_ += to_workspace_alignment(launcher_->scratch_bytes());
}

CallersKernel::~CallersKernel() {
    // Memory and code are given back where they were taken.
    const InPrimaryContext here;
    own_ = DeviceMemory();
    recent_.clear();
    launcher_.reset();
}

Result<std::shared_ptr<const CallersKernel>> CallersKernel::load(const SizedProgram& program,
                                                                 const cuda::CudaSource& source, bool has_workspace) {
    const auto found = gpu::device();
    if (!found) return found.errors();
    const InPrimaryContext here;
    auto cubin = compiled(source, found->architecture());
    if (!cubin) return cubin.errors();
    auto launcher = Launcher::load(program, source, std::move(*cubin));
    if (!launcher) return launcher.errors();
    std::shared_ptr<CallersKernel> kernel(new CallersKernel(std::move(*launcher)));
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

std::vector<Diagnostic> CallersKernel::faults(std::span<const std::uint64_t> addresses, std::uint64_t workspace) const {
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
        else if (addresses[i] % array_alignment != 0)
            out.push_back(fault_of_arrays("view-alignment", fmt::format("{} begins at {:#x}", name(i), addresses[i]),
                                          fmt::format("a multiple of {} bytes", array_alignment)));
    }
    if (!out.empty()) return out;
    // What is written shares no memory with anything else.
    for (std::size_t i = diagram.inputs.size(); i < given_.size(); ++i)
        for (std::size_t j = 0; j < i; ++j) {
            const auto end = [&](std::size_t a) { return addresses[a] + bytes(a); };
            if (bytes(i) > 0 && bytes(j) > 0 && addresses[i] < end(j) && addresses[j] < end(i))
                out.push_back(fault_of_arrays("view-overlap", fmt::format("{} and {} overlap", name(j), name(i)),
                                              "memory of its own for every output"));
        }
    return out;
}

Result<std::shared_ptr<const CallersKernel::Binding>> CallersKernel::bind(std::span<const std::uint64_t> addresses,
                                                                          std::uint64_t workspace) const {
    if (auto wrong = faults(addresses, workspace); !wrong.empty()) return wrong;
    std::vector<std::uint64_t> places(launcher_->program().diagram.arrays.size());
    for (std::size_t i = 0; i < given_.size(); ++i) places[at(given_[i])] = addresses[i];
    for (std::size_t i = 0; i < offsets_.size(); ++i)
        places[at(launcher_->between()[i])] = workspace + static_cast<std::uint64_t>(offsets_[i]);
    auto launches = launcher_->bind(places, workspace + static_cast<std::uint64_t>(scratch_offset_));
    if (!launches) return launches.errors();
    auto binding = std::make_shared<Binding>();
    binding->addresses.assign(addresses.begin(), addresses.end());
    binding->workspace = workspace;
    binding->launches = std::move(*launches);
    return std::shared_ptr<const Binding>(std::move(binding));
}

Result<std::shared_ptr<const CallersKernel::Binding>> CallersKernel::bound(std::span<const std::uint64_t> addresses,
                                                                           std::uint64_t workspace) const {
    const std::lock_guard lock(mutex_);
    for (const auto& binding : recent_)
        if (binding->workspace == workspace && std::ranges::equal(binding->addresses, addresses)) return binding;
    auto made = bind(addresses, workspace);
    if (!made) return made;
    if (recent_.size() < most_recent)
        recent_.push_back(*made);
    else
        recent_[std::exchange(oldest_, (oldest_ + 1) % most_recent)] = *made;
    return made;
}

Status CallersKernel::launch(std::span<const std::uint64_t> addresses, std::uint64_t workspace, Stream stream) const {
    if (addresses.size() != given_.size())
        return fault_of_arrays("view-count",
                               fmt::format("{} arrays for {}", addresses.size(), launcher_->program().diagram.name),
                               fmt::format("{}", given_.size()));
    const InPrimaryContext here;
    const auto binding = bound(addresses, workspace != 0 ? workspace : own_.address());
    if (!binding) return binding.errors();
    for (const BoundLaunch& launch : (*binding)->launches)
        if (const Status done = gpu::launch(launch, stream); !done) return done;
    return Done{};
}

}  // namespace napkin::gpu
