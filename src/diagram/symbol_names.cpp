#include "diagram/symbol_names.hpp"

#include "support/result.hpp"

namespace napkin {

SymbolNames symbol_names(const Diagram& diagram) {
    return [&diagram](Symbol symbol) -> std::string {
        const auto axis = [&] { return diagram.axis(symbol.axis()).name; };
        std::string name;
        switch (symbol.kind) {
            case SymbolKind::axis: return axis();
            case SymbolKind::group: name = "g_" + axis(); break;
            case SymbolKind::stream: name = "s_" + axis(); break;
            case SymbolKind::subloop: name = "u_" + axis(); break;
            case SymbolKind::memory: name = "M"; break;
            default: internal_check(false, "a symbol that no diagram names");
        }
        while (diagram.find_axis(name)) name += "'";
        return name;
    };
}

SymbolValues axis_values(const std::vector<std::int64_t>& extents) {
    return [&extents](Symbol symbol) -> std::optional<double> {
        if (symbol.kind != SymbolKind::axis) return std::nullopt;
        return static_cast<double>(extents[at(symbol.axis())]);
    };
}

}  // namespace napkin
