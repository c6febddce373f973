// Kernels whose streams are cut into parts, against the definition, for every width of vectors; and bit for bit the
// same whoever runs them.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <set>

#include "derive/parts.hpp"
#include "numeric/cpu_kernel_case.hpp"
#include "numeric/planned_on_cpu.hpp"
#include "run/kernel.hpp"
#include "run/pipeline.hpp"
#include "run/tensor.hpp"
#include "syntax/parse.hpp"

namespace napkin {
namespace {

struct CutProgram {
    const char* name;
    const char* text;
};

const CutProgram cut_subjects[] = {
    {"one query against many keys",
     "f(Q[h, k], K[h, x, k], V[h, x, d]) -> O[h, d]\n"
     "    S[h, x] = sum(k) Q[h, k] * K[h, x, k]\n"
     "    P[h, x] = softmax(x) S[h, x] * k^-0.5\n"
     "    O[h, d] = sum(x) P[h, x] * V[h, x, d]\n"
     "sizes h = 2, x = 203, k = 20, d = 33\n"},
    {"the same in bf16, with the logarithm of the sum",
     "f(Q[h, k]: bf16, K[h, x, k]: bf16, V[h, x, d]: bf16) -> O[h, d]: bf16, L[h]\n"
     "    S[h, x] = sum(k) Q[h, k] * K[h, x, k]\n"
     "    L[h] = logsumexp(x) S[h, x] * k^-0.5\n"
     "    P[h, x] = softmax(x) S[h, x] * k^-0.5\n"
     "    O[h, d] = sum(x) P[h, x] * V[h, x, d]\n"
     "sizes h = 3, x = 77, k = d = 16\n"},
    {"rows that are masked everywhere, and parts that are",
     "f(A[q, x], V[x, d]) -> O[q, d]\n"
     "    P[q, x] = masked_softmax(x) where(x < 30 and q > 2, A[q, x], -inf)\n"
     "    O[q, d] = sum(x) P[q, x] * V[x, d]\n"
     "sizes q = 7, x = 100, d = 5\n"},
    {"a causal mask",
     "f(A[q, x], V[x, d]) -> O[q, d]\n"
     "    P[q, x] = softmax(x) where(x <= q, A[q, x], -inf)\n"
     "    O[q, d] = sum(x) P[q, x] * V[x, d]\n"
     "sizes q = x = 40, d = 5\n"},
    {"moments in f64, and rows that are stored",
     "f(X[r, i]: f64, G[i]: f64, B[i]: f64) -> Y[r, i]: f64\n"
     "    Y[r, i] = layernorm(i)(X[r, i], G[i], B[i])\n"
     "sizes r = 3, i = 101\n"},
    {"rows of one value, and of a few",
     "f(X[r, i]) -> Y[r, i], L[r]\n"
     "    Y[r, i] = softmax(i) X[r, i]\n"
     "    L[r] = logsumexp(i) X[r, i]\n"
     "sizes r = 1, i = 2\n"},
    {"reductions of every kind",
     "f(X[r, i]) -> A[r], B[r], C[r], D[r]\n"
     "    A[r] = sum(i) X[r, i]^2\n"
     "    B[r] = prod(i) (1 + 0.01 * X[r, i])\n"
     "    C[r] = max(i) X[r, i] * (i + 1)\n"
     "    D[r] = min(i) abs(X[r, i]) - r\n"
     "sizes r = 4, i = 83\n"},
    {"no group at all",
     "f(X[i], W[i]) -> A[]\n"
     "    A[] = sum(i) X[i] * W[i]\n"
     "sizes i = 1000\n"},
    {"whole numbers",
     "f(X[r, i]: i32) -> A[r]: i32, B[r]: i32\n"
     "    A[r] = sum(i) X[r, i]\n"
     "    B[r] = max(i) X[r, i] * 3\n"
     "sizes r = 3, i = 50\n"},
};

struct Parsed {
    Diagram diagram;
    Extents extents;
    Derived derived;
};

Parsed parsed(const CutProgram& subject) {
    const auto diagram = parse_diagram(std::make_shared<const Source>(Source{subject.name, subject.text}));
    if (!diagram) throw std::runtime_error(render(diagram.errors()));
    Parsed out{*diagram, bind_sizes(*diagram).value(), derive(*diagram).value()};
    return out;
}

/// Every stream that can be cut, in so many parts.
Derived in_parts(const Derived& derived, const Extents& extents, std::int64_t parts) {
    Derived form = derived;
    for (std::size_t k = 0; k < form.kernels.size(); ++k) {
        std::int64_t most = 1;
        for (const Stage& stage : form.kernels[k].stages)
            if (const auto* loop = std::get_if<Loop>(&stage)) most = extents[loop->axis];
        if (most < 2) continue;
        Parted cut = with_parts(form, k, std::min(parts, most));
        if (!cut.form) throw std::runtime_error(cut.refusal);
        form = std::move(*cut.form);
        k += cut.num_kernels - 1;
    }
    return form;
}

TEST(PartsOfKernels, ComputeTheirDefinitionAtEveryWidth) {
    for (const cpu_case::Width& width : cpu_case::widths()) {
        std::vector<cpu_case::Case> cases;
        std::vector<std::string> names;
        for (const CutProgram& subject : cut_subjects) {
            const Parsed p = parsed(subject);
            Derived any_sizes = p.derived;
            any_sizes.diagram = with_any_sizes(std::move(any_sizes.diagram));
            // The merge of any number of parts is a loop.
            for (const std::int64_t parts : {2, 3, 7, -3}) {
                names.push_back(fmt::format("{}, {} parts, {}", subject.name, parts, width.name));
                const Derived form = in_parts(parts < 0 ? any_sizes : p.derived, p.extents, std::abs(parts));
                cases.push_back(cpu_case::make_case(p.diagram, p.extents, cases.size() + 1,
                                                    fmt::format("p{}", cases.size()), form, {}, width));
                EXPECT_GT(cases.back().num_parts, 0) << names.back();
                cases.back().probes = {Probe::normal};
                if (!is_integer(kind_of(p.diagram.array(p.diagram.inputs[0]).type)))
                    cases.back().probes.assign(std::begin(all_probes), std::end(all_probes));
            }
        }
        const auto failures = cpu_case::failures(cases, width);
        for (std::size_t k = 0; k < cases.size(); ++k)
            EXPECT_EQ(failures[k], "") << names[k] << "\n" << cpu_case::describe(cases[k]);
    }
}

TEST(PartsOfKernels, GiveTheSameBitsWhateverThreadsRunThem) {
    const Parsed p = parsed(cut_subjects[0]);
    const cpu_case::Case c = cpu_case::make_case(p.diagram, p.extents, 5, "same", in_parts(p.derived, p.extents, 5), {});
    const auto kernel = CpuKernel::load(c.diagram, c.program, c.source, 4).value();
    std::vector<Tensor> arrays;
    for (const ArrayId id : p.diagram.inputs) {
        std::vector<std::int64_t> sizes;
        for (const AxisId axis : p.diagram.array(id).axes) sizes.push_back(p.extents[axis]);
        arrays.push_back(Tensor::make(DType::f32, sizes).value());
        arrays.back().fill_normal(static_cast<std::uint64_t>(id) + 1);
    }
    std::vector<const void*> in;
    for (const Tensor& t : arrays) in.push_back(t.data());
    std::vector<float> first(2 * 33), again(2 * 33);
    ASSERT_TRUE(kernel->run(in, std::vector<void*>{first.data()}, 1).ok());
    for (int round = 0; round < 200; ++round) {
        std::fill(again.begin(), again.end(), -1.0F);
        ASSERT_TRUE(kernel->run(in, std::vector<void*>{again.data()}, 1 + round % 4).ok());
        ASSERT_EQ(std::memcmp(first.data(), again.data(), first.size() * sizeof(float)), 0) << round;
    }
}

/// One code, in as many parts as the model finds best at each length.
TEST(PartsOfKernels, ServeAnyLengthInBlocks) {
    const std::string text =
        "attention(Q[h, g, q, k]: bf16, K[h, x, k]: bf16, V[h, x, d]: bf16) -> O[h, g, q, d]: bf16\n"
        "    S[h, g, q, x] = sum(k) Q[h, g, q, k] * K[h, x, k]\n"
        "    P[h, g, q, x] = softmax(x) S[h, g, q, x] * k^-0.5\n"
        "    O[h, g, q, d] = sum(x) P[h, g, q, x] * V[h, x, d]\n"
        "sizes h = g = q = 1, k = d = 64, x = 100001\n";
    PipelineOptions options;
    options.machine = "h200", options.any_sizes = true, options.until = Pass::emit;
    const auto first = run_pipeline(std::make_shared<const Source>(Source{"decode.nk", text}), options);
    ASSERT_TRUE(first) << render(first.errors());
    std::set<std::int64_t> numbers;
    for (const std::int64_t length : {1, 70, 333}) {
        options.sizes = {{"x", length}};
        const auto other = at_other_sizes(*first, options);
        ASSERT_TRUE(other) << length;
        const cpu_case::Planned p{other->diagram, other->extents, other->plan, std::get<cuda::CudaSource>(other->code)};
        for (const KernelPlan& kernel : other->plan.kernels)
            if (kernel.scheduled.kernel->parts.any()) numbers.insert(kernel.schedule().split.value);
        const auto module = cpu_case::compiled_for_cpu(p.source);
        EXPECT_EQ(cpu_case::fault_early_or_late(p, cpu_case::reference_of(p), *module), "") << length;
    }
    EXPECT_FALSE(numbers.empty());
}

}  // namespace
}  // namespace napkin
