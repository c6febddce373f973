#include "run/measure_machine.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>

#include "emit/cpu/prelude.hpp"
#include "machine/figures.hpp"
#include "machine/processor.hpp"
#include "run/measure.hpp"
#include "run/measure_levels.hpp"
#include "support/ranges.hpp"

namespace napkin {
namespace {

constexpr std::string_view kernels_text =
#include "run/measure_machine_kernels.inc"
    ;

/// Sizes of the products that are timed: rows of A, values of a row, and vectors of a panel.
constexpr int product_rows = 64, product_steps = 256, product_vectors = 3;

/// Shares of the seconds for timing, by what is timed. They are chosen, not derived: the more there is to time, the
/// larger. All parts and the moments in between take some 1.2 of what is asked for.
constexpr double share_of_f64 = 0.15, share_of_f32 = 0.35, share_of_one_core = 0.03, share_of_all_cores = 0.12,
                 share_of_levels = 0.4, share_of_threading = 0.1, share_of_moment = 0.01;

class MachineMeasurement {
public:
    MachineMeasurement(Machine machine, const JitModule& module, double seconds)
        : b_(std::move(machine), module), seconds_(seconds) {}

    MeasuredMachine run() {
        core();
        together();
        measure_levels(b_, seconds_ * share_of_levels, [this] { sample_dealt_products(); });
        threading();
        sustained();
        b_.machine.description += ", measured " + b_.day;
        return {std::move(b_.machine), taken_};
    }

private:
    void add(ShortestTimes& timings, const std::string& name) {
        constexpr double long_enough = 10e-6;  // a thousand times the clock's own resolution
        constexpr std::int64_t count = std::int64_t{1} << 19;
        timings.add(name, long_enough, [f = b_.kernel(name), m = b_.memory.get()](std::int64_t n) { f(n, m, count); });
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
        b_.fill<double>();
        for (const Timed& u : units) add(twice, std::string(u.unit) + "_f64");
        twice.run(seconds_ * share_of_f64);
        b_.fill<float>();
        for (const Timed& u : units) add(single, std::string(u.unit) + "_f32");
        for (const DType type : storage)
            for (const char* way : {"widen_", "narrow_"}) add(single, way + std::string(name(type)));
        for (const char* other : {"additions", "fma_latency_f32", "nothings", "block", "horizontal", "loops_apart",
                                  "loops_together", "calls", "short_runs", "long_runs", "transposed", "far_transposed"})
            add(single, other);
        single.run(seconds_ * share_of_f32);
        taken_ = std::max(single.taken(), twice.taken());

        const double hz = 16 / single["additions"];
        b_.machine.clock_hz = b_.measured(hz, "a chain of dependent additions, one a clock");
        const auto clocks = [&](const char* what) { return single[what] * hz; };
        b_.machine.units.clear();
        for (const Timed& u : units) {
            Unit unit{u.unit, {}, {}};
            for (const DType type : {DType::f64, DType::f32}) {
                const double vector = (type == DType::f64 ? twice : single)[fmt::format("{}_{}", u.unit, name(type))];
                unit.per_clock[type] = b_.measured(
                    u.vectors * static_cast<double>(b_.machine.lanes(type)) / (vector * hz), u.what);
            }
            b_.machine.units.push_back(std::move(unit));
        }
        const auto lanes = static_cast<double>(b_.machine.lanes(DType::f32));
        for (const char* way : {"widen", "narrow"}) {
            Unit unit{way, {}, {}};
            for (const DType type : storage)
                unit.per_clock[type] = b_.measured(16 * lanes / (single[fmt::format("{}_{}", way, name(type))] * hz),
                                                   "vectors in L1, from or to this type in storage");
            b_.machine.units.push_back(std::move(unit));
        }
        b_.machine.fma_latency_clocks = b_.measured(clocks("fma_latency_f32"), "one chain of multiply-adds");
        b_.machine.issue_per_clock = b_.measured(64 / clocks("nothings"), "instructions that do nothing");
        b_.machine.beside_factor = b_.measured(beside(clocks("block")),
                                               "10 accumulators with a broadcast load each, beside both pipes alone");
        b_.machine.loop_exit_clocks = b_.measured(
            std::max(0.0, clocks("loops_apart") - clocks("loops_together")) / 2048,
            "blocks of 8 accumulators over 8 to 23 steps in a random order, beside one long block");
        b_.machine.call_clocks = b_.measured(clocks("calls") / 16,
                                             "calls of a function that does nothing, with six arguments");
        b_.machine.horizontal_clocks = b_.measured(clocks("horizontal") / 16, "sums and maxima of vectors, in turn");
        b_.machine.copy_run_clocks = b_.measured(std::max(0.0, clocks("short_runs") - clocks("long_runs")) / (32 - 4),
                                                 "2048 values in runs of 64 and of 512");
        b_.machine.transpose_clocks = b_.measured(clocks("transposed") / (128 * 64),
                                                  "64 columns of 128 values, 576 B apart");
        b_.machine.far_transpose_clocks = b_.measured(clocks("far_transposed") / (128 * 64),
                                                      "64 columns of 128 values, 8 KiB apart");
    }

    /// Cores may share units, or lower their clock when all compute: the block on one core and on all of them at once,
    /// each in its best moment. A repetition is long beside the wake-up of a thread.
    void together() {
        const TimedCode f = b_.kernel("block");
        ShortestTimes one, all;
        one.add("block", 500e-6, [&](std::int64_t n) { f(n * block_steps, memory_of(0), 0); });
        all.add("block", 500e-6,
                [&](std::int64_t n) { b_.workers.run([&](int worker) { f(n * block_steps, memory_of(worker), 0); }); });
        const TimedCode products = b_.kernel("panels");
        all.add("panels", 500e-6, [&](std::int64_t n) {
            b_.workers.run([&](int worker) { products(n * products_a_part, memory_of(worker), num_panels()); });
        });
        one.run(seconds_ * share_of_one_core), all.run(seconds_ * share_of_all_cores);
        b_.machine.together_share = b_.measured(std::min(1.0, one["block"] / all["block"]),
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
        const double panel_bytes = product_steps * product_vectors * b_.machine.vector_bits.value / 8,
                     cache = b_.machine.levels.size() > 2 ? bytes_a_core(b_.machine, b_.machine.levels.size() - 2) : 0;
        return std::clamp<std::int64_t>(static_cast<std::int64_t>(cache / 2 / panel_bytes), 1, products_a_part);
    }

    /// The time of many products that are distributed over threads as the groups of a kernel are. Other work comes and
    /// goes, so samples are taken between all other measurements. Other work also takes parts of the caches, which
    /// accumulators alone would not show. Pre: the memory holds real numbers.
    void sample_dealt_products() {
        const std::function<void()> dealt = [this, f = b_.kernel("panels")] {
            b_.workers.deal(dealt_parts, b_.threads(), [&](int worker, std::int64_t begin, std::int64_t end) {
                f((end - begin) * products_a_part, memory_of(worker), num_panels());
            });
        };
        seconds_of_dealt_.push_back(interleaved_medians({dealt}, seconds_ * share_of_moment).seconds.front());
    }

    /// What a kernel loses to all else that runs: the middle one of the samples beside the calmest one.
    void sustained() {
        sort(seconds_of_dealt_);
        b_.machine.sustained_share = b_.measured(
            std::min(1.0, dealt_parts / b_.cores() * shortest_part_ / seconds_of_dealt_[seconds_of_dealt_.size() / 2]),
            fmt::format("{} times {} products with panels dealt out, beside the shortest time of as many "
                        "multiply-adds; median of {} moments",
                        dealt_parts, products_a_part, seconds_of_dealt_.size()));
    }

    [[nodiscard]] float* memory_of(int worker) const {
        return static_cast<float*>(b_.memory.get()) + worker * b_.values / b_.threads();
    }

    /// From the time of the block: t = (a^p + b^p)^(1/p) for pipes that take a and b alone; 2^(1/p) for equal ones.
    [[nodiscard]] double beside(double block_clocks) const {
        const auto lanes = static_cast<double>(b_.machine.lanes(DType::f32));
        const double a = 10 * lanes / per_clock(b_.machine, "fma", DType::f32);
        const double b = 10 * lanes / per_clock(b_.machine, "broadcast", DType::f32) +
                         lanes / per_clock(b_.machine, "load", DType::f32);
        double low = 0, high = 1;  // of 1/p: the pipes beside each other, and one after the other
        for (int i = 0; i < 40; ++i) {
            const double inverse = (low + high) / 2, p = 1 / inverse, longest = std::max(a, b);
            const double t = longest * std::pow(std::pow(a / longest, p) + std::pow(b / longest, p), inverse);
            (t < block_clocks ? low : high) = inverse;
        }
        return std::exp2(low);
    }

    void threading() {
        using Group = void (*)(const void* const*, void* const*, const std::int64_t*, std::int64_t, std::int64_t, void*);
        const auto group = reinterpret_cast<Group>(b_.module.symbol("group"));
        constexpr std::int64_t groups = 4096;
        ShortestTimes timings;
        timings.add("launch", 1e-3, [&](std::int64_t n) {
            for (std::int64_t i = 0; i < n; ++i) b_.workers.run([](int) {});
        });
        timings.add("groups", 1e-3, [&](std::int64_t n) {
            for (std::int64_t i = 0; i < n; ++i)
                b_.workers.deal(groups, b_.workers.threads(), [&](int, std::int64_t begin, std::int64_t end) {
                    for (std::int64_t g = begin; g < end; ++g) group(nullptr, nullptr, nullptr, g, g + 1, nullptr);
                });
        });
        timings.run(seconds_ * share_of_threading);
        b_.machine.launch_s = b_.measured(timings["launch"], "waking all threads and waiting for them, nothing done");
        b_.machine.group_s = b_.measured(std::max(0.0, timings["groups"] - timings["launch"]) * b_.cores() / groups,
                                         fmt::format("dealing out {} groups that do nothing", groups));
    }

    static constexpr std::int64_t block_steps = 1 << 16, products_a_part = 13, dealt_parts = 128;

    MeasurementBench b_;
    double seconds_;
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
