// `napkin chart` and `napkin report`: golden pictures in tests/text/charts (NAPKIN_UPDATE_GOLDEN=1 rewrites them),
// compared with a tolerance on numbers, and what goes wrong.
#include <gtest/gtest.h>

#include <cctype>
#include <cmath>

#include "support/paths.hpp"
#include "tool.hpp"

namespace {

/// Where two pictures differ: other words, or a number that is further away than a hair's breadth of the page. Empty:
/// nowhere.
std::string difference(const std::string& a, const std::string& b) {
    // As pictures have them: a sign, digits, and a point. Letters before it make it part of a name or a colour.
    const auto number_at = [](const std::string& s, std::size_t i) {
        std::size_t end = i + (s[i] == '-' ? 1 : 0);
        while (end < s.size() && ((s[end] >= '0' && s[end] <= '9') || s[end] == '.') && end < i + 18) ++end;
        return s.substr(i, end - i);
    };
    const auto is_number = [&](const std::string& s, std::size_t i) {
        const std::string text = number_at(s, i);
        const bool is_alone = i == 0 || !(std::isalnum(static_cast<unsigned char>(s[i - 1])) != 0 || s[i - 1] == '#');
        return is_alone && text.find_first_of("0123456789") <= 1;
    };
    std::size_t i = 0, j = 0;
    while (i < a.size() && j < b.size()) {
        if (is_number(a, i) && is_number(b, j)) {
            const std::string in_a = number_at(a, i), in_b = number_at(b, j);
            const double x = std::stod(in_a), y = std::stod(in_b);
            if (std::abs(x - y) > 0.3 + 1e-6 * std::abs(x)) return a.substr(i > 60 ? i - 60 : 0, 120);
            i += in_a.size(), j += in_b.size();
        } else if (a[i++] != b[j++]) {
            return a.substr(i > 60 ? i - 60 : 0, 120);
        }
    }
    return i == a.size() && j == b.size() ? "" : "one is longer";
}

/// A figure that stands against its unit, as "3.35TB/s"; empty: none does.
std::string figure_at_its_unit(const std::string& text) {
    for (const char* unit : {"B/s", "FLOP/s", "Hz"})
        for (std::size_t at = text.find(unit); at != std::string::npos; at = text.find(unit, at + 1)) {
            std::size_t begin = at;
            while (begin > 0 && std::string("kKMGTPi").find(text[begin - 1]) != std::string::npos) --begin;
            if (begin > 0 && std::isdigit(static_cast<unsigned char>(text[begin - 1])) != 0)
                return text.substr(begin > 20 ? begin - 20 : 0, 40);
        }
    return "";
}

std::string without_style(const std::string& picture) {
    const std::size_t begin = picture.find("  <style>"), end = picture.find("</style>\n");
    EXPECT_LT(begin, end);
    return picture.substr(0, begin) + picture.substr(end + 9);
}

class Charts : public ToolTest {
protected:
    [[nodiscard]] Outcome chart(const std::string& arguments) const {
        return tool("chart " + arguments, "", "", napkin::in_sources("examples"));
    }
    void expect_golden(const std::string& name, const std::string& arguments) const {
        const Outcome o = chart(arguments);
        ASSERT_EQ(o.code, 0) << o.err;
        // The style sheet is that of all pictures, and no part of this one.
        const std::string drawn = without_style(o.out);
        EXPECT_EQ(figure_at_its_unit(drawn), "") << name;
        const std::filesystem::path golden = napkin::source_dir() / "tests/text/charts" / (name + ".svg");
        if (std::getenv("NAPKIN_UPDATE_GOLDEN")) {
            std::filesystem::create_directories(golden.parent_path());
            std::ofstream(golden, std::ios::binary) << drawn;
        }
        std::ifstream file(golden, std::ios::binary);
        EXPECT_EQ(difference(drawn, std::string(std::istreambuf_iterator<char>(file), {})), "") << name;
    }
    void expect_error(const std::string& arguments, int code, const std::string& part) const {
        const Outcome o = chart(arguments);
        EXPECT_EQ(o.code, code) << arguments << o.err;
        EXPECT_NE(o.err.find(part), std::string::npos) << o.err;
        EXPECT_EQ(o.out.size(), 0U);
    }
};

const std::string figure_34 = "schedules/napkin.nk --machine h100-sxm5 --schedule schedules/napkin-figure-34.schedule";

TEST_F(Charts, Pictures) {
    expect_golden("overlap-figure-34", "overlap " + figure_34);
    expect_golden("configuration-table-1", "configuration " + figure_34);
    expect_golden("roofline-attention", "roofline schedules/napkin.nk --machine h100-sxm5");
    expect_golden("hierarchy-h100", "hierarchy --machine h100-sxm5");
    expect_golden("transfers-attention", "transfers schedules/napkin.nk --machine h100-sxm5");
    expect_golden("tiles-matmul", "tiles matmul.nk --machine h100-sxm5");
    expect_golden("layout-swizzled", "layout 'Sw<2,0,2> o (4,8):(8,1)'");
    expect_golden("sweep-attention", "sweep attention_bf16.nk --machine h100-sxm5,h200 --sweep q=x=1024..8192");
}

TEST(Pictures, DifferByMoreThanAHair) {
    EXPECT_EQ(difference("<a x=\"12.25\"/>", "<a x=\"12.26\"/>"), "");
    EXPECT_NE(difference("<a x=\"12.25\"/>", "<a x=\"13\"/>"), "");
    EXPECT_NE(difference("<a/>", "<b/>"), "");
    EXPECT_NE(difference("<a/>", "<a/> "), "");
}

TEST_F(Charts, ATraceIsJson) {
    const auto trace = parsed(chart("overlap --format trace " + figure_34));
    EXPECT_EQ(trace["otherData"]["schema"], "napkin.trace/2");
    EXPECT_EQ(trace["otherData"]["clock_hz"], 1.83e9);
    EXPECT_GT(trace["traceEvents"].size(), 20U);
}

TEST_F(Charts, GoToAFile) {
    const Outcome o = tool("chart layout '(4,8):(8,1)' -o l.svg");
    EXPECT_EQ(o.code, 0) << o.err;
    EXPECT_EQ(o.out, "");
    EXPECT_EQ(read("l.svg").substr(0, 5), "<?xml");
    const Outcome measured = tool("chart measured runs.json -o m.svg",
                                  "printf '[{\"predicted_seconds\": 1, \"seconds\": 2}]' > runs.json &&");
    EXPECT_EQ(measured.code, 0) << measured.err;
}

TEST_F(Charts, SayWhatIsWrong) {
    expect_error("overlab attention.nk", 2, "did you mean overlap?");
    expect_error("overlap", 2, "FILE is a diagram");
    expect_error("hierarchy attention.nk", 2, "draws a machine");
    expect_error("overlap nowhere.nk", 1, "no-such-file");
    expect_error("overlap attention.nk --machine h100", 1, "unknown-machine");
    expect_error("overlap attention.nk --machine generic-cpu", 1, "not-a-gpu");
    expect_error("overlap elu_chain.nk --machine h100-sxm5", 1, "no-stream");
    expect_error("configuration attention.nk --machine h100-sxm5 --kernel Z", 1, "unknown-kernel");
    expect_error("tiles attention.nk --machine h100-sxm5 --set z=3", 1, "unknown-axis");
    expect_error("layout '(4,8'", 1, "layout-syntax");
    expect_error("layout '(1024,1024):(1,1024)'", 1, "too-large");
    expect_error("sweep attention.nk", 2, "--sweep d=32..512");
    expect_error("sweep attention.nk --sweep d=", 2, "bad-sweep");
    expect_error("measured attention.nk", 1, "not-a-measurement");
    expect_error("roofline attention.nk --format trace", 2, "only of chart overlap");
    expect_error("roofline --machine h200 -o /nowhere/a.svg", 1, "unwritable-file");
}

class Reports : public ToolTest {
protected:
    /// Without an assembler: what a page has is planned, and compiling its many plans takes a minute.
    [[nodiscard]] Outcome report(const std::string& arguments) const {
        return tool("report " + arguments, "NAPKIN_NVRTC=/nowhere", "", napkin::in_sources("examples"));
    }
};

TEST_F(Reports, StandByThemselves) {
    const Outcome o = report(figure_34 + " --wasm none --measured ../bench/results/2026-11-26-attention-gpu.json");
    ASSERT_EQ(o.code, 0) << o.err;
    for (const char* part :
         {"<!DOCTYPE html>", "default-src &#39;none&#39;", "Table 1: configuration", "Table 3: throughput",
          "1319 TFLOP/s", "<math", "A grid of settings", "id=\"measured\"", "not a kernel&#39;s"})
        EXPECT_NE(o.out.find(part), std::string::npos) << part;
    for (const char* part :
         {"http://www.w3.org/2000/svg\" href", "src=", "<link", "@import", "url(", "<img", "onload", " style=\""})
        EXPECT_EQ(o.out.find(part), std::string::npos) << part;
    EXPECT_LT(o.out.size(), 3'000'000U);
    // The emitted source writes units as C++ does.
    EXPECT_EQ(figure_at_its_unit(o.out.substr(0, o.out.find("<section id=\"source\""))), "");
    EXPECT_EQ(figure_at_its_unit("at 12 TB/s or 3.35TB/s"), "at 12 TB/s or 3.35TB/s");
    EXPECT_EQ(o.out, report(figure_34 + " --wasm none --measured ../bench/results/2026-11-26-attention-gpu.json").out);
}

TEST_F(Reports, OfLongDerivationsAreNoLarger) {
    const Outcome o = report("cosine_attention.nk --machine generic-cpu --wasm none");
    ASSERT_EQ(o.code, 0) << o.err;
    EXPECT_LT(o.out.size(), 3'000'000U);
    EXPECT_NE(o.out.find("Not drawn here: napkin draw --step "), std::string::npos);
}

/// Four results of wires that cross, with a core of the size that one has: what there is no room for is named.
TEST_F(Reports, StayBelowThreeMegabytes) {
    write("cross.nk", R"(cross(A[a, b], B[b, c], C[c, d], D[d, a]) -> X[a, c], Y[b, d], Z[a, d], W[c, b]
    P[a, c] = sum(b) A[a, b] * B[b, c]
    Q[b, d] = sum(c) B[b, c] * C[c, d]
    R[c, a] = sum(d) C[c, d] * D[d, a]
    S[d, b] = sum(a) D[d, a] * A[a, b]
    T[a, c] = P[a, c] + R[c, a]
    U[b, d] = Q[b, d] * S[d, b]
    X[a, c] = exp(T[a, c])
    Y[b, d] = tanh(U[b, d])
    G[a] = sum(c) T[a, c]
    H[d] = max(b) U[b, d]
    Z[a, d] = G[a] * H[d]
    W[c, b] = sum(a) X[a, c] * A[a, b]
sizes a = b = c = d = 256
)");
    write("core.wasm.gz", "\x1f\x8b" + std::string(1'100'000, 'x'));
    const auto left_out = [&](const std::string& core) {
        const Outcome o = report(path("cross.nk").string() + " --machine h100-sxm5 --wasm " + core);
        EXPECT_EQ(o.code, 0) << o.err;
        EXPECT_LT(o.out.size(), 3'000'000U) << core;
        int count = 0;
        const std::string said = "Not drawn here";
        for (std::size_t p = o.out.find(said); p != std::string::npos; p = o.out.find(said, p + 1)) ++count;
        return count;
    };
    EXPECT_GT(left_out(path("core.wasm.gz").string()), left_out("none"));
}

TEST_F(Reports, ShowThePlanOfAMachine) {
    const Outcome o = report("attention_bf16.nk --diagram attention --machine h100-sxm5 --wasm none");
    ASSERT_EQ(o.code, 0) << o.err;
    for (const char* part : {"Choices and their reasons", "The whole schedule", "The kernels&#39; source", "overlap",
                             "wgmma", "What the plan&#39;s kernels have.", "kernel-0-overlap", "Expected "})
        EXPECT_NE(o.out.find(part), std::string::npos) << part;
    // Two streams in one kernel.
    const Outcome two = report("softmax.nk --machine h100-sxm5 --wasm none");
    ASSERT_EQ(two.code, 0) << two.err;
    EXPECT_NE(two.out.find("Choices and their reasons"), std::string::npos);
    const Outcome cpu = report("layernorm.nk --machine generic-cpu --wasm none");
    ASSERT_EQ(cpu.code, 0) << cpu.err;
    EXPECT_NE(cpu.out.find("No configuration: the steps assign work to the threads of a GPU"), std::string::npos);
}

/// A page gives the call that prints the same of another setting, with what its own call says beside sizes and machine.
TEST_F(Reports, NameTheCallOfAnotherSetting) {
    std::filesystem::copy(napkin::source_dir() / "examples/attention_bf16.nk", path("a $b.nk"));
    const Outcome o = report("'" + path("a $b.nk").string() +
                             "' --diagram attention --group q=64 --stream x --machine h100-sxm5 --wasm none");
    ASSERT_EQ(o.code, 0) << o.err;
    EXPECT_NE(o.out.find("a $b.nk&#39; --diagram attention --group q=64 --stream x\""), std::string::npos);
    EXPECT_NE(o.out.find("data-command=\"napkin emit &#39;/"), std::string::npos);
}

TEST_F(Reports, SayWhatIsWrong) {
    const auto expect_error = [&](const std::string& arguments, int code, const std::string& part) {
        const Outcome o = report(arguments);
        EXPECT_EQ(o.code, code) << arguments << o.err;
        EXPECT_NE(o.err.find(part), std::string::npos) << o.err;
        EXPECT_EQ(o.out, "");
    };
    expect_error("nowhere.nk", 1, "no-such-file");
    expect_error("attention.nk --machine h100", 1, "unknown-machine");
    expect_error("attention.nk --set q=-1 --machine h100-sxm5", 2, "whole size of at least 0");
    expect_error("softmax.nk --machine h100-sxm5 --wasm attention.nk", 1, "not-a-core");
    expect_error("softmax.nk --machine h100-sxm5 --wasm /nowhere", 3, "unreadable-file");
    expect_error("softmax.nk --machine h100-sxm5 --measured attention.nk", 1, "not-a-measurement");
    expect_error("softmax.nk --machine h100-sxm5 --wasm none -o /nowhere/a.html", 1, "unwritable-file");
}

}  // namespace
