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
    Runs(const Diagram& diagram, const TileKernel& kernel, const Liveness& live, HeldTiles held)
        : diagram_(diagram), kernel_(kernel), live_(live), held_(held) {}

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
        return diagram_.array(kernel_.variables[v].array).axes;
    }
    [[nodiscard]] std::set<AxisId> points(const Compute& compute) const {
        const auto& axes = axes_of_array(compute.variable);
        return {axes.begin(), axes.end()};
    }
    /// The axes that all of the run's points have.
    [[nodiscard]] std::set<AxisId> common_axes(const std::vector<Timed>& run) const {
        std::set<AxisId> axes = points(*run.front().compute);
        for (const Timed& t : run) {
            const std::set<AxisId> here = points(*t.compute);
            std::erase_if(axes, [&](AxisId axis) { return !here.contains(axis); });
        }
        return axes;
    }
    /// Whether the computation reads the variable in another row than the one that it is at.
    [[nodiscard]] bool reads_elsewhere(const Compute& compute, VariableId v, const std::set<AxisId>& row_axes) const {
        const auto elsewhere = [&](const Read* r) {
            const auto& axes = axes_of_array(v);
            bool own_row = r->indices.size() == axes.size();
            for (std::size_t i = 0; own_row && i < axes.size(); ++i)
                own_row = !row_axes.contains(axes[i]) || r->indices[i].is_axis(axes[i]);
            return r->variable() == v && !own_row;
        };
        const auto reads = reads_in_order(compute.body, compute.carry);
        return any_of(reads, elsewhere);
    }

    /// Over the run's points or rows, and neither reads what the run defines in another row nor changes what it reads
    /// there.
    [[nodiscard]] bool joins(std::vector<Timed> run, const Compute& compute) const {
        if (run.empty()) return true;
        const auto other_points = [&](const Timed& t) { return points(*t.compute) != points(compute); };
        if (held_ == HeldTiles::point_by_point && any_of(run, other_points)) return false;
        if (held_ == HeldTiles::rows_of_a_load && ends_a_load(run.back().moment)) return false;
        run.push_back({&compute, moment_});
        const std::set<AxisId> rows = common_axes(run);
        run.pop_back();
        // Without an axis there is one point, which statements over one point share.
        if (rows.empty() && any_of(run, other_points)) return false;
        return none_of(run, [&](const Timed& t) {
            return reads_elsewhere(compute, t.compute->variable, rows) ||
                   reads_elsewhere(*t.compute, compute.variable, rows);
        });
    }

    /// Whether something that was loaded is freed behind the moment.
    [[nodiscard]] bool ends_a_load(int moment) const {
        return any_of(live_.timeline[at(moment)].alive,
                      [&](int v) { return variable(v).loaded && variable(v).last == moment; });
    }

    [[nodiscard]] const CoreVariable& variable(int v) const { return live_.variables[at(v)]; }
    [[nodiscard]] std::int64_t type_bytes(int v) const { return bytes(diagram_.array(variable(v).array).type); }

    [[nodiscard]] Moment held(const std::vector<Timed>& run) const {
        const int first = run.front().moment, last = run.back().moment;
        const std::set<AxisId> row_axes = common_axes(run);
        std::set<int> alive, defined, dying, single, rows;
        for (const Timed& t : run) {
            const auto& here = live_.timeline[at(t.moment)].alive;
            alive.insert(here.begin(), here.end());
        }
        const auto begins = [&](int v) { return variable(v).first >= first; };
        const auto ends = [&](int v) { return variable(v).last <= last; };
        const Moment& end = live_.timeline[at(last)];
        for (const int v : alive) {
            const CoreVariable& tile = variable(v);
            if (begins(v) && ends(v) && !tile.is_state && (!tile.loaded || loaded_by_rows(tile, row_axes)))
                (axes_of(tile.dims).size() == row_axes.size() ? single : rows).insert(v);
            else if (begins(v) && !tile.loaded)
                defined.insert(v);
            else if (ends(v) && tile.loop == end.loop && read_at_own_points(run, tile))
                dying.insert(v);
        }
        // A run that does nothing but read and write points has one of those that it writes at hand.
        const bool has_more = alive.size() > single.size();
        for (const int v : single)
            if (has_more || !variable(v).stored) alive.erase(v);
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
        moment.rows.assign(rows.begin(), rows.end());
        moment.row_axes.assign(row_axes.begin(), row_axes.end());
        return moment;
    }

    /// Whether all of the run is over the array's points and reads each at its own alone: then what it writes there
    /// takes the place.
    [[nodiscard]] bool read_at_own_points(const std::vector<Timed>& run, const CoreVariable& tile) const {
        const auto& list = axes_of_array(tile.variable);
        const std::set<AxisId> axes(list.begin(), list.end());
        return all_of(run, [&](const Timed& t) {
            return points(*t.compute) == axes && !reads_elsewhere(*t.compute, tile.variable, axes);
        });
    }
    /// Whether each value of the tile is for one row, so that it can come when the run is there. A stream's chunk comes
    /// as a whole, as its size says.
    static bool loaded_by_rows(const CoreVariable& tile, const std::set<AxisId>& row_axes) {
        if (tile.loop >= 0) return false;
        std::set<AxisId> seen;
        for (const Index& index : tile.dims)
            for (const AxisId axis : index.axes())
                if (row_axes.contains(axis) && (!index.is_axis(axis) || !seen.insert(axis).second)) return false;
        return seen.size() == row_axes.size();
    }

    const Diagram& diagram_;
    const TileKernel& kernel_;
    const Liveness& live_;
    HeldTiles held_;
    int moment_ = 0;
    std::vector<Moment> out_;
};

}  // namespace

std::vector<Moment> held_point_by_point(const Diagram& diagram, const TileKernel& kernel, const Liveness& live,
                                        HeldTiles held) {
    return Runs(diagram, kernel, live, held).run();
}

}  // namespace napkin
