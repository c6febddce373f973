#include "algebra/symbol.hpp"

#include <algorithm>

namespace napkin {

Symbol SymbolTable::operator()(std::string_view name) {
    const auto known = std::find(names_.begin(), names_.end(), name);
    const Symbol symbol{SymbolKind::name, known - names_.begin()};
    if (known == names_.end()) names_.emplace_back(name);
    return symbol;
}

SymbolNames SymbolTable::names() const {
    return [this](Symbol symbol) { return names_.at(static_cast<std::size_t>(symbol.id)); };
}

}  // namespace napkin
