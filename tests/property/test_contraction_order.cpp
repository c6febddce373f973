// Products of many operands: the association that the derivation finds, beside the best of all, found here by trying
// every tree.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <limits>
#include <random>
#include <set>

#include "algebra/expr_walk.hpp"
#include "derive/derive.hpp"
#include "syntax/parse.hpp"

namespace napkin {
namespace {

/// A sum over every axis that is not in the result.
struct Product {
    std::vector<std::vector<int>> operands;  ///< axes of each
    std::set<int> result;
    std::vector<double> sizes;
};

std::string axis_name(int axis) { return fmt::format("a{}", axis); }
std::string list(const auto& axes) {
    std::vector<std::string> names;
    for (const int axis : axes) names.push_back(axis_name(axis));
    return fmt::format("{}", fmt::join(names, ", "));
}

std::string text_of(const Product& p) {
    std::vector<std::string> reads, sizes;
    std::set<int> summed;
    for (std::size_t i = 0; i < p.operands.size(); ++i) {
        reads.push_back(fmt::format("X{}[{}]", i, list(p.operands[i])));
        for (const int axis : p.operands[i])
            if (!p.result.contains(axis)) summed.insert(axis);
    }
    for (std::size_t a = 0; a < p.sizes.size(); ++a)
        sizes.push_back(fmt::format("{} = {}", axis_name(static_cast<int>(a)), p.sizes[a]));
    return fmt::format("chain({}) -> Y[{}]\n    Y[{}] = sum({}) {}\nsizes {}\n", fmt::join(reads, ", "), list(p.result),
                       list(p.result), list(summed), fmt::join(reads, " * "), fmt::join(sizes, ", "));
}

double points(const std::set<int>& axes, const std::vector<double>& sizes) {
    double product = 1;
    for (const int axis : axes) product *= sizes[static_cast<std::size_t>(axis)];
    return product;
}

/// The fewest FLOPs in which the operands of `inside` become one, by trying every tree: no result is kept from one tree
/// to the next.
double fewest(const Product& p, unsigned inside) {
    const auto kept = [&](unsigned subset) {
        std::set<int> axes;
        for (std::size_t i = 0; i < p.operands.size(); ++i)
            if (subset >> i & 1U)
                for (const int axis : p.operands[i]) {
                    bool needed = p.result.contains(axis);
                    for (std::size_t k = 0; k < p.operands.size(); ++k)
                        if (!(subset >> k & 1U))
                            for (const int other : p.operands[k]) needed = needed || other == axis;
                    if (needed) axes.insert(axis);
                }
        return axes;
    };
    if ((inside & (inside - 1)) == 0) return 0;
    const std::set<int> after = kept(inside);
    double least = std::numeric_limits<double>::infinity();
    for (unsigned left = (inside - 1) & inside; left != 0; left = (left - 1) & inside) {
        const unsigned right = inside & ~left;
        if (left < right) continue;
        std::set<int> before = kept(left);
        before.merge(kept(right));
        const double own = points(before, p.sizes) * (before == after ? 1 : 2);
        least = std::min(least, own + fewest(p, left) + fewest(p, right));
    }
    return least;
}

/// FLOPs of all the statements of all kernels.
double flops(const Derived& derived, const Extents& extents) {
    double sum = 0;
    const auto add = [&](const Statement& s) {
        double product = s.reduce ? 1 : 0;
        for_each_postorder(s.body, [&](const Expr& node) { product += as<Binary>(node) ? 1 : 0; });
        std::set<AxisId> axes(s.reduce_axes.begin(), s.reduce_axes.end());
        for (const AxisId axis : derived.diagram.array(s.target).axes) axes.insert(axis);
        for (const AxisId axis : axes) product *= static_cast<double>(extents[axis]);
        sum += product;
    };
    for (const Kernel& kernel : derived.kernels)
        for (const Stage& stage : kernel.stages) {
            const auto* loop = std::get_if<Loop>(&stage);
            for (const Statement& s : loop ? loop->body : std::get<Block>(stage).statements) add(s);
        }
    return sum;
}

void check(const Product& p) {
    const std::string text = text_of(p);
    SCOPED_TRACE(text);
    const auto diagram = parse_diagram(std::make_shared<const Source>(Source{"<text>", text}));
    ASSERT_TRUE(diagram.ok()) << render(diagram.errors());
    const auto made = derive(*diagram);
    ASSERT_TRUE(made.ok()) << render(made.errors());
    auto extents = bind_sizes(*diagram, {});
    ASSERT_TRUE(extents.ok());
    extents->resize(made->diagram.axes.size());
    const double best = fewest(p, (1U << p.operands.size()) - 1);
    EXPECT_LE(flops(*made, *extents), 1.05 * best);
}

/// X0[a0, a1] · X1[a1, a2] · …, of sizes from 8 to 1,024, or to 64 where there are many: all points of the sum have to
/// be countable.
Product chain(std::size_t operands, std::mt19937_64& random) {
    Product p;
    for (std::size_t i = 0; i <= operands; ++i)
        p.sizes.push_back(static_cast<double>(8 << random() % (operands < 7 ? 8 : 4)));
    for (std::size_t i = 0; i < operands; ++i) p.operands.push_back({static_cast<int>(i), static_cast<int>(i) + 1});
    p.result = {0, static_cast<int>(operands)};
    return p;
}

TEST(ContractionOrder, chains_cost_what_their_best_association_costs) {
    std::mt19937_64 random(0);
    for (std::size_t operands = 3; operands <= 8; ++operands)
        for (int i = 0; i < (operands < 7 ? 20 : 3); ++i) check(chain(operands, random));
}

TEST(ContractionOrder, a_batch_and_a_vector_at_the_end_of_a_chain) {
    std::mt19937_64 random(1);
    for (std::size_t operands = 3; operands <= 6; ++operands)
        for (int i = 0; i < 10; ++i) {
            Product p = chain(operands, random);
            const int batch = static_cast<int>(p.sizes.size());
            p.sizes.push_back(16);
            for (auto& axes : p.operands) axes.insert(axes.begin(), batch);
            p.operands.back().pop_back();
            p.result = {0, batch};
            p.sizes.erase(p.sizes.begin() + batch - 1);  // the axis that the last operand has lost
            for (auto& axes : p.operands) axes.front() = batch - 1;
            p.result = {0, batch - 1};
            check(p);
        }
}

}  // namespace
}  // namespace napkin
