#include "diagram/window_rows.hpp"

#include "diagram/flat_axes.hpp"
#include "diagram/guards.hpp"
#include "diagram/product.hpp"
#include "support/ids.hpp"
#include "support/ranges.hpp"
#include "support/text.hpp"

namespace napkin {
namespace {

using Run = std::vector<AxisId>;

/// The dimension of the read that the axis alone shifts, or is; -1: there is none, or are several.
int dimension_of(const Read& r, AxisId axis) {
    int found = -1;
    for (std::size_t d = 0; d < r.indices.size(); ++d) {
        if (!r.indices[d].depends_on(axis)) continue;
        const Affine* form = r.indices[d].affine();
        if (found >= 0 || !form || form->coefficient(axis) <= 0) return -1;
        found = static_cast<int>(d);
    }
    return found;
}

/// Whether the axes shift dimensions that follow each other, and are not all rows of the array as it lies.
bool are_windows(const Read& r, const Run& run) {
    bool are_rows = true;
    for (std::size_t i = 0; i < run.size(); ++i) {
        const int d = dimension_of(r, run[i]);
        if (d < 0 || at(d) + 1 >= r.indices.size() || (i > 0 && d != dimension_of(r, run[i - 1]) + 1)) return false;
        are_rows = are_rows && r.indices[at(d)].is_axis(run[i]);
    }
    return !are_rows;
}

/// A factor of a sum of products: a read, and zeros where some conditions do not hold.
struct Factor {
    Expr whole;
    const Read* read;
};

/// The factors of a sum of products of two arrays; none: the equation is another one.
std::vector<Factor> factors_read(const Equation& e) {
    const std::vector<Expr> factors = e.reduce == ReduceOp::sum ? factors_of(e.body) : std::vector<Expr>();
    std::vector<Factor> out;
    for (const Expr& factor : factors) {
        Expr inner = factor;
        while (const Select* outside = zero_elsewhere(inner)) inner = outside->a;
        if (const auto* r = as<Read>(inner)) out.push_back({factor, r});
    }
    return out.size() == 2 && factors.size() == 2 ? out : std::vector<Factor>();
}

bool has_run(const std::vector<AxisId>& axes, const Run& run) {
    return std::search(axes.begin(), axes.end(), run.begin(), run.end()) != axes.end();
}

/// Whether the read has the run where its array has it.
bool is_plain(const Diagram& d, const Read& r, const Run& run) {
    const std::vector<AxisId>& axes = d.array(r.array).axes;
    const auto first = std::search(axes.begin(), axes.end(), run.begin(), run.end());
    if (first == axes.end()) return false;
    for (std::size_t i = 0; i < run.size(); ++i)
        if (!r.indices[static_cast<std::size_t>(first - axes.begin()) + i].is_axis(run[i])) return false;
    return true;
}

bool depends_on_any(const Expr& e, const Run& run) {
    return any_of(run, [&](AxisId axis) { return depends_on_axis(e, axis); });
}

/// Whether the equation, whose target has the run, has it in plain reads and in windows of a product alone.
bool has_rows_alone(const Diagram& d, const Equation& e, const Run& run) {
    const std::vector<Factor> factors = factors_read(e);
    const Expr rest = transform(e.body, [&](const Expr& node) -> Expr {
        const bool is_window = any_of(factors,
                                      [&](const Factor& f) { return f.whole == node && are_windows(*f.read, run); });
        return is_window || (as<Read>(node) && is_plain(d, *as<Read>(node), run)) ? constant(0) : node;
    });
    return !depends_on_any(rest, run);
}

}  // namespace

std::vector<ArrayId> arrays_with_rows(const Diagram& diagram, const Run& run) {
    std::vector<ArrayId> out;
    const auto has_rows = [&](const Equation& e) { return has_run(diagram.array(e.target).axes, run); };
    const auto each_read = [&](const Equation& e, const auto& f) {
        visit(e.body, [&](const Expr& node) {
            if (const auto* r = as<Read>(node)) f(*r);
        });
    };
    for (const Equation& e : diagram.equations) {
        if (!has_rows(e)) continue;
        if (!has_rows_alone(diagram, e, run)) return {};
        if (!contains(out, e.target)) out.push_back(e.target);
        each_read(e, [&](const Read& r) {
            if (is_plain(diagram, r, run) && !contains(out, r.array)) out.push_back(r.array);
        });
    }
    bool are_all = true;
    for (const Equation& e : diagram.equations)
        each_read(e, [&](const Read& r) {
            are_all = are_all && (!contains(out, r.array) || (has_rows(e) && is_plain(diagram, r, run)));
        });
    return are_all ? out : std::vector<ArrayId>();
}

std::vector<Run> window_rows(const Diagram& diagram) {
    std::vector<Run> out;
    for (const Equation& e : diagram.equations) {
        const std::vector<Factor> factors = factors_read(e);
        for (std::size_t f = 0; f < factors.size(); ++f) {
            const Read& windows = *factors[f].read;
            const Expr& other = factors[1 - f].whole;
            Run run;
            for (const AxisId axis : diagram.array(e.target).axes) {
                const bool is_next = dimension_of(windows, axis) >= 0 && !depends_on_axis(other, axis) &&
                                     (run.empty() || dimension_of(windows, axis) == dimension_of(windows, run.back()) + 1);
                if (is_next)
                    run.push_back(axis);
                else if (!run.empty())
                    break;
            }
            const bool is_named = any_of(run, [&](AxisId axis) { return is_named_in_schedule(diagram, axis); });
            if (run.size() > 1 && !is_named && !contains(out, run) && are_windows(windows, run) &&
                !arrays_with_rows(diagram, run).empty())
                out.push_back(std::move(run));
        }
    }
    return out;
}

Diagram with_axes_of_window_rows(Diagram diagram) {
    for (const Run& run : window_rows(diagram)) {
        if (flat_axis_of(diagram, run) >= 0) continue;
        const AxisId flat = add_axis(diagram, join(names_of(diagram.axes, run), ""), 1, run.front());
        diagram.axes[flat].size = size_of_flat_axis(run);
        diagram.axes[flat].walks = true;
        diagram.axes[flat].is_any = any_of(run, [&](AxisId axis) { return diagram.axis(axis).is_any; });
    }
    return diagram;
}

}  // namespace napkin
