// Powers whose exponents are numbers: what the model counts of them is what is emitted.
#include <gtest/gtest.h>

#include <regex>

#include "algebra/power.hpp"
#include "emit/cpu/emit.hpp"
#include "plan/choose.hpp"
#include "plan/choose_form.hpp"
#include "support/parsed.hpp"
#include "support/ranges.hpp"
#include "tile/work.hpp"

namespace napkin::test_power {
namespace {

struct Operations {
    std::int64_t simple = 0, fma = 0, div = 0, sqrt = 0, pow = 0;
    bool operator==(const Operations&) const = default;
};
std::ostream& operator<<(std::ostream& out, const Operations& o) {
    return out << o.simple << " simple, " << o.fma << " fma, " << o.div << " div, " << o.sqrt << " sqrt, " << o.pow
               << " pow";
}

Operations counted(const Derived& derived) {
    Operations all;
    for (const StatementWork& s : statement_work(derived, derived.kernels[0]))
        for (const OpCount& op : s.ops)
            (op.kind == OpKind::fma    ? all.fma
             : op.kind == OpKind::div  ? all.div
             : op.kind == OpKind::sqrt ? all.sqrt
             : op.kind == OpKind::pow  ? all.pow
                                       : all.simple) += op.count;
    return all;
}

std::int64_t matches(const std::string& text, const std::string& pattern) {
    const std::regex regex(pattern);
    return std::distance(std::sregex_iterator(text.begin(), text.end(), regex), std::sregex_iterator());
}

/// In the function that computes Y, beside what is computed of indices.
Operations emitted(const Derived& derived) {
    const auto plan = choose_plan(derived, bind_sizes(derived.diagram).value(), load_machine("generic-cpu").value());
    const std::string source = cpu::emit(plan.value().program()).text;
    const std::size_t begin = source.find("compute_Y(");
    std::string text = source.substr(begin, source.find("\n}\n", begin) - begin);
    text = std::regex_replace(text, std::regex(R"(\[[^\]]*\]|\d+ \* j)"), "");
    return {.simple = matches(text, R"( \* )"),
            .div = matches(text, " / "),
            .sqrt = matches(text, R"(sqrt\()"),
            .pow = matches(text, R"(\bpow\()")};
}

Derived power_of(const std::string& exponent) {
    return derived_from("f(X[r]) -> Y[r]\n    Y[r] = X[r] ^ (" + exponent + ")\nsizes r = 4096\n");
}

bool has_loop(const Derived& derived) {
    return any_of(derived.kernels, [](const Kernel& kernel) {
        return any_of(kernel.stages, [](const Stage& stage) { return std::holds_alternative<Loop>(stage); });
    });
}

TEST(Power, IsCountedAsItIsEmitted) {
    for (const std::string exponent : {"2",  "3",  "4",   "5",    "6",   "7", "8",  "-1",  "-2",   "-3",
                                       "-7", "-8", "0.5", "-0.5", "1.5", "9", "-9", "2.5", "-1.5", "0.3"})
        EXPECT_EQ(counted(power_of(exponent)), emitted(power_of(exponent))) << "X ^ " << exponent;
}

TEST(Power, OfWholeExponentsTakesTheProductsOfRepeatedSquaring) {
    const int products[] = {0, 0, 1, 2, 2, 3, 3, 4, 3};
    for (int n = 0; n <= 8; ++n) {
        EXPECT_EQ(power_steps(n)->products(), products[n]) << n;
        EXPECT_EQ(power_steps(-n)->products(), products[n]) << -n;
    }
    EXPECT_EQ(power_steps(1.5)->products(), 1);
    for (const double e : {9.0, -9.0, 2.5, -1.5, 1e300, -1e300, 0.25}) EXPECT_FALSE(power_steps(e)) << e;
    EXPECT_FALSE(power_steps(std::numeric_limits<double>::infinity()));
    EXPECT_FALSE(power_steps(std::numeric_limits<double>::quiet_NaN()));
}

// A square is a product, which is added in one operation with itself; a root, or a quotient, is none.
TEST(Power, ThatEndsInAProductIsOneOperationWithItsSum) {
    const auto work = [](const std::string& body) {
        return counted(derived_from("f(X[r, c], Z[r, c]) -> Y[r]\n    Y[r] = sum(c) " + body + "\nsizes r = 64, c = 64\n"));
    };
    EXPECT_EQ(work("X[r, c]^2 * Z[r, c]"), (Operations{.simple = 1, .fma = 1}));
    EXPECT_EQ(work("(X[r, c] - Z[r, c])^2"), (Operations{.simple = 1, .fma = 1}));
    EXPECT_EQ(work("(X[r, c] - Z[r, c])^3"), (Operations{.simple = 2, .fma = 1}));
    EXPECT_EQ(work("(X[r, c] - Z[r, c])^0.5"), (Operations{.simple = 2, .sqrt = 1}));
    EXPECT_EQ(work("(X[r, c] - Z[r, c])^(-2)"), (Operations{.simple = 3, .div = 1}));
    EXPECT_EQ(work("abs(X[r, c] + Z[r, c]^2)"), (Operations{.simple = 2, .fma = 1}));
}

// Counted by logarithms, the squares of a variance would take ten times as long as its arrays, and their rows, read
// once, would be left for chunks.
TEST(Power, OfCentredRowsLeavesThemAtTheCore) {
    const Derived norm = derived_from(
        "f(X[r, c], G[c], B[c]) -> Y[r, c]\n    Y[r, c] = layernorm(c)(X[r, c], G[c], B[c])\nsizes r = 8192, c = "
        "1024\n");
    EXPECT_TRUE(has_loop(norm));
    EXPECT_FALSE(has_loop(choose_form(norm, bind_sizes(norm.diagram).value(), load_machine("generic-cpu").value())));
}

}  // namespace
}  // namespace napkin::test_power
