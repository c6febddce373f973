#pragma once
// Where libraries of CUDA may lie that are opened at run time.
#include <string>
#include <vector>

namespace napkin::gpu {

/// Candidates in the order in which they are tried: what the environment variable names, the loader's own paths, CUDA's
/// folder, and the wheels of pip ("nvidia/cu13/lib"), beside Python's packages.
std::vector<std::string> cuda_library_paths(const char* variable, const std::vector<std::string>& names,
                                            const std::vector<std::string>& wheels);

}  // namespace napkin::gpu
