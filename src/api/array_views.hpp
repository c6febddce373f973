#pragma once
// Arrays as callers from C describe them, in DLPack's layout, and whether they are what a program takes.
#include <napkin/napkin.h>

#include <compare>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "diagram/diagram.hpp"
#include "diagram/sizes.hpp"
#include "machine/machine.hpp"
#include "run/kernel.hpp"
#include "support/result.hpp"

namespace napkin {

/// The arrays that a caller gives, in a program's order: its inputs, then its outputs.
using Arrays = std::span<const napkin_array* const>;

/// DLPack's name of a type.
napkin_type dlpack_type(DType type);
/// The first type of the language with that name of DLPack's.
std::optional<DType> known_type(napkin_type type);
/// For messages.
std::string type_text(napkin_type type);

/// What a program takes for one of its arrays.
struct TakenArray {
    std::string name;
    DType type = DType::f32;
    napkin_type dlpack{};
    std::vector<std::string> axes;
    std::vector<std::int64_t> sizes;  ///< empty where they are not known yet
};
/// The diagram's inputs, then its outputs.
std::vector<TakenArray> taken_arrays(const Diagram& diagram, const Extents& extents = {});

/// Whose memory an array lies in: the processor's, or that of a GPU at hand, by the driver's number.
struct Location {
    MachineKind kind = MachineKind::cpu;
    std::int32_t device = 0;
    friend auto operator<=>(const Location&, const Location&) = default;
};
/// None: on no device that programs run on.
std::optional<Location> place_of(const napkin_array& array);

/// Whether the arrays are those that are taken, and lie there; what strides a GPU's kernels take, they say themselves.
/// Reads nothing of the arrays' values, and allocates nothing where they are.
bool are_taken(Arrays arrays, const std::vector<TakenArray>& taken, Location place);
/// What keeps them from it. Codes: view-count, view-null, view-offset, view-device, view-type, view-sizes. Where sizes
/// are not known yet, these are not looked at.
std::vector<Diagnostic> faults_of(Arrays arrays, const std::vector<TakenArray>& taken, Location place);

/// Where the first element is.
inline void* begin_of(const napkin_array& array) { return static_cast<char*>(array.data) + array.byte_offset; }
/// Pre: are_taken.
KernelInput input_view(const napkin_array& array, const TakenArray& taken);
KernelOutput output_view(const napkin_array& array, const TakenArray& taken);

}  // namespace napkin
