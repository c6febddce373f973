// Recipes: an equation or a few that belong together.
#include <fmt/format.h>

#include <cmath>

#include "support/program_grammar.hpp"

namespace napkin {

std::span<const Grammar::Recipe> Grammar::recipes() {
    using K = Features;
    static constexpr Recipe rows[] = {
        {"exponential folds", 4, K::none, &Grammar::exponential_folds},
        {"library rows", 2, K::none, &Grammar::library_rows},
        {"moments", 2, K::none, &Grammar::moments},
        {"ladder", 2, K::none, &Grammar::ladder},
        {"product of many", 2, K::none, &Grammar::product_of_many},
        {"siblings", 2, K::none, &Grammar::siblings},
        {"twin axis", 2, K::none, &Grammar::twin_axis},
        {"chain", 2, K::none, &Grammar::chain},
        {"extremum", 2, K::none, &Grammar::extremum},
        {"counted", 2, K::integers, &Grammar::counted},
        {"shifted", 2, K::none, &Grammar::shifted},
        {"loss", 2, K::none, &Grammar::loss},
        {"attention", 2, K::none, &Grammar::attention},
        {"reduction", 3, K::none, &Grammar::reduction},
        {"map", 2, K::none, &Grammar::mapped},
        {"indexed", 2, K::places, &Grammar::indexed},
        {"fold at other rows", 3, K::places, &Grammar::fold_at_other_rows},
        {"attention at other rows", 2, K::places, &Grammar::attention_at_other_rows},
        {"guarded window", 2, K::guards, &Grammar::guarded_window},
        {"guarded scores", 2, K::guards, &Grammar::guarded_scores},
        {"guarded expression", 2, K::guards | K::places, &Grammar::guarded_expression},
        {"gathered", 2, K::gathers, &Grammar::gathered},
        {"softmax of a gathered column", 1, K::gathers, &Grammar::softmax_gathered},
        {"map of integers", 2, K::arithmetic, &Grammar::whole_map},
        {"reduction of integers", 2, K::arithmetic, &Grammar::whole_reduction},
        {"quantised product", 1, K::casts, &Grammar::quantised},
        {"sum of what is cast", 2, K::casts, &Grammar::rounded_sums},
        {"several streams", 2, K::inner, &Grammar::several_streams},
        {"typed", 1, K::casts, &Grammar::typed},
        {"normalised by its own axis", 1, K::rebound, &Grammar::normalised_anew},
    };
    return rows;
}

Grammar::Rows Grammar::rows_and_stream() {
    const Axes stream = w_.some_axes(w_.chance(12) ? 2 : 1);
    const Axes rows = w_.some_axes(w_.pick(3), stream);
    return {rows, stream, rows | stream};
}
/// A score over rows and stream, masked or not, kept small so that its exponential says something.
Phrase Grammar::score(const Rows& r) {
    Phrase s = limited(over(r.all, r.stream, 1 + w_.pick(2)), 40);
    if (w_.chance(30)) s = s * Phrase{"size(" + w_.axis(any(r.stream)) + ")^-0.5", {}, 1, false};
    return w_.chance(55) ? choose(mask(r.all), s, filler()) : s;
}

void Grammar::mapped() { w_.map("Y", expression(w_.some_axes(1 + w_.pick(3)), 2 + w_.pick(3))); }

void Grammar::reduction() {
    const Rows r = rows_and_stream();
    const std::string op = w_.one_of<std::string>({"sum", "sum", "sum", "max", "min", "prod"});
    Phrase body = over(r.all, r.stream, 1 + w_.pick(3));
    if (op == "prod") body = number(1) + number(0.1) * squashed(body);
    if (w_.chance(25)) body = choose(mask(r.all), body, op == "sum" ? number(0) : op == "prod" ? number(1) : filler());
    w_.reduce("R", op, r.stream, op == "sum" ? limited(body, 1e4) : body);
}

/// Reductions with exponential weights about a reference: the true maximum, that of other points, a sum, or none; each
/// may need those before it.
void Grammar::exponential_folds() {
    const Rows r = rows_and_stream();
    const Phrase s = w_.map("S", score(r));
    const bool base_two = w_.chance(20);
    const auto exponential = [&](const Phrase& e) {
        return base_two ? Phrase{"(2^" + e.text + ")", e.axes, 1, false, e.arrays} : call("exp", e, 1);
    };
    Phrase reference = number(0);
    switch (w_.pick(6)) {
        case 0: reference = w_.reduce("M", "max", r.stream, choose(mask(r.all), s, filler())); break;
        case 1: reference = w_.reduce("M", "sum", r.stream, limited(s, 1)); break;
        case 2: reference = w_.reduce("M", "min", r.stream, s); break;
        default: reference = w_.reduce("M", "max", r.stream, s);
    }
    const Phrase weight = exponential(s - reference);
    std::vector<Phrase> results;
    const Phrase total = w_.reduce("Z", "sum", r.stream, weight);
    const int count = 1 + w_.pick(4);
    for (int i = 0; i < count; ++i) {
        const Axes own = w_.some_axes(w_.pick(2), r.all);
        const Phrase value = w_.array(r.stream | own, r.stream);
        switch (w_.pick(8)) {
            case 0: results.push_back(w_.reduce("O", "sum", r.stream, weight * value)); break;
            case 1: results.push_back(w_.reduce("O", "sum", r.stream, weight / total * value)); break;
            case 2: results.push_back(w_.map("L", reference + call("log", total, 10))); break;
            case 3:
                results.push_back(
                    w_.reduce("H", "sum", r.stream, weight / total * (s - reference - call("log", total, 10))));
                break;
            case 4: {
                const Phrase mean = w_.reduce("mu", "sum", r.stream, weight * value / total);
                results.push_back(w_.reduce("D", "sum", r.stream, weight / total * powered(value - mean, "^2")));
                break;
            }
            case 5: results.push_back(w_.reduce("E", "sum", r.stream, weight * s)); break;
            case 6:
                results.push_back(w_.reduce("C", "sum", r.stream, choose(compare("==", s, reference), value, number(0))));
                break;
            default: results.push_back(w_.reduce("T", w_.chance(50) ? "max" : "min", r.stream, weight / total + value));
        }
    }
    if (w_.chance(40)) w_.map("Y", results.back() / above_zero(total));
}

/// A library operator over the stream, then something that reads its result.
void Grammar::library_rows() {
    const Rows r = rows_and_stream();
    const Phrase s = score(r);
    const std::string name = w_.one_of<std::string>({"softmax", "softmax", "log_softmax", "softmin", "standardize",
                                                     "normalize", "logsumexp", "var", "std", "mean", "rms", "l2norm",
                                                     "absmax", "softmax_entropy"});
    const bool keeps = name == "softmax" || name == "log_softmax" || name == "softmin" || name == "standardize" ||
                       name == "normalize";
    const Axes left = keeps ? s.axes : s.axes - r.stream;
    const Phrase result = w_.define("P", name + w_.list(r.stream) + " ", s, left,
                                    name.starts_with("soft") && keeps ? 1 : 10);
    if (!keeps) {
        if (w_.chance(50)) w_.map("Y", s - result);
        return;
    }
    const Axes own = w_.some_axes(w_.pick(2), r.all);
    const int readers = w_.pick(3);
    for (int i = 0; i < readers; ++i) w_.reduce("O", "sum", r.stream, result * w_.array(r.stream | own, r.stream));
    if (w_.chance(15)) w_.define("N", "max" + w_.list(r.stream) + " ", result, result.axes - r.stream, 1);
}
/// Means, variances and third moments, plain or under weights, masked or not, about the mean or about something else.
void Grammar::moments() {
    const Rows r = rows_and_stream();
    const Phrase x = w_.map("X1", limited(over(r.all, r.stream, 1), 100));
    Phrase weight = number(1);
    switch (w_.pick(4)) {
        case 0: weight = w_.map("W1", choose(mask(r.all), number(1), number(0))); break;
        case 1: weight = w_.map("W1", choose(mask(r.all), above_zero(w_.array(r.all)), number(0))); break;
        case 2: weight = w_.array(r.all, r.stream); break;
        default: break;
    }
    const bool plain = weight.axes.empty();
    Phrase count = size(any(r.stream));
    if (plain && r.stream.size() > 1) count = count * size(*r.stream.rbegin());
    if (!plain) count = w_.reduce("N", "sum", r.stream, weight);
    const Phrase sum = w_.reduce("F", "sum", r.stream, plain ? x : weight * x);
    const Phrase centre = w_.chance(75) ? w_.map("mu", sum / count) : w_.array(r.rows);
    const std::string power = w_.one_of<std::string>({"^2", "^2", "^3"});
    const Phrase moment = powered(x - centre, power);
    const Phrase second = w_.reduce("S2", "sum", r.stream, plain ? moment : weight * moment);
    switch (w_.pick(4)) {
        case 0: w_.map("V", second / count); break;
        case 1: {
            const Phrase scale = call("rsqrt", call("abs", second, second.bound) + number(1e-3), 30);
            const Phrase normal = w_.map("Y", (x - centre) * scale);
            if (w_.chance(60)) w_.reduce("O", "sum", r.stream, normal * w_.array(r.stream, r.stream));
            break;
        }
        case 2: w_.map("V", second - sum * sum); break;
        default: break;
    }
}

/// Folds over one axis, each of which may need the last.
void Grammar::ladder() {
    const Rows r = rows_and_stream();
    Phrase last = number(1);
    const int count = 2 + w_.pick(3);
    for (int i = 0; i < count; ++i) {
        const Phrase x = w_.array(r.all, {any(r.stream)});
        Phrase body = x * last;
        switch (w_.pick(8)) {
            case 0: body = call("exp", limited(x - last, 10), 100); break;
            case 1: body = powered(limited(x - last, 100), "^2"); break;
            case 2: body = call("abs", x - last, x.bound + last.bound); break;
            case 3: body = x / above_zero(last); break;
            case 4: body = x + last; break;
            case 5: body = choose(mask(r.all), x, last); break;
            case 6: body = call("max", x, last, x.bound + last.bound); break;
            default: break;
        }
        const std::string op = w_.one_of<std::string>({"sum", "sum", "sum", "max", "min"});
        last = w_.reduce("F", op, r.stream, limited(body, 1e4));
    }
    if (w_.chance(40)) w_.map("Y", w_.array(r.all) * last + number(1));
}

void Grammar::product_of_many() {
    const Axes all = w_.some_axes(3);
    const int count = 2 + w_.pick(4);
    Phrase product = w_.array(all);
    for (int i = 1; i < count; ++i) {
        const Axes own = w_.chance(70) ? Axes{any(all)} : Axes{};
        product = w_.chance(85) ? limited(product, 1e3) * w_.array(all, own)
                                : limited(product, 1e3) / above_zero(w_.array(all, own));
    }
    Axes over;
    for (const int axis : product.axes)
        if (w_.chance(60)) over.insert(axis);
    w_.reduce("C", "sum", over, limited(product, 1e4));
}

/// Results that read one input and not each other.
void Grammar::siblings() {
    const Rows r = rows_and_stream();
    const Phrase x = w_.array(r.all, r.stream);
    const int count = 2 + w_.pick(4);
    const bool maps = w_.chance(25);
    for (int i = 0; i < count; ++i) {
        const Phrase body = w_.chance(30) ? x : w_.chance(50) ? unary(x) : x * w_.array(r.all);
        if (maps)
            w_.map("Y", body);
        else
            w_.reduce("R", w_.one_of<std::string>({"sum", "sum", "max", "min"}), r.stream, limited(body, 1e4));
    }
}

/// A second axis over the dimension of the first.
void Grammar::twin_axis() {
    const Axes one = w_.some_axes(1);
    const int t = *one.begin();
    const Axes rows = w_.some_axes(1, one);
    const Phrase x = w_.array(rows | one, one);
    const int j = w_.add_axis("j", "", t);
    const Phrase y = w_.at(x, t, w_.axis(j), {j});
    switch (w_.pick(4)) {
        case 0: {
            const Phrase m = w_.reduce("M", w_.chance(70) ? "max" : "sum", {j}, y);
            w_.map("Y", limited(x - m, 30));
            break;
        }
        case 1: {
            const Phrase gram = w_.reduce("G", "sum", rows, limited(x * y, 1e3));
            w_.reduce("R", w_.one_of<std::string>({"sum", "max"}), {j}, choose(index_mask({t, j}), gram, filler()));
            break;
        }
        case 2: {
            const Phrase m = w_.reduce("M", "max", {j}, y), z = w_.reduce("Z", "sum", {j}, call("exp", y - m, 1));
            w_.reduce("O", "sum", one, call("exp", x - m, 1) / z * w_.array(one, one));
            break;
        }
        default: w_.reduce("D", "sum", {j}, call("abs", x - y, 12)); break;
    }
}

void Grammar::chain() {
    const Axes axes = w_.some_axes(1 + w_.pick(2));
    Phrase x = w_.array(axes, {any(axes)});
    const int count = 3 + w_.pick(10);
    for (int i = 0; i < count; ++i) {
        Phrase next = w_.chance(40) ? limited(x, 50) + limited(unary(x), 50) : limited(unary(x), 1e3);
        if (w_.chance(20)) next = limited(x, 50) * limited(x, 50) + limited(x, 50);
        x = w_.map("X1", next);
    }
    if (w_.chance(40)) w_.reduce("R", "sum", {any(axes)}, x);
}

/// The extremum of some points, and what is selected by it.
void Grammar::extremum() {
    const Rows r = rows_and_stream();
    const Phrase x = w_.array(r.all, r.stream);
    const bool least = w_.chance(30);
    const Phrase m = w_.reduce("M", least ? "min" : "max", r.stream,
                               w_.chance(60) ? choose(mask(r.all), x, number(least ? infinity : -infinity)) : x);
    const int t = any(r.stream);
    switch (w_.pick(4)) {
        case 0: w_.reduce("I", "min", r.stream, choose(compare("==", x, m), coordinate(t), size(t))); break;
        case 1:
            w_.reduce("C", "sum", r.stream, choose(compare("==", x, m), w_.array(r.stream, r.stream), number(0)));
            break;
        case 2: {
            const Phrase rest = w_.reduce("N", "max", r.stream, choose(compare("<", x, m), x, number(-infinity)));
            w_.map("G", call("exp", rest - m, 1));
            break;
        }
        default: w_.reduce("E", "sum", r.stream, call("exp", x - m, 1)); break;
    }
}

/// Integers: counts of equal ids, sums of a segment, arithmetic on them.
void Grammar::counted() {
    const Rows r = rows_and_stream();
    const Phrase a = ids(r.stream), b = ids(r.all);
    switch (w_.pick(3)) {
        case 0: w_.reduce("N", "sum", r.stream, choose(compare("==", a, b), number(1), number(0))); break;
        case 1:
            w_.reduce("T", "sum", r.stream, choose(compare("==", a, b), w_.array(r.all, r.stream), number(0)));
            break;
        default: w_.map("J", call("f32", a, 4) * number(0.5) + w_.array(r.stream)); break;
    }
}

/// Reads at sums of axes: a window, a stride, a fixed offset.
void Grammar::shifted() {
    const Axes one = w_.some_axes(1);
    const int i = *one.begin();
    const int width = 2 + w_.pick(2), stride = 1 + w_.pick(2);
    const std::string name = w_.axis(i);
    const int n = w_.add_axis("n", fmt::format("{}*{} + {}", stride, name, width - stride + w_.pick(2)));
    const Axes channel = w_.some_axes(w_.pick(2), one);
    const Phrase x = w_.input(channel | Axes{n});
    const std::string at = stride == 1 ? name : fmt::format("{}*{}", stride, name);
    if (w_.chance(60)) {
        const int w = w_.add_axis("w", fmt::format("{}", width));
        const Phrase window = w_.at(x, n, fmt::format("{} + {}", at, w_.axis(w)), {i, w});
        const Phrase filter = w_.chance(60) ? w_.input(channel | Axes{w}) : number(1);
        w_.reduce("Y", w_.chance(80) ? "sum" : "max", Axes{w} | (w_.chance(50) ? channel : Axes{}), window * filter);
    } else {
        const Phrase y = w_.map("X1", limited(unary(x), 100));
        w_.map("Y", w_.at(y, n, at, {i}) + w_.at(y, n, fmt::format("{} + {}", at, w_.pick(width)), {i}));
    }
}

void Grammar::loss() {
    const Rows r = rows_and_stream();
    const Phrase x = limited(w_.array(r.all, r.stream), 40);
    Phrase l = x;
    if (r.stream.size() == 1 && wants(Features::integers) && w_.chance(50)) {
        // The classes are one an example.
        Phrase class_id = r.rows.empty() ? number(w_.pick(4)) : ids(r.rows);
        Phrase both = x + class_id;
        both.text = fmt::format("({}, {})", x.text, class_id.text);
        l = w_.define("L", "cross_entropy" + w_.list(r.stream), both, both.axes - r.stream, 40);
    } else {
        l = w_.define("L", "softmax_entropy" + w_.list(r.stream) + " ", x, x.axes - r.stream, 10);
    }
    if (!l.axes.empty() && w_.chance(60)) w_.reduce("loss", "sum", l.axes, l);
}

/// Scores of queries and keys, masked, normalised, and the values' mean under them.
void Grammar::attention() {
    const Axes q = w_.some_axes(1), x = w_.some_axes(1, q);
    if (x.empty()) return reduction();
    const Axes k = w_.some_axes(1, q | x), d = w_.chance(50) ? k : w_.some_axes(1, q | x | k);
    const Phrase product = limited(w_.array(q | k, q) * w_.array(x | k, x), 40);
    Phrase s = w_.reduce("S", "sum", k, product);
    s = limited(s, 60);
    if (w_.chance(25)) s = call("softcap", s, number(5), 5);
    if (w_.chance(25)) s = s + w_.array(x);
    if (w_.chance(60)) s = choose(mask(q | x), s, filler());
    const Phrase p = w_.define("P", "softmax" + w_.list(x) + " ", s, s.axes | x, 1);
    w_.reduce("O", "sum", x, p * w_.array(x | d, x));
    if (w_.chance(25)) w_.define("L", "logsumexp" + w_.list(x) + " ", s, s.axes - x, 60);
}

}  // namespace napkin
