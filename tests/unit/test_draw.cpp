// Drawings of all examples: whatever is in a program is in its picture, nothing stands on anything else, and names stay
// text.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "derive/derive.hpp"
#include "draw/box_text.hpp"
#include "draw/diagram_picture.hpp"
#include "draw/drawings.hpp"
#include "draw/picture_json.hpp"
#include "draw/readings.hpp"
#include "draw/seen.hpp"
#include "support/examples.hpp"
#include "support/json.hpp"
#include "support/parsed.hpp"
#include "support/ranges.hpp"

namespace napkin::draw {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;

const std::string attention = R"(attention(Q[q, k], K[x, k], V[x, d]) -> O[q, d]
    S[q, x] = sum(k) Q[q, k] * K[x, k]
    P[q, x] = softmax(x) S[q, x] * k^-0.5
    O[q, d] = sum(x) P[q, x] * V[x, d]
)";

Drawing drawn(const std::string& text, const std::string& step) {
    const Derived derived = derived_from(text);
    return drawing_of({derived.source, &derived, nullptr, "memory", {}}, step);
}

/// Lines in boxes that are too long or too many, and names of formulas that the picture does not explain.
std::vector<std::string> long_boxes(const Picture& picture) {
    std::vector<std::string> out;
    for (const PlacedBox& box : picture.boxes) {
        const auto lines = std::count_if(picture.texts.begin(), picture.texts.end(), [&](const PlacedText& text) {
            return text.role == TextRole::operation && text.x > box.x && text.x < box.x + box.width && text.y > box.y &&
                   text.y < box.y + box.height;
        });
        if (lines > static_cast<std::ptrdiff_t>(most_box_lines)) out.push_back("many lines of " + box.statement);
    }
    for (const PlacedText& text : picture.texts) {
        if (text.role != TextRole::operation) continue;
        const std::string plain = plain_text(text.label);
        if (text.width() > box_text_width || svg::characters(plain).size() > 40) out.push_back(plain);
        if (plain.starts_with("f_") && none_of(picture.texts, [&](const PlacedText& other) {
                return plain_text(other.label).starts_with(plain + ": ");
            }))
            out.push_back(plain + " is not explained");
    }
    return out;
}

std::vector<std::string> shapes(const Circuit& circuit) {
    std::vector<std::string> out;
    for (const Operation& op : circuit.operations) out.emplace_back(name(op.shape));
    return out;
}

std::vector<std::string> labels(const Value& value) {
    std::vector<std::string> out;
    for (const Wire& wire : value.wires) out.push_back(plain_text(wire.label));
    return out;
}

const Value& value_of(const Circuit& circuit, const std::string& name, int level) {
    for (const Value& value : circuit.values)
        if (value.name == name && value.level == level) return value;
    throw std::runtime_error("no value " + name);
}

TEST(Draw, NothingStandsOnAnythingElseInAnyStepOfAnExample) {
    for (const ExampleDiagram& example : example_diagrams()) {
        const auto derived = derive(example.diagram);
        ASSERT_TRUE(derived.ok()) << example.name;
        const Subject subject{example.diagram, &*derived, nullptr, "memory", {}};
        for (const StepName& step : step_names(subject)) {
            // Narrow pages break pictures in more places.
            const double width = step.name == "pseudocode" ? 400 : 960;
            const Picture picture = picture_of(drawing_of(subject, step.name), {width});
            EXPECT_THAT(faults_of(picture), IsEmpty()) << example.name << ", step " << step.name << ", width " << width;
            EXPECT_THAT(long_boxes(picture), IsEmpty()) << example.name << ", step " << step.name;
        }
    }
}

TEST(Draw, FaultsAreFound) {
    Picture picture = picture_of(drawn(attention, "two-level"));
    ASSERT_THAT(faults_of(picture), IsEmpty());
    Picture on_text = picture;
    on_text.texts.push_back(on_text.texts.front());
    EXPECT_THAT(faults_of(on_text), Contains(HasSubstr("stands on text")));
    Picture on_box = picture;
    on_box.boxes.push_back(on_box.boxes.front());
    EXPECT_THAT(faults_of(on_box), Contains(HasSubstr("stands on box")));
    Picture on_wire = picture;
    on_wire.wires.push_back(on_wire.wires.front());
    EXPECT_THAT(faults_of(on_wire), Contains(HasSubstr("runs on wire")));
    Picture cut_off = picture;
    for (PlacedWire& wire : cut_off.wires)
        if (wire.array == "S") wire.x0 += 40;
    EXPECT_THAT(faults_of(cut_off), Contains(HasSubstr("begins at nothing")));
    Picture outside = picture;
    outside.width = 100;
    EXPECT_THAT(faults_of(outside), Contains(HasSubstr("leaves the picture")));
}

/// Attention with so and so many lines between its two products, as text, without costs.
std::string picture_text(const std::string& between, const std::string& step) {
    Drawing drawing = drawn(
        "f(Q[q, k], K[x, k], V[x, d], B[q, x]) -> O[q, d]\n    S[q, x] = sum(k) Q[q, k] * K[x, k]\n    " + between +
            "\n    O[q, d] = sum(x) P[q, x] * V[x, d]\n",
        step);
    for (Circuit& circuit : drawing.circuits) circuit.notes.clear();
    return to_terminal(picture_of(drawing), false);
}

TEST(Draw, MapsAndMasksAroundACallTellAlgorithmsApart) {
    const std::vector<std::pair<std::string, std::vector<std::string>>> programs = {
        {"P[q, x] = softmax(x) S[q, x]", {}},
        {"P[q, x] = softmax(x) S[q, x] * 0.5", {"S·0.5"}},
        {"P[q, x] = softmax(x) where(x <= q, S[q, x] * 0.5, -inf)", {"S·0.5", "mask: x ≤ q"}},
        {"P[q, x] = softmax(x) where(x <= q and q - x < 256, S[q, x] * 0.5, -inf)", {"mask: x ≤ q", "q − x < 256"}},
        {"P[q, x] = softmax(x) 30 * tanh(S[q, x] / 30)", {"30·tanh(S / 30)"}},
        {"P[q, x] = softmax(x) S[q, x] + B[q, x]", {"S + B"}},
        {"W[q, x] = softmax(x) S[q, x]\n    P[q, x] = where(x <= q, W[q, x], 0)", {"where(x ≤ q, W, 0)"}},
        {"P[q, x] = 1 - tanh(softmax(x) S[q, x])", {"tanh("}}};
    for (const std::string step : {"0", "two-level", "whole", "pseudocode"})
        for (std::size_t i = 0; i < programs.size(); ++i) {
            const std::string text = picture_text(programs[i].first, step);
            // States hold what the stream keeps, so that a map may stand within one of their formulas there.
            if (step != "pseudocode") {
                for (const std::string& part : programs[i].second) EXPECT_THAT(text, HasSubstr(part)) << step;
            }
            for (std::size_t j = 0; j < i; ++j)
                EXPECT_NE(text, picture_text(programs[j].first, step))
                    << step << ": " << programs[i].first << " and " << programs[j].first;
        }
}

TEST(Draw, ExamplesShowTheirMasksAndMaps) {
    const std::map<std::string, std::vector<std::string>> wanted = {
        {"causal", {"mask: x ≤ q"}}, {"sliding_window", {"mask: x ≤ q", "q − x < 256"}},
        {"softcap", {"tanh"}},       {"attention", {"S·k^−0.5"}},
        {"attention_bias", {"+ B"}}, {"alibi", {"mask: x ≤ q", "q − x"}}};
    std::map<std::string, std::string> seen;
    for (const ExampleDiagram& example : example_diagrams()) {
        const auto found = wanted.find(example.name);
        if (found == wanted.end()) continue;
        const auto derived = derive(example.diagram);
        ASSERT_TRUE(derived.ok()) << example.name;
        for (const std::string step : {"0", "two-level", "pseudocode"}) {
            Drawing drawing = drawing_of({example.diagram, &*derived, nullptr, "memory", {}}, step);
            const std::string text = to_terminal(picture_of(drawing), false);
            for (const std::string& part : found->second)
                EXPECT_THAT(text, HasSubstr(part)) << example.name << ", step " << step;
            for (const auto& [other, its] : seen) EXPECT_NE(text, its) << example.name << " and " << other;
            seen[example.name + " " + step] = text;
        }
    }
    EXPECT_THAT(seen, SizeIs(3 * wanted.size()));
}

TEST(Draw, LongFormulasAreWrappedOrNamed) {
    std::string sum = "X[i]";
    for (int n = 1; n < 6; ++n) sum += " * (X[i] + " + std::to_string(n) + ")";
    const Picture wrapped = picture_of(drawn("f(X[i]) -> Y[i]\n    Y[i] = " + sum + "\n", "0"));
    EXPECT_THAT(long_boxes(wrapped), IsEmpty());
    EXPECT_THAT(to_terminal(wrapped, false), Not(HasSubstr("f_1")));
    for (int n = 6; n < 30; ++n) sum += " * (X[i] + " + std::to_string(n) + ")";
    const Picture named = picture_of(drawn("f(X[i]) -> Y[i]\n    Y[i] = " + sum + "\n", "0"));
    EXPECT_THAT(long_boxes(named), IsEmpty());
    EXPECT_THAT(to_terminal(named, false), HasSubstr("f_1: Y[i] = "));
    Picture unexplained = named;
    std::erase_if(unexplained.texts, [](const PlacedText& text) { return text.role == TextRole::note; });
    EXPECT_THAT(long_boxes(unexplained), Contains(HasSubstr("not explained")));
}

TEST(Draw, AMarkHasOneMeaning) {
    const auto marks = [](const std::string& text) {
        std::map<Mark, std::vector<std::string>> out;
        for (const PlacedMark& mark : picture_of(drawn(text, "equations")).marks) out[mark.mark].push_back(mark.axis);
        return out;
    };
    auto reduced = marks("f(X[i, j]) -> Y[i]\n    Y[i] = max(j) X[i, j]\n");
    EXPECT_THAT(reduced[Mark::end], ElementsAre("j"));
    EXPECT_THAT(reduced[Mark::scalar], IsEmpty());
    EXPECT_THAT(reduced[Mark::place], IsEmpty());
    auto scaled = marks("f(X[i], s) -> Y[i]\n    Y[i] = X[i] * s + 1\n");
    EXPECT_THAT(scaled[Mark::end], IsEmpty());
    EXPECT_THAT(scaled[Mark::scalar], SizeIs(1));
    auto shifted = marks("f(X[i], W[j]) -> Y[i]\n    Y[i] = sum(j) X[i + j] * W[j]\nsizes i = 8, j = 3\n");
    EXPECT_THAT(shifted[Mark::place], SizeIs(1));
    EXPECT_THAT(shifted[Mark::end], ElementsAre("j"));
}

TEST(Draw, ArraysThatASystemDoesNotUseHaveOneWire) {
    const auto carried = [](double width) {
        std::vector<std::string> out;
        for (const PlacedText& text : picture_of(drawn(attention, "pseudocode"), {width}).texts)
            if (text.role == TextRole::wire && plain_text(text.label).starts_with(text.array + ": "))
                out.push_back(plain_text(text.label));
        return out;
    };
    EXPECT_THAT(carried(400), AllOf(Contains("V: x×d"), Contains("O_acc: g_q×d")));
    EXPECT_THAT(carried(100000), IsEmpty());
    EXPECT_LE(picture_of(drawn(attention, "pseudocode"), {960}).width, 960);
}

TEST(Draw, HighPicturesAreFoldedIntoColumns) {
    const Drawing drawing = drawn(attention, "pseudocode");
    const Picture whole = picture_of(drawing), folded = picture_of(drawing, {960, 500});
    ASSERT_GT(whole.height, 1000);
    EXPECT_THAT(faults_of(folded), IsEmpty());
    EXPECT_GT(folded.columns.size(), 1U);
    EXPECT_LE(folded.height, 500);
    EXPECT_EQ(folded.texts.size(), whole.texts.size());
    EXPECT_EQ(folded.wires.size(), whole.wires.size());
    EXPECT_EQ(picture_of(drawing, {960, 5000}), whole);
}

TEST(Draw, ADefinitionIsDrawnFromWhatItsOperationsAre) {
    const Circuit circuit = drawn(attention, "0").circuits.at(0);
    EXPECT_THAT(shapes(circuit), ElementsAre("contraction", "box", "along", "contraction"));
    EXPECT_EQ(plain_text(circuit.operations[1].label), "S·k^−0.5");
    EXPECT_EQ(plain_text(circuit.operations[2].label), "softmax");
    EXPECT_THAT(circuit.operations[2].description, HasSubstr("P_Z[q] = sum(x)"));
    // The same operation under another name is the same sign.
    const Circuit other = drawn(
                              "mine(X[a]) -> Y[a]\n    M = max(a) X[a]\n    E[a] = X[a] - M\n    Z = sum(a) E[a]\n"
                              "    Y[a] = E[a] / Z\n\nf(X[i, j]) -> Y[i, j]\n    Y[i, j] = mine(j) X[i, j]\n",
                              "0")
                              .circuits.at(0);
    EXPECT_THAT(shapes(other), ElementsAre("along"));
    EXPECT_EQ(plain_text(other.operations[0].label), "mine");
}

TEST(Draw, TwoLevelsHaveGroupsStreamsAndWhatIsMaintained) {
    const Circuit circuit = drawn(attention, "two-level").circuits.at(0);
    EXPECT_THAT(shapes(circuit), ElementsAre("transfer", "transfer", "transfer", "start", "contraction", "box", "along",
                                             "contraction", "transfer"));
    EXPECT_THAT(labels(value_of(circuit, "Q", 1)), ElementsAre("g_q", "k"));
    EXPECT_THAT(labels(value_of(circuit, "K", 1)), ElementsAre("s_x", "k"));
    EXPECT_THAT(labels(value_of(circuit, "K", 0)), ElementsAre("x", "k"));
    int maintained = 0;
    for (const Value& value : circuit.values) maintained += value.maintained ? 1 : 0;
    EXPECT_EQ(maintained, 1);
    // A contraction joins its two wires.
    const Picture picture = picture_of(drawn(attention, "two-level"));
    ASSERT_THAT(picture.cups, SizeIs(2));
    EXPECT_EQ(picture.cups[0].axis, "k");
    EXPECT_EQ(picture.cups[1].axis, "x");
}

TEST(Draw, WiresOfAttentionRunStraight) {
    // Weaves pass at one height from the first column to the last, and nothing is crossed.
    const Picture picture = picture_of(drawn(attention, "two-level"));
    for (const PlacedWire& wire : picture.wires) EXPECT_EQ(wire.y0, wire.y1) << wire.axis << " of " << wire.array;
}

TEST(Draw, PseudocodeHasTheLoopAndItsStates) {
    const Circuit circuit = drawn(attention, "pseudocode").circuits.at(0);
    ASSERT_THAT(circuit.brackets, SizeIs(1));
    EXPECT_EQ(plain_text(circuit.brackets[0].label), "x by s_x");
    EXPECT_THAT(circuit.brackets[0].maintained, SizeIs(3));
    const Drawing twice = drawn(attention, "expansion");
    ASSERT_THAT(twice.circuits, SizeIs(2));
    EXPECT_EQ(twice.relation, "≡");
    EXPECT_GT(twice.circuits[1].operations.size(), circuit.operations.size());
}

TEST(Draw, EveryPartSaysWhatItStandsFor) {
    const std::string text = svg::to_inline_text(to_svg(picture_of(drawn(attention, "two-level"))));
    for (const std::string part : {R"(data-axis="q")", R"(data-axis="k")", R"(data-array="V")", R"(data-statement="S")",
                                   R"(role="img")", "<title", "<desc", "S[q, x] = sum(k) Q[q, k] * K[x, k]"})
        EXPECT_THAT(text, HasSubstr(part));
}

TEST(Draw, NamesAreText) {
    // The language has no such names; a picture must not depend on that.
    Diagram diagram = parsed("f(X[a, b], W[b]) -> Y[a]\n    Y[a] = sum(b) X[a, b] * W[b]\n");
    diagram.name = "]]></svg><script>alert(1)</script>";
    diagram.axes[0].name = "<script>alert(\"a\")</script>";
    diagram.axes[1].name = "s_k \u202E\x01\xff `M` $x_1$ \\end{tikzpicture}";
    diagram.arrays[0].name = "\" onload=\"alert(1)";
    const Drawing drawing = drawing_of({diagram, nullptr, nullptr, "memory", {}}, "0");
    const Picture picture = picture_of(drawing);
    EXPECT_THAT(faults_of(picture), IsEmpty());
    const std::string text = svg::to_text(to_svg(picture));
    EXPECT_THAT(text, Not(HasSubstr("<script")));
    EXPECT_THAT(text, Not(HasSubstr("\" onload")));
    EXPECT_THAT(text, Not(HasSubstr("\u202E")));
    EXPECT_THAT(text, Not(HasSubstr("\x01")));
    EXPECT_THAT(text, Not(HasSubstr("\xff")));
    const std::string tikz = to_tikz(picture);
    EXPECT_EQ(tikz.find("\\end{tikzpicture}"), tikz.rfind("\\end{tikzpicture}"));
    EXPECT_THAT(to_dot(drawing), HasSubstr("\\\" onload=\\\"alert(1)"));
    EXPECT_THAT(to_terminal(picture, false), Not(HasSubstr("\x01")));
}

/// What stops TeX, or overflows what it stands in: found by compiling every figure of the gallery with pdfTeX.
std::vector<std::string> tex_faults(std::string tikz) {
    std::vector<std::string> out;
    // TeX reads nothing of a comment.
    if (tikz.starts_with("% ")) tikz.erase(0, tikz.find('\n'));
    int depth = 0;
    for (std::size_t i = 0; i < tikz.size(); ++i) {
        const bool is_escaped = i > 0 && tikz[i - 1] == '\\';
        if (tikz[i] == '{' && !is_escaped) ++depth;
        if (tikz[i] == '}' && !is_escaped && --depth < 0) out.emplace_back("a brace too many");
        if ((tikz[i] == '$' || tikz[i] == '#' || tikz[i] == '&') && !is_escaped)
            out.push_back(std::string("a bare ") + tikz[i]);
    }
    if (depth != 0) out.emplace_back("a brace is left open");
    for (const std::string& c : svg::characters(tikz)) {
        // Letters that inputenc and fontenc have: Latin-1's and Latin Extended-A's, two bytes from C3 80 to C5 BF.
        const auto first = static_cast<unsigned char>(c[0]);
        if (first >= 0x80 && !(c.size() == 2 && first >= 0xC3 && first <= 0xC5))
            out.push_back("a character that TeX has not: " + c);
    }
    if (tikz.find("\\footnotesize") != std::string::npos) out.emplace_back("a size that is not the layout's");
    return out;
}

TEST(Draw, TikzIsWhatTexReads) {
    for (const ExampleDiagram& example : example_diagrams()) {
        const auto derived = derive(example.diagram);
        ASSERT_TRUE(derived.ok()) << example.name;
        const Subject subject{example.diagram, &*derived, nullptr, "memory", {"sizes: q ≤ 4096 → g_q⁻¹"}};
        for (const char* step : {"0", "two-level", "pseudocode"})
            EXPECT_THAT(tex_faults(to_tikz(picture_of(drawing_of(subject, step)))), IsEmpty())
                << example.name << ", step " << step;
    }
    Diagram diagram = parsed("f(X[a, b]) -> Y[a]\n    Y[a] = sum(b) X[a, b]\n");
    diagram.name = "50% of \u2603 \xff", diagram.axes[0].name = "é\u03b1\u2603$#&\"{";
    EXPECT_THAT(tex_faults(to_tikz(picture_of(drawing_of({diagram, nullptr, nullptr, "memory", {}}, "0")))), IsEmpty());
    for (const char* bad : {"{", "}", "$x$", "a # b", "g⁻¹", "≤", "\\footnotesize"})
        EXPECT_THAT(tex_faults(bad), Not(IsEmpty())) << bad;
    EXPECT_THAT(tex_faults("\\{ \\$ é"), IsEmpty());
}

TEST(Draw, TextsOfTikzAreAsLargeAsTheirRoom) {
    const std::string tikz = to_tikz(picture_of(drawn(attention, "pseudocode")));
    // 11 pixels of a name are 0.22 cm, which are 6.26 points; of a caption 14 are 7.97.
    EXPECT_THAT(tikz, HasSubstr("\\fontsize{6.26}{7.51}\\selectfont"));
    EXPECT_THAT(tikz, HasSubstr("\\sffamily\\bfseries\\fontsize{7.97}"));
}

TEST(Draw, NotesHaveTheSizesOfThePicture) {
    Drawing drawing = drawn(attention, "two-level");
    drawing.circuits.back().notes = {"N_g = q·g_q⁻¹, H* = a·M^(-1/2), P_M at S"};
    const Picture picture = picture_of(drawing);
    const svg::Label& note = picture.texts.back().label;
    EXPECT_EQ(plain_text(note), "N_g = q·g_q⁻¹, H* = a·M^(−1/2), P_M at S");
    int subs = 0, supers = 0;
    for (const svg::Span& span : note) {
        subs += span.shift == svg::Span::Shift::sub ? 1 : 0;
        supers += span.shift == svg::Span::Shift::super ? 1 : 0;
    }
    EXPECT_EQ(subs, 2);
    EXPECT_EQ(supers, 1);
    // As wide as the page at most.
    drawing.circuits.back().notes = {std::string("sizes:") + [] {
        std::string out;
        for (int i = 0; i < 60; ++i) out += " axis_" + std::to_string(i) + " = 4096,";
        return out;
    }()};
    EXPECT_LE(picture_of(drawing).width, 960);
}

TEST(Draw, NotesSayWhatTheLevelsTakeInLetters) {
    const std::string rows =
        "f(S[q, x], V[x, d]) -> O[q, d]\n    P[q, x] = softmax(x) S[q, x]\n"
        "    O[q, d] = sum(x) P[q, x] * V[x, d]\n";
    EXPECT_THAT(drawn(rows, "whole").circuits.back().notes,
                ElementsAre("H = q·d + x·d + q·x: the arrays that change colour", "M ≥ x·d + q·x: the column of S, V",
                            "M ≥ q·d: the column of O"));
    const std::string product = "f(A[a, b], B[b, c]) -> C[a, c]\n    C[a, c] = sum(b) A[a, b] * B[b, c]\n";
    EXPECT_THAT(drawn(product, "cached").circuits.back().notes,
                ElementsAre(HasSubstr("N: cores below one cache"), HasSubstr("g_a·h_a⁻¹·g_c·h_c⁻¹ ≤ N"),
                            "H* = a·c + 2·a·b·c·M^(-1/2)·N^(-1/2)  into the cache",
                            "H* = a·c + 2·a·b·c·M^(-1/2)  into the cores' memory"));
    EXPECT_THAT(drawn(attention, "cross-transfer").circuits.back().notes,
                Contains(AllOf(HasSubstr(" - 2·k·q·x·d·M⁻¹·N⁻¹"), HasSubstr("from core to core"))));
}

TEST(Draw, LongNamesAreCutAndKeptInTheData) {
    Diagram diagram = parsed("f(X[a, b], W[b]) -> Y[a]\n    Y[a] = sum(b) exp(X[a, b] * W[b])\n");
    const std::string name(500, 'm');
    diagram.axes[0].name = name, diagram.arrays[0].name = "A" + name;
    const Picture picture = picture_of(drawing_of({diagram, nullptr, nullptr, "memory", {}}, "0"));
    EXPECT_THAT(faults_of(picture), IsEmpty());
    EXPECT_LT(picture.width, 960);
    EXPECT_THAT(svg::to_text(to_svg(picture)), HasSubstr("data-axis=\"" + name + "\""));
}

/// A chain of so many operations, each of the one before and of the input.
Picture chain_picture(int operations) {
    std::string text = "chain(X[a, b]) -> Y[a, b]\n    T0[a, b] = exp(X[a, b])\n";
    for (int i = 1; i < operations - 1; ++i)
        text += "    T" + std::to_string(i) + "[a, b] = T" + std::to_string(i - 1) + "[a, b] * 0.5 + X[a, b]\n";
    text += "    Y[a, b] = T" + std::to_string(operations - 2) + "[a, b] - X[a, b]\n";
    const Diagram diagram = parsed(text);
    return picture_of(drawing_of({diagram, nullptr, nullptr, "memory", {}}, "0"));
}

// How long it takes is bench/draw_time.cpp's.
TEST(Draw, LargeDiagramsAreDrawnWhole) {
    const Picture hundred = chain_picture(100), picture = chain_picture(200);
    EXPECT_THAT(faults_of(picture), IsEmpty());
    EXPECT_THAT(svg::to_text(to_svg(picture)), HasSubstr("data-statement=\"T198\""));
    EXPECT_EQ(picture.boxes.size(), 200U);
    EXPECT_LE(picture.width, 960);
    // Twice as many operations are twice as much to draw: a picture does not grow with what passes by.
    EXPECT_LE(picture.wires.size(), 2.2 * static_cast<double>(hundred.wires.size()));
    EXPECT_LE(picture.height, 2.5 * hundred.height);
}

TEST(Draw, LabelsAreBrief) {
    const Diagram d = parsed("f(X[i, j], M[i]) -> Y[i, j]\n    Y[i, j] = exp(X[i, j] - M[i])\n");
    EXPECT_EQ(brief(d.equations[0].body, d.names()), "exp(X − M)");
    const Diagram masked = parsed(
        "f(X[i, j]) -> Y[i, j]\n    Y[i, j] = where(j <= i and i - j < 3, X[i, j] * 2, -inf)\n");
    EXPECT_EQ(brief(masked.equations[0].body, masked.names()), "X·2, mask: j ≤ i and i − j < 3");
    const svg::Label label = formula_label("S·k^-0.5 + 1");
    ASSERT_THAT(label, SizeIs(3));
    EXPECT_EQ(label[1].text, "−0.5");
    EXPECT_EQ(label[1].shift, svg::Span::Shift::super);
}

TEST(Draw, TheDataHasEverything) {
    const Drawing drawing = drawn(attention, "two-level");
    const auto json = drawing_json(drawing, picture_of(drawing));
    EXPECT_EQ(json["circuits"][0]["operations"][4]["consumed"], nlohmann::ordered_json::array({"k"}));
    EXPECT_GT(json["picture"]["wires"].size(), 10U);
}

}  // namespace
}  // namespace napkin::draw
