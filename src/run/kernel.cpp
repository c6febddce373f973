#include "run/kernel.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <optional>

#include "diagram/array_sizes.hpp"
#include "diagram/check_indices.hpp"
#include "run/index_inputs.hpp"
#include "run/memory.hpp"
#include "run/overlap.hpp"
#include "run/strides.hpp"
#include "support/ranges.hpp"
#include "tile/placement.hpp"

namespace napkin {
namespace {
using Entry = void (*)(const void* const*, void* const*, const std::int64_t*, std::int64_t, std::int64_t, void*);

Diagnostic no_memory_for(std::int64_t bytes, const std::string& what) {
    return too_little_memory(fmt::format("there is no memory for {}: {} bytes", what, bytes),
                             "smaller group and stream sizes need less");
}

enum class Direction : std::uint8_t { pack, spread };
/// Copies a strided array to row-major order, or back, an axis at a time.
void copy_strided(Direction direction, char* dense, char* strided, const std::vector<std::int64_t>& sizes,
                  const std::vector<std::int64_t>& strides, std::size_t d, std::int64_t width) {
    const auto copy = [&](std::int64_t bytes) {
        const bool packs = direction == Direction::pack;
        std::memcpy(packs ? dense : strided, packs ? strided : dense, static_cast<std::size_t>(bytes));
    };
    if (d == sizes.size()) return copy(width);
    if (d + 1 == sizes.size() && strides[d] == 1) return copy(width * sizes[d]);
    std::int64_t below = width;
    for (std::size_t k = d + 1; k < sizes.size(); ++k) below *= sizes[k];
    for (std::int64_t i = 0; i < sizes[d]; ++i)
        copy_strided(direction, dense + i * below, strided + i * strides[d] * width, sizes, strides, d + 1, width);
}

/// An array that kernels read or write, during one run.
struct Location {
    void* data = nullptr;
    std::vector<std::int64_t> strides;
};

/// A kernel, or other work.
struct Work {
    ArrayUse use;
    std::size_t entry = 0;
    decltype(OtherWork::run) other = {};  ///< none: the kernel of that entry
};

}  // namespace

struct CpuKernel::Impl {
    SizedProgram program;
    ByArray<std::vector<AxisId>> callers_axes;  ///< of the inputs and outputs
    int threads = 1;
    cpu::CpuSource source;
    std::string text;
    std::shared_ptr<const JitModule> module;
    std::vector<Entry> entries;
    std::vector<Work> works;
    Placement placement;
    std::vector<ArrayId> deciding;  ///< arrays_in_indices of the program's diagram

    // Kept from one run to the next.
    std::mutex mutex;
    std::unique_ptr<Workers> workers;
    std::vector<Memory> arenas;
    std::vector<Memory> between;  ///< by slot of the placement

    [[nodiscard]] std::vector<std::int64_t> sizes(ArrayId a) const {
        return array_sizes(program.diagram, a, program.extents);
    }
    /// As the caller has it.
    [[nodiscard]] std::vector<std::int64_t> callers_sizes(ArrayId a) const {
        return mapped<std::int64_t>(callers_axes[a], [&](AxisId axis) { return program.extents[axis]; });
    }
    [[nodiscard]] std::int64_t bytes_of(ArrayId a) const { return array_bytes(program.diagram, a, program.extents); }
    [[nodiscard]] std::int64_t arena_bytes() const {
        std::int64_t most = 0;
        for (const cpu::KernelEntry& e : source.entries) most = std::max(most, e.arena_bytes);
        return most;
    }

    /// The view's memory; strides where it has none are row-major ones.
    template <class View>
    [[nodiscard]] StridedArray memory_of(const View& view) const {
        return {reinterpret_cast<std::uintptr_t>(view.data), bytes(view.type), view.sizes,
                view.strides.empty() ? row_major_strides(view.sizes) : view.strides};
    }

    /// What is written shares no memory with anything else.
    void check_overlaps(const std::vector<KernelInput>& inputs, const std::vector<KernelOutput>& outputs,
                        std::vector<Diagnostic>& errors) const {
        const Diagram& diagram = program.diagram;
        const auto error = [&](const std::string& message) {
            errors.push_back({.code = "view-overlap",
                              .message = message,
                              .expected = "memory of its own for every element of an output"});
        };
        for (std::size_t i = 0; i < outputs.size(); ++i) {
            const StridedArray output = memory_of(outputs[i]);
            const std::string& name = diagram.array(diagram.outputs[i]).name;
            if (overlaps_itself(output)) error(fmt::format("elements of the view of {} overlap each other", name));
            for (std::size_t j = 0; j < i; ++j)
                if (overlap(output, memory_of(outputs[j])))
                    error(fmt::format("the views of {} and {} overlap", diagram.array(diagram.outputs[j]).name, name));
            for (std::size_t j = 0; j < inputs.size(); ++j)
                if (overlap(output, memory_of(inputs[j])))
                    error(fmt::format("the views of {} and {} overlap", diagram.array(diagram.inputs[j]).name, name));
        }
    }

    template <class View>
    void check(const View& view, ArrayId array, std::vector<Diagnostic>& errors) const {
        const Array& a = program.diagram.array(array);
        const auto error = [&](const char* code, std::string message, std::string expected) {
            errors.push_back({.code = code, .message = std::move(message), .expected = std::move(expected)});
        };
        const auto wanted = callers_sizes(array);
        if (!view.data && !contains(wanted, 0))
            error("view-null", fmt::format("the view of {} points nowhere", a.name), "a pointer to its numbers");
        if (view.type != a.type)
            error("view-type", fmt::format("the view of {} holds {}", a.name, name(view.type)), std::string(name(a.type)));
        if (view.sizes != wanted)
            error("view-sizes", fmt::format("the view of {} is {}", a.name, fmt::join(view.sizes, "×")),
                  fmt::format("{}", fmt::join(wanted, "×")));
        if (!view.strides.empty() && view.strides.size() != wanted.size())
            error("view-strides", fmt::format("the view of {} has {} strides", a.name, view.strides.size()),
                  fmt::format("{}, one for each axis, or none", wanted.size()));
        else if (view.sizes == wanted && !is_addressable(memory_of(view)))
            error("view-strides", fmt::format("the strides of the view of {} lead out of memory", a.name),
                  "addresses that do not wrap around");
    }

    Status prepare(int wanted) {
        if (!workers || workers->threads() != wanted) workers = std::make_unique<Workers>(wanted);
        if (Status all = workers->all_started(); !all) return all;
        while (arenas.size() < static_cast<std::size_t>(wanted)) {
            Memory arena = allocate(arena_bytes());
            if (!arena) return no_memory_for(arena_bytes() * wanted, "the kernels' variables");
            arenas.push_back(std::move(arena));
        }
        while (between.size() < placement.bytes.size()) {
            Memory memory = allocate(placement.bytes[between.size()]);
            if (!memory) return no_memory_for(placement.total_bytes(), "the arrays between kernels");
            between.push_back(std::move(memory));
        }
        return Done{};
    }

    Status run_entry(std::size_t k, std::map<ArrayId, Location>& places, int wanted) {
        const cpu::KernelEntry& entry = source.entries[k];
        const auto copy = [&](Direction direction, const Memory& dense, ArrayId a) {
            const Location& place = places.at(a);
            copy_strided(direction, static_cast<char*>(dense.get()), static_cast<char*>(place.data), sizes(a),
                         place.strides, 0, bytes(program.diagram.array(a).type));
        };
        std::vector<std::int64_t> strides;
        // The array itself, or row-major memory in its place.
        const auto pass = [&](ArrayId a, bool row_major, std::map<ArrayId, Memory>& copies,
                              const char* what) -> Result<void*> {
            Location place = places.at(a);
            if (row_major && !is_row_major(sizes(a), place.strides)) {
                Memory memory = allocate(bytes_of(a));
                if (!memory)
                    return no_memory_for(bytes_of(a), fmt::format("a {} copy of {}", what, program.diagram.array(a).name));
                place = {memory.get(), row_major_strides(sizes(a))};
                copies[a] = std::move(memory);
            }
            append(strides, place.strides);
            return place.data;
        };
        std::map<ArrayId, Memory> packed, to_spread;
        std::vector<const void*> in;
        std::vector<void*> out;
        for (std::size_t i = 0; i < entry.inputs.size(); ++i) {
            const auto data = pass(entry.inputs[i], entry.packed[i], packed, "packed");
            if (!data) return data.errors();
            in.push_back(*data);
        }
        for (std::size_t i = 0; i < entry.outputs.size(); ++i) {
            const auto data = pass(entry.outputs[i], entry.dense[i], to_spread, "dense");
            if (!data) return data.errors();
            out.push_back(*data);
        }
        append(strides, entry.numbers);
        for (const auto& [a, memory] : packed) copy(Direction::pack, memory, a);
        workers->deal(entry.groups, wanted, [&](int worker, std::int64_t begin, std::int64_t end) {
            entries[k](in.data(), out.data(), strides.data(), begin, end, arenas[at(worker)].get());
        });
        for (const auto& [a, memory] : to_spread) copy(Direction::spread, memory, a);
        return Done{};
    }

    /// An array that was given or computed, as a view.
    [[nodiscard]] KernelInput view_of(ArrayId a, const Location& place) const {
        return {place.data, program.diagram.array(a).type, sizes(a), place.strides};
    }
};

CpuKernel::CpuKernel(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
CpuKernel::~CpuKernel() = default;

Result<std::shared_ptr<const CpuKernel>> CpuKernel::load(const Diagram& diagram, const SizedProgram& program,
                                                         const cpu::CpuSource& source, int threads,
                                                         const JitOptions& options) {
    if (source.entries.empty()) return bind(diagram, program, source, threads, std::make_shared<const JitModule>());
    auto module = jit_compile(cpu::complete(source), options);
    if (!module) return module.errors();
    return bind(diagram, program, source, threads, std::move(module).value());
}

std::shared_ptr<const CpuKernel> CpuKernel::bind(const Diagram& diagram, const SizedProgram& program,
                                                 const cpu::CpuSource& source, int threads,
                                                 std::shared_ptr<const JitModule> module, std::vector<OtherWork> others) {
    auto impl = std::make_unique<Impl>();
    impl->program = program;
    for (const Array& array : diagram.arrays) impl->callers_axes.push_back(array.axes);
    impl->source = source;
    impl->text = cpu::complete(source);
    impl->module = std::move(module);
    for (const cpu::KernelEntry& e : source.entries)
        impl->entries.push_back(reinterpret_cast<Entry>(impl->module->symbol(e.name)));
    impl->threads = threads;
    auto other = others.begin();
    for (std::size_t k = 0; k <= source.entries.size(); ++k) {
        for (; other != others.end() && other->before == k; ++other)
            impl->works.push_back({{other->reads, other->writes, {}}, k, std::move(other->run)});
        if (k == source.entries.size()) break;
        impl->works.push_back({use_of(program.kernels[k]), k});
    }
    impl->placement = placed(program.diagram, program.extents, mapped<ArrayUse>(impl->works, &Work::use));
    impl->deciding = arrays_in_indices(program.diagram);
    return std::make_shared<const CpuKernel>(std::move(impl));
}

Status CpuKernel::check(const std::vector<KernelInput>& inputs, const std::vector<KernelOutput>& outputs) const {
    const Impl& impl = *impl_;
    const Diagram& diagram = impl.program.diagram;
    std::vector<Diagnostic> errors;
    const auto check_all = [&](const auto& views, const std::vector<ArrayId>& arrays, const char* what) {
        if (views.size() == arrays.size()) {
            for (std::size_t i = 0; i < arrays.size(); ++i) impl.check(views[i], arrays[i], errors);
            return;
        }
        errors.push_back({.code = "view-count",
                          .message = fmt::format("{} {} given to {}", views.size(), what, diagram.name),
                          .expected = std::to_string(arrays.size())});
    };
    check_all(inputs, diagram.inputs, "inputs");
    check_all(outputs, diagram.outputs, "outputs");
    if (errors.empty()) impl.check_overlaps(inputs, outputs, errors);
    if (!errors.empty()) return errors;
    return Done{};
}

Status CpuKernel::run(const std::vector<KernelInput>& inputs, const std::vector<KernelOutput>& outputs, int threads) const {
    if (Status fits = check(inputs, outputs); !fits) return fits;
    Impl& impl = *impl_;
    const Diagram& diagram = impl.program.diagram;
    const std::lock_guard lock(impl.mutex);
    const int wanted = threads > 0 ? threads : impl.threads;
    if (Status ready = impl.prepare(wanted); !ready) return ready;
    std::map<ArrayId, Location> places;
    const auto strides_of = [&](const auto& view) {
        return view.strides.empty() ? row_major_strides(view.sizes) : view.strides;
    };
    std::vector<Memory> packed;
    for (std::size_t i = 0; i < inputs.size(); ++i) {
        const ArrayId a = diagram.inputs[i];
        Location place{const_cast<void*>(inputs[i].data), strides_of(inputs[i])};  // emitted code only reads inputs
        if (impl.callers_axes[a] != diagram.array(a).axes) {
            const std::vector<std::int64_t> sizes = impl.sizes(a);
            auto joined = joined_strides(inputs[i].sizes, place.strides, sizes);
            if (!joined) {
                Memory memory = allocate(impl.bytes_of(a));
                if (!memory)
                    return no_memory_for(impl.bytes_of(a), fmt::format("a packed copy of {}", diagram.array(a).name));
                copy_strided(Direction::pack, static_cast<char*>(memory.get()), static_cast<char*>(place.data),
                             inputs[i].sizes, place.strides, 0, bytes(inputs[i].type));
                place.data = memory.get(), joined = row_major_strides(sizes);
                packed.push_back(std::move(memory));
            }
            place.strides = std::move(*joined);
        }
        places[a] = std::move(place);
    }
    for (std::size_t i = 0; i < outputs.size(); ++i)
        places[diagram.outputs[i]] = {outputs[i].data, strides_of(outputs[i])};
    for (const Work& work : impl.works)
        for (const ArrayId a : work.use.writes)
            if (const int slot = impl.placement.slot[at(a)]; slot >= 0)
                places[a] = {impl.between[at(slot)].get(), row_major_strides(impl.sizes(a))};
    ComputedIndices indices(diagram, impl.program.extents, impl.deciding);
    for (const Work& work : impl.works) {
        if (work.other)
            work.other([&](ArrayId a) { return places.at(a).data; }, *impl.workers);
        else if (Status done = impl.run_entry(work.entry, places, wanted); !done)
            return done;
        if (Status inside = indices.after(
                work.use.writes, [&](ArrayId a) -> Result<KernelInput> { return impl.view_of(a, places.at(a)); });
            !inside)
            return inside;
    }
    return Done{};
}

Status CpuKernel::run(const std::vector<const void*>& inputs, const std::vector<void*>& outputs, int threads) const {
    const Diagram& diagram = impl_->program.diagram;
    std::vector<KernelInput> in;
    std::vector<KernelOutput> out;
    for (std::size_t i = 0; i < inputs.size(); ++i) {
        in.push_back({inputs[i], DType::f32, {}, {}});
        if (i < diagram.inputs.size())
            in.back().type = diagram.array(diagram.inputs[i]).type,
            in.back().sizes = impl_->callers_sizes(diagram.inputs[i]);
    }
    for (std::size_t i = 0; i < outputs.size(); ++i) {
        out.push_back({outputs[i], DType::f32, {}, {}});
        if (i < diagram.outputs.size())
            out.back().type = diagram.array(diagram.outputs[i]).type, out.back().sizes = impl_->sizes(diagram.outputs[i]);
    }
    return run(in, out, threads);
}

std::int64_t CpuKernel::extra_bytes(int threads) const {
    return impl_->arena_bytes() * (threads > 0 ? threads : impl_->threads) + impl_->placement.total_bytes();
}
std::shared_ptr<const JitModule> CpuKernel::module() const { return impl_->module; }
int CpuKernel::threads() const { return impl_->threads; }
const std::string& CpuKernel::source() const { return impl_->text; }
double CpuKernel::compile_seconds() const { return impl_->module->compile_seconds; }
bool CpuKernel::from_cache() const { return impl_->module->from_cache; }
const std::vector<std::string>& CpuKernel::warnings() const { return impl_->module->warnings; }

}  // namespace napkin
