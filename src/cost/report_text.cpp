// What `napkin cost` says as aligned text.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "cost/machine_report.hpp"
#include "cost/optimum_text.hpp"
#include "cost/report.hpp"
#include "diagram/symbol_names.hpp"
#include "support/numbers.hpp"
#include "support/result.hpp"
#include "support/text.hpp"

namespace napkin {
namespace {
std::string padded(const std::string& text, std::size_t columns, bool to_right = false) {
    return to_right ? right(text, columns) : left(text, columns);
}

/// Rows of label, expression and remark under each other.
class Expressions {
public:
    void add(const std::string& label, const std::string& expression, const std::string& remark = "") {
        rows_.push_back({label, expression, remark});
    }
    [[nodiscard]] std::string text() const {
        // Remarks stand under each other beside expressions of a usual length; a long one does not push the others
        // away.
        constexpr std::size_t usual = 72;
        std::size_t columns = 0;
        for (const Row& row : rows_)
            if (!row.remark.empty() && width(row.expression) <= usual)
                columns = std::max(columns, width(row.expression));
        std::string out;
        for (const Row& row : rows_)
            out += "  " + padded(row.label, 5) +
                   (row.remark.empty() ? row.expression : padded(row.expression, columns) + "   " + row.remark) + "\n";
        return out;
    }

private:
    struct Row {
        std::string label, expression, remark;
    };
    std::vector<Row> rows_;
};

/// One kernel's part of the report.
class KernelText {
public:
    KernelText(const Derived& derived, const CostNumbers* numbers, const KernelFigures& figures)
        : derived_(derived), numbers_(numbers), f_(figures), names_(symbol_names(derived.diagram)) {}

    [[nodiscard]] std::string text() const {
        std::string out = fmt::format("kernel {}", kernel().name);
        std::vector<std::string> how;
        if (!f_.cost.grouped.empty()) how.push_back("grouped " + names(f_.cost.grouped));
        if (!f_.cost.streamed.empty()) how.push_back("streamed " + names(f_.cost.streamed));
        out += (how.empty() ? "" : "   " + join(how, " · ")) + "\n";
        out += expressions() + "\n" + table();
        if (f_.counts) out += "\n" + numbers_text();
        if (f_.machine) out += "\n" + machine_text(derived_, *f_.machine, numbers_->explain);
        return out;
    }

private:
    [[nodiscard]] std::string text(const Size& size) const { return to_string(size, names_); }
    [[nodiscard]] std::string name(AxisId axis) const { return derived_.diagram.axis(axis).name; }
    [[nodiscard]] std::string names(const std::vector<AxisId>& axes) const {
        return join(names_of(derived_.diagram.axes, axes), ", ");
    }

    [[nodiscard]] std::string fewest_text() const {
        const SearchResult& fewest = f_.least->numeric;
        std::vector<std::string> sizes;
        for (std::size_t i = 0; i < f_.least->cost.grouped.size(); ++i) {
            const AxisId axis = f_.least->cost.grouped[i];
            // A whole axis whose groups would repeat work is not grouped.
            if (axis == f_.least->cost.part) continue;
            const bool is_whole = fewest.sizes[i] == numbers_->extents[axis];
            if (is_whole && contains(kernel().recompute_axes, axis)) continue;
            sizes.push_back(fmt::format("{} = {}", names_(group_symbol(axis)), fewest.sizes[i]));
        }
        const KernelCost& cost = f_.least->cost;
        for (std::size_t i = 0; i < cost.streamed.size(); ++i) {
            const std::int64_t size = fewest.sizes[cost.grouped.size() + i];
            if (size > 1) sizes.push_back(fmt::format("{} = {}", names_(stream_symbol(cost.streamed[i])), size));
        }
        const std::string m = names_(memory_symbol), memory = count_text(std::floor(*numbers_->memory_values)),
                          bound = why_upper_bound(cost);
        if (cost.streamed != f_.cost.streamed)
            sizes.push_back(cost.streamed.empty() ? "nothing streamed" : names(cost.streamed) + " streamed");
        if (!fewest.fits)
            return fmt::format("{} = {} holds no tile, for which it takes {}", m, memory,
                               count_text(std::ceil(fewest.memory)));
        std::string text = fmt::format("fewest {}{} at {} = {}{}{}", bound.empty() ? "" : "≤ ",
                                       count_text(std::round(fewest.transfers)), m, memory, sizes.empty() ? "" : ", ",
                                       join(sizes, ", "));
        if (!bound.empty()) text += ", where " + bound;
        if (f_.least->formula && !f_.least->formula_holds())
            text += fmt::format("; the formula of H* gives {}, but {}", count_text(std::round(*f_.least->formula)),
                                reason(f_.least->mismatch, m));
        return text;
    }

    [[nodiscard]] std::string tied_remark() const {
        std::map<std::string, std::vector<std::string>> letters;
        for (const auto& [from, to] : f_.tied_letters) letters[name(to)].push_back(name(from));
        std::vector<std::string> parts;
        for (const auto& [to, from] : letters) parts.push_back(join(from, " = ") + " = " + to);
        return "with " + join(parts, ", ");
    }

    [[nodiscard]] std::string expressions() const {
        const bool tied = !f_.tied_letters.empty();
        Expressions rows;
        const auto add = [&](const std::string& label, const Size& size, const Size& tied_size,
                             const std::string& remark = "") {
            rows.add(label, text(size), remark);
            if (tied && !(tied_size == size)) rows.add("", "= " + text(tied_size), tied_remark());
        };
        add("N_g", f_.cost.num_groups, f_.tied.num_groups);
        add("H_g", f_.cost.per_group, f_.tied.per_group);
        add(f_.cost.may_skip || f_.cost.counts_padding ? "H ≤" : "H", f_.cost.transfers, f_.tied.transfers,
            join(f_.cost.assumptions, ", "));
        bool first = true;
        for (const MemoryColumn& column : tied ? f_.tied.memory : f_.cost.memory) {
            rows.add(first ? "M ≥" : "  ≥", text(column.size),
                     "at " + column.at + (tied && first ? ", " + tied_remark() : ""));
            first = false;
        }
        add(f_.cost.may_skip ? "W ≤" : "W", f_.flops, f_.tied_flops, "FLOP");
        const Optimum& best = tied ? f_.tied_optimum : f_.optimum;
        const std::vector<std::string> at = reached_at(best, derived_.diagram);
        const bool is_bound = !why_upper_bound(f_.least ? f_.least->cost : f_.cost).empty();
        if (best.closed)
            rows.add(is_bound ? "H* ≤" : "H*", to_string(best.transfers, names_in(best, derived_.diagram)),
                     at.empty() ? "at any group sizes" : "at " + join(at, ", "));
        else
            rows.add("H*", "numeric: " + why_numeric(best, derived_.diagram));
        return rows.text();
    }

    [[nodiscard]] std::string table() const {
        std::vector<std::vector<std::string>> rows{{"array", "moved", "a group", "a launch"}};
        if (f_.counts) rows[0].push_back("values");
        std::map<ArrayId, bool> shown;
        for (const ArrayTransfers& a : f_.cost.arrays) {
            rows.push_back({a.pattern, a.stored ? "stored" : "loaded", text(a.per_group), text(a.per_launch)});
            if (!f_.counts) continue;
            // Several patterns of one array share its count, which stands beside the first.
            std::string values;
            for (const ArrayCount& c : f_.counts->arrays)
                if (c.array == a.array && !shown[a.array])
                    values = count_text(static_cast<double>(a.stored ? c.stored : c.loaded));
            shown[a.array] = true;
            rows.back().push_back(values);
        }
        std::vector<std::size_t> columns(rows[0].size(), 0);
        for (const auto& row : rows)
            for (std::size_t i = 0; i < row.size(); ++i) columns[i] = std::max(columns[i], width(row[i]));
        std::string out;
        for (const auto& row : rows) {
            std::string line = " ";
            for (std::size_t i = 0; i < row.size(); ++i)
                line += (i == 0 ? " " : "   ") + padded(row[i], columns[i], i == 4);
            line.erase(line.find_last_not_of(' ') + 1);
            out += line + "\n";
        }
        return out;
    }

    [[nodiscard]] std::string numbers_text() const {
        std::vector<std::string> sizes, tiles;
        std::map<std::string, Symbol> symbols;
        const auto see = [&](const Size& size) {
            for (const Symbol symbol : size.symbols()) symbols[names_(symbol)] = symbol;
        };
        see(f_.cost.transfers), see(f_.cost.per_group), see(f_.flops);
        for (const MemoryColumn& column : f_.cost.memory) see(column.size);
        for (const auto& [called, symbol] : symbols)
            if (const auto number = value_at_hand(*numbers_, f_.kernel, symbol))
                (is_part(symbol) ? tiles : sizes).push_back(fmt::format("{} = {}", called, *number));
        std::string out = "  at " + join(sizes, ", ") + (tiles.empty() ? "" : ";  " + join(tiles, ", ")) + "\n";
        const double moved = static_cast<double>(f_.counts->loaded_bytes) + static_cast<double>(f_.counts->stored_bytes);
        out += fmt::format("  N_g  {} groups", count_text(static_cast<double>(f_.counts->groups)));
        if (f_.counts->chunks_run + f_.counts->chunks_skipped > 0)
            out += fmt::format(", {} chunks run, {} skipped", count_text(static_cast<double>(f_.counts->chunks_run)),
                               count_text(static_cast<double>(f_.counts->chunks_skipped)));
        out += fmt::format("\n  H    {} values, {}", count_text(static_cast<double>(f_.counts->transfers())),
                           bytes_text(moved));
        if (f_.least) out += "; " + fewest_text();
        out += fmt::format("\n  M    {} values a core\n", count_text(static_cast<double>(f_.counts->peak_memory)));
        std::vector<std::string> kinds;
        for (std::size_t k = 0; k < num_op_kinds; ++k)
            if (const auto kind = static_cast<OpKind>(k); f_.work.of(kind) > 0)
                kinds.push_back(
                    fmt::format("{} {}", operations_text(static_cast<double>(f_.work.of(kind))), napkin::name(kind)));
        out += fmt::format("  work {}FLOP ({}), {:.3g} FLOP a byte\n",
                           operations_text(f_.work.flops()) + (f_.work.flops() < 1000 ? " " : ""), join(kinds, ", "),
                           f_.work.flops() / std::max(moved, 1.0));
        return out;
    }

    [[nodiscard]] const Kernel& kernel() const { return derived_.kernels[f_.kernel]; }

    const Derived& derived_;
    const CostNumbers* numbers_;
    const KernelFigures& f_;
    SymbolNames names_;
};

}  // namespace

std::string cost_text(const Derived& derived, const std::optional<CostNumbers>& numbers,
                      const std::vector<TileKernel>& tiles) {
    std::string text = fmt::format("cost of {}: values moved between memory and core (H), values held in a core (M)\n",
                                   derived.diagram.name);
    const std::vector<KernelFigures> kernels = cost_figures(derived, numbers, tiles);
    for (const KernelFigures& kernel : kernels)
        text += "\n" + KernelText(derived, numbers ? &*numbers : nullptr, kernel).text();
    if (kernels.size() < 2) return text;
    const TotalTransfers total = total_transfers(kernels);
    text += fmt::format("\nall {} kernels   H {}", kernels.size(), to_string(total.letters, symbol_names(derived.diagram)));
    if (numbers)
        text += fmt::format("\n                {} values, {}", count_text(total.values), bytes_text(total.bytes));
    return text + "\n";
}

}  // namespace napkin
