// Inputs that show faults: each kind has what its name promises, and the same seed gives the same numbers.
#include "check/probe.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "syntax/parse.hpp"

namespace napkin::test_probe {
namespace {

struct Sized {
    Diagram diagram;
    Extents extents;
};

Sized sized(const std::string& text) {
    const auto diagram = parse_diagram(std::make_shared<const Source>(Source{"<test>", text}));
    if (!diagram) throw std::runtime_error(render(diagram.errors()));
    return {*diagram, bind_sizes(*diagram).value()};
}

std::vector<double> values_of(Probe probe, const std::string& type = "f32") {
    const Sized s = sized("f(X[a, t]: " + type + ") -> Y[a]\n    Y[a] = sum(t) X[a, t]\nsizes a = 3, t = 20\n");
    return probe_inputs(s.diagram, s.extents, probe, 7)[s.diagram.inputs[0]].to_doubles();
}

std::ptrdiff_t count_if(const std::vector<double>& values, bool (*good)(double)) {
    return std::count_if(values.begin(), values.end(), good);
}

TEST(Probe, has_what_its_name_promises) {
    EXPECT_EQ(count_if(values_of(Probe::integers), [](double x) { return x == std::floor(x) && std::abs(x) <= 4; }), 60);
    EXPECT_GT(count_if(values_of(Probe::zeros), [](double x) { return x == 0; }), 5);
    EXPECT_GT(count_if(values_of(Probe::masked), [](double x) { return x == -1e9; }), 5);
    EXPECT_GT(count_if(values_of(Probe::huge), [](double x) { return std::abs(x) > 9e37; }), 5);
    EXPECT_GT(count_if(values_of(Probe::infinite), [](double x) { return std::isinf(x); }), 3);
    EXPECT_EQ(count_if(values_of(Probe::invalid), [](double x) { return std::isnan(x); }), 1);
    EXPECT_EQ(count_if(values_of(Probe::one_key), [](double x) { return x > 30; }), 3);
    EXPECT_EQ(count_if(values_of(Probe::offset), [](double x) { return x > 900 && x < 1100; }), 60);

    const auto constant = values_of(Probe::constant);
    EXPECT_EQ(std::count(constant.begin(), constant.end(), constant[0]), 60);
    const auto growing = values_of(Probe::growing), falling = values_of(Probe::falling);
    for (std::size_t a = 0; a < 3; ++a) {
        EXPECT_EQ(std::max_element(growing.begin(), growing.end()), growing.end() - 1);
        EXPECT_EQ(std::max_element(falling.begin(), falling.end()), falling.begin());
    }
}

TEST(Probe, stays_finite_in_small_types) {
    for (const char* type : {"f16", "bf16", "e5m2", "e4m3"}) {
        for (const Probe probe : {Probe::huge, Probe::masked, Probe::growing}) {
            for (const double x : values_of(probe, type)) EXPECT_TRUE(std::isfinite(x)) << type << " " << name(probe);
        }
    }
}

TEST(Probe, leaves_integers_small_and_repeats_itself) {
    const Sized s = sized("f(I[t]: i32) -> Y\n    Y = sum(t) I[t]\nsizes t = 50\n");
    const auto id = s.diagram.inputs[0];
    for (const Probe probe : all_probes) {
        const auto values = probe_inputs(s.diagram, s.extents, probe, 1)[id];
        for (const double x : values) EXPECT_LE(std::abs(x), 4) << name(probe);
        EXPECT_EQ(values, probe_inputs(s.diagram, s.extents, probe, 1)[id]);
    }
}

}  // namespace
}  // namespace napkin::test_probe
