// Factors of a product that a kernel computes: rounded to a type of a narrow range only where they are at most 1, and
// by how much.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <stdexcept>

#include "check/execution.hpp"
#include "plan/blocks.hpp"
#include "schedule/fragments.hpp"
#include "schedule/reduction_trees.hpp"
#include "support/ids.hpp"
#include "support/parsed.hpp"

namespace napkin::test_rounded_factors {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

std::string attention_in(const std::string& type) {
    return "attention(Q[q, k]: " + type + ", K[x, k]: " + type + ", V[x, d]: " + type +
           ") -> O[q, d]: f32\n"
           "    S[q, x] = sum(k) Q[q, k] * K[x, k]\n"
           "    P[q, x] = softmax(x) S[q, x] * k^-0.5\n"
           "    O[q, d] = sum(x) P[q, x] * V[x, d]\n"
           "sizes q = x = 1024, k = d = 64\n";
}

struct PlannedForH200 {
    explicit PlannedForH200(const std::string& text, const std::string& schedule)
        : diagram(parsed(text)), derived(derived_from(text)), extents(bind_sizes(derived.diagram, {}).value()) {
        PlanOptions options;
        options.file = std::make_shared<const Source>(Source{"by_hand.schedule", schedule});
        plan = choose_blocks(derived, extents, load_machine("h200").value(), {}, options).value();
    }
    Diagram diagram;
    Derived derived;
    Extents extents;
    Plan plan;
};

const std::string on_the_unit = "mma_m q\nwarps 4\ngroup q = 64\nstream x = 64\n";

// ---- at most 1

/// The statements of the kernel, those of its loops too, that changes of a program go over.
using Change = std::function<void(std::vector<TileStatement>&, const TileKernel&)>;

VariableId variable_named(const TileKernel& kernel, const std::string& name) {
    for (const VariableId v : kernel.variables.ids())
        if (kernel.variables[v].name == name) return v;
    throw std::out_of_range(name);
}

class AtMostOneFactors : public testing::Test {
protected:
    /// Whether the product that reads the weights runs on the tensor cores once the loop's statements are changed.
    static bool is_product(const PlannedForH200& p, const Change& change) {
        const ScheduledKernel& k = p.plan.kernels.at(0).scheduled;
        TileProgram program = *k.program;
        TileKernel& kernel = program.kernels.at(0);
        for (TileStatement& s : kernel.body)
            if (const auto* loop = std::get_if<std::shared_ptr<const TileLoop>>(&s)) {
                TileLoop changed = **loop;
                change(changed.body, kernel);
                s = std::make_shared<const TileLoop>(std::move(changed));
            }
        const auto shared = std::make_shared<const TileProgram>(std::move(program));
        const ScheduledKernel other = with_sizes(unscheduled(shared, 0, k.extents, k.unit), k.schedule);
        const VariableId weight = variable_named(*other.kernel, "weight");
        for (const Step& step : other.steps)
            if (const auto product = mma_product(other, step); product && product->a_in_registers)
                return product->a->variable() == weight;
        return false;
    }
    static Compute& compute(std::vector<TileStatement>& body, const TileKernel& kernel, const std::string& name) {
        const VariableId id = variable_named(kernel, name);
        for (TileStatement& s : body)
            if (auto* compute = std::get_if<Compute>(&s); compute && compute->variable == id) return *compute;
        throw std::out_of_range(name);
    }
    /// The expression with another one at each node of which `replaced` gives one.
    static void rewrite(std::vector<TileStatement>& body, const TileKernel& kernel, const std::string& name,
                        const std::function<Expr(const Expr&)>& replaced) {
        Compute& changed = compute(body, kernel, name);
        const Expr before = changed.body;
        changed.body = transform(before, replaced);
        ASSERT_FALSE(equal(before, changed.body)) << name << " is as it was";
    }
    /// The statement that computes the one moves to where the other's is, and that one behind it.
    static void move_before(std::vector<TileStatement>& body, const TileKernel& kernel, const std::string& moved,
                            const std::string& other) {
        const auto at_name = [&](const std::string& name) {
            const VariableId id = variable_named(kernel, name);
            return std::find_if(body.begin(), body.end(), [&](const TileStatement& s) {
                const auto* compute = std::get_if<Compute>(&s);
                return compute && compute->variable == id;
            });
        };
        const auto from = at_name(moved), to = at_name(other);
        ASSERT_LT(to - body.begin(), from - body.begin());
        std::rotate(to, from, from + 1);
    }

    const PlannedForH200 f16_{attention_in("f16"), on_the_unit}, bf16_{attention_in("bf16"), on_the_unit};

    void expect_refused(const Change& change) const {
        EXPECT_FALSE(is_product(f16_, change));
        EXPECT_TRUE(is_product(bf16_, change)) << "bf16 has the range of what is computed";
    }
};

TEST_F(AtMostOneFactors, AreExponentialsOfValuesLessTheirMaximum) {
    const Change nothing = [](auto&, const TileKernel&) {};
    EXPECT_TRUE(is_product(f16_, nothing));
    EXPECT_TRUE(is_product(bf16_, nothing));
}

TEST_F(AtMostOneFactors, AreLessTheMaximumUnlessThatIsInfinite) {
    // 0 in place of a maximum that is 0, as before, and of no other: an infinite one less itself is no number.
    expect_refused([](auto& body, const TileKernel& kernel) {
        rewrite(body, kernel, "guarded", [](const Expr& e) {
            const auto* c = as<Constant>(e);
            return c && c->value == -infinity ? constant(0) : e;
        });
    });
    // Another number in its place.
    expect_refused([](auto& body, const TileKernel& kernel) {
        rewrite(body, kernel, "guarded", [](const Expr& e) {
            const auto* c = as<Constant>(e);
            return c && c->value == 0 ? constant(-1) : e;
        });
    });
    // Where something else is infinite.
    expect_refused([](auto& body, const TileKernel& kernel) {
        const VariableId maximum = variable_named(kernel, "P_M"), before = variable_named(kernel, "P_M_old");
        rewrite(body, kernel, "guarded", [&](const Expr& e) {
            const auto* b = as<Binary>(e);
            const auto* r = b ? as<Read>(b->a) : nullptr;
            return r && r->variable() == maximum ? binary(b->op, read(before, r->indices), b->b) : e;
        });
    });
}

TEST_F(AtMostOneFactors, AreLessTheMaximumOfThisTurn) {
    expect_refused([](auto& body, const TileKernel& kernel) {
        const VariableId maximum = variable_named(kernel, "P_M"), before = variable_named(kernel, "P_M_old");
        rewrite(body, kernel, "guarded", [&](const Expr& e) {
            const auto* r = as<Read>(e);
            return r && r->variable() == maximum ? read(before, r->indices) : e;
        });
    });
    // What is read of it before it is brought up to date is the old one, too.
    expect_refused([](auto& body, const TileKernel& kernel) { move_before(body, kernel, "guarded", "P_M"); });
    // A maximum of what is there before the values are.
    expect_refused([](auto& body, const TileKernel& kernel) { move_before(body, kernel, "P_M", "S"); });
}

TEST_F(AtMostOneFactors, AreLessAMaximumOfTheSameValues) {
    expect_refused([](auto& body, const TileKernel& kernel) { compute(body, kernel, "P_M").reduce = ReduceOp::min; });
    // The value itself, and not a multiple of it.
    expect_refused([](auto& body, const TileKernel& kernel) {
        const VariableId score = variable_named(kernel, "S");
        rewrite(body, kernel, "weight", [&](const Expr& e) {
            const auto* b = as<Binary>(e);
            const auto* r = b && b->op == BinaryOp::mul ? as<Read>(b->a) : nullptr;
            return r && r->variable() == score ? b->a : e;
        });
    });
    // A sum of two of them may be 2.
    expect_refused([](auto& body, const TileKernel& kernel) {
        Compute& weight = compute(body, kernel, "weight");
        weight.body = binary(BinaryOp::add, weight.body, weight.body);
    });
}

TEST_F(AtMostOneFactors, AreProductsOfSuchFactors) {
    const auto times = [](const Expr& factor) {
        return [=](auto& body, const TileKernel& kernel) {
            Compute& weight = compute(body, kernel, "weight");
            weight.body = binary(BinaryOp::mul, weight.body, factor);
        };
    };
    EXPECT_TRUE(is_product(f16_, times(constant(-1))));
    expect_refused(times(constant(1.5)));
}

// ---- the rounding

/// The unit of the equation, as the schedule's products say.
double factor_unit(const PlannedForH200& p, const std::string& array) {
    std::vector<std::vector<ReductionTree>> trees;
    for (const KernelPlan& k : p.plan.kernels) trees.push_back(reduction_trees(k.scheduled));
    const Execution execution = execution_of(p.diagram, bind_sizes(p.diagram, {}).value(), p.plan.tiles(), std::move(trees));
    const ArrayId id = p.diagram.find_array(array).value();
    for (std::size_t e = 0; e < p.diagram.equations.size(); ++e)
        if (p.diagram.equations[e].target == id) return execution.factor_unit.at(e);
    throw std::out_of_range(array);
}

TEST(FactorUnit, IsThatOfAProductOfTwoRowsOfOneArray) {
    const std::string gram =
        "gram(Q[q, k]: bf16) -> G[q, x]: f32\n"
        "    G[q, x] = sum(k) exp(Q[q, k]) * Q[x, k]\n"
        "sizes q = x = 1024, k = 64\n";
    const PlannedForH200 planned(gram, "mma_m q\nwarps 4\ngroup q = 64\ngroup x = 64\n");
    EXPECT_GE(factor_unit(planned, "G"), std::ldexp(1.0, -8));
}

TEST(FactorUnit, IsHalfTheSpacingOfTheTypeInWhichWeightsAreMultipliedAndWhatTheUnitCuts) {
    const auto of = [](const std::string& type, const std::string& array, const std::string& schedule) {
        return factor_unit(PlannedForH200(attention_in(type), schedule), array);
    };
    // What is loaded is multiplied as it is. Each instruction of 16 terms cuts what it adds at 22 bits behind the
    // leading one, twice at most.
    const double cut_of_S = 64.0 / 16 * std::ldexp(1.0, -22), cut_of_O = 1024.0 / 16 * std::ldexp(1.0, -22);
    EXPECT_EQ(of("f16", "S", on_the_unit), cut_of_S);
    EXPECT_EQ(of("bf16", "S", on_the_unit), cut_of_S);
    // 10 bits and 7 bits behind the leading one.
    EXPECT_EQ(of("f16", "O", on_the_unit), std::ldexp(1.0, -11) + cut_of_O);
    EXPECT_EQ(of("bf16", "O", on_the_unit), std::ldexp(1.0, -8) + cut_of_O);
    // Threads add up the weights exactly to f32, and the maximum rounds nothing.
    EXPECT_EQ(of("f16", "P_Z", on_the_unit), 0);
    EXPECT_EQ(of("f16", "P_M", on_the_unit), 0);
    // Elsewhere all is computed in f32.
    EXPECT_EQ(of("bf16", "O", "mma_m none\n"), 0);
}

}  // namespace
}  // namespace napkin::test_rounded_factors
