// Axes that stand beside each other wherever they occur: the two of sum(h, k) A[q, h, k] * W[h, k, n], whose arrays have
// the rows of k one after the other for each h. One axis says the same, and products then have one reduced axis.
#include <fmt/format.h>

#include <set>

#include "derive/normal_form.hpp"
#include "support/ids.hpp"
#include "support/ranges.hpp"
#include "support/text.hpp"

namespace napkin {
namespace {

using Run = std::vector<AxisId>;

/// The axis that stands alone in an index; -1: another index.
AxisId plain_axis(const Read& r, std::size_t dimension) { return r.indices[dimension].single_axis(); }

class Flattening {
public:
    explicit Flattening(const Diagram& diagram) : d_(diagram), next_(diagram.axes.size(), AxisId(-1)) {
        for (const AxisId a : d_.axes.ids()) next_[at(a)] = follower(a);
        for (const AxisId a : d_.axes.ids())
            if (next_[at(a)] >= 0 && !are_one(a, next_[at(a)])) next_[at(a)] = -1;
    }

    /// Axes that become one, the outermost first. Some reduction has them all.
    [[nodiscard]] std::vector<Run> runs() const {
        std::vector<Run> out;
        std::set<AxisId> inner;
        for (const AxisId a : next_)
            if (a >= 0) inner.insert(a);
        for (const AxisId first : d_.axes.ids()) {
            if (inner.contains(first)) continue;
            Run run{first};
            while (next_[at(run.back())] >= 0) run.push_back(next_[at(run.back())]);
            if (run.size() > 1 && any_of(d_.equations, [&](const Equation& e) { return contains(e.reduce_axes, first); }))
                out.push_back(std::move(run));
        }
        return out;
    }

private:
    [[nodiscard]] bool is_named(AxisId axis) const {
        const std::string& name = d_.axis(axis).name;
        return any_of(d_.schedule, [&](const ScheduleItem& item) {
            return item.axis == name || any_of(item.clauses, [&](const ScheduleClause& clause) {
                       return any_of(clause.names, [&](const ScheduleClause::Name& n) { return n.text == name; });
                   });
        });
    }
    [[nodiscard]] bool is_used(ArrayId array) const {
        return d_.array(array).role == ArrayRole::input || d_.definition(array) != nullptr;
    }

    /// The axis behind this one in every array, which stands behind no other; -1: there is none.
    [[nodiscard]] AxisId follower(AxisId axis) const {
        AxisId found = -1;
        for (const ArrayId id : d_.arrays.ids()) {
            const auto& axes = d_.array(id).axes;
            const auto here = find(axes, axis);
            if (here == axes.end() || !is_used(id)) continue;
            if (here + 1 == axes.end() || (found >= 0 && found != here[1])) return -1;
            found = here[1];
        }
        if (found < 0) return -1;
        for (const ArrayId id : d_.arrays.ids()) {
            const auto& axes = d_.array(id).axes;
            const auto here = find(axes, found);
            if (here != axes.end() && is_used(id) && (here == axes.begin() || here[-1] != axis)) return -1;
        }
        return found;
    }

    /// Whether every equation has both axes or none, and reads both of them as they stand in arrays.
    [[nodiscard]] bool are_one(AxisId a, AxisId b) const {
        if (is_named(a) || is_named(b)) return false;
        for (const Array& array : d_.arrays)
            if (array.role == ArrayRole::output && contains(array.axes, a)) return false;
        return all_of(d_.equations, [&](const Equation& e) {
            if (contains(e.reduce_axes, a) != contains(e.reduce_axes, b)) return false;
            bool are_plain = true;
            // What is left where each pair is taken away has neither axis.
            const Expr rest = transform(e.body, [&](const Expr& node) -> Expr {
                const auto* r = as<Read>(node);
                if (!r) return node;
                const auto& axes = d_.array(r->array).axes;
                const auto here = find(axes, a);
                const auto dimension = static_cast<std::size_t>(here - axes.begin());
                if (here == axes.end()) return node;
                are_plain = are_plain && plain_axis(*r, dimension) == a && plain_axis(*r, dimension + 1) == b;
                std::vector<Index> others = r->indices;
                others.erase(others.begin() + static_cast<std::ptrdiff_t>(dimension),
                             others.begin() + static_cast<std::ptrdiff_t>(dimension) + 2);
                Expr sum = constant(0);
                for (const Index& index : others) sum = binary(BinaryOp::add, sum, index.value());
                return sum;
            });
            return are_plain && !depends_on_axis(rest, a) && !depends_on_axis(rest, b);
        });
    }

    const Diagram& d_;
    std::vector<AxisId> next_;  ///< by axis
};

Size size_of(const Run& run) {
    Size out(1);
    for (const AxisId axis : run) out = out * Size(axis_symbol(axis));
    return out;
}

/// A list with the run's place taken by one element.
template <class T, class F>
std::vector<T> flattened(std::vector<T> list, const Run& run, const T& whole, F axis_of) {
    const auto first = std::find_if(list.begin(), list.end(), [&](const T& x) { return axis_of(x) == run.front(); });
    if (first == list.end()) return list;
    *first = whole;
    list.erase(first + 1, first + static_cast<std::ptrdiff_t>(run.size()));
    return list;
}

bool is_free(const Diagram& d, AxisId axis) {
    return none_of(d.arrays, [&](const Array& a) { return contains(a.axes, axis); }) &&
           none_of(d.equations, [&](const Equation& e) { return contains(e.reduce_axes, axis); });
}

}  // namespace

Diagram with_flat_axes(Diagram diagram, const std::vector<std::string>& named) {
    Diagram normal = diagram;
    std::vector<DerivationStep> steps;
    join_dimensions(normal, steps);
    unify_axes(normal, steps);
    for (const Run& run : Flattening(normal).runs()) {
        if (any_of(run, [&](AxisId axis) { return contains(named, diagram.axis(axis).name); })) continue;
        const AxisId flat =
            add_axis(diagram, join(names_of(diagram.axes, run), "_"), 1, diagram.axis(run.front()).range);
        diagram.axes[flat].size = size_of(run);
    }
    return diagram;
}

void flatten_axes(Diagram& diagram, std::vector<DerivationStep>& steps) {
    for (const Run& run : Flattening(diagram).runs()) {
        const Size size = size_of(run);
        const auto all = diagram.axes.ids();
        const auto flat = find_if(all, [&](AxisId axis) { return diagram.axis(axis).size == size && is_free(diagram, axis); });
        if (flat == all.end()) continue;
        const AxisId whole = *flat;
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
