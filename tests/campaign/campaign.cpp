// Any number of random programs, over several processes. They are interpreted through every room, compiled many to a
// module, or planned and run one by one as `napkin run` does, also on a GPU. Failing seeds are printed with their texts
// and what they shrink to. The last line sums up.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>

#include "check/verdict.hpp"
#include "numeric/cpu_kernel_case.hpp"
#include "property/pipeline_case.hpp"
#include "run/npy.hpp"
#include "run/pipeline.hpp"
#include "support/pieces.hpp"
#include "support/random_diagram.hpp"
#include "support/random_program.hpp"
#include "support/ranges.hpp"
#include "syntax/print.hpp"

namespace napkin::campaign {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

struct Options {
    std::string seeds = "0:1000", compiler, machine, folder;
    std::vector<std::string> recipes, without;
    int width = 256, jobs = 1, piece = 0, seconds_to_shrink = 60;
};

ProgramOptions program_options(const Options& o) {
    ProgramOptions options;
    options.recipes = o.recipes;
    options.features = options.features - features_named(o.without);
    return options;
}

/// Half of the programs see N(0, 1), the others each other kind of inputs in turn.
Probe probe_of(std::uint64_t seed) {
    return seed % 2 == 0 ? Probe::normal : all_probes[seed / 2 % std::size(all_probes)];
}

std::string sizes_text(const Diagram& diagram, const Extents& extents) {
    std::string text;
    for (const AxisId a : extents.ids())
        if (!diagram.axis(a).size)
            text += fmt::format("{}{}={}", text.empty() ? "" : ",", diagram.axis(a).name, extents[a]);
    return text;
}

/// The diagram made small while it fails in the same room, in a limited time; "" where it does not get smaller.
template <class Fails>
std::string made_small(const Diagram& diagram, int seconds, const Fails& failure_of) {
    if (seconds <= 0) return "";
    const auto end = Clock::now() + std::chrono::seconds(seconds);
    const Diagram small = reduce_failure(
        diagram, [&](const Diagram& d) { return Clock::now() < end && !failure_of(d).empty(); });
    return fmt::format("reduced to\n{}{}\n", print(small), failure_of(small));
}

// ---- interpreted
// ------------------------------------------------------------

void interpret(const Options& o, std::uint64_t first, std::uint64_t last, Piece& piece) {
    pipeline::Coverage seen;
    int made_small = 0;
    for (std::uint64_t seed = first; seed < last; ++seed) {
        piece.begins(seed);
        std::string failure, text;
        const std::int64_t before = seen.kernels;
        try {
            text = random_program(seed, program_options(o));
            const pipeline::Case c = pipeline::make_case(parsed_program(text), seed, probe_of(seed));
            failure = pipeline::failure_of(c, seen);
            if (!failure.empty()) {
                failure += "\n" + text + "sizes " + sizes_text(c.diagram, c.extents) + "\n";
                if (o.seconds_to_shrink > 0 && made_small++ < 2) failure += pipeline::made_small(c);
            }
        } catch (const std::exception& e) {
            failure = fmt::format("{}\n{}", e.what(), text);
        }
        if (!failure.empty()) piece.failed({seed, failure});
        piece.done(1, static_cast<std::uint64_t>(seen.kernels - before));
    }
}

// ---- compiled, many to a module
// ------------------------------------------------------------

const cpu_case::Width& width_of(int bits) {
    for (const cpu_case::Width& width : cpu_case::widths())
        if (width.vector_bytes * 8 == bits && !width.flags.empty()) return width;
    throw std::runtime_error(fmt::format("no vectors of {} bits here", bits));
}

cpu_case::Case compiled_case(const Diagram& diagram, std::uint64_t seed, const cpu_case::Width& width) {
    auto c = cpu_case::make_case(diagram,
                                 seed % 3 == 0 ? cpu_case::some_extents(diagram, seed) : random_extents(diagram, seed),
                                 seed, fmt::format("k{}", seed), {}, width);
    c.probes = {probe_of(seed)};
    return c;
}

std::string compiled_failure(const Diagram& diagram, std::uint64_t seed, const cpu_case::Width& width) {
    try {
        return cpu_case::failures({compiled_case(diagram, seed, width)}, width).front();
    } catch (const std::exception& e) {
        return std::string("thrown: ") + e.what();
    }
}

void compile(const Options& o, std::uint64_t first, std::uint64_t last, Piece& piece) {
    const cpu_case::Width& width = width_of(o.width);
    std::vector<cpu_case::Case> cases;
    std::vector<std::pair<std::uint64_t, std::string>> found;
    std::uint64_t kernels = 0;
    for (std::uint64_t seed = first; seed < last; ++seed) {
        piece.begins(seed);
        std::string text;
        try {
            text = random_program(seed, program_options(o));
            cases.push_back(compiled_case(parsed_program(text), seed, width));
            kernels += cases.back().derived.kernels.size();
        } catch (const std::exception& e) {
            piece.failed({seed, fmt::format("{}\n{}", e.what(), text)});
        }
    }
    piece.begins(first);
    if (!cases.empty()) {
        try {
            const auto failures = cpu_case::failures(cases, width);
            for (std::size_t k = 0; k < cases.size(); ++k)
                if (!failures[k].empty()) found.emplace_back(cases[k].seed, failures[k]);
        } catch (const std::exception&) {
            // One of them does not compile, or crashes the compiler: each by itself.
            for (const auto& c : cases) {
                piece.begins(c.seed);
                if (const std::string failure = compiled_failure(c.diagram, c.seed, width); !failure.empty())
                    found.emplace_back(c.seed, failure);
            }
        }
    }
    int made = 0;
    for (const auto& [seed, failure] : found) {
        piece.begins(seed);
        const std::string text = random_program(seed, program_options(o));
        const Diagram diagram = parsed_program(text);
        std::string what = failure + "\n" + text;
        if (made++ < 2)
            what += made_small(diagram, o.seconds_to_shrink,
                               [&, number = seed](const Diagram& d) { return compiled_failure(d, number, width); });
        piece.failed({seed, what});
    }
    piece.done(last - first, kernels);
}

// ---- as `napkin run` does it
// ------------------------------------------------------------

struct Ran {
    std::string failure;
    std::uint64_t kernels = 0;
};

/// Lengths that fill tiles and leave remainders; now and then an axis is empty, where the program allows it.
std::map<std::string, std::int64_t> some_sizes(const Diagram& diagram, std::uint64_t seed) {
    std::map<std::string, std::int64_t> sizes;
    const Extents extents = seed % 2 == 0 ? cpu_case::some_extents(diagram, seed) : random_extents(diagram, seed);
    for (const AxisId a : extents.ids())
        if (!diagram.axis(a).size) sizes[diagram.axis(a).name] = extents[a];
    if (seed % 10 != 7 || sizes.empty()) return sizes;
    auto with_empty = sizes;
    std::next(with_empty.begin(), static_cast<std::ptrdiff_t>(seed / 10 % sizes.size()))->second = 0;
    return bind_sizes(diagram, with_empty) ? with_empty : sizes;
}

Tensor tensor_of(const Diagram& diagram, ArrayId a, const Extents& extents, const Column& column) {
    std::vector<std::int64_t> sizes;
    for (const AxisId axis : diagram.array(a).axes) sizes.push_back(extents[axis]);
    Tensor tensor = Tensor::make(diagram.array(a).type, sizes).value();
    for (std::size_t i = 0; i < column.size(); ++i) tensor.set(static_cast<std::int64_t>(i), column.at(i));
    return tensor;
}

Ran ran(const std::string& text, const std::string& machine, std::uint64_t seed) {
    try {
        PipelineOptions options;
        options.machine = machine;
        options.sizes = some_sizes(parsed_program(text), seed);
        const auto c = run_pipeline(std::make_shared<const Source>(Source{"<random>", text}), options);
        if (!c) return {render(c.errors()), 0};
        const Values given = probe_inputs(c->diagram, c->extents, probe_of(seed), seed);
        std::vector<Tensor> inputs, outputs;
        std::vector<KernelInput> from;
        std::vector<KernelOutput> to;
        const auto strides_of = [](const std::vector<std::int64_t>& sizes) {
            std::vector<std::int64_t> strides(sizes.size(), 1);
            for (std::size_t d = sizes.size(); d-- > 1;) strides[d - 1] = strides[d] * sizes[d];
            return strides;
        };
        for (const ArrayId a : c->diagram.inputs) inputs.push_back(tensor_of(c->diagram, a, c->extents, given[a]));
        for (const ArrayId a : c->diagram.outputs) outputs.push_back(tensor_of(c->diagram, a, c->extents, {}));
        for (const Tensor& t : inputs) from.push_back({t.data(), t.type(), t.sizes(), strides_of(t.sizes())});
        for (Tensor& t : outputs) to.push_back({t.data(), t.type(), t.sizes(), strides_of(t.sizes())});
        const Status done = c->gpu_kernel ? c->gpu_kernel->run(from, to) : c->kernel->run(from, to);
        const auto kernels = static_cast<std::uint64_t>(c->derived.kernels.size());
        if (!done) return {render(done.errors()), kernels};
        const Verdict verdict = check_outputs(*c, inputs, outputs, {.seed = seed});
        for (const ArrayVerdict& v : verdict.arrays)
            if (v.judgement == Judgement::bad) return {fmt::format("BAD: {}", describe(v)), kernels};
        return {"", kernels};
    } catch (const std::exception& e) {
        return {std::string("thrown: ") + e.what(), 0};
    }
}

void run_each(const Options& o, std::uint64_t first, std::uint64_t last, Piece& piece) {
    int made = 0;
    for (std::uint64_t seed = first; seed < last; ++seed) {
        piece.begins(seed);
        const std::string text = random_program(seed, program_options(o));
        const Ran it = ran(text, o.machine, seed);
        if (!it.failure.empty()) {
            const Diagram diagram = parsed_program(text);
            std::string what = fmt::format("{}\n{}", it.failure, text);
            for (const auto& [axis, size] : some_sizes(diagram, seed)) what += fmt::format(" --set {}={}", axis, size);
            what += "\n";
            if (made++ < 2)
                what += made_small(diagram, o.seconds_to_shrink,
                                   [&](const Diagram& d) { return ran(print(d), o.machine, seed).failure; });
            piece.failed({seed, what});
        }
        piece.done(1, it.kernels);
    }
}

/// SEED.nk, its inputs, and a line for each in a file of commands.
void write(const Options& o, std::uint64_t first, std::uint64_t last) {
    fs::create_directories(o.folder);
    std::ofstream commands(fs::path(o.folder) / "commands");
    for (std::uint64_t seed = first; seed < last; ++seed) {
        const std::string text = random_program(seed, program_options(o));
        const Diagram diagram = parsed_program(text);
        std::ofstream(fs::path(o.folder) / fmt::format("{}.nk", seed)) << text;
        std::string line = fmt::format("napkin run {}.nk --no-baseline --seconds 0.001", seed);
        const auto sizes = some_sizes(diagram, seed);
        for (const auto& [axis, size] : sizes) line += fmt::format(" --set {}={}", axis, size);
        const Extents extents = bind_sizes(diagram, sizes).value();
        const Values given = probe_inputs(diagram, extents, probe_of(seed), seed);
        for (const ArrayId a : diagram.inputs) {
            const std::string file = fmt::format("{}.{}.npy", seed, diagram.array(a).name);
            if (!write_npy(fs::path(o.folder) / file, tensor_of(diagram, a, extents, given[a])))
                throw std::runtime_error("cannot write to " + o.folder);
            line += fmt::format(" --input {}={}", diagram.array(a).name, file);
        }
        commands << line << "\n";
    }
}

int summed_up(const char* what, const Options& o, const std::function<void(std::uint64_t, std::uint64_t, Piece&)>& work,
              std::uint64_t seeds_a_piece) {
    const std::size_t colon = o.seeds.find(':');
    Spread spread;
    spread.first = std::stoull(o.seeds);
    spread.last = colon == std::string::npos ? spread.first + 1 : std::stoull(o.seeds.substr(colon + 1));
    spread.seeds_a_piece = o.piece > 0 ? static_cast<std::uint64_t>(o.piece) : seeds_a_piece;
    spread.jobs = o.jobs;
    spread.seconds_a_seed = 120 + 2 * o.seconds_to_shrink;
    const Outcome outcome = run(spread, work);
    fmt::print("{}: {} programs, {} kernels, seeds {}: {} failed{}{}\n", what, outcome.programs, outcome.kernels,
               o.seeds, outcome.failed.size(), outcome.failed.empty() ? "" : ": ", fmt::join(outcome.failed, " "));
    return outcome.failed.empty() ? 0 : 1;
}

int main(int argc, char** argv) {
    CLI::App app("Random programs in any number: seeds FROM:TO over several processes");
    Options o;
    app.require_subcommand(1);
    const auto with_seeds = [&](CLI::App* command) {
        command->add_option("seeds", o.seeds, "FROM:TO")->required();
        command->add_option("--jobs", o.jobs, "Processes at a time");
        command->add_option("--piece", o.piece,
                            "Seeds a process takes, which are one module where they are compiled together");
        command->add_option("--recipes", o.recipes, "Only these, by name")->delimiter(',');
        command->add_option("--without", o.without, "Features that are left out, by name")->delimiter(',');
        command->add_option("--shrink", o.seconds_to_shrink, "Seconds for making a failing program small; 0: none");
        return command;
    };
    CLI::App* interpreted = with_seeds(
        app.add_subcommand("interpret", "Definition, derivation steps, tile interpreter"));
    CLI::App* compiled = with_seeds(app.add_subcommand("compile", "Kernels of many programs in one module"));
    compiled->add_option("--compiler", o.compiler, "g++, clang++-19, …");
    compiled->add_option("--width", o.width, "Bits of a vector: 128, 256, 512");
    CLI::App* each = with_seeds(app.add_subcommand("run", "Planned and run one by one, as napkin run does"));
    each->add_option("--machine", o.machine, "gpu, host-256, …");  // on any processor
    each->add_option("--compiler", o.compiler, "g++, clang++-19, …");
    CLI::App* written = with_seeds(app.add_subcommand("write", "Texts, inputs and the commands that run them"));
    written->add_option("--folder", o.folder, "Where to")->required();
    CLI::App* listed = app.add_subcommand("recipes", "The names of all recipes");
    CLI11_PARSE(app, argc, argv);

    if (!o.compiler.empty()) setenv("CXX", o.compiler.c_str(), 1);
    std::string cache = (fs::temp_directory_path() / "napkin-campaign-XXXXXX").string();
    if (!mkdtemp(cache.data())) return fmt::print(stderr, "no temporary folder\n"), 3;
    setenv("XDG_CACHE_HOME", cache.c_str(), 1);
    int code = 0;
    const auto bound = [&](auto work) {
        return [&o, work](std::uint64_t first, std::uint64_t last, Piece& piece) { work(o, first, last, piece); };
    };
    if (*interpreted) code = summed_up("interpreted", o, bound(interpret), 200);
    if (*compiled) {
        const std::string what = fmt::format("compiled by {} for {} bits{}",
                                             o.compiler.empty() ? "the compiler" : o.compiler, o.width,
                                             width_of(o.width).runs_here ? "" : ", not run");
        code = summed_up(what.c_str(), o, bound(compile), 60);
    }
    if (*each) code = summed_up("run", o, bound(run_each), 20);
    if (*written) write(o, std::stoull(o.seeds), std::stoull(o.seeds.substr(o.seeds.find(':') + 1)));
    if (*listed) fmt::print("{}\n", fmt::join(recipe_names(), "\n"));
    fs::remove_all(cache);
    return code;
}

}  // namespace
}  // namespace napkin::campaign

int main(int argc, char** argv) { return napkin::campaign::main(argc, argv); }
