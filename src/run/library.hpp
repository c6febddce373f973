#pragma once
// A shared library that is opened at run time, so that building napkin needs none of it.
#include <string>
#include <vector>

namespace napkin::gpu {

/// Opened once and kept until the process ends.
class Library {
public:
    /// The first of the names or paths that opens.
    explicit Library(const std::vector<std::string>& candidates);
    [[nodiscard]] bool is_open() const { return handle_ != nullptr; }
    [[nodiscard]] const std::string& path() const { return path_; }
    [[nodiscard]] const std::string& why_not() const {
        return why_not_;
    }  ///< the system's words for the first candidate
    /// The function of that name, null where there is none.
    template <class Function>
    [[nodiscard]] Function function(const char* name) const {
        return reinterpret_cast<Function>(address(name));
    }

private:
    [[nodiscard]] void* address(const char* name) const;
    void* handle_ = nullptr;
    std::string path_, why_not_;
};

}  // namespace napkin::gpu
