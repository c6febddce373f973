#include "tile/placement.hpp"

#include "diagram/array_sizes.hpp"
#include "support/ids.hpp"
#include "support/ranges.hpp"
#include "tile/uses.hpp"

namespace napkin {

ArrayUse use_of(const TileKernel& kernel) {
    ArrayUse use;
    bool is_map = true;
    const Variable *computed = nullptr, *result = nullptr;  // the last of each
    for_each_statement(kernel.body, [&](const TileStatement& s) {
        if (const auto* load = std::get_if<Load>(&s)) use.reads.push_back(kernel.variables[load->variable].array);
        if (const auto* store = std::get_if<Store>(&s)) {
            result = &kernel.variables[store->variable];
            use.writes.push_back(result->array);
        }
        if (const auto* loop = std::get_if<std::shared_ptr<const TileLoop>>(&s)) {
            is_map = false;
            for (const MaskForm& mask : (*loop)->masks)
                for (const Expr& side : {mask.plus, mask.minus})
                    if (side) append(use.reads, read_arrays(side));
        }
        if (const auto* compute = std::get_if<Compute>(&s)) {
            computed = &kernel.variables[compute->variable];
            is_map = is_map && !compute->reduce;
        }
    });
    sort_unique(use.reads);
    if (!is_map || computed != result || use.writes.size() != 1) return use;
    for (const ArrayId read : use.reads)
        if (all_of(kernel.variables, [&](const Variable& v) {
                return v.array != read ||
                       (v.dims == result->dims && v.gathers.empty() && v.memory_type == result->memory_type);
            }))
            use.over.push_back(read);
    return use;
}

std::int64_t Placement::total_bytes() const {
    return sum<std::int64_t>(bytes, [](std::int64_t of_slot) { return of_slot; });
}

Placement placed(const Diagram& diagram, const Extents& extents, const std::vector<ArrayUse>& steps) {
    Placement out{std::vector<int>(diagram.arrays.size(), -1), {}};
    std::vector<std::size_t> last_read(diagram.arrays.size(), 0);
    for (std::size_t i = 0; i < steps.size(); ++i)
        for (const ArrayId id : steps[i].reads) last_read[at(id)] = i;
    std::vector<int> free;
    for (std::size_t i = 0; i < steps.size(); ++i) {
        const auto ends_here = [&](ArrayId id) { return out.slot[at(id)] >= 0 && last_read[at(id)] == i; };
        int written_over = -1;
        for (const ArrayId id : steps[i].writes) {
            if (diagram.array(id).role != ArrayRole::temporary) continue;
            int& slot = out.slot[at(id)];
            if (const auto over = find_if(steps[i].over, ends_here); over != steps[i].over.end()) {
                slot = written_over = out.slot[at(*over)];
                continue;
            }
            const std::int64_t bytes = array_bytes(diagram, id, extents);
            // The smallest free piece that is large enough, but not above twice the size: a small array must not occupy
            // a big piece.
            auto best = free.end();
            for (auto piece = free.begin(); piece != free.end(); ++piece) {
                const std::int64_t room = out.bytes[at(*piece)];
                if (room >= bytes && room <= 2 * bytes && (best == free.end() || room < out.bytes[at(*best)]))
                    best = piece;
            }
            if (best != free.end()) {
                slot = *best;
                free.erase(best);
            } else {
                slot = static_cast<int>(out.bytes.size());
                out.bytes.push_back(bytes);
            }
        }
        for (const ArrayId id : steps[i].reads)
            if (ends_here(id) && out.slot[at(id)] != written_over) free.push_back(out.slot[at(id)]);
    }
    return out;
}

Placement placed(const TileProgram& program, const Extents& extents) {
    return placed(program.diagram, extents, mapped<ArrayUse>(program.kernels, use_of));
}

}  // namespace napkin
