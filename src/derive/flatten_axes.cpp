// Axes that stand beside each other wherever they occur become one. In sum(h, k) A[q, h, k] * W[h, k, n] the arrays
// have the values of k one after the other for each h. Products then have one reduced axis.
#include <fmt/format.h>

#include "derive/normal_form.hpp"
#include "diagram/flat_axes.hpp"
#include "support/ids.hpp"
#include "support/ranges.hpp"
#include "support/text.hpp"

namespace napkin {
namespace {

using Run = std::vector<AxisId>;

/// A list with the run's place taken by one element.
template <class T, class F>
std::vector<T> flattened(std::vector<T> list, const Run& run, const T& whole, F axis_of) {
    const auto first = std::find_if(list.begin(), list.end(), [&](const T& x) { return axis_of(x) == run.front(); });
    if (first == list.end()) return list;
    *first = whole;
    list.erase(first + 1, first + static_cast<std::ptrdiff_t>(run.size()));
    return list;
}

}  // namespace

void flatten_axes(Diagram& diagram, bool rows, std::vector<DerivationStep>& steps) {
    std::vector<Run> runs = flat_runs(diagram);
    if (rows) append(runs, flat_rows(diagram));
    for (const Run& run : runs) {
        const AxisId whole = flat_axis_of(diagram, run);
        if (whole < 0) continue;
        const auto axes_flattened = [&](std::vector<AxisId> axes) {
            return flattened(std::move(axes), run, whole, [](AxisId axis) { return axis; });
        };
        Edit edit;
        for (const ArrayId id : diagram.arrays.ids()) {
            Array& array = diagram.arrays[id];
            if (!contains(array.axes, run.front())) continue;
            array.axes = axes_flattened(std::move(array.axes));
            edit.axes.emplace_back(id, array.axes);
        }
        for (Equation& e : diagram.equations) {
            const Equation before = e;
            e.body = transform(e.body, [&](const Expr& node) -> Expr {
                const auto* r = as<Read>(node);
                return r ? read(r->array, flattened(r->indices, run, Index(Affine::axis(whole)),
                                                    [](const Index& index) { return index.single_axis(); }))
                         : node;
            });
            if (contains(e.reduce_axes, run.front())) {
                std::erase_if(e.reduce_axes, [&](AxisId axis) { return contains(run, axis); });
                e.reduce_axes.push_back(whole);
                sort(e.reduce_axes);
            }
            if (!(e == before)) edit.equations.push_back({before, {e}});
        }
        const std::string names = join(names_of(diagram.axes, run), ", ");
        const SourceRange range = edit.equations.front().before.range;
        steps.push_back({"flatten axes", "split axis",
                         "they stand beside each other, in this order, wherever one of them does",
                         fmt::format("{} are one axis, {}", names, diagram.axis(whole).name), range, std::move(edit)});
    }
}

}  // namespace napkin
