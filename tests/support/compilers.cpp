#include "support/compilers.hpp"

#include "support/ranges.hpp"

namespace napkin {

std::vector<std::string> tested_compilers() {
    std::vector<std::string> out{""};
    for (const SupportedCompiler& one : supported_compilers)
        out.push_back(std::string(one.name) + "-" + std::to_string(one.oldest));
    out.emplace_back("clang++-19");
    return out;
}

std::optional<Compiler> installed_compiler(const std::string& name) {
    std::vector<std::string> before;
    for (const std::string& one : tested_compilers()) {
        const auto found = find_compiler({.compiler = one});
        const std::string file = found ? found->identity : "";
        if (one == name) return found && !contains(before, file) ? std::optional(*found) : std::nullopt;
        before.push_back(file);
    }
    return std::nullopt;
}

}  // namespace napkin
