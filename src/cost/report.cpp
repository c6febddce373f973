#include "cost/report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "cost/optimum_text.hpp"
#include "diagram/symbol_names.hpp"
#include "support/ids.hpp"
#include "support/numbers.hpp"
#include "support/result.hpp"
#include "support/saturate.hpp"
#include "support/text.hpp"

namespace napkin {
namespace {

using report::Figure;
using report::Json;
using report::Section;
using report::Value;

/// One kernel's part of the report.
class KernelReport {
public:
    KernelReport(const Derived& derived, const CostNumbers* numbers, const KernelFigures& figures)
        : derived_(derived), numbers_(numbers), f_(figures), names_(symbol_names(derived.diagram)) {}

    [[nodiscard]] Section section() const {
        Section out = letters();
        if (f_.counts) add_numbers(out);
        if (f_.machine) out.text("\n"), add_machine(out, derived_, *f_.machine, numbers_->explain);
        return out;
    }

    [[nodiscard]] Section letters() const {
        std::vector<std::string> how;
        if (!f_.cost.grouped.empty()) how.push_back("grouped " + join(names(f_.cost.grouped), ", "));
        if (!f_.cost.streamed.empty()) how.push_back("streamed " + join(names(f_.cost.streamed), ", "));
        const std::string& name = derived_.kernels[f_.kernel].name;
        Section out{"kernels/[]", fmt::format("kernel {}{}", name, how.empty() ? "" : "   " + join(how, " · ")), 2, {}};
        out.data("name", name), out.data("grouped", names(f_.cost.grouped)), out.data("streamed", names(f_.cost.streamed));
        add_letters(out);
        out.text("\n");
        add_arrays(out);
        return out;
    }

private:
    [[nodiscard]] std::string text(const Size& size) const { return to_string(size, names_); }
    [[nodiscard]] Value value(const Size& size) const { return report::formula(size, names_); }
    [[nodiscard]] std::string name(AxisId axis) const { return derived_.diagram.axis(axis).name; }
    [[nodiscard]] std::vector<std::string> names(const std::vector<AxisId>& axes) const {
        return names_of(derived_.diagram.axes, axes);
    }

    [[nodiscard]] std::string fewest_text() const {
        const SearchResult& fewest = f_.least->numeric;
        const KernelCost& cost = f_.least->cost;
        std::vector<std::string> sizes;
        for (std::size_t i = 0; i < cost.grouped.size(); ++i) {
            const AxisId axis = cost.grouped[i];
            // A whole axis whose groups would repeat work is not grouped.
            if (axis == cost.part) continue;
            const bool is_whole = fewest.sizes[i] == numbers_->extents[axis];
            if (is_whole && contains(derived_.kernels[f_.kernel].recompute_axes, axis)) continue;
            sizes.push_back(fmt::format("{} = {}", names_(group_symbol(axis)), fewest.sizes[i]));
        }
        for (std::size_t i = 0; i < cost.streamed.size(); ++i) {
            const std::int64_t size = fewest.sizes[cost.grouped.size() + i];
            if (size > 1) sizes.push_back(fmt::format("{} = {}", names_(stream_symbol(cost.streamed[i])), size));
        }
        const std::string m = names_(memory_symbol), memory = count_text(std::floor(*numbers_->memory_values)),
                          bound = why_upper_bound(cost);
        if (cost.streamed != f_.cost.streamed)
            sizes.push_back(cost.streamed.empty() ? "nothing streamed" : join(names(cost.streamed), ", ") + " streamed");
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

    void add_letters(Section& out) const {
        const bool tied = !f_.tied_letters.empty(), skips = f_.cost.may_skip;
        std::vector<Figure> rows;
        const auto add = [&](const char* path, const char* label, const Size& size, const char* tied_path,
                             const Size& tied_size, const std::string& remark = "") {
            rows.push_back({path, label, value(size), remark});
            if (!tied) return;
            if (!(tied_size == size)) rows.push_back({"", "", report::shown("= " + text(tied_size)), tied_remark()});
            if (*tied_path != '\0') rows.push_back({tied_path, "", report::data(text(tied_size))});
        };
        add("groups", "N_g", f_.cost.num_groups, "", f_.tied.num_groups);
        add("transfers_per_group", "H_g", f_.cost.per_group, "tied/transfers_per_group", f_.tied.per_group);
        add("transfers", skips || f_.cost.counts_padding ? "H ≤" : "H", f_.cost.transfers, "tied/transfers",
            f_.tied.transfers, join(f_.cost.assumptions, ", "));
        bool first = true;
        for (const MemoryColumn& column : tied ? f_.tied.memory : f_.cost.memory) {
            rows.push_back({"", first ? "M ≥" : "  ≥", value(column.size),
                            "at " + column.at + (tied && first ? ", " + tied_remark() : "")});
            first = false;
        }
        add("work/flops", skips ? "W ≤" : "W", f_.flops, "", f_.tied_flops, "FLOP");
        const Optimum& best = tied ? f_.tied_optimum : f_.optimum;
        const std::vector<std::string> at = reached_at(best, derived_.diagram);
        const bool is_bound = !why_upper_bound(f_.least ? f_.least->cost : f_.cost).empty();
        if (best.closed)
            rows.push_back({"", is_bound ? "H* ≤" : "H*", report::formula(best.transfers, names_in(best, derived_.diagram)),
                            at.empty() ? "at any group sizes" : "at " + join(at, ", ")});
        else
            rows.push_back({"", "H*", report::shown("numeric: " + why_numeric(best, derived_.diagram))});
        out.rows(std::move(rows));
        add_letters_for_programs(out);
    }

    void add_letters_for_programs(Section& out) const {
        out.data("may_skip_chunks", f_.cost.may_skip), out.data("counts_padding", f_.cost.counts_padding);
        out.data("assumptions", f_.cost.assumptions);
        Json memory = Json::array();
        for (const MemoryColumn& column : f_.cost.memory) {
            memory.push_back({{"at", column.at},
                              {"values", text(column.size)},
                              {"alive", names_of(derived_.diagram.arrays, column.arrays)}});
            for (const ArrayId id : column.arrays)
                out.data("bytes_a_value/" + derived_.diagram.array(id).name, bytes(derived_.diagram.array(id).type));
        }
        out.data("memory", std::move(memory));
        for (std::size_t k = 0; k < num_op_kinds; ++k)
            if (const Size& count = f_.operations[k]; !(count == Size()))
                out.data(fmt::format("work/operations/{}", napkin::name(static_cast<OpKind>(k))), text(count));
        out.data("optimum", optimum_json(f_.optimum));
        if (!f_.tied_letters.empty()) out.data("tied/optimum", optimum_json(f_.tied_optimum));
        for (const auto& [from, to] : f_.tied_letters) out.data("tied/letters/" + name(from), name(to));
    }

    void add_arrays(Section& out) const {
        report::Table table{"arrays",
                            "",
                            {{"array", ""},
                             {"pattern", "array"},
                             {"direction", "moved"},
                             {"per_group", "a group"},
                             {"per_launch", "a launch"},
                             {"", "values"}},
                            {}};
        std::map<ArrayId, bool> shown;
        for (const ArrayTransfers& a : f_.cost.arrays) {
            // Several patterns of one array share its count, which stands beside the first.
            Value values = report::shown("");
            for (const ArrayCount& c : f_.counts ? f_.counts->arrays : std::vector<ArrayCount>())
                if (c.array == a.array && !std::exchange(shown[a.array], true))
                    values = report::count(a.stored ? c.stored : c.loaded);
            table.rows.push_back({report::data(derived_.diagram.array(a.array).name), report::words(a.pattern),
                                  report::words(a.stored ? "stored" : "loaded"), value(a.per_group),
                                  value(a.per_launch), values});
        }
        out.table(std::move(table));
    }

    void add_numbers(Section& out) const {
        std::vector<std::string> sizes, tiles, kinds;
        std::map<std::string, Symbol> symbols;
        const auto see = [&](const Size& size) {
            for (const Symbol symbol : size.symbols()) symbols[names_(symbol)] = symbol;
        };
        see(f_.cost.transfers), see(f_.cost.per_group), see(f_.flops);
        for (const MemoryColumn& column : f_.cost.memory) see(column.size);
        for (const auto& [called, symbol] : symbols)
            if (const auto number = value_at_hand(*numbers_, f_.kernel, symbol))
                (is_part(symbol) ? tiles : sizes).push_back(fmt::format("{} = {}", called, *number));
        out.text("\nat " + join(sizes, ", ") + (tiles.empty() ? "" : ";  " + join(tiles, ", ")));
        const Counts& counts = *f_.counts;
        const std::int64_t moved = saturating_add(counts.loaded_bytes, counts.stored_bytes);
        const auto number = [](std::int64_t value) { return count_text(static_cast<double>(value)); };
        std::string groups = number(counts.groups) + " groups";
        if (counts.chunks_run + counts.chunks_skipped > 0)
            groups += fmt::format(", {} chunks run, {} skipped", number(counts.chunks_run), number(counts.chunks_skipped));
        for (std::size_t k = 0; k < num_op_kinds; ++k)
            if (const auto kind = static_cast<OpKind>(k); f_.work.of(kind) > 0)
                kinds.push_back(fmt::format("{} {}", report::operations(static_cast<double>(f_.work.of(kind))).text,
                                            napkin::name(kind)));
        const double flops = f_.work.flops();
        out.rows({{"numbers/groups", "N_g", {counts.groups, groups}},
                  {"numbers/transfers_values",
                   "H",
                   {counts.transfers(),
                    fmt::format("{} values, {}{}", number(counts.transfers()), bytes_text(static_cast<double>(moved)),
                                f_.least ? "; " + fewest_text() : "")}},
                  {"numbers/memory_values", "M", {counts.peak_memory, number(counts.peak_memory) + " values a core"}},
                  {"numbers/flops",
                   "work",
                   {flops, fmt::format("{}{}FLOP ({}), {:.3g} FLOP a byte", report::operations(flops).text,
                                       flops < 1000 ? " " : "", join(kinds, ", "),
                                       flops / std::max(static_cast<double>(moved), 1.0))}},
                  {"numbers/loaded_values", "", report::data(counts.loaded)},
                  {"numbers/stored_values", "", report::data(counts.stored)},
                  {"numbers/transfers_bytes", "", report::data(moved)},
                  {"numbers/chunks_run", "", report::data(counts.chunks_run)},
                  {"numbers/chunks_skipped", "", report::data(counts.chunks_skipped)}});
        const TileSizes& tile = numbers_->sizes[f_.kernel];
        for (const AxisId axis : f_.cost.grouped)
            if (axis != f_.cost.part) out.data("numbers/group/" + name(axis), tile.group[axis]);
        for (const AxisId axis : tile.sub.ids())
            if (tile.sub[axis] > 0) out.data("numbers/subloop/" + name(axis), tile.sub[axis]);
        for (const AxisId axis : f_.cost.streamed)
            out.data("numbers/stream/" + name(axis), value_at_hand(*numbers_, f_.kernel, stream_symbol(axis)).value_or(0));
        for (const ArrayCount& c : counts.arrays)
            out.data("numbers/arrays/" + derived_.diagram.array(c.array).name,
                     {{"loaded", c.loaded}, {"stored", c.stored}});
        for (std::size_t k = 0; k < num_op_kinds; ++k)
            if (f_.work.by_kind[k] > 0)
                out.data(fmt::format("numbers/operations/{}", napkin::name(static_cast<OpKind>(k))), f_.work.by_kind[k]);
        if (numbers_->memory_values) add_fewest(out);
    }

    /// What a core's memory allows, beside what the sizes at hand move.
    void add_fewest(Section& out) const {
        const KernelCost& cost = f_.least->cost;
        const SearchResult& fewest = f_.least->numeric;
        const auto group_json = [&](const SearchResult& found) {
            Json sizes = Json::object();
            for (std::size_t i = 0; i < cost.grouped.size(); ++i)
                if (cost.grouped[i] != cost.part) sizes[name(cost.grouped[i])] = found.sizes[i];
            return sizes;
        };
        const bool holds = f_.least->formula_holds();
        out.data("numbers/core_memory_values", *numbers_->memory_values);
        // The formula's value where it holds, else the fewest that integer sizes reach.
        if (holds || fewest.fits)
            out.data("numbers/optimum_transfers_values", holds ? *f_.least->formula : fewest.transfers);
        out.data("numbers/optimum_formula/holds", holds);
        if (f_.least->formula) out.data("numbers/optimum_formula/transfers_values", *f_.least->formula);
        if (!holds) out.data("numbers/optimum_formula/why_not", reason(f_.least->mismatch, names_(memory_symbol)));
        out.data("numbers/compulsory_transfers_values", f_.least->compulsory);
        // Where M holds no tile, what the smallest tiles would move is no answer.
        Json found = {{"fits", fewest.fits},
                      {"memory_values", fewest.memory},
                      {"group", group_json(fewest)},
                      {"stream", Json::object()},
                      {"upper_bound", why_upper_bound(cost)}};
        for (std::size_t i = 0; i < cost.streamed.size(); ++i)
            found["stream"][name(cost.streamed[i])] = fewest.sizes[cost.grouped.size() + i];
        if (fewest.fits) found["transfers_values"] = fewest.transfers;
        if (f_.legal) {
            found["under_divisors"] = {{"fits", f_.legal->fits}, {"group", group_json(*f_.legal)}};
            if (f_.legal->fits) found["under_divisors"]["transfers_values"] = f_.legal->transfers;
        }
        if (f_.at_hand.closed) {
            found["closed_form"] = optimum_json(f_.at_hand);
            const auto of_symbol = [&](Symbol symbol) { return value_at_hand(*numbers_, f_.kernel, symbol); };
            if (const auto best = f_.at_hand.value(f_.at_hand.transfers, of_symbol))
                found["closed_form"]["transfers_values"] = *best;
        }
        out.data("numbers/fewest", std::move(found));
    }

    [[nodiscard]] Json optimum_json(const Optimum& optimum) const {
        const SymbolNames names = names_in(optimum, derived_.diagram);
        Json out = {{"closed", optimum.closed}, {"memory", to_string(optimum.memory, names)}};
        if (!optimum.closed) {
            out["why_numeric"] = why_numeric(optimum, derived_.diagram);
            return out;
        }
        out["transfers"] = to_string(optimum.transfers, names), out["at"] = reached_at(optimum, derived_.diagram);
        out["standard_form"] = Json::array();
        for (const StandardTerm& term : optimum.standard_form())
            out["standard_form"].push_back({{"alpha", to_string(term.alpha, names)}, {"beta", to_string(term.beta)}});
        return out;
    }

    const Derived& derived_;
    const CostNumbers* numbers_;
    const KernelFigures& f_;
    SymbolNames names_;
};

}  // namespace

Section letters_report(const Derived& derived, const KernelFigures& figures) {
    return KernelReport(derived, nullptr, figures).letters();
}

Section cost_report(const Derived& derived, const std::optional<CostNumbers>& numbers, const std::vector<TileKernel>& tiles) {
    Section out;
    out.text(fmt::format("cost of {}: values moved between memory and core (H), values held in a core (M)",
                         derived.diagram.name));
    const std::vector<KernelFigures> kernels = cost_figures(derived, numbers, tiles);
    for (const KernelFigures& kernel : kernels)
        out.add(KernelReport(derived, numbers ? &*numbers : nullptr, kernel).section());
    const TotalTransfers total = total_transfers(kernels);
    const std::string letters = to_string(total.letters, symbol_names(derived.diagram));
    if (kernels.size() < 2) {
        out.data("total/transfers", letters);
        if (numbers) out.data("total/transfers_values", total.values), out.data("total/transfers_bytes", total.bytes);
        return out;
    }
    Section all{"total", fmt::format("all {} kernels", kernels.size()), 2, {}};
    all.rows({{"transfers", "H", report::words(letters)}});
    if (numbers)
        all.line({{"transfers_values", "", {total.values, count_text(total.values) + " values"}},
                  {"transfers_bytes", "", report::bytes(total.bytes)}});
    out.add(std::move(all));
    return out;
}

}  // namespace napkin
