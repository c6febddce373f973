// What a kernel's loads and stores move through the memory levels, and the time of each byte there.
#include <algorithm>
#include <cmath>
#include <map>

#include "diagram/box.hpp"
#include "machine/block_machine.hpp"
#include "schedule/cluster.hpp"
#include "schedule/fragments.hpp"
#include "schedule/gathered.hpp"
#include "schedule/group_order.hpp"
#include "schedule/legality.hpp"
#include "schedule/simulate_parts.hpp"
#include "schedule/stream_k.hpp"
#include "support/ids.hpp"
#include "support/ranges.hpp"

namespace napkin {
namespace {

/// The first step that loads the variable.
std::size_t first_load(const ScheduledKernel& k, VariableId id) {
    const auto found = std::find_if(k.steps.begin(), k.steps.end(), [&](const Step& s) {
        const auto* load = std::get_if<Load>(s.statement);
        return load && load->variable == id;
    });
    return static_cast<std::size_t>(found - k.steps.begin());
}

/// The same of the tile alone, without the loop's other iterations.
double bytes_of_tile_in_a_row(const ScheduledKernel& k, VariableId id, ScopeId scope) {
    const Variable& variable = k.variable(id);
    const std::vector<Index>& source = k.facts(id).source;
    const auto tile = mapped<std::int64_t>(k.scope(scope), [](const Span& span) { return span.tile; });
    double run = bytes(variable.memory_type);
    // Each value of an axis that walks is a row.
    if (are_walks(variable.gathers)) return run * span_of(variable.gathers.back(), tile);
    for (std::size_t d = source.empty() ? variable.dims.size() : source.size(); d-- > 0;) {
        const int p = source.empty() ? static_cast<int>(d) : source[d].single_axis().place();
        if (p < 0) break;
        const Index& dim = variable.dims[static_cast<std::size_t>(p)];
        const double span = span_of(dim, tile);
        run *= span;
        if (span < static_cast<double>(k.extent(variable.limits[static_cast<std::size_t>(p)]))) break;
    }
    return run;
}

}  // namespace

double contiguous_bytes(const ScheduledKernel& k, const Step& transfer) {
    const auto* load = std::get_if<Load>(transfer.statement);
    const VariableId id = load ? load->variable : std::get<Store>(*transfer.statement).variable;
    const Variable& variable = k.variable(id);
    double run = bytes_of_tile_in_a_row(k, id, transfer.scope);
    // What a thread leaves of a line is in L1 for the loop's next iterations.
    if (load && k.is_read_by_threads(id) && !variable.dims.empty())
        for (const ScheduledLoop& l : k.loops)
            if (l.scope == transfer.scope && variable.dims.back().is_axis(l.loop->axis))
                run = std::max(run, std::min(static_cast<double>(k.unit.line_bytes),
                                             run * static_cast<double>(iterations_of(k, l).most)));
    return run;
}

double line_waste(double run, double line_bytes) { return std::ceil(run / line_bytes) * line_bytes / run; }

/// How often a core waits for a line of a tile that it reads in place. Where a register block reads several rows that
/// share a page, prefetchers see no stream. Each iteration then waits for the lines of the block's rows, which it asks
/// for together. It does not wait where the schedule prefetches them.
double Simulator::waits_of_rows(const ScheduledKernel& k, VariableId id, const Step& step, double bytes_moved) const {
    if (!rows_share_pages(k, id, step)) return 0;
    for (const Prefetch* p : k.prefetches_in(step))
        if (p->variable == id && p->fetched == Fetched::blocks) return 0;
    return bytes_moved / machine_.line_bytes.value / k.atom(step).rows;
}

/// The parts of arrays from which tiles one after the other are gathered stay in the core's memory beside its tiles.
/// Each core then reads their values once.
bool Simulator::tables_stay(const ScheduledKernel& k) const {
    if (k.in_blocks()) return false;
    std::map<ArrayId, double> parts;
    for (const Variable& v : k.kernel->variables)
        if (!v.gathers.empty()) parts[v.array] = std::max(parts[v.array], bytes_of_part(k, v));
    auto held = static_cast<double>(k.memory_bytes());
    for (const auto& [array, part] : parts) held += part;
    return held <= bytes_a_core(machine_, core_level_);
}

/// The statement in whose time a tile comes in or goes out. Normally that is its copy. A tile that is read in place
/// comes in with the statement that prefetches it, else with the first that reads it or gathers by it. A tile that is
/// written in place goes out with the statement that computes it, or with the one in whose loops that runs for the
/// previous output tile.
StepId Simulator::step_of_transfer(const ScheduledKernel& k, StepId transfer) const {
    const auto* load = std::get_if<Load>(k.steps[transfer].statement);
    const VariableId id = load ? load->variable : std::get<Store>(*k.steps[transfer].statement).variable;
    if (!k.is_view(id)) return transfer;
    for (const StepId i : k.steps.ids())
        for (const Prefetch* p : k.prefetches_in(k.steps[i]))
            if (load && p->variable == id && p->fetched == Fetched::groups && first_load(k, id) == transfer) return i;
    for (const StepId i : k.steps.ids()) {
        if (load && i <= transfer) continue;
        const auto* compute = std::get_if<Compute>(k.steps[i].statement);
        if (load && looks_up(k, k.steps[i], id)) return i;
        if (!compute) continue;
        if (!load && compute->variable == id) return k.steps[i].is_tile_pipelined() ? k.steps[i].pipelined_into : i;
        if (load && reads(k.steps[i], id)) return i;
    }
    return transfer;
}

std::vector<Simulator::Moved> Simulator::transfers(const ScheduledKernel& k, const TileCounter& counter, double workers,
                                                   double& values_moved) const {
    std::vector<Moved> out;
    std::vector<ArrayId> counted;
    const bool stay = tables_stay(k);
    for (const StepId i : k.steps.ids()) {
        const auto* load = std::get_if<Load>(k.steps[i].statement);
        const auto* store = std::get_if<Store>(k.steps[i].statement);
        if (!load && !store) continue;
        const VariableId id = load ? load->variable : store->variable;
        if (k.steps[i].stays) continue;
        const Variable& variable = k.variable(id);
        const auto values = static_cast<double>(counter.moved(transferred(id, load != nullptr)));
        values_moved += values;
        const double run = contiguous_bytes(k, k.steps[i]);
        Moved moved{step_of_transfer(k, i), store != nullptr, store && k.place(id).non_temporal,
                    values * bytes(variable.memory_type) * line_waste(run, machine_.line_bytes.value), 0};
        moved.run = run, moved.variable = id;
        if (!contains(counted, variable.array))
            moved.unique = std::min(moved.bytes,
                                    static_cast<double>(count_values(derived_.diagram, variable.array, extents_)) *
                                        bytes(variable.memory_type));
        moved.stays = (stay && !variable.gathers.empty()) || (load && stays_in_l1(k, id));
        if (load && !k.in_blocks() && !variable.gathers.empty()) {
            moved.part = bytes_of_part(k, variable);
            moved.parts = static_cast<double>(k.num_groups()) / groups_between_uses(k.group_order, variable);
        }
        if (moved.unique > 0)
            moved.by_groups = load ? std::min(moved.bytes,
                                              bytes_of_group(k, variable) * static_cast<double>(k.num_groups()))
                                   : moved.bytes;
        if (load && k.in_blocks())
            moved.together = different_tiles(k.group_order, variable, groups_together(k, variable, workers));
        if (load && cluster_part(k, id)) moved.of_a_cluster = 1 / static_cast<double>(k.cluster_blocks());
        // Producer warps acquire even a single stage while the rest of an iteration goes on.
        const bool may_be_ahead = k.place(id).stages > 1 || (k.producer_role() && k.steps[i].scope > 0);
        moved.is_ahead = load ? k.is_operand(id) && may_be_ahead : k.is_staged_out(id);
        if (load && k.is_operand(id) && k.has_bulk_copies()) moved.lines = lines_of_a_row(k, id);
        // L2 request coalescing: copies that run ahead meet those of neighbouring SMs that ask for the same. The later
        // SM finds what the earlier one has just asked for.
        if (const Figure& merging = machine_.levels[core_level_].merging_cores; load && moved.is_ahead && merging.known())
            moved.merged = std::min(
                1.0, different_tiles(k.group_order, variable, std::min(merging.value, workers)) / moved.of_a_cluster);
        if (moved.is_ahead && load) {
            moved.tiles = 0;
            counter.for_each_tile(
                axes_of(variable.dims), transferred(id, true).loop,
                [&](const std::vector<std::int64_t>&, std::int64_t count) { moved.tiles += static_cast<double>(count); });
        }
        for (const Step& step : k.steps)
            if (load && step.atom >= 0)
                for (const Read* r : step.reads)
                    if (r->variable() == id && is_fetched_with_group(k, step, *r)) {
                        const std::int64_t columns = columns_of(k, columns_of_statement(k, step), step.scope);
                        moved.is_fetched = true;
                        moved.asks = 2 * static_cast<double>(k.num_groups() *
                                                             (columns / run_columns(k) / runs_together(k, step)));
                    }
        if (load) moved.waits = waits_of_rows(k, id, k.steps[moved.step], moved.bytes);
        counted.push_back(variable.array);
        out.push_back(moved);
    }
    return out;
}

/// Whether all output tiles load the same into lanes, which L1 then keeps. It shares its memory with the SM's tiles.
bool Simulator::stays_in_l1(const ScheduledKernel& k, VariableId id) const {
    if (!k.is_in_lanes(id)) return false;
    double held = static_cast<double>(k.arena_bytes());
    for (const VariableId v : k.layouts.ids()) {
        if (!k.is_in_lanes(v) || !is_loaded(k, v)) continue;
        const bool is_own = any_of(groups_of(*k.kernel, k.sizes),
                                   [&](const auto& group) { return carries(k.variable(v), group.first); });
        if (v == id && is_own) return false;
        held += static_cast<double>(k.layout(v).tile) * bytes(k.variable(v).memory_type) *
                (is_own ? 1 : 1 / static_cast<double>(blocks_a_core(machine_)));
    }
    return held <= usable_bytes();
}

std::int64_t Simulator::groups_ahead(const ScheduledKernel& k, VariableId id) {
    for (const Prefetch& p : k.schedule.prefetches)
        if (p.variable == id && p.fetched == Fetched::groups) return p.ahead.value;
    return 0;
}

/// Whether all transfers overlap all computation, in a CPU kernel without loops. Its tiles are prefetched, its stores
/// bypass the caches, and L1 holds the tiles at hand and those ahead. Then no statement waits for memory alone.
/// This was measured on two cores of an Intel server with 48 KiB of L1 (2026-11-27). A layer norm of 131072 × 1024
/// takes 27.9 ms in tiles of 4 rows, as long as a copy of its bytes vector by vector. In tiles of 8 it takes 33.4 ms. A
/// softmax of these rows takes 30 ms in tiles of 2 and 42 ms in tiles of 8.
bool Simulator::flows_through_first_cache(const ScheduledKernel& k, const std::vector<Moved>& moved) const {
    if (k.in_blocks() || !k.loops.empty()) return false;
    double fetched = 0;
    for (const Moved& m : moved) {
        if (m.is_store && !m.is_non_temporal) return false;
        if (const std::int64_t ahead = m.is_store ? 0 : groups_ahead(k, m.variable); ahead > 0)
            fetched += static_cast<double>((1 + ahead) * k.layout(m.variable).tile) *
                       bytes(k.variable(m.variable).memory_type);
    }
    return fetched > 0 && fetched <= bytes_a_core(machine_, machine_.levels.size() - 1);
}

/// Bytes from global memory in the rounds that are split, because CTAs are at different K blocks there. The CTAs of
/// whole tiles read the same K blocks together.
double Simulator::bytes_out_of_step(const ScheduledKernel& k, const StreamK& cut, const std::vector<Moved>& moved) const {
    const auto groups = static_cast<double>(cut.groups), all = static_cast<double>(k.num_groups());
    double bytes = 0;
    for (const Moved& m : moved)
        if (m.is_ahead && !m.is_store) bytes += m.bytes * (1 - m.together);
    return bytes * groups / all * missed_out_of_step(k, groups);
}

/// The kernel's variable whose transfers a tile's load or store makes.
const CoreVariable& Simulator::transferred(VariableId id, bool is_load) const {
    const auto found = std::find_if(live_.variables.begin(), live_.variables.end(), [&](const CoreVariable& v) {
        return v.variable == id && (is_load ? v.loaded : v.stored);
    });
    internal_check(found != live_.variables.end(), "simulate: a transfer that is not counted");
    return *found;
}

/// Seconds for a byte into a level, or out of it, with so many cores at work. A copy reads as many bytes as it writes,
/// so a write takes what the read leaves of the copy's time. Non-temporal stores bypass all caches. Short segments are
/// read at a share of the rate, by one core as by all. What neighbouring SMs ask for together leaves the level above
/// once.
double Simulator::seconds_a_byte(std::size_t l, double workers, const Moved& moved) const {
    if (moved.is_non_temporal && l > 1) return 0;
    const Level& level = machine_.levels[l];
    const double sharing = machine_.cores.value / level.instances.value;
    // The most that one SM of a GPU gets is counted beside this (seconds_of_arrival): few SMs get what more would
    // share.
    const bool is_shared_by_any = !moved.is_store && l == core_level_ && seconds_of_arrival(workers) > 0;
    const auto rate = [&](const Figure& all, const Figure& of_one) {
        if (is_shared_by_any) return all.value * level.instances.value;
        const double together = all.value * std::ceil(workers / sharing);
        return of_one.value > 0 ? std::min(together, workers * of_one.value) : together;
    };
    // Other work on the machine takes its share of these times, as it does of the times of computation.
    const double read = (l == core_level_ ? moved.merged : 1) / machine_.sustained_share.value /
                        rate(level.bandwidth_bytes_per_s, level.core_bandwidth_bytes_per_s);
    if (!moved.is_store) return read / share_of_runs(level, moved.run / machine_.line_bytes.value);
    const Figure &all = moved.is_non_temporal ? machine_.nontemporal_copy_bytes_per_s : level.copy_bandwidth_bytes_per_s,
                 &of_one = moved.is_non_temporal ? machine_.core_nontemporal_copy_bytes_per_s
                                                 : level.core_copy_bandwidth_bytes_per_s;
    if (!(all.value > 0)) return read;
    return std::max(moved.is_non_temporal ? 0 : read, 2 / rate(all, of_one) / machine_.sustained_share.value - read);
}

/// Seconds for a byte to arrive in the SMs of a GPU that asked for it, however few these are and whoever else asked for
/// it.
double Simulator::seconds_of_arrival(double workers) const {
    const double of_one = machine_.levels[core_level_].core_bandwidth_bytes_per_s.value;
    return machine_.kind == MachineKind::gpu && of_one > 0 ? 1 / (workers * of_one) : 0;
}

}  // namespace napkin
