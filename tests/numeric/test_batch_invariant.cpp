// Rows in batches of several sizes, by batch-invariant plans: their bits are the same in each batch.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <optional>

#include "diagram/array_sizes.hpp"
#include "numeric/planned_on_cpu.hpp"
#include "run/gpu/driver.hpp"
#include "run/pipeline.hpp"
#include "support/batches.hpp"
#include "support/ids.hpp"
#include "support/paths.hpp"

namespace napkin {
namespace {

constexpr std::int64_t batches[] = {1, 3, 64, largest_batch};

Compilation made_for(const BatchProgram& program, const std::string& machine, std::int64_t rows, Pass until) {
    PipelineOptions options;
    options.machine = machine, options.sizes = {{"m", rows}}, options.batch_invariant = true, options.until = until;
    auto made = run_pipeline(std::make_shared<const Source>(Source{program.name, program.text}), options);
    if (!made) throw std::runtime_error(render(made.errors()));
    return std::move(*made);
}

using Rows = std::vector<std::vector<double>>;
/// The result by rows.
Rows rows_of(const Tensor& result, std::int64_t rows) {
    const std::vector<double> all = result.to_doubles();
    const auto length = static_cast<std::ptrdiff_t>(all.size() / static_cast<std::size_t>(rows));
    Rows out;
    for (auto at = all.begin(); at != all.end(); at += length) out.emplace_back(at, at + length);
    return out;
}

/// The first row of a batch that is another one in the largest batch; "" where there is none.
std::string difference(const std::map<std::int64_t, Rows>& by_batch) {
    const Rows& all = by_batch.at(largest_batch);
    for (const auto& [batch, rows] : by_batch)
        for (std::size_t row = 0; row < rows.size(); ++row) {
            const auto& other = all[row + static_cast<std::size_t>(first_row(batch))];
            for (std::size_t i = 0; i < other.size(); ++i)
                if (rows[row][i] != other[i])
                    return fmt::format("row {} of {}, value {}: {} and not {}", row, batch, i, rows[row][i], other[i]);
        }
    return "";
}

/// What the kernel, a CPU's or a GPU's, makes of the batch.
template <class Kernel>
Rows rows_by(Kernel& kernel, const Compilation& made, std::int64_t batch) {
    const Values values = inputs_of_batch(made.diagram, made.extents);
    std::vector<Tensor> arrays;
    std::vector<KernelInput> in;
    std::vector<KernelOutput> out;
    for (const auto* list : {&made.diagram.inputs, &made.diagram.outputs})
        for (const ArrayId id : *list) {
            const DType type = made.diagram.array(id).type;
            arrays.push_back(Tensor::make(type, array_sizes(made.diagram, id, made.extents)).value());
            Tensor& array = arrays.back();
            if (list == &made.diagram.outputs) {
                out.push_back({array.data(), type, array.sizes(), {}});
                continue;
            }
            for (std::int64_t i = 0; i < array.count(); ++i) array.set(i, values[id][static_cast<std::size_t>(i)]);
            in.push_back({array.data(), type, array.sizes(), {}});
        }
    if (const Status done = kernel.run(in, out); !done) throw std::runtime_error(render(done.errors()));
    return rows_of(arrays.back(), batch);
}

TEST(BatchInvariantRows, AreTheSameOnAProcessor) {
    for (const BatchProgram& program : row_programs("f32")) {
        std::map<std::int64_t, Rows> by_batch;
        for (const std::int64_t batch : batches) {
            const Compilation made = made_for(program, in_sources("tests/machines/cpu-256.toml"), batch, Pass::compile);
            by_batch[batch] = rows_by(*made.kernel, made, batch);
        }
        EXPECT_EQ(difference(by_batch), "") << program.name;
    }
}

struct InBlocks {
    const char* type;
    std::size_t program;  ///< of row_programs
};
class BatchInvariantBlocks : public ::testing::TestWithParam<InBlocks> {};

/// Kernels of a GPU, thread by thread on the CPU.
TEST_P(BatchInvariantBlocks, MakeTheSameRows) {
    const BatchProgram program = row_programs(GetParam().type)[GetParam().program];
    std::map<std::int64_t, Rows> by_batch;
    for (const std::int64_t batch : batches) {
        const Compilation made = made_for(program, "h200", batch, Pass::emit);
        const cpu_case::Planned planned{made.diagram, made.extents, made.plan, std::get<cuda::CudaSource>(made.code)};
        const auto module = cpu_case::compiled_for_cpu(planned.source);
        cpu_case::Reference inputs;
        inputs.given = inputs_of_batch(made.diagram, made.extents);
        const auto outputs = cpu_case::outputs_of(planned, inputs, *module, {});
        ASSERT_TRUE(outputs) << batch;
        by_batch[batch] = rows_of(outputs->front(), batch);
    }
    EXPECT_EQ(difference(by_batch), "");
}

INSTANTIATE_TEST_SUITE_P(Programs, BatchInvariantBlocks, ::testing::Values(InBlocks{"bf16", 0}), [](const auto& in) {
    return std::string(row_programs(in.param.type)[in.param.program].name) + "_" + in.param.type;
});

TEST(BatchInvariantRows, AreTheSameOnTheGpu) {
    if (!gpu::device()) GTEST_SKIP() << "no GPU";
    for (const std::string type : {"bf16", "f32"})
        for (const BatchProgram& program : row_programs(type)) {
            std::map<std::int64_t, Rows> by_batch;
            for (const std::int64_t batch : batches) {
                const Compilation made = made_for(program, "gpu", batch, Pass::compile);
                by_batch[batch] = rows_by(*made.gpu_kernel, made, batch);
            }
            EXPECT_EQ(difference(by_batch), "") << program.name << " in " << type;
        }
}

}  // namespace
}  // namespace napkin
