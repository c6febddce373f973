#include "syntax/typed_text.hpp"

#include <algorithm>

#include "support/ranges.hpp"
#include "syntax/parser.hpp"

namespace napkin {
namespace {

/// What a signature leaves open, in the order of the text.
struct OpenTypes {
    std::vector<AstArray> arguments, results;
};

bool has_type(const AstDefinition& definition, const AstArray& result) {
    if (result.type) return true;
    return any_of(definition.equations, [&](const AstEquation& equation) {
        return any_of(equation.targets,
                      [&](const AstArray& target) { return target.type && target.name.text == result.name.text; });
    });
}

Result<OpenTypes> open_types(const std::shared_ptr<const Source>& source, const ParseOptions& options) {
    Diagnostics diagnostics;
    const Module module = parse_module(source, diagnostics);
    if (!diagnostics.empty()) return diagnostics.take();
    OpenTypes out;
    for (const AstDefinition& definition : module.definitions) {
        if (!options.diagram.empty() && definition.name.text != options.diagram) continue;
        out = {};  // the last one is the main diagram
        for (const AstArray& argument : definition.arguments)
            if (!argument.type && !argument.default_value) out.arguments.push_back(argument);
        for (const AstArray& result : definition.results)
            if (!has_type(definition, result)) out.results.push_back(result);
    }
    return out;
}

}  // namespace

Result<std::vector<std::string>> untyped_names(const std::shared_ptr<const Source>& source, const ParseOptions& options) {
    const auto open = open_types(source, options);
    if (!open) return open.errors();
    std::vector<std::string> names;
    for (const auto* list : {&open->arguments, &open->results})
        for (const AstArray& array : *list) names.push_back(array.name.text);
    return names;
}

Result<std::shared_ptr<const Source>> with_types_in_text(const std::shared_ptr<const Source>& source,
                                                         const ParseOptions& options,
                                                         const std::map<std::string, DType>& types) {
    const auto open = open_types(source, options);
    if (!open) return open.errors();
    struct Addition {
        std::uint32_t at;
        DType type;
    };
    std::vector<Addition> additions;
    std::optional<DType> promoted;
    const auto add = [&](const AstArray& array, DType type) { additions.push_back({array.range.end, type}); };
    const auto type_of = [&](const AstArray& array, DType otherwise) {
        const auto given = types.find(array.name.text);
        return given == types.end() ? otherwise : given->second;
    };
    for (const AstArray& argument : open->arguments) {
        const DType type = type_of(argument, DType::f32);
        promoted = promoted ? promote(*promoted, type) : type;
        add(argument, type);
    }
    for (const AstArray& result : open->results) add(result, type_of(result, promoted.value_or(DType::f32)));
    if (additions.empty()) return source;
    std::string text = source->text;
    // From the end, so that places before stay.
    sort(additions, [](const Addition& a, const Addition& b) { return a.at > b.at; });
    for (const Addition& addition : additions) text.insert(addition.at, ": " + std::string(name(addition.type)));
    return std::make_shared<const Source>(Source{source->name, std::move(text)});
}

}  // namespace napkin
