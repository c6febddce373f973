// Arrays that are read by blocks of rows, on a GPU: the plan is that of the flat array.
#include <gtest/gtest.h>

#include "costed.hpp"
#include "plan/choose.hpp"
#include "plan/choose_form.hpp"

namespace napkin::test_joined_reads {
namespace {

double seconds(const std::string& text, const std::string& machine) {
    const Compilation c = costed::compile(text, machine);
    return choose_plan(choose_form(c.derived, c.extents, c.machine), c.extents, c.machine).value().seconds();
}

TEST(JoinedReads, BlocksOfRowsAreReadAsTheFlatArray) {
    const std::string flat =
        "f(Q[q, k]: f16, K[w, k]: f16, V[w, d]: f16) -> O[q, d]: f16\n    S[q, w] = sum(k) Q[q, k] * K[w, k]\n"
        "    P[q, w] = softmax(w) S[q, w] * k^-0.5\n    O[q, d] = sum(w) P[q, w] * V[w, d]\n"
        "sizes q = w = 4096, k = d = 128\n";
    const std::string blocks =
        "f(Q[q, k]: f16, K[b, p, k]: f16, V[b, p, d]: f16) -> O[q, d]: f16\n"
        "    S[q, w] = sum(k) Q[q, k] * K[w // 64, w % 64, k]\n    P[q, w] = softmax(w) S[q, w] * k^-0.5\n"
        "    O[q, d] = sum(w) P[q, w] * V[w // 64, w % 64, d]\nsizes q = w = 4096, b = 64, p = 64, k = d = 128\n";
    for (const char* machine : {"h100-sxm5", "h200", "generic-cpu"})
        EXPECT_EQ(seconds(blocks, machine), seconds(flat, machine)) << machine;
}

}  // namespace
}  // namespace napkin::test_joined_reads
