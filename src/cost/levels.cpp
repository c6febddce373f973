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
    if (options.devices > 1) {
        const Level& memory = machine.levels[0];
        const double rate = node->bandwidth_bytes_per_s.at(options.devices).value * devices;
        ModelLevel top{node->name, LevelRule::devices, devices * memory.capacity_bytes.value, -1 / rate, 1, 0, false, 0,
                       {}};
        top.why = {{"M_" + top.name, "N·M_" + memory.name,
                    fmt::format("{} · {}", options.devices, size_text(memory.capacity_bytes.value)), top.memory_bytes,
                    "B", "A.2.3"},
                   {"Ḣ⁻¹_" + top.name, "−Ḣ⁻¹(x→c): data is already spread over the devices",
                    "−1/" + terabytes_text(rate), top.seconds_per_byte, "s/B", "A.2.3"}};
        top.sustained_seconds_per_byte = top.seconds_per_byte;
        levels.push_back(std::move(top));
        ModelLevel child{memory.name, LevelRule::devices, memory.capacity_bytes.value, 1 / rate, devices, 0, false, 0,
                         {}};
        child.why = {
            {"Ḣ⁻¹_" + memory.name, "Ḣ⁻¹(x→c)", "1/" + terabytes_text(rate), child.seconds_per_byte, "s/B", "A.2.3"}};
        child.sustained_seconds_per_byte = child.seconds_per_byte;
        levels.push_back(std::move(child));
    }
    for (std::size_t l = 1; l < machine.levels.size(); ++l) {
        const Level& level = machine.levels[l];
        const double rate = level.bandwidth_bytes_per_s.value * level.instances.value * devices;
        ModelLevel made{level.name,
                        LevelRule::pipe,
                        level.capacity_bytes.value,
                        1 / rate,
                        level.instances.value * devices,
                        level.latency_s.value,
                        l == core,
                        0,
                        {}};
        const double sustained_rate = rate * (level.sustained.known() ? level.sustained.value : 1);
        made.sustained_seconds_per_byte = 1 / sustained_rate;
        if (level.caches && l < core) {
            const Level& lowest = machine.levels[core];
            const double children = lowest.instances.value / level.instances.value;
            made.rule = LevelRule::cache;
            made.capacity_bytes = level.capacity_bytes.value;
            made.memory_bytes = lowest.capacity_bytes.value * children;
            made.why.push_back(
                {"M_" + level.name,
                 fmt::format("M_{0}·N_{0}: it only caches, N_g({0})/N_g({1}) ≤ N_{0}", lowest.name, level.name),
                 fmt::format("{} · {}", size_text(lowest.capacity_bytes.value), children), made.memory_bytes, "B",
                 "Theorem 2"});
        } else if (l > core && level.instances.value > machine.cores.value) {
            // The parts of a core work on one group together, and read what they share once.
            const double parts = level.instances.value / machine.cores.value;
            const double outer = machine.levels[core].capacity_bytes.value;
            made.memory_bytes = std::min(parts * level.capacity_bytes.value, outer);
            made.nodes /= parts;
            made.why.push_back(
                {"M_" + level.name,
                 fmt::format("min(capacity·parts of a core, M_{}): groups nest", machine.levels[core].name),
                 fmt::format("min({} · {}, {})", size_text(level.capacity_bytes.value), parts, size_text(outer)),
                 made.memory_bytes, "B", "Eq. 5"});
        } else {
            made.why.push_back({"M_" + level.name, "its capacity", size_text(level.capacity_bytes.value),
                                made.memory_bytes, "B", "Eq. 5"});
        }
        if (l == core && options.cluster > 1) {
            const double link = cluster->bandwidth_bytes_per_s.at(options.cluster).value * level.instances.value * devices;
            const auto size = static_cast<double>(options.cluster);
            ModelLevel x{cluster->name,
                         LevelRule::link,
                         size * level.capacity_bytes.value,
                         1 / rate - 1 / link,
                         made.nodes / size,
                         made.latency_s,
                         false,
                         0,
                         {}};
            x.why = {{"M_" + x.name, fmt::format("N·M_{}", level.name),
                      fmt::format("{} · {}", options.cluster, size_text(level.capacity_bytes.value)), x.memory_bytes,
                      "B", "Theorem 3"},
                     {"Ḣ⁻¹_" + x.name, "Ḣ⁻¹(h→c) − Ḣ⁻¹(x→c)",
                      fmt::format("1/{} − 1/{}", terabytes_text(rate), terabytes_text(link)), x.seconds_per_byte, "s/B",
                      "Theorem 3"}};
            x.sustained_seconds_per_byte = 1 / sustained_rate - 1 / link;
            levels.push_back(std::move(x));
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
