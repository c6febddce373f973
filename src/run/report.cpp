#include "run/report.hpp"

#include <fmt/format.h>

#include <cmath>

#include "cost/transfers.hpp"
#include "derive/normal_form.hpp"
#include "diagram/array_sizes.hpp"
#include "diagram/check_indices.hpp"
#include "run/baseline.hpp"
#include "run/blas.hpp"
#include "run/contraction.hpp"
#include "run/gpu/baseline.hpp"
#include "run/index_inputs.hpp"
#include "run/measure.hpp"
#include "support/ids.hpp"
#include "support/ranges.hpp"
#include "support/text.hpp"
#include "tile/exact.hpp"

namespace napkin {

namespace {
/// H and M of the formulas in letters with the sizes put in: as many groups as there are, and the largest tiles.
std::pair<double, double> letters_at(const SizedProgram& program, std::size_t k) {
    const TileSizes& sizes = program.sizes[k];
    std::vector<AxisId> grouped;
    for (const auto& [axis, size] : groups_of(program.kernels[k], sizes)) grouped.push_back(axis);
    const KernelCost cost = symbolic_cost(program.diagram, program.kernels[k], grouped);
    const auto evaluated = [&](const Size& formula, bool mean_group) {
        return formula
            .evaluate([&](Symbol symbol) -> std::optional<double> {
                const auto axis = symbol.axis();
                const std::int64_t extent = program.extents[axis];
                std::int64_t size = 0;
                if (symbol.kind == SymbolKind::group) size = sizes.group[axis];
                if (symbol.kind == SymbolKind::stream) size = sizes.stream[axis];
                if (symbol.kind == SymbolKind::subloop) size = sizes.sub[axis];
                if (size <= 0) return static_cast<double>(extent);
                if (mean_group && symbol.kind == SymbolKind::group)
                    return static_cast<double>(extent) / static_cast<double>((extent + size - 1) / size);
                return static_cast<double>(size);
            })
            .value();
    };
    double memory = 0;
    for (const MemoryColumn& column : cost.memory) memory = std::max(memory, evaluated(column.size, false));
    return {evaluated(cost.transfers, true), memory};
}

Diagnostic input_error(std::string code, std::string message, std::string expected = "", std::string hint = "") {
    return Diagnostic{
        .code = std::move(code), .message = std::move(message), .expected = std::move(expected), .hint = std::move(hint)};
}

std::string sizes_text(const std::vector<std::int64_t>& sizes) {
    return sizes.empty() ? "a scalar" : fmt::format("{}", fmt::join(sizes, "×"));
}

/// A large multiply of OpenBLAS by itself: what the machine's best dense code reaches in f32.
struct MultiplyRate {
    static constexpr std::int64_t size = 2048;
    static constexpr double flops = 2.0 * size * size * size;

    static std::optional<MultiplyRate> prepare(int threads) {
        MultiplyRate rate{load_blas(), threads, std::vector<float>(size * size, 0.5F),
                          std::vector<float>(size * size, 0.25F), std::vector<float>(size * size)};
        return rate.blas ? std::optional(std::move(rate)) : std::nullopt;
    }
    // Its own threads sleep again after a while; they are given back so that they do not spin beside the others.
    void run() {
        blas->set_threads(threads);
        blas->gemm(false, false, size, size, size, 1.0F, a.data(), size, b.data(), size, 0.0F, c.data(), size);
        blas->set_threads(1);
    }

    std::shared_ptr<const Blas> blas;
    int threads = 1;
    std::vector<float> a, b, c;
};

/// The part of a box of axes in which all forms are ≥ 0. One axis is counted as an interval. The others are walked, or
/// sampled evenly when there are very many points.
double fraction_inside(const std::vector<Affine>& forms, AxisId inner, const Extents& extents) {
    std::vector<AxisId> axes;
    for (const Affine& form : forms) {
        for (const auto& [axis, coefficient] : form.terms) {
            if (axis != inner && !contains(axes, axis)) axes.push_back(axis);
        }
    }
    std::int64_t points = 1;
    for (const AxisId axis : axes) points = std::min(points * extents[axis], std::int64_t{1} << 40);
    const std::int64_t step = std::max<std::int64_t>(1, points / 1000000);
    double inside = 0, all = 0;
    std::vector<std::int64_t> point(extents.size(), 0);
    for (std::int64_t number = 0; number < points; number += step) {
        std::int64_t rest = number;
        for (const AxisId axis : axes) {
            point[axis] = rest % extents[axis];
            rest /= extents[axis];
        }
        std::int64_t low = 0, high = extents[inner] - 1;
        for (const Affine& form : forms) {
            std::int64_t value = form.constant;
            for (const auto& [axis, coefficient] : form.terms)
                value += axis == inner ? 0 : coefficient * point[at(axis)];
            const std::int64_t slope = form.coefficient(inner);
            // value + slope·i ≥ 0
            if (slope > 0) low = std::max(low, value >= 0 ? -(value / slope) : (-value + slope - 1) / slope);
            if (slope < 0) high = std::min(high, value >= 0 ? value / -slope : -1);
            if (slope == 0 && value < 0) high = -1;
        }
        inside += static_cast<double>(std::max<std::int64_t>(0, high - low + 1));
        all += static_cast<double>(extents[inner]);
    }
    return all > 0 ? inside / all : 1;
}

bool has_axis(const Diagram& diagram, const Equation& equation, AxisId axis) {
    const std::vector<AxisId>& target = diagram.array(equation.target).axes;
    return contains(target, axis) || contains(equation.reduce_axes, axis);
}

}  // namespace

double useful_flops(const Compilation& c) {
    double total = 0;
    for (const Equation& equation : c.diagram.equations) {
        const double flops = contraction_flops(c.diagram, equation, c.extents);
        double fraction = 1;
        for (const Kernel& kernel : c.derived.kernels) {
            for (const Stage& stage : kernel.stages) {
                const auto* loop = std::get_if<Loop>(&stage);
                if (flops == 0 || loop == nullptr || loop->support.empty()) continue;
                // The derivation adds axes but keeps the numbers of those that it found.
                const bool within = all_of(loop->support, [&](const Affine& form) {
                    return all_of(form.terms, [&](const auto& term) {
                        return at(term.first) < c.extents.size() && has_axis(c.diagram, equation, term.first);
                    });
                });
                if (within && has_axis(c.diagram, equation, loop->axis))
                    fraction = std::min(fraction, fraction_inside(loop->support, loop->axis, c.extents));
            }
        }
        total += flops * fraction;
    }
    // A product of many operands, contracted two at a time, takes far fewer operations than as it is written.
    Diagram plain = c.diagram;
    std::vector<DerivationStep> steps;
    order_contractions(plain, false, steps);
    double ordered = 0;
    for (const Equation& equation : plain.equations)
        if (!steps.empty()) ordered += contraction_flops(plain, equation, c.extents);
    return ordered > 0 ? std::min(total, ordered) : total;
}

Result<std::map<std::string, std::int64_t>> sizes_of_inputs(const Diagram& diagram,
                                                            const std::map<std::string, Tensor>& inputs,
                                                            const std::map<std::string, std::int64_t>& overrides) {
    std::vector<Diagnostic> errors;
    std::map<std::string, std::int64_t> sizes = overrides;
    std::map<std::string, std::string> said_by;
    for (const auto& [axis, size] : overrides) said_by[axis] = "--set";
    const std::vector<std::string> names = names_of(diagram.arrays, diagram.inputs);
    for (const auto& [name, tensor] : inputs) {
        const auto id = diagram.find_array(name);
        if (!id || diagram.array(*id).role != ArrayRole::input) {
            errors.push_back(input_error("unknown-input", fmt::format("{} has no input {}", diagram.name, name),
                                         fmt::format("one of {}", fmt::join(names, ", ")), did_you_mean(name, names)));
            continue;
        }
        const std::vector<AxisId>& axes = diagram.array(*id).axes;
        if (axes.size() != tensor.sizes().size()) {
            std::vector<std::string> axis_names = names_of(diagram.axes, axes);
            errors.push_back(
                input_error("input-rank",
                            fmt::format("input {} has {} ax{} ({}) in its file", name, tensor.sizes().size(),
                                        tensor.sizes().size() == 1 ? "is" : "es", sizes_text(tensor.sizes())),
                            fmt::format("{} as in {}[{}]", axes.size(), name, fmt::join(axis_names, ", "))));
            continue;
        }
        for (std::size_t i = 0; i < axes.size(); ++i) {
            const std::string& axis = diagram.axis(axes[i]).name;
            const auto [known, added] = sizes.emplace(axis, tensor.sizes()[i]);
            if (added) {
                said_by[axis] = name;
            } else if (known->second != tensor.sizes()[i]) {
                errors.push_back(input_error("input-sizes",
                                             fmt::format("axis {} is {} in input {} but {} in {}", axis,
                                                         tensor.sizes()[i], name, known->second, said_by[axis]),
                                             fmt::format("one size for {}", axis)));
            }
        }
    }
    if (!errors.empty()) return errors;
    return sizes;
}

Result<std::vector<Tensor>> all_inputs(const Diagram& diagram, const Extents& extents,
                                       const std::map<std::string, Tensor>& given, std::uint64_t seed) {
    std::vector<Tensor> inputs;
    for (const ArrayId id : diagram.inputs) {
        const Array& array = diagram.array(id);
        const std::vector<std::int64_t> sizes = array_sizes(diagram, id, extents);
        if (const auto found = given.find(array.name); found != given.end()) {
            if (found->second.sizes() != sizes) {
                return input_error("input-sizes",
                                   fmt::format("input {} is {} in its file", array.name, sizes_text(found->second.sizes())),
                                   sizes_text(sizes));
            }
            auto tensor = found->second.to(array.type);
            if (!tensor) return tensor.errors();
            inputs.push_back(std::move(tensor).value());
            continue;
        }
        auto tensor = Tensor::make(array.type, sizes);
        if (!tensor) return tensor.errors();
        const std::uint64_t own_seed = seed * 1000003 + static_cast<std::uint64_t>(id);
        if (array.rows)
            fill_row_numbers(*tensor, own_seed, extents[array.rows->axis], array.rows->ascend);
        else if (const auto greatest = greatest_index(diagram, extents, id))
            fill_integers(*tensor, own_seed, 0, std::min(*greatest, facts(array.type).most));
        else if (is_narrow_integer(array.type))
            fill_integers(*tensor, own_seed, facts(array.type).least, facts(array.type).most);
        else
            tensor->fill_normal(own_seed);
        inputs.push_back(std::move(tensor).value());
    }
    return inputs;
}

namespace {

void tell(const RunOptions& options, const std::string& what) {
    if (options.progress) options.progress(what);
}

/// Whoever ran before leaves its data in the GPU's cache: this much is written in between, more than any has.
constexpr std::int64_t flush_bytes = std::int64_t{256} << 20;
/// What that counts as in the time to be spent, in seconds: the write at 1.3 TB/s. A faster card is done earlier.
constexpr double flush_s = 200e-6;

/// The evaluation of `plain` equation by equation, run once; nothing, and why in the report, where it cannot be.
std::optional<gpu::GpuBaseline> baseline_on_gpu(const Compilation& c, const Diagram& plain,
                                                const std::vector<KernelInput>& views, RunReport& report) {
    auto built = gpu::gpu_baseline(plain, c.extents, c.machine);
    Status ran = built ? built->kernel->run(views, {}) : Status(built.errors());
    if (!ran) {
        report.baseline_left_out = ran.errors().front().message;
        return std::nullopt;
    }
    report.blas = built->library;
    report.baseline_multiplies = built->multiplies;
    report.baseline_own = built->own;
    report.baseline_extra_bytes = built->extra_bytes;
    return std::move(*built);
}

/// Medians of the works' seconds by events, one after the other in every turn, so that all see the card at the same
/// clock.
Result<std::vector<double>> medians_on_gpu(const std::vector<const gpu::GpuKernel*>& works, double wanted_seconds,
                                           int& repetitions) {
    auto flushed = gpu::allocate(flush_bytes);
    if (!flushed) return flushed.errors();
    std::vector<std::vector<double>> times(works.size());
    double spent = 0;
    constexpr int fewest = 5, most = 1000;
    for (repetitions = 0; repetitions < fewest || (repetitions < most && spent < wanted_seconds); ++repetitions)
        for (std::size_t i = 0; i < works.size(); ++i) {
            if (Status done = gpu::fill(*flushed, 0, flush_bytes); !done) return done.errors();
            const auto seconds = gpu::seconds_of([&] { return works[i]->launch(); });
            if (!seconds) return seconds.errors();
            times[i].push_back(*seconds);
            spent += *seconds + flush_s;
        }
    std::vector<double> medians;
    for (std::vector<double>& of_work : times) {
        sort(of_work);
        medians.push_back(of_work[of_work.size() / 2]);
    }
    return medians;
}

Status run_on_gpu(const Compilation& c, const Diagram& plain, const std::vector<Tensor>& inputs,
                  std::vector<Tensor>& outputs, const std::vector<KernelInput>& views, const RunOptions& options,
                  RunReport& report) {
    gpu::GpuKernel& kernel = *c.gpu_kernel;
    report.kernel_extra_bytes = kernel.extra_bytes();
    report.compile_seconds = kernel.cubin().compile_seconds;
    report.from_cache = kernel.cubin().from_cache;
    report.warnings = kernel.cubin().remarks;
    report.device = kernel.device().name;
    report.baseline_extra_bytes = baseline_extra_bytes(plain, c.extents);
    internal_check(inputs.size() == views.size(), "report: an input has no view");
    std::vector<KernelOutput> out;
    for (Tensor& tensor : outputs) out.push_back({tensor.data(), tensor.type(), tensor.sizes(), {}});
    tell(options, "running");
    if (Status ran = kernel.run(views, out); !ran) return ran;
    std::vector<const gpu::GpuKernel*> works{&kernel};
    std::optional<gpu::GpuBaseline> baseline;
    if (options.baseline && !c.program.kernels.empty()) {
        tell(options, "running equation by equation");
        baseline = baseline_on_gpu(c, plain, views, report);
        if (baseline) works.push_back(baseline->kernel.get());
    }
    tell(options, "measuring");
    const auto medians = medians_on_gpu(works, options.seconds, report.repetitions);
    if (!medians) return medians.errors();
    report.kernel_seconds = medians->front();
    if (baseline) report.baseline_seconds = medians->back();
    return Done{};
}

/// The evaluation equation by equation, with its inputs and outputs in the type that it computes in.
struct BaselineRun {
    Baseline baseline;
    std::vector<Tensor> arrays;
    std::vector<const void*> in;
    std::vector<void*> out;
    [[nodiscard]] Status run() const { return baseline.kernel->run(in, out); }
};

/// As baseline_on_gpu(). Errors: those of making its arrays.
Result<std::optional<BaselineRun>> baseline_on_cpu(const Compilation& c, const Diagram& plain,
                                                   const std::vector<Tensor>& inputs,
                                                   const std::vector<Tensor>& outputs, RunReport& report) {
    auto built = Baseline::build(plain, c.extents, c.machine, {.threads = report.threads});
    if (!built) {
        report.baseline_left_out = built.errors().front().message;
        return std::optional<BaselineRun>();
    }
    BaselineRun made{std::move(built).value(), {}, {}, {}};
    report.blas = made.baseline.blas;
    report.baseline_multiplies = made.baseline.multiplies;
    report.baseline_extra_bytes = made.baseline.kernel->extra_bytes();
    for (const std::vector<Tensor>* tensors : {&inputs, &outputs})
        for (const Tensor& tensor : *tensors) {
            auto converted = tensor.to(made.baseline.taken_as(tensor.type()));
            if (!converted) return converted.errors();
            made.arrays.push_back(std::move(converted).value());
        }
    for (std::size_t i = 0; i < inputs.size(); ++i) made.in.push_back(made.arrays[i].data());
    for (std::size_t i = 0; i < outputs.size(); ++i) made.out.push_back(made.arrays[inputs.size() + i].data());
    return std::optional(std::move(made));
}

Status run_on_cpu(const Compilation& c, const Diagram& plain, const std::vector<Tensor>& inputs,
                  std::vector<Tensor>& outputs, const RunOptions& options, RunReport& report) {
    report.kernel_extra_bytes = c.kernel->extra_bytes(options.threads);
    report.compile_seconds = c.kernel->compile_seconds();
    report.from_cache = c.kernel->from_cache();
    report.warnings = c.kernel->warnings();
    std::vector<const void*> in;
    std::vector<void*> out;
    for (const Tensor& tensor : inputs) in.push_back(tensor.data());
    for (Tensor& tensor : outputs) out.push_back(tensor.data());
    tell(options, "running");
    if (Status ran = c.kernel->run(in, out, options.threads); !ran) return ran;
    std::vector<std::function<void()>> candidates = {
        [&] { internal_check(c.kernel->run(in, out, options.threads).ok(), "a kernel that ran runs no more"); }};

    report.threads = options.threads > 0 ? options.threads : c.kernel->threads();
    report.baseline_extra_bytes = baseline_extra_bytes(plain, c.extents);
    std::optional<BaselineRun> baseline;
    if (options.baseline) {
        tell(options, "compiling the evaluation equation by equation");
        auto made = baseline_on_cpu(c, plain, inputs, outputs, report);
        if (!made) return made.errors();
        baseline = std::move(made).value();
    }
    if (baseline) {
        if (Status ran = baseline->run(); !ran) return ran;
        candidates.emplace_back([&] { internal_check(baseline->run().ok(), "a baseline that ran runs no more"); });
    }
    std::optional<MultiplyRate> multiply;
    if (options.multiply_rate) multiply = MultiplyRate::prepare(report.threads);
    if (multiply) multiply->run();
    tell(options, "measuring");
    std::optional<CacheFlush> flush;
    if (options.cold && c.machine.levels.size() > 1)
        flush.emplace(c.machine.levels[1].capacity_bytes.value * c.machine.levels[1].instances.value, report.threads);
    const Medians medians = interleaved_medians(candidates, options.seconds,
                                                flush ? [&] { flush->run(); } : std::function<void()>());
    report.repetitions = medians.repetitions;
    report.kernel_seconds = medians.seconds[0];
    if (baseline) report.baseline_seconds = medians.seconds[1];
    // By itself, as its matrices fill the last cache, where small programs find their arrays from run to run.
    constexpr double share_of_multiply = 0.25;
    if (multiply)
        report.multiply_flops_per_s = MultiplyRate::flops / interleaved_medians({[&] { multiply->run(); }},
                                                                                share_of_multiply * options.seconds)
                                                                .seconds.front();
    return Done{};
}

/// What the model says, and what it is compared with, before anything has run.
RunReport counted_report(const Compilation& c, const Diagram& plain, const RunOptions& options) {
    RunReport report;
    for (std::size_t k = 0; k < c.program.kernels.size(); ++k) {
        const auto [transfers, memory] = letters_at(c.program, k);
        report.predicted_transfers.push_back(transfers);
        report.predicted_memory.push_back(memory);
    }
    report.predicted_seconds = c.plan.seconds();
    tell(options, "counting transfers");
    for (std::size_t k = 0; k < c.program.kernels.size(); ++k) report.counted.push_back(exact_costs(c.program, k));
    report.flops = useful_flops(c);
    for (const Equation& equation : plain.equations)
        report.dense_flops += contraction_flops(plain, equation, c.extents);
    return report;
}

}  // namespace

Result<RunReport> run_and_report(const Compilation& c, const std::vector<Tensor>& inputs, const RunOptions& options,
                                 std::vector<Tensor>& outputs) {
    // A product of many operands is contracted two at a time in the peer too: as it is written, nobody would run it.
    Diagram plain = c.diagram;
    std::vector<DerivationStep> steps;
    order_contractions(plain, false, steps);
    RunReport report = counted_report(c, plain, options);
    outputs.clear();
    for (const ArrayId id : c.diagram.outputs) {
        auto tensor = Tensor::make(c.diagram.array(id).type, array_sizes(c.diagram, id, c.extents));
        if (!tensor) return tensor.errors();
        outputs.push_back(std::move(tensor).value());
    }
    std::vector<KernelInput> views;
    for (const Tensor& tensor : inputs) views.push_back({tensor.data(), tensor.type(), tensor.sizes(), {}});
    if (Status good = check_index_inputs(c.diagram, c.extents, views); !good) return good.errors();
    const Status ran = c.gpu_kernel ? run_on_gpu(c, plain, inputs, outputs, views, options, report)
                                    : run_on_cpu(c, plain, inputs, outputs, options, report);
    if (!ran) return ran.errors();
    return report;
}

}  // namespace napkin
