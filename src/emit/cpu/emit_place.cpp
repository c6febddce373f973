// Gives every variable its shape, its lifetime and its place in the arena; memory is shared by variables that never live together.
#include <algorithm>
#include <numeric>
#include <set>

#include "emit/cpu/emit_frame.hpp"
#include "emit/cpu/emit_index.hpp"
#include "support/result.hpp"

namespace napkin::cpu {
namespace {
constexpr std::int64_t alignment_bytes = 64;

/// Whether the first value that is copied does not stand first in the buffer's row when a tile is ragged.
bool starts_late(const Index& dim) {
    const Affine* form = dim.affine();
    return form && std::any_of(form->terms.begin(), form->terms.end(), [](const auto& t) { return t.second < 0; });
}

void shape(Frame& frame, std::size_t v) {
    Layout& layout = frame.layouts[v];
    const Variable& variable = frame.kernel->variables[v];
    const Scope& scope = frame.scope(layout.scope);
    const std::size_t rank = variable.dims.size();
    layout.sizes.assign(rank, 1);
    layout.strides.assign(rank, 0);
    for (std::size_t d = 0; d < rank; ++d) {
        if (!variable.dims[d].affine()) {
            layout.sizes[d] = most_values(frame, variable.dims[d], layout.scope);
            continue;
        }
        for (const auto& [axis, c] : variable.dims[d].affine()->terms) {
            const bool panel = layout.panel_local && axis == frame.vector_axis;
            layout.sizes[d] += std::abs(c) * ((panel ? frame.panel() : span_of(scope, axis).padded) - 1);
        }
    }
    std::int64_t stride = 1;
    const auto take = [&](std::size_t d, std::int64_t size) {
        layout.strides[d] = stride;
        const auto next = checked_product(stride, size);
        internal_check(next.has_value(), "emit: a variable is past 2^62 values");
        stride = *next;
    };
    if (layout.innermost >= 0) {
        const auto inner = static_cast<std::size_t>(layout.innermost);
        // Whole vectors are copied in; a row that starts late (negative coefficients, padding) needs room for one more.
        const bool late = starts_late(variable.dims[inner]) || is_cut(frame, variable);
        take(inner, round_up(layout.sizes[inner], frame.lanes) + (late ? frame.lanes : 0));
        for (std::size_t d = rank; d-- > 0;)
            if (d != inner) take(d, layout.sizes[d]);
    }
    layout.count = stride;
}

/// A view and the buffer that stands in for it have the strides of the array in memory.
void shape_view(Frame& frame, std::size_t v) {
    Layout& layout = frame.layouts[v];
    const std::vector<AxisId>& axes = frame.program->diagram.array(frame.kernel->variables[v].array).axes;
    std::int64_t stride = 1;
    layout.reach = 1;
    for (std::size_t d = axes.size(); d-- > 0;) {
        layout.strides[d] = stride;
        layout.reach += stride * (layout.sizes[d] - 1);
        stride *= frame.extent(axes[d]);
    }
    layout.count = layout.may_overrun ? layout.reach + frame.lanes : 0;
}

/// Numbers the steps in order of execution and stretches lifetimes over the loops and runs that repeat them.
class Lifetimes {
public:
    explicit Lifetimes(Frame& frame) : frame_(frame) { walk(frame.body); }

private:
    void touch(VariableId v) {
        Layout& l = frame_.layouts[static_cast<std::size_t>(v)];
        if (l.first < 0) l.first = position_;
        l.last = position_;
    }

    void step(int index) {
        if (frame_.steps[static_cast<std::size_t>(index)].follows) --position_;
        frame_.steps[static_cast<std::size_t>(index)].position = position_;
        const TileStatement& s = *frame_.steps[static_cast<std::size_t>(index)].statement;
        if (const auto* load = std::get_if<Load>(&s)) touch(load->variable);
        if (const auto* store = std::get_if<Store>(&s)) touch(store->variable);
        if (const auto* init = std::get_if<Init>(&s)) touch(init->variable);
        if (const auto* compute = std::get_if<Compute>(&s)) {
            for (const Read* r : reads_of(*compute)) read(r->array);
            define(compute->variable);
            touch(compute->variable);
            for (const Read* r : reads_of(*compute)) touch(r->array);
        }
        if (const auto* load = std::get_if<Load>(&s)) define(load->variable);
        if (const auto* init = std::get_if<Init>(&s)) define(init->variable);
        ++position_;
    }

    void read(VariableId v) {
        for (Repeat& r : repeats_)
            if (!r.defined[static_cast<std::size_t>(v)]) r.early[static_cast<std::size_t>(v)] = true;
    }
    void define(VariableId v) {
        for (Repeat& r : repeats_) r.defined[static_cast<std::size_t>(v)] = true;
    }

    /// Runs `body` as something that is repeated: what it reads before it defines it, and what lives on both sides, lives throughout.
    template <class F>
    void repeat(F body) {
        const std::size_t n = frame_.layouts.size();
        repeats_.push_back({position_, std::vector<bool>(n), std::vector<bool>(n)});
        body();
        const Repeat done = std::move(repeats_.back());
        repeats_.pop_back();
        const int end = position_ - 1;
        for (std::size_t v = 0; v < n; ++v) {
            Layout& l = frame_.layouts[v];
            if (l.last < done.begin) continue;  // not touched here
            if (l.first < done.begin || done.early[v]) l.first = std::min(l.first, done.begin), l.last = end;
        }
        whole_.push_back({done.begin, end});
    }

    void walk(const std::vector<Node>& nodes) {
        for (const Node& node : nodes) {
            if (const int* s = std::get_if<int>(&node)) step(*s);
            if (const auto* panels = std::get_if<Panels>(&node))
                repeat([&] {
                    for (const int s : panels->steps) step(s);
                });
            if (const auto* loop = std::get_if<std::shared_ptr<LoopNode>>(&node)) repeat([&] { walk((*loop)->body); });
        }
    }

public:
    /// A variable that is used after the loop or run which defines it holds on to its memory for all of the repetitions.
    void stretch_back() {
        for (const auto& [begin, end] : whole_)
            for (Layout& l : frame_.layouts)
                if (l.first > begin && l.first <= end && l.last > end) l.first = begin;
    }

private:
    struct Repeat {
        int begin;
        std::vector<bool> defined, early;
    };
    Frame& frame_;
    int position_ = 0;
    std::vector<Repeat> repeats_;
    std::vector<std::pair<int, int>> whole_;
};

/// A map may write over an operand that dies with it, when it reads it at the very point that it writes and nothing else reads it then.
VariableId overwritten(const Frame& frame, VariableId variable) {
    const Layout& target = frame.layout(variable);
    VariableId found = -1;
    bool alone = true;
    for (const Step& step : frame.steps) {
        const auto* compute = std::get_if<Compute>(step.statement);
        if (!compute || step.position != target.first) continue;
        for (const Read* r : reads_of(*compute)) {
            const Layout& l = frame.layout(r->array);
            const Variable& v = frame.variable(r->array);
            if (frame.is_whole(r->array) != frame.is_whole(variable)) continue;
            if (compute->variable == variable && !compute->reduce && !compute->carry && r->array != variable &&
                !l.is_view && l.last == target.first && l.count == target.count && l.strides == target.strides &&
                v.dims == frame.variable(variable).dims && l.panel_local == target.panel_local && found < 0)
                found = r->array;
        }
    }
    if (found < 0) return -1;
    for (const Step& step : frame.steps) {
        const auto* compute = std::get_if<Compute>(step.statement);
        if (!compute || step.position != target.first) continue;
        for (const Read* r : reads_of(*compute))
            if (r->array == found) alone &= compute->variable == variable && r->indices == frame.variable(found).dims;
    }
    return alone ? found : -1;
}

/// First fit in order of first use, behind what is placed already. Integers and real numbers never share memory.
void place(Frame& frame, bool whole) {
    const std::int64_t unit = alignment_bytes / (frame.is_double ? 8 : 4), behind = frame.arena_values,
                       cells = whole && !frame.is_double ? 2 : 1;  // of a number, in real numbers
    const auto room = [&](const Layout& layout) { return round_up(layout.count * cells, unit); };
    std::vector<std::size_t> variables(frame.layouts.size());
    std::iota(variables.begin(), variables.end(), std::size_t{0});
    std::erase_if(variables, [&](std::size_t v) { return frame.layouts[v].first < 0 || frame.whole[v] != whole; });
    std::stable_sort(variables.begin(), variables.end(),
                     [&](std::size_t a, std::size_t b) { return frame.layouts[a].first < frame.layouts[b].first; });
    std::vector<std::size_t> placed;
    for (const std::size_t v : variables) {
        Layout& layout = frame.layouts[v];
        const VariableId below = overwritten(frame, static_cast<VariableId>(v));
        if (below >= 0) {
            layout.offset = frame.layout(below).offset;
        } else {
            std::vector<std::pair<std::int64_t, std::int64_t>> busy;
            for (const std::size_t p : placed) {
                const Layout& other = frame.layouts[p];
                if (other.first <= layout.last && layout.first <= other.last)
                    busy.emplace_back(other.offset, other.offset + room(other));
            }
            std::sort(busy.begin(), busy.end());
            layout.offset = behind;
            for (const auto& [begin, end] : busy) {
                if (layout.offset + layout.count * cells <= begin) break;
                layout.offset = std::max(layout.offset, end);
            }
        }
        placed.push_back(v);
        frame.arena_values = std::max(frame.arena_values, layout.offset + room(layout));
    }
}

/// Padding elements may read past a buffer, where it is harmless; past the arena there must be room for it.
std::int64_t overshoot(const Frame& frame) {
    std::int64_t room = frame.lanes;
    for (const Step& step : frame.steps) {
        const auto* compute = std::get_if<Compute>(step.statement);
        if (!compute) continue;
        for (const Read* r : reads_of(*compute)) {
            const Address a = frame.address(r->array, r->indices, step.scope);
            std::int64_t padding = 0;
            for (const auto& [axis, c] : a.local)
                if (c > 0)
                    padding += c * (span_of(frame.scope(step.scope), axis).padded -
                                    span_of(frame.scope(step.scope), axis).tile);
            room = std::max(room, padding + frame.lanes);
        }
    }
    return room;
}

}  // namespace

namespace {
/// One past the largest value of the axis that any tile reads, padding included.
std::int64_t padded_end(const Frame& frame, const Scope& scope, AxisId axis) {
    const Span& span = span_of(scope, axis);
    const std::int64_t extent = frame.extent(axis);
    if (!span.begins) return span.padded;
    const std::int64_t last = (extent - 1) / span.tile * span.tile;
    std::int64_t end = extent;
    for (const std::int64_t block : frame.blocks[static_cast<std::size_t>(axis)])
        end = std::max(end, last + round_up(extent - last, block));
    return last > 0 ? std::max(end, last - span.tile + span.padded) : end;
}

/// How often code reads a value of the tile: over the points of the statements that it does not depend on, at most `enough`.
std::int64_t reads_of_value(const Frame& frame, std::size_t v, std::int64_t enough) {
    std::int64_t times = 0;
    for (const Step& step : frame.steps) {
        const auto* compute = std::get_if<Compute>(step.statement);
        if (!compute) continue;
        const Scope& scope = frame.scope(step.scope);
        for (const Read* r : reads_of(*compute)) {
            if (static_cast<std::size_t>(r->array) != v) continue;
            std::vector<AxisId> axes = target_axes(frame.variable(compute->variable));
            axes.insert(axes.end(), compute->reduce_axes.begin(), compute->reduce_axes.end());
            std::int64_t here = 1;
            for (const AxisId a : axes)
                if (!carries(frame.kernel->variables[v], a))
                    here = std::min(enough, here * std::min(enough, span_of(scope, a).tile));
            times = std::min(enough, times + here);
        }
    }
    return times;
}

/// Whether a tile in the scope may be read where it lies: numbers of the compute type, at the core as in memory, not written here.
/// Along the vector axis a tile is a narrow strip of memory; what is read often is better copied to a buffer without gaps.
bool may_be_view(const Frame& frame, std::size_t v) {
    constexpr std::int64_t often = 4;
    const Variable& variable = frame.kernel->variables[v];
    const int last = static_cast<int>(variable.dims.size()) - 1;
    const bool written = contains(frame.outputs, variable.array);
    if (!variable.gathers.empty() || is_cut(frame, variable)) return false;
    const bool falls = std::any_of(variable.dims.begin(), variable.dims.end(), starts_late);
    if (variable.memory_type != (frame.is_double ? DType::f64 : DType::f32) || written || falls || last < 0 ||
        frame.layouts[v].innermost != last)
        return false;
    return frame.vector_axis < 0 || !carries(variable, frame.vector_axis) || reads_of_value(frame, v, often) < often;
}

}  // namespace

void choose_views(Frame& frame) {
    frame.packed.assign(frame.inputs.size(), false);
    for (const Step& step : frame.steps) {
        const auto* load = std::get_if<Load>(step.statement);
        if (!load || !may_be_view(frame, static_cast<std::size_t>(load->variable))) continue;
        const auto v = static_cast<std::size_t>(load->variable);
        const Variable& variable = frame.kernel->variables[v];
        Layout& layout = frame.layouts[v];
        shape(frame, v);
        const std::int64_t copied = layout.count;
        shape_view(frame, v);
        std::int64_t last = 0, total = 1;  // the farthest value that is read, the values that there are
        for (std::size_t d = 0; d < variable.dims.size(); ++d) {
            last += layout.strides[d] * variable.dims[d].affine()->constant;
            for (const auto& [axis, c] : variable.dims[d].affine()->terms)
                last += layout.strides[d] * c * (padded_end(frame, frame.scope(step.scope), axis) - 1);
        }
        for (const AxisId a : frame.program->diagram.array(variable.array).axes) total *= frame.extent(a);
        layout.may_overrun |= last >= total;
        // A buffer with the memory's strides has gaps; where it would be much larger than the tile, every tile is copied.
        layout.is_view = !layout.may_overrun || layout.reach <= 2 * copied;
    }
    for (std::size_t i = 0; i < frame.inputs.size(); ++i)
        for (std::size_t v = 0; v < frame.layouts.size(); ++v)
            if (frame.layouts[v].is_view && frame.kernel->variables[v].array == frame.inputs[i]) frame.packed[i] = true;
}

void place_variables(Frame& frame) {
    for (std::size_t v = 0; v < frame.layouts.size(); ++v)
        if (shape(frame, v); frame.layouts[v].is_view) shape_view(frame, v);
    Lifetimes(frame).stretch_back();
    place(frame, false);
    frame.arena_values += round_up(overshoot(frame), frame.lanes);
    if (!contains(frame.whole, true)) return;
    frame.arena_values = round_up(frame.arena_values, alignment_bytes / 4);
    place(frame, true);
    frame.arena_values += round_up(2 * overshoot(frame), frame.lanes);
}

}  // namespace napkin::cpu
