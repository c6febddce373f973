#pragma once
// Running another program and taking what it says.
#include <string>
#include <vector>

namespace napkin {

struct ProcessResult {
    bool started = false;
    int why_not = 0;     ///< when it did not start: an error number
    int exit_code = -1;  ///< when it ended by itself
    int signal = 0;      ///< when a signal ended it
    std::string output;  ///< stdout and stderr, in the order written
    [[nodiscard]] bool ok() const { return started && exit_code == 0 && signal == 0; }
};

/// Runs command[0] (a path) without a shell, with an empty stdin and messages in English, and waits for it.
ProcessResult run_process(const std::vector<std::string>& command);

}  // namespace napkin
