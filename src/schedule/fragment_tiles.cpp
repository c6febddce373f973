// Part of fragments.hpp: how tiles lie in shared memory and in fragments, and what threads read in global memory.
#include <functional>
#include <numeric>
#include <set>

#include "diagram/box.hpp"
#include "diagram/guards.hpp"
#include "schedule/fragments.hpp"
#include "schedule/gathered.hpp"
#include "schedule/k_block_ranges.hpp"
#include "schedule/window_copy.hpp"
#include "support/ids.hpp"
#include "support/ranges.hpp"

namespace napkin {

bool is_loaded(const ScheduledKernel& kernel, VariableId id) {
    return any_of(kernel.steps, [&](const Step& step) {
        const auto* load = std::get_if<Load>(step.statement);
        return load && load->variable == id;
    });
}

std::int64_t columns_of(const ScheduledKernel& kernel, AxisId axis, ScopeId scope) {
    return round_up(kernel.span(axis, scope).tile, 2 * kernel.fragments().columns);
}

bool has_rows(const ScheduledKernel& kernel, VariableId id) {
    return carries(kernel.variable(id), kernel.schedule.mma_m);
}

AxisId column_axis(const ScheduledKernel& kernel, VariableId id) {
    for (const Index& dim : kernel.variable(id).dims)
        if (const AxisId a = dim.single_axis();
            a != kernel.schedule.mma_m && a >= 0 && kernel.span(a, kernel.layout(id).scope).tile > 1)
            return a;
    return -1;
}

AxisId columns_of_statement(const ScheduledKernel& kernel, const Step& step) {
    const auto& compute = std::get<Compute>(*step.statement);
    if (const AxisId axis = column_axis(kernel, compute.variable); axis >= 0) return axis;
    for (const AxisId axis : compute.reduce_axes)
        if (axis >= 0 && axis != kernel.schedule.mma_m && kernel.span(axis, step.scope).tile > 1) return axis;
    return -1;
}

bool is_cut_at_its_end(const ScheduledKernel& kernel, AxisId axis, ScopeId scope) {
    const Span& span = kernel.span(axis, scope);
    return span.ragged && span.tile == columns_of(kernel, axis, scope);
}

std::optional<double> constant_value(const ScheduledKernel& kernel, const Expr& e) {
    if (const auto* c = as<Constant>(e)) return c->value;
    if (const auto* size = as<AxisSize>(e)) return static_cast<double>(kernel.extent(size->axis));
    const auto* u = as<Unary>(e);
    const auto* cast = as<Cast>(e);
    const auto* b = as<Binary>(e);
    const auto x = u                              ? constant_value(kernel, u->a)
                   : cast && is_float(cast->type) ? constant_value(kernel, cast->a)
                   : b                            ? constant_value(kernel, b->a)
                                                  : std::nullopt;
    if (!x || !b) return x ? std::optional(u ? apply(u->op, *x) : round_to(cast->type, *x)) : std::nullopt;
    const auto y = constant_value(kernel, b->b);
    return y ? std::optional(apply(b->op, *x, *y)) : std::nullopt;
}

CopyAtoms copy_atoms(const Machine& gpu) {
    CopyAtoms out;
    const std::string& core = gpu.levels[core_memory_level(gpu)].name;
    for (const CrossTransfer& link : gpu.cross_transfers)
        if (link.level == core)
            for (const auto& [joined, rate] : link.bandwidth_bytes_per_s) out.clusters.push_back(joined);
    for (const CopyInstruction& copy : gpu.copies) {
        const bool comes = copy.to == core, leaves = copy.from == core;
        if (copy.name == "cp.async.bulk.tensor" && comes)
            out.bulk_dimensions = static_cast<int>(copy.dimensions), out.bulk_box = static_cast<int>(copy.box),
            out.bulk_clocks = copy.latency_clocks.value, out.loaded_bulk_clocks = copy.loaded_latency_clocks.value,
            out.cached_bulk_clocks = (copy.cached_latency_clocks.known() ? copy.cached_latency_clocks : copy.latency_clocks)
                                         .value;
        if (copy.name == "cp.async.bulk.tensor.im2col" && comes) out.window_box = static_cast<int>(copy.box);
        if (copy.name == "cp.async.bulk.tensor" && leaves)
            out.bulk_store_dimensions = static_cast<int>(copy.dimensions);
        if (copy.name == "cp.async" && comes) out.past_registers = static_cast<int>(copy.bytes);
        if (copy.name == "ld.global" && !leaves && !comes) out.vector_bytes = static_cast<int>(copy.bytes);
        if (copy.from == copy.to && copy.latency_clocks.known()) out.exchange_clocks = copy.latency_clocks.value;
        if (copy.name == "ldmatrix" && leaves) out.loads_fragments = true;
        if (copy.name == "stmatrix" && comes) out.stores_fragments = true;
    }
    return out;
}

namespace {

constexpr AxisId one_value = -1;

/// running_axis of an expression. A sum's other terms have one value.
std::optional<AxisId> running_axis_of(const ScheduledKernel& kernel, const Expr& e, ScopeId scope) {
    if (const auto* i = as<AxisIndex>(e)) return kernel.span(i->axis, scope).tile > 1 ? i->axis : one_value;
    if (as<Constant>(e) || as<AxisSize>(e)) return one_value;
    const auto* b = as<Binary>(e);
    const auto x = b ? running_axis_of(kernel, b->a, scope) : std::nullopt;
    const auto y = b ? running_axis_of(kernel, b->b, scope) : std::nullopt;
    if (!x || !y) return std::nullopt;
    if (*x < 0 && *y < 0) return one_value;
    if (b->op == BinaryOp::add && (*x < 0 || *y < 0)) return std::max(*x, *y);
    if (b->op == BinaryOp::sub && *y < 0) return x;
    const auto* of = as<AxisIndex>(b->a);
    const auto* by = as<Constant>(b->b);
    if (!of || !by || !divides_evenly(kernel, of->axis, static_cast<std::int64_t>(by->value), scope))
        return std::nullopt;
    if (b->op == BinaryOp::floor_div) return one_value;
    return b->op == BinaryOp::mod ? x : std::nullopt;
}

/// Whether the dimension's index may lie outside of the array, where other values than zeros are meant.
bool may_lie_outside(const ScheduledKernel& kernel, const Variable& variable, std::size_t dimension) {
    if (variable.is_zero_outside) return false;
    const Index& dim = variable.dims[dimension];
    if (dim.affine() || dim.is_gathered()) return is_cut(kernel, variable, dimension);
    const Interval range = range_of(dim, std::vector<std::int64_t>(kernel.extents.size(), 0), kernel.extents);
    return range.low < 0 || range.high >= kernel.extent(variable.limits[dimension]);
}

/// Whether tiles begin at multiples of 16 bytes along the contiguous dimension.
bool begins_aligned(const ScheduledKernel& kernel, const Index& inner, std::int64_t value_bytes, ScopeId scope) {
    if (const Affine* form = inner.affine()) {
        for (const auto& [axis, factor] : form->terms)
            if (const Span& span = kernel.span(axis, scope);
                span.begins && factor * span.tile * value_bytes % operand_stride_bytes != 0)
                return false;
        return form->constant * value_bytes % operand_stride_bytes == 0;
    }
    // The rest of t by n, in tiles that divide n, begins at multiples of the tile. So does t // n, in tiles that n
    // divides.
    const auto* part = as<Binary>(inner.value());
    const auto* of = part && (part->op == BinaryOp::mod || part->op == BinaryOp::floor_div) ? as<AxisIndex>(part->a)
                                                                                            : nullptr;
    const auto* by = of ? as<Constant>(part->b) : nullptr;
    return by && kernel.span(of->axis, scope).tile /
                         (part->op == BinaryOp::floor_div ? static_cast<std::int64_t>(by->value) : 1) * value_bytes %
                         operand_stride_bytes ==
                     0;
}

/// Whether one thread finds where the tile lies, from integers that lie in memory.
bool may_be_looked_up_by_copies(const ScheduledKernel& kernel, VariableId id) {
    return kernel.has_bulk_copies() && all_of(kernel.variable(id).gathers, [&](const Index& index) {
               bool are_there = true;
               if (!index.is_gathered()) return true;
               visit(*index.expression(), [&](const Expr& e) {
                   const auto* r = as<Read>(e);
                   are_there = are_there &&
                               (!r || (kernel.variable(r->variable()).gathers.empty() && is_loaded(kernel, r->variable())));
               });
               return are_there;
           });
}

}  // namespace

std::optional<AxisId> running_axis(const ScheduledKernel& kernel, const Index& index, ScopeId scope) {
    if (const AxisId single = index.single_axis(); single >= 0) return single;
    const Affine* form = index.affine();
    if (!form) return running_axis_of(kernel, index.value(), scope);
    AxisId running = one_value;
    for (const auto& [axis, factor] : form->terms) {
        if (factor < 0 || (factor != 1 && kernel.span(axis, scope).tile > 1)) return std::nullopt;
        if (factor != 1 || kernel.span(axis, scope).tile <= 1) continue;
        if (running >= 0) return std::nullopt;
        running = axis;
    }
    return running;
}

bool may_be_written(const ScheduledKernel& kernel, VariableId id) {
    if (!kernel.has_bulk_copies() || kernel.is_whole(id)) return false;
    const DType type = kernel.variable(id).memory_type;
    if (none_of(kernel.unit.matrix, [&](const Instruction& i) { return contains(i.result_types, type); })) return false;
    bool is_computed = false;
    for (const Step& step : kernel.steps) {
        if (step.statement == nullptr || variable_of(step) != id) continue;
        const auto* compute = std::get_if<Compute>(step.statement);
        if (!compute || is_computed || compute->reduce || compute->carry) return false;
        if (!all_of(step.reads, [&](const Read* r) { return is_loaded(kernel, r->variable()); })) return false;
        is_computed = true;
    }
    return is_computed;
}

namespace {

/// Whether the variable reads more arrays along the axis `a` than along `b`, where they are contiguous.
bool reads_rather_along(const ScheduledKernel& kernel, VariableId id, AxisId a, AxisId b) {
    int more = 0;
    for (const Step& step : kernel.steps)
        if (step.atom >= 0 && variable_of(step) == id)
            for (const Read* r : step.reads)
                if (r->indices.size() > 1)
                    more += r->indices.back().depends_on(a) ? 1 : r->indices.back().depends_on(b) ? -1 : 0;
    return more > 0;
}

/// The tile of what threads write: its two wide dimensions are rows and columns. What it reads is contiguous along the
/// columns.
std::optional<OperandTile> written_tile(const ScheduledKernel& kernel, VariableId id) {
    const Variable& variable = kernel.variable(id);
    const ScopeId scope = kernel.layout(id).scope;
    OperandTile out{.outer = -1, .inner = -1};
    for (std::size_t d = variable.dims.size(); d-- > 0;) {
        const AxisId axis = variable.dims[d].single_axis();
        if (axis < 0) return std::nullopt;
        if (kernel.span(axis, scope).tile <= 1) continue;
        int& place = out.inner < 0 ? out.inner : out.outer;
        if (place >= 0) return std::nullopt;
        place = static_cast<int>(d);
    }
    if (out.outer < 0) return std::nullopt;
    AxisId rows = variable.dims[at(out.outer)].single_axis(), columns = variable.dims[at(out.inner)].single_axis();
    if (reads_rather_along(kernel, id, rows, columns)) std::swap(out.outer, out.inner), std::swap(rows, columns);
    out.width = operand_row_bytes / bytes(variable.memory_type);
    out.rows = columns_of(kernel, rows, scope);
    out.panels = (columns_of(kernel, columns, scope) + out.width - 1) / out.width;
    out.bytes = out.panels * out.panel_bytes();
    return out;
}

}  // namespace

bool runs_along(const ScheduledKernel& kernel, const Read& factor, AxisId k, ScopeId scope) {
    const VariableId id = factor.variable();
    if (!may_be_written(kernel, id)) return running_axis(kernel, factor.indices.back(), scope) == k;
    const auto tile = written_tile(kernel, id);
    return tile && kernel.variable(id).dims[at(tile->inner)].is_axis(k);
}

namespace {

/// Whether producer warps may copy the rows of an operand one by one. They are many threads, and one asks for tiles.
bool may_copy_single_rows(const ScheduledKernel& kernel) {
    return kernel.producer_role() && !kernel.is_dynamic() && !kernel.in_cluster() &&
           kernel.unit.copies.past_registers >= operand_stride_bytes;
}

/// The axis t of an index t // n, in tiles that n divides; and n.
std::optional<std::pair<AxisId, std::int64_t>> packed_axis(const ScheduledKernel& kernel, const Index& index, ScopeId scope) {
    const auto* quotient = index.affine() ? nullptr : as<Binary>(index.value());
    const auto* of = quotient && quotient->op == BinaryOp::floor_div ? as<AxisIndex>(quotient->a) : nullptr;
    const auto* by = of ? as<Constant>(quotient->b) : nullptr;
    const auto n = by ? static_cast<std::int64_t>(by->value) : 0;
    if (n <= 1 || kernel.span(of->axis, scope).tile % n != 0) return std::nullopt;
    return std::pair(of->axis, n);
}

}  // namespace

namespace {

/// Whether all rows of the array begin at multiples of 16 bytes.
bool has_aligned_rows(const ScheduledKernel& kernel, const Variable& variable) {
    const std::vector<AxisId>& axes = kernel.program->diagram.array(variable.array).axes;
    std::int64_t stride = bytes(variable.memory_type);
    for (std::size_t d = axes.size(); d-- > 0; stride *= kernel.extent(axes[d]))
        if (d + 1 < axes.size() && stride % operand_stride_bytes != 0) return false;
    return true;
}

/// The tile of an operand with these rows and columns. Each warp has its rows of the M axis, past the tile's end too.
void set_size(OperandTile& tile, const ScheduledKernel& kernel, AxisId rows, AxisId columns, ScopeId scope,
              std::int64_t value_bytes) {
    const std::int64_t dealt = kernel.fragment_rows();
    tile.width = operand_row_bytes / value_bytes;
    tile.rows = rows < 0 || kernel.span(rows, scope).tile <= 1 ? 1 : columns_of(kernel, rows, scope);
    tile.panels = ceil_div(kernel.span(columns, scope).tile / tile.packed, tile.width);
    if (rows == kernel.schedule.mma_m) tile.rows = std::max(tile.rows, dealt);
    if (columns == kernel.schedule.mma_m) tile.panels = std::max(tile.panels, (dealt + tile.width - 1) / tile.width);
    tile.bytes = tile.panels * tile.panel_bytes();
}

/// The tile of an axis that walks over dimensions.
std::optional<OperandTile> window_tile(const ScheduledKernel& kernel, VariableId id) {
    const Variable& variable = kernel.variable(id);
    const ScopeId scope = kernel.layout(id).scope;
    const auto window = window_copy(kernel, id);
    const std::int64_t value = bytes(variable.memory_type);
    if (!window || !has_aligned_rows(kernel, variable) || !begins_aligned(kernel, variable.gathers.back(), value, scope))
        return std::nullopt;
    OperandTile out{.outer = -1, .inner = -1};
    for (std::size_t p = 0; p < variable.dims.size(); ++p) {
        if (variable.dims[p].is_axis(window->rows)) out.outer = static_cast<int>(p);
        if (variable.dims[p].is_axis(window->columns)) out.inner = static_cast<int>(p);
    }
    set_size(out, kernel, window->rows, window->columns, scope, value);
    return out.rows <= kernel.unit.copies.window_box ? std::optional(out) : std::nullopt;
}

}  // namespace

std::optional<OperandTile> operand_tile(const ScheduledKernel& kernel, VariableId id) {
    if (may_be_written(kernel, id)) return written_tile(kernel, id);
    const Variable& variable = kernel.variable(id);
    if (are_walks(variable.gathers)) return window_tile(kernel, id);
    const ScopeId scope = kernel.layout(id).scope;
    const std::int64_t value = bytes(variable.memory_type);
    const std::vector<Index> source = source_of(kernel, id);
    const std::size_t rank = source.size();
    if (rank < 2 || source.back().single_axis() < 0) return std::nullopt;
    if (kernel.has_bulk_copies() && rank > static_cast<std::size_t>(kernel.unit.copies.bulk_dimensions))
        return std::nullopt;
    if (!variable.gathers.empty() && !may_be_looked_up_by_copies(kernel, id)) return std::nullopt;
    OperandTile out{.outer = -1, .inner = source.back().single_axis().place()};
    const auto runs = [&](AxisId axis) { return axis >= 0 && kernel.span(axis, scope).tile > 1; };
    // What a gathered index is made of has one value, so that the whole tile lies in one block of the array. Or one of
    // its coordinates numbers the rows.
    const auto packed = packed_axis(kernel, variable.dims[at(out.inner)], scope);
    if (packed) out.packed = packed->second;
    for (std::size_t p = 0; p < variable.dims.size(); ++p) {
        const auto axis = packed && static_cast<int>(p) == out.inner ? packed->first
                                                                     : running_axis(kernel, variable.dims[p], scope);
        const bool is_plain = array_dimension(kernel, id, static_cast<int>(p)) >= 0;
        if (!axis || may_lie_outside(kernel, variable, p)) return std::nullopt;
        if (static_cast<int>(p) == out.inner || !runs(*axis)) continue;
        out.is_of_single_rows = !is_plain;
        if (out.outer >= 0 || (!is_plain && (packed || !may_copy_single_rows(kernel)))) return std::nullopt;
        out.outer = static_cast<int>(p);
    }
    if (!has_aligned_rows(kernel, variable)) return std::nullopt;
    for (const Index& index : source)
        if (const AxisId p = index.single_axis(); out.outer < 0 && p >= 0 && p.place() != out.inner)
            out.outer = p.place();
    if (out.outer < 0) return std::nullopt;
    const AxisId rows = *running_axis(kernel, variable.dims[at(out.outer)], scope),
                 columns = packed ? packed->first : *running_axis(kernel, variable.dims[at(out.inner)], scope);
    if (columns < 0 || !begins_aligned(kernel, variable.dims[at(out.inner)], value, scope)) return std::nullopt;
    if (columns == kernel.schedule.mma_m && packed) return std::nullopt;
    set_size(out, kernel, rows, columns, scope, value);
    if (kernel.has_bulk_copies() && out.rows > kernel.unit.copies.bulk_box) return std::nullopt;
    return out;
}

double lines_of_a_row(const ScheduledKernel& kernel, VariableId id) {
    const Variable& variable = kernel.variable(id);
    const std::vector<AxisId>& axes = kernel.program->diagram.array(variable.array).axes;
    std::int64_t stride = bytes(variable.memory_type), apart = operand_row_bytes;
    for (std::size_t d = axes.size(); d-- > 1;) stride *= kernel.extent(axes[d]), apart = std::gcd(apart, stride);
    return 2 - static_cast<double>(apart) / operand_row_bytes;
}

bool copies_single_rows(const ScheduledKernel& kernel) {
    return any_of(kernel.layouts.ids(), [&](VariableId v) {
        const auto tile = kernel.is_operand(v) ? operand_tile(kernel, v) : std::nullopt;
        return tile && tile->is_of_single_rows;
    });
}

bool only_adds_products(const ScheduledKernel& kernel, ScopeId scope) {
    return all_of(kernel.steps, [&](const Step& step) {
        const auto* c = std::get_if<Compute>(step.statement);
        return !c || step.scope != scope || (kernel.atom(step).kind == AtomKind::mma && adds_in_place(*c));
    });
}

bool outlasts_iterations(const ScheduledKernel& kernel, ScopeId scope, int stages) {
    return kernel.producer_role() && stages >= stages_to_outlast && only_adds_products(kernel, scope);
}

bool is_one_quotient(const ScheduledKernel& kernel, AxisId axis, std::int64_t divisor, ScopeId scope) {
    const auto& parts = kernel.column_parts;
    return divisor %
               (parts && parts->axis == axis && parts->scope == scope ? parts->columns : kernel.span(axis, scope).tile) ==
           0;
}

std::vector<AxisId> inner_axes(const ScheduledKernel& kernel, const std::vector<Index>& indices, ScopeId scope) {
    std::set<AxisId> axes;
    const std::function<void(const Expr&)> walk = [&](const Expr& e) {
        if (const auto* i = as<AxisIndex>(e); i && kernel.span(i->axis, scope).tile > 1) axes.insert(i->axis);
        if (const auto* u = as<Unary>(e)) walk(u->a);
        const auto* b = as<Binary>(e);
        if (!b) return;
        const auto* of = b->op == BinaryOp::floor_div ? as<AxisIndex>(b->a) : nullptr;
        const auto* by = of ? as<Constant>(b->b) : nullptr;
        if (by && is_one_quotient(kernel, of->axis, static_cast<std::int64_t>(by->value), scope)) return;
        walk(b->a), walk(b->b);
    };
    for (const Index& index : indices) walk(index.value());
    return {axes.begin(), axes.end()};
}

bool is_read_by_rows(const ScheduledKernel& kernel, VariableId id) {
    if (!kernel.is_read_by_threads(id) || kernel.is_whole(id) || !may_be_read_by_threads(kernel, id)) return false;
    // Where an iteration begins before the one before it ends, both would have values of their own.
    if (kernel.layout(id).scope > 0 && runs_ahead(kernel)) return false;
    const std::vector<AxisId> axes = inner_axes(kernel, kernel.variable(id).dims, kernel.layout(id).scope);
    return all_of(axes, [&](AxisId axis) { return axis == kernel.schedule.mma_m; });
}

bool is_read_in_runs(const ScheduledKernel& kernel, const Step& step, const Read& read) {
    const auto& compute = std::get<Compute>(*step.statement);
    const AxisId columns = columns_of_statement(kernel, step), rows = kernel.schedule.mma_m;
    if (columns < 0 || read.indices.empty() || column_axis(kernel, compute.variable) < 0 ||
        !has_rows(kernel, compute.variable) || kernel.runs_in_parts(step))
        return false;
    if (!kernel.is_read_by_threads(read.variable()) || kernel.is_whole(read.variable()) ||
        is_read_by_rows(kernel, read.variable()))
        return false;
    if (read.indices != kernel.variable(read.variable()).dims) return false;
    const DType type = kernel.variable(read.variable()).memory_type;
    if (type != DType::bf16 && type != DType::f16 && type != DType::f32) return false;
    const std::vector<Index> outer(read.indices.begin(), read.indices.end() - 1);
    const std::vector<AxisId> wide = inner_axes(kernel, outer, step.scope);
    return read.indices.back().is_axis(columns) && contains(wide, rows) && !contains(wide, columns) &&
           columns_of(kernel, columns, step.scope) % run_columns(kernel) == 0;
}

std::int64_t runs_together(const ScheduledKernel& kernel, const Step& step) {
    constexpr std::int64_t most = 4;
    const std::int64_t runs = columns_of(kernel, columns_of_statement(kernel, step), step.scope) / run_columns(kernel);
    return step.scope > 0 ? 1 : std::gcd(runs, most);
}

bool is_fetched_with_group(const ScheduledKernel& kernel, const Step& step, const Read& read) {
    if (step.scope != 0 || kernel.loops.empty() || !is_read_in_runs(kernel, step, read)) return false;
    const AxisId rows = kernel.schedule.mma_m;
    return all_of(read.indices, [&](const Index& index) {
        return index.is_axis(rows) || &index == &read.indices.back() || inner_axes(kernel, {index}, step.scope).empty();
    });
}

std::int64_t row_values(const ScheduledKernel& kernel, VariableId id) {
    const auto& parts = kernel.column_parts;
    const bool has_parts = parts && kernel.layout(id).scope == parts->scope &&
                           any_of(kernel.variable(id).dims, [&](const Index& dim) { return dim.depends_on(parts->axis); });
    return kernel.fragments().rows_a_thread * (has_parts ? parts->parts : 1);
}

int iterations_read_ahead(const ScheduledKernel& kernel, const Step& load) {
    // A load that misses L1 takes 600 clocks and more while all SMs copy. A mainloop iteration of such a loop takes 500
    // to 1000. Measured on an H200 on 2026-11-25, on block-scaled products of 4096×7168×16384: two iterations ahead
    // with unrolled loops are 1.08 times as fast as one iteration. They wait for loads a third as often.
    constexpr int turns = 2;
    const auto* statement = std::get_if<Load>(load.statement);
    if (!statement || load.scope == 0 || !kernel.producer_role() || !is_read_by_rows(kernel, statement->variable))
        return 0;
    const auto loop = find_if(kernel.loops, [&](const ScheduledLoop& l) { return l.scope == load.scope; });
    const std::vector<Index>& dims = kernel.variable(statement->variable).dims;
    const bool is_ahead = loop != kernel.loops.end() && !kernel.operand_loads(load.scope).empty() &&
                          is_repeated(kernel, *loop) &&
                          any_of(dims, [&](const Index& dim) { return dim.depends_on(loop->loop->axis); });
    return is_ahead ? turns : 0;
}

bool threads_read_ahead(const ScheduledKernel& kernel) {
    return any_of(kernel.steps, [&](const Step& step) { return iterations_read_ahead(kernel, step) > 0; });
}

int unrolled_iterations(const ScheduledKernel& kernel, const ScheduledLoop& loop) {
    int ahead = 0;
    for (const Step& step : kernel.steps)
        if (step.scope == loop.scope) ahead = std::max(ahead, iterations_read_ahead(kernel, step));
    // Twice as many iterations as there are values in flight let the compiler load early and multiply late.
    return ahead > 0 ? 2 * ahead : 1;
}

RowFactors with_row_factors_together(const ScheduledKernel& kernel, const Expr& value, ScopeId scope, AxisId columns) {
    RowFactors out{value};
    if (columns < 0) return out;
    const auto is_of_row = [&](const Expr& e) {
        const auto* r = as<Read>(e);
        return r && kernel.is_read_by_threads(r->variable()) && !contains(inner_axes(kernel, r->indices, scope), columns);
    };
    out.expression = transform(value, [&](const Expr& node) {
        const auto* outer = as<Binary>(node);
        const auto* inner = outer && outer->op == BinaryOp::mul && is_of_row(outer->b) ? as<Binary>(outer->a) : nullptr;
        if (!inner || inner->op != BinaryOp::mul) return node;
        const auto* last = as<Binary>(inner->b);
        const bool is_product_of_rows = last && last->op == BinaryOp::mul && is_of_row(last->a) && is_of_row(last->b);
        if (!is_of_row(inner->b) && !is_product_of_rows) return node;
        ++out.saved;
        return binary(BinaryOp::mul, inner->a, binary(BinaryOp::mul, inner->b, outer->b));
    });
    return out;
}

bool may_be_read_by_threads(const ScheduledKernel& kernel, VariableId id) {
    const Variable& variable = kernel.variable(id);
    if (!kernel.on_tensor_cores() || !variable.gathers.empty() || !is_loaded(kernel, id) ||
        contains(kernel.outputs, variable.array))
        return false;
    const std::vector<std::int64_t> origin(kernel.extents.size(), 0);
    bool is_inside = true;
    for (std::size_t d = 0; d < variable.dims.size(); ++d) {
        const Interval range = range_of(variable.dims[d], origin, kernel.extents);
        is_inside = is_inside && range.low >= 0 && range.high < kernel.extent(variable.limits[d]);
    }
    // Copies of runs look where they read.
    return all_of(kernel.steps, [&](const Step& step) {
        if (!reads(step, id)) return true;
        const AtomKind kind = kernel.atom(step).kind;
        return is_inside ? kind == AtomKind::fragment || kind == AtomKind::tile
                         : kind == AtomKind::tile && copied_runs(kernel, step).has_value();
    });
}

namespace {

/// Whether the columns stand in the expression in quotients by whole parts alone. A thread's part then has one value.
bool is_one_for_part(const ScheduledKernel& kernel, const Expr& e, AxisId columns, ScopeId scope) {
    if (const auto* i = as<AxisIndex>(e)) return i->axis != columns;
    const auto* quotient = as<Binary>(e);
    const auto* of = quotient && quotient->op == BinaryOp::floor_div ? as<AxisIndex>(quotient->a) : nullptr;
    if (const auto by = of && of->axis == columns ? constant_value(kernel, quotient->b) : std::nullopt) {
        const Span& span = kernel.span(columns, scope);
        const auto n = static_cast<std::int64_t>(*by);
        // Parts stay inside of a quotient where tiles begin at multiples of a part, or stay inside of one themselves.
        return n % written_values == 0 && (!span.begins || span.tile % written_values == 0 || n % span.tile == 0);
    }
    if (const auto* r = as<Read>(e))
        return all_of(r->indices, [&](const Index& i) { return is_one_for_part(kernel, i.value(), columns, scope); });
    return all_of(children(e), [&](const Expr& child) { return is_one_for_part(kernel, child, columns, scope); });
}

/// Whether neighbours of a part are neighbours along the dimension with this index.
bool runs_in_part(const ScheduledKernel& kernel, const Index& index, AxisId columns, ScopeId scope) {
    if (const Affine* form = index.affine()) return form->coefficient(columns) == 1;
    const auto* rest = as<Binary>(index.value());
    const auto* of = rest && rest->op == BinaryOp::mod ? as<AxisIndex>(rest->a) : nullptr;
    const auto by = of && of->axis == columns ? constant_value(kernel, rest->b) : std::nullopt;
    const Span& span = kernel.span(columns, scope);
    return by && static_cast<std::int64_t>(*by) % written_values == 0 && (!span.begins || span.tile % written_values == 0);
}

}  // namespace

bool is_one_for_part(const ScheduledKernel& kernel, const Index& index, AxisId columns, ScopeId scope) {
    return is_one_for_part(kernel, index.value(), columns, scope);
}

std::optional<CopiedRuns> copied_runs(const ScheduledKernel& kernel, const Step& step) {
    const auto& compute = std::get<Compute>(*step.statement);
    CopiedRuns out{nullptr, {}};
    Expr inner = compute.body;
    while (const Select* outside = zero_elsewhere(inner))
        append(out.conditions, conditions_in(outside->condition)), inner = outside->a;
    out.read = as<Read>(inner);
    if (!out.read || out.read->indices.empty() || !is_loaded(kernel, out.read->variable())) return std::nullopt;
    const Variable& from = kernel.variable(out.read->variable());
    const auto tile = written_tile(kernel, compute.variable);
    if (!tile || !from.gathers.empty() || from.memory_type != kernel.variable(compute.variable).memory_type)
        return std::nullopt;
    const AxisId columns = kernel.variable(compute.variable).dims[at(tile->inner)].single_axis();
    const auto is_one = [&](const Expr& e) { return is_one_for_part(kernel, e, columns, step.scope); };
    const auto& indices = out.read->indices;
    const bool are_runs = runs_in_part(kernel, indices.back(), columns, step.scope) && all_of(out.conditions, is_one) &&
                          std::all_of(indices.begin(), indices.end() - 1,
                                      [&](const Index& i) { return is_one(i.value()); });
    return are_runs && none_of(out.conditions, [](const Expr& c) { return !read_arrays(c).empty(); }) ? std::optional(out)
                                                                                                      : std::nullopt;
}

namespace {
/// The form, with each variable replaced by the array whose tile it is.
MaskForm in_arrays(const ScheduledKernel& kernel, MaskForm form) {
    for (Expr* e : {&form.plus, &form.minus})
        if (*e) {
            const auto* r = as<Read>(*e);
            *e = read(kernel.variable(r->variable()).array, r->indices);
        }
    return form;
}
}  // namespace

std::optional<Unmasked> unmasked(const ScheduledKernel& kernel, const Step& step) {
    const auto& compute = std::get<Compute>(*step.statement);
    std::vector<MaskForm> known;
    for (const ScheduledLoop& loop : kernel.loops)
        if (loop.scope == step.scope)
            if (const auto ranges = k_block_ranges(kernel, loop)) known = ranges->forms;
    Unmasked out;
    const auto within = [&](const Expr& e) {
        return e == nullptr ? e : transform(e, [&](const Expr& node) {
            const auto* s = as<Select>(node);
            if (!s || free_axes(s->condition).empty()) return node;
            // A mask selects a constant where it excludes a point.
            const bool holds = as<Constant>(s->a) == nullptr;
            auto forms = equivalent_mask_forms(s->condition, holds);
            if (!forms) return node;
            for (MaskForm& form : *forms) {
                form = with_sizes(in_arrays(kernel, std::move(form)), kernel.extents);
                if (form.has_reads() && !contains(known, form)) return node;
            }
            for (const MaskForm& form : *forms)
                if (form.has_reads())
                    out.by_data = true;
                else if (!contains(out.forms, form.affine))
                    out.forms.push_back(form.affine);
            return holds ? s->a : s->b;
        });
    };
    out.body = within(compute.body), out.carry = within(compute.carry);
    // A reduction leaves out what lies past the end, and a read from memory finds another value for it. Weights are
    // added up where they are computed (ConditionalRescale).
    const AxisId columns = columns_of_statement(kernel, step);
    const bool minds_end = column_axis(kernel, compute.variable) < 0 ||
                           (kernel.rescale && kernel.rescale->weights == kernel.number(step)) ||
                           any_of(step.reads, [&](const Read* r) { return !kernel.is_in_registers(r->variable()); });
    if (columns >= 0 && minds_end && is_cut_at_its_end(kernel, columns, step.scope)) out.whole = columns;
    if (out.forms.empty() && !out.by_data && out.whole < 0) return std::nullopt;
    return out;
}

std::optional<StagingTiles> staging_tiles_of(const ScheduledKernel& kernel, VariableId id) {
    const Variable& variable = kernel.variable(id);
    const ScopeId scope = kernel.layout(id).scope;
    const std::int64_t value = bytes(variable.memory_type);
    const std::size_t rank = variable.dims.size();
    const bool is_stored = any_of(kernel.steps, [&](const Step& step) {
        const auto* store = std::get_if<Store>(step.statement);
        return store && store->variable == id;
    });
    if (!kernel.is_in_registers(id) || !is_stored || contains(kernel.inputs, variable.array)) return std::nullopt;
    const CopyAtoms& copies = kernel.unit.copies;
    if (!kernel.has_bulk_copies() || rank < 2 || rank > static_cast<std::size_t>(copies.bulk_store_dimensions))
        return std::nullopt;
    if (value == 2 && !copies.stores_fragments) return std::nullopt;
    if (!is_float(variable.memory_type) || (value != 2 && value != 4)) return std::nullopt;
    StagingTiles out{.rows = -1, .columns = static_cast<int>(rank) - 1};
    std::int64_t stride = value;
    for (std::size_t d = rank; d-- > 0;) {
        const AxisId axis = variable.dims[d].single_axis();
        if (axis < 0 || is_cut(kernel, variable, d)) return std::nullopt;
        if (static_cast<int>(d) != out.columns && stride % operand_stride_bytes != 0) return std::nullopt;
        stride *= kernel.extent(variable.limits[d]);
        if (axis == kernel.schedule.mma_m) out.rows = static_cast<int>(d);
    }
    const AxisId columns = column_axis(kernel, id);
    if (out.rows < 0 || columns < 0 || !variable.dims.back().is_axis(columns)) return std::nullopt;
    out.width = operand_row_bytes / value;
    const Span& span = kernel.span(columns, scope);
    if (span.begins && span.tile % out.width != 0) return std::nullopt;
    out.count = (span.tile + out.width - 1) / out.width;
    return out;
}

}  // namespace napkin
