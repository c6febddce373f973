#include "run/measure_machine.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdlib>
#include <ctime>
#include <iterator>
#include <new>
#include <numeric>

#include "emit/cpu/prelude.hpp"
#include "machine/figures.hpp"
#include "machine/processor.hpp"
#include "run/measure.hpp"
#include "run/memory.hpp"
#include "run/workers.hpp"
#include "support/ranges.hpp"

namespace napkin {
namespace {

constexpr std::string_view kernels_text =
#include "run/measure_machine_kernels.inc"
    ;

/// Sizes of the products that are timed: rows of A, values of a row, and vectors of a panel.
constexpr int product_rows = 64, product_steps = 256, product_vectors = 3;

using TimedCode = void (*)(std::int64_t, void*, std::int64_t);

/// Shares of the seconds for timing, by what is timed. They are chosen, not derived: the more there is to time, the
/// larger. All parts and the moments in between take some 1.2 of what is asked for.
constexpr double share_of_f64 = 0.15, share_of_f32 = 0.35, share_of_one_core = 0.03, share_of_all_cores = 0.12,
                 share_of_levels = 0.4, share_of_threading = 0.1, share_of_moment = 0.01;

/// Four digits are what a measurement holds.
double rounded(double value) { return std::strtod(fmt::format("{:.4g}", value).c_str(), nullptr); }

class MachineMeasurement {
public:
    MachineMeasurement(Machine machine, const JitModule& module, double seconds)
        : machine_(std::move(machine)), module_(module), seconds_(seconds), workers_(std::max(1, threads())) {
        const std::time_t now = std::time(nullptr);
        std::tm day{};
        ::gmtime_r(&now, &day);
        day_ = fmt::format("{:04}-{:02}-{:02}", day.tm_year + 1900, day.tm_mon + 1, day.tm_mday);
    }

    MeasuredMachine run() {
        double bytes = 16 << 20;
        for (std::size_t l = 0; l < machine_.levels.size(); ++l) bytes = std::max(bytes, footprint(l) * cores());
        memory_ = allocate(static_cast<std::int64_t>(bytes));
        if (!memory_) throw std::bad_alloc();
        values_ = static_cast<std::int64_t>(bytes / sizeof(float));
        core();
        together();
        levels();
        threading();
        sustained();
        machine_.description += ", measured " + day_;
        return {std::move(machine_), taken_};
    }

private:
    [[nodiscard]] double cores() const { return machine_.cores.value; }
    [[nodiscard]] int threads() const { return static_cast<int>(machine_.num_cores()); }
    [[nodiscard]] Figure measured(double value, const std::string& what) const {
        return {rounded(value), fmt::format("measured {} by napkin machines measure: {}", day_, what), Origin::measured};
    }
    [[nodiscard]] TimedCode kernel(const std::string& name) const {
        return reinterpret_cast<TimedCode>(module_.symbol(name));
    }

    void add(ShortestTimes& timings, const std::string& name) {
        constexpr double long_enough = 10e-6;  // a thousand times the clock's own resolution
        constexpr std::int64_t count = std::int64_t{1} << 19;
        timings.add(name, long_enough, [f = kernel(name), m = memory_.get()](std::int64_t n) { f(n, m, count); });
    }

    /// Numbers between 1/2 and 1: products of which neither grow nor vanish.
    template <class T>
    void fill() {
        T* const to = static_cast<T*>(memory_.get());
        const std::int64_t count = values_ * static_cast<std::int64_t>(sizeof(float)) /
                                   static_cast<std::int64_t>(sizeof(T));
        for (std::int64_t i = 0; i < count; ++i) to[i] = T(0.5) + T(i % 61) / T(128);
    }

    void core() {
        struct Timed {
            const char *unit, *what;
            int vectors;  ///< in a repetition
        };
        static constexpr Timed units[] = {{"fma", "10 chains of multiply-adds", 10},
                                          {"simple", "8 chains of a sum, a product, a comparison and a choice", 32},
                                          {"max", "10 chains of maxima", 10},
                                          {"load", "vectors from L1", 16},
                                          {"broadcast", "values from L1 into all lanes", 16},
                                          {"store", "vectors into L1", 16},
                                          {"div", "vectors from L1", 16},
                                          {"sqrt", "vectors from L1", 16},
                                          {"exp", "vectors from L1, napkin's own function", 16},
                                          {"exp_nonpositive", "vectors from L1, napkin's own function", 16},
                                          {"log", "vectors from L1, napkin's own function", 16},
                                          {"tanh", "vectors from L1, napkin's own function", 16},
                                          {"erf", "vectors from L1, napkin's own function", 16},
                                          {"sin", "vectors from L1, napkin's own function", 16},
                                          {"pow", "vectors from L1, napkin's own function", 16}};
        static constexpr DType storage[] = {DType::f16, DType::bf16, DType::e4m3, DType::e5m2};

        ShortestTimes single, twice;
        fill<double>();
        for (const Timed& u : units) add(twice, std::string(u.unit) + "_f64");
        twice.run(seconds_ * share_of_f64);
        fill<float>();
        for (const Timed& u : units) add(single, std::string(u.unit) + "_f32");
        for (const DType type : storage)
            for (const char* way : {"widen_", "narrow_"}) add(single, way + std::string(name(type)));
        for (const char* other : {"additions", "fma_latency_f32", "nothings", "block", "horizontal", "loops_apart",
                                  "loops_together", "calls", "short_runs", "long_runs", "transposed", "far_transposed"})
            add(single, other);
        single.run(seconds_ * share_of_f32);
        taken_ = std::max(single.taken(), twice.taken());

        const double hz = 16 / single["additions"];
        machine_.clock_hz = measured(hz, "a chain of dependent additions, one a clock");
        const auto clocks = [&](const char* what) { return single[what] * hz; };
        machine_.units.clear();
        for (const Timed& u : units) {
            Unit unit{u.unit, {}, {}};
            for (const DType type : {DType::f64, DType::f32}) {
                const double vector = (type == DType::f64 ? twice : single)[fmt::format("{}_{}", u.unit, name(type))];
                unit.per_clock[type] = measured(u.vectors * static_cast<double>(machine_.lanes(type)) / (vector * hz),
                                                u.what);
            }
            machine_.units.push_back(std::move(unit));
        }
        const auto lanes = static_cast<double>(machine_.lanes(DType::f32));
        for (const char* way : {"widen", "narrow"}) {
            Unit unit{way, {}, {}};
            for (const DType type : storage)
                unit.per_clock[type] = measured(16 * lanes / (single[fmt::format("{}_{}", way, name(type))] * hz),
                                                "vectors in L1, from or to this type in storage");
            machine_.units.push_back(std::move(unit));
        }
        machine_.fma_latency_clocks = measured(clocks("fma_latency_f32"), "one chain of multiply-adds");
        machine_.issue_per_clock = measured(64 / clocks("nothings"), "instructions that do nothing");
        machine_.beside_factor = measured(beside(clocks("block")),
                                          "10 accumulators with a broadcast load each, beside both pipes alone");
        machine_.loop_exit_clocks = measured(
            std::max(0.0, clocks("loops_apart") - clocks("loops_together")) / 2048,
            "blocks of 8 accumulators over 8 to 23 steps in a random order, beside one long block");
        machine_.call_clocks = measured(clocks("calls") / 16,
                                        "calls of a function that does nothing, with six arguments");
        machine_.horizontal_clocks = measured(clocks("horizontal") / 16, "sums and maxima of vectors, in turn");
        machine_.copy_run_clocks = measured(std::max(0.0, clocks("short_runs") - clocks("long_runs")) / (32 - 4),
                                            "2048 values in runs of 64 and of 512");
        machine_.transpose_clocks = measured(clocks("transposed") / (128 * 64),
                                             "64 columns of 128 values, 576 B apart");
        machine_.far_transpose_clocks = measured(clocks("far_transposed") / (128 * 64),
                                                 "64 columns of 128 values, 8 KiB apart");
    }

    /// Cores may share units, or lower their clock when all compute: the block on one core and on all of them at once,
    /// each in its best moment. A repetition is long beside the wake-up of a thread.
    void together() {
        const TimedCode f = kernel("block");
        ShortestTimes one, all;
        one.add("block", 500e-6, [&](std::int64_t n) { f(n * block_steps, memory_of(0), 0); });
        all.add("block", 500e-6,
                [&](std::int64_t n) { workers_.run([&](int worker) { f(n * block_steps, memory_of(worker), 0); }); });
        const TimedCode products = kernel("panels");
        all.add("panels", 500e-6, [&](std::int64_t n) {
            workers_.run([&](int worker) { products(n * products_a_part, memory_of(worker), num_panels()); });
        });
        one.run(seconds_ * share_of_one_core), all.run(seconds_ * share_of_all_cores);
        machine_.together_share = measured(std::min(1.0, one["block"] / all["block"]),
                                           "the block of accumulators on one core beside it on all at once");
        // In calm moments both take as long for the same multiply-adds, and one of them may not have met any.
        constexpr double accumulations_a_step = 10, accumulations_a_product = product_rows * product_steps * product_vectors;
        shortest_part_ = std::min(all["panels"], all["block"] * (products_a_part * accumulations_a_product) /
                                                     (block_steps * accumulations_a_step));
        sample_dealt_products();
    }

    /// Panels of B that the products take in turn: some hundred kilobytes, or as much as half of the cache behind the
    /// first one holds.
    [[nodiscard]] std::int64_t num_panels() const {
        const double panel_bytes = product_steps * product_vectors * machine_.vector_bits.value / 8,
                     cache = machine_.levels.size() > 2 ? bytes_a_core(machine_, machine_.levels.size() - 2) : 0;
        return std::clamp<std::int64_t>(static_cast<std::int64_t>(cache / 2 / panel_bytes), 1, products_a_part);
    }

    /// The time of many products that are distributed over threads as the groups of a kernel are. Other work comes and
    /// goes, so samples are taken between all other measurements. Other work also takes parts of the caches, which
    /// accumulators alone would not show. Pre: the memory holds real numbers.
    void sample_dealt_products() {
        const std::function<void()> dealt = [this, f = kernel("panels")] {
            workers_.deal(dealt_parts, threads(), [&](int worker, std::int64_t begin, std::int64_t end) {
                f((end - begin) * products_a_part, memory_of(worker), num_panels());
            });
        };
        seconds_of_dealt_.push_back(interleaved_medians({dealt}, seconds_ * share_of_moment).seconds.front());
    }

    /// What a kernel loses to all else that runs: the middle one of the samples beside the calmest one.
    void sustained() {
        sort(seconds_of_dealt_);
        machine_.sustained_share = measured(
            std::min(1.0, dealt_parts / cores() * shortest_part_ / seconds_of_dealt_[seconds_of_dealt_.size() / 2]),
            fmt::format("{} times {} products with panels dealt out, beside the shortest time of as many "
                        "multiply-adds; median of {} moments",
                        dealt_parts, products_a_part, seconds_of_dealt_.size()));
    }

    [[nodiscard]] float* memory_of(int worker) const {
        return static_cast<float*>(memory_.get()) + worker * values_ / threads();
    }

    /// From the time of the block: t = (a^p + b^p)^(1/p) for pipes that take a and b alone; 2^(1/p) for equal ones.
    [[nodiscard]] double beside(double block_clocks) const {
        const auto lanes = static_cast<double>(machine_.lanes(DType::f32));
        const double a = 10 * lanes / per_clock(machine_, "fma", DType::f32);
        const double b = 10 * lanes / per_clock(machine_, "broadcast", DType::f32) +
                         lanes / per_clock(machine_, "load", DType::f32);
        double low = 0, high = 1;  // of 1/p: the pipes beside each other, and one after the other
        for (int i = 0; i < 40; ++i) {
            const double inverse = (low + high) / 2, p = 1 / inverse, longest = std::max(a, b);
            const double t = longest * std::pow(std::pow(a / longest, p) + std::pow(b / longest, p), inverse);
            (t < block_clocks ? low : high) = inverse;
        }
        return std::exp2(low);
    }

    // ---- memory
    /// Bytes a core that stay in a level and in none below it.
    [[nodiscard]] double footprint(std::size_t l) const {
        const double own = bytes_a_core(machine_, l);
        if (l + 1 == machine_.levels.size()) return own / 2;
        const Level& below = machine_.levels[l + 1];
        const double inner = bytes_a_core(machine_, l + 1);
        if (l > 0) return std::max(std::min(4 * inner, own / 2), std::min(1.5 * inner, own));
        // Memory: so much that at most an eighth of it may be left in the outermost caches from one time to the next.
        const double caches = below.capacity_bytes.value * below.instances.value;
        return std::min({std::max(8 * caches, 64e6), 1e9, own * cores() / 8}) / cores();
    }
    /// A ring of addresses through all lines, each step to another page: the golden section of the ring.
    void tie(std::int64_t lines) {
        char* const base = static_cast<char*>(memory_.get());
        const auto line = static_cast<std::int64_t>(machine_.line_bytes.value);
        auto step = static_cast<std::int64_t>(0.6180339887498949 * static_cast<double>(lines));
        while (std::gcd(step, lines) != 1) ++step;
        for (std::int64_t i = 0; i < lines; ++i)
            *reinterpret_cast<void**>(base + i * line) = base + (i + step) % lines * line;
    }

    void levels() {
        const std::size_t num = machine_.levels.size();
        const double share = seconds_ * share_of_levels / static_cast<double>(2 * num);
        for (std::size_t l = 0; l < num; ++l) {
            ShortestTimes timings;
            const double bytes = footprint(l) * (l == 0 ? cores() : 1);
            const auto lines = static_cast<std::int64_t>(bytes / machine_.line_bytes.value);
            tie(lines);
            const auto follow = [f = kernel("follow"), m = memory_.get()](std::int64_t n) { f(n, m, 0); };
            follow(0);
            timings.add("follow", 20e-6, follow);
            timings.run(share);
            const double latency = timings["follow"];
            const double most = l == 0 ? latency : machine_.levels[l - 1].latency_s.value;
            machine_.levels[l].latency_s = measured(std::min(latency, most),
                                                    fmt::format("loads that wait for each other, {} lines", lines));
        }
        fill<float>();
        sample_dealt_products();
        for (std::size_t l = 1; l < num; ++l) {
            pipe(l, share);
            sample_dealt_products();
        }
        if (num > 1) runs(machine_.levels[1], share);
        sample_dealt_products();
        past_caches(share);
        sample_dealt_products();
        if (num > 2) kept(machine_.levels[1], machine_.levels[2], share);
        sample_dealt_products();
    }

    /// Less stays of a cache that others use too, as in a server whose cores are rented out one by one. Its capacity
    /// becomes the largest part that stays when all cores read it again. A part stays if it is read closer to the
    /// cache's own rate than to that of the level above.
    void kept(Level& cache, const Level& below, double seconds) {
        constexpr int parts = 8, reads = 8;
        const double bytes = cache.capacity_bytes.value * cache.instances.value;
        const auto values_of = [&](int part) {
            return static_cast<std::int64_t>(bytes * part / parts / cores() / sizeof(float)) & ~std::int64_t{1023};
        };
        std::vector<std::function<void()>> candidates;
        for (int part = 1; part <= parts && values_of(part) * threads() <= values_; ++part)
            candidates.push_back([this, f = kernel("read_all"), each = values_of(part)] {
                auto* const memory = static_cast<float*>(memory_.get());
                workers_.run([&](int worker) { f(reads, memory + worker * each, each); });
            });
        if (candidates.empty()) return;
        const Medians medians = interleaved_medians(candidates, seconds);
        int staying = 0;
        for (const double taken : medians.seconds) {
            const double read = sizeof(float) * static_cast<double>(values_of(staying + 1) * threads()),
                         at_own = 1 / (below.bandwidth_bytes_per_s.value * below.instances.value),
                         from_above = 1 / (cache.bandwidth_bytes_per_s.value * cache.instances.value);
            // The first of the reads always comes from above.
            if (taken > read * (from_above + (reads - 1) * (at_own + from_above) / 2)) break;
            ++staying;
        }
        if (staying == static_cast<int>(candidates.size())) return;
        const double least = below.capacity_bytes.value * below.instances.value / cache.instances.value;
        cache.capacity_bytes = measured(
            std::max(cache.capacity_bytes.value * staying / parts, least),
            fmt::format("what stays of {} that all cores read again and again, in parts of an eighth",
                        quantity_text(cache.capacity_bytes.value, Dimension::bytes)));
    }

    /// Copies with stores past the caches, in memory and then of sizes down to those that the caches hold on to.
    void past_caches(double seconds) {
        const auto share = static_cast<std::int64_t>(footprint(0) / sizeof(float)) & ~std::int64_t{1023};
        const auto add = [this](ShortestTimes& timings, const std::string& program, std::int64_t each, const char* who) {
            const TimedCode f = kernel(program);
            auto* const memory = static_cast<float*>(memory_.get());
            timings.add(fmt::format("{} {} {}", program, each, who), 200e-6, [this, f, memory, each, who](std::int64_t n) {
                if (std::string_view(who) == "one") return f(n, memory, std::min(values_, each * threads()));
                workers_.run([&](int worker) { f(n, memory + worker * each, each); });
            });
        };
        ShortestTimes timings;
        std::vector<std::int64_t> sizes;  // values a core, descending
        for (std::int64_t each = share; each * threads() * static_cast<std::int64_t>(sizeof(float)) >= 1 << 20; each /= 2)
            sizes.push_back(each & ~std::int64_t{1023});
        add(timings, "copy_past", share, "one");
        for (const std::int64_t each : sizes)
            for (const char* program : {"copy_all", "copy_past"}) add(timings, program, each, "all");
        timings.run(seconds);
        const auto time = [&](const char* program, std::int64_t each, const char* who) {
            return timings[fmt::format("{} {} {}", program, each, who)];
        };
        const double all = sizeof(float) * static_cast<double>(share * threads());
        const std::string what = fmt::format("copies of {} by stores past the caches",
                                             quantity_text(std::round(all), Dimension::bytes));
        machine_.core_nontemporal_copy_bytes_per_s = measured(
            sizeof(float) * static_cast<double>(std::min(values_, share * threads())) / time("copy_past", share, "one"),
            what + ", one core");
        machine_.nontemporal_copy_bytes_per_s = measured(
            std::max(all / time("copy_past", share, "all"), machine_.core_nontemporal_copy_bytes_per_s.value),
            what + ", all cores");
        double from = machine_.levels[0].capacity_bytes.value;
        for (const std::int64_t each : sizes) {
            if (time("copy_past", each, "all") > time("copy_all", each, "all")) break;
            from = sizeof(float) * static_cast<double>(each * threads());
        }
        machine_.nontemporal_from_bytes = measured(from,
                                                   "the least of the copies, each half as large, that are faster so");
    }

    /// The pipe into level l: what lies in the level above is read and copied, by one core and by all.
    void pipe(std::size_t l, double seconds) {
        Level& level = machine_.levels[l];
        const std::string& above = machine_.levels[l - 1].name;
        // Memory's share of one core would fit in the caches that it has to itself while it is alone.
        const auto share = static_cast<std::int64_t>(footprint(l - 1) / sizeof(float)) & ~std::int64_t{1023};
        const std::int64_t alone = l == 1 ? std::min(values_, share * threads()) : share;
        ShortestTimes timings;
        const auto add = [&](const std::string& name, const char* program) {
            const TimedCode f = kernel(program);
            auto* const memory = static_cast<float*>(memory_.get());
            timings.add(name + " one", 50e-6, [f, memory, alone](std::int64_t n) { f(n, memory, alone); });
            timings.add(name + " all", 200e-6, [this, f, memory, share](std::int64_t n) {
                workers_.run([&](int worker) { f(n, memory + worker * share, share); });
            });
        };
        add("read", "read_all");
        add("copy", "copy_all");
        timings.run(seconds);
        const double bytes = sizeof(float) * static_cast<double>(share), sharing = cores() / level.instances.value;
        const auto rate = [&](const std::string& timing, double of_bytes, const std::string& what) {
            return measured(
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
                        [f = kernel(fmt::format("runs_{}", lines)), m = memory_.get(),
                         count = values_](std::int64_t n) { f(n, m, count); });
        };
        add(0);
        for (const int lines : all_lines) add(lines);
        timings.run(seconds);
        double share = 1;
        for (std::size_t i = std::size(all_lines); i-- > 0;) {
            // Shorter runs are no faster; where they seem to be, prefetchers run past the ends of longer ones.
            share = std::min(share, timings["0"] / timings[std::to_string(all_lines[i])]);
            level.runs[all_lines[i]] = measured(
                share, "one core reads so many lines of each of 64 rows, then the next, beside whole rows");
        }
    }

    // ---- threads
    void threading() {
        using Group = void (*)(const void* const*, void* const*, const std::int64_t*, std::int64_t, std::int64_t, void*);
        const auto group = reinterpret_cast<Group>(module_.symbol("group"));
        constexpr std::int64_t groups = 4096;
        ShortestTimes timings;
        timings.add("launch", 1e-3, [&](std::int64_t n) {
            for (std::int64_t i = 0; i < n; ++i) workers_.run([](int) {});
        });
        timings.add("groups", 1e-3, [&](std::int64_t n) {
            for (std::int64_t i = 0; i < n; ++i)
                workers_.deal(groups, workers_.threads(), [&](int, std::int64_t begin, std::int64_t end) {
                    for (std::int64_t g = begin; g < end; ++g) group(nullptr, nullptr, nullptr, g, g + 1, nullptr);
                });
        });
        timings.run(seconds_ * share_of_threading);
        machine_.launch_s = measured(timings["launch"], "waking all threads and waiting for them, nothing done");
        machine_.group_s = measured(std::max(0.0, timings["groups"] - timings["launch"]) * cores() / groups,
                                    fmt::format("dealing out {} groups that do nothing", groups));
    }

    static constexpr std::int64_t block_steps = 1 << 16, products_a_part = 13, dealt_parts = 128;

    Machine machine_;
    const JitModule& module_;
    double seconds_;
    Workers workers_;
    std::string day_;
    Memory memory_;
    std::int64_t values_ = 0;               ///< that the memory holds, f32
    double shortest_part_ = 0;              ///< seconds, of products on all cores at once
    std::vector<double> seconds_of_dealt_;  ///< by sample
    double taken_ = 0;                      ///< share of the time that the rounds lost to other work
};

}  // namespace

Result<MeasuredMachine> measure_machine(const MeasureOptions& options) {
    const int widest = native_vector_bytes(), vector_bytes = options.vector_bytes > 0 ? options.vector_bytes : widest;
    if (vector_bytes > widest || !std::has_single_bit(static_cast<unsigned>(vector_bytes)) || vector_bytes < 16) {
        return Diagnostic{.code = "no-vectors",
                          .message = fmt::format("this processor has no vectors of {} bytes", vector_bytes),
                          .expected = fmt::format("16, 32 or 64, at most {}", widest),
                          .exit_code = ExitCode::machine_lacks};
    }
    JitOptions jit = options.jit;
    jit.optimization = "-O2";
    for (const std::string& flag : flags_for_vectors(vector_bytes)) jit.flags.push_back(flag);
    Machine host = host_machine(options.vector_bytes);
    const auto module = jit_compile(
        fmt::format("#define NAPKIN_VECTOR_BYTES {}\n#define NAPKIN_LINE_BYTES {}\n#define NAPKIN_PRODUCT_ROWS {}\n"
                    "#define NAPKIN_PRODUCT_STEPS {}\n#define NAPKIN_PRODUCT_VECTORS {}\n{}{}",
                    vector_bytes, host.line_bytes.value, product_rows, product_steps, product_vectors,
                    cpu::prelude_text(), kernels_text),
        jit);
    if (!module) return module.errors();
    if (const Status all = Workers(std::max(1, static_cast<int>(host.cores.value))).all_started(); !all)
        return all.errors();
    MeasuredMachine result = MachineMeasurement(host, **module, options.seconds).run();
    if (!result.disturbed()) return result;
    // A busy moment spoils the few figures that are measured in it, and others in the next measurement.
    std::vector<Machine> measurements{result.machine};
    constexpr std::size_t enough = 3;
    while (measurements.size() < enough) {
        MeasuredMachine again = MachineMeasurement(host, **module, options.seconds).run();
        result.taken = std::max(result.taken, again.taken);
        measurements.push_back(std::move(again.machine));
    }
    result.machine = middle_of(measurements);
    result.machine.description += fmt::format(" while other work took {:.0f}% of the time", 100 * result.taken);
    return result;
}

}  // namespace napkin
