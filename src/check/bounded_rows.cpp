#include "check/bounded_rows.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <unordered_map>

#include "algebra/expr_walk.hpp"
#include "algebra/scalar_function.hpp"
#include "support/result.hpp"

namespace napkin {

namespace {

constexpr std::array<double, BoundedRows::max_row> zeros{};

/// An operand's numbers in a loop: step 0 where one stands for the whole row.
template <int step>
struct Numbers {
    const double *value, *error;
    [[nodiscard]] double v(std::int64_t j) const { return value[step * j]; }
    [[nodiscard]] double e(std::int64_t j) const { return error[step * j]; }
};

/// Calls f with the operand's numbers, at a step that the compiler knows.
template <class F>
auto with_numbers(const BoundedRow& row, bool uniform, F f) {
    const double* error = row.error ? row.error : zeros.data();
    return uniform ? f(Numbers<0>{row.value, error}) : f(Numbers<1>{row.value, error});
}

/// Where a loop writes the row of an operation, and how what runs rounds.
struct RowTarget {
    double *value, *error;
    std::int64_t n;
    Rounding rounding;
};

/// f(j) gives value and error of the operation at j; false where a result is not a finite number well inside the range.
struct Pair {
    double value, error;
};
template <class F>
bool fill(RowTarget to, F f) {
    std::int64_t wild = 0;
    for (std::int64_t j = 0; j < to.n; ++j) {
        const Pair p = f(j);
        to.value[j] = p.value;
        to.error[j] = p.error;
        wild += std::abs(p.value) + p.error <= to.rounding.largest ? 0 : 1;
    }
    return wild == 0;
}

/// f(j) gives the whole number at j, exact while it is small; false where one is large.
template <class F>
bool fill_whole(RowTarget to, F f) {
    std::int64_t large = 0;
    for (std::int64_t j = 0; j < to.n; ++j) {
        to.value[j] = f(j);
        large += std::abs(to.value[j]) <= to.rounding.whole ? 0 : 1;
    }
    return large == 0;
}

template <class X>
bool fill_unary(UnaryOp op, X x, RowTarget to) {
    const double step = to.rounding.step, smallest = to.rounding.smallest, largest = to.rounding.largest;
    switch (op) {
        case UnaryOp::neg: return fill(to, [=](std::int64_t j) { return Pair{-x.v(j), x.e(j)}; });
        case UnaryOp::abs: return fill(to, [=](std::int64_t j) { return Pair{std::abs(x.v(j)), x.e(j)}; });
        case UnaryOp::exp: {
            const double least = log_of_nothing(to.rounding);
            // expm1(t) ≤ t + t² while t ≤ 1; past that each number is done by itself.
            return fill(to, [=](std::int64_t j) {
                const double v = std::exp(x.v(j)), t = x.e(j) + step * std::abs(x.v(j));
                if (x.v(j) + t < least) return Pair{v, nothing(x.v(j) + t)};
                return Pair{v, t <= 1 ? v * (t + t * t + 2 * step) + 2 * smallest : 2 * largest};
            });
        }
        default: return false;
    }
}

/// f: plus or minus. `whole`: all operands are exact whole numbers.
template <class X, class Y, class F>
bool fill_sum(X x, Y y, bool whole, RowTarget to, F f) {
    if (whole) return fill_whole(to, [=](std::int64_t j) { return f(x.v(j), y.v(j)); });
    return fill(to, [=, step = to.rounding.step](std::int64_t j) {
        const double v = f(x.v(j), y.v(j)), e = x.e(j) + y.e(j) + step * std::abs(v);
        return Pair{v, e + flushed(v, e, to.rounding)};
    });
}

template <class X, class Y>
bool fill_product(X x, Y y, bool exact, bool whole, RowTarget to) {
    const double step = to.rounding.step, smallest = to.rounding.smallest;
    if (whole) return fill_whole(to, [=](std::int64_t j) { return x.v(j) * y.v(j); });
    if (exact)
        return fill(to, [=](std::int64_t j) {
            const double v = x.v(j) * y.v(j);
            return Pair{v, step * std::abs(v) + (v != 0 ? smallest : 0)};
        });
    return fill(to, [=](std::int64_t j) {
        const double v = x.v(j) * y.v(j), carried = std::abs(x.v(j)) * y.e(j) + std::abs(y.v(j)) * x.e(j);
        return Pair{v, carried + x.e(j) * y.e(j) + step * std::abs(v) + (v != 0 ? smallest : 0)};
    });
}

template <class X, class Y>
bool fill_quotient(X x, Y y, RowTarget to) {
    const double step = to.rounding.step, smallest = to.rounding.smallest, largest = to.rounding.largest;
    return fill(to, [=](std::int64_t j) {
        const double v = x.v(j) / y.v(j), left = std::abs(y.v(j)) - y.e(j);
        const double e = (x.e(j) + std::abs(v) * y.e(j)) / left + step * std::abs(v) + smallest;
        return Pair{v, left > 0 ? e : 2 * largest};
    });
}

/// Maxima or minima: the one of two numbers that is `before` the other.
template <class X, class Y, class Before>
bool fill_extreme(X x, Y y, RowTarget to, Before before) {
    return fill(to, [=](std::int64_t j) {
        const double gap = std::abs(x.v(j) - y.v(j)), reach = x.e(j) + y.e(j);
        const bool first = before(x.v(j), y.v(j));
        const double v = first ? x.v(j) : y.v(j), e = first ? x.e(j) : y.e(j);
        return Pair{v, gap > reach ? e : std::max(x.e(j), y.e(j)) + (gap - gap)};
    });
}

/// False where two numbers are compared within their errors.
template <class X, class Y, class Holds>
bool fill_comparison(X x, Y y, RowTarget to, Holds holds) {
    std::int64_t close = 0;
    for (std::int64_t j = 0; j < to.n; ++j) {
        to.value[j] = holds(x.v(j), y.v(j)) ? 1 : 0;
        const double reach = x.e(j) + y.e(j);
        close += reach == 0 || std::abs(x.v(j) - y.v(j)) > reach ? 0 : 1;
    }
    return close == 0;
}

template <class X, class Y, class F>
bool fill_logical(X x, Y y, bool exact, RowTarget to, F f) {
    if (!exact) return false;
    for (std::int64_t j = 0; j < to.n; ++j) to.value[j] = f(x.v(j) != 0, y.v(j) != 0) ? 1 : 0;
    return true;
}

/// `exact`: no operand has an error. `whole`: they are whole numbers, too.
template <class X, class Y>
bool fill_binary(BinaryOp op, X x, Y y, bool exact, bool whole, RowTarget to) {
    switch (op) {
        case BinaryOp::add: return fill_sum(x, y, whole, to, std::plus<>());
        case BinaryOp::sub: return fill_sum(x, y, whole, to, std::minus<>());
        case BinaryOp::mul: return fill_product(x, y, exact, whole, to);
        case BinaryOp::div: return fill_quotient(x, y, to);
        case BinaryOp::max: return fill_extreme(x, y, to, std::greater<>());
        case BinaryOp::min: return fill_extreme(x, y, to, std::less<>());
        case BinaryOp::lt: return fill_comparison(x, y, to, std::less<>());
        case BinaryOp::le: return fill_comparison(x, y, to, std::less_equal<>());
        case BinaryOp::gt: return fill_comparison(x, y, to, std::greater<>());
        case BinaryOp::ge: return fill_comparison(x, y, to, std::greater_equal<>());
        case BinaryOp::eq: return fill_comparison(x, y, to, std::equal_to<>());
        case BinaryOp::ne: return fill_comparison(x, y, to, std::not_equal_to<>());
        case BinaryOp::logical_and: return fill_logical(x, y, exact, to, std::logical_and<>());
        case BinaryOp::logical_or: return fill_logical(x, y, exact, to, std::logical_or<>());
        default: return false;
    }
}

template <class X, class Y>
bool fill_choice(const double* condition, bool uniform, X x, Y y, RowTarget to) {
    const std::int64_t by = uniform ? 0 : 1;
    for (std::int64_t j = 0; j < to.n; ++j) {
        const bool yes = condition[by * j] != 0;
        to.value[j] = yes ? x.v(j) : y.v(j);
        to.error[j] = yes ? x.e(j) : y.e(j);
    }
    return true;
}

/// Whether results of the operation that were computed together have errors. What only picks or turns a sign keeps
/// exact numbers exact.
bool has_errors(const Expr& e, bool exact, bool whole) {
    if (const auto* u = as<Unary>(e)) return !exact || (u->op != UnaryOp::neg && u->op != UnaryOp::abs);
    const auto* b = as<Binary>(e);
    if (!b) return !exact;
    switch (b->op) {
        case BinaryOp::max:
        case BinaryOp::min: return !exact;
        case BinaryOp::add:
        case BinaryOp::sub:
        case BinaryOp::mul: return !whole;
        default: return b->op == BinaryOp::div;  // comparisons and logic have none
    }
}

/// Whether the operation gives whole numbers from whole operands (`all` of them are) or from any.
bool whole_by_form(const Expr& e, bool all) {
    if (const auto* u = as<Unary>(e)) {
        if (gives_truth(u->op) || gives_integer(u->op)) return true;
        return all && (u->op == UnaryOp::neg || u->op == UnaryOp::abs);
    }
    if (const auto* b = as<Binary>(e)) {
        switch (b->op) {
            case BinaryOp::div: return false;
            case BinaryOp::pow: {
                const auto* power = as<Constant>(b->b);
                return all && power && power->value >= 0 && power->value <= 8;
            }
            case BinaryOp::add:
            case BinaryOp::sub:
            case BinaryOp::mul:
            case BinaryOp::min:
            case BinaryOp::max:
            case BinaryOp::floor_div:
            case BinaryOp::mod: return all;
            default: return true;  // comparisons and logic
        }
    }
    if (const auto* c = as<Cast>(e)) return !is_float(c->type);
    return all;
}

/// Whether the operator gives integers and takes none but integers: comparisons of real numbers and truths are real
/// here.
bool is_whole_operator(const Expr& e, Kinds& kinds) {
    const Kind kind = kinds(e);
    if (!is_integer(kind)) return false;
    if (const auto* u = as<Unary>(e)) return !gives_truth(u->op);
    const auto* b = as<Binary>(e);
    if (!b) return true;
    if (is_comparison(b->op)) return is_integer(kinds(b->a)) && is_integer(kinds(b->b));
    return b->op != BinaryOp::logical_and && b->op != BinaryOp::logical_or;
}

/// The whole array, whose row-major cells `cells` has.
Operand integer_array(const Read& element, Operand cells, const Diagram& diagram, const Extents& extents) {
    const Array& array = diagram.array(element.array);
    cells.dimensions.resize(array.axes.size());
    std::int64_t stride = 1;
    for (std::size_t i = array.axes.size(); i-- > 0;) {
        const std::int64_t extent = extents[array.axes[i]];
        cells.dimensions[i] = {0, extent, stride};
        stride *= extent;
    }
    return cells;
}

}  // namespace

BoundedRows::BoundedRows(const Expr& root, AxisId row_axis, const Diagram& diagram, const Extents& extents,
                         const BoundedValues& values, const Rounding& rounding, Kind wanted)
    : rounding_(rounding) {
    Kinds kinds = kinds_of(diagram);
    const auto values_of = [&](const Read& r) {
        return integer_array(r, operand_of(values.value[r.array]), diagram, extents);
    };
    // Integer arithmetic on exact numbers is exact: it is left to the plain evaluation, and so is what is read.
    const auto is_leaf = [&](const Expr& e) {
        if (as<Read>(e) || as<Constant>(e) || as<AxisIndex>(e) || as<AxisSize>(e)) return true;
        if (!is_integer(kinds(e))) return false;
        bool exact = true;
        visit(e, [&](const Expr& part) {
            if (const auto* r = as<Read>(part)) exact = exact && values.is_exact(r->array);
            exact = exact && is_integer(kinds(part));
        });
        return exact;
    };
    const auto add_leaf = [&](Node& node) {
        node.leaf = static_cast<std::ptrdiff_t>(leaves_.size());
        node.uniform = !depends_on_axis(node.e, row_axis);
        const RowProgram<double>::Options as_real{row_axis, Kind::real, false};
        Leaf leaf{RowProgram<double>(node.e, kinds, extents, values_of, as_real), {}, {}, {}, is_integer(kinds(node.e))};
        if (const auto* r = as<Read>(node.e)) {
            // Errors and states lie as the values do, but are real whatever these are.
            Kinds real([&](ArrayId a) { return a == r->array ? DType::f64 : diagram.array(a).type; });
            const auto part = [&](const std::vector<double>& cells) {
                const auto find = [&](const Read& other) {
                    return other.array == r->array ? integer_array(other, {cells.data(), nullptr, {}}, diagram, extents)
                                                   : values_of(other);
                };
                return RowProgram<double>(node.e, real, extents, find, as_real);
            };
            const auto a = static_cast<std::size_t>(r->array);
            if (!values.error[a].empty()) leaf.error.push_back(part(values.error[a]));
            if (!values.may[a].empty()) leaf.may.push_back(part(values.may[a]));
            node.whole = values.whole[a];
        } else if (const auto* c = as<Constant>(node.e)) {
            node.whole = c->value == std::floor(c->value) && std::abs(c->value) <= rounding_.whole;
            // What runs has the nearest number of its type. A function of a huge argument tells the two apart.
            const double size = std::abs(c->value);
            const double off = !std::isfinite(size)        ? 0
                               : size < rounding_.smallest ? size
                                                           : std::abs(round_to(rounding_.type, c->value) - c->value);
            if (off > 0 && std::isfinite(off)) node.error.assign(1, off);
        } else {
            node.whole = true;
        }
        if (leaf.is_integer && leaf.error.empty()) node.error.resize(max_row);
        leaves_.push_back(std::move(leaf));
    };
    const auto want_integers = [&](Node& node) {
        if (node.wants_integers) return;
        node.wants_integers = true;
        node.integers.resize(max_row);
        if (node.leaf < 0) return;
        const RowProgram<double>::Options as_integers{row_axis, Kind::i64, false};
        leaves_[at(node.leaf)].integers.emplace_back(node.e, kinds, extents, values_of, as_integers);
    };
    std::unordered_map<Expr, std::size_t, ExprHash, ExprEqual> known;
    const std::function<std::size_t(const Expr&)> add = [&](const Expr& e) -> std::size_t {
        if (const auto found = known.find(e); found != known.end()) return found->second;
        Node node;
        node.e = e;
        node.kind = kinds(e);
        if (is_leaf(e)) {
            add_leaf(node);
        } else {
            // A cast to a type that holds whatever is computed does nothing.
            const auto* c = as<Cast>(e);
            if (c && is_float(c->type) && epsilon(c->type) <= epsilon(rounding_.type)) return known[e] = add(c->a);
            bool whole = true, first = true;
            for_each_child(*e, [&](const Expr& child) {
                node.operands.push_back(add(child));
                const Node& operand = nodes_[node.operands.back()];
                node.uniform = node.uniform && operand.uniform;
                // A condition is not part of what is chosen.
                whole = whole && (operand.whole || (first && as<Select>(e)));
                first = false;
            });
            node.whole = whole_by_form(e, whole);
            node.value.resize(max_row);
            node.error.resize(max_row);
            node.is_whole_arithmetic = is_whole_operator(e, kinds);
            if (node.is_whole_arithmetic) {
                node.integers.resize(max_row);
                for (const std::size_t operand : node.operands)
                    if (is_integer(nodes_[operand].kind)) want_integers(nodes_[operand]);
            }
        }
        nodes_.push_back(std::move(node));
        return known[e] = nodes_.size() - 1;
    };
    internal_check(add(root) + 1 == nodes_.size(), "the result of bounded rows is not their last node");
    if (wanted != Kind::real) want_integers(nodes_.back());
}

void BoundedRows::compute(const std::vector<std::int64_t>& point, std::int64_t n) {
    for (Node& node : nodes_) {
        const std::int64_t count = node.uniform ? 1 : n;
        if (node.leaf >= 0) {
            read_leaf(node, point, count);
        } else if (node.is_whole_arithmetic) {
            compute_integers(node, count);
        } else if (!compute_together(node, count)) {
            compute_each(node, count);
        }
        if (node.wants_integers && !node.is_whole_arithmetic) read_integers(node, point, count);
    }
}

const BoundedWhole* BoundedRows::run_integer(const std::vector<std::int64_t>& point, std::int64_t n) {
    compute(point, n);
    std::vector<BoundedWhole>& result = nodes_.back().integers;
    if (nodes_.back().uniform) std::fill_n(result.begin(), n, BoundedWhole(result.front()));
    return result.data();
}

BoundedRow BoundedRows::run(const std::vector<std::int64_t>& point, std::int64_t n) {
    compute(point, n);
    Node& result = nodes_.back();
    if (!result.uniform || n == 1) return result.row;
    const Bounded x = result.row.at(0);
    result.value.assign(max_row, x.value);
    result.row.value = result.value.data();
    if (result.row.error) {
        result.error.assign(max_row, x.error);
        result.row.error = result.error.data();
    }
    if (result.row.may) {
        result.may.assign(max_row, x.may);
        result.row.may = result.may.data();
    }
    return result.row;
}

void BoundedRows::read_leaf(Node& node, const std::vector<std::int64_t>& point, std::int64_t n) {
    Leaf& leaf = leaves_[at(node.leaf)];
    node.row = {leaf.value.run(point, n), nullptr, nullptr};
    if (!leaf.error.empty()) node.row.error = leaf.error[0].run(point, n);
    if (!leaf.may.empty()) node.row.may = leaf.may[0].run(point, n);
    if (as<Constant>(node.e) && !node.error.empty() && !leaf.is_integer) node.row.error = node.error.data();
    if (!leaf.is_integer || !leaf.error.empty()) return;
    // An integer that becomes a real number rounds where it is large.
    bool large = false;
    for (std::int64_t j = 0; j < n; ++j) {
        const double size = std::abs(node.row.value[j]);
        node.error[at(j)] = size > rounding_.whole ? rounding_.step * size : 0;
        large = large || size > rounding_.whole;
    }
    if (large) node.row.error = node.error.data();
}

bool BoundedRows::compute_together(Node& node, std::int64_t n) {
    bool exact = true;
    for (const std::size_t operand : node.operands) {
        if (nodes_[operand].row.may != nullptr) return false;
        exact = exact && nodes_[operand].row.error == nullptr;
    }
    const auto operand = [&](std::size_t i) -> const Node& { return nodes_[node.operands[i]]; };
    const auto numbers = [&](std::size_t i, auto f) { return with_numbers(operand(i).row, operand(i).uniform, f); };
    const bool whole = node.whole && exact;
    const RowTarget to{node.value.data(), node.error.data(), n, rounding_};
    node.row = {to.value, has_errors(node.e, exact, whole) ? to.error : nullptr, nullptr};
    if (const auto* u = as<Unary>(node.e)) return numbers(0, [&](auto x) { return fill_unary(u->op, x, to); });
    if (const auto* b = as<Binary>(node.e))
        return numbers(
            0, [&](auto x) { return numbers(1, [&](auto y) { return fill_binary(b->op, x, y, exact, whole, to); }); });
    if (as<Select>(node.e) && operand(0).row.error == nullptr)
        return numbers(1, [&](auto x) {
            return numbers(2, [&](auto y) { return fill_choice(operand(0).row.value, operand(0).uniform, x, y, to); });
        });
    return false;
}

/// The row of a leaf or of a truth as integers.
void BoundedRows::read_integers(Node& node, const std::vector<std::int64_t>& point, std::int64_t n) {
    const std::int64_t* value = node.leaf >= 0 ? leaves_[at(node.leaf)].integers[0].run_integer(point, n) : nullptr;
    const bool exact = node.leaf >= 0 && leaves_[at(node.leaf)].error.empty();
    for (std::int64_t j = 0; j < n; ++j) {
        BoundedWhole& out = node.integers[at(j)];
        out = exact ? BoundedWhole::exactly(value[j]) : truncated(DType::i64, node.row.at(j));
        if (value && !exact) out = {value[j], std::min(out.low, value[j]), std::max(out.high, value[j])};
    }
}

void BoundedRows::compute_integers(Node& node, std::int64_t n) {
    node.may.resize(max_row);
    bool any_error = false, any_special = false;
    for (std::int64_t j = 0; j < n; ++j) {
        const BoundedWhole x = node.integers[at(j)] = apply_whole_at(node, j);
        const Bounded real = as_real(node.kind, x, rounding_);
        node.value[at(j)] = real.value;
        node.error[at(j)] = real.error;
        node.may[at(j)] = real.may;
        any_error |= real.error != 0;
        any_special |= real.may != 0;
    }
    node.row = {node.value.data(), any_error ? node.error.data() : nullptr, any_special ? node.may.data() : nullptr};
}

BoundedWhole BoundedRows::apply_whole_at(const Node& node, std::int64_t j) const {
    const auto place = [&](std::size_t i) { return nodes_[node.operands[i]].uniform ? 0 : j; };
    const auto real = [&](std::size_t i) { return nodes_[node.operands[i]].row.at(place(i)); };
    const auto whole = [&](std::size_t i, Kind kind) {
        return wrapped(kind, nodes_[node.operands[i]].integers[at(place(i))]);
    };
    if (const auto* u = as<Unary>(node.e)) return apply_integer(u->op, node.kind, whole(0, node.kind));
    if (const auto* b = as<Binary>(node.e)) {
        // Integers of any width are compared as they are.
        const Kind kind = is_comparison(b->op) ? Kind::i64 : node.kind;
        return apply_integer(b->op, kind, whole(0, kind), whole(1, kind));
    }
    if (as<Select>(node.e)) return select_whole(whole_truth(real(0)), whole(1, node.kind), whole(2, node.kind));
    const DType type = std::get<Cast>(node.e->v).type;
    return is_integer(nodes_[node.operands[0]].kind) ? wrapped(type, whole(0, Kind::i64)) : truncated(type, real(0));
}

void BoundedRows::compute_each(Node& node, std::int64_t n) {
    node.may.resize(max_row);
    bool any_error = false, any_special = false;
    for (std::int64_t j = 0; j < n; ++j) {
        const auto k = static_cast<std::size_t>(j);
        const Bounded x = apply_at(node, j);
        node.value[k] = x.value;
        node.error[k] = x.error;
        node.may[k] = x.may;
        any_error |= x.error != 0;
        any_special |= x.may != 0;
    }
    node.row = {node.value.data(), any_error ? node.error.data() : nullptr, any_special ? node.may.data() : nullptr};
}

Bounded BoundedRows::apply_at(const Node& node, std::int64_t j) const {
    const auto operand = [&](std::size_t i) {
        const Node& from = nodes_[node.operands[i]];
        return from.row.at(from.uniform ? 0 : j);
    };
    if (const auto* u = as<Unary>(node.e)) return apply(u->op, operand(0), rounding_);
    if (const auto* b = as<Binary>(node.e)) {
        Bounded x = operand(0), y = operand(1);
        // Whatever a value is, it is the same on both sides.
        if (is_comparison(b->op) && equal(b->a, b->b)) x.error = y.error = 0;
        return apply(b->op, x, y, rounding_, node.whole);
    }
    if (as<Select>(node.e)) return select(operand(0), operand(1), operand(2));
    return cast(std::get<Cast>(node.e->v).type, operand(0));
}

}  // namespace napkin
