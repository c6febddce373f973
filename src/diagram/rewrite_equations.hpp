#pragma once
// How rewritings of a diagram go through its equations.
#include <utility>
#include <vector>

#include "diagram/diagram.hpp"

namespace napkin {

/// What a class that rewrites equations has of its diagram: that which changes, and that before. New equations are
/// added to `out_`.
class EquationRewriter {
protected:
    explicit EquationRewriter(Diagram& diagram) : d_(diagram), source_(diagram) {}

    /// Each equation becomes what `rewrite` adds, in their order. One for which it returns false stays as it is.
    template <class Rewrite>
    void rewrite_each(Rewrite rewrite) {
        for (const Equation& e : source_.equations)
            if (!rewrite(e)) out_.push_back(e);
        d_.equations = std::move(out_);
    }

    Diagram& d_;
    const Diagram source_;
    std::vector<Equation> out_;
};

}  // namespace napkin
