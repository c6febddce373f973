// The generator of random diagrams itself: what it makes is well formed, finite, broad, and shrinks.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "diagram/evaluate.hpp"
#include "diagram/verifier.hpp"
#include "support/random_diagram.hpp"

namespace napkin {
namespace {
constexpr std::uint64_t num_diagrams = 2000;

/// Largest magnitude over all outputs; infinity when one is not finite.
double largest_output(const Diagram& d, std::uint64_t seed) {
    const Extents extents = random_extents(d, seed);
    Values values = random_inputs(d, extents, seed);
    evaluate(d, extents, values);
    double largest = 0;
    for (ArrayId id : d.outputs) {
        for (double x : values[id]) {
            if (!std::isfinite(x)) return std::numeric_limits<double>::infinity();
            largest = std::max(largest, std::fabs(x));
        }
    }
    return largest;
}

TEST(RandomDiagram, VerifiesBindsAndStaysTame) {
    int not_finite = 0, large = 0;
    for (std::uint64_t seed = 0; seed < num_diagrams; ++seed) {
        const Diagram d = random_diagram(seed);
        ASSERT_EQ(verify(d), std::vector<std::string>{}) << "seed " << seed << "\n" << describe(d);
        ASSERT_FALSE(d.outputs.empty()) << seed;
        ASSERT_LE(d.equations.size(), 9U) << seed;
        ASSERT_GE(d.equations.size(), 2U) << seed;
        ASSERT_LE(d.axes.size(), 6U) << seed;
        const double largest = largest_output(d, seed);
        not_finite += std::isinf(largest) ? 1 : 0;
        large += largest > 1e4 ? 1 : 0;
    }
    EXPECT_LE(not_finite, 20);
    EXPECT_LE(large, 40);
}

TEST(RandomDiagram, SingleAndDoublePrecisionAgree) {
    int far = 0;
    for (std::uint64_t seed = 0; seed < 500; ++seed) {
        const Diagram d = random_diagram(seed);
        const Extents extents = random_extents(d, seed);
        Values exact = random_inputs(d, extents, seed), stored = exact;
        evaluate(d, extents, exact);
        evaluate(d, extents, stored, Precision::stored);
        double worst = 0;
        for (ArrayId id : d.outputs) {
            const auto& x = exact[id];
            double scale = 1;
            for (double v : x) scale = std::max(scale, std::fabs(v));
            for (std::size_t i = 0; i < x.size(); ++i) worst = std::max(worst, std::fabs(x[i] - stored[id][i]) / scale);
        }
        far += worst > 1e-3 ? 1 : 0;
    }
    EXPECT_LE(far, 10);
}

TEST(RandomDiagram, TheSameSeedGivesTheSameDiagram) {
    for (std::uint64_t seed = 0; seed < 50; ++seed) EXPECT_EQ(random_diagram(seed), random_diagram(seed));
    EXPECT_FALSE(random_diagram(1) == random_diagram(2));
}

TEST(RandomDiagram, CoversWhatItPromises) {
    std::map<std::string, int> found;
    for (std::uint64_t seed = 0; seed < num_diagrams; ++seed) {
        const Diagram d = random_diagram(seed);
        std::set<std::string> here;
        std::set<ArrayId> used;
        if (d.outputs.size() > 1) here.insert("several outputs");
        for (const Equation& e : d.equations) {
            here.insert(e.reduce ? std::string(name(*e.reduce)) : "map");
            if (e.reduce_axes.size() > 1) here.insert("two reduced axes");
            const std::vector<AxisId> known = free_axes(e.body);
            const auto unknown = [&](AxisId axis) { return !contains(known, axis); };
            const auto& kept = d.array(e.target).axes;
            if (std::any_of(kept.begin(), kept.end(), unknown)) here.insert("broadcast");
            if (std::any_of(e.reduce_axes.begin(), e.reduce_axes.end(), unknown))
                here.insert("reduction of what does not vary");
            std::map<ArrayId, std::set<std::string>> patterns;
            visit(e.body, [&](const Expr& node) {
                if (as<Select>(node)) here.insert("where");
                if (as<Cast>(node)) here.insert("cast");
                if (as<AxisIndex>(node)) here.insert("index");
                if (as<AxisSize>(node)) here.insert("size");
                if (as<Constant>(node) && std::isinf(as<Constant>(node)->value)) here.insert("-inf");
                if (const auto* u = as<Unary>(node)) here.insert(std::string(name(u->op)));
                if (const auto* b = as<Binary>(node)) here.insert(std::string(name(b->op)));
                const auto* r = as<Read>(node);
                if (!r) return;
                used.insert(r->array);
                patterns[r->array].insert(to_string(node, d.names()));
                if (r->indices.empty()) here.insert("scalar");
                if (d.array(r->array).role == ArrayRole::output) here.insert("an output that is read");
                for (std::size_t i = 0; i < r->indices.size(); ++i) {
                    if (r->indices[i].axes().size() > 1) here.insert("window");
                    for (const auto& term : r->indices[i].affine()->terms) {
                        if (term.second == 2) here.insert("stride");
                    }
                    if (r->indices[i].single_axis() >= 0 && !r->indices[i].is_axis(d.array(r->array).axes[i]))
                        here.insert("another axis");
                }
                const Equation* source = d.definition(r->array);
                if (!source || !source->reduce || !e.reduce || e.reduce_axes != source->reduce_axes) return;
                here.insert("cascade");
                if (*source->reduce == ReduceOp::max && *e.reduce == ReduceOp::sum) here.insert("max then sum");
            });
            for (const auto& entry : patterns) {
                if (entry.second.size() > 1) here.insert("two patterns");
            }
        }
        for (ArrayId id : d.inputs) {
            if (!used.contains(id)) here.insert("an input not used");
        }
        for (const std::string& what : here) ++found[what];
    }
    for (const char* what : {"several outputs",
                             "map",
                             "sum",
                             "prod",
                             "max",
                             "min",
                             "two reduced axes",
                             "where",
                             "cast",
                             "index",
                             "size",
                             "-inf",
                             "exp",
                             "tanh",
                             "rsqrt",
                             "sqrt",
                             "log",
                             "/",
                             "^",
                             "<=",
                             "<",
                             "and",
                             "scalar",
                             "an output that is read",
                             "window",
                             "stride",
                             "another axis",
                             "cascade",
                             "max then sum",
                             "two patterns",
                             "an input not used",
                             "broadcast",
                             "reduction of what does not vary"}) {
        EXPECT_GE(found[what], 20) << what;
        RecordProperty(what, found[what]);
    }
}

TEST(RandomDiagram, OptionsAreKept) {
    RandomDiagramOptions options;
    options.masks = options.affine_reads = options.casts = false;
    options.types = {DType::f16, DType::bf16};
    options.max_equations = 4;
    for (std::uint64_t seed = 0; seed < 300; ++seed) {
        const Diagram d = random_diagram(seed, options);
        ASSERT_EQ(verify(d), std::vector<std::string>{}) << seed;
        ASSERT_LE(d.equations.size(), 4U) << seed;
        for (const Array& array : d.arrays) ASSERT_TRUE(array.type == DType::f16 || array.type == DType::bf16) << seed;
        for (const Equation& e : d.equations) {
            visit(e.body, [&](const Expr& node) {
                EXPECT_FALSE(as<Select>(node) || as<Cast>(node)) << seed;
                const auto* r = as<Read>(node);
                EXPECT_TRUE(!r || equal(node, read_self(d, r->array))) << seed;
            });
        }
    }
}

TEST(Shrink, VariantsAreWellFormedAndBind) {
    for (std::uint64_t seed = 0; seed < 60; ++seed) {
        for (const Diagram& smaller : shrink(random_diagram(seed))) {
            ASSERT_EQ(verify(smaller), std::vector<std::string>{}) << seed;
            ASSERT_NO_THROW(random_extents(smaller, seed)) << "seed " << seed << "\n" << describe(smaller);
        }
    }
}

TEST(Shrink, FindsTheSmallCoreOfAFailure) {
    // "Fails" when a sum over an exponential of something is left anywhere.
    const auto fails = [](const Diagram& d) {
        for (const Equation& e : d.equations) {
            bool exponential = false;
            visit(e.body, [&](const Expr& node) {
                const auto* u = as<Unary>(node);
                exponential = exponential || (u && u->op == UnaryOp::exp && !read_arrays(u->a).empty());
            });
            if (e.reduce == ReduceOp::sum && exponential) return true;
        }
        return false;
    };
    int tried = 0;
    for (std::uint64_t seed = 0; seed < 60 && tried < 10; ++seed) {
        const Diagram d = random_diagram(seed);
        if (!fails(d)) continue;
        ++tried;
        const Diagram core = reduce_failure(d, fails);
        EXPECT_TRUE(fails(core));
        EXPECT_EQ(core.equations.size(), 1U) << describe(core);
        EXPECT_EQ(core.inputs.size(), 1U) << describe(core);
        EXPECT_EQ(core.axes.size(), 1U) << describe(core);
        EXPECT_EQ(count_nodes(core.equations[0].body), 2U) << describe(core);
    }
    EXPECT_EQ(tried, 10);
}

}  // namespace
}  // namespace napkin
