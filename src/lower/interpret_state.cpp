// Memory, barriers and facts of the kernel, as the agents of the interpreter share them.
#include "lower/interpret_state.hpp"

#include <algorithm>
#include <cmath>

#include "schedule/fragment_registers.hpp"
#include "schedule/warpgroups.hpp"
#include "support/ranges.hpp"

namespace napkin::lower::interpreter {

void unsupported(const std::string& what) { throw Stop{"unsupported", what}; }

// ---- expressions
// ------------------------------------------------------------

PointProgram::PointProgram(const Expr& e, Kinds& kinds, const Extents& extents) { add(e, kinds, extents); }

std::size_t PointProgram::add(const Expr& e, Kinds& kinds, const Extents& extents) {
    if (const auto found = known_.find(e.get()); found != known_.end()) return found->second;
    Node node{e, kinds(e), {}, {}};
    const auto of = [&](std::initializer_list<const Expr*> parts) {
        std::size_t n = 0;
        for (const Expr* part : parts) node.of[n++] = add(*part, kinds, extents);
    };
    if (const auto* c = as<Constant>(e)) node.value = number_of(*c);
    if (const auto* size = as<AxisSize>(e)) node.value = Number::whole(Kind::i64, extents[size->axis]);
    if (const auto* u = as<Unary>(e)) of({&u->a});
    if (const auto* b = as<Binary>(e)) of({&b->a, &b->b});
    if (const auto* s = as<Select>(e)) of({&s->condition, &s->a, &s->b});
    if (const auto* c = as<Cast>(e)) of({&c->a});
    nodes_.push_back(std::move(node));
    return known_[e.get()] = nodes_.size() - 1;
}

Number PointProgram::at(const std::vector<std::int64_t>& point, Element element) {
    for (Node& n : nodes_) {
        const auto of = [&](std::size_t i) -> const Number& { return nodes_[n.of[i]].value; };
        if (const auto* axis = as<AxisIndex>(n.e))
            n.value = Number::whole(Kind::i64, point[napkin::at(axis->axis)]);
        else if (const auto* r = as<Read>(n.e))
            n.value = element(*r);
        else if (const auto* u = as<Unary>(n.e))
            n.value = apply(u->op, of(0));
        else if (const auto* b = as<Binary>(n.e))
            n.value = apply(b->op, n.kind, of(0), of(1));
        else if (as<Select>(n.e))
            n.value = (of(0).truth() ? of(1) : of(2)).to(n.kind);
        else if (const auto* c = as<Cast>(n.e))
            n.value = of(0).to(c->type);
    }
    return nodes_.back().value;
}

// ---- memory and barriers
// ------------------------------------------------------------

SharedMemory::SharedMemory(std::int64_t bytes) : reals_(static_cast<std::size_t>(bytes), nothing) {}

double SharedMemory::read(std::int64_t byte) const {
    return byte < 0 || byte >= std::ssize(reals_) ? nothing : reals_[static_cast<std::size_t>(byte)];
}
void SharedMemory::write(std::int64_t byte, std::int64_t bytes, double value) {
    internal_check(byte >= 0 && byte + bytes <= std::ssize(reals_), "interpret: a write leaves shared memory");
    const auto at = reals_.begin() + byte;
    *at = value;
    std::fill(at + 1, at + bytes, nothing);
}
std::int64_t SharedMemory::read_whole(std::int64_t byte) const {
    const auto found = wholes_.find(byte);
    return found == wholes_.end() || std::isnan(read(byte)) ? Column::unset_whole : found->second;
}
void SharedMemory::write_whole(std::int64_t byte, std::int64_t value) {
    write(byte, 8, static_cast<double>(value));
    wholes_[byte] = value;
}

void MemoryBarrier::arrive() {
    if (!is_made) throw Stop{"bad-access", "a barrier is used before it is made"};
    ++arrivals;
    settle();
}
void MemoryBarrier::settle() {
    if (arrivals == needed && bytes == 0) arrivals = 0, ++phases;
}

std::int64_t Meeting::arrive(std::int64_t needed) {
    const std::int64_t waits_for = generation;
    if (++arrived == needed) arrived = 0, ++generation;
    return waits_for;
}

// ---- the kernel
// ------------------------------------------------------------

Grid::Grid(const KernelProgram& program, Values& memory, Completion completion)
    : program(program),
      kernel(*program.kernel),
      memory(memory),
      is_late(completion == Completion::late),
      stream_k(program.shapes.stream_k),
      kinds_([&kernel = *program.kernel](ArrayId read) {
          const VariableId v = as_variable(read);
          return kernel.variable(is_in_part(v) ? variable_in_part(v) : v).memory_type;
      }) {
    for (const VariableId v : kernel.layouts.ids()) {
        VariableFact& f = facts.emplace_back(VariableFact{program.shapes.variables[v]});
        f.in_registers = kernel.is_in_registers(v), f.is_operand = kernel.is_operand(v), f.is_view = kernel.is_view(v);
        f.is_whole = kernel.is_whole(v), f.bytes = bytes(variable(v).memory_type);
        f.is_passing = kernel.column_parts && kernel.column_parts->is_passing(v);
    }
    if (!kernel.on_tensor_cores()) return;
    const RegisterTile& tile = kernel.fragments();
    const layouts::Layout& d = *kernel.unit.matrix.begin()->d;
    const layouts::Layout row = row_of_lane(d, tile.rows), column = column_of_lane(d, tile.rows);
    for (std::int64_t lane = 0; lane < Warp::lanes; ++lane)
        lane_row.push_back(row(lane)), lane_column.push_back(column(lane));
    if (tile.rows_a_thread > 1) row_step = d(layouts::Coordinate{0, tile.row_stride});
    if (tile.columns_a_thread > 1) column_step = d(layouts::Coordinate{0, tile.column_stride}) / tile.rows;
}

Number VariableFact::number(double held) const {
    if (register_type != DType::i32) return Number::real(held);
    return Number::whole(Kind::i64, std::isnan(held) ? Column::unset_whole : static_cast<std::int64_t>(held));
}
double VariableFact::held(const Number& number) const {
    return register_type == DType::i32 ? static_cast<double>(number.as_whole(Kind::i32)) : number.as_real();
}

PointProgram& Grid::compiled(const Expr& e) {
    const auto found = programs_.find(e);
    return found != programs_.end() ? found->second : programs_.try_emplace(e, e, kinds_, kernel.extents).first->second;
}

const ProductFact& Grid::product_of(StepId step) {
    const auto [found, added] = products_.try_emplace(step);
    if (!added) return found->second;
    const Step& s = kernel.step(step);
    const MmaProduct& p = *program.shapes.steps[step].product;
    const std::int64_t deep = p.instruction->k.at(p.type), k = kernel.span(p.k, s.scope).tile;
    const auto along_k = [&](const Read& r) { return runs_along(kernel, r, p.k, s.scope); };
    found->second = {p,
                     kernel.runs_in_parts(s) ? kernel.column_parts->columns : columns_of(kernel, p.n, s.scope),
                     ceil_div(k, deep) * deep,
                     p.a_in_registers || along_k(*p.a),
                     along_k(*p.b),
                     kernel.span(p.k, s.scope).ragged || k != columns_of(kernel, p.k, s.scope)};
    return found->second;
}

std::int64_t Grid::stages(ScopeId scope) {
    const auto [found, added] = stages_.try_emplace(scope, 1);
    if (added)
        if (const auto loads = kernel.operand_loads(scope); !loads.empty())
            found->second = kernel.place(kernel.operand_loaded(*loads.front())).stages;
    return found->second;
}

std::optional<std::size_t> Grid::cell(ArrayId array, const std::vector<std::int64_t>& coordinates) const {
    const Array& a = kernel.program->diagram.array(array);
    std::int64_t offset = 0;
    for (std::size_t d = 0; d < a.axes.size(); ++d) {
        const std::int64_t extent = kernel.extent(a.axes[d]);
        if (coordinates[d] < 0 || coordinates[d] >= extent) return std::nullopt;
        offset = offset * extent + coordinates[d];
    }
    return static_cast<std::size_t>(offset);
}
Number Grid::load(ArrayId array, const std::vector<std::int64_t>& coordinates) const {
    const DType type = kernel.program->diagram.array(array).type;
    const auto found = cell(array, coordinates);
    if (!found) return Column::unset(type, 1).at(0);
    return memory[array].at(*found).to(type);
}
bool Grid::store(ArrayId array, const std::vector<std::int64_t>& coordinates, const Number& value) {
    const DType type = kernel.program->diagram.array(array).type;
    const auto found = cell(array, coordinates);
    if (!found) return false;
    memory[array].set(*found, is_float(type) ? Number::real(round_to(type, value.as_real())) : value.to(type));
    return true;
}

std::int64_t Grid::bound(const Affine& form, const Tile& tile, bool high,
                         const std::pair<std::int64_t, std::int64_t>* own) const {
    std::int64_t sum = form.constant;
    for (const auto& [axis, c] : form.terms) {
        std::int64_t begin = tile.begin[at(axis)], count = tile.count[at(axis)];
        if (own && axis == kernel.schedule.mma_m)
            begin += own->first, count = std::min(own->second, kernel.span(axis, 0).tile);
        sum += c * (begin + ((c > 0) == high ? count - 1 : 0));
    }
    return sum;
}

const KBlockRange* Grid::ranges_of(LoopId loop) {
    const std::optional<KBlockRanges>& of_loop = program.shapes.loops[loop].ranges;
    if (!of_loop) return nullptr;
    if (!ranges.contains(loop)) find_ranges(loop, *of_loop);
    return ranges.at(loop).data();
}

namespace {

/// The least and the greatest value; of none, least > most. What is past ±2^60 counts as these.
struct Extrema {
    static constexpr std::int64_t bound = std::int64_t{1} << 60;
    std::int64_t least = bound, most = -bound;
    void add(std::int64_t v) {
        least = std::min(least, std::max(v, -bound)), most = std::max(most, std::min(v, bound));
    }
    [[nodiscard]] bool is_exact() const { return least > -bound && most < bound; }
};

}  // namespace

/// The pass before the kernel, which reads the integers that masks compare.
void Grid::find_ranges(LoopId loop, const KBlockRanges& found) {
    const ScheduledLoop& node = kernel.loop(loop);
    const AxisId stream = node.loop->axis, rows = kernel.schedule.mma_m;
    const std::int64_t size = kernel.span(stream, node.scope).tile, extent = kernel.extent(stream);
    const auto extrema = [&](const Expr& e, const Tile& tile) {
        Extrema out;
        const auto& r = *as<Read>(e);
        const std::vector<AxisId> axes = free_axes(e);
        std::vector<std::int64_t> count, point = tile.begin;
        for (const AxisId axis : axes) count.push_back(tile.count[at(axis)]);
        for_each_point(count, [&](const std::vector<std::int64_t>& p) {
            for (std::size_t a = 0; a < axes.size(); ++a) point[at(axes[a])] = tile.begin[at(axes[a])] + p[a];
            const auto there = mapped<std::int64_t>(r.indices, [&](const Index& i) { return value_at(i, point, {}); });
            out.add(load(r.array, there).as_whole(Kind::i64));
        });
        return out;
    };
    for (std::int64_t n = 0; n < found.count; ++n) {
        Tile tile{std::vector<std::int64_t>(kernel.extents.size(), 0), {kernel.extents.begin(), kernel.extents.end()}};
        tile.cut(rows, n % found.tiles * found.rows, found.rows, kernel.extent(rows));
        std::int64_t below = found.tiles;
        for (auto axis = found.others.rbegin(); axis != found.others.rend(); ++axis) {
            const std::int64_t of = kernel.span(*axis, 0).tile, tiles = kernel.num_tiles(*axis);
            tile.cut(*axis, n / below % tiles * of, of, kernel.extent(*axis));
            below *= tiles;
        }
        std::vector<bool> whole;
        std::int64_t first = -1, last = 0;
        for (std::int64_t x = 0; x < extent; x += size) {
            tile.cut(stream, x, size, extent);
            bool possible = true, is_whole = true;
            const std::pair<std::int64_t, std::int64_t> own{0, found.rows};
            for (const MaskForm& form : found.forms) {
                std::int64_t low = bound(form.affine, tile, false, &own), high = bound(form.affine, tile, true, &own);
                if (form.plus) {
                    const Extrema e = extrema(form.plus, tile);
                    low += e.least, high += e.most, is_whole &= e.is_exact();
                }
                if (form.minus) {
                    const Extrema e = extrema(form.minus, tile);
                    low -= e.most, high -= e.least, is_whole &= e.is_exact();
                }
                possible &= high >= 0, is_whole &= low >= 0;
            }
            whole.push_back(possible && is_whole);
            if (possible) first = first < 0 ? x / size : first, last = x / size + 1;
        }
        std::int64_t run = 0, longest = 0, end = 0;
        for (std::int64_t i = std::max<std::int64_t>(first, 0); i < last; ++i) {
            run = whole[static_cast<std::size_t>(i)] ? run + 1 : 0;
            if (run > longest) longest = run, end = i + 1;
        }
        ranges[loop].push_back(
            {last == 0 ? extent : first * size, std::min(last * size, extent), (end - longest) * size, end * size});
    }
}

// ---- a warp
// ------------------------------------------------------------

Warp::Warp(Grid& grid, Cta& cta, std::int64_t number, bool is_producer)
    : grid(grid), kernel(grid.kernel), cta(cta), number(number), is_producer(is_producer) {
    for (const VariableId v : kernel.layouts.ids())
        registers.emplace_back(static_cast<std::size_t>(is_producer ? 0 : lanes * grid.fact(v).registers), nothing);
    for (const VariableId v : kernel.layouts.ids()) {
        const auto& lane_tile = grid.fact(v).lanes;
        const std::int64_t values = lane_tile ? lane_tile->rounds * std::max<std::int64_t>(1, lane_tile->values_a_round)
                                    : grid.fact(v).added_by ? kernel.layout(v).count
                                                            : 0;
        in_lanes.emplace_back(static_cast<std::size_t>(values), nothing);
    }
    const Tile all{std::vector<std::int64_t>(kernel.extents.size(), 0), {kernel.extents.begin(), kernel.extents.end()}};
    at.assign(kernel.scopes.size(), all);
}

std::int64_t Warp::counter(const Iteration& i) const {
    const auto found = counters.find(i.scope);
    return (found == counters.end() ? 0 : found->second) + i.offset;
}
std::int64_t Warp::stage_of(const Iteration& i) const { return floor_mod(counter(i), grid.stages(i.scope)); }
std::int64_t Warp::parity_of(const Iteration& i) const {
    return floor_mod(floor_div(counter(i), grid.stages(i.scope)), 2);
}

std::int64_t Warp::origin(VariableId v, std::size_t dimension) const {
    const ScopeId scope = kernel.layout(v).scope;
    const Tile& tile = at[napkin::at(scope)];
    std::vector<std::int64_t> padded = tile.count;
    for (std::size_t a = 0; a < padded.size(); ++a) padded[a] = kernel.span(AxisId::of(a), scope).padded;
    return range_of(grid.variable(v).dims[dimension], tile.begin, padded).low;
}
std::int64_t Warp::byte_of(VariableId v, const std::vector<std::int64_t>& coordinates) const {
    const Layout& layout = kernel.layout(v);
    if (kernel.is_panel(v) || kernel.is_packed(v)) unsupported("panels of " + grid.variable(v).name);
    std::int64_t number = 0;
    for (std::size_t d = 0; d < coordinates.size(); ++d) number += (coordinates[d] - origin(v, d)) * layout.strides[d];
    return layout.offset * kernel.value_bytes() + number * (grid.fact(v).is_whole ? 8 : kernel.value_bytes());
}
Number Warp::read_arena(VariableId v, std::int64_t byte) const {
    return grid.fact(v).is_whole ? Number::whole(Kind::i64, cta.shared.read_whole(byte))
                                 : Number::real(cta.shared.read(byte));
}
void Warp::write_arena(VariableId v, std::int64_t byte, const Number& value) {
    grid.fact(v).is_whole ? cta.shared.write_whole(byte, value.as_whole(Kind::i64))
                          : cta.shared.write(byte, kernel.value_bytes(), value.as_real());
}

std::int64_t Warp::place_in_lanes(VariableId v, const std::vector<std::int64_t>& coordinates) const {
    if (grid.fact(v).added_by) {
        std::int64_t place = 0;
        for (std::size_t d = 0; d < coordinates.size(); ++d)
            place += (coordinates[d] - origin(v, d)) * kernel.layout(v).strides[d];
        return place;
    }
    const LaneTile& tile = *grid.fact(v).lanes;
    for (std::size_t d = 0; d < coordinates.size(); ++d)
        if (tile.axis >= 0 && grid.variable(v).dims[d].is_axis(tile.axis)) return coordinates[d] - origin(v, d);
    return 0;
}
Number Warp::read_lanes(VariableId v, const std::vector<std::int64_t>& coordinates) const {
    return Number::real(in_lanes[v][static_cast<std::size_t>(place_in_lanes(v, coordinates))]);
}
void Warp::write_lanes(VariableId v, const std::vector<std::int64_t>& coordinates, const Number& value) {
    const double real = value.as_real();
    in_lanes[v][static_cast<std::size_t>(place_in_lanes(v, coordinates))] = kernel.is_double
                                                                                ? real
                                                                                : static_cast<double>(
                                                                                      static_cast<float>(real));
}

std::int64_t Warp::stage_byte(VariableId operand, std::int64_t stage) const {
    return kernel.layout(operand).offset * kernel.value_bytes() + stage * grid.fact(operand).tile->bytes;
}
std::int64_t Warp::operand_byte(VariableId v, std::int64_t byte, std::int64_t row, std::int64_t column) const {
    const VariableFact& f = grid.fact(v);
    return byte + column / f.tile->width * f.tile->panel_bytes() + row * operand_row_bytes + column % f.tile->width * f.bytes;
}
double Warp::operand(VariableId v, std::int64_t byte, std::int64_t row, std::int64_t column) const {
    return cta.shared.read(operand_byte(v, byte, row, column));
}

std::vector<std::int64_t> Warp::coordinates(const std::vector<Index>& indices, const std::vector<std::int64_t>& point) const {
    return mapped<std::int64_t>(indices, [&](const Index& index) { return value_at(index, point, {}); });
}

std::vector<std::int64_t> Warp::index_in_array(VariableId v, const std::vector<std::int64_t>& box) const {
    if (grid.variable(v).gathers.empty()) return box;
    const auto element = [&](const Read& r) -> std::int64_t {
        const std::vector<std::int64_t> there = coordinates(r.indices, box);
        if (grid.variable(r.variable()).gathers.empty())
            return grid.load(grid.variable(r.variable()).array, there).as_whole(Kind::i64);
        return read_arena(r.variable(), byte_of(r.variable(), there)).as_whole(Kind::i64);
    };
    std::vector<std::int64_t> out;
    for (const Index& index : kernel.facts(v).source) out.push_back(value_at(index, box, element));
    return out;
}

std::optional<std::vector<std::int64_t>> Warp::place_in_array(VariableId v, const std::vector<std::int64_t>& box) const {
    if (grid.variable(v).gathers.empty()) return box;
    auto out = index_in_array(v, box);
    return grid.cell(grid.variable(v).array, out) ? std::optional(std::move(out)) : std::nullopt;
}

}  // namespace napkin::lower::interpreter
