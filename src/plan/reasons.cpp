#include "plan/reasons.hpp"

#include <fmt/format.h>

#include <cmath>

#include "support/numbers.hpp"

namespace napkin {
namespace {

std::string most_memory_text(const Simulator& model) {
    return fmt::format("at most {} ({} of {})", bytes_text(model.usable_bytes()),
                       model.machine().kind == MachineKind::gpu ? "all" : "three quarters", model.level_name());
}

}  // namespace

std::string time_change(double ratio) {
    const double change = (ratio - 1) * 100;
    if (std::abs(change) < 0.1) return "the same time";
    const std::string percent = std::abs(change) < 99.5 ? fmt::format("{:.2g}", std::abs(change))
                                                        : fmt::format("{:.0f}", std::abs(change));
    return fmt::format("{}% {}", percent, change > 0 ? "slower" : "faster");
}

std::string memory_text(double bytes, const Simulator& model) {
    return fmt::format("M takes {} of {} in {}", bytes_text(bytes), bytes_text(model.usable_bytes()), model.level_name());
}

std::string nothing_fits_text(const Simulator& model) {
    return fmt::format("the smallest: no tile fits {} of {}", bytes_text(model.usable_bytes()), model.level_name());
}

std::string size_text(const ChosenSize& chosen) {
    const std::int64_t panel = chosen.vectors * chosen.lanes;
    if (chosen.cuts_recompute) return "repeats work, but the whole axis does not fit";
    if (chosen.size == chosen.extent) return "the whole axis";
    if (chosen.stream) return fmt::format("{} chunks", (chosen.extent + chosen.size - 1) / chosen.size);
    if (panel > 0 && chosen.size % panel == 0)
        return fmt::format("{} panel{} of {}×{} lanes", chosen.size / panel, chosen.size == panel ? "" : "s",
                           chosen.vectors, chosen.lanes);
    return "";
}

std::string groups_text(std::int64_t groups, std::int64_t threads) {
    const std::int64_t waves = (groups + threads - 1) / threads;
    return fmt::format("{} groups, {} a core: {:.3g}% of the cores' time", groups, waves,
                       100.0 * static_cast<double>(groups) / static_cast<double>(waves * threads));
}

std::string uneven_groups_text(std::int64_t groups, double waves) {
    return fmt::format("{} uneven groups, the longest first: {:.3g}% of the cores' time", groups, 100 / waves);
}

Diagnostic size_exceeds_memory(const ScheduleItem& item, double need, std::int64_t nearest, const Simulator& model) {
    return Diagnostic{
        .code = "memory-exceeded",
        .range = item.range,
        .message = fmt::format("{} {} = {} needs {} of a core's {} even with the smallest other tiles", name(item.kind),
                               item.axis, *item.value, bytes_text(need), model.level_name()),
        .expected = most_memory_text(model),
        .hint = nearest > 0 ? fmt::format("the nearest size that fits is {}", nearest) : "no size of this axis alone fits"};
}

Diagnostic kernel_exceeds_memory(double need, const Simulator& model) {
    return Diagnostic{.code = "memory-exceeded",
                      .range = model.derived().diagram.range,
                      .message = fmt::format("kernel {} does not fit a core at any tile size: it needs {}",
                                             model.kernel().name, bytes_text(need)),
                      .expected = most_memory_text(model)};
}

}  // namespace napkin
