// `napkin doctor`: does this machine have what napkin needs, and what to install where it does not?
#include <fmt/format.h>

#include "machine/machine.hpp"
#include "napkin/command.hpp"
#include "run/blas.hpp"
#include "run/gpu/compiler.hpp"
#include "run/gpu/driver.hpp"
#include "run/gpu/multiply.hpp"
#include "run/jit.hpp"
#include "support/cache.hpp"
#include "support/numbers.hpp"

namespace napkin::cli {

namespace {

struct Finding {
    std::string what;
    bool good = true;
    bool needed = true;  ///< nothing runs without it
    std::string says;
    std::string remedy;
};

Finding missing(const std::string& what, bool needed, const std::vector<Diagnostic>& errors) {
    const Diagnostic& error = errors.front();
    return {what, false, needed, error.message, error.hint.empty() ? error.expected : error.hint};
}

Finding compiler() {
    const auto found = find_compiler();
    if (!found) return missing("compiler", true, found.errors());
    if (const Status version = check_version(*found); !version) return missing("compiler", true, version.errors());
    const std::string version = compiler_version(*found);
    return {"compiler", true, true, fmt::format("{}{}", found->path, version.empty() ? "" : " (" + version + ")"), ""};
}

Finding compiling() {
    try {
        JitOptions anew;
        anew.use_cache = false;
        const auto module = jit_compile("extern \"C\" int napkin_doctor() { return 42; }\n", anew);
        if (!module) return missing("compiling", true, module.errors());
        const auto answer = reinterpret_cast<int (*)()>((*module)->symbol("napkin_doctor"))();
        if (answer != 42)
            return {"compiling", false, true, "a compiled function gives a wrong result",
                    "try another compiler: CXX=clang++"};
        return {"compiling", true, true,
                fmt::format("a function compiled, loaded and ran in {}", seconds_text((*module)->compile_seconds)), ""};
    } catch (const InternalError& error) {
        return {"compiling", false, true, error.what(), "try another compiler: CXX=clang++"};
    }
}

Finding cache() {
    const auto found = Cache::open();
    if (!found) return missing("cache", false, found.errors());
    const auto probe = found->begin();
    if (!probe) return missing("cache", false, probe.errors());
    found->abandon(*probe);
    const CacheStats stats = found->stats();
    return {"cache", true, false,
            fmt::format("{} is writable; {} entries, {}", stats.directory, stats.entries,
                        bytes_text(static_cast<double>(stats.bytes))),
            ""};
}

Finding blas() {
    const auto found = open_blas();
    if (!found) return missing("OpenBLAS", false, found.errors());
    return {"OpenBLAS", true, false, (*found)->name(), ""};
}

Finding graphics() {
    const auto found = gpu::device();
    if (!found) return missing("GPU", false, found.errors());
    return {"GPU", true, false,
            fmt::format("{}, {}, {} SMs, {}", found->name, found->architecture(), found->multiprocessors,
                        bytes_text(static_cast<double>(found->memory_bytes))),
            ""};
}

Finding cuda() {
    const auto found = gpu::cuda_compiler();
    if (!found) return missing("CUDA", false, found.errors());
    return {"CUDA", true, false, *found, ""};
}

Finding multiply() {
    const auto found = gpu::multiply_library();
    if (!found) return missing("cuBLASLt", false, found.errors());
    return {"cuBLASLt", true, false, *found, ""};
}

Finding processor() {
    const Machine host = host_machine();
    std::string levels;
    for (const Level& level : host.levels)
        levels += fmt::format(", {} {}", level.name, bytes_text(level.capacity_bytes.value));
    return {"processor", true, true, host.description + levels, ""};
}

ExitCode doctor(const Options& options) {
    const std::vector<Finding> findings = {processor(), compiler(), compiling(), cache(),
                                           blas(),      graphics(), cuda(),      multiply()};
    bool all_needed = true;
    report::Section out;
    std::vector<report::Figure> rows;
    const bool color = color_on_stdout(options);
    for (const Finding& f : findings) {
        all_needed = all_needed && (f.good || !f.needed);
        const Json data{{"what", f.what}, {"good", f.good}, {"needed", f.needed}, {"says", f.says}, {"remedy", f.remedy}};
        rows.push_back({"findings/[]",
                        f.good ? green("ok", color) : red(f.needed ? "MISSING" : "missing", color),
                        {data, f.what},
                        printable(f.says)});
        if (!f.remedy.empty()) rows.push_back({"", "", report::shown(" "), "→ " + f.remedy});
    }
    out.rows(std::move(rows));
    out.data("good", all_needed);
    print(out, "doctor", options);
    return all_needed ? ExitCode::success : ExitCode::machine_lacks;
}

}  // namespace

void add_doctor(CLI::App& app, Main& main) {
    const auto options = std::make_shared<Options>();
    Command command(app, main, "doctor", "Say what this machine has, what it lacks, and how to get that",
                    "napkin doctor", [options] { return doctor(*options); });
    command.output(*options);
}

}  // namespace napkin::cli
