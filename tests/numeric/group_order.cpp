#include "numeric/group_order.hpp"

#include <fmt/format.h>

#include <array>
#include <cstring>
#include <map>

#include "check/probe.hpp"
#include "run/memory.hpp"
#include "run/tensor.hpp"

namespace napkin::cpu_case {
namespace {

/// Numbers behind an array that nobody may write: more than a block has vectors' lanes and rows.
constexpr std::int64_t margin = 1024;
constexpr double untouched = 777;

using Entry = void (*)(const void* const*, void* const*, const std::int64_t*, std::int64_t, std::int64_t, void*);

std::int64_t value_count(const Case& c, ArrayId a) {
    std::int64_t count = 1;
    for (const AxisId axis : c.program.diagram.array(a).axes) count *= c.program.extents[axis];
    return count;
}

struct Arrays {
    std::int64_t shift;  ///< numbers before each
    std::map<ArrayId, Tensor> all;
    [[nodiscard]] char* data(ArrayId a) {
        Tensor& memory = all.at(a);
        return static_cast<char*>(memory.data()) + shift * bytes(memory.type());
    }
};

Arrays run(const Case& c, const JitModule& module, const Values& given, bool is_backward) {
    Arrays arrays{is_backward ? 1 : 0, {}};
    const Diagram& diagram = c.program.diagram;
    const auto add = [&](ArrayId a) {
        const std::int64_t count = arrays.shift + value_count(c, a) + margin;
        Tensor& memory = arrays.all.emplace(a, Tensor::make(diagram.array(a).type, {count}).value()).first->second;
        for (std::int64_t i = 0; i < count; ++i) memory.set(i, untouched);
        return &memory;
    };
    for (const ArrayId a : diagram.inputs) {
        const auto& values = given[*c.diagram.find_array(diagram.array(a).name)];
        Tensor* const memory = add(a);
        for (std::size_t i = 0; i < values.size(); ++i)
            memory->set(arrays.shift + static_cast<std::int64_t>(i), values[i]);
    }
    for (const cpu::KernelEntry& entry : c.source.entries) {
        std::vector<const void*> in;
        std::vector<void*> out;
        std::vector<std::int64_t> strides;
        const auto take = [&](ArrayId a) {
            if (!arrays.all.contains(a)) add(a);
            const auto& axes = diagram.array(a).axes;
            std::int64_t below = value_count(c, a);
            for (const AxisId axis : axes) strides.push_back(below /= c.program.extents[axis]);
            return arrays.data(a);
        };
        for (const ArrayId a : entry.inputs) in.push_back(take(a));
        for (const ArrayId a : entry.outputs) out.push_back(take(a));
        strides.insert(strides.end(), entry.numbers.begin(), entry.numbers.end());
        const Memory arena = allocate(entry.arena_bytes);
        const auto call = reinterpret_cast<Entry>(module.symbol(entry.name));
        for (std::int64_t g = 0; g < entry.groups; ++g) {
            const std::int64_t group = is_backward ? entry.groups - 1 - g : g;
            call(in.data(), out.data(), strides.data(), group, group + 1, arena.get());
        }
    }
    return arrays;
}

}  // namespace

std::string fault_of_order(const Case& c, const JitModule& module) {
    const Values given = probe_inputs(c.diagram, c.extents, Probe::normal, c.seed);
    Arrays forward = run(c, module, given, false), backward = run(c, module, given, true);
    for (const auto& [a, memory] : forward.all) {
        const Array& array = c.program.diagram.array(a);
        const auto size = static_cast<std::size_t>(value_count(c, a) * bytes(array.type));
        if (std::memcmp(forward.data(a), backward.data(a), size) != 0)
            return fmt::format("{} depends on the order of groups or on where arrays lie", array.name);
        std::array<char, 16> filling{};
        encode(array.type, untouched, filling.data());
        for (Arrays* arrays : {&forward, &backward})
            for (std::int64_t i = 0; i < margin; ++i)
                if (std::memcmp(arrays->data(a) + size + static_cast<std::size_t>(i * bytes(array.type)),
                                filling.data(), static_cast<std::size_t>(bytes(array.type))) != 0)
                    return fmt::format("{} was written past its end", array.name);
    }
    return "";
}

}  // namespace napkin::cpu_case
