#include "support/pieces.hpp"

#include <fmt/format.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <new>
#include <stdexcept>
#include <thread>
#include <tuple>

namespace napkin::campaign {
namespace {

using Clock = std::chrono::steady_clock;

/// In memory that a process shares with the one that started it.
struct Said {
    std::uint64_t seed, programs, kernels;
};

class InProcess : public Piece {
public:
    InProcess(Said& said, std::FILE* failures) : said_(said), failures_(failures) {}
    void begins(std::uint64_t seed) override { said_.seed = seed; }
    void done(std::uint64_t programs, std::uint64_t kernels) override {
        said_.programs += programs;
        said_.kernels += kernels;
    }
    void failed(const Failure& failure) override {
        fmt::print(failures_, "{} {}\n{}", failure.seed, failure.what.size(), failure.what);
        std::fflush(failures_);
    }

private:
    Said& said_;
    std::FILE* failures_;
};

struct Running {
    pid_t process = 0;  ///< 0: none
    std::uint64_t first = 0, last = 0, seen = 0;
    Said* said = nullptr;
    std::FILE* failures = nullptr;
    Clock::time_point since;
};

std::vector<Failure> read_failures(std::FILE* file) {
    std::vector<Failure> found;
    std::rewind(file);
    unsigned long long seed = 0, size = 0;
    while (std::fscanf(file, "%llu %llu", &seed, &size) == 2) {
        std::fgetc(file);
        std::string what(size, '\0');
        what.resize(std::fread(what.data(), 1, size, file));
        found.push_back({seed, std::move(what)});
    }
    return found;
}

}  // namespace

Outcome run(const Spread& spread, const std::function<void(std::uint64_t, std::uint64_t, Piece&)>& work) {
    Outcome outcome;
    std::uint64_t next = spread.first;
    std::vector<Running> slots(static_cast<std::size_t>(std::max(1, spread.jobs)));
    std::vector<std::pair<std::uint64_t, std::uint64_t>> again;  // what a process that died left undone
    const auto start = [&](Running& slot) {
        if (!again.empty()) {
            std::tie(slot.first, slot.last) = again.back();
            again.pop_back();
        } else if (next < spread.last) {
            slot.first = next;
            slot.last = next = std::min(next + spread.seeds_a_piece, spread.last);
        } else {
            return;
        }
        slot.said = static_cast<Said*>(
            mmap(nullptr, sizeof(Said), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
        slot.failures = std::tmpfile();
        if (slot.said == MAP_FAILED || !slot.failures)
            throw std::runtime_error("no memory or no room for temporary files");
        *slot.said = {slot.first, 0, 0};
        slot.seen = slot.first;
        slot.since = Clock::now();
        std::fflush(nullptr);
        slot.process = fork();
        if (slot.process < 0) throw std::runtime_error(std::strerror(errno));
        if (slot.process > 0) return;
        InProcess piece(*slot.said, slot.failures);
        work(slot.first, slot.last, piece);
        std::_Exit(0);
    };
    const auto report = [&](const Failure& failure) {
        fmt::print("seed {}: {}\n", failure.seed, failure.what);
        std::fflush(stdout);
        outcome.failed.push_back(failure.seed);
    };
    const auto finish = [&](Running& slot, const std::string& died) {
        for (const Failure& failure : read_failures(slot.failures)) report(failure);
        if (!died.empty()) {
            report({slot.said->seed, died});
            if (slot.said->seed + 1 < slot.last) again.emplace_back(slot.said->seed + 1, slot.last);
        }
        outcome.programs += slot.said->programs;
        outcome.kernels += slot.said->kernels;
        std::fclose(slot.failures);
        munmap(slot.said, sizeof(Said));
        slot = {};
    };
    for (bool is_busy = true; is_busy;) {
        is_busy = false;
        for (Running& slot : slots) {
            if (slot.process == 0) start(slot);
            if (slot.process == 0) continue;
            is_busy = true;
            int status = 0;
            if (waitpid(slot.process, &status, WNOHANG) == slot.process) {
                finish(slot, WIFEXITED(status) && WEXITSTATUS(status) == 0 ? ""
                             : WIFSIGNALED(status)
                                 ? fmt::format("its process died of signal {}", WTERMSIG(status))
                                 : fmt::format("its process ended with exit code {}", WEXITSTATUS(status)));
                continue;
            }
            if (slot.said->seed != slot.seen) slot.seen = slot.said->seed, slot.since = Clock::now();
            if (Clock::now() - slot.since < std::chrono::seconds(spread.seconds_a_seed)) continue;
            kill(slot.process, SIGKILL);
            waitpid(slot.process, &status, 0);
            finish(slot, fmt::format("its process took more than {} s", spread.seconds_a_seed));
        }
        if (is_busy) std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
    std::sort(outcome.failed.begin(), outcome.failed.end());
    return outcome;
}

}  // namespace napkin::campaign
