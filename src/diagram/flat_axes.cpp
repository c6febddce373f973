#include "diagram/flat_axes.hpp"

#include <functional>
#include <set>

#include "diagram/product.hpp"
#include "support/ids.hpp"
#include "support/ranges.hpp"
#include "support/text.hpp"

namespace napkin {
namespace {

using Run = std::vector<AxisId>;

/// The axis that stands alone in an index; -1: another index.
AxisId plain_axis(const Read& r, std::size_t dimension) { return r.indices[dimension].single_axis(); }

class Runs {
public:
    Runs(const Diagram& diagram, bool of_results)
        : d_(diagram), of_results_(of_results), next_(diagram.axes.size(), AxisId(-1)) {
        for (const AxisId a : d_.axes.ids()) next_[at(a)] = follower(a);
        for (const AxisId a : d_.axes.ids())
            if (next_[at(a)] >= 0 && !are_one(a, next_[at(a)])) next_[at(a)] = -1;
    }

    /// The runs for which the test holds, each with the outermost axis first.
    [[nodiscard]] std::vector<Run> that(const std::function<bool(const Run&)>& test) const {
        std::vector<Run> out;
        std::set<AxisId> inner;
        for (const AxisId a : next_)
            if (a >= 0) inner.insert(a);
        for (const AxisId first : d_.axes.ids()) {
            if (inner.contains(first)) continue;
            Run run{first};
            while (next_[at(run.back())] >= 0) run.push_back(next_[at(run.back())]);
            if (run.size() > 1 && test(run)) out.push_back(std::move(run));
        }
        return out;
    }

private:
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
        if (is_named_in_schedule(d_, a) || is_named_in_schedule(d_, b)) return false;
        for (const Array& array : d_.arrays)
            if (!of_results_ && array.role == ArrayRole::output && contains(array.axes, a)) return false;
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
    bool of_results_;           ///< whether axes of results are taken, too
    std::vector<AxisId> next_;  ///< by axis
};

/// The axes in the order of the first array that has them all; empty: there is none.
std::vector<AxisId> in_order_of_an_array(const Diagram& diagram, const std::vector<AxisId>& axes) {
    for (const Array& array : diagram.arrays) {
        std::vector<AxisId> ordered;
        for (const AxisId axis : array.axes)
            if (contains(axes, axis)) ordered.push_back(axis);
        if (ordered.size() == axes.size()) return ordered;
    }
    return {};
}

/// The same, by a read with an index for each of them, as W[f, 2 * i + p, 2 * j + q, c].
std::vector<AxisId> in_order_of_a_read(const Diagram& diagram, const std::vector<AxisId>& axes) {
    for (const Equation& e : diagram.equations) {
        std::vector<AxisId> found;
        visit(e.body, [&](const Expr& node) {
            const auto* r = as<Read>(node);
            if (!r || !found.empty()) return;
            std::vector<AxisId> ordered;
            bool is_apart = true;
            for (const Index& index : r->indices) {
                std::vector<AxisId> here = index.axes();
                std::erase_if(here, [&](AxisId axis) { return !contains(axes, axis); });
                is_apart = is_apart && here.size() < 2 && (here.empty() || !contains(ordered, here.front()));
                append(ordered, here);
            }
            if (is_apart && ordered.size() == axes.size()) found = ordered;
        });
        if (!found.empty()) return found;
    }
    return {};
}

std::vector<AxisId> in_order(const Diagram& diagram, const std::vector<AxisId>& axes) {
    std::vector<AxisId> of_array = in_order_of_an_array(diagram, axes);
    return of_array.empty() ? in_order_of_a_read(diagram, axes) : of_array;
}

/// The axes whose sizes are multiplied; empty: the size is not such a product.
std::vector<AxisId> factors_of(const Size& size) {
    if (size.terms().size() != 1) return {};
    const auto& [monomial, coefficient] = *size.terms().begin();
    if (coefficient != Rational(1) || monomial.size() < 2) return {};
    std::vector<AxisId> axes;
    for (const auto& [symbol, exponent] : monomial) {
        if (symbol.kind != SymbolKind::axis || exponent != Rational(1)) return {};
        axes.push_back(symbol.axis());
    }
    return axes;
}

bool has_any(const std::vector<AxisId>& axes, const std::vector<AxisId>& of) {
    return any_of(axes, [&](AxisId axis) { return contains(of, axis); });
}

/// The sets of axes over which products of two arrays are summed, without those that have an axis of a run.
std::vector<Run> summed_together(const Diagram& diagram, const std::vector<Run>& runs) {
    std::vector<Run> out;
    for (const Equation& e : diagram.equations) {
        const auto* product = as_product(e.body);
        const bool multiplies = product && as<Read>(product->a) && as<Read>(product->b);
        if (e.reduce != ReduceOp::sum || e.reduce_axes.size() < 2 || !multiplies ||
            any_of(runs, [&](const Run& run) { return has_any(run, e.reduce_axes); }))
            continue;
        Run parts = in_order(diagram, e.reduce_axes);
        if (!parts.empty() && !contains(out, parts)) out.push_back(std::move(parts));
    }
    return out;
}

/// Whether the equation is a product of two factors of which one alone has the axis.
bool are_rows_of_product(const Equation& e, AxisId axis) {
    const auto* product = e.reduce == ReduceOp::sum ? as_product(e.body) : nullptr;
    return product && depends_on_axis(product->a, axis) != depends_on_axis(product->b, axis);
}

/// Whether some equation reduces the axis and another one's result has it, as in a normalisation over several axes.
bool is_reduced_and_kept(const Diagram& diagram, AxisId axis) {
    return any_of(diagram.equations, [&](const Equation& e) { return contains(e.reduce_axes, axis); }) &&
           any_of(diagram.equations, [&](const Equation& e) { return contains(diagram.array(e.target).axes, axis); });
}

}  // namespace

std::vector<Run> flat_runs(const Diagram& diagram) {
    return Runs(diagram, false).that([&](const Run& run) {
        return any_of(diagram.equations, [&](const Equation& e) { return contains(e.reduce_axes, run.front()); });
    });
}

std::vector<Run> flat_rows(const Diagram& diagram) {
    return Runs(diagram, true).that([&](const Run& run) {
        const AxisId first = run.front();
        return is_reduced_and_kept(diagram, first) ||
               (none_of(diagram.equations, [&](const Equation& e) { return contains(e.reduce_axes, first); }) &&
                any_of(diagram.equations, [&](const Equation& e) { return are_rows_of_product(e, first); }));
    });
}

bool reduces_flat_rows(const Diagram& diagram) {
    return any_of(flat_rows(diagram), [&](const Run& run) { return is_reduced_and_kept(diagram, run.front()); });
}

std::vector<AxisId> parts_of_flat_axis(const Diagram& diagram, AxisId axis) {
    const auto size = diagram.axis(axis).exact_size();
    const std::vector<AxisId> parts = size ? factors_of(*size) : std::vector<AxisId>{};
    const auto has = [&](const std::vector<AxisId>& axes) { return contains(axes, axis); };
    if (parts.empty() || any_of(diagram.arrays, [&](const Array& a) { return has(a.axes); }) ||
        any_of(diagram.equations, [&](const Equation& e) { return has(e.reduce_axes); }))
        return {};
    return in_order(diagram, parts);
}

AxisId flat_axis_of(const Diagram& diagram, const std::vector<AxisId>& parts) {
    const auto all = diagram.axes.ids();
    const auto found = find_if(all, [&](AxisId axis) { return parts_of_flat_axis(diagram, axis) == parts; });
    return found == all.end() ? AxisId(-1) : *found;
}

std::vector<Expr> values_of_parts(const std::vector<AxisId>& parts, const Expr& value) {
    std::vector<Expr> out(parts.size());
    Expr behind;
    for (std::size_t p = parts.size(); p-- > 0;) {
        const Expr size = axis_size(parts[p]), rest = behind ? binary(BinaryOp::floor_div, value, behind) : value;
        out[p] = p > 0 ? binary(BinaryOp::mod, rest, size) : rest;
        behind = behind ? binary(BinaryOp::mul, size, behind) : size;
    }
    return out;
}

Expr value_of_flat_axis(const std::vector<AxisId>& parts) {
    Expr value = axis_index(parts.front());
    for (std::size_t p = 1; p < parts.size(); ++p)
        value = binary(BinaryOp::add, binary(BinaryOp::mul, value, axis_size(parts[p])), axis_index(parts[p]));
    return value;
}

Size size_of_flat_axis(const std::vector<AxisId>& parts) {
    Size out(1);
    for (const AxisId axis : parts) out = out * Size(axis_symbol(axis));
    return out;
}

bool is_named_in_schedule(const Diagram& diagram, AxisId axis) {
    const std::string& name = diagram.axis(axis).name;
    return any_of(diagram.schedule, [&](const ScheduleItem& item) {
        return item.axis == name || any_of(item.clauses, [&](const ScheduleClause& clause) {
                   return any_of(clause.names, [&](const ScheduleClause::Name& n) { return n.text == name; });
               });
    });
}

void add_flat_axes(Diagram& diagram) {
    // A schedule may name the parts, and a later one may not.
    Diagram any = diagram;
    any.schedule.clear();
    std::vector<Run> runs = flat_runs(any);
    append(runs, summed_together(any, runs));
    append(runs, flat_rows(any));
    for (const Run& run : runs) {
        if (flat_axis_of(diagram, run) >= 0) continue;
        const AxisId flat = add_axis(diagram, join(names_of(diagram.axes, run), ""), 1, run.front());
        diagram.axes[flat].size = size_of_flat_axis(run);
        diagram.axes[flat].is_any = any_of(run, [&](AxisId axis) { return diagram.axis(axis).is_any; });
    }
}

}  // namespace napkin
