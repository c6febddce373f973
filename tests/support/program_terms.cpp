// Terms: real numbers and conditions over the axes that are bound.
#include <fmt/format.h>

#include <cmath>

#include "support/program_grammar.hpp"

namespace napkin {

std::span<const Grammar::TermRow> Grammar::terms() {
    using K = Features;
    static constexpr TermRow rows[] = {
        {"sum", 2, K::none, &Grammar::added},
        {"difference", 1, K::none, &Grammar::subtracted},
        {"product", 2, K::none, &Grammar::multiplied},
        {"quotient", 1, K::none, &Grammar::divided},
        {"larger or smaller", 1, K::none, &Grammar::larger_or_smaller},
        {"choice", 1, K::none, &Grammar::masked},
        {"array", 1, K::none, &Grammar::an_array},
        {"function", 3, K::none, &Grammar::a_function},
        {"integers", 2, K::arithmetic, &Grammar::a_whole},
        {"quotient of reals", 1, K::arithmetic, &Grammar::a_real_quotient},
        {"cast", 1, K::casts, &Grammar::a_cast},
        {"truth value", 1, K::casts, &Grammar::a_truth},
        {"inner reduction", 2, K::inner, &Grammar::an_inner_reduction},
        {"inner call", 1, K::inner, &Grammar::an_inner_call},
        {"argument", 1, K::scalars, &Grammar::an_argument},
        {"axis bound anew", 1, K::rebound, &Grammar::a_rebound},
        {"read elsewhere", 4, K::places, &Grammar::a_read_elsewhere},
        {"guarded reduction", 2, K::guards | K::places, &Grammar::a_guarded_reduction},
        {"guarded call", 2, K::guards | K::places, &Grammar::a_guarded_call},
    };
    return rows;
}

Phrase Grammar::compare(const std::string& op, const Phrase& a, const Phrase& b) {
    Phrase result = a - b;
    result.text = fmt::format("({} {} {})", a.text, op, b.text);
    result.exact = true;
    result.whole = false;
    result.bound = 1;
    return result;
}

Phrase Grammar::index_mask(const Axes& axes) {
    const int x = any(axes), q = any(axes);
    const Phrase a = coordinate(x), b = coordinate(q);
    switch (w_.pick(9)) {
        case 0:
        case 1: return q == x ? compare("<=", a, number(w_.pick(6))) : compare("<=", a, b);
        case 2: return compare("<", q == x ? a : b - a, number(1 + w_.pick(4)));
        case 3: return compare("==", a, number(w_.pick(7)));
        case 4: return compare("<", a, number(0));
        case 5: return compare(">=", a, number(0));
        case 6: return compare("==", a, size(x) - number(1));
        case 7: {
            Phrase both = compare("<=", a, b) + compare(">", a, b - number(3));
            both.text = fmt::format("({} <= {} and {} > {} - 3)", a.text, b.text, a.text, b.text);
            both.exact = true;
            return both;
        }
        default: return compare(relation(), a, q == x ? number(w_.pick(5)) : b);
    }
}

Phrase Grammar::mask(const Axes& axes) {
    if (wants(Features::integers) && w_.chance(15))
        return compare(w_.chance(60) ? "==" : relation(), ids(axes), ids(axes));
    if (wants(Features::arithmetic) && w_.chance(15))
        return w_.chance(40) ? compared_at_the_edge(axes) : compare(relation(), whole(axes, 2), whole(axes, 1));
    if (w_.chance(70)) return index_mask(axes);
    for (int i = 0; i < 4; ++i) {
        const Phrase value = w_.array(axes);
        if (value.exact) return compare(relation(), value, number(w_.pick(3) - 1));
    }
    return index_mask(axes);
}

Phrase Grammar::ids(const Axes& axes) {
    Axes own = {any(axes)};
    if (w_.chance(25)) own.insert(any(axes));
    for (const Phrase& known : ids_)
        if (known.axes == own && w_.chance(60)) return known;
    ids_.push_back(w_.input(own, wants(Features::arithmetic) && w_.chance(40) ? w_.one_of(whole_types_) : "i32"));
    return ids_.back();
}

Phrase Grammar::filler() {
    return number(w_.one_of<double>({-infinity, -infinity, -infinity, -1e9, -1e9, -1e30, 0, 0, -1e4, infinity}));
}

Phrase Grammar::constant() {
    if (wants(Features::extremes) && w_.chance(12)) return number(w_.one_of<double>({1e38, -1e9, 1e-30, -1e30, 1e20}));
    return number(w_.one_of<double>({0.5, 2, -1, 1, 0, 3, 0.125, -2, 1.5, 0.1}));
}

Phrase Grammar::leaf(const Axes& axes) {
    switch (w_.pick(10)) {
        case 0: return constant();
        case 1: return axes.empty() ? constant() : limited(coordinate(any(axes)), 4);
        case 2: {
            const int known = w_.known_axis();
            if (known < 0) return constant();
            return w_.chance(50) ? Phrase{"(size(" + w_.axis(known) + ")^-0.5)", {}, 1, false} : size(known);
        }
        default: return w_.array(axes);
    }
}

Phrase Grammar::above_zero(const Phrase& a) {
    switch (w_.pick(4)) {
        case 0: return call("exp", squashed(a), 3);
        case 1: return number(1) + call("abs", a, a.bound);
        case 2: return number(0.5) + a * a;
        default: return call("sigmoid", a, 1) + number(0.25);
    }
}

Phrase Grammar::unary(const Phrase& a) {
    const std::string activation = w_.one_of<std::string>({"relu", "gelu", "silu", "softplus", "sigmoid", "gelu_tanh",
                                                           "softsign", "square", "mish", "elu", "log_sigmoid"});
    const auto one_of = [&](const std::vector<std::string>& functions) { return w_.one_of<std::string>(functions); };
    switch (w_.pick(14)) {
        case 0:
            return call(one_of({"exp", "exp", "exp2", "expm1", "sinh", "cosh"}), limited(a, 8),
                        std::exp(std::min(a.bound, 8.0)));
        case 1: return squashed(a);
        case 2: return call("abs", a, a.bound);
        case 3: return w_.chance(50) ? call("sin", a, 1) : call("cos", a, 1);
        case 4: return {"(-" + a.text + ")", a.axes, a.bound, a.exact, a.arrays};
        case 5: return call("sqrt", above_zero(a), a.bound + 1);
        case 6: return call("rsqrt", above_zero(a), 2);
        case 7: return call(one_of({"log", "log2", "log1p"}), above_zero(a), 15);
        case 8: return call(one_of({"erf", "erfc", "atan", "asinh"}), a, 2);
        case 9: return powered(limited(a, 50), "^" + w_.one_of<std::string>({"2", "3", "2"}));
        case 10: return {"(2^" + limited(a, 8).text + ")", a.axes, 256, false, a.arrays};
        case 11: return call("f32", a, a.bound);
        case 12: return powered(above_zero(a), w_.one_of<std::string>({"^0.5", "^-1", "^-0.5", "^1.5"}));
        default:
            return call(activation, limited(a, 1e4), activation == "square" ? std::min(a.bound, 1e4) * a.bound : a.bound);
    }
}

Phrase Grammar::powered(const Phrase& a, const std::string& power) {
    return {"((" + a.text + ")" + power + ")", a.axes, a.bound * a.bound * a.bound, false, a.arrays};
}

Phrase Grammar::expression(const Axes& axes, int depth) {
    if (depth <= 0) return leaf(axes);
    return (this->*chosen(terms()).make)(axes, depth);
}

Phrase Grammar::over(const Axes& axes, const Axes& needed, int depth) {
    Phrase result = expression(axes, depth);
    for (const int axis : needed) {
        if (result.axes.contains(axis)) continue;
        const Phrase more = w_.array(axes, {axis});
        result = w_.chance(60) ? limited(result, 1e4) * more : result + more;
    }
    return result;
}

// ---- the rows
// ------------------------------------------------------------

Phrase Grammar::added(const Axes& axes, int depth) { return part(axes, depth) + part(axes, depth); }
Phrase Grammar::subtracted(const Axes& axes, int depth) { return part(axes, depth) - part(axes, depth); }
Phrase Grammar::multiplied(const Axes& axes, int depth) {
    return limited(part(axes, depth), 1e4) * limited(part(axes, depth), 1e4);
}
Phrase Grammar::divided(const Axes& axes, int depth) { return part(axes, depth) / above_zero(part(axes, depth)); }
Phrase Grammar::larger_or_smaller(const Axes& axes, int depth) {
    return call(w_.chance(50) ? "max" : "min", part(axes, depth), part(axes, depth), 1e4);
}
Phrase Grammar::masked(const Axes& axes, int depth) {
    if (axes.empty()) return part(axes, depth);
    return choose(mask(axes), part(axes, depth), w_.chance(50) ? filler_in_maps() : part(axes, depth));
}
Phrase Grammar::an_array(const Axes& axes, int) { return w_.array(axes); }
Phrase Grammar::a_function(const Axes& axes, int depth) { return unary(part(axes, depth)); }

Phrase Grammar::a_whole(const Axes& axes, int depth) {
    const Phrase value = whole(axes, depth - 1);
    if (w_.chance(30)) return call("f32", value, value.bound);
    return value + part(axes, depth);
}

/// By a constant, by what lies above 0, or by a coordinate, which may be 0.
Phrase Grammar::a_real_quotient(const Axes& axes, int depth) {
    const Phrase a = limited(w_.chance(60) ? w_.array(axes) : part(axes, depth), 100);
    Phrase b = number(w_.one_of<double>({0.5, 2, -1.5, 3, 0.75}));
    if (!axes.empty() && w_.chance(30)) b = coordinate(any(axes));
    if (w_.chance(20)) b = above_zero(w_.array(axes));
    return composed(w_.chance(50) ? "({0} // {1})" : "({0} % {1})", {a, b}, 400);
}

Phrase Grammar::a_cast(const Axes& axes, int depth) {
    const Phrase a = part(axes, depth);
    if (w_.chance(40)) {
        const Phrase exact = w_.array(axes);
        if (exact.exact && !exact.whole)
            return call("f32", call(w_.one_of(whole_types_), w_.chance(50) ? exact : exact * number(4), 24), 24);
    }
    return call(w_.one_of(real_types_), limited(a, 100), a.bound);
}
Phrase Grammar::a_truth(const Axes& axes, int depth) {
    if (axes.empty()) return part(axes, depth);
    return w_.chance(50) ? mask(axes) * limited(part(axes, depth), 1e4) : call("f32", mask(axes), 1);
}

Phrase Grammar::an_inner_reduction(const Axes& axes, int depth) {
    const Axes stream = w_.some_axes(1, axes);
    if (stream.empty()) return part(axes, depth);
    const std::string op = w_.one_of<std::string>({"sum", "sum", "max", "min", "mean", "logsumexp", "var", "absmax"});
    const Phrase body = limited(over(axes | stream, stream, depth - 1), 40);
    Phrase result = composed("(" + op + w_.list(stream) + " {0})", {body}, body.bound * (op == "sum" ? 9 : 1));
    result.axes = result.axes - stream;
    return result;
}
Phrase Grammar::an_inner_call(const Axes& axes, int depth) {
    if (axes.empty()) return part(axes, depth);
    const Axes along = {any(axes)};
    const std::string name = w_.one_of<std::string>({"softmax", "log_softmax", "standardize", "normalize"});
    return call("", composed(name + w_.list(along) + " {0}", {limited(over(axes, along, depth - 1), 40)}, 10), 10);
}

Phrase Grammar::an_argument(const Axes&, int) {
    return w_.chance(60) ? w_.input({}) : w_.constant_input(w_.one_of<std::string>({"0.5", "2", "0.125", "1.5"}));
}

Phrase Grammar::a_rebound(const Axes& axes, int depth) {
    if (axes.empty()) return part(axes, depth);
    const Axes along = {any(axes)};
    const Phrase x = limited(over(axes, along, depth - 1), 100);
    Phrase total = composed("(" + w_.one_of<std::string>({"sum", "max", "mean"}) + w_.list(along) + " {0})", {x}, 900);
    total.axes = total.axes - along;
    return w_.chance(50) ? x / above_zero(total) : x - total;
}

Phrase Grammar::a_read_elsewhere(const Axes& axes, int) {
    const Reading r = elsewhere(some_array(false, axes), axes);
    return behind(r.guard, r.value, filler_in_maps());
}

/// A guard that leaves room for what it guards: a reduction over an axis that the guard does not see.
Phrase Grammar::a_guarded_reduction(const Axes& axes, int depth) {
    const Axes stream = w_.some_axes(1, axes);
    if (stream.empty() || axes.empty()) return part(axes, depth);
    const int k = *stream.begin();
    const Reading r = elsewhere(some_array(false, axes | stream, k), axes, k);
    Phrase body = r.value;
    if (w_.chance(70)) body = limited(body, 1e3) * limited(w_.array(axes | stream, stream), 1e3);
    const std::string op = w_.one_of<std::string>({"sum", "sum", "max", "mean"});
    Phrase result = composed("(" + op + w_.list(stream) + " {0})", {body}, body.bound * 9);
    result.axes = result.axes - stream;
    return behind(r.guard, result, w_.chance(70) ? number(0) : filler());
}

Phrase Grammar::a_guarded_call(const Axes& axes, int depth) {
    if (axes.empty()) return part(axes, depth);
    const Reading r = elsewhere(some_array(false, axes), axes);
    return behind(r.guard, unary(r.value), filler_in_maps());
}

Phrase Grammar::behind(const Phrase& guard, const Phrase& value, const Phrase& otherwise) {
    return guard.text.empty() ? value : choose(guard, value, otherwise);
}

}  // namespace napkin
