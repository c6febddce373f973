#include "run/process.hpp"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>

namespace napkin {

ProcessResult run_process(const std::vector<std::string>& command) {
    ProcessResult result;
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) {
        result.why_not = errno;
        return result;
    }

    std::vector<char*> arguments;
    for (const std::string& word : command) arguments.push_back(const_cast<char*>(word.c_str()));
    arguments.push_back(nullptr);
    std::string english = "LC_ALL=C";
    std::vector<char*> environment;
    for (char** entry = environ; *entry != nullptr; ++entry) {
        if (!std::string_view(*entry).starts_with("LC_ALL=")) environment.push_back(*entry);
    }
    environment.push_back(english.data());
    environment.push_back(nullptr);

    posix_spawn_file_actions_t actions;
    ::posix_spawn_file_actions_init(&actions);
    ::posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    ::posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
    ::posix_spawn_file_actions_adddup2(&actions, ends[1], STDERR_FILENO);
    pid_t child = 0;
    const int failure = ::posix_spawn(&child, command[0].c_str(), &actions, nullptr, arguments.data(), environment.data());
    ::posix_spawn_file_actions_destroy(&actions);
    ::close(ends[1]);
    result.started = failure == 0;
    result.why_not = failure;
    if (result.started) {
        char buffer[4096];
        for (;;) {
            const ssize_t n = ::read(ends[0], buffer, sizeof buffer);
            if (n < 0 && errno == EINTR) continue;
            if (n <= 0) break;
            if (result.output.size() < (std::size_t{1} << 20))
                result.output.append(buffer, static_cast<std::size_t>(n));
        }
        int status = 0;
        pid_t waited = 0;
        while ((waited = ::waitpid(child, &status, 0)) < 0 && errno == EINTR) {
        }
        if (waited != child) {
            result.exit_code = 0;  // the host ignores its children's ends; the caller sees by the outcome
        } else if (WIFSIGNALED(status)) {
            result.signal = WTERMSIG(status);
        } else {
            result.exit_code = WEXITSTATUS(status);
        }
    }
    ::close(ends[0]);
    return result;
}

}  // namespace napkin
