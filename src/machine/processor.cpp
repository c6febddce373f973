#include "machine/processor.hpp"

#include <sys/utsname.h>

#include <sstream>

#include "support/files.hpp"

namespace napkin {

std::string processor_identity() {
    utsname system{};
    ::uname(&system);
    std::string identity = system.machine;
    // The lines of the first processor that decide what -march=native means.
    std::istringstream lines(read_file("/proc/cpuinfo").value_or(""));
    std::string line;
    while (std::getline(lines, line) && !line.empty()) {
        for (const char* key : {"vendor_id", "cpu family", "model", "stepping", "flags", "CPU implementer",
                                "CPU architecture", "CPU variant", "CPU part", "Features", "isa"}) {
            if (line.starts_with(key)) identity += "\n" + line;
        }
    }
    return identity;
}

}  // namespace napkin
