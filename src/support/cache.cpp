#include "support/cache.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <pwd.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <functional>
#include <sstream>

#include "support/files.hpp"
#include "support/ids.hpp"
#include "support/ranges.hpp"

namespace napkin {
namespace {
constexpr const char* manifest_name = "manifest";
constexpr const char* manifest_magic = "napkin-cache 1";
constexpr const char* draft_manifest = "napkin-cache 1\ndraft\n";  ///< of an entry that is being made
constexpr std::string_view draft_prefix = "tmp-";
constexpr std::string_view claims_name = "claims";  ///< a file in which whoever makes an entry has a byte locked

struct ManifestFile {
    std::string name;
    std::int64_t bytes = 0;
    std::string sha;
};
struct Manifest {
    std::string key, note;
    std::int64_t created = 0;
    std::vector<ManifestFile> files;
};

/// Lines of "word rest", closed by the checksum of all before it.
std::string print_manifest(const Manifest& manifest) {
    std::string text = std::string(manifest_magic) + "\nkey " + manifest.key + "\ncreated " +
                       std::to_string(manifest.created) + "\nnote ";
    for (const char c : manifest.note) text += c == '\n' || c == '\r' ? ' ' : c;
    text += '\n';
    for (const ManifestFile& f : manifest.files)
        text += "file " + std::to_string(f.bytes) + " " + f.sha + " " + f.name + "\n";
    return text + "end " + sha256(text) + "\n";
}

std::optional<Manifest> parse_manifest(const std::string& text) {
    const std::size_t end = text.rfind("\nend ");
    if (end == std::string::npos) return std::nullopt;
    const std::string body = text.substr(0, end + 1);
    if (text.substr(end + 1) != "end " + sha256(body) + "\n") return std::nullopt;
    // The checksum holds, so the lines are as they were written.
    std::istringstream lines(body);
    std::string line;
    if (!std::getline(lines, line) || line != manifest_magic) return std::nullopt;
    Manifest manifest;
    while (std::getline(lines, line)) {
        const std::size_t space = line.find(' ');
        if (space == std::string::npos) return std::nullopt;
        const std::string word = line.substr(0, space), rest = line.substr(space + 1);
        if (word == "key") manifest.key = rest;
        if (word == "note") manifest.note = rest;
        if (word == "created") std::from_chars(rest.data(), rest.data() + rest.size(), manifest.created);
        if (word == "file") {
            std::istringstream fields(rest);
            ManifestFile file;
            if (!(fields >> file.bytes >> file.sha >> file.name) || file.name.find('/') != std::string::npos)
                return std::nullopt;
            manifest.files.push_back(std::move(file));
        }
    }
    return manifest;
}

std::optional<Manifest> read_manifest(const std::string& entry) {
    const std::optional<std::string> text = read_file(entry + "/" + manifest_name, 1 << 20);
    return text ? parse_manifest(*text) : std::nullopt;
}

/// Bytes of a file, or -1 when it is not a regular file.
std::int64_t file_bytes(const std::string& path) {
    struct stat info{};
    return ::lstat(path.c_str(), &info) == 0 && S_ISREG(info.st_mode) ? static_cast<std::int64_t>(info.st_size) : -1;
}

std::int64_t changed(const std::string& path) {
    struct stat info{};
    return ::lstat(path.c_str(), &info) == 0 ? static_cast<std::int64_t>(info.st_mtime) : 0;
}

bool sizes_agree(const std::string& entry, const Manifest& manifest) {
    return all_of(manifest.files, [&](const ManifestFile& f) { return file_bytes(entry + "/" + f.name) == f.bytes; });
}

bool contents_agree(const std::string& entry, const Manifest& manifest) {
    return all_of(manifest.files, [&](const ManifestFile& f) {
        const std::optional<std::string> content = read_file(entry + "/" + f.name);
        return content && sha256(*content) == f.sha;
    });
}

std::int64_t tree_bytes(const std::string& entry) {
    std::int64_t total = 0;
    for (const std::string& name : directory_names(entry))
        total += std::max<std::int64_t>(0, file_bytes(fmt::format("{}/{}", entry, name)));
    return total;
}

bool is_directory(const std::string& path) {
    struct stat info{};
    return ::lstat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode);
}

/// Whether napkin made the directory, be it whole or not.
bool is_napkins(const std::string& path) {
    if (!is_directory(path)) return false;
    const std::optional<std::string> text = read_file(path + "/" + manifest_name, 1 << 20);
    return text && text->starts_with(std::string(manifest_magic) + "\n");
}

/// The files of an entry that may be removed, the manifest last: those that it names, or all where it cannot be read.
std::vector<std::string> own_files(const std::string& entry) {
    std::vector<std::string> names;
    if (const std::optional<Manifest> manifest = read_manifest(entry)) {
        for (const ManifestFile& file : manifest->files) names.push_back(file.name);
    } else {
        for (const std::string& name : directory_names(entry))
            if (name != manifest_name && !is_directory(entry + "/" + name)) names.push_back(name);
    }
    names.emplace_back(manifest_name);
    return names;
}

/// Removes an entry's own files, and the entry when nothing else is in it. Returns the bytes that this freed. The entry
/// first goes out of sight in one step, so that another process' new entry under the same key is not removed instead.
/// The manifest goes last, so that what an interruption leaves is recognised as a dead draft. An entry with somebody's
/// files in it stays where it is.
std::int64_t remove_entry(const std::string& directory, const std::string& key) {
    std::string entry = directory + "/" + key;
    struct stat there{};
    if (::lstat(entry.c_str(), &there) != 0) return 0;
    std::vector<std::string> own = own_files(entry);
    const std::vector<std::string> present = directory_names(entry);
    const bool shared = any_of(present, [&](const std::string& name) { return !contains(own, name); });
    if (!shared) {
        const std::string away = make_temporary_directory(directory + "/" + std::string(draft_prefix));
        if (!away.empty() && ::rename(entry.c_str(), away.c_str()) == 0) {
            entry = away;
            own = own_files(entry);  // what was taken may be newer than what was looked at
        } else {
            ::rmdir(away.c_str());
        }
    }
    std::int64_t freed = 0;
    for (const std::string& name : own) {
        const std::string path = entry + "/" + name;
        const std::int64_t size = file_bytes(path);
        if (::unlink(path.c_str()) == 0) freed += std::max<std::int64_t>(0, size);
    }
    ::rmdir(entry.c_str());
    return freed;
}

using Lock = std::shared_ptr<const void>;

/// Locks a file until the last copy of the lock goes; null where another process, or another lock of ours, holds it.
Lock lock_file(const std::string& path) {
    const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0) return nullptr;
    if (::flock(fd, LOCK_EX | LOCK_NB) != 0) {
        ::close(fd);
        return nullptr;
    }
    return {new int(fd), [](const int* held) {
                ::close(*held);
                delete held;
            }};
}

/// Puts a manifest into a draft, in place of one that is there, and locks it. It is locked before it appears: at no
/// moment does the draft look like one whose maker died, or like a directory that is not napkin's. 0 or errno.
int put_manifest(const std::string& draft, const std::string& text, Lock& lock) {
    const std::string path = draft + "/" + manifest_name, hidden = path + ".new";
    if (const int why = write_new_file(hidden, text); why != 0) return why;
    lock = lock_file(hidden);
    return ::rename(hidden.c_str(), path.c_str()) == 0 ? 0 : errno;
}

/// Removes the drafts whose makers died; gives the bytes that this freed.
std::int64_t remove_dead_drafts(const std::string& directory) {
    std::int64_t freed = 0;
    for (const std::string& name : directory_names(directory)) {
        const std::string path = directory + "/" + name;
        if (!name.starts_with(draft_prefix) || !is_napkins(path)) continue;
        if (const Lock lock = lock_file(path + "/" + manifest_name)) {
            freed += tree_bytes(path);
            remove_tree(path);
        }
    }
    return freed;
}

Diagnostic not_private(const std::string& directory, const std::string& why, const std::string& hint) {
    return Diagnostic{.code = "cache-not-private",
                      .message = "the kernel cache " + directory + " " + why + ": code in it could be somebody else's",
                      .expected = "a directory of your own that nobody else can write to (mode 0700)",
                      .hint = hint,
                      .exit_code = ExitCode::machine_lacks};
}

std::string variable(const char* name) {
    const char* value = std::getenv(name);
    return value == nullptr ? "" : value;
}

std::string usual_directory() {
    if (const std::string chosen = variable("NAPKIN_CACHE_DIR"); !chosen.empty()) return chosen;
    // The XDG base directory specification has relative paths ignored.
    if (const std::string base = variable("XDG_CACHE_HOME"); base.starts_with('/')) return base + "/napkin";
    if (const std::string home = variable("HOME"); home.starts_with('/')) return home + "/.cache/napkin";
    const passwd* user = ::getpwuid(::geteuid());
    return user != nullptr && user->pw_dir != nullptr ? std::string(user->pw_dir) + "/.cache/napkin" : "";
}

}  // namespace

Result<Cache> Cache::open() {
    const std::string directory = usual_directory();
    if (directory.empty())
        return file_error(ENOENT, "cache-unwritable", "there is no home directory for the kernel cache");
    std::int64_t cap = default_cache_cap_bytes;
    const std::string mib = variable("NAPKIN_CACHE_MIB");
    std::int64_t number = 0;
    if (std::from_chars(mib.data(), mib.data() + mib.size(), number).ec == std::errc() && number > 0 &&
        number < (std::int64_t{1} << 40)) {
        cap = number << 20;
    }
    return open(directory, cap);
}

Result<Cache> Cache::open(const std::string& directory, std::int64_t cap_bytes) {
    Cache cache;
    cache.directory_ = directory;
    cache.cap_bytes_ = cap_bytes;
    if (!cache.directory_.starts_with('/')) {
        char* here = ::getcwd(nullptr, 0);
        if (here == nullptr) return file_error(errno, "cache-unwritable", "the current directory cannot be read");
        cache.directory_ = std::string(here) + "/" + directory;
        std::free(here);
    }
    while (cache.directory_.size() > 1 && cache.directory_.back() == '/') cache.directory_.pop_back();

    struct stat info{};
    if (::lstat(cache.directory_.c_str(), &info) != 0) {
        const int why = make_directories(cache.directory_);
        if (why != 0) return file_error(why, "cache-unwritable", "cannot create the kernel cache " + cache.directory_);
        if (::lstat(cache.directory_.c_str(), &info) != 0)
            return file_error(errno, "cache-unwritable", "cannot open the kernel cache " + cache.directory_);
    }
    const std::string elsewhere = "set NAPKIN_CACHE_DIR to a directory of your own";
    if (S_ISLNK(info.st_mode))
        return not_private(cache.directory_, "is a symbolic link", "set NAPKIN_CACHE_DIR to what it points to");
    if (!S_ISDIR(info.st_mode))
        return file_error(ENOTDIR, "cache-unwritable", "cannot open the kernel cache " + cache.directory_);
    const bool is_read_only = ::access(cache.directory_.c_str(), W_OK) != 0;
    if (info.st_uid != ::geteuid() && !(is_read_only && info.st_uid == 0))
        return not_private(cache.directory_, "belongs to another user", elsewhere);
    if ((info.st_mode & 022) != 0)
        return not_private(cache.directory_, "can be written to by others",
                           "clear and close it: chmod 700 " + cache.directory_);
    if (::access(cache.directory_.c_str(), R_OK | X_OK) != 0)
        return file_error(errno, "cache-unwritable", "cannot read the kernel cache " + cache.directory_);
    return cache;
}

std::optional<std::string> Cache::find(const std::string& key) const {
    std::string entry = directory_ + "/" + key;
    struct stat info{};
    if (::lstat(entry.c_str(), &info) != 0) return std::nullopt;
    const std::optional<Manifest> manifest = S_ISDIR(info.st_mode) ? read_manifest(entry) : std::nullopt;
    if (!manifest || manifest->key != key || !sizes_agree(entry, *manifest) || !contents_agree(entry, *manifest)) {
        remove_entry(directory_, key);
        return std::nullopt;
    }
    ::utimensat(AT_FDCWD, (entry + "/" + manifest_name).c_str(), nullptr, 0);
    return entry;
}

std::shared_ptr<const void> Cache::claim(const std::string& key) const {
    const int fd = ::open(fmt::format("{}/{}", directory_, claims_name).c_str(),
                          O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0) return nullptr;
    // One byte of the file for each key: nothing is left behind, whatever becomes of the process.
    struct flock lock{};
    lock.l_type = F_WRLCK, lock.l_whence = SEEK_SET, lock.l_len = 1;
    lock.l_start = static_cast<off_t>(std::hash<std::string>{}(key) >> 2);
    int done = 0;
    while ((done = ::fcntl(fd, F_OFD_SETLKW, &lock)) != 0 && errno == EINTR) {
    }
    std::shared_ptr<const void> held(new int(fd), [](const int* file) {
        ::close(*file);
        delete file;
    });
    return done == 0 ? held : nullptr;
}

Result<CacheDraft> Cache::begin() const {
    const auto failed = [&](int why) {
        return file_error(why, "cache-unwritable", "cannot write to the kernel cache " + directory_);
    };
    CacheDraft draft{make_temporary_directory(directory_ + "/" + std::string(draft_prefix)), nullptr};
    if (draft.directory.empty()) return failed(errno);
    if (const int why = put_manifest(draft.directory, draft_manifest, draft.lock); why != 0) {
        remove_tree(draft.directory);
        return failed(why);
    }
    return draft;
}

Result<std::string> Cache::commit(const CacheDraft& draft, const std::string& key, const std::string& note) const {
    const auto failed = [&](int why) {
        abandon(draft);
        return file_error(why, "cache-unwritable", "cannot keep a kernel in " + directory_);
    };
    Manifest manifest{key, note, static_cast<std::int64_t>(std::time(nullptr)), {}};
    for (const std::string& name : directory_names(draft.directory)) {
        if (name == manifest_name) continue;
        const std::string path = fmt::format("{}/{}", draft.directory, name);
        const std::optional<std::string> content = read_file(path);
        if (!content) return failed(EIO);
        manifest.files.push_back({name, static_cast<std::int64_t>(content->size()), sha256(*content)});
    }
    Lock sealing;
    if (const int why = put_manifest(draft.directory, print_manifest(manifest), sealing); why != 0) return failed(why);

    const std::string entry = directory_ + "/" + key;
    // Another process may have put its entry there first. It is as good as ours, unless it is broken: find() removes it
    // then.
    for (int attempt = 0; ::rename(draft.directory.c_str(), entry.c_str()) != 0; ++attempt) {
        const int why = errno;
        if ((why != EEXIST && why != ENOTEMPTY && why != ENOTDIR) || attempt == 3) return failed(why);
        if (const auto present = find(key)) {
            abandon(draft);
            return *present;
        }
    }
    // Looking at thousands of entries takes longer than making a small one, of which one in 256 does so: keys end in
    // random digits.
    if (tree_bytes(entry) >= cap_bytes_ / 4096 || key.ends_with("00")) trim(key);
    return entry;
}

void Cache::abandon(const CacheDraft& draft) const { remove_tree(draft.directory); }

void Cache::remove(const std::string& key) const { remove_entry(directory_, key); }

std::vector<CacheEntry> Cache::list() const {
    std::vector<CacheEntry> entries;
    for (const std::string& name : directory_names(directory_)) {
        const std::string path = directory_ + "/" + name;
        if (name.starts_with(draft_prefix) || !is_napkins(path)) continue;
        CacheEntry entry{.key = name, .bytes = tree_bytes(path)};
        const std::optional<Manifest> manifest = read_manifest(path);
        entry.intact = manifest && manifest->key == name && sizes_agree(path, *manifest);
        if (manifest) entry.note = manifest->note, entry.created = manifest->created;
        entry.used = changed(path + "/" + manifest_name);
        entries.push_back(std::move(entry));
    }
    stable_sort(entries, [](const CacheEntry& a, const CacheEntry& b) { return a.used > b.used; });
    return entries;
}

CacheStats Cache::stats() const {
    CacheStats stats{.directory = directory_, .cap_bytes = cap_bytes_};
    for (const std::string& name : directory_names(directory_))
        stats.foreign += name == claims_name || is_napkins(directory_ + "/" + name) ? 0 : 1;
    for (const CacheEntry& entry : list()) {
        ++stats.entries;
        stats.broken += entry.intact ? 0 : 1;
        stats.bytes += entry.bytes;
    }
    return stats;
}

Status may_compile(std::string_view source, const std::string& key) {
    const char* const word = std::getenv("NAPKIN_NO_COMPILE");
    if (word == nullptr || *word == '\0' || std::string_view(word) == "0") return Done{};
    std::string kernels;
    constexpr std::string_view mark = "// Kernel ";
    for (std::size_t at = source.find(mark); at != std::string_view::npos; at = source.find(mark, at + 1)) {
        const std::size_t begin = at + mark.size(), end = std::min(source.find(".\n", begin), source.find('\n', begin));
        kernels += (kernels.empty() ? "" : ", ") + std::string(source.substr(begin, end - begin));
    }
    return Diagnostic{.code = "not-compiled",
                      .message = fmt::format("no cache has the code of {}, whose key is {}",
                                             kernels.empty() ? "a program" : kernels, key),
                      .expected = "a cache that has it: NAPKIN_NO_COMPILE forbids to compile",
                      .hint = "run it once without NAPKIN_NO_COMPILE, with the same cache",
                      .exit_code = ExitCode::machine_lacks};
}

std::int64_t Cache::clear() const {
    std::int64_t freed = remove_dead_drafts(directory_);
    for (const CacheEntry& entry : list()) freed += remove_entry(directory_, entry.key);
    return freed;
}

void Cache::trim(const std::string& keep_key) const {
    remove_dead_drafts(directory_);
    // Last used first: what still fits stays.
    std::int64_t total = keep_key.empty() ? 0 : tree_bytes(directory_ + "/" + keep_key);
    for (const CacheEntry& entry : list()) {
        if (entry.key == keep_key) continue;
        total += entry.bytes;
        if (total > cap_bytes_) {
            total -= entry.bytes;
            remove_entry(directory_, entry.key);
        }
    }
}

}  // namespace napkin
