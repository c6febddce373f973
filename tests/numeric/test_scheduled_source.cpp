// The blocks and buffers of the schedule are found again in the emitted source, of random programs and of all examples,
// at every vector width.
#include <gtest/gtest.h>

#include <fmt/format.h>

#include <cctype>
#include <map>
#include <regex>
#include <set>

#include "machine/machine.hpp"
#include "numeric/cpu_kernel_case.hpp"
#include "plan/choose.hpp"
#include "support/examples.hpp"
#include "support/random_diagram.hpp"
#include "tile/exact.hpp"

namespace napkin {
namespace {

/// Calls f with each match of the pattern that begins where the literal does, and with its place: a search for letters
/// is much quicker than one for a pattern.
template <class F>
void each_match(const std::string& source, const std::string& literal, const std::regex& pattern, F f) {
    for (std::size_t p = source.find(literal); p != std::string::npos; p = source.find(literal, p + 1))
        if (std::smatch match; std::regex_search(source.begin() + static_cast<std::ptrdiff_t>(p), source.end(), match,
                                                 pattern, std::regex_constants::match_continuous))
            f(match, p);
}
/// The letters, digits and underscores that end there.
std::string word_before(const std::string& source, std::size_t end) {
    std::size_t begin = end;
    while (begin > 0 && (std::isalnum(static_cast<unsigned char>(source[begin - 1])) || source[begin - 1] == '_'))
        --begin;
    return source.substr(begin, end - begin);
}
/// Nothing but blanks stands before it on its line.
bool begins_line(const std::string& source, std::size_t at) {
    while (at > 0 && source[at - 1] == ' ') --at;
    return at > 0 && source[at - 1] == '\n';
}

/// Accumulators by their declared extents, as "[4][3]", each with how often it occurs.
std::map<std::string, int> declared_accumulators(const std::string& source) {
    static const std::regex pattern(R"( acc((?:\[\d+\])*)(?:;| =))");
    static const std::set<std::string> types{"vec", "real", "int64_t"};
    std::map<std::string, int> found;
    each_match(source, " acc", pattern, [&](const std::smatch& match, std::size_t at) {
        if (types.contains(word_before(source, at))) ++found[match[1].str()];
    });
    return found;
}

std::map<std::string, int> scheduled_accumulators(const ScheduledProgram& program) {
    std::map<std::string, int> wanted;
    for (const ScheduledKernel& kernel : program.kernels)
        for (const Step& step : kernel.steps) {
            const auto* compute = std::get_if<Compute>(step.statement);
            if (!compute || !compute->reduce) continue;
            const Atom& atom = kernel.atom(step);
            // Where the extremum of coordinates lies is reckoned, and a follower has the vectors of its leader under a
            // name of its own.
            const bool reckoned = lies_at_an_end(*compute->reduce, compute->body) && !compute->carry &&
                                  kernel.variable(compute->variable).dims.empty();
            if (atom.follows || reckoned) continue;
            ++wanted[(atom.rows > 1 ? fmt::format("[{}]", atom.rows) : "") +
                     (atom.vectors > 1 ? fmt::format("[{}]", atom.vectors) : "")];
        }
    return wanted;
}

std::multiset<std::int64_t> declared_offsets(const std::string& source) {
    static const std::regex pattern(R"(base \+ (\d+)\)?;  //)");
    std::multiset<std::int64_t> found;
    each_match(source, "base + ", pattern,
               [&](const std::smatch& match, std::size_t) { found.insert(std::stoll(match[1].str())); });
    return found;
}

std::multiset<std::int64_t> scheduled_offsets(const ScheduledProgram& program) {
    std::multiset<std::int64_t> wanted;
    for (const ScheduledKernel& kernel : program.kernels)
        for (const VariableId v : kernel.layouts.ids())
            if (kernel.is_held(v)) wanted.insert(kernel.layouts[v].offset);
    return wanted;
}

/// Whether the kernel holds nothing by panels, in the place of another or as integers, which take more room than M
/// counts. No run of statements may go through the panels of a tile, and nothing may be kept for a statement of the
/// next group.
bool holds_whole_tiles(const ScheduledKernel& kernel) {
    for (const VariableId v : kernel.layouts.ids())
        if (kernel.is_panel(v) || kernel.layouts[v].over >= 0 || kernel.variable_facts[v].is_whole) return false;
    return std::all_of(kernel.steps.begin(), kernel.steps.end(), [&](const Step& step) {
        return (step.atom < 0 || kernel.atom(step).run < 0) && !step.is_tile_pipelined();
    });
}

/// Results that the source writes by way of a pointer into an output, and those that it copies there.
std::pair<int, int> written_results(const std::string& source) {
    static const std::regex in_place(R"(real\* const \w+ = \w+_out)"), copied("// store ");
    const auto count = [&](const std::string& literal, const std::regex& pattern) {
        int found = 0;
        each_match(source, literal, pattern,
                   [&](const std::smatch&, std::size_t at) { found += begins_line(source, at) ? 1 : 0; });
        return found;
    };
    return {count("real* const ", in_place), count("// store ", copied)};
}

std::pair<int, int> scheduled_results(const ScheduledProgram& program) {
    std::pair<int, int> wanted{0, 0};
    for (const ScheduledKernel& kernel : program.kernels)
        for (const Step& step : kernel.steps)
            if (const auto* store = std::get_if<Store>(step.statement))
                ++(kernel.is_view(store->variable) ? wanted.first : wanted.second);
    return wanted;
}

/// Prefetches by the bytes of a block, each with how often it occurs; stores past the caches, and the fences behind
/// them.
std::map<std::string, int> fetched_and_past(const std::string& source) {
    static const std::regex pattern(R"((prefetch<\d+, \d+>|store_past(?:_first)?|fence_stores)\()");
    std::map<std::string, int> found;
    for (const char* literal : {"prefetch<", "store_past", "fence_stores("})
        each_match(source, literal, pattern, [&](const std::smatch& match, std::size_t at) {
            if (word_before(source, at).empty()) ++found[match[1].str().starts_with("store") ? "past" : match[1].str()];
        });
    return found;
}

std::map<std::string, int> scheduled_fetched_and_past(const ScheduledProgram& program) {
    std::map<std::string, int> wanted;
    for (const ScheduledKernel& kernel : program.kernels) {
        const auto& places = kernel.schedule.places;
        if (std::any_of(places.begin(), places.end(), [](const Place& p) { return p.non_temporal; }))
            ++wanted["fence_stores"];
        for (const Step& step : kernel.steps) {
            if (step.atom < 0) continue;
            const std::int64_t block = kernel.lanes * kernel.atom(step).vectors * kernel.value_bytes();
            for (const Prefetch* p : kernel.prefetches_in(step)) {
                const std::int64_t line = kernel.unit.line_bytes;
                // The first group has no statement of a group before in its loops, and is written for itself.
                wanted[fmt::format("prefetch<{}, {}>", p->fetched == Fetched::blocks ? line : block, line)] += step.deferred >= 0
                                                                                                                   ? 2
                                                                                                                   : 1;
            }
            // What is deferred is written once more for the last group.
            if (kernel.place(std::get<Compute>(*step.statement).variable).non_temporal)
                wanted["past"] += step.is_tile_pipelined() ? 2 : 1;
        }
    }
    return wanted;
}

/// Looks for all that the schedules of the program say in the source; gives how many of its kernels hold whole tiles,
/// so that the arena is M.
int expect_in_source(const ScheduledProgram& program, const cpu::CpuSource& source, const Diagram& diagram,
                     const Extents& extents) {
    EXPECT_EQ(declared_accumulators(source.text), scheduled_accumulators(program));
    EXPECT_EQ(declared_offsets(source.text), scheduled_offsets(program));
    EXPECT_EQ(fetched_and_past(source.text), scheduled_fetched_and_past(program));
    EXPECT_EQ(written_results(source.text), scheduled_results(program));
    int whole = 0;
    for (std::size_t k = 0; k < program.kernels.size(); ++k) {
        const ScheduledKernel& kernel = program.kernels[k];
        EXPECT_EQ(source.entries[k].arena_bytes, kernel.arena_bytes());
        // Where tiles are longer than their axes, they hold more than the axes have.
        const bool is_longer = any_of(kernel.scopes, [&](const Scope& scope) {
            return any_of(scope.ids(), [&](AxisId axis) { return scope[axis].tile > kernel.extent(axis); });
        });
        if (is_longer) continue;
        EXPECT_LE(kernel.held_values, kernel.arena_values) << "the rest is padding";
        if (!holds_whole_tiles(kernel)) continue;
        const Liveness live = liveness(*kernel.kernel);
        const TileCounter counter(diagram, live, extents, kernel.sizes);
        EXPECT_EQ(kernel.memory_values, counter.peak_memory());
        ++whole;
    }
    return whole;
}

TEST(ScheduledSource, HasTheSchedulesBlocksAndBuffers) {
    std::set<std::pair<int, int>> seen;
    for (const cpu_case::Width& width : cpu_case::widths()) {
        // The processor's own vectors are those of another width.
        if (!seen.insert({width.vector_bytes, width.vector_registers}).second) continue;
        int looked_at = 0, whole = 0;
        for (std::uint64_t seed = 0; seed < 500; ++seed) {
            SCOPED_TRACE(fmt::format("{}, seed {}", width.name, seed));
            const Diagram diagram = random_diagram(seed);
            const cpu_case::Case c = cpu_case::make_case(diagram, random_extents(diagram, seed), seed, "k", {}, width);
            whole += expect_in_source(c.scheduled, c.source, c.program.diagram, c.program.extents);
            ASSERT_FALSE(HasFailure()) << cpu_case::describe(c);
            looked_at += static_cast<int>(c.scheduled.kernels.size());
        }
        EXPECT_GE(looked_at, 500);
        EXPECT_GE(whole, 100);
    }
}

TEST(ScheduledSource, HasThePlansBlocksAndBuffersOfEveryExample) {
    PlanOptions options;
    options.quick = true;
    for (const int vector_bytes : {16, 32, 64}) {
        Machine machine = load_machine("generic-cpu").value();
        machine.vector_bits.value = 8 * vector_bytes, machine.vector_registers.value = vector_bytes == 64 ? 32 : 16;
        int planned = 0, whole = 0;
        for (const ExampleDiagram& example : example_diagrams()) {
            SCOPED_TRACE(fmt::format("{}, vectors of {} bytes", example.name, vector_bytes));
            const auto derived = derive(example.diagram);
            ASSERT_TRUE(derived.ok());
            const auto extents = bind_sizes(derived->diagram);
            if (!extents) continue;
            const auto plan = choose_plan(*derived, *extents, machine, {}, options);
            ASSERT_TRUE(plan.ok()) << render(plan.errors());
            const ScheduledProgram program = plan->program();
            const SizedProgram tiles = plan->tiles();
            whole += expect_in_source(program, cpu::emit(program), tiles.diagram, tiles.extents);
            ASSERT_FALSE(HasFailure()) << to_string(*plan);
            ++planned;
        }
        EXPECT_GE(planned, 45);
        EXPECT_GE(whole, 3) << "most plans go through panels, or read and write in place";
    }
}

}  // namespace
}  // namespace napkin
