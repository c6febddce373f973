#pragma once
// What a kernel is measured against: the diagram evaluated as it stands, one equation after the other, every array materialised.
// Contractions are OpenBLAS' matrix multiply; every other equation is a loop of its own that the compiler vectorises and all
// threads share. Numbers are f32, or f64 when an array of the diagram is.
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "diagram/diagram.hpp"
#include "diagram/sizes.hpp"
#include "run/contraction.hpp"
#include "support/result.hpp"

namespace napkin {

struct BaselineOptions {
    int threads = 0;       ///< 0: one a core
    bool use_blas = true;  ///< false: contractions are loops too
};

class Baseline {
public:
    /// Compiles the loops and makes room for the intermediate arrays. Errors: those of the compiler; too-little-memory when the
    /// intermediates do not fit what is free.
    static Result<Baseline> build(const Diagram& diagram, const Extents& extents, const BaselineOptions& options = {});

    Baseline(Baseline&&) noexcept;
    Baseline& operator=(Baseline&&) noexcept;
    ~Baseline();

    /// Evaluates all equations. Pointers are to dense row-major arrays of f32, or f64 when uses_double(), in the diagram's order of
    /// inputs and outputs. One run at a time.
    void run(const std::vector<const void*>& inputs, const std::vector<void*>& outputs);

    [[nodiscard]] bool uses_double() const;
    [[nodiscard]] std::int64_t extra_bytes() const;  ///< intermediates alive at a time, at most
    [[nodiscard]] int multiplies() const;            ///< equations that are matrix multiplies
    [[nodiscard]] const std::string& blas() const;   ///< the library's name, "" when its place is taken by loops

private:
    struct Impl;
    explicit Baseline(std::unique_ptr<Impl> impl);
    std::unique_ptr<Impl> impl_;
};

/// Bytes that the intermediates of an evaluation take at most: each array lives from the equation that makes it to the last that
/// reads it, and memory is used again.
std::int64_t baseline_extra_bytes(const Diagram& diagram, const Extents& extents);

}  // namespace napkin
