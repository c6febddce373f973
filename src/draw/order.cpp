#include "draw/order.hpp"

#include <cmath>
#include <map>
#include <optional>
#include <utility>

#include "support/ids.hpp"
#include "support/ranges.hpp"
#include "support/result.hpp"

namespace napkin::draw {
namespace {

bool is_bracket_edge(const Circuit& circuit, std::size_t operation) {
    return any_of(circuit.brackets, [&](const Bracket& b) { return b.first == operation || b.last == operation; });
}

/// The column of every operation. Transfers and starts that do not depend on each other share one, and so do functions
/// of one value each where the circuit lets them; all else has its own.
std::vector<std::size_t> columns_of(const Circuit& circuit) {
    std::vector<std::size_t> out;
    std::size_t column = 0;
    std::vector<ValueId> written, read;  // in the current column
    bool is_open = false;
    std::vector<int> num_readers(circuit.values.size(), 0);
    for (const Operation& op : circuit.operations)
        for (const Operand& operand : op.inputs) ++num_readers[at(operand.value)];
    for (std::size_t i = 0; i < circuit.operations.size(); ++i) {
        const Operation& op = circuit.operations[i];
        const bool simple = op.shape == Shape::transfer || op.shape == Shape::start ||
                            (circuit.is_concurrent && op.inputs.size() == 1 && num_readers[at(op.inputs[0].value)] == 1);
        const bool depends = any_of(op.inputs, [&](const Operand& operand) {
            return contains(written, operand.value) || contains(read, operand.value);
        });
        if (i > 0 && !(is_open && simple && !depends && !is_bracket_edge(circuit, i))) {
            ++column;
            written.clear(), read.clear();
        }
        is_open = simple;
        written.push_back(op.output);
        for (const Operand& operand : op.inputs) read.push_back(operand.value);
        out.push_back(column);
    }
    return out;
}

/// One way to order the circuit, and what it crosses.
class Arrangement {
public:
    /// `rank` is by value and says where inputs and what is started stand; others take the rank of the operand whose
    /// place they take.
    Arrangement(const Circuit& circuit, const std::vector<std::size_t>& column_of, std::vector<double> rank,
                std::vector<std::vector<int>> wire_order)
        : rank_(std::move(rank)) {
        out_.circuit = circuit;
        out_.wire_order = std::move(wire_order);
        out_.column_of = column_of;
    }

    Ordered run() {
        find_lives();
        const std::size_t num_columns = out_.column_of.empty() ? 0 : out_.column_of.back() + 1;
        std::vector<ValueId> list;
        for (const ValueId v : out_.circuit.inputs) insert_by_rank(list, v);
        out_.data.push_back(list);
        for (std::size_t c = 0, op = 0; c < num_columns; ++c) {
            Column column;
            for (const ValueId v : list) column.items.push_back({v, -1});
            for (; op < out_.column_of.size() && out_.column_of[op] == c; ++op) place(op, c, column);
            // What ends here without being read for the last time here.
            std::erase_if(column.items, [&](const Item& item) {
                return item.placed < 0 && last_at(item.value) <= static_cast<int>(c);
            });
            list.clear();
            for (const Item& item : column.items)
                list.push_back(item.placed < 0 ? item.value : operation(column.placed[at(item.placed)]).output);
            out_.columns.push_back(std::move(column));
            out_.data.push_back(list);
        }
        return std::move(out_);
    }

private:
    [[nodiscard]] int last_at(ValueId v) const { return out_.last[at(v)]; }
    [[nodiscard]] const Operation& operation(const Placed& p) const { return out_.circuit.operations[p.operation]; }
    Value& value(ValueId v) { return out_.circuit.values[at(v)]; }

    void find_lives() {
        const auto num = out_.circuit.values.size();
        out_.born.assign(num, 0), out_.last.assign(num, -1);
        for (std::size_t i = 0; i < out_.circuit.operations.size(); ++i) {
            const Operation& op = out_.circuit.operations[i];
            const int column = static_cast<int>(out_.column_of[i]);
            out_.born[at(op.output)] = column + 1;
            for (const Operand& operand : op.inputs) out_.last[at(operand.value)] = column;
        }
        const int end = out_.column_of.empty() ? 0 : static_cast<int>(out_.column_of.back()) + 1;
        for (const ValueId v : out_.circuit.outputs) out_.last[at(v)] = end;
        const auto keep = [&](ValueId v, int until) { out_.last[at(v)] = std::max(out_.last[at(v)], until); };
        for (const Bracket& b : out_.circuit.brackets)
            for (const ValueId v : b.maintained) keep(v, static_cast<int>(out_.column_of[b.last - 1]) + 1);
        for (std::size_t v = 0; v < num; ++v) {
            if (value(static_cast<ValueId>(v)).held >= 0)
                keep(static_cast<ValueId>(v), static_cast<int>(out_.column_of[at(value(static_cast<ValueId>(v)).held)]));
            out_.last[v] = std::max(out_.last[v], out_.born[v]);
        }
    }

    void insert_by_rank(std::vector<ValueId>& list, ValueId v) const {
        const auto place = find_if(list, [&](ValueId other) { return rank_[at(other)] > rank_[at(v)]; });
        list.insert(place, v);
    }

    /// How well the result fits to where the operand stands: a state's update to the state, else by wires that go on.
    [[nodiscard]] double fit(const Operation& op, const Operand& operand) const {
        const Value& from = out_.circuit.values[at(operand.value)];
        const Value& to = out_.circuit.values[at(op.output)];
        double score = from.name == to.name ? 10 : 0;
        for (const AxisId axis : operand.axes)
            if (any_of(to.wires, [&](const Wire& w) { return w.axis == axis; })) ++score;
        return score + (from.level == to.level ? 0.5 : 0);
    }

    void place(std::size_t index, std::size_t c, Column& column) {
        const Operation& op = out_.circuit.operations[index];
        std::vector<Item>& items = column.items;
        const auto position = [&](ValueId v) {
            for (std::size_t i = 0; i < items.size(); ++i)
                if (items[i].placed < 0 && items[i].value == v) return static_cast<int>(i);
            throw InternalError("an operation reads a value that is not there: " + value(v).name);
        };
        Placed placed;
        placed.operation = index;
        if (op.inputs.empty()) {
            const auto place = find_if(items, [&](const Item& item) {
                const ValueId other = item.placed < 0 ? item.value : operation(column.placed[at(item.placed)]).output;
                return rank_[at(other)] > rank_[at(op.output)];
            });
            const auto where = place - items.begin();
            make_rows(op, placed, {}, {}, {});
            column.placed.push_back(std::move(placed));
            items.insert(items.begin() + where, {-1, static_cast<int>(column.placed.size()) - 1});
            return;
        }
        // The operand whose place the result takes.
        const auto dies = [&](ValueId v) { return last_at(v) == static_cast<int>(c); };
        std::size_t main = 0;
        const auto score = [&](const Operand& o) { return fit(op, o) + (dies(o.value) ? 100 : 0); };
        for (std::size_t i = 1; i < op.inputs.size(); ++i)
            if (score(op.inputs[i]) > score(op.inputs[main])) main = i;
        const ValueId main_value = op.inputs[main].value;
        rank_[at(op.output)] = rank_[at(main_value)];
        // Operands that end here and stand beside it without a gap are in the block.
        const int main_at = position(main_value);
        int low = main_at, high = main_at;
        const auto is_ending_operand = [&](int i) {
            if (i < 0 || i >= static_cast<int>(items.size()) || items[at(i)].placed >= 0) return false;
            const ValueId v = items[at(i)].value;
            return dies(v) && any_of(op.inputs, [&](const Operand& o) { return o.value == v; });
        };
        std::vector<std::size_t> inside, above, below;  // operands
        if (dies(main_value)) {
            while (is_ending_operand(low - 1)) --low;
            while (is_ending_operand(high + 1)) ++high;
        }
        std::vector<bool> is_taken(op.inputs.size(), false);
        if (dies(main_value))
            for (int i = low; i <= high; ++i)
                for (std::size_t o = 0; o < op.inputs.size(); ++o)
                    if (op.inputs[o].value == items[at(i)].value) {
                        inside.push_back(o), is_taken[o] = true;
                        break;  // a second reading of it comes from outside
                    }
        std::vector<std::size_t> outside;
        for (std::size_t o = 0; o < op.inputs.size(); ++o)
            if (!is_taken[o]) outside.push_back(o);
        stable_sort(outside, [&](std::size_t a, std::size_t b) {
            return position(op.inputs[a].value) < position(op.inputs[b].value);
        });
        for (const std::size_t o : outside) {
            const int where = position(op.inputs[o].value);
            const int from = where < low ? where + 1 : high + 1, to = where < low ? low : where;
            double between = 0;
            for (int i = from; i < to; ++i) between += 0.5 + num_wires(items[at(i)]);
            out_.crossings += between * (1 + static_cast<double>(op.inputs[o].axes.size())) + 0.2;
            (where <= low ? above : below).push_back(o);
        }
        make_rows(op, placed, inside, above, below);
        column.placed.push_back(std::move(placed));
        const Item item{-1, static_cast<int>(column.placed.size()) - 1};
        if (dies(main_value)) {
            items.erase(items.begin() + low, items.begin() + high + 1);
            items.insert(items.begin() + low, item);
        } else {
            items.insert(items.begin() + main_at + 1, item);
        }
        std::erase_if(items, [&](const Item& i) {
            return i.placed < 0 && dies(i.value) &&
                   any_of(op.inputs, [&](const Operand& o) { return o.value == i.value; });
        });
    }

    [[nodiscard]] double num_wires(const Item& item) const {
        return item.value < 0 ? 1 : static_cast<double>(out_.circuit.values[at(item.value)].wires.size());
    }

    /// The rows of the block and, by them, the order of the result's wires.
    void make_rows(const Operation& op, Placed& placed, const std::vector<std::size_t>& inside,
                   const std::vector<std::size_t>& above, const std::vector<std::size_t>& below) {
        const Value& result = value(op.output);
        const bool is_one_to_one = (op.shape == Shape::transfer || op.shape == Shape::copy) && op.inputs.size() == 1 &&
                                   op.inputs[0].axes.size() == result.wires.size();
        using Giver = std::pair<std::size_t, int>;  // an operand and its wire
        std::vector<std::optional<Giver>> giver(result.wires.size());
        const auto wire_for = [&](AxisId axis, int wire) {
            if (is_one_to_one) return wire;
            if (axis != -1 && (op.shape == Shape::along || !contains(op.consumed, axis)))
                for (std::size_t w = 0; w < result.wires.size(); ++w)
                    if (result.wires[w].axis == axis) return static_cast<int>(w);
            return -1;
        };
        // A state's own wires go on as the new state's.
        std::size_t first = inside.empty() ? op.inputs.size() : inside.front();
        for (const std::size_t o : inside)
            if (fit(op, op.inputs[o]) > fit(op, op.inputs[first])) first = o;
        if (!inside.empty())
            for (std::size_t w = 0; w < op.inputs[first].axes.size(); ++w)
                if (const int to = wire_for(op.inputs[first].axes[w], static_cast<int>(w)); to >= 0 && !giver[at(to)])
                    giver[at(to)] = Giver{first, static_cast<int>(w)};
        const auto add_operand = [&](std::size_t o, bool straight) {
            const Operand& operand = op.inputs[o];
            for (const int w : out_.wire_order[at(operand.value)]) {
                Row row{Row::Use::consumed, operand.axes[at(w)], operand.value, w, -1, straight};
                if (const int to = wire_for(operand.axes[at(w)], w); to >= 0) {
                    if (!giver[at(to)]) giver[at(to)] = Giver{o, w};
                    const bool takes = giver[at(to)] == Giver{o, w};
                    row.use = takes ? Row::Use::pass : Row::Use::merge;
                    if (takes) row.to_wire = to;
                    if (!takes && !straight) continue;  // joins from outside, below
                }
                placed.rows.push_back(row);
            }
        };
        for (const std::size_t o : above) add_operand(o, false);
        for (const std::size_t o : inside) add_operand(o, true);
        for (const std::size_t o : below) add_operand(o, false);
        for (const int w : out_.wire_order[at(op.output)])
            if (!giver[at(w)]) placed.rows.push_back({Row::Use::fresh, result.wires[at(w)].axis, -1, -1, w, false});
        std::vector<int> order;
        for (const Row& row : placed.rows)
            if (row.to_wire >= 0) order.push_back(row.to_wire);
        const auto row_of = [&](AxisId axis) {
            for (std::size_t r = 0; r < placed.rows.size(); ++r)
                if (placed.rows[r].to_wire >= 0 && placed.rows[r].axis == axis) return r;
            return placed.rows.size();
        };
        for (const auto* list : {&above, &below})
            for (const std::size_t o : *list)
                for (const int w : out_.wire_order[at(op.inputs[o].value)]) {
                    const std::size_t r = row_of(op.inputs[o].axes[at(w)]);
                    const bool has_row = any_of(placed.rows, [&](const Row& row) {
                        return !row.straight && row.from == op.inputs[o].value && row.from_wire == w &&
                               row.axis == op.inputs[o].axes[at(w)];
                    });
                    const bool is_there = r < placed.rows.size() && placed.rows[r].from == op.inputs[o].value &&
                                          placed.rows[r].from_wire == w;
                    if (r == placed.rows.size() || has_row || is_there) continue;
                    placed.joining.push_back({op.inputs[o].value, w, r});
                    out_.crossings += 0.05 * static_cast<double>(list == &above ? r : placed.rows.size() - r);
                }
        out_.wire_order[at(op.output)] = std::move(order);
        count_inner_crossings(placed);
    }

    void count_inner_crossings(const Placed& placed) {
        const std::vector<Row>& rows = placed.rows;
        for (std::size_t i = 0; i < rows.size(); ++i) {
            if (rows[i].use != Row::Use::consumed && rows[i].use != Row::Use::merge) continue;
            for (std::size_t j = 0; j < rows.size(); ++j) {
                const bool joined = rows[j].axis == rows[i].axis && rows[i].axis >= 0 && j != i &&
                                    (rows[i].use == Row::Use::merge ? rows[j].to_wire >= 0
                                                                    : rows[j].use == Row::Use::consumed && j > i);
                if (joined) out_.crossings += std::abs(static_cast<double>(i) - static_cast<double>(j)) - 1;
            }
        }
    }

    Ordered out_;
    std::vector<double> rank_;
};

/// With more inputs than these, the order of the text is not asked for.
constexpr std::size_t most_compared = 16;

/// Moves inputs, states and the wires of either while that crosses less.
Ordered best_arrangement(const Circuit& circuit) {
    const std::vector<std::size_t> column_of = columns_of(circuit);
    std::vector<ValueId> sources = circuit.inputs;
    for (const Operation& op : circuit.operations)
        if (op.inputs.empty()) sources.push_back(op.output);
    std::vector<std::vector<int>> wires(circuit.values.size());
    for (std::size_t v = 0; v < wires.size(); ++v) {
        wires[v].resize(circuit.values[v].wires.size());
        iota(wires[v], 0);
    }
    const std::vector<ValueId> as_given = sources;
    const auto arranged = [&](const std::vector<ValueId>& order) {
        std::vector<double> rank(circuit.values.size(), 0);
        for (std::size_t i = 0; i < order.size(); ++i) rank[at(order[i])] = static_cast<double>(i);
        Ordered out = Arrangement(circuit, column_of, rank, wires).run();
        // Among two orders that cross as much, the one nearer to the text's wins.
        constexpr double turned = 0.04;
        for (std::size_t i = 0; i < as_given.size(); ++i)
            for (std::size_t j = i + 1; j < as_given.size() && j < most_compared; ++j)
                if (rank[at(as_given[i])] > rank[at(as_given[j])]) out.crossings += turned;
        return out;
    };
    Ordered best = arranged(sources);
    // A bound on the work, so that large circuits are drawn as quickly as small ones.
    std::size_t left = std::clamp<std::size_t>(20000 / (circuit.operations.size() + 1), 20, 2000);
    const auto better = [&](const std::vector<ValueId>& order) {
        if (left == 0) return false;
        --left;
        Ordered other = arranged(order);
        if (other.crossings >= best.crossings - 1e-9) return false;
        best = std::move(other);
        return true;
    };
    for (bool is_improved = true; is_improved && left > 0;) {
        is_improved = false;
        for (const ValueId v : as_given) {
            for (std::size_t w = 0; w + 1 < wires[at(v)].size(); ++w)
                for (std::size_t other = w + 1; other < wires[at(v)].size(); ++other) {
                    std::swap(wires[at(v)][w], wires[at(v)][other]);
                    if (better(sources))
                        is_improved = true;
                    else
                        std::swap(wires[at(v)][w], wires[at(v)][other]);
                }
            for (std::size_t place = 0; place < sources.size(); ++place) {
                std::vector<ValueId> moved = sources;
                std::erase(moved, v);
                moved.insert(moved.begin() + static_cast<std::ptrdiff_t>(place), v);
                if (moved == sources || !better(moved)) continue;
                sources = std::move(moved);
                is_improved = true;
            }
        }
    }
    return best;
}

/// A value without axes has one wire all the same, by which it goes from column to column.
Circuit with_scalar_wires(Circuit circuit) {
    for (Operation& op : circuit.operations)
        for (Operand& operand : op.inputs)
            if (circuit.values[at(operand.value)].wires.empty()) operand.axes = {scalar_axis};
    for (Value& value : circuit.values)
        if (value.wires.empty()) value.wires.push_back({scalar_axis, {}, ""});
    return circuit;
}

}  // namespace

Ordered ordered(const Circuit& circuit) { return best_arrangement(with_scalar_wires(circuit)); }

std::string_view name(Shape shape) {
    static constexpr std::string_view names[] = {"box",  "contraction", "reduction", "along",
                                                 "copy", "transfer",    "start",     "join"};
    return names[static_cast<std::size_t>(shape)];
}

}  // namespace napkin::draw
