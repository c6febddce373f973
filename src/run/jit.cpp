#include "run/jit.hpp"

#include <dlfcn.h>
#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>

#include "machine/processor.hpp"
#include "run/process.hpp"
#include "support/cache.hpp"
#include "support/files.hpp"
#include "support/ranges.hpp"
#include "support/threads.hpp"

namespace napkin {
namespace {

constexpr const char* source_name = "kernel.cpp";
constexpr const char* object_name = "kernel.so";

/// What every kernel is compiled with besides the optimization and the caller's flags. Kernels read no errno and no
/// floating-point exceptions; results are IEEE's but for contraction, which both compilers are told alike.
std::vector<std::string> usual_flags() {
#if defined(__aarch64__)
    const char* native = "-mcpu=native";
#else
    const char* native = "-march=native";
#endif
    return {"-std=c++20", native, "-ffp-contract=fast", "-fno-math-errno", "-fno-trapping-math", "-fPIC", "-shared",
            "-pipe",      "-w"};
}

std::vector<std::string> compile_command(const Compiler& compiler, const JitOptions& options, const std::string& source,
                                         const std::string& object) {
    std::vector<std::string> command{compiler.path};
    append(command, compiler.arguments);
    const std::vector<std::string> usual = usual_flags();
    append(command, usual);
    command.push_back(options.optimization);
    append(command, options.flags);
    for (const std::string& word : {std::string("-o"), object, source, std::string("-lm")}) command.push_back(word);
    return command;
}

std::string cache_key(const Compiler& compiler, const JitOptions& options, const std::string& source) {
    std::string text = "napkin " NAPKIN_VERSION "\n" + compiler.identity + "\n";
    for (const std::string& word : compile_command(compiler, options, "", "")) text += word + "\n";
    static const std::string processor = processor_identity();
    // The lengths keep one part from passing as the end of another.
    return sha256(fmt::format("{}\n{}\n{}{}{}", text.size(), processor.size(), text, processor, source)).substr(0, 40);
}

Diagnostic machine_error(const std::string& code, const std::string& message, const std::string& hint = "") {
    return Diagnostic{.code = code, .message = message, .hint = hint, .exit_code = ExitCode::machine_lacks};
}

std::string first_lines(const std::string& text, int count) {
    std::size_t end = 0;
    for (int i = 0; i < count && end < text.size(); ++i) end = std::min(text.find('\n', end), text.size() - 1) + 1;
    return text.substr(0, end > 0 && text[end - 1] == '\n' ? end - 1 : end);
}

/// Whether the compiler finds fault with the source: "…/kernel.cpp:3:5: error: …". A compiler that fails otherwise, for
/// want of memory, stack, processes or parts of its own, says other things.
bool finds_fault(const std::string& output) {
    const std::string file = std::string(source_name) + ":";
    for (std::size_t at = output.find(file); at != std::string::npos; at = output.find(file, at)) {
        at += file.size();
        int line = 0, column = 0, end = 0;
        if (std::sscanf(output.c_str() + at, "%d:%d: error: %n", &line, &column, &end) == 2 && end > 0) return true;
    }
    return false;
}

/// What a compiler that fails so may be short of, by its words and the limits that it inherits; "" where nothing points
/// to it.
std::string shortage(const std::string& output) {
    constexpr const char* memory = "memory may have run out, or be limited (ulimit -v)";
    constexpr std::pair<const char*, const char*> words[] = {
        {"Resource temporarily unavailable", "the number of processes may be limited (ulimit -u)"},
        {"Cannot allocate memory", memory},
        {"out of memory", memory},
        {"Killed", memory}};
    for (const auto& [word, what] : words)
        if (output.find(word) != std::string::npos) return what;
    rlimit limit{};
    constexpr rlim_t usual = rlim_t{8} << 20U;
    if (::getrlimit(RLIMIT_STACK, &limit) != 0 || limit.rlim_cur >= usual) return "";
    return fmt::format("its stack is limited to {} KiB (ulimit -s)", limit.rlim_cur >> 10U);
}

/// Compiles directory/kernel.cpp. A refusal is the machine's fault unless a supported compiler finds fault with the
/// source.
Status compile_in(const std::string& directory, const Compiler& compiler, const JitOptions& options) {
    const std::string object = directory + "/" + object_name;
    const ProcessResult outcome = run_process(compile_command(compiler, options, directory + "/" + source_name, object));
    if (outcome.ok() && ::access(object.c_str(), R_OK) == 0) return Done{};

    const std::string name = compiler.path;
    const std::string another = "set CXX to another compiler";
    if (!outcome.started) {
        const bool for_want = outcome.why_not == EAGAIN || outcome.why_not == ENOMEM || outcome.why_not == EMFILE ||
                              outcome.why_not == ENFILE;
        return no_resource(for_want ? "no-process" : "compiler-broken", "the compiler " + name + " cannot be started",
                           outcome.why_not);
    }
    if (outcome.output.find("No space left on device") != std::string::npos)
        return file_error(ENOSPC, "disk-full", "the compiler " + name + " failed");
    if (outcome.signal != 0) {
        return machine_error(
            "compiler-broken", fmt::format("the compiler {} was ended by signal {}", name, outcome.signal),
            outcome.signal == SIGKILL ? "signal 9 usually means that memory ran out" : shortage(outcome.output));
    }
    if (!finds_fault(outcome.output)) {
        const std::string words = outcome.output.empty() ? "it makes no object" : "\n" + first_lines(outcome.output, 20);
        const std::string hint = shortage(outcome.output);
        return machine_error("compiler-broken", "the compiler " + name + " fails: " + words, hint.empty() ? another : hint);
    }
    const std::string least = directory + "/least.cpp";
    write_new_file(least, "extern \"C\" int least() { return 0; }\n");
    const ProcessResult trial = run_process(compile_command(compiler, options, least, directory + "/least.so"));
    if (!trial.ok() || ::access((directory + "/least.so").c_str(), R_OK) != 0) {
        return machine_error(
            "compiler-broken",
            "the compiler " + name + " fails even on the least program:\n" + first_lines(trial.output, 20), another);
    }
    if (Status version = check_version(compiler); !version) return version;
    throw InternalError("the compiler " + name + " refuses generated code:\n" + first_lines(outcome.output, 30));
}

/// A directory in which to compile, and what becomes of it.
struct Workplace {
    std::optional<Cache> cache;
    CacheDraft draft;  ///< where the cache is used
    std::string directory;
    std::vector<std::string> warnings;
    bool done = false;

    Workplace() = default;
    Workplace(const Workplace&) = delete;
    Workplace& operator=(const Workplace&) = delete;
    ~Workplace() {
        if (!directory.empty() && !done) remove_tree(directory);
    }
};

Status open_temporary(Workplace& place) {
    const char* base = std::getenv("TMPDIR");
    place.directory = make_temporary_directory(std::string(base != nullptr && *base == '/' ? base : "/tmp") +
                                               "/napkin-");
    if (place.directory.empty())
        return file_error(errno, "cache-unwritable", "there is no place to compile a kernel in");
    return Done{};
}

/// Writes the source where it will be compiled: in the cache, or, with a warning, in a temporary directory.
Status place_source(Workplace& place, const std::string& source) {
    if (place.cache) {
        Result<CacheDraft> draft = place.cache->begin();
        const int why = draft.ok() ? write_new_file(draft->directory + "/" + source_name, source) : 0;
        if (draft.ok()) {
            place.draft = *draft;
            place.directory = place.draft.directory;
        }
        if (draft.ok() && why == 0) return Done{};
        const Diagnostic error = draft.ok() ? file_error(why, "cache-unwritable", "cannot write to " + place.directory)
                                            : draft.errors()[0];
        place.warnings.push_back(error.message + "; the kernel is compiled anew each time");
        if (!place.directory.empty()) remove_tree(place.directory);
        place.cache.reset();
    }
    if (const Status opened = open_temporary(place); !opened) return opened.errors();
    const int why = write_new_file(place.directory + "/" + source_name, source);
    if (why != 0) return file_error(why, "cache-unwritable", "cannot write to " + place.directory);
    return Done{};
}

}  // namespace

Result<std::shared_ptr<const JitModule>> load_object(const std::string& path) {
    auto loaded = std::make_shared<JitModule>();
    loaded->handle_ = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    loaded->path = path;
    if (loaded->handle_ != nullptr) return std::shared_ptr<const JitModule>(loaded);
    const std::string why = ::dlerror();
    const bool no_exec = why.find("failed to map segment") != std::string::npos;
    return machine_error("cannot-load", "a compiled kernel cannot be loaded: " + why,
                         no_exec ? "the disk may be mounted noexec: set NAPKIN_CACHE_DIR to a directory elsewhere" : "");
}

JitModule::~JitModule() {
    if (handle_ != nullptr) ::dlclose(handle_);
}

void* JitModule::symbol(const std::string& name) const {
    void* address = ::dlsym(handle_, name.c_str());
    if (address == nullptr) throw InternalError("a compiled kernel lacks its function " + name);
    return address;
}

Result<std::shared_ptr<const JitModule>> jit_compile(const std::string& source, const JitOptions& options) {
    const Result<Compiler> compiler = find_compiler(options);
    if (!compiler) return compiler.errors();
    const std::string key = cache_key(compiler.value(), options, source);

    const auto finish = [](const std::string& object, bool from_cache, double seconds,
                           const std::vector<std::string>& warnings) -> Result<std::shared_ptr<const JitModule>> {
        const Result<std::shared_ptr<const JitModule>> loaded = load_object(object);
        if (!loaded) return loaded.errors();
        auto module = std::const_pointer_cast<JitModule>(loaded.value());
        module->from_cache = from_cache;
        module->compile_seconds = seconds;
        module->warnings = warnings;
        return std::shared_ptr<const JitModule>(module);
    };

    Workplace place;
    std::shared_ptr<const void> claim;
    if (options.use_cache) {
        Result<Cache> cache = Cache::open();
        if (cache.ok()) {
            place.cache = cache.value();
            // Who finds nothing looks again once nobody else is making it.
            for (const bool is_claimed : {false, true}) {
                if (is_claimed) claim = place.cache->claim(key);
                const auto entry = place.cache->find(key);
                if (!entry) continue;
                // An object that does not load although it is whole was made for another system; it is made again.
                if (auto module = finish(*entry + "/" + object_name, true, 0, {}); module.ok()) return module;
                place.cache->remove(key);
            }
        } else if (cache.errors()[0].code == "cache-not-private") {
            return cache.errors();
        } else {
            place.warnings.push_back(cache.errors()[0].message + "; the kernel is compiled anew each time");
        }
    }

    if (const Status may = may_compile(source, key); !may) return may.errors();
    if (const Status placed = place_source(place, source); !placed) return placed.errors();
    const auto start = std::chrono::steady_clock::now();
    if (const Status compiled = compile_in(place.directory, compiler.value(), options); !compiled)
        return compiled.errors();
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();

    if (place.cache) {
        const Result<std::string> entry = place.cache->commit(place.draft, key, compiler_version(compiler.value()));
        place.done = true;
        if (entry.ok()) return finish(entry.value() + "/" + object_name, false, seconds, place.warnings);
        // Nothing could be kept, and the object went with what was begun.
        place.done = false;
        place.directory.clear();
        JitOptions uncached = options;
        uncached.use_cache = false;
        auto module = jit_compile(source, uncached);
        if (module.ok())
            std::const_pointer_cast<JitModule>(module.value())->warnings.push_back(entry.errors()[0].message);
        return module;
    }
    return finish(place.directory + "/" + object_name, false, seconds, place.warnings);
}

Result<std::string> compiled_object(const std::string& source, const JitOptions& options) {
    const Result<Compiler> compiler = find_compiler(options);
    if (!compiler) return compiler.errors();
    Workplace place;
    if (const Status placed = place_source(place, source); !placed) return placed.errors();
    if (const Status compiled = compile_in(place.directory, compiler.value(), options); !compiled)
        return compiled.errors();
    if (auto object = read_file(place.directory + "/" + object_name)) return std::move(*object);
    return file_error(EIO, "cannot-load", "cannot read what was compiled in " + place.directory);
}

}  // namespace napkin
