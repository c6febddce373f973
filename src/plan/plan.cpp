#include "plan/plan.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "plan/misses.hpp"
#include "schedule/fragment_registers.hpp"
#include "schedule/fragments.hpp"
#include "support/result.hpp"

namespace napkin {

ScheduledProgram Plan::program() const {
    ScheduledProgram program;
    for (const KernelPlan& kernel : kernels) program.kernels.push_back(kernel.scheduled);
    return program;
}

SizedProgram Plan::tiles() const {
    internal_check(!kernels.empty(), "plan: it has no kernels");
    TileProgram program{kernels[0].scheduled.program->diagram, {}};
    std::vector<TileSizes> sizes;
    for (const KernelPlan& kernel : kernels) {
        program.kernels.push_back(*kernel.scheduled.kernel);
        sizes.push_back(kernel.scheduled.sizes);
    }
    return sized(std::move(program), kernels[0].scheduled.extents, std::move(sizes));
}

double Plan::seconds() const {
    return sum<double>(kernels, [&](const KernelPlan& kernel) { return kernel.time.seconds; });
}

int Plan::threads() const {
    std::int64_t most = 1;
    for (const KernelPlan& kernel : kernels) most = std::max(most, kernel.schedule().threads.value);
    return static_cast<int>(most);
}

bool Plan::is_bound() const {
    return any_of(kernels, [](const KernelPlan& kernel) { return kernel.is_bound; });
}

namespace {

/// What is busy the longest, which bounds the time however well the rest hides behind it. Then what would bind if there
/// were less of that.
std::string to_be_faster(const Simulation& time) {
    const Busy &first = time.busy.front(), &second = time.busy[std::min<std::size_t>(1, time.busy.size() - 1)];
    const auto share = [&](double seconds) { return 100 * std::max(0.0, seconds) / time.seconds; };
    return fmt::format(
        "  busiest      {} for {:.3g} s\n"
        "  faster       by {:.1f}% at most where {} never waits, and by {:.1f}% more with less of it, until {} binds\n",
        first.what, first.seconds, share(time.seconds - first.seconds), first.what,
        share(first.seconds - second.seconds), second.what);
}

}  // namespace

std::string to_string(const Plan& plan) {
    std::string out = fmt::format("plan for {}\n", plan.machine);
    for (const KernelPlan& kernel : plan.kernels) {
        const ScheduledKernel& s = kernel.scheduled;
        out += "\n" + to_string(*s.program, *s.kernel, s.schedule);
        out += fmt::format("  transfers H  {:.0f} values\n  memory M     {:.0f} values a core\n", kernel.time.transfers,
                           kernel.memory_values);
        const auto bytes = [&](std::int64_t values) { return values * s.value_bytes(); };
        const std::int64_t tiles = bytes(s.held_values), in_place = bytes(s.memory_values - s.held_values),
                           saved = bytes(static_cast<std::int64_t>(kernel.memory_values) - s.memory_values);
        out += fmt::format("  arena        {} B: {} B of tiles, {} B of padding", s.arena_bytes(), tiles,
                           s.arena_bytes() - tiles);
        // M counts whole tiles, each in memory of its own.
        if (in_place > 0) out += fmt::format("; {} B of M are read or written in place", in_place);
        if (saved < 0)
            out += fmt::format("; {} B more than M by what {}", -saved,
                               any_of(s.steps, [](const Step& step) { return step.is_tile_pipelined(); })
                                   ? "is kept for the next group"
                                   : "runs of statements keep and by 64-bit integers");
        if (saved > 0) out += fmt::format("; {} B less than M by panels and shared memory", saved);
        out += "\n";
        if (const std::int64_t spilled = spilled_registers(s); spilled > 0)
            out += fmt::format("  registers    {} of the {} that a thread has for tiles: {} spill\n", most_registers(s),
                               s.unit.registers, spilled);
        out += fmt::format("  predicted    {:.3g} s, bound by {}\n", kernel.time.seconds, kernel.time.bound_by());
        out += to_be_faster(kernel.time);
        for (const Miss& miss : misses(kernel)) out += fmt::format("  misses       {}\n", to_string(miss));
    }
    return out;
}

}  // namespace napkin
