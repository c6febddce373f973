// What a core does to bring tiles in and out: vector loads and stores, conversions, transposes, gathered rows.
#include <cmath>

#include "machine/block_machine.hpp"
#include "schedule/fragment_registers.hpp"
#include "schedule/fragments.hpp"
#include "schedule/gathered.hpp"
#include "schedule/lane_registers.hpp"
#include "schedule/legality.hpp"
#include "schedule/simulate_parts.hpp"
#include "support/ids.hpp"

namespace napkin {
namespace {

/// Lines are accessed in a cycle, `turns` times as many as a cache has, and the cache evicts lines at random. This is
/// the share m of lines that must be fetched again. Between two accesses to a line, others come in `m·turns` times for
/// each place. So `e^(-m·turns)` of the lines are still there.
double share_fetched_again(double turns) {
    if (turns <= 1) return 0;
    double share = 1;
    for (int i = 0; i < 30; ++i) share = 1 - std::exp(-turns * share);
    return share;
}

/// Instructions of a warp for a value of each lane that it copies alone, with the addresses at both ends. Measured on
/// one H200 on 2026-12-01: a transpose of 16-bit values, whose other instructions are counted in its source.
constexpr double copied_value_instructions = 12;
/// The same for a piece of a row, which is 16 bytes where rows have whole ones. Counted in SASS for a piece that is
/// copied as it is. For a piece of 8 values of bf16 that become f32, a column sum in buffers executed 46 instructions
/// (Nsight Compute on one H200, 2026-12-01). Conversions and accesses to shared memory are counted elsewhere. Estimated
/// for a single value of a row, whose addresses go on by a constant.
constexpr double copied_piece_instructions = 14, converted_piece_instructions = 32, single_piece_instructions = 6;

}  // namespace

/// Clocks in which so many bytes cross the pipe into a core's L1; 0 where that is the core's memory itself.
double Simulator::clocks_of_nearest(double num_bytes) const {
    if (machine_.levels.size() <= core_level_ + 1) return 0;
    const Level& nearest = machine_.levels.back();
    const double rate = nearest.bandwidth_bytes_per_s.value * std::min(1.0, nearest.instances.value / machine_.cores.value);
    return num_bytes * machine_.clock_hz.value / rate;
}

/// Clocks in which so many vectors are converted on their way in or out. A GPU has one instruction for it, on a CPU
/// some types take many.
double Simulator::clocks_of_conversion(const ScheduledKernel& k, const Variable& variable, double vectors, bool is_load) const {
    if (variable.memory_type == type_) return 0;
    if (k.in_blocks()) return vectors * clocks_a_vector_[at(static_cast<int>(OpKind::simple))];
    return vectors * static_cast<double>(lanes_) / per_clock(machine_, is_load ? "widen" : "narrow", variable.memory_type);
}

/// Clocks of the pipe into L1 for a copy of so many values. What they are in memory crosses it in whole lines, in or
/// out. A tile that is stored crosses it as well where it does not fit in L1.
double Simulator::clocks_of_copy(const ScheduledKernel& k, const Variable& variable, double values, bool is_load,
                                 double waste) const {
    const double l1 = bytes_a_core(machine_, machine_.levels.size() - 1),
                 held = values * static_cast<double>(k.value_bytes());
    return clocks_of_nearest(values * bytes(variable.memory_type) * waste + (!is_load && held > l1 ? held : 0));
}

/// Clocks for a tile that leaves L1 from one K block to the next. A tile stays where it fits in L1 beside what comes in
/// for it and what prefetchers bring for the next one. Lines of a larger tile come in before they are written, and go
/// out. Loads that miss wait in the same queue, so that nothing overlaps this. A Zen 5 core with 48 KiB of L1 shows it
/// as it reads 16-bit values from memory. It reads 35 GB/s where they become a tile of 16 KiB, 24 to 28 for 24 KiB, and
/// 15 for 64 KiB.
double Simulator::clocks_of_spilled_tile(const ScheduledKernel& k, VariableId id, const std::vector<std::int64_t>& tile) const {
    if (k.is_view(id) || k.is_operand(id) || k.is_in_registers(id) || k.is_in_lanes(id) || k.is_in_accumulators(id))
        return 0;
    const Variable& variable = k.variable(id);
    double values = 1;
    for (const Index& dim : variable.dims) values *= span_of(dim, tile);
    const double held = values * static_cast<double>(k.value_bytes()) / k.layout(id).terms,
                 passing = 2 * values * bytes(variable.memory_type);
    return clocks_of_nearest(2 * held) *
           share_fetched_again((held + passing) / bytes_a_core(machine_, machine_.levels.size() - 1));
}

/// Sectors, for each value, of which the stores of a fragment write only parts. Where columns are contiguous and rows
/// begin at multiples of 16 bytes, the four threads of a row store 16 bytes each. Else each thread stores two
/// neighbours, together where they can be one store, or one after the other. Where rows are contiguous, eight threads
/// store neighbours.
double Simulator::partial_sectors_a_value(const ScheduledKernel& k, VariableId id) const {
    const Variable& variable = k.variable(id);
    const double value = bytes(variable.memory_type), row = value * static_cast<double>(k.extent(variable.limits.back()));
    const auto is_aligned = [&](double to) { return std::fmod(row, to) == 0; };
    const auto sectors = [&](double together) {
        return together * value < machine_.sector_bytes.value ? 1 / together : 0;
    };
    const auto threads_a_row = static_cast<double>(k.fragments().threads_a_row());
    if (variable.dims.back().is_axis(k.schedule.mma_m)) return sectors(static_cast<double>(k.lanes) / threads_a_row);
    if (!variable.dims.back().is_axis(column_axis(k, id))) return 1;
    return is_aligned(static_cast<double>(operand_stride_bytes)) ? 0
           : is_aligned(2 * value)                               ? 1 / (2 * threads_a_row)
                                                                 : 1 / threads_a_row;
}

/// Values in lanes that a thread accesses together: all of a round where every tile of every row has whole rounds.
double Simulator::values_of_access(const ScheduledKernel& k, VariableId id) {
    const LaneTile lanes = lane_tile(k, id);
    if (lanes.axis < 0) return 1;
    const Variable& variable = k.variable(id);
    const Span& span = k.span(lanes.axis, k.layout(id).scope);
    const bool fits = variable.dims.back().is_axis(lanes.axis) && k.extent(variable.limits.back()) % lanes.vectors == 0 &&
                      (!span.begins || span.tile % lanes.vectors == 0);
    return fits ? static_cast<double>(lanes.vectors) : 1;
}

/// Clocks of a core to bring a tile in or out: none where it is accessed in place. It takes whole vectors where the
/// innermost dimension is innermost in memory too, else a block transpose. At the same time the tile passes through L1.
double Simulator::copy_clocks(const ScheduledKernel& k, VariableId id, const std::vector<std::int64_t>& tile,
                              bool is_load) const {
    if (k.is_view(id) || k.is_operand(id)) return 0;
    const Variable& variable = k.variable(id);
    double values = 1;
    for (const Index& dim : variable.dims) values *= span_of(dim, tile);
    if (variable.dims.empty()) return load_clocks_;
    if (!variable.gathers.empty() && !k.in_blocks()) return gather_clocks(k, id, tile);
    if (k.is_in_registers(id)) {
        // Where the columns of fragments are not contiguous in memory, one store of a warp goes to four lines: one for
        // each thread of a row.
        const AxisId columns = column_axis(k, id);
        const double lines = columns < 0 || variable.dims.back().is_axis(columns)
                                 ? 1
                                 : static_cast<double>(k.fragments().threads_a_row());
        const double clocks = values / static_cast<double>(lanes_) * store_clocks_ * lines;
        if (is_load || columns < 0) return clocks;
        return std::max(clocks, values * partial_sectors_a_value(k, id) * machine_.partial_store_clocks.value);
    }
    if (k.is_in_lanes(id)) {
        // A thread's neighbours cross in one instruction, up to the widest of memory.
        const double vectors = values / static_cast<double>(lanes_), together = values_of_access(k, id);
        return beside({vectors / together * (is_load ? load_clocks_ : store_clocks_),
                       clocks_of_conversion(k, variable, vectors, is_load), clocks_of_copy(k, variable, values, is_load)});
    }
    if (k.is_in_accumulators(id)) {
        const double vectors = values / static_cast<double>(lanes_);
        return beside({vectors * store_clocks_, clocks_of_conversion(k, variable, vectors, is_load),
                       clocks_of_copy(k, variable, values, is_load)});
    }
    // A cell of several values is copied as one, and is not converted.
    const int terms = k.layout(id).terms;
    const double runs = values / span_of(variable.dims.back(), tile), cells = values / terms,
                 vectors = cells / static_cast<double>(lanes_);
    const bool is_near = k.place(id).innermost + 1 == static_cast<int>(variable.dims.size());
    const double convert = terms > 1 ? 0 : clocks_of_conversion(k, variable, vectors, is_load),
                 cache = clocks_of_copy(k, variable, values, is_load);
    if (is_near) {
        // Threads find a place for each piece that they copy at once.
        const double together = k.in_blocks() ? values_of_piece(k, id, tile) : 1;
        const bool is_alike = terms > 1 || variable.memory_type == type_;
        const double of_piece = !k.in_blocks()  ? 0
                                : together == 1 ? single_piece_instructions
                                : is_alike      ? copied_piece_instructions
                                                : converted_piece_instructions;
        const double addresses = vectors / together * of_piece * clocks_a_vector_[at(static_cast<int>(OpKind::simple))];
        return beside({vectors * load_clocks_, vectors * store_clocks_, convert + addresses, cache}) +
               machine_.copy_run_clocks.value * runs;
    }
    // Lanes that lie a page apart miss the TLB and fall into the same sets of the cache.
    double stride = bytes(variable.memory_type);
    for (std::size_t d = variable.dims.size() - 1; static_cast<int>(d) > k.place(id).innermost; --d)
        stride *= static_cast<double>(k.extent(variable.limits[d]));
    const double transpose = cells * (stride < static_cast<double>(page_bytes) ? machine_.transpose_clocks.value
                                                                               : machine_.far_transpose_clocks.value);
    const double addresses = k.in_blocks() ? vectors * copied_value_instructions *
                                                 clocks_a_vector_[at(static_cast<int>(OpKind::simple))]
                                           : 0;
    return beside({transpose + convert + addresses, cache});
}

/// The same for a tile whose contents data decide: rows are gathered, and copied in blocks or value by value.
double Simulator::gather_clocks(const ScheduledKernel& k, VariableId id, const std::vector<std::int64_t>& tile) const {
    const GatheredCopy how = gathered_copy(k, id);
    const Variable& variable = k.variable(id);
    const auto span = [&](int p) { return p < 0 ? 1 : span_of(variable.dims[static_cast<std::size_t>(p)], tile); };
    double looked_up = 0, values = 1;
    for (std::size_t p = 0; p < variable.dims.size(); ++p) values *= span(static_cast<int>(p));
    std::vector<double> turns{1};  // passes, by the number of open loops
    for (const std::size_t p : how.loops) turns.push_back(turns.back() * span(static_cast<int>(p)));
    for (std::size_t d = 0; d < how.source.size(); ++d)
        if (how.plain(d) < 0) looked_up += turns[how.depth(d)];

    const auto lanes = static_cast<double>(lanes_);
    const double rows = span(how.rows), columns = span(how.columns), blocks = how.is_block ? turns.back() : 0;
    const bool is_near = how.columns >= 0 && how.columns == how.plain(how.source.size() - 1);
    // Vectors of a row, or its values where they fill no vector.
    const double a_row = columns < lanes ? columns : ceil_of(columns, lanes);
    const bool in_vectors = how.is_block && columns >= lanes;
    const double moves = how.is_block && is_near ? blocks * rows * a_row
                         : in_vectors            ? values / lanes
                                                 : values,
                 shuffles = in_vectors && !is_near ? values * machine_.transpose_clocks.value : 0;
    double run = bytes(variable.memory_type);
    if (how.is_block) run *= span(how.plain(how.source.size() - 1));
    const double convert = clocks_of_conversion(k, variable, moves, true),
                 cache = clocks_of_copy(k, variable, values, true, line_waste(run, machine_.line_bytes.value));
    // A load of a single value takes as long as a broadcast.
    const double load = in_vectors ? load_clocks_ : broadcast_clocks_,
                 store = in_vectors ? store_clocks_ : broadcast_clocks_;
    return beside({moves * load + looked_up * broadcast_clocks_, moves * store, convert + shuffles, cache}) +
           blocks * (machine_.call_clocks.value + rows * machine_.copy_run_clocks.value);
}

}  // namespace napkin
