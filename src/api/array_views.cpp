#include "api/array_views.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>

#include "diagram/array_sizes.hpp"
#include "support/ranges.hpp"

namespace napkin {
namespace {

// DLDeviceType of DLPack 1.1.
enum DeviceType : std::int32_t { on_cpu = 1, on_cuda = 2, on_cuda_host = 3, on_cuda_managed = 13 };

std::span<const std::int64_t> shape_of(const napkin_array& array) {
    return {array.shape, array.ndim > 0 ? static_cast<std::size_t>(array.ndim) : 0};
}

bool is_same(napkin_type a, napkin_type b) { return a.code == b.code && a.bits == b.bits && a.lanes == b.lanes; }

const char* text_of(Location place) {
    return place.kind == MachineKind::gpu ? "the GPU at hand" : "this computer's processor";
}

/// An array without values needs no memory. Pre: it has a shape where it has axes.
bool is_empty(const napkin_array& array) { return contains(shape_of(array), 0); }

/// Whether the place of the first element is an address.
bool offset_fits(const napkin_array& array) {
    return array.byte_offset <= std::numeric_limits<std::uintptr_t>::max() - reinterpret_cast<std::uintptr_t>(array.data);
}

bool is_taken(const napkin_array* array, const TakenArray& taken, Location place) {
    return array != nullptr && place_of(*array) == place && offset_fits(*array) && is_same(array->dtype, taken.dlpack) &&
           array->ndim == static_cast<std::int32_t>(taken.sizes.size()) && (array->ndim == 0 || array->shape != nullptr) &&
           std::ranges::equal(shape_of(*array), taken.sizes) && (array->data != nullptr || is_empty(*array));
}

}  // namespace

std::optional<DType> known_type(napkin_type type) {
    for (const DType known : all_dtypes)
        if (is_same(type, dlpack_type(known))) return known;
    return std::nullopt;
}

std::string type_text(napkin_type type) {
    const auto known = known_type(type);
    if (known) return std::string(name(*known));
    return fmt::format("type {} of {} bits and {} lanes in DLPack's numbers", type.code, type.bits, type.lanes);
}

napkin_type dlpack_type(DType type) { return {facts(type).dlpack_code, static_cast<std::uint8_t>(8 * bytes(type)), 1}; }

std::vector<TakenArray> taken_arrays(const Diagram& diagram, const Extents& extents) {
    std::vector<TakenArray> out;
    for (const auto* list : {&diagram.inputs, &diagram.outputs})
        for (const ArrayId id : *list) {
            const Array& array = diagram.array(id);
            TakenArray& taken = out.emplace_back(TakenArray{array.name, array.type, dlpack_type(array.type), {}, {}});
            for (const AxisId axis : array.axes) taken.axes.push_back(diagram.axis(axis).name);
            if (!extents.empty()) taken.sizes = array_sizes(diagram, id, extents);
        }
    return out;
}

std::optional<Location> place_of(const napkin_array& array) {
    switch (array.device.device_type) {
        case on_cpu:
        case on_cuda_host: return Location{};
        case on_cuda:
        case on_cuda_managed: return Location{MachineKind::gpu, array.device.device_id};
        default: return std::nullopt;
    }
}

bool are_taken(Arrays arrays, const std::vector<TakenArray>& taken, Location place) {
    if (arrays.size() != taken.size()) return false;
    for (std::size_t i = 0; i < taken.size(); ++i)
        if (!is_taken(arrays[i], taken[i], place)) return false;
    return true;
}

std::vector<Diagnostic> faults_of(Arrays arrays, const std::vector<TakenArray>& taken, Location place) {
    std::vector<Diagnostic> out;
    const auto fault = [&](const char* code, std::string message, std::string expected) {
        out.push_back({.code = code, .message = std::move(message), .expected = std::move(expected)});
    };
    if (arrays.size() != taken.size()) {
        std::string names;
        for (const TakenArray& one : taken) names += (names.empty() ? "" : ", ") + one.name;
        fault("view-count", fmt::format("{} array{} given", arrays.size(), arrays.size() == 1 ? " is" : "s are"),
              fmt::format("{}: {}", taken.size(), names));
        return out;
    }
    for (std::size_t i = 0; i < taken.size(); ++i) {
        const TakenArray& wanted = taken[i];
        if (arrays[i] == nullptr) {
            fault("view-null", fmt::format("{} is not given: its view is NULL", wanted.name), "a pointer to its view");
            continue;
        }
        const napkin_array& array = *arrays[i];
        const bool has_shape = array.ndim <= 0 || array.shape != nullptr;
        if (array.data == nullptr && !(has_shape && is_empty(array))) {
            fault("view-null", fmt::format("{} points nowhere", wanted.name), "a pointer to its numbers");
            continue;
        }
        if (!offset_fits(array))
            fault("view-offset", fmt::format("{} begins {} bytes behind its pointer", wanted.name, array.byte_offset),
                  "a byte_offset that leads to an address");
        if (place_of(array) != place)
            fault("view-device",
                  fmt::format("{} lies on device {} of type {} in DLPack's numbers", wanted.name,
                              array.device.device_id, array.device.device_type),
                  fmt::format("memory of {}, device {} of type {}", text_of(place), place.device,
                              static_cast<int>(place.kind == MachineKind::gpu ? on_cuda : on_cpu)));
        if (!is_same(array.dtype, wanted.dlpack))
            fault("view-type", fmt::format("{} holds {}", wanted.name, type_text(array.dtype)),
                  std::string(name(wanted.type)));
        if (array.ndim != static_cast<std::int32_t>(wanted.axes.size()) || !has_shape) {
            fault("view-sizes",
                  has_shape ? fmt::format("{} has {} axes", wanted.name, array.ndim)
                            : fmt::format("{} has no shape: it is NULL", wanted.name),
                  fmt::format("{}, as in {}[{}]", wanted.axes.size(), wanted.name, fmt::join(wanted.axes, ", ")));
            continue;
        }
        if (!wanted.sizes.empty() && !std::ranges::equal(shape_of(array), wanted.sizes))
            fault("view-sizes", fmt::format("{} is {}", wanted.name, fmt::join(shape_of(array), "×")),
                  fmt::format("{}", fmt::join(wanted.sizes, "×")));
    }
    return out;
}

KernelInput input_view(const napkin_array& array, const TakenArray& taken) {
    const auto shape = shape_of(array);
    KernelInput out{begin_of(array), taken.type, {shape.begin(), shape.end()}, {}};
    if (array.strides != nullptr) out.strides.assign(array.strides, array.strides + array.ndim);
    return out;
}

KernelOutput output_view(const napkin_array& array, const TakenArray& taken) {
    const KernelInput view = input_view(array, taken);
    return {begin_of(array), view.type, view.sizes, view.strides};
}

}  // namespace napkin
