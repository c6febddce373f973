#pragma once
// Arrays of numbers in memory: row-major, 64-byte aligned, in any of the language's types.
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "diagram/column.hpp"
#include "run/memory.hpp"
#include "support/dtype.hpp"
#include "support/result.hpp"

namespace napkin {

/// One number in its stored form. encode rounds as round_to does (to nearest, ties to even; once), and wraps an integer
/// that becomes a narrower one; decode is exact.
void encode(DType type, const Number& value, void* to);
Number decode_number(DType type, const void* from);
inline void encode(DType type, double value, void* to) { encode(type, Number::real(value), to); }
inline double decode(DType type, const void* from) { return decode_number(type, from).as_real(); }

/// Owns its numbers. A copy copies them.
class Tensor {
public:
    Tensor() = default;  ///< no dimension, f32, no storage
    Tensor(Tensor&&) noexcept = default;
    Tensor& operator=(Tensor&&) noexcept = default;

    /// Zeros of these sizes (each ≥ 0; none: a scalar). Errors: bad-sizes, too-little-memory (machine_lacks).
    static Result<Tensor> make(DType type, std::vector<std::int64_t> sizes);
    [[nodiscard]] Result<Tensor> copy() const;
    /// The same numbers rounded to another type.
    [[nodiscard]] Result<Tensor> to(DType type) const;

    [[nodiscard]] DType type() const { return type_; }
    [[nodiscard]] const std::vector<std::int64_t>& sizes() const { return sizes_; }
    [[nodiscard]] std::int64_t count() const { return count_; }  ///< values
    [[nodiscard]] std::int64_t size_bytes() const { return count_ * bytes(type_); }
    [[nodiscard]] void* data() { return data_.get(); }
    [[nodiscard]] const void* data() const { return data_.get(); }

    [[nodiscard]] double at(std::int64_t i) const { return number(i).as_real(); }  ///< by row-major place
    [[nodiscard]] Number number(std::int64_t i) const;
    void set(std::int64_t i, double value) { set(i, Number::real(value)); }
    void set(std::int64_t i, const Number& value);
    [[nodiscard]] std::vector<double> to_doubles() const;
    [[nodiscard]] Column to_column() const;

    /// Independent N(mean, deviation²) rounded to the type. Value i depends on seed and i alone, whatever the size or
    /// the machine's number of cores.
    void fill_normal(std::uint64_t seed, double mean = 0, double deviation = 1);

private:
    DType type_ = DType::f32;
    std::vector<std::int64_t> sizes_;
    std::int64_t count_ = 0;
    Memory data_;
};

/// Number `i` of the N(0, 1) sequence of a seed.
double normal_number(std::uint64_t seed, std::uint64_t i);

}  // namespace napkin
