#include "support/cache.hpp"

#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <thread>

#include "run_test_support.hpp"

namespace napkin::test_cache {
namespace {

using test::content;
using test::SetVariable;
using test::TemporaryDirectory;
namespace fs = std::filesystem;

std::string put(const Cache& cache, const std::string& key, const std::string& text) {
    const auto begun = cache.begin();
    EXPECT_TRUE(begun.ok());
    test::write(begun.value().directory + "/data", text);
    const auto entry = cache.commit(begun.value(), key, "a note");
    EXPECT_TRUE(entry.ok());
    return entry.value();
}

int entries_on_disk(const std::string& directory) {
    return static_cast<int>(std::distance(fs::directory_iterator(directory), fs::directory_iterator()));
}

std::string error_code(const Result<Cache>& cache) { return cache.ok() ? "" : cache.errors()[0].code; }

TEST(Sha256, GivesTheStandardsExamples) {
    EXPECT_EQ(sha256(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    EXPECT_EQ(sha256("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    EXPECT_EQ(sha256("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
              "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
    EXPECT_EQ(sha256(std::string(1000000, 'a')), "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
    // The padding changes its size around these lengths.
    for (const std::size_t n : {55U, 56U, 63U, 64U, 65U}) EXPECT_EQ(sha256(std::string(n, 'x')).size(), 64U);
}

TEST(Cache, KeepsWhatIsCommitted) {
    const TemporaryDirectory home;
    const Cache cache = Cache::open(home.file("cache")).value();
    EXPECT_FALSE(cache.find("k1"));
    const std::string entry = put(cache, "k1", "hello");
    EXPECT_EQ(content(entry + "/data"), "hello");
    EXPECT_EQ(cache.find("k1"), entry);
    const auto list = cache.list();
    ASSERT_EQ(list.size(), 1U);
    EXPECT_EQ(list[0].key, "k1");
    EXPECT_EQ(list[0].note, "a note");
    EXPECT_TRUE(list[0].intact);
    EXPECT_GT(list[0].created, 1600000000);
    EXPECT_EQ(entries_on_disk(home.file("cache")), 1) << "nothing temporary stays";

    struct stat info{};
    ASSERT_EQ(::stat(home.file("cache").c_str(), &info), 0);
    EXPECT_EQ(info.st_mode & 0777, 0700U);
}

TEST(Cache, RemovesWhatIsBroken) {
    const TemporaryDirectory home;
    const Cache cache = Cache::open(home.file("cache")).value();
    const auto breaks = [&](const char* what, auto change) {
        const std::string entry = put(cache, "k", "some content");
        ASSERT_TRUE(cache.find("k")) << what;
        change(entry);
        EXPECT_FALSE(cache.find("k")) << what;
        EXPECT_EQ(entries_on_disk(home.file("cache")), 0) << what;
    };
    breaks("a bit differs", [](const std::string& e) { test::write(e + "/data", "some Content"); });
    breaks("truncated", [](const std::string& e) { fs::resize_file(e + "/data", 3); });
    breaks("longer", [](const std::string& e) { test::write(e + "/data", "some content and more"); });
    breaks("missing", [](const std::string& e) { fs::remove(e + "/data"); });
    breaks("a link", [&](const std::string& e) {
        fs::rename(e + "/data", home.file("other"));
        fs::create_symlink(home.file("other"), e + "/data");
    });
    breaks("no manifest", [](const std::string& e) { fs::remove(e + "/manifest"); });
    breaks("empty manifest", [](const std::string& e) { test::write(e + "/manifest", ""); });
    breaks("an edited manifest", [](const std::string& e) {
        std::string text = content(e + "/manifest");
        text.replace(text.find("a note"), 6, "A note");
        test::write(e + "/manifest", text);
    });
    breaks("another entry's manifest", [&](const std::string& e) {
        const std::string other = put(cache, "other", "some content");
        fs::copy_file(other + "/manifest", e + "/manifest", fs::copy_options::overwrite_existing);
        fs::remove_all(other);
    });
}

TEST(Cache, DropsTheLongestUnusedPastTheCap) {
    const TemporaryDirectory home;
    const Cache cache = Cache::open(home.file("cache"), 25000).value();
    for (const char* key : {"a", "b"}) {
        put(cache, key, std::string(10000, 'x'));
        // Time stamps count in seconds when they are compared.
        const auto old = fs::file_time_type::clock::now() - std::chrono::hours(key[0] == 'a' ? 2 : 1);
        fs::last_write_time(home.file("cache/") + key + "/manifest", old);
    }
    EXPECT_TRUE(cache.find("a")) << "a hit renews it";
    put(cache, "c", std::string(10000, 'x'));
    EXPECT_TRUE(cache.find("a"));
    EXPECT_FALSE(cache.find("b"));
    EXPECT_TRUE(cache.find("c"));
    EXPECT_LE(cache.stats().bytes, 25000);
    put(cache, "large", std::string(50000, 'x'));
    EXPECT_TRUE(cache.find("large")) << "what was just made stays";
    EXPECT_EQ(cache.stats().entries, 1);
}

TEST(Cache, ClearsEverything) {
    const TemporaryDirectory home;
    const Cache cache = Cache::open(home.file("cache")).value();
    for (const char* key : {"a", "b", "c"}) put(cache, key, std::string(1000, 'x'));
    EXPECT_GE(cache.clear(), 3000);
    EXPECT_EQ(entries_on_disk(home.file("cache")), 0);
    EXPECT_EQ(cache.stats().entries, 0);
}

TEST(Cache, ClearsOnlyWhatIsItsOwn) {
    const TemporaryDirectory home;
    const Cache cache = Cache::open(home.file("cache")).value();
    const std::string entry = put(cache, "a", "ours");
    test::write(entry + "/notes", "put there by hand");
    const std::vector<std::string> theirs = {"photos/summer.jpg",  "photos/old/one.jpg", "tmp-mine/draft.txt",
                                             "tmp-named/manifest", "named/manifest",     "letter.txt"};
    for (const std::string& file : theirs) {
        fs::create_directories(fs::path(home.file("cache/" + file)).parent_path());
        test::write(home.file("cache/" + file), "precious");
    }
    // One that begins as ours do, and goes on otherwise.
    const std::string alike = content(entry + "/manifest").substr(0, content(entry + "/manifest").find('\n')) +
                              "s of linen\n";
    fs::create_directories(home.file("cache/linen"));
    test::write(home.file("cache/linen/manifest"), alike);
    for (const char* folder : {"photos", "tmp-mine", "tmp-named", "named", "linen"}) {
        const auto old = fs::file_time_type::clock::now() - std::chrono::hours(3);
        fs::last_write_time(home.file("cache/") + folder, old);
    }
    EXPECT_EQ(cache.stats().entries, 1);
    EXPECT_EQ(cache.stats().foreign, 6);
    cache.trim();
    cache.clear();
    for (const std::string& file : theirs) EXPECT_EQ(content(home.file("cache/" + file)), "precious") << file;
    EXPECT_EQ(content(home.file("cache/linen/manifest")), alike);
    EXPECT_EQ(content(entry + "/notes"), "put there by hand");
    EXPECT_FALSE(fs::exists(entry + "/data"));
    EXPECT_EQ(cache.stats().entries, 0);
}

TEST(Cache, ClearsWhatKilledCompilesLeft) {
    const TemporaryDirectory home;
    const Cache cache = Cache::open(home.file("cache")).value();
    const auto alive = cache.begin();
    test::write(alive.value().directory + "/kernel.cpp", "being compiled");
    auto dead = cache.begin();
    test::write(dead.value().directory + "/kernel.cpp", "of a process that was killed");
    dead.value().lock.reset();
    EXPECT_GT(cache.clear(), 0);
    EXPECT_FALSE(fs::exists(dead.value().directory));
    EXPECT_EQ(content(alive.value().directory + "/kernel.cpp"), "being compiled");
    EXPECT_TRUE(cache.commit(alive.value(), "k", "").ok());
    EXPECT_TRUE(cache.find("k"));
}

TEST(Cache, AnotherProcessMayBeFaster) {
    const TemporaryDirectory home;
    const Cache cache = Cache::open(home.file("cache")).value();
    const auto slow = cache.begin();
    test::write(slow.value().directory + "/data", "mine");
    put(cache, "k", "theirs");
    const auto entry = cache.commit(slow.value(), "k", "");
    ASSERT_TRUE(entry.ok());
    EXPECT_EQ(content(entry.value() + "/data"), "theirs");
    EXPECT_EQ(entries_on_disk(home.file("cache")), 1);

    // When what is there is broken, ours takes its place.
    const auto second = cache.begin();
    test::write(second.value().directory + "/data", "mine");
    fs::resize_file(entry.value() + "/data", 1);
    EXPECT_EQ(content(cache.commit(second.value(), "k", "").value() + "/data"), "mine");
}

TEST(Cache, LooksAtAllEntriesAfterOneOfManySmallOnes) {
    const TemporaryDirectory home;
    const Cache cache = Cache::open(home.file("cache")).value();
    auto dead = cache.begin();
    dead.value().lock.reset();
    put(cache, "small-1", "text");
    EXPECT_TRUE(fs::exists(dead.value().directory));
    put(cache, "small-00", "text");
    EXPECT_FALSE(fs::exists(dead.value().directory));
    dead = cache.begin();
    dead.value().lock.reset();
    put(cache, "large-1", std::string(default_cache_cap_bytes / 4096, 'x'));
    EXPECT_FALSE(fs::exists(dead.value().directory));
}

TEST(Cache, ManyThreadsAtATime) {
    const TemporaryDirectory home;
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t) {
        threads.emplace_back([&home, t] {
            const Cache cache = Cache::open(home.file("cache"), 5000).value();
            for (int i = 0; i < 25; ++i) {
                const std::string key = "k" + std::to_string((i * 7 + t) % 5);
                if (const auto entry = cache.find(key)) continue;
                const auto begun = cache.begin();
                test::write(begun.value().directory + "/data", std::string(1000, 'x'));
                EXPECT_TRUE(cache.commit(begun.value(), key, "").ok());
                if (i % 10 == 9) cache.clear();
            }
        });
    }
    for (std::thread& thread : threads) thread.join();
    const Cache cache = Cache::open(home.file("cache"), 5000).value();
    EXPECT_EQ(cache.stats().broken, 0);
}

/// In another process: makes the entry as whoever compiles does, and ends with 1 if it was there or being made. `dies`:
/// it is killed while it makes it.
pid_t maker_of_entry(const std::string& directory, bool dies) {
    const pid_t child = ::fork();
    if (child != 0) return child;
    const Cache cache = Cache::open(directory).value();
    if (cache.find("key")) ::_exit(1);
    const auto claim = cache.claim("key");
    if (cache.find("key")) ::_exit(1);
    if (dies) ::raise(SIGKILL);
    ::usleep(100000);
    put(cache, "key", "made");
    ::_exit(0);
}

TEST(Cache, OneProcessMakesAnEntryAndTheOthersWait) {
    const TemporaryDirectory home;
    const std::string directory = home.file("cache");
    ASSERT_TRUE(Cache::open(directory));
    std::vector<pid_t> children = {maker_of_entry(directory, true)};
    for (int i = 0; i < 8; ++i) children.push_back(maker_of_entry(directory, false));
    int made = 0, killed = 0;
    for (const pid_t child : children) {
        int status = 0;
        ASSERT_EQ(::waitpid(child, &status, 0), child);
        killed += WIFSIGNALED(status) ? 1 : 0;
        made += WIFEXITED(status) && WEXITSTATUS(status) == 0 ? 1 : 0;
    }
    EXPECT_EQ(made, 1);
    EXPECT_LE(killed, 1);
    EXPECT_EQ(Cache::open(directory)->stats().foreign, 0);
}

TEST(Cache, ServesWhatIsThereWhereNobodyMayWrite) {
    const TemporaryDirectory home;
    const std::string directory = home.file("cache");
    put(Cache::open(directory).value(), "key", "text");
    ASSERT_EQ(::chmod(directory.c_str(), 0500), 0);
    const auto cache = Cache::open(directory);
    ASSERT_TRUE(cache);
    EXPECT_TRUE(cache->find("key"));
    EXPECT_FALSE(cache->find("other"));
    if (::geteuid() != 0) {
        EXPECT_FALSE(cache->begin().ok());
        EXPECT_EQ(cache->claim("other"), nullptr);
    }
    ASSERT_EQ(::chmod(directory.c_str(), 0700), 0);
}

TEST(Cache, SaysWhatMayNotBeCompiled) {
    const std::string source = "// Kernel O of attention.\nvoid f();\n// Kernel P of attention.\n";
    {
        const SetVariable allowed("NAPKIN_NO_COMPILE", "0");
        EXPECT_TRUE(may_compile(source, "k"));
    }
    const SetVariable forbidden("NAPKIN_NO_COMPILE", "1");
    const Status refused = may_compile(source, "k");
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.errors()[0].code, "not-compiled");
    EXPECT_NE(refused.errors()[0].message.find("O of attention, P of attention"), std::string::npos);
}

TEST(Cache, RefusesWhatIsNotPrivate) {
    const TemporaryDirectory home;
    fs::create_directory(home.file("real"));
    ASSERT_EQ(::chmod(home.file("real").c_str(), 0700), 0);
    fs::create_symlink(home.file("real"), home.file("link"));
    EXPECT_EQ(error_code(Cache::open(home.file("link"))), "cache-not-private");
    EXPECT_EQ(error_code(Cache::open(home.file("link/"))), "cache-not-private");
    ASSERT_EQ(::chmod(home.file("real").c_str(), 0777), 0);
    EXPECT_EQ(error_code(Cache::open(home.file("real"))), "cache-not-private");
    test::write(home.file("file"), "");
    EXPECT_EQ(error_code(Cache::open(home.file("file"))), "cache-unwritable");
    EXPECT_EQ(error_code(Cache::open(home.file("file/below"))), "cache-unwritable");
    if (::geteuid() == 0) {
        fs::create_directory(home.file("theirs"));
        ASSERT_EQ(::chmod(home.file("theirs").c_str(), 0700), 0);
        ASSERT_EQ(::chown(home.file("theirs").c_str(), 12345, 12345), 0);
        EXPECT_EQ(error_code(Cache::open(home.file("theirs"))), "cache-not-private");
    }
}

TEST(Cache, LiesWhereTheEnvironmentSays) {
    const TemporaryDirectory home;
    const SetVariable xdg("XDG_CACHE_HOME", home.file("xdg"));
    const SetVariable own("HOME", home.path());
    {
        const SetVariable chosen("NAPKIN_CACHE_DIR", home.file("chosen"));
        EXPECT_EQ(Cache::open().value().directory(), home.file("chosen"));
    }
    const SetVariable none("NAPKIN_CACHE_DIR", std::nullopt);
    EXPECT_EQ(Cache::open().value().directory(), home.file("xdg/napkin"));
    const SetVariable relative("XDG_CACHE_HOME", "not/absolute");
    EXPECT_EQ(Cache::open().value().directory(), home.file(".cache/napkin"));
    const SetVariable cap("NAPKIN_CACHE_MIB", "3");
    EXPECT_EQ(Cache::open().value().stats().cap_bytes, 3 << 20);
}

}  // namespace
}  // namespace napkin::test_cache
