#include "numeric/cpu_kernel_case.hpp"
#include "lower/passes.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <random>
#include <set>
#include <stdexcept>

#include "check/verdict.hpp"
#include "derive/parts.hpp"
#include "diagram/evaluate.hpp"
#include "lower/lower.hpp"
#include "lower/prove.hpp"
#include "lower/rules.hpp"
#include "machine/machine.hpp"
#include "machine/processor.hpp"
#include "numeric/group_order.hpp"
#include "plan/complete.hpp"
#include "run/gpu/kernel.hpp"
#include "run/kernel.hpp"
#include "run/tensor.hpp"
#include "schedule/fragments.hpp"
#include "schedule/lane_registers.hpp"
#include "schedule/legality.hpp"
#include "schedule/reduction_trees.hpp"
#include "support/random_diagram.hpp"
#include "tile/expand.hpp"
#include "tile/subloops.hpp"
#include "tile/verify.hpp"

namespace napkin::cpu_case {
namespace {

std::vector<std::int64_t> sizes_of(const Diagram& diagram, ArrayId a, const Extents& extents) {
    std::vector<std::int64_t> sizes;
    for (const AxisId axis : diagram.array(a).axes) sizes.push_back(extents[axis]);
    return sizes;
}

/// Where the numbers of an array lie in a test: now and then with gaps or in another order of axes.
std::vector<std::int64_t> random_strides(const std::vector<std::int64_t>& sizes, std::mt19937_64& random) {
    std::vector<std::size_t> order(sizes.size());
    for (std::size_t d = 0; d < order.size(); ++d) order[d] = d;
    const bool plain = random() % 2 == 0;
    if (!plain && random() % 2 == 0) std::shuffle(order.begin(), order.end(), random);
    std::vector<std::int64_t> strides(sizes.size(), 1);
    std::int64_t stride = plain || random() % 3 != 0 ? 1 : 2;
    for (std::size_t k = order.size(); k-- > 0;) {
        strides[order[k]] = stride;
        stride *= sizes[order[k]] + (plain ? 0 : static_cast<std::int64_t>(random() % 3));
    }
    return strides;
}

/// An array with strides, filled from and read back to row-major values.
struct Strided {
    std::vector<std::int64_t> sizes, strides;
    Tensor memory;
    Strided(DType type, std::vector<std::int64_t> s, std::mt19937_64& random, bool may_have_gaps)
        : sizes(std::move(s)), strides(random_strides(sizes, random)) {
        if (!may_have_gaps)
            for (std::size_t d = sizes.size(); d-- > 0;)
                strides[d] = d + 1 == sizes.size() ? 1 : strides[d + 1] * sizes[d + 1];
        std::int64_t last = 0;
        for (std::size_t d = 0; d < sizes.size(); ++d) last += (sizes[d] - 1) * strides[d];
        memory = Tensor::make(type, {last + 1}).value();
        for (std::int64_t i = 0; i <= last; ++i) memory.set(i, 777);  // what nobody may read or write
    }
    [[nodiscard]] std::int64_t place(std::int64_t i) const {
        std::int64_t at = 0;
        for (std::size_t d = sizes.size(); d-- > 0; i /= sizes[d]) at += i % sizes[d] * strides[d];
        return at;
    }
};

bool all_finite(const Diagram& diagram, const Values& inputs) {
    for (const ArrayId id : diagram.inputs)
        for (const double x : inputs[id])
            if (!std::isfinite(x)) return false;
    return true;
}

void admit_anything_for_nan(BoundedValues& reference) {
    for (const ArrayId a : reference.value.ids()) {
        const Column& values = reference.value[a];
        reference.error[a].resize(values.size());
        reference.may[a].resize(values.size());
        for (std::size_t i = 0; i < values.size(); ++i) {
            if (!std::isnan(values[i])) continue;
            reference.error[a][i] = anything(0).error;
            reference.may[a][i] = anything(0).may;
        }
    }
}

using Runner = std::function<Status(const std::vector<KernelInput>&, const std::vector<KernelOutput>&)>;

std::string run_case(const Case& c, const Runner& kernel, Probe probe, bool may_have_gaps) {
    const Diagram& diagram = c.program.diagram;
    std::mt19937_64 random(c.seed);
    Values given = probe_inputs(c.diagram, c.extents, probe, c.seed);
    for (const auto& [name, value] : c.scalars) given[*c.diagram.find_array(name)].set(0, Number::real(value));
    std::vector<std::vector<ReductionTree>> trees;
    for (const ScheduledKernel& scheduled : c.scheduled.kernels) trees.push_back(reduction_trees(scheduled));
    BoundedValues reference = evaluate_bounded(c.diagram, c.extents, given,
                                               execution_of(c.diagram, c.extents, c.program, std::move(trees)));
    if (c.nan_is_open && !all_finite(c.diagram, given)) admit_anything_for_nan(reference);

    std::vector<Strided> arrays;
    arrays.reserve(diagram.inputs.size() + diagram.outputs.size());
    std::vector<KernelInput> inputs;
    std::vector<KernelOutput> outputs;
    for (const ArrayId a : diagram.inputs) {
        Strided& s = arrays.emplace_back(diagram.array(a).type,
                                         sizes_of(c.diagram, *c.diagram.find_array(diagram.array(a).name), c.extents),
                                         random, may_have_gaps);
        const auto& values = given[*c.diagram.find_array(diagram.array(a).name)];
        for (std::size_t i = 0; i < values.size(); ++i) s.memory.set(s.place(static_cast<std::int64_t>(i)), values[i]);
        inputs.push_back({s.memory.data(), diagram.array(a).type, s.sizes, s.strides});
    }
    for (const ArrayId a : diagram.outputs) {
        Strided& s = arrays.emplace_back(diagram.array(a).type, sizes_of(diagram, a, c.extents), random, may_have_gaps);
        outputs.push_back({s.memory.data(), diagram.array(a).type, s.sizes, s.strides});
    }
    for (int round = 0; round < 2; ++round)  // the second run finds the memory of the first
        if (const Status done = kernel(inputs, outputs); !done) return render(done.errors());

    for (std::size_t k = 0; k < diagram.outputs.size(); ++k) {
        const Array& array = diagram.array(diagram.outputs[k]);
        const Strided& s = arrays[diagram.inputs.size() + k];
        const auto id = *c.diagram.find_array(array.name);
        std::vector<bool> written(static_cast<std::size_t>(s.memory.count()), false);
        Column made = Column::unset(array.type, reference.value[id].size());
        for (std::size_t i = 0; i < made.size(); ++i) {
            const std::int64_t at = s.place(static_cast<std::int64_t>(i));
            written[static_cast<std::size_t>(at)] = true;
            made.set(i, s.memory.number(at));
        }
        const ArrayVerdict verdict = judge(c.diagram, id, c.extents, reference, made);
        if (verdict.judgement == Judgement::bad) return describe(verdict);
        const double untouched = round_to(array.type, 777);
        for (std::int64_t i = 0; i < s.memory.count(); ++i)
            if (!written[static_cast<std::size_t>(i)] && s.memory.at(i) != untouched && !std::isnan(untouched))
                return fmt::format("{} was written outside of its view", array.name);
    }
    return "";
}

std::string run_case(const Case& c, const std::shared_ptr<const JitModule>& module) {
    const auto kernel = CpuKernel::bind(c.diagram, c.program, c.source, 2, module);
    for (const Probe probe : c.probes)
        if (const std::string failure = run_case(
                c, [&](const auto& inputs, const auto& outputs) { return kernel->run(inputs, outputs); }, probe, true);
            !failure.empty())
            return fmt::format("{}: {}", name(probe), failure);
    return fault_of_order(c, *module);
}

std::string run_on_gpu(const Case& c, const gpu::Cubin& cubin) {
    const auto kernel = gpu::GpuKernel::load(c.program, c.gpu_source, cubin);
    if (!kernel) return render(kernel.errors());
    for (const Probe probe : c.probes)
        if (const std::string failure = run_case(
                c, [&](const auto& inputs, const auto& outputs) { return (*kernel)->run(inputs, outputs); }, probe, false);
            !failure.empty())
            return fmt::format("{}: {}", name(probe), failure);
    return "";
}

}  // namespace

std::vector<KernelSchedule> random_schedules(const Derived& derived, const Extents& extents, std::uint64_t seed) {
    std::mt19937_64 random(seed), subloops(seed + 1);
    const auto pick_with = [](auto& source, std::int64_t n) {
        return static_cast<std::int64_t>(source() % static_cast<std::uint64_t>(n));
    };
    const auto pick = [&](std::int64_t n) { return pick_with(random, n); };
    std::vector<KernelSchedule> plan;
    for (const Kernel& kernel : derived.kernels) {
        KernelSchedule k;
        k.kernel = kernel.name;
        const auto extent = [&](AxisId a) { return extents[a]; };
        const auto longest_k_block = [&](AxisId a) {
            return kernel.parts.cut(a) ? std::max<std::int64_t>(1, extent(a) / extent(kernel.parts.part)) : extent(a);
        };
        if (kernel.parts.any()) k.split.value = extent(kernel.parts.part);
        for (const AxisId a : kernel.group_axes) {
            if (a == kernel.parts.part || pick(4) == 0) continue;
            k.group[a] = {1 + pick(extent(a)), "", false};
            if (pick(2) == 0) k.vector_axis.value = a;
        }
        for (std::size_t a = 0; a < extents.size(); ++a)
            if (const auto axis = AxisId::of(a); pick(4) != 0 || kernel.parts.cut(axis))
                k.stream[axis] = {1 + pick(longest_k_block(axis)), "", false};
        if (pick(8) == 0 && !extents.empty())
            k.vector_axis.value = AxisId::of(pick(static_cast<std::int64_t>(extents.size())));
        for (const AxisId a : extents.ids())
            if (pick_with(subloops, 3) == 0) k.subloop[a] = {1 + pick_with(subloops, extents[a]), "", false};
        k.threads = {1 + pick(2), "", false};
        k.rows = {1 + pick(8), "", false};
        k.panel_vectors.value = static_cast<int>(1 + pick(3));
        plan.push_back(std::move(k));
    }
    return plan;
}

/// Changes at random what the rules of the plan chose and where any choice is valid. It varies whether a result is
/// written in place and past the caches, what is prefetched, and which reductions the warps of a block share.
ScheduledKernel varied(const ScheduledKernel& kernel, std::uint64_t seed) {
    std::mt19937_64 random(seed + 2);
    KernelSchedule schedule = kernel.schedule;
    for (const VariableId v : kernel.layouts.ids())
        if (why_not_in_place(kernel, v).empty())
            schedule.places[v].holding = random() % 3 == 0 ? MemorySpace::buffer : MemorySpace::global;
    for (const Step& step : kernel.steps) {
        if (!kernel.in_blocks() || step.atom < 0 || !kernel.atom(step).across) continue;
        const auto target = std::get<Compute>(*step.statement).variable;
        const bool is_shared = random() % 2 == 0;
        schedule.atoms[step.atom].shared = is_shared;
        if (is_shared && schedule.places[target].holding != MemorySpace::lanes)
            schedule.places[target].holding = MemorySpace::buffer;
    }
    // Some of what lies in lanes goes to buffers, and what then cannot stay goes with it.
    ScheduledKernel changed = kernel;
    changed.schedule = schedule;
    for (Place& place : changed.schedule.places)
        if (place.holding == MemorySpace::lanes && random() % 5 == 0) place.holding = MemorySpace::buffer;
    const ByVariable<bool> in_lanes = may_lie_in_lanes(changed, true);
    for (const VariableId v : kernel.layouts.ids())
        if (schedule.places[v].holding == MemorySpace::lanes && !in_lanes[v])
            schedule.places[v].holding = MemorySpace::buffer;
    const auto with = [&] {
        return scheduled(kernel.program, static_cast<std::size_t>(kernel.kernel - kernel.program->kernels.data()),
                         kernel.extents, schedule, kernel.unit);
    };
    const ScheduledKernel placed = with();
    for (const VariableId id : kernel.layouts.ids()) {
        schedule.places[id].non_temporal = why_not_non_temporal(placed, id).empty() && random() % 2 == 0;
        for (const Step& step : placed.steps) {
            const auto ahead = static_cast<std::int64_t>(1 + random() % 3);
            const bool has_rows = why_no_rows_ahead(placed, id, step).empty() &&
                                  ahead * placed.atom(step).rows < placed.extent(placed.atom(step).row_axis);
            if (!has_rows && (!why_not_prefetched(placed, id, step).empty() || ahead >= placed.num_groups())) continue;
            std::erase_if(schedule.prefetches, [&](const Prefetch& p) { return p.variable == id; });
            schedule.prefetches.push_back({id, step.atom, {ahead, "", false}, has_rows ? Fetched::blocks : Fetched::groups});
        }
    }
    std::set<int> taken;
    for (const Step& step : placed.steps) {
        const auto in = std::find_if(placed.steps.begin(), placed.steps.end(), [&](const Step& s) {
            return why_not_tile_pipelined(placed, step, s).empty() && !taken.contains(s.atom);
        });
        if (in == placed.steps.end() || placed.num_groups() < 2 || random() % 4 == 0) continue;
        schedule.tile_pipelining.push_back({step.atom, in->atom, {1, "", false}});
        for (Prefetch& p : schedule.prefetches)
            if (p.atom == step.atom) p.atom = in->atom;
        taken.insert(in->atom);
    }
    return with();
}

const std::vector<Width>& widths() {
    static const std::vector<Width> all = [] {
        const int native = native_vector_bytes();
        std::vector<Width> list{{"native", native, vector_registers(native), flags_for_vectors(native), true}};
#if defined(__x86_64__)
        list.push_back({"SSE2", 16, 16, {"-march=x86-64"}, true});
        list.push_back({"AVX2", 32, 16, {"-march=x86-64-v3"}, native >= 32});
        list.push_back({"AVX-512", 64, 32, {"-march=x86-64-v4"}, native >= 64});
#endif
        return list;
    }();
    return all;
}

Extents some_extents(const Diagram& diagram, std::uint64_t seed) {
    std::map<std::string, std::int64_t> sizes;
    std::uint64_t state = seed * 0x9e3779b97f4a7c15ULL + 1;
    for (const Axis& a : diagram.axes) {
        state = state * 6364136223846793005ULL + 1442695040888963407ULL;
        const std::uint64_t bits = state >> 33;
        if (!a.size) sizes[a.name] = 1 + static_cast<std::int64_t>(bits % 4 == 0 ? bits / 4 % 37 : bits / 4 % 10);
    }
    const auto bound = bind_sizes(diagram, sizes);
    return bound ? *bound : random_extents(diagram, seed);
}

const Width& warps() {
    static const Width it{"warps", 128, 96, {}, false, true};
    return it;
}

const Width& warps_with_matrix_unit() {
    static const Width it{"warps with tensor cores", 128, 191, {}, false, true, true};
    return it;
}

namespace {

/// The kernel on the tensor cores, along any of its grouped axes, if it can be there with tiles of any size.
std::optional<ScheduledKernel> on_tensor_cores(const std::shared_ptr<const TileProgram>& tiles, std::size_t k,
                                               const Extents& extents, const KernelSchedule& drawn,
                                               const VectorUnit& unit, std::uint64_t seed) {
    constexpr std::int64_t step = 16, most_columns = 128;
    const std::vector<AxisId>& axes = tiles->kernels[k].group_axes;
    // Tiles of any size may exceed the size at hand.
    const bool may_exceed = !axes.empty() && tiles->diagram.axis(axes.front()).is_any && seed % 3 != 0;
    const auto extent = [&](AxisId axis) { return may_exceed ? std::int64_t{1} << 20 : extents[axis]; };
    for (const AxisId axis : axes)
        // Every other axis has one value, as of a batch, or several, as of columns.
        for (std::size_t wide = 0; wide < std::size_t{1} << axes.size(); ++wide) {
            KernelSchedule s = drawn;
            s.mma_m.value = axis, s.vector_axis.value = -1;
            s.warps = {seed % 2 == 0 ? 4 : 8, "", false};
            if (seed % 3 != 0) s.roles = {{"copies", 4}};
            for (std::size_t a = 0; a < axes.size(); ++a) {
                const auto found = drawn.group.find(axes[a]);
                const std::int64_t size = found == drawn.group.end() ? extent(axes[a])
                                                                     : std::max(found->second.value, step);
                s.group[axes[a]] = {std::min(extent(axes[a]), axes[a] == axis ? unit.matrix.tile().rows * s.warps.value
                                                              : wide >> a & 1 ? std::min(size, most_columns)
                                                                              : 1),
                                    "", false};
            }
            for (auto& [stream, choice] : s.stream)
                choice.value = std::min({extent(stream), round_up(choice.value, step), most_columns});
            ScheduledKernel out = complete(unscheduled(tiles, k, extents, unit), s, Completion::whole,
                                           seed / 2 % 2 == 0 ? ProductOrder::ahead : ProductOrder::in_turn);
            if (out.on_tensor_cores() && verify(out).empty()) return out;
        }
    return std::nullopt;
}

}  // namespace

Derived with_random_parts(const Derived& derived, const Extents& extents, std::uint64_t seed) {
    std::mt19937_64 random(seed + 2);
    Derived form = derived;
    for (std::size_t k = 0; k < form.kernels.size(); ++k) {
        std::int64_t most = 1;
        for (const Stage& stage : form.kernels[k].stages)
            if (const auto* loop = std::get_if<Loop>(&stage)) most = extents[loop->axis];
        if (most < 2 || random() % 2 == 0) continue;
        Parted cut = with_parts(form, k, 2 + static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(most - 1)));
        if (!cut.form) continue;
        form = std::move(*cut.form);
        k += cut.num_kernels - 1;
    }
    return form;
}

Case make_case(const Diagram& diagram, const Extents& sizes_of_diagram, std::uint64_t seed, const std::string& name,
               const std::vector<KernelSchedule>& schedules, const Width& width) {
    auto derived = derive(diagram);
    if (!derived) throw std::runtime_error(render(derived.errors()));
    return make_case(diagram, sizes_of_diagram, seed, name,
                     schedules.empty() ? with_random_parts(*derived, sizes_of_diagram, seed) : *derived, schedules, width);
}

Case make_case(const Diagram& diagram, const Extents& sizes_of_diagram, std::uint64_t seed, const std::string& name,
               const Derived& form, const std::vector<KernelSchedule>& schedules, const Width& width) {
    Case c{diagram, sizes_of_diagram, seed, {}, {}, {}, {}, {}};
    c.derived = form;
    // Sizes are numbers of one half, and arguments of the other.
    if (seed % 2 != 0) c.derived.diagram = with_any_sizes(std::move(c.derived.diagram));
    const Extents extents = with_part_extents(form, sizes_of_diagram);
    for (const Kernel& kernel : form.kernels) c.num_parts += kernel.parts.any();
    auto chosen = schedules.empty() ? random_schedules(c.derived, extents, seed) : schedules;
    // Tiles of any size may exceed the size at hand.
    if (schedules.empty() && seed % 6 == 1)
        for (std::size_t k = 0; k < chosen.size(); ++k) {
            for (auto& [axis, size] : chosen[k].group) size.value *= 2;
            // A stream has a K block for each of its parts.
            if (c.derived.kernels[k].parts.any()) continue;
            for (auto& [axis, size] : chosen[k].stream) size.value *= 2;
        }
    TileProgram whole = sized(expand(c.derived), extents, std::vector<TileSizes>(c.derived.kernels.size()));
    for (std::size_t k = 0; k < chosen.size(); ++k)
        for (const auto& [axis, size] : chosen[k].subloop) {
            SubloopsOver cut = with_subloops_over(whole.diagram, whole.kernels[k], axis);
            if (cut.num_cut == 0) continue;
            whole.kernels[k] = std::move(cut.kernel);
            chosen[k].group.erase(axis);
            ++c.num_subloops;
        }
    const auto tiles = std::make_shared<const TileProgram>(std::move(whole));
    std::vector<TileSizes> sizes;
    for (std::size_t k = 0; k < chosen.size(); ++k) {
        VectorUnit unit;
        unit.bytes = width.vector_bytes, unit.registers = width.vector_registers;
        if (!width.is_gpu && seed % 2 == 0) unit.lane_products = {DType::bf16, DType::i8};
        if (width.is_gpu) {
            // what every GPU gives, so that some arenas lie in memory
            unit.warp_threads = 32, unit.block_bytes = 48 << 10;
            if (chosen[k].warps.value == 0)
                chosen[k].warps = {1 + static_cast<std::int64_t>((seed + k) % 8), "", false};
        }
        std::optional<ScheduledKernel> multiplied;
        if (width.has_matrix_unit) {
            static const Machine hopper = load_machine("h200").value();
            unit.block_registers = static_cast<std::int64_t>(hopper.threads->registers_a_core.value);
            unit.matrix = hopper.instructions, unit.block_bytes = unit.share_bytes = 227 << 10;
            // Some by mma.sync, with operands that threads copy.
            unit.copies = copy_atoms(hopper);
            if (seed % 4 == 0) unit.copies.bulk_dimensions = unit.copies.bulk_store_dimensions = 0;
            multiplied = on_tensor_cores(tiles, k, extents, chosen[k], unit, seed);
            c.num_on_matrix_unit += multiplied ? 1 : 0;
        }
        c.scheduled.kernels.push_back(
            multiplied ? *multiplied : varied(complete(unscheduled(tiles, k, extents, unit), chosen[k]), seed));
        // Some blocks take uneven groups in turn.
        if (ScheduledKernel& made = c.scheduled.kernels.back(); made.has_block_a_group() && seed % 3 == 0)
            made.schedule.grid = made.schedule.threads;
        for (const bool dense : c.scheduled.kernels.back().dense) c.num_in_place += dense ? 1 : 0;
        for (const Place& place : c.scheduled.kernels.back().schedule.places)
            c.num_non_temporal += place.non_temporal ? 1 : 0;
        for (const Prefetch& p : c.scheduled.kernels.back().schedule.prefetches)
            ++(p.fetched == Fetched::blocks ? c.num_rows_ahead : c.num_groups_ahead);
        c.num_deferred += static_cast<int>(c.scheduled.kernels.back().schedule.tile_pipelining.size());
        sizes.push_back(c.scheduled.kernels.back().sizes);
        if (const auto broken = verify(c.scheduled.kernels.back()); !broken.empty())
            throw std::runtime_error(broken.front());
    }
    c.program = sized(*tiles, extents, sizes);
    if (const auto faults = verify(c.program); !faults.empty()) throw std::runtime_error(faults.front());
    const lower::LoweredProgram lowered = lower::lowered(c.scheduled);
    if (width.is_gpu) {
        for (const lower::KernelProgram& kernel : lowered.kernels)
            if (const std::string fault = lower::fault_of(kernel); !fault.empty())
                throw std::runtime_error(fault + "\n" + to_string(kernel));
        c.gpu_source = cuda::emit(lowered, name + "_");
    } else
        c.source = cpu::emit(lowered, name + "_");
    return c;
}

Case make_case(const Diagram& diagram, const Extents& extents, std::uint64_t seed, const std::string& name) {
    return make_case(diagram, extents, seed, name, {});
}

std::string describe(const Case& c) {
    std::string out = fmt::format("seed {}\n", c.seed);
    for (const AxisId a : c.extents.ids()) out += fmt::format("{} = {}  ", c.diagram.axes[a].name, c.extents[a]);
    out += "\n";
    for (const Equation& e : c.diagram.equations) out += to_string(c.diagram, e) + "\n";
    return out + c.source.text + c.gpu_source.text;
}

cuda::CudaSource in_one_source(const std::vector<Case>& cases) {
    cuda::CudaSource all;
    for (const Case& c : cases) all.text += c.gpu_source.text, all.wide_index |= c.gpu_source.wide_index;
    return all;
}

std::vector<std::string> failures_on_gpu(const std::vector<Case>& cases) {
    const auto device = gpu::device();
    if (!device) throw std::runtime_error(render(device.errors()));
    const auto cubin = gpu::compile_cuda(cuda::complete(in_one_source(cases)), device->architecture());
    if (!cubin) throw std::runtime_error(render(cubin.errors()));
    std::vector<std::string> out;
    for (const Case& c : cases) out.push_back(run_on_gpu(c, *cubin));
    return out;
}

std::vector<std::string> failures(const std::vector<Case>& cases, const Width& width) {
    cpu::CpuSource all;
    for (const Case& c : cases) all.text += c.source.text, all.vector_bytes = c.source.vector_bytes;
    JitOptions options;
    options.optimization = "-O1";
#if defined(__SANITIZE_ADDRESS__)
    options.flags = {"-fsanitize=address"};  // kernels read only what is theirs
#endif
    options.flags.insert(options.flags.end(), width.flags.begin(), width.flags.end());
    const auto module = jit_compile(cpu::complete(all), options);
    if (!module) throw std::runtime_error(render(module.errors()));
    if (!width.runs_here) return std::vector<std::string>(cases.size());
    std::vector<std::string> out;
    for (const Case& c : cases) out.push_back(run_case(c, *module));
    return out;
}

}  // namespace napkin::cpu_case
