// The machine at hand. Caches and cores come from hwloc, the vector width from the processor's own feature bits, clocks
// from the system. What none of them knows is estimated, and its source says so. Nothing is timed here, so that one
// machine gives one plan.
#include <fmt/format.h>
#include <hwloc.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <memory>
#include <optional>

#include "machine/figures.hpp"
#include "machine/measured.hpp"
#include "machine/processor.hpp"

namespace napkin {
namespace {

constexpr double kib = 1024, gib = 1024.0 * 1024 * 1024;

struct TopologyCloser {
    void operator()(hwloc_topology* topology) const { hwloc_topology_destroy(topology); }
};
using Topology = std::unique_ptr<hwloc_topology, TopologyCloser>;

Topology load_topology() {
    hwloc_topology_t raw = nullptr;
    if (hwloc_topology_init(&raw) != 0) return nullptr;
    Topology topology(raw);
    // Linux' own tables say what is asked for here; running cpuid on every core for it would take most of the time.
    for (const char* component : {"x86", "opencl", "cuda", "nvml", "levelzero", "rsmi", "gl", "pci"})
        hwloc_topology_set_components(raw, HWLOC_TOPOLOGY_COMPONENTS_FLAG_BLACKLIST, component);
    hwloc_topology_set_all_types_filter(raw, HWLOC_TYPE_FILTER_KEEP_NONE);
    hwloc_topology_set_type_filter(raw, HWLOC_OBJ_CORE, HWLOC_TYPE_FILTER_KEEP_ALL);
    for (const hwloc_obj_type_t type : {HWLOC_OBJ_L1CACHE, HWLOC_OBJ_L2CACHE, HWLOC_OBJ_L3CACHE})
        hwloc_topology_set_type_filter(raw, type, HWLOC_TYPE_FILTER_KEEP_ALL);
    if (hwloc_topology_load(raw) != 0) return nullptr;
    return topology;
}

/// How many CPUs the control group grants, of either version; none where there is no limit.
std::optional<double> granted_cpus() {
    double quota = 0, period = 0;
    if (std::ifstream file("/sys/fs/cgroup/cpu.max"); file >> quota >> period && period > 0) return quota / period;
    if (std::ifstream q("/sys/fs/cgroup/cpu/cpu.cfs_quota_us"), p("/sys/fs/cgroup/cpu/cpu.cfs_period_us");
        q >> quota && p >> period)
        if (quota > 0 && period > 0) return quota / period;
    return std::nullopt;
}

/// Cores that this process may run on.
Figure usable_cores(const Topology& topology) {
    if (!topology) return {1, "assumed: hwloc cannot see the machine"};
    int cores = 0;
    const hwloc_bitmap_t bound = hwloc_bitmap_alloc();
    if (hwloc_get_cpubind(topology.get(), bound, HWLOC_CPUBIND_PROCESS) == 0)
        for (hwloc_obj_t core = nullptr;
             (core = hwloc_get_next_obj_by_type(topology.get(), HWLOC_OBJ_CORE, core)) != nullptr;)
            cores += hwloc_bitmap_intersects(core->cpuset, bound) != 0 ? 1 : 0;
    hwloc_bitmap_free(bound);
    if (cores == 0) cores = hwloc_get_nbobjs_by_type(topology.get(), HWLOC_OBJ_CORE);
    if (cores <= 0) cores = std::max(1, hwloc_get_nbobjs_by_type(topology.get(), HWLOC_OBJ_PU));
    const auto granted = granted_cpus();
    if (granted && *granted < cores) return {std::max(1.0, std::floor(*granted)), "the control group's CPU quota"};
    return {static_cast<double>(cores), "hwloc: cores that this process may use"};
}

std::string cpu_model(const Topology& topology) {
    if (topology) {
        hwloc_obj_t root = hwloc_get_root_obj(topology.get());
        for (const char* key : {"CPUModel"})
            if (const char* value = hwloc_obj_get_info_by_name(root, key)) return value;
    }
    std::ifstream info("/proc/cpuinfo");
    for (std::string line; std::getline(info, line);)
        if (line.starts_with("model name"))
            if (const std::size_t colon = line.find(": "); colon != std::string::npos) return line.substr(colon + 2);
    return "unknown processor";
}

Figure clock() {
    double khz = 0;
    if (std::ifstream file("/sys/devices/system/cpu/cpu0/cpufreq/cpuinfo_max_freq"); file >> khz && khz > 1e5)
        return {khz * 1e3, "sysfs: cpuinfo_max_freq"};
    std::ifstream info("/proc/cpuinfo");
    for (std::string line; std::getline(info, line);) {
        if (!line.starts_with("cpu MHz")) continue;
        const std::size_t colon = line.find(':');
        const double mhz = colon == std::string::npos ? 0 : std::atof(line.c_str() + colon + 1);
        // To 0.1 GHz, so that a drifting reading gives one figure.
        if (mhz > 100)
            return {std::round(mhz / 100) * 1e8, "/proc/cpuinfo: cpu MHz (the core may run faster than it says)"};
    }
    return {2.5e9, "assumed"};
}

/// What a core does in one clock, in vectors of its own width.
struct CoreRates {
    double fma = 1, simple = 1, load = 1, store = 1;
    double bytes_from_l2 = 32, bytes_from_l3 = 16;
    std::string source;
};

CoreRates core_rates([[maybe_unused]] int vector_bytes) {
#if defined(__x86_64__)
    // Zen 4 passes a 512-bit operation twice through 256-bit units.
    const bool two_passes = __builtin_cpu_is("amd") != 0 && __builtin_cpu_supports("avx512bf16") != 0 &&
                            __builtin_cpu_supports("avx512vp2intersect") == 0;
    if (vector_bytes == 64 && two_passes)
        return {
            1, 1, 0.69, 0.5, 32, 16, "AVX-512 on Zen 4: 512-bit operations take two passes; loads measured 2026-11-20"};
    if (vector_bytes == 64)
        return {2, 2, 1.8, 1, 48, 16, "AVX-512: two 512-bit multiply-adds and loads a clock, loads at 0.9 of nominal"};
    if (vector_bytes == 32)
        return {2, 2, 1.8, 1, 32, 16, "AVX2: two 256-bit multiply-adds and loads a clock, loads at 0.9 of nominal"};
    return {1, 2, 1.8, 1, 16, 8, "SSE2: a product and a sum a clock, two loads at 0.9 of nominal"};
#elif defined(__aarch64__)
    return {2, 2, 1.8, 1, 32, 16, "NEON: two 128-bit multiply-adds a clock"};
#else
    return {1, 1, 1, 1, 8, 8, "assumed: unknown processor"};
#endif
}

Level cache(const Topology& topology, hwloc_obj_type_t type, const std::string& name, double cores) {
    Level level;
    level.name = name;
    const int count = topology ? hwloc_get_nbobjs_by_type(topology.get(), type) : 0;
    if (count <= 0) return level;
    const hwloc_obj_t object = hwloc_get_obj_by_type(topology.get(), type, 0);
    level.capacity_bytes = {static_cast<double>(object->attr->cache.size), "hwloc"};
    // A process bound to some cores has the caches of those.
    level.instances = {std::min(static_cast<double>(count), cores), "hwloc"};
    return level;
}

/// Instructions that add up products in lanes run where multiply-adds do, as many a clock. Code for narrower vectors
/// than the processor's does without them (flags_for_vectors).
void add_lane_products([[maybe_unused]] Machine& machine, [[maybe_unused]] const CoreRates& rates) {
#if defined(__x86_64__)
    if (machine.vector_bits.value != 8 * native_vector_bytes() || machine.vector_bits.value < 256) return;
    const bool is_wide = machine.vector_bits.value == 512;
    std::map<DType, Figure> per_clock;
    const auto add = [&](DType type, const char* instruction) {
        per_clock[type] = {rates.fma * machine.vector_bits.value / (8.0 * bytes(type)),
                           fmt::format("{}, as many a clock as multiply-adds (uops.info: Ice Lake, Zen 5)", instruction)};
    };
    if (is_wide && __builtin_cpu_supports("avx512bf16")) add(DType::bf16, "vdpbf16ps");
    if (is_wide ? __builtin_cpu_supports("avx512vnni") : __builtin_cpu_supports("avxvnni")) add(DType::i8, "vpdpbusd");
    if (!per_clock.empty()) machine.units.push_back({"dot", std::move(per_clock), {}});
#endif
}

void add_units(Machine& machine, const CoreRates& rates) {
    const auto add = [&](const std::string& name, double vectors, double f64_vectors, const std::string& source) {
        const double bits = machine.vector_bits.value;
        const auto rate = [&](double values) {
            return Figure{std::round(values * 100) / 100, source, origin_of(source)};
        };
        machine.units.push_back(
            {name, {{DType::f64, rate(f64_vectors * bits / 64)}, {DType::f32, rate(vectors * bits / 32)}}, {}});
    };
    add("fma", rates.fma, rates.fma, rates.source);
    add_lane_products(machine, rates);
    add("simple", rates.simple, rates.simple, rates.source);
    add("load", rates.load, rates.load, rates.source);
    add("store", rates.store, rates.store, rates.source);
    const std::string polynomial =
        "length of the polynomial in multiply-adds (exp measured 2026-11-20: 10.5 clocks a vector)";
    add("exp", rates.fma / 10.5, rates.fma / 16, polynomial);
    add("log", rates.fma / 14, rates.fma / 22, polynomial);
    add("tanh", rates.fma / 18, rates.fma / 28, polynomial);
    add("erf", rates.fma / 22, rates.fma / 36, polynomial);
    add("sin", rates.fma / 20, rates.fma / 32, polynomial);
    add("pow", rates.fma / 30, rates.fma / 48, polynomial);
    add("div", rates.fma / 8, rates.fma / 16, "estimated: throughput of vector division");
    add("sqrt", rates.fma / 12, rates.fma / 24, "estimated: throughput of vector square root");
}

}  // namespace

Machine host_machine(int vector_bytes) {
    const int width = vector_bytes > 0 ? vector_bytes : native_vector_bytes();
    const Topology topology = load_topology();
    const CoreRates rates = core_rates(width);
    Machine machine;
    machine.name = host_name(vector_bytes);
    machine.clock_hz = clock();
    machine.cores = usable_cores(topology);
    const double cores = machine.cores.value, hz = machine.clock_hz.value;
    const std::string features = vector_bytes > 0 ? "chosen" : "the processor's feature bits";
    machine.vector_bits = {8.0 * width, features};
    machine.vector_registers = {static_cast<double>(vector_registers(width)), features};
    machine.fma_latency_clocks = estimated(4, "4 on current processors");
    machine.line_bytes = {64, "assumed"};
    machine.launch_s = estimated(10e-6, "waking threads");
    machine.group_s = estimated(0.1e-6, "one atomic increment and a call");
    machine.description = fmt::format("{}, {} core{}, {}-bit vectors", cpu_model(topology), cores,
                                      cores == 1 ? "" : "s", 8 * width);

    double memory = 8 * gib;
    std::string memory_source = "assumed";
    if (topology)
        if (const hwloc_obj_t root = hwloc_get_root_obj(topology.get()); root->total_memory > 0)
            // Virtual machines' memory comes and goes; the figure is to stay.
            memory = std::exp2(std::ceil(std::log2(static_cast<double>(root->total_memory)))),
            memory_source = "hwloc, up to a power of two";
    Level dram;
    dram.name = "DRAM", dram.capacity_bytes = {memory, memory_source}, dram.instances = {1, memory_source};
    dram.latency_s = {100e-9, "estimated", Origin::estimated};
    machine.levels.push_back(std::move(dram));

    Level l3 = cache(topology, HWLOC_OBJ_L3CACHE, "L3", cores), l2 = cache(topology, HWLOC_OBJ_L2CACHE, "L2", cores);
    Level l1 = cache(topology, HWLOC_OBJ_L1CACHE, "L1", cores);
    if (l2.capacity_bytes.value == 0 && l3.capacity_bytes.value == 0)
        l2.capacity_bytes = {256 * kib, "assumed"}, l2.instances = {cores, "assumed"};
    if (l1.capacity_bytes.value == 0) l1.capacity_bytes = {32 * kib, "assumed"}, l1.instances = {cores, "assumed"};
    // Memory fills the outermost cache, each cache the next one.
    const auto add_cache = [&](Level level, double bytes_a_clock, double latency_clocks) {
        if (level.capacity_bytes.value == 0) return;
        const double sharing = cores / level.instances.value;
        if (machine.levels.size() == 1)
            level.bandwidth_bytes_per_s = estimated(std::min(8.0, sharing) * 12e9,
                                                    "12 GB/s a core, and 8 cores saturate the memory");
        else
            level.bandwidth_bytes_per_s = estimated(bytes_a_clock * hz * sharing,
                                                    fmt::format("{} bytes a clock for each core", bytes_a_clock));
        level.latency_s = estimated(std::round(latency_clocks / hz * 1e10) / 1e10, fmt::format("{} clocks", latency_clocks));
        machine.levels.push_back(std::move(level));
    };
    add_cache(l3, rates.bytes_from_l3, 50);
    add_cache(l2, rates.bytes_from_l3, 14);
    add_cache(l1, rates.bytes_from_l2, 4);
    add_units(machine, rates);
    complete_figures(machine);
    return machine;
}

}  // namespace napkin
