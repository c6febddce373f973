#include "diagram/verifier.hpp"

#include <fmt/format.h>

#include <set>

#include "support/limits.hpp"
#include "support/ranges.hpp"
#include "support/text.hpp"

namespace napkin {
namespace {

bool is_identifier(const std::string& name) {
    const auto fits = [](char c) { return is_name_character(c) || static_cast<unsigned char>(c) >= 0x80; };
    return !name.empty() && !is_digit(name[0]) && all_of(name, fits);
}

/// Whether an affine index has its terms in ascending order and none of them zero. An index that is not affine must be
/// made of the operators of indices, with axes, sizes, whole numbers and elements at its leaves.
bool is_normal(const Index& index) {
    if (const Affine* form = index.affine()) {
        for (std::size_t i = 0; i < form->terms.size(); ++i)
            if (form->terms[i].second == 0 || (i > 0 && form->terms[i - 1].first >= form->terms[i].first)) return false;
        return true;
    }
    return !affine_form(*index.expression()) && is_index(*index.expression());
}

class Verifier {
public:
    explicit Verifier(const Diagram& diagram)
        : d_(diagram), names_(diagram.names()), defined_(diagram.arrays.size(), false) {}

    std::vector<std::string> run() {
        check_names();
        check_sizes();
        check_arrays();
        // Ids that point nowhere would make every later check a fault of its own.
        if (!errors_.empty()) return std::move(errors_);
        for (const ArrayId i : d_.arrays.ids()) defined_[i] = d_.arrays[i].role == ArrayRole::input;
        for (const Equation& equation : d_.equations) check_equation(equation);
        for (const ArrayId i : d_.arrays.ids()) {
            if (!defined_[i]) error("{} is the target of no equation", d_.arrays[i].name);
        }
        return std::move(errors_);
    }

private:
    template <class... Args>
    void error(fmt::format_string<Args...> format, Args&&... args) {
        errors_.push_back(fmt::format(format, std::forward<Args>(args)...));
    }
    void check_sizes() {
        for (const Axis& axis : d_.axes) {
            if (!axis.size) continue;
            for (const Symbol s : axis.size->symbols())
                if (s.kind != SymbolKind::axis || !is_axis(s.axis()))
                    error("the size of {} is made of what is no axis", axis.name);
        }
    }
    [[nodiscard]] bool is_axis(AxisId id) const { return id >= 0 && static_cast<std::size_t>(id) < d_.axes.size(); }
    [[nodiscard]] bool is_array(ArrayId id) const { return id >= 0 && static_cast<std::size_t>(id) < d_.arrays.size(); }

    void check_names() {
        std::set<std::string> seen;
        const auto check = [&](const std::string& name, const char* kind) {
            if (!is_identifier(name)) error("the name \"{}\" of an {} is no identifier", name, kind);
            if (!seen.insert(name).second) error("the name {} is given twice", name);
        };
        for (const Axis& axis : d_.axes) check(axis.name, "axis");
        for (const Array& array : d_.arrays) check(array.name, "array");
        if (d_.axes.size() > limits::max_axes) error("{} axes, more than {}", d_.axes.size(), limits::max_axes);
        // What a derivation adds, some states for an equation, is no user's doing.
        if (d_.equations.size() > 8 * limits::max_equations) {
            error("{} equations, more than {}", d_.equations.size(), 8 * limits::max_equations);
        }
    }

    void check_arrays() {
        for (const Array& array : d_.arrays) {
            std::set<AxisId> seen;
            for (AxisId axis : array.axes) {
                if (!is_axis(axis)) error("{} has the unknown axis #{}", array.name, axis);
                if (!seen.insert(axis).second) error("{} has the axis {} twice", array.name, names_.axis(axis));
            }
            if (array.axes.size() > limits::max_axes_per_array) {
                error("{} has {} axes, more than {}", array.name, array.axes.size(), limits::max_axes_per_array);
            }
        }
        check_role(d_.inputs, ArrayRole::input, "input");
        check_role(d_.outputs, ArrayRole::output, "output");
    }

    void check_role(const std::vector<ArrayId>& list, ArrayRole role, const char* kind) {
        std::set<ArrayId> listed;
        for (ArrayId id : list) {
            if (!is_array(id)) {
                error("unknown {} #{}", kind, id);
                continue;
            }
            if (!listed.insert(id).second) error("{} is listed twice as {}", names_.array(id), kind);
            if (d_.array(id).role != role) error("{} is listed as {} and has another role", names_.array(id), kind);
        }
        for (const ArrayId i : d_.arrays.ids()) {
            if (d_.arrays[i].role == role && !listed.contains(i)) {
                error("{} is an {} and not listed as one", d_.arrays[i].name, kind);
            }
        }
    }

    void check_equation(const Equation& equation) {
        if (!is_array(equation.target)) {
            error("an equation defines the unknown array #{}", equation.target);
            return;
        }
        const Array& target = d_.array(equation.target);
        if (!equation.body) {
            error("the equation of {} has no body", target.name);
            return;
        }
        if (equation.reduce.has_value() == equation.reduce_axes.empty()) {
            error("the equation of {} has {}", target.name,
                  equation.reduce ? "a reduction over no axis" : "reduced axes and no reduction");
        }
        if (!std::is_sorted(equation.reduce_axes.begin(), equation.reduce_axes.end(), std::less_equal<>())) {
            error("the reduced axes of {} are not ascending", target.name);
        }
        std::set<AxisId> axes(target.axes.begin(), target.axes.end());
        for (AxisId axis : equation.reduce_axes) {
            if (!is_axis(axis)) error("the equation of {} reduces the unknown axis #{}", target.name, axis);
            if (!axes.insert(axis).second)
                error("the equation of {} reduces {}, which stays in the result", target.name, names_.axis(axis));
        }
        visit(equation.body, [&](const Expr& node) { check_node(target, axes, node); });
        if (target.role == ArrayRole::input) {
            error("the input {} is the target of an equation", target.name);
        } else if (defined_[at(equation.target)]) {
            error("{} is the target of two equations", target.name);
        }
        defined_[at(equation.target)] = true;
    }

    void check_node(const Array& target, const std::set<AxisId>& axes, const Expr& node) {
        if (const auto* index = as<AxisIndex>(node); index && !axes.contains(index->axis)) {
            error("the equation of {} uses the axis {}, over which it does not run", target.name, names_.axis(index->axis));
        }
        if (const auto* size = as<AxisSize>(node); size && !is_axis(size->axis)) {
            error("the equation of {} uses the size of the unknown axis #{}", target.name, size->axis);
        }
        const auto* r = as<Read>(node);
        if (!r) return;
        if (!is_array(r->array)) {
            error("the equation of {} reads the unknown array #{}", target.name, r->array);
            return;
        }
        const Array& array = d_.array(r->array);
        if (!defined_[at(r->array)])
            error("the equation of {} reads {} before its definition", target.name, array.name);
        if (r->indices.size() != array.axes.size()) {
            error("the equation of {} reads {} with {} indices, which has {} axes", target.name, array.name,
                  r->indices.size(), array.axes.size());
        }
        for (const Index& index : r->indices) {
            for (const AxisId axis : index.axes()) {
                if (!axes.contains(axis)) {
                    error("the equation of {} reads {} at the axis {}, over which it does not run", target.name,
                          array.name, names_.axis(axis));
                }
            }
            if (!is_normal(index))
                error("the equation of {} reads {} at an index that is not in normal form", target.name, array.name);
        }
    }

    const Diagram& d_;
    ExprNames names_;
    std::vector<bool> defined_;
    std::vector<std::string> errors_;
};

}  // namespace

std::vector<std::string> verify(const Diagram& diagram) { return Verifier(diagram).run(); }

}  // namespace napkin
