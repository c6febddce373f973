#include "schedule/column_parts.hpp"

#include <fmt/format.h>

#include "schedule/fragments.hpp"
#include "support/ids.hpp"
#include "support/ranges.hpp"

namespace napkin {
namespace {

/// Whether each part of the columns begins at a boundary of the operand's tile. That is a pattern of the swizzle, or a
/// panel of columns.
bool begins_at_parts(const ScheduledKernel& kernel, const MmaProduct& product, const Step& step, std::int64_t columns) {
    const auto tile = operand_tile(kernel, product.b->variable());
    const bool is_along_k = runs_along(kernel, *product.b, product.k, step.scope);
    return tile && (is_along_k ? columns * operand_row_bytes % operand_alignment == 0 : columns % tile->width == 0);
}

class Columns {
public:
    Columns(const ScheduledKernel& kernel, std::int64_t parts) : k_(kernel), parts_(parts) {}

    std::variant<ColumnParts, std::string> run() {
        if (!k_.on_tensor_cores() || k_.loops.size() != 1 || k_.rescale || runs_ahead(k_))
            return std::string("it takes one loop on the tensor cores whose statements run in turn");
        out_.parts = parts_, out_.scope = k_.loops.front().scope;
        for (const Node& node : k_.loops.front().body) {
            const StepId* s = std::get_if<StepId>(&node);
            if (!s || k_.step(*s).atom < 0) continue;
            if (out_.steps.empty() && !runs_beside(k_, k_.step(*s)))
                return fmt::format("{} is computed before the products", name(*s));
            if (const std::string why = add(*s); !why.empty()) return why;
        }
        if (out_.steps.empty()) return std::string("its loop has no products");
        for (const VariableId v : k_.layouts.ids())
            if (k_.is_in_registers(v) && is_accessed_by_all_of(v)) out_.passing.push_back(v);
        for (const StepId s : out_.steps)
            if (runs_beside(k_, k_.step(s)) && !out_.is_passing(variable_of(k_.step(s))))
                return fmt::format("{} is used elsewhere, too", name(s));
        return out_;
    }

private:
    [[nodiscard]] const std::string& name(StepId step) const { return k_.variable(variable_of(k_.step(step))).name; }

    /// Why the step cannot run for each part.
    std::string add(StepId number) {
        const Step& step = k_.step(number);
        const auto& compute = std::get<Compute>(*step.statement);
        const AxisId axis = column_axis(k_, compute.variable);
        if (!has_rows(k_, compute.variable)) return fmt::format("{} has no rows", name(number));
        if (out_.axis < 0) {
            out_.axis = axis;
            const std::int64_t tile = axis < 0 ? 0 : k_.span(axis, step.scope).tile;
            if (tile % (parts_ * 2 * k_.fragments().columns) != 0)
                return fmt::format("{} columns of {} are not {} parts of whole {}", tile, name(number), parts_,
                                   2 * k_.fragments().columns);
            out_.columns = tile / parts_;
        }
        if (axis < 0 || axis != out_.axis || k_.span(axis, step.scope).tile != out_.columns * parts_)
            return fmt::format("{} has other columns", name(number));
        if (runs_beside(k_, step)) {
            const auto product = mma_product(k_, step);
            if (product->adds) return fmt::format("{} adds to what it holds", name(number));
            if (product->a_in_registers) return fmt::format("{} multiplies what the turn computed", name(number));
            if (product->n != axis || !begins_at_parts(k_, *product, step, out_.columns))
                return fmt::format("the operand of {} has no parts of {} columns", name(number), out_.columns);
        } else if (k_.atom(step).kind != AtomKind::fragment ||
                   any_of(step.reads, [&](const Read* r) { return has_operand_rows(r->variable()); })) {
            return fmt::format("{} is no map of columns in registers", name(number));
        }
        out_.steps.push_back(number);
        return "";
    }
    [[nodiscard]] bool has_operand_rows(VariableId id) const {
        return k_.is_operand(id) && operand_tile(k_, id).value().rows > 1;
    }
    [[nodiscard]] bool is_accessed_by_all_of(VariableId id) const {
        bool is_accessed = false;
        for (const StepId s : k_.steps.ids()) {
            if (variable_of(k_.steps[s]) != id && !reads(k_.steps[s], id)) continue;
            if (!out_.has(s)) return false;
            is_accessed = true;
        }
        return is_accessed;
    }

    const ScheduledKernel& k_;
    std::int64_t parts_;
    ColumnParts out_;
};

}  // namespace

std::variant<ColumnParts, std::string> columns_in_parts(const ScheduledKernel& kernel, std::int64_t parts) {
    return Columns(kernel, parts).run();
}

std::optional<ColumnParts> chosen_column_parts(const ScheduledKernel& kernel) {
    std::int64_t parts = 1;
    for (const Atom& atom : kernel.schedule.atoms) parts = std::max<std::int64_t>(parts, atom.parts);
    if (parts == 1) return std::nullopt;
    auto found = columns_in_parts(kernel, parts);
    if (!std::holds_alternative<ColumnParts>(found)) return std::nullopt;
    return std::get<ColumnParts>(std::move(found));
}

}  // namespace napkin
