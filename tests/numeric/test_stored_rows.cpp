// What threads have of an accumulator, stored: run thread by thread on the CPU, for rows of all lengths that begin
// anywhere.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "algebra/fragment.hpp"
#include "algebra/shared_operand.hpp"
#include "numeric/block_on_cpu.hpp"
#include "run/tensor.hpp"

namespace napkin {
namespace {

constexpr std::int64_t rows = 16, most_groups = 9, columns = 8 * most_groups, row_stride = 80, margin = 16;
/// Past the values below, and a number of every type.
constexpr double untouched = 28;
/// Differs among neighbours in both directions and among groups of columns, and is one of every type.
double value(std::int64_t row, std::int64_t column) {
    return static_cast<double>((7 * row + 3 * column + column / 8) % 16);
}

/// A kernel for each type: every warp has a fragment, of which it stores the groups of columns that it is told.
cuda::CudaSource probes(const std::vector<DType>& types) {
    cuda::CudaSource out;
    out.text = fmt::format(R"(
namespace napkin_gpu::probe_code {{
NAPKIN_INLINE Index fragment_row(int r) {{ return warp_of_thread() * 16 + lane_of_thread() / 4 + 8 * r; }}
NAPKIN_INLINE Index fragment_column(int j, int c) {{ return 8 * j + lane_of_thread() % 4 * 2 + c; }}
template <class T, int groups> NAPKIN_INLINE void store(T* to, const int64_t* told, const float (&x)[{0}]) {{
    NAPKIN_UNROLL for (int r = 0; r < 2; ++r)
        store_row<T, groups>(to + fragment_row(r) * {1}, fragment_row(r) < told[2] ? told[1] : 0, x + 2 * r);
}}
template <class T> NAPKIN_INLINE void probe(const float* from, T* to, const int64_t* told) {{
    float x[{0}];
    for (int j = 0; j < {2}; ++j)
        for (int r = 0; r < 2; ++r)
            for (int c = 0; c < 2; ++c) x[4 * j + 2 * r + c] = from[fragment_row(r) * {3} + fragment_column(j, c)];
    switch (told[0]) {{
)",
                           4 * most_groups, row_stride, most_groups, columns);
    for (int groups = 1; groups <= most_groups; ++groups)
        out.text += fmt::format("        case {0}: store<T, {0}>(to, told, x); break;\n", groups);
    out.text += "    }\n}\n}\n";
    for (const DType type : types) {
        cuda::KernelEntry& entry = out.entries.emplace_back();
        entry.name = fmt::format("probe_{}", name(type));
        out.text += fmt::format(
            "namespace napkin_gpu::{0}_code {{\nextern \"C\" __global__ void __launch_bounds__(32) {0}(const "
            "__grid_constant__ "
            "Arguments<1, 1, 3> arguments, char* scratch) {{\n    block_has(32, 1);\n    "
            "probe_code::probe(static_cast<const "
            "float*>(arguments.inputs[0]), static_cast<{1}*>(arguments.outputs[0]), arguments.strides);\n}}\n}}\n",
            entry.name,
            type == DType::f32   ? "float"
            : type == DType::f64 ? "double"
                                 : std::string(name(type)));
    }
    return out;
}

TEST(StoredRows, HaveEachValueOnceAndNothingPastTheirEnds) {
    const std::vector<DType> types{DType::f16, DType::bf16, DType::f32, DType::e4m3, DType::f64};
    const cuda::CudaSource source = probes(types);
    const auto module = cpu_case::compiled_for_cpu(source);
    std::vector<float> given;
    for (std::int64_t r = 0; r < rows; ++r)
        for (std::int64_t c = 0; c < columns; ++c) given.push_back(static_cast<float>(value(r, c)));
    const auto number = [](auto* p) { return reinterpret_cast<std::uint64_t>(p); };
    for (std::size_t t = 0; t < types.size(); ++t)
        for (std::int64_t groups = 1; groups <= most_groups; ++groups)
            for (const std::int64_t cut : {0, 1, 4, 7, 8, 13})
                for (const std::int64_t shift : {0, 1, 2, 4}) {
                    const std::int64_t count = 8 * groups - cut, num_rows = cut == 7 ? 11 : rows;
                    if (count < 0) continue;
                    Tensor made = Tensor::make(types[t], {rows * row_stride + margin}).value();
                    for (std::int64_t i = 0; i < made.count(); ++i) made.set(i, untouched);
                    char* const to = static_cast<char*>(made.data()) + shift * bytes(types[t]);
                    ASSERT_TRUE(
                        cpu_case::run_on_cpu(*module, source.entries[t],
                                             {number(given.data()), number(to), static_cast<std::uint64_t>(groups),
                                              static_cast<std::uint64_t>(count), static_cast<std::uint64_t>(num_rows)},
                                             {}));
                    const Column stored = made.to_column();
                    for (std::int64_t i = 0; i < made.count(); ++i) {
                        const std::int64_t row = (i - shift) / row_stride, column = (i - shift) % row_stride;
                        const bool is_inside = i >= shift && row < num_rows && column < count;
                        ASSERT_EQ(stored[static_cast<std::size_t>(i)], is_inside ? value(row, column) : untouched)
                            << name(types[t]) << ", " << count << " columns in " << groups << " groups, shifted by "
                            << shift << ": row " << row << ", column " << column;
                    }
                }
}

// Bulk copies find in a box what the layout of the accumulator gives to whom, where the swizzle puts it.
TEST(StoredRows, LieInBoxesAsTheLayoutsSay) {
    constexpr int most = 8;
    cuda::CudaSource source;
    source.text = R"(
namespace napkin_gpu::probe_code {
template <class T> NAPKIN_INLINE void probe(T* to, int groups) {
    extern __shared__ __align__(1024) char shared_memory[];
    float x[32];
    for (int i = 0; i < 32; ++i) x[i] = float(lane_of_thread() * 32 + i);
    write_staging<T>(shared_address(shared_memory), x, groups);
    __syncwarp();
    for (int i = lane_of_thread(); i < 2048 / int(sizeof(T)); i += 32) to[i] = reinterpret_cast<const T*>(shared_memory)[i];
}
}
)";
    const std::vector<DType> types{DType::f16, DType::f32};
    for (const DType type : types) {
        cuda::KernelEntry& entry = source.entries.emplace_back();
        entry.name = fmt::format("box_{}", name(type));
        source.text += fmt::format(
            "namespace napkin_gpu::{0}_code {{\nextern \"C\" __global__ void __launch_bounds__(32) {0}(const "
            "__grid_constant__ Arguments<1, 1, 1> arguments, char* scratch) {{\n    block_has(32, 1);\n    "
            "probe_code::probe(static_cast<{1}*>(arguments.outputs[0]), int(arguments.strides[0]));\n}}\n}}\n",
            entry.name, type == DType::f32 ? "float" : std::string(name(type)));
    }
    const auto module = cpu_case::compiled_for_cpu(source);
    for (std::size_t t = 0; t < types.size(); ++t) {
        const std::int64_t value_bytes = bytes(types[t]), width = 128 / value_bytes;
        const layouts::Swizzled box = layouts::shared_operand(rows, width, value_bytes, layouts::Major::k, 128).value();
        const layouts::Fragment fragment = layouts::wgmma_accumulator(width).value();
        for (std::int64_t groups = 2; groups <= std::min<std::int64_t>(most, width / 8); groups += 2) {
            Tensor made = Tensor::make(types[t], {rows * width}).value();
            ASSERT_TRUE(cpu_case::run_on_cpu(
                *module, source.entries[t],
                {0, reinterpret_cast<std::uint64_t>(made.data()), static_cast<std::uint64_t>(groups)}, {}));
            const Column stored = made.to_column();
            for (std::int64_t lane = 0; lane < 32; ++lane)
                for (std::int64_t i = 0; i < 4 * groups; ++i) {
                    // The first warp's rows of 64.
                    const std::int64_t place = fragment.map({lane, i}), row = place % 64, column = place / 64;
                    ASSERT_EQ(stored[static_cast<std::size_t>(box({row, column}))], static_cast<double>(lane * 32 + i))
                        << name(types[t]) << " row " << row << ", column " << column;
                }
        }
    }
}

}  // namespace
}  // namespace napkin
