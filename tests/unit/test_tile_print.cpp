// The tile program as text, and read back.
#include <gmock/gmock.h>

#include <cstring>

#include "support/parse_tile.hpp"
#include "support/parsed.hpp"
#include "unit/tile_examples.hpp"

namespace napkin::tile_examples::test_tile_print {
namespace {

using ::testing::HasSubstr;

TEST(TilePrint, ReadsAsPseudocode) {
    const SizedProgram program = program_for(matmul(4096, 1024, 4096), {{"a", 192}, {"c", 64}}, {{"b", 32}});
    EXPECT_EQ(to_string(program),
              "tiles of \n"
              "sizes a = 4096, b = 1024, c = 4096\n"
              "\n"
              "kernel C\n"
              "  variable  of  indices  tile    values  type  level    alive\n"
              "  C         C   [a, c]   192×64   12288  f32   ℓ1 → ℓ0  2–8\n"
              "  A         A   [a, b]   192×32    6144  f32   ℓ0 → ℓ1  4–6\n"
              "  B         B   [b, c]   32×64     2048  f32   ℓ0 → ℓ1  5–6\n"
              "\n"
              "  1  for each group of a (192 at a time), c (64 at a time):\n"
              "  2      init C = 0\n"
              "  3      for each chunk of b (32 at a time):\n"
              "  4          load A\n"
              "  5          load B\n"
              "  6          C[a, c] = C[a, c] + sum over b: A[a, b] * B[b, c]\n"
              "  7          free A, B\n"
              "  8      store C\n"
              "  9      free C\n");
}

void expect_reads_back(const Example& e, const SizedProgram& program) {
    const std::string text = to_string(program);
    const auto parsed = parse_tile(text, e.derived);
    ASSERT_TRUE(parsed.ok()) << render(parsed.errors()) << text;
    EXPECT_EQ(to_string(*parsed), text);
    EXPECT_EQ(parsed->extents, program.extents);
    Values values = random_inputs(e.derived.diagram, e.extents, 1), again = values;
    EXPECT_EQ(interpret(program, values), interpret(*parsed, again));
    for (const ArrayId id : e.derived.diagram.outputs) {
        const auto &one = values[id], &other = again[id];
        EXPECT_TRUE(one.size() == other.size() &&
                    // NaN too
                    std::memcmp(one.reals().data(), other.reals().data(), one.size() * sizeof(double)) == 0);
    }
    for (std::size_t k = 0; k < program.kernels.size(); ++k) {
        EXPECT_EQ(parsed->kernels[k].name, program.kernels[k].name);
        EXPECT_EQ(groups_of(parsed->kernels[k], parsed->sizes[k]), groups_of(program.kernels[k], program.sizes[k]));
        EXPECT_EQ(parsed->kernels[k].variables, program.kernels[k].variables);
    }
}

TEST(TilePrint, ReadsBack) {
    for (const Example& e :
         {matmul(), weighted_mean(), weighted_mean(true), maps(), convolution(), two_loops(), two_kernels()}) {
        expect_reads_back(e, program_for(e, {}, {}));
        expect_reads_back(e, program_for(e, {{"a", 3}, {"c", 2}, {"q", 2}, {"i", 4}}, {{"b", 4}, {"x", 3}}));
    }
}

/// One kernel that maps a scalar and the axes to the expression.
Example of_expression(const std::function<Expr(const Example&, AxisId i, AxisId j, const Expr& a, const Expr& c)>& make) {
    Example e;
    const AxisId i = e.axis("i", 3), j = e.axis("j", 4);
    const ArrayId A = e.input("A", {i, j}), c = e.input("c", {}), B = e.output("B", {i, j});
    const Expr body = make(e, i, j, e.self(A), e.self(c));
    e.define(B, body);
    e.derived.kernels.push_back({"a b", {}, {i}, {}, {Block{{map(B, body)}}}, {A, c}, {B}, {}});
    return e;
}

TEST(TilePrint, ExpressionsReadBack) {
    const auto tree = [](BinaryOp op, const Expr& a, const Expr& b) { return binary(op, a, b); };
    const auto check = [&](const auto& make) {
        const Example e = of_expression(make);
        expect_reads_back(e, program_for(e, {{"i", 2}}, {}));
        const auto parsed = parse_tile(to_string(program_for(e, {}, {})), e.derived);
        ASSERT_TRUE(parsed.ok());
        const auto body = [](const SizedProgram& p) {
            for (const TileStatement& s : p.kernels[0].body)
                if (const auto* c = std::get_if<Compute>(&s)) return c->body;
            return Expr{};
        };
        const SizedProgram program = program_for(e, {}, {});
        EXPECT_TRUE(equal(body(program), body(*parsed))) << to_string(program);
    };
    using E = const Expr&;
    check([&](const Example&, AxisId i, AxisId j, E a, E c) {
        return a + c * (axis_index(i) - axis_index(j)) - tree(BinaryOp::max, axis_index(i), axis_index(j));
    });
    check([&](const Example&, AxisId i, AxisId, E a, E c) {
        return (a - (c - a)) / (a / c) + tree(BinaryOp::pow, tree(BinaryOp::pow, c, constant(2)), axis_size(i));
    });
    check([&](const Example&, AxisId, AxisId, E a, E c) {
        return tree(BinaryOp::pow, constant(-2.5), unary(UnaryOp::neg, c)) + unary(UnaryOp::neg, constant(2)) + a;
    });
    check([&](const Example&, AxisId, AxisId, E a, E c) {
        return unary(UnaryOp::neg, tree(BinaryOp::pow, constant(2), c)) * tree(BinaryOp::pow, a, constant(-2));
    });
    check([&](const Example&, AxisId i, AxisId j, E a, E c) {
        return select(tree(BinaryOp::logical_or,
                           tree(BinaryOp::logical_and, tree(BinaryOp::le, axis_index(i), axis_index(j)),
                                unary(UnaryOp::logical_not, c)),
                           tree(BinaryOp::ne, tree(BinaryOp::lt, a, c), constant(1))),
                      constant(-INFINITY), cast(DType::f16, unary(UnaryOp::tanh, a)));
    });
    check([&](const Example&, AxisId, AxisId, E a, E c) {
        return tree(BinaryOp::min, a, tree(BinaryOp::max, c, constant(1e-30))) + constant(0.1) + exp(exp(a) - c) +
               constant(-0.0);
    });
}

TEST(TilePrint, CarriesOfEveryReductionReadBack) {
    for (const ReduceOp op : {ReduceOp::sum, ReduceOp::prod, ReduceOp::max, ReduceOp::min}) {
        Example e;
        const AxisId i = e.axis("i", 3), x = e.axis("x", 4);
        const ArrayId A = e.input("A", {i, x}), B = e.output("B", {i}), total = e.output("total", {});
        Loop loop{x, {}, {{B, identity(op)}, {total, identity(op)}}, {}};
        loop.body = {reduce(B, op, {x}, e.self(A) + constant(1), e.self(B) + constant(0)),
                     reduce(total, op, {i, x}, e.self(A), e.self(total)),
                     reduce(total, op, {}, constant(1), e.self(total) - constant(2))};
        e.derived.kernels.push_back({"B", {}, {}, {}, {loop}, {A}, {B, total}, {}});
        expect_reads_back(e, program_for(e, {}, {{"x", 3}}));
    }
}

// The tile has one coordinate of indices that the numbers make the same, as what is read back has.
TEST(TilePrint, IndicesOfElementsThatAreTheSameInNumbersReadBack) {
    Example e;
    e.derived = derived_from(
        "f(G[d, e, n], Q[d]: i32, X[e]: i64) -> Y[n]\n"
        "    Y[n] = G[Q[(n + 2) % size(d)], X[(n + 2) % size(e)], n]\nsizes d = 7, e = 7, n = 6\n");
    e.extents = bind_sizes(e.derived.diagram).value();
    const SizedProgram program = program_for(e, {{"n", 4}}, {});
    EXPECT_THAT(to_string(program), HasSubstr("G[(n + 2) % 7, n]"));
    expect_reads_back(e, program);
}

TEST(TilePrint, MistakesAreShownWhereTheyStand) {
    const Example e = matmul();
    const std::string good = to_string(program_for(e, {{"a", 3}}, {{"b", 4}}));
    const auto error_after = [&](const std::string& from, const std::string& to) {
        std::string text = good;
        const std::size_t at = text.find(from);
        EXPECT_NE(at, std::string::npos) << from;
        text.replace(at, from.size(), to);
        const auto parsed = parse_tile(text, e.derived);
        return parsed.ok() ? std::string("no error") : render(parsed.errors());
    };
    EXPECT_THAT(error_after("load A", "load D"), HasSubstr("no variable is called D"));
    EXPECT_THAT(error_after("chunk of b", "chunk of bb"), HasSubstr("no axis is called bb"));
    EXPECT_THAT(error_after("A         A", "A         AA"), HasSubstr("no array is called AA"));
    EXPECT_THAT(error_after("sum over b:", "sum over b"), HasSubstr("':'"));
    EXPECT_THAT(error_after("B[b, c]\n", "B[b, c] B\n"), HasSubstr("missing before 'B'"));
    EXPECT_THAT(error_after("(4 at a time)", "(many at a time)"), HasSubstr("a whole number"));
    EXPECT_THAT(error_after("a = 7", "a = 0"), HasSubstr("the sizes miss an axis"));
    EXPECT_THAT(error_after("free A, B", "free A,"), HasSubstr("the name of a variable"));
    EXPECT_THAT(error_after("A[a, b] *", "sinc(A[a, b]) *"), HasSubstr("no function sinc"));
    EXPECT_THAT(error_after("= 0", "= C"), HasSubstr("begins with a constant"));
    EXPECT_FALSE(parse_tile("", e.derived).ok());
    EXPECT_FALSE(parse_tile("tiles of \nsizes a = 7, b = 10, c = 5\nkernel C\n", e.derived).ok());
    EXPECT_THAT(error_after("A[a, b] *", std::string(100000, '(')), HasSubstr("nested too deep"));
    EXPECT_THAT(error_after("A[a, b] *", std::string(100000, '-')), HasSubstr("nested too deep"));
}

TEST(TilePrint, CutTextsAreErrorsNotCrashes) {
    const Example e = weighted_mean(true);
    const std::string good = to_string(program_for(e, {{"q", 3}}, {{"x", 4}}));
    for (std::size_t length = 0; length < good.size(); length += 3)
        (void)parse_tile(std::string_view(good).substr(0, length), e.derived);
    for (std::size_t at = 0; at + 5 < good.size(); at += 3) {
        std::string text = good;
        text.erase(at, 5);
        (void)parse_tile(text, e.derived);
    }
}

}  // namespace
}  // namespace napkin::tile_examples::test_tile_print
