// Statements whose values lie in the arena or in global memory, as the interpreter's warps share them.
#include <algorithm>
#include <deque>

#include "lower/interpret_state.hpp"
#include "support/ranges.hpp"

namespace napkin::lower::interpreter {
namespace {

std::vector<std::int64_t> counts_of(const std::vector<AxisId>& axes, const Tile& tile) {
    return mapped<std::int64_t>(axes, [&](AxisId a) { return tile.count[at(a)]; });
}

class OnBlocks {
public:
    OnBlocks(Warp& warp, const Step& step)
        : warp_(warp),
          kernel_(warp.kernel),
          step_(step),
          compute_(std::get<Compute>(*step.statement)),
          tile_(warp.at[at(step.scope)]),
          axes_(target_axes(warp.grid.variable(compute_.variable))),
          lanes_(warp.grid.program.shapes.steps[warp.kernel.number(step)].lanes),
          body_(warp.grid.compiled(compute_.body)),
          point_(tile_.begin) {
        if (step.is_tile_pipelined() || step.deferred >= 0) unsupported("a statement of the tile before");
    }

    /// All of the values at points whose coordinates along `by` are the warp's.
    void run(const std::vector<AxisId>& by, StepId leader) {
        each_point(by, leader, [&] { put(compute_.reduce ? reduced(0, 1) : value(body_)); });
    }
    /// The warp's part of each sum goes to a place of its own.
    void run_partials() {
        for_each_point(counts_of(axes_, tile_), [&](const std::vector<std::int64_t>& p) {
            move_to(axes_, p);
            store(partial(warp_.number), reduced(warp_.number, warp_.warps(), false).as_real());
        });
    }
    void combine_partials() {
        const ReduceOp op = *compute_.reduce;
        each_point(axes_, kernel_.number(step_), [&] {
            Number all = identity(op, Kind::real);
            for (std::int64_t w = 0; w < warp_.warps(); ++w) {
                warp_.grid.moved.shared_to_registers.add(1, kernel_.value_bytes());
                all = apply(op, all, Number::real(warp_.cta.shared.read(partial(w))));
            }
            put(with_carry(all));
        });
    }

private:
    void move_to(const std::vector<AxisId>& axes, const std::vector<std::int64_t>& p) {
        for (std::size_t a = 0; a < axes.size(); ++a) point_[at(axes[a])] = tile_.begin[at(axes[a])] + p[a];
    }
    /// Each step has its own order of warps, so that a missing barrier between two steps shows.
    template <class F>
    void each_point(const std::vector<AxisId>& by, StepId leader, F f) {
        for_each_point(counts_of(axes_, tile_), [&](const std::vector<std::int64_t>& p) {
            move_to(axes_, p);
            std::int64_t number = 0;
            for (const AxisId a : by) number = number * tile_.count[at(a)] + point_[at(a)] - tile_.begin[at(a)];
            const bool is_own = has_lanes(compute_.variable) ? lanes_ && !compute_.reduce ? is_in_lane() : true
                                                             : (number + leader) % warp_.warps() == warp_.number;
            if (is_own) f();
        });
    }

    [[nodiscard]] bool has_lanes(VariableId v) const { return warp_.grid.fact(v).lanes.has_value(); }
    /// Whether the warp has the values at the point of a statement that goes through values in lanes.
    [[nodiscard]] bool is_in_lane() const {
        return warp_.has_lane(*lanes_, point_[at(lanes_->axis)] - tile_.begin[at(lanes_->axis)]);
    }

    Number value(PointProgram& program) {
        return program.at(point_, [&](const Read& r) { return element(r); });
    }
    /// Every `of`-th term of the reduction from `first` on.
    Number reduced(std::int64_t first, std::int64_t of, bool has_carry = true) {
        const Kind kind = accumulated_kind(body_.kind(), warp_.grid.variable(compute_.variable).memory_type);
        Number all = identity(*compute_.reduce, kind);
        std::int64_t number = 0;
        for_each_point(counts_of(compute_.reduce_axes, tile_), [&](const std::vector<std::int64_t>& p) {
            if (!lanes_ && number++ % of != first) return;
            move_to(compute_.reduce_axes, p);
            if (lanes_ && !is_in_lane()) return;
            all = apply(*compute_.reduce, all, value(body_).to(kind));
        });
        for (const AxisId a : compute_.reduce_axes) point_[at(a)] = tile_.begin[at(a)];
        return has_carry ? with_carry(all) : all;
    }
    Number with_carry(const Number& all) {
        if (!compute_.carry) return all;
        const Number carry = value(warp_.grid.compiled(compute_.carry));
        const Kind kind = join(carry.kind(), all.kind());
        return apply(*compute_.reduce, carry.to(kind), all.to(kind));
    }

    /// How a read finds its element at a point, where indices are affine and stay inside of the array.
    struct Located {
        const Read* read = nullptr;
        bool is_plain = false;
        Affine place = {};  ///< bytes of the arena, or cells of the array
    };
    const Located& located(const Read& r) {
        for (const Located& l : located_)
            if (l.read == &r) return l;
        Located& out = located_.emplace_back(Located{&r});
        const VariableId v = r.variable();
        const VariableFact& f = warp_.grid.fact(v);
        const Variable& variable = warp_.grid.variable(v);
        const bool is_affine = all_of(r.indices, [](const Index& i) { return i.affine() != nullptr; });
        if (!is_affine || r.indices.empty() || !variable.gathers.empty()) return out;
        out.is_plain = true;
        std::int64_t stride = 1;
        for (std::size_t d = r.indices.size(); d-- > 0;) {
            const Affine& index = *r.indices[d].affine();
            if (!f.is_view) {
                std::vector<std::int64_t> place(r.indices.size());
                for (std::size_t e = 0; e < place.size(); ++e) place[e] = warp_.origin(v, e);
                const std::int64_t first = warp_.byte_of(v, place);
                stride = kernel_.layout(v).strides[d] * (f.is_whole ? 8 : kernel_.value_bytes());
                if (d + 1 == r.indices.size()) out.place.constant += first;
                out.place.constant -= stride * place[d];
            } else {
                const Interval range = range_of(index, tile_.begin, tile_.count);
                out.is_plain &= range.low >= 0 && range.high < kernel_.extent(variable.limits[d]);
            }
            for (const auto& [axis, c] : index.terms) out.place.add(axis, stride * c);
            out.place.constant += stride * index.constant;
            if (f.is_view) stride *= kernel_.extent(variable.limits[d]);
        }
        return out;
    }
    Number element(const Read& r) {
        const VariableId v = r.variable();
        const VariableFact& f = warp_.grid.fact(v);
        if (f.in_registers || f.is_operand)
            unsupported("warps that share a statement read fragments or operands: " + warp_.grid.variable(v).name);
        if (f.is_in_threads()) return warp_.read_lanes(v, warp_.coordinates(r.indices, point_));
        const Located& there = located(r);
        Moved& moved = f.is_view ? warp_.grid.moved.global_to_registers : warp_.grid.moved.shared_to_registers;
        moved.add(1, f.is_view ? f.bytes : kernel_.value_bytes());
        if (there.is_plain) {
            std::int64_t place = there.place.constant;
            for (const auto& [axis, c] : there.place.terms) place += c * point_[at(axis)];
            const Variable& variable = warp_.grid.variable(v);
            return f.is_view
                       ? warp_.grid.memory[variable.array].at(static_cast<std::size_t>(place)).to(variable.memory_type)
                       : warp_.read_arena(v, place);
        }
        const std::vector<std::int64_t> coordinates = warp_.coordinates(r.indices, point_);
        if (!f.is_view) return warp_.read_arena(v, warp_.byte_of(v, coordinates));
        const auto place = warp_.place_in_array(v, coordinates);
        return place ? warp_.grid.load(warp_.grid.variable(v).array, *place) : Number::real(0);
    }

    void put(const Number& value) {
        const VariableId v = compute_.variable;
        const DType type = warp_.grid.variable(v).memory_type;
        const std::vector<std::int64_t> there = warp_.coordinates(warp_.grid.variable(v).dims, point_);
        const Number cell = is_float(type) ? Number::real(value.as_real()) : value.to(type);
        if (warp_.grid.fact(v).is_in_threads()) return warp_.write_lanes(v, there, cell);
        if (!warp_.grid.fact(v).is_view) {
            warp_.grid.moved.registers_to_shared.add(1, kernel_.value_bytes());
            return warp_.write_arena(v, warp_.byte_of(v, there), cell);
        }
        if (!warp_.grid.store(warp_.grid.variable(v).array, there, cell))
            throw InternalError("interpret: a statement leaves its array");
        warp_.grid.moved.registers_to_global.add(1, warp_.grid.fact(v).bytes);
    }

    /// Where a warp's part of the sum at the point lies.
    [[nodiscard]] std::int64_t partial(std::int64_t of_warp) const {
        const VariableId v = compute_.variable;
        const Layout& layout = kernel_.layout(v);
        const std::int64_t in_tile = has_lanes(v)
                                         ? 0
                                         : warp_.byte_of(v, warp_.coordinates(warp_.grid.variable(v).dims, point_)) -
                                               layout.offset * kernel_.value_bytes();
        return (kernel_.partials_offset + of_warp * layout.count) * kernel_.value_bytes() + in_tile;
    }
    void store(std::int64_t byte, double value) {
        warp_.grid.moved.registers_to_shared.add(1, kernel_.value_bytes());
        warp_.cta.shared.write(byte, kernel_.value_bytes(), value);
    }

    Warp& warp_;
    const ScheduledKernel& kernel_;
    const Step& step_;
    const Compute& compute_;
    const Tile& tile_;
    std::vector<AxisId> axes_;
    std::optional<LaneTile> lanes_;  ///< where the statement goes through values in lanes
    PointProgram& body_;
    std::vector<std::int64_t> point_;
    std::deque<Located> located_;
};

}  // namespace

namespace {

/// The step whose order of warps the step has: a map of a sum in accumulators finds it where it was added up.
StepId leader_of(const Warp& warp, StepId id) {
    for (const Read* r : warp.kernel.step(id).reads)
        if (const auto& added_by = warp.grid.fact(r->variable()).added_by) return *added_by;
    return id;
}

}  // namespace

/// A fused reduction follows the points that it reads, so a warp has both.
void run_block(Warp& warp, StepId id) {
    const Step& step = warp.kernel.step(id);
    OnBlocks on(warp, step);
    if (warp.kernel.partials(step) > 0) return on.run_partials();
    if (step.follower < 0) return on.run(target_axes(warp.grid.variable(variable_of(step))), leader_of(warp, id));
    const Step& follower = warp.kernel.step(step.follower);
    if (warp.kernel.partials(follower) > 0) unsupported("a fused reduction that warps share");
    const std::vector<AxisId> by = target_axes(warp.grid.variable(variable_of(follower)));
    on.run(by, id);
    OnBlocks(warp, follower).run(by, id);
}

void finish_block(Warp& warp, StepId id) {
    const Step& step = warp.kernel.step(id);
    if (warp.kernel.partials(step) > 0) OnBlocks(warp, step).combine_partials();
}

}  // namespace napkin::lower::interpreter
