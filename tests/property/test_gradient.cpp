// The gradients of a diagram against finite differences of its definition, in double precision.
#include <gtest/gtest.h>

#include <cmath>
#include <iostream>
#include <random>

#include "algebra/scalar_function.hpp"
#include "check/small_sizes.hpp"
#include "diagram/evaluate.hpp"
#include "diagram/verifier.hpp"
#include "differentiate/gradient.hpp"
#include "support/examples.hpp"
#include "support/index_programs.hpp"
#include "support/parsed.hpp"
#include "support/random_diagram.hpp"
#include "support/random_program.hpp"
#include "support/ranges.hpp"
#include "support/seeds.hpp"
#include "syntax/print.hpp"

namespace napkin::gradients {
namespace {

constexpr std::uint64_t num_diagrams = 200, num_programs = 300;
constexpr double tolerance = 2e-5;

/// What was compared: a test of nothing passes always.
struct Seen {
    int compared = 0, kinks = 0, not_finite = 0, infinite = 0, other_sizes = 0;
};

std::ostream& operator<<(std::ostream& out, const Seen& seen) {
    return out << seen.compared << " compared, " << seen.kinks << " without a slope, " << seen.not_finite
               << " not finite, " << seen.infinite << " through an infinity\n";
}

Column moved(const Column& values, const std::vector<double>& direction, double step) {
    Column out = values;
    for (std::size_t i = 0; i < direction.size(); ++i) out.set(i, Number::real(values[i] + step * direction[i]));
    return out;
}

/// Sizes that a text gives as numbers are drawn too, where it means the same with others.
Extents small_extents(const Diagram& d, std::uint64_t seed) {
    std::mt19937_64 random(seed);
    const auto sizes = small_sizes(d, random, 2e4);
    return sizes ? extents_of(d, *sizes) : random_extents(d, seed);
}

class Case {
public:
    Case(const Diagram& diagram, std::uint64_t seed)
        : d_(diagram),
          extents_(small_extents(diagram, seed)),
          inputs_(random_inputs(diagram, extents_, seed)),
          random_(seed) {}

    std::string failure(Ties ties, Seen& seen) {
        if (real_inputs(d_).empty()) return "";
        const Gradient made = gradient(d_, {.by = {}, .ties = ties});
        const Diagram g = canonical(made.diagram);
        if (has_other_sizes(g)) return ++seen.other_sizes, "";
        if (const auto faults = verify(g); !faults.empty()) return faults.front() + "\n" + print(g);
        Extents extents;
        for (const AxisId axis : g.axes.ids()) extents.push_back(extent(g, axis));
        Values values = random_inputs(g, extents, 7);
        for (const ArrayId id : g.inputs)
            if (const auto own = d_.find_array(g.array(id).name); own && d_.array(*own).role == ArrayRole::input)
                values[id] = inputs_[*own];
        for (const ArrayId id : d_.outputs)
            if (const auto given = g.find_array("d" + d_.array(id).name)) given_.emplace_back(id, values[*given]);
        Values forward = inputs_;
        evaluate(d_, extents_, forward);
        for (const Column& column : forward)
            for (const double x : column) {
                has_infinity_ = has_infinity_ || !std::isfinite(x);
                // What is added to such a number is lost in it.
                if (std::isfinite(x) && std::abs(x) > 1e6) return ++seen.not_finite, "";
            }
        if (!value(inputs_)) return ++seen.not_finite, "";
        evaluate(g, extents, values);
        const std::vector<ArrayId> by = real_inputs(d_);
        for (std::size_t i = 0; i < by.size(); ++i)
            if (std::string text = compare(by[i], values[g.outputs[i]], seen); !text.empty())
                return text + "\n" + print(g);
        return "";
    }

private:
    /// Whether the gradient is for sizes of the text alone, and these are others.
    [[nodiscard]] bool has_other_sizes(const Diagram& g) const {
        const bool assumes = any_of(g.equations, [](const Equation& e) {
            bool has_nan = false;
            visit(e.body, [&](const Expr& node) {
                has_nan = has_nan || (as<Constant>(node) && std::isnan(as<Constant>(node)->value));
            });
            return has_nan;
        });
        return assumes && any_of(d_.axes.ids(), [&](AxisId axis) {
                   const auto size = d_.axis(axis).size ? d_.axis(axis).size->as_constant() : std::nullopt;
                   return size && static_cast<double>(extents_[axis]) != size->to_double();
               });
    }

    /// That of an axis with this name, or what its size says.
    std::int64_t extent(const Diagram& g, AxisId axis) const {
        if (const auto own = d_.find_axis(g.axis(axis).name)) return extents_[*own];
        const auto size = g.axis(axis).size->evaluate(
            [&](Symbol s) { return std::optional<double>(extent(g, s.axis())); });
        return static_cast<std::int64_t>(*size);
    }

    /// Σ O·dO where all outputs are finite.
    std::optional<double> value(const Values& inputs) const {
        Values values = inputs;
        evaluate(d_, extents_, values);
        double sum = 0;
        for (const auto& [id, adjoint] : given_)
            for (std::size_t i = 0; i < adjoint.size(); ++i) sum += values[id][i] * adjoint[i];
        return std::isfinite(sum) ? std::optional(sum) : std::nullopt;
    }

    std::string compare(ArrayId by, const Column& found, Seen& seen) {
        std::normal_distribution<double> normal;
        std::vector<double> direction(inputs_[by].size());
        for (double& x : direction) x = normal(random_);
        const auto slope = [&](double step) -> std::optional<double> {
            Values there = inputs_, back = inputs_;
            there[by] = moved(inputs_[by], direction, step), back[by] = moved(inputs_[by], direction, -step);
            const auto a = value(there), b = value(back);
            return a && b ? std::optional((*a - *b) / (2 * step)) : std::nullopt;
        };
        // 0 · inf: a slope is taken through an infinite value, on which nothing depends here.
        if (has_infinity_ && any_of(found, [](double x) { return std::isnan(x); })) return ++seen.infinite, "";
        const auto wide = slope(1e-5), narrow = slope(1e-6);
        if (!wide || !narrow) return ++seen.not_finite, "";
        double expected = *narrow, got = 0, size = 1;
        for (std::size_t i = 0; i < found.size(); ++i)
            got += found[i] * direction[i], size += std::abs(found[i] * direction[i]);
        // Steps and edges have no slope, and what cancels has none that differences show.
        Values there = inputs_;
        there[by] = moved(inputs_[by], direction, 1e-6);
        const double one_sided = (*value(there) - *value(inputs_)) / 1e-6;
        if (std::abs(*wide - expected) > tolerance * (1 + std::abs(expected)) ||
            std::abs(one_sided - expected) > 50 * tolerance * (1 + std::abs(expected)))
            return ++seen.kinks, "";
        ++seen.compared;
        if (std::abs(got - expected) <= tolerance * (std::abs(expected) + size)) return "";
        return "by " + d_.array(by).name + ": " + std::to_string(got) + " where differences give " +
               std::to_string(expected);
    }

    const Diagram& d_;
    const Extents extents_;
    const Values inputs_;
    std::mt19937_64 random_;
    bool has_infinity_ = false;
    std::vector<std::pair<ArrayId, Column>> given_;  ///< adjoints by output
};

void check(const Diagram& d, std::uint64_t seed, Seen& seen, const std::string& text) {
    for (const Ties ties : {Ties::first, Ties::shared}) {
        const std::string failure = Case(d, seed).failure(ties, seen);
        ASSERT_EQ(failure, "") << "seed " << seed << "\n" << text;
    }
}

TEST(Gradient, OfRandomDiagrams) {
    Seen seen;
    const auto [first, last] = seeds(num_diagrams);
    for (std::uint64_t seed = first; seed < last && !HasFatalFailure(); ++seed) {
        const Diagram d = random_diagram(seed);
        check(d, seed, seen, print(d));
    }
    std::cout << seen;
    EXPECT_GT(seen.compared, 10 * (seen.kinks + seen.not_finite + seen.infinite));
}

TEST(Gradient, OfRandomPrograms) {
    Seen seen;
    const auto [first, last] = seeds(num_programs);
    for (std::uint64_t seed = first; seed < last && !HasFatalFailure(); ++seed) {
        const std::string text = random_program(seed);
        check(parsed_program(text), seed, seen, text);
    }
    std::cout << seen;
    EXPECT_GT(seen.compared, 2 * (seen.kinks + seen.not_finite + seen.infinite));
}

TEST(Gradient, OfOtherIndices) {
    Seen seen;
    for (const std::string& text : index_programs())
        for (std::uint64_t seed = 1; seed <= 5 && !HasFatalFailure(); ++seed)
            check(parsed_program(text), seed, seen, text);
    EXPECT_GT(seen.compared, 10 * (seen.kinks + seen.not_finite + seen.infinite));
}

TEST(Gradient, OfEveryFunction) {
    Seen seen;
    for (const ScalarFunction& f : scalar_functions()) {
        if (!f.is.is_called) continue;
        const std::string text = "f(X[i], W[i]) -> Y[i], Z[i]\n    Y[i] = W[i] * " + std::string(f.name) +
                                 "(X[i])\n    Z[i] = " + std::string(f.name) + "(0.3 + abs(X[i] * W[i]))\n";
        for (std::uint64_t seed = 1; seed <= 8 && !HasFatalFailure(); ++seed) check(parsed(text), seed, seen, text);
    }
    EXPECT_GT(seen.compared, 300);
}

TEST(Gradient, OfOperators) {
    Seen seen;
    for (const std::string text :
         {"f(X[i], W[i]) -> Y[i]\n    Y[i] = (0.5 + abs(X[i]))^W[i] + X[i]^3 - X[i]^2 * W[i] / (1 + W[i]^2)\n",
          "f(X[i], W[i]) -> Y[i]\n    Y[i] = max(X[i], W[i], 0.1) * min(X[i] * W[i], 1) + X[i] % 0.7 + X[i] % (2 + "
          "W[i]^2)\n",
          "f(X[i, j]) -> Y[i]\n    Y[i] = prod(j) X[i, j]\n", "f(X[i, j]) -> Y\n    Y = max(i, j) X[i, j]^2\n",
          "f(X[i, j], W[j]) -> Y[i], Z[j]\n    Y[i] = min(j) X[i, j] * W[j]\n    Z[j] = prod(i) where(X[i, j] > 0, "
          "X[i, j], 0)\n",
          "f(X[i, k], b) -> Y[i, j]\n    Y[i, j] = b * sum(k) X[i, k] * X[j, k]\n",
          "f(X[i, i_2]) -> Y[i]\n    Y[i] = X[i, i]\nsizes i_2 = i\n",
          "f(X[t, c]) -> Y[t, h, k]\n    Y[t, h, k] = X[t, h * 3 + k]\nsizes h = 4, k = 3, c = 12\n",
          "f(X[n], W[w]) -> Y[i]\n    Y[i] = sum(w) X[3 * i + 2 * w] * W[w]\nsizes n = 3 * i + 2 * w\n",
          "f(X[n], W[w]) -> Y[i]\n    Y[i] = sum(w) X[size(n) - 1 - i - w] * W[w]\nsizes n = i + w\n",
          // A part of a dimension has other sums than the whole.
          "f(X[i], a) -> Y, Z\n    Y = sum(i) X[i]\n    Z = sum(j) a * X[j + 0]\nsizes i = 8, j = 3\n",
          "f(X[i], a) -> Y[i]\n    Y[i] = f16(X[i] * a) + bf16(exp(X[i]))\n"}) {
        for (std::uint64_t seed = 1; seed <= 8 && !HasFatalFailure(); ++seed) check(parsed(text), seed, seen, text);
    }
    EXPECT_GT(seen.compared, 250);
}

TEST(Gradient, OfExamples) {
    Seen seen;
    for (const ExampleDiagram& example : example_diagrams())
        for (std::uint64_t seed = 1; seed <= 3 && !HasFatalFailure(); ++seed)
            check(example.diagram, seed, seen, example.name);
    EXPECT_GT(seen.compared, 100);
}

TEST(Gradient, ReadsBack) {
    for (std::uint64_t seed = 1; seed <= 400; ++seed) {
        const std::string text = random_program(seed);
        const Diagram d = parsed_program(text);
        if (real_inputs(d).empty()) continue;
        const Diagram g = canonical(gradient(d).diagram);
        ASSERT_EQ(print(parsed(print(g))), print(g)) << "seed " << seed << "\n" << text;
    }
}

}  // namespace
}  // namespace napkin::gradients
