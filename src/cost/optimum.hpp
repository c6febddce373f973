#pragma once
// H*(a, M): the fewest transfers of a kernel when a core holds M values (paper.md §§4–5, Eq. 4), for the standard forms.
//
// With stream sizes at their least, memory is what a group maintains: M ≥ y·P, P a product of powers of group sizes. H is a sum of
// terms α_t·Π g_i^-B_ti. The minimum over the group sizes is closed when every term is a power of P (one broadcast to all groups), or when
// there are as many terms as group sizes and they balance (square tiles): a geometric program without degrees of freedom.
#include <string>
#include <vector>

#include "cost/transfers.hpp"

namespace napkin {

struct Optimum {
    bool closed = false;
    Size transfers;               ///< H*: Σ α_t·M^-β_t in the axes' sizes and M; when it is not closed, H itself
    Size memory;                  ///< the constraint: M ≥ memory, in group sizes, at large sizes
    std::vector<std::string> at;  ///< the group sizes that reach it: "g_a = M^(1/2)", "g_h = 1"
    std::string why_not;          ///< not closed: why the optimum is numeric
};

Optimum optimum(const KernelCost& cost);

}  // namespace napkin
