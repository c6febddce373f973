#include "lower/lower_loops.hpp"

#include <algorithm>
#include <set>
#include <utility>

#include "schedule/fragments.hpp"
#include "schedule/k_block_ranges.hpp"
#include "support/ids.hpp"
#include "support/ranges.hpp"

namespace napkin::lower {
namespace {

bool is_load(const Step& step) { return std::holds_alternative<Load>(*step.statement); }

/// Its K blocks begin or end where masks, a part of the stream or a share of it say.
bool is_bounded(const ScheduledKernel& kernel, const ScheduledLoop& loop, bool in_shares) {
    return runs_a_part(kernel, loop) || in_shares || !loop.loop->support.empty() || is_bounded_by_data(kernel, loop);
}

/// A warpgroup's own K blocks may begin behind those of the CTA.
bool may_begin_later(const ScheduledKernel& kernel, const ScheduledLoop& loop) {
    return k_block_ranges(kernel, loop) ||
           any_of(loop.loop->support, [&](const Affine& form) { return form.coefficient(loop.loop->axis) > 0; });
}

TileOrder order_of(const ScheduledKernel& kernel, bool in_shares) {
    if (!kernel.in_blocks()) return TileOrder::range;
    if (in_shares) return TileOrder::stream_k;
    if (kernel.is_dynamic()) return TileOrder::queue;
    return kernel.alternates_direction() ? TileOrder::alternating : TileOrder::strided;
}

}  // namespace

RoleLowering::RoleLowering(const ScheduledKernel& kernel, bool is_producer)
    : kernel_(kernel), is_producer_(is_producer), stream_k_(chosen_stream_k(kernel)) {
    if (!is_producer && kernel.schedule.ping_pong.value) ping_pong_ = ping_pong(kernel);
}

Block RoleLowering::run() {
    ForTiles tiles{order_of(kernel_, stream_k_.has_value()), {}};
    tile_body(tiles.body);
    Block out;
    out.emplace_back(std::move(tiles));
    for (const StepId s : kernel_.steps.ids())
        if (kernel_.steps[s].is_tile_pipelined()) out.emplace_back(FinishPipelined{s});
    return out;
}

void RoleLowering::tile_body(Block& out) {
    if (!is_producer_) out.emplace_back(PrefetchTiles{});
    stream_k_ && !is_producer_ ? nodes_of_split_tile(out) : nodes(kernel_.body, out);
    if (kernel_.on_tensor_cores()) out.emplace_back(Advance{0});
    if (kernel_.is_dynamic()) next_tile(out);
}

/// Schedule_tiles: the producer takes the next tile from the queue and passes its number to the consumers.
void RoleLowering::next_tile(Block& out) {
    if (is_producer_) {
        out.emplace_back(AskTile{});
        out.emplace_back(Wait{{BarrierKind::tile_empty, {}}});
        out.emplace_back(WriteTile{});
        out.emplace_back(Arrive{{BarrierKind::tile_full, {}}});
    } else {
        out.emplace_back(Wait{{BarrierKind::tile_full, {}}});
        out.emplace_back(ReadTile{});
        out.emplace_back(Arrive{{BarrierKind::tile_empty, {}}});
    }
}

void RoleLowering::nodes(const std::vector<Node>& list, Block& out) {
    for (std::size_t n = 0; n < list.size(); ++n) {
        if (const StepId* s = std::get_if<StepId>(&list[n])) {
            if (!is_producer_ && kernel_.column_parts && kernel_.column_parts->steps.front() == *s) {
                n = in_parts(list, n, out);
                continue;
            }
            is_producer_ ? copies(kernel_.step(*s), out) : step(kernel_.step(*s), out);
        }
        if (const auto* run = std::get_if<FusedStatements>(&list[n]); run && !is_producer_) panels(*run, out);
        if (const auto* l = std::get_if<LoopId>(&list[n])) {
            loop(*l, out);
            if (!is_producer_ && kernel_.on_tensor_cores()) out.emplace_back(SumRows{kernel_.loop(*l).scope});
        }
        if (const auto* settle = std::get_if<WaitGroup>(&list[n]); settle && !is_producer_) wait_group(*settle, out);
    }
}

/// Split_columns: statements that run for each part of columns, and the waits for products between them. Loads among
/// them come first. Operands are released with the last part. Returns the number of the last of these nodes.
std::size_t RoleLowering::in_parts(const std::vector<Node>& list, std::size_t first, Block& out) {
    const ColumnParts& parts = *kernel_.column_parts;
    std::size_t last = first;
    for (std::size_t n = first; n < list.size(); ++n)
        if (const StepId* s = std::get_if<StepId>(&list[n]); s && parts.has(*s)) last = n;
    for (std::size_t n = first; n <= last; ++n)
        if (const StepId* s = std::get_if<StepId>(&list[n]); s && !parts.has(*s)) step(kernel_.step(*s), out);
    ForParts each;
    for (std::size_t n = first; n <= last; ++n) {
        if (const StepId* s = std::get_if<StepId>(&list[n]); s && parts.has(*s)) step(kernel_.step(*s), each.body);
        if (const auto* settle = std::get_if<WaitGroup>(&list[n])) wait_group(*settle, each.body, Arrive::last_part);
    }
    out.emplace_back(std::move(each));
    return last;
}

/// With stream-K: what is computed and stored behind the stream runs in the warp that has both parts' states, once no
/// product adds to them. Releases there are done by all warps.
void RoleLowering::nodes_of_split_tile(Block& out) {
    const std::vector<Node>& list = kernel_.body;
    const auto is_wait_group = [](const Node& n) { return std::holds_alternative<WaitGroup>(n); };
    const auto stream = find_if(list, [](const Node& n) { return std::holds_alternative<LoopId>(n); });
    auto node = std::find_if(stream + 1, list.end(), [&](const Node& n) {
        const StepId* s = std::get_if<StepId>(&n);
        return s && !is_load(kernel_.step(*s));
    });
    nodes({list.begin(), node}, out);
    WaitGroup all;
    for (auto n = node; n != list.end(); ++n)
        if (const auto* later = std::get_if<WaitGroup>(&*n); later && later->pending >= 0)
            all.pending = 0, append(all.results, later->results);
    if (all.pending == 0) wait_group(all, out);
    If split{If::tile_is_split, {}, {}, {}}, second{If::arrives_second, {}, {}, {}};
    second.body.emplace_back(WaitStates{});
    second.body.emplace_back(MergeStates{});
    second.otherwise.emplace_back(Copy{{}, Copy::leave_states});
    second.otherwise.emplace_back(SignalStates{});
    split.body.emplace_back(ClaimStates{});
    split.body.emplace_back(std::move(second));
    out.emplace_back(std::move(split));
    while (node != list.end()) {
        const auto end = std::find_if(node, list.end(), is_wait_group);
        If goes_on{If::goes_on, {}, {}, {}};
        nodes({node, end}, goes_on.body);
        out.emplace_back(std::move(goes_on));
        node = std::find_if_not(end, list.end(), is_wait_group);
        nodes({end, node}, out);
    }
}

bool RoleLowering::is_last_of_copies(LoopId id) const {
    LoopId last = -1;
    for (const Node& n : kernel_.body)
        if (const auto* l = std::get_if<LoopId>(&n); l && fills(kernel_.loop(*l))) last = *l;
    return last == id;
}

void RoleLowering::loop(LoopId id, Block& out) {
    const ScheduledLoop& node = kernel_.loop(id);
    if (is_producer_ && !fills(node)) return;
    LoopScope scope{id, {}};
    if (!is_repeated(kernel_, node)) {
        copy_ahead(id, false, scope.body);
        nodes(node.body, scope.body);
        if (fills(node)) scope.body.emplace_back(Advance{node.scope});
        out.emplace_back(std::move(scope));
        return;
    }
    const bool has_bounds = is_bounded(kernel_, node, stream_k_.has_value());
    const bool has_own = !is_producer_ && have_own_k_blocks(kernel_, node);
    Block& body = has_bounds || fills(node) ? scope.body : out;
    if (has_bounds) body.emplace_back(Bounds{id, false});
    if (has_own) {
        body.emplace_back(Bounds{id, true});
        if (may_begin_later(kernel_, node)) blocks_of_others(id, KBlocks::before_own, body);
    }
    !node.prologue.empty() && !is_producer_ ? modulo_loop(id, body) : simple_loop(id, body);
    if (has_own) blocks_of_others(id, KBlocks::after_own, body);
    if (&body == &scope.body) out.emplace_back(std::move(scope));
}

void RoleLowering::simple_loop(LoopId id, Block& out) {
    const ScheduledLoop& node = kernel_.loop(id);
    copy_ahead(id, true, out);
    if (!is_producer_)
        for (const StepId s : kernel_.steps.ids())
            if (kernel_.steps[s].scope == node.scope && iterations_read_ahead(kernel_, kernel_.steps[s]) > 0)
                out.emplace_back(LoadFirstRows{s, id});
    ForBlocks blocks{id, KBlocks::all, {}};
    if (!is_producer_ && node.synchronizes) blocks.body.emplace_back(Sync{});
    if (!is_producer_ && fills(node) && !kernel_.producer_role()) blocks.body.emplace_back(CopyAhead{id, false});
    if (is_producer_ && kernel_.is_dynamic() && is_last_of_copies(id)) blocks.body.emplace_back(AskTile{true, id});
    nodes(node.body, blocks.body);
    if (!is_producer_) defer(id, node.body, blocks.body);
    if (fills(node)) blocks.body.emplace_back(Advance{node.scope});
    out.emplace_back(std::move(blocks));
}

/// Pipeline_loops: a loop of which some statements run for the next iteration. Those of the first iteration stand
/// before it, and the others of the last one behind it.
void RoleLowering::modulo_loop(LoopId id, Block& out) {
    const ScheduledLoop& node = kernel_.loop(id);
    for (const Node& n : node.skipped)
        if (const auto* settle = std::get_if<WaitGroup>(&n)) wait_group(*settle, out, Arrive::no_k_block, id);
    If any{If::any_k_block, id, {}, {}};
    iteration(id, node.prologue, -1, any.body);
    ForBlocks steady{id, KBlocks::but_last, {}};
    const auto rest = [&](const std::vector<Node>& list, Block& body) {
        iteration(id, list, 0, body);
        defer(id, list, body);
        body.emplace_back(Advance{node.scope});
    };
    rest(node.body, steady.body);
    any.body.emplace_back(std::move(steady));
    rest(node.epilogue, any.body);
    out.emplace_back(std::move(any));
}

/// Statements that run for the same iteration stand in one At. With ping-pong a warpgroup waits for the tensor
/// cores before its first product of an iteration, and passes them on behind the last one.
void RoleLowering::iteration(LoopId id, const std::vector<Node>& list, int shift, Block& out) {
    const ScopeId scope = kernel_.loop(id).scope;
    shift_ = shift, in_at_ = true;
    std::optional<int> open;
    const auto at_iteration = [&](int ahead) -> Block& {
        if (open != ahead) out.emplace_back(At{id, {scope, ahead + shift}, {}}), open = ahead;
        return std::get<At>(out.back().kind).body;
    };
    StepId first, last;
    for (const Node& n : list)
        if (const StepId* s = std::get_if<StepId>(&n); s && is_ping_pong_product(*s, list))
            first = first < 0 ? *s : first, last = *s;
    std::set<int> computed;  // numbers of iterations ahead
    for (const Node& n : list) {
        const StepId* s = std::get_if<StepId>(&n);
        Block& body = at_iteration(s ? kernel_.step(*s).ahead : open.value_or(0));
        if (s) computed.insert(kernel_.step(*s).ahead);
        if (s && first >= 0 && *s == first) body.emplace_back(NamedBarrier{NamedBarrier::wait});
        nodes({n}, body);
        if (s && first >= 0 && *s == last) body.emplace_back(NamedBarrier{NamedBarrier::pass});
    }
    for (const int ahead : computed)
        if (rounds(scope, ahead)) at_iteration(ahead).emplace_back(Round{scope, ahead});
    shift_ = 0, in_at_ = false;
}

/// Whether ping-pong warpgroups alternate at the product. They do so once for each K block: at the products before the
/// loop, and at those of each pass through it.
bool RoleLowering::is_ping_pong_product(StepId step, const std::vector<Node>& list) const {
    return ping_pong_ && &list != &kernel_.loops[ping_pong_->loop].epilogue && runs_beside(kernel_, kernel_.step(step));
}

/// Whether something that is computed so many iterations ahead is rounded as its iteration ends.
bool RoleLowering::rounds(ScopeId scope, int ahead) const {
    return any_of(kernel_.steps, [&](const Step& s) {
        return s.atom >= 0 && s.scope == scope && s.ahead == ahead && is_rounded_ahead(kernel_, variable_of(s));
    });
}

/// K blocks of the CTA that the warpgroup's own rows do not need: it only releases their tiles.
void RoleLowering::blocks_of_others(LoopId id, KBlocks blocks, Block& out) {
    ForBlocks skipped{id, blocks, {}};
    if (ping_pong_) {
        skipped.body.emplace_back(NamedBarrier{NamedBarrier::wait});
        skipped.body.emplace_back(NamedBarrier{NamedBarrier::pass});
    }
    const std::vector<const Step*> loads = kernel_.operand_loads(kernel_.loop(id).scope);
    for (const Step* load : loads)
        if (load->waits) skipped.body.emplace_back(Wait{{BarrierKind::full, tile_of(*load, 0)}});
    for (const Step* load : loads)
        if (load->acquires) skipped.body.emplace_back(Arrive{{BarrierKind::empty, tile_of(*load, 0)}});
    skipped.body.emplace_back(Advance{kernel_.loop(id).scope});
    out.emplace_back(std::move(skipped));
}

/// Operands of the loop that are released an iteration later.
std::vector<VariableId> RoleLowering::deferred_releases(const ScheduledLoop& loop) const {
    std::vector<VariableId> out;
    const auto add = [&](const std::vector<Node>& list) {
        for (const Node& n : list)
            if (const auto* settle = std::get_if<WaitGroup>(&n))
                for (const Release& freed : settle->frees)
                    if (freed.ahead < 0 && kernel_.layout(freed.operand).scope == loop.scope && !contains(out, freed.operand))
                        out.push_back(freed.operand);
    };
    for (const ScheduledLoop& l : kernel_.loops) add(l.body), add(l.prologue), add(l.epilogue);
    add(kernel_.body);
    return out;
}
/// The nodes are an iteration's. What they release of it already is not deferred, as behind the last iteration.
void RoleLowering::defer(LoopId id, const std::vector<Node>& nodes, Block& out) {
    const auto is_released = [&](VariableId v) {
        return any_of(nodes, [&](const Node& n) {
            const auto* settle = std::get_if<WaitGroup>(&n);
            return settle &&
                   any_of(settle->frees, [&](const Release& freed) { return freed.operand == v && freed.ahead == 0; });
        });
    };
    for (const VariableId v : deferred_releases(kernel_.loop(id)))
        if (!is_released(v)) out.emplace_back(Defer{v, true});
}

/// Without a producer, the operands of the first iterations are copied before a loop, one iteration fewer than there
/// are stages. Without a loop, those of the only iteration are copied.
void RoleLowering::copy_ahead(LoopId id, bool is_loop, Block& out) {
    const ScheduledLoop& node = kernel_.loop(id);
    if (!fills(node) || kernel_.producer_role()) return;
    if (node.synchronizes_before) out.emplace_back(Sync{});
    if (!is_loop && node.synchronizes) out.emplace_back(Sync{});
    out.emplace_back(CopyAhead{id, true});
}

}  // namespace napkin::lower
