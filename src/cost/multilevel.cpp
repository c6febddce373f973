#include "cost/multilevel.hpp"

#include <fmt/format.h>

#include <cmath>
#include <set>

#include "cost/optimum_text.hpp"
#include "diagram/symbol_names.hpp"
#include "support/numbers.hpp"
#include "support/text.hpp"

namespace napkin {
namespace {

/// "K e4m3, V f16", or the one type that all have.
std::string types_text(const Diagram& diagram, const Kernel& kernel) {
    std::set<DType> types;
    std::vector<std::string> parts;
    for (const auto* arrays : {&kernel.inputs, &kernel.outputs})
        for (const ArrayId id : *arrays) {
            types.insert(diagram.array(id).type);
            parts.push_back(fmt::format("{} {}", diagram.array(id).name, name(diagram.array(id).type)));
        }
    return types.size() == 1 ? std::string(name(*types.begin())) : join(parts, ", ");
}

}  // namespace

MultiLevel multi_level(const Derived& derived, const Kernel& kernel, const TiedLetters& tied, const Extents& extents,
                       const std::vector<ModelLevel>& levels) {
    MultiLevel out;
    out.best = optimum(with_tied(
        symbolic_cost(derived, kernel, default_grouped(kernel), Measure::bytes, HeldTiles::point_by_point), tied));
    if (!out.best.closed) {
        out.derivation.push_back({"H*", "numeric: " + why_numeric(out.best, derived.diagram), "", 0, "", "Eq. 4"});
        return out;
    }
    const auto value = [&](const Size& size) { return out.best.value(size, axis_values(extents)); };
    const SymbolNames names = names_in(out.best, derived.diagram);
    for (const StandardTerm& term : out.best.standard_form())
        if (!value(term.alpha)) {
            out.derivation.push_back(
                {"H*", "numeric: a coefficient of H is not positive at these sizes", "", 0, "", "Eq. 4"});
            return out;
        }
    out.derivation.push_back({"H*(a, M)", to_string(out.best.transfers, names),
                              fmt::format("bytes; {}; M in bytes", types_text(derived.diagram, kernel)), 0, "",
                              "Eqs. 3, 4"});
    for (const StandardTerm& term : out.best.standard_form()) {
        LevelTerm at{term, *value(term.alpha), 0, std::pow(2, 1 + term.beta.to_double())};
        std::vector<std::string> parts;
        for (const ModelLevel& level : levels) {
            at.weight += level.seconds_per_byte * std::pow(level.memory_bytes, -term.beta.to_double());
            const std::string weight = fmt::format("{:.4g} s/TB", level.seconds_per_byte * 1e12);
            parts.push_back(term.beta == Rational(0) ? weight
                                                     : fmt::format("{}·({})^-{}", weight, bytes_text(level.memory_bytes),
                                                                   to_string(term.beta)));
        }
        out.seconds += at.seconds();
        out.derivation.push_back({fmt::format("T(β = {})", to_string(term.beta)),
                                  fmt::format("({})·Σ_ℓ Ḣ_ℓ⁻¹·M_ℓ^-β", to_string(term.alpha, names)),
                                  fmt::format("{:.4g}·({})", at.alpha, join(parts, " + ")), at.seconds(), "s", "Eq. 5"});
        out.derivation.push_back({"", "half the bytes a value: 2^(1+β) as fast",
                                  fmt::format("2^(1 + {})", to_string(term.beta)), at.halved, "", "Eq. 3"});
        out.terms.push_back(std::move(at));
    }
    for (const ModelLevel& level : levels) {
        double bytes = 0;
        for (const LevelTerm& term : out.terms)
            bytes += term.alpha * std::pow(level.memory_bytes, -term.term.beta.to_double());
        out.bytes[level.name] = bytes;
        out.derivation.push_back({"H*_" + level.name, fmt::format("H*(a, M_{})", level.name),
                                  "M = " + bytes_text(level.memory_bytes), bytes, "B", std::string(citation(level.rule))});
    }
    out.derivation.push_back({"T", "Σ_ℓ Ḣ_ℓ⁻¹·H*(a, M_ℓ)",
                              fmt::format("{} terms, {} levels", out.terms.size(), levels.size()), out.seconds, "s",
                              "Eq. 5"});
    return out;
}

}  // namespace napkin
