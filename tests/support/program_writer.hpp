#pragma once
// What a random program is written with: its axes and arrays so far, choices from one seed, and terms. A term knows on
// which axes it depends, how large it may become and whether any rounding touches it.
#include <cstdint>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "support/dtype.hpp"

namespace napkin {

/// A scalar expression as text; composite texts stand in parentheses or are calls.
struct Phrase {
    std::string text;
    std::set<int> axes;      ///< that its value depends on
    double bound = 1;        ///< about its largest magnitude for N(0, 1) inputs
    bool exact = false;      ///< no rounding touches it: it may be compared
    std::set<int> arrays{};  ///< that it reads
    bool whole = false;      ///< an integer; a whole constant is not, for its type is its partner's
};

Phrase number(double value);
Phrase whole_number(std::int64_t value);
Phrase operator+(const Phrase& a, const Phrase& b);
Phrase operator-(const Phrase& a, const Phrase& b);
Phrase operator*(const Phrase& a, const Phrase& b);
Phrase operator/(const Phrase& a, const Phrase& b);  ///< the bound takes |b| to be above about 1
Phrase call(const std::string& function, const Phrase& a, double bound);
Phrase call(const std::string& function, const Phrase& a, const Phrase& b, double bound);
/// A real number whose text names the parts as {0}, {1}, …; its axes and arrays are those of all parts.
Phrase composed(const std::string& text, const std::vector<Phrase>& parts, double bound);
/// The same of an integer made of integers.
Phrase composed_whole(const std::string& text, const std::vector<Phrase>& parts, double bound);
/// where(condition, a, b)
Phrase choose(const Phrase& condition, const Phrase& a, const Phrase& b);
/// The term brought below a bound by a factor.
Phrase limited(const Phrase& a, double bound);

class ProgramWriter {
public:
    /// Some inputs have one of the types, the others f32.
    ProgramWriter(std::uint64_t seed, std::vector<std::string> types)
        : random_(seed * 0x9E3779B97F4A7C15ULL + 11), types_(std::move(types)) {}

    // ---- choices
    int pick(int n) { return static_cast<int>(random_() % static_cast<std::uint64_t>(n < 1 ? 1 : n)); }
    bool chance(int percent) { return pick(100) < percent; }
    template <class T>
    T one_of(const std::vector<T>& list) {
        return list[static_cast<std::size_t>(pick(static_cast<int>(list.size())))];
    }

    // ---- axes
    int add_axis(const std::string& wanted, const std::string& size = "", int twin = -1);
    [[nodiscard]] int axes() const { return static_cast<int>(axes_.size()); }
    [[nodiscard]] std::string axis(int id) const { return axes_[static_cast<std::size_t>(id)].name; }
    /// An axis over the dimension of another; -1 for an axis with a size of its own.
    [[nodiscard]] int twin(int id) const { return axes_[static_cast<std::size_t>(id)].twin; }
    [[nodiscard]] bool plain(int id) const { return twin(id) < 0 && axes_[static_cast<std::size_t>(id)].size.empty(); }
    /// `count` plain axes other than those given, or as many as there are.
    std::set<int> some_axes(int count, const std::set<int>& without = {});
    /// An axis of an array that some equation reads, so that its size may be spoken of; -1 where there is none.
    int known_axis();
    /// "(t, k)"
    [[nodiscard]] std::string list(const std::set<int>& axes) const;

    // ---- arrays
    /// A new input over the axes, in random order.
    Phrase input(const std::set<int>& axes, std::string type = "");
    /// An array whose axes are all among `axes` and include all of `needed`, at its own axes; a new input where there
    /// is none.
    Phrase array(const std::set<int>& axes, const std::set<int>& needed = {});
    /// A scalar input that has a value of its own, so that the main diagram takes it for a constant.
    Phrase constant_input(const std::string& value);
    /// The arrays that hold integers, or those that hold real numbers.
    [[nodiscard]] std::vector<int> arrays(bool whole) const;
    [[nodiscard]] const std::vector<int>& axes_of(int array) const {
        return arrays_[static_cast<std::size_t>(array)].axes;
    }
    [[nodiscard]] Phrase read(int array) const;
    /// The array at places, one for each of its axes.
    [[nodiscard]] Phrase read_at(int array, const std::vector<Phrase>& places) const;
    /// A read of one array at its own axes, but for one at which `index` stands, a text over the given axes.
    [[nodiscard]] Phrase at(const Phrase& read, int axis, const std::string& index, const std::set<int>& over) const;

    // ---- equations
    [[nodiscard]] int equations() const { return static_cast<int>(equations_.size()); }
    /// name[…]: type = before + body, over the axes on the left.
    Phrase define(const std::string& wanted, const std::string& before, const Phrase& body, const std::set<int>& left,
                  double bound, bool exact = false, const std::string& type = "");
    Phrase map(const std::string& wanted, const Phrase& body, const std::string& type = "");
    /// op(over) body; an `over` that the body does not depend on is left out, and without any it is a map.
    Phrase reduce(const std::string& wanted, const std::string& op, const std::set<int>& over, const Phrase& body,
                  const std::string& type = "");

    /// The whole text: what nothing reads is an output, and now and then what something reads.
    std::string text();

private:
    struct Axis {
        std::string name, size;
        int twin = -1;
    };
    struct Array {
        std::string name, type;
        std::vector<int> axes;
        double bound = 1;
        bool exact = false, is_input = false, is_integer = false;
        std::string value{};  ///< of a scalar that has one
    };
    struct Equation {
        int target = 0;
        std::string right;
    };
    [[nodiscard]] std::string fresh(const std::string& wanted) const;
    [[nodiscard]] std::string indexed(const Array& array) const;
    std::vector<int> shuffled(const std::set<int>& axes);

    std::mt19937_64 random_;
    std::vector<std::string> types_;
    std::vector<Axis> axes_;
    std::vector<Array> arrays_;
    std::vector<Equation> equations_;
    std::set<int> read_;  ///< arrays that some equation reads
};

}  // namespace napkin
