// The generator of random programs itself: what it writes parses, binds, prints and reads back, is broad, and mostly
// finite.
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <regex>
#include <stdexcept>

#include "diagram/evaluate.hpp"
#include "diagram/verifier.hpp"
#include "support/random_diagram.hpp"
#include "support/random_program.hpp"
#include "syntax/print.hpp"

namespace napkin {
namespace {

constexpr std::uint64_t num_programs = 1500, num_of_all_features = 600;
/// Without what makes most patterns rarer.
const ProgramOptions few_features{.features = Features::extremes | Features::integers | Features::types};

TEST(RandomProgram, ParsesBindsAndReadsBack) {
    int finite = 0;
    for (std::uint64_t seed = 0; seed < num_programs; ++seed) {
        const std::string text = random_program(seed);
        const Diagram d = parsed_program(text);
        ASSERT_EQ(verify(d), std::vector<std::string>{}) << "seed " << seed << "\n" << text;
        ASSERT_FALSE(d.outputs.empty()) << seed;
        ASSERT_EQ(parsed_program(print(d)), d) << "seed " << seed << "\n" << text;
        const Extents extents = random_extents(d, seed);
        Values values = random_inputs(d, extents, seed);
        evaluate(d, extents, values);
        bool all = true;
        for (const ArrayId id : d.outputs)
            for (const double x : values[id]) all = all && std::isfinite(x);
        finite += all ? 1 : 0;
    }
    // Masked rows and overflow belong to it, but a program that is NaN everywhere tests little.
    EXPECT_GT(finite, static_cast<int>(num_programs) * 2 / 3);
    EXPECT_LT(finite, static_cast<int>(num_programs));
}

TEST(RandomProgram, EveryRecipeWritesPrograms) {
    for (const std::string& recipe : recipe_names())
        for (std::uint64_t seed = 0; seed < 20; ++seed)
            ASSERT_NO_THROW(parsed_program(random_program(seed, {.recipes = {recipe}}))) << recipe << seed;
}

TEST(RandomProgram, TheSameSeedGivesTheSameText) {
    for (std::uint64_t seed = 0; seed < 50; ++seed) EXPECT_EQ(random_program(seed), random_program(seed));
    EXPECT_NE(random_program(1), random_program(2));
}

TEST(RandomProgram, OptionsLeaveThingsOut) {
    const ProgramOptions plain{.features = Features::none};
    for (std::uint64_t seed = 0; seed < 300; ++seed)
        EXPECT_EQ(random_program(seed, plain).find("i32"), std::string::npos);
}

TEST(RandomProgram, HoldsWhatPeopleWrite) {
    std::map<std::string, int> seen;
    const char* wanted[] = {
        "softmax(", "log_softmax(", "logsumexp(",  "std(",   "var(",  "cross_entropy(", "softmax_entropy(",
        "i32",      "-inf",         "-1000000000", "-1e+30", "1e+38", "prod(",          "min(",
        "max(",     "2^",           "^3",          " and ",  "size(", "sum(j)",         "gelu(",
        " == ",     "_k",           "2*"};
    for (std::uint64_t seed = 0; seed < num_programs; ++seed) {
        const std::string text = random_program(seed, few_features);
        for (const char* word : wanted) seen[word] += text.find(word) != std::string::npos ? 1 : 0;
    }
    for (const char* word : wanted) EXPECT_GT(seen[word], 4) << word;
}

/// How many programs of all features hold each pattern.
std::map<std::string, int> programs_with(const std::vector<std::string>& patterns) {
    std::map<std::string, int> seen;
    std::vector<std::regex> compiled(patterns.begin(), patterns.end());
    for (std::uint64_t seed = 0; seed < num_of_all_features; ++seed) {
        const std::string text = random_program(seed);
        for (std::size_t i = 0; i < patterns.size(); ++i)
            seen[patterns[i]] += std::regex_search(text, compiled[i]) ? 1 : 0;
    }
    return seen;
}

TEST(RandomProgram, HoldsReadsElsewhereGuardsAndGathers) {
    const std::vector<std::string> patterns = {
        R"(\[\w+\[)",                    // looked up
        R"(\[\w+\[\w+\[)",               // by what is looked up
        R"(\[\w+\[[^\]]*\], \w+\[)",     // two in one read
        R"(\[\w+\[size\(\w+\) - 1 - )",  // in reverse
        R"(\[\w+\[[^\]]*[%+])",          // shifted
        R"(size\(\w+\) - 1 - \w+)",
        R"(\w+ // [234]\])",                                     // reversed, a block
        R"(where\(\(\w+ - \w+ >= 0\), )",                        // behind a guard: a read,
        R"(where\(\([^,]*\), \((sum|max|mean)\(\w+\) )",         // a reduction,
        R"(where\(\([^,]*\), (silu|gelu|tanh|exp|softplus)\()",  // a call
        R"(\(sum\(\w+\) .*\w+\[.* % size)",                      // a fold that reads elsewhere
    };
    for (const auto& [pattern, count] : programs_with(patterns)) EXPECT_GT(count, 1) << pattern;
}

TEST(RandomProgram, HoldsIntegersCastsAndEveryType) {
    std::vector<std::string> patterns = {R"(\w // \w+\))",
                                         R"(\w % \w+\))",
                                         R"( // -?\(?-?[1237])",
                                         R"(i32\(\w+\[[^+]*\) [+*-])",
                                         R"(sum\(\w+\) .*i(32|64)\()",
                                         R"((==|<=|>|!=|<|>=) \(?-?16777216)",
                                         R"((==|<=|>|!=|<|>=) \(?-?9007199254740992)",
                                         R"(argm(ax|in)\()",
                                         R"(scale = )",
                                         R"(\^2\))",
                                         R"([(, ]\w+(: \w+)?[,)].* -> )"};
    for (const DType type : all_dtypes)
        if (type != DType::f32) patterns.push_back(": " + std::string(name(type)));
    for (const auto& [pattern, count] : programs_with(patterns)) EXPECT_GT(count, 1) << pattern;
}

TEST(RandomProgram, LeavesOutWhatIsNotWanted) {
    for (std::uint64_t seed = 0; seed < 300; ++seed) {
        const std::string text = random_program(seed,
                                                {.features = Features::all - features_named({"gathers", "scalars"})});
        EXPECT_FALSE(std::regex_search(text, std::regex(R"(\[\w+\[)"))) << text;
        EXPECT_EQ(text.find("scale"), std::string::npos) << text;
    }
    EXPECT_THROW(features_named({"no such"}), std::invalid_argument);
}

}  // namespace
}  // namespace napkin
