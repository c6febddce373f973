#include "plan/predict.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "cost/saturate.hpp"

namespace napkin {
namespace {
// Clocks of the core's own bookkeeping: leaving a loop whose end it mispredicts, calling a statement's function, and moving one
// value between layouts through a block transpose.
constexpr double block_clocks = 12, call_clocks = 10, transpose_clocks = 0.6, far_transpose_clocks = 2;
// A horizontal reduction of one vector to one value.
constexpr double horizontal_clocks = 12;

/// Pipes that run beside each other take a little longer than the busiest. The fourth power fits register blocks of 7×3 to 24×1
/// accumulators, whose loads take 0.4 to 1.5 of the multiply-adds' time, within 3% (measured 2026-11-20 on Zen 4).
double beside(std::initializer_list<double> clocks) {
    const double longest = std::max(clocks);
    if (!(longest > 0)) return 0;
    double sum = 0;
    for (const double c : clocks) {
        const double ratio = c / longest;
        sum += ratio * ratio * ratio * ratio;
    }
    return longest * std::sqrt(std::sqrt(sum));
}

double ceil_of(double a, double b) { return std::ceil(a / b); }

/// Values that an index takes over a tile's box, taken at the tile that begins at 0.
double span_of(const Index& dim, const std::vector<std::int64_t>& tile) {
    return static_cast<double>(range_of(dim, std::vector<std::int64_t>(tile.size(), 0), tile).size());
}

constexpr const char* op_names[num_op_kinds] = {"fma", "simple", "div", "sqrt", "exp",
                                                "log", "tanh",   "erf", "sin",  "pow"};

}  // namespace

/// Clocks of one statement by pipe.
struct KernelModel::Pipes {
    double arithmetic = 0, load = 0, store = 0, cache = 0, overhead = 0;
    std::array<double, num_op_kinds> by_kind{};
    [[nodiscard]] double total() const { return beside({arithmetic, load, store, cache}) + overhead; }
};

KernelModel::KernelModel(const Derived& derived, const Kernel& kernel, const Extents& extents, const Machine& machine)
    : derived_(derived), kernel_(kernel), extents_(extents), machine_(machine), live_(liveness(derived, kernel, &extents)) {
    work_ = statement_work(derived.diagram, kernel);
    for (const CoreVariable& v : live_.variables)
        if (derived.diagram.array(v.array).type == DType::f64) type_ = DType::f64;
    lanes_ = std::max<std::int64_t>(1, machine.lanes(type_));
    core_level_ = core_memory_level(machine);
    const auto clocks = [&](const std::string& unit) {
        return static_cast<double>(lanes_) / per_clock(machine, unit, type_);
    };
    for (std::size_t k = 0; k < num_op_kinds; ++k)
        clocks_a_vector_[k] = clocks(std::string(name(static_cast<OpKind>(k))));
    load_clocks_ = clocks("load"), store_clocks_ = clocks("store");

    for (const StatementWork& s : work_) {
        std::vector<AxisId> axes = s.target_axes;
        axes.insert(axes.end(), s.reduce_axes.begin(), s.reduce_axes.end());
        for (const auto& operand : s.operands) axes.insert(axes.end(), operand.axes.begin(), operand.axes.end());
        std::sort(axes.begin(), axes.end());
        axes.erase(std::unique(axes.begin(), axes.end()), axes.end());
        work_axes_.push_back(std::move(axes));
    }
    std::vector<ArrayId> counted;
    for (const CoreVariable& v : live_.variables) {
        if (!v.loaded && !v.stored) continue;
        Moved m{&v, axes_of(v.dims), -1, 0};
        if (v.loop >= 0 && contains(m.axes, std::get<Loop>(kernel.stages[at(v.loop)]).axis)) m.stage = v.loop;
        if (!contains(counted, v.array))
            m.unique_bytes = static_cast<double>(count_values(derived.diagram, v.array, extents)) *
                             bytes(derived.diagram.array(v.array).type);
        counted.push_back(v.array);
        moved_.push_back(std::move(m));
    }
    for (std::size_t l = 0; l < machine.levels.size(); ++l)
        pipe_names_.push_back(l == 0 ? "" : fmt::format("{} to {}", machine.levels[l - 1].name, machine.levels[l].name));
}

std::int64_t KernelModel::memory(const TileSizes& sizes) const {
    return TileCounter(derived_, kernel_, live_, extents_, sizes, 256).peak_memory();
}

/// How code runs one statement: the axis of its vectors, and its register block.
struct KernelModel::Nest {
    AxisId vector_axis = -1, row_axis = -1;
    bool horizontal = false;  ///< the vectors' lanes are partial reductions
    double block_vectors = 1, block_rows = 1;
};

namespace {
/// How an operand is read when vectors lie along an axis: one value for all lanes, neighbouring values, or values far apart. In a tile
/// the dimension with the kernel's vector axis is innermost, in others the last.
enum class Reach { same, near, far };

Reach reach(const OperandRead& operand, AxisId axis, AxisId vector_axis) {
    if (!contains(operand.axes, axis)) return Reach::same;
    std::size_t inner = operand.dims.size() - 1;
    if (contains(operand.axes, vector_axis))
        for (std::size_t d = 0; d < operand.dims.size(); ++d)
            if (operand.dims[d].depends_on(vector_axis)) inner = d;
    std::int64_t step = 0;
    for (std::size_t d = 0; d < operand.dims.size(); ++d) {
        if (!operand.dims[d].depends_on(axis)) continue;
        if (d != inner || !operand.dims[d].affine()) return Reach::far;
        step = operand.dims[d].affine()->coefficient(axis);
    }
    return step == 1 ? Reach::near : Reach::far;
}

/// Rows in blocks of nearly equal height, as few as blocks of at most `rows` allow.
double even_rows(double extent, double rows) {
    return ceil_of(extent, ceil_of(extent, std::max(1.0, std::min(rows, extent))));
}

}  // namespace

std::int64_t fitting_vectors(std::int64_t vectors, std::int64_t most) {
    const auto padded = [&](std::int64_t n) { return ceil_div(vectors, n) * n; };
    const std::int64_t widest = std::max<std::int64_t>(1, std::min(vectors, most));
    std::int64_t best = widest;
    for (std::int64_t n = widest; n > widest / 2; --n)
        if (padded(n) < padded(best)) best = n;
    return best;
}

/// Statements whose target carries the kernel's vector axis use it. Others fill vectors along their last axis or a reduced one, whichever
/// takes the fewest instructions a value.
KernelModel::Nest KernelModel::nest_of(const StatementWork& s, const std::vector<std::int64_t>& tile,
                                       const VectorShape& shape) const {
    Nest nest;
    const auto size = [&](AxisId axis) { return static_cast<double>(tile[at(axis)]); };
    const auto lanes = static_cast<double>(lanes_);
    if (contains(s.target_axes, shape.axis)) {
        nest.vector_axis = shape.axis;
        nest.block_vectors = static_cast<double>(shape.vectors);
    } else {
        double least = 1 + static_cast<double>(s.operands.size());  // scalar code
        const auto consider = [&](AxisId axis, bool horizontal) {
            if (tile[at(axis)] < 2) return;
            double instructions = 1;
            for (const OperandRead& o : s.operands) {
                const Reach r = reach(o, axis, shape.axis);
                instructions += r == Reach::same ? 0.5 : r == Reach::near ? 1 : lanes;
            }
            const double a_value = (instructions * ceil_of(size(axis), lanes) + (horizontal ? horizontal_clocks : 0)) /
                                   size(axis);
            if (a_value < least) least = a_value, nest.vector_axis = axis, nest.horizontal = horizontal;
        };
        if (!s.target_axes.empty()) consider(s.target_axes.back(), false);
        for (const AxisId axis : s.reduce_axes) consider(axis, true);
        if (nest.vector_axis >= 0)
            nest.block_vectors = static_cast<double>(
                fitting_vectors(ceil_div(tile[at(nest.vector_axis)], lanes_), shape.vectors));
    }
    if (s.reduce_axes.empty()) return nest;

    // Rows run along the axis whose blocks load the fewest vectors again; without such an axis they only hide latency.
    int most_reuse = -1;
    for (const AxisId axis : s.target_axes) {
        if (axis == nest.vector_axis || tile[at(axis)] < 2) continue;
        int reuse = 0;
        for (const OperandRead& o : s.operands) {
            const bool reduced = std::any_of(s.reduce_axes.begin(), s.reduce_axes.end(),
                                             [&](AxisId r) { return contains(o.axes, r); });
            reuse += reduced && (nest.vector_axis < 0 || contains(o.axes, nest.vector_axis)) && !contains(o.axes, axis)
                         ? 1
                         : 0;
        }
        if (reuse > most_reuse || (reuse == most_reuse && size(axis) >= size(nest.row_axis)))
            most_reuse = reuse, nest.row_axis = axis;
    }
    if (nest.row_axis >= 0) {
        const double rows = most_reuse == 0 ? std::min<double>(4, static_cast<double>(shape.rows))
                                            : static_cast<double>(shape.rows);
        nest.block_rows = even_rows(size(nest.row_axis), rows);
    }
    return nest;
}

/// Loads of a block of accumulators for one step of its reduction.
double KernelModel::loads_a_step(const StatementWork& s, const Nest& nest, AxisId vector_axis) const {
    double loads = 0;
    for (const OperandRead& o : s.operands) {
        double each = contains(o.axes, nest.row_axis) ? nest.block_rows : 1;
        if (nest.vector_axis >= 0) {
            const Reach r = reach(o, nest.vector_axis, vector_axis);
            if (r != Reach::same) each *= nest.block_vectors * (r == Reach::far ? static_cast<double>(lanes_) : 1);
        }
        loads += each;
    }
    return loads;
}

double KernelModel::block_loads(const StatementWork& s, const VectorShape& shape) const {
    return loads_a_step(s, nest_of(s, extents_, shape), shape.axis);
}

std::int64_t KernelModel::block_accumulators(const StatementWork& s, const VectorShape& shape) const {
    const Nest nest = nest_of(s, extents_, shape);
    return static_cast<std::int64_t>(nest.block_rows * nest.block_vectors);
}

KernelModel::Pipes KernelModel::statement_pipes(const StatementWork& s, const std::vector<std::int64_t>& tile,
                                                const VectorShape& shape) const {
    const Nest nest = nest_of(s, tile, shape);
    const AxisId v = nest.vector_axis;
    const auto size = [&](AxisId axis) { return static_cast<double>(tile[at(axis)]); };
    const auto lanes = static_cast<double>(lanes_);
    // Vectors that cover the vector axis, in whole blocks, and rows that cover the row axis, in whole blocks.
    const double panels = v < 0 ? 1 : ceil_of(size(v), lanes * nest.block_vectors);
    const double row_blocks = nest.row_axis < 0 ? 1 : ceil_of(size(nest.row_axis), nest.block_rows);
    const auto count = [&](AxisId axis) {
        return axis == v               ? panels * nest.block_vectors
               : axis == nest.row_axis ? row_blocks * nest.block_rows
                                       : size(axis);
    };
    const auto vector_points = [&](const std::vector<AxisId>& axes) {
        double points = 1;
        for (const AxisId axis : axes) points *= count(axis);
        return points;
    };

    Pipes pipes;
    for (const OpCount& op : s.ops) {
        const double clocks = static_cast<double>(op.count) * vector_points(op.axes) *
                              clocks_a_vector_[static_cast<std::size_t>(op.kind)];
        pipes.by_kind[static_cast<std::size_t>(op.kind)] += clocks;
        pipes.arithmetic += clocks;
    }
    const double targets = vector_points(s.target_axes);
    pipes.store = targets * store_clocks_;
    if (s.carries) pipes.load += targets * load_clocks_;
    pipes.overhead = call_clocks;

    double steps = 1;
    for (const AxisId axis : s.reduce_axes) steps *= axis == v ? panels : count(axis);
    if (s.reduce_axes.empty()) {
        for (const OperandRead& o : s.operands) {
            const bool far = v >= 0 && reach(o, v, shape.axis) == Reach::far;
            pipes.load += vector_points(o.axes) * (far ? lanes : 1) * load_clocks_;
        }
    } else {
        // Accumulators of a block; a horizontal one has the block's vectors beside each other in the reduction.
        const double accumulators = nest.block_rows * nest.block_vectors;
        const double blocks = targets / (nest.block_rows * (nest.horizontal || v < 0 ? 1 : nest.block_vectors));
        pipes.load += blocks * steps * loads_a_step(s, nest, shape.axis) * load_clocks_;
        // Too few accumulators wait for each other.
        const double wait = std::max(0.0, machine_.fma_latency_clocks.value - accumulators * clocks_a_vector_[0]);
        pipes.overhead += blocks * (block_clocks + steps * wait);
        if (nest.horizontal) pipes.overhead += targets * horizontal_clocks;
    }

    // What does not stay in L1 comes from the cache behind it: operands once, or once for every block where the blocks' own part of
    // them does not fit either.
    const double l1 = bytes_a_core(machine_, machine_.levels.size() - 1),
                 bytes_a_value = static_cast<double>(value_bytes());
    const auto footprint = [&](const std::vector<AxisId>& axes) {
        double values = bytes_a_value;
        for (const AxisId axis : axes) values *= size(axis);
        return values;
    };
    double touched = footprint(s.target_axes);
    for (const OperandRead& o : s.operands) touched += footprint(o.axes);
    if (touched > l1 && machine_.levels.size() > core_level_ + 1) {
        const double panel_bytes = steps * nest.block_vectors * lanes * bytes_a_value;
        double traffic = 2 * footprint(s.target_axes);
        for (const OperandRead& o : s.operands) {
            double passes = 1;
            if (!s.reduce_axes.empty() && !nest.horizontal)
                passes = !contains(o.axes, v)                                   ? panels
                         : panel_bytes > l1 && !contains(o.axes, nest.row_axis) ? row_blocks
                                                                                : 1;
            traffic += footprint(o.axes) * passes;
        }
        const Level& nearest = machine_.levels.back();
        const double rate = nearest.bandwidth_bytes_per_s.value *
                            std::min(1.0, nearest.instances.value / machine_.cores.value);
        pipes.cache = traffic * machine_.clock_hz.value / rate;
    }
    return pipes;
}

bool KernelModel::carried_by_all_memory(AxisId axis) const {
    return std::all_of(live_.variables.begin(), live_.variables.end(), [&](const CoreVariable& v) {
        return (!v.loaded && !v.stored) || contains(axes_of(v.dims), axis);
    });
}

VectorShape KernelModel::fitted(const VectorShape& shape, const TileSizes& sizes) const {
    if (shape.axis < 0) return shape;
    const std::int64_t group = sizes.group[at(shape.axis)];
    const std::int64_t vectors = ceil_div(group > 0 ? group : extents_[at(shape.axis)], lanes_);
    return {shape.axis, shape.rows, fitting_vectors(vectors, shape.vectors)};
}

double KernelModel::statement_clocks(const StatementWork& s, const std::vector<std::int64_t>& tile,
                                     const VectorShape& shape) const {
    return statement_pipes(s, tile, shape).total();
}

/// What a core does to bring a tile in or out: nothing where it is read in place, whole vectors where the vector axis is innermost in
/// memory or absent, else a block transpose.
double KernelModel::copy_clocks(const Moved& m, double values, const std::vector<std::int64_t>& tile,
                                const VectorShape& shape) const {
    const bool with_vector_axis = contains(m.axes, shape.axis);
    const Array& array = derived_.diagram.array(m.variable->array);
    if (!m.variable->stored && !with_vector_axis && array.type == type_) return 0;
    const auto& dims = m.variable->dims;
    const double runs = dims.empty() ? 1 : values / span_of(dims.back(), tile);
    const double vectors = values / static_cast<double>(lanes_);
    const bool near = !with_vector_axis || dims.back().depends_on(shape.axis);
    const double convert = array.type == type_ ? 0 : vectors * clocks_a_vector_[static_cast<std::size_t>(OpKind::simple)];
    if (near) return beside({vectors * load_clocks_, vectors * store_clocks_, convert}) + 4 * runs;
    // Lanes that lie a page apart miss the address translation and fall into the same sets of the cache.
    double stride = bytes(array.type);
    for (std::size_t d = dims.size() - 1; !dims[d].depends_on(shape.axis); --d)
        stride *= static_cast<double>(extents_[at(m.variable->limits[d])]);
    return values * (stride < 4096 ? transpose_clocks : far_transpose_clocks) + convert;
}

/// How many bytes pass through the pipe above the core's memory for one byte of the tile: whole lines for every contiguous run.
double KernelModel::line_waste(const TileCounter& counter, const Moved& m) const {
    const Array& array = derived_.diagram.array(m.variable->array);
    double run = bytes(array.type);
    for (std::size_t d = m.variable->dims.size(); d-- > 0;) {
        std::vector<std::int64_t> tile(extents_.size(), 1);
        for (const AxisId axis : m.variable->dims[d].axes())
            tile[at(axis)] = std::min(counter.cut(axis, m.stage), extents_[at(axis)]);
        const double span = span_of(m.variable->dims[d], tile);
        run *= span;
        if (span < static_cast<double>(extents_[at(m.variable->limits[d])])) break;
    }
    const double line = machine_.line_bytes.value;
    return std::ceil(run / line) * line / run;
}

Prediction KernelModel::predict(const TileSizes& sizes, const VectorShape& shape, std::int64_t threads,
                                std::int64_t walk_limit, double memory_limit) const {
    const TileCounter counter(derived_, kernel_, live_, extents_, sizes, walk_limit);
    Prediction prediction;
    prediction.groups = counter.groups();
    prediction.memory = static_cast<double>(counter.peak_memory());
    if (prediction.memory > memory_limit) {
        prediction.seconds = prediction.core_seconds = std::numeric_limits<double>::infinity();
        return prediction;
    }

    // ---- the cores
    const VectorShape fit = fitted(shape, sizes);
    Pipes sum;
    double core = 0, copies = 0;
    for (std::size_t i = 0; i < work_.size(); ++i)
        counter.for_each_tile(work_axes_[i], work_[i].in_loop ? work_[i].stage : -1,
                              [&](const std::vector<std::int64_t>& tile, std::int64_t count) {
                                  const Pipes pipes = statement_pipes(work_[i], tile, fit);
                                  const auto times = static_cast<double>(count);
                                  core += times * pipes.total();
                                  sum.load += times * pipes.load, sum.store += times * pipes.store;
                                  sum.cache += times * pipes.cache, sum.overhead += times * pipes.overhead;
                                  for (std::size_t k = 0; k < num_op_kinds; ++k)
                                      sum.by_kind[k] += times * pipes.by_kind[k];
                              });
    double moved = 0, unique = 0;
    for (const Moved& m : moved_) {
        const auto values = static_cast<double>(counter.moved(*m.variable));
        counter.for_each_tile(m.axes, m.stage, [&](const std::vector<std::int64_t>& tile, std::int64_t count) {
            double box = 1;
            for (const Index& dim : m.variable->dims) box *= span_of(dim, tile);
            copies += static_cast<double>(count) * copy_clocks(m, box, tile, fit);
        });
        prediction.transfers += values;
        const double moved_bytes = values * bytes(derived_.diagram.array(m.variable->array).type) * line_waste(counter, m);
        moved += moved_bytes;
        unique += std::min(moved_bytes, m.unique_bytes);
    }
    const double clock = machine_.clock_hz.value, groups = static_cast<double>(prediction.groups);
    sum.overhead += groups * machine_.group_s.value * clock;
    core += copies + groups * machine_.group_s.value * clock;
    const auto workers = static_cast<double>(threads);
    const double waves = std::ceil(groups / workers) * workers / groups;
    const auto seconds = [&](double clocks) { return clocks * waves / (workers * clock); };

    prediction.busy.reserve(num_op_kinds + 6 + core_level_);
    for (std::size_t k = 0; k < num_op_kinds; ++k)
        if (sum.by_kind[k] > 0) prediction.busy.push_back({op_names[k], seconds(sum.by_kind[k])});
    prediction.busy.push_back({"loads", seconds(sum.load)});
    prediction.busy.push_back({"stores", seconds(sum.store)});
    prediction.busy.push_back({"copies", seconds(copies)});
    prediction.busy.push_back({"calls and loops", seconds(sum.overhead)});
    if (machine_.levels.size() > core_level_ + 1) prediction.busy.push_back({pipe_names_.back(), seconds(sum.cache)});

    // ---- the levels above: a level that holds what all cores work on at once is filled once, a smaller one again and again
    prediction.core_seconds = seconds(core);
    double total = prediction.core_seconds, power_sum = 1;
    for (std::size_t l = 1; l <= core_level_; ++l) {
        const Level& level = machine_.levels[l];
        const double sharing = machine_.cores.value / level.instances.value;
        const bool keeps = l < core_level_ && moved / groups * std::min(sharing, workers) <= level.capacity_bytes.value;
        const double time = (keeps ? unique : moved) / (level.bandwidth_bytes_per_s.value * std::ceil(workers / sharing));
        prediction.busy.push_back({pipe_names_[l], time});
        const double ratio = time / std::max(total, 1e-30);
        power_sum += ratio * ratio * ratio * ratio;
    }
    total *= std::sqrt(std::sqrt(power_sum));
    const double launch = threads > 1 ? machine_.launch_s.value : machine_.group_s.value;
    prediction.busy.push_back({"launch", launch});
    prediction.seconds = total + launch;
    std::stable_sort(prediction.busy.begin(), prediction.busy.end(),
                     [](const Busy& a, const Busy& b) { return a.seconds > b.seconds; });
    return prediction;
}

}  // namespace napkin
