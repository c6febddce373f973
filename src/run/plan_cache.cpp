#include "run/plan_cache.hpp"

#include <fmt/format.h>

#include "support/cache.hpp"

namespace napkin {
namespace {

constexpr const char* plan_name = "plan.json";

}  // namespace

std::string plan_key(const PlanQuestion& question, const std::string& code) {
    const std::string machine = to_toml(question.machine);
    // The lengths keep one part from passing as the end of another.
    return "plan-" + sha256(fmt::format("{} {} {}\n{}{}{}{}", code.size(), machine.size(), question.compiler.size(),
                                        code, machine, question.compiler, question.asked))
                         .substr(0, 40);
}

std::optional<std::string> kept_plan(const std::string& key) {
    const auto cache = Cache::open();
    const auto entry = cache ? cache->find(key) : std::nullopt;
    return entry ? read_file(*entry + "/" + plan_name) : std::nullopt;
}

void keep_plan(const std::string& key, const std::string& text, const std::string& note) {
    const auto cache = Cache::open();
    if (!cache) return;
    const auto draft = cache->begin();
    if (!draft) return;
    if (write_new_file(draft->directory + "/" + plan_name, text) != 0) return cache->abandon(*draft);
    cache->remove(key);
    static_cast<void>(cache->commit(*draft, key, note));
}

}  // namespace napkin
