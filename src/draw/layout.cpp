// Places for one drawing: circuit under circuit, each broken into systems. The system itself is placed in
// place_system.cpp.
#include "draw/diagram_picture.hpp"

#include <fmt/format.h>

#include <cctype>
#include <set>
#include <utility>

#include "draw/place_system.hpp"
#include "support/ids.hpp"
#include "support/ranges.hpp"

namespace napkin::draw {
namespace {

constexpr double margin = 20, line_height = 18, between_systems = 26;

/// Sizes and counts in a line of text as they stand in the picture: g_q with its axis below the line, M^(-1/2) with its
/// power above.
svg::Label note_label(const std::string& text) {
    const auto is_word = [&](std::size_t i) {
        return i < text.size() && (std::isalnum(static_cast<unsigned char>(text[i])) != 0 || text[i] == '_');
    };
    svg::Label out;
    std::string plain;
    const auto add = [&](std::string part, svg::Span::Shift shift) {
        if (!plain.empty()) out.push_back({std::exchange(plain, {})});
        out.push_back({std::move(part), shift});
    };
    for (std::size_t i = 0; i < text.size(); ++i) {
        const bool is_size = is_word(i) && (i == 0 || !is_word(i - 1)) && i + 1 < text.size() && text[i + 1] == '_' &&
                             (std::islower(static_cast<unsigned char>(text[i])) != 0 ||
                              text.compare(i, 3, "N_g") == 0 || text.compare(i, 3, "H_g") == 0);
        if (is_size) {
            std::size_t end = i + 2;
            while (is_word(end)) ++end;
            plain += text[i];
            add(text.substr(i + 2, end - i - 2), svg::Span::Shift::sub);
            i = end - 1;
        } else if (const std::size_t end = text.find(')', i); text.compare(i, 2, "^(") == 0 && end != std::string::npos) {
            std::string power = text.substr(i + 2, end - i - 2);
            if (power.starts_with("-")) power.replace(0, 1, "−");
            add(std::move(power), svg::Span::Shift::super);
            i = end;
        } else {
            plain += text[i];
        }
    }
    if (!plain.empty()) out.push_back({std::move(plain)});
    return out;
}

svg::Label line_label(const std::string& text, TextRole role) {
    return role == TextRole::note ? note_label(text) : svg::Label{{text}};
}

class Layout {
public:
    Layout(const Drawing& drawing, const LayoutOptions& options) : drawing_(drawing), options_(options) {}

    Picture run() {
        picture_.title = drawing_.title;
        y_ = margin;
        for (std::size_t i = 0; i < drawing_.circuits.size(); ++i) {
            if (i > 0) {
                if (!drawing_.relation.empty())
                    line({{drawing_.relation}}, TextRole::relation, drawing_.relation);
                else
                    y_ += line_height;
            }
            add(drawing_.circuits[i]);
        }
        legend();
        for (const Circuit& circuit : drawing_.circuits)
            for (const std::string& note : circuit.notes) lines(note, TextRole::note);
        picture_.width = right_ + margin;
        picture_.height = y_ + margin - 6;
        for (PlacedText& text : picture_.texts)
            if (text.role == TextRole::relation) text.x = picture_.width / 2;
        describe();
        return std::move(picture_);
    }

private:
    void line(const svg::Label& label, TextRole role, const std::string& title) {
        PlacedText text;
        text.x = margin, text.y = y_ + 12, text.label = label, text.role = role,
        text.is_centred = role == TextRole::relation;
        text.title = title;
        right_ = std::max(right_, margin + text.width());
        picture_.texts.push_back(std::move(text));
        y_ += role == TextRole::relation ? line_height + 8 : line_height;
    }

    /// Words of a line that is too long go on in the next.
    void lines(const std::string& text, TextRole role) {
        PlacedText sample;
        sample.role = role;
        std::string current;
        for (std::size_t begin = 0; begin <= text.size();) {
            const std::size_t end = std::min(text.find(' ', begin), text.size());
            const std::string word = text.substr(begin, end - begin);
            sample.label = line_label(current + " " + word, role);
            if (!current.empty() && sample.width() > options_.page_width - 2 * margin) {
                line(line_label(current, role), role, "");
                current.clear();
            }
            current += (current.empty() ? "" : " ") + svg::shortened(word, options_.page_width - 2 * margin, sample.size());
            begin = end + 1;
        }
        if (!current.empty()) line(line_label(current, role), role, "");
    }

    void add(const Circuit& circuit) {
        if (!circuit.caption.empty()) {
            lines(circuit.caption, TextRole::caption);
            y_ += 4;
        }
        const Ordered ordered_circuit = ordered(circuit);
        const std::vector<double> widths = column_widths(ordered_circuit);
        const std::size_t num_data = ordered_circuit.data.size();
        const double room = options_.page_width - 2 * margin;
        for (std::size_t first = 0; first + 1 < num_data || first == 0;) {
            // As many columns as fit, one at least.
            std::size_t last = std::min(first + 1, num_data - 1);
            while (last + 1 < num_data && system_width(ordered_circuit, widths, first, last + 1) <= room) ++last;
            const Extent extent = place_system(ordered_circuit, widths, {first, last}, margin, y_, picture_);
            right_ = std::max(right_, extent.right);
            y_ = extent.bottom + between_systems;
            if (last + 1 >= num_data) break;
            first = last;
        }
        for (const LevelName& level : circuit.levels)
            if (any_of(circuit.values, [&](const Value& v) { return v.level == level.level; }) && !contains(levels_, level))
                levels_.push_back(level);
    }

    void legend() {
        if (levels_.size() < 2) return;
        double x = margin;
        for (const LevelName& level : levels_) {
            const double width = 34 + svg::text_width(level.name, svg::small_text_size) + 22;
            if (x > margin && x + width > options_.page_width - margin) x = margin, y_ += line_height;
            picture_.samples.push_back({x, y_ + 8, 28, level.level});
            PlacedText text;
            text.x = x + 34, text.y = y_ + 12, text.label = {{level.name}}, text.role = TextRole::legend,
            text.is_centred = false;
            text.level = level.level;
            picture_.texts.push_back(std::move(text));
            x += width;
            right_ = std::max(right_, x - 22);
        }
        y_ += line_height;
    }

    /// What a screen reader says: every operation in order.
    void describe() {
        std::string& out = picture_.description;
        std::size_t num_operations = 0;
        for (const Circuit& circuit : drawing_.circuits) num_operations += circuit.operations.size();
        out = fmt::format("A Neural Circuit Diagram of {} operation{}.", num_operations, num_operations == 1 ? "" : "s");
        constexpr std::size_t most = 60;
        std::size_t said = 0;
        for (const Circuit& circuit : drawing_.circuits) {
            if (!circuit.caption.empty()) out += " " + circuit.caption + ":";
            for (const Operation& op : circuit.operations)
                if (said++ < most) out += " " + std::string(name(op.shape)) + " " + op.statement + ";";
        }
        if (num_operations > most) out += " and more;";
        if (out.back() == ';') out.back() = '.';
    }

    const Drawing& drawing_;
    const LayoutOptions& options_;
    Picture picture_;
    double y_ = 0, right_ = 0;
    std::vector<LevelName> levels_;
};

}  // namespace

double PlacedText::size() const {
    switch (role) {
        case TextRole::wire: return 13;
        case TextRole::relation: return 20;
        case TextRole::caption: return svg::text_size;
        default: return svg::small_text_size;
    }
}

double PlacedText::width() const {
    constexpr double bold = 1.15;
    return svg::text_width(label, size()) * (role == TextRole::caption ? bold : 1);
}

Picture picture_of(const Drawing& drawing, const LayoutOptions& options) { return Layout(drawing, options).run(); }

}  // namespace napkin::draw
