// What `napkin cost` says as JSON.

#include "cost/machine_report.hpp"
#include "cost/optimum_text.hpp"
#include "cost/report.hpp"
#include "diagram/symbol_names.hpp"
#include "support/ids.hpp"
#include "support/json.hpp"
#include "support/saturate.hpp"
#include "support/text.hpp"

namespace napkin {
namespace {

using nlohmann::json;

class KernelJson {
public:
    KernelJson(const Derived& derived, const CostNumbers* numbers, const KernelFigures& figures)
        : derived_(derived), numbers_(numbers), f_(figures), names_(symbol_names(derived.diagram)) {}

    [[nodiscard]] json run() const {
        json out;
        out["name"] = kernel().name;
        out["grouped"] = name_list(f_.cost.grouped);
        out["streamed"] = name_list(f_.cost.streamed);
        out["groups"] = text(f_.cost.num_groups);
        out["transfers_per_group"] = text(f_.cost.per_group);
        out["transfers"] = text(f_.cost.transfers);
        out["may_skip_chunks"] = f_.cost.may_skip;
        out["counts_padding"] = f_.cost.counts_padding;
        out["assumptions"] = f_.cost.assumptions;
        out["memory"] = json::array();
        for (const MemoryColumn& column : f_.cost.memory) {
            std::vector<std::string> alive = names_of(derived_.diagram.arrays, column.arrays);
            out["memory"].push_back({{"at", column.at}, {"values", text(column.size)}, {"alive", alive}});
        }
        for (const MemoryColumn& column : f_.cost.memory)
            for (const ArrayId id : column.arrays) {
                const Array& array = derived_.diagram.array(id);
                out["bytes_a_value"][array.name] = bytes(array.type);
            }
        out["work"] = {{"flops", text(f_.flops)}};
        for (std::size_t k = 0; k < num_op_kinds; ++k)
            if (const Size& count = f_.operations[k]; !(count == Size()))
                out["work"]["operations"][std::string(napkin::name(static_cast<OpKind>(k)))] = text(count);
        out["optimum"] = optimum_json(f_.optimum);
        if (!f_.tied_letters.empty()) {
            json letters;
            for (const auto& [from, to] : f_.tied_letters) letters[name(from)] = name(to);
            out["tied"] = {{"letters", letters},
                           {"transfers_per_group", text(f_.tied.per_group)},
                           {"transfers", text(f_.tied.transfers)},
                           {"optimum", optimum_json(f_.tied_optimum)}};
        }
        out["arrays"] = json::array();
        for (const ArrayTransfers& a : f_.cost.arrays)
            out["arrays"].push_back({{"array", derived_.diagram.array(a.array).name},
                                     {"pattern", a.pattern},
                                     {"direction", a.stored ? "stored" : "loaded"},
                                     {"per_group", text(a.per_group)},
                                     {"per_launch", text(a.per_launch)}});
        if (f_.counts) out["numbers"] = numbers_json();
        if (f_.machine) out.update(machine_json(derived_, *f_.machine));
        return out;
    }

private:
    [[nodiscard]] std::string text(const Size& size) const { return to_string(size, names_); }
    [[nodiscard]] std::string name(AxisId axis) const { return derived_.diagram.axis(axis).name; }
    [[nodiscard]] std::vector<std::string> name_list(const std::vector<AxisId>& axes) const {
        return names_of(derived_.diagram.axes, axes);
    }
    [[nodiscard]] const Kernel& kernel() const { return derived_.kernels[f_.kernel]; }

    [[nodiscard]] json numbers_json() const {
        json out = {{"groups", f_.counts->groups},
                    {"loaded_values", f_.counts->loaded},
                    {"stored_values", f_.counts->stored},
                    {"transfers_values", f_.counts->transfers()},
                    {"transfers_bytes", saturating_add(f_.counts->loaded_bytes, f_.counts->stored_bytes)},
                    {"memory_values", f_.counts->peak_memory},
                    {"chunks_run", f_.counts->chunks_run},
                    {"chunks_skipped", f_.counts->chunks_skipped},
                    {"flops", f_.work.flops()}};
        const TileSizes& tile = numbers_->sizes[f_.kernel];
        for (const AxisId axis : f_.cost.grouped)
            if (axis != f_.cost.part) out["group"][name(axis)] = tile.group[axis];
        for (const AxisId axis : tile.sub.ids())
            if (tile.sub[axis] > 0) out["subloop"][name(axis)] = tile.sub[axis];
        for (const AxisId axis : f_.cost.streamed)
            out["stream"][name(axis)] = value_at_hand(*numbers_, f_.kernel, stream_symbol(axis)).value_or(0);
        for (const ArrayCount& c : f_.counts->arrays)
            out["arrays"][derived_.diagram.array(c.array).name] = {{"loaded", c.loaded}, {"stored", c.stored}};
        for (std::size_t k = 0; k < num_op_kinds; ++k)
            if (f_.work.by_kind[k] > 0)
                out["operations"][std::string(napkin::name(static_cast<OpKind>(k)))] = f_.work.by_kind[k];
        if (numbers_->memory_values) {
            out["core_memory_values"] = *numbers_->memory_values;
            const auto of_symbol = [&](Symbol symbol) { return value_at_hand(*numbers_, f_.kernel, symbol); };
            const auto group_json = [&](const SearchResult& found) {
                json sizes = json::object();
                for (std::size_t i = 0; i < f_.least->cost.grouped.size(); ++i)
                    if (f_.least->cost.grouped[i] != f_.least->cost.part)
                        sizes[name(f_.least->cost.grouped[i])] = found.sizes[i];
                return sizes;
            };
            const SearchResult& fewest = f_.least->numeric;
            const KernelCost& cost = f_.least->cost;
            // The formula's value where it holds, else the fewest that integer sizes reach.
            if (f_.least->formula_holds() || fewest.fits)
                out["optimum_transfers_values"] = f_.least->formula_holds() ? *f_.least->formula : fewest.transfers;
            out["optimum_formula"] = {{"holds", f_.least->formula_holds()}};
            if (f_.least->formula) out["optimum_formula"]["transfers_values"] = *f_.least->formula;
            if (!f_.least->formula_holds())
                out["optimum_formula"]["why_not"] = reason(f_.least->mismatch, names_(memory_symbol));
            out["compulsory_transfers_values"] = f_.least->compulsory;
            // Where M holds no tile, what the smallest tiles would move is no answer.
            out["fewest"] = {{"fits", fewest.fits},
                             {"memory_values", fewest.memory},
                             {"group", group_json(fewest)},
                             {"stream", json::object()},
                             {"upper_bound", why_upper_bound(cost)}};
            for (std::size_t i = 0; i < cost.streamed.size(); ++i)
                out["fewest"]["stream"][name(cost.streamed[i])] = fewest.sizes[cost.grouped.size() + i];
            if (fewest.fits) out["fewest"]["transfers_values"] = fewest.transfers;
            if (f_.legal) {
                out["fewest"]["under_divisors"] = {{"fits", f_.legal->fits}, {"group", group_json(*f_.legal)}};
                if (f_.legal->fits) out["fewest"]["under_divisors"]["transfers_values"] = f_.legal->transfers;
            }
            if (f_.at_hand.closed) {
                out["fewest"]["closed_form"] = optimum_json(f_.at_hand);
                if (const auto best = f_.at_hand.value(f_.at_hand.transfers, of_symbol))
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
    const CostNumbers* numbers_;
    const KernelFigures& f_;
    SymbolNames names_;
};

}  // namespace

json cost_json(const Derived& derived, const std::optional<CostNumbers>& numbers, const std::vector<TileKernel>& tiles) {
    json out;
    out["kernels"] = json::array();
    const std::vector<KernelFigures> kernels = cost_figures(derived, numbers, tiles);
    for (const KernelFigures& kernel : kernels)
        out["kernels"].push_back(KernelJson(derived, numbers ? &*numbers : nullptr, kernel).run());
    const TotalTransfers total = total_transfers(kernels);
    out["total"]["transfers"] = to_string(total.letters, symbol_names(derived.diagram));
    if (numbers) out["total"]["transfers_values"] = total.values, out["total"]["transfers_bytes"] = total.bytes;
    return out;
}

}  // namespace napkin
