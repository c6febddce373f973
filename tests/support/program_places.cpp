// Integers, and places in a dimension: sums, quotients and remainders of axes, guarded or looked up.
#include <fmt/format.h>

#include <algorithm>

#include "support/program_grammar.hpp"

namespace napkin {

namespace {
constexpr double largest_whole = 2147483647;
}  // namespace

// ---- integers
// ------------------------------------------------------------

std::span<const Grammar::TermRow> Grammar::wholes() {
    using K = Features;
    static constexpr TermRow rows[] = {
        {"leaf", 3, K::none, &Grammar::a_whole_leaf},
        {"sum", 2, K::none, &Grammar::a_whole_sum},
        {"product", 1, K::none, &Grammar::a_whole_product},
        {"quotient or remainder", 2, K::arithmetic, &Grammar::a_whole_quotient},
        {"choice", 1, K::none, &Grammar::a_whole_choice},
        {"extremum", 1, K::none, &Grammar::a_whole_extremum},
        {"power", 1, K::arithmetic, &Grammar::a_whole_power},
        {"read elsewhere", 1, K::places, &Grammar::a_whole_read},
        {"of a real number", 2, K::casts, &Grammar::a_whole_cast},
        {"inner reduction", 1, K::inner, &Grammar::a_whole_reduction},
        {"place of an extremum", 1, K::inner, &Grammar::a_place_of_extremum},
    };
    return rows;
}

Phrase Grammar::whole(const Axes& axes, int depth) {
    if (depth <= 0) return a_whole_leaf(axes, 0);
    return (this->*chosen(wholes()).make)(axes, depth);
}

Phrase Grammar::a_whole_leaf(const Axes& axes, int) {
    const int known = w_.known_axis();
    switch (w_.pick(6)) {
        case 0: return whole_number(w_.one_of<std::int64_t>({0, 1, 2, 3, -1, -2, 5, 7, -7, 100}));
        case 1:
            if (known >= 0) return size(known);
            [[fallthrough]];
        case 2:
            if (!axes.empty()) return coordinate(any(axes));
            [[fallthrough]];
        default: return axes.empty() ? w_.input({}, "i32") : ids(axes);
    }
}

Phrase Grammar::a_whole_sum(const Axes& axes, int depth) {
    const Phrase a = whole_part(axes, depth), b = whole_part(axes, depth);
    return w_.chance(60) ? a + b : a - b;
}

Phrase Grammar::a_whole_product(const Axes& axes, int depth) {
    const Phrase b = w_.chance(30) ? whole_number(w_.one_of<std::int64_t>({3, -2, 1000003, 2147483647}))
                                   : whole_part(axes, depth);
    Phrase result = whole_part(axes, depth) * b;
    result.bound = std::min(result.bound, largest_whole);
    return result;
}

/// By a constant, a size, an array or a coordinate, which may be 0.
Phrase Grammar::a_whole_quotient(const Axes& axes, int depth) {
    const Phrase a = whole_part(axes, depth);
    Phrase b = whole_number(w_.one_of<std::int64_t>({2, 3, 7, -2, -3, 1, -1, 16}));
    switch (w_.pick(4)) {
        case 0: b = axes.empty() ? b : coordinate(any(axes)); break;
        case 1: b = whole_part(axes, depth); break;
        default: break;
    }
    return composed_whole(w_.chance(50) ? "({0} // {1})" : "({0} % {1})", {a, b}, std::max(a.bound, b.bound));
}

Phrase Grammar::a_whole_choice(const Axes& axes, int depth) {
    if (axes.empty()) return whole_part(axes, depth);
    return choose(mask(axes), whole_part(axes, depth), whole_part(axes, depth));
}

Phrase Grammar::a_whole_extremum(const Axes& axes, int depth) {
    const Phrase a = whole_part(axes, depth), b = whole_part(axes, depth);
    if (w_.chance(30)) return composed_whole("abs({0})", {a}, a.bound);
    return composed_whole(w_.chance(50) ? "max(({0}), {1})" : "min(({0}), {1})", {a, b}, std::max(a.bound, b.bound));
}

Phrase Grammar::a_whole_power(const Axes& axes, int depth) {
    const Phrase a = whole_part(axes, depth);
    return composed_whole(w_.chance(70) ? "(({0})^2)" : "(({0})^3)", {a},
                          std::min(a.bound * a.bound * a.bound, largest_whole));
}

Phrase Grammar::a_whole_read(const Axes& axes, int) {
    const Reading r = elsewhere(some_array(true, axes), axes);
    return behind(r.guard, r.value, whole_number(w_.pick(3) - 1));
}

/// Values that no rounding has touched, so that every order of evaluation truncates the same number.
Phrase Grammar::a_whole_cast(const Axes& axes, int depth) {
    const Phrase value = w_.array(axes);
    if (!value.exact || value.whole) return whole_part(axes, depth);
    const std::string type = w_.one_of(whole_types_);
    return composed_whole(type + (w_.chance(50) ? "({0})" : "({0} * 4)"), {value}, value.bound * 4);
}

Phrase Grammar::a_whole_reduction(const Axes& axes, int depth) {
    const Axes stream = w_.some_axes(1, axes);
    if (stream.empty()) return whole_part(axes, depth);
    const std::string op = w_.one_of<std::string>({"sum", "sum", "max", "min", "prod"});
    Phrase body = whole(axes | stream, depth - 1);
    if (!body.axes.contains(*stream.begin())) body = body + coordinate(*stream.begin());
    Phrase result = composed_whole("(" + op + w_.list(stream) + " {0})", {body},
                                   op == "prod" ? largest_whole : std::min(body.bound * 9, largest_whole));
    result.axes = result.axes - stream;
    return result;
}

Phrase Grammar::a_place_of_extremum(const Axes& axes, int depth) {
    const Axes stream = w_.some_axes(1, axes);
    if (stream.empty()) return whole_part(axes, depth);
    const Phrase value = w_.array(axes | stream, stream);
    if (!value.exact) return whole_part(axes, depth);
    Phrase result = composed_whole((w_.chance(60) ? "(argmax" : "(argmin") + w_.list(stream) + " {0})", {value}, 9);
    result.axes = result.axes - stream;
    return result;
}

Phrase Grammar::compared_at_the_edge(const Axes& axes) {
    const bool is_double = w_.chance(30);
    const std::int64_t edge = is_double ? std::int64_t{1} << 53 : std::int64_t{1} << 24, off = w_.pick(4) - 1;
    Phrase value = a_whole_leaf(axes, 0);
    if (is_double) value = composed_whole("i64({0})", {value}, value.bound);
    if (w_.chance(50)) return compare(relation(), value + whole_number(edge - off), whole_number(edge));
    return compare(relation(), value - whole_number(edge - off), whole_number(-edge));
}

// ---- places
// ------------------------------------------------------------

std::span<const Grammar::PlaceRow> Grammar::places() {
    using K = Features;
    static constexpr PlaceRow rows[] = {
        {"coordinate", 6, K::none, &Grammar::at_a_coordinate},
        {"remainder", 3, K::none, &Grammar::at_a_remainder},
        {"clamped", 2, K::none, &Grammar::clamped},
        {"reversed", 2, K::none, &Grammar::reversed},
        {"block", 3, K::none, &Grammar::at_a_block},
        {"end", 1, K::none, &Grammar::at_an_end},
        {"guarded shift", 5, K::guards, &Grammar::guarded_shift},
        {"guarded sum", 2, K::guards, &Grammar::guarded_sum},
        {"looked up", 2, K::gathers, &Grammar::looked_up},
        {"looked up as it is", 4, K::gathers, &Grammar::looked_up_as_it_is},
        {"guarded lookup", 2, K::gathers | K::guards, &Grammar::guarded_lookup},
    };
    return rows;
}

Axes Grammar::over_dimension(const Axes& axes, int dimension) const {
    Axes found;
    for (const int axis : axes)
        if (axis == dimension || w_.twin(axis) == dimension) found.insert(axis);
    return found;
}

Phrase Grammar::affine(const Axes& axes) {
    Phrase sum = whole_number(0);
    sum.text.clear();
    const int terms = axes.empty() ? 0 : 1 + w_.pick(2);
    for (int i = 0; i < terms; ++i) {
        const int axis = any(axes), factor = w_.one_of<int>({1, 1, 1, 2, 3, -1});
        if (sum.axes.contains(axis)) continue;
        const std::string name = factor == 1 || factor == -1 ? w_.axis(axis) : fmt::format("{}*{}", factor, w_.axis(axis));
        sum.text += sum.text.empty() ? (factor < 0 ? "-" : "") + name : (factor < 0 ? " - " : " + ") + name;
        sum.axes.insert(axis);
    }
    const int offset = w_.pick(5) - 2;
    if (sum.text.empty())
        sum.text = fmt::format("{}", offset);
    else if (offset != 0)
        sum.text += fmt::format(" {} {}", offset < 0 ? "-" : "+", std::abs(offset));
    return sum;
}

Grammar::Place Grammar::at_a_coordinate(const Axes& axes, int dimension) {
    const Axes own = over_dimension(axes, dimension);
    return own.empty() ? at_a_remainder(axes, dimension) : Place{coordinate(any(own))};
}

Grammar::Place Grammar::at_a_remainder(const Axes& axes, int dimension) {
    return {composed_whole("({0}) % {1}", {affine(axes), size(dimension)}, 9)};
}

Grammar::Place Grammar::clamped(const Axes& axes, int dimension) {
    return {composed_whole(w_.chance(70) ? "min(max({0}, 0), {1} - 1)" : "min(max(({0}) // 2, 0), {1} - 1)",
                           {affine(axes), size(dimension)}, 9)};
}

Grammar::Place Grammar::reversed(const Axes& axes, int dimension) {
    const Axes own = over_dimension(axes, dimension);
    if (own.empty()) return at_a_remainder(axes, dimension);
    return {composed_whole("{0} - 1 - {1}", {size(dimension), coordinate(any(own))}, 9)};
}

Grammar::Place Grammar::at_a_block(const Axes& axes, int dimension) {
    const Axes own = over_dimension(axes, dimension);
    if (own.empty()) return at_a_remainder(axes, dimension);
    return {composed_whole("{0} // {1}", {coordinate(any(own)), whole_number(2 + w_.pick(3))}, 9)};
}

Grammar::Place Grammar::at_an_end(const Axes&, int dimension) {
    return {w_.chance(50) ? whole_number(0) : composed_whole("{0} - 1", {size(dimension)}, 9)};
}

Phrase Grammar::both(const Phrase& a, const Phrase& b) {
    if (a.text.empty()) return b;
    if (b.text.empty()) return a;
    return composed("({0} and {1})", {a, b}, 1);
}

Grammar::Place Grammar::shifted_by(int axis, int dimension, const Axes& others) {
    const Phrase n = coordinate(axis), end = size(dimension);
    Phrase by = whole_number(1 + w_.pick(2));
    if (!others.empty() && w_.chance(60)) by = coordinate(any(others));
    const std::string guards[] = {"({0} - {1} >= 0)", "({0} + {1} < {2})",
                                  "({0} + {1} - 1 >= 0 and {0} + {1} - 1 < {2})", "({0} >= {1})"};
    const std::string at[] = {"{0} - {1}", "{0} + {1}", "{0} + {1} - 1", "{0} - {1}"};
    const int form = w_.one_of<int>({0, 0, 1, 2, 3});
    return {composed_whole(at[form], {n, by, end}, 18), composed(guards[form], {n, by, end}, 1)};
}

Grammar::Place Grammar::guarded_shift(const Axes& axes, int dimension) {
    const Axes own = over_dimension(axes, dimension);
    if (own.empty()) return guarded_sum(axes, dimension);
    const int axis = any(own);
    return shifted_by(axis, dimension, axes - Axes{axis});
}

Grammar::Place Grammar::guarded_sum(const Axes& axes, int dimension) {
    if (axes.empty()) return at_an_end(axes, dimension);
    const Phrase sum = affine(axes);
    return {sum, composed("({0} >= 0 and {0} < {1})", {sum, size(dimension)}, 1)};
}

Grammar::Place Grammar::looked_up(const Axes& axes, int dimension) {
    if (axes.empty()) return at_an_end(axes, dimension);
    Phrase value = ids(axes);
    if (w_.chance(40))
        if (const Reading r = elsewhere(some_array(true, axes), axes); r.guard.text.empty()) value = r.value;
    return {composed_whole(w_.chance(60) ? "{0} % {1}" : "({0} * 3 + 1) % {1}", {value, size(dimension)}, 9)};
}

/// The array that is looked up is an input whose numbers are drawn to lie in the dimension.
Grammar::Place Grammar::looked_up_as_it_is(const Axes& axes, int) {
    const Axes own = w_.some_axes(1);
    const Phrase table = w_.input(own, w_.chance(70) ? "i32" : "i64");
    std::vector<Phrase> at;
    for (const int axis : own) {
        const Place place = w_.chance(15) ? reversed(axes, axis) : (this->*chosen(places()).make)(axes, axis);
        at.push_back(place.guard.text.empty() ? place.index : at_a_coordinate(axes, axis).index);
    }
    return {w_.read_at(*table.arrays.begin(), at)};
}

Grammar::Place Grammar::guarded_lookup(const Axes& axes, int dimension) {
    if (axes.empty()) return at_an_end(axes, dimension);
    const Phrase place = composed_whole("{0} - 1", {ids(axes)}, 9);
    return {place, composed("({0} >= 0 and {0} < {1})", {place, size(dimension)}, 1)};
}

int Grammar::some_array(bool whole, const Axes& axes, int with) {
    std::vector<int> found;
    for (const int id : w_.arrays(whole)) {
        const std::vector<int>& own = w_.axes_of(id);
        if (!own.empty() && (with < 0 || std::find(own.begin(), own.end(), with) != own.end())) found.push_back(id);
    }
    if (found.empty() || w_.chance(15)) {
        Axes own = with < 0 ? Axes{} : Axes{with};
        if (!axes.empty() && w_.chance(60)) own.insert(any(axes));
        own = own | w_.some_axes(1 + w_.pick(2));
        while (own.size() > 3) own.erase(*own.begin() == with ? *own.rbegin() : *own.begin());
        return *w_.input(own, whole ? w_.one_of(whole_types_) : "").arrays.begin();
    }
    const int n = static_cast<int>(found.size());
    return found[static_cast<std::size_t>(w_.chance(60) ? std::max(w_.pick(n), w_.pick(n)) : w_.pick(n))];
}

Grammar::Reading Grammar::elsewhere(int array, const Axes& axes, int kept) {
    std::vector<Phrase> at;
    Phrase guard;
    for (const int dimension : w_.axes_of(array)) {
        const Place place = dimension == kept ? Place{coordinate(kept)} : (this->*chosen(places()).make)(axes, dimension);
        at.push_back(place.index);
        guard = both(guard, place.guard);
    }
    return {w_.read_at(array, at), guard};
}

}  // namespace napkin
