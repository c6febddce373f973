// How long a picture takes: of every example its definition, its two levels and its pseudocode, and of definitions that
// grow operation by operation. Prints JSON for bench/results/. bench_draw_time [--benchmark_…]: Google Benchmark's own
// options; each benchmark's counters have the operations and the bytes of the SVG.
#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include "bench/examples.hpp"
#include "derive/derive.hpp"
#include "draw/diagram_picture.hpp"
#include "draw/drawings.hpp"
#include "syntax/parse.hpp"

namespace {

using namespace napkin;

/// So many operations, each of the one before and of the input.
std::string chain(int operations) {
    std::string text = "chain(X[a, b]) -> Y[a, b]\n    T0[a, b] = exp(X[a, b])\n";
    for (int i = 1; i < operations - 1; ++i)
        text += fmt::format("    T{}[a, b] = T{}[a, b] * 0.5 + X[a, b]\n", i, i - 1);
    return text + fmt::format("    Y[a, b] = T{}[a, b] - X[a, b]\n", operations - 2);
}

/// So many operations, each a product with a matrix of its own: every one joins two wires, and inputs come in one by
/// one.
std::string products(int operations) {
    std::string arguments = "X0[t, c0]", text;
    for (int i = 0; i < operations; ++i) {
        arguments += fmt::format(", W{}[c{}, c{}]", i, i, i + 1);
        text += fmt::format("    X{}[t, c{}] = sum(c{}) X{}[t, c{}] * W{}[c{}, c{}]\n", i + 1, i + 1, i, i, i, i, i, i + 1);
    }
    return fmt::format("products({}) -> X{}[t, c{}]\n{}", arguments, operations, operations, text);
}

/// Every operation reads the two before it, so that wires part and meet everywhere.
std::string braid(int operations) {
    std::string text = "braid(X0[a, b], X1[a, b]) -> Y[a, b]\n";
    for (int i = 2; i <= operations; ++i)
        text += fmt::format("    X{}[a, b] = X{}[a, b] * X{}[a, b] + {}\n", i, i - 1, i - 2, i);
    return text + fmt::format("    Y[a, b] = X{}[a, b] + 1\n", operations);
}

void time_drawing(benchmark::State& state, const std::string& text, const std::string& step) {
    const auto diagram = parse_diagram(std::make_shared<Source>(Source{"bench", text}), {});
    if (!diagram) return state.SkipWithError(render(diagram.errors()).c_str());
    std::optional<Derived> derived;
    if (step != "0") {
        auto made = derive(*diagram);
        if (!made) return state.SkipWithError(render(made.errors()).c_str());
        derived = std::move(made).value();
    }
    const draw::Subject subject{*diagram, derived ? &*derived : nullptr, nullptr, "memory", {}};
    std::size_t operations = 0, bytes = 0;
    for (auto _ : state) {
        const draw::Drawing drawing = draw::drawing_of(subject, step);
        operations = 0;
        for (const draw::Circuit& circuit : drawing.circuits) operations += circuit.operations.size();
        bytes = svg::to_text(draw::to_svg(draw::picture_of(drawing))).size();
    }
    state.counters["operations"] = static_cast<double>(operations);
    state.counters["bytes"] = static_cast<double>(bytes);
}

void add(const std::string& name, const std::string& text, const std::string& step) {
    benchmark::RegisterBenchmark(name.c_str(), [text, step](benchmark::State& state) {
        time_drawing(state, text, step);
    })->Unit(benchmark::kMillisecond);
}

const bool registered = [] {
    for_each_example(NAPKIN_SOURCE_DIR "/examples", [](const std::string& name, const std::string& text) {
        for (const char* step : {"0", "two-level", "pseudocode"})
            add(fmt::format("example/{}/{}", name, step), text, step);
    });
    for (const int n : {50, 100, 200}) {
        add(fmt::format("chain/{}", n), chain(n), "0");
        add(fmt::format("products/{}", n), products(n), "0");
        add(fmt::format("braid/{}", n), braid(n), "0");
    }
    return true;
}();

}  // namespace
