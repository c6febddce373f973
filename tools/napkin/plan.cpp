// `napkin plan`: every size and choice for one machine, with its reason.
#include "napkin/command.hpp"

namespace napkin::cli {

namespace {

Json choice_json(const Choice& choice) {
    return {{"value", choice.value}, {"reason", choice.reason}, {"by_hand", choice.by_hand}};
}

Json choices_json(const std::map<std::string, Choice>& choices) {
    Json object = Json::object();
    for (const auto& [name, choice] : choices) object[name] = choice_json(choice);
    return object;
}

Json plan_json(const Compilation& compilation) {
    Json document = json_document("plan");
    document["diagram"] = compilation.diagram.name;
    document["machine"] = compilation.plan.machine;
    document["kernels"] = Json::array();
    for (const KernelPlan& kernel : compilation.plan.kernels) {
        Json entry;
        entry["name"] = kernel.kernel;
        entry["group"] = choices_json(kernel.group);
        entry["stream"] = choices_json(kernel.stream);
        entry["threads"] = choice_json(kernel.threads);
        entry["vector_axis"] = {{"value", kernel.vector_axis}, {"reason", kernel.vector_axis_reason}};
        entry["block_rows"] = choice_json(kernel.block_rows);
        entry["block_vectors"] = choice_json(kernel.block_vectors);
        entry["predicted"] = {{"transfers_values", kernel.transfers_values},
                              {"memory_values", kernel.memory_values},
                              {"seconds", kernel.predicted_seconds},
                              {"bound_by", kernel.bound_by}};
        document["kernels"].push_back(std::move(entry));
    }
    return document;
}

ExitCode plan(const Options& options) {
    const auto compilation = compile(options, Pass::plan);
    if (!compilation) return fail(compilation.errors(), options);
    options.json ? print(plan_json(*compilation)) : print(to_string(compilation->plan));
    return ExitCode::success;
}

}  // namespace

void add_plan(CLI::App& app, Main& main) {
    const auto options = std::make_shared<Options>();
    Command command(app, main, "plan", "Choose tile sizes, threads and vectors for a machine, with reasons",
                    "napkin plan examples/attention.nk --set q=8192 --group q=192", [options] { return plan(*options); });
    command.file(*options);
    command.sizes(*options);
    command.derivation(*options);
    command.plan(*options);
    command.passes(*options);
    command.output(*options);
}

}  // namespace napkin::cli
