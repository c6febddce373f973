#include "support/parsed.hpp"

#include <memory>
#include <stdexcept>

#include "derive/derive.hpp"
#include "syntax/parse.hpp"

namespace napkin {

Diagram parsed(const std::string& text) {
    auto diagram = parse_diagram(std::make_shared<const Source>(Source{"test.nk", text}));
    if (!diagram) throw std::runtime_error(render(diagram.errors()));
    return std::move(diagram).value();
}

Derived derived_from(const std::string& text) {
    auto derived = derive(parsed(text));
    if (!derived) throw std::runtime_error(render(derived.errors()));
    return std::move(derived).value();
}

}  // namespace napkin
