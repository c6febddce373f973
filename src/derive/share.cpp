#include "derive/share.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <unordered_map>
#include <unordered_set>

#include "algebra/expr_walk.hpp"
#include "algebra/scalar_function.hpp"
#include "diagram/evaluate.hpp"
#include "diagram/guards.hpp"

namespace napkin {
namespace {
/// An expression where it stands, with what keeps its reads inside of their arrays there; null: nothing has to.
struct Place {
    Expr e, guard;
    friend bool operator==(const Place&, const Place&) = default;
    /// What may be computed anywhere.
    [[nodiscard]] Expr value() const { return guard ? select(guard, e, constant(0)) : e; }
};
struct PlaceHash {
    std::size_t operator()(const Place& p) const { return p.e->hash * 31 + (p.guard ? p.guard->hash : 0); }
};
using Table = std::unordered_map<Place, ArrayId, PlaceHash>;
using SeenPlaces = std::unordered_set<Place, PlaceHash>;

Place place_under(const Diagram& diagram, const Expr& e, const Expr& condition) {
    return {e, guard_of_reads(diagram, e, condition, is_other_index)};
}

/// Calls f with every child where it stands, in order.
template <class F>
void for_each_part(const Diagram& diagram, const Place& place, const F& f) {
    const auto* s = as<Select>(place.e);
    if (!s) return for_each_child(*place.e, [&](const Expr& child) { f(place_under(diagram, child, place.guard)); });
    f(place_under(diagram, s->condition, place.guard));
    f(place_under(diagram, s->a, both_hold(place.guard, s->condition)));
    f(place_under(diagram, s->b, both_hold(place.guard, unary(UnaryOp::logical_not, s->condition))));
}

bool is_leaf(const Expr& e) { return as<Constant>(e) || as<Read>(e) || as<AxisIndex>(e) || as<AxisSize>(e); }

bool reads_anything(const Expr& e) { return !read_arrays(e).empty(); }

/// A comparison that divides nothing. A choice takes it as it comes, and would take as long to read its outcome.
bool is_cheap_comparison(const Expr& e) {
    const auto* compared = as<Binary>(e);
    const auto* negated = as<Unary>(e);
    if (!(compared && compared->op >= BinaryOp::lt) && !(negated && negated->op == UnaryOp::logical_not)) return false;
    bool divides = false;
    visit(e, [&](const Expr& node) {
        const auto* b = as<Binary>(node);
        divides = divides || (b && (b->op == BinaryOp::floor_div || b->op == BinaryOp::mod));
    });
    return !divides && !is_expensive(e);
}

/// Collects the maximal sub-expressions that vary over fewer axes than the statement's points.
void collect(const Diagram& diagram, const Place& at, std::size_t num_axes, bool reduced, std::vector<Place>& found,
             SeenPlaces& seen) {
    if (is_leaf(at.e) || !seen.insert(at).second || is_cheap_comparison(at.e)) return;
    if (free_axes(at.value()).size() < num_axes && reads_anything(at.e)) {
        const bool worth = reduced || is_expensive(at.e) || as<Select>(at.e);
        if (worth) {
            found.push_back(at);
            return;
        }
    }
    for_each_part(diagram, at, [&](const Place& part) { collect(diagram, part, num_axes, reduced, found, seen); });
}

/// The sub-expressions worth an array, and whether each stands in the carry.
std::vector<std::pair<Place, bool>> candidates(const Diagram& diagram, const Statement& s) {
    const std::size_t target_axes = diagram.array(s.target).axes.size();
    std::vector<std::pair<Place, bool>> out;
    for (const bool carry : {true, false}) {
        std::vector<Place> found;
        SeenPlaces seen;
        if (!carry)
            collect(diagram, {s.body, nullptr}, target_axes + s.reduce_axes.size(), s.reduce.has_value(), found, seen);
        if (carry && s.carry) collect(diagram, {s.carry, nullptr}, target_axes, false, found, seen);
        for (const Place& place : found) out.emplace_back(place, carry);
    }
    return out;
}

/// The axes of a shared array: in the order of the target that it serves first, reduced axes after.
std::vector<AxisId> axes_of(const Diagram& diagram, const Statement& s, const Expr& e) {
    const auto free = free_axes(e);
    std::vector<AxisId> axes;
    for (const AxisId a : diagram.array(s.target).axes)
        if (contains(free, a)) axes.push_back(a);
    for (const AxisId a : free)
        if (!contains(axes, a)) axes.push_back(a);
    return axes;
}

/// From the top: what has an array is read, and not looked into.
class Replacing {
public:
    Replacing(const Diagram& diagram, const Table& table) : diagram_(diagram), table_(table) {}

    Expr operator()(const Place& at) {
        if (const auto hit = table_.find(at); hit != table_.end()) return read_self(diagram_, hit->second);
        return is_leaf(at.e) ? at.e : with_parts_replaced(at);
    }
    Expr with_parts_replaced(const Place& at) {
        if (const auto known = done_.find(at); known != done_.end()) return known->second;
        std::vector<Expr> parts;
        for_each_part(diagram_, at, [&](const Place& part) { parts.push_back((*this)(part)); });
        return done_[at] = with_children(at.e, std::move(parts));
    }

private:
    const Diagram& diagram_;
    const Table& table_;
    std::unordered_map<Place, Expr, PlaceHash> done_;
};

const char* name_for(const Expr& e, bool carry) {
    if (carry) return "delta";
    if (const auto* u = as<Unary>(e); u && u->op == UnaryOp::exp) return "weight";
    if (const auto* s = as<Select>(e)) {
        // A mask leaves a weight its name.
        const auto* excluded = as<Constant>(s->b);
        const bool is_mask = excluded && excluded->value == 0 && std::string_view(name_for(s->a, carry)) == "weight";
        return is_mask ? "weight" : "guarded";
    }
    if (const auto* b = as<Binary>(e)) {
        // A weight keeps its name when a constant scales it.
        if (b->op == BinaryOp::mul && free_axes(b->b).empty() && read_arrays(b->b).empty())
            return name_for(b->a, carry);
        if (b->op == BinaryOp::mul) return "product";
        if (b->op == BinaryOp::sub) return "difference";
        if (b->op == BinaryOp::div) return "quotient";
    }
    return "shared";
}

bool within(const std::vector<AxisId>& inner, const std::vector<AxisId>& outer) {
    return std::includes(outer.begin(), outer.end(), inner.begin(), inner.end());
}

/// Under a sum, factors that vary over no more axes than another are multiplied with that one first, so that they can
/// be shared. So Σ_x (w[q, x] · V[x, d]) · c[q] becomes Σ_x (w · c)[q, x] · V[x, d]. Factors of several kinds stay as
/// they are, since a product of integers wraps at its own width.
Expr grouped_product(const Expr& body, Kinds& kinds) {
    std::vector<Expr> factors;
    const std::function<void(const Expr&)> flatten = [&](const Expr& e) {
        if (const auto* b = as<Binary>(e); b && b->op == BinaryOp::mul) {
            flatten(b->a);
            flatten(b->b);
        } else {
            factors.push_back(e);
        }
    };
    flatten(body);
    if (factors.size() < 3) return body;
    std::optional<Kind> kind;
    for (const Expr& factor : factors) {
        const Kind own = kinds(factor);
        if (own == Kind::whole) continue;
        if (kind && *kind != own) return body;
        kind = own;
    }
    for (std::size_t i = factors.size(); i-- > 0 && factors.size() > 2;) {
        for (std::size_t j = 0; j < factors.size(); ++j) {
            if (i == j || !within(free_axes(factors[i]), free_axes(factors[j]))) continue;
            factors[j] = binary(BinaryOp::mul, factors[j], factors[i]);
            factors.erase(factors.begin() + static_cast<std::ptrdiff_t>(i));
            break;
        }
    }
    Expr product = factors[0];
    for (std::size_t i = 1; i < factors.size(); ++i) product = binary(BinaryOp::mul, product, factors[i]);
    return product;
}

bool is_truth(const Expr& e) {
    const auto* u = as<Unary>(e);
    const auto* b = as<Binary>(e);
    return (u && gives_truth(u->op)) || (b && b->op >= BinaryOp::lt);
}

bool is_expensive_operation(const Expr& e) {
    if (free_axes(e).empty() && !reads_anything(e)) return false;  // a constant of the launch
    if (const auto* u = as<Unary>(e))
        return u->op != UnaryOp::neg && u->op != UnaryOp::abs && u->op != UnaryOp::logical_not;
    if (const auto* b = as<Binary>(e)) {
        // A division by a constant is a multiplication, and a small integer power a few of them.
        if (b->op == BinaryOp::div) return reads_anything(b->b) || !free_axes(b->b).empty();
        if (b->op == BinaryOp::pow) {
            const auto* c = as<Constant>(b->b);
            return !c || (c->value != 2 && c->value != 3);
        }
    }
    return false;
}

/// Counts the places at which expensive operations stand, outside of what has an array already.
void count_expensive(const Diagram& diagram, const Place& at, const Table& table,
                     std::unordered_map<Place, int, PlaceHash>& places, SeenPlaces& seen) {
    if (table.contains(at) || is_leaf(at.e)) return;
    if (is_expensive_operation(at.e)) ++places[at];
    if (!seen.insert(at).second) return;
    for_each_part(diagram, at, [&](const Place& part) { count_expensive(diagram, part, table, places, seen); });
}

}  // namespace

bool is_expensive(const Expr& e) {
    bool found = false;
    visit(e, [&](const Expr& node) { found = found || is_expensive_operation(node); });
    return found;
}

void share(Diagram& diagram, std::vector<Statement>& statements, const std::function<bool(const Expr&)>& hoistable,
           std::vector<Statement>* hoisted, const std::vector<Expr*>& facts) {
    // First what is worth an array, the definitions of such arrays included: they may hold something that varies over
    // fewer axes still.
    Kinds kinds = kinds_of(diagram);
    Table table;
    std::vector<Statement> definitions;
    std::map<ArrayId, Place> defined;
    const auto define = [&](const Statement& s, const Place& at, bool from_carry) {
        Statement definition{.body = at.value(), .range = s.range};
        // A number without a width of its own is divided as an integer by the integers that it meets.
        const DType type = kinds(definition.body) == Kind::whole && !is_truth(definition.body) ? DType::i32
                           : diagram.array(s.target).type == DType::f64                        ? DType::f64
                                                                                               : DType::f32;
        definition.target = add_array(diagram, name_for(at.e, from_carry), axes_of(diagram, s, definition.body), type,
                                      ArrayRole::temporary);
        table[at] = definition.target;
        defined[definition.target] = at;
        definitions.push_back(definition);
        return definition;
    };
    const std::function<void(const Statement&)> find = [&](const Statement& s) {
        for (const auto& [at, from_carry] : candidates(diagram, s))
            if (!table.contains(at)) find(define(s, at, from_carry));
    };
    for (auto& s : statements)
        if (s.reduce == ReduceOp::sum) s.body = grouped_product(s.body, kinds);
    for (const auto& s : statements) find(s);
    // And what several statements compute over all of their axes: largest first, so that its parts are not counted
    // again.
    std::unordered_map<Place, int, PlaceHash> places;
    for (const auto& s : statements) {
        SeenPlaces seen;
        count_expensive(diagram, {s.body, nullptr}, table, places, seen);
        if (s.carry) count_expensive(diagram, {s.carry, nullptr}, table, places, seen);
    }
    for (const auto& s : statements) {
        SeenPlaces seen;
        const std::function<void(const Place&, bool)> take = [&](const Place& at, bool from_carry) {
            if (table.contains(at) || is_leaf(at.e) || !seen.insert(at).second) return;
            if (const auto n = places.find(at); n != places.end() && n->second > 1)
                return find(define(s, at, from_carry));
            for_each_part(diagram, at, [&](const Place& part) { take(part, from_carry); });
        };
        if (s.carry) take({s.carry, nullptr}, true);
        take({s.body, nullptr}, false);
    }

    // Then each definition before the first statement in which its expression occurs at all.
    std::vector<Statement> out;
    std::set<ArrayId> placed;
    const std::function<void(Statement, std::vector<Statement>&)> place = [&](Statement s, std::vector<Statement>& into) {
        const auto define_parts = [&](const std::vector<ArrayId>& arrays) {
            for (const auto& d : definitions) {
                if (!contains(arrays, d.target) || !placed.insert(d.target).second) continue;
                place(d, hoisted && hoistable(d.body) ? *hoisted : into);
            }
        };
        Replacing replaced(diagram, table);
        if (const auto own = defined.find(s.target); own == defined.end()) {
            s.body = replaced({s.body, nullptr});
        } else {
            // A definition keeps its own expression.
            const Place& at = own->second;
            s.body = Place{replaced.with_parts_replaced(at), at.guard ? replaced({at.guard, nullptr}) : nullptr}.value();
        }
        if (s.carry) s.carry = replaced({s.carry, nullptr});
        if (s.carry) define_parts(read_arrays(s.carry));
        define_parts(read_arrays(s.body));
        into.push_back(std::move(s));
    };
    for (const auto& s : statements) place(s, out);
    statements = std::move(out);
    for (Expr* fact : facts) *fact = Replacing(diagram, table)({*fact, nullptr});
}

}  // namespace napkin
