#include "differentiate/logsumexp.hpp"

#include <map>
#include <optional>

#include "support/ranges.hpp"

namespace napkin {
namespace {

/// P = E / Z, with what its parts are made of.
struct Weights {
    ArrayId target, row_maximum, row_sum;
    Expr scores;                   ///< A, at P's own axes
    std::vector<Index> row;        ///< where P reads Z
    Expr logsumexp;                ///< M + log Z at Z's own axes
    std::optional<ArrayId> known;  ///< L
};

class Finder {
public:
    explicit Finder(const Diagram& diagram) : d_(diagram) {
        for (const Equation& e : d_.equations) definitions_[e.target] = &e;
    }

    [[nodiscard]] std::vector<Weights> all() const {
        std::vector<Weights> out;
        for (const Equation& e : d_.equations)
            if (auto weights = weights_of(e)) out.push_back(std::move(*weights));
        return out;
    }

private:
    [[nodiscard]] const Equation* definition(const Read* r) const {
        const auto found = r ? definitions_.find(r->array) : definitions_.end();
        return found == definitions_.end() ? nullptr : found->second;
    }

    [[nodiscard]] std::optional<Weights> weights_of(const Equation& e) const {
        const auto* quotient = e.reduce ? nullptr : as<Binary>(e.body);
        if (!quotient || quotient->op != BinaryOp::div) return std::nullopt;
        const auto *above = as<Read>(quotient->a), *below = as<Read>(quotient->b);
        const Equation *exponentials = definition(above), *sum = definition(below);
        if (!exponentials || exponentials->reduce || !sum || sum->reduce != ReduceOp::sum) return std::nullopt;
        const std::vector<AxisId>& axes = d_.array(e.target).axes;
        // E is read where it stands, by the quotient and by the sum of its row.
        if (d_.array(above->array).axes != axes || !equal(quotient->a, read_self(d_, above->array)) ||
            !equal(sum->body, quotient->a))
            return std::nullopt;
        const auto* exp = as<Unary>(exponentials->body);
        const auto* difference = exp && exp->op == UnaryOp::exp ? as<Binary>(exp->a) : nullptr;
        const auto* maximum = difference && difference->op == BinaryOp::sub ? as<Read>(difference->b) : nullptr;
        if (!maximum || maximum->indices != below->indices || d_.array(maximum->array).axes != d_.array(below->array).axes)
            return std::nullopt;
        Weights out{e.target, maximum->array, below->array, difference->a, below->indices, {}, {}};
        out.logsumexp = binary(BinaryOp::add, read_self(d_, maximum->array),
                               unary(UnaryOp::log, read_self(d_, below->array)));
        for (const Equation& other : d_.equations)
            if (!other.reduce && equal(other.body, out.logsumexp)) out.known = other.target;
        return out;
    }

    const Diagram& d_;
    std::map<ArrayId, const Equation*> definitions_;
};

/// Whether the equations from number `from` on compare the array's values with others. Those of an extremum are found
/// by comparing, and must be the same to the last bit.
bool is_compared(const Diagram& d, std::size_t from, ArrayId id) {
    bool found = false;
    for (std::size_t i = from; i < d.equations.size(); ++i)
        visit(d.equations[i].body, [&](const Expr& node) {
            const auto* b = as<Binary>(node);
            const bool compares = b && b->op >= BinaryOp::lt && b->op <= BinaryOp::ne;
            found |= compares && (reads_array(b->a, id) || reads_array(b->b, id));
        });
    return found;
}

}  // namespace

Diagram with_logsumexps(Diagram d) {
    for (const Weights& weights : Finder(d).all()) {
        if (weights.known) continue;
        const Array sum = d.array(weights.row_sum);
        const ArrayId id = add_array(d, d.array(weights.target).name + "_L", sum.axes, sum.type, ArrayRole::temporary);
        const auto at_sum = find_if(d.equations, [&](const Equation& e) { return e.target == weights.row_sum; });
        d.equations.insert(at_sum + 1, {id, std::nullopt, {}, weights.logsumexp, at_sum->range, {}});
    }
    return d;
}

void use_logsumexps(Diagram& d, std::size_t from, const std::vector<ArrayId>& kept) {
    std::vector<Equation> again;
    for (const Weights& weights : Finder(d).all()) {
        if (!weights.known || contains(kept, weights.target)) continue;
        const bool keeps_others = contains(kept, weights.row_maximum) || contains(kept, weights.row_sum);
        if (keeps_others && !contains(kept, *weights.known)) continue;
        if (is_compared(d, from, weights.target)) continue;
        const Array array = d.array(weights.target);
        const ArrayId id = add_array(d, array.name + "_again", array.axes, array.type, ArrayRole::temporary);
        bool is_read = false;
        for (std::size_t i = from; i < d.equations.size(); ++i)
            d.equations[i].body = transform(d.equations[i].body, [&](const Expr& node) {
                const auto* r = as<Read>(node);
                if (!r || r->array != weights.target) return node;
                is_read = true;
                return read(id, r->indices);
            });
        if (!is_read) continue;
        const Expr body = unary(UnaryOp::exp, binary(BinaryOp::sub, weights.scores, read(*weights.known, weights.row)));
        again.push_back({id, std::nullopt, {}, body, array.range, {}});
    }
    d.equations.insert(d.equations.begin() + static_cast<std::ptrdiff_t>(from), again.begin(), again.end());
}

}  // namespace napkin
