#include "machine/measured.hpp"

#include <fmt/format.h>

#include <cstdlib>

#include "machine/processor.hpp"
#include "support/cache.hpp"
#include "support/files.hpp"

namespace napkin {
namespace {

constexpr const char* file_name = "machine.toml";

/// The key tells what was measured, not its name: 'host-512' is 'host' where the widest vectors have 512 bits.
std::string key_of(const Machine& machine) {
    return "machine-" +
           sha256(fmt::format("{}\n{}\n{}", machine.cores.value, machine.vector_bits.value, processor_identity())).substr(0, 32);
}

}  // namespace

std::string host_name(int vector_bytes) { return vector_bytes > 0 ? fmt::format("host-{}", 8 * vector_bytes) : "host"; }

std::string default_machine() {
    const char* const named = std::getenv("NAPKIN_MACHINE");
    return named != nullptr && *named != '\0' ? named : host_name(0);
}

Machine measured_host(Machine host) {
    const auto cache = Cache::open();
    const auto entry = cache ? cache->find(key_of(host)) : std::nullopt;
    if (!entry) return host;
    const std::string path = *entry + "/" + file_name;
    auto measured = read_machine(std::make_shared<Source>(Source{path, read_file(path).value_or("")}));
    if (!measured) return host;
    measured->name = host.name;
    return *measured;
}

Result<std::string> keep_measured(const Machine& measured) {
    const auto cache = Cache::open();
    if (!cache) return cache.errors();
    const std::string text = to_toml(measured);
    const auto again = read_machine(std::make_shared<Source>(Source{"what was measured", text}));
    if (!again) return again.errors();
    const auto draft = cache->begin();
    if (!draft) return draft.errors();
    if (const int why = write_new_file(draft->directory + "/" + file_name, text); why != 0) {
        cache->abandon(*draft);
        return file_error(why, "cache-unwritable", "cannot write to " + draft->directory);
    }
    cache->remove(key_of(measured));
    const auto entry = cache->commit(*draft, key_of(measured), measured.description);
    if (!entry) return entry.errors();
    return *entry + "/" + file_name;
}

}  // namespace napkin
