#include "cost/point_by_point.hpp"

#include <set>
#include <utility>

#include "support/ids.hpp"
#include "support/ranges.hpp"
#include "tile/uses.hpp"

namespace napkin {
namespace {
/// A computation and where it stands in Liveness::timeline.
struct Timed {
    const Compute* compute;
    int moment;
};

class Runs {
public:
    Runs(const Diagram& diagram, const TileKernel& kernel, const Liveness& live)
        : diagram_(diagram), kernel_(kernel), live_(live) {}

    std::vector<Moment> run() {
        walk(kernel_.body);
        return std::move(out_);
    }

private:
    void walk(const std::vector<TileStatement>& list) {
        std::vector<Timed> together;
        const auto finish = [&] {
            if (!together.empty()) out_.push_back(held(std::exchange(together, {})));
        };
        for (const TileStatement& s : list) {
            if (const auto* compute = std::get_if<Compute>(&s)) {
                if (!joins(together, *compute)) finish();
                together.push_back({compute, moment_++});
            }
            if (const auto* loop = std::get_if<std::shared_ptr<const TileLoop>>(&s)) {
                finish();
                out_.push_back(live_.timeline[at(moment_++)]);
                walk((*loop)->body);
            }
        }
        finish();
    }

    [[nodiscard]] const std::vector<AxisId>& axes_of_array(VariableId v) const {
        return diagram_.array(kernel_.variables[at(v)].array).axes;
    }
    [[nodiscard]] std::set<AxisId> points(const Compute& compute) const {
        const auto& axes = axes_of_array(compute.variable);
        return {axes.begin(), axes.end()};
    }
    [[nodiscard]] bool reads_elsewhere(const Compute& compute, VariableId v) const {
        const auto elsewhere = [&](const Read* r) {
            const auto& axes = axes_of_array(v);
            bool own_point = r->indices.size() == axes.size();
            for (std::size_t i = 0; own_point && i < axes.size(); ++i) own_point = r->indices[i].is_axis(axes[i]);
            return r->array == v && !own_point;
        };
        const auto reads = reads_in_order(compute.body, compute.carry);
        return any_of(reads, elsewhere);
    }

    /// Over the same points as the run, and neither reads what the run defines at another point nor changes what it reads there.
    [[nodiscard]] bool joins(const std::vector<Timed>& run, const Compute& compute) const {
        return all_of(run, [&](const Timed& t) {
            return points(*t.compute) == points(compute) && !reads_elsewhere(compute, t.compute->variable) &&
                   !reads_elsewhere(*t.compute, compute.variable);
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
        const auto begins = [&](int v) { return variable(v).first >= first; };
        const auto ends = [&](int v) { return variable(v).last <= last; };
        const Moment& end = live_.timeline[at(last)];
        for (const int v : std::set<int>(alive)) {
            const CoreVariable& tile = variable(v);
            if (begins(v) && ends(v) && !tile.loaded && !tile.stored && !tile.is_state)
                alive.erase(v);
            else if (begins(v) && !tile.loaded)
                defined.insert(v);
            else if (ends(v) && tile.loop == end.loop && read_at_own_points(run, tile))
                dying.insert(v);
        }
        for (const int v : defined) {
            const auto place = find_if(dying, [&](int old) {
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
        const auto& axes = axes_of_array(tile.variable);
        return std::set<AxisId>(axes.begin(), axes.end()) == points(*run.front().compute) &&
               none_of(run, [&](const Timed& t) { return reads_elsewhere(*t.compute, tile.variable); });
    }

    const Diagram& diagram_;
    const TileKernel& kernel_;
    const Liveness& live_;
    int moment_ = 0;
    std::vector<Moment> out_;
};

}  // namespace

std::vector<Moment> held_point_by_point(const Diagram& diagram, const TileKernel& kernel, const Liveness& live) {
    return Runs(diagram, kernel, live).run();
}

}  // namespace napkin
