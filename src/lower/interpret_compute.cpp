// Statements on register fragments and products, as the interpreter's warps compute them.
#include <algorithm>
#include <cmath>
#include <numbers>

#include "lower/interpret_state.hpp"
#include "lower/size_formulas.hpp"
#include "support/ranges.hpp"

namespace napkin::lower::interpreter {
namespace {

/// A value of a lane: its place among those of the thread.
struct Spot {
    std::int64_t lane = 0, r = 0, j = 0, c = 0;
};

/// A statement on fragments in the iteration at hand: where its values stand, and what its reads find.
class OnFragments {
public:
    OnFragments(Warp& warp, const Step& step)
        : warp_(warp),
          kernel_(warp.kernel),
          step_(step),
          tile_(warp.at[at(step.scope)]),
          target_(warp.grid.fact(variable_of(step))),
          columns_(warp.grid.program.shapes.steps[kernel_.number(step)].columns),
          rows_axis_(kernel_.schedule.mma_m) {
        is_in_parts_ = kernel_.runs_in_parts(step);
        all_columns_ = columns_ < 0 ? 0 : columns_of(kernel_, columns_, step.scope);
        may_leave_ = any_of(step.reads, [&](const Read* r) { return !kernel_.is_in_registers(r->variable()); });
        clamps_rows_ = may_leave_ && is_padded(rows_axis_, kernel_.fragment_rows());
        clamps_columns_ = may_leave_ && columns_ >= 0 && is_padded(columns_, all_columns_);
    }

    /// target = value, for each value of the target.
    void map(const PointMath& math) {
        PointProgram& program = warp_.grid.compiled(math.value);
        const VariableId v = variable_of(step_);
        each_lane(target_.has_rows, own_columns(), [&](const Spot& spot) {
            const std::int64_t n = number_in_thread(warp_, v, &step_, spot.r, spot.j, spot.c);
            warp_.value(v, spot.lane, n) = target_.held(value(program, spot));
        });
    }

    /// The warp's own parts of the tile that it writes for products. Past the tile's end they are zeros.
    void write_tile(const PointMath& math) {
        PointProgram& program = warp_.grid.compiled(math.value);
        const VariableId v = variable_of(step_);
        const Variable& variable = warp_.grid.variable(v);
        const OperandTile& tile = *target_.tile;
        const AxisId rows = variable.dims[at(tile.outer)].single_axis(),
                     columns = variable.dims[at(tile.inner)].single_axis();
        const std::int64_t parts = columns_of(kernel_, columns, step_.scope) / written_values,
                           threads = warp_.warps() * Warp::lanes;
        for (std::int64_t p = 0; p < tile.rows * parts; ++p) {
            if (p % threads / Warp::lanes != warp_.number) continue;
            const std::int64_t row = p / parts;
            for (std::int64_t i = 0; i < written_values; ++i) {
                const std::int64_t column = p % parts * written_values + i;
                point_ = tile_.begin, point_[at(rows)] += row, point_[at(columns)] += column;
                const bool is_inside = row < tile_.count[at(rows)] && column < tile_.count[at(columns)];
                const double value = is_inside
                                         ? program.at(point_, [&](const Read& r) { return element(r, Spot{}); }).as_real()
                                         : 0;
                warp_.cta.shared.write(warp_.operand_byte(v, warp_.stage_byte(v, 0), row, column), target_.bytes,
                                       round_to(variable.memory_type, value));
            }
        }
    }

    /// Reduces each thread's columns, then those of the row where `of_row`. Returns a value for each lane and row.
    std::vector<double> reduced(const PointMath& math, bool of_row) {
        const ReduceOp op = *std::get<Compute>(*step_.statement).reduce;
        const bool has_end = columns_ >= 0 && !math.has_whole_columns;
        PointProgram& program = warp_.grid.compiled(math.value);
        std::vector<double> out(lane_rows(), identity(op));
        each_lane(true, all_columns_, [&](const Spot& spot) {
            if (has_end && column(spot) >= tile_.count[at(columns_)]) return;
            double& acc = out[number(spot)];
            acc = apply(op, acc, value(program, spot).as_real());
        });
        if (of_row) over_row(op, out);
        if (math.factor)
            for (double& x : out) x *= real_value(math.factor, warp_.kernel.extents);
        return out;
    }
    /// The same, combined with the carry, into the target.
    void reduce(const PointMath& math) {
        const VariableId v = variable_of(step_);
        const std::vector<double> found = reduced(math, !target_.is_kept_by_threads);
        each_lane(true, 0, [&](const Spot& spot) {
            double result = found[number(spot)];
            if (math.carry)
                result = apply(*std::get<Compute>(*step_.statement).reduce,
                               value(warp_.grid.compiled(math.carry), spot).as_real(), result);
            warp_.value(v, spot.lane, spot.r) = result;
        });
    }

    void over_row(ReduceOp op, std::vector<double>& of_lanes) const {
        const std::int64_t together = warp_.fragments().threads_a_row(), rows = warp_.fragments().rows_a_thread;
        for (std::int64_t r = 0; r < rows; ++r)
            for (std::int64_t first = 0; first < Warp::lanes; first += together) {
                double all = identity(op);
                for (std::int64_t l = first; l < first + together; ++l)
                    all = apply(op, all, of_lanes[static_cast<std::size_t>(l * rows + r)]);
                for (std::int64_t l = first; l < first + together; ++l)
                    of_lanes[static_cast<std::size_t>(l * rows + r)] = all;
            }
    }

    /// Nothing excludes a point of the warp's rows in this iteration.
    [[nodiscard]] bool is_unmasked(const Unmasked& within) const {
        if (within.whole >= 0 && tile_.count[at(within.whole)] < kernel_.span(within.whole, step_.scope).tile)
            return false;
        const std::int64_t rows = warp_.fragments().rows;
        const std::pair<std::int64_t, std::int64_t> own{rows * warp_.number, rows};
        for (const Affine& form : within.forms)
            if (warp_.grid.bound(form, tile_, false, &own) < 0) return false;
        if (!within.by_data) return true;
        for (const LoopId l : kernel_.loops.ids())
            if (kernel_.loop(l).scope == step_.scope) {
                const std::int64_t x = tile_.begin[at(kernel_.loop(l).loop->axis)];
                return x >= warp_.ranges[l].whole_first && x < warp_.ranges[l].whole_last;
            }
        throw InternalError("interpret: data mask K blocks of no loop");
    }

private:
    [[nodiscard]] std::size_t lane_rows() const {
        return static_cast<std::size_t>(Warp::lanes * warp_.fragments().rows_a_thread);
    }
    [[nodiscard]] std::size_t number(const Spot& spot) const {
        return static_cast<std::size_t>(spot.lane * warp_.fragments().rows_a_thread + spot.r);
    }
    [[nodiscard]] std::int64_t own_columns() const {
        return is_in_parts_ ? kernel_.column_parts->columns : all_columns_;
    }
    [[nodiscard]] bool is_padded(AxisId axis, std::int64_t n) const {
        const Span& span = kernel_.span(axis, step_.scope);
        return span.ragged || span.tile != n;
    }
    template <class F>
    void each_lane(bool has_rows, std::int64_t columns, F f) {
        for (std::int64_t lane = 0; lane < Warp::lanes; ++lane)
            for_each_own_value(warp_.fragments(), has_rows, columns,
                               [&](std::int64_t r, std::int64_t j, std::int64_t c) { f(Spot{lane, r, j, c}); });
    }
    [[nodiscard]] std::int64_t column(const Spot& spot) const {
        return warp_.fragments().columns * spot.j + warp_.grid.lane_column[at(spot.lane)] +
               warp_.grid.column_step * spot.c + (is_in_parts_ ? kernel_.column_parts->columns * warp_.part : 0);
    }

    Number value(PointProgram& program, const Spot& spot) {
        point_ = tile_.begin;
        if (kernel_.span(rows_axis_, step_.scope).tile > 1) {
            const std::int64_t row = warp_.number * warp_.fragments().rows + warp_.grid.lane_row[at(spot.lane)] +
                                     warp_.grid.row_step * spot.r;
            point_[at(rows_axis_)] += clamps_rows_ ? std::min(row, tile_.count[at(rows_axis_)] - 1) : row;
        }
        if (columns_ >= 0 && kernel_.span(columns_, step_.scope).tile > 1)
            point_[at(columns_)] += clamps_columns_ ? std::min(column(spot), tile_.count[at(columns_)] - 1) : column(spot);
        return program.at(point_, [&](const Read& r) { return element(r, spot); });
    }

    Number element(const Read& r, const Spot& spot) {
        const VariableId v = r.variable();
        const VariableFact& f = warp_.grid.fact(v);
        if (f.in_registers)
            return f.number(warp_.value(v, spot.lane, number_in_thread(warp_, v, &step_, spot.r, spot.j, spot.c)));
        if (f.is_read_by_rows) {
            const std::int64_t rows = warp_.fragments().rows_a_thread;
            const std::int64_t n = (f.row_values > rows ? rows * warp_.part : 0) + (target_.has_rows ? spot.r : 0);
            return warp_.rows.at(v)[static_cast<std::size_t>(spot.lane * f.row_values + n)];
        }
        if (f.is_operand) return Number::real(operand(v, f));
        const std::vector<std::int64_t> there = warp_.coordinates(r.indices, point_);
        if (f.is_view) {
            warp_.grid.moved.global_to_registers.add(1, f.bytes);
            const auto place = warp_.place_in_array(v, there);
            return place ? warp_.grid.load(warp_.grid.variable(v).array, *place) : Number::real(0);
        }
        warp_.grid.moved.shared_to_registers.add(1, kernel_.value_bytes());
        return warp_.read_arena(v, warp_.byte_of(v, there));
    }
    double operand(VariableId v, const VariableFact& f) {
        const auto [found, added] = running_.try_emplace(v);
        if (added)
            for (const int d : {f.tile->outer, f.tile->inner}) {
                const Index& index = warp_.grid.variable(v).dims[at(d)];
                const bool is_packed = f.tile->packed > 1 && d == f.tile->inner;
                found->second.push_back(is_packed ? index.axes().front() : *running_axis(kernel_, index, step_.scope));
            }
        const auto local = [&](AxisId axis) {
            return axis >= 0 && kernel_.span(axis, step_.scope).tile > 1 ? point_[at(axis)] - tile_.begin[at(axis)] : 0;
        };
        warp_.grid.moved.shared_to_registers.add(1, f.bytes);
        return warp_.operand(v, warp_.stage_byte(v, warp_.stage.at(v)), local(found->second[0]),
                             local(found->second[1]) / f.tile->packed);
    }

    Warp& warp_;
    const ScheduledKernel& kernel_;
    const Step& step_;
    const Tile& tile_;
    const VariableFact& target_;
    AxisId columns_, rows_axis_;
    std::int64_t all_columns_ = 0;
    bool is_in_parts_ = false, may_leave_ = false, clamps_rows_ = false, clamps_columns_ = false;
    std::vector<std::int64_t> point_;
    std::map<VariableId, std::vector<AxisId>> running_;
};

}  // namespace

std::int64_t number_in_thread(const Warp& warp, VariableId v, const Step* step, std::int64_t r, std::int64_t j,
                              std::int64_t c) {
    const VariableFact& f = warp.grid.fact(v);
    const RegisterTile& tile = warp.fragments();
    const std::int64_t of_tile = f.has_rows ? tile.values() : tile.columns_a_thread;
    std::int64_t number = 0;
    if (step && f.columns >= 0 && !f.is_passing && warp.kernel.runs_in_parts(*step))
        number = warp.kernel.column_parts->columns / tile.columns * of_tile * warp.part;
    if (!f.has_rows) return number + (f.columns >= 0 ? of_tile * j + c : 0);
    return number + (f.columns >= 0 ? of_tile * j + tile.row_stride * r + tile.column_stride * c : r);
}

void run_init(Warp& warp, const Init& init) {
    const auto& statement = std::get<napkin::Init>(*warp.kernel.step(init.step).statement);
    const VariableId v = statement.variable;
    if (warp.kernel.rescale && warp.kernel.rescale->maximum == v) warp.moves = true, warp.stays = false;
    if (warp.grid.fact(v).in_registers)
        return void(std::fill(warp.registers[v].begin(), warp.registers[v].end(), statement.value));
    if (warp.grid.fact(v).is_in_threads())
        return void(warp.in_lanes[v].assign(warp.in_lanes[v].size(), statement.value));
    if (warp.grid.fact(v).is_view) unsupported("an initial value in global memory: " + warp.grid.variable(v).name);
    const Layout& layout = warp.kernel.layout(v);
    const std::int64_t each = warp.grid.fact(v).is_whole ? 8 : warp.kernel.value_bytes();
    const DType type = warp.grid.variable(v).memory_type;
    for (std::int64_t i = warp.number; i < layout.count; i += warp.warps())
        warp.write_arena(
            v, layout.offset * warp.kernel.value_bytes() + i * each,
            is_float(type) ? Number::real(statement.value) : Number::whole(Kind::i64, whole_of(type, statement.value)));
}

void run_fragment(Warp& warp, StepId id) {
    const Step& step = warp.kernel.step(id);
    const StatementMath& math = warp.grid.math(step);
    OnFragments on(warp, step);
    const PointMath& point = math.within && on.is_unmasked(*math.within) ? *math.unmasked : math.any;
    if (warp.kernel.is_written(variable_of(step))) return on.write_tile(point);
    math.reduces_columns ? on.reduce(point) : on.map(point);
}

void sum_rows(Warp& warp, ScopeId scope) {
    for (const Step& step : warp.kernel.steps)
        if (const auto* compute = std::get_if<Compute>(step.statement);
            compute && step.scope == scope && warp.grid.fact(compute->variable).is_kept_by_threads)
            OnFragments(warp, step).over_row(ReduceOp::sum, warp.registers[compute->variable]);
}

// ---- products
// ------------------------------------------------------------

namespace {

/// Fragments of results as the rows and columns of a factor, rounded to its type. Past the tile's end they are zeros.
std::vector<double> rounded(Warp& warp, const ProductFact& fact, VariableId v, ScopeId scope) {
    const RegisterTile& tile = warp.fragments();
    const std::int64_t end = fact.is_padded ? warp.at[at(scope)].count[at(fact.product.k)] : fact.depth;
    std::vector<double> out(static_cast<std::size_t>(tile.rows * fact.depth), 0);
    for (std::int64_t lane = 0; lane < Warp::lanes; ++lane)
        for_each_own_value(tile, true, fact.depth, [&](std::int64_t r, std::int64_t j, std::int64_t c) {
            const std::int64_t row = warp.grid.lane_row[at(lane)] + warp.grid.row_step * r,
                               k = tile.columns * j + warp.grid.lane_column[at(lane)] + warp.grid.column_step * c,
                               n = number_in_thread(warp, v, nullptr, r, j, c);
            if (k < end && n < warp.grid.fact(v).registers)
                out[static_cast<std::size_t>(row * fact.depth + k)] = round_to(fact.product.type, warp.value(v, lane, n));
        });
    return out;
}

/// The value of a factor at its row, or column, and k.
double factor_at(const Warp& warp, const Factor& factor, std::int64_t number, std::int64_t k) {
    number += factor.first;
    return factor.along_k ? warp.operand(factor.operand, factor.byte, number, k)
                          : warp.operand(factor.operand, factor.byte, k, number);
}

/// Multiplies what the factors hold now, and leaves the sums in `held`.
void multiply(Warp& warp, Product& p) {
    const ProductFact& fact = warp.grid.product_of(p.step);
    const RegisterTile& tile = warp.fragments();
    const std::int64_t depth = fact.depth;
    if (p.rounded >= 0) p.a_values = warp.rounded.at(p.rounded);
    if (p.a_values.empty())
        for (std::int64_t row = 0; row < tile.rows; ++row)
            for (std::int64_t k = 0; k < depth; ++k) p.a_values.push_back(factor_at(warp, p.a, row, k));
    std::vector<double> b;
    for (std::int64_t n = 0; n < fact.columns; ++n)
        for (std::int64_t k = 0; k < depth; ++k) b.push_back(factor_at(warp, p.b, n, k));
    const VariableFact& target = warp.grid.fact(p.target);
    const std::int64_t registers = target.registers;
    for (std::int64_t lane = 0; lane < Warp::lanes; ++lane)
        for_each_own_value(tile, true, fact.columns, [&](std::int64_t r, std::int64_t j, std::int64_t c) {
            const std::int64_t row = warp.grid.lane_row[at(lane)] + warp.grid.row_step * r,
                               n = tile.columns * j + warp.grid.lane_column[at(lane)] + warp.grid.column_step * c;
            double& d = p.held[static_cast<std::size_t>(lane * registers + number_in_thread(warp, p.target, nullptr, r, j, c))];
            double sum = p.adds ? d : 0;
            for (std::int64_t k = 0; k < depth; ++k)
                sum += p.a_values[static_cast<std::size_t>(row * depth + k)] * b[static_cast<std::size_t>(n * depth + k)];
            d = std::isnan(sum) ? sum : target.held(target.number(sum));
        });
}

Product product_at(Warp& warp, const Step& step, const ProductFact& fact, bool by_warp) {
    const MmaProduct& m = fact.product;
    Product p{.step = warp.kernel.number(step), .target = variable_of(step), .adds = m.adds};
    const RegisterTile& tile = warp.fragments();
    const auto byte = [&](VariableId v) { return warp.stage_byte(v, warp.kernel.is_written(v) ? 0 : warp.stage.at(v)); };
    if (m.a_in_registers) {
        if (warp.grid.fact(m.a->variable()).is_rounded_ahead)
            p.rounded = m.a->variable();
        else
            p.a_values = rounded(warp, fact, m.a->variable(), step.scope);
    } else {
        // A warp whose rows all lie past the tile's end multiplies those of the last one.
        const std::int64_t last = columns_of(warp.kernel, m.m, step.scope) / tile.rows - 1;
        p.a = {m.a->variable(), byte(m.a->variable()),
               tile.rows * (by_warp ? std::min(warp.number, last) : warp.number), fact.a_along_k};
    }
    p.b = {m.b->variable(), byte(m.b->variable()), warp.kernel.runs_in_parts(step) ? warp.part * fact.columns : 0,
           fact.b_along_k};
    Moved& moved = by_warp ? warp.grid.moved.shared_to_registers : warp.grid.moved.shared_to_tensor_cores;
    if (!m.a_in_registers) moved.add(tile.rows * fact.depth, bytes(m.type));
    if (by_warp || warp.number % warp.kernel.unit.matrix.warps_together() == 0)
        moved.add(fact.columns * fact.depth, bytes(m.type));
    return p;
}

}  // namespace

void run_product(Warp& warp, const Mma& mma) {
    const Step& step = warp.kernel.step(mma.step);
    const auto& compute = std::get<Compute>(*step.statement);
    const ProductFact& fact = warp.grid.product_of(mma.step);
    const bool corrects = compute.carry && !adds_in_place(compute);
    const auto& rescale = warp.kernel.rescale;
    if (corrects && (!rescale || !reads_variable(compute.carry, rescale->correction) || warp.moves))
        OnFragments(warp, step).map(warp.grid.math(step).any);
    Product p = product_at(warp, step, fact, fact.product.by_warp());
    std::vector<double>& target = warp.registers[p.target];
    p.chains = p.adds && !corrects && any_of(warp.products, [&](const Product& o) { return o.target == p.target; });
    p.held = target;
    if (warp.grid.is_late && !fact.product.by_warp()) {
        std::fill(target.begin(), target.end(), nothing);
        warp.products.push_back(std::move(p));
        return;
    }
    multiply(warp, p);
    target = std::move(p.held);
}

void complete_products(Warp& warp, std::int64_t outstanding) {
    while (std::ssize(warp.products) > outstanding) {
        Product p = std::move(warp.products.front());
        warp.products.pop_front();
        multiply(warp, p);
        const auto next = find_if(warp.products, [&](const Product& o) { return o.target == p.target; });
        if (next == warp.products.end())
            warp.registers[p.target] = std::move(p.held);
        else if (next->chains)
            next->held = std::move(p.held);
    }
}

void round_ahead(Warp& warp, const Round& round) {
    for (const Step& step : warp.kernel.steps) {
        if (step.atom < 0 || step.scope != round.scope || step.ahead != round.ahead) continue;
        const VariableId v = variable_of(step);
        if (!warp.grid.fact(v).is_rounded_ahead) continue;
        for (const Step& product : warp.kernel.steps)
            if (product.atom >= 0 && warp.kernel.atom(product).kind == AtomKind::mma)
                if (const ProductFact& fact = warp.grid.product_of(warp.kernel.number(product));
                    fact.product.a_in_registers && fact.product.a->variable() == v)
                    warp.rounded[v] = rounded(warp, fact, v, round.scope);
    }
}

// ---- conditional rescaling (schedule/conditional_rescale.hpp)
// ------------------------------------------------------------

namespace {

class Rescaling {
public:
    Rescaling(Warp& warp, const Rescale& at)
        : warp_(warp),
          rescale_(*warp.kernel.rescale),
          iteration_(at.iteration),
          rows_(warp.fragments().rows_a_thread),
          limit_(real_value(rescale_.limit, warp.kernel.extents)) {}

    /// In the first iteration of a tile the maximum moves.
    void as_it_moves() { move(), weigh(), add_up(); }
    /// Weights with the maximum as it stands, and again after it has moved where that was too little.
    void try_as_it_stands() {
        each_row([&](std::int64_t lane, std::int64_t r) { warp_.value(rescale_.correction, lane, r) = 1; });
        warp_.moves = !warp_.stays;
        if (warp_.moves) move();
        weigh();
        if (const bool is_small = all_of(sums_, [&](double s) { return s <= limit_; }); !warp_.moves && !is_small) {
            warp_.moves = true;
            if (!scale()) {
                for (const StepId s : rescale_.again) run_again(s);
                move(), weigh();
            }
        }
        add_up();
    }

private:
    template <class F>
    void each_row(F f) const {
        for (std::int64_t lane = 0; lane < Warp::lanes; ++lane)
            for (std::int64_t r = 0; r < rows_; ++r) f(lane, r);
    }
    double& sum(std::int64_t lane, std::int64_t r) { return sums_[static_cast<std::size_t>(lane * rows_ + r)]; }

    void move() {
        for (const StepId s : rescale_.moving) run_fragment(warp_, s);
        say_whether_it_stays();
    }
    void say_whether_it_stays() {
        const double none_yet = std::copysign(infinity, -rescale_.rate);
        warp_.stays = true;
        each_row([&](std::int64_t lane, std::int64_t r) {
            const double delta = warp_.value(rescale_.correction, lane, r);
            if ((delta > 0 && delta < 1 / limit_) || warp_.value(rescale_.maximum, lane, r) == none_yet)
                warp_.stays = false;
        });
    }
    void weigh() {
        run_fragment(warp_, rescale_.weights);
        const Step& step = warp_.kernel.step(rescale_.sum);
        sums_ = OnFragments(warp_, step).reduced(warp_.grid.math(step).any, false);
    }
    /// Weights in range move with the sums by whole powers of two. False where some are out of range.
    bool scale() {
        constexpr double largest_rescaled_weight = 0x1p64;
        const Step& step = warp_.kernel.step(rescale_.weights);
        const VariableId weights = variable_of(step);
        std::vector<double> most(sums_.size(), 0);
        const std::int64_t columns = columns_of(
            warp_.kernel, warp_.grid.program.shapes.steps[warp_.kernel.number(step)].columns, step.scope);
        const auto each = [&](auto f) {
            for (std::int64_t lane = 0; lane < Warp::lanes; ++lane)
                for_each_own_value(warp_.fragments(), true, columns, [&](std::int64_t r, std::int64_t j, std::int64_t c) {
                    f(lane, r, warp_.value(weights, lane, number_in_thread(warp_, weights, &step, r, j, c)));
                });
        };
        const auto row = [&](std::int64_t lane, std::int64_t r) { return static_cast<std::size_t>(lane * rows_ + r); };
        each([&](std::int64_t lane, std::int64_t r, double w) { most[row(lane, r)] = std::max(most[row(lane, r)], w); });
        OnFragments(warp_, step).over_row(ReduceOp::max, most);
        for (double& m : most) m /= real_value(rescale_.largest, warp_.kernel.extents);
        if (!all_of(most, [](double m) { return m < largest_rescaled_weight; }) ||
            !all_of(sums_, [](double s) { return s < infinity; }))
            return false;
        for (const StepId s : rescale_.moving) {
            if (variable_of(warp_.kernel.step(s)) != rescale_.maximum) {
                run_fragment(warp_, s);
                continue;
            }
            each_row([&](std::int64_t lane, std::int64_t r) {
                const double m = most[row(lane, r)];
                warp_.value(rescale_.maximum, lane, r) += (m < 1 ? 0 : std::ilogb(m)) * std::numbers::ln2 / rescale_.rate;
            });
        }
        say_whether_it_stays();
        each([&](std::int64_t lane, std::int64_t r, double& w) { w *= warp_.value(rescale_.correction, lane, r); });
        each_row([&](std::int64_t lane, std::int64_t r) { sum(lane, r) *= warp_.value(rescale_.correction, lane, r); });
        return true;
    }
    /// Each warp decides for itself, so one warp computes again what its warpgroup computes together.
    void run_again(StepId id) {
        const Step& step = warp_.kernel.step(id);
        if (warp_.kernel.atom(step).kind != AtomKind::mma) return run_fragment(warp_, id);
        Product p = product_at(warp_, step, warp_.grid.product_of(id), true);
        p.held = warp_.registers[p.target];
        multiply(warp_, p);
        warp_.registers[p.target] = std::move(p.held);
    }
    void add_up() {
        const VariableId v = variable_of(warp_.kernel.step(rescale_.sum));
        if (!warp_.grid.fact(v).is_kept_by_threads)
            OnFragments(warp_, warp_.kernel.step(rescale_.sum)).over_row(ReduceOp::sum, sums_);
        each_row([&](std::int64_t lane, std::int64_t r) {
            double& x = warp_.value(v, lane, r);
            x = x * warp_.value(rescale_.correction, lane, r) + sum(lane, r);
        });
    }

    Warp& warp_;
    const ConditionalRescale& rescale_;
    Iteration iteration_;
    std::int64_t rows_;
    double limit_;
    std::vector<double> sums_;
};

}  // namespace

void run_rescale(Warp& warp, const Rescale& rescale) {
    Rescaling run(warp, rescale);
    rescale.is_first ? run.as_it_moves() : run.try_as_it_stands();
}

// ---- stream-K
// ------------------------------------------------------------

void merge_states(Warp& warp) {
    const ByVariable<std::vector<double>> own = warp.registers;
    for (const StateMerge& merge : warp.kernel.kernel->merges) {
        const VariableFact& f = warp.grid.fact(merge.state);
        const std::int64_t columns = f.columns < 0 ? 0 : columns_of(warp.kernel, f.columns, ScopeId(0));
        PointProgram& given = warp.grid.compiled(merge.given);
        std::vector<double> merged = warp.registers[merge.state];
        warp.grid.moved.global_to_registers.add(std::ssize(merged), 4);
        const auto at_value = [&](std::int64_t lane, std::int64_t r, std::int64_t j, std::int64_t c) {
            const auto place = [&](VariableId v) {
                return static_cast<std::size_t>(lane * warp.grid.fact(v).registers +
                                                number_in_thread(warp, v, nullptr, r, j, c));
            };
            const auto left = [&](VariableId state) {
                const auto found = warp.grid.states.find({pair_of(warp), state});
                return found == warp.grid.states.end() ? nothing : found->second[place(state)];
            };
            const auto of_part = [&](bool is_own) {
                const auto element = [&](const Read& read) {
                    const VariableId v = read.variable();
                    if (!is_in_part(v)) return warp.grid.fact(v).number(warp.registers[v][place(v)]);
                    const VariableId state = variable_in_part(v);
                    return warp.grid.fact(state).number(is_own ? own[state][place(state)] : left(state));
                };
                return given.at(warp.at[0].begin, element);
            };
            const Number first = of_part(true);
            merged[place(merge.state)] = f.held(apply(merge.op, first, of_part(false)));
        };
        for (std::int64_t lane = 0; lane < Warp::lanes; ++lane)
            for_each_own_value(warp.fragments(), f.has_rows, columns,
                               [&](std::int64_t r, std::int64_t j, std::int64_t c) { at_value(lane, r, j, c); });
        warp.registers[merge.state] = std::move(merged);
    }
}

}  // namespace napkin::lower::interpreter
