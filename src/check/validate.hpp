#pragma once
// Translation validation. Each step of a derivation, the derived form and its merged halves are evaluated against the
// definition. This is done on small sizes, on random partitions and on inputs that show faults (probe.hpp).
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "check/agreement.hpp"
#include "check/probe.hpp"
#include "check/small_sizes.hpp"
#include "check/work.hpp"
#include "derive/derived.hpp"

namespace napkin {

/// Where a rewrite gave something else than the definition: enough to see it again.
struct Counterexample {
    Disagreement element;
    Probe probe = Probe::normal;
    SizesByName sizes;
    std::uint64_t seed = 0;  ///< of the inputs
};
std::string to_string(const Counterexample& c);

struct StepValidation {
    std::string what;  ///< the step's rule, or "derived form", "split and merge"
    double error = 0;  ///< the largest relative distance |a - b| / max(1, |b|) of finite outputs, over all trials
    int trials = 0;
    int cut_trials = 0;  ///< at smaller sizes than were drawn first, for the operations that are allowed
    std::optional<Counterexample> wrong = {};  ///< the first
    [[nodiscard]] bool good() const { return !wrong; }
};

struct ValidateOptions {
    int trials = 24;  ///< sizes, each with one kind of input, in turn
    std::uint64_t seed = 0;
    std::vector<Probe> probes{std::begin(all_probes), std::end(all_probes)};
    /// Budget of all evaluations together. A trial takes a quarter of what is left at most, so that there are some for
    /// every kind of input.
    double operations = check_operations;
    bool steps = true;  ///< false: only what the derivation ends in
};

/// One entry for each step, then the derived form under random group and stream sizes, then the same with every loop
/// split in two and merged.
std::vector<StepValidation> validate(const Derived& derived, const ValidateOptions& options = {});

}  // namespace napkin
