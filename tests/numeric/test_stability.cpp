// Compiled kernels on the inputs that break careless algebra: masks of -1e9 and of minus infinity, weights on a few
// keys, moments far from the origin, exponents without order. What the definition says in double precision, every
// element has to come near.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>

#include <napkin/napkin.hpp>

#include "diagram/evaluate.hpp"
#include "run/tensor.hpp"
#include "syntax/parse.hpp"

namespace napkin {
namespace {

/// The value of an input at a place, counted row-major.
using Fill = std::function<float(const std::string& array, std::int64_t row, std::int64_t column)>;

Fill normal(float deviation = 1, float mean = 0) {
    return [=](const std::string& array, std::int64_t row, std::int64_t column) {
        return mean + deviation * static_cast<float>(normal_number(
                                      static_cast<std::uint64_t>(array[0]),
                                      static_cast<std::uint64_t>(row) << 20 | static_cast<std::uint64_t>(column)));
    };
}

/// Runs the text's diagram under the chunk sizes and compares every element of every output with the definition, to
/// `tolerance` of the element and as much of 1.
void check(const std::string& text, const Fill& fill, double tolerance = 2e-4, const CompileOptions& options = {}) {
    const auto program = compile(text, options);
    ASSERT_TRUE(program) << program.error_text();
    const auto diagram = parse_diagram(std::make_shared<const Source>(Source{"<text>", text}));
    ASSERT_TRUE(diagram.ok());
    const auto extents = bind_sizes(*diagram, options.sizes);
    ASSERT_TRUE(extents.ok());
    Values values(diagram->arrays.size());
    std::vector<std::vector<float>> in, out;
    std::vector<ConstView> inputs;
    std::vector<View> outputs;
    for (std::size_t i = 0; i < program->inputs().size(); ++i) {
        const ArrayInfo& info = program->inputs()[i];
        const std::int64_t rows = info.sizes.size() > 1 ? info.sizes[0] : 1, columns = info.sizes.back();
        in.emplace_back();
        for (std::int64_t row = 0; row < rows; ++row)
            for (std::int64_t column = 0; column < columns; ++column) in.back().push_back(fill(info.name, row, column));
        values[diagram->inputs[i]] = Column(std::vector<double>(in.back().begin(), in.back().end()));
        inputs.push_back({in.back().data(), info.type, info.sizes, {}});
    }
    for (const ArrayInfo& info : program->outputs()) {
        std::int64_t count = 1;
        for (const std::int64_t size : info.sizes) count *= size;
        out.emplace_back(static_cast<std::size_t>(count));
        outputs.push_back({out.back().data(), info.type, info.sizes, {}});
    }
    const auto errors = program->run(inputs, outputs);
    ASSERT_TRUE(errors.empty()) << errors.front().rendered;
    evaluate(*diagram, *extents, values);
    for (std::size_t i = 0; i < out.size(); ++i) {
        const auto& exact = values[diagram->outputs[i]];
        for (std::size_t j = 0; j < exact.size(); ++j) {
            if (std::isnan(exact[j])) {
                EXPECT_TRUE(std::isnan(out[i][j])) << program->outputs()[i].name << "[" << j << "]";
            } else if (std::isinf(static_cast<float>(exact[j]))) {
                EXPECT_EQ(out[i][j], static_cast<float>(exact[j])) << program->outputs()[i].name << "[" << j << "]";
            } else {
                ASSERT_NEAR(out[i][j], exact[j], tolerance * (1 + std::abs(exact[j])))
                    << program->outputs()[i].name << "[" << j << "]\n"
                    << program->derivation();
            }
        }
    }
}

CompileOptions streamed(const std::string& axis, std::int64_t chunk) {
    CompileOptions options;
    options.stream = {{axis, chunk}};
    return options;
}

std::string entropy_of_causal(const std::string& masked) {
    return "entropy(X[q, x]) -> H[q]\n"
           "    S[q, x] = where(x <= q, X[q, x], " +
           masked +
           ")\n"
           "    P[q, x] = softmax(x) S[q, x]\n"
           "    L[q, x] = log_softmax(x) S[q, x]\n"
           "    H[q] = -(sum(x) P[q, x] * L[q, x])\n"
           "sizes q = x = 150\n";
}

TEST(Stability, entropy_under_a_large_finite_mask) {
    for (const char* masked : {"-1e9", "-1e30"})
        for (const std::int64_t chunk : {16, 64, 150})
            check(entropy_of_causal(masked), normal(2), 2e-4, streamed("x", chunk));
}

TEST(Stability, weighted_variance_where_few_keys_hold_the_weight) {
    const std::string text =
        "variance(W[r, c], X[r, c]) -> V[r]\n"
        "    Z[r] = sum(c) W[r, c]\n"
        "    M[r] = (sum(c) W[r, c] * X[r, c]) / Z[r]\n"
        "    V[r] = (sum(c) W[r, c] * (X[r, c] - M[r])^2) / Z[r]\n"
        "sizes r = 16, c = 1000\n";
    const Fill fill = [](const std::string& array, std::int64_t row, std::int64_t column) {
        const bool heavy = (column * 7 + row) % 33 == 0;  // some 30 of the keys
        if (array == "W") return heavy ? 1.0F : 0.0F;
        return heavy ? 1000 + normal(0.85F)("X", row, column) : normal()("X", row, column);
    };
    for (const std::int64_t chunk : {32, 256, 1000}) check(text, fill, 1e-3, streamed("c", chunk));
}

TEST(Stability, variance_under_a_mask_with_far_padding) {
    const std::string text =
        "variance(X[r, c], N[r]) -> V[r]\n"
        "    K[r] = sum(c) where(c < N[r], 1, 0)\n"
        "    M[r] = (sum(c) where(c < N[r], X[r, c], 0)) / K[r]\n"
        "    V[r] = (sum(c) where(c < N[r], (X[r, c] - M[r])^2, 0)) / K[r]\n"
        "sizes r = 24, c = 500\n";
    const Fill fill = [](const std::string& array, std::int64_t row, std::int64_t column) {
        const std::int64_t present = 10 + 20 * column;  // N is a vector: its place is its column
        if (array == "N") return static_cast<float>(present);
        return column < 10 + 20 * row ? normal()("X", row, column) : 1e6F;
    };
    for (const std::int64_t chunk : {32, 128, 500}) check(text, fill, 1e-3, streamed("c", chunk));
}

TEST(Stability, a_maximum_that_is_minus_infinity_is_no_empty_stream) {
    const std::string text =
        "late(X[a, t]) -> Y[a]\n"
        "    M[a] = max(t) where(t == 150, X[a, t], -inf)\n"
        "    Y[a] = sum(t) exp(X[a, t] - M[a])\n"
        "sizes a = 8, t = 200\n";
    for (const std::int64_t chunk : {1, 32, 64, 150, 151, 200}) check(text, normal(), 2e-4, streamed("t", chunk));
}

TEST(Stability, an_exponent_without_order_overflows_nowhere_on_its_way) {
    const std::string text =
        "drift(X[a, t], W[a, t]) -> Y[a]\n"
        "    R[a] = sum(t) X[a, t]\n"
        "    Y[a] = sum(t) exp(W[a, t] - R[a])\n"
        "sizes a = 4, t = 1024\n";
    const Fill fill = [](const std::string& array, std::int64_t row, std::int64_t column) {
        return array == "X" ? (column < 512 ? -0.5F : 0.5F) : normal()("W", row, column);
    };
    for (const std::int64_t chunk : {64, 256}) check(text, fill, 2e-4, streamed("t", chunk));
}

TEST(Stability, means_of_huge_values_stay_in_range) {
    const std::string text =
        "mean(S[q, x], V[x, d]) -> O[q, d]\n"
        "    P[q, x] = softmax(x) S[q, x]\n"
        "    O[q, d] = sum(x) P[q, x] * V[x, d]\n"
        "sizes q = 8, x = 256, d = 8\n";
    const Fill fill = [](const std::string& array, std::int64_t, std::int64_t) { return array == "S" ? 0.0F : 1e38F; };
    for (const std::int64_t chunk : {16, 64, 256}) check(text, fill, 1e-4, streamed("x", chunk));
}

TEST(Stability, a_large_constant_meets_a_mean_after_its_division) {
    const std::string text =
        "scaled(S[q, x], V[x, d]) -> O[q, d]\n"
        "    P[q, x] = softmax(x) S[q, x]\n"
        "    O[q, d] = sum(x) P[q, x] * (tanh(V[x, d]) * 1e38)\n"
        "sizes q = 8, x = 256, d = 8\n";
    const Fill fill = [](const std::string& array, std::int64_t row, std::int64_t column) {
        return array == "S" ? 0.0F : 1.0F + 0.01F * static_cast<float>(row % 7 + column);
    };
    for (const std::int64_t chunk : {16, 64, 256}) check(text, fill, 1e-4, streamed("x", chunk));
}

// The product of a sum's square and another sum, which without the numbers is beyond the type.
TEST(Stability, numbers_below_one_meet_a_sum_before_another_sum_does) {
    const std::string text =
        "squared(G[x], K[k]) -> C[k]\n"
        "    F = sum(x) exp(G[x])\n"
        "    H = sum(x) 0.03125 * (0.0078125 * (G[x] - F))^2\n"
        "    L = sum(x) 0.015625 * (G[x] * H)\n"
        "    C[k] = 0.0009765625 * L * K[k]\n"
        "sizes x = 256, k = 8\n";
    const Fill fill = [](const std::string& array, std::int64_t, std::int64_t column) {
        return array == "K" ? 1.0F : column == 7 ? 41.0F : 4.0F;
    };
    for (const std::int64_t chunk : {16, 64, 256}) check(text, fill, 1e-4, streamed("x", chunk));
}

TEST(Stability, a_count_of_what_is_minus_infinity) {
    // Σ over t of a factor that is -inf before anything else is known.
    const std::string text =
        "shifted(X[a, t]) -> Y[a]\n"
        "    M[a] = max(t) where(t == 100, X[a, t], -inf)\n"
        "    Y[a] = sum(t) (X[a, t] + M[a])\n"
        "sizes a = 8, t = 128\n";
    for (const std::int64_t chunk : {1, 32, 128}) check(text, normal(), 2e-4, streamed("t", chunk));
}

// A − M is exact and small where A and M are large; A + V would be rounded as what is as large as A.
TEST(Stability, ARunningMaximumMeetsWhatItIsOfBeforeAnotherPart) {
    const Fill far = [](const std::string& array, std::int64_t row, std::int64_t column) {
        return array == "A" ? 4e6F + static_cast<float>((row * 7 + column * 3) % 11)
                            : 0.01F * static_cast<float>((row * 5 + column * 13) % 97);
    };
    for (const char* sum : {"A[q, x] - M[q] + V[x, d]", "V[x, d] + (A[q, x] - M[q])", "V[x, d] - (M[q] - A[q, x]) - 1",
                            "max(A[q, x], 0) - M[q] + V[x, d]", "(A[q, x] - M[q]) * 0.5 + V[x, d]"})
        for (const char* extremum : {"max", "min"}) {
            SCOPED_TRACE(sum);
            check("f(A[q, x], V[x, d]) -> R[q, d]\n    M[q] = max(x) A[q, x]\n    R[q, d] = " + std::string(extremum) +
                      "(x) (" + sum + ")\nsizes q = 5, x = 37, d = 6\n",
                  far, 1e-6, streamed("x", 8));
        }
}

}  // namespace
}  // namespace napkin
