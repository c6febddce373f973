#include "tile/interpret.hpp"

#include <memory>
#include <utility>

#include "diagram/box.hpp"
#include "support/ranges.hpp"
#include "support/result.hpp"
#include "tile/buffer.hpp"
#include "tile/compute.hpp"
#include "tile/uses.hpp"

namespace napkin {
namespace {
/// The arrays that lie in memory, by ArrayId.
using Memory = std::vector<Buffer>;

Buffer integer_array(const Diagram& diagram, ArrayId array, const Extents& extents) {
    const auto dims = mapped<Index>(diagram.array(array).axes, [&](AxisId axis) { return Affine::axis(axis); });
    Buffer buffer;
    place(buffer, dims, {std::vector<std::int64_t>(extents.size(), 0), extents}, diagram.array(array).type);
    return buffer;
}

/// State that all groups of one kernel's run share.
struct KernelRun {
    const SizedProgram& program;
    const TileKernel& kernel;
    const TileSizes& core;
    const std::vector<TileSizes>& outer;  ///< of the levels above the core, outermost first
    Memory& memory;
    Precision precision;
    Arithmetic arithmetic{kernel, program.extents, precision == Precision::stored};
    /// by level; arrays by ArrayId until the run is over
    std::vector<Counts> counted = std::vector<Counts>(outer.size() + 1);

    [[nodiscard]] std::int64_t extent(AxisId axis) const { return program.extents[axis]; }
    [[nodiscard]] const Variable& variable(VariableId v) const { return kernel.variables[v]; }

    /// The sizes at a level. The last level is the core.
    [[nodiscard]] const TileSizes& sizes(std::size_t level) const { return level < outer.size() ? outer[level] : core; }
    /// The size of a grouped axis at a level.
    [[nodiscard]] std::int64_t group_size(std::size_t level, AxisId axis) const {
        const std::int64_t size = axis == kernel.parts.part ? 1 : sizes(level).group[axis];
        return size != 0 ? size : extent(axis);
    }
    /// The size of a K block at a level.
    [[nodiscard]] std::int64_t k_block_size(std::size_t level, const TileLoop& loop) const {
        return k_block_of(loop, sizes(level), program.extents);
    }

    /// Calls f for every group of the level in a tile of the level above.
    template <class F>
    void for_each_group(std::size_t level, Tile tile, std::size_t next_axis, const F& f) const {
        if (next_axis == kernel.group_axes.size()) return f(tile);
        const AxisId axis = kernel.group_axes[next_axis];
        const std::int64_t size = group_size(level, axis), end = tile.end(axis);
        for (std::int64_t from = tile.begin[at(axis)]; from < end; from += size) {
            tile.cut(axis, from, size, end);
            for_each_group(level, tile, next_axis + 1, f);
        }
    }
};

/// One group at one level: what it holds, and its children, which run in lockstep. A core has no children and computes.
class Group {
public:
    Group(KernelRun& run, std::size_t level, Group* above, Tile tile)
        : run_(run),
          level_(level),
          above_(above),
          tile_(std::move(tile)),
          buffers_(run.kernel.variables.size()),
          counts_(run.counted[level]) {
        ++counts_.groups;
        if (is_core()) return;
        run.for_each_group(level + 1, tile_, 0, [&](const Tile& part) {
            children_.push_back(std::make_unique<Group>(run, level + 1, this, part));
        });
    }

    void run() {
        run_list(run_.kernel.body);
        check_empty();
    }

private:
    [[nodiscard]] bool is_core() const { return level_ == run_.outer.size(); }
    Buffer& buffer(VariableId v) { return buffers_[at(v)]; }

    void check_empty() const {
        for (const Buffer& b : buffers_) internal_check(!b.alive, "interpret: a variable outlives its group");
        for (const auto& child : children_) child->check_empty();
    }

    void run_list(const std::vector<TileStatement>& list) {
        for (const TileStatement& statement : list) std::visit([&](const auto& s) { run_one(s); }, statement);
    }

    template <class Statement>
    void run_children(const Statement& s) {
        for (const auto& child : children_) child->run_one(s);
    }

    // ---- what the group holds

    void count_held(std::int64_t values) {
        held_values_ += values;
        counts_.peak_memory = std::max(counts_.peak_memory, held_values_);
    }

    void hold(VariableId v) {
        place(buffer(v), run_.variable(v).dims, tile_, run_.variable(v).memory_type);
        count_held(buffer(v).size());
    }

    void release(VariableId v) {
        Buffer& b = buffer(v);
        internal_check(b.alive, "interpret: a variable is freed that is not alive");
        held_values_ -= b.size();
        b.alive = false;
        b.data.clear();
    }

    ArrayCount& count_of(VariableId v) {
        counts_.arrays.resize(run_.program.diagram.arrays.size());
        return counts_.arrays[at(run_.variable(v).array)];
    }

    void fetch(VariableId v) {
        hold(v);
        const Variable& variable = run_.variable(v);
        const Buffer& from = above_ ? above_->buffer(v) : run_.memory[at(variable.array)];
        internal_check(from.alive, "interpret: a variable is loaded that the level above does not hold");
        if (above_)
            load_box(from, buffer(v));
        else if (variable.gathers.empty())
            load_inside(from, buffer(v));
        else
            gather(v, from);
        const std::int64_t moved = values_inside(variable.dims, variable.limits, run_.program.extents, tile_.begin,
                                                 tile_.count);
        counts_.loaded += moved;
        counts_.loaded_bytes += moved * bytes(variable.memory_type);
        count_of(v).loaded += moved;
    }

    /// Loads every value of the box from the position that elements of other variables give.
    void gather(VariableId v, const Buffer& array) {
        Buffer& part = buffer(v);
        const Expr written = read(v, run_.variable(v).gathers);
        const std::vector<Index> source = box_of(run_.program.diagram, run_.kernel, *as<Read>(written)).source;
        std::vector<std::int64_t> place;
        const auto element = [&](const Read& r) {
            const Buffer& tile = buffer(r.variable());
            internal_check(tile.alive, "interpret: an index is read from a variable that is not alive");
            std::int64_t offset = 0;
            for (std::size_t d = 0; d < tile.count.size(); ++d) {
                const std::int64_t here = value_at(r.indices[d], place, {}) - tile.origin[d];
                internal_check(here >= 0 && here < tile.count[d], "interpret: an index leaves the tile of its array");
                offset += here * tile.stride[d];
            }
            return tile.data.at(static_cast<std::size_t>(offset)).as_whole(Kind::i64);
        };
        std::int64_t next = -1;
        for_each_point(part.count, [&](const std::vector<std::int64_t>& point) {
            place = point;
            for (std::size_t d = 0; d < place.size(); ++d) place[d] += part.origin[d];
            ++next;
            std::int64_t offset = 0;
            for (std::size_t d = 0; d < source.size(); ++d) {
                const std::int64_t coordinate = value_at(source[d], place, element);
                if (coordinate < 0 || coordinate >= array.count[d]) return;
                offset += coordinate * array.stride[d];
            }
            load_cell(array, offset, part, next);
        });
    }

    void write_up(VariableId v) {
        const Variable& variable = run_.variable(v);
        internal_check(buffer(v).alive, "interpret: a variable is stored that is not alive");
        Buffer& memory = run_.memory[at(variable.array)];
        if (!above_ && !memory.alive)
            memory = integer_array(run_.program.diagram, variable.array, run_.program.extents);
        Buffer part = buffer(v);
        if (run_.precision == Precision::stored && !part.data.is_whole())
            for (double& x : part.data.reals()) x = round_to(variable.memory_type, x);
        store_box(part, above_ ? above_->buffer(v) : memory);
        counts_.stored += part.size();
        counts_.stored_bytes += part.size() * bytes(variable.memory_type);
        count_of(v).stored += part.size();
    }

    /// Writes the tile that the children filled to the level above, and releases it.
    void pass_up(VariableId v) {
        internal_check(buffer(v).collected == buffer(v).size(),
                       "interpret: the children of a group do not fill its tile");
        write_up(v);
        release(v);
    }

    // ---- statements

    void run_one(const Load& load) {
        fetch(load.variable);
        run_children(load);
    }

    void run_one(const Store& store) {
        if (is_core()) return write_up(store.variable);
        hold(store.variable);
        run_children(store);
        pass_up(store.variable);
    }

    void run_one(const Init& init) {
        if (!is_core()) return run_children(init);
        hold(init.variable);
        Buffer& b = buffer(init.variable);
        b.data = Column(run_.variable(init.variable).memory_type, b.data.size(), Number::real(init.value));
    }

    void run_one(const Compute& compute) {
        if (!is_core()) return run_children(compute);
        const bool begins = !buffer(compute.variable).alive;
        run_.arithmetic.run(compute, tile_, buffers_);
        if (begins) count_held(buffer(compute.variable).size());
    }

    void run_one(const Free& free) {
        run_children(free);
        if (is_core() || buffer(free.variable).alive) release(free.variable);
    }

    void run_one(const std::shared_ptr<const TileLoop>& loop) {
        Stretch all{tile_.begin[at(loop->axis)], tile_.end(loop->axis)};
        if (const StreamParts& parts = run_.kernel.parts; !loop->is_sub && parts.cut(loop->axis))
            all = stretch_of_parts(tile_.begin[at(parts.part)], tile_.end(parts.part), run_.extent(parts.part), all.end,
                                   run_.k_block_size(run_.outer.size(), *loop));
        run_loop(*loop, all.begin, all.end);
    }

    /// Runs the K blocks of [from, end). This is what the level above, or else the outer loops and the group, have of
    /// the axis.
    void run_loop(const TileLoop& loop, std::int64_t from, std::int64_t end) {
        const std::int64_t size = run_.k_block_size(level_, loop), all_from = tile_.begin[at(loop.axis)],
                           all_end = tile_.end(loop.axis);
        internal_check(size >= 1, "interpret: a stream size below 1");
        for (; from < end; from += size) {
            tile_.cut(loop.axis, from, size, end);
            const bool skipped = any_of(
                loop.support, [&](const Affine& s) { return range_of(s, tile_.begin, tile_.count).high < 0; });
            if (skipped) {
                skip_k_blocks(loop, from, tile_.end(loop.axis));
                continue;
            }
            if (!loop.is_sub) ++counts_.chunks_run;
            if (is_core())
                run_list(loop.body);
            else
                run_k_block(loop);
        }
        tile_.cut(loop.axis, all_from, all_end - all_from, all_end);
    }

    /// Counts K blocks that the level skips. Its children do not begin them.
    void skip_k_blocks(const TileLoop& loop, std::int64_t from, std::int64_t end) {
        counts_.chunks_skipped += ceil_div(end - from, run_.k_block_size(level_, loop));
        for (const auto& child : children_) child->skip_k_blocks(loop, from, end);
    }

    /// Runs a K block of an outer level. Fetches what the body loads, lets every child run its K blocks, and passes up
    /// what the body stores.
    void run_k_block(const TileLoop& loop) {
        for_each_statement(loop.body, [&](const TileStatement& s) {
            if (const auto* load = std::get_if<Load>(&s)) fetch(load->variable);
            if (const auto* store = std::get_if<Store>(&s)) hold(store->variable);
        });
        for (const auto& child : children_) child->run_loop(loop, tile_.begin[at(loop.axis)], tile_.end(loop.axis));
        for_each_statement(loop.body, [&](const TileStatement& s) {
            if (const auto* load = std::get_if<Load>(&s)) release(load->variable);
            if (const auto* store = std::get_if<Store>(&s)) pass_up(store->variable);
        });
    }

    KernelRun& run_;
    std::size_t level_;
    Group* above_;  ///< null: memory
    Tile tile_;     ///< the group's tile; inside a loop, that of the K block
    std::vector<std::unique_ptr<Group>> children_;
    std::vector<Buffer> buffers_;  ///< by VariableId
    std::int64_t held_values_ = 0;
    Counts& counts_;  ///< of the level
};

/// Checks that every level's sizes are multiples of the next inner level's, or the whole axis.
void check_nested(const KernelRun& run) {
    const auto check = [&](AxisId axis, const auto& size_at) {
        for (std::size_t level = 0; level < run.outer.size(); ++level) {
            const std::int64_t outer = size_at(level), inner = size_at(level + 1);
            internal_check(inner >= 1 && (outer >= run.extent(axis) || outer % inner == 0),
                           "interpret: the levels' sizes do not nest");
        }
    };
    for (const AxisId axis : run.kernel.group_axes)
        check(axis, [&](std::size_t level) { return run.group_size(level, axis); });
    for (const TileStatement& s : run.kernel.body)
        if (const auto* loop = std::get_if<std::shared_ptr<const TileLoop>>(&s))
            check((*loop)->axis, [&](std::size_t level) { return run.k_block_size(level, **loop); });
}

void run_kernel(KernelRun& run) {
    for (const AxisId axis : run.kernel.group_axes)
        internal_check(run.group_size(run.outer.size(), axis) >= 1, "interpret: a group size below 1");
    check_nested(run);
    const Tile everything{std::vector<std::int64_t>(run.program.extents.size(), 0), run.program.extents};
    run.for_each_group(0, everything, 0, [&](const Tile& tile) { Group(run, 0, nullptr, tile).run(); });
    for (Counts& level : run.counted) {
        for (std::size_t a = 0; a < level.arrays.size(); ++a) level.arrays[a].array = ArrayId::of(a);
        std::erase_if(level.arrays, [](const ArrayCount& a) { return a.loaded == 0 && a.stored == 0; });
    }
}

/// Runs every kernel over its outer levels.
std::vector<std::vector<Counts>> run_program(const SizedProgram& program, const std::vector<std::vector<TileSizes>>& outer,
                                             Values& values, Precision precision) {
    internal_check(program.extents.size() == program.diagram.axes.size(),
                   "interpret: the extents are those of another diagram");
    internal_check(outer.size() == program.kernels.size(), "interpret: the levels are those of another program");
    values.resize(program.diagram.arrays.size());
    Memory memory(values.size());
    for (const ArrayId id : values.ids()) {
        if (program.diagram.arrays[id].role != ArrayRole::input ||
            std::cmp_not_equal(values[id].size(), count_values(program.diagram, id, program.extents)))
            continue;
        memory[id] = integer_array(program.diagram, id, program.extents);
        memory[id].data = values[id].in(program.diagram.arrays[id].type);
    }
    std::vector<std::vector<Counts>> counted;
    for (std::size_t k = 0; k < program.kernels.size(); ++k) {
        KernelRun run{program, program.kernels[k], program.sizes[k], outer[k], memory, precision};
        run_kernel(run);
        counted.push_back(std::move(run.counted));
    }
    for (const ArrayId a : values.ids()) values[a] = std::move(memory[a].data);
    return counted;
}

}  // namespace

std::vector<Counts> interpret(const SizedProgram& program, Values& values, Precision precision) {
    std::vector<Counts> counts;
    for (const auto& levels :
         run_program(program, std::vector<std::vector<TileSizes>>(program.kernels.size()), values, precision))
        counts.push_back(levels.back());
    return counts;
}

std::vector<std::vector<Counts>> interpret_levels(const SizedProgram& program,
                                                  const std::vector<std::vector<TileSizes>>& outer, Values& values) {
    return run_program(program, outer, values, Precision::exact);
}

}  // namespace napkin
