#include "emit/emit_numbers.hpp"

#include <fmt/format.h>

#include "emit/emit_text.hpp"
#include "support/ranges.hpp"

namespace napkin::writers {

bool LaunchNumbers::vary_with(AxisId axis) const { return contains(axes_, axis); }

bool LaunchNumbers::vary_with(const Expr& e) const {
    bool found = false;
    if (e && !axes_.empty())
        visit(e, [&](const Expr& node) {
            const auto* size = as<AxisSize>(node);
            found |= size && vary_with(size->axis);
        });
    return found;
}

std::string LaunchNumbers::add(Number number, std::string name) {
    const auto known = find_if(numbers_, [&](const Number& n) { return n.what == number.what; });
    if (known != numbers_.end()) return known->name;
    number.name = std::move(name);
    numbers_.push_back(std::move(number));
    return numbers_.back().name;
}

std::string LaunchNumbers::whole(const std::string& what, const Expr& formula) {
    return add({what, "", {formula}}, fmt::format("{}_", Names("").add(what)));
}

std::string LaunchNumbers::real(const std::string& what, const Expr& formula) {
    return add({what, "", {formula, true, is_double_}}, fmt::format("number_{}_", numbers_.size()));
}

}  // namespace napkin::writers
