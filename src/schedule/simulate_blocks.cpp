// The time of CTAs that share SMs. A lone CTA goes from statement to statement and waits at every one: for loads, for
// values that depend on each other, at barriers. Beside others it also waits for the units and for memory, while they
// wait for theirs.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "machine/block_machine.hpp"
#include "schedule/fragments.hpp"
#include "schedule/lane_registers.hpp"
#include "schedule/simulate_parts.hpp"
#include "schedule/tile_copy.hpp"
#include "support/ids.hpp"

namespace napkin {
namespace {

/// Clocks from an instruction to one that needs its result. Measured on one H200 on 2026-11-23 with chains of 1,024
/// instructions: 4.4 for an addition, and 34.3 for a load from shared memory with the addition of its address.
constexpr double step_clocks = 4.4, shared_clocks = 30;
constexpr double unrolled = iterations_together;
/// Instructions for an address and a loop's end: for one value that is read, and for one or four adjacent values that
/// are copied.
constexpr double address_instructions = 2, copy_instructions = 8;
/// Instructions of a function from which on a thread has one load from global memory under way at a time. Measured on
/// one H200 on 2026-12-01: a GELU of 8192 × 8192 f32 reads 1.13 TB/s, by 48 warps an SM that have 8.5 KB under way.
constexpr double long_function = 20;
/// Clocks for a tile's coordinates and the pointers to its data. Estimated: some 15 instructions.
constexpr double group_clocks = 60;
/// The first instructions come from memory, line after line. Measured on one H200 on 2026-11-22: a kernel of one small
/// tile takes 4.7 µs between two events where the caches were flushed before. Its launch, its first CTA and the tile
/// itself take 3.7 of them.
constexpr double first_instructions_s = 1e-6;
/// Loads of a launch find no translation of their addresses at first: the seconds for those that come first, and for
/// each later group of loads. Fitted on one H200 on 2026-11-29: 24 examples of less than 45 µs took -1.4 to 6 µs longer
/// than all else adds up to, 1.4 in the median. One small tile took no longer, and one with five groups 5.3.
constexpr double first_addresses_s = 0.8e-6, further_addresses_s = 0.5e-6;

/// For CTAs that ask for all that they need at once. Dependence chains take a multiple of what latencies add up to.
/// And how sharply the time of CTAs beside each other goes over from that of a lone one to that of the busiest
/// unit. Fitted on one H200 on 2026-11-30 to 23 kernels of rows with 1 to 12 CTAs an SM.
constexpr double chain_share = 1.6, queue_exponent = 2.5;

/// Instructions that a thread issues for an operation beside its unit's own instruction, counted in what NVRTC 13 makes
/// of the prelude's functions. A power is taken in double precision.
double instructions_of(OpKind kind) {
    switch (kind) {
        case OpKind::fma:
        case OpKind::simple: return 0;
        case OpKind::div: return 6;
        case OpKind::exp: return 1;  // it is scaled to a power of two
        case OpKind::sqrt: return 8;
        case OpKind::log: return 14;
        case OpKind::tanh: return 16;
        case OpKind::erf:
        case OpKind::sin: return 20;
        case OpKind::pow: return 200;
    }
    return 0;
}

}  // namespace

/// Terms of so many rounds in which each SM has `blocks` CTAs.
TimeSum Simulator::rounds_of(const BlockTime& t, double times, double blocks, double clock, const BlockTerms& terms) {
    TimeSum out(true);
    const auto add = [&](const std::string& name, double seconds) {
        out.add(times * seconds, [&] {
            return TimeTerm{name, 0,
                            fmt::format("{} round{} of {} CTA{} an SM × {} clocks at {:.4g} GHz", number_text(times),
                                        times == 1 ? "" : "s", number_text(blocks), blocks == 1 ? "" : "s",
                                        number_text(seconds * clock), clock / 1e9)};
        });
    };
    // A CTA that has its SM and its share of memory to itself takes a part of what it takes beside others.
    const auto add_work = [&](const TimeSum& work, double seconds) {
        out.add(times * seconds, [&] {
            const double factor = times * seconds / work.seconds();
            return work.scaled(factor, std::abs(factor - 1) < 1e-9 ? "" : fmt::format(" × {:.4g} without others", factor));
        });
    };
    add("waits of a CTA for its own results", t.chain);
    add_work(terms.core, t.core);
    add("other CTAs at the units", t.core_queue);
    add_work(terms.memory, t.memory);
    add("other CTAs at memory", t.memory_queue);
    return out;
}

/// Clocks of a vector on the units that all instructions share, beside the operation's own unit.
double Simulator::instruction_clocks(OpKind kind) const {
    return instructions_of(kind) * clocks_a_vector_[at(static_cast<int>(OpKind::simple))];
}

/// Clocks for a load of the variable to answer where nothing else is outstanding. What all output tiles load is in L2.
double Simulator::answer_clocks(const ScheduledKernel& k, VariableId id) const {
    bool is_own = false;
    for (const auto& [axis, size] : groups_of(*k.kernel, k.sizes)) is_own |= carries(k.variable(id), axis);
    const std::size_t level = is_own ? 0 : std::min<std::size_t>(1, core_level_ - 1);
    return machine_.levels[level].latency_s.value * machine_.clock_hz.value;
}

/// Clocks of a statement on one tile for a CTA that has its SM to itself. Each warp goes through its register blocks
/// one after the other.
double Simulator::chain_of_compute(const ScheduledKernel& k, const Step& step, const StatementWork& work,
                                   const std::vector<std::int64_t>& tile) const {
    const auto& compute = std::get<Compute>(*step.statement);
    const Atom& atom = k.atom(step);
    const auto warps = static_cast<double>(k.schedule.warps.value), lanes = static_cast<double>(k.lanes);
    const AxisId v = atom.vector_axis;
    const double along = v < 0 ? 1 : std::ceil(static_cast<double>(tile[at(v)]) / (lanes * atom.vectors));
    double blocks = 1, passes = 1, depth = step_clocks, issued = 0, longest_function = 0;
    for (const AxisId axis : work.target_axes)
        blocks *= axis == v               ? along
                  : axis == atom.row_axis ? std::ceil(static_cast<double>(tile[at(axis)]) / atom.rows)
                                          : static_cast<double>(tile[at(axis)]);
    for (const AxisId axis : compute.reduce_axes) passes *= axis == v ? along : static_cast<double>(tile[at(axis)]);
    if (atom.shared) passes = std::ceil(passes / warps);
    // Lanes have points of their own where there are no vectors.
    if (v < 0) blocks = std::ceil(blocks / lanes);
    const double turns = atom.shared ? blocks : std::ceil(blocks / warps);

    // What is computed at each point of the whole statement is on its dependence chain. The rest is hoisted, and
    // counted where it stands.
    const std::size_t all = work.target_axes.size() + work.reduce_axes.size();
    for (const OpCount& op : work.ops) {
        if (op.axes.size() < all) continue;
        const double instructions = instructions_of(op.kind);
        const bool has_unit = op.kind != OpKind::fma && op.kind != OpKind::simple;
        depth += static_cast<double>(op.count) * step_clocks * (1 + instructions + (has_unit ? step_clocks : 0));
        issued += static_cast<double>(op.count) * (1 + instructions);
        longest_function = std::max(longest_function, instructions);
    }
    double answer = 0, loads = 0;  // loads: of one register block
    bool is_far = false;
    for (const Read* r : step.reads) {
        if (r->variable() == compute.variable || k.is_in_lanes(r->variable()) || k.is_in_accumulators(r->variable()))
            continue;
        answer = std::max(answer, k.is_view(r->variable()) ? answer_clocks(k, r->variable()) : shared_clocks);
        is_far = is_far || k.is_view(r->variable());
        loads += (depends_on(r->indices, atom.row_axis) ? atom.rows / values_in_a_load(k, atom, *r, tile) : 1) *
                 (depends_on(r->indices, v) ? atom.vectors : 1);
    }
    if (!compute.reduce) issued += 1;
    // A thread asks for the runs of several iterations before it waits for one.
    const double values = static_cast<double>(atom.rows) * atom.vectors,
                 together = compute.reduce && goes_by_runs(k, step) ? unrolled : std::max(1.0, unrolled / values);
    double bodies = std::ceil(turns * passes / (compute.reduce ? 1 : together)) / (compute.reduce ? together : 1);
    if (is_far && !compute.reduce && longest_function >= long_function) bodies = turns * values;
    // Each of an SM's four schedulers has a fourth of the warps.
    const double issue = turns * passes * (values * issued + loads * (1 + address_instructions / unrolled)) *
                         std::max(1.0, std::min(warps, blocks) / schedulers_a_core);
    // All rounds of values in lanes are unrolled: only the additions of a thread wait for each other.
    const double latencies = lanes_of(k, step) ? answer + depth + (compute.reduce ? passes * step_clocks : 0)
                                               : std::ceil(bodies) * (answer + depth);
    double clocks = std::max(issue, latencies) + shared_clocks;
    const double halvings = std::log2(lanes),
                 over_lanes = halvings * (k.unit.copies.exchange_clocks + step_clocks) + shared_clocks;
    if (atom.across) clocks += turns * over_lanes;
    if (atom.shared) clocks += machine_.call_clocks.value + std::ceil(blocks / warps) * over_lanes;
    return clocks;
}

/// Values that a thread copies at once where neighbours lie beside each other at both ends: 16 bytes of the narrower
/// type, if rows and their tiles have whole ones.
double Simulator::values_of_piece(const ScheduledKernel& k, VariableId id, const std::vector<std::int64_t>& tile) {
    const Variable& variable = k.variable(id);
    const auto bytes_of_value = static_cast<double>(std::min<std::int64_t>(bytes(variable.memory_type), k.value_bytes()));
    const double values = std::max(1.0, k.unit.copies.vector_bytes / bytes_of_value);
    const auto row = static_cast<double>(k.extent(variable.limits.back())),
               in_tile = static_cast<double>(
                   range_of(variable.dims.back(), std::vector<std::int64_t>(tile.size(), 0), tile).size());
    return std::fmod(row, values) == 0 && std::fmod(in_tile, values) == 0 ? values : 1;
}

/// Clocks to copy a tile. All of it is outstanding at once where values go from global to shared memory as they are.
/// Else only what the threads hold is.
double Simulator::chain_of_copy(const ScheduledKernel& k, VariableId id, const std::vector<std::int64_t>& tile,
                                bool is_load) const {
    if (k.is_view(id)) return 0;
    const Variable& variable = k.variable(id);
    double values = 1;
    for (const Index& dim : variable.dims)
        values *= static_cast<double>(range_of(dim, std::vector<std::int64_t>(tile.size(), 0), tile).size());
    if (k.is_in_lanes(id)) {
        // All rounds are outstanding at once.
        const double accesses = static_cast<double>(lane_tile(k, id).values()) / values_of_access(k, id),
                     issue = accesses * copy_instructions *
                             std::max(1.0, static_cast<double>(k.schedule.warps.value) / schedulers_a_core);
        return std::max(issue, is_load ? answer_clocks(k, id) : 0);
    }
    const double threads = static_cast<double>(k.schedule.warps.value) * static_cast<double>(k.lanes);
    if (k.is_in_accumulators(id))
        return std::ceil(values / threads) * copy_instructions *
               std::max(1.0, static_cast<double>(k.schedule.warps.value) / schedulers_a_core);
    const bool is_near = !variable.dims.empty() && k.place(id).innermost + 1 == static_cast<int>(variable.dims.size()),
               is_alike = bytes(variable.memory_type) == k.value_bytes() && !k.is_whole(id);
    const double of_piece = is_near ? values_of_piece(k, id, tile) : 1;
    // Each part of the tile is copied by all threads, or by those of one warp.
    TileCopy copy{.part = static_cast<std::int64_t>(values)};
    if (variable.gathers.empty()) copy = tile_copy(k, id);
    const double warps = static_cast<double>(k.schedule.warps.value),
                 turns = std::ceil(static_cast<double>(copy.parts) / (copy.by_warps ? warps : 1)),
                 together = copy.by_warps ? static_cast<double>(k.lanes) : threads;
    const double pieces = turns * std::ceil(static_cast<double>(copy.part) / (copy.by_warps ? 1 : of_piece) / together);
    const double issue = pieces * copy_instructions * std::max(1.0, warps / schedulers_a_core);
    const double answer = is_load ? answer_clocks(k, id) : shared_clocks;
    const bool is_asynchronous = is_load && is_alike && variable.gathers.empty() && !copy.by_warps;
    const double waits = is_asynchronous ? 1 : turns * std::ceil(pieces / turns / unrolled);
    return std::max(issue, waits * answer) + shared_clocks;
}

/// Seconds from one output tile of a CTA to its next, as the mean value of a closed queueing network (Reiser and
/// Lavenberg 1980). The CTAs of one SM each wait `chain` for themselves. Then they queue at the SM's units and at its
/// share of memory, for the seconds that each takes there.
Simulator::BlockTime Simulator::cycle_of(double blocks, const BlockTime& group) {
    BlockTime out = group;
    out.cycle = group.chain;
    double at_core = 0, at_memory = 0;
    for (double n = 1; n <= blocks; ++n) {
        const double core = group.core * (1 + at_core), memory = group.memory * (1 + at_memory);
        out.cycle = group.chain + core + memory;
        out.core_queue = group.core * at_core, out.memory_queue = group.memory * at_memory;
        at_core = n * core / out.cycle, at_memory = n * memory / out.cycle;
    }
    return out;
}

/// The same where a CTA asks for all that it needs at once, as for values in lanes. Alone, it waits `chain` for itself,
/// and takes its time at the SM's units and at its share of memory. Beside others it cannot be faster than all of them
/// one after the other at either. Between the two, times join as those of units that delay each other do.
Simulator::BlockTime Simulator::cycle_in_bursts(double blocks, const BlockTime& group) {
    BlockTime out = group;
    const double own = group.chain + group.core + group.memory;
    const double queue = together({own, blocks * group.core, blocks * group.all_memory}, queue_exponent) -
                         together({own, group.core, group.memory}, queue_exponent);
    const double at_core = group.core + group.memory > 0 ? group.core / (group.core + group.memory) : 0;
    out.cycle = own + queue;
    out.core_queue = queue * at_core, out.memory_queue = queue * (1 - at_core);
    return out;
}

TimeSum Simulator::seconds_of_blocks(double groups, double workers, const BlockWork& work, const BlockTerms* terms) const {
    const double share = blocks_a_core(machine_), clock = machine_.clock_hz.value;
    const double cores = std::min(machine_.cores.value / share, workers), used = std::min(cores, groups);
    BlockTime group;
    group.core = work.core_clocks / groups / share / clock;
    group.memory = work.memory_seconds / groups * used;
    group.all_memory = work.all_memory_seconds / groups * used;
    group.chain = std::max(0.0, (work.in_bursts ? chain_share : 1) * work.chain_clocks / groups / clock - group.core) +
                  group_clocks / clock;
    const double slots = std::ceil(workers / cores), rounds = std::floor(groups / (cores * slots)),
                 rest = groups - rounds * cores * slots;
    TimeSum out(terms != nullptr);
    out.add(machine_.group_s.value, [] { return TimeTerm{"start of the first CTA", 0, "'group' of the machine"}; });
    out.add(first_instructions_s, [] { return TimeTerm{"first instructions from memory", 0, "once a kernel"}; });
    out.add(first_addresses_s + (work.load_phases - 1) * further_addresses_s, [&] {
        return TimeTerm{"first translations of addresses", 0,
                        fmt::format("{} groups of loads", number_text(work.load_phases))};
    });
    const auto add_rounds = [&](double times, double blocks) {
        const BlockTime t = work.in_bursts ? cycle_in_bursts(blocks, group) : cycle_of(blocks, group);
        out.add(times * t.cycle, [&] { return rounds_of(t, times, blocks, clock, *terms); });
    };
    // Tiles of unequal lengths: the CTA that ends last runs so many tiles of the mean length.
    if (work.uneven_waves > 0) {
        add_rounds(work.uneven_waves * groups / workers, std::min(slots, std::ceil(groups / cores)));
        return out;
    }
    if (rounds > 0) add_rounds(rounds, slots);
    if (rest > 0) add_rounds(1, std::ceil(rest / cores));
    return out;
}

}  // namespace napkin
