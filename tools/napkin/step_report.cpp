#include "napkin/step_report.hpp"

#include "plan/by_hand.hpp"

namespace napkin::cli {

Result<StepReport> step_report(const Options& options) {
    PipelineOptions file;
    if (const Status read = read_schedule(options, file); !read) return read.errors();
    const auto compilation = compile(options, Pass::size);
    if (!compilation) return compilation.errors();
    const auto items = all_by_hand(compilation->derived, {}, file.schedule_file);
    if (!items) return items.errors();
    if (compilation->machine.kind != MachineKind::gpu || !is_of_a_kernel(*items))
        return paper_steps(compilation->derived, compilation->extents, compilation->machine, *items);
    const auto planned = compile(options, Pass::plan);
    if (!planned) return planned.errors();
    return placed_steps(planned->plan, planned->machine, *items);
}

}  // namespace napkin::cli
