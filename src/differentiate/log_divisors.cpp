#include "differentiate/log_divisors.hpp"

#include <map>
#include <optional>

#include "support/ranges.hpp"

namespace napkin {
namespace {

/// P = exp(A − M) / Z, with what its parts are made of.
struct Quotient {
    ArrayId target, maximum, divisor;  ///< P, M, Z
    Expr exponent;                     ///< A, at P's own axes
    std::vector<Index> row;            ///< where P reads Z, and M
    Expr logarithm;                    ///< M + log Z at Z's own axes
    std::optional<ArrayId> known;      ///< L
};

class Finder {
public:
    explicit Finder(const Diagram& diagram) : d_(diagram) {
        for (const Equation& e : d_.equations) definitions_[e.target] = &e;
    }

    [[nodiscard]] std::vector<Quotient> all() const {
        std::vector<Quotient> out;
        for (const Equation& e : d_.equations)
            if (auto quotient = quotient_of(e)) out.push_back(std::move(*quotient));
        return out;
    }

private:
    [[nodiscard]] const Equation* definition(ArrayId id) const {
        const auto found = definitions_.find(id);
        return found == definitions_.end() ? nullptr : found->second;
    }

    /// The argument of an exponential, written in place or read where it stands; null: it is none.
    [[nodiscard]] Expr exponent_of(const Expr& e) const {
        const auto* r = as<Read>(e);
        const Equation* defined = r && equal(e, read_self(d_, r->array)) ? definition(r->array) : nullptr;
        const auto* exp = as<Unary>(defined && !defined->reduce ? defined->body : e);
        return exp && exp->op == UnaryOp::exp ? exp->a : nullptr;
    }

    [[nodiscard]] std::optional<Quotient> quotient_of(const Equation& e) const {
        const auto* quotient = e.reduce ? nullptr : as<Binary>(e.body);
        if (!quotient || quotient->op != BinaryOp::div) return std::nullopt;
        const Expr exponent = exponent_of(quotient->a);
        const auto* divisor = as<Read>(quotient->b);
        const Equation* sum = divisor ? definition(divisor->array) : nullptr;
        // A sum of exponentials has a logarithm.
        if (!exponent || !sum || sum->reduce != ReduceOp::sum || !exponent_of(sum->body)) return std::nullopt;
        const auto* difference = as<Binary>(exponent);
        const auto* maximum = difference && difference->op == BinaryOp::sub ? as<Read>(difference->b) : nullptr;
        if (!maximum || maximum->indices != divisor->indices ||
            d_.array(maximum->array).axes != d_.array(divisor->array).axes)
            return std::nullopt;
        Quotient out{e.target, maximum->array, divisor->array, difference->a, divisor->indices, {}, {}};
        out.logarithm = binary(BinaryOp::add, read_self(d_, out.maximum), unary(UnaryOp::log, read_self(d_, out.divisor)));
        for (const Equation& other : d_.equations)
            if (!other.reduce && equal(other.body, out.logarithm) &&
                d_.array(other.target).axes == d_.array(out.divisor).axes)
                out.known = other.target;
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

Diagram with_log_divisors(Diagram d) {
    for (const Quotient& quotient : Finder(d).all()) {
        if (quotient.known) continue;
        const Array sum = d.array(quotient.divisor);
        const ArrayId id = add_array(d, d.array(quotient.target).name + "_L", sum.axes, sum.type, ArrayRole::temporary);
        const auto at_sum = find_if(d.equations, [&](const Equation& e) { return e.target == quotient.divisor; });
        d.equations.insert(at_sum + 1, {id, std::nullopt, {}, quotient.logarithm, at_sum->range, {}});
    }
    return d;
}

void use_log_divisors(Diagram& d, std::size_t from, const std::vector<ArrayId>& kept) {
    std::vector<Equation> again;
    for (const Quotient& quotient : Finder(d).all()) {
        if (!quotient.known || contains(kept, quotient.target)) continue;
        const bool keeps_others = contains(kept, quotient.maximum) || contains(kept, quotient.divisor);
        if (keeps_others && !contains(kept, *quotient.known)) continue;
        if (is_compared(d, from, quotient.target)) continue;
        const Array array = d.array(quotient.target);
        const ArrayId id = add_array(d, array.name + "_again", array.axes, array.type, ArrayRole::temporary);
        bool is_read = false;
        for (std::size_t i = from; i < d.equations.size(); ++i)
            d.equations[i].body = transform(d.equations[i].body, [&](const Expr& node) {
                const auto* r = as<Read>(node);
                if (!r || r->array != quotient.target) return node;
                is_read = true;
                return read(id, r->indices);
            });
        if (!is_read) continue;
        const Expr body = unary(UnaryOp::exp,
                                binary(BinaryOp::sub, quotient.exponent, read(*quotient.known, quotient.row)));
        again.push_back({id, std::nullopt, {}, body, array.range, {}});
    }
    d.equations.insert(d.equations.begin() + static_cast<std::ptrdiff_t>(from), again.begin(), again.end());
}

}  // namespace napkin
