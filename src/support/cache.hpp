#pragma once
// The kernel cache: a private directory of compiled kernels and of other results that take long to find. It is kept
// from one process to the next.
//
// An entry is a directory named by its key. It is written beside the others under a temporary name (a draft) and
// renamed, so that it is either absent or whole. Its manifest holds the size and SHA-256 of every file. An entry that
// does not agree with it is removed, never used. That may happen if the power fails before the disk has all data. A hit
// renews the entry's time, and the entries used longest ago leave when the cap is passed.
//
// The directory may hold other things, since NAPKIN_CACHE_DIR is whatever the user says. Only directories with a
// manifest that begins with napkin's word are napkin's, drafts as well as entries. From an entry, only the files that
// its manifest names are ever removed.
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "support/result.hpp"

namespace napkin {

inline constexpr std::int64_t default_cache_cap_bytes = std::int64_t{512} << 20;

struct CacheEntry {
    std::string key;
    std::string note = {};  ///< one line by whoever made it, e.g. the compiler
    std::int64_t bytes = 0;
    std::int64_t created = 0, used = 0;  ///< seconds since 1970
    bool intact = true;  ///< manifest readable and every file there with its size; contents are checked on use
};

struct CacheStats {
    std::string directory;
    std::int64_t entries = 0, broken = 0, bytes = 0, cap_bytes = 0;
    std::int64_t foreign = 0;  ///< files and directories there that are not napkin's
};

/// An entry that is being made: a private directory to write its files into. While a copy of the draft lives, in any
/// process, nobody takes the directory for a left-over.
struct CacheDraft {
    std::string directory;
    std::shared_ptr<const void> lock;
};

/// An open cache directory. Several processes and threads may use one directory at a time.
class Cache {
public:
    /// NAPKIN_CACHE_DIR, else $XDG_CACHE_HOME/napkin, else ~/.cache/napkin; created with mode 0700. One that
    /// is read-only, the user's or root's, serves what it has. Errors (machine_lacks): cache-not-private when the
    /// directory is a link, another user's, or writable for others; cache-unwritable.
    static Result<Cache> open();
    /// The same for a given directory.
    static Result<Cache> open(const std::string& directory, std::int64_t cap_bytes = default_cache_cap_bytes);

    [[nodiscard]] const std::string& directory() const { return directory_; }

    /// The entry's directory when it is whole; a broken entry is removed. Renews the time of use.
    [[nodiscard]] std::optional<std::string> find(const std::string& key) const;

    /// The right to make the entry of the key, until the last copy goes or the process ends. Others wait here, and
    /// find the entry then. Null where the directory takes no lock, as a read-only one.
    [[nodiscard]] std::shared_ptr<const void> claim(const std::string& key) const;
    /// Error: cache-unwritable, disk-full.
    [[nodiscard]] Result<CacheDraft> begin() const;
    /// Seals a draft and puts it in place under the key; where another process was faster, its entry stays. Gives the
    /// entry's directory. Errors: disk-full, cache-unwritable.
    [[nodiscard]] Result<std::string> commit(const CacheDraft& draft, const std::string& key, const std::string& note) const;
    void abandon(const CacheDraft& draft) const;

    /// Removes one entry.
    void remove(const std::string& key) const;

    [[nodiscard]] std::vector<CacheEntry> list() const;  ///< used last first
    [[nodiscard]] CacheStats stats() const;
    /// Removes every entry, and every draft that no living process works on; returns the bytes that this freed.
    std::int64_t clear() const;
    /// Removes the entries used longest ago until at most the cap remains; the one just made stays.
    void trim(const std::string& keep_key = "") const;

private:
    std::string directory_;
    std::int64_t cap_bytes_ = default_cache_cap_bytes;
};

/// Whether NAPKIN_NO_COMPILE forbids to compile what no cache has. The error names the kernels in the source.
Status may_compile(std::string_view source, const std::string& key);

/// Lower-case hexadecimal SHA-256 (FIPS 180-4).
std::string sha256(std::string_view data);

}  // namespace napkin
