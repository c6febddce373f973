#include "draw/transfers_chart.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "diagram/symbol_names.hpp"
#include "draw/plot.hpp"
#include "support/text.hpp"

namespace napkin::draw {

svg::Document transfers_chart(const Derived& derived, const KernelFigures& kernel, const Extents& extents,
                              std::optional<double> core_values, const std::string& subject) {
    svg::Document out = chart_document(
        fmt::format("Transfers H against memory M of {}, kernel {}", subject, kernel.cost.kernel));
    out.width = 760, out.height = 480;
    add_title(out);
    const SymbolNames names = symbol_names(derived.diagram);
    const SymbolValues axes = axis_values(extents);
    const auto at_memory = [&](double m) {
        return [&axes, m](Symbol s) { return s == memory_symbol ? std::optional(m) : axes(s); };
    };
    // The closed form, where sizes are large against M; and the optimum at these sizes, whose groups are no larger than
    // the axes.
    OptimumSolver solver(kernel.cost);
    std::vector<std::pair<double, double>> solved;
    double compulsory = 0;
    for (const ArrayTransfers& array : kernel.cost.arrays)
        if (const auto v = array.per_launch
                               .renamed([&](Symbol s) { return s.kind == SymbolKind::group ? axis_symbol(s.axis()) : s; })
                               .evaluate(axes))
            compulsory += *v;
    for (double power = 6; power <= 26.01; power += 0.25) {
        const double m = std::exp2(power);
        const Optimum best = solver.at(at_memory(m));
        if (!best.closed) continue;
        if (const auto h = best.value(best.transfers, at_memory(m)); h && *h > 0)
            solved.emplace_back(m, std::max(*h, compulsory));
    }
    std::vector<double> xs, ys;
    for (const auto& [m, h] : solved) xs.push_back(m), ys.push_back(h);
    if (core_values) xs.push_back(*core_values);
    if (kernel.counts) {
        xs.push_back(static_cast<double>(kernel.counts->peak_memory));
        ys.push_back(static_cast<double>(kernel.counts->transfers()));
    }
    const Scale x = scale_of(xs, true, 92, 736), y = scale_of(ys, true, 410, 52);
    draw_frame(out, x, y, {"M, values a core", binary_number, true}, {"H, values a launch", short_number, false});
    Labels labels(x.from, y.to, x.to + 20, y.from);
    std::vector<std::string> said;

    std::size_t number_of_term = 0;
    for (const StandardTerm& term : kernel.optimum.standard_form()) {
        const auto alpha = kernel.optimum.value(term.alpha, axes);
        if (!alpha || *alpha <= 0) continue;
        const double beta = term.beta.to_double();
        const auto h = [&](double m) { return *alpha * std::pow(m, -beta); };
        const std::string color = series_color(1 + number_of_term++);
        const std::string alpha_text = to_string(term.alpha, names);
        const bool is_sum = alpha_text.find(" + ") != std::string::npos;
        const std::string text = beta == 0 ? alpha_text
                                           : fmt::format("{}{}{}·M^-{}", is_sum ? "(" : "", alpha_text,
                                                         is_sum ? ")" : "", to_string(term.beta));
        out.add(titled(path(clipped_line(x, y, {x.low, h(x.low)}, {x.high, h(x.high)}), "dashed thin " + stroked(color)),
                       fmt::format("{}, slope {}", text, beta == 0 ? "0" : "-" + to_string(term.beta))));
        // Where the term is within the frame, some way along it.
        for (double part = 0.12; part < 0.9; part += 0.1) {
            const double m = x.low * std::pow(x.high / x.low, part);
            if (h(m) > y.low && h(m) < y.high && labels.add(out, x(m), y(h(m)), fitted(text, 210, 10), inked(color)))
                break;
        }
        said.push_back(fmt::format("{}: slope {}", text, beta == 0 ? "0" : "-" + to_string(term.beta)));
    }
    std::vector<std::pair<double, double>> points;
    for (const auto& [m, h] : solved) points.emplace_back(x(m), y(h));
    if (!points.empty()) out.add(titled(path(path_through(points), "thick no-fill accent-0"), "H* at these sizes"));
    if (core_values) {
        out.add(
            titled(line(x(*core_values), y.from, x(*core_values), y.to, "muted no-fill dotted"), "what a core holds"));
        labels.add(out, x(*core_values), y.to + 12, fmt::format("a core: {} values", binary_number(*core_values)),
                   "text-muted");
    }
    if (kernel.counts) {
        const auto m = static_cast<double>(kernel.counts->peak_memory),
                   h = static_cast<double>(kernel.counts->transfers());
        out.add(titled(circle(x(m), y(h), 5, "fill-accent-4"), fmt::format("the sizes at hand: M = {}, H = {}", m, h)));
        labels.add(out, x(m), y(h), fmt::format("at hand: M {}, H {}", binary_number(m), short_number(h)),
                   "text-accent-4");
        said.push_back(fmt::format("at hand M = {} and H = {}", m, h));
    }
    out.add(label(92, out.height - 10,
                  "thick: H* of whole groups at these sizes; dashed: the terms of H* = Σ α·M^-β at large sizes",
                  "small text-muted"));
    if (!kernel.optimum.closed) out.add(label(x.from + 12, y.to + 20, "H* has no closed form here", "text-muted"));
    out.description = join(said, "; ") + ".";
    return out;
}

}  // namespace napkin::draw
