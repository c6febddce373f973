#include "napkin/output_file.hpp"

#include <cerrno>
#include <fstream>

#include "support/files.hpp"

namespace napkin::cli {

ExitCode write_output(const std::string& path, const std::string& text, const Options& options) {
    if (path.empty() || path == "-") {
        print(text);
        return ExitCode::success;
    }
    errno = 0;
    std::ofstream file(path, std::ios::binary);
    if (!(file << text) || !file.flush())
        return fail({file_error(errno, "unwritable-file", "cannot write to " + path)}, options);
    return ExitCode::success;
}

}  // namespace napkin::cli
