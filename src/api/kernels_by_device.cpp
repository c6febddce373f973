#include "api/kernels_by_device.hpp"

#include <fmt/format.h>

#include <optional>

namespace napkin {

Result<std::unique_ptr<const KernelsByDevice>> KernelsByDevice::load(std::shared_ptr<const Compilation> planned,
                                                                     unsigned flags) {
    auto out = std::make_unique<KernelsByDevice>();
    out->planned_ = std::move(planned), out->flags_ = flags;
    if (const auto first = out->on(0); !first) return first.errors();
    // Whether the derivation is right does not depend on the device.
    out->flags_ |= NAPKIN_NOT_VALIDATED;
    return std::unique_ptr<const KernelsByDevice>(std::move(out));
}

Result<const LoadedKernel*> KernelsByDevice::on(int device) const {
    const bool on_gpu = planned_->machine.kind == MachineKind::gpu;
    if (device != 0 && (!on_gpu || device < 0 || device >= gpu::num_devices()))
        return Diagnostic{.code = "view-device",
                          .message = fmt::format("arrays lie on device {} in DLPack's numbers", device),
                          .expected = "memory of a device that there is"};
    const auto number = static_cast<std::size_t>(device);
    if (const LoadedKernel* found = kernels_[number].load(std::memory_order_acquire)) return found;
    const std::lock_guard one_at_a_time(loading_);
    if (const LoadedKernel* found = kernels_[number].load(std::memory_order_acquire)) return found;
    std::optional<gpu::KeepsContext> callers;
    if (on_gpu) callers.emplace();
    auto loaded = LoadedKernel::load(*planned_, flags_, device);
    if (!loaded) return loaded.errors();
    owned_[number] = std::move(*loaded);
    kernels_[number].store(owned_[number].get(), std::memory_order_release);
    return owned_[number].get();
}

Result<const LoadedKernel*> KernelsByDevice::at(std::span<void* const> addresses) const {
    if (planned_->machine.kind == MachineKind::gpu)
        for (const void* const address : addresses)
            if (address != nullptr) return on(gpu::device_of(reinterpret_cast<std::uintptr_t>(address)));
    return on(0);
}

}  // namespace napkin
