// How long a derivation takes: every example, and diagrams that grow line by line. Prints JSON for bench/results/.
// bench_derive_time [--benchmark_…]: Google Benchmark's own options; each benchmark's label has the equations and the
// kernels.
#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include "bench/examples.hpp"
#include "derive/derive.hpp"
#include "run/derivation.hpp"
#include "syntax/parse.hpp"

namespace {

using namespace napkin;

std::string lines(int count, const std::string& line) {
    std::string text = "f(X0[i]) -> Y[i]\n";
    for (int j = 1; j <= count; ++j) {
        const std::string last = fmt::format("X{}[i]", j - 1);
        std::string body = line;
        for (std::size_t at = body.find('X'); at != std::string::npos; at = body.find('X', at + last.size()))
            body.replace(at, 1, last);
        text += fmt::format("    X{}[i] = {}\n", j, body);
    }
    return text + fmt::format("    Y[i] = X{}[i] + 1\nsizes i = 65536\n", count);
}

/// Norms, projections, attention and a gated product, all of the library's own words.
std::string transformer(int blocks) {
    std::string arguments = "X0[t, c]", text;
    for (int b = 0; b < blocks; ++b) {
        arguments += fmt::format(
            ", A{0}[c, h, k], B{0}[c, h, k], C{0}[c, h, k], D{0}[h, k, c], E{0}[c, m], F{0}[m, c], g{0}[c]", b);
        text += fmt::format(
            "    N{0}[t, c] = rmsnorm(c)(X{0}[t, c], g{0}[c])\n"
            "    Q{0}[h, t, k] = sum(c) N{0}[t, c] * A{0}[c, h, k]\n"
            "    K{0}[h, t, k] = sum(c) N{0}[t, c] * B{0}[c, h, k]\n"
            "    V{0}[h, t, k] = sum(c) N{0}[t, c] * C{0}[c, h, k]\n"
            "    S{0}[h, t, x] = sum(k) Q{0}[h, t, k] * K{0}[h, x, k] * size(k)^-0.5\n"
            "    P{0}[h, t, x] = softmax(x) S{0}[h, t, x]\n"
            "    O{0}[h, t, k] = sum(x) P{0}[h, t, x] * V{0}[h, x, k]\n"
            "    R{0}[t, c] = X{0}[t, c] + sum(h, k) O{0}[h, t, k] * D{0}[h, k, c]\n"
            "    M{0}[t, c] = rmsnorm(c)(R{0}[t, c], g{0}[c])\n"
            "    U{0}[t, m] = gelu_tanh(sum(c) M{0}[t, c] * E{0}[c, m])\n"
            "    X{1}[t, c] = R{0}[t, c] + sum(m) U{0}[t, m] * F{0}[m, c]\n",
            b, b + 1);
    }
    return fmt::format(
        "f({}) -> Y[t, c]\n{}    Y[t, c] = X{}[t, c] + 1\nsizes t = 1024, c = 512, h = 8, k = 64, m = 2048\n",
        arguments, text, blocks);
}

void time_derivation(benchmark::State& state, const std::string& text) {
    const auto diagram = parse_diagram(std::make_shared<Source>(Source{"bench", text}), {});
    if (!diagram) return state.SkipWithError(render(diagram.errors()).c_str());
    std::size_t kernels = 0, printed = 0;
    for (auto _ : state) {
        const auto derived = derive(*diagram);
        kernels = derived->kernels.size();
        printed = describe(*derived).size();
    }
    state.counters["equations"] = static_cast<double>(diagram->equations.size());
    state.counters["kernels"] = static_cast<double>(kernels);
    state.counters["characters"] = static_cast<double>(printed);
}

void add(const std::string& name, const std::string& text) {
    benchmark::RegisterBenchmark(name.c_str(), [text](benchmark::State& state) {
        time_derivation(state, text);
    })->Unit(benchmark::kMillisecond);
}

const bool registered = [] {
    for_each_example(NAPKIN_SOURCE_DIR "/examples",
                     [](const std::string& name, const std::string& text) { add("example/" + name, text); });
    for (const int n : {10, 200, 1000}) add(fmt::format("chain/{}", n), lines(n, "X * 1.5 + 2"));
    for (const int n : {10, 40}) add(fmt::format("residual/{}", n), lines(n, "X + gelu_tanh(X)"));
    for (const int n : {14, 100}) add(fmt::format("square/{}", n), lines(n, "X * X + X"));
    for (const int n : {1, 4, 20, 40}) add(fmt::format("transformer/{}", n), transformer(n));
    return true;
}();

}  // namespace
