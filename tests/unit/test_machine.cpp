#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "machine/builtin.hpp"
#include "machine/machine.hpp"
#include "machine/quantity.hpp"

namespace napkin {
namespace {

using testing::HasSubstr;

Result<Machine> read(const std::string& text) {
    return read_machine(std::make_shared<Source>(Source{"test.toml", text}));
}

std::string generic_text() {
    std::ifstream file(NAPKIN_SOURCE_DIR "/machines/generic-cpu.toml");
    return {std::istreambuf_iterator<char>(file), {}};
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
    const std::size_t at = text.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    return at == std::string::npos ? text : text.replace(at, from.size(), to);
}

/// The one error of a machine file in which `from` was replaced.
Diagnostic error_of(const std::string& from, const std::string& to) {
    const auto result = read(replaced(generic_text(), from, to));
    EXPECT_FALSE(result.ok()) << to;
    if (result.ok()) return {};
    EXPECT_EQ(result.errors().size(), 1U) << render(result.errors());
    return result.errors()[0];
}

std::string text_at(const Diagnostic& d) {
    return d.range.source->text.substr(d.range.begin, d.range.end - d.range.begin);
}

TEST(Quantity, ReadsAndPrintsUnits) {
    EXPECT_EQ(parse_quantity("32 KiB", Dimension::bytes), 32768.0);
    EXPECT_EQ(parse_quantity("3.35 TB/s", Dimension::bytes_per_s), 3.35e12);
    EXPECT_EQ(parse_quantity("90ns", Dimension::seconds), 90 / 1e9);
    EXPECT_EQ(parse_quantity("3 GHz", Dimension::bytes), std::nullopt);
    EXPECT_EQ(parse_quantity("much", Dimension::bytes), std::nullopt);
    EXPECT_EQ(quantity_text(1048576, Dimension::bytes), "1 MiB");
    EXPECT_EQ(quantity_text(38e9, Dimension::bytes_per_s), "38 GB/s");
    EXPECT_EQ(quantity_text(1e-5, Dimension::seconds), "10 us");
    for (const double value : {1.0 / 3, 1e-7, 123456789.125, 33554432.0, 5e-9})
        for (const Dimension d : {Dimension::bytes, Dimension::seconds, Dimension::hertz, Dimension::number})
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

TEST(Machine, TheHostIsPlausibleAndReadsBack) {
    const Machine host = host_machine();
    EXPECT_EQ(host, host_machine()) << "nothing is timed";
    EXPECT_GE(host.num_cores(), 1);
    EXPECT_GE(host.levels.size(), 2U);
    const auto again = read(to_toml(host));
    ASSERT_TRUE(again.ok()) << render(again.errors()) << to_toml(host);
    EXPECT_EQ(*again, host);
    const double hz = measured_clock_hz();
    EXPECT_GT(hz, 1e8);
    EXPECT_LT(hz, 2e10);
}

TEST(Machine, UnknownNamesAndFiles) {
    const auto near = load_machine("generic_cpu");
    ASSERT_FALSE(near.ok());
    EXPECT_EQ(near.errors()[0].code, "unknown-machine");
    EXPECT_THAT(near.errors()[0].hint, HasSubstr("'generic-cpu'"));
    const auto missing = load_machine("/nowhere/at/all.toml");
    ASSERT_FALSE(missing.ok());
    EXPECT_EQ(missing.errors()[0].code, "unreadable-file");
}

TEST(MachineErrors, AMisspeltKeyIsOneError) {
    const Diagnostic d = error_of("latency = \"14 ns\"", "latencies = \"14 ns\"");
    EXPECT_EQ(d.code, "unknown-key");
    EXPECT_THAT(d.hint, HasSubstr("'latency'"));
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
    EXPECT_EQ(error_of("[[unit]]\nname = \"fma\"", "[[unit]]\nname = \"fmadd\"").code, "missing-key");
}

TEST(MachineErrors, ImpossibleFigures) {
    EXPECT_THAT(error_of("\"3 GHz\"", "\"300 GHz\"").message, HasSubstr("no core runs at 300 GHz"));
    EXPECT_THAT(error_of("vector_bits = 256", "vector_bits = 250").message, HasSubstr("power of two"));
    EXPECT_THAT(error_of("cores = 8", "cores = 7.5").message, HasSubstr("whole"));
    EXPECT_THAT(error_of("capacity = \"512 KiB\"", "capacity = \"512 GiB\"").message,
                HasSubstr("holds more than 'DRAM'"));
    EXPECT_THAT(error_of("latency = \"5 ns\"", "latency = \"500 ns\"").message, HasSubstr("answers later than 'L3'"));
    EXPECT_THAT(error_of("bandwidth = \"96 GB/s\"", "bandwidth = \"96000 GB/s\"").message, HasSubstr("bytes a clock"));
    EXPECT_THAT(error_of("bandwidth = \"40 GB/s\"", "bandwidth = \"-40 GB/s\"").message, HasSubstr("negative"));
}

TEST(MachineErrors, Syntax) {
    const Diagnostic d = error_of("cores = 8", "cores = = 8");
    EXPECT_EQ(d.code, "bad-toml");
    EXPECT_EQ(line_column(*d.range.source, d.range.begin).line, 6U);
    EXPECT_FALSE(read("").ok());
    EXPECT_FALSE(read("level = 3\nunit = [1]\n").ok());
    EXPECT_FALSE(read(std::string("a = \"\x01\"")).ok());
}

}  // namespace
}  // namespace napkin
