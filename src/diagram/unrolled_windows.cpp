#include "diagram/unrolled_windows.hpp"

#include <optional>
#include <utility>

#include "diagram/flat_axes.hpp"
#include "diagram/hidden_axes.hpp"
#include "diagram/product.hpp"
#include "diagram/rewrite_equations.hpp"
#include "support/ids.hpp"
#include "support/ranges.hpp"

namespace napkin {
namespace {

/// Rows of so many 16-bit values begin where bulk copies may begin, and an mma's steps along them are whole.
constexpr std::int64_t whole_rows = 16;

/// A sum over windows, whose axes stand in the order of the array that has each of them as an index.
struct WindowSum {
    const Read *windows, *weights;
    bool windows_first;
    std::vector<AxisId> summed;
};

std::optional<WindowSum> window_sum(const Diagram& d, const Equation& e) {
    const std::vector<Expr> factors = e.reduce == ReduceOp::sum ? factors_of(e.body) : std::vector<Expr>();
    if (factors.size() != 2 || e.reduce_axes.size() < 2) return std::nullopt;
    // Wider values are multiplied by no tensor core.
    const auto narrow = [&](const Expr& factor) {
        const auto* r = as<Read>(factor);
        return r && is_float(d.array(r->array).type) && bytes(d.array(r->array).type) <= 2 ? r : nullptr;
    };
    const auto is_shifted = [](const Index& index) { return index.affine() && index.axes().size() > 1; };
    for (const bool first : {true, false}) {
        WindowSum out{narrow(factors[first ? 0 : 1]), narrow(factors[first ? 1 : 0]), first, {}};
        if (!out.windows || !out.weights || none_of(out.windows->indices, is_shifted)) continue;
        for (const Index& index : out.weights->indices)
            if (contains(e.reduce_axes, index.single_axis())) out.summed.push_back(index.single_axis());
        const bool has_all = out.summed.size() == e.reduce_axes.size() && all_of(out.summed, [&](AxisId axis) {
                                 return depends_on(out.windows->indices, axis) &&
                                        count_if(out.summed, [&](AxisId other) { return other == axis; }) == 1;
                             });
        const auto is_plain = [](const Index& index) { return index.single_axis() >= 0; };
        if (has_all && all_of(out.weights->indices, is_plain)) return out;
    }
    return std::nullopt;
}

class Unrolling : EquationRewriter {
public:
    explicit Unrolling(Diagram& diagram) : EquationRewriter(diagram) {}

    void run() {
        rewrite_each([&](const Equation& e) {
            const auto sum = window_sum(source_, e);
            const AxisId t = sum ? free_axis(source_, size_of_flat_axis(sum->summed), {}, whole_rows) : AxisId();
            if (t < 0) return false;
            Equation last = e;
            const Expr windows = unrolled(*sum, *sum->windows, t, e), weights = unrolled(*sum, *sum->weights, t, e);
            last.reduce_axes = {t};
            last.body = binary(BinaryOp::mul, sum->windows_first ? windows : weights,
                               sum->windows_first ? weights : windows);
            out_.push_back(std::move(last));
            return true;
        });
    }

private:
    /// The factor, made over its axes of the result and t, and zero past a window's end.
    Expr unrolled(const WindowSum& sum, const Read& factor, AxisId t, const Equation& like) {
        const Array array = d_.array(factor.array);
        const Expr whole = read(factor.array, factor.indices);
        std::vector<AxisId> axes;
        for (const AxisId axis : d_.array(like.target).axes)
            if (depends_on_axis(whole, axis)) axes.push_back(axis);
        axes.push_back(t);
        const std::vector<Expr> values = values_of_parts(sum.summed, axis_index(t));
        Equation made = like;
        made.target = add_array(d_, array.name + "_unrolled", axes, array.type, ArrayRole::temporary);
        made.reduce = std::nullopt, made.reduce_axes.clear();
        const Expr value = substitute_axes(whole, [&](AxisId axis) -> std::optional<Index> {
            const auto part = find(sum.summed, axis);
            if (part == sum.summed.end()) return std::nullopt;
            return Index::of(values[at(part - sum.summed.begin())]);
        });
        Expr length = axis_size(sum.summed.front());
        for (std::size_t a = 1; a < sum.summed.size(); ++a)
            length = binary(BinaryOp::mul, length, axis_size(sum.summed[a]));
        made.body = select(binary(BinaryOp::lt, axis_index(t), length), value, constant(0));
        out_.push_back(std::move(made));
        return read_self(d_, out_.back().target);
    }
};

}  // namespace

Diagram with_axes_of_windows(Diagram diagram) {
    const Diagram text = diagram;
    for (const Equation& e : text.equations)
        if (const auto sum = window_sum(text, e))
            free_axis_of(diagram, size_of_flat_axis(sum->summed), {}, sum->summed.front(), "_window", whole_rows);
    return diagram;
}

Diagram with_unrolled_windows(Diagram diagram) {
    Unrolling(diagram).run();
    return diagram;
}

}  // namespace napkin
