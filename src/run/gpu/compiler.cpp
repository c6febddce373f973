#include "run/gpu/compiler.hpp"

#include <fmt/format.h>

#include <chrono>

#include "run/gpu/cuda_library.hpp"
#include "run/library.hpp"
#include "support/cache.hpp"
#include "support/files.hpp"

namespace napkin::gpu {
namespace {

using Program = void*;
using Code = int;
constexpr Code invalid_option = 5;  // NVRTC_ERROR_INVALID_OPTION

struct Nvrtc {
    SharedLibrary library{cuda_library_paths("NAPKIN_NVRTC", {"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so"},
                                             {"nvidia/cu13/lib", "nvidia/cuda_nvrtc/lib"})};
    Code (*version)(int*, int*) = library.function("nvrtcVersion");
    Code (*create)(Program*, const char*, const char*, int, const char* const*,
                   const char* const*) = library.function("nvrtcCreateProgram");
    Code (*destroy)(Program*) = library.function("nvrtcDestroyProgram");
    Code (*compile)(Program, int, const char* const*) = library.function("nvrtcCompileProgram");
    Code (*log_size)(Program, std::size_t*) = library.function("nvrtcGetProgramLogSize");
    Code (*log)(Program, char*) = library.function("nvrtcGetProgramLog");
    Code (*cubin_size)(Program, std::size_t*) = library.function("nvrtcGetCUBINSize");
    Code (*cubin)(Program, char*) = library.function("nvrtcGetCUBIN");
    [[nodiscard]] bool is_whole() const {
        return library.is_open() && version && create && destroy && compile && log_size && log && cubin_size && cubin;
    }
    [[nodiscard]] std::string name() const {
        int major = 0, minor = 0;
        static_cast<void>(version(&major, &minor));
        return fmt::format("NVRTC {}.{}", major, minor);
    }
};

Result<const Nvrtc*> nvrtc() {
    static const Nvrtc* const it = new Nvrtc;
    if (it->is_whole()) return it;
    Diagnostic d{.code = "no-cuda-compiler",
                 .message = "NVRTC, which compiles kernels for GPUs, is not found: " + it->library.why_not()};
    d.expected =
        "libnvrtc.so of CUDA 12 or 13: on the loader's path, in /usr/local/cuda, or from pip's nvidia-cuda-nvrtc";
    d.hint = "set NAPKIN_NVRTC to the library's path";
    d.exit_code = ExitCode::machine_lacks;
    return d;
}

Cubin from(std::string code, const std::string& log) {
    return Cubin{.code = std::move(code), .kernels = reports_in(log), .remarks = remarks_in(log)};
}

Result<Cubin> compile_anew(const Nvrtc& n, const std::string& source, const std::vector<std::string>& options,
                           std::string& log) {
    Program program = nullptr;
    if (n.create(&program, source.c_str(), "kernel.cu", 0, nullptr, nullptr) != 0)
        throw InternalError("NVRTC makes no program");
    std::vector<const char*> words;
    for (const std::string& option : options) words.push_back(option.c_str());
    const Code code = n.compile(program, static_cast<int>(words.size()), words.data());
    std::size_t size = 0;
    static_cast<void>(n.log_size(program, &size));
    log.assign(size, '\0');
    if (size > 0) static_cast<void>(n.log(program, log.data()));
    while (!log.empty() && log.back() == '\0') log.pop_back();
    std::string cubin;
    if (code == 0 && n.cubin_size(program, &size) == 0) {
        cubin.assign(size, '\0');
        static_cast<void>(n.cubin(program, cubin.data()));
    }
    static_cast<void>(n.destroy(&program));
    if (code == invalid_option) {
        return Diagnostic{.code = "no-such-architecture",
                          .message = fmt::format("{} does not take {}", n.name(), options.front()),
                          .expected = "an architecture that it compiles for: NVRTC of another CUDA may",
                          .exit_code = ExitCode::machine_lacks};
    }
    if (code != 0) throw InternalError("NVRTC refuses emitted code:\n" + log.substr(0, 4000));
    return from(std::move(cubin), log);
}

constexpr const char *cubin_name = "kernel.cubin", *log_name = "kernel.log";

}  // namespace

Result<std::string> cuda_compiler() {
    const auto n = nvrtc();
    if (!n) return n.errors();
    return fmt::format("{} ({})", (*n)->name(), (*n)->library.path());
}

Result<Cubin> compile_cuda(const std::string& source, const std::string& architecture, bool use_cache) {
    const auto n = nvrtc();
    if (!n) return n.errors();
    const std::vector<std::string> options{"--gpu-architecture=" + architecture, "--std=c++17", "--ftz=true",
                                           "--ptxas-options=-v"};
    std::string key_text = (*n)->name();
    for (const std::string& option : options) key_text += "\n" + option;
    const std::string key = sha256(key_text + "\n" + source);
    const auto finish = [&](Cubin cubin, double seconds, bool from_cache) {
        cubin.compile_seconds = seconds, cubin.from_cache = from_cache, cubin.compiler = (*n)->name();
        return cubin;
    };
    const auto cache = use_cache ? Cache::open() : Result<Cache>(Diagnostic{});
    std::shared_ptr<const void> claim;
    for (const bool is_claimed : {false, true}) {
        if (!cache.ok()) break;
        // Who finds nothing looks again once nobody else is making it.
        if (is_claimed) claim = cache->claim(key);
        if (const auto entry = cache->find(key)) {
            const auto code = read_file(*entry + "/" + cubin_name), log = read_file(*entry + "/" + log_name);
            if (code && log) return finish(from(*code, *log), 0, true);
            cache->remove(key);
        }
    }
    if (const Status may = may_compile(source, key); !may) return may.errors();
    const auto start = std::chrono::steady_clock::now();
    std::string log;
    auto cubin = compile_anew(**n, source, options, log);
    if (!cubin) return cubin;
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    if (cache.ok())
        if (const auto draft = cache->begin(); draft.ok()) {
            const bool written = write_new_file(draft->directory + "/" + cubin_name, cubin->code) == 0 &&
                                 write_new_file(draft->directory + "/" + log_name, log) == 0 &&
                                 write_new_file(draft->directory + "/kernel.cu", source) == 0;
            if (written)
                static_cast<void>(cache->commit(*draft, key, (*n)->name()));
            else
                cache->abandon(*draft);
        }
    return finish(std::move(*cubin), seconds, false);
}

}  // namespace napkin::gpu
