// What a launch costs on the GPU at hand, through the C API. It measures nanoseconds of the host for each launch,
// beside those of the driver alone. Threads on streams of their own launch, too. Then come capture into a graph and its
// replay. It also measures the time from a text to its first launch, with empty caches and with the kernel in the
// cache, each in a process of its own.
//
//     build/release/bench/bench_launch_gpu [--output bench/results/NAME.json]
//
// (built with -DNAPKIN_BENCH=ON). Prints a record with date, device, commit, command and figures; exit code 3 where
// there is no GPU, 1 where a number is wrong. NAPKIN_COMMIT says the commit where there is no checkout. It takes about
// ten seconds.
#pragma GCC diagnostic ignored "-Wmismatched-new-delete"  // the operators below count what is allocated
#include <fmt/chrono.h>
#include <fmt/format.h>
#include <napkin/napkin.h>

#include <algorithm>
#include <atomic>
#include <barrier>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "run/gpu/driver.hpp"
#include "run/gpu/launcher.hpp"
#include "run/library.hpp"
#include "run/pipeline.hpp"
#include "run/tensor.hpp"
#include "support/json.hpp"

namespace {
std::atomic<long> num_allocations = 0;
}

// Counted, as a call makes none once its kernel is there.
void* operator new(std::size_t bytes) {
    ++num_allocations;
    if (void* const memory = std::malloc(bytes > 0 ? bytes : 1)) return memory;
    throw std::bad_alloc();
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }

namespace {

using Json = nlohmann::ordered_json;
using napkin::gpu::DeviceMemory;

constexpr std::int64_t size = 256;  ///< of every axis: the kernel is over before the host has launched the next few
/// One kernel, whose operands come by tensor maps; and two, the second of which reads what the first leaves in the
/// workspace.
constexpr const char* product =
    "product(A[m, k]: bf16, B[n, k]: bf16) -> C[m, n]: bf16\n    C[m, n] = sum(k) A[m, k] * B[n, k]\n"
    "sizes m = n = k = 256\n";
constexpr const char* chain =
    "chain(A[m, k]: bf16, B[k, n]: bf16, D[n, p]: bf16) -> E[m, p]: bf16\n    S[m, n] = sum(k) A[m, k] * B[k, n]\n"
    "    M[n] = max(m) S[m, n]\n    E[m, p] = sum(n) (S[m, n] - M[n]) * D[n, p]\nsizes m = k = n = p = 256\n";

template <class T>
T value_of(napkin::Result<T> result) {
    if (!result) throw std::runtime_error(napkin::render(result.errors()));
    return std::move(result).value();
}
void done(const napkin::Status& status) {
    if (!status) throw std::runtime_error(napkin::render(status.errors()));
}
/// Runs a function of the C API; its error is an exception here.
template <class F>
void must(const F& f) {
    napkin_error* error = nullptr;
    if (f(&error) == NAPKIN_OK) return;
    const std::string text = napkin_error_text(error);
    napkin_error_free(error);
    throw std::runtime_error(text);
}

double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

double median(std::vector<double> values) {
    std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2), values.end());
    return values[values.size() / 2];
}

// What of the driver captures and replays (CUDA Driver API).
struct Graphs {
    using Code = int;
    napkin::SharedLibrary library{{"libcuda.so.1", "libcuda.so", "/usr/local/nvidia/lib64/libcuda.so.1"}};
    template <class F>
    F* function(const char* name) const {
        F* const found = library.function(name);
        if (found == nullptr) throw std::runtime_error(fmt::format("the driver has no {}", name));
        return found;
    }
    static void check(Code code, const char* what) {
        if (code != 0) throw std::runtime_error(fmt::format("{}: CUDA error {}", what, code));
    }
    [[nodiscard]] void* stream() const {
        constexpr unsigned does_not_wait_for_the_default_stream = 1;
        void* made = nullptr;
        check(function<Code(void**, unsigned)>("cuStreamCreate")(&made, does_not_wait_for_the_default_stream),
              "making a stream");
        return made;
    }
    void wait(void* stream) const {
        check(function<Code(void*)>("cuStreamSynchronize")(stream), "waiting for a stream");
    }
    /// What `launches` put on the stream, ready to be launched. In the mode that takes least: whatever any thread does
    /// that a capture does not allow, such as an allocation, ends it with an error.
    template <class F>
    [[nodiscard]] void* captured(void* stream, const F& launches) const {
        constexpr int global_mode = 0;
        void *graph = nullptr, *ready = nullptr;
        check(function<Code(void*, int)>("cuStreamBeginCapture_v2")(stream, global_mode), "beginning a capture");
        launches();
        check(function<Code(void*, void**)>("cuStreamEndCapture")(stream, &graph), "ending a capture");
        check(function<Code(void**, void*, unsigned long long)>("cuGraphInstantiateWithFlags")(&ready, graph, 0),
              "instantiating a graph");
        return ready;
    }
    void launch(void* graph, void* stream) const {
        check(function<Code(void*, void*)>("cuGraphLaunch")(graph, stream), "launching a graph");
    }
};

/// A program with its arrays on the GPU, square matrices of bf16.
struct Case {
    napkin_program* program = nullptr;
    std::vector<DeviceMemory> memory;
    std::vector<std::vector<std::int64_t>> shapes;
    std::vector<napkin_array> arrays;
    std::vector<const napkin_array*> pointers;
    std::vector<void*> addresses;

    explicit Case(const char* text) {
        must([&](auto** e) { return napkin_parse(text, std::strlen(text), nullptr, &program, e); });
        const std::size_t count = napkin_program_inputs(program) + napkin_program_outputs(program);
        shapes.assign(count, {size, size});
        for (std::size_t i = 0; i < count; ++i) {
            memory.push_back(value_of(napkin::gpu::allocate(bytes())));
            addresses.push_back(reinterpret_cast<void*>(memory[i].address()));  // NOLINT: an address of the device
            napkin_array array{};
            array.data = addresses[i], array.device.device_type = NAPKIN_ON_GPU, array.ndim = 2;
            array.dtype = napkin_program_array_type(program, i), array.shape = shapes[i].data();
            arrays.push_back(array);
        }
        for (const napkin_array& array : arrays) pointers.push_back(&array);
    }
    ~Case() { napkin_program_free(program); }
    Case(const Case&) = delete;
    Case& operator=(const Case&) = delete;

    static std::int64_t bytes() { return size * size * napkin::bytes(napkin::DType::bf16); }
    /// Small whole numbers, which sums in f32 leave exact.
    [[nodiscard]] napkin::Tensor input(std::size_t i, std::uint64_t seed) const {
        auto values = value_of(napkin::Tensor::make(napkin::DType::bf16, {size, size}));
        for (std::int64_t e = 0; e < values.count(); ++e)
            values.set(e, std::round(napkin::normal_number(seed + i, static_cast<std::uint64_t>(e))));
        return values;
    }
    /// New inputs, and an output of NaN.
    void fill(std::uint64_t seed) const {
        for (std::size_t i = 0; i + 1 < memory.size(); ++i)
            done(napkin::gpu::copy_to(memory[i], input(i, seed).data(), bytes()));
        done(napkin::gpu::fill(memory.back(), 0xff, bytes()));
        done(napkin::gpu::synchronize());
    }
    [[nodiscard]] napkin::Tensor output() const {
        auto values = value_of(napkin::Tensor::make(napkin::DType::bf16, {size, size}));
        done(napkin::gpu::copy_from(values.data(), memory.back(), bytes()));
        return values;
    }
    void call(void* stream) {
        must([&](auto** e) { return napkin_call(program, pointers.data(), pointers.size(), stream, e); });
    }
};

bool is_same(const napkin::Tensor& a, const napkin::Tensor& b) {
    return std::memcmp(a.data(), b.data(), static_cast<std::size_t>(a.size_bytes())) == 0;
}
bool has_nan(const napkin::Tensor& a) {
    for (std::int64_t i = 0; i < a.count(); ++i)
        if (std::isnan(a.at(i))) return true;
    return false;
}

/// The product of the inputs of that seed, rounded once.
napkin::Tensor exact_product(const Case& of, std::uint64_t seed) {
    const auto A = of.input(0, seed).to_doubles(), B = of.input(1, seed).to_doubles();
    auto C = value_of(napkin::Tensor::make(napkin::DType::bf16, {size, size}));
    for (std::int64_t m = 0; m < size; ++m)
        for (std::int64_t n = 0; n < size; ++n) {
            double sum = 0;
            for (std::int64_t k = 0; k < size; ++k)
                sum += A[static_cast<std::size_t>(m * size + k)] * B[static_cast<std::size_t>(n * size + k)];
            C.set(m * size + n, sum);
        }
    return C;
}

/// Captures a call, and replays it on inputs that were not there then.
Json replayed(const Graphs& graphs, void* stream, const char* text, bool is_product) {
    Case one(text);
    must([&](auto** e) { return napkin_prepare(one.program, one.pointers.data(), one.pointers.size(), e); });
    void* const graph = graphs.captured(stream, [&] { one.call(stream); });
    bool right = true;
    for (const std::uint64_t seed : {10, 20, 30}) {
        one.fill(seed);
        graphs.launch(graph, stream), graphs.wait(stream);
        const napkin::Tensor replay = one.output();
        one.fill(seed);
        one.call(stream), graphs.wait(stream);
        right = right && is_same(replay, one.output()) && !has_nan(replay);
        if (is_product) right = right && is_same(replay, exact_product(one, seed));
    }
    std::vector<double> ns;
    for (int i = 0; i < 10000; ++i) {
        const double begin = now();
        graphs.launch(graph, stream);
        ns.push_back((now() - begin) * 1e9);
        if (i % 100 == 99) graphs.wait(stream);
    }
    graphs.wait(stream);
    return {{"program", napkin_program_name(one.program)}, {"replays_right", right}, {"graph_launch_ns", median(ns)}};
}

/// The median of the host's time for one of many launches; the queue is emptied now and then, so that no launch waits
/// for room in it.
template <class F>
double host_ns(const Graphs& graphs, void* stream, const F& launch) {
    constexpr int rounds = 10000, between_waits = 100;
    std::vector<double> ns;
    for (int i = 0; i < rounds; ++i) {
        const double begin = now();
        launch();
        ns.push_back((now() - begin) * 1e9);
        if (i % between_waits == between_waits - 1) graphs.wait(stream);
    }
    return median(ns);
}

/// The driver's own part: cuLaunchKernel with the same arguments as a run of the product has, and nothing else.
struct DriverAlone {
    std::shared_ptr<const napkin::gpu::Launcher> launcher;
    std::vector<napkin::gpu::BoundLaunch> bound;
};
DriverAlone driver_alone(const Case& one) {
    napkin::PipelineOptions options;
    options.machine = "gpu", options.until = napkin::Pass::emit;
    const auto planned = value_of(
        napkin::run_pipeline(std::make_shared<const napkin::Source>(napkin::Source{"<product>", product}), options));
    const auto& code = std::get<napkin::cuda::CudaSource>(planned.code);
    auto launcher = value_of(napkin::gpu::Launcher::load(
        planned.program, code,
        value_of(napkin::gpu::compile_cuda(napkin::cuda::complete(code), planned.machine.architecture))));
    std::vector<std::uint64_t> addresses;
    for (const DeviceMemory& memory : one.memory) addresses.push_back(memory.address());
    addresses.resize(std::max(addresses.size(), planned.program.diagram.arrays.size()));
    auto bound = value_of(launcher->bind(addresses, 0));
    return {std::move(launcher), std::move(bound)};
}

Json launch_costs(const Graphs& graphs, void* stream) {
    Case one(product);
    napkin_plan* plan = nullptr;
    napkin_kernel* kernel = nullptr;
    must([&](auto** e) { return napkin_plan_for(one.program, "gpu", nullptr, 0, &plan, e); });
    must([&](auto** e) { return napkin_compile(plan, 0, &kernel, e); });
    const std::size_t count = one.pointers.size();
    one.fill(1);
    one.call(stream);
    must([&](auto** e) { return napkin_run(kernel, one.pointers.data(), count, stream, e); });
    Json out;
    out["napkin_call_ns"] = host_ns(graphs, stream,
                                    [&] { napkin_call(one.program, one.pointers.data(), count, stream, nullptr); });
    out["napkin_run_ns"] = host_ns(graphs, stream,
                                   [&] { napkin_run(kernel, one.pointers.data(), count, stream, nullptr); });
    out["napkin_run_at_ns"] = host_ns(
        graphs, stream, [&] { napkin_run_at(kernel, one.addresses.data(), count, nullptr, stream, nullptr); });
    napkin_kernel_free(kernel);
    napkin_plan_free(plan);

    if (const auto bare = driver_alone(one); bare.bound.size() == 1)
        out["driver_alone_ns"] = host_ns(graphs, stream, [&] { done(napkin::gpu::launch(bare.bound[0], stream)); });
    const long before = num_allocations;
    napkin_call(one.program, one.pointers.data(), count, stream, nullptr);
    out["allocations_of_a_call"] = num_allocations - before;
    return out;
}

/// Several threads at a time, each with a stream and arrays of its own and one program for all: the median of a call,
/// and of the driver's launch alone.
Json threads_at_a_time(const Graphs& graphs, int count) {
    Case first(product);
    must([&](auto** e) { return napkin_prepare(first.program, first.pointers.data(), first.pointers.size(), e); });
    const auto bare = driver_alone(first);
    std::vector<double> calls(static_cast<std::size_t>(count)), alone(calls.size());
    std::vector<std::unique_ptr<Case>> cases;
    for (int t = 0; t < count; ++t) cases.push_back(std::make_unique<Case>(product));
    std::barrier begin(count);
    std::vector<std::thread> threads;
    for (std::size_t t = 0; t < calls.size(); ++t)
        threads.emplace_back([&, t] {
            const napkin::gpu::InPrimaryContext here;
            void* const stream = graphs.stream();
            const auto& arrays = cases[t]->pointers;
            begin.arrive_and_wait();
            calls[t] = host_ns(graphs, stream,
                               [&] { napkin_call(first.program, arrays.data(), arrays.size(), stream, nullptr); });
            begin.arrive_and_wait();
            alone[t] = host_ns(graphs, stream, [&] { static_cast<void>(napkin::gpu::launch(bare.bound[0], stream)); });
        });
    for (std::thread& thread : threads) thread.join();
    return {{"threads", count}, {"napkin_call_ns", median(calls)}, {"driver_alone_ns", median(alone)}};
}

/// One process: from the text to the return of its first launch, with the parts of it. The driver's start and its
/// context come before.
int first_launch() {
    const double start = now();
    value_of(napkin::gpu::device());
    Json out;
    out["driver_and_context_s"] = now() - start;
    const Graphs graphs;
    Case one(product);
    one.fill(1);
    napkin_program_free(std::exchange(one.program, nullptr));
    double last = now();
    const double begin = last;
    const auto lap = [&](const char* name) {
        const double here = now();
        out[name] = here - std::exchange(last, here);
    };
    napkin_plan* plan = nullptr;
    napkin_kernel* kernel = nullptr;
    must([&](auto** e) { return napkin_parse(product, std::strlen(product), nullptr, &one.program, e); });
    lap("parse_s");
    must([&](auto** e) { return napkin_plan_for(one.program, "gpu", nullptr, 0, &plan, e); });
    lap("plan_s");  // with what the assembler says of it, which compiles
    must([&](auto** e) { return napkin_compile(plan, 0, &kernel, e); });
    lap("compile_and_load_s");
    must([&](auto** e) { return napkin_run(kernel, one.pointers.data(), one.pointers.size(), nullptr, e); });
    lap("launch_s");
    out["text_to_first_launch_s"] = last - begin;
    out["from_cache"] = napkin_kernel_from_cache(kernel) != 0;
    done(napkin::gpu::synchronize());
    out["right"] = is_same(one.output(), exact_product(one, 1));
    napkin_kernel_free(kernel);
    napkin_plan_free(plan);
    std::cout << out << "\n";
    return 0;
}

std::string output_of(const std::string& command) {
    std::string text;
    if (FILE* pipe = popen(command.c_str(), "r")) {
        char buffer[4096];
        while (fgets(buffer, sizeof buffer, pipe) != nullptr) text += buffer;
        pclose(pipe);
    }
    while (!text.empty() && text.back() == '\n') text.pop_back();
    return text;
}

/// The process with the median time among some.
Json middle(std::vector<Json> runs) {
    std::sort(runs.begin(), runs.end(), [](const Json& a, const Json& b) {
        return a["text_to_first_launch_s"].get<double>() < b["text_to_first_launch_s"].get<double>();
    });
    return runs[runs.size() / 2];
}

/// This program's --first-launch, with that folder for its cache.
Json first_launch_with(const std::string& cache) {
    const std::string self = std::filesystem::read_symlink("/proc/self/exe").string();
    const std::string text = output_of(fmt::format("XDG_CACHE_HOME='{}' '{}' --first-launch", cache, self));
    Json parsed = Json::parse(text, nullptr, false);
    if (parsed.is_discarded()) throw std::runtime_error("--first-launch prints no record: " + text);
    return parsed;
}

Json first_launches() {
    std::string folder = (std::filesystem::temp_directory_path() / "napkin-launch-XXXXXX").string();
    if (mkdtemp(folder.data()) == nullptr) throw std::runtime_error(folder + " cannot be made");
    std::vector<Json> cold, cached;
    for (int i = 0; i < 3; ++i) cold.push_back(first_launch_with(fmt::format("{}/{}", folder, i)));
    for (int i = 0; i < 5; ++i) cached.push_back(first_launch_with(folder + "/0"));
    std::filesystem::remove_all(folder);
    return {{"cold", middle(cold)}, {"cached", middle(cached)}};
}

int run(int argc, char** argv) {
    std::string output, command;
    for (int i = 0; i < argc; ++i) command += std::string(i > 0 ? " " : "") + argv[i];
    for (int i = 1; i < argc; ++i) {
        const std::string flag = argv[i];
        if (flag == "--output" && i + 1 < argc) {
            output = argv[++i];
        } else if (flag == "--first-launch") {
            return first_launch();
        } else {
            std::cerr << "usage: " << argv[0] << " [--output FILE.json]\n";
            return 2;
        }
    }
    const auto device = napkin::gpu::device();
    if (!device) {
        std::cerr << napkin::render(device.errors());
        return static_cast<int>(device.errors().front().exit_code);
    }
    const char* commit = std::getenv("NAPKIN_COMMIT");
    Json record;
    record["schema"] = "napkin.launch_gpu/1";
    record["date"] = fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(std::time(nullptr)));
    record["device"] = device->name;
    record["driver"] = device->driver_version;
    record["commit"] = commit != nullptr ? commit
                                         : output_of("git -C '" NAPKIN_SOURCE_DIR "' rev-parse HEAD 2>/dev/null");
    record["command"] = command;
    const Graphs graphs;
    void* const stream = graphs.stream();
    record["launch"] = launch_costs(graphs, stream);
    for (const int threads : {1, 2, 8}) record["threads"].push_back(threads_at_a_time(graphs, threads));
    record["graphs"] = Json::array({replayed(graphs, stream, product, true), replayed(graphs, stream, chain, false)});
    record["first_launch"] = first_launches();
    std::cout << record.dump(1) << "\n";
    if (!output.empty()) {
        std::ofstream(output) << record.dump(1) << "\n";
        std::cerr << "written: " << output << "\n";
    }
    bool right = record["first_launch"]["cold"]["right"] && record["first_launch"]["cached"]["right"];
    for (const Json& graph : record["graphs"]) right = right && graph["replays_right"];
    if (!right) std::cerr << "bench_launch_gpu: a launch gives wrong numbers\n";
    return right ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
    try {
        return run(argc, argv);
    } catch (const std::exception& error) {
        std::cerr << "bench_launch_gpu: " << error.what() << "\n";
        return 1;
    }
}
