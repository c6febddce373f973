#include "cost/accumulators.hpp"

#include "support/ranges.hpp"
#include "tile/work.hpp"

namespace napkin {
namespace {

enum class Place : std::uint8_t { memory, accumulator, after_accumulator };

class Places {
public:
    Places(const Diagram& diagram, const TileKernel& kernel, const std::vector<CoreVariable>& variables)
        : diagram_(diagram), variables_(variables), work_(statement_work(diagram, kernel)) {
        for (const CoreVariable& v : variables) places_.push_back(accumulates(v) ? Place::accumulator : Place::memory);
        for (std::size_t v = 0; v < variables.size(); ++v)
            if (places_[v] == Place::memory && !variables[v].loaded && !is_second_operand(variables[v].array) &&
                follows(variables[v]))
                places_[v] = Place::after_accumulator;
    }

    [[nodiscard]] Place of(const CoreVariable& v) const { return places_[at(&v - variables_.data())]; }

    [[nodiscard]] std::int64_t in_memory(const CoreVariable& v) const {
        return of(v) == Place::memory ? bytes(diagram_.array(v.array).type) : 0;
    }
    [[nodiscard]] std::int64_t among_accumulators(const CoreVariable& v, const Moment& moment) const {
        const DType type = diagram_.array(v.array).type;
        if (of(v) == Place::accumulator) return bytes(type == DType::f64 ? DType::f64 : DType::f32);
        if (of(v) == Place::memory) return 0;
        const bool beside = any_of(moment.alive, [&](int other) {
            const CoreVariable& a = variables_[at(other)];
            return of(a) == Place::accumulator && a.limits == v.limits;
        });
        return beside ? 0 : bytes(type);
    }

private:
    [[nodiscard]] bool is_computed(ArrayId array) const {
        return any_of(variables_, [&](const CoreVariable& v) { return v.array == array && !v.loaded; });
    }
    /// An operand without the contraction's m, beside one that is computed as well: matrix instructions take one
    /// operand alone from registers.
    [[nodiscard]] bool is_second_operand(ArrayId array) const {
        const auto has = [](const OperandRead& o, const std::vector<AxisId>& axes) {
            return any_of(o.axes, [&](AxisId axis) { return contains(axes, axis); });
        };
        return any_of(work_, [&](const StatementWork& s) {
            if (!s.contraction) return false;
            const auto &m = s.contraction->m, &k = s.contraction->k;
            const bool second = any_of(
                s.operands, [&](const OperandRead& o) { return o.array == array && has(o, k) && !has(o, m); });
            return second && any_of(s.operands,
                                    [&](const OperandRead& o) { return has(o, k) && has(o, m) && is_computed(o.array); });
        });
    }
    [[nodiscard]] bool accumulates(const CoreVariable& v) const {
        return !v.loaded && !is_second_operand(v.array) &&
               any_of(work_, [&](const StatementWork& s) { return s.target == v.array && s.contraction; });
    }
    [[nodiscard]] bool follows(const CoreVariable& v) const {
        return any_of(variables_,
                      [&](const CoreVariable& a) { return of(a) == Place::accumulator && a.limits == v.limits; });
    }

    const Diagram& diagram_;
    const std::vector<CoreVariable>& variables_;
    std::vector<StatementWork> work_;
    std::vector<Place> places_;
};

}  // namespace

double accumulator_capacity_bytes(const Machine& machine) {
    constexpr double register_bytes = 4;
    return machine.threads ? register_bytes * machine.threads->accumulators_a_core.value : 0;
}

CoreColumns core_columns(const Diagram& diagram, const TileKernel& kernel, const std::vector<AxisId>& grouped,
                         const Machine& machine) {
    const Liveness live = liveness(kernel);
    const auto columns = [&](const ValueWeight& weight) {
        return memory_columns(diagram, live, grouped, live.moments, weight);
    };
    if (accumulator_capacity_bytes(machine) == 0)
        return {columns([&](const CoreVariable& v, const Moment&) -> std::int64_t {
                    return bytes(diagram.array(v.array).type);
                }),
                {}};
    const Places places(diagram, kernel, live.variables);
    CoreColumns out{
        columns([&](const CoreVariable& v, const Moment&) { return places.in_memory(v); }),
        columns([&](const CoreVariable& v, const Moment& moment) { return places.among_accumulators(v, moment); })};
    std::erase_if(out.accumulators, [](const MemoryColumn& column) { return column.arrays.empty(); });
    return out;
}

}  // namespace napkin
