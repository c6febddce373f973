#pragma once
// Which machine's file describes a device, and whether code that is planned for a machine runs on one.
#include <string>
#include <vector>

#include "machine/machine.hpp"
#include "run/gpu/driver.hpp"
#include "support/result.hpp"

namespace napkin::gpu {

/// The first of the machines whose description begins with the name that the driver has for the device. Error:
/// unknown-machine (machine_lacks), with those that have its architecture at least.
Result<Machine> machine_of(const DeviceInfo& device, const std::vector<Machine>& machines);

/// Code for a machine runs on every device of its architecture. Returns a note where the driver has another name for
/// the device than the file, as predictions may then be for another GPU; else "". Error: other-gpu (machine_lacks).
Result<std::string> note_on_device(const DeviceInfo& device, const Machine& machine);

}  // namespace napkin::gpu
