// `napkin cache`: the compiled kernels, plans and measurements that are kept from one run to the next.
#include <fmt/chrono.h>
#include <fmt/format.h>

#include "napkin/command.hpp"
#include "support/cache.hpp"
#include "support/numbers.hpp"

namespace napkin::cli {

namespace {

Json stats_json(const CacheStats& stats) {
    Json document = json_document("cache");
    document["directory"] = stats.directory;
    document["entries"] = stats.entries;
    document["broken"] = stats.broken;
    document["bytes"] = stats.bytes;
    document["cap_bytes"] = stats.cap_bytes;
    document["foreign"] = stats.foreign;
    return document;
}

std::string amount(std::int64_t bytes) { return bytes_text(static_cast<double>(bytes)); }

/// What else lies in the directory, which napkin leaves alone.
std::string foreign_text(const CacheStats& stats) {
    if (stats.foreign == 0) return "";
    return fmt::format("; {} other{} there {} not napkin's and stay{}", stats.foreign, stats.foreign == 1 ? "" : "s",
                       stats.foreign == 1 ? "is" : "are", stats.foreign == 1 ? "s" : "");
}

ExitCode size(const Options& options) {
    const auto cache = Cache::open();
    if (!cache) return fail(cache.errors(), options);
    const CacheStats stats = cache->stats();
    options.json
        ? print(stats_json(stats))
        : print(fmt::format("{}: {} entries, {} of {}{}{}", printable(stats.directory), stats.entries,
                            amount(stats.bytes), amount(stats.cap_bytes),
                            stats.broken > 0 ? fmt::format(", {} broken", stats.broken) : "", foreign_text(stats)));
    return ExitCode::success;
}

ExitCode list(const Options& options) {
    const auto cache = Cache::open();
    if (!cache) return fail(cache.errors(), options);
    if (options.json) {
        Json document = stats_json(cache->stats());
        document["list"] = Json::array();
        for (const CacheEntry& entry : cache->list()) {
            document["list"].push_back({{"key", entry.key},
                                        {"note", entry.note},
                                        {"bytes", entry.bytes},
                                        {"created", entry.created},
                                        {"used", entry.used},
                                        {"intact", entry.intact}});
        }
        print(document);
        return ExitCode::success;
    }
    std::string text;
    for (const CacheEntry& entry : cache->list()) {
        text += fmt::format("{:.16}  {:>10}  {:%Y-%m-%d %H:%M}  {}{}\n", entry.key, amount(entry.bytes),
                            fmt::localtime(static_cast<std::time_t>(entry.used)), printable(entry.note),
                            entry.intact ? "" : "  broken");
    }
    print(text);
    return ExitCode::success;
}

ExitCode clear(const Options& options) {
    const auto cache = Cache::open();
    if (!cache) return fail(cache.errors(), options);
    const std::int64_t freed = cache->clear();
    if (options.json) {
        Json document = stats_json(cache->stats());
        document["freed_bytes"] = freed;
        print(document);
    } else {
        print(fmt::format("{}: cleared, {} freed{}", printable(cache->directory()), amount(freed),
                          foreign_text(cache->stats())));
    }
    return ExitCode::success;
}

}  // namespace

void add_cache(CLI::App& app, Main& main) {
    const Command command(app, main, "cache", "List, size or clear the compiled kernels and plans that are kept",
                          "napkin cache size", nullptr);
    const auto add = [&](const std::string& name, const std::string& description, ExitCode (*action)(const Options&)) {
        const auto options = std::make_shared<Options>();
        Command sub(command.app(), main, name, description, "napkin cache " + name,
                    [options, action] { return action(*options); });
        sub.output(*options);
    };
    add("list", "Every kept kernel and plan, used last first", list);
    add("size", "How many there are and what they take", size);
    add("clear", "Remove them all", clear);
}

}  // namespace napkin::cli
