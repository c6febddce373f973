#include "run/baseline.hpp"

#include <fmt/format.h>

#include <array>
#include <fstream>
#include <functional>

#include "machine/processor.hpp"
#include "plan/choose.hpp"
#include "run/blas.hpp"
#include "run/memory.hpp"
#include "run/unfused.hpp"
#include "support/ranges.hpp"
#include "tile/expand.hpp"
#include "tile/placement.hpp"

namespace napkin {

namespace {

/// Less work than this is not worth waking threads for.
constexpr std::int64_t small_work_points = 20000;

DType computed_type(const Diagram& diagram) {
    return any_of(diagram.arrays, [](const Array& a) { return a.type == DType::f64; }) ? DType::f64 : DType::f32;
}

/// With all numbers of floating point in the type that the baseline computes in, which alone the library multiplies.
Result<Unfused> unfused_wide(Diagram diagram, const Extents& extents) {
    const DType type = computed_type(diagram);
    for (Array& array : diagram.arrays)
        if (is_float(array.type)) array.type = type;
    auto form = unfused(diagram, extents);
    if (form)
        std::erase_if(form->multiplies, [&](const auto& of_kernel) {
            const Gemm& g = of_kernel.second;
            return any_of(std::array{g.a, g.b, g.c}, [&](ArrayId id) { return diagram.array(id).type != type; });
        });
    return form;
}

std::int64_t bytes_between(const Derived& derived, const Extents& extents) {
    return placed(expand(derived), extents).total_bytes();
}

std::int64_t available_bytes() {
    std::ifstream in("/proc/meminfo");
    std::string word;
    std::int64_t kib = 0;
    while (in >> word) {
        if (word == "MemAvailable:" && in >> kib) return kib * 1024;
    }
    return std::int64_t{1} << 62;
}

Diagnostic no_memory_for(std::int64_t wanted, std::int64_t there) {
    return too_little_memory(
        fmt::format("evaluation equation by equation needs {:.1f} GB for its intermediate arrays; {:.1f} GB are free",
                    static_cast<double>(wanted) / 1e9, static_cast<double>(there) / 1e9));
}

// The library multiplies on one thread at a time and ours share out the multiplies: its own threads would go on
// spinning beside the kernels that follow. A single multiply is cut along its rows or columns.
template <class T>
void run_gemm(const Blas& blas, const Gemm& g, const std::function<void*(ArrayId)>& array, Workers& workers) {
    const T *const in_a = static_cast<const T*>(array(g.a)), *const in_b = static_cast<const T*>(array(g.b));
    T* const out = static_cast<T*>(array(g.c));
    std::int64_t batch = 1;
    for (const GemmLoop& loop : g.batch) batch *= loop.size;
    std::int64_t accumulate = 1;
    for (const GemmLoop& loop : g.accumulate) accumulate *= loop.size;

    // Panels of at least 64 rows or columns, so that all threads have as much to do.
    const std::int64_t threads = workers.threads();
    const bool small = 2 * batch * accumulate * g.m * g.n * g.k < 2 * small_work_points;
    const bool cut_rows = g.m >= g.n;
    const std::int64_t length = cut_rows ? g.m : g.n;
    std::int64_t panels = 1;
    if (!small && batch % threads != 0 && batch < 8 * threads)
        panels = std::clamp<std::int64_t>(length / 64, 1, threads);

    const auto multiply = [&](std::int64_t item) {
        std::int64_t rest = item / panels;
        const std::int64_t begin = length * (item % panels) / panels, end = length * (item % panels + 1) / panels;
        std::int64_t a = 0, b = 0, c = 0;
        for (auto loop = g.batch.rbegin(); loop != g.batch.rend(); ++loop) {
            a += rest % loop->size * loop->a;
            b += rest % loop->size * loop->b;
            c += rest % loop->size * loop->c;
            rest /= loop->size;
        }
        if (cut_rows) {
            a += begin * (g.transpose_a ? 1 : g.lda);
            c += begin * g.ldc;
        } else {
            b += begin * (g.transpose_b ? g.ldb : 1);
            c += begin;
        }
        for (std::int64_t step = 0; step < accumulate; ++step) {
            std::int64_t a_step = a, b_step = b, left = step;
            for (auto loop = g.accumulate.rbegin(); loop != g.accumulate.rend(); ++loop) {
                a_step += left % loop->size * loop->a;
                b_step += left % loop->size * loop->b;
                left /= loop->size;
            }
            blas.gemm(g.transpose_a, g.transpose_b, cut_rows ? end - begin : g.m, cut_rows ? g.n : end - begin, g.k,
                      static_cast<T>(g.alpha), in_a + a_step, g.lda, in_b + b_step, g.ldb,
                      static_cast<T>(step == 0 ? 0 : 1), out + c, g.ldc);
        }
    };
    const auto all = [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t item = begin; item < end; ++item) multiply(item);
    };
    small ? all(0, batch) : workers.split(batch * panels, all);
}

/// The call of the library that stands before the kernel of that index.
OtherWork multiply(const std::shared_ptr<const Blas>& blas, const Gemm& gemm, DType type, std::size_t before) {
    return {before, {gemm.a, gemm.b}, {gemm.c}, [=](const std::function<void*(ArrayId)>& array, Workers& workers) {
                (type == DType::f64 ? run_gemm<double> : run_gemm<float>)(*blas, gemm, array, workers);
            }};
}

}  // namespace

std::int64_t baseline_extra_bytes(const Diagram& diagram, const Extents& extents) {
    return bytes_between(unfused_wide(diagram, extents).value().derived, extents);
}

Result<Baseline> Baseline::build(const Diagram& diagram, const Extents& extents, const Machine& machine,
                                 const BaselineOptions& options) {
    auto form = unfused_wide(diagram, extents);
    if (!form) return form.errors();
    if (const std::int64_t wanted = bytes_between(form->derived, extents), there = available_bytes();
        wanted > there / 10 * 9)
        return no_memory_for(wanted, there);
    const std::shared_ptr<const Blas> blas = options.use_blas ? load_blas() : nullptr;
    Baseline out;
    out.type = computed_type(diagram);
    out.multiplies = static_cast<int>(form->multiplies.size());
    if (blas) out.blas = blas->name();

    PlanOptions planned;
    std::vector<OtherWork> others;
    const int threads = options.threads > 0 ? options.threads : static_cast<int>(machine.num_cores());
    for (std::size_t k = 0; k < form->derived.kernels.size(); ++k)
        if (const auto gemm = form->multiplies.find(k); blas && gemm != form->multiplies.end())
            others.push_back(multiply(blas, gemm->second, out.type, k));
        else
            planned.only.push_back(k);
    if (planned.only.empty()) {
        SizedProgram program;
        program.diagram = form->derived.diagram, program.extents = extents;
        for (OtherWork& work : others) work.before = 0;
        out.kernel = CpuKernel::bind(diagram, program, {}, threads, nullptr, std::move(others));
        return out;
    }
    const auto plan = choose_plan(form->derived, extents, machine, {{ChoiceKind::threads, "", threads}}, planned);
    if (!plan) return plan.errors();
    for (OtherWork& work : others)
        work.before = static_cast<std::size_t>(
            count_if(plan->kernels, [&](const KernelPlan& kernel) { return kernel.whole < work.before; }));
    const cpu::CpuSource source = cpu::emit(plan->program());
    auto module = jit_compile(cpu::complete(source), {.flags = flags_for_vectors(source.vector_bytes)});
    if (!module) return module.errors();
    out.kernel = CpuKernel::bind(diagram, plan->tiles(), source, threads, std::move(*module), std::move(others));
    return out;
}

}  // namespace napkin
