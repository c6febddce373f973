#pragma once
// The processor at hand, as its own description has it.
#include <string>
#include <vector>

namespace napkin {

/// Its model and features, as far as a compiler's -march=native looks at them.
std::string processor_identity();

/// Bytes of the widest vectors that napkin emits for this processor: 64 (AVX-512), 32 (AVX2 with multiply-adds) or 16.
/// With NAPKIN_VECTOR_BYTES in the environment at most so many: the processor then passes for one that has no wider
/// ones.
int native_vector_bytes();
/// Registers that hold vectors of so many bytes.
int vector_registers(int vector_bytes);
/// What a compiler is told beside -march=native so that it emits for a processor whose widest vectors have so many
/// bytes, or native_vector_bytes() where these are fewer: it makes two of them do for one. Nothing for this processor's
/// widest.
std::vector<std::string> flags_for_vectors(int vector_bytes);

}  // namespace napkin
