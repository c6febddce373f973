#include "emit/cpu/emit.hpp"

#include <fmt/format.h>

#include "emit/cpu/prelude.hpp"
#include "emit/emit_kernel.hpp"
#include "lower/lower.hpp"

namespace napkin::cpu {

CpuSource emit(const ScheduledProgram& program, const std::string& prefix) {
    return emit(lower::lowered(program), prefix);
}

CpuSource emit(const lower::LoweredProgram& program, const std::string& prefix) {
    CpuSource out;
    for (const lower::KernelProgram& lowered : program.kernels) {
        const ScheduledKernel& kernel = *lowered.kernel;
        const std::string entry = fmt::format("{}{}", prefix, out.entries.size());
        if (!out.entries.empty()) out.text += "\n";
        writers::KernelText kernel_text = writers::kernel_text(lowered, entry, prelude_text());
        out.text += kernel_text.text;
        out.vector_bytes = kernel.unit.bytes;
        const auto value = [&](const Expr& formula) { return lower::whole_value(formula, kernel.extents); };
        out.entries.push_back({entry, kernel.inputs, kernel.outputs, kernel.packed, kernel.dense,
                               value(kernel_text.launch.groups), kernel.arena_bytes(),
                               lower::numbers_at(kernel_text.launch, kernel.extents), kernel_text.launch});
    }
    return out;
}

std::string complete(const CpuSource& source) {
    return fmt::format("#define NAPKIN_VECTOR_BYTES {}\n", source.vector_bytes) + std::string(prelude_text()) + "\n" +
           source.text;
}

}  // namespace napkin::cpu
