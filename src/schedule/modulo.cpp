#include "schedule/modulo.hpp"

#include <cmath>
#include <functional>
#include <tuple>
#include <utility>

#include "schedule/modulo_iteration.hpp"
#include "support/ids.hpp"
#include "support/ranges.hpp"

namespace napkin {
namespace {

/// Most iterations that are simulated if none goes like the one before. Then the mean of the second half is the pace.
constexpr int most_iterations = 64;

/// The least clocks from the beginning of an operation until what depends on it may begin.
double clocks_of(const ModuloBody& body, const ModuloDependence& d) {
    const ModuloOperation& from = body.operations[at(d.from)];
    if (!from.is_product) return from.own + from.latency_beside;
    return from.own + (d.waits ? from.unit + from.latency_beside : 0);
}

/// A cycle of dependences that takes more clocks an iteration than `pace`; empty: there is none. Longest paths after
/// Bellman and Ford.
std::vector<int> cycle_above(const ModuloBody& body, double pace) {
    const std::size_t n = body.operations.size();
    const double slack = 1e-9 * (1 + pace);
    std::vector<double> begin(n);
    std::vector<int> by(n, -1);
    int last = -1;
    for (std::size_t round = 0; round <= n; ++round) {
        last = -1;
        for (std::size_t e = 0; e < body.dependences.size(); ++e) {
            const ModuloDependence& d = body.dependences[e];
            const double after = begin[at(d.from)] + clocks_of(body, d) - pace * d.distance;
            if (after > begin[at(d.to)] + slack)
                begin[at(d.to)] = after, by[at(d.to)] = static_cast<int>(e), last = d.to;
        }
        if (last < 0) return {};
    }
    for (std::size_t i = 0; i < n; ++i) last = body.dependences[at(by[at(last)])].from;
    std::vector<int> out;
    for (int o = last; out.empty() || o != last; o = body.dependences[at(out.back())].from) out.push_back(by[at(o)]);
    reverse(out);
    return out;
}

/// The copy whose stages take longest to come round, and the clocks that it needs an iteration. Its tile is copied,
/// read and released in that time, divided by the number of stages.
std::pair<int, double> slowest_copy(const ModuloBody& body) {
    std::pair<int, double> out{-1, 0};
    for (std::size_t c = 0; c < body.copies.size(); ++c) {
        const ModuloCopy& copy = body.copies[c];
        double read = 0;
        for (const int r : copy.readers) {
            const ModuloOperation& reader = body.operations[at(r)];
            read = std::max(read, reader.own + reader.unit + reader.latency_beside);
        }
        if (const double clocks = (copy.clocks + read) / copy.stages; clocks > out.second)
            out = {static_cast<int>(c), clocks};
    }
    return out;
}

}  // namespace

bool ModuloOrder::runs_ahead() const {
    return any_of(ahead, [](int by) { return by > 0; });
}

ModuloOrder in_turn(const ModuloBody& body) {
    ModuloOrder out;
    for (std::size_t o = 0; o < body.operations.size(); ++o) out.sequence.push_back(static_cast<int>(o));
    out.ahead.assign(body.operations.size(), 0);
    return out;
}

ModuloOrder products_ahead(const ModuloBody& body) {
    const std::size_t n = body.operations.size();
    // An operation needs a product that it reads, even through others, in the same iteration. A product that needs one
    // is last, and so is all that reads it.
    std::vector<bool> needs_product(n), is_last(n);
    for (std::size_t o = 0; o < n; ++o)
        for (const ModuloDependence& d : body.dependences) {
            if (at(d.to) != o || d.distance != 0 || !d.is_read) continue;
            const bool is_product = body.operations[at(d.from)].is_product;
            if (is_product || needs_product[at(d.from)]) needs_product[o] = true;
            if (is_last[at(d.from)]) is_last[o] = true;
            if (body.operations[o].is_product && needs_product[o]) is_last[o] = true;
        }
    ModuloOrder out = in_turn(body);
    if (!contains(is_last, true)) return out;
    for (std::size_t o = 0; o < n; ++o) out.ahead[o] = is_last[o] ? 0 : 1;
    stable_sort(out.sequence, [&](int a, int b) {
        const auto place = [&](int o) { return is_last[at(o)] ? 1 : body.operations[at(o)].is_product ? 0 : 2; };
        return place(a) < place(b);
    });
    return may_be(body, out) ? out : in_turn(body);
}

bool may_be(const ModuloBody& body, const ModuloOrder& order) {
    for (std::size_t o = 0; o < order.ahead.size(); ++o)
        if (const int with = body.operations[o].bound_to; with >= 0 && order.ahead[at(with)] != order.ahead[o])
            return false;
    const auto is_of_threads = [&](int o) { return !body.operations[at(o)].is_product; };
    if (order.runs_ahead() ? !std::is_partitioned(order.sequence.begin(), order.sequence.end(), std::not_fn(is_of_threads))
                           : !is_sorted(order.sequence))
        return false;
    return broken_dependences(body, order).empty();
}

std::vector<int> broken_dependences(const ModuloBody& body, const ModuloOrder& order) {
    std::vector<std::size_t> position(order.sequence.size());
    for (std::size_t p = 0; p < order.sequence.size(); ++p) position[at(order.sequence[p])] = p;
    std::vector<int> out;
    for (std::size_t e = 0; e < body.dependences.size(); ++e) {
        const ModuloDependence& d = body.dependences[e];
        const int turns = order.ahead[at(d.from)] + d.distance - order.ahead[at(d.to)];
        if (turns < 0 || (turns == 0 && position[at(d.from)] >= position[at(d.to)])) out.push_back(static_cast<int>(e));
    }
    return out;
}

double clocks_one_by_one(const ModuloBody& body) {
    return sum<double>(body.operations, [&](const ModuloOperation& o) { return o.own + o.unit + o.latency; });
}

double clocks_alone(const ModuloBody& body, const ModuloOrder& order) {
    const AccessedResults touched(body);
    ModuloIteration turn;
    double half = 0;
    std::vector<double> state;
    for (int t = 0; t < most_iterations; ++t) {
        const double begin = turn.now;
        if (t == most_iterations / 2) half = begin;
        for (const int o : order.sequence) turn.issue(body, touched, o, order.ahead[at(o)]);
        turn.end(body);
        const std::vector<double> before = std::exchange(state, turn.state());
        const double slack = 1e-9 * (1 + turn.now);
        if (std::equal(before.begin(), before.end(), state.begin(), state.end(),
                       [&](double a, double b) { return std::abs(a - b) <= slack; }))
            return turn.now - begin;
    }
    return (turn.now - half) / (most_iterations - most_iterations / 2);
}

double pace_of(const ModuloBody& body, const ModuloOrder& order) {
    const double pace = order.runs_ahead() ? std::max(body.least_measured, clocks_alone(body, order))
                                           : clocks_one_by_one(body);
    return std::max(pace, slowest_copy(body).second);
}

std::int64_t registers_of(const ModuloBody& body, const ModuloOrder& order) {
    AliveValues alive(body, order.ahead);
    std::int64_t most = 0;
    for (const int o : order.sequence) most = std::max(most, alive.at_operation(o)), alive.place(o);
    return most;
}

double ModuloBounds::pace() const { return std::max({issue, unit, recurrence, stages, measured}); }

ModuloBounds bounds_of(const ModuloBody& body) {
    ModuloBounds out;
    out.measured = body.least_measured;
    std::tie(out.copy, out.stages) = slowest_copy(body);
    for (const ModuloOperation& o : body.operations) {
        out.issue += o.own + (o.is_product ? 0 : o.latency_beside);
        out.unit += o.unit;
    }
    // A cycle found above a pace gives the next pace, until no cycle is above it. So the largest ratio of clocks to
    // iterations is exact.
    for (std::vector<int> cycle; !(cycle = cycle_above(body, out.recurrence)).empty();) {
        double clocks = 0, turns = 0;
        for (const int e : cycle)
            clocks += clocks_of(body, body.dependences[at(e)]), turns += body.dependences[at(e)].distance;
        if (!(turns > 0) || clocks / turns <= out.recurrence) break;
        out.recurrence = clocks / turns, out.cycle = std::move(cycle);
    }
    return out;
}

}  // namespace napkin
