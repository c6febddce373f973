// The search over orders of a loop's turn against all orders there are, timed by code of its own, on random bodies.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>

#include "schedule/modulo.hpp"

namespace napkin::modulo {
namespace {

class RandomBody {
public:
    explicit RandomBody(std::uint64_t seed) : random_(seed) {}

    ModuloBody run() {
        ModuloBody body;
        const int n = 2 + below(4);
        for (int o = 0; o < n; ++o) {
            ModuloOperation op{.name = fmt::format("o{}", o), .own = 1.0 * below(6)};
            op.is_product = below(2) == 0;
            if (op.is_product) op.unit = 1 + below(12), op.outlasts_iteration = below(4) == 0;
            op.latency = below(5), op.latency_beside = below(2) == 0 ? op.latency : op.latency / 2;
            op.rounded = op.is_product && below(4) == 0 ? 3 : 0;
            op.gives_registers = !op.is_product;
            op.bound_to = o > 0 && below(5) == 0 ? below(o) : -1;
            body.operations.push_back(std::move(op));
        }
        for (int a = 0; a < n; ++a) {
            const bool is_product = body.operations[index(a)].is_product;
            if (is_product && !body.operations[index(a)].outlasts_iteration && below(2) == 0)
                body.dependences.push_back({a, a, 1, true, false});
            for (int b = a + 1; b < n; ++b) {
                if (below(5) < 2) continue;
                body.dependences.push_back({a, b, 0, is_product && below(3) > 0, below(2) == 0});
                body.dependences.push_back({b, a, 1, body.operations[index(b)].is_product && below(3) > 0, false});
            }
        }
        for (int v = 0; v < n; ++v) {
            ModuloValue value{.name = fmt::format("v{}", v), .registers = 1 + below(20)};
            value.is_carried = below(5) == 0, value.is_halved_to_come = below(4) == 0;
            value.writers = {v};
            for (const ModuloDependence& d : body.dependences)
                if (d.from == v && d.to > v && d.distance == 0) value.readers.push_back(d.to);
            body.values.push_back(std::move(value));
        }
        if (below(3) == 0) body.copies.push_back({"c", 1.0 * below(60), 1 + below(4), {below(n)}});
        if (below(3) == 0) body.registers = 20 + below(60);
        if (below(3) == 0) body.least_measured = clocks_one_by_one(body) * (1 - 0.1 * below(6));
        return body;
    }

private:
    int below(int n) { return static_cast<int>(random_() % static_cast<std::uint64_t>(n)); }
    static std::size_t index(int i) { return static_cast<std::size_t>(i); }
    std::mt19937_64 random_;
};

const ModuloOperation& operation(const ModuloBody& body, int o) { return body.operations[static_cast<std::size_t>(o)]; }

/// Every instance of every turn in one list: what one waits for is said of all that were set going before it.
double clocks_by_instances(const ModuloBody& body, const ModuloOrder& order) {
    struct Product {
        int operation, turn;
        double done;
    };
    constexpr int turns = 48;
    std::vector<Product> products;
    std::size_t waited = 0;
    double issued = 0, unit = 0, at_half = 0;
    const auto wait_up_to = [&](std::size_t last) {
        for (std::size_t p = 0; p <= last; ++p) issued = std::max(issued, products[p].done);
        waited = std::max(waited, last + 1);
    };
    for (int turn = 0; turn < turns; ++turn) {
        if (turn == turns / 2) at_half = issued;
        for (const int o : order.sequence) {
            for (std::size_t p = waited; p < products.size(); ++p)
                for (const ModuloDependence& d : body.dependences)
                    if (d.waits && d.from == products[p].operation && d.to == o) wait_up_to(p);
            const ModuloOperation& op = operation(body, o);
            const double latency = waited < products.size() ? op.latency_beside : op.latency;
            issued += op.own;
            if (op.is_product) {
                unit = std::max(unit, issued) + op.unit;
                products.push_back({o, turn + order.ahead[static_cast<std::size_t>(o)], unit + latency});
            } else {
                issued += latency;
            }
        }
        for (std::size_t p = 0; p < products.size(); ++p)
            if (!operation(body, products[p].operation).outlasts_iteration || products[p].turn < turn)
                if (p >= waited) wait_up_to(p);
    }
    return (issued - at_half) / (turns - turns / 2);
}

/// Registers by walking two turns and asking of each value who still reads it.
std::int64_t registers_by_walk(const ModuloBody& body, const ModuloOrder& order) {
    const auto ahead = [&](int o) { return order.ahead[static_cast<std::size_t>(o)]; };
    std::int64_t most = 0;
    const int n = static_cast<int>(order.sequence.size());
    const auto time = [&](int o, int turn) {
        return (turn - ahead(o)) * n +
               static_cast<int>(std::find(order.sequence.begin(), order.sequence.end(), o) - order.sequence.begin());
    };
    for (int p = 0; p < n; ++p) {
        const ModuloOperation& here = operation(body, order.sequence[static_cast<std::size_t>(p)]);
        std::int64_t sum = 0;
        for (int q = here.is_product ? 0 : p; q <= p; ++q)
            sum += operation(body, order.sequence[static_cast<std::size_t>(q)]).rounded;
        for (const ModuloValue& v : body.values) {
            std::int64_t held = v.is_carried ? v.registers : 0;
            // That of a turn is alive from its writer to its last reader; the clock is that of turn 0 of the loop.
            for (int turn = 0; turn <= 1 && !v.is_carried; ++turn) {
                const int written = time(v.writers.front(), turn);
                int end = written;
                for (const int r : v.readers) end = std::max(end, time(r, turn));
                const bool begins = written == p, lives = written < p && p <= end;
                if (begins && !here.gives_registers) held = std::max(held, v.registers);
                // Written in the loop's turn before, so many places ago.
                if (lives) held = std::max(held, written < 0 && v.is_halved_to_come ? v.registers / 2 : v.registers);
            }
            // While products are set going, one of the turn before is under way.
            for (const int r : v.readers)
                if (v.is_halved_to_come && !v.is_carried && here.is_product && operation(body, r).is_product &&
                    ahead(r) < ahead(v.writers.front()) && time(r, ahead(r)) < p)
                    held = std::max(held, v.registers / 2);
            sum += held;
        }
        most = std::max(most, sum);
    }
    return most;
}

bool is_legal(const ModuloBody& body, const ModuloOrder& order) {
    std::vector<int> place(order.sequence.size());
    for (std::size_t p = 0; p < place.size(); ++p)
        place[static_cast<std::size_t>(order.sequence[p])] = static_cast<int>(p);
    const auto when = [&](int o, int turn) {
        return std::pair(turn - order.ahead[static_cast<std::size_t>(o)], place[static_cast<std::size_t>(o)]);
    };
    for (const ModuloDependence& d : body.dependences)
        if (!(when(d.from, -d.distance) < when(d.to, 0))) return false;
    // Products come first.
    const bool runs_ahead = std::find(order.ahead.begin(), order.ahead.end(), 1) != order.ahead.end();
    for (std::size_t p = 1; p < place.size(); ++p)
        if (runs_ahead ? operation(body, order.sequence[p]).is_product && !operation(body, order.sequence[p - 1]).is_product
                       : order.sequence[p] < order.sequence[p - 1])
            return false;
    for (std::size_t o = 0; o < place.size(); ++o)
        if (const int with = body.operations[o].bound_to;
            with >= 0 && order.ahead[static_cast<std::size_t>(with)] != order.ahead[o])
            return false;
    return true;
}

/// The best of all legal orders that have the registers.
std::optional<std::pair<double, std::int64_t>> best_of_all(const ModuloBody& body) {
    const std::size_t n = body.operations.size();
    std::optional<std::pair<double, std::int64_t>> best;
    for (std::size_t bits = 0; bits + 1 < std::size_t{1} << n; ++bits) {
        ModuloOrder order;
        for (std::size_t o = 0; o < n; ++o) order.ahead.push_back(static_cast<int>(bits >> o & 1));
        order.sequence.resize(n);
        std::iota(order.sequence.begin(), order.sequence.end(), 0);
        do {
            if (!is_legal(body, order)) continue;
            double pace = 0;
            if (bits == 0)
                for (const ModuloOperation& o : body.operations) pace += o.own + o.unit + o.latency;
            else
                pace = std::max(body.least_measured, clocks_by_instances(body, order));
            for (const ModuloCopy& c : body.copies) {
                const ModuloOperation& reader = operation(body, c.readers[0]);
                pace = std::max(pace, (c.clocks + reader.own + reader.unit + reader.latency_beside) / c.stages);
            }
            const std::pair found{pace, registers_by_walk(body, order)};
            if (found.second > body.registers) continue;
            const bool is_alike = best && std::abs(found.first - best->first) < 1e-6;
            if (!best || (is_alike ? found.second < best->second : found.first < best->first)) best = found;
        } while (std::next_permutation(order.sequence.begin(), order.sequence.end()));
    }
    return best;
}

TEST(Modulo, NoOrderOfARandomBodyIsBetterThanTheOneThatIsFound) {
    int ahead = 0, by_bound = 0, crowded = 0;
    for (std::uint64_t seed = 0; seed < 400; ++seed) {
        SCOPED_TRACE(fmt::format("seed {}", seed));
        const ModuloBody body = RandomBody(seed).run();
        const auto best = best_of_all(body);
        const ModuloSearch found = search_order(body);
        ASSERT_EQ(best.has_value(), !found.best.order.sequence.empty());
        if (!best) {
            ++crowded;
            continue;
        }
        EXPECT_NEAR(found.best.pace, best->first, 1e-6);
        EXPECT_EQ(found.best.registers, best->second);
        EXPECT_TRUE(is_legal(body, found.best.order));
        EXPECT_TRUE(found.is_exhaustive);
        EXPECT_LE(found.bounds.pace(), best->first + 1e-6) << "no bound is above what there is";
        ahead += found.best.order.runs_ahead() ? 1 : 0;
        by_bound += found.best.pace <= found.bounds.pace() + 1e-6 ? 1 : 0;
        // With another search for what comes second, the first one stays what it is.
        const ModuloSearch again = search_order(body, modulo_limit, true);
        EXPECT_EQ(again.best.order, found.best.order);
        EXPECT_FALSE(again.runner_up.pace < found.best.pace - 1e-6);
    }
    EXPECT_GT(ahead, 40);
    EXPECT_GT(by_bound, 40);
    EXPECT_GT(crowded, 5);
}

TEST(Modulo, ALimitIsSaidAndWhatWasFoundByThenIsTaken) {
    ModuloBody body;
    for (int o = 0; o < 9; ++o)
        body.operations.push_back(
            {.name = fmt::format("o{}", o), .own = 1.0 + o, .unit = o % 2 == 0 ? 3.0 : 0.0, .is_product = o % 2 == 0});
    for (int o = 1; o < 9; ++o) body.dependences.push_back({o - 1, o, 0, o % 2 == 1, true});
    const ModuloSearch cut = search_order(body, 3), whole = search_order(body);
    EXPECT_FALSE(cut.is_exhaustive);
    EXPECT_TRUE(broken_dependences(body, cut.best.order).empty());
    EXPECT_TRUE(whole.is_exhaustive && whole.is_proven());
    EXPECT_LE(whole.best.pace, cut.best.pace);
}

}  // namespace
}  // namespace napkin::modulo
