// Statements by runs (schedule/thread_runs.hpp): where a thread's values lie in memory.
#include <fmt/format.h>

#include <set>

#include "emit/emit_body.hpp"
#include "emit/emit_index.hpp"
#include "emit/emit_write.hpp"
#include "support/ranges.hpp"

namespace napkin::writers {
namespace {

/// Whether some values of the axes lead out of the array along the dimension.
bool leaves_array(const Frame& frame, const Variable& v, std::size_t dimension) {
    if (v.dims[dimension].affine()) return is_cut(frame, v, dimension);
    const Interval range = range_of(v.dims[dimension], std::vector<std::int64_t>(frame.extents.size(), 0), frame.extents);
    return range.low < 0 || range.high >= frame.extent(v.limits[dimension]);
}

bool is_among(const std::vector<const Read*>& reads, const Read& r) {
    return any_of(reads, [&](const Read* other) { return other->array == r.array && other->indices == r.indices; });
}

}  // namespace

/// Under which condition each of the statement's runs that begins at a multiple of its length is one access. "": it has
/// none of these.
std::string BodyWriter::condition_of_runs() const {
    if (!frame_.in_blocks()) return "";
    std::string out;
    std::set<ArrayId> seen;
    const auto add = [&](VariableId id) {
        const Variable& v = frame_.variable(id);
        if (!frame_.layout(id).in_runs || !seen.insert(v.array).second) return;
        out += fmt::format("{}runs_lie_at<{}>({}, {}, {})", out.empty() ? "" : " && ", atom_.rows,
                           frame_.memory.at(v.array), frame_.strides.at(v.array), v.dims.size());
    };
    for (const Read* r : frame_.shape(step_).aligned) add(r->variable());
    add(std::get<Compute>(*step_.statement).variable);
    return out;
}

/// How many values the thread's run has inside of the tile: all of them, or fewer at the tile's end.
std::string BodyWriter::left_of_run() const {
    const Span& span = frame_.span(atom_.row_axis, scope_);
    if (!span.ragged && span.tile % atom_.rows == 0) return std::to_string(atom_.rows);
    const std::string name = loop_name(atom_.row_axis), count = frame_.count(atom_.row_axis, scope_);
    return name.empty() ? count : fmt::format("{} - {}", count, name);
}

/// The array's stride, or the step of runs that are one access each.
std::string BodyWriter::stride_of_run(ArrayId array, std::size_t dimension, bool are_known) const {
    const std::string stride = fmt::format("{}[{}]", frame_.strides.at(array), dimension);
    return are_known ? fmt::format("runs_.step({})", stride) : stride;
}

/// The address of the indices: of a run's first value, or with `each` of its value i. `are_known`: its step may be
/// known to be 1. `inside`: a condition under which indices lie inside of the array; "" where they always do.
std::string BodyWriter::place_of_run(VariableId variable, const std::vector<Index>& indices, bool each, bool are_known,
                                     std::string& inside) const {
    const Variable& v = frame_.variable(variable);
    const std::string left = left_of_run();
    const auto coordinate_text = [&](AxisId axis) {
        const Interval range = coordinates_of(frame_, axis, scope_);
        if (axis != atom_.row_axis) return IntegerText{coordinate(axis, ""), range};
        const Span& span = frame_.span(axis, scope_);
        std::string sum = span.begins ? frame_.axis(axis).begin : "";
        const auto add = [&](const std::string& part) {
            if (!part.empty()) sum += (sum.empty() ? "" : " + ") + part;
        };
        add(loop_name(axis));
        // A value past the tile's end is not stored. It stands for the last one.
        if (each) add(left == std::to_string(atom_.rows) ? "i" : fmt::format("min_index(i, {} - 1)", left));
        return IntegerText{sum.empty() ? "0" : sum.find(' ') == std::string::npos ? sum : "(" + sum + ")", range};
    };
    std::string place = frame_.memory.at(v.array);
    for (std::size_t d = 0; d < indices.size(); ++d) {
        const IntegerText index = index_text(indices[d], coordinate_text);
        if (index.text != "0")
            place += fmt::format(" + {} * {}", index.text, stride_of_run(v.array, d, are_known && d + 1 == indices.size()));
        if (leaves_array(frame_, v, d))
            inside += fmt::format("{}{} >= 0 && {} < {}", inside.empty() ? "" : " && ", index.text, index.text,
                                  frame_.extent_text(v.limits[d]));
    }
    return place;
}

/// A value that threads read in memory. What lies outside of the array is zero.
ValueId BodyWriter::read_in_run(const Read& r) {
    const Variable& variable = frame_.variable(r.variable());
    Value v;
    for (const Index& index : r.indices)
        for (const AxisId axis : index.axes()) {
            if (frame_.span(axis, scope_).tile == 1) continue;
            v.level = std::max(v.level, level_of(axis));
            v.row |= axis == atom_.row_axis;
        }
    const bool is_beside = is_among(frame_.shape(step_).beside, r);
    std::string inside;
    // Each value of a run that leaves the array along itself may lie outside.
    v.is_run = is_beside && !leaves_array(frame_, variable, r.indices.size() - 1);
    const bool are_known = v.is_run && is_among(frame_.shape(step_).aligned, r);
    const std::string place = place_of_run(r.variable(), r.indices, !v.is_run, are_known, inside);
    if (v.is_run) {
        const std::string left = left_of_run();
        v.pattern = fmt::format("{}load({{}}, {}, {}, {});", are_known ? "runs_." : "Runs<false>::", place,
                                stride_of_run(variable.array, r.indices.size() - 1, are_known),
                                inside.empty() ? left : fmt::format("{} ? {} : 0", inside, left));
    } else {
        const std::string element = fmt::format("real(*({}))", place);
        v.pattern = inside.empty() ? element : fmt::format("({} ? {} : real(0))", inside, element);
    }
    v.hint = frame_.name(r.variable());
    return intern(std::move(v));
}

std::string BodyWriter::store_of_run(const std::string& values) const {
    const Variable& v = frame_.variable(std::get<Compute>(*step_.statement).variable);
    std::string inside;
    const std::string place = place_of_run(std::get<Compute>(*step_.statement).variable, v.dims, false, true, inside);
    return fmt::format("runs_.store({}, {}, {}, {});", place, stride_of_run(v.array, v.dims.size() - 1, true),
                       left_of_run(), values);
}

}  // namespace napkin::writers
