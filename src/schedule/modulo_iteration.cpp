#include "schedule/modulo_iteration.hpp"

#include "support/ids.hpp"
#include "support/ranges.hpp"

namespace napkin {

AccessedResults::AccessedResults(const ModuloBody& body) : num_(body.operations.size()), accessed_(num_ * num_) {
    for (const ModuloDependence& d : body.dependences)
        if (d.waits && body.operations[at(d.from)].is_product) accessed_[at(d.to) * num_ + at(d.from)] = true;
}

void ModuloIteration::wait_for(std::size_t count) {
    for (std::size_t p = 0; p < count; ++p) now = std::max(now, under_way_[p].done);
    under_way_.erase(under_way_.begin(), under_way_.begin() + static_cast<std::ptrdiff_t>(count));
}

void ModuloIteration::issue(const ModuloBody& body, const AccessedResults& touched, int operation, int ahead) {
    const ModuloOperation& o = body.operations[at(operation)];
    for (std::size_t p = under_way_.size(); p-- > 0;)
        if (touched.touches(operation, under_way_[p].product)) {
            wait_for(p + 1);
            break;
        }
    const double latency = under_way_.empty() ? o.latency : o.latency_beside;
    now += o.own + (o.is_product ? 0 : latency);
    if (!o.is_product) return;
    unit_free = std::max(unit_free, now) + o.unit;
    under_way_.push_back({operation, ahead, unit_free + latency});
}

void ModuloIteration::end(const ModuloBody& body) {
    std::size_t done = 0;
    for (std::size_t p = 0; p < under_way_.size(); ++p)
        if (under_way_[p].ahead < 0 || !body.operations[at(under_way_[p].product)].outlasts_iteration) done = p + 1;
    wait_for(done);
    for (UnderWay& p : under_way_) --p.ahead;
}

std::vector<double> ModuloIteration::state() const {
    std::vector<double> out{std::max(0.0, unit_free - now)};
    for (const UnderWay& p : under_way_)
        out.insert(out.end(), {1.0 * p.product, 1.0 * p.ahead, std::max(0.0, p.done - now)});
    return out;
}

/// A reader in the writer's own iteration keeps the value alive from writer to reader. A reader one iteration later
/// keeps it alive from the writer to the end, and from the beginning to the reader.
std::int64_t AliveValues::registers(const ModuloValue& value, int operation) const {
    if (value.is_carried) return value.registers;
    const auto is_placed = [&](int o) { return placed_[at(o)]; };
    const bool is_written = any_of(value.writers, is_placed), is_being_written = contains(value.writers, operation);
    const int written_ahead = value.writers.empty() ? 0 : ahead_[at(value.writers.front())];
    bool is_alive = false, waits = false;
    for (const int r : value.readers) {
        if (contains(value.writers, r)) continue;
        const bool is_later = ahead_[at(r)] < written_ahead, is_read = is_placed(r);
        is_alive |= is_later ? is_written || !is_read : is_written && !is_read;
        waits |= is_later && !is_read && !is_written;
    }
    const std::int64_t to_come = value.is_halved_to_come ? value.registers / 2 : value.registers;
    std::int64_t held = 0;
    if (waits)
        held = to_come;
    else if (is_alive || (is_being_written && !body_.operations[at(operation)].gives_registers))
        held = value.registers;
    // Products are issued without a wait for the previous iteration's product that multiplies the rounded value.
    const auto is_under_way = [&](int r) {
        return body_.operations[at(r)].is_product && ahead_[at(r)] < written_ahead && is_placed(r);
    };
    if (value.is_halved_to_come && body_.operations[at(operation)].is_product && any_of(value.readers, is_under_way))
        held = std::max(held, to_come);
    return held;
}

std::int64_t AliveValues::at_operation(int operation) const {
    std::int64_t sum = body_.operations[at(operation)].rounded;
    for (std::size_t o = 0; o < placed_.size() && body_.operations[at(operation)].is_product; ++o)
        if (placed_[o]) sum += body_.operations[o].rounded;
    for (const ModuloValue& v : body_.values) sum += registers(v, operation);
    return sum;
}

}  // namespace napkin
