#include "run/gpu/device_machine.hpp"

#include <fmt/format.h>

#include "support/text.hpp"

namespace napkin::gpu {
namespace {

bool is_described_by(const DeviceInfo& device, const Machine& machine) {
    return machine.description.starts_with(device.name + " ");
}

}  // namespace

Result<Machine> machine_of(const DeviceInfo& device, const std::vector<Machine>& machines) {
    std::vector<std::string> known, alike;
    for (const Machine& machine : machines) {
        if (machine.kind != MachineKind::gpu) continue;
        if (is_described_by(device, machine)) return machine;
        known.push_back(machine.name);
        if (machine.architecture == device.architecture()) alike.push_back(machine.name);
    }
    return Diagnostic{
        .code = "unknown-machine",
        .message = fmt::format("the GPU at hand is {} ({}), which no machine's file describes", device.name,
                               device.architecture()),
        .expected = "a GPU that one of these describes: " + join(known, ", "),
        .hint = alike.empty()
                    ? fmt::format("--machine FILE.toml takes a description of your own, with architecture = \"{}\"",
                                  device.architecture())
                    : fmt::format("code for a machine of its architecture runs on it: --machine {}",
                                  join(alike, " or --machine ")),
        .exit_code = ExitCode::machine_lacks};
}

Result<std::string> note_on_device(const DeviceInfo& device, const Machine& machine) {
    if (is_described_by(device, machine)) return std::string();
    if (machine.architecture == device.architecture())
        return fmt::format("the kernel is planned for {}, and runs on {}: its times may differ from the predicted ones",
                           machine.description, device.name);
    return Diagnostic{.code = "other-gpu",
                      .message = fmt::format("the kernel is planned for {}, and the GPU at hand is {} ({})",
                                             machine.description, device.name, device.architecture()),
                      .expected = fmt::format(
                          "--machine gpu, which is the one at hand, or a machine whose file says architecture = \"{}\"",
                          device.architecture()),
                      .exit_code = ExitCode::machine_lacks};
}

}  // namespace napkin::gpu
