#include "export/runtime_texts.hpp"

namespace napkin {

std::string_view shared_runtime() {
    return
#include "export/runtime_shared.inc"
        ;
}
std::string_view gpu_runtime() {
    return
#include "export/runtime_gpu.inc"
        ;
}
std::string_view cpu_runtime() {
    return
#include "export/runtime_cpu.inc"
        ;
}

}  // namespace napkin
