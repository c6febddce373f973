#pragma once
// NumPy's .npy files (format 1.0 to 3.0), in and out.
#include <cstddef>
#include <optional>
#include <span>
#include <string>

#include "run/tensor.hpp"

namespace napkin {

/// Reads one array from the bytes of a file, C or Fortran order, either byte order. Numbers have the type that they
/// have in the file, u2 i32, u4 and u8 i64; "bfloat16" and V2 are bf16. Where an integer type is wanted they have that
/// one, and each must be a number of it: nothing is rounded. Where a float type is wanted, a finite number must not be
/// beyond it. Formats that NumPy cannot name are told by `wanted`: V1 and u1 are e4m3 or e5m2, V2 and u2 bf16 when that
/// is wanted. `name` stands for the file in errors: bad-npy, npy-type, npy-range, too-little-memory.
Result<Tensor> parse_npy(std::span<const std::byte> file, const std::string& name,
                         std::optional<DType> wanted = std::nullopt);

/// The same from a file, which errors call `name` where that is given. Errors besides: no-such-file, unreadable-file.
Result<Tensor> read_npy(const std::string& path, std::optional<DType> wanted = std::nullopt,
                        const std::string& name = "");

/// The file's bytes: format 1.0, C order, this machine's byte order. bf16 is written as V2, e4m3 and e5m2 as V1 (raw
/// bits).
std::string npy_bytes(const Tensor& tensor);

/// Writes the file whole or not at all. Error: unwritable-file.
Status write_npy(const std::string& path, const Tensor& tensor);

}  // namespace napkin
