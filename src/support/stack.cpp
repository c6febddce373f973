#include "support/stack.hpp"

#include <cstdint>
#include <exception>

#include "support/threads.hpp"

namespace napkin {
namespace {

/// The main thread's stack grows up to its limit, usually 8 MiB; other programs' threads may have as little as 64 KiB.
constexpr std::size_t enough_left = stack_bytes / 4;

/// The lowest address of this thread's stack; 0 where that is not known. The C library reads the main thread's from the
/// list of all mappings of the process, which takes a millisecond in a large one.
std::uintptr_t lowest_of_stack() {
    pthread_attr_t attributes;
    if (::pthread_getattr_np(::pthread_self(), &attributes) != 0) return 0;
    void* lowest = nullptr;
    std::size_t size = 0;
    const bool known = ::pthread_attr_getstack(&attributes, &lowest, &size) == 0;
    ::pthread_attr_destroy(&attributes);
    return known ? reinterpret_cast<std::uintptr_t>(lowest) : 0;
}

/// Bytes of this thread's stack below the caller's frame; 0 where that is not known.
std::size_t stack_left() {
    thread_local const std::uintptr_t lowest = lowest_of_stack();
    const auto here = reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0));
    return lowest != 0 && here > lowest ? here - lowest : 0;
}

}  // namespace

Status with_enough_stack(const std::function<void()>& f) {
    if (stack_left() >= enough_left) {
        f();
        return Done{};
    }
    std::exception_ptr thrown;
    int why = 0;
    {
        Thread thread;
        why = thread.start([&] {
            try {
                f();
            } catch (...) {
                thrown = std::current_exception();
            }
        });
    }
    if (thrown) std::rethrow_exception(thrown);
    if (why != 0)
        return no_resource("no-thread", "the stack is small, and a thread with a larger one cannot be started", why);
    return Done{};
}

void give_all_threads_enough_stack() {
#if defined(__GLIBC__)
    pthread_attr_t attributes;
    std::size_t size = 0;
    if (::pthread_getattr_default_np(&attributes) != 0) return;
    if (::pthread_attr_getstacksize(&attributes, &size) == 0 && size < stack_bytes &&
        ::pthread_attr_setstacksize(&attributes, stack_bytes) == 0)
        ::pthread_setattr_default_np(&attributes);
    ::pthread_attr_destroy(&attributes);
#endif
}

}  // namespace napkin
