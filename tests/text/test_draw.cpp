// `napkin draw`: tests/text/draw/<name>.<format>, and the gallery. NAPKIN_UPDATE_GOLDEN=1 rewrites the former; napkin
// draw docs/gallery/figures.json the latter.
#include <gmock/gmock.h>

#include "draw/compare.hpp"
#include "support/paths.hpp"
#include "tool.hpp"

namespace {

using testing::HasSubstr;
using testing::Not;

class DrawCommand : public ToolTest {
protected:
    [[nodiscard]] static std::filesystem::path source(const std::string& path) { return napkin::source_dir() / path; }

    /// Pictures may differ by what nobody sees, other formats not at all.
    static void expect_golden(const std::string& name, const std::string& text) {
        const std::filesystem::path golden = source("tests/text/draw/" + name);
        if (std::getenv("NAPKIN_UPDATE_GOLDEN")) {
            std::filesystem::create_directories(golden.parent_path());
            std::ofstream(golden, std::ios::binary) << text;
        }
        std::ifstream file(golden, std::ios::binary);
        const std::string kept{std::istreambuf_iterator<char>(file), {}};
        EXPECT_EQ(napkin::draw::first_difference(text, kept, name.ends_with(".svg") ? 0.5 : 0), "") << name;
    }
    [[nodiscard]] Outcome draw(const std::string& arguments) const {
        return tool("draw " + arguments, "", "", napkin::in_sources("examples"));
    }
};

TEST_F(DrawCommand, InEveryFormat) {
    for (const std::string format : {"text", "tikz", "dot", "svg"}) {
        const Outcome o = draw("attention.nk --machine h100-sxm5 --format " + format);
        ASSERT_EQ(o.code, 0) << o.err;
        expect_golden("attention." + (format == "text"   ? std::string("txt")
                                      : format == "tikz" ? std::string("tex")
                                                         : format),
                      o.out);
    }
    const Outcome steps = draw("softmax.nk --machine h100-sxm5 --step all");
    ASSERT_EQ(steps.code, 0) << steps.err;
    expect_golden("softmax_steps.txt", steps.out);
    const Outcome program = draw("matmul.nk --machine h100-sxm5 --step pseudocode");
    ASSERT_EQ(program.code, 0) << program.err;
    expect_golden("matmul_pseudocode.txt", program.out);
}

TEST_F(DrawCommand, TheGalleryIsWhatIsDrawn) {
    const Outcome o = tool("draw docs/gallery/figures.json --check", "", "", napkin::source_dir().string());
    EXPECT_EQ(o.code, 0) << o.err;
}

TEST_F(DrawCommand, AGalleryThatDiffersIsSeen) {
    std::filesystem::copy(source("docs/gallery/nk"), path("nk"), std::filesystem::copy_options::recursive);
    write("figures.json",
          R"({"figures": [{"number": "1", "name": "a", "caption": "c", "parts": [{"file": "nk/weaving.nk", "step": "0"}]}]})");
    EXPECT_EQ(tool("draw figures.json").code, 0);
    EXPECT_EQ(tool("draw figures.json --check").code, 0);
    std::string picture = read("a.svg");
    const std::size_t at = picture.find("x1=\"");
    write("a.svg", picture.substr(0, at + 4) + "9" + picture.substr(at + 4));
    const Outcome moved = tool("draw figures.json --check");
    EXPECT_EQ(moved.code, 1);
    EXPECT_THAT(moved.err, HasSubstr("a.svg: line"));
    // A chart is a figure by itself.
    write("figures.json",
          R"({"figures": [{"number": "7", "name": "h", "caption": "c", "parts": [{"chart": "hierarchy"}]}]})");
    EXPECT_EQ(tool("draw figures.json").code, 0);
    EXPECT_THAT(read("h.svg"), HasSubstr("Hierarchy of h100-sxm5"));
    EXPECT_THAT(read("README.md"), HasSubstr("(h.svg)"));
    std::filesystem::remove(path("h.svg"));
    EXPECT_EQ(tool("draw figures.json --check").code, 1);
    EXPECT_EQ(tool("draw figures.json --format tikz").code, 0);
    EXPECT_FALSE(std::filesystem::exists(path("h.tex")));
    EXPECT_EQ(tool("draw figures.json --format text").code, 2);
    write("figures.json",
          R"({"figures": [{"number": "7", "name": "h", "caption": "c", "parts": [{"chart": "hierarchy"}, {"file": "nk/weaving.nk"}]}]})");
    EXPECT_THAT(tool("draw figures.json").err, HasSubstr("a chart is a figure of its own"));
    write("figures.json", R"({"figures": [{"number": 1}]})");
    EXPECT_EQ(tool("draw figures.json").code, 1);
    write("figures.json", "[");
    const Outcome broken = tool("draw figures.json");
    EXPECT_EQ(broken.code, 1);
    EXPECT_THAT(broken.err, HasSubstr("bad-gallery"));
    EXPECT_EQ(tool("draw '" + source("examples/matmul.nk").string() + "' --check").code, 2);
}

TEST_F(DrawCommand, WritesFiles) {
    const std::string attention = "draw '" + source("examples/attention.nk").string() + "' --machine h100-sxm5 -o ";
    for (const auto& [name, start] : std::vector<std::pair<std::string, std::string>>{
             {"a.svg", "<?xml"}, {"a.tex", "% attention"}, {"a.dot", "digraph"}, {"a.txt", "  "}}) {
        const Outcome o = tool(attention + name);
        EXPECT_EQ(o.code, 0) << o.err;
        EXPECT_EQ(o.out, "");
        EXPECT_TRUE(read(name).starts_with(start)) << name << ": " << read(name).substr(0, 40);
    }
    const Outcome unwritable = tool(attention + "no/such/folder/a.svg");
    EXPECT_EQ(unwritable.code, 1);
    EXPECT_THAT(unwritable.err, HasSubstr("unwritable-file"));
}

TEST_F(DrawCommand, JsonHasThePicturesData) {
    const auto document = parsed(draw("attention.nk --machine h100-sxm5 --json"));
    EXPECT_EQ(document["schema"], "napkin.draw/1");
    EXPECT_EQ(document["step"], "two-level");
    EXPECT_EQ(document["circuits"][0]["values"][3]["wires"][0]["label"], "g_q");
}

TEST_F(DrawCommand, LevelsHaveColoursOnATerminal) {
    const Outcome o = draw("attention.nk --machine h100-sxm5 --color always");
    EXPECT_THAT(o.out, HasSubstr("\033[33m"));
    EXPECT_THAT(o.out, Not(HasSubstr("\uFFFD")));
    std::string plain = o.out;
    for (std::size_t at = plain.find('\033'); at != std::string::npos; at = plain.find('\033'))
        plain.erase(at, plain.find('m', at) - at + 1);
    EXPECT_EQ(plain, draw("attention.nk --machine h100-sxm5").out);
    EXPECT_EQ(o.out.find(" \n"), std::string::npos);
}

TEST_F(DrawCommand, StepsThatAreNotThere) {
    const Outcome unknown = draw("attention.nk --machine h100-sxm5 --step 99");
    EXPECT_EQ(unknown.code, 2);
    EXPECT_THAT(unknown.err, HasSubstr("there is no step `99`: expected 0 to 7, "));
    EXPECT_THAT(unknown.err, HasSubstr("two-level"));
    EXPECT_THAT(unknown.err, HasSubstr("divisors"));
    const Outcome no_gpu = draw("attention.nk --machine generic-cpu --step divisors");
    EXPECT_EQ(no_gpu.code, 1);
    EXPECT_THAT(no_gpu.err, HasSubstr("not-a-gpu"));
    EXPECT_EQ(draw("attention.nk --format gif").code, 2);
    EXPECT_EQ(draw("attention.nk --width 10").code, 2);
    EXPECT_EQ(draw("attenton.nk").code, 1);
}

TEST(CompareDrawings, NumbersMayDifferALittle) {
    using napkin::draw::first_difference;
    EXPECT_EQ(first_difference("<line x=\"1.25\"/>", "<line x=\"1.5\"/>"), "");
    EXPECT_NE(first_difference("<line x=\"1.25\"/>", "<line x=\"2\"/>"), "");
    EXPECT_NE(first_difference("<g class=\"level-1\"/>", "<g class=\"level-2\"/>", 2), "");
    EXPECT_EQ(first_difference("M1 2C3 4 5", "M1.2 2C3 4.1 5"), "");
    EXPECT_NE(first_difference("a b", "a b c"), "");
    EXPECT_NE(first_difference("text x_1", "text x_2", 2), "");
}

}  // namespace
