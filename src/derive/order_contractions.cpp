// The order of a contraction as in a query plan: the best way to contract each subset of the operands, from the best
// ways to contract its two halves. What an operand alone has is summed before it meets another.
#include <fmt/format.h>

#include <bit>
#include <limits>
#include <set>
#include <tuple>

#include "derive/normal_form.hpp"
#include "derive/replay.hpp"
#include "derive/weigh.hpp"
#include "diagram/product.hpp"
#include "support/ranges.hpp"

namespace napkin {
namespace {
using Axes = std::set<AxisId>;
using Subset = std::uint32_t;

constexpr std::size_t most_exact = 8;
/// An order is worth other equations if its largest step has this many times fewer points than the sum at once. A
/// factor that only moves out of the sum is left to streaming.
constexpr double least_gain = 2;

/// One operand or two contracted ones, with what is left of their axes.
struct Tree {
    Expr operand = {};  ///< of a leaf
    int left = -1, right = -1;
    Axes before, after = {};  ///< axes of what is multiplied, and of the result: the difference is summed
    double flops = 0, stored = 0;
    double largest = 0;  ///< points of the largest step
    double across = 0;   ///< points of operands that steps do not sum along their last axis
};

class Contraction {
public:
    Contraction(const Diagram& diagram, const Equation& e, std::vector<Expr> operands, const std::vector<double>& sizes)
        : equation_(e), operands_(std::move(operands)), sizes_(sizes) {
        const auto& target = diagram.array(e.target).axes;
        target_.insert(target.begin(), target.end());
    }

    /// Points of all in one sum, where each takes a multiplication for every operand but one, and an addition.
    [[nodiscard]] double points_in_one() const {
        Axes all = target_;
        all.insert(equation_.reduce_axes.begin(), equation_.reduce_axes.end());
        return points(all);
    }
    [[nodiscard]] double flops_in_one() const { return points_in_one() * static_cast<double>(operands_.size()); }

    /// The tree with the fewest FLOPs; among those the one that stores least.
    int best() { return operands_.size() <= most_exact ? exact() : greedy(); }
    /// The same among those of which each step sums. None where there is no such tree, or it takes as many FLOPs as the
    /// sum at once.
    std::optional<int> nested() {
        if (operands_.size() < 3 || operands_.size() > most_exact) return std::nullopt;
        is_nested_ = true;
        const int root = exact();
        return tree(root).flops < flops_in_one() ? std::optional(root) : std::nullopt;
    }
    [[nodiscard]] const Tree& tree(int id) const { return trees_[at(id)]; }
    [[nodiscard]] const Axes& target() const { return target_; }

private:
    const Equation& equation_;
    std::vector<Expr> operands_;
    const std::vector<double>& sizes_;
    Axes target_;
    bool is_nested_ = false;  ///< whether each step has to sum
    std::vector<Tree> trees_;

    [[nodiscard]] double points(const Axes& axes) const {
        return product<double>(axes, [&](AxisId a) { return sizes_[at(a)]; });
    }

    [[nodiscard]] Axes axes_of(const Expr& e) const {
        const auto free = free_axes(e);
        return {free.begin(), free.end()};
    }

    /// The axes of some operands that the result or another operand still needs.
    [[nodiscard]] Axes kept(const Axes& axes, Subset inside) const {
        Axes out;
        for (const AxisId a : axes) {
            bool needed = target_.contains(a);
            for (std::size_t i = 0; i < operands_.size() && !needed; ++i)
                needed = !((inside >> i) & 1U) && depends_on_axis(operands_[i], a);
            if (needed) out.insert(a);
        }
        return out;
    }

    int leaf(std::size_t i) {
        Tree t;
        t.operand = operands_[i];
        t.before = axes_of(t.operand);
        t.after = kept(t.before, Subset{1} << i);
        if (t.after != t.before) t.flops = t.largest = points(t.before), t.stored = points(t.after);
        trees_.push_back(t);
        return static_cast<int>(trees_.size()) - 1;
    }

    [[nodiscard]] Tree joined(int left, int right, Subset inside) const {
        Tree t{.left = left, .right = right, .before = tree(left).after};
        t.before.insert(tree(right).after.begin(), tree(right).after.end());
        t.after = kept(t.before, inside);
        const bool sums = t.after != t.before;
        t.flops = tree(left).flops + tree(right).flops + points(t.before) * (sums ? 2 : 1);
        if (is_nested_ && !sums) t.flops = std::numeric_limits<double>::infinity();
        t.across = tree(left).across + tree(right).across + across(tree(left), t) + across(tree(right), t);
        t.stored = tree(left).stored + tree(right).stored + points(t.after);
        t.largest = std::max({points(t.before), tree(left).largest, tree(right).largest});
        return t;
    }

    /// Points of an operand that the step does not sum along its last axis, which is contiguous.
    [[nodiscard]] double across(const Tree& operand, const Tree& step) const {
        const auto* r = is_nested_ && operand.operand ? as<Read>(operand.operand) : nullptr;
        const AxisId last = r && !r->indices.empty() ? r->indices.back().single_axis() : AxisId();
        return last < 0 || !step.after.contains(last) ? 0 : points(operand.after);
    }

    static bool better(const Tree& a, const Tree& b) {
        return std::tie(a.flops, a.stored, a.across) < std::tie(b.flops, b.stored, b.across);
    }

    int exact() {
        const Subset all = (Subset{1} << operands_.size()) - 1;
        std::vector<int> of(all + 1, -1);
        for (std::size_t i = 0; i < operands_.size(); ++i) of[Subset{1} << i] = leaf(i);
        for (Subset s = 1; s <= all; ++s) {
            if (std::has_single_bit(s)) continue;
            Tree found;
            found.flops = found.stored = std::numeric_limits<double>::infinity();
            // Each pair once: the half that holds the lowest operand stands left.
            for (Subset half = (s - 1) & s; half != 0; half = (half - 1) & s) {
                if (!(half & (s & (~s + 1)))) continue;
                const Tree t = joined(of[half], of[s & ~half], s);
                if (better(t, found)) found = t;
            }
            trees_.push_back(found);
            of[s] = static_cast<int>(trees_.size()) - 1;
        }
        return of[all];
    }

    int greedy() {
        std::vector<std::pair<int, Subset>> open;
        for (std::size_t i = 0; i < operands_.size(); ++i) open.emplace_back(leaf(i), Subset{1} << i);
        while (open.size() > 1) {
            Tree found;
            found.flops = std::numeric_limits<double>::infinity();
            std::size_t first = 0, second = 1;
            double least = std::numeric_limits<double>::infinity();
            for (std::size_t i = 0; i < open.size(); ++i)
                for (std::size_t k = i + 1; k < open.size(); ++k) {
                    const Tree t = joined(open[i].first, open[k].first, open[i].second | open[k].second);
                    const double added = t.flops - tree(open[i].first).flops - tree(open[k].first).flops;
                    if (added >= least) continue;
                    least = added, found = t, first = i, second = k;
                }
            trees_.push_back(found);
            open[first] = {static_cast<int>(trees_.size()) - 1, open[first].second | open[second].second};
            open.erase(open.begin() + static_cast<std::ptrdiff_t>(second));
        }
        return open.front().first;
    }
};

/// Writes the equations of a tree before the one that it stands for.
class Writer {
public:
    Writer(Diagram& diagram, const Equation& e, const Contraction& contraction) : d_(diagram), e_(e), c_(contraction) {}

    std::vector<Equation> equations(int root) {
        const Tree& t = c_.tree(root);
        Equation last = e_;
        last.body = binary(BinaryOp::mul, value(t.left), value(t.right));
        last.reduce_axes.clear();
        std::set_difference(t.before.begin(), t.before.end(), t.after.begin(), t.after.end(),
                            std::back_inserter(last.reduce_axes));
        // What was summed before leaves a map.
        if (last.reduce_axes.empty()) last.reduce.reset();
        out_.push_back(last);
        return std::move(out_);
    }

private:
    Diagram& d_;
    const Equation& e_;
    const Contraction& c_;
    std::vector<Equation> out_;

    Expr value(int id) {
        const Tree& t = c_.tree(id);
        const Expr body = t.operand ? t.operand : binary(BinaryOp::mul, value(t.left), value(t.right));
        if (t.before == t.after) return body;
        Equation part = e_;
        part.body = body;
        part.reduce_axes.clear();
        std::set_difference(t.before.begin(), t.before.end(), t.after.begin(), t.after.end(),
                            std::back_inserter(part.reduce_axes));
        const Array target = d_.array(e_.target);
        std::vector<AxisId> axes;
        for (const AxisId a : target.axes)
            if (t.after.contains(a)) axes.push_back(a);
        for (const AxisId a : t.after)
            if (!contains(axes, a)) axes.push_back(a);
        // One factor of double makes all of the product one; its parts lose none of that on their way through memory.
        const std::vector<ArrayId> factors = read_arrays(e_.body);
        const bool is_double = target.type == DType::f64 ||
                               any_of(factors, [&](ArrayId factor) { return d_.array(factor).type == DType::f64; });
        const DType type = is_double ? DType::f64 : DType::f32;
        part.target = add_array(d_, target.name + "_part", axes, type, ArrayRole::temporary);
        out_.push_back(part);
        return read_self(d_, part.target);
    }
};

/// A sum of a product of floating-point values, every summed axis of which some operand carries.
bool is_contraction(const Diagram& d, const Equation& e, const std::vector<Expr>& operands) {
    if (e.reduce != ReduceOp::sum || operands.size() < 2 || operands.size() > 32 || !is_float(d.array(e.target).type))
        return false;
    for (const ArrayId r : read_arrays(e.body))
        if (!is_float(d.array(r).type)) return false;
    return all_of(e.reduce_axes, [&](AxisId a) { return depends_on_axis(e.body, a); });
}

}  // namespace

void order_contractions(Diagram& diagram, bool nested, std::vector<DerivationStep>& steps) {
    const std::vector<double> sizes = nominal_sizes(diagram);
    std::vector<Equation> out;
    for (const Equation& e : std::vector<Equation>(std::move(diagram.equations))) {
        std::vector<Expr> operands;
        if (e.reduce == ReduceOp::sum) operands = factors_of(e.body);
        std::vector<Equation> ordered;
        Edit edit;
        if (is_contraction(diagram, e, operands)) {
            Contraction contraction(diagram, e, operands, sizes);
            std::optional<int> found = contraction.best();
            if (contraction.points_in_one() < least_gain * contraction.tree(*found).largest)
                found = nested ? contraction.nested() : std::nullopt;
            if (found) {
                const int root = *found;
                const std::size_t num_arrays = diagram.arrays.size();
                ordered = Writer(diagram, e, contraction).equations(root);
                edit.arrays.assign(diagram.arrays.begin() + static_cast<std::ptrdiff_t>(num_arrays), diagram.arrays.end());
                steps.push_back({"order contraction",
                                 "contract at once",
                                 "multiplication distributes over sums and both are associative",
                                 fmt::format("{} takes {:.3g} FLOPs for {:.3g}", diagram.array(e.target).name,
                                             contraction.tree(root).flops, contraction.flops_in_one()),
                                 e.range,
                                 {}});
            }
        }
        if (ordered.empty()) {
            out.push_back(e);
            continue;
        }
        edit.equations.push_back({e, ordered});
        steps.back().change = std::move(edit);
        append(out, ordered);
    }
    diagram.equations = std::move(out);
}

}  // namespace napkin
