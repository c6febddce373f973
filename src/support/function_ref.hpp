#pragma once
// A function that is passed down and not kept: no copy of what it captures is made, and no memory taken for one.
#include <concepts>
#include <memory>
#include <type_traits>
#include <utility>

namespace napkin {

template <class Signature>
class FunctionRef;

/// Pre: what it refers to lives for as long as it is called.
template <class R, class... Arguments>
class FunctionRef<R(Arguments...)> {
public:
    template <class F>
        requires(!std::same_as<std::remove_cvref_t<F>, FunctionRef> && std::is_invocable_r_v<R, const F&, Arguments...>)
    FunctionRef(const F& f)
        : function_(std::addressof(f)), call_([](const void* function, Arguments... arguments) -> R {
              return (*static_cast<const F*>(function))(std::forward<Arguments>(arguments)...);
          }) {}
    R operator()(Arguments... arguments) const { return call_(function_, std::forward<Arguments>(arguments)...); }

private:
    const void* function_;
    R (*call_)(const void*, Arguments...);
};

}  // namespace napkin
