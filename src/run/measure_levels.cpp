#include "run/measure_levels.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <numeric>

#include "machine/figures.hpp"
#include "run/measure.hpp"

namespace napkin {
namespace {

class LevelMeasurement {
public:
    explicit LevelMeasurement(MeasurementBench& bench) : b_(bench) {}

    void run(double seconds, const std::function<void()>& in_between) {
        const std::size_t num = b_.machine.levels.size();
        const double share = seconds / static_cast<double>(2 * num);
        for (std::size_t l = 0; l < num; ++l) {
            ShortestTimes timings;
            const double bytes = b_.footprint(l) * (l == 0 ? b_.cores() : 1);
            const auto lines = static_cast<std::int64_t>(bytes / b_.machine.line_bytes.value);
            tie(lines);
            const auto follow = [f = b_.kernel("follow"), m = b_.memory.get()](std::int64_t n) { f(n, m, 0); };
            follow(0);
            timings.add("follow", 20e-6, follow);
            timings.run(share);
            const double latency = timings["follow"];
            const double most = l == 0 ? latency : b_.machine.levels[l - 1].latency_s.value;
            b_.machine.levels[l].latency_s = b_.measured(
                std::min(latency, most), fmt::format("loads that wait for each other, {} lines", lines));
        }
        b_.fill<float>();
        in_between();
        for (std::size_t l = 1; l < num; ++l) {
            pipe(l, share);
            in_between();
        }
        if (num > 1) runs(b_.machine.levels[1], share);
        in_between();
        past_caches(share);
        in_between();
        if (num > 2) kept(b_.machine.levels[1], b_.machine.levels[2], share);
        in_between();
    }

private:
    /// A ring of addresses through all lines, each step to another page: the golden section of the ring.
    void tie(std::int64_t lines) {
        char* const base = static_cast<char*>(b_.memory.get());
        const auto line = static_cast<std::int64_t>(b_.machine.line_bytes.value);
        auto step = static_cast<std::int64_t>(0.6180339887498949 * static_cast<double>(lines));
        while (std::gcd(step, lines) != 1) ++step;
        for (std::int64_t i = 0; i < lines; ++i)
            *reinterpret_cast<void**>(base + i * line) = base + (i + step) % lines * line;
    }

    /// Less stays of a cache that others use too, as in a server whose cores are rented out one by one. Its capacity
    /// becomes the largest part that stays when all cores read it again. A part stays if it is read closer to the
    /// cache's own rate than to that of the level above.
    void kept(Level& cache, const Level& below, double seconds) {
        constexpr int parts = 8, reads = 8;
        const double bytes = cache.capacity_bytes.value * cache.instances.value;
        const auto values_of = [&](int part) {
            return static_cast<std::int64_t>(bytes * part / parts / b_.cores() / sizeof(float)) & ~std::int64_t{1023};
        };
        std::vector<std::function<void()>> candidates;
        for (int part = 1; part <= parts && values_of(part) * b_.threads() <= b_.values; ++part)
            candidates.push_back([this, f = b_.kernel("read_all"), each = values_of(part)] {
                auto* const memory = static_cast<float*>(b_.memory.get());
                b_.workers.run([&](int worker) { f(reads, memory + worker * each, each); });
            });
        if (candidates.empty()) return;
        const Medians medians = interleaved_medians(candidates, seconds);
        int staying = 0;
        for (const double taken : medians.seconds) {
            const double read = sizeof(float) * static_cast<double>(values_of(staying + 1) * b_.threads()),
                         at_own = 1 / (below.bandwidth_bytes_per_s.value * below.instances.value),
                         from_above = 1 / (cache.bandwidth_bytes_per_s.value * cache.instances.value);
            // The first of the reads always comes from above.
            if (taken > read * (from_above + (reads - 1) * (at_own + from_above) / 2)) break;
            ++staying;
        }
        if (staying == static_cast<int>(candidates.size())) return;
        const double least = below.capacity_bytes.value * below.instances.value / cache.instances.value;
        cache.capacity_bytes = b_.measured(
            std::max(cache.capacity_bytes.value * staying / parts, least),
            fmt::format("what stays of {} that all cores read again and again, in parts of an eighth",
                        quantity_text(cache.capacity_bytes.value, Dimension::bytes)));
    }

    /// Copies with stores past the caches, in memory and then of sizes down to those that the caches hold on to.
    void past_caches(double seconds) {
        const auto share = static_cast<std::int64_t>(b_.footprint(0) / sizeof(float)) & ~std::int64_t{1023};
        const auto add = [this](ShortestTimes& timings, const std::string& program, std::int64_t each, const char* who) {
            const TimedCode f = b_.kernel(program);
            auto* const memory = static_cast<float*>(b_.memory.get());
            timings.add(fmt::format("{} {} {}", program, each, who), 200e-6, [this, f, memory, each, who](std::int64_t n) {
                if (std::string_view(who) == "one") return f(n, memory, std::min(b_.values, each * b_.threads()));
                b_.workers.run([&](int worker) { f(n, memory + worker * each, each); });
            });
        };
        ShortestTimes timings;
        std::vector<std::int64_t> sizes;  // values a core, descending
        for (std::int64_t each = share; each * b_.threads() * static_cast<std::int64_t>(sizeof(float)) >= 1 << 20; each /= 2)
            sizes.push_back(each & ~std::int64_t{1023});
        add(timings, "copy_past", share, "one");
        for (const std::int64_t each : sizes)
            for (const char* program : {"copy_all", "copy_past"}) add(timings, program, each, "all");
        timings.run(seconds);
        const auto time = [&](const char* program, std::int64_t each, const char* who) {
            return timings[fmt::format("{} {} {}", program, each, who)];
        };
        const double all = sizeof(float) * static_cast<double>(share * b_.threads());
        const std::string what = fmt::format("copies of {} by stores past the caches",
                                             quantity_text(std::round(all), Dimension::bytes));
        b_.machine.core_nontemporal_copy_bytes_per_s = b_.measured(
            sizeof(float) * static_cast<double>(std::min(b_.values, share * b_.threads())) /
                time("copy_past", share, "one"),
            what + ", one core");
        b_.machine.nontemporal_copy_bytes_per_s = b_.measured(
            std::max(all / time("copy_past", share, "all"), b_.machine.core_nontemporal_copy_bytes_per_s.value),
            what + ", all cores");
        double from = b_.machine.levels[0].capacity_bytes.value;
        for (const std::int64_t each : sizes) {
            if (time("copy_past", each, "all") > time("copy_all", each, "all")) break;
            from = sizeof(float) * static_cast<double>(each * b_.threads());
        }
        b_.machine.nontemporal_from_bytes = b_.measured(
            from, "the least of the copies, each half as large, that are faster so");
    }

    /// The pipe into level l: what lies in the level above is read and copied, by one core and by all.
    void pipe(std::size_t l, double seconds) {
        Level& level = b_.machine.levels[l];
        const std::string& above = b_.machine.levels[l - 1].name;
        // Memory's share of one core would fit in the caches that it has to itself while it is alone.
        const auto share = static_cast<std::int64_t>(b_.footprint(l - 1) / sizeof(float)) & ~std::int64_t{1023};
        const std::int64_t alone = l == 1 ? std::min(b_.values, share * b_.threads()) : share;
        ShortestTimes timings;
        const auto add = [&](const std::string& name, const char* program) {
            const TimedCode f = b_.kernel(program);
            auto* const memory = static_cast<float*>(b_.memory.get());
            timings.add(name + " one", 50e-6, [f, memory, alone](std::int64_t n) { f(n, memory, alone); });
            timings.add(name + " all", 200e-6, [this, f, memory, share](std::int64_t n) {
                b_.workers.run([&](int worker) { f(n, memory + worker * share, share); });
            });
        };
        add("read", "read_all");
        add("copy", "copy_all");
        timings.run(seconds);
        const double bytes = sizeof(float) * static_cast<double>(share), sharing = b_.cores() / level.instances.value;
        const auto rate = [&](const std::string& timing, double of_bytes, const std::string& what) {
            return b_.measured(
                of_bytes / timings[timing],
                fmt::format("{}, {} a core in {}", what, quantity_text(std::round(bytes), Dimension::bytes), above));
        };
        const double one = sizeof(float) * static_cast<double>(alone);
        level.core_bandwidth_bytes_per_s = rate("read one", one, "one core reads");
        level.core_copy_bandwidth_bytes_per_s = rate("copy one", one, "one core copies, read and written bytes");
        // Several cores reach no less than one; where they seem to, something else had them.
        const auto at_least = [](Figure all, const Figure& of_one) { return all.value < of_one.value ? of_one : all; };
        level.bandwidth_bytes_per_s = at_least(rate("read all", bytes * sharing, "all cores read"),
                                               level.core_bandwidth_bytes_per_s);
        level.copy_bandwidth_bytes_per_s = at_least(
            rate("copy all", bytes * sharing, "all cores copy, read and written bytes"),
            level.core_copy_bandwidth_bytes_per_s);
    }

    /// Runs of few lines of many rows from memory, beside whole rows: with one core, whose prefetchers run ahead of
    /// whole rows only.
    void runs(Level& level, double seconds) {
        constexpr int all_lines[] = {1, 2, 4, 8, 16};
        ShortestTimes timings;
        const auto add = [&](int lines) {
            timings.add(std::to_string(lines), 200e-6,
                        [f = b_.kernel(fmt::format("runs_{}", lines)), m = b_.memory.get(),
                         count = b_.values](std::int64_t n) { f(n, m, count); });
        };
        add(0);
        for (const int lines : all_lines) add(lines);
        timings.run(seconds);
        double share = 1;
        for (std::size_t i = std::size(all_lines); i-- > 0;) {
            // Shorter runs are no faster; where they seem to be, prefetchers run past the ends of longer ones.
            share = std::min(share, timings["0"] / timings[std::to_string(all_lines[i])]);
            level.runs[all_lines[i]] = b_.measured(
                share, "one core reads so many lines of each of 64 rows, then the next, beside whole rows");
        }
    }

    MeasurementBench& b_;
};

}  // namespace

void measure_levels(MeasurementBench& bench, double seconds, const std::function<void()>& in_between) {
    LevelMeasurement(bench).run(seconds, in_between);
}

}  // namespace napkin
