#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "derive/normal_form.hpp"
#include "derive/replay.hpp"
#include "support/ranges.hpp"

namespace napkin {
namespace {

/// A reduction that consumes an array's values, directly or through maps.
struct Consumed {
    std::vector<AxisId> axes;
    int pass = 0;  ///< PassesOfReductions
    friend bool operator==(const Consumed&, const Consumed&) = default;
    friend bool operator<(const Consumed& a, const Consumed& b) {
        return std::tie(a.axes, a.pass) < std::tie(b.axes, b.pass);
    }
};

/// The pass over its axes in which each reduction happens, from 1. One that starts from another over the same axes
/// shares its pass, as the calculus computes them together. A reduction over other axes in between needs the pass
/// before it to be complete.
class PassesOfReductions {
public:
    explicit PassesOfReductions(const std::vector<Equation>& equations) {
        for (const Equation& e : equations) {
            Passes passes;
            for (const ArrayId r : read_arrays(e.body))
                if (const auto known = of_array_.find(r); known != of_array_.end())
                    for (const auto& [axes, pass] : known->second) passes[axes] = std::max(passes[axes], pass);
            if (e.reduce) {
                for (auto& [axes, pass] : passes) pass.is_complete |= axes != e.reduce_axes;
                Pass& own = passes[e.reduce_axes];
                own = {own.number + (own.number == 0 || own.is_complete ? 1 : 0), false};
            }
            of_array_[e.target] = std::move(passes);
        }
    }
    [[nodiscard]] int at(const Equation& e) const { return of_array_.at(e.target).at(e.reduce_axes).number; }

private:
    struct Pass {
        int number = 0;
        bool is_complete = false;
        auto operator<=>(const Pass&) const = default;
    };
    using Passes = std::map<std::vector<AxisId>, Pass>;
    std::map<ArrayId, Passes> of_array_;
};

/// Gives equations a version for each way in which readers consume them. A row's sum over the keys and a key's sum over
/// the rows each compute the weights anew. So does a second pass over the keys, which begins where the first one ends.
/// So these need not lie in memory between two kernels.
class ComputeAgain {
public:
    explicit ComputeAgain(Diagram& diagram) : d_(diagram), passes_(diagram.equations) {}

    void run(std::vector<DerivationStep>& steps) {
        for (auto e = d_.equations.rbegin(); e != d_.equations.rend(); ++e) note_readers(*e);
        std::set<std::string> again;
        for (const auto& [array, ways] : readers_)
            if (ways.size() > 1) again.insert(d_.array(array).name);
        if (again.empty()) return;
        const std::vector<Equation> before = d_.equations;
        const std::size_t num_arrays = d_.arrays.size();
        std::vector<std::vector<Equation>> all;
        for (const Equation& e : before) all.push_back(versions(e));
        d_.equations = ordered(all);
        steps.push_back({"compute again", "compute once", "an equation's values are the same each time",
                         fmt::format("{} {} computed for each pass that consumes {}", fmt::join(again, ", "),
                                     again.size() > 1 ? "are" : "is", again.size() > 1 ? "them" : "it"),
                         before.front().range, edit_between(before, num_arrays, d_)});
    }

private:
    void note_readers(const Equation& e) {
        visit(e.body, [&](const Expr& node) {
            const auto* r = as<Read>(node);
            if (!r || d_.array(r->array).role != ArrayRole::temporary) return;
            for (const Consumed& consumed : consumed_by(e, *r)) {
                std::vector<Consumed>& known = readers_[r->array];
                std::erase(known, consumed);
                known.push_back(consumed);
            }
        });
    }

    /// What becomes of the values that an equation reads.
    std::vector<Consumed> consumed_by(const Equation& e, const Read& r) {
        std::vector<AxisId> reduced;
        for (const AxisId axis : e.reduce_axes)
            if (depends_on(r.indices, axis)) reduced.push_back(axis);
        if (!reduced.empty()) return {{reduced, passes_.at(e)}};
        std::vector<Consumed> out = readers_[e.target];
        std::erase_if(out, [&](const Consumed& consumed) {
            return any_of(consumed.axes, [&](AxisId axis) { return !depends_on(r.indices, axis); });
        });
        return out;
    }

    /// The array's version for readers that consume these axes.
    [[nodiscard]] ArrayId version(ArrayId id, const Consumed& consumed) const {
        const auto found = versions_.find({id, consumed});
        return found == versions_.end() ? id : found->second;
    }

    /// The equation once for each way in which its values are consumed, the earliest reader first. The first one keeps
    /// its target.
    std::vector<Equation> versions(const Equation& e) {
        const std::vector<Consumed> ways = d_.array(e.target).role == ArrayRole::temporary ? readers_[e.target]
                                                                                           : std::vector<Consumed>{};
        std::vector<Equation> out;
        for (std::size_t i = 0; i < std::max<std::size_t>(1, ways.size()); ++i) {
            Equation next = e;
            const Consumed way = ways.empty() ? Consumed{} : ways[ways.size() - 1 - i];
            if (i > 0) {
                const Array array = d_.array(e.target);
                next.target = add_array(d_, array.name, array.axes, array.type, array.role);
                d_.arrays[next.target].range = array.range;
            }
            if (!way.axes.empty()) versions_[{e.target, way}] = next.target;
            next.body = transform(e.body, [&](const Expr& node) -> Expr {
                const auto* r = as<Read>(node);
                if (!r) return node;
                const std::vector<Consumed> here = consumed_by(e, *r);
                const bool passes_on = contains(here, way);
                return read(version(r->array, passes_on ? way : here.empty() ? way : here[0]), r->indices);
            });
            out.push_back(std::move(next));
        }
        return out;
    }

    /// First versions stay in place. Any other stands right before what reads it, so that one kernel can compute both.
    static std::vector<Equation> ordered(const std::vector<std::vector<Equation>>& versions) {
        std::map<ArrayId, std::size_t> first_reader;  // of the versions but the first
        for (const std::vector<Equation>& all : versions)
            for (std::size_t k = 1; k < all.size(); ++k) first_reader[all[k].target] = versions.size();
        std::vector<std::vector<Equation>> placed(versions.size());
        for (std::size_t i = versions.size(); i-- > 0;)
            for (const Equation& e : versions[i]) {
                const auto known = first_reader.find(e.target);
                const std::size_t place = known == first_reader.end() ? i : known->second;
                for (const ArrayId r : read_arrays(e.body))
                    if (const auto copy = first_reader.find(r); copy != first_reader.end())
                        copy->second = std::min(copy->second, place);
                placed.at(place).push_back(e);
            }
        std::vector<Equation> out;
        for (const std::vector<Equation>& there : placed) out.insert(out.end(), there.rbegin(), there.rend());
        return out;
    }

    Diagram& d_;
    PassesOfReductions passes_;
    std::map<ArrayId, std::vector<Consumed>> readers_;  ///< the earliest reader last
    std::map<std::pair<ArrayId, Consumed>, ArrayId> versions_;
};

}  // namespace

void compute_again(Diagram& diagram, std::vector<DerivationStep>& steps) { ComputeAgain(diagram).run(steps); }

}  // namespace napkin
