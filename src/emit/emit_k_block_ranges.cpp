#include "emit/emit_k_block_ranges.hpp"

#include <fmt/format.h>

#include "emit/emit_entry.hpp"
#include "emit/emit_fragment.hpp"
#include "emit/emit_header.hpp"
#include "emit/emit_index.hpp"
#include "emit/emit_places.hpp"
#include "support/ids.hpp"
#include "support/ranges.hpp"
#include "support/result.hpp"
#include "support/saturate.hpp"

namespace napkin::writers {
namespace {

std::string whole_first(const Frame& frame, AxisId axis) { return frame.axis(axis).begin + "_whole_first_"; }
std::string whole_last(const Frame& frame, AxisId axis) { return frame.axis(axis).begin + "_whole_last_"; }

std::string range_name(const Frame& frame, const ScheduledLoop& node, bool is_own) {
    return frame.axis(node.loop->axis).begin + (is_own ? "_own_range_" : "_range_");
}

std::string text_of(const Frame& frame, const MaskForm& form) {
    ExprNames names = expression_names(frame);
    names.array = [&](ArrayId id) { return frame.diagram().array(id).name; };
    std::string text = frame.form_text(form.affine, names);
    if (form.plus)
        text = text == "0" ? to_string(form.plus, names) : fmt::format("{} + {}", text, to_string(form.plus, names));
    if (form.minus) text += fmt::format(" - {}", to_string(form.minus, names));
    return text;
}

std::string tiles_text(const Frame& frame, AxisId axis) {
    return frame.whole_text("tiles_" + frame.diagram().axis(axis).name, lower::SizeFormulas(frame.lowered).tiles(axis));
}
/// The product of two numbers or names.
std::string product_text(const std::string& a, const std::string& b) {
    const auto is_number = [](const std::string& text) {
        return text.find_first_not_of("0123456789") == std::string::npos;
    };
    return is_number(a) && is_number(b) ? std::to_string(std::stoll(a) * std::stoll(b)) : fmt::format("({} * {})", a, b);
}
/// The number of ranges along the rows.
std::string row_tiles_text(const Frame& frame, const KBlockRanges& ranges) {
    return frame.whole_text("row_ranges", lower::SizeFormulas(frame.lowered).row_ranges(ranges));
}

/// The number of the range of the group's first rows among all ranges.
std::string first_range(const Frame& frame, const KBlockRanges& ranges) {
    std::string at;
    const auto add = [&](AxisId axis, const std::string& tiles, std::int64_t tile) {
        const Span& span = frame.span(axis, 0);
        std::string own = !span.begins ? "0"
                          : tile == 1  ? frame.axis(axis).begin
                                       : fmt::format("{} / {}", frame.axis(axis).begin, tile);
        at = at.empty() || at == "0" ? own : fmt::format("({}) * {} + {}", at, tiles, own);
    };
    for (const AxisId axis : ranges.others) add(axis, tiles_text(frame, axis), frame.span(axis, 0).tile);
    add(frame.schedule.mma_m, row_tiles_text(frame, ranges), ranges.rows);
    return at;
}

/// Declares the extrema of the read's values over the tile: its rows, the K block and other axes. Axes along which the
/// read does not run are left out. The tile of `rows` lies where its names say, also where it is the whole axis.
void write_extrema(const Frame& frame, Lines& out, const Read& r, const std::string& name, const ScheduledLoop& node,
                   AxisId rows) {
    std::vector<AxisId> axes;
    for (const Index& index : r.indices)
        for (const AxisId axis : index.axes())
            if (!contains(axes, axis)) axes.push_back(axis);
    std::stable_partition(axes.begin(), axes.end(), [&](AxisId axis) { return axis != node.loop->axis; });
    std::string count = "1", at;
    std::vector<std::string> locals(axes.size());
    for (std::size_t a = axes.size(); a-- > 0;) {
        const AxisId axis = axes[a];
        const std::string n = axis == rows ? frame.axis(rows).count : frame.count(axis, node.scope);
        locals[a] = count == "1" ? "i_" : fmt::format("i_ / ({})", count);
        if (a > 0) locals[a] = fmt::format("{} % {}", locals[a], n);
        count = count == "1" ? n : fmt::format("{} * {}", count, n);
    }
    const auto coordinate = [&](AxisId axis) -> IntegerText {
        const auto a = static_cast<std::size_t>(find(axes, axis) - axes.begin());
        const std::string begin = axis == rows || frame.span(axis, node.scope).begins ? frame.axis(axis).begin : "0";
        return {fmt::format("({} + {})", begin, locals[a]), coordinates_of(frame, axis, node.scope)};
    };
    for (std::size_t d = 0; d < r.indices.size(); ++d)
        at += fmt::format("{}{} * {}[{}]", d > 0 ? " + " : "", index_text(r.indices[d], coordinate).text,
                          frame.strides.at(r.array), d);
    out(fmt::format("const Extrema {} = extrema_of({}, [&](Index i_) {{ return {}[{}]; }});", name, count,
                    frame.memory.at(r.array), at.empty() ? "0" : at));
}

/// The pass that finds the ranges: a block for each range, whose warps share the K blocks.
class Pass {
public:
    Pass(const Frame& frame, const ScheduledLoop& node, const KBlockRanges& ranges)
        : frame_(frame), node_(node), ranges_(ranges), stream_(node.loop->axis), rows_(frame.schedule.mma_m) {
        for (const MaskForm& form : ranges.forms)
            for (const Expr& e : {form.plus, form.minus})
                if (e && place_of(e) == reads_.end()) reads_.push_back(e);
    }

    void write(Lines& out) {
        const std::int64_t tile = frame_.span(stream_, node_.scope).tile;
        const std::string extent = frame_.extent_text(stream_), chunks = blocks_text(frame_, node_);
        out("__shared__ KBlocksFound found_;");
        out("found_.begin();");
        position(out);
        for (const bool in_chunk : {false, true}) {
            if (in_chunk) {
                out.open(fmt::format("for (Index chunk_ = warp_of_thread(); chunk_ < {}; chunk_ += {})", chunks,
                                     ranges_threads / frame_.unit.warp_threads));
                const AxisNames& names = frame_.axis(stream_);
                if (frame_.span(stream_, node_.scope).begins)
                    out.declare("const Index", names.begin, fmt::format("chunk_ * {}", tile));
                if (frame_.span(stream_, node_.scope).ragged)
                    out.declare("const Index", names.count, frame_.count_text(stream_, tile));
            }
            for (std::size_t r = 0; r < reads_.size(); ++r)
                if (depends_on_axis(reads_[r], stream_) == in_chunk)
                    write_extrema(frame_, out, *as<Read>(reads_[r]), name_of(reads_[r]), node_, rows_);
        }
        std::string possible, whole;
        for (std::size_t f = 0; f < ranges_.forms.size(); ++f) {
            const MaskForm& form = ranges_.forms[f];
            const OwnRows all{frame_.span(rows_, 0).begins ? "0" : frame_.axis(rows_).begin, ranges_.rows};
            const auto text = [&](bool high) {
                std::string sum = fmt::format("int64_t({})", high ? highest(frame_, form.affine, node_.scope, &all)
                                                                  : lowest(frame_, form.affine, node_.scope, &all));
                if (form.plus) sum += fmt::format(" + {}.{}", name_of(form.plus), high ? "most" : "least");
                if (form.minus) sum += fmt::format(" - {}.{}", name_of(form.minus), high ? "least" : "most");
                return sum + " >= 0";
            };
            out(fmt::format("// {} >= 0", text_of(frame_, form)));
            possible += (f > 0 ? " && " : "") + text(true), whole += (f > 0 ? " && " : "") + text(false);
        }
        for (const Expr& e : reads_) whole += fmt::format(" && {}.is_exact()", name_of(e));
        out(fmt::format("found_.chunk(chunk_, {}, {});", possible, whole));
        out.close();
        out(fmt::format("found_.write(reinterpret_cast<KBlockRange*>(scratch) + blockIdx.x, {}, {});", tile, extent));
    }

private:
    [[nodiscard]] std::vector<Expr>::const_iterator place_of(const Expr& e) const {
        return find_if(reads_, [&](const Expr& other) { return equal(other, e); });
    }
    [[nodiscard]] std::string name_of(const Expr& e) const {
        return fmt::format("extrema_{}_", place_of(e) - reads_.begin());
    }

    /// Where the range's rows, and the tiles of the other grouped axes, begin.
    void position(Lines& out) {
        const std::string number = "Index(blockIdx.x)";
        const AxisNames& row = frame_.axis(rows_);
        out.declare("const Index", row.begin,
                    fmt::format("{} % {} * {}", number, row_tiles_text(frame_, ranges_), ranges_.rows));
        out.declare("const Index", row.count, frame_.count_text(rows_, ranges_.rows));
        std::string below = row_tiles_text(frame_, ranges_);
        for (auto axis = ranges_.others.rbegin(); axis != ranges_.others.rend(); ++axis) {
            const Span& span = frame_.span(*axis, 0);
            const std::string tiles = tiles_text(frame_, *axis);
            const AxisNames& names = frame_.axis(*axis);
            if (span.begins)
                out.declare("const Index", names.begin, fmt::format("{} / {} % {} * {}", number, below, tiles, span.tile));
            if (span.ragged) out.declare("const Index", names.count, frame_.count_text(*axis, span.tile));
            below = product_text(below, tiles);
        }
    }

    const Frame& frame_;
    const ScheduledLoop& node_;
    const KBlockRanges& ranges_;
    AxisId stream_, rows_;
    std::vector<Expr> reads_;  ///< of all forms, each once
};

}  // namespace

void write_k_block_range(const Frame& frame, Lines& out, const ScheduledLoop& node, const std::string& begin,
                         const std::string& end, bool is_own) {
    const auto ranges = frame.shape(node).ranges;
    if (!ranges) return;
    for (const MaskForm& form : ranges->forms)
        out(fmt::format("// {} >= 0, as the pass before says", text_of(frame, form)));
    const std::int64_t n = is_own ? 1 : frame.span(frame.schedule.mma_m, 0).tile / ranges->rows;
    const std::string range = range_name(frame, node, is_own);
    out(fmt::format("const KBlockRange {} = range_of_tiles<{}>(scratch, {}{});", range, n, first_range(frame, *ranges),
                    is_own ? " + " + warpgroup_text(frame) : ""));
    out(fmt::format("{0} = max_index({0}, {2}.first), {1} = min_index({1}, {2}.last);", begin, end, range));
}

void write_bounds_of_tile(const Frame& frame, Lines& out, const ScheduledLoop& node, const std::string& begin,
                          const std::string& end) {
    const AxisId stream = node.loop->axis;
    std::vector<Expr> reads;
    const auto name_of = [&](const Expr& e) {
        const auto at = find_if(reads, [&](const Expr& other) { return equal(other, e); });
        const std::string name = fmt::format("{}_{}_bound_{}_", frame.diagram().axis(stream).name, node.scope,
                                             at - reads.begin());
        if (at == reads.end()) {
            reads.push_back(e);
            write_extrema(frame, out, *as<Read>(e), name, node, AxisId());
        }
        return name;
    };
    for (const MaskForm& form : frame.shape(node).bounds) {
        const std::int64_t c = form.affine.coefficient(stream), tile = frame.span(stream, node.scope).tile;
        Affine rest = form.affine;
        rest.add(stream, -c);
        std::string most = fmt::format("int64_t({})", highest(frame, rest, node.scope, nullptr));
        if (form.plus) most += fmt::format(" + {}.most", name_of(form.plus));
        if (form.minus) most += fmt::format(" - {}.least", name_of(form.minus));
        out(fmt::format("// {} >= 0", text_of(frame, form)));
        if (c < 0) {
            out(fmt::format("{0} = ends_where({0}, {1}, {2});", end, most, -c));
        } else {
            const std::string past = padded_text(frame, stream, tile);
            out(fmt::format("{0} = begins_where({0}, {1}, {2}, {3}, {4});", begin, most, c, tile, past));
        }
    }
}

void write_unmasked_k_blocks(const Frame& frame, Lines& out, const ScheduledLoop& node, bool is_own) {
    const AxisId axis = node.loop->axis;
    out(fmt::format("[[maybe_unused]] const Index {0} = {2}.whole_first, {1} = {2}.whole_last;",
                    whole_first(frame, axis), whole_last(frame, axis), range_name(frame, node, is_own)));
}

std::string is_unmasked_k_block(const Frame& frame, ScopeId scope) {
    for (const ScheduledLoop& loop : frame.loops)
        if (loop.scope == scope)
            return fmt::format("{0} >= {1} && {0} < {2}", frame.axis(loop.loop->axis).begin,
                               whole_first(frame, loop.loop->axis), whole_last(frame, loop.loop->axis));
    throw InternalError("emit: chunks of no loop");
}

Lines ranges_pass_body(const Frame& frame) {
    Lines body;
    for (const ScheduledLoop& loop : frame.loops)
        if (const auto ranges = frame.shape(loop).ranges) Pass(frame, loop, *ranges).write(body);
    return body;
}

Lines ranges_pass(const Frame& frame, const std::string& entry, const std::string& parameters, Lines body) {
    Lines out;
    out("// Before the kernel: which chunks the data leave to each tile of rows");
    out.open(fmt::format("extern \"C\" __global__ void __launch_bounds__({}) {}({})", ranges_threads,
                         ranges_entry(entry), parameters));
    out(fmt::format("block_has({}, 1);", ranges_threads));
    declare_arguments(out);
    write_numbers(frame, out);
    write_memory_pointers(frame, out);
    out.append(std::move(body));
    out.close();
    out("");
    return out;
}

std::string ranges_entry(const std::string& entry) { return entry + "_ranges"; }

}  // namespace napkin::writers
