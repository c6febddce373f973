// AST to diagrams: names are resolved, calls inlined, every reduction made an equation of its own.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "diagram/diagram.hpp"
#include "syntax/ast.hpp"
#include "syntax/codes.hpp"
#include "syntax/jagged.hpp"

namespace napkin {

/// A definition that was elaborated once, for its own errors, and is instantiated by every call.
struct Template {
    Diagram diagram;
    std::vector<bool> typed;         ///< by ArrayId: the type stands in the text; others follow the caller's arrays
    std::set<ArrayId> precise = {};  ///< those that follow the caller's, but are f32 at least
    std::vector<std::optional<double>> defaults;  ///< by position among the inputs
    std::set<std::string> globals;        ///< axes known only from the file's `sizes`: the caller's axes of that name
    bool elementwise = false;             ///< scalars and maps only: a call is an expression
    std::vector<JaggedAxis> jagged = {};  ///< of the main diagram: axes whose lengths are data
    bool ok = false;                      ///< else its errors are reported, and calls of it give none
    int call_depth = 1;
};

/// What the elaboration of one text may use up in all, whatever calls what.
struct Budget {
    std::size_t equations = 32768;
    std::size_t nodes = 500'000;
};

/// The definitions of a text by name; what it does not define is looked up in its parent.
class Library {
public:
    /// `main` is the definition that the text's own sizes are for; null: none.
    Library(const Module& module, const AstDefinition* main, Library* parent, Diagnostics& diagnostics, Budget& budget);

    enum class State { unknown, running, done };
    [[nodiscard]] State state(const std::string& name) const;
    /// The definition, elaborated now if it was not yet; null where there is none or where its elaboration is under
    /// way.
    const Template* find(const std::string& name);
    [[nodiscard]] bool defines(const std::string& name) const;
    /// Elaborating the definition now would nest deeper than calls may.
    [[nodiscard]] bool too_deep(const std::string& name) const;
    [[nodiscard]] std::vector<std::string> names() const;

    [[nodiscard]] const Module& module() const { return module_; }
    [[nodiscard]] const AstDefinition* main() const { return main_; }
    [[nodiscard]] Diagnostics& diagnostics() const { return diagnostics_; }
    [[nodiscard]] Budget& budget() const { return budget_; }

private:
    struct Entry {
        const AstDefinition* definition = nullptr;
        State state = State::unknown;
        Template result;
    };
    const Template* gradient(const std::string& name, const std::vector<std::string>& parts);

    const Module& module_;
    const AstDefinition* main_;
    Library* parent_;
    Diagnostics& diagnostics_;
    Budget& budget_;
    std::map<std::string, Entry> entries_;
    int depth_ = 0;  ///< of elaborations under way
};

/// Elaborates one definition. Errors go to the library's diagnostics; the result is then not ok.
Template elaborate(const AstDefinition& definition, Library& library);

// ---- gradients (gradient_call.cpp)

/// "grad(f, X)": f, and the arguments to differentiate by; none where the name is no gradient's.
std::optional<std::vector<std::string>> gradient_parts(const std::string& name);
/// Arguments that can be differentiated by: of real numbers, and given by each caller.
std::vector<ArrayId> arguments_with_gradients(const Template& of);
/// The template of the gradient. Its arguments are those of the diagram, then the adjoints of its results, then the
/// arguments that have a default. Pre: none is wrong (wrong_input).
Template gradient_of(const Template& of, const std::vector<std::string>& by);

/// Puts defaults in place of the scalars that have one.
void apply_defaults(Template& t);

/// Every name that a definition uses as or like an axis: for telling mistyped names in `sizes`.
std::set<std::string> axis_like_names(const AstDefinition& definition);

}  // namespace napkin
