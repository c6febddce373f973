#include "check/bounded_rows.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <unordered_map>

#include "algebra/expr_walk.hpp"
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

/// f(j) gives value and error of the operation at j; counts results that are not finite numbers well inside the range.
struct Pair {
    double value, error;
};
template <class F>
bool fill(double* value, double* error, std::int64_t n, double largest, F f) {
    std::int64_t wild = 0;
    for (std::int64_t j = 0; j < n; ++j) {
        const Pair p = f(j);
        value[j] = p.value;
        error[j] = p.error;
        wild += std::abs(p.value) + p.error <= largest ? 0 : 1;
    }
    return wild == 0;
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
    const auto row = [&](std::size_t i) -> const BoundedRow& { return nodes_[node.operands[i]].row; };
    const auto uniform = [&](std::size_t i) { return nodes_[node.operands[i]].uniform; };
    bool exact = true;
    for (std::size_t i = 0; i < node.operands.size(); ++i) {
        if (row(i).may != nullptr) return false;
        exact = exact && row(i).error == nullptr;
    }
    double *const value = node.value.data(), *const error = node.error.data();
    // What only picks or turns a sign keeps exact numbers exact.
    const auto* u0 = as<Unary>(node.e);
    const auto* b0 = as<Binary>(node.e);
    const bool picks = (u0 && (u0->op == UnaryOp::neg || u0->op == UnaryOp::abs)) ||
                       (b0 && (b0->op == BinaryOp::max || b0->op == BinaryOp::min)) || as<Select>(node.e);
    node.row = {value, picks && exact ? nullptr : error, nullptr};
    const Rounding rounding = rounding_;
    const double step = rounding_.step, smallest = rounding_.smallest, largest = rounding_.largest;

    if (const auto* u = as<Unary>(node.e)) {
        return with_numbers(row(0), uniform(0), [&](auto a) {
            switch (u->op) {
                case UnaryOp::neg:
                    return fill(value, error, n, largest, [=](std::int64_t j) { return Pair{-a.v(j), a.e(j)}; });
                case UnaryOp::abs:
                    return fill(value, error, n, largest, [=](std::int64_t j) { return Pair{std::abs(a.v(j)), a.e(j)}; });
                case UnaryOp::exp: {
                    const double least = log_of_nothing(rounding_);
                    // expm1(t) ≤ t + t² while t ≤ 1; past that each number is done by itself.
                    return fill(value, error, n, largest, [=](std::int64_t j) {
                        const double v = std::exp(a.v(j)), t = a.e(j) + step * std::abs(a.v(j));
                        if (a.v(j) + t < least) return Pair{v, nothing(a.v(j) + t)};
                        return Pair{v, t <= 1 ? v * (t + t * t + 2 * step) + 2 * smallest : 2 * largest};
                    });
                }
                default: return false;
            }
        });
    }
    if (const auto* b = as<Binary>(node.e)) {
        const bool whole = node.whole && exact;
        return with_numbers(row(0), uniform(0), [&](auto x) {
            return with_numbers(row(1), uniform(1), [&](auto y) {
                const auto compare = [&](auto holds) {
                    std::int64_t close = 0;
                    for (std::int64_t j = 0; j < n; ++j) {
                        value[j] = holds(x.v(j), y.v(j)) ? 1 : 0;
                        const double reach = x.e(j) + y.e(j);
                        close += reach == 0 || std::abs(x.v(j) - y.v(j)) > reach ? 0 : 1;
                    }
                    node.row.error = nullptr;
                    return close == 0;
                };
                // Sums, differences and products of whole numbers are exact while they are small.
                const auto exactly = [&](auto f) {
                    std::int64_t large = 0;
                    for (std::int64_t j = 0; j < n; ++j) {
                        value[j] = f(x.v(j), y.v(j));
                        large += std::abs(value[j]) <= rounding_.whole ? 0 : 1;
                    }
                    node.row.error = nullptr;
                    return large == 0;
                };
                const auto extreme = [&](auto before) {
                    return fill(value, error, n, largest, [=](std::int64_t j) {
                        const double gap = std::abs(x.v(j) - y.v(j)), reach = x.e(j) + y.e(j);
                        const bool first = before(x.v(j), y.v(j));
                        const double v = first ? x.v(j) : y.v(j), e = first ? x.e(j) : y.e(j);
                        return Pair{v, gap > reach ? e : std::max(x.e(j), y.e(j)) + (gap - gap)};
                    });
                };
                switch (b->op) {
                    case BinaryOp::add:
                        if (whole) return exactly([](double p, double q) { return p + q; });
                        return fill(value, error, n, largest, [=](std::int64_t j) {
                            const double v = x.v(j) + y.v(j), e = x.e(j) + y.e(j) + step * std::abs(v);
                            return Pair{v, e + flushed(v, e, rounding)};
                        });
                    case BinaryOp::sub:
                        if (whole) return exactly([](double p, double q) { return p - q; });
                        return fill(value, error, n, largest, [=](std::int64_t j) {
                            const double v = x.v(j) - y.v(j), e = x.e(j) + y.e(j) + step * std::abs(v);
                            return Pair{v, e + flushed(v, e, rounding)};
                        });
                    case BinaryOp::mul:
                        if (whole) return exactly([](double p, double q) { return p * q; });
                        if (exact)
                            return fill(value, error, n, largest, [=](std::int64_t j) {
                                const double v = x.v(j) * y.v(j);
                                return Pair{v, step * std::abs(v) + (v != 0 ? smallest : 0)};
                            });
                        return fill(value, error, n, largest, [=](std::int64_t j) {
                            const double v = x.v(j) * y.v(j),
                                         carried = std::abs(x.v(j)) * y.e(j) + std::abs(y.v(j)) * x.e(j);
                            return Pair{v, carried + x.e(j) * y.e(j) + step * std::abs(v) + (v != 0 ? smallest : 0)};
                        });
                    case BinaryOp::div:
                        return fill(value, error, n, largest, [=](std::int64_t j) {
                            const double v = x.v(j) / y.v(j), left = std::abs(y.v(j)) - y.e(j);
                            const double e = (x.e(j) + std::abs(v) * y.e(j)) / left + step * std::abs(v) + smallest;
                            return Pair{v, left > 0 ? e : 2 * largest};
                        });
                    case BinaryOp::max: return extreme([](double p, double q) { return p > q; });
                    case BinaryOp::min: return extreme([](double p, double q) { return p < q; });
                    case BinaryOp::lt: return compare([](double p, double q) { return p < q; });
                    case BinaryOp::le: return compare([](double p, double q) { return p <= q; });
                    case BinaryOp::gt: return compare([](double p, double q) { return p > q; });
                    case BinaryOp::ge: return compare([](double p, double q) { return p >= q; });
                    case BinaryOp::eq: return compare([](double p, double q) { return p == q; });
                    case BinaryOp::ne: return compare([](double p, double q) { return p != q; });
                    case BinaryOp::logical_and:
                    case BinaryOp::logical_or: {
                        if (!exact) return false;
                        const bool is_and = b->op == BinaryOp::logical_and;
                        node.row.error = nullptr;
                        for (std::int64_t j = 0; j < n; ++j) {
                            const bool p = x.v(j) != 0, q = y.v(j) != 0;
                            value[j] = (is_and ? p && q : p || q) ? 1 : 0;
                        }
                        return true;
                    }
                    default: return false;
                }
            });
        });
    }
    if (as<Select>(node.e) && row(0).error == nullptr) {
        const double* const condition = row(0).value;
        const std::int64_t by = uniform(0) ? 0 : 1;
        return with_numbers(row(1), uniform(1), [&](auto x) {
            return with_numbers(row(2), uniform(2), [&](auto y) {
                for (std::int64_t j = 0; j < n; ++j) {
                    const bool yes = condition[by * j] != 0;
                    value[j] = yes ? x.v(j) : y.v(j);
                    error[j] = yes ? x.e(j) : y.e(j);
                }
                return true;
            });
        });
    }
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
