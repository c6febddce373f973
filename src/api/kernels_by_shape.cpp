#include "api/kernels_by_shape.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <string>
#include <utility>

#include "diagram/solve_sizes.hpp"
#include "support/ids.hpp"
#include "support/ranges.hpp"
#include "support/stack.hpp"

namespace napkin {
namespace {

/// A plan is taken over for sizes that differ by so many powers of two at most.
constexpr double most_octaves_apart = 1;

/// One step of FNV-1a over whole numbers, with its offset and prime of 64 bits.
constexpr std::uint64_t hash_offset = 0xcbf29ce484222325, hash_prime = 0x100000001b3;
std::uint64_t mixed(std::uint64_t hash, std::int64_t value) {
    hash = (hash ^ static_cast<std::uint64_t>(value)) * hash_prime;
    return hash ^ (hash >> 32);
}

/// The sizes that the shapes say, by axis, and those that they determine; without those that the text computes from
/// others. Errors: view-sizes, where two shapes disagree; those of with_solved_sizes.
Result<std::map<std::string, std::int64_t>> sizes_of_shapes(const Diagram& diagram, Arrays arrays) {
    std::map<std::string, std::int64_t> sizes;
    std::map<std::string, std::string> said_by;
    std::vector<Diagnostic> errors;
    std::size_t i = 0;
    for (const auto* list : {&diagram.inputs, &diagram.outputs})
        for (const ArrayId id : *list) {
            const napkin_array& array = *arrays[i++];
            for (std::size_t d = 0; d < diagram.array(id).axes.size(); ++d) {
                const Axis& axis = diagram.axis(diagram.array(id).axes[d]);
                const auto [known, added] = sizes.emplace(axis.name, array.shape[d]);
                if (added) {
                    said_by[axis.name] = diagram.array(id).name;
                } else if (known->second != array.shape[d]) {
                    errors.push_back({.code = "view-sizes",
                                      .message = fmt::format("axis {} is {} in {} but {} in {}", axis.name, array.shape[d],
                                                             diagram.array(id).name, known->second, said_by[axis.name]),
                                      .expected = fmt::format("one size for {}", axis.name)});
                }
            }
        }
    if (!errors.empty()) return errors;
    auto all = with_solved_sizes(diagram, sizes);
    if (!all) return all;
    for (const Axis& axis : diagram.axes)
        if (axis.size && !axis.size->as_constant()) all->erase(axis.name);
    return all;
}

/// How far the sizes are from those of a plan: the most powers of two by which one of them differs. A size of 1 is near
/// to no other, as plans for a single row or key have a form of their own.
double octaves_apart(const Compilation& planned, const std::map<std::string, std::int64_t>& sizes) {
    double most = 0;
    for (const AxisId axis : planned.extents.ids()) {
        const auto size = at(axis) < planned.diagram.axes.size() ? sizes.find(planned.diagram.axis(axis).name)
                                                                 : sizes.end();
        if (size == sizes.end()) continue;
        const std::int64_t was = planned.extents[axis], is = size->second;
        if (was == is) continue;
        if (was <= 1 || is <= 1) return std::numeric_limits<double>::infinity();
        most = std::max(most, std::abs(std::log2(static_cast<double>(is) / static_cast<double>(was))));
    }
    return most;
}

}  // namespace

template <class F>
void KernelsByShape::each_of(const Shapes& shapes, const F& f) {
    f(static_cast<std::int64_t>(shapes.place));
    for (const napkin_array* array : shapes.arrays)
        for (std::int32_t d = 0; d < array->ndim; ++d) f(array->shape[d]);
}

std::size_t KernelsByShape::Hash::operator()(const Key& key) const {
    std::uint64_t hash = hash_offset;
    for (const std::int64_t value : key) hash = mixed(hash, value);
    return hash;
}
std::size_t KernelsByShape::Hash::operator()(const Shapes& shapes) const {
    std::uint64_t hash = hash_offset;
    each_of(shapes, [&](std::int64_t value) { hash = mixed(hash, value); });
    return hash;
}
bool KernelsByShape::Same::operator()(const Shapes& a, const Key& b) const {
    std::size_t i = 0;
    bool same = true;
    each_of(a, [&](std::int64_t value) { same = same && i < b.size() && b[i] == value, ++i; });
    return same && i == b.size();
}

KernelsByShape::KernelsByShape(std::shared_ptr<const Source> source, Diagram diagram)
    : source_(std::move(source)), diagram_(std::move(diagram)), taken_(taken_arrays(diagram_)) {}

std::size_t KernelsByShape::count() const {
    const std::lock_guard lock(looking_);
    return kernels_.size();
}

std::size_t KernelsByShape::num_codes() const {
    const std::lock_guard lock(looking_);
    return static_cast<std::size_t>(
        std::count_if(kernels_.begin(), kernels_.end(), [](const auto& made) { return !made.second->shares_code(); }));
}

bool KernelsByShape::have_shapes(Arrays arrays) const {
    if (arrays.size() != taken_.size()) return false;
    for (std::size_t i = 0; i < arrays.size(); ++i)
        if (arrays[i] == nullptr || arrays[i]->ndim != static_cast<std::int32_t>(taken_[i].axes.size()) ||
            (arrays[i]->ndim > 0 && arrays[i]->shape == nullptr))
            return false;
    return true;
}

std::shared_ptr<const LoadedKernel> KernelsByShape::find(const Shapes& shapes) const {
    const std::lock_guard lock(looking_);
    const auto found = kernels_.find(shapes);
    return found == kernels_.end() ? nullptr : found->second;
}

std::optional<Compilation> KernelsByShape::by_known_plan(MachineKind place, const PipelineOptions& options) const {
    std::vector<std::pair<double, const Compilation*>> near;
    for (const Compilation& c : planned_)
        if (const auto apart = octaves_apart(c, options.sizes); c.machine.kind == place && apart <= most_octaves_apart)
            near.emplace_back(apart, &c);
    stable_sort(near, [](const auto& a, const auto& b) { return a.first < b.first; });
    for (const auto& [apart, planned] : near)
        if (auto found = at_other_sizes(*planned, options)) return found;
    return std::nullopt;
}

Result<std::shared_ptr<const LoadedKernel>> KernelsByShape::make(const Shapes& shapes) {
    if (auto faults = faults_of(shapes.arrays, taken_, shapes.place); !faults.empty()) return faults;
    auto sizes = sizes_of_shapes(diagram_, shapes.arrays);
    if (!sizes) return sizes.errors();
    const PipelineOptions options{.diagram = diagram_.name,
                                  .sizes = std::move(*sizes),
                                  .any_sizes = true,
                                  .machine = shapes.place == MachineKind::gpu ? "gpu" : "host",
                                  .until = Pass::emit,
                                  .keep_plan = true};
    auto made = by_known_plan(shapes.place, options);
    const bool is_new = !made;
    if (is_new) {
        auto planned = run_pipeline(source_, options);
        if (!planned) return planned.errors();
        made = std::move(*planned);
    }
    const std::vector<TakenArray> taken = taken_arrays(made->diagram, made->extents);
    if (auto faults = faults_of(shapes.arrays, taken, shapes.place); !faults.empty()) return faults;
    auto loaded = LoadedKernel::load(*made, is_new ? 0 : NAPKIN_NOT_VALIDATED, codes_);
    if (!loaded) return loaded;
    if (!(*loaded)->shares_code()) codes_.push_back(*loaded);
    if (is_new) planned_.push_back(std::move(*made));
    return loaded;
}

Result<std::shared_ptr<const LoadedKernel>> KernelsByShape::of(Arrays arrays) {
    // Without arrays, nothing says where a program is to run.
    const auto place = arrays.empty() || arrays[0] == nullptr ? std::nullopt : place_of(*arrays[0]);
    if (!place || !have_shapes(arrays)) {
        auto faults = faults_of(arrays, taken_, place.value_or(MachineKind::cpu));
        internal_check(!faults.empty(), "api: arrays are refused, and nothing is wrong with them");
        return faults;
    }
    const Shapes shapes{*place, arrays};
    if (auto found = find(shapes)) return found;
    const std::lock_guard one_at_a_time(making_);
    if (auto found = find(shapes)) return found;
    auto made = on_enough_stack([&] { return make(shapes); });
    if (!made) return made;
    Key key;
    each_of(shapes, [&](std::int64_t value) { key.push_back(value); });
    const std::lock_guard lock(looking_);
    kernels_.emplace(std::move(key), *made);
    return made;
}

}  // namespace napkin
