#pragma once
// What einsum, rearrange and reduce are told by a string: "qk,xk->qx", "b h q d -> b q h d".
#include <optional>
#include <string>
#include <vector>

#include "syntax/ast.hpp"
#include "syntax/codes.hpp"

namespace napkin {

struct StringPattern {
    /// The names between two commas, or behind the arrow, and where they stand in the text.
    struct Term {
        std::vector<AstWord> names;
        SourceRange range;
        [[nodiscard]] bool has(const std::string& name) const;
    };
    std::vector<Term> operands;
    Term output;
    bool words = false;  ///< names are words between spaces; false: letters, of which each is a name
};

/// `words`: names are words also where no term has a space inside. `usage`: a string that is right. Errors: bad-einsum,
/// einops-grouping.
std::optional<StringPattern> read_string_pattern(const AstNode& node, bool words, const std::string& usage,
                                                 Diagnostics& diagnostics);

}  // namespace napkin
