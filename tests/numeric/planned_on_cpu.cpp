#include "numeric/planned_on_cpu.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <stdexcept>

#include "check/execution.hpp"
#include "check/reference.hpp"
#include "check/verdict.hpp"
#include "derive/derive.hpp"
#include "diagram/array_sizes.hpp"
#include "lower/lower.hpp"
#include "lower/prove.hpp"
#include "lower/rules.hpp"
#include "plan/choose.hpp"
#include "run/tensor.hpp"
#include "schedule/reduction_trees.hpp"
#include "support/ids.hpp"
#include "support/parsed.hpp"

namespace napkin::cpu_case {

Planned planned(const std::string& text, const std::string& schedule, const Machine& machine, const std::string& prefix,
                const Rewriting& rewriting) {
    DeriveOptions how;
    how.rewriting = rewriting;
    Derived derived = derive(parsed(text), how).value();
    // Sizes are arguments where the text has an odd length.
    if (text.size() % 2 != 0) derived.diagram = with_any_sizes(std::move(derived.diagram));
    PlanOptions options;
    options.file = std::make_shared<const Source>(Source{"by_hand.schedule", schedule});
    Planned out{parsed(text), bind_sizes(derived.diagram, {}).value(), {}, {}};
    auto plan = choose_plan(derived, out.extents, machine, {}, options);
    if (!plan) throw std::runtime_error(render(plan.errors()));
    out.plan = std::move(*plan);
    for (const KernelPlan& k : out.plan.kernels)
        if (const auto broken = verify(k.scheduled); !broken.empty()) throw std::runtime_error(broken.front());
    const lower::LoweredProgram lowered = lower::lowered(out.plan.program());
    for (const lower::KernelProgram& kernel : lowered.kernels)
        if (const std::string fault = lower::fault_of(kernel); !fault.empty())
            throw std::runtime_error(fault + "\n" + to_string(kernel));
    out.source = cuda::emit(lowered, prefix);
    return out;
}

cuda::CudaSource in_one_source(const std::vector<Planned>& all) {
    cuda::CudaSource out;
    for (const Planned& p : all) {
        out.text += p.source.text, out.wide_index |= p.source.wide_index;
        out.entries.insert(out.entries.end(), p.source.entries.begin(), p.source.entries.end());
    }
    return out;
}

Reference reference_of(const Planned& p, Probe probe) {
    return reference_of(p, probe_inputs(p.diagram, p.extents, probe, 1));
}

Reference reference_of(const Planned& p, const Values& given) {
    std::vector<std::vector<ReductionTree>> trees;
    for (const KernelPlan& k : p.plan.kernels) trees.push_back(reduction_trees(k.scheduled));
    return {given, evaluate_bounded(p.diagram, p.extents, given,
                                    execution_of(p.diagram, p.extents, p.plan.tiles(), std::move(trees)))};
}

std::optional<std::vector<Tensor>> outputs_of(const Planned& p, const Reference& reference, const JitModule& module,
                                              Timing timing) {
    const SizedProgram program = p.plan.tiles();
    const Diagram& diagram = program.diagram;
    std::vector<Tensor> arrays;
    for (std::size_t a = 0; a < diagram.arrays.size(); ++a) {
        const auto id = ArrayId::of(a);
        arrays.push_back(Tensor::make(diagram.array(id).type, array_sizes(diagram, id, program.extents)).value());
        const auto known = p.diagram.find_array(diagram.array(id).name);
        const bool is_input = std::find(diagram.inputs.begin(), diagram.inputs.end(), id) != diagram.inputs.end();
        for (std::int64_t i = 0; i < arrays.back().count(); ++i)
            arrays.back().set(i, is_input ? reference.given[*known][i] : 777);
    }
    for (const cuda::KernelEntry& entry : p.source.entries) {
        std::vector<std::uint64_t> arguments;
        for (const auto* list : {&entry.inputs, &entry.outputs}) {
            for (const ArrayId a : *list) arguments.push_back(reinterpret_cast<std::uint64_t>(arrays[at(a)].data()));
            if (list->empty()) arguments.push_back(0);  // as many as the kernel's parameters have room for
        }
        for (const auto* list : {&entry.inputs, &entry.outputs})
            for (const ArrayId a : *list)
                for (const std::int64_t stride : row_major_strides(arrays[at(a)].sizes()))
                    arguments.push_back(static_cast<std::uint64_t>(stride));
        for (const std::int64_t number : entry.numbers) arguments.push_back(static_cast<std::uint64_t>(number));
        std::vector<BulkMap> maps;
        for (const cuda::TensorMap& map : entry.maps) {
            const Tensor& array = arrays[at(map.array)];
            maps.push_back(bulk_map(array.data(), array.type(), array.sizes(), map));
        }
        if (!run_on_cpu(module, entry, arguments, timing, maps)) return std::nullopt;
    }
    std::vector<Tensor> outputs;
    for (const ArrayId output : diagram.outputs) outputs.push_back(std::move(arrays[at(output)]));
    return outputs;
}

std::string fault_of(const Planned& p, const Reference& reference, const JitModule& module, Timing timing) {
    const auto outputs = outputs_of(p, reference, module, timing);
    if (!outputs) return "threads wait for each other for ever";
    const Diagram& diagram = p.plan.tiles().diagram;
    for (std::size_t o = 0; o < outputs->size(); ++o) {
        const ArrayId id = *p.diagram.find_array(diagram.array(diagram.outputs[o]).name);
        const ArrayVerdict verdict = judge(p.diagram, id, p.extents, reference.values, (*outputs)[o].to_column());
        if (verdict.judgement == Judgement::bad) return describe(verdict);
    }
    return "";
}

std::string fault_early_or_late(const Planned& p, const Reference& reference, const JitModule& module) {
    for (const bool late : {false, true}) {
        Timing timing;
        timing.copies_late = timing.results_late = late, timing.backwards = late;
        if (std::string fault = fault_of(p, reference, module, timing); !fault.empty())
            return (late ? "late: " : "early: ") + fault;
    }
    return "";
}

Planned with_larger_call(Planned planned, const std::string& call) {
    planned.source.text.insert(planned.source.text.find(call), "1.01f * ");
    return planned;
}

Planned planned_on_hopper(const std::string& text, const std::string& schedule, const std::string& prefix) {
    return planned(text, schedule, load_machine("h200").value(), prefix);
}

std::string attention_of_logits(const std::string& logits, const std::string& type, const std::string& sizes,
                                const std::string& inputs) {
    return fmt::format(
        "f(Q[h, q, k]: {0}, K[h, x, k]: {0}, V[h, x, d]: {0}{3}) -> O[h, q, d]: {0}\n"
        "    S[h, q, x] = sum(k) Q[h, q, k] * K[h, x, k]\n    A[h, q, x] = {1}\n    P[h, q, x] = softmax(x) A[h, q, "
        "x]\n    O[h, q, d] = sum(x) P[h, q, x] * V[h, x, d]\nsizes k = 32, {2}\n",
        type, logits, sizes, inputs);
}

std::string fault_on_probes(const std::vector<Planned>& all, std::size_t shard, std::size_t shards) {
    const auto module = compiled_for_cpu(in_one_source(all));
    for (std::size_t probe = shard; probe < std::size(all_probes); probe += shards)
        for (const Planned& p : all)
            if (const std::string fault = fault_early_or_late(p, reference_of(p, all_probes[probe]), *module);
                !fault.empty())
                return fmt::format("{}, {}: {}", p.source.entries.front().name, name(all_probes[probe]), fault);
    return "";
}

}  // namespace napkin::cpu_case
