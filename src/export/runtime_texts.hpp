#pragma once
// What exported code brings with it: checks of arrays, a GPU's driver, a CPU's threads.
#include <string_view>

namespace napkin {

std::string_view shared_runtime();
std::string_view gpu_runtime();
std::string_view cpu_runtime();

}  // namespace napkin
