#include "run/jit.hpp"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <thread>

#include "run/process.hpp"
#include "run_test_support.hpp"
#include "support/cache.hpp"
#include "support/threads.hpp"

namespace napkin::test_jit {
namespace {

using test::SetVariable;
using test::TemporaryDirectory;
namespace fs = std::filesystem;

using Module = std::shared_ptr<const JitModule>;

/// A function that adds n, as its own source: no other test compiled it.
std::string adds(int n) { return "extern \"C\" int add(int x) { return x + " + std::to_string(n) + "; }\n"; }

int call(const Module& module, int x) { return reinterpret_cast<int (*)(int)>(module->symbol("add"))(x); }

std::string code(const Result<Module>& result) { return result.ok() ? "" : result.errors()[0].code; }

class Jit : public testing::Test {
protected:
    TemporaryDirectory home_;
    SetVariable cache_{"NAPKIN_CACHE_DIR", home_.file("cache")};

    [[nodiscard]] std::string script(const std::string& text) const {
        const std::string path = home_.file("compiler.sh");
        test::write(path, "#!/bin/sh\n" + text);
        ::chmod(path.c_str(), 0755);
        return path;
    }
};

TEST_F(Jit, CompilesAndThenLoads) {
    const auto first = jit_compile(adds(1));
    ASSERT_TRUE(first.ok()) << render(first.errors());
    EXPECT_FALSE(first.value()->from_cache);
    EXPECT_GT(first.value()->compile_seconds, 0);
    EXPECT_TRUE(first.value()->warnings.empty());
    EXPECT_EQ(call(first.value(), 41), 42);

    const auto start = std::chrono::steady_clock::now();
    const auto second = jit_compile(adds(1));
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    ASSERT_TRUE(second.ok());
    EXPECT_TRUE(second.value()->from_cache);
    EXPECT_EQ(second.value()->compile_seconds, 0);
    EXPECT_EQ(call(second.value(), 1), 2);
    EXPECT_LT(seconds, 0.05);
    EXPECT_EQ(Cache::open().value().list()[0].note.empty(), false);
}

TEST_F(Jit, KeysHoldSourceAndOptions) {
    ASSERT_FALSE(jit_compile(adds(2)).value()->from_cache);
    EXPECT_FALSE(jit_compile(adds(3)).value()->from_cache);
    EXPECT_FALSE(jit_compile(adds(2), {.optimization = "-O1"}).value()->from_cache);
    EXPECT_FALSE(jit_compile(adds(2), {.flags = {"-DX"}}).value()->from_cache);
    EXPECT_TRUE(jit_compile(adds(2)).value()->from_cache);
    EXPECT_FALSE(jit_compile(adds(2), {.use_cache = false}).value()->from_cache);
    EXPECT_EQ(Cache::open().value().stats().entries, 4);
}

TEST_F(Jit, CompilesAgainWhatIsBroken) {
    // Unloaded at once: a loaded file must not change.
    const fs::path entry = fs::path(jit_compile(adds(4)).value()->path).parent_path();
    for (const char* file : {"kernel.so", "manifest"}) {
        const fs::path path = entry / file;
        fs::resize_file(path, fs::file_size(path) / 2);
        const auto again = jit_compile(adds(4));
        ASSERT_TRUE(again.ok()) << file;
        EXPECT_FALSE(again.value()->from_cache) << file;
        EXPECT_EQ(call(again.value(), 1), 5);
        EXPECT_TRUE(jit_compile(adds(4)).value()->from_cache);
    }
}

TEST_F(Jit, ManyThreadsAtATime) {
    std::vector<std::thread> threads;
    for (int t = 0; t < 3; ++t) {
        threads.emplace_back([t] {
            for (int i = 0; i < 2; ++i) {
                const auto module = jit_compile(adds(10 + (i + t) % 2));
                ASSERT_TRUE(module.ok());
                EXPECT_EQ(call(module.value(), 0), 10 + (i + t) % 2);
            }
        });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(Cache::open().value().stats().entries, 2);
}

TEST_F(Jit, NoCompiler) {
    EXPECT_EQ(code(jit_compile(adds(5), {.compiler = "no-such-compiler"})), "no-compiler");
    {
        const SetVariable cxx("CXX", "/nowhere/c++ -O2");
        const auto result = jit_compile(adds(5));
        ASSERT_EQ(code(result), "no-compiler");
        EXPECT_NE(result.errors()[0].message.find("CXX"), std::string::npos);
        EXPECT_EQ(result.errors()[0].exit_code, ExitCode::machine_lacks);
    }
    const SetVariable none("CXX", std::nullopt);
    const SetVariable path("PATH", home_.path());
    const auto result = jit_compile(adds(5));
    ASSERT_EQ(code(result), "no-compiler");
    EXPECT_NE(result.errors()[0].hint.find("apt install g++"), std::string::npos);
}

TEST_F(Jit, ArgumentsInCxxAreKept) {
    const SetVariable cxx("CXX", "g++ -DNINE=9");
    const auto module = jit_compile("extern \"C\" int add(int x) { return x + NINE; }");
    ASSERT_TRUE(module.ok()) << render(module.errors());
    EXPECT_EQ(call(module.value(), 1), 10);
}

TEST_F(Jit, ABrokenCompilerIsTheMachinesFault) {
    EXPECT_EQ(code(jit_compile(adds(6), {.compiler = script("echo 'cc1plus: not found' >&2; exit 1\n")})),
              "compiler-broken");
    EXPECT_EQ(code(jit_compile(adds(6), {.compiler = script("exit 0\n")})), "compiler-broken") << "it makes no file";
    EXPECT_EQ(code(jit_compile(adds(6), {.compiler = script("kill -9 $$\n")})), "compiler-broken");
    EXPECT_EQ(code(jit_compile(adds(6), {.compiler = script("echo 'write: No space left on device' >&2; exit 1\n")})),
              "disk-full");
    test::write(home_.file("not-a-program"), "\177ELF nonsense");
    ::chmod(home_.file("not-a-program").c_str(), 0755);
    EXPECT_EQ(code(jit_compile(adds(6), {.compiler = home_.file("not-a-program")})), "compiler-broken");
    EXPECT_EQ(Cache::open().value().stats().entries, 0);
}

// The driver lives on when its compiler is killed, and some sources fit where others do not.
TEST_F(Jit, ACompilerThatFailsWithoutFindingFaultIsTheMachinesFault) {
    const std::string works_on_the_least = "case \"$*\" in *least.cpp*) exec c++ \"$@\" ;; esac\n";
    for (const char* words :
         {"c++: fatal error: Killed signal terminated program cc1plus",
          "$5/kernel.cpp:7:1: internal compiler error: Segmentation fault",
          "cc1plus: out of memory allocating 65536 bytes", "virtual memory exhausted: Cannot allocate memory",
          "c++: fatal error: cannot execute 'cc1plus': vfork: Resource temporarily unavailable"}) {
        const auto result = jit_compile(
            adds(16), {.compiler = script(works_on_the_least + "echo \"" + words + "\" >&2; exit 1\n")});
        ASSERT_EQ(code(result), "compiler-broken") << words;
        EXPECT_EQ(result.errors()[0].exit_code, ExitCode::machine_lacks);
        EXPECT_FALSE(result.errors()[0].hint.empty());
        EXPECT_NE(result.errors()[0].message.find(std::string(words).substr(8)), std::string::npos)
            << result.errors()[0].message;
    }
}

TEST_F(Jit, ACompilerThatIsTooOldIsTheMachinesFault) {
    const std::string old =
        "case \"$*\" in *-dM*) echo '#define __GNUC__ 9' ;; *least.cpp*) exec c++ \"$@\" ;;\n"
        "*) echo \"x/kernel.cpp:1:2: error: 'concept' does not name a type\" >&2; exit 1 ;; esac\n";
    const auto result = jit_compile(adds(17), {.compiler = script(old)});
    ASSERT_EQ(code(result), "compiler-too-old");
    EXPECT_EQ(result.errors()[0].exit_code, ExitCode::machine_lacks);
    EXPECT_NE(result.errors()[0].message.find("g++ 9"), std::string::npos) << result.errors()[0].message;
    EXPECT_EQ(result.errors()[0].expected, "g++ 12 or later, or clang++ 14 or later");
    EXPECT_TRUE(check_version(find_compiler().value()).ok());
}

TEST(Process, SaysWhyItDoesNotStart) {
    EXPECT_TRUE(run_process({"/bin/true"}).ok());
    EXPECT_EQ(run_process({"/nowhere/true"}).why_not, ENOENT);
    rlimit before{};
    ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
    // A pipe takes two, and one is left.
    const int next = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
    const rlimit few{static_cast<rlim_t>(next) + 1, before.rlim_max};
    ::close(next);
    ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &few), 0);
    const ProcessResult without_files = run_process({"/bin/true"});
    ::setrlimit(RLIMIT_NOFILE, &before);
    EXPECT_FALSE(without_files.started);
    EXPECT_EQ(without_files.why_not, EMFILE);
    const Diagnostic error = no_resource("no-process", "it cannot be started", without_files.why_not);
    EXPECT_NE(error.hint.find("ulimit -n"), std::string::npos);
    EXPECT_EQ(error.exit_code, ExitCode::machine_lacks);
}

TEST_F(Jit, AnObjectThatCannotBeLoaded) {
    const std::string garbage = script(
        "while [ $# -gt 1 ]; do if [ \"$1\" = -o ]; then echo garbage >\"$2\"; fi; shift; done\n");
    const auto result = jit_compile(adds(7), {.compiler = garbage});
    EXPECT_EQ(code(result), "cannot-load");
    EXPECT_EQ(code(jit_compile(adds(7), {.compiler = garbage})), "cannot-load");
}

TEST_F(Jit, RefusedSourceIsAnInternalFault) {
    try {
        (void)jit_compile("this is not C++");
        FAIL();
    } catch (const InternalError& fault) {
        EXPECT_NE(std::string(fault.what()).find("internal error"), std::string::npos);
        EXPECT_NE(std::string(fault.what()).find("kernel.cpp:1"), std::string::npos) << fault.what();
    }
    for (const auto& left : fs::directory_iterator(home_.file("cache")))
        EXPECT_EQ(left.path().filename(), "claims") << "nothing is left behind but the file of locks";
    const auto module = jit_compile(adds(8));
    EXPECT_THROW((void)module.value()->symbol("missing"), InternalError);
}

TEST_F(Jit, WithoutAWritableCacheItWarns) {
    test::write(home_.file("file"), "");
    const SetVariable nowhere("NAPKIN_CACHE_DIR", home_.file("file/below"));
    const auto module = jit_compile(adds(9));
    ASSERT_TRUE(module.ok()) << render(module.errors());
    EXPECT_EQ(call(module.value(), 0), 9);
    ASSERT_EQ(module.value()->warnings.size(), 1U);
    EXPECT_NE(module.value()->warnings[0].find("compiled anew"), std::string::npos);
    EXPECT_FALSE(fs::exists(module.value()->path)) << "temporary files are gone";
}

TEST_F(Jit, ACacheOfOthersIsRefused) {
    fs::create_directory(home_.file("open"));
    ASSERT_EQ(::chmod(home_.file("open").c_str(), 0777), 0);
    const SetVariable shared("NAPKIN_CACHE_DIR", home_.file("open"));
    EXPECT_EQ(code(jit_compile(adds(12))), "cache-not-private");
}

TEST(Compiler, HasAVersion) {
    const auto compiler = find_compiler();
    ASSERT_TRUE(compiler.ok());
    EXPECT_FALSE(compiler_version(compiler.value()).empty());
    EXPECT_EQ(compiler_version({"/nowhere/c++", {}, ""}), "");
    EXPECT_NE(compiler.value().identity, "");
}

}  // namespace
}  // namespace napkin::test_jit
