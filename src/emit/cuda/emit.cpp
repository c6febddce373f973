#include "emit/cuda/emit.hpp"

#include <fmt/format.h>

#include "emit/cuda/prelude.hpp"
#include "emit/emit_fragment.hpp"
#include "emit/emit_k_block_ranges.hpp"
#include "emit/emit_kernel.hpp"
#include "lower/lower.hpp"
#include "support/ranges.hpp"
#include "support/result.hpp"
#include "support/saturate.hpp"

namespace napkin::cuda {
namespace {

/// The most values of tiles that a pass before the kernel reads for one range of K blocks.
std::int64_t most_gathered(const lower::KernelProgram& program) {
    const ScheduledKernel& kernel = *program.kernel;
    std::int64_t most = 0;
    for (const LoopId l : kernel.loops.ids())
        if (const auto& ranges = program.shapes.loops[l].ranges)
            for (const MaskForm& form : ranges->forms)
                for (const Expr& e : {form.plus, form.minus}) {
                    std::int64_t values = 1;
                    for (const AxisId axis : e ? free_axes(e) : std::vector<AxisId>{})
                        values = saturating_mul(values, kernel.span(axis, kernel.loops[l].scope).tile);
                    most = std::max(most, values);
                }
    return most;
}

/// Whether some array, the groups, or the coordinates of an axis are too many for 32 bits. Loops count up to a tile
/// past the end.
bool needs_wide_index(const lower::KernelProgram& program) {
    const ScheduledKernel& kernel = *program.kernel;
    constexpr std::int64_t most = (std::int64_t{1} << 31) - 1;
    const auto is_long = [&](ArrayId id) {
        std::int64_t values = 1;
        for (const AxisId axis : kernel.program->diagram.array(id).axes)
            values = saturating_mul(values, kernel.extent(axis));
        return values > most;
    };
    return kernel.num_groups() > most / 2 || kernel.arena_values > most / 2 || most_gathered(program) > most / 2 ||
           any_of(kernel.inputs, is_long) || any_of(kernel.outputs, is_long) ||
           any_of(kernel.extents, [](std::int64_t extent) { return extent > most / 2; });
}

std::vector<TensorMap> tensor_maps(const lower::KernelProgram& program) {
    const ScheduledKernel& kernel = *program.kernel;
    std::vector<TensorMap> maps;
    if (!kernel.has_bulk_copies()) return maps;
    for (const VariableId v : writers::operands_of(kernel)) {
        const OperandTile tile = *program.shapes.variables[v].tile;
        TensorMap map{kernel.variable(v).array, std::vector<std::int64_t>(source_of(kernel, v).size(), 1)};
        const auto part = program.shapes.variables[v].part;
        if (const auto& window = program.shapes.variables[v].window) {
            map.box.front() = part ? part->rows : tile.rows, map.box.back() = tile.width;
            auto& to = map.windows.emplace();
            for (const WindowDimension& d : window->dims)
                to.lower.push_back(d.lower), to.upper.push_back(d.upper), to.stride.push_back(d.stride);
            maps.push_back(std::move(map));
            continue;
        }
        // Rows that are copied one by one take no map, but those behind it have their numbers.
        if (!tile.is_of_single_rows)
            map.box[at(array_dimension(kernel, v, tile.outer))] = part ? part->rows : tile.rows;
        map.box[at(array_dimension(kernel, v, tile.inner))] = tile.width;
        maps.push_back(std::move(map));
    }
    for (const VariableId v : writers::staged_out(kernel)) {
        const StagingTiles boxes = *program.shapes.variables[v].staging;
        TensorMap map{kernel.variable(v).array, std::vector<std::int64_t>(kernel.variable(v).dims.size(), 1)};
        map.box[at(boxes.rows)] = kernel.fragments().rows;
        map.box[at(boxes.columns)] = boxes.width;
        maps.push_back(std::move(map));
    }
    return maps;
}

}  // namespace

CudaSource emit(const ScheduledProgram& program, const std::string& prefix) {
    return emit(lower::lowered(program), prefix);
}

CudaSource emit(const lower::LoweredProgram& program, const std::string& prefix) {
    CudaSource out;
    for (const lower::KernelProgram& lowered : program.kernels) {
        const ScheduledKernel& kernel = *lowered.kernel;
        internal_check(kernel.in_blocks(), "emit: a kernel for a GPU has no warps");
        const std::string entry = fmt::format("{}{}", prefix, out.entries.size());
        if (!out.entries.empty()) out.text += "\n";
        writers::KernelText kernel_text = writers::kernel_text(lowered, entry, prelude_text());
        out.text += kernel_text.text;
        out.wide_index |= needs_wide_index(lowered);
        const lower::LaunchFormulas& launch = kernel_text.launch;
        const auto value = [&](const Expr& formula) { return lower::whole_value(formula, kernel.extents); };
        internal_check(value(launch.blocks) == kernel.num_blocks(),
                       "emit: a formula of CTAs differs from their number");
        const std::int64_t row = kernel.threads_a_row();
        out.entries.push_back({entry, kernel.inputs, kernel.outputs, kernel.packed, kernel.dense, kernel.in_rows,
                               value(launch.groups), value(launch.blocks), static_cast<int>(row),
                               static_cast<int>(kernel.num_threads() / row), kernel.cluster_blocks(),
                               kernel.arena_in_core() ? kernel.arena_bytes() : 0, tensor_maps(lowered),
                               value(launch.scratch_bytes), kernel.is_dynamic() || lowered.shapes.stream_k});
        out.entries.back().numbers = lower::numbers_at(launch, kernel.extents);
        if (launch.before_blocks)
            out.entries.back().before = {writers::ranges_entry(entry), value(launch.before_blocks), writers::ranges_threads};
        out.entries.back().formulas = launch;
    }
    return out;
}

std::string complete(const CudaSource& source) {
    return fmt::format("#define NAPKIN_WIDE_INDEX {}\n", source.wide_index ? 1 : 0) + std::string(prelude_text()) +
           "\n" + source.text;
}

}  // namespace napkin::cuda
