#pragma once
// Threads whose stack does not depend on the limits that this process was started with.
#include <pthread.h>

#include <cstddef>
#include <functional>
#include <memory>
#include <string>

#include "support/source.hpp"

namespace napkin {

/// Stack of every thread that is started here. Texts at the limits of limits.hpp take less than an eighth of it
/// (tests/text/test_small_limits.cpp).
inline constexpr std::size_t stack_bytes = std::size_t{16} << 20U;

/// A thread that is waited for at the end of its life.
class Thread {
public:
    Thread() = default;
    Thread(const Thread&) = delete;
    Thread& operator=(const Thread&) = delete;
    Thread(Thread&&) noexcept = default;
    Thread& operator=(Thread&&) = delete;
    ~Thread();

    /// Once. 0, or the error number that says why the system gives no thread. The work throws nothing.
    int start(std::function<void()> work);

private:
    std::unique_ptr<std::function<void()>> work_;  ///< null: there is no thread
    pthread_t id_{};
};

/// What is said where the system gives no thread or process: `what`, the reason, and which limit it may be. The machine
/// lacks it.
Diagnostic no_resource(const std::string& code, const std::string& what, int error_number);

}  // namespace napkin
