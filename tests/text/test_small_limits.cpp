// The tool where the system gives little: small stacks, no further process or thread, pipes to which nobody writes. It
// does its work or says what is missing, with exit code 3; it neither crashes nor calls that a fault of its own.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <string>

#include "support/limits.hpp"
#include "support/sanitized.hpp"
#include "text/tool.hpp"

namespace {

namespace fs = std::filesystem;
namespace limits = napkin::limits;
using testing::AllOf;
using testing::HasSubstr;

class SmallLimits : public ToolTest {
protected:
    void SetUp() override {
        ToolTest::SetUp();
        if (napkin::has_address_sanitizer) GTEST_SKIP() << "the sanitizers take stack and threads of their own";
    }
};

constexpr const char* program = "f(X[q, x]) -> Y[q]\n    Y[q] = sum(x) exp(X[q, x])\nsizes q = 400, x = 500\n";

/// A text at every limit of nesting: an expression as deep as they go, in calls as deep as they go.
std::string deepest() {
    std::string text, value = "X[i]";
    // The sum at its end takes two levels more.
    for (int i = 0; i < limits::max_nesting - 4; ++i) value = i % 2 == 0 ? "exp(" + value + ")" : "(0 - " + value + ")";
    text += "level0(X[i]) -> Y[i]\n    Y[i] = " + value + "\n\n";
    for (int i = 1; i + 2 < limits::max_call_depth; ++i)
        text += "level" + std::to_string(i) + "(X[i]) -> Y[i]\n    T[i] = level" + std::to_string(i - 1) +
                "(X)\n    Y[i] = T[i] * 0.5\n\n";
    const std::string last = "level" + std::to_string(limits::max_call_depth - 3);
    return text + "deepest(X[r, i]) -> Y[r]\n    Z[r, i] = " + last +
           "(X[r, ..])\n    Y[r] = sum(i) Z[r, i]\nsizes r = 3, i = 5\n";
}

TEST_F(SmallLimits, StacksOfFewKib) {
    write("a.nk", program);
    write("deepest.nk", deepest());
    for (const char* stack : {"ulimit -s 64;", "ulimit -s 256;"}) {
        EXPECT_EQ(tool("--version", stack).code, 0) << stack;
        for (const char* file : {"a.nk", "deepest.nk"})
            for (const char* command : {"check", "derive --validate", "plan", "emit", "emit --machine h200"}) {
                const Outcome outcome = tool(std::string(command) + " " + file, stack);
                EXPECT_EQ(outcome.code, 0) << stack << " " << command << " " << file << ": " << outcome.err;
            }
        EXPECT_EQ(tool("machines h200", stack).code, 0) << stack;
        EXPECT_EQ(tool("check nowhere.nk", stack).code, 1) << stack;
        // The compiler has the same stack, and may need more.
        const Outcome run = tool("run a.nk --seconds 0.01", stack);
        EXPECT_TRUE(run.code == 0 || run.code == 3) << stack << " " << run.code << ": " << run.err;
        if (run.code == 3) {
            EXPECT_THAT(run.err, HasSubstr("compiler-broken")) << stack;
        }
    }
}

/// As another user, whom limits of processes hold too, and who may have so many of them.
class SmallLimitsOfProcesses : public SmallLimits {
protected:
    [[nodiscard]] Outcome limited(const std::string& arguments, int processes) const {
        const std::string other_user = ::geteuid() == 0 ? "setpriv --reuid=64737 --regid=64737 --clear-groups " : "";
        return tool(arguments, other_user + "prlimit --nproc=" + std::to_string(processes) + " env NAPKIN_CACHE_DIR='" +
                                   path("cache").string() + "'");
    }
    void SetUp() override {
        SmallLimits::SetUp();
        if (IsSkipped()) return;
        fs::permissions(folder_, fs::perms::all);
        if (limited("--version", 1000).code != 0) GTEST_SKIP() << "the tool cannot be called as another user";
    }
};

TEST_F(SmallLimitsOfProcesses, SayWhatIsMissing) {
    write("a.nk", program);
    EXPECT_EQ(limited("plan a.nk", 1).code, 0);
    EXPECT_EQ(limited("derive a.nk --validate", 1).code, 0);
    const Outcome run = limited("run a.nk --seconds 0.01", 1);
    EXPECT_EQ(run.code, 3) << run.err;
    EXPECT_THAT(run.err, AllOf(HasSubstr("cannot be started"), HasSubstr("ulimit -u")));
    // The compiler's driver starts, and not the compiler.
    const Outcome driver = limited("run a.nk --seconds 0.01", 2);
    EXPECT_EQ(driver.code, 3) << driver.err;
    EXPECT_THAT(driver.err, HasSubstr("ulimit -u"));
    // With the kernel kept, its threads are missing.
    const std::string run_again = "run a.nk --seconds 0.01 --threads 2";
    EXPECT_EQ(limited(run_again, 1000).code, 0);
    const Outcome threads = limited(run_again, 1);
    EXPECT_EQ(threads.code, 3) << threads.out << threads.err;
    EXPECT_THAT(threads.err,
                AllOf(HasSubstr("[no-thread]"), HasSubstr("of 2 threads only 1 can be started"), HasSubstr("ulimit -u")));
    // What runs on one thread does, without OpenBLAS.
    EXPECT_EQ(limited("run a.nk --seconds 0.01 --threads 1", 1000).code, 0);
    EXPECT_EQ(limited("run a.nk --seconds 0.01 --threads 1", 1).code, 0);
}

TEST_F(SmallLimits, PipesWithoutAWriterAreNotWaitedFor) {
    write("a.nk", program);
    ASSERT_EQ(::mkfifo(path("pipe").c_str(), 0600), 0);
    for (const char* arguments : {"check pipe", "plan a.nk --schedule pipe", "run a.nk --input X=pipe"}) {
        const auto begin = std::chrono::steady_clock::now();
        const Outcome outcome = tool(arguments, "timeout 20");
        EXPECT_EQ(outcome.code, 1) << arguments << outcome.err;
        EXPECT_THAT(outcome.err, HasSubstr("it is a pipe, and nobody writes to it")) << arguments;
        EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(10)) << arguments;
    }
    // A writer that takes its time is waited for.
    EXPECT_EQ(tool("check pipe", "{ (sleep 0.3; cat a.nk; sleep 2.5; echo '# the end') >pipe & } && timeout 20").code, 0);
    EXPECT_EQ(tool("check pipe", "{ (sleep 0.3; cat a.nk >pipe) & } && timeout 20").code, 0);
    EXPECT_EQ(tool("check /dev/stdin", "cat a.nk | timeout 20").code, 0);
    EXPECT_EQ(tool("check -", "cat a.nk | timeout 20").code, 0);
}

}  // namespace
