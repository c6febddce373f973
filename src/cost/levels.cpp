#include "cost/levels.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "machine/quantity.hpp"
#include "support/ids.hpp"
#include "support/text.hpp"

namespace napkin {
namespace {

std::string terabytes_text(double bytes_per_s) { return fmt::format("{:.4g} TB/s", bytes_per_s / 1e12); }
std::string size_text(double bytes) { return quantity_text(bytes, Dimension::bytes); }

/// The links among the instances of a level, in the machine file's order.
std::vector<const CrossTransfer*> links_of(const Machine& machine, const std::string& level) {
    std::vector<const CrossTransfer*> links;
    for (const CrossTransfer& link : machine.cross_transfers)
        if (link.level == level) links.push_back(&link);
    return links;
}

/// The first of them that joins so many; null: none does.
const CrossTransfer* that_joins(const std::vector<const CrossTransfer*>& links, std::int64_t size) {
    for (const CrossTransfer* link : links)
        if (link->bandwidth_bytes_per_s.contains(size)) return link;
    return nullptr;
}

Diagnostic no_such_link(const Machine& machine, const std::string& code, const std::string& what,
                        const std::vector<const CrossTransfer*>& links, std::int64_t wanted) {
    Diagnostic d{.code = code, .message = fmt::format("{} cannot join {} {}", machine.name, wanted, what)};
    if (links.empty()) {
        d.expected = fmt::format("1: the machine file has no cross_transfer that joins {}", what);
        return d;
    }
    std::int64_t nearest = 1;
    std::vector<std::string> choices{"1"};
    for (const CrossTransfer* link : links) {
        std::vector<std::string> sizes;
        for (const auto& [size, rate] : link->bandwidth_bytes_per_s) {
            sizes.push_back(std::to_string(size));
            if (std::abs(size - wanted) < std::abs(nearest - wanted)) nearest = size;
        }
        choices.push_back(fmt::format("{} ({})", join(sizes, ", "), link->name));
    }
    d.expected = "one of " + join(choices, ", ");
    d.hint = fmt::format("the nearest is {}", nearest);
    return d;
}

/// Data is spread over the devices before the launch: a level of them all, and a device's memory below it.
std::vector<ModelLevel> device_levels(const Level& memory, const CrossTransfer& link, std::int64_t devices) {
    const auto count = static_cast<double>(devices);
    const double capacity = memory.capacity_bytes.value, rate = link.bandwidth_bytes_per_s.at(devices).value * count;
    ModelLevel top{.name = link.name,
                   .rule = LevelRule::devices,
                   .memory_bytes = count * capacity,
                   .seconds_per_byte = -1 / rate,
                   .why = {},
                   .sustained_seconds_per_byte = -1 / rate};
    top.why = {{"M_" + top.name, "N·M_" + memory.name, fmt::format("{} · {}", devices, size_text(capacity)),
                top.memory_bytes, "B", "A.2.3"},
               {"Ḣ⁻¹_" + top.name, "−Ḣ⁻¹(x→c): data is already spread over the devices", "−1/" + terabytes_text(rate),
                top.seconds_per_byte, "s/B", "A.2.3"}};
    ModelLevel child{.name = memory.name,
                     .rule = LevelRule::devices,
                     .memory_bytes = capacity,
                     .seconds_per_byte = 1 / rate,
                     .nodes = count,
                     .why = {},
                     .sustained_seconds_per_byte = 1 / rate};
    child.why = {
        {"Ḣ⁻¹_" + memory.name, "Ḣ⁻¹(x→c)", "1/" + terabytes_text(rate), child.seconds_per_byte, "s/B", "A.2.3"}};
    return {top, child};
}

double rate_of_pipes(const Level& level, double devices) {
    return level.bandwidth_bytes_per_s.value * level.instances.value * devices;
}

/// A level behind its own pipe; nothing says yet why its weight is what it is.
ModelLevel pipe_level(const Machine& machine, std::size_t l, double devices) {
    const std::size_t core = core_memory_level(machine);
    const Level &level = machine.levels[l], &lowest = machine.levels[core];
    const double rate = rate_of_pipes(level, devices), capacity = level.capacity_bytes.value;
    ModelLevel made{.name = level.name,
                    .memory_bytes = capacity,
                    .seconds_per_byte = 1 / rate,
                    .nodes = level.instances.value * devices,
                    .latency_s = level.latency_s.value,
                    .is_core = l == core,
                    .why = {},
                    .sustained_seconds_per_byte = 1 / (rate * (level.sustained.known() ? level.sustained.value : 1))};
    if (level.caches && l < core) {
        const double children = lowest.instances.value / level.instances.value;
        made.rule = LevelRule::cache;
        made.capacity_bytes = capacity;
        made.memory_bytes = lowest.capacity_bytes.value * children;
        made.why.push_back({"M_" + level.name,
                            fmt::format("M_{0}·N_{0}: it only caches, N_g({0})/N_g({1}) ≤ N_{0}", lowest.name, level.name),
                            fmt::format("{} · {}", size_text(lowest.capacity_bytes.value), children), made.memory_bytes,
                            "B", "Theorem 2"});
    } else if (l > core && level.instances.value > machine.cores.value) {
        // The parts of a core work on one group together, and read what they share once.
        const double parts = level.instances.value / machine.cores.value;
        const double outer = lowest.capacity_bytes.value;
        made.memory_bytes = std::min(parts * capacity, outer);
        made.nodes /= parts;
        made.why.push_back({"M_" + level.name, fmt::format("min(capacity·parts of a core, M_{}): groups nest", lowest.name),
                            fmt::format("min({} · {}, {})", size_text(capacity), parts, size_text(outer)),
                            made.memory_bytes, "B", "Eq. 5"});
    } else {
        made.why.push_back({"M_" + level.name, "its capacity", size_text(capacity), made.memory_bytes, "B", "Eq. 5"});
    }
    return made;
}

/// What a link that joins `cluster` instances of a level adds above it: a level `alone` behind pipes of the rate.
ModelLevel link_level(const ModelLevel& alone, double rate, const CrossTransfer& link, double link_rate,
                      std::int64_t cluster) {
    const auto size = static_cast<double>(cluster);
    ModelLevel out{.name = link.name,
                   .rule = LevelRule::link,
                   .memory_bytes = size * alone.memory_bytes,
                   .seconds_per_byte = 1 / rate - 1 / link_rate,
                   .nodes = alone.nodes / size,
                   .latency_s = alone.latency_s,
                   .why = {},
                   .sustained_seconds_per_byte = alone.sustained_seconds_per_byte - 1 / link_rate};
    out.why = {{"M_" + out.name, fmt::format("N·M_{}", alone.name),
                fmt::format("{} · {}", cluster, size_text(alone.memory_bytes)), out.memory_bytes, "B", "Theorem 3"},
               {"Ḣ⁻¹_" + out.name, "Ḣ⁻¹(h→c) − Ḣ⁻¹(x→c)",
                fmt::format("1/{} − 1/{}", terabytes_text(rate), terabytes_text(link_rate)), out.seconds_per_byte,
                "s/B", "Theorem 3"}};
    return out;
}

}  // namespace

std::string_view citation(LevelRule rule) {
    constexpr std::string_view names[] = {"Eq. 5", "Theorem 2", "Theorem 3", "A.2.3"};
    return names[at(rule)];
}

Result<std::vector<ModelLevel>> model_levels(const Machine& machine, const LevelOptions& options) {
    const std::size_t core = core_memory_level(machine);
    const auto among_cores = links_of(machine, machine.levels[core].name);
    const auto among_devices = links_of(machine, machine.levels[0].name);
    const CrossTransfer* cluster = that_joins(among_cores, options.cluster);
    const CrossTransfer* node = that_joins(among_devices, options.devices);
    if (options.cluster != 1 && !cluster)
        return no_such_link(machine, "bad-cluster", "cores", among_cores, options.cluster);
    if (options.devices != 1 && !node)
        return no_such_link(machine, "bad-devices", "devices", among_devices, options.devices);

    const auto devices = static_cast<double>(options.devices);
    std::vector<ModelLevel> levels;
    if (options.devices > 1) levels = device_levels(machine.levels[0], *node, options.devices);
    for (std::size_t l = 1; l < machine.levels.size(); ++l) {
        const Level& level = machine.levels[l];
        const double rate = rate_of_pipes(level, devices);
        ModelLevel made = pipe_level(machine, l, devices);
        if (l == core && options.cluster > 1) {
            const double link = cluster->bandwidth_bytes_per_s.at(options.cluster).value * level.instances.value * devices;
            levels.push_back(link_level(made, rate, *cluster, link, options.cluster));
            made.rule = LevelRule::link;
            made.seconds_per_byte = made.sustained_seconds_per_byte = 1 / link;
            made.why.push_back({"Ḣ⁻¹_" + level.name, "Ḣ⁻¹(x→c)", "1/" + terabytes_text(link), made.seconds_per_byte,
                                "s/B", "Theorem 3"});
        } else {
            made.why.push_back({"Ḣ⁻¹_" + level.name, "1 / rate of its pipes", "1/" + terabytes_text(rate),
                                made.seconds_per_byte, "s/B", std::string(citation(made.rule))});
        }
        levels.push_back(std::move(made));
    }
    return levels;
}

std::vector<LinkOption> core_links(const Machine& machine) {
    const std::size_t core = core_memory_level(machine);
    const Level& level = machine.levels[core];
    const auto links = links_of(machine, level.name);
    if (links.empty()) return {};
    const CrossTransfer* link = links.front();
    std::vector<LinkOption> options;
    const auto add = [&](const std::string& from, double rate) {
        LinkOption option{link->name, from, rate, {}};
        for (const auto& [size, figure] : link->bandwidth_bytes_per_s) {
            const double total = figure.value * level.instances.value;
            option.choices.push_back({size, total, 1 / rate - 1 / total});
        }
        options.push_back(std::move(option));
    };
    add(machine.levels[core - 1].name, level.bandwidth_bytes_per_s.value * level.instances.value);
    if (core >= 2) {
        const Level& below_memory = machine.levels[1];
        add(machine.levels[0].name, below_memory.bandwidth_bytes_per_s.value * below_memory.instances.value);
    }
    return options;
}

}  // namespace napkin
