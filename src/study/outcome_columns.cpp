#include "study/outcome_columns.hpp"

#include <fmt/format.h>

#include "support/ids.hpp"
#include "support/ranges.hpp"

namespace napkin {

using report::Json;
using report::Value;

const std::vector<report::ColumnOf<Outcome>>& outcome_columns() {
    static const std::vector<report::ColumnOf<Outcome>> columns = [] {
        std::vector<report::ColumnOf<Outcome>> out;
        using Of = const CostSummary&;
        const auto add = [&](const char* path, const char* head, Value (*value)(Of)) {
            out.push_back(
                {path, head, [value](const Outcome& o) { return o.figures ? value(*o.figures) : report::shown(); }});
        };
        static constexpr auto measure = [](const std::optional<double>& value, double by, const char* unit) {
            return value ? Value{*value, fmt::format("{:.3g} {}", *value * by, unit)} : Value{nullptr, "–"};
        };
        add("machine", "", [](Of f) { return report::words(f.machine); });
        add("seconds", "time", [](Of f) { return report::seconds(f.seconds); });
        add("is_planned", "", [](Of f) { return report::data(f.no_plan.empty()); });
        add("bound_s", "bound", [](Of f) { return report::seconds(f.bound_s); });
        add("bound_by", "bound by", [](Of f) { return report::words(f.bound_by); });
        add("kernels", "kernels", [](Of f) { return report::whole(static_cast<std::int64_t>(f.num_kernels)); });
        add("transfers_bytes", "transfers", [](Of f) { return report::bytes(f.transfers_bytes); });
        add("flops", "FLOPs", [](Of f) { return report::operations(f.flops); });
        add("flop_per_byte", "FLOP a byte", [](Of f) { return report::number(f.flop_per_byte()); });
        add("peak_share", "of peak", [](Of f) { return report::percent(f.peak_share()); });
        add("footprint_bytes", "arrays in memory", [](Of f) { return report::bytes(f.footprint_bytes); });
        add("energy_j", "energy", [](Of f) { return measure(f.energy_j, 1, "J"); });
        add("price_usd", "a million runs", [](Of f) { return measure(f.price_usd, 1e6, "USD"); });
        add("rates", "rates", [](Of f) { return report::words(f.rates.text()); });
        out.push_back({"error", "", [](const Outcome& o) {
                           return o.figures ? report::shown("")
                                            : Value{{{"code", o.why.code}, {"message", o.why.message}}, o.why.message};
                       }});
        return out;
    }();
    return columns;
}

void add_columns(report::Table& table, const std::string& at, const std::string& label, bool shown) {
    for (const auto& [path, head, value] : outcome_columns())
        table.columns.push_back({at + path, shown ? head : "", label.empty() ? "" : label + " " + path});
}

void add_values(std::vector<Value>& row, const Outcome& outcome) {
    for (const auto& column : outcome_columns()) row.push_back(column.value(outcome));
}

Json winner_json(int winner, const std::vector<std::string>& names) {
    return winner == nobody ? Json() : winner == all_equal ? Json("equal") : Json(names[at(winner)]);
}

std::string winner_text(int winner, const std::vector<std::string>& labels) {
    return winner == nobody ? "none" : winner == all_equal ? "equal" : labels[at(winner)];
}

void add_best(report::Section& out, const std::string& path, const std::vector<Outcome>& outcomes,
              const std::vector<std::string>& labels, const std::vector<std::string>& names) {
    for (const Criterion criterion : all_criteria) {
        const int best = best_of(outcomes, criterion);
        std::string text = best == nobody ? "" : winner_text(best, labels);
        if (best >= 0) text += fmt::format(" (rates {})", outcomes[at(best)].figures->rates.text());
        out.line({{fmt::format("{}/{}", path, name(criterion)),
                   fmt::format("least {}:", name(criterion)),
                   {winner_json(best, names), text}}});
    }
}

Json sizes_json(const std::vector<TiedAxes>& tied) {
    Json out = Json::object();
    for (const TiedAxes& group : tied)
        for (const std::string& axis : group.axes) out[axis] = group.size;
    return out;
}

std::vector<std::string> labels_of(const std::vector<Subject>& subjects) {
    return mapped<std::string>(subjects, [](const Subject& subject) { return subject.label; });
}

}  // namespace napkin
