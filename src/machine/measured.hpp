#pragma once
// The measured figures of the computer at hand, kept in the cache as a machine file from one process to the next.
#include "machine/machine.hpp"

namespace napkin {

/// "host", or "host-256" for code with vectors of so many bytes (here 32) where the processor has wider ones.
std::string host_name(int vector_bytes);
/// The machine that is meant where none is named: NAPKIN_MACHINE of the environment, a name or the path of a file, else
/// "host".
std::string default_machine();

/// The machine as it was measured: this processor, as many cores, as wide vectors. Where nothing was kept, the machine
/// as it is given.
Machine measured_host(Machine host);

/// Keeps a measured machine in place of the one kept before; gives the file's path. Errors: those of Cache.
Result<std::string> keep_measured(const Machine& measured);

}  // namespace napkin
