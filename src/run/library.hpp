#pragma once
// A shared library that is opened at run time, so that building napkin needs none of it.
#include <string>
#include <vector>

namespace napkin {

/// Kept open until the process ends, unless it is closed before.
class SharedLibrary {
public:
    struct Function {
        void* address;
        template <class F>
        operator F*() const {
            return reinterpret_cast<F*>(address);
        }
    };

    /// The first of the names or paths that opens and, where functions are named, has all of them; others are closed
    /// again.
    explicit SharedLibrary(const std::vector<std::string>& candidates, const std::vector<const char*>& functions = {});
    [[nodiscard]] bool is_open() const { return handle_ != nullptr; }
    [[nodiscard]] const std::string& path() const { return path_; }
    /// The system's words for the first candidate; or what the last one lacked that opened.
    [[nodiscard]] const std::string& why_not() const { return why_not_; }
    /// The function of that name, for a pointer of its type; null where there is none.
    [[nodiscard]] Function function(const char* name) const { return {address(name)}; }
    /// Its functions may not be called from then on.
    void close();

private:
    [[nodiscard]] void* address(const char* name) const;
    void* handle_ = nullptr;
    std::string path_, why_not_;
};

}  // namespace napkin
