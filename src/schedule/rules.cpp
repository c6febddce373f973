#include "schedule/rules.hpp"

#include <fmt/format.h>

#include <map>
#include <set>

#include "schedule/cluster.hpp"
#include "schedule/column_parts.hpp"
#include "schedule/conditional_rescale.hpp"
#include "schedule/fragment_registers.hpp"
#include "schedule/fragments.hpp"
#include "schedule/gathered.hpp"
#include "schedule/legality.hpp"
#include "schedule/race_checker.hpp"
#include "schedule/stream_k.hpp"
#include "schedule/views.hpp"
#include "schedule/warpgroups.hpp"
#include "support/ids.hpp"
#include "support/ranges.hpp"
#include "support/saturate.hpp"
#include "support/text.hpp"

namespace napkin {
namespace {

/// The checks of broken_rules(), atom by atom and variable by variable.
class Rules {
public:
    explicit Rules(const ScheduledKernel& kernel)
        : k_(kernel), atoms_(atom_names(*kernel.kernel)), statements_(statement_names(*kernel.kernel)) {}

    std::vector<BrokenRule> run() {
        for (const Step& step : k_.steps)
            if (step.atom >= 0) check_atom(step);
        check_panel();
        check_fusions(k_.body);
        for (const ScheduledLoop& loop : k_.loops) check_fusions(loop.body);
        check_storage();
        check_tensor_cores();
        check_rescale();
        check_ping_pong();
        check_column_parts();
        check_tile_pipelining();
        check_prefetches();
        check_grid();
        check_cluster();
        check_parts();
        check_slots();
        if (k_.in_blocks() && broken_.empty())
            if (const std::string fault = race_text(k_); !fault.empty()) report(tensor(), "{}", fault);
        return std::move(broken_);
    }

private:
    template <class... Args>
    void report(const ScheduleField& field, fmt::format_string<Args...> format, Args&&... args) {
        broken_.push_back(
            {field, fmt::format("kernel {}: ", k_.kernel->name) + fmt::format(format, std::forward<Args>(args)...)});
    }
    // Names of the fields that rules are about.
    [[nodiscard]] ScheduleField atom_of(const Step& step) const { return {"atom", atoms_.at(at(step.atom))}; }
    [[nodiscard]] ScheduleField place_of(VariableId id) const { return {"storage", k_.variable(id).name}; }
    [[nodiscard]] ScheduleField slot_of(std::size_t step) const { return {"slot", statements_.at(step)}; }
    [[nodiscard]] ScheduleField tensor() const { return {"mma_m", ""}; }
    [[nodiscard]] const char* on_either(const char* cpu, const char* gpu) const { return k_.in_blocks() ? gpu : cpu; }
    [[nodiscard]] const std::string& axis_name(AxisId axis) const { return k_.program->diagram.axis(axis).name; }

    void check_atom(const Step& step) {
        const auto& compute = std::get<Compute>(*step.statement);
        const Atom& a = k_.atom(step);
        const std::string& name = k_.variable(compute.variable).name;
        const ScheduleField field = atom_of(step);
        const std::vector<AxisId> targets = target_axes(k_.variable(compute.variable));
        const int inner = k_.place(compute.variable).innermost;
        if (a.rows < 1 || a.vectors < 1)
            return report(field, "the block of {} has {} rows of {} vectors", name, a.rows, a.vectors);
        if (step.is_whole && a.vector_axis >= 0) report(field, "{} computes integers, which fill no vectors", name);
        if (a.vector_axis >= 0 && !a.across && (inner < 0 || targets[at(inner)] != a.vector_axis))
            report(field, "{} fills vectors along {}, along which its values do not lie beside each other", name,
                   axis_name(a.vector_axis));
        if (a.shared && !k_.in_blocks())
            report(field, "{} is shared by warps, and a CPU's thread computes alone", name);
        if (a.shared && !a.across)
            report(field, "{} is shared by warps, and only what is reduced across lanes can be", name);
        if (a.shared && k_.place(compute.variable).holding != MemorySpace::buffer)
            report(field, "{} is shared by warps, which meet in a buffer, and it is held as {}", name,
                   napkin::name(k_.place(compute.variable).holding));
        std::vector<AxisId> points = a.points, reduced = a.reduced;
        for (const AxisId axis : {a.vector_axis, a.row_axis})
            if (axis >= 0 && !k_.takes_blocks(axis, step.scope, k_.block_size(a, axis)))
                report(field,
                       "the subloop over {} has parts of {}, which blocks of {} do not cut without a remainder for {}",
                       axis_name(axis), k_.span(axis, step.scope).tile, k_.block_size(a, axis), name);
        if (a.row_axis >= 0 && a.rows > k_.extent(a.row_axis)) {
            Atom fitting = a;
            fitting.rows = static_cast<int>(k_.extent(a.row_axis));
            while (compute.reduce && fitting.rows > 1 && registers_of(fitting) > k_.unit.registers) --fitting.rows;
            report(field, "the block of {} has {} rows of {}, which has {} value{}", name, a.rows,
                   axis_name(a.row_axis), k_.extent(a.row_axis), k_.extent(a.row_axis) == 1 ? "" : "s");
            broken_.back().nearest = fmt::format("{} row{} fit{}", fitting.rows, fitting.rows == 1 ? "" : "s",
                                                 fitting.rows == 1 ? "s" : "");
            return;
        }
        if (a.vector_axis >= 0) (a.across ? reduced : points).push_back(a.vector_axis);
        if (a.row_axis >= 0) points.push_back(a.row_axis);
        check_axes(field, name, "points", points, targets);
        check_axes(field, name, "reduced axes", reduced, compute.reduce ? compute.reduce_axes : std::vector<AxisId>{});
        if (compute.reduce && !step.is_whole && registers_of(a) > k_.unit.registers) {
            const int operands = registers_of(a) - a.rows * a.vectors - 1;
            const auto plural = [](int n) { return n == 1 ? "" : "s"; };
            Atom fitting = a;
            int& fit = a.rows == 1 ? fitting.vectors : fitting.rows;
            while (fit > 1 && registers_of(fitting) > k_.unit.registers) --fit;
            if (a.rows == 1 && a.vector_axis >= 0 && a.vector_axis == k_.schedule.vector_axis)
                fit = std::min(fit, panels_that_hold());
            report(field,
                   "the block of {} takes {} registers of {}: {} row{} × {} vector{}, {} operand{} and a broadcast",
                   name, registers_of(a), k_.unit.registers, a.rows, plural(a.rows), a.vectors, plural(a.vectors),
                   operands, plural(operands));
            broken_.back().nearest = fmt::format("{} {}{} fit{}", fit, a.rows == 1 ? "vector" : "row", plural(fit),
                                                 fit == 1 ? "s" : "");
        }
        if (a.cut_axis >= 0 && (!compute.reduce || *compute.reduce != ReduceOp::sum || a.across || step.is_whole ||
                                a.cut < 1 || !contains(a.reduced, a.cut_axis)))
            report(field, "{} cannot be cut along {}: only sums are, along a loop of theirs", name, axis_name(a.cut_axis));
        else if (a.cut_axis >= 0 && a.cut >= k_.span(a.cut_axis, step.scope).tile)
            report(field, "{} is cut along {} into parts of {}, and its loop has {} values, which {}", name,
                   axis_name(a.cut_axis), a.cut, k_.span(a.cut_axis, step.scope).tile,
                   k_.span(a.cut_axis, step.scope).tile == 1
                       ? "nothing cuts"
                       : fmt::format("parts of at most {} cut", k_.span(a.cut_axis, step.scope).tile - 1));
    }

    void check_axes(const ScheduleField& field, const std::string& name, const char* what, std::vector<AxisId> have,
                    std::vector<AxisId> want) {
        sort(have);
        sort(want);
        if (have == want) return;
        const auto names = [&](const std::vector<AxisId>& axes) {
            return axes.empty() ? "none" : join(mapped<std::string>(axes, [&](AxisId a) { return axis_name(a); }), ", ");
        };
        report(field, "the loops of {} are not over its {}, which are {}: they are over {}", name, what, names(want),
               names(have));
    }

    void check_panel() {
        const AxisId axis = k_.schedule.vector_axis;
        if (axis < 0) return;
        const std::int64_t tile = k_.span(axis, 0).tile;
        int fitting = panels_that_hold();
        if (k_.schedule.panel_vectors <= fitting) return;
        // Registers must also hold a panel for each sum along the panels.
        for (const Step& step : k_.steps) {
            if (step.atom < 0 || step.is_whole || !std::get<Compute>(*step.statement).reduce) continue;
            Atom atom = k_.atom(step);
            if (atom.across || atom.vector_axis != axis) continue;
            if (!k_.schedule.rows.by_user && !atom.by_user) atom.rows = 1;
            for (atom.vectors = fitting; atom.vectors > 1 && registers_of(atom) > k_.unit.registers;) --atom.vectors;
            fitting = atom.vectors;
        }
        report({"vectors", ""}, "panels of {} vectors are longer than the {} values of {}", k_.schedule.panel_vectors,
               tile, axis_name(axis));
        broken_.back().nearest = fmt::format("{} vector{} fit{}", fitting, fitting == 1 ? "" : "s", fitting == 1 ? "s" : "");
    }
    /// Vectors that cover a tile of the panels' axis.
    [[nodiscard]] int panels_that_hold() const {
        return static_cast<int>(ceil_div(k_.span(k_.schedule.vector_axis, 0).tile, k_.lanes));
    }

    /// Fusing statements moves what stands between them to before them, and stores to behind them. Checks that this
    /// breaks no dependence.
    void check_order(const std::vector<Node>& nodes) {
        std::vector<StepId> order;
        for (const Node& node : nodes) {
            if (const StepId* s = std::get_if<StepId>(&node)) order.push_back(*s);
            if (const auto* run = std::get_if<FusedStatements>(&node)) append(order, run->steps);
        }
        for (std::size_t i = 0; i < order.size(); ++i)
            for (std::size_t j = i + 1; j < order.size(); ++j)
                if (order[i] > order[j] && must_keep_order(k_, k_.step(order[i]), k_.step(order[j]))) {
                    const Step &early = k_.step(order[i]), &late = k_.step(order[j]);
                    report(early.atom >= 0  ? atom_of(early)
                           : late.atom >= 0 ? atom_of(late)
                                            : ScheduleField{},
                           "{} would run before {}, which it comes after, as a run's statements stand together",
                           k_.variable(variable_of(early)).name, k_.variable(variable_of(late)).name);
                }
    }

    void check_fusions(const std::vector<Node>& nodes) {
        if (any_of(nodes, [](const Node& node) { return std::holds_alternative<FusedStatements>(node); }))
            check_order(nodes);
        for (const Node& node : nodes) {
            const auto* run = std::get_if<FusedStatements>(&node);
            if (!run) continue;
            std::vector<StepId> members;
            const Step& first = k_.step(run->steps.front());
            if (!runs_.insert(k_.atom(first).run).second)
                report(atom_of(first), "{} is in run {}, which a loop or another list of statements ends before it",
                       k_.variable(std::get<Compute>(*first.statement).variable).name, k_.atom(first).run);
            for (const StepId s : run->steps) {
                const Step& step = k_.step(s);
                const Atom& a = k_.atom(step);
                const std::string& name = k_.variable(std::get<Compute>(*k_.step(s).statement).variable).name;
                if (a.across || a.vector_axis < 0 || a.vector_axis != k_.schedule.vector_axis ||
                    a.vectors != k_.schedule.panel_vectors)
                    report(atom_of(step), "{} is in a run, but does not go along its panels", name);
                if (a.vector_inner)
                    report(atom_of(step), "{} is in a run, whose loop over panels is around all others", name);
                if (!may_join(k_, members, k_.step(s)))
                    report(atom_of(step), "{} reads another panel of its run", name);
                if (a.follows && (members.empty() || !may_fuse_reduction(k_, k_.step(members.back()), step)))
                    report(atom_of(step), "{} cannot ride in the loops of the statement before it", name);
                members.push_back(s);
            }
        }
    }

    void check_storage() {
        const std::vector<bool> local = in_one_fusion(k_);
        for (std::size_t v = 0; v < k_.layouts.size(); ++v) {
            const auto id = VariableId::of(v);
            const Layout& l = k_.layout(id);
            const std::string& name = k_.variable(id).name;
            if (k_.is_view(id) && !may_be_view(k_, id)) {
                if (contains(k_.outputs, k_.variable(id).array))
                    report(place_of(id), "{} cannot be written where it goes in memory: {}", name, why_not_in_place(k_, id));
                else
                    report(place_of(id), "{} cannot be read where it lies in memory", name);
            }
            if (k_.place(id).non_temporal)
                if (const std::string why = why_not_non_temporal(k_, id); !why.empty())
                    report(place_of(id), "{} cannot be written past the caches: {}", name, why);
            if (k_.is_packed(id) && !may_be_packed(k_, id))
                report(place_of(id), "{} cannot lie in panels one after the other", name);
            if (k_.is_panel(id) && !local[v])
                report(place_of(id), "{} does not live within one run, and one panel of it is held", name);
            if (k_.place(id).stages != 1 && !k_.is_operand(id))
                report(place_of(id), "{} has {} stages, and can have 1 alone: {}", name, k_.place(id).stages,
                       on_either("a CPU's loads are done when they return",
                                 "a block's loads are done before its warps go on, but those of operands"));
            if (k_.is_staged_out(id)) check_staging(id);
            if (!k_.is_held(id)) continue;
            if (l.offset < 0 || l.offset + l.count * k_.cell_values(k_.is_whole(id)) > k_.arena_values)
                report(place_of(id), "{} lies outside of the arena", name);
            for (std::size_t w = 0; w < v; ++w) check_apart(id, VariableId::of(w));
        }
    }

    /// Memory spaces that a variable may have if tensor cores do not use it. A panel is one where fused statements
    /// alone use it.
    [[nodiscard]] std::vector<std::string> holdings(VariableId id) const {
        ScheduledKernel in_view = k_;
        in_view.schedule.places[id].holding = MemorySpace::view;
        std::vector<std::string> out{std::string(name(MemorySpace::buffer))};
        if (in_one_fusion(k_)[at(id)]) out.emplace_back(name(MemorySpace::panel));
        if (may_be_packed(k_, id)) out.emplace_back(name(MemorySpace::packed));
        if (may_be_view(in_view, id)) out.emplace_back(name(MemorySpace::view));
        return out;
    }

    void check_staging(VariableId id) {
        const auto boxes = k_.on_tensor_cores() ? staging_tiles_of(k_, id) : std::nullopt;
        const std::string& name = k_.variable(id).name;
        if (!boxes)
            return report(place_of(id), "{} cannot be stored in boxes of 16 rows and 128 bytes by bulk copies", name);
        if (boxes->count % k_.place(id).boxes != 0)
            report(place_of(id),
                   "{} is stored in {} boxes of 128 bytes beside each other, of which {} at a time are no whole part",
                   name, boxes->count, k_.place(id).boxes);
    }

    void check_tensor_cores() {
        const MmaRoles roles = k_.on_tensor_cores() ? mma_roles(k_) : MmaRoles{};
        if (!roles.refusal.empty()) return report(tensor(), "it cannot run on the tensor cores: {}", roles.refusal);
        for (const Step& step : k_.steps) {
            if (step.atom < 0) continue;
            const AtomKind kind = k_.on_tensor_cores() ? roles.atoms[at(step.atom)] : AtomKind::block;
            if (k_.atom(step).kind != kind)
                report(atom_of(step), "{} is a {} atom, and can only be a {} one",
                       k_.variable(std::get<Compute>(*step.statement).variable).name, name(k_.atom(step).kind), name(kind));
        }
        std::map<int, int> stages;  // by scope
        for (const VariableId id : k_.layouts.ids()) {
            const auto role = k_.on_tensor_cores() ? roles.places[id] : std::nullopt;
            const bool is_apart = k_.is_in_registers(id) || k_.is_operand(id);
            if (role ? k_.place(id).holding != *role : is_apart)
                report(place_of(id), "{} is held as {}, and can only be {}", k_.variable(id).name,
                       name(k_.place(id).holding), role ? std::string(name(*role)) : join(holdings(id), " or "));
            if (!k_.is_operand(id)) continue;
            const ScopeId scope = k_.layout(id).scope;
            const int n = k_.place(id).stages;
            if (scope == 0 && n != 1 && (n != 2 || !k_.producer_role()))
                report(place_of(id),
                       "{} is loaded once a group, and has {} stages; a role may load it for the next group into a "
                       "second one",
                       k_.variable(id).name, n);
            if (const auto [first, is_new] = stages.try_emplace(scope, n); !is_new && first->second != n)
                report(place_of(id), "{} has {} stages beside another operand's {} in the same loop",
                       k_.variable(id).name, n, first->second);
        }
        if (spilled_registers(k_) > 0 && !may_spill(k_))
            report(tensor(), "its fragments take {} registers of {} of a thread", most_registers(k_), k_.unit.registers);
        if (k_.on_tensor_cores() && !k_.arena_in_core())
            report(tensor(), "its operands take more than a block's shared memory");
    }

    /// All products of a kernel are computed in the same number of parts.
    void check_column_parts() {
        std::int64_t parts = 1;
        for (const Atom& atom : k_.schedule.atoms) parts = std::max<std::int64_t>(parts, atom.parts);
        if (parts == 1) return;
        const auto found = columns_in_parts(k_, parts);
        for (const Step& step : k_.steps) {
            if (step.atom < 0) continue;
            const std::string& name = k_.variable(variable_of(step)).name;
            const int of_atom = k_.atom(step).parts;
            if (const auto* why = std::get_if<std::string>(&found); why && of_atom > 1)
                report(atom_of(step), "the columns of {} cannot be computed in {} parts: {}", name, of_atom, *why);
            else if (!why && (k_.atom(step).kind == AtomKind::matrix ? of_atom != parts : of_atom > 1))
                report(atom_of(step), "{} has {} parts of columns, where the loop's products, and they alone, have {}",
                       name, of_atom, parts);
        }
    }

    void check_ping_pong() {
        if (k_.schedule.turns.value > 0 && !ping_pong(k_))
            report({"ping_pong", ""},
                   "there are no turns to take: two groups of four warps, beside a role, that begin a loop's turn with "
                   "several products");
    }

    void check_rescale() {
        if (k_.schedule.lazy.value == 0 || k_.lazy) return;
        report({"rescaling", ""}, "its running maximum cannot lag: {}",
               k_.on_tensor_cores() ? std::get<std::string>(conditional_rescale(k_)) : "only one on tensor cores may");
    }

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
        if (split > chunks)
            report(field, "its stream is cut in {} parts, but {} has {} chunk{} of {}: {} part{} fit", split,
                   axis_name(parts.axis), chunks, chunks == 1 ? "" : "s", size, chunks, chunks == 1 ? "" : "s");
    }

    /// Positions in slots need producer warps. Without them a core or a CTA runs statements in program order.
    void check_slots() {
        check_roles();
        for (const std::string& fault : slot_faults(k_)) report(slot_in(fault), "{}", fault);
        for (const auto& [statement, slot] : k_.schedule.slots)
            if ((slot.position != 0 || slot.ahead != 0) && !k_.producer_role())
                report(slot_of(at(statement)),
                       "{} has order {}, {} ahead: {} runs statements one after the other, as they stand",
                       statements_.at(at(statement)), slot.position, slot.ahead,
                       on_either("a CPU's core", "a GPU's block"));
    }

    /// The slot of the statement that the fault names first, among statements with a position.
    [[nodiscard]] ScheduleField slot_in(const std::string& fault) const {
        ScheduleField first{"slot", ""};
        std::size_t begin = fault.size();
        for (const auto& [statement, slot] : k_.schedule.slots) {
            if (slot.position == 0 && slot.ahead == 0) continue;
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
            else if (const Atom& atom = k_.atom(*in); is_blocks && p.ahead.value * atom.rows >= k_.extent(atom.row_axis))
                report({"prefetch", name},
                       "{} is fetched {} block{} of {} rows ahead, and it has {} rows: at most {} can be", name,
                       p.ahead.value, p.ahead.value == 1 ? "" : "s", atom.rows, k_.extent(atom.row_axis),
                       (k_.extent(atom.row_axis) - 1) / atom.rows);
            if (p.cache < 1 || p.cache > 2)
                report({"prefetch", name}, "{} is fetched into cache {}, and caches of one core are 1 and 2", name, p.cache);
            if (!is_blocks && p.ahead.value >= k_.num_groups())
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
        else if (k_.is_dynamic() && grid >= groups)
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

    void check_cluster() {
        if (const std::string why = why_no_cluster(k_); !why.empty())
            report({"cluster", axis_name(k_.schedule.cluster_axis)}, "{} blocks along {} are no cluster: {}",
                   k_.cluster_blocks(), axis_name(k_.schedule.cluster_axis), why);
    }

    void check_apart(VariableId a, VariableId b) {
        const Layout &x = k_.layout(a), &y = k_.layout(b);
        if (!k_.is_held(b) || x.over == b || y.over == a) return;
        const auto end = [&](VariableId id) {
            return k_.layout(id).offset + k_.layout(id).count * k_.cell_values(k_.is_whole(id));
        };
        if (k_.live_together(a, b) && x.offset < end(b) && y.offset < end(a))
            report(place_of(a), "{} and {} share memory while both live", k_.variable(a).name, k_.variable(b).name);
    }

    const ScheduledKernel& k_;
    const std::vector<std::string> atoms_, statements_;
    std::set<int> runs_;  ///< numbers of the runs that are checked
    std::vector<BrokenRule> broken_;
};

}  // namespace

std::vector<BrokenRule> broken_rules(const ScheduledKernel& kernel) { return Rules(kernel).run(); }

std::vector<std::string> verify(const ScheduledKernel& kernel) {
    return mapped<std::string>(broken_rules(kernel), [&](const BrokenRule& rule) {
        return rule.nearest.empty() ? rule.message : rule.message + "; " + rule.nearest;
    });
}

}  // namespace napkin
