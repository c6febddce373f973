#pragma once
// Small files and directories with the error numbers that the caller needs; no exceptions.
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "support/result.hpp"

namespace napkin {

/// The file's first bytes, at most `max_bytes`, or nothing when it cannot be read. A pipe to which nobody writes within
/// two seconds cannot be read. If the content does not begin with the prefix, only its beginning is read, as it may be
/// a device without an end.
std::optional<std::string> read_beginning(const std::string& path, std::size_t max_bytes, std::string_view prefix = {});
/// The whole file, or nothing when it cannot be read or is larger than the limit; else as read_beginning.
std::optional<std::string> read_file(const std::string& path, std::size_t max_bytes = std::size_t{1} << 30,
                                     std::string_view prefix = {});

/// "it is a pipe, and nobody writes to it", or "" where the path does not say why it cannot be read.
std::string why_unreadable(const std::string& path);

/// Writes a file that must not exist yet. 0 or errno.
int write_new_file(const std::string& path, std::string_view content, unsigned mode = 0600);
/// Writes what exists already and is no regular file, e.g. /dev/null. 0 or errno.
int write_special_file(const std::string& path, std::string_view content);

/// What a path names behind all links: an open descriptor of this process (/dev/stdout, /dev/fd/3), or a file that may
/// not exist yet.
struct Destination {
    std::string path;
    int descriptor = -1;
};
Destination destination_of(const std::string& path);
/// Writes where the descriptor stands, whatever is behind it. 0 or errno.
int write_descriptor(int descriptor, std::string_view content);

/// Puts the content where the path says, for a user: a file is replaced whole or not at all, a link stays one. Errors:
/// unwritable-file, disk-full.
Status replace_file(const std::string& path, std::string_view content);

/// Path, size and time of change of the file behind all links, which tell one build of a program from another; the path
/// alone where there is no such file.
std::string file_identity(const std::string& path);
/// The file of the program, or of the shared library in it, whose code this is; empty where it cannot be told.
const std::string& own_file();
/// Its identity; empty where it cannot be told.
const std::string& own_identity();

/// Syncs a file or directory. 0 or errno.
int sync_path(const std::string& path);

/// Creates a directory and its missing parents, all with mode 0700. 0 or errno.
int make_directories(const std::string& path);

/// Names in a directory, without . and .., sorted; empty when it cannot be read.
std::vector<std::string> directory_names(const std::string& path);

/// A file or a directory with all it holds; does not follow links.
void remove_tree(const std::string& path);

/// A new directory with mode 0700 and a name that starts with the prefix; "" with errno set when there is none to be
/// had.
std::string make_temporary_directory(const std::string& prefix);

/// "disk-full" when that is what errno says, else `otherwise`; exit code 3.
Diagnostic file_error(int error_number, const std::string& otherwise, const std::string& what);

}  // namespace napkin
