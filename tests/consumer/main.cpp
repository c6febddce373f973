// Uses napkin as an installed library, through its public headers only: attention over numbers of its own, checked by a
// plain loop, and the errors that a user would meet.
#include <napkin/napkin.hpp>

#include <cmath>
#include <cstdio>
#include <iostream>
#include <vector>

namespace {

constexpr const char* text = R"(
attention(Q[q, k]: f32, K[x, k]: f32, V[x, d]: f32) -> O[q, d]: f32
    S[q, x] = sum(k) Q[q, k] * K[x, k]
    P[q, x] = softmax(x) S[q, x] * k^-0.5
    O[q, d] = sum(x) P[q, x] * V[x, d]
)";

constexpr std::int64_t queries = 37, keys = 203, width = 40;

float number(std::int64_t i) { return std::sin(0.7F * static_cast<float>(i)) * 1.5F; }

/// One row of the result in double precision.
std::vector<double> expected_row(const std::vector<float>& Q, const std::vector<float>& K, const std::vector<float>& V,
                                 std::int64_t q) {
    std::vector<double> weights(keys), row(width, 0.0);
    double total = 0;
    for (std::int64_t x = 0; x < keys; ++x) {
        double score = 0;
        for (std::int64_t k = 0; k < width; ++k) score += double(Q[q * width + k]) * double(K[x * width + k]);
        total += weights[x] = std::exp(score / std::sqrt(double(width)));
    }
    for (std::int64_t x = 0; x < keys; ++x) {
        for (std::int64_t d = 0; d < width; ++d) row[d] += weights[x] / total * double(V[x * width + d]);
    }
    return row;
}

int check(bool ok, const char* what) {
    if (!ok) std::cerr << "consumer: " << what << "\n";
    return ok ? 0 : 1;
}

}  // namespace

int main() {
    napkin::CompileOptions options;
    options.sizes = {{"q", queries}, {"x", keys}, {"k", width}, {"d", width}};
    const auto program = napkin::compile(text, options);
    if (!program) {
        std::cerr << program.error_text();
        return 1;
    }

    std::vector<float> Q(queries * width), K(keys * width), V(keys * width), O(queries * width);
    for (std::size_t i = 0; i < Q.size(); ++i) Q[i] = number(static_cast<std::int64_t>(i));
    for (std::size_t i = 0; i < K.size(); ++i) K[i] = number(static_cast<std::int64_t>(3 * i + 1));
    for (std::size_t i = 0; i < V.size(); ++i) V[i] = number(static_cast<std::int64_t>(5 * i + 2));
    // V's numbers lie column by column here: strides say so.
    std::vector<float> V_columns(V.size());
    for (std::int64_t x = 0; x < keys; ++x) {
        for (std::int64_t d = 0; d < width; ++d) V_columns[d * keys + x] = V[x * width + d];
    }
    using napkin::ElementType;
    const std::vector<napkin::ConstView> inputs = {{Q.data(), ElementType::f32, {queries, width}, {}},
                                                   {K.data(), ElementType::f32, {keys, width}, {}},
                                                   {V_columns.data(), ElementType::f32, {keys, width}, {1, keys}}};
    const std::vector<napkin::View> outputs = {{O.data(), ElementType::f32, {queries, width}, {}}};
    if (const auto errors = program->run(inputs, outputs); !errors.empty()) {
        std::cerr << errors.front().rendered;
        return 1;
    }
    double largest = 0;
    for (std::int64_t q = 0; q < queries; ++q) {
        const std::vector<double> row = expected_row(Q, K, V, q);
        for (std::int64_t d = 0; d < width; ++d)
            largest = std::max(largest, std::abs(row[d] - double(O[q * width + d])));
    }

    int wrong = check(largest < 1e-5, "the result is off");
    wrong += check(program->inputs().size() == 3 && program->inputs()[2].axes == std::vector<std::string>{"x", "d"},
                   "inputs() is off");
    wrong += check(program->prediction().transfers_values > 0, "there is no prediction");
    wrong += check(program->source().find("napkin") != std::string::npos, "there is no source");
    wrong += check(!program->run(std::span(inputs).first(2), outputs).empty(), "a missing view is no error");
    const auto mistaken = napkin::compile("f(A[i]) -> B[i]\n    B[i] = C[i] + 1\n", {});
    wrong += check(!mistaken && mistaken.errors().front().line == 2, "an unknown array is no error in line 2");
    if (wrong == 0)
        std::printf("napkin %s: attention through the installed library, largest error %.1e\n",
                    std::string(napkin::version()).c_str(), largest);
    return wrong;
}
