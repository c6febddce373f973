// `napkin cost`: H, M and the number of groups, in letters; in numbers too where the sizes are known.
#include "cost/report.hpp"
#include "machine/machine.hpp"
#include "napkin/command.hpp"

namespace napkin::cli {

namespace {

/// What a core of the machine holds, in values of the widest type that the diagram computes in.
double values_a_core(const Compilation& compilation) {
    const bool wide = std::any_of(compilation.diagram.arrays.begin(), compilation.diagram.arrays.end(),
                                  [](const Array& array) { return array.type == DType::f64; });
    return bytes_a_core(compilation.machine, core_memory_level(compilation.machine)) / (wide ? 8 : 4);
}

ExitCode cost(const Options& options) {
    const auto derived = compile(options, Pass::derive);
    if (!derived) return fail(derived.errors(), options);
    std::optional<CostNumbers> numbers;
    std::string machine;
    if (const auto bound = bind_sizes(derived->diagram); bound) {
        const auto planned = compile(options, Pass::plan);
        if (!planned) return fail(planned.errors(), options);
        numbers.emplace();
        numbers->extents = planned->extents;
        for (std::size_t i = 0; i < planned->derived.kernels.size(); ++i) {
            numbers->sizes.push_back(
                tile_sizes(planned->derived, planned->derived.kernels[i], planned->extents, planned->plan.kernels[i]));
        }
        numbers->memory_values = values_a_core(*planned);
        machine = planned->plan.machine;
    } else if (bound.errors().front().code != "missing-size") {
        return fail(bound.errors(), options);
    }
    const CostReport report = cost_report(derived->derived, numbers);
    if (options.json) {
        Json document = json_document("cost");
        document["diagram"] = derived->diagram.name;
        if (numbers) document["machine"] = machine;
        document.update(Json::parse(report.json.dump()));
        print(document);
    } else {
        print(report.text);
    }
    return ExitCode::success;
}

}  // namespace

void add_cost(CLI::App& app, Main& main) {
    const auto options = std::make_shared<Options>();
    Command command(app, main, "cost", "Count transfers H, memory M and groups, in letters and numbers",
                    "napkin cost examples/attention.nk --set q=8192", [options] { return cost(*options); });
    command.file(*options);
    command.sizes(*options);
    command.derivation(*options);
    command.plan(*options);
    command.output(*options);
}

}  // namespace napkin::cli
