// `napkin machines`: the machines that plans can be made for, and one of them in full.
#include <fmt/format.h>

#include "machine/machine.hpp"
#include "napkin/command.hpp"
#include "napkin/numbers.hpp"

namespace napkin::cli {

namespace {

struct MachinesCommand {
    Options common;
    std::string name;
};

Json machine_json(const Machine& machine) {
    Json entry = {{"name", machine.name},
                  {"description", machine.description},
                  {"cores", machine.num_cores()},
                  {"clock_hz", machine.clock_hz.value},
                  {"vector_bits", machine.vector_bits.value}};
    entry["levels"] = Json::array();
    for (const Level& level : machine.levels) {
        entry["levels"].push_back({{"name", level.name},
                                   {"capacity_bytes", level.capacity_bytes.value},
                                   {"instances", level.instances.value},
                                   {"bandwidth_bytes_per_s", level.bandwidth_bytes_per_s.value},
                                   {"latency_s", level.latency_s.value}});
    }
    return entry;
}

ExitCode machines(const MachinesCommand& c) {
    if (!c.name.empty()) {
        const auto machine = load_machine(c.name);
        if (!machine) return fail(machine.errors(), c.common);
        if (c.common.json) {
            Json document = json_document("machine");
            document.update(machine_json(*machine));
            print(document);
        } else {
            print(to_toml(*machine));
        }
        return ExitCode::success;
    }
    Json document = json_document("machines");
    document["machines"] = Json::array();
    std::vector<std::vector<std::string>> rows;
    for (const std::string& name : machine_names()) {
        const auto machine = load_machine(name);
        if (!machine) return fail(machine.errors(), c.common);
        document["machines"].push_back(machine_json(*machine));
        std::string levels;
        for (const Level& level : machine->levels)
            levels += fmt::format("{}{} {}", levels.empty() ? "" : ", ", level.name, bytes_text(level.capacity_bytes.value));
        rows.push_back({name, machine->description, levels});
    }
    c.common.json ? print(document) : print(table(rows));
    return ExitCode::success;
}

}  // namespace

void add_machines(CLI::App& app, Main& main) {
    const auto c = std::make_shared<MachinesCommand>();
    Command command(app, main, "machines", "List the machines that are known, or print one as a file",
                    "napkin machines host", [c] { return machines(*c); });
    command.argument("NAME", c->name, "A machine's name or .toml file; left out: list them all", false);
    command.output(c->common);
}

}  // namespace napkin::cli
