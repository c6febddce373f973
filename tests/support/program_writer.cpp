#include "support/program_writer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>

namespace napkin {

namespace {

std::set<int> together(std::set<int> a, const std::set<int>& b) {
    a.insert(b.begin(), b.end());
    return a;
}

Phrase infix(const char* op, const Phrase& a, const Phrase& b, double bound) {
    return {fmt::format("({} {} {})", a.text, op, b.text), together(a.axes, b.axes), bound, false,
            together(a.arrays, b.arrays)};
}

/// The same where integers stay integers.
Phrase arithmetic(const char* op, const Phrase& a, const Phrase& b, double bound) {
    Phrase result = infix(op, a, b, bound);
    result.whole = result.exact = a.whole && b.whole;
    return result;
}

bool is_whole_type(const std::string& type) {
    const auto known = dtype_from_name(type);
    return known && !is_float(*known);
}

constexpr double largest_extent = 9;

}  // namespace

Phrase number(double value) {
    const std::string text = std::isinf(value) ? (value > 0 ? "inf" : "-inf") : fmt::format("{}", value);
    return {value < 0 ? "(" + text + ")" : text, {}, std::abs(value), true};
}

Phrase whole_number(std::int64_t value) {
    Phrase result = number(static_cast<double>(value));
    result.text = value < 0 ? fmt::format("({})", value) : fmt::format("{}", value);
    result.whole = true;
    return result;
}

Phrase operator+(const Phrase& a, const Phrase& b) { return arithmetic("+", a, b, a.bound + b.bound); }
Phrase operator-(const Phrase& a, const Phrase& b) { return arithmetic("-", a, b, a.bound + b.bound); }
Phrase operator*(const Phrase& a, const Phrase& b) { return arithmetic("*", a, b, a.bound * b.bound); }
Phrase operator/(const Phrase& a, const Phrase& b) { return infix("/", a, b, a.bound); }

Phrase call(const std::string& function, const Phrase& a, double bound) {
    return {function + "(" + a.text + ")", a.axes, bound, false, a.arrays};
}

Phrase call(const std::string& function, const Phrase& a, const Phrase& b, double bound) {
    // The maximum of two bare axes would read as a reduction.
    return {fmt::format("{}(({}), {})", function, a.text, b.text), together(a.axes, b.axes), bound, false,
            together(a.arrays, b.arrays)};
}

Phrase composed(const std::string& text, const std::vector<Phrase>& parts, double bound) {
    Phrase result{"", {}, bound};
    for (std::size_t at = 0; at < text.size(); ++at) {
        if (text[at] != '{') {
            result.text += text[at];
            continue;
        }
        result.text += parts[static_cast<std::size_t>(text[at + 1] - '0')].text;
        at += 2;
    }
    for (const Phrase& part : parts) {
        result.axes = together(result.axes, part.axes);
        result.arrays = together(result.arrays, part.arrays);
    }
    return result;
}

Phrase composed_whole(const std::string& text, const std::vector<Phrase>& parts, double bound) {
    Phrase result = composed(text, parts, bound);
    result.exact = result.whole = true;
    return result;
}

Phrase choose(const Phrase& condition, const Phrase& a, const Phrase& b) {
    const double bound = std::isinf(b.bound) ? a.bound : std::max(a.bound, b.bound);
    return {fmt::format("where({}, {}, {})", condition.text, a.text, b.text),
            together(condition.axes, together(a.axes, b.axes)),
            bound,
            a.exact && b.exact,
            together(condition.arrays, together(a.arrays, b.arrays)),
            a.whole && b.whole};
}

Phrase limited(const Phrase& a, double bound) {
    if (a.bound <= bound) return a;
    return number(std::exp2(std::floor(std::log2(bound / a.bound)))) * a;
}

std::string ProgramWriter::fresh(const std::string& wanted) const {
    const auto taken = [&](const std::string& name) {
        const auto same = [&](const auto& known) { return known.name == name; };
        return std::any_of(axes_.begin(), axes_.end(), same) || std::any_of(arrays_.begin(), arrays_.end(), same);
    };
    std::string name = wanted;
    for (int i = 2; taken(name); ++i) name = fmt::format("{}_{}", wanted, i);
    return name;
}

int ProgramWriter::add_axis(const std::string& wanted, const std::string& size, int twin) {
    axes_.push_back({fresh(wanted), size, twin});
    return axes() - 1;
}

std::set<int> ProgramWriter::some_axes(int count, const std::set<int>& without) {
    std::set<int> free;
    for (int id = 0; id < axes(); ++id)
        if (plain(id) && !without.contains(id)) free.insert(id);
    const std::vector<int> order = shuffled(free);
    return {order.begin(), order.begin() + std::min(count, static_cast<int>(order.size()))};
}

int ProgramWriter::known_axis() {
    std::set<int> known;
    for (const int id : read_) {
        const std::vector<int>& own = arrays_[static_cast<std::size_t>(id)].axes;
        known.insert(own.begin(), own.end());
    }
    return known.empty() ? -1 : shuffled(known).front();
}

std::string ProgramWriter::list(const std::set<int>& chosen) const {
    std::string names;
    for (const int id : chosen) names += (names.empty() ? "" : ", ") + axis(id);
    return "(" + names + ")";
}

std::vector<int> ProgramWriter::shuffled(const std::set<int>& chosen) {
    std::vector<int> order(chosen.begin(), chosen.end());
    for (std::size_t i = order.size(); i > 1; --i)
        std::swap(order[i - 1], order[static_cast<std::size_t>(pick(static_cast<int>(i)))]);
    return order;
}

std::string ProgramWriter::indexed(const Array& array) const {
    std::string indices;
    for (const int id : array.axes) indices += (indices.empty() ? "" : ", ") + axis(id);
    return array.axes.empty() ? array.name : array.name + "[" + indices + "]";
}

Phrase ProgramWriter::read(int id) const {
    const Array& a = arrays_[static_cast<std::size_t>(id)];
    return {indexed(a), {a.axes.begin(), a.axes.end()}, a.bound, a.exact, {id}, a.is_integer};
}

std::vector<int> ProgramWriter::arrays(bool whole) const {
    std::vector<int> found;
    for (std::size_t i = 0; i < arrays_.size(); ++i)
        if (arrays_[i].is_integer == whole) found.push_back(static_cast<int>(i));
    return found;
}

Phrase ProgramWriter::read_at(int id, const std::vector<Phrase>& places) const {
    Phrase result = read(id);
    if (places.empty()) return result;
    result.axes.clear();
    std::string indices;
    for (const Phrase& place : places) {
        indices += (indices.empty() ? "" : ", ") + place.text;
        result.axes = together(result.axes, place.axes);
        result.arrays = together(result.arrays, place.arrays);
    }
    result.text = arrays_[static_cast<std::size_t>(id)].name + "[" + indices + "]";
    return result;
}

Phrase ProgramWriter::input(const std::set<int>& chosen, std::string type) {
    if (type.empty() && !types_.empty() && chance(10)) type = one_of(types_);
    const std::string wanted = one_of<std::string>({"X", "Q", "K", "V", "W", "A", "B", "G"});
    const bool whole = is_whole_type(type);
    arrays_.push_back({fresh(wanted), type, shuffled(chosen), whole ? 4.0 : 6.0, true, true, whole});
    return read(static_cast<int>(arrays_.size()) - 1);
}

Phrase ProgramWriter::constant_input(const std::string& value) {
    arrays_.push_back({fresh("scale"), "", {}, 2, false, true, false, value});
    return read(static_cast<int>(arrays_.size()) - 1);
}

Phrase ProgramWriter::array(const std::set<int>& allowed, const std::set<int>& needed) {
    std::vector<int> found;
    for (std::size_t i = 0; i < arrays_.size(); ++i) {
        const std::set<int> own(arrays_[i].axes.begin(), arrays_[i].axes.end());
        if (!arrays_[i].is_integer && std::includes(allowed.begin(), allowed.end(), own.begin(), own.end()) &&
            std::includes(own.begin(), own.end(), needed.begin(), needed.end()))
            found.push_back(static_cast<int>(i));
    }
    // One of the last is likelier, and now and then there is something new.
    if (found.empty() || chance(12)) {
        std::set<int> own = needed;
        for (const int id : allowed)
            if (own.size() < 3 && plain(id) && chance(60)) own.insert(id);
        return input(own);
    }
    const int n = static_cast<int>(found.size());
    return read(found[static_cast<std::size_t>(chance(60) ? std::max(pick(n), pick(n)) : pick(n))]);
}

Phrase ProgramWriter::at(const Phrase& term, int replaced, const std::string& index, const std::set<int>& over) const {
    const Array& a = arrays_[static_cast<std::size_t>(*term.arrays.begin())];
    Phrase result = term;
    result.axes = over;
    std::string indices;
    for (const int id : a.axes) {
        indices += (indices.empty() ? "" : ", ") + (id == replaced ? index : axis(id));
        if (id != replaced) result.axes.insert(id);
    }
    result.text = a.name + "[" + indices + "]";
    return result;
}

Phrase ProgramWriter::define(const std::string& wanted, const std::string& before, const Phrase& body,
                             const std::set<int>& left, double bound, bool exact, const std::string& type) {
    // An output without a type is f32, so that of integers is said.
    const bool whole = type.empty() ? body.whole : is_whole_type(type);
    arrays_.push_back({fresh(wanted), type.empty() && whole ? "i64" : type, shuffled(left), bound, exact, false, whole});
    const int target = static_cast<int>(arrays_.size()) - 1;
    equations_.push_back({target, before + body.text});
    read_.insert(body.arrays.begin(), body.arrays.end());
    return read(target);
}

Phrase ProgramWriter::map(const std::string& wanted, const Phrase& body, const std::string& type) {
    return define(wanted, "", body, body.axes, body.bound, body.exact && (type.empty() || is_whole_type(type)), type);
}

Phrase ProgramWriter::reduce(const std::string& wanted, const std::string& op, const std::set<int>& over,
                             const Phrase& body, const std::string& type) {
    std::set<int> left, reduced;
    std::set_difference(body.axes.begin(), body.axes.end(), over.begin(), over.end(), std::inserter(left, left.end()));
    std::set_intersection(body.axes.begin(), body.axes.end(), over.begin(), over.end(),
                          std::inserter(reduced, reduced.end()));
    if (reduced.empty()) return map(wanted, body, type);
    const double points = std::pow(largest_extent, static_cast<double>(reduced.size()));
    const double bound = op == "sum" ? body.bound * points : body.bound;
    const bool exact = body.exact && (body.whole || ((op == "max" || op == "min") && type.empty()));
    return define(wanted, op + list(reduced) + " ", body, left, bound, exact, type);
}

std::string ProgramWriter::text() {
    std::string inputs, outputs, body, sizes;
    std::set<int> are_outputs;
    const auto typed = [&](const Array& a) { return indexed(a) + (a.type.empty() ? "" : ": " + a.type); };
    const auto join = [](std::string& out, const std::string& more) { out += (out.empty() ? "" : ", ") + more; };
    for (std::size_t i = 0; i < arrays_.size(); ++i) {
        const Array& a = arrays_[i];
        const bool used = read_.contains(static_cast<int>(i));
        if (a.is_input && used) join(inputs, typed(a) + (a.value.empty() ? "" : " = " + a.value));
        if (a.is_input || (used && !chance(12))) continue;
        join(outputs, typed(a));
        are_outputs.insert(static_cast<int>(i));
    }
    for (const Equation& e : equations_) {
        const Array& a = arrays_[static_cast<std::size_t>(e.target)];
        body += "    " + (are_outputs.contains(e.target) ? indexed(a) : typed(a)) + " = " + e.right + "\n";
    }
    // A recipe may have wanted an axis and not used it.
    const auto occurs = [&](const std::string& name) {
        const auto in_word = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; };
        const std::string all = "(" + inputs + ")" + body;
        for (std::size_t at = all.find(name); at != std::string::npos; at = all.find(name, at + 1))
            if (!in_word(all[at - 1]) && !in_word(all[at + name.size()])) return true;
        return false;
    };
    for (const Axis& a : axes_)
        if (!a.size.empty() && occurs(a.name)) join(sizes, a.name + " = " + a.size);
    return fmt::format("random({}) -> {}\n{}{}", inputs, outputs, body, sizes.empty() ? "" : "sizes " + sizes + "\n");
}

}  // namespace napkin
