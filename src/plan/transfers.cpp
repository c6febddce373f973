// Chooses how tiles that are read or written in place travel: which results go past the caches, and what is prefetched.
#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <optional>

#include "lower/passes.hpp"
#include "plan/complete.hpp"
#include "plan/reasons.hpp"
#include "schedule/legality.hpp"
#include "support/ids.hpp"
#include "support/numbers.hpp"
#include "support/ranges.hpp"
#include "tile/placement.hpp"

namespace napkin {
namespace {

/// Prefetching must save at least this share of the time.
constexpr double worth_fetching = 0.01;

/// A time that is longer by no more than this share, which rounding makes, counts as equal.
constexpr double as_fast = 1e-9;

/// Whether the statement writes its result in the order of memory, vector by vector. It writes whole rows, or parts of
/// rows in whole lines, so that no line is written in two pieces. Parts of two lines and more are stored past the
/// caches as fast as whole rows. A Xeon with vectors of 512 bits took for 4096 rows of 16384 f32, beside other work, 22
/// to 29 ms through the caches. It took 11 to 13 ms past them, and 16 ms in parts of one line (2026-11-28).
bool goes_along_memory(const ScheduledKernel& kernel, const Step& step) {
    const Atom& atom = kernel.atom(step);
    const Span& inner = kernel.span(atom.vector_axis, step.scope);
    const std::int64_t line = kernel.unit.line_bytes / kernel.value_bytes();
    const bool in_lines = inner.tile % line == 0 && kernel.extents[atom.vector_axis] % line == 0;
    return atom.row_axis < 0 && (!inner.begins || in_lines) && (atom.vector_inner || atom.points.empty());
}

/// Bytes of all arrays that the kernel reads or writes, each once.
double bytes_moved(const ScheduledKernel& kernel) {
    double bytes_of_all = 0;
    for (const auto* arrays : {&kernel.inputs, &kernel.outputs})
        for (const ArrayId a : *arrays)
            bytes_of_all += static_cast<double>(count_values(kernel.program->diagram, a, kernel.extents)) *
                            bytes(kernel.program->diagram.array(a).type);
    return bytes_of_all;
}

/// The bytes of an array that another kernel of the program uses, which may find it in caches that can hold it.
/// Infinite for any other array.
double bytes_between_kernels(const ScheduledKernel& kernel, ArrayId array) {
    const std::vector<TileKernel>& all = kernel.program->kernels;
    const bool is_accessed = any_of(all, [&](const TileKernel& other) {
        return &other != kernel.kernel && any_of(other.variables, [&](const Variable& v) { return v.array == array; });
    });
    return is_accessed ? static_cast<double>(count_values(kernel.program->diagram, array, kernel.extents)) *
                             bytes(kernel.program->diagram.array(array).type)
                       : std::numeric_limits<double>::infinity();
}

/// Whether the kernel writes its result over an array that it reads.
bool is_written_over(const ScheduledKernel& kernel) {
    const ArrayUse use = use_of(*kernel.kernel);
    if (use.over.empty()) return false;
    const std::vector<int> slot = placed(*kernel.program, kernel.extents).slot;
    const int written = slot[at(use.writes[0])];
    return written >= 0 && any_of(use.over, [&](ArrayId read) { return slot[at(read)] == written; });
}

/// Bytes that groups ahead hold of the variable beside the core's own tiles. Rows ahead count as none: they are a small
/// part of a tile, mostly of the core's own.
double bytes_ahead(const ScheduledKernel& kernel, const Prefetch& p) {
    if (p.fetched == Fetched::blocks) return 0;
    return static_cast<double>(p.ahead.value * kernel.layout(p.variable).tile * kernel.value_bytes());
}

}  // namespace

void choose_non_temporal(ScheduledKernel& kernel, const Machine& machine) {
    const Figure& from = machine.nontemporal_from_bytes;
    if (!from.known() || bytes_moved(kernel) < from.value || is_written_over(kernel)) return;
    for (const Step& step : kernel.steps) {
        if (step.atom < 0) continue;
        const VariableId id = std::get<Compute>(*step.statement).variable;
        Place& place = kernel.schedule.places[id];
        if (bytes_between_kernels(kernel, kernel.variable(id).array) < from.value) continue;
        if (!place.by_user && why_not_non_temporal(kernel, id).empty())
            place.non_temporal = goes_along_memory(kernel, step);
    }
}

void fetch_rows_ahead(ScheduledKernel& kernel) {
    if (kernel.in_blocks()) return;  // as why_no_rows_ahead has it
    std::vector<Prefetch>& chosen = kernel.schedule.prefetches;
    for (const Step& step : kernel.steps) {
        if (step.atom < 0) continue;
        for (std::size_t v = 0; v < kernel.layouts.size(); ++v) {
            const auto id = VariableId::of(v);
            if (!kernel.is_view(id) || !reads(step, id)) continue;
            const bool is_given = any_of(chosen, [&](const Prefetch& p) { return p.variable == id; });
            if (is_given || !rows_share_pages(kernel, id, step)) continue;
            const Atom& atom = kernel.atom(step);
            if (atom.rows < kernel.extent(atom.row_axis))
                chosen.push_back({id, step.atom, {1, "", false}, Fetched::blocks});
        }
    }
}

int choose_prefetches(ScheduledKernel& kernel, const Simulator& model, std::int64_t threads, std::int64_t walk_limit) {
    int simulated = 0;
    const auto seconds = [&] {
        ++simulated;
        return model.run(kernel, threads, walk_limit).seconds;
    };
    std::vector<Prefetch>& chosen = kernel.schedule.prefetches;
    const double latency = model.machine().levels.front().latency_s.value;
    const auto groups = static_cast<double>(kernel.num_groups());
    double best = chosen.empty() ? 0 : seconds(), held = static_cast<double>(kernel.memory_bytes());
    for (std::size_t i = chosen.size(); i-- > 0;) {
        Prefetch p = chosen[i];
        if (p.ahead.by_user) continue;
        chosen[i].ahead.value = 0;
        const double without = seconds();
        if (without < best * (1 + worth_fetching)) {
            chosen.erase(chosen.begin() + static_cast<std::ptrdiff_t>(i));
            best = without;
            continue;
        }
        p.ahead.reason = fmt::format("{} without: {} rows are read in turn, and share pages",
                                     time_change(without / best), kernel.schedule.atoms[p.atom].rows);
        chosen[i] = std::move(p);
    }
    for (const Prefetch& p : chosen) held += bytes_ahead(kernel, p);
    for (std::size_t v = 0; v < kernel.layouts.size(); ++v) {
        const auto id = VariableId::of(v);
        if (any_of(chosen, [&](const Prefetch& p) { return p.variable == id; })) continue;
        std::optional<Prefetch> found;
        double fastest = best;
        for (const Step& step : kernel.steps) {
            if (!why_not_prefetched(kernel, id, step).empty()) continue;
            if (best == 0) best = fastest = seconds();
            // As many groups ahead as run during memory's latency.
            const double of_a_group = best * static_cast<double>(threads) / groups;
            const double ahead = std::ceil(latency / of_a_group);
            Prefetch p{id, step.atom, {static_cast<std::int64_t>(ahead), "", false}};
            if (ahead * static_cast<double>(threads) >= groups || held + bytes_ahead(kernel, p) > model.usable_bytes())
                continue;
            chosen.push_back(p);
            if (const double with = seconds(); with < std::min(fastest, best * (1 - worth_fetching))) {
                fastest = with, found = std::move(p);
                found->ahead.reason = fmt::format("{} without; a group takes {}, {} answers in {}",
                                                  time_change(best / fastest), seconds_text(of_a_group),
                                                  model.machine().levels.front().name, seconds_text(latency));
            }
            chosen.pop_back();
        }
        if (!found) continue;
        best = fastest;
        held += bytes_ahead(kernel, *found);
        chosen.push_back(std::move(*found));
    }
    return simulated;
}

void choose_caches(ScheduledKernel& kernel, const Machine& machine) {
    if (kernel.in_blocks() || machine.levels.size() < 3) return;
    double own = 0, ahead = 0, others = static_cast<double>(kernel.arena_bytes());
    for (std::size_t v = 0; v < kernel.layouts.size(); ++v) {
        const auto id = VariableId::of(v);
        // What is stored past the caches is in none of them.
        if (!kernel.is_view(id) || kernel.place(id).non_temporal) continue;
        const bool is_fetched = any_of(kernel.schedule.prefetches, [&](const Prefetch& p) {
            return p.variable == id && p.fetched == Fetched::groups && p.ahead.value > 0;
        });
        (is_fetched ? own : others) += static_cast<double>(kernel.layout(id).tile) * bytes(kernel.variable(id).memory_type);
    }
    for (const Prefetch& p : kernel.schedule.prefetches) ahead += bytes_ahead(kernel, p);
    // Alone, a tile to come takes the place of what has been read of the current one.
    if (others < ahead || own + ahead + others <= bytes_a_core(machine, machine.levels.size() - 1)) return;
    for (Prefetch& p : kernel.schedule.prefetches)
        if (p.fetched == Fetched::groups && !p.ahead.by_user) p.cache = 2;
}

int choose_tile_pipelining(ScheduledKernel& kernel, const Simulator& model, std::int64_t threads, std::int64_t walk_limit) {
    int simulated = 0;
    const auto seconds = [&](const ScheduledKernel& k) {
        ++simulated;
        return model.run(k, threads, walk_limit).seconds;
    };
    const auto number = static_cast<std::size_t>(kernel.kernel - kernel.program->kernels.data());
    double without = 0;
    for (const StepId s : kernel.steps.ids()) {
        const Step& step = kernel.steps[s];
        const auto is_chosen = [&](const TilePipelining& d) { return d.atom == step.atom; };
        if (step.atom < 0 || !kernel.place(variable_of(step)).non_temporal ||
            any_of(kernel.schedule.tile_pipelining, is_chosen))
            continue;
        std::optional<ScheduledKernel> found;
        double least = 0;
        for (StepId in = 0; in < s; ++in) {
            if (kernel.steps[in].atom < 0 || kernel.steps[in].deferred >= 0) continue;
            ScheduledKernel with = kernel;
            // Prefetches in the loops of the one statement move to those of the other.
            for (Prefetch& p : with.schedule.prefetches)
                if (p.atom == step.atom && !p.ahead.by_user) p.atom = kernel.steps[in].atom;
            if (!why_not_tile_pipelined(with, with.steps[s], with.steps[in]).empty()) continue;
            if (without == 0) without = seconds(kernel);
            with.schedule.tile_pipelining.push_back({step.atom, kernel.steps[in].atom, {1, "", false}});
            with = scheduled(kernel.program, number, kernel.extents, with.schedule, kernel.unit);
            const double time = seconds(with), gain = without / time - 1;
            if (gain < -as_fast || (found && time >= least)) continue;
            const std::string beside = fmt::format("stores beside what {} computes",
                                                   kernel.variable(variable_of(kernel.steps[in])).name);
            with.schedule.tile_pipelining.back().groups.reason = gain < worth_fetching
                                                                     ? fmt::format("{}; as fast without by the model", beside)
                                                                     : fmt::format("{}; {} without", beside,
                                                                                   time_change(without / time));
            found = std::move(with), least = time;
        }
        if (found) kernel = std::move(*found), without = least;
    }
    return simulated;
}

}  // namespace napkin
