#pragma once
// Types from outside for the arrays of a signature that have none in the text.
#include <map>
#include <string>

#include "support/dtype.hpp"
#include "syntax/parse.hpp"

namespace napkin {

/// The names in the main diagram's signature that have no type in the text, arguments first, then results. A scalar
/// with a default value is not among them. Errors: those of the parser, but not those of what names mean.
Result<std::vector<std::string>> untyped_names(const std::shared_ptr<const Source>& source, const ParseOptions& options);

/// The text with these types written behind names of the main diagram's signature that have none. `types` is by name;
/// other names in it are passed over. Arguments that are not in it are f32, and a result that is not in it has the
/// promoted type of the arguments that had none. Errors: those of untyped_names.
Result<std::shared_ptr<const Source>> with_types_in_text(const std::shared_ptr<const Source>& source,
                                                         const ParseOptions& options,
                                                         const std::map<std::string, DType>& types);

}  // namespace napkin
