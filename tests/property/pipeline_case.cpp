#include "property/pipeline_case.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>
#include <random>

#include "check/agreement.hpp"
#include "cost/symbolic_work.hpp"
#include "cost/transfers.hpp"
#include "derive/evaluate_derived.hpp"
#include "derive/parts.hpp"
#include "derive/replay.hpp"
#include "derive/verify.hpp"
#include "support/ids.hpp"
#include "support/parse_tile.hpp"
#include "support/random_diagram.hpp"
#include "support/saturate.hpp"
#include "syntax/print.hpp"
#include "tile/exact.hpp"
#include "tile/expand.hpp"
#include "tile/interpret.hpp"
#include "tile/print.hpp"
#include "tile/subloops.hpp"
#include "tile/uses.hpp"
#include "tile/verify.hpp"

namespace napkin::pipeline {
namespace {

std::string differences(const Counts& counted, const Counts& model) {
    const auto differ = [](const char* what, std::int64_t a, std::int64_t b) {
        return a == b ? "" : fmt::format("{} counted {}, model {}; ", what, a, b);
    };
    std::string out = differ("loaded", counted.loaded, model.loaded) + differ("stored", counted.stored, model.stored) +
                      differ("peak", counted.peak_memory, model.peak_memory) +
                      differ("groups", counted.groups, model.groups) +
                      differ("chunks run", counted.chunks_run, model.chunks_run) +
                      differ("chunks skipped", counted.chunks_skipped, model.chunks_skipped);
    if (out.empty() && counted != model) out = "the counts of the arrays or the bytes differ";
    return out;
}

/// The extents up to whole tiles of everything that cuts them; nothing where a subloop leaves a rest in every group,
/// for which no extent stands.
std::optional<Extents> up_to_whole_tiles(const SizedProgram& program, std::size_t k, const Liveness& live) {
    const TileSizes& sizes = program.sizes[k];
    std::vector<std::int64_t> unit(program.extents.size(), 1);
    for (const auto& [axis, size] : groups_of(program.kernels[k], sizes)) unit[at(axis)] = size;
    for (const CoreLoop& loop : live.loops) {
        const std::int64_t group = sizes.group[loop.axis], cut = (loop.is_sub ? sizes.sub : sizes.stream)[loop.axis];
        if (cut == 0) continue;
        if (group > 0 && group % cut != 0) return std::nullopt;
        unit[at(loop.axis)] = std::lcm(unit[at(loop.axis)], cut);
    }
    Extents extents = program.extents;
    for (const AxisId a : extents.ids()) extents[a] = (extents[a] + unit[a] - 1) / unit[a] * unit[a];
    return extents;
}

/// Compares H, M and the work in letters with the exact counts, at extents of whole tiles. They must be equal if the
/// extents are such already, no chunk is skipped and no tile reaches past its array. Otherwise the letters must be no
/// less. Quotients and remainders are left out, for which the letters assume more than that.
std::string against_letters(const SizedProgram& program, std::size_t k, const Counts& exact, Coverage& seen) {
    const TileSizes& sizes = program.sizes[k];
    const Liveness live = liveness(program.kernels[k]);
    const auto extents = up_to_whole_tiles(program, k, live);
    if (!extents) return "";
    bool is_exact = *extents == program.extents;
    for (const CoreLoop& loop : live.loops) is_exact = is_exact && loop.support.empty();
    for (const CoreVariable& v : live.variables)
        for (std::size_t d = 0; d < v.dims.size(); ++d) {
            if (!v.dims[d].affine()) return "";
            const Interval range = range_of(v.dims[d], std::vector<std::int64_t>(extents->size(), 0), program.extents);
            is_exact = is_exact && range.low >= 0 && range.high < program.extents[v.limits[d]];
        }
    std::vector<AxisId> grouped;
    for (const auto& [axis, size] : groups_of(program.kernels[k], sizes)) grouped.push_back(axis);
    const KernelCost cost = symbolic_cost(program.diagram, program.kernels[k], grouped);
    const auto value = [&](Symbol symbol) -> std::optional<double> {
        const auto axis = symbol.axis();
        std::int64_t size = 0;
        if (symbol.kind == SymbolKind::group) size = sizes.group[axis];
        if (symbol.kind == SymbolKind::stream) size = sizes.stream[axis];
        if (symbol.kind == SymbolKind::subloop) size = sizes.sub[axis];
        return static_cast<double>(size > 0 ? size : (*extents)[axis]);
    };
    const auto differs = [&](double letters, std::int64_t counted) {
        const auto count = static_cast<double>(counted);
        return is_exact ? std::abs(letters - count) > 1e-9 * letters : letters < count * (1 - 1e-9);
    };
    const double transfers = cost.transfers.evaluate(value).value();
    double memory = 0;
    for (const MemoryColumn& column : cost.memory) memory = std::max(memory, column.size.evaluate(value).value());
    ++(is_exact ? seen.exact_letters : seen.bounding_letters);
    const char* how = is_exact ? "" : ", no less than what is";
    if (differs(transfers, exact.transfers()))
        return fmt::format("H {}{} counted {}", transfers, how, exact.transfers());
    if (differs(memory, exact.peak_memory)) return fmt::format("M {}{} counted {}", memory, how, exact.peak_memory);
    const TileCounter counter(program.diagram, live, program.extents, sizes);
    const WorkTotals work = total_work(counter, statement_work(program.diagram, program.kernels[k]));
    const WorkInLetters letters = symbolic_work(program.diagram, program.kernels[k], grouped);
    for (std::size_t kind = 0; kind < num_op_kinds; ++kind)
        if (const double operations = letters[kind].evaluate(value).value(); differs(operations, work.by_kind[kind]))
            return fmt::format("{} {}{} counted {}", name(static_cast<OpKind>(kind)), operations, how, work.by_kind[kind]);
    return "";
}

/// The tile program against the definition, the model and its own text.
std::string check_program(const Case& c, const Derived& derived, const Definition& definition, const Values& given,
                          const SizedProgram& program, Coverage& seen) {
    if (const auto faults = verify(program); !faults.empty())
        return fmt::format("tile program: {}", fmt::join(faults, "; "));
    Values values = inputs_for(derived.diagram, c.diagram, given);
    const auto counts = interpret(program, values);
    if (const auto d = definition.difference(derived.diagram, values)) return "interpreter: " + to_string(*d);
    for (std::size_t k = 0; k < counts.size(); ++k) {
        const Counts exact = exact_costs(program, k);
        if (const auto d = differences(counts[k], exact); !d.empty())
            return fmt::format("counts of {}: {}", program.kernels[k].name, d);
        if (const auto d = against_letters(program, k, exact, seen); !d.empty())
            return fmt::format("letters of {}: {}", program.kernels[k].name, d);
        seen.chunks_skipped += counts[k].chunks_skipped;
    }
    const std::string text = to_string(program);
    const auto parsed = parse_tile(text, derived);
    if (!parsed.ok()) return "parse: " + render(parsed.errors());
    if (to_string(*parsed) != text) return "parse: the text read back prints otherwise";
    return "";
}

/// The program with reductions cut over axes that they or their targets have, as many as can be of a random half.
SizedProgram with_random_subloops(SizedProgram program, std::uint64_t seed, Coverage& seen) {
    std::mt19937_64 random(seed + 77);
    for (std::size_t k = 0; k < program.kernels.size(); ++k) {
        std::vector<std::pair<VariableId, AxisId>> wanted;
        for_each_statement(program.kernels[k].body, [&](const TileStatement& s) {
            const auto* compute = std::get_if<Compute>(&s);
            if (!compute || !compute->reduce) return;
            std::vector<AxisId> axes = compute->reduce_axes;
            const ArrayId array = program.kernels[k].variables[compute->variable].array;
            for (const AxisId axis : program.diagram.array(array).axes) axes.push_back(axis);
            for (const AxisId axis : axes)
                if (random() % 2 == 0) wanted.emplace_back(compute->variable, axis);
        });
        for (const auto& subloop : wanted)
            if (auto cut = with_subloops(program.diagram, program.kernels[k], {subloop})) {
                program.kernels[k] = std::move(cut).value();
                ++seen.subloops;
            }
        for (const AxisId a : program.extents.ids())
            program.sizes[k].sub[a] = 1 + static_cast<std::int64_t>(random() %
                                                                    static_cast<std::uint64_t>(program.extents[a]));
    }
    return program;
}

/// The form with its streams cut into as many parts as there are chunks at most.
Derived with_random_parts(const Derived& derived, const Case& c, Coverage& seen) {
    std::mt19937_64 random(c.seed + 99);
    Derived form = derived;
    for (std::size_t k = 0; k < form.kernels.size(); ++k) {
        std::int64_t chunks = 1;
        for (const Stage& stage : form.kernels[k].stages)
            if (const auto* loop = std::get_if<Loop>(&stage)) {
                const std::int64_t size = c.sizes.stream[at(loop->axis)];
                chunks = size > 0 ? ceil_div(c.extents[loop->axis], size) : 1;
            }
        if (chunks < 2) continue;
        Parted cut = with_parts(form, k, 2 + static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(chunks - 1)));
        if (!cut.form) continue;
        form = std::move(*cut.form);
        k += cut.num_kernels - 1;
        ++seen.parts;
    }
    return form;
}

std::vector<TileSizes> sizes_of(const Derived& form, const Case& c) {
    std::vector<TileSizes> cuts;
    for (const Kernel& kernel : form.kernels) {
        cuts.push_back({c.sizes.group, c.sizes.stream});
        for (const AxisId a : c.extents.ids())
            if (!contains(kernel.group_axes, a)) cuts.back().group[a] = 0;
    }
    return cuts;
}

/// Streams in parts: the form, and its tile program with and without subloops.
std::string check_parts(const Case& c, const Derived& derived, const Definition& definition, const Values& given,
                        Coverage& seen) {
    const Derived form = with_random_parts(derived, c, seen);
    if (form.kernels.size() == derived.kernels.size() && form.diagram.axes.size() == derived.diagram.axes.size())
        return "";
    if (const auto faults = verify(form); !faults.empty()) return fmt::format("form: {}", fmt::join(faults, "; "));
    const Extents extents = with_part_extents(form, c.extents);
    Values values = inputs_for(form.diagram, c.diagram, given);
    evaluate(form, extents, c.sizes, values);
    if (const auto d = definition.difference(form.diagram, values)) return "form: " + to_string(*d);
    const SizedProgram program = sized(expand(form), extents, sizes_of(form, c));
    if (const std::string d = check_program(c, form, definition, given, program, seen); !d.empty())
        return d + "\n" + to_string(program);
    const SizedProgram cut = with_random_subloops(program, c.seed, seen);
    if (const std::string d = check_program(c, form, definition, given, cut, seen); !d.empty())
        return "with subloops: " + d + "\n" + to_string(cut);
    return "";
}

std::string check(const Case& c, Coverage& seen) {
    const Values given = probe_inputs(c.diagram, c.extents, c.probe, c.seed);
    const Definition definition(c.diagram, c.extents, given);

    DeriveOptions options;
    options.form = c.form;
    options.fuse = c.fuse;
    options.rewriting = c.rewriting;
    const auto result = derive(c.diagram, options);
    if (!result.ok()) return "derive: " + render(result.errors());
    const Derived& derived = *result;
    if (const auto faults = verify(derived); !faults.empty())
        return fmt::format("derived: {}", fmt::join(faults, "; "));
    if (derived.diagram.axes.size() != c.extents.size()) return "derive: the axes changed";

    for (Replay replay(derived); !replay.done(); ++seen.steps) {
        replay.next();
        const Derived form = replay.form();
        Values values = inputs_for(form.diagram, c.diagram, given);
        evaluate(form, c.extents, c.sizes, values);
        if (const auto d = definition.difference(form.diagram, values))
            return fmt::format("step {}: {}", derived.steps[replay.steps_done() - 1].rule, to_string(*d));
    }

    const auto fresh = [&] { return inputs_for(derived.diagram, c.diagram, given); };
    Values values = fresh();
    evaluate(derived, c.extents, c.sizes, values);
    if (const auto d = definition.difference(derived.diagram, values)) return "derived form: " + to_string(*d);
    for (const double split : {0.3, 0.7}) {
        values = fresh();
        seen.merges += evaluate_by_merge(derived, c.extents, c.sizes, split, values);
        if (const auto d = definition.difference(derived.diagram, values))
            return fmt::format("merge at {}: {}", split, to_string(*d));
    }

    const SizedProgram program = sized(expand(derived), c.extents, sizes_of(derived, c));
    if (const std::string d = check_program(c, derived, definition, given, program, seen); !d.empty()) return d;
    const SizedProgram cut = with_random_subloops(program, c.seed, seen);
    if (const std::string d = check_program(c, derived, definition, given, cut, seen); !d.empty())
        return "with subloops: " + d + "\n" + to_string(cut);
    if (const std::string d = check_parts(c, derived, definition, given, seen); !d.empty()) return "in parts: " + d;

    for (const Kernel& kernel : derived.kernels) {
        std::size_t statements = 0;
        for (const Stage& stage : kernel.stages)
            if (const auto* loop = std::get_if<Loop>(&stage))
                ++seen.loops, seen.states += static_cast<std::int64_t>(loop->init.size()), statements += loop->body.size();
            else
                statements += std::get<Block>(stage).statements.size();
        ++seen.kernels;
        seen.fused_kernels += statements > 1;
    }
    for (const TileKernel& kernel : program.kernels)
        for (const Variable& v : kernel.variables)
            seen.halos += std::any_of(v.dims.begin(), v.dims.end(), [](const Index& d) { return d.axes().size() > 1; });
    return "";
}

}  // namespace

Rewriting random_rewriting(std::uint64_t seed) {
    const Rewriting each[] = {{},
                              {.flat_rows = true},
                              {.again = true},
                              {.padded = true},
                              {.grouped = true},
                              {.nested = true},
                              {.packed = true},
                              {.unrolled = true}};
    return each[std::mt19937_64(seed + 55)() % std::size(each)];
}

Case make_case(const Diagram& diagram, std::uint64_t seed, Probe probe) {
    std::mt19937_64 random(seed);
    const auto pick = [&](std::int64_t n) { return static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(n)); };
    Case c;
    c.diagram = diagram;
    c.extents = random_extents(diagram, seed);
    c.probe = probe;
    c.seed = seed;
    for (const std::int64_t extent : c.extents) {
        c.sizes.group.push_back(pick(4) == 0 ? 0 : 1 + pick(extent));
        c.sizes.stream.push_back(pick(4) == 0 ? 0 : 1 + pick(extent));
    }
    c.form = pick(4) == 0 ? Form::auxiliary : Form::unscaled;
    c.fuse = pick(8) != 0;
    c.rewriting = random_rewriting(seed);
    return c;
}

std::string describe(const Case& c) {
    std::string out = napkin::describe(c.diagram);
    for (const AxisId a : c.extents.ids())
        out += fmt::format("{} = {}, group {}, stream {}\n", c.diagram.axes[a].name, c.extents[a], c.sizes.group[a],
                           c.sizes.stream[a]);
    return out + fmt::format("form {}, fuse {}, {} inputs, seed {}\n",
                             c.form == Form::auxiliary ? "auxiliary" : "unscaled", c.fuse, name(c.probe), c.seed);
}

std::string failure_of(const Case& c, Coverage& seen) {
    try {
        return check(c, seen);
    } catch (const std::exception& e) {
        return fmt::format("thrown: {}", e.what());
    }
}

std::string made_small(const Case& c) {
    constexpr std::uint64_t tries = 6;
    Coverage ignored;
    // Sizes under which a read leaves its array make no case: a variant may have lost what kept it inside.
    const auto fails = [&](const Diagram& d, std::uint64_t s) {
        try {
            return !failure_of(make_case(d, s, c.probe), ignored).empty();
        } catch (const std::exception&) {
            return false;
        }
    };
    const auto failing_seed = [&](const Diagram& d) {
        for (std::uint64_t s = c.seed; s < c.seed + tries; ++s)
            if (fails(d, s)) return s;
        return c.seed + tries;
    };
    const Diagram small = reduce_failure(c.diagram, [&](const Diagram& d) { return failing_seed(d) < c.seed + tries; });
    const Case least = make_case(small, failing_seed(small), c.probe);
    return fmt::format("reduced to\n{}{}{}\n", print(small), describe(least), failure_of(least, ignored));
}

}  // namespace napkin::pipeline
