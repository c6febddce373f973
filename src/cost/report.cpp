#include "cost/report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "cost/bounds.hpp"
#include "cost/least.hpp"
#include "cost/machine_report.hpp"
#include "cost/optimum_text.hpp"
#include "cost/search.hpp"
#include "cost/transfers.hpp"
#include "diagram/symbol_names.hpp"
#include "support/numbers.hpp"
#include "support/result.hpp"
#include "support/text.hpp"
#include "tile/work.hpp"

namespace napkin {
namespace {
using nlohmann::json;

std::string padded(const std::string& text, std::size_t columns, bool to_right = false) {
    return to_right ? right(text, columns) : left(text, columns);
}

std::string short_number(double value) {
    for (const auto& [factor, unit] : {std::pair{1e15, " P"}, {1e12, " T"}, {1e9, " G"}, {1e6, " M"}, {1e3, " k"}})
        if (value >= factor) return fmt::format("{:.3g}{}", value / factor, unit);
    return fmt::format("{:.3g}", value);
}

/// Inner axes (neither grouped nor streamed) of equal size, each with the letter that stands for all of them: one that an output has.
TiedLetters ties(const Derived& derived, const KernelCost& cost, const Kernel& kernel,
                 const std::optional<CostNumbers>& numbers) {
    const Diagram& diagram = derived.diagram;
    const std::vector<Symbol> symbols = (cost.transfers + cost.per_group).symbols();
    const auto used = [&](AxisId axis) { return contains(symbols, axis_symbol(axis)); };
    const auto in_output = [&](AxisId axis) {
        return std::any_of(kernel.outputs.begin(), kernel.outputs.end(),
                           [&](ArrayId o) { return is_among(diagram.array(o).axes, axis); });
    };
    std::map<std::int64_t, std::vector<AxisId>> by_size;
    for (AxisId axis = 0; axis < static_cast<AxisId>(diagram.axes.size()); ++axis) {
        if (is_among(cost.grouped, axis) || is_among(cost.streamed, axis) || !used(axis)) continue;
        std::optional<std::int64_t> size;
        if (numbers)
            size = numbers->extents[at(axis)];
        else if (const auto& given = diagram.axis(axis).size)
            if (const auto constant = given->as_constant(); constant && constant->is_integer())
                size = constant->numerator();
        if (size) by_size[*size].push_back(axis);
    }
    TiedLetters letters;
    for (auto& [size, axes] : by_size) {
        const auto output = std::find_if(axes.begin(), axes.end(), in_output);
        const AxisId letter = output == axes.end() ? axes.front() : *output;
        for (const AxisId axis : axes)
            if (axis != letter) letters[axis] = letter;
    }
    return letters;
}

/// Rows of label, expression and remark under each other.
class Expressions {
public:
    void add(const std::string& label, const std::string& expression, const std::string& remark = "") {
        rows_.push_back({label, expression, remark});
    }
    [[nodiscard]] std::string text() const {
        // Remarks stand under each other beside expressions of a usual length; a long one does not push the others away.
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
class KernelReport {
public:
    KernelReport(const Derived& derived, std::size_t index, const std::optional<CostNumbers>& numbers)
        : derived_(derived),
          index_(index),
          kernel_(derived.kernels[index]),
          numbers_(numbers),
          names_(symbol_names(derived.diagram)) {
        std::vector<AxisId> grouped = default_grouped(kernel_);
        if (numbers) {
            // The axes that are cut in fact; one at its whole extent keeps its letter.
            grouped.clear();
            for (const AxisId axis : kernel_.group_axes)
                if (numbers->sizes[index].group[at(axis)] > 0) grouped.push_back(axis);
        }
        cost_ = symbolic_cost(derived, kernel_, grouped);
        tied_letters_ = ties(derived, cost_, kernel_, numbers);
        tied_ = with_tied(cost_, tied_letters_);
        const KernelCost held = symbolic_cost(derived, kernel_, grouped, Measure::values, HeldTiles::point_by_point);
        optimum_ = optimum(held);
        tied_optimum_ = optimum(with_tied(held, tied_letters_));
        if (numbers) count();
        if (numbers && numbers->memory_values) find_fewest();
        if (numbers && numbers->on_machine) place();
    }

    [[nodiscard]] const Size& transfers() const { return cost_.transfers; }
    [[nodiscard]] const std::optional<Counts>& counts() const { return counts_; }

    [[nodiscard]] std::string text() const {
        std::string out = fmt::format("kernel {}", kernel_.name);
        std::vector<std::string> how;
        if (!cost_.grouped.empty()) how.push_back("grouped " + names(cost_.grouped));
        if (!cost_.streamed.empty()) how.push_back("streamed " + names(cost_.streamed));
        out += (how.empty() ? "" : "   " + join(how, " · ")) + "\n";
        out += expressions() + "\n" + table();
        if (counts_) out += "\n" + numbers_text();
        if (figures_) out += "\n" + machine_text(derived_, *figures_, numbers_->explain);
        return out;
    }

    [[nodiscard]] json to_json() const {
        json out;
        out["name"] = kernel_.name;
        out["grouped"] = name_list(cost_.grouped);
        out["streamed"] = name_list(cost_.streamed);
        out["groups"] = text(cost_.num_groups);
        out["transfers_per_group"] = text(cost_.per_group);
        out["transfers"] = text(cost_.transfers);
        out["may_skip_chunks"] = cost_.may_skip;
        out["counts_padding"] = cost_.counts_padding;
        out["assumptions"] = cost_.assumptions;
        out["memory"] = json::array();
        for (const MemoryColumn& column : cost_.memory) {
            std::vector<std::string> alive = names_of(derived_.diagram.arrays, column.arrays);
            out["memory"].push_back({{"at", column.at}, {"values", text(column.size)}, {"alive", alive}});
        }
        for (const MemoryColumn& column : cost_.memory)
            for (const ArrayId id : column.arrays) {
                const Array& array = derived_.diagram.array(id);
                out["bytes_a_value"][array.name] = bytes(array.type);
            }
        out["optimum"] = optimum_json(optimum_);
        if (!tied_letters_.empty()) {
            json letters;
            for (const auto& [from, to] : tied_letters_) letters[name(from)] = name(to);
            out["tied"] = {{"letters", letters},
                           {"transfers_per_group", text(tied_.per_group)},
                           {"transfers", text(tied_.transfers)},
                           {"optimum", optimum_json(tied_optimum_)}};
        }
        out["arrays"] = json::array();
        for (const ArrayTransfers& a : cost_.arrays)
            out["arrays"].push_back({{"array", derived_.diagram.array(a.array).name},
                                     {"pattern", a.pattern},
                                     {"direction", a.stored ? "stored" : "loaded"},
                                     {"per_group", text(a.per_group)},
                                     {"per_launch", text(a.per_launch)}});
        if (counts_) out["numbers"] = numbers_json();
        if (figures_) out.update(machine_json(derived_, *figures_));
        return out;
    }

private:
    [[nodiscard]] std::string text(const Size& size) const { return to_string(size, names_); }
    [[nodiscard]] std::string name(AxisId axis) const { return derived_.diagram.axis(axis).name; }
    [[nodiscard]] std::vector<std::string> name_list(const std::vector<AxisId>& axes) const {
        std::vector<std::string> out;
        for (const AxisId axis : axes) out.push_back(name(axis));
        return out;
    }
    [[nodiscard]] std::string names(const std::vector<AxisId>& axes) const { return join(name_list(axes), ", "); }

    void count() {
        internal_check(index_ < numbers_->sizes.size(), "cost: sizes for too few kernels");
        const Liveness live = liveness(derived_, kernel_, &numbers_->extents);
        const TileCounter counter(derived_.diagram, live, numbers_->extents, numbers_->sizes[index_]);
        counts_ = counter.costs();
        work_ = total_work(counter, statement_work(derived_, kernel_));
    }

    /// The numeric optimum: fewest transfers under integer sizes, with stream sizes of 1.
    void find_fewest() {
        least_ = least_transfers(derived_, kernel_, numbers_->extents, *numbers_->memory_values, optimum_);
        // In letters as far as the sizes at hand allow: axes that would not fill a group are whole.
        at_hand_ = optimum_at(
            symbolic_cost(derived_, kernel_, default_grouped(kernel_), Measure::values, HeldTiles::point_by_point),
            [&](Symbol symbol) { return value(symbol); });
    }

    /// The same among sizes that the machine's lines and instructions take.
    void find_legal() {
        SearchOptions options;
        options.memory = *numbers_->memory_values;
        const KernelOnMachine& on_machine = (*numbers_->on_machine)[index_];
        options.group_divisor = on_machine.divisors.least_multiple;
        for (const AxisId axis : least_->cost.streamed) options.stream[axis] = on_machine.divisors.of(axis);
        legal_ = search_sizes(SizedCost(least_->cost, numbers_->extents), options);
    }

    void place() {
        find_legal();
        figures_.emplace();
        figures_->machine = numbers_->machine;
        figures_->cost = &(*numbers_->on_machine)[index_];
        std::vector<ModelLevel> levels;
        for (const LevelLoad& load : figures_->cost->levels) levels.push_back(load.level);
        figures_->levels = multi_level(derived_, kernel_, tied_letters_, numbers_->extents, levels);
        figures_->limits = bounds(derived_, kernel_, tied_optimum_, tied_letters_, numbers_->extents,
                                  *figures_->machine, *figures_->cost, *numbers_->memory_values);
        figures_->iteration = iteration_rows(derived_, kernel_, numbers_->extents, *figures_->machine, *figures_->cost);
        figures_->links = link_savings(derived_, kernel_, numbers_->extents, *figures_->machine, *figures_->cost);
        figures_->fewest_values = least_->numeric.transfers;
        figures_->special_overhead = numbers_->special_overhead;
    }

    [[nodiscard]] std::string fewest_text() const {
        const SearchResult& fewest = least_->numeric;
        std::vector<std::string> sizes;
        for (std::size_t i = 0; i < least_->cost.grouped.size(); ++i) {
            const AxisId axis = least_->cost.grouped[i];
            // A whole axis whose groups would repeat work is not grouped.
            const bool is_whole = fewest.sizes[i] == numbers_->extents[at(axis)];
            if (is_whole && contains(kernel_.recompute_axes, axis)) continue;
            sizes.push_back(fmt::format("{} = {}", names_(group_symbol(axis)), fewest.sizes[i]));
        }
        if (!fewest.fits) return fmt::format("M = {} holds no tile", count_text(*numbers_->memory_values));
        std::string text = fmt::format("fewest {} at M = {}{}{}", count_text(std::round(fewest.transfers)),
                                       count_text(std::floor(*numbers_->memory_values)), sizes.empty() ? "" : ", ",
                                       join(sizes, ", "));
        if (least_->formula && !least_->formula_holds())
            text += fmt::format("; the formula of H* gives {}, but {}", count_text(std::round(*least_->formula)),
                                reason(least_->misfit));
        return text;
    }

    /// Of a symbol at the extents and sizes at hand, M being what a core holds.
    [[nodiscard]] std::optional<double> value(Symbol symbol) const {
        if (symbol == memory_symbol) return numbers_->memory_values;
        const std::size_t axis = at(symbol.axis());
        const TileSizes& sizes = numbers_->sizes[index_];
        const std::int64_t whole = numbers_->extents[axis];
        const std::int64_t cut = symbol.kind == SymbolKind::group    ? sizes.group[axis]
                                 : symbol.kind == SymbolKind::stream ? sizes.stream[axis]
                                                                     : whole;
        return static_cast<double>(cut > 0 ? cut : whole);
    }

    [[nodiscard]] std::string tied_remark() const {
        std::map<std::string, std::vector<std::string>> letters;
        for (const auto& [from, to] : tied_letters_) letters[name(to)].push_back(name(from));
        std::vector<std::string> parts;
        for (const auto& [to, from] : letters) parts.push_back(join(from, " = ") + " = " + to);
        return "with " + join(parts, ", ");
    }

    [[nodiscard]] std::string expressions() const {
        const bool tied = !tied_letters_.empty();
        Expressions rows;
        const auto add = [&](const std::string& label, const Size& size, const Size& tied_size,
                             const std::string& remark = "") {
            rows.add(label, text(size), remark);
            if (tied && !(tied_size == size)) rows.add("", "= " + text(tied_size), tied_remark());
        };
        add("N_g", cost_.num_groups, tied_.num_groups);
        add("H_g", cost_.per_group, tied_.per_group);
        add(cost_.may_skip || cost_.counts_padding ? "H ≤" : "H", cost_.transfers, tied_.transfers,
            join(cost_.assumptions, ", "));
        bool first = true;
        for (const MemoryColumn& column : tied ? tied_.memory : cost_.memory) {
            rows.add(first ? "M ≥" : "  ≥", text(column.size),
                     "at " + column.at + (tied && first ? ", " + tied_remark() : ""));
            first = false;
        }
        const Optimum& best = tied ? tied_optimum_ : optimum_;
        const std::vector<std::string> at = reached_at(best, derived_.diagram);
        if (best.closed)
            rows.add("H*", to_string(best.transfers, names_in(best, derived_.diagram)),
                     at.empty() ? "at any group sizes" : "at " + join(at, ", "));
        else
            rows.add("H*", "numeric: " + why_numeric(best, derived_.diagram));
        return rows.text();
    }

    [[nodiscard]] std::string table() const {
        std::vector<std::vector<std::string>> rows{{"array", "moved", "a group", "a launch"}};
        if (counts_) rows[0].push_back("values");
        std::map<ArrayId, bool> shown;
        for (const ArrayTransfers& a : cost_.arrays) {
            rows.push_back({a.pattern, a.stored ? "stored" : "loaded", text(a.per_group), text(a.per_launch)});
            if (!counts_) continue;
            // Several patterns of one array share its count, which stands beside the first.
            std::string values;
            for (const ArrayCount& c : counts_->arrays)
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
        see(cost_.transfers), see(cost_.per_group);
        for (const MemoryColumn& column : cost_.memory) see(column.size);
        for (const auto& [called, symbol] : symbols)
            if (const auto number = value(symbol))
                (is_part(symbol) ? tiles : sizes).push_back(fmt::format("{} = {}", called, *number));
        std::string out = "  at " + join(sizes, ", ") + (tiles.empty() ? "" : ";  " + join(tiles, ", ")) + "\n";
        const double moved = static_cast<double>(counts_->loaded_bytes) + static_cast<double>(counts_->stored_bytes);
        out += fmt::format("  N_g  {} groups", count_text(static_cast<double>(counts_->groups)));
        if (counts_->chunks_run + counts_->chunks_skipped > 0)
            out += fmt::format(", {} chunks run, {} skipped", count_text(static_cast<double>(counts_->chunks_run)),
                               count_text(static_cast<double>(counts_->chunks_skipped)));
        out += fmt::format("\n  H    {} values, {}", count_text(static_cast<double>(counts_->transfers())),
                           bytes_text(moved));
        if (least_) out += "; " + fewest_text();
        out += fmt::format("\n  M    {} values a core\n", count_text(static_cast<double>(counts_->peak_memory)));
        std::vector<std::string> kinds;
        for (std::size_t k = 0; k < num_op_kinds; ++k)
            if (const auto kind = static_cast<OpKind>(k); work_.of(kind) > 0)
                kinds.push_back(fmt::format("{} {}", short_number(static_cast<double>(work_.of(kind))), napkin::name(kind)));
        out += fmt::format("  work {}FLOP ({}), {:.3g} FLOP a byte\n",
                           short_number(work_.flops()) + (work_.flops() < 1000 ? " " : ""), join(kinds, ", "),
                           work_.flops() / std::max(moved, 1.0));
        return out;
    }

    [[nodiscard]] json numbers_json() const {
        json out = {{"groups", counts_->groups},
                    {"loaded_values", counts_->loaded},
                    {"stored_values", counts_->stored},
                    {"transfers_values", counts_->transfers()},
                    {"transfers_bytes", counts_->loaded_bytes + counts_->stored_bytes},
                    {"memory_values", counts_->peak_memory},
                    {"chunks_run", counts_->chunks_run},
                    {"chunks_skipped", counts_->chunks_skipped},
                    {"flops", work_.flops()}};
        for (const AxisId axis : cost_.grouped) out["group"][name(axis)] = numbers_->sizes[index_].group[at(axis)];
        for (const AxisId axis : cost_.streamed) out["stream"][name(axis)] = value(stream_symbol(axis)).value_or(0);
        for (const ArrayCount& c : counts_->arrays)
            out["arrays"][derived_.diagram.array(c.array).name] = {{"loaded", c.loaded}, {"stored", c.stored}};
        for (std::size_t k = 0; k < num_op_kinds; ++k)
            if (work_.by_kind[k] > 0)
                out["operations"][std::string(napkin::name(static_cast<OpKind>(k)))] = work_.by_kind[k];
        if (numbers_->memory_values) {
            out["core_memory_values"] = *numbers_->memory_values;
            const auto of_symbol = [&](Symbol symbol) { return value(symbol); };
            const auto group_json = [&](const SearchResult& found) {
                json sizes = json::object();
                for (std::size_t i = 0; i < least_->cost.grouped.size(); ++i)
                    sizes[name(least_->cost.grouped[i])] = found.sizes[i];
                return sizes;
            };
            const SearchResult& fewest = least_->numeric;
            // The formula's value where it holds, else the fewest that integer sizes reach.
            if (least_->formula_holds() || fewest.fits)
                out["optimum_transfers_values"] = least_->formula_holds() ? *least_->formula : fewest.transfers;
            out["optimum_formula"] = {{"holds", least_->formula_holds()}};
            if (least_->formula) out["optimum_formula"]["transfers_values"] = *least_->formula;
            if (!least_->formula_holds()) out["optimum_formula"]["why_not"] = reason(least_->misfit);
            out["compulsory_transfers_values"] = least_->compulsory;
            out["fewest"] = {{"fits", fewest.fits},
                             {"transfers_values", fewest.transfers},
                             {"memory_values", fewest.memory},
                             {"group", group_json(fewest)}};
            if (legal_)
                out["fewest"]["under_divisors"] = {
                    {"fits", legal_->fits}, {"transfers_values", legal_->transfers}, {"group", group_json(*legal_)}};
            if (at_hand_.closed) {
                out["fewest"]["closed_form"] = optimum_json(at_hand_);
                if (const auto best = at_hand_.value(at_hand_.transfers, of_symbol))
                    out["fewest"]["closed_form"]["transfers_values"] = *best;
            }
        }
        return out;
    }

    [[nodiscard]] json optimum_json(const Optimum& optimum) const {
        const SymbolNames names = names_in(optimum, derived_.diagram);
        json out = {{"closed", optimum.closed}, {"memory", to_string(optimum.memory, names)}};
        if (!optimum.closed) {
            out["why_numeric"] = why_numeric(optimum, derived_.diagram);
            return out;
        }
        out["transfers"] = to_string(optimum.transfers, names), out["at"] = reached_at(optimum, derived_.diagram);
        out["standard_form"] = json::array();
        for (const StandardTerm& term : optimum.standard_form())
            out["standard_form"].push_back({{"alpha", to_string(term.alpha, names)}, {"beta", to_string(term.beta)}});
        return out;
    }

    const Derived& derived_;
    std::size_t index_;
    const Kernel& kernel_;
    const std::optional<CostNumbers>& numbers_;
    SymbolNames names_;
    KernelCost cost_, tied_;
    TiedLetters tied_letters_;
    Optimum optimum_, tied_optimum_;
    std::optional<Counts> counts_;
    WorkTotals work_;
    std::optional<LeastTransfers> least_;
    std::optional<SearchResult> legal_;
    Optimum at_hand_;
    std::optional<MachineFigures> figures_;
};

}  // namespace

CostReport cost_report(const Derived& derived, const std::optional<CostNumbers>& numbers) {
    CostReport report;
    report.text = fmt::format("cost of {}: values moved between memory and core (H), values held in a core (M)\n",
                              derived.diagram.name);
    report.json["kernels"] = json::array();
    Size total;
    double values = 0, moved = 0;
    for (std::size_t k = 0; k < derived.kernels.size(); ++k) {
        const KernelReport kernel(derived, k, numbers);
        report.text += "\n" + kernel.text();
        report.json["kernels"].push_back(kernel.to_json());
        total += kernel.transfers();
        if (const auto& counts = kernel.counts()) {
            values += static_cast<double>(counts->transfers());
            moved += static_cast<double>(counts->loaded_bytes) + static_cast<double>(counts->stored_bytes);
        }
    }
    const SymbolNames names = symbol_names(derived.diagram);
    report.json["total"]["transfers"] = to_string(total, names);
    if (numbers) report.json["total"]["transfers_values"] = values, report.json["total"]["transfers_bytes"] = moved;
    if (derived.kernels.size() > 1) {
        report.text += fmt::format("\nall {} kernels   H {}", derived.kernels.size(), to_string(total, names));
        if (numbers)
            report.text += fmt::format("\n                {} values, {}", count_text(values), bytes_text(moved));
        report.text += "\n";
    }
    return report;
}

}  // namespace napkin
