#include "draw/box_text.hpp"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "support/ranges.hpp"

namespace napkin::draw {
namespace {

constexpr std::string_view mask_sign = "mask: ";

/// What stays together on a line.
struct Piece {
    svg::Label label;
    bool has_blank = false;  ///< before it, where it is not the first of its line
    int rank = 0;            ///< of the place before it: lines rather end where it is less
};
using Pieces = std::vector<Piece>;

struct BreakSign {
    std::string_view sign;
    int rank;
};
/// What binds less is broken first, and what stands in parentheses last.
constexpr std::array break_signs = std::to_array<BreakSign>({{" at ", 0},
                                                             {" and ", 2},
                                                             {" or ", 2},
                                                             {" ≤ ", 3},
                                                             {" ≥ ", 3},
                                                             {" < ", 3},
                                                             {" > ", 3},
                                                             {" = ", 3},
                                                             {" ≠ ", 3},
                                                             {" + ", 4},
                                                             {" − ", 4},
                                                             {" / ", 5},
                                                             {" @ ", 5},
                                                             {" % ", 5},
                                                             {"·", 5}});
constexpr int no_break = -1, rank_of_depth = 10;

/// How well a line ends before this place of a text.
int rank_of_break(std::string_view text, std::size_t i) {
    if (i > 0 && text[i] == ' ' && text[i - 1] == ',') return 1;
    for (const auto& [sign, rank] : break_signs)
        if (text.substr(i).starts_with(sign)) return rank;
    return no_break;
}

Pieces pieces_of(const svg::Label& label) {
    Pieces out(1);
    int depth = 0;
    for (const svg::Span& span : label) {
        std::string text;
        const auto end = [&] {
            if (!text.empty()) out.back().label.push_back({std::exchange(text, {}), span.shift, span.italic});
        };
        for (std::size_t i = 0; i < span.text.size(); ++i) {
            const int rank = span.shift == svg::Span::Shift::base ? rank_of_break(span.text, i) : no_break;
            if (rank != no_break && (!text.empty() || !out.back().label.empty())) {
                end();
                out.push_back({{}, span.text[i] == ' ', rank + rank_of_depth * depth});
                if (span.text[i] == ' ') continue;
            }
            depth += span.text[i] == '(' ? 1 : span.text[i] == ')' ? -1 : 0;
            text += span.text[i];
        }
        end();
    }
    return out;
}

double width_of(const svg::Label& label) { return svg::text_width(label, svg::small_text_size); }

svg::Label joined(svg::Label line, const Pieces& pieces) {
    for (const Piece& piece : pieces) {
        if (piece.has_blank && !line.empty()) line.push_back({" "});
        append(line, piece.label);
    }
    return line;
}

/// Goes on in the last line where all of it fits there, else in lines of its own.
void add_lines(const Pieces& pieces, std::vector<svg::Label>& lines) {
    if (lines.empty()) lines.emplace_back();
    if (svg::Label longer = joined(lines.back(), pieces); width_of(longer) <= box_text_width) {
        lines.back() = std::move(longer);
        return;
    }
    if (svg::Label own = joined({}, pieces); pieces.size() == 1 || width_of(own) <= box_text_width) {
        if (!lines.back().empty()) lines.emplace_back();
        lines.back() = std::move(own);
        return;
    }
    const int rank = std::min_element(pieces.begin() + 1, pieces.end(), [](const Piece& a, const Piece& b) {
                         return a.rank < b.rank;
                     })->rank;
    for (std::size_t begin = 0; begin < pieces.size();) {
        std::size_t end = begin + 1;
        while (end < pieces.size() && pieces[end].rank != rank) ++end;
        add_lines({pieces.begin() + static_cast<std::ptrdiff_t>(begin), pieces.begin() + static_cast<std::ptrdiff_t>(end)},
                  lines);
        begin = end;
    }
}

/// f₁, f₂, …
svg::Label short_name(std::size_t number) { return {{"f"}, {std::to_string(number), svg::Span::Shift::sub}}; }

}  // namespace

std::vector<svg::Label> box_lines(const svg::Label& label) {
    if (label.empty()) return {};
    Pieces pieces = pieces_of(label);
    std::vector<svg::Label> out;
    // A mask has a line of its own, where not all fits into one.
    const auto mask = width_of(label) <= box_text_width ? pieces.end() : find_if(pieces, [](const Piece& piece) {
        return piece.rank < rank_of_depth && !piece.label.empty() && piece.label[0].text.starts_with(mask_sign);
    });
    add_lines({pieces.begin(), mask}, out);
    if (mask != pieces.end()) {
        out.emplace_back();
        add_lines({mask, pieces.end()}, out);
    }
    return out;
}

Circuit with_short_labels(Circuit circuit, std::vector<std::string>& legend) {
    for (Operation& op : circuit.operations) {
        const std::vector<svg::Label> lines = box_lines(op.label);
        if (lines.size() <= most_box_lines &&
            all_of(lines, [](const svg::Label& line) { return width_of(line) <= box_text_width; }))
            continue;
        const auto line_of = [](std::size_t number, const std::string& formula) {
            return svg::plain_text(short_name(number)) + ": " + formula;
        };
        const std::string formula = op.description.empty() ? svg::plain_text(op.label) : op.description;
        std::size_t number = 1;
        while (number <= legend.size() && legend[number - 1] != line_of(number, formula)) ++number;
        if (number > legend.size()) legend.push_back(line_of(number, formula));
        op.label = short_name(number);
    }
    return circuit;
}

}  // namespace napkin::draw
