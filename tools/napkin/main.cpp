// The command line: `napkin COMMAND …`, as a program.
#include <fcntl.h>
#include <algorithm>
#include <iostream>

#include "napkin/command.hpp"
#include "support/stack.hpp"

namespace {

/// A standard stream that is closed would give its number to the next file that is opened, and what is printed would go
/// there.
void occupy_standard_streams() {
    for (int number = 0; number <= 2; ++number)
        if (::fcntl(number, F_GETFD) < 0) ::open("/dev/null", O_RDONLY);
}

}  // namespace

int main(int argc, char** argv) {
    std::ios::sync_with_stdio(false);
    occupy_standard_streams();
    napkin::give_all_threads_enough_stack();
    int code = napkin::cli::internal_fault;
    const napkin::Status called = napkin::with_enough_stack([&] { code = napkin::cli::run_command(argc, argv); });
    if (called) return code;
    napkin::cli::say(napkin::render(called.errors()));
    return static_cast<int>(napkin::ExitCode::machine_lacks);
}
