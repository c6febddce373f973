// Where emitted kernels say that a group stands: whichever order the groups have, each tile of the grouped axes is one
// group's.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <random>
#include <set>
#include <sstream>
#include <utility>

#include "emit/cuda/emit.hpp"
#include "emit/emit_kernel.hpp"
#include "lower/lower.hpp"
#include "numeric/cpu_kernel_case.hpp"
#include "run/jit.hpp"
#include "support/random_diagram.hpp"

namespace napkin {
namespace {

/// What the kernel declares as a group begins: where its tiles do.
struct Positions {
    std::string code;  ///< of a function from a group to these numbers
    std::vector<std::string> names;
};

Positions positions_of(const ScheduledKernel& kernel) {
    std::istringstream text(
        writers::kernel_text(lower::lowered(std::make_shared<const ScheduledKernel>(kernel)), "k", "").text);
    Positions out;
    const std::string declaration = "const Index ";
    bool in_group = false;
    for (std::string line; std::getline(text, line);) {
        if (line.find("for (Index group = ") != std::string::npos) {
            in_group = true;
            continue;
        }
        const std::size_t at = line.find(declaration);
        if (in_group && at == std::string::npos) break;
        if (!in_group || line.find("min_index") != std::string::npos) continue;
        const std::string rest = line.substr(at + declaration.size());
        out.code += fmt::format("    out[{}] = {}\n", out.names.size(), rest.substr(rest.find('=') + 2));
        out.names.push_back(rest.substr(0, rest.find(' ')));
    }
    return out;
}

TEST(GroupPositions, AreEachTileOnceInAnyOrder) {
    std::mt19937_64 random(1);
    std::vector<ScheduledKernel> kernels;
    std::string code;
    std::vector<std::size_t> widths;
    int backward = 0, several = 0, banded = 0;
    for (std::uint64_t seed = 2; seed <= 120; seed += 2) {  // sizes of even seeds are numbers
        const Diagram diagram = random_diagram(seed, {});
        const auto made = cpu_case::make_case(diagram, cpu_case::some_extents(diagram, seed), seed, "k", {},
                                              cpu_case::warps());
        for (const ScheduledKernel& given : made.scheduled.kernels) {
            ScheduledKernel k = given;
            // Without bands first: an axis has one digit.
            const std::vector<GroupAxis> order = k.group_order;
            std::erase_if(k.group_order, [&](const GroupAxis& a) {
                return a.stride == 1 && std::any_of(order.begin(), order.end(),
                                                    [&](const GroupAxis& b) { return b.axis == a.axis && b.stride > 1; });
            });
            for (GroupAxis& a : k.group_order) a.tiles *= std::exchange(a.stride, 1);
            std::shuffle(k.group_order.begin(), k.group_order.end(), random);
            for (GroupAxis& axis : k.group_order) {
                axis.is_backward = axis.tiles > 1 && random() % 2 == 0;
                backward += axis.is_backward;
            }
            // One axis in bands, whose tiles are another digit.
            for (GroupAxis& axis : std::vector(k.group_order)) {
                const auto place = std::find(k.group_order.begin(), k.group_order.end(), axis);
                if (axis.is_backward || axis.tiles % 2 != 0) continue;
                place->tiles /= 2, place->stride = 2;
                k.group_order.push_back({axis.axis, 2});
                ++banded;
                break;
            }
            several += std::count_if(k.group_order.begin(), k.group_order.end(),
                                     [](const auto& a) { return a.tiles > 1; }) > 1;
            const Positions positions = positions_of(k);
            code += fmt::format("extern \"C\" void at_{}(long group, long* out) {{\n{}}}\n", kernels.size(), positions.code);
            widths.push_back(positions.names.size());
            kernels.push_back(std::move(k));
        }
    }
    EXPECT_GE(backward, 40);
    EXPECT_GE(several, 20);
    EXPECT_GE(banded, 10);
    const auto module = jit_compile(code, {});
    ASSERT_TRUE(module.ok()) << render(module.errors());
    for (std::size_t n = 0; n < kernels.size(); ++n) {
        const ScheduledKernel& k = kernels[n];
        // Innermost first, as they are declared; an axis of one tile is not.
        std::vector<GroupAxis> axes;
        for (auto a = k.group_order.rbegin(); a != k.group_order.rend(); ++a) {
            const auto known = std::find_if(axes.begin(), axes.end(), [&](const auto& b) { return b.axis == a->axis; });
            if (known != axes.end())
                known->tiles *= a->tiles;
            else if (a->tiles > 1)
                axes.push_back(*a);
        }
        ASSERT_EQ(axes.size(), widths[n]) << code;
        const auto at_group = reinterpret_cast<void (*)(long, long*)>((*module)->symbol(fmt::format("at_{}", n)));
        std::set<std::vector<long>> seen;
        for (std::int64_t group = 0; group < k.num_groups(); ++group) {
            std::vector<long> begins(axes.size() + 1);
            at_group(group, begins.data());
            for (std::size_t i = 0; i < axes.size(); ++i) {
                const std::int64_t tile = k.span(axes[i].axis, 0).tile;
                EXPECT_EQ(begins[i] % tile, 0);
                EXPECT_GE(begins[i], 0);
                EXPECT_LT(begins[i], k.extent(axes[i].axis));
                if (group == 0) {
                    EXPECT_EQ(begins[i], axes[i].is_backward ? (axes[i].tiles - 1) * tile : 0);
                }
            }
            EXPECT_TRUE(seen.insert(begins).second) << "kernel " << n << ", group " << group << "\n" << code;
        }
    }
}

/// The functions of the prelude by which blocks take groups in turn.
std::string functions_of_groups() {
    const std::string prelude = cuda::complete(cuda::CudaSource{});
    const std::size_t at = prelude.find("// ---- rounds of groups"), end = prelude.find("// ---- ", at + 1);
    return at == std::string::npos ? "" : prelude.substr(at, end - at);
}

// One to 300 groups, even or uneven, in one section or several, by grids of 1 to 140 blocks.
TEST(GroupPositions, AreThoseOfOneBlockEachWhateverTheGrid) {
    const Diagram diagram = random_diagram(2, {});
    const auto made = cpu_case::make_case(diagram, cpu_case::some_extents(diagram, 2), 2, "k", {}, cpu_case::warps());
    ScheduledKernel k = made.scheduled.kernels.at(0);
    k.schedule.threads.by_user = true;
    std::string code =
        "#define NAPKIN_INLINE static inline\nstruct Dimension { unsigned x; } gridDim, blockIdx;\n"
        "using Index = int;\n" +
        functions_of_groups();
    struct Kind {
        std::int64_t groups, sections;
        bool is_uneven;
    };
    std::vector<Kind> kinds;
    for (const std::int64_t in_section : {1, 2, 7, 60, 96, 132, 133, 264, 300})
        for (const Kind& kind : {Kind{in_section, 1, false}, Kind{in_section, 1, true}, Kind{3 * in_section, 3, true},
                                 Kind{5 * in_section, 5, true}}) {
            const AxisId axis = k.group_order.at(0).axis;
            k.group_order = {{axis, kind.sections}, {axis, in_section, 1, kind.is_uneven}};
            ASSERT_EQ(k.alternates_direction(), kind.is_uneven);
            const std::string text =
                writers::kernel_text(lower::lowered(std::make_shared<const ScheduledKernel>(k)), "k", "").text;
            const std::size_t at = text.find("for (Index group = "), end = text.find(" {", at);
            ASSERT_NE(at, std::string::npos);
            code += fmt::format(
                "extern \"C\" long loop_{}(unsigned grid, unsigned block, long* out) {{\n    gridDim.x = grid, "
                "blockIdx.x = block;\n    long n = 0;\n    {}\n        if (n < 2000) out[n++] = group;\n    return "
                "n;\n}}\n",
                kinds.size(), text.substr(at, end - at));
            kinds.push_back(kind);
        }
    const auto module = jit_compile(code, {});
    ASSERT_TRUE(module.ok()) << render(module.errors()) << code;
    for (std::size_t n = 0; n < kinds.size(); ++n) {
        const auto loop = reinterpret_cast<long (*)(unsigned, unsigned, long*)>(
            (*module)->symbol(fmt::format("loop_{}", n)));
        const std::int64_t groups = kinds[n].groups, in_section = groups / kinds[n].sections;
        for (const long grid : {1, 2, 3, 33, 132, 140}) {
            std::set<long> seen;
            for (long block = 0; block < grid; ++block) {
                std::vector<long> taken(2000);
                taken.resize(static_cast<std::size_t>(
                    loop(static_cast<unsigned>(grid), static_cast<unsigned>(block), taken.data())));
                for (const long group : taken) {
                    EXPECT_TRUE(seen.insert(group).second) << group << " of " << groups << " for " << grid;
                    const long begin = group / in_section * in_section, round = (group - begin) / grid,
                               at = (group - begin) % grid;
                    const long place = kinds[n].is_uneven && round % 2 == 1 ? grid - 1 - at : at;
                    EXPECT_EQ(block, (kinds[n].is_uneven ? begin + place : group) % grid);
                }
                EXPECT_TRUE(std::is_sorted(taken.begin(), taken.end()));
            }
            EXPECT_EQ(std::ssize(seen), groups) << grid;
            EXPECT_TRUE(*seen.begin() == 0 && *seen.rbegin() == groups - 1);
        }
    }
}

}  // namespace
}  // namespace napkin
