#include "run/baseline.hpp"

#include <fmt/format.h>

#include <cstdlib>
#include <fstream>
#include <functional>

#include "run/baseline_source.hpp"
#include "run/blas.hpp"
#include "run/jit.hpp"
#include "run/memory.hpp"
#include "run/workers.hpp"
#include "support/ranges.hpp"
#include "support/saturate.hpp"

namespace napkin {

namespace {

using LoopFunction = void (*)(const void* const* arrays, void* target, long begin, long end, long reduce_begin,
                              long reduce_end);

/// Less work than this is not worth waking threads for.
constexpr std::int64_t small_work_points = 20000;

/// Which piece of memory each temporary lies in. Pieces are used again once their array has no reader left.
struct Placement {
    std::vector<int> slot;            ///< by ArrayId; -1: not a temporary
    std::vector<std::int64_t> sizes;  ///< values, by slot
};

/// The temporary that a map may write over: it is read here for the last time, and only at the very place that is written.
ArrayId overwritable(const Diagram& diagram, const Equation& equation, const std::function<bool(ArrayId)>& ends_here) {
    if (equation.reduce) return -1;
    const std::vector<AxisId>& axes = diagram.array(equation.target).axes;
    for (const ArrayId id : read_arrays(equation.body)) {
        if (!ends_here(id) || diagram.array(id).axes != axes) continue;
        bool in_place = true;
        visit(equation.body, [&](const Expr& e) {
            const auto* r = as<Read>(e);
            for (std::size_t i = 0; r && r->array == id && i < axes.size(); ++i)
                in_place = in_place && r->indices[i].is_axis(axes[i]);
        });
        if (in_place) return id;
    }
    return -1;
}

Placement place(const Diagram& diagram, const Extents& extents) {
    Placement result{std::vector<int>(diagram.arrays.size(), -1), {}};
    std::vector<std::size_t> last_use(diagram.arrays.size(), 0);
    for (std::size_t i = 0; i < diagram.equations.size(); ++i) {
        for (const ArrayId id : read_arrays(diagram.equations[i].body)) last_use[at(id)] = i;
    }
    std::vector<int> free;
    for (std::size_t i = 0; i < diagram.equations.size(); ++i) {
        const ArrayId target = diagram.equations[i].target;
        const ArrayId over = overwritable(diagram, diagram.equations[i],
                                          [&](ArrayId id) { return result.slot[at(id)] >= 0 && last_use[at(id)] == i; });
        if (over >= 0 && diagram.array(target).role == ArrayRole::temporary) {
            result.slot[at(target)] = result.slot[at(over)];
        } else if (diagram.array(target).role == ArrayRole::temporary) {
            const std::int64_t size = count_values(diagram, target, extents);
            // The smallest free piece that is large enough, and not so large that a small array keeps a big one occupied.
            auto best = free.end();
            for (auto slot = free.begin(); slot != free.end(); ++slot) {
                const std::int64_t room = result.sizes[at(*slot)];
                if (room >= size && room <= 2 * size && (best == free.end() || room < result.sizes[at(*best)]))
                    best = slot;
            }
            int slot = static_cast<int>(result.sizes.size());
            if (best != free.end()) {
                slot = *best;
                free.erase(best);
            } else {
                result.sizes.push_back(size);
            }
            result.slot[at(target)] = slot;
        }
        for (const ArrayId id : read_arrays(diagram.equations[i].body)) {
            const auto a = static_cast<std::size_t>(id);
            if (result.slot[a] >= 0 && last_use[a] == i && result.slot[a] != result.slot[at(target)])
                free.push_back(result.slot[a]);
        }
    }
    return result;
}

bool needs_double(const Diagram& diagram) {
    return any_of(diagram.arrays, [](const Array& a) { return a.type == DType::f64; });
}

std::int64_t value_bytes(const Diagram& diagram) { return needs_double(diagram) ? 8 : 4; }

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

/// One equation, ready to run.
struct BaselineStep {
    const Equation* equation = nullptr;
    std::optional<Gemm> gemm;
    LoopFunction function = nullptr;
    LoopSpace space;
    std::int64_t points = 1;
    std::int64_t target_values = 1;
};

std::int64_t points_of(const Diagram& diagram, const Equation& equation, const Extents& extents) {
    std::int64_t points = count_values(diagram, equation.target, extents);
    for (const AxisId axis : equation.reduce_axes) points = saturating_mul(points, extents[axis]);
    return points;
}

}  // namespace

std::int64_t baseline_extra_bytes(const Diagram& diagram, const Extents& extents) {
    std::int64_t total = 0;
    for (const std::int64_t size : place(diagram, extents).sizes) total += size * value_bytes(diagram);
    return total;
}

struct Baseline::Impl {
    Diagram diagram;
    Extents extents;
    bool use_double = false;
    std::shared_ptr<const Blas> blas;
    std::string blas_name;
    std::shared_ptr<const JitModule> loops;
    std::vector<BaselineStep> steps;
    int multiplies = 0;
    Placement placement;
    std::vector<Memory> memory;
    std::int64_t extra_bytes = 0;
    std::unique_ptr<Workers> workers;

    void run_gemm(const Gemm& g, const std::vector<void*>& arrays);
    void run_loops(const BaselineStep& step, const std::vector<void*>& arrays);
};

Baseline::Baseline(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Baseline::Baseline(Baseline&&) noexcept = default;
Baseline& Baseline::operator=(Baseline&&) noexcept = default;
Baseline::~Baseline() = default;

bool Baseline::uses_double() const { return impl_->use_double; }
std::int64_t Baseline::extra_bytes() const { return impl_->extra_bytes; }
const std::string& Baseline::blas() const { return impl_->blas_name; }
int Baseline::multiplies() const { return impl_->multiplies; }

Result<Baseline> Baseline::build(const Diagram& diagram, const Extents& extents, const BaselineOptions& options) {
    auto impl = std::make_unique<Impl>();
    impl->diagram = diagram;
    impl->extents = extents;
    impl->use_double = needs_double(diagram);
    impl->placement = place(diagram, extents);
    impl->extra_bytes = baseline_extra_bytes(diagram, extents);
    if (const std::int64_t there = available_bytes(); impl->extra_bytes > there / 10 * 9)
        return no_memory_for(impl->extra_bytes, there);
    if (options.use_blas) impl->blas = load_blas();

    std::vector<std::size_t> as_loops;
    for (std::size_t i = 0; i < impl->diagram.equations.size(); ++i) {
        const Equation& equation = impl->diagram.equations[i];
        BaselineStep step;
        step.equation = &equation;
        auto gemm = as_gemm(impl->diagram, equation, extents);
        impl->multiplies += gemm ? 1 : 0;
        if (impl->blas) step.gemm = std::move(gemm);
        step.space = loop_space(impl->diagram, equation, extents);
        step.points = points_of(impl->diagram, equation, extents);
        step.target_values = count_values(impl->diagram, equation.target, extents);
        if (!step.gemm) as_loops.push_back(i);
        impl->steps.push_back(std::move(step));
    }
    if (!as_loops.empty()) {
        auto module = jit_compile(baseline_source(impl->diagram, extents, as_loops, impl->use_double));
        if (!module) return module.errors();
        impl->loops = *module;
        for (const std::size_t i : as_loops) {
            impl->steps[i].function = reinterpret_cast<LoopFunction>(impl->loops->symbol(fmt::format("equation_{}", i)));
        }
    }
    for (const std::int64_t size : impl->placement.sizes) {
        impl->memory.push_back(allocate(size * value_bytes(impl->diagram)));
        if (!impl->memory.back()) throw std::bad_alloc();
    }
    if (impl->blas) impl->blas_name = impl->blas->name();
    const int threads = options.threads > 0 ? options.threads
                                            : static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
    impl->workers = std::make_unique<Workers>(threads);
    return Baseline(std::move(impl));
}

void Baseline::run(const std::vector<const void*>& inputs, const std::vector<void*>& outputs) {
    const Diagram& diagram = impl_->diagram;
    std::vector<void*> arrays(diagram.arrays.size(), nullptr);
    for (std::size_t i = 0; i < inputs.size(); ++i) arrays[at(diagram.inputs[i])] = const_cast<void*>(inputs[i]);
    for (std::size_t i = 0; i < outputs.size(); ++i) arrays[at(diagram.outputs[i])] = outputs[i];
    for (std::size_t id = 0; id < arrays.size(); ++id) {
        if (const int slot = impl_->placement.slot[id]; slot >= 0) arrays[id] = impl_->memory[at(slot)].get();
    }
    for (const BaselineStep& step : impl_->steps) {
        if (step.gemm) {
            impl_->run_gemm(*step.gemm, arrays);
        } else {
            impl_->run_loops(step, arrays);
        }
    }
}

// The library multiplies on one thread at a time and ours share out the multiplies: its own threads would go on spinning beside
// the loops that follow. A single multiply is cut along its rows or columns.
void Baseline::Impl::run_gemm(const Gemm& g, const std::vector<void*>& arrays) {
    std::int64_t batch = 1;
    for (const GemmLoop& loop : g.batch) batch *= loop.size;
    std::int64_t accumulate = 1;
    for (const GemmLoop& loop : g.accumulate) accumulate *= loop.size;

    // Panels of at least 64 rows or columns, so that all threads have as much to do.
    const std::int64_t threads = workers->threads();
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
            const auto call = [&]<class T>(T) {
                blas->gemm(g.transpose_a, g.transpose_b, cut_rows ? end - begin : g.m, cut_rows ? g.n : end - begin,
                           g.k, static_cast<T>(g.alpha), static_cast<const T*>(arrays[at(g.a)]) + a_step, g.lda,
                           static_cast<const T*>(arrays[at(g.b)]) + b_step, g.ldb, static_cast<T>(step == 0 ? 0 : 1),
                           static_cast<T*>(arrays[at(g.c)]) + c, g.ldc);
            };
            use_double ? call(double()) : call(float());
        }
    };
    const auto all = [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t item = begin; item < end; ++item) multiply(item);
    };
    small ? all(0, batch) : workers->split(batch * panels, all);
}

void Baseline::Impl::run_loops(const BaselineStep& step, const std::vector<void*>& arrays) {
    const auto id = static_cast<std::size_t>(step.equation->target);
    const void* const* in = arrays.data();
    const std::int64_t threads = workers->threads();
    if (step.points < small_work_points || threads == 1) {
        step.function(in, arrays[id], 0, step.space.items, 0, step.space.reduce_items);
    } else if (step.space.items >= threads || step.space.reduce_items < threads) {
        workers->split(step.space.items, [&](std::int64_t begin, std::int64_t end) {
            step.function(in, arrays[id], begin, end, 0, step.space.reduce_items);
        });
    } else {
        // Few results of much each: every thread reduces a part, and the parts are combined.
        std::vector<double> partial(static_cast<std::size_t>(threads * step.target_values));
        workers->run([&](int worker) {
            step.function(in, partial.data() + worker * step.target_values, 0, step.space.items,
                          step.space.reduce_items * worker / threads, step.space.reduce_items * (worker + 1) / threads);
        });
        const auto combine = [&]<class T>(T) {
            T* target = static_cast<T*>(arrays[id]);
            for (std::int64_t i = 0; i < step.target_values; ++i) {
                double value = identity(*step.equation->reduce);
                for (std::int64_t worker = 0; worker < threads; ++worker) {
                    value = apply(
                        *step.equation->reduce, value,
                        static_cast<double>(reinterpret_cast<const T*>(partial.data() + worker * step.target_values)[i]));
                }
                target[i] = static_cast<T>(value);
            }
        };
        use_double ? combine(double()) : combine(float());
    }
}

}  // namespace napkin
