#include "run/gpu/cuda_library.hpp"
#include "support/files.hpp"
#include "support/ranges.hpp"

#include <cstdlib>
#include <filesystem>

namespace napkin::gpu {

namespace fs = std::filesystem;

std::vector<std::string> cuda_library_paths(const char* variable, const std::vector<std::string>& names,
                                            const std::vector<std::string>& wheels) {
    std::vector<std::string> out;
    if (const char* own = std::getenv(variable); own != nullptr && *own != '\0') out.emplace_back(own);
    append(out, names);
    std::vector<std::string> folders{"/usr/local/cuda/lib64", "/usr/local/cuda/targets/x86_64-linux/lib"};
    if (const char* cuda = std::getenv("CUDA_HOME"); cuda != nullptr)
        folders.insert(folders.begin(), std::string(cuda) + "/lib64");
    // The Python package stands beside other wheels.
    for (const std::string& wheel : wheels)
        folders.push_back((fs::path(own_file()).parent_path().parent_path() / wheel).string());
    std::error_code ignored;
    std::vector<std::string> roots{"/usr/lib/python3/dist-packages"};
    if (const char* environment = std::getenv("VIRTUAL_ENV"); environment != nullptr)
        roots.push_back(std::string(environment) + "/lib");
    if (const char* home = std::getenv("HOME"); home != nullptr) roots.push_back(std::string(home) + "/.local/lib");
    roots.emplace_back("/usr/local/lib");
    for (const std::string& root : roots)
        for (const auto& python : fs::directory_iterator(root, fs::directory_options::skip_permission_denied, ignored))
            if (python.path().filename().string().starts_with("python3"))
                for (const char* packages : {"site-packages", "dist-packages"})
                    for (const std::string& wheel : wheels)
                        folders.push_back((python.path() / packages / wheel).string());
    for (const std::string& folder : folders)
        for (const std::string& name : names) out.push_back(folder + "/" + name);
    return out;
}

}  // namespace napkin::gpu
