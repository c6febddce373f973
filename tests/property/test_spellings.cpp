// One algorithm, spelt in many ways: spellings/*.nk hold diagrams that mean the same over the reals. They give as many
// kernels, move as many values and compute the same; where a law makes one spelling out of another, they keep the same
// states too. Where none does, the test names the spelling and says why, and fails when the reason is gone.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <iterator>
#include <limits>
#include <map>
#include <random>
#include <set>

#include "derive/derive.hpp"
#include "support/least_form.hpp"
#include "support/paths.hpp"
#include "syntax/parse.hpp"
#include "tile/exact.hpp"

namespace napkin {
namespace {
/// Spellings that keep other states than the first of their file, and the reason.
using Others = std::map<std::string, std::string>;

std::shared_ptr<const Source> spellings(const std::string& file) {
    const std::string path = in_sources("tests/property/spellings/" + file + ".nk");
    std::ifstream in(path, std::ios::binary);
    return std::make_shared<const Source>(
        Source{path, {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()}});
}

/// One spelling, derived at small ragged sizes.
struct Spelling {
    Diagram diagram;
    Derived derived;
    Extents extents;
    PartitionSizes sizes;
};

/// Small tiles and chunks of everything that one kernel has of them.
PartitionSizes partition(const Kernel& kernel, std::size_t axes) {
    PartitionSizes sizes{std::vector<std::int64_t>(axes, 0), std::vector<std::int64_t>(axes, 0)};
    for (const AxisId axis : kernel.group_axes) sizes.group[static_cast<std::size_t>(axis)] = 4;
    for (const Stage& stage : kernel.stages)
        if (const auto* loop = std::get_if<Loop>(&stage)) sizes.stream[static_cast<std::size_t>(loop->axis)] = 8;
    return sizes;
}

std::int64_t transfers(const Derived& derived, Extents extents) {
    extents.resize(derived.diagram.axes.size());
    std::int64_t values = 0;
    for (const Kernel& kernel : derived.kernels) {
        const PartitionSizes sizes = partition(kernel, extents.size());
        values += exact_costs(derived, kernel, extents, {sizes.group, sizes.stream}).transfers();
    }
    return values;
}

/// True when every kernel that reduces does so in a stream.
bool streams(const Derived& derived) {
    return std::all_of(derived.kernels.begin(), derived.kernels.end(), [](const Kernel& kernel) {
        const bool loops = std::any_of(kernel.stages.begin(), kernel.stages.end(),
                                       [](const Stage& stage) { return std::holds_alternative<Loop>(stage); });
        return loops || std::all_of(kernel.stages.begin(), kernel.stages.end(), [](const Stage& stage) {
                   const auto& statements = std::get<Block>(stage).statements;
                   return std::none_of(statements.begin(), statements.end(),
                                       [](const Statement& s) { return s.reduce.has_value(); });
               });
    });
}

/// The derivation with the streamed alternatives that move the fewest values.
Spelling derived(const std::shared_ptr<const Source>& source, const std::string& name) {
    auto diagram = parse_diagram(source, {name, {}});
    EXPECT_TRUE(diagram.ok()) << render(diagram.errors());
    auto made = derive(*diagram);
    EXPECT_TRUE(made.ok()) << render(made.errors());
    std::map<std::string, std::int64_t> sizes;
    const std::map<std::string, std::int64_t> known{{"q", 13}, {"x", 37}, {"k", 7},  {"d", 5},  {"r", 11},
                                                    {"c", 29}, {"a", 12}, {"t", 40}, {"n", 22}, {"h", 9},
                                                    {"i", 14}, {"j", 31}, {"m", 11}};
    for (const Axis& axis : diagram->axes)
        if (const auto size = known.find(axis.name); size != known.end() && !axis.size) sizes[axis.name] = size->second;
    const auto extents = bind_sizes(*diagram, sizes);
    EXPECT_TRUE(extents.ok()) << name << render(extents.errors());
    const auto cost = [&](const Derived& d) {
        return streams(d) ? static_cast<double>(transfers(d, *extents)) : std::numeric_limits<double>::infinity();
    };
    Spelling s{*diagram, least_form(*made, cost), *extents, {}};
    s.extents.resize(s.derived.diagram.axes.size());
    s.sizes = partition(s.derived.kernels.front(), s.extents.size());
    return s;
}

/// Whether what is reduced into the state depends on values that run with the stream.
bool follows(const Derived& derived, const Loop& loop, ArrayId state) {
    std::set<ArrayId> running;
    for (const Statement& s : loop.body) {
        const auto& axes = derived.diagram.array(s.target).axes;
        if (!contains(axes, loop.axis)) running.insert(s.target);
        const auto reads = read_arrays(s.body);
        if (std::any_of(reads.begin(), reads.end(), [&](ArrayId r) { return running.contains(r); }))
            running.insert(s.target);
        if (s.target == state && s.carry)
            return std::any_of(reads.begin(), reads.end(), [&](ArrayId r) { return running.contains(r); });
    }
    return false;
}

/// What the streams carry: operation and number of axes of every state, and whether it is taken about a running value;
/// whatever the names are.
std::multiset<std::string> states(const Spelling& s) {
    std::multiset<std::string> all;
    for (const Kernel& kernel : s.derived.kernels) {
        for (const Stage& stage : kernel.stages) {
            const auto* loop = std::get_if<Loop>(&stage);
            if (!loop) continue;
            for (const auto& [state, init] : loop->init)
                all.insert(std::to_string(init) + " of " + std::to_string(s.derived.diagram.array(state).axes.size()) +
                           " axes" + (follows(s.derived, *loop, state) ? " about a running value" : ""));
        }
    }
    return all;
}

/// Values of the inputs that every spelling of the family shares: by name and place. Weights and the like are positive.
Values inputs_of(const Spelling& s) {
    Values values(s.derived.diagram.arrays.size());
    for (const ArrayId id : s.diagram.inputs) {
        const Array& array = s.diagram.array(id);
        std::mt19937_64 random(static_cast<unsigned char>(array.name[0]));
        std::int64_t count = 1;
        for (const AxisId axis : array.axes) count *= s.extents[axis];
        std::vector<double> cells;
        for (std::int64_t i = 0; i < count; ++i) {
            const double uniform = static_cast<double>(random() >> 11) * 0x1p-53;
            cells.push_back(array.type == DType::i32 ? std::floor(29 * uniform)
                            : array.name == "W"      ? 0.01 + uniform
                                                     : 3 * uniform - 1.5);
        }
        values[id] = Column(std::move(cells)).in(array.type);
    }
    return values;
}

std::vector<double> definition(const Spelling& s) {
    Values values = inputs_of(s);
    values.resize(s.diagram.arrays.size());
    evaluate(s.diagram, s.extents, values);
    return values[s.diagram.outputs[0]].to_doubles();
}

std::vector<double> streamed(const Spelling& s) {
    Values values = inputs_of(s);
    evaluate(s.derived, s.extents, s.sizes, values);
    return values[s.diagram.outputs[0]].to_doubles();
}

void expect_near(const std::vector<double>& values, const std::vector<double>& expected, const std::string& what) {
    ASSERT_EQ(values.size(), expected.size()) << what;
    for (std::size_t i = 0; i < values.size(); ++i)
        ASSERT_NEAR(values[i], expected[i], 1e-9 * std::max(1.0, std::abs(expected[i]))) << what << " at " << i;
}

/// All spellings of a file beside its first, of which those in `other_states` keep other states.
void check(const std::string& file, std::size_t least, const Others& other_states) {
    const auto source = spellings(file);
    const auto names = list_diagrams(source);
    ASSERT_TRUE(names.ok()) << render(names.errors());
    ASSERT_GE(names->size(), least);
    const Spelling first = derived(source, names->front());
    ASSERT_EQ(first.derived.kernels.size(), 1U);
    for (const std::string& name : *names) {
        SCOPED_TRACE(file + " " + name);
        const Spelling s = derived(source, name);
        EXPECT_EQ(s.derived.kernels.size(), 1U);
        EXPECT_EQ(transfers(s.derived, s.extents), transfers(first.derived, first.extents));
        const auto other = other_states.find(name);
        if (other == other_states.end()) {
            EXPECT_EQ(states(s), states(first));
        } else {
            EXPECT_NE(states(s), states(first)) << "no longer so: " << other->second;
        }
        expect_near(definition(s), definition(first), "the definition");
        expect_near(streamed(s), definition(first), "the derived form");
    }
}

TEST(Spellings, of_attention_are_one) {
    check("attention", 18, {{"negated", "a soft minimum keeps the least score, where the others keep the greatest"}});
}
TEST(Spellings, of_layernorm_are_one) {
    check("layernorm", 6,
          {{"by_moments", "its author's raw moments are two sums"},
           {"expanded_square", "so are those of the square multiplied out"}});
}
TEST(Spellings, of_entropy_are_one) { check("entropy", 6, {}); }
TEST(Spellings, of_cross_entropy_are_one) {
    const std::string picked =
        "the difference from the maximum is picked, so that the picks are counted to move with it";
    check("cross_entropy", 6,
          {{"logarithm_of_the_picked", "the weight is picked, which moves with the maximum"},
           {"picked_log_softmax", picked},
           {"by_hand", picked},
           {"difference_inside", picked}});
}
TEST(Spellings, of_weighted_variance_are_one) {
    check("weighted_variance", 6,
          {{"by_moments", "its author's raw moments are two sums"},
           {"once_centred", "the square is of two different factors, of which one alone is centred"},
           {"expanded_square", "the moments are raw, and only their sum is centred"}});
}

TEST(Spellings, over_one_input_are_one_kernel) {
    const auto source = spellings("one_kernel");
    const auto names = list_diagrams(source);
    ASSERT_TRUE(names.ok()) << render(names.errors());
    for (const std::string& name : *names) EXPECT_EQ(derived(source, name).derived.kernels.size(), 1U) << name;
}

}  // namespace
}  // namespace napkin
