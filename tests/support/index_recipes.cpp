// Recipes about where is read and what is exact: rows of other axes, guards, gathers, integers, casts.
#include <fmt/format.h>

#include "support/program_grammar.hpp"

namespace napkin {

/// Reads at quotients and remainders, beside the edge under a guard, and at places that an array says.
void Grammar::indexed() {
    const Axes one = w_.some_axes(1);
    const int t = *one.begin();
    const std::string name = w_.axis(t);
    const Axes channel = w_.some_axes(w_.pick(2), one);
    const Phrase x = w_.array(one | channel, one);
    const auto guarded = [&](const std::string& guard, const Phrase& read) {
        Phrase result = read;
        result.text = fmt::format("where({}, {}, {})", guard, read.text, w_.chance(80) ? "0" : "-1e9");
        result.axes.insert(t);
        return result;
    };
    switch (w_.pick(wants(Features::gathers) ? 6 : 5)) {
        case 0: {
            const std::string block = fmt::format("{} // {}", name, 2 + w_.pick(3));
            w_.reduce("Y", "sum", w_.chance(50) ? one : channel, x * w_.at(w_.array(one, one), t, block, one));
            break;
        }
        case 1: {
            const int r = w_.add_axis("r", fmt::format("{}", 2 + w_.pick(2)));
            const Phrase table = w_.input({r});
            w_.map("Y", x * w_.at(table, r, fmt::format("{} % size({})", name, w_.axis(r)), one));
            break;
        }
        case 2: {
            const int back = 1 + w_.pick(2);
            const Phrase before = guarded(fmt::format("{} >= {}", name, back),
                                          w_.at(x, t, fmt::format("{} - {}", name, back), one));
            w_.map("Y", w_.chance(50) ? x - before : before);
            break;
        }
        case 3: {
            const int w = w_.add_axis("w", "3");
            const std::string place = fmt::format("{} + {} - 1", name, w_.axis(w));
            const Phrase window = guarded(fmt::format("{} >= 0 and {} < size({})", place, place, name),
                                          w_.at(x, t, place, {t, w}));
            w_.reduce("Y", w_.chance(70) ? "sum" : "max", {w}, w_.chance(50) ? window * w_.input({w}) : window);
            break;
        }
        case 4: {
            const int w = w_.add_axis("w", "3");
            const std::string place = fmt::format("{} - {}", name, w_.axis(w));
            w_.reduce("Y", "sum", {w}, guarded(place + " >= 0", w_.at(x, t, place, {t, w})) * w_.input({w}));
            break;
        }
        default: {
            const int i = w_.add_axis("i");
            const Phrase place = w_.input({i}, "i32");
            const Phrase rows = w_.input(one | channel);
            Phrase gathered = w_.at(rows, t, place.text, {i});
            gathered.arrays.insert(place.arrays.begin(), place.arrays.end());
            if (w_.chance(50))
                w_.map("Y", gathered);
            else
                w_.reduce("Y", "sum", {i}, gathered * w_.input({i}));
            break;
        }
    }
}

/// A fold that reads by its result, and arrays at rows that are not its own.
void Grammar::fold_at_other_rows() {
    const Rows r = rows_and_stream();
    const int x = *r.stream.begin();
    const Phrase s = w_.array(r.all, {x});
    const Phrase first = w_.reduce("Z", w_.one_of<std::string>({"max", "max", "sum", "min"}), r.stream, limited(s, 100));
    const Reading other = elsewhere(some_array(false, r.all, x), r.rows, x);
    const Phrase value = limited(behind(other.guard, other.value, number(0)), 100);
    Phrase body = limited(first, 100) * value;
    switch (w_.pick(4)) {
        case 0: body = call("exp", limited(s - first, 20), 3) * value; break;
        case 1: body = call("exp", limited(value - first, 20), 3); break;
        case 2: body = value - first; break;
        default: break;
    }
    w_.reduce("O", w_.one_of<std::string>({"sum", "sum", "max"}), r.stream, limited(body, 1e4));
}

/// Attention whose keys and values are rows of other heads, pages or sequences.
void Grammar::attention_at_other_rows() {
    const Axes q = w_.some_axes(1), x = w_.some_axes(1, q);
    if (x.empty()) return reduction();
    const Axes k = w_.some_axes(1, q | x);
    const auto rows_of = [&](const Axes& over, int kept) {
        const Reading r = elsewhere(some_array(false, over, kept), over, kept);
        return limited(behind(r.guard, r.value, number(0)), 10);
    };
    Phrase s = k.empty() ? rows_of(q | x, *x.begin())
                         : w_.reduce("S", "sum", k, limited(w_.array(q | k, k) * rows_of(q | x, *k.begin()), 5));
    if (!s.axes.contains(*x.begin())) s = s + w_.array(x, x);
    s = limited(s, 40);
    if (w_.chance(50)) s = choose(mask(q | x), s, filler());
    const Phrase p = w_.define("P", "softmax" + w_.list(x) + " ", s, s.axes | x, 1);
    w_.reduce("O", "sum", x, p * rows_of(q, *x.begin()));
}

/// A window over what a norm or an activation made, and zeros before its beginning.
void Grammar::guarded_window() {
    const Axes one = w_.some_axes(1), channel = w_.some_axes(1, one);
    const int n = *one.begin(), w = w_.add_axis("w", "3");
    const Phrase x = limited(over(one | channel, one | channel, 1), 40);
    Phrase z = x;
    switch (channel.empty() ? 2 : w_.pick(4)) {
        case 0:
            z = w_.define("N", "rmsnorm" + w_.list(channel), composed("({0}, {1})", {x, w_.input(channel)}, 10),
                          x.axes | channel, 10);
            break;
        case 1: z = w_.define("N", "softmax" + w_.list(channel) + " ", x, x.axes | channel, 1); break;
        case 2: z = w_.map("N", unary(x)); break;
        default: z = w_.reduce("N", "sum", channel, x); break;
    }
    const int array = *z.arrays.begin();
    std::vector<Phrase> at;
    Phrase guard;
    for (const int axis : w_.axes_of(array)) {
        const Place place = axis == n ? shifted_by(n, n, {w}) : Place{coordinate(axis)};
        at.push_back(place.index);
        guard = both(guard, place.guard);
    }
    Phrase value = w_.read_at(array, at);
    if (w_.chance(30)) value = unary(value);
    const Phrase window = choose(guard, value, w_.chance(80) ? number(0) : filler());
    w_.reduce("Y", w_.chance(80) ? "sum" : "max", {w}, w_.chance(60) ? limited(window, 100) * w_.input({w}) : window);
}

/// Scores of a window, each a product that a guard keeps inside, and values behind the same guard.
void Grammar::guarded_scores() {
    const Axes one = w_.some_axes(1), inner = w_.some_axes(1, one);
    if (inner.empty()) return guarded_window();
    const int q = *one.begin(), w = w_.add_axis("w", w_.chance(50) ? "3" : "");
    const Place place = shifted_by(q, q, {w});
    const auto shifted_row = [&] {
        const Phrase row = w_.input(one | inner);
        std::vector<Phrase> at;
        for (const int axis : w_.axes_of(*row.arrays.begin())) at.push_back(axis == q ? place.index : coordinate(axis));
        return w_.read_at(*row.arrays.begin(), at);
    };
    const std::string reduction = w_.one_of<std::string>({"sum", "sum", "max", "mean"});
    Phrase score = composed("(" + reduction + w_.list(inner) + " {0})",
                            {limited(w_.array(one | inner, inner) * shifted_row(), 4)}, 36);
    score.axes = score.axes - inner;
    score = choose(place.guard, score, filler());
    const Phrase s = w_.map("S", score.axes.contains(w) ? score : score + w_.input({w}));
    const Phrase p = w_.define("P", "softmax" + w_.list({w}) + " ", s, s.axes | Axes{w}, 1);
    w_.reduce("O", "sum", {w}, p * choose(place.guard, shifted_row(), number(0)));
}

void Grammar::guarded_expression() {
    const Axes axes = w_.some_axes(1 + w_.pick(2));
    w_.map("Y", w_.chance(60) ? a_guarded_reduction(axes, 2) : a_guarded_call(axes, 2));
}

/// Several lookups in one read, each of its own kind.
void Grammar::gathered() {
    const Axes axes = w_.some_axes(1 + w_.pick(2));
    const Phrase table = w_.input(w_.some_axes(1 + w_.pick(3)), w_.chance(20) ? w_.one_of(whole_types_) : "");
    const int array = *table.arrays.begin();
    std::vector<Phrase> at;
    for (const int dimension : w_.axes_of(array))
        at.push_back(w_.chance(70) ? looked_up_as_it_is(axes, dimension).index : at_a_coordinate(axes, dimension).index);
    const Phrase value = w_.read_at(array, at);
    switch (w_.pick(3)) {
        case 0: w_.map("Y", value); break;
        case 1: w_.reduce("Y", "sum", {any(axes)}, value * w_.array(axes, {any(axes)})); break;
        default: w_.map("Y", value * limited(expression(axes, 2), 100)); break;
    }
}

void Grammar::softmax_gathered() {
    const Axes d = w_.some_axes(1), e = w_.some_axes(1, d);
    if (e.empty()) return gathered();
    const Reading r = elsewhere(some_array(false, d, *d.begin()), e, *d.begin());
    if (!r.guard.text.empty()) return guarded_expression();
    const std::string name = w_.one_of<std::string>({"softmax", "log_softmax", "standardize"});
    const Phrase value = r.value.axes.contains(*d.begin()) ? r.value : r.value + w_.array(d, d);
    const Phrase weight = composed("(" + name + w_.list(d) + " {0})", {limited(value, 40)}, 10);
    w_.reduce("R", w_.chance(80) ? "sum" : "max", d, w_.chance(50) ? weight : weight * w_.array(d | e, d));
}

void Grammar::whole_map() {
    const std::string type = w_.chance(40) ? w_.one_of(whole_types_) : "";
    w_.map("J", whole(w_.some_axes(1 + w_.pick(2)), 3), type);
}

void Grammar::whole_reduction() {
    const Rows r = rows_and_stream();
    Phrase body = whole(r.all, 3);
    for (const int axis : r.stream)
        if (!body.axes.contains(axis)) body = body + coordinate(axis);
    const std::string type = w_.chance(20) ? "f32" : w_.one_of(whole_types_);
    w_.reduce("N", w_.one_of<std::string>({"sum", "sum", "max", "min", "prod"}), r.stream, body, type);
}

/// Quantised factors about a zero point, their exact product, and its scale.
void Grammar::quantised() {
    const Axes k = w_.some_axes(1), m = w_.some_axes(1, k);
    const auto levels = [&](const Axes& axes) { return w_.map("L", w_.input(axes) * number(16), "i32"); };
    const Phrase zero = w_.chance(50) ? whole_number(3) : composed_whole("i32({0})", {w_.input({})}, 6);
    const Phrase a = levels(m | k), b = levels(k);
    const Phrase c = w_.reduce("C", "sum", k, (a - zero) * b, w_.one_of<std::string>({"i32", "i32", "i64"}));
    if (w_.chance(60)) w_.map("Y", call("f32", c, 1e5) * number(0.0625));
}

/// Sums of what is cast, and a cast of a sum.
void Grammar::rounded_sums() {
    const Rows r = rows_and_stream();
    const Phrase x = w_.array(r.all, r.stream);
    switch (w_.pick(4)) {
        case 0:
            if (!x.exact || x.whole) return rounded_sums_of(w_.input(r.all), r.stream);
            return rounded_sums_of(x, r.stream);
        case 1:
            w_.map("R", composed_whole("i32({0})", {w_.input(r.all)}, 6) + whole_number(w_.pick(5) - 2), "i32");
            break;
        case 2: w_.reduce("R", "sum", r.stream, call(w_.one_of(real_types_), limited(x, 100), x.bound)); break;
        default:
            w_.map("R", call(w_.one_of(real_types_), limited(w_.reduce("T", "sum", r.stream, x), 100), 100));
            break;
    }
}

void Grammar::rounded_sums_of(const Phrase& x, const Axes& stream) {
    const std::string type = w_.one_of(whole_types_);
    Phrase body = composed_whole(type + "({0})", {w_.chance(50) ? x : x * number(4)}, x.bound * 4);
    if (w_.chance(40)) body = body * whole(x.axes, 1) - whole_number(1);
    w_.reduce("R", w_.one_of<std::string>({"sum", "sum", "max", "prod"}), stream, body, w_.one_of(whole_types_));
}

/// Folds over one axis that read what folds over another made.
void Grammar::several_streams() {
    const Axes rows = w_.some_axes(1);
    Phrase last = w_.array(rows);
    const int count = 2 + w_.pick(2);
    for (int i = 0; i < count; ++i) {
        const Axes stream = w_.some_axes(1, rows);
        if (stream.empty()) return reduction();
        const Phrase x = w_.array(rows | stream, stream);
        Phrase body = x * limited(last, 100);
        switch (w_.pick(4)) {
            case 0: body = call("exp", limited(x - last, 10), 100); break;
            case 1: body = choose(mask(rows | stream), x - last, filler_in_maps()); break;
            case 2: body = limited(expression(rows | stream, 2), 100) * x; break;
            default: break;
        }
        last = w_.reduce("F", w_.one_of<std::string>({"sum", "sum", "max", "min"}), stream, limited(body, 1e4));
    }
    w_.map("Y", last / above_zero(w_.array(rows)));
}

/// Temporaries and results of every type.
void Grammar::typed() {
    const Rows r = rows_and_stream();
    const Phrase t = w_.map("T", limited(expression(r.all, 2), 100), w_.one_of(real_types_));
    if (w_.chance(40)) w_.map("Y", limited(expression(t.axes, 2), 100), w_.one_of(real_types_));
    w_.reduce("R", w_.chance(70) ? "sum" : "max", r.stream, t * limited(w_.array(r.all), 10), w_.one_of(real_types_));
}

void Grammar::normalised_anew() {
    const Axes axes = w_.some_axes(1 + w_.pick(2));
    w_.map("Y", a_rebound(axes, 2));
}

}  // namespace napkin
