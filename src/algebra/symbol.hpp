#pragma once
// What stands for a number in a size expression. A symbol is a kind and an id, and symbols are equal where both are.
// Its name is only looked up for printing, so that no spelling of an axis decides anything.
#include <compare>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "support/ids.hpp"

namespace napkin {

enum class SymbolKind : std::uint8_t {
    axis,     ///< the size of the axis `id`
    group,    ///< its group size
    stream,   ///< its stream size
    subloop,  ///< its size in a loop inside of a stream
    memory,   ///< M
    sum,      ///< a sum that stands under a root, the id-th of those that its owner keeps
    name,     ///< a name in a text, the id-th of a SymbolTable
    prime,    ///< the prime `id` under a root
};

struct Symbol {
    SymbolKind kind = SymbolKind::axis;
    std::int64_t id = 0;
    [[nodiscard]] constexpr AxisId axis() const { return AxisId::of(id); }  ///< of the first four kinds
    friend auto operator<=>(const Symbol&, const Symbol&) = default;
};

constexpr Symbol axis_symbol(AxisId axis) { return {SymbolKind::axis, axis}; }
constexpr Symbol group_symbol(AxisId axis) { return {SymbolKind::group, axis}; }
constexpr Symbol stream_symbol(AxisId axis) { return {SymbolKind::stream, axis}; }
constexpr Symbol memory_symbol{SymbolKind::memory, 0};

/// The part of an axis over which a group, a chunk or a loop inside of it runs: at most the axis.
constexpr bool is_part(Symbol s) {
    return s.kind == SymbolKind::group || s.kind == SymbolKind::stream || s.kind == SymbolKind::subloop;
}

/// How symbols are called in print. Primes print as their digits and are not asked for.
using SymbolNames = std::function<std::string(Symbol)>;
/// What a symbol is as a number, where that is known.
using SymbolValues = std::function<std::optional<double>(Symbol)>;

/// Symbols for the names of a text that no diagram explains: equal names, equal symbols.
class SymbolTable {
public:
    Symbol operator()(std::string_view name);
    [[nodiscard]] SymbolNames names() const;  ///< valid as long as the table

private:
    std::vector<std::string> names_;
};

}  // namespace napkin
