#include "tile/uses.hpp"

#include <set>

namespace napkin {
namespace {

void add_uses(const TileStatement& statement, std::set<VariableId>& uses) {
    if (const auto* load = std::get_if<Load>(&statement)) uses.insert(load->variable);
    if (const auto* store = std::get_if<Store>(&statement)) uses.insert(store->variable);
    if (const auto* init = std::get_if<Init>(&statement)) uses.insert(init->variable);
    if (const auto* compute = std::get_if<Compute>(&statement)) {
        uses.insert(compute->variable);
        for (const Read* r : reads_in_order(compute->body, compute->carry)) uses.insert(r->array);
    }
    if (const auto* loop = std::get_if<std::shared_ptr<const TileLoop>>(&statement)) {
        std::set<VariableId> inside;
        for (const TileStatement& s : (*loop)->body) add_uses(s, inside);
        for (const TileStatement& s : (*loop)->body)
            if (const auto* free = std::get_if<Free>(&s)) inside.erase(free->variable);
        uses.insert(inside.begin(), inside.end());
    }
}

}  // namespace

std::vector<VariableId> used_variables(const TileStatement& statement) {
    std::set<VariableId> uses;
    add_uses(statement, uses);
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

}  // namespace napkin
