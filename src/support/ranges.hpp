#pragma once
// The standard library's algorithms for whole containers, in place of std::ranges, which the library for browsers does not have; with
// <algorithm> and <numeric>.
#include <algorithm>
#include <iterator>
#include <numeric>

namespace napkin {

constexpr bool any_of(auto&& range, auto test) { return std::any_of(std::begin(range), std::end(range), test); }
constexpr bool all_of(auto&& range, auto test) { return std::all_of(std::begin(range), std::end(range), test); }
constexpr bool none_of(auto&& range, auto test) { return std::none_of(std::begin(range), std::end(range), test); }
constexpr auto count_if(const auto& range, auto test) {
    return std::count_if(std::begin(range), std::end(range), test);
}
constexpr auto find_if(auto& range, auto test) { return std::find_if(std::begin(range), std::end(range), test); }
constexpr auto find(auto& range, const auto& value) { return std::find(std::begin(range), std::end(range), value); }
constexpr bool contains(const auto& range, const auto& value) { return find(range, value) != std::end(range); }

constexpr auto max_element(auto& range) { return std::max_element(std::begin(range), std::end(range)); }
constexpr auto max_element(auto& range, auto less) {
    return std::max_element(std::begin(range), std::end(range), less);
}
constexpr auto min_element(auto& range) { return std::min_element(std::begin(range), std::end(range)); }
constexpr auto min_element(auto& range, auto less) {
    return std::min_element(std::begin(range), std::end(range), less);
}

constexpr bool is_sorted(const auto& range) { return std::is_sorted(std::begin(range), std::end(range)); }
constexpr void sort(auto& range) { std::sort(std::begin(range), std::end(range)); }
constexpr void sort(auto& range, auto less) { std::sort(std::begin(range), std::end(range), less); }
void stable_sort(auto& range, auto less) { std::stable_sort(std::begin(range), std::end(range), less); }
constexpr void reverse(auto& range) { std::reverse(std::begin(range), std::end(range)); }
constexpr void iota(auto& range, auto first) { std::iota(std::begin(range), std::end(range), first); }

/// Puts the elements of a container behind those of another one.
void append(auto& to, const auto& range) { to.insert(std::end(to), std::begin(range), std::end(range)); }

/// Sorts, and leaves each value once.
void sort_unique(auto& values) {
    sort(values);
    values.erase(std::unique(std::begin(values), std::end(values)), std::end(values));
}

}  // namespace napkin
