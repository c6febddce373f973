#include "check/agreement.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace napkin {
namespace {

constexpr double largest_that_cancels = 1e12;  ///< larger values stand for overflow, and would allow anything

}  // namespace

std::string to_string(const Disagreement& d) {
    return fmt::format("{} at {} is {} in place of {}, allowed {}", d.array, d.place, d.made, d.wanted, d.allowed);
}

Definition::Definition(const Diagram& diagram, const Extents& extents, const Values& inputs)
    : diagram_(&diagram), values_(inputs) {
    for (const ArrayId id : diagram.inputs)
        for (const double x : inputs[static_cast<std::size_t>(id)]) finite_inputs_ = finite_inputs_ && std::isfinite(x);
    for (const Equation& e : diagram.equations)
        visit(e.body, [&](const Expr& node) {
            if (const auto* c = as<Constant>(node)) finite_constants_ = finite_constants_ && std::isfinite(c->value);
        });
    evaluate(diagram, extents, values_);
    for (const auto& array : values_)
        for (const double x : array)
            if (std::abs(x) <= largest_that_cancels) largest_ = std::max(largest_, std::abs(x));
}

bool Definition::agree(double want, double have, double allowed) const {
    if (want == have || (std::isnan(want) && std::isnan(have))) return true;
    if (std::isfinite(want)) return std::abs(want - have) <= allowed;
    if (!finite_inputs_) return std::isnan(want) || !std::isfinite(have);
    return finite_constants_;
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
        const double allowed = 1e-8 * scale + 8 * std::numeric_limits<double>::epsilon() * largest_;
        for (std::size_t i = 0; i < want.size(); ++i)
            if (!agree(want[i], have[i], allowed))
                return Disagreement{name, static_cast<std::int64_t>(i), want[i], have[i], allowed};
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
