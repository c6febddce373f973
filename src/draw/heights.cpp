#include "draw/heights.hpp"

#include <algorithm>

#include "draw/box_text.hpp"
#include "support/ids.hpp"
#include "support/result.hpp"

namespace napkin::draw {
namespace {

class HeightFinder {
public:
    HeightFinder(const Ordered& ordered, const System& system, double top) : o_(ordered), system_(system), top_(top) {}

    Heights run() {
        find_nodes();
        find_heights();
        const auto y = [&](NodeId node) { return nodes_[at(node)].y; };
        Heights out;
        for (const auto& [wire, node] : node_) out.wires[wire] = y(node);
        for (const auto& column : names_) {
            auto& heights = out.names.emplace_back();
            for (const auto& [value, node] : column) heights[value] = y(node);
        }
        for (const auto& [operation, nodes] : rows_)
            for (const NodeId node : nodes) out.rows[operation].push_back(y(node));
        for (const auto& [operation, node] : headers_) out.headers[operation] = y(node);
        out.top = content_top_, out.bottom = bottom_;
        return out;
    }

private:
    using NodeId = int;
    struct Node {
        bool is_text = false;
        bool is_local = false;  ///< stands in one column of operations
        NodeId below = -1;      ///< of a text: the wire that it stands above
        double gap = text_gap;  ///< of a text: from its first line to that wire
        double y = 0;
    };
    /// What stands in one layer: the nodes of each item.
    struct Layer {
        std::vector<std::vector<NodeId>> items;
    };

    [[nodiscard]] const Operation& operation(const Placed& p) const { return o_.circuit.operations[p.operation]; }

    NodeId new_node(bool is_text = false) {
        nodes_.push_back({.is_text = is_text});
        return static_cast<NodeId>(nodes_.size()) - 1;
    }

    NodeId text_above(NodeId wire) {
        const NodeId out = new_node(true);
        nodes_[at(out)].below = wire;
        return out;
    }

    [[nodiscard]] std::vector<NodeId> wires_of(ValueId v) const {
        return mapped<NodeId>(o_.wire_order[at(v)], [&](int w) { return node_.at({v, w}); });
    }

    /// Nodes are wires at one height; the result of an operation goes on at that of the operand whose wire it
    /// continues.
    void find_nodes() {
        for (const ValueId v : o_.data[system_.from])
            for (const int w : o_.wire_order[at(v)]) node_[{v, w}] = new_node();
        names_.resize(system_.to - system_.from + 1);
        for (std::size_t c = system_.from; c <= system_.to; ++c) {
            Layer layer;
            for (const ValueId v : o_.data[c]) {
                std::vector<NodeId> item = wires_of(v);
                if (has_name(o_, system_, v, c)) {
                    const NodeId name = text_above(item.front());
                    names_[c - system_.from][v] = name;
                    item.insert(item.begin(), name);
                }
                layer.items.push_back(std::move(item));
            }
            layers_.push_back(std::move(layer));
            if (c < system_.to) find_nodes_of(o_.columns[c]);
        }
    }

    void find_nodes_of(const Column& column) {
        Layer layer;
        for (const Item& item : column.items) {
            if (item.placed < 0) {
                layer.items.push_back(wires_of(item.value));
                continue;
            }
            const Placed& p = column.placed[at(item.placed)];
            std::vector<NodeId> nodes;
            for (const Row& row : p.rows) {
                const NodeId node = row.straight ? node_.at({row.from, row.from_wire}) : new_node();
                nodes.push_back(node);
                nodes_[at(node)].is_local = !row.straight && row.to_wire < 0;
                if (row.to_wire >= 0) node_[{operation(p).output, row.to_wire}] = node;
            }
            rows_[p.operation] = nodes;
            if (has_header(operation(p))) {
                const NodeId header = headers_[p.operation] = text_above(nodes.front());
                nodes_[at(header)].gap += extra_header(operation(p));
                nodes.insert(nodes.begin(), header);
            }
            layer.items.push_back(std::move(nodes));
        }
        layers_.push_back(std::move(layer));
    }

    [[nodiscard]] double gap(NodeId upper, NodeId lower, bool same_item) const {
        if (nodes_[at(upper)].is_text) return nodes_[at(upper)].gap;
        if (nodes_[at(lower)].is_text) return text_after_wire;
        return same_item ? wire_gap : array_gap;
    }

    /// The least heights that keep the order and the gaps of every layer.
    void find_heights() {
        std::vector<std::map<NodeId, double>> below(nodes_.size());
        std::vector<int> num_above(nodes_.size(), 0);
        for (const Layer& layer : layers_) {
            NodeId last = -1;
            for (const auto& item : layer.items) {
                bool same_item = false;
                for (const NodeId node : item) {
                    if (last >= 0) {
                        const double wanted = gap(last, node, same_item);
                        const auto [place, is_new] = below[at(last)].emplace(node, wanted);
                        if (is_new) ++num_above[at(node)];
                        place->second = std::max(place->second, wanted);
                    }
                    last = node, same_item = true;
                }
            }
        }
        std::vector<NodeId> ready;
        for (std::size_t n = 0; n < nodes_.size(); ++n)
            if (num_above[n] == 0) ready.push_back(static_cast<NodeId>(n));
        std::size_t done = 0;
        for (; done < ready.size(); ++done) {
            const NodeId node = ready[done];
            for (const auto& [other, wanted] : below[at(node)]) {
                nodes_[at(other)].y = std::max(nodes_[at(other)].y, nodes_[at(node)].y + wanted);
                if (--num_above[at(other)] == 0) ready.push_back(other);
            }
        }
        internal_check(done == nodes_.size(), "wires of a picture stand above each other in a circle");
        pull_down_local_rows();
        double highest = 0;
        std::size_t depth = 0;
        for (const Bracket& b : o_.circuit.brackets)
            if (is_within(b)) depth = std::max(depth, depth_of(o_, b) + 1);
        for (Node& node : nodes_)
            if (node.is_text) node.y = nodes_[at(node.below)].y - node.gap;
        const double offset = top_ + box_above + bracket_line * static_cast<double>(depth);
        for (Node& node : nodes_) {
            node.y += offset;
            highest = std::max(highest, node.y);
        }
        content_top_ = offset - box_above, bottom_ = nodes_.empty() ? offset : highest + box_below;
    }

    /// Wires that end in an operation and came from elsewhere stand as near as may be to what stands below them in its
    /// box.
    void pull_down_local_rows() {
        for (const auto& [operation, nodes] : rows_)
            for (std::size_t r = nodes.size() - 1; r-- > 0;) {
                Node& node = nodes_[at(nodes[r])];
                if (node.is_local) node.y = std::max(node.y, nodes_[at(nodes[r + 1])].y - wire_gap);
            }
    }

    [[nodiscard]] bool is_within(const Bracket& b) const {
        return o_.column_of[b.first] >= system_.from && o_.column_of[b.first] < system_.to;
    }

    const Ordered& o_;
    const System& system_;
    double top_;
    std::vector<Node> nodes_;
    std::map<WireKey, NodeId> node_;
    std::vector<std::map<ValueId, NodeId>> names_;  ///< by data column
    std::map<std::size_t, std::vector<NodeId>> rows_;
    std::map<std::size_t, NodeId> headers_;  ///< by operation
    std::vector<Layer> layers_;
    double content_top_ = 0, bottom_ = 0;
};

}  // namespace

bool has_header(const Operation& operation) { return !operation.label.empty() && operation.shape != Shape::start; }

double extra_header(const Operation& operation) {
    return box_line_height * static_cast<double>(std::max<std::size_t>(box_lines(operation.label).size(), 1) - 1);
}

bool is_labelled(const Ordered& ordered, const System& system, ValueId value, std::size_t column) {
    return column == system.from || ordered.born[at(value)] == static_cast<int>(column);
}

bool has_name(const Ordered& ordered, const System& system, ValueId value, std::size_t column) {
    return is_labelled(ordered, system, value, column) && !ordered.circuit.values[at(value)].is_carried;
}

std::size_t depth_of(const Ordered& ordered, const Bracket& bracket) {
    std::size_t depth = 0;
    for (const Bracket& other : ordered.circuit.brackets)
        if (&other != &bracket && other.first <= bracket.first && other.last >= bracket.last &&
            (other.first != bracket.first || other.last != bracket.last))
            ++depth;
    return depth;
}

Heights heights_of(const Ordered& ordered, const System& system, double top) {
    return HeightFinder(ordered, system, top).run();
}

}  // namespace napkin::draw
