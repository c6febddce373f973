#include "draw/measured_chart.hpp"
#include "support/json.hpp"

#include <fmt/format.h>

#include <cmath>

#include "draw/plot.hpp"
#include "support/numbers.hpp"
#include "support/ranges.hpp"
#include "support/text.hpp"

namespace napkin::draw {
namespace {

using nlohmann::json;

/// What tells an entry from the others: its words and whole numbers, in the document's order.
std::string name_of_entry(const json& entry) {
    std::vector<std::string> parts;
    for (const auto& [key, value] : entry.items()) {
        if (value.is_string() && value.get_ref<const std::string&>().size() < 40)
            parts.push_back(value.get<std::string>());
        else if (value.is_number_integer())
            parts.push_back(fmt::format("{} {}", key, value.get<std::int64_t>()));
        if (parts.size() == 4) break;
    }
    return join(parts, ", ");
}

double number_at(const json& entry, const char* key) {
    const auto found = entry.find(key);
    return found != entry.end() && found->is_number() ? found->get<double>() : 0;
}

/// Whatever is deep in the document and has both figures.
void gather_points(const json& at, std::vector<MeasuredPoint>& out) {
    if (at.is_object()) {
        const double predicted = number_at(at, "predicted_seconds");
        double measured = number_at(at, "seconds");
        if (measured <= 0) measured = number_at(at, "measured_seconds");
        if (predicted > 0 && measured > 0) out.push_back({name_of_entry(at), predicted, measured});
    }
    if (at.is_structured())
        for (const json& child : at) gather_points(child, out);
}

}  // namespace

Result<std::vector<MeasuredPoint>> measured_points(const std::string& file, const std::string& text) {
    const json document = json::parse(text, nullptr, false);
    std::vector<MeasuredPoint> out;
    if (!document.is_discarded()) {
        gather_points(document, out);
        // A run has its prediction beside its time.
        if (out.empty() && document.is_object() && document.contains("predicted") && document["predicted"].is_object())
            if (const double predicted = number_at(document["predicted"], "seconds"),
                measured = number_at(document, "seconds");
                predicted > 0 && measured > 0)
                out.push_back({document.value("diagram", ""), predicted, measured});
    }
    if (!out.empty()) return out;
    return Diagnostic{.code = "not-a-measurement",
                      .range = {},
                      .message = fmt::format("'{}' {}", file,
                                             document.is_discarded() ? "is no JSON" : "has no run with its prediction"),
                      .expected = "what `napkin run --json` prints, or entries with predicted_seconds and seconds",
                      .hint = "",
                      .notes = {}};
}

svg::Document measured_chart(const std::vector<MeasuredPoint>& points, const std::string& subject) {
    svg::Document out = chart_document(fmt::format("Predicted against measured: {}", subject));
    out.width = 560, out.height = 560;
    add_title(out);
    std::vector<double> both, ratios;
    for (const MeasuredPoint& p : points) {
        both.insert(both.end(), {p.predicted_s, p.measured_s});
        ratios.push_back(std::max(p.predicted_s / p.measured_s, p.measured_s / p.predicted_s));
    }
    const Scale x = scale_of(both, true, 92, 536), y = scale_of(both, true, 496, 62);
    const auto seconds = [](double v) { return seconds_text(v); };
    draw_frame(out, x, y, {"predicted", seconds, false}, {"measured", seconds, false});
    out.add(path(clipped_line(x, y, {x.low, x.low}, {x.high, x.high}), "muted no-fill thick"));
    for (const double off : {1.5, 1 / 1.5})
        out.add(path(clipped_line(x, y, {x.low, x.low * off}, {x.high, x.high * off}), "muted no-fill dashed"));
    Labels labels(x.from, y.to, x.to, y.from);
    for (const MeasuredPoint& p : points) labels.keep(x(p.predicted_s) - 4, y(p.measured_s) - 4, 8, 8);
    for (const MeasuredPoint& p : points) {
        const double off = p.measured_s / p.predicted_s;
        out.add(titled(
            circle(x(p.predicted_s), y(p.measured_s), 4, tint(off > 1.5 || off < 1 / 1.5 ? "accent-4" : "accent-0")),
            fmt::format("{}: predicted {}, measured {} ({:.2f} times)", p.name, seconds_text(p.predicted_s),
                        seconds_text(p.measured_s), off)));
        if (points.size() <= 12 || off > 1.5 || off < 1 / 1.5)
            labels.add(out, x(p.predicted_s), y(p.measured_s), fitted(p.name, 170, 10), "");
    }
    sort(ratios);
    const std::string figures = ratios.empty()
                                    ? "no runs"
                                    : fmt::format("{} runs; off by a factor of {:.2f} in the median, {:.2f} at most",
                                                  ratios.size(), ratios[ratios.size() / 2], ratios.back());
    out.add(label(16, 46, fitted(figures, out.width - 32), "text-muted"));
    out.description = figures + ".";
    return out;
}

}  // namespace napkin::draw
