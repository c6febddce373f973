// Subloops: of accumulators, a chunk of a stream is accumulated in parts; of contractions, columns of what they add to
// are computed in parts.

#include "steps/steps.hpp"
#include "support/ids.hpp"
#include "support/ranges.hpp"
#include "tile/uses.hpp"

namespace napkin {
namespace {

/// The loop's chunk in parts: loads, and contractions of what is loaded alone, stay in the chunk; what accumulates runs
/// once for every part.
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
            for (const Read* r : reads_in_order(compute->body, nullptr))
                stays = stays && of_chunk.contains(r->variable());
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
    append(out.body, ends);
    return out;
}

bool has_own_dimension(const Variable& variable, AxisId axis) {
    return any_of(variable.dims, [&](const Index& dim) { return dim.single_axis() == axis; });
}

/// The list with a loop over parts of columns around each contraction that adds to an accumulator: it is linear in all
/// of its axes.
std::vector<TileStatement> columns_in_parts(const TileKernel& kernel, const std::vector<TileStatement>& list,
                                            const std::vector<StatementWork>& work, const std::set<AxisId>& axes,
                                            std::size_t& next) {
    std::vector<TileStatement> out;
    for (const TileStatement& s : list) {
        if (const auto* loop = std::get_if<std::shared_ptr<const TileLoop>>(&s)) {
            TileLoop other = **loop;
            std::set<AxisId> inner = axes;
            inner.erase(other.axis);
            other.body = columns_in_parts(kernel, other.body, work, inner, next);
            out.emplace_back(std::make_shared<const TileLoop>(std::move(other)));
            continue;
        }
        TileStatement part = s;
        if (const auto* compute = std::get_if<Compute>(&s)) {
            const StatementWork& of = work[next++];
            if (of.contraction && of.carries)
                for (auto n = of.contraction->n.rbegin(); n != of.contraction->n.rend(); ++n)
                    if (axes.contains(*n) && has_own_dimension(kernel.variables[compute->variable], *n))
                        part = std::make_shared<const TileLoop>(TileLoop{*n, {}, {std::move(part)}, true});
        }
        out.push_back(std::move(part));
    }
    return out;
}

}  // namespace

TileKernel with_subloops_along(const Diagram& diagram, TileKernel kernel, const std::set<AxisId>& axes) {
    std::size_t statement = 0;
    kernel.body = columns_in_parts(kernel, kernel.body, statement_work(diagram, kernel), axes, statement);
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
