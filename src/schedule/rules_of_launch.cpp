// Rules about what threads, CTAs and roles run, and when: grids, clusters, parts of streams, slots and prefetches.
#include "schedule/rule_report.hpp"

#include <set>

#include "schedule/cluster.hpp"
#include "schedule/fragments.hpp"
#include "schedule/group_order.hpp"
#include "schedule/legality.hpp"
#include "schedule/stream_k.hpp"
#include "schedule/warpgroups.hpp"
#include "support/ranges.hpp"
#include "support/saturate.hpp"
#include "support/text.hpp"

namespace napkin {
namespace {

class LaunchRules : RuleReport {
public:
    using RuleReport::RuleReport;

    std::vector<BrokenRule> run() {
        check_tile_pipelining();
        check_prefetches();
        check_grid();
        check_band();
        check_cluster();
        check_parts();
        check_slots();
        return take();
    }

private:
    void check_parts() {
        const StreamParts& parts = k_.kernel->parts;
        const ScheduleField field{"split", parts.any() ? axis_name(parts.axis) : ""};
        const std::int64_t split = parts.any() ? k_.extent(parts.part) : 1;
        if (k_.schedule.split.value != split)
            report(field, "its stream is cut in {} part{}, where its program has {}", k_.schedule.split.value,
                   k_.schedule.split.value == 1 ? "" : "s", split);
        if (!parts.any()) return;
        const std::int64_t size = k_block_of(parts.axis, false, k_.sizes, k_.extents),
                           chunks = (k_.extent(parts.axis) + size - 1) / size;
        if (split > chunks && !k_.program->diagram.axis(parts.axis).is_any)
            report(field, "its stream is cut in {} parts, but {} has {} chunk{} of {}: {} part{} fit", split,
                   axis_name(parts.axis), chunks, chunks == 1 ? "" : "s", size, chunks, chunks == 1 ? "" : "s");
    }

    /// Positions in slots need producer warps. Without them a core or a CTA runs statements in program order.
    void check_slots() {
        check_roles();
        for (const std::string& fault : slot_faults(k_)) report(slot_in(fault), "{}", fault);
        for (const auto& [statement, slot] : k_.schedule.slots)
            if ((slot.order != 0 || slot.stage_offset != 0) && !k_.producer_role())
                report(slot_of(at(statement)),
                       "{} has order {}, {} ahead: {} runs statements one after the other, as they stand",
                       statements_.at(at(statement)), slot.order, slot.stage_offset,
                       on_either("a CPU's core", "a GPU's block"));
    }

    /// The slot of the statement that the fault names first, among statements with a position.
    [[nodiscard]] ScheduleField slot_in(const std::string& fault) const {
        ScheduleField first{"slot", ""};
        std::size_t begin = fault.size();
        for (const auto& [statement, slot] : k_.schedule.slots) {
            if (slot.order == 0 && slot.stage_offset == 0) continue;
            const std::string word = " " + k_.variable(variable_of(k_.step(statement))).name, text = " " + fault;
            const std::size_t found = std::min(text.find(word + " "), text.find(word + ","));
            if (found < begin) begin = found, first = slot_of(at(statement));
        }
        return first;
    }

    /// Producer warps issue the bulk copies of operands: all of them, and nothing else.
    void check_roles() {
        const std::vector<Role>& roles = k_.schedule.roles;
        if (!roles.empty() && !(k_.on_tensor_cores() && k_.has_bulk_copies()))
            return report({"role", roles[0].name}, "it has role {}: {}, and have no roles", roles[0].name,
                          on_either("a CPU's threads each run whole groups",
                                    "a block's warps all run every statement where no bulk copies bring operands"));
        if (roles.size() > 1)
            report({"role", roles[1].name}, "it has role {} beside role {}: one asks for copies", roles[1].name,
                   roles[0].name);
        if (!roles.empty() && (roles[0].workers % 4 != 0 || k_.schedule.warps.value % roles[0].workers != 0))
            report({"role", roles[0].name},
                   "role {} has {} warps, and not whole warpgroups of 4, of which {} warps are a multiple",
                   roles[0].name, roles[0].workers, k_.schedule.warps.value);
        for (const StepId s : k_.steps.ids()) {
            if (roles.empty()) break;
            const auto slot = k_.schedule.slots.find(s);
            const auto* load = std::get_if<Load>(k_.steps[s].statement);
            const bool copies = load && k_.is_operand(load->variable),
                       is_in_role = slot != k_.schedule.slots.end() && slot->second.role >= 0;
            if (copies != is_in_role)
                report(slot_of(s), "{} runs {} role {}, which asks for the copies of operands and does nothing else",
                       statements_.at(s), is_in_role ? "in" : "outside of", roles[0].name);
        }
    }

    void check_prefetches() {
        for (const Prefetch& p : k_.schedule.prefetches) {
            const auto in = find_if(k_.steps, [&](const Step& s) { return s.atom == p.atom; });
            if (p.ahead.value == 0 || in == k_.steps.end()) continue;
            const std::string &name = k_.variable(p.variable).name,
                              &where = k_.variable(std::get<Compute>(*in->statement).variable).name;
            const bool is_blocks = p.fetched == Fetched::blocks;
            if (const std::string why = is_blocks ? std::string(why_no_rows_ahead(k_, p.variable, *in))
                                                  : why_not_prefetched(k_, p.variable, *in);
                !why.empty())
                report({"prefetch", name}, "{} cannot be fetched ahead in {}: {}", name, where, why);
            else if (const Atom& atom = k_.atom(*in);
                     is_blocks && !k_.is_any(atom.row_axis) && p.ahead.value * atom.rows >= k_.extent(atom.row_axis))
                report({"prefetch", name},
                       "{} is fetched {} block{} of {} rows ahead, and it has {} rows: at most {} can be", name,
                       p.ahead.value, p.ahead.value == 1 ? "" : "s", atom.rows, k_.extent(atom.row_axis),
                       (k_.extent(atom.row_axis) - 1) / atom.rows);
            if (p.cache < 1 || p.cache > 2)
                report({"prefetch", name}, "{} is fetched into cache {}, and caches of one core are 1 and 2", name, p.cache);
            if (!is_blocks && p.ahead.value >= possible_groups(k_))
                report({"prefetch", name}, "{} is fetched {} group{} ahead, and there {} {}: at most {} can be", name,
                       p.ahead.value, p.ahead.value == 1 ? "" : "s", k_.num_groups() == 1 ? "is" : "are",
                       k_.num_groups(), k_.num_groups() - 1);
        }
    }

    void check_tile_pipelining() {
        std::set<int> taken;
        for (const TilePipelining& d : k_.schedule.tile_pipelining) {
            if (d.groups.value == 0) continue;
            const auto step_of = [&](int atom) {
                return find_if(k_.steps, [&](const Step& s) { return s.atom == atom; });
            };
            const std::string &name = atoms_[at(d.atom)], &where = atoms_[at(d.in)];
            const ScheduleField field{"pipelined", name};
            if (const std::string why = why_not_tile_pipelined(k_, *step_of(d.atom), *step_of(d.in)); !why.empty())
                report(field, "{} cannot run for the group before in the loops of {}: {}", name, where, why);
            else if (d.groups.value > 1 || k_.num_groups() < 2)
                report(field, "{} is deferred by {} of {} groups, and tiles are held for one group more", name,
                       d.groups.value, k_.num_groups());
            if (!taken.insert(d.in).second)
                report(field, "another statement is deferred to the loops of {}, too", where);
        }
    }

    /// If CTAs do not all run at once, each has one output tile, and its arena in shared memory.
    void check_grid() {
        const std::int64_t grid = k_.schedule.grid.value, at_once = k_.schedule.threads.value, groups = k_.num_groups();
        if (k_.is_dynamic() && !(k_.producer_role() && k_.has_bulk_copies()))
            report({"scheduler", ""}, "a queue of groups needs a role that copies, which asks for the next one");
        else if (k_.is_dynamic() && (possible_groups(k_) != groups ? grid > groups : grid >= groups))
            report({"scheduler", ""}, "a grid of {} blocks has one for each of {} groups: none is left in a queue",
                   grid, groups);
        if (k_.uses_stream_k())
            if (const auto cut = stream_k(k_); const auto* why = std::get_if<std::string>(&cut))
                report({"scheduler", ""}, "no groups are cut: {}", *why);
        if (grid == 0) return;
        if (!k_.in_blocks())
            report({"grid", ""}, "it has a grid of {} blocks: a CPU's threads each run whole groups", grid);
        else if (grid > at_once && !k_.arena_in_core())
            report({"grid", ""}, "a grid of {} blocks is more than the {} that have an arena in memory", grid, at_once);
        else if (grid > at_once && grid < groups)
            report({"grid", ""},
                   "a grid of {} blocks: at most the {} that run at once take groups in turn, or each of {} groups has "
                   "one",
                   grid, at_once, groups);
    }

    void check_band() {
        if (const auto fault = why_no_band(k_)) {
            report({"band", ""}, "bands of {} tiles: {}", k_.schedule.band.value, fault->why);
            if (fault->nearest > 0)
                broken_.back().nearest = fmt::format("the nearest legal width is {}", fault->nearest);
        }
    }

    void check_cluster() {
        if (const std::string why = why_no_cluster(k_); !why.empty())
            report({"cluster", axis_name(k_.schedule.cluster.value.axis)}, "{} blocks along {} are no cluster: {}",
                   k_.cluster_blocks(), axis_name(k_.schedule.cluster.value.axis), why);
    }
};

}  // namespace

std::vector<BrokenRule> rules_of_launch(const ScheduledKernel& kernel) { return LaunchRules(kernel).run(); }

}  // namespace napkin
