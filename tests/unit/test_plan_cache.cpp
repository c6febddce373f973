// Plans kept from one run of the pipeline to the next: what is found, what is not, and what is done with text that is
// no plan.
#include "run/plan_cache.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <set>

#include "run/pipeline.hpp"
#include "run_test_support.hpp"
#include "support/cache.hpp"
#include "support/paths.hpp"

namespace napkin::test_plan_cache {
namespace {

const std::string product = "f(A[m, k], B[k, n]) -> C[m, n]\n    C[m, n] = sum(k) A[m, k] * B[k, n]\n";

class PlanCache : public testing::Test {
protected:
    static Compilation run(const std::string& text, PipelineOptions options = {}) {
        options.sizes.insert({{"m", 512}, {"n", 512}, {"k", 512}});
        if (options.machine.empty()) options.machine = "generic-cpu";
        options.until = Pass::emit;
        auto made = run_pipeline(std::make_shared<const Source>(Source{"a.nk", text}), options);
        if (!made) throw std::runtime_error(render(made.errors()));
        return std::move(*made);
    }
    static PipelineOptions keeping() {
        PipelineOptions options;
        options.keep_plan = true;
        return options;
    }
    /// Whether the plan was kept before.
    static bool is_known(const std::string& text, const PipelineOptions& options) {
        return run(text, options).plan_from_cache;
    }
    static std::vector<std::string> kept() {
        std::vector<std::string> keys;
        for (const CacheEntry& entry : Cache::open().value().list())
            if (entry.key.starts_with("plan-")) keys.push_back(entry.key);
        return keys;
    }

    test::TemporaryDirectory home_;
    test::SetVariable cache_{"NAPKIN_CACHE_DIR", home_.file("cache")};
};

TEST_F(PlanCache, KeepsThePlan) {
    // On the GPU it is the plan that was accepted at last, where there is a compiler to ask.
    for (const char* machine : {"generic-cpu", "h200"}) {
        PipelineOptions options = keeping(), alone;
        options.machine = alone.machine = machine;
        const Compilation first = run(product, options), second = run(product, options), anew = run(product, alone);
        EXPECT_FALSE(first.plan_from_cache || anew.plan_from_cache);
        EXPECT_TRUE(second.plan_from_cache);
        for (const Compilation* other : {&first, &anew}) {
            EXPECT_EQ(to_string(second.plan), to_string(other->plan));
            EXPECT_EQ(complete(second.code), complete(other->code));
            EXPECT_EQ(second.plan.seconds(), other->plan.seconds());
            EXPECT_EQ(second.notes, other->notes);
        }
    }
    ASSERT_EQ(kept().size(), 2U);
    std::set<std::string> notes;
    for (const CacheEntry& entry : Cache::open()->list())
        if (entry.key.starts_with("plan-")) notes.insert(entry.note);
    EXPECT_EQ(notes, (std::set<std::string>{"plan of f on generic-cpu", "plan of f on h200"}));
}

TEST_F(PlanCache, KeepsWhatTheUserIsTold) {
    // Groups of one row make another form the fastest.
    const std::string attention =
        "f(Q[m, k], K[n, k], V[n, d]) -> O[m, d]\n    S[m, n] = sum(k) Q[m, k] * K[n, k]\n"
        "    P[m, n] = softmax(n) S[m, n] * k^-0.5\n    O[m, d] = sum(n) P[m, n] * V[n, d]\n";
    PipelineOptions options = keeping();
    options.sizes = {{"k", 128}, {"d", 128}, {"m", 4096}, {"n", 4096}};
    options.schedule = {"group m = 1"};
    const Compilation first = run(attention, options), second = run(attention, options);
    EXPECT_TRUE(second.plan_from_cache);
    ASSERT_EQ(first.notes.size(), 1U);
    EXPECT_EQ(first.notes, second.notes);
    EXPECT_EQ(to_string(first.plan), to_string(second.plan));
}

TEST_F(PlanCache, TellsApartAllThatAPlanFollowsFrom) {
    std::vector<std::pair<std::string, PipelineOptions>> questions{{product, keeping()}};
    const auto add = [&](const std::string& text, auto change) {
        PipelineOptions options = keeping();
        change(options);
        questions.emplace_back(text, options);
    };
    add(product + "# said otherwise\n", [](auto&) {});
    add(product, [](auto& o) { o.sizes["m"] = 256; });
    add(product, [](auto& o) { o.types = DType::f64; });
    add(product, [](auto& o) { o.fuse = false; });
    add(product, [](auto& o) { o.schedule = {"group m = 32"}; });
    add(product, [](auto& o) { o.schedule_file = std::make_shared<const Source>(Source{"s", "group m = 32\n"}); });
    add(product, [](auto& o) { o.machine = in_sources("tests/machines/cpu-128.toml"); });
    add(product, [](auto& o) { o.machine = "h200"; });
    for (const bool again : {false, true})
        for (std::size_t i = 0; i < questions.size(); ++i)
            EXPECT_EQ(is_known(questions[i].first, questions[i].second), again) << i;
}

TEST_F(PlanCache, TellsMachinesOfOneNameApart) {
    Machine machine = load_machine("generic-cpu").value();
    const std::string file = home_.file("mine.toml");
    PipelineOptions options = keeping();
    options.machine = file;
    for (const double hertz : {2e9, 3e9}) {
        machine.clock_hz.value = hertz;
        test::write(file, to_toml(machine));
        EXPECT_FALSE(is_known(product, options));
        EXPECT_TRUE(is_known(product, options));
    }
}

TEST_F(PlanCache, BuildsAndCompilersHaveTheirOwn) {
    const PlanQuestion question{"text", load_machine("generic-cpu").value(), ""};
    PlanQuestion other_compiler = question, shifted = question;
    other_compiler.compiler = "NVRTC 13.0";
    shifted.asked = "ext", shifted.compiler = "t";
    const std::string program = home_.file("program");
    test::write(program, "one build");
    const std::string one = plan_key(question, file_identity(program));
    EXPECT_EQ(plan_key(question, file_identity(program)), one);
    EXPECT_NE(plan_key(other_compiler, file_identity(program)), one);
    EXPECT_NE(plan_key(shifted, file_identity(program)), one);
    test::write(program, "another build");
    EXPECT_NE(plan_key(question, file_identity(program)), one);
    const std::string self = std::filesystem::read_symlink("/proc/self/exe");
    EXPECT_EQ(own_identity(), file_identity(self));
    EXPECT_TRUE(own_identity().starts_with(self + " ")) << own_identity();
}

TEST_F(PlanCache, PlansAnewInThePlaceOfWhatIsNoPlan) {
    const Compilation first = run(product, keeping());
    const std::string key = kept().at(0), good = kept_plan(key).value();
    std::string broken = good;
    const std::string rows = "\"rows\":";  // of the first atom, whose block is to fit the registers
    broken.replace(broken.find(rows) + rows.size(), 1, "99");
    for (const std::string& text : {std::string("nonsense"), std::string(), broken}) {
        keep_plan(key, text, "a note");
        ASSERT_EQ(kept_plan(key).value(), text);
        const Compilation anew = run(product, keeping());
        EXPECT_FALSE(anew.plan_from_cache) << text;
        EXPECT_EQ(complete(anew.code), complete(first.code));
        EXPECT_EQ(kept_plan(key).value(), good);
    }
    // What was damaged on disk is not read at all.
    test::write(home_.file("cache/" + key + "/plan.json"), good.substr(0, good.size() / 2));
    EXPECT_FALSE(kept_plan(key));
    EXPECT_FALSE(is_known(product, keeping()));
    EXPECT_TRUE(is_known(product, keeping()));
    EXPECT_EQ(kept().size(), 1U);
}

TEST_F(PlanCache, AnEntryOfAnotherProgramIsIgnored) {
    const std::string weights =
        "f(A[m, k], B[k, n]) -> C[m, n]\n    D[m, n] = sum(k) A[m, k] * B[k, n]\n    C[m, n] = softmax(n) D[m, n]\n";
    run(product, keeping());
    const std::string product_key = kept().at(0);
    const Compilation first = run(weights, keeping());
    const std::string key = kept().at(kept().at(0) == product_key ? 1 : 0), good = kept_plan(key).value();
    keep_plan(key, kept_plan(product_key).value(), "a note");
    const Compilation anew = run(weights, keeping());
    EXPECT_FALSE(anew.plan_from_cache);
    EXPECT_EQ(complete(anew.code), complete(first.code));
    EXPECT_EQ(kept_plan(key).value(), good);
}

TEST_F(PlanCache, IsLeftAloneUnlessAsked) {
    run(product);
    PipelineOptions early = keeping();
    early.sizes = {{"m", 512}, {"n", 512}, {"k", 512}};
    early.until = Pass::choose;
    ASSERT_TRUE(run_pipeline(std::make_shared<const Source>(Source{"a.nk", product}), early).ok());
    EXPECT_TRUE(kept().empty());
}

TEST_F(PlanCache, DoesWithoutAFolder) {
    test::write(home_.file("file"), "");
    const test::SetVariable nowhere("NAPKIN_CACHE_DIR", home_.file("file/below"));
    for (int i = 0; i < 2; ++i) EXPECT_FALSE(is_known(product, keeping()));
    ::mkdir(home_.file("open").c_str(), 0777);
    ::chmod(home_.file("open").c_str(), 0777);
    const test::SetVariable shared("NAPKIN_CACHE_DIR", home_.file("open"));
    for (int i = 0; i < 2; ++i) EXPECT_FALSE(is_known(product, keeping())) << "others could write there";
}

}  // namespace
}  // namespace napkin::test_plan_cache
