// Plans whole, with the tile programs that they run: tests/text/plans/<name>.txt. NAPKIN_UPDATE_GOLDEN=1 rewrites them.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "derive/derive.hpp"
#include "plan/choose.hpp"
#include "report/print.hpp"
#include "support/paths.hpp"
#include "syntax/parse.hpp"
#include "tile/print.hpp"
#include "unit/proven.hpp"

namespace napkin {
namespace {

void expect_golden(const std::string& name, const std::string& text) {
    const std::string path = in_sources("tests/text/plans/" + name + ".txt");
    if (std::getenv("NAPKIN_UPDATE_GOLDEN")) {
        std::filesystem::create_directories(std::filesystem::path(path).parent_path());
        std::ofstream(path, std::ios::binary) << text;
    }
    std::ifstream file(path, std::ios::binary);
    EXPECT_EQ(text, std::string(std::istreambuf_iterator<char>(file), {})) << name;
}

void expect_plan(const std::string& name, const std::string& diagram_text) {
    const auto diagram = parse_diagram(std::make_shared<const Source>(Source{name, diagram_text}));
    ASSERT_TRUE(diagram.ok()) << render(diagram.errors());
    const auto plan = choose_plan(derive(*diagram).value(), bind_sizes(*diagram).value(),
                                  load_machine("generic-cpu").value());
    ASSERT_TRUE(plan.ok()) << render(plan.errors());
    expect_golden(name, to_string(*plan) + "\n" + to_string(plan->tiles()));
}

TEST(Plans, OneQueryOfOneHeadIsSharedAmongTheCores) {
    expect_plan("decode_in_parts",
                "decode(Q[h, k], K[h, x, k], V[h, x, d]) -> O[h, d]\n"
                "    S[h, x] = sum(k) Q[h, k] * K[h, x, k]\n"
                "    P[h, x] = softmax(x) S[h, x] * k^-0.5\n"
                "    O[h, d] = sum(x) P[h, x] * V[h, x, d]\n"
                "sizes h = 1, x = 65536, k = d = 128\n");
}

// The order of an attention's turn with its proof, as `napkin plan --prove` prints it.
TEST(Plans, OrdersOfAttentionAreProven) {
    for (const int d : {64, 128, 256})
        expect_golden("proof_" + std::to_string(d),
                      report::to_text(report_of(proven::planned(proven::attention(d)).proofs().value().at(0))));
}

}  // namespace
}  // namespace napkin
