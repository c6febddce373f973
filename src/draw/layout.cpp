// Places for one drawing: circuit under circuit, each broken into systems, in columns of the page where one would be
// too high. The system itself is placed in place_system.cpp.
#include "draw/diagram_picture.hpp"

#include <fmt/format.h>

#include <cctype>
#include <limits>
#include <utility>

#include "draw/box_text.hpp"
#include "draw/place_system.hpp"
#include "support/ids.hpp"
#include "support/ranges.hpp"

namespace napkin::draw {
namespace {

constexpr double margin = 20, line_height = 18, between_systems = 26;
constexpr double endless = std::numeric_limits<double>::infinity();

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

/// A circuit whose columns are in order.
struct PreparedCircuit {
    const Circuit& source;
    Ordered ordered;
    std::vector<double> widths;
};

struct PreparedDrawing {
    const Drawing& drawing;
    std::vector<PreparedCircuit> circuits = {};
    std::vector<std::string> legend = {};  ///< formulas that are longer than a box
};

class Layout {
public:
    /// What would stand lower than `lowest` begins another column of the page.
    Layout(const PreparedDrawing& prepared, double page_width, double lowest)
        : prepared_(prepared), drawing_(prepared.drawing), room_(page_width - 2 * margin), lowest_(lowest) {}

    Picture run() {
        picture_.title = drawing_.title;
        begin_page_column();
        for (std::size_t i = 0; i < prepared_.circuits.size(); ++i) {
            if (i > 0) {
                if (!drawing_.relation.empty())
                    line({{drawing_.relation}}, TextRole::relation, drawing_.relation);
                else
                    y_ += line_height;
            }
            add(prepared_.circuits[i]);
        }
        legend();
        for (const std::string& formula : prepared_.legend) lines(formula, TextRole::note);
        for (const Circuit& circuit : drawing_.circuits)
            for (const std::string& note : circuit.notes) lines(note, TextRole::note);
        picture_.width = column().right + margin;
        picture_.height = std::max(bottom_, y_) + margin - 6;
        for (PlacedText& text : picture_.texts) {
            if (text.role != TextRole::relation) continue;
            for (const PageColumn& c : picture_.columns)
                if (c.left == text.x) text.x = (c.left + c.right) / 2;
        }
        describe();
        return std::move(picture_);
    }

private:
    [[nodiscard]] PageColumn& column() { return picture_.columns.back(); }
    void widen(double right) { column().right = std::max(column().right, right); }

    void begin_page_column() {
        bottom_ = std::max(bottom_, y_), y_ = margin;
        const double left = picture_.columns.empty() ? margin : column().right + 2 * margin;
        picture_.columns.push_back({left, left});
    }

    /// Begins another column of the page where this one has no room for what comes next.
    void make_room(double height) {
        if (y_ > margin && y_ + height > lowest_) begin_page_column();
    }

    void line(const svg::Label& label, TextRole role, const std::string& title) {
        make_room(line_height);
        PlacedText text;
        text.x = column().left, text.y = y_ + 12, text.label = label, text.role = role,
        text.is_centred = role == TextRole::relation;
        text.title = title;
        widen(text.x + text.width());
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
            if (!current.empty() && sample.width() > room_) {
                line(line_label(current, role), role, "");
                current.clear();
            }
            current += (current.empty() ? "" : " ") + svg::shortened(word, room_, sample.size());
            begin = end + 1;
        }
        if (!current.empty()) line(line_label(current, role), role, "");
    }

    /// As many columns in a system as fit, one at least.
    [[nodiscard]] std::vector<System> systems_of(const PreparedCircuit& circuit) const {
        const std::size_t num_data = circuit.ordered.data.size();
        std::vector<System> out;
        for (std::size_t first = 0; first + 1 < num_data || first == 0;) {
            std::size_t last = std::min(first + 1, num_data - 1);
            while (last + 1 < num_data && system_width(circuit.ordered, circuit.widths, first, last + 1) <= room_)
                ++last;
            out.push_back({first, last});
            if (last + 1 >= num_data) break;
            first = last;
        }
        return out;
    }

    [[nodiscard]] double height_of(const PreparedCircuit& circuit, const System& system) const {
        if (lowest_ == endless) return 0;
        Picture scratch;
        return place_system(circuit.ordered, circuit.widths, system, 0, 0, scratch).bottom;
    }

    void add(const PreparedCircuit& circuit) {
        const std::vector<System> systems = systems_of(circuit);
        if (const std::string& caption = circuit.source.caption; !caption.empty()) {
            make_room(2 * line_height + height_of(circuit, systems.front()));
            lines(caption, TextRole::caption);
            y_ += 4;
        }
        for (const System& system : systems) {
            make_room(height_of(circuit, system));
            const Extent extent = place_system(circuit.ordered, circuit.widths, system, column().left, y_, picture_);
            widen(extent.right);
            y_ = extent.bottom + between_systems;
        }
        for (const LevelName& level : circuit.source.levels)
            if (any_of(circuit.source.values, [&](const Value& v) { return v.level == level.level; }) &&
                !contains(levels_, level))
                levels_.push_back(level);
    }

    void legend() {
        if (levels_.size() < 2) return;
        make_room(2 * line_height);
        double x = column().left;
        for (const LevelName& level : levels_) {
            const double width = 34 + svg::text_width(level.name, svg::small_text_size) + 22;
            if (x > column().left && x + width > column().left + room_) x = column().left, y_ += line_height;
            picture_.samples.push_back({x, y_ + 8, 28, level.level});
            PlacedText text;
            text.x = x + 34, text.y = y_ + 12, text.label = {{level.name}}, text.role = TextRole::legend,
            text.is_centred = false;
            text.level = level.level;
            picture_.texts.push_back(std::move(text));
            x += width;
            widen(x - 22);
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

    const PreparedDrawing& prepared_;
    const Drawing& drawing_;
    double room_, lowest_;
    Picture picture_;
    double y_ = 0, bottom_ = 0;
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

Picture picture_of(const Drawing& drawing, const LayoutOptions& options) {
    PreparedDrawing prepared{drawing};
    for (const Circuit& circuit : drawing.circuits) {
        PreparedCircuit made{circuit, ordered(with_short_labels(circuit, prepared.legend)), {}};
        made.widths = column_widths(made.ordered);
        prepared.circuits.push_back(std::move(made));
    }
    const auto placed = [&](double lowest) { return Layout(prepared, options.page_width, lowest).run(); };
    Picture whole = placed(endless);
    if (options.page_height <= 0 || whole.height <= options.page_height) return whole;
    // The fewest columns that fit, and among those of that number the ones that end at the same height.
    const double lowest = options.page_height - margin;
    Picture out = placed(lowest);
    const auto num_columns = static_cast<double>(out.columns.size());
    for (double height = whole.height / num_columns; height < lowest; height += line_height) {
        Picture balanced = placed(height);
        if (balanced.columns.size() == out.columns.size()) return balanced;
    }
    return out;
}

}  // namespace napkin::draw
