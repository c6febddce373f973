#include "draw/machine_steps.hpp"

#include <fmt/format.h>

#include "draw/readings.hpp"
#include "support/ranges.hpp"
#include "support/result.hpp"
#include "support/text.hpp"

namespace napkin::draw {
namespace {

const std::vector<std::pair<std::string, Detail>> machine_steps = {{"pseudocode expansion", Detail::pseudocode},
                                                                   {"subloops", Detail::subloops},
                                                                   {"levels", Detail::levels},
                                                                   {"precision", Detail::precision},
                                                                   {"divisors", Detail::divisors},
                                                                   {"variables", Detail::divisors}};

}  // namespace

const std::vector<std::string>& machine_step_names() {
    static const std::vector<std::string> names = [] {
        std::vector<std::string> out;
        for (const auto& [name, detail] : machine_steps)
            if (detail != Detail::pseudocode) out.push_back(name);
        return out;
    }();
    return names;
}

std::string kernel_of(const std::string& kernel, std::size_t num_kernels) {
    return num_kernels > 1 ? ", kernel " + kernel : "";
}

Drawing machine_step_drawing(const StepReport& report, const std::string& memory, const std::string& step) {
    const auto found = find_if(machine_steps, [&](const auto& s) { return s.first == step; });
    if (found == machine_steps.end()) throw InternalError("no step of a machine: " + step);
    const Detail detail = found->second;
    Drawing out;
    for (const KernelSteps& kernel : report.kernels) {
        Circuit circuit = assigned_circuit(report.of, kernel, memory, detail);
        circuit.caption = step + kernel_of(kernel.kernel, report.kernels.size()) +
                          (detail == Detail::pseudocode ? "" : ", on " + report.machine);
        std::string sizes;
        for (const CutSize& size : kernel.sizes)
            sizes += fmt::format("{}{} = {}", sizes.empty() ? "" : ", ", to_string(size, report.axes), size.size);
        circuit.notes = {sizes};
        if (step == "variables")
            for (const ConfigurationRow& row : kernel.configuration) {
                std::vector<std::string> places;
                for (const auto& place : row.places) places.push_back(join(place, ", "));
                circuit.notes.push_back(fmt::format("{}: {}, {}{}", join(places, "; "), row.size, name(row.type),
                                                    row.stages > 1 ? fmt::format(", held {} times", row.stages) : ""));
            }
        out.circuits.push_back(std::move(circuit));
    }
    return out;
}

}  // namespace napkin::draw
