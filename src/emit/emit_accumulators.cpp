// Sums over a stream in accumulators (schedule/accumulators.hpp): what they are, and how they come to memory.
#include <fmt/format.h>

#include "emit/emit_register_block.hpp"
#include "emit/emit_write.hpp"

namespace napkin::writers {
namespace {

const Atom& atom_of_sum(const Frame& frame, VariableId id) { return frame.atom(frame.step(*frame.shape(id).added_by)); }

void add_to(std::string& sum, const std::string& part) {
    if (!part.empty()) sum += (sum.empty() ? "" : " + ") + part;
}

/// Stores what the statement has added up, each worker its own register block.
class SumsWriter : RegisterBlock {
public:
    SumsWriter(const Frame& frame, Lines& out, const Step& step) : RegisterBlock(frame, out, step) {
        add_target_loops();
    }

    void run() {
        Names names(frame_.names);
        BodyWriter body(frame_, step_, choices(), loops_, target_level_, names);
        body_ = &body;
        const Variable& v = frame_.variable(compute_.variable);
        std::string inside, place;
        for (std::size_t d = 0; d < v.dims.size(); ++d) {
            const AxisId axis = v.dims[d].single_axis();
            const Span& span = frame_.span(axis, scope_);
            const bool is_vector = axis == atom_.vector_axis, is_row = axis == atom_.row_axis && atom_.rows > 1;
            std::string local = body.loop_name(axis), index = span.begins ? frame_.axis(axis).begin : "";
            if (is_row) add_to(local, "i");
            if (is_vector && atom_.vectors > 1) add_to(local, fmt::format("{} * j", frame_.lanes));
            if (is_vector) add_to(local, "lane_of_thread()");
            if ((is_row || is_vector) && (span.ragged || span.tile % frame_.block_size(atom_, axis) != 0))
                inside += fmt::format("{}{} < {}", inside.empty() ? "" : " && ", local, frame_.count(axis, scope_));
            add_to(index, local);
            if (!index.empty()) add_to(place, fmt::format("({}) * {}[{}]", index, frame_.strides.at(v.array), d));
        }
        share_points();
        out_(fmt::format("{}{}{}{}[{}] = convert<{}>({}{});", rows(), vectors(),
                         inside.empty() ? "" : fmt::format("if ({}) ", inside), frame_.memory.at(v.array),
                         place.empty() ? "0" : place, memory_type(v.memory_type), frame_.name(compute_.variable), index()));
        out_.close();
    }
};

}  // namespace

std::string accumulator_type(const Frame& frame, VariableId id) {
    return atom_of_sum(frame, id).vector_axis < 0 ? "real" : "vec";
}

std::string accumulator_extents(const Frame& frame, VariableId id) {
    const Atom& atom = atom_of_sum(frame, id);
    return (atom.rows > 1 ? fmt::format("[{}]", atom.rows) : "") +
           (atom.vectors > 1 ? fmt::format("[{}]", atom.vectors) : "");
}

void write_first_sums(const Frame& frame, Lines& out, const Init& init) {
    const Atom& atom = atom_of_sum(frame, init.variable);
    std::string loops, place = frame.name(init.variable);
    if (atom.rows > 1) loops += fmt::format("EACH(i, {}) ", atom.rows), place += "[i]";
    if (atom.vectors > 1) loops += fmt::format("EACH(j, {}) ", atom.vectors), place += "[j]";
    out(fmt::format("{}{} = {};", loops, place, literal(init.value, frame.is_double)));
}

void write_sums_to_memory(const Frame& frame, Lines& out, const Step& step) { SumsWriter(frame, out, step).run(); }

}  // namespace napkin::writers
