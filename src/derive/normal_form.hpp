#pragma once
// What is rewritten before kernels are chosen, so that a diagram's spelling does not decide what fuses. Each pass is
// one function that edits the diagram and records every edit.
#include <vector>

#include "derive/derived.hpp"

namespace napkin {

/// All passes, in the order below, and the chosen ones.
Diagram normal_form(const Diagram& diagram, const Rewriting& chosen, std::vector<DerivationStep>& steps);

/// The diagram in which the size of an axis is given as that of neighbouring dimensions of an input. All reads of the
/// input along these must recombine to the axis, and the sizes must be numbers that agree.
Diagram with_sizes_of_joined_dimensions(Diagram diagram);

/// Neighbouring dimensions of an input become one where every read of them recombines to one index. For example, X[w //
/// 64, w % 64] is X[w], whose rows follow each other in memory. Some axis must have as many values as the dimensions
/// together.
void join_dimensions(Diagram& diagram, std::vector<DerivationStep>& steps);

/// An axis that runs over the same dimension as another becomes that one, if nothing tells the two apart. The maximum
/// of S[a, j] over j and an S[a, t] beside it then have one axis.
void unify_axes(Diagram& diagram, std::vector<DerivationStep>& steps);

/// Each run of flat_runs becomes its flat axis, if the diagram has that (diagram/flat_axes.hpp). For example, sum(h, k)
/// A[q, h, k] * W[h, k, n] is a sum over one axis of h · k values. With `rows`, each run of flat_rows does so, too.
void flatten_axes(Diagram& diagram, bool rows, std::vector<DerivationStep>& steps);

/// The axes along which windows of a product move become one axis of rows (diagram/window_rows.hpp).
void flatten_window_rows(Diagram& diagram, std::vector<DerivationStep>& steps);

/// A value of a narrower floating-point type is read as it is, without a cast to f32, in which it is the same value.
void drop_exact_casts(Diagram& diagram, std::vector<DerivationStep>& steps);

/// A number that depends on sizes alone multiplies a sum, not each of its terms, and a quotient by it is a product. So
/// (sum(k) Q[q, k] * K[x, k]) / size(k)^0.5 is what it is with size(k)^-0.5 inside. Integers stay as they are.
void move_scales(Diagram& diagram, std::vector<DerivationStep>& steps);

/// If several equations say the same, the first stays and the others read it. The order of a sum's and a product's
/// operands and the names of reduced axes do not count.
void merge_equal_equations(Diagram& diagram, std::vector<DerivationStep>& steps);

/// A map that is read at other indices than its own is inlined where it is read, if it is cheap or read once.
/// `keeps_padding`: padded arrays are not.
void inline_shifted_maps(Diagram& diagram, bool keeps_padding, std::vector<DerivationStep>& steps);

/// Conditions around products under a sum move to the factors whose axes they have (diagram/factor_conditions.hpp).
void split_conditions(Diagram& diagram, std::vector<DerivationStep>& steps);

/// Factors that conditions alone keep inside of their arrays are read from arrays with zeros around the values
/// (diagram/padded_reads.hpp). Factors of products then have no conditions, as in a convolution without padding.
void pad_reads(Diagram& diagram, std::vector<DerivationStep>& steps);

/// Sums of products of which each place has every n-th term alone are sums of these (diagram/phases.hpp).
void split_phases(Diagram& diagram, std::vector<DerivationStep>& steps);

/// Products over windows have the values of each window beside each other (diagram/unrolled_windows.hpp).
void unroll_windows(Diagram& diagram, std::vector<DerivationStep>& steps);

/// Products whose rows choose their matrix by an integer have the rows of one matrix beside each other
/// (diagram/grouped_rows.hpp). A tile of them then has one matrix.
void group_rows(Diagram& diagram, std::vector<DerivationStep>& steps);

/// Sums whose terms choose their place by an integer have the terms of one place beside each other
/// (diagram/packed_terms.hpp). A place then runs over its own terms alone.
void pack_terms(Diagram& diagram, std::vector<DerivationStep>& steps);

/// A sum of several addends, some of which are products of matrices, becomes a sum of sums. An addend without the
/// summed axis is multiplied by its size.
void split_sums(Diagram& diagram, std::vector<DerivationStep>& steps);

/// A sum over k = c · block becomes a sum over blocks of sums in them. Factors that depend on k // c alone then stand
/// outside of the inner sums.
void sum_blocks(Diagram& diagram, std::vector<DerivationStep>& steps);

/// A sum over a product of three operands or more becomes sums over products of two. The order is the one with the
/// fewest FLOPs, then with the least that is stored between them. It is found exactly for up to eight operands,
/// greedily beyond. With `nested`, sums of up to eight operands that stay whole become sums inside of sums, each of a
/// product of two. So sum(i, j) X[b, i] * W[o, i, j] * Z[b, j] becomes sum(i) X[b, i] * (sum(j) W[o, i, j] * Z[b, j]).
void order_contractions(Diagram& diagram, bool nested, std::vector<DerivationStep>& steps);

/// Where reductions consume a temporary along different axes, as a row's sum and a column's sum do, it is computed for
/// each of them. So are the temporaries that it is made of, as far as they are consumed along both. Then kernels that
/// stream different axes have no array of all pairs between them.
void compute_again(Diagram& diagram, std::vector<DerivationStep>& steps);

}  // namespace napkin
