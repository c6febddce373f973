// Every compiler that napkin offers compiles what it emits for vectors of every width: the prelude, and the kernels of
// all examples. What of it this processor runs is tested elsewhere.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "derive/derive.hpp"
#include "emit/cpu/emit.hpp"
#include "plan/choose.hpp"
#include "support/compilers.hpp"
#include "support/examples.hpp"
#include "support/paths.hpp"

namespace napkin::test_compilers {
namespace {

struct Tested {
    std::string compiler;
    int bits;  ///< of the kernels' vectors
    const char* architecture;
    const char* name;  ///< of the architecture
};

std::vector<Tested> all_tested() {
    std::vector<Tested> out;
    for (const std::string& compiler : tested_compilers())
        for (const Tested& one : std::initializer_list<Tested>{{compiler, 128, "x86-64", "SSE2"},
                                                               {compiler, 256, "x86-64-v3", "AVX2"},
                                                               {compiler, 512, "x86-64-v4", "AVX512"},
                                                               // Plans for another machine's vectors run, too.
                                                               {compiler, 512, "x86-64-v3", "AVX2"}})
            out.push_back(one);
    return out;
}

/// The kernels of all examples for vectors of so many bits, in one source.
const cpu::CpuSource& kernels_for(int bits) {
    static std::map<int, cpu::CpuSource> made;
    cpu::CpuSource& all = made[bits];
    if (!all.text.empty()) return all;
    const Machine machine = load_machine(fmt::format("{}/tests/machines/cpu-{}.toml", source_dir().string(), bits)).value();
    for (const ExampleDiagram& example : example_diagrams()) {
        const auto extents = bind_sizes(example.diagram);
        if (!extents) continue;
        PlanOptions options;
        options.quick = true;
        const auto plan = choose_plan(derive(example.diagram).value(), *extents, machine, {}, options);
        if (!plan) throw std::runtime_error(example.name + ": " + render(plan.errors()));
        cpu::CpuSource source = cpu::emit(plan->program(), example.name + "_");
        all.vector_bytes = source.vector_bytes;
        all.text += source.text;
        all.entries.insert(all.entries.end(), source.entries.begin(), source.entries.end());
    }
    return all;
}

class Compilers : public testing::TestWithParam<Tested> {};

TEST_P(Compilers, CompileEveryKernel) {
#if !defined(__x86_64__)
    GTEST_SKIP() << "the widths are those of x86-64";
#endif
    const auto compiler = installed_compiler(GetParam().compiler);
    if (!compiler) GTEST_SKIP() << GetParam().compiler << " is not installed, or is the one that was tested before";
    const cpu::CpuSource& kernels = kernels_for(GetParam().bits);
    EXPECT_EQ(kernels.vector_bytes, GetParam().bits / 8);
    EXPECT_GT(kernels.entries.size(), 20U);
    const auto module = jit_compile(
        cpu::complete(kernels),
        {.compiler = compiler->path, .optimization = "-O0", .flags = {std::string("-march=") + GetParam().architecture}});
    ASSERT_TRUE(module.ok()) << render(module.errors());
    EXPECT_NE((*module)->symbol(kernels.entries.back().name), nullptr);
}

INSTANTIATE_TEST_SUITE_P(Tested, Compilers, testing::ValuesIn(all_tested()), [](const auto& tested) {
    std::string name = tested.param.compiler.empty() ? "Own" : tested.param.compiler;
    std::erase_if(name, [](char c) { return c == '+' || c == '-'; });
    return fmt::format("{}_{}_on_{}", name, tested.param.bits, tested.param.name);
});

}  // namespace
}  // namespace napkin::test_compilers
