#include "cost/point_by_point.hpp"

#include <algorithm>
#include <set>

#include "algebra/expr_walk.hpp"
#include "support/ids.hpp"

namespace napkin {
namespace {
/// A statement and where it stands in Liveness::timeline.
struct Timed {
    const Statement* statement;
    int moment;
};

class Runs {
public:
    Runs(const Diagram& diagram, const Kernel& kernel, const Liveness& live)
        : diagram_(diagram), kernel_(kernel), live_(live) {}

    std::vector<Moment> run() {
        std::vector<Moment> out;
        int moment = 0;
        for (const Stage& stage : kernel_.stages) {
            const auto* loop = std::get_if<Loop>(&stage);
            if (loop) out.push_back(live_.timeline[at(moment++)]);
            std::vector<Timed> together;
            for (const Statement& s : loop ? loop->body : std::get<Block>(stage).statements) {
                if (!together.empty() && !joins(together, s)) out.push_back(held(std::exchange(together, {})));
                together.push_back({&s, moment++});
            }
            if (!together.empty()) out.push_back(held(together));
        }
        return out;
    }

private:
    [[nodiscard]] std::set<AxisId> points(const Statement& s) const {
        const auto& axes = diagram_.array(s.target).axes;
        return {axes.begin(), axes.end()};
    }
    /// Calls f(read, whether it is at the array's own point).
    template <class F>
    void for_each_read(const Statement& s, F f) const {
        const auto look = [&](const Expr& e) {
            const auto* r = as<Read>(e);
            if (!r) return;
            const auto& axes = diagram_.array(r->array).axes;
            bool own_point = true;
            for (std::size_t i = 0; i < axes.size(); ++i) own_point = own_point && r->indices[i].is_axis(axes[i]);
            f(*r, own_point);
        };
        visit(s.body, look);
        if (s.carry) visit(s.carry, look);
    }
    [[nodiscard]] bool reads_elsewhere(const Statement& s, ArrayId array) const {
        bool found = false;
        for_each_read(s, [&](const Read& r, bool own_point) { found |= r.array == array && !own_point; });
        return found;
    }

    /// Over the same points as the run, and neither reads what the run defines at another point nor changes what it reads there.
    [[nodiscard]] bool joins(const std::vector<Timed>& run, const Statement& s) const {
        return std::all_of(run.begin(), run.end(), [&](const Timed& t) {
            return points(*t.statement) == points(s) && !reads_elsewhere(s, t.statement->target) &&
                   !reads_elsewhere(*t.statement, s.target);
        });
    }

    [[nodiscard]] const CoreVariable& variable(int v) const { return live_.variables[at(v)]; }
    [[nodiscard]] std::int64_t type_bytes(int v) const { return bytes(diagram_.array(variable(v).array).type); }

    [[nodiscard]] Moment held(const std::vector<Timed>& run) const {
        const int first = run.front().moment, last = run.back().moment;
        std::set<int> alive, defined, dying;
        for (const Timed& t : run) {
            const auto& here = live_.timeline[at(t.moment)].alive;
            alive.insert(here.begin(), here.end());
        }
        const auto begins = [&](int v) { return live_.lives[at(v)].first >= first; };
        const auto ends = [&](int v) { return live_.lives[at(v)].last <= last; };
        const Moment& end = live_.timeline[at(last)];
        for (const int v : std::set<int>(alive)) {
            const CoreVariable& tile = variable(v);
            if (begins(v) && ends(v) && !tile.loaded && !tile.stored && !tile.is_state)
                alive.erase(v);
            else if (begins(v) && !tile.loaded)
                defined.insert(v);
            else if (ends(v) && (!end.in_body || tile.loop == end.stage) && read_at_own_points(run, tile))
                dying.insert(v);
        }
        for (const int v : defined) {
            const auto place = std::find_if(dying.begin(), dying.end(), [&](int old) {
                return variable(old).loop == variable(v).loop && axes_of(variable(old).dims) == axes_of(variable(v).dims);
            });
            if (place == dying.end()) continue;
            alive.erase(type_bytes(v) <= type_bytes(*place) ? v : *place);
            dying.erase(place);
        }
        Moment moment = end;
        moment.alive.assign(alive.begin(), alive.end());
        return moment;
    }

    /// Whether the run reads the array's own points alone, which then are those that it writes.
    [[nodiscard]] bool read_at_own_points(const std::vector<Timed>& run, const CoreVariable& tile) const {
        const auto& axes = diagram_.array(tile.array).axes;
        return std::set<AxisId>(axes.begin(), axes.end()) == points(*run.front().statement) &&
               std::none_of(run.begin(), run.end(),
                            [&](const Timed& t) { return reads_elsewhere(*t.statement, tile.array); });
    }

    const Diagram& diagram_;
    const Kernel& kernel_;
    const Liveness& live_;
};

}  // namespace

std::vector<Moment> held_point_by_point(const Diagram& diagram, const Kernel& kernel, const Liveness& live) {
    return Runs(diagram, kernel, live).run();
}

}  // namespace napkin
