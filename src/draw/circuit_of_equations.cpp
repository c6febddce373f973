// Circuits of equations: a diagram's functions, and a derived form on two levels.
#include <functional>
#include <map>
#include <set>

#include "draw/readings.hpp"
#include "draw/seen.hpp"
#include "support/ids.hpp"
#include "support/ranges.hpp"
#include "tile/expand.hpp"
#include "tile/uses.hpp"

namespace napkin::draw {
namespace {

std::string letter_text(char letter) { return letter == 0 ? "" : std::string(1, letter); }

class Builder {
public:
    explicit Builder(const Diagram& diagram) : diagram_(diagram) {}

    ValueId add_value(ArrayId array, int level, const std::function<char(AxisId)>& letter) {
        Value value;
        value.name = diagram_.array(array).name;
        value.level = level;
        for (const AxisId axis : diagram_.array(array).axes)
            value.wires.push_back(
                {axis, size_label(letter_text(letter(axis)), diagram_.axis(axis).name), diagram_.axis(axis).name});
        out.values.push_back(std::move(value));
        return static_cast<ValueId>(out.values.size()) - 1;
    }

    void add_operation(const SeenOperation& seen, std::vector<Operand> inputs, ValueId output, int level) {
        out.operations.push_back({seen.shape, seen.label, diagram_.array(seen.output).name, seen.description,
                                  std::move(inputs), output, seen.consumed, level, false});
    }

    /// A kernel's array at the level between, on its way to or from where operations run.
    ValueId add_between(ArrayId array, const std::function<char(AxisId)>& letter, TwoLevelOptions::Between between) {
        const ValueId out_value = add_value(array, 1, letter);
        out.values[at(out_value)].cached = between == TwoLevelOptions::Between::cache;
        return out_value;
    }

    void add_transfer(ValueId from, ValueId to) {
        Operand operand{from, {}};
        for (const Wire& wire : out.values[at(from)].wires) operand.axes.push_back(wire.axis);
        const std::string& array = out.values[at(to)].name;
        const bool is_load = out.values[at(from)].level < out.values[at(to)].level;
        out.operations.push_back({Shape::transfer,
                                  {},
                                  array,
                                  (is_load ? "load " : "store ") + array,
                                  {operand},
                                  to,
                                  {},
                                  std::max(out.values[at(from)].level, out.values[at(to)].level),
                                  false});
    }

    Circuit out;

private:
    const Diagram& diagram_;
};

char whole(AxisId /*axis*/) { return 0; }

/// What a kernel computes for itself, and what it reads from memory.
struct Needed {
    std::set<std::size_t> operations;
    std::set<ArrayId> loads;
    bool is_known = true;  ///< everything it needs is defined somewhere
};

Needed needed_for(const std::vector<SeenOperation>& operations, const std::vector<ArrayId>& wanted,
                  const std::map<ArrayId, ValueId>& memory) {
    Needed out;
    std::vector<ArrayId> open = wanted;
    std::set<ArrayId> met(wanted.begin(), wanted.end());
    while (!open.empty()) {
        const ArrayId array = open.back();
        open.pop_back();
        const auto found = find_if(operations, [&](const SeenOperation& op) { return op.output == array; });
        if (found == operations.end()) {
            out.is_known = false;
            continue;
        }
        out.operations.insert(static_cast<std::size_t>(found - operations.begin()));
        for (const Reading& r : found->readings) {
            if (memory.contains(r.array))
                out.loads.insert(r.array);
            else if (met.insert(r.array).second)
                open.push_back(r.array);
        }
    }
    return out;
}

/// How often a kernel goes over an array: a stream whose results are needed along its own axis is run again.
std::map<ArrayId, int> load_counts(const Derived& derived, const Kernel& kernel) {
    std::map<ArrayId, int> out;
    const TileKernel tiles = expand(derived, kernel);
    for_each_statement(tiles.body, [&](const TileStatement& s) {
        if (const auto* load = std::get_if<Load>(&s)) ++out[tiles.variables[load->variable].array];
    });
    return out;
}

std::optional<Circuit> two_levels(const Diagram& diagram, const std::vector<SeenOperation>& operations,
                                  const Derived& derived, const TwoLevelOptions& options) {
    Builder b(diagram);
    std::map<ArrayId, ValueId> memory;
    for (const ArrayId input : diagram.inputs) {
        memory[input] = b.add_value(input, 0, whole);
        b.out.inputs.push_back(memory[input]);
    }
    // The kernels' axes may be others over the same dimensions.
    std::map<AxisId, AxisId> kernel_axis;
    for (const ArrayId a : (diagram.arrays.size() < derived.diagram.arrays.size() ? diagram : derived.diagram).arrays.ids())
        for (std::size_t i = 0; i < diagram.arrays[a].axes.size() && i < derived.diagram.arrays[a].axes.size(); ++i)
            kernel_axis.emplace(diagram.arrays[a].axes[i], derived.diagram.arrays[a].axes[i]);
    for (const Kernel& kernel : derived.kernels) {
        std::set<AxisId> streams;
        for (const Stage& stage : kernel.stages)
            if (const auto* loop = std::get_if<Loop>(&stage); loop && options.streamed) streams.insert(loop->axis);
        const auto letter = [&](AxisId axis) -> char {
            const AxisId known = value_or(kernel_axis, axis, axis);
            if (streams.contains(known)) return 's';
            // Grouping an axis that some intermediate does not carry would repeat work: the paper leaves it whole.
            return options.grouped && contains(kernel.group_axes, known) && !contains(kernel.recompute_axes, known) ? 'g'
                                                                                                                    : 0;
        };
        std::vector<ArrayId> wanted;
        for (const ArrayId id : kernel.outputs) {
            if (at(id) >= diagram.arrays.size()) return std::nullopt;
            wanted.push_back(id);
        }
        const Needed needed = needed_for(operations, wanted, memory);
        if (!needed.is_known) return std::nullopt;
        using Between = TwoLevelOptions::Between;
        const int lowest = options.between == Between::nothing ? 1 : 2;
        const auto lowest_letter = [&](AxisId axis) -> char {
            const char l = letter(axis);
            return lowest == 1 ? l : l == 'g' ? 'h' : l == 's' ? 'u' : l;
        };
        const std::map<ArrayId, int> times = load_counts(derived, kernel);
        std::map<ArrayId, ValueId> here;
        for (const ArrayId id : needed.loads) {
            here[id] = lowest == 1 ? b.add_value(id, 1, letter) : b.add_between(id, letter, options.between);
            b.add_transfer(memory.at(id), here.at(id));
            if (const auto count = times.find(id); options.streamed && count != times.end())
                b.out.values[at(here.at(id))].times = count->second;
        }
        if (lowest == 2)
            for (const ArrayId id : needed.loads) {
                const ValueId passed = here.at(id);
                b.add_transfer(passed, here[id] = b.add_value(id, 2, lowest_letter));
            }
        // What a stream maintains is in memory from its first chunk on.
        if (!streams.empty())
            for (const ArrayId id : wanted)
                if (none_of(diagram.array(id).axes, [&](AxisId axis) { return letter(axis) == 's'; })) {
                    const ValueId stub = b.add_value(id, lowest, lowest_letter);
                    b.out.values[at(stub)].is_stub = b.out.values[at(stub)].maintained = true;
                    b.out.operations.push_back(
                        {Shape::start, {}, diagram.array(id).name, "maintained through the stream", {}, stub, {}, lowest, false});
                }
        for (const std::size_t i : needed.operations) {
            const SeenOperation& op = operations[i];
            std::vector<Operand> inputs;
            for (const Reading& r : op.readings) inputs.push_back({here.at(r.array), r.axes});
            here[op.output] = b.add_value(op.output, lowest, lowest_letter);
            b.add_operation(op, std::move(inputs), here.at(op.output), lowest);
        }
        if (lowest == 2)
            for (const ArrayId id : wanted) {
                const ValueId made = here.at(id);
                b.add_transfer(made, here[id] = b.add_between(id, letter, options.between));
            }
        for (const ArrayId id : wanted) {
            memory[id] = b.add_value(id, 0, whole);
            b.add_transfer(here.at(id), memory.at(id));
        }
    }
    for (const ArrayId output : diagram.outputs) {
        if (!memory.contains(output)) return std::nullopt;
        b.out.outputs.push_back(memory.at(output));
    }
    b.out.levels = {{0, "memory"}, {1, "a core's memory"}};
    if (options.between == TwoLevelOptions::Between::cache)
        b.out.levels = {{0, "memory"}, {1, "cache, held briefly (*)"}, {2, "a core's memory"}};
    if (options.between == TwoLevelOptions::Between::cross_transfer)
        b.out.levels = {{0, "memory"}, {1, "cores that hand data on"}, {2, "a core's memory"}};
    return b.out;
}

}  // namespace

Circuit definition_circuit(const Diagram& diagram, bool calls_together) {
    Builder b(diagram);
    std::map<ArrayId, ValueId> values;
    for (const ArrayId input : diagram.inputs) b.out.inputs.push_back(values[input] = b.add_value(input, 0, whole));
    for (const SeenOperation& op : calls_together ? seen_operations(diagram) : single_operations(diagram)) {
        auto inputs = mapped<Operand>(op.readings, [&](const Reading& r) { return Operand{values.at(r.array), r.axes}; });
        values[op.output] = b.add_value(op.output, 0, whole);
        b.add_operation(op, std::move(inputs), values.at(op.output), 0);
    }
    for (const ArrayId output : diagram.outputs) b.out.outputs.push_back(values.at(output));
    b.out.is_concurrent = true;
    return b.out;
}

Circuit type_circuit(const Diagram& diagram) {
    Builder b(diagram);
    for (const ArrayId input : diagram.inputs) b.out.inputs.push_back(b.add_value(input, 0, whole));
    b.out.outputs = b.out.inputs;
    return b.out;
}

Circuit two_level_circuit(const Derived& derived, const TwoLevelOptions& options) {
    if (options.from_source)
        if (auto out = two_levels(derived.source, seen_operations(derived.source), derived, options)) return *out;
    // The normal form has arrays that the text does not have.
    const Diagram rewritten = derived.diagram_without_kernel_arrays();
    if (auto out = two_levels(rewritten, single_operations(rewritten), derived, options)) return *out;
    return definition_circuit(derived.source);
}

}  // namespace napkin::draw
