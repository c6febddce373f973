// Chooses how every variable is held: where it lies in memory, as a tile, as one panel of a tile, or as packed panels
// one after the other.
#include <numeric>

#include "machine/block_machine.hpp"
#include "plan/complete.hpp"
#include "schedule/accumulators.hpp"
#include "schedule/lane_registers.hpp"
#include "schedule/legality.hpp"
#include "schedule/thread_runs.hpp"
#include "support/ranges.hpp"

namespace napkin {
namespace {

/// How often code reads a value of the tile, at most `enough`: over the points of the statements that it does not
/// depend on.
std::int64_t reads_of_value(const ScheduledKernel& kernel, VariableId v, std::int64_t enough) {
    std::int64_t times = 0;
    for (const Step& step : kernel.steps) {
        const auto* compute = std::get_if<Compute>(step.statement);
        if (!compute) continue;
        for (const Read* r : step.reads) {
            if (r->variable() != v) continue;
            std::int64_t here = 1;
            const auto repeat = [&](AxisId a) {
                if (!carries(kernel.variable(v), a))
                    here = std::min(enough, here * std::min(enough, kernel.span(a, step.scope).tile));
            };
            for (const Index& dim : kernel.variable(compute->variable).dims) repeat(dim.single_axis());
            for (const AxisId a : compute->reduce_axes) repeat(a);
            times = std::min(enough, times + here);
        }
    }
    return times;
}

/// Values of the tile along a dimension.
std::int64_t span_along(const ScheduledKernel& kernel, VariableId id, std::size_t d) {
    std::int64_t span = 1;
    for (const AxisId axis : kernel.variable(id).dims[d].axes())
        span *= kernel.span(axis, kernel.layout(id).scope).tile;
    return span;
}

/// Whether the tile's rows, each on a page of its own, lie on more pages than a core translates without a TLB miss.
bool lies_on_many_pages(const ScheduledKernel& kernel, VariableId id) {
    // Entries of the first-level data TLB: 64 on Intel's cores from Nehalem to Skylake and on AMD's Zen 2 and 3, up to
    // 96 on later ones.
    constexpr std::int64_t translations = 64;
    const Variable& variable = kernel.variable(id);
    if (variable.dims.size() < 2) return false;
    std::int64_t rows = 1, stride = bytes(variable.memory_type);
    for (std::size_t d = variable.dims.size() - 1; d > 0; --d) {
        stride *= kernel.extent(variable.limits[d]);
        if (stride >= page_bytes) rows *= span_along(kernel, id, d - 1);
    }
    return rows > translations;
}

/// Whether the lines of a column of the tile fall into so few sets of the first cache that they do not stay there. In a
/// buffer without gaps they must fall into more sets.
bool crowds_sets(const ScheduledKernel& kernel, VariableId id) {
    // The address within a page gives the set, so that it is known before the page is translated. Intel's cores up to
    // Skylake and AMD's Zen to Zen 5 have at least 8 lines in each.
    constexpr std::int64_t lines_of_set = 8;
    const Variable& variable = kernel.variable(id);
    if (variable.dims.size() < 2) return false;
    const std::size_t last = variable.dims.size() - 1;
    const auto stay = [&](std::int64_t row_bytes) {
        const std::int64_t apart = std::max<std::int64_t>(std::gcd(row_bytes, page_bytes), kernel.unit.line_bytes);
        return lines_of_set * page_bytes / apart;
    };
    const std::int64_t of_value = bytes(variable.memory_type),
                       in_memory = stay(kernel.extent(variable.limits[last]) * of_value);
    return span_along(kernel, id, last - 1) > in_memory && stay(span_along(kernel, id, last) * of_value) > in_memory;
}

/// Whether the tile is better read in place than copied to a buffer without gaps. Along the vector axis a tile is a
/// narrow strip of memory, and it is better copied if it is read often. So is a tile whose rows lie on many pages or
/// crowd a few sets of the cache. The same holds for a tile whose last part lies past the array's end: a buffer that
/// stands in for that part, with the memory's strides, would be much larger.
bool is_better_in_place(ScheduledKernel& kernel, VariableId id) {
    for (const Step& step : kernel.steps)
        if (kernel.partials(step) > 0 && std::get<Compute>(*step.statement).variable == id) return false;
    if (is_read_across_runs(kernel, id)) return false;
    // What a warp of a block reads, another may read as well. It is then copied once for all of them, with neighbouring
    // threads on neighbouring values.
    const std::int64_t often = kernel.in_blocks() ? 2 : 4;
    const AxisId axis = kernel.schedule.vector_axis;
    const bool is_strip = axis >= 0 && carries(kernel.variable(id), axis);
    const bool is_awkward = is_strip || kernel.in_blocks() || lies_on_many_pages(kernel, id) || crowds_sets(kernel, id);
    if (is_awkward && reads_of_value(kernel, id, often) >= often) return false;
    Place& place = kernel.schedule.places[id];
    const Layout& layout = kernel.layout(id);
    shape(kernel, id);
    const std::int64_t copied = layout.count;
    place.holding = MemorySpace::global;
    shape(kernel, id);
    return !layout.may_overrun || layout.reach <= 2 * copied;
}

bool lies_in_runs(const ScheduledKernel& kernel, VariableId id) {
    return is_written_by_runs(kernel, id) || may_be_read_by_runs(kernel, id);
}

/// Registers that a thread keeps for addresses, counters and what it computes at a time. Estimated.
constexpr std::int64_t registers_beside_lanes = 14;

/// What fits registers goes there, instead of through shared memory. If tiles are too large, single values still do.
void choose_lanes(ScheduledKernel& kernel) {
    const ByVariable<bool> may = may_lie_in_lanes(kernel);
    const ByVariable<Place> before = kernel.schedule.places;
    const auto put = [&](bool with_wide) {
        for (const VariableId id : kernel.layouts.ids())
            if (may[id] && !kernel.place(id).by_user && (with_wide || lane_tile(kernel, id).axis < 0))
                kernel.schedule.places[id].holding = MemorySpace::lanes;
    };
    put(true);
    const double registers = kernel.unit.registers / share_of_registers;
    if (static_cast<double>(lane_registers(kernel) + registers_beside_lanes) <= registers) return;
    kernel.schedule.places = before;
    put(false);
}

}  // namespace

void choose_storage(ScheduledKernel& kernel) {
    const bool are_any_fused = any_of(kernel.schedule.atoms, [](const Atom& atom) { return atom.run >= 0; });
    const std::vector<bool> local = are_any_fused ? in_one_fusion(kernel) : std::vector<bool>(kernel.layouts.size());
    for (const VariableId id : kernel.layouts.ids()) {
        Place& place = kernel.schedule.places[id];
        if (place.by_user || place.holding == MemorySpace::registers || kernel.lies_as_operand(id)) continue;
        if (!kernel.schedule.is_batch_invariant && accumulating_step(kernel, id))
            place.holding = MemorySpace::accumulators;
        else if (may_be_view(kernel, id) && (kernel.on_tensor_cores() || kernel.facts(id).is_only_gathered ||
                                             lies_in_runs(kernel, id) || is_better_in_place(kernel, id)))
            place.holding = MemorySpace::global;
        else if (!kernel.in_blocks() && may_be_packed(kernel, id))
            place.holding = MemorySpace::packed_panel;
        else
            place.holding = kernel.schedule.vector_axis >= 0 && local[id] ? MemorySpace::register_panel
                                                                          : MemorySpace::buffer;
    }
    if (kernel.in_blocks() && !kernel.on_tensor_cores()) choose_lanes(kernel);
}

}  // namespace napkin
