// Gives every variable its shape, its lifetime and its place in the arena. Variables that never live at the same time
// share memory.

#include <algorithm>

#include "schedule/fragments.hpp"
#include "schedule/lane_product.hpp"
#include "schedule/legality.hpp"
#include "schedule/scheduled.hpp"
#include "schedule/thread_runs.hpp"
#include "schedule/views.hpp"
#include "support/ids.hpp"
#include "support/ranges.hpp"
#include "support/result.hpp"

namespace napkin {
namespace {

constexpr std::int64_t alignment_bytes = 64;

/// Sizes of the dimensions with padding, and the number of values of a full tile.
void measure(ScheduledKernel& kernel, VariableId id) {
    Layout& layout = kernel.layouts[id];
    const Variable& variable = kernel.variable(id);
    const AxisId vector_axis = kernel.schedule.vector_axis;
    const bool is_loaded_wide = !variable.gathers.empty() || kernel.facts(id).is_cut;
    layout.sizes.assign(variable.dims.size(), 1);
    layout.tile = 1;
    for (std::size_t d = 0; d < variable.dims.size(); ++d) {
        if (!variable.dims[d].affine()) {
            layout.sizes[d] = most_values(kernel, variable.dims[d], layout.scope);
            layout.tile *= layout.sizes[d];
            continue;
        }
        std::int64_t tile = 1;
        for (const auto& [axis, c] : variable.dims[d].affine()->terms) {
            const Span& span = kernel.span(axis, layout.scope);
            const bool panel = kernel.is_panel(id) && axis == vector_axis;
            // A gathered load, or one that the array's end cuts, brings in all that any statement may reach.
            const std::int64_t reach = c < 0 || is_loaded_wide ? span.padded : kernel.reach(id, axis, span.tile);
            layout.sizes[d] += std::abs(c) * ((panel ? kernel.panel() : reach) - 1);
            tile += std::abs(c) * ((panel ? std::min(kernel.panel(), span.tile) : span.tile) - 1);
        }
        if (static_cast<int>(d) == layout.term_dimension)
            layout.sizes[d] = ceil_div(layout.sizes[d], layout.terms), tile = ceil_div(tile, layout.terms);
        layout.tile *= tile;
    }
}

/// Whether a warp that copies the tile writes or reads a column of it. Its threads go along the last dimension in
/// memory, which is not the tile's innermost one. An odd row length puts the values of a column into different banks.
bool is_copied_by_columns(const ScheduledKernel& kernel, VariableId id) {
    const Variable& variable = kernel.variable(id);
    if (!kernel.in_blocks() || variable.dims.empty() ||
        kernel.place(id).innermost + 1 == static_cast<int>(variable.dims.size()))
        return false;
    return any_of(kernel.steps, [&](const Step& step) {
        const auto* load = std::get_if<Load>(step.statement);
        const auto* store = std::get_if<Store>(step.statement);
        return (load && load->variable == id) || (store && store->variable == id);
    });
}

/// A buffer: the innermost dimension in whole vectors, the others around it in their order.
void shape_buffer(ScheduledKernel& kernel, VariableId id) {
    Layout& layout = kernel.layouts[id];
    const Variable& variable = kernel.variable(id);
    const std::size_t rank = variable.dims.size();
    layout.in_runs = false;
    layout.strides.assign(rank, 0);
    std::int64_t stride = 1;
    const auto take = [&](std::size_t d, std::int64_t size) {
        layout.strides[d] = stride;
        const auto next = checked_product(stride, size);
        internal_check(next.has_value(), "schedule: a variable is past 2^62 values");
        stride = *next;
    };
    if (kernel.place(id).innermost >= 0) {
        const auto inner = at(kernel.place(id).innermost);
        // Whole vectors are copied in. A row that starts late (negative coefficients, padding) needs room for one more.
        const bool late = starts_late(variable.dims[inner]) || kernel.facts(id).is_cut;
        const bool packed = kernel.is_packed(id);
        const std::int64_t row = round_up(layout.sizes[inner], kernel.lanes) + (late ? kernel.lanes : 0);
        const bool by_columns = is_copied_by_columns(kernel, id) || is_read_across_runs(kernel, id);
        take(inner, packed ? kernel.panel() : by_columns ? row | 1 : row);
        for (std::size_t d = rank; d-- > 0;)
            if (d != inner) take(d, layout.sizes[d]);
        if (packed) {
            layout.panel_stride = stride;
            stride *= (layout.sizes[inner] + kernel.panel() - 1) / kernel.panel();
        }
    }
    layout.count = stride;
}

/// A shared-memory operand tile: whole rows of 128 bytes in its own type, for all of its stages.
void shape_operand(ScheduledKernel& kernel, VariableId id) {
    Layout& layout = kernel.layouts[id];
    const auto tile = operand_tile(kernel, id);
    if (!tile) return;  // the rules refuse it
    const std::int64_t stages = kernel.place(id).stages, value = bytes(kernel.variable(id).memory_type);
    layout.count = stages * tile->bytes / kernel.value_bytes();
    layout.tile = stages * (layout.tile * value + kernel.value_bytes() - 1) / kernel.value_bytes();
}

/// Marks the loads whose tile is still there from an earlier load (Step::stays). Each load of the variable brings in
/// the same values, those of the CTA tile. Nothing else writes to its buffer or to its array.
class StayingTiles {
public:
    explicit StayingTiles(ScheduledKernel& kernel) : kernel_(kernel), is_there_(kernel.layouts.size(), false) {
        find_fixed();
        walk(kernel.body, true);
    }

private:
    /// Those of which every load is of the group's whole tile.
    void find_fixed() {
        for (const VariableId v : kernel_.layouts.ids())
            may_stay_.push_back(kernel_.place(v).holding == MemorySpace::buffer && kernel_.variable(v).gathers.empty());
        for (const Step& step : kernel_.steps) {
            const VariableId id = variable_of(step);
            if (std::holds_alternative<Store>(*step.statement)) {
                for (const VariableId v : kernel_.layouts.ids())
                    if (kernel_.variable(v).array == kernel_.variable(id).array) may_stay_[at(v)] = false;
            } else if (may_stay_[at(id)]) {
                const bool is_load = std::holds_alternative<Load>(*step.statement);
                may_stay_[at(id)] = is_load && is_of_group(kernel_.variable(id), step.scope);
            }
        }
    }
    /// No loop around the scope cuts the tile: its indices take the same values as in the whole CTA tile.
    [[nodiscard]] bool is_of_group(const Variable& variable, ScopeId scope) const {
        return all_of(variable.dims, [&](const Index& dim) {
            return dim.affine() && all_of(dim.affine()->terms, [&](const auto& term) {
                       const Span &here = kernel_.span(term.first, scope), &group = kernel_.span(term.first, 0);
                       return here.tile == group.tile && here.begins == group.begins;
                   });
        });
    }
    void walk(const std::vector<Node>& nodes, bool always) {
        for (const Node& node : nodes) {
            if (const auto* loop = std::get_if<LoopId>(&node)) {
                const ScheduledLoop& l = kernel_.loop(*loop);
                walk(l.body, always && iterations_of(kernel_, l).least > 0);
            }
            const StepId* s = std::get_if<StepId>(&node);
            if (!s) continue;
            Step& step = kernel_.steps[*s];
            const auto* load = std::get_if<Load>(step.statement);
            if (!load) continue;
            step.stays = is_there_[at(load->variable)];
            if (always && may_stay_[at(load->variable)]) is_there_[at(load->variable)] = true;
        }
    }

    ScheduledKernel& kernel_;
    std::vector<bool> may_stay_, is_there_;  ///< by VariableId
};

/// Numbers the steps in order of execution. Stretches lifetimes over the loops and fused statements that repeat them.
class Lifetimes {
public:
    explicit Lifetimes(ScheduledKernel& kernel) : kernel_(kernel) {
        walk(kernel.body);
        // Operand tiles are copied before the loop that reads them.
        for (const VariableId v : kernel_.layouts.ids())
            if (kernel_.lies_as_operand(v)) kernel_.layouts[v].lives = {{0, std::max(0, position_ - 1)}};
        // A statement that is pipelined across tiles reads, during the next tile, what this tile left.
        for (const Step& step : kernel_.steps)
            for (const Read* r : step.reads)
                if (step.is_tile_pipelined()) kernel_.layouts[r->variable()].lives = {{0, std::max(0, position_ - 1)}};
        // A variable that is used after the loop or the fused statements that define it keeps its memory in all of
        // their iterations.
        for (const auto& [begin, end] : whole_)
            for (Layout& l : kernel_.layouts)
                for (Life& life : l.lives)
                    if (life.first > begin && life.first <= end && life.last > end) life.first = begin;
    }

private:
    void touch(VariableId v) {
        std::vector<Life>& lives = kernel_.layouts[v].lives;
        if (lives.empty()) lives.push_back({position_, position_});
        lives.back().last = position_;
    }
    /// A load or an initialization begins a lifetime.
    void begin(VariableId v) {
        kernel_.layouts[v].lives.push_back({position_, position_});
        define(v);
    }

    /// Whether the step computes a register value for the next iteration after this iteration has read it. That happens
    /// in loops whose statements run ahead.
    [[nodiscard]] bool is_made_anew(const Step& step) const {
        const auto& compute = std::get<Compute>(*step.statement);
        const VariableId v = compute.variable;
        return step.ahead > 0 && kernel_.is_in_registers(v) && !compute.carry && !repeats_.empty() &&
               repeats_.back().early[at(v)] && !repeats_.back().defined[at(v)];
    }

    /// The variables by whose elements the variable is gathered.
    [[nodiscard]] std::vector<VariableId> gathered_by(VariableId v) const {
        std::vector<VariableId> out;
        for (const Index& index : kernel_.variable(v).gathers)
            for (const VariableId by : read_variables(index.value()))
                if (!contains(out, by)) out.push_back(by);
        return out;
    }

    /// A use by a load: of a tile that it finds in place, or of the indices by which it gathers.
    void keep(VariableId v) {
        read(v);
        touch(v);
    }

    void step(StepId index, bool follows) {
        Step& step = kernel_.steps[index];
        if (step.is_tile_pipelined()) return;
        if (follows) --position_;
        step.position = position_;
        const TileStatement& s = *step.statement;
        if (const auto* load = std::get_if<Load>(&s)) {
            for (const VariableId by : gathered_by(load->variable)) keep(by);
            step.stays ? keep(load->variable) : begin(load->variable);
        }
        if (const auto* store = std::get_if<Store>(&s)) touch(store->variable);
        if (const auto* init = std::get_if<Init>(&s)) begin(init->variable);
        if (const auto* compute = std::get_if<Compute>(&s)) {
            for (const Read* r : step.reads) read(r->variable());
            if (is_made_anew(step)) repeats_.back().anew[at(compute->variable)] = true, begin(compute->variable);
            // What is computed without its own value begins a lifetime, as in another loop that computes it again.
            if (none_of(step.reads, [&](const Read* r) { return r->variable() == compute->variable; }))
                begin(compute->variable);
            define(compute->variable);
            touch(compute->variable);
            for (const Read* r : step.reads) touch(r->variable());
        }
        // The result of a pipelined statement takes no place at the core: it is stored as it is computed.
        if (step.deferred >= 0) kernel_.steps[step.deferred].position = position_;
        ++position_;
    }

    void read(VariableId v) {
        for (Repeat& r : repeats_)
            if (!r.defined[at(v)]) r.early[at(v)] = true;
    }
    void define(VariableId v) {
        for (Repeat& r : repeats_) r.defined[at(v)] = true;
    }

    /// Runs `body` as a region that is repeated. A variable lives throughout if the region reads it before it defines
    /// it, or if it is alive before the region and used inside.
    template <class F>
    void repeat(F body) {
        const std::size_t n = kernel_.layouts.size();
        repeats_.push_back({position_, std::vector<bool>(n), std::vector<bool>(n), std::vector<bool>(n)});
        body();
        const Repeat done = std::move(repeats_.back());
        repeats_.pop_back();
        const int end = position_ - 1;
        for (const VariableId v : kernel_.layouts.ids()) {
            std::vector<Life>& lives = kernel_.layouts[v].lives;
            if (lives.empty() || lives.back().last < done.begin) continue;  // not touched here
            auto here = find_if(lives, [&](const Life& l) { return l.last >= done.begin; });
            if (here->first >= done.begin && !done.early[v]) continue;
            // A variable that is first read and at last computed anew has no value in between.
            if (here + 1 != lives.end() && done.anew[v]) {
                here->first = done.begin, lives.back().last = end;
                continue;
            }
            *here = {std::min(here->first, done.begin), end};
            lives.erase(here + 1, lives.end());
        }
        whole_.emplace_back(done.begin, end);
    }

    void walk(const std::vector<Node>& nodes) {
        for (const Node& node : nodes) {
            if (const StepId* s = std::get_if<StepId>(&node)) step(*s, false);
            if (const auto* run = std::get_if<FusedStatements>(&node))
                repeat([&] {
                    for (const StepId s : run->steps) step(s, kernel_.atom(kernel_.step(s)).follows);
                });
            if (const auto* loop = std::get_if<LoopId>(&node)) repeat([&] { walk(kernel_.loop(*loop).body); });
        }
    }

    struct Repeat {
        int begin;
        std::vector<bool> defined, early, anew;
    };
    ScheduledKernel& kernel_;
    int position_ = 0;
    std::vector<Repeat> repeats_;
    std::vector<std::pair<int, int>> whole_;
};

/// The steps that compute, by their position.
std::vector<const Step*> computing_steps(const ScheduledKernel& kernel) {
    std::vector<const Step*> out;
    for (const Step& step : kernel.steps)
        if (std::holds_alternative<Compute>(*step.statement)) out.push_back(&step);
    stable_sort(out, [](const Step* a, const Step* b) { return a->position < b->position; });
    return out;
}

/// A map may write over an operand that dies with it, when it reads it at the very point that it writes and nothing
/// else reads it then. `computing`: computing_steps.
VariableId overwritten(const ScheduledKernel& kernel, const std::vector<const Step*>& computing, VariableId variable) {
    const Layout& target = kernel.layout(variable);
    VariableId found = -1;
    const int written = target.lives.front().first;
    const auto first = std::lower_bound(computing.begin(), computing.end(), written,
                                        [](const Step* step, int position) { return step->position < position; });
    const auto for_each_read_then = [&](const auto& f) {
        for (auto step = first; step != computing.end() && (*step)->position == written; ++step)
            for (const Read* r : (*step)->reads) f(std::get<Compute>(*(*step)->statement), *r);
    };
    for_each_read_then([&](const Compute& compute, const Read& r) {
        const Layout& l = kernel.layout(r.variable());
        const bool one_life = l.lives.size() == 1 && target.lives.size() == 1;
        const bool is_map = one_life && compute.variable == variable && !compute.reduce && !compute.carry &&
                            r.variable() != variable;
        const bool alike = kernel.is_whole(r.variable()) == kernel.is_whole(variable) &&
                           !kernel.is_view(r.variable()) && l.count == target.count && l.strides == target.strides &&
                           l.panel_stride == target.panel_stride &&
                           kernel.variable(r.variable()).dims == kernel.variable(variable).dims &&
                           kernel.place(r.variable()).holding == kernel.place(variable).holding;
        if (found < 0 && is_map && alike && l.lives.back().last == target.lives.front().first) found = r.variable();
    });
    if (found < 0) return -1;
    bool alone = true;
    for_each_read_then([&](const Compute& compute, const Read& r) {
        if (r.variable() == found) alone &= compute.variable == variable && r.indices == kernel.variable(found).dims;
    });
    return alone ? found : VariableId();
}

/// First fit in order of first use, behind what is placed already. Integers and real numbers never share memory.
void place(ScheduledKernel& kernel, bool whole) {
    const std::int64_t behind = kernel.arena_values;
    const auto unit_of = [&](VariableId v) {
        return (kernel.lies_as_operand(v) ? operand_alignment : alignment_bytes) / kernel.value_bytes();
    };
    const auto cells = [&](const Layout& layout) { return layout.count * kernel.cell_values(whole); };
    std::vector<VariableId> variables(kernel.layouts.size());
    iota(variables, VariableId(0));
    std::erase_if(variables, [&](VariableId v) { return !kernel.is_held(v) || kernel.is_whole(v) != whole; });
    stable_sort(variables, [&](VariableId a, VariableId b) {
        return kernel.layout(a).lives.front().first < kernel.layout(b).lives.front().first;
    });
    const std::vector<const Step*> computing = computing_steps(kernel);
    std::vector<VariableId> placed;
    placed.reserve(variables.size());
    std::vector<std::pair<std::int64_t, std::int64_t>> busy;
    for (const VariableId v : variables) {
        Layout& layout = kernel.layouts[v];
        const std::int64_t unit = unit_of(v);
        const VariableId over = overwritten(kernel, computing, v);
        busy.clear();
        for (const VariableId p : placed) {
            const Layout& other = kernel.layout(p);
            if (p != over && kernel.live_together(p, v))
                busy.emplace_back(other.offset, other.offset + round_up(cells(other), unit));
        }
        sort(busy);
        const auto is_free = [&](std::int64_t offset) {
            return all_of(
                busy, [&](const auto& range) { return offset + cells(layout) <= range.first || range.second <= offset; });
        };
        if (over >= 0 && is_free(kernel.layout(over).offset)) {
            layout.over = over;
            layout.offset = kernel.layout(over).offset;
        } else {
            if (over >= 0) {
                const Layout& dying = kernel.layout(over);
                busy.emplace_back(dying.offset, dying.offset + round_up(cells(dying), unit));
                sort(busy);
            }
            layout.offset = round_up(behind, unit);
            for (const auto& [begin, end] : busy) {
                if (layout.offset + cells(layout) <= begin) break;
                layout.offset = round_up(std::max(layout.offset, end), unit);
            }
        }
        placed.push_back(v);
        kernel.arena_values = std::max(kernel.arena_values, layout.offset + round_up(cells(layout), unit));
    }
}

/// Counts the most tile values that are alive at a step: in the arena, and with those in place. A variable that takes
/// over the place of another counts once with it at the step where both live.
void count_held(ScheduledKernel& kernel) {
    std::vector<std::int64_t> in_arena, in_place(kernel.steps.size());  // by step
    std::vector<int> positions;
    in_arena.reserve(kernel.steps.size()), positions.reserve(kernel.steps.size());
    for (const Step& step : kernel.steps) in_arena.push_back(kernel.partials(step)), positions.push_back(step.position);
    for (const VariableId id : kernel.layouts.ids()) {
        const Layout& l = kernel.layouts[id];
        if (l.lives.empty() || kernel.is_in_registers(id) || kernel.is_in_lanes(id) || kernel.is_in_accumulators(id))
            continue;
        std::vector<std::int64_t>& held = kernel.is_held(id) ? in_arena : in_place;
        const std::int64_t values = l.tile * kernel.cell_values(kernel.is_whole(id));
        const int early = l.over >= 0 ? 1 : 0;
        for (std::size_t s = 0; s < positions.size(); ++s)
            for (const Life& life : l.lives)
                if (life.first + early <= positions[s] && positions[s] <= life.last) {
                    held[s] += values;
                    break;
                }
    }
    kernel.held_values = kernel.memory_values = 0;
    for (std::size_t s = 0; s < kernel.steps.size(); ++s) {
        kernel.held_values = std::max(kernel.held_values, in_arena[s]);
        kernel.memory_values = std::max(kernel.memory_values, in_arena[s] + in_place[s]);
    }
}

/// Padding may be read past a buffer, where it is harmless. Past the arena there must be room for it.
std::int64_t overshoot(const ScheduledKernel& kernel) {
    std::int64_t room = kernel.lanes;
    for (const Step& step : kernel.steps) {
        const auto* compute = std::get_if<Compute>(step.statement);
        // Only these axes have blocks of several values.
        const Atom* atom = compute ? &kernel.atom(step) : nullptr;
        if (!atom || (atom->vector_axis < 0 && atom->row_axis < 0)) continue;
        for (const Read* r : step.reads) {
            std::int64_t padding = 0;
            for (std::size_t d = 0; d < r->indices.size(); ++d) {
                if (!r->indices[d].affine()) continue;
                for (const auto& [axis, c] : r->indices[d].affine()->terms) {
                    if (c <= 0 || (axis != atom->vector_axis && axis != atom->row_axis)) continue;
                    const std::int64_t block = kernel.block_size(*atom, axis);
                    const std::int64_t tile = kernel.span(axis, step.scope).tile;
                    padding += c * kernel.layout(r->variable()).strides[d] * (round_up(tile, block) - tile);
                }
            }
            room = std::max(room, padding + kernel.lanes);
        }
    }
    return room;
}

/// Behind the tiles: room for the partials of the statement that has the most.
void place_partials(ScheduledKernel& kernel) {
    std::int64_t most = 0;
    for (const Step& step : kernel.steps) most = std::max(most, kernel.partials(step));
    const std::int64_t unit = alignment_bytes / kernel.value_bytes();
    if (most > 0) kernel.partials_offset = round_up(kernel.arena_values, unit);
    if (most > 0) kernel.arena_values = kernel.partials_offset + round_up(most, unit);
}

/// Behind the partials: the staging tiles of all warps.
void place_staging(ScheduledKernel& kernel) {
    const std::int64_t unit = operand_alignment / kernel.value_bytes();
    for (const VariableId v : kernel.layouts.ids()) {
        const std::int64_t boxes = kernel.schedule.places[v].staging_tiles * kernel.schedule.warps.value;
        if (boxes == 0) continue;
        kernel.layouts[v].offset = round_up(kernel.arena_values, unit);
        kernel.arena_values = kernel.layouts[v].offset + boxes * staging_bytes(kernel) / kernel.value_bytes();
    }
}

/// Behind everything: the barriers of operands' stages, and the queue stages that hand on the numbers of CTA tiles.
std::int64_t barrier_values(const ScheduledKernel& kernel) {
    return round_up(barrier_bytes(kernel), alignment_bytes) / kernel.value_bytes();
}

}  // namespace

std::int64_t num_barriers(const ScheduledKernel& kernel) {
    std::int64_t barriers = 0;
    if (!kernel.has_bulk_copies()) return 0;
    for (const VariableId v : kernel.layouts.ids())
        if (kernel.is_operand(v)) barriers += kernel.schedule.places[v].stages;
    return kernel.producer_role() ? 2 * barriers : barriers;
}

std::int64_t barrier_bytes(const ScheduledKernel& kernel) {
    return num_barriers(kernel) * 8 + (kernel.is_dynamic() ? queue_stages * queue_stage_bytes : 0);
}

bool ScheduledKernel::live_together(VariableId a, VariableId b) const {
    const std::vector<Life>&x = layout(a).lives, &y = layout(b).lives;
    if (x.size() == 1 && y.size() == 1) return x.front().meets(y.front());
    return any_of(x, [&](const Life& l) { return any_of(y, [&](const Life& other) { return l.meets(other); }); });
}

void shape(ScheduledKernel& kernel, VariableId id) {
    measure(kernel, id);
    // A schedule file may ask for a view that is not legal. It has the shape of a buffer until the rules refuse it.
    kernel.is_view(id) && may_be_view(kernel, id) ? shape_view(kernel, id) : shape_buffer(kernel, id);
    if (kernel.lies_as_operand(id)) shape_operand(kernel, id);
}

void apply_storage(ScheduledKernel& kernel) {
    mark_lane_operands(kernel);
    for (std::size_t v = 0; v < kernel.layouts.size(); ++v) shape(kernel, VariableId::of(v));
    const auto with_views = [&](const std::vector<ArrayId>& arrays) {
        std::vector<bool> found(arrays.size(), false);
        for (std::size_t i = 0; i < arrays.size(); ++i)
            for (const VariableId id : kernel.layouts.ids())
                if (((kernel.is_view(id) && !kernel.is_read_by_threads(id) && !kernel.facts(id).is_only_gathered &&
                      !kernel.layout(id).in_runs) ||
                     kernel.is_operand(id) || kernel.is_staged_out(id)) &&
                    kernel.kernel->variables[id].array == arrays[i])
                    found[i] = true;
        return found;
    };
    kernel.packed = with_views(kernel.inputs), kernel.dense = with_views(kernel.outputs);
    kernel.in_rows = mapped<bool>(kernel.outputs, [&](ArrayId array) {
        return any_of(kernel.layouts.ids(), [&](VariableId id) {
            return kernel.on_tensor_cores() && kernel.is_in_registers(id) && kernel.kernel->variables[id].array == array;
        });
    });
    // A CPU's core loads such a tile again from its caches, so other tiles may take its place until then.
    if (kernel.in_blocks()) StayingTiles{kernel};
    const Lifetimes lifetimes(kernel);
    place(kernel, false);
    kernel.arena_values += round_up(overshoot(kernel), kernel.lanes);
    if (any_of(kernel.variable_facts, [](const VariableFacts& facts) { return facts.is_whole; })) {
        kernel.arena_values = round_up(kernel.arena_values, alignment_bytes / 4);
        place(kernel, true);
        kernel.arena_values += round_up(2 * overshoot(kernel), kernel.lanes);
    }
    place_partials(kernel);
    place_staging(kernel);
    kernel.arena_values += barrier_values(kernel);
    count_held(kernel);
}

}  // namespace napkin
