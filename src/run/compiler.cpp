// Which C++ compiler the kernels are compiled with, and what a cache key says about it.
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <sstream>

#include "run/jit.hpp"
#include "run/process.hpp"
#include "support/files.hpp"
#include "support/ranges.hpp"

namespace napkin {
namespace {

bool executable(const std::string& path) {
    struct stat info{};
    return ::stat(path.c_str(), &info) == 0 && S_ISREG(info.st_mode) && ::access(path.c_str(), X_OK) == 0;
}

/// The file that a command's name stands for, "" when there is none.
std::string find_on_path(const std::string& name) {
    if (name.find('/') != std::string::npos) return executable(name) ? name : "";
    const char* path = std::getenv("PATH");
    std::istringstream directories(path == nullptr ? "/usr/local/bin:/usr/bin:/bin" : path);
    std::string directory;
    while (std::getline(directories, directory, ':')) {
        if (directory.empty()) directory = ".";
        if (std::string file = fmt::format("{}/{}", directory, name); executable(file)) return file;
    }
    return "";
}

Diagnostic no_compiler(const std::string& message) {
    return Diagnostic{
        .code = "no-compiler",
        .message = message,
        .expected = supported_compilers_text(),
        .hint = "Debian and Ubuntu: apt install g++; Fedora: dnf install gcc-c++; or set CXX to a compiler",
        .exit_code = ExitCode::machine_lacks};
}

}  // namespace

std::string supported_compilers_text() {
    std::string out;
    for (const SupportedCompiler& one : supported_compilers)
        out = fmt::format("{} {} or later{}{}", one.name, one.oldest, out.empty() ? "" : ", or ", out);
    return out;
}

Status check_version(const Compiler& compiler) {
    std::vector<std::string> command{compiler.path};
    append(command, compiler.arguments);
    append(command, std::vector<std::string>{"-dM", "-E", "-x", "c++", "/dev/null"});
    const ProcessResult answer = run_process(command);
    for (const SupportedCompiler& one : supported_compilers) {
        const std::string before = fmt::format("#define {} ", one.version_macro);
        const std::size_t at = answer.output.find(before);
        if (at == std::string::npos) continue;
        const int version = std::atoi(answer.output.c_str() + at + before.size());
        if (version >= one.oldest) break;
        return Diagnostic{.code = "compiler-too-old",
                          .message = fmt::format("the compiler {} is {} {}, and does not compile the kernels",
                                                 compiler.path, one.name, version),
                          .expected = supported_compilers_text(),
                          .hint = "set CXX to another compiler",
                          .exit_code = ExitCode::machine_lacks};
    }
    return Done{};
}

Result<Compiler> find_compiler(const JitOptions& options) {
    std::string wanted = options.compiler;
    const char* from_environment = std::getenv("CXX");
    const bool is_from_environment = wanted.empty() && from_environment != nullptr && *from_environment != 0;
    if (is_from_environment) wanted = from_environment;

    std::istringstream words(wanted);
    std::string name;
    if (words >> name) {
        Compiler compiler;
        compiler.path = find_on_path(name);
        if (compiler.path.empty()) {
            return no_compiler(
                fmt::format("there is no compiler \"{}\"{}", name, is_from_environment ? ", which CXX names" : ""));
        }
        for (std::string argument; words >> argument;) compiler.arguments.push_back(argument);
        compiler.identity = file_identity(compiler.path);
        return compiler;
    }
    for (const char* usual : {"c++", "g++", "clang++"}) {
        if (const std::string path = find_on_path(usual); !path.empty()) return Compiler{path, {}, file_identity(path)};
    }
    return no_compiler(
        "kernels are compiled by a C++ compiler, and there is none: looked for CXX, c++, g++ and clang++ on PATH");
}

std::string compiler_version(const Compiler& compiler) {
    std::vector<std::string> command{compiler.path};
    append(command, compiler.arguments);
    command.emplace_back("--version");
    const ProcessResult answer = run_process(command);
    return answer.ok() ? answer.output.substr(0, answer.output.find('\n')) : "";
}

}  // namespace napkin
