#pragma once
// The examples as the benchmarks take them.
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

namespace napkin {

/// f(name, text) for every file of examples/.
template <class F>
void for_each_example(F f) {
    for (const auto& entry : std::filesystem::directory_iterator(NAPKIN_SOURCE_DIR "/examples")) {
        if (entry.path().extension() != ".nk") continue;
        std::stringstream text;
        text << std::ifstream(entry.path()).rdbuf();
        f(entry.path().stem().string(), text.str());
    }
}

}  // namespace napkin
