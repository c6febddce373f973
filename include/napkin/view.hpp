#pragma once
// Memory that napkin reads and writes: a pointer with its element type, sizes and strides. A view owns nothing.
#include <cstddef>
#include <cstdint>
#include <vector>

namespace napkin {

/// How numbers are stored: f16 is IEEE binary16, bf16 the upper half of f32, e4m3 and e5m2 the OCP 8-bit floats,
/// boolean a byte that is 0 or 1. A tf32 is an f32 whose 13 lowest bits are not read. Where it is written, they are 0.
enum class ElementType : std::uint8_t { f64, f32, f16, bf16, e4m3, e5m2, i32, i64, i8, u8, i16, boolean, tf32 };

/// Bytes of one element; 0 for a number that stands for no type.
std::size_t bytes(ElementType type);

/// An array that is only read.
struct ConstView {
    const void* data = nullptr;
    ElementType type = ElementType::f32;
    std::vector<std::int64_t> sizes;  ///< elements along each axis, outermost first; empty for a scalar
    /// elements (not bytes) between neighbours of each axis; empty: row-major without gaps
    std::vector<std::int64_t> strides;
};

/// An array that is written. Elements of one view must not overlap each other or any other view of the same run.
struct View {
    void* data = nullptr;
    ElementType type = ElementType::f32;
    std::vector<std::int64_t> sizes;
    std::vector<std::int64_t> strides;
};

}  // namespace napkin
