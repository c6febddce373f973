#pragma once
// The standard library's algorithms for whole containers, in place of std::ranges, which the library for browsers does
// not have; with <algorithm> and <numeric>.
#include <algorithm>
#include <functional>
#include <iterator>
#include <numeric>
#include <vector>

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

/// The elements of a, and behind them those of b that are not among them.
template <class T>
std::vector<T> united(std::vector<T> a, const std::vector<T>& b) {
    for (const T& element : b)
        if (!contains(a, element)) a.push_back(element);
    return a;
}

/// Sorts, and leaves each value once.
void sort_unique(auto& values) {
    sort(values);
    values.erase(std::unique(std::begin(values), std::end(values)), std::end(values));
}

/// What a map has for a key, or else what is given.
template <class Map>
typename Map::mapped_type value_or(const Map& map, const typename Map::key_type& key, typename Map::mapped_type otherwise) {
    const auto found = map.find(key);
    return found == map.end() ? otherwise : found->second;
}

/// f of each element, in order.
template <class T>
std::vector<T> mapped(auto&& range, auto f) {
    std::vector<T> out;
    for (auto&& element : range) out.push_back(std::invoke(f, element));
    return out;
}

/// The sum of f of each element, added in order.
template <class T>
constexpr T sum(const auto& range, auto f) {
    T total = 0;
    for (const auto& element : range) total += std::invoke(f, element);
    return total;
}

/// The product of f of each element, multiplied in order.
template <class T>
constexpr T product(const auto& range, auto f) {
    T total = 1;
    for (const auto& element : range) total *= std::invoke(f, element);
    return total;
}

}  // namespace napkin
