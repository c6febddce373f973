// What a step becomes: copies, computation, and the waits and releases around it.
#include "lower/lower_loops.hpp"
#include "schedule/fragments.hpp"
#include "support/ids.hpp"
#include "support/ranges.hpp"

namespace napkin::lower {

TileRef RoleLowering::tile_of(const Step& load, int ahead) const {
    return {kernel_.operand_loaded(load), {load.scope, ahead}};
}

/// The producer's part of a step. It goes through iterations in order, whatever the consumer runs ahead.
void RoleLowering::copies(const Step& load, Block& out) {
    if (!kernel_.loads_operand(load)) return;
    if (load.acquires) out.emplace_back(Wait{{BarrierKind::empty, tile_of(load, 0)}});
    out.emplace_back(Copy{kernel_.number(load), Copy::bulk, tile_of(load, 0)});
}

void RoleLowering::step(const Step& s, Block& out) {
    if (s.synchronizes) out.emplace_back(Sync{});
    if (kernel_.loads_operand(s)) return wait_for_operand(s, out);
    if (std::holds_alternative<Load>(*s.statement)) return load(s, out);
    if (std::holds_alternative<Store>(*s.statement)) return store(s, out);
    if (std::holds_alternative<napkin::Init>(*s.statement)) return void(out.emplace_back(Init{kernel_.number(s)}));
    compute(s, out);
}

void RoleLowering::wait_for_operand(const Step& s, Block& out) {
    const TileRef tile = tile_of(s, s.ahead + shift_);
    if (s.scope == 0 && !kernel_.producer_role())
        out.emplace_back(Copy{kernel_.number(s), kernel_.has_bulk_copies() ? Copy::bulk : Copy::by_threads, tile,
                              kernel_.has_bulk_copies()});
    if (!in_at_) out.emplace_back(UseStage{tile});
    if (s.waits && kernel_.has_bulk_copies()) out.emplace_back(Wait{{BarrierKind::full, tile}});
    if (s.waits && !kernel_.has_bulk_copies()) out.emplace_back(WaitCopies{s.copies_behind});
    if (s.synchronizes_behind) out.emplace_back(Sync{});
}

void RoleLowering::load(const Step& s, Block& out) {
    const VariableId v = variable_of(s);
    if (s.stays || (kernel_.is_view(v) && kernel_.facts(v).is_only_gathered) || kernel_.layout(v).in_runs) return;
    if (!kernel_.is_read_by_threads(v))
        out.emplace_back(Copy{.step = kernel_.number(s), .way = Copy::load, .has_barrier_inside = s.synchronizes_inside});
    else if (is_read_by_rows(kernel_, v))
        out.emplace_back(Copy{kernel_.number(s), Copy::load_rows});
}

void RoleLowering::store(const Step& s, Block& out) {
    const VariableId v = variable_of(s);
    if (kernel_.is_view(v)) return;  // its statement wrote it where it goes
    if (!kernel_.is_staged_out(v)) return void(out.emplace_back(Copy{kernel_.number(s), Copy::store}));
    ForStaging each{kernel_.number(s), {}};
    if (s.staging_behind >= 0) each.body.emplace_back(WaitStaging{s.staging_behind});
    each.body.emplace_back(Copy{kernel_.number(s), Copy::to_staging});
    if (s.fences_proxy) each.body.emplace_back(FenceProxy{});
    each.body.emplace_back(Copy{kernel_.number(s), Copy::from_staging});
    out.emplace_back(std::move(each));
}

void RoleLowering::compute(const Step& s, Block& out) {
    const StepId number = kernel_.number(s);
    if (kernel_.atom(s).follows) return;
    if (kernel_.rescale && (kernel_.rescale->moves(number) || kernel_.rescale->sum == number)) return;
    const Iteration iteration{s.scope, s.ahead + shift_};
    if (kernel_.rescale && kernel_.rescale->weights == number)
        out.emplace_back(Rescale{shift_ < 0, iteration});
    else if (kernel_.atom(s).kind == AtomKind::mma)
        out.emplace_back(Mma{number, iteration});
    else
        out.emplace_back(Map{number, s.synchronizes_inside});
    if (kernel_.is_written(variable_of(s)) && is_read_beside(s)) out.emplace_back(FenceProxy{});
}

/// A product that runs beside its warps reads what the statement writes to shared memory.
bool RoleLowering::is_read_beside(const Step& s) const {
    return any_of(kernel_.steps,
                  [&](const Step& other) { return reads(other, variable_of(s)) && runs_beside(kernel_, other); });
}

void RoleLowering::panels(const FusedStatements& run, Block& out) {
    ForPanels each{run.steps.front(), {}};
    for (const StepId s : run.steps) compute(kernel_.step(s), each.body);
    out.emplace_back(std::move(each));
}

/// Insert_barriers: a wait for products, and the releases of tiles that nothing reads behind it.
void RoleLowering::wait_group(const WaitGroup& settle, Block& out, Arrive::When when, LoopId loop) {
    if (settle.pending >= 0 || !settle.results.empty()) out.emplace_back(WaitProducts{settle.pending, settle.results});
    for (const Release& freed : settle.frees) {
        const TileRef tile{freed.operand, {kernel_.layout(freed.operand).scope, freed.ahead + shift_}};
        if (!freed.is_left_out) out.emplace_back(Arrive{{BarrierKind::empty, tile}, when, loop, freed.ahead < 0});
        if (freed.ahead < 0) out.emplace_back(Defer{freed.operand, false});
    }
}

}  // namespace napkin::lower
