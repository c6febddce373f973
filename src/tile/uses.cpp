#include "tile/uses.hpp"

#include <set>

namespace napkin {
namespace {

/// Adds the variable, and those whose elements place its values in memory: they are used wherever it is.
void add_with_gathers(const TileKernel& kernel, VariableId v, std::set<VariableId>& uses) {
    if (v < 0 || static_cast<std::size_t>(v) >= kernel.variables.size()) return;
    uses.insert(v);
    for (const Index& index : kernel.variables[v].gathers)
        if (const Expr* e = index.expression())
            for (const VariableId inner : read_variables(*e)) uses.insert(inner);
}

void add_uses(const TileKernel& kernel, const TileStatement& statement, std::set<VariableId>& uses) {
    if (const auto* load = std::get_if<Load>(&statement)) add_with_gathers(kernel, load->variable, uses);
    if (const auto* store = std::get_if<Store>(&statement)) uses.insert(store->variable);
    if (const auto* init = std::get_if<Init>(&statement)) uses.insert(init->variable);
    if (const auto* compute = std::get_if<Compute>(&statement)) {
        uses.insert(compute->variable);
        for (const Read* r : reads_in_order(compute->body, compute->carry))
            add_with_gathers(kernel, r->variable(), uses);
    }
    if (const auto* loop = std::get_if<std::shared_ptr<const TileLoop>>(&statement)) {
        std::set<VariableId> inside;
        for (const TileStatement& s : (*loop)->body) add_uses(kernel, s, inside);
        for (const TileStatement& s : (*loop)->body)
            if (const auto* free = std::get_if<Free>(&s)) inside.erase(free->variable);
        uses.insert(inside.begin(), inside.end());
    }
}

}  // namespace

Box box_of(const Diagram& diagram, const TileKernel& kernel, const Read& r) {
    return box_of(
        r,
        [&](ArrayId read) -> const std::vector<AxisId>& {
            return diagram.array(kernel.variables[as_variable(read)].array).axes;
        },
        are_walks(kernel.variables[r.variable()].gathers));
}

std::vector<Index> array_indices(const TileKernel& kernel, const Variable& variable) {
    if (variable.gathers.empty()) return variable.dims;
    const Expr in_arrays = transform(read(ArrayId(), variable.gathers), [&](const Expr& node) {
        const auto* r = as<Read>(node);
        return r && r->array >= 0 ? read(kernel.variables[r->variable()].array, r->indices) : node;
    });
    return as<Read>(in_arrays)->indices;
}

std::vector<VariableId> used_variables(const TileKernel& kernel, const TileStatement& statement) {
    std::set<VariableId> uses;
    add_uses(kernel, statement, uses);
    return {uses.begin(), uses.end()};
}

std::vector<const Read*> reads_in_order(const Expr& body, const Expr& carry) {
    std::vector<const Read*> reads;
    const auto collect = [&](const Expr& e) {
        if (const Read* r = as<Read>(e)) reads.push_back(r);
    };
    visit(body, collect);
    if (carry) visit(carry, collect);
    return reads;
}

void for_each_statement(const std::vector<TileStatement>& statements, const std::function<void(const TileStatement&)>& f) {
    for (const TileStatement& s : statements) {
        f(s);
        if (const auto* loop = std::get_if<std::shared_ptr<const TileLoop>>(&s)) for_each_statement((*loop)->body, f);
    }
}

}  // namespace napkin
