#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <limits>

#include "machine/builtin.hpp"
#include "machine/figures.hpp"
#include "machine/measured.hpp"
#include "machine/occupancy.hpp"
#include "machine/peaks.hpp"
#include "machine/processor.hpp"
#include "machine/quantity.hpp"
#include "schedule/scheduled.hpp"
#include "support/paths.hpp"

namespace napkin::test_machine {
namespace {

using testing::HasSubstr;

Result<Machine> read(const std::string& text) {
    return read_machine(std::make_shared<Source>(Source{"test.toml", text}));
}

std::string file_text(const std::string& name) {
    std::ifstream file(in_sources("machines/" + name + ".toml"));
    return {std::istreambuf_iterator<char>(file), {}};
}

Machine built_in(const std::string& name) {
    auto machine = load_machine(name);
    EXPECT_TRUE(machine.ok()) << render(machine.errors());
    return machine.ok() ? *machine : Machine{};
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
    const std::size_t at = text.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    return at == std::string::npos ? text : text.replace(at, from.size(), to);
}

/// The one error of a machine file in which `from` was replaced.
Diagnostic error_in(const std::string& name, const std::string& from, const std::string& to) {
    const auto result = read(replaced(file_text(name), from, to));
    EXPECT_FALSE(result.ok()) << to;
    if (result.ok()) return {};
    EXPECT_EQ(result.errors().size(), 1U) << render(result.errors());
    return result.errors()[0];
}

Diagnostic error_of(const std::string& from, const std::string& to) { return error_in("generic-cpu", from, to); }
Diagnostic gpu_error(const std::string& from, const std::string& to) { return error_in("h100-sxm5", from, to); }

std::string text_at(const Diagnostic& d) {
    return d.range.source->text.substr(d.range.begin, d.range.end - d.range.begin);
}

TEST(Quantity, ReadsAndPrintsUnits) {
    EXPECT_EQ(parse_quantity("32 KiB", Dimension::bytes), 32768.0);
    EXPECT_EQ(parse_quantity("3.35 TB/s", Dimension::bytes_per_s), 3.35e12);
    EXPECT_EQ(parse_quantity("90ns", Dimension::seconds), 90 / 1e9);
    EXPECT_EQ(parse_quantity("700 W", Dimension::watts), 700.0);
    EXPECT_EQ(parse_quantity("2.99 USD/h", Dimension::usd_per_hour), 2.99);
    EXPECT_EQ(parse_quantity("2.99 EUR/h", Dimension::usd_per_hour), std::nullopt);
    EXPECT_EQ(parse_quantity("3 GHz", Dimension::bytes), std::nullopt);
    EXPECT_EQ(parse_quantity("much", Dimension::bytes), std::nullopt);
    EXPECT_EQ(quantity_text(1048576, Dimension::bytes), "1 MiB");
    EXPECT_EQ(quantity_text(38e9, Dimension::bytes_per_s), "38 GB/s");
    EXPECT_EQ(quantity_text(1e-5, Dimension::seconds), "10 us");
    EXPECT_EQ(quantity_text(61 / 1e9, Dimension::seconds), "61 ns");
    EXPECT_EQ(quantity_text(524288, Dimension::bytes), "512 KiB");
    for (const double value : {1.0 / 3, 1e-7, 123456789.125, 33554432.0, 5e-9})
        for (const Dimension d : {Dimension::bytes, Dimension::bytes_per_s, Dimension::seconds, Dimension::hertz,
                                  Dimension::watts, Dimension::usd_per_hour, Dimension::number})
            EXPECT_EQ(parse_quantity(quantity_text(value, d), d), value);
}

TEST(Machine, EveryBuiltInFileReadsAndComesBack) {
    ASSERT_FALSE(builtin_machine_texts().empty());
    for (const EmbeddedText& text : builtin_machine_texts()) {
        const auto machine = load_machine(std::string(text.name));
        ASSERT_TRUE(machine.ok()) << render(machine.errors());
        EXPECT_EQ(machine->name, text.name);
        const auto again = read(to_toml(*machine));
        ASSERT_TRUE(again.ok()) << render(again.errors()) << to_toml(*machine);
        EXPECT_EQ(*again, *machine);
    }
}

TEST(Machine, GpusHaveNominalRatesAndTheShareThatIsSustained) {
    for (const EmbeddedText& text : builtin_machine_texts()) {
        const Machine machine = built_in(std::string(text.name));
        if (machine.kind == MachineKind::cpu) continue;
        SCOPED_TRACE(machine.name);
        const auto expect_share = [](const Figure& share, const std::string& of) {
            EXPECT_TRUE(share.known()) << of;
            EXPECT_GT(share.value, 0) << of;
            EXPECT_LE(share.value, 1) << of;
        };
        for (std::size_t l = 1; l <= core_memory_level(machine); ++l)
            expect_share(machine.levels[l].sustained, machine.levels[l].name);
        for (const Unit& unit : machine.units)
            if (unit.name == "tensor" || unit.name == "fma" || unit.name == "simple")
                expect_share(unit.sustained, unit.name);
    }
    // One die, whatever memory it has.
    const Machine h100 = built_in("h100-sxm5"), h200 = built_in("h200");
    for (std::size_t u = 0; u < h100.units.size(); ++u) {
        EXPECT_EQ(h100.units[u].sustained.value, h200.units[u].sustained.value) << h100.units[u].name;
        for (const auto& [type, rate] : h100.units[u].per_clock)
            EXPECT_EQ(rate.value, h200.units[u].per_clock.at(type).value) << h100.units[u].name;
    }
    for (std::size_t l = 1; l < h100.levels.size(); ++l)
        EXPECT_EQ(h100.levels[l].sustained.value, h200.levels[l].sustained.value) << h100.levels[l].name;
}

TEST(Machine, GpusSayTheirArchitecture) {
    EXPECT_EQ(built_in("h200").architecture, "sm_90a");
    EXPECT_EQ(built_in("mi300x").architecture, "gfx942");
    EXPECT_EQ(built_in("generic-cpu").architecture, "");
    const Diagnostic of_a_cpu = error_of("description = ", "architecture = \"sm_90a\"\ndescription = ");
    EXPECT_EQ(of_a_cpu.code, "unknown-key");
    EXPECT_EQ(of_a_cpu.message, "a CPU has no 'architecture'");
    EXPECT_EQ(gpu_error("architecture = \"sm_90a\"", "architecture = 90").code, "bad-value");
}

TEST(Machine, GpusSayHowValuesMove) {
    const CopyAtoms hopper{5, 256, 256, 5, 16, 16, 1101, 592, 24, true, true, 1750},
        ampere{0, 0, 0, 0, 16, 16, 0, 0, 24, true, false}, none;
    for (const char* name : {"h100-pcie", "h100-sxm5", "h200", "h800", "b200"}) {
        CopyAtoms atoms = copy_atoms(built_in(name));
        atoms.clusters = {};
        EXPECT_EQ(atoms, hopper) << name;
    }
    EXPECT_EQ(copy_atoms(built_in("h200")).clusters, (std::vector<std::int64_t>{2, 4, 8}));
    for (const char* name : {"a100-sxm-40gb", "a100-sxm-80gb", "rtx-4090"})
        EXPECT_EQ(copy_atoms(built_in(name)), ampere) << name;
    EXPECT_EQ(copy_atoms(built_in("mi300x")), none) << "the emitter writes none of its instructions";
    EXPECT_EQ(gpu_error("dimensions = 5", "dimension = 5").code, "unknown-key");
    EXPECT_EQ(gpu_error("dimensions = 5", "dimensions = 0").code, "bad-value");
    EXPECT_EQ(gpu_error("dimensions = 5\n", "").code, "missing-key");
    EXPECT_EQ(gpu_error("box = 256\n", "").code, "missing-key");
    EXPECT_EQ(gpu_error("box = 256", "box = -1").code, "bad-value");
    EXPECT_EQ(gpu_error("to = \"SMEM\"", "to = \"SMEN\"").code, "bad-value");
    EXPECT_EQ(gpu_error("latency = { value = 24", "latency = { value = -24").code, "impossible-figure");
}

// A product's instruction may be slower than the unit that runs it, as mma is beside wgmma.
TEST(Machine, InstructionsSayWhatShareOfTheirUnitTheyReach) {
    for (const char* name : {"h100-pcie", "h100-sxm5", "h200", "h800"})
        for (const Instruction& i : built_in(name).instructions)
            EXPECT_EQ(i.sustained.known(), i.name == "mma") << name << i.name;
    EXPECT_EQ(gpu_error("sustained = { value = 0.71", "sustained = { value = -1").code, "impossible-figure");
    EXPECT_EQ(gpu_error("sustained = { value = 0.71", "sustaned = { value = 0.71").code, "unknown-key");
}

/// By PTX and its assembler (CUDA 13.0), which takes no other types; of CDNA 3 every MFMA of floating-point operands is
/// a V_MFMA_F32 or V_MFMA_F64.
TEST(Machine, InstructionsSayWhatTheyAddIn) {
    for (const std::string& name : machine_names())
        for (const Instruction& i : built_in(name).instructions) {
            EXPECT_EQ(i.accumulators.size(), i.k.size()) << name << ": " << i.name;
            const bool is_amd = name == "mi300x";
            for (const auto& [type, k] : i.k) {
                EXPECT_EQ(adds_in(i, type, DType::f64), type == DType::f64) << name << ": " << i.name;
                EXPECT_EQ(adds_in(i, type, DType::f32), type != DType::f64 && is_float(type)) << name << ": " << i.name;
                EXPECT_EQ(adds_in(i, type, DType::f16), !is_amd && is_float(type) && (type == DType::f16 || bytes(type) == 1))
                    << name << ": " << i.name;
                EXPECT_EQ(adds_in(i, type, DType::i32), !is_float(type)) << name << ": " << i.name;
            }
        }
    // Hopper's wgmma adds FP8 products with fewer bits than its accumulator has.
    const Instruction wgmma = built_in("h800").instructions.at(0);
    EXPECT_EQ(wgmma.accumulators.at(DType::e4m3).at(1).bits.value, 14);
    EXPECT_FALSE(wgmma.accumulators.at(DType::f16).at(1).bits.known());
    const std::string types = "accumulators = { f64 = [\"f64\"] }";
    const auto with = [&](const std::string& text) { return gpu_error(types, text); };
    EXPECT_EQ(with("").code, "missing-key");
    EXPECT_EQ(with("accumulators = 64").code, "bad-value");
    EXPECT_EQ(with("accumulators = {}").message, "'accumulators' of instruction 'mma.f64' has no 'f64'");
    EXPECT_EQ(with("accumulators = { f64 = [] }").code, "bad-value");
    EXPECT_EQ(with("accumulators = { f64 = [64] }").code, "bad-value");
    EXPECT_EQ(with("accumulators = { f64 = [\"f46\"] }").hint, "did you mean f64?");
    EXPECT_THAT(with("accumulators = { f64 = [\"f64\", \"f64\"] }").message, HasSubstr("has f64 twice"));
    EXPECT_EQ(with("accumulators = { f64 = [\"f64\"], f16 = [\"f16\"] }").code, "unknown-key");
    EXPECT_EQ(with("accumulators = { f64 = [{ bits = 14 }] }").code, "missing-key");
    EXPECT_EQ(with("accumulators = { f64 = [{ type = \"f64\", bits = 54 }] }").code, "impossible-figure");
    EXPECT_EQ(with("accumulators = { f64 = [{ type = \"f64\", bits = -1 }] }").code, "impossible-figure");
}

TEST(Machine, GenericCpu) {
    const auto machine = load_machine("generic-cpu");
    ASSERT_TRUE(machine.ok());
    EXPECT_EQ(machine->num_cores(), 8);
    EXPECT_EQ(machine->lanes(DType::f32), 8);
    EXPECT_EQ(machine->levels[core_memory_level(*machine)].name, "L2");
    EXPECT_EQ(bytes_a_core(*machine, 1), 2.0 * 1024 * 1024);
    EXPECT_EQ(per_clock(*machine, "fma", DType::f32), 16);
    EXPECT_GT(per_clock(*machine, "tanh", DType::f32), 0) << "estimated from fma";
}

template <class Owner>
void add_figures(std::vector<Figure>& out, std::span<const FigureKey<Owner>> keys, const Owner& owner, bool cpu) {
    for (const FigureKey<Owner>& k : keys)
        if (k.need == Need::always || (k.need == Need::of_cpus && cpu)) out.push_back(owner.*k.figure);
}

/// Every figure that a machine has to have.
std::vector<Figure> figures(const Machine& m) {
    std::vector<Figure> out;
    const bool cpu = m.kind == MachineKind::cpu;
    add_figures(out, machine_figures(), m, cpu);
    for (std::size_t l = 0; l < m.levels.size(); ++l) {
        add_figures(out, level_figures(), m.levels[l], cpu);
        if (l > 0) out.push_back(m.levels[l].bandwidth_bytes_per_s);
        for (const auto& [lines, share] : m.levels[l].runs) out.push_back(share);
        if (l > 0 && cpu) out.push_back(m.levels[l].core_copy_bandwidth_bytes_per_s);
    }
    if (cpu)
        out.insert(out.end(), {m.issue_per_clock, m.beside_factor, m.together_share, m.sustained_share,
                               m.loop_exit_clocks, m.call_clocks, m.transpose_clocks});
    for (const Unit& unit : m.units)
        for (const auto& [type, rate] : unit.per_clock) out.push_back(rate);
    for (const CrossTransfer& cross : m.cross_transfers)
        for (const auto& [joined, rate] : cross.bandwidth_bytes_per_s) out.push_back(rate);
    for (const Instruction& i : m.instructions) out.push_back({1, i.source});
    for (const CopyInstruction& c : m.copies)
        out.insert(out.end(), {{1, c.source}, c.latency_clocks.known() ? c.latency_clocks : Figure{1, c.source}});
    if (m.threads) add_figures(out, thread_figures(), *m.threads, cpu);
    return out;
}

TEST(Machine, RunsOfLinesHaveSharesOfTheRate) {
    EXPECT_EQ(gpu_error("runs = { 1 = {", "runs = { 0 = {").code, "unknown-key");
    EXPECT_EQ(gpu_error("runs = { 1 = {", "runs = { one = {").code, "unknown-key");
    EXPECT_EQ(gpu_error("runs = { 1 = { value = 0.96", "runs = { 1 = { value = \"0.67 GB/s\"").code, "bad-value");
    EXPECT_EQ(gpu_error("cache = true", "cache = true\nruns = 0.67").code, "bad-toml") << "two tables of them";
    Level level;
    EXPECT_EQ(share_of_runs(level, 1), 1) << "nothing is known";
    level.runs = {{2, {0.5, "test"}}, {8, {0.7, "test"}}};
    for (const double lines : {0.25, 1.0, 2.0}) EXPECT_EQ(share_of_runs(level, lines), 0.5) << lines;
    EXPECT_NEAR(share_of_runs(level, 4), 0.6, 1e-12) << "halfway from 2 to 8 along the logarithm";
    EXPECT_NEAR(share_of_runs(level, 8), 0.7, 1e-12);
    EXPECT_NEAR(share_of_runs(level, 16), 0.85, 1e-12) << "half of the loss";
    EXPECT_NEAR(share_of_runs(level, 32), 0.925, 1e-12);
    for (double lines = 0.5; lines < 100; lines *= 1.1)
        EXPECT_LE(share_of_runs(level, lines), share_of_runs(level, 1.1 * lines)) << lines;
}

// Loads that no prefetcher helps: 12 lines of 64 bytes a core in 90 ns.
TEST(MachineFile, RunsOfACpuAreEstimatedWhereItsCoresOwnLoadsDoNotFillTheMemory) {
    EXPECT_TRUE(built_in("generic-cpu").levels[1].runs.empty()) << "eight cores fill 40 GB/s";
    const auto two = read(replaced(file_text("generic-cpu"), "cores = 8", "cores = 2"));
    ASSERT_TRUE(two.ok()) << render(two.errors());
    ASSERT_EQ(two->levels[1].runs.count(4), 1U);
    EXPECT_NEAR(two->levels[1].runs.at(4).value, 2 * 12 * 64 / 90e-9 / 40e9, 1e-9);
    EXPECT_THAT(two->levels[1].runs.at(4).source, HasSubstr("estimated"));
    for (std::size_t l = 2; l < two->levels.size(); ++l) EXPECT_TRUE(two->levels[l].runs.empty());
}

TEST(Machine, EveryFigureSaysWhereItIsFrom) {
    for (const std::string& name : machine_names())
        for (const Figure& figure : figures(built_in(name)))
            EXPECT_NE(figure.source, "") << name << ": " << figure.value;
}

/// FLOP/byte at which the tensor cores and the pipe from the first level take equally long.
double ridge(const Machine& machine, DType type) {
    for (const Ridge& r : ridges(machine))
        if (r.unit == "tensor" && r.type == type && r.level == 1) return r.flop_per_byte;
    return 0;
}

TEST(Machine, TheDocumentsFiguresFollow) {
    const Machine h100 = built_in("h100-sxm5");
    EXPECT_NEAR(peak_per_s(h100, "tensor", DType::f16), 989e12, 0.5e12);
    EXPECT_NEAR(peak_per_s(h100, "tensor", DType::e4m3), 1979e12, 0.5e12);
    EXPECT_NEAR(ridge(h100, DType::bf16), 295, 0.5);
    EXPECT_NEAR(ridge(h100, DType::e4m3), 591, 1) << "paper.md §9 divides by 3.35 TB/s";
    EXPECT_NEAR(total_bandwidth(h100.levels[2]), 12e12, 1);
    EXPECT_EQ(per_clock(h100, "exp", DType::f16), 16);
    EXPECT_EQ(per_clock(h100, "fma", DType::f16), 256) << "512 operations, Table 3";
    EXPECT_EQ(bytes_a_core(h100, core_memory_level(h100)), 227 * 1024);
    EXPECT_EQ(bytes_a_core(h100, 3), 256 * 1024);

    EXPECT_EQ(std::round(ridge(built_in("a100-sxm-40gb"), DType::f16)), 208);
    EXPECT_NEAR(peak_per_s(built_in("a100-sxm-80gb"), "tensor", DType::f16), 312e12, 0.5e12);
    EXPECT_NEAR(peak_per_s(built_in("h100-pcie"), "tensor", DType::f16), 756e12, 0.5e12);
    EXPECT_NEAR(peak_per_s(built_in("mi300x"), "tensor", DType::f16), 1307.4e12, 0.5e12);
    EXPECT_NEAR(peak_per_s(built_in("rtx-4090"), "tensor", DType::f16), 165.2e12, 0.5e12);
    EXPECT_NEAR(peak_per_s(built_in("b200"), "tensor", DType::f16), 2250e12, 10e12);

    const Machine h800 = built_in("h800");
    const CrossTransfer& cluster = h800.cross_transfers[0];
    EXPECT_EQ(cluster.level, "SMEM");
    EXPECT_NEAR(cluster.bandwidth_bytes_per_s.at(2).value * 114, 3.27e12, 1);
    EXPECT_NEAR(cluster.bandwidth_bytes_per_s.at(4).value * 114, 2.65e12, 1);
    EXPECT_EQ(total_bandwidth(h800.levels[1]), 2.04e12);
}

TEST(Machine, RatesThatAreNotGiven) {
    const Machine h100 = built_in("h100-sxm5");
    EXPECT_EQ(per_clock(h100, "tensor", DType::f32), 0) << "no tensor cores in single precision";
    EXPECT_EQ(per_clock(h100, "log", DType::bf16), 16) << "as in single precision";
    EXPECT_GT(per_clock(h100, "exp", DType::f64), 0) << "a polynomial";
    EXPECT_LT(per_clock(h100, "exp", DType::f64), 64);
    EXPECT_EQ(per_clock(h100, "load", DType::i32), 32);
    EXPECT_EQ(peak_per_s(h100, "tensor", DType::f32), 0);
}

TEST(Machine, WhatAFileLeavesOutIsEstimatedAndSaysSo) {
    const Machine cpu = built_in("generic-cpu");
    EXPECT_NEAR(cpu.beside_factor.value, std::exp2(0.25), 0.01);
    EXPECT_THAT(cpu.loop_exit_clocks.source, HasSubstr("estimated"));
    EXPECT_EQ(cpu.levels[2].core_bandwidth_bytes_per_s.value, cpu.levels[2].bandwidth_bytes_per_s.value)
        << "a core's own";
    EXPECT_LT(cpu.levels[1].core_bandwidth_bytes_per_s.value, cpu.levels[1].bandwidth_bytes_per_s.value) << "shared";
    EXPECT_EQ(per_clock(cpu, "broadcast", DType::f32), per_clock(cpu, "load", DType::f32));
    EXPECT_EQ(per_clock(cpu, "widen", DType::bf16), per_clock(cpu, "simple", DType::f32) / 2);
    const auto given = read(replaced(file_text("generic-cpu"), "line = ", "loop_exit = 7.5\nline = "));
    ASSERT_TRUE(given.ok()) << render(given.errors());
    EXPECT_EQ(given->loop_exit_clocks.value, 7.5);
    EXPECT_FALSE(built_in("h200").loop_exit_clocks.known()) << "a GPU has no such figure";
}

/// A directory of its own for the cache, while it lives: tests of this file run in several processes at a time.
struct OwnCache {
    OwnCache() {
        if (const char* before = std::getenv("NAPKIN_CACHE_DIR")) kept = before;
        const std::string own = testing::TempDir() + "machine-cache-" + std::to_string(::getpid());
        std::filesystem::remove_all(own);  // what an earlier test has kept
        ::setenv("NAPKIN_CACHE_DIR", own.c_str(), 1);
    }
    ~OwnCache() { kept.empty() ? ::unsetenv("NAPKIN_CACHE_DIR") : ::setenv("NAPKIN_CACHE_DIR", kept.c_str(), 1); }
    std::string kept;
};

TEST(Machine, TheHostIsWhatWasKeptAsMeasured) {
    const OwnCache cache;
    Machine machine = host_machine(16);
    EXPECT_EQ(machine.name, "host-128");
    EXPECT_EQ(machine.vector_bits.value, 128);
    machine.loop_exit_clocks = {13.5, "measured 2026-11-22", Origin::measured};
    const auto path = keep_measured(machine);
    ASSERT_TRUE(path.ok()) << render(path.errors());
    EXPECT_EQ(*load_machine("host-128"), machine);
    if (native_vector_bytes() > 16) {
        EXPECT_EQ(load_machine("host")->loop_exit_clocks, host_machine().loop_exit_clocks) << "another width";
    }
    machine.loop_exit_clocks.value = 14;
    ASSERT_TRUE(keep_measured(machine).ok());
    EXPECT_EQ(load_machine("host-128")->loop_exit_clocks.value, 14) << "the later measurement";
    std::ofstream(*path) << "not what was kept";
    EXPECT_EQ(*load_machine("host-128"), host_machine(16)) << "a broken file is not read";
}

TEST(Machine, TheHostIsTheSameMachineByTheNameOfItsWidth) {
    const OwnCache cache;
    Machine machine = host_machine();
    machine.loop_exit_clocks = {13.5, "measured 2026-11-22", Origin::measured};
    ASSERT_TRUE(keep_measured(machine).ok());
    const auto by_width = load_machine(host_name(native_vector_bytes()));
    ASSERT_TRUE(by_width.ok()) << render(by_width.errors());
    EXPECT_EQ(by_width->loop_exit_clocks.value, 13.5)
        << "as the host has no other vectors, it is not measured a second time";
    EXPECT_EQ(by_width->name, host_name(native_vector_bytes()));
}

TEST(Machine, TheHostIsPlausibleAndReadsBack) {
    const Machine host = host_machine();
    EXPECT_EQ(host, host_machine()) << "nothing is timed";
    EXPECT_GE(host.num_cores(), 1);
    EXPECT_GE(host.levels.size(), 2U);
    const auto again = read(to_toml(host));
    ASSERT_TRUE(again.ok()) << render(again.errors()) << to_toml(host);
    EXPECT_EQ(*again, host);
}

TEST(Machine, UnknownNamesAndFiles) {
    const auto near = load_machine("generic_cpu");
    ASSERT_FALSE(near.ok());
    EXPECT_EQ(near.errors()[0].code, "unknown-machine");
    EXPECT_THAT(near.errors()[0].hint, HasSubstr("did you mean generic-cpu?"));
    const auto missing = load_machine("/nowhere/at/all.toml");
    ASSERT_FALSE(missing.ok());
    EXPECT_EQ(missing.errors()[0].code, "unreadable-file");
}

TEST(MachineErrors, AMisspeltKeyIsOneError) {
    const Diagnostic d = error_of("latency = \"14 ns\"", "latencies = \"14 ns\"");
    EXPECT_EQ(d.code, "unknown-key");
    EXPECT_THAT(d.hint, HasSubstr("did you mean latency?"));
    EXPECT_EQ(text_at(d), "latencies");
    EXPECT_EQ(error_of("vector_bits", "vector_bit").code, "unknown-key");
    EXPECT_EQ(error_of("cores = 8", "").code, "missing-key");
}

TEST(MachineErrors, Values) {
    Diagnostic d = error_of("\"3 GHz\"", "3");
    EXPECT_EQ(d.code, "bad-value");
    EXPECT_THAT(d.message, HasSubstr("has no unit"));
    EXPECT_THAT(d.expected, HasSubstr("GHz"));
    d = error_of("\"16 MiB\"", "\"16 MiB/s\"");
    EXPECT_EQ(d.code, "bad-value");
    EXPECT_EQ(text_at(d), "\"16 MiB/s\"");
    EXPECT_EQ(error_of("source = \"16 bytes a clock\"\n", "").code, "missing-source");
    d = error_of("[[unit]]\nname = \"fma\"", "[[unit]]\nname = \"fmadd\"");
    EXPECT_EQ(d.code, "bad-value");
    EXPECT_THAT(d.hint, HasSubstr("did you mean fma?"));
    EXPECT_EQ(error_of("[[unit]]\nname = \"fma\"", "[[unit]]\nname = \"erf\"").code, "missing-key");
}

TEST(MachineErrors, ImpossibleFigures) {
    EXPECT_THAT(error_of("\"3 GHz\"", "\"300 GHz\"").message, HasSubstr("no core runs at 300 GHz"));
    EXPECT_THAT(error_of("vector_bits = 256", "vector_bits = 250").message, HasSubstr("power of two"));
    EXPECT_THAT(error_of("cores = 8", "cores = 7.5").message, HasSubstr("whole"));
    EXPECT_THAT(error_of("capacity = \"512 KiB\"", "capacity = \"512 GiB\"").message,
                HasSubstr("holds more than 'L3'"));
    EXPECT_THAT(error_of("latency = \"5 ns\"", "latency = \"500 ns\"").message, HasSubstr("answers later than 'L3'"));
    EXPECT_THAT(error_of("bandwidth = \"96 GB/s\"", "bandwidth = \"96000 GB/s\"").message, HasSubstr("bytes a clock"));
    EXPECT_THAT(error_of("bandwidth = \"40 GB/s\"", "bandwidth = \"-40 GB/s\"").message, HasSubstr("negative"));
}

TEST(MachineErrors, OfGpus) {
    EXPECT_THAT(gpu_error("warps_a_core", "warps_core").hint, HasSubstr("did you mean warps_a_core?"));
    EXPECT_THAT(gpu_error("level = \"SMEM\"", "level = \"SMEN\"").hint, HasSubstr("did you mean SMEM?"));
    EXPECT_THAT(gpu_error("unit = \"tensor\"\nthreads = 128", "unit = \"tensors\"\nthreads = 128").hint,
                HasSubstr("did you mean tensor?"));
    EXPECT_EQ(gpu_error("n = { from = 8, to = 256, step = 8 }", "n = { from = 8, to = 250, step = 8 }").code,
              "bad-value");
    EXPECT_EQ(gpu_error("m = 64\n", "").code, "missing-key");
    const auto of_d = [](const std::string& layout) {
        return gpu_error("d = \"((4,8),(2,2)):((32,1),(16,8))\" }\nshared", "d = \"" + layout + "\" }\nshared").message;
    };
    EXPECT_THAT(of_d("((4,8),(2,2)):((32,1),(16,1))"), HasSubstr("does not hold every value of its rows once"));
    EXPECT_THAT(of_d("(4,8),(2,2):((32,1),(16,8))"), HasSubstr("no layout of its lanes"));
    EXPECT_THAT(gpu_error("shared = [\"a\", \"b\"]", "shared = [\"a\", \"d\"]").message, HasSubstr("has 'd'"));
    EXPECT_THAT(gpu_error("mixed = [\"e4m3\", \"e5m2\"]", "mixed = [\"e4m3\", \"f64\"]").message,
                HasSubstr("'mixed' of instruction 'wgmma' has 'f64'"));
    EXPECT_THAT(gpu_error("either_major = [\"f16\", \"bf16\"]", "either_major = [\"f16\", \"f64\"]").message,
                HasSubstr("has 'f64'"));
    EXPECT_THAT(gpu_error("k = { f64 = 16 }\naccumulators = { f64 =", "k = { f32 = 16 }\naccumulators = { f32 =").message,
                HasSubstr("no rate"));
    EXPECT_THAT(gpu_error("\"3352 GB/s\"", "\"3352 GB/s\"\ntotal_bandwidth = \"3352 GB/s\"").message,
                HasSubstr("both"));
    EXPECT_EQ(gpu_error("cache = true", "cache = 1").code, "bad-value");
    EXPECT_EQ(gpu_error("kind = \"gpu\"", "kind = \"gpus\"").code, "bad-value");
    EXPECT_EQ(gpu_error("{ value = \"700 W\"", "{ value = \"700\"").code, "bad-value");
    EXPECT_EQ(gpu_error("{ 2 = \"450 GB/s\", ", "{ two = \"450 GB/s\", ").code, "unknown-key");
    EXPECT_EQ(error_of("\n[[unit]]", "\n[threads]\nwarp_threads = 32\n\n[[unit]]").code, "unknown-key");
    const Diagnostic d = gpu_error("4 = \"4.1 TB/s\"", "4 = \"4.1 TB\"");
    EXPECT_EQ(d.code, "bad-value");
    EXPECT_EQ(text_at(d), "\"4.1 TB\"");
}

TEST(MachineErrors, ImpossibleGpus) {
    const auto why = [](const std::string& from, const std::string& to) {
        const Diagnostic d = gpu_error(from, to);
        EXPECT_EQ(d.code, "impossible-figure") << to;
        return d.message;
    };
    EXPECT_THAT(why("\"50 MiB\"", "\"500 GB\""), HasSubstr("holds more than 'GMEM'"));
    EXPECT_THAT(why("\"64 KiB\"", "\"64 MiB\""), HasSubstr("holds more than 'L2'"));
    EXPECT_THAT(why("\"12 TB/s\"", "\"12 GB/s\""), HasSubstr("less than"));
    EXPECT_THAT(why("instances = 132", "instances = 133"), HasSubstr("133 instances of 'SMEM' for 132 cores"));
    EXPECT_THAT(why("instances = 528", "instances = 600"), HasSubstr("600 instances of 'registers' for 132 cores"));
    EXPECT_THAT(why("\"227 KiB\"", "\"99 KiB\""), HasSubstr("a block uses 227 KiB"));
    EXPECT_THAT(why("threads_a_block = 1024", "threads_a_block = 2176"), HasSubstr("64 warps × 32 threads"));
    EXPECT_THAT(why("registers_a_thread = 255", "registers_a_thread = 1000"), HasSubstr("no instruction names"));
    EXPECT_THAT(why("registers_a_core = 65536", "registers_a_core = 32768"), HasSubstr("128 KiB"));
    EXPECT_THAT(why("blocks_a_core = 32", "blocks_a_core = 65"), HasSubstr("a block has one at least"));
    EXPECT_THAT(why("threads_a_block = 1024", "threads_a_block = 1000"), HasSubstr("whole number of warps"));
    EXPECT_THAT(why("f16 = 2048", "f16 = 20480000"), HasSubstr("no core does more"));
    EXPECT_THAT(why("e4m3 = { value = 4096", "e4m3 = { value = 1024"), HasSubstr("narrower"));
    EXPECT_THAT(why("2 = \"7.6 TB/s\"", "1 = \"7.6 TB/s\""), HasSubstr("it takes two"));
    EXPECT_THAT(why("2 = \"7.6 TB/s\"", "200 = \"7.6 TB/s\""), HasSubstr("there are 132"));
    EXPECT_THAT(why("2 = \"450 GB/s\"", "2 = \"4500 GB/s\""), HasSubstr("pass on"));
    EXPECT_THAT(why("\"700 W\"", "\"700 kW\""), HasSubstr("20 kW"));
    EXPECT_THAT(why("\"700 W\"", "\"0 W\""), HasSubstr("zero"));
    EXPECT_THAT(why("\"2.69 USD/h\"", "\"-1 USD/h\""), HasSubstr("negative"));
    EXPECT_THAT(why("sector = \"32 B\"", "sector = \"256 B\""), HasSubstr("part of a line"));
    EXPECT_THAT(why("sustained = { value = 0.965", "sustained = { value = 1.01"), HasSubstr("no more than all of it"));
    EXPECT_THAT(why("runs = { 1 = { value = 0.96", "runs = { 1 = { value = 67"), HasSubstr("no more than all of it"));
    EXPECT_THAT(why("runs = { 1 = { value = 0.96", "runs = { 1 = { value = 0.9999"),
                HasSubstr("runs of 2 lines leave less"));
    EXPECT_THAT(why("runs = { 1 = { value = 0.96", "runs = { 1 = { value = 0"), HasSubstr("zero"));
    EXPECT_THAT(why("cache = true", "cache = true\nreread = \"64 MiB\""), HasSubstr("more than 'L2' holds"));
    EXPECT_THAT(why("merging_cores = { value = 16", "merging_cores = { value = 133"), HasSubstr("there are 132"));
    EXPECT_THAT(why("core_bandwidth = { value = \"101 GB/s\"", "core_bandwidth = { value = \"60 GB/s\""),
                HasSubstr("less than its share"));
}

TEST(Occupancy, WhatLimitsIt) {
    const Machine h100 = built_in("h100-sxm5");
    const auto of = [&](std::int64_t threads, std::int64_t registers, std::int64_t bytes) {
        const auto found = occupancy(h100, {threads, registers, bytes});
        EXPECT_TRUE(found.ok()) << render(found.errors());
        return found.ok() ? *found : Occupancy{};
    };
    // The figures of NVIDIA's occupancy calculator.
    EXPECT_EQ(of(256, 32, 0).occupancy, 1);
    EXPECT_EQ(of(256, 64, 48 * 1024).blocks, 4);
    EXPECT_EQ(of(256, 64, 48 * 1024).occupancy, 0.5);
    EXPECT_EQ(of(256, 255, 0).blocks, 1);
    EXPECT_EQ(of(256, 255, 0).limit, OccupancyLimit::registers);
    EXPECT_EQ(of(32, 16, 0).active_warps, 32);
    EXPECT_EQ(of(32, 16, 0).limit, OccupancyLimit::blocks);
    EXPECT_EQ(of(128, 32, 113 * 1024).blocks, 2) << "228 KiB less 1 KiB for each";
    EXPECT_EQ(of(128, 32, 227 * 1024).limit, OccupancyLimit::memory);
    EXPECT_EQ(of(1024, 32, 0).blocks, 2);
    EXPECT_EQ(of(1000, 0, 0).warps_a_block, 32);
}

TEST(Occupancy, WrongBlocks) {
    const Machine h100 = built_in("h100-sxm5");
    for (const BlockShape& block : {BlockShape{0, 1, 0}, BlockShape{1025, 1, 0}, BlockShape{32, 256, 0},
                                    BlockShape{32, -1, 0}, BlockShape{32, 1, 228 * 1024}, BlockShape{1024, 255, 0}}) {
        const auto found = occupancy(h100, block);
        ASSERT_FALSE(found.ok());
        EXPECT_EQ(found.errors()[0].code, "bad-block");
    }
    EXPECT_EQ(occupancy(h100, {0, -1, -1}).errors().size(), 3U);
    EXPECT_EQ(occupancy(built_in("generic-cpu"), {32, 1, 0}).errors()[0].code, "no-thread-limits");
}

TEST(Transactions, OfAWarp) {
    const Machine h100 = built_in("h100-sxm5");
    EXPECT_EQ(warp_transactions(h100, 0, 4), 1) << "a broadcast";
    EXPECT_EQ(warp_transactions(h100, 1, 4), 1) << "coalesced";
    EXPECT_EQ(warp_transactions(h100, 1, 2), 1);
    EXPECT_EQ(warp_transactions(h100, 1, 8), 2);
    EXPECT_EQ(warp_transactions(h100, 2, 4), 2);
    EXPECT_EQ(warp_transactions(h100, 32, 4), 32);
    EXPECT_EQ(warp_transactions(h100, 4096, 4), 32) << "a column of a matrix";
    EXPECT_EQ(warp_transactions(h100, -1, 4), 1);
    EXPECT_EQ(warp_transactions(h100, std::numeric_limits<std::int64_t>::min(), 4), 32);
    EXPECT_EQ(warp_transactions(built_in("mi300x"), 1, 4), 2) << "64 threads";
}

TEST(MachineErrors, Syntax) {
    const Diagnostic d = error_of("cores = 8", "cores = = 8");
    EXPECT_EQ(d.code, "bad-toml");
    EXPECT_EQ(line_column(*d.range.source, d.range.begin).line, 6U);
    EXPECT_FALSE(read("").ok());
    EXPECT_FALSE(read("level = 3\nunit = [1]\n").ok());
    EXPECT_FALSE(read(std::string("a = \"\x01\"")).ok());
    EXPECT_EQ(read("[[\n").errors()[0].code, "bad-toml") << "no assertion of the parser's";
}

TEST(Machines, OfThreeMeasurementsEachFigureIsTheMiddleOne) {
    const Machine quiet = built_in("generic-cpu");
    Machine slow_memory = quiet, busy_core = quiet;
    slow_memory.levels[1].bandwidth_bytes_per_s = {1, "a busy moment"};
    slow_memory.levels[1].capacity_bytes = {1, "a busy moment"};
    for (auto& [lines, share] : slow_memory.levels[1].runs) share = {0.01, "a busy moment"};
    busy_core.clock_hz = {1, "a busy moment"};
    busy_core.sustained_share = {0.1, "a busy moment"};
    busy_core.levels[1].latency_s = {1, "a busy moment"};
    for (Unit& unit : busy_core.units)
        for (auto& [type, rate] : unit.per_clock) rate = {1e-3, "a busy moment"};
    EXPECT_EQ(middle_of({slow_memory, busy_core, quiet}), quiet);
    EXPECT_EQ(middle_of({slow_memory, busy_core, slow_memory}).clock_hz, quiet.clock_hz);
    EXPECT_EQ(middle_of({slow_memory, busy_core, slow_memory}).levels[1].capacity_bytes.value, 1)
        << "two of three are so";
}

}  // namespace
}  // namespace napkin::test_machine
