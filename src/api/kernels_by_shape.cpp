#include "api/kernels_by_shape.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <map>
#include <string>
#include <tuple>
#include <utility>

#include "diagram/array_sizes.hpp"
#include "diagram/solve_sizes.hpp"
#include "plan/other_sizes.hpp"
#include "run/gpu/driver.hpp"
#include "support/ids.hpp"
#include "support/ranges.hpp"
#include "support/stack.hpp"

namespace napkin {
namespace {

/// One step of FNV-1a over whole numbers, with its offset and prime of 64 bits.
constexpr std::uint64_t hash_offset = 0xcbf29ce484222325, hash_prime = 0x100000001b3;
std::uint64_t mixed(std::uint64_t hash, std::int64_t value) {
    hash = (hash ^ static_cast<std::uint64_t>(value)) * hash_prime;
    return hash ^ (hash >> 32);
}

/// The sizes that the shapes say, by axis, and those that they determine; without those that the text computes from
/// others. The arrays are the inputs, or all. `own` are sizes of axes that no shape says. Errors: view-sizes, where two
/// shapes disagree; those of with_solved_sizes.
Result<std::map<std::string, std::int64_t>> sizes_of_shapes(const Diagram& diagram, Arrays arrays,
                                                            const std::map<std::string, std::int64_t>& own) {
    std::map<std::string, std::int64_t> sizes;
    std::map<std::string, std::string> said_by;
    std::vector<Diagnostic> errors;
    std::size_t i = 0;
    for (const auto* list : {&diagram.inputs, &diagram.outputs})
        for (const ArrayId id : *list) {
            if (i == arrays.size()) break;
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
    sizes.insert(own.begin(), own.end());
    auto all = with_solved_sizes(diagram, sizes);
    if (!all) return all;
    for (const Axis& axis : diagram.axes)
        if (axis.size && !axis.size->as_constant()) all->erase(axis.name);
    return all;
}

/// Sizes between two powers of two take one plan. Sizes 0 and 1 have a class of their own.
std::map<std::string, int> powers_of(const std::map<std::string, std::int64_t>& sizes) {
    std::map<std::string, int> out;
    for (const auto& [axis, size] : sizes)
        out[axis] = static_cast<int>(std::bit_width(static_cast<std::uint64_t>(size)));
    return out;
}

/// A size that stands for others. No tile divides it, so that what is planned there has one text for all lengths.
std::int64_t general_size(std::int64_t size) {
    constexpr std::uint64_t shortest = 64;  // K blocks, and the rows of a warpgroup
    return static_cast<std::int64_t>(std::max(shortest, std::bit_ceil(static_cast<std::uint64_t>(size) + 1))) - 1;
}

}  // namespace

/// Calls f for every number of the key, as long as it returns true.
template <class F>
bool KernelsByShape::each_of(const Shapes& shapes, const F& f) {
    if (!f(static_cast<std::int64_t>(shapes.place.kind)) || !f(shapes.place.device)) return false;
    for (const napkin_array* array : shapes.arrays)
        for (std::int32_t d = 0; d < array->ndim; ++d)
            if (!f(array->shape[d])) return false;
    return true;
}

std::size_t KernelsByShape::list_of(const Shapes& shapes) {
    std::uint64_t hash = hash_offset;
    each_of(shapes, [&](std::int64_t value) { return hash = mixed(hash, value), true; });
    return hash % std::tuple_size_v<decltype(lists_)>;
}

KernelsByShape::KernelsByShape(std::shared_ptr<const Source> source, Diagram diagram, const PipelineOptions& own)
    : source_(std::move(source)), diagram_(std::move(diagram)), own_(own), taken_(taken_arrays(diagram_)) {}

PipelineOptions KernelsByShape::options_for(std::map<std::string, std::int64_t> sizes, Pass until) const {
    return {.diagram = diagram_.name,
            .sizes = std::move(sizes),
            .schedule_file = own_.schedule_file,
            .any_sizes = true,
            .batch_invariant = own_.batch_invariant,
            .until = until,
            .keep_plan = true};
}

bool KernelsByShape::have_shapes(Arrays arrays) const {
    if (arrays.size() > taken_.size()) return false;
    for (std::size_t i = 0; i < arrays.size(); ++i)
        if (arrays[i] == nullptr || arrays[i]->ndim != static_cast<std::int32_t>(taken_[i].axes.size()) ||
            (arrays[i]->ndim > 0 && arrays[i]->shape == nullptr))
            return false;
    return true;
}

const LoadedKernel* KernelsByShape::find(const Shapes& shapes) const {
    for (const Node* node = lists_[list_of(shapes)].load(std::memory_order_acquire); node != nullptr; node = node->next) {
        std::size_t i = 0;
        // The number of sizes is the program's.
        if (each_of(shapes, [&](std::int64_t value) { return node->key[i++] == value; })) return node->kernel.get();
    }
    return nullptr;
}

std::size_t KernelsByShape::num_copies() const {
    std::size_t sum = 0;
    for (const auto& list : lists_)
        for (const Node* node = list.load(std::memory_order_acquire); node != nullptr; node = node->next)
            sum += node->kernel->num_copies();
    return sum;
}

std::optional<KernelsByShape::Served> KernelsByShape::served(Location place, const PipelineOptions& options,
                                                             std::optional<std::size_t> alone, bool by_code) const {
    std::optional<Served> least;
    for (std::size_t k = 0; k < plans_.size(); ++k) {
        if (locations_[k] != place || alone.value_or(k) != k) continue;
        auto found = at_other_sizes(plans_[k], options);
        if (!found || (least && least->at.plan.seconds() <= found->plan.seconds())) continue;
        const std::string text = complete(found->code);
        const bool has_code = any_of(codes_, [&](const auto& code) { return code->is_of(text, place); });
        if (by_code ? has_code : takes_any(plans_[k].plan, varied_)) least = {k, std::move(*found)};
    }
    return least;
}

Result<Compilation> KernelsByShape::take_new(Location place, Compilation made, const PipelineOptions& options) {
    // What leaves sizes whole that vary is for these sizes alone.
    if (!takes_any(made.plan, varied_)) {
        PipelineOptions general = options;
        for (const std::string& axis : varied_) general.sizes[axis] = general_size(options.sizes.at(axis));
        if (auto others = run_pipeline(source_, general); others && takes_any(others->plan, varied_))
            if (auto found = at_other_sizes(*others, options)) {
                plans_.push_back(std::move(*others)), locations_.push_back(place);
                return std::move(*found);
            }
    }
    plans_.push_back(made), locations_.push_back(place);
    return made;
}

Result<Compilation> KernelsByShape::planned(Location place, const PipelineOptions& options) {
    for (const auto& [axis, size] : options.sizes)
        if (first_sizes_.emplace(axis, size).first->second != size) varied_.insert(axis);
    std::optional<std::size_t> known;
    const auto key = std::pair(place, powers_of(options.sizes));
    if (const auto taken = taken_over_.find(key); taken != taken_over_.end()) known = taken->second;
    const auto take = [&](Served& one) {
        taken_over_[key] = one.plan;
        return std::move(one.at);
    };
    auto by_code = served(place, options, known, true);
    if (by_code && (known || codes_.size() >= most_kernels_of_classes)) return take(*by_code);
    auto by_plan = served(place, options, known, false);
    if (by_plan && known) return take(*by_plan);

    PipelineOptions anew = options;
    anew.is_wanted = [&](const Plan& plan) {
        return !by_code || !is_worth_no_code(by_code->at.plan.seconds(), plan.seconds(), longest_of_any(plan), place.kind);
    };
    auto own = run_pipeline(source_, anew);
    if (!own && !by_code && !by_plan) return own;
    if (by_code && (!own || !anew.is_wanted(own->plan))) return take(*by_code);
    if (by_plan && (!own || is_near_enough(by_plan->at.plan.seconds(), own->plan.seconds(), longest_of_any(own->plan))))
        return take(*by_plan);
    taken_over_[key] = plans_.size();
    return take_new(place, std::move(*own), options);
}

Result<std::shared_ptr<const LoadedKernel>> KernelsByShape::make(const Shapes& shapes) {
    if (auto faults = faults_of(shapes.arrays, taken_, shapes.place); !faults.empty()) return faults;
    auto sizes = sizes_of_shapes(diagram_, shapes.arrays, own_.sizes);
    if (!sizes) return sizes.errors();
    PipelineOptions options = options_for(std::move(*sizes), Pass::emit);
    options.machine = shapes.place.kind == MachineKind::cpu ? "host" : fmt::format("gpu:{}", shapes.place.device);
    const std::size_t plans = plans_.size();
    const auto made = planned(shapes.place, options);
    if (!made) return made.errors();
    const std::vector<TakenArray> taken = taken_arrays(made->diagram, made->extents);
    if (auto faults = faults_of(shapes.arrays, taken, shapes.place); !faults.empty()) return faults;
    const unsigned flags = plans_.size() > plans ? 0 : NAPKIN_NOT_VALIDATED;
    auto loaded = LoadedKernel::load(*made, flags, shapes.place.device, codes_);
    if (!loaded) return loaded;
    if (!(*loaded)->shares_code()) codes_.push_back(*loaded), ++num_codes_;
    return loaded;
}

Result<std::vector<std::vector<std::int64_t>>> KernelsByShape::output_sizes(Arrays inputs) const {
    if (inputs.size() != diagram_.inputs.size() || !have_shapes(inputs)) {
        const std::vector<TakenArray> wanted(taken_.begin(), taken_.begin() + std::ssize(diagram_.inputs));
        auto faults = faults_of(inputs, wanted, Location{});
        std::erase_if(faults,
                      [](const Diagnostic& fault) { return fault.code != "view-count" && fault.code != "view-sizes"; });
        internal_check(!faults.empty(), "api: inputs are refused, and nothing is wrong with them");
        return faults;
    }
    auto sizes = sizes_of_shapes(diagram_, inputs, own_.sizes);
    if (!sizes) return sizes.errors();
    const auto sized = run_pipeline(source_, options_for(std::move(*sizes), Pass::parse));
    if (!sized) return sized.errors();
    const auto extents = bind_sizes(sized->diagram);
    if (!extents) return extents.errors();
    return mapped<std::vector<std::int64_t>>(sized->diagram.outputs,
                                             [&](ArrayId id) { return array_sizes(sized->diagram, id, *extents); });
}

Result<const LoadedKernel*> KernelsByShape::of(Arrays arrays) {
    // Without arrays, nothing says where a program is to run.
    const auto place = arrays.empty() || arrays[0] == nullptr ? std::nullopt : place_of(*arrays[0]);
    if (!place || arrays.size() != taken_.size() || !have_shapes(arrays)) {
        auto faults = faults_of(arrays, taken_, place.value_or(Location{}));
        internal_check(!faults.empty(), "api: arrays are refused, and nothing is wrong with them");
        return faults;
    }
    const Shapes shapes{*place, arrays};
    if (const LoadedKernel* found = find(shapes)) return found;
    const std::lock_guard one_at_a_time(making_);
    if (const LoadedKernel* found = find(shapes)) return found;
    std::optional<gpu::KeepsContext> callers;
    if (place->kind == MachineKind::gpu) callers.emplace();
    auto made = on_enough_stack([&] { return make(shapes); });
    if (!made) return made.errors();
    std::atomic<const Node*>& list = lists_[list_of(shapes)];
    auto node = std::make_unique<Node>(Node{{}, std::move(*made), list.load()});
    each_of(shapes, [&](std::int64_t value) { return node->key.push_back(value), true; });
    list.store(node.get(), std::memory_order_release);
    nodes_.push_back(std::move(node));
    ++count_;
    return nodes_.back()->kernel.get();
}

}  // namespace napkin
