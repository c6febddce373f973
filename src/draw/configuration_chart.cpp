#include "draw/configuration_chart.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "steps/report.hpp"
#include "support/text.hpp"

namespace napkin::draw {

double bytes_of_block(const ConfigurationRow& row, std::int64_t num_warpgroups) {
    return static_cast<double>(row.block_bytes) + static_cast<double>(row.warpgroup_bytes * num_warpgroups);
}

svg::Document configuration_chart(const KernelSteps& kernel, const std::string& subject) {
    constexpr double row_height = 21, top = 74, bars_at = 560, bars_width = 210;
    const auto color = [](HeldAt at) {
        return at == HeldAt::memory ? "level-1" : at == HeldAt::fragments ? "level-3" : "level-2";
    };
    svg::Document out = chart_document(fmt::format("Configuration of {}, kernel {}", subject, kernel.kernel));
    out.width = 800;
    add_title(out);
    const std::vector<std::pair<double, std::string>> heads = {
        {16, "variable"}, {232, "size"}, {320, "type"}, {440, "M_TB bytes"}, {545, "M_WG bytes"}};
    for (std::size_t i = 0; i < heads.size(); ++i)
        out.add(label(heads[i].first, top - 16, heads[i].second, "strong", i < 3 ? Anchor::start : Anchor::end));
    out.add(label(bars_at, top - 16,
                  fmt::format("of a block of {} warpgroup{}", kernel.num_warpgroups, kernel.num_warpgroups == 1 ? "" : "s"),
                  "strong"));
    out.add(line(16, top - 8, out.width - 16, top - 8, "muted no-fill"));
    double most = 1;
    for (const ConfigurationRow& row : kernel.configuration)
        most = std::max(most, bytes_of_block(row, kernel.num_warpgroups));
    std::vector<std::string> said;
    double y = top;
    for (const ConfigurationRow& row : kernel.configuration) {
        const double bytes = bytes_of_block(row, kernel.num_warpgroups);
        const auto cell = [&](std::int64_t value) {
            return value == 0 ? std::string()
                              : fmt::format("{}{}", value, row.stages > 1 ? fmt::format(" (×{})", row.stages) : "");
        };
        out.add(titled(label(16, y + 8, fitted(row_names(row), 206), "").data("array", row.places.front().front()),
                       row_names(row)));
        out.add(label(232, y + 8, fitted(row.size, 84), ""));
        out.add(label(320, y + 8, std::string(name(row.type)), ""));
        out.add(label(440, y + 8, cell(row.block_bytes), "", Anchor::end));
        out.add(label(545, y + 8, cell(row.warpgroup_bytes), "", Anchor::end));
        out.add(titled(rect(bars_at, y - 3, bars_width * bytes / most, 13, tint(color(row.at)), 2),
                       fmt::format("{}: {} bytes in {}", row_names(row), bytes,
                                   row.at == HeldAt::memory ? "the core's memory" : "registers")));
        said.push_back(fmt::format("{} {} {}: {} bytes", row_names(row), row.size, name(row.type), bytes));
        y += row_height;
    }
    y += 26;
    for (const LevelBudget& b : kernel.budgets) {
        const bool is_registers = &b != &kernel.budgets.front();
        const double used = b.block_bytes + b.warpgroup_bytes * static_cast<double>(kernel.num_warpgroups);
        const double whole = std::max(used, b.capacity_bytes), scale = 500 / whole;
        const std::string c = is_registers ? "level-2" : "level-1";
        out.add(label(16, y + 12, fitted(b.level, 96, 12), "strong"));
        out.add(rect(120, y, b.capacity_bytes * scale, 17, "muted no-fill"));
        double x = 120;
        const auto part = [&](double bytes, const std::string& what) {
            if (bytes <= 0) return;
            Element group = svg::group();
            group.add(titled(rect(x, y, bytes * scale, 17, tint(c)), fmt::format("{}: {} bytes", what, bytes)));
            if (const std::string text = fitted(what, bytes * scale - 6, 10); !text.empty())
                group.add(label(x + bytes * scale / 2, y + 12, text, "small", Anchor::middle));
            out.add(std::move(group));
            x += bytes * scale;
        };
        part(b.block_bytes, "block");
        for (std::int64_t w = 0; w < std::min<std::int64_t>(kernel.num_warpgroups, 16); ++w)
            part(b.warpgroup_bytes, fmt::format("WG {}", w));
        out.add(label(632, y + 12,
                      fmt::format("{:.4g} of {:.4g} KB, N_max {}", used / 1024, b.capacity_bytes / 1024, b.fit_text()),
                      "small"));
        said.push_back(fmt::format("{}: {} of {} bytes", b.level, used, b.capacity_bytes));
        y += 27;
    }
    out.height = y + 10;
    out.description = join(said, "; ") + ".";
    return out;
}

}  // namespace napkin::draw
