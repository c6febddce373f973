#include <fmt/format.h>

#include <map>
#include <set>

#include "derive/body_sizes.hpp"
#include "derive/normal_form.hpp"
#include "derive/replay.hpp"
#include "derive/share.hpp"
#include "diagram/padded_reads.hpp"
#include "support/ranges.hpp"

namespace napkin {
namespace {

bool at_own_axes(const Read& r, const std::vector<AxisId>& axes) {
    for (std::size_t k = 0; k < axes.size(); ++k)
        if (!r.indices[k].is_axis(axes[k])) return false;
    return true;
}

/// Whether the wider type has every value of the other one.
bool has_all_values_of(DType wide, DType narrow) {
    const FormatRange w = format_range(wide), n = format_range(narrow);
    return w.epsilon <= n.epsilon && w.largest >= n.largest && w.smallest_subnormal <= n.smallest_subnormal;
}

class ShiftedMaps {
public:
    ShiftedMaps(Diagram& diagram, bool keeps_padding, std::vector<DerivationStep>& steps)
        : d_(diagram), keeps_padding_(keeps_padding), steps_(steps) {
        for (const Equation& e : d_.equations)
            visit(e.body, [&](const Expr& node) {
                if (const auto* r = as<Read>(node)) ++reads_[r->array];
            });
    }

    void run() {
        for (Equation& e : d_.equations) {
            const Equation before = e;
            std::set<std::string> written;
            e.body = transform(e.body, [&](const Expr& node) {
                const auto* r = as<Read>(node);
                const auto map = r ? maps_.find(r->array) : maps_.end();
                if (map == maps_.end() || !worth(*r, map->second)) return node;
                written.insert(d_.array(r->array).name);
                const auto& axes = d_.array(r->array).axes;
                return substitute_axes(map->second, [&](AxisId axis) -> std::optional<Index> {
                    const auto k = find(axes, axis);
                    if (k == axes.end()) return std::nullopt;
                    return r->indices[at(k - axes.begin())];
                });
            });
            if (count_nodes(e.body) > largest_body) e = before;
            if (!(e == before)) {
                Edit edit;
                edit.equations.push_back({before, {e}});
                steps_.push_back(
                    {"inline", "outline", "a map's element can be computed wherever it is read",
                     fmt::format("{} computes {} where it reads it", d_.array(e.target).name, fmt::join(written, ", ")),
                     e.range, std::move(edit)});
            }
            const Array& array = d_.array(e.target);
            if (!e.reduce && array.role == ArrayRole::temporary && is_float(array.type) &&
                !(keeps_padding_ && is_padding(e)) && !ends_a_reduction(e))
                maps_[e.target] = e.body;
            if (e.reduce) reduced_.insert(e.target);
        }
    }

private:
    Diagram& d_;
    const bool keeps_padding_;
    std::vector<DerivationStep>& steps_;
    std::map<ArrayId, int> reads_;  ///< places where each array is read
    std::map<ArrayId, Expr> maps_;  ///< temporary arrays that are maps
    std::set<ArrayId> reduced_;     ///< arrays that are reductions' results

    /// Whether a map is of one reduction's result, value by value, as a sum with a bias is. The reduction's kernel
    /// stores the map as it would store the result. So nothing is saved where readers compute the map.
    [[nodiscard]] bool ends_a_reduction(const Equation& map) const {
        const auto& axes = d_.array(map.target).axes;
        bool ends = false;
        visit(map.body, [&](const Expr& node) {
            const auto* r = as<Read>(node);
            ends |= r && reduced_.contains(r->array) && r->indices.size() == axes.size() && at_own_axes(*r, axes);
        });
        return ends;
    }

    /// A temporary that is another array as it stands.
    [[nodiscard]] bool is_other_name(ArrayId array, const Expr& body) const {
        const auto* source = as<Read>(body);
        const Array& copy = d_.array(array);
        if (!source || d_.array(source->array).axes.size() != copy.axes.size() || !is_float(d_.array(source->array).type))
            return false;
        return at_own_axes(*source, copy.axes) && has_all_values_of(copy.type, d_.array(source->array).type);
    }

    [[nodiscard]] bool worth(const Read& r, const Expr& body) const {
        if (at_own_axes(r, d_.array(r.array).axes)) return is_other_name(r.array, body);
        return reads_.at(r.array) == 1 || (count_nodes(body) <= largest_copied && !is_expensive(body));
    }
};

}  // namespace

void inline_shifted_maps(Diagram& diagram, bool keeps_padding, std::vector<DerivationStep>& steps) {
    ShiftedMaps(diagram, keeps_padding, steps).run();
}

}  // namespace napkin
