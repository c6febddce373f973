#pragma once
// What is rewritten before kernels are chosen, so that a diagram's spelling does not decide what fuses. Each pass is
// one function that edits the diagram and records every edit.
#include <vector>

#include "derive/derived.hpp"

namespace napkin {

/// All passes, in the order below.
Diagram normal_form(const Diagram& diagram, std::vector<DerivationStep>& steps);

/// The diagram in which the size of an axis is said to be that of neighbouring dimensions of an input, where all of the
/// input's reads along these recombine to the axis and the sizes are numbers that agree.
Diagram with_sizes_of_joined_dimensions(Diagram diagram);

/// Neighbouring dimensions of an input become one where every read of them recombines to one index: X[w // 64, w % 64]
/// is X[w], whose rows follow each other in memory. Some axis must have as many values as they have together.
void join_dimensions(Diagram& diagram, std::vector<DerivationStep>& steps);

/// An axis that runs over the same dimension as another, where nothing tells the two apart, becomes that one: the
/// maximum of S[a, j] over j, and S[a, t] beside it, are of one axis.
void unify_axes(Diagram& diagram, std::vector<DerivationStep>& steps);

/// What has a narrower type of floating point is read as it is in place of being cast to f32, in which its values are
/// the same.
void drop_exact_casts(Diagram& diagram, std::vector<DerivationStep>& steps);

/// Among equations that say the same, up to the order of a sum's and a product's operands and the names of reduced
/// axes, the first stays and the others read it.
void merge_equal_equations(Diagram& diagram, std::vector<DerivationStep>& steps);

/// A map that is read at other indices than its own is written where it is read, when it is cheap or read once.
void inline_shifted_maps(Diagram& diagram, std::vector<DerivationStep>& steps);

/// A sum over k = c · block with factors that depend on k // c alone becomes a sum over blocks of sums in them, outside
/// of which the factors stand.
void sum_blocks(Diagram& diagram, std::vector<DerivationStep>& steps);

/// A sum over a product of three operands or more becomes sums over products of two in the order with the fewest FLOPs,
/// then the least that is stored between them: exactly for up to eight operands, greedily beyond.
void order_contractions(Diagram& diagram, std::vector<DerivationStep>& steps);

}  // namespace napkin
