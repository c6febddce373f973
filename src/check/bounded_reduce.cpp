#include "check/bounded_reduce.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "support/result.hpp"

namespace napkin {

namespace {

double total(const std::array<double, 8>& x) {
    return ((x[0] + x[1]) + (x[2] + x[3])) + ((x[4] + x[5]) + (x[6] + x[7]));
}

}  // namespace

BoundedReducer::BoundedReducer(ReduceOp op, std::int64_t depth, std::int64_t terms, bool whole,
                               const Rounding& rounding, double factor_unit)
    : op_(op), whole_(whole), rounding_(rounding), terms_(static_cast<double>(terms)), each_{identity(op), 0, 0} {
    const double of_reference = static_cast<double>(terms / static_cast<std::int64_t>(num_lanes) + 8) *
                                epsilon(DType::f64) / 2;
    const double roundings = static_cast<double>(depth) * rounding.unit + factor_unit + of_reference;
    gamma_ = roundings < 1 ? roundings / (1 - roundings) : infinity;
    value_.fill(identity(op));
    low_ = high_ = value_;
}

template <class F>
void BoundedReducer::for_each_lane(std::int64_t n, F f) {
    std::int64_t j = 0;
    for (; j + static_cast<std::int64_t>(num_lanes) <= n; j += num_lanes)
        for (std::size_t lane = 0; lane < num_lanes; ++lane) f(lane, j + static_cast<std::int64_t>(lane));
    for (; j < n; ++j) f(0, j);
}

void BoundedReducer::add(const BoundedRow& row, std::int64_t n) {
    if (op_ == ReduceOp::sum) return add_sum(row, n);
    if (op_ == ReduceOp::prod || row.may != nullptr) return add_each(row, n);
    add_extreme(row, n);
}

Bounded BoundedReducer::result() const {
    switch (op_) {
        case ReduceOp::sum: return sum();
        case ReduceOp::prod: return product();
        case ReduceOp::max:
        case ReduceOp::min: return extreme();
    }
    throw InternalError("unknown reduction");
}

void BoundedReducer::add_each(const BoundedRow& row, std::int64_t n) {
    for (std::int64_t j = 0; j < n; ++j) {
        const Bounded x = row.at(j);
        each_ = apply(pairwise(op_), each_, x, rounding_, whole_);
        if (op_ != ReduceOp::prod || !std::isfinite(x.value)) continue;
        grown_ *= std::max(1.0, std::abs(x.value) + x.error);
        if (x.value != 0) shrunk_ *= std::min(1.0, std::abs(x.value));
    }
}

void BoundedReducer::add_sum(const BoundedRow& row, std::int64_t n) {
    if (row.error != nullptr) {
        for_each_lane(n, [&](std::size_t lane, std::int64_t j) {
            value_[lane] += row.value[j];
            size_[lane] += std::abs(row.value[j]);
            error_[lane] += row.error[j];
        });
    } else {
        for_each_lane(n, [&](std::size_t lane, std::int64_t j) {
            value_[lane] += row.value[j];
            size_[lane] += std::abs(row.value[j]);
        });
    }
    if (row.may != nullptr)
        for (std::int64_t j = 0; j < n; ++j) may_ |= static_cast<std::uint8_t>(row.may[j]);
}

Bounded BoundedReducer::sum() const {
    const double value = total(value_), size = total(size_), error = total(error_);
    if (!(error < infinity) || !(gamma_ < infinity)) return anything(value);
    Bounded out{value, 0, may_};
    if (std::isfinite(value)) {
        // Each partial sum may be flushed.
        const double lost = size > 0 ? terms_ * rounding_.smallest : 0;
        out.error = whole_ && error == 0 && size <= rounding_.whole ? 0 : error + gamma_ * (size + error) + lost;
        // Partial sums, in whatever order, reach no further than all terms of one sign.
        if ((size + value) / 2 + error > rounding_.largest) out.may |= may_be_infinite;
        if ((size - value) / 2 + error > rounding_.largest) out.may |= may_be_minus_infinite;
        const std::uint8_t both = may_be_infinite | may_be_minus_infinite;
        if ((out.may & both) == both) out.may |= may_be_nan;
    } else if (may_ != 0 || size == infinity) {
        // Beside an infinity, finite terms that overflow the other way give NaN.
        if ((value > 0 ? may_ & may_be_minus_infinite : may_ & may_be_infinite) != 0) out.may |= may_be_nan;
    }
    return out;
}

void BoundedReducer::add_extreme(const BoundedRow& row, std::int64_t n) {
    const auto run = [&](auto pick) {
        if (row.error == nullptr) {
            for_each_lane(n, [&](std::size_t lane, std::int64_t j) {
                value_[lane] = pick(value_[lane], row.value[j]);
                low_[lane] = pick(low_[lane], row.value[j]);
                high_[lane] = pick(high_[lane], row.value[j]);
            });
        } else {
            for_each_lane(n, [&](std::size_t lane, std::int64_t j) {
                value_[lane] = pick(value_[lane], row.value[j]);
                low_[lane] = pick(low_[lane], row.value[j] - row.error[j]);
                high_[lane] = pick(high_[lane], row.value[j] + row.error[j]);
            });
        }
    };
    if (op_ == ReduceOp::max) return run([](double a, double b) { return std::isnan(a) || a > b ? a : b; });
    run([](double a, double b) { return std::isnan(a) || a < b ? a : b; });
}

Bounded BoundedReducer::extreme() const {
    double value = value_[0], low = low_[0], high = high_[0];
    for (std::size_t lane = 1; lane < num_lanes; ++lane) {
        value = apply(op_, value, value_[lane]);
        low = apply(op_, low, low_[lane]);
        high = apply(op_, high, high_[lane]);
    }
    Bounded out{value, 0, 0};
    if (low != high && !std::isnan(value)) {
        // The subtraction and addition of the errors were rounded themselves.
        out.error = std::max(high - value, value - low) + epsilon(DType::f64) * std::abs(value);
        if (!(out.error < infinity)) out = anything(value);
    }
    out = apply(pairwise(op_), out, each_, rounding_);
    // What its terms meet first of infinities and NaN is open.
    if (std::isnan(out.value)) out.may = may_be_any;
    return out;
}

Bounded BoundedReducer::product() const {
    Bounded out = each_;
    if (grown_ > rounding_.largest) out.may |= may_be_infinite | may_be_minus_infinite | may_be_nan;
    if (shrunk_ < rounding_.smallest / rounding_.unit) {
        admit(out, 0);
        if (std::isfinite(out.value)) admit(out, 2 * out.value);
    }
    if (!std::isfinite(out.value)) out.may = may_be_any;
    return out;
}

}  // namespace napkin
