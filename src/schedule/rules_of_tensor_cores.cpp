// Rules about kernels on tensor cores: roles of statements, operands, rescaling, ping-pong and parts of columns.
#include "schedule/rule_report.hpp"

#include "schedule/column_parts.hpp"
#include "schedule/conditional_rescale.hpp"
#include "schedule/fragment_registers.hpp"
#include "schedule/fragments.hpp"
#include "schedule/legality.hpp"
#include "schedule/views.hpp"
#include "schedule/warpgroups.hpp"
#include "support/ranges.hpp"
#include "support/text.hpp"

namespace napkin {
namespace {

class TensorCoreRules : RuleReport {
public:
    using RuleReport::RuleReport;

    std::vector<BrokenRule> run() {
        check_tensor_cores();
        check_rescale();
        check_ping_pong();
        check_column_parts();
        return take();
    }

private:
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
            const bool is_apart = k_.is_in_registers(id) || k_.lies_as_operand(id);
            if (role ? k_.place(id).holding != *role : is_apart)
                report(place_of(id), "{} is held as {}, and can only be {}", k_.variable(id).name,
                       name(k_.place(id).holding), role ? std::string(name(*role)) : join(holdings(id), " or "));
            if (k_.variable(id).is_zero_outside && !(k_.is_operand(id) && k_.has_bulk_copies()))
                report(place_of(id),
                       "{} is read outside of its array, where only a bulk copy of an operand brings zeros",
                       k_.variable(id).name);
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
            else if (!why && (k_.atom(step).kind == AtomKind::mma ? of_atom != parts : of_atom > 1))
                report(atom_of(step), "{} has {} parts of columns, where the loop's products, and they alone, have {}",
                       name, of_atom, parts);
        }
    }

    void check_ping_pong() {
        if (k_.schedule.ping_pong && !ping_pong(k_))
            report({"ping_pong", ""},
                   "there are no turns to take: two groups of four warps, beside a role, that begin a loop's turn with "
                   "several products");
    }

    void check_rescale() {
        if (k_.schedule.rescaling == RescaleMode::always || k_.rescale) return;
        report({"rescaling", ""}, "its running maximum cannot lag: {}",
               k_.on_tensor_cores() ? std::get<std::string>(conditional_rescale(k_)) : "only one on tensor cores may");
    }

    /// Memory spaces that a variable may have if tensor cores do not use it. A panel is one where fused statements
    /// alone use it.
    [[nodiscard]] std::vector<std::string> holdings(VariableId id) const {
        ScheduledKernel in_view = k_;
        in_view.schedule.places[id].holding = MemorySpace::global;
        std::vector<std::string> out{std::string(name(MemorySpace::buffer))};
        if (in_one_fusion(k_)[at(id)]) out.emplace_back(name(MemorySpace::register_panel));
        if (may_be_packed(k_, id)) out.emplace_back(name(MemorySpace::packed_panel));
        if (may_be_view(in_view, id)) out.emplace_back(name(MemorySpace::global));
        return out;
    }
};

}  // namespace

std::vector<BrokenRule> rules_of_tensor_cores(const ScheduledKernel& kernel) { return TensorCoreRules(kernel).run(); }

}  // namespace napkin
