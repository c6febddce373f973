#include "run/gpu/library.hpp"

#include <dlfcn.h>

namespace napkin::gpu {

Library::Library(const std::vector<std::string>& candidates) {
    for (const std::string& name : candidates) {
        handle_ = ::dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
        if (handle_ != nullptr) {
            path_ = name;
            return;
        }
        if (why_not_.empty()) why_not_ = ::dlerror();
    }
}

void* Library::address(const char* name) const { return handle_ == nullptr ? nullptr : ::dlsym(handle_, name); }

}  // namespace napkin::gpu
