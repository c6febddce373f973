// The numbers of a launch as formulas: what they give at sizes for which the text was not made.
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <set>
#include <string>
#include <variant>

#include "lower/size_formulas.hpp"
#include "run/pipeline.hpp"

namespace napkin {
namespace {

const std::string text_of_product =
    "product(A[m, k]: bf16, B[n, k]: bf16) -> C[m, n]: bf16\n"
    "    C[m, n] = sum(k) A[m, k] * B[n, k]\n"
    "sizes m = any, n = k = 4096\n";
const std::string text_of_rows =
    "normed(X[r, c]) -> Y[r, c]\n"
    "    M[r] = sum(c) X[r, c]^2 * size(r)^-1\n"
    "    Y[r, c] = X[r, c] * (M[r] + 1e-6)^-0.5\n"
    "sizes r = any, c = 512\n";

PipelineOptions at_length(std::int64_t length, const std::string& machine, const std::vector<std::string>& axes) {
    PipelineOptions options;
    options.machine = machine, options.until = Pass::emit;
    for (const std::string& axis : axes) options.sizes[axis] = length;
    return options;
}

struct Program {
    const char* name;
    const std::string& text;
    const char* machine;
    std::vector<std::string> axes;
};

class SizeFormulasOf : public ::testing::TestWithParam<Program> {};

/// The formulas of one length, at others, are the numbers that are made for these. Bands apart, which are chosen anew.
TEST_P(SizeFormulasOf, GiveTheNumbersOfOtherSizes) {
    const auto& [name, text, machine, axes] = GetParam();
    const auto source = std::make_shared<const Source>(Source{"open.nk", text});
    const auto first = run_pipeline(source, at_length(1023, machine, axes));
    ASSERT_TRUE(first) << render(first.errors());
    int compared = 0;
    for (const std::int64_t length : {1, 7, 200, 511, 513, 1500, 2047, 3001}) {
        const auto other = at_other_sizes(*first, at_length(length, machine, axes));
        if (!other || complete(other->code) != complete(first->code)) continue;
        const auto compare = [&](const auto& code) {
            const auto& others = std::get<std::decay_t<decltype(code)>>(other->code);
            for (std::size_t k = 0; k < code.entries.size(); ++k) {
                const auto& own = code.entries[k];
                const Extents& extents = other->program.extents;
                EXPECT_EQ(lower::whole_value(own.formulas.groups, extents), others.entries[k].groups) << length;
                if (first->plan.kernels[k].scheduled.group_order.size() ==
                    other->plan.kernels[k].scheduled.group_order.size()) {
                    EXPECT_EQ(lower::numbers_at(own.formulas, extents), others.entries[k].numbers) << length;
                }
                ++compared;
            }
        };
        std::visit(compare, first->code);
    }
    EXPECT_GE(compared, 4);
}

INSTANTIATE_TEST_SUITE_P(
    All, SizeFormulasOf,
    ::testing::Values(Program{"product_on_a_gpu", text_of_product, "h200", {"m"}},
                      Program{"rows_on_a_gpu", text_of_rows, "h200", {"r"}},
                      Program{"product_on_a_processor", text_of_product, "tests/machines/cpu-256.toml", {"m"}},
                      Program{"rows_on_a_processor", text_of_rows, "tests/machines/cpu-256.toml", {"r"}}),
    [](const auto& param) { return param.param.name; });

/// Whatever the sizes are, the digits of the tiles' numbers lead to each tile once.
TEST(SizeFormulas, CountEveryTileOnce) {
    const auto source = std::make_shared<const Source>(
        Source{"open.nk",
               "product(A[m, k]: bf16, B[n, k]: bf16) -> C[m, n]: bf16\n"
               "    C[m, n] = sum(k) A[m, k] * B[n, k]\nsizes m = n = any, k = 4096\n"});
    const auto made = run_pipeline(source, at_length(8192, "h200", {"m", "n"}));
    ASSERT_TRUE(made) << render(made.errors());
    const lower::KernelProgram& kernel = made->lowered.kernels.front();
    const auto digits = lower::SizeFormulas(kernel).digits();
    EXPECT_GT(digits.size(), 2U) << "no bands";
    for (const auto& [m, n] : {std::pair(8192, 8192), {8192, 100}, {3000, 8192}, {1, 1}, {2049, 777}}) {
        Extents extents = made->program.extents;
        extents[*made->diagram.find_axis("m")] = m, extents[*made->diagram.find_axis("n")] = n;
        std::set<std::map<AxisId, std::int64_t>> tiles;
        const std::int64_t groups = lower::whole_value(lower::SizeFormulas(kernel).groups(), extents);
        for (std::int64_t group = 0; group < groups; ++group) {
            std::map<AxisId, std::int64_t> tile;
            std::int64_t rest = group;
            for (auto digit = digits.rbegin(); digit != digits.rend(); ++digit) {
                const std::int64_t count = lower::whole_value(digit->tiles, extents);
                tile[digit->axis] += rest % count * lower::whole_value(digit->stride, extents);
                rest /= count;
            }
            EXPECT_EQ(rest, 0);
            tiles.insert(tile);
        }
        EXPECT_EQ(std::ssize(tiles), groups) << m << " " << n;
    }
}

}  // namespace
}  // namespace napkin
