// Where CUDA's libraries are looked for.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "run/gpu/cuda_library.hpp"
#include "support/files.hpp"

namespace napkin {
namespace {

TEST(CudaLibrary, IsLookedForBesideTheOwnPackage) {
    const auto packages = std::filesystem::path(own_file()).parent_path().parent_path();
    EXPECT_THAT(gpu::cuda_library_paths("NO_VARIABLE", {"liba.so"}, {"nvidia/a/lib"}),
                testing::Contains((packages / "nvidia/a/lib/liba.so").string()));
    EXPECT_FALSE(own_identity().empty());
}

}  // namespace
}  // namespace napkin
