// Emitted kernels that read at indices of every kind, behind guards and without, against the definition.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <random>

#include "numeric/cpu_kernel_case.hpp"
#include "support/index_programs.hpp"
#include "syntax/parse.hpp"

namespace napkin {
namespace {

/// A program, with each of its open axes between 1 and `most`.
struct Drawn {
    Drawn(const char* text, std::uint64_t seed, std::uint64_t most)
        : diagram(parse_diagram(std::make_shared<const Source>(Source{"program.nk", text})).value()) {
        std::mt19937_64 random(seed);
        std::map<std::string, std::int64_t> sizes;
        for (const Axis& axis : diagram.axes)
            if (!axis.size) sizes[axis.name] = 1 + static_cast<std::int64_t>(random() % most);
        extents = bind_sizes(diagram, sizes).value();
    }
    Diagram diagram;
    Extents extents;
};

void expect_definitions(const std::vector<cpu_case::Case>& cases, const cpu_case::Width& width) {
    const auto failures = cpu_case::failures(cases, width);
    for (std::size_t k = 0; k < cases.size(); ++k)
        EXPECT_EQ(failures[k], "") << width.name << "\n" << cpu_case::describe(cases[k]);
}

TEST(IndexKernels, ComputeTheirDefinition) {
    std::vector<cpu_case::Case> cases;
    std::vector<std::string> texts;
    for (const std::string& text : index_programs()) {
        const auto diagram = parse_diagram(std::make_shared<const Source>(Source{"program.nk", text}));
        ASSERT_TRUE(diagram.ok()) << text;
        int tried = 0;
        for (std::uint64_t seed = 0; seed < 40 && tried < 5; ++seed) {
            std::mt19937_64 random(seed);
            std::map<std::string, std::int64_t> sizes;
            for (const Axis& axis : diagram->axes)
                if (!axis.size)
                    sizes[axis.name] = 1 + static_cast<std::int64_t>(random() % (random() % 3 == 0 ? 37 : 7));
            const auto extents = bind_sizes(*diagram, sizes);
            if (!extents) continue;
            cases.push_back(cpu_case::make_case(*diagram, *extents, seed, fmt::format("k{}_", cases.size())));
            texts.push_back(text);
            ++tried;
        }
    }
    const auto failures = cpu_case::failures(cases);
    for (std::size_t k = 0; k < cases.size(); ++k)
        EXPECT_EQ(failures[k], "") << texts[k] << cpu_case::describe(cases[k]);
}

/// Reads that a condition keeps inside, halves of an axis, and integers that are counted, for every width of vectors.
/// Tiles lie inside of their array, or its edge cuts them, or they are rows of a map in the order of memory.
TEST(IndexKernels, ComputeForEveryWidth) {
    const char* programs[] = {
        "f(X[b, t, c], mix[c]) -> Y[b, t, c]\n"
        "    Y[b, t, c] = mix[c] * X[b, t, c] + (1 - mix[c]) * where(t > 0, X[b, t - 1, c], 0)\n",
        "f(X[t, r], F[h]) -> Y[t, r]\n"
        "    Y[t, r] = where(r < h, X[t, r] * F[r % size(h)] - X[t, r + size(r)/2],\n"
        "                           X[t, r] * F[r % size(h)] + X[t, r - size(r)/2])\nsizes r = 2 * h\n",
        "f(A[i]: i64, B[j]: i64) -> N[i]: i32, M[i]: i64\n    N[i] = sum(j) where(A[i] == B[j], 1, 0)\n"
        "    M[i] = max(j) where(A[i] == B[j], B[j] * 3, A[i] - j)\n",
        "f(X[n, c], K[w, c]) -> Y[n, c]\n    Y[n, c] = sum(w) K[w, c] * where(n - w >= 0, X[n - w, c], 0)\n",
    };
    for (const cpu_case::Width& width : cpu_case::widths()) {
        std::vector<cpu_case::Case> cases;
        for (const char* text : programs) {
            for (std::uint64_t seed = 0; seed < 4; ++seed) {
                const auto [diagram, extents] = Drawn(text, seed, 41);
                cases.push_back(cpu_case::make_case(diagram, extents, seed, fmt::format("w{}_", cases.size()), {}, width));
            }
        }
        expect_definitions(cases, width);
    }
}

/// Gathered tiles of rows, in every storage type and for every width. There are blocks of rows and single values, and
/// rows that lie nowhere where a condition keeps them from being taken. There are rows chosen by gathered indices, and
/// last dimensions that are gathered. Tables of one row and rows of one value are among the sizes. Some tiles are read
/// where they lie.
TEST(IndexKernels, CopyChosenRowsForEveryWidth) {
    const char* programs[] = {
        "f(T[v, c]: f16, U[v, c]: bf16, i[t]: i32) -> Y[t, c]: f16, Z[t, c]: bf16\n"
        "    Y[t, c] = T[i[t], c]\n    Z[t, c] = U[i[t], c]\n",
        "f(T[v, c]: e4m3, U[v, c]: e5m2, i[t]: i64) -> Y[t, c]\n    Y[t, c] = T[i[t], c] + U[i[t], c]\n",
        "f(N[v, c]: i64, M[v, c]: i32, i[t]: i32) -> Y[t, c]: i64\n    Y[t, c] = N[i[t], c] * 3 - M[i[t], c] + t\n",
        "f(T[v, h, c], i[t]: i32, X[t, c]) -> Y[t, h]\n    Y[t, h] = max(sum(c) X[t, c] * T[i[t], h, c], 0)\n",
        "f(T[v, h, c]: f64, i[t]: i32, X[t, h]) -> Y[t, c]\n    Y[t, c] = sum(h) X[t, h] * T[i[t], h, c]\n",
        "f(T[v, c], i[t]: i32) -> Y[t, c]\n    Y[t, c] = where(i[t] >= 3, T[i[t] - 3, c], -1)\n"
        "        + where(i[t] + 2 < size(v), T[i[t] + 2, c], 0)\n",
        "f(T[v, h, c], X[t, c], i[t]: i32) -> Y[t, h]\n"
        "    Y[t, h] = sum(c) X[t, c] * where(i[t] >= 1, T[i[t] - 1, h, c], 0)\n",
        // so far away that reading there is a fault of the process
        "f(T[v, c], i[t]: i32) -> Y[t, c]\n    Y[t, c] = where(t == 0, T[i[t] + t * 1000000, c], 1)\n"
        "        + where(t == 0, T[i[t] - t * 1000000, c], 1)\n",
        "f(T[v, h, c], X[t, c], i[t]: i32) -> Y[t, h]\n"
        "    Y[t, h] = sum(c) X[t, c] * where(t == 0, T[i[t] - t * 1000000, h, c], 0)\n",
        "f(T[v, c], a[m]: i32, b[t]: i32, X[t, c]) -> Y[t]\n    Y[t] = sum(c) T[a[b[t]], c] * X[t, c]\n",
        "f(T[v, c], i[t]: i32, X[t, c]) -> Y[t]\n    Y[t] = sum(c) T[i[size(t) - 1 - t], c] * X[t, c]\n",
        "f(T[v, h, c], a[m]: i32, b[m]: i32, g[t]: i32, X[t, c]) -> Y[t]\n"
        "    Y[t] = sum(c) T[a[g[t]], b[g[size(t) - 1 - t]], c] * X[t, c]\n",
        "f(T[b, v, c], i[t]: i32) -> Y[b, t, c]\n    Y[b, t, c] = T[b, i[t], c]\n",
        "f(T[c, v], i[t]: i32, X[t]) -> Y[c]\n    Y[c] = sum(t) T[c, i[t]] * X[t]\n",
        "f(K[p, l, k]: f16, Q[q, k], n[m]: i32) -> Y[q]\n    Y[q] = max(x) sum(k) Q[q, k] * K[n[x // size(l)], x % "
        "size(l), k]\n"
        "sizes x = m * l\n",
    };
    int in_place = 0, in_parts = 0;
    for (const cpu_case::Width& width : cpu_case::widths()) {
        std::vector<cpu_case::Case> cases;
        for (const char* text : programs) {
            for (std::uint64_t seed = 0; seed < 4; ++seed) {
                const auto [diagram, extents] = Drawn(text, seed, seed == 0 ? 2 : 41);
                // In groups of one token its rows may be read where they lie.
                const auto derived = derive(diagram);
                ASSERT_TRUE(derived.ok()) << render(derived.errors());
                std::vector<KernelSchedule> schedules;
                if (seed % 2 == 1) schedules = cpu_case::random_schedules(*derived, extents, seed);
                for (KernelSchedule& schedule : schedules) {
                    schedule.vector_axis.value = -1;
                    for (const AxisId a : derived->diagram.axes.ids())
                        if (derived->diagram.axes[a].name == "t") schedule.group[a].value = 1;
                }
                cases.push_back(
                    cpu_case::make_case(diagram, extents, seed, fmt::format("r{}_", cases.size()), schedules, width));
                in_parts += cases.back().num_subloops;
                for (const ScheduledKernel& k : cases.back().scheduled.kernels)
                    for (const VariableId v : k.layouts.ids())
                        in_place += k.is_view(v) && !k.kernel->variables[v].gathers.empty();
            }
        }
        expect_definitions(cases, width);
    }
    EXPECT_GT(in_place, 0) << "no tile is read where it lies";
    EXPECT_GT(in_parts, 0) << "no tile is cut in parts";
}

/// Loops that move a tile have counters of their own, whatever the axes and arrays are called.
TEST(IndexKernels, NamesAreTheReadersOwn) {
    const std::string text =
        "f(t1[b, t, t0_, c], X[b, t, t0_, c], X_first1_[c]) -> Y[b, t, t0_, c]\n"
        "    Y[b, t, t0_, c] = t1[b, t, t0_, c] + where(t > 0, X[b, t - 1, t0_, c], 0) * X_first1_[c]\n";
    const auto diagram = parse_diagram(std::make_shared<const Source>(Source{"program.nk", text}));
    ASSERT_TRUE(diagram.ok());
    const auto extents = bind_sizes(*diagram, {{"b", 3}, {"t", 9}, {"t0_", 4}, {"c", 21}});
    ASSERT_TRUE(extents.ok());
    std::vector<cpu_case::Case> cases;
    for (std::uint64_t seed = 0; seed < 12; ++seed)
        cases.push_back(cpu_case::make_case(*diagram, *extents, seed, fmt::format("n{}_", seed)));
    const auto failures = cpu_case::failures(cases);
    for (std::size_t k = 0; k < cases.size(); ++k) EXPECT_EQ(failures[k], "") << cpu_case::describe(cases[k]);
}

/// A user's names are kept apart from every name that is made of another one: of a copy, strides, a count, a running
/// value.
TEST(IndexKernels, NamesMadeOfOthersAreUnique) {
    const std::string text =
        "f(K_copy[q, k], K[x, k], V_in_s[x], V_in[x, k], V_copy[q], V[x, d], x0_first[d]) -> O[q, d], EACH[q], nq[q]\n"
        "    S[q, x] = sum(k) K_copy[q, k] * (K[x, k] + V_in[x, k])\n"
        "    P[q, x] = softmax(x) where(x <= q, S[q, x] * V_in_s[x], -inf)\n"
        "    EACH[q] = V_copy[q] + max(x) where(x <= q, S[q, x], -inf)\n"
        "    q0[q] = (sum(k) K_copy[q, k]) / size(k)\n"
        "    nq[q] = sum(k) (K_copy[q, k] - q0[q])^2\n"
        "    O[q, d] = x0_first[d] * sum(x) P[q, x] * V[x, d]\n";
    const auto diagram = parse_diagram(std::make_shared<const Source>(Source{"program.nk", text}));
    ASSERT_TRUE(diagram.ok()) << render(diagram.errors());
    std::vector<cpu_case::Case> cases;
    for (std::uint64_t seed = 0; seed < 24; ++seed) {
        const auto extents = bind_sizes(*diagram,
                                        {{"q", 5 + static_cast<std::int64_t>(seed)}, {"x", 37}, {"k", 19}, {"d", 21}});
        ASSERT_TRUE(extents.ok()) << render(extents.errors());
        cases.push_back(cpu_case::make_case(*diagram, *extents, seed, fmt::format("u{}_", seed)));
    }
    const auto failures = cpu_case::failures(cases);
    for (std::size_t k = 0; k < cases.size(); ++k) EXPECT_EQ(failures[k], "") << cpu_case::describe(cases[k]);
}

}  // namespace
}  // namespace napkin
