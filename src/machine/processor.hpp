#pragma once
// The processor at hand, as its own description has it.
#include <string>
#include <vector>

namespace napkin {

/// Its model and features, as far as a compiler's -march=native looks at them.
std::string processor_identity();

/// Bytes of the widest vectors that napkin emits for this processor: 64 (AVX-512), 32 (AVX2 with multiply-adds) or 16.
/// The environment variable NAPKIN_VECTOR_BYTES caps them. The processor then passes for one without wider vectors.
int native_vector_bytes();
/// Registers that hold vectors of so many bytes.
int vector_registers(int vector_bytes);
/// Compiler flags beside -march=native for a processor whose widest vectors have `vector_bytes`, or
/// native_vector_bytes() where these are fewer. The compiler then makes two of these vectors do for a wider one. None
/// for this processor's widest.
std::vector<std::string> flags_for_vectors(int vector_bytes);

}  // namespace napkin
