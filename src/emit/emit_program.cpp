// Statements of the kernel program but for its loops: copies, computation and synchronization.
#include "emit/emit_program.hpp"

#include <fmt/format.h>

#include "emit/emit_blocks.hpp"
#include "emit/emit_fragment.hpp"
#include "emit/emit_header.hpp"
#include "emit/emit_places.hpp"
#include "emit/emit_write.hpp"
#include "support/ids.hpp"
#include "support/ranges.hpp"
#include "support/result.hpp"

namespace napkin::writers {

ProgramPrinter::ProgramPrinter(Frame& frame, bool is_producer) : frame_(frame), is_producer_(is_producer) {}

Lines ProgramPrinter::code(const lower::Block& statements) {
    print(statements);
    return std::exchange(out_, Lines());
}

void ProgramPrinter::print(const lower::Block& statements) {
    for (const lower::Statement& statement : statements)
        std::visit([&](const auto& kind) { print(kind); }, statement.kind);
}

std::string ProgramPrinter::about(const char* what, const Step& step) const {
    const VariableId v = variable_of(step);
    const Variable& variable = frame_.variable(v);
    return fmt::format(
        "// {} {}", what,
        to_string(read(v, variable.gathers.empty() ? variable.dims : variable.gathers), expression_names(frame_)));
}

const Step& ProgramPrinter::load_of(VariableId operand) const {
    return *find_if(frame_.steps, [&](const Step& s) { return frame_.operand_loaded(s) == operand; });
}

// ---- copies
// ------------------------------------------------------------

/// One thread asks for the tile, beside which all threads of the producer copy rows of another one.
bool ProgramPrinter::is_by_one_of_many(const lower::Copy& copy) const {
    return is_producer_ && copies_single_rows(frame_) && !frame_.shape(copy.tile.operand).tile->is_of_single_rows;
}

void ProgramPrinter::print(const lower::Copy& copy) {
    using lower::Copy;
    if (copy.way == Copy::leave_states) return write_states_left(frame_, out_);
    const Step& step = frame_.step(copy.step);
    switch (copy.way) {
        case Copy::bulk:
        case Copy::by_threads:
            if (!is_producer_) out_(about("load", step));
            if (copy.is_elected) out_.open("if (thread_of_block() == 0)");
            if (is_by_one_of_many(copy)) out_.open("if (copier_ == 0)");
            write_copy(frame_, out_, copy.tile.operand, step.scope,
                       iteration_names(frame_, copy.tile.iteration.scope, copy.tile.iteration.offset).stage);
            if (is_by_one_of_many(copy)) out_.close();
            if (copy.is_elected) out_.close();
            return;
        case Copy::load:
        case Copy::load_rows:
            out_(about("load", step));
            return copy.way == Copy::load ? write_load(frame_, out_, step) : write_load_of_rows(frame_, out_, step);
        case Copy::store:
            if (frame_.shape(variable_of(step)).passes_by_rounds) return;
            out_(about("store", step));
            if (frame_.is_in_accumulators(variable_of(step))) {
                BlocksFunction function = function_of_sums_to_memory(
                    frame_, frame_.step(*frame_.shape(variable_of(step)).added_by));
                functions_.append(std::move(function.code));
                return out_(function.call);
            }
            return frame_.is_in_registers(variable_of(step))
                       ? write_store_of_fragments(frame_, out_, variable_of(step), step.scope)
                       : write_store(frame_, out_, variable_of(step), step.scope);
        case Copy::to_staging: return write_to_staging(frame_, out_, step);
        case Copy::from_staging: return write_from_staging(frame_, out_, step);
        case Copy::leave_states: return;
    }
}

void ProgramPrinter::print(const lower::CopyAhead& copies) {
    const ScheduledLoop& loop = frame_.loops[copies.loop];
    const std::vector<VariableId> operands = operands_of(frame_, loop.scope);
    const std::string axis = axis_name(copies.loop), fill = "fill_" + axis + "_", next = axis + "_next_",
                      stage = iteration_names(frame_, loop.scope).stage;
    const int stages = frame_.place(operands.front()).stages;
    if (copies.is_first) return first_copies(loop);
    const std::string more = frame_.has_bulk_copies() ? fmt::format("if ({} < {}) ", next, range(copies.loop).end) : "";
    out_(fmt::format("{}{}({}, {});", more, fill, next,
                     stages == 1 ? "0" : fmt::format("{0} == 0 ? {1} : {0} - 1", stage, stages - 1)));
    out_(fmt::format("{} += {};", next, tile_of(copies.loop)));
}

/// Declares the function that copies an iteration's operands, and calls it for the first iterations.
void ProgramPrinter::first_copies(const ScheduledLoop& loop) {
    const LoopId id = LoopId::of(&loop - frame_.loops.data());
    const std::vector<VariableId> operands = operands_of(frame_, loop.scope);
    const std::string axis = axis_name(id), fill = "fill_" + axis + "_", next = axis + "_next_",
                      stage = iteration_names(frame_, loop.scope).stage;
    const bool is_loop = is_repeated(frame_, loop), by_one = frame_.has_bulk_copies();
    const int stages = frame_.place(operands.front()).stages;
    const Range& bounds = range(id);
    out_(fmt::format("// {} for the tiles of a turn to come", by_one ? "one thread asks" : "all threads ask"));
    out_.open(fmt::format("const auto {} = [&]([[maybe_unused]] Index {}, [[maybe_unused]] unsigned stage_)", fill, axis));
    if (by_one) out_("if (thread_of_block() != 0) return;");
    for (const VariableId v : operands)
        write_copy(frame_, out_, v, loop.scope, stages > 1 ? "stage_" : "0",
                   is_loop ? fmt::format("{} < {}", axis, bounds.end) : "");
    out_.close(";");
    if (!is_loop) return out_(fmt::format("{}({}, {});", fill, "0", stage));
    out_(fmt::format("Index {} = {};", next, bounds.begin));
    // Without bulk copies, threads count a copy past the end as well, but copy nothing.
    const std::string more = by_one ? fmt::format(" && {} < {}", next, bounds.end) : "";
    if (stages > 1)
        out_(fmt::format(
            "for (unsigned t_ = 0; t_ < {0}{2}; ++t_, {1} += {3}) {4}({1}, {5} + t_ < {6} ? {5} + t_ : {5} + "
            "t_ - {6});",
            stages - 1, next, more, tile_of(id), fill, stage, stages));
}

void ProgramPrinter::print(const lower::PrefetchTiles&) {
    write_tiles_ahead(frame_, out_), write_fetches(frame_, out_);
}

void ProgramPrinter::print(const lower::LoadFirstRows& load) {
    write_first_rows(frame_, out_, frame_.step(load.step), range(load.loop).begin);
}

// ---- computation
// ------------------------------------------------------------

void ProgramPrinter::print(const lower::Init& init) {
    const auto& statement = std::get<Init>(*frame_.step(init.step).statement);
    frame_.is_in_registers(statement.variable) ? write_init_of_fragments(frame_, out_, statement)
                                               : write_init(frame_, out_, statement);
    if (frame_.rescale && frame_.rescale->maximum == statement.variable) write_init_of_rescale(frame_, out_);
}

void ProgramPrinter::print(const lower::Mma& product) {
    const Step& step = frame_.step(product.step);
    out_(fmt::format("// {}", equation(frame_, std::get<Compute>(*step.statement))));
    write_product(frame_, out_, step, instructions_);
}

void ProgramPrinter::print(const lower::Map& map) {
    const Step& step = frame_.step(map.step);
    if (frame_.atom(step).kind == AtomKind::block) return compute_in_blocks(step);
    out_(fmt::format("// {}", equation(frame_, std::get<Compute>(*step.statement))));
    frame_.is_written(variable_of(step)) ? write_tile(frame_, out_, step) : write_fragment(frame_, out_, step);
}

/// A statement whose loops stand in a function of their own.
void ProgramPrinter::compute_in_blocks(const Step& step) {
    if (step.is_tile_pipelined()) {
        write_target(frame_, out_, variable_of(step), step.scope);
        out_(fmt::format("// {}: beside the next group", equation(frame_, std::get<Compute>(*step.statement))));
        for (const auto& [id, before] : frame_.before)
            if (variable_of(step) == id || reads(step, id)) out_(fmt::format("{} = {};", before, frame_.name(id)));
        return;
    }
    if ((frame_.is_view(variable_of(step)) && !frame_.layout(variable_of(step)).in_runs) ||
        frame_.shape(variable_of(step)).passes_by_rounds)
        write_target(frame_, out_, variable_of(step), step.scope);
    if (step.deferred < 0) return call_of_blocks(step);
    const Step& before = frame_.step(step.deferred);
    out_.open(fmt::format("if ({})", frame_.before.at(variable_of(before))));
    call_of_blocks(step, &before);
    out_.close();
    out_.open("else");
    call_of_blocks(step);
    out_.close();
}

/// The call of the statement's blocks, whose function stands above the kernel. `before`: a statement of the previous
/// group, in the same loops.
void ProgramPrinter::call_of_blocks(const Step& step, const Step* before) {
    BlocksFunction function = function_of_blocks(frame_, step, before);
    functions_.append(std::move(function.code));
    out_(function.call);
}

void ProgramPrinter::print(const lower::Rescale& rescale) {
    write_rescaled_weights(frame_, out_, rescale.is_first, instructions_);
}
void ProgramPrinter::print(const lower::SumRows& sums) { write_sums_of_rows(frame_, out_, sums.scope); }
void ProgramPrinter::print(const lower::Round& round) { write_rounded(frame_, out_, round.scope, round.ahead); }
void ProgramPrinter::print(const lower::FinishPipelined& finish) {
    const Step& step = frame_.step(finish.step);
    out_.open(fmt::format("if ({})", frame_.before.at(variable_of(step))));
    call_of_blocks(step);
    out_.close();
}
void ProgramPrinter::print(const lower::MergeStates&) { write_merged_states(frame_, out_); }

// ---- synchronization
// ------------------------------------------------------------

void ProgramPrinter::print(const lower::InitBarriers&) { write_barriers(frame_, out_); }

std::string ProgramPrinter::barrier_text(const lower::BarrierRef& barrier) const {
    switch (barrier.kind) {
        case lower::BarrierKind::tile_full: return "queue_full(queue, queue_iteration_)";
        case lower::BarrierKind::tile_empty: return "queue_empty(queue, queue_iteration_)";
        default: break;
    }
    const auto& [operand, iteration] = barrier.tile;
    return operand_barrier(frame_, operand, barrier.kind == lower::BarrierKind::empty,
                           iteration_names(frame_, iteration.scope, iteration.offset).stage);
}

void ProgramPrinter::print(const lower::Wait& wait) {
    const bool is_empty = wait.barrier.kind == lower::BarrierKind::empty ||
                          wait.barrier.kind == lower::BarrierKind::tile_empty;
    const auto& [operand, iteration] = wait.barrier.tile;
    if (in_at_ && !is_empty) out_(about("wait for", load_of(operand)));
    const std::string phase = operand < 0 ? "queue_phase(queue_iteration_)"
                                          : iteration_names(frame_, iteration.scope, iteration.offset).phase;
    out_(fmt::format("wait_phase({}, {}{});", barrier_text(wait.barrier), phase, is_empty ? " ^ 1" : ""));
    // Other than bulk copies, those of threads are of the proxy through which tensor cores do not read.
    if (wait.barrier.kind == lower::BarrierKind::full && frame_.shape(operand).tile->is_of_single_rows)
        out_("fence_proxy_async();");
}

/// One thread tells its own CTA's producer. In a cluster, one thread for each of its CTAs tells that CTA's.
void ProgramPrinter::print(const lower::Arrive& arrive) {
    using lower::Arrive;
    const std::string barrier = barrier_text(arrive.barrier);
    if (arrive.barrier.kind == lower::BarrierKind::tile_full) return out_(fmt::format("arrive({});", barrier));
    if (arrive.barrier.kind == lower::BarrierKind::tile_empty)
        return out_(fmt::format("if (lane_of_thread() == 0) arrive({});", barrier));
    const VariableId v = arrive.barrier.tile.operand;
    std::string condition;
    if (arrive.when == Arrive::no_k_block)
        condition = fmt::format("{} >= {} && ", range(arrive.loop).begin, range(arrive.loop).end);
    if (arrive.when == Arrive::last_part) condition = fmt::format("part_ == {} && ", frame_.column_parts->parts - 1);
    if (arrive.if_deferred) condition += deferred_release_name(frame_, v) + " && ";
    if (frame_.shape(v).part)
        out_(
            fmt::format("if ({}lane_of_thread() < {}) arrive_at({}, lane_of_thread());  // {} is free, for all of the "
                        "cluster",
                        condition, frame_.cluster_blocks(), barrier, frame_.name(v)));
    else
        out_(fmt::format("if ({}lane_of_thread() == 0) arrive({});  // {} is free", condition, barrier, frame_.name(v)));
}

void ProgramPrinter::print(const lower::Defer& defer) {
    out_(fmt::format("{} = {};", deferred_release_name(frame_, defer.operand), defer.value));
}
void ProgramPrinter::print(const lower::WaitCopies& wait) { out_(fmt::format("wait_copies<{}>();", wait.outstanding)); }
void ProgramPrinter::print(const lower::WaitProducts& wait) {
    if (wait.outstanding >= 0) out_(fmt::format("wgmma_wait<{}>();", wait.outstanding));
    for (const VariableId v : wait.results) out_(fmt::format("pin({});", frame_.name(v)));
}
void ProgramPrinter::print(const lower::WaitStaging& wait) {
    out_(fmt::format("wait_staging<{}>();", wait.outstanding));
}
void ProgramPrinter::print(const lower::FenceProxy&) { out_("fence_proxy_async();"); }
void ProgramPrinter::print(const lower::FenceStores&) { out_("fence_stores();"); }
void ProgramPrinter::print(const lower::Sync&) { out_("sync();"); }
void ProgramPrinter::print(const lower::CtaBarrier&) { out_("__syncthreads();"); }
void ProgramPrinter::print(const lower::ClusterBarrier&) { out_("cluster_sync();"); }

void ProgramPrinter::print(const lower::NamedBarrier& barrier) {
    using lower::NamedBarrier;
    const std::int64_t groups = frame_.schedule.warps.value / frame_.unit.matrix.warps_together();
    if (barrier.what == NamedBarrier::start)
        out_(fmt::format("if ({} == {}) pass_ping_pong(0);", warpgroup_text(frame_), groups - 1));
    else if (barrier.what == NamedBarrier::wait)
        out_(fmt::format("wait_ping_pong({});", warpgroup_text(frame_)));
    else
        out_(fmt::format("pass_ping_pong(({} + 1) % {});", warpgroup_text(frame_), groups));
}

/// It is asked for together with the last copies of the tile, so that the answer is there when the next copies are due.
/// A block that asks earlier has less to do than others in the end.
void ProgramPrinter::print(const lower::AskTile& ask) {
    const std::string condition = ask.is_with_last_copies ? fmt::format("{} + {} >= {}", axis_name(ask.loop),
                                                                        tile_of(ask.loop), range(ask.loop).end)
                                                          : "!has_asked_";
    out_(fmt::format("if ({}) next_group_ = claim_tile(scratch + {}, {}), has_asked_ = true;", condition,
                     whole_of_tiles(frame_, "range_bytes", lower::SizeFormulas(frame_.lowered).range_bytes()),
                     num_tiles_text(frame_)));
    if (!ask.is_with_last_copies) out_("has_asked_ = false;");
}
void ProgramPrinter::print(const lower::WriteTile&) {
    out_("group = push_tile(queue, queue_iteration_, next_group_);");
}
void ProgramPrinter::print(const lower::ReadTile&) { out_("group = pop_tile(queue, queue_iteration_);"); }

void ProgramPrinter::print(const lower::ClaimStates&) { write_claim(frame_, out_); }
void ProgramPrinter::print(const lower::SignalStates&) { out_("publish_partial(word_);"); }
void ProgramPrinter::print(const lower::WaitStates&) { out_("wait_partial(word_);"); }

}  // namespace napkin::writers
