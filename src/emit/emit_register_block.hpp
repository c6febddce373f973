#pragma once
// The register block of a statement, as ComputeWriter (emit_compute.cpp) puts it into loops: its accumulators, what it
// accumulates, and where it is stored. The same for threads that hold values in lanes.
#include <fmt/format.h>

#include <string>
#include <utility>

#include "algebra/number.hpp"
#include "emit/emit_body.hpp"
#include "emit/emit_write.hpp"
#include "support/ranges.hpp"

namespace napkin::writers {

/// Modulo 2^64.
std::string combined_integer(ReduceOp op, const std::string& a, const std::string& b);

/// acc ⊕= text
inline std::string accumulated(ReduceOp op, const std::string& acc, const std::string& text) {
    if (op == ReduceOp::sum) return fmt::format("{} += {};", acc, text);
    if (op == ReduceOp::prod) return fmt::format("{} *= {};", acc, text);
    return fmt::format("{} = {};", acc, combined(op, acc, text));
}

/// The register block of a statement: its accumulators, what it accumulates, and where it is stored.
class RegisterBlock {
protected:
    RegisterBlock(const Frame& frame, Lines& out, const Step& step)
        : frame_(frame),
          out_(out),
          step_(step),
          atom_(frame.atom(step)),
          scope_(step.scope),
          compute_(std::get<Compute>(*step.statement)),
          lanes_(frame.in_blocks() ? frame.shape(step).lanes : std::nullopt),
          product_(atom_.terms > 1 ? lane_product(frame, step) : std::nullopt) {}

    /// Each thread of a block has points of its own. Else all lanes of a warp work on each point.
    [[nodiscard]] bool is_by_threads() const { return frame_.in_blocks() && atom_.vector_axis < 0; }
    /// The target's numbers are integers.
    [[nodiscard]] bool is_whole() const { return frame_.is_whole(compute_.variable); }
    /// An integer modulo 2^64, at the target's width.
    [[nodiscard]] std::string at_width(const std::string& text) const {
        return is_whole() && frame_.variable(compute_.variable).memory_type == DType::i32
                   ? fmt::format("wrap<32>({})", text)
                   : text;
    }

    [[nodiscard]] const lower::MathChoices& choices() const { return frame_.math(step_).any.choices; }

    [[nodiscard]] std::string rows() const { return atom_.rows > 1 ? body_->rows_header() + " " : ""; }
    [[nodiscard]] std::string vectors() const { return atom_.vectors > 1 ? body_->vectors_header() + " " : ""; }
    [[nodiscard]] std::string index() const {
        return (atom_.rows > 1 ? "[i]" : std::string()) + (atom_.vectors > 1 ? "[j]" : "");
    }
    [[nodiscard]] std::string dims() const {
        std::string out;
        if (atom_.rows > 1) out += fmt::format("[{}]", atom_.rows);
        if (atom_.vectors > 1) out += fmt::format("[{}]", atom_.vectors);
        return out;
    }
    /// The block of results, before it is stored.
    [[nodiscard]] std::string result() const { return compute_.reduce ? "acc" : "value"; }

    [[nodiscard]] std::string target(bool with_vectors) const {
        const Variable& v = frame_.variable(compute_.variable);
        return fmt::format(
            "{}[{}]", frame_.name(compute_.variable),
            body_->position(compute_.variable, frame_.address(compute_.variable, v.dims, scope_), with_vectors));
    }
    /// What the target holds at the block's point.
    [[nodiscard]] std::string value_of_target() const {
        return atom_.vector_axis < 0 ? target(false) : fmt::format("load(&{})", target(true));
    }
    /// From here on results go to the array of this name, until they are stored together.
    void begin_run(std::string name) {
        run_ = std::move(name);
        out_(fmt::format("real {}[{}];", run_, atom_.rows));
    }
    [[nodiscard]] std::string store(const std::string& text, bool is_vector) const {
        if (frame_.is_in_lanes(compute_.variable))
            return fmt::format("{} = {};", in_lanes(compute_.variable), at_width(text));
        if (!run_.empty()) return fmt::format("{}[i] = {};", run_, at_width(text));
        const std::string guard = guard_of_rows();
        if (atom_.vector_axis < 0 || atom_.across)
            return frame_.in_blocks() && !is_by_threads()
                       ? fmt::format("{}put(&{}, {}({}));", guard, target(false), frame_.cell_type(compute_.variable),
                                     at_width(text))
                       : fmt::format("{}{} = {};", guard, target(false), at_width(text));
        const std::string value = is_vector ? text : fmt::format("splat({})", text);
        const char* how = frame_.place(compute_.variable).non_temporal ? "store_past" : "store";
        if (!leaves_tile(atom_.vector_axis)) return fmt::format("{}{}(&{}, {});", guard, how, target(true), value);
        std::string left = frame_.count(atom_.vector_axis, scope_);
        if (const std::string name = body_->loop_name(atom_.vector_axis); !name.empty()) left += " - " + name;
        if (atom_.vectors > 1) left += fmt::format(" - {} * j", frame_.lanes);
        return fmt::format("{}{}_first({}, &{}, {});", guard, how, left, target(true), value);
    }
    /// Blocks may reach past the tile's end. A buffer has room for that; in memory the next tile's results lie there.
    [[nodiscard]] bool leaves_tile(AxisId axis) const {
        const Span& span = frame_.span(axis, scope_);
        return frame_.is_view(compute_.variable) && (span.ragged || span.tile % frame_.block_size(atom_, axis) != 0);
    }
    [[nodiscard]] std::string guard_of_rows() const {
        if (atom_.row_axis < 0 || atom_.rows == 1 || !leaves_tile(atom_.row_axis)) return "";
        const std::string name = body_->loop_name(atom_.row_axis);
        return fmt::format("if ({}i < {}) ", name.empty() ? "" : name + " + ", frame_.count(atom_.row_axis, scope_));
    }
    [[nodiscard]] std::string as_vector(const std::string& text, bool is_vector) const {
        return atom_.vector_axis < 0 || is_vector ? text : fmt::format("splat({})", text);
    }

    /// Accumulators at the reduction's identity.
    void declare(const std::string& name, const std::string& extents, const std::string& headers,
                 const std::string& indices, ReduceOp op) {
        const bool is_whole = this->is_whole() && !product_;
        const char* type = is_whole ? "int64_t" : atom_.vector_axis < 0 ? "real" : "vec";
        const Kind kind = kind_of(frame_.variable(compute_.variable).memory_type);
        const std::string start = is_whole ? integer_literal(integer_identity(op, kind))
                                           : as_vector(literal(identity(op), frame_.is_double), false);
        if (extents.empty()) {
            out_(fmt::format("{} {} = {};", type, name, start));
            return;
        }
        out_(fmt::format("{} {}{};", type, name, extents));
        out_(fmt::format("{}{}{} = {};", headers, name, indices, start));
    }
    void declare(const std::string& name) { declare(name, dims(), rows() + vectors(), index(), *compute_.reduce); }

    [[nodiscard]] std::string accumulate(const std::string& text, bool is_vector) const {
        const ReduceOp op = *compute_.reduce;
        if (product_)
            return fmt::format("acc{0} = add_products<{1}, {2}>(acc{0}, {3});", index(), factor_type(*product_->a),
                               factor_type(*product_->b), text);
        if (is_whole()) return fmt::format("acc{0} = {1};", index(), combined_integer(op, "acc" + index(), text));
        std::string value = as_vector(text, is_vector);
        if (atom_.across) {
            // Lanes past the end must not take part.
            const Span& span = frame_.span(atom_.vector_axis, scope_);
            if (lanes_ && (span.tile % lanes_->values_a_round != 0 || (span.ragged && !fills_lanes_))) {
                value = fmt::format("where({} < {}, {}, {})", value_in_lanes(), frame_.count(atom_.vector_axis, scope_),
                                    value, literal(identity(op), frame_.is_double));
            } else if (!lanes_ && (span.ragged || span.tile % frame_.block_size(atom_, atom_.vector_axis) != 0)) {
                std::string left = frame_.count(atom_.vector_axis, scope_);
                if (const std::string name = body_->loop_name(atom_.vector_axis); !name.empty()) left += " - " + name;
                if (atom_.vectors > 1) left += fmt::format(" - {} * j", frame_.lanes);
                value = fmt::format("where(iota<real>() < splat(real({})), {}, splat({}))", left, value,
                                    literal(identity(op), frame_.is_double));
            }
        }
        return accumulated(op, "acc" + index(), value);
    }

    // ---- products whose lanes add up several terms (schedule/lane_product.hpp)

    [[nodiscard]] bool has_bias() const { return product_ && product_->both_are_signed; }
    /// As the tile's cells have it.
    [[nodiscard]] std::string factor_type(const Read& r) const {
        const bool is_biased = has_bias() && &r == &product_->biased(atom_.vector_axis);
        return memory_type(is_biased ? DType::u8 : frame_.variable(r.variable()).memory_type);
    }
    [[nodiscard]] std::string bias() const { return atom_.vectors > 1 ? "bias[j]" : "bias"; }
    /// Number of cells along the axis, in place of that of its values.
    [[nodiscard]] std::string count(AxisId axis) const {
        const std::string values = frame_.count(axis, scope_);
        if (!product_ || axis != product_->axis) return values;
        const Span& span = frame_.span(axis, scope_);
        return span.ragged ? fmt::format("({} + {}) / {}", values, atom_.terms - 1, atom_.terms)
                           : std::to_string(ceil_div(span.tile, atom_.terms));
    }
    [[nodiscard]] std::int64_t cut() const {
        return product_ && atom_.cut_axis == product_->axis ? atom_.cut / atom_.terms : atom_.cut;
    }
    /// The lanes' sums as what the target's are: real numbers, or integers without the bias.
    void finish_lanes() {
        if (has_bias()) out_(rows() + vectors() + fmt::format("acc{0} = without_bias(acc{0}, {1});", index(), bias()));
        if (product_ && product_->is_integer && !is_whole())
            out_(rows() + vectors() + fmt::format("acc{0} = real_of_cells(acc{0});", index()));
    }
    /// Adds the sums to whole numbers, or leaves them there.
    void write_back_whole(bool adds) {
        const int width = frame_.variable(compute_.variable).memory_type == DType::i32 ? 32 : 64;
        out_(rows() + vectors() +
             fmt::format("{}<{}>(&{}, acc{});", adds ? "add_cells" : "store_cells", width, target(true), index()));
    }

    /// The vectors of a row and their lanes, combined to one number.
    [[nodiscard]] std::string over_lanes() const {
        const std::string row = atom_.rows > 1 ? "acc[i]" : "acc";
        std::string total = atom_.vectors > 1 ? row + "[0]" : row;
        for (int j = 1; j < atom_.vectors; ++j)
            total = combined(*compute_.reduce, total, fmt::format("{}[{}]", row, j));
        return fmt::format("{}({})", horizontal(*compute_.reduce), total);
    }

    [[nodiscard]] std::string partials_of_warp() const {
        return std::to_string(frame_.layout(compute_.variable).count);
    }
    /// Where a warp's own result for the target's point lies.
    [[nodiscard]] std::string partial(const std::string& of_warp) const {
        const Address address = frame_.address(compute_.variable, frame_.variable(compute_.variable).dims, scope_);
        return fmt::format("{}[{}{}]", frame_.partials_name, of_warp, body_->position(compute_.variable, address, false));
    }

    /// Prefetches the lines of the block's points in the tile of a group to come, or of the rows of a block to come.
    /// One is issued as each line is begun.
    void prefetches() {
        for (const Prefetch* prefetch : frame_.prefetches_in(step_)) {
            const Prefetch& p = *prefetch;
            const Variable& v = frame_.variable(p.variable);
            const std::string cache = p.cache == 1 ? "" : fmt::format(", {}", p.cache);
            if (p.fetched == Fetched::blocks) {
                const auto row = find_if(v.dims, [&](const Index& dim) { return dim.is_axis(atom_.row_axis); });
                const std::int64_t stride = frame_.layout(p.variable).strides[at(row - v.dims.begin())];
                out_(fmt::format("if ({} % {} == 0) {} prefetch<{}, {}{}>(&{}[{} + {}]);",
                                 body_->loop_name(atom_.reduced.back()), frame_.unit.line_bytes / frame_.value_bytes(),
                                 body_->rows_header(), frame_.unit.line_bytes, frame_.unit.line_bytes, cache,
                                 frame_.name(p.variable),
                                 body_->position(p.variable, frame_.address(p.variable, v.dims, scope_), false),
                                 p.ahead.value * atom_.rows * stride));
                continue;
            }
            const bool is_tall = atom_.rows > 1 && carries(v, atom_.row_axis);
            out_(fmt::format("{}prefetch<{}, {}{}>(&{}[{}]);", is_tall ? body_->rows_header() + " " : "",
                             frame_.lanes * atom_.vectors * frame_.value_bytes(), frame_.unit.line_bytes, cache,
                             frame_.ahead.at(p.variable),
                             body_->position(p.variable, frame_.address(p.variable, v.dims, scope_), false)));
        }
    }

    /// The accumulators go on from one iteration of the stream to the next.
    [[nodiscard]] bool goes_on() const { return frame_.is_in_accumulators(compute_.variable); }

    // ---- the loops over the target's points

    /// A block that covers the axis needs no loop.
    void add_loop(AxisId axis) {
        if (frame_.span(axis, scope_).tile > frame_.block_size(atom_, axis)) loops_.push_back(axis);
    }
    void add_target_loops() {
        const bool in_panel = atom_.run >= 0;
        if (atom_.vector_axis >= 0 && !atom_.across && !in_panel && !atom_.vector_inner) add_loop(atom_.vector_axis);
        for (const AxisId a : atom_.points) add_loop(a);
        if (atom_.row_axis >= 0) add_loop(atom_.row_axis);
        if (atom_.vector_inner) add_loop(atom_.vector_axis);
        target_level_ = static_cast<int>(loops_.size());
    }

    /// The warps of a block share the register blocks of the target, or its threads the points, whichever loops these
    /// stand in.
    void share_points() {
        std::string count;
        // of each loop: its counter, and how many blocks it has
        std::vector<std::pair<std::string, std::string>> places;
        for (int level = 1; level <= target_level_; ++level) {
            const AxisId axis = axis_at(level);
            const std::int64_t by = frame_.block_size(atom_, axis);
            const std::string n = frame_.count(axis, scope_);
            const bool is_number = !frame_.span(axis, scope_).ragged;
            const std::string blocks = by == 1     ? n
                                       : is_number ? std::to_string((frame_.span(axis, scope_).tile + by - 1) / by)
                                                   : fmt::format("(({} + {}) / {})", n, by - 1, by);
            count += (count.empty() ? "" : " * ") + blocks;
            places.emplace_back(frame_.axis(axis).local, blocks);
        }
        const auto [who, of] = is_by_threads() ? std::pair("thread_of_block()", "num_threads()")
                                               : std::pair("warp_of_thread()", "num_warps()");
        if (places.empty()) {
            out_.open(fmt::format("if ({} == 0)", who));
            return;
        }
        out_.open(fmt::format("for (Index block = {}; block < {}; block += {})", who, count, of));
        std::string below;
        std::vector<std::string> lines;
        for (int level = target_level_; level >= 1; --level) {
            const auto& [name, blocks] = places[static_cast<std::size_t>(level) - 1];
            const std::int64_t by = frame_.block_size(atom_, axis_at(level));
            std::string text = below.empty() ? "block" : fmt::format("block / ({})", below);
            if (level > 1) text += fmt::format(" % {}", blocks);
            if (by > 1) text = fmt::format("{} * {}", text, by);
            lines.push_back(fmt::format("const Index {} = {};", name, text));
            below = below.empty() ? blocks : blocks + " * " + below;
        }
        for (auto line = lines.rbegin(); line != lines.rend(); ++line) out_(*line);
    }

    [[nodiscard]] AxisId axis_at(int level) const { return loops_[static_cast<std::size_t>(level) - 1]; }

    // ---- values in lanes (schedule/lane_registers.hpp)

    /// A thread's value of the variable at round i_ and vector j.
    [[nodiscard]] std::string in_lanes(VariableId id) const {
        const LaneTile tile = *frame_.shape(id).lanes;
        if (tile.axis < 0) return frame_.name(id);
        if (frame_.shape(id).passes_by_rounds) return frame_.name(id) + (tile.vectors == 1 ? "[0]" : "[j]");
        return tile.vectors == 1 ? fmt::format("{}[i_]", frame_.name(id))
                                 : fmt::format("{}[{} * i_ + j]", frame_.name(id), tile.vectors);
    }
    /// What the thread has in registers.
    void give_registers(BodyWriter& body) const {
        for (const Read* r : step_.reads)
            if (frame_.is_in_lanes(r->variable()))
                body.give(r->variable(), in_lanes(r->variable()));
            else if (frame_.is_in_accumulators(r->variable()) && r->variable() != compute_.variable)
                body.give(r->variable(), frame_.name(r->variable()) + index(), atom_.vector_axis >= 0);
    }
    /// Where it lies in the tile.
    [[nodiscard]] std::string value_in_lanes() const {
        return fmt::format("place_in_lanes<{}>(i_){}", lanes_->vectors, lanes_->vectors == 1 ? "" : " + j");
    }

    const Frame& frame_;
    Lines& out_;
    const Step& step_;
    const Atom& atom_;
    ScopeId scope_;
    const Compute& compute_;
    std::optional<LaneTile> lanes_;       ///< where the statement goes through values in lanes
    std::optional<LaneProduct> product_;  ///< where lanes add up several terms at a time
    bool fills_lanes_ = false;            ///< here all threads have values in all rounds
    std::string run_ = {};                ///< array of the results that a thread stores together; "": it does not
    BodyWriter* body_ = nullptr;
    std::vector<AxisId> loops_;
    int target_level_ = 0;
};

/// The same where threads hold values in lanes (schedule/lane_registers.hpp).
class BlockInLanes : protected RegisterBlock {
protected:
    using RegisterBlock::RegisterBlock;

    /// The rounds of a statement on values in lanes.
    void open_rounds() { out_.open(fmt::format("EACH(i_, {})", lanes_->rounds)); }
    /// The thread's part of a reduction. Tiles that fill all rounds need no look at where they end.
    void sum_in_lanes(ValueId root) {
        const auto all = [&] {
            open_rounds();
            body_->hoist(out_, 1);
            body_->statement(out_, root,
                             [&](const std::string& text) { return accumulate(text, body_->is_vector(root)); });
            out_.close();
        };
        const Span& span = frame_.span(lanes_->axis, scope_);
        if (!span.ragged) return all();
        out_.open(fmt::format("if ({} == {})", frame_.count(lanes_->axis, scope_), span.tile));
        fills_lanes_ = true;
        all();
        fills_lanes_ = false;
        out_.close();
        out_.open("else");
        all();
        out_.close();
    }
    /// A map on values in lanes. Where threads find neighbours of all arrays that pass beside each other in memory, all
    /// rounds access them so.
    void map_in_lanes(ValueId root) {
        std::vector<VariableId> loaded;
        for (const Read* r : step_.reads)
            if (frame_.shape(r->variable()).passes_by_rounds && !contains(loaded, r->variable()))
                loaded.push_back(r->variable());
        const VariableId target = compute_.variable;
        const bool stores = frame_.shape(target).passes_by_rounds;
        const auto rounds = [&](const char* together) {
            open_rounds();
            for (const VariableId v : loaded) {
                out_(fmt::format("real {}[{}];", frame_.name(v), lanes_->vectors));
                out_(fmt::format("{}.load_round<{}>({}, i_);", lanes_in_memory(frame_, v), together, frame_.name(v)));
            }
            if (stores) out_(fmt::format("real {}[{}];", frame_.name(target), lanes_->vectors));
            body_->hoist(out_, 1);
            body_->statement(out_, root, [&](const std::string& text) { return store(text, body_->is_vector(root)); });
            if (stores)
                out_(fmt::format("{}.store_round<{}>({}, i_);", lanes_in_memory(frame_, target), together,
                                 frame_.name(target)));
            out_.close();
        };
        if (stores) loaded.push_back(target);
        std::string together;
        for (const VariableId v : loaded)
            together += fmt::format("{}{}.together", together.empty() ? "" : " && ", lanes_in_memory(frame_, v));
        if (stores) loaded.pop_back();
        if (together.empty()) return rounds("");
        out_.open(fmt::format("if ({})", together));
        rounds("true");
        out_.close();
        out_.open("else");
        rounds("false");
        out_.close();
    }
};

}  // namespace napkin::writers
