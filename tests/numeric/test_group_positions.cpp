// Where emitted kernels say that a group stands: whichever order the groups have, each tile of the grouped axes is one group's.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>
#include <sstream>
#include <utility>

#include "emit/emit_kernel.hpp"
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
    std::istringstream text(writers::kernel_text(kernel, "k"));
    Positions out;
    const std::string declaration = "[[maybe_unused]] const Index ";
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
    for (std::uint64_t seed = 1; seed <= 60; ++seed) {
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

}  // namespace
}  // namespace napkin
