#include "emit/emit_kernel.hpp"

#include <fmt/format.h>

#include <cctype>
#include <optional>
#include <set>
#include <utility>

#include "emit/emit_blocks.hpp"
#include "emit/emit_entry.hpp"
#include "emit/emit_fragment.hpp"
#include "emit/emit_frame.hpp"
#include "emit/emit_header.hpp"
#include "emit/emit_k_block_ranges.hpp"
#include "emit/emit_places.hpp"
#include "emit/emit_write.hpp"
#include "emit/tidy_source.hpp"
#include "emit/whole_text.hpp"
#include "machine/block_machine.hpp"
#include "schedule/fragments.hpp"
#include "schedule/k_block_ranges.hpp"
#include "schedule/warpgroups.hpp"
#include "support/ranges.hpp"
#include "support/result.hpp"
#include "support/text.hpp"

namespace napkin::writers {
namespace {
class KernelWriter {
public:
    KernelWriter(Frame& frame, std::string entry) : frame_(frame), entry_(std::move(entry)) {}

    std::string run() {
        write_entry(frame_, out_, entry_);
        const Lines head = std::exchange(out_, Lines());
        const std::string groups_loop = groups();
        in_producer_ = true;
        const std::string copies_loop = frame_.producer_role() ? groups() : "";
        out_ = head;
        write_memory_pointers(frame_, out_, groups_loop + copies_loop);
        write_variable_pointers(frame_, out_);
        if (frame_.in_cluster())
            out_(fmt::format("const unsigned {} = blockIdx.x % {};", cluster_rank_name, frame_.cluster_blocks()));
        if (frame_.on_tensor_cores()) write_barriers(frame_, out_);
        if (frame_.producer_role()) producer_role(copies_loop);
        if (frame_.on_tensor_cores()) declare_fragments();
        declare_iterations();
        out_.append(groups_loop);
        if (is_any_non_temporal()) out_("settle();");
        if (frame_.waits_for_staging) out_("wait_boxes<0>();");
        if (frame_.syncs_cluster_after) out_("meet_in_cluster();");
        out_.close();
        const std::string main = std::exchange(out_, Lines()).text();

        write_header(frame_, out_);
        const char* const library = frame_.in_blocks() ? "napkin_gpu" : "napkin_cpu";
        out_(fmt::format("namespace {}::{}_code {{", library, entry_));
        out_("");
        out_(fmt::format("using real = {};", frame_.is_double ? "double" : "float"));
        out_("using vec = Vec<real>;");
        out_("using mask = Mask<real>;");
        out_("");
        for (const std::string& function : instructions_) functions_.insert(0, function + "\n");
        const std::string before = frame_.in_blocks() ? ranges_pass(frame_, entry_, parameters_on_gpu(frame_)) : "";
        return tidied(out_.text() + functions_ + before + main +
                      fmt::format("\n}}  // namespace {}::{}_code\n", library, entry_));
    }

private:
    /// The loop over the groups that a thread, or a block, runs.
    std::string groups() {
        out_ = Lines(!in_producer_ ? 1 : frame_.syncs_cluster_after ? 3 : 2);
        const std::int64_t num_groups = frame_.num_groups();
        const std::string of_sections = fmt::format("{}, {}", num_groups / frame_.num_sections(), num_groups);
        const bool by_queue = frame_.is_dynamic();
        for (const auto& [id, before] : frame_.before)
            out_(fmt::format("{}real* {} = nullptr;", frame_.is_output(id) ? "" : "const ", before));
        if (by_queue) out_("unsigned queue_turn_ = 0;");
        if (by_queue && in_producer_) out_("unsigned next_group_ = 0;"), out_("bool has_asked_ = false;");
        out_.open(
            !frame_.in_blocks() ? "for (Index group = first_group; group < last_group; ++group)"
            : cut_
                ? fmt::format("for (Share {0} = {1}::first_share(); {0}.begin < {0}.end; {0} = {1}::share_after({0}))",
                              share_name, shares_type(frame_, *cut_))
            : by_queue
                ? fmt::format("for (Index group = blockIdx.x; group < {}; group = {})", num_groups,
                              in_producer_ ? "hand_on(queue, queue_turn_, next_group_)" : "handed_on(queue, queue_turn_)")
            : frame_.alternates_direction()
                ? fmt::format("for (Index group = first_group(0, {0}); group < {1}; group = group_after(group, {0}))",
                              of_sections, num_groups)
                : fmt::format("for (Index group = blockIdx.x; group < {}; group += gridDim.x)", num_groups));
        if (cut_) out_(fmt::format("const Index group = Share::group_of({});", share_name));
        for (const auto& [axis, text] : group_position(frame_, "group")) {
            const Span& span = frame_.span(axis, 0);
            out_(fmt::format("[[maybe_unused]] const Index {} = {};", frame_.axis(axis).begin, text));
            if (span.ragged)
                out_(fmt::format("[[maybe_unused]] const Index {} = min_index({}, {} - {});", frame_.axis(axis).count,
                                 span.tile, frame_.extent(axis), frame_.axis(axis).begin));
        }
        if (!in_producer_) write_tiles_ahead(frame_, out_), write_fetches(frame_, out_);
        cut_ && !in_producer_ ? nodes_of_part() : nodes(frame_.body);
        if (frame_.on_tensor_cores()) next_iteration(frame_, out_, 0);
        if (by_queue && in_producer_) ask_for_group("!has_asked_"), out_("has_asked_ = false;");
        out_.close();
        for (const Step& step : frame_.steps)
            if (step.is_tile_pipelined()) {
                out_.open(fmt::format("if ({})", frame_.before.at(variable_of(step))));
                call_of_blocks(step);
                out_.close();
            }
        return std::exchange(out_, Lines()).text();
    }

    /// With stream-K: what is computed and stored behind the stream runs in the warp that has both parts' states, once
    /// no product adds to them. Releases there are done by all warps.
    void nodes_of_part() {
        const auto is_wait_group = [](const Node& n) { return std::holds_alternative<WaitGroup>(n); };
        const auto loop = find_if(frame_.body, [](const Node& n) { return std::holds_alternative<LoopId>(n); });
        auto node = std::find_if(loop + 1, frame_.body.end(), [&](const Node& n) {
            const StepId* s = std::get_if<StepId>(&n);
            return s && !std::holds_alternative<Load>(*frame_.step(*s).statement);
        });
        nodes({frame_.body.begin(), node});
        WaitGroup all;
        for (auto n = node; n != frame_.body.end(); ++n)
            if (const auto* later = std::get_if<WaitGroup>(&*n); later && later->pending >= 0)
                all.pending = 0, append(all.results, later->results);
        if (all.pending == 0) write_wait_group(frame_, out_, all, 0);
        write_parts_of_group(frame_, out_, *cut_);
        while (node != frame_.body.end()) {
            const auto end = std::find_if(node, frame_.body.end(), is_wait_group);
            out_.open(fmt::format("if ({})", goes_on_name));
            nodes({node, end});
            out_.close();
            node = std::find_if_not(end, frame_.body.end(), is_wait_group);
            nodes({end, node});
        }
    }

    /// The next tile of the queue. It is asked for together with the last copies of this one, so that the answer is
    /// there when the next copies are due. It is not asked for earlier, since a block that has asked early has less to
    /// do than others in the end.
    void ask_for_group(const std::string& condition) {
        out_(fmt::format("if ({}) next_group_ = next_of_queue(scratch + {}, {}), has_asked_ = true;", condition,
                         k_block_ranges_bytes(frame_), frame_.num_groups()));
    }
    /// Whether the loop is the last one whose operands the producer copies.
    [[nodiscard]] bool is_last_of_copies(const ScheduledLoop& node) const {
        const ScheduledLoop* last = nullptr;
        for (const Node& n : frame_.body)
            if (const auto* l = std::get_if<LoopId>(&n); l && !operands_of(frame_, frame_.loop(*l).scope).empty())
                last = &frame_.loop(*l);
        return last == &node;
    }

    /// The producer: the last warps of the block. One thread issues copies, in the order in which the others wait for
    /// them, as far ahead as stages are free. The others take the registers that it gives up.
    void producer_role(const std::string& loop) {
        const std::int64_t warps = frame_.schedule.warps.value;
        const RoleRegisters registers = role_registers(frame_.unit.block_registers, warps, frame_.producer_role()->workers);
        out_.open(fmt::format("if (warp_of_thread() >= {})", warps));
        if (registers.copying < registers.launch) out_(fmt::format("keep_registers<{}>();", registers.copying));
        const std::int64_t thread = warps * frame_.unit.warp_threads;
        if (!frame_.syncs_cluster_after) {
            out_(fmt::format("if (thread_of_block() != {}) return;", thread));
            declare_iterations();
            out_.append(loop);
        } else {
            out_.open(fmt::format("if (thread_of_block() == {})", thread));
            declare_iterations();
            out_.append(loop);
            out_.close();
            out_("meet_in_cluster();");
        }
        out_("return;");
        out_.close();
        if (registers.computing > registers.launch) out_(fmt::format("take_registers<{}>();", registers.computing));
    }

    void declare_fragments() {
        if (frame_.has_bulk_copies())
            out_(fmt::format("[[maybe_unused]] const int {} = uniform(warp_of_thread());", warp_name));
        for (const VariableId id : frame_.layouts.ids())
            if (!frame_.layouts[id].lives.empty() && frame_.is_in_registers(id)) out_(fragment_declaration(frame_, id));
        for (const Step& s : frame_.steps)
            if (const auto* load = std::get_if<Load>(s.statement);
                load && frame_.is_read_by_threads(load->variable) && is_read_by_rows(frame_, load->variable))
                declare_rows(frame_, out_, s);
        declare_rounded(frame_, out_);
        if (turns_) out_(fmt::format("if ({} == {}) pass_turn(0);", warpgroup_text(), turns_->groups - 1));
        declare_rescale(frame_, out_);
    }
    void declare_iterations() {
        if (!frame_.on_tensor_cores()) return;
        declare_iteration(frame_, out_, 0);
        for (const ScheduledLoop& l : frame_.loops)
            if (!operands_of(frame_, l.scope).empty()) declare_iteration(frame_, out_, l.scope);
        for (const ScheduledLoop& l : frame_.loops)
            for (const VariableId v : deferred_releases(l))
                out_(fmt::format("bool {} = false;", deferred_release_name(frame_, v)));
    }

    [[nodiscard]] bool is_any_non_temporal() const {
        return any_of(frame_.schedule.places, [](const Place& place) { return place.non_temporal; });
    }

    void nodes(const std::vector<Node>& list) {
        for (std::size_t n = 0; n < list.size(); ++n) {
            const Node& node = list[n];
            if (const StepId* s = std::get_if<StepId>(&node);
                s && !in_producer_ && frame_.column_parts && frame_.column_parts->steps.front() == *s) {
                n = in_parts(list, n);
                continue;
            }
            if (const StepId* s = std::get_if<StepId>(&node))
                in_producer_ ? step_of_copies(frame_.step(*s)) : step(frame_.step(*s));
            if (const auto* r = std::get_if<FusedStatements>(&node); r && !in_producer_) fused_panels(*r);
            if (const auto* l = std::get_if<LoopId>(&node)) {
                loop(frame_.loop(*l));
                if (!in_producer_) write_sums_of_rows(frame_, out_, frame_.loop(*l).scope);
            }
            if (const auto* s = std::get_if<WaitGroup>(&node); s && !in_producer_)
                write_wait_group(frame_, out_, *s, shift_);
        }
    }

    /// The statements that run for each part of columns, and the waits for products between them. Loads among them come
    /// first; operands are released with the last part. Returns the number of the last of these nodes.
    std::size_t in_parts(const std::vector<Node>& list, std::size_t first) {
        const ColumnParts& parts = *frame_.column_parts;
        std::size_t last = first;
        for (std::size_t n = first; n < list.size(); ++n)
            if (const StepId* s = std::get_if<StepId>(&list[n]); s && parts.has(*s)) last = n;
        for (std::size_t n = first; n <= last; ++n)
            if (const StepId* s = std::get_if<StepId>(&list[n]); s && !parts.has(*s)) step(frame_.step(*s));
        out_.open(fmt::format("EACH(part_, {})", parts.parts));
        for (std::size_t n = first; n <= last; ++n) {
            if (const StepId* s = std::get_if<StepId>(&list[n]); s && parts.has(*s)) step(frame_.step(*s));
            if (const auto* s = std::get_if<WaitGroup>(&list[n]))
                write_wait_group(frame_, out_, *s, shift_, fmt::format("part_ == {} && ", parts.parts - 1));
        }
        out_.close();
        return last;
    }

    void step_of_copies(const Step& s) {
        const auto* load = std::get_if<Load>(s.statement);
        if (load && frame_.is_operand(load->variable)) write_producer_copy(frame_, out_, s);
    }

    void step(const Step& s) {
        if (s.synchronizes) out_("sync();");
        const auto tile = [&](VariableId v) {
            const Variable& variable = frame_.variable(v);
            return to_string(read(v, variable.gathers.empty() ? variable.dims : variable.gathers), expression_names(frame_));
        };
        if (const auto* load = std::get_if<Load>(s.statement); load && frame_.is_operand(load->variable)) {
            out_(fmt::format("// {} {}", s.scope == 0 && !frame_.producer_role() ? "load" : "wait for",
                             tile(load->variable)));
            if (s.scope == 0 && !frame_.producer_role()) {
                if (frame_.has_bulk_copies()) out_.open("if (thread_of_block() == 0)");
                write_copy(frame_, out_, load->variable, s.scope, "0");
                if (frame_.has_bulk_copies()) out_.close();
            }
            if (!stages_are_declared_) declare_stage(frame_, out_, load->variable, 0);
            write_wait(frame_, out_, s, s.ahead + shift_);
        } else if (load) {
            if (s.stays || (frame_.is_view(load->variable) && frame_.facts(load->variable).is_only_gathered)) return;
            if (frame_.is_read_by_threads(load->variable) && !is_read_by_rows(frame_, load->variable)) return;
            out_(fmt::format("// load {}", tile(load->variable)));
            if (frame_.is_read_by_threads(load->variable)) return write_load_of_rows(frame_, out_, s);
            write_load(frame_, out_, s);
        } else if (const auto* store = std::get_if<Store>(s.statement)) {
            if (frame_.is_view(store->variable)) return;  // its statement wrote it where it goes
            out_(fmt::format("// store {}", tile(store->variable)));
            if (frame_.is_staged_out(store->variable))
                write_store_by_staging(frame_, out_, s);
            else if (frame_.is_in_registers(store->variable))
                write_store_of_fragments(frame_, out_, store->variable, s.scope);
            else
                write_store(frame_, out_, store->variable, s.scope);
        } else if (const auto* init = std::get_if<Init>(s.statement)) {
            frame_.is_in_registers(init->variable) ? write_init_of_fragments(frame_, out_, *init)
                                                   : write_init(frame_, out_, *init);
            if (frame_.lazy && frame_.lazy->maximum == init->variable) write_init_of_rescale(frame_, out_);
        } else {
            compute(s);
        }
    }

    void compute(const Step& s) {
        if (frame_.atom(s).follows) return;
        const StepId number = frame_.number(s);
        if (frame_.lazy && (frame_.lazy->moves(number) || frame_.lazy->sum == number)) return;
        if (frame_.lazy && frame_.lazy->weights == number) return write_rescaled_weights(frame_, out_, shift_ < 0);
        if (frame_.atom(s).kind != AtomKind::block) {
            out_(fmt::format("// {}", equation(frame_, std::get<Compute>(*s.statement))));
            frame_.atom(s).kind == AtomKind::matrix ? write_product(frame_, out_, s, instructions_)
                                                    : write_fragment(frame_, out_, s);
            return;
        }
        if (s.is_tile_pipelined()) {
            write_target(frame_, out_, variable_of(s), s.scope);
            out_(fmt::format("// {}: beside the next group", equation(frame_, std::get<Compute>(*s.statement))));
            for (const auto& [id, before] : frame_.before)
                if (variable_of(s) == id || reads(s, id)) out_(fmt::format("{} = {};", before, frame_.name(id)));
            return;
        }
        if (frame_.is_view(variable_of(s))) write_target(frame_, out_, variable_of(s), s.scope);
        if (s.deferred < 0) return call_of_blocks(s);
        const Step& before = frame_.step(s.deferred);
        out_.open(fmt::format("if ({})", frame_.before.at(variable_of(before))));
        call_of_blocks(s, &before);
        out_.close();
        out_.open("else");
        call_of_blocks(s);
        out_.close();
    }

    /// The call of the statement's blocks, whose function stands above the kernel. `before`: a statement of the
    /// previous group, in the same loops.
    void call_of_blocks(const Step& s, const Step* before = nullptr) {
        const BlocksFunction function = function_of_blocks(frame_, s, before);
        functions_ += function.text;
        out_(function.call);
    }

    void fused_panels(const FusedStatements& run) {
        const AxisId v = frame_.schedule.vector_axis;
        const Step& first = frame_.step(run.steps.front());
        const bool several = frame_.span(v, first.scope).tile > frame_.panel();
        if (several)
            out_.open(fmt::format("for (Index {0} = 0; {0} < {1}; {0} += {2})", frame_.axis(v).local,
                                  frame_.count(v, first.scope), frame_.panel()));
        for (const StepId s : run.steps) compute(frame_.step(s));
        if (several) out_.close();
    }

    void loop(const ScheduledLoop& node) {
        const TileLoop& l = *node.loop;
        const Span& span = frame_.span(l.axis, node.scope);
        const std::int64_t extent = frame_.extent(l.axis);
        const AxisNames& names = frame_.axis(l.axis);
        const StreamParts& parts = frame_.kernel->parts;
        const bool in_part = !l.is_sub && parts.cut(l.axis);
        const bool fills = !operands_of(frame_, node.scope).empty();
        if (in_producer_ && !fills) return;
        if (!is_repeated(frame_, node)) {
            out_.open("");
            copy_ahead(node, "0", "", false);
            nodes(node.body);
            if (fills) next_iteration(frame_, out_, node.scope);
            out_.close();
            return;
        }
        std::string begin = "0", end = std::to_string(extent);
        const bool is_bounded = in_part || cut_ || !l.support.empty() || k_block_ranges(frame_, node);
        if (is_bounded) {
            out_.open("");
            if (cut_) {
                begin = fmt::format("{}.begin", share_name), end = fmt::format("{}.end", share_name);
                if (span.ragged) end = fmt::format("min_index({}, {})", end, extent);
            }
            if (in_part) {
                // The part's share of the K blocks, the last of which may be ragged.
                const std::int64_t chunks = (extent + span.tile - 1) / span.tile, n = frame_.extent(parts.part);
                const std::string part = frame_.axis(parts.part).begin;
                const auto first = [&](const std::string& p) {
                    return fmt::format("{} * {} / {} * {}", widened(p, {0, n * chunks}), chunks, n, span.tile);
                };
                begin = first(part), end = first(fmt::format("({} + 1)", part));
                if (span.ragged) end = fmt::format("min_index({}, {})", end, extent);
            }
            write_k_block_bounds(frame_, out_, node, names.begin + "_first_", begin, names.begin + "_last_", end);
            if (const auto ranges = k_block_ranges(frame_, node);
                ranges && !in_producer_ && !have_own_k_blocks(frame_, node))
                write_unmasked_k_blocks(frame_, out_, node, false);
            begin = names.begin + "_first_", end = names.begin + "_last_";
        }
        if (fills && !is_bounded) out_.open("");
        const bool has_own = !in_producer_ && have_own_k_blocks(frame_, node);
        if (has_own) own_k_blocks(node, begin, end);
        if (!node.prologue.empty() && !in_producer_) {
            iterations_ahead(node, begin, end);
            if (has_own) skipped_k_blocks_after(node);
            if (is_bounded || fills) out_.close();
            return;
        }
        const std::string fill = copy_ahead(node, begin, end, true);
        if (!in_producer_)
            for (const Step& s : frame_.steps)
                if (s.scope == node.scope && iterations_read_ahead(frame_, s) > 0)
                    write_first_rows(frame_, out_, s, begin);
        if (const int turns = in_producer_ ? 1 : unrolled_iterations(frame_, node); turns > 1)
            out_(fmt::format("NAPKIN_UNROLL_BY({})", turns));
        out_.open(fmt::format("for (Index {0} = {1}; {0} < {2}; {0} += {3})", names.begin, begin, end, span.tile));
        if (span.ragged)
            out_(fmt::format("{}const Index {} = min_index({}, {} - {});", in_producer_ ? "[[maybe_unused]] " : "",
                             names.count, span.tile, extent, names.begin));
        if (!in_producer_) copy_next(node, fill, end);
        if (in_producer_ && frame_.is_dynamic() && is_last_of_copies(node))
            ask_for_group(fmt::format("{} + {} >= {}", names.begin, span.tile, end));
        nodes(node.body);
        if (!in_producer_) owe(node, true);
        if (fills) next_iteration(frame_, out_, node.scope);
        out_.close();
        if (has_own) skipped_k_blocks_after(node);
        if (is_bounded || fills) out_.close();
    }

    /// A warpgroup runs the K blocks that contribute to its own rows: `begin` and `end` become their bounds. It only
    /// releases the tiles of the block's other K blocks.
    void own_k_blocks(const ScheduledLoop& node, std::string& begin, std::string& end) {
        const std::string axis = frame_.axis(node.loop->axis).begin, first = axis + "_own_first_",
                          last = axis + "_own_last_", at = axis + "_at_";
        const OwnRows own{fmt::format("{} * ({})", warps_together * fragment_rows, warpgroup_text()),
                          warps_together * fragment_rows};
        out_("// of them those that contribute to the warpgroup's own rows");
        write_k_block_bounds(frame_, out_, node, first, begin, last, end, &own);
        if (k_block_ranges(frame_, node)) write_unmasked_k_blocks(frame_, out_, node, true);
        out_(fmt::format("Index {} = {};", at, begin));
        const bool may_begin_later = k_block_ranges(frame_, node) || any_of(node.loop->support, [&](const Affine& form) {
                                         return form.coefficient(node.loop->axis) > 0;
                                     });
        if (may_begin_later) skipped_k_blocks(node, fmt::format("{0} < {1} && {0} < {2}", at, first, end));
        all_end_ = end, begin = at, end = last;
    }
    void skipped_k_blocks_after(const ScheduledLoop& node) {
        const std::string axis = frame_.axis(node.loop->axis).begin, last = axis + "_own_last_", at = axis + "_at_";
        const std::int64_t tile = frame_.span(node.loop->axis, node.scope).tile;
        out_(fmt::format("if ({0} < {1}) {0} += ({1} - {0} + {2}) / {3} * {3};", at, last, tile - 1, tile));
        skipped_k_blocks(node, fmt::format("{} < {}", at, all_end_));
    }
    void skipped_k_blocks(const ScheduledLoop& node, const std::string& condition) {
        out_.open(fmt::format("for (; {}; {}_at_ += {})", condition, frame_.axis(node.loop->axis).begin,
                              frame_.span(node.loop->axis, node.scope).tile));
        if (turns_) out_(fmt::format("wait_turn({});", warpgroup_text())), pass_turn();
        WaitGroup all;
        for (const Step* load : frame_.operand_loads(node.scope)) {
            write_wait(frame_, out_, *load, 0);
            all.frees.push_back({frame_.operand_loaded(*load), 0});
        }
        write_wait_group(frame_, out_, all, 0);
        next_iteration(frame_, out_, node.scope);
        out_.close();
    }
    void pass_turn() { out_(fmt::format("pass_turn(({} + 1) % {});", warpgroup_text(), turns_->groups)); }

    /// Operands of the loop that are released an iteration later.
    [[nodiscard]] std::vector<VariableId> deferred_releases(const ScheduledLoop& node) const {
        std::vector<VariableId> out;
        const auto add = [&](const std::vector<Node>& list) {
            for (const Node& n : list)
                if (const auto* s = std::get_if<WaitGroup>(&n))
                    for (const Release& freed : s->frees)
                        if (freed.ahead < 0 && frame_.layout(freed.operand).scope == node.scope &&
                            !contains(out, freed.operand))
                            out.push_back(freed.operand);
        };
        for (const ScheduledLoop& l : frame_.loops) add(l.body), add(l.prologue), add(l.epilogue);
        add(frame_.body);
        return out;
    }
    void owe(const ScheduledLoop& node, bool is_release_deferred) {
        for (const VariableId v : deferred_releases(node))
            out_(fmt::format("{} = {};", deferred_release_name(frame_, v), is_release_deferred));
    }

    /// A loop of which some statements run for the next iteration. Those of the first iteration stand before it, and
    /// the others of the last one behind it.
    void iterations_ahead(const ScheduledLoop& node, const std::string& begin, const std::string& end) {
        const std::string axis = frame_.axis(node.loop->axis).begin, turn = axis + "_turn_";
        const std::int64_t tile = frame_.span(node.loop->axis, node.scope).tile;
        for (const Node& n : node.skipped)
            if (const auto* settle = std::get_if<WaitGroup>(&n))
                write_wait_group(frame_, out_, *settle, 0, fmt::format("{} >= {} && ", begin, end));
        out_.open(fmt::format("if ({} < {})", begin, end));
        out_(fmt::format("Index {} = {};", turn, begin));
        nodes_of_iteration(node, node.prologue, turn, -1);
        out_.open(fmt::format("for (; {0} + {1} < {2}; {0} += {1})", turn, tile, end));
        nodes_of_iteration(node, node.body, turn, 0);
        owe(node, true);
        next_iteration(frame_, out_, node.scope);
        out_.close();
        nodes_of_iteration(node, node.epilogue, turn, 0);
        owe(node, true);
        next_iteration(frame_, out_, node.scope);
        out_.close();
    }
    /// Whether ping-pong warpgroups alternate at the product. They do so once for each K block: at the products before
    /// the loop, and at those of each pass through it.
    [[nodiscard]] bool is_ping_pong_product(StepId step, const std::vector<Node>& list) const {
        return turns_ && &list != &frame_.loops[turns_->loop].epilogue && runs_beside(frame_, frame_.step(step));
    }
    /// Whether something that is computed so many iterations ahead is rounded as its iteration ends.
    [[nodiscard]] bool rounds(ScopeId scope, int ahead) const {
        return any_of(frame_.steps, [&](const Step& s) {
            return s.atom >= 0 && s.scope == scope && s.ahead == ahead && is_rounded_ahead(frame_, variable_of(s));
        });
    }
    /// Neighbouring statements that run for the same iteration stand in one block, in which the axis begins where that
    /// iteration does. The loop's counters are `shift` iterations before those of the list: the prologue belongs to the
    /// iteration before the first one.
    void nodes_of_iteration(const ScheduledLoop& node, const std::vector<Node>& list, const std::string& turn, int shift) {
        const AxisNames& names = frame_.axis(node.loop->axis);
        const Span& span = frame_.span(node.loop->axis, node.scope);
        shift_ = shift, stages_are_declared_ = true;
        std::optional<int> open;
        const auto open_for = [&](int ahead) {
            if (open == ahead) return;
            if (open) out_.close();
            out_.open("");
            const std::int64_t by = (ahead + shift) * span.tile;
            out_(fmt::format("[[maybe_unused]] const Index {} = {}{};", names.begin, turn,
                             by == 0 ? "" : fmt::format(" + {}", by)));
            if (span.ragged)
                out_(fmt::format("[[maybe_unused]] const Index {} = min_index({}, {} - {});", names.count, span.tile,
                                 frame_.extent(node.loop->axis), names.begin));
            for (const VariableId v : operands_of(frame_, node.scope)) declare_stage(frame_, out_, v, ahead + shift);
            open = ahead;
        };
        std::set<int> computed;  // numbers of iterations ahead
        StepId first, last;      // of its ping-pong products
        for (const Node& n : list)
            if (const StepId* s = std::get_if<StepId>(&n); s && is_ping_pong_product(*s, list))
                first = first < 0 ? *s : first, last = *s;
        for (const Node& n : list) {
            const StepId* s = std::get_if<StepId>(&n);
            open_for(s ? frame_.step(*s).ahead : open.value_or(0));
            if (s) computed.insert(frame_.step(*s).ahead);
            const bool is_product = turns_ && s && is_ping_pong_product(*s, list);
            if (is_product && *s == first) out_(fmt::format("wait_turn({});", warpgroup_text()));
            nodes({n});
            if (is_product && *s == last) pass_turn();
        }
        for (const int ahead : computed)
            if (rounds(node.scope, ahead)) open_for(ahead), write_rounded(frame_, out_, node.scope, ahead);
        if (open) out_.close();
        shift_ = 0, stages_are_declared_ = false;
    }

    [[nodiscard]] std::string next_of(const ScheduledLoop& node) const {
        return frame_.axis(node.loop->axis).begin + "_next_";
    }
    /// Without a producer, the operands of the first iterations are copied before a loop, one iteration fewer than
    /// there are stages. Without a loop, those of the only iteration are copied. Returns the name of the function that
    /// copies an iteration's operands. Empty: a producer does, or there are none.
    std::string copy_ahead(const ScheduledLoop& node, const std::string& begin, const std::string& end, bool is_loop) {
        const std::vector<VariableId> operands = operands_of(frame_, node.scope);
        if (operands.empty() || frame_.producer_role()) return "";
        const std::string &axis = frame_.axis(node.loop->axis).begin, fill = "fill_" + axis + "_",
                          stage = iteration_names(frame_, node.scope).stage;
        const std::int64_t tile = frame_.span(node.loop->axis, node.scope).tile;
        const int stages = frame_.place(operands.front()).stages;
        const bool by_one = frame_.has_bulk_copies();
        out_(fmt::format("// {} for the tiles of a turn to come", by_one ? "one thread asks" : "all threads ask"));
        out_.open(fmt::format("const auto {} = [&]([[maybe_unused]] Index {}, [[maybe_unused]] unsigned stage_)", fill,
                              axis));
        if (by_one) out_("if (thread_of_block() != 0) return;");
        for (const VariableId v : operands)
            write_copy(frame_, out_, v, node.scope, stages > 1 ? "stage_" : "0",
                       is_loop ? fmt::format("{} < {}", axis, end) : "");
        out_.close(";");
        if (node.synchronizes_before) out_("sync();");
        if (!is_loop) {
            if (node.synchronizes) out_("sync();");
            out_(fmt::format("{}({}, {});", fill, begin, stage));
            return fill;
        }
        out_(fmt::format("Index {} = {};", next_of(node), begin));
        // Without bulk copies, threads count a copy past the end as well, but copy nothing.
        const std::string more = by_one ? fmt::format(" && {} < {}", next_of(node), end) : "";
        if (stages > 1)
            out_(fmt::format(
                "for (unsigned t_ = 0; t_ < {0}{2}; ++t_, {1} += {3}) {4}({1}, {5} + t_ < {6} ? {5} + t_ : {5} + "
                "t_ - {6});",
                stages - 1, next_of(node), more, tile, fill, stage, stages));
        return fill;
    }
    /// As an iteration begins, all are done with the one before it, whose stage is filled anew.
    void copy_next(const ScheduledLoop& node, const std::string& fill, const std::string& end) {
        if (node.synchronizes) out_("sync();");
        if (fill.empty()) return;
        const std::string stage = iteration_names(frame_, node.scope).stage;
        const int stages = frame_.place(operands_of(frame_, node.scope).front()).stages;
        const std::string more = frame_.has_bulk_copies() ? fmt::format("if ({} < {}) ", next_of(node), end) : "";
        out_(fmt::format("{}{}({}, {});", more, fill, next_of(node),
                         stages == 1 ? "0" : fmt::format("{0} == 0 ? {1} : {0} - 1", stage, stages - 1)));
        out_(fmt::format("{} += {};", next_of(node), frame_.span(node.loop->axis, node.scope).tile));
    }

    Frame& frame_;
    std::string entry_, functions_;
    std::string all_end_;  ///< of a loop whose warpgroups run their own K blocks
    std::optional<StreamK> cut_ = chosen_stream_k(frame_);
    std::optional<PingPong> turns_ = frame_.schedule.turns.value > 0 ? ping_pong(frame_) : std::nullopt;
    std::set<std::string> instructions_;  ///< functions of tensor core instructions that statements call
    bool stages_are_declared_ = false;    ///< of the loop's operands, around the text
    int shift_ = 0;                       ///< iterations that the text stands before the counters of its loop
    bool in_producer_ = false;            ///< the text is the producer's
    Lines out_;
};

}  // namespace

std::string kernel_text(const ScheduledKernel& kernel, const std::string& entry, std::string_view prelude) {
    Frame frame(kernel, prelude);
    return KernelWriter(frame, entry).run();
}

}  // namespace napkin::writers
