#pragma once
// NumPy's .npy files (format 1.0 to 3.0), in and out.
#include <cstddef>
#include <optional>
#include <span>
#include <string>

#include "run/tensor.hpp"

namespace napkin {

/// Reads one array from the bytes of a file, C or Fortran order, either byte order. f2 f4 f8 become f16 f32 f64; i1 i2 i4 u1 u2 b1
/// become i32, i8 u4 u8 become i64; they become the integer type that is wanted where one is, and must fit; "bfloat16" and V2 become bf16. Formats that NumPy cannot name are told by `wanted`: V1 and u1
/// are e4m3 or e5m2, V2 and u2 bf16 when that is wanted. `name` stands for the file in errors: bad-npy, npy-type, npy-range,
/// too-little-memory.
Result<Tensor> parse_npy(std::span<const std::byte> file, const std::string& name,
                         std::optional<DType> wanted = std::nullopt);

/// The same from a file. Errors besides: no-such-file, unreadable-file.
Result<Tensor> read_npy(const std::string& path, std::optional<DType> wanted = std::nullopt);

/// The file's bytes: format 1.0, C order, this machine's byte order. bf16 is written as V2, e4m3 and e5m2 as V1 (raw bits).
std::string npy_bytes(const Tensor& tensor);

/// Writes the file whole or not at all. Error: unwritable-file.
Status write_npy(const std::string& path, const Tensor& tensor);

}  // namespace napkin
