#include "check/agreement.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace napkin {

std::string to_string(const Disagreement& d) {
    return fmt::format("{} at {} is {} in place of {}, allowed {}", d.array, d.place, d.made, d.wanted, d.allowed);
}

Definition::Definition(const Diagram& diagram, const Extents& extents, const Values& inputs)
    : diagram_(&diagram), values_(inputs) {
    for (const ArrayId id : diagram.inputs)
        for (const double x : inputs[static_cast<std::size_t>(id)]) finite_inputs_ = finite_inputs_ && std::isfinite(x);
    evaluate(diagram, extents, values_);
}

std::optional<Disagreement> Definition::difference(const Diagram& other, const Values& made) const {
    for (const ArrayId id : diagram_->outputs) {
        const std::string& name = diagram_->array(id).name;
        const auto there = other.find_array(name);
        if (!there) throw InternalError("the output " + name + " is gone");
        const auto& want = values_[static_cast<std::size_t>(id)];
        const auto& have = made[static_cast<std::size_t>(*there)];
        if (want.size() != have.size()) throw InternalError("the output " + name + " has another number of values");
        double scale = 1;
        for (const double w : want)
            if (std::isfinite(w)) scale = std::max(scale, std::abs(w));
        for (std::size_t i = 0; i < want.size(); ++i) {
            if (want[i] == have[i] || (std::isnan(want[i]) && (std::isnan(have[i]) || !finite_inputs_))) continue;
            if (!std::isfinite(want[i]) || !(std::abs(want[i] - have[i]) <= 1e-8 * scale))
                return Disagreement{name, static_cast<std::int64_t>(i), want[i], have[i], 1e-8 * scale};
        }
    }
    return std::nullopt;
}

Values inputs_for(const Diagram& other, const Diagram& diagram, const Values& given) {
    Values values(other.arrays.size());
    for (const ArrayId id : diagram.inputs)
        if (const auto there = other.find_array(diagram.array(id).name))
            values[static_cast<std::size_t>(*there)] = given[static_cast<std::size_t>(id)];
    return values;
}

}  // namespace napkin
