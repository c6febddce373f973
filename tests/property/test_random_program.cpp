// The generator of random programs itself: what it writes parses, binds, prints and reads back, is broad, and mostly finite.
#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "diagram/evaluate.hpp"
#include "diagram/verifier.hpp"
#include "support/random_diagram.hpp"
#include "support/random_program.hpp"
#include "syntax/print.hpp"

namespace napkin {
namespace {

constexpr std::uint64_t num_programs = 1500;

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
    EXPECT_GT(finite, static_cast<int>(num_programs) * 3 / 4);
    EXPECT_LT(finite, static_cast<int>(num_programs));
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
        const std::string text = random_program(seed);
        for (const char* word : wanted) seen[word] += text.find(word) != std::string::npos ? 1 : 0;
    }
    for (const char* word : wanted) EXPECT_GT(seen[word], 4) << word;
}

}  // namespace
}  // namespace napkin
