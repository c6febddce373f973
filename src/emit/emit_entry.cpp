#include "emit/emit_entry.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace napkin::writers {
namespace {

void begin_on_cpu(Lines& out, const std::string& entry) {
    out.open(
        fmt::format("extern \"C\" void {}(const void* const* inputs, void* const* outputs, const int64_t* strides,\n"
                    "        int64_t first_group, int64_t last_group, void* arena)",
                    entry));
    out("[[maybe_unused]] const FlushToZero flush_to_zero;");
}

/// Blocks of warps take the groups one after the other, or one each. The assembler leaves each of the blocks that share
/// an SM its part of the registers. Roles share that part among them. So the assembler must know it even where a block
/// has the SM for itself.
void begin_on_gpu(const Frame& frame, Lines& out, const std::string& entry) {
    const int blocks = frame.on_tensor_cores() && !frame.producer_role() ? 0 : frame.unit.blocks_a_core;
    out.open(fmt::format("extern \"C\" __global__ void {}__launch_bounds__({}{}) {}({})",
                         frame.in_cluster() ? fmt::format("__cluster_dims__({}, 1, 1) ", frame.cluster_blocks()) : "",
                         frame.num_threads(), blocks > 1 || frame.producer_role() ? fmt::format(", {}", blocks) : "",
                         entry, parameters_on_gpu(frame)));
    out(fmt::format("block_has({}, {});", frame.threads_a_row(), frame.num_threads() / frame.threads_a_row()));
    declare_arguments(out);
    if (frame.arena_in_core()) {
        out(fmt::format("extern __shared__ __align__({}) char shared_memory[];",
                        frame.on_tensor_cores() ? operand_alignment : 16));
        out("void* const arena = shared_memory;");
    } else {
        out(fmt::format("void* const arena = scratch + blockIdx.x * {}ll;", round_up(frame.arena_bytes(), 256)));
    }
}

}  // namespace

std::string parameters_on_gpu(const Frame& frame) {
    // C++ has no arrays without elements.
    const auto count = [](std::size_t n) { return std::max<std::size_t>(n, 1); };
    std::size_t strides = 0;
    for (const auto* arrays : {&frame.inputs, &frame.outputs})
        for (const ArrayId a : *arrays) strides += frame.diagram().array(a).axes.size();
    strides += frame.numbers->all().size();
    return fmt::format("\n        const __grid_constant__ Arguments<{}, {}, {}> arguments, char* scratch{}",
                       count(frame.inputs.size()), count(frame.outputs.size()), count(strides),
                       frame.on_tensor_cores() && frame.has_bulk_copies()
                           ? fmt::format(", const __grid_constant__ TensorMaps<{}> maps",
                                         operands_of(frame).size() + staged_out(frame).size())
                           : "");
}

void declare_arguments(Lines& out) {
    out.declare("const void* const* const", "inputs", "arguments.inputs");
    out.declare("void* const* const", "outputs", "arguments.outputs");
    out.declare("const int64_t* const", "strides", "arguments.strides");
}

void write_entry(const Frame& frame, Lines& out, const std::string& entry) {
    frame.in_blocks() ? begin_on_gpu(frame, out, entry) : begin_on_cpu(out, entry);
}

}  // namespace napkin::writers
