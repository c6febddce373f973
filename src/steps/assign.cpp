// Operations on units, with the transfers that they imply.
#include <fmt/format.h>

#include <algorithm>

#include "cost/divisors.hpp"
#include "steps/steps.hpp"
#include "support/ids.hpp"
#include "support/text.hpp"
#include "tile/uses.hpp"

namespace napkin {
namespace {

using Statements = std::vector<TileStatement>;

class Assigner {
public:
    Assigner(const Diagram& diagram, const TileKernel& kernel, const Machine& machine)
        : machine_(machine), work_(statement_work(diagram, kernel)) {
        out_.kernel = kernel;
        out_.variables.resize(kernel.variables.size());
        num_given_ = kernel.variables.size();
        for_each_statement(kernel.body, [&](const TileStatement& s) { classify(s); });
        next_ = 0;
    }

    Assigned run() {
        out_.kernel.body = list(out_.kernel.body);
        return std::move(out_);
    }

private:
    [[nodiscard]] Variable& variable(VariableId v) { return out_.kernel.variables[v]; }
    [[nodiscard]] AssignedVariable& place(VariableId v) { return out_.variables[v]; }
    [[nodiscard]] Expr whole(VariableId v) { return read(v, variable(v).dims); }

    [[nodiscard]] bool on_tensor_cores(const StatementWork& work) const {
        return work.contraction && instruction_for(machine_, work.contraction->type) &&
               contraction_rate(machine_, work.contraction->type).unit == "tensor";
    }
    [[nodiscard]] bool goes_on_from_itself(const Compute& c) { return c.carry && equal(c.carry, whole(c.variable)); }

    /// What threads compute at any place, their registers hold.
    void classify(const TileStatement& s) {
        const auto* compute = std::get_if<Compute>(&s);
        if (!compute) return;
        if (!on_tensor_cores(work_[next_++]) || (compute->carry && !goes_on_from_itself(*compute)))
            by_threads_.insert(compute->variable);
    }

    /// An elementwise map without positions can be computed on register fragments, wherever the tensor cores left them.
    [[nodiscard]] bool is_elementwise(const Compute& c) {
        if (c.reduce || c.carry || place(c.variable).at == HeldAt::fragments) return false;
        bool alike = true, any = false;
        visit(c.body, [&](const Expr& e) {
            if (as<AxisIndex>(e)) alike = false;
            if (const auto* r = as<Read>(e)) {
                any = true;
                alike = alike && place(r->variable()).at == HeldAt::fragments && r->indices == variable(c.variable).dims;
            }
        });
        return alike && any;
    }

    void note(std::vector<std::pair<std::string, std::string>>& notes, std::string what, std::string why) {
        for (const auto& [known, reason] : notes)
            if (known == what) return;
        notes.emplace_back(std::move(what), std::move(why));
    }

    [[nodiscard]] std::string unique(std::string name) const {
        const std::vector<std::string> names = names_of(out_.kernel.variables);
        while (contains(names, name)) name += "_2";
        return name;
    }

    /// What nothing writes again is passed on once, where it is made; a state whenever it is asked for.
    VariableId copy(VariableId from, HeldAt to, const char* suffix, Statements& out) {
        Variable v = variable(from);
        v.name = unique(v.name + suffix);
        const bool again = v.is_state || states_.contains(from);
        v.is_state = false;
        v.gathers.clear();
        const auto id = VariableId::of(out_.kernel.variables.size());
        if (again) states_.insert(id);
        depth_[id] = again ? lists_.size() - 1 : depth_.at(from);
        out_.kernel.variables.push_back(std::move(v));
        out_.variables.push_back({.at = to,
                                  .streamed = again ? streams_ : place(from).streamed,
                                  .cut = again ? cuts_ : place(from).cut,
                                  .copy_of = from,
                                  .type_reason = {}});
        Statements& where = again ? out : *lists_[depth_.at(id)];
        where.emplace_back(Compute{id, std::nullopt, {}, whole(from), nullptr});
        return id;
    }
    /// The copy in the core's memory, made where it is first asked for.
    VariableId in_memory(VariableId v, Statements& out) {
        if (place(v).at == HeldAt::memory) return v;
        const auto known = in_memory_.find(v);
        return known != in_memory_.end() ? known->second : in_memory_[v] = copy(v, HeldAt::memory, "_smem", out);
    }
    VariableId on_threads(VariableId v, Statements& out) {
        if (place(v).at != HeldAt::fragments) return v;
        if (const auto known = on_threads_.find(v); known != on_threads_.end()) return known->second;
        const VariableId between = in_memory(v, out);
        const VariableId id = on_threads_[v] = copy(between, HeldAt::threads, "_thread", out);
        variable(id).name = unique(variable(v).name + "_thread");
        note(
            out_.moves, fmt::format("{} → {} → {}", variable(v).name, variable(between).name, variable(id).name),
            "no thread can tell which values the tensor cores have left in its registers: they pass through the core's "
            "memory");
        return id;
    }

    void define(VariableId v, HeldAt where) {
        if (!depth_.try_emplace(v, lists_.size() - 1).second) {
            if (!variable(v).is_state) depth_[v] = lists_.size() - 1;
            return;
        }
        place(v).at = where, place(v).streamed = streams_, place(v).cut = cuts_;
    }

    Expr renamed(const Expr& e, const std::map<VariableId, VariableId>& names) {
        if (!e) return e;
        return transform(e, [&](const Expr& node) -> Expr {
            const auto* r = as<Read>(node);
            if (!r || !names.contains(r->variable())) return node;
            return read(names.at(r->variable()), r->indices);
        });
    }

    void threads_compute(Compute c, const StatementWork& work, Statements& out) {
        if (is_elementwise(c)) {
            define(c.variable, HeldAt::fragments);
            note(out_.places, fmt::format("{} in the tensor cores' registers", variable(c.variable).name),
                 "a map without positions needs no thread to know which values it has");
            return void(out.emplace_back(std::move(c)));
        }
        std::map<VariableId, VariableId> names;
        for (const Read* r : reads_in_order(c.body, c.carry))
            if (place(r->variable()).at == HeldAt::fragments && r->variable() != c.variable)
                names[r->variable()] = on_threads(r->variable(), out);
        c.body = renamed(c.body, names), c.carry = renamed(c.carry, names);
        define(c.variable, HeldAt::threads);
        note(out_.places, fmt::format("{} on threads", variable(c.variable).name),
             work.contraction ? fmt::format("no instruction of {} multiplies {}: {}", machine_.name,
                                            name(work.contraction->type), known_types())
             : c.reduce       ? "a reduction that is no contraction"
                              : "a map over values that threads have");
        out.emplace_back(std::move(c));
    }
    [[nodiscard]] std::string known_types() const {
        std::vector<std::string> types;
        for (const Instruction& i : machine_.instructions)
            for (const auto& [type, k] : i.k)
                if (!contains(types, name(type))) types.emplace_back(name(type));
        return types.empty() ? "it has none" : "they take " + join(types, ", ");
    }

    void tensor_core_computes(Compute c, const StatementWork& work, Statements& out) {
        const Instruction& instruction = *instruction_for(machine_, work.contraction->type);
        note(out_.places, fmt::format("{} on the tensor cores", variable(c.variable).name),
             fmt::format("a contraction of {}: {}", name(work.contraction->type), instruction.name));
        std::map<VariableId, VariableId> names;
        for (const Read* r : reads_in_order(c.body, nullptr))
            if (place(r->variable()).at != HeldAt::memory) {
                const bool was_there = in_memory_.contains(r->variable());
                const VariableId id = names[r->variable()] = in_memory(r->variable(), out);
                place(id).is_operand = true;
                if (!was_there)
                    note(out_.moves, fmt::format("{} → {}", variable(r->variable()).name, variable(id).name),
                         fmt::format("{} reads its operands in the core's memory", instruction.name));
            } else {
                place(r->variable()).is_operand = true;
            }
        c.body = renamed(c.body, names);
        if (!by_threads_.contains(c.variable)) {
            define(c.variable, HeldAt::fragments);
            return void(out.emplace_back(std::move(c)));
        }
        add_by_threads(std::move(c), out);
    }

    /// Threads correct what they accumulate, and add the product of the tensor cores to it.
    void add_by_threads(Compute c, Statements& out) {
        const VariableId target = c.variable;
        define_state(target, cuts_);
        Variable product = variable(target);
        product.name = unique(product.name + "_delta");
        product.is_state = false;
        const auto delta = VariableId::of(out_.kernel.variables.size());
        out_.kernel.variables.push_back(product);
        out_.variables.push_back(
            {.at = HeldAt::fragments, .streamed = streams_, .cut = cuts_, .product_of = target, .type_reason = {}});
        depth_[delta] = lists_.size() - 1;
        const Expr carry = c.carry;
        c.variable = delta, c.carry = nullptr;
        out.emplace_back(std::move(c));
        const Expr added = whole(on_threads(delta, out));
        std::map<VariableId, VariableId> names;
        if (carry)
            for (const Read* r : reads_in_order(carry, nullptr))
                if (place(r->variable()).at == HeldAt::fragments) names[r->variable()] = on_threads(r->variable(), out);
        Compute sum{target, std::nullopt, {}, carry ? binary(BinaryOp::add, renamed(carry, names), added) : added, nullptr};
        out.emplace_back(std::move(sum));
    }
    void define_state(VariableId target, const std::set<AxisId>& around) {
        if (!depth_.try_emplace(target, lists_.size() - 1).second) return;
        place(target).at = HeldAt::threads, place(target).streamed = streams_, place(target).cut = around;
    }

    /// Every variable of the list that ends in it ends after its last use.
    void end_lives(Statements& list) {
        std::set<VariableId> mine;
        for (const TileStatement& s : list) {
            if (const auto* free = std::get_if<Free>(&s)) mine.insert(free->variable);
            const auto* c = std::get_if<Compute>(&s);
            if (c && at(c->variable) >= num_given_) mine.insert(c->variable);
        }
        std::erase_if(list, [](const TileStatement& s) { return std::holds_alternative<Free>(s); });
        Statements out;
        std::vector<std::vector<VariableId>> ends(list.size());
        for (const VariableId v : mine)
            for (std::size_t i = list.size(); i-- > 0;)
                if (contains(used_variables(out_.kernel, list[i]), v)) {
                    ends[i].push_back(v);
                    break;
                }
        for (std::size_t i = 0; i < list.size(); ++i) {
            out.push_back(list[i]);
            for (const VariableId v : ends[i]) out.emplace_back(Free{v});
        }
        list = std::move(out);
    }

    /// Behind a list there are the copies of before it, and those that it has put into the lists around it.
    void leave(std::map<VariableId, VariableId>& copies, const std::map<VariableId, VariableId>& before) const {
        std::erase_if(copies, [&](const auto& copy) { return depth_.at(copy.second) >= lists_.size(); });
        copies.insert(before.begin(), before.end());
    }

    Statements list(const Statements& given) {
        const auto memory = in_memory_, threads = on_threads_;
        Statements out;
        lists_.push_back(&out);
        for (const TileStatement& s : given) one(s, out);
        lists_.pop_back();
        end_lives(out);
        leave(in_memory_, memory), leave(on_threads_, threads);
        return out;
    }

    void one(const TileStatement& s, Statements& out) {
        if (const auto* load = std::get_if<Load>(&s)) {
            define(load->variable, HeldAt::memory);
            out.push_back(s);
        } else if (const auto* init = std::get_if<Init>(&s)) {
            define(init->variable, by_threads_.contains(init->variable) ? HeldAt::threads : HeldAt::fragments);
            out.push_back(s);
        } else if (const auto* store = std::get_if<Store>(&s)) {
            if (place(store->variable).at == HeldAt::fragments) {
                const VariableId id = in_memory(store->variable, out);
                note(out_.moves, fmt::format("{} → {}", variable(store->variable).name, variable(id).name),
                     "whole lines leave for memory from the core's memory");
                out.emplace_back(Store{id});
            } else {
                out.push_back(s);
            }
        } else if (const auto* compute = std::get_if<Compute>(&s)) {
            const StatementWork& work = work_[next_++];
            on_tensor_cores(work) ? tensor_core_computes(*compute, work, out) : threads_compute(*compute, work, out);
            // Copies of what the variable was pass no more for it.
            in_memory_.erase(compute->variable), on_threads_.erase(compute->variable);
        } else if (const auto* loop = std::get_if<std::shared_ptr<const TileLoop>>(&s)) {
            out.emplace_back(rewritten(**loop));
        } else {
            out.push_back(s);
        }
    }

    std::shared_ptr<const TileLoop> rewritten(const TileLoop& loop) {
        // What the loop writes has other values in every turn, and behind it.
        for_each_statement(loop.body, [&](const TileStatement& s) {
            if (const auto* c = std::get_if<Compute>(&s)) in_memory_.erase(c->variable), on_threads_.erase(c->variable);
        });
        TileLoop other = loop;
        std::set<AxisId>& axes = loop.is_sub ? cuts_ : streams_;
        const bool is_new = axes.insert(loop.axis).second;
        other.body = list(loop.body);
        if (is_new) axes.erase(loop.axis);
        return std::make_shared<const TileLoop>(std::move(other));
    }

    const Machine& machine_;
    std::vector<StatementWork> work_;
    std::size_t next_ = 0, num_given_ = 0;
    Assigned out_;
    std::set<VariableId> by_threads_;          ///< what threads compute at some place
    std::set<VariableId> states_;              ///< copies of states
    std::vector<Statements*> lists_;           ///< those around what is rewritten, outermost first
    std::map<VariableId, std::size_t> depth_;  ///< of the list in which a variable is defined
    std::set<AxisId> streams_, cuts_;
    std::map<VariableId, VariableId> in_memory_, on_threads_;
};

}  // namespace

Assigned assign_levels(const Diagram& diagram, const TileKernel& kernel, const Machine& machine) {
    return Assigner(diagram, kernel, machine).run();
}

}  // namespace napkin
