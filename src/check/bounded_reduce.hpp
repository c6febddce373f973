#pragma once
// Reductions of bounded numbers.
#include <array>
#include <cstdint>

#include "algebra/reduce.hpp"
#include "check/bounded_rows.hpp"

namespace napkin {

/// A running reduction. Its bound holds for every order of the terms:
///  - sum: Σe + γ_D·Σ(|x| + e) with γ_D = D·u / (1 - D·u) for the depth D. D·u is larger by the relative error with
///    which a factor of every term was rounded. Partial sums may overflow, and some of them may be flushed.
///  - max, min: the hull of what could win, which no rounding widens.
///  - prod: factor by factor, with what partial products may over- or underflow to. A product that is not finite is not
///    finite in what runs either, but which of the infinities and NaN it is stays open. So it is with an extremum that
///    is NaN. For sums, reach.hpp decides where it stays open.
class BoundedReducer {
public:
    BoundedReducer(ReduceOp op, std::int64_t depth, std::int64_t terms, bool whole, const Rounding& rounding,
                   double factor_unit = 0);
    void add(const BoundedRow& row, std::int64_t n);
    [[nodiscard]] Bounded result() const;

private:
    // Lanes are kept apart, as that vectorises and keeps the reference's own rounding small.
    static constexpr std::size_t num_lanes = 8;
    using Lanes = std::array<double, num_lanes>;

    template <class F>
    static void for_each_lane(std::int64_t n, F f);
    void add_sum(const BoundedRow& row, std::int64_t n);
    void add_extreme(const BoundedRow& row, std::int64_t n);
    void add_each(const BoundedRow& row, std::int64_t n);
    [[nodiscard]] Bounded sum() const;
    [[nodiscard]] Bounded extreme() const;
    [[nodiscard]] Bounded product() const;

    ReduceOp op_;
    bool whole_;
    Rounding rounding_;
    double terms_;
    double gamma_ = 0;
    Lanes value_{}, size_{}, error_{}, low_{}, high_{};
    std::uint8_t may_ = 0;
    Bounded each_;                   ///< of the terms that were taken one by one
    double grown_ = 1, shrunk_ = 1;  ///< products of the factors above and below 1
};

}  // namespace napkin
