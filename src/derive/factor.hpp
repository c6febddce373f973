#pragma once
// Streamability from the algebra of a reduction's body (design.md, "The calculus").
//
// Let R = ⊕_x f(x; ν), where ν are other reductions of the same stream. R streams when f is a finite ⊕ of terms
//     body(x; κ(ν)) ⊗ tail(ν),
// with ⊗ distributing over ⊕ ((sum,×), (max,+), (min,+), (max,× by a positive), and (prod, power)), where the kept factor κ
// enters the body only through exp(A(x) + B(ν)). The tail waits for the end of the stream. The kept factor stays for stability: when
// the running ν changes from ν′ to ν, what was accumulated is multiplied by exp(B(ν) − B(ν′)), which no longer depends on x.
// Sums A(x) + B(ν) under a product are expanded around a running centre c of A (shifted moments): (A − c) + (c + B), so
// that variance-like results do not cancel.
#include <functional>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "algebra/expr.hpp"
#include "algebra/reduce.hpp"

namespace napkin {

/// What the calculus needs to know of the leaves.
struct Leaves {
    std::function<bool(const Read&)> is_running;      ///< a result ν of the same stream
    std::function<bool(const Read&)> is_running_sum;  ///< … and a sum, which starts at 0
    std::vector<AxisId> axes;                         ///< the reduced axes, the streamed axis x among them
};

/// A running centre: the mean of `of` over the reduced axes. `placeholder` is a Read that stands for it.
struct Centre {
    Expr of;
    Expr placeholder;
};

struct Term {
    Expr body;        ///< x-dependent part, kept factors included, without the centred power
    int centre = -1;  ///< index into Factored::centres, or -1
    int power = 0;    ///< body · (centre.of − c)^power is reduced
    Expr log_kept;    ///< B(ν): the body contains exp(B(ν)); null: nothing is kept
    Expr kept;        ///< a factor of the body kept as it is (auxiliary form); null: none
    Expr tail;        ///< ⊗ factor applied after the stream; null: none
};

struct Factored {
    std::vector<Term> terms;  ///< combined with ⊕ (sum only; max, min and prod have one term)
    std::vector<Centre> centres;
    std::vector<std::string> conditions;  ///< side conditions used, and why they hold
    bool additive_tail = false;           ///< ⊗ is + (max, min)
    bool power_tail = false;              ///< ⊗ is power by the number of reduced points (prod)
};

/// Why a body cannot be written so, and the term at which it fails.
struct FactorFailure {
    std::string reason;
    Expr term;
};

struct FactorOptions {
    bool keep_tails = false;                          ///< auxiliary form
    std::function<Expr(const Expr& of)> make_centre;  ///< the placeholder for a centre of `of`
    std::function<bool(const Expr&)> positive;        ///< provably > 0, knowing what the reads were computed from
};

std::variant<Factored, FactorFailure> factor(ReduceOp op, const Expr& body, const Leaves& leaves,
                                             const FactorOptions& options);

}  // namespace napkin
