#include "algebra/symbol.hpp"
#include "support/ranges.hpp"

namespace napkin {

Symbol SymbolTable::operator()(std::string_view name) {
    const auto known = find(names_, name);
    const Symbol symbol{SymbolKind::name, known - names_.begin()};
    if (known == names_.end()) names_.emplace_back(name);
    return symbol;
}

SymbolNames SymbolTable::names() const {
    return [this](Symbol symbol) { return names_.at(static_cast<std::size_t>(symbol.id)); };
}

}  // namespace napkin
