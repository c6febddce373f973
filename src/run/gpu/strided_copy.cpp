#include "run/gpu/strided_copy.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "run/gpu/compiler.hpp"
#include "support/ranges.hpp"
#include "support/saturate.hpp"

namespace napkin::gpu {
namespace {

constexpr int threads_a_block = 256, blocks_a_multiprocessor = 8;

/// The widest power of two, at most `most`, that divides all of them.
std::int64_t common_power(std::int64_t most, const std::vector<std::uint64_t>& all) {
    while (most > 1 && any_of(all, [&](std::uint64_t n) { return n % static_cast<std::uint64_t>(most) != 0; }))
        most /= 2;
    return most;
}

struct CopiedAxis {
    std::int64_t size, to, from;  ///< strides in bytes
};

/// Axes of several values. Neighbours are one where both arrays have them row-major.
std::vector<CopiedAxis> joined_axes(const StridedPlace& to, const StridedPlace& from,
                                    const std::vector<std::int64_t>& sizes, std::int64_t width) {
    std::vector<CopiedAxis> out;
    for (std::size_t d = 0; d < sizes.size(); ++d) {
        if (sizes[d] == 1) continue;
        const CopiedAxis axis{sizes[d], to.strides[d] * width, from.strides[d] * width};
        if (!out.empty() && out.back().to == axis.size * axis.to && out.back().from == axis.size * axis.from)
            out.back() = {out.back().size * axis.size, axis.to, axis.from};
        else
            out.push_back(axis);
    }
    return out;
}

}  // namespace

Result<CopyArguments> copy_arguments(const StridedPlace& to, const StridedPlace& from,
                                     const std::vector<std::int64_t>& sizes, std::int64_t value_bytes) {
    std::vector<CopiedAxis> axes = joined_axes(to, from, sizes, value_bytes);
    std::vector<std::uint64_t> aligned{to.address, from.address};
    for (const CopiedAxis& axis : axes)
        for (const std::int64_t stride : {axis.to, axis.from}) aligned.push_back(static_cast<std::uint64_t>(stride));
    CopyArguments out{.to = to.address, .from = from.address, .unit = common_power(value_bytes, aligned)};
    if (out.unit < value_bytes) axes.push_back({value_bytes / out.unit, out.unit, out.unit});
    if (axes.size() > most_copied_axes)
        return Diagnostic{.code = "view-strides",
                          .message = fmt::format("{} axes of a view are apart", axes.size()),
                          .expected = fmt::format("at most {}", most_copied_axes)};
    for (const CopiedAxis& axis : axes) {
        const auto d = static_cast<std::size_t>(out.axes++);
        out.sizes[d] = axis.size, out.to_strides[d] = axis.to, out.from_strides[d] = axis.from;
        out.count *= axis.size;
    }
    return out;
}

std::string strided_copy_text() {
    return fmt::format(R"(struct Copy {{
    unsigned long long to, from;
    long long count, unit, axes, sizes[{0}], to_strides[{0}], from_strides[{0}];
}};
extern "C" __global__ void __launch_bounds__({1}) {2}(const __grid_constant__ Copy copy, char*) {{
    const long long step = (long long)gridDim.x * blockDim.x;
    for (long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x; i < copy.count; i += step) {{
        long long rest = i;
        unsigned long long to = copy.to, from = copy.from;
        for (long long d = copy.axes - 1; d >= 0; --d) {{
            const long long at = rest % copy.sizes[d];
            rest /= copy.sizes[d];
            to += at * copy.to_strides[d], from += at * copy.from_strides[d];
        }}
        if (copy.unit == 8) *(unsigned long long*)to = *(const unsigned long long*)from;
        else if (copy.unit == 4) *(unsigned*)to = *(const unsigned*)from;
        else if (copy.unit == 2) *(unsigned short*)to = *(const unsigned short*)from;
        else *(unsigned char*)to = *(const unsigned char*)from;
    }}
}}
)",
                       most_copied_axes, threads_a_block, strided_copy_name);
}

Result<std::shared_ptr<const StridedCopy>> StridedCopy::load(const DeviceInfo& device) {
    auto cubin = compile_cuda(strided_copy_text(), device.architecture());
    if (!cubin) return cubin.errors();
    auto out = std::make_shared<StridedCopy>();
    auto module = gpu::load(cubin->code);
    if (!module) return module.errors();
    auto found = function(**module, strided_copy_name, 0);
    if (!found) return found.errors();
    out->module_ = std::move(*module), out->function_ = *found, out->multiprocessors_ = device.multiprocessors;
    return std::shared_ptr<const StridedCopy>(std::move(out));
}

Result<BoundLaunch> StridedCopy::bind(const StridedPlace& to, const StridedPlace& from,
                                      const std::vector<std::int64_t>& sizes, std::int64_t value_bytes) const {
    const auto arguments = copy_arguments(to, from, sizes, value_bytes);
    if (!arguments) return arguments.errors();
    static_assert(sizeof(CopyArguments) % sizeof(std::uint64_t) == 0);
    BoundLaunch out;
    out.parameters.resize(sizeof(CopyArguments) / sizeof(std::uint64_t));
    std::memcpy(out.parameters.data(), &*arguments, sizeof(CopyArguments));
    out.scratch = {0};
    const std::int64_t blocks = std::min<std::int64_t>(ceil_div(arguments->count, threads_a_block),
                                                       std::int64_t{multiprocessors_} * blocks_a_multiprocessor);
    out.launch = {function_, std::max<std::int64_t>(blocks, 1),          threads_a_block, 1,
                  0,         {out.parameters.data(), out.scratch.data()}};
    return out;
}

}  // namespace napkin::gpu
