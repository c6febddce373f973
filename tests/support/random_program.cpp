#include "support/random_program.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <stdexcept>

#include "support/program_grammar.hpp"
#include "support/result.hpp"
#include "syntax/parse.hpp"

namespace napkin {

namespace {

/// The types of integers, or those of real numbers; f32 is what an array has without a type.
std::vector<std::string> types_of(bool whole) {
    std::vector<std::string> names;
    for (const DType type : all_dtypes)
        if (is_float(type) != whole && type != DType::f32) names.emplace_back(name(type));
    return names;
}

}  // namespace

Axes operator|(Axes a, const Axes& b) {
    a.insert(b.begin(), b.end());
    return a;
}

Axes operator-(Axes a, const Axes& b) {
    for (const int axis : b) a.erase(axis);
    return a;
}

Grammar::Grammar(std::uint64_t seed, const ProgramOptions& options)
    : options_(options),
      real_types_(types_of(false)),
      whole_types_(types_of(true)),
      w_(seed, wants(Features::types) ? real_types_ : std::vector<std::string>{}) {
    real_types_.emplace_back(name(DType::f32));
}

std::string Grammar::run() {
    const int axes = 2 + w_.pick(3);
    for (int i = 0; i < axes; ++i)
        w_.add_axis(w_.one_of<std::string>({"q", "x", "t", "k", "d", "h", "c", "s_k", "H", "n"}));
    const int wanted = 1 + w_.pick(options_.max_equations);
    while (w_.equations() < wanted) recipe();
    return w_.text();
}

void Grammar::recipe() {
    const auto is_wanted = [&](const Recipe& row) {
        return std::find(options_.recipes.begin(), options_.recipes.end(), row.name) != options_.recipes.end();
    };
    const Recipe* row = &chosen(recipes());
    while (!options_.recipes.empty() && !is_wanted(*row)) row = &chosen(recipes());
    (this->*row->make)();
}

Features features_named(const std::vector<std::string>& names) {
    constexpr std::string_view known[] = {"extremes",   "integers", "types", "places",  "guards", "gathers",
                                          "arithmetic", "casts",    "inner", "scalars", "rebound"};
    Features features = Features::none;
    for (const std::string& wanted : names) {
        const auto* const found = std::find(std::begin(known), std::end(known), wanted);
        if (found == std::end(known))
            throw std::invalid_argument(fmt::format("no feature {}; there are {}", wanted, fmt::join(known, ", ")));
        features = features | static_cast<Features>(1U << (found - std::begin(known)));
    }
    return features;
}

std::vector<std::string> recipe_names() {
    std::vector<std::string> names;
    for (const Grammar::Recipe& row : Grammar::recipes()) names.emplace_back(row.name);
    return names;
}

std::string random_program(std::uint64_t seed, const ProgramOptions& options) { return Grammar(seed, options).run(); }

Diagram parsed_program(const std::string& text) {
    const auto diagram = parse_diagram(std::make_shared<const Source>(Source{"<random>", text}));
    if (!diagram) throw InternalError(render(diagram.errors()) + text);
    return *diagram;
}

}  // namespace napkin
