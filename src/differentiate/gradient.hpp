#pragma once
// Reverse mode: the diagram of the gradients of a diagram, as a rewriting of equations into equations.
//
// With O = f(X, …) and given dO, the derivative of Σ O·dO by X is dX. The equations of f stand first, then those of
// the adjoints from the last equation to the first. What an equation adds to the adjoint of an array it reads is
//     dX[a] = Σ over the points that read X[a] of dT[t] · ∂body/∂X,
// where readers.hpp finds these points. An extremum passes its adjoint on to its first place, or to all that are equal.
// A product passes to each factor what the others multiply to, also where some are 0.
#include <optional>
#include <string>
#include <vector>

#include "diagram/diagram.hpp"

namespace napkin {

/// Who gets the adjoint of an extremum that several values have.
enum class Ties { first, shared };

struct GradientOptions {
    std::vector<ArrayId> by;  ///< inputs of real numbers, in the order of the results; empty: all of them
    Ties ties = Ties::first;
    /// Arrays that the forward diagram computes and keeps. They are inputs here, and all others are computed again.
    std::vector<ArrayId> keep = {};
    bool only_needed = false;  ///< inputs that nothing reads are left out
};

struct Gradient {
    /// Its inputs are those of the diagram, then what is kept, then the adjoints dO of the outputs of real numbers. Its
    /// outputs are dX for each X of `by`. What is summed up to fewer values than it reads is kept as f32 at least. The
    /// diagram's arrays have the same numbers here.
    Diagram diagram;
    std::vector<ArrayId> kept;         ///< of `keep`: what is read
    std::vector<ArrayId> precise;      ///< sums that are f32 for their precision, whatever they are made of
    std::vector<ArrayId> independent;  ///< inputs of `by` on which no output depends: their gradients are 0
};

/// Pre: the diagram verifies, and `by` are inputs of real numbers. The result verifies once what no equation names is
/// left out, as canonical() does.
Gradient gradient(const Diagram& diagram, const GradientOptions& options = {});

/// The diagram with these arrays among its outputs, behind its own, in the types in which gradients take them.
Diagram with_outputs(Diagram diagram, const std::vector<ArrayId>& kept);

/// Inputs of real numbers.
std::vector<ArrayId> real_inputs(const Diagram& diagram);

/// What is wrong with inputs to differentiate by.
struct WrongInput {
    std::string message;
    std::string name;                ///< the one that is wrong; empty: it is no name's fault
    std::vector<std::string> right;  ///< names that may stand there
};
/// Whether the diagram has gradients by the inputs with these names, each of which must be one of `candidates`.
std::optional<WrongInput> wrong_input(const Diagram& diagram, const std::vector<ArrayId>& candidates,
                                      const std::vector<std::string>& by);

}  // namespace napkin
