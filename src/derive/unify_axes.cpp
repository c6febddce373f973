#include <fmt/format.h>

#include <set>

#include "derive/normal_form.hpp"
#include "derive/replay.hpp"
#include "diagram/same_size.hpp"
#include "support/ranges.hpp"

namespace napkin {
namespace {
class Unifier {
public:
    Unifier(Diagram& diagram, std::vector<DerivationStep>& steps) : d_(diagram), steps_(steps) {
        for (const Array& array : d_.arrays)
            if (array.role != ArrayRole::temporary) fixed_.insert(array.axes.begin(), array.axes.end());
        for (const ScheduleItem& item : d_.schedule)
            // Lines of one kernel are about what the derivation makes, and change nothing of it.
            if (const auto axis = item.kernel.empty() ? d_.find_axis(item.axis) : std::nullopt) fixed_.insert(*axis);
    }

    void run() {
        // A dimension can be read under one new name after the other: each pair is met where it is read.
        for (std::size_t i = 0; i < d_.equations.size(); ++i)
            for (const auto& [axis, own] : pairs(d_.equations[i])) {
                const bool keep_own = !fixed_.contains(axis);
                const AxisId from = keep_own ? axis : own, to = keep_own ? own : axis;
                if (fixed_.contains(from) || told_apart(from, to) || !used(from)) continue;
                rename(from, to);
            }
    }

private:
    Diagram& d_;
    std::vector<DerivationStep>& steps_;
    std::set<AxisId> fixed_;  ///< of the arguments and results, and named by the schedule

    /// The axes at which the equation reads another axis' dimension of a computed array, all of it.
    [[nodiscard]] std::vector<std::pair<AxisId, AxisId>> pairs(const Equation& e) const {
        std::vector<std::pair<AxisId, AxisId>> out;
        visit(e.body, [&](const Expr& node) {
            const auto* r = as<Read>(node);
            if (!r) return;
            const auto& own = d_.array(r->array).axes;
            for (std::size_t k = 0; k < own.size(); ++k) {
                const AxisId axis = r->indices[k].single_axis();
                if (axis >= 0 && axis != own[k] && same_size(d_, axis, own[k])) out.emplace_back(axis, own[k]);
            }
        });
        return out;
    }

    [[nodiscard]] bool uses(const Equation& e, AxisId axis) const {
        const auto& axes = d_.array(e.target).axes;
        return contains(axes, axis) || contains(e.reduce_axes, axis);
    }
    /// False once the axis is renamed: an equation may read the dimension more than once.
    [[nodiscard]] bool used(AxisId axis) const {
        return any_of(d_.equations, [&](const Equation& e) { return uses(e, axis); });
    }
    [[nodiscard]] bool told_apart(AxisId a, AxisId b) const {
        return any_of(d_.equations, [&](const Equation& e) { return uses(e, a) && uses(e, b); });
    }

    void rename(AxisId from, AxisId to) {
        Edit edit;
        const auto renamed = [&](std::vector<AxisId> axes) {
            std::replace(axes.begin(), axes.end(), from, to);
            return axes;
        };
        for (Equation& e : d_.equations) {
            if (!uses(e, from)) continue;
            const Equation before = e;
            const Expr body = substitute_axes(e.body, [&](AxisId axis) {
                return axis == from ? std::optional<Index>(Affine::axis(to)) : std::nullopt;
            });
            e.body = transform(body, [&](const Expr& node) {
                const auto* size = as<AxisSize>(node);
                return size && size->axis == from ? axis_size(to) : node;
            });
            e.reduce_axes = renamed(e.reduce_axes);
            sort(e.reduce_axes);
            edit.equations.push_back({before, {e}});
            if (auto& axes = d_.arrays[e.target].axes; renamed(axes) != axes) {
                axes = renamed(axes);
                edit.axes.emplace_back(e.target, axes);
            }
        }
        const std::string a = d_.axis(from).name, b = d_.axis(to).name;
        const SourceRange range = edit.equations.front().before.range;
        steps_.push_back({"unify axes", "rename axis",
                          fmt::format("{} runs over all of the dimension of {}, and no equation has both", a, b),
                          fmt::format("{} is written {}", a, b), range, std::move(edit)});
    }
};

}  // namespace

void unify_axes(Diagram& diagram, std::vector<DerivationStep>& steps) { Unifier(diagram, steps).run(); }

}  // namespace napkin
