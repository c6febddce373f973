#pragma once
// A machine's hierarchy as the multi-level model sees it (paper.md §5). Every level has its pipe's weight Ḣ⁻¹ and the
// memory M at which H* is taken. The transfers of an algorithm then take Σ_ℓ Ḣ_ℓ⁻¹·H*(a, M_ℓ) (Eqs. 2 and 5). Levels
// that only cache (Theorem 2), links between the children of a level (Theorem 3) and links between devices (A.2.3) only
// change the weights and memories.
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "machine/machine.hpp"

namespace napkin {

/// One line of a derivation in numbers: what is computed, by which formula, with the figures in place, and what comes
/// out.
struct Formula {
    std::string what;     ///< "M_L2"
    std::string formula;  ///< "M_SMEM·N_SMEM"
    std::string figures;  ///< "227 KiB · 132"
    double value = 0;
    std::string unit;  ///< "B", "s/B", "s", "FLOP/B", "values"; empty: a plain number
    std::string rule;  ///< "Theorem 2", "Eq. 5", …
};

/// By which rule a level enters the model.
enum class LevelRule : std::uint8_t {
    pipe,     ///< Eq. 5: its own memory behind its own pipe
    cache,    ///< Theorem 2: it only caches what its children hold
    link,     ///< Theorem 3: its instances exchange data among themselves
    devices,  ///< A.2.3: data is spread over devices before the launch
};
/// Where the paper states it: "Eq. 5", "Theorem 2", …
std::string_view citation(LevelRule rule);

struct ModelLevel {
    std::string name;
    LevelRule rule = LevelRule::pipe;
    double memory_bytes = 0;  ///< M_ℓ of one node
    /// Ḣ_ℓ⁻¹, over all pipes of the level together; negative where data is already spread
    double seconds_per_byte = 0;
    double nodes = 1;  ///< instances of the level over all devices
    double latency_s = 0;
    bool is_core = false;  ///< the level that limits what a group maintains
    /// of a caching level's instance: what is read again within it comes from there; else 0
    double capacity_bytes = 0;
    std::vector<Formula> why;
    double sustained_seconds_per_byte = 0;  ///< Ḣ_ℓ⁻¹ at the share of the pipes' rate that programs reach
};

struct LevelOptions {
    std::int64_t cluster = 1;  ///< how many cores exchange data among themselves; 1: none
    std::int64_t devices = 1;
};

/// From the outermost pipe inwards. Errors: bad-cluster, bad-devices (what the machine's links join, and what is near).
Result<std::vector<ModelLevel>> model_levels(const Machine& machine, const LevelOptions& options = {});

/// One size that a link could join, and the weight that it saves: Ḣ⁻¹(h→c) − Ḣ⁻¹(x→c).
struct LinkChoice {
    std::int64_t size = 2;
    double bytes_per_s = 0;             ///< over the whole machine
    double saved_seconds_per_byte = 0;  ///< at most 0: the link is no faster than the pipe it would relieve
};
/// The link among the children of the core's level, and the pipe that it relieves.
struct LinkOption {
    std::string link, from;   ///< "cluster", "L2"
    double pipe_bytes_per_s;  ///< h→c
    std::vector<LinkChoice> choices;
};
/// Beside the pipe from the level right above the core's, and beside that from memory, where caching levels lie
/// between.
std::vector<LinkOption> core_links(const Machine& machine);

}  // namespace napkin
