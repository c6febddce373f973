#include "napkin/output_file.hpp"

#include "support/files.hpp"

namespace napkin::cli {

ExitCode write_output(const std::string& path, const std::string& text, const Options& options) {
    if (path.empty() || path == "-") {
        print(text);
        return ExitCode::success;
    }
    const Status written = replace_file(path, text);
    return written ? ExitCode::success : fail(written.errors(), options);
}

}  // namespace napkin::cli
