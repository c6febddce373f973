#pragma once
// Result<T>: a value, or the user errors that stand in its way. Internal faults throw InternalError instead.
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "support/source.hpp"

namespace napkin {

/// A fault of napkin itself, never of its input. The message says that it is internal.
class InternalError : public std::logic_error {
public:
    explicit InternalError(const std::string& what) : std::logic_error("internal error: " + what) {}
};

inline void internal_check(bool ok, const char* what) {
    if (!ok) throw InternalError(what);
}

template <class T>
class [[nodiscard]] Result {
public:
    Result(T value) : content_(std::move(value)) {}
    Result(Diagnostic error) : content_(std::vector<Diagnostic>{std::move(error)}) {}
    Result(std::vector<Diagnostic> errors) : content_(std::move(errors)) {
        internal_check(!std::get<1>(content_).empty(), "a failed result carries no diagnostic");
    }

    [[nodiscard]] bool ok() const { return content_.index() == 0; }
    explicit operator bool() const { return ok(); }

    T& value() & {
        internal_check(ok(), "value() of a failed result");
        return std::get<0>(content_);
    }
    const T& value() const& {
        internal_check(ok(), "value() of a failed result");
        return std::get<0>(content_);
    }
    T&& value() && {
        internal_check(ok(), "value() of a failed result");
        return std::get<0>(std::move(content_));
    }
    T& operator*() & { return value(); }
    const T& operator*() const& { return value(); }
    T* operator->() { return &value(); }
    const T* operator->() const { return &value(); }

    [[nodiscard]] const std::vector<Diagnostic>& errors() const { return std::get<1>(content_); }

private:
    std::variant<T, std::vector<Diagnostic>> content_;
};

/// A result that carries no value.
struct Done {
    friend bool operator==(Done, Done) { return true; }
};
using Status = Result<Done>;

}  // namespace napkin
