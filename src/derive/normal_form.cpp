#include "derive/normal_form.hpp"

namespace napkin {

Diagram normal_form(const Diagram& diagram, const Rewriting& chosen, std::vector<DerivationStep>& steps) {
    Diagram out = diagram;
    if (chosen.grouped) group_rows(out, steps);
    if (chosen.packed) pack_terms(out, steps);
    if (chosen.phased) split_phases(out, steps);
    split_conditions(out, steps);
    if (chosen.padded) pad_reads(out, steps);
    if (chosen.unrolled) unroll_windows(out, steps);
    join_dimensions(out, steps);
    unify_axes(out, steps);
    flatten_axes(out, chosen.flat_rows, steps);
    if (chosen.windows) flatten_window_rows(out, steps);
    drop_exact_casts(out, steps);
    move_scales(out, steps);
    merge_equal_equations(out, steps);
    inline_shifted_maps(out, chosen.padded, steps);
    split_sums(out, steps);
    sum_blocks(out, steps);
    order_contractions(out, chosen.nested, steps);
    if (chosen.again) compute_again(out, steps);
    return out;
}

}  // namespace napkin
