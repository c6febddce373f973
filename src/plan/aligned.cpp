#include "plan/aligned.hpp"

#include <algorithm>
#include <utility>

#include "plan/blocks.hpp"
#include "schedule/fragments.hpp"
#include "support/ranges.hpp"

namespace napkin {

std::optional<WithAlignedRows> with_copied_rows(const Derived& derived, const Extents& extents, const Machine& gpu) {
    std::vector<ArrayId> odd = factors_in_odd_rows(derived, extents, operand_stride_bytes);
    std::erase_if(odd, [&](ArrayId id) {
        const DType type = derived.diagram.array(id).type;
        return none_of(gpu.instructions, [&](const Instruction& i) { return i.k.contains(type); });
    });
    if (odd.empty()) return std::nullopt;
    // Rows that begin inside a sector share it with their neighbours, and it is read for both. On one H200 a product of
    // 4096×4096×4104 in bf16 takes 289 µs. One of 4096×4096×4112, whose rows are whole sectors, takes 179 µs.
    const auto sector = static_cast<std::int64_t>(gpu.sector_bytes.value);
    return with_aligned_rows(derived, extents, odd, std::max(operand_stride_bytes, sector));
}

Result<Plan> choose_aligned(const Derived& derived, const Extents& extents, const Machine& gpu,
                            const std::vector<ScheduleItem>& by_user, const PlanOptions& options) {
    auto as_it_is = choose_blocks(derived, extents, gpu, by_user, options);
    const auto aligned = with_copied_rows(derived, extents, gpu);
    if (!aligned) return as_it_is;
    auto copied = choose_blocks(aligned->form, aligned->extents, gpu, by_user, options);
    if (!copied || (as_it_is && copied->seconds() >= as_it_is->seconds())) return as_it_is;
    // In a program of several kernels, an override that this kernel refuses may go unreported (why_no_mma). So a copied
    // form without tensor cores is not taken.
    const bool on_tensor_cores = any_of(copied->kernels,
                                        [](const KernelPlan& kernel) { return kernel.scheduled.on_tensor_cores(); });
    if (!on_tensor_cores) return as_it_is;
    for (KernelPlan& kernel : copied->kernels) kernel.whole = aligned->whole[kernel.whole];
    copied->change.has_aligned_rows = true;
    return copied;
}

}  // namespace napkin
