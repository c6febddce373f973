#include "api/public_errors.hpp"

#include "support/ranges.hpp"

namespace napkin {

Error to_public(const Diagnostic& diagnostic) {
    Error error;
    error.kind = diagnostic.exit_code == ExitCode::machine_lacks ? Error::Kind::machine : Error::Kind::input;
    error.code = diagnostic.code;
    error.message = diagnostic.message;
    if (diagnostic.range.source) {
        const LineColumn place = line_column(*diagnostic.range.source, diagnostic.range.begin);
        error.line = static_cast<int>(place.line);
        error.column = static_cast<int>(place.column);
    }
    error.rendered = render(diagnostic);
    return error;
}

std::vector<Error> to_public(const std::vector<Diagnostic>& diagnostics) {
    return mapped<Error>(diagnostics, [&](const Diagnostic& diagnostic) { return to_public(diagnostic); });
}

}  // namespace napkin
