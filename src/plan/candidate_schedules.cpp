#include "plan/candidate_schedules.hpp"

#include <fmt/format.h>

#include <cmath>
#include <utility>

#include "diagram/product.hpp"
#include "machine/block_machine.hpp"
#include "plan/candidates.hpp"
#include "plan/complete.hpp"
#include "schedule/fragments.hpp"
#include "support/ids.hpp"
#include "support/ranges.hpp"
#include "tile/uses.hpp"

namespace napkin {
namespace {

/// Size of tiles along an axis before any sizes are chosen, where the axis is that long.
constexpr std::int64_t ordinary_group = 64;
/// K blocks to try where operand tiles of a K block of 128 do not fit beside wide tiles, or do not divide their pages.
constexpr std::int64_t shorter_k_blocks[] = {64, 32, 16};

VectorUnit unit_of(const Simulator& model) {
    const Machine& machine = model.machine();
    VectorUnit unit{.bytes = static_cast<int>(machine.vector_bits.value) / 8,
                    .registers = static_cast<int>(machine.vector_registers.value),
                    .line_bytes = static_cast<int>(machine.line_bytes.value)};
    if (machine.kind == MachineKind::cpu) {
        unit.chains = static_cast<int>(std::ceil(machine.fma_latency_clocks.value / model.fma_clocks()));
        for (const DType type : {DType::bf16, DType::i8})
            if (per_clock(machine, "dot", type) > 0) unit.lane_products.push_back(type);
    } else {
        unit.warp_threads = static_cast<int>(model.lanes());
        unit.blocks_a_core = static_cast<int>(std::lround(blocks_a_core(machine)));
        unit.block_bytes = static_cast<std::int64_t>(machine.threads->block_bytes.value);
        unit.share_bytes = static_cast<std::int64_t>(model.usable_bytes());
        unit.block_registers = static_cast<std::int64_t>(machine.threads->registers_a_core.value);
        if (const std::size_t core = core_memory_level(machine); core > 1)
            unit.reread_bytes = static_cast<std::int64_t>(machine.levels[core - 1].reread_bytes.value);
        unit.matrix = machine.instructions;
        unit.copies = copy_atoms(machine);
    }
    return unit;
}

}  // namespace

CandidateSchedules::CandidateSchedules(const std::shared_ptr<const TileProgram>& program, std::size_t kernel,
                                       const Simulator& model, const Overrides& hand, const PlanOptions& options,
                                       KernelSchedule given)
    : model_(model),
      overrides_(hand),
      options_(options),
      order_(options.order_of(model.kernel().name)),
      given_(std::move(given)),
      unit_(unit_of(model)),
      unscheduled_(unscheduled(program, kernel, model.extents(), unit_)),
      threads_(hand.value(ChoiceKind::threads, model.machine().num_cores())) {}

std::int64_t CandidateSchedules::extent(AxisId axis) const { return model_.extents()[axis]; }

std::int64_t CandidateSchedules::panel(const TilingStrategy& shape) const { return shape.vectors * model_.lanes(); }

/// The number of parts of the kernel's stream; 1: it runs whole.
std::int64_t CandidateSchedules::num_parts() const {
    const StreamParts& parts = model_.kernel().parts;
    return parts.any() ? extent(parts.part) : 1;
}

/// The longest K block of a streamed axis with which every part has one.
std::int64_t CandidateSchedules::longest_k_block(AxisId axis) const {
    return model_.kernel().parts.cut(axis) ? std::max<std::int64_t>(1, extent(axis) / num_parts()) : extent(axis);
}

std::optional<std::int64_t> CandidateSchedules::fixed_size(ChoiceKind kind, AxisId axis) const {
    const auto found = overrides_.of(kind).find(axis);
    if (found != overrides_.of(kind).end()) return found->second.value;
    if (!order_ || kind != ChoiceKind::stream) return std::nullopt;
    const auto kept = order_->schedule.stream.find(axis);
    return kept == order_->schedule.stream.end() ? std::nullopt : std::optional(kept->second.value);
}

/// The longest tile on the tensor cores. It may be longer than an axis of any size, so that it serves longer ones,
/// too. Pre: the length is a tile's, or the axis' own, which is rounded up to a power of two.
std::int64_t CandidateSchedules::longest_tile(AxisId axis, std::int64_t length) const {
    if (!unscheduled_.program->diagram.axis(axis).is_any) return std::min(length, extent(axis));
    return static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(length)));
}

/// Columns of an axis of one value: an instruction computes so many anyhow.
std::int64_t CandidateSchedules::columns_of_one() const { return 2 * unit_.matrix.tile().columns; }

/// Rows of a tile that the block's warps have on the tensor cores.
std::int64_t CandidateSchedules::rows_of_warps() const {
    return unit_.matrix.empty() ? 0 : options_.warps.value * unit_.matrix.tile().rows;
}

/// Whether the axis is cut by a subloop, or numbers the parts of a stream: no group has a size along it.
bool CandidateSchedules::is_cut_whole(AxisId axis) const {
    const auto& loops = model_.live().loops;
    return axis == model_.kernel().parts.part ||
           any_of(loops, [&](const CoreLoop& l) { return l.is_sub && l.axis == axis; });
}

// ---- shapes

std::vector<VectorAxis> CandidateSchedules::vectors() const {
    if (overrides_.fixes(ChoiceKind::vector)) return {{overrides_.axis(ChoiceKind::vector), "", true}};
    if (keeps_vector_axis()) return {{order_->schedule.vector_axis, "the same for any number of rows", true}};
    std::vector<VectorAxis> out = vector_axes(model_);
    if (order_)
        std::erase_if(
            out, [&](const VectorAxis& v) { return v.axis >= 0 && !contains(model_.kernel().group_axes, v.axis); });
    if (out.empty()) out.push_back({-1, "none: each statement has its own", false});
    return out;
}

/// Whether the panels lie along an axis that is reduced, so that they are part of the order which is kept.
bool CandidateSchedules::keeps_vector_axis() const {
    return order_ && order_->schedule.vector_axis >= 0 &&
           !contains(model_.kernel().group_axes, order_->schedule.vector_axis.value);
}

TilingStrategy CandidateSchedules::in_panels(const VectorAxis& axis, int vectors) const {
    const std::int64_t open = keeps_vector_axis() ? order_->schedule.panel_vectors.value : vectors;
    return {axis, static_cast<int>(overrides_.value(ChoiceKind::vectors, open))};
}

TilingStrategy CandidateSchedules::on_tensor_cores(AxisId axis) const {
    TilingStrategy shape;
    shape.axis.reason = "none: threads have their own values";
    shape.tensor = axis;
    return shape;
}

std::vector<TilingStrategy> CandidateSchedules::on_tensor_cores() const {
    std::vector<TilingStrategy> shapes;
    if (options_.warps.value == 0 || unit_.matrix.empty()) return shapes;
    const AxisId wanted = order_ ? order_->schedule.mma_m.value : overrides_.axis(ChoiceKind::mma_m);
    const bool is_fixed = order_ || overrides_.fixes(ChoiceKind::mma_m);
    if (is_fixed ? wanted < 0 : overrides_.fixes(ChoiceKind::vector) || overrides_.fixes(ChoiceKind::vectors))
        return shapes;
    if (!may_have_products()) return shapes;
    ScheduledKernel scratch = unscheduled_;
    const std::vector<AxisId> streamed = streamed_axes();
    for (const AxisId axis : model_.kernel().group_axes) {
        if (is_fixed && axis != wanted) continue;
        const std::int64_t rows = std::min(rows_of_warps(), longest_tile(axis, rows_of_warps()));
        if (fixed_size(ChoiceKind::group, axis).value_or(rows) != rows) continue;
        // Tiles have rows and columns. A stream may have a product of its own for every value, as for blocks that have
        // a scale each. A K block of it is then a single value.
        const TilingStrategy first = on_tensor_cores(axis);
        TilingStrategy shape = first;
        bool found = false;
        const auto try_k_block = [&](std::int64_t chunk, bool with_columns) {
            if (found) return;
            shape = first, shape.chunk = chunk;
            found = with_columns ? find_columns(shape, scratch) : runs_there(shape, scratch);
        };
        for (const bool with_columns : {false, true}) {
            try_k_block(first.chunk, with_columns);
            for (const std::int64_t chunk : shorter_k_blocks)
                if (any_of(streamed, [&](AxisId a) { return longest_k_block(a) > chunk; }))
                    try_k_block(chunk, with_columns);
        }
        for (const AxisId single : streamed)
            if (!found && !overrides_.fixes(ChoiceKind::stream, single))
                shape = first, shape.single = single, found = runs_there(shape, scratch) || find_columns(shape, scratch);
        if (found) shapes.push_back(shape);
    }
    return shapes;
}

/// Whether some statement sums a product of two arrays.
bool CandidateSchedules::may_have_products() const {
    const auto is_taken = [&](const Read* factor) {
        const DType type = unscheduled_.variable(factor->variable()).memory_type;
        return any_of(unit_.matrix, [&](const Instruction& i) { return i.k.contains(type); });
    };
    bool found = false;
    for_each_statement(unscheduled_.kernel->body, [&](const TileStatement& s) {
        const auto* compute = std::get_if<Compute>(&s);
        const auto* product = compute && compute->reduce == ReduceOp::sum ? as_product(compute->body) : nullptr;
        if (found || !product) return;
        const Read *a = as<Read>(product->a), *b = as<Read>(product->b);
        found = a && b && (is_taken(a) || is_taken(b));
    });
    return found;
}

/// Chooses the axis of the columns. Axes that some operand lacks, as the batch of a layer or the heads that share keys,
/// would make tiles wide in more than two directions. The columns lie along the longest such axis that the tensor cores
/// take. They lie along the tensor axis itself where no group has an axis of columns. Returns false without a choice.
bool CandidateSchedules::find_columns(TilingStrategy& shape, ScheduledKernel& scratch) const {
    for (const AxisId columns : model_.kernel().group_axes) {
        if (shape.columns >= 0 && columns != shape.tensor && extent(columns) <= extent(shape.columns)) continue;
        const AxisId before = std::exchange(shape.columns, columns);
        if (!runs_there(shape, scratch)) shape.columns = before;
    }
    return shape.columns >= 0;
}

bool CandidateSchedules::runs_there(const TilingStrategy& shape, ScheduledKernel& scratch) const {
    return suits_matrix_unit(scratch, ordinary(shape));
}

std::optional<Diagnostic> CandidateSchedules::why_no_mma() const {
    const ScheduleItem* wanted = overrides_.line(ChoiceKind::mma_m);
    const AxisId axis = overrides_.axis(ChoiceKind::mma_m);
    if (!wanted || axis < 0) return std::nullopt;
    // Reported where the override names this kernel, or the program has no other.
    if (wanted->kernel.empty() && unscheduled_.program->kernels.size() != 1) return std::nullopt;
    std::string why = fmt::format("{} has none", model_.machine().name);
    if (options_.warps.value > 0 && !unit_.matrix.empty()) {
        ScheduledKernel k = with_sizes(unscheduled_, ordinary(on_tensor_cores(axis)));
        choose_orders(k);
        why = mma_roles(k).refusal;
    }
    return Diagnostic{"no-tensor",
                      wanted->range,
                      fmt::format("kernel {} does not run on tensor cores: {}", model_.kernel().name, why),
                      "a kernel with a product of 16-bit or 8-bit tiles that the machine's instructions take",
                      fmt::format("leave '{}' out{}", name(wanted->kind),
                                  overrides_.fixes(ChoiceKind::subloop) ? ", or the subloop" : ""),
                      {},
                      ExitCode::bad_input};
}

// ---- sizes

std::optional<SearchedSize> CandidateSchedules::group_size(const TilingStrategy& shape, AxisId axis) const {
    if (is_cut_whole(axis)) return std::nullopt;
    SearchedSize d{axis, false, {}, false};
    if (const auto fixed = fixed_size(ChoiceKind::group, axis)) {
        d.sizes = {*fixed};
        d.by_user = true;
    } else if (axis == shape.tensor) {
        d.sizes = {std::min(longest_tile(axis, rows_of_warps()), rows_of_warps())};
    } else if (shape.columns >= 0 && axis != shape.columns) {
        d.sizes = {1};
    } else if (axis == shape.columns && extent(axis) == 1) {
        d.sizes = {columns_of_one()};
    } else {
        const std::int64_t longest = shape.tensor >= 0 ? longest_tile(axis, extent(axis)) : extent(axis);
        d.sizes = candidate_sizes(longest, axis == shape.axis.axis ? panel(shape) : 1);
        if (axis == shape.axis.axis && !contains(model_.kernel().recompute_axes, axis))
            // A part of a panel is worth something only where memory is short.
            d.sizes = without_parts_of_panels(d.sizes, panel(shape), extent(axis));
    }
    return d;
}

SearchedSize CandidateSchedules::stream_size(const TilingStrategy& shape, AxisId axis) const {
    if (const auto fixed = fixed_size(ChoiceKind::stream, axis))
        return {axis, true, {*fixed}, overrides_.fixes(ChoiceKind::stream, axis)};
    if (axis == shape.single) return {axis, true, {1}, false};
    const std::int64_t longest = longest_k_block(axis);
    std::vector<std::int64_t> sizes = candidate_sizes(shape.tensor >= 0 ? longest_tile(axis, longest) : longest, 1);
    // K blocks with fewer values than an mma takes leave the product to other units. With products ahead, an iteration
    // is to compute for longer than its warps wait for each other.
    const std::int64_t rows = shape.tensor >= 0 ? unit_.matrix.tile().rows : 0,
                       fewest = options_.products == ProductOrder::ahead ? 2 * rows : rows;
    if (shape.tensor >= 0 && sizes.back() >= fewest)
        std::erase_if(sizes, [&](std::int64_t size) { return size < fewest; });
    return {axis, true, std::move(sizes), false};
}

std::vector<AxisId> CandidateSchedules::streamed_axes() const {
    std::vector<AxisId> streamed;
    for (const Stage& stage : model_.kernel().stages)
        if (const auto* loop = std::get_if<Loop>(&stage); loop && !contains(streamed, loop->axis))
            streamed.push_back(loop->axis);
    return streamed;
}

bool CandidateSchedules::repeats(const TilingStrategy& shape, AxisId axis) const {
    return axis != shape.tensor && contains(model_.kernel().recompute_axes, axis);
}

std::vector<SearchedSize> CandidateSchedules::sizes(const TilingStrategy& shape) const {
    const Kernel& kernel = model_.kernel();
    std::vector<SearchedSize> out;
    for (const AxisId axis : kernel.group_axes)
        if (!repeats(shape, axis) || overrides_.fixes(ChoiceKind::group, axis))
            if (auto size = group_size(shape, axis)) out.push_back(std::move(*size));
    for (const AxisId axis : streamed_axes()) out.push_back(stream_size(shape, axis));
    return out;
}

std::vector<SearchedSize> CandidateSchedules::repeating_sizes(const TilingStrategy& shape) const {
    std::vector<SearchedSize> out;
    for (const AxisId axis : model_.kernel().recompute_axes)
        if (repeats(shape, axis) && !overrides_.fixes(ChoiceKind::group, axis))
            if (auto size = group_size(shape, axis)) out.push_back(std::move(*size));
    return out;
}

// ---- schedules

/// Whether blocks form clusters. A cluster override for all kernels applies to those on the tensor cores that group its
/// axis.
bool CandidateSchedules::joins_blocks(const TilingStrategy& shape) const {
    const ScheduleItem* cluster = overrides_.line(ChoiceKind::cluster);
    return cluster && (!cluster->kernel.empty() || unscheduled_.program->kernels.size() == 1 ||
                       (shape.tensor >= 0 && contains(model_.kernel().group_axes, overrides_.axis(ChoiceKind::cluster))));
}

KernelSchedule CandidateSchedules::of_shape(const TilingStrategy& shape) const {
    KernelSchedule s;
    s.atoms = given_.atoms, s.places = given_.places, s.prefetches = given_.prefetches,
    s.tile_pipelining = given_.tile_pipelining;
    if (order_) {
        s.atoms.resize(order_->schedule.atoms.size());
        for (const AtomId a : s.atoms.ids())
            if (!s.atoms[a].by_user) s.atoms[a] = order_->schedule.atoms[a], s.atoms[a].keeps_order = true;
    }
    s.is_batch_invariant = options_.is_batch_invariant;
    if (options_.is_batch_invariant) s.rescaling = {RescaleMode::always, "rows of a warp would decide together", true};
    s.kernel = model_.kernel().name;
    s.vector_axis = {shape.axis.axis, shape.axis.reason, overrides_.fixes(ChoiceKind::vector)};
    s.panel_vectors = {shape.vectors, "", overrides_.fixes(ChoiceKind::vectors)};
    if (shape.tensor >= 0)
        s.mma_m = {shape.tensor, fmt::format("{} rows a warp", unit_.matrix.tile().rows),
                   overrides_.fixes(ChoiceKind::mma_m)};
    s.threads = {threads_, "", overrides_.fixes(ChoiceKind::threads)};
    if (joins_blocks(shape))
        s.cluster = {{overrides_.axis(ChoiceKind::cluster), overrides_.value(ChoiceKind::cluster, 1)}, "", true};
    else if (options_.cluster && shape.tensor >= 0)
        s.cluster = {*options_.cluster, "rows begin between lines of L2, and each is asked for once for both", false};
    s.warps = options_.warps;
    if (s.warps.value > 0) s.blocks = {unit_.blocks_a_core, "an SM", options_.blocks_by_user};
    s.split.value = num_parts();
    s.roles = given_.roles, s.slots = given_.slots;
    if (s.roles.empty() && shape.tensor >= 0 && options_.producer_warps > 0)
        s.roles = {{"copies", options_.producer_warps, "asks for tiles as stages are free", false}};
    for (const CoreLoop& loop : model_.live().loops)
        if (loop.is_sub) s.subloop[loop.axis] = {*fixed_size(ChoiceKind::subloop, loop.axis), "", true};
    s.rows.value = unit_.registers;
    for (const FieldRow& field : schedule_fields)
        if (!field.is_searched)
            for (const auto& [axis, line] : overrides_.of(field.kind))
                set_field(s, field, line, axis, {line.value.value_or(0), "", true});
    return s;
}

KernelSchedule CandidateSchedules::ordinary(const TilingStrategy& shape) const {
    KernelSchedule s = of_shape(shape);
    for (const AxisId axis : model_.kernel().group_axes) {
        if (is_cut_whole(axis)) continue;
        if (const auto fixed = fixed_size(ChoiceKind::group, axis)) {
            s.group[axis] = {*fixed, "", true};
        } else if (!repeats(shape, axis)) {
            const bool batch = shape.columns >= 0 ? axis != shape.columns && axis != shape.tensor
                                                  : model_.carried_by_all_memory(axis) && axis != shape.axis.axis &&
                                                        axis != shape.tensor;
            // Whole panels: strategies are compared by what they do, and not by what they waste at the end of a tile.
            const std::int64_t wanted = axis == shape.tensor      ? rows_of_warps()
                                        : axis == shape.axis.axis ? round_up(ordinary_group, panel(shape))
                                        : batch                   ? 1
                                                                  : ordinary_group;
            const std::int64_t longest = axis == shape.tensor                         ? longest_tile(axis, wanted)
                                         : axis == shape.columns && extent(axis) == 1 ? columns_of_one()
                                                                                      : extent(axis);
            s.group[axis] = {std::min(longest, wanted), "", false};
        }
    }
    for (const AxisId axis : streamed_axes()) {
        const std::int64_t open = axis == shape.single ? 1 : std::min(longest_k_block(axis), shape.chunk);
        s.stream[axis] = {fixed_size(ChoiceKind::stream, axis).value_or(open), "", false};
    }
    return s;
}

KernelSchedule CandidateSchedules::at_sizes(const TilingStrategy& shape, const std::vector<SearchedSize>& sizes,
                                            const Point& point) const {
    KernelSchedule s = of_shape(shape);
    for (std::size_t i = 0; i < sizes.size(); ++i)
        (sizes[i].stream ? s.stream : s.group)[sizes[i].axis] = {sizes[i].sizes[point[i]], "", sizes[i].by_user};
    return s;
}

ScheduledKernel CandidateSchedules::completed(KernelSchedule schedule, Completion completion) const {
    ScheduledKernel kernel;
    begin(kernel, std::move(schedule));
    complete(kernel, completion);
    return kernel;
}

void CandidateSchedules::begin(ScheduledKernel& kernel, KernelSchedule schedule) const {
    kernel = unscheduled_;  // its tables keep their memory
    add_atoms(kernel, std::move(schedule));
}

void CandidateSchedules::complete(ScheduledKernel& begun, Completion completion) const {
    complete_with_atoms(begun, completion, options_.products, &model_);
    choose_non_temporal(begun, model_.machine());
    fetch_rows_ahead(begun);
}

}  // namespace napkin
