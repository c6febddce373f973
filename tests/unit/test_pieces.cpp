// Seeds over processes: what fails, crashes or hangs is named, and costs nothing else.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>

#include "support/pieces.hpp"

namespace napkin::campaign {
namespace {

Outcome quietly(const Spread& spread, const std::function<void(std::uint64_t, std::uint64_t, Piece&)>& work) {
    testing::internal::CaptureStdout();
    Outcome outcome = run(spread, work);
    const std::string said = testing::internal::GetCapturedStdout();
    for (const std::uint64_t seed : outcome.failed)
        EXPECT_THAT(said, testing::HasSubstr("seed " + std::to_string(seed) + ": ")) << said;
    return outcome;
}

TEST(Pieces, AllSeedsAreDoneOnce) {
    const Outcome outcome = quietly({.first = 5, .last = 42, .seeds_a_piece = 4, .jobs = 3},
                                    [](std::uint64_t first, std::uint64_t last, Piece& piece) {
                                        for (std::uint64_t seed = first; seed < last; ++seed) piece.done(1, seed);
                                    });
    EXPECT_EQ(outcome.programs, 37U);
    EXPECT_EQ(outcome.kernels, (5U + 41U) * 37U / 2);
    EXPECT_THAT(outcome.failed, testing::IsEmpty());
}

TEST(Pieces, AFailureAndACrashCostOneSeedEach) {
    const Outcome outcome = quietly({.first = 0, .last = 20, .seeds_a_piece = 10, .jobs = 2},
                                    [](std::uint64_t first, std::uint64_t last, Piece& piece) {
                                        for (std::uint64_t seed = first; seed < last; ++seed) {
                                            piece.begins(seed);
                                            if (seed == 3 || seed == 11) std::_Exit(70);
                                            if (seed == 7) piece.failed({seed, "a line\nand another\n"});
                                            piece.done(1, 1);
                                        }
                                    });
    EXPECT_EQ(outcome.programs, 18U);
    EXPECT_THAT(outcome.failed, testing::ElementsAre(3, 7, 11));
}

TEST(Pieces, WhatHangsIsEnded) {
    const Outcome outcome = quietly({.first = 0, .last = 4, .seeds_a_piece = 4, .jobs = 1, .seconds_a_seed = 1},
                                    [](std::uint64_t first, std::uint64_t last, Piece& piece) {
                                        for (std::uint64_t seed = first; seed < last; ++seed) {
                                            piece.begins(seed);
                                            if (seed == 1) ::sleep(60);
                                            piece.done(1, 1);
                                        }
                                    });
    EXPECT_EQ(outcome.programs, 3U);
    EXPECT_THAT(outcome.failed, testing::ElementsAre(1));
}

}  // namespace
}  // namespace napkin::campaign
