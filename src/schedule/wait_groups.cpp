// Waits for products that run while their warps go on, and releases of operands. A product is waited for before its
// result or the registers of its factors are accessed. One that only adds up tiles of shared memory is outstanding
// while the next iteration begins. An operand's stage is free when its last reader is done. A tile that is loaded
// outside of a loop may be free even earlier. If the loop's epilogue does not read it, it is released before the
// epilogue, so that the next output tile's copy can come meanwhile.
#include <map>
#include <utility>

#include "schedule/conditional_rescale.hpp"
#include "schedule/fragments.hpp"
#include "schedule/scheduled.hpp"
#include "schedule/warpgroups.hpp"
#include "support/ids.hpp"
#include "support/ranges.hpp"

namespace napkin {
namespace {

/// An outstanding product: of the iteration that is `ahead` of the loop's, and what is released when it is done.
struct UnderWay {
    StepId step;
    int ahead = 0;
    std::vector<Release> frees;
    friend bool operator==(const UnderWay&, const UnderWay&) = default;
};
/// In the order in which they began, which is the order in which they end.
using Products = std::vector<UnderWay>;

class ProductWaits {
public:
    explicit ProductWaits(ScheduledKernel& kernel) : kernel_(kernel) {}

    void run() {
        const auto clean = [](std::vector<Node>& nodes) {
            std::erase_if(nodes, [](const Node& node) { return std::holds_alternative<WaitGroup>(node); });
        };
        clean(kernel_.body);
        for (ScheduledLoop& loop : kernel_.loops)
            clean(loop.body), clean(loop.prologue), clean(loop.epilogue), clean(loop.skipped);
        Products products = list(kernel_.body, {});
        settle(after(kernel_.body, kernel_.body.size()), products, 0);
        for (auto& [nodes, places] : waits_) insert(*nodes, places);
    }

private:
    /// The waits by their position in a list of nodes: before the node of this number, or at the end for one past the
    /// last. A WaitGroup first waits, then releases.
    using Places = std::map<std::size_t, WaitGroup>;

    WaitGroup& after(std::vector<Node>& nodes, std::size_t count) { return waits_[&nodes][count]; }

    static void insert(std::vector<Node>& nodes, const Places& places) {
        for (auto place = places.rbegin(); place != places.rend(); ++place)
            if (place->second.pending >= 0 || !place->second.frees.empty())
                nodes.insert(nodes.begin() + static_cast<std::ptrdiff_t>(place->first), place->second);
    }

    /// Waits for all products but the last `keep`.
    void settle(WaitGroup& here, Products& products, std::size_t keep) {
        if (products.size() <= keep) return;
        const std::size_t done = products.size() - keep;
        here.pending = here.pending < 0 ? static_cast<int>(keep) : std::min(here.pending, static_cast<int>(keep));
        for (std::size_t p = 0; p < done; ++p) {
            const VariableId result = target(products[p].step);
            if (!contains(here.results, result)) here.results.push_back(result);
            for (const Release& freed : products[p].frees)
                if (!contains(here.frees, freed)) here.frees.push_back(freed);
        }
        products.erase(products.begin(), products.begin() + static_cast<std::ptrdiff_t>(done));
        for (const UnderWay& p : products) std::erase(here.results, target(p.step));
    }

    [[nodiscard]] VariableId target(StepId step) const { return variable_of(kernel_.step(step)); }
    /// The step reads or writes registers that the outstanding product reads or writes, or writes over its operand.
    [[nodiscard]] bool touches(StepId step, const UnderWay& product) const {
        const Step &s = kernel_.step(step), &p = kernel_.step(product.step);
        const VariableId result = target(product.step);
        if (step == product.step)
            return mma_product(kernel_, p)->a_in_registers || !adds_in_place(std::get<Compute>(*s.statement));
        const bool writes_over = kernel_.is_written(variable_of(s)) && reads(p, variable_of(s));
        return variable_of(s) == result || reads(s, result) || writes_over;
    }

    Products list(std::vector<Node>& nodes, Products products) {
        for (std::size_t n = 0; n < nodes.size(); ++n) {
            if (const StepId* s = std::get_if<StepId>(&nodes[n])) {
                for (std::size_t p = products.size(); p-- > 0;)
                    if (touches(*s, products[p])) {
                        settle(after(nodes, n), products, products.size() - 1 - p);
                        break;
                    }
                if (runs_beside(kernel_, kernel_.step(*s))) products.push_back({*s, kernel_.step(*s).ahead, {}});
            }
            if (const auto* ref = std::get_if<LoopId>(&nodes[n])) {
                settle(after(nodes, n), products, 0);
                products = loop(kernel_.loops[*ref], nodes[n]);
            }
            if (kernel_.producer_role()) free(nodes, n, products);
        }
        return products;
    }

    [[nodiscard]] bool is_read_in(const Node& node, VariableId operand) const {
        const auto of_step = [&](StepId s) {
            return reads(kernel_.step(s), operand) || reads_again(kernel_, s, operand);
        };
        const auto in = [&](const std::vector<Node>& nodes) {
            return any_of(nodes, [&](const Node& n) { return is_read_in(n, operand); });
        };
        if (const StepId* s = std::get_if<StepId>(&node)) return of_step(*s);
        if (const auto* run = std::get_if<FusedStatements>(&node)) return any_of(run->steps, of_step);
        const auto* ref = std::get_if<LoopId>(&node);
        return ref && in(kernel_.loop(*ref).body);
    }
    [[nodiscard]] int ahead_of(const Node& node) const {
        const StepId* s = std::get_if<StepId>(&node);
        return s ? kernel_.step(*s).ahead : 0;
    }
    /// The statements of the scope in which the operand is loaded.
    [[nodiscard]] const std::vector<Node>& body_of(VariableId operand) const {
        const ScopeId scope = kernel_.layout(operand).scope;
        const auto loop = find_if(kernel_.loops, [&](const ScheduledLoop& l) { return l.scope == scope; });
        return scope == 0 || loop == kernel_.loops.end() ? kernel_.body : loop->body;
    }
    [[nodiscard]] bool same(const Node& a, const Node& b) const {
        const StepId *s = std::get_if<StepId>(&a), *t = std::get_if<StepId>(&b);
        const auto *l = std::get_if<LoopId>(&a), *m = std::get_if<LoopId>(&b);
        return (s && t && *s == *t) || (l && m && *l == *m);
    }
    /// The node is the last one to read a tile: the last in order of those that run the least ahead. Where none reads,
    /// that is the load.
    [[nodiscard]] bool reads_last(const Node& node, VariableId operand) const {
        const Node* last = nullptr;
        for (const Node& n : body_of(operand))
            if (is_read_in(n, operand) && (!last || ahead_of(n) <= ahead_of(*last))) last = &n;
        if (last) return same(*last, node);
        const StepId* s = std::get_if<StepId>(&node);
        return s && kernel_.operand_loaded(kernel_.step(*s)) == operand;
    }
    /// Releases the operands that the node reads last: when the products that read them are done, or at once.
    void free(std::vector<Node>& nodes, std::size_t n, Products& products) {
        for (const Step& step : kernel_.steps) {
            const VariableId operand = kernel_.operand_loaded(step);
            if (!step.acquires || !reads_last(nodes[n], operand) || is_free_before_epilogue(nodes[n], operand))
                continue;
            free({operand, ahead_of(nodes[n])}, products, after(nodes, n + 1));
        }
    }
    /// Releases it when the last of the products that read it is done, or at once.
    void free(const Release& freed, Products& products, WaitGroup& at_once) {
        const auto reader = std::find_if(products.rbegin(), products.rend(),
                                         [&](const UnderWay& p) { return reads(kernel_.step(p.step), freed.operand); });
        std::vector<Release>& frees = reader == products.rend() ? at_once.frees : reader->frees;
        if (!contains(frees, freed)) frees.push_back(freed);
    }
    /// The tile was loaded outside of the loop, and the loop's epilogue does not read it.
    [[nodiscard]] bool is_free_before_epilogue(const Node& node, VariableId operand) const {
        const auto* ref = std::get_if<LoopId>(&node);
        if (!ref) return false;
        const ScheduledLoop& l = kernel_.loop(*ref);
        return !l.epilogue.empty() && is_repeated(kernel_, l) && kernel_.layout(operand).scope != l.scope &&
               none_of(l.epilogue, [&](const Node& n) { return is_read_in(n, operand); });
    }
    void free_before_epilogue(ScheduledLoop& l, const Node& node, Products& products) {
        if (!kernel_.producer_role()) return;
        for (const Step& step : kernel_.steps) {
            const VariableId operand = kernel_.operand_loaded(step);
            if (!step.acquires || !reads_last(node, operand) || !is_free_before_epilogue(node, operand)) continue;
            free({operand, 0}, products, after(l.epilogue, 0));
            // Warps with K blocks of their own may have none, whatever the CTA runs.
            if (iterations_of(kernel_, l).least == 0 || have_own_k_blocks(kernel_, l))
                after(l.skipped, 0).frees.push_back({operand, 0});
        }
    }

    /// As the next iteration sees them.
    static Products an_iteration_later(Products products) {
        for (UnderWay& p : products) {
            --p.ahead;
            for (Release& freed : p.frees) --freed.ahead;
        }
        return products;
    }
    /// The product takes no registers but those of its result, to which the next iteration's product adds without
    /// reading it. There are stages for the tile that it holds, for the next iteration's, and for one that is copied
    /// meanwhile.
    [[nodiscard]] bool may_outlast_an_iteration(const UnderWay& product) const {
        const std::vector<const Read*>& read = kernel_.step(product.step).reads;
        return kernel_.producer_role() && !touches(product.step, product) && all_of(read, [&](const Read* r) {
                   return !kernel_.is_operand(r->variable()) || kernel_.place(r->variable()).stages >= stages_to_outlast ||
                          kernel_.layout(r->variable()).scope == 0;
               });
    }
    /// At the end of an iteration no product of the previous iteration is outstanding. None at all is where consumer
    /// warps themselves copy over its operands in the next iteration. Nor is one whose registers others could use
    /// meanwhile, or that the next iteration waits for anyway.
    void end_iteration(std::vector<Node>& nodes, Products& products) {
        std::size_t keep = products.size();
        for (std::size_t p = 0; p < products.size(); ++p)
            if (products[p].ahead < 0 || !may_outlast_an_iteration(products[p])) keep = products.size() - 1 - p;
        settle(after(nodes, nodes.size()), products, keep);
    }
    /// The products that are outstanding as an iteration begins are those of the previous one. This converges within
    /// few iterations, or all products are waited for.
    Products repeated(ScheduledLoop& l, Products before) {
        for (int turn = 0; turn < 4; ++turn) {
            Products products = list(l.body, before);
            end_iteration(l.body, products);
            if (turn == 3 || !is_repeated(kernel_, l)) settle(after(l.body, l.body.size()), products, 0);
            Products next = an_iteration_later(std::move(products));
            if (turn > 0 && next == before) break;
            before = std::move(next);
        }
        return before;
    }
    Products loop(ScheduledLoop& l, const Node& node) {
        const Products first = l.prologue.empty() ? Products{} : an_iteration_later(list(l.prologue, {}));
        Products before = repeated(l, first), products;
        if (l.epilogue.empty()) return before;
        const bool is_waited_for_in_body = any_of(first, [&](const UnderWay& p) {
            return none_of(before, [&](const UnderWay& q) { return q.step == p.step; });
        });
        if (is_waited_for_in_body) {
            // The epilogue would find it outstanding where there is only one iteration.
            waits_.erase(&l.body), waits_.erase(&l.prologue);
            products = list(l.prologue, {});
            settle(after(l.prologue, l.prologue.size()), products, 0);
            before = repeated(l, {});
        }
        // After the last iteration's body, or after the prologue of the only iteration.
        free_before_epilogue(l, node, before);
        products = list(l.epilogue, before);
        settle(after(l.epilogue, l.epilogue.size()), products, 0);
        return products;
    }

    ScheduledKernel& kernel_;
    std::map<std::vector<Node>*, Places> waits_;
};

}  // namespace

bool runs_beside(const ScheduledKernel& kernel, const Step& step) {
    if (step.atom < 0 || kernel.atom(step).kind != AtomKind::mma) return false;
    const auto product = mma_product(kernel, step);
    return product && !product->by_warp();
}

void wait_for_products(ScheduledKernel& kernel) {
    const bool has_products = any_of(kernel.schedule.atoms, [](const Atom& atom) { return atom.kind == AtomKind::mma; });
    if (has_products || kernel.producer_role()) ProductWaits(kernel).run();
}

}  // namespace napkin
