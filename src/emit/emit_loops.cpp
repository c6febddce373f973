// Loops and branches of the kernel program: over output tiles, over K blocks, and over parts of a statement.
#include <fmt/format.h>

#include <utility>

#include "emit/emit_fragment.hpp"
#include "emit/emit_k_block_ranges.hpp"
#include "emit/emit_places.hpp"
#include "emit/emit_program.hpp"
#include "emit/emit_write.hpp"
#include "emit/whole_text.hpp"
#include "support/ids.hpp"
#include "support/ranges.hpp"
#include "support/saturate.hpp"

namespace napkin::writers {

ProgramPrinter::Range& ProgramPrinter::range(LoopId loop) {
    const auto [found, added] = ranges_.try_emplace(loop);
    if (added) found->second.end = frame_.extent_text(frame_.loops[loop].loop->axis);
    return found->second;
}

std::string ProgramPrinter::header_of_tiles(lower::TileOrder order) const {
    const std::string tiles = num_tiles_text(frame_);
    switch (order) {
        case lower::TileOrder::range: return "for (Index group = first_group; group < last_group; ++group)";
        case lower::TileOrder::stream_k:
            return fmt::format(
                "for (StreamKWork {0} = {1}.first_work(); {0}.begin < {0}.end; {0} = {1}.work_after({0}))", share_name,
                shares_type(frame_));
        case lower::TileOrder::queue: return fmt::format("for (Index group = blockIdx.x; group < {};)", tiles);
        case lower::TileOrder::alternating: {
            const std::string section = section_text(frame_), sections = fmt::format("{}, {}", section, tiles);
            return fmt::format("for (Index group = first_group(0, {0}); group < {1}; group = group_after(group, {0}))",
                               sections, tiles);
        }
        case lower::TileOrder::strided: break;
    }
    return fmt::format("for (Index group = blockIdx.x; group < {}; group += gridDim.x)", tiles);
}

void ProgramPrinter::print(const lower::ForTiles& tiles) {
    const bool by_queue = tiles.order == lower::TileOrder::queue;
    for (const auto& [id, before] : frame_.before)
        out_(fmt::format("{}real* {} = nullptr;", frame_.is_output(id) ? "" : "const ", before));
    if (by_queue) out_("unsigned queue_iteration_ = 0;");
    if (by_queue && is_producer_) out_("unsigned next_group_ = 0;"), out_("bool has_asked_ = false;");
    out_.open(header_of_tiles(tiles.order));
    if (tiles.order == lower::TileOrder::stream_k)
        out_(fmt::format("const Index group = StreamKWork::group_of({});", share_name));
    for (const auto& [axis, text] : group_position(frame_, "group")) {
        const Span& span = frame_.span(axis, 0);
        out_.declare("const Index", frame_.axis(axis).begin, text);
        if (span.ragged) out_.declare("const Index", frame_.axis(axis).count, frame_.count_text(axis, span.tile));
    }
    print(tiles.body);
    if (by_queue) out_("++queue_iteration_;");
    out_.close();
}

void ProgramPrinter::print(const lower::LoopScope& scope) {
    out_.open("");
    print(scope.body);
    out_.close();
}

void ProgramPrinter::print(const lower::Bounds& bounds) {
    if (bounds.is_own) return own_bounds(bounds);
    const ScheduledLoop& node = frame_.loops[bounds.loop];
    const TileLoop& l = *node.loop;
    const Span& span = frame_.span(l.axis, node.scope);
    const std::string extent = frame_.extent_text(l.axis);
    const StreamParts& parts = frame_.kernel->parts;
    auto& [begin, end, all_end] = range(bounds.loop);
    if (frame_.shapes.stream_k) {
        begin = fmt::format("{}.begin", share_name), end = fmt::format("{}.end", share_name);
        if (span.ragged) end = fmt::format("min_index({}, {})", end, extent);
    }
    if (runs_a_part(frame_, node)) {
        // The part's share of the K blocks, the last of which may be ragged.
        const std::int64_t blocks = ceil_div(frame_.extent(l.axis), span.tile), n = frame_.extent(parts.part);
        const std::string part = frame_.axis(parts.part).begin, number = frame_.extent_text(parts.part),
                          all = blocks_text(frame_, node);
        const auto first = [&](const std::string& p) {
            return fmt::format("{} * {} / {} * {}", widened(p, {0, n * blocks}), all, number, span.tile);
        };
        begin = first(part), end = first(fmt::format("({} + 1)", part));
        if (span.ragged) end = fmt::format("min_index({}, {})", end, extent);
    }
    const std::string name = axis_name(bounds.loop), first = name + "_first_", last = name + "_last_";
    write_k_block_bounds(frame_, out_, node, first, begin, last, end);
    if (frame_.shape(node).ranges && !is_producer_ && !frame_.shape(node).has_own_k_blocks)
        write_unmasked_k_blocks(frame_, out_, node, false);
    begin = first, end = last;
}

/// A warpgroup runs the K blocks that contribute to its own rows. It only releases the tiles of the block's others.
void ProgramPrinter::own_bounds(const lower::Bounds& bounds) {
    const ScheduledLoop& node = frame_.loops[bounds.loop];
    const std::string axis = axis_name(bounds.loop), first = axis + "_own_first_", last = axis + "_own_last_",
                      at = axis + "_at_";
    const std::int64_t rows = frame_.unit.matrix.warps_together() * frame_.fragments().rows;
    const OwnRows own{fmt::format("{} * ({})", rows, warpgroup_text(frame_)), rows};
    auto& [begin, end, all_end] = range(bounds.loop);
    out_("// of them those that contribute to the warpgroup's own rows");
    write_k_block_bounds(frame_, out_, node, first, begin, last, end, &own);
    if (frame_.shape(node).ranges) write_unmasked_k_blocks(frame_, out_, node, true);
    out_(fmt::format("Index {} = {};", at, begin));
    all_end = end, begin = at, end = last;
}

/// K blocks before or behind the warpgroup's own.
void ProgramPrinter::header_of_skipped(const lower::ForBlocks& blocks) {
    const std::string axis = axis_name(blocks.loop), at = axis + "_at_", last = axis + "_own_last_";
    const std::int64_t tile = tile_of(blocks.loop);
    const std::string& all_end = range(blocks.loop).all_end;
    std::string condition = fmt::format("{} < {}", at, all_end);
    if (blocks.blocks == lower::KBlocks::before_own)
        condition = fmt::format("{0} < {1} && {0} < {2}", at, axis + "_own_first_", all_end);
    else
        out_(fmt::format("if ({0} < {1}) {0} += ({1} - {0} + {2}) / {3} * {3};", at, last, tile - 1, tile));
    out_.open(fmt::format("for (; {}; {} += {})", condition, at, tile));
}

void ProgramPrinter::print(const lower::ForBlocks& blocks) {
    using lower::KBlocks;
    const ScheduledLoop& node = frame_.loops[blocks.loop];
    const AxisNames& names = frame_.axis(node.loop->axis);
    const Span& span = frame_.span(node.loop->axis, node.scope);
    const auto& [begin, end, all_end] = range(blocks.loop);
    if (blocks.blocks == KBlocks::but_last) {
        out_.open(fmt::format("for (; {0} + {1} < {2}; {0} += {1})", names.begin + "_iteration_", span.tile, end));
    } else if (blocks.blocks != KBlocks::all) {
        header_of_skipped(blocks);
    } else {
        if (const int turns = is_producer_ ? 1 : frame_.shape(node).unrolled; turns > 1)
            out_(fmt::format("NAPKIN_UNROLL_BY({})", turns));
        out_.open(fmt::format("for (Index {0} = {1}; {0} < {2}; {0} += {3})", names.begin, begin, end, span.tile));
        if (span.ragged) out_.declare("const Index", names.count, frame_.count_text(node.loop->axis, span.tile));
    }
    print(blocks.body);
    out_.close();
}

void ProgramPrinter::print(const lower::If& branch) {
    using lower::If;
    switch (branch.condition) {
        case If::any_k_block: {
            const Range& bounds = range(branch.loop);
            out_.open(fmt::format("if ({} < {})", bounds.begin, bounds.end));
            out_(fmt::format("Index {}_iteration_ = {};", axis_name(branch.loop), bounds.begin));
            break;
        }
        case If::tile_is_split:
            out_(fmt::format("bool {} = true;", goes_on_name));
            out_.open(fmt::format("if ({}.number >= StreamKWork::part)", share_name));
            break;
        case If::arrives_second:
            out_.open(fmt::format("if (!{})", goes_on_name));
            print(branch.otherwise);
            out_.close();
            out_.open("else");
            break;
        case If::goes_on: out_.open(fmt::format("if ({})", goes_on_name)); break;
    }
    print(branch.body);
    out_.close();
}

void ProgramPrinter::print(const lower::At& at) {
    const AxisNames& names = frame_.axis(frame_.loops[at.loop].loop->axis);
    const Span& span = frame_.span(frame_.loops[at.loop].loop->axis, at.iteration.scope);
    const std::int64_t by = at.iteration.offset * span.tile;
    out_.open("");
    out_.declare("const Index", names.begin,
                 fmt::format("{}_iteration_{}", names.begin, by == 0 ? "" : fmt::format(" + {}", by)));
    if (span.ragged)
        out_.declare("const Index", names.count, frame_.count_text(frame_.loops[at.loop].loop->axis, span.tile));
    for (const VariableId v : operands_of(frame_, at.iteration.scope))
        declare_stage(frame_, out_, v, at.iteration.offset);
    in_at_ = true;
    print(at.body);
    in_at_ = false;
    out_.close();
}

void ProgramPrinter::print(const lower::ForParts& parts) {
    out_.open(fmt::format("EACH(part_, {})", frame_.column_parts->parts));
    print(parts.body);
    out_.close();
}

void ProgramPrinter::print(const lower::ForPanels& panels) {
    const AxisId v = frame_.schedule.vector_axis;
    const ScopeId scope = frame_.step(panels.first).scope;
    const bool several = frame_.span(v, scope).tile > frame_.panel();
    if (several)
        out_.open(fmt::format("for (Index {0} = 0; {0} < {1}; {0} += {2})", frame_.axis(v).local,
                              frame_.count(v, scope), frame_.panel()));
    print(panels.body);
    if (several) out_.close();
}

void ProgramPrinter::print(const lower::ForStaging& tiles) {
    out_(about("store", frame_.step(tiles.step)));
    out_.open("");
    write_staging_header(frame_, out_, frame_.step(tiles.step));
    print(tiles.body);
    out_.close();
    out_.close();
}

void ProgramPrinter::print(const lower::UseStage& use) {
    out_(about("wait for", load_of(use.tile.operand)));
    declare_stage(frame_, out_, use.tile.operand, use.tile.iteration.offset);
}
void ProgramPrinter::print(const lower::Advance& advance) { next_iteration(frame_, out_, advance.scope); }

}  // namespace napkin::writers
