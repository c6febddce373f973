#include "cost/cost_figures.hpp"

#include <map>

#include "cost/bounds.hpp"
#include "cost/compulsory.hpp"
#include "cost/optimum.hpp"
#include "cost/transfers.hpp"
#include "derive/stream_choices.hpp"
#include "support/ids.hpp"
#include "support/ranges.hpp"
#include "support/result.hpp"
#include "tile/expand.hpp"

namespace napkin {
namespace {

/// Inner axes (neither grouped nor streamed) of equal size, each with the letter that stands for all of them: one that
/// an output has.
TiedLetters ties(const Derived& derived, const KernelCost& cost, const Kernel& kernel,
                 const std::optional<CostNumbers>& numbers) {
    const Diagram& diagram = derived.diagram;
    const std::vector<Symbol> symbols = (cost.transfers + cost.per_group).symbols();
    const auto used = [&](AxisId axis) { return contains(symbols, axis_symbol(axis)); };
    const auto in_output = [&](AxisId axis) {
        return any_of(kernel.outputs, [&](ArrayId o) { return contains(diagram.array(o).axes, axis); });
    };
    std::map<std::int64_t, std::vector<AxisId>> by_size;
    for (const AxisId axis : diagram.axes.ids()) {
        if (contains(cost.grouped, axis) || contains(cost.streamed, axis) || !used(axis)) continue;
        std::optional<std::int64_t> size;
        if (numbers)
            size = numbers->extents[axis];
        else if (const auto& given = diagram.axis(axis).size)
            if (const auto constant = given->as_constant(); constant && constant->is_integer())
                size = constant->numerator();
        if (size) by_size[*size].push_back(axis);
    }
    TiedLetters letters;
    for (auto& [size, axes] : by_size) {
        const auto output = find_if(axes, in_output);
        const AxisId letter = output == axes.end() ? axes.front() : *output;
        for (const AxisId axis : axes)
            if (axis != letter) letters[axis] = letter;
    }
    return letters;
}

void count_exactly(const Derived& derived, const CostNumbers& numbers, KernelFigures& f) {
    internal_check(f.kernel < numbers.sizes.size(), "cost: sizes for too few kernels");
    const Liveness live = liveness(with_numbers(f.tiles, numbers.extents));
    const TileCounter counter(derived.diagram, live, numbers.extents, numbers.sizes[f.kernel]);
    f.counts = counter.costs();
    f.work = total_work(counter, statement_work(derived.diagram, f.tiles));
}

/// H*, and the numeric optimum: of all axes that the kernel can stream and group, whatever the sizes at hand do.
void find_fewest(StreamChoices& streams, const CostNumbers& numbers, KernelFigures& f) {
    f.least = least_transfers(streams.of(f.kernel), numbers.extents, *numbers.memory_values);
    f.optimum = f.least->letters;
    f.tied_optimum = optimum(with_tied(f.least->grouped, f.tied_letters));
    // In letters as far as the sizes at hand allow: axes that would not fill a group are whole.
    f.at_hand = optimum_at(f.least->grouped, [&](Symbol symbol) { return value_at_hand(numbers, f.kernel, symbol); });
}

/// The same among sizes that the machine's lines and instructions take.
void find_legal(const CostNumbers& numbers, KernelFigures& f) {
    SearchOptions options;
    options.memory = *numbers.memory_values;
    const KernelOnMachine& on_machine = (*numbers.on_machine)[f.kernel];
    options.group_divisor = on_machine.divisors.least_multiple;
    options.open_streams = true;
    for (const AxisId axis : f.least->cost.streamed) options.stream[axis] = on_machine.divisors.of(axis);
    f.legal = search_sizes(SizedCost(f.least->cost, numbers.extents), options);
}

void place_on_machine(const Derived& derived, const CostNumbers& numbers, KernelFigures& f) {
    const Kernel& kernel = derived.kernels[f.kernel];
    find_legal(numbers, f);
    f.machine.emplace();
    f.machine->machine = numbers.machine;
    f.machine->cost = &(*numbers.on_machine)[f.kernel];
    std::vector<ModelLevel> levels;
    for (const LevelLoad& load : f.machine->cost->levels) levels.push_back(load.level);
    const Derived& form = f.least->form;
    f.machine->levels = multi_level(form, form.kernels.front(), f.tied_letters, numbers.extents, levels);
    f.machine->limits = bounds(
        derived, kernel, f.tied_optimum, f.tied_letters, numbers.extents, *f.machine->machine, *f.machine->cost,
        io_bounds(derived, kernel, numbers.extents, *numbers.memory_values, f.least->cost.may_skip || may_skip(kernel)));
    f.machine->iteration = iteration_rows(derived, kernel, numbers.extents, *f.machine->machine, *f.machine->cost);
    f.machine->links = link_savings(form, form.kernels.front(), numbers.extents, *f.machine->machine, *f.machine->cost);
    if (f.least->numeric.fits) f.machine->fewest_values = f.least->numeric.transfers;
    f.machine->why_fewest_is_a_bound = why_upper_bound(f.least->cost);
    f.machine->special_overhead = numbers.special_overhead;
}

KernelFigures figures_of(const Derived& derived, std::size_t index, const std::optional<CostNumbers>& numbers,
                         std::optional<StreamChoices>& streams, const std::vector<TileKernel>& tiles) {
    const Kernel& kernel = derived.kernels[index];
    KernelFigures f;
    f.kernel = index;
    std::vector<AxisId> grouped = default_grouped(kernel);
    if (numbers) {
        // The axes that are cut in fact; one at its whole extent keeps its letter.
        grouped.clear();
        for (const AxisId axis : kernel.group_axes)
            if (axis == kernel.parts.part || numbers->sizes[f.kernel].group[axis] > 0) grouped.push_back(axis);
    }
    f.tiles = tiles.empty() ? expand(derived, kernel) : tiles.at(index);
    f.cost = symbolic_cost(derived.diagram, f.tiles, grouped);
    f.operations = symbolic_work(derived.diagram, f.tiles, grouped);
    f.flops = flops(f.operations);
    f.tied_letters = ties(derived, f.cost, kernel, numbers);
    f.tied = with_tied(f.cost, f.tied_letters);
    f.tied_flops = with_tied(f.flops, f.tied_letters);
    const KernelCost held = symbolic_cost(derived, kernel, default_grouped(kernel), Measure::values,
                                          HeldTiles::point_by_point);
    f.optimum = optimum(held);
    f.tied_optimum = optimum(with_tied(held, f.tied_letters));
    if (numbers) count_exactly(derived, *numbers, f);
    if (streams) find_fewest(*streams, *numbers, f);
    if (numbers && numbers->on_machine) place_on_machine(derived, *numbers, f);
    return f;
}

}  // namespace

std::optional<double> value_at_hand(const CostNumbers& numbers, std::size_t kernel, Symbol symbol) {
    if (symbol == memory_symbol) return numbers.memory_values;
    const auto axis = symbol.axis();
    const TileSizes& sizes = numbers.sizes[kernel];
    const std::int64_t whole = numbers.extents[axis];
    const std::int64_t cut = symbol.kind == SymbolKind::group     ? sizes.group[axis]
                             : symbol.kind == SymbolKind::stream  ? sizes.stream[axis]
                             : symbol.kind == SymbolKind::subloop ? sizes.sub.at(axis)
                                                                  : whole;
    return static_cast<double>(cut > 0 ? cut : whole);
}

std::vector<KernelFigures> cost_figures(const Derived& derived, const std::optional<CostNumbers>& numbers,
                                        const std::vector<TileKernel>& tiles) {
    std::vector<KernelFigures> out;
    std::optional<StreamChoices> streams;
    if (numbers && numbers->memory_values) streams.emplace(derived);
    for (std::size_t k = 0; k < derived.kernels.size(); ++k)
        out.push_back(figures_of(derived, k, numbers, streams, tiles));
    return out;
}

TotalTransfers total_transfers(const std::vector<KernelFigures>& kernels) {
    TotalTransfers total;
    for (const KernelFigures& kernel : kernels) {
        total.letters += kernel.cost.transfers;
        if (!kernel.counts) continue;
        total.values += static_cast<double>(kernel.counts->transfers());
        total.bytes += static_cast<double>(kernel.counts->loaded_bytes) + static_cast<double>(kernel.counts->stored_bytes);
    }
    return total;
}

}  // namespace napkin
