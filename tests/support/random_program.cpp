#include "support/random_program.hpp"

#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "support/program_writer.hpp"
#include "syntax/parse.hpp"

namespace napkin {

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
using Axes = std::set<int>;

Axes operator|(Axes a, const Axes& b) {
    a.insert(b.begin(), b.end());
    return a;
}

class Generator {
public:
    Generator(std::uint64_t seed, const ProgramOptions& options) : options_(options), w_(seed, options.small_types) {}

    std::string run() {
        const int axes = 2 + w_.pick(3);
        for (int i = 0; i < axes; ++i)
            w_.add_axis(w_.one_of<std::string>({"q", "x", "t", "k", "d", "h", "c", "s_k", "H", "n"}));
        const int wanted = 1 + w_.pick(options_.max_equations);
        while (w_.equations() < wanted) recipe();
        return w_.text();
    }

private:
    // ---- expressions ---------------------------------------------------------------------------------------------------------------

    Phrase coordinate(int axis) { return {w_.axis(axis), {axis}, 9, true}; }
    Phrase size(int axis) { return {"size(" + w_.axis(axis) + ")", {}, 9, true}; }
    int any(const Axes& axes) { return w_.one_of(std::vector<int>(axes.begin(), axes.end())); }

    Phrase compare(const char* op, const Phrase& a, const Phrase& b) {
        Phrase result = a - b;
        result.text = fmt::format("({} {} {})", a.text, op, b.text);
        result.exact = true;
        result.bound = 1;
        return result;
    }
    std::string relation() { return w_.one_of<std::string>({"<", "<=", ">", ">=", "==", "!="}); }

    /// A condition on coordinates: causal, a window, one point, everything, nothing, a band, the last.
    Phrase index_mask(const Axes& axes) {
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
            default: return compare(relation().c_str(), a, q == x ? number(w_.pick(5)) : b);
        }
    }
    /// A condition on what no rounding has touched: coordinates, inputs, ids.
    Phrase mask(const Axes& axes) {
        if (options_.integers && w_.chance(15))
            return compare(w_.chance(60) ? "==" : relation().c_str(), ids(axes), ids(axes));
        if (w_.chance(70)) return index_mask(axes);
        for (int i = 0; i < 4; ++i) {
            const Phrase value = w_.array(axes);
            if (value.exact) return compare(relation().c_str(), value, number(w_.pick(3) - 1));
        }
        return index_mask(axes);
    }
    /// An i32 array over one or two of the axes.
    Phrase ids(const Axes& axes) {
        Axes own = {any(axes)};
        if (w_.chance(25)) own.insert(any(axes));
        for (const Phrase& known : ids_)
            if (known.axes == own && w_.chance(60)) return known;
        ids_.push_back(w_.input(own, "i32"));
        return ids_.back();
    }
    /// What stands where a mask is not: the fillers that people use.
    Phrase filler() {
        return number(w_.one_of<double>({-infinity, -infinity, -infinity, -1e9, -1e9, -1e30, 0, 0, -1e4, infinity}));
    }
    Phrase constant() {
        if (options_.extremes && w_.chance(8)) return number(w_.one_of<double>({1e38, -1e9, 1e-30, -1e30, 1e20}));
        return number(w_.one_of<double>({0.5, 2, -1, 1, 0, 3, 0.125, -2, 1.5, 0.1}));
    }

    Phrase leaf(const Axes& axes) {
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
    Phrase squashed(const Phrase& a) { return call("tanh", a, 1); }
    Phrase above_zero(const Phrase& a) {
        switch (w_.pick(4)) {
            case 0: return call("exp", squashed(a), 3);
            case 1: return number(1) + call("abs", a, a.bound);
            case 2: return number(0.5) + a * a;
            default: return call("sigmoid", a, 1) + number(0.25);
        }
    }
    Phrase unary(const Phrase& a) {
        const std::string activation = w_.one_of<std::string>(
            {"relu", "gelu", "silu", "softplus", "sigmoid", "gelu_tanh", "softsign", "square"});
        switch (w_.pick(14)) {
            case 0: return call("exp", limited(a, 8), std::exp(std::min(a.bound, 8.0)));
            case 1: return squashed(a);
            case 2: return call("abs", a, a.bound);
            case 3: return w_.chance(50) ? call("sin", a, 1) : call("cos", a, 1);
            case 4: return {"(-" + a.text + ")", a.axes, a.bound, a.exact, a.arrays};
            case 5: return call("sqrt", above_zero(a), a.bound + 1);
            case 6: return call("rsqrt", above_zero(a), 2);
            case 7: return call("log", above_zero(a), 10);
            case 8: return call("erf", a, 1);
            case 9: return powered(limited(a, 50), "^" + w_.one_of<std::string>({"2", "3", "2"}));
            case 10: return {"(2^" + limited(a, 8).text + ")", a.axes, 256, false, a.arrays};
            case 11: return call("f32", a, a.bound);
            case 12: return powered(above_zero(a), w_.one_of<std::string>({"^0.5", "^-1", "^-0.5", "^1.5"}));
            default:
                return call(activation, limited(a, 1e4),
                            activation == "square" ? std::min(a.bound, 1e4) * a.bound : a.bound);
        }
    }
    static Phrase powered(const Phrase& a, const std::string& power) {
        return {"((" + a.text + ")" + power + ")", a.axes, a.bound * a.bound * a.bound, false, a.arrays};
    }
    Phrase expression(const Axes& axes, int depth) {
        if (depth <= 0) return leaf(axes);
        const auto part = [&] { return expression(axes, depth - 1 - w_.pick(2)); };
        switch (w_.pick(12)) {
            case 0:
            case 1: return part() + part();
            case 2: return part() - part();
            case 3:
            case 4: return limited(part(), 1e4) * limited(part(), 1e4);
            case 5: return part() / above_zero(part());
            case 6: return w_.chance(50) ? call("max", part(), part(), 1e4) : call("min", part(), part(), 1e4);
            case 7:
                return axes.empty() ? part() : choose(mask(axes), part(), w_.chance(50) ? filler_in_maps() : part());
            case 8: return w_.array(axes);
            default: return unary(part());
        }
    }
    /// Outside of a fold a filler mostly stays finite: what it would make of everything after it tests little.
    Phrase filler_in_maps() { return w_.chance(85) ? number(0) : filler(); }

    /// An expression that depends on every axis of `needed`.
    Phrase over(const Axes& axes, const Axes& needed, int depth) {
        Phrase result = expression(axes, depth);
        for (const int axis : needed) {
            if (result.axes.contains(axis)) continue;
            const Phrase more = w_.array(axes, {axis});
            result = w_.chance(60) ? limited(result, 1e4) * more : result + more;
        }
        return result;
    }

    // ---- recipes -------------------------------------------------------------------------------------------------------------------

    void recipe() {
        if (options_.indices && w_.chance(30)) return indexed();
        switch (w_.pick(16)) {
            case 0:
            case 1: return exponential_folds();
            case 2: return library_rows();
            case 3: return moments();
            case 4: return ladder();
            case 5: return product_of_many();
            case 6: return siblings();
            case 7: return twin_axis();
            case 8: return chain();
            case 9: return extremum();
            case 10: return counted();
            case 11: return shifted();
            case 12: return loss();
            case 13: return attention();
            default: return w_.chance(60) ? reduction() : mapped();
        }
    }

    /// Rows and the axis that is streamed.
    struct Rows {
        Axes rows, stream, all;
    };
    Rows rows_and_stream() {
        const Axes stream = w_.some_axes(w_.chance(12) ? 2 : 1);
        const Axes rows = w_.some_axes(w_.pick(3), stream);
        return {rows, stream, rows | stream};
    }
    /// A score over rows and stream, masked or not, kept small so that its exponential says something.
    Phrase score(const Rows& r) {
        Phrase s = limited(over(r.all, r.stream, 1 + w_.pick(2)), 40);
        if (w_.chance(30)) s = s * Phrase{"size(" + w_.axis(any(r.stream)) + ")^-0.5", {}, 1, false};
        return w_.chance(55) ? choose(mask(r.all), s, filler()) : s;
    }

    void mapped() { w_.map("Y", expression(w_.some_axes(1 + w_.pick(3)), 2 + w_.pick(3))); }

    void reduction() {
        const Rows r = rows_and_stream();
        const std::string op = w_.one_of<std::string>({"sum", "sum", "sum", "max", "min", "prod"});
        Phrase body = over(r.all, r.stream, 1 + w_.pick(3));
        if (op == "prod") body = number(1) + number(0.1) * squashed(body);
        if (w_.chance(25))
            body = choose(mask(r.all), body, op == "sum" ? number(0) : op == "prod" ? number(1) : filler());
        w_.reduce("R", op, r.stream, op == "sum" ? limited(body, 1e4) : body);
    }

    /// Reductions with exponential weights about a reference: the true maximum, that of other points, a sum, or none; each may need
    /// those before it.
    void exponential_folds() {
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
                    results.push_back(
                        w_.reduce("C", "sum", r.stream, choose(compare("==", s, reference), value, number(0))));
                    break;
                default:
                    results.push_back(w_.reduce("T", w_.chance(50) ? "max" : "min", r.stream, weight / total + value));
            }
        }
        if (w_.chance(40)) w_.map("Y", results.back() / above_zero(total));
    }

    /// A library operator over the stream, then something that reads its result.
    void library_rows() {
        const Rows r = rows_and_stream();
        const Phrase s = score(r);
        const std::string name = w_.one_of<std::string>({"softmax", "softmax", "log_softmax", "softmin", "standardize",
                                                         "normalize", "logsumexp", "var", "std", "mean", "rms",
                                                         "l2norm", "absmax", "softmax_entropy"});
        const bool keeps = name == "softmax" || name == "log_softmax" || name == "softmin" || name == "standardize" ||
                           name == "normalize";
        const Axes left = keeps ? s.axes : without(s.axes, r.stream);
        const Phrase result = w_.define("P", name + w_.list(r.stream) + " ", s, left,
                                        name.starts_with("soft") && keeps ? 1 : 10);
        if (!keeps) {
            if (w_.chance(50)) w_.map("Y", s - result);
            return;
        }
        const Axes own = w_.some_axes(w_.pick(2), r.all);
        const int readers = w_.pick(3);
        for (int i = 0; i < readers; ++i) w_.reduce("O", "sum", r.stream, result * w_.array(r.stream | own, r.stream));
        if (w_.chance(15)) w_.define("N", "max" + w_.list(r.stream) + " ", result, left_of(result, r.stream), 1);
    }
    static Axes without(Axes a, const Axes& b) {
        for (const int axis : b) a.erase(axis);
        return a;
    }
    static Axes left_of(const Phrase& t, const Axes& stream) { return without(t.axes, stream); }

    /// Means, variances and third moments, plain or under weights, masked or not, about the mean or about something else.
    void moments() {
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
    void ladder() {
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

    void product_of_many() {
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
    void siblings() {
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
    void twin_axis() {
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

    void chain() {
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
    void extremum() {
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
    void counted() {
        if (!options_.integers) return reduction();
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
    void shifted() {
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

    /// Reads at quotients and remainders, beside the edge under a guard, and at places that an array says.
    void indexed() {
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
        switch (w_.pick(6)) {
            case 0: {
                const std::string block = fmt::format("{} // {}", name, 2 + w_.pick(3));
                w_.reduce("Y", "sum", w_.chance(50) ? one : channel, x * w_.at(w_.array(one, one), t, block, one));
                break;
            }
            case 1: {
                const int r = w_.add_axis("r", fmt::format("{}", 2 + w_.pick(2)));
                const Phrase table = w_.input({r});
                w_.map("Y", x * w_.at(table, r, fmt::format("{} % {}", name, w_.axis(r)), one));
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

    void loss() {
        const Rows r = rows_and_stream();
        const Phrase x = limited(w_.array(r.all, r.stream), 40);
        Phrase l = x;
        if (r.stream.size() == 1 && options_.integers && w_.chance(50)) {
            // The classes are one an example.
            Phrase class_id = r.rows.empty() ? number(w_.pick(4)) : ids(r.rows);
            Phrase both = x + class_id;
            both.text = fmt::format("({}, {})", x.text, class_id.text);
            l = w_.define("L", "cross_entropy" + w_.list(r.stream), both, without(both.axes, r.stream), 40);
        } else {
            l = w_.define("L", "softmax_entropy" + w_.list(r.stream) + " ", x, without(x.axes, r.stream), 10);
        }
        if (!l.axes.empty() && w_.chance(60)) w_.reduce("loss", "sum", l.axes, l);
    }

    /// Scores of queries and keys, masked, normalised, and the values' mean under them.
    void attention() {
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
        if (w_.chance(25)) w_.define("L", "logsumexp" + w_.list(x) + " ", s, without(s.axes, x), 60);
    }

    ProgramOptions options_;
    ProgramWriter w_;
    std::vector<Phrase> ids_;
};

}  // namespace

std::string random_program(std::uint64_t seed, const ProgramOptions& options) { return Generator(seed, options).run(); }

Diagram parsed_program(const std::string& text) {
    const auto diagram = parse_diagram(std::make_shared<const Source>(Source{"<random>", text}));
    if (!diagram) throw InternalError(render(diagram.errors()) + text);
    return *diagram;
}

}  // namespace napkin
