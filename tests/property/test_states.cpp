// A derived form carries nothing that it could do without. Every state and every other statement serves an output, and
// no two states are one. None counts points, which the loop knows from its position.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>

#include "derive/derive.hpp"
#include "property/pipeline_case.hpp"
#include "support/paths.hpp"
#include "support/random_diagram.hpp"
#include "support/random_program.hpp"
#include "syntax/parse.hpp"

namespace napkin {
namespace {

std::vector<Statement> statements(const Kernel& kernel) {
    std::vector<Statement> all;
    for (const Stage& stage : kernel.stages) {
        const auto& list = std::holds_alternative<Block>(stage) ? std::get<Block>(stage).statements
                                                                : std::get<Loop>(stage).body;
        all.insert(all.end(), list.begin(), list.end());
    }
    return all;
}

/// What the kernel computes and no output needs.
std::set<ArrayId> dead(const Kernel& kernel) {
    const std::vector<Statement> all = statements(kernel);
    std::set<ArrayId> serves(kernel.outputs.begin(), kernel.outputs.end()), out;
    for (bool changed = true; changed;) {
        changed = false;
        for (const Statement& s : all) {
            if (!serves.contains(s.target)) continue;
            for (const Expr& e : {s.body, s.carry})
                if (e)
                    for (const ArrayId read : read_arrays(e)) changed |= serves.insert(read).second;
        }
    }
    for (const Statement& s : all)
        if (!serves.contains(s.target)) out.insert(s.target);
    return out;
}

/// The statement's carry, where it is the sum so far and no more.
bool only_adds(const Statement& s) {
    const auto* own = s.carry ? as<Read>(s.carry) : nullptr;
    return own && own->array == s.target;
}

std::string superfluous(const Derived& derived) {
    for (const Kernel& kernel : derived.kernels) {
        for (const ArrayId id : dead(kernel)) return derived.diagram.array(id).name + " serves no output";
        for (const Stage& stage : kernel.stages) {
            const auto* loop = std::get_if<Loop>(&stage);
            if (!loop) continue;
            std::vector<Statement> adding;
            for (const Statement& s : loop->body) {
                if (!only_adds(s)) continue;
                const std::string& name = derived.diagram.array(s.target).name;
                if (as<Constant>(s.body) && s.reduce == ReduceOp::sum) return name + " counts points";
                for (const Statement& other : adding)
                    if (equal(other.body, s.body) && other.reduce == s.reduce && other.reduce_axes == s.reduce_axes &&
                        derived.diagram.array(other.target).axes == derived.diagram.array(s.target).axes)
                        return name + " is " + derived.diagram.array(other.target).name;
                adding.push_back(s);
            }
        }
    }
    return "";
}

std::shared_ptr<const Source> source(const std::string& path) {
    std::ifstream in(path, std::ios::binary);
    return std::make_shared<const Source>(
        Source{path, {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()}});
}

TEST(States, of_examples_and_spellings_are_all_needed) {
    int seen = 0;
    for (const char* folder : {"/examples", "/tests/property/spellings"})
        for (const auto& entry : std::filesystem::directory_iterator(source_dir().string() + folder)) {
            if (entry.path().extension() != ".nk") continue;
            const auto text = source(entry.path().string());
            const auto names = list_diagrams(text);
            ASSERT_TRUE(names.ok()) << render(names.errors());
            for (const std::string& name : *names) {
                auto diagram = parse_diagram(text, {name, {}});
                ASSERT_TRUE(diagram.ok()) << render(diagram.errors());
                for (const Form form : {Form::unscaled, Form::auxiliary}) {
                    DeriveOptions options;
                    options.form = form;
                    const auto derived = derive(*diagram, options);
                    ASSERT_TRUE(derived.ok()) << render(derived.errors());
                    EXPECT_EQ(superfluous(*derived), "") << entry.path() << " " << name;
                    ++seen;
                }
            }
        }
    EXPECT_GT(seen, 150);
}

TEST(States, of_random_diagrams_are_all_needed) {
    for (std::uint64_t seed = 1; seed <= 500; ++seed) {
        const auto derived = derive(random_diagram(seed), {});
        ASSERT_TRUE(derived.ok()) << render(derived.errors());
        ASSERT_EQ(superfluous(*derived), "") << "seed " << seed;
    }
}

TEST(States, a_count_of_an_earlier_traversal_is_known_behind_a_later_one) {
    const Diagram diagram = parsed_program(R"(f(K[k], W[h, k]) -> Y, C[h]
    F = sum(k) K[k]
    V = sum(k) (K[k] - F)^2
    Y = V + 1
    A = sum(k) abs(K[k] - F)
    C[h] = sum(k) V * W[h, k] * A
)");
    pipeline::Coverage seen;
    for (std::uint64_t seed = 0; seed < 20; ++seed)
        ASSERT_EQ(pipeline::failure_of(pipeline::make_case(diagram, seed, Probe::normal), seen), "") << seed;
    EXPECT_GT(seen.merges, 0);
}

}  // namespace
}  // namespace napkin
