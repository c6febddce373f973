#include "run/library.hpp"
#include "support/ranges.hpp"

#include <dlfcn.h>

#include <utility>

namespace napkin {

SharedLibrary::SharedLibrary(const std::vector<std::string>& candidates, const std::vector<const char*>& functions) {
    for (const std::string& name : candidates) {
        handle_ = ::dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
        if (handle_ == nullptr) {
            if (why_not_.empty()) why_not_ = ::dlerror();
            continue;
        }
        const auto missing = find_if(functions, [&](const char* function) { return address(function) == nullptr; });
        if (missing == functions.end()) {
            path_ = name;
            return;
        }
        why_not_ = name + " lacks " + *missing;
        close();
    }
}

void SharedLibrary::close() {
    if (handle_ != nullptr) ::dlclose(std::exchange(handle_, nullptr));
}

void* SharedLibrary::address(const char* name) const { return handle_ == nullptr ? nullptr : ::dlsym(handle_, name); }

}  // namespace napkin
