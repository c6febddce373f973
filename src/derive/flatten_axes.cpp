// Axes that stand beside each other wherever they occur become one. In sum(h, k) A[q, h, k] * W[h, k, n] the arrays
// have the values of k one after the other for each h. Products then have one reduced axis. So do axes along which
// windows move (diagram/window_rows.hpp). Products then have one axis of rows.
#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "derive/normal_form.hpp"
#include "diagram/flat_axes.hpp"
#include "diagram/window_rows.hpp"
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

/// The axes become `whole` in these arrays. What else has them in equations that define one has values of its parts, as
/// windows have.
void flatten(Diagram& diagram, const Run& run, AxisId whole, const std::vector<ArrayId>& arrays, const char* why,
             std::vector<DerivationStep>& steps) {
    const auto axes_flattened = [&](std::vector<AxisId> axes) {
        return flattened(std::move(axes), run, whole, [](AxisId axis) { return axis; });
    };
    const std::vector<Expr> values = values_of_parts(run, axis_index(whole));
    Edit edit;
    for (const ArrayId id : arrays) {
        Array& array = diagram.arrays[id];
        array.axes = axes_flattened(std::move(array.axes));
        edit.axes.emplace_back(id, array.axes);
    }
    for (Equation& e : diagram.equations) {
        const Equation before = e;
        e.body = transform(e.body, [&](const Expr& node) -> Expr {
            const auto* r = as<Read>(node);
            return r && contains(arrays, r->array)
                       ? read(r->array, flattened(r->indices, run, Index(Affine::axis(whole)),
                                                  [](const Index& index) { return index.single_axis(); }))
                       : node;
        });
        if (contains(arrays, e.target))
            e.body = substitute_axes(e.body, [&](AxisId axis) -> std::optional<Index> {
                const auto part = find(run, axis);
                return part == run.end() ? std::nullopt : std::optional(Index::of(values[at(part - run.begin())]));
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
    steps.push_back({"flatten axes", "split axis", why,
                     fmt::format("{} are one axis, {}", names, diagram.axis(whole).name), range, std::move(edit)});
}

std::vector<ArrayId> arrays_with(const Diagram& diagram, AxisId axis) {
    std::vector<ArrayId> out;
    for (const ArrayId id : diagram.arrays.ids())
        if (contains(diagram.array(id).axes, axis)) out.push_back(id);
    return out;
}

}  // namespace

void flatten_axes(Diagram& diagram, bool rows, std::vector<DerivationStep>& steps) {
    std::vector<Run> runs = flat_runs(diagram);
    if (rows) append(runs, flat_rows(diagram));
    for (const Run& run : runs)
        if (const AxisId whole = flat_axis_of(diagram, run); whole >= 0)
            flatten(diagram, run, whole, arrays_with(diagram, run.front()),
                    "they stand beside each other, in this order, wherever one of them does", steps);
}

void flatten_window_rows(Diagram& diagram, std::vector<DerivationStep>& steps) {
    for (const Run& run : window_rows(diagram)) {
        const AxisId whole = flat_axis_of(diagram, run);
        // Where two runs have a common axis, the first may have taken it.
        if (whole < 0 || !contains(window_rows(diagram), run)) continue;
        flatten(diagram, run, whole, arrays_with_rows(diagram, run),
                "a product takes its rows in any order, from any place", steps);
    }
}

}  // namespace napkin
