#include "schedule/accesses.hpp"

#include <fmt/format.h>

#include "schedule/fragments.hpp"
#include "support/ids.hpp"
#include "support/ranges.hpp"

namespace napkin {
namespace {

class Touching {
public:
    explicit Touching(const ScheduledKernel& kernel) : kernel_(kernel) {}

    Accesses run() {
        out_.operands.resize(kernel_.layouts.size());
        out_.steps.reserve(kernel_.steps.size()), out_.areas.reserve(kernel_.layouts.size());
        for (const Step& s : kernel_.steps) {
            out_.steps.push_back(of(s));
            if (kernel_.on_tensor_cores()) own(out_.steps.back(), s);
        }
        for (MemoryRegion& area : out_.areas) area.meets.reserve(out_.areas.size());
        for (MemoryRegion& area : out_.areas)
            for (std::size_t other = 0; other < out_.areas.size(); ++other)
                if (meet(area, out_.areas[other])) area.meets.push_back(static_cast<int>(other));
        return std::move(out_);
    }

private:
    static bool meet(const MemoryRegion& a, const MemoryRegion& b) {
        return a.array == b.array && (a.array >= 0 || (a.begin < b.end && b.begin < a.end));
    }

    int add(MemoryRegion area) {
        const auto found = find_if(out_.areas, [&](const MemoryRegion& other) {
            return other.array == area.array && other.operand == area.operand && other.begin == area.begin &&
                   other.end == area.end;
        });
        if (found != out_.areas.end()) return static_cast<int>(found - out_.areas.begin());
        out_.areas.push_back(std::move(area));
        return static_cast<int>(out_.areas.size()) - 1;
    }
    int tile_of(VariableId v) {
        const Layout& l = kernel_.layout(v);
        return add({v, MemoryRegion::Part::tile, -1, kernel_.is_operand(v) ? v : VariableId(), l.offset,
                    l.offset + l.count * kernel_.cell_values(kernel_.is_whole(v))});
    }
    int array_of(VariableId v) {
        const ArrayId array = kernel_.variable(v).array;
        return add({v, MemoryRegion::Part::memory, array});
    }
    int partials_of(const Step& step) {
        return add({variable_of(step), MemoryRegion::Part::partials, -1, -1, kernel_.partials_offset,
                    kernel_.partials_offset + kernel_.partials(step)});
    }

    /// Operand tiles are excluded: the race checker follows them by events of their own.
    void in_arena(std::vector<MemoryAccess>& out, VariableId v, bool writes) {
        if (kernel_.is_held(v) && !kernel_.is_operand(v)) out.push_back({tile_of(v), writes});
    }
    void read_all(std::vector<MemoryAccess>& out, const Expr& e) {
        visit(e, [&](const Expr& node) {
            if (const Read* r = as<Read>(node)) read(out, r->variable());
        });
    }
    void read(std::vector<MemoryAccess>& out, VariableId v) {
        in_arena(out, v, false);
        if (kernel_.is_view(v)) out.push_back({array_of(v), false});
    }

    StepAccesses of(const Step& step) {
        StepAccesses out;
        if (const auto* load = std::get_if<Load>(step.statement)) of_load(out, step, load->variable);
        // The statement that computes a view stores it.
        if (const auto* store = std::get_if<Store>(step.statement); store && !kernel_.is_view(store->variable)) {
            in_arena(out.first, store->variable, false);
            // Threads store their registers to elements that no other thread stores. The store counts only if the
            // kernel loads the array as well.
            if (!kernel_.is_in_registers(store->variable) ||
                contains(kernel_.inputs, kernel_.variable(store->variable).array))
                out.first.push_back({array_of(store->variable), true});
        }
        if (const auto* init = std::get_if<Init>(step.statement)) in_arena(out.first, init->variable, true);
        if (const auto* compute = std::get_if<Compute>(step.statement)) of_compute(out, step, *compute);
        return out;
    }

    void own(StepAccesses& out, const Step& s) {
        out.runs_beside = runs_beside(kernel_, s);
        const auto add_registers = [&](VariableId v) {
            if (kernel_.is_in_registers(v)) out.registers.push_back(v);
        };
        const auto* compute = std::get_if<Compute>(s.statement);
        if (!compute) {
            add_registers(variable_of(s));
            if (std::holds_alternative<Store>(*s.statement) && kernel_.is_staged_out(variable_of(s)))
                if (const auto boxes = staging_tiles_of(kernel_, variable_of(s)))
                    out.boxes = boxes->count;  // none: the rules refuse them
            return;
        }
        const bool in_place = adds_in_place(*compute);
        for (const Read* r : s.reads) {
            if (!out.runs_beside || !in_place || r->variable() != compute->variable) add_registers(r->variable());
            if (kernel_.is_operand(r->variable())) out.operands.push_back(r->variable());
        }
        // A wgmma reads the registers of its rounded factor until it completes. Counting its result as accessed makes
        // the warps wait for the product before.
        const bool rounds = out.runs_beside && any_of(s.reads, [&](const Read* r) {
                                return r->variable() != compute->variable && kernel_.is_in_registers(r->variable());
                            });
        if (!out.runs_beside || !in_place || rounds) add_registers(compute->variable);
    }

    void of_load(StepAccesses& out, const Step& step, VariableId v) {
        if (kernel_.is_operand(v)) out_.operands[v] = {tile_of(v), array_of(v)};
        if (kernel_.is_operand(v) || step.stays || kernel_.layout(v).in_runs) return;
        // The first part writes zeros, the second copies what lies inside the array. Different threads may do the two.
        out.has_parts = kernel_.facts(v).is_cut;
        if (out.has_parts) in_arena(out.first, v, true);
        std::vector<MemoryAccess>& copies = out.has_parts ? out.second : out.first;
        in_arena(copies, v, true);
        copies.push_back({array_of(v), false});
        for (const Index& index : kernel_.variable(v).gathers)
            for (const VariableId read_by : read_variables(index.value())) {
                in_arena(copies, read_by, false);
                copies.push_back({array_of(read_by), false});
            }
    }

    void of_compute(StepAccesses& out, const Step& step, const Compute& compute) {
        if (kernel_.partials(step) > 0) {
            // Each warp stores partials. Then each warp combines the partials of all warps into some of the result.
            out.has_parts = true;
            out.first.push_back({partials_of(step), true});
            read_all(out.first, compute.body);
            out.second.push_back({partials_of(step), false});
            in_arena(out.second, compute.variable, true);
            if (compute.carry) read_all(out.second, compute.carry);
            return;
        }
        in_arena(out.first, compute.variable, true);
        // Runs are stored to elements of their own, of an array that the kernel does not load.
        if (kernel_.is_view(compute.variable) && !kernel_.layout(compute.variable).in_runs)
            out.first.push_back({array_of(compute.variable), true});
        for (const Read* r : step.reads) read(out.first, r->variable());
    }

    const ScheduledKernel& kernel_;
    Accesses out_;
};

}  // namespace

std::string name_of(const ScheduledKernel& kernel, const MemoryRegion& area) {
    const std::string& variable = kernel.variable(area.variable).name;
    switch (area.part) {
        case MemoryRegion::Part::tile: return variable;
        case MemoryRegion::Part::memory: return fmt::format("{} in memory", variable);
        case MemoryRegion::Part::partials: return fmt::format("the parts of {}", variable);
    }
    return "";
}

Accesses accesses_of(const ScheduledKernel& kernel) { return Touching(kernel).run(); }

}  // namespace napkin
