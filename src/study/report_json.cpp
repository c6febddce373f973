// The answers to questions as JSON.
#include "cost/footprint.hpp"
#include "cost/report.hpp"
#include "diagram/flat_axes.hpp"
#include "machine/peaks.hpp"
#include "study/report.hpp"
#include "support/json.hpp"

namespace napkin {
namespace {

using nlohmann::json;

json footprint_json(const Footprint& f) {
    return {
        {"arrays", f.arrays}, {"inputs_bytes", f.inputs}, {"outputs_bytes", f.outputs}, {"intermediates_bytes", f.between}};
}

/// Transactions of a warp whose threads run along an axis, for every array in memory.
json coalescing(const Compilation& c) {
    json out = json::array();
    if (c.machine.kind != MachineKind::gpu) return out;
    for (const auto* arrays : {&c.diagram.inputs, &c.diagram.outputs})
        for (const ArrayId id : *arrays) {
            const Array& array = c.diagram.array(id);
            for (const AxisId axis : axes_of_text(c.diagram)) {
                std::int64_t stride = 0, step = 1;
                for (auto a = array.axes.rbegin(); a != array.axes.rend(); ++a) {
                    if (*a == axis) stride = step;
                    step *= c.extents[*a];
                }
                out.push_back({{"array", array.name},
                               {"axis", c.diagram.axis(axis).name},
                               {"transactions", warp_transactions(c.machine, stride, bytes(array.type))}});
            }
        }
    return out;
}

}  // namespace

json to_json(const CostStudy& study) {
    const Compilation& c = study.compilation;
    json out = cost_json(c.derived, numbers_of(study), study.tiles);
    out["diagram"] = c.diagram.name;
    if (!study.summary) return out;
    const CostSummary& s = *study.summary;
    out["machine"] = s.machine;
    out["time"] = {
        {"seconds", s.seconds}, {"is_planned", s.no_plan.empty()}, {"bound_s", s.bound_s}, {"bound_by", s.bound_by}};
    if (!s.no_plan.empty()) out["time"]["no_plan"] = s.no_plan;
    if (!s.unused_instructions.empty()) out["time"]["unused_instructions"] = s.unused_instructions;
    out["flops"] = s.flops;
    out["transfers_bytes"] = s.transfers_bytes;
    out["flop_per_byte"] = s.flops / s.transfers_bytes;
    if (s.energy_j) out["energy_j"] = *s.energy_j;
    if (s.price_usd) out["price_usd"] = *s.price_usd;
    out["footprint"] = footprint_json(footprint(c.derived, c.extents));
    out["coalescing"] = coalescing(c);
    out["ridges"] = json::array();
    for (const Ridge& ridge : ridges(c.machine))
        out["ridges"].push_back({{"unit", ridge.unit},
                                 {"type", std::string(name(ridge.type))},
                                 {"level", c.machine.levels[ridge.level].name},
                                 {"flop_per_byte", ridge.flop_per_byte}});
    return out;
}

nlohmann::json figures_json(const Outcome& outcome) {
    if (!outcome.figures) return {{"error", {{"code", outcome.why.code}, {"message", outcome.why.message}}}};
    const CostSummary& f = *outcome.figures;
    nlohmann::json json = {{"machine", f.machine},
                           {"seconds", f.seconds},
                           {"is_planned", f.no_plan.empty()},
                           {"bound_s", f.bound_s},
                           {"bound_by", f.bound_by},
                           {"kernels", f.num_kernels},
                           {"rates", f.rates.text()},
                           {"transfers_bytes", f.transfers_bytes},
                           {"flops", f.flops},
                           {"flop_per_byte", f.flop_per_byte()},
                           {"peak_share", f.peak_share()},
                           {"footprint_bytes", f.footprint_bytes}};
    json["energy_j"] = f.energy_j ? nlohmann::json(*f.energy_j) : nlohmann::json();
    json["price_usd"] = f.price_usd ? nlohmann::json(*f.price_usd) : nlohmann::json();
    return json;
}

json to_json(const Comparison& c) {
    const auto winner = [&](int who) {
        return who == all_equal ? json("equal") : who == nobody ? json() : json(who == 0 ? "left" : "right");
    };
    json out;
    out["sizes"] = json::object();
    for (const TiedAxes& group : c.sizes)
        for (const std::string& axis : group.axes) out["sizes"][axis] = group.size;
    constexpr const char* names[] = {"left", "right"};
    for (std::size_t i = 0; i < 2; ++i) {
        out[names[i]] = figures_json(c.outcomes[i]);
        out[names[i]]["label"] = c.subjects[i].label;
        out[names[i]]["diagram"] = c.subjects[i].diagram.name;
        out[names[i]]["file"] = c.subjects[i].query.source->name;
        for (const auto& [axis, size] : c.subjects[i].fixed) out[names[i]]["sizes"][axis] = size;
    }
    for (const Criterion criterion : all_criteria)
        out["winner"][std::string(name(criterion))] = winner(best_of(c.outcomes, criterion));
    if (c.outcomes[0].figures && c.outcomes[1].figures)
        out["time_ratio"] = c.outcomes[1].figures->seconds / c.outcomes[0].figures->seconds;
    out["changes"] = json::array();
    for (const WinnersAlong& along : c.along) {
        json flips = json::array();
        for (std::size_t i = 0; i < along.flips.size(); ++i) {
            flips.push_back({{"at", along.flips[i].at},
                             {"before", winner(along.flips[i].before)},
                             {"after", winner(along.flips[i].after)}});
            if (!along.why[i].empty()) flips.back()["why"] = along.why[i];
        }
        out["changes"].push_back({{"axes", along.axes.axes},
                                  {"size", along.axes.size},
                                  {"from", along.from},
                                  {"to", along.to},
                                  {"winner_from", winner(along.at_from)},
                                  {"flips", flips}});
    }
    return out;
}

json to_json(const Ranking& r) {
    json out;
    out["diagram"] = r.subjects.front().diagram.name;
    out["sizes"] = json::object();
    for (const TiedAxes& group : r.sizes)
        for (const std::string& axis : group.axes) out["sizes"][axis] = group.size;
    out["results"] = json::array();
    for (const std::size_t i : r.order) {
        json entry = figures_json(r.outcomes[i]);
        entry["label"] = r.subjects[i].label;
        out["results"].push_back(std::move(entry));
    }
    for (const Criterion criterion : all_criteria) {
        const int best = best_of(r.outcomes, criterion);
        auto& entry = out["best"][std::string(name(criterion))];
        if (best >= 0) entry = r.subjects[at(best)].label;
        if (best == all_equal) entry = "equal";
    }
    return out;
}

json to_json(const Sweep& s) {
    const auto winner = [&](int who) {
        return who == nobody ? json() : who == all_equal ? json("equal") : json(s.subjects[at(who)].label);
    };
    json out;
    out["subjects"] = json::array();
    for (const Subject& subject : s.subjects)
        out["subjects"].push_back({{"label", subject.label}, {"diagram", subject.diagram.name}});
    out["axes"] = json::array();
    for (const SweepAxis& axis : s.axes) out["axes"].push_back({{"axes", axis.axes}, {"sizes", axis.sizes}});
    out["points"] = json::array();
    for (const SweepPoint& point : s.points) {
        json entry = {{"sizes", sizes_at(s.axes, point.sizes)}, {"results", json::array()}};
        for (const Outcome& outcome : point.outcomes) entry["results"].push_back(figures_json(outcome));
        for (const Criterion criterion : all_criteria)
            if (s.subjects.size() > 1)
                entry["best"][std::string(name(criterion))] = winner(best_of(point.outcomes, criterion));
        out["points"].push_back(std::move(entry));
    }
    out["flips"] = json::array();
    for (const BestAlong& along : s.best) {
        int before = along.at_first;
        for (const SweepChange<int>& change : along.changes) {
            json entry = {{"by", std::string(name(along.criterion))},
                          {"axes", s.axes.back().axes},
                          {"at", change.at},
                          {"not_at", change.after},
                          {"before", winner(std::exchange(before, change.what))},
                          {"after", winner(change.what)},
                          {"sizes", json::object()}};
            for (std::size_t i = 0; i < along.others.size(); ++i)
                for (const std::string& axis : s.axes[i].axes) entry["sizes"][axis] = along.others[i];
            out["flips"].push_back(std::move(entry));
        }
    }
    out["bounds"] = json::array();
    for (const BoundAlong& along : s.bounds) {
        json entry = {{"axes", s.axes.back().axes},
                      {"sizes", json::object()},
                      {"at_first", along.at_first},
                      {"changes", json::array()}};
        for (std::size_t i = 0; i < along.others.size(); ++i)
            for (const std::string& axis : s.axes[i].axes) entry["sizes"][axis] = along.others[i];
        for (const SweepChange<std::string>& change : along.changes)
            entry["changes"].push_back({{"at", change.at}, {"not_at", change.after}, {"bound_by", change.what}});
        out["bounds"].push_back(std::move(entry));
    }
    return out;
}

}  // namespace napkin
