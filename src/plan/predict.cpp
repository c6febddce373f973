#include "plan/predict.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace napkin {
namespace {

std::size_t at(int id) { return static_cast<std::size_t>(id); }

// Clocks of the core's own bookkeeping: leaving a loop whose end it mispredicts, calling a statement's function, and moving one
// value between layouts through a block transpose.
constexpr double block_clocks = 12, call_clocks = 20, transpose_clocks = 0.6;
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

bool has(const std::vector<AxisId>& axes, AxisId axis) {
    return axis >= 0 && std::find(axes.begin(), axes.end(), axis) != axes.end();
}

double ceil_of(double a, double b) { return std::ceil(a / b); }

/// Values that an index takes over a tile's box: Σ |c|·(t_a − 1) + 1.
double span_of(const Affine& dim, const std::vector<std::int64_t>& tile) {
    double span = 1;
    for (const auto& [axis, c] : dim.terms)
        span += static_cast<double>(std::abs(c)) * static_cast<double>(tile[at(axis)] - 1);
    return span;
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
    : derived_(derived), kernel_(kernel), extents_(extents), machine_(machine), live_(liveness(derived, kernel)) {
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
        for (const auto& operand : s.operands) axes.insert(axes.end(), operand.begin(), operand.end());
        std::sort(axes.begin(), axes.end());
        axes.erase(std::unique(axes.begin(), axes.end()), axes.end());
        work_axes_.push_back(std::move(axes));
    }
    std::vector<ArrayId> counted;
    for (const CoreVariable& v : live_.variables) {
        if (!v.loaded && !v.stored) continue;
        Moved m{&v, axes_of(v.dims), -1, 0};
        if (v.loop >= 0 && has(m.axes, std::get<Loop>(kernel.stages[at(v.loop)]).axis)) m.stage = v.loop;
        if (!has(counted, v.array))
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

namespace {

/// The row axis of a register block: the target's largest axis that some operand lacks, so that a block reuses what it loads.
AxisId row_axis(const StatementWork& s, const std::vector<std::int64_t>& tile, const VectorShape& shape) {
    AxisId row = -1;
    double best = 0;
    for (const AxisId axis : s.target_axes) {
        if (axis == shape.axis) continue;
        const bool reuses = std::any_of(s.operands.begin(), s.operands.end(),
                                        [&](const auto& operand) { return !has(operand, axis); });
        const double rank = static_cast<double>(tile[at(axis)]) * (reuses ? 1e9 : 1);
        if (rank > best) best = rank, row = axis;
    }
    return row;
}

/// Vectors and broadcasts that a block of accumulators loads for one step of its reduction.
double loads_of(const StatementWork& s, AxisId row, double rows, AxisId vector_axis, double vectors) {
    double loads = 0;
    for (const auto& operand : s.operands)
        loads += (has(operand, row) ? rows : 1) * (has(operand, vector_axis) ? vectors : 1);
    return loads;
}

}  // namespace

double KernelModel::block_loads(const StatementWork& s, const VectorShape& shape) const {
    const bool vertical = has(s.target_axes, shape.axis);
    return loads_of(s, row_axis(s, extents_, shape), static_cast<double>(shape.rows), vertical ? shape.axis : -1,
                    vertical ? static_cast<double>(shape.vectors) : 1);
}

KernelModel::Pipes KernelModel::statement_pipes(const StatementWork& s, const std::vector<std::int64_t>& tile,
                                                const VectorShape& shape) const {
    const AxisId v = shape.axis;
    const auto size = [&](AxisId axis) { return static_cast<double>(tile[at(axis)]); };
    const double lanes = static_cast<double>(lanes_);
    const bool vertical = has(s.target_axes, v), horizontal = !vertical && has(s.reduce_axes, v);
    const double block_vectors = vertical ? static_cast<double>(shape.vectors) : 1;
    // Vectors that cover the vector axis: whole register blocks of them where it is an axis of the target.
    const double panels = v < 0 ? 1 : vertical ? ceil_of(size(v), lanes * block_vectors) : 1;
    const double num_vectors = v < 0 ? 1 : vertical ? panels * block_vectors : ceil_of(size(v), lanes);
    const auto vector_points = [&](const std::vector<AxisId>& axes) {
        double points = 1;
        for (const AxisId axis : axes) points *= axis == v ? num_vectors : size(axis);
        return points;
    };

    Pipes pipes;
    for (const OpCount& op : s.ops) {
        const double clocks = static_cast<double>(op.count) * vector_points(op.axes) *
                              clocks_a_vector_[static_cast<std::size_t>(op.kind)];
        pipes.by_kind[static_cast<std::size_t>(op.kind)] += clocks;
        pipes.arithmetic += clocks;
    }
    const double target_vectors = vector_points(s.target_axes);
    pipes.store = target_vectors * store_clocks_;
    pipes.overhead = call_clocks;

    const AxisId row = s.reduce_axes.empty() ? -1 : row_axis(s, tile, shape);
    double steps = 1;
    for (const AxisId axis : s.reduce_axes) steps *= axis == v ? num_vectors : size(axis);
    const double row_extent = row < 0 ? 1 : size(row);
    const double rows = std::min(static_cast<double>(shape.rows), row_extent);
    const double other_blocks = target_vectors / (row_extent * (vertical ? num_vectors : 1)) * panels;

    if (s.reduce_axes.empty()) {
        for (const auto& operand : s.operands) pipes.load += vector_points(operand) * load_clocks_;
    } else {
        const auto add_blocks = [&](double count, double r) {
            if (!(count > 0) || !(r > 0)) return;
            pipes.load += count * steps * loads_of(s, row, r, vertical ? v : -1, block_vectors) * load_clocks_;
            // Too few accumulators wait for each other.
            const double accumulators = r * block_vectors, latency = machine_.fma_latency_clocks.value;
            pipes.overhead += count * (block_clocks + steps * std::max(0.0, latency - accumulators * clocks_a_vector_[0]));
            if (horizontal) pipes.overhead += count * r * horizontal_clocks;
        };
        const double full = std::floor(row_extent / rows), rest = row_extent - full * rows;
        add_blocks(full * other_blocks, rows);
        add_blocks(rest > 0 ? other_blocks : 0, rest);
    }

    // What does not stay in L1 comes from the cache behind it: operands once, or once for every block where the blocks' own part of
    // them does not fit either.
    const double l1 = bytes_a_core(machine_, machine_.levels.size() - 1),
                 bytes_a_value = static_cast<double>(value_bytes());
    const auto footprint = [&](const std::vector<AxisId>& axes) {
        double values = 1;
        for (const AxisId axis : axes) values *= size(axis);
        return values * bytes_a_value;
    };
    double touched = footprint(s.target_axes);
    for (const auto& operand : s.operands) touched += footprint(operand);
    if (touched > l1 && machine_.levels.size() > core_level_ + 1) {
        const double row_blocks = std::ceil(row_extent / rows);
        const double panel_bytes = steps * block_vectors * lanes * bytes_a_value;
        double traffic = 2 * footprint(s.target_axes);
        for (const auto& operand : s.operands) {
            const bool is_panel = has(operand, v) && vertical;
            const double passes = s.reduce_axes.empty() ? 1
                                  : is_panel            ? (panel_bytes > l1 && !has(operand, row) ? row_blocks : 1)
                                                        : panels;
            traffic += footprint(operand) * passes;
        }
        const Level& nearest = machine_.levels.back();
        const double bytes_a_clock = nearest.bandwidth_bytes_per_s.value *
                                     std::min(1.0, nearest.instances.value / machine_.cores.value) /
                                     machine_.clock_hz.value;
        pipes.cache = traffic / bytes_a_clock;
    }
    return pipes;
}

bool KernelModel::carried_by_all_memory(AxisId axis) const {
    return std::all_of(live_.variables.begin(), live_.variables.end(),
                       [&](const CoreVariable& v) { return (!v.loaded && !v.stored) || has(axes_of(v.dims), axis); });
}

double KernelModel::statement_clocks(const StatementWork& s, const std::vector<std::int64_t>& tile,
                                     const VectorShape& shape) const {
    return statement_pipes(s, tile, shape).total();
}

/// What a core does to bring a tile in or out: nothing where it is read in place, whole vectors where the vector axis is innermost in
/// memory, else a block transpose.
double KernelModel::copy_clocks(const Moved& m, double values, const std::vector<std::int64_t>& tile,
                                const VectorShape& shape) const {
    const bool with_vector_axis = has(m.axes, shape.axis);
    if (!m.variable->stored && !with_vector_axis) return 0;
    const auto& dims = m.variable->dims;
    const double runs = dims.empty() ? 1 : values / span_of(dims.back(), tile);
    if (!with_vector_axis) return values * (shape.axis < 0 ? 1 : transpose_clocks) + runs;
    if (dims.back().single_axis() != shape.axis) return values * transpose_clocks;
    const double vectors = values / static_cast<double>(lanes_);
    return beside({vectors * load_clocks_, vectors * store_clocks_}) + 4 * runs;
}

/// How many bytes pass through the pipe above the core's memory for one byte of the tile: whole lines for every contiguous run.
double KernelModel::line_waste(const TileCounter& counter, const Moved& m) const {
    const Array& array = derived_.diagram.array(m.variable->array);
    double run = bytes(array.type);
    for (std::size_t d = m.variable->dims.size(); d-- > 0;) {
        double span = 1;
        for (const auto& [axis, c] : m.variable->dims[d].terms)
            span += static_cast<double>(std::abs(c)) *
                    static_cast<double>(std::min(counter.cut(axis, m.stage), extents_[at(axis)]) - 1);
        run *= span;
        if (span < static_cast<double>(extents_[at(array.axes[d])])) break;
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
        prediction.seconds = std::numeric_limits<double>::infinity();
        return prediction;
    }

    // ---- the cores
    Pipes sum;
    double core = 0, copies = 0;
    for (std::size_t i = 0; i < work_.size(); ++i)
        counter.for_each_tile(work_axes_[i], work_[i].in_loop ? work_[i].stage : -1,
                              [&](const std::vector<std::int64_t>& tile, std::int64_t count) {
                                  const Pipes pipes = statement_pipes(work_[i], tile, shape);
                                  const auto times = static_cast<double>(count);
                                  core += times * pipes.total();
                                  sum.load += times * pipes.load, sum.store += times * pipes.store;
                                  sum.cache += times * pipes.cache, sum.overhead += times * pipes.overhead;
                                  for (std::size_t k = 0; k < num_op_kinds; ++k)
                                      sum.by_kind[k] += times * pipes.by_kind[k];
                              });
    double moved = 0, unique = 0;
    for (const Moved& m : moved_) {
        double values = 0;
        counter.for_each_tile(m.axes, m.stage, [&](const std::vector<std::int64_t>& tile, std::int64_t count) {
            double box = 1;
            for (const Affine& dim : m.variable->dims) box *= span_of(dim, tile);
            values += static_cast<double>(count) * box;
            copies += static_cast<double>(count) * copy_clocks(m, box, tile, shape);
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
    double total = seconds(core), power_sum = 1;
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
