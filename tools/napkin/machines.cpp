// `napkin machines`: the machines that plans can be made for; one of them as a file, or with all that follows from its
// figures.
#include <fmt/format.h>

#include <cerrno>
#include <charconv>
#include <cmath>
#include <fstream>

#include "machine/measured.hpp"
#include "machine/quantity.hpp"
#include "napkin/command.hpp"
#include "napkin/machine_view.hpp"
#include "run/measure_machine.hpp"
#include "support/files.hpp"
#include "support/numbers.hpp"
#include "support/text.hpp"

namespace napkin::cli {

namespace {

struct MachinesCommand {
    Options common;
    std::string first, second;  ///< "show" NAME, or NAME alone
    bool toml = false;
    std::vector<std::string> block;
    double seconds = 2;
    std::int64_t vector_bytes = 0;
    std::string output;
};

ExitCode list_machines(const MachinesCommand& c) {
    std::vector<Machine> machines;
    for (const std::string& name : machine_names()) {
        auto machine = load_machine(name);
        if (!machine) return fail(machine.errors(), c.common);
        machines.push_back(std::move(machine).value());
    }
    print(machines_report(machines), "machines", c.common);
    return ExitCode::success;
}

/// "threads=256", "registers=64", "memory=48KiB".
BlockShape block_shape(const std::vector<std::string>& items) {
    const std::string example = "as in --block threads=256,registers=64,memory=48KiB";
    BlockShape block;
    for (const std::string& item : items) {
        const std::size_t sign = item.find('=');
        const std::string key = item.substr(0, sign), text = sign == std::string::npos ? "" : item.substr(sign + 1);
        std::int64_t* const into = key == "threads"     ? &block.threads
                                   : key == "registers" ? &block.registers_a_thread
                                   : key == "memory"    ? &block.bytes
                                                        : nullptr;
        if (!into)
            throw UsageError(fmt::format("--block {}: expected threads, registers or memory, {}", item, example));
        if (key == "memory") {
            const auto bytes = parse_quantity(text, Dimension::bytes);
            if (!bytes || *bytes < 0 || *bytes > 1e15 || *bytes != std::floor(*bytes))
                throw UsageError(fmt::format("--block {}: expected {}, {}", item, quantity_help(Dimension::bytes), example));
            *into = static_cast<std::int64_t>(*bytes);
            continue;
        }
        const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *into);
        if (error != std::errc{} || end != text.data() + text.size())
            throw UsageError(fmt::format("--block {}: expected a whole number, {}", item, example));
    }
    return block;
}

ExitCode print_occupancy(const MachinesCommand& c, const Machine& machine) {
    const BlockShape block = block_shape(c.block);
    const auto found = occupancy(machine, block);
    if (!found) return fail(found.errors(), c.common);
    print(occupancy_report(machine, block, *found), "occupancy", c.common);
    return ExitCode::success;
}

ExitCode show(const MachinesCommand& c, const Machine& machine, bool as_file) {
    if (!c.block.empty()) return print_occupancy(c, machine);
    if (as_file && !c.common.json)
        print(to_toml(machine));
    else
        print(machine_report(machine), "machine", c.common);
    return ExitCode::success;
}

/// Measures the machine at hand and keeps the result where "host" finds it, or writes it as a file.
ExitCode measure(const MachinesCommand& c) {
    const auto measured = measure_machine(
        {.seconds = c.seconds, .vector_bytes = static_cast<int>(c.vector_bytes), .jit = {}});
    if (!measured) return fail(measured.errors(), c.common);
    const Machine& machine = measured->machine;
    if (measured->disturbed())
        say(
            fmt::format("note: other work, or the host of this virtual machine, took {:.0f}% of the time; measure "
                        "again when it rests, "
                        "or predictions may be off by as much\n",
                        100 * measured->taken));
    if (!c.output.empty()) {
        std::ofstream file(c.output);
        if (!(file << to_toml(machine)) || !file.flush())
            return fail({file_error(errno, "unwritable-file", "cannot write to " + c.output)}, c.common);
        return ExitCode::success;
    }
    const auto kept = keep_measured(machine);
    if (!kept) return fail(kept.errors(), c.common);
    say(fmt::format("kept as machine '{}' in {}\n", machine.name, *kept));
    return show(c, machine, c.toml);
}

ExitCode machines(const MachinesCommand& c) {
    const bool shown = c.first == "show", measured = c.first == "measure";
    if (shown && c.second.empty()) throw UsageError("machines show: which machine? `napkin machines` lists them");
    if (!shown && !c.second.empty())
        throw UsageError(fmt::format("machines {} {}: expected one name, or `show` before it", c.first, c.second));
    if (!measured && (!c.output.empty() || c.vector_bytes != 0))
        throw UsageError("--output and --vector-bytes belong to `machines measure`");
    if (measured) return measure(c);
    if (c.first.empty()) return list_machines(c);
    const auto machine = load_machine(shown ? c.second : c.first);
    if (!machine) return fail(machine.errors(), c.common);
    return show(c, *machine, !shown || c.toml);
}

}  // namespace

void add_machines(CLI::App& app, Main& main) {
    const auto c = std::make_shared<MachinesCommand>();
    Command command(app, main, "machines", "List the machines that are known, show one, or measure the one at hand",
                    "napkin machines show h100-sxm5", [c] { return machines(*c); });
    command.argument("show", c->first,
                     "show: print tables (without it, the machine's file); measure: time this computer", false);
    command.argument("NAME", c->second, "A machine's name or .toml file; left out: list them all", false);
    command.flag("--toml", c->toml, "Print the machine as a file");
    command.list("--block", "WHAT=N", c->block,
                 "How many such blocks a core holds: threads=256,registers=64,memory=48KiB");
    command.seconds("--seconds", c->seconds, "measure: about how long to time (default: 2)");
    command.vector_bytes(
        c->vector_bytes,
        "measure: describe the computer as its code with vectors of 16, 32 or 64 bytes sees it, as 'host-256'");
    command.text("--output", "FILE", c->output, "measure: write the machine there instead of keeping it as 'host'");
    command.output(c->common);
}

}  // namespace napkin::cli
