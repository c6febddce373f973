#include "check/probe.hpp"

#include <algorithm>
#include <limits>
#include <random>

#include "diagram/array_sizes.hpp"
#include "support/result.hpp"

namespace napkin {

namespace {

/// One array's values, given its N(0, 1) numbers in row-major order.
class Filling {
public:
    Filling(Probe probe, DType type, std::vector<std::int64_t> sizes, std::uint64_t seed)
        : probe_(probe), sizes_(std::move(sizes)), random_(seed) {
        const double third = format_range(type).largest / 3;
        huge_ = std::min(1e38, third);
        lowest_ = std::max(-1e9, -format_range(type).largest);
        const std::int64_t last = sizes_.empty() ? 1 : sizes_.back();
        hot_ = static_cast<std::int64_t>(random_() % static_cast<std::uint64_t>(last));
        level_ = static_cast<double>(random_() % 9) - 4;
    }

    [[nodiscard]] double value(std::int64_t place, double normal, std::int64_t count) {
        const std::int64_t last = sizes_.empty() ? 1 : sizes_.back();
        switch (probe_) {
            case Probe::normal: return normal;
            case Probe::integers: return static_cast<double>(random_() % 9) - 4;
            case Probe::growing: return 2 * steps(place) + normal / 4;
            case Probe::falling: return -2 * steps(place) + normal / 4;
            case Probe::constant: return level_;
            case Probe::one_key: return place % last == hot_ ? normal + 40 : normal;
            case Probe::zeros: return one_in(3) ? 0 : normal;
            case Probe::masked: return one_in(3) ? lowest_ : normal;
            case Probe::offset: return 1000 + normal;
            case Probe::huge: return one_in(4) ? (one_in(2) ? huge_ : -huge_) : normal;
            case Probe::infinite: return one_in(6) ? (one_in(2) ? infinity : -infinity) : normal;
            case Probe::invalid: return place == count / 2 ? std::numeric_limits<double>::quiet_NaN() : normal;
        }
        throw InternalError("unknown probe");
    }

private:
    bool one_in(std::uint64_t n) { return random_() % n == 0; }
    /// The sum of the coordinates.
    [[nodiscard]] double steps(std::int64_t place) const {
        std::int64_t sum = 0;
        for (std::size_t d = sizes_.size(); d-- > 0; place /= sizes_[d]) sum += place % sizes_[d];
        return static_cast<double>(sum);
    }

    Probe probe_;
    std::vector<std::int64_t> sizes_;
    std::mt19937_64 random_;
    double huge_ = 0, lowest_ = 0, level_ = 0;
    std::int64_t hot_ = 0;
};

}  // namespace

std::string_view name(Probe probe) {
    constexpr std::string_view names[] = {"normal", "integers", "growing", "falling", "constant", "one key",
                                          "zeros",  "masked",   "offset",  "huge",    "infinite", "invalid"};
    return names[at(probe)];
}

Values probe_inputs(const Diagram& diagram, const Extents& extents, Probe probe, std::uint64_t seed) {
    Values values = random_inputs(diagram, extents, seed);
    for (std::size_t i = 0; i < diagram.inputs.size(); ++i) {
        const Array& array = diagram.array(diagram.inputs[i]);
        if (!is_float(array.type) || values[diagram.inputs[i]].empty()) continue;
        const std::vector<std::int64_t> sizes = array_sizes(diagram, diagram.inputs[i], extents);
        Filling filling(probe, array.type, sizes, seed * 0x9E3779B97F4A7C15ULL + i);
        std::vector<double>& data = values[diagram.inputs[i]].reals();
        const auto count = static_cast<std::int64_t>(data.size());
        for (std::int64_t place = 0; place < count; ++place) {
            double& x = data[at(place)];
            x = round_to(array.type, filling.value(place, x, count));
        }
    }
    return values;
}

}  // namespace napkin
