// grad(f)(…): the gradient of a definition as a definition that nobody wrote.
#include <algorithm>

#include "differentiate/gradient.hpp"
#include "support/ranges.hpp"
#include "syntax/elaborate.hpp"

namespace napkin {

std::vector<ArrayId> arguments_with_gradients(const Template& of) {
    std::vector<ArrayId> out = real_inputs(of.diagram);
    std::erase_if(out, [&](ArrayId id) {
        const auto place = find(of.diagram.inputs, id) - of.diagram.inputs.begin();
        return of.defaults[at(place)].has_value();
    });
    return out;
}

std::optional<std::vector<std::string>> gradient_parts(const std::string& name) {
    if (!name.starts_with(gradient_prefix)) return std::nullopt;
    std::vector<std::string> parts(1);
    const std::string inside = name.substr(std::string_view(gradient_prefix).size());
    for (const char c : inside.substr(0, inside.size() - 1)) {
        if (c == ',')
            parts.emplace_back();
        else if (c != ' ')
            parts.back() += c;
    }
    return parts;
}

Template gradient_of(const Template& of, const std::vector<std::string>& by) {
    const std::vector<ArrayId> chosen = by.empty() ? arguments_with_gradients(of)
                                                   : mapped<ArrayId>(by, [&](const std::string& name) {
                                                         return *of.diagram.find_array(name);
                                                     });
    Gradient made = gradient(of.diagram, {.by = chosen});
    Template out = of;
    Diagram& d = out.diagram = std::move(made.diagram);
    d.name = of.diagram.name;
    out.precise.insert(made.precise.begin(), made.precise.end());
    // Adjoints follow the caller's arrays.
    out.typed.resize(d.arrays.size(), false);
    const std::vector<ArrayId> inputs = std::exchange(d.inputs, {});
    const auto has_default = [&](ArrayId id) {
        const auto own = find(of.diagram.inputs, id);
        return own != of.diagram.inputs.end() && of.defaults[at(own - of.diagram.inputs.begin())];
    };
    std::copy_if(inputs.begin(), inputs.end(), std::back_inserter(d.inputs), [&](ArrayId id) { return !has_default(id); });
    std::copy_if(inputs.begin(), inputs.end(), std::back_inserter(d.inputs), has_default);
    out.defaults.assign(d.inputs.size(), std::nullopt);
    for (std::size_t i = 0; i < d.inputs.size(); ++i) {
        const auto own = find(of.diagram.inputs, d.inputs[i]);
        if (own != of.diagram.inputs.end()) out.defaults[i] = of.defaults[at(own - of.diagram.inputs.begin())];
    }
    out.elementwise = of.elementwise && d.outputs.size() == 1;
    return out;
}

}  // namespace napkin
