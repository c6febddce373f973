#pragma once
// Just-in-time compilation on the CPU: C++ source becomes a loaded shared object, by the system's compiler and the
// kernel cache.
#include <memory>
#include <string>
#include <vector>

#include "support/result.hpp"

namespace napkin {

/// How source is compiled. The defaults suit generated kernels: this processor's instructions, IEEE results, no errno.
struct JitOptions {
    /// "" asks CXX, then c++, g++, clang++ on PATH. A name with a slash is a path; words after the first are arguments.
    std::string compiler = {};
    std::string optimization = "-O3";
    std::vector<std::string> flags = {};  ///< appended to the usual ones
    bool use_cache = true;                ///< false: compile anew, keep nothing
};

/// A loaded shared object; unloaded when the last owner goes. Safe to use from several threads.
class JitModule {
public:
    /// Address of an extern "C" symbol. A missing one is an internal fault.
    [[nodiscard]] void* symbol(const std::string& name) const;

    bool from_cache = false;
    double compile_seconds = 0;         ///< spent in the compiler, 0 when from_cache
    std::string path;                   ///< of the shared object; it may be gone when nothing was kept
    std::vector<std::string> warnings;  ///< e.g. that nothing could be kept; for the user's eyes

    JitModule() = default;
    JitModule(const JitModule&) = delete;
    JitModule& operator=(const JitModule&) = delete;
    ~JitModule();

private:
    friend Result<std::shared_ptr<const JitModule>> load_object(const std::string& path);
    void* handle_ = nullptr;
};

/// Compiles and loads, or loads what an earlier call kept. Errors, all machine_lacks: no-compiler, compiler-broken (it
/// fails without finding fault with the source, or on the least program too), compiler-too-old, no-process, disk-full,
/// cache-not-private, cannot-load. Source with which a supported compiler finds fault is an internal fault and throws
/// with the compiler's words.
Result<std::shared_ptr<const JitModule>> jit_compile(const std::string& source, const JitOptions& options = {});

/// The shared object's bytes, compiled anew and not loaded. Errors: those of jit_compile, unwritable-file.
Result<std::string> compiled_object(const std::string& source, const JitOptions& options = {});

/// The compiler that the options choose.
struct Compiler {
    std::string path;                    ///< absolute
    std::vector<std::string> arguments;  ///< that come before any other
    std::string identity;                ///< path, size and time of change of the executable: what cache keys hold
};
/// Error no-compiler (machine_lacks) says how to get one.
Result<Compiler> find_compiler(const JitOptions& options = {});

/// A kind of compiler, and the oldest version of it that kernels are written for and tested with.
struct SupportedCompiler {
    const char* name;           ///< "g++"
    const char* version_macro;  ///< predefined as the number of its version
    int oldest;
};
/// Every kind's macro is defined by no kind that comes before it.
inline constexpr SupportedCompiler supported_compilers[] = {{"clang++", "__clang_major__", 14}, {"g++", "__GNUC__", 12}};
/// "g++ 12 or later, or clang++ 14 or later"
std::string supported_compilers_text();
/// Error compiler-too-old (machine_lacks), where the compiler says that it is. Takes some 10 ms.
Status check_version(const Compiler& compiler);

/// First line of `--version`; "" when the compiler does not answer. Takes some 10 ms.
std::string compiler_version(const Compiler& compiler);

}  // namespace napkin
