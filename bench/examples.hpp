#pragma once
// The examples as the benchmarks take them.
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

namespace napkin {

/// f(name, text) for every program in the folder of examples.
template <class F>
void for_each_example(const std::filesystem::path& folder, F f) {
    for (const auto& entry : std::filesystem::directory_iterator(folder)) {
        if (entry.path().extension() != ".nk") continue;
        std::stringstream text;
        text << std::ifstream(entry.path()).rdbuf();
        f(entry.path().stem().string(), text.str());
    }
}

}  // namespace napkin
