#include "schedule/quotients.hpp"

#include "support/ids.hpp"
#include "support/ranges.hpp"

namespace napkin {

bool is_result_alone(const ScheduledKernel& kernel, const Step& step) {
    const auto* compute = step.statement ? std::get_if<Compute>(step.statement) : nullptr;
    return compute && !compute->reduce && !compute->carry && !step.is_whole &&
           none_of(kernel.steps, [&](const Step& other) { return other.atom >= 0 && reads(other, compute->variable); });
}

std::optional<CommonDivisor> common_divisor(const ScheduledKernel& kernel, const Step& step) {
    if (kernel.in_blocks() || step.atom < 0 || !is_result_alone(kernel, step)) return std::nullopt;
    const Atom& atom = kernel.atom(step);
    const auto* b = as<Binary>(std::get<Compute>(*step.statement).body);
    if (!b || b->op != BinaryOp::div || atom.kind != AtomKind::block || atom.vector_axis < 0) return std::nullopt;
    // With one vector the reciprocal serves once. Where rows are looped over inside the vectors, the divisors
    // alternate.
    if (!atom.vector_inner || kernel.span(atom.vector_axis, step.scope).tile <= kernel.lanes) return std::nullopt;
    const std::vector<AxisId> axes = free_axes(b->b);
    if (contains(axes, atom.vector_axis) || !contains(free_axes(b->a), atom.vector_axis)) return std::nullopt;
    if (axes.empty() && read_arrays(b->b).empty()) return std::nullopt;
    return CommonDivisor{b->a, b->b};
}

}  // namespace napkin
