#include "machine/possible.hpp"

#include <fmt/format.h>

#include <bit>
#include <cmath>

#include "machine/peaks.hpp"
#include "support/ranges.hpp"

namespace napkin {
namespace {

/// Bytes a clock into one core: beyond what any core's pipes or register files carry.
constexpr double max_bytes_a_clock = 4096;
/// Multiply-adds a clock of one core's tensor cores, and operations a clock of its other units.
constexpr double max_matrix_rate = 65536, max_rate = 4096;
/// Operations a second of one device.
constexpr double max_peak = 1e18;

class Check {
public:
    Check(const Machine& machine, const Places& places) : m_(machine), places_(places) {}

    std::vector<Impossible> run() {
        core();
        for (std::size_t l = 0; l < m_.levels.size(); ++l) level(l);
        for (std::size_t u = 0; u < m_.units.size(); ++u) unit(u);
        for (std::size_t c = 0; c < m_.cross_transfers.size(); ++c) cross_transfer(c);
        if (m_.threads) threads(*m_.threads);
        return std::move(out_);
    }

private:
    [[nodiscard]] bool given(const std::string& path) const { return places_.contains(path); }
    /// Says it of the figure at the path, once.
    void impossible(const std::string& path, std::string why) {
        const auto place = places_.find(path);
        if (place != places_.end() && told_.insert(path).second) out_.push_back({place->second, std::move(why)});
    }
    void power_of_two(const std::string& path, double value, double low, double high, const std::string& why) {
        if (!given(path)) return;
        if (value < low || value > high || value != std::floor(value) ||
            !std::has_single_bit(static_cast<std::uint64_t>(value)))
            impossible(path, why);
    }

    void core() {
        const double hz = m_.clock_hz.value;
        if (given("clock") && (hz < 1e6 || hz > 2e10))
            impossible("clock", fmt::format("no core runs at {}", quantity_text(hz, Dimension::hertz)));
        power_of_two(
            "vector_bits", m_.vector_bits.value, 32, 16384,
            fmt::format("vectors of {} bits; their width is a power of two from 32 to 16384", m_.vector_bits.value));
        power_of_two("line", m_.line_bytes.value, 1, 65536, "a line's size is a power of two of at most 64 KiB");
        power_of_two("sector", m_.sector_bytes.value, 1, 65536, "a sector's size is a power of two of at most 64 KiB");
        if (given("line") && m_.sector_bytes.value > m_.line_bytes.value)
            impossible("sector", "a sector is a part of a line, and this one is larger");
        if (m_.launch_s.value > 1) impossible("launch", "'launch' takes longer than a second");
        if (m_.group_s.value > 1) impossible("group", "'group' takes longer than a second");
        if (m_.power_watts.value > 20000)
            impossible("power", fmt::format("{} for one device; none is fed or cooled beyond 20 kW",
                                            quantity_text(m_.power_watts.value, Dimension::watts)));
        if (m_.price_usd_per_hour.value > 10000)
            impossible("price", "nobody rents one device for more than 10000 USD/h");
    }

    void level(std::size_t l) {
        if (l == 0) return;
        const Level &level = m_.levels[l], &above = m_.levels[l - 1];
        const auto path = [&](const char* key) { return fmt::format("level.{}.{}", l, key); };
        const auto above_path = [&](const char* key) { return fmt::format("level.{}.{}", l - 1, key); };
        const std::string rate = path(given(path("total_bandwidth")) ? "total_bandwidth" : "bandwidth");
        const bool rates = given(rate) && given(path("instances"));
        if (rates && given("cores") && given("clock")) {
            const double per_core = total_bandwidth(level) / (m_.cores.value * m_.clock_hz.value);
            if (per_core > max_bytes_a_clock)
                impossible(
                    rate, fmt::format("{:.0f} bytes a clock for each core come from '{}'; no pipe carries more than {}",
                                      per_core, above.name, max_bytes_a_clock));
        }
        // A GPU's inner pipes feed from all of an outer memory's rate; a CPU's caches may be bypassed.
        if (m_.kind == MachineKind::gpu && l > 1 && rates && given(above_path("instances")) &&
            total_bandwidth(level) * (1 + 1e-9) < total_bandwidth(above))
            impossible(rate,
                       fmt::format("all of '{}' together receive {:.4g} GB/s, less than the {:.4g} GB/s that come into "
                                   "'{}' above it",
                                   level.name, total_bandwidth(level) / 1e9, total_bandwidth(above) / 1e9, above.name));
        capacity(l);
        if (given(path("latency")) && given(above_path("latency")) && above.latency_s.value > 0 &&
            level.latency_s.value > above.latency_s.value)
            impossible(path("latency"), fmt::format("'{}' answers later than '{}' above it", level.name, above.name));
        const auto share_of_rate = [&](const std::string& at, double share) {
            if (given(at) && share > 1)
                impossible(
                    at, fmt::format("{} is a share of the rate of '{}', and no more than all of it", share, level.name));
        };
        share_of_rate(path("sustained"), level.sustained.value);
        double before = 0;  // of shorter runs
        for (const auto& [lines, share] : level.runs) {
            const std::string at = path("runs.") + std::to_string(lines);
            share_of_rate(at, share.value);
            if (given(at) && before <= 1 && share.value < before)
                impossible(at, fmt::format("runs of {} lines leave less of the rate of '{}' than shorter ones", lines,
                                           level.name));
            before = share.value;
        }
        if (given(path("reread")) && given(path("capacity")) && level.reread_bytes.value > level.capacity_bytes.value)
            impossible(path("reread"),
                       fmt::format("{:.0f} bytes are more than '{}' holds", level.reread_bytes.value, level.name));
        if (m_.kind == MachineKind::gpu) one_core(l, path("core_bandwidth"), path("merging_cores"));
        shared_by_cores(l);
        if (!given(path("instances")) || !given(above_path("instances")) || told_.contains(above_path("instances")))
            return;
        const double n = level.instances.value, n_above = above.instances.value;
        if (n < n_above)
            impossible(path("instances"),
                       fmt::format("'{}' has fewer instances than '{}' above it", level.name, above.name));
        else if (m_.kind == MachineKind::gpu && std::fmod(n, n_above) != 0)
            impossible(path("instances"), fmt::format("{} instances of '{}' do not share {} of '{}' evenly", n,
                                                      level.name, n_above, above.name));
    }

    /// What one core gets of the pipe is no less than its share of it, and no more cores ask together than there are.
    void one_core(std::size_t l, const std::string& bandwidth, const std::string& merging) {
        const Level& level = m_.levels[l];
        const double share = total_bandwidth(level) * (level.sustained.known() ? level.sustained.value : 1) / m_.cores.value;
        if (given(bandwidth) && given("cores") && level.core_bandwidth_bytes_per_s.value < share)
            impossible(bandwidth, fmt::format("one core gets {:.4g} GB/s of '{}', less than its share of {:.4g} GB/s",
                                              level.core_bandwidth_bytes_per_s.value / 1e9, level.name, share / 1e9));
        if (given(merging) && given("cores") && level.merging_cores.value > m_.cores.value)
            impossible(merging, fmt::format("{:.0f} cores ask '{}' together, and there are {:.0f}",
                                            level.merging_cores.value, level.name, m_.cores.value));
    }

    /// Cores share an instance, be it unevenly, or each has as many as every other.
    void shared_by_cores(std::size_t l) {
        const std::string path = fmt::format("level.{}.instances", l);
        const double n = m_.levels[l].instances.value, cores = m_.cores.value;
        if (given(path) && given("cores") && n > cores && std::fmod(n, cores) != 0)
            impossible(path, fmt::format("{} instances of '{}' for {} cores: every core has as many", n,
                                         m_.levels[l].name, cores));
    }

    /// A level that cores share holds no more than the level above. A core's own level holds no more than the last
    /// shared level, since a core's registers may outgrow the memory beside them.
    void capacity(std::size_t l) {
        const std::string path = fmt::format("level.{}.capacity", l);
        std::size_t above = l - 1;
        while (above > 0 && m_.levels[above].instances.value >= m_.cores.value) --above;
        const Level &level = m_.levels[l], &shared = m_.levels[above];
        if (given(path) && given(fmt::format("level.{}.capacity", above)) && given("cores") &&
            level.capacity_bytes.value > shared.capacity_bytes.value)
            impossible(path, fmt::format("'{}' holds more than '{}' above it", level.name, shared.name));
    }

    void unit(std::size_t u) {
        const Unit& unit = m_.units[u];
        const bool matrix = unit.name == "tensor";
        for (const auto& [type, figure] : unit.per_clock) {
            const std::string path = fmt::format("unit.{}.{}", u, name(type));
            if (!given(path)) continue;
            const double rate = figure.value;
            if (m_.kind == MachineKind::cpu && given("vector_bits")) {
                const double lanes = m_.vector_bits.value / (8.0 * bytes(type));
                if (rate > 1024 * lanes)
                    impossible(
                        path, fmt::format("{} operations a clock are {:.0f} vectors in every clock", rate, rate / lanes));
            } else if (rate > (matrix ? max_matrix_rate : max_rate)) {
                impossible(path, fmt::format("{} operations a clock of one core; no core does more than {}", rate,
                                             matrix ? max_matrix_rate : max_rate));
            }
            if (given("clock") && given("cores") && peak_per_s(m_, unit.name, type) > max_peak)
                impossible(path,
                           fmt::format("{} cores × {} × {} a clock are {:.3g} operations a second; no device does more "
                                       "than {:.0e}",
                                       m_.cores.value, quantity_text(m_.clock_hz.value, Dimension::hertz), rate,
                                       peak_per_s(m_, unit.name, type), max_peak));
            for (const auto& [wider, its] : unit.per_clock)
                if (narrows(unit.name, wider, type) && rate < its.value &&
                    !told_.contains(fmt::format("unit.{}.{}", u, name(wider))))
                    impossible(
                        path,
                        fmt::format("{} {} a clock, less than {} {}: a narrower type takes no more of a multiplier",
                                    rate, name(type), its.value, name(wider)));
        }
    }

    /// Whether the unit's rate cannot fall from one type to the other. Integers are another circuit, and plain units
    /// may do half precision by other means.
    static bool narrows(const std::string& unit, DType wider, DType narrower) {
        if (!is_float(wider) || !is_float(narrower) || bytes(narrower) >= bytes(wider)) return false;
        return unit == "tensor" || (unit == "fma" && wider == DType::f64 && narrower == DType::f32);
    }

    void cross_transfer(std::size_t c) {
        const CrossTransfer& cross = m_.cross_transfers[c];
        const auto level = find_if(m_.levels, [&](const Level& l) { return l.name == cross.level; });
        if (level == m_.levels.end()) return;
        const bool devices = level == m_.levels.begin();
        const double instances = level->instances.value;
        for (const auto& [joined, figure] : cross.bandwidth_bytes_per_s) {
            const std::string path = fmt::format("cross_transfer.{}.{}", c, joined);
            if (joined < 2)
                impossible(path, fmt::format("'{}' joins {} of '{}'; it takes two to exchange data", cross.name, joined,
                                             cross.level));
            else if (!devices && static_cast<double>(joined) > instances)
                impossible(path, fmt::format("'{}' joins {} of '{}', and there are {}", cross.name, joined, cross.level,
                                             instances));
            if (!devices && given("cores") && given("clock")) {
                const double per_core = figure.value * instances / (m_.cores.value * m_.clock_hz.value);
                if (per_core > max_bytes_a_clock)
                    impossible(path, fmt::format("{:.0f} bytes a clock for each core; no pipe carries more than {}",
                                                 per_core, max_bytes_a_clock));
            }
            if (devices && m_.levels.size() > 1 && figure.value * instances > total_bandwidth(m_.levels[1]))
                impossible(path,
                           fmt::format("more arrives over '{}' than '{}' itself can pass on", cross.name, cross.level));
        }
    }

    void threads(const ThreadLimits& t) {
        const auto at = [](const char* key) { return fmt::format("threads.{}", key); };
        const auto both = [&](const char* a, const char* b) { return given(at(a)) && given(at(b)); };
        const double resident = t.warps_a_core.value * t.warp_threads.value;
        if (both("warps_a_core", "warp_threads") && t.threads_a_block.value > resident)
            impossible(at("threads_a_block"),
                       fmt::format("a block of {} threads; a core holds {} warps × {} threads = {}",
                                   t.threads_a_block.value, t.warps_a_core.value, t.warp_threads.value, resident));
        if (both("threads_a_block", "warp_threads") && std::fmod(t.threads_a_block.value, t.warp_threads.value) != 0)
            impossible(at("threads_a_block"), fmt::format("a block of {} threads is no whole number of warps of {}",
                                                          t.threads_a_block.value, t.warp_threads.value));
        if (both("blocks_a_core", "warps_a_core") && t.blocks_a_core.value > t.warps_a_core.value)
            impossible(at("blocks_a_core"), fmt::format("{} blocks with {} warps: a block has one at least",
                                                        t.blocks_a_core.value, t.warps_a_core.value));
        // 255 in eight bits of an instruction; 512 where two register files are counted together.
        if (t.registers_a_thread.value > 512)
            impossible(at("registers_a_thread"),
                       fmt::format("{} registers a thread; no instruction names more than 512", t.registers_a_thread.value));
        if (both("registers_a_core", "warp_threads") &&
            t.registers_a_thread.value * t.warp_threads.value > t.registers_a_core.value)
            impossible(at("registers_a_thread"),
                       fmt::format("a warp of {} threads with {} registers each needs more than the core's {}",
                                   t.warp_threads.value, t.registers_a_thread.value, t.registers_a_core.value));
        if (given(at("register_unit")) && t.register_unit.value > t.registers_a_core.value)
            impossible(at("register_unit"), "more registers at once than the core has");
        if (m_.levels.empty() || !given("cores")) return;
        const std::size_t memory = core_memory_level(m_);
        if (given(fmt::format("level.{}.capacity", memory)) && t.block_bytes.value > bytes_a_core(m_, memory))
            impossible(at("block_memory"),
                       fmt::format("a block uses {} of '{}', of which a core has {}",
                                   quantity_text(t.block_bytes.value, Dimension::bytes), m_.levels[memory].name,
                                   quantity_text(bytes_a_core(m_, memory), Dimension::bytes)));
        const std::size_t last = m_.levels.size() - 1;
        const std::string last_capacity = fmt::format("level.{}.capacity", last);
        if (last > memory && given(last_capacity) && !told_.contains(last_capacity) &&
            !told_.contains(fmt::format("level.{}.instances", last)) &&
            4 * t.registers_a_core.value != bytes_a_core(m_, last))
            impossible(at("registers_a_core"),
                       fmt::format("{} registers of 4 bytes are {}, and '{}' holds {} a core", t.registers_a_core.value,
                                   quantity_text(4 * t.registers_a_core.value, Dimension::bytes), m_.levels[last].name,
                                   quantity_text(bytes_a_core(m_, last), Dimension::bytes)));
    }

    const Machine& m_;
    const Places& places_;
    std::set<std::string> told_;
    std::vector<Impossible> out_;
};

}  // namespace

std::vector<Impossible> impossible_figures(const Machine& machine, const Places& places) {
    return Check(machine, places).run();
}

std::vector<std::string> slow_links(const Machine& machine) {
    std::vector<std::string> words;
    for (const CrossTransfer& cross : machine.cross_transfers) {
        for (std::size_t l = 1; l < machine.levels.size(); ++l) {
            const Level &level = machine.levels[l], &above = machine.levels[l - 1];
            if (level.name != cross.level) continue;
            for (const auto& [joined, rate] : cross.bandwidth_bytes_per_s) {
                if (rate.value >= level.bandwidth_bytes_per_s.value) continue;
                words.push_back(fmt::format(
                    "'{}' gives one of {} joined '{}' {:.4g} GB/s, less than the {:.4g} GB/s from "
                    "'{}' that it is there to relieve",
                    cross.name, joined, level.name, rate.value / 1e9, level.bandwidth_bytes_per_s.value / 1e9, above.name));
            }
        }
    }
    return words;
}

}  // namespace napkin
