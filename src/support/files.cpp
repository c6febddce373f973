#include "support/files.hpp"
#include "support/ranges.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <link.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <limits>

namespace napkin {
namespace {

/// Closes on every way out.
struct Descriptor {
    explicit Descriptor(int number) : fd(number) {}
    Descriptor(const Descriptor&) = delete;
    Descriptor& operator=(const Descriptor&) = delete;
    ~Descriptor() {
        if (fd >= 0) ::close(fd);
    }
    int fd;
};

int write_all(int fd, std::string_view content) {
    while (!content.empty()) {
        const ssize_t n = ::write(fd, content.data(), content.size());
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return errno;
        content.remove_prefix(static_cast<std::size_t>(n));
    }
    return 0;
}

}  // namespace

std::optional<std::string> read_beginning(const std::string& path, std::size_t max_bytes, std::string_view prefix) {
    // The opening of a pipe would wait for a writer, and nobody may ever come.
    const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
    struct stat info{};
    if (file.fd < 0 || ::fstat(file.fd, &info) != 0 || S_ISDIR(info.st_mode)) return std::nullopt;
    bool has_writer = !S_ISFIFO(info.st_mode);
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(2);
    std::string content;
    if (S_ISREG(info.st_mode) && static_cast<std::size_t>(info.st_size) <= max_bytes)
        content.reserve(static_cast<std::size_t>(info.st_size));
    // Read to the end whatever fstat says: files under /proc have no size.
    char buffer[1 << 16];
    while (content.size() < max_bytes) {
        const ssize_t n = ::read(file.fd, buffer, std::min(sizeof buffer, max_bytes - content.size()));
        if (n < 0 && errno == EINTR) continue;
        const bool is_waiting = n < 0 && errno == EAGAIN;
        if (n < 0 && !is_waiting) return std::nullopt;
        if (n == 0 && has_writer) break;
        if (n > 0) content.append(buffer, static_cast<std::size_t>(n));
        if (n > 0 && !prefix.starts_with(std::string_view(content).substr(0, prefix.size()))) break;
        if (n != 0) has_writer = true;
        if (n > 0) continue;
        pollfd one{file.fd, POLLIN, 0};
        ::poll(&one, 1, has_writer ? -1 : 20);
        if ((one.revents & POLLHUP) != 0) has_writer = true;  // one was there, and has closed it
        if (!has_writer && std::chrono::steady_clock::now() > deadline) return std::nullopt;
    }
    return content;
}

std::optional<std::string> read_file(const std::string& path, std::size_t max_bytes, std::string_view prefix) {
    const bool is_unlimited = max_bytes == std::numeric_limits<std::size_t>::max();
    auto content = read_beginning(path, is_unlimited ? max_bytes : max_bytes + 1, prefix);
    return content && content->size() > max_bytes ? std::nullopt : std::move(content);
}

std::string why_unreadable(const std::string& path) {
    struct stat info{};
    const bool is_pipe = ::stat(path.c_str(), &info) == 0 && S_ISFIFO(info.st_mode);
    return is_pipe ? "it is a pipe, and nobody writes to it" : "";
}

int write_new_file(const std::string& path, std::string_view content, unsigned mode) {
    const Descriptor file(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode));
    if (file.fd < 0) return errno;
    return write_all(file.fd, content);
}

int write_special_file(const std::string& path, std::string_view content) {
    const Descriptor file(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
    return file.fd < 0 ? errno : write_all(file.fd, content);
}

Destination destination_of(const std::string& path) {
    namespace fs = std::filesystem;
    constexpr int most_links = 40;  // as the system's own limit
    const fs::path own = fmt::format("/proc/{}/fd", ::getpid());
    fs::path at = path;
    for (int i = 0; i < most_links; ++i) {
        std::error_code error;
        const fs::path folder = at.has_parent_path() ? at.parent_path() : fs::path(".");
        const std::string name = at.filename().string();
        const bool is_number = !name.empty() && name.size() < 10 &&
                               name.find_first_not_of("0123456789") == std::string::npos;
        if (is_number && fs::canonical(folder, error) == own) return {path, std::stoi(name)};
        const fs::path target = fs::read_symlink(at, error);
        if (error) break;
        at = folder / target;
    }
    return {at.string(), -1};
}

int write_descriptor(int descriptor, std::string_view content) { return write_all(descriptor, content); }

std::string file_identity(const std::string& path) {
    char* resolved = ::realpath(path.c_str(), nullptr);
    std::string real = resolved == nullptr ? path : resolved;
    std::free(resolved);
    struct stat info{};
    if (::stat(real.c_str(), &info) != 0) return real;
    return fmt::format("{} {} {}.{:09}", real, info.st_size, info.st_mtim.tv_sec, info.st_mtim.tv_nsec);
}

const std::string& own_file() {
    static const std::string file = [] {
        std::string path;
        // The loader's list has the program itself first, without a name.
        ::dl_iterate_phdr(
            [](dl_phdr_info* object, std::size_t, void* found) {
                const auto here = reinterpret_cast<ElfW(Addr)>(&own_file);
                for (int i = 0; i < object->dlpi_phnum; ++i) {
                    const auto& segment = object->dlpi_phdr[i];
                    if (segment.p_type != PT_LOAD || here - object->dlpi_addr - segment.p_vaddr >= segment.p_memsz)
                        continue;
                    *static_cast<std::string*>(found) = *object->dlpi_name == 0 ? "/proc/self/exe" : object->dlpi_name;
                    return 1;
                }
                return 0;
            },
            &path);
        return path;
    }();
    return file;
}

const std::string& own_identity() {
    static const std::string identity = [] {
        struct stat info{};
        const std::string& path = own_file();
        return path.empty() || ::stat(path.c_str(), &info) != 0 ? std::string() : file_identity(path);
    }();
    return identity;
}

int sync_path(const std::string& path) {
    const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    if (file.fd < 0) return errno;
    // Some file systems do not sync directories and say so.
    return ::fsync(file.fd) == 0 || errno == EINVAL ? 0 : errno;
}

int make_directories(const std::string& path) {
    for (std::size_t at = 1; at <= path.size(); ++at) {
        if (at != path.size() && path[at] != '/') continue;
        if (::mkdir(path.substr(0, at).c_str(), 0700) == 0) continue;
        const int why = errno;
        struct stat info{};
        if (::stat(path.substr(0, at).c_str(), &info) != 0) return why;
        if (!S_ISDIR(info.st_mode)) return ENOTDIR;
    }
    return 0;
}

std::vector<std::string> directory_names(const std::string& path) {
    std::vector<std::string> names;
    DIR* directory = ::opendir(path.c_str());
    if (directory == nullptr) return names;
    while (const dirent* entry = ::readdir(directory)) {
        const std::string name = entry->d_name;
        if (name != "." && name != "..") names.push_back(name);
    }
    ::closedir(directory);
    sort(names);
    return names;
}

void remove_tree(const std::string& path) {
    std::error_code ignored;
    std::filesystem::remove_all(path, ignored);
}

std::string make_temporary_directory(const std::string& prefix) {
    std::string path = prefix + "XXXXXX";
    return ::mkdtemp(path.data()) == nullptr ? "" : path;
}

Diagnostic file_error(int error_number, const std::string& otherwise, const std::string& what) {
    const bool full = error_number == ENOSPC || error_number == EDQUOT;
    Diagnostic error{.code = full ? "disk-full" : otherwise, .message = what + ": " + std::strerror(error_number)};
    if (full)
        error.hint =
            "free some space, or set NAPKIN_CACHE_DIR (kernels) or TMPDIR (compilation) to a directory on another disk";
    error.exit_code = ExitCode::machine_lacks;
    return error;
}

Status replace_file(const std::string& path, std::string_view content) {
    const auto failed = [&](int why) {
        Diagnostic error = file_error(why, "unwritable-file", "cannot write " + path);
        if (error.code == "unwritable-file") error.exit_code = ExitCode::bad_input;
        if (error.code == "disk-full") error.hint.clear();
        return error;
    };
    const Destination to = destination_of(path);
    struct stat info{};
    const bool is_special = ::stat(path.c_str(), &info) == 0 && !S_ISREG(info.st_mode);
    if (to.descriptor >= 0 || is_special) {
        const int why = to.descriptor >= 0 ? write_descriptor(to.descriptor, content) : write_special_file(path, content);
        return why == 0 ? Status(Done{}) : Status(failed(why));
    }
    // A link stays one: the file behind it is replaced.
    const std::string temporary = to.path + "." + std::to_string(::getpid()) + ".tmp";
    ::unlink(temporary.c_str());
    int why = write_new_file(temporary, content, 0666);
    if (why == 0) why = sync_path(temporary);
    if (why != 0) {
        ::unlink(temporary.c_str());
        return failed(why);
    }
    if (::rename(temporary.c_str(), to.path.c_str()) != 0) {
        why = errno;
        ::unlink(temporary.c_str());
        return failed(why);
    }
    return Done{};
}

}  // namespace napkin
