#pragma once
// The record of a derivation, played back. After any number of steps there is a diagram with kernels that can be
// evaluated, so that both sides of every rewrite can be compared. At first every equation is a kernel of its own. Edits
// change equations, then fusion gathers the equations of a kernel. A stream partition turns them into loops, and group
// partitions cut the kernel's tiles.
#include "derive/derived.hpp"

namespace napkin {

/// Plays the steps of `derived` one by one. Holds a reference.
///     for (Replay replay(derived); ; replay.next()) { evaluate(replay.form(), …); if (replay.done()) break; }
class Replay {
public:
    explicit Replay(const Derived& derived);

    /// What stands after the steps so far: diagram, source and kernels. Its arrays are the first of derived.diagram's.
    /// Only the axes that were cut so far are in a kernel's group_axes: the evaluation takes group sizes for no other.
    [[nodiscard]] Derived form() const;
    [[nodiscard]] const Diagram& diagram() const { return diagram_; }
    [[nodiscard]] std::size_t steps_done() const { return done_; }
    [[nodiscard]] bool done() const { return done_ == derived_.steps.size(); }
    /// Applies the next step. Pre: not done().
    void next();

private:
    /// How far a kernel of the derived form is made.
    struct Made {
        bool fused = false, streamed = false;
        std::vector<AxisId> grouped;
    };
    const Derived& derived_;
    Diagram diagram_;
    std::vector<Made> made_;
    std::size_t done_ = 0;
};

/// Applies an edit. Each replaced equation must be there; its successors take its place.
void apply(const Edit& edit, Diagram& diagram);

/// The source with the edits of its normal form: what kernels are gathered from.
Diagram normal_form_of(const Derived& derived);

/// The edit that leads from equations and arrays as they were to what a diagram has now. Every array that was defined
/// still is.
Edit edit_between(const std::vector<Equation>& equations, std::size_t num_arrays, const Diagram& now);

}  // namespace napkin
