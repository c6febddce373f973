// Numbers at the edges of their types. Conversions saturate and arithmetic wraps. There are quotients by a coordinate
// that is 0, and integers at the last one that a real number tells from the next. There are powers of infinities,
// subnormal sums and casts that round. All run on inputs of every kind, for every width of vectors and for a GPU's
// threads.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>

#include "napkin/napkin.hpp"
#include "numeric/cpu_kernel_case.hpp"
#include "numeric/planned_on_cpu.hpp"
#include "syntax/parse.hpp"

namespace napkin::test_hostile_numbers {
namespace {

/// Compares the program with its definition on every kind of inputs, a NaN for a NaN.
void expect_definition_everywhere(const std::vector<std::string>& texts) {
    for (const cpu_case::Width& width : cpu_case::widths()) {
        std::vector<cpu_case::Case> cases;
        for (const std::string& text : texts) {
            const auto diagram = parse_diagram(std::make_shared<const Source>(Source{"<test>", text}));
            ASSERT_TRUE(diagram.ok()) << render(diagram.errors());
            for (std::uint64_t seed = 1; seed <= 2; ++seed) {
                cases.push_back(cpu_case::make_case(*diagram, bind_sizes(*diagram).value(), seed,
                                                    fmt::format("n{}_", cases.size()), {}, width));
                cases.back().probes = {std::begin(all_probes), std::end(all_probes)};
                cases.back().nan_is_open = false;
            }
        }
        const auto failures = cpu_case::failures(cases, width);
        for (std::size_t k = 0; k < cases.size(); ++k)
            EXPECT_EQ(failures[k], "") << width.name << "\n" << cpu_case::describe(cases[k]);
    }
    std::vector<cpu_case::Planned> planned;
    for (const std::string& text : texts)
        planned.push_back(cpu_case::planned_on_hopper(text, "", fmt::format("g{}_", planned.size())));
    EXPECT_EQ(cpu_case::fault_on_probes(planned, 0, 1), "");
}

// 2^31 is 4 · 2^29: whole inputs from -4 to 4 are its edges, others lie on both sides of them.
TEST(HostileNumbers, CastsSaturateOnceAndArithmeticWraps) {
    expect_definition_everywhere({
        "f(D[i]) -> R[i]: i32, S[i]: i64\n    R[i] = i32(D[i]) + 1\n    S[i] = i32(D[i]) + 1\nsizes i = 37\n",
        "f(D[i]) -> A[i]: i32, B[i]: i32, C[i]: i32\n    A[i] = i32(D[i] * 536870912) - i32(D[i] * -536870912)\n"
        "    B[i] = -i32(D[i] * 536870912) * 3\n    C[i] = abs(i32(D[i] * 536870912)) - 1\nsizes i = 37\n",
        "f(D[i]) -> A[i]: i64, B[i]: i32\n    A[i] = i64(D[i] * 2305843009213693952) + i64(D[i]) * 7\n"
        "    B[i] = i32(i64(D[i] * 1073741824) * 5)\nsizes i = 37\n",
        "f(D[i]) -> A[i]: i32, B[i]: i32, C[i]\n    A[i] = i32(D[i] * 536870912) // 3 + i32(D[i]) % 7\n"
        "    B[i] = 7 // i32(D[i]) + 7 % i32(D[i])\n"
        "    C[i] = where(i32(D[i] * 536870912) + 1 > i32(D[i]), D[i], 1)\nsizes i = 37\n",
        "f(D[i]) -> R[i]\n    T[i]: i32 = D[i] * 536870912\n    R[i] = T[i] * 2 + 1\nsizes i = 37\n",
    });
}

TEST(HostileNumbers, ReductionsOfCastsWrap) {
    expect_definition_everywhere({
        "f(C[i, j]) -> n[i]: i32\n    n[i] = sum(j) i32(C[i, j])\nsizes i = 5, j = 41\n",
        "f(C[i, j]) -> n[i]: i64, m[i], p[i]: i32, q[i]: i32\n    n[i] = sum(j) i32(C[i, j]) * 3\n"
        "    m[i] = sum(j) i32(C[i, j])\n    p[i] = prod(j) i32(C[i, j] * 3)\n"
        "    q[i] = max(j) i32(C[i, j]) - 1\nsizes i = 5, j = 41\n",
        "f(C[i, j], D[i]) -> n[i]: i64\n    n[i] = sum(j) i32(C[i, j] * 536870912) * i32(D[i])\nsizes i = 5, j = 41\n",
        "f(C[i, j]) -> R[i, j]: i32\n    R[i, j] = i32(C[i, j]) - (max(j) i32(C[i, j]))\nsizes i = 5, j = 41\n",
    });
}

TEST(HostileNumbers, AQuantisedProductWithAZeroPointIsExact) {
    expect_definition_everywhere({
        "f(A[i, k], B[k, j], za: i32, zb: i32) -> C[i, j]: i32\n"
        "    C[i, j] = sum(k) (i32(A[i, k]) - za) * (i32(B[k, j]) - zb)\nsizes i = 9, j = 21, k = 33\n",
        "f(A[i, k], B[k, j], s) -> C[i, j]\n"
        "    C[i, j] = s * (sum(k) (i32(A[i, k] * 100) - 3) * (i32(B[k, j] * 100) - 5))\nsizes i = 9, j = 21, k = 33\n",
        "f(A[i, k]: i32, B[k, j]: i32, za: i32, zb: i32) -> C[i, j]: i32\n"
        "    C[i, j] = sum(k) (A[i, k] - za) * (B[k, j] - zb)\nsizes i = 9, j = 21, k = 33\n",
    });
}

TEST(HostileNumbers, IntegersByZeroAreZero) {
    expect_definition_everywhere({
        "f(A[i]) -> B[i], C[i], D[i]\n    B[i] = A[i] - 2 // i\n    C[i] = A[i] + 5 % i\n"
        "    D[i] = A[i] * (size(i) % (i - 3)) + (i - 7) // (3 - i)\nsizes i = 41\n",
        "f(A[i, j]) -> B[i], C[i]\n    B[i] = sum(j) A[i, j] * (7 // (j - 2))\n"
        "    C[i] = max(j) A[i, j] + (j * 3) % (i - j)\nsizes i = 5, j = 41\n",
        "f(N[i]: i32, A[i]) -> B[i]: i64, C[i]\n    B[i] = (N[i] // (i - 2)) * 3 + (i % N[i])\n"
        "    C[i] = A[i] + 1000 // N[i]\nsizes i = 41\n",
        "f(A[i]: i32) -> B[i]: i64\n    B[i] = max(((i % -3) // i), 2) // 3 - i // (i % 2) + A[i]\nsizes i = 41\n",
    });
}

TEST(HostileNumbers, RealNumbersByZeroAreInfiniteOrNaN) {
    expect_definition_everywhere({
        "f(A[i], Z[i]) -> B[i], C[i], D[i]\n    B[i] = A[i] // Z[i]\n    C[i] = A[i] % Z[i]\n"
        "    D[i] = A[i] // f32(i) + A[i] % f32(i)\nsizes i = 37\n",
    });
}

// 16777217 rounds to 16777216, which is a whole number of f32 like those below; so does 2^53 + 1 in f64.
TEST(HostileNumbers, IntegersAreComparedAtTheEdgeOfWhatARealNumberHolds) {
    std::vector<std::string> texts;
    for (const char* compare : {"==", "!=", "<=", ">=", "<", ">"}) {
        texts.push_back(
            fmt::format("f(X[i]: i32) -> A[i], B[i], C[i]: i32\n    A[i] = where(X[i] + 16777216 {0} 16777216, 1, 0)\n"
                        "    B[i] = where(X[i] - 16777216 {0} -16777216, 1, 0)\n    C[i] = X[i] + 16777215 {0} "
                        "16777216\nsizes i = 67\n",
                        compare));
        texts.push_back(
            fmt::format("f(X[i]: i64, Y[i]: f64) -> A[i]: f64\n"
                        "    A[i] = where(X[i] + 9007199254740992 {0} 9007199254740992, Y[i], 0)\nsizes i = 67\n",
                        compare));
    }
    expect_definition_everywhere(texts);
}

TEST(HostileNumbers, PowersOfInfinitiesAreRoots) {
    expect_definition_everywhere({
        "f(X[i], Y[i]) -> A[i], B[i], C[i], D[i], E[i]\n    A[i] = X[i]^0.5\n    B[i] = X[i]^-0.5\n    C[i] = "
        "X[i]^1.5\n"
        "    D[i] = X[i]^Y[i]\n    E[i] = X[i]^2.5\nsizes i = 37\n",
        "f(X[i]: f64, Y[i]: f64) -> A[i]: f64, D[i]: f64\n    A[i] = X[i]^0.5\n    D[i] = X[i]^Y[i]\nsizes i = 37\n",
    });
}

TEST(HostileNumbers, SubnormalSumsAreWithinTheirBounds) {
    expect_definition_everywhere({
        "f(A[i]) -> B[i], C[i]\n    B[i] = A[i] * 1e-38 + 0\n    C[i] = A[i] * 3e-38 - 2e-38\nsizes i = 37\n",
        "f(A[i, j]) -> S[i]\n    S[i] = sum(j) A[i, j] * 1e-39\nsizes i = 5, j = 41\n",
        "f(A[i, j]) -> S[i], M[i]\n    T[i, j] = A[i, j] * 1e-38\n    S[i] = sum(j) T[i, j] - 1e-39\n"
        "    M[i] = max(j) where(T[i, j] > 0, T[i, j] + 1e-39, 0)\nsizes i = 5, j = 41\n",
    });
}

// ---- casts
// ------------------------------------------------------------

/// Programs whose Y is what a cast took off X, where the cast number lies in memory and where it does not.
std::vector<std::string> casting(const std::string& type) {
    return {
        fmt::format("f(X[i]) -> Y[i]\n    Y[i] = {0}(X[i]) - X[i]\nsizes i = 37\n", type),
        fmt::format("f(X[i]) -> Y[i]\n    T[i] = {0}(X[i])\n    Y[i] = T[i] - X[i]\nsizes i = 37\n", type),
        fmt::format("f(X[i]) -> Y[i]\n    T[i]: {0} = {0}(X[i])\n    Y[i] = T[i] - X[i]\nsizes i = 37\n", type),
        fmt::format("f(X[i]) -> Y[i], T[i]: {0}\n    T[i] = {0}(X[i])\n    Y[i] = T[i] - X[i]\nsizes i = 37\n", type),
        fmt::format("f(X[i]) -> Y[i]\n    T[i]: {0} = {0}(X[i])\n    M = max(i) T[i]\n"
                    "    Y[i] = (T[i] - X[i]) + where(M > 1e30, 1, 0)\nsizes i = 37\n",
                    type),
        fmt::format("f(X[i]) -> Y[i]\n    Y[i] = sum(j) where(j == i, {0}(X[j]) - X[j], 0)\nsizes i = j = 37\n", type),
    };
}

/// Numbers of which every narrow type drops digits, by the type's own exact rounding of them.
double number_at(std::size_t i) { return (i % 2 == 0 ? 1 : -1) * (1 + static_cast<double>(i) * 0x1p-14 + 0x1p-20); }

void expect_rounded(const std::string& text, DType type, const Tensor& made) {
    for (std::int64_t i = 0; i < made.count(); ++i) {
        const double x = number_at(static_cast<std::size_t>(i));
        ASSERT_EQ(made.at(i), round_to(type, x) - x) << i << "\n" << text;
    }
}

TEST(HostileNumbers, ACastAlwaysRounds) {
    constexpr std::size_t count = 37;
    for (const DType type : {DType::f16, DType::bf16, DType::tf32, DType::e4m3, DType::e5m2}) {
        std::vector<cpu_case::Planned> planned;
        const std::vector<std::string> texts = casting(std::string(name(type)));
        for (const std::string& text : texts) {
            const auto program = compile(text, {});
            ASSERT_TRUE(program) << program.error_text();
            Tensor x = Tensor::make(DType::f32, {count}).value(), y = Tensor::make(DType::f32, {count}).value(),
                   t = Tensor::make(type, {count}).value();
            for (std::size_t i = 0; i < count; ++i) x.set(static_cast<std::int64_t>(i), number_at(i));
            const std::vector<ConstView> inputs{{x.data(), ElementType::f32, x.sizes(), {}}};
            std::vector<View> outputs{{y.data(), ElementType::f32, y.sizes(), {}}};
            if (program->outputs().size() == 2)
                outputs.push_back({t.data(), static_cast<ElementType>(type), t.sizes(), {}});
            const auto errors = program->run(inputs, outputs);
            ASSERT_TRUE(errors.empty()) << errors[0].rendered;
            expect_rounded(text, type, y);
            planned.push_back(cpu_case::planned_on_hopper(text, "", fmt::format("c{}_", planned.size())));
        }
        const auto module = cpu_case::compiled_for_cpu(cpu_case::in_one_source(planned));
        for (std::size_t k = 0; k < planned.size(); ++k) {
            Values given(planned[k].diagram.arrays.size());
            std::vector<double> x;
            for (std::size_t i = 0; i < count; ++i) x.push_back(number_at(i));
            given[planned[k].diagram.inputs[0]] = x;
            const auto made = cpu_case::outputs_of(planned[k], cpu_case::reference_of(planned[k], given), *module, {});
            ASSERT_TRUE(made);
            expect_rounded(texts[k] + planned[k].source.text, type, made->front());
        }
    }
}

// Its difference from a running maximum is rounded as a whole: nothing of that can wait until the maximum is known.
TEST(HostileNumbers, ACastOfADifferenceFromAMaximumRounds) {
    constexpr std::int64_t count = 37;
    const auto program = compile("f(X[i]) -> Y\n    M = max(i) X[i]\n    Y = sum(i) exp(f16(X[i] - M))\nsizes i = 37\n", {});
    ASSERT_TRUE(program) << program.error_text();
    Tensor x = Tensor::make(DType::f32, {count}).value(), y = Tensor::make(DType::f32, {}).value();
    for (std::int64_t i = 0; i < count; ++i) x.set(i, i == 20 ? 0 : -1 - 0x1p-12);
    const auto errors = program->run(std::vector<ConstView>{{x.data(), ElementType::f32, x.sizes(), {}}},
                                     std::vector<View>{{y.data(), ElementType::f32, y.sizes(), {}}});
    ASSERT_TRUE(errors.empty()) << errors[0].rendered;
    EXPECT_NEAR(y.at(0), 1 + 36 * std::exp(-1.0), 1e-5);
}

}  // namespace
}  // namespace napkin::test_hostile_numbers
