// Random diagrams as text and back: parse(print(d)) = d.
#include <gtest/gtest.h>

#include "support/random_diagram.hpp"
#include "syntax/parse.hpp"
#include "syntax/print.hpp"

namespace napkin {
namespace {

TEST(RoundTrip, EveryRandomDiagramReadsBackFromItsText) {
    RandomDiagramOptions plain, mixed;
    plain.loose_reductions = mixed.loose_reductions = false;  // the language refuses them
    mixed.types = {DType::f32, DType::f16, DType::bf16, DType::f64};
    for (std::uint64_t seed = 0; seed < 2000; ++seed) {
        const Diagram d = random_diagram(seed, seed % 2 == 0 ? plain : mixed);
        const std::string text = print(d);
        const auto back = parse_diagram(std::make_shared<const Source>(Source{"random.nk", text}));
        ASSERT_TRUE(back.ok()) << "seed " << seed << "\n" << text << render(back.errors());
        ASSERT_EQ(back.value(), canonical(d)) << "seed " << seed << "\n" << text << "reads as\n" << print(back.value());
    }
}

}  // namespace
}  // namespace napkin
