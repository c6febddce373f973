#include "schedule/ones_column.hpp"

#include <fmt/format.h>

#include "support/ids.hpp"
#include "support/ranges.hpp"

namespace napkin {
namespace {

class ColumnSearch {
public:
    ColumnSearch(const ScheduledKernel& kernel, const Step& sum)
        : k_(kernel), sum_(sum), compute_(std::get<Compute>(*sum.statement)) {}

    std::variant<StepId, std::string> run() const {
        if (!k_.on_matrix_unit()) return std::string("the kernel does not run on a matrix unit");
        if (compute_.reduce != ReduceOp::sum || sum_.is_whole) return std::string("it is no sum of real numbers");
        const auto* summed = as<Read>(compute_.body);
        if (!summed)
            return std::string("it sums up what it makes of its operands, and not the left factor of a product");
        if (column_axis(k_, compute_.variable) >= 0) return fmt::format("{} has columns of its own", name(sum_));
        for (const Step& step : k_.steps)
            if (step.scope == sum_.scope && &step != &sum_ && step.atom >= 0 && reads(step, compute_.variable))
                return fmt::format("{} reads it before the loop's product is done", name(step));
        if (const std::string why = why_too_coarse(); !why.empty()) return why;
        std::string refusal = fmt::format("{} is the left factor of no product of the loop",
                                          k_.variable(summed->variable()).name);
        for (const Step& step : k_.steps) {
            if (step.scope != sum_.scope || step.atom < 0 || k_.atom(step).kind != AtomKind::matrix) continue;
            const auto product = matrix_product(k_, step);
            if (!product || product->a->array != summed->array || product->a->indices != summed->indices ||
                !contains(compute_.reduce_axes, product->k))
                continue;
            const std::string why = why_not_beside(step, *product);
            if (why.empty()) return k_.number(step);
            refusal = fmt::format("{} is no product that takes a further column: {}", name(step), why);
        }
        return refusal;
    }

private:
    [[nodiscard]] const std::string& name(const Step& step) const { return k_.variable(variable_of(step)).name; }

    /// The summands are rounded to the type that the unit multiplies. A product that is divided by the sum is no better itself; what is made of the sum
    /// alone would be as coarse.
    [[nodiscard]] std::string why_too_coarse() const {
        const auto* summed = as<Read>(compute_.body);
        if (any_of(k_.steps, [&](const Step& step) {
                const auto* load = std::get_if<Load>(step.statement);
                return load && load->variable == summed->variable();
            }))
            return "";  // as it lies in memory
        return why_apart_from_products(k_, sum_);
    }

    /// Both are corrected alike: they add to what they hold, times the same.
    [[nodiscard]] bool are_corrected_alike(const Compute& product) const {
        if (!compute_.carry || !product.carry) return !compute_.carry && !product.carry;
        const auto factor = [](const Compute& c) -> std::optional<Expr> {
            const auto is_own = [&](const Expr& e) {
                const auto* r = as<Read>(e);
                return r && r->variable() == c.variable;
            };
            if (is_own(c.carry)) return constant(1);
            const auto* b = as<Binary>(c.carry);
            return b && b->op == BinaryOp::mul && is_own(b->a) && !reads_variable(b->b, c.variable) ? std::optional(b->b)
                                                                                                    : std::nullopt;
        };
        const auto mine = factor(compute_), its = factor(product);
        return mine && its && equal(*mine, *its);
    }

    [[nodiscard]] std::string why_not_beside(const Step& step, const MatrixProduct& product) const {
        const auto& compute = std::get<Compute>(*step.statement);
        if (product.by_warp(k_.unit)) return "every warp runs it by itself";
        if (k_.runs_in_parts(step)) return "its columns are computed in parts";
        if (compute.reduce_axes != compute_.reduce_axes) return "it reduces other axes";
        if (!are_corrected_alike(compute)) return "it is corrected by something else";
        const OperandTile tile = *operand_tile(k_, product.b->variable());
        const std::int64_t columns = columns_of(k_, product.n, step.scope);
        const std::string& right = k_.variable(product.b->variable()).name;
        if (running_axis(k_, product.b->indices.back(), step.scope) != product.n)
            return fmt::format("the columns of {} do not lie beside each other", right);
        // The leading offset leads from one panel of columns to the next one, which is then the ones'.
        if (tile.panels != 1 || columns != tile.width)
            return fmt::format(
                "{} has {} columns, and not the {} of one panel, behind which others may come from elsewhere", right,
                columns, tile.width);
        // The left factor's own registers count, too, as those of 8 columns (CUDA 13.0, ptxas C7602: 66 for 72 columns).
        if (!takes_tiles(k_, *product.instruction, columns + ones_columns + (product.a_in_registers ? fragment_columns : 0)))
            return fmt::format("{} takes no {} columns here", product.instruction->name, columns + ones_columns);
        for (const Step& other : k_.steps)
            if (&other != &sum_ && other.scope == sum_.scope && other.atom >= 0 && k_.atom(other).kind == AtomKind::column &&
                k_.number(other) < k_.number(sum_) && equal(std::get<Compute>(*other.statement).body, compute_.body))
                return fmt::format("{} is its column already", name(other));
        return "";
    }

    const ScheduledKernel& k_;
    const Step& sum_;
    const Compute& compute_;
};

}  // namespace

std::string why_apart_from_products(const ScheduledKernel& kernel, const Step& sum) {
    const auto& compute = std::get<Compute>(*sum.statement);
    const VariableId summed = as<Read>(compute.body)->variable();
    std::vector<VariableId> products;
    for (const Step& step : kernel.steps)
        if (step.scope == sum.scope && step.atom >= 0 && kernel.atom(step).kind == AtomKind::matrix && reads(step, summed))
            products.push_back(variable_of(step));
    for (const Step& step : kernel.steps) {
        const auto* store = std::get_if<Store>(step.statement);
        const bool is_alone = step.atom >= 0 && &step != &sum && reads(step, compute.variable) &&
                              none_of(products, [&](VariableId v) { return reads(step, v); });
        if (is_alone || (store && store->variable == compute.variable))
            return fmt::format("{} takes it without the product, and would be as coarse as its rounded factors",
                               store ? "a store" : kernel.variable(variable_of(step)).name);
    }
    return "";
}

std::variant<StepId, std::string> product_beside(const ScheduledKernel& kernel, const Step& sum) {
    return ColumnSearch(kernel, sum).run();
}

const Step* column_of_ones(const ScheduledKernel& kernel, const Step& product) {
    for (const Step& step : kernel.steps) {
        if (step.atom < 0 || step.scope != product.scope || kernel.atom(step).kind != AtomKind::column) continue;
        const auto found = product_beside(kernel, step);
        if (const StepId* number = std::get_if<StepId>(&found); number && *number == kernel.number(product))
            return &step;
    }
    return nullptr;
}

const Step* sum_in_column(const ScheduledKernel& kernel, VariableId id) {
    for (const Step& step : kernel.steps)
        if (step.atom >= 0 && kernel.atom(step).kind == AtomKind::column && variable_of(step) == id) return &step;
    return nullptr;
}

VariableId registers_of(const ScheduledKernel& kernel, VariableId id) {
    const Step* sum = sum_in_column(kernel, id);
    if (!sum) return id;
    const auto product = product_beside(kernel, *sum);
    const StepId* number = std::get_if<StepId>(&product);
    return number ? variable_of(kernel.step(*number)) : id;
}

std::vector<DType> types_of_ones(const ScheduledKernel& kernel) {
    std::vector<DType> types;
    for (const Step& step : kernel.steps) {
        if (step.atom < 0 || kernel.atom(step).kind != AtomKind::column) continue;
        const auto found = product_beside(kernel, step);
        const StepId* number = std::get_if<StepId>(&found);
        if (const auto product = number ? matrix_product(kernel, kernel.step(*number)) : std::nullopt;
            product && !contains(types, product->type))
            types.push_back(product->type);
    }
    return types;
}

}  // namespace napkin
