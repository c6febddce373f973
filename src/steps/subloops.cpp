// Subloops of accumulators: a chunk of a stream is accumulated in parts.
#include <algorithm>

#include "steps/steps.hpp"
#include "support/ids.hpp"
#include "tile/uses.hpp"

namespace napkin {
namespace {

/// The loop's chunk in parts: loads, and contractions of what is loaded alone, stay in the chunk; what accumulates runs once for every part.
TileLoop in_parts(const TileLoop& loop, const std::set<VariableId>& loaded, const std::vector<bool>& contraction,
                  std::size_t& next) {
    std::vector<TileStatement> chunk, part, ends;
    std::set<VariableId> of_chunk = loaded;
    for (const TileStatement& s : loop.body) {
        const auto* load = std::get_if<Load>(&s);
        bool stays = load != nullptr;
        if (load) of_chunk.insert(load->variable);
        if (const auto* compute = std::get_if<Compute>(&s)) {
            stays = contraction[next++] && !compute->carry && !contains(compute->reduce_axes, loop.axis);
            for (const Read* r : reads_in_order(compute->body, nullptr)) stays = stays && of_chunk.contains(r->array);
            if (stays) of_chunk.insert(compute->variable);
        } else if (const auto* store = std::get_if<Store>(&s)) {
            stays = of_chunk.contains(store->variable);
        } else if (const auto* free = std::get_if<Free>(&s)) {
            (of_chunk.contains(free->variable) && !loaded.contains(free->variable) ? ends : part).push_back(s);
            continue;
        } else if (const auto* inner = std::get_if<std::shared_ptr<const TileLoop>>(&s)) {
            for_each_statement((*inner)->body,
                               [&](const TileStatement& t) { next += std::holds_alternative<Compute>(t); });
        }
        (stays ? chunk : part).push_back(s);
    }
    TileLoop out = loop;
    out.body = std::move(chunk);
    out.body.emplace_back(std::make_shared<const TileLoop>(TileLoop{loop.axis, {}, std::move(part), true}));
    out.body.insert(out.body.end(), ends.begin(), ends.end());
    return out;
}

}  // namespace

TileKernel with_accumulators_in_parts(const Diagram& diagram, TileKernel kernel, const std::set<AxisId>& axes) {
    std::vector<bool> contraction;
    for (const StatementWork& work : statement_work(diagram, kernel))
        contraction.push_back(work.contraction.has_value());
    std::size_t next = 0;
    std::set<VariableId> loaded;
    for (TileStatement& s : kernel.body) {
        if (const auto* load = std::get_if<Load>(&s)) loaded.insert(load->variable);
        if (std::holds_alternative<Compute>(s)) ++next;
        const auto* loop = std::get_if<std::shared_ptr<const TileLoop>>(&s);
        if (!loop) continue;
        if (axes.contains((*loop)->axis)) {
            s = std::make_shared<const TileLoop>(in_parts(**loop, loaded, contraction, next));
        } else {
            for_each_statement((*loop)->body, [&](const TileStatement& t) { next += std::holds_alternative<Compute>(t); });
        }
    }
    return kernel;
}

}  // namespace napkin
