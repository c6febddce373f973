// Runs texts through the whole pipeline for a second evaluator (test_reference.py): kernels of many texts in one
// module, and the definition.
//
//   run_texts --random FROM:TO   prints random programs as a list
//   run_texts JOBS.json          a list of jobs {name, text, diagram, sizes, inputs: {array: .npy},
//                                results: {array: .npy without its ending}}
//
// Writes NAME.kernel.npy and NAME.definition.npy for each result, and prints a line of JSON for each job: {name, error,
// fault}. Kernels are left out on a processor without the vectors that they are planned for.
#include <fmt/format.h>

#include <fstream>
#include <functional>
#include <iostream>
#include <nlohmann/json.hpp>

#include "diagram/evaluate.hpp"
#include "machine/processor.hpp"
#include "run/index_inputs.hpp"
#include "run/npy.hpp"
#include "run/pipeline.hpp"
#include "run/report.hpp"
#include "support/random_program.hpp"

namespace napkin {
namespace {

using Json = nlohmann::json;
constexpr const char* machine = "generic-cpu";  // plans that do not depend on the processor
constexpr int its_vector_bytes = 32;
constexpr std::size_t texts_a_module = 50;

struct Job {
    Json what;
    Compilation compilation;
    cpu::CpuSource source;
    std::vector<Tensor> inputs;
    std::string error;
    bool is_fault = false;  ///< of napkin, not of the text
};

void guarded(Job& job, const std::function<void()>& work) {
    if (!job.error.empty()) return;
    try {
        work();
    } catch (const std::exception& e) {
        job.error = e.what();
        job.is_fault = true;
    }
}

template <class T>
bool good(Job& job, const Result<T>& result) {
    if (!result) job.error = render(result.errors());
    return result.ok();
}

void planned(Job& job, std::size_t number) {
    PipelineOptions options;
    options.diagram = job.what.value("diagram", "");
    options.sizes = job.what["sizes"].get<std::map<std::string, std::int64_t>>();
    options.machine = machine;
    options.until = Pass::expand;
    const auto source = std::make_shared<const Source>(
        Source{job.what["name"].get<std::string>(), job.what["text"].get<std::string>()});
    auto compilation = run_pipeline(source, options);
    if (!good(job, compilation)) return;
    job.compilation = std::move(compilation).value();
    job.source = cpu::emit(job.compilation.plan.program(), fmt::format("text{}_", number));
    std::map<std::string, Tensor> given;
    for (const auto& [array, file] : job.what["inputs"].items()) {
        const auto id = job.compilation.diagram.find_array(array);
        auto tensor = read_npy(file, id ? std::optional(job.compilation.diagram.array(*id).type) : std::nullopt);
        if (!good(job, tensor)) return;
        given.emplace(array, std::move(tensor).value());
    }
    auto inputs = all_inputs(job.compilation.diagram, job.compilation.extents, given, 0);
    if (good(job, inputs)) job.inputs = std::move(inputs).value();
}

std::vector<std::int64_t> sizes_of(const Compilation& c, ArrayId a) {
    std::vector<std::int64_t> sizes;
    for (const AxisId axis : c.diagram.array(a).axes) sizes.push_back(c.extents[axis]);
    return sizes;
}

void write(const Job& job, ArrayId a, const char* of, const Tensor& tensor) {
    const std::string& array = job.compilation.diagram.array(a).name;
    if (const Status done = write_npy(fmt::format("{}.{}.npy", job.what["results"][array].get<std::string>(), of), tensor);
        !done)
        throw std::runtime_error(render(done.errors()));
}

void write_definition(const Job& job) {
    const Diagram& diagram = job.compilation.diagram;
    Values values;
    for (std::size_t i = 0; i < diagram.arrays.size(); ++i) values.push_back({});
    for (std::size_t i = 0; i < diagram.inputs.size(); ++i) values[diagram.inputs[i]] = job.inputs[i].to_column();
    evaluate(diagram, job.compilation.extents, values);
    for (const ArrayId a : diagram.outputs) {
        const Column& column = values[a];
        Tensor tensor = Tensor::make(column.is_whole() ? DType::i64 : DType::f64, sizes_of(job.compilation, a)).value();
        for (std::size_t i = 0; i < column.size(); ++i) tensor.set(static_cast<std::int64_t>(i), column.at(i));
        write(job, a, "definition", tensor);
    }
}

void run_kernels(Job& job, const std::shared_ptr<const JitModule>& module) {
    const Diagram& diagram = job.compilation.diagram;
    const auto kernel = CpuKernel::bind(diagram, job.compilation.program, job.source, 1, module);
    std::vector<const void*> inputs;
    std::vector<void*> outputs;
    std::vector<Tensor> results;
    for (const Tensor& input : job.inputs) inputs.push_back(input.data());
    for (const ArrayId a : diagram.outputs)
        results.push_back(Tensor::make(diagram.array(a).type, sizes_of(job.compilation, a)).value());
    for (Tensor& result : results) outputs.push_back(result.data());
    if (const Status done = kernel->run(inputs, outputs); !done) {
        job.error = render(done.errors());
        return;
    }
    for (std::size_t i = 0; i < results.size(); ++i) write(job, diagram.outputs[i], "kernel", results[i]);
}

int run(const std::string& file) {
    std::ifstream in(file);
    const Json list = Json::parse(in);
    std::vector<Job> jobs;
    for (const Json& what : list) jobs.push_back({what, {}, {}, {}, "", false});
    for (std::size_t first = 0; first < jobs.size(); first += texts_a_module) {
        const std::size_t last = std::min(first + texts_a_module, jobs.size());
        cpu::CpuSource all;
        for (std::size_t i = first; i < last; ++i) {
            guarded(jobs[i], [&] { planned(jobs[i], i); });
            guarded(jobs[i], [&] { write_definition(jobs[i]); });
            if (!jobs[i].error.empty()) continue;
            all.text += jobs[i].source.text;
            all.vector_bytes = jobs[i].source.vector_bytes;
        }
        const bool runs_here = native_vector_bytes() >= its_vector_bytes;  // skipped or passed on any processor
        if (!runs_here || all.text.empty()) continue;
        JitOptions options;
        options.optimization = "-O1";
        options.flags = {"-march=x86-64-v3"};
        const auto module = jit_compile(cpu::complete(all), options);
        if (!module) throw std::runtime_error(render(module.errors()));
        for (std::size_t i = first; i < last; ++i) guarded(jobs[i], [&] { run_kernels(jobs[i], *module); });
    }
    for (const Job& job : jobs)
        std::cout << Json{{"name", job.what["name"]}, {"error", job.error}, {"fault", job.is_fault}}.dump() << "\n";
    return 0;
}

int print_random(const std::string& seeds) {
    const std::size_t colon = seeds.find(':');
    Json list = Json::array();
    for (std::uint64_t seed = std::stoull(seeds); seed < std::stoull(seeds.substr(colon + 1)); ++seed)
        list.push_back(random_program(seed));
    std::cout << list.dump() << "\n";
    return 0;
}

}  // namespace
}  // namespace napkin

int main(int argc, char** argv) {
    if (argc == 3 && std::string(argv[1]) == "--random") return napkin::print_random(argv[2]);
    if (argc == 2) return napkin::run(argv[1]);
    std::cerr << "usage: run_texts --random FROM:TO | JOBS.json\n";
    return 2;
}
