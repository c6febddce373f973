// Branch and bound over orders: by how many iterations each operation runs ahead, then which one is issued next.

#include "schedule/modulo.hpp"
#include "schedule/modulo_iteration.hpp"
#include "support/ids.hpp"
#include "support/ranges.hpp"

namespace napkin {
namespace {

/// Iterations by which an operation runs ahead, at most: a value waits for one iteration.
constexpr int most_ahead = 1;
/// Paces that differ by a smaller fraction are alike.
constexpr double slack = 1e-9;

class OrderSearch {
public:
    OrderSearch(const ModuloBody& body, std::int64_t limit, bool wants_runner_up)
        : body_(body),
          accessed_(body),
          limit_(limit),
          wants_runner_up_(wants_runner_up),
          n_(static_cast<int>(body.operations.size())) {
        out_.bounds = bounds_of(body);
        for (const ModuloOperation& o : body.operations) some_outlast_ |= o.is_product && o.outlasts_iteration;
    }

    ModuloSearch run() {
        consider(in_turn(body_));
        if (const ModuloOrder first = products_ahead(body_); first.runs_ahead()) consider(first);
        order_.ahead.assign(at(n_), 0);
        choose_ahead(0);
        return std::move(out_);
    }

private:
    [[nodiscard]] bool is_faster(const ModuloChoice& a, const ModuloChoice& b) const {
        const double alike = slack * (1 + a.pace);
        if (a.pace < b.pace - alike) return true;
        return a.pace <= b.pace + alike && a.registers < b.registers;
    }
    [[nodiscard]] bool is_alike(const ModuloChoice& a, const ModuloChoice& b) const {
        return !is_faster(a, b) && !is_faster(b, a);
    }

    void consider(const ModuloOrder& order) {
        ++out_.looked_at;
        ModuloChoice choice{order, pace_of(body_, order), registers_of(body_, order)};
        if (choice.registers > body_.registers) {
            ++out_.over_registers;
            return;
        }
        if (is_faster(choice, out_.best)) std::swap(choice, out_.best);
        if (!choice.order.sequence.empty() && !is_alike(choice, out_.best) && is_faster(choice, out_.runner_up))
            out_.runner_up = std::move(choice);
    }

    /// Chooses for this operation and those after it, in the order of the program. A dependence must not lead to an
    /// operation that runs in an earlier pass through the loop.
    void choose_ahead(int o) {
        if (!goes_on()) return;
        if (o == n_) {
            // Where all run ahead by as much, all run in turn, and that order was considered.
            if (n_ == 0 || std::equal(order_.ahead.begin() + 1, order_.ahead.end(), order_.ahead.begin())) return;
            order_.sequence.clear();
            AliveValues alive(body_, order_.ahead);
            issue(ModuloIteration{}, alive, 0);
            return;
        }
        for (int by = most_ahead; by >= 0; --by) {
            order_.ahead[at(o)] = by;
            const int bound_to = body_.operations[at(o)].bound_to;
            if (bound_to >= 0 && bound_to < o && order_.ahead[at(bound_to)] != by) continue;
            const bool is_kept = all_of(body_.dependences, [&](const ModuloDependence& d) {
                return std::max(d.from, d.to) != o || order_.ahead[at(d.from)] + d.distance >= order_.ahead[at(d.to)];
            });
            if (is_kept) choose_ahead(o + 1);
        }
        order_.ahead[at(o)] = 0;
    }

    [[nodiscard]] bool is_issued(int o) const { return contains(order_.sequence, o); }
    [[nodiscard]] bool may_be_next(int o) const {
        if (is_issued(o)) return false;
        for (int p = 0; p < n_ && !body_.operations[at(o)].is_product; ++p)
            if (body_.operations[at(p)].is_product && !is_issued(p)) return false;
        return all_of(body_.dependences, [&](const ModuloDependence& d) {
            const bool is_within_iteration = order_.ahead[at(d.from)] + d.distance == order_.ahead[at(d.to)];
            return d.to != o || d.from == o || !is_within_iteration || is_issued(d.from);
        });
    }

    /// The fastest that an iteration can be that begins so. What is not issued yet takes the warpgroup, and the tensor
    /// core, at least its own clocks. Where products outlast iterations, waits may be shorter, so only the loop's
    /// bounds hold.
    [[nodiscard]] double least(const ModuloIteration& turn) const {
        if (some_outlast_) return out_.bounds.pace();
        double issue = turn.now, unit = 0;
        for (int o = 0; o < n_; ++o) {
            if (is_issued(o)) continue;
            const ModuloOperation& op = body_.operations[at(o)];
            issue += op.own + (op.is_product ? 0 : op.latency_beside);
            unit += op.unit;
        }
        return std::max({issue, turn.unit_free + unit, out_.bounds.pace()});
    }
    /// Whether no end of the order makes it better than what was found.
    [[nodiscard]] bool is_cut(double pace, std::int64_t registers) const {
        if (registers > body_.registers) return true;
        const ModuloChoice choice{{}, pace, registers};
        return !is_faster(choice, wants_runner_up_ ? out_.runner_up : out_.best);
    }
    [[nodiscard]] bool goes_on() {
        if (begun_ >= limit_) out_.is_exhaustive = false;
        return begun_ < limit_;
    }

    void issue(const ModuloIteration& before, AliveValues& alive, std::int64_t registers) {
        if (static_cast<int>(order_.sequence.size()) == n_) return consider(order_);
        for (int o = 0; o < n_; ++o) {
            if (!may_be_next(o) || !goes_on()) continue;
            ++begun_;
            ModuloIteration turn = before;
            turn.issue(body_, accessed_, o, order_.ahead[at(o)]);
            const std::int64_t most = std::max(registers, alive.at_operation(o));
            order_.sequence.push_back(o);
            if (is_cut(least(turn), most)) {
                ++out_.cut;
                if (most > body_.registers) ++out_.over_registers;
            } else {
                alive.place(o);
                issue(turn, alive, most);
                alive.take_back(o);
            }
            order_.sequence.pop_back();
        }
    }

    const ModuloBody& body_;
    AccessedResults accessed_;
    std::int64_t limit_, begun_ = 0;
    bool wants_runner_up_;
    int n_;
    bool some_outlast_ = false;
    ModuloOrder order_;
    ModuloSearch out_;
};

}  // namespace

bool ModuloSearch::is_proven() const { return is_exhaustive || best.pace <= bounds.pace() * (1 + slack); }

ModuloSearch search_order(const ModuloBody& body, std::int64_t limit, bool wants_runner_up) {
    return OrderSearch(body, limit, wants_runner_up).run();
}

}  // namespace napkin
