// Stores by staging tiles: a warp's rows of a result go to shared memory, 128 bytes of columns at a time, and bulk
// copies bring them to memory.
#include <fmt/format.h>

#include "emit/emit_fragment.hpp"
#include "emit/emit_write.hpp"
#include "support/ids.hpp"
#include "support/ranges.hpp"

namespace napkin::writers {

std::vector<VariableId> staged_out(const ScheduledKernel& kernel) {
    std::vector<VariableId> out;
    for (std::size_t v = 0; v < kernel.layouts.size(); ++v)
        if (kernel.is_staged_out(VariableId::of(v))) out.push_back(VariableId::of(v));
    return out;
}

namespace {

/// The staging tile of tile_, in which a warp's rows lie.
std::string staging_tile(const Frame& frame, VariableId variable) {
    const int held = frame.place(variable).staging_tiles;
    return held == 1 ? "staging" : fmt::format("staging + {} * (tile_ % {})", frame.shapes.staging_bytes, held);
}

}  // namespace

void write_staging_header(const Frame& frame, Lines& out, const Step& store) {
    const VariableId variable = variable_of(store);
    const std::int64_t count = frame.shape(variable).staging->count;
    out(fmt::format("const unsigned staging = shared_address(shared_memory) + {} + {} * {};",
                    frame.layout(variable).offset * frame.value_bytes(),
                    frame.place(variable).staging_tiles * frame.shapes.staging_bytes, warp_name));
    out.open(count > 1 ? fmt::format("EACH(tile_, {})", count) : "");
}

void write_to_staging(const Frame& frame, Lines& out, const Step& store) {
    const VariableId variable = variable_of(store);
    const StagingTiles tiles = *frame.shape(variable).staging;
    const std::string type = memory_type(frame.variable(variable).memory_type), here = staging_tile(frame, variable);
    const std::int64_t groups = columns_of(frame, frame.shape(variable).columns, store.scope) / frame.fragments().columns,
                       groups_a_tile = tiles.width / frame.fragments().columns;
    if (tiles.count > 1)
        out(fmt::format("write_staging<{}>({}, {} + {} * tile_, {} - {} * tile_);", type, here, frame.name(variable),
                        frame.fragments().values() * groups_a_tile, groups, groups_a_tile));
    else
        out(fmt::format("write_staging<{}>({}, {}, {});", type, here, frame.name(variable), groups));
}

void write_from_staging(const Frame& frame, Lines& out, const Step& store) {
    const VariableId variable = variable_of(store);
    const Variable& v = frame.variable(variable);
    const StagingTiles tiles = *frame.shape(variable).staging;
    const std::vector<VariableId> boxed = staged_out(frame);
    const auto map = operands_of(frame).size() + static_cast<std::size_t>(find(boxed, variable) - boxed.begin());
    std::string coordinates;
    for (std::size_t d = v.dims.size(); d-- > 0;) {
        const AxisId axis = v.dims[d].single_axis();
        std::string at = frame.span(axis, store.scope).begins ? frame.axis(axis).begin : "0";
        if (static_cast<int>(d) == tiles.columns && tiles.count > 1) at += fmt::format(" + {} * tile_", tiles.width);
        if (static_cast<int>(d) == tiles.rows) at += fmt::format(" + {} * {}", frame.fragments().rows, warp_name);
        coordinates += fmt::format(", int({})", at);
    }
    out(fmt::format("store_staging({}, &maps.of[{}]{});", staging_tile(frame, variable), map, coordinates));
}

}  // namespace napkin::writers
