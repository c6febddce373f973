// Threads with stacks of their own, and what happens where the system gives none.
#include "support/threads.hpp"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <stdexcept>
#include <string>

#include "run/workers.hpp"
#include "support/share_out.hpp"
#include "support/stack.hpp"

namespace napkin::test_threads {
namespace {

/// Uses so much stack, a page at a time.
int deep(int kib) {
    volatile char page[1024];
    page[0] = static_cast<char>(kib);
    return kib <= 1 ? page[0] : deep(kib - 1) + page[0];
}

/// Calls f in a process of its own that may have no further thread. Empty, or what f found wrong.
std::string without_threads(const std::function<std::string()>& f) {
    int ends[2];
    if (::pipe(ends) != 0) return "no pipe";
    const pid_t child = ::fork();
    if (child == 0) {
        // Root has as many as it likes.
        constexpr uid_t nobody = 64737;
        if (::geteuid() == 0 && ::setresuid(nobody, nobody, nobody) != 0) ::_exit(2);
        const rlimit none{0, 0};
        ::setrlimit(RLIMIT_NPROC, &none);
        const std::string wrong = f();
        const auto written = ::write(ends[1], wrong.data(), wrong.size());
        ::_exit(written == static_cast<ssize_t>(wrong.size()) ? 0 : 2);
    }
    ::close(ends[1]);
    std::string wrong;
    char buffer[256];
    for (ssize_t n = 0; (n = ::read(ends[0], buffer, sizeof buffer)) > 0;)
        wrong.append(buffer, static_cast<std::size_t>(n));
    ::close(ends[0]);
    int status = 0;
    ::waitpid(child, &status, 0);
    return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? wrong : wrong + " ended with status " + std::to_string(status);
}

constexpr std::size_t small = 256 << 10;

/// Calls f on a thread with so little stack.
template <class F>
void on_small_stack(std::size_t bytes, const F& f) {
    pthread_attr_t attributes;
    ::pthread_attr_init(&attributes);
    ASSERT_EQ(::pthread_attr_setstacksize(&attributes, bytes), 0);
    pthread_t thread{};
    auto call = [](void* given) -> void* {
        (*static_cast<const F*>(given))();
        return nullptr;
    };
    ASSERT_EQ(::pthread_create(&thread, &attributes, call, const_cast<F*>(&f)), 0);
    ::pthread_join(thread, nullptr);
}

TEST(Threads, HaveRoomForDeepRecursionWhateverTheCallersStack) {
    int reached = 0;
    on_small_stack(small, [&] {
        Thread thread;
        ASSERT_EQ(thread.start([&] { reached = deep(4 << 10) == 0 ? 0 : 1; }), 0);
    });
    on_small_stack(small, [&] { EXPECT_TRUE(with_enough_stack([&] { deep(4 << 10), ++reached; }).ok()); });
    EXPECT_GE(reached, 1);
    on_small_stack(small, [&] {
        EXPECT_THROW((void)with_enough_stack([] { throw std::runtime_error("comes out"); }), std::runtime_error);
        EXPECT_EQ(on_enough_stack([]() -> Result<int> { return 7; }).value(), 7);
    });
}

TEST(Threads, StayOnAStackThatIsLargeEnough) {
    const pthread_t here = ::pthread_self();
    Thread thread;
    pthread_t self{}, inside{};
    ASSERT_EQ(thread.start([&] {
        self = ::pthread_self();
        EXPECT_TRUE(with_enough_stack([&] { inside = ::pthread_self(); }).ok());
    }),
              0);
    EXPECT_TRUE(with_enough_stack([] {}).ok());
    {
        const Thread done = std::move(thread);
    }
    EXPECT_TRUE(::pthread_equal(self, inside) != 0);
    EXPECT_FALSE(::pthread_equal(self, here) != 0);
}

TEST(Threads, WorkIsDoneByThoseThatThereAre) {
    const auto each_once = [] {
        std::vector<std::atomic<int>> done(100);
        share_out(done.size(), [&](std::size_t i) { ++done[i]; });
        return std::all_of(done.begin(), done.end(), [](const auto& times) { return times == 1; });
    };
    EXPECT_TRUE(each_once());
    EXPECT_EQ(without_threads([&] { return each_once() ? "" : "something is done twice or never"; }), "");
    EXPECT_THROW(share_out(3,
                           [](std::size_t i) {
                               if (i == 1) throw std::runtime_error("comes out");
                           }),
                 std::runtime_error);
}

TEST(Threads, WaitForTheNextPieceOfWorkAndShareOutItsOwn) {
    const auto each_once = [] {
        std::vector<std::atomic<int>> done(100);
        share_out(10, [&](std::size_t i) { share_out(10, [&, i](std::size_t j) { ++done[10 * i + j]; }); });
        return std::all_of(done.begin(), done.end(), [](const auto& times) { return times == 1; });
    };
    EXPECT_TRUE(each_once());
    const Helpers helpers;
    for (int again = 0; again < 20; ++again) EXPECT_TRUE(each_once());
    EXPECT_THROW(share_out(3,
                           [](std::size_t i) {
                               if (i > 0) throw std::runtime_error("comes out");
                           }),
                 std::runtime_error);
    EXPECT_TRUE(each_once());
    EXPECT_EQ(without_threads([&] {
                  const Helpers none;
                  return each_once() ? "" : "something is done twice or never";
              }),
              "");
}

TEST(Threads, WhoNeedsThemIsTold) {
    EXPECT_TRUE(Workers(3).all_started().ok());
    EXPECT_EQ(without_threads([]() -> std::string {
                  Workers workers(3);
                  int calls = 0;
                  workers.run([&](int) { ++calls; });
                  if (workers.threads() != 1 || calls != 1) return "there are threads";
                  const Status started = workers.all_started();
                  if (started.ok()) return "all have started";
                  const Diagnostic& error = started.errors()[0];
                  const bool says = error.message.find("of 3 threads only 1") != std::string::npos &&
                                    error.hint.find("ulimit -u") != std::string::npos;
                  return error.code == "no-thread" && error.exit_code == ExitCode::machine_lacks && says
                             ? ""
                             : render(started.errors());
              }),
              "");
    // A small stack, which may not be left for another one.
    std::string wrong;
    on_small_stack(small, [&] {
        wrong = without_threads([]() -> std::string {
            const Status called = with_enough_stack([] {});
            return !called.ok() && called.errors()[0].code == "no-thread" ? "" : "it is called, or says something else";
        });
    });
    EXPECT_EQ(wrong, "");
}

}  // namespace
}  // namespace napkin::test_threads
