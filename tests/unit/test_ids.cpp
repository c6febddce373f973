#include <gtest/gtest.h>

#include <stdexcept>
#include <type_traits>
#include <vector>

#include "support/ids.hpp"

namespace napkin {
namespace {

template <class A, class B>
concept Comparable = requires(A a, B b) { a == b; };
template <class List, class Index>
concept IndexedBy = requires(const List& list, Index i) { list[i]; };

// What the compiler must refuse: an id of one kind where another one is meant, and a computed number that does not say
// which it is.
static_assert(!std::is_convertible_v<AxisId, ArrayId> && !std::is_assignable_v<ArrayId&, AxisId>);
static_assert(!std::is_convertible_v<ArrayId, VariableId> && !std::is_assignable_v<VariableId&, ArrayId>);
static_assert(Comparable<AxisId, AxisId> && !Comparable<AxisId, ArrayId> && !Comparable<ArrayId, VariableId>);
static_assert(IndexedBy<ByAxis<int>, AxisId> && !IndexedBy<ByAxis<int>, ArrayId> && !IndexedBy<ByArray<int>, VariableId>);

TEST(Ids, AreOfNothingUntilGiven) {
    EXPECT_LT(AxisId(), 0);
    EXPECT_EQ(AxisId(), AxisId(-1));
}

TEST(Ids, ComeFromComputedNumbersByNameAlone) {
    const std::vector<int> three(3);
    const auto id = ArrayId::of(three.size());
    EXPECT_EQ(id, 3);
    EXPECT_EQ(id.place(), 3);
    EXPECT_LT(ArrayId(2), id);
}

TEST(Ids, AreThePlacesOfWhatTheyIndex) {
    ByVariable<int> values{4, 5, 6};
    std::vector<VariableId> seen;
    for (const VariableId id : values.ids()) {
        EXPECT_EQ(values[id], 4 + id);
        seen.push_back(id);
    }
    EXPECT_EQ(seen, (std::vector<VariableId>{0, 1, 2}));
    EXPECT_EQ(values.next(), VariableId(3));
    EXPECT_THROW(static_cast<void>(values.at(values.next())), std::out_of_range);
}

}  // namespace
}  // namespace napkin
