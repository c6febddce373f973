#include "draw/place_system.hpp"

#include <map>
#include <utility>

#include "draw/box_text.hpp"
#include "draw/heights.hpp"
#include "support/ids.hpp"
#include "support/ranges.hpp"
#include "support/result.hpp"

namespace napkin::draw {
namespace {

constexpr double narrow = 14, parenthesis_room = 24;

bool opens_at(const Ordered& o, const Bracket& b, std::size_t column) { return o.column_of[b.first] == column; }
bool closes_at(const Ordered& o, const Bracket& b, std::size_t column) { return o.column_of[b.last - 1] + 1 == column; }

svg::Label name_label(const Value& value) {
    svg::Label out{{svg::shortened_name(value.name, 120, svg::small_text_size)}};
    if (!value.precision.empty()) out.push_back({" " + value.precision});
    if (value.times > 1) out.push_back({" ×" + std::to_string(value.times)});
    if (value.cached) out.push_back({" *"});
    return out;
}

/// All of an array on one wire: its name and its sizes.
Wire carried_wire(const Value& value) {
    Wire out{-1, name_label(value), ""};
    for (const Wire& wire : value.wires) {
        out.label.push_back({out.name.empty() ? ": " : "×"});
        append(out.label, wire.label);
        out.name += (out.name.empty() ? "" : "×") + wire.name;
    }
    return out;
}

bool can_be_carried(const Value& value) {
    return !value.is_carried && !value.wires.empty() &&
           all_of(value.wires, [](const Wire& wire) { return wire.axis != scalar_axis; });
}

/// The values that no operation of the system reads have one wire each, unless they are inputs or results of the whole.
Ordered with_carried_values(Ordered ordered, const System& system) {
    if (system.from == 0) return ordered;
    const auto end = static_cast<int>(ordered.data.size()) - 1;
    std::vector<ValueId> read;
    for (std::size_t i = 0; i < ordered.circuit.operations.size(); ++i)
        if (ordered.column_of[i] >= system.from && ordered.column_of[i] < system.to)
            for (const Operand& operand : ordered.circuit.operations[i].inputs) read.push_back(operand.value);
    for (const ValueId v : ordered.data[system.from]) {
        Value& value = ordered.circuit.values[at(v)];
        if (ordered.last[at(v)] == end || contains(read, v) || !can_be_carried(value)) continue;
        value.wires = {carried_wire(value)};
        value.is_carried = true;
        ordered.wire_order[at(v)] = {0};
    }
    return ordered;
}

double label_width(const Value& value, bool may_be_carried) {
    double width = svg::text_width(name_label(value), svg::small_text_size);
    for (const Wire& wire : value.wires) width = std::max(width, svg::text_width(wire.label, 13));
    if (may_be_carried && can_be_carried(value))
        width = std::max(width, svg::text_width(carried_wire(value).label, 13));
    return width + 18 + (value.maintained ? 12 : 0);
}

double brackets_width(const Ordered& o, std::size_t column) {
    return sum<double>(o.circuit.brackets, [&](const Bracket& b) {
        return (opens_at(o, b, column) ? parenthesis_room : 0) + (closes_at(o, b, column) ? parenthesis_room : 0);
    });
}

double data_width(const Ordered& o, std::size_t column, bool is_first) {
    double width = narrow;
    for (const ValueId v : o.data[column])
        if (is_first || o.born[at(v)] == static_cast<int>(column))
            width = std::max(width, label_width(o.circuit.values[at(v)], is_first && column > 0));
    return width + brackets_width(o, column);
}

/// The parts of a column of operations: where wires come from elsewhere, where the sign is, and where the result
/// leaves.
struct Zones {
    double before = 12, body = 26, after = 8;
    [[nodiscard]] double width() const { return before + body + after; }
};

Zones zones_of(const Ordered& o, const Column& column) {
    Zones out;
    for (const Placed& p : column.placed) {
        const Operation& op = o.circuit.operations[p.operation];
        const bool comes_from_elsewhere = !p.joining.empty() || any_of(p.rows, [](const Row& row) {
            return row.from >= 0 && (!row.straight || row.use == Row::Use::merge);
        });
        if (comes_from_elsewhere) out.before = 34;
        double label = 0;
        for (const svg::Label& text : box_lines(op.label))
            label = std::max(label, svg::text_width(text, svg::small_text_size));
        const double least = op.shape == Shape::transfer || op.shape == Shape::copy ? 22
                             : op.shape == Shape::start                             ? 16
                                                                                    : 42;
        out.body = std::max({out.body, label + 16, least});
    }
    return out;
}

std::size_t row_of(const Placed& p, AxisId axis) {
    for (std::size_t r = 0; r < p.rows.size(); ++r)
        if (p.rows[r].axis == axis && p.rows[r].to_wire >= 0) return r;
    throw InternalError("a wire that joins has no wire to join");
}

/// Parentheses of streams are as high as the system, those of subloops as high as their operations.
std::pair<double, double> bracket_heights(const Heights& h, const Bracket& b) {
    if (!b.is_sub) return {h.top, h.bottom};
    double y0 = h.bottom, y1 = h.top;
    for (std::size_t i = b.first; i < b.last; ++i) {
        const auto rows = h.rows.find(i);
        if (rows == h.rows.end()) continue;
        for (const double y : rows->second) y0 = std::min(y0, y - 24), y1 = std::max(y1, y + 16);
    }
    return {std::max(y0, h.top + 4), std::min(y1, h.bottom - 2)};
}

/// Why a wire of the axis ends in the operation.
Mark mark_of_end(const Operation& op, AxisId axis) {
    return axis == scalar_axis ? Mark::scalar : contains(op.consumed, axis) ? Mark::end : Mark::place;
}

/// Whether a text that begins at its x meets a wire, a box or another text.
bool is_covered(const PlacedText& text, const Picture& picture) {
    const double x0 = text.x, x1 = text.x + text.width(), y0 = text.y - text.size(), y1 = text.y + 3;
    const auto meets = [&](double left, double top, double right, double bottom) {
        return left < x1 && right > x0 && top < y1 && bottom > y0;
    };
    return any_of(picture.wires,
                  [&](const PlacedWire& w) { return meets(w.x0, std::min(w.y0, w.y1), w.x1, std::max(w.y0, w.y1)); }) ||
           any_of(picture.boxes,
                  [&](const PlacedBox& b) { return meets(b.x - 4, b.y - 3, b.x + b.width + 4, b.y + b.height + 3); }) ||
           any_of(picture.texts, [&](const PlacedText& t) {
               const double width = t.width(), left = t.is_centred ? t.x - width / 2 : t.x;
               return meets(left, t.y - t.size(), left + width, t.y + 3);
           });
}

class SystemPlacer {
public:
    SystemPlacer(const Ordered& ordered, const std::vector<double>& widths, const System& system, double left,
                 double top, Picture& picture)
        : o_(ordered),
          widths_(widths),
          system_(system),
          left_(left),
          top_(top),
          picture_(picture),
          h_(heights_of(ordered, system, top)) {}

    Extent run() {
        find_columns();
        separators();
        for (std::size_t c = system_.from; c <= system_.to; ++c) {
            data_column(c);
            if (c < system_.to) operation_column(c);
        }
        for (const auto& [wire, run] : runs_) add_wire(wire, run);
        brackets();
        return {x_data_.back().second, h_.bottom + 12};
    }

private:
    struct Run {
        double x0, x1, y;
    };

    [[nodiscard]] const Value& value(ValueId v) const { return o_.circuit.values[at(v)]; }
    [[nodiscard]] const Operation& operation(const Placed& p) const { return o_.circuit.operations[p.operation]; }
    [[nodiscard]] bool is_labelled(ValueId v, std::size_t column) const {
        return draw::is_labelled(o_, system_, v, column);
    }

    [[nodiscard]] std::vector<double> heights_of_wires(ValueId v) const {
        return mapped<double>(o_.wire_order[at(v)], [&](int w) { return y_of(v, w); });
    }

    void find_columns() {
        double x = left_;
        for (std::size_t c = system_.from; c <= system_.to; ++c) {
            const double width = c == system_.from ? data_width(o_, c, true) : widths_[2 * c];
            x_data_.emplace_back(x, x + width);
            x += width;
            if (c == system_.to) break;
            x_operations_.emplace_back(x, x + widths_[2 * c + 1]);
            x += widths_[2 * c + 1];
        }
    }

    [[nodiscard]] double y_of(ValueId v, int w) const { return h_.wires.at({v, w}); }

    /// A horizontal piece of a value's wire; pieces that follow on each other become one.
    void piece(ValueId v, int w, double x0, double x1) {
        const WireKey key{v, w};
        const double y = y_of(v, w);
        const auto found = runs_.find(key);
        if (found != runs_.end() && found->second.x1 >= x0 - 0.01) {
            found->second.x1 = std::max(found->second.x1, x1);
            return;
        }
        if (found != runs_.end()) add_wire(key, found->second);
        runs_[key] = {x0, x1, y};
    }

    void add_wire(const WireKey& key, const Run& run) {
        const Wire& wire = value(key.first).wires[at(key.second)];
        picture_.wires.push_back({run.x0, run.y, run.x1, run.y, wire.name, value(key.first).name, "",
                                  value(key.first).level, wire.axis == scalar_axis});
    }

    /// From a value's wire to a place in an operation.
    void curve(ValueId v, int w, double x0, double x1, double y1, const Operation& op) {
        const Wire& wire = value(v).wires[at(w)];
        picture_.wires.push_back(
            {x0, y_of(v, w), x1, y1, wire.name, value(v).name, op.statement, value(v).level, wire.axis == scalar_axis});
    }

    void mark(Mark kind, double x, double y, double size, int level, const std::string& axis, const Operation& op) {
        picture_.marks.push_back({x, y, size, kind, level, axis, op.statement});
    }

    void data_column(std::size_t c) {
        const auto [x0, x1] = x_data_[c - system_.from];
        double text_left = x0, text_right = x1;
        for (const Bracket& b : o_.circuit.brackets) {
            if (closes_at(o_, b, c)) text_left += parenthesis_room;
            if (opens_at(o_, b, c)) text_right -= parenthesis_room;
        }
        const double middle = (text_left + text_right) / 2;
        for (const ValueId v : o_.data[c]) {
            const Value& val = value(v);
            for (const int w : o_.wire_order[at(v)]) {
                piece(v, w, x0, x1);
                if (!is_labelled(v, c) || val.wires[at(w)].label.empty()) continue;
                PlacedText text;
                text.x = middle, text.y = y_of(v, w) + 4.5, text.label = val.wires[at(w)].label, text.role = TextRole::wire;
                text.level = val.level, text.axis = val.wires[at(w)].name, text.array = val.name;
                picture_.texts.push_back(std::move(text));
            }
            if (has_name(o_, system_, v, c)) {
                PlacedText name;
                name.x = middle, name.y = h_.names[c - system_.from].at(v) + 4, name.label = name_label(val);
                name.role = TextRole::name, name.level = val.level, name.array = val.name, name.title = val.name;
                picture_.texts.push_back(std::move(name));
            }
            if (!val.maintained || !is_labelled(v, c)) continue;
            const std::vector<double> heights = heights_of_wires(v);
            const double y0 = heights.front() - 10, y1 = heights.back() + 10;
            picture_.parentheses.push_back({text_left + 3, y0, y1, true, false, val.name});
            picture_.parentheses.push_back({text_right - 3, y0, y1, false, false, val.name});
        }
    }

    void operation_column(std::size_t c) {
        const auto [x0, x1] = x_operations_[c - system_.from];
        const Column& column = o_.columns[c];
        const Zones zones = zones_of(o_, column);
        for (const Item& item : column.items) {
            if (item.placed < 0)
                for (const int w : o_.wire_order[at(item.value)]) piece(item.value, w, x0, x1);
            else
                place(column.placed[at(item.placed)], c, x0, x0 + zones.before, x0 + zones.before + zones.body, x1);
        }
    }

    void place(const Placed& p, std::size_t c, double x0, double body0, double body1, double x1) {
        const Operation& op = operation(p);
        const std::vector<double>& rows = h_.rows.at(p.operation);
        const double middle = (body0 + body1) / 2;
        const bool is_stub = value(op.output).is_stub;
        const auto stays = [&](ValueId v) { return o_.last[at(v)] > static_cast<int>(c); };
        const bool is_cup = op.shape == Shape::contraction;
        const double cup_x = middle - 8;
        std::map<AxisId, std::vector<std::size_t>> consumed;
        for (std::size_t r = 0; r < p.rows.size(); ++r) {
            const Row& row = p.rows[r];
            const bool is_triangle = op.shape == Shape::along && contains(op.consumed, row.axis) && row.to_wire >= 0;
            const double in_end = is_triangle ? middle - 10 : row.use == Row::Use::consumed && is_cup ? cup_x : middle;
            const double out_start = is_triangle ? middle + 12 : op.shape == Shape::start ? body1 : middle;
            if (row.from >= 0) {
                const Wire& wire = value(row.from).wires[at(row.from_wire)];
                const int level = value(row.from).level;
                if (row.straight && row.use == Row::Use::merge) {
                    piece(row.from, row.from_wire, x0, x0 + 2);
                    const std::size_t to = row_of(p, row.axis);
                    curve(row.from, row.from_wire, x0 + 2, body0, rows[to], op);
                    mark(Mark::dot, body0, rows[to], 2.6, level, wire.name, op);
                } else {
                    if (row.straight) {
                        piece(row.from, row.from_wire, x0, in_end);
                    } else {
                        if (stays(row.from))
                            mark(Mark::dot, x0, y_of(row.from, row.from_wire), 2.6, level, wire.name, op);
                        curve(row.from, row.from_wire, x0, body0, rows[r], op);
                        picture_.wires.push_back({body0, rows[r], in_end, rows[r], wire.name, value(row.from).name,
                                                  op.statement, level, wire.axis == scalar_axis});
                    }
                    if (row.use == Row::Use::consumed) consumed[row.axis].push_back(r);
                }
            }
            if (row.to_wire >= 0 && !is_stub) piece(op.output, row.to_wire, out_start, x1);
            const std::string axis = row.to_wire >= 0 ? value(op.output).wires[at(row.to_wire)].name : "";
            if (is_triangle) mark(Mark::triangle, middle, rows[r], 11, op.level, axis, op);
            if (op.shape == Shape::transfer && row.to_wire >= 0)
                mark(Mark::transfer, middle, rows[r], 4, op.level, axis, op);
        }
        for (const Placed::Joining& joining : p.joining) {
            const Wire& wire = value(joining.from).wires[at(joining.wire)];
            if (stays(joining.from))
                mark(Mark::dot, x0, y_of(joining.from, joining.wire), 2.6, value(joining.from).level, wire.name, op);
            curve(joining.from, joining.wire, x0, body0, rows[joining.row], op);
            mark(Mark::dot, body0, rows[joining.row], 2.6, value(joining.from).level, wire.name, op);
        }
        end_consumed(p, op, consumed, cup_x, middle);
        outline(p, op, body0, body1, is_stub);
    }

    /// Wires of one axis end in each other two by two; one by itself has the mark that says why it ends.
    void end_consumed(const Placed& p, const Operation& op, const std::map<AxisId, std::vector<std::size_t>>& consumed,
                      double cup_x, double middle) {
        const std::vector<double>& heights = h_.rows.at(p.operation);
        for (const auto& [axis, rows] : consumed) {
            const auto wire_name = [&](std::size_t r) {
                return value(p.rows[r].from).wires[at(p.rows[r].from_wire)].name;
            };
            if (op.shape == Shape::contraction && rows.size() > 1 && axis >= 0) {
                for (std::size_t i = 0; i + 1 < rows.size(); ++i) {
                    const double y0 = heights[rows[i]], y1 = heights[rows[i + 1]];
                    picture_.cups.push_back({cup_x, y0, y1, std::min(20.0, 8 + (y1 - y0) / 6),
                                             value(p.rows[rows[i]].from).level, wire_name(rows[i]), op.statement});
                }
                continue;
            }
            for (const std::size_t r : rows)
                mark(mark_of_end(op, axis), op.shape == Shape::contraction ? cup_x : middle, heights[r], 5,
                     value(p.rows[r].from).level, wire_name(r), op);
        }
    }

    void outline(const Placed& p, const Operation& op, double body0, double body1, bool is_stub) {
        const std::vector<double>& rows = h_.rows.at(p.operation);
        const auto header = h_.headers.find(p.operation);
        // Wires that only join others do so before the box.
        double first = rows.back(), last = rows.front();
        for (std::size_t r = 0; r < rows.size(); ++r) {
            if (p.rows[r].use == Row::Use::merge) continue;
            first = std::min(first, rows[r]), last = std::max(last, rows[r]);
        }
        const double top = header != h_.headers.end() ? header->second - 9 : first - box_above;
        PlacedBox box{body0, top,           body1 - body0, last + box_below - top, op.shape,
                      false, op.splittable, op.level,      op.statement,           op.description};
        box.is_outlined = op.shape == Shape::box || op.shape == Shape::reduction || op.shape == Shape::join ||
                          (op.shape == Shape::contraction && !op.label.empty());
        if (!is_stub) picture_.boxes.push_back(std::move(box));
        if (op.label.empty()) return;
        double y = (header != h_.headers.end() ? header->second : rows.front()) + 4;
        for (const svg::Label& line : box_lines(op.label)) {
            PlacedText text;
            text.label = line, text.role = TextRole::operation, text.level = op.level, text.statement = op.statement;
            text.title = op.description;
            text.x = (body0 + body1) / 2, text.y = y;
            picture_.texts.push_back(std::move(text));
            y += box_line_height;
        }
    }

    /// Dashed lines between arrays, as long as the same two stand above each other.
    void separators() {
        std::map<std::pair<ValueId, ValueId>, PlacedSeparator> open;
        const auto add = [&](ValueId upper, ValueId lower, double x0, double x1) {
            const double above = y_of(upper, o_.wire_order[at(upper)].back()),
                         below = y_of(lower, o_.wire_order[at(lower)].front());
            const double y = below - above >= text_after_wire + text_gap ? below - text_gap - 11 : (above + below) / 2;
            const auto [place, is_new] = open.emplace(std::pair{upper, lower}, PlacedSeparator{x0, x1, y});
            if (is_new) return;
            if (place->second.x1 < x0 - 0.01) {
                picture_.separators.push_back(place->second);
                place->second = {x0, x1, y};
            }
            place->second.x1 = x1;
        };
        for (std::size_t c = system_.from; c <= system_.to; ++c) {
            const auto [x0, x1] = x_data_[c - system_.from];
            const auto& data = o_.data[c];
            for (std::size_t i = 0; i + 1 < data.size(); ++i) add(data[i], data[i + 1], x0, x1);
            if (c == system_.to) break;
            const auto& items = o_.columns[c].items;
            for (std::size_t i = 0; i + 1 < items.size(); ++i)
                if (items[i].placed < 0 && items[i + 1].placed < 0)
                    add(items[i].value, items[i + 1].value, x_operations_[c - system_.from].first,
                        x_operations_[c - system_.from].second);
        }
        for (const auto& [pair, separator] : open) picture_.separators.push_back(separator);
    }

    void brackets() {
        for (const Bracket& b : o_.circuit.brackets) {
            const auto [y0, y1] = bracket_heights(h_, b);
            const double inset = b.is_sub ? 4 : 10;
            for (std::size_t c = system_.from; c <= system_.to; ++c) {
                const auto [x0, x1] = x_data_[c - system_.from];
                if (opens_at(o_, b, c) && c < system_.to) {
                    picture_.parentheses.push_back({x1 - inset, y0, y1, true, true, ""});
                    bracket_label(b, x1 - inset, y0, y1);
                }
                if (closes_at(o_, b, c) && c > system_.from)
                    picture_.parentheses.push_back({x0 + inset, y0, y1, false, true, ""});
            }
        }
    }

    /// Above the system; a subloop's at its parenthesis, over it or beside it, where nothing else is there.
    void bracket_label(const Bracket& b, double x, double y0, double y1) {
        PlacedText text;
        text.label = b.label;
        text.role = TextRole::bracket, text.is_centred = false;
        std::vector<std::pair<double, double>> places;
        if (b.is_sub) places = {{x - 4, y0 - 4}, {x - 14 - text.width(), (y0 + y1) / 2 + 4}};
        for (const auto& [at_x, at_y] : places) {
            text.x = at_x, text.y = at_y;
            if (at_x >= left_ && at_y - text.size() > top_ && !is_covered(text, picture_)) {
                picture_.texts.push_back(std::move(text));
                return;
            }
        }
        text.x = x - 4, text.y = top_ + 11 + bracket_line * static_cast<double>(depth_of(o_, b));
        picture_.texts.push_back(std::move(text));
    }

    const Ordered& o_;
    const std::vector<double>& widths_;
    const System& system_;
    double left_, top_;
    Picture& picture_;
    Heights h_;
    std::vector<std::pair<double, double>> x_data_, x_operations_;
    std::map<WireKey, Run> runs_;
};

}  // namespace

std::vector<double> column_widths(const Ordered& ordered) {
    std::vector<double> out;
    for (std::size_t c = 0; c < ordered.data.size(); ++c) {
        out.push_back(data_width(ordered, c, false));
        if (c < ordered.columns.size()) out.push_back(zones_of(ordered, ordered.columns[c]).width());
    }
    return out;
}

double system_width(const Ordered& ordered, const std::vector<double>& widths, std::size_t from, std::size_t to) {
    double width = data_width(ordered, from, true);
    for (std::size_t i = 2 * from + 1; i <= 2 * to; ++i) width += widths[i];
    return width;
}

Extent place_system(const Ordered& ordered, const std::vector<double>& widths, const System& system, double left,
                    double top, Picture& picture) {
    return SystemPlacer(with_carried_values(ordered, system), widths, system, left, top, picture).run();
}

}  // namespace napkin::draw
