#include "diagram/same_size.hpp"

namespace napkin {

Size size_by_axes(const Diagram& diagram, AxisId axis) {
    const auto given = [&](AxisId of) {
        const auto size = diagram.axis(of).exact_size();
        return size && !size->as_constant() ? size : std::nullopt;
    };
    if (!given(axis)) return {axis_symbol(axis)};
    Size size = *given(axis);
    // Sizes in a cycle are an error elsewhere: no chain is longer than there are axes.
    for (std::size_t step = 0; step < diagram.axes.size(); ++step) {
        Size next = size;
        for (const Symbol s : size.symbols())
            if (s.axis() != axis && given(s.axis())) next = next.substitute(s, *given(s.axis()));
        if (next == size) break;
        size = std::move(next);
    }
    return size;
}

bool same_size(const Diagram& diagram, AxisId a, AxisId b) {
    return a == b || size_by_axes(diagram, a) == size_by_axes(diagram, b);
}

}  // namespace napkin
