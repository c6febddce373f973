#pragma once
// Room for deep recursion, whatever stack this process was started with.
#include <functional>
#include <optional>
#include <type_traits>

#include "support/result.hpp"

namespace napkin {

/// Calls f on this thread where its stack has room enough, else on one of its own; what f throws comes out. Error:
/// no-thread (machine_lacks).
Status with_enough_stack(const std::function<void()>& f);

/// The same for an f with a Result of its own, which the error joins.
template <class F>
std::invoke_result_t<F> on_enough_stack(const F& f) {
    std::optional<std::invoke_result_t<F>> out;
    if (const Status called = with_enough_stack([&] { out.emplace(f()); }); !called) return called.errors();
    return std::move(*out);
}

/// Gives threads that others start in this process, such as a library's, as much stack as those of threads.hpp have.
void give_all_threads_enough_stack();

}  // namespace napkin
