#include "check/first_use.hpp"

#include <fmt/format.h>

#include <chrono>

#include "run/derivation.hpp"
#include "support/cache.hpp"
#include "support/files.hpp"
#include "syntax/print.hpp"

namespace napkin {

namespace {

/// A longer diagram is tried as a whole only: its steps would take as long as compiling it does.
constexpr std::size_t largest_diagram = 64;
constexpr const char* record_name = "validated.txt";

/// Share of a check's budget. A caller that compiles at run time waits for it.
constexpr double first_use_share = 0.25;

ValidateOptions first_use_options(const Derived& derived) {
    ValidateOptions options;
    options.trials = static_cast<int>(options.probes.size());
    options.operations = first_use_share * check_operations;
    options.steps = derived.source.equations.size() <= largest_diagram;
    return options;
}

std::string key_of(const std::string& text) {
    return sha256("validated by napkin " NAPKIN_VERSION "\n" + text).substr(0, 40);
}

/// What cannot be kept is found again the next time.
void remember(const Cache& cache, const std::string& key, const std::string& text) {
    const auto draft = cache.begin();
    if (!draft) return;
    if (write_new_file(draft->directory + "/" + record_name, text) != 0) return cache.abandon(*draft);
    (void)cache.commit(*draft, key, "validated derivation");
}

}  // namespace

FirstUse validate_first_use(const Derived& derived) {
    const auto start = std::chrono::steady_clock::now();
    FirstUse use;
    const std::string text = print(derived.source) + "\n" + describe(derived);
    const std::string key = key_of(text);
    const auto cache = Cache::open();
    use.known = cache.ok() && cache->find(key).has_value();
    if (!use.known) {
        const auto validations = validate(derived, first_use_options(derived));
        for (const StepValidation& v : validations) {
            use.trials = std::max(use.trials, v.trials);
            use.cut_trials = std::max(use.cut_trials, v.cut_trials);
            if (!v.wrong) continue;
            throw InternalError(fmt::format("the derivation of {} is wrong, by its {}: {}", derived.source.name, v.what,
                                            to_string(*v.wrong)));
        }
        if (cache.ok()) remember(*cache, key, text);
    }
    use.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    return use;
}

}  // namespace napkin
