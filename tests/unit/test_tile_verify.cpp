// Every rule of the tile program's verifier, each broken by one change of a good program.
#include <gmock/gmock.h>

#include <functional>

#include "unit/tile_examples.hpp"

namespace napkin::tile_examples::test_tile_verify {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TileKernel& kernel(SizedProgram& p) { return p.kernels.at(0); }
std::vector<TileStatement>& body(SizedProgram& p) { return kernel(p).body; }

void group(SizedProgram& p, AxisId axis, std::int64_t size) {
    kernel(p).group_axes.push_back(axis);
    p.sizes[0].group[axis] = size;
}

/// Changes the first loop of the kernel.
void edit_loop(SizedProgram& p, const std::function<void(TileLoop&)>& change) {
    for (TileStatement& s : body(p))
        if (auto* loop = std::get_if<std::shared_ptr<const TileLoop>>(&s)) {
            TileLoop copy = **loop;
            change(copy);
            *loop = std::make_shared<const TileLoop>(std::move(copy));
            return;
        }
    FAIL() << "the kernel has no loop";
}

/// Position of the n-th statement of a kind.
template <class T>
std::size_t find(const std::vector<TileStatement>& list, std::size_t n = 0) {
    for (std::size_t i = 0; i < list.size(); ++i)
        if (std::holds_alternative<T>(list[i]) && n-- == 0) return i;
    throw std::out_of_range("no such statement");
}

template <class T>
TileStatement take(std::vector<TileStatement>& list, std::size_t n = 0) {
    const std::size_t i = find<T>(list, n);
    TileStatement s = list[i];
    list.erase(list.begin() + static_cast<std::ptrdiff_t>(i));
    return s;
}

template <class T>
T& get(std::vector<TileStatement>& list, std::size_t n = 0) {
    return std::get<T>(list[find<T>(list, n)]);
}

VariableId variable(const SizedProgram& p, const std::string& name) {
    const auto& variables = p.kernels.at(0).variables;
    for (const VariableId v : variables.ids())
        if (variables[v].name == name) return v;
    throw std::out_of_range(name);
}

struct Rule {
    const char* name;
    Example (*example)();
    void (*break_it)(SizedProgram&);
    const char* message;
};

std::ostream& operator<<(std::ostream& out, const Rule& rule) { return out << rule.name; }

class TileVerifier : public ::testing::TestWithParam<Rule> {};

TEST_P(TileVerifier, SaysWhichRuleIsBroken) {
    SizedProgram program = program_for(GetParam().example(), {{"a", 3}, {"c", 2}, {"q", 2}, {"i", 4}},
                                       {{"b", 4}, {"x", 3}});
    ASSERT_THAT(verify(program), IsEmpty());
    GetParam().break_it(program);
    EXPECT_THAT(verify(program), Contains(HasSubstr(GetParam().message)));
}

Example small_matmul() { return matmul(); }
Example causal_mean() { return weighted_mean(true); }

using P = SizedProgram;
const Rule rules[] = {
    // sizes
    {"GroupBelowOne", small_matmul, [](P& p) { p.sizes[0].group[0] = -1; }, "the group size of a is -1, below 1"},
    {"GroupPastExtent", small_matmul, [](P& p) { p.sizes[0].group[0] = 8; },
     "the group size of a is 8, past its extent 7"},
    {"GroupedTwice", small_matmul, [](P& p) { kernel(p).group_axes.push_back(0); }, "axis a is grouped twice"},
    {"NoSuchGroupAxis", small_matmul, [](P& p) { kernel(p).group_axes[0] = 9; }, "axis 9 of its groups does not exist"},
    {"ChunkBelowOne", small_matmul, [](P& p) { p.sizes[0].stream[1] = -1; }, "the stream size of b is -1, below 1"},
    {"ChunkPastExtent", small_matmul, [](P& p) { p.sizes[0].stream[1] = 11; },
     "the stream size of b is 11, past its extent 10"},
    {"GroupedAndStreamed", small_matmul, [](P& p) { group(p, 1, 2); }, "axis b is both grouped and streamed"},
    {"LoopInItself", small_matmul,
     [](P& p) {
         edit_loop(p, [](TileLoop& l) {
             l.body.insert(l.body.begin(), std::make_shared<const TileLoop>(TileLoop{l.axis, {}, {}}));
         });
     },
     "the loop over b stands inside a loop over b"},
    {"NoSuchLoopAxis", small_matmul, [](P& p) { edit_loop(p, [](TileLoop& l) { l.axis = 7; }); },
     "a loop runs over an axis that does not exist"},
    {"NoSuchSupportAxis", causal_mean, [](P& p) { edit_loop(p, [](TileLoop& l) { l.support[0].add(8, 1); }); },
     "the support of the loop over x mentions axis 8"},
    {"WrongExtents", small_matmul, [](P& p) { p.extents.pop_back(); }, "the program has 2 extents for 3 axes"},
    {"NoExtent", small_matmul, [](P& p) { p.extents[1] = 0; }, "axis b has extent 0"},
    // variables
    {"RankOfVariable", small_matmul, [](P& p) { kernel(p).variables[0].dims.pop_back(); },
     "has 1 dimensions, its array C has 2"},
    {"NoSuchArray", small_matmul, [](P& p) { kernel(p).variables[0].array = 99; },
     "is a tile of array 99, which does not exist"},
    {"SameName", small_matmul, [](P& p) { kernel(p).variables[1].name = kernel(p).variables[0].name; },
     "two variables are called"},
    {"NoSuchVariable", small_matmul, [](P& p) { get<Store>(body(p)).variable = 12; }, "variable 12 does not exist"},
    {"TileLeavesArray", convolution,
     [](P& p) {
         Index& dim = kernel(p).variables[variable(p, "X")].dims[0];
         dim = *dim.affine() + Affine{{}, 1};
     },
     "X is loaded from index 1 to 12 of n, which has 12"},
    {"ComputedOverOtherAxes", small_matmul,
     [](P& p) {
         std::swap(kernel(p).variables[variable(p, "C")].dims[0], kernel(p).variables[variable(p, "C")].dims[1]);
     },
     "dimension 0 of C is not the axis a of its array"},
    {"InitOfNoState", small_matmul, [](P& p) { kernel(p).variables[variable(p, "C")].is_state = false; },
     "C is initialised, but is no state"},
    // lifetimes
    {"UsedBeforeDefined", maps, [](P& p) { take<Load>(body(p)); }, "A is read before it is defined"},
    {"UsedAfterFree", maps, [](P& p) { body(p).insert(body(p).begin() + 1, Free{variable(p, "A")}); },
     "A is read after it was freed"},
    {"Leak", maps, [](P& p) { take<Free>(body(p)); }, "A is never freed in the list in which it is defined"},
    {"LeakInLoop", small_matmul, [](P& p) { edit_loop(p, [](TileLoop& l) { take<Free>(l.body); }); },
     "is never freed in the list in which it is defined"},
    {"FreedTwice", maps, [](P& p) { body(p).push_back(Free{variable(p, "A")}); }, "A is freed twice"},
    {"FreedBeforeDefined", maps, [](P& p) { body(p).insert(body(p).begin(), Free{variable(p, "A")}); },
     "A is freed before it is defined"},
    {"OuterFreedInLoop", small_matmul,
     [](P& p) { edit_loop(p, [&](TileLoop& l) { l.body.push_back(Free{variable(p, "C")}); }); },
     "C is freed in the loop over b, but was defined outside of it"},
    {"LoadedTwice", maps, [](P& p) { body(p).insert(body(p).begin(), Load{variable(p, "A")}); },
     "A is loaded while it is still alive"},
    {"InitialisedTwice", small_matmul, [](P& p) { body(p).insert(body(p).begin(), get<Init>(body(p))); },
     "C is initialised while it is still alive"},
    {"ComputedTwice", maps,
     [](P& p) {
         body(p).insert(body(p).begin() + static_cast<std::ptrdiff_t>(find<Compute>(body(p))), get<Compute>(body(p)));
     },
     "B is computed while it is still alive"},
    {"ComputedIntoLoad", maps, [](P& p) { get<Compute>(body(p), 1).variable = variable(p, "w"); },
     "w is computed into a tile that was loaded"},
    {"StateNotInitialised", small_matmul, [](P& p) { take<Init>(body(p)); }, "C is read before it is defined"},
    {"StateInitialisedInLoop", small_matmul,
     [](P& p) {
         const TileStatement init = take<Init>(body(p));
         edit_loop(p, [&](TileLoop& l) { l.body.insert(l.body.begin(), init); });
     },
     "state C is initialised inside the loop over b that updates it"},
    {"StateOnlyComputed", small_matmul,
     [](P& p) {
         take<Init>(body(p));
         edit_loop(p, [](TileLoop& l) { get<Compute>(l.body).carry = nullptr; });
     },
     "state C is computed, but not initialised"},
    {"OtherTile", small_matmul,
     [](P& p) {
         const VariableId v = variable(p, "A");
         body(p).insert(body(p).begin(), Load{v});
         edit_loop(p, [&](TileLoop& l) { l.body = {Compute{v, std::nullopt, {}, get<Compute>(l.body).body, nullptr}}; });
     },
     "A was defined over another tile of b than the one it is computed for"},
    // reads
    {"RankOfRead", maps, [](P& p) { get<Compute>(body(p)).body = read(variable(p, "w"), {}); },
     "w is read with 0 indices, it has 1 dimensions"},
    {"ReadLeavesTile", convolution,
     [](P& p) { get<Compute>(body(p)).body = read(variable(p, "X"), {Affine::axis(0) + Affine::axis(1) * 2}); },
     "Y reads dimension 0 of X at i + 2*w, up to 2 outside of its tile"},
    {"ReadBelowTile", convolution,
     [](P& p) { get<Compute>(body(p)).body = read(variable(p, "X"), {Affine::axis(0) - Affine::axis(1)}); },
     "Y reads dimension 0 of X at i - w, up to 2 outside of its tile"},
    {"ReadOfOtherGroup", maps,
     [](P& p) { get<Compute>(body(p), 1).body = read(variable(p, "B"), {Affine{{}, 0}, Affine::axis(1)}); },
     "T reads dimension 0 of B at 0, up to 6 outside of its tile"},
    {"UnboundAxis", small_matmul, [](P& p) { edit_loop(p, [](TileLoop& l) { get<Compute>(l.body).reduce_axes = {}; }); },
     "the body of C mentions b, which is no axis of its target and not reduced there"},
    {"UnboundAxisInCarry", small_matmul,
     [](P& p) { edit_loop(p, [](TileLoop& l) { get<Compute>(l.body).carry = axis_index(1); }); },
     "the carry of C mentions b, which is no axis of its target and not reduced there"},
    {"NoSuchAxisInBody", maps, [](P& p) { get<Compute>(body(p)).body = axis_index(17); },
     "the body of B mentions axis 17, which does not exist"},
    {"NoBody", maps, [](P& p) { get<Compute>(body(p)).body = nullptr; }, "B is computed from nothing"},
    // reductions
    {"ReducesGroupedAxis", convolution, [](P& p) { group(p, 1, 2); }, "Y reduces over the grouped axis w"},
    {"ReducesTwice", convolution, [](P& p) { get<Compute>(body(p)).reduce_axes = {1, 1}; }, "Y reduces over w twice"},
    {"ReducesOwnAxis", convolution, [](P& p) { get<Compute>(body(p)).reduce_axes = {0, 1}; },
     "Y reduces over its own axis i"},
    {"ReducesNoSuchAxis", convolution, [](P& p) { get<Compute>(body(p)).reduce_axes = {1, 5}; },
     "Y reduces over axis 5, which does not exist"},
    {"ReducesNothing", convolution, [](P& p) { get<Compute>(body(p)).reduce_axes = {}; }, "Y reduces over no axis"},
    {"AxesWithoutReduction", convolution, [](P& p) { get<Compute>(body(p)).reduce = std::nullopt; },
     "Y names axes to reduce over, but no reduction"},
    {"CarryWithoutReduction", maps, [](P& p) { get<Compute>(body(p)).carry = constant(0); },
     "B has a carry, but no reduction to join it with"},
    {"StateNotCarried", small_matmul,
     [](P& p) { edit_loop(p, [](TileLoop& l) { get<Compute>(l.body).carry = nullptr; }); },
     "state C is reduced over the streamed axis b without a carry"},
    // memory
    {"LoadedBeforeStored", two_kernels, [](P& p) { p.kernels.erase(p.kernels.begin()); },
     "T is loaded, but T is no input and no earlier kernel stores it"},
    {"StoredButLoaded", maps, [](P& p) { body(p).insert(body(p).begin() + 1, Store{variable(p, "A")}); },
     "A is stored, but was loaded, not computed"},
    {"StoredOverInput", maps, [](P& p) { get<Store>(body(p)).variable = variable(p, "A"); },
     "A is stored over an input"},
    {"StoredBeforeComputed", maps, [](P& p) { body(p).insert(body(p).begin(), take<Store>(body(p))); },
     "B is stored before it is defined"},
    {"StoredAfterFree", maps, [](P& p) { body(p).push_back(take<Store>(body(p))); }, "B is stored after it was freed"},
    {"NeverStored", maps, [](P& p) { take<Store>(body(p)); }, "output B is never stored"},
    {"StoredTwice", maps,
     [](P& p) {
         body(p).insert(body(p).begin() + static_cast<std::ptrdiff_t>(find<Store>(body(p))), get<Store>(body(p)));
     },
     "B is stored twice"},
    {"StoredByTwoKernels", maps, [](P& p) { p.kernels.push_back(p.kernels[0]), p.sizes.push_back(p.sizes[0]); },
     "B is stored twice"},
    {"StoredInEveryIteration", small_matmul,
     [](P& p) {
         const TileStatement store = take<Store>(body(p));
         edit_loop(p, [&](TileLoop& l) { l.body.push_back(store); });
     },
     "C is stored again in every iteration of the loop over b"},
    {"StoredAtTheSamePoints", small_matmul,
     [](P& p) {
         const TileStatement store = take<Store>(body(p));
         edit_loop(p, [&](TileLoop& l) { l.body.push_back(store); });
     },
     "C is stored at the same points in every iteration of the loop over b"},
    {"StoredByGroupsOfAnotherAxis", convolution, [](P& p) { group(p, 2, 3); },
     "Y is stored at the same points by every group of n"},
    {"StoredWhereChunksAreSkipped", two_loops,
     [](P& p) {
         auto& second = get<std::shared_ptr<const TileLoop>>(body(p), 1);
         TileLoop copy = *second;
         copy.support = {Affine::axis(1)};
         second = std::make_shared<const TileLoop>(copy);
     },
     "P is stored in the loop over x, which skips chunks"},
};

INSTANTIATE_TEST_SUITE_P(Rules, TileVerifier, ::testing::ValuesIn(rules),
                         [](const auto& rule) { return std::string(rule.param.name); });

TEST(TileVerifierAccepts, EveryExample) {
    for (const Example& e :
         {matmul(), weighted_mean(), weighted_mean(true), maps(), convolution(), two_loops(), two_kernels()})
        for (const std::int64_t g : {1, 2, 5, 100})
            EXPECT_THAT(verify(program_for(e, {{"a", g}, {"q", g}, {"i", g}, {"d", g}}, {{"b", g}, {"x", g}})), IsEmpty());
}

/// What the loop computes, in a loop over parts of its chunk.
SizedProgram in_parts(std::int64_t size) {
    SizedProgram program = program_for(matmul(), {{"a", 3}, {"c", 2}}, {{"b", 4}});
    AxisId axis = -1;
    edit_loop(program, [&](TileLoop& loop) {
        const auto place = static_cast<std::ptrdiff_t>(find<Compute>(loop.body));
        TileStatement compute = take<Compute>(loop.body);
        loop.body.insert(loop.body.begin() + place,
                         std::make_shared<const TileLoop>(TileLoop{loop.axis, {}, {std::move(compute)}, true}));
        axis = loop.axis;
    });
    program.sizes[0].sub.at(axis) = size;
    return program;
}

TEST(TileVerifierAccepts, PartsOfAChunk) {
    for (const std::int64_t size : {1, 2, 3, 4, 7}) EXPECT_THAT(verify(in_parts(size)), IsEmpty()) << size;
}

/// A part lies in its own chunk, though another chunk has what is read.
TEST(TileVerifier, APartReadsNothingOfAnotherChunk) {
    SizedProgram program = in_parts(2);
    edit_loop(program, [&](TileLoop& loop) {
        auto& inner = get<std::shared_ptr<const TileLoop>>(loop.body);
        TileLoop part = *inner;
        Compute& compute = get<Compute>(part.body);
        compute.body = transform(compute.body, [&](const Expr& e) -> Expr {
            const auto* r = as<Read>(e);
            return r && r->variable() == variable(program, "A") ? read(r->array, {r->indices[0], Index(Affine{{}, 0})}) : e;
        });
        inner = std::make_shared<const TileLoop>(std::move(part));
    });
    EXPECT_THAT(verify(program), Contains(HasSubstr("C reads dimension 1 of A at 0, up to 8 outside of its tile")));
}

TEST(TileVerifier, APartHasNoChunks) {
    SizedProgram program = in_parts(2);
    edit_loop(program, [&](TileLoop& loop) {
        loop.is_sub = true;
        auto& inner = get<std::shared_ptr<const TileLoop>>(loop.body);
        TileLoop part = *inner;
        part.is_sub = false;
        inner = std::make_shared<const TileLoop>(std::move(part));
    });
    EXPECT_THAT(verify(program), Contains(HasSubstr("the loop over b stands inside a loop over b")));
}

}  // namespace
}  // namespace napkin::tile_examples::test_tile_verify
